/* Dutta, Chaki and De, "TiMePReSt: Time and Memory Efficient Pipeline Parallel DNN Training with
 * Removed Staleness", 2024 (arXiv 2410.14312). */
#include "papers/papers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    bool good = list &&
                cs_json_add_number(report, "version_difference",
                                   difference == CS_STALENESS_NONE ? NAN : (double)difference) &&
                cs_json_add_number(report, "sequences", staleness->n_by_backward) &&
                cs_json_add_number(report, "sequences_by_both", staleness->n_by_both);
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
        for (cs_category category = 0; category < CS_N_CATEGORIES; category++)
            if (!cs_json_add_number(item, cs_category_name(category),
                                    (double)record->category_peak[category]))
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
    const bool seven = strncmp(place, "figure 7", 8) == 0; /* the paper says it of figure 7 alone */
    const struct {
        const char *what, *key, *form;
        double paper;
    } rows[] = {
        {"version difference v", "version_difference", NULL, difference},
        {"sequences of mini-batches, by backward passes", "sequences", "v", difference},
        {seven ? "sequences of mini-batches, by both passes" : NULL, "sequences_by_both", "v",
         difference},
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
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        const char *of = r == 0 ? place : r < 3 ? "section 4.4" : "section 4, equations 6 to 8";
        if (rows[r].what)
            cs_page_claim(page,
                          &(cs_paper_claim){.what = rows[r].what,
                                            .place = of,
                                            .form = rows[r].form,
                                            .paper = rows[r].paper,
                                            .ours = cs_study_number(study, point, rows[r].key),
                                            .unit = ""});
    }
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

/* Statements about all W and N, and at how many points each holds. */
enum { V, UNITY, EQUATION_16, EQUATION_23, EQUATION_24, SEQUENCES, BY_BOTH, DERIVED, N_STATEMENTS };

static void count_statements(const cs_study *study, uint32_t w, uint32_t n,
                             uint32_t counts[N_STATEMENTS])
{
    const double workers = cs_study_axis_number(study, 0, w);
    const double micro_batches = cs_study_axis_number(study, 1, n);
    const double v = difference_at(study, w, n);
    const double most = floor((workers + micro_batches - 1) / micro_batches);
    const uint32_t point = cs_study_point(study, (uint32_t[]){w, n});
    const double sequences = cs_study_number(study, point, "sequences");
    const bool holds[N_STATEMENTS] = {
        [V] = v == paper_formula(workers, micro_batches),
        [UNITY] = (v == 1) == (workers <= micro_batches + 1),
        [EQUATION_16] = (v == 1) == (most <= 2),
        [EQUATION_23] = (v > 1) == (most > 2),
        [EQUATION_24] = v <= most,
        [SEQUENCES] = sequences == v,
        [BY_BOTH] = cs_study_number(study, point, "sequences_by_both") == sequences,
        [DERIVED] = v == ceil(workers / (micro_batches + 1)),
    };
    for (uint32_t i = 0; i < N_STATEMENTS; i++)
        counts[i] += holds[i];
}

