#define _XOPEN_SOURCE 700 /* for realpath */

#include "sim/study/validate/fit-runs.h"

#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/model/accelerator.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 3 };

static const double step = 0.05;        /* step in log f for numerical derivatives */
static const double most_spread = 1.25; /* largest ratio of the times of two equal scenarios */

void cs_kernel_fit_finish(cs_kernel_fit *fit)
{
    free(fit->runs);
    *fit = (cs_kernel_fit){0};
}

/* ---- what can be fitted ---- */

static cs_status refuse(const cs_point *point, const char *why, cs_error *error)
{
    char id[CS_TEXT_QUOTED_BYTES];
    return cs_error_add(error, CS_USAGE, "--fit: %s: the run %s %s", point->file,
                        cs_text_quote(point->id, id, sizeof(id)), why);
}

static const char *name_at(const cJSON *document, const char *section, const char *key)
{
    const cJSON *value = cs_json_member(document, section);
    const char *text = cJSON_GetStringValue(value ? cs_json_member(value, key) : NULL);
    return text ? text : cJSON_GetStringValue(value);
}

/* Takes a name, or reports an error if earlier runs have another name. */
static cs_status take_name(const cs_point *point, const char *what, const char *key,
                           const char *name, char known[256], cs_error *error)
{
    char first[CS_TEXT_QUOTED_BYTES], other[CS_TEXT_QUOTED_BYTES], why[512];
    if (!name) {
        snprintf(why, sizeof(why), "has no %s whose kernels could be fitted", what);
        return refuse(point, why, error);
    }
    if (!*known)
        cs_text_format(known, 256, "%s", name);
    if (strcmp(known, name) == 0)
        return CS_OK;
    snprintf(why, sizeof(why),
             "is on the %s %s, earlier runs on %s; fit each separately: --select %s=...", what,
             cs_text_quote(name, other, sizeof(other)), cs_text_quote(known, first, sizeof(first)),
             key);
    return refuse(point, why, error);
}

static cs_status check_run(const cs_prediction *run, cs_kernel_fit *fit, cs_error *error)
{
    char why[512];
    if (!isfinite(run->measured[CS_MEASURE_TIME]))
        return refuse(run->point,
                      "has no measured time: measured must have step_time_s, samples_per_s or "
                      "tokens_per_s_per_gpu",
                      error);
    if (run->state == CS_PREDICTION_MISSING) {
        cs_text_format(why, sizeof(why), "cannot be predicted; it needs: %s", run->made.missing[0]);
        return refuse(run->point, why, error);
    }
    CS_TRY(take_name(run->point, "device", "gpu", name_at(run->made.document, "model", "device"),
                     fit->device, error));
    return take_name(run->point, "runtime", "framework",
                     name_at(run->made.document, "runtime", "name"), fit->runtime, error);
}

/* Checks the times of two runs of one scenario: they cannot both be right if they differ by a
 * lot. */
static cs_status check_pair(const cs_prediction *one, const cs_prediction *other, cs_error *error)
{
    const double x = one->measured[CS_MEASURE_TIME], y = other->measured[CS_MEASURE_TIME];
    char id[CS_TEXT_QUOTED_BYTES], why[512];
    cJSON *left = cJSON_Duplicate(one->made.document, true);
    cJSON *right = cJSON_Duplicate(other->made.document, true);
    cJSON_DeleteItemFromObjectCaseSensitive(left, "name");
    cJSON_DeleteItemFromObjectCaseSensitive(right, "name");
    const bool made = left && right, equal = made && cJSON_Compare(left, right, true);
    cJSON_Delete(left);
    cJSON_Delete(right);
    if (!made)
        return cs_error_no_memory(error);
    if (!equal || fmax(x / y, y / x) <= most_spread)
        return CS_OK;
    snprintf(why, sizeof(why),
             "contradicts %s: their scenarios are equal, but steps took %.4g and %.4g s; remove "
             "the wrong one, or describe what differs",
             cs_text_quote(one->point->id, id, sizeof(id)), x, y);
    return refuse(other->point, why, error);
}

