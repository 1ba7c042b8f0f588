#include "sim/model/model.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void cs_model_finish(cs_model *model)
{
    if (!model)
        return;
    cs_arena_finish(&model->arena);
    *model = (cs_model){0};
}

static bool layer_is_valid(const cs_layer *layer)
{
    return layer->forward >= 0 && layer->backward_input >= 0 && layer->backward_weight >= 0 &&
           layer->update >= 0 && layer->weight_bytes >= 0 && layer->output_bytes >= 0 &&
           layer->kept_bytes >= 0 && layer->resident_bytes >= 0 && layer->frozen_bytes >= 0 &&
           layer->carried_bytes >= 0 && layer->workspace_bytes >= 0 && layer->narrowed_bytes >= 0 &&
           layer->cast_bytes >= 0 && layer->cast_bytes <= layer->frozen_bytes &&
           layer->narrowed_bytes - layer->frozen_bytes <= layer->weight_bytes;
}

static bool fill_uniform(cs_model *model, const cs_layer *layer)
{
    for (uint32_t i = 0; i < model->n_layers; i++) {
        char name[sizeof("layer4294967295")];
        snprintf(name, sizeof(name), "layer%u", i);
        model->layers[i] = *layer;
        model->layers[i].name = cs_arena_copy(&model->arena, name);
        if (!model->layers[i].name)
            return false;
    }
    return true;
}

cs_status cs_model_uniform(uint32_t n_layers, const cs_layer *layer, cs_model *model,
                           cs_error *error)
{
    assert(layer_is_valid(layer));
    if (n_layers == 0)
        return cs_error_add(error, CS_INVALID, "a uniform model must have at least 1 layer");
    cs_model made = {
        .name = "uniform",
        .input_bytes = layer->output_bytes,
        .n_layers = n_layers,
        .provenance = {.source = "synthetic",
                       .hardware = "none",
                       .date = "1970-01-01",
                       .notes = "equal layers, as given; the date stands for none"},
    };
    cs_arena_init(&made.arena);
    made.layers = cs_arena_alloc(&made.arena, n_layers, sizeof(*made.layers));
    if (!made.layers || !fill_uniform(&made, layer)) {
        cs_model_finish(&made);
        return cs_error_no_memory(error);
    }
    *model = made;
    return CS_OK;
}

/* Type for exact products: int64_t times uint32_t always fits. */
__extension__ typedef unsigned __int128 wide;

typedef enum rounding { ROUND_NEAREST, ROUND_UP } rounding;

/* Scaling of numbers for `batch` samples to `samples` samples; batch 0: no scaling. */
typedef struct scaling {
    uint32_t samples, batch;
} scaling;

static bool scale(int64_t value, scaling by, rounding round, int64_t *out)
{
    assert(value >= 0);
    wide scaled = (wide)value;
    if (by.batch != 0)
        scaled =
            (scaled * by.samples + (round == ROUND_UP ? by.batch - 1 : by.batch / 2)) / by.batch;
    if (scaled > INT64_MAX)
        return false;
    *out = (int64_t)scaled;
    return true;
}

static bool add_scaled(int64_t *sum, int64_t value, scaling by, rounding round)
{
    int64_t scaled;
    return scale(value, by, round, &scaled) && !__builtin_add_overflow(*sum, scaled, sum);
}

bool cs_model_knows(const cs_model *model, uint32_t samples)
{
    bool has = model->batch_size == samples;
    for (uint32_t i = 0; i < model->n_batches; i++)
        has |= model->batches[i].batch_size == samples;
    return has;
}

/* Layers to sum over, and the scaling of their numbers. */
typedef struct priced {
    int64_t input_bytes;
    const cs_layer *layers;
    scaling by;
} priced;

static priced price(const cs_model *model, uint32_t samples)
{
    for (uint32_t i = 0; i < model->n_batches; i++) {
        const cs_model_batch *batch = &model->batches[i];
        if (batch->batch_size == samples)
            return (priced){batch->input_bytes, batch->layers, {samples, samples}};
    }
    return (priced){model->input_bytes, model->layers, {samples, model->batch_size}};
}

/* Returns the bytes that pass from layer i-1 to layer i. */
static int64_t boundary_bytes(const priced *from, uint32_t i)
{
    return i == 0 ? from->input_bytes : from->layers[i - 1].output_bytes;
}

/* Changes `layer`, a copy of layer i, to how it runs with recomputation (model.h). False if a sum
 * does not fit. */
