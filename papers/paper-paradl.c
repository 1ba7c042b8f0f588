/* Kahira et al., "An Oracle for Guiding Large-Scale Model/Hybrid Parallel Training of Convolutional
 * Neural Networks", HPDC 2021. */
#include "papers/papers.h"
#include "sim/run/scenario/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a run is measured by ---- */

/* Messages of the closed form, s of an iteration. */
static double form_messages(const cs_paradl_form *form, uint32_t batch)
{
    double sum = 0;
    for (cs_paradl_part part = CS_PARADL_GRADIENTS; part < CS_N_PARADL_PARTS; part++)
        sum += cs_paradl_seconds(form, part, batch, batch);
    return sum;
}

static bool add_form(const cs_scenario *scenario, cJSON *report)
{
    const cs_paradl_form *form = &scenario->paradl.form;
    const uint32_t batch = scenario->batch_size;
    const double computing = cs_paradl_seconds(form, CS_PARADL_PASSES, batch, batch) +
                             cs_paradl_seconds(form, CS_PARADL_UPDATE, batch, batch);
    return cs_json_add_number(report, "form_computing_s", computing) &&
           cs_json_add_number(report, "form_messages_s", form_messages(form, batch)) &&
           cs_json_add_number(report, "form_halo_s",
                              cs_paradl_seconds(form, CS_PARADL_HALO, batch, batch)) &&
           cs_json_add_number(report, "form_gradients_s",
                              cs_paradl_seconds(form, CS_PARADL_GRADIENTS, batch, batch)) &&
           cs_json_add_number(report, "form_memory_bytes", form->memory) &&
           cs_json_add_number(report, "most_members", (double)form->most_members) &&
           cs_json_add_number(report, "between_beta", scenario->paradl.asked.between.beta);
}

/* Weights of the whole network and, of one device, passes and updates of all layers. */
static bool add_model(const cs_scenario *scenario, cJSON *report)
{
    double weights = 0, passes = 0, updates = 0;
    for (uint32_t i = 0; i < scenario->model->n_layers; i++) {
        const cs_layer *layer = &scenario->model->layers[i];
        weights += (double)layer->weight_bytes;
        passes += cs_time_seconds(layer->forward) + cs_time_seconds(layer->backward_input) +
                  cs_time_seconds(layer->backward_weight);
        updates += cs_time_seconds(layer->update);
    }
    return cs_json_add_number(report, "parameters", weights / 4) &&
           cs_json_add_number(report, "passes_s", passes) &&
           cs_json_add_number(report, "updates_s", updates);
}

/* What a device computes, the longest of all; and the largest layer's output. */
static bool add_computing(const cs_scenario *scenario, const cs_simulation *simulation,
                          cJSON *report)
{
    double longest = 0, output = 0;
    for (uint32_t d = 0; d < simulation->analysis.n_devices; d++) {
        double sum = 0;
        for (uint32_t kind = 0; kind < CS_N_KINDS; kind++)
            sum += cs_time_seconds(simulation->analysis.devices[d].compute[kind]);
        longest = fmax(longest, sum);
    }
    for (uint32_t i = 0; i < scenario->model->n_layers; i++)
        output = fmax(output, (double)scenario->model->layers[i].output_bytes);
    return cs_json_add_number(report, "computing_s", longest / scenario->job.iterations) &&
           cs_json_add_number(report, "largest_output_bytes", output);
}

static cs_status measure(const cs_scenario *scenario, const cs_simulation *simulation,
                         cJSON *report, cs_error *error)
{
    return add_model(scenario, report) && add_computing(scenario, simulation, report) &&
                   (!scenario->paradl.given || add_form(scenario, report))
               ? CS_OK
               : cs_error_no_memory(error);
}

static cs_status run_strategy(const void *context, const cJSON *document,
                              const cs_progress *progress, cJSON **result, cs_error *error)
{
    return cs_study_run(context, document, measure, progress, result, error);
}

/* Layers as the paper may count them: operators that compute, and convolutions and linear layers on
 * the longest path. */
static cs_status count_layers(const cs_net *net, cJSON *report, cs_error *error)
{
    uint32_t n = 0, longest = 0;
    uint32_t *depths = calloc(net->n_tensors + 1ULL, sizeof(*depths));
    if (!depths)
        return cs_error_no_memory(error);
    for (uint32_t p = 0; p < net->n_ops; p++) {
        const cs_op *op = &net->ops[p];
        uint32_t depth = 0;
        for (uint32_t i = 0; i < op->n_inputs; i++)
            depth = depths[op->inputs[i]] > depth ? depths[op->inputs[i]] : depth;
        depth += op->kind == CS_OP_CONV || op->kind == CS_OP_LINEAR;
        n += op->kind != CS_OP_VIEW && op->kind != CS_OP_CROSS_ENTROPY &&
             op->kind != CS_OP_SQUARED_ERROR;
        depths[op->output] = depth;
        longest = depth > longest ? depth : longest;
    }
    free(depths);
    return cs_json_add_number(report, "operators", n) &&
                   cs_json_add_number(report, "weighted_layers", longest)
               ? CS_OK
               : cs_error_no_memory(error);
}

static cs_status run_model(const void *context, const cJSON *document, const cs_progress *progress,
                           cJSON **result, cs_error *error)
{
    const cs_json_place place = {.file = context};
    const cJSON *model = cs_json_member(document, "model");
    const cJSON *name = cs_json_member(model, "name");
    const cs_workload workload = {.name = cJSON_GetStringValue(name),
                                  .parameters = cs_json_member(model, "parameters")};
    cs_net net = {0};
    CS_TRY(cs_study_run(context, document, measure, progress, result, error));
    cs_status status = cs_workload_network(&workload, &place, &net, error);
    if (status == CS_OK)
        status = count_layers(&net, *result, error);
    cs_net_finish(&net);
    return status;
}

/* ---- points of the study of strategies ---- */

enum { NETWORK, DEVICES, BATCH, PARALLEL }; /* its columns */

