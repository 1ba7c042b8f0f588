/* Beaumont, Eyraud-Dubois and Shilova, "MadPipe: Memory Aware Dynamic Programming Algorithm for
 * Pipelined Model Parallelism", ScaDL 2022 (HAL hal-03025305). */
#include "papers/papers.h"
#include "schedules/plan/madpipe-dp.h"
#include "sim/run/scenario/planning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- patterns: figures 2, 3 and 5 ---- */

static cs_status measure_devices(const cs_scenario *scenario, const cs_simulation *simulation,
                                 cJSON *report, cs_error *error)
{
    cJSON *list = cJSON_AddArrayToObject(report, "activations");
    bool good = list && cs_json_add_number(report, "pattern_period_s",
                                           simulation->analysis.iteration_time /
                                               scenario->job.micro_batches);
    for (uint32_t d = 0; d < simulation->trace.n_devices && good; d++) {
        const cs_device_record *record = &simulation->trace.devices[d];
        cJSON *value =
            cJSON_CreateNumber((double)record->category_peak[CS_MEMORY_ACTIVATIONS] / 1e9);
        good = value && cJSON_AddItemToArray(list, value);
    }
    return good ? CS_OK : cs_error_no_memory(error);
}

static cs_status run_pattern(const void *context, const cJSON *document,
                             const cs_progress *progress, cJSON **result, cs_error *error)
{
    return cs_study_run(context, document, measure_devices, progress, result, error);
}

/* All patterns of a period whose operations start at multiples of a step, by the delays between the
 * end of a stage's forward and the start of its backward. Messages take no time. */
typedef struct all_patterns {
    uint32_t n_stages, period, longest;   /* steps; the longest delay that is tried */
    const uint32_t *forwards, *backwards; /* steps */
    uint32_t *fewest;                     /* micro-batches that a stage keeps at once */
    double n;
} all_patterns;

/* The stages before `end`. The last one waits `least` steps or more for its gradient. A device
 * computes one operation at a time: a backward that starts `delay` steps after the forward has
 * ended must end within a period of the forward's start, modulo the period. */
static void try_delays(all_patterns *all, uint32_t end, uint32_t least)
{
    if (end == 0) {
        all->n++;
        return;
    }
    const uint32_t s = end - 1, busy = all->forwards[s] + all->backwards[s];
    for (uint32_t delay = least; delay <= all->longest; delay++) {
        const uint32_t kept = (busy + delay + all->period - 1) / all->period;
        if (delay % all->period + busy > all->period)
            continue;
        all->fewest[s] = kept < all->fewest[s] ? kept : all->fewest[s];
        try_delays(all, s, delay + busy);
    }
}

/* Besides the run's numbers the fewest micro-batches that any pattern of its period keeps. */
static cs_status measure_patterns(const cs_scenario *scenario, const cs_simulation *simulation,
                                  cJSON *report, cs_error *error)
{
    enum { MOST_STAGES = 8 };
    const uint32_t n = scenario->plan->n_stages;
    uint32_t forwards[MOST_STAGES], backwards[MOST_STAGES], fewest[MOST_STAGES];
    if (n > MOST_STAGES)
        return cs_error_add(error, CS_INVALID, "must have at most %d stages", MOST_STAGES);
    for (uint32_t s = 0; s < n; s++) {
        const cs_layer *layer = &scenario->model->layers[scenario->plan->stages[s].first_layer];
        forwards[s] = (uint32_t)lround(cs_time_seconds(layer->forward));
        backwards[s] = (uint32_t)lround(cs_time_seconds(layer->backward_input) +
                                        cs_time_seconds(layer->backward_weight));
        fewest[s] = UINT32_MAX;
    }
    CS_TRY(measure_devices(scenario, simulation, report, error));
    const uint32_t period =
        (uint32_t)lround(simulation->analysis.iteration_time / scenario->job.micro_batches);
    all_patterns all = {n, period, 8 * period, forwards, backwards, fewest, 0};
    try_delays(&all, n, 0);
    cJSON *list = cJSON_AddArrayToObject(report, "fewest");
    bool good = list && cs_json_add_number(report, "patterns", all.n);
    for (uint32_t s = 0; s < n && good; s++) {
        cJSON *value = cJSON_CreateNumber(fewest[s]);
        good = value && cJSON_AddItemToArray(list, value);
    }
    return good ? CS_OK : cs_error_no_memory(error);
}

static cs_status run_patterns(const void *context, const cJSON *document,
                              const cs_progress *progress, cJSON **result, cs_error *error)
{
    return cs_study_run(context, document, measure_patterns, progress, result, error);
}

