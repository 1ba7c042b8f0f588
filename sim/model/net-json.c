#include "sim/model/net-json.h"

#include "sim/model/net-file.h"

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
    if (object && cs_net_op_write(net, op, object) &&
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
    cJSON *layers =
        done && cs_net_inputs_write(net, root) ? cJSON_AddArrayToObject(root, "layers") : NULL;
    done = layers != NULL;
    for (uint32_t i = 0; done && i < chain->n_layers; i++)
        done = cJSON_AddItemToArray(layers, layer_json(net, options, &chain->layers[i]));
    if (done)
        return root;
    cJSON_Delete(root);
    return NULL;
}
