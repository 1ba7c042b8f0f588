#include "sim/base/version.h"
#include "sim/cli/output-name.h"
#include "sim/cli/report.h"
#include "sim/cli/scenario-option.h"
#include "sim/cli/sweep-points.h"
#include "sim/cli/sweep-report.h"
#include "sim/sweep/sweep-file.h"

#include <stdlib.h>
#include <string.h>

enum { PROBES = 64 };

static const cs_option options[] = {
    {"vary", 'v', "/json/pointer=VALUES",
     "A key of the scenario and its values: 1,2,4  2..32  0..1..0.25  1..64..x2  1..1000..log7",
     true, NULL, CS_NAMES_POINTERS},
    {"zip", 0, NULL,
     "Take all first values together, then all second ones, instead of every combination", false,
     NULL},
    {"csv", 0, "FILE", "Points from a file: a line of JSON pointers, then a line per point", false,
     NULL},
    {"output", 'o', "FILE",
     "Results file: .h5, or a .csv table (default: the scenario's name with -sweep.h5)", false,
     NULL},
    {"no-output", 0, NULL, "Write no results file", false, NULL},
    {"resume", 0, NULL, "Continue a sweep that was stopped", false, NULL},
    {"table", 't', "FIGURES",
     "Print a row per point with these figures: \"main\", or names like makespan_s,tasks", false,
     NULL},
    CS_OPTION_JOBS,
    CS_OPTION_SET,
    {"json", 0, NULL, "Print one JSON object instead of the summary", false, NULL},
    {0},
};

/* All that a sweep needs, from the command line and the files. */
typedef struct setup {
    const char *path;
    cJSON *base; /* without its "sweep" */
    cs_sweep sweep;
    char *name, *resolved; /* of the base, or of a point if only together with values it is whole */
    char *command, *output, *journal;
    const char *table; /* figures, or NULL */
    uint64_t identity;
    cs_error warnings; /* about a point */
} setup;

static void finish(setup *s)
{
    cs_space_finish(&s->sweep.space);
    cJSON_Delete(s->base);
    free(s->name);
    free(s->resolved);
    free(s->command);
    free(s->output);
    free(s->journal);
}

/* ---- one point ---- */

/* Runs in several threads at a time: all that it touches is its own. */
static cs_status run_point(const void *context, const cJSON *document, const cs_progress *progress,
                           cJSON **result, cs_error *error)
{
    const setup *s = context;
    cs_scenario scenario = {0};
    cs_simulation simulation = {0};
    cs_simulation_options how = {.progress = progress};
    cs_status status = cs_scenario_read_watched(document, s->path, progress, &scenario, error);
    if (status == CS_OK)
        status = cs_simulate(&scenario, &how, &simulation, error);
    if (status == CS_OK) {
        *result = cs_report_json(&scenario, &simulation);
        if (!*result)
            status = cs_error_no_memory(error);
    }
    cs_simulation_finish(&simulation);
    cs_scenario_finish(&scenario);
    return status;
}

/* ---- the base ---- */

/* Takes name and resolved text from a document, if it is a scenario. */
static cs_status resolve(setup *s, const cJSON *document, cs_error *error)
{
    cs_scenario scenario = {0};
    cs_status status = cs_scenario_read(document, s->path, &scenario, error);
    if (status != CS_OK)
        return status;
    s->warnings = scenario.warnings;
    if (!s->resolved) {
        s->name = strdup(scenario.name);
        s->resolved = strdup(scenario.resolved);
        if (!s->name || !s->resolved)
            status = cs_error_no_memory(error);
    }
    cs_scenario_finish(&scenario);
    return status;
}

/* Whether a message says that nothing has a key that is varied, or one on the way to it. */
static bool tells_unknown_key(const cs_space *space, const cs_error *said)
{
    cs_error_message message;
    for (uint32_t i = 0; cs_error_message_at(said, i, &message); i++) {
        const size_t length = message.kind == CS_ERROR_UNKNOWN_KEY ? strlen(message.subject) : 0;
        for (uint32_t a = 0; length > 0 && a < space->n_axes; a++) {
            const char *pointer = space->axes[a].pointer;
            if (strncmp(pointer, message.subject, length) == 0 &&
                (pointer[length] == '/' || pointer[length] == '\0'))
                return true;
        }
    }
    return false;
}

/* A key that no point knows is a slip of the pen, to be told before thousands of points say so. A
 * key of one schedule only is none when the schedule is varied too. */
