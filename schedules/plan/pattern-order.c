#include "schedules/plan/pattern-order.h"

#include <stdlib.h>

__extension__ typedef __int128 wide;

/* Upper limit of all times in a pattern; leaves a bit for the sign. */
static const double most_time = 0x1p61;

/* ---- making one ---- */

static uint64_t resource_of(const cs_order *order, uint32_t stage, cs_pattern_kind kind)
{
    uint64_t a = cs_plan_device(order->plan, stage), n = order->n_devices;
    if (kind == CS_PATTERN_FORWARD || kind == CS_PATTERN_BACKWARD)
        return a;
    uint64_t b = cs_plan_device(order->plan, stage + 1);
    return n + (a < b ? a * n + b : b * n + a);
}

static void add_op(cs_order *order, uint32_t stage, cs_pattern_kind kind)
{
    if (!cs_pattern_has(order->plan, stage, kind))
        return;
    cs_time duration = cs_pattern_duration(order->chain, order->plan, stage, kind);
    uint32_t o = order->n_ops++;
    order->ops[o] = (cs_order_op){stage, kind, duration, resource_of(order, stage, kind)};
    order->at[stage * CS_PATTERN_KINDS + kind] = o;
}

static void add_ops(cs_order *order)
{
    uint32_t n = order->plan->n_stages;
    for (uint32_t s = 0; s < n; s++) {
        add_op(order, s, CS_PATTERN_FORWARD);
        add_op(order, s, CS_PATTERN_SEND);
    }
    for (uint32_t s = n; s-- > 0;) {
        add_op(order, s, CS_PATTERN_RETURN);
        add_op(order, s, CS_PATTERN_BACKWARD);
    }
}

static cs_status add_times(cs_order *order, cs_error *error)
{
    double sum = 0;
    for (uint32_t o = 0; o < order->n_ops; o++)
        sum += (double)order->ops[o].duration;
    if ((sum + 1) * (order->n_ops + 2) >= most_time)
        return cs_error_add(error, CS_OVERFLOW,
                            "one micro-batch takes %.3g s through %u stages: %u such times must "
                            "stay below 26 days for a periodic pattern",
                            sum / (double)CS_PS_PER_SEC, order->plan->n_stages, order->n_ops);
    for (uint32_t o = 0; o < order->n_ops; o++)
        order->before[o + 1] = order->before[o] + order->ops[o].duration;
    return CS_OK;
}

/* Makes the pair u < v if the laps between them matter. */
static bool make_pair(const cs_order *order, uint32_t u, uint32_t v, cs_order_pair *pair)
{
    const cs_order_op *a = &order->ops[u], *b = &order->ops[v];
    if (a->resource != b->resource)
        return false;
    if (a->duration > 0 || b->duration > 0)
        *pair = (cs_order_pair){u, v, CS_LAPS_EXCLUSIVE, a->duration, b->duration};
    else if (a->kind == CS_PATTERN_FORWARD && b->kind == CS_PATTERN_FORWARD)
        *pair = (cs_order_pair){u, v, CS_LAPS_STARTS, 0, 1};
    else if (a->kind == CS_PATTERN_FORWARD && b->kind == CS_PATTERN_BACKWARD)
        *pair = (cs_order_pair){u, v, CS_LAPS_TO_END, 0, 0};
    else
        return false; /* memory is counted at forwards, which precede all backwards */
    return true;
}

static void add_pairs(cs_order *order)
{
    for (uint32_t u = 0; u < order->n_ops; u++) {
        for (uint32_t v = u + 1; v < order->n_ops; v++) {
            if (make_pair(order, u, v, &order->pairs[order->n_pairs]))
                order->n_pairs++;
        }
    }
}

/* Returns the bytes of a stage's weights and buffers. A boundary within one device needs no
 * buffer. */
static wide fixed_bytes(const cs_order *order, uint32_t stage)
{
    const cs_chain *chain = order->chain;
    const cs_stage *at = &order->plan->stages[stage];
    wide bytes = chain->sum_fixed[at->end_layer] - chain->sum_fixed[at->first_layer];
    if (stage > 0 && cs_pattern_has(order->plan, stage - 1, CS_PATTERN_SEND))
        bytes += 2 * (wide)chain->boundary[at->first_layer];
    if (cs_pattern_has(order->plan, stage, CS_PATTERN_SEND))
        bytes += 2 * (wide)chain->boundary[at->end_layer];
    return bytes;
}

