/* Jiang, Fu, Miao, Nie and Cui, "OSDP: Optimal Sharded Data Parallel for Distributed Deep
 * Learning", IJCAI 2023. */
#include "papers/papers.h"
#include "sim/base/units.h"
#include "sim/run/osdp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SLICES = 4, MOST_SLICES = 16, MOST_BATCH = 1024, MORE_SAMPLES = 16 };

/* ---- what a setting is measured by ---- */

/* Rows that are asked for, under these keys. */
static const struct {
    const char *key;
    cs_osdp_strategy row;
} strategies[] = {
    {"data", CS_OSDP_ROW_DATA},          {"fsdp", CS_OSDP_ROW_FSDP},
    {"sliced", CS_OSDP_ROW_FSDP_SLICED}, {"base_same", CS_OSDP_ROW_BASE_SAME},
    {"base", CS_OSDP_ROW_BASE},          {"osdp", CS_OSDP_ROW_OSDP},
};
enum { N_STRATEGIES = sizeof(strategies) / sizeof(strategies[0]) };

/* Samples per second of each strategy by the cost model, and where it was simulated; what does not
 * fit is null. */
static bool add_strategies(cJSON *object, const cs_osdp_study *study)
{
    bool good = object && cs_json_add_number(object, "parameters", study->parameters) &&
                cs_json_add_number(object, "operators", study->n_weighted) &&
                cs_json_add_number(object, "operators_cut", study->rows[CS_OSDP_ROW_OSDP].cut) &&
                cs_json_add_number(object, "search_s", study->rows[CS_OSDP_ROW_OSDP].search_time);
    for (uint32_t i = 0; i < N_STRATEGIES && good; i++) {
        const double rate = cs_osdp_throughput(study, strategies[i].row);
        const double simulated =
            study->simulated ? cs_osdp_simulated_throughput(study, strategies[i].row) : 0;
        char key[32], batch[32];
        snprintf(key, sizeof(key), "%s_simulated", strategies[i].key);
        const cs_osdp_plan *plan = &study->rows[strategies[i].row].plan;
        snprintf(batch, sizeof(batch), "%s_batch", strategies[i].key);
        good = cs_json_add_number(object, strategies[i].key, rate > 0 ? rate : NAN) &&
               cs_json_add_number(object, batch, plan->batch) &&
               cs_json_add_number(object, key, simulated > 0 ? simulated : NAN);
    }
    return good;
}

typedef struct variant {
    const char *key;
    uint32_t most_batch;
    bool simulate;
    const char *parallel; /* another section "parallel", JSON; or NULL */
    cs_osdp_surge surge;
} variant;

static cs_status run_variant(const char *path, const cJSON *document, const variant *v,
                             const cs_progress *progress, cJSON *report, cs_error *error)
{
    const cs_osdp_slices slices = {.most = SLICES};
    const cs_osdp_options how = {.surge = v->surge,
                                 .slices = &slices,
                                 .n_slices = 1,
                                 .most_batch = v->most_batch,
                                 .simulate = v->simulate,
                                 .progress = progress};
    cs_osdp_study study = {0};
    cJSON *own = cJSON_Duplicate(document, true);
    cs_status status = own ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK && v->parallel)
        status = cs_json_set(own, "/parallel", v->parallel, path, error);
    if (status == CS_OK)
        status = cs_osdp_study_make(own, path, &how, &study, error);
    if (status == CS_OK && !add_strategies(cJSON_AddObjectToObject(report, v->key), &study))
        status = cs_error_no_memory(error);
    cs_osdp_study_finish(&study);
    cJSON_Delete(own);
    return status;
}

static cs_status set_number(cJSON *document, const char *pointer, double value, const char *path,
                            cs_error *error)
{
    char text[32];
    snprintf(text, sizeof(text), "%.0f", value);
    return cs_json_set(document, pointer, text, path, error);
}

/* Samples per second of a mini-batch; 0: it does not fit. */
static cs_status rate_of(const cJSON *document, const char *path, const cs_progress *progress,
                         double *rate, cs_error *error)
{
    cs_scenario scenario = {0};
    cs_step step = {0};
    cs_status status = cs_scenario_read_brief(document, path, NULL, progress, &scenario, error);
    if (status == CS_OK)
        status = cs_simulate_step(&scenario, progress, &step, error);
    *rate = status == CS_OK && step.over == 0 ? scenario.batch_size / step.time : 0;
    cs_scenario_finish(&scenario);
    return status;
}

/* A strategy that a whole step is simulated for. */
typedef struct simulated_strategy {
    const char *key, *parallel; /* members of the section "parallel" */
    const char *schedule;
    uint32_t least_batch; /* one sample per micro-batch and data-parallel device */
    uint32_t least_layers;
    bool data; /* data-parallel devices, among which OSDP can shard */
} simulated_strategy;

/* Sets the section "parallel" to the strategy, with `sharded` of SLICES slices of each operator
 * sharded among its data-parallel devices. */
static cs_status set_parallel(cJSON *document, const simulated_strategy *how, uint32_t sharded,
                              bool once, const char *path, cs_error *error)
{
    char text[256];
    if (sharded > 0)
        snprintf(text, sizeof(text), "{%s, \"rules\": [{\"layers\": \"*\", \"sharded\": %g}]%s}",
                 how->parallel, (double)sharded / SLICES, once ? ", \"gather_once\": true" : "");
    else
        snprintf(text, sizeof(text), "{%s}", how->parallel);
    return cs_json_set(document, "/parallel", text, path, error);
}

/* The largest rate with slices sharded, of which weights are gathered for each micro-batch or once
 * per mini-batch; 0: nothing fits. Where not all slices sharded fit, fewer do not. */
static cs_status sharded_rate(cJSON *document, const simulated_strategy *how, const char *path,
                              const cs_progress *progress, double *rate, cs_error *error)
{
    *rate = 0;
    for (uint32_t once = 0; once < 2; once++) {
        double one = 1;
        for (uint32_t sharded = SLICES; sharded > 0 && one > 0; sharded--) {
            CS_TRY(set_parallel(document, how, sharded, once, path, error));
            CS_TRY(rate_of(document, path, progress, &one, error));
            *rate = fmax(*rate, one);
        }
    }
    return CS_OK;
}

/* The most samples per second of a strategy, alone and with OSDP among its data-parallel devices,
 * over mini-batches that double until none fits; NaN: none does. */
typedef struct best_rates {
    double plain, osdp;
    bool applies; /* the model can be divided so */
} best_rates;

