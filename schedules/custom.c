/* A schedule written by the user: for each device, its tasks in order.
 *
 *     "stage_devices": [0, 1, 1, 0],
 *     "device_tasks": ["F0@0 F1@0 F0@3 B0@3 ...", "F0@1 F0@2 F1@1 ..."]
 *
 * F is a forward and B a backward of the micro-batch with the given number, on the stage after the
 * @, which may be omitted if the device has one stage. If a W of the same micro-batch and stage
 * exists, B computes only the input's gradient and W the weights' gradient. Every mini-batch runs
 * the same lists; at the end of its list a device updates its stages. */
#include "schedules/pipeline.h"

#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

typedef struct task_list {
    uint32_t n, capacity;
    cs_pipeline_step *steps;
} task_list;

typedef struct custom_params {
    uint32_t micro_batches;
    cs_list device_tasks;  /* entries: texts, one list of tasks per device */
    cs_list stage_devices; /* entries: uint32_t, the device of each stage */
    uint32_t n_devices, n_stages;
    uint32_t *devices; /* device of each stage */
    task_list *lists;  /* tasks of each device */
} custom_params;

static const cs_field tasks_field = {"tasks", CS_FIELD_TEXT,
                                     .shape = "tasks as a text, \"F0 F1 B0\""};
static const cs_field device_tasks_field = {"tasks of a device", CS_FIELD_LIST, .of = &tasks_field,
                                            .each = true};
static const cs_field device_field = {"device", CS_FIELD_COUNT};

static const cs_field fields[] = {
    {"micro_batches", CS_FIELD_COUNT, offsetof(custom_params, micro_batches), .min = 1,
     .max = 1 << 20, .doc = "micro-batches per mini-batch, M"},
    {"device_tasks", CS_FIELD_LIST, offsetof(custom_params, device_tasks),
     .of = &device_tasks_field, .least = 1,
     .doc = "for each device, its tasks in order: F3 forward, B3 backward, W3 weight gradient of "
            "micro-batch 3 (with W3, B3 is the input gradient only); F3@1: on stage 1, if the "
            "device has several stages",
     .shape = "[\"F0 F1 B0 B1\" or [\"F0\", ...], ...]"},
    {"stage_devices", CS_FIELD_LIST, offsetof(custom_params, stage_devices), .fallback = "",
     .of = &device_field, .least = 1, .doc = "device of each stage; default: stage s on device s",
     .shape = "[device, ...]"},
    {0},
};

/* ---- where the stages are ---- */

static cs_status place_stages(custom_params *params, const cs_json_place *place, cs_arena *arena,
                              cs_error *error)
{
    const uint32_t *given = params->stage_devices.items;
    cs_json_place at = {.up = place, .key = "stage_devices"};
    params->n_stages = given ? params->stage_devices.n : params->n_devices;
    params->devices = cs_arena_alloc(arena, params->n_stages, sizeof(*params->devices));
    if (!params->devices)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < params->n_stages; s++) {
        cs_json_place here = {.up = &at, .index = (int)s};
        params->devices[s] = given ? given[s] : s;
        if (params->devices[s] >= params->n_devices)
            return cs_json_invalid(&here, error,
                                   "must be a device below %u, the number of lists of tasks (got "
                                   "%u)",
                                   params->n_devices, params->devices[s]);
    }
    return CS_OK;
}

/* Returns the only stage of a device, or CS_NONE. */
static uint32_t only_stage(const custom_params *params, uint32_t device)
{
    uint32_t found = CS_NONE;
    for (uint32_t s = 0; s < params->n_stages; s++) {
        if (params->devices[s] != device)
            continue;
        if (found != CS_NONE)
            return CS_NONE;
        found = s;
    }
    return found;
}

/* ---- tasks ---- */

enum { HAS_FORWARD = 1, HAS_BACKWARD = 2, HAS_WEIGHT = 4 };

typedef struct reader {
    custom_params *params;
    uint8_t *seen; /* per stage and micro-batch: bits for its tasks that were listed */
    uint32_t device;
    const cs_json_place *place;
    cs_error *error;
} reader;

static uint8_t *seen_at(const reader *r, uint32_t stage, uint32_t micro)
{
    return &r->seen[(size_t)stage * r->params->micro_batches + micro];
}

/* Reads digits up to `end` as a number below `limit`. */
static bool read_number(const char **at, const char *end, uint32_t limit, uint32_t *value)
{
    const char *first = *at;
    uint64_t number = 0;
    for (; *at < end && **at >= '0' && **at <= '9' && number < limit; (*at)++)
        number = 10 * number + (uint64_t)(**at - '0');
    *value = (uint32_t)number;
    return *at > first && number < limit;
}

