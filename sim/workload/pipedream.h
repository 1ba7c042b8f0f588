/* Reader of the PipeDream project's profile format (graph.txt).
 *
 * Lines in any order: "nodeID -- DESCRIPTION -- forward_compute_time=MS, backward_compute_time=MS,
 * activation_size=BYTES|[BYTES; ...], parameter_size=BYTES[ -- stage_id=K]" for nodes, and a tab,
 * then "nodeA -- nodeB", for edges. Times are for the whole mini-batch.
 *
 * The graph is linearised: between two articulation points (nodes through which every path from
 * the inputs to the outputs leads) all nodes become one layer. The times of input nodes, which hold
 * data loading, are left out.
 */
#ifndef CS_WORKLOAD_PIPEDREAM_H
#define CS_WORKLOAD_PIPEDREAM_H

#include "sim/workload/model.h"

typedef struct cs_pipedream_options {
    const char *name;     /* of the model; NULL: from the file's name */
    uint32_t batch_size;  /* samples of the mini-batch that was profiled, not stated in the file */
    const char *hardware; /* for the provenance; the file does not name it */
    const char *date;
} cs_pipedream_options;

/* One layer of the chain that stands for several nodes of the graph. */
typedef struct cs_pipedream_group {
    uint32_t layer;
    uint32_t n_nodes;
    const char *first, *last; /* node ids, in topological order; owned by the model's arena */
} cs_pipedream_group;

typedef struct cs_pipedream_report {
    uint32_t n_nodes, n_edges, n_layers;
    uint32_t n_inputs;               /* input nodes, their times left out */
    cs_time skipped;                 /* the times left out */
    uint32_t n_groups;               /* layers of more than one node */
    const cs_pipedream_group *groups; /* owned by the model's arena */
} cs_pipedream_report;

/* Errors name file and line: no such node, a node or an edge twice, a cycle, a missing or negative
 * number, text that is not a node or an edge. */
CS_MUST_CHECK cs_status cs_pipedream_load(const char *path, const cs_pipedream_options *options,
                                          cs_model *model, cs_pipedream_report *report,
                                          cs_error *error);
CS_MUST_CHECK cs_status cs_pipedream_parse(const char *name, const char *text, size_t length,
                                           const cs_pipedream_options *options, cs_model *model,
                                           cs_pipedream_report *report, cs_error *error);

#endif
