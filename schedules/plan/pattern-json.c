/* The pattern in a plan's file. Times are whole picoseconds, so that what is read is what was
 * found: a period may be tight to the picosecond. */
#include "schedules/plan/pattern.h"

#include "sim/base/field.h"

#include <stddef.h>
#include <stdlib.h>

static const char *const kinds[] = {"forward", "backward", "send", "return", NULL};

/* Whole numbers up to here are exact in JSON; 2^53 itself could have been 2^53 + 1. */
static const int64_t most_exact = (INT64_C(1) << 53) - 1;

typedef struct pattern_fields {
    const cJSON *period, *operations;
} pattern_fields;

static const cs_field pattern_table[] = {
    {"period_ps", CS_FIELD_JSON, offsetof(pattern_fields, period), .doc = "of the pattern",
     .shape = "picoseconds"},
    {"operations", CS_FIELD_JSON, offsetof(pattern_fields, operations),
     .doc = "forward and backward of every stage, and the messages between devices",
     .shape = "[{operation}, ...]"},
    {0},
};

typedef struct operation_fields {
    uint32_t kind, stage;
    const cJSON *start, *shift;
} operation_fields;

static const cs_field operation_table[] = {
    {"operation", CS_FIELD_CHOICE, offsetof(operation_fields, kind), .choices = kinds,
     .doc = "send: the stage's output to the next stage; return: the gradient of that back"},
    {"stage", CS_FIELD_COUNT, offsetof(operation_fields, stage), .doc = "number of the stage"},
    {"start_ps", CS_FIELD_JSON, offsetof(operation_fields, start), .doc = "within the period",
     .shape = "picoseconds"},
    {"shift", CS_FIELD_JSON, offsetof(operation_fields, shift),
     .doc = "micro-batch i is done in period i + shift", .shape = "number"},
    {0},
};

/* ---- writing ---- */

static bool add_operation(cJSON *list, uint32_t stage, cs_pattern_kind kind,
                          const cs_pattern_op *op)
{
    cJSON *object = cJSON_CreateObject();
    if (!object || !cJSON_AddItemToArray(list, object)) {
        cJSON_Delete(object);
        return false;
    }
    return cJSON_AddStringToObject(object, "operation", kinds[kind]) &&
           cJSON_AddNumberToObject(object, "stage", stage) &&
           cJSON_AddNumberToObject(object, "start_ps", (double)op->start) &&
           cJSON_AddNumberToObject(object, "shift", (double)op->shift);
}

static bool add_pattern(cJSON *object, const cs_plan *plan, const cs_pattern *pattern)
{
    cJSON *list = NULL;
    if (cJSON_AddNumberToObject(object, "period_ps", (double)pattern->period))
        list = cJSON_AddArrayToObject(object, "operations");
    bool complete = list;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        for (uint32_t kind = 0; kind < CS_PATTERN_KINDS && complete; kind++) {
            if (cs_pattern_has(plan, s, (cs_pattern_kind)kind))
                complete = add_operation(list, s, (cs_pattern_kind)kind,
                                         &pattern->ops[(size_t)s * CS_PATTERN_KINDS + kind]);
        }
    }
    return complete;
}

cs_status cs_pattern_add_json(cJSON *root, const cs_plan *plan, const cs_pattern *pattern,
                              cs_error *error)
{
    if (pattern->period > most_exact)
        return cs_error_add(error, CS_OVERFLOW,
                            "a period of %lld ps is too long for a file: it must be "
                            "below 2^53 ps (2.5 hours)",
                            (long long)pattern->period);
    cJSON *object = cJSON_AddObjectToObject(root, "pattern");
    return object && add_pattern(object, plan, pattern) ? CS_OK : cs_error_no_memory(error);
}

/* ---- reading ---- */

/* A whole number in [low, high]. */
static cs_status read_whole(const cJSON *value, const cs_json_place *place, double low, double high,
                            int64_t *out, cs_error *error)
{
    char got[CS_JSON_DESCRIBED_BYTES];
    double number = value->valuedouble;
    if (!cJSON_IsNumber(value) || !(number >= low && number <= high) ||
        number != (double)(int64_t)number)
        return cs_json_invalid(place, error, "must be a whole number from %.0f to %.0f (got %s)",
                               low, high, cs_json_describe(value, got, sizeof(got)));
    *out = (int64_t)number;
    return CS_OK;
}

typedef struct reading {
    const cs_plan *plan;
    cs_pattern pattern;
    bool *seen; /* per operation */
    cs_arena arena;
} reading;

