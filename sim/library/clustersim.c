#include "sim/library/clustersim.h"

#include "sim/base/json.h"
#include "sim/run/figures.h"
#include "sim/run/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *clustersim_version(void)
{
    return CLUSTERSIM_VERSION;
}

/* ---- failures ---- */

struct clustersim_error {
    size_t n;
    clustersim_message messages[];
};

static clustersim_status status_of(cs_status status)
{
    static const clustersim_status statuses[] = {
        [CS_OK] = CLUSTERSIM_OK,
        [CS_FAILED] = CLUSTERSIM_FAILED,
        [CS_NO_MEMORY] = CLUSTERSIM_NO_MEMORY,
        [CS_IO] = CLUSTERSIM_IO,
        [CS_OVERFLOW] = CLUSTERSIM_OVERFLOW,
        [CS_USAGE] = CLUSTERSIM_INVALID, /* a change that cannot be made */
        [CS_INVALID] = CLUSTERSIM_INVALID,
        [CS_LIMIT] = CLUSTERSIM_LIMIT,
        [CS_INTERRUPTED] = CLUSTERSIM_INTERRUPTED,
    };
    return statuses[status];
}

/* Copies a part of a message to *at and moves that on; NULL for an empty part. */
static const char *copy_part(char **at, const char *part, int bytes)
{
    char *copy = *at;
    if (bytes == 0)
        return NULL;
    memcpy(copy, part, (size_t)bytes);
    copy[bytes] = '\0';
    *at += bytes + 1;
    return copy;
}

/* Record and texts are one piece of memory. NULL: no messages, or no memory. */
static clustersim_error *copy_messages(const cs_error *from)
{
    clustersim_error *made;
    cs_error_message message;
    if (from->stored == 0)
        return NULL;
    /* each part has its NUL in place of a separator of the text, the last one of the text's own */
    const size_t bytes = strlen(from->text) + 1 + 2 * (size_t)from->stored;
    made = malloc(sizeof(*made) + from->stored * sizeof(*made->messages) + bytes);
    if (!made)
        return NULL;
    made->n = from->stored;
    char *at = (char *)&made->messages[made->n];
    for (uint32_t i = 0; cs_error_message_at(from, i, &message); i++)
        made->messages[i] =
            (clustersim_message){.file = copy_part(&at, message.file, message.file_bytes),
                                 .pointer = copy_part(&at, message.pointer, message.pointer_bytes),
                                 .text = copy_part(&at, message.text, message.text_bytes)};
    return made;
}

static clustersim_status finish(cs_status status, const cs_error *said, clustersim_error **error)
{
    if (error)
        *error = status == CS_OK ? NULL : copy_messages(said);
    return status_of(status);
}

size_t clustersim_error_count(const clustersim_error *error)
{
    return error ? error->n : 0;
}

clustersim_message clustersim_error_message(const clustersim_error *error, size_t i)
{
    return error->messages[i];
}

void clustersim_error_free(clustersim_error *error)
{
    free(error);
}

/* ---- scenarios ---- */

struct clustersim_scenario {
    cs_scenario scenario;
    clustersim_error *warnings;
};

/* Takes the document. */
static cs_status read_document(cJSON *document, const char *name, const clustersim_change *changes,
                               size_t n, clustersim_scenario **scenario, cs_error *error)
{
    clustersim_scenario *made = calloc(1, sizeof(*made));
    cs_status status = made ? CS_OK : cs_error_no_memory(error);
    for (size_t i = 0; i < n && status == CS_OK; i++)
        status = cs_json_set(document, changes[i].pointer, changes[i].value, "change", error);
    if (status == CS_OK)
        status = cs_scenario_read(document, name, &made->scenario, error);
    cJSON_Delete(document);
    if (status == CS_OK && made->scenario.warnings.stored > 0) {
        made->warnings = copy_messages(&made->scenario.warnings);
        status = made->warnings ? CS_OK : cs_error_no_memory(error);
    }
    if (status == CS_OK)
        *scenario = made;
    else
        clustersim_scenario_free(made);
    return status;
}

clustersim_status clustersim_scenario_load(const char *path, const clustersim_change *changes,
                                           size_t n, clustersim_scenario **scenario,
                                           clustersim_error **error)
{
    cs_error said;
    cJSON *document = NULL;
    cs_error_init(&said);
    cs_status status = cs_json_load(path, &document, &said);
    if (status == CS_OK)
        status = read_document(document, path, changes, n, scenario, &said);
    return finish(status, &said, error);
}

