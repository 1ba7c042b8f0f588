#include "schedules/osdp/osdp-search.h"

__extension__ typedef __int128 wide;

cs_status cs_osdp_find(const cs_osdp_menu *menu, const cs_osdp_search *search, cs_time bound,
                       cs_arena *arena, cs_osdp_plan *plan, cs_error *error)
{
    cs_osdp_plan made = {.choices = cs_arena_alloc(arena, menu->n, sizeof(*made.choices))};
    if (!made.choices)
        return cs_error_no_memory(error);
    CS_TRY(search->depth_first
               ? cs_osdp_search_depth_first(menu, search, bound, &made, error)
               : cs_osdp_search_exactly(menu, search->progress, bound, &made, error));
    if (made.found)
        made.cost = cs_osdp_cost_of(menu, made.choices);
    *plan = made;
    return CS_OK;
}

cs_status cs_osdp_find_at(const cs_osdp_model *model, const cs_osdp_rules *rules, uint32_t batch,
                          const cs_osdp_search *search, cs_arena *arena, cs_osdp_plan *plan,
                          cs_error *error)
{
    cs_osdp_menu menu;
    cs_arena own;
    cs_arena_init(&own);
    cs_status status = cs_osdp_menu_make(model, rules, batch, &own, &menu, error);
    if (status == CS_OK)
        status = cs_osdp_find(&menu, search, CS_TIME_MAX, arena, plan, error);
    if (status == CS_OK)
        plan->batch = batch;
    cs_arena_finish(&own);
    return status;
}

/* ---- batches ---- */

static cs_status fits(const cs_osdp_model *model, const cs_osdp_rules *rules, uint32_t batch,
                      bool *out, cs_error *error)
{
    cs_osdp_menu menu;
    cs_arena own;
    cs_arena_init(&own);
    const cs_status status = cs_osdp_menu_make(model, rules, batch, &own, &menu, error);
    if (status == CS_OK)
        *out = cs_osdp_least_memory(&menu) <= menu.limit + menu.fixed_bytes;
    cs_arena_finish(&own);
    return status;
}

/* Largest batch up to `most` for which a plan fits (memory grows with the batch); 0: none. */
static cs_status largest_batch(const cs_osdp_model *model, const cs_osdp_rules *rules,
                               uint32_t most, uint32_t *batch, cs_error *error)
{
    uint32_t low = 0, high = most;
    while (low < high) {
        const uint32_t middle = low + (high - low + 1) / 2;
        bool fit = false;
        CS_TRY(fits(model, rules, middle, &fit, error));
        if (fit)
            low = middle;
        else
            high = middle - 1;
    }
    *batch = low;
    return CS_OK;
}

/* Time that a step of `batch` samples must stay below to train more samples per second than the
 * plan. */
static cs_time time_to_beat(const cs_osdp_plan *plan, uint32_t batch)
{
    if (!plan->found)
        return CS_TIME_MAX;
    const wide time = ((wide)plan->cost.time * batch + plan->batch - 1) / plan->batch;
    return time < CS_TIME_MAX ? (cs_time)time : CS_TIME_MAX;
}

/* Whether neither this batch nor a smaller one can train more samples per second than the plan.
 * With the fastest options, messages take C and computation takes b gamma, so the time per sample,
 * C/b + gamma, falls with b. Each operator's time is rounded up by less than a picosecond. */
static bool is_hopeless(const cs_osdp_menu *menu, const cs_osdp_plan *plan, uint32_t batch)
{
    wide least = -(wide)menu->n;
    for (uint32_t i = 0; i < menu->n; i++) {
        const cs_osdp_kind *kind = &menu->kinds[menu->kind_of[i]];
        cs_time fastest = CS_TIME_MAX;
        for (uint32_t o = 0; o < kind->n_options; o++)
            fastest = kind->options[o].time < fastest ? kind->options[o].time : fastest;
        least += fastest;
    }
    return plan->found && least * plan->batch >= (wide)plan->cost.time * batch;
}

/* Replaces the best plan by a plan for this batch if that trains more samples per second. Sets
 * `done` if no smaller batch has to be tried. */
static cs_status improve(const cs_osdp_model *model, const cs_osdp_rules *rules, uint32_t batch,
                         const cs_osdp_search *search, cs_arena *arena, cs_osdp_plan *best,
                         bool *done, cs_error *error)
{
    cs_osdp_plan plan = {0};
    cs_osdp_menu menu;
    cs_arena own;
    cs_arena_init(&own);
    cs_status status = cs_osdp_menu_make(model, rules, batch, &own, &menu, error);
    *done = status == CS_OK && is_hopeless(&menu, best, batch);
    if (status == CS_OK && !*done)
        status = cs_osdp_find(&menu, search, time_to_beat(best, batch), arena, &plan, error);
    cs_arena_finish(&own);
    plan.visited += best->visited;
    plan.batch = batch;
    if (plan.found)
        *best = plan;
    best->visited = plan.visited;
    return status;
}

/* Tries batches from the largest down. */
static cs_status find_exactly(const cs_osdp_model *model, const cs_osdp_rules *rules, uint32_t most,
                              const cs_osdp_search *search, cs_arena *arena, cs_osdp_plan *best,
                              cs_error *error)
{
    uint32_t largest;
    bool done = false;
    CS_TRY(largest_batch(model, rules, most, &largest, error));
    for (uint32_t batch = largest; batch > 0 && !done; batch--) {
        if (!cs_progress_step(search->progress, "batches", largest - batch, largest))
            return cs_error_add(error, CS_INTERRUPTED, "the search was interrupted");
        CS_TRY(improve(model, rules, batch, search, arena, best, &done, error));
    }
    best->complete = true;
    return CS_OK;
}

/* Algorithm 1. */
static cs_status find_depth_first(const cs_osdp_model *model, const cs_osdp_rules *rules,
                                  uint32_t most, const cs_osdp_search *search, cs_arena *arena,
                                  cs_osdp_plan *best, cs_error *error)
{
    bool complete = true;
    uint64_t visited = 0;
    for (uint32_t batch = 1; batch <= most; batch++) {
        cs_osdp_plan plan;
        CS_TRY(cs_osdp_find_at(model, rules, batch, search, arena, &plan, error));
        complete &= plan.complete;
        visited += plan.visited;
        if (!plan.found)
            break;
        if (plan.cost.time < time_to_beat(best, batch))
            *best = plan;
    }
    best->complete = complete;
    best->visited = visited;
    return CS_OK;
}

cs_status cs_osdp_find_batch(const cs_osdp_model *model, const cs_osdp_rules *rules, uint32_t most,
                             const cs_osdp_search *search, cs_arena *arena, cs_osdp_plan *plan,
                             cs_error *error)
{
    cs_osdp_plan best = {0};
    CS_TRY(search->depth_first ? find_depth_first(model, rules, most, search, arena, &best, error)
                               : find_exactly(model, rules, most, search, arena, &best, error));
    *plan = best;
    return CS_OK;
}