static cs_status read_operation(const cJSON *value, const cs_json_place *place, reading *r,
                                cs_error *error)
{
    operation_fields fields;
    cs_status status = cs_field_read(value, place, (const cs_field *const[]){operation_table, NULL},
                                     (void *const[]){&fields}, &r->arena, error);
    if (status != CS_OK)
        return status;
    if (fields.stage >= r->plan->n_stages)
        return cs_json_invalid(place, error, "stage must be below %u, as the plan has (got %u)",
                               r->plan->n_stages, fields.stage);
    if (!cs_pattern_has(r->plan, fields.stage, (cs_pattern_kind)fields.kind))
        return cs_json_invalid(place, error,
                               "stage %u has no \"%s\": the next stage is not on another device",
                               fields.stage, kinds[fields.kind]);
    size_t at = (size_t)fields.stage * CS_PATTERN_KINDS + fields.kind;
    if (r->seen[at])
        return cs_json_invalid(place, error, "must list the %s of stage %u once only",
                               kinds[fields.kind], fields.stage);
    r->seen[at] = true;
    cs_pattern_op *op = &r->pattern.ops[at];
    cs_json_place start = {.up = place, .key = "start_ps"}, shift = {.up = place, .key = "shift"};
    status =
        read_whole(fields.start, &start, 0, (double)(r->pattern.period - 1), &op->start, error);
    cs_status other =
        read_whole(fields.shift, &shift, -CS_PATTERN_SHIFTS, CS_PATTERN_SHIFTS, &op->shift, error);
    return status == CS_OK ? other : status;
}

static cs_status check_complete(const reading *r, const cs_json_place *place, cs_error *error)
{
    for (uint32_t s = 0; s < r->plan->n_stages; s++) {
        for (uint32_t kind = 0; kind < CS_PATTERN_KINDS; kind++) {
            if (cs_pattern_has(r->plan, s, (cs_pattern_kind)kind) &&
                !r->seen[(size_t)s * CS_PATTERN_KINDS + kind])
                return cs_json_invalid(place, error, "must have the %s of stage %u as well",
                                       kinds[kind], s);
        }
    }
    return CS_OK;
}

static cs_status read_operations(const cJSON *list, const cs_json_place *up, reading *r,
                                 cs_error *error)
{
    cs_json_place place = {.up = up, .key = "operations"}, element = {.up = &place};
    if (!cJSON_IsArray(list))
        return cs_json_invalid(&place, error, "must be a list of operations (got %s)",
                               cs_json_kind(list));
    cs_status status = CS_OK;
    for (const cJSON *value = list->child; value && status == CS_OK; value = value->next) {
        status = read_operation(value, &element, r, error);
        element.index++;
    }
    return status == CS_OK ? check_complete(r, &place, error) : status;
}

static cs_status read_fields(const cJSON *object, const cs_json_place *place, reading *r,
                             cs_error *error)
{
    pattern_fields fields;
    cs_json_place period = {.up = place, .key = "period_ps"};
    cs_status status = cs_field_read(object, place, (const cs_field *const[]){pattern_table, NULL},
                                     (void *const[]){&fields}, &r->arena, error);
    for (uint32_t s = 0; s < r->plan->n_stages && status == CS_OK; s++) {
        if (r->plan->stages[s].n_devices != 1)
            status = cs_json_invalid(place, error,
                                     "goes with plans that have one device per stage only; stage "
                                     "%u has %u",
                                     s, r->plan->stages[s].n_devices);
    }
    if (status == CS_OK)
        status =
            read_whole(fields.period, &period, 1, (double)most_exact, &r->pattern.period, error);
    return status == CS_OK ? read_operations(fields.operations, place, r, error) : status;
}

cs_status cs_pattern_read(const cJSON *root, const cs_json_place *place, const cs_plan *plan,
                          cs_pattern *pattern, cs_error *error)
{
    const cJSON *object = cs_json_member(root, "pattern");
    cs_json_place at = {.up = place, .key = "pattern"};
    reading r = {.plan = plan};
    if (!object) {
        *pattern = (cs_pattern){0};
        return CS_OK;
    }
    cs_arena_init(&r.arena);
    cs_status status = cs_pattern_create(plan->n_stages, &r.pattern, error);
    r.seen = cs_arena_alloc(&r.arena, (size_t)plan->n_stages * CS_PATTERN_KINDS, sizeof(*r.seen));
    if (status == CS_OK)
        status = r.seen ? read_fields(object, &at, &r, error) : cs_error_no_memory(error);
    cs_arena_finish(&r.arena);
    if (status == CS_OK)
        *pattern = r.pattern;
    else
        cs_pattern_finish(&r.pattern);
    return status;
}
