#include "sim/run/scenario/build.h"

#include "sim/base/file.h"

#include <stdlib.h>
#include <string.h>

void cs_scenario_planned_finish(cs_scenario_planned *planned)
{
    cs_plan_finish(&planned->plan);
    cs_pattern_finish(&planned->pattern);
    *planned = (cs_scenario_planned){0};
}

/* ---- balanced ---- */

/* Makes the only plan with as many stages as layers, without a search. */
static cs_status one_layer_each(uint32_t n_stages, cs_plan *plan, cs_error *error)
{
    uint32_t *cuts = malloc(((size_t)n_stages + 1) * sizeof(*cuts));
    if (!cuts)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s <= n_stages; s++)
        cuts[s] = s;
    cs_status status = cs_plan_pipeline(cuts, n_stages, plan, error);
    free(cuts);
    return status;
}

/* The search stores a double per stage and possible last layer: 2 GiB at most. */
static const double most_entries = 1 << 28;

/* Makes a model of mini-batches whose forward runs per micro-batch and whose backward runs once. */
static cs_status weigh_mini_batch(const cs_model *model, const cs_batch *batch, cs_arena *arena,
                                  cs_model *weighed, cs_error *error)
{
    const uint32_t n_layers = model->n_layers, n = batch->micro_batches;
    cs_layer *layers = cs_arena_alloc(arena, n_layers, sizeof(*layers));
    cs_status status = layers ? CS_OK : cs_error_no_memory(error);
    for (uint32_t l = 0; l < n_layers && status == CS_OK; l++) {
        cs_layer_sum micro, whole;
        status = cs_model_sum(model, l, l + 1, batch->micro_samples, &micro, error);
        if (status == CS_OK)
            status = cs_model_sum(model, l, l + 1, cs_batch_share(batch), &whole, error);
        if (status != CS_OK)
            break;
        layers[l] = (cs_layer){.backward_input = whole.backward_input,
                               .backward_weight = whole.backward_weight,
                               .output_bytes = whole.output_bytes};
        if (!cs_time_mul(micro.forward, n, &layers[l].forward))
            status = cs_error_add(error, CS_OVERFLOW,
                                  "%u forwards of layer %u take 2^63 ps or more", n, l);
    }
    *weighed = *model;
    weighed->layers = layers;
    return status;
}

static cs_status balance(const cs_sections *sections, const cs_job *job, const cs_mesh *mesh,
                         const cs_batch *batch, cs_arena *arena, cs_plan *plan, cs_error *error)
{
    const cs_schedule_section *schedule = &sections->schedule;
    const cs_json_place platform = {.up = &sections->root, .key = "platform"};
    const cs_json_place devices = {.up = &platform, .key = "devices"};
    const uint32_t n_layers = job->model->n_layers;
    double *speeds;
    CS_TRY(cs_scenario_stage_speeds(mesh, job, arena, &speeds, error));
    cs_model model = *job->model;
    if (cs_schedule_takes_whole(schedule) && cs_model_knows(&model, cs_batch_share(batch)))
        CS_TRY(weigh_mini_batch(job->model, batch, arena, &model, error));
    const cs_balance balance = {.model = &model,
                                .n_stages = mesh->n_stages,
                                .speeds = speeds,
                                .communication = schedule->partition_communication,
                                .bandwidth = job->bandwidth,
                                .latency = job->latency};
    if (balance.n_stages == n_layers)
        return one_layer_each(balance.n_stages, plan, error);
    if (balance.n_stages < n_layers) {
        const double layers = n_layers, stages = balance.n_stages;
        cs_json_place section = {.up = &sections->root, .key = "schedule"};
        cs_json_place place = {.up = &section, .key = "partition"};
        if (stages * (layers - stages + 1) > most_entries) {
            return cs_json_invalid(
                &place, error,
                "balancing %u layers over %u stages takes too much memory; give the "
                "cuts as a list or a plan",
                n_layers, balance.n_stages);
        }
        return cs_plan_balanced(&balance, plan, error);
    }
    (void)cs_json_invalid(
        &devices, error,
        "must be at most %u, the number of layers of \"%s\", for a pipeline with a "
        "stage on each (got %u)",
        n_layers, model.name, balance.n_stages);
    for (uint32_t n = n_layers, i = 0; n > 0 && i < 16; n--, i++)
        cs_error_propose(error, i == 0, "/platform/devices", "%u", n);
    return CS_INVALID;
}

