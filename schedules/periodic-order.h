/* The operations of a periodic pattern, in the order of their starts, period after period. Internal
 * to periodic.c.
 *
 * Among operations that start at the same instant, those without duration come first, then earlier
 * micro-batches, then earlier operations of a micro-batch. This is a total order of all starts that
 * agrees with all dependencies: devices and links that keep it never deadlock, however long
 * operations take.
 */
#ifndef CS_SCHEDULES_PERIODIC_ORDER_H
#define CS_SCHEDULES_PERIODIC_ORDER_H

#include "schedules/plan/pattern.h"

typedef struct cs_periodic_op {
    uint32_t stage;
    cs_pattern_kind kind;
    /* number of earlier operations of a micro-batch: forward, message, forward, ... */
    uint32_t place;
    uint32_t device; /* device that computes or sends */
    uint32_t peer;   /* device that receives; equal to `device` for computations */
    cs_time start;   /* start within a period, in [0, period) */
    int64_t shift;
    cs_time first; /* start for micro-batch 0, relative to its first forward */
    cs_time takes; /* duration of the operation, from the chain */
} cs_periodic_op;

typedef struct cs_periodic_order {
    uint32_t n;
    cs_periodic_op *ops; /* in the order of their starts within a period */
    int64_t least_shift, most_shift;
    cs_time period;
    cs_time latency; /* time from the start of a micro-batch to its end */
} cs_periodic_order;

/* Makes the order; `arena` owns its array. CS_INVALID if an operation starts before its inputs are
 * ready; CS_OVERFLOW if times of a micro-batch overflow. Does not check for overlapping
 * operations. */
CS_MUST_CHECK cs_status cs_periodic_order_make(const cs_chain *chain, const cs_plan *plan,
                                               const cs_pattern *pattern, cs_arena *arena,
                                               cs_periodic_order *order, cs_error *error);

/* Returns the largest number of active micro-batches of a stage if its device keeps the order. */
int64_t cs_periodic_order_active(const cs_periodic_order *order, uint32_t stage);

#endif
