#include "sim/study/advise/promise.h"

#include "topologies/route.h"

#include <math.h>

/* Finds the bandwidth, in bytes/s, of a ring over the places that share weights; infinite if only
 * one place has them. */
static cs_status rate_of(const cs_candidate *c, const cs_platform *platform, double *rate,
                         cs_error *error)
{
    const uint32_t group = c->layer * c->space * c->context;
    const uint32_t stride = c->inner == CS_ORDER_PIPELINE ? group * c->pipeline : group;
    const uint32_t last = (c->data - 1) * stride + group - c->layer;
    cs_route route;
    *rate = INFINITY;
    if (!platform || last == 0)
        return CS_OK;
    CS_TRY(cs_route_find(platform, 0, last, NULL, &route, error));
    /* in each node, every place of the group has its own link out of the node */
    const uint32_t node = platform->node_devices, apart = c->data > 1 ? stride : c->layer;
    *rate = route.bandwidth * (last >= node && apart < node ? node / apart : 1);
    return CS_OK;
}

cs_status cs_promise_make(const cs_advise_base *base, const cs_candidate *c,
                          const cs_pass_order *order, const cs_priced *like,
                          const cs_platform *platform, cs_promise *promise, cs_error *error)
{
    const double ranks = c->pipeline, n = c->micro_batches;
    cs_stage_price all = {0};
    for (uint32_t s = 0; s < like->n_stages; s++) {
        const cs_stage_price *stage = &like->stages[s];
        all.forward += stage->forward;
        all.backward += stage->backward;
        all.dense += stage->dense;
        all.expert += stage->expert;
        all.gradients += stage->gradients;
        all.frozen += stage->frozen;
        all.cast += stage->cast;
        all.kept += stage->kept;
    }

    double rate;
    CS_TRY(rate_of(c, platform, &rate, error));
    /* time of a micro-batch on the slowest rank, because ranks have whole layers */
    const double layers = (double)base->n_layers / order->n_stages;
    const double pass = (all.forward + all.backward) / ranks * ceil(layers) / layers;
    const double gradients = all.gradients / ranks / rate, weights = all.dense / ranks / rate;
    const double last = gradients + weights, each = c->zero == 3 ? 2 * weights : 0;
    promise->time = order->length / c->chunks * pass;
    promise->time = c->zero >= 2 ? fmax(promise->time, n * (gradients + each))
                                 : promise->time + fmax(0, last - pass);

    double most = 0;
    for (uint32_t r = 0; r < c->pipeline; r++) {
        double held = 0;
        for (uint32_t k = 0; k < c->chunks; k++)
            held += order->in_flight[cs_pass_stage(c, order, r, k)];
        most = fmax(most, held);
    }
    promise->memory = cs_resting(base, c, like, &all) / ranks + most * all.kept / order->n_stages;
    return CS_OK;
}
