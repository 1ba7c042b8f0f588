#include "sim/scenario/sections.h"

#include "sim/base/file.h"

#include <stdio.h>
#include <stdlib.h>

const cs_optimizer cs_optimizers[] = {{"sgd", 0}, {"momentum", 1}, {"adam", 2}};

static const char *const gradient_names[] = {"weights", "fp32", NULL};

static const char *const optimizer_names[] = {"sgd", "momentum", "adam", NULL};

const cs_field cs_scenario_model_fields[] = {
    {"file", CS_FIELD_TEXT, offsetof(cs_model_section, file), .fallback = "",
     .doc = "a model file (docs/reference/model-file.md); its path is relative to the scenario"},
    {"uniform", CS_FIELD_JSON, offsetof(cs_model_section, uniform), .fallback = "",
     .doc = "instead of a file: a chain of equal layers", .shape = "{uniform}"},
    {"inline", CS_FIELD_JSON, offsetof(cs_model_section, in_place), .fallback = "",
     .doc = "instead of a file: its contents", .shape = "{model file}"},
    {"batch_size", CS_FIELD_COUNT, offsetof(cs_model_section, batch_size), .fallback = "0",
     .doc = "samples per mini-batch; times and activations scale linearly from the model's own; 0: "
            "a micro-batch has the batch size of the model; required of a named model"},
    {"optimizer", CS_FIELD_CHOICE, offsetof(cs_model_section, optimizer), .fallback = "sgd",
     .choices = optimizer_names,
     .doc = "its states: no, one or two values per weight, besides weights and gradients"},
    {"gradients", CS_FIELD_CHOICE, offsetof(cs_model_section, gradients), .fallback = "weights",
     .choices = gradient_names,
     .doc = "type in which gradients are summed, kept and sent: that of the weights, or fp32 (4 "
            "bytes) whatever that is"},
    {0},
};

