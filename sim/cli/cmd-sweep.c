#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/version.h"
#include "sim/cli/heap.h"
#include "sim/cli/output-name.h"
#include "sim/cli/scenario-option.h"
#include "sim/study/sweep/sweep-file.h"
#include "sim/study/sweep/sweep-report.h"
#include "sim/study/sweep/sweep-runs.h"
#include "sim/study/sweep/sweep-section.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cs_option options[] = {
    {"vary", 'v', "/json/pointer=VALUES",
     "A key of the scenario and its values: 1,2,4  2..32  0..1..0.25  1..64..x2  1..1000..log7",
     true, NULL, CS_NAMES_POINTERS},
    {"zip", 0, NULL,
     "Vary all keys together (first with first, second with second) instead of a grid"},
    {"csv", 0, "FILE", "Points from a file: a line of JSON pointers, then a line per point"},
    {"output", 'o', "FILE",
     "Results file: .h5, or a .csv table (default: the scenario's name with -sweep.h5)"},
    {"no-output", 0, NULL, "Write no results file"},
    {"resume", 0, NULL, "Continue a sweep that was stopped"},
    {"table", 't', "FIGURES",
     "Print a row per point with these metrics: \"main\", or names such as makespan_s,tasks"},
    CS_OPTION_JOBS,
    CS_OPTION_SET,
    {"json", 0, NULL, "Print one JSON object instead of the summary"},
    {0},
};

/* ---- points: from the command line, a CSV file, or the scenario ---- */

static cs_status read_options(const cs_arguments *arguments, cs_space *space, cs_error *error)
{
    const char *const *texts;
    const char *csv = cs_arguments_value(arguments, "csv");
    bool zip = cs_arguments_flag(arguments, "zip");
    size_t n = cs_arguments_values(arguments, "vary", &texts);
    if (csv && (n > 0 || zip))
        return cs_error_add(error, CS_USAGE, "sweep: --csv excludes --vary and --zip");
    cs_status status = csv ? cs_space_read_csv(space, csv, error) : CS_OK;
    for (size_t i = 0; i < n && status == CS_OK; i++)
        status = cs_space_vary(space, "--vary", texts[i], error);
    return status == CS_OK
               ? cs_space_close(space, csv || zip ? CS_SPACE_LIST : CS_SPACE_GRID, error)
               : status;
}

/* Fills `space` from --vary, --zip and --csv or, without --vary and --csv, from the document's
 * "sweep". Sets the keys' quantities. */
static cs_status read_points(const cs_arguments *arguments, const cJSON *document, cs_space *space,
                             cs_error *error)
{
    const cJSON *sweep = cs_json_member(document, "sweep");
    bool given = cs_arguments_flag(arguments, "vary") || cs_arguments_flag(arguments, "csv");
    cs_status status = sweep && !given
                           ? cs_sweep_section_read(arguments->words[0], sweep, space, error)
                           : read_options(arguments, space, error);
    if (status == CS_OK)
        cs_sweep_set_quantities(space);
    return status;
}

/* Returns the command line without the options that do not affect results. The caller frees it;
 * NULL if memory runs out. */
static char *command_of(const cs_arguments *arguments)
{
    static const char *const kept[] = {"set", "vary", "zip", "csv"};
    enum { N_OPTIONS = sizeof(kept) / sizeof(kept[0]) };
    const char *const *values[N_OPTIONS];
    size_t n[N_OPTIONS], total = 0;
    for (size_t i = 0; i < N_OPTIONS; i++)
        total += n[i] = cs_arguments_values(arguments, kept[i], &values[i]);
    cs_sweep_word *words = malloc((total + 1) * sizeof(*words));
    if (!words)
        return NULL;
    total = 0;
    for (size_t i = 0; i < N_OPTIONS; i++)
        for (size_t v = 0; v < n[i]; v++) {
            const bool flag = strcmp(kept[i], "zip") == 0;
            words[total++] = (cs_sweep_word){kept[i], flag ? NULL : values[i][v]};
        }
    char *text = cs_sweep_command(arguments->words[0], words, total);
    free(words);
    return text;
}

/* Everything that a sweep needs from the command line and the files. */
typedef struct setup {
    cs_swept swept;
    char *command, *output, *journal;
    const char *table; /* metrics; NULL: no table */
    uint64_t identity;
} setup;

static void finish(setup *s)
{
    cs_swept_finish(&s->swept);
    free(s->command);
    free(s->output);
    free(s->journal);
}

/* ---- names and numbers ---- */

