/* The order of a periodic pattern, apart from its times.
 *
 * A micro-batch meets the operations of a plan in one chain: forward, message, forward, ..., last
 * forward, last backward, message, ..., first backward. Let x_o be the time at which operation o
 * does micro-batch 0 and d_o its duration. Two operations u, v of one device or link never overlap
 * in a pattern of period T exactly when there is a whole number k(u, v) with
 *
 *     x_u + d_u + k T  <=  x_v   and   x_v + d_v  <=  x_u + (k + 1) T:
 *
 * between the end of u and the start of v lie k whole periods. These `laps` are all that order and
 * shifts have to say; k(v, u) = -1 - k(u, v). They also say what is in memory: when stage r starts
 * a forward, stage s of the same device has k(F_s, F_r) - k(B_s, F_r) active micro-batches (starts
 * so far less ends so far, with k(o, o) = 0).
 *
 * For given laps all else are differences of times, so the smallest T is the largest ratio of time
 * to laps over the cycles of a graph. Longer periods are possible with the same laps: with times
 * in units of T every condition only gets looser.
 */
#ifndef CS_SCHEDULES_PATTERN_ORDER_H
#define CS_SCHEDULES_PATTERN_ORDER_H

#include "schedules/plan/pattern.h"

typedef struct cs_order_op {
    uint32_t stage;
    cs_pattern_kind kind;
    cs_time duration;
    uint64_t resource; /* a device, or the link between two */
} cs_order_op;

/* Laps between two operations u < v of one resource exist where one takes time, so that they
 * exclude each other. Where none does, they only count what is in memory: k(u, v) is the number of
 * whole periods between two starts, or from a forward to the end of a backward, where one period
 * just filled counts as none. In all cases
 *     x_v >= x_u + time_uv + k(u, v) T   and   x_u >= x_v + time_vu + k(v, u) T.
 *
 * A micro-batch that is active in a stage counts in the stages before it too, on the same device.
 * It may not be there any more if the model ends in layers without any time: the memory is then not
 * always used to the last byte. */
typedef enum cs_order_laps { CS_LAPS_EXCLUSIVE, CS_LAPS_STARTS, CS_LAPS_TO_END } cs_order_laps;

typedef struct cs_order_pair {
    uint32_t u, v;
    cs_order_laps laps;
    cs_time time_uv, time_vu;
} cs_order_pair;

/* What a device holds; rows of `cs_order.stages`. */
typedef struct cs_order_device {
    int64_t room; /* bytes for activations: memory less weights and buffers; may be negative */
    uint32_t first, end; /* its stages: order.stages[first .. end), rising */
} cs_order_device;

typedef struct cs_order {
    const cs_chain *chain;
    const cs_plan *plan;
    uint32_t n_ops, n_pairs, n_devices;
    cs_order_op *ops;     /* in the order in which a micro-batch meets them */
    cs_order_pair *pairs; /* by u, then v */
    cs_time *before;      /* [n_ops + 1]: durations of the operations before each, together */
    uint32_t *at;         /* [n_stages * CS_PATTERN_KINDS]: the operation; messages may have none */
    uint32_t *stages;     /* [n_stages], by device */
    int64_t *kept;        /* [n_stages]: bytes per active micro-batch */
    cs_order_device *devices;
    int64_t *laps;                /* [n_ops * n_ops], row u column v: k(u, v) */
    cs_time *x;                   /* [n_ops] */
    struct cs_order_graph *graph; /* scratch */
    cs_time *periods;             /* of cs_order_periods */
    cs_arena arena;
} cs_order;

/* Zeroed ones can be finished. `chain` and `plan` must live on. */
void cs_order_finish(cs_order *order);

/* CS_INVALID when a stage has several devices; CS_OVERFLOW when one micro-batch after the other
 * would take so long (weeks) that a period with shifts does not fit cs_time. */
CS_MUST_CHECK cs_status cs_order_make(const cs_chain *chain, const cs_plan *plan, cs_order *order,
                                      cs_error *error);

/* No pattern of the plan has a smaller period: the largest load of a device or link, and what the
 * memory asks for. CS_TIME_MAX: there is no pattern at all. */
cs_time cs_order_bound(const cs_order *order);

/* How uneven the loads of devices and links are: the sum of their squares, in seconds squared. */
double cs_order_spread(const cs_order *order);

/* Bytes of the fullest device when one micro-batch is processed after the other; less cannot be. If
 * they fit the memory there is a pattern: one micro-batch after the other, and 1 ps. */
int64_t cs_order_need(const cs_order *order, uint32_t *device);

/* At most so many micro-batches of the stage fit its device, whatever the period. */
int64_t cs_order_most_active(const cs_order *order, uint32_t stage);

/* Sets k(u, v), and k(v, u) with it. */
void cs_order_set(cs_order *order, uint32_t u, uint32_t v, int64_t laps);

/* The laps of a pattern, from its shifts and the order of its starts. */
void cs_order_from_pattern(cs_order *order, const cs_pattern *pattern);

/* Whether the memory of every device suffices with these laps. */
bool cs_order_fits(const cs_order *order);

/* Bytes of the fullest device with these laps: what memory they need. */
int64_t cs_order_bytes(const cs_order *order);

/* The smallest period, in whole picoseconds, for these laps; order->x gets the earliest times of
 * all operations after the first, which is at 0. Exact. False when no period will do. */
bool cs_order_tighten(cs_order *order, cs_time *period);

/* Places the operations one by one, from the middle of the chain outwards, each as near to the one
 * before as its resource allows in a period `period`: forwards from the last one back, as late as
 * possible, backwards as early as possible. On a contiguous plan this is 1F1B*. Sets the laps;
 * false when an operation finds no place. Memory is not looked at. */
bool cs_order_greedy(cs_order *order, cs_time period);

/* Fills order->periods with those for which cs_order_greedy is worth a call: `lower`, and above it
 * what changes the groups of a contiguous plan, rising. Returns how many. */
size_t cs_order_periods(const cs_order *order, cs_time lower);

/* The best of cs_order_greedy over periods from `lower` on, tightened: its laps and its period;
 * false when none fits the memory. */
bool cs_order_construct(cs_order *order, cs_time lower, cs_time *period);

/* A pattern of the times order->x; the first operation has start 0 and shift 0. */
CS_MUST_CHECK cs_status cs_order_pattern(const cs_order *order, cs_time period, cs_pattern *pattern,
                                         cs_error *error);

#endif
