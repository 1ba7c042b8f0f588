#include "schedules/plan/chain.h"

#include <math.h>

/* Upper limit of every sum, so that a few sums can be added without a check. */
static const double most = 0x1p61;

static bool allocate(cs_chain *chain)
{
    size_t n = (size_t)chain->n_layers + 1;
    cs_arena *arena = &chain->arena;
    chain->sum_forward = cs_arena_alloc(arena, n, sizeof(cs_time));
    chain->sum_backward = cs_arena_alloc(arena, n, sizeof(cs_time));
    chain->sum_weights = cs_arena_alloc(arena, n, sizeof(int64_t));
    chain->sum_fixed = cs_arena_alloc(arena, n, sizeof(int64_t));
    chain->sum_kept = cs_arena_alloc(arena, n, sizeof(int64_t));
    chain->boundary = cs_arena_alloc(arena, n, sizeof(int64_t));
    chain->message = cs_arena_alloc(arena, n, sizeof(cs_time));
    return chain->sum_forward && chain->sum_backward && chain->sum_weights && chain->sum_fixed &&
           chain->sum_kept && chain->boundary && chain->message;
}

/* Contribution of one layer to each sum. */
typedef struct addend {
    cs_time forward, backward;
    double fixed;
    int64_t weights, kept;
} addend;

/* Computes the contribution of a layer. Returns false if a time overflows. */
static bool addend_of(const cs_chain_options *options, const cs_layer_sum *sum, addend *out)
{
    cs_time backward = sum->backward_input, update = options->count_update ? sum->update : 0;
    double copies = options->weight_copies + options->optimizer_ratio;
    out->weights = sum->weight_bytes;
    out->fixed = ceil((double)sum->weight_bytes * copies) + (double)sum->frozen_bytes +
                 ceil((double)(sum->weight_bytes - sum->matrix_bytes) * options->other_ratio) +
                 (double)(sum->gradient_bytes - sum->weight_bytes);
    out->kept = options->kept == CS_KEPT_LITERAL ? sum->input_bytes : sum->kept_bytes;
    return cs_time_add(backward, sum->backward_weight, &backward) &&
           cs_time_add(backward, update, &backward) &&
           cs_time_at_speed(sum->forward, options->speed, &out->forward) &&
           cs_time_at_speed(backward, options->speed, &out->backward);
}

static bool add(cs_chain *chain, uint32_t l, const addend *one)
{
    double forward = (double)chain->sum_forward[l] + (double)one->forward;
    double backward = (double)chain->sum_backward[l] + (double)one->backward;
    double fixed = (double)chain->sum_fixed[l] + one->fixed;
    double weights = (double)chain->sum_weights[l] + (double)one->weights;
    double kept = (double)chain->sum_kept[l] + (double)one->kept;
    if (forward + backward >= most || weights >= most || fixed >= most || kept >= most)
        return false;
    chain->sum_forward[l + 1] = chain->sum_forward[l] + one->forward;
    chain->sum_backward[l + 1] = chain->sum_backward[l] + one->backward;
    chain->sum_weights[l + 1] = chain->sum_weights[l] + one->weights;
    chain->sum_fixed[l + 1] = chain->sum_fixed[l] + (int64_t)one->fixed;
    chain->sum_kept[l + 1] = chain->sum_kept[l] + one->kept;
    return true;
}

/* Sums one layer as if it were alone in its stage: it has a copy of weights that it shares with
 * another stage, unless there is only one device. */
static cs_status sum_layer(const cs_chain_options *options, uint32_t l, cs_layer_sum *sum,
                           cs_error *error)
{
    const cs_model *model = options->model;
    cs_status status = cs_model_sum(model, l, l + 1, options->micro_samples, sum, error);
    if (status != CS_OK || model->layers[l].tied_bytes == 0 || options->n_devices == 1)
        return status;
    return cs_model_borrow(model, l, sum, error);
}

/* Sets the message over the boundary before layer l > 0, which is that layer's input. */
static bool cross(const cs_chain_options *options, cs_chain *chain, uint32_t l, int64_t bytes)
{
    cs_time moving;
    chain->boundary[l] = bytes;
    return (double)bytes < most / 8 &&
           cs_time_transfer((double)bytes, options->bandwidth, &moving) &&
           cs_time_add(moving, options->latency, &chain->message[l]) &&
           (double)chain->message[l] < most / 8;
}