clustersim_status clustersim_scenario_parse(const char *name, const char *text,
                                            const clustersim_change *changes, size_t n,
                                            clustersim_scenario **scenario,
                                            clustersim_error **error)
{
    cs_error said;
    cJSON *document = NULL;
    cs_error_init(&said);
    cs_status status = cs_json_parse(name, text, strlen(text), &document, &said);
    if (status == CS_OK)
        status = read_document(document, name, changes, n, scenario, &said);
    return finish(status, &said, error);
}

const char *clustersim_scenario_resolved(const clustersim_scenario *scenario)
{
    return scenario->scenario.resolved;
}

const clustersim_error *clustersim_scenario_warnings(const clustersim_scenario *scenario)
{
    return scenario->warnings;
}

void clustersim_scenario_free(clustersim_scenario *scenario)
{
    if (!scenario)
        return;
    cs_scenario_finish(&scenario->scenario);
    clustersim_error_free(scenario->warnings);
    free(scenario);
}

/* ---- running ---- */

struct clustersim_result {
    cs_arena arena; /* owns all arrays */
    uint64_t hash;
    clustersim_figure *figures;
    size_t n_figures;
    uint32_t n_devices, n_device_figures;
    const char **device_keys;
    double *device_values; /* per device one for each key */
    clustersim_tasks tasks;
    clustersim_memory memory;
};

static cs_status take_figures(const cs_outcome *outcome, clustersim_result *result, cs_error *error)
{
    size_t n = 0;
    while (cs_run_figures[n].key)
        n++;
    result->figures = cs_arena_alloc(&result->arena, n, sizeof(*result->figures));
    if (!result->figures)
        return cs_error_no_memory(error);
    for (size_t i = 0; i < n; i++) {
        const cs_run_figure *figure = &cs_run_figures[i];
        if (!cs_run_figure_given(figure, outcome))
            continue;
        result->figures[result->n_figures++] =
            (clustersim_figure){figure->key, figure->label, cs_unit_word(figure->unit),
                                cs_run_figure_value(figure, outcome)};
        result->n_device_figures += figure->scope == CS_SCOPE_DEVICE;
    }
    return CS_OK;
}

static cs_status take_devices(const cs_outcome *outcome, clustersim_result *result, cs_error *error)
{
    const uint32_t n = result->n_device_figures;
    cs_outcome at = *outcome;
    uint32_t k = 0;
    result->n_devices = outcome->simulation->trace.n_devices;
    result->device_keys = cs_arena_alloc(&result->arena, n, sizeof(*result->device_keys));
    result->device_values = cs_arena_alloc(&result->arena, (size_t)n * result->n_devices,
                                           sizeof(*result->device_values));
    if (!result->device_keys || !result->device_values)
        return cs_error_no_memory(error);
    for (const cs_run_figure *figure = cs_run_figures; figure->key; figure++) {
        if (figure->scope != CS_SCOPE_DEVICE || !cs_run_figure_given(figure, outcome))
            continue;
        for (at.device = 0; at.device < result->n_devices; at.device++)
            result->device_values[(size_t)at.device * n + k] =
                cs_run_figure_given(figure, &at) ? figure->get(&at) : (double)NAN;
        result->device_keys[k++] = figure->key;
    }
    return CS_OK;
}

static cs_status take_tasks(const cs_simulation *simulation, clustersim_result *result,
                            cs_error *error)
{
    const cs_graph *graph = &simulation->graph;
    const uint32_t n = graph->n_tasks;
    int64_t *times = cs_arena_alloc(&result->arena, n, 2 * sizeof(*times));
    uint32_t *ids = cs_arena_alloc(&result->arena, n, 6 * sizeof(*ids));
    if (!times || !ids)
        return cs_error_no_memory(error);
    int64_t *start = times, *end = times + n;
    uint32_t *device = ids, *peer = device + n, *stage = peer + n, *mini_batch = stage + n,
             *micro_batch = mini_batch + n, *kind = micro_batch + n;
    for (uint32_t i = 0; i < n; i++) {
        const cs_class *class = cs_graph_class(graph, i);
        start[i] = simulation->trace.spans[i].start;
        end[i] = simulation->trace.spans[i].end;
        device[i] = class->device;
        peer[i] = class->peer;
        stage[i] = class->stage;
        mini_batch[i] = cs_graph_mini_batch(graph, i);
        micro_batch[i] = cs_graph_micro_batch(graph, i);
        kind[i] = class->kind;
    }
    result->tasks =
        (clustersim_tasks){n, start, end, device, peer, stage, mini_batch, micro_batch, kind};
    return CS_OK;
}

