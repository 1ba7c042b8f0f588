/* Kahira et al., "An Oracle for Guiding Large-Scale Model/Hybrid Parallel Training of Convolutional
 * Neural Networks", HPDC 2021. */
#include "sim/figures/papers.h"

#include <math.h>
#include <stdio.h>
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

/* 1 - |form - measured| / measured, %, what is measured being simulated here. */
static double accuracy(const cs_study *study, uint32_t point)
{
    const double simulated = number_at(study, point, "iteration_time_s");
    return 100 * (1 - fabs(form_time(study, point) - simulated) / simulated);
}

/* ---- figures 3 and 4 ---- */

static double mean_accuracy(const cs_study *study, uint32_t strategy)
{
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < study->results.n_points; i++)
        if (strategy == N_STRATEGIES || strategy_of(study, i) == strategy) {
            sum += accuracy(study, i);
            n++;
        }
    return n > 0 ? sum / n : NAN;
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

static const char accuracy_why[] =
    "the paper holds the form against runs on ABCI; here it is held against the simulation of the "
    "same machine";

static cs_status show_breakdown(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const double paper[N_STRATEGIES] = {96.10, 85.56, 73.67, 91.43, 83.46, 90.22};
    static const char *const why[N_STRATEGIES] = {
        [DATA] = "the form has one ring; here, as in NCCL, there is one per NIC, so that sums of "
                 "gradients take half as long",
        [FILTER] = "the simulation computes batch norm, ReLU and poolings on all channels on each "
                   "device, and needs fewer messages than the form",
        [CHANNEL] = "as of filter",
        [DATA_FILTER] = "as of filter",
        [DATA_SPATIAL] = accuracy_why,
        [PIPELINE] = "messages overlap with computing here; the form adds them"};
    CS_TRY(cs_study_all_done(studies, error));
    cs_page_text(page, "The closed form of table 3 beside the simulation of the same machine, ABCI "
                       "with V100s in fp32; 32 samples per GPU, filter and channel 32 in all. "
                       "Samples per GPU are not given in the text. Measurements on ABCI are not "
                       "regenerated, so that \"accuracy\" is that of the form against the "
                       "simulation.");
    for (uint32_t i = 0; i < N_NETWORKS; i++)
        draw_network(page, studies, networks[i]);
    for (uint32_t s = 0; s <= N_STRATEGIES; s++)
        cs_page_claim(page, &(cs_paper_claim){
                                .what = cs_page_format(page, "accuracy, %s",
                                                       s < N_STRATEGIES ? strategies[s] : "all"),
                                .place = "section 5.2",
                                .paper = s < N_STRATEGIES ? paper[s] : 86.74,
                                .ours = mean_accuracy(studies, s),
                                .decimals = 2,
                                .unit = " %",
                                .why = s < N_STRATEGIES ? why[s] : accuracy_why});
    cs_page_claim(
        page, &(cs_paper_claim){.what = "best accuracy, data, VGG16",
                                .place = "section 5.2",
                                .paper = 97.57,
                                .ours = accuracy(studies, find_point(studies, "vgg16", DATA, 16)),
                                .decimals = 2,
                                .unit = " %",
                                .why = accuracy_why});
    return CS_OK;
}

static cs_status show_cosmoflow(const cs_study *studies, cs_page *page, cs_error *error)
{
    double sum = 0;
    const uint32_t n = studies->results.n_points;
    cs_chart_draft *draft = cs_page_draft(page, 1, 2, n);
    const char **names = cs_page_alloc(page, n, sizeof(*names));
    CS_TRY(cs_study_all_done(studies, error));
    if (!draft || !names)
        return CS_OK; /* told by cs_page_check */
    for (uint32_t i = 0; i < n; i++) {
        names[i] = cs_page_format(page, "%g GPUs", cs_study_axis_number(studies, 0, i));
        draft->y[0][i] = 1e3 * form_time(studies, i);
        draft->y[1][i] = 1e3 * number_at(studies, i, "iteration_time_s");
        sum += accuracy(studies, i);
    }
    draft->series[0].name = "form";
    draft->series[1].name = "simulated";
    draft->chart.subtitle = "one image of 512 voxels in each direction per node of four V100";
    draft->chart.bars = true;
    draft->chart.names = names;
    draft->chart.n_names = n;
    draft->chart.y_title = "iteration time (ms)";
    cs_page_chart(page, &draft->chart);
    cs_page_claim(page,
                  &(cs_paper_claim){.what = "accuracy, CosmoFlow, data + spatial",
                                    .place = "section 5.2",
                                    .paper = 74.14,
                                    .ours = sum / n,
                                    .decimals = 2,
                                    .unit = " %",
                                    .why = "the form divides all layers; the simulation, as "
                                           "ParaDL's program, computes those behind the second "
                                           "pooling on all four devices of a node"});
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
        cs_page_claim(page,
                      &(cs_paper_claim){
                          .what = cs_page_format(page,
                                                 "%g GPUs: speedup over one node's spatial "
                                                 "parallelism",
                                                 draft->x[0][i]),
                          .place = "figure 5, section 5.3.4: \"a perfect scaling\"",
                          .form = "p/4",
                          .paper = draft->x[0][i] / least,
                          .ours = draft->y[0][i] / draft->y[0][0],
                          .unit = "",
                          .why = "sums of gradients between nodes, which one node does not have"});
    return CS_OK;
}