static cs_status check_runs(const cs_predictions *runs, cs_kernel_fit *fit, cs_error *error)
{
    if (runs->n < CS_FIT_LEAST)
        return cs_error_add(error, CS_USAGE, "--fit: needs %d or more measured runs (got %u)",
                            CS_FIT_LEAST, runs->n);
    for (uint32_t i = 0; i < runs->n; i++)
        CS_TRY(check_run(&runs->items[i], fit, error));
    for (uint32_t i = 0; i < runs->n; i++)
        for (uint32_t j = 0; j < i; j++)
            CS_TRY(check_pair(&runs->items[j], &runs->items[i], error));
    return CS_OK;
}

/* ---- predictions ---- */

/* Reads /runtime/kernels, including the default from the runtime's conventions. */
static cs_status read_kernels(const cs_prediction *run, double *kernels, cs_error *error)
{
    cs_scenario scenario = {0};
    cJSON *resolved = NULL;
    cs_status status = cs_scenario_read(run->made.document, run->point->id, &scenario, error);
    if (status == CS_OK)
        status = cs_json_parse("", scenario.resolved, strlen(scenario.resolved), &resolved, error);
    const cJSON *value = cs_json_member(cs_json_member(resolved, "runtime"), "kernels");
    *kernels = cJSON_IsNumber(value) ? value->valuedouble : 1;
    cJSON_Delete(resolved);
    cs_scenario_finish(&scenario);
    return status;
}

/* Turns the section "runtime" into an object; a scenario may state only a name. */
static bool open_runtime(cJSON *document)
{
    cJSON *runtime = cJSON_GetObjectItemCaseSensitive(document, "runtime");
    if (!cJSON_IsString(runtime))
        return true;
    cJSON *object = cJSON_CreateObject();
    if (!cs_json_add_text(object, "name", runtime->valuestring)) {
        cJSON_Delete(object);
        return false;
    }
    cs_json_replace(document, runtime, object);
    return true;
}

static cs_status set_factor(const cs_kernel_fit *fit, double factor, cs_predictions *runs,
                            cs_error *error)
{
    for (uint32_t i = 0; i < runs->n; i++) {
        cJSON *document = runs->items[i].made.document;
        cJSON *value = cJSON_CreateNumber(fit->runs[i].kernels * factor);
        cs_status status = value && open_runtime(document) ? CS_OK : cs_error_no_memory(error);
        if (status == CS_OK)
            status = cs_json_copy_to(document, "/runtime/kernels", value, "--fit", error);
        cJSON_Delete(value);
        CS_TRY(status);
    }
    return CS_OK;
}

/* Input of all predictions. */
typedef struct job {
    const cs_point *const *points;
    const cs_scenario_change *change;
    uint32_t jobs;
    const cs_progress *progress;
} job;

/* Predicts the step time of each run with a factor, s. */
static cs_status predict_times(const job *of, const cs_kernel_fit *fit, double factor,
                               double *times, cs_error *error)
{
    cs_predictions runs = {0};
    cs_status status = cs_predictions_make(of->points, fit->n, of->change, &runs, error);
    if (status == CS_OK)
        status = set_factor(fit, factor, &runs, error);
    if (status == CS_OK)
        status = cs_predict(&runs, of->jobs, NULL, NULL, of->progress, error);
    for (uint32_t i = 0; i < fit->n && status == CS_OK; i++) {
        times[i] = runs.items[i].values[CS_MEASURE_TIME];
        if (!isfinite(times[i]))
            status = refuse(runs.items[i].point,
                            runs.items[i].message ? runs.items[i].message : "has no predicted time",
                            error);
    }
    cs_predictions_finish(&runs);
    return status;
}

/* ---- the fit ---- */

/* Returns the best log f for all runs except run `without` (n: for all runs), assuming that each
 * time changes by its slope. */
