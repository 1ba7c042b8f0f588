/* The first phase of MadPipe: allocations of layers to devices by dynamic programming.
 *
 * MadPipe-DP (HAL hal-03025305, section 4.2) assumes a target period T, by which it counts the
 * active micro-batches, and looks for the allocation whose largest load is least. All devices but
 * one, the normal ones, hold one stage each; the special one holds any number. Stages are chosen
 * from the end of the chain to its start. When layers [l, L) have been placed, the state is
 *   p    normal devices left;
 *   t, m what the special device has been given already: time and bytes;
 *   V    the delay from the end of the forward of layer l - 1 to the start of its backward.
 * A stage [k, l) then has g = max(1, ceil((V + U(k,l)) / T)) active micro-batches and takes, on
 *   a normal device   U(k,l) of its time, and M(k,l,g) of its memory;
 *   the special one   U(k,l) besides t, and M(k,l,g - 1) or M(k,l,g) besides m (`special`).
 * Its load, and C(k) of the boundary in front of it, are candidates for the largest load; V becomes
 * (V + U(k,l)) + C(k) where every `+` opens a new group when the sum would leave the current one:
 *   x + y = x + y when ceil(x/T) = ceil((x+y)/T), else T ceil(x/T) + y.
 * V is therefore kept as the groups of length T before the current one, and the part of it that is
 * taken.
 *
 * t, m and V are rounded to grids (madpipe.md, "Grids"). Two stages of the special device may be
 * neighbours; they are then counted as if a link lay between them.
 *
 * Only states that can be reached are visited, layer by layer, as labels in a hash table per layer.
 * Labels from which no allocation can be better than one that is known, or which cannot fit the
 * memory, are left out; that changes no result.
 */
#ifndef CS_SCHEDULES_MADPIPE_DP_H
#define CS_SCHEDULES_MADPIPE_DP_H

#include "schedules/plan/chain.h"
#include "schedules/plan/plan.h"

typedef enum cs_madpipe_rounding {
    CS_MADPIPE_UP, /* the only one that never counts less than there is */
    CS_MADPIPE_NEAREST,
    CS_MADPIPE_DOWN
} cs_madpipe_rounding;

typedef enum cs_madpipe_special {
    CS_MADPIPE_OPTIMISTIC, /* charged with g - 1, as in the paper */
    CS_MADPIPE_SAFE,       /* charged with g */
    CS_MADPIPE_NONE        /* there is none: all devices are normal, allocations contiguous */
} cs_madpipe_special;

typedef struct cs_madpipe_options {
    uint32_t loads, memories, delays; /* values of the grids of t, m and V; 2 or more */
    uint32_t rounding;                /* cs_madpipe_rounding */
    uint32_t special;                 /* cs_madpipe_special */
    uint32_t iterations;              /* K of algorithm 1; 1 or more */
    uint32_t scan;                    /* target periods that are tried besides */
} cs_madpipe_options;

/* Stages in the order of the chain, devices numbered as they first appear in it. */
typedef struct cs_madpipe_allocation {
    cs_plan plan;     /* no stages: there is no allocation */
    cs_time promised; /* the larger one of the target period and the largest load */
    cs_time target;   /* the target period that gave it */
} cs_madpipe_allocation;

/* How much a search looked at. */
typedef struct cs_madpipe_work {
    uint64_t labels; /* states that were kept */
    uint64_t stages; /* stages that were tried */
} cs_madpipe_work;

/* Zeroed allocations can be finished. */
void cs_madpipe_allocation_finish(cs_madpipe_allocation *allocation);

/* U and all C of the chain together, the upper end of target periods; CS_OVERFLOW when delays
 * within the search would not fit 64 bits. */
CS_MUST_CHECK cs_status cs_madpipe_total(const cs_chain *chain, cs_time *total, cs_error *error);

/* MadPipe-DP for one target period > 0. An allocation without stages when none fits the memory.
 * `work` is added to. */
CS_MUST_CHECK cs_status cs_madpipe_dp(const cs_chain *chain, const cs_madpipe_options *options,
                                      cs_time target, cs_madpipe_allocation *allocation,
                                      cs_madpipe_work *work, cs_error *error);

/* Distinct allocations, the least promised period first. */
typedef struct cs_madpipe_allocations {
    uint32_t n, capacity;
    cs_madpipe_allocation *all;
    uint32_t n_targets; /* that were tried */
    cs_madpipe_work work;
} cs_madpipe_allocations;

void cs_madpipe_allocations_finish(cs_madpipe_allocations *found);

/* Algorithm 1: target periods by bisection between U/P and U + sum of C. A target that gives no
 * allocation, or loads above it, is too small; from one that holds, no larger one can promise less.
 * What is found does not fall steadily as targets grow, since grids depend on them: the best over
 * all iterations counts. `scan` more targets are then spread evenly between U/P and the best
 * period. `found` is empty when nothing fits. */
CS_MUST_CHECK cs_status cs_madpipe_allocate(const cs_chain *chain,
                                            const cs_madpipe_options *options,
                                            cs_madpipe_allocations *found, cs_error *error);

#endif
