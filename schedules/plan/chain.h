/* Input of a planner: a chain of layers, and equal devices.
 *
 * The model of MadPipe (Beaumont, Eyraud-Dubois, Shilova, HAL hal-03025305, section 3): layer l has
 * forward time u_F, backward time u_B, weights W_l, and passes a_l to the next layer. Boundary b
 * lies between layers b - 1 and b; a_b bytes cross it forward and the same number backward. Here
 * layers are 0 to L - 1, and a stage [first, end) is layers first to end - 1, between the
 * boundaries `first` and `end`. Nothing crosses the two ends of the chain, 0 and L.
 *
 * Memory of a device, for each of its stages:
 *   weights      `weight_copies` times (3: two versions and an accumulator of gradients, which has
 *                more bytes if gradients are wider), and optimizer states;
 *   buffers      2 a_b for each boundary shared with another device: one per direction;
 *   activations  per active micro-batch, from the start of the stage's forward to the end of its
 *                backward. CS_KEPT_LITERAL: the inputs a_(i-1) of its layers, as in the paper;
 *                CS_KEPT_FULL: all activations saved for backward (model.h).
 * A layer with another layer's weights (model.h, tied_to) counts a copy of them, because a stage
 * that has only one of the two layers needs one. Workspaces of layers are not in these sums:
 * `memory` is the device's memory minus the largest workspace, unless workspaces are ignored.
 *
 * Replicas of a stage take turns with micro-batches. If they are `shared`, each computes a share of
 * every micro-batch, in the time that its number of samples takes.
 *
 * All times are whole picoseconds, and sums take O(1).
 */
#ifndef CS_SCHEDULES_CHAIN_H
#define CS_SCHEDULES_CHAIN_H

#include "sim/base/progress.h"
#include "sim/model/model.h"

#include <stdbool.h>

typedef enum cs_kept { CS_KEPT_FULL, CS_KEPT_LITERAL } cs_kept;

/* Options for making a chain from a model. */
typedef struct cs_chain_options {
    const cs_model *model;
    uint32_t n_devices;     /* number of devices, P */
    uint32_t micro_samples; /* samples of a micro-batch, as in cs_model_sum */
    double speed;           /* speed of each device; > 0 */
    int64_t memory;         /* memory of each device, bytes; INT64_MAX: unlimited */
    /* bandwidth of a message between two devices, bytes/s; > 0, may be infinite */
    double bandwidth;
    cs_time latency;
    cs_kept kept;
    double weight_copies;   /* copies of the weights that a device holds; default 3 */
    double optimizer_ratio; /* bytes of optimizer states per byte of weights */
    double other_ratio;     /* additional bytes per byte of weights that Muon does not update */
    /* whether the update's time counts as part of a backward; the paper omits it */
    bool count_update;
    bool ignore_workspace; /* whether to ignore workspaces, as the paper does */
    bool shared;           /* whether replicas share a micro-batch */
} cs_chain_options;

/* All arrays have n_layers + 1 entries. Arrays named `sum_` hold at l the sum over layers [0,
 * l). */
typedef struct cs_chain {
    uint32_t n_layers, n_devices;
    int64_t memory;
    double bandwidth; /* bandwidth and latency of a message, as given */
    cs_time latency;
    cs_time *sum_forward, *sum_backward;
    int64_t *sum_weights; /* bytes of one copy of the weights */
    /* bytes that do not depend on active micro-batches: weights and their copies */
    int64_t *sum_fixed;
    int64_t *sum_kept; /* bytes of saved activations per active micro-batch */
    int64_t *boundary; /* size of the message, a_b, bytes; 0 at both ends */
    cs_time *message;  /* time of a_b over a link, one way; 0 at both ends */
    /* [q - 1]: loads of 1/q of a micro-batch, q <= n_devices; NULL if q does not divide it. The
     * whole array is NULL if replicas do not share */
    cs_time **sum_shared;
    /* progress of searches on this chain; NULL unless the caller sets it */
    const cs_progress *progress;
    cs_arena arena; /* memory of the arrays */
} cs_chain;

/* Allowed on a zeroed struct. */
void cs_chain_finish(cs_chain *chain);

/* Makes a chain. Errors: CS_OVERFLOW if a sum exceeds 2^61; CS_INVALID without a device, a layer or
 * bandwidth; CS_LIMIT if the largest workspace does not fit the memory. */
CS_MUST_CHECK cs_status cs_chain_make(const cs_chain_options *options, cs_chain *chain,
                                      cs_error *error);

/* Reports progress of a search; CS_INTERRUPTED if it must end. How often it is called does not
 * change the result. */
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

/* Returns U(first, end), the time of one micro-batch, forward and backward. */
static inline cs_time cs_chain_load(const cs_chain *chain, uint32_t first, uint32_t end)
{
    return cs_chain_forward(chain, first, end) + cs_chain_backward(chain, first, end);
}

/* Whether a stage can have q replicas. */
static inline bool cs_chain_has_share(const cs_chain *chain, uint32_t q)
{
    return !chain->sum_shared || chain->sum_shared[q - 1];
}

/* Returns the time per micro-batch of a stage with q replicas, ps. */
static inline double cs_chain_replicated_load(const cs_chain *chain, uint32_t first, uint32_t end,
                                              uint32_t q)
{
    if (!chain->sum_shared)
        return (double)cs_chain_load(chain, first, end) / q;
    return (double)(chain->sum_shared[q - 1][end] - chain->sum_shared[q - 1][first]);
}

/* Returns C(b), the time of one micro-batch on the link of boundary b, both directions together. */
static inline cs_time cs_chain_link(const cs_chain *chain, uint32_t b)
{
    return 2 * chain->message[b];
}

/* Returns M(first, end, active), the bytes of a stage with `active` active micro-batches whose
 * boundaries are both shared with other devices. */
static inline int64_t cs_chain_bytes(const cs_chain *chain, uint32_t first, uint32_t end,
                                     int64_t active)
{
    return chain->sum_fixed[end] - chain->sum_fixed[first] +
           active * (chain->sum_kept[end] - chain->sum_kept[first]) +
           2 * (chain->boundary[first] + chain->boundary[end]);
}

/* Whether these bytes fit the memory of a device; false if they overflow 64 bits. */
static inline bool cs_chain_fits(const cs_chain *chain, uint32_t first, uint32_t end,
                                 int64_t active)
{
    int64_t all;
    return !__builtin_mul_overflow(active, chain->sum_kept[end] - chain->sum_kept[first], &all) &&
           !__builtin_add_overflow(all, cs_chain_bytes(chain, first, end, 0), &all) &&
           all <= chain->memory;
}

#endif