enum { DATA, FILTER, CHANNEL, DATA_FILTER, DATA_SPATIAL, PIPELINE, N_STRATEGIES };

static const char *const strategies[N_STRATEGIES] = {"data",          "filter",         "channel",
                                                     "data + filter", "data + spatial", "pipeline"};

static uint32_t strategy_of(const cs_study *study, uint32_t point)
{
    char text[128];
    cs_study_axis_text(study, PARALLEL, point, text, sizeof(text));
    const bool data = strstr(text, "data");
    if (strstr(text, "pipeline"))
        return PIPELINE;
    if (strstr(text, "space"))
        return DATA_SPATIAL;
    if (strstr(text, "channel"))
        return CHANNEL;
    if (strstr(text, "filter"))
        return data ? DATA_FILTER : FILTER;
    return DATA;
}

static bool is_network(const cs_study *study, uint32_t point, const char *name)
{
    char text[64];
    cs_study_axis_text(study, NETWORK, point, text, sizeof(text));
    return strcmp(text, name) == 0;
}

/* The point of a network with a strategy on so many devices; the number of points: there is none.
 */
static uint32_t find_point(const cs_study *study, const char *network, uint32_t strategy,
                           double devices)
{
    uint32_t i = 0;
    while (i < study->results.n_points &&
           !(is_network(study, i, network) && strategy_of(study, i) == strategy &&
             cs_study_axis_number(study, DEVICES, i) == devices))
        i++;
    return i;
}

static double number_at(const cs_study *study, uint32_t point, const char *key)
{
    return point < study->results.n_points ? cs_study_number(study, point, key) : NAN;
}

static double form_time(const cs_study *study, uint32_t point)
{
    return number_at(study, point, "form_computing_s") + number_at(study, point, "form_messages_s");
}

/* Time in an iteration during which a device waits for messages, s. */
static double simulated_messages(const cs_study *study, uint32_t point)
{
    return number_at(study, point, "iteration_time_s") - number_at(study, point, "computing_s");
}

/* Parts of a prediction that are taken from the simulation instead of the form. */
typedef enum taken { NOTHING, COMPUTING, MESSAGES, N_TAKEN } taken;

static double predicted(const cs_study *study, uint32_t point, taken from_simulation)
{
    return (from_simulation == COMPUTING ? number_at(study, point, "computing_s")
                                         : number_at(study, point, "form_computing_s")) +
           (from_simulation == MESSAGES ? simulated_messages(study, point)
                                        : number_at(study, point, "form_messages_s"));
}

/* 1 - |predicted - measured| / measured, %, as the paper defines it, against the simulation. */
static double accuracy(const cs_study *study, uint32_t point, taken from_simulation)
{
    const double simulated = number_at(study, point, "iteration_time_s");
    return 100 * (1 - fabs(predicted(study, point, from_simulation) - simulated) / simulated);
}

/* ---- figures 3 and 4 ---- */

/* The mean over all points of a strategy; N_STRATEGIES: over all points. */
static double mean_of(const cs_study *study, uint32_t strategy,
                      double (*value)(const cs_study *, uint32_t, taken), taken part)
{
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < study->results.n_points; i++)
        if (strategy == N_STRATEGIES || strategy_of(study, i) == strategy) {
            sum += value(study, i, part);
            n++;
        }
    return n > 0 ? sum / n : NAN;
}

/* Form less simulation, % of the iteration. */
static double excess(const cs_study *study, uint32_t point, taken part)
{
    const double more =
        part == COMPUTING
            ? number_at(study, point, "form_computing_s") - number_at(study, point, "computing_s")
            : number_at(study, point, "form_messages_s") - simulated_messages(study, point);
    return 100 * more / number_at(study, point, "iteration_time_s");
}

static const char *const networks[] = {"resnet50", "resnet152", "vgg16"};
enum { N_NETWORKS = 3, MOST_POINTS = 32 };

static void draw_network(cs_page *page, const cs_study *study, const char *network)
{
    static const char *const names[3] = {"form: computing", "form: with messages", "simulated"};
    const char **groups = cs_page_alloc(page, MOST_POINTS, sizeof(*groups));
    uint32_t points[MOST_POINTS], n = 0;
    for (uint32_t s = 0; s < N_STRATEGIES; s++)
        for (uint32_t i = 0; i < study->results.n_points && n < MOST_POINTS; i++)
            if (is_network(study, i, network) && strategy_of(study, i) == s)
                points[n++] = i;
    cs_chart_draft *draft = cs_page_draft(page, 1, 3, n);
    if (!draft || !groups)
        return;
    for (uint32_t i = 0; i < n; i++) {
        groups[i] = cs_page_format(page, "%s, %g", strategies[strategy_of(study, points[i])],
                                   cs_study_axis_number(study, DEVICES, points[i]));
        draft->y[0][i] = 1e3 * number_at(study, points[i], "form_computing_s");
        draft->y[1][i] = 1e3 * form_time(study, points[i]);
        draft->y[2][i] = 1e3 * number_at(study, points[i], "iteration_time_s");
    }
    for (uint32_t s = 0; s < 3; s++)
        draft->series[s].name = names[s];
    draft->panels[0].title = network;
    draft->chart.subtitle = "iteration time; strategy and number of GPUs";
    draft->chart.bars = true;
    draft->chart.names = groups;
    draft->chart.n_names = n;
    draft->chart.y_title = "ms";
    cs_page_chart(page, &draft->chart);
}

static const char *const all_strategies[N_STRATEGIES + 1] = {
    "data", "filter", "channel", "data + filter", "data + spatial", "pipeline", "all"};
static const double paper_accuracy[N_STRATEGIES + 1] = {96.10, 85.56, 73.67, 91.43,
                                                        83.46, 90.22, 86.74};

