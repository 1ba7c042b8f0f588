#include "sim/run/scenario/sections.h"

#include "sim/base/text.h"

const cs_field cs_scenario_schedule_fields[] = {
    {"kind", CS_FIELD_TEXT, offsetof(cs_schedule_section, kind_name),
     .doc = "one of `sim list schedules`"},
    {"partition", CS_FIELD_VARIANT, offsetof(cs_schedule_section, partition),
     .fallback = "\"balanced\"", .size = sizeof(cs_partition), .kind = &cs_partition_field_kind,
     .doc = "how layers are assigned to pipeline stages: by a planner (`sim list planners`), with "
            "its parameters in an object; by a list of the first layers of stages 1, 2, ...; by a "
            "file that `sim plan` wrote; or by the contents of such a file",
     .shape = "the name of a planner, {\"planner\": name, ...}, [layer, ...], {\"file\": name} or "
              "{\"inline\": {plan}}"},
    {"partition_communication", CS_FIELD_BOOL,
     offsetof(cs_schedule_section, partition_communication), .fallback = "false",
     .doc = "the planner \"balanced\" includes messages between stages"},
    {0},
};

static cs_status find_schedule(const cJSON *section, const cs_json_place *place,
                               const cs_schedule **kind, cs_error *error)
{
    cs_json_place key = {.up = place, .key = "kind"};
    const cJSON *name = cs_json_member(section, "kind");
    char got[CS_JSON_DESCRIBED_BYTES];
    if (!cJSON_IsObject(section))
        return cs_json_invalid(place, error, "must be an object (got %s)",
                               cs_json_describe(section, got, sizeof(got)));
    *kind = cJSON_IsString(name) ? cs_schedule_find(name->valuestring) : NULL;
    if (*kind)
        return CS_OK;
    cs_guess guess;
    cs_guess_init(&guess, cJSON_IsString(name) ? name->valuestring : "");
    for (size_t i = 0; cs_schedules[i]; i++)
        cs_guess_add(&guess, cs_schedules[i]->name);
    if (!name)
        return cs_json_invalid(place, error, "missing key \"kind\": must be one of %s",
                               guess.known);
    if (!cJSON_IsString(name))
        return cs_json_invalid(&key, error, "must be one of %s (got %s)", guess.known,
                               cs_json_describe(name, got, sizeof(got)));
    return cs_json_invalid(&key, error, "unknown schedule %s", cs_guess_text(&guess));
}

/* Refuses partitions that would have no effect, or that contradict the schedule. */
static cs_status check_partition(const cJSON *value, const cs_schedule_section *schedule,
                                 const cs_json_place *section, cs_error *error)
{
    const cs_schedule *kind = schedule->kind;
    const cs_partition *partition = &schedule->partition;
    const bool pipeline = cs_mesh_has_stages(kind);
    const bool planned = partition->kind == CS_PARTITION_PLANNER;
    const cs_json_place place = {.up = section, .key = "partition"};
    const cs_json_place communication = {.up = section, .key = "partition_communication"};
    if (!pipeline && cs_json_member(value, "partition"))
        return cs_json_invalid(&place, error, "requires a pipeline, which \"%s\" is not",
                               kind->name);
    if (planned && kind->mesh.holders)
        return cs_json_invalid(&place, error,
                               "must not name a planner: the schedule \"%s\" chooses the devices "
                               "of each stage",
                               kind->name);
    if (planned && partition->has_rules && kind->chain_rules)
        return cs_json_invalid(&place, error,
                               "must not set \"kept\", \"weight_copies\", \"count_update\" or "
                               "\"count_workspace\": the schedule \"%s\" has rules of its own",
                               kind->name);
    if (schedule->partition_communication &&
        !(pipeline && partition->kind == CS_PARTITION_BALANCED))
        return cs_json_invalid(&communication, error,
                               "requires a pipeline with \"partition\": \"balanced\"");
    return CS_OK;
}

cs_status cs_schedule_section_read(const cJSON *value, const cs_json_place *root, cs_arena *arena,
                                   cs_schedule_section *section, cs_error *error)
{
    const cs_json_place place = {.up = root, .key = "schedule"};
    CS_TRY(find_schedule(value, &place, &section->kind, error));
    const cs_schedule *kind = section->kind;
    section->params = cs_arena_alloc(arena, 1, kind->params_size + 1);
    if (!section->params)
        return cs_error_no_memory(error);
    CS_TRY(cs_field_read(value, &place,
                         (const cs_field *const[]){cs_scenario_schedule_fields, kind->fields, NULL},
                         (void *const[]){section, section->params}, arena, error));
    CS_TRY(kind->read ? kind->read(section->params, &place, arena, error) : CS_OK);
    return check_partition(value, section, &place, error);
}
