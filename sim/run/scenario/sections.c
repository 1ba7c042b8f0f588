#include "sim/run/scenario/build.h"

#include "sim/base/document-kind.h"

enum { SCHEMA_VERSION = 1 };

const cs_field cs_scenario_fields[] = {
    {"schema_version", CS_FIELD_COUNT, offsetof(cs_top_section, schema_version),
     .min = SCHEMA_VERSION, .max = SCHEMA_VERSION, .doc = "version of the format"},
    {"name", CS_FIELD_TEXT, offsetof(cs_top_section, name), .fallback = "",
     .doc = "name of results and pictures; default: the name of the file without .json"},
    {"model", CS_FIELD_JSON, offsetof(cs_top_section, model), .doc = "the model to train",
     .shape = "an object with one of \"file\", \"inline\", \"name\" and \"uniform\""},
    {"platform", CS_FIELD_JSON, offsetof(cs_top_section, platform), .doc = "devices and links",
     .shape = "an object with \"topology\", or the name of a topology"},
    {"schedule", CS_FIELD_JSON, offsetof(cs_top_section, schedule),
     .doc = "the training schedule, with its parameters", .shape = "an object with \"kind\""},
    {"parallel", CS_FIELD_JSON, offsetof(cs_top_section, parallel), .fallback = "",
     .doc = "how layers, samples and training states are split over devices",
     .shape = "{parallel}"},
    {"runtime", CS_FIELD_JSON, offsetof(cs_top_section, runtime), .fallback = "",
     .doc = "the training framework whose conventions are the defaults of other keys",
     .shape = "{runtime} or its name"},
    {"collectives", CS_FIELD_JSON, offsetof(cs_top_section, collectives), .fallback = "",
     .doc = "how collectives are modelled", .shape = "{collectives}"},
    {"memory", CS_FIELD_JSON, offsetof(cs_top_section, memory), .fallback = "",
     .doc = "memory of a framework and its libraries", .shape = "{memory}"},
    {"offload", CS_FIELD_JSON, offsetof(cs_top_section, offload), .fallback = "",
     .doc = "saved activations that wait in host memory for their backward", .shape = "{offload}"},
    {"costs", CS_FIELD_VARIANT, offsetof(cs_top_section, costs), .fallback = "",
     .size = sizeof(cs_costs_section), .kind = &cs_costs_section_kind,
     .doc = "measured times of operators and collectives (docs/how-to/measured-costs.md)",
     .shape = "file, [file, ...] or {\"inline\": {costs}}"},
    {"iterations", CS_FIELD_COUNT, offsetof(cs_top_section, iterations), .fallback = "1", .min = 1,
     .max = 1 << 20, .doc = "mini-batches to simulate"},
    {"dataset", CS_FIELD_COUNT, offsetof(cs_top_section, dataset), .fallback = "0",
     .doc = "samples in an epoch; the report then has the time of an epoch; 0: not given"},
    {"seed", CS_FIELD_COUNT, offsetof(cs_top_section, seed), .fallback = "1",
     .doc = "seed of all random numbers"},
    {"sweep", CS_FIELD_JSON, offsetof(cs_top_section, sweep), .fallback = "",
     .doc = "what `sim sweep` varies; other commands ignore it", .shape = "{sweep}"},
    {"advise", CS_FIELD_JSON, offsetof(cs_top_section, advise), .fallback = "",
     .doc = "which plans `sim advise` tries; other commands ignore it", .shape = "{advise}"},
    {0},
};

void cs_loaded_finish(cs_loaded *loaded)
{
    cs_costs_finish(&loaded->costs);
    if (!loaded->net_is_known)
        cs_net_finish(&loaded->net);
    cs_model_finish(&loaded->model);
    *loaded = (cs_loaded){0};
}

static cs_status first_of(cs_status first, cs_status later)
{
    return first != CS_OK ? first : later;
}

