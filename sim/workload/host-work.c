#include "sim/workload/host-work.h"

#include "sim/workload/expert-kernels.h"

#include <math.h>

void cs_host_work_add(const cs_net_options *how, const cs_op *op, const cs_op_cost *cost,
                      const cs_piece_seconds *seconds, cs_host_work *host)
{
    if (op->kind == CS_OP_DISPATCH)
        host->in_graph = how->kernels.graphs && op->capacity > 0;
    if (host->in_graph) {
        host->in_graph = op->kind != CS_OP_COMBINE;
        return;
    }
    const cs_host_seconds own = cs_runtime_kernels_host(&how->kernels, how->device, op, cost,
                                                        how->precision, cs_net_makes_apart(how));
    host->all.forward += own.forward;
    host->all.backward += own.backward;
    if (host->among_experts) {
        host->experts += own.forward;
        host->experts_seconds += seconds->forward;
    }
    if (op->kind == CS_OP_DISPATCH)
        host->among_experts = cs_expert_kernels_wait(&how->kernels, op);
    else if (op->kind == CS_OP_COMBINE)
        host->among_experts = false;
}

void cs_host_work_add_messages(const cs_net_local *local, const cs_net_options *how,
                               const cs_net_layer *layer, cs_host_seconds *host)
{
    const double each = cs_runtime_kernels_message(&how->kernels, how->device);
    for (uint32_t e = 0; local && e < local->n_exchanges; e++) {
        const cs_op_exchange *exchange = &local->exchanges[e];
        if (exchange->op >= layer->first && exchange->op < layer->end)
            *(exchange->backward ? &host->backward : &host->forward) += each;
    }
}

void cs_host_work_wait(const cs_host_work *work, bool takes_turns, cs_piece_seconds *seconds,
                       cs_net_layer *layer)
{
    const double backward = layer->backward_input + layer->backward_weight;
    const double behind =
        fmax(work->all.forward - layer->forward, work->experts - work->experts_seconds);
    const double lost = takes_turns ? work->all.forward : behind;
    const double slower = work->all.backward / backward + takes_turns;
    const double forward_by = layer->forward > 0 && lost > 0 ? 1 + lost / layer->forward : 1;
    const double backward_by = backward > 0 && slower > 1 ? slower : 1;
    layer->kernels[CS_KERNELS_FORWARD][CS_KERNEL_WAITING] = layer->forward * (forward_by - 1);
    layer->kernels[CS_KERNELS_BACKWARD][CS_KERNEL_WAITING] = backward * (backward_by - 1);
    layer->kernels[CS_KERNELS_SKIPPED][CS_KERNEL_WAITING] = layer->skipped * (forward_by - 1);
    layer->forward *= forward_by;
    layer->skipped *= forward_by;
    layer->backward_input *= backward_by;
    layer->backward_weight *= backward_by;
    for (uint32_t p = layer->first; p < layer->end; p++) {
        seconds[p].forward *= forward_by;
        seconds[p].skipped *= forward_by;
        seconds[p].backward_input *= backward_by;
        seconds[p].backward_weight *= backward_by;
    }
}