static double best_log(const cs_kernel_fit *fit, const double *times, double log_factor,
                       uint32_t without)
{
    double over = 0, under = CS_FIT_SPRING;
    for (uint32_t i = 0; i < fit->n; i++) {
        const cs_fitted_run *run = &fit->runs[i];
        if (i == without)
            continue;
        /* error of the run with f = 1 */
        const double error = log(times[i] / run->measured) - run->slope * log_factor;
        over -= run->slope * error;
        under += run->slope * run->slope;
    }
    return over / under;
}

static cs_status find_slopes(const job *of, cs_kernel_fit *fit, double log_factor,
                             const double *times, double *moved, cs_error *error)
{
    CS_TRY(predict_times(of, fit, exp(log_factor + step), moved, error));
    for (uint32_t i = 0; i < fit->n; i++)
        fit->runs[i].slope = log(moved[i] / times[i]) / step;
    return CS_OK;
}

static void sum_up(cs_kernel_fit *fit, const double *times, double log_factor)
{
    for (uint32_t i = 0; i < fit->n; i++) {
        cs_fitted_run *run = &fit->runs[i];
        const double others = best_log(fit, times, log_factor, i);
        run->after = times[i];
        run->left_out = times[i] * exp(run->slope * (others - log_factor));
        fit->mean_before += fabs(run->before / run->measured - 1) / fit->n;
        fit->mean_after += fabs(run->after / run->measured - 1) / fit->n;
        fit->mean_left_out += fabs(run->left_out / run->measured - 1) / fit->n;
    }
    fit->factor = exp(log_factor);
}

static cs_status descend(const job *of, cs_kernel_fit *fit, double *times, double *moved,
                         cs_error *error)
{
    double log_factor = 0, slopes = 0;
    CS_TRY(predict_times(of, fit, 1, times, error));
    for (uint32_t i = 0; i < fit->n; i++)
        fit->runs[i].before = times[i];
    for (uint32_t i = 0; i < ROUNDS; i++) {
        CS_TRY(find_slopes(of, fit, log_factor, times, moved, error));
        /* rounded to the four decimals that the file has */
        log_factor = log(round(1e4 * exp(best_log(fit, times, log_factor, fit->n))) / 1e4);
        CS_TRY(predict_times(of, fit, exp(log_factor), times, error));
    }
    for (uint32_t i = 0; i < fit->n; i++)
        slopes += fabs(fit->runs[i].slope);
    if (slopes < 1e-6 * fit->n)
        return cs_error_add(error, CS_USAGE,
                            "--fit: no run's time depends on kernels: times of passes are given, "
                            "or the runtime is ideal");
    sum_up(fit, times, log_factor);
    return CS_OK;
}

cs_status cs_kernel_fit_make(const cs_point *const *points, uint32_t n,
                             const cs_scenario_change *change, uint32_t jobs,
                             const cs_progress *progress, cs_kernel_fit *fit, cs_error *error)
{
    const job of = {points, change, jobs, progress};
    cs_kernel_fit made = {.n = n, .runs = calloc(n + 1ULL, sizeof(*made.runs))};
    double *times = calloc(n + 1ULL, sizeof(*times)), *moved = calloc(n + 1ULL, sizeof(*moved));
    cs_predictions runs = {0};
    cs_status status = made.runs && times && moved ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_predictions_make(points, n, change, &runs, error);
    if (status == CS_OK)
        status = check_runs(&runs, &made, error);
    for (uint32_t i = 0; i < n && status == CS_OK; i++) {
        made.runs[i].point = points[i];
        made.runs[i].measured = runs.items[i].measured[CS_MEASURE_TIME];
        status = read_kernels(&runs.items[i], &made.runs[i].kernels, error);
    }
    cs_predictions_finish(&runs);
    if (status == CS_OK)
        status = descend(&of, &made, times, moved, error);
    free(times);
    free(moved);
    if (status == CS_OK)
        *fit = made;
    else
        cs_kernel_fit_finish(&made);
    return status;
}

/* ---- files ---- */

