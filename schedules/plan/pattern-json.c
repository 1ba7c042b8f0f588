/* Patterns in plan files. Times are whole picoseconds, so a pattern survives writing and reading
 * exactly: its period may be tight to the picosecond. */
#include "schedules/plan/pattern.h"

#include "sim/base/field.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

static const char *const kinds[] = {"forward", "backward", "send", "return", NULL};

typedef struct operation_fields {
    uint32_t kind, stage;
    int64_t start, shift;
} operation_fields;

static const cs_field operation_table[] = {
    {"operation", CS_FIELD_CHOICE, offsetof(operation_fields, kind), .choices = kinds,
     .doc = "send: the stage's output to the next stage; return: the gradient of that back"},
    {"stage", CS_FIELD_COUNT, offsetof(operation_fields, stage), .doc = "number of the stage"},
    {"start_ps", CS_FIELD_INTEGER, offsetof(operation_fields, start), .large = true,
     .doc = "within the period, ps"},
    {"shift", CS_FIELD_INTEGER, offsetof(operation_fields, shift), .min = -CS_PATTERN_SHIFTS,
     .max = CS_PATTERN_SHIFTS, .doc = "micro-batch i is done in period i + shift"},
    {0},
};

static const cs_field operation_field = {"operation", CS_FIELD_OBJECT, .of = operation_table,
                                         .size = sizeof(operation_fields)};

typedef struct pattern_fields {
    int64_t period;
    cs_list operations; /* entries: pointers to operation_fields */
} pattern_fields;

static const cs_field pattern_table[] = {
    {"period_ps", CS_FIELD_INTEGER, offsetof(pattern_fields, period), .min = 1, .large = true,
     .doc = "of the pattern"},
    {"operations", CS_FIELD_LIST, offsetof(pattern_fields, operations), .of = &operation_field,
     .doc = "forward and backward of every stage, and the messages between devices",
     .shape = "[{operation}, ...]"},
    {0},
};

/* ---- writing ---- */

static bool add_operation(cJSON *list, uint32_t stage, cs_pattern_kind kind,
                          const cs_pattern_op *op)
{
    const operation_fields fields = {
        .kind = (uint32_t)kind, .stage = stage, .start = op->start, .shift = op->shift};
    cJSON *object = cJSON_CreateObject();
    if (object && cJSON_AddItemToArray(list, object))
        return cs_field_write(operation_table, &fields, object);
    cJSON_Delete(object);
    return false;
}

static bool add_pattern(cJSON *object, const cs_plan *plan, const cs_pattern *pattern)
{
    const cs_field period[] = {pattern_table[0], {0}};
    cJSON *list = NULL;
    if (cs_field_write(period, &(pattern_fields){.period = pattern->period}, object))
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
    cJSON *object = cJSON_AddObjectToObject(root, "pattern");
    return object && add_pattern(object, plan, pattern) ? CS_OK : cs_error_no_memory(error);
}

/* ---- reading ---- */

typedef struct reading {
    const cs_plan *plan;
    cs_pattern pattern;
    bool *seen; /* per operation: whether the file has it */
    cs_arena arena;
} reading;

static cs_status take_operation(const operation_fields *fields, const cs_json_place *place,
                                reading *r, cs_error *error)
{
    cs_json_place start = {.up = place, .key = "start_ps"};
    if (fields->stage >= r->plan->n_stages)
        return cs_json_invalid(place, error, "stage must be below %u, as the plan has (got %u)",
                               r->plan->n_stages, fields->stage);
    if (!cs_pattern_has(r->plan, fields->stage, (cs_pattern_kind)fields->kind))
        return cs_json_invalid(place, error,
                               "stage %u has no \"%s\": the next stage is not on another device",
                               fields->stage, kinds[fields->kind]);
    size_t at = (size_t)fields->stage * CS_PATTERN_KINDS + fields->kind;
    if (r->seen[at])
        return cs_json_invalid(place, error, "must list the %s of stage %u once only",
                               kinds[fields->kind], fields->stage);
    r->seen[at] = true;
    if (fields->start < 0 || fields->start >= r->pattern.period)
        return cs_json_invalid(&start, error,
                               "must be from 0 to %" PRId64 ", below the period (got %" PRId64 ")",
                               r->pattern.period - 1, fields->start);
    r->pattern.ops[at] = (cs_pattern_op){.start = fields->start, .shift = fields->shift};
    return CS_OK;
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

static cs_status take_operations(const cs_list *list, const cs_json_place *up, reading *r,
                                 cs_error *error)
{
    cs_json_place place = {.up = up, .key = "operations"};
    const operation_fields *const *items = list->items;
    for (uint32_t i = 0; i < list->n; i++) {
        cs_json_place at = {.up = &place, .index = (int)i};
        CS_TRY(take_operation(items[i], &at, r, error));
    }
    return check_complete(r, &place, error);
}

static cs_status read_fields(const cJSON *object, const cs_json_place *place, reading *r,
                             cs_error *error)
{
    pattern_fields fields;
    cs_status status = cs_field_read(object, place, (const cs_field *const[]){pattern_table, NULL},
                                     (void *const[]){&fields}, &r->arena, error);
    for (uint32_t s = 0; s < r->plan->n_stages && status == CS_OK; s++) {
        if (r->plan->stages[s].n_devices != 1)
            status = cs_json_invalid(place, error,
                                     "goes with plans that have one device per stage only; stage "
                                     "%u has %u",
                                     s, r->plan->stages[s].n_devices);
    }
    if (status != CS_OK)
        return status;
    r->pattern.period = fields.period;
    return take_operations(&fields.operations, place, r, error);
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
