#include "sim/model/foreign/pipedream-chain.h"

#include "sim/model/net-chain.h"

#include <stdbool.h>
#include <string.h>

enum { NONE = CS_PIPEDREAM_NONE };

/* ---- adjacency ---- */

static uint32_t *alloc_ids(cs_pipedream_chain *a, uint32_t count)
{
    return cs_arena_alloc(&a->arena, count, sizeof(uint32_t));
}

static cs_status allocate(cs_pipedream_chain *a, cs_error *error)
{
    uint32_t n = a->graph->n_nodes;
    a->first_out = alloc_ids(a, n + 1);
    a->first_in = alloc_ids(a, n + 1);
    a->in_edges = alloc_ids(a, a->graph->n_edges);
    a->order = alloc_ids(a, n);
    a->roles = cs_arena_alloc(&a->arena, n, sizeof(*a->roles));
    a->core = alloc_ids(a, n);
    a->position = alloc_ids(a, n);
    a->layer = alloc_ids(a, n);
    a->layer_end = alloc_ids(a, n);
    if (!a->first_out || !a->first_in || !a->in_edges || !a->order || !a->roles || !a->core ||
        !a->position || !a->layer || !a->layer_end)
        return cs_error_no_memory(error);
    return CS_OK;
}

/* Groups edges by node. Edges are sorted by the node where they start, so a node's outgoing edges
 * are contiguous already. Incoming edges are grouped by a counting sort: first_in[n + 1] is the
 * next place to fill for node n, so in the end it is one past the last edge of n, where n + 1
 * begins. */
static void index_edges(cs_pipedream_chain *a)
{
    const cs_pipedream_graph *graph = a->graph;
    for (uint32_t e = 0; e < graph->n_edges; e++) {
        a->first_out[graph->edges[e].from + 1]++;
        if (graph->edges[e].to + 2 <= graph->n_nodes)
            a->first_in[graph->edges[e].to + 2]++;
    }
    for (uint32_t n = 0; n < graph->n_nodes; n++) {
        a->first_out[n + 1] += a->first_out[n];
        a->first_in[n + 1] += a->first_in[n];
    }
    for (uint32_t e = 0; e < graph->n_edges; e++)
        a->in_edges[a->first_in[graph->edges[e].to + 1]++] = e;
}

static uint32_t n_in(const cs_pipedream_chain *a, uint32_t node)
{
    return a->first_in[node + 1] - a->first_in[node];
}

static uint32_t n_out(const cs_pipedream_chain *a, uint32_t node)
{
    return a->first_out[node + 1] - a->first_out[node];
}

/* Return the i-th node that `node` reads, and the i-th node that reads `node`. */
static uint32_t writer(const cs_pipedream_chain *a, uint32_t node, uint32_t i)
{
    return a->graph->edges[a->in_edges[a->first_in[node] + i]].from;
}

static uint32_t reader(const cs_pipedream_chain *a, uint32_t node, uint32_t i)
{
    return a->graph->edges[a->first_out[node] + i].to;
}

/* ---- topological order ---- */

/* Returns an edge into `node` from a node that is not yet ordered. Every node that is not ordered
 * has such an edge. */
static const cs_pipedream_edge *open_edge(const cs_pipedream_chain *a, const uint32_t *missing,
                                          uint32_t node)
{
    uint32_t i = 0;
    while (missing[writer(a, node, i)] == 0)
        i++;
    return &a->graph->edges[a->in_edges[a->first_in[node] + i]];
}

/* Reports a cycle: walking back along such edges must reach some node twice, and that node is on a
 * cycle. */
static cs_status report_cycle(cs_pipedream_chain *a, const uint32_t *missing, cs_error *error)
{
    uint32_t *seen = alloc_ids(a, a->graph->n_nodes);
    if (!seen)
        return cs_error_no_memory(error);
    uint32_t node = 0;
    while (missing[node] == 0)
        node++;
    for (; !seen[node]; node = open_edge(a, missing, node)->from)
        seen[node] = 1;
    return cs_pipedream_invalid(a->graph->file, open_edge(a, missing, node)->line, error,
                                "this edge is part of a cycle: must not lead back to its start");
}

/* Orders the nodes by Kahn's algorithm: a node is ordered after all nodes that it reads. `order` is
 * also the queue, so nodes that become ready together keep their order in the file. */