static cs_status probe(setup *s, cs_error *error)
{
    const cs_space *space = &s->sweep.space;
    cs_error first, other;
    cs_status status = CS_OK;
    cs_error_init(&first);
    for (uint32_t i = 0; i < PROBES; i++) {
        cs_error *said = i == 0 ? &first : &other;
        cJSON *document = cJSON_Duplicate(s->base, true);
        uint32_t point = (uint32_t)((uint64_t)i * space->n_points / PROBES);
        cs_error_init(said);
        if (!document)
            return cs_error_no_memory(error);
        status = cs_space_apply(space, point, s->sweep.origin, document, error);
        cs_status read = status == CS_OK ? resolve(s, document, said) : status;
        cJSON_Delete(document);
        if (status != CS_OK || read == CS_OK || !tells_unknown_key(space, said))
            return status;
    }
    cs_error_add_all(error, &first);
    return CS_INVALID;
}

/* A base that is no scenario without the values of a point is stored as it stands. */
static cs_status take_base(setup *s, cs_error *error)
{
    cs_error ignored;
    cs_error_init(&ignored);
    cs_status status = resolve(s, s->base, &ignored);
    if (status == CS_NO_MEMORY)
        return cs_error_no_memory(error);
    status = probe(s, error);
    if (status != CS_OK || s->resolved)
        return status;
    const char *name = cJSON_GetStringValue(cs_json_member(s->base, "name"));
    s->name = strdup(name ? name : "sweep");
    s->resolved = cs_json_print(s->base);
    return s->name && s->resolved ? CS_OK : cs_error_no_memory(error);
}

/* ---- names and numbers ---- */

/* "NAME-sweep.h5", or what --output says, and its journal's name. */
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
    size_t bytes = strlen(given ? given : s->name) + sizeof("-sweep.h5.journal");
    s->output = malloc(bytes);
    s->journal = malloc(bytes);
    if (!s->output || !s->journal)
        return cs_error_no_memory(error);
    snprintf(s->output, bytes, given ? "%s" : "%s-sweep.h5", given ? given : s->name);
    for (char *at = s->output; !given && *at; at++)
        *at = *at == '/' ? '_' : *at; /* a name, not a path */
    snprintf(s->journal, bytes, "%s.journal", s->output);
    return CS_OK;
}

static cs_status prepare(setup *s, const cs_arguments *arguments, cs_error *error)
{
    CS_TRY(cs_arguments_jobs(arguments, &s->sweep.jobs, error));
    CS_TRY(cs_document_from(arguments, &s->base, error));
    CS_TRY(cs_sweep_points(arguments, s->base, &s->sweep.space, error));
    cJSON_DeleteItemFromObjectCaseSensitive(s->base, "sweep");
    s->sweep.base = s->base;
    s->sweep.keep_results = cs_arguments_flag(arguments, "json");
    s->table = cs_arguments_value(arguments, "table");
    if (s->table && s->sweep.keep_results)
        return cs_error_add(error, CS_USAGE, "sweep: --table excludes --json");
    s->command = cs_sweep_command(arguments);
    if (!s->command)
        return cs_error_no_memory(error);
    CS_TRY(take_base(s, error));
    CS_TRY(choose_output(s, arguments, error));
    return cs_sweep_identity(&s->sweep, s->resolved, SIM_VERSION, &s->identity, error);
}

/* ---- the sweep ---- */

static uint32_t first_failed(const cs_sweep_results *results)
{
    uint32_t i = 0;
    while (!results->errors[i])
        i++;
    return i;
}

/* Where a section's keys depend on one of them, which is varied alone, the others do not go with
 * all of its values. Prints how the section is varied as a whole: as it is, and with the failing
 * value. */
static void print_hint(const setup *s, uint32_t point, const char *unknown_key, FILE *out)
{
    static const struct {
        const char *section, *key;
    } kinds[] = {{"schedule", "kind"}, {"platform", "topology"}};
    const cs_space *space = &s->sweep.space;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        char prefix[32], pointer[64];
        snprintf(prefix, sizeof(prefix), "/%s/", kinds[k].section);
        snprintf(pointer, sizeof(pointer), "%s%s", prefix, kinds[k].key);
        const bool within = strncmp(unknown_key, prefix, strlen(prefix)) == 0 &&
                            !strchr(unknown_key + strlen(prefix), '/');
        for (uint32_t a = 0; within && a < space->n_axes; a++) {
            if (strcmp(space->axes[a].pointer, pointer) != 0)
                continue;
            char *whole = cs_json_line(cs_json_member(s->base, kinds[k].section));
            fprintf(out, "; vary the whole section where keys differ: --vary '/%s=%s,{\"%s\": %s}'",
                    kinds[k].section, whole ? whole : "{...}", kinds[k].key,
                    cs_space_value(space, point, a));
            free(whole);
        }
    }
}