static cs_status take_memory(const cs_trace *trace, clustersim_result *result, cs_error *error)
{
    const uint32_t n = trace->n_samples;
    int64_t *numbers = cs_arena_alloc(&result->arena, n, 2 * sizeof(*numbers));
    uint32_t *ids = cs_arena_alloc(&result->arena, n, 2 * sizeof(*ids));
    if (!numbers || !ids)
        return cs_error_no_memory(error);
    int64_t *time = numbers, *bytes = numbers + n;
    uint32_t *device = ids, *category = ids + n;
    for (uint32_t i = 0; i < n; i++) {
        time[i] = trace->samples[i].time;
        bytes[i] = trace->samples[i].bytes;
        device[i] = trace->samples[i].device;
        category[i] = trace->samples[i].category;
    }
    result->memory = (clustersim_memory){n, time, bytes, device, category};
    return CS_OK;
}

static cs_status take_outcome(const cs_outcome *outcome, clustersim_result *result, cs_error *error)
{
    cs_arena_init(&result->arena);
    result->hash = outcome->simulation->hash;
    CS_TRY(take_figures(outcome, result, error));
    CS_TRY(take_devices(outcome, result, error));
    CS_TRY(take_tasks(outcome->simulation, result, error));
    return take_memory(&outcome->simulation->trace, result, error);
}

static bool step(void *context, const char *what, uint64_t done, uint64_t total)
{
    const clustersim_options *options = context;
    return options->progress(options->context, what, done, total) != 0;
}

static cs_status run(const cs_scenario *scenario, clustersim_options *options,
                     clustersim_result **result, cs_error *error)
{
    const cs_progress progress = {step, options};
    const cs_simulation_options how = {.stop_on_oom = options->stop_on_oom != 0,
                                       .seed_offset = options->seed_offset,
                                       .progress = options->progress ? &progress : NULL};
    cs_simulation simulation = {0};
    clustersim_result *made = calloc(1, sizeof(*made));
    if (!made)
        return cs_error_no_memory(error);
    cs_status status = cs_simulate(scenario, &how, &simulation, error);
    if (status == CS_OK)
        status = take_outcome(&(cs_outcome){.scenario = scenario, .simulation = &simulation}, made,
                              error);
    cs_simulation_finish(&simulation);
    if (status == CS_OK)
        *result = made;
    else
        clustersim_result_free(made);
    return status;
}

clustersim_status clustersim_run(const clustersim_scenario *scenario,
                                 const clustersim_options *options, clustersim_result **result,
                                 clustersim_error **error)
{
    clustersim_options all = {0};
    cs_error said;
    cs_error_init(&said);
    if (options)
        memcpy(&all, options, options->size < sizeof(all) ? options->size : sizeof(all));
    return finish(run(&scenario->scenario, &all, result, &said), &said, error);
}

void clustersim_result_free(clustersim_result *result)
{
    if (!result)
        return;
    cs_arena_finish(&result->arena);
    free(result);
}

/* ---- results ---- */

uint64_t clustersim_result_hash(const clustersim_result *result)
{
    return result->hash;
}

size_t clustersim_result_figures(const clustersim_result *result, const clustersim_figure **figures)
{
    *figures = result->figures;
    return result->n_figures;
}

const clustersim_figure *clustersim_result_figure(const clustersim_result *result, const char *key)
{
    for (size_t i = 0; i < result->n_figures; i++) {
        if (strcmp(result->figures[i].key, key) == 0)
            return &result->figures[i];
    }
    return NULL;
}

double clustersim_result_value(const clustersim_result *result, const char *key)
{
    const clustersim_figure *figure = clustersim_result_figure(result, key);
    return figure ? figure->value : (double)NAN;
}

uint32_t clustersim_result_devices(const clustersim_result *result)
{
    return result->n_devices;
}

double clustersim_result_device_value(const clustersim_result *result, uint32_t device,
                                      const char *key)
{
    for (uint32_t k = 0; k < result->n_device_figures && device < result->n_devices; k++) {
        if (strcmp(result->device_keys[k], key) == 0)
            return result->device_values[(size_t)device * result->n_device_figures + k];
    }
    return (double)NAN;
}

clustersim_tasks clustersim_result_tasks(const clustersim_result *result)
{
    return result->tasks;
}

clustersim_memory clustersim_result_memory(const clustersim_result *result)
{
    return result->memory;
}

const char *clustersim_kind_name(uint32_t kind)
{
    return kind < CS_N_KINDS ? cs_kind_name(kind) : NULL;
}

const char *clustersim_category_name(uint32_t category)
{
    return category < CS_N_CATEGORIES ? cs_category_name(category) : NULL;
}
