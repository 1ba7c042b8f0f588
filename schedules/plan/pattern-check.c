#include "schedules/plan/pattern.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct checking {
    const cs_chain *chain;
    const cs_plan *plan;
    const cs_pattern *pattern;
    cs_error *error;
} checking;

static const cs_pattern_op *op_of(const checking *c, uint32_t stage, cs_pattern_kind kind)
{
    return &c->pattern->ops[(size_t)stage * CS_PATTERN_KINDS + kind];
}

/* ---- shape ---- */

/* Checks that times of micro-batch 0 are within 2^61 ps, so that a duration can be added and two of
 * them subtracted. */
static bool in_range(const cs_pattern_op *op, cs_time period)
{
    const cs_time most = INT64_C(1) << 61;
    cs_time at;
    return cs_time_mul(period, op->shift, &at) && cs_time_add(at, op->start, &at) && at <= most &&
           at >= -most;
}

static cs_status check_op(const checking *c, uint32_t stage, cs_pattern_kind kind)
{
    char name[CS_PATTERN_NAME_BYTES];
    const cs_pattern_op *op = op_of(c, stage, kind);
    cs_time period = c->pattern->period, takes;
    takes = cs_pattern_duration(c->chain, c->plan, stage, kind);
    if (op->start < 0 || op->start >= period)
        return cs_error_add(c->error, CS_LIMIT,
                            "pattern: %s starts at %lld ps, which is not within the period of "
                            "%lld ps",
                            cs_pattern_name(stage, kind, name), (long long)op->start,
                            (long long)period);
    if (!in_range(op, period))
        return cs_error_add(c->error, CS_LIMIT,
                            "pattern: %s has shift %lld, more periods of %lld ps than can be "
                            "counted (2^61 ps)",
                            cs_pattern_name(stage, kind, name), (long long)op->shift,
                            (long long)period);
    if (takes > period)
        return cs_error_add(
            c->error, CS_LIMIT, "pattern: %s takes %lld ps, longer than the period of %lld ps",
            cs_pattern_name(stage, kind, name), (long long)takes, (long long)period);
    return CS_OK;
}

static cs_status check_stage(const checking *c, uint32_t stage)
{
    if (c->plan->stages[stage].n_devices != 1)
        return cs_error_add(c->error, CS_LIMIT,
                            "pattern: stage %u is on %u devices, and a pattern takes one", stage,
                            c->plan->stages[stage].n_devices);
    if (cs_plan_device(c->plan, stage) >= c->chain->n_devices)
        return cs_error_add(c->error, CS_LIMIT,
                            "pattern: stage %u is on device %u, and there are %u devices", stage,
                            cs_plan_device(c->plan, stage), c->chain->n_devices);
    return CS_OK;
}

static cs_status check_shape(const checking *c)
{
    cs_status status = CS_OK;
    if (c->pattern->period <= 0)
        return cs_error_add(c->error, CS_LIMIT, "pattern: the period must be > 0 (got %lld ps)",
                            (long long)c->pattern->period);
    if (c->pattern->n_stages != c->plan->n_stages)
        return cs_error_add(c->error, CS_LIMIT, "pattern: has %u stages, and the plan has %u",
                            c->pattern->n_stages, c->plan->n_stages);
    for (uint32_t s = 0; s < c->plan->n_stages && status == CS_OK; s++)
        status = check_stage(c, s);
    for (uint32_t s = 0; s < c->plan->n_stages; s++) {
        for (int kind = 0; kind < CS_PATTERN_KINDS && status == CS_OK; kind++) {
            if (cs_pattern_has(c->plan, s, kind))
                status = check_op(c, s, kind);
        }
    }
    return status;
}

/* ---- dependencies ---- */

/* Finds the i-th operation of a micro-batch: forwards and messages down the chain, then messages
 * and backwards up again. */
