#include "sim/base/file.h"
#include "sim/base/text-stream.h"
#include "sim/base/text.h"
#include "sim/base/version.h"
#include "sim/cli/command.h"
#include "sim/cli/heap.h"
#include "sim/cli/import-run.h"
#include "sim/cli/output-name.h"
#include "sim/cli/scenario-option.h"
#include "sim/cli/validate-fit.h"
#include "sim/cli/validate-report.h"
#include "sim/study/validate/point-selection.h"
#include "sim/study/validate/prediction-journal.h"
#include "sim/study/validate/validation-file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FILES = 10000 };

static const cs_option options[] = {
    {"select", 's', "KEY=PATTERN,...",
     "Only points that match, by id, dataset, gpu, model, kind, schedule, precision, framework, "
     "quality or feature",
     true, NULL},
    {"like", 0, "SCENARIO.json",
     "Only runs like this scenario: on its device, in its precision, ... (as far as there are "
     "at least ten)",
     false, NULL},
    {"points", 'p', NULL, "Also print a line per run", false, NULL},
    {"tables", 0, NULL, "Also print errors by dataset, GPU and feature, and assumptions", false,
     NULL},
    {"by-group", 0, NULL,
     "Also print, by dataset and group of runs that differ in their layout only, the best layout "
     "measured, the best predicted and what it loses",
     false, NULL},
    {"trends", 0, NULL,
     "Also print how predicted / measured changes for each doubling of tensor ranks, pipeline "
     "ranks, micro-batch and GPUs",
     false, NULL},
    {"decompose", 0, NULL,
     "Print, by dataset, how predicted steps are divided, and which parts would have to be longer "
     "or shorter to match the measurements",
     false, NULL},
    {"scenario", 0, "ID", "Print the scenario of this point instead of predicting", false, NULL},
    {"fit", 0, NULL,
     "Fit one factor on the times of kernels to your own runs, at least three, of one device and "
     "one framework",
     false, NULL},
    {"output", 'o', "FILE.h5|FILE.json",
     "Write points and errors to a file; with --fit, the device with its factor, as JSON", false,
     NULL},
    {"runtime-output", 0, "FILE.json", "With --fit: write the runtime with its factor instead",
     false, NULL},
    {"resume", 0, NULL, "Continue a validation that was stopped", false, NULL},
    {"json", 0, NULL, "Print one JSON object instead of the tables", false, NULL},
    {"set", 0, "/json/pointer=VALUE",
     "Change each scenario before it is read, such as /model/device=mine.json", true, NULL,
     CS_NAMES_POINTERS},
    CS_OPTION_JOBS,
    {0},
};

static cs_status load(const cs_arguments *arguments, cs_points *points, cs_error *error)
{
    cs_status status = CS_OK;
    cs_arena_init(&points->arena);
    if (arguments->n_words == 0)
        return cs_points_load_shipped(points, error);
    for (size_t i = 0; i < arguments->n_words && status == CS_OK; i++)
        status = cs_points_load(arguments->words[i], points, error);
    return status;
}

/* ---- one scenario ---- */

static cs_status print_scenario(const cs_context *context, const cs_arguments *arguments,
                                const cs_points *points, const char *id, cs_error *error)
{
    cs_recipe made = {0};
    const cs_point *point = cs_points_find(points, id, error);
    if (!point)
        return CS_USAGE;
    cs_status status = cs_recipe_make(&point->run, &made, error);
    if (status == CS_OK && made.document)
        status = cs_document_change(arguments, made.document, error);
    if (status == CS_OK)
        status = cs_recipe_write(context, &made, point->id, "-", error);
    cs_recipe_finish(&made);
    return status;
}

/* ---- all points ---- */

static void print_option(FILE *out, const cs_arguments *arguments, const char *name)
{
    const char *const *values;
    const size_t n = cs_arguments_values(arguments, name, &values);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, " --%s ", name);
        cs_text_print_word(out, values[i]);
    }
}

