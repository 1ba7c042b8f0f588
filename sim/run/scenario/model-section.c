#include "sim/run/scenario/sections.h"

#include "sim/base/file.h"
#include "sim/base/text.h"

#include <stdio.h>
#include <stdlib.h>

const cs_optimizer cs_optimizers[] = {{"sgd", 0},
                                      {"momentum", 1},
                                      {"adam", 2},
                                      {"muon", 1, .other_ratio = 2},
                                      {"none", 0, .is_none = true}};

static const char *const gradient_names[] = {"weights", "fp32", NULL};

static const char *const main_names[] = {"fp32", "none", NULL};

static const char *const state_names[] = {"fp32", "bf16", "fp8", NULL};

static const uint32_t state_bytes[] = {4, 2, 1}; /* in the same order */

cs_optimizer_storage cs_model_section_storage(const cs_model_section *section)
{
    return (cs_optimizer_storage){.state_bytes = state_bytes[section->states],
                                  .no_main = section->main_weights != 0};
}

static const char *const optimizer_names[] = {"sgd", "momentum", "adam", "muon", "none", NULL};

const cs_field cs_scenario_model_fields[] = {
    {"file", CS_FIELD_TEXT, offsetof(cs_model_section, file), .fallback = "",
     .doc = "a model file (docs/reference/model-file.md), its path relative to the scenario"},
    {"uniform", CS_FIELD_OBJECT, offsetof(cs_model_section, uniform), .fallback = "",
     .of = cs_scenario_uniform_fields, .size = sizeof(cs_uniform_section),
     .doc = "instead of a file: a chain of equal layers", .shape = "{uniform}"},
    {"inline", CS_FIELD_JSON, offsetof(cs_model_section, in_place), .fallback = "",
     .doc = "instead of a file: the contents of a model file", .shape = "{model file}"},
    {"batch_size", CS_FIELD_COUNT, offsetof(cs_model_section, batch_size), .fallback = "0",
     .doc = "samples per mini-batch; times and activations scale linearly from the model's own "
            "batch size; 0: a micro-batch has that batch size; required for a named model"},
    {"optimizer", CS_FIELD_CHOICE, offsetof(cs_model_section, optimizer), .fallback = "sgd",
     .choices = optimizer_names,
     .doc = "optimizer; sgd: no states; momentum: one value per weight; adam: two values per "
            "weight; muon: one value per weight of a matrix, and adam for all other weights; none: "
            "weights are not updated"},
    {"newton_schulz_steps", CS_FIELD_COUNT, offsetof(cs_model_section, newton_schulz_steps),
     .fallback = "", .min = 1, .max = 1000,
     .doc = "for a named model with the optimizer muon: Newton-Schulz iterations per matrix; "
            "default: 5"},
    {"muon_tensor", CS_FIELD_CHOICE, offsetof(cs_model_section, muon_tensor),
     .fallback = "blockwise", .choices = cs_muon_tensor_names,
     .doc = "for a named model with the optimizer muon and tensor parallelism; blockwise: a device "
            "orthogonalises its part of a matrix independently; duplicated: the whole matrix, "
            "which it gathers; distributed: its part of the whole matrix, with an all-reduce per "
            "iteration"},
    {"gradients", CS_FIELD_CHOICE, offsetof(cs_model_section, gradients), .fallback = "weights",
     .choices = gradient_names,
     .doc = "type of the gradients when they are summed, stored and sent: the type of the weights, "
            "or always fp32"},
    {"main_weights", CS_FIELD_CHOICE, offsetof(cs_model_section, main_weights), .fallback = "fp32",
     .choices = main_names,
     .doc = "type of the master copy that the optimizer updates, if the weights are narrower; "
            "none: it updates the weights themselves"},
    {"states", CS_FIELD_CHOICE, offsetof(cs_model_section, states), .fallback = "fp32",
     .choices = state_names, .doc = "type of the optimizer's states"},
    {0},
};

const cs_field cs_scenario_uniform_fields[] = {
    {"layers", CS_FIELD_COUNT, offsetof(cs_uniform_section, layers), .fallback = "0",
     .max = 1 << 20, .doc = "layers in the chain; 0: one per device of a pipeline"},
    {"forward", CS_FIELD_TIME, offsetof(cs_uniform_section, forward), .usual_max = 600,
     .doc = "forward of a layer for a micro-batch of any size"},
    {"backward", CS_FIELD_TIME, offsetof(cs_uniform_section, backward), .usual_max = 600,
     .doc = "backward of a layer for a micro-batch of any size"},
    {"update", CS_FIELD_TIME, offsetof(cs_uniform_section, update), .usual_max = 600,
     .fallback = "0 s", .doc = "update of a layer's weights, once per mini-batch"},
    {"weights", CS_FIELD_BYTES, offsetof(cs_uniform_section, weights), .fallback = "0 B",
     .doc = "weights of a layer"},
    {"activation", CS_FIELD_BYTES, offsetof(cs_uniform_section, activation), .fallback = "0 B",
     .doc = "output of a layer per micro-batch, and its saved activations"},
    {"workspace", CS_FIELD_BYTES, offsetof(cs_uniform_section, workspace), .fallback = "0 B",
     .doc = "memory that a layer needs only while it computes"},
    {0},
};

/* Refuses keys that only a named model has. */
static cs_status refuse_workload(const cJSON *value, const cs_json_place *model, cs_error *error)
{
    cs_status status = CS_OK;
    for (const cs_field *field = cs_workload_fields; field->name; field++) {
        cs_json_place key = {.up = model, .key = field->name};
        if (cs_json_member(value, field->name))
            status =
                cs_json_invalid(&key, error,
                                "must be left out: this model has its own times and sizes; the "
                                "key requires \"name\"");
    }
    return status;
}