static double item_of(const cs_study *study, uint32_t point, const char *list, uint32_t i)
{
    const cJSON *value = cJSON_GetArrayItem(cs_study_member(study, point, list), (int)i);
    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static double activations_of(const cs_study *study, uint32_t point, uint32_t device)
{
    return item_of(study, point, "activations", device);
}

static void claim_period(cs_page *page, const cs_study *study, uint32_t point, double period,
                         const char *unit, double scale)
{
    cs_page_claim(
        page, &(cs_paper_claim){.what = "period of what is simulated",
                                .place = "section 3: in the k-th period an operation starts at "
                                         "k T + t",
                                .form = "T",
                                .paper = period,
                                .ours = scale * cs_study_number(study, point, "pattern_period_s"),
                                .unit = unit});
}

static cs_status show_pattern(const cs_study *studies, cs_page *page, cs_error *error)
{
    CS_TRY(cs_study_all_done(studies, error));
    cs_page_text(page, "Four stages of 3, 6, 6 and 3 ms on three devices; the first device holds "
                       "the first stage and the last.");
    cs_page_run(page, studies, 0, 0.05, "a valid pattern of 6 ms, repeated");
    claim_period(page, studies, 0, 6, " ms", 1e3);
    return CS_OK;
}

static cs_status show_groups(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const uint32_t groups[] = {3, 3, 2, 1, 1};
    CS_TRY(cs_study_all_done(studies, error));
    cs_page_text(page, "Five stages of 3, 3, 6, 3 and 3 s, each with activations of 1 GB; T = 6 s "
                       "makes three groups of at most 6 s, from the last stage on.");
    cs_page_run(page, studies, 0, 42, "1F1B* with three groups");
    claim_period(page, studies, 0, 6, " s", 1);
    for (uint32_t s = 0; s < sizeof(groups) / sizeof(groups[0]); s++)
        cs_page_claim(
            page, &(cs_paper_claim){
                      .what = cs_page_format(page, "activations that stage %u of group %u keeps",
                                             s + 1, groups[s]),
                      .place = "figure 3, section 4.1: exactly g",
                      .form = "g",
                      .paper = groups[s],
                      .ours = activations_of(studies, 0, s),
                      .unit = ""});
    for (uint32_t s = 0; s < sizeof(groups) / sizeof(groups[0]); s++)
        cs_page_claim(page, &(cs_paper_claim){
                                .what = cs_page_format(
                                    page, "fewest activations of stage %u in any pattern", s + 1),
                                .place = "section 4.1, proposition 1: not fewer than 1F1B*",
                                .form = "g",
                                .paper = groups[s],
                                .ours = item_of(studies, 0, "fewest", s),
                                .unit = ""});
    cs_page_text(page,
                 "All %.0f patterns with a period of 6 s were tried whose operations start at "
                 "whole seconds and whose backwards start within eight periods of the forward.",
                 cs_study_number(studies, 0, "patterns"));
    return CS_OK;
}

static cs_status show_special(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const struct {
        const char *caption, *form;
        double paper;
    } cases[] = {
        {"both forwards, then both backwards", "g_i a_i + g_j a_j", 4},
        {"each backward after its own forward",
         "max(g_i a_i + (g_j - 1) a_j, (g_i - 1) a_i + g_j "
         "a_j)",
         3},
    };
    CS_TRY(cs_study_all_done(studies, error));
    cs_page_text(page,
                 "Device 0 holds the first and the last of three stages, with g = 3 and 1 and "
                 "activations of 1 GB; the period is 5 s.");
    for (uint32_t i = 0; i < cs_study_length(studies, 0) && i < 2; i++)
        cs_page_run(page, studies, i, 30, cases[i].caption);
    for (uint32_t i = 0; i < cs_study_length(studies, 0) && i < 2; i++)
        cs_page_claim(page,
                      &(cs_paper_claim){.what = cs_page_format(page, "%s: peak", cases[i].caption),
                                        .place = i ? "figure 5b" : "figure 5a",
                                        .form = cases[i].form,
                                        .paper = cases[i].paper,
                                        .ours = activations_of(studies, i, 0),
                                        .unit = " GB"});
    return CS_OK;
}

/* ---- the experiments: figures 6 to 8 ---- */

/* Axes of the study. */
enum { NETWORK, GPUS, MEMORY, BANDWIDTH, PLANNER, N_AXES };

/* Its planners, in its order. */
enum { DEPTH, ALL, ORIGINAL, CONTIGUOUS, MADPIPE, SAFE, N_PLANNERS };

static const char *const planners[N_PLANNERS] = {"PipeDream, rule depth",
                                                 "PipeDream, rule all",
                                                 "PipeDream, rule original",
                                                 "best contiguous",
                                                 "MadPipe",
                                                 "MadPipe, safe"};

static const double SCARCE = 10; /* GB */

static double gigabytes(const cs_study *study, uint32_t memory)
{
    return cs_study_axis_number(study, MEMORY, memory);
}

static double number_at(const cs_study *study, const uint32_t at[N_AXES], const char *key)
{
    return cs_study_number(study, cs_study_point(study, at), key);
}

static double period_at(const cs_study *study, const uint32_t at[N_AXES])
{
    return number_at(study, at, "plan_period_s");
}

static double with_planner(const cs_study *study, const uint32_t at[N_AXES], uint32_t planner,
                           const char *key)
{
    const uint32_t other[N_AXES] = {at[NETWORK], at[GPUS], at[MEMORY], at[BANDWIDTH], planner};
    return number_at(study, other, key);
}

/* The next setting of the first `n` axes; false behind the last. */
static bool next(const cs_study *study, uint32_t at[N_AXES])
{
    for (uint32_t axis = PLANNER; axis-- > 0;) {
        if (++at[axis] < cs_study_length(study, axis))
            return true;
        at[axis] = 0;
    }
    return false;
}

/* Ratios of two planners over settings where both have a plan. */
typedef struct ratios {
    double product; /* sum of logarithms */
    double largest;
    uint32_t n, over; /* over 1.2 */
} ratios;

static void add_ratio(ratios *r, double ratio)
{
    if (!isfinite(ratio))
        return;
    r->product += log(ratio);
    r->largest = fmax(r->largest, ratio);
    r->over += ratio > 1.2;
    r->n++;
}

static double mean_of(const ratios *r)
{
    return r->n > 0 ? exp(r->product / r->n) : NAN;
}

/* Ratios of periods at settings of less than `below` GB, of one network or, at the axis' length, of
 * all. */
static ratios compare(const cs_study *study, uint32_t network, uint32_t planner, uint32_t with,
                      double below)
{
    ratios r = {0};
    uint32_t at[N_AXES] = {0};
    do {
        if (gigabytes(study, at[MEMORY]) < below &&
            (at[NETWORK] == network || network == cs_study_length(study, NETWORK)))
            add_ratio(&r, with_planner(study, at, planner, "plan_period_s") /
                              with_planner(study, at, with, "plan_period_s"));
    } while (next(study, at));
    return r;
}

/* Pairs of neighbouring memories where a value of ResNet-50 grows with the memory. */
static uint32_t count_rises(const cs_study *study, uint32_t planner, const char *key)
{
    uint32_t rises = 0, at[N_AXES] = {0};
    do {
        uint32_t more[N_AXES] = {at[NETWORK], at[GPUS], at[MEMORY] + 1, at[BANDWIDTH], planner};
        if (at[NETWORK] == 0 && more[MEMORY] < cs_study_length(study, MEMORY))
            rises +=
                number_at(study, more, key) > with_planner(study, at, planner, key) * (1 + 1e-9);
    } while (next(study, at));
    return rises;
}

static cs_status check_axes(const cs_study *study, cs_error *error)
{
    if (study->space.n_axes == N_AXES && cs_study_length(study, PLANNER) == N_PLANNERS)
        return CS_OK;
    return cs_error_add(error, CS_INVALID,
                        "%s: must vary network, devices, memory, bandwidth and %d "
                        "planners",
                        study->path, N_PLANNERS);
}

static const char study_text[] =
    "784 settings, of 2 to 8 GPUs of 3 to 16 GB with links of 12 and 24 GB/s; images of 1000 x "
    "1000 "
    "pixels in batches of 8; grids of 101, 11 and 51 values, as section 5.1 has them. The paper's "
    "chains were measured; here layers are estimated on a V100. PipeDream's memory test is not "
    "given in full: three readings stand side by side. \"Safe\" charges the special GPU with g "
    "micro-batches, the paper with g - 1.";

/* ---- MadPipe-DP against its target ---- */

enum { N_TARGETS = 120 };

/* How many times finer than the paper's the grids are; 0: without a special GPU, so that only
 * delays are rounded, to the finest grid. */
static const uint32_t finer[] = {1, 4, 0};
enum { N_GRIDS = sizeof(finer) / sizeof(finer[0]) };

/* The largest load of an allocation's devices and links, s; NaN: nothing fits. */
static double largest_load(const cs_chain *chain, const cs_plan *plan)
{
    cs_time largest = 0, loads[64] = {0};
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        const cs_stage *stage = &plan->stages[s];
        const uint32_t device = plan->devices[stage->first_device] % 64;
        loads[device] += cs_chain_load(chain, stage->first_layer, stage->end_layer);
        largest = loads[device] > largest ? loads[device] : largest;
        if (s > 0 && cs_chain_link(chain, stage->first_layer) > largest)
            largest = cs_chain_link(chain, stage->first_layer);
    }
    return plan->n_stages > 0 ? cs_time_seconds(largest) : NAN;
}

