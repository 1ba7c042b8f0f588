#include "sim/run/scenario/figure-origins.h"

#include "sim/base/conventions.h"
#include "sim/model/accelerator.h"
#include "sim/run/scenario/build.h"
#include "sim/run/scenario/runtime-section.h"
#include "topologies/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const cs_origin_names[CS_N_ORIGINS] = {"given", "measured", "assumed", "default"};

const cs_runtime_member cs_runtime_members[] = {
    {"/runtime/release", true},
    {"/runtime/fused", true},
    {"/runtime/separate_products", true},
    {"/runtime/written_out", true},
    {"/runtime/eager_gate", true},
    {"/runtime/eager_rotary", true},
    {"/runtime/flash", true},
    {"/runtime/softmax_multiple", true},
    {"/runtime/loss", true},
    {"/runtime/host", true},
    {"/runtime/host_call", true},
    {"/runtime/host_kernel", true},
    {"/runtime/host_product_backward", true},
    {"/runtime/batch_operators", true},
    {"/runtime/batch_waits", false},
    {"/runtime/message_waits", false},
    {"/runtime/step", false},
    {"/runtime/launch_blocking", true},
    {"/runtime/cuda_graphs", true},
    {"/runtime/expert_loop", true},
    {"/runtime/expert_modules", true},
    {"/runtime/fused_experts", true},
    {"/runtime/current_scaling", true},
    {"/runtime/deterministic", true},
    {"/runtime/eager_ring", true},
    {"/runtime/summed_ring", true},
    {"/runtime/kernels", true},
    {"/runtime/gradient_passes", true},
    {"/runtime/early_stop", true},
    {"/runtime/foreach_optimizer", true},
    {"/runtime/counts_zeros", true},
    {"/model/gradients", true},
    {"/model/main_weights", true},
    {"/model/states", true},
    {"/parallel/bucket", false},
    {"/parallel/reduce", false},
    {"/parallel/prefetch", false},
    {"/parallel/accumulate", false},
    {"/parallel/gather_once", false},
    {"/parallel/shard_copies", false},
    {"/parallel/regather", false},
    {"/parallel/scatter_gather", false},
    {"/parallel/context_method", false},
    {"/platform/blocking", false},
    {"/platform/slowdown", false},
    {"/collectives/reached", false},
    {"/collectives/network_reached", false},
    {"/collectives/network_latency", false},
    {"/collectives/nccl", false},
    {"/collectives/start", false},
    {"/collectives/dispatch", false},
    {"/collectives/tensor_overlap", false},
    {"/memory/allocator", true},
    {"/memory/expandable_segments", true},
    {"/memory/fused", true},
    {"/memory/weight_gradients", true},
    {"/memory/libraries", true},
    {"/memory/routed_weights", true},
    {"/memory/weight_buffer", true},
    {"/memory/whole_weights", true},
    {"/memory/receive_buffers", false},
    {"/memory/stage_results", false},
    {"/memory/attention_buffer", true},
    {"/memory/attention_copy", true},
    {"/memory/keys_copied", true},
    {"/memory/padding_masks", true},
    {"/memory/pass_gradients", true},
    {"/memory/gradient_buckets", true},
    {"/memory/update_copy", false},
    {"/memory/passes_ahead", true},
    {"/memory/loss", true},
    {"/memory/deterministic_multiprocessors", true},
    {"/memory/gather_buffer", true},
    {"/memory/cublas_workspace", true},
    {"/memory/reduce_buffer", true},
    {"/memory/narrow_weights", true},
    {"/memory/narrow_copies", true},
    {"/memory/narrow_inputs", true},
    {NULL, false},
};

/* ---- the document ---- */

enum { N_DESCRIBED = 2 };

/* A scenario whose runtime's conventions are applied. */
typedef struct applying {
    cJSON *root;
    const char *path;              /* path of the scenario file */
    cJSON *described[N_DESCRIBED]; /* descriptions, loaded when a convention first asks */
    bool loaded[N_DESCRIBED];
    cs_origins *origins; /* NULL: not needed */
    cs_arena *arena;
    bool failed; /* memory ran out */
} applying;

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Looks up keys in conditions. "/device/..." refers to the description of the scenario's device,
 * "/machine/..." to the platform of the named machine, or to the scenario's platform if it names
 * none. Descriptions that cannot be loaded have no values; the reader of the section reports the
 * error. */