static void add_devices(cs_order *order)
{
    const cs_chain *chain = order->chain;
    uint32_t used = 0;
    for (uint32_t d = 0; d < order->n_devices; d++) {
        cs_order_device *device = &order->devices[d];
        wide room = chain->memory;
        device->first = used;
        for (uint32_t s = 0; s < order->plan->n_stages; s++) {
            if (cs_plan_device(order->plan, s) != d)
                continue;
            const cs_stage *stage = &order->plan->stages[s];
            order->kept[s] =
                chain->sum_kept[stage->end_layer] - chain->sum_kept[stage->first_layer];
            room -= fixed_bytes(order, s);
            order->stages[used++] = s;
        }
        device->end = used;
        device->room = chain->memory == INT64_MAX ? INT64_MAX
                       : room < INT64_MIN / 2     ? INT64_MIN / 2
                                                  : (int64_t)room;
    }
}

/* ---- the constraint graph ---- */

/* An arc of the graph: x_v >= x_u + time + laps T. */
typedef struct arc {
    uint32_t u, v;
    cs_time time;
    int64_t laps;
} arc;

typedef struct cs_order_graph {
    uint32_t n_arcs, n_ops;
    arc *arcs;
    uint32_t *last; /* [n_ops]: arc that determined the value of x */
    wide *x;
} graph;

static graph *make_graph(cs_arena *arena, size_t n_ops)
{
    graph *g = cs_arena_alloc(arena, 1, sizeof(*g));
    if (!g)
        return NULL;
    g->arcs = cs_arena_alloc(arena, n_ops + n_ops * n_ops, sizeof(*g->arcs));
    g->last = cs_arena_alloc(arena, n_ops, sizeof(*g->last));
    g->x = cs_arena_alloc(arena, n_ops, sizeof(*g->x));
    return g->arcs && g->last && g->x ? g : NULL;
}

static bool allocate(cs_order *order)
{
    cs_arena *arena = &order->arena;
    size_t n_stages = order->plan->n_stages, n = n_stages * CS_PATTERN_KINDS;
    order->ops = cs_arena_alloc(arena, n, sizeof(*order->ops));
    order->pairs = cs_arena_alloc(arena, n * n / 2, sizeof(*order->pairs));
    order->before = cs_arena_alloc(arena, n + 1, sizeof(*order->before));
    order->at = cs_arena_alloc(arena, n, sizeof(*order->at));
    order->stages = cs_arena_alloc(arena, n_stages, sizeof(*order->stages));
    order->kept = cs_arena_alloc(arena, n_stages, sizeof(*order->kept));
    order->devices = cs_arena_alloc(arena, order->n_devices, sizeof(*order->devices));
    order->laps = cs_arena_alloc(arena, n * n, sizeof(*order->laps));
    order->x = cs_arena_alloc(arena, n, sizeof(*order->x));
    order->periods = cs_arena_alloc(arena, n * n / 4 + 2, sizeof(*order->periods));
    order->graph = make_graph(arena, n);
    return order->ops && order->pairs && order->before && order->at && order->stages &&
           order->kept && order->devices && order->laps && order->x && order->periods &&
           order->graph;
}

static cs_status check_plan(const cs_chain *chain, const cs_plan *plan, cs_error *error)
{
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        if (plan->stages[s].n_devices != 1)
            return cs_error_add(error, CS_INVALID,
                                "stage %u is on %u devices: a periodic pattern has one per stage",
                                s, plan->stages[s].n_devices);
        if (cs_plan_device(plan, s) >= chain->n_devices)
            return cs_error_add(error, CS_INVALID, "stage %u is on device %u of %u", s,
                                cs_plan_device(plan, s), chain->n_devices);
    }
    return plan->n_stages > 0 ? CS_OK : cs_error_add(error, CS_INVALID, "a plan without stages");
}

void cs_order_finish(cs_order *order)
{
    cs_arena_finish(&order->arena);
    *order = (cs_order){0};
}

