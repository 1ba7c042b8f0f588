#include "sim/run/repeat.h"

#include "sim/base/pool.h"
#include "sim/run/figures.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const double *cs_runs_values(const cs_runs *runs, uint32_t f)
{
    return &runs->values[(size_t)f * runs->n];
}

void cs_runs_finish(cs_runs *runs)
{
    free(runs->values);
    free(runs->hashes);
    *runs = (cs_runs){0};
}

/* ---- running ---- */

/* State shared by all threads; each run writes its own part of `runs`. */
typedef struct work {
    const cs_scenario *scenario;
    cs_simulation_options options;
    cs_runs *runs;
} work;

static void take_figures(const cs_scenario *scenario, const cs_simulation *simulation, uint32_t run,
                         cs_runs *runs)
{
    const cs_outcome outcome = {.scenario = scenario, .simulation = simulation};
    for (uint32_t f = 0; f < runs->n_figures; f++)
        runs->values[(size_t)f * runs->n + run] = cs_run_figure_main(f)->get(&outcome);
    runs->hashes[run] = simulation->hash;
}

static void make_run(const void *context, uint32_t run, const cs_progress *progress,
                     cs_pool_item *item)
{
    const work *w = context;
    cs_simulation simulation = {0};
    cs_simulation_options options = w->options;
    options.progress = progress;
    options.record_rates = false;
    options.seed_offset = run;
    item->status = cs_simulate(w->scenario, &options, &simulation, item->error);
    if (item->status == CS_OK)
        take_figures(w->scenario, &simulation, run, w->runs);
    cs_simulation_finish(&simulation);
}

static cs_status collect(void *context, const cs_pool_item *item, cs_error *error)
{
    const work *w = context;
    if (item->status == CS_OK)
        return CS_OK;
    if (!item->error)
        return cs_error_no_memory(error);
    return cs_error_add(error, item->status, "run with seed %" PRIu64 ": %s",
                        w->scenario->seed + item->point, item->error->text);
}

static bool reserve(cs_runs *runs)
{
    while (cs_run_figure_main(runs->n_figures))
        runs->n_figures++;
    runs->hashes = calloc(runs->n, sizeof(*runs->hashes));
    runs->values = calloc((size_t)runs->n * runs->n_figures, sizeof(*runs->values));
    return runs->hashes && runs->values;
}

cs_status cs_runs_make(const cs_scenario *scenario, const cs_simulation_options *options,
                       const cs_simulation *first, uint32_t n, uint32_t jobs, cs_runs *runs,
                       cs_error *error)
{
    cs_runs made = {.n = n, .first_seed = scenario->seed};
    uint32_t *points = malloc(n * sizeof(*points));
    if (!points || !reserve(&made)) {
        free(points);
        cs_runs_finish(&made);
        return cs_error_no_memory(error);
    }
    for (uint32_t i = 1; i < n; i++)
        points[i - 1] = i;
    take_figures(scenario, first, 0, &made);
    work w = {.scenario = scenario, .options = *options, .runs = &made};
    const cs_pool pool = {.what = "repeating",
                          .points_are = "runs",
                          .work = make_run,
                          .work_context = &w,
                          .collect = collect,
                          .collect_context = &w,
                          .points = points,
                          .n_points = n - 1,
                          .jobs = jobs};
    const cs_status status = cs_pool_run(&pool, options->progress, error);
    free(points);
    if (status == CS_OK)
        *runs = made;
    else
        cs_runs_finish(&made);
    return status;
}

/* ---- statistics ---- */

const double cs_summary_quantiles[CS_N_QUANTILES] = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};

cs_status cs_summary_of(const double *values, uint32_t n, cs_summary *summary, cs_error *error)
{
    double *sorted = malloc(n * sizeof(*sorted));
    if (!sorted)
        return cs_error_no_memory(error);
    memcpy(sorted, values, n * sizeof(*sorted));
    const double mean = gsl_stats_mean(values, 1, n); /* NaN if a value is */
    const double deviation = gsl_stats_sd_m(values, 1, n, mean);
    const double half = gsl_cdf_tdist_Pinv(0.975, n - 1.0) * deviation / sqrt(n);
    *summary = (cs_summary){mean, mean - half, mean + half, deviation, {0}};
    if (!isnan(mean))
        gsl_sort(sorted, 1, n);
    for (uint32_t q = 0; q < CS_N_QUANTILES; q++)
        summary->quantiles[q] =
            isnan(mean)
                ? mean
                : gsl_stats_quantile_from_sorted_data(sorted, 1, n, cs_summary_quantiles[q]);
    free(sorted);
    return CS_OK;
}

bool cs_runs_all_equal(const cs_runs *runs)
{
    for (uint32_t i = 1; i < runs->n; i++)
        if (runs->hashes[i] != runs->hashes[0])
            return false;
    return true;
}

/* ---- the results file ---- */

static cs_h5_value run_seed(const void *data, uint64_t row, uint32_t which)
{
    (void)which;
    return (cs_h5_value){.int64 = (int64_t)(((const cs_runs *)data)->first_seed + row)};
}

static cs_h5_value run_value(const void *data, uint64_t row, uint32_t which)
{
    return (cs_h5_value){.float64 = cs_runs_values(data, which)[row]};
}

cs_status cs_runs_store(cs_h5_file *file, const cs_runs *runs, cs_error *error)
{
    if (runs->n == 0)
        return CS_OK;
    cs_h5_column *columns = calloc(2 + runs->n_figures + UINT64_C(1), sizeof(*columns));
    if (!columns)
        return cs_error_no_memory(error);
    columns[0] =
        (cs_h5_column){"run", CS_H5_UINT32, "1", "number of the run", .fill = cs_h5_row_numbers};
    columns[1] = (cs_h5_column){"seed", CS_H5_INT64, "1", "seed of the run", .get = run_seed};
    for (uint32_t f = 0; f < runs->n_figures; f++) {
        const cs_run_figure *figure = cs_run_figure_main(f);
        columns[2 + f] = (cs_h5_column){figure->key,  CS_H5_DOUBLE,     cs_unit_word(figure->unit),
                                        "of the run", .get = run_value, .which = f};
    }
    const cs_h5_table table = {"runs", "run", columns, runs->n, runs};
    const cs_status status = cs_h5_write_table(file, &table, error);
    free(columns);
    return status;
}