static cs_status add_targets(const cs_chain *chain, uint32_t times, cJSON *list, cs_error *error)
{
    const cs_madpipe_options options = {.loads = 100 * (times ? times : 40) + 1,
                                        .memories = 10 * (times ? times : 40) + 1,
                                        .delays = 50 * (times ? times : 40) + 1,
                                        .special = times ? CS_MADPIPE_OPTIMISTIC : CS_MADPIPE_NONE,
                                        .iterations = 1};
    const cs_time least = cs_chain_load(chain, 0, chain->n_layers) / chain->n_devices;
    for (uint32_t i = 0; i < N_TARGETS; i++) {
        cs_madpipe_allocation found = {0};
        cs_madpipe_work work = {0};
        const cs_time target = least + least / (2 * N_TARGETS) * 3 * i;
        CS_TRY(cs_madpipe_dp(chain, &options, target, &found, &work, error));
        const double load = largest_load(chain, &found.plan);
        cs_madpipe_allocation_finish(&found);
        cJSON *item = cs_json_add_item(list);
        if (!cs_json_add_number(item, "target_s", cs_time_seconds(target)) ||
            !cs_json_add_number(item, "load_s", load))
            return cs_error_no_memory(error);
    }
    return CS_OK;
}

static cs_status run_targets(const void *context, const cJSON *document,
                             const cs_progress *progress, cJSON **result, cs_error *error)
{
    const cs_json_place root = {.file = context};
    cs_scenario scenario = {0};
    cs_chain chain = {0};
    cJSON *report = cJSON_CreateObject();
    (void)progress;
    cs_status status = report ? cs_scenario_read_unplanned(document, context, &scenario, error)
                              : cs_error_no_memory(error);
    if (status == CS_OK) {
        const cs_chain_rules rules = cs_scenario_chain_rules(&scenario);
        status = cs_scenario_chain(&scenario.job, &root, &rules, &chain, error);
    }
    for (uint32_t g = 0; g < N_GRIDS && status == CS_OK; g++) {
        char key[16];
        snprintf(key, sizeof(key), "grid%u", finer[g]);
        cJSON *list = cJSON_AddArrayToObject(report, key);
        status = list ? add_targets(&chain, finer[g], list, error) : cs_error_no_memory(error);
    }
    cs_chain_finish(&chain);
    cs_scenario_finish(&scenario);
    if (status == CS_OK)
        *result = report;
    else
        cJSON_Delete(report);
    return status;
}