static cs_status add_layers(const cs_chain_options *options, cs_chain *chain, cs_error *error)
{
    int64_t workspace = 0;
    for (uint32_t l = 0; l < chain->n_layers; l++) {
        cs_layer_sum sum;
        addend one;
        CS_TRY(sum_layer(options, l, &sum, error));
        if (!addend_of(options, &sum, &one) || !add(chain, l, &one) ||
            (l > 0 && !cross(options, chain, l, sum.input_bytes)))
            return cs_error_add(error, CS_OVERFLOW,
                                "model \"%s\": layers 0 to %u take more time or memory than a "
                                "planner can add up (2^61 ps are 26 days, 2^61 bytes are 2 EiB)",
                                options->model->name, l);
        workspace = sum.workspace_bytes > workspace ? sum.workspace_bytes : workspace;
    }
    if (options->ignore_workspace)
        return CS_OK;
    if (workspace > chain->memory)
        return cs_error_add(error, CS_LIMIT,
                            "model \"%s\": a layer needs %lld bytes of workspace, more than the "
                            "device's memory of %lld",
                            options->model->name, (long long)workspace, (long long)chain->memory);
    if (chain->memory < INT64_MAX)
        chain->memory -= workspace;
    return CS_OK;
}

/* Adds the loads of the share of a micro-batch that each of q replicas computes. */
static cs_status add_share(const cs_chain_options *options, cs_chain *chain, uint32_t q,
                           cs_error *error)
{
    cs_time *sums = cs_arena_alloc(&chain->arena, (size_t)chain->n_layers + 1, sizeof(*sums));
    if (!sums)
        return cs_error_no_memory(error);
    for (uint32_t l = 0; l < chain->n_layers; l++) {
        cs_layer_sum sum;
        addend one;
        cs_status status =
            cs_model_sum_share(options->model, l, l + 1, options->micro_samples, q, &sum, error);
        if (status != CS_OK)
            return status;
        if (!addend_of(options, &sum, &one) ||
            (double)sums[l] + (double)one.forward + (double)one.backward >= most)
            return cs_error_add(
                error, CS_OVERFLOW,
                "model \"%s\": layers 0 to %u take more time than a planner can add "
                "up (2^61 ps are 26 days)",
                options->model->name, l);
        sums[l + 1] = sums[l] + one.forward + one.backward;
    }
    chain->sum_shared[q - 1] = sums;
    return CS_OK;
}

static cs_status add_shares(const cs_chain_options *options, cs_chain *chain, cs_error *error)
{
    cs_status status = CS_OK;
    if (!options->shared)
        return CS_OK;
    chain->sum_shared = cs_arena_alloc(&chain->arena, chain->n_devices, sizeof(*chain->sum_shared));
    if (!chain->sum_shared)
        return cs_error_no_memory(error);
    for (uint32_t q = 1; q <= chain->n_devices && status == CS_OK; q++) {
        if (options->model->batch_size == 0 || options->micro_samples % q == 0)
            status = add_share(options, chain, q, error);
    }
    return status;
}

void cs_chain_finish(cs_chain *chain)
{
    cs_arena_finish(&chain->arena);
    *chain = (cs_chain){0};
}

cs_status cs_chain_make(const cs_chain_options *options, cs_chain *chain, cs_error *error)
{
    cs_chain made = {.n_layers = options->model->n_layers,
                     .n_devices = options->n_devices,
                     .memory = options->memory,
                     .bandwidth = options->bandwidth,
                     .latency = options->latency};
    if (made.n_layers == 0 || made.n_devices == 0)
        return cs_error_add(error, CS_INVALID, "nothing to plan: %u layers on %u devices",
                            made.n_layers, made.n_devices);
    if (!(made.bandwidth > 0))
        return cs_error_add(
            error, CS_INVALID,
            "nothing can be cut: the bandwidth between devices must be > 0 (got %g)",
            made.bandwidth);
    cs_status status =
        allocate(&made) ? add_layers(options, &made, error) : cs_error_no_memory(error);
    if (status == CS_OK)
        status = add_shares(options, &made, error);
    if (status == CS_OK)
        *chain = made;
    else
        cs_chain_finish(&made);
    return status;
}

cs_status cs_chain_step(const cs_chain *chain, const char *what, uint64_t done, uint64_t total,
                        cs_error *error)
{
    return cs_progress_step(chain->progress, what, done, total)
               ? CS_OK
               : cs_error_add(error, CS_INTERRUPTED, "interrupted");
}
