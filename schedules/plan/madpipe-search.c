#include "schedules/plan/madpipe-dp.h"
#include "sim/base/vector.h"

#include <stdlib.h>

static bool same_plan(const cs_plan *a, const cs_plan *b)
{
    if (a->n_stages != b->n_stages)
        return false;
    for (uint32_t s = 0; s < a->n_stages; s++)
        if (a->stages[s].end_layer != b->stages[s].end_layer || a->devices[s] != b->devices[s])
            return false;
    return true;
}

/* Adds the allocation. If it is known already, keeps the smaller promised period. */
static bool add(cs_madpipe_allocations *found, cs_madpipe_allocation *one)
{
    for (uint32_t i = 0; i < found->n; i++) {
        cs_madpipe_allocation *known = &found->all[i];
        if (!same_plan(&known->plan, &one->plan))
            continue;
        if (one->promised < known->promised) {
            known->promised = one->promised;
            known->target = one->target;
        }
        cs_madpipe_allocation_finish(one);
        return true;
    }
    if (!cs_vector_reserve((void **)&found->all, &found->capacity, found->n + UINT64_C(1),
                           sizeof(*found->all)))
        return false;
    found->all[found->n++] = *one;
    return true;
}

/* Sets `promised` to CS_TIME_MAX if there is no allocation. */
static cs_status try_target(const cs_chain *chain, const cs_madpipe_options *options,
                            cs_time target, cs_madpipe_allocations *found, cs_time *promised,
                            cs_error *error)
{
    cs_madpipe_allocation one = {0};
    CS_TRY(cs_chain_step(chain, "madpipe", found->n_targets++,
                         (uint64_t)options->iterations + options->scan, error));
    CS_TRY(cs_madpipe_dp(chain, options, target, &one, &found->work, error));
    *promised = one.plan.n_stages > 0 ? one.promised : CS_TIME_MAX;
    if (one.plan.n_stages == 0 || add(found, &one))
        return CS_OK;
    cs_madpipe_allocation_finish(&one);
    return cs_error_no_memory(error);
}

/* Bisects the targets [low, *high). After a target that promises p, the targets below p remain and,
 * if p exceeds the target, the targets above it. Sets *high to the smallest promised period. */
static cs_status bisect(const cs_chain *chain, const cs_madpipe_options *options, cs_time low,
                        cs_time *high, cs_madpipe_allocations *found, cs_error *error)
{
    cs_time target = low;
    for (uint32_t i = 0; i < options->iterations && low < *high; i++) {
        cs_time promised;
        CS_TRY(try_target(chain, options, target, found, &promised, error));
        if (promised > target)
            low = target + 1;
        *high = promised < *high ? promised : *high;
        target = low + (*high - low) / 2;
    }
    return CS_OK;
}

static cs_status scan(const cs_chain *chain, const cs_madpipe_options *options, cs_time low,
                      cs_time high, cs_madpipe_allocations *found, cs_error *error)
{
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < options->scan && status == CS_OK; i++) {
        cs_time promised, step = (high - low) / options->scan;
        status = try_target(chain, options, low + i * step + step / 2, found, &promised, error);
    }
    return status;
}

/* Sorts by promised period, then by target. */
static int by_period(const void *a, const void *b)
{
    const cs_madpipe_allocation *one = a, *other = b;
    if (one->promised != other->promised)
        return one->promised < other->promised ? -1 : 1;
    return (one->target > other->target) - (one->target < other->target);
}

void cs_madpipe_allocations_finish(cs_madpipe_allocations *found)
{
    for (uint32_t i = 0; i < found->n; i++)
        cs_madpipe_allocation_finish(&found->all[i]);
    free(found->all);
    *found = (cs_madpipe_allocations){0};
}

cs_status cs_madpipe_allocate(const cs_chain *chain, const cs_madpipe_options *options,
                              cs_madpipe_allocations *found, cs_error *error)
{
    cs_madpipe_allocations made = {0};
    cs_time total, best;
    CS_TRY(cs_madpipe_total(chain, &total, error));
    cs_time load = cs_chain_load(chain, 0, chain->n_layers);
    cs_time low = load / chain->n_devices + (load % chain->n_devices != 0);
    low = low > 0 ? low : 1;
    best = total + 1;
    cs_status status = bisect(chain, options, low, &best, &made, error);
    if (status == CS_OK && made.n == 0)
        status = try_target(chain, options, total, &made, &best, error);
    if (status == CS_OK && best < CS_TIME_MAX)
        status = scan(chain, options, low, best, &made, error);
    if (status != CS_OK) {
        cs_madpipe_allocations_finish(&made);
        return status;
    }
    if (made.n > 1)
        qsort(made.all, made.n, sizeof(*made.all), by_period);
    *found = made;
    return CS_OK;
}