static cs_status find_best(cJSON *document, const simulated_strategy *how, const char *path,
                           const cs_progress *progress, best_rates *best, cs_error *error)
{
    double rate = 1, largest = how->least_batch;
    *best = (best_rates){NAN, NAN, true};
    for (double batch = largest; rate > 0 && batch <= 8 * MOST_BATCH; batch *= 2) {
        cs_error why;
        cs_error_init(&why);
        CS_TRY(set_number(document, "/model/batch_size", batch, path, error));
        CS_TRY(set_parallel(document, how, 0, false, path, error));
        const cs_status status = rate_of(document, path, progress, &rate, &why);
        if (status == CS_INVALID) {
            best->applies = false;
            return CS_OK;
        }
        if (status != CS_OK) {
            cs_error_add_all(error, &why);
            return status;
        }
        if (rate > 0) {
            best->plain = best->osdp = fmax(rate, best->plain); /* fmax ignores NaN */
            largest = batch;
        }
    }
    rate = how->data;
    for (double batch = largest; rate > 0 && batch <= 8 * MOST_BATCH; batch *= 2) {
        CS_TRY(set_number(document, "/model/batch_size", batch, path, error));
        CS_TRY(sharded_rate(document, how, path, progress, &rate, error));
        if (rate > 0)
            best->osdp = fmax(rate, best->osdp);
    }
    return CS_OK;
}

static cs_status run_simulated(const simulated_strategy *how, const char *path,
                               const cJSON *document, uint32_t layers, const cs_progress *progress,
                               cJSON *report, cs_error *error)
{
    cJSON *own = cJSON_Duplicate(document, true),
          *object = cJSON_AddObjectToObject(report, how->key);
    cs_status status = own && object ? CS_OK : cs_error_no_memory(error);
    best_rates best = {NAN, NAN, false};
    if (status == CS_OK)
        status = cs_json_set(own, "/schedule", how->schedule, path, error);
    if (status == CS_OK && layers >= how->least_layers)
        status = find_best(own, how, path, progress, &best, error);
    if (status == CS_OK && (!cs_json_add_number(object, "rate", best.plain) ||
                            !cs_json_add_number(object, "osdp", best.osdp) ||
                            !cJSON_AddBoolToObject(object, "applies", best.applies)))
        status = cs_error_no_memory(error);
    cJSON_Delete(own);
    return status;
}

/* Blocks of the model: a number, or a list of them. */
static double count_blocks(const cJSON *document)
{
    const cJSON *parameters = cs_json_member(cs_json_member(document, "model"), "parameters");
    const cJSON *layers = cs_json_member(parameters, "layers"), *part;
    double sum = cJSON_IsNumber(layers) ? layers->valuedouble : 0;
    cJSON_ArrayForEach(part, layers)
    {
        sum += part->valuedouble;
    }
    return sum;
}

/* Pipeline and tensor parallelism over all devices, as GPipe and Megatron-LM have them, and what
 * DeepSpeed combines of both and data parallelism. A pipeline needs 8 layers, as the paper says. */
static cs_status run_all_simulated(const char *path, const cJSON *document,
                                   const cs_progress *progress, cJSON *report, cs_error *error)
{
    static const char gpipe[] = "{\"kind\": \"gpipe\", \"micro_batches\": 8}";
    static const char at_once[] = "{\"kind\": \"sequential\", \"micro_batches\": 1}";
    static const simulated_strategy all[] = {
        {"pipeline", "\"pipeline\": 8", gpipe, 8, 8, false},
        {"tensor", "\"tensor\": 8", at_once, 8, 0, false},
        {"3d_2_2", "\"pipeline\": 2, \"tensor\": 2, \"data\": 2", gpipe, 16, 2, true},
        {"3d_2_4", "\"pipeline\": 2, \"tensor\": 4", gpipe, 8, 2, false},
        {"3d_2_1", "\"pipeline\": 2, \"data\": 4", gpipe, 32, 2, true},
        {"3d_4_2", "\"pipeline\": 4, \"tensor\": 2", gpipe, 8, 4, false},
        {"3d_4_1", "\"pipeline\": 4, \"data\": 2", gpipe, 16, 4, true},
        {"3d_1_2", "\"tensor\": 2, \"data\": 4", at_once, 8, 0, true},
        {"3d_1_4", "\"tensor\": 4, \"data\": 2", at_once, 8, 0, true},
    };
    const uint32_t layers = (uint32_t)count_blocks(document);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        CS_TRY(run_simulated(&all[i], path, document, layers, progress, report, error));
    return CS_OK;
}

static cs_status run_variants(const char *path, const cJSON *document, const variant *variants,
                              uint32_t n, bool pure, const cs_progress *progress, cJSON **result,
                              cs_error *error)
{
    cJSON *report = cJSON_CreateObject();
    cs_status status = report ? CS_OK : cs_error_no_memory(error);
    for (uint32_t i = 0; i < n && status == CS_OK; i++)
        status = run_variant(path, document, &variants[i], progress, report, error);
    if (status == CS_OK && pure)
        status = run_all_simulated(path, document, progress, report, error);
    if (status == CS_OK)
        *result = report;
    else
        cJSON_Delete(report);
    return status;
}

/* On one server; with checkpointing only what figure 9 compares. */
static cs_status run_server(const void *context, const cJSON *document, const cs_progress *progress,
                            cJSON **result, cs_error *error)
{
    static const variant variants[] = {
        {"own", MOST_BATCH, true, NULL, CS_OSDP_SURGE_MAXIMUM},
        {"one", 1, false, NULL, CS_OSDP_SURGE_MAXIMUM},
        {"hybrid", MOST_BATCH, false, "{\"zero\": 3, \"tensor\": 2}", CS_OSDP_SURGE_MAXIMUM},
        {"hybrid4", MOST_BATCH, false, "{\"zero\": 3, \"tensor\": 4}", CS_OSDP_SURGE_MAXIMUM},
        {"sum", MOST_BATCH, false, NULL, CS_OSDP_SURGE_SUM},
    };
    static const variant checkpointing = {"own", MOST_BATCH, false, NULL, CS_OSDP_SURGE_MAXIMUM};
    const cJSON *recompute = cs_json_member(cs_json_member(document, "model"), "recompute");
    if (cJSON_IsTrue(recompute))
        return run_variants(context, document, &checkpointing, 1, false, progress, result, error);
    return run_variants(context, document, variants, 5, true, progress, result, error);
}

static cs_status run_two_servers(const void *context, const cJSON *document,
                                 const cs_progress *progress, cJSON **result, cs_error *error)
{
    static const variant own = {"own", MOST_BATCH, false, NULL, CS_OSDP_SURGE_MAXIMUM};
    return run_variants(context, document, &own, 1, false, progress, result, error);
}

/* ---- settings ---- */