/* Names the results file, so it must not be empty. */
static cs_status check_name(const cs_top_section *top, const cs_json_place *root, cs_error *error)
{
    const cs_json_place place = {.up = root, .key = "name"};
    if (top->name && *top->name == '\0')
        return cs_json_invalid(&place, error, "must not be empty");
    return CS_OK;
}

static cs_status load_costs(const cs_costs_section *given, const cs_json_place *root,
                            cs_arena *arena, cs_costs *costs, cs_lower_options *collectives,
                            cs_error *error)
{
    CS_TRY(cs_costs_section_load(given, root, costs, error));
    return cs_scenario_measured_collectives(costs, arena, &collectives->measured, error);
}

/* The platform may refer to the costs, so it is read only if these are valid. */
static cs_status read_each(cs_arena *arena, cs_sections *sections, cs_loaded *loaded,
                           cs_error *error)
{
    const cs_json_place *root = &sections->root;
    const cs_top_section *top = &sections->top;
    const cs_costs_section *given = &top->costs;
    const bool readable = !given->given || given->n_files > 0 || given->in_place;
    const cs_json_place collectives = {.up = root, .key = "collectives"};
    const cs_status costs =
        load_costs(given, root, arena, &loaded->costs, &sections->collectives, error);
    cs_status status = costs;
    if (top->runtime)
        status = first_of(
            status, cs_runtime_section_read(top->runtime, root, arena, &sections->runtime, error));
    if (top->model)
        status = first_of(status, cs_model_section_read(top->model, root, given->given, arena,
                                                        &sections->model, loaded, error));
    if (top->platform && costs == CS_OK && readable)
        status = first_of(status, cs_platform_section_read(top->platform, root, &loaded->costs,
                                                           arena, &sections->platform, error));
    if (top->schedule)
        status = first_of(status, cs_schedule_section_read(top->schedule, root, arena,
                                                           &sections->schedule, error));
    if (top->parallel)
        status = first_of(status, cs_parallel_section_read(top->parallel, root, arena,
                                                           &sections->parallel, error));
    status = first_of(status,
                      cs_memory_section_read(top->memory, root, arena, &sections->memory, error));
    sections->model.workload.kept =
        cs_memory_section_rules(&sections->memory, &sections->model.device);
    if (top->offload)
        status = first_of(
            status, cs_offload_section_read(top->offload, root, arena, &sections->offload, error));
    sections->model.workload.tapes = sections->memory.allocator != 0;
    cs_offload_section_rules(&sections->offload, &sections->model.workload);
    return first_of(status, cs_lower_read(top->collectives, &collectives, arena,
                                          &sections->collectives, error));
}

cs_status cs_sections_read(const cJSON *root, const char *path, cs_arena *arena,
                           cs_sections *sections, cs_loaded *loaded, cs_error *warnings,
                           cs_error *error)
{
    *sections = (cs_sections){.root = {.file = path, .warnings = warnings}};
    cs_costs_init(&loaded->costs);
    CS_TRY(cs_document_expect(CS_DOCUMENT_SCENARIO, root, &sections->root, error));
    cs_status status =
        cs_field_read(root, &sections->root, (const cs_field *const[]){cs_scenario_fields, NULL},
                      (void *const[]){&sections->top}, arena, error);
    if (!cJSON_IsObject(root))
        return status;
    cs_top_section *top = &sections->top;
    status = first_of(status, check_name(top, &sections->root, error));
    status = first_of(status, read_each(arena, sections, loaded, error));
    uint32_t n = 0;
    if (status == CS_OK)
        status = cs_scenario_given_devices(sections, &n, error);
    if (status == CS_OK)
        status = cs_platform_section_settle(&sections->platform, &sections->model.device,
                                            &sections->parallel, n, arena, error);
    sections->model.workload.kernels = cs_runtime_section_kernels(&sections->runtime);
    sections->model.workload.early_stop = sections->runtime.early_stop;
    sections->model.workload.kernels.tokens_once = sections->parallel.dispatcher > 0;
    top->model = top->platform = top->schedule = top->parallel = top->collectives = top->memory =
        top->offload = top->runtime = top->advise = top->sweep = NULL;
    return status;
}