static double target_number(const cs_study *study, uint32_t point, uint32_t grid, uint32_t i,
                            const char *key)
{
    char list[16];
    snprintf(list, sizeof(list), "grid%u", finer[grid]);
    const cJSON *item = cJSON_GetArrayItem(cs_study_member(study, point, list), (int)i);
    const cJSON *value = cs_json_member(item, key);
    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

/* Pairs of neighbouring targets where the larger one has the larger period, and by how much at
 * most, %. The search stops at loads below the target, so that only larger ones are periods of
 * MadPipe-DP. A target without an allocation after one that has an allocation counts as well. */
static uint32_t count_growths(const cs_study *study, uint32_t grid, double *most)
{
    uint32_t n = 0;
    *most = 0;
    for (uint32_t point = 0; point < study->results.n_points; point++)
        for (uint32_t i = 1; i < N_TARGETS; i++) {
            const double before = target_number(study, point, grid, i - 1, "load_s");
            const double load = target_number(study, point, grid, i, "load_s");
            const double target = target_number(study, point, grid, i, "target_s");
            if (isnan(before) || load <= fmax(before, target) * (1 + 1e-9))
                continue;
            n++;
            *most = fmax(*most, 100 * (load / before - 1));
        }
    return n;
}

static void draw_targets(cs_page *page, const cs_study *study)
{
    static const char *const names[N_GRIDS + 1] = {"MadPipe-DP, the paper's grids",
                                                   "grids four times finer",
                                                   "without a special GPU", "period = target"};
    const uint32_t n = study->results.n_points;
    cs_chart_draft *draft = cs_page_draft(page, n, N_GRIDS + 1, N_TARGETS);
    for (uint32_t i = 0; draft && i < n * (N_GRIDS + 1); i++) {
        const uint32_t point = i / (N_GRIDS + 1), grid = i % (N_GRIDS + 1);
        draft->panels[point].title =
            cs_page_format(page, "%g GB", cs_study_axis_number(study, 0, point));
        draft->series[i].name = names[grid];
        draft->series[i].dashed = grid == N_GRIDS;
        for (uint32_t t = 0; t < N_TARGETS; t++) {
            draft->x[i][t] = 1e3 * target_number(study, point, 0, t, "target_s");
            const double load = 1e3 * target_number(study, point, grid, t, "load_s");
            /* NaN: nothing fits */
            draft->y[i][t] = grid == N_GRIDS || load < draft->x[i][t] ? draft->x[i][t] : load;
        }
    }
    if (!draft)
        return;
    draft->chart.subtitle = "ResNet-50 on 4 GPUs, 12 GB/s; the paper: not increasing";
    draft->chart.x_title = "target period (ms)";
    draft->chart.y_title = "period (ms)";
    cs_page_chart(page, &draft->chart);
}

static cs_status show_targets(const cs_study *studies, cs_page *page, cs_error *error)
{
    double most[N_GRIDS];
    uint32_t growths[N_GRIDS];
    CS_TRY(cs_study_all_done(studies, error));
    for (uint32_t g = 0; g < N_GRIDS; g++)
        growths[g] = count_growths(studies, g, &most[g]);
    draw_targets(page, studies);
    cs_page_claim(
        page,
        &(cs_paper_claim){
            .what =
                cs_page_format(page, "pairs of neighbouring targets where the period grows, of %u",
                               studies->results.n_points * (N_TARGETS - 1)),
            .place = "section 4.2.3: \"a non-increasing function\"",
            .paper = 0,
            .ours = growths[0],
            .unit = "",
            .why = cs_page_format(page,
                                  "grids are fractions of the target, so that rounding changes "
                                  "with it: by %.2f %% at most; without a special GPU %u pairs",
                                  most[0], growths[2])});
    cs_page_text(page,
                 "Periods below the target are not searched for: the larger of the two counts. "
                 "With grids four times finer %u pairs grow, by %.2f %% at most; without a special "
                 "GPU, whose load and memory are rounded, %u.",
                 growths[1], most[1], growths[2]);
    return CS_OK;
}

/* ---- figure 6 ---- */

static void draw_periods(cs_page *page, const cs_study *study)
{
    enum { SHOWN = 4 };
    static const uint32_t shown[SHOWN] = {DEPTH, ORIGINAL, MADPIPE, SAFE};
    const uint32_t n_gpus = cs_study_length(study, GPUS), length = cs_study_length(study, MEMORY);
    const uint32_t gpus[3] = {0, n_gpus > 2 ? 2 : n_gpus - 1, n_gpus - 1};
    cs_chart_draft *draft = cs_page_draft(page, 3, 2 * SHOWN, length);
    for (uint32_t i = 0; draft && i < 3 * 2 * SHOWN; i++) {
        const uint32_t panel = i / (2 * SHOWN), planner = shown[i % (2 * SHOWN) / 2];
        const bool promised = i % 2;
        draft->panels[panel].title =
            cs_page_format(page, "%g GPUs", cs_study_axis_number(study, GPUS, gpus[panel]));
        draft->series[i].name = planners[planner];
        draft->series[i].dashed = promised;
        for (uint32_t m = 0; m < length; m++) {
            const uint32_t at[N_AXES] = {0, gpus[panel], m, 0, planner};
            draft->x[i][m] = gigabytes(study, m);
            draft->y[i][m] =
                1e3 * number_at(study, at, promised ? "plan_promised_period_s" : "plan_period_s");
        }
    }
    if (!draft)
        return;
    draft->chart.subtitle = "ResNet-50, 12 GB/s; dashed: period of the partitioning, solid: of the "
                            "valid schedule";
    draft->chart.x_title = "memory of a GPU (GB)";
    draft->chart.y_title = "period (ms)";
    cs_page_chart(page, &draft->chart);
}

static cs_status show_periods(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const uint32_t readings[] = {DEPTH, ALL, ORIGINAL};
    CS_TRY(check_axes(studies, error));
    cs_page_text(page, "%s", study_text);
    draw_periods(page, studies);
    for (uint32_t r = 0; r < 3; r++) {
        const ratios found = compare(studies, 0, readings[r], MADPIPE, INFINITY);
        const ratios published = compare(studies, 0, ORIGINAL, MADPIPE, INFINITY);
        cs_page_claim(page, &(cs_paper_claim){
                                .what = cs_page_format(page, "%s: largest period over MadPipe's",
                                                       planners[readings[r]]),
                                .place = "section 5.2: \"up to two or even three times\"",
                                .relation = CS_ABOVE,
                                .paper = 2,
                                .ours = found.largest,
                                .decimals = 1,
                                .unit = "",
                                .why = cs_page_format(
                                    page,
                                    "the paper's memory test is not given in full: with the test "
                                    "of the published optimizer, \"original\", it is %.1f",
                                    published.largest)});
    }
    for (uint32_t planner = DEPTH; planner <= SAFE; planner++) {
        if (planner == CONTIGUOUS)
            continue;
        cs_page_claim(
            page,
            &(cs_paper_claim){
                .what = cs_page_format(page,
                                       "%s: partitionings whose period grows "
                                       "with the memory",
                                       planners[planner]),
                .place = "section 5.2, dashed lines",
                .paper = 0,
                .ours = count_rises(studies, planner, "plan_promised_period_s"),
                .unit = "",
                .why = "its grids depend on the memory and on T, so that a larger memory can be "
                       "rounded to a worse plan: with grids four times finer none of these grows"});
    }
    for (uint32_t r = 0; r < 3; r += 2)
        cs_page_claim(
            page,
            &(cs_paper_claim){
                .what = cs_page_format(page,
                                       "MadPipe: schedules whose period grows with the memory, "
                                       "against %s",
                                       planners[readings[r]]),
                .place = "section 5.2: \"much more visible for PipeDream\"",
                .relation = CS_BELOW,
                .paper = count_rises(studies, readings[r], "plan_period_s"),
                .ours = count_rises(studies, MADPIPE, "plan_period_s"),
                .unit = "",
                .why = cs_page_format(page,
                                      "charged with g - 1, the special GPU gets more than it can "
                                      "hold: charged with g it is %u",
                                      count_rises(studies, SAFE, "plan_period_s"))});
    return CS_OK;
}

/* ---- figure 7 ---- */

static double mean_ratio(const cs_study *study, uint32_t network, uint32_t memory, uint32_t planner,
                         uint32_t with)
{
    ratios r = {0};
    uint32_t at[N_AXES] = {0};
    do {
        if (at[NETWORK] == network && at[MEMORY] == memory)
            add_ratio(&r, with_planner(study, at, planner, "plan_period_s") /
                              with_planner(study, at, with, "plan_period_s"));
    } while (next(study, at));
    return mean_of(&r);
}

static void draw_ratios(cs_page *page, const cs_study *study)
{
    enum { SHOWN = 5, SERIES = SHOWN + 1 };
    static const uint32_t shown[SHOWN] = {DEPTH, ALL, ORIGINAL, CONTIGUOUS, SAFE};
    const uint32_t n = cs_study_length(study, NETWORK), length = cs_study_length(study, MEMORY);
    cs_chart_draft *draft = cs_page_draft(page, n, SERIES, length);
    for (uint32_t i = 0; draft && i < n * SERIES; i++) {
        const uint32_t series = i % SERIES;
        char name[64];
        cs_study_axis_text(study, NETWORK, i / SERIES, name, sizeof(name));
        draft->panels[i / SERIES].title = cs_page_format(page, "%s", name);
        draft->series[i].name =
            series < SHOWN ? planners[shown[series]] : "paper: PipeDream is over this below 10 GB";
        draft->series[i].dashed = series == SHOWN;
        for (uint32_t m = 0; m < length; m++) {
            draft->x[i][m] = gigabytes(study, m);
            draft->y[i][m] = series < SHOWN
                                 ? mean_ratio(study, i / SERIES, m, shown[series], MADPIPE)
                             : gigabytes(study, m) < SCARCE ? 1.2
                                                            : NAN;
        }
    }
    if (!draft)
        return;
    draft->chart.subtitle = "geometric mean over numbers of GPUs and bandwidths";
    draft->chart.x_title = "memory (GB)";
    draft->chart.y_title = "period over MadPipe's";
    cs_page_chart(page, &draft->chart);
}

/* Points of the picture below 10 GB: networks and memories where both planners have a plan at
 * some setting; of them those whose mean is more than 1.2. */
static void count_points(const cs_study *study, uint32_t planner, uint32_t with, uint32_t *n,
                         uint32_t *over)
{
    *n = *over = 0;
    for (uint32_t network = 0; network < cs_study_length(study, NETWORK); network++)
        for (uint32_t m = 0; m < cs_study_length(study, MEMORY); m++) {
            const double mean = mean_ratio(study, network, m, planner, with);
            *n += gigabytes(study, m) < SCARCE && !isnan(mean);
            *over += gigabytes(study, m) < SCARCE && mean > 1.2;
        }
}

static cs_status show_ratios(const cs_study *studies, cs_page *page, cs_error *error)
{
    CS_TRY(check_axes(studies, error));
    cs_page_text(page, "%s", study_text);
    draw_ratios(page, studies);
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t planner = i % 3, with = i < 3 ? MADPIPE : SAFE;
        uint32_t n, over, n_safe, over_safe;
        count_points(studies, planner, with, &n, &over);
        count_points(studies, planner, SAFE, &n_safe, &over_safe);
        cs_page_claim(
            page,
            &(cs_paper_claim){
                .what = cs_page_format(page,
                                       "%s over %s: points of the picture below 10 GB with a mean "
                                       "over 1.2",
                                       planners[planner], planners[with]),
                .place = "section 5.2, figure 7: \"consistently over 20 %\"",
                .form = "all",
                .paper = n,
                .ours = over,
                .unit = "",
                .why = with == MADPIPE
                           ? cs_page_format(page,
                                            "MadPipe as in the paper charges its special GPU with "
                                            "too little, and then needs a longer period than it "
                                            "promised: against MadPipe, safe, %u of %u",
                                            over_safe, n_safe)
                           : "with other readings of PipeDream's memory test it is over 1.2 at "
                             "more points: the test decides"});
    }
    cs_page_table(page, "Geometric means of all settings below 10 GB where both have a plan.",
                  "planner\tover\tmean\tlargest\tsettings\tover 1.2");
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t planner = i % 3, with = i < 3 ? MADPIPE : SAFE;
        const ratios found =
            compare(studies, cs_study_length(studies, NETWORK), planner, with, SCARCE);
        cs_page_row(page, "%s\t%s\t%.2f\t%.2f\t%u\t%u", planners[planner], planners[with],
                    mean_of(&found), found.largest, found.n, found.over);
    }
    return CS_OK;
}

