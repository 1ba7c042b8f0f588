#include "schedules/states.h"

#include "schedules/ties.h"

#include <math.h>

static bool has_grid(const cs_job *job)
{
    return job->plan->grid != NULL;
}

static cs_weights weights_of(const cs_layer *layer)
{
    cs_weights sum = {.dense = layer->weight_bytes};
    for (uint32_t i = 0; i < layer->n_weight_parts; i++) {
        const cs_weight_part *part = &layer->weight_parts[i];
        if (part->axes == CS_AXES_TENSOR) {
            sum.tensor += part->bytes;
        } else {
            sum.expert += part->bytes;
            sum.dense -= part->bytes;
        }
    }
    return sum;
}

cs_weights cs_states_weights(const cs_job *job, uint32_t stage, uint32_t first, uint32_t end)
{
    cs_weights sum = {0};
    for (uint32_t l = first; l < end; l++) {
        const cs_weights one = weights_of(&job->model->layers[l]);
        sum.dense += one.dense;
        sum.expert += one.expert;
        sum.tensor += one.tensor;
    }
    uint32_t layer = first;
    cs_tie tie;
    while (layer < end && cs_tie_next(job->model, job->plan, &layer, &tie) && tie.layer < end) {
        if (tie.borrower == stage)
            sum.dense += job->model->layers[tie.layer].tied_bytes;
    }
    return sum;
}

uint32_t cs_states_shards(const cs_job *job, bool expert)
{
    if (!has_grid(job) || job->states.zero == 0)
        return 1;
    return expert ? job->plan->grid->expert_shard : job->plan->grid->shard;
}

int64_t cs_optimizer_bytes(const cs_job *job, int64_t weights)
{
    return (int64_t)ceil((double)weights * job->optimizer_ratio);
}

/* What one place holds when both kinds are divided. */
static int64_t divided(const cs_job *job, const cs_weights *weights, int64_t ratio)
{
    return cs_states_share(ratio * weights->dense, cs_states_shards(job, false)) +
           cs_states_share(ratio * weights->expert, cs_states_shards(job, true));
}

uint32_t cs_residents_add(cs_builder *builder, const cs_job *job, uint32_t stage, uint32_t device)
{
    const cs_layer_sum *sum = &job->stages[stage];
    const cs_stage *of = &job->plan->stages[stage];
    int64_t weights = sum->weight_bytes, gradients = sum->gradient_bytes, updated = weights;
    if (has_grid(job)) {
        const cs_weights all = cs_states_weights(job, stage, of->first_layer, of->end_layer);
        updated = divided(job, &all, 1);
        if (job->states.zero >= 2 && !job->states.accumulate)
            gradients = divided(job, &all, cs_model_gradient_ratio(job->model));
        if (job->states.zero >= 3)
            weights = updated;
    }
    cs_builder_resident(builder, device, CS_MEMORY_WEIGHTS, weights + sum->frozen_bytes);
    cs_builder_resident(builder, device, CS_MEMORY_GRADIENTS, gradients);
    cs_builder_resident(builder, device, CS_MEMORY_OPTIMIZER, cs_optimizer_bytes(job, updated));
    return cs_builder_slot(builder, stage, device, weights);
}

__extension__ typedef unsigned __int128 wide;

cs_time cs_states_update(const cs_job *job, uint32_t stage)
{
    const cs_stage *of = &job->plan->stages[stage];
    const cs_time whole = job->stages[stage].update;
    const uint32_t n = cs_states_shards(job, false), experts = cs_states_shards(job, true);
    if (n == 1 && experts == 1)
        return whole;
    const cs_weights all = cs_states_weights(job, stage, of->first_layer, of->end_layer);
    const wide bytes = (wide)(all.dense + all.expert);
    const wide part =
        (wide)cs_states_share(all.dense, n) + (wide)cs_states_share(all.expert, experts);
    return bytes == 0 ? whole : (cs_time)(((wide)whole * part + bytes - 1) / bytes);
}

/* ---- exchanges ---- */

/* Appends one, unless there is nothing to do. */
static void add(const cs_job *job, cs_kind kind, cs_axes_name axes, int64_t bytes,
                cs_state_exchange *made, uint32_t *n)
{
    if (bytes > 0 && cs_grid_axes(job->plan->grid, axes).size > 1)
        made[(*n)++] = (cs_state_exchange){kind, axes, bytes};
}

/* The axes of one kind of weights. */
typedef struct axes_of {
    cs_axes_name all, shard, replica;
} axes_of;

static const axes_of dense_axes = {CS_AXES_GRADIENT, CS_AXES_SHARD, CS_AXES_REPLICA};
static const axes_of expert_axes = {CS_AXES_EXPERT_DATA, CS_AXES_EXPERT_SHARD,
                                    CS_AXES_EXPERT_REPLICA};

typedef struct reduction {
    const cs_job *job;
    bool scatter, finish;
    cs_state_exchange *made;
    uint32_t n;
} reduction;

static void reduce(reduction *r, const axes_of *axes, int64_t bytes, uint32_t shards)
{
    if (r->job->states.zero == 0) {
        add(r->job, CS_ALL_REDUCE, axes->all, r->finish ? bytes : 0, r->made, &r->n);
        return;
    }
    add(r->job, CS_REDUCE_SCATTER, axes->shard, r->scatter ? bytes : 0, r->made, &r->n);
    add(r->job, CS_ALL_REDUCE, axes->replica, r->finish ? cs_states_share(bytes, shards) : 0,
        r->made, &r->n);
}

uint32_t cs_states_reduce(const cs_job *job, const cs_weights *weights, bool scatter, bool finish,
                          cs_state_exchange made[CS_STATES_MOST])
{
    const int64_t ratio = cs_model_gradient_ratio(job->model);
    const uint32_t shards = cs_states_shards(job, false);
    reduction r = {job, scatter, finish, made, 0};
    reduce(&r, &dense_axes, ratio * weights->dense, shards);
    add(job, CS_ALL_REDUCE, CS_AXES_TENSOR,
        finish ? cs_states_share(ratio * weights->tensor, shards) : 0, made, &r.n);
    reduce(&r, &expert_axes, ratio * weights->expert, cs_states_shards(job, true));
    return r.n;
}

uint32_t cs_states_gather(const cs_job *job, const cs_weights *weights,
                          cs_state_exchange made[CS_STATES_MOST])
{
    uint32_t n = 0;
    if (job->states.zero == 0)
        return 0;
    add(job, CS_ALL_GATHER, CS_AXES_SHARD, weights->dense, made, &n);
    add(job, CS_ALL_GATHER, CS_AXES_EXPERT_SHARD, weights->expert, made, &n);
    return n;
}

bool cs_states_scatters_each(const cs_job *job)
{
    return has_grid(job) && job->states.zero >= 2 && !job->states.accumulate;
}

uint32_t cs_states_unit(const cs_job *job, uint32_t stage, uint32_t end)
{
    const int64_t ratio = cs_model_gradient_ratio(job->model);
    const bool gathers = job->states.zero >= 3 &&
                         (cs_states_shards(job, false) > 1 || cs_states_shards(job, true) > 1);
    const int64_t least = gathers ? 1 : job->states.bucket;
    uint32_t first = end;
    int64_t bytes = 0;
    while (first > job->plan->stages[stage].first_layer &&
           (least == 0 || bytes < least || bytes == 0)) {
        first--;
        const cs_weights one = cs_states_weights(job, stage, first, first + 1);
        bytes += ratio * (one.dense + one.expert);
    }
    return first;
}