static void draw_accuracy(cs_page *page, const cs_study *study)
{
    cs_chart_draft *draft = cs_page_draft(page, 1, 2, N_STRATEGIES + 1);
    if (!draft)
        return;
    for (uint32_t s = 0; s <= N_STRATEGIES; s++) {
        draft->y[0][s] = paper_accuracy[s];
        draft->y[1][s] = mean_of(study, s, accuracy, NOTHING);
    }
    draft->series[0].name = "paper: form and runs on ABCI";
    draft->series[1].name = "form and simulation";
    draft->chart.subtitle = "mean over networks and numbers of GPUs";
    draft->chart.bars = true;
    draft->chart.names = all_strategies;
    draft->chart.n_names = N_STRATEGIES + 1;
    draft->chart.y_title = "accuracy (%)";
    cs_page_chart(page, &draft->chart);
}

/* Causes switched off in paradl-causes.csv, one for each point, in the same order. */
typedef struct cause {
    const char *network;
    uint32_t strategy;
    double devices; /* GPUs of the point that has the cause, in the strategies' study */
    const char *without;
} cause;

static const cause causes[] = {
    {"resnet50", DATA_SPATIAL, 16, "images of 256 pixels, whose last 8 rows have equal halves"},
    {"resnet152", DATA_SPATIAL, 16, "images of 256 pixels, whose last 8 rows have equal halves"},
    {"vgg16", DATA_SPATIAL, 16, "images of 256 pixels, whose last 8 rows have equal halves"},
    {"resnet50", PIPELINE, 4, "GPUs wait for messages"},
    {"resnet152", PIPELINE, 4, "GPUs wait for messages"},
    {"vgg16", PIPELINE, 4, "GPUs wait for messages"},
};
enum { N_CAUSES = sizeof(causes) / sizeof(causes[0]) };

static cs_status check_causes(const cs_study *study, cs_error *error)
{
    if (study->results.n_points != N_CAUSES + 1)
        return cs_error_add(error, CS_INVALID, "%s: must have %d points", study->path,
                            N_CAUSES + 1);
    return cs_study_all_done(study, error);
}

static void add_causes(cs_page *page, const cs_study *study, const cs_study *without)
{
    cs_page_table(page, "Accuracy of the form without the causes of its difference.",
                  "strategy\tnetwork\taccuracy\twithout the cause\taccuracy then");
    for (uint32_t i = 0; i < N_CAUSES; i++)
        cs_page_row(
            page, "%s\t%s\t%.2f %%\t%s\t%.2f %%", strategies[causes[i].strategy], causes[i].network,
            accuracy(study,
                     find_point(study, causes[i].network, causes[i].strategy, causes[i].devices),
                     NOTHING),
            causes[i].without, accuracy(without, i, NOTHING));
}

static void add_parts(cs_page *page, const cs_study *study)
{
    cs_page_table(page,
                  "Accuracy of the form, of the form with the simulated time of computing or of "
                  "messages in place of its own, and form less simulation in % of the iteration.",
                  "strategy\tpoints\tform\twith simulated computing\twith simulated messages\t"
                  "computing, form less simulated\tmessages, form less simulated");
    for (uint32_t s = 0; s < PIPELINE; s++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < study->results.n_points; i++)
            n += strategy_of(study, i) == s;
        cs_page_row(page, "%s\t%u\t%.2f %%\t%.2f %%\t%.2f %%\t%+.1f %%\t%+.1f %%", strategies[s], n,
                    mean_of(study, s, accuracy, NOTHING), mean_of(study, s, accuracy, COMPUTING),
                    mean_of(study, s, accuracy, MESSAGES), mean_of(study, s, excess, COMPUTING),
                    mean_of(study, s, excess, MESSAGES));
    }
    cs_page_text(page,
                 "Data: only gradients of biases, which the form leaves out, differ. Filter, "
                 "channel: two differences, which partly cancel, so that the form is less accurate "
                 "with one of them alone. The form divides the computing of all layers, and each "
                 "device computes batch norm, ReLU and poolings whole (section 4.5.2; paradl-fig8 "
                 "has how much is not divided); and the form exchanges the whole output of each "
                 "layer, where the simulation exchanges what the next convolution or linear layer "
                 "reads. Data + spatial: computing; 7 rows of an image have halves of 4 and 3, "
                 "and the larger one counts. Pipeline: the form adds messages, which overlap with "
                 "computing.");
}

static cs_status show_breakdown(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const char why[] = "the paper's runs on ABCI are not regenerated: here the form is "
                              "compared with the simulation, and the table below has what differs";
    CS_TRY(cs_study_all_done(&studies[0], error));
    CS_TRY(check_causes(&studies[1], error));
    cs_page_text(page,
                 "The closed form of table 3 next to the simulation of the same machine, ABCI "
                 "with V100s in fp32; 32 samples per GPU, filter and channel 32 in all. "
                 "Samples per GPU are not given in the text. Collectives are one ring, as "
                 "the form has them, and with data + spatial go through leaders of nodes, as "
                 "in section 4.5.1. \"Accuracy\" judges the form: in the paper against "
                 "runs on ABCI, here against the simulation.");
    draw_accuracy(page, studies);
    for (uint32_t i = 0; i < N_NETWORKS; i++)
        draw_network(page, studies, networks[i]);
    for (uint32_t s = 0; s <= N_STRATEGIES; s++)
        cs_page_claim(
            page, &(cs_paper_claim){.what = cs_page_format(page, "accuracy, %s", all_strategies[s]),
                                    .place = "section 5.2",
                                    .paper = paper_accuracy[s],
                                    .ours = mean_of(studies, s, accuracy, NOTHING),
                                    .decimals = 2,
                                    .unit = " %",
                                    .why = why});
    cs_page_claim(page,
                  &(cs_paper_claim){
                      .what = "best accuracy, data, VGG16",
                      .place = "section 5.2",
                      .paper = 97.57,
                      .ours = accuracy(studies, find_point(studies, "vgg16", DATA, 16), NOTHING),
                      .decimals = 2,
                      .unit = " %",
                      .why = why});
    cs_page_claim(
        page, &(cs_paper_claim){
                  .what = "accuracy, data + spatial, ResNet-152, 1024 GPUs",
                  .place = "section 5.2",
                  .paper = 83,
                  .ours = accuracy(studies, find_point(studies, "resnet152", DATA_SPATIAL, 1024),
                                   NOTHING),
                  .unit = " %",
                  .why = why});
    add_parts(page, studies);
    add_causes(page, &studies[0], &studies[1]);
    return CS_OK;
}

