#include "sim/run/scenario/workload.h"

#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/model/foreign/huggingface.h"
#include "sim/model/net-file.h"
#include "sim/model/zoo/zoo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cs_field operator_field = {"recompute_operators", CS_FIELD_TEXT};

const cs_field cs_workload_fields[] = {
    {"name", CS_FIELD_TEXT, offsetof(cs_workload, name), .fallback = "",
     .doc = "one of `sim list models`, a config.json of Hugging Face transformers, or a model file "
            "with operators; paths are relative to the scenario"},
    {"parameters", CS_FIELD_JSON, offsetof(cs_workload, parameters), .fallback = "",
     .doc = "parameters of the network (`sim list models` describes them)",
     .shape = "{parameter: value}"},
    {"device", CS_FIELD_TEXT, offsetof(cs_workload, device), .fallback = "",
     .doc = "device whose times are estimated: one of `sim list devices` or a device file; "
            "required for a named model"},
    {"precision", CS_FIELD_CHOICE, offsetof(cs_workload, precision), .fallback = "fp32",
     .choices = cs_precision_names,
     .doc = "type of the model's weights and computations, which the device must support; with "
            "types narrower than fp32 and tf32, master weights and optimizer states are fp32; fp8, "
            "mxfp8 and nvfp4 apply to the operands of linear layers, and everything else is bf16; "
            "default for a file: its torch_dtype, dtype or precision"},
    {"granularity", CS_FIELD_CHOICE, offsetof(cs_workload, granularity), .fallback = "layer",
     .choices = cs_granularity_names,
     .doc = "size of the layers in the chain; layer: as small as possible; block: a block of the "
            "network"},
    {"recompute", CS_FIELD_BOOL, offsetof(cs_workload, recompute), .fallback = "false",
     .doc = "full activation recomputation: every layer saves only its input and repeats its "
            "forward before its backward, except the last block, which ends with the loss (as in "
            "Megatron-LM, torchtitan, transformers and PyTorch's checkpoint_sequential)"},
    {"recompute_operators", CS_FIELD_LIST, offsetof(cs_workload, recompute_operators),
     .fallback = "", .of = &operator_field,
     .doc = "selective activation recomputation: operators that save only their inputs and repeat "
            "their forward before their backward; names, or parts of names between dots, like "
            "attention, mlp, layers.3 (`sim model --json` lists them)",
     .shape = "[name, ...]"},
    {"discard_operators", CS_FIELD_LIST, offsetof(cs_workload, discard_operators), .fallback = "",
     .of = &operator_field,
     .doc = "recomputed operators whose results are not saved for other operators either, but "
            "recomputed before the backward of those operators (Megatron Core's layernorm, moe_act "
            "and mla_up_proj; PyTorch's selective checkpointing)",
     .shape = "[name, ...]"},
    {"lora", CS_FIELD_OBJECT, offsetof(cs_workload, lora), .fallback = "", .of = cs_adapter_fields,
     .size = sizeof(cs_adapters),
     .doc = "trains low-rank adapters of some linear layers; all other weights are frozen",
     .shape = "{\"rank\", \"targets\"}"},
    {"measured", CS_FIELD_TEXT, offsetof(cs_workload, measured), .fallback = "",
     .doc = "a model file whose times replace the estimates of the layers of the same name"},
    {0},
};

static char *path_of(const cs_workload *workload, const char *name)
{
    return workload->from ? cs_file_relative(workload->from, name) : strdup(name);
}

/* Reads a model, a network with operators, or a config.json of transformers. */
static cs_status read_described(const cs_workload *workload, const cJSON *root, const char *path,
                                const cs_json_place *parameters, cs_net *net, cs_error *error)
{
    const cs_json_place place = {.file = path};
    if (cs_zoo_is_model(root))
        return cs_zoo_build(workload->name, workload->from, workload->parameters, parameters, net,
                            error);
    if (!cs_net_is_file(root))
        return cs_huggingface_read(root, path, workload->parameters, parameters, net, error);
    if (cJSON_GetArraySize(workload->parameters) > 0)
        return cs_json_invalid(parameters, error,
                               "must be left out: \"%s\" has operators, which have no parameters",
                               workload->name);
    return cs_net_read(root, &place, net, error);
}