/* Returns the name of another file so that it is valid in a file in any folder. The caller frees
 * it. */
static char *absolute(const char *name)
{
    return cs_facts_is_file(name) ? realpath(name, NULL) : strdup(name);
}

/* Rounds off the last digits of a product of two decimal numbers. */
static double rounded(double value)
{
    return round(1e8 * value) / 1e8;
}

/* Adds "source": the origin of the factor. */
static bool add_source(const cs_kernel_fit *fit, const char *points, cJSON *object)
{
    char text[1024];
    cs_text_format(text, sizeof(text), "fitted to %u measured runs of %s by sim validate --fit",
                   fit->n, points);
    return cs_json_add_text(object, "source", text);
}

/* Makes {"schema_version": 1, "title": ..., "like": ...}; NULL if memory runs out. */
static cJSON *describe(const cs_kernel_fit *fit, const char *like, const char *name)
{
    char title[640];
    char *whole = absolute(like);
    cJSON *root = cJSON_CreateObject();
    cs_text_format(title, sizeof(title), "%s, fitted to %u runs", like, fit->n);
    const bool done = whole && cs_json_add_number(root, "schema_version", 1) &&
                      cs_json_add_text(root, "name", name) &&
                      cs_json_add_text(root, "title", title) &&
                      cs_json_add_text(root, "like", whole);
    free(whole);
    if (done)
        return root;
    cJSON_Delete(root);
    return NULL;
}

/* Writes a document and deletes it. If it is NULL or `done` is false, memory ran out. */
static cs_status write_document(cJSON *root, bool done, const char *path, cs_error *error)
{
    char *text = root && done ? cs_json_print(root) : NULL;
    const cs_status status =
        text ? cs_file_write(path, text, strlen(text), error) : cs_error_no_memory(error);
    free(text);
    cJSON_Delete(root);
    return status;
}

/* Extracts the name of a file, without its folder and ".json". */
static void name_of(const char *path, char name[128])
{
    const char *slash = strrchr(path, '/');
    cs_text_format(name, 128, "%s", slash ? slash + 1 : path);
    char *end = strrchr(name, '.');
    if (end && end != name)
        *end = '\0';
}

cs_status cs_kernel_fit_write_device(const cs_kernel_fit *fit, const char *points, const char *path,
                                     cs_error *error)
{
    cs_accelerator device = {0};
    char name[128];
    CS_TRY(cs_accelerator_load(fit->device, NULL, &device, error));
    const double base = device.training.in_step ? device.training.in_step->factor : 1;
    cs_accelerator_finish(&device);
    name_of(path, name);
    cJSON *root = describe(fit, fit->device, name);
    cJSON *in_step = cJSON_AddObjectToObject(cJSON_AddObjectToObject(root, "training"), "in_step");
    const bool done = in_step &&
                      cs_json_add_number(in_step, "factor", rounded(base * fit->factor)) &&
                      add_source(fit, points, in_step);
    return write_document(root, done, path, error);
}

cs_status cs_kernel_fit_write_runtime(const cs_kernel_fit *fit, const char *points,
                                      const char *path, cs_error *error)
{
    char name[128];
    for (uint32_t i = 1; i < fit->n; i++)
        if (fit->runs[i].kernels != fit->runs[0].kernels)
            return cs_error_add(error, CS_USAGE,
                                "--fit: the runs have different values of /runtime/kernels (%.4g "
                                "and %.4g); write a device instead: --output",
                                fit->runs[0].kernels, fit->runs[i].kernels);
    name_of(path, name);
    cJSON *root = describe(fit, fit->runtime, name);
    cJSON *rows = cJSON_AddArrayToObject(root, "conventions"), *row = cs_json_add_item(rows);
    const bool done =
        cs_json_add_text(row, "key", "/runtime/kernels") &&
        cs_json_add_number(row, "value", rounded(fit->runs[0].kernels * fit->factor)) &&
        add_source(fit, points, row);
    return write_document(root, done, path, error);
}