static cs_status order_nodes(cs_pipedream_chain *a, cs_error *error)
{
    uint32_t n = a->graph->n_nodes, ordered = 0;
    uint32_t *missing = alloc_ids(a, n);
    if (!missing)
        return cs_error_no_memory(error);
    for (uint32_t node = 0; node < n; node++) {
        missing[node] = n_in(a, node);
        if (missing[node] == 0)
            a->order[ordered++] = node;
    }
    for (uint32_t i = 0; i < ordered; i++) {
        uint32_t node = a->order[i];
        for (uint32_t k = 0; k < n_out(a, node); k++)
            if (--missing[reader(a, node, k)] == 0)
                a->order[ordered++] = reader(a, node, k);
    }
    return ordered == n ? CS_OK : report_cycle(a, missing, error);
}

/* ---- roles ---- */

static bool works(const cs_pipedream_node *node)
{
    return node->forward > 0 || node->backward > 0 || node->weight_bytes > 0;
}

/* Whether a node is an input. A node with weights is a layer, whatever its name
 * ("InputEmbedding"). */
static bool is_input(const cs_pipedream_chain *a, uint32_t node)
{
    static const char word[] = "Input";
    const cs_pipedream_span *text = &a->graph->nodes[node].description;
    return n_in(a, node) == 0 && a->graph->nodes[node].weight_bytes == 0 &&
           text->length >= strlen(word) && memcmp(text->start, word, strlen(word)) == 0;
}

/* Whether a node is empty. Must be called in topological order, so that the roles of the nodes that
 * it reads are known. */
static bool is_empty(const cs_pipedream_chain *a, uint32_t node)
{
    bool empty = !works(&a->graph->nodes[node]) && a->graph->nodes[node].output_bytes == 0;
    for (uint32_t i = 0; empty && i < n_in(a, node); i++) {
        uint32_t read = writer(a, node, i);
        empty = a->roles[read] == CS_PIPEDREAM_EMPTY ||
                (a->roles[read] == CS_PIPEDREAM_INPUT && a->graph->nodes[read].output_bytes == 0);
    }
    return empty;
}

static bool any_output_works(const cs_pipedream_chain *a)
{
    for (uint32_t n = 0; n < a->graph->n_nodes; n++)
        if (a->roles[n] == CS_PIPEDREAM_CORE && n_out(a, n) == 0 && works(&a->graph->nodes[n]))
            return true;
    return false;
}

/* Whether a node is a dead end. A node that reads two nodes is not: these may be in different
 * layers. */
static bool is_dead_end(const cs_pipedream_chain *a, uint32_t node)
{
    if (a->roles[node] != CS_PIPEDREAM_CORE || n_in(a, node) > 1 || works(&a->graph->nodes[node]))
        return false;
    for (uint32_t i = 0; i < n_out(a, node); i++)
        if (a->roles[reader(a, node, i)] != CS_PIPEDREAM_DEAD_END)
            return false;
    return true;
}

/* Finds dead ends in reverse order, so that the roles of a node's readers are known. */
static void find_dead_ends(cs_pipedream_chain *a)
{
    if (!any_output_works(a))
        return;
    for (uint32_t i = a->graph->n_nodes; i-- > 0;)
        if (is_dead_end(a, a->order[i]))
            a->roles[a->order[i]] = CS_PIPEDREAM_DEAD_END;
}

static void list_core(cs_pipedream_chain *a)
{
    for (uint32_t i = 0; i < a->graph->n_nodes; i++) {
        uint32_t node = a->order[i];
        a->position[node] = a->roles[node] == CS_PIPEDREAM_CORE ? a->n_core : NONE;
        if (a->roles[node] == CS_PIPEDREAM_CORE)
            a->core[a->n_core++] = node;
    }
}

static cs_status find_roles(cs_pipedream_chain *a, cs_error *error)
{
    for (uint32_t i = 0; i < a->graph->n_nodes; i++) {
        uint32_t node = a->order[i];
        a->roles[node] = is_input(a, node)   ? CS_PIPEDREAM_INPUT
                         : is_empty(a, node) ? CS_PIPEDREAM_EMPTY
                                             : CS_PIPEDREAM_CORE;
    }
    find_dead_ends(a);
    list_core(a);
    if (a->n_core == 0)
        return cs_pipedream_invalid(a->graph->file, 1, error,
                                    "no layers: must have a node, besides inputs, that takes time "
                                    "or has weights or an activation");
    return CS_OK;
}

/* ---- layers ---- */

