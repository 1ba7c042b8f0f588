/* What a planner is given: a chain of layers, and equal devices to hold them.
 *
 * The model of MadPipe (Beaumont, Eyraud-Dubois, Shilova, HAL hal-03025305, section 3): layer l
 * takes forward u_F and backward u_B, has weights W_l and hands a_l to the next layer; boundary b
 * lies between layers b - 1 and b, and is crossed by a_b bytes forward and as many backward. Here
 * layers are 0 .. L - 1, and a stage [first, end) is layers first .. end - 1, between the
 * boundaries `first` and `end`. Nothing crosses the two ends of the chain, 0 and L.
 *
 * A device holds, for each of its stages,
 *   weights    `weight_copies` times (3: two versions and an accumulator of gradients, which has
 *              more bytes where gradients are wider), and the optimizer's states;
 *   buffers    2 a_b for each of its boundaries that the next device shares: one slot a direction;
 *   activations, per active micro-batch, from the start of the stage's forward to the end of its
 *              backward: CS_KEPT_LITERAL, the inputs a_(i-1) of its layers, as the paper counts;
 *              CS_KEPT_FULL, all that its layers keep for their backward (model.h).
 * A layer that uses weights of another one (model.h, tied_to) counts a copy of them, as a stage
 * does that has only one of the two. What a layer needs only while it computes is not in these
 * sums: `memory` is what the device has less the largest of them, unless they are to be ignored.
 *
 * Replicas of a stage take micro-batches in turn, or, `shared`, each computes a share of every one
 * in the time that so many samples take.
 *
 * Everything that takes time is an integer number of picoseconds, and sums are O(1).
 */
#ifndef CS_SCHEDULES_CHAIN_H
#define CS_SCHEDULES_CHAIN_H

#include "sim/base/progress.h"
#include "sim/model/model.h"

#include <stdbool.h>

typedef enum cs_kept { CS_KEPT_FULL, CS_KEPT_LITERAL } cs_kept;

/* How a chain is made of a model. */
typedef struct cs_chain_options {
    const cs_model *model;
    uint32_t n_devices;     /* P */
    uint32_t micro_samples; /* samples of a micro-batch, as cs_model_sum takes them */
    double speed;           /* of each device; > 0 */
    int64_t memory;         /* bytes of each device; INT64_MAX: without limit */
    double bandwidth;       /* bytes/s of a message between two devices; > 0, may be infinite */
    cs_time latency;
    cs_kept kept;
    double weight_copies;   /* 3 */
    double optimizer_ratio; /* bytes of optimizer states per byte of weights, */
    double other_ratio;     /* and these more of weights that are no matrices of Muon */
    bool count_update;      /* a backward takes the update's time too; the paper leaves it out */
    bool ignore_workspace;  /* as the paper does */
    bool shared;            /* replicas share a micro-batch */
} cs_chain_options;

/* All arrays have n_layers + 1 entries. Those named `sum_` hold at l the sum over layers [0, l). */
typedef struct cs_chain {
    uint32_t n_layers, n_devices;
    int64_t memory;
    double bandwidth; /* of a message, and its latency, as they were given */
    cs_time latency;
    cs_time *sum_forward, *sum_backward;
    int64_t *sum_weights; /* one copy */
    int64_t *sum_fixed;   /* bytes held whatever is active: weights and their copies */
    int64_t *sum_kept;    /* bytes per active micro-batch */
    int64_t *boundary;    /* a_b, bytes; 0 at both ends */
    cs_time *message;     /* of a_b over a link, one way; 0 at both ends */
    cs_time **sum_shared; /* [q - 1]: of the loads of a q-th of a micro-batch, q <= n_devices; NULL
                           * where q does not divide it. Itself NULL where nothing is shared */
    const cs_progress *progress; /* of searches on this chain; NULL, unless the caller sets it */
    cs_arena arena;              /* owns the arrays */
} cs_chain;

/* Zeroed chains can be finished. */
void cs_chain_finish(cs_chain *chain);

/* CS_OVERFLOW when a sum does not fit 2^61; CS_INVALID when there is no device, no layer or no
 * bandwidth; CS_LIMIT when the largest workspace does not fit into the memory. */
CS_MUST_CHECK cs_status cs_chain_make(const cs_chain_options *options, cs_chain *chain,
                                      cs_error *error);

/* What a search does now and then: CS_INTERRUPTED when it is to end. What it finds does not depend
 * on how often. */
CS_MUST_CHECK cs_status cs_chain_step(const cs_chain *chain, const char *what, uint64_t done,
                                      uint64_t total, cs_error *error);

static inline cs_time cs_chain_forward(const cs_chain *chain, uint32_t first, uint32_t end)
{
    return chain->sum_forward[end] - chain->sum_forward[first];
}

static inline cs_time cs_chain_backward(const cs_chain *chain, uint32_t first, uint32_t end)
{
    return chain->sum_backward[end] - chain->sum_backward[first];
}

/* U(first, end): what one micro-batch takes, forward and backward. */
static inline cs_time cs_chain_load(const cs_chain *chain, uint32_t first, uint32_t end)
{
    return cs_chain_forward(chain, first, end) + cs_chain_backward(chain, first, end);
}

/* Whether a stage can have q replicas. */
static inline bool cs_chain_has_share(const cs_chain *chain, uint32_t q)
{
    return !chain->sum_shared || chain->sum_shared[q - 1];
}

/* What a stage of q replicas takes per micro-batch, in ps. */
static inline double cs_chain_replicated_load(const cs_chain *chain, uint32_t first, uint32_t end,
                                              uint32_t q)
{
    if (!chain->sum_shared)
        return (double)cs_chain_load(chain, first, end) / q;
    return (double)(chain->sum_shared[q - 1][end] - chain->sum_shared[q - 1][first]);
}

/* C(b): what one micro-batch takes of the link that boundary b crosses, both ways together. */
static inline cs_time cs_chain_link(const cs_chain *chain, uint32_t b)
{
    return 2 * chain->message[b];
}

/* M(first, end, active): bytes of a stage with so many active micro-batches and both its boundaries
 * shared with other devices. */
static inline int64_t cs_chain_bytes(const cs_chain *chain, uint32_t first, uint32_t end,
                                     int64_t active)
{
    return chain->sum_fixed[end] - chain->sum_fixed[first] +
           active * (chain->sum_kept[end] - chain->sum_kept[first]) +
           2 * (chain->boundary[first] + chain->boundary[end]);
}

/* Whether they fit the memory of a device; false also when they do not fit 64 bits. */
static inline bool cs_chain_fits(const cs_chain *chain, uint32_t first, uint32_t end,
                                 int64_t active)
{
    int64_t all;
    return !__builtin_mul_overflow(active, chain->sum_kept[end] - chain->sum_kept[first], &all) &&
           !__builtin_add_overflow(all, cs_chain_bytes(chain, first, end, 0), &all) &&
           all <= chain->memory;
}

#endif
