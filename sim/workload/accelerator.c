#include "sim/workload/accelerator.h"

#include "sim/base/file.h"
#include "sim/base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEMA_VERSION = 1 };

const char *const cs_accelerator_group_names[] = {"conv", "winograd",    "linear", "attention",
                                                  "norm", "elementwise", "pool",   "embedding",
                                                  "loss", NULL};

/* ---- reading ---- */

typedef struct document {
    uint32_t schema_version;
    const cJSON *peaks, *efficiency, *sources;
} document;

static const cs_field head_fields[] = {
    {"name", CS_FIELD_TEXT, offsetof(cs_accelerator, name), .doc = "what scenarios call it"},
    {"title", CS_FIELD_TEXT, offsetof(cs_accelerator, title), .doc = "vendor, product, form"},
    {"memory", CS_FIELD_BYTES, offsetof(cs_accelerator, memory), .doc = "capacity"},
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(cs_accelerator, bandwidth), .above_min = true,
     .doc = "of its memory, peak"},
    {"launch", CS_FIELD_TIME, offsetof(cs_accelerator, launch), .fallback = "0",
     .doc = "from the start of one kernel to that of the next, when both are empty"},
    {0}};

static const cs_field document_fields[] = {
    {"schema_version", CS_FIELD_COUNT, offsetof(document, schema_version), .min = SCHEMA_VERSION,
     .max = SCHEMA_VERSION, .doc = "version of this format"},
    {"peaks", CS_FIELD_JSON, offsetof(document, peaks),
     .doc = "dense matrix products by precision; what is missing is not supported",
     .shape = "{\"fp32\", \"tf32\", \"fp16\", \"bf16\"}"},
    {"efficiency", CS_FIELD_JSON, offsetof(document, efficiency),
     .doc = "by group of operators: fractions of the peaks, and where they come from",
     .shape = "{group: {\"compute\", \"memory\", \"source\"}}"},
    {"sources", CS_FIELD_JSON, offsetof(document, sources), .doc = "where the peaks come from",
     .shape = "{\"peaks\", \"bandwidth\", \"memory\", \"launch\"}"},
    {0}};

static const cs_field source_fields[] = {
    {"peaks", CS_FIELD_TEXT, offsetof(cs_accelerator, peak_source), .doc = "of the peaks"},
    {"bandwidth", CS_FIELD_TEXT, offsetof(cs_accelerator, bandwidth_source),
     .doc = "of the bandwidth"},
    {"memory", CS_FIELD_TEXT, offsetof(cs_accelerator, memory_source), .doc = "of the capacity"},
    {"launch", CS_FIELD_TEXT, offsetof(cs_accelerator, launch_source), .doc = "of the launch time"},
    {0}};

static const cs_field efficiency_fields[] = {
    {"compute", CS_FIELD_NUMBER, offsetof(cs_efficiency, compute), .above_min = true, .max = 8,
     .doc = "fraction of the peak flop rate that is reached"},
    {"memory", CS_FIELD_NUMBER, offsetof(cs_efficiency, memory), .above_min = true, .max = 1,
     .doc = "fraction of the peak bandwidth that is reached"},
    {"source", CS_FIELD_TEXT, offsetof(cs_efficiency, source),
     .doc = "where they come from: a measurement, or \"assumed\""},
    {0}};

static void note(cs_status *status, cs_status other)
{
    if (*status == CS_OK)
        *status = other;
}

static cs_status read_object(const cJSON *object, const cs_json_place *up, const char *key,
                             const cs_field *table, void *out, cs_arena *arena, cs_error *error)
{
    cs_json_place place = {.up = up, .key = key};
    if (!object)
        return CS_OK; /* was reported as missing */
    return cs_field_read(object, &place, (const cs_field *const[]){table, NULL},
                         (void *const[]){out}, arena, error);
}

static cs_status read_peaks(const cJSON *object, const cs_json_place *up, cs_accelerator *device,
                            cs_error *error)
{
    cs_field table[CS_N_PRECISIONS + 1] = {{0}};
    for (int p = 0; p < CS_N_PRECISIONS; p++)
        table[p] = (cs_field){cs_precision_names[p], CS_FIELD_FLOP_RATE,
                              offsetof(cs_accelerator, peaks) + (size_t)p * sizeof(double),
                              .fallback = "0", .doc = "dense matrix products"};
    table[CS_PRECISION_FP32].fallback = NULL;
    table[CS_PRECISION_FP32].above_min = true;
    return read_object(object, up, "peaks", table, device, &device->arena, error);
}

static cs_status read_efficiencies(const cJSON *object, const cs_json_place *up,
                                   cs_accelerator *device, cs_error *error)
{
    const cJSON *groups[CS_N_ACCELERATOR_GROUPS] = {NULL};
    cs_field table[CS_N_ACCELERATOR_GROUPS + 1] = {{0}};
    cs_json_place place = {.up = up, .key = "efficiency"};
    for (int g = 0; g < CS_N_ACCELERATOR_GROUPS; g++)
        table[g] =
            (cs_field){cs_accelerator_group_names[g], CS_FIELD_JSON, (size_t)g * sizeof(groups[0]),
                       .doc = "of this group", .shape = "{\"compute\", \"memory\", \"source\"}"};
    cs_status status = read_object(object, up, "efficiency", table, groups, &device->arena, error);
    for (int g = 0; g < CS_N_ACCELERATOR_GROUPS; g++)
        note(&status, read_object(groups[g], &place, cs_accelerator_group_names[g],
                                  efficiency_fields, &device->groups[g], &device->arena, error));
    return status;
}