cs_status cs_order_make(const cs_chain *chain, const cs_plan *plan, cs_order *order,
                        cs_error *error)
{
    cs_order made = {.chain = chain, .plan = plan, .n_devices = chain->n_devices};
    CS_TRY(check_plan(chain, plan, error));
    if (!allocate(&made)) {
        cs_order_finish(&made);
        return cs_error_no_memory(error);
    }
    add_ops(&made);
    cs_status status = add_times(&made, error);
    if (status != CS_OK) {
        cs_order_finish(&made);
        return status;
    }
    add_pairs(&made);
    add_devices(&made);
    *order = made;
    return CS_OK;
}

static uint32_t op_of(const cs_order *order, uint32_t stage, cs_pattern_kind kind)
{
    return order->at[stage * CS_PATTERN_KINDS + kind];
}

static int64_t laps_of(const cs_order *order, uint32_t u, uint32_t v)
{
    return order->laps[(size_t)u * order->n_ops + v];
}

void cs_order_set(cs_order *order, uint32_t u, uint32_t v, int64_t laps)
{
    order->laps[(size_t)u * order->n_ops + v] = laps;
    order->laps[(size_t)v * order->n_ops + u] = -1 - laps;
}

/* ---- memory ---- */

static cs_time larger(cs_time a, cs_time b)
{
    return a > b ? a : b;
}

/* Returns the bytes of a device's activations when its stage i (an index into order->stages) starts
 * a forward, if micro-batches are processed one after the other. */
static wide least_kept(const cs_order *order, const cs_order_device *device, uint32_t i)
{
    wide kept = 0;
    for (uint32_t j = device->first; j <= i; j++)
        kept += order->kept[order->stages[j]];
    return kept;
}

int64_t cs_order_need(const cs_order *order, uint32_t *device)
{
    wide most = -1;
    for (uint32_t d = 0; d < order->n_devices; d++) {
        const cs_order_device *one = &order->devices[d];
        wide need = one->first < one->end ? least_kept(order, one, one->end - 1) : 0;
        for (uint32_t i = one->first; i < one->end; i++)
            need += fixed_bytes(order, order->stages[i]);
        if (need > most) {
            most = need;
            *device = d;
        }
    }
    return most < INT64_MAX ? (int64_t)most : INT64_MAX;
}

/* Returns the bytes of activations of all stages of the device at the start of a stage's
 * forward. */
static wide kept_at(const cs_order *order, const cs_order_device *device, uint32_t stage)
{
    uint32_t now = op_of(order, stage, CS_PATTERN_FORWARD);
    wide kept = 0;
    for (uint32_t j = device->first; j < device->end; j++) {
        uint32_t s = order->stages[j];
        int64_t started = laps_of(order, op_of(order, s, CS_PATTERN_FORWARD), now);
        int64_t ended = laps_of(order, op_of(order, s, CS_PATTERN_BACKWARD), now);
        kept += (wide)order->kept[s] * (started - ended);
    }
    return kept;
}

bool cs_order_fits(const cs_order *order)
{
    for (uint32_t d = 0; d < order->n_devices; d++) {
        const cs_order_device *device = &order->devices[d];
        for (uint32_t i = device->first; i < device->end && device->room < INT64_MAX; i++) {
            if (kept_at(order, device, order->stages[i]) > device->room)
                return false;
        }
    }
    return true;
}

int64_t cs_order_bytes(const cs_order *order)
{
    wide most = 0;
    for (uint32_t d = 0; d < order->n_devices; d++) {
        const cs_order_device *device = &order->devices[d];
        wide fixed = 0;
        for (uint32_t i = device->first; i < device->end; i++)
            fixed += fixed_bytes(order, order->stages[i]);
        for (uint32_t i = device->first; i < device->end; i++) {
            wide bytes = fixed + kept_at(order, device, order->stages[i]);
            most = bytes > most ? bytes : most;
        }
    }
    return most < INT64_MAX ? (int64_t)most : INT64_MAX;
}