/* Axes: models, of which four are of each type; memory; recomputation. */
enum { MODEL, MEMORY, RECOMPUTE, N_AXES };
enum { NARROW, WIDE, MIXED, N_TYPES, EACH = 4, LIMITS = 2, PER_TYPE = EACH * LIMITS };

static const char *const types[N_TYPES] = {"N&D", "W&S", "I&C"};

static cs_status check_axes(const cs_study *study, cs_error *error)
{
    if (cs_study_length(study, MODEL) != N_TYPES * EACH || cs_study_length(study, MEMORY) != LIMITS)
        return cs_error_add(error, CS_INVALID, "%s: must vary %d models and %d memories",
                            study->path, N_TYPES * EACH, LIMITS);
    return cs_study_all_done(study, error);
}

/* The point of setting i = 0 ... PER_TYPE - 1 of a type. */
static uint32_t setting(const cs_study *study, uint32_t type, uint32_t i, bool recompute)
{
    return cs_study_point(study,
                          (uint32_t[N_AXES]){type * EACH + i / LIMITS, i % LIMITS, recompute});
}

static double number_of(const cs_study *study, uint32_t point, const char *of, const char *key)
{
    const cJSON *value = cs_json_member(cs_study_member(study, point, of), key);
    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

/* Mean, largest and number of gains in %, over settings at which both strategies fit. */
typedef struct gains {
    double sum, largest, least;
    uint32_t n;
} gains;

static void add_gain(gains *g, double ratio)
{
    const double gain = 100 * (ratio - 1);
    if (!isfinite(gain))
        return;
    g->largest = g->n ? fmax(g->largest, gain) : gain;
    g->least = g->n ? fmin(g->least, gain) : gain;
    g->sum += gain;
    g->n++;
}

static double mean_of(const gains *g)
{
    return g->n > 0 ? g->sum / g->n : NAN;
}

/* What stands over what, of which variant. */
typedef struct comparison {
    const char *variant, *over, *under;
    bool recompute;
} comparison;

/* `type` N_TYPES: all of them. */
static gains compare(const cs_study *study, uint32_t type, const comparison *c)
{
    gains g = {0};
    for (uint32_t t = 0; t < N_TYPES; t++)
        for (uint32_t i = 0; i < PER_TYPE && (type == t || type == N_TYPES); i++) {
            const uint32_t point = setting(study, t, i, c->recompute);
            add_gain(&g, number_of(study, point, c->variant, c->over) /
                             number_of(study, point, c->variant, c->under));
        }
    return g;
}

static const char models_text[] =
    "The paper's figures do not say which settings they have but for the ranges of table 1. Shown "
    "are "
    "four models of each type within these, each at 8 and 16 GiB, by OSDP's cost model with up to "
    "four slices; each strategy has its own best batch. Means are over settings in which FSDP "
    "fits.";

/* ---- table 1 ---- */

static void claim_range(cs_page *page, const cs_study *study, uint32_t type, double least,
                        double most)
{
    double range[2] = {INFINITY, -INFINITY};
    for (uint32_t i = 0; i < PER_TYPE; i++) {
        const double parameters =
            number_of(study, setting(study, type, i, false), "own", "parameters") / 1e9;
        range[0] = fmin(range[0], parameters);
        range[1] = fmax(range[1], parameters);
    }
    for (int i = 0; i < 2; i++)
        cs_page_claim(page,
                      &(cs_paper_claim){.what = cs_page_format(page, "%s: %s parameters, billions",
                                                               types[type], i ? "most" : "fewest"),
                                        .place = "table 1",
                                        .paper = i ? most : least,
                                        .ours = range[i],
                                        .decimals = 1,
                                        .unit = "",
                                        .why = "which models the paper has within its ranges of "
                                               "layers and hidden sizes is not given"});
}

static cs_status show_models(const cs_study *studies, cs_page *page, cs_error *error)
{
    CS_TRY(check_axes(studies, error));
    claim_range(page, studies, NARROW, 1.3, 2.9);
    claim_range(page, studies, WIDE, 1.7, 4);
    claim_range(page, studies, MIXED, 0.9, 2.3);
    cs_page_table(page, "Models of figures 5 to 9; operators are those with weights.",
                  "type\tmodel\tparameters\toperators");
    for (uint32_t m = 0; m < N_TYPES * EACH; m++) {
        char text[128];
        const uint32_t point = setting(studies, m / EACH, m % EACH * LIMITS, false);
        cs_study_axis_text(studies, MODEL, m, text, sizeof(text));
        cs_page_row(page, "%s\t%s\t%.2fB\t%.0f", types[m / EACH], text,
                    number_of(studies, point, "own", "parameters") / 1e9,
                    number_of(studies, point, "own", "operators"));
    }
    cs_page_text(page,
                 "The paper counts 2 operators per layer and 2 more (98 to 194 for N&D); here "
                 "positions and the last norm are operators of their own.");
    return CS_OK;
}

/* ---- combinations of strategies ---- */

/* The best of several members of a point. */
static double best_of(const cs_study *study, uint32_t point, const char *const *of, uint32_t n,
                      const char *key)
{
    double best = NAN;
    for (uint32_t i = 0; i < n; i++) {
        const double rate = number_of(study, point, of[i], key);
        best = isnan(best) || rate > best ? rate : best;
    }
    return best;
}

/* Combinations of pipeline, tensor and data parallelism; the first ones have data-parallel devices,
 * among which OSDP can shard. */
static const char *const combinations[] = {"3d_2_2", "3d_2_1", "3d_4_1", "3d_1_2",
                                           "3d_1_4", "3d_2_4", "3d_4_2"};
enum { N_COMBINATIONS = sizeof(combinations) / sizeof(combinations[0]), WITH_DATA = 5 };

/* The best one alone ("rate"), or with OSDP ("osdp"). */
static double combined_rate(const cs_study *study, uint32_t point, const char *key)
{
    return best_of(study, point, combinations, N_COMBINATIONS, key);
}

/* ---- bars ---- */

static const char *short_name(cs_page *page, const cs_study *study, uint32_t type, uint32_t i)
{
    const uint32_t model = type * EACH + i / LIMITS;
    const cJSON *document = study->base;
    const char *text = study->space.axes[MODEL].values.texts[model];
    cJSON *parameters = NULL;
    char memory[32], hidden[64] = "";
    cs_study_axis_text(study, MEMORY, i % LIMITS, memory, sizeof(memory));
    if (cs_json_parse(study->path, text, strlen(text), &parameters, NULL) != CS_OK)
        return cs_page_format(page, "%s", cs_json_kind(document));
    char *layers = cs_json_line(cs_json_member(parameters, "layers"));
    char *sizes = cs_json_line(cs_json_member(parameters, "hidden"));
    snprintf(hidden, sizeof(hidden), "%.24s x %.30s", layers ? layers : "", sizes ? sizes : "");
    const char *name = cs_page_format(page, "%s, %s", hidden, memory);
    cJSON_free(layers);
    cJSON_free(sizes);
    cJSON_Delete(parameters);
    return name;
}

typedef struct bar {
    const char *name, *of, *key; /* of NULL: of the best combination */
} bar;

static const char *bar_word(const cs_study *study, uint32_t point, const bar *b)
{
    const cJSON *strategy = b->of ? cs_study_member(study, point, b->of) : NULL;
    return cJSON_IsFalse(cs_json_member(strategy, "applies")) ? "N/A" : "OOM";
}

static void draw_bars(cs_page *page, const cs_study *study, const bar *bars, uint32_t n_bars,
                      bool recompute, const char *subtitle)
{
    for (uint32_t type = 0; type < N_TYPES; type++) {
        cs_chart_draft *draft = cs_page_draft(page, 1, n_bars, PER_TYPE);
        const char **words = cs_page_alloc(page, (size_t)n_bars * PER_TYPE, sizeof(*words));
        const char **names = cs_page_alloc(page, PER_TYPE, sizeof(*names));
        if (!draft || !words || !names)
            return;
        for (uint32_t b = 0; b < n_bars; b++) {
            draft->series[b].name = bars[b].name;
            draft->series[b].words = words + b * PER_TYPE;
            for (uint32_t i = 0; i < PER_TYPE; i++) {
                const uint32_t point = setting(study, type, i, recompute);
                draft->y[b][i] = bars[b].of ? number_of(study, point, bars[b].of, bars[b].key)
                                            : combined_rate(study, point, bars[b].key);
                words[b * PER_TYPE + i] = bar_word(study, point, &bars[b]);
            }
        }
        for (uint32_t i = 0; i < PER_TYPE; i++)
            names[i] = short_name(page, study, type, i);
        draft->panels[0].title = types[type];
        draft->chart.subtitle = subtitle;
        draft->chart.bars = true;
        draft->chart.names = names;
        draft->chart.n_names = PER_TYPE;
        draft->chart.y_title = "samples per second";
        cs_page_chart(page, &draft->chart);
    }
}

/* ---- figures 5 and 6 ---- */

/* The paper's numbers, and ours. The names live as long as the page. */
static void draw_beside(cs_page *page, const char *subtitle, const char *const *names,
                        const double *paper, const double *ours, uint32_t n)
{
    cs_chart_draft *draft = cs_page_draft(page, 1, 2, n);
    if (!draft)
        return;
    memcpy(draft->y[0], paper, n * sizeof(*paper));
    memcpy(draft->y[1], ours, n * sizeof(*ours));
    draft->series[0].name = "paper";
    draft->series[1].name = "here";
    draft->chart.subtitle = subtitle;
    draft->chart.bars = true;
    draft->chart.names = names;
    draft->chart.n_names = n;
    draft->chart.y_title = "%";
    cs_page_chart(page, &draft->chart);
}

static const char *const mean_and_largest[] = {"mean", "largest"};

static void claim_gains(cs_page *page, const cs_study *study, uint32_t type, const comparison *c,
                        const char *what, const char *place, double mean, double largest,
                        int decimals, const char *why)
{
    const gains g = compare(study, type, c);
    if (type == N_TYPES)
        draw_beside(page, what, mean_and_largest, (double[]){mean, largest},
                    (double[]){mean_of(&g), g.largest}, 2);
    for (int i = 0; i < 2; i++)
        cs_page_claim(page,
                      &(cs_paper_claim){.what = cs_page_format(page, "%s: %s (%u settings)", what,
                                                               i ? "largest" : "mean", g.n),
                                        .place = place,
                                        .paper = i ? largest : mean,
                                        .ours = i ? g.largest : mean_of(&g),
                                        .decimals = decimals,
                                        .unit = " %",
                                        .why = why});
}

static void write_gains(const gains *g, char *text, size_t size)
{
    if (g->n > 0)
        snprintf(text, size, "%.1f, %.1f (%u)", mean_of(g), g->largest, g->n);
    else
        snprintf(text, size, "-");
}

static void add_gains_row(cs_page *page, const cs_study *study, const char *name,
                          const comparison *c)
{
    char cells[N_TYPES][64];
    for (uint32_t type = 0; type < N_TYPES; type++) {
        const gains g = compare(study, type, c);
        write_gains(&g, cells[type], sizeof(cells[type]));
    }
    cs_page_row(page, "%s\t%s\t%s\t%s", name, cells[NARROW], cells[WIDE], cells[MIXED]);
}

/* What modes could give a setting, were there no time to compute, no latency and no activation: the
 * states of a parameter, 16 bytes in fp32 with Adam, are whole in data mode and an Nth in sharded
 * mode, so that a share s of them in data mode needs M = 16 P (s + (1 - s)/N); a sharded parameter
 * is moved 3 times a step (with checkpointing 4 times), one in data mode twice. */
static double bound_of_modes(const cs_study *study, uint32_t type, uint32_t i, bool recompute)
{
    enum { DEVICES = 8, BYTES = 16, IN_DATA_MODE = 2 };
    const uint32_t point = setting(study, type, i, recompute);
    const double moves = recompute ? 4 : 3;
    const double states = BYTES * number_of(study, point, "own", "parameters");
    char text[32];
    double memory = NAN;
    cs_study_axis_text(study, MEMORY, i % LIMITS, text, sizeof(text));
    if (cs_units_parse(text, CS_QUANTITY_BYTES, &memory, NULL) != CS_OK)
        return NAN;
    const double share = (memory / states - 1. / DEVICES) / (1 - 1. / DEVICES);
    return moves / (moves - (moves - IN_DATA_MODE) * fmin(fmax(share, 0), 1));
}

/* Of settings in which FSDP fits. */
static gains bounds_of_modes(const cs_study *study, uint32_t type, bool recompute)
{
    gains g = {0};
    for (uint32_t i = 0; i < PER_TYPE; i++) {
        const double fsdp = number_of(study, setting(study, type, i, recompute), "own", "fsdp");
        add_gain(&g, isfinite(fsdp) ? bound_of_modes(study, type, i, recompute) : NAN);
    }
    return g;
}

static void add_bounds_row(cs_page *page, const cs_study *study, bool recompute)
{
    char cells[N_TYPES][64];
    for (uint32_t type = 0; type < N_TYPES; type++) {
        const gains g = bounds_of_modes(study, type, recompute);
        write_gains(&g, cells[type], sizeof(cells[type]));
    }
    cs_page_row(page, "%sbound of modes: no time to compute, no activations\t%s\t%s\t%s",
                recompute ? "checkpointing, " : "", cells[NARROW], cells[WIDE], cells[MIXED]);
}

/* ---- against all other strategies ---- */

static const struct {
    const char *of, *key, *simulated;
} pures[] = {{"own", "data", "data_simulated"},
             {"pipeline", "rate", "rate"},
             {"tensor", "rate", "rate"},
             {"own", "fsdp", "fsdp_simulated"}};
enum { N_PURES = sizeof(pures) / sizeof(pures[0]), ALL_PURES = (1 << N_PURES) - 1, FSDP_ONLY = 8 };

/* OSDP, by its cost model, over each pure strategy of a bit mask that fits, at each setting of a
 * type or of all; `alike`: all of them simulated. */
static gains over_pures(const cs_study *study, uint32_t type, uint32_t mask, bool alike)
{
    gains g = {0};
    for (uint32_t t = 0; t < N_TYPES; t++)
        for (uint32_t i = 0; i < PER_TYPE && (type == t || type == N_TYPES); i++) {
            const uint32_t point = setting(study, t, i, false);
            const double osdp = number_of(study, point, "own", alike ? "osdp_simulated" : "osdp");
            for (uint32_t p = 0; p < N_PURES; p++)
                if (mask >> p & 1)
                    add_gain(&g, osdp / number_of(study, point, pures[p].of,
                                                  alike ? pures[p].simulated : pures[p].key));
        }
    return g;
}

/* 3D + OSDP over the best 3D parallelism, over the same combination without OSDP, and over each of
 * the pure strategies; all simulated. */
typedef struct hybrid_gains {
    gains combined, same, pure;
    uint32_t n;         /* settings at which any strategy fits */
    uint32_t fastest;   /* of these: nothing is faster than 3D + OSDP */
    uint32_t with_data; /* of these: the best 3D parallelism has data-parallel devices */
} hybrid_gains;

static void add_setting(const cs_study *study, uint32_t point, hybrid_gains *g)
{
    const double hybrid = combined_rate(study, point, "osdp");
    const double plain = combined_rate(study, point, "rate");
    double other = number_of(study, point, "own", "osdp_simulated");
    add_gain(&g->combined, hybrid / plain);
    for (uint32_t i = 0; i < WITH_DATA; i++)
        add_gain(&g->same, number_of(study, point, combinations[i], "osdp") /
                               number_of(study, point, combinations[i], "rate"));
    for (uint32_t p = 0; p < N_PURES; p++) {
        const double rate = number_of(study, point, pures[p].of, pures[p].simulated);
        add_gain(&g->pure, hybrid / rate);
        other = fmax(other, rate); /* fmax ignores NaN */
    }
    g->n += isfinite(hybrid) || isfinite(other);
    g->fastest += isfinite(hybrid) && !(other > hybrid);
    g->with_data += best_of(study, point, combinations, WITH_DATA, "rate") >= plain;
}

static hybrid_gains compare_hybrids(const cs_study *study)
{
    hybrid_gains g = {0};
    for (uint32_t type = 0; type < N_TYPES; type++)
        for (uint32_t i = 0; i < PER_TYPE; i++)
            add_setting(study, setting(study, type, i, false), &g);
    return g;
}

static void claim_two(cs_page *page, const char *what, const char *place, const gains *g,
                      double mean, double largest, const char *why)
{
    for (int i = 0; i < 2; i++)
        if (i || mean > 0)
            cs_page_claim(page,
                          &(cs_paper_claim){.what = cs_page_format(page, "%s: %s (%u pairs)", what,
                                                                   i ? "largest" : "mean", g->n),
                                            .place = place,
                                            .relation = i ? CS_UP_TO : CS_IS,
                                            .paper = i ? largest : mean,
                                            .ours = i ? g->largest : mean_of(g),
                                            .unit = " %",
                                            .why = why});
}

/* The paper compares with all pure strategies at once, and hybrids with all other baselines. */
static void claim_others(cs_page *page, const cs_study *study)
{
    static const double paper[N_TYPES][2] = {{0, 174}, {32, 92}, {33, 168}};
    for (uint32_t type = 0; type < N_TYPES; type++) {
        const gains all = over_pures(study, type, ALL_PURES, false);
        const gains fsdp = over_pures(study, type, FSDP_ONLY, false);
        const gains alike = over_pures(study, type, ALL_PURES, true);
        const char *why = cs_page_format(
            page,
            "PP and TP are simulated, with messages next to computing, and OSDP is computed by its "
            "cost model; with all of them simulated, where slices do not shrink the surge, the "
            "mean is %.1f %% and the largest %.1f %%; over FSDP alone, by the cost model, %.1f %% "
            "and %.1f %%",
            mean_of(&alike), alike.largest, mean_of(&fsdp), fsdp.largest);
        claim_two(page, cs_page_format(page, "%s: OSDP over pure strategies", types[type]),
                  "section 4.2, figure 5", &all, paper[type][0], paper[type][1], why);
    }
    const hybrid_gains hybrids = compare_hybrids(study);
    claim_two(page, "3D + OSDP over 3D", "section 4.2: DeepSpeed 3D", &hybrids.combined, 31, 73,
              cs_page_format(
                  page,
                  "in %u of %u settings the best 3D parallelism of 8 GPUs has no data-parallel "
                  "devices that OSDP could replace; where a combination has them, OSDP makes it "
                  "%.1f %% faster in the mean and %.1f %% at most (%u pairs)",
                  hybrids.combined.n - hybrids.with_data, hybrids.combined.n,
                  mean_of(&hybrids.same), hybrids.same.largest, hybrids.same.n));
    claim_two(
        page, "3D + OSDP over DP, PP, TP and FSDP", "section 4.2: \"other baselines\"",
        &hybrids.pure, 38, 184,
        "it is largest over TP of narrow layers and over FSDP that has room for one sample per "
        "GPU; the paper's settings are not given");
    cs_page_claim(page,
                  &(cs_paper_claim){.what = "settings in which 3D + OSDP is the fastest strategy",
                                    .place = "section 4.2: \"in all experiments\"",
                                    .form = "all",
                                    .paper = hybrids.n,
                                    .ours = hybrids.fastest,
                                    .unit = "",
                                    .why = "a pipeline over all 8 GPUs, tensor parallelism or OSDP "
                                           "alone is faster elsewhere: a combination pays for the "
                                           "messages of both"});
}

/* Deterministic: how many searches take less than the paper's shortest one. */
static void claim_searches(cs_page *page, const cs_study *study)
{
    static const double shortest = 9; /* s */
    uint32_t n = 0, quick = 0;
    for (uint32_t type = 0; type < N_TYPES; type++)
        for (uint32_t i = 0; i < PER_TYPE; i++, n++)
            quick += number_of(study, setting(study, type, i, false), "own", "search_s") < shortest;
    cs_page_claim(page, &(cs_paper_claim){
                            .what = "settings whose search takes less than 9 s",
                            .place = "section 3.2: \"merely 9-307 seconds\"",
                            .form = "none",
                            .paper = 0,
                            .ours = quick,
                            .unit = "",
                            .why = cs_page_format(page,
                                                  "of %u; the search is dynamic programming over "
                                                  "kinds of operators, not the paper's depth-first "
                                                  "search over operators",
                                                  n)});
}

/* Means of figure 5 next to the paper's. */
static void draw_means(cs_page *page, const cs_study *study)
{
    enum { N_MEANS = 5 };
    static const char *const names[N_MEANS] = {"N&D, over FSDP", "W&S, over pure strategies",
                                               "I&C, over pure strategies", "3D + OSDP, over 3D",
                                               "3D + OSDP, over other baselines"};
    static const double paper[N_MEANS] = {22, 32, 33, 31, 38};
    const hybrid_gains hybrids = compare_hybrids(study);
    const gains all[N_MEANS] = {
        over_pures(study, NARROW, FSDP_ONLY, false), over_pures(study, WIDE, ALL_PURES, false),
        over_pures(study, MIXED, ALL_PURES, false), hybrids.combined, hybrids.pure};
    double ours[N_MEANS];
    for (uint32_t i = 0; i < N_MEANS; i++)
        ours[i] = mean_of(&all[i]);
    draw_beside(page, "mean gain of OSDP (%), 8 GPUs", names, paper, ours, N_MEANS);
}

static cs_status show_server(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const bar bars[] = {
        {"DP", "own", "data"},
        {"PP (GPipe)", "pipeline", "rate"},
        {"TP (Megatron)", "tensor", "rate"},
        {"FSDP", "own", "fsdp"},
        {"OSDP-base", "own", "base"},
        {"OSDP", "own", "osdp"},
        {"3D", NULL, "rate"},
        {"3D + OSDP", NULL, "osdp"},
    };
    static const comparison own = {"own", "osdp", "fsdp", false};
    CS_TRY(check_axes(studies, error));
    cs_page_text(page, "%s", models_text);
    cs_page_text(page,
                 "Hybrids are simulated: GPipe with 8 micro-batches if there are stages, the best "
                 "of all ways to combine 2 and 4 stages, 2 and 4 tensor-parallel devices and 2 and "
                 "4 data-parallel ones, and the best batch among powers of two. 3D + OSDP shards "
                 "none to four of the four slices of each operator among the data-parallel devices "
                 "of a stage, and gathers them per micro-batch or once per mini-batch, whichever "
                 "is fastest.");
    draw_bars(page, studies, bars, sizeof(bars) / sizeof(bars[0]), false,
              "8 TITAN RTX; PP, TP and 3D are simulated, the others by the cost model");
    draw_means(page, studies);
    claim_gains(page, studies, NARROW, &own, "N&D: OSDP over FSDP",
                "section 4.2, figure 5: against FSDP", 22, 23, 0,
                "it needs 54 % of the parameters in data mode, for which there is no room: the "
                "mean would be lower even if nothing were computed and no activation kept (bound "
                "of modes in the table below), and FSDP fills with samples what is left");
    claim_others(page, studies);
    claim_searches(page, studies);
    cs_page_table(page, "OSDP over FSDP, gain in %: mean, largest (settings).", "\tN&D\tW&S\tI&C");
    add_gains_row(page, studies, "cost model", &own);
    add_gains_row(page, studies, "of it by modes, at FSDP's batch",
                  &(comparison){"own", "base_same", "fsdp", false});
    add_gains_row(page, studies, "of it by slices", &(comparison){"own", "osdp", "base", false});
    add_gains_row(page, studies, "by modes, one sample a device",
                  &(comparison){"one", "base_same", "fsdp", false});
    add_gains_row(page, studies, "simulated, messages beside computing",
                  &(comparison){"own", "osdp_simulated", "fsdp_simulated", false});
    add_gains_row(page, studies, "in hybrids of 2 tensor-parallel by 4 devices",
                  &(comparison){"hybrid", "osdp", "fsdp", false});
    add_gains_row(page, studies, "in hybrids of 4 tensor-parallel by 2 devices",
                  &(comparison){"hybrid4", "osdp", "fsdp", false});
    add_bounds_row(page, studies, false);
    return CS_OK;
}

/* OSDP over FSDP where FSDP has room for more than one sample. */
static gains with_room(const cs_study *study)
{
    gains g = {0};
    for (uint32_t type = 0; type < N_TYPES; type++)
        for (uint32_t i = 0; i < PER_TYPE; i++) {
            const uint32_t point = setting(study, type, i, false);
            if (number_of(study, point, "own", "fsdp_batch") > 1)
                add_gain(&g, number_of(study, point, "own", "osdp") /
                                 number_of(study, point, "own", "fsdp"));
        }
    return g;
}

static cs_status show_two_servers(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const bar bars[] = {{"DP", "own", "data"},
                               {"FSDP", "own", "fsdp"},
                               {"OSDP-base", "own", "base"},
                               {"OSDP", "own", "osdp"}};
    CS_TRY(check_axes(studies, error));
    cs_page_text(page, "%s", models_text);
    static const comparison own = {"own", "osdp", "fsdp", false};
    const gains roomy = with_room(studies);
    draw_bars(page, studies, bars, sizeof(bars) / sizeof(bars[0]), false,
              "two servers of 8 A100, 100 Gb/s, by the cost model");
    claim_gains(page, studies, N_TYPES, &(comparison){"own", "osdp", "fsdp", false},
                "OSDP over FSDP, two servers", "section 4.2, figure 6", 29, 67, 0,
                cs_page_format(page,
                               "settings where FSDP has room for one sample, and slices for "
                               "several: without these %u the mean is %.1f %% and the largest "
                               "%.1f %%",
                               compare(studies, N_TYPES, &own).n - roomy.n, mean_of(&roomy),
                               roomy.largest));
    return CS_OK;
}

/* ---- figure 7 ---- */

/* The block's larger operator, sharded, in 1 to 16 slices. */
static const cs_osdp_operator *find_operator(const cs_osdp_model *model,
                                             const cs_scenario *scenario)
{
    const cs_osdp_operator *found = NULL;
    for (uint32_t i = 0; i < model->n; i++)
        if (strncmp(scenario->model->layers[i].name, "blocks", 6) == 0 &&
            (!found || model->operators[i].weights > found->weights))
            found = &model->operators[i];
    return found;
}

static cs_status add_slices(const cs_osdp_model *model, const cs_osdp_operator *of,
                            uint32_t samples, const char *key, cs_arena *arena, cJSON *report,
                            cs_error *error)
{
    const cs_osdp_rules rules = {.limit = INT64_MAX, .modes = CS_OSDP_SHARDED, .slices = true};
    cs_osdp_model one = *model;
    cs_osdp_menu menu;
    one.n = 1;
    one.operators = of;
    CS_TRY(cs_osdp_menu_make(&one, &rules, samples, arena, &menu, error));
    cJSON *list = cJSON_AddArrayToObject(report, key);
    bool good = list;
    for (uint32_t i = 0; i < menu.kinds[0].n_options && good; i++) {
        const cs_osdp_option *option = &menu.kinds[0].options[i];
        if (option->choice.sharded != option->choice.slices)
            continue;
        cJSON *item = cs_json_add_item(list);
        good = cs_json_add_number(item, "slices", option->choice.slices) &&
               cs_json_add_number(item, "bytes", (double)(option->memory + option->extra)) &&
               cs_json_add_number(item, "time_s", cs_time_seconds(option->time));
    }
    return good ? CS_OK : cs_error_no_memory(error);
}

static cs_status run_slices(const void *context, const cJSON *document, const cs_progress *progress,
                            cJSON **result, cs_error *error)
{
    const cs_osdp_slices slices = {.most = MOST_SLICES};
    const cs_osdp_options how = {
        .slices = &slices, .n_slices = 1, .most_batch = 1, .progress = progress};
    cs_scenario scenario = {0};
    cs_osdp_model model;
    cs_arena arena;
    cJSON *report = cJSON_CreateObject();
    cs_arena_init(&arena);
    cs_status status = report ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_scenario_read_watched(document, context, progress, &scenario, error);
    if (status == CS_OK)
        status = cs_osdp_model_of(&scenario, &how, &arena, &model, error);
    if (status == CS_OK) {
        const cs_osdp_operator *block = find_operator(&model, &scenario);
        status = block ? add_slices(&model, block, 1, "options", &arena, report, error)
                       : cs_error_add(error, CS_INVALID, "%s: the model has no block",
                                      (const char *)context);
        if (status == CS_OK)
            status = add_slices(&model, block, MORE_SAMPLES, "more", &arena, report, error);
    }
    cs_arena_finish(&arena);
    cs_scenario_finish(&scenario);
    if (status == CS_OK)
        *result = report;
    else
        cJSON_Delete(report);
    return status;
}

static double number_in(const cs_study *study, uint32_t point, const char *list, uint32_t slices,
                        const char *key)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, cs_study_member(study, point, list))
    {
        if (cs_json_member(item, "slices")->valuedouble == slices)
            return cs_json_member(item, key)->valuedouble;
    }
    return NAN;
}

