#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/cli/heap.h"
#include "sim/cli/output-name.h"
#include "sim/cli/scenario-option.h"
#include "sim/run/low-memory.h"
#include "sim/run/print/report.h"
#include "sim/run/print/run-picture.h"
#include "sim/run/store-run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const cs_option options[] = {
    {"output", 'o', "FILE.h5", "Results file (default: the scenario's name with .h5)"},
    {"no-output", 0, NULL, "Write no results file"},
    CS_OPTION_SET,
    {"json", 0, NULL, "Print one JSON object instead of the summary"},
    {"no-picture", 0, NULL, "Print no timeline and memory bars on a terminal"},
    {"stop-on-oom", 0, NULL, "End the simulation when a device's memory is first exceeded"},
    {"fail-on-oom", 0, NULL, "Exit with status 4 if a device runs out of memory"},
    {"allocator", 0, "NAME",
     "Play the run on an allocator (overrides /memory/allocator): pytorch or none"},
    {"snapshot", 0, "FILE.pickle",
     "With an allocator: write its state on the fullest device at the peak, for PyTorch's memory "
     "viewer"},
    {"rates", 0, NULL, "Also store how the rate of each message changes"},
    {"every-event", 0, NULL,
     "Simulate every event by itself, without the shortcuts that give the same results faster"},
    {"low-memory", 0, NULL,
     "Run each task as it is generated, and drop it: a quarter of the memory, fewer figures, no "
     "results file"},
    {"runs", 0, "N", "Run N times, with seed, seed + 1, ..., and print how the figures vary"},
    CS_OPTION_JOBS,
    {0},
};

static cs_status check_low_memory(const cs_arguments *arguments, cs_error *error)
{
    static const char *const others[] = {"stop-on-oom", "runs", "snapshot"};
    if (!cs_arguments_flag(arguments, "low-memory"))
        return CS_OK;
    if (!cs_arguments_flag(arguments, "no-output"))
        return cs_error_add(error, CS_USAGE,
                            "run: --low-memory keeps no tasks to write: it needs --no-output");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (cs_arguments_flag(arguments, others[i]) || cs_arguments_value(arguments, others[i]))
            return cs_error_add(error, CS_USAGE, "run: --low-memory and --%s exclude each other",
                                others[i]);
    return CS_OK;
}

/* "NAME.h5" in the current folder, or what --output says; NULL with --no-output. Allocated. */
static cs_status output_name(const cs_arguments *arguments, const cs_scenario *scenario,
                             char **name, cs_error *error)
{
    const char *given = cs_arguments_value(arguments, "output");
    const char *snapshot = cs_arguments_value(arguments, "snapshot");
    *name = NULL;
    if (snapshot)
        CS_TRY(cs_file_check_output(snapshot, error));
    if (cs_arguments_flag(arguments, "no-output") && cs_arguments_flag(arguments, "rates"))
        return cs_error_add(error, CS_USAGE, "run: --rates and --no-output exclude each other");
    CS_TRY(check_low_memory(arguments, error));
    if (cs_arguments_flag(arguments, "no-output"))
        return given ? cs_error_add(error, CS_USAGE,
                                    "run: --output and --no-output exclude each other")
                     : CS_OK;
    if (given && strcmp(given, "-") == 0)
        return cs_error_add(error, CS_USAGE,
                            "run: results cannot go to standard output; --no-output writes none");
    CS_TRY(cs_output_check(arguments, "output", cs_endings_of_results, error));
    if (given && snapshot && strcmp(given, snapshot) == 0)
        return cs_error_add(error, CS_USAGE,
                            "run: --output and --snapshot name the same file %s; choose two names",
                            given);
    size_t bytes = strlen(scenario->name) + sizeof(".h5");
    *name = given ? strdup(given) : malloc(bytes);
    if (!*name)
        return cs_error_no_memory(error);
    if (!given)
        snprintf(*name, bytes, "%s.h5", scenario->name);
    for (char *at = *name; !given && *at; at++)
        *at = *at == '/' ? '_' : *at; /* a name, not a path */
    return CS_OK;
}

/* What a run made. */
typedef struct outcome {
    cs_simulation simulation;
    cs_runs runs; /* repeated ones */
} outcome;

