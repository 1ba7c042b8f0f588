#include "sim/study/validate/interval.h"

#include "sim/base/facts.h"
#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the model ---- */

static bool read_number(const cJSON *object, const char *key, double *to)
{
    const cJSON *value = cs_json_member(object, key);
    *to = cJSON_IsNumber(value) ? value->valuedouble : (double)NAN;
    return cJSON_IsNumber(value) && isfinite(*to);
}

static bool read_count(const cJSON *object, const char *key, uint32_t *to)
{
    double value;
    const bool is = read_number(object, key, &value) && value >= 0 && value < UINT32_MAX;
    *to = is ? (uint32_t)value : 0;
    return is;
}

static bool are_effects(const cJSON *effects)
{
    const cJSON *trait, *value;
    bool are = cJSON_IsObject(effects);
    cJSON_ArrayForEach(trait, effects)
    {
        are = are && cJSON_IsObject(trait);
        cJSON_ArrayForEach(value, trait)
        {
            double centre, spread;
            uint32_t sources;
            are = are && read_count(value, "sources", &sources) &&
                  read_number(value, "centre", &centre) && read_number(value, "spread", &spread);
        }
    }
    return are;
}

void cs_left_out_finish(cs_left_out *left_out)
{
    cJSON_Delete(left_out->document);
    *left_out = (cs_left_out){0};
}

cs_status cs_left_out_read(const char *text, cs_left_out *left_out, cs_error *error)
{
    cs_left_out made = {0};
    text = text ? text : cs_facts_text("", "left-out");
    CS_TRY(cs_json_parse("facts/left-out.json", text, strlen(text), &made.document, error));
    const cJSON *model = cs_json_member(made.document, "interval");
    made.effects = cs_json_member(model, "effects");
    if (!cJSON_IsArray(cs_json_member(made.document, "sources")) ||
        !read_count(model, "sources", &made.n_sources) ||
        !read_count(model, "runs", &made.n_runs) || !read_number(model, "centre", &made.centre) ||
        !read_number(model, "spread", &made.spread) || !are_effects(made.effects)) {
        cs_left_out_finish(&made);
        return cs_error_add(error, CS_INVALID,
                            "facts/left-out.json: must have the form that "
                            "tests/left-out-errors.py writes");
    }
    if (!read_number(model, "factor", &made.factor) || made.n_sources < CS_INTERVAL_SOURCES)
        made.factor = (double)NAN;
    const cJSON *coverage = cs_json_member(model, "coverage");
    (void)read_number(coverage, "by_run", &made.by_run);
    (void)read_number(coverage, "by_source", &made.by_source);
    *left_out = made;
    return CS_OK;
}

cs_source_use cs_left_out_use(const cs_left_out *left_out, const char *dataset)
{
    const cJSON *source, *name;
    cJSON_ArrayForEach(source, cs_json_member(left_out->document, "sources"))
    {
        cJSON_ArrayForEach(name, cs_json_member(source, "datasets"))
        {
            const char *text = cJSON_GetStringValue(name);
            if (text && strcmp(text, dataset) == 0)
                return cJSON_IsTrue(cs_json_member(source, "fitted")) ? CS_SOURCE_FITTED
                                                                      : CS_SOURCE_KNOWN;
        }
    }
    return CS_SOURCE_NEW;
}

/* ---- one interval ---- */

cs_interval cs_interval_find(const cs_left_out *left_out, cs_traits traits)
{
    cs_interval made = {.n_sources = left_out->n_sources, .n_runs = left_out->n_runs};
    double centre = left_out->centre, log_spread = left_out->spread, doubt = 1;
    for (uint32_t t = 0; t < CS_N_TRAITS; t++) {
        const cJSON *values = cs_json_member(left_out->effects, cs_trait_names[t]);
        const cJSON *effect = cs_json_member(values, traits[t]);
        double of_centre = 0, of_spread = 0;
        made.matters[t] = values && *traits[t] && strcmp(traits[t], "any") != 0;
        if (effect) {
            (void)read_number(effect, "centre", &of_centre);
            (void)read_number(effect, "spread", &of_spread);
            (void)read_count(effect, "sources", &made.alike[t]);
        }
        centre += of_centre;
        log_spread += of_spread;
        doubt += values ? 1 / (made.alike[t] + 1.0) : 0;
    }
    const double half = left_out->factor * exp(log_spread) * sqrt(doubt);
    made.low = exp(centre - half);
    made.high = exp(centre + half);
    made.within = fmax(fabs(1 / made.low - 1), fabs(1 / made.high - 1));
    return made;
}

/* ---- coverage ---- */

typedef struct tried {
    const char *source;
    bool held;
    double width;
} tried;

static int by_source(const void *a, const void *b)
{
    return strcmp(((const tried *)a)->source, ((const tried *)b)->source);
}

static int by_width(const void *a, const void *b)
{
    const tried *x = a, *y = b;
    CS_COMPARE(x->width, y->width);
    return 0;
}

static cs_status try_runs(const cs_predictions *predictions, const cs_left_out *left_out,
                          tried *runs, cs_coverage *coverage, cs_error *error)
{
    for (uint32_t i = 0; i < predictions->n; i++) {
        const cs_prediction *from = &predictions->items[i];
        const double ratio = from->measured[CS_MEASURE_TIME] / from->values[CS_MEASURE_TIME];
        cs_traits traits = {0};
        if (!isfinite(ratio) || !cs_point_is_exact(from->point) ||
            cs_left_out_use(left_out, from->point->dataset) != CS_SOURCE_NEW)
            continue;
        CS_TRY(cs_likeness_of_point(from->point, from->made.document, &from->parts, traits, error));
        const cs_interval interval = cs_interval_find(left_out, traits);
        if (isfinite(interval.low))
            runs[coverage->n_runs++] =
                (tried){from->point->dataset, ratio >= interval.low && ratio <= interval.high,
                        (interval.high - interval.low) / 2};
    }
    return CS_OK;
}

cs_status cs_coverage_find(const cs_predictions *predictions, const cs_left_out *left_out,
                           cs_coverage *coverage, cs_error *error)
{
    cs_coverage made = {.by_run = (double)NAN, .by_source = (double)NAN, .width = (double)NAN};
    tried *runs = calloc(predictions->n + 1ULL, sizeof(*runs));
    if (!runs)
        return cs_error_no_memory(error);
    const cs_status status = try_runs(predictions, left_out, runs, &made, error);
    cs_vector_sort(runs, made.n_runs, sizeof(*runs), by_source);
    double by_run = 0, shares = 0;
    for (uint32_t first = 0, end; first < made.n_runs; first = end) {
        uint32_t held = 0;
        for (end = first; end < made.n_runs && by_source(&runs[first], &runs[end]) == 0; end++)
            held += runs[end].held;
        shares += (double)held / (end - first);
        by_run += held;
        made.n_sources++;
    }
    if (made.n_runs > 0) {
        made.by_run = by_run / made.n_runs;
        made.by_source = shares / made.n_sources;
        cs_vector_sort(runs, made.n_runs, sizeof(*runs), by_width);
        made.width = (runs[(made.n_runs - 1) / 2].width + runs[made.n_runs / 2].width) / 2;
    }
    free(runs);
    if (status == CS_OK)
        *coverage = made;
    return status;
}
