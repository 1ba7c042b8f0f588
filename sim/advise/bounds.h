/* Lower bounds of a candidate's time and memory, by which it may be left out unseen.
 *
 * A bound is of the simulation, not of the machine: it follows from the model's own times and sizes
 * and from the order in which schedules work, whatever messages take.
 *
 * Let X be the time of a micro-batch's forward and backward through all layers on the devices of one
 * place, F that of the forward; M micro-batches go through P pipeline ranks, rank r computes x_r of X,
 * and the sum of x_r is X. Devices compute one task at a time, at the speed of the fastest at most.
 *
 *   T1  time >= M X / P. The busiest rank computes M x_r, and the largest x_r is no less than the mean.
 *   T2  1f1b and gpipe: time >= X / (1 - (1 - 1/M)^P). Before its first forward rank r waits for that
 *       of the ranks before it, and after its last backward those have one to do, of that micro-batch:
 *       time >= x_0 + ... + x_(r-1) + M x_r for every r. Let S_r be the sum before r. As
 *       S_(r+1) = S_r + x_r <= S_r + (time - S_r) / M, S_P = X is at most time (1 - (1 - 1/M)^P).
 *   T3  zb_h1 and zb_h2, whose weight gradients may fill the end: the same with the forwards alone.
 *       With phi the least share that the forward has of any layer's time, S_(r+1) <= S_r + (time - phi
 *       S_r) / M, and so time >= phi X / (1 - (1 - phi/M)^P).
 *
 * Let S be the bytes of weights, gradients and optimizer states of all layers, as far as they rest on
 * one place, and K those that all layers keep of a micro-batch for its backward. Where rules or another
 * planner decide for single layers what is divided, S is what there is if all were.
 *
 *   M1  peak >= (S + K) / P. When the first backward of all begins, on the last rank, all layers keep
 *       what they do of its micro-batch, and no rank has less than it holds; the largest of P is no less
 *       than the mean. gpipe: (S + M K) / P, as all forwards come before.
 *   M2  1f1b: peak >= (S / n_0 + K) / H, with n_r = min(P - r, M), the forwards that rank r does
 *       before its first backward, so that it keeps n_r k_r, and H the sum of 1 / n_r: the largest of
 *       s_r + n_r k_r is no less than their mean with the weights 1 / n_r, and s_r / n_r >= s_r / n_0.
 *
 * Sizes and times are those of the model that the split gives one place; it is priced once for all
 * candidates that divide layers in the same way.
 */
#ifndef CS_ADVISE_BOUNDS_H
#define CS_ADVISE_BOUNDS_H

#include "sim/advise/candidates.h"
#include "sim/base/progress.h"

/* What a micro-batch takes of the devices of one place, all layers. */
typedef struct cs_priced {
    bool possible;          /* layers can be divided so */
    const char *why;        /* else: the message */
    double forward, passes; /* s: F; X */
    double forward_share;   /* phi */
    double dense, expert;   /* bytes of weights; */
    double gradients, frozen, gradient_ratio, optimizer_ratio;
    double kept; /* K */
} cs_priced;

typedef struct cs_bounds {
    uint32_t n_priced;
    cs_priced *priced;
    uint32_t *of; /* per candidate: which of them */
    double *time,
        *memory;  /* per candidate: s, bytes; rounded down by more than sums of doubles are off */
    double speed; /* of the fastest device */
    int64_t capacity; /* of the device with most memory; INT64_MAX: unlimited */
    cs_arena arena;
} cs_bounds;

void cs_bounds_finish(cs_bounds *bounds);

/* Of all candidates, in `jobs` threads. CS_NO_MEMORY, CS_INTERRUPTED. */
CS_MUST_CHECK cs_status cs_bounds_find(const cs_advise_base *base, const cs_candidates *candidates,
                                       uint32_t jobs, const cs_progress *progress,
                                       cs_bounds *bounds, cs_error *error);

/* Prices one split. CS_INVALID where the layers cannot be divided so. */
CS_MUST_CHECK cs_status cs_bounds_price(const cs_advise_base *base, const cs_candidate *candidate,
                                        cs_priced *priced, cs_error *error);

/* T1 to T3, and M1 and M2, of one candidate on devices of speed 1. */
double cs_bound_time(const cs_candidate *candidate, const cs_priced *priced);
double cs_bound_memory(const cs_advise_base *base, const cs_candidate *candidate,
                       const cs_priced *priced);

#endif
