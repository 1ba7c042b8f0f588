/* First phase of MadPipe: allocates layers to devices by dynamic programming.
 *
 * MadPipe-DP (HAL hal-03025305, section 4.2) assumes a target period T, which determines the number
 * of active micro-batches, and finds the allocation with the smallest largest load. All devices but
 * one are normal and hold one stage each; the special device holds any number. Stages are chosen
 * from the end of the chain to its start. After layers [l, L) have been placed, the state is
 *   p     number of normal devices left;
 *   t, m  time and bytes already on the special device;
 *   V     delay from the end of the forward of layer l - 1 to the start of its backward.
 * A stage [k, l) then has g = max(1, ceil((V + U(k,l)) / T)) active micro-batches and needs
 *   on a normal device    time U(k,l) and memory M(k,l,g);
 *   on the special one    time U(k,l) added to t, and memory M(k,l,g - 1) or M(k,l,g) added to m
 *                         (`special`).
 * Its load, and C(k) of the boundary before it, are candidates for the largest load. V becomes
 * (V + U(k,l)) + C(k), where each `+` opens a new group if the sum would exceed the current group:
 *   x + y = x + y if ceil(x/T) = ceil((x+y)/T), else T ceil(x/T) + y.
 * So V is stored as the number of groups of length T before the current one, and the used part of
 * the current group.
 *
 * t, m and V are rounded to grids (madpipe.md, "Grids"). Two neighbouring stages may both be on the
 * special device; they are counted as if a link lay between them.
 *
 * Only reachable states are visited, layer by layer, as labels in one hash table per layer. Labels
 * that cannot lead to a better allocation than the best known one, or cannot fit the memory, are
 * discarded, which does not change the result.
 */
#ifndef CS_SCHEDULES_MADPIPE_DP_H
#define CS_SCHEDULES_MADPIPE_DP_H

#include "schedules/plan/chain.h"
#include "schedules/plan/plan.h"

typedef enum cs_madpipe_rounding {
    CS_MADPIPE_UP, /* the only rounding that never underestimates */
    CS_MADPIPE_NEAREST,
    CS_MADPIPE_DOWN
} cs_madpipe_rounding;

typedef enum cs_madpipe_special {
    CS_MADPIPE_OPTIMISTIC, /* charges g - 1 micro-batches, as in the paper */
    CS_MADPIPE_SAFE,       /* charges g micro-batches */
    CS_MADPIPE_NONE        /* no special device: all devices are normal, allocations contiguous */
} cs_madpipe_special;

typedef struct cs_madpipe_options {
    uint32_t loads, memories, delays; /* number of grid values of t, m and V; >= 2 */
    uint32_t rounding;                /* a cs_madpipe_rounding */
    uint32_t special;                 /* a cs_madpipe_special */
    uint32_t iterations;              /* number of iterations, K of algorithm 1; >= 1 */
    uint32_t scan;                    /* number of additional target periods to try */
} cs_madpipe_options;

/* Stages in the order of the chain; devices are numbered in order of first use. */
typedef struct cs_madpipe_allocation {
    cs_plan plan;     /* the plan; without stages: there is no allocation */
    cs_time promised; /* the larger of the target period and the largest load */
    cs_time target;   /* target period that gave this allocation */
} cs_madpipe_allocation;

/* Counters of the work of a search. */
typedef struct cs_madpipe_work {
    uint64_t labels; /* number of states kept */
    uint64_t stages; /* number of stages tried */
} cs_madpipe_work;

/* Allowed on a zeroed struct. */
void cs_madpipe_allocation_finish(cs_madpipe_allocation *allocation);

/* Computes the sum of U and all C of the chain, the upper end of target periods. CS_OVERFLOW if
 * delays within the search would overflow 64 bits. */
CS_MUST_CHECK cs_status cs_madpipe_total(const cs_chain *chain, cs_time *total, cs_error *error);

/* Runs MadPipe-DP for one target period > 0. The allocation has no stages if none fits the memory.
 * Adds to `work`. */
CS_MUST_CHECK cs_status cs_madpipe_dp(const cs_chain *chain, const cs_madpipe_options *options,
                                      cs_time target, cs_madpipe_allocation *allocation,
                                      cs_madpipe_work *work, cs_error *error);

/* Distinct allocations, sorted by promised period. */
typedef struct cs_madpipe_allocations {
    uint32_t n, capacity;
    cs_madpipe_allocation *all;
    uint32_t n_targets; /* number of target periods tried */
    cs_madpipe_work work;
} cs_madpipe_allocations;

void cs_madpipe_allocations_finish(cs_madpipe_allocations *found);

/* Runs algorithm 1: bisection of target periods between U/P and U + sum of C. A target without an
 * allocation, or with loads above it, is too small; if a target holds, no larger target promises
 * less. Results are not monotonic in the target because the grids depend on it, so the best over
 * all iterations counts. Then tries `scan` targets spread evenly between U/P and the best period.
 * `found` is empty if nothing fits. */
CS_MUST_CHECK cs_status cs_madpipe_allocate(const cs_chain *chain,
                                            const cs_madpipe_options *options,
                                            cs_madpipe_allocations *found, cs_error *error);

#endif
