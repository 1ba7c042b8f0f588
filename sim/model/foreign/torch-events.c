#include "sim/model/foreign/torch-events.h"

#include "sim/base/facts.h"
#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char module_prefix[] = "nn.Module: ";
static const char step_prefix[] = "ProfilerStep#";

/* Categories of the kinds in the various versions of the profiler. */
static const struct {
    const char *category;
    cs_torch_kind kind;
} categories[] = {
    {"cpu_op", CS_TORCH_OPERATOR},        {"operator", CS_TORCH_OPERATOR},
    {"cuda_runtime", CS_TORCH_LAUNCH},    {"cuda_driver", CS_TORCH_LAUNCH},
    {"runtime", CS_TORCH_LAUNCH},         {"kernel", CS_TORCH_KERNEL},
    {"gpu_memcpy", CS_TORCH_KERNEL},      {"gpu_memset", CS_TORCH_KERNEL},
    {"memcpy", CS_TORCH_KERNEL},          {"memset", CS_TORCH_KERNEL},
    {"xpu_runtime", CS_TORCH_LAUNCH},     {"hip_runtime", CS_TORCH_LAUNCH},
    {"python_function", CS_TORCH_MODULE},
};

static const char *text_of(const cJSON *event, const char *key)
{
    const cJSON *member = cs_json_member(event, key);
    return cJSON_IsString(member) ? member->valuestring : "";
}

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool contains(const char *text, const char *part)
{
    for (; *text; text++)
        if (strncasecmp(text, part, strlen(part)) == 0)
            return true;
    return false;
}

static bool is_listed(const char *name, const cJSON *list, bool (*test)(const char *, const char *))
{
    const cJSON *pattern;
    cJSON_ArrayForEach(pattern, list)
    {
        if (test(name, pattern->valuestring))
            return true;
    }
    return false;
}

static bool kind_of(const cJSON *event, const char *name, cs_torch_kind *kind)
{
    const char *category = text_of(event, "cat");
    if (begins(name, step_prefix)) {
        *kind = CS_TORCH_STEP;
        return strcasecmp(category, "gpu_user_annotation") != 0;
    }
    for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++) {
        if (strcasecmp(category, categories[i].category) != 0)
            continue;
        *kind = categories[i].kind;
        return *kind != CS_TORCH_MODULE || begins(name, module_prefix);
    }
    return false;
}

static double number_of(const cJSON *object, const char *key)
{
    const cJSON *member = cs_json_member(object, key);
    return cJSON_IsNumber(member) ? member->valuedouble : NAN;
}

/* Returns a number >= 0 that a double holds exactly, cut to a whole number; else -1. */
static int64_t whole_of(const cJSON *object, const char *key)
{
    double value = object ? number_of(object, key) : NAN;
    return value >= 0 && value <= 9007199254740992.0 ? (int64_t)value : -1;
}

static cs_status append(cs_torch_list *list, const cs_torch_event *event, cs_error *error)
{
    if (!cs_vector_reserve((void **)&list->events, &list->capacity, list->n + 1u, sizeof(*event)))
        return cs_error_no_memory(error);
    list->events[list->n++] = *event;
    return CS_OK;
}

static cs_status add_event(const cJSON *item, const cJSON *communication, cs_torch_events *events,
                           cs_error *error)
{
    const char *name = text_of(item, "name");
    const cJSON *arguments = cs_json_member(item, "args");
    cs_torch_kind kind = CS_TORCH_EXCHANGE;
    if (strcmp(text_of(item, "ph"), "X") != 0)
        return CS_OK;
    const bool is_known = kind_of(item, name, &kind);
    const bool is_host = (is_known && kind == CS_TORCH_OPERATOR) ||
                         strcasecmp(text_of(item, "cat"), "user_annotation") == 0;
    const bool exchanges =
        is_host && is_listed(name, cs_json_member(communication, "operators"), begins);
    if (!is_known && !exchanges)
        return CS_OK;
    cs_torch_event event = {.name = name,
                            .thread = whole_of(item, "tid"),
                            .start = number_of(item, "ts"),
                            .duration = number_of(item, "dur"),
                            .sequence = whole_of(arguments, "Sequence number"),
                            .correlation = whole_of(arguments, "correlation"),
                            .is_operator = is_known && kind == CS_TORCH_OPERATOR,
                            .communication = exchanges,
                            .arguments = cJSON_IsObject(arguments) ? arguments : NULL};
    if (!(event.duration >= 0 && event.duration < 1e12) || !(fabs(event.start) < 1e18))
        return CS_OK;
    if (exchanges) {
        CS_TRY(append(&events->lists[CS_TORCH_EXCHANGE], &event, error));
    }
    if (!is_known)
        return CS_OK;
    if (kind == CS_TORCH_MODULE)
        event.name += strlen(module_prefix);
    if (kind == CS_TORCH_KERNEL)
        event.communication =
            (event.arguments && cs_json_member(event.arguments, "Collective name")) ||
            is_listed(name, cs_json_member(communication, "kernels"), contains);
    events->shapes |= event.arguments && cs_json_member(event.arguments, "Input Dims");
    return append(&events->lists[kind], &event, error);
}

static int compare_doubles(double a, double b)
{
    return a < b ? -1 : a > b;
}

static int compare_places(const void *a, const void *b)
{
    const cs_torch_event *left = a, *right = b;
    if (left->thread != right->thread)
        return left->thread < right->thread ? -1 : 1;
    int order = compare_doubles(left->start, right->start);
    return order ? order : compare_doubles(right->duration, left->duration);
}

