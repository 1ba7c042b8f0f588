#include "sim/scenario/scenario.h"

#include "sim/base/file.h"
#include "sim/scenario/planning.h"
#include "sim/scenario/sections.h"

#include <stdlib.h>
#include <string.h>

enum { SCHEMA_VERSION = 1 };

const cs_field cs_scenario_fields[] = {
    {"schema_version", CS_FIELD_COUNT, offsetof(cs_top_section, schema_version),
     .min = SCHEMA_VERSION, .max = SCHEMA_VERSION, .doc = "version of this format"},
    {"name", CS_FIELD_TEXT, offsetof(cs_top_section, name), .fallback = "",
     .doc = "name of the results and pictures; default: the file's name without .json"},
    {"model", CS_FIELD_JSON, offsetof(cs_top_section, model), .doc = "what is trained",
     .shape = "{model}"},
    {"platform", CS_FIELD_JSON, offsetof(cs_top_section, platform), .doc = "devices and links",
     .shape = "{platform} or the name of a topology"},
    {"schedule", CS_FIELD_JSON, offsetof(cs_top_section, schedule), .doc = "order of the work",
     .shape = "{schedule}"},
    {"collectives", CS_FIELD_JSON, offsetof(cs_top_section, collectives), .fallback = "",
     .doc = "how collectives become messages", .shape = "{collectives}"},
    {"costs", CS_FIELD_JSON, offsetof(cs_top_section, costs), .fallback = "",
     .doc = "measured times of operators and collectives (docs/how-to/measured-costs.md)",
     .shape = "file, [file, ...] or {\"inline\": {costs}}"},
    {"iterations", CS_FIELD_COUNT, offsetof(cs_top_section, iterations), .fallback = "1", .min = 1,
     .max = 1 << 20, .doc = "mini-batches to simulate"},
    {"seed", CS_FIELD_COUNT, offsetof(cs_top_section, seed), .fallback = "1",
     .doc = "seed of the random streams"},
    {"sweep", CS_FIELD_JSON, offsetof(cs_top_section, sweep), .fallback = "",
     .doc = "what `sim sweep` varies; other commands ignore it", .shape = "{sweep}"},
    {0},
};

void cs_scenario_finish(cs_scenario *scenario)
{
    cs_model_finish(&scenario->model);
    cs_net_finish(scenario->net);
    cs_platform_finish(&scenario->platform);
    cs_plan_finish(&scenario->plan);
    cs_pattern_finish(&scenario->pattern);
    cs_arena_finish(&scenario->arena);
    free(scenario->resolved);
    free(scenario->costs.missing);
    *scenario = (cs_scenario){0};
}

/* "folder/vgg16-gpipe.json" -> "vgg16-gpipe" */
static const char *name_of_file(cs_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return cs_arena_copy_length(arena, name,
                                dot && dot != name ? (size_t)(dot - name) : strlen(name));
}

/* A results file is called after it. */
static cs_status check_name(const cs_draft *draft, cs_error *error)
{
    cs_json_place place = {.up = &draft->root, .key = "name"};
    if (draft->top.name && *draft->top.name == '\0')
        return cs_json_invalid(&place, error, "must not be empty");
    return CS_OK;
}

/* All defaults where the section is missing. */
static cs_status read_collectives(cs_draft *draft, cs_error *error)
{
    const cs_json_place place = {.up = &draft->root, .key = "collectives"};
    return cs_lower_read(draft->top.collectives, &place, &draft->scenario->arena,
                         &draft->scenario->collectives, error);
}

/* Reads all sections, whatever is wrong with the others, so that one run reports everything. */
static cs_status read_sections(cs_draft *draft, const cJSON *root, cs_error *error)
{
    cs_status status =
        cs_field_read(root, &draft->root, (const cs_field *const[]){cs_scenario_fields, NULL},
                      (void *const[]){&draft->top}, &draft->scenario->arena, error);
    if (status != CS_OK && !(cJSON_IsObject(root)))
        return status;
    cs_status name = check_name(draft, error);
    status = status == CS_OK ? name : status;
    cs_status costs = cs_draft_read_costs(draft, error);
    status = status == CS_OK ? costs : status;
    if (costs != CS_OK)
        draft->top.platform = NULL; /* cannot be read without the costs */
    cs_status (*const readers[])(cs_draft *, cs_error *) = {
        cs_draft_read_model, cs_draft_read_platform, cs_draft_read_schedule};
    const cJSON *sections[] = {draft->top.model, draft->top.platform, draft->top.schedule};
    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
        cs_status section = sections[i] ? readers[i](draft, error) : CS_OK;
        if (status == CS_OK)
            status = section;
    }
    const cs_status collectives = read_collectives(draft, error);
    return status == CS_OK ? collectives : status;
}