int64_t cs_order_most_active(const cs_order *order, uint32_t stage)
{
    const cs_order_device *device = &order->devices[cs_plan_device(order->plan, stage)];
    if (device->room == INT64_MAX || order->kept[stage] == 0)
        return INT64_MAX;
    wide room = device->room;
    for (uint32_t i = device->first; order->stages[i] < stage; i++)
        room -= order->kept[order->stages[i]]; /* its micro-batch is also active there */
    return room < 0 ? 0 : (int64_t)(room / order->kept[stage]);
}

/* Returns the minimum time from the start of the stage's forward to the end of its backward. */
static cs_time span(const cs_order *order, uint32_t stage)
{
    return order->before[op_of(order, stage, CS_PATTERN_BACKWARD) + 1] -
           order->before[op_of(order, stage, CS_PATTERN_FORWARD)];
}

/* Tests a lower bound of a device's memory when its stage r starts a forward: r itself holds
 * ceil(span / period) micro-batches and the others floor(span / period), but stages before r at
 * least one, the micro-batch of r. On average a stage holds span / period. */
static bool device_may_fit(const cs_order *order, const cs_order_device *device, cs_time period)
{
    wide average = 0;
    for (uint32_t i = device->first; i < device->end; i++) {
        wide kept = 0;
        for (uint32_t j = device->first; j < device->end; j++) {
            uint32_t s = order->stages[j];
            cs_time length = span(order, s), active = length / period;
            if (i == j)
                active += length % period > 0;
            kept += (wide)order->kept[s] * (j <= i ? larger(active, 1) : active);
        }
        uint32_t r = order->stages[i];
        average += (wide)order->kept[r] * span(order, r);
        if (kept > device->room)
            return false;
    }
    return average <= (wide)device->room * period;
}

static bool may_fit(const cs_order *order, cs_time period)
{
    for (uint32_t d = 0; d < order->n_devices; d++) {
        const cs_order_device *device = &order->devices[d];
        if (device->first < device->end && device->room < INT64_MAX &&
            !device_may_fit(order, device, period))
            return false;
    }
    return true;
}

static cs_time largest_load(const cs_order *order)
{
    cs_time most = 1;
    for (uint32_t u = 0, p = 0; u < order->n_ops; u++) {
        cs_time load = order->ops[u].duration;
        for (; p < order->n_pairs && order->pairs[p].u == u; p++)
            load += order->ops[order->pairs[p].v].duration;
        most = larger(most, load);
    }
    return most;
}

double cs_order_spread(const cs_order *order)
{
    double spread = 0;
    for (uint32_t o = 0; o < order->n_ops; o++) {
        double d = cs_time_seconds(order->ops[o].duration);
        spread += d * d;
    }
    for (uint32_t p = 0; p < order->n_pairs; p++)
        spread += 2 * cs_time_seconds(order->ops[order->pairs[p].u].duration) *
                  cs_time_seconds(order->ops[order->pairs[p].v].duration);
    return spread;
}

