#include "calib/costs-text.h"
#include "calib/import.h"
#include "sim/base/file.h"
#include "sim/base/inputs.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/cli/import-run.h"
#include "sim/cli/output-name.h"
#include "sim/model/foreign/pipedream.h"
#include "sim/model/foreign/torch-trace.h"

#include <stdlib.h>
#include <string.h>

static const char *const levels[] = {"node", "network", NULL};

static const cs_option options[] = {
    {"output", 'o', "FILE.json",
     "Where to write the model, the costs or the scenario (default: standard output)"},
    {"name", 'n', "NAME", "Name of the model (default: from the file's name or folder)"},
    {"batch", 'b', "SAMPLES",
     "Samples of the profiled mini-batch; pipedream and --times-only: required"},
    {"times-only", 0, NULL, "Make a model without sizes from a PyTorch trace without shapes"},
    {"hardware", 0, "TEXT", "Machine of the measurement, for the provenance; osu: required"},
    {"date", 0, "YYYY-MM-DD", "Date of the measurement, for the provenance; required"},
    {"ranks", 0, "N", "Number of ranks, if the log does not state it"},
    {"level", 0, "LEVEL", "Whether the ranks share a node; osu: required", false, levels},
    {"collective", 0, "NAME", "The collective, if the log does not state it", false,
     cs_cost_collective_names},
    {"in-place", 0, NULL, "Use the in-place times of nccl-tests (default: out of place)"},
    {"merge", 0, "COSTS.json", "Costs to add to; those in the log replace them"},
    {"select", 's', "KEY=PATTERN,...", "Run to import from a file of measured runs", true, NULL},
    {0},
};

/* ---- logs: nccl-tests and osu ---- */

/* Reader of a format: cs_import_nccl_tests or cs_import_osu. */
typedef cs_status import_function(const char *name, const char *text, size_t length,
                                  const cs_import_options *options, cs_costs *costs,
                                  cs_import_report *report, cs_error *error);

enum { LOG_BYTES = 64 << 20 };

/* Reports on standard error, because the costs may go to standard output. */
static void tell_costs(const cs_log *log, const cs_costs *costs, const cs_import_report *report)
{
    char line[CS_COSTS_TEXT_BYTES];
    for (uint32_t i = 0; i < costs->n_network; i++) {
        const cs_cost_network *entry = &costs->network[i];
        cs_log_write(log, CS_LOG_INFO, "%s of %u ranks, %s: %u timings",
                     cs_cost_collective_names[entry->collective], entry->ranks,
                     cs_cost_level_names[entry->level], entry->n_points);
        for (uint32_t r = 0; r < entry->n_regimes; r++)
            cs_log_write(log, CS_LOG_INFO, "  %s",
                         cs_costs_regime_text(entry, &entry->regimes[r], line));
        cs_log_write(log, CS_LOG_INFO, "  %s", cs_costs_largest_text(entry, line));
        if (*cs_costs_end_text(entry, line))
            cs_log_write(log, CS_LOG_WARNING, "%s", line);
    }
    if (report->n_skipped > 0)
        cs_log_write(log, CS_LOG_WARNING, "left out %u rows with 0 bytes or of unknown tests",
                     report->n_skipped);
}

static cs_status read_cost_options(const cs_arguments *arguments, cs_import_options *out,
                                   cs_error *error)
{
    *out = (cs_import_options){.collective = cs_arguments_value(arguments, "collective"),
                               .level = cs_arguments_value(arguments, "level"),
                               .in_place = cs_arguments_flag(arguments, "in-place"),
                               .device = cs_arguments_value(arguments, "hardware"),
                               .date = cs_arguments_value(arguments, "date")};
    if (!out->date || !cs_text_is_date(out->date))
        return cs_error_add(error, CS_USAGE,
                            out->date ? "import: --date must be a day as YYYY-MM-DD"
                                      : "import: --date is missing: the log does not say "
                                        "when it was made");
    return cs_arguments_count(arguments, "ranks", 0, &out->ranks, error);
}

static cs_status read_log(import_function *import, const char *path,
                          const cs_import_options *log_options, cs_costs *costs,
                          cs_import_report *report, cs_error *error)
{
    char *log;
    size_t length;
    CS_TRY(cs_file_read(path, LOG_BYTES, &log, &length, error));
    cs_status status = import(path, log, length, log_options, costs, report, error);
    free(log);
    return status;
}

/* Merges new costs into the existing ones. */
static cs_status save_costs(const cs_costs *made, const char *merge, const char *output,
                            cs_error *error)
{
    cs_costs all;
    if (!merge)
        return cs_costs_save(made, output, error);
    CS_TRY(cs_costs_load(merge, &all, error));
    cs_inputs_allow(merge); /* the new file has its entries too */
    cs_status status = cs_costs_merge(&all, made, error);
    if (status == CS_OK)
        status = cs_costs_save(&all, output, error);
    cs_costs_finish(&all);
    return status;
}

/* Reads the log at `path` and writes its costs to --output, merged into --merge if given. Prints a
 * summary on standard error. */