/* "{"/schedule/kind": "dp"}: what is wrong"; NULL when memory runs out. */
static char *failure_text(const setup *s, const cs_sweep_results *results, uint32_t point)
{
    char *text = NULL, *set = cs_space_describe(&s->sweep.space, point);
    size_t length;
    FILE *out = open_memstream(&text, &length);
    const char *message = results->errors[point];
    if (out) {
        fprintf(out, "%s: %.*s", set ? set : "", (int)strcspn(message, "\n"), message);
        if (results->unknown_keys[point])
            print_hint(s, point, results->unknown_keys[point], out);
    }
    free(set);
    if (out && fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static cs_status tell_failures(const cs_context *context, const setup *s,
                               const cs_sweep_results *results, cs_error *error)
{
    if (results->n_failed == 0)
        return CS_OK;
    char *text = failure_text(s, results, first_failed(results));
    cs_status status = CS_OK;
    if (results->n_failed == results->n_points)
        status = cs_error_add(error, CS_FAILED, "all of %u points failed; the first, %s",
                              results->n_points, text ? text : "");
    else
        cs_log_write(&context->log, CS_LOG_WARNING, "%u of %u points failed; the first, %s",
                     results->n_failed, results->n_points, text ? text : "");
    free(text);
    return status;
}

static cs_status store(const cs_context *context, const setup *s, const cs_sweep_shown *shown,
                       cs_error *error)
{
    const cs_sweep_info info = {s->name, s->resolved, s->command, SIM_VERSION};
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
    if (s->sweep.keep_results)
        return cs_sweep_report_json(shown->space, journal, shown->results, context->out, error);
    if (s->table)
        status = cs_sweep_table_print(shown, s->table, context->out, error);
    else
        cs_sweep_report_print(shown, context->out);
    if (status == CS_OK && s->output)
        fprintf(context->out, "\nresults: %s\n", s->output);
    return status;
}

static cs_status show(const cs_context *context, const setup *s, const cs_journal *journal,
                      const cs_sweep_results *results, cs_error *error)
{
    cs_axis_values axes[CS_SPACE_AXES_MAX];
    const cs_sweep_shown shown = {&s->sweep.space, results, axes};
    cs_arena arena;
    cs_status status = CS_OK;
    cs_arena_init(&arena);
    for (uint32_t a = 0; a < s->sweep.space.n_axes && status == CS_OK; a++)
        status = cs_axis_values_read(&s->sweep.space.axes[a], &arena, &axes[a], error);
    if (status == CS_OK)
        status = store(context, s, &shown, error);
    if (status == CS_OK)
        status = print(context, s, journal, &shown, error);
    cs_arena_finish(&arena);
    return status;
}

static cs_status sweep(const cs_context *context, const setup *s, bool resume, cs_journal *journal,
                       cs_sweep_results *results, cs_error *error)
{
    CS_TRY(cs_sweep_open(&s->sweep, s->journal, s->identity, resume, journal, results, error));
    if (resume)
        cs_log_write(&context->log, CS_LOG_INFO, "%u of %u points were done before",
                     results->n_done, results->n_points);
    cs_status status = cs_sweep_run(&s->sweep, context->progress, journal, results, error);
    if (status != CS_OK && s->journal)
        cs_log_write(&context->log, CS_LOG_INFO, "%u of %u points are done; --resume continues",
                     results->n_done, results->n_points);
    if (status == CS_OK)
        status = show(context, s, journal, results, error);
    if (status == CS_OK)
        cs_journal_remove(journal);
    return status == CS_OK ? tell_failures(context, s, results, error) : status;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    setup s = {.path = arguments->words[0], .sweep = {.origin = "--vary", .run = run_point}};
    cs_journal journal = {.file = -1};
    cs_sweep_results results = {0};
    s.sweep.context = &s;
    cs_space_init(&s.sweep.space);
    cs_status status = prepare(&s, arguments, error);
    if (status == CS_OK)
        cs_log_each(&context->log, CS_LOG_WARNING, &s.warnings);
    if (status == CS_OK)
        status = cs_sweep_results_init(&results, s.sweep.space.n_points, error);
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
    .doc =
        "Runs the scenario once for every combination of the values of --vary, in threads, and "
        "stores every figure of the runs as an array with a dimension per varied key. Without "
        "--vary and --csv, the scenario's own section \"sweep\" says what is varied.\n\n"
        "A point that fails is recorded with its message, and the rest goes on; the exit status "
        "is 1 "
        "when all fail. A sweep that was stopped at any moment goes on with --resume, and ends "
        "in the same file: what is done stands in FILE.h5.journal until then.\n\n"
        "VALUES: 1,2,4 or words; 2..32 in steps of 1; 0..1..0.25 in steps of 0.25; 1..64..x2, "
        "every "
        "next one twice as large; 1..1000..log7, 7 values with equal ratios; 0..1..lin5, 5 with "
        "equal "
        "distances; 1..32..x2 GB/s with a unit. docs/how-to/sweeps.md explains all of it.\n\n"
        "FIGURES: every number of `sim run --json` under its name; main stands for those that most "
        "sweeps are about: iteration time, throughput, bubble, peak memory. With -o FILE.csv they "
        "are what the file has, in SI base units; without --table it has all.",
    .options = options,
    .run = run,
};