/* Checks the device here, where its place is known. `precision_of_file`: the precision is from the
 * network's config.json. */
static cs_status check_device(const cs_json_place *model, bool has_costs, bool precision_of_file,
                              cs_model_section *section, cs_error *error)
{
    const cs_workload *workload = &section->workload;
    cs_json_place place = {.up = model, .key = "device"};
    cs_accelerator device = {0};
    cs_error why;
    cs_error_init(&why);
    if (!workload->device && has_costs)
        return CS_OK; /* unmeasured times are reported later */
    if (!workload->device)
        return cs_json_invalid(&place, error,
                               "must be given for a named model: one of `sim list devices`");
    cs_status status = cs_accelerator_load(workload->device, workload->from, &device, &why);
    if (status == CS_OK)
        status = cs_accelerator_check(&device, (cs_precision)workload->precision, &why);
    section->device = cs_accelerator_facts(&device);
    cs_accelerator_finish(&device);
    if (status == CS_NO_MEMORY)
        return cs_error_no_memory(error);
    if (status == CS_OK)
        return CS_OK;
    if (precision_of_file && why.count == 1)
        return cs_json_invalid(&place, error,
                               "%s (torch_dtype of /model/name, unless /model/precision is given)",
                               why.text);
    (void)cs_json_pass_on(&place, &why, error);
    return CS_INVALID;
}

/* Builds the network now, so that its errors are reported with all others. Its times have to wait
 * for the size of a micro-batch. */
static cs_status load_named(const cJSON *value, const cs_json_place *model, bool has_costs,
                            cs_model_section *section, cs_net *net, cs_error *error)
{
    cs_workload *workload = &section->workload;
    const bool has_precision = cs_json_member(value, "precision");
    const cs_status network = cs_workload_network(workload, model, net, error);
    if (network == CS_OK && !has_precision)
        cs_workload_take_precision(workload, net);
    const cs_status device =
        check_device(model, has_costs, net->has_precision && !has_precision, section, error);
    return network == CS_OK ? device : network;
}

static cs_status read_named(const cJSON *value, const cs_json_place *model, bool has_costs,
                            cs_model_section *section, cs_loaded *loaded, cs_error *error)
{
    const cs_json_place batch = {.up = model, .key = "batch_size"};
    cs_workload *workload = &section->workload;
    cs_status status = CS_OK;
    const char *called = workload->device ? cs_facts_find(&cs_device_kind, workload->device) : NULL;
    workload->device = called ? called : workload->device;
    workload->from = model->up->file;
    workload->float_gradients = section->gradients != 0;
    workload->storage = cs_model_section_storage(section);
    const cs_optimizer *optimizer = &cs_optimizers[section->optimizer];
    const bool muon = optimizer->other_ratio > 0,
               given = section->newton_schulz_steps != CS_COUNT_LEFT_OUT;
    workload->optimizer_states = muon ? optimizer->other_ratio : optimizer->state_ratio;
    workload->muon.tensor = section->muon_tensor;
    workload->muon.steps = muon ? (given ? section->newton_schulz_steps : CS_MUON_STEPS) : 0;
    if (section->batch_size == 0)
        status = cs_json_invalid(&batch, error, "must be >= 1 for a named model (got %s)",
                                 cs_json_member(value, "batch_size") ? "0" : "none");
    if (loaded->net_is_known) {
        if (!cs_json_member(value, "precision"))
            cs_workload_take_precision(&section->workload, &loaded->net);
        section->device = loaded->device;
        return status;
    }
    const cs_status network = load_named(value, model, has_costs, section, &loaded->net, error);
    return status == CS_OK ? network : status;
}

cs_status cs_model_section_read(const cJSON *value, const cs_json_place *root, bool has_costs,
                                cs_arena *arena, cs_model_section *section, cs_loaded *loaded,
                                cs_error *error)
{
    const cs_json_place place = {.up = root, .key = "model"};
    const cs_json_place in_place = {.up = &place, .key = "inline"};
    const cs_field *const tables[] = {cs_scenario_model_fields, cs_workload_fields, NULL};
    void *const outs[] = {section, &section->workload};
    CS_TRY(cs_field_read(value, &place, tables, outs, arena, error));
    /* Report which sources were given. */
    static const char *const sources[] = {"file", "name", "uniform", "inline"};
    char got[64] = "";
    size_t used = 0, n = 0;
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        if (!cs_json_member(value, sources[i]))
            continue;
        used += (size_t)cs_text_format(got + used, sizeof(got) - used, "%s\"%s\"",
                                       n > 0 ? " and " : "", sources[i]);
        n++;
    }
    if (n != 1)
        return cs_json_invalid(&place, error,
                               "must have exactly one of \"file\", \"name\", \"uniform\" and "
                               "\"inline\" (got %s)",
                               n > 0 ? got : "none");
    if (section->workload.name)
        return read_named(value, &place, has_costs, section, loaded, error);
    CS_TRY(refuse_workload(value, &place, error));
    if (section->uniform)
        return CS_OK;
    if (section->in_place)
        return cs_model_read(section->in_place, &in_place, &loaded->model, error);
    const cs_json_place file_place = {.up = &place, .key = "file"};
    cs_error why;
    char *path = cs_file_relative(root->file, section->file);
    if (!path)
        return cs_error_no_memory(error);
    cs_error_init(&why);
    cs_status status = cs_model_load(path, &loaded->model, &why);
    free(path);
    return status == CS_OK ? CS_OK : cs_json_pass_on(&file_place, &why, error);
}