/* ---- figure 8 ---- */

/* Sequential time of a micro-batch: 1 - N U / (P makespan) is the bubble of N micro-batches. */
static double sequential_time(const cs_study *study, uint32_t network)
{
    uint32_t at[N_AXES] = {0};
    do {
        const uint32_t own[N_AXES] = {at[NETWORK], at[GPUS], at[MEMORY], at[BANDWIDTH], CONTIGUOUS};
        const double busy = (1 - number_at(study, own, "bubble_fraction")) *
                            cs_study_axis_number(study, GPUS, at[GPUS]) *
                            number_at(study, own, "makespan_s");
        if (at[NETWORK] == network && isfinite(busy))
            return busy /
                   (number_at(study, own, "micro_batches") * number_at(study, own, "iterations"));
    } while (next(study, at));
    return NAN;
}

static uint32_t memory_of(const cs_study *study, double memory)
{
    uint32_t m = 0;
    while (m + 1 < cs_study_length(study, MEMORY) && gigabytes(study, m) < memory)
        m++;
    return m;
}

static double speedup(const cs_study *study, const uint32_t at[N_AXES])
{
    return sequential_time(study, at[NETWORK]) / period_at(study, at);
}

static void draw_speedups(cs_page *page, const cs_study *study)
{
    enum { SHOWN = 4, MEMORIES = 3 };
    static const uint32_t shown[SHOWN] = {DEPTH, ORIGINAL, MADPIPE, SAFE};
    static const double memories[MEMORIES] = {6, 12, 16};
    const uint32_t n = cs_study_length(study, NETWORK), length = cs_study_length(study, GPUS);
    cs_chart_draft *draft = cs_page_draft(page, n * MEMORIES, SHOWN, length);
    for (uint32_t i = 0; draft && i < n * MEMORIES * SHOWN; i++) {
        const uint32_t panel = i / SHOWN, network = panel % n;
        const uint32_t memory = memory_of(study, memories[panel / n]);
        char name[64];
        cs_study_axis_text(study, NETWORK, network, name, sizeof(name));
        draft->panels[panel].title =
            cs_page_format(page, "%s, %g GB", name, gigabytes(study, memory));
        draft->series[i].name = planners[shown[i % SHOWN]];
        for (uint32_t g = 0; g < length; g++) {
            draft->x[i][g] = cs_study_axis_number(study, GPUS, g);
            draft->y[i][g] = speedup(study, (uint32_t[]){network, g, memory, 0, shown[i % SHOWN]});
        }
    }
    if (!draft)
        return;
    draft->chart.n_columns = n;
    draft->chart.subtitle = "12 GB/s";
    draft->chart.x_title = "GPUs";
    draft->chart.y_title = "speedup";
    cs_page_chart(page, &draft->chart);
}

