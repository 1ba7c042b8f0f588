#include "schedules/order-1f1b.h"

uint32_t cs_order_1f1b_warm_up(uint32_t n_stages, uint32_t n_micros, uint32_t stage)
{
    return n_stages - stage < n_micros ? n_stages - stage : n_micros;
}

bool cs_order_1f1b(const cs_pipeline_shape *shape, uint32_t stage, uint32_t k,
                   cs_pipeline_step *step)
{
    uint32_t n = shape->n_micros, first = cs_order_1f1b_warm_up(shape->n_stages, n, stage);
    uint32_t after = k - first, pairs = n - first;
    if (k < first)
        *step = (cs_pipeline_step){CS_FORWARD, stage, k};
    else if (after >= 2 * pairs)
        *step = (cs_pipeline_step){CS_BACKWARD, stage, after - pairs};
    else if (after % 2 == 0)
        *step = (cs_pipeline_step){CS_BACKWARD, stage, after / 2};
    else
        *step = (cs_pipeline_step){CS_FORWARD, stage, first + after / 2};
    return k < 2 * n;
}