static double slice_number(const cs_study *study, uint32_t point, uint32_t slices, const char *key)
{
    return number_in(study, point, "options", slices, key);
}

/* Memory that the most slices save, %, at the hidden size where they save most. */
static double most_saved(const cs_study *study, const char *list)
{
    double most = 0;
    for (uint32_t i = 0; i < cs_study_length(study, 0); i++)
        most = fmax(most, 100 * (1 - number_in(study, i, list, MOST_SLICES, "bytes") /
                                         number_in(study, i, list, 1, "bytes")));
    return most;
}

static void draw_slices(cs_page *page, const cs_study *study)
{
    const uint32_t n = cs_study_length(study, 0), n_series = n + 1;
    cs_chart_draft *draft = cs_page_draft(page, 2, n_series, MOST_SLICES);
    for (uint32_t i = 0; draft && i < 2 * n_series; i++) {
        const bool time = i / n_series;
        draft->panels[time].title = time ? "time" : "memory";
        if (i % n_series == n) {
            draft->series[i].name = "paper: largest reduction of memory";
            draft->series[i].dashed = true;
            for (uint32_t k = 0; k < MOST_SLICES; k++) {
                draft->x[i][k] = k + 1;
                draft->y[i][k] = time ? NAN : 0.5;
            }
            continue;
        }
        const char *key = time ? "time_s" : "bytes";
        draft->series[i].name =
            cs_page_format(page, "hidden size %g", cs_study_axis_number(study, 0, i % n_series));
        for (uint32_t k = 0; k < MOST_SLICES; k++) {
            draft->x[i][k] = k + 1;
            draft->y[i][k] = slice_number(study, i % n_series, k + 1, key) /
                             slice_number(study, i % n_series, 1, key);
        }
    }
    if (!draft)
        return;
    draft->chart.subtitle = "a sharded operator on 8 devices, one sample; over that in one piece";
    draft->chart.x_title = "slices";
    draft->chart.y_title = "over one piece";
    cs_page_chart(page, &draft->chart);
}