/* Names the output, --output or "NAME-sweep.h5", and its journal. */
static cs_status choose_output(setup *s, const cs_arguments *arguments, cs_error *error)
{
    const char *given = cs_arguments_value(arguments, "output");
    if (cs_arguments_flag(arguments, "no-output")) {
        if (given || cs_arguments_flag(arguments, "resume"))
            return cs_error_add(error, CS_USAGE,
                                "sweep: --no-output excludes --output and --resume");
        return CS_OK;
    }
    CS_TRY(cs_output_check(arguments, "output", cs_endings_of_sweeps, error));
    size_t bytes = strlen(given ? given : s->swept.name) + sizeof("-sweep.h5.journal");
    s->output = malloc(bytes);
    s->journal = malloc(bytes);
    if (!s->output || !s->journal)
        return cs_error_no_memory(error);
    snprintf(s->output, bytes, given ? "%s" : "%s-sweep.h5", given ? given : s->swept.name);
    for (char *at = s->output; !given && *at; at++)
        *at = *at == '/' ? '_' : *at; /* a name, not a path */
    snprintf(s->journal, bytes, "%s.journal", s->output);
    return cs_file_check_output(s->output, error);
}

static cs_status prepare(setup *s, const cs_arguments *arguments, cs_error *error)
{
    CS_TRY(cs_arguments_jobs(arguments, &s->swept.sweep.jobs, error));
    CS_TRY(cs_document_from(arguments, &s->swept.base, error));
    CS_TRY(read_points(arguments, s->swept.base, &s->swept.sweep.space, error));
    s->swept.sweep.keep_results = cs_arguments_flag(arguments, "json");
    s->table = cs_arguments_value(arguments, "table");
    if (s->table && s->swept.sweep.keep_results)
        return cs_error_add(error, CS_USAGE, "sweep: --table excludes --json");
    s->command = command_of(arguments);
    if (!s->command)
        return cs_error_no_memory(error);
    CS_TRY(cs_swept_prepare(&s->swept, error));
    CS_TRY(choose_output(s, arguments, error));
    return cs_sweep_identity(&s->swept.sweep, s->swept.resolved, SIM_VERSION, &s->identity, error);
}

/* ---- the sweep ---- */

static cs_status tell_failures(const cs_context *context, const setup *s,
                               const cs_sweep_results *results, cs_error *error)
{
    char *text;
    const cs_status status = cs_swept_failures(&s->swept, results, &text, error);
    if (status == CS_OK && text)
        cs_log_write(&context->log, CS_LOG_WARNING, "%s", text);
    free(text);
    return status;
}

static cs_status store(const cs_context *context, const setup *s, const cs_sweep_shown *shown,
                       cs_error *error)
{
    const cs_sweep_info info = {s->swept.name, s->swept.resolved, s->command, SIM_VERSION};
    if (!s->output)
        return CS_OK;
    if (cs_output_ends_in(s->output, ".csv"))
        return cs_sweep_table_write(shown, s->table, s->output, error);
    return cs_sweep_store(s->output, &info, shown->space, shown->results, context->progress, error);
}

static cs_status print(const cs_context *context, const setup *s, const cs_journal *journal,
                       const cs_sweep_shown *shown, cs_error *error)
{
    cs_status status = CS_OK;
    if (s->swept.sweep.keep_results)
        return cs_sweep_report_json(shown->space, journal, shown->results, context->out, error);
    if (s->table)
        status = cs_sweep_table_print(shown, s->table, context->out, error);
    else
        cs_sweep_report_print(shown, context->out);
    if (status == CS_OK && s->output) {
        fputs("\nresults: ", context->out);
        cs_text_puts(context->out, s->output);
        fputc('\n', context->out);
    }
    return status;
}

static cs_status show(const cs_context *context, const setup *s, const cs_journal *journal,
                      const cs_sweep_results *results, cs_error *error)
{
    cs_axis_values axes[CS_SPACE_AXES_MAX];
    const cs_sweep_shown shown = {&s->swept.sweep.space, results, axes};
    cs_arena arena;
    cs_status status = CS_OK;
    cs_arena_init(&arena);
    for (uint32_t a = 0; a < s->swept.sweep.space.n_axes && status == CS_OK; a++)
        status = cs_axis_values_read(&s->swept.sweep.space.axes[a], &arena, &axes[a], error);
    if (status == CS_OK)
        status = store(context, s, &shown, error);
    if (status == CS_OK)
        status = print(context, s, journal, &shown, error);
    cs_arena_finish(&arena);
    return status;
}