/* Geometric mean over networks of the speedup on most GPUs with a memory, with one bandwidth or, at
 * the axis' length, all. */
static double mean_speedup(const cs_study *study, uint32_t planner, double memory,
                           uint32_t bandwidth)
{
    ratios r = {0};
    uint32_t at[N_AXES] = {0};
    do {
        const uint32_t own[N_AXES] = {at[NETWORK], at[GPUS], at[MEMORY], at[BANDWIDTH], planner};
        if (at[GPUS] + 1 == cs_study_length(study, GPUS) &&
            at[MEMORY] == memory_of(study, memory) &&
            (at[BANDWIDTH] == bandwidth || bandwidth == cs_study_length(study, BANDWIDTH)))
            add_ratio(&r, speedup(study, own));
    } while (next(study, at));
    return mean_of(&r);
}

static const char *speedup_cell(cs_page *page, const cs_study *study, uint32_t planner,
                                double memory)
{
    const double mean = mean_speedup(study, planner, memory, cs_study_length(study, BANDWIDTH));
    return isnan(mean) ? "-" : cs_page_format(page, "%.2f", mean);
}

/* "Increasing the bandwidth does not dramatically improve this behavior": less than memory does. */
static void claim_bandwidth(cs_page *page, const cs_study *study)
{
    static const double little = 6, twice = 12; /* GB */
    static const uint32_t shown[] = {DEPTH, ORIGINAL, MADPIPE};
    const uint32_t last = cs_study_length(study, BANDWIDTH) - 1;
    if (last == 0)
        return;
    for (uint32_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        const double before = mean_speedup(study, shown[i], little, 0);
        cs_page_claim(page, &(cs_paper_claim){
                                .what = cs_page_format(page,
                                                       "%s, 8 GPUs of 6 GB: speedup with twice the "
                                                       "bandwidth over that with half of it, "
                                                       "against twice the memory",
                                                       planners[shown[i]]),
                                .place = "section 5.2: bandwidth \"does not dramatically improve\" "
                                         "scalability, memory is the bottleneck",
                                .relation = CS_BELOW,
                                .paper = mean_speedup(study, shown[i], twice, 0) / before,
                                .ours = mean_speedup(study, shown[i], little, last) / before,
                                .decimals = 2,
                                .unit = ""});
    }
}

