#include "sim/scenario/figure-origins.h"

#include "sim/scenario/build.h"
#include "sim/scenario/runtime-section.h"
#include "sim/workload/accelerator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const cs_origin_names[CS_N_ORIGINS] = {"given", "measured", "assumed", "default"};

const cs_runtime_member cs_runtime_members[] = {
    {"/runtime/release", true},
    {"/runtime/fused", true},
    {"/runtime/separate_products", true},
    {"/runtime/written_out", true},
    {"/runtime/flash", true},
    {"/runtime/host", true},
    {"/runtime/host_kernel", true},
    {"/runtime/host_product_backward", true},
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
    {"/parallel/accumulate", false},
    {"/parallel/gather_once", false},
    {"/parallel/shard_copies", false},
    {"/parallel/regather", false},
    {"/parallel/scatter_gather", false},
    {"/platform/blocking", false},
    {"/platform/slowdown", false},
    {"/collectives/reached", false},
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
    {"/memory/receive_buffers", false},
    {"/memory/stage_results", false},
    {"/memory/attention_buffer", true},
    {"/memory/attention_copy", true},
    {"/memory/padding_masks", true},
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

/* A scenario, and the description of its device, which is loaded when a convention first asks. */
typedef struct facts {
    cJSON *root;
    const char *path; /* path of the scenario file */
    cJSON *device;    /* NULL: not loaded, or there is none */
    bool loaded;
} facts;

/* The value that a pointer of two keys or more leads to; NULL where there is none. `section` gets
 * the object on the way. */
static const cJSON *value_at(const cJSON *root, const char *pointer, const cJSON **section)
{
    char first[64];
    const char *second = strchr(pointer + 1, '/');
    snprintf(first, sizeof(first), "%.*s", (int)(second - pointer - 1), pointer + 1);
    *section = cs_json_member(root, first);
    if (!cJSON_IsObject(*section))
        return NULL;
    const cJSON *inner;
    return strchr(second + 1, '/') ? value_at(*section, second, &inner)
                                   : cs_json_member(*section, second + 1);
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* A device that cannot be loaded has no facts: the reader of the model says what is wrong. */
static const cJSON *device_of(facts *of)
{
    const cJSON *section;
    const cJSON *name = value_at(of->root, "/model/device", &section);
    cs_error ignored;
    cs_error_init(&ignored);
    if (!of->loaded && cJSON_IsString(name) &&
        cs_facts_load(&cs_device_kind, name->valuestring, of->path, &of->device, &ignored) != CS_OK)
        of->device = NULL;
    of->loaded = true;
    return of->device;
}

/* "/device/..." is a place in the description of the scenario's device. */
static const cJSON *fact_at(facts *of, const char *pointer)
{
    static const char device[] = "/device";
    const cJSON *section;
    const size_t length = strlen(device);
    if (starts(pointer, device) && pointer[length] == '/')
        return value_at(device_of(of), pointer + length, &section);
    return value_at(of->root, pointer, &section);
}

/* Returns a value in the form that conditions use; "" for lists and objects. */
static void write_value(const cJSON *value, char *text, size_t size)
{
    if (cJSON_IsNumber(value))
        snprintf(text, size, "%.9g", value->valuedouble);
    else
        snprintf(text, size, "%s",
                 cJSON_IsString(value)  ? value->valuestring
                 : cJSON_IsTrue(value)  ? "true"
                 : cJSON_IsFalse(value) ? "false"
                                        : "");
}

/* Whether a text is one of the values of a condition. Values are separated by '|'; a value with a
 * '*' at the end matches every text that begins like it. */
static bool is_value(const char *text, const char *wanted)
{
    const size_t size = strlen(text);
    for (;;) {
        const size_t length = strcspn(wanted, "|");
        const bool open = length > 0 && wanted[length - 1] == '*';
        if (open ? strncmp(text, wanted, length - 1) == 0
                 : size == length && strncmp(text, wanted, length) == 0)
            return true;
        if (wanted[length] == '\0')
            return false;
        wanted += length + 1;
    }
}

/* The order of numbers and releases: 2.10 comes after 2.9, and 2.5.1 after 2.5. */
static int compare_releases(const char *a, const char *b)
{
    while (*a || *b) {
        char *rest_a, *rest_b;
        const unsigned long x = strtoul(a, &rest_a, 10), y = strtoul(b, &rest_b, 10);
        if (x != y)
            return x < y ? -1 : 1;
        a = *rest_a == '.' ? rest_a + 1 : "";
        b = *rest_b == '.' ? rest_b + 1 : "";
    }
    return 0;
}

/* Whether one condition holds (cs_convention, `with`). */
static bool holds_one(facts *of, const char *condition)
{
    char pointer[128], text[64];
    const size_t length = strcspn(condition, "!=<>");
    const char *relation = condition + length;
    snprintf(pointer, sizeof(pointer), "%.*s", (int)length, condition);
    const cJSON *value = fact_at(of, pointer);
    write_value(value, text, sizeof(text));
    if (*relation == '!')
        return !is_value(text, relation + strlen("!="));
    if (!value || *relation == '\0')
        return value != NULL;
    if (*relation == '=')
        return text[0] && is_value(text, relation + 1);
    const bool or_equal = relation[1] == '=';
    const int order = compare_releases(text, relation + 1 + or_equal);
    return text[0] && (order == 0 ? or_equal : (order > 0) == (*relation == '>'));
}

static bool holds(facts *of, const char *conditions)
{
    char one[128];
    bool all = true;
    while (all && *conditions) {
        const size_t length = strcspn(conditions, " ");
        snprintf(one, sizeof(one), "%.*s", (int)length, conditions);
        all = holds_one(of, one);
        conditions += length + strspn(conditions + length, " ");
    }
    return all;
}

/* Whether the document has the section of a key, or may get it: that of collectives and of memory
 * have defaults for all their keys. */
static bool has_section(const char *key, const cJSON *section)
{
    return cJSON_IsObject(section) ||
           (!section && (starts(key, "/collectives/") || starts(key, "/memory/")));
}

/* ---- where a member is from ---- */

enum { MEASURED_ROWS = 3 }; /* behind the members */

const char *cs_runtime_member_default(const char *key)
{
    static const struct {
        const char *section;
        const cs_field *fields;
    } tables[] = {
        {"/runtime/", cs_scenario_runtime_fields},   {"/model/", cs_scenario_model_fields},
        {"/parallel/", cs_scenario_parallel_fields}, {"/platform/", cs_scenario_platform_fields},
        {"/collectives/", cs_lower_fields},          {"/memory/", cs_scenario_memory_fields},
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (!starts(key, tables[i].section))
            continue;
        const cs_field *field = cs_field_find(tables[i].fields, key + strlen(tables[i].section));
        return field && field->fallback ? field->fallback : "";
    }
    return "";
}

static cs_figure_source *find(const cs_origins *origins, const char *key)
{
    for (uint32_t i = 0; origins && i < origins->n; i++)
        if (strcmp(origins->figures[i].key, key) == 0)
            return &origins->figures[i];
    return NULL;
}

/* The members that have an effect in this document, each as given or left to its default. */
static cs_status list_members(const cJSON *root, cs_arena *arena, cs_origins *origins,
                              cs_error *error)
{
    const cJSON *section;
    const bool network = value_at(root, "/model/name", &section) != NULL;
    uint32_t n = 0;
    while (cs_runtime_members[n].key)
        n++;
    origins->figures = cs_arena_alloc(arena, n + MEASURED_ROWS, sizeof(*origins->figures));
    if (!origins->figures)
        return cs_error_no_memory(error);
    for (const cs_runtime_member *m = cs_runtime_members; m->key; m++) {
        const cJSON *given = value_at(root, m->key, &section);
        if (!given && ((m->network && !network) || !has_section(m->key, section)))
            continue;
        origins->figures[origins->n++] = (cs_figure_source){
            .key = m->key, .origin = given ? CS_ORIGIN_GIVEN : CS_ORIGIN_DEFAULT};
    }
    return CS_OK;
}

/* What members have become. */
static cs_status note_values(const cJSON *root, cs_arena *arena, cs_origins *origins,
                             cs_error *error)
{
    const cJSON *section;
    for (uint32_t i = 0; i < origins->n; i++) {
        cs_figure_source *figure = &origins->figures[i];
        const cJSON *value = value_at(root, figure->key, &section);
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

/* ---- applying a bundle ---- */

static cs_status apply(facts *of, const cs_convention *convention, cs_origins *origins,
                       cs_error *error)
{
    const cJSON *section;
    char text[64];
    const bool played = strcmp(convention->key, "/memory/allocator") == 0;
    if ((played && !origins) || value_at(of->root, convention->key, &section) ||
        !has_section(convention->key, section) ||
        (convention->with && !holds(of, convention->with)))
        return CS_OK;
    const char *value = convention->value;
    if (*value == '/') { /* a fact of the device, if its description states it */
        write_value(fact_at(of, value), text, sizeof(text));
        if (!text[0])
            return CS_OK;
        value = text;
    }
    cs_figure_source *figure = find(origins, convention->key);
    if (figure) {
        figure->origin = CS_ORIGIN_ASSUMED;
        figure->source = convention->source;
    }
    return cs_json_set(of->root, convention->key, value, of->path, error);
}

/* "megatron-core" becomes {"name": "megatron-core"}. */
static cs_status lengthen(cJSON *root, cs_error *error)
{
    const char *name = cJSON_GetStringValue(cs_json_member(root, "runtime"));
    if (!name)
        return CS_OK;
    cJSON *made = cJSON_CreateObject();
    if (!made || !cJSON_AddStringToObject(made, "name", name)) {
        cJSON_Delete(made);
        return cs_error_no_memory(error);
    }
    cs_json_replace(root, cJSON_GetObjectItemCaseSensitive(root, "runtime"), made);
    return CS_OK;
}

cs_status cs_runtime_apply(cJSON *root, const char *path, cs_arena *arena, cs_origins *origins,
                           cs_error *error)
{
    cs_origins made = {0};
    if (!cJSON_IsObject(root) || !cs_json_member(root, "runtime"))
        return CS_OK;
    CS_TRY(lengthen(root, error));
    const char *name =
        cJSON_GetStringValue(cs_json_member(cs_json_member(root, "runtime"), "name"));
    uint32_t i = 0;
    while (name && cs_runtime_names[i] && strcmp(cs_runtime_names[i], name) != 0)
        i++;
    if (!name || !cs_runtime_names[i])
        return CS_OK; /* who reads the section says what is wrong */
    made.runtime = cs_runtime_names[i];
    if (origins)
        CS_TRY(list_members(root, arena, &made, error));
    facts of = {.root = root, .path = path};
    cs_status status = CS_OK;
    for (const cs_convention *each = cs_runtime_conventions(i); each->key && status == CS_OK;
         each++)
        status = apply(&of, each, origins ? &made : NULL, error);
    cJSON_Delete(of.device);
    CS_TRY(status);
    if (!origins)
        return CS_OK;
    *origins = made;
    return note_values(root, arena, origins, error);
}

/* ---- what was measured ---- */

/* Times of operators: of the cost files, else by the device's figures. */
static void add_operators(const cs_workload *workload, const cs_costs_use *use, cs_arena *arena,
                          cs_origins *origins)
{
    cs_figure_source *row = &origins->figures[origins->n];
    char text[96];
    if (!workload->name)
        return;
    *row = (cs_figure_source){"/model/device", workload->device, CS_ORIGIN_ASSUMED,
                              "figures of the device (sim list devices)"};
    if (use->n_measured > 0) {
        snprintf(text, sizeof(text), "%u of %u times of operators", use->n_measured,
                 use->n_measured + use->n_estimated);
        *row = (cs_figure_source){"/costs", cs_arena_copy(arena, text), CS_ORIGIN_MEASURED,
                                  use->files};
    } else if (workload->measured) {
        *row = (cs_figure_source){"/model/measured", "times of layers", CS_ORIGIN_MEASURED,
                                  workload->measured};
    }
    origins->n += row->value != NULL;
}

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
    add_operators(&sections->model.workload, use, arena, origins);
    add_table(costs->n_network, "times of collectives", use, arena, origins);
    add_table(costs->n_bandwidths, "bandwidths of links", use, arena, origins);
    for (uint32_t i = 0; i < origins->n; i++)
        if (!origins->figures[i].value)
            return cs_error_no_memory(error);
    return CS_OK;
}

/* ---- JSON ---- */

/* A value as JSON where it is, else as a text. */
static bool add_value(cJSON *object, const char *value)
{
    cJSON *parsed = cJSON_Parse(value);
    return cJSON_AddItemToObject(object, "value", parsed ? parsed : cJSON_CreateString(value));
}

cJSON *cs_origins_json(const cs_origins *origins)
{
    cJSON *root = cJSON_CreateObject();
    cJSON *figures = cs_json_add_text(root, "name", origins->runtime)
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
