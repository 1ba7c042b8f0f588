/* Where weights, their gradients and the optimizer's states rest, and what devices hand each other
 * of them.
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

/* Bytes of weights of some layers, by what their gradients are summed over. */
typedef struct cs_weights {
    int64_t dense;  /* GRADIENT */
    int64_t expert; /* EXPERT_DATA */
    int64_t tensor; /* GRADIENT, and then TENSOR: a part of `dense` */
} cs_weights;

/* Of layers [first, end) of a stage, copies of weights of other stages included (ties.h). */
cs_weights cs_states_weights(const cs_job *job, uint32_t stage, uint32_t first, uint32_t end);

/* Over how many places dense weights, or experts, are divided; 1: they are whole. */
uint32_t cs_states_shards(const cs_job *job, bool expert);

/* What one of n places holds of so many bytes. */
static inline int64_t cs_states_share(int64_t bytes, uint32_t n)
{
    return bytes / n + (bytes % n != 0);
}

/* Optimizer states of `weights` bytes of weights. */
int64_t cs_optimizer_bytes(const cs_job *job, int64_t weights);

/* Adds what a device that holds a stage has of it for the whole run, and returns the slot of its
 * weights. */
uint32_t cs_residents_add(cs_builder *builder, const cs_job *job, uint32_t stage, uint32_t device);

/* What updating a stage's weights takes a device, at speed 1: that of its shard. */
cs_time cs_states_update(const cs_job *job, uint32_t stage);

/* One thing that devices hand each other; bytes as in cs_class. */
typedef struct cs_state_exchange {
    cs_kind kind;
    cs_axes_name axes;
    int64_t bytes;
} cs_state_exchange;

enum { CS_STATES_MOST = 5 };

/* The sums of the gradients of some weights, in their order; returns how many there are. With `scatter`
 * each place gets the sum of its shard over the places that share the states; with `finish` also over all
 * others. */
uint32_t cs_states_reduce(const cs_job *job, const cs_weights *weights, bool scatter, bool finish,
                          cs_state_exchange made[CS_STATES_MOST]);

/* The gathers that make divided weights whole. */
uint32_t cs_states_gather(const cs_job *job, const cs_weights *weights,
                          cs_state_exchange made[CS_STATES_MOST]);

/* Gradients of divided weights are scattered after each backward of a micro-batch, not once per
 * mini-batch. */
bool cs_states_scatters_each(const cs_job *job);

/* Layers whose gradients are reduced together, and with zero 3 whose weights are gathered together,
 * are a unit: a run of layers that have `states.bucket` bytes of gradients or more, or with zero 3 any.
 * Units are counted from the end of a stage. Returns the first layer of the unit of a stage that
 * ends before layer `end`. */
uint32_t cs_states_unit(const cs_job *job, uint32_t stage, uint32_t end);

#endif