/* The paper's curves cannot be read off to the digit, but their axes can: a check of the GPU's
 * speed, of the bandwidth and of the activations that are assumed. */
static void compare_axes(cs_page *page, const cs_study *study)
{
    static const struct {
        double hidden;
        const char *time, *memory; /* the last number at the axis of its panel */
    } axes[] = {{1024, "0.06 s", "100 MB"}, {12288, "5 s", "10000 MB"}};
    cs_page_table(page, "An operator in one piece, and where the axes of figure 7 end.",
                  "hidden size\ttime\taxis of time ends at\tmemory\taxis of memory ends at");
    for (uint32_t i = 0; i < cs_study_length(study, 0); i++)
        for (uint32_t a = 0; a < sizeof(axes) / sizeof(axes[0]); a++) {
            const double hidden = cs_study_axis_number(study, 0, i);
            if (fabs(hidden - axes[a].hidden) < 0.5)
                cs_page_row(page, "%.0f\t%.3g s\t%s\t%.0f MB\t%s", hidden,
                            slice_number(study, i, 1, "time_s"), axes[a].time,
                            slice_number(study, i, 1, "bytes") / 1e6, axes[a].memory);
        }
}

static cs_status show_slices(const cs_study *studies, cs_page *page, cs_error *error)
{
    CS_TRY(cs_study_all_done(studies, error));
    draw_slices(page, studies);
    cs_page_claim(
        page, &(cs_paper_claim){.what = "largest reduction of an operator's memory",
                                .place = "section 4.3, figure 7",
                                .relation = CS_UP_TO,
                                .paper = 50,
                                .ours = most_saved(studies, "options"),
                                .unit = " %",
                                .why = cs_page_format(
                                    page,
                                    "(4/N + 2/k) S and the activations of one sample, which slices "
                                    "leave as they are; the paper's batch is not given: with 16 "
                                    "samples a device it is %.1f %%",
                                    most_saved(studies, "more"))});
    for (uint32_t i = 0; i < cs_study_length(studies, 0); i++) {
        const double hidden = cs_study_axis_number(studies, 0, i);
        cs_page_claim(page, &(cs_paper_claim){
                                .what = cs_page_format(
                                    page, "hidden size %g: time with 16 slices over one", hidden),
                                .place = hidden < 2000 ? "section 4.3: more slices take longer"
                                                       : "figure 7c: no visible increase",
                                .relation = hidden < 2000 ? CS_ABOVE : CS_IS,
                                .paper = 1,
                                .ours = slice_number(studies, i, MOST_SLICES, "time_s") /
                                        slice_number(studies, i, 1, "time_s"),
                                .decimals = 2,
                                .unit = ""});
    }
    compare_axes(page, studies);
    return CS_OK;
}