static bool recomputed(const priced *from, uint32_t i, cs_layer *layer)
{
    int64_t input = boundary_bytes(from, i) - layer->carried_bytes;
    int64_t again = layer->kept_bytes > input ? layer->kept_bytes - input : 0;
    layer->kept_bytes = input;
    return !__builtin_add_overflow(layer->workspace_bytes, again, &layer->workspace_bytes) &&
           cs_time_add(layer->backward_input, layer->forward - layer->skipped,
                       &layer->backward_input) &&
           cs_time_add(layer->host.backward_input, layer->host.forward - layer->host.skipped,
                       &layer->host.backward_input);
}

static bool add_matrices(cs_layer_sum *sum, const cs_layer *layer)
{
    int64_t bytes;
    bool fits = true;
    for (uint32_t i = 0; i < layer->n_matrices && fits; i++)
        fits = !__builtin_mul_overflow(layer->matrices[i].bytes, (int64_t)layer->matrices[i].n,
                                       &bytes) &&
               !__builtin_add_overflow(sum->matrix_bytes, bytes, &sum->matrix_bytes);
    return fits;
}

static int64_t offloaded(const cs_layer *layer)
{
    return layer->kept_bytes > layer->resident_bytes ? layer->kept_bytes - layer->resident_bytes
                                                     : 0;
}

/* Adds the host's times, which do not depend on the number of samples. */
static bool add_host(cs_layer_sum *sum, const cs_layer *layer)
{
    cs_host_times *to = &sum->host;
    sum->waits |= layer->waits;
    return cs_time_add(to->forward, layer->host.forward, &to->forward) &&
           cs_time_add(to->backward_input, layer->host.backward_input, &to->backward_input) &&
           cs_time_add(to->backward_weight, layer->host.backward_weight, &to->backward_weight);
}

static bool add_layer(cs_layer_sum *sum, const priced *from, uint32_t i)
{
    static const scaling as_is = {0, 0};
    const scaling by = from->by;
    cs_layer layer = from->layers[i];
    int64_t workspace;
    if ((layer.recompute && !recomputed(from, i, &layer)) ||
        !add_scaled(&sum->forward, layer.forward, by, ROUND_NEAREST) ||
        !add_scaled(&sum->backward_input, layer.backward_input, by, ROUND_NEAREST) ||
        !add_scaled(&sum->backward_weight, layer.backward_weight, by, ROUND_NEAREST) ||
        !add_host(sum, &layer) || !add_scaled(&sum->update, layer.update, as_is, ROUND_NEAREST) ||
        !add_scaled(&sum->weight_bytes, layer.weight_bytes, as_is, ROUND_UP) ||
        !add_matrices(sum, &layer) ||
        __builtin_add_overflow(sum->frozen_bytes, cs_layer_besides(&layer), &sum->frozen_bytes) ||
        !add_scaled(&sum->kept_bytes, layer.kept_bytes, by, ROUND_UP) ||
        !scale(layer.workspace_bytes, by, ROUND_UP, &workspace) ||
        !add_scaled(&sum->host_bytes, offloaded(&layer), by, ROUND_UP))
        return false;
    if (workspace > sum->workspace_bytes)
        sum->workspace_bytes = workspace;
    return true;
}

const cs_layer *cs_model_layers(const cs_model *model, uint32_t samples)
{
    const priced from = price(model, samples);
    return from.by.batch == 0 || from.by.batch == samples ? from.layers : NULL;
}

cs_status cs_model_sum(const cs_model *model, uint32_t first, uint32_t end, uint32_t samples,
                       cs_layer_sum *sum, cs_error *error)
{
    assert(first <= end && end <= model->n_layers);
    const priced from = price(model, samples);
    cs_layer_sum made = {0};
    bool fits = scale(boundary_bytes(&from, first), from.by, ROUND_UP, &made.input_bytes) &&
                scale(boundary_bytes(&from, end), from.by, ROUND_UP, &made.output_bytes);
    int64_t carried = 0;
    for (uint32_t i = first; fits && i < end; i++) {
        fits = add_layer(&made, &from, i);
        carried = from.layers[i].carried_bytes > carried ? from.layers[i].carried_bytes : carried;
    }
    fits = fits && add_scaled(&made.kept_bytes, carried, from.by, ROUND_UP);
    fits =
        fits && !__builtin_mul_overflow(made.weight_bytes,
                                        cs_precision_gradient_ratio((cs_precision)model->precision,
                                                                    model->float_gradients),
                                        &made.gradient_bytes);
    if (!fits)
        return cs_error_add(error, CS_OVERFLOW,
                            "model \"%s\": a sum over layers %u to %u for %u samples does not fit "
                            "64 bits (2^63 ps are 106 days, 2^63 bytes are 8 EiB)",
                            model->name, first, end, samples);
    *sum = made;
    return CS_OK;
}