static cs_status show_cosmoflow(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const double paper = 74.14; /* accuracy, % */
    double sum = 0;
    const uint32_t n = studies->results.n_points;
    CS_TRY(cs_study_all_done(studies, error));
    CS_TRY(check_causes(&studies[1], error));
    cs_chart_draft *times = cs_page_draft(page, 1, 2, n), *draft = cs_page_draft(page, 1, 2, n);
    const char **names = cs_page_alloc(page, n, sizeof(*names));
    if (!times || !draft || !names)
        return CS_OK; /* told by cs_page_check */
    for (uint32_t i = 0; i < n; i++) {
        names[i] = cs_page_format(page, "%g GPUs", cs_study_axis_number(studies, 0, i));
        times->y[0][i] = 1e3 * form_time(studies, i);
        times->y[1][i] = 1e3 * number_at(studies, i, "iteration_time_s");
        draft->y[0][i] = paper;
        draft->y[1][i] = accuracy(studies, i, NOTHING);
        sum += draft->y[1][i];
    }
    times->series[0].name = "form";
    times->series[1].name = "simulated";
    draft->series[0].name = "paper, mean: form and runs on ABCI";
    draft->series[1].name = "form and simulation";
    times->chart.subtitle = draft->chart.subtitle =
        "one image of 512 voxels in each direction per node of four V100";
    times->chart.bars = draft->chart.bars = true;
    times->chart.names = draft->chart.names = names;
    times->chart.n_names = draft->chart.n_names = n;
    times->chart.y_title = "iteration time (ms)";
    draft->chart.y_title = "accuracy (%)";
    cs_page_chart(page, &times->chart);
    cs_page_chart(page, &draft->chart);
    cs_page_claim(page, &(cs_paper_claim){
                            .what = "accuracy, CosmoFlow, data + spatial",
                            .place = "section 5.2",
                            .paper = paper,
                            .ours = sum / n,
                            .decimals = 2,
                            .unit = " %",
                            .why = cs_page_format(
                                page,
                                "the form divides all layers; the simulation, as ParaDL's "
                                "program, computes the layers after the second pooling on all four "
                                "devices of a node: with all divided it is %.1f %% on 16 GPUs",
                                accuracy(&studies[1], N_CAUSES, NOTHING))});
    return CS_OK;
}

/* ---- figure 5 ---- */

static cs_status show_scaling(const cs_study *studies, cs_page *page, cs_error *error)
{
    const uint32_t n = studies->results.n_points;
    CS_TRY(cs_study_all_done(studies, error));
    cs_chart_draft *draft = cs_page_draft(page, 1, 2, n);
    if (!draft)
        return CS_OK; /* told by cs_page_check */
    const double least = cs_study_axis_number(studies, 0, 0);
    for (uint32_t i = 0; i < n; i++) {
        draft->x[0][i] = draft->x[1][i] = cs_study_axis_number(studies, 0, i);
        draft->y[0][i] = number_at(studies, i, "throughput_samples_per_s");
        draft->y[1][i] = draft->y[0][0] * draft->x[0][i] / least;
    }
    draft->series[0].name = "data + spatial, simulated";
    draft->series[1].name = "perfect";
    draft->series[1].dashed = true;
    draft->chart.subtitle = "CosmoFlow, images of 512 voxels in each direction";
    draft->chart.logarithmic = true;
    draft->chart.x_title = "GPUs";
    draft->chart.y_title = "samples per second";
    cs_page_chart(page, &draft->chart);
    for (uint32_t i = 1; i < n; i++)
        cs_page_claim(page, &(cs_paper_claim){
                                .what = cs_page_format(page,
                                                       "%g GPUs: speedup over one node's spatial "
                                                       "parallelism",
                                                       draft->x[0][i]),
                                .place = "figure 5, section 5.3.4: \"a perfect scaling\"",
                                .form = "p/4",
                                .paper = draft->x[0][i] / least,
                                .ours = draft->y[0][i] / draft->y[0][0],
                                .unit = "",
                                .why = cs_page_format(
                                    page,
                                    "sums of gradients between nodes, which one node "
                                    "does not have: computing alone scales by %.1f",
                                    draft->x[0][i] / least * number_at(studies, 0, "computing_s") /
                                        number_at(studies, i, "computing_s"))});
    return CS_OK;
}

/* ---- figure 6 ---- */

/* The cases of paradl-congestion.csv; each is followed by the same with more and more messages of
 * other jobs on one link. */
enum { ALL_REDUCE, ALL_GATHER, CONGESTED, N_JOBS, MOST_MESSAGES = 4 };

static uint32_t congested_point(uint32_t job, uint32_t messages)
{
    return job * (MOST_MESSAGES + 1) + messages;
}

/* Time of messages over that without other jobs. */
static double slowed(const cs_study *study, uint32_t job, uint32_t messages)
{
    return simulated_messages(study, congested_point(job, messages)) /
           simulated_messages(study, congested_point(job, 0));
}

static void draw_congestion(cs_page *page, const cs_study *study)
{
    static const char *const titles[] = {"all-reduce: ResNet-50, data, 512 GPUs",
                                         "all-gather: VGG16, filter, 64 GPUs"};
    cs_chart_draft *draft = cs_page_draft(page, 2, 2, MOST_MESSAGES + 1);
    for (uint32_t i = 0; draft && i < 4; i++) {
        draft->panels[i / 2].title = titles[i / 2];
        draft->series[i].name = i % 2 ? "simulated" : "paper: largest";
        draft->series[i].dashed = i % 2 == 0;
        for (uint32_t k = 0; k <= MOST_MESSAGES; k++) {
            draft->x[i][k] = k;
            draft->y[i][k] = i % 2 ? slowed(study, i / 2, k) : 4;
        }
    }
    if (!draft)
        return;
    draft->chart.x_title = "messages of other jobs on one link between two nodes";
    draft->chart.y_title = "time of messages over that without";
    cs_page_chart(page, &draft->chart);
}

