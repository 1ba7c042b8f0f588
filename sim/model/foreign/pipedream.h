/* Reader of the PipeDream project's profile format (graph.txt).
 *
 * Lines in any order: "nodeID -- DESCRIPTION -- forward_compute_time=MS, backward_compute_time=MS,
 * activation_size=BYTES|[BYTES; ...], parameter_size=BYTES[ -- stage_id=K]" for nodes, and a tab,
 * then "nodeA -- nodeB", for edges. Times are for the whole mini-batch.
 *
 * The graph is linearised: between two articulation points (nodes through which every path from
 * the inputs to the outputs leads) all nodes become one layer, which ends with the second of them.
 * What a layer reads is then its own or ends the layer before: one activation crosses each
 * boundary.
 *
 * Inputs are the nodes without incoming edges; those whose description starts with "Input" are
 * input nodes: they hold data loading, their times are left out and they belong to no layer, but
 * their activations are the model's input. Outputs are the nodes that no other reads. Two kinds of
 * node have no say in where the layers end:
 *   dead ends  take no time, have no weights, read at most one node and are read by dead ends at
 *              most, while there is an output that takes time or has weights: a part of a result
 *              that goes unused. They join the layer of the node that they read; nothing is kept
 *              for them.
 *   empty      take no time, have no weights and no activation, and read only such nodes or input
 *              nodes without activation: an initial state. They join the first layer that reads
 *              them.
 *
 * Conventions, since the file does not tell: a node's activation is the sum over its outputs, and a
 * part of a byte counts as one. Backward is half for the input and half for the weights, node by
 * node; all of it is for the input where a node has no weights. Every node keeps what it reads
 * until its backward, in-place or not: a layer keeps the activations that its nodes read, each
 * counted once, by the first layer that reads it. Updates and workspace are not in the file: 0.
 */
#ifndef CS_FOREIGN_PIPEDREAM_H
#define CS_FOREIGN_PIPEDREAM_H

#include "sim/model/model.h"

typedef struct cs_pipedream_options {
    const char *name;     /* of the model; NULL: the file's, its folder's where that is graph.txt */
    uint32_t batch_size;  /* samples of the mini-batch that was profiled, not stated in the file */
    const char *hardware; /* for the provenance; the file does not name it. NULL: "not stated" */
    const char *date;     /* for the provenance, YYYY-MM-DD */
} cs_pipedream_options;

/* One layer of the chain that stands for several nodes of the graph. */
typedef struct cs_pipedream_group {
    uint32_t layer;
    uint32_t n_nodes;         /* with the dead ends and empty nodes that joined it */
    const char *first, *last; /* ids among its others, topologically; in the model's arena */
} cs_pipedream_group;

typedef struct cs_pipedream_report {
    uint32_t n_nodes, n_edges, n_layers;
    uint32_t n_inputs;                /* input nodes, their times left out */
    cs_time skipped;                  /* the times left out */
    uint32_t n_groups;                /* layers of more than one node */
    const cs_pipedream_group *groups; /* owned by the model's arena */
} cs_pipedream_report;

/* Errors name file and line: no such node, a node or an edge twice, an edge from a node to itself,
 * a cycle, a missing or negative number, text that is not a node or an edge. CS_USAGE for options
 * that are not valid. `name` stands for the file's. On failure `model` and `report` are untouched;
 * `report` may be NULL. */
CS_MUST_CHECK cs_status cs_pipedream_load(const char *path, const cs_pipedream_options *options,
                                          cs_model *model, cs_pipedream_report *report,
                                          cs_error *error);
CS_MUST_CHECK cs_status cs_pipedream_parse(const char *name, const char *text, size_t length,
                                           const cs_pipedream_options *options, cs_model *model,
                                           cs_pipedream_report *report, cs_error *error);

#endif
