#include "schedules/order-1f1b.h"

uint32_t cs_order_1f1b_warm_up(uint32_t n_stages, uint32_t n_micros, uint32_t stage)
{
    return n_stages - stage < n_micros ? n_stages - stage : n_micros;
}

cs_pipeline_step cs_order_1f1b(uint32_t n_stages, uint32_t n_micros, uint32_t stage, uint32_t k)
{
    uint32_t first = cs_order_1f1b_warm_up(n_stages, n_micros, stage);
    if (k < first)
        return (cs_pipeline_step){false, k};
    uint32_t after = k - first, pairs = n_micros - first;
    if (after >= 2 * pairs)
        return (cs_pipeline_step){true, after - pairs};
    if (after % 2 == 0)
        return (cs_pipeline_step){true, after / 2};
    return (cs_pipeline_step){false, first + after / 2};
}
