/* Beaumont, Eyraud-Dubois and Shilova, "MadPipe: Memory Aware Dynamic Programming Algorithm for
 * Pipelined Model Parallelism", ScaDL 2022 (HAL hal-03025305). */
#include "sim/figures/papers.h"

#include <math.h>
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

static double activations_of(const cs_study *study, uint32_t point, uint32_t device)
{
    const cJSON *value =
        cJSON_GetArrayItem(cs_study_member(study, point, "activations"), (int)device);
    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
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

/* Of periods at settings of less than `below` GB, of one network or, at the axis' length, all. */
static ratios compare(const cs_study *study, uint32_t planner, uint32_t with, double below)
{
    ratios r = {0};
    uint32_t at[N_AXES] = {0};
    do {
        if (gigabytes(study, at[MEMORY]) < below)
            add_ratio(&r, with_planner(study, at, planner, "plan_period_s") /
                              with_planner(study, at, with, "plan_period_s"));
    } while (next(study, at));
    return r;
}

/* Pairs of neighbouring memories at which a number grows with the memory. */
static uint32_t count_rises(const cs_study *study, uint32_t planner, const char *key)
{
    uint32_t rises = 0, at[N_AXES] = {0};
    do {
        uint32_t more[N_AXES] = {at[NETWORK], at[GPUS], at[MEMORY] + 1, at[BANDWIDTH], planner};
        if (more[MEMORY] < cs_study_length(study, MEMORY))
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
        const ratios found = compare(studies, readings[r], MADPIPE, INFINITY);
        cs_page_claim(page,
                      &(cs_paper_claim){.what = cs_page_format(page,
                                                               "%s: largest period over "
                                                               "MadPipe's",
                                                               planners[readings[r]]),
                                        .place = "section 5.2: \"up to two or even three times\"",
                                        .relation = CS_ABOVE,
                                        .paper = 2,
                                        .ours = found.largest,
                                        .decimals = 1,
                                        .unit = "",
                                        .why = "times are estimated here, the paper's are "
                                               "measured"});
    }
    for (uint32_t planner = DEPTH; planner <= SAFE; planner++) {
        if (planner == CONTIGUOUS)
            continue;
        cs_page_claim(page, &(cs_paper_claim){
                                .what = cs_page_format(page,
                                                       "%s: partitionings whose period grows "
                                                       "with the memory",
                                                       planners[planner]),
                                .place = "section 5.2, dashed lines",
                                .paper = 0,
                                .ours = count_rises(studies, planner, "plan_promised_period_s"),
                                .unit = "",
                                .why = "its grids depend on the memory and on T, so that a larger "
                                       "memory can be rounded to a worse plan"});
    }
    for (uint32_t r = 0; r < 3; r += 2)
        cs_page_claim(page,
                      &(cs_paper_claim){
                          .what = cs_page_format(page,
                                                 "MadPipe: schedules whose period grows with the "
                                                 "memory, against %s",
                                                 planners[readings[r]]),
                          .place = "section 5.2: \"much more visible for PipeDream\"",
                          .relation = CS_BELOW,
                          .paper = count_rises(studies, readings[r], "plan_period_s"),
                          .ours = count_rises(studies, MADPIPE, "plan_period_s"),
                          .unit = "",
                          .why = "charged with g - 1, the special GPU gets more than "
                                 "it can hold"});
    return CS_OK;
}

/* ---- figure 7 ---- */

static double mean_ratio(const cs_study *study, uint32_t network, uint32_t memory, uint32_t planner)
{
    ratios r = {0};
    uint32_t at[N_AXES] = {0};
    do {
        if (at[NETWORK] == network && at[MEMORY] == memory)
            add_ratio(&r, with_planner(study, at, planner, "plan_period_s") /
                              with_planner(study, at, MADPIPE, "plan_period_s"));
    } while (next(study, at));
    return mean_of(&r);
}

static void draw_ratios(cs_page *page, const cs_study *study)
{
    enum { SHOWN = 5 };
    static const uint32_t shown[SHOWN] = {DEPTH, ALL, ORIGINAL, CONTIGUOUS, SAFE};
    const uint32_t n = cs_study_length(study, NETWORK), length = cs_study_length(study, MEMORY);
    cs_chart_draft *draft = cs_page_draft(page, n, SHOWN, length);
    for (uint32_t i = 0; draft && i < n * SHOWN; i++) {
        char name[64];
        cs_study_axis_text(study, NETWORK, i / SHOWN, name, sizeof(name));
        draft->panels[i / SHOWN].title = cs_page_format(page, "%s", name);
        draft->series[i].name = planners[shown[i % SHOWN]];
        for (uint32_t m = 0; m < length; m++) {
            draft->x[i][m] = gigabytes(study, m);
            draft->y[i][m] = mean_ratio(study, i / SHOWN, m, shown[i % SHOWN]);
        }
    }
    if (!draft)
        return;
    draft->chart.subtitle = "geometric mean over numbers of GPUs and bandwidths";
    draft->chart.x_title = "memory (GB)";
    draft->chart.y_title = "period over that of MadPipe";
    cs_page_chart(page, &draft->chart);
}

static cs_status show_ratios(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const char *const why[N_PLANNERS] = {
        [DEPTH] = "with this test PipeDream's partitions fit; MadPipe as in the paper charges its "
                  "special GPU with too little, and then needs a longer period than it promised"};
    CS_TRY(check_axes(studies, error));
    cs_page_text(page, "%s", study_text);
    draw_ratios(page, studies);
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t planner = i % 3, with = i < 3 ? MADPIPE : SAFE;
        const ratios found = compare(studies, planner, with, SCARCE);
        cs_page_claim(
            page, &(cs_paper_claim){.what = cs_page_format(
                                        page,
                                        "%s: period over that of %s, mean below 10 GB "
                                        "(%u settings, %u over 1.2)",
                                        planners[planner], planners[with], found.n, found.over),
                                    .place = "section 5.2, figure 7: \"consistently over 20 %\"",
                                    .relation = CS_ABOVE,
                                    .paper = 1.2,
                                    .ours = mean_of(&found),
                                    .decimals = 1,
                                    .unit = "",
                                    .why = why[planner]});
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

/* Geometric mean, over networks and bandwidths, of the speedup on most GPUs with a memory. */
static double mean_speedup(const cs_study *study, uint32_t planner, double memory)
{
    ratios r = {0};
    uint32_t at[N_AXES] = {0};
    do {
        const uint32_t own[N_AXES] = {at[NETWORK], at[GPUS], at[MEMORY], at[BANDWIDTH], planner};
        if (at[GPUS] + 1 == cs_study_length(study, GPUS) && at[MEMORY] == memory_of(study, memory))
            add_ratio(&r, speedup(study, own));
    } while (next(study, at));
    return mean_of(&r);
}

static const char *speedup_cell(cs_page *page, const cs_study *study, uint32_t planner,
                                double memory)
{
    const double mean = mean_speedup(study, planner, memory);
    return isnan(mean) ? "-" : cs_page_format(page, "%.2f", mean);
}

static cs_status show_speedups(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const double memories[] = {12, 16};
    CS_TRY(check_axes(studies, error));
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
                      .paper = mean_speedup(studies, planner, memories[i / 2]),
                      .ours = mean_speedup(studies, MADPIPE, memories[i / 2]),
                      .decimals = 2,
                      .unit = ""});
    }
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
     {{"papers/madpipe-groups.json", run_pattern}},
     show_groups},
    {"madpipe-fig5",
     "two schedules of the special GPU",
     {{"papers/madpipe-special.json", run_pattern}},
     show_special},
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
