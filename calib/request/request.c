#include "calib/request/request.h"

#include <sys/stat.h>

const cs_field cs_request_fields[] = {
    {"output", CS_FIELD_TEXT, offsetof(cs_request, output), .doc = "file that gets the results"},
    {"command", CS_FIELD_TEXT, offsetof(cs_request, command), .fallback = "sim",
     .doc = "what was typed"},
    {"date", CS_FIELD_TEXT, offsetof(cs_request, date), .fallback = "1970-01-01", .doc = "today"},
    {"notes", CS_FIELD_TEXT, offsetof(cs_request, notes), .fallback = "", .doc = "of the user"},
    {"progress", CS_FIELD_BOOL, offsetof(cs_request, progress), .fallback = "false",
     .doc = "standard error is a terminal"},
    {"workload", CS_FIELD_JSON, offsetof(cs_request, workload), .fallback = "",
     .doc = "the network", .shape = "{name, parameters}"},
    {"batches", CS_FIELD_JSON, offsetof(cs_request, batches), .fallback = "",
     .doc = "samples at once", .shape = "[samples, ...]"},
    {"states", CS_FIELD_COUNT, offsetof(cs_request, states), .fallback = "0", .max = 2,
     .doc = "of the optimizer, per parameter"},
    {"share", CS_FIELD_NUMBER, offsetof(cs_request, share), .fallback = "0.02", .min = 0, .max = 1,
     .above_min = true, .doc = "half the width of an interval over its median"},
    {"processes", CS_FIELD_COUNT, offsetof(cs_request, processes), .fallback = "1", .min = 1,
     .max = 1024, .doc = "that measure at once"},
    {"time_limit", CS_FIELD_TIME, offsetof(cs_request, time_limit), .fallback = "10 s",
     .doc = "per batch size, or per message size"},
    {"collectives", CS_FIELD_JSON, offsetof(cs_request, collectives), .fallback = "",
     .doc = "what to measure", .shape = "[name, ...]"},
    {"min_bytes", CS_FIELD_BYTES, offsetof(cs_request, min_bytes), .fallback = "8 B", .min = 1,
     .doc = "shortest message"},
    {"max_bytes", CS_FIELD_BYTES, offsetof(cs_request, max_bytes), .fallback = "0", .max = 0x1p40,
     .doc = "longest message; 0: 1 GiB, or what memory allows"},
    {"scenario", CS_FIELD_TEXT, offsetof(cs_request, scenario), .fallback = "",
     .doc = "what is replayed"},
    {"overrides", CS_FIELD_JSON, offsetof(cs_request, overrides), .fallback = "",
     .doc = "changes to the scenario", .shape = "[[pointer, value], ...]"},
    {"runs", CS_FIELD_COUNT, offsetof(cs_request, runs), .fallback = "1", .min = 1, .max = 1000,
     .doc = "repetitions of the replay"},
    {0},
};

static cs_status read_fields(const char *name, cs_request *request, const cJSON *root,
                             cs_arena *arena, cs_error *error)
{
    cs_json_place place = {.file = name};
    cs_status status =
        cs_field_read(root, &place, (const cs_field *const[]){cs_request_fields, NULL},
                      (void *const[]){request}, arena, error);
    if (!request->notes)
        request->notes = "";
    return status;
}

cs_status cs_request_read(const char *name, const char *text, size_t length, cs_request *request,
                          cJSON **root, cs_arena *arena, cs_error *error)
{
    CS_TRY(cs_json_parse(name, text, length, root, error));
    return read_fields(name, request, *root, arena, error);
}

cs_status cs_request_load(const char *path, cs_request *request, cJSON **root, cs_arena *arena,
                          cs_error *error)
{
    CS_TRY(cs_json_load(path, root, error));
    return read_fields(path, request, *root, arena, error);
}

cs_status cs_request_save(const cs_request *request, const cs_costs *measured, cs_error *error)
{
    cs_costs all;
    cs_costs_init(&all);
    struct stat info;
    cs_status status = CS_OK;
    if (stat(request->output, &info) == 0 && S_ISREG(info.st_mode)) /* a device has nothing yet */
        CS_TRY(cs_costs_load(request->output, &all, error));
    status = cs_costs_merge(&all, measured, error);
    if (status == CS_OK)
        status = cs_costs_save(&all, request->output, error);
    cs_costs_finish(&all);
    return status;
}