static cs_status show_congestion(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const char *const what[] = {"all-reduce, ResNet-50, data, 512 GPUs",
                                       "all-gathers, VGG16, filter, 64 GPUs"};
    static const char why[] = "the traffic of other jobs on ABCI is not given: here three messages "
                              "at all times, on one link of the ring";
    enum { SHOWN = 3 };
    if (studies->results.n_points != N_JOBS * (MOST_MESSAGES + 1))
        return cs_error_add(error, CS_INVALID, "%s: must have %d points", studies->path,
                            N_JOBS * (MOST_MESSAGES + 1));
    CS_TRY(cs_study_all_done(studies, error));
    draw_congestion(page, studies);
    for (uint32_t job = ALL_REDUCE; job <= ALL_GATHER; job++)
        cs_page_claim(page, &(cs_paper_claim){
                                .what = cs_page_format(page, "%s: slowed by other jobs", what[job]),
                                .place = "section 5.3.1, figure 6",
                                .relation = CS_UP_TO,
                                .paper = 4,
                                .ours = slowed(studies, job, SHOWN),
                                .unit = " times",
                                .why = why});
    cs_page_claim(
        page,
        &(cs_paper_claim){
            .what = "accuracy, data + spatial, ResNet-152, 512 GPUs, slowed by other jobs",
            .place = "section 5.2",
            .paper = 62,
            .ours = accuracy(studies, congested_point(CONGESTED, SHOWN), NOTHING),
            .unit = " %",
            .why = cs_page_format(page, "%s; with four it is %.1f %%, without any %.1f %%", why,
                                  accuracy(studies, congested_point(CONGESTED, SHOWN + 1), NOTHING),
                                  accuracy(studies, congested_point(CONGESTED, 0), NOTHING))});
    cs_page_text(page, "Links are shared fairly, so that k other messages make one k + 1 times as "
                       "long, and a ring is as slow as its slowest link: messages on one link "
                       "slow down all of it.");
    return CS_OK;
}

/* ---- figures 7 and 8 ---- */

static const char *const model_titles[] = {"ResNet-50", "ResNet-152", "VGG16", "CosmoFlow"};
enum { N_MODELS = 4 };

/* The axes of paradl-updates.json besides the network. */
enum { ADAM = 2, FUSED = 0, PYTORCH = 1, SAMPLES_32 = 0, SAMPLES_16 = 1 };

static double update_share(const cs_study *study, uint32_t model, uint32_t optimizer,
                           uint32_t runtime, uint32_t samples)
{
    const uint32_t point = cs_study_point(study, (uint32_t[]){model, optimizer, runtime, samples});
    const double updates = number_at(study, point, "updates_s");
    return 100 * updates / (updates + number_at(study, point, "passes_s"));
}

static void claim_update(cs_page *page, const cs_study *study, const char *place)
{
    enum { VGG = 2 };
    cs_page_claim(
        page,
        &(cs_paper_claim){
            .what = "VGG16: weight update, largest share of computing",
            .place = place,
            .relation = CS_UP_TO,
            .paper = 15,
            .ours = update_share(study, VGG, ADAM, PYTORCH, SAMPLES_16),
            .unit = " %",
            .why = cs_page_format(
                page,
                "Adam in PyTorch, 16 samples; the paper's optimizer and samples per GPU are not "
                "given: with 32 samples it is %.1f %%, with all steps in one kernel %.1f %%",
                update_share(study, VGG, ADAM, PYTORCH, SAMPLES_32),
                update_share(study, VGG, ADAM, FUSED, SAMPLES_32))});
}

static cs_status check_models(const cs_study *study, cs_error *error)
{
    if (cs_study_length(study, 0) != N_MODELS)
        return cs_error_add(error, CS_INVALID, "%s: must vary %d models", study->path, N_MODELS);
    return cs_study_all_done(study, error);
}

static cs_status show_updates(const cs_study *studies, cs_page *page, cs_error *error)
{
    enum { N_SERIES = 5 };
    static const char *const names[N_SERIES] = {
        "paper: largest", "momentum, PyTorch, 32 samples", "Adam, one kernel, 32 samples",
        "Adam, PyTorch, 32 samples", "Adam, PyTorch, 16 samples"};
    static const uint32_t at[N_SERIES][3] = {{0, 0, 0},
                                             {ADAM - 1, PYTORCH, SAMPLES_32},
                                             {ADAM, FUSED, SAMPLES_32},
                                             {ADAM, PYTORCH, SAMPLES_32},
                                             {ADAM, PYTORCH, SAMPLES_16}};
    CS_TRY(check_models(studies, error));
    cs_chart_draft *draft = cs_page_draft(page, 1, N_SERIES, N_MODELS);
    if (!draft)
        return CS_OK;
    for (uint32_t i = 0; i < N_SERIES; i++) {
        draft->series[i].name = names[i];
        for (uint32_t m = 0; m < N_MODELS; m++)
            draft->y[i][m] = i == 0 ? (m == 2 ? 15 : NAN)
                                    : update_share(studies, m, at[i][0], at[i][1], at[i][2]);
    }
    draft->chart.subtitle = "one V100, fp32";
    draft->chart.bars = true;
    draft->chart.names = model_titles;
    draft->chart.n_names = N_MODELS;
    draft->chart.y_title = "update, % of computing";
    cs_page_chart(page, &draft->chart);
    claim_update(page, studies, "section 5.3.3, figure 7: \"up to\"");
    cs_page_text(page,
                 "Figure 7 is of PyTorch, whose optimizers compute each step of the formula in a "
                 "kernel of its own: Adam then moves 80 bytes per weight instead of 28.");
    return CS_OK;
}

