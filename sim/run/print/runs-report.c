#include "sim/run/print/report.h"

#include "sim/base/json.h"
#include "sim/run/figures.h"

#include <inttypes.h>

/* ---- JSON ---- */

static bool add_summary(cJSON *runs, const char *key, const cs_summary *of)
{
    static const char *const names[CS_N_QUANTILES] = {"min", "p5",  "p25", "p50",
                                                      "p75", "p95", "max"};
    cJSON *object = cJSON_AddObjectToObject(runs, key);
    bool done = object && cs_json_add_number(object, "mean", of->mean) &&
                cs_json_add_number(object, "mean_95_low", of->low) &&
                cs_json_add_number(object, "mean_95_high", of->high) &&
                cs_json_add_number(object, "deviation", of->deviation);
    for (uint32_t q = 0; q < CS_N_QUANTILES && done; q++)
        done = cs_json_add_number(object, names[q], of->quantiles[q]);
    return done;
}

cs_status cs_runs_add_json(cJSON *report, const cs_runs *runs, cs_error *error)
{
    if (runs->n == 0)
        return CS_OK;
    cJSON *object = cJSON_AddObjectToObject(report, "runs");
    bool done = object && cs_json_add_number(object, "runs", runs->n) &&
                cs_json_add_number(object, "first_seed", (double)runs->first_seed) &&
                cJSON_AddBoolToObject(object, "all_equal", cs_runs_all_equal(runs));
    for (uint32_t f = 0; f < runs->n_figures && done; f++) {
        cs_summary summary;
        CS_TRY(cs_summary_of(cs_runs_values(runs, f), runs->n, &summary, error));
        done = add_summary(object, cs_run_figure_main(f)->key, &summary);
    }
    return done ? CS_OK : cs_error_no_memory(error);
}

/* ---- as text ---- */

cs_status cs_runs_print(const cs_runs *runs, FILE *out, cs_error *error)
{
    if (runs->n == 0)
        return CS_OK;
    fprintf(out, "\n%" PRIu32 " runs, seeds %" PRIu64 " to %" PRIu64 "%s\n", runs->n,
            runs->first_seed, runs->first_seed + runs->n - 1,
            cs_runs_all_equal(runs) ? ", all equal: nothing in the scenario is random" : "");
    fprintf(out, "%-21s %-10s %-23s %-10s %-10s %-10s %s\n", "", "mean", "95 % interval", "5 %",
            "median", "95 %", "largest");
    for (uint32_t f = 0; f < runs->n_figures; f++) {
        const cs_run_figure *figure = cs_run_figure_main(f);
        cs_summary of;
        CS_TRY(cs_summary_of(cs_runs_values(runs, f), runs->n, &of, error));
        const double shown[] = {of.mean,         of.low,          of.high,        of.quantiles[1],
                                of.quantiles[3], of.quantiles[5], of.quantiles[6]};
        char heading[CS_UNIT_TEXT_BYTES], cells[7][CS_UNIT_TEXT_BYTES],
            interval[2 * CS_UNIT_TEXT_BYTES + 8];
        for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
            cs_run_figure_cell(figure, shown[i], cells[i], sizeof(cells[i]));
        snprintf(interval, sizeof(interval), "%s to %s", cells[1], cells[2]);
        fprintf(out, "%-21s %-10s %-23s %-10s %-10s %-10s %s\n",
                cs_run_figure_heading(figure, heading, sizeof(heading)), cells[0], interval,
                cells[3], cells[4], cells[5], cells[6]);
    }
    return CS_OK;
}