static cs_status load_described(const cs_workload *workload, const cs_json_place *parameters,
                                cs_net *net, cs_error *error)
{
    char *path = path_of(workload, workload->name);
    cJSON *root = NULL;
    cs_status status = path ? cs_json_load(path, &root, error) : cs_error_no_memory(error);
    if (status == CS_OK)
        status = read_described(workload, root, path, parameters, net, error);
    cJSON_Delete(root);
    free(path);
    return status;
}

static cs_status build_network(const cs_workload *workload, const cs_json_place *place, cs_net *net,
                               cs_error *error)
{
    cs_json_place parameters = {.up = place, .key = "parameters"};
    cs_json_place name = {.up = place, .key = "name"};
    if (cs_facts_is_file(workload->name))
        return load_described(workload, &parameters, net, error);
    const cs_zoo_entry *family;
    cs_arena arena;
    cs_error why;
    cs_arena_init(&arena);
    cs_error_init(&why);
    const cs_status found = cs_zoo_find(workload->name, &arena, &family, &why);
    cs_arena_finish(&arena);
    if (found == CS_NO_MEMORY || (found != CS_OK && !cs_facts_find(&cs_model_kind, workload->name)))
        return cs_json_pass_on(&name, &why, error);
    return cs_zoo_build(workload->name, NULL, workload->parameters, &parameters, net, error);
}

cs_status cs_workload_network(const cs_workload *workload, const cs_json_place *place, cs_net *net,
                              cs_error *error)
{
    const cs_json_place lora = {.up = place, .key = "lora"};
    cs_net made;
    CS_TRY(build_network(workload, place, &made, error));
    cs_status status = workload->lora ? cs_net_adapt(&made, workload->lora, &lora, error) : CS_OK;
    if (status != CS_OK) {
        cs_net_finish(&made);
        return status;
    }
    *net = made;
    return CS_OK;
}

void cs_workload_take_precision(cs_workload *workload, const cs_net *net)
{
    if (net->has_precision)
        workload->precision = net->precision;
}

cs_status cs_workload_options(const cs_workload *workload, cs_accelerator *device,
                              cs_net_options *options, cs_error *error)
{
    cs_status status = CS_OK;
    if (workload->device)
        status = cs_accelerator_load(workload->device, workload->from, device, error);
    else
        cs_accelerator_none(device);
    if (status != CS_OK)
        return status;
    *options = (cs_net_options){
        .batch_size = workload->batch_size,
        .precision = (cs_precision)workload->precision,
        .optimizer_states = workload->optimizer_states,
        .muon = workload->muon,
        .float_gradients = workload->float_gradients,
        .storage = workload->storage,
        .kept = workload->kept,
        .tapes = workload->tapes,
        .granularity = (cs_granularity)workload->granularity,
        .recompute = workload->recompute,
        .early_stop = workload->early_stop,
        .recompute_ops = workload->recompute_operators.items,
        .n_recompute_ops = workload->recompute_operators.n,
        .discard_ops = workload->discard_operators.items,
        .n_discard_ops = workload->discard_operators.n,
        .offload = workload->offloads ? &workload->offload : NULL,
        .device = device,
        .kernels = workload->kernels,
        .measured = workload->costs,
        .split = workload->split,
        .source = workload->name,
        .date = workload->date,
    };
    return CS_OK;
}

/* ---- measured times ---- */

static const cs_layer *find_layer(const cs_model *model, const char *name)
{
    for (uint32_t i = 0; i < model->n_layers; i++)
        if (strcmp(model->layers[i].name, name) == 0)
            return &model->layers[i];
    return NULL;
}

