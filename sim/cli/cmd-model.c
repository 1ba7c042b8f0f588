#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/cli/command.h"
#include "sim/cli/output-name.h"
#include "sim/cli/scenario-option.h"
#include "sim/cli/workload-option.h"
#include "sim/model/foreign/pipedream-compare.h"
#include "sim/model/net-file.h"
#include "sim/run/scenario/workload.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ADAM = 2, MUON }; /* same order as: */
static const char *const optimizer_names[] = {"sgd", "momentum", "adam", "muon", NULL};

static const cs_option options[] = {
    {"batch", 'b', "SAMPLES", "Samples of a batch (default: 1)"},
    CS_OPTION_IMAGE,
    CS_OPTION_PARAM,
    {"device", 'd', "DEVICE", "Device to estimate times for (sim list devices), or a device file",
     false, NULL, "devices"},
    {"precision", 0, "NAME", "Numbers (default: torch_dtype of CONFIG.json, else fp32)", false,
     cs_precision_names},
    {"optimizer", 0, "NAME", "Optimizer (default: sgd)", false, optimizer_names},
    {"granularity", 'g', "NAME", "Layers of the chain (default: layer)", false,
     cs_granularity_names},
    {"recompute", 0, NULL, "Recompute all layers except the head: save only their inputs"},
    {"measured", 'm', "MODEL.json", "Times that replace estimates, by the names of layers"},
    {"compare", 'c', "GRAPH.txt", "Compare the estimates with a profile, kind by kind"},
    {"output", 'o', "MODEL.json", "Write the chain as a model file"},
    {"date", 0, "YYYY-MM-DD", "For the provenance (default: today)"},
    {"json", 0, NULL, "Print every operator as one JSON object"},
    {0},
};

/* ---- options ---- */

static cs_status read_workload(const cs_arguments *arguments, cs_workload *workload,
                               cs_error *error)
{
    uint32_t optimizer;
    *workload = (cs_workload){.name = arguments->words[0],
                              .device = cs_arguments_value(arguments, "device"),
                              .measured = cs_arguments_value(arguments, "measured"),
                              .recompute = cs_arguments_flag(arguments, "recompute"),
                              .date = cs_arguments_value(arguments, "date")};
    CS_TRY(
        cs_arguments_between(arguments, "batch", 1, 1, CS_BATCH_MAX, &workload->batch_size, error));
    CS_TRY(cs_arguments_choice(arguments, "precision", cs_precision_names, &workload->precision,
                               error));
    CS_TRY(cs_arguments_choice(arguments, "granularity", cs_granularity_names,
                               &workload->granularity, error));
    CS_TRY(cs_arguments_choice(arguments, "optimizer", optimizer_names, &optimizer, error));
    workload->optimizer_states = optimizer < MUON ? optimizer : ADAM;
    workload->muon.steps = optimizer == MUON ? CS_MUON_STEPS : 0;
    if (!workload->device && cs_arguments_value(arguments, "output"))
        return cs_error_add(error, CS_USAGE, "model: --output needs the times of a --device");
    if (workload->date && !cs_text_is_date(workload->date))
        return cs_error_add(error, CS_USAGE, "model: --date must be a day as YYYY-MM-DD");
    return cs_output_check(arguments, "output", cs_endings_of_json, error);
}

/* ---- tables ---- */

static double milliseconds(double seconds)
{
    return seconds * 1e3;
}

static void print_layers(const cs_net_chain *chain, FILE *out)
{
    fprintf(out, "%12s %10s %12s %12s %11s %11s  layer\n", "parameters", "GMAC", "output, MB",
            "saved, MB", "forward, ms", "back, ms");
    for (uint32_t i = 0; i < chain->n_layers; i++) {
        const cs_net_layer *l = &chain->layers[i];
        fprintf(out, "%12lld %10.4f %12.3f %12.3f %11.4f %11.4f  %s\n",
                (long long)(l->weights + l->biases), l->macs / 1e9, (double)l->written_bytes / 1e6,
                (double)l->kept_bytes / 1e6, milliseconds(l->forward),
                milliseconds(l->backward_input + l->backward_weight), l->name);
    }
}

/* Writes the error, "+12 %"; "-" if nothing was measured. */
static const char *error_text(double measured, double estimated, char *text, size_t size)
{
    if (measured > 0)
        snprintf(text, size, "%+.0f %%", 100 * (estimated / measured - 1));
    else
        snprintf(text, size, "-");
    return text;
}

static void print_row(const cs_compare_row *row, FILE *out)
{
    char error[2][16];
    for (int i = 0; i < 2; i++)
        error_text(row->measured[i], row->estimated[i], error[i], sizeof(error[i]));
    fprintf(out, "%-14s %8u %9u %11.3f %11.3f %8s %11.3f %11.3f %8s\n", row->kind, row->n_measured,
            row->n_estimated, milliseconds(row->measured[0]), milliseconds(row->estimated[0]),
            error[0], milliseconds(row->measured[1]), milliseconds(row->estimated[1]), error[1]);
}

static void print_compare(const cs_compare *compare, const char *path, const cs_net_options *how,
                          FILE *out)
{
    fputc('\n', out);
    cs_text_puts(out, path);
    fprintf(out, ", batch %u, against estimates on %s in %s\n\n", how->batch_size,
            how->device->title, cs_precision_names[how->precision]);
    fprintf(out, "%-14s %8s %9s %11s %11s %8s %11s %11s %8s\n", "kind", "measured", "estimated",
            "forward, ms", "estimate", "error", "back, ms", "estimate", "error");
    for (uint32_t i = 0; i < compare->n_rows; i++)
        print_row(&compare->rows[i], out);
    print_row(&compare->total, out);
    if (compare->n_untimed > 0)
        fprintf(out, "\nthe total omits %u kinds without a time on both sides\n",
                compare->n_untimed);
}

