#include "schedules/states.h"

#include "schedules/matrices.h"
#include "schedules/ties.h"

#include <math.h>

static bool has_grid(const cs_job *job)
{
    return job->plan->grid != NULL;
}

static cs_layer_states states_of(const cs_job *job, uint32_t layer)
{
    return job->states.layers ? job->states.layers[layer] : (cs_layer_states){job->states.zero, 1};
}

uint32_t cs_states_zero(const cs_job *job)
{
    uint32_t most = 0;
    if (!job->states.layers)
        return job->states.zero;
    for (uint32_t l = 0; l < job->model->n_layers; l++) {
        const uint32_t zero = states_of(job, l).zero;
        most = zero > most ? zero : most;
    }
    return most;
}

static void add_bytes(cs_weight_bytes *sum, const cs_weight_bytes *more, int64_t sign)
{
    sum->dense += sign * more->dense;
    sum->expert += sign * more->expert;
    sum->tensor += sign * more->tensor;
    sum->copied += sign * more->copied;
    sum->frozen += sign * more->frozen;
    sum->cast += sign * more->cast;
}

/* Returns the bytes of frozen weights at stage 3 that a place does not hold: all but its shard, and
 * the copies that it casts after gathering. */
static int64_t divided_frozen(const cs_job *job, const cs_weights *weights)
{
    const cs_weight_bytes *at = &weights->at[3];
    const uint32_t shards = cs_states_shards(job, false);
    return shards > 1 ? at->frozen - cs_states_share(at->frozen - at->cast, shards) : 0;
}

void cs_weights_add(cs_weights *sum, const cs_weights *more)
{
    for (uint32_t zero = 0; zero < CS_ZERO_STAGES; zero++)
        add_bytes(&sum->at[zero], &more->at[zero], 1);
}

/* Adds weights that are sharded as a layer's states are. */
static void add_resting(cs_weights *sum, cs_layer_states states, const cs_weight_bytes *bytes)
{
    const cs_weight_bytes part = {
        .dense = llround(states.fraction * (double)bytes->dense),
        .expert = llround(states.fraction * (double)bytes->expert),
        .tensor = llround(states.fraction * (double)bytes->tensor),
        .copied = llround(states.fraction * (double)bytes->copied),
        .frozen = llround(states.fraction * (double)bytes->frozen),
        .cast = llround(states.fraction * (double)bytes->cast),
    };
    const cs_weight_bytes *divided = states.fraction < 1 ? &part : bytes;
    add_bytes(&sum->at[0], bytes, 1);
    add_bytes(&sum->at[0], divided, -1);
    add_bytes(&sum->at[states.zero], divided, 1);
}

/* Whether frozen weights are sharded. A layer does not say which of them belong to experts, so with
 * expert parallelism none are. */
static bool divides_frozen(const cs_job *job)
{
    return has_grid(job) && job->plan->grid->expert == 1;
}

