/* Reader of the PipeDream project's profile format (graph.txt).
 *
 * Lines, in any order, are nodes: "nodeID -- DESCRIPTION -- forward_compute_time=MS,
 * backward_compute_time=MS, activation_size=BYTES|[BYTES; ...],
 * parameter_size=BYTES[ -- stage_id=K]"; or edges: a tab, then "nodeA -- nodeB". Times are for the
 * whole mini-batch.
 *
 * The graph becomes a chain. All nodes between two articulation points (nodes through which every
 * path from the inputs to the outputs leads) become one layer, which ends with the second of these
 * points. So a layer reads only its own nodes and the last node of the previous layer: one
 * activation crosses each boundary.
 *
 * Inputs are nodes without incoming edges. If an input's description starts with "Input", it is an
 * input node, which loads data: its times are left out and it belongs to no layer, but its
 * activation is part of the model's input. Outputs are nodes that no other node reads. Two kinds of
 * node have no influence on where layers end:
 *   dead ends    take no time, have no weights, read at most one node, and only dead ends read
 *                them; there must be an output that takes time or has weights. A dead end is a part
 *                of a result that is not used. It joins the layer of the node that it reads, and
 *                nothing is saved for it.
 *   empty nodes  take no time, have no weights and no activation, and read only empty nodes or
 *                input nodes without activation. An empty node is an initial state. It joins the
 *                first layer that reads it.
 *
 * The file leaves some things open, so there are conventions. A node's activation is the sum of its
 * outputs, rounded up to whole bytes. Half of a node's backward is for the input and half for the
 * weights; without weights, all of it is for the input. Every node saves its inputs until its
 * backward, in-place or not: a layer saves the activations that its nodes read, and each activation
 * is counted once, in the first layer that reads it. The file has no updates and no workspace:
 * these are 0. */
#ifndef CS_FOREIGN_PIPEDREAM_H
#define CS_FOREIGN_PIPEDREAM_H

#include "sim/model/model.h"

typedef struct cs_pipedream_options {
    /* name of the model; NULL: name of the file, or of its folder if the file is graph.txt */
    const char *name;
    uint32_t batch_size; /* samples in the profiled mini-batch; the file does not state them */
    /* hardware, for the provenance; the file does not name it. NULL: "not stated" */
    const char *hardware;
    const char *date; /* date for the provenance, YYYY-MM-DD */
} cs_pipedream_options;

/* A layer of the chain that consists of several nodes of the graph. */
typedef struct cs_pipedream_group {
    uint32_t layer;
    /* number of nodes, including dead ends and empty nodes that joined the layer */
    uint32_t n_nodes;
    /* ids of its first and last core nodes in topological order; owned by the model's arena */
    const char *first, *last;
} cs_pipedream_group;

typedef struct cs_pipedream_report {
    uint32_t n_nodes, n_edges, n_layers;
    uint32_t n_inputs;                /* number of input nodes */
    cs_time skipped;                  /* times of the input nodes, which are left out */
    uint32_t n_groups;                /* number of layers with more than one node */
    const cs_pipedream_group *groups; /* groups, owned by the model's arena */
} cs_pipedream_report;

/* Read a model from a profile. Errors name file and line: an unknown node, a node or an edge given
 * twice, an edge from a node to itself, a cycle, a missing or negative number, a line that is
 * neither a node nor an edge. CS_USAGE for invalid options. cs_pipedream_parse takes `name` as the
 * name of the file. On failure `model` and `report` are untouched; `report` may be NULL. */
CS_MUST_CHECK cs_status cs_pipedream_load(const char *path, const cs_pipedream_options *options,
                                          cs_model *model, cs_pipedream_report *report,
                                          cs_error *error);
CS_MUST_CHECK cs_status cs_pipedream_parse(const char *name, const char *text, size_t length,
                                           const cs_pipedream_options *options, cs_model *model,
                                           cs_pipedream_report *report, cs_error *error);

#endif