cs_status cs_accelerator_read(const cJSON *root, const cs_json_place *place, cs_accelerator *device,
                              cs_error *error)
{
    cs_accelerator made = {0};
    document parts = {0};
    cs_arena_init(&made.arena);
    cs_status status =
        cs_field_read(root, place, (const cs_field *const[]){head_fields, document_fields, NULL},
                      (void *const[]){&made, &parts}, &made.arena, error);
    note(&status, read_peaks(parts.peaks, place, &made, error));
    note(&status, read_efficiencies(parts.efficiency, place, &made, error));
    note(&status,
         read_object(parts.sources, place, "sources", source_fields, &made, &made.arena, error));
    if (status != CS_OK) {
        cs_accelerator_finish(&made);
        return status;
    }
    *device = made;
    return CS_OK;
}

static cs_status load_file(const char *name, const char *from, cs_accelerator *device,
                           cs_error *error)
{
    cJSON *root;
    char *path = from ? cs_file_relative(from, name) : strdup(name);
    if (!path)
        return cs_error_no_memory(error);
    cs_status status = cs_json_load(path, &root, error);
    if (status == CS_OK) {
        status = cs_accelerator_read(root, &(cs_json_place){.file = path}, device, error);
        cJSON_Delete(root);
    }
    free(path);
    return status;
}

static cs_status load_text(const cs_accelerator_text *text, cs_accelerator *device, cs_error *error)
{
    cJSON *root;
    CS_TRY(cs_json_parse(text->name, text->json, strlen(text->json), &root, error));
    cs_status status =
        cs_accelerator_read(root, &(cs_json_place){.file = text->name}, device, error);
    cJSON_Delete(root);
    return status;
}

cs_status cs_accelerator_load(const char *name, const char *from, cs_accelerator *device,
                              cs_error *error)
{
    static const char extension[] = ".json";
    size_t length = strlen(name), cut = strlen(extension);
    if (length > cut && strcmp(name + length - cut, extension) == 0)
        return load_file(name, from, device, error);
    cs_guess guess;
    cs_guess_init(&guess, name);
    for (const cs_accelerator_text *text = cs_accelerators; text->name; text++) {
        if (strcmp(text->name, name) == 0)
            return load_text(text, device, error);
        cs_guess_add(&guess, text->name);
    }
    return cs_error_add(error, CS_INVALID, "unknown device %s, or a file FILE.json",
                        cs_guess_text(&guess));
}

void cs_accelerator_finish(cs_accelerator *device)
{
    if (!device)
        return;
    cs_arena_finish(&device->arena);
    *device = (cs_accelerator){0};
}

/* ---- times ---- */

void cs_accelerator_none(cs_accelerator *device)
{
    *device = (cs_accelerator){.name = "none", .title = "none", .bandwidth = INFINITY};
    cs_arena_init(&device->arena);
    for (int p = 0; p < CS_N_PRECISIONS; p++)
        device->peaks[p] = INFINITY;
    for (int g = 0; g < CS_N_ACCELERATOR_GROUPS; g++)
        device->groups[g] = (cs_efficiency){1, 1, "none"};
}

cs_status cs_accelerator_check(const cs_accelerator *device, cs_precision precision,
                               cs_error *error)
{
    char known[64] = "";
    if (device->peaks[precision] > 0)
        return CS_OK;
    for (int p = 0; p < CS_N_PRECISIONS; p++) {
        size_t used = strlen(known);
        if (device->peaks[p] > 0)
            snprintf(known + used, sizeof(known) - used, "%s%s", used > 0 ? ", " : "",
                     cs_precision_names[p]);
    }
    return cs_error_add(error, CS_INVALID,
                        "device \"%s\" does not compute in %s: must be one of %s", device->name,
                        cs_precision_names[precision], known);
}

static cs_accelerator_group group_of(const cs_op *op, cs_precision precision)
{
    if (precision == CS_PRECISION_FP32 && cs_op_is_winograd(op))
        return CS_GROUP_WINOGRAD;
    for (int g = 0; g < CS_N_ACCELERATOR_GROUPS; g++)
        if (strcmp(cs_op_kind_group(op->kind), cs_accelerator_group_names[g]) == 0)
            return (cs_accelerator_group)g;
    return CS_GROUP_ELEMENTWISE;
}

double cs_accelerator_seconds(const cs_accelerator *device, const cs_op *op,
                              const cs_pass_cost *pass, cs_precision precision)
{
    cs_accelerator_group group = group_of(op, precision);
    const cs_efficiency *reached = &device->groups[group];
    double peak = device->peaks[group <= CS_GROUP_ATTENTION ? precision : CS_PRECISION_FP32];
    double computing = pass->flop / (peak * reached->compute);
    double moving = pass->bytes / (device->bandwidth * reached->memory);
    return pass->launches * cs_time_seconds(device->launch) + fmax(computing, moving);
}

double cs_accelerator_update_seconds(const cs_accelerator *device, double bytes)
{
    double reached = device->groups[CS_GROUP_ELEMENTWISE].memory;
    return cs_time_seconds(device->launch) + bytes / (device->bandwidth * reached);
}
