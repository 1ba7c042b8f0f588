#include "sim/model/net-file.h"
#include "sim/model/ops/operator.h"

#include <stdio.h>

/* The name of a tensor: the operator that writes it, or "input", "input.1", ... for inputs of the
 * network. */
static const char *name_of(const cs_net *net, cs_tensor tensor, char text[CS_NET_NAME_BYTES])
{
    const uint32_t writer = cs_net_writer(net, tensor);
    uint32_t n = 0;
    if (writer < net->n_ops)
        return net->ops[writer].name;
    for (cs_tensor t = 0; t < tensor; t++)
        n += cs_net_writer(net, t) == net->n_ops;
    snprintf(text, CS_NET_NAME_BYTES, n > 0 ? "input.%u" : "input", n);
    return text;
}

static bool add_sizes(cJSON *object, const char *key, const uint32_t *sizes, uint32_t n)
{
    cJSON *array = cJSON_AddArrayToObject(object, key);
    bool done = array != NULL;
    for (uint32_t i = 0; done && i < n; i++)
        done = cJSON_AddItemToArray(array, cJSON_CreateNumber(sizes[i]));
    return done;
}

static bool add_window(cJSON *object, const cs_op *op)
{
    if (op->kernel.rank == 0)
        return true;
    return add_sizes(object, "kernel", op->kernel.size, op->kernel.rank) &&
           add_sizes(object, "stride", op->stride.size, op->stride.rank) &&
           add_sizes(object, "padding", op->pad.size, op->pad.rank) &&
           (op->dilation.size[0] == 1 ||
            add_sizes(object, "dilation", op->dilation.size, op->dilation.rank)) &&
           cJSON_AddNumberToObject(object, "groups", op->groups);
}

/* Adds the attributes of an operator besides its shapes, e.g. of attention and of mixtures of
 * experts; values of 0 are left out. */
static bool add_attributes(cJSON *object, const cs_op *op)
{
    const struct {
        const char *key;
        double value;
    } attributes[] = {
        {"heads", cs_operator_of(op)->key & CS_KEY_GROUPS_AS_HEADS && op->groups > 1
                      ? op->groups
                      : op->heads + op->scan.heads + op->attention.heads},
        {"kv_heads", op->attention.kv_heads},
        {"dropout", op->attention.dropout},
        {"buckets", op->attention.buckets},
        {"state", op->scan.state},
        {"chunk", op->scan.chunk},
        {"scan_groups", op->scan.groups},
        {"experts", op->experts},
        {"top_k", op->top_k},
        {"capacity", op->capacity},
        {"stored", op->stored},
        {"window", op->attention.window},
    };
    bool done = true;
    for (size_t i = 0; done && i < sizeof(attributes) / sizeof(attributes[0]); i++)
        done = attributes[i].value <= 0 ||
               cJSON_AddNumberToObject(object, attributes[i].key, attributes[i].value);
    return done;
}

/* Adds the boolean attributes that are true; false is left out. */
static bool add_flags(cJSON *object, const cs_op *op)
{
    const struct {
        const char *key;
        bool is;
    } flags[] = {
        {"causal", op->attention.causal},
        {"math", op->attention.heads > 0 && op->attention.kernel == CS_ATTENTION_MATH},
        {"sinks", op->attention.sinks},
        {"padded", op->attention.padded},
        {"wide", op->wide},
        {"frozen", op->frozen},
    };
    bool done = true;
    for (size_t i = 0; done && i < sizeof(flags) / sizeof(flags[0]); i++)
        done = !flags[i].is || cJSON_AddTrueToObject(object, flags[i].key);
    return done;
}

static bool add_shapes(cJSON *object, const cs_net *net, const cs_op *op)
{
    const cs_shape *out = &cs_net_tensor(net, op->output)->shape;
    cJSON *inputs = cJSON_AddArrayToObject(object, "input_shapes");
    bool done = inputs != NULL;
    for (uint32_t i = 0; done && i < op->n_inputs; i++) {
        const cs_shape *in = &cs_net_tensor(net, op->inputs[i])->shape;
        cJSON *shape = cJSON_CreateArray();
        done = cJSON_AddItemToArray(inputs, shape);
        for (uint32_t d = 0; done && d < in->rank; d++)
            done = cJSON_AddItemToArray(shape, cJSON_CreateNumber(in->dims[d]));
    }
    return done && add_sizes(object, "output_shape", out->dims, out->rank) &&
           add_window(object, op) && add_attributes(object, op) && add_flags(object, op);
}

