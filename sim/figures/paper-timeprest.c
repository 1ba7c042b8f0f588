/* Dutta, Chaki and De, "TiMePReSt: Time and Memory Efficient Pipeline Parallel DNN Training with
 * Removed Staleness", 2024 (arXiv 2410.14312). */
#include "sim/figures/papers.h"

#include <math.h>
#include <stdio.h>

/* ---- what a run is measured by ---- */

/* From the first start to the last end of a mini-batch's tasks of a kind, s. */
static double span_of(const cs_graph *graph, const cs_trace *trace, cs_kind kind, uint32_t batch)
{
    cs_time start = CS_TIME_MAX, end = 0;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        if (cs_graph_class(graph, task)->kind != kind || cs_graph_mini_batch(graph, task) != batch)
            continue;
        start = trace->spans[task].start < start ? trace->spans[task].start : start;
        end = trace->spans[task].end > end ? trace->spans[task].end : end;
    }
    return cs_time_seconds(end - start);
}

static bool measure_versions(const cs_staleness *staleness, cJSON *report)
{
    cJSON *list = cJSON_AddArrayToObject(report, "slots");
    const int64_t difference = staleness->version_difference.value;
    bool good =
        list && cs_json_add_number(report, "version_difference",
                                   difference == CS_STALENESS_NONE ? NAN : (double)difference);
    for (uint32_t s = 0; s < staleness->n_slots && good; s++) {
        cJSON *item = cs_json_add_item(list);
        good = cs_json_add_number(item, "versions", staleness->slots[s].peak_versions) &&
               cs_json_add_number(item, "delay", (double)staleness->slots[s].max_gradient_delay);
    }
    return good;
}

/* The literal reading of section 4.1: a stage has one version of its weights, their gradients and
 * states, and the activations of a single micro-batch. */
static cs_status one_micro_batch(const cs_scenario *scenario, const cs_trace *trace,
                                 uint32_t device, double *bytes, cs_error *error)
{
    const cs_stage *stage = &scenario->plan->stages[device];
    const cs_device_record *record = &trace->devices[device];
    cs_layer_sum sum;
    CS_TRY(cs_model_sum(scenario->model, stage->first_layer, stage->end_layer,
                        scenario->batch_size / scenario->job.micro_batches, &sum, error));
    *bytes = (double)(sum.weight_bytes + sum.gradient_bytes +
                      record->category_peak[CS_MEMORY_OPTIMIZER] + sum.kept_bytes);
    return CS_OK;
}

static cs_status measure_memory(const cs_scenario *scenario, const cs_trace *trace, cJSON *report,
                                cs_error *error)
{
    cJSON *list = cJSON_AddArrayToObject(report, "stages");
    if (scenario->batch_size == 0 || scenario->plan->n_stages != trace->n_devices)
        return list ? CS_OK : cs_error_no_memory(error);
    for (uint32_t d = 0; d < trace->n_devices; d++) {
        const cs_device_record *record = &trace->devices[d];
        double literal = 0;
        CS_TRY(one_micro_batch(scenario, trace, d, &literal, error));
        cJSON *item = cs_json_add_item(list);
        if (!cs_json_add_number(item, "peak", (double)record->peak) ||
            !cs_json_add_number(item, "literal", literal))
            return cs_error_no_memory(error);
    }
    return CS_OK;
}

static cs_status measure(const cs_scenario *scenario, const cs_simulation *simulation,
                         cJSON *report, cs_error *error)
{
    const cs_graph *graph = &simulation->graph;
    const cs_trace *trace = &simulation->trace;
    if (!measure_versions(&simulation->analysis.staleness, report) ||
        !cs_json_add_number(report, "f1_s", span_of(graph, trace, CS_FORWARD, 0)) ||
        !cs_json_add_number(report, "f2_s", span_of(graph, trace, CS_FORWARD, 1)) ||
        !cs_json_add_number(report, "b_s", span_of(graph, trace, CS_BACKWARD, 0)))
        return cs_error_no_memory(error);
    return measure_memory(scenario, trace, report, error);
}