static cs_status show_speedups(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const double memories[] = {12, 16};
    CS_TRY(check_axes(studies, error));
    const uint32_t both = cs_study_length(studies, BANDWIDTH);
    draw_speedups(page, studies);
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t planner = i % 2 ? ORIGINAL : DEPTH;
        cs_page_claim(
            page, &(cs_paper_claim){
                      .what = cs_page_format(page,
                                             "mean speedup of MadPipe, 8 GPUs of %g GB, against "
                                             "%s",
                                             memories[i / 2], planners[planner]),
                      .place = "section 5.2, figure 8: \"better scalability\"",
                      .relation = CS_ABOVE,
                      .paper = mean_speedup(studies, planner, memories[i / 2], both),
                      .ours = mean_speedup(studies, MADPIPE, memories[i / 2], both),
                      .decimals = 2,
                      .unit = ""});
    }
    claim_bandwidth(page, studies);
    cs_page_table(page, "Mean speedup on 8 GPUs over networks and bandwidths.",
                  "planner\t6 GB\t12 GB\t16 GB");
    for (uint32_t planner = 0; planner < N_PLANNERS; planner++)
        cs_page_row(
            page, "%s\t%s\t%s\t%s", planners[planner], speedup_cell(page, studies, planner, 6),
            speedup_cell(page, studies, planner, 12), speedup_cell(page, studies, planner, 16));
    return CS_OK;
}

