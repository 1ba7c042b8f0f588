#include "schedules/plan/replication.h"

#include <math.h>
#include <stdlib.h>

enum { NO_CUT = UINT32_MAX };

typedef struct cell {
    double time;       /* time of the slowest stage or boundary, ps; infinite: nothing fits */
    uint32_t cut;      /* prefix before the last stage; NO_CUT: there is one stage */
    uint32_t replicas; /* number of replicas of the last stage */
} cell;

/* Best partitions of the layers between cut i and prefix j over `used` of the level's devices. Cut
 * 0 is before all layers, cut i + 1 is after prefix i. */
typedef struct table {
    uint32_t n, n_cuts, devices; /* n_cuts: 1 at the last level, which needs only cut 0 */
    /* bandwidth in bytes per ps; number of devices of a machine one level below, or 1 */
    double bandwidth, below;
    cell *cells; /* [(cut * n + prefix) * devices + used - 1] */
} table;

/* Machines of a level that hold a stage. */
typedef struct machines {
    uint32_t first, replicas;
} machines;

typedef struct solver {
    const cs_replication *of;
    table *tables; /* one table per level */
    uint32_t n_tables;
    machines *path;                    /* per level: machines of the stage being written */
    uint32_t *cuts, *counts, *devices; /* cuts, replicas and devices of the plan being made */
    uint32_t n_stages, n_devices;
} solver;

static cell *cell_at(const table *t, uint32_t cut, uint32_t prefix, uint32_t used)
{
    return &t->cells[((size_t)cut * t->n + prefix) * t->devices + used - 1];
}

static const cs_prefix *prefix_at(const solver *s, uint32_t i)
{
    return &s->of->prefixes->all[i];
}

/* ---- what stands between cut a and prefix b ---- */

static double time_between(const solver *s, uint32_t level, uint32_t a, uint32_t b)
{
    if (level > 0)
        return cell_at(&s->tables[level - 1], a, b, s->tables[level - 1].devices)->time;
    return (double)(prefix_at(s, b)->time - (a > 0 ? prefix_at(s, a - 1)->time : 0));
}

static double weights_between(const solver *s, uint32_t a, uint32_t b)
{
    return (double)(prefix_at(s, b)->weight_bytes -
                    (a > 0 ? prefix_at(s, a - 1)->weight_bytes : 0));
}

static double activations_between(const solver *s, uint32_t a, uint32_t b)
{
    return (double)(prefix_at(s, b)->activation_bytes -
                    (a > 0 ? prefix_at(s, a - 1)->activation_bytes : 0));
}

static bool fits(const solver *s, const table *t, uint32_t a, uint32_t b, uint32_t replicas,
                 uint32_t used)
{
    double copies = ceil((double)(t->devices - used) / replicas);
    double activations = activations_between(s, a, b) / (s->of->shared ? replicas : 1);
    return s->of->memory == INT64_MAX ||
           copies * (activations + weights_between(s, a, b)) <= (double)s->of->memory;
}

/* Returns the time of a stage with its all-reduce. `first`: it is the first stage. */
static double stage_time(const solver *s, uint32_t level, uint32_t a, uint32_t b, uint32_t replicas,
                         bool first)
{
    const table *t = &s->tables[level];
    double all_reduce = 4.0 * (replicas - 1) * weights_between(s, a, b) / (t->bandwidth * replicas);
    if (first)
        all_reduce /= t->below;
    if (s->of->shared) {
        const cs_time *sums = s->of->shared[replicas - 1];
        return sums ? (double)(sums[b + 1] - sums[a]) + all_reduce / replicas : INFINITY;
    }
    return (time_between(s, level, a, b) + all_reduce) / replicas;
}

static double message_time(const solver *s, const table *t, uint32_t prefix, uint32_t replicas)
{
    return 2.0 * (double)prefix_at(s, prefix)->crossing_bytes / (t->bandwidth * replicas);
}

/* ---- the dynamic program ---- */

/* Tries a last stage after prefix k with each number of replicas; the earlier stages get the
 * remaining devices. */
static void try_cut(const solver *s, uint32_t level, uint32_t cut, uint32_t prefix, uint32_t used,
                    uint32_t k, cell *best)
{
    const table *t = &s->tables[level];
    for (uint32_t q = 1; q < used; q++) {
        double time = cell_at(t, cut, k, used - q)->time;
        if (time >= best->time || !fits(s, t, k + 1, prefix, q, used))
            continue;
        time = fmax(time, stage_time(s, level, k + 1, prefix, q, false));
        time = fmax(time, message_time(s, t, k, q));
        if (prefix + 1 < t->n)
            time = fmax(time, message_time(s, t, prefix, q));
        if (time < best->time)
            *best = (cell){time, k, q};
    }
}

static void fill_cell(const solver *s, uint32_t level, uint32_t cut, uint32_t prefix, uint32_t used)
{
    const table *t = &s->tables[level];
    const cs_prefixes *prefixes = s->of->prefixes;
    cell best = {INFINITY, NO_CUT, used};
    if (cut == 0 || cs_prefixes_within(prefixes, cut - 1, prefix)) {
        if (fits(s, t, cut, prefix, used, used))
            best.time = stage_time(s, level, cut, prefix, used, true);
        for (uint32_t k = cut; k < prefix; k++) {
            if (cs_prefixes_within(prefixes, k, prefix))
                try_cut(s, level, cut, prefix, used, k, &best);
        }
    }
    *cell_at(t, cut, prefix, used) = best;
}