/* Reads a task such as "F3" or "F3@1" of the given length. */
static bool read_step(const reader *r, const char *text, size_t length, cs_pipeline_step *step)
{
    const char *at = text + 1, *end = text + length;
    *step = (cs_pipeline_step){0};
    switch (*text) {
    case 'F':
        step->kind = CS_FORWARD;
        break;
    case 'B':
        step->kind = CS_BACKWARD;
        break;
    case 'W':
        step->kind = CS_BACKWARD_WEIGHT;
        break;
    default:
        return false;
    }
    step->stage = only_stage(r->params, r->device);
    if (!read_number(&at, end, r->params->micro_batches, &step->micro_batch))
        return false;
    if (at < end && *at++ == '@' && !read_number(&at, end, r->params->n_stages, &step->stage))
        return false;
    return at == end && step->stage != CS_NONE && r->params->devices[step->stage] == r->device;
}

static cs_status add_task(const reader *r, const char *text, size_t length)
{
    cs_pipeline_step step;
    if (!read_step(r, text, length, &step))
        return cs_json_invalid(
            r->place, r->error,
            "must be F, B or W, a micro-batch below %u and, where device %u has several stages, @ "
            "and one of them: \"F3\" or \"F3@1\" (got \"%.*s\")",
            r->params->micro_batches, r->device, length < 40 ? (int)length : 40, text);
    uint8_t *seen = seen_at(r, step.stage, step.micro_batch);
    uint8_t flag = step.kind == CS_FORWARD    ? HAS_FORWARD
                   : step.kind == CS_BACKWARD ? HAS_BACKWARD
                                              : HAS_WEIGHT;
    if (*seen & flag)
        return cs_json_invalid(r->place, r->error, "must have %.*s of stage %u once only",
                               (int)length, text, step.stage);
    *seen |= flag;
    task_list *list = &r->params->lists[r->device];
    if (!cs_vector_reserve((void **)&list->steps, &list->capacity, list->n + UINT64_C(1),
                           sizeof(*list->steps)))
        return cs_error_no_memory(r->error);
    list->steps[list->n++] = step;
    return CS_OK;
}

/* Reads tasks separated by blanks or commas. */
static cs_status read_text(const reader *r, const char *text)
{
    static const char blanks[] = " \t\n\r,";
    cs_status status = CS_OK;
    const char *at = text + strspn(text, blanks);
    while (*at && status == CS_OK) {
        size_t length = strcspn(at, blanks);
        status = add_task(r, at, length);
        at += length + strspn(at + length, blanks);
    }
    return status;
}

static cs_status read_device(reader *r, const cs_list *texts)
{
    const char *const *items = texts->items;
    const cs_json_place *place = r->place;
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < texts->n && status == CS_OK; i++) {
        cs_json_place at = {.up = place, .index = (int)i};
        r->place = texts->one ? place : &at;
        status = read_text(r, items[i]);
    }
    r->place = place;
    return status;
}

/* Checks that every stage has the forward and the backward of every micro-batch. */
static cs_status check_complete(const reader *r)
{
    const custom_params *params = r->params;
    for (uint32_t s = 0; s < params->n_stages; s++) {
        for (uint32_t m = 0; m < params->micro_batches; m++) {
            uint8_t lacks = (HAS_FORWARD | HAS_BACKWARD) & ~*seen_at(r, s, m);
            cs_json_place at = {.up = r->place, .index = (int)params->devices[s]};
            if (lacks)
                return cs_json_invalid(&at, r->error, "must have %s%u of stage %u as well",
                                       lacks & HAS_FORWARD ? "F" : "B", m, s);
        }
    }
    return CS_OK;
}

/* Makes a backward compute the input's gradient only, if a W with the same micro-batch and stage
 * exists. */
static void split_backwards(const reader *r)
{
    for (uint32_t d = 0; d < r->params->n_devices; d++) {
        const task_list *list = &r->params->lists[d];
        for (uint32_t k = 0; k < list->n; k++) {
            cs_pipeline_step *step = &list->steps[k];
            if (step->kind == CS_BACKWARD &&
                *seen_at(r, step->stage, step->micro_batch) & HAS_WEIGHT)
                step->kind = CS_BACKWARD_INPUT;
        }
    }
}

