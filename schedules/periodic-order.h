/* The operations of a periodic pattern in the order in which they start, period after period.
 * Internal to periodic.c.
 *
 * Where several start at one instant, those that take no time come first, then the earlier
 * micro-batch, then the earlier operation of a micro-batch. All starts of all periods are then in
 * one total order, which no operation and nothing that it waits for contradict: a device or a link
 * that keeps it never waits in a circle, whatever the operations take.
 */
#ifndef CS_SCHEDULES_PERIODIC_ORDER_H
#define CS_SCHEDULES_PERIODIC_ORDER_H

#include "schedules/plan/pattern.h"

typedef struct cs_periodic_op {
    uint32_t stage;
    cs_pattern_kind kind;
    uint32_t place;  /* operations of a micro-batch before it: forward, message, forward, ... */
    uint32_t device; /* that computes or sends */
    uint32_t peer;   /* that receives, else equal to device */
    cs_time start;   /* in [0, period) */
    int64_t shift;
    cs_time first; /* start for micro-batch 0, from that of the first forward on */
    cs_time takes; /* as the chain says */
} cs_periodic_op;

typedef struct cs_periodic_order {
    uint32_t n;
    cs_periodic_op *ops; /* in the order of their starts within a period */
    int64_t least_shift, most_shift;
    cs_time period;
    cs_time latency; /* from the start of a micro-batch to its end */
} cs_periodic_order;

/* `arena` owns the array. CS_INVALID when an operation does not come after what it waits for;
 * CS_OVERFLOW when the times of a micro-batch do not fit. Whether operations overlap is not looked
 * at. */
CS_MUST_CHECK cs_status cs_periodic_order_make(const cs_chain *chain, const cs_plan *plan,
                                               const cs_pattern *pattern, cs_arena *arena,
                                               cs_periodic_order *order, cs_error *error);

/* Micro-batches of a stage that are active at once, at most, when its device keeps the order. */
int64_t cs_periodic_order_active(const cs_periodic_order *order, uint32_t stage);

#endif