/* ---- figure 6 ---- */

static cs_status show_congestion(const cs_study *studies, cs_page *page, cs_error *error)
{
    const uint32_t n = studies->results.n_points;
    CS_TRY(cs_study_all_done(studies, error));
    cs_chart_draft *draft = cs_page_draft(page, 1, 1, n);
    double most = 0;
    for (uint32_t i = 0; draft && i < n; i++) {
        draft->x[0][i] = i;
        draft->y[0][i] = number_at(studies, i, "exposed_collectives_s") /
                         number_at(studies, 0, "exposed_collectives_s");
        most = fmax(most, draft->y[0][i]);
    }
    if (!draft)
        return CS_OK;
    draft->series[0].name = "all-reduce of ResNet-50's gradients, 16 GPUs of ABCI";
    draft->chart.x_title = "messages of other jobs on each link between nodes";
    draft->chart.y_title = "time over that without";
    cs_page_chart(page, &draft->chart);
    cs_page_claim(page, &(cs_paper_claim){.what = "longest all-reduce with messages of other jobs",
                                          .place = "section 5.3.1, figure 6",
                                          .relation = CS_UP_TO,
                                          .paper = 4,
                                          .ours = most,
                                          .decimals = 1,
                                          .unit = " times"});
    cs_page_text(page,
                 "How much traffic other jobs had on ABCI is not known. Links are shared "
                 "fairly, so that k messages beside one make it k + 1 times as long: a factor of "
                 "4 is three of them at all times.");
    return CS_OK;
}

/* ---- figures 7 and 8 ---- */

static const char *const model_titles[] = {"ResNet-50", "ResNet-152", "VGG16", "CosmoFlow"};
enum { N_MODELS = 4 };

static double update_share(const cs_study *study, uint32_t model, uint32_t optimizer)
{
    const uint32_t point = cs_study_point(study, (uint32_t[]){model, optimizer});
    const double updates = number_at(study, point, "updates_s");
    return 100 * updates / (updates + number_at(study, point, "passes_s"));
}

static cs_status check_models(const cs_study *study, cs_error *error)
{
    if (cs_study_length(study, 0) != N_MODELS)
        return cs_error_add(error, CS_INVALID, "%s: must vary %d models", study->path, N_MODELS);
    return cs_study_all_done(study, error);
}

static cs_status show_updates(const cs_study *studies, cs_page *page, cs_error *error)
{
    const uint32_t n = cs_study_length(studies, 1);
    double most = 0;
    CS_TRY(check_models(studies, error));
    cs_chart_draft *draft = cs_page_draft(page, 1, n, N_MODELS);
    for (uint32_t o = 0; draft && o < n; o++) {
        char name[32];
        cs_study_axis_text(studies, 1, o, name, sizeof(name));
        draft->series[o].name = cs_page_format(page, "%s", name);
        for (uint32_t m = 0; m < N_MODELS; m++)
            draft->y[o][m] = update_share(studies, m, o);
        most = fmax(most, draft->y[o][2]);
    }
    if (!draft)
        return CS_OK;
    draft->chart.subtitle = "one V100, 32 samples, fp32";
    draft->chart.bars = true;
    draft->chart.names = model_titles;
    draft->chart.n_names = N_MODELS;
    draft->chart.y_title = "update, % of computing";
    cs_page_chart(page, &draft->chart);
    cs_page_claim(page, &(cs_paper_claim){.what = "VGG16: weight update, share of computing",
                                          .place = "section 5.3.3, figure 7: \"up to\"",
                                          .paper = 15,
                                          .ours = most,
                                          .unit = " %",
                                          .why = "by a roofline an update reads and writes each "
                                                 "value once; a framework that updates tensor by "
                                                 "tensor in many kernels takes longer"});
    return CS_OK;
}

