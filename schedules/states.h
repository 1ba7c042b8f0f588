/* How weights, gradients and optimizer states are stored, and the exchanges of them among devices.
 *
 * Each layer has a ZeRO stage of its own, or has part of its parameters at a stage and the rest at
 * stage 0 (cs_layer_states). Weights that a layer borrows from another layer are stored as the
 * other layer's.
 *
 * Without a grid each device holds everything it uses. The places of a grid hold the same dense
 * weights along GRADIENT and the same experts along EXPERT_DATA, and may shard them (cs_states);
 * bytes that do not divide evenly are rounded up on each device. An axis of size 1 shards nothing
 * and sends nothing.
 *
 * With one micro-batch per mini-batch, each of n places thus sends 2 (n - 1)/n m with zero 0, 1 and
 * 2, and 3 (n - 1)/n m with zero 3, where weights have m bytes, and gradients too (Rajbhandari et
 * al., ZeRO, SC 2020, section 7).
 */
#ifndef CS_SCHEDULES_STATES_H
#define CS_SCHEDULES_STATES_H

#include "schedules/schedule.h"

/* Bytes of weights, by the axes over which their gradients are summed. */
typedef struct cs_weight_bytes {
    int64_t dense;  /* weights whose gradients are summed over GRADIENT */
    int64_t expert; /* weights whose gradients are summed over EXPERT_DATA */
    int64_t tensor; /* part of `dense`, summed over GRADIENT and then TENSOR */
    int64_t copied; /* another part of `dense`, summed over GRADIENT and then COPIES */
    /* additional weights without gradients, minus the bytes that narrower types save; at stage 3
     * sharded like dense weights, except `cast` */
    int64_t frozen;
    /* part of `frozen`: copies that a place makes of other weights; neither sharded nor sent */
    int64_t cast;
} cs_weight_bytes;

/* Weights of some layers, by their ZeRO stage. */
typedef struct cs_weights {
    cs_weight_bytes at[CS_ZERO_STAGES];
} cs_weights;

/* Returns the highest ZeRO stage of any layer of the job. */
uint32_t cs_states_zero(const cs_job *job);

void cs_weights_add(cs_weights *sum, const cs_weights *more);

/* Returns the weights of layers [first, end) of a stage, including its copies of other stages'
 * weights (ties.h). */
cs_weights cs_states_weights(const cs_job *job, uint32_t stage, uint32_t first, uint32_t end);

/* Returns the number of places over which dense weights, or experts, of ZeRO stage 1 and above are
 * sharded; 1: they are not sharded. */
uint32_t cs_states_shards(const cs_job *job, bool expert);

/* Returns the bytes that one of n places holds, rounded up. */
static inline int64_t cs_states_share(int64_t bytes, uint32_t n)
{
    return bytes / n + (bytes % n != 0);
}

/* Returns the bytes of optimizer states for `weights` bytes of weights, including `matrices` bytes
 * of matrices that Muon updates. */
int64_t cs_optimizer_bytes(const cs_job *job, int64_t weights, int64_t matrices);

/* Bytes of a stage that one of its devices holds during the whole run. `resting`: weights as they
 * are stored between uses, frozen ones included; `weights`: one version of the device's shard. */
typedef struct cs_residents {
    uint32_t stage;
    int64_t weights, resting, gradients, optimizer;
} cs_residents;

cs_residents cs_residents_of(const cs_job *job, uint32_t stage);

/* Returns the bytes of sharded gradients that a device holds in addition to full gradients, from
 * their reduction after the last backward to the end of the update. 0 unless `gather_once` and
 * `accumulate` are set and something is sharded
 * (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce: reduce_output). */
int64_t cs_states_reduced(const cs_job *job, uint32_t stage);

/* Returns the bytes of the copy of a state that an update makes (`update_ratio`). */
int64_t cs_states_copied(const cs_job *job, uint32_t stage);

/* Adds these residents to a device, and returns the slot of its weights. */
uint32_t cs_residents_add(cs_builder *builder, const cs_residents *of, uint32_t device);

/* Returns the host's part of a stage's update: the host's time, divided equally among the stages
 * that the stage's first device holds, rounded down to a picosecond. */
