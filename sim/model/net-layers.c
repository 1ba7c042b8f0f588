#include "sim/model/net-chain.h"
#include "sim/model/ops/operator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reads_input(const cs_net *net, const cs_op *op, const uint32_t *writer)
{
    bool reads = false;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        reads |=
            writer[op->inputs[i]] == CS_NO_TENSOR && !cs_net_tensor(net, op->inputs[i])->loaded;
    return reads;
}

/* The position of the last operator that reads the output of operator p; n_ops for an output of the
 * network. p itself for a side loss, and for the carried tensor, which is handed past the operators
 * in between. */
static uint32_t last_reader(const cs_net *net, uint32_t p)
{
    if (cs_net_is_carried(net, net->ops[p].output))
        return p;
    uint32_t reader = cs_net_tensor(net, net->ops[p].output)->last_reader;
    if (reader != CS_NO_TENSOR)
        return reader;
    const bool is_side_loss = p + 1 < net->n_ops && cs_op_is_loss(&net->ops[p]);
    return is_side_loss ? p : net->n_ops;
}

static cs_status find_ends(const cs_net *net, uint32_t *ends, uint32_t *n_ends, cs_error *error)
{
    uint32_t n = net->n_ops, last_fed = 0;
    uint32_t *readers = calloc(n, sizeof(*readers));
    uint32_t *writer = calloc(net->n_tensors, sizeof(*writer));
    cs_status status = readers && writer ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK) {
        memset(writer, 0xff, net->n_tensors * sizeof(*writer));
        for (uint32_t p = 0; p < n; p++) {
            writer[net->ops[p].output] = p;
            readers[p] = last_reader(net, p);
            if (reads_input(net, &net->ops[p], writer))
                last_fed = p;
        }
        *n_ends = cs_articulation_find(readers, n, last_fed, ends);
    }
    free(readers);
    free(writer);
    return status;
}

static bool only_views(const cs_net *net, uint32_t first, uint32_t end)
{
    bool only = true;
    for (uint32_t p = first; p < end; p++)
        only &= cs_op_is_view(&net->ops[p]);
    return only;
}

/* Joins layers that consist only of views to the next layer, or to the previous layer at the end of
 * the network. Returns the number of layers. */
static uint32_t join_views(const cs_net *net, uint32_t *ends, uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = kept > 0 ? ends[kept - 1] : 0;
        bool views = only_views(net, first, ends[i]);
        if (views && i + 1 < n)
            continue;
        if (views && kept > 0)
            kept--;
        ends[kept++] = ends[i];
    }
    return kept;
}

uint32_t cs_net_block_from(const cs_net *net, uint32_t p)
{
    while (p + 1 < net->n_ops && cs_op_is_view(&net->ops[p]))
        p++;
    return net->ops[p].block;
}

static const char *name_layer(const cs_net *net, const cs_net_layer *layer,
                              cs_granularity granularity, cs_arena *arena)
{
    static const char format[] = "%s to %s";
    uint32_t first = layer->first;
    while (first + 1 < layer->end && cs_op_is_view(&net->ops[first]))
        first++;
    const cs_op *a = &net->ops[first], *b = &net->ops[layer->end - 1];
    if (granularity == CS_GRANULARITY_BLOCK)
        return cs_arena_copy(arena, net->blocks[b->block]);
    if (a == b)
        return cs_arena_copy(arena, a->name);
    size_t size = strlen(a->name) + strlen(b->name) + sizeof(format);
    char *name = cs_arena_alloc(arena, size, 1);
    if (name)
        snprintf(name, size, format, a->name, b->name);
    return name;
}

cs_status cs_net_layers_make(const cs_net *net, cs_granularity granularity, cs_net_chain *chain,
                             cs_error *error)
{
    uint32_t n = 0;
    uint32_t *ends = cs_arena_alloc(&chain->arena, net->n_ops, sizeof(*ends));
    CS_TRY(ends ? find_ends(net, ends, &n, error) : cs_error_no_memory(error));
    n = join_views(net, ends, n);
    if (granularity == CS_GRANULARITY_BLOCK) { /* keep only the ends where another block starts */
        uint32_t kept = 0;
        for (uint32_t i = 0; i < n; i++)
            if (i + 1 == n || cs_net_block_from(net, ends[i]) != net->ops[ends[i] - 1].block)
                ends[kept++] = ends[i];
        n = kept;
    }
    chain->layers = cs_arena_alloc(&chain->arena, n, sizeof(*chain->layers));
    if (!chain->layers)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++) {
        cs_net_layer *layer = &chain->layers[i];
        layer->first = i > 0 ? ends[i - 1] : 0;
        layer->end = ends[i];
        layer->name = name_layer(net, layer, granularity, &chain->arena);
        if (!layer->name)
            return cs_error_no_memory(error);
    }
    chain->n_layers = n;
    return CS_OK;
}

void cs_net_layers_move(const cs_net_local *local, cs_net_chain *chain)
{
    uint32_t p = 0;
    for (uint32_t i = 0; i < chain->n_layers; i++) {
        cs_net_layer *layer = &chain->layers[i];
        layer->first = p;
        while (p < local->net.n_ops && local->ops[p].origin < layer->end)
            p++;
        layer->end = p;
    }
}

/* ---- articulation points ---- */

/* Every path contains the node at position p if and only if no edge starts before p and ends after
 * it, in any topological order: such an edge can be extended to a path that bypasses p, and a path
 * that bypasses p has such an edge. A virtual input feeds the nodes that read an input; a virtual
 * output reads the nodes that no other node reads. A single pass in order keeps the furthest end of
 * all edges that start before p. */
uint32_t cs_articulation_find(const uint32_t *last_reader, uint32_t n, uint32_t last_fed,
                              uint32_t *ends)
{
    uint32_t reach = last_fed, found = 0;
    for (uint32_t p = 0; p < n; p++) {
        if (reach <= p || p + 1 == n)
            ends[found++] = p + 1;
        if (last_reader[p] > reach)
            reach = last_reader[p];
    }
    return found;
}