static void locate(uint32_t n_stages, uint64_t i, uint32_t *stage, cs_pattern_kind *kind)
{
    uint64_t half = 2 * (uint64_t)n_stages, back = i - half;
    *stage = i < half ? (uint32_t)(i / 2) : (uint32_t)(n_stages - 1 - back / 2);
    if (i < half)
        *kind = i % 2 == 0 ? CS_PATTERN_FORWARD : CS_PATTERN_SEND;
    else
        *kind = back % 2 == 0 ? CS_PATTERN_RETURN : CS_PATTERN_BACKWARD;
}

static cs_status check_dependencies(const checking *c)
{
    char name[CS_PATTERN_NAME_BYTES], before[CS_PATTERN_NAME_BYTES];
    uint32_t n_stages = c->plan->n_stages, last_stage = 0;
    cs_pattern_kind last_kind = CS_PATTERN_FORWARD;
    cs_time ended = -CS_TIME_MAX;
    for (uint64_t i = 0; i < 4 * (uint64_t)n_stages; i++) {
        uint32_t stage;
        cs_pattern_kind kind;
        locate(n_stages, i, &stage, &kind);
        if (!cs_pattern_has(c->plan, stage, kind))
            continue;
        const cs_pattern_op *op = op_of(c, stage, kind);
        cs_time at = op->shift * c->pattern->period + op->start;
        if (at < ended)
            return cs_error_add(c->error, CS_LIMIT,
                                "pattern: %s starts at %lld ps (micro-batch 0), before %s has "
                                "ended at %lld ps",
                                cs_pattern_name(stage, kind, name), (long long)at,
                                cs_pattern_name(last_stage, last_kind, before), (long long)ended);
        ended = at + cs_pattern_duration(c->chain, c->plan, stage, kind);
        last_stage = stage;
        last_kind = kind;
    }
    return CS_OK;
}

/* ---- devices and links ---- */

/* Time that an operation takes in each period on a device (low == high) or on the link between two
 * devices. */
typedef struct slot {
    uint32_t low, high, stage;
    cs_pattern_kind kind;
    cs_time start, takes;
} slot;

