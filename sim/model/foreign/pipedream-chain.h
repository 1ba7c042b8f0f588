/* The chain of layers in the graph of a PipeDream profile: which node belongs to which layer. What
 * decides that is told in pipedream.h; this header is between the sources of that module.
 */
#ifndef CS_FOREIGN_PIPEDREAM_CHAIN_H
#define CS_FOREIGN_PIPEDREAM_CHAIN_H

#include "sim/base/arena.h"
#include "sim/model/foreign/pipedream-graph.h"

enum { CS_PIPEDREAM_NONE = UINT32_MAX };

typedef enum cs_pipedream_role {
    CS_PIPEDREAM_CORE, /* has a say in where the layers end */
    CS_PIPEDREAM_INPUT,
    CS_PIPEDREAM_EMPTY,
    CS_PIPEDREAM_DEAD_END,
} cs_pipedream_role;

typedef struct cs_pipedream_chain {
    const cs_pipedream_graph *graph; /* must live as long */
    cs_arena arena;                  /* owns the arrays */
    uint32_t
        *first_out; /* node -> its edges: from first_out[n] to first_out[n + 1] in graph->edges */
    uint32_t *first_in; /* node -> the edges that end there, in the same way in in_edges */
    uint32_t *in_edges; /* ids of edges */
    uint32_t *order;    /* all nodes, topologically */
    cs_pipedream_role *roles;
    uint32_t *core; /* the core nodes, topologically */
    uint32_t n_core;
    uint32_t *position; /* node -> its place in core, NONE for others */
    uint32_t *layer;    /* node -> its layer, NONE for input nodes */
    uint32_t n_layers;
    uint32_t *layer_end; /* layer -> one past its last place in core */
} cs_pipedream_chain;

/* Errors: a cycle; no layers. Zeroed chains can be finished. */
CS_MUST_CHECK cs_status cs_pipedream_chain_find(const cs_pipedream_graph *graph,
                                                cs_pipedream_chain *chain, cs_error *error);
void cs_pipedream_chain_finish(cs_pipedream_chain *chain);

/* The place of the last core node that reads `node`; n_core, where a virtual output stands, when
 * there is none. */
uint32_t cs_pipedream_chain_last_reader(const cs_pipedream_chain *chain, uint32_t node);

/* The first layer that reads `node`, dead ends not counted; NONE when none does. */
uint32_t cs_pipedream_chain_reading_layer(const cs_pipedream_chain *chain, uint32_t node);

#endif
