#include "sim/cli/runs-report.h"

#include "sim/base/units.h"
#include "sim/run/figures.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- JSON ---- */

static bool add_number(cJSON *object, const char *key, double value)
{
    return isfinite(value) ? cJSON_AddNumberToObject(object, key, value) != NULL
                           : cJSON_AddNullToObject(object, key) != NULL;
}

static bool add_summary(cJSON *runs, const char *key, const cs_summary *of)
{
    static const char *const names[CS_N_QUANTILES] = {"min", "p5",  "p25", "p50",
                                                      "p75", "p95", "max"};
    cJSON *object = cJSON_AddObjectToObject(runs, key);
    bool done = object && add_number(object, "mean", of->mean) &&
                add_number(object, "mean_95_low", of->low) &&
                add_number(object, "mean_95_high", of->high) &&
                add_number(object, "deviation", of->deviation);
    for (uint32_t q = 0; q < CS_N_QUANTILES && done; q++)
        done = add_number(object, names[q], of->quantiles[q]);
    return done;
}

cs_status cs_runs_add_json(cJSON *report, const cs_runs *runs, cs_error *error)
{
    if (runs->n == 0)
        return CS_OK;
    cJSON *object = cJSON_AddObjectToObject(report, "runs");
    bool done = object && add_number(object, "runs", runs->n) &&
                add_number(object, "first_seed", (double)runs->first_seed) &&
                cJSON_AddBoolToObject(object, "all_equal", cs_runs_all_equal(runs));
    for (uint32_t f = 0; f < CS_N_RUNS_FIGURES && done; f++) {
        cs_summary summary;
        CS_TRY(cs_summary_of(runs->values[f], runs->n, &summary, error));
        done = add_summary(object, cs_runs_keys[f], &summary);
    }
    return done ? CS_OK : cs_error_no_memory(error);
}

/* ---- as text ---- */

typedef struct text {
    char characters[CS_UNITS_TEXT_BYTES];
} text;

static text value_text(const cs_run_figure *figure, double value)
{
    text out;
    if (isnan(value))
        snprintf(out.characters, sizeof(out.characters), "-");
    else if (strcmp(figure->unit, "s") == 0)
        cs_units_format(value, CS_QUANTITY_TIME, 4, out.characters, sizeof(out.characters));
    else if (strcmp(figure->unit, "1") == 0)
        snprintf(out.characters, sizeof(out.characters), "%.4g %%", 100 * value);
    else
        snprintf(out.characters, sizeof(out.characters), "%.4g /s", value);
    return out;
}

cs_status cs_runs_print(const cs_runs *runs, FILE *out, cs_error *error)
{
    if (runs->n == 0)
        return CS_OK;
    fprintf(out, "\n%" PRIu32 " runs, seeds %" PRIu64 " to %" PRIu64 "%s\n", runs->n,
            runs->first_seed, runs->first_seed + runs->n - 1,
            cs_runs_all_equal(runs) ? ", all equal: nothing in the scenario is random" : "");
    fprintf(out, "%-15s %-10s %-23s %-10s %-10s %-10s %s\n", "", "mean", "95 % interval of it",
            "5 %", "median", "95 %", "largest");
    for (uint32_t f = 0; f < CS_N_RUNS_FIGURES; f++) {
        const cs_run_figure *figure = cs_run_figure_find(cs_runs_keys[f]);
        cs_summary of;
        char interval[2 * CS_UNITS_TEXT_BYTES + 8];
        CS_TRY(cs_summary_of(runs->values[f], runs->n, &of, error));
        snprintf(interval, sizeof(interval), "%s to %s", value_text(figure, of.low).characters,
                 value_text(figure, of.high).characters);
        fprintf(out, "%-15s %-10s %-23s %-10s %-10s %-10s %s\n", figure->label,
                value_text(figure, of.mean).characters, interval,
                value_text(figure, of.quantiles[1]).characters,
                value_text(figure, of.quantiles[3]).characters,
                value_text(figure, of.quantiles[5]).characters,
                value_text(figure, of.quantiles[6]).characters);
    }
    return CS_OK;
}