static const cJSON *value_of(void *context, const char *key, cJSON *made)
{
    static const struct {
        const char *prefix, *name, *part;
        const cs_facts_kind *kind;
    } rows[N_DESCRIBED] = {{"/device", "/model/device", "", &cs_device_kind},
                           {"/machine", "/platform/topology", "/platform", &cs_machine_kind}};
    applying *of = context;
    cs_error ignored;
    (void)made;
    for (size_t i = 0; i < N_DESCRIBED; i++) {
        const size_t length = strlen(rows[i].prefix);
        const char *name = cJSON_GetStringValue(cs_json_at(of->root, rows[i].name));
        char place[256];
        if (!starts(key, rows[i].prefix) || key[length] != '/')
            continue;
        cs_error_init(&ignored);
        if (!of->loaded[i] && name)
            of->failed |= cs_facts_load(rows[i].kind, name, of->path, &of->described[i],
                                        &ignored) == CS_NO_MEMORY;
        of->loaded[i] = true;
        snprintf(place, sizeof(place), "%s%s", rows[i].part, key + length);
        return cs_json_at(of->described[i] || !*rows[i].part ? of->described[i] : of->root, place);
    }
    return cs_json_at(of->root, key);
}

/* Whether the document has the section of a key. "collectives" and "memory" count even if absent:
 * all their keys have defaults. */
static bool has_section(const cJSON *root, const char *key)
{
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(key + 1, "/"), key + 1);
    const cJSON *section = cs_json_member(root, name);
    return cJSON_IsObject(section) ||
           (!section && (starts(key, "/collectives/") || starts(key, "/memory/")));
}

/* ---- origins of members ---- */

enum { MEASURED_ROWS = 3 }; /* rows after the members */

const cs_field *cs_runtime_member_field(const char *key)
{
    static const struct {
        const char *section;
        const cs_field *fields;
    } tables[] = {
        {"/runtime/", cs_scenario_runtime_fields},   {"/model/", cs_scenario_model_fields},
        {"/parallel/", cs_scenario_parallel_fields}, {"/platform/", cs_scenario_platform_fields},
        {"/collectives/", cs_lower_fields},          {"/memory/", cs_scenario_memory_fields},
    };
    const cs_runtime_member *m = cs_runtime_members;
    while (m->key && strcmp(m->key, key) != 0)
        m++;
    for (size_t i = 0; m->key && i < sizeof(tables) / sizeof(tables[0]); i++)
        if (starts(key, tables[i].section))
            return cs_field_find(tables[i].fields, key + strlen(tables[i].section));
    return NULL;
}

const char *cs_runtime_member_default(const char *key)
{
    const cs_field *field = cs_runtime_member_field(key);
    return field && field->fallback ? field->fallback : "";
}

static cs_figure_source *find(const cs_origins *origins, const char *key)
{
    for (uint32_t i = 0; origins && i < origins->n; i++)
        if (strcmp(origins->figures[i].key, key) == 0)
            return &origins->figures[i];
    return NULL;
}

/* Lists the members that have an effect in this document, as given or default. */
static cs_status list_members(const cJSON *root, cs_arena *arena, cs_origins *origins,
                              cs_error *error)
{
    const bool network = cs_json_at(root, "/model/name") != NULL;
    uint32_t n = 0;
    while (cs_runtime_members[n].key)
        n++;
    origins->figures = cs_arena_alloc(arena, n + MEASURED_ROWS, sizeof(*origins->figures));
    if (!origins->figures)
        return cs_error_no_memory(error);
    for (const cs_runtime_member *m = cs_runtime_members; m->key; m++) {
        const cJSON *given = cs_json_at(root, m->key);
        if (!given && ((m->network && !network) || !has_section(root, m->key)))
            continue;
        origins->figures[origins->n++] = (cs_figure_source){
            .key = m->key, .origin = given ? CS_ORIGIN_GIVEN : CS_ORIGIN_DEFAULT};
    }
    return CS_OK;
}

/* ---- applying a runtime ---- */

/* Returns the value that a convention sets: its own, or the fact of the device that it refers
 * to. */
