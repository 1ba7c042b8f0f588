#include "sim/scenario/sections.h"

#include "sim/base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const cs_field cs_scenario_schedule_fields[] = {
    {"kind", CS_FIELD_TEXT, offsetof(cs_schedule_section, kind_name),
     .doc = "one of `sim list schedules`"},
    {"partition", CS_FIELD_JSON, offsetof(cs_schedule_section, partition), .fallback = "",
     .doc = "of a pipeline: how layers are assigned to stages; \"balanced\" when not given; a list "
            "names the first layers of stages 1, 2, ...; a file is what `sim plan` wrote",
     .shape = "\"balanced\", [layer, ...] or {\"file\": name}"},
    {"partition_communication", CS_FIELD_BOOL,
     offsetof(cs_schedule_section, partition_communication), .fallback = "false",
     .doc = "balanced: count the messages between stages as well"},
    {0},
};

static cs_status find_schedule(cs_draft *draft, const cs_json_place *place, cs_error *error)
{
    cs_json_place key = {.up = place, .key = "kind"};
    const cJSON *name = cs_json_member(draft->top.schedule, "kind");
    if (!cJSON_IsObject(draft->top.schedule))
        return cs_json_invalid(place, error, "must be an object (got %s)",
                               cs_json_kind(draft->top.schedule));
    if (!cJSON_IsString(name))
        return cs_json_invalid(&key, error,
                               "must be the name of a schedule (`sim list schedules`)");
    draft->schedule.kind = cs_schedule_find(name->valuestring);
    if (draft->schedule.kind)
        return CS_OK;
    char known[256] = "";
    for (size_t i = 0, used = 0; cs_schedules[i] && used < sizeof(known); i++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
                                 cs_schedules[i]->name);
    return cs_json_invalid(&key, error, "unknown schedule \"%s\"; known: %s", name->valuestring,
                           known);
}

cs_status cs_draft_read_schedule(cs_draft *draft, cs_error *error)
{
    cs_json_place place = {.up = &draft->root, .key = "schedule"};
    cs_arena *arena = &draft->scenario->arena;
    cs_status status = find_schedule(draft, &place, error);
    if (status != CS_OK)
        return status;
    const cs_schedule *kind = draft->schedule.kind;
    draft->schedule.params = cs_arena_alloc(arena, 1, kind->params_size + 1);
    if (!draft->schedule.params)
        return cs_error_no_memory(error);
    status =
        cs_field_read(draft->top.schedule, &place,
                      (const cs_field *const[]){cs_scenario_schedule_fields, kind->fields, NULL},
                      (void *const[]){&draft->schedule, draft->schedule.params}, arena, error);
    if (status == CS_OK && kind->read)
        status = kind->read(draft->schedule.params, &place, arena, error);
    return status;
}

/* ---- the plan ---- */

static cs_status balance(cs_draft *draft, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    double *speeds = cs_draft_stage_speeds(draft);
    if (!speeds)
        return cs_error_no_memory(error);
    cs_balance balance = {.model = &scenario->model,
                          .n_stages = cs_draft_stages(draft),
                          .speeds = speeds,
                          .communication = draft->schedule.partition_communication,
                          .bandwidth = scenario->job.bandwidth,
                          .latency = scenario->job.latency};
    if (balance.n_stages <= scenario->model.n_layers)
        return cs_plan_balanced(&balance, &scenario->plan, error);
    cs_json_place platform = {.up = &draft->root, .key = "platform"};
    cs_json_place devices = {.up = &platform, .key = "devices"};
    return cs_json_invalid(
        &devices, error,
        "must be at most %u, the number of layers of \"%s\", for a pipeline with a "
        "stage on each (got %u)",
        scenario->model.n_layers, scenario->model.name, balance.n_stages);
}

static cs_status load_plan(cs_draft *draft, const cs_json_place *place, cs_error *error)
{
    struct {
        const char *file;
    } section;
    const cs_field table[] = {{"file", CS_FIELD_TEXT, 0, .doc = "a plan that `sim plan` wrote"},
                              {0}};
    cs_status status =
        cs_field_read(draft->schedule.partition, place, (const cs_field *const[]){table, NULL},
                      (void *const[]){&section}, &draft->scenario->arena, error);
    if (status != CS_OK)
        return status;
    char *path = cs_file_relative(draft->path, section.file);
    if (!path)
        return cs_error_no_memory(error);
    cJSON *root;
    status = cs_json_load(path, &root, error);
    if (status == CS_OK) {
        cs_json_place plan = {.file = path};
        status = cs_plan_read(root, &plan, &draft->scenario->model, &draft->scenario->plan, error);
        cJSON_Delete(root);
    }
    free(path);
    return status;
}

/* Every stage has a device of its own, all of them on the platform, and none is replicated. */
static cs_status check_plan(cs_draft *draft, const cs_json_place *place, cs_error *error)
{
    const cs_plan *plan = &draft->scenario->plan;
    uint32_t n_devices = draft->scenario->platform.n_devices;
    if (plan->n_stages != n_devices)
        return cs_json_invalid(
            place, error, "must give each of the platform's %u devices a stage (got %u stages)",
            n_devices, plan->n_stages);
    bool *taken = cs_arena_alloc(&draft->scenario->arena, n_devices, sizeof(*taken));
    if (!taken)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        uint32_t device = plan->devices[plan->stages[s].first_device];
        if (plan->stages[s].n_devices != 1 || device >= n_devices || taken[device])
            return cs_json_invalid(place, error,
                                   "must put stage %u on one device below %u that has no other "
                                   "stage",
                                   s, n_devices);
        taken[device] = true;
    }
    return CS_OK;
}

static cs_status build_pipeline(cs_draft *draft, cs_error *error)
{
    const cJSON *partition = draft->schedule.partition;
    cs_json_place section = {.up = &draft->root, .key = "schedule"};
    cs_json_place place = {.up = &section, .key = "partition"};
    bool placed = draft->schedule.kind->layout == CS_LAYOUT_PLACED;
    cs_status status = placed ? cs_draft_check_devices(draft, error) : CS_OK;
    if (status != CS_OK)
        return status;
    if (cJSON_IsArray(partition))
        status = cs_plan_read_cuts(partition, &place, &draft->scenario->model,
                                   &draft->scenario->plan, error);
    else if (cJSON_IsObject(partition))
        status = load_plan(draft, &place, error);
    else if (!partition ||
             (cJSON_IsString(partition) && strcmp(partition->valuestring, "balanced") == 0))
        status = balance(draft, error);
    else
        return cs_json_invalid(&place, error,
                               "must be \"balanced\", a list of layers or {\"file\": ...} (got %s)",
                               cs_json_kind(partition));
    if (status != CS_OK)
        return status;
    return placed ? cs_draft_place(draft, cJSON_IsObject(partition), &place, error)
                  : check_plan(draft, &place, error);
}

cs_status cs_draft_build_plan(cs_draft *draft, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    cs_layout layout = draft->schedule.kind->layout;
    if (layout == CS_LAYOUT_PIPELINE || layout == CS_LAYOUT_PLACED)
        return build_pipeline(draft, error);
    if (draft->schedule.partition) {
        cs_json_place section = {.up = &draft->root, .key = "schedule"};
        cs_json_place place = {.up = &section, .key = "partition"};
        return cs_json_invalid(&place, error, "goes with pipelines only, not with \"%s\"",
                               draft->schedule.kind->name);
    }
    uint32_t n_devices = layout == CS_LAYOUT_SINGLE ? 1 : scenario->platform.n_devices;
    return cs_plan_replicated(scenario->model.n_layers, n_devices, &scenario->plan, error);
}