static bool add_names(const cs_net *net, const cs_op *op, cJSON *object)
{
    char text[CS_NET_NAME_BYTES];
    cJSON *inputs = cJSON_AddArrayToObject(object, "inputs");
    bool done = inputs != NULL;
    for (uint32_t i = 0; done && i < op->n_inputs; i++)
        done = cJSON_AddItemToArray(inputs, cJSON_CreateString(name_of(net, op->inputs[i], text)));
    const uint32_t lender = op->tied ? cs_net_lender(net, (uint32_t)(op - net->ops)) : net->n_ops;
    if (done && lender < net->n_ops)
        done = cJSON_AddStringToObject(object, "tied_to", net->ops[lender].name) != NULL;
    return done;
}

static bool write_op(const cs_net *net, const cs_op *op, cJSON *object)
{
    return cJSON_AddStringToObject(object, "name", op->name) &&
           cJSON_AddStringToObject(object, "kind", cs_op_kind_name(op->kind)) &&
           cJSON_AddStringToObject(object, "block", net->blocks[op->block]) &&
           add_names(net, op, object) && add_shapes(object, net, op);
}

static cJSON *input_json(const cs_net *net, cs_tensor tensor)
{
    const cs_tensor_info *info = cs_net_tensor(net, tensor);
    char text[CS_NET_NAME_BYTES];
    cJSON *object = cJSON_CreateObject();
    if (object && cJSON_AddStringToObject(object, "name", name_of(net, tensor, text)) &&
        add_sizes(object, "shape", info->shape.dims, info->shape.rank) &&
        cJSON_AddBoolToObject(object, "ids", info->element == CS_ELEMENT_INT64) &&
        (!info->loaded || cJSON_AddTrueToObject(object, "loaded")))
        return object;
    cJSON_Delete(object);
    return NULL;
}

static bool write_inputs(const cs_net *net, cJSON *root)
{
    cJSON *inputs = cJSON_AddArrayToObject(root, "inputs");
    bool done = inputs != NULL;
    for (cs_tensor t = 0; done && t < net->n_tensors; t++)
        if (cs_net_writer(net, t) == net->n_ops)
            done = cJSON_AddItemToArray(inputs, input_json(net, t));
    if (done && net->carried > 0)
        done = cJSON_AddStringToObject(root, "carried",
                                       net->ops[cs_net_writer(net, net->carried)].name) != NULL;
    return done;
}

static bool add_operator(const cs_net *net, const cs_op *op, cJSON *list)
{
    const int64_t weights = op->tied ? 0 : op->weights;
    cJSON *object = cJSON_CreateObject();
    return cJSON_AddItemToArray(list, object) && write_op(net, op, object) &&
           cJSON_AddBoolToObject(object, "in_place", op->in_place) &&
           cJSON_AddNumberToObject(object, "weights", (double)weights) &&
           cJSON_AddNumberToObject(object, "biases", (double)op->biases);
}

bool cs_net_operators_write(const cs_net *net, const cs_net_chain *chain, cJSON *root)
{
    cJSON *layers = cJSON_GetObjectItemCaseSensitive(root, "layers");
    bool done = write_inputs(net, root);
    for (uint32_t l = 0; done && l < chain->n_layers; l++) {
        cJSON *list = cJSON_AddArrayToObject(cJSON_GetArrayItem(layers, (int)l), "operators");
        done = list != NULL;
        for (uint32_t p = chain->layers[l].first; done && p < chain->layers[l].end; p++)
            done = add_operator(net, &net->ops[p], list);
    }
    return done;
}

/* ---- all computed values, for people and programs ---- */

typedef struct figure {
    const char *key;
    double value;
} figure;

static bool add_figures(cJSON *object, const figure *figures, size_t n)
{
    bool done = true;
    for (size_t i = 0; done && i < n; i++)
        done = cJSON_AddNumberToObject(object, figures[i].key, figures[i].value) != NULL;
    return done;
}