static cs_status read_lists(reader *r)
{
    cs_status status = CS_OK;
    const cs_list *lists = r->params->device_tasks.items;
    const cs_json_place *place = r->place;
    for (; r->device < r->params->n_devices; r->device++) {
        cs_json_place at = {.up = place, .index = (int)r->device};
        r->place = &at;
        cs_status one = read_device(r, &lists[r->device]);
        status = status == CS_OK ? one : status;
    }
    r->place = place;
    if (status == CS_OK)
        status = check_complete(r);
    if (status == CS_OK)
        split_backwards(r);
    return status;
}

/* Copies the lists from the heap to the arena of the parameters. */
static cs_status keep_lists(custom_params *params, cs_arena *arena, cs_error *error)
{
    cs_status status = CS_OK;
    for (uint32_t d = 0; d < params->n_devices; d++) {
        task_list *list = &params->lists[d];
        cs_pipeline_step *kept = cs_arena_alloc(arena, list->n, sizeof(*kept));
        if (!kept)
            status = cs_error_no_memory(error);
        else if (list->n > 0)
            memcpy(kept, list->steps, list->n * sizeof(*kept));
        free(list->steps);
        list->steps = kept;
    }
    return status;
}

static cs_status read(void *given, const cs_json_place *place, cs_arena *arena, cs_error *error)
{
    custom_params *params = given;
    cs_json_place at = {.up = place, .key = "device_tasks"};
    params->n_devices = params->device_tasks.n;
    CS_TRY(place_stages(params, place, arena, error));
    reader r = {.params = params, .place = &at, .error = error};
    params->lists = cs_arena_alloc(arena, params->n_devices, sizeof(*params->lists));
    r.seen = calloc((size_t)params->n_stages * params->micro_batches + 1, sizeof(*r.seen));
    cs_status status = params->lists && r.seen ? read_lists(&r) : cs_error_no_memory(error);
    free(r.seen);
    cs_status kept = params->lists ? keep_lists(params, arena, error) : status;
    return status == CS_OK ? kept : status;
}

/* ---- the schedule ---- */

static uint32_t ranks(const void *params, uint32_t n_layers)
{
    (void)n_layers;
    return ((const custom_params *)params)->n_devices;
}

static uint32_t n_stages(const void *params, uint32_t n_ranks)
{
    (void)n_ranks;
    return ((const custom_params *)params)->n_stages;
}

static uint32_t holders(const void *params, uint32_t n_ranks, uint32_t stage, uint32_t *held)
{
    (void)n_ranks;
    held[0] = ((const custom_params *)params)->devices[stage];
    return 1;
}

static uint32_t list_of(const cs_pipeline_shape *shape, uint32_t stage)
{
    return ((const custom_params *)shape->params)->devices[stage];
}

static bool order(const cs_pipeline_shape *shape, uint32_t device, uint32_t k,
                  cs_pipeline_step *step)
{
    const task_list *list = &((const custom_params *)shape->params)->lists[device];
    if (k < list->n)
        *step = list->steps[k];
    return k < list->n;
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    cs_pipeline_options options = {
        .order = order, .list_of = list_of, .splits = true, .params = params};
    return cs_pipeline_generate(job, &options, builder, error);
}

/* Tries one mini-batch: only running the lists shows whether they deadlock. */
static cs_status check(const cs_job *job, const void *params, const cs_json_place *place,
                       cs_error *error)
{
    cs_json_place at = {.up = place, .key = "device_tasks"};
    cs_job once = *job;
    once.iterations = 1;
    cs_error reason;
    cs_error_init(&reason);
    cs_builder *builder =
        cs_builder_create(job->n_devices, job->plan->n_stages, job->micro_batches, 1);
    if (!builder)
        return cs_error_no_memory(error);
    cs_status status = generate(&once, params, builder, &reason);
    cs_builder_destroy(builder);
    if (status == CS_NO_MEMORY)
        return cs_error_no_memory(error);
    return status == CS_OK ? CS_OK : cs_json_invalid(&at, error, "%s", reason.text);
}

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    (void)job;
    (void)params;
    (void)forms;
    (void)error;
    return CS_OK; /* no closed forms are known in advance */
}

const cs_schedule cs_schedule_custom = {
    .name = "custom",
    .summary = "a pipeline in your own order: you write out the tasks of each device",
    .source = "the scenario",
    .fields = fields,
    .params_size = sizeof(custom_params),
    .mesh = {.pipeline = CS_LENGTH_RULE,
             .ranks = ranks,
             .exactly = true,
             .n_stages = n_stages,
             .holders = holders},
    .sums_ties = true,
    .read = read,
    .micro_batches = offsetof(custom_params, micro_batches),
    .check = check,
    .generate = generate,
    .closed_forms = closed_forms,
};