static cs_status import_costs(const cs_context *context, const cs_arguments *arguments,
                              import_function *import, const char *path, cs_error *error)
{
    const char *output = cs_arguments_value(arguments, "output");
    cs_import_options log_options;
    cs_import_report report = {0};
    cs_costs costs;
    CS_TRY(read_cost_options(arguments, &log_options, error));
    cs_costs_init(&costs);
    cs_status status = read_log(import, path, &log_options, &costs, &report, error);
    if (status == CS_OK)
        status = save_costs(&costs, cs_arguments_value(arguments, "merge"), output ? output : "-",
                            error);
    if (status == CS_OK)
        tell_costs(&context->log, &costs, &report);
    cs_costs_finish(&costs);
    return status;
}

/* ---- models ---- */

static cs_status write_model(const cs_model *model, const char *path, cs_error *error)
{
    cJSON *root = cs_model_json(model);
    char *json = root ? cs_json_print(root) : NULL;
    cJSON_Delete(root);
    if (!json)
        return cs_error_no_memory(error);
    cs_status status = cs_file_write(path, json, strlen(json), error);
    free(json);
    return status;
}

/* Reports on standard error, because the model may go to standard output. */
static void tell(const cs_log *log, const cs_model *model, const cs_pipedream_report *report)
{
    const cs_units_value skipped =
        cs_units_text(cs_time_seconds(report->skipped), CS_QUANTITY_TIME, 4);
    cs_log_write(log, CS_LOG_INFO, "%s: %u nodes and %u edges made a chain of %u layers",
                 model->name, report->n_nodes, report->n_edges, report->n_layers);
    cs_log_write(log, CS_LOG_INFO, "%s of %u input node%s omitted: loading data is not computation",
                 skipped.s, report->n_inputs, report->n_inputs == 1 ? "" : "s");
    for (uint32_t g = 0; g < report->n_groups; g++) {
        const cs_pipedream_group *group = &report->groups[g];
        cs_log_write(log, CS_LOG_INFO, "layer %u groups %u nodes, %s to %s", group->layer,
                     group->n_nodes, group->first, group->last);
    }
}

/* Requires options that the profile does not state. */
static cs_status require_options(const cs_arguments *arguments, bool batch, cs_error *error)
{
    static const char *const required[] = {"batch", "date"};
    for (size_t i = batch ? 0 : 1; i < sizeof(required) / sizeof(required[0]); i++) {
        if (!cs_arguments_flag(arguments, required[i]))
            return cs_error_add(error, CS_USAGE,
                                "import: --%s is missing: the profile does not state it",
                                required[i]);
    }
    return CS_OK;
}

static cs_status import_pipedream(const cs_context *context, const cs_arguments *arguments,
                                  const char *output, const cs_pipedream_options *how,
                                  cs_error *error)
{
    const char *path = arguments->words[1];
    cs_model model = {0};
    cs_pipedream_report report;
    cs_status status = cs_pipedream_load(path, how, &model, &report, error);
    if (status == CS_OK)
        status = write_model(&model, output, error);
    if (status == CS_OK)
        tell(&context->log, &model, &report);
    cs_model_finish(&model);
    return status;
}

static cs_status import_torch(const cs_context *context, const cs_arguments *arguments,
                              const char *output, const cs_pipedream_options *how, cs_error *error)
{
    const char *path = arguments->words[1];
    const cs_torch_options options_of = {how->name, how->batch_size, how->hardware, how->date,
                                         cs_arguments_flag(arguments, "times-only")};
    cs_model model = {0};
    cs_torch_report report;
    cs_status status = cs_torch_load(path, &options_of, &model, &report, error);
    if (status == CS_OK)
        status = write_model(&model, output, error);
    if (status == CS_OK)
        cs_log_write(&context->log, CS_LOG_INFO,
                     "%s: %u operators and %u kernels in %u step%s made a chain of %u %s", path,
                     report.n_operators, report.n_kernels, report.n_steps,
                     report.n_steps == 1 ? "" : "s", report.n_layers,
                     report.modules ? "modules"
                                    : "operators (record with with_stack=True for modules)");
    if (status == CS_OK) {
        const char *exchange = report.n_kernels > 0 ? "kernel" : "operator";
        const cs_units_value exchanged =
            cs_units_text(report.communication * 1e-6, CS_QUANTITY_TIME, 4);
        const cs_units_value others = cs_units_text(report.others * 1e-6, CS_QUANTITY_TIME, 4);
        if (report.n_recorded_steps > report.n_steps)
            cs_log_write(&context->log, CS_LOG_WARNING,
                         "%s: %u of %u steps compute nothing; times are means over the others",
                         path, report.n_recorded_steps - report.n_steps, report.n_recorded_steps);
        if (report.n_exchanges > 0)
            cs_log_write(&context->log, CS_LOG_WARNING,
                         "%s: left out %s of communication (%u %s%s): the simulation adds it", path,
                         exchanged.s, report.n_exchanges, exchange,
                         report.n_exchanges == 1 ? "" : "s");
        if (report.others > 0)
            cs_log_write(&context->log, CS_LOG_INFO,
                         "%s: left out %s of kernels outside of forward and backward passes "
                         "(updates of weights, copies of data)",
                         path, others.s);
    }
    if (status == CS_OK && model.times_only)
        cs_log_write(&context->log, CS_LOG_WARNING,
                     "%s: times only: sizes of weights, activations and messages are unknown and "
                     "set to 0",
                     path);
    cs_model_finish(&model);
    return status;
}

