#include "sim/base/text-stream.h"
#include "sim/library/handles.h"
#include "sim/run/figures.h"
#include "sim/run/print/report.h"
#include "sim/run/simulate.h"
#include "sim/run/store-run.h"

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

clustersim_status cs_library_done(cs_status status, const cs_error *said, cs_number_locale caller,
                                  clustersim_error **error)
{
    cs_number_locale_leave(caller);
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
    return i < clustersim_error_count(error) ? error->messages[i] : (clustersim_message){0};
}

void clustersim_error_free(clustersim_error *error)
{
    free(error);
}

cs_status cs_library_given(const void *argument, const char *name, cs_error *error)
{
    return argument ? CS_OK : cs_error_add(error, CS_USAGE, "%s: must not be NULL", name);
}

/* ---- scenarios ---- */

struct clustersim_scenario {
    cs_scenario scenario;
    clustersim_error *warnings;
};

cs_status cs_library_changes(const clustersim_change *changes, size_t n, const char *name,
                             cs_error *error)
{
    CS_TRY(n == 0 ? CS_OK : cs_library_given(changes, name, error));
    for (size_t i = 0; i < n; i++)
        if (!changes[i].pointer || !changes[i].value)
            return cs_error_add(error, CS_USAGE, "%s[%zu]: pointer and value must not be NULL",
                                name, i);
    return CS_OK;
}

cs_status cs_library_source(const clustersim_source *given, clustersim_source *source,
                            cs_error *error)
{
    CS_TRY(cs_library_given(given, "source", error));
    if (!given->path && !given->text)
        return cs_error_add(error, CS_USAGE, "source: needs the path of a file, or a text");
    CS_TRY(cs_library_changes(given->changes, given->n_changes, "changes", error));
    *source = *given;
    if (!source->path)
        source->path = "scenario";
    return CS_OK;
}

cs_status cs_library_document(const clustersim_source *source, cJSON **document, cs_error *error)
{
    cJSON *read = NULL;
    cs_status status =
        source->text ? cs_json_parse(source->path, source->text, strlen(source->text), &read, error)
                     : cs_json_load(source->path, &read, error);
    for (size_t i = 0; i < source->n_changes && status == CS_OK; i++)
        status = cs_json_set(read, source->changes[i].pointer, source->changes[i].value, "change",
                             error);
    if (status == CS_OK)
        *document = read;
    else
        cJSON_Delete(read);
    return status;
}