static cs_weight_bytes bytes_of(const cs_job *job, const cs_layer *layer)
{
    cs_weight_bytes sum = {.dense = layer->weight_bytes,
                           .frozen = divides_frozen(job) ? cs_layer_besides(layer) : 0,
                           .cast = divides_frozen(job) ? layer->cast_bytes : 0};
    for (uint32_t i = 0; i < layer->n_weight_parts; i++) {
        const cs_weight_part *part = &layer->weight_parts[i];
        if (part->axes == CS_AXES_TENSOR) {
            sum.tensor += part->bytes;
        } else if (part->axes == CS_AXES_COPIES) {
            sum.copied += part->bytes;
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
        const cs_weight_bytes bytes = bytes_of(job, &job->model->layers[l]);
        add_resting(&sum, states_of(job, l), &bytes);
    }
    uint32_t layer = first;
    cs_tie tie;
    while (cs_tie_next(job->model, job->plan, end, &layer, &tie)) {
        const cs_weight_bytes tied = {.dense = job->model->layers[tie.layer].tied_bytes};
        if (tie.borrower == stage)
            add_resting(&sum, states_of(job, cs_model_lender(job->model, tie.layer)), &tied);
    }
    return sum;
}

uint32_t cs_states_shards(const cs_job *job, bool expert)
{
    if (!has_grid(job))
        return 1;
    return expert ? job->plan->grid->expert_shard : job->plan->grid->shard;
}

int64_t cs_optimizer_bytes(const cs_job *job, int64_t weights, int64_t matrices)
{
    return (int64_t)ceil((double)weights * job->optimizer_ratio) +
           (int64_t)ceil((double)(weights - matrices) * job->other_ratio);
}

/* Returns the bytes that one place holds if weights at stage `least` and above are sharded. */
static int64_t divided(const cs_job *job, const cs_weights *weights, uint32_t least, int64_t ratio)
{
    int64_t whole = 0;
    cs_weight_bytes parts = {0};
    for (uint32_t zero = 0; zero < CS_ZERO_STAGES; zero++) {
        const cs_weight_bytes *at = &weights->at[zero];
        if (zero < least)
            whole += ratio * (at->dense + at->expert);
        else
            add_bytes(&parts, at, ratio);
    }
    return whole + cs_states_share(parts.dense, cs_states_shards(job, false)) +
           cs_states_share(parts.expert, cs_states_shards(job, true));
}

/* Sets the resting bytes of a stage whose shards at stage 3 have 4 bytes per value, for weights and
 * gradients. Frozen weights keep their type. */
static void rest_wide(const cs_job *job, const cs_weights *all, int64_t *weights,
                      int64_t *gradients, int64_t *frozen)
{
    enum { WIDE_RATIO = 2 };
    const cs_weights third = {.at[3] = all->at[3]};
    cs_weights others = *all;
    others.at[3] = (cs_weight_bytes){0};
    *weights = divided(job, &others, 3, 1);
    if (!job->states.accumulate)
        *gradients = divided(job, &others, 2, cs_model_gradient_ratio(job->model)) +
                     divided(job, &third, 2, WIDE_RATIO);
    const int64_t besides = third.at[3].frozen - third.at[3].cast;
    if (besides < 0) /* narrower weights: negative, because they save bytes */
        *frozen -= cs_states_share(besides, cs_states_shards(job, false));
}

/* Returns the weights of a stage that Muon does not treat as matrices. */
static cs_weights other_weights(const cs_job *job, uint32_t stage, const cs_weights *all)
{
    cs_weights others = *all;
    others.at[job->states.zero].dense -= job->matrices[stage].all.dense;
    others.at[job->states.zero].expert -= job->matrices[stage].all.expert;
    return others;
}

static int64_t divided_states(const cs_job *job, uint32_t stage, const cs_weights *all)
{
    if (!job->matrices)
        return cs_optimizer_bytes(job, divided(job, all, 1, 1), 0);
    const cs_matrices *most = &job->matrices[stage].most;
    const cs_weights others = other_weights(job, stage, all);
    const int64_t matrices = most->dense + most->expert;
    return cs_optimizer_bytes(job, matrices + divided(job, &others, 1, 1), matrices);
}

cs_residents cs_residents_of(const cs_job *job, uint32_t stage)
{
    const cs_layer_sum *sum = &job->stages[stage];
    const cs_stage *of = &job->plan->stages[stage];
    int64_t weights = sum->weight_bytes, gradients = sum->gradient_bytes;
    int64_t optimizer = cs_optimizer_bytes(job, weights, sum->matrix_bytes);
    int64_t frozen = sum->frozen_bytes, resting = weights;
    if (has_grid(job)) {
        const cs_weights all = cs_states_weights(job, stage, of->first_layer, of->end_layer);
        optimizer = divided_states(job, stage, &all);
        if (!job->states.accumulate)
            gradients = divided(job, &all, 2, cs_model_gradient_ratio(job->model));
        weights = resting = divided(job, &all, 3, 1);
        frozen -= divided_frozen(job, &all);
        if (job->states.wide_shards)
            rest_wide(job, &all, &resting, &gradients, &frozen);
    }
    return (cs_residents){stage, weights, resting + frozen, gradients, optimizer};
}

int64_t cs_states_reduced(const cs_job *job, uint32_t stage)
{
    enum { WIDE_RATIO = 2 };
    const cs_stage *of = &job->plan->stages[stage];
    const bool alone = cs_states_shards(job, false) == 1 && cs_states_shards(job, true) == 1;
    if (alone || !job->states.gather_once || !job->states.accumulate)
        return 0;
    const cs_weights all = cs_states_weights(job, stage, of->first_layer, of->end_layer);
    const cs_weights third = {.at[3] = all.at[3]};
    return divided(job, &third, 3,
                   job->states.wide_shards ? WIDE_RATIO : cs_model_gradient_ratio(job->model));
}

int64_t cs_states_copied(const cs_job *job, uint32_t stage)
{
    const cs_stage *of = &job->plan->stages[stage];
    const cs_weights all = cs_states_weights(job, stage, of->first_layer, of->end_layer);
    return (int64_t)ceil((double)divided(job, &all, 1, 1) * job->update_ratio);
}

uint32_t cs_residents_add(cs_builder *builder, const cs_residents *of, uint32_t device)
{
    cs_builder_resident(builder, device, CS_MEMORY_WEIGHTS, of->resting);
    cs_builder_resident(builder, device, CS_MEMORY_GRADIENTS, of->gradients);
    cs_builder_resident(builder, device, CS_MEMORY_OPTIMIZER, of->optimizer);
    return cs_builder_slot(builder, of->stage, device, of->weights);
}

__extension__ typedef unsigned __int128 wide;

cs_time cs_states_host(const cs_job *job, uint32_t stage)
{
    const cs_plan *plan = job->plan;
    const uint32_t device = plan->devices[plan->stages[stage].first_device];
    uint32_t n = 0;
    for (uint32_t s = 0; s < plan->n_stages && job->host > 0; s++)
        n += plan->devices[plan->stages[s].first_device] == device;
    return n > 0 ? job->host / n : 0;
}

/* Returns the time to update a place's share of these weights, in proportion to their bytes;
 * rounded up. */
static cs_time part_of_update(const cs_job *job, const cs_weights *weights, cs_time whole)
{
    const wide bytes = (wide)divided(job, weights, CS_ZERO_STAGES, 1);
    const wide part = (wide)divided(job, weights, 1, 1);
    return bytes == 0 ? whole : (cs_time)(((wide)whole * part + bytes - 1) / bytes);
}

/* Returns the time to update the matrices of the slowest place, and its share of the other
 * weights. */
static cs_time update_with_matrices(const cs_job *job, uint32_t stage, const cs_weights *all,
                                    cs_time whole)
{
    const cs_stage_matrices *matrices = &job->matrices[stage];
    const cs_weights others = other_weights(job, stage, all);
    const cs_time rest = whole > matrices->all.update ? whole - matrices->all.update : 0;
    return matrices->most.update + part_of_update(job, &others, rest);
}

cs_time cs_states_update(const cs_job *job, uint32_t stage)
{
    const cs_stage *of = &job->plan->stages[stage];
    if (cs_states_shards(job, false) == 1 && cs_states_shards(job, true) == 1)
        return job->stages[stage].update;
    const cs_time host = cs_states_host(job, stage), whole = job->stages[stage].update - host;
    const cs_weights all = cs_states_weights(job, stage, of->first_layer, of->end_layer);
    return host + (job->matrices ? update_with_matrices(job, stage, &all, whole)
                                 : part_of_update(job, &all, whole));
}

/* ---- exchanges ---- */

/* Appends an exchange, unless there is nothing to exchange. */
static void add(const cs_job *job, cs_kind kind, cs_axes_name axes, int64_t bytes, bool each,
                cs_state_exchange *made, uint32_t *n)
{
    if (bytes > 0 && cs_grid_axes(job->plan->grid, axes).size > 1)
        made[(*n)++] = (cs_state_exchange){kind, axes, bytes, each};
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
    uint32_t zero;
    bool last;
    cs_state_exchange *made;
    uint32_t n;
} reduction;

/* Whether each place gets all of the sum. */
static bool is_whole(const reduction *r)
{
    return r->zero == 0 || r->job->matrices || (r->zero == 1 && r->job->states.whole_sums);
}

/* Returns the bytes of a sum that a place gets from the places that share it. */
static int64_t share_of(const reduction *r, int64_t bytes, bool expert)
{
    return is_whole(r) ? bytes : cs_states_share(bytes, cs_states_shards(r->job, expert));
}

static void reduce(reduction *r, const axes_of *axes, int64_t bytes, bool expert)
{
    const bool each = cs_states_scatters_each(r->job, r->zero);
    if (is_whole(r)) {
        add(r->job, CS_ALL_REDUCE, axes->all, r->last ? bytes : 0, false, r->made, &r->n);
        return;
    }
    add(r->job, CS_REDUCE_SCATTER, axes->shard, r->last || each ? bytes : 0, each, r->made, &r->n);
    add(r->job, CS_ALL_REDUCE, axes->replica, r->last ? share_of(r, bytes, expert) : 0, false,
        r->made, &r->n);
}

uint32_t cs_states_reduce(const cs_job *job, const cs_weights *weights, bool last,
                          cs_state_exchange made[CS_STATES_MOST])
{
    const int64_t ratio = cs_model_gradient_ratio(job->model);
    reduction r = {job, 0, last, made, 0};
    for (; r.zero < CS_ZERO_STAGES; r.zero++) {
        const cs_weight_bytes *at = &weights->at[r.zero];
        reduce(&r, &dense_axes, ratio * at->dense, false);
        add(job, CS_ALL_REDUCE, CS_AXES_TENSOR, last ? share_of(&r, ratio * at->tensor, false) : 0,
            false, made, &r.n);
        add(job, CS_ALL_REDUCE, CS_AXES_COPIES, last ? share_of(&r, ratio * at->copied, false) : 0,
            false, made, &r.n);
        reduce(&r, &expert_axes, ratio * at->expert, true);
    }
    return r.n;
}

/* Returns the bytes that are sent in addition to trained weights in the wide type. At stage 3 these
 * are frozen weights; the result is negative if a layer has weights in a narrower type only. After
 * an update this holds for fp8, but not for types with a scale per block: Megatron Core gathers
 * those in bf16 and casts them afterwards (megatron/core/optimizer/distrib_optimizer.py,
 * _copy_main_params_to_param_buffer). */
static int64_t sent_besides(const cs_job *job, const cs_weight_bytes *at, uint32_t zero)
{
    const int64_t besides = at->frozen - at->cast;
    if (zero == 3)
        return besides;
    return job->model->precision == CS_PRECISION_FP8 && besides < 0 ? besides : 0;
}

static uint32_t gather(const cs_job *job, const cs_weights *weights, uint32_t first, uint32_t end,
                       cs_state_exchange made[CS_STATES_MOST])
{
    uint32_t n = 0;
    for (uint32_t zero = first; zero < end; zero++) {
        const cs_weight_bytes *at = &weights->at[zero];
        const int64_t dense = at->dense + sent_besides(job, at, zero);
        add(job, CS_ALL_GATHER, CS_AXES_SHARD, dense, false, made, &n);
        add(job, CS_ALL_GATHER, CS_AXES_EXPERT_SHARD, at->expert + (dense < 0 ? dense : 0), false,
            made, &n);
    }
    return n;
}

uint32_t cs_states_gather(const cs_job *job, const cs_weights *weights,
                          cs_state_exchange made[CS_STATES_MOST])
{
    return gather(job, weights, 3, 4, made);
}

int64_t cs_states_cast(const cs_job *job, const cs_weights *weights)
{
    return cs_states_shards(job, false) > 1 ? weights->at[3].cast : 0;
}

uint32_t cs_states_gather_updated(const cs_job *job, const cs_weights *weights,
                                  cs_state_exchange made[CS_STATES_MOST])
{
    return gather(job, weights, 1, 3, made);
}

bool cs_states_borrows(const cs_job *job, uint32_t stage, uint32_t layer, uint32_t *lender)
{
    if (job->model->layers[layer].tied_bytes == 0)
        return false;
    *lender = cs_model_lender(job->model, layer);
    return *lender >= job->plan->stages[stage].first_layer && *lender < layer &&
           states_of(job, *lender).zero == 3;
}

bool cs_states_keeps(const cs_job *job, uint32_t stage)
{
    const cs_stage *of = &job->plan->stages[stage];
    bool keeps = job->states.keep_gathered || job->states.gather_once;
    uint32_t lender;
    for (uint32_t l = of->first_layer; l < of->end_layer && !keeps; l++)
        keeps = cs_states_borrows(job, stage, l, &lender);
    return keeps;
}

bool cs_states_scatters_each(const cs_job *job, uint32_t zero)
{
    return has_grid(job) && zero >= 2 && !job->states.accumulate;
}

int64_t cs_states_scattered(const cs_job *job, const cs_weights *weights)
{
    int64_t bytes = 0;
    for (uint32_t zero = 0; zero < CS_ZERO_STAGES; zero++) {
        if (!cs_states_scatters_each(job, zero))
            continue;
        bytes += cs_states_shards(job, false) > 1 ? weights->at[zero].dense : 0;
        bytes += cs_states_shards(job, true) > 1 ? weights->at[zero].expert : 0;
    }
    return bytes * cs_model_gradient_ratio(job->model);
}

int64_t cs_states_tied(const cs_job *job, uint32_t layer, int64_t bytes)
{
    const cs_weight_bytes tied = {.dense = bytes};
    cs_weights weights = {0};
    add_resting(&weights, states_of(job, cs_model_lender(job->model, layer)), &tied);
    return divided(job, &weights, 1, 1);
}

/* ---- what goes together ---- */

static int64_t gradients_below(const cs_job *job, const cs_weights *weights, uint32_t end)
{
    int64_t bytes = 0;
    for (uint32_t zero = 0; zero < end; zero++)
        bytes += weights->at[zero].dense + weights->at[zero].expert;
    return bytes * cs_model_gradient_ratio(job->model);
}

bool cs_states_fill_bucket(const cs_job *job, const cs_weights *ready)
{
    const int64_t bytes = gradients_below(job, ready, 3);
    if (job->states.bucket == 0)
        return bytes > 0 && cs_states_scattered(job, ready) > 0;
    return bytes >= job->states.bucket;
}

static bool is_gathered(const cs_job *job, const cs_weights *weights)
{
    return weights->at[3].dense + weights->at[3].expert + weights->at[3].frozen > 0 &&
           (cs_states_shards(job, false) > 1 || cs_states_shards(job, true) > 1);
}

uint32_t cs_states_unit(const cs_job *job, uint32_t stage, uint32_t end)
{
    uint32_t first = end;
    cs_weights unit = {0};
    bool complete = false;
    while (first > job->plan->stages[stage].first_layer && !complete) {
        const cs_weights one = cs_states_weights(job, stage, first - 1, first);
        const bool gathered = is_gathered(job, &one);
        if (gathered && gradients_below(job, &unit, CS_ZERO_STAGES) + unit.at[3].frozen > 0)
            break;
        cs_weights_add(&unit, &one);
        complete = gathered || cs_states_fill_bucket(job, &unit);
        first--;
    }
    return first;
}