/* What was asked for, as a command line. */
static char *command_text(const cs_arguments *arguments)
{
    char *text = NULL;
    size_t length;
    FILE *out = cs_text_stream(&text, &length);
    if (!out)
        return NULL;
    fputs("sim validate", out);
    print_option(out, arguments, "select");
    print_option(out, arguments, "like");
    print_option(out, arguments, "set");
    for (size_t i = 0; i < arguments->n_words; i++) {
        fputc(' ', out);
        cs_text_print_word(out, arguments->words[i]);
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static cs_status store(const cs_context *context, const cs_arguments *arguments,
                       const cs_validation_shown *shown, cs_error *error)
{
    const char *output = cs_arguments_value(arguments, "output");
    char *command = output ? command_text(arguments) : NULL;
    if (!output)
        return CS_OK;
    if (!command)
        return cs_error_no_memory(error);
    const cs_validation_info info = {command, SIM_VERSION};
    const cs_status status = cs_validation_store(output, &info, shown->predictions,
                                                 shown->judgement, context->progress, error);
    free(command);
    if (status == CS_OK)
        cs_log_write(&context->log, CS_LOG_INFO, "wrote %s", output);
    return status;
}

/* Answers for --like. */
typedef struct asked {
    cs_likeness likeness; /* zeroed without --like */
    double step_time;     /* predicted, s */
} asked;

static cs_status show(const cs_context *context, const cs_arguments *arguments,
                      const cs_predictions *predictions, asked *like, cs_error *error)
{
    cs_judgement judgement = {0};
    cs_validation_shown shown = {.predictions = predictions,
                                 .judgement = &judgement,
                                 .like = cs_arguments_value(arguments, "like"),
                                 .likeness = &like->likeness,
                                 .step_time = like->step_time};
    const cs_validation_options wanted = {
        cs_arguments_flag(arguments, "points"), cs_arguments_flag(arguments, "tables"),
        cs_arguments_flag(arguments, "by-group"), cs_arguments_flag(arguments, "trends"),
        cs_arguments_flag(arguments, "decompose")};
    cs_status status = cs_judgement_make(predictions, &judgement, error);
    if (status == CS_OK && shown.like)
        shown.interval = cs_interval_find(&judgement.left_out, like->likeness.traits);
    if (status == CS_OK)
        status = store(context, arguments, &shown, error);
    if (status == CS_OK && cs_arguments_flag(arguments, "json"))
        status = cs_validate_print_json(&shown, context->out, error);
    else if (status == CS_OK)
        cs_validate_print(&shown, &wanted, context->out);
    cs_judgement_finish(&judgement);
    return status;
}

/* Names of files, which only --set can have given, are those of the current folder: a point's id
 * may look like a path, but there is no such folder. False when memory runs out. */
static bool complete_names(cJSON *value, const char *folder)
{
    const char *name = cJSON_GetStringValue(value);
    bool done = true;
    if (name && name[0] != '/' && cs_output_ends_in(name, ".json")) {
        const size_t bytes = strlen(folder) + strlen(name) + 2;
        char *whole = malloc(bytes);
        if (whole)
            snprintf(whole, bytes, "%s/%s", folder, name);
        done = whole && cJSON_SetValuestring(value, whole);
        free(whole);
    }
    cJSON *member;
    cJSON_ArrayForEach(member, value) done = done && complete_names(member, folder);
    return done;
}

static cs_status change_scenario(const void *arguments, cJSON *document, cs_error *error)
{
    char folder[PATH_MAX];
    CS_TRY(cs_document_change(arguments, document, error));
    if (!getcwd(folder, sizeof(folder)))
        return cs_error_system(error, CS_IO, ".", "cannot tell the current folder", errno);
    return complete_names(document, folder) ? CS_OK : cs_error_no_memory(error);
}

/* How they are predicted, and where what is done is noted. */
typedef struct work {
    uint32_t jobs;
    bool resume;
    char *path; /* of the journal; NULL: none */
    cs_journal journal;
    asked like;
} work;

static void tell_rest(const cs_log *log, const cs_predictions *predictions)
{
    cs_log_write(log, CS_LOG_INFO, "%u of %u points are done; --resume continues",
                 predictions->n_done, predictions->n_runs);
}

/* When the leader died, its journal has what was done. */
static cs_status help(const cs_context *context, work *w, cs_predictions *predictions,
                      cs_error *error)
{
    const cs_log log = {stderr, CS_LOG_INFO};
    const cs_status status =
        cs_predict(predictions, w->jobs, context->team, NULL, context->progress, error);
    if (status == CS_INTERRUPTED && cs_team_is_orphan(context->team) && w->path &&
        access(w->path, R_OK) == 0 &&
        cs_predictions_open(predictions, w->path, SIM_VERSION, true, &w->journal, error) == CS_OK)
        tell_rest(&log, predictions);
    return status;
}

static cs_status predict(const cs_context *context, work *w, cs_predictions *predictions,
                         cs_error *error)
{
    if (w->path)
        CS_TRY(
            cs_predictions_open(predictions, w->path, SIM_VERSION, w->resume, &w->journal, error));
    if (w->resume)
        cs_log_write(&context->log, CS_LOG_INFO, "%u of %u points were done before",
                     predictions->n_done, predictions->n_runs);
    const cs_status status =
        cs_predict(predictions, w->jobs, context->team, &w->journal, context->progress, error);
    if (status != CS_OK && w->path)
        tell_rest(&context->log, predictions);
    return status;
}

/* A table without a prediction says nothing. */
static cs_status refuse_failures(const cs_predictions *predictions, cs_error *error)
{
    if (predictions->n_states[CS_PREDICTION_FAILED] < predictions->n)
        return CS_OK;
    const cs_prediction *first = &predictions->items[0];
    return cs_error_add(error, CS_FAILED, "all of %u points failed; the first, %s: %s",
                        predictions->n, first->point->id, first->message);
}

static cs_status validate_points(const cs_context *context, const cs_arguments *arguments,
                                 const cs_point **points, uint32_t n, work *w, cs_error *error)
{
    const cs_scenario_change change = {change_scenario, arguments};
    cs_predictions predictions = {0};
    cs_status status = cs_predictions_make(points, n, &change, &predictions, error);
    if (status == CS_OK && cs_team_helps(context->team)) {
        status = help(context, w, &predictions, error);
    } else if (status == CS_OK) {
        status = predict(context, w, &predictions, error);
        if (status == CS_OK)
            status = show(context, arguments, &predictions, &w->like, error);
        if (status == CS_OK)
            cs_journal_remove(&w->journal);
        if (status == CS_OK)
            status = refuse_failures(&predictions, error);
    }
    cs_predictions_finish(&predictions);
    return status;
}

/* "FILE.h5.journal"; none without an output. */
static cs_status name_journal(const cs_arguments *arguments, work *w, cs_error *error)
{
    const char *output = cs_arguments_value(arguments, "output");
    w->resume = cs_arguments_flag(arguments, "resume");
    if (!output)
        return w->resume ? cs_error_add(error, CS_USAGE,
                                        "validate: --resume goes with --output, whose journal it "
                                        "continues")
                         : CS_OK;
    CS_TRY(cs_file_check_output(output, error));
    const size_t bytes = strlen(output) + sizeof(".journal");
    w->path = malloc(bytes);
    if (!w->path)
        return cs_error_no_memory(error);
    snprintf(w->path, bytes, "%s.journal", output);
    return CS_OK;
}

/* Predicts the scenario's step, for whether it waits for the host, and for its interval. */
static cs_status predict_like(const cs_context *context, const cs_scenario *scenario, asked *like,
                              cs_error *error)
{
    const cs_simulation_options how = {.progress = context->progress, .no_hash = true};
    cs_simulation simulation = {0};
    CS_TRY(cs_simulate(scenario, &how, &simulation, error));
    const cs_step_parts parts = cs_step_parts_find(scenario, &simulation, false);
    cs_likeness_set_host(&parts, like->likeness.traits);
    like->step_time = parts.step;
    cs_simulation_finish(&simulation);
    return CS_OK;
}

static cs_status find_like(const cs_context *context, const char *file,
                           const cs_point *const *points, uint32_t n, asked *like, cs_error *error)
{
    cs_scenario scenario = {0};
    cJSON *document = NULL;
    cs_status status = cs_json_load(file, &document, error);
    if (status == CS_OK)
        status = cs_scenario_read(document, file, &scenario, error);
    if (status == CS_OK)
        status = cs_likeness_find(&scenario, points, n, &like->likeness, error);
    if (status == CS_OK)
        status = predict_like(context, &scenario, like, error);
    cs_scenario_finish(&scenario);
    cJSON_Delete(document);
    return status;
}

static cs_status validate(const cs_context *context, const cs_arguments *arguments,
                          const cs_points *points, cs_error *error)
{
    const char *like = cs_arguments_value(arguments, "like");
    const char *const *select;
    const size_t n_select = cs_arguments_values(arguments, "select", &select);
    const cs_point **selected = NULL;
    work w = {.journal = {.file = -1}};
    uint32_t n = 0;
    CS_TRY(cs_arguments_jobs(arguments, &w.jobs, error));
    CS_TRY(cs_points_select(points, select, n_select, &selected, &n, error));
    if (cs_arguments_flag(arguments, "fit")) {
        const cs_scenario_change change = {change_scenario, arguments};
        const cs_status fitted =
            cs_validate_fit(context, arguments, selected, n, &change, w.jobs, error);
        free(selected);
        return fitted;
    }
    cs_status status = name_journal(arguments, &w, error);
    if (status == CS_OK && like)
        status = find_like(context, like, selected, n, &w.like, error);
    if (status == CS_OK && like)
        status = validate_points(context, arguments, w.like.likeness.points, w.like.likeness.n, &w,
                                 error);
    else if (status == CS_OK)
        status = validate_points(context, arguments, selected, n, &w, error);
    cs_journal_close(&w.journal);
    cs_likeness_finish(&w.like.likeness);
    free(w.path);
    free(selected);
    return status;
}

/* --scenario predicts nothing that these could be about. */
static cs_status check_options(const cs_arguments *arguments, cs_error *error)
{
    static const char *const flags[] = {"points",    "tables", "by-group", "trends",
                                        "decompose", "resume", "json",     "fit"};
    static const char *const values[] = {"output", "like", "select"};
    CS_TRY(cs_validate_check_fit(arguments, error));
    if (!cs_arguments_value(arguments, "scenario") && cs_arguments_flag(arguments, "fit"))
        return CS_OK;
    if (!cs_arguments_value(arguments, "scenario"))
        return cs_output_check(arguments, "output", cs_endings_of_results, error);
    const char *other = NULL;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]) && !other; i++)
        other = cs_arguments_value(arguments, values[i]) ? values[i] : NULL;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) && !other; i++)
        other = cs_arguments_flag(arguments, flags[i]) ? flags[i] : NULL;
    return other ? cs_error_add(error, CS_USAGE, "validate: --scenario and --%s exclude each other",
                                other)
                 : CS_OK;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    const char *id = cs_arguments_value(arguments, "scenario");
    cs_points points = {0};
    cs_heap_keep();
    CS_TRY(check_options(arguments, error));
    cs_status status = load(arguments, &points, error);
    if (status == CS_OK && id)
        status = print_scenario(context, arguments, &points, id, error);
    else if (status == CS_OK)
        status = validate(context, arguments, &points, error);
    cs_points_finish(&points);
    return status;
}

