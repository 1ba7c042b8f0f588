#include "schedules/order-1f1b.h"

const char *const cs_order_1f1b_replica_names[] = {"round_robin", "all_reduce", NULL};

cs_replicas cs_order_1f1b_replicas(uint32_t choice)
{
    static const cs_replicas replicas[] = {CS_REPLICAS_ROUND_ROBIN, CS_REPLICAS_ALL_REDUCE};
    return replicas[choice];
}

/* Returns the number of devices that take a stage's micro-batches in turn. */
static uint32_t in_turn(const cs_job *job, uint32_t stage)
{
    return job->replicas == CS_REPLICAS_ROUND_ROBIN ? job->plan->stages[stage].n_devices : 1;
}

/* Returns the number of micro-batches in flight on a replica if there are enough of them. */
static uint32_t depth(const cs_job *job, uint32_t stage, bool eager)
{
    const cs_plan *plan = job->plan;
    uint32_t replicas = in_turn(job, stage), later = plan->n_stages - stage;
    if (job->replicas == CS_REPLICAS_ROUND_ROBIN)
        later = plan->n_devices - plan->stages[stage].first_device;
    if (eager)
        later = 2 * later - 1;
    return (later + replicas - 1) / replicas;
}

uint32_t cs_order_1f1b_in_flight(const cs_job *job, uint32_t n_micros, bool eager, uint32_t stage,
                                 uint32_t replica)
{
    uint32_t replicas = in_turn(job, stage), most = depth(job, stage, eager),
             first = replica % replicas;
    uint32_t own = n_micros > first ? (n_micros - first - 1) / replicas + 1 : 0;
    return most < own ? most : own;
}

static bool order(const cs_pipeline_shape *shape, bool eager, uint32_t stage, uint32_t k,
                  cs_pipeline_step *step)
{
    uint64_t all = (uint64_t)depth(shape->job, stage, eager) * in_turn(shape->job, stage);
    uint32_t n = shape->n_micros, first = all < n ? (uint32_t)all : n;
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

bool cs_order_1f1b(const cs_pipeline_shape *shape, uint32_t stage, uint32_t k,
                   cs_pipeline_step *step)
{
    return order(shape, false, stage, k, step);
}

bool cs_order_1f1b_eager(const cs_pipeline_shape *shape, uint32_t stage, uint32_t k,
                         cs_pipeline_step *step)
{
    return order(shape, true, stage, k, step);
}