static cJSON *op_json(const cs_net *net, const cs_net_options *how, const cs_op *op)
{
    cs_op_cost cost;
    cs_op_cost_of(net, op, how->batch_size, how->precision, &cost);
    const cs_pass_cost *passes[] = {&cost.forward, &cost.backward_input, &cost.backward_weight};
    double s[3];
    for (int i = 0; i < 3; i++)
        s[i] = cs_accelerator_seconds(how->device, op, passes[i], how->precision);
    const figure figures[] = {
        {"weights", (double)cost.weights},
        {"biases", (double)cost.biases},
        {"input_bytes", (double)cost.input_bytes},
        {"output_bytes", (double)cost.output_bytes},
        {"macs", cost.macs},
        {"forward_flop", cost.forward.flop},
        {"backward_input_flop", cost.backward_input.flop},
        {"backward_weight_flop", cost.backward_weight.flop},
        {"forward_moved_bytes", cost.forward.bytes + cost.forward.cast_bytes},
        {"backward_input_moved_bytes", cost.backward_input.bytes + cost.backward_input.cast_bytes},
        {"backward_weight_moved_bytes",
         cost.backward_weight.bytes + cost.backward_weight.cast_bytes},
        {"extra_kept_bytes", (double)cost.extra_kept_bytes},
        {"workspace_bytes", (double)cost.workspace_bytes},
        {"forward_s", s[0]},
        {"backward_input_s", s[1]},
        {"backward_weight_s", s[2]},
    };
    cJSON *object = cJSON_CreateObject();
    if (object && write_op(net, op, object) &&
        cJSON_AddBoolToObject(object, "keeps_input", cost.keeps_input) &&
        cJSON_AddBoolToObject(object, "keeps_output", cost.keeps_output) &&
        cJSON_AddBoolToObject(object, "in_place", op->in_place) &&
        add_figures(object, figures, sizeof(figures) / sizeof(figures[0])))
        return object;
    cJSON_Delete(object);
    return NULL;
}

static cJSON *layer_json(const cs_net *net, const cs_net_options *how, const cs_net_layer *layer)
{
    const figure figures[] = {
        {"weights", (double)layer->weights},
        {"biases", (double)layer->biases},
        {"input_bytes", (double)layer->read_bytes},
        {"output_bytes", (double)layer->written_bytes},
        {"macs", layer->macs},
        {"forward_flop", layer->forward_flop},
        {"backward_input_flop", layer->input_flop},
        {"backward_weight_flop", layer->weight_flop},
        {"forward_moved_bytes", layer->forward_bytes},
        {"backward_input_moved_bytes", layer->input_bytes},
        {"backward_weight_moved_bytes", layer->weight_bytes},
        {"kept_bytes", (double)layer->kept_bytes},
        {"workspace_bytes", (double)layer->workspace_bytes},
        {"forward_s", layer->forward},
        {"backward_input_s", layer->backward_input},
        {"backward_weight_s", layer->backward_weight},
    };
    cJSON *object = cJSON_CreateObject();
    bool done = object && cJSON_AddStringToObject(object, "name", layer->name) &&
                add_figures(object, figures, sizeof(figures) / sizeof(figures[0]));
    if (done && layer->carried_bytes > 0)
        done = cJSON_AddNumberToObject(object, "carried_bytes", (double)layer->carried_bytes);
    cJSON *ops = done ? cJSON_AddArrayToObject(object, "operators") : NULL;
    done = ops != NULL;
    for (uint32_t p = layer->first; done && p < layer->end; p++)
        done = cJSON_AddItemToArray(ops, op_json(net, how, &net->ops[p]));
    if (done)
        return object;
    cJSON_Delete(object);
    return NULL;
}

cJSON *cs_net_json(const cs_net *net, const cs_net_options *options, const cs_net_chain *chain)
{
    const figure figures[] = {
        {"batch_size", options->batch_size},
        {"parameters", (double)cs_net_parameters(net)},
        {"macs_per_sample", cs_net_macs(net)},
        {"kept_bytes", (double)chain->kept_bytes},
    };
    const figure active[] = {{"active_parameters", (double)cs_net_active_parameters(net)}};
    cJSON *root = cJSON_CreateObject();
    bool done =
        root && cJSON_AddStringToObject(root, "name", net->name) &&
        cJSON_AddStringToObject(root, "device", options->device->name) &&
        cJSON_AddStringToObject(root, "precision", cs_precision_names[options->precision]) &&
        add_figures(root, figures, sizeof(figures) / sizeof(figures[0])) &&
        (active[0].value == figures[1].value || add_figures(root, active, 1));
    cJSON *layers = done && write_inputs(net, root) ? cJSON_AddArrayToObject(root, "layers") : NULL;
    done = layers != NULL;
    for (uint32_t i = 0; done && i < chain->n_layers; i++)
        done = cJSON_AddItemToArray(layers, layer_json(net, options, &chain->layers[i]));
    if (done)
        return root;
    cJSON_Delete(root);
    return NULL;
}
