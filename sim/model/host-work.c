#include "sim/model/host-work.h"

#include "sim/model/expert-kernels.h"

#include <math.h>

void cs_host_work_add(const cs_net_options *how, const cs_op *op, const cs_op_cost *cost,
                      cs_piece_seconds *seconds, cs_host_work *work)
{
    if (op->kind == CS_OP_DISPATCH)
        work->in_graph = how->kernels.graphs && op->capacity > 0;
    if (work->in_graph) {
        work->in_graph = op->kind != CS_OP_COMBINE;
        return;
    }
    seconds->host = cs_runtime_kernels_host(&how->kernels, how->device, op, cost, how->precision,
                                            cs_net_makes_apart(how));
    if (work->among_experts) {
        work->experts += seconds->host.forward;
        work->experts_seconds += seconds->forward;
    }
    if (op->kind == CS_OP_DISPATCH)
        seconds->waits = work->among_experts = cs_expert_kernels_wait(&how->kernels, op);
    else if (op->kind == CS_OP_COMBINE)
        work->among_experts = false;
}

/* Adds the host's seconds to the operator's seconds, because host and device take turns. */
static void take_turns(cs_piece_seconds *seconds, cs_net_layer *layer)
{
    const cs_host_seconds host = seconds->host;
    seconds->forward += host.forward;
    seconds->backward_input += host.backward_input;
    seconds->backward_weight += host.backward_weight;
    seconds->skipped += host.skipped;
    seconds->host = (cs_host_seconds){0};
    layer->forward += host.forward;
    layer->backward_input += host.backward_input;
    layer->backward_weight += host.backward_weight;
    layer->skipped += host.skipped;
    layer->kernels[CS_KERNELS_FORWARD][CS_KERNEL_WAITING] += host.forward;
    layer->kernels[CS_KERNELS_BACKWARD][CS_KERNEL_WAITING] +=
        host.backward_input + host.backward_weight;
    layer->kernels[CS_KERNELS_SKIPPED][CS_KERNEL_WAITING] += host.skipped;
}

/* Lengthens the forward of a layer by a factor. */
static void lengthen(double by, cs_piece_seconds *seconds, cs_net_layer *layer)
{
    layer->kernels[CS_KERNELS_FORWARD][CS_KERNEL_WAITING] += layer->forward * (by - 1);
    layer->kernels[CS_KERNELS_SKIPPED][CS_KERNEL_WAITING] += layer->skipped * (by - 1);
    layer->forward *= by;
    layer->skipped *= by;
    for (uint32_t p = layer->first; p < layer->end; p++) {
        seconds[p].forward *= by;
        seconds[p].skipped *= by;
    }
}

void cs_host_work_end(const cs_host_work *work, bool takes_turns, bool is_cut,
                      cs_piece_seconds *seconds, cs_net_layer *layer)
{
    const double lost = work->experts - work->experts_seconds;
    for (uint32_t p = layer->first; takes_turns && p < layer->end; p++)
        take_turns(&seconds[p], layer);
    if (!takes_turns && !is_cut && lost > 0 && layer->forward > 0)
        lengthen(1 + lost / layer->forward, seconds, layer);
    for (uint32_t p = layer->first; p < layer->end; p++) {
        layer->host.forward += seconds[p].host.forward;
        layer->host.backward_input += seconds[p].host.backward_input;
        layer->host.backward_weight += seconds[p].host.backward_weight;
        layer->host.skipped += seconds[p].host.skipped;
        layer->waits |= seconds[p].waits;
    }
}