static int compare_correlations(const void *a, const void *b)
{
    const cs_torch_event *left = a, *right = b;
    return left->correlation < right->correlation ? -1 : left->correlation > right->correlation;
}

uint32_t cs_torch_first(const cs_torch_list *list, int64_t thread, double time)
{
    uint32_t low = 0, high = list->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const cs_torch_event *at = &list->events[middle];
        bool before = at->thread < thread || (at->thread == thread && at->start < time);
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

cs_torch_event *cs_torch_kernels(const cs_torch_list *kernels, int64_t correlation, uint32_t *n)
{
    uint32_t low = 0, high = kernels->n;
    *n = 0;
    if (correlation < 0)
        return NULL;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (kernels->events[middle].correlation < correlation)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + *n < kernels->n && kernels->events[low + *n].correlation == correlation)
        ++*n;
    return *n > 0 ? &kernels->events[low] : NULL;
}

/* Marks all kernels that a communication operator launches as communication, whatever their names:
 * copies between GPUs, for example. Annotations are ignored: they may last until an exchange is
 * over, and so include launches of other operators. */
static void mark_kernels(cs_torch_events *events)
{
    const cs_torch_list *exchanges = &events->lists[CS_TORCH_EXCHANGE];
    const cs_torch_list *launches = &events->lists[CS_TORCH_LAUNCH];
    for (uint32_t i = 0; i < exchanges->n; i++) {
        const cs_torch_event *exchange = &exchanges->events[i];
        const double end = exchange->start + exchange->duration;
        if (!exchange->is_operator)
            continue;
        for (uint32_t l = cs_torch_first(launches, exchange->thread, exchange->start);
             l < launches->n && launches->events[l].thread == exchange->thread &&
             launches->events[l].start <= end;
             l++) {
            uint32_t n;
            cs_torch_event *kernels = cs_torch_kernels(&events->lists[CS_TORCH_KERNEL],
                                                       launches->events[l].correlation, &n);
            for (uint32_t k = 0; k < n; k++)
                kernels[k].communication = true;
        }
    }
}

/* Removes duplicates: some versions record a step twice, in two categories. */
static void merge_steps(cs_torch_list *steps)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < steps->n; i++) {
        const cs_torch_event *last = n > 0 ? &steps->events[n - 1] : NULL;
        if (!last || strcmp(last->name, steps->events[i].name) != 0 ||
            steps->events[i].start >= last->start + last->duration)
            steps->events[n++] = steps->events[i];
    }
    steps->n = n;
}

static int compare_starts(const void *a, const void *b)
{
    const cs_torch_event *left = a, *right = b;
    int order = compare_doubles(left->start, right->start);
    return order ? order : compare_doubles(right->duration, left->duration);
}

static cs_status read_all(const cJSON *list, const cJSON *communication, cs_torch_events *events,
                          cs_error *error)
{
    static int (*const orders[CS_N_TORCH_KINDS])(const void *, const void *) = {
        [CS_TORCH_KERNEL] = compare_correlations, [CS_TORCH_STEP] = compare_starts};
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        CS_TRY(cJSON_IsObject(item) ? add_event(item, communication, events, error) : CS_OK);
    }
    for (int k = 0; k < CS_N_TORCH_KINDS; k++) {
        cs_torch_list *one = &events->lists[k];
        if (one->n > 0)
            qsort(one->events, one->n, sizeof(*one->events),
                  orders[k] ? orders[k] : compare_places);
    }
    merge_steps(&events->lists[CS_TORCH_STEP]);
    mark_kernels(events);
    return CS_OK;
}

static cs_status check(const cs_torch_events *events, bool times_only, cs_error *error)
{
    const char *lacking = NULL;
    if (events->lists[CS_TORCH_OPERATOR].n == 0)
        lacking = "no operators: record with activities=[ProfilerActivity.CPU, "
                  "ProfilerActivity.CUDA]";
    else if (!events->shapes && !times_only)
        lacking = "no shapes: record with record_shapes=True; or --times-only makes a model "
                  "without sizes";
    else if (events->lists[CS_TORCH_LAUNCH].n > 0 && events->lists[CS_TORCH_KERNEL].n == 0)
        lacking = "kernels are launched, but none was recorded: add ProfilerActivity.CUDA to "
                  "activities";
    return lacking ? cs_error_add(error, CS_INVALID, "%s: %s", events->file, lacking) : CS_OK;
}

cs_status cs_torch_events_read(const cJSON *root, const char *file, bool times_only,
                               cs_torch_events *events, cs_error *error)
{
    const cJSON *list = cJSON_IsObject(root) ? cs_json_member(root, "traceEvents") : root;
    cs_torch_events made = {.file = file};
    if (!cJSON_IsArray(list))
        return cs_error_add(error, CS_INVALID,
                            "%s: must have an array \"traceEvents\": a trace that "
                            "export_chrome_trace of torch.profiler wrote",
                            file);
    const char *names = cs_facts_text("", "communication");
    cJSON *communication;
    CS_TRY(cs_json_parse("facts/communication.json", names, strlen(names), &communication, error));
    cs_status status = read_all(list, communication, &made, error);
    cJSON_Delete(communication);
    if (status == CS_OK)
        status = check(&made, times_only, error);
    if (status != CS_OK) {
        cs_torch_events_finish(&made);
        return status;
    }
    *events = made;
    return CS_OK;
}

void cs_torch_events_finish(cs_torch_events *events)
{
    if (!events)
        return;
    for (int k = 0; k < CS_N_TORCH_KINDS; k++)
        free(events->lists[k].events);
    *events = (cs_torch_events){0};
}