static cs_status run_slots(const void *context, const cJSON *document, const cs_progress *progress,
                           cJSON **result, cs_error *error)
{
    return cs_study_run(context, document, measure, progress, result, error);
}

/* ---- time-slot diagrams ---- */

/* A number of slot i, the last one for i past the end. */
static double slot_number(const cs_study *study, uint32_t point, uint32_t i, const char *key)
{
    const cJSON *slot = cJSON_GetArrayItem(cs_study_member(study, point, "slots"), (int)i);
    const cJSON *value = cs_json_member(slot, key);
    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static cs_status show_pipedream(const cs_study *studies, cs_page *page, cs_error *error)
{
    enum { WORKERS = 4 };
    CS_TRY(cs_study_all_done(studies, error));
    cs_page_run(page, studies, 0, 24, "PipeDream with four workers; a backward takes two forwards");
    for (uint32_t s = 0; s < WORKERS; s++)
        cs_page_claim(page, &(cs_paper_claim){
                                .what = cs_page_format(
                                    page, "updates that a gradient of worker %u is late", s + 1),
                                .place = "figure 5, equation 1",
                                .form = "n - s",
                                .paper = WORKERS - 1 - s,
                                .ours = slot_number(studies, 0, s, "delay"),
                                .unit = ""});
    for (uint32_t s = 0; s < WORKERS; s++)
        cs_page_claim(
            page, &(cs_paper_claim){
                      .what = cs_page_format(page, "versions of its weights on worker %u", s + 1),
                      .place = "figure 5: the same version forward and backward",
                      .paper = WORKERS - s,
                      .ours = slot_number(studies, 0, s, "versions"),
                      .unit = ""});
    return CS_OK;
}

/* The point of the list with these workers and micro-batches, or the number of points. */
static uint32_t find_slots(const cs_study *study, double workers, double micro_batches)
{
    uint32_t i = 0;
    while (i < cs_study_length(study, 0) && (cs_study_axis_number(study, 0, i) != workers ||
                                             cs_study_axis_number(study, 1, i) != micro_batches))
        i++;
    return i;
}

static cs_status show_slots(const cs_study *study, cs_page *page, double workers,
                            double micro_batches, const char *place, double difference,
                            cs_error *error)
{
    const uint32_t point = find_slots(study, workers, micro_batches);
    CS_TRY(cs_study_all_done(study, error));
    if (point == cs_study_length(study, 0))
        return cs_error_add(error, CS_INVALID,
                            "%s: must have a point with %g workers and %g "
                            "micro-batches",
                            study->path, workers, micro_batches);
    const struct {
        const char *what, *key, *form;
        double paper;
    } rows[] = {
        {"version difference v", "version_difference", NULL, difference},
        {"time points from one backward to the next", "iteration_time_s", "N + 1",
         micro_batches + 1},
        {"time points of the forward of the first mini-batch", "f1_s", "W + N - 1",
         workers + micro_batches - 1},
        {"time points of the forward of the second mini-batch", "f2_s", "W + N",
         workers + micro_batches},
        {"time points of a backward", "b_s", "W", workers},
    };
    cs_page_run(page, study, point, 25,
                cs_page_format(page,
                               "W = %g, N = %g; mini-batches count from 0, in the paper from 1",
                               workers, micro_batches));
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
        cs_page_claim(page,
                      &(cs_paper_claim){.what = rows[r].what,
                                        .place = r == 0 ? place : "section 4, equations 6 to 8",
                                        .form = rows[r].form,
                                        .paper = rows[r].paper,
                                        .ours = cs_study_number(study, point, rows[r].key),
                                        .unit = ""});
    return CS_OK;
}

static cs_status show_7a(const cs_study *studies, cs_page *page, cs_error *error)
{
    return show_slots(studies, page, 4, 2, "figure 7a, section 4.4", 2, error);
}

static cs_status show_7b(const cs_study *studies, cs_page *page, cs_error *error)
{
    return show_slots(studies, page, 4, 4, "figure 7b, section 4.4", 1, error);
}

static cs_status show_9a(const cs_study *studies, cs_page *page, cs_error *error)
{
    return show_slots(studies, page, 3, 3, "figure 9a, equation 11", 1, error);
}

static cs_status show_9b(const cs_study *studies, cs_page *page, cs_error *error)
{
    return show_slots(studies, page, 5, 3, "figures 9b and 10, equation 25", 2, error);
}

/* ---- the version difference for all W and N ---- */

static double paper_formula(double workers, double micro_batches)
{
    return floor((workers + micro_batches - 2) / micro_batches);
}

static double difference_at(const cs_study *study, uint32_t w, uint32_t n)
{
    return cs_study_number(study, cs_study_point(study, (uint32_t[]){w, n}), "version_difference");
}

static void draw_differences(cs_page *page, const cs_study *study)
{
    static const double shown[] = {2, 3, 4, 8};
    const uint32_t length = cs_study_length(study, 0);
    cs_chart_draft *draft = cs_page_draft(page, 4, 2, length);
    for (uint32_t p = 0; draft && p < 4; p++) {
        uint32_t n = 0;
        while (n + 1 < cs_study_length(study, 1) && cs_study_axis_number(study, 1, n) < shown[p])
            n++;
        const double micro_batches = cs_study_axis_number(study, 1, n);
        draft->panels[p].title = cs_page_format(page, "N = %g", micro_batches);
        for (uint32_t s = 0; s < 2; s++)
            draft->series[2 * p + s].name = s ? "floor((W + N - 2)/N), the paper" : "simulated";
        draft->series[2 * p + 1].dashed = true;
        for (uint32_t w = 0; w < length; w++) {
            const double workers = cs_study_axis_number(study, 0, w);
            draft->x[2 * p][w] = draft->x[2 * p + 1][w] = workers;
            draft->y[2 * p][w] = difference_at(study, w, n);
            draft->y[2 * p + 1][w] = paper_formula(workers, micro_batches);
        }
    }
    if (!draft)
        return;
    draft->chart.x_title = "workers W";
    draft->chart.y_title = "version difference";
    cs_page_chart(page, &draft->chart);
}

static cs_status show_differences(const cs_study *studies, cs_page *page, cs_error *error)
{
    uint32_t same = 0, derived = 0, one = 0, criterion = 0, n_points = 0;
    CS_TRY(cs_study_all_done(studies, error));
    for (uint32_t w = 0; w < cs_study_length(studies, 0); w++)
        for (uint32_t n = 0; n < cs_study_length(studies, 1); n++, n_points++) {
            const double workers = cs_study_axis_number(studies, 0, w);
            const double micro_batches = cs_study_axis_number(studies, 1, n);
            const double v = difference_at(studies, w, n);
            same += v == paper_formula(workers, micro_batches);
            derived += v == ceil(workers / (micro_batches + 1));
            one += workers <= micro_batches + 1;
            criterion += (v == 1) == (workers <= micro_batches + 1);
        }
    draw_differences(page, studies);
    cs_page_claim(page,
                  &(cs_paper_claim){.what = "points at which v = floor((W + N - 2)/N)",
                                    .place = "equations 20 and 25",
                                    .form = "all",
                                    .paper = n_points,
                                    .ours = same,
                                    .unit = "",
                                    .why = "each further period gives the backward N + 1 more time "
                                           "points, since the last worker does backwards too; the "
                                           "formula gives it N"});
    cs_page_claim(page, &(cs_paper_claim){.what = "points at which v = 1 if and only if W <= N + 1",
                                          .place = "equations 11 and 12",
                                          .form = "all",
                                          .paper = n_points,
                                          .ours = criterion,
                                          .unit = ""});
    cs_page_text(page,
                 "W and N as in timeprest-wn.json, a backward of one time point. v = ceil(W/(N "
                 "+ 1)) holds at %u of %u points, W <= N + 1 at %u.",
                 derived, n_points, one);
    return CS_OK;
}

/* ---- figures 15 and 16 ---- */

/* The cut that balances PipeDream, for TiMePReSt as well. */
static cs_status set_cut(const char *path, cJSON *document, cs_error *error)
{
    cs_scenario scenario = {0};
    cJSON *asked = cJSON_DetachItemFromObjectCaseSensitive(document, "schedule");
    cJSON *other = cJSON_AddObjectToObject(document, "schedule"), *cut = NULL;
    cs_status status = other && cs_json_add_text(other, "kind", "pipedream")
                           ? cs_scenario_read(document, path, &scenario, error)
                           : cs_error_no_memory(error);
    cJSON_DeleteItemFromObjectCaseSensitive(document, "schedule");
    if (!cJSON_AddItemToObject(document, "schedule", asked)) {
        cJSON_Delete(asked);
        status = status == CS_OK ? cs_error_no_memory(error) : status;
    } else if (status == CS_OK && !(cut = cJSON_AddArrayToObject(asked, "partition"))) {
        status = cs_error_no_memory(error);
    }
    for (uint32_t s = 0; status == CS_OK && s + 1 < scenario.plan->n_stages; s++) {
        cJSON *end = cJSON_CreateNumber(scenario.plan->stages[s].end_layer);
        if (!end || !cJSON_AddItemToArray(cut, end))
            status = cs_error_no_memory(error);
    }
    cs_scenario_finish(&scenario);
    return status;
}

static cs_status run_training(const void *context, const cJSON *document,
                              const cs_progress *progress, cJSON **result, cs_error *error)
{
    cJSON *own = cJSON_Duplicate(document, true);
    cs_status status = own ? set_cut(context, own, error) : cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_study_run(context, own, measure, progress, result, error);
    cJSON_Delete(own);
    return status;
}

enum { N_DATA_SETS = 2, N_NETWORKS = 4, N_WAYS = 6 };

static const char *const data_sets[N_DATA_SETS] = {"CIFAR-100", "Tiny-ImageNet-200"};
static const char *const networks[N_NETWORKS] = {"messages are free", "1.25 GB/s",
                                                 "1.25 GB/s, GPUs wait for messages", "125 MB/s"};
static const char *const ways[N_WAYS] = {"PipeDream",
                                         "TiMePReSt, N = 2, 2 in flight",
                                         "TiMePReSt, N = 2, 3 in flight",
                                         "TiMePReSt, N = 4, 2 in flight",
                                         "TiMePReSt, N = 4, 3 in flight",
                                         "TiMePReSt, N = 4, newest weights of each stage"};

static const char setting_text[] =
    "VGG-16 on two GPUs, a TITAN RTX, which has the chip of the paper's Quadro RTX 6000, and one "
    "of "
    "0.62 of its speed, as an RTX 2080 has; 64 samples a mini-batch, the cut that balances "
    "PipeDream. Batch, N, cut and network are not given in the paper. In flight: mini-batches that "
    "have entered and are not updated; without a bound memory grows with the run, because the "
    "second "
    "GPU is the slower one.";

static cs_status check_ways(const cs_study *studies, cs_error *error)
{
    for (uint32_t d = 0; d < N_DATA_SETS; d++) {
        CS_TRY(cs_study_all_done(&studies[d], error));
        if (cs_study_length(&studies[d], 0) != N_NETWORKS ||
            cs_study_length(&studies[d], 1) != N_WAYS)
            return cs_error_add(error, CS_INVALID, "%s: must vary %d platforms and %d schedules",
                                studies[d].path, N_NETWORKS, N_WAYS);
    }
    return CS_OK;
}

static double epochs_per_hour(const cs_study *study, uint32_t network, uint32_t way)
{
    const uint32_t point = cs_study_point(study, (uint32_t[]){network, way});
    return 3600 / cs_study_number(study, point, "epoch_time_s");
}

static void draw_throughput(cs_page *page, const cs_study *studies)
{
    cs_chart_draft *draft = cs_page_draft(page, N_DATA_SETS, N_WAYS - 1, N_NETWORKS);
    for (uint32_t i = 0; draft && i < N_DATA_SETS * (N_WAYS - 1); i++) {
        const uint32_t data = i / (N_WAYS - 1), way = i % (N_WAYS - 1);
        draft->panels[data].title = data_sets[data];
        draft->series[i].name = ways[way];
        for (uint32_t n = 0; n < N_NETWORKS; n++)
            draft->y[i][n] = epochs_per_hour(&studies[data], n, way);
    }
    if (!draft)
        return;
    draft->chart.bars = true;
    draft->chart.names = networks;
    draft->chart.n_names = N_NETWORKS;
    draft->chart.y_title = "epochs per hour";
    cs_page_chart(page, &draft->chart);
}

static cs_status show_throughput(const cs_study *studies, cs_page *page, cs_error *error)
{
    CS_TRY(check_ways(studies, error));
    cs_page_text(page, "%s", setting_text);
    draw_throughput(page, studies);
    for (uint32_t i = 0; i < N_DATA_SETS * N_NETWORKS; i++) {
        const cs_study *study = &studies[i / N_NETWORKS];
        const uint32_t network = i % N_NETWORKS;
        double best = 0;
        for (uint32_t way = 1; way + 1 < N_WAYS; way++)
            best = fmax(best, epochs_per_hour(study, network, way));
        cs_page_claim(
            page, &(cs_paper_claim){
                      .what = cs_page_format(
                          page, "%s, %s: epochs per hour, best TiMePReSt over PipeDream",
                          data_sets[i / N_NETWORKS], networks[network]),
                      .place = "figure 15, section 5",
                      .relation = CS_ABOVE,
                      .paper = 1,
                      .ours = best / epochs_per_hour(study, network, 0),
                      .decimals = 2,
                      .unit = "",
                      .why = network == 2
                                 ? "GPUs that wait for messages wait for more of them: N forward "
                                   "over each boundary"
                                 : "both keep the slower GPU busy, and small micro-batches take "
                                   "longer for as many samples"});
    }
    return CS_OK;
}

static double stage_number(const cs_study *study, uint32_t way, uint32_t stage, const char *key)
{
    const uint32_t point = cs_study_point(study, (uint32_t[]){0, way});
    const cJSON *item = cJSON_GetArrayItem(cs_study_member(study, point, "stages"), (int)stage);
    const cJSON *value = cs_json_member(item, key);
    return cJSON_IsNumber(value) ? value->valuedouble / 1e6 : NAN;
}

/* Besides the schedules, the literal reading of one. */
enum { BOUNDED = 3, NEWEST = 5, LITERAL = N_WAYS, N_MEMORIES = 4 };

static const struct {
    uint32_t way;
    const char *name;
} memories[N_MEMORIES] = {
    {0, "PipeDream"},
    {BOUNDED, "TiMePReSt, N = 4, 2 in flight"},
    {NEWEST, "TiMePReSt, newest weights of each stage"},
    {LITERAL, "literal reading: one micro-batch resident"},
};

static double memory_of(const cs_study *study, uint32_t m, uint32_t stage)
{
    return memories[m].way == LITERAL ? stage_number(study, BOUNDED, stage, "literal")
                                      : stage_number(study, memories[m].way, stage, "peak");
}

static void draw_memory(cs_page *page, const cs_study *studies)
{
    static const char *const stages[] = {"stage 0", "stage 1"};
    cs_chart_draft *draft = cs_page_draft(page, N_DATA_SETS, N_MEMORIES, 2);
    for (uint32_t i = 0; draft && i < N_DATA_SETS * N_MEMORIES; i++) {
        draft->panels[i / N_MEMORIES].title = data_sets[i / N_MEMORIES];
        draft->series[i].name = memories[i % N_MEMORIES].name;
        for (uint32_t stage = 0; stage < 2; stage++)
            draft->y[i][stage] = memory_of(&studies[i / N_MEMORIES], i % N_MEMORIES, stage);
    }
    if (!draft)
        return;
    draft->chart.bars = true;
    draft->chart.names = stages;
    draft->chart.n_names = 2;
    draft->chart.y_title = "peak memory (MB)";
    cs_page_chart(page, &draft->chart);
}

static cs_status show_memory(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const char *const why[N_MEMORIES] = {
        NULL,
        "the backward reads what all N forwards have kept, and both stages keep the versions that "
        "stage 0 still hands out: what PipeDream stashes is not saved",
        "without the versions that stages hand each other, the stashed version of stage 0 is "
        "saved; "
        "activations of the whole mini-batch stay",
        "not what section 4.1 describes: the backward of a mini-batch needs what all its forwards "
        "have kept"};
    CS_TRY(check_ways(studies, error));
    cs_page_text(page, "%s", setting_text);
    draw_memory(page, studies);
    for (uint32_t i = 0; i < N_DATA_SETS * 2 * (N_MEMORIES - 1); i++) {
        const uint32_t data = i / (2 * (N_MEMORIES - 1)), stage = i % 2;
        const uint32_t m = 1 + i / 2 % (N_MEMORIES - 1);
        const double saved =
            1 - memory_of(&studies[data], m, stage) / memory_of(&studies[data], 0, stage);
        cs_page_claim(
            page, &(cs_paper_claim){
                      .what = cs_page_format(page, "%s, stage %u, %s: less memory than PipeDream",
                                             data_sets[data], stage, memories[m].name),
                      .place = "figure 16, section 5: \"nearly\"",
                      .relation = CS_ABOUT,
                      .paper = stage ? 40 : 50,
                      .ours = 100 * saved,
                      .unit = " %",
                      .why = why[m]});
    }
    return CS_OK;
}

static const cs_paper_figure figures[] = {
    {"timeprest-fig5",
     "PipeDream with four workers",
     {{"papers/timeprest-fig5.json", run_slots}},
     show_pipedream},
    {"timeprest-fig7a", "W = 4, N = 2", {{"papers/timeprest-slots.json", run_slots}}, show_7a},
    {"timeprest-fig7b", "W = 4, N = 4", {{"papers/timeprest-slots.json", run_slots}}, show_7b},
    {"timeprest-fig9a", "W = 3, N = 3", {{"papers/timeprest-slots.json", run_slots}}, show_9a},
    {"timeprest-fig9b", "W = 5, N = 3", {{"papers/timeprest-slots.json", run_slots}}, show_9b},
    {"timeprest-fig10", "W = 5, N = 3", {{"papers/timeprest-slots.json", run_slots}}, show_9b},
    {"timeprest-versions",
     "version difference of all W and N",
     {{"timeprest-wn.json", run_slots}},
     show_differences},
    {"timeprest-fig15",
     "epochs per hour, TiMePReSt and PipeDream",
     {{"papers/timeprest-cifar.json", run_training}, {"papers/timeprest-tiny.json", run_training}},
     show_throughput},
    {"timeprest-fig16",
     "memory of the stages, TiMePReSt and PipeDream",
     {{"papers/timeprest-cifar.json", run_training}, {"papers/timeprest-tiny.json", run_training}},
     show_memory},
    {0},
};

const cs_paper cs_paper_timeprest = {
    .name = "TiMePReSt",
    .source = "Dutta, Chaki and De, TiMePReSt: Time and Memory Efficient Pipeline Parallel DNN "
              "Training with Removed Staleness, 2024, arXiv 2410.14312",
    .left_out = "Not simulated: accuracy and loss by time and epoch (figures 11 to 14), "
                "checkpoints.",
    .figures = figures,
};
