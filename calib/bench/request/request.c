#include "calib/bench/request/request.h"

#include "calib/costs.h"

static const cs_field batch_field = {"samples", CS_FIELD_COUNT, .min = 1, .max = CS_BATCH_MAX};

static const cs_field collective_field = {"collective", CS_FIELD_CHOICE,
                                          .choices = cs_cost_collective_names};

static const cs_field override_fields[] = {
    {"pointer", CS_FIELD_TEXT, offsetof(cs_request_override, pointer), .doc = "what is changed"},
    {"value", CS_FIELD_TEXT, offsetof(cs_request_override, value), .doc = "as it was typed"},
    {0},
};

static const cs_field override_field = {"override", CS_FIELD_OBJECT, .of = override_fields,
                                        .size = sizeof(cs_request_override)};

static const cs_field fields[] = {
    {"output", CS_FIELD_TEXT, offsetof(cs_request, output), .doc = "file that gets the results"},
    {"command", CS_FIELD_TEXT, offsetof(cs_request, command), .fallback = "sim",
     .doc = "what was typed"},
    {"date", CS_FIELD_TEXT, offsetof(cs_request, date), .fallback = "1970-01-01", .doc = "today"},
    {"notes", CS_FIELD_TEXT, offsetof(cs_request, notes), .fallback = "", .doc = "of the user"},
    {"progress", CS_FIELD_BOOL, offsetof(cs_request, progress), .fallback = "false",
     .doc = "standard error is a terminal"},
    {"workload", CS_FIELD_OBJECT, offsetof(cs_request, workload), .fallback = "",
     .of = cs_workload_fields, .size = sizeof(cs_workload), .doc = "the network"},
    {"batches", CS_FIELD_LIST, offsetof(cs_request, batches), .fallback = "", .of = &batch_field,
     .doc = "samples at once"},
    {"states", CS_FIELD_COUNT, offsetof(cs_request, states), .fallback = "0", .max = 2,
     .doc = "of the optimizer, per parameter"},
    {"share", CS_FIELD_NUMBER, offsetof(cs_request, share), .fallback = "0.02", .min = 0, .max = 1,
     .above_min = true, .doc = "half the width of an interval over its median"},
    {"processes", CS_FIELD_COUNT, offsetof(cs_request, processes), .fallback = "1", .min = 1,
     .max = CS_REQUEST_PROCESSES_MAX, .doc = "that measure at once"},
    {"time_limit", CS_FIELD_TIME, offsetof(cs_request, time_limit), .fallback = "10 s",
     .doc = "per batch size, or per message size"},
    {"collectives", CS_FIELD_LIST, offsetof(cs_request, collectives), .fallback = "",
     .of = &collective_field, .doc = "what to measure; all when left out"},
    {"min_bytes", CS_FIELD_BYTES, offsetof(cs_request, min_bytes), .fallback = "8 B", .min = 1,
     .doc = "shortest message"},
    {"max_bytes", CS_FIELD_BYTES, offsetof(cs_request, max_bytes), .fallback = "0", .max = 0x1p40,
     .doc = "longest message; 0: 1 GiB, or what memory allows"},
    {"scenario", CS_FIELD_TEXT, offsetof(cs_request, scenario), .fallback = "",
     .doc = "what is replayed"},
    {"overrides", CS_FIELD_LIST, offsetof(cs_request, overrides), .fallback = "",
     .of = &override_field, .doc = "changes to the scenario"},
    {"runs", CS_FIELD_COUNT, offsetof(cs_request, runs), .fallback = "1", .min = 1,
     .max = CS_REQUEST_RUNS_MAX, .doc = "repetitions of the replay"},
    {0},
};

static cs_status read_fields(const char *name, cs_request *request, const cJSON *root,
                             cs_arena *arena, cs_error *error)
{
    cs_json_place place = {.file = name};
    cs_status status = cs_field_read(root, &place, (const cs_field *const[]){fields, NULL},
                                     (void *const[]){request}, arena, error);
    if (!request->notes)
        request->notes = "";
    return status;
}

cs_status cs_request_init(const char *output, cs_request *request, cs_arena *arena, cs_error *error)
{
    cJSON *root = cJSON_CreateObject();
    cs_status status = cJSON_AddStringToObject(root, "output", output)
                           ? read_fields("request", request, root, arena, error)
                           : cs_error_no_memory(error);
    cJSON_Delete(root);
    return status;
}

char *cs_request_print(const cs_request *request)
{
    cJSON *root = cJSON_CreateObject();
    char *text = root && cs_field_write(fields, request, root) ? cs_json_print(root) : NULL;
    cJSON_Delete(root);
    return text;
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