cs_time cs_order_bound(const cs_order *order)
{
    cs_time low = largest_load(order), high = larger(low, order->before[order->n_ops] + 1);
    if (!may_fit(order, high))
        return CS_TIME_MAX;
    while (low < high) {
        cs_time middle = low + (high - low) / 2;
        if (may_fit(order, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---- the smallest period ---- */

static void fill_graph(const cs_order *order, graph *g)
{
    g->n_ops = order->n_ops;
    g->n_arcs = 0;
    for (uint32_t o = 0; o + 1 < order->n_ops; o++)
        g->arcs[g->n_arcs++] = (arc){o, o + 1, order->ops[o].duration, 0};
    for (uint32_t p = 0; p < order->n_pairs; p++) {
        const cs_order_pair *pair = &order->pairs[p];
        uint32_t u = pair->u, v = pair->v;
        g->arcs[g->n_arcs++] = (arc){u, v, pair->time_uv, laps_of(order, u, v)};
        g->arcs[g->n_arcs++] = (arc){v, u, pair->time_vu, laps_of(order, v, u)};
    }
}

/* Relaxes all arcs once. Returns an operation that became later, or n_ops. */
static uint32_t relax(graph *g, cs_time period)
{
    uint32_t moved = g->n_ops;
    for (uint32_t i = 0; i < g->n_arcs; i++) {
        const arc *a = &g->arcs[i];
        wide x = g->x[a->u] + a->time + (wide)a->laps * period;
        if (x > g->x[a->v]) {
            g->x[a->v] = x;
            g->last[a->v] = i;
            moved = a->v;
        }
    }
    return moved;
}

/* Finds earliest times from the first operation by Bellman-Ford; the chain reaches all others.
 * Returns n_ops, or an operation whose `last` leads back to a cycle that needs a longer period. */
static uint32_t earliest(const cs_order *order, graph *g, cs_time period)
{
    for (uint32_t o = 0; o < g->n_ops; o++) {
        g->x[o] = order->before[o];
        g->last[o] = o > 0 ? o - 1 : 0; /* the arcs of the chain come first */
    }
    uint32_t moved = 0;
    for (uint32_t round = 0; round < g->n_ops && moved < g->n_ops; round++)
        moved = relax(g, period);
    return moved;
}

/* Returns the period needed by the cycle that leads to `op`; 0 if none suffices. */
static cs_time cycle_ratio(const graph *g, uint32_t op)
{
    for (uint32_t i = 0; i < g->n_ops; i++)
        op = g->arcs[g->last[op]].u;
    wide time = 0, laps = 0;
    uint32_t o = op;
    do {
        const arc *a = &g->arcs[g->last[o]];
        time += a->time;
        laps -= a->laps;
        o = a->u;
    } while (o != op);
    if (laps <= 0)
        return 0;
    return (cs_time)((time + laps - 1) / laps);
}

/* Raises the period from one violated cycle's ratio to the next. Each ratio is a lower bound, and
 * there are finitely many. Ratios are rounded up at once: only whole periods are wanted, and all
 * longer periods are possible. */
bool cs_order_tighten(cs_order *order, cs_time *period)
{
    graph *g = order->graph;
    cs_time t = largest_load(order);
    fill_graph(order, g);
    for (uint32_t op; (op = earliest(order, g, t)) < g->n_ops;) {
        cs_time needed = cycle_ratio(g, op);
        if (needed <= t)
            return false;
        t = needed;
    }
    for (uint32_t o = 0; o < g->n_ops; o++) {
        if (g->x[o] > INT64_MAX / 2)
            return false;
        order->x[o] = (cs_time)g->x[o];
    }
    *period = t;
    return true;
}

/* ---- patterns to laps, and back ---- */

static wide floor_of(wide time, cs_time period)
{
    return time >= 0 ? time / period : -((period - 1 - time) / period);
}

/* Laps between two operations at these times. */
static int64_t laps_between(const cs_order_pair *pair, wide x_u, wide x_v, cs_time period)
{
    int64_t laps = (int64_t)floor_of(x_v - x_u - pair->time_uv, period);
    if (pair->laps == CS_LAPS_TO_END)
        laps = larger((int64_t)(-1 - floor_of(x_u - x_v - pair->time_vu, period)), 0);
    return laps;
}

/* Whether an operation comes before another one: by start, and operations without duration first if
 * the starts are equal. */
static bool starts_before(const cs_order_op *op, const cs_pattern_op *at,
                          const cs_pattern_op *other)
{
    return at->start < other->start || (at->start == other->start && op->duration == 0);
}

void cs_order_from_pattern(cs_order *order, const cs_pattern *pattern)
{
    for (uint32_t p = 0; p < order->n_pairs; p++) {
        const cs_order_pair *pair = &order->pairs[p];
        const cs_order_op *a = &order->ops[pair->u], *b = &order->ops[pair->v];
        const cs_pattern_op *u = &pattern->ops[a->stage * CS_PATTERN_KINDS + a->kind];
        const cs_pattern_op *v = &pattern->ops[b->stage * CS_PATTERN_KINDS + b->kind];
        int64_t laps = v->shift - u->shift - starts_before(b, v, u);
        if (pair->laps != CS_LAPS_EXCLUSIVE)
            laps = laps_between(pair, u->start,
                                (wide)v->start + (wide)(v->shift - u->shift) * pattern->period,
                                pattern->period);
        cs_order_set(order, pair->u, pair->v, laps);
    }
}

cs_status cs_order_pattern(const cs_order *order, cs_time period, cs_pattern *pattern,
                           cs_error *error)
{
    cs_pattern made;
    CS_TRY(cs_pattern_create(order->plan->n_stages, &made, error));
    made.period = period;
    for (uint32_t o = 0; o < order->n_ops; o++) {
        cs_time x = order->x[o] - order->x[0];
        made.ops[order->ops[o].stage * CS_PATTERN_KINDS + order->ops[o].kind] =
            (cs_pattern_op){.start = x % period, .shift = x / period};
    }
    *pattern = made;
    return CS_OK;
}

/* ---- a construction ---- */

/* Returns how far operation o at x has to move, later or earlier, to clear operation u; 0 if they
 * do not overlap. */
static cs_time clash(const cs_order *order, uint32_t o, cs_time x, uint32_t u, cs_time period,
                     bool later)
{
    cs_time own = order->ops[o].duration, its = order->ops[u].duration;
    cs_time after = x - order->x[u] - (cs_time)floor_of(x - order->x[u], period) * period;
    if ((after >= its && after + own <= period) || (own == 0 && after == 0))
        return 0;
    if (after < its)
        return later ? its - after : after + own;
    return later ? period - after + its : after + own - period;
}

/* Places operation o at the first free time from `x` on, later or earlier. Operations in [from,
 * end) are placed already. */
static bool place(cs_order *order, uint32_t o, cs_time x, cs_time period, bool later, uint32_t from,
                  uint32_t end)
{
    cs_time moved = 0;
    for (uint32_t u = from; u < end;) {
        cs_time by = order->ops[u].resource == order->ops[o].resource
                         ? clash(order, o, x, u, period, later)
                         : 0;
        moved += by;
        x += later ? by : -by;
        u = by > 0 ? from : u + 1;
        if (moved > 2 * period)
            return false;
    }
    order->x[o] = x;
    return true;
}

bool cs_order_greedy(cs_order *order, cs_time period)
{
    uint32_t half = order->n_ops / 2, last = order->n_ops - 1;
    for (uint32_t f = half; f-- > 0;) {
        uint32_t b = last - f;
        cs_time end = f + 1 < half ? order->x[f + 1] : order->ops[f].duration;
        cs_time start = f + 1 < half ? order->x[b - 1] + order->ops[b - 1].duration : end;
        if (!place(order, f, end - order->ops[f].duration, period, false, f + 1, b) ||
            !place(order, b, start, period, true, f, b))
            return false;
    }
    for (uint32_t p = 0; p < order->n_pairs; p++) {
        const cs_order_pair *pair = &order->pairs[p];
        cs_order_set(order, pair->u, pair->v,
                     laps_between(pair, order->x[pair->u], order->x[pair->v], period));
    }
    return true;
}

static int by_time(const void *a, const void *b)
{
    cs_time x = *(const cs_time *)a, y = *(const cs_time *)b;
    return (x > y) - (x < y);
}

/* Lists periods at which the construction may change for a contiguous plan: total times of
 * neighbouring stages and messages. The longest is the time of one micro-batch after the other. */
size_t cs_order_periods(const cs_order *order, cs_time lower)
{
    size_t n = 0;
    cs_time *periods = order->periods;
    uint32_t half = order->n_ops / 2;
    periods[n++] = lower;
    periods[n++] = larger(lower, order->before[order->n_ops] + 1);
    for (uint32_t i = 0; i < half; i++) {
        cs_time sum = 0;
        for (uint32_t j = i; j < half; j++) {
            sum += order->ops[j].duration + order->ops[order->n_ops - 1 - j].duration;
            if (sum > lower)
                periods[n++] = sum;
        }
    }
    qsort(periods, n, sizeof(*periods), by_time);
    size_t distinct = 1;
    for (size_t i = 1; i < n; i++) {
        if (periods[i] > periods[distinct - 1])
            periods[distinct++] = periods[i];
    }
    return distinct;
}

bool cs_order_construct(cs_order *order, cs_time lower, cs_time *period)
{
    const cs_time *periods = order->periods;
    size_t n = cs_order_periods(order, lower);
    for (size_t i = 0; i < n; i++) {
        if (cs_order_greedy(order, periods[i]) && cs_order_fits(order) &&
            cs_order_tighten(order, period))
            return true;
    }
    return false;
}