static const cJSON *use(void *context, const cJSON *convention, const char *key)
{
    applying *of = context;
    if ((!of->origins && strcmp(key, "/memory/allocator") == 0) || !has_section(of->root, key))
        return NULL;
    const cJSON *value = cs_json_member(convention, "value");
    const char *text = cJSON_GetStringValue(value);
    if (text && *text == '/')
        value = value_of(of, text, NULL);
    cs_figure_source *figure = find(of->origins, key);
    if (figure && value && !cJSON_IsNull(value)) {
        figure->origin = CS_ORIGIN_ASSUMED;
        figure->source =
            cs_arena_copy(of->arena, cJSON_GetStringValue(cs_json_member(convention, "source")));
        of->failed |= !figure->source;
    }
    return value;
}

/* Turns "megatron-core" into {"name": "megatron-core"}, and gives a section without a name the
 * default name. */
static cs_status lengthen(cJSON *root, cs_error *error)
{
    cJSON *section = cJSON_GetObjectItemCaseSensitive(root, "runtime");
    const char *name = cJSON_GetStringValue(section);
    if (cJSON_IsObject(section) && !cs_json_member(section, "name"))
        return cJSON_AddStringToObject(section, "name",
                                       cs_field_find(cs_scenario_runtime_fields, "name")->fallback)
                   ? CS_OK
                   : cs_error_no_memory(error);
    if (!name)
        return CS_OK;
    cJSON *made = cJSON_CreateObject();
    if (!made || !cJSON_AddStringToObject(made, "name", name)) {
        cJSON_Delete(made);
        return cs_error_no_memory(error);
    }
    cs_json_replace(root, section, made);
    return CS_OK;
}

cs_status cs_runtime_assume(cJSON *root, const char *path, const char *list, cs_error *error)
{
    const char *text = cs_facts_text("", "usual-runtime");
    if (cs_json_member(root, "runtime") || cs_json_member(root, "costs") ||
        !cs_json_at(root, "/model/name") || !cs_json_at(root, "/model/device") ||
        cs_json_at(root, "/model/measured"))
        return CS_OK;
    cJSON *usual = cJSON_Parse(text);
    const cs_status status = usual ? cs_conventions_apply(cs_json_member(usual, list), root, NULL,
                                                          NULL, NULL, path, error)
                                   : cs_error_no_memory(error);
    cJSON_Delete(usual);
    return status;
}

cs_status cs_runtime_apply(cJSON *root, const char *path, cs_arena *arena, cs_origins *origins,
                           cs_error *error)
{
    cs_origins made = {0};
    cJSON *runtime;
    if (!cJSON_IsObject(root))
        return CS_OK;
    CS_TRY(cs_runtime_assume(root, path, "scenario", error));
    if (!cs_json_member(root, "runtime"))
        return CS_OK;
    CS_TRY(lengthen(root, error));
    if (!cJSON_IsString(cs_json_at(root, "/runtime/name")))
        return CS_OK; /* the reader of the section reports the error */
    CS_TRY(cs_runtime_load(root, path, &runtime, error));
    cJSON *section = cJSON_GetObjectItemCaseSensitive(root, "runtime");
    if (cJSON_IsTrue(cs_json_member(runtime, "roofline")) && !cs_json_member(section, "roofline") &&
        !cJSON_AddTrueToObject(section, "roofline")) {
        cJSON_Delete(runtime);
        return cs_error_no_memory(error);
    }
    applying of = {.root = root, .path = path, .arena = arena, .origins = origins ? &made : NULL};
    cs_status status = origins ? list_members(root, arena, &made, error) : CS_OK;
    if (status == CS_OK)
        status = cs_conventions_apply(cs_json_member(runtime, "conventions"), root, value_of, use,
                                      &of, path, error);
    cJSON_Delete(runtime);
    for (size_t i = 0; i < N_DESCRIBED; i++)
        cJSON_Delete(of.described[i]);
    CS_TRY(status);
    if (of.failed)
        return cs_error_no_memory(error);
    if (!origins)
        return CS_OK;
    made.runtime = cs_arena_copy(arena, cJSON_GetStringValue(cs_json_at(root, "/runtime/name")));
    made.is_assumed = cJSON_IsTrue(cs_json_at(root, "/runtime/assumed"));
    if (!made.runtime)
        return cs_error_no_memory(error);
    *origins = made;
    /* Note the values that members have got. */
    for (uint32_t i = 0; i < origins->n; i++) {
        cs_figure_source *figure = &origins->figures[i];
        const cJSON *value = cs_json_at(root, figure->key);
        const char *fallback = cs_runtime_member_default(figure->key);
        char *printed = value ? cJSON_PrintUnformatted(value) : NULL;
        if (value && !printed)
            return cs_error_no_memory(error);
        figure->value = cs_arena_copy(arena, printed ? printed : *fallback ? fallback : "none");
        free(printed);
        if (!figure->value)
            return cs_error_no_memory(error);
    }
    return CS_OK;
}

