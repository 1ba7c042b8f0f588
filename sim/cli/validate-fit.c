#include "sim/cli/validate-fit.h"

#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/cli/output-name.h"
#include "sim/run/print/print-json.h"

#include <math.h>
#include <string.h>

cs_status cs_validate_check_fit(const cs_arguments *arguments, cs_error *error)
{
    static const char *const without[] = {"points",    "tables", "by-group", "trends",
                                          "decompose", "resume", NULL};
    const char *path = cs_arguments_value(arguments, "runtime-output");
    if (!cs_arguments_flag(arguments, "fit"))
        return path ? cs_error_add(error, CS_USAGE, "validate: --runtime-output goes with --fit")
                    : CS_OK;
    for (size_t i = 0; without[i]; i++)
        if (cs_arguments_flag(arguments, without[i]))
            return cs_error_add(error, CS_USAGE, "validate: --fit and --%s exclude each other",
                                without[i]);
    if (cs_arguments_value(arguments, "like"))
        return cs_error_add(error, CS_USAGE, "validate: --fit and --like exclude each other");
    if (cs_arguments_value(arguments, "output") && path)
        return cs_error_add(error, CS_USAGE,
                            "validate: --output and --runtime-output exclude each other: with both "
                            "files in use, the factor would count twice");
    if (arguments->n_words == 0)
        return cs_error_add(error, CS_USAGE,
                            "validate: --fit needs files of your own measured runs "
                            "(docs/how-to/fit-your-cluster.md)");
    CS_TRY(cs_output_check(arguments, "output", cs_endings_of_costs, error));
    return cs_output_check(arguments, "runtime-output", cs_endings_of_costs, error);
}

static const char *percent(double share, bool sign, char text[32])
{
    snprintf(text, 32, sign ? "%+.2f %%" : "%.2f %%", 100 * share);
    return text;
}

static void print_run(const cs_fitted_run *run, FILE *out)
{
    char id[128], time[CS_UNITS_TEXT_BYTES], before[32], after[32], left_out[32];
    cs_text_show(run->point->id, id, sizeof(id));
    fprintf(out, "  %-38.38s %10s %10s %10s %10s %7.2f\n", id,
            cs_units_format(run->measured, CS_QUANTITY_TIME, 4, time, sizeof(time)),
            percent(run->before / run->measured - 1, true, before),
            percent(run->after / run->measured - 1, true, after),
            percent(run->left_out / run->measured - 1, true, left_out), run->slope);
}

static void print_fit(const cs_kernel_fit *fit, FILE *out)
{
    char before[32], after[32], left_out[32];
    fprintf(out, "kernels take %.4f times as long as predicted: %u runs on ", fit->factor, fit->n);
    cs_text_puts(out, fit->device);
    fputs(" with ", out);
    cs_text_puts(out, fit->runtime);
    fprintf(out,
            "\nmean error: %s before, %s with the factor, %s left out\n"
            "  left out: with the factor fitted to the other runs; expect this of another run\n\n",
            percent(fit->mean_before, false, before), percent(fit->mean_after, false, after),
            percent(fit->mean_left_out, false, left_out));
    fprintf(out, "  %-38s %10s %10s %10s %10s %7s\n", "errors of the step time", "measured",
            "before", "after", "left out", "share");
    for (uint32_t i = 0; i < fit->n; i++)
        print_run(&fit->runs[i], out);
    fprintf(
        out,
        "\nshare: by how much a step changes with its kernels; 1: it consists of them\n"
        "least squares of logarithms; a spring holds the factor to 1 as strongly as %d runs, so "
        "few\nruns move it little\n",
        CS_FIT_SPRING);
}

static bool fill_run(cJSON *object, const cs_fitted_run *run)
{
    return cs_json_add_text(object, "id", run->point->id) &&
           cs_json_add_number(object, "measured_step_time_s", run->measured) &&
           cs_json_add_number(object, "before_s", run->before) &&
           cs_json_add_number(object, "after_s", run->after) &&
           cs_json_add_number(object, "left_out_s", run->left_out) &&
           cs_json_add_number(object, "kernel_share", run->slope);
}

static cs_status print_fit_json(const cs_kernel_fit *fit, FILE *out, cs_error *error)
{
    cJSON *root = cJSON_CreateObject(), *object = cJSON_AddObjectToObject(root, "fit");
    bool done = cs_json_add_number(object, "factor", fit->factor) &&
                cs_json_add_text(object, "device", fit->device) &&
                cs_json_add_text(object, "runtime", fit->runtime) &&
                cs_json_add_number(object, "spring_runs", CS_FIT_SPRING) &&
                cs_json_add_number(object, "mean_before", fit->mean_before) &&
                cs_json_add_number(object, "mean_after", fit->mean_after) &&
                cs_json_add_number(object, "mean_left_out", fit->mean_left_out);
    cJSON *runs = cJSON_AddArrayToObject(object, "runs");
    for (uint32_t i = 0; i < fit->n && done; i++)
        done = fill_run(cs_json_add_item(runs), &fit->runs[i]);
    if (done)
        return cs_print_json(root, out, error);
    cJSON_Delete(root);
    return cs_error_no_memory(error);
}

/* Writes the file that was asked for, and says how to use it. */
static cs_status write_fit(const cs_context *context, const cs_arguments *arguments,
                           const cs_kernel_fit *fit, cs_error *error)
{
    const char *device = cs_arguments_value(arguments, "output");
    const char *runtime = cs_arguments_value(arguments, "runtime-output");
    const char *points = arguments->words[0];
    if (device) {
        CS_TRY(cs_kernel_fit_write_device(fit, points, device, error));
        cs_log_write(&context->log, CS_LOG_INFO,
                     "wrote %s: name it as \"device\" in scenarios, as \"gpu\" in descriptions",
                     device);
    }
    if (runtime) {
        CS_TRY(cs_kernel_fit_write_runtime(fit, points, runtime, error));
        cs_log_write(
            &context->log, CS_LOG_INFO,
            "wrote %s: name it as \"runtime\" in scenarios, as \"framework\" in descriptions",
            runtime);
    }
    return CS_OK;
}

cs_status cs_validate_fit(const cs_context *context, const cs_arguments *arguments,
                          const cs_point *const *points, uint32_t n,
                          const cs_scenario_change *change, uint32_t jobs, cs_error *error)
{
    cs_kernel_fit fit = {0};
    if (cs_team_helps(context->team))
        return CS_OK; /* a few runs: the first process predicts them alone */
    CS_TRY(cs_kernel_fit_make(points, n, change, jobs, context->progress, &fit, error));
    cs_status status = CS_OK;
    if (cs_arguments_flag(arguments, "json"))
        status = print_fit_json(&fit, context->out, error);
    else
        print_fit(&fit, context->out);
    if (status == CS_OK)
        status = write_fit(context, arguments, &fit, error);
    cs_kernel_fit_finish(&fit);
    return status;
}
