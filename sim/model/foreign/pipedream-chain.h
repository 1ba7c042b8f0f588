/* The chain of layers in the graph of a PipeDream profile: the layer of each node. The
 * rules are in pipedream.h. Only the sources of that module include this header. */
#ifndef CS_FOREIGN_PIPEDREAM_CHAIN_H
#define CS_FOREIGN_PIPEDREAM_CHAIN_H

#include "sim/base/arena.h"
#include "sim/model/foreign/pipedream-graph.h"

enum { CS_PIPEDREAM_NONE = UINT32_MAX };

typedef enum cs_pipedream_role {
    CS_PIPEDREAM_CORE, /* helps to decide where layers end */
    CS_PIPEDREAM_INPUT,
    CS_PIPEDREAM_EMPTY,
    CS_PIPEDREAM_DEAD_END,
} cs_pipedream_role;

typedef struct cs_pipedream_chain {
    const cs_pipedream_graph *graph; /* graph, which must outlive the chain */
    cs_arena arena;                  /* owner of the arrays */
    /* node n -> its outgoing edges in graph->edges: from first_out[n] to first_out[n + 1] - 1 */
    uint32_t *first_out;
    /* node n -> its incoming edges: ids in in_edges, from first_in[n] to first_in[n + 1] - 1 */
    uint32_t *first_in;
    uint32_t *in_edges; /* ids of edges, grouped by the node where they end */
    uint32_t *order;    /* all nodes in topological order */
    cs_pipedream_role *roles;
    uint32_t *core; /* core nodes in topological order */
    uint32_t n_core;
    uint32_t *position; /* node -> its index in core; NONE: not a core node */
    uint32_t *layer;    /* node -> its layer; NONE: input node */
    uint32_t n_layers;
    uint32_t *layer_end; /* layer -> one past the index of its last node in core */
} cs_pipedream_chain;

/* Finds the chain. Errors: the graph has a cycle or no layers. cs_pipedream_chain_finish is allowed
 * on a zeroed struct. */
CS_MUST_CHECK cs_status cs_pipedream_chain_find(const cs_pipedream_graph *graph,
                                                cs_pipedream_chain *chain, cs_error *error);
void cs_pipedream_chain_finish(cs_pipedream_chain *chain);

/* Returns the index in core of the last core node that reads `node`; n_core, the index of a virtual
 * output, if there is none. */
uint32_t cs_pipedream_chain_last_reader(const cs_pipedream_chain *chain, uint32_t node);

/* Returns the first layer that reads `node`, ignoring dead ends; NONE if there is none. */
uint32_t cs_pipedream_chain_reading_layer(const cs_pipedream_chain *chain, uint32_t node);

#endif