cs_time cs_states_host(const cs_job *job, uint32_t stage);

/* Returns the time to update a stage's weights on one device at speed 1: the time for its shard,
 * plus the host's part. */
cs_time cs_states_update(const cs_job *job, uint32_t stage);

/* One exchange of weights or gradients among devices; bytes as in cs_class. */
typedef struct cs_state_exchange {
    cs_kind kind;
    cs_axes_name axes;
    int64_t bytes;
    bool each; /* gradients that are scattered after each micro-batch */
} cs_state_exchange;

/* Upper limits of the number of exchanges: for weights at all ZeRO stages, and for one layer, whose
 * weights are at most at two stages. */
enum { CS_STATES_MOST = 22, CS_STATES_MOST_OF_LAYER = 10 };

/* Describes the exchanges that sum the gradients of some weights after a micro-batch, in their
 * order, ZeRO stage by ZeRO stage; returns their number. After the last micro-batch of a mini-batch
 * (`last`), each place gets the sum of its shard over all places; at stage 0, and with Muon, which
 * needs sums of whole matrices, it gets the sum of everything. After other micro-batches, only
 * gradients that are scattered each time are summed: each place gets the sum of its shard over the
 * places that share the states. */
uint32_t cs_states_reduce(const cs_job *job, const cs_weights *weights, bool last,
                          cs_state_exchange made[CS_STATES_MOST]);

/* Describe the gathers of sharded weights: at stage 3 before they are used, at stages 1 and 2 after
 * an update. They return the number of exchanges. */
uint32_t cs_states_gather(const cs_job *job, const cs_weights *weights,
                          cs_state_exchange made[CS_STATES_MOST]);
uint32_t cs_states_gather_updated(const cs_job *job, const cs_weights *weights,
                                  cs_state_exchange made[CS_STATES_MOST]);

/* Returns the bytes of narrow copies that a place makes of weights at stage 3 after gathering
 * them. */
int64_t cs_states_cast(const cs_job *job, const cs_weights *weights);

/* Whether a layer of a stage uses weights at stage 3 of an earlier layer of the stage, `*lender`.
 * In FSDP weights that several layers use belong to the root unit, which stays gathered from a
 * forward to the end of its backward, and whose gradients are scattered when they are complete
 * (torch/distributed/fsdp/_runtime_utils.py, _post_forward_reshard; _fully_shard/_fsdp_state.py,
 * _lazy_init: post_forward_mesh_info). */
bool cs_states_borrows(const cs_job *job, uint32_t stage, uint32_t layer, uint32_t *lender);

/* Whether some weights of a stage stay gathered from a forward to its backward: all weights with
 * `states.keep_gathered` or `gather_once`, otherwise those that a later layer borrows. */
bool cs_states_keeps(const cs_job *job, uint32_t stage);

/* Whether gradients of weights at this ZeRO stage are scattered after each backward of a
 * micro-batch, instead of once per mini-batch. */
bool cs_states_scatters_each(const cs_job *job, uint32_t zero);

/* Returns the bytes of full gradients of sharded weights that are scattered after each
 * micro-batch. */
int64_t cs_states_scattered(const cs_job *job, const cs_weights *weights);

/* Returns the bytes of gradients that a place sums with the same place of another stage, if a layer
 * borrows weights with `bytes` bytes of gradients from that stage (ties.h). */
int64_t cs_states_tied(const cs_job *job, uint32_t layer, int64_t bytes);

/* Whether there are enough gradients at stages 0 to 2 to fill a bucket. Gradients at stage 3 do not
 * count: they are reduced at the end of their unit. */
bool cs_states_fill_bucket(const cs_job *job, const cs_weights *ready);

/* Returns the first layer of the unit of a stage that ends before layer `end`. A unit is either a
 * layer with weights at stage 3, which are gathered together, plus the following layers without
 * weights; or a run of layers in between with at least `states.bucket` bytes of gradients. Without
 * a bucket, a unit has the gradients of one layer if they are scattered after each micro-batch, so
 * that full gradients of all layers never exist at once. Units are counted from the end of a
 * stage. */
uint32_t cs_states_unit(const cs_job *job, uint32_t stage, uint32_t end);

#endif
