#include "sim/scenario/sections.h"

#include <stdlib.h>

static const cs_placement *placement_of(const cs_draft *draft)
{
    return draft->schedule.kind->placement;
}

uint32_t cs_draft_devices_placed(const cs_draft *draft)
{
    return placement_of(draft)->n_devices(draft->schedule.params, draft->scenario->model.n_layers);
}

cs_status cs_draft_check_devices(const cs_draft *draft, cs_error *error)
{
    const cs_scenario *scenario = draft->scenario;
    uint32_t has = scenario->platform.n_devices, needed = cs_draft_devices_placed(draft);
    uint32_t n_stages = cs_draft_stages(draft);
    cs_json_place platform = {.up = &draft->root, .key = "platform"};
    cs_json_place devices = {.up = &platform, .key = "devices"};
    if (n_stages > scenario->model.n_layers)
        return cs_json_invalid(&devices, error,
                               "gives the schedule \"%s\" %u stages, more than the %u layers of "
                               "\"%s\" (got %u)",
                               draft->schedule.kind->name, n_stages, scenario->model.n_layers,
                               scenario->model.name, has);
    if (has == needed || !placement_of(draft)->exactly)
        return CS_OK;
    return cs_json_invalid(&devices, error, "must be %u for the schedule \"%s\" (got %u)", needed,
                           draft->schedule.kind->name, has);
}

uint32_t cs_draft_stages(const cs_draft *draft)
{
    uint32_t n_devices = draft->scenario->platform.n_devices;
    if (draft->schedule.kind->layout != CS_LAYOUT_PLACED)
        return n_devices;
    return placement_of(draft)->n_stages(draft->schedule.params, n_devices);
}

static double slowest(const cs_job *job, const uint32_t *devices, uint32_t n)
{
    double speed = job->speeds[devices[0]];
    for (uint32_t i = 1; i < n; i++) {
        if (job->speeds[devices[i]] < speed)
            speed = job->speeds[devices[i]];
    }
    return speed;
}

double *cs_draft_stage_speeds(const cs_draft *draft)
{
    cs_scenario *scenario = draft->scenario;
    uint32_t n_stages = cs_draft_stages(draft), n_devices = scenario->platform.n_devices;
    double *speeds = cs_arena_alloc(&scenario->arena, n_stages, sizeof(*speeds));
    uint32_t *devices = cs_arena_alloc(&scenario->arena, n_devices, sizeof(*devices));
    if (!speeds || !devices)
        return NULL;
    bool placed = draft->schedule.kind->layout == CS_LAYOUT_PLACED;
    for (uint32_t s = 0; s < n_stages; s++) {
        uint32_t n = 1;
        devices[0] = s;
        if (placed)
            n = placement_of(draft)->holders(draft->schedule.params, n_devices, s, devices);
        speeds[s] = slowest(&scenario->job, devices, n);
    }
    return speeds;
}

/* Whether a plan from a file has the devices that the schedule wants for a stage. */
static bool agrees(const cs_plan *plan, uint32_t stage, const uint32_t *wanted, uint32_t n)
{
    const cs_stage *has = &plan->stages[stage];
    for (uint32_t i = 0; i < n && has->n_devices == n; i++) {
        if (plan->devices[has->first_device + i] != wanted[i])
            return false;
    }
    return has->n_devices == n;
}

static cs_status place(cs_draft *draft, bool given, const cs_json_place *at, uint32_t *counts,
                       uint32_t *devices, cs_error *error)
{
    cs_plan *plan = &draft->scenario->plan;
    const cs_placement *placement = placement_of(draft);
    uint32_t n_devices = draft->scenario->platform.n_devices, n = 0;
    plan->apart = placement->apart && placement->apart(draft->schedule.params);
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        counts[s] = placement->holders(draft->schedule.params, n_devices, s, devices + n);
        if (given && !agrees(plan, s, devices + n, counts[s]))
            return cs_json_invalid(at, error,
                                   "must put stage %u on the devices on which the schedule \"%s\" "
                                   "has it, %u of them, the first being %u",
                                   s, draft->schedule.kind->name, counts[s], devices[n]);
        n += counts[s];
    }
    return cs_plan_place(plan, counts, devices, error);
}

cs_status cs_draft_place(cs_draft *draft, bool given, const cs_json_place *at, cs_error *error)
{
    uint32_t n_stages = cs_draft_stages(draft);
    if (draft->scenario->plan.n_stages != n_stages)
        return cs_json_invalid(at, error, "must make %u stages for the schedule (got %u)", n_stages,
                               draft->scenario->plan.n_stages);
    uint32_t *counts = calloc((size_t)n_stages + 1, sizeof(*counts));
    uint32_t *devices =
        calloc((size_t)n_stages * draft->scenario->platform.n_devices + 1, sizeof(*devices));
    cs_status status = counts && devices ? place(draft, given, at, counts, devices, error)
                                         : cs_error_no_memory(error);
    free(counts);
    free(devices);
    return status;
}
