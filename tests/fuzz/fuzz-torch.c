/* Traces of PyTorch's profiler, also in gzip: whatever is read is a valid model. */
#include "sim/model/foreign/torch-trace.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const cs_torch_options options[] = {
    {.name = "net", .date = "2026-11-21"},
    {.name = "net", .date = "2026-11-21", .batch_size = 16, .times_only = true},
};

static void check_model(const cs_model *model, const cs_torch_report *report)
{
    if (model->n_layers == 0 || model->n_layers != report->n_layers || model->batch_size == 0)
        abort();
    for (uint32_t i = 0; i < model->n_layers; i++) {
        const cs_layer *layer = &model->layers[i];
        if (!layer->name || layer->forward < 0 || layer->backward_input < 0 ||
            layer->backward_weight < 0 || layer->weight_bytes < 0 || layer->output_bytes < 0 ||
            layer->kept_bytes < 0)
            abort();
    }
}

static void parse(const uint8_t *data, size_t size, const cs_torch_options *how)
{
    cs_model model;
    cs_torch_report report;
    cs_error error;
    cs_error_init(&error);
    cs_status status =
        cs_torch_parse("t.json", (const char *)data, size, how, &model, &report, &error);
    if (status != CS_OK) {
        if (error.count == 0)
            abort();
        return;
    }
    check_model(&model, &report);
    cs_model_finish(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse(data, size, &options[0]);
    parse(data, size, &options[1]);
    return 0;
}