void cs_runtime_counts_as(const cJSON *document, const char *path, char *text, size_t size)
{
    cJSON *runtime = NULL;
    cs_error ignored;
    cs_error_init(&ignored);
    if (cs_runtime_load(document, path, &runtime, &ignored) != CS_OK)
        runtime = NULL;
    const char *group = cJSON_GetStringValue(cs_json_member(runtime, "counts_as"));
    const char *name = cJSON_GetStringValue(cs_json_at(document, "/runtime/name"));
    snprintf(text, size, "%s", group ? group : name ? name : "ideal");
    cJSON_Delete(runtime);
}

/* ---- measurements ---- */

static void add_table(uint32_t n, const char *what, const cs_costs_use *use, cs_arena *arena,
                      cs_origins *origins)
{
    char text[96];
    if (n == 0)
        return;
    snprintf(text, sizeof(text), "%u %s", n, what);
    origins->figures[origins->n++] =
        (cs_figure_source){"/costs", cs_arena_copy(arena, text), CS_ORIGIN_MEASURED, use->files};
}

cs_status cs_origins_add_measured(const cs_sections *sections, const cs_costs *costs,
                                  const cs_costs_use *use, cs_arena *arena, cs_origins *origins,
                                  cs_error *error)
{
    if (!origins->runtime)
        return CS_OK;
    /* Add the source of operator times: cost files, a model file, or else the device's
     * description. */
    cs_figure_source *row = &origins->figures[origins->n];
    char text[96];
    if (sections->model.workload.name) {
        *row = (cs_figure_source){"/model/device", sections->model.workload.device,
                                  CS_ORIGIN_ASSUMED, "data of the device (sim list devices)"};
        if (use->n_measured > 0) {
            snprintf(text, sizeof(text), "%u of %u times of operators", use->n_measured,
                     use->n_measured + use->n_estimated);
            *row = (cs_figure_source){"/costs", cs_arena_copy(arena, text), CS_ORIGIN_MEASURED,
                                      use->files};
        } else if (sections->model.workload.measured) {
            *row = (cs_figure_source){"/model/measured", "times of layers", CS_ORIGIN_MEASURED,
                                      sections->model.workload.measured};
        }
        origins->n += row->value != NULL;
    }
    add_table(costs->n_network, "times of collectives", use, arena, origins);
    add_table(costs->n_bandwidths, "bandwidths of links", use, arena, origins);
    for (uint32_t i = 0; i < origins->n; i++)
        if (!origins->figures[i].value)
            return cs_error_no_memory(error);
    return CS_OK;
}

/* ---- JSON ---- */

/* Adds the value as JSON if it parses, else as a text. */
static bool add_value(cJSON *object, const char *value)
{
    cJSON *parsed = cJSON_Parse(value);
    return cJSON_AddItemToObject(object, "value", parsed ? parsed : cJSON_CreateString(value));
}

cJSON *cs_origins_json(const cs_origins *origins)
{
    cJSON *root = cJSON_CreateObject();
    cJSON *figures = cs_json_add_text(root, "name", origins->runtime) &&
                             cJSON_AddBoolToObject(root, "assumed", origins->is_assumed)
                         ? cJSON_AddArrayToObject(root, "figures")
                         : NULL;
    bool done = figures != NULL;
    for (uint32_t i = 0; done && i < origins->n; i++) {
        const cs_figure_source *figure = &origins->figures[i];
        cJSON *object = cs_json_add_item(figures);
        done = cs_json_add_text(object, "key", figure->key) && add_value(object, figure->value) &&
               cs_json_add_text(object, "is", cs_origin_names[figure->origin]) &&
               cs_json_add_text(object, "source", figure->source);
    }
    if (done)
        return root;
    cJSON_Delete(root);
    return NULL;
}
