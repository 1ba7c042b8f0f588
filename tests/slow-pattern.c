#include "tests/slow-pattern.h"

#include "tests/expect.h"

#include <stdlib.h>

typedef struct unrolled {
    const cs_chain *chain;
    const cs_plan *plan;
    const cs_pattern *pattern;
    cs_time steady; /* start of a period with all possible micro-batches present */
    int64_t n_micros;
} unrolled;

static cs_time starts(const unrolled *u, uint32_t stage, cs_pattern_kind kind, int64_t micro)
{
    const cs_pattern_op *op = &u->pattern->ops[stage * CS_PATTERN_KINDS + kind];
    return (micro + op->shift) * u->pattern->period + op->start;
}

static cs_time ends(const unrolled *u, uint32_t stage, cs_pattern_kind kind, int64_t micro)
{
    return starts(u, stage, kind, micro) + cs_pattern_duration(u->chain, u->plan, stage, kind);
}

static uint32_t on(const unrolled *u, uint32_t stage)
{
    return u->plan->devices[u->plan->stages[stage].first_device];
}

/* Between stages s and s + 1, in one direction or on one device. */
static bool in_order(const unrolled *u)
{
    uint32_t last = u->plan->n_stages - 1;
    bool ok = ends(u, last, CS_PATTERN_FORWARD, 0) <= starts(u, last, CS_PATTERN_BACKWARD, 0);
    for (uint32_t s = 0; s < last; s++) {
        if (on(u, s) == on(u, s + 1)) {
            ok &= ends(u, s, CS_PATTERN_FORWARD, 0) <= starts(u, s + 1, CS_PATTERN_FORWARD, 0);
            ok &= ends(u, s + 1, CS_PATTERN_BACKWARD, 0) <= starts(u, s, CS_PATTERN_BACKWARD, 0);
            continue;
        }
        ok &= ends(u, s, CS_PATTERN_FORWARD, 0) <= starts(u, s, CS_PATTERN_SEND, 0);
        ok &= ends(u, s, CS_PATTERN_SEND, 0) <= starts(u, s + 1, CS_PATTERN_FORWARD, 0);
        ok &= ends(u, s + 1, CS_PATTERN_BACKWARD, 0) <= starts(u, s, CS_PATTERN_RETURN, 0);
        ok &= ends(u, s, CS_PATTERN_RETURN, 0) <= starts(u, s, CS_PATTERN_BACKWARD, 0);
    }
    return ok;
}

/* Whether the operation takes device a (a == b) or the link of a and b. */
static bool takes(const unrolled *u, uint32_t stage, cs_pattern_kind kind, uint32_t a, uint32_t b)
{
    if (kind == CS_PATTERN_FORWARD || kind == CS_PATTERN_BACKWARD)
        return a == b && on(u, stage) == a;
    if (!cs_pattern_has(u->plan, stage, kind))
        return false;
    uint32_t x = on(u, stage), y = on(u, stage + 1);
    return a != b && ((x == a && y == b) || (x == b && y == a));
}

/* Operations that have the resource in [t, t + 1); those that take no time have it at t, and so
 * does what has begun before and ends after: 2 or more where they meet. */
static int holders(const unrolled *u, uint32_t a, uint32_t b, cs_time t)
{
    int n = 0, within = 0, instants = 0;
    for (uint32_t s = 0; s < u->plan->n_stages; s++) {
        for (int kind = 0; kind < CS_PATTERN_KINDS; kind++) {
            for (int64_t i = 0; i < u->n_micros && takes(u, s, kind, a, b); i++) {
                cs_time from = starts(u, s, kind, i), until = ends(u, s, kind, i);
                n += from <= t && t < until;
                within += from < t && t < until;
                instants += from == t && until == t;
            }
        }
    }
    return within > 0 && instants > 0 ? n + instants : n;
}

static bool exclusive(const unrolled *u)
{
    for (cs_time t = u->steady; t < u->steady + u->pattern->period; t++) {
        for (uint32_t a = 0; a < u->chain->n_devices; a++) {
            for (uint32_t b = a; b < u->chain->n_devices; b++) {
                if (holders(u, a, b, t) > 1)
                    return false;
            }
        }
    }
    return true;
}

/* Micro-batches of the stage that are active when all that starts at t has, and nothing more has
 * ended. */
static int64_t present(const unrolled *u, uint32_t stage, cs_time t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < u->n_micros; i++) {
        cs_time from = starts(u, stage, CS_PATTERN_FORWARD, i);
        cs_time until = ends(u, stage, CS_PATTERN_BACKWARD, i);
        n += from == t || (from < t && t < until);
    }
    return n;
}

static int64_t fixed_of(const unrolled *u, uint32_t device)
{
    int64_t bytes = 0;
    for (uint32_t s = 0; s < u->plan->n_stages; s++) {
        const cs_stage *stage = &u->plan->stages[s];
        if (on(u, s) != device)
            continue;
        bytes += u->chain->sum_fixed[stage->end_layer] - u->chain->sum_fixed[stage->first_layer];
        if (s > 0 && on(u, s - 1) != device)
            bytes += 2 * u->chain->boundary[stage->first_layer];
        if (s + 1 < u->plan->n_stages && on(u, s + 1) != device)
            bytes += 2 * u->chain->boundary[stage->end_layer];
    }
    return bytes;
}

static cs_pattern_use look(const unrolled *u, uint32_t device)
{
    cs_pattern_use use = {.fixed = fixed_of(u, device), .peak = -1};
    for (cs_time t = u->steady; t < u->steady + u->pattern->period; t++) {
        int64_t held = use.fixed;
        for (uint32_t s = 0; s < u->plan->n_stages; s++) {
            const cs_stage *stage = &u->plan->stages[s];
            int64_t kept =
                u->chain->sum_kept[stage->end_layer] - u->chain->sum_kept[stage->first_layer];
            held += on(u, s) == device ? present(u, s, t) * kept : 0;
        }
        use.busy += holders(u, device, device, t);
        use.peak_time = held > use.peak ? t - u->steady : use.peak_time;
        use.peak = held > use.peak ? held : use.peak;
    }
    return use;
}

bool slow_pattern_check(const cs_chain *chain, const cs_plan *plan, const cs_pattern *pattern,
                        cs_pattern_use *uses, int64_t *active)
{
    unrolled u = {chain, plan, pattern, 0, 0};
    int64_t most = 0;
    bool fits = true;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        for (int kind = 0; kind < CS_PATTERN_KINDS; kind++) {
            const cs_pattern_op *op = &pattern->ops[s * CS_PATTERN_KINDS + kind];
            if (!cs_pattern_has(plan, s, kind))
                continue;
            if (op->start < 0 || op->start >= pattern->period)
                return false;
            assert_true(op->shift >= 0);
            /* one that is longer than the period meets its own next micro-batch: counted below */
            int64_t longest = cs_pattern_duration(chain, plan, s, kind) / pattern->period + 2;
            most = op->shift + longest > most ? op->shift + longest : most;
        }
    }
    u.steady = most * pattern->period;
    u.n_micros = most + 1;
    if (!in_order(&u) || !exclusive(&u))
        return false;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        active[s] = 0;
        for (cs_time t = u.steady; t < u.steady + pattern->period; t++)
            active[s] = present(&u, s, t) > active[s] ? present(&u, s, t) : active[s];
    }
    for (uint32_t d = 0; d < chain->n_devices; d++) {
        uses[d] = look(&u, d);
        fits &= uses[d].peak <= chain->memory;
    }
    return fits;
}