static cs_status print_json(const cs_context *context, const cs_scenario *scenario,
                            const outcome *made, cs_error *error)
{
    cJSON *root = cs_report_json(scenario, &made->simulation);
    const cs_status status =
        root ? cs_runs_add_json(root, &made->runs, error) : cs_error_no_memory(error);
    if (status == CS_OK)
        return cs_print_json(root, context->out, error);
    cJSON_Delete(root);
    return status;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

/* By the first of the variables that says which characters the terminal has. */
static bool speaks_unicode(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    static const char *const words[] = {"UTF-8", "utf-8", "UTF8", "utf8"};
    size_t i = 0;
    while (i < sizeof(names) / sizeof(names[0]) && !is_set(names[i]))
        i++;
    if (i == sizeof(names) / sizeof(names[0]))
        return false;
    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++)
        if (strstr(getenv(names[i]), words[w]))
            return true;
    return false;
}

/* Only where a terminal shows it: what is read by programs stays as it is. Colours unless the
 * environment asks for none (https://no-color.org). */
static cs_status draw(const cs_context *context, const cs_arguments *arguments,
                      const cs_simulation *simulation, cs_error *error)
{
    enum { USUAL = 80 };
    struct winsize size = {0};
    const int terminal = fileno(context->out);
    const char *kind = getenv("TERM");
    const bool dumb = !kind || strcmp(kind, "dumb") == 0;
    if (cs_arguments_flag(arguments, "no-picture") || !isatty(terminal) ||
        simulation->without_tasks)
        return CS_OK;
    if (ioctl(terminal, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        size.ws_col = USUAL;
    const cs_text_canvas canvas = {.columns = size.ws_col,
                                   .unicode = speaks_unicode(),
                                   .colour = !dumb && !is_set("NO_COLOR")};
    return cs_run_picture(simulation, &canvas, context->out, error);
}

static cs_status print(const cs_context *context, const cs_arguments *arguments,
                       const cs_scenario *scenario, const outcome *made, const char *output,
                       cs_error *error)
{
    if (cs_arguments_flag(arguments, "json"))
        return print_json(context, scenario, made, error);
    cs_report_print(scenario, &made->simulation, context->out);
    CS_TRY(draw(context, arguments, &made->simulation, error));
    const cs_status status = cs_runs_print(&made->runs, context->out, error);
    if (status != CS_OK || !output)
        return status;
    fputs("\nresults: ", context->out);
    cs_text_puts(context->out, output);
    fprintf(context->out, " (%u tasks, hash %016" PRIx64 ")\n", made->simulation.graph.n_tasks,
            made->simulation.hash);
    return CS_OK;
}

static cs_status repeat(const cs_arguments *arguments, const cs_scenario *scenario,
                        const cs_simulation_options *how, outcome *made, cs_error *error)
{
    enum { MOST_RUNS = 1000000 };
    uint32_t n, jobs;
    CS_TRY(cs_arguments_between(arguments, "runs", 1, 1, MOST_RUNS, &n, error));
    CS_TRY(cs_arguments_jobs(arguments, &jobs, error));
    if (cs_arguments_flag(arguments, "low-memory"))
        return cs_simulate_low_memory(scenario, how, &made->simulation, error);
    cs_status status = cs_simulate(scenario, how, &made->simulation, error);
    if (status != CS_OK || n == 1)
        return status;
    return cs_runs_make(scenario, how, &made->simulation, n, jobs, &made->runs, error);
}

/* Of the device that reserves most. */
static cs_status write_snapshot(const cs_arguments *arguments, const cs_scenario *scenario,
                                const cs_simulation *simulation, cs_error *error)
{
    const char *path = cs_arguments_value(arguments, "snapshot");
    const cs_allocations *allocations = &simulation->allocations;
    uint32_t fullest = 0;
    if (!path)
        return CS_OK;
    for (uint32_t d = 1; d < allocations->n_devices; d++)
        if (allocations->devices[d].stats.peak_reserved >
            allocations->devices[fullest].stats.peak_reserved)
            fullest = d;
    return cs_allocations_snapshot(scenario, &simulation->graph, &simulation->trace, allocations,
                                   fullest, path, error);
}

/* The file is begun before the simulation, so that a folder that cannot be written to is known at
 * once. */
static cs_status simulate(const cs_context *context, const cs_arguments *arguments,
                          const cs_scenario *scenario, const char *output, outcome *made,
                          cs_error *error)
{
    cs_h5_file *file = NULL;
    if (!cs_progress_step(context->progress, "preparing", 0, 1)) /* from here on Ctrl-C cleans up */
        return cs_error_add(error, CS_INTERRUPTED, "interrupted");
    cs_status status = output ? cs_h5_create(output, context->progress, &file, error) : CS_OK;
    const cs_simulation_options options_of = {
        .stop_on_oom = cs_arguments_flag(arguments, "stop-on-oom"),
        .record_rates = cs_arguments_flag(arguments, "rates"),
        .every_event = cs_arguments_flag(arguments, "every-event"),
        .progress = context->progress};
    if (status == CS_OK)
        status = repeat(arguments, scenario, &options_of, made, error);
    if (status == CS_OK && file)
        status = cs_simulation_store(file, scenario, &made->simulation, NULL, error);
    if (status == CS_OK && file)
        status = cs_runs_store(file, &made->runs, error);
    if (status == CS_OK && file)
        status = cs_h5_commit(file, error);
    cs_h5_destroy(file);
    if (status == CS_OK)
        status = write_snapshot(arguments, scenario, &made->simulation, error);
    if (status == CS_OK)
        status = print(context, arguments, scenario, made, output, error);
    if (status == CS_OK)
        cs_notes_write(scenario, &made->simulation, &context->log);
    if (status == CS_OK && cs_arguments_flag(arguments, "fail-on-oom") &&
        cs_simulation_out_of_memory(&made->simulation))
        return cs_error_add(error, CS_LIMIT, "%s: out of memory, see above", scenario->name);
    return status;
}

/* The scenario, with the allocator that is asked for. */
static cs_status load(const cs_context *context, const cs_arguments *arguments,
                      cs_scenario *scenario, cs_error *error)
{
    const char *allocator = cs_arguments_value(arguments, "allocator");
    cJSON *root = NULL;
    cs_status status = cs_document_from(arguments, &root, error);
    if (status == CS_OK && allocator)
        status = cs_json_set(root, "/memory/allocator", allocator, "--allocator", error);
    if (status == CS_OK)
        status =
            cs_scenario_read_watched(root, arguments->words[0], context->progress, scenario, error);
    cJSON_Delete(root);
    if (status == CS_OK && cs_arguments_value(arguments, "snapshot") && !scenario->has_allocator) {
        cs_scenario_finish(scenario);
        return cs_error_add(error, CS_USAGE,
                            "run: --snapshot needs an allocator, such as --allocator pytorch");
    }
    return status;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    cs_scenario scenario = {0};
    outcome made = {0};
    char *output = NULL;
    cs_heap_give_back();
    cs_status status = load(context, arguments, &scenario, error);
    if (status == CS_OK)
        cs_log_each(&context->log, CS_LOG_WARNING, &scenario.warnings);
    if (status == CS_OK)
        status = output_name(arguments, &scenario, &output, error);
    if (status == CS_OK)
        status = simulate(context, arguments, &scenario, output, &made, error);
    free(output);
    cs_simulation_finish(&made.simulation);
    cs_runs_finish(&made.runs);
    cs_scenario_finish(&scenario);
    return status;
}

const cs_command cs_command_run = {
    .name = "run",
    .words = "SCENARIO.json",
    .min_words = 1,
    .max_words = 1,
    .summary = "simulate a scenario",
    .doc = "Simulates the scenario event by event. Prints throughput, bubble fraction, peak "
           "memory and where the time of each device goes, beside the closed forms from the "
           "schedule's paper.\n\n"
           "If the scenario has jitter, stragglers or background traffic, runs with different "
           "seeds differ. --runs N makes N of them, in threads, and adds mean, confidence "
           "interval and percentiles. All other output is that of the first run; the results file "
           "also has a table of all runs.\n\n"
           "On a terminal, a timeline and memory bars in characters follow (not with "
           "--no-picture), in colour unless NO_COLOR is set.\n\n"
           "The results file is HDF5 (docs/reference/results-file.md); `sim plot` and `sim "
           "report` show it. It is written completely or not at all.",
    .options = options,
    .run = run,
};