cs_status cs_model_keep(const cs_model *model, uint32_t layer, uint32_t samples,
                        cs_model_kept *kept, cs_error *error)
{
    const priced from = price(model, samples);
    cs_layer of = from.layers[layer];
    cs_model_kept made = *kept;
    made.carried = of.carried_bytes > made.carried ? of.carried_bytes : made.carried;
    bool fits = (!of.recompute || recomputed(&from, layer, &of)) &&
                add_scaled(&made.apart, of.kept_bytes, from.by, ROUND_UP);
    made.bytes = made.apart;
    fits = fits && add_scaled(&made.bytes, made.carried, from.by, ROUND_UP);
    if (!fits)
        return cs_error_add(
            error, CS_OVERFLOW,
            "model \"%s\": what layers up to %u keep for %u samples does not fit 64 "
            "bits (2^63 bytes are 8 EiB)",
            model->name, layer, samples);
    *kept = made;
    return CS_OK;
}

cs_status cs_model_sum_share(const cs_model *model, uint32_t first, uint32_t end, uint32_t samples,
                             uint32_t n, cs_layer_sum *sum, cs_error *error)
{
    cs_model divided = *model;
    if (model->batch_size > 0) {
        assert(samples % n == 0);
        return cs_model_sum(model, first, end, samples / n, sum, error);
    }
    divided.batch_size = n; /* as if the numbers were for n samples, one per share */
    return cs_model_sum(&divided, first, end, 1, sum, error);
}

int64_t cs_model_gradient_ratio(const cs_model *model)
{
    return cs_precision_gradient_ratio((cs_precision)model->precision, model->float_gradients);
}

uint32_t cs_model_lender(const cs_model *model, uint32_t layer)
{
    const char *name = model->layers[layer].tied_to;
    for (uint32_t i = 0; name && i < layer; i++) {
        if (strcmp(model->layers[i].name, name) == 0)
            return i;
    }
    return CS_MODEL_NO_LAYER;
}

/* Whether the tied weights are frozen: they are then more than the lender trains. */
static bool is_frozen_tie(const cs_model *model, uint32_t layer)
{
    const uint32_t lender = cs_model_lender(model, layer);
    return model->layers[layer].tied_bytes > model->layers[lender].weight_bytes;
}

int64_t cs_model_tied_gradients(const cs_model *model, uint32_t layer)
{
    return is_frozen_tie(model, layer)
               ? 0
               : model->layers[layer].tied_bytes * cs_model_gradient_ratio(model);
}

static cs_status no_room(const cs_model *model, uint32_t layer, cs_error *error)
{
    return cs_error_add(error, CS_OVERFLOW,
                        "model \"%s\": the weights that layer %u shares with \"%s\" do not fit "
                        "64 bits",
                        model->name, layer, model->layers[layer].tied_to);
}

cs_status cs_model_borrow(const cs_model *model, uint32_t layer, cs_layer_sum *sum, cs_error *error)
{
    const cs_layer *lender = &model->layers[cs_model_lender(model, layer)];
    const int64_t bytes = model->layers[layer].tied_bytes;
    cs_layer_sum made = *sum;
    int64_t gradients;
    if (is_frozen_tie(model, layer))
        return __builtin_add_overflow(sum->frozen_bytes, bytes, &sum->frozen_bytes)
                   ? no_room(model, layer, error)
                   : CS_OK;
    wide update = ((wide)lender->update * (wide)bytes + (wide)lender->weight_bytes / 2) /
                  (wide)lender->weight_bytes; /* fits, because weight_bytes >= bytes */
    if (__builtin_add_overflow(sum->weight_bytes, bytes, &made.weight_bytes) ||
        __builtin_mul_overflow(bytes, cs_model_gradient_ratio(model), &gradients) ||
        __builtin_add_overflow(sum->gradient_bytes, gradients, &made.gradient_bytes) ||
        !cs_time_add(sum->update, (cs_time)update, &made.update))
        return no_room(model, layer, error);
    made.borrowed_bytes += bytes;
    *sum = made;
    return CS_OK;
}