static void tell_rest(const cs_log *log, const setup *s, const cs_sweep_results *results)
{
    uint32_t first = 0;
    while (first < results->n_points && results->done[first])
        first++;
    char *set = first < results->n_points ? cs_space_describe(&s->swept.sweep.space, first) : NULL;
    cs_log_write(log, CS_LOG_INFO, "%u of %u points are done%s%s; --resume continues",
                 results->n_done, results->n_points, set ? "; the first that is missing: " : "",
                 set ? set : "");
    free(set);
}

/* If the leader died, its journal has the finished points. */
static cs_status help(const cs_context *context, const setup *s, cs_journal *journal,
                      cs_sweep_results *results, cs_error *error)
{
    const cs_log log = {stderr, CS_LOG_INFO};
    const cs_sweep *swept = &s->swept.sweep;
    const cs_status status = cs_sweep_run(swept, context->progress, journal, results, error);
    if (status == CS_INTERRUPTED && cs_team_is_orphan(swept->team) && s->journal &&
        access(s->journal, R_OK) == 0 &&
        cs_sweep_open(swept, s->journal, s->identity, true, journal, results, error) == CS_OK)
        tell_rest(&log, s, results);
    return status;
}

static cs_status sweep(const cs_context *context, const setup *s, bool resume, cs_journal *journal,
                       cs_sweep_results *results, cs_error *error)
{
    if (cs_team_helps(context->team))
        return help(context, s, journal, results, error);
    CS_TRY(
        cs_sweep_open(&s->swept.sweep, s->journal, s->identity, resume, journal, results, error));
    if (resume)
        cs_log_write(&context->log, CS_LOG_INFO, "%u of %u points were done before",
                     results->n_done, results->n_points);
    cs_status status = cs_sweep_run(&s->swept.sweep, context->progress, journal, results, error);
    if (status == CS_OK)
        status = show(context, s, journal, results, error);
    if (status != CS_OK && s->journal)
        tell_rest(&context->log, s, results);
    if (status == CS_OK)
        cs_journal_remove(journal);
    return status == CS_OK ? tell_failures(context, s, results, error) : status;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    setup s = {0};
    cs_journal journal = {.file = -1};
    cs_sweep_results results = {0};
    cs_heap_keep();
    cs_swept_init(&s.swept, arguments->words[0]);
    s.swept.sweep.origin = "--vary";
    s.swept.sweep.team = context->team;
    cs_status status = prepare(&s, arguments, error);
    if (status == CS_OK)
        cs_log_each(&context->log, CS_LOG_WARNING, &s.swept.warnings);
    cs_team_identify(context->team, s.identity);
    if (status == CS_OK)
        status = cs_sweep_results_init(&results, s.swept.sweep.space.n_points, error);
    if (status == CS_OK)
        status =
            sweep(context, &s, cs_arguments_flag(arguments, "resume"), &journal, &results, error);
    cs_journal_close(&journal);
    cs_sweep_results_finish(&results);
    finish(&s);
    return status;
}

const cs_command cs_command_sweep = {
    .name = "sweep",
    .words = "SCENARIO.json",
    .min_words = 1,
    .max_words = 1,
    .summary = "simulate a scenario at many points",
    .doc = "Runs the scenario for every combination of the values of --vary, in threads, and "
           "stores every metric as an array with one dimension per varied key. Without --vary "
           "and --csv, the scenario's own section \"sweep\" says what varies.\n\n"
           "A point that fails is recorded with its message, and the others still run; the exit "
           "status is 1 only if all fail. A sweep that was stopped at any moment continues with "
           "--resume and produces the same file; until then FILE.h5.journal holds the finished "
           "points. Processes that mpirun starts share the points "
           "(docs/how-to/many-machines.md).\n\n"
           "VALUES: 1,2,4 or words; 2..32 in steps of 1; 0..1..0.25 in steps of 0.25; 1..64..x2, "
           "each value twice the previous one; 1..1000..log7, 7 values with equal ratios; "
           "0..1..lin5, 5 values at equal distances; 1..32..x2 GB/s with a unit. "
           "docs/how-to/sweeps.md explains them.\n\n"
           "FIGURES: any number of `sim run --json` by its name. \"main\" means iteration "
           "time, throughput, bubble fraction and peak memory. With -o FILE.csv they are the "
           "columns of the file, in SI base units; without --table the file has all metrics.",
    .options = options,
    .shared = true,
    .run = run,
};