const cs_command cs_command_validate = {
    .name = "validate",
    .words = "[POINTS.json ...]",
    .max_words = MOST_FILES,
    .summary = "predict measured training runs, and print the errors",
    .doc =
        "Reads measured runs (docs/reference/points.md), builds a scenario for each by the "
        "same rules, simulates them in threads, and prints how far off predictions are: errors "
        "of the step time by kind of run, how well layouts are ranked, errors of memory, and "
        "out-of-memory verdicts. Without files it reads those that come with the program: runs "
        "that papers and public repositories report.\n\n"
        "The output says which errors are left-out errors: no parameter was fitted to their "
        "source. Runs that use unsupported features are skipped and counted per feature. "
        "Processes that mpirun starts share the runs (docs/how-to/many-machines.md). With "
        "--output, a validation that was stopped at any moment continues with --resume and "
        "produces the same file; until then FILE.h5.journal holds the finished runs.\n\n"
        "--fit fits one factor on the times of kernels to at least three runs of your own "
        "cluster, prints errors before and after and with each run left out, and writes a device "
        "or a runtime with it (docs/how-to/fit-your-cluster.md).\n\n"
        "--scenario prints the scenario of a run, for `sim check` and `sim run`.",
    .options = options,
    .shared = true,
    .run = run,
};
