#include "schedules/plan/plan-search.h"

#include <stddef.h>

/* Up to 1 + 5 * 2 + 10 * 5 + 10 * 14 + 5 * 41 + 122 = 528 allocations. */
enum { MOST_LAYERS = 6, MOST_DEVICES = 3 };

typedef struct exhaustive_params {
    cs_time time_limit;
} exhaustive_params;

static const cs_field fields[] = {
    {"time_limit", CS_FIELD_TIME, offsetof(exhaustive_params, time_limit), .fallback = "60 s",
     .doc = "time limit of the integer program, for each allocation; 0: none"},
    {0}};

typedef struct enumeration {
    cs_plan_search *search;
    uint32_t cuts[MOST_LAYERS + 1], devices[MOST_LAYERS];
    cs_error *error;
} enumeration;

/* Assigns `stage` and all later stages to devices; `used` devices have a stage already. Devices are
 * equal, so the next new device is always number `used`. */
static cs_status place(enumeration *e, uint32_t stage, uint32_t n_stages, uint32_t used)
{
    bool better;
    cs_status status = CS_OK;
    if (stage == n_stages)
        return cs_plan_search_try(e->search, &(cs_allocation){n_stages, e->cuts, e->devices},
                                  CS_EFFORT_SOLVE, &better, e->error);
    for (uint32_t d = 0; d <= used && d < e->search->chain->n_devices && status == CS_OK; d++) {
        e->devices[stage] = d;
        status = place(e, stage + 1, n_stages, used + (d == used));
    }
    return status;
}

/* Tries the partition `mask`: bit l - 1 is set if a stage starts at layer l. */
static cs_status cut(enumeration *e, uint32_t mask)
{
    uint32_t n = 1, n_layers = e->search->chain->n_layers;
    for (uint32_t l = 1; l < n_layers; l++) {
        if (mask & (1U << (l - 1)))
            e->cuts[n++] = l;
    }
    e->cuts[n] = n_layers;
    return place(e, 0, n, 0);
}

bool cs_plan_search_has_few(const cs_chain *chain)
{
    return chain->n_layers <= MOST_LAYERS && chain->n_devices <= MOST_DEVICES;
}

cs_status cs_plan_search_try_all(cs_plan_search *search, cs_error *error)
{
    enumeration e = {.search = search, .error = error};
    cs_status status = CS_OK;
    const uint32_t n_masks = 1U << (search->chain->n_layers - 1);
    for (uint32_t mask = 0; mask < n_masks && status == CS_OK; mask++) {
        status = cs_chain_step(search->chain, "all plans", mask, n_masks, error);
        if (status == CS_OK)
            status = cut(&e, mask);
    }
    return status;
}

static cs_status plan_exhaustive(const cs_chain *chain, const void *params, cs_planned *planned,
                                 cs_error *error)
{
    const exhaustive_params *p = params;
    if (!cs_plan_search_has_few(chain))
        return cs_error_add(error, CS_INVALID,
                            "the planner \"exhaustive\" tries everything: at most %d layers on %d "
                            "devices (got %u on %u)",
                            MOST_LAYERS, MOST_DEVICES, chain->n_layers, chain->n_devices);
    cs_plan_search search;
    cs_plan_search_init(&search, chain);
    search.program.time_limit = cs_time_seconds(p->time_limit);
    cs_status status = cs_plan_search_try_all(&search, error);
    search.best.optimal = search.proven;
    if (status == CS_OK)
        status = cs_plan_search_result(&search, planned, error);
    cs_plan_search_finish(&search);
    return status;
}

const cs_planner cs_planner_exhaustive = {
    .name = "exhaustive",
    .summary =
        "all cuts and all assignments to devices, for chains of up to 6 layers on up to 3 devices",
    .source = "MadPipe (HAL hal-03025305), section 4.3, of every allocation",
    .fields = fields,
    .params_size = sizeof(exhaustive_params),
    .plan = plan_exhaustive,
};
