#include "schedules/periodic-order.h"

#include <stdlib.h>

static bool is_message(cs_pattern_kind kind)
{
    return kind == CS_PATTERN_SEND || kind == CS_PATTERN_RETURN;
}

static cs_periodic_op make_op(const cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern,
                              uint32_t stage, cs_pattern_kind kind)
{
    const cs_pattern_op *op = &pattern->ops[(size_t)stage * CS_PATTERN_KINDS + kind];
    uint32_t here = cs_plan_device(plan, stage);
    uint32_t next = is_message(kind) ? cs_plan_device(plan, stage + 1) : here;
    bool back = kind == CS_PATTERN_RETURN;
    return (cs_periodic_op){.stage = stage,
                            .kind = kind,
                            .device = back ? next : here,
                            .peer = back ? here : next,
                            .start = op->start,
                            .shift = op->shift,
                            .takes = cs_pattern_duration(chain, plan, stage, kind)};
}

/* Appends an operation to a micro-batch's operations, if it exists. */
static void append(const cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern,
                   uint32_t stage, cs_pattern_kind kind, cs_periodic_order *order)
{
    if (!cs_pattern_has(plan, stage, kind))
        return;
    order->ops[order->n] = make_op(chain, plan, pattern, stage, kind);
    order->ops[order->n].place = order->n;
    order->n++;
}

/* Sets the time of micro-batch 0. Returns false on overflow. */
static bool set_first(const cs_periodic_order *order, cs_periodic_op *op)
{
    cs_time origin = -order->ops[0].start;
    return cs_time_mul(order->period, op->shift - order->ops[0].shift, &op->first) &&
           cs_time_add(op->first, op->start, &op->first) &&
           cs_time_add(op->first, origin, &op->first);
}

static bool in_order(const cs_periodic_op *before, const cs_periodic_op *op)
{
    return before->first < op->first || (before->first == op->first && before->takes == 0);
}

/* Checks each operation against the previous one; the operations are still in the order of a
 * micro-batch. */
static cs_status check_places(cs_periodic_order *order, cs_error *error)
{
    char name[CS_PATTERN_NAME_BYTES], before[CS_PATTERN_NAME_BYTES];
    order->least_shift = order->most_shift = order->ops[0].shift;
    for (uint32_t i = 0; i < order->n; i++) {
        cs_periodic_op *op = &order->ops[i], *last = i > 0 ? op - 1 : NULL;
        if (!set_first(order, op) || !cs_time_add(op->first, op->takes, &order->latency))
            return cs_error_add(error, CS_OVERFLOW,
                                "the pattern's times exceed 2^63 ps (106 days)");
        if (last && !in_order(last, op))
            return cs_error_add(error, CS_INVALID,
                                "the plan's pattern starts the %s of a micro-batch no later than "
                                "what it waits for, the %s",
                                cs_pattern_name(op->stage, op->kind, name),
                                cs_pattern_name(last->stage, last->kind, before));
        order->least_shift = op->shift < order->least_shift ? op->shift : order->least_shift;
        order->most_shift = op->shift > order->most_shift ? op->shift : order->most_shift;
    }
    return CS_OK;
}

/* Sorts operations by their start within a period. */
static int compare_ops(const void *left, const void *right)
{
    const cs_periodic_op *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if ((a->takes > 0) != (b->takes > 0))
        return a->takes > 0 ? 1 : -1;
    if (a->shift != b->shift)
        return a->shift > b->shift ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

cs_status cs_periodic_order_make(const cs_chain *chain, const cs_plan *plan,
                                 const cs_pattern *pattern, cs_arena *arena,
                                 cs_periodic_order *order, cs_error *error)
{
    size_t most = (size_t)plan->n_stages * CS_PATTERN_KINDS;
    cs_periodic_order made = {.period = pattern->period};
    made.ops = cs_arena_alloc(arena, most, sizeof(*made.ops));
    if (!made.ops)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        append(chain, plan, pattern, s, CS_PATTERN_FORWARD, &made);
        append(chain, plan, pattern, s, CS_PATTERN_SEND, &made);
    }
    for (uint32_t s = plan->n_stages; s-- > 0;) {
        append(chain, plan, pattern, s, CS_PATTERN_RETURN, &made);
        append(chain, plan, pattern, s, CS_PATTERN_BACKWARD, &made);
    }
    CS_TRY(check_places(&made, error));
    qsort(made.ops, made.n, sizeof(*made.ops), compare_ops);
    *order = made;
    return CS_OK;
}

/* Counts micro-batches when forward i starts: the last backward that has started belongs to
 * micro-batch i - (difference of the shifts) or to the previous micro-batch. By the order of the
 * device it has also ended. */
int64_t cs_periodic_order_active(const cs_periodic_order *order, uint32_t stage)
{
    uint32_t forward = 0, backward = 0;
    for (uint32_t i = 0; i < order->n; i++) {
        if (order->ops[i].stage != stage)
            continue;
        forward = order->ops[i].kind == CS_PATTERN_FORWARD ? i : forward;
        backward = order->ops[i].kind == CS_PATTERN_BACKWARD ? i : backward;
    }
    return order->ops[backward].shift - order->ops[forward].shift + (backward > forward);
}