static const char *const of_models[] = {"output", "name", "batch", "hardware", "date", NULL};
static const char *const of_torch[] = {"output",   "name", "batch", "times-only",
                                       "hardware", "date", NULL};
static const char *const of_nccl_tests[] = {"output", "hardware",   "date",     "ranks", "level",
                                            "merge",  "collective", "in-place", NULL};
static const char *const of_run[] = {"output", "select", NULL};
static const char *const of_osu[] = {"output", "hardware", "date", "ranks", "level", "merge", NULL};

/* A format yields a model, costs, or a scenario. */
static const struct format {
    const char *name;
    const char *const *options; /* options that apply to it */
    cs_status (*model)(const cs_context *, const cs_arguments *, const char *,
                       const cs_pipedream_options *, cs_error *);
    bool needs_batch;
    import_function *costs;
    cs_status (*run)(const cs_context *, const cs_arguments *, cs_error *);
} formats[] = {
    {"pipedream", of_models, import_pipedream, true},
    {"torch", of_torch, import_torch},
    {"nccl-tests", of_nccl_tests, NULL, false, cs_import_nccl_tests},
    {"osu", of_osu, NULL, false, cs_import_osu},
    {"run", of_run, .run = cs_import_run},
};

static const char *const format_names[] = {"pipedream", "torch", "nccl-tests", "osu", "run", NULL};

static cs_status find_format(const char *name, const struct format **out, cs_error *error)
{
    cs_guess guess;
    cs_guess_init(&guess, name);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        cs_guess_add(&guess, formats[i].name);
        if (strcmp(formats[i].name, name) != 0)
            continue;
        *out = &formats[i];
        return CS_OK;
    }
    return cs_error_add(error, CS_USAGE, "import: unknown format %s", cs_guess_text(&guess));
}

/* Rejects options that would be ignored. */
static cs_status check_options(const cs_arguments *arguments, const struct format *format,
                               cs_error *error)
{
    for (const cs_option *option = options; option->name; option++) {
        bool known = false;
        for (size_t i = 0; format->options[i]; i++)
            known |= strcmp(format->options[i], option->name) == 0;
        if (!known && cs_arguments_flag(arguments, option->name))
            return cs_error_add(error, CS_USAGE, "import: %s has no option --%s", format->name,
                                option->name);
    }
    return CS_OK;
}

static cs_status import_model(const cs_context *context, const cs_arguments *arguments,
                              const struct format *format, cs_error *error)
{
    const char *output = cs_arguments_value(arguments, "output");
    cs_pipedream_options how = {.name = cs_arguments_value(arguments, "name"),
                                .hardware = cs_arguments_value(arguments, "hardware"),
                                .date = cs_arguments_value(arguments, "date")};
    cs_status status = require_options(arguments, format->needs_batch, error);
    if (status == CS_OK)
        status = cs_arguments_count(arguments, "batch", 0, &how.batch_size, error);
    return status == CS_OK ? format->model(context, arguments, output ? output : "-", &how, error)
                           : status;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    const struct format *format;
    CS_TRY(find_format(arguments->words[0], &format, error));
    CS_TRY(check_options(arguments, format, error));
    CS_TRY(cs_output_check(arguments, "output", cs_endings_of_json, error));
    if (format->run)
        return format->run(context, arguments, error);
    return format->costs
               ? import_costs(context, arguments, format->costs, arguments->words[1], error)
               : import_model(context, arguments, format, error);
}

const cs_command cs_command_import = {
    .name = "import",
    .words = "pipedream GRAPH | torch TRACE | nccl-tests LOG | osu LOG | run RUN",
    .min_words = 2,
    .max_words = 2,
    .choices = format_names,
    .summary = "import profiles, benchmark logs and run descriptions",
    .doc = "pipedream: turns a profile in the format of the PipeDream project into a model file. "
           "Branches become a chain: all nodes between two nodes that every path passes become "
           "one layer; standard error says which.\n\n"
           "torch: turns a trace of PyTorch's profiler into a chain of modules with their "
           "measured times. Record one training step with record_shapes=True, preferably also "
           "with_stack=True.\n\n"
           "nccl-tests, osu: turns the output of nccl-tests or of the OSU micro-benchmarks into "
           "a costs file (docs/how-to/measured-costs.md): a latency and a time per byte for "
           "every collective, number of ranks and range of sizes, with 95 % intervals. `sim plot "
           "--kind fit` draws it.\n\n"
           "run: turns the description of a training run (docs/how-to/describe-a-run.md), or one "
           "of the measured runs in a file, into a scenario. Standard error lists the assumptions "
           "and, for each key of the description, the keys of the scenario that it determines, why "
           "it has "
           "no effect, or that it is unknown. The file - is standard input.",
    .options = options,
    .run = run,
};
