#include "plots/plot.h"
#include "sim/cli/compare-report.h"
#include "sim/cli/output-name.h"
#include "sim/cli/scenario-option.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS_MAX = 10000 };

static const cs_option options[] = {
    {"output", 'o', "FILE", "Picture of both timelines (single pair only): .svg, .png or .pdf"},
    {"fail-above", 0, "SHARE",
     "Exit with status 4 if the error or change of an iteration time exceeds this, such as 10% "
     "or 0.1"},
    {"json", 0, NULL, "Print one JSON object instead of the table"},
    {0},
};

/* Reads "10%" or "0.1"; infinite if not given. */
static cs_status read_limit(const cs_arguments *arguments, double *limit, cs_error *error)
{
    const char *given = cs_arguments_value(arguments, "fail-above");
    char *end;
    *limit = INFINITY;
    if (!given)
        return CS_OK;
    *limit = strtod(given, &end);
    const bool percent = strcmp(end, "%") == 0 || strcmp(end, " %") == 0;
    if (end == given || (*end != '\0' && !percent) || !(*limit >= 0) || !isfinite(*limit))
        return cs_error_add(error, CS_USAGE,
                            "compare: --fail-above must be a share, like 10%% or 0.1 (got \"%s\")",
                            given);
    *limit /= percent ? 100 : 1;
    return CS_OK;
}

static cs_status check_words(const cs_arguments *arguments, cs_error *error)
{
    if (arguments->n_words % 2 != 0)
        return cs_error_add(error, CS_USAGE,
                            "compare: files must be pairs of a prediction and a measurement "
                            "(got %zu files)",
                            arguments->n_words);
    if (arguments->n_words > 2 && cs_arguments_value(arguments, "output"))
        return cs_error_add(error, CS_USAGE, "compare: --output is a picture of one pair (got %zu)",
                            arguments->n_words / 2);
    return cs_output_check(arguments, "output", cs_endings_of_pictures, error);
}

static cs_status check_limit(const cs_compared_scenario *scenarios, uint32_t n, double limit,
                             cs_error *error)
{
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < n; i++)
        if (!(fabs(scenarios[i].error) <= limit) && isfinite(limit))
            status = cs_error_add(error, CS_LIMIT,
                                  "%s: the error of the iteration time is %+.2f %%, above %g %%",
                                  scenarios[i].name, 100 * scenarios[i].error, 100 * limit);
    return status;
}

static cs_status check_change(const cs_compared_run *pair, double limit, cs_error *error)
{
    const double change = cs_compared_change(pair->iteration);
    if (!isfinite(limit) || fabs(change) <= limit)
        return CS_OK;
    return cs_error_add(error, CS_LIMIT,
                        "%s: the iteration time differs by %+.2f %% from %s, more than %g %%",
                        pair->files[1].path, 100 * change, pair->files[0].path, 100 * limit);
}

/* Only pairs of a prediction and a measurement can be summarised; two simulations cannot. */
static cs_status check_alone(const cs_compared_run *pairs, uint32_t n_pairs, cs_error *error)
{
    for (uint32_t i = 0; i < n_pairs && n_pairs > 1; i++)
        if (pairs[i].side_by_side)
            return cs_error_add(error, CS_USAGE,
                                "compare: %s and %s are not a prediction and its measurement: such "
                                "a pair must be the only one",
                                pairs[i].files[0].path, pairs[i].files[1].path);
    return CS_OK;
}

static cs_status print(const cs_context *context, const cs_arguments *arguments,
                       const cs_compared_run *pairs, uint32_t n_pairs, double limit,
                       cs_error *error)
{
    cs_compared_scenario *scenarios = NULL;
    uint32_t n = 0;
    cs_status status = cs_compare_summarise(pairs, n_pairs, &scenarios, &n, error);
    if (status == CS_OK && cs_arguments_flag(arguments, "json"))
        status = cs_print_json(cs_compare_json(pairs, n_pairs, scenarios, n), context->out, error);
    else if (status == CS_OK && n_pairs == 1)
        cs_compare_print(&pairs[0], context->out);
    else if (status == CS_OK) {
        cs_compare_print_summary(scenarios, n, context->out);
        cs_compare_print_differences(pairs, n_pairs, context->out);
    }
    if (status == CS_OK)
        status = pairs[0].side_by_side ? check_change(&pairs[0], limit, error)
                                       : check_limit(scenarios, n, limit, error);
    free(scenarios);
    return status;
}

/* Draws before the verdict, so that an exceeded limit is reported last. */
static cs_status draw(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    const cs_plot_options how = {.kind = "timeline",
                                 .input = arguments->words[0],
                                 .others = &arguments->words[1],
                                 .n_others = 1,
                                 .output = cs_arguments_value(arguments, "output")};
    if (!how.output)
        return CS_OK;
    cs_status status = cs_plot_draw(&how, error);
    if (status == CS_OK)
        cs_log_write(&context->log, CS_LOG_INFO, "wrote %s", how.output);
    return status;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    double limit;
    cs_status status = check_words(arguments, error);
    if (status == CS_OK)
        status = read_limit(arguments, &limit, error);
    if (status != CS_OK)
        return status;
    uint32_t n_pairs = (uint32_t)(arguments->n_words / 2), n = 0;
    cs_compared_run *pairs = calloc(n_pairs, sizeof(*pairs));
    if (!pairs)
        return cs_error_no_memory(error);
    for (; n < n_pairs && status == CS_OK; n++)
        status =
            cs_compare_runs(arguments->words[2 * n], arguments->words[2 * n + 1], &pairs[n], error);
    if (status == CS_OK)
        status = check_alone(pairs, n_pairs, error);
    if (status == CS_OK)
        status = draw(context, arguments, error);
    if (status == CS_OK)
        status = print(context, arguments, pairs, n_pairs, limit, error);
    for (uint32_t i = 0; i < n; i++)
        cs_compare_runs_finish(&pairs[i]);
    free(pairs);
    return status;
}

const cs_command cs_command_compare = {
    .name = "compare",
    .words = "PREDICTED.h5 MEASURED.h5 ... | FIRST.h5 SECOND.h5",
    .min_words = 2,
    .max_words = 2 * PAIRS_MAX,
    .summary = "compare predictions with measurements, or two simulations",
    .doc = "Compares results of `sim run` and `sim replay`: iteration time, "
           "throughput, peak memory of every device, and, for every kind of task, number, total "
           "time and median. An error is predicted / measured - 1.\n\n"
           "Several pairs give a line for each scenario; pairs of the same scenario count as "
           "rounds of one measurement.\n\n"
           "Two simulations, or two measurements, may be of any scenarios: their metrics are "
           "shown side by side, and the differences between the scenarios are listed. A change "
           "is second / first - 1.",
    .options = options,
    .run = run,
};
