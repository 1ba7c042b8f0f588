/* Schedules that decide which devices hold which stages. */
#include "sim/run/scenario/build.h"

#include <stdlib.h>

static cs_status refuse_stages(const cs_sections *sections, const cs_model *model,
                               const cs_mesh *mesh, cs_error *error)
{
    const cs_json_place up = {.up = &sections->root, .key = mesh->grid ? "parallel" : "platform"};
    const cs_json_place place = {.up = &up, .key = mesh->grid ? "pipeline" : "devices"};
    const uint32_t most = mesh->n_ranks * model->n_layers / mesh->n_stages;
    (void)cs_json_invalid(&place, error,
                          "gives the schedule \"%s\" %u stages, more than the %u layers of \"%s\" "
                          "(got %u)",
                          mesh->schedule->name, mesh->n_stages, model->n_layers, model->name,
                          mesh->n_ranks);
    const char *key = mesh->grid ? "/parallel/pipeline" : "/platform/devices";
    for (uint32_t n = most, i = 0; n > 0 && i < 16; n--, i++)
        cs_error_propose(error, i == 0, key, "%u", n);
    return CS_INVALID;
}

cs_status cs_scenario_check_placed(const cs_sections *sections, const cs_job *job,
                                   const cs_mesh *mesh, cs_error *error)
{
    const cs_model *model = job->model;
    /* Refuse planners on a mesh, whose sizes have been checked. */
    const cs_partition *partition = &sections->schedule.partition;
    const cs_json_place section = {.up = &sections->root, .key = "schedule"};
    const cs_json_place place = {.up = &section, .key = "partition"};
    if (mesh->grid && partition->kind == CS_PARTITION_PLANNER)
        return cs_json_invalid(
            &place, error,
            "must be \"balanced\", a list of layers or a plan with the section "
            "\"parallel\": the planner \"%s\" chooses the devices of stages itself",
            partition->planner->name);
    return mesh->n_stages > model->n_layers ? refuse_stages(sections, model, mesh, error) : CS_OK;
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

cs_status cs_scenario_stage_speeds(const cs_mesh *mesh, const cs_job *job, cs_arena *arena,
                                   double **out, cs_error *error)
{
    double *speeds = cs_arena_alloc(arena, mesh->n_stages, sizeof(*speeds));
    uint32_t *devices = cs_arena_alloc(arena, mesh->n_devices, sizeof(*devices));
    if (!speeds || !devices)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < mesh->n_stages; s++)
        speeds[s] = slowest(job, devices, cs_mesh_holders(mesh, s, devices));
    *out = speeds;
    return CS_OK;
}

/* Whether a plan from a file places a stage where the schedule does. */
static bool agrees(const cs_plan *plan, uint32_t stage, const uint32_t *wanted, uint32_t n)
{
    const cs_stage *has = &plan->stages[stage];
    for (uint32_t i = 0; i < n && has->n_devices == n; i++) {
        if (plan->devices[has->first_device + i] != wanted[i])
            return false;
    }
    return has->n_devices == n;
}

static cs_status place(const cs_mesh *mesh, bool given, const cs_json_place *at, uint32_t *counts,
                       uint32_t *devices, cs_plan *plan, cs_error *error)
{
    plan->apart = mesh->apart;
    plan->grid = mesh->grid;
    uint32_t n = 0;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        counts[s] = cs_mesh_holders(mesh, s, devices + n);
        if (given && !agrees(plan, s, devices + n, counts[s]))
            return cs_json_invalid(at, error,
                                   "must put stage %u where the schedule \"%s\" puts it: on %u "
                                   "devices, the first being %u",
                                   s, mesh->schedule->name, counts[s], devices[n]);
        n += counts[s];
    }
    return cs_plan_place(plan, counts, devices, error);
}

cs_status cs_scenario_place(const cs_mesh *mesh, bool given, const cs_json_place *at, cs_plan *plan,
                            cs_error *error)
{
    const uint32_t n_stages = mesh->n_stages;
    if (plan->n_stages != n_stages)
        return cs_json_invalid(at, error, "must make %u stages for the schedule (got %u)", n_stages,
                               plan->n_stages);
    uint32_t *counts = calloc((size_t)n_stages + 1, sizeof(*counts));
    const uint32_t most = mesh->grid ? mesh->n_places : mesh->n_devices;
    uint32_t *devices = calloc((size_t)n_stages * most + 1, sizeof(*devices));
    cs_status status = counts && devices ? place(mesh, given, at, counts, devices, plan, error)
                                         : cs_error_no_memory(error);
    free(counts);
    free(devices);
    return status;
}