static cs_status show_differences(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const struct {
        const char *what, *place;
    } statements[DERIVED] = {
        [V] = {"v = floor((W + N - 2)/N)", "equations 20 and 25"},
        [UNITY] = {"v = 1 if and only if W <= N + 1", "equations 11 and 12"},
        [EQUATION_16] = {"v = 1 if and only if floor((W + N - 1)/N) <= 2", "equation 16"},
        [EQUATION_23] = {"v > 1 if and only if floor((W + N - 1)/N) > 2", "equation 23"},
        [EQUATION_24] = {"v <= floor((W + N - 1)/N)", "equation 24"},
        [SEQUENCES] = {"mini-batches form v sequences", "section 4.4"},
        [BY_BOTH] = {"they are the same by both passes as by backward passes", "section 4.4"},
    };
    uint32_t counts[N_STATEMENTS] = {0}, n_points = 0;
    CS_TRY(cs_study_all_done(studies, error));
    for (uint32_t w = 0; w < cs_study_length(studies, 0); w++)
        for (uint32_t n = 0; n < cs_study_length(studies, 1); n++, n_points++)
            count_statements(studies, w, n, counts);
    draw_differences(page, studies);
    const char *v_why = cs_page_format(
        page,
        "each further period gives the backward N + 1 more time points, since the last worker does "
        "backwards too; the formula gives it N: with N + 1, v = ceil(W/(N + 1)), %u hold",
        counts[DERIVED]);
    for (uint32_t i = 0; i < DERIVED; i++)
        cs_page_claim(page, &(cs_paper_claim){
                                .what = cs_page_format(page, "points where %s", statements[i].what),
                                .place = statements[i].place,
                                .form = "all",
                                .paper = n_points,
                                .ours = counts[i],
                                .unit = "",
                                .why = i == V ? v_why
                                       : i == BY_BOTH
                                           ? "the paper has it of figure 7a; elsewhere the first "
                                             "worker's forward reads an update of another sequence"
                                           : "that is W <= 2 N, and v is 2 from W = N + 2 on"});
    cs_page_text(page, "W and N as in timeprest-wn.json, a backward of one time point.");
    return CS_OK;
}

/* ---- figures 15 and 16 ---- */

/* The cut that balances PipeDream, for TiMePReSt as well. `proportional` becomes the model with
 * times in proportion to samples. */
static cs_status set_cut(const char *path, cJSON *document, cJSON **proportional, cs_error *error)
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
    if (status == CS_OK && !(*proportional = cs_model_json(scenario.model)))
        status = cs_error_no_memory(error);
    cs_scenario_finish(&scenario);
    return status;
}

/* Adds the time of an epoch if times are in proportion to samples. */
static cs_status add_proportional(const char *path, cJSON *document, cJSON *model,
                                  const cs_progress *progress, cJSON *report, cs_error *error)
{
    const cJSON *batch = cs_json_member(cs_json_member(document, "model"), "batch_size");
    cJSON *own = cJSON_CreateObject(), *other = NULL;
    const double samples = cJSON_IsNumber(batch) ? batch->valuedouble : 0;
    if (!own || !cs_json_add_number(own, "batch_size", samples)) {
        cJSON_Delete(own);
        cJSON_Delete(model);
        return cs_error_no_memory(error);
    }
    const bool good = cJSON_AddItemToObject(own, "inline", model);
    cJSON_ReplaceItemInObjectCaseSensitive(document, "model", own);
    if (!good)
        return cs_error_no_memory(error);
    CS_TRY(cs_study_run(path, document, NULL, progress, &other, error));
    const cJSON *time = cs_json_member(other, "epoch_time_s");
    const bool added = cs_json_add_number(report, "proportional_epoch_time_s",
                                          cJSON_IsNumber(time) ? time->valuedouble : NAN);
    cJSON_Delete(other);
    return added ? CS_OK : cs_error_no_memory(error);
}