static cs_status show_filters(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const double devices[] = {4, 16, 64};
    CS_TRY(cs_study_all_done(studies, error));
    cs_chart_draft *draft = cs_page_draft(page, 1, 3, 3);
    if (!draft)
        return CS_OK; /* told by cs_page_check */
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t point = find_point(studies, "resnet50", FILTER, devices[i]);
        draft->x[0][i] = draft->x[1][i] = draft->x[2][i] = devices[i];
        draft->y[0][i] = 1e3 * number_at(studies, point, "computing_s");
        draft->y[1][i] = 1e3 * number_at(studies, point, "form_computing_s");
    }
    /* whole + divided / p, by the first two points */
    const double whole =
        (devices[1] * draft->y[0][1] - devices[0] * draft->y[0][0]) / (devices[1] - devices[0]);
    for (uint32_t i = 0; i < 3; i++)
        draft->y[2][i] = whole + (draft->y[0][0] - whole) * devices[0] / devices[i];
    draft->series[2].name = "a part that is not divided, and 1/p of the rest";
    draft->series[2].dashed = true;
    draft->series[0].name = "simulated";
    draft->series[1].name = "form: 1/p of all layers";
    draft->series[1].dashed = true;
    draft->chart.subtitle = "ResNet-50, filter parallelism, 32 samples";
    draft->chart.logarithmic = true;
    draft->chart.x_title = "GPUs";
    draft->chart.y_title = "computing of a device (ms)";
    cs_page_chart(page, &draft->chart);
    for (uint32_t i = 0; i < 3; i++)
        cs_page_claim(
            page,
            &(cs_paper_claim){.what = cs_page_format(
                                  page, "%g GPUs: computing over the form's p-th part", devices[i]),
                              .place = "section 5.3.3, figure 8: does not scale as expected",
                              .relation = CS_ABOVE,
                              .paper = 1,
                              .ours = draft->y[0][i] / draft->y[1][i],
                              .decimals = 1,
                              .unit = ""});
    cs_page_text(page,
                 "Each device computes batch norm, ReLU and poolings for all channels. By the "
                 "times on %g and %g GPUs %.1f ms are not divided; with these and 1/p of the rest "
                 "%g GPUs take %.1f ms, simulated are %.1f ms, since products with few filters "
                 "take longer. The paper's picture has no numbers in its text. What splitting and "
                 "concatenating tensors costs in its framework is not simulated.",
                 devices[0], devices[1], whole, devices[2], draft->y[2][2], draft->y[0][2]);
    return CS_OK;
}

/* ---- tables ---- */

static cs_status show_forms(const cs_study *studies, cs_page *page, cs_error *error)
{
    CS_TRY(cs_study_all_done(studies, error));
    const uint32_t data = find_point(studies, "resnet50", DATA, 16);
    cs_page_claim(page,
                  &(cs_paper_claim){.what = "data, ResNet-50, 16 GPUs: computing simulated",
                                    .place = "table 3, equation 5",
                                    .form = "B/p sum(FW + BW) + sum WU",
                                    .paper = 1e3 * number_at(studies, data, "form_computing_s"),
                                    .ours = 1e3 * number_at(studies, data, "computing_s"),
                                    .decimals = 2,
                                    .unit = " ms"});
    cs_page_claim(page,
                  &(cs_paper_claim){.what = "data, ResNet-50, 16 GPUs: messages simulated",
                                    .place = "table 3, equation 6",
                                    .form = "2 (p - 1)(alpha + sum w/p beta)",
                                    .paper = 1e3 * number_at(studies, data, "form_messages_s"),
                                    .ours = 1e3 * simulated_messages(studies, data),
                                    .decimals = 2,
                                    .unit = " ms",
                                    .why = "gradients of biases, 0.1 % of all, which the form "
                                           "leaves out"});
    cs_page_table(
        page, "ResNet-50 on 4 or 16 GPUs of ABCI: the form, and what is simulated.",
        "strategy\tGPUs\tcomputing: form\tsimulated\tmessages: form\tsimulated\titeration: "
        "form\tsimulated\tmemory: form\tsimulated");
    for (uint32_t s = 0; s < N_STRATEGIES; s++) {
        const double devices = s == PIPELINE ? 4 : 16;
        const uint32_t i = find_point(studies, "resnet50", s, devices);
        cs_page_row(
            page, "%s\t%g\t%.1f ms\t%.1f ms\t%.1f ms\t%s\t%.1f ms\t%.1f ms\t%.1f GB\t%.1f GB",
            strategies[s], devices, 1e3 * number_at(studies, i, "form_computing_s"),
            1e3 * number_at(studies, i, "computing_s"),
            1e3 * number_at(studies, i, "form_messages_s"),
            s == PIPELINE ? "(overlap)"
                          : cs_page_format(page, "%.1f ms", 1e3 * simulated_messages(studies, i)),
            1e3 * form_time(studies, i), 1e3 * number_at(studies, i, "iteration_time_s"),
            number_at(studies, i, "form_memory_bytes") / 1e9,
            number_at(studies, i, "peak_memory_bytes") / 1e9);
    }
    cs_page_text(page, "Memory of the form is the sum of all tensors, before its factor gamma.");
    return CS_OK;
}

static double millions_of(const cs_study *study, uint32_t model)
{
    return number_at(study, cs_study_point(study, (uint32_t[]){model, 0}), "parameters") / 1e6;
}

static void claim_parameters(cs_page *page, const char *model, double paper, double ours,
                             const char *why)
{
    cs_page_claim(page,
                  &(cs_paper_claim){.what = cs_page_format(page, "%s: parameters, millions", model),
                                    .place = "table 5",
                                    .paper = paper,
                                    .ours = ours,
                                    .unit = "M",
                                    .why = why});
}

/* Samples have 226 pixels in each direction, which five poolings halve. Chainer, in which the paper
 * computes, rounds up (max_pooling_2d: cover_all): 113, 57, 29, 15, 8; as published VGG-16 has 7
 * from
 * 224. The first fully connected layer reads the square of that, of 512 channels, and has 4096
 * features. */