/* Sets the update time of a layer and scales the update times of its matrices, rounded down. */
static void take_update(cs_layer *layer, cs_time update)
{
    const double by = layer->update > 0 ? (double)update / (double)layer->update : 0;
    for (uint32_t i = 0; i < layer->n_matrices; i++)
        layer->matrices[i].update = (cs_time)floor(by * (double)layer->matrices[i].update);
    layer->update = update;
}

/* Scales a part's estimate by measured / estimated time of the whole. */
static cs_time part_of(cs_time part, cs_time estimated, cs_time measured)
{
    return estimated > 0 ? (cs_time)llround((double)part * ((double)measured / (double)estimated))
                         : part;
}

/* Takes the measured times of a layer, for the samples of its model. */
static cs_status take_layer(cs_layer *layer, const cs_model *measured, const cs_layer *from,
                            uint32_t samples, cs_error *error)
{
    cs_layer_sum sum;
    uint32_t i = (uint32_t)(from - measured->layers);
    CS_TRY(cs_model_sum(measured, i, i + 1, samples, &sum, error));
    layer->skipped = part_of(layer->skipped, layer->forward, sum.forward);
    layer->forward = sum.forward;
    layer->backward_input = sum.backward_input;
    layer->backward_weight = sum.backward_weight;
    layer->host = sum.host;
    if (sum.update > 0)
        take_update(layer, sum.update);
    layer->timing = "measured";
    return CS_OK;
}

cs_status cs_model_take_times(cs_model *model, const cs_model *measured, const char *origin,
                              uint32_t *n, cs_error *error)
{
    char text[512];
    uint32_t taken = 0;
    for (uint32_t i = 0; i < model->n_layers; i++) {
        const cs_layer *from = find_layer(measured, model->layers[i].name);
        if (!from)
            continue;
        CS_TRY(take_layer(&model->layers[i], measured, from, model->batch_size, error));
        taken++;
    }
    cs_text_format(text, sizeof(text), "%s; times of %u of %u layers measured: %.200s",
                   model->provenance.notes, taken, model->n_layers, origin);
    model->provenance.notes = cs_arena_copy(&model->arena, text);
    *n = taken;
    return model->provenance.notes ? CS_OK : cs_error_no_memory(error);
}

static void scale_layer(const cs_layer *estimated, const cs_layer *measured, cs_layer *part)
{
    cs_layer_piece *sum = &(cs_layer_piece){0};
    take_update(part, part_of(part->update, estimated->update, measured->update));
    for (uint32_t i = 0; i < part->n_pieces; i++) {
        cs_layer_piece *piece = &part->pieces[i];
        piece->forward = part_of(piece->forward, estimated->forward, measured->forward);
        piece->skipped = part_of(piece->skipped, estimated->forward, measured->forward);
        piece->backward_input =
            part_of(piece->backward_input, estimated->backward_input, measured->backward_input);
        piece->backward_weight =
            part_of(piece->backward_weight, estimated->backward_weight, measured->backward_weight);
        piece->host = (cs_host_times){0};
        sum->forward += piece->forward;
        sum->skipped += piece->skipped;
        sum->backward_input += piece->backward_input;
        sum->backward_weight += piece->backward_weight;
    }
    if (part->n_pieces == 0)
        *sum = (cs_layer_piece){
            .forward = part_of(part->forward, estimated->forward, measured->forward),
            .backward_input =
                part_of(part->backward_input, estimated->backward_input, measured->backward_input),
            .backward_weight = part_of(part->backward_weight, estimated->backward_weight,
                                       measured->backward_weight),
            .skipped = part_of(part->skipped, estimated->forward, measured->forward)};
    part->forward = sum->forward;
    part->skipped = sum->skipped;
    part->backward_input = sum->backward_input;
    part->backward_weight = sum->backward_weight;
    part->host = (cs_host_times){0};
    part->timing = measured->timing;
}