/* Whether a node is fed from outside: it reads an input's data, or no other core node. */
static bool is_fed(const cs_pipedream_chain *a, uint32_t node)
{
    bool alone = true;
    for (uint32_t i = 0; i < n_in(a, node); i++) {
        uint32_t read = writer(a, node, i);
        if (a->roles[read] == CS_PIPEDREAM_INPUT && a->graph->nodes[read].output_bytes > 0)
            return true;
        alone &= a->roles[read] != CS_PIPEDREAM_CORE;
    }
    return alone;
}

uint32_t cs_pipedream_chain_last_reader(const cs_pipedream_chain *a, uint32_t node)
{
    uint32_t last = 0;
    bool read = false;
    for (uint32_t i = 0; i < n_out(a, node); i++) {
        uint32_t position = a->position[reader(a, node, i)];
        if (position != NONE) {
            read = true;
            last = position > last ? position : last;
        }
    }
    return read ? last : a->n_core;
}

/* Finds the layers. A virtual input feeds all nodes that are fed from outside, and a virtual output
 * reads all nodes that no other node reads. */
static cs_status find_layers(cs_pipedream_chain *a, cs_error *error)
{
    uint32_t last_fed = 0, *last_reader = alloc_ids(a, a->n_core);
    if (!last_reader)
        return cs_error_no_memory(error);
    for (uint32_t n = 0; n < a->graph->n_nodes; n++)
        a->layer[n] = NONE;
    for (uint32_t p = 0; p < a->n_core; p++) {
        last_reader[p] = cs_pipedream_chain_last_reader(a, a->core[p]);
        if (is_fed(a, a->core[p]))
            last_fed = p;
    }
    a->n_layers = cs_articulation_find(last_reader, a->n_core, last_fed, a->layer_end);
    for (uint32_t p = 0, layer = 0; p < a->n_core; p++) {
        a->layer[a->core[p]] = layer;
        layer += a->layer_end[layer] == p + 1 ? 1 : 0;
    }
    return CS_OK;
}

uint32_t cs_pipedream_chain_reading_layer(const cs_pipedream_chain *a, uint32_t node)
{
    uint32_t first = NONE;
    for (uint32_t i = 0; i < n_out(a, node); i++) {
        uint32_t by = reader(a, node, i);
        if (a->roles[by] != CS_PIPEDREAM_DEAD_END && a->layer[by] < first)
            first = a->layer[by];
    }
    return first;
}

/* Assigns empty nodes to layers in reverse order, so that the layers of a node's readers are
 * known. */
static void place_empty_nodes(cs_pipedream_chain *a)
{
    for (uint32_t i = a->graph->n_nodes; i-- > 0;) {
        uint32_t node = a->order[i];
        if (a->roles[node] != CS_PIPEDREAM_EMPTY)
            continue;
        uint32_t layer = cs_pipedream_chain_reading_layer(a, node);
        a->layer[node] = layer == NONE ? 0 : layer;
    }
}

/* Assigns dead ends to layers in topological order, because a dead end may read another one. */
static void place_dead_ends(cs_pipedream_chain *a)
{
    for (uint32_t i = 0; i < a->graph->n_nodes; i++) {
        uint32_t node = a->order[i];
        if (a->roles[node] != CS_PIPEDREAM_DEAD_END)
            continue;
        uint32_t layer = n_in(a, node) == 1 ? a->layer[writer(a, node, 0)] : NONE;
        a->layer[node] = layer == NONE ? 0 : layer;
    }
}

static cs_status analyse(cs_pipedream_chain *a, cs_error *error)
{
    CS_TRY(allocate(a, error));
    index_edges(a);
    cs_status status = order_nodes(a, error);
    if (status == CS_OK)
        status = find_roles(a, error);
    if (status != CS_OK)
        return status;
    CS_TRY(find_layers(a, error));
    place_empty_nodes(a);
    place_dead_ends(a);
    return CS_OK;
}

cs_status cs_pipedream_chain_find(const cs_pipedream_graph *graph, cs_pipedream_chain *chain,
                                  cs_error *error)
{
    cs_pipedream_chain made = {.graph = graph};
    cs_arena_init(&made.arena);
    cs_status status = analyse(&made, error);
    if (status != CS_OK) {
        cs_pipedream_chain_finish(&made);
        return status;
    }
    *chain = made;
    return CS_OK;
}

void cs_pipedream_chain_finish(cs_pipedream_chain *chain)
{
    if (!chain)
        return;
    cs_arena_finish(&chain->arena);
    *chain = (cs_pipedream_chain){0};
}
