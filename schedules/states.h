/* Where weights, their gradients and the optimizer's states rest, and what devices hand each other
 * of them.
 *
 * Each layer has a ZeRO stage of its own, or a part of its parameters at a stage and the rest at
 * stage 0 (cs_layer_states). Weights that a layer uses of another one rest as the other's do.
 *
 * Without a grid each device holds all that it uses. The places of a grid hold the same dense
 * weights along GRADIENT and the same experts along EXPERT_DATA, and may divide what rests there
 * (cs_states); what does not divide is rounded up on each device. An axis of size 1 divides
 * nothing, and nothing is sent.
 *
 * Per mini-batch of one micro-batch each of n places so sends, of m bytes of weights and gradients,
 * 2 (n - 1)/n m with zero 0, 1 and 2, and 3 (n - 1)/n m with zero 3 (Rajbhandari et al., ZeRO, SC
 * 2020, section 7).
 */
#ifndef CS_SCHEDULES_STATES_H
#define CS_SCHEDULES_STATES_H

#include "schedules/schedule.h"

/* Bytes of weights, by what their gradients are summed over. */
typedef struct cs_weight_bytes {
    int64_t dense;  /* GRADIENT */
    int64_t expert; /* EXPERT_DATA */
    int64_t tensor; /* GRADIENT, and then TENSOR: a part of `dense` */
    int64_t copied; /* GRADIENT, and then COPIES: another part of it */
    int64_t frozen; /* besides, of no gradients, less what narrower ones take less; divided as
                     * dense ones at stage 3, but for */
    int64_t cast;   /* what a place makes of the others: it is neither divided nor sent */
} cs_weight_bytes;

/* Those of some layers, by their ZeRO stage. */
typedef struct cs_weights {
    cs_weight_bytes at[CS_ZERO_STAGES];
} cs_weights;

/* The highest stage of any layer of the job. */
uint32_t cs_states_zero(const cs_job *job);

void cs_weights_add(cs_weights *sum, const cs_weights *more);

/* Of layers [first, end) of a stage, copies of weights of other stages included (ties.h). */
cs_weights cs_states_weights(const cs_job *job, uint32_t stage, uint32_t first, uint32_t end);

/* Over how many places dense weights, or experts, of stage 1 and above are divided; 1: they are
 * whole. */
uint32_t cs_states_shards(const cs_job *job, bool expert);

/* What one of n places holds of so many bytes. */
static inline int64_t cs_states_share(int64_t bytes, uint32_t n)
{
    return bytes / n + (bytes % n != 0);
}

/* Optimizer states of `weights` bytes of weights, of which so many are matrices of Muon. */
int64_t cs_optimizer_bytes(const cs_job *job, int64_t weights, int64_t matrices);

/* What a device that holds a stage has of it for the whole run, in bytes: `resting` is what there
 * is of weights, those that are not trained included, and `weights` is a version of its share. */
typedef struct cs_residents {
    uint32_t stage;
    int64_t weights, resting, gradients, optimizer;
} cs_residents;

cs_residents cs_residents_of(const cs_job *job, uint32_t stage);

/* With `gather_once` and `accumulate`: the shares of gradients that a device has from their
 * reduction behind the last backward to the end of the update, besides the whole ones; nothing
 * where nothing is divided (torch/
 * distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce: reduce_output). */
int64_t cs_states_reduced(const cs_job *job, uint32_t stage);

/* The copy of a state that an update makes (`update_ratio`). */
int64_t cs_states_copied(const cs_job *job, uint32_t stage);

/* Adds it to a device, and returns the slot of its weights. */
uint32_t cs_residents_add(cs_builder *builder, const cs_residents *of, uint32_t device);

/* What of a stage's update is the host's: an equal part for each stage that its first device holds,
 * rounded down to a picosecond. */
cs_time cs_states_host(const cs_job *job, uint32_t stage);

/* What updating a stage's weights takes a device, at speed 1: that of its shard, and the host's. */
cs_time cs_states_update(const cs_job *job, uint32_t stage);

/* One thing that devices hand each other; bytes as in cs_class. */
typedef struct cs_state_exchange {
    cs_kind kind;
    cs_axes_name axes;
    int64_t bytes;
    bool each; /* of gradients that are scattered after each micro-batch */
} cs_state_exchange;

/* Of weights at all stages; and of one layer, whose weights are at two. */
enum { CS_STATES_MOST = 22, CS_STATES_MOST_OF_LAYER = 10 };

/* The sums of the gradients of some weights behind a micro-batch, stage by stage and in their
 * order; returns how many there are. With Muon, which needs the sums of whole matrices, all are as
 * at stage 0. Behind the last one of a mini-batch each place gets the sum of its shard, or all of
 * it at stage 0, over all places; behind the others, of what is scattered each time, that of its
 * shard over the places that share the states. */
uint32_t cs_states_reduce(const cs_job *job, const cs_weights *weights, bool last,
                          cs_state_exchange made[CS_STATES_MOST]);

/* The gathers that make divided weights whole: of stage 3 before they are used, and of stages 1 and
 * 2 after an update. */
uint32_t cs_states_gather(const cs_job *job, const cs_weights *weights,
                          cs_state_exchange made[CS_STATES_MOST]);
uint32_t cs_states_gather_updated(const cs_job *job, const cs_weights *weights,
                                  cs_state_exchange made[CS_STATES_MOST]);

/* Bytes of narrow copies that a place makes of weights at stage 3 when it has gathered them. */
int64_t cs_states_cast(const cs_job *job, const cs_weights *weights);

/* Whether a layer of a stage uses weights at stage 3 of an earlier layer of the stage, `*lender`.
 * What several layers use is of one unit in FSDP, its root, which stays gathered from a forward to
 * the end of its backward, and whose gradients are scattered when all of them are there
 * (torch/distributed/fsdp/_runtime_utils.py, _post_forward_reshard; _fully_shard/_fsdp_state.py,
 * _lazy_init: post_forward_mesh_info). */
bool cs_states_borrows(const cs_job *job, uint32_t stage, uint32_t layer, uint32_t *lender);

/* Whether some weights of a stage stay gathered from a forward to its backward: all of them with
 * `states.keep_gathered` or `gather_once`, or those that a later layer borrows. */
bool cs_states_keeps(const cs_job *job, uint32_t stage);

/* Gradients of weights at this stage are scattered after each backward of a micro-batch, not once
 * per mini-batch. */
bool cs_states_scatters_each(const cs_job *job, uint32_t zero);

/* Gradients of divided weights, whole, that are scattered after each micro-batch. */
int64_t cs_states_scattered(const cs_job *job, const cs_weights *weights);

/* What a place sums, of so many bytes of gradients that a layer uses of another one's weights, with
 * the same place of the other's stage (ties.h). */
int64_t cs_states_tied(const cs_job *job, uint32_t layer, int64_t bytes);

/* Whether gradients at stages 0 to 2 are as many as are reduced together; those at stage 3 are
 * reduced at the end of their unit. */
bool cs_states_fill_bucket(const cs_job *job, const cs_weights *ready);

/* A unit is a run of layers: one that has weights at stage 3, which are gathered together, with
 * those without weights behind it; or layers between such ones, that have `states.bucket` bytes of
 * gradients or more. Without a bucket, gradients that are scattered after each micro-batch are one
 * layer's, so that they are never there of all layers. Units are counted from the end of a stage.
 * Returns the first layer of the unit of a stage that ends before layer `end`. */
uint32_t cs_states_unit(const cs_job *job, uint32_t stage, uint32_t end);

#endif