const cs_field cs_scenario_uniform_fields[] = {
    {"layers", CS_FIELD_COUNT, offsetof(cs_uniform_section, layers), .fallback = "0",
     .max = 1 << 20, .doc = "layers in the chain; 0: one per device of a pipeline"},
    {"forward", CS_FIELD_TIME, offsetof(cs_uniform_section, forward),
     .doc = "forward of a layer for a micro-batch of any size"},
    {"backward", CS_FIELD_TIME, offsetof(cs_uniform_section, backward),
     .doc = "backward of a layer for a micro-batch of any size"},
    {"update", CS_FIELD_TIME, offsetof(cs_uniform_section, update), .fallback = "0 s",
     .doc = "update of a layer's weights, once per mini-batch"},
    {"weights", CS_FIELD_BYTES, offsetof(cs_uniform_section, weights), .fallback = "0 B",
     .doc = "weights of a layer"},
    {"activation", CS_FIELD_BYTES, offsetof(cs_uniform_section, activation), .fallback = "0 B",
     .doc = "output of a layer, per micro-batch, which it also keeps for its backward"},
    {"workspace", CS_FIELD_BYTES, offsetof(cs_uniform_section, workspace), .fallback = "0 B",
     .doc = "memory that a layer needs only while it computes"},
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

static cs_status load_file(cs_draft *draft, const cs_json_place *model, cs_error *error)
{
    cs_json_place place = {.up = model, .key = "file"};
    cs_error why;
    char *path = cs_file_relative(draft->path, draft->model.file);
    if (!path)
        return cs_error_no_memory(error);
    cs_error_init(&why);
    cs_status status = cs_model_load(path, &draft->scenario->model, &why);
    free(path);
    return status == CS_OK ? CS_OK : cs_json_pass_on(&place, &why, error);
}

/* What only a named model has. */
static cs_status refuse_workload(const cs_draft *draft, const cs_json_place *model, cs_error *error)
{
    cs_status status = CS_OK;
    for (const cs_field *field = cs_workload_fields; field->name; field++) {
        cs_json_place key = {.up = model, .key = field->name};
        if (cs_json_member(draft->top.model, field->name))
            status = cs_json_invalid(&key, error, "goes with the \"name\" of a model only");
    }
    return status;
}

/* Finds what is wrong with the device while the place is known. */
static cs_status check_device(cs_draft *draft, const cs_json_place *model, cs_error *error)
{
    const cs_workload *workload = &draft->model.workload;
    cs_json_place place = {.up = model, .key = "device"};
    cs_accelerator device = {0};
    cs_error why;
    cs_error_init(&why);
    if (!workload->device && draft->top.costs)
        return CS_OK; /* what is not measured is told once it is known */
    if (!workload->device)
        return cs_json_invalid(&place, error,
                               "must be given for a named model: one of `sim list devices`");
    cs_status status = cs_accelerator_load(workload->device, workload->from, &device, &why);
    if (status == CS_OK)
        status = cs_accelerator_check(&device, (cs_precision)workload->precision, &why);
    draft->model.device_memory = device.memory;
    cs_accelerator_finish(&device);
    const bool from_file =
        draft->model.net.has_precision && !cs_json_member(draft->top.model, "precision");
    return status == CS_OK ? CS_OK
                           : cs_json_invalid(&place, error, "%s%s", why.text,
                                             from_file ? " (torch_dtype of /model/name, unless "
                                                         "/model/precision says another)"
                                                       : "");
}

/* The network is built at once, so that what is wrong with it is reported with everything else; its
 * times wait until the size of a micro-batch is known. */
static cs_status read_named(cs_draft *draft, const cs_json_place *model, cs_error *error)
{
    cs_json_place batch = {.up = model, .key = "batch_size"};
    cs_workload *workload = &draft->model.workload;
    cs_status status = CS_OK;
    workload->from = draft->path;
    workload->costs = draft->costs.n_compute > 0 ? &draft->measured : NULL;
    workload->float_gradients = draft->model.gradients != 0;
    workload->optimizer_states = cs_optimizers[draft->model.optimizer].state_ratio;
    if (draft->model.batch_size == 0)
        status = cs_json_invalid(&batch, error, "must be >= 1 for a named model (got %s)",
                                 cs_json_member(draft->top.model, "batch_size") ? "0" : "none");
    cs_status network = cs_workload_network(workload, model, &draft->model.net, error);
    if (network == CS_OK && !cs_json_member(draft->top.model, "precision"))
        cs_workload_take_precision(workload, &draft->model.net);
    cs_status device = check_device(draft, model, error);
    if (status == CS_OK)
        status = network;
    return status == CS_OK ? device : status;
}

/* The samples that a device computes at once, which the times are estimated for: job.c checks that
 * the division leaves no rest. */
static uint32_t micro_batch(const cs_draft *draft)
{
    const cs_schedule *kind = draft->schedule.kind;
    uint64_t parts = kind->micro_batches(draft->schedule.params);
    if (kind->layout == CS_LAYOUT_REPLICATED && draft->platform.devices > 0)
        parts *= draft->platform.devices;
    return draft->model.batch_size > parts ? (uint32_t)(draft->model.batch_size / parts) : 1;
}

cs_status cs_draft_build_model(cs_draft *draft, cs_error *error)
{
    cs_workload *workload = &draft->model.workload;
    if (!workload->name)
        return CS_OK;
    workload->batch_size = micro_batch(draft);
    return cs_workload_model(workload, &draft->model.net, &draft->scenario->model, error);
}

cs_status cs_draft_price(cs_draft *draft, uint32_t samples, cs_error *error)
{
    if (!draft->model.workload.name)
        return CS_OK;
    CS_TRY(cs_workload_add_batch(&draft->model.workload, &draft->model.net, samples,
                                 &draft->scenario->model, error));
    return cs_draft_check_missing(draft, error);
}

/* Says what was given. */
static cs_status check_source(const cs_draft *draft, const cs_json_place *model, cs_error *error)
{
    static const char *const sources[] = {"file", "name", "uniform", "inline"};
    char got[64] = "";
    size_t used = 0, n = 0;
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        if (!cs_json_member(draft->top.model, sources[i]))
            continue;
        used += (size_t)snprintf(got + used, sizeof(got) - used, "%s\"%s\"", n > 0 ? " and " : "",
                                 sources[i]);
        n++;
    }
    if (n == 1)
        return CS_OK;
    return cs_json_invalid(model, error,
                           "must have exactly one of \"file\", \"name\", \"uniform\" and "
                           "\"inline\" (got %s)",
                           n > 0 ? got : "none");
}

cs_status cs_draft_read_model(cs_draft *draft, cs_error *error)
{
    cs_json_place place = {.up = &draft->root, .key = "model"};
    cs_model_section *section = &draft->model;
    const cs_field *const tables[] = {cs_scenario_model_fields, cs_workload_fields, NULL};
    void *const outs[] = {section, &section->workload};
    cs_status status =
        cs_field_read(draft->top.model, &place, tables, outs, &draft->scenario->arena, error);
    if (status != CS_OK)
        return status;
    CS_TRY(check_source(draft, &place, error));
    if (section->workload.name)
        return read_named(draft, &place, error);
    CS_TRY(refuse_workload(draft, &place, error));
    if (section->uniform)
        return read_uniform(draft, &place, error);
    return section->in_place ? read_inline(draft, &place, error) : load_file(draft, &place, error);
}