/* ---- from a document ---- */

/* Reads a plan, and its pattern if present. */
static cs_status read_planned(const cJSON *root, const cs_json_place *place, const cs_model *model,
                              cs_scenario_planned *planned, cs_error *error)
{
    CS_TRY(cs_plan_read(root, place, model, &planned->plan, error));
    return cs_pattern_read(root, place, &planned->plan, &planned->pattern, error);
}

static cs_status load_plan(const char *from, const char *file, const cs_json_place *partition,
                           const cs_model *model, cs_scenario_planned *planned, cs_error *error)
{
    cs_json_place place = {.up = partition, .key = "file"};
    cs_error why;
    char *path = cs_file_relative(from, file);
    if (!path)
        return cs_error_no_memory(error);
    cJSON *root;
    cs_error_init(&why);
    cs_status status = cs_json_load(path, &root, &why);
    if (status == CS_OK) {
        cs_json_place plan = {.file = path};
        status = read_planned(root, &plan, model, planned, &why);
        cJSON_Delete(root);
    }
    free(path);
    return status == CS_OK ? CS_OK : cs_json_pass_on(&place, &why, error);
}

/* ---- checks ---- */

/* Marks the devices of a stage, which must be on the platform and unused so far. */
static cs_status take_devices(const cs_schedule *kind, const cs_plan *plan, uint32_t s,
                              uint32_t n_devices, bool *taken, const cs_json_place *place,
                              cs_error *error)
{
    const cs_stage *stage = &plan->stages[s];
    for (uint32_t i = 0; i < stage->n_devices; i++) {
        uint32_t device = plan->devices[stage->first_device + i];
        if (device >= n_devices)
            return cs_json_invalid(place, error, "must put stage %u on devices below %u (got %u)",
                                   s, n_devices, device);
        if (taken[device])
            return cs_json_invalid(place, error,
                                   "must name each device once (stage %u has device %u, which was "
                                   "named before)",
                                   s, device);
        taken[device] = true;
    }
    if (stage->n_devices == 1 || kind->mesh.replicas)
        return CS_OK;
    return cs_json_invalid(place, error,
                           "must put stage %u on one device for the schedule \"%s\", which has no "
                           "replicas (got %u)",
                           s, kind->name, stage->n_devices);
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Reports the number of stages and of devices. */
static cs_status refuse_count(const cs_schedule *kind, const cs_plan *plan, uint32_t n_devices,
                              const cs_json_place *place, cs_arena *arena, cs_error *error)
{
    uint32_t n = plan->n_devices, distinct = n > 0;
    uint32_t *sorted = cs_arena_alloc(arena, n, sizeof(*sorted));
    if (!sorted)
        return cs_error_no_memory(error);
    memcpy(sorted, plan->devices, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_numbers);
    for (uint32_t i = 1; i < n; i++)
        distinct += sorted[i] != sorted[i - 1];
    return cs_json_invalid(
        place, error,
        "must give each of the platform's %u devices one stage for the schedule \"%s\" "
        "(got %u stages on %u devices%s)",
        n_devices, kind->name, plan->n_stages, distinct,
        distinct < n ? "; with several on a device, only \"periodic\" runs them" : "");
}

/* Checks that every device has exactly one stage, and that stages have devices of their own. */
static cs_status check_plan(const cs_schedule *kind, const cs_plan *plan, uint32_t n_devices,
                            const cs_json_place *place, cs_arena *arena, cs_error *error)
{
    bool *taken = cs_arena_alloc(arena, n_devices, sizeof(*taken));
    if (!taken)
        return cs_error_no_memory(error);
    if (plan->n_devices != n_devices)
        return refuse_count(kind, plan, n_devices, place, arena, error);
    cs_status status = CS_OK;
    for (uint32_t s = 0; s < plan->n_stages && status == CS_OK; s++)
        status = take_devices(kind, plan, s, n_devices, taken, place, error);
    return status;
}

/* ---- putting it together ---- */

static cs_status make_partitioned(const cs_sections *sections, const cs_job *job,
                                  const cs_mesh *mesh, const cs_batch *batch,
                                  const cs_progress *progress, cs_arena *arena,
                                  cs_scenario_planned *planned, cs_error *error)
{
    const cs_partition *partition = &sections->schedule.partition;
    const cs_json_place section = {.up = &sections->root, .key = "schedule"};
    const cs_json_place place = {.up = &section, .key = "partition"};
    const cs_json_place in_place = {.up = &place, .key = "inline"};
    switch (partition->kind) {
    case CS_PARTITION_CUTS:
        return cs_plan_read_cuts(partition->cuts, &place, job->model, &planned->plan, error);
    case CS_PARTITION_PLANNER:
        return cs_scenario_plan_by_planner(sections, job, progress, planned, error);
    case CS_PARTITION_FILE:
        return load_plan(sections->root.file, partition->file, &place, job->model, planned, error);
    case CS_PARTITION_INLINE:
        return read_planned(partition->in_place, &in_place, job->model, planned, error);
    case CS_PARTITION_BALANCED:
    case CS_PARTITION_NONE:
        break;
    }
    return balance(sections, job, mesh, batch, arena, &planned->plan, error);
}

/* Places the stages, and checks that the schedule can run them. */
static cs_status settle_devices(const cs_sections *sections, const cs_job *job, const cs_mesh *mesh,
                                cs_arena *arena, cs_scenario_planned *planned, cs_error *error)
{
    const cs_schedule_section *schedule = &sections->schedule;
    const cs_json_place section = {.up = &sections->root, .key = "schedule"};
    const cs_json_place place = {.up = &section, .key = "partition"};
    const cs_partition_kind kind = schedule->partition.kind;
    const bool given = kind == CS_PARTITION_FILE || kind == CS_PARTITION_INLINE;
    if (mesh->placed)
        return cs_scenario_place(mesh, given, &place, &planned->plan, error);
    if (!mesh->planned)
        return check_plan(schedule->kind, &planned->plan, job->n_devices, &place, arena, error);
    /* Check that every stage is on one device of the platform. */
    for (uint32_t s = 0; s < planned->plan.n_stages; s++) {
        if (planned->plan.stages[s].n_devices != 1 ||
            cs_plan_device(&planned->plan, s) >= job->n_devices)
            return cs_json_invalid(&place, error, "must put stage %u on one device below %u", s,
                                   job->n_devices);
    }
    return cs_scenario_find_pattern(sections, job, arena, &planned->plan, &planned->pattern, error);
}

/* Puts all layers on each device of the mesh, in order of its places. */
static cs_status plan_one_stage(const cs_sections *sections, const cs_job *job, const cs_mesh *mesh,
                                cs_plan *plan, cs_error *error)
{
    const cs_json_place place = {.up = &sections->root, .key = "parallel"};
    const uint32_t n = mesh->grid ? mesh->n_devices : mesh->n_replicas;
    cs_plan made = {0};
    CS_TRY(cs_plan_replicated(job->model->n_layers, n, &made, error));
    const cs_status status =
        mesh->placed ? cs_scenario_place(mesh, false, &place, &made, error) : CS_OK;
    if (status == CS_OK)
        *plan = made;
    else
        cs_plan_finish(&made);
    return status;
}

cs_status cs_scenario_plan(const cs_sections *sections, const cs_job *unplanned,
                           const cs_mesh *mesh, const cs_batch *batch, const cs_progress *progress,
                           cs_arena *arena, cs_scenario_planned *planned, cs_error *error)
{
    const cs_schedule *kind = sections->schedule.kind;
    cs_scenario_planned made = {0};
    if (!cs_mesh_has_stages(kind))
        return plan_one_stage(sections, unplanned, mesh, &planned->plan, error);
    if (mesh->placed)
        CS_TRY(cs_scenario_check_placed(sections, unplanned, mesh, error));
    cs_status status =
        make_partitioned(sections, unplanned, mesh, batch, progress, arena, &made, error);
    if (status == CS_OK)
        status = settle_devices(sections, unplanned, mesh, arena, &made, error);
    if (status == CS_OK)
        *planned = made;
    else
        cs_scenario_planned_finish(&made);
    return status;
}