static cs_status build(cs_draft *draft, cs_error *error)
{
    cs_status (*const builders[])(cs_draft *, cs_error *) = {
        cs_draft_count_devices,  cs_draft_build_model,   cs_draft_check_costs,
        cs_draft_build_platform, cs_draft_view_platform, cs_draft_divide_batch,
        cs_draft_build_plan,     cs_draft_build_job};
    enum { ALL = sizeof(builders) / sizeof(builders[0]), UNPLANNED = ALL - 2 };
    for (size_t i = 0; i < (draft->unplanned ? UNPLANNED : ALL); i++) {
        CS_TRY(builders[i](draft, error));
    }
    return CS_OK;
}

static cs_status read_into(cs_draft *draft, const cJSON *root, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    cs_status status = read_sections(draft, root, error);
    if (status == CS_OK)
        status = build(draft, error);
    if (status == CS_OK && draft->unplanned)
        status = cs_draft_price_shares(draft, error);
    if (status != CS_OK)
        return status;
    scenario->name =
        draft->top.name ? draft->top.name : name_of_file(&scenario->arena, draft->path);
    scenario->file = cs_arena_copy(&scenario->arena, draft->path);
    scenario->seed = draft->top.seed;
    scenario->schedule = draft->schedule.kind;
    scenario->params = draft->schedule.params;
    if (!scenario->file)
        return cs_error_no_memory(error);
    scenario->collectives.file = scenario->file;
    cs_draft_warn(draft);
    if (draft->unplanned && scenario->name)
        return CS_OK;
    scenario->resolved = scenario->name ? cs_draft_resolved(draft, error) : NULL;
    return scenario->resolved ? CS_OK : cs_error_or_no_memory(error);
}

/* Of a named model; the draft is left without. */
static cs_status keep_net(cs_draft *draft, cs_error *error)
{
    cs_scenario *scenario = draft->scenario;
    if (!draft->model.workload.name)
        return CS_OK;
    scenario->net = cs_arena_alloc(&scenario->arena, 1, sizeof(*scenario->net));
    if (!scenario->net)
        return cs_error_no_memory(error);
    *scenario->net = draft->model.net;
    draft->model.net = (cs_net){0};
    scenario->granularity = draft->model.workload.granularity;
    return CS_OK;
}

static cs_status read_scenario(const cJSON *root, const char *path, bool unplanned,
                               const cs_progress *progress, cs_scenario *scenario, cs_error *error)
{
    *scenario = (cs_scenario){0};
    cs_arena_init(&scenario->arena);
    cs_draft draft = {.path = path,
                      .root = {.file = path},
                      .unplanned = unplanned,
                      .progress = progress,
                      .scenario = scenario};
    cs_status status = read_into(&draft, root, error);
    if (status == CS_OK)
        status = keep_net(&draft, error);
    cs_net_finish(&draft.model.net);
    cs_costs_finish(&draft.costs);
    if (status != CS_OK)
        cs_scenario_finish(scenario);
    return status;
}

cs_status cs_scenario_read(const cJSON *root, const char *path, cs_scenario *scenario,
                           cs_error *error)
{
    return read_scenario(root, path, false, NULL, scenario, error);
}

cs_status cs_scenario_read_watched(const cJSON *root, const char *path, const cs_progress *progress,
                                   cs_scenario *scenario, cs_error *error)
{
    return read_scenario(root, path, false, progress, scenario, error);
}

cs_status cs_scenario_read_unplanned(const cJSON *root, const char *path, cs_scenario *scenario,
                                     cs_error *error)
{
    return read_scenario(root, path, true, NULL, scenario, error);
}

cs_status cs_scenario_load(const char *path, const cs_override *overrides, size_t n_overrides,
                           cs_scenario *scenario, cs_error *error)
{
    cJSON *root;
    cs_status status = cs_json_load(path, &root, error);
    if (status != CS_OK)
        return status;
    for (size_t i = 0; i < n_overrides && status == CS_OK; i++)
        status = cs_json_set(root, overrides[i].pointer, overrides[i].value, "--set", error);
    if (status == CS_OK)
        status = cs_scenario_read(root, path, scenario, error);
    cJSON_Delete(root);
    return status;
}