static cs_status show_filters(const cs_study *studies, cs_page *page, cs_error *error)
{
    static const double devices[] = {4, 16, 64};
    CS_TRY(cs_study_all_done(studies, error));
    cs_chart_draft *draft = cs_page_draft(page, 1, 2, 3);
    if (!draft)
        return CS_OK; /* told by cs_page_check */
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t point = find_point(studies, "resnet50", FILTER, devices[i]);
        draft->x[0][i] = draft->x[1][i] = devices[i];
        draft->y[0][i] = 1e3 * number_at(studies, point, "computing_s");
        draft->y[1][i] = 1e3 * number_at(studies, point, "form_computing_s");
    }
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
    cs_page_text(page, "Here batch norm, ReLU and poolings are computed by each device for all "
                       "channels. What splitting and concatenating tensors costs in the paper's "
                       "framework is not simulated.");
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
    cs_page_claim(page, &(cs_paper_claim){
                            .what = "data, ResNet-50, 16 GPUs: messages simulated",
                            .place = "table 3, equation 6",
                            .form = "2 (p - 1)(alpha + sum w/p beta)",
                            .paper = 1e3 * number_at(studies, data, "form_messages_s"),
                            .ours = 1e3 * number_at(studies, data, "exposed_collectives_s"),
                            .decimals = 2,
                            .unit = " ms",
                            .why = "the form is for one ring; NCCL, and the default here, has one "
                                   "per NIC, and ABCI's nodes have two"});
    cs_page_table(page, "ResNet-50 on 4 or 16 GPUs of ABCI: the form, and what is simulated.",
                  "strategy\tGPUs\tcomputing: form\tsimulated\tmessages: form\titeration: "
                  "form\tsimulated\tmemory: form\tsimulated");
    for (uint32_t s = 0; s < N_STRATEGIES; s++) {
        const double devices = s == PIPELINE ? 4 : 16;
        const uint32_t i = find_point(studies, "resnet50", s, devices);
        cs_page_row(page, "%s\t%g\t%.1f ms\t%.1f ms\t%.1f ms\t%.1f ms\t%.1f ms\t%.1f GB\t%.1f GB",
                    strategies[s], devices, 1e3 * number_at(studies, i, "form_computing_s"),
                    1e3 * number_at(studies, i, "computing_s"),
                    1e3 * number_at(studies, i, "form_messages_s"), 1e3 * form_time(studies, i),
                    1e3 * number_at(studies, i, "iteration_time_s"),
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

static cs_status show_limits(const cs_study *studies, cs_page *page, cs_error *error)
{
    const cs_study *strategy = &studies[0], *models = &studies[1], *cosmoflow = &studies[3];
    CS_TRY(check_models(models, error));
    for (int i = 0; i < CS_FIGURE_STUDIES; i++)
        CS_TRY(cs_study_all_done(&studies[i], error));
    const uint32_t halo = find_point(strategy, "resnet50", DATA_SPATIAL, 128);
    cs_page_claim(page,
                  &(cs_paper_claim){
                      .what = "halo exchange over gradient exchange, ResNet-50, 128 GPUs",
                      .place = "section 5.3.1, table 6",
                      .relation = CS_ABOUT,
                      .paper = 60,
                      .ours = 100 * number_at(strategy, halo, "form_halo_s") /
                              number_at(strategy, halo, "form_gradients_s"),
                      .unit = " %",
                      .why = "both by the form over NVLink within a node and InfiniBand between "
                             "nodes; the paper's halos went through MPI and the CPUs, and its "
                             "samples per GPU are not given"});
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
    cs_page_claim(page, &(cs_paper_claim){.what = "VGG16: weight update, share of computing",
                                          .place = "section 5.3.3, table 6",
                                          .paper = 15,
                                          .ours = update_share(models, 2, 2),
                                          .unit = " %",
                                          .why = "see paradl-fig7"});
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
        "papers/paradl-models.json", run_strategy                                                  \
    }
#define COSMOFLOW                                                                                  \
    {                                                                                              \
        "papers/paradl-cosmoflow.json", run_strategy                                               \
    }

static const cs_paper_figure figures[] = {
    {"paradl-fig3", "times by the closed form and simulated", {STRATEGIES}, show_breakdown},
    {"paradl-fig4", "CosmoFlow, data + spatial", {COSMOFLOW}, show_cosmoflow},
    {"paradl-fig5", "scaling of data + spatial, CosmoFlow", {COSMOFLOW}, show_scaling},
    {"paradl-fig6", "congestion", {{"papers/paradl-congestion.json", NULL}}, show_congestion},
    {"paradl-fig7", "weight update", {MODELS}, show_updates},
    {"paradl-fig8", "computing of filter parallelism", {STRATEGIES}, show_filters},
    {"paradl-table3", "closed forms", {STRATEGIES}, show_forms},
    {"paradl-table5", "models", {MODELS}, show_models},
    {"paradl-table6",
     "limitations and bottlenecks",
     {STRATEGIES, MODELS, {"papers/paradl-leaders.json", NULL}, COSMOFLOW},
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