static int compare_slots(const void *a, const void *b)
{
    const slot *x = a, *y = b;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    if (x->high != y->high)
        return x->high < y->high ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if ((x->takes == 0) != (y->takes == 0))
        return x->takes == 0 ? -1 : 1;
    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static bool same_resource(const slot *a, const slot *b)
{
    return a->low == b->low && a->high == b->high;
}

static slot make_slot(const checking *c, uint32_t stage, cs_pattern_kind kind)
{
    bool message = kind == CS_PATTERN_SEND || kind == CS_PATTERN_RETURN;
    uint32_t here = cs_plan_device(c->plan, stage);
    uint32_t there = message ? cs_plan_device(c->plan, stage + 1) : here;
    return (slot){.low = here < there ? here : there,
                  .high = here < there ? there : here,
                  .stage = stage,
                  .kind = kind,
                  .start = op_of(c, stage, kind)->start,
                  .takes = cs_pattern_duration(c->chain, c->plan, stage, kind)};
}

static cs_status overlap(const checking *c, const slot *first, const slot *second, bool wraps)
{
    char name[CS_PATTERN_NAME_BYTES], other[CS_PATTERN_NAME_BYTES], where[64];
    if (first->low == first->high)
        snprintf(where, sizeof(where), "device %u", first->low);
    else
        snprintf(where, sizeof(where), "the link of devices %u and %u", first->low, first->high);
    return cs_error_add(c->error, CS_LIMIT,
                        "pattern: %s: %s ends at %lld ps of the period of %lld ps, after %s has "
                        "started at %lld ps%s",
                        where, cs_pattern_name(first->stage, first->kind, name),
                        (long long)(first->start + first->takes), (long long)c->pattern->period,
                        cs_pattern_name(second->stage, second->kind, other),
                        (long long)second->start, wraps ? " of the next" : "");
}

/* Checks that operations of a resource do not overlap. `slots` are sorted; operations without
 * duration come before others with the same start. Each must end before the next one of its
 * resource starts, and the last before the first of the next period. */
static cs_status check_slots(const checking *c, const slot *slots, size_t n)
{
    size_t first = 0;
    for (size_t i = 0; i < n; i++) {
        const slot *one = &slots[i];
        bool last = i + 1 == n || !same_resource(one, &slots[i + 1]);
        const slot *next = last ? &slots[first] : &slots[i + 1];
        if (one->start + one->takes > next->start + (last ? c->pattern->period : 0))
            return overlap(c, one, next, last);
        first = last ? i + 1 : first;
    }
    return CS_OK;
}

static cs_status check_exclusion(const checking *c, cs_arena *arena)
{
    size_t n = 0;
    slot *slots = cs_arena_alloc(arena, (size_t)c->plan->n_stages * CS_PATTERN_KINDS, sizeof(slot));
    if (!slots)
        return cs_error_no_memory(c->error);
    for (uint32_t s = 0; s < c->plan->n_stages; s++) {
        for (int kind = 0; kind < CS_PATTERN_KINDS; kind++) {
            if (cs_pattern_has(c->plan, s, kind))
                slots[n++] = make_slot(c, s, kind);
        }
    }
    qsort(slots, n, sizeof(*slots), compare_slots);
    return check_slots(c, slots, n);
}

/* ---- memory ---- */

/* A stage whose micro-batch is active for q periods and a remainder r always has q active
 * micro-batches, and one more during [start of its forward, + r) of each period. Only these
 * intervals have to be swept. */
typedef enum change_order { CHANGE_END, CHANGE_START, CHANGE_INSTANT_END } change_order;

typedef struct change {
    uint32_t device;
    cs_time at;
    change_order order;
    int64_t bytes;
} change;

static int compare_changes(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

typedef struct memory_sweep {
    const checking *check;
    /* per device; `peak` starts as the bytes held at the start of the period */
    cs_pattern_use *uses;
    change *changes;
    size_t n_changes;
} memory_sweep;

static void add_change(memory_sweep *m, uint32_t device, cs_time at, change_order order,
                       int64_t bytes)
{
    m->changes[m->n_changes++] = (change){device, at, order, bytes};
}

/* Returns false if the bytes overflow 64 bits. */
static bool add_activations(memory_sweep *m, uint32_t stage)
{
    const checking *c = m->check;
    const cs_stage *held = &c->plan->stages[stage];
    cs_time period = c->pattern->period;
    const cs_pattern_op *forward = op_of(c, stage, CS_PATTERN_FORWARD);
    const cs_pattern_op *backward = op_of(c, stage, CS_PATTERN_BACKWARD);
    cs_time active = (backward->shift - forward->shift) * period + backward->start -
                     forward->start +
                     cs_pattern_duration(c->chain, c->plan, stage, CS_PATTERN_BACKWARD);
    int64_t kept = c->chain->sum_kept[held->end_layer] - c->chain->sum_kept[held->first_layer];
    cs_pattern_use *use = &m->uses[cs_plan_device(c->plan, stage)];
    cs_time rest = active % period, end = forward->start + rest;
    int64_t all;
    if (__builtin_mul_overflow(active / period, kept, &all) ||
        __builtin_add_overflow(use->peak, all, &use->peak))
        return false;
    if (active > 0 && rest == 0)
        return true;
    add_change(m, cs_plan_device(c->plan, stage), forward->start, CHANGE_START, kept);
    if (rest == 0)
        add_change(m, cs_plan_device(c->plan, stage), end, CHANGE_INSTANT_END, -kept);
    else if (end <= period)
        add_change(m, cs_plan_device(c->plan, stage), end, CHANGE_END, -kept);
    else
        add_change(m, cs_plan_device(c->plan, stage), end - period, CHANGE_END, -kept);
    return end <= period || !__builtin_add_overflow(use->peak, kept, &use->peak);
}

/* Adds weights, and the buffers of boundaries shared with another device. */
static bool add_fixed(memory_sweep *m, uint32_t stage)
{
    const checking *c = m->check;
    const cs_stage *held = &c->plan->stages[stage];
    const cs_chain *chain = c->chain;
    cs_pattern_use *use = &m->uses[cs_plan_device(c->plan, stage)];
    int64_t bytes = chain->sum_fixed[held->end_layer] - chain->sum_fixed[held->first_layer];
    if (stage > 0 && cs_pattern_has(c->plan, stage - 1, CS_PATTERN_SEND))
        bytes += 2 * chain->boundary[held->first_layer];
    if (cs_pattern_has(c->plan, stage, CS_PATTERN_SEND))
        bytes += 2 * chain->boundary[held->end_layer];
    for (int kind = CS_PATTERN_FORWARD; kind <= CS_PATTERN_BACKWARD; kind++)
        use->busy += cs_pattern_duration(chain, c->plan, stage, kind);
    return !__builtin_add_overflow(use->fixed, bytes, &use->fixed) &&
           !__builtin_add_overflow(use->peak, bytes, &use->peak);
}

/* Returns false if more than 2^63 bytes are held. */
static bool sweep(memory_sweep *m)
{
    size_t i = 0;
    qsort(m->changes, m->n_changes, sizeof(*m->changes), compare_changes);
    while (i < m->n_changes) {
        uint32_t device = m->changes[i].device;
        cs_pattern_use *use = &m->uses[device];
        int64_t held = use->peak;
        for (; i < m->n_changes && m->changes[i].device == device; i++) {
            if (__builtin_add_overflow(held, m->changes[i].bytes, &held))
                return false;
            if (held > use->peak) {
                use->peak = held;
                use->peak_time = m->changes[i].at;
            }
        }
    }
    return true;
}

static cs_status check_memory(const checking *c, cs_pattern_use *uses, cs_arena *arena)
{
    memory_sweep m = {.check = c, .uses = uses};
    bool fits = true;
    m.changes = cs_arena_alloc(arena, 2 * (size_t)c->plan->n_stages, sizeof(change));
    if (!m.changes)
        return cs_error_no_memory(c->error);
    for (uint32_t s = 0; s < c->plan->n_stages && fits; s++)
        fits = add_fixed(&m, s) && add_activations(&m, s);
    if (!fits || !sweep(&m))
        return cs_error_add(c->error, CS_LIMIT, "pattern: a device holds more than 2^63 bytes");
    for (uint32_t d = 0; d < c->chain->n_devices; d++) {
        if (uses[d].peak > c->chain->memory)
            return cs_error_add(c->error, CS_LIMIT,
                                "pattern: device %u holds %lld bytes at %lld ps of the period, "
                                "%lld of them weights and buffers, and its memory is %lld",
                                d, (long long)uses[d].peak, (long long)uses[d].peak_time,
                                (long long)uses[d].fixed, (long long)c->chain->memory);
    }
    return CS_OK;
}

cs_status cs_pattern_check(const cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern,
                           cs_pattern_use *uses, cs_error *error)
{
    checking c = {chain, plan, pattern, error};
    cs_arena arena;
    cs_arena_init(&arena);
    cs_pattern_use *found = cs_arena_alloc(&arena, chain->n_devices, sizeof(*found));
    cs_status status = found ? check_shape(&c) : cs_error_no_memory(error);
    if (status == CS_OK)
        status = check_dependencies(&c);
    if (status == CS_OK)
        status = check_exclusion(&c, &arena);
    if (status == CS_OK)
        status = check_memory(&c, found, &arena);
    for (uint32_t d = 0; d < chain->n_devices && status == CS_OK && uses; d++)
        uses[d] = found[d];
    cs_arena_finish(&arena);
    return status;
}