static cs_status fill_level(solver *s, uint32_t level, cs_error *error)
{
    table *t = &s->tables[level];
    const cs_replication_level *from = &s->of->levels[level];
    *t = (table){.n = s->of->prefixes->n,
                 .n_cuts = level + 1 < s->of->n_levels ? s->of->prefixes->n : 1,
                 .devices = from->n,
                 .bandwidth = from->bandwidth / (double)CS_PS_PER_SEC,
                 .below = level > 0 ? s->of->levels[level - 1].n : 1};
    t->cells = calloc((size_t)t->n_cuts * t->n * t->devices, sizeof(*t->cells));
    if (!t->cells)
        return cs_error_no_memory(error);
    s->n_tables = level + 1;
    for (uint32_t cut = 0; cut < t->n_cuts; cut++) {
        for (uint32_t used = 1; used <= t->devices; used++) {
            for (uint32_t prefix = cut; prefix < t->n; prefix++)
                fill_cell(s, level, cut, prefix, used);
        }
    }
    return CS_OK;
}

/* ---- the plan ---- */

/* Writes the devices of the stage in `path`: a machine of the last level, in it a machine of the
 * level below, and so on. */
static void write_devices(solver *s)
{
    uint32_t count = 1;
    for (uint32_t level = 0; level < s->n_tables; level++)
        count *= s->path[level].replicas;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t device = 0, size = 1, rest = i;
        for (uint32_t level = 0; level < s->n_tables; level++) {
            device += (s->path[level].first + rest % s->path[level].replicas) * size;
            rest /= s->path[level].replicas;
            size *= s->tables[level].devices;
        }
        s->devices[s->n_devices++] = device;
    }
    s->counts[s->n_stages - 1] = count;
}

/* Writes the stages between a cut and a prefix, on `used` devices of a level, from the first stage
 * on. */
static void write_stages(solver *s, uint32_t level, uint32_t cut, uint32_t prefix, uint32_t used)
{
    const cell *c = cell_at(&s->tables[level], cut, prefix, used);
    if (c->cut != NO_CUT) {
        write_stages(s, level, cut, c->cut, used - c->replicas);
        cut = c->cut + 1;
    }
    s->path[level] = (machines){used - c->replicas, c->replicas};
    if (level > 0) {
        write_stages(s, level - 1, cut, prefix, s->tables[level - 1].devices);
        return;
    }
    s->cuts[s->n_stages++] = cut;
    s->cuts[s->n_stages] = prefix + 1;
    write_devices(s);
}

static cs_status make_plan(solver *s, cs_plan *plan, cs_time *period, cs_error *error)
{
    const table *last = &s->tables[s->n_tables - 1];
    double time = cell_at(last, 0, last->n - 1, last->devices)->time;
    if (isinf(time))
        return cs_error_add(error, CS_LIMIT,
                            "no plan uses all %u devices: the samples of a micro-batch do not "
                            "divide into the shares that it would need",
                            last->devices);
    if (!(time < 0x1p62))
        return cs_error_add(error, CS_OVERFLOW,
                            "the period of replicated stages does not fit 2^62 ps");
    write_stages(s, s->n_tables - 1, 0, last->n - 1, last->devices);
    cs_plan made = {0};
    cs_status status = cs_plan_pipeline(s->cuts, s->n_stages, &made, error);
    if (status == CS_OK)
        status = cs_plan_place(&made, s->counts, s->devices, error);
    if (status != CS_OK) {
        cs_plan_finish(&made);
        return status;
    }
    *plan = made;
    *period = (cs_time)llround(time);
    return CS_OK;
}

/* ---- all levels ---- */

/* Allocates the arrays. Each device holds one stage, so there are at most n_devices stages. */
static cs_status reserve(solver *s, uint32_t n_devices, cs_error *error)
{
    s->tables = calloc(s->of->n_levels, sizeof(*s->tables));
    s->path = calloc(s->of->n_levels, sizeof(*s->path));
    s->cuts = calloc((size_t)n_devices + 1, sizeof(*s->cuts));
    s->counts = calloc(n_devices, sizeof(*s->counts));
    s->devices = calloc(n_devices, sizeof(*s->devices));
    return s->tables && s->path && s->cuts && s->counts && s->devices ? CS_OK
                                                                      : cs_error_no_memory(error);
}

static void release(solver *s)
{
    for (uint32_t level = 0; level < s->n_tables; level++)
        free(s->tables[level].cells);
    free(s->tables);
    free(s->path);
    free(s->cuts);
    free(s->counts);
    free(s->devices);
}

static cs_status check_effort(const cs_replication *of, double *n_devices, cs_error *error)
{
    static const double most_steps = 2e10; /* takes about a minute */
    double n = of->prefixes->n, steps = 0;
    *n_devices = 1;
    for (uint32_t level = 0; level < of->n_levels; level++) {
        double devices = of->levels[level].n;
        steps += n * n * devices * devices / 4 * (level + 1 < of->n_levels ? n / 3 : 1);
        *n_devices *= devices;
    }
    if (steps <= most_steps && *n_devices < CS_PLAN_DEVICES)
        return CS_OK;
    return cs_error_add(error, CS_LIMIT,
                        "cutting %.0f layers for %.0f devices with replicas takes too long", n,
                        *n_devices);
}

cs_status cs_replication_plan(const cs_replication *replication, cs_plan *plan, cs_time *period,
                              cs_error *error)
{
    solver s = {.of = replication};
    double n_devices;
    cs_status status = check_effort(replication, &n_devices, error);
    if (status == CS_OK)
        status = reserve(&s, (uint32_t)n_devices, error);
    for (uint32_t level = 0; level < replication->n_levels && status == CS_OK; level++)
        status = fill_level(&s, level, error);
    if (status == CS_OK)
        status = make_plan(&s, plan, period, error);
    release(&s);
    return status;
}