/* ---- commands ---- */

static void today(char text[16])
{
    time_t now = time(NULL);
    struct tm day;
    strftime(text, 16, "%Y-%m-%d", gmtime_r(&now, &day));
}

static cs_status write(const cs_context *context, const cs_workload *asked, const cs_net *net,
                       const cs_net_chain *chain, const char *path, cs_error *error)
{
    cs_model model = {0};
    cs_workload workload = *asked;
    char date[16];
    today(date);
    if (!workload.date)
        workload.date = date;
    cs_status status = cs_workload_model(&workload, net, &model, error);
    cJSON *root = status == CS_OK ? cs_model_json(&model) : NULL;
    char *json = root && cs_net_operators_write(net, chain, root) ? cs_json_print(root) : NULL;
    cJSON_Delete(root);
    if (status == CS_OK)
        status = json ? cs_file_write(path, json, strlen(json), error) : cs_error_no_memory(error);
    if (status == CS_OK)
        cs_log_write(&context->log, CS_LOG_INFO, "%s: a chain of %u layers, %s", model.name,
                     model.n_layers, model.provenance.source);
    free(json);
    cs_model_finish(&model);
    return status;
}

static cs_status print(const cs_context *context, const cs_arguments *arguments,
                       const cs_workload *workload, const cs_net *net, const cs_net_options *how,
                       cs_error *error)
{
    const char *profile = cs_arguments_value(arguments, "compare");
    cs_net_chain chain;
    cs_compare compare;
    const char *output = cs_arguments_value(arguments, "output");
    cs_status status = cs_net_chain_find(net, how, &chain, error);
    if (status != CS_OK)
        return status;
    if (output)
        status = write(context, workload, net, &chain, output, error);
    else if (profile)
        status = cs_compare_load(profile, net, how, &compare, error);
    if (status == CS_OK && !output && profile) {
        print_compare(&compare, profile, how, context->out);
    } else if (status == CS_OK && !output && cs_arguments_flag(arguments, "json")) {
        status = cs_print_json(cs_net_json(net, how, &chain), context->out, error);
    } else if (status == CS_OK && !output) {
        print_layers(&chain, context->out);
        double forward = 0, backward = 0;
        for (uint32_t i = 0; i < chain.n_layers; i++) {
            forward += chain.layers[i].forward;
            backward += chain.layers[i].backward_input + chain.layers[i].backward_weight;
        }
        fprintf(context->out,
                "\n%s: %u layers, %lld parameters, %.4f GMAC (%.4f Gflop) per sample\n", net->name,
                chain.n_layers, (long long)cs_net_parameters(net), cs_net_macs(net) / 1e9,
                2 * cs_net_macs(net) / 1e9);
        if (cs_net_active_parameters(net) < cs_net_parameters(net))
            fprintf(context->out,
                    "%lld of the parameters are active: all except in experts that a token is "
                    "not sent to\n",
                    (long long)cs_net_active_parameters(net));
        fprintf(context->out, "activations saved for backward at batch %u in %s: %s\n",
                how->batch_size, cs_precision_names[how->precision],
                cs_units_text((double)chain.kept_bytes, CS_QUANTITY_BYTES, 5).s);
        if (forward > 0)
            fprintf(context->out,
                    "estimated for %s, not measured: forward %.4f ms, backward %.4f ms\n",
                    how->device->title, milliseconds(forward), milliseconds(backward));
    }
    cs_net_chain_finish(&chain);
    return status;
}

static cs_status run_network(const cs_context *context, const cs_arguments *arguments,
                             const cs_workload *workload, const cs_net *net, cs_error *error)
{
    cs_accelerator device = {0};
    cs_net_options how;
    cs_status status = cs_workload_options(workload, &device, &how, error);
    if (status == CS_OK)
        status = print(context, arguments, workload, net, &how, error);
    cs_accelerator_finish(&device);
    return status;
}

static cs_status run(const cs_context *context, const cs_arguments *arguments, cs_error *error)
{
    static const cs_json_place place = {.file = "sim model"};
    cs_workload workload;
    cs_net net = {0};
    cJSON *parameters = cJSON_CreateObject();
    cs_status status =
        parameters ? read_workload(arguments, &workload, error) : cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_arguments_parameters(arguments, parameters, error);
    if (status == CS_OK) {
        workload.parameters = parameters;
        status = cs_workload_network(&workload, &place, &net, error);
    }
    if (status == CS_OK && !cs_arguments_value(arguments, "precision"))
        cs_workload_take_precision(&workload, &net);
    if (status == CS_OK)
        status = run_network(context, arguments, &workload, &net, error);
    cs_net_finish(&net);
    cJSON_Delete(parameters);
    return status;
}

const cs_command cs_command_model = {
    .name = "model",
    .words = "NAME|CONFIG.json",
    .min_words = 1,
    .max_words = 1,
    .names = {"models"},
    .summary = "build a model from an architecture, with estimated times",
    .doc =
        "Builds the network of that name (sim list models), or of the config.json "
        "of a Hugging Face transformers model. Prints its chain of layers: "
        "parameters, multiply-accumulates, the sizes that each layer passes on and keeps for "
        "its backward, and estimated times.\n\n"
        "--output writes the chain to a model file (docs/reference/model-file.md). Times come "
        "from a roofline with the device's description (facts/devices/): they are estimates, not "
        "measurements. --compare prints them next to a profile in PipeDream's format.",
    .options = options,
    .run = run,
};
