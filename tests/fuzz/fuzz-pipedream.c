/* PipeDream profiles: whatever is read is a valid model, and no time is lost on the way. */
#include "sim/model/foreign/pipedream.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const cs_pipedream_options options = {
    .name = "net", .batch_size = 1, .hardware = "none", .date = "2026-11-21"};

static cs_status reread(const cs_model *model, cs_model *again, cs_error *error)
{
    const cs_json_place place = {.file = "m.json"};
    cJSON *json = cs_model_json(model);
    if (!json)
        abort();
    cs_status status = cs_model_read(json, &place, again, error);
    cJSON_Delete(json);
    return status;
}

/* Names are not empty and unique: the reader of model files would say. Its largest numbers are a
 * little smaller. */
static void check_model(const cs_model *model)
{
    cs_model again;
    cs_error error;
    cs_layer_sum sum;
    const int64_t largest = INT64_C(1) << 53;
    cs_error_init(&error);
    if (cs_model_sum(model, 0, model->n_layers, 1, &sum, NULL) != CS_OK || sum.forward > largest ||
        sum.backward_input > largest || sum.backward_weight > largest ||
        sum.weight_bytes > largest || sum.kept_bytes > largest || sum.input_bytes > largest)
        return;
    for (uint32_t i = 0; i < model->n_layers; i++)
        if (model->layers[i].output_bytes > largest)
            return;
    if (reread(model, &again, &error) != CS_OK)
        abort();
    cs_model_finish(&again);
}

static void check_report(const cs_model *model, const cs_pipedream_report *report)
{
    uint32_t nodes = report->n_inputs + report->n_layers - report->n_groups;
    for (uint32_t i = 0; i < report->n_groups; i++) {
        const cs_pipedream_group *group = &report->groups[i];
        nodes += group->n_nodes;
        if (group->n_nodes < 2 || group->layer >= model->n_layers || strlen(group->first) == 0 ||
            strlen(group->last) == 0)
            abort();
    }
    if (nodes != report->n_nodes || report->n_layers != model->n_layers)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cs_model model;
    cs_pipedream_report report;
    cs_error error;
    cs_error_init(&error);
    cs_status status = cs_pipedream_parse("graph.txt", (const char *)data, size, &options, &model,
                                          &report, &error);
    if (status != CS_OK) {
        if (error.count == 0)
            abort();
        return 0;
    }
    check_report(&model, &report);
    check_model(&model);
    cs_model_finish(&model);
    return 0;
}