/* ---- figures 8 and 9 ---- */

static double cut_share(const cs_study *study, uint32_t type, const char *of)
{
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < PER_TYPE; i++) {
        const uint32_t point = setting(study, type, i, false);
        if (isnan(number_of(study, point, of, "osdp")))
            continue;
        sum += 100 * number_of(study, point, of, "operators_cut") /
               number_of(study, point, of, "operators");
        n++;
    }
    return n > 0 ? sum / n : NAN;
}

static cs_status show_splitting(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const bar bars[] = {{"OSDP-base", "own", "base"}, {"OSDP", "own", "osdp"}};
    static const double shares[N_TYPES] = {25, 100, 50};
    const gains g = compare(studies, N_TYPES, &(comparison){"own", "osdp", "base", false});
    CS_TRY(check_axes(studies, error));
    cs_page_text(page, "%s", models_text);
    draw_bars(page, studies, bars, 2, false, "8 TITAN RTX, by the cost model");
    draw_beside(page, "operators cut (%), mean", types, shares,
                (double[]){cut_share(studies, NARROW, "own"), cut_share(studies, WIDE, "own"),
                           cut_share(studies, MIXED, "own")},
                N_TYPES);
    for (int i = 0; i < 2; i++)
        cs_page_claim(page,
                      &(cs_paper_claim){.what = cs_page_format(page, "OSDP over OSDP-base, %s gain",
                                                               i ? "largest" : "least"),
                                        .place = "section 4.3, figure 8",
                                        .paper = i ? 92 : 3,
                                        .ours = i ? g.largest : g.least,
                                        .unit = " %",
                                        .why = i ? "by how much depends on how near to the limit "
                                                   "OSDP-base comes, and so on the settings"
                                                 : "narrow layers gain nothing by slices (table "
                                                   "below)"});
    for (uint32_t type = 0; type < N_TYPES; type++)
        cs_page_claim(
            page,
            &(cs_paper_claim){.what = cs_page_format(page, "%s: operators cut, mean", types[type]),
                              .place = "section 4.3",
                              .relation = CS_ABOUT,
                              .paper = shares[type],
                              .ours = cut_share(studies, type, "own"),
                              .unit = " %",
                              .why = cs_page_format(
                                  page,
                                  "only the largest operators make the surge, and others gain "
                                  "nothing by slices: with the sum of all surges, as the paper's "
                                  "formula of memory has it, %.1f %%",
                                  cut_share(studies, type, "sum"))});
    cs_page_table(page, "OSDP over OSDP-base, gain in %: mean, largest (settings).",
                  "\tN&D\tW&S\tI&C");
    add_gains_row(page, studies, "surge of the largest operator",
                  &(comparison){"own", "osdp", "base", false});
    add_gains_row(page, studies, "sum of all surges", &(comparison){"sum", "osdp", "base", false});
    add_gains_row(page, studies, "sum of all surges, OSDP over FSDP",
                  &(comparison){"sum", "osdp", "fsdp", false});
    return CS_OK;
}