static double vgg_as_in_chainer(double millions)
{
    enum { POOLINGS = 5, PIXELS = 226, PUBLISHED = 7, CHANNELS = 512, FEATURES = 4096 };
    uint32_t side = PIXELS;
    for (uint32_t i = 0; i < POOLINGS; i++)
        side = (side + 1) / 2;
    return millions + (double)(side * side - PUBLISHED * PUBLISHED) * CHANNELS * FEATURES / 1e6;
}

/* The paper does not say what it counts. */
static void claim_layers(cs_page *page, const cs_study *study)
{
    static const struct {
        double paper;
        const char *key, *counted, *why;
    } layers[N_MODELS] = {
        {50, "weighted_layers", "convolutions and linear layers on the longest path", NULL},
        {152, "weighted_layers", "convolutions and linear layers on the longest path", NULL},
        {38, "operators", "all operators",
         "the average pooling in front of the linear layers, which torchvision added"},
        {20, "operators", "all operators", "the network of LBANN; the paper's is another variant"},
    };
    for (uint32_t m = 0; m < N_MODELS; m++)
        cs_page_claim(page, &(cs_paper_claim){
                                .what = cs_page_format(page, "%s: layers, counted as %s",
                                                       model_titles[m], layers[m].counted),
                                .place = "table 5",
                                .paper = layers[m].paper,
                                .ours = number_at(study, cs_study_point(study, (uint32_t[]){m, 0}),
                                                  layers[m].key),
                                .unit = "",
                                .why = layers[m].why});
}

static cs_status show_models(const cs_study *studies, cs_page *page, cs_error *error)
{
    enum { RESNET50, RESNET152, VGG, COSMOFLOW };
    const double last_layer = (2048 * 1000 + 1000) / 1e6; /* of a ResNet: weights and biases */
    CS_TRY(check_models(studies, error));
    claim_parameters(page, model_titles[RESNET50], 25, millions_of(studies, RESNET50),
                     "25.56M, as published");
    claim_parameters(page, model_titles[RESNET152], 58, millions_of(studies, RESNET152),
                     "60.19M, as published; the next row has the paper's number");
    claim_parameters(page, "ResNet-152 without its last layer", 58,
                     millions_of(studies, RESNET152) - last_layer, "58.14M, rounded down");
    claim_parameters(page, model_titles[VGG], 169, millions_of(studies, VGG),
                     "138.36M, as published with VGG-16, for 224 pixels; the next row has the "
                     "paper's number");
    claim_parameters(page, "VGG16, 226 pixels in Chainer", 169,
                     vgg_as_in_chainer(millions_of(studies, VGG)),
                     "169.8M, rounded down: Chainer's poolings round up and leave 8 by 8 of 226 "
                     "pixels, not 7 by 7");
    claim_parameters(page, model_titles[COSMOFLOW], 2, millions_of(studies, COSMOFLOW),
                     "the network of LBANN; the paper's is another variant");
    claim_layers(page, studies);
    return CS_OK;
}

static void claim_leaders(cs_page *page, const cs_study *study)
{
    for (uint32_t d = 0; d < cs_study_length(study, 1); d++) {
        const double usual = cs_study_number(study, cs_study_point(study, (uint32_t[]){0, d}),
                                             "exposed_collectives_s");
        cs_page_claim(page,
                      &(cs_paper_claim){
                          .what = cs_page_format(page,
                                                 "all-reduce by leaders of nodes over that of data "
                                                 "parallelism, VGG16, %g GPUs",
                                                 cs_study_axis_number(study, 1, d)),
                          .place = "section 5.3.1",
                          .relation = CS_ABOVE,
                          .paper = 2,
                          .ours = cs_study_number(study, cs_study_point(study, (uint32_t[]){1, d}),
                                                  "exposed_collectives_s") /
                                  usual,
                          .decimals = 1,
                          .unit = ""});
    }
    enum { LEADERS = 1, ONE_RING = 3 };
    cs_page_table(page, "All-reduce by leaders of nodes, VGG16.",
                  "GPUs\ttime\tover a ring per NIC, as NCCL has\tover one ring");
    for (uint32_t d = 0; d < cs_study_length(study, 1); d++) {
        double time[ONE_RING + 1];
        for (uint32_t a = 0; a <= ONE_RING; a++)
            time[a] = cs_study_number(study, cs_study_point(study, (uint32_t[]){a, d}),
                                      "exposed_collectives_s");
        cs_page_row(page, "%g\t%.1f ms\t%.2f\t%.2f", cs_study_axis_number(study, 1, d),
                    1e3 * time[LEADERS], time[LEADERS] / time[0], time[LEADERS] / time[ONE_RING]);
    }
}

static void claim_limits(cs_page *page, const cs_study *study)
{
    static const char *const limited[] = {"resnet50", "vgg16"};
    for (int i = 0; i < 2; i++)
        cs_page_claim(
            page,
            &(cs_paper_claim){
                .what = cs_page_format(page, "most GPUs of filter parallelism, %s", limited[i]),
                .place = "section 5.3.4",
                .paper = 64,
                .ours = number_at(study, find_point(study, limited[i], FILTER, 4), "most_members"),
                .unit = ""});
}