static const cs_paper_figure figures[] = {
    {"madpipe-fig2",
     "a valid pattern",
     {{"papers/madpipe-pattern.json", run_pattern}},
     show_pattern},
    {"madpipe-fig3",
     "1F1B* with three groups",
     {{"papers/madpipe-groups.json", run_patterns}},
     show_groups},
    {"madpipe-fig5",
     "two schedules of the special GPU",
     {{"papers/madpipe-special.json", run_pattern}},
     show_special},
    {"madpipe-targets",
     "periods of MadPipe-DP against its target",
     {{"papers/madpipe-targets.json", run_targets}},
     show_targets},
    {"madpipe-fig6",
     "periods against memory, ResNet-50",
     {{"madpipe/study.json", NULL}},
     show_periods},
    {"madpipe-fig7",
     "ratios of periods against memory",
     {{"madpipe/study.json", NULL}},
     show_ratios},
    {"madpipe-fig8", "speedups against GPUs", {{"madpipe/study.json", NULL}}, show_speedups},
    {0},
};

const cs_paper cs_paper_madpipe = {
    .name = "MadPipe",
    .source = "Beaumont, Eyraud-Dubois and Shilova, MadPipe: Memory Aware Dynamic Programming "
              "Algorithm for Pipelined Model Parallelism, ScaDL 2022, HAL hal-03025305",
    .left_out =
        "Not regenerated: how long the authors' search takes (section 5.1), which depends on "
        "their machine. Figures 1 and 4 show no result.",
    .figures = figures,
};