static cs_status show_checkpointing(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const bar bars[] = {{"FSDP", "own", "fsdp"}, {"OSDP", "own", "osdp"}};
    CS_TRY(check_axes(studies, error));
    cs_page_text(page, "%s", models_text);
    draw_bars(page, studies, bars, 2, true, "8 TITAN RTX with checkpointing, by the cost model");
    claim_gains(
        page, studies, N_TYPES, &(comparison){"own", "osdp", "fsdp", true},
        "OSDP over FSDP, checkpointing", "section 4.3, figure 9", 52.9, 108.3, 1,
        "modes would give less even if nothing were computed and no activation kept (bound of "
        "modes in the table below); slices give the rest, where layers are wide, and FSDP "
        "fills the memory that recomputation frees with samples");
    cs_page_table(page, "OSDP over FSDP, gain in %: mean, largest (settings).", "\tN&D\tW&S\tI&C");
    add_gains_row(page, studies, "checkpointing, cost model",
                  &(comparison){"own", "osdp", "fsdp", true});
    add_gains_row(page, studies, "checkpointing, of it by modes, at FSDP's batch",
                  &(comparison){"own", "base_same", "fsdp", true});
    add_gains_row(page, studies, "checkpointing, of it by slices",
                  &(comparison){"own", "osdp", "base", true});
    add_bounds_row(page, studies, true);
    return CS_OK;
}

