/* Model files: whatever is read can be written and read again, to the same JSON. */
#include "sim/model/model.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static cs_status read_model(const char *text, size_t length, cs_model *model, cs_error *error)
{
    cJSON *root;
    cs_error_init(error);
    cs_status status = cs_json_parse("m.json", text, length, &root, error);
    if (status != CS_OK)
        return status;
    const cs_json_place place = {.file = "m.json"};
    status = cs_model_read(root, &place, model, error);
    cJSON_Delete(root);
    return status;
}

static char *write_model(const cs_model *model)
{
    cJSON *json = cs_model_json(model);
    char *text = json ? cs_json_print(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        abort();
    return text;
}

static void check_round_trip(const cs_model *model)
{
    cs_model again;
    cs_error error;
    char *text = write_model(model);
    if (read_model(text, strlen(text), &again, &error) != CS_OK ||
        again.n_layers != model->n_layers)
        abort();
    free(text);
    cs_model_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cs_model model;
    cs_error error;
    if (read_model((const char *)data, size, &model, &error) != CS_OK) {
        if (error.count == 0)
            abort();
        return 0;
    }
    cs_layer_sum sum;
    for (uint32_t i = 0; i < model.n_layers; i++) {
        cs_status status = cs_model_sum(&model, i, model.n_layers, i, &sum, NULL);
        if (status != CS_OK && status != CS_OVERFLOW)
            abort();
    }
    check_round_trip(&model);
    cs_model_finish(&model);
    return 0;
}
