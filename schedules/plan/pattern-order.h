/* The order of a periodic pattern's operations, separate from their times.
 *
 * A micro-batch passes the operations of a plan in one chain: forward, message, forward, ..., last
 * forward, last backward, message, ..., first backward. Let x_o be the time at which operation o
 * processes micro-batch 0, and d_o its duration. Two operations u, v of one device or link never
 * overlap in a pattern of period T if and only if there is an integer k(u, v) with
 *
 *     x_u + d_u + k T  <=  x_v   and   x_v + d_v  <=  x_u + (k + 1) T:
 *
 * between the end of u and the start of v there are k whole periods. These `laps` contain all
 * information of order and shifts; k(v, u) = -1 - k(u, v). They also determine the memory: when
 * stage r starts a forward, stage s of the same device has k(F_s, F_r) - k(B_s, F_r) active
 * micro-batches (starts so far minus ends so far, with k(o, o) = 0).
 *
 * With given laps, all other constraints are differences of times, so the smallest T is the largest
 * ratio of time to laps over the cycles of a graph. Longer periods are possible with the same laps:
 * with times in units of T, longer periods relax every constraint.
 */
#ifndef CS_SCHEDULES_PATTERN_ORDER_H
#define CS_SCHEDULES_PATTERN_ORDER_H

#include "schedules/plan/pattern.h"

typedef struct cs_order_op {
    uint32_t stage;
    cs_pattern_kind kind;
    cs_time duration;
    uint64_t resource; /* a device, or the link between two devices */
} cs_order_op;

/* Kinds of laps between two operations u < v of one resource. If one of them takes time, they
 * exclude each other. If none does, the laps only count active micro-batches: k(u, v) is the number
 * of whole periods between two starts, or from a forward to the end of a backward; a period that
 * ends exactly then is not counted. In all cases
 *     x_v >= x_u + time_uv + k(u, v) T   and   x_u >= x_v + time_vu + k(v, u) T.
 *
 * A micro-batch that is active in a stage also counts in the earlier stages on the same device. If
 * the model ends in layers that take no time, the micro-batch may have left them already; in that
 * case the memory is not always used to the last byte. */
typedef enum cs_order_laps { CS_LAPS_EXCLUSIVE, CS_LAPS_STARTS, CS_LAPS_TO_END } cs_order_laps;

typedef struct cs_order_pair {
    uint32_t u, v;
    cs_order_laps laps;
    cs_time time_uv, time_vu;
} cs_order_pair;

/* A device; its stages are consecutive in cs_order.stages. */
typedef struct cs_order_device {
    /* bytes left for activations: memory minus weights and buffers; may be negative */
    int64_t room;
    uint32_t first, end; /* the device's stages, in ascending order: order.stages[first .. end) */
} cs_order_device;

typedef struct cs_order {
    const cs_chain *chain;
    const cs_plan *plan;
    uint32_t n_ops, n_pairs, n_devices;
    cs_order_op *ops;     /* operations, in the order in which each micro-batch passes them */
    cs_order_pair *pairs; /* pairs of operations, sorted by u, then by v */
    cs_time *before;      /* [n_ops + 1]: sum of the durations of all earlier operations */
    /* [n_stages * CS_PATTERN_KINDS]: number of the operation; invalid for messages that do not
     * exist */
    uint32_t *at;
    uint32_t *stages; /* [n_stages]: stages, sorted by device */
    int64_t *kept;    /* [n_stages]: bytes per active micro-batch */
    cs_order_device *devices;
    int64_t *laps;                /* [n_ops * n_ops]: k(u, v) in row u, column v */
    cs_time *x;                   /* [n_ops]: time of each operation for micro-batch 0 */
    struct cs_order_graph *graph; /* scratch memory of cs_order_tighten */
    cs_time *periods;             /* list of periods made by cs_order_periods */
    cs_arena arena;
} cs_order;

/* Allowed on a zeroed struct. `chain` and `plan` must outlive the order. */
void cs_order_finish(cs_order *order);

/* Makes the order of a plan, without laps. CS_INVALID if a stage has several devices; CS_OVERFLOW
 * if the time of one micro-batch is so long (weeks) that a period with shifts does not fit
 * cs_time. */
CS_MUST_CHECK cs_status cs_order_make(const cs_chain *chain, const cs_plan *plan, cs_order *order,
                                      cs_error *error);

/* Returns a lower bound of the period of any pattern of the plan, from the largest load of a device
 * or link and from the memory. CS_TIME_MAX: no pattern exists. */
cs_time cs_order_bound(const cs_order *order);

/* Returns how uneven the loads of devices and links are: the sum of their squares, in seconds
 * squared. */
double cs_order_spread(const cs_order *order);

/* Returns the bytes of the fullest device if micro-batches are processed one after the other. Every
 * pattern needs at least as much. If the bytes fit the memory, a pattern exists whose period is the
 * time of one micro-batch plus 1 ps. */
int64_t cs_order_need(const cs_order *order, uint32_t *device);

/* Returns the largest number of the stage's micro-batches that fit its device with any period. */
int64_t cs_order_most_active(const cs_order *order, uint32_t stage);

/* Sets k(u, v) and the matching k(v, u). */
void cs_order_set(cs_order *order, uint32_t u, uint32_t v, int64_t laps);

/* Sets the laps from the shifts of a pattern and the order of its starts. */
void cs_order_from_pattern(cs_order *order, const cs_pattern *pattern);

/* Whether all devices have enough memory for these laps. */
bool cs_order_fits(const cs_order *order);

/* Returns the bytes of the fullest device with these laps. */
int64_t cs_order_bytes(const cs_order *order);

/* Finds the smallest period for these laps, exactly, in whole picoseconds. order->x gets the
 * earliest times of all operations; the first operation is at 0. Returns false if no period is
 * possible. */
bool cs_order_tighten(cs_order *order, cs_time *period);

/* Places the operations one by one in a given period, from the middle of the chain outwards, each
 * as close to its neighbour in the chain as its resource allows: forwards from the last to the
 * first, each as late as possible; backwards as early as possible. For a contiguous plan the result
 * is 1F1B*. Sets the laps. Does not check the memory. Returns false if an operation has no
 * place. */
bool cs_order_greedy(cs_order *order, cs_time period);

/* Fills order->periods with the periods that are worth a call of cs_order_greedy, in ascending
 * order: `lower`, and each higher period that changes the groups of a contiguous plan. Returns
 * their number. */
size_t cs_order_periods(const cs_order *order, cs_time lower);

/* Tries cs_order_greedy with periods from `lower` on, tightens the results, and sets the laps and
 * period of the best one. Returns false if none fits the memory. */
bool cs_order_construct(cs_order *order, cs_time lower, cs_time *period);

/* Makes the pattern with the times order->x; its first operation has start 0 and shift 0. */
CS_MUST_CHECK cs_status cs_order_pattern(const cs_order *order, cs_time period, cs_pattern *pattern,
                                         cs_error *error);

#endif