static const cs_paper_figure figures[] = {
    {"osdp-table1", "models", {{"papers/osdp-8gpu.json", run_server}}, show_models},
    {"osdp-fig5", "throughput on 8 GPUs", {{"papers/osdp-8gpu.json", run_server}}, show_server},
    {"osdp-fig6",
     "throughput on two servers",
     {{"papers/osdp-16gpu.json", run_two_servers}},
     show_two_servers},
    {"osdp-fig7", "operator splitting", {{"papers/osdp-split.json", run_slices}}, show_slices},
    {"osdp-fig8",
     "OSDP with and without operator splitting",
     {{"papers/osdp-8gpu.json", run_server}},
     show_splitting},
    {"osdp-fig9",
     "OSDP and FSDP with checkpointing",
     {{"papers/osdp-8gpu.json", run_server}},
     show_checkpointing},
    {0},
};

const cs_paper cs_paper_osdp = {
    .name = "OSDP",
    .source = "Jiang, Fu, Miao, Nie and Cui, OSDP: Optimal Sharded Data Parallel for Distributed "
              "Deep Learning, IJCAI 2023",
    .left_out = "Not timed: the authors' depth-first search, which sim osdp --depth-first runs. "
                "Figures 1 to "
                "4 show no result.",
    .figures = figures,
};