/* Halos went through MPI and the CPUs, which are reached by PCIe; gradients through NCCL. */
static void claim_halo(cs_page *page, const cs_study *study)
{
    enum { NVLINK, PCIE, SAMPLES_16_EACH = 0, SAMPLES_32_EACH = 1 };
    double share[2][2];
    for (uint32_t link = 0; link < 2; link++)
        for (uint32_t b = 0; b < 2; b++)
            share[link][b] = 100 *
                             cs_study_number(study, cs_study_point(study, (uint32_t[]){link, b}),
                                             "form_halo_s") /
                             cs_study_number(study, cs_study_point(study, (uint32_t[]){NVLINK, b}),
                                             "form_gradients_s");
    cs_page_claim(page, &(cs_paper_claim){
                            .what = "halo exchange over gradient exchange, ResNet-50, 128 GPUs",
                            .place = "section 5.3.1, table 6",
                            .relation = CS_ABOUT,
                            .paper = 60,
                            .ours = share[PCIE][SAMPLES_32_EACH],
                            .unit = " %",
                            .why = cs_page_format(
                                page,
                                "by the form, halos by PCIe and between sockets, as MPI sends "
                                "them through the CPUs; samples per GPU are not given, and with "
                                "16 instead of 32 it is %.1f %%; over NVLink it is %.1f %%",
                                share[PCIE][SAMPLES_16_EACH], share[NVLINK][SAMPLES_32_EACH])});
}

/* The paragraph explains a disparity between ParaDL and measured times. */
static void claim_spatial_time(cs_page *page, const cs_study *study)
{
    const uint32_t spatial = find_point(study, "vgg16", DATA_SPATIAL, 64);
    const double time = number_at(study, spatial, "iteration_time_s");
    const double data = number_at(study, find_point(study, "vgg16", DATA, 64), "iteration_time_s");
    cs_page_claim(
        page,
        &(cs_paper_claim){
            .what = "time of an iteration over ParaDL's, data + spatial, VGG16, 64 GPUs",
            .place = "section 5.3.2: \"a performance degradation\"",
            .paper = 1.5,
            .ours = time / form_time(study, spatial),
            .decimals = 1,
            .unit = " times",
            .why = cs_page_format(
                page,
                "kernels that wait for memory, to which the paper attributes it, are not "
                "simulated: a GPU needs %.1f GB here, of 16 GB. The difference that is left is in "
                "part that of unequal halves of images (paradl-fig3). Over data parallelism it is "
                "%.2f times, with halos, leaders and linear layers",
                number_at(study, spatial, "peak_memory_bytes") / 1e9, time / data)});
}

static cs_status show_limits(const cs_study *studies, cs_page *page, cs_error *error)
{
    const cs_study *strategy = &studies[0], *updates = &studies[1], *cosmoflow = &studies[3];
    CS_TRY(check_models(updates, error));
    for (int i = 0; i < CS_FIGURE_STUDIES; i++)
        CS_TRY(cs_study_all_done(&studies[i], error));
    claim_halo(page, &studies[4]);
    claim_leaders(page, &studies[2]);
    cs_page_claim(
        page,
        &(cs_paper_claim){
            .what = "phi of the groups' all-reduces in data + filter, ABCI",
            .place = "section 5.2",
            .paper = 2,
            .ours = number_at(strategy, find_point(strategy, "resnet50", DATA_FILTER, 16),
                              "between_beta") /
                    number_at(strategy, find_point(strategy, "resnet50", DATA, 16), "between_beta"),
            .unit = ""});
    claim_limits(page, strategy);
    claim_update(page, updates, "section 5.3.3, table 6");
    claim_spatial_time(page, strategy);
    cs_page_claim(page,
                  &(cs_paper_claim){
                      .what = "output of CosmoFlow's first convolution, 512 voxels, one device",
                      .place = "section 5.3.2: \"more than 10 GB\"",
                      .relation = CS_ABOVE,
                      .paper = 10,
                      .ours = cs_study_axis_number(cosmoflow, 0, 0) * /* devices share an image */
                              number_at(cosmoflow, 0, "largest_output_bytes") / 1e9,
                      .unit = " GB",
                      .why = "16 channels of 512 voxels in each direction in fp32; as much again "
                             "behind its ReLU, so that both together exceed 10 GB"});
    cs_page_text(page, "Of table 6, stalls of memory managers are not simulated.");
    return CS_OK;
}

#define STRATEGIES                                                                                 \
    {                                                                                              \
        "papers/paradl-strategies.json", run_strategy                                              \
    }
#define MODELS                                                                                     \
    {                                                                                              \
        "papers/paradl-models.json", run_model                                                     \
    }
#define UPDATES                                                                                    \
    {                                                                                              \
        "papers/paradl-updates.json", run_strategy                                                 \
    }
#define CAUSES                                                                                     \
    {                                                                                              \
        "papers/paradl-causes.json", run_strategy                                                  \
    }
#define COSMOFLOW                                                                                  \
    {                                                                                              \
        "papers/paradl-cosmoflow.json", run_strategy                                               \
    }

static const cs_paper_figure figures[] = {
    {"paradl-fig3", "times by the closed form and simulated", {STRATEGIES, CAUSES}, show_breakdown},
    {"paradl-fig4", "CosmoFlow, data + spatial", {COSMOFLOW, CAUSES}, show_cosmoflow},
    {"paradl-fig5", "scaling of data + spatial, CosmoFlow", {COSMOFLOW}, show_scaling},
    {"paradl-fig6",
     "congestion",
     {{"papers/paradl-congestion.json", run_strategy}},
     show_congestion},
    {"paradl-fig7", "weight update", {UPDATES}, show_updates},
    {"paradl-fig8", "computing of filter parallelism", {STRATEGIES}, show_filters},
    {"paradl-table3", "closed forms", {STRATEGIES}, show_forms},
    {"paradl-table5", "models", {MODELS}, show_models},
    {"paradl-table6",
     "limitations and bottlenecks",
     {STRATEGIES,
      UPDATES,
      {"papers/paradl-leaders.json", NULL},
      COSMOFLOW,
      {"papers/paradl-halo.json", run_strategy}},
     show_limits},
    {0},
};

const cs_paper cs_paper_paradl = {
    .name = "ParaDL",
    .source = "Kahira et al., An Oracle for Guiding Large-Scale Model/Hybrid Parallel Training of "
              "Convolutional Neural Networks, HPDC 2021",
    .left_out =
        "Not regenerated: measurements on ABCI, stalls of memory managers, I/O. Figures 1 and "
        "2 and tables 1, 2 and 4 show no result.",
    .figures = figures,
};