/* Takes measured times for one device's part of the model, in proportion to the estimates. */
static cs_status take_parts(const cs_workload *workload, const cs_net *net,
                            const cs_model *measured, const char *origin, uint32_t *n,
                            cs_model *model, cs_error *error)
{
    cs_workload whole = *workload;
    cs_model estimated = {0}, taken = {0};
    char text[512];
    whole.split = NULL;
    whole.measured = NULL;
    cs_status status = cs_workload_model(&whole, net, &estimated, error);
    if (status == CS_OK)
        status = cs_workload_model(&whole, net, &taken, error);
    if (status == CS_OK)
        status = cs_model_take_times(&taken, measured, origin, n, error);
    for (uint32_t i = 0; status == CS_OK && i < model->n_layers; i++)
        if (find_layer(measured, model->layers[i].name))
            scale_layer(&estimated.layers[i], &taken.layers[i], &model->layers[i]);
    if (status == CS_OK) {
        cs_text_format(text, sizeof(text), "%s, divided as the estimates are",
                       taken.provenance.notes);
        model->provenance.notes = cs_arena_copy(&model->arena, text);
        status = model->provenance.notes ? CS_OK : cs_error_no_memory(error);
    }
    cs_model_finish(&estimated);
    cs_model_finish(&taken);
    return status;
}

static cs_status take_measured(const cs_workload *workload, const cs_net *net, cs_model *model,
                               cs_error *error)
{
    cs_model measured = {0};
    uint32_t n = 0;
    char *path = path_of(workload, workload->measured);
    if (!path)
        return cs_error_no_memory(error);
    cs_status status = cs_model_load(path, &measured, error);
    if (status == CS_OK && workload->split)
        status = take_parts(workload, net, &measured, path, &n, model, error);
    else if (status == CS_OK)
        status = cs_model_take_times(model, &measured, path, &n, error);
    if (status == CS_OK && n == 0)
        status = cs_error_add(error, CS_INVALID,
                              "%s: has no layer of \"%s\" by name: its first layer is \"%s\", the "
                              "model's is \"%s\"",
                              path, model->name, measured.layers[0].name, model->layers[0].name);
    cs_model_finish(&measured);
    free(path);
    return status;
}

cs_status cs_workload_model(const cs_workload *workload, const cs_net *net, cs_model *model,
                            cs_error *error)
{
    cs_accelerator device = {0};
    cs_net_options options;
    cs_model made = {0};
    cs_status status = cs_workload_options(workload, &device, &options, error);
    if (status == CS_OK)
        status = cs_net_model(net, &options, &made, error);
    if (status == CS_OK && workload->measured)
        status = take_measured(workload, net, &made, error);
    cs_accelerator_finish(&device);
    if (status != CS_OK) {
        cs_model_finish(&made);
        return status;
    }
    *model = made;
    return CS_OK;
}

/* Moves the layers of `from` into a batch of `model`. */
static cs_status take_batch(cs_model *model, cs_model *from, cs_error *error)
{
    cs_model_batch *batches =
        cs_arena_alloc(&model->arena, model->n_batches + (size_t)1, sizeof(*batches));
    if (!batches)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < model->n_batches; i++)
        batches[i] = model->batches[i];
    batches[model->n_batches++] =
        (cs_model_batch){from->batch_size, from->input_bytes, from->layers};
    model->batches = batches;
    cs_arena_adopt(&model->arena, &from->arena);
    return CS_OK;
}

cs_status cs_workload_add_batch(const cs_workload *workload, const cs_net *net, uint32_t samples,
                                cs_model *model, cs_error *error)
{
    cs_workload other = *workload;
    cs_model made = {0};
    other.batch_size = samples;
    if (cs_model_knows(model, samples))
        return CS_OK;
    cs_status status = cs_workload_model(&other, net, &made, error);
    if (status == CS_OK)
        status = take_batch(model, &made, error);
    cs_model_finish(&made);
    return status;
}