static cs_status read_scenario(const clustersim_source *source, const cs_progress *progress,
                               clustersim_scenario **scenario, cs_error *error)
{
    cJSON *document = NULL;
    CS_TRY(cs_library_document(source, &document, error));
    clustersim_scenario *made = calloc(1, sizeof(*made));
    cs_status status = made ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_scenario_read_watched(document, source->path, progress, &made->scenario, error);
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

clustersim_status clustersim_scenario_read(const clustersim_source *source,
                                           const clustersim_options *options,
                                           clustersim_scenario **scenario, clustersim_error **error)
{
    const cs_number_locale caller = cs_number_locale_enter();
    clustersim_options all = cs_library_options(options);
    const cs_progress progress = cs_library_progress(&all);
    clustersim_source checked = {0};
    cs_error said;
    cs_error_init(&said);
    cs_status status = cs_library_source(source, &checked, &said);
    if (status == CS_OK)
        status = cs_library_given(scenario, "scenario", &said);
    if (status == CS_OK)
        status = read_scenario(&checked, &progress, scenario, &said);
    return cs_library_done(status, &said, caller, error);
}

clustersim_status clustersim_scenario_load(const char *path, const clustersim_change *changes,
                                           size_t n, clustersim_scenario **scenario,
                                           clustersim_error **error)
{
    return clustersim_scenario_parse(path, NULL, changes, n, scenario, error);
}

clustersim_status clustersim_scenario_parse(const char *name, const char *text,
                                            const clustersim_change *changes, size_t n,
                                            clustersim_scenario **scenario,
                                            clustersim_error **error)
{
    const clustersim_source source = {name, text, changes, n};
    return clustersim_scenario_read(&source, NULL, scenario, error);
}

const char *clustersim_scenario_resolved(const clustersim_scenario *scenario)
{
    return scenario ? scenario->scenario.resolved : NULL;
}

const clustersim_error *clustersim_scenario_warnings(const clustersim_scenario *scenario)
{
    return scenario ? scenario->warnings : NULL;
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

clustersim_options cs_library_options(const clustersim_options *given)
{
    clustersim_options all = {0};
    if (given)
        memcpy(&all, given, given->size < sizeof(all) ? given->size : sizeof(all));
    return all;
}

static bool step(void *context, const char *what, uint64_t done, uint64_t total)
{
    const clustersim_options *options = context;
    const bool stopped = options->stop && __atomic_load_n(options->stop, __ATOMIC_RELAXED) != 0;
    return !stopped &&
           (!options->progress || options->progress(options->context, what, done, total) != 0);
}

cs_progress cs_library_progress(clustersim_options *options)
{
    return (cs_progress){step, options};
}

clustersim_result *cs_library_result_new(void)
{
    clustersim_result *made = calloc(1, sizeof(*made));
    if (!made)
        return NULL;
    cs_arena_init(&made->arena);
    cs_contents_init(&made->contents);
    return made;
}

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

static const void *values_of(const clustersim_result *result, const char *table, const char *name)
{
    return cs_library_column(result, table, name)->values;
}

/* A coded column as 32-bit numbers; NULL when memory runs out. */
static const uint32_t *codes_of(clustersim_result *result, const char *table, const char *name)
{
    const clustersim_column *column = cs_library_column(result, table, name);
    const uint8_t *from = column->values;
    uint32_t *codes = cs_arena_alloc(&result->arena, column->n, sizeof(*codes));
    for (size_t i = 0; codes && i < column->n; i++)
        codes[i] = from[i];
    return codes;
}

static cs_status take_tables(clustersim_result *result, cs_error *error)
{
    static const char tasks[] = "tasks", memory[] = "memory";
    result->tasks = (clustersim_tasks){.n = cs_library_column(result, tasks, "start")->n,
                                       .start = values_of(result, tasks, "start"),
                                       .end = values_of(result, tasks, "end"),
                                       .device = values_of(result, tasks, "device"),
                                       .peer = values_of(result, tasks, "peer"),
                                       .stage = values_of(result, tasks, "stage"),
                                       .mini_batch = values_of(result, tasks, "mini_batch"),
                                       .micro_batch = values_of(result, tasks, "micro_batch"),
                                       .kind = codes_of(result, tasks, "kind")};
    result->memory = (clustersim_memory){.n = cs_library_column(result, memory, "time")->n,
                                         .time = values_of(result, memory, "time"),
                                         .bytes = values_of(result, memory, "bytes"),
                                         .device = values_of(result, memory, "device"),
                                         .category = codes_of(result, memory, "category")};
    return result->tasks.kind && result->memory.category ? CS_OK : cs_error_no_memory(error);
}

static cs_status take_contents(const cs_outcome *outcome, const cs_progress *progress,
                               clustersim_result *result, cs_error *error)
{
    cs_h5_file *file = NULL;
    CS_TRY(cs_contents_open(&result->contents, progress, &file, error));
    const cs_status status =
        cs_simulation_store(file, outcome->scenario, outcome->simulation, NULL, error);
    cs_h5_destroy(file);
    CS_TRY(status);
    CS_TRY(cs_library_take_columns(result, error));
    return take_tables(result, error);
}

cs_status cs_library_close_text(FILE *out, cs_status status, cs_error *error)
{
    const bool failed = ferror(out);
    return (fclose(out) != 0 || failed) && status == CS_OK ? cs_error_no_memory(error) : status;
}

static cs_status take_text(const cs_outcome *outcome, clustersim_result *result, cs_error *error)
{
    size_t length;
    FILE *out = cs_text_stream(&result->text, &length);
    if (!out)
        return cs_error_no_memory(error);
    cs_report_print(outcome->scenario, outcome->simulation, out);
    return cs_library_close_text(out, CS_OK, error);
}

/* `progress` NULL: figures only. */
static cs_status take_outcome(const cs_outcome *outcome, const cs_progress *progress,
                              clustersim_result *result, cs_error *error)
{
    result->hash = outcome->simulation->hash;
    CS_TRY(take_figures(outcome, result, error));
    CS_TRY(take_devices(outcome, result, error));
    if (!progress)
        return CS_OK;
    CS_TRY(take_contents(outcome, progress, result, error));
    return take_text(outcome, result, error);
}

static cs_status run(const cs_scenario *scenario, clustersim_options *options,
                     clustersim_result **result, cs_error *error)
{
    const cs_progress progress = cs_library_progress(options);
    const cs_simulation_options how = {.stop_on_oom = options->stop_on_oom != 0,
                                       .seed_offset = options->seed_offset,
                                       .progress = &progress};
    cs_simulation simulation = {0};
    clustersim_result *made = cs_library_result_new();
    if (!made)
        return cs_error_no_memory(error);
    cs_status status = cs_simulate(scenario, &how, &simulation, error);
    if (status == CS_OK)
        status = take_outcome(&(cs_outcome){.scenario = scenario, .simulation = &simulation},
                              options->figures_only ? NULL : &progress, made, error);
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
    const cs_number_locale caller = cs_number_locale_enter();
    clustersim_options all = cs_library_options(options);
    cs_error said;
    cs_error_init(&said);
    cs_status status = cs_library_given(scenario, "scenario", &said);
    if (status == CS_OK)
        status = cs_library_given(result, "result", &said);
    if (status == CS_OK)
        status = run(&scenario->scenario, &all, result, &said);
    return cs_library_done(status, &said, caller, error);
}

void clustersim_result_free(clustersim_result *result)
{
    if (!result)
        return;
    cs_contents_finish(&result->contents);
    cs_arena_finish(&result->arena);
    free(result->text);
    free(result->json);
    free(result);
}

/* ---- results ---- */

uint64_t clustersim_result_hash(const clustersim_result *result)
{
    return result ? result->hash : 0;
}

size_t clustersim_result_figures(const clustersim_result *result, const clustersim_figure **figures)
{
    if (figures)
        *figures = result ? result->figures : NULL;
    return result ? result->n_figures : 0;
}

const clustersim_figure *clustersim_result_figure(const clustersim_result *result, const char *key)
{
    for (size_t i = 0; result && key && i < result->n_figures; i++) {
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
    return result ? result->n_devices : 0;
}

double clustersim_result_device_value(const clustersim_result *result, uint32_t device,
                                      const char *key)
{
    if (!key || device >= clustersim_result_devices(result))
        return (double)NAN;
    for (uint32_t k = 0; k < result->n_device_figures; k++) {
        if (strcmp(result->device_keys[k], key) == 0)
            return result->device_values[(size_t)device * result->n_device_figures + k];
    }
    return (double)NAN;
}

clustersim_tasks clustersim_result_tasks(const clustersim_result *result)
{
    return result ? result->tasks : (clustersim_tasks){0};
}

clustersim_memory clustersim_result_memory(const clustersim_result *result)
{
    return result ? result->memory : (clustersim_memory){0};
}

const char *clustersim_kind_name(uint32_t kind)
{
    return kind < CS_N_KINDS ? cs_kind_name(kind) : NULL;
}

const char *clustersim_category_name(uint32_t category)
{
    return category < CS_N_CATEGORIES ? cs_category_name(category) : NULL;
}
