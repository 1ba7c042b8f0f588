#include "sim/scenario/sections.h"

#include "sim/base/file.h"

#include <stdlib.h>

const cs_optimizer cs_optimizers[] = {{"sgd", 0}, {"momentum", 1}, {"adam", 2}};

static const char *const optimizer_names[] = {"sgd", "momentum", "adam", NULL};

const cs_field cs_scenario_model_fields[] = {
    {"file", CS_FIELD_TEXT, offsetof(cs_model_section, file), .fallback = "",
     .doc = "model file (scenarios/model-format.md), relative to the scenario"},
    {"uniform", CS_FIELD_JSON, offsetof(cs_model_section, uniform), .fallback = "",
     .doc = "instead of a file: a chain of equal layers", .shape = "{uniform}"},
    {"inline", CS_FIELD_JSON, offsetof(cs_model_section, in_place), .fallback = "",
     .doc = "instead of a file: what would stand in it", .shape = "{model file}"},
    {"batch_size", CS_FIELD_COUNT, offsetof(cs_model_section, batch_size), .fallback = "0",
     .doc = "samples per mini-batch; times and activations scale linearly from the model's own; 0: "
            "so that a micro-batch is what the model was made for"},
    {"optimizer", CS_FIELD_CHOICE, offsetof(cs_model_section, optimizer), .fallback = "sgd",
     .choices = optimizer_names,
     .doc = "states kept besides weights and gradients: none, one or two times the weights"},
    {0},
};

const cs_field cs_scenario_uniform_fields[] = {
    {"layers", CS_FIELD_COUNT, offsetof(cs_uniform_section, layers), .fallback = "0",
     .max = 1 << 20, .doc = "layers in the chain; 0: one per device of a pipeline"},
    {"forward", CS_FIELD_TIME, offsetof(cs_uniform_section, forward),
     .doc = "of a layer, per micro-batch"},
    {"backward", CS_FIELD_TIME, offsetof(cs_uniform_section, backward),
     .doc = "of a layer, per micro-batch"},
    {"update", CS_FIELD_TIME, offsetof(cs_uniform_section, update), .fallback = "0 s",
     .doc = "of a layer's weights, per mini-batch"},
    {"weights", CS_FIELD_BYTES, offsetof(cs_uniform_section, weights), .fallback = "0 B",
     .doc = "of a layer"},
    {"activation", CS_FIELD_BYTES, offsetof(cs_uniform_section, activation), .fallback = "0 B",
     .doc = "what a layer hands on, and what it keeps for its backward, per micro-batch"},
    {"workspace", CS_FIELD_BYTES, offsetof(cs_uniform_section, workspace), .fallback = "0 B",
     .doc = "what a layer needs while it computes"},
    {0},
};

static cs_status read_uniform(cs_draft *draft, const cs_json_place *model, cs_error *error)
{
    cs_json_place place = {.up = model, .key = "uniform"};
    cs_uniform_section *uniform = &draft->uniform;
    cs_status status = cs_field_read(draft->model.uniform, &place,
                                     (const cs_field *const[]){cs_scenario_uniform_fields, NULL},
                                     (void *const[]){uniform}, &draft->scenario->arena, error);
    if (status != CS_OK || uniform->layers == 0)
        return status;
    return cs_draft_build_uniform(draft, uniform->layers, error);
}

cs_status cs_draft_build_uniform(cs_draft *draft, uint32_t layers, cs_error *error)
{
    cs_uniform_section *uniform = &draft->uniform;
    uniform->layers = layers;
    cs_layer layer = {.forward = uniform->forward,
                      .backward_input = uniform->backward / 2,
                      .backward_weight = uniform->backward - uniform->backward / 2,
                      .update = uniform->update,
                      .weight_bytes = uniform->weights,
                      .output_bytes = uniform->activation,
                      .kept_bytes = uniform->activation,
                      .workspace_bytes = uniform->workspace};
    return cs_model_uniform(uniform->layers, &layer, &draft->scenario->model, error);
}

static cs_status read_inline(cs_draft *draft, const cs_json_place *model, cs_error *error)
{
    cs_json_place place = {.up = model, .key = "inline"};
    return cs_model_read(draft->model.in_place, &place, &draft->scenario->model, error);
}

static cs_status load_file(cs_draft *draft, cs_error *error)
{
    char *path = cs_file_relative(draft->path, draft->model.file);
    if (!path)
        return cs_error_no_memory(error);
    cs_status status = cs_model_load(path, &draft->scenario->model, error);
    free(path);
    return status;
}

cs_status cs_draft_read_model(cs_draft *draft, cs_error *error)
{
    cs_json_place place = {.up = &draft->root, .key = "model"};
    cs_status status = cs_field_read(
        draft->top.model, &place, (const cs_field *const[]){cs_scenario_model_fields, NULL},
        (void *const[]){&draft->model}, &draft->scenario->arena, error);
    if (status != CS_OK)
        return status;
    const cs_model_section *model = &draft->model;
    if ((model->file != NULL) + (model->uniform != NULL) + (model->in_place != NULL) != 1)
        return cs_json_invalid(&place, error,
                               "must have one of \"file\", \"uniform\" and \"inline\"");
    if (model->uniform)
        return read_uniform(draft, &place, error);
    return model->in_place ? read_inline(draft, &place, error) : load_file(draft, error);
}