static cs_status run_training(const void *context, const cJSON *document,
                              const cs_progress *progress, cJSON **result, cs_error *error)
{
    cJSON *own = cJSON_Duplicate(document, true), *model = NULL;
    cs_status status = own ? set_cut(context, own, &model, error) : cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_study_run(context, own, measure, progress, result, error);
    if (status == CS_OK) {
        status = add_proportional(context, own, model, progress, *result, error);
        model = NULL;
    }
    cJSON_Delete(model);
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

/* Quotient of epochs per hour: best TiMePReSt over PipeDream, by a key of times. */
static double best_gain(const cs_study *study, uint32_t network, const char *key)
{
    double least = INFINITY;
    for (uint32_t way = 1; way + 1 < N_WAYS; way++)
        least = fmin(
            least, cs_study_number(study, cs_study_point(study, (uint32_t[]){network, way}), key));
    return cs_study_number(study, cs_study_point(study, (uint32_t[]){network, 0}), key) / least;
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
        const char *proportional =
            cs_page_format(page,
                           "both keep the slower GPU busy, and small micro-batches take longer for "
                           "as many samples: with times in proportion to samples it is %.3f",
                           best_gain(study, network, "proportional_epoch_time_s"));
        cs_page_claim(
            page, &(cs_paper_claim){
                      .what = cs_page_format(
                          page, "%s, %s: epochs per hour, best TiMePReSt over PipeDream",
                          data_sets[i / N_NETWORKS], networks[network]),
                      .place = "figure 15, section 5",
                      .relation = CS_ABOVE,
                      .paper = 1,
                      .ours = best_gain(study, network, "epoch_time_s"),
                      .decimals = 2,
                      .unit = "",
                      .why = network == 2
                                 ? cs_page_format(page,
                                                  "GPUs that wait for messages wait for more of "
                                                  "them, N forward over each boundary: without "
                                                  "waiting it is %.3f; and %s",
                                                  best_gain(study, 1, "epoch_time_s"), proportional)
                                 : proportional});
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
    enum { SERIES = N_MEMORIES + 1 };
    cs_chart_draft *draft = cs_page_draft(page, N_DATA_SETS, SERIES, 2);
    for (uint32_t i = 0; draft && i < N_DATA_SETS * SERIES; i++) {
        const uint32_t m = i % SERIES;
        draft->panels[i / SERIES].title = data_sets[i / SERIES];
        draft->series[i].name =
            m < N_MEMORIES ? memories[m].name : "paper: PipeDream's less 50 % and 40 %";
        for (uint32_t stage = 0; stage < 2; stage++)
            draft->y[i][stage] =
                m < N_MEMORIES ? memory_of(&studies[i / SERIES], m, stage)
                               : memory_of(&studies[i / SERIES], 0, stage) * (stage ? 0.6 : 0.5);
    }
    if (!draft)
        return;
    draft->chart.bars = true;
    draft->chart.names = stages;
    draft->chart.n_names = 2;
    draft->chart.y_title = "peak memory (MB)";
    cs_page_chart(page, &draft->chart);
}

/* The largest memory of each kind. */
static void add_kinds(cs_page *page, const cs_study *studies)
{
    static const char *const keys[] = {"weights",     "weight_versions", "gradients",
                                       "activations", "workspace",       "communication_buffers"};
    cs_page_table(page, "Largest memory of each kind, MB.",
                  "data set\tstage\tschedule\tweights\tother versions\tgradients\tactivations\t"
                  "workspace\tbuffers");
    for (uint32_t i = 0; i < N_DATA_SETS * 2 * (N_MEMORIES - 1); i++) {
        const uint32_t data = i / (2 * (N_MEMORIES - 1)), m = i % (N_MEMORIES - 1);
        const uint32_t stage = i / (N_MEMORIES - 1) % 2, way = memories[m].way;
        double v[6];
        for (uint32_t k = 0; k < 6; k++)
            v[k] = stage_number(&studies[data], way, stage, keys[k]);
        cs_page_row(page, "%s\t%u\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f", data_sets[data], stage,
                    memories[m].name, v[0], v[1], v[2], v[3], v[4], v[5]);
    }
    cs_page_text(page, "PipeDream keeps no other version on its last stage, so that TiMePReSt has "
                       "none to save there. On stage 0 it has one to save, next to activations, "
                       "which a backward of the whole mini-batch needs whole.");
}

static cs_status show_memory(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const char *const why[N_MEMORIES] = {
        NULL,
        "the backward reads what all N forwards have kept, and the last stage keeps the version "
        "that stage 0 still hands out (table below)",
        "no version is stashed any more, and activations of the whole mini-batch stay (table "
        "below)",
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
    add_kinds(page, studies);
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
