#include "schedules/plan/plan.h"

#include <math.h>
#include <stdlib.h>

/* best[p][i]: the smallest possible bottleneck of the first p + i layers in p stages of at least
 * one layer each. The n_stages - p later stages need a layer each, so i < `columns`. */
typedef struct table {
    const cs_balance *of;
    uint32_t n_layers, columns;
    double *before; /* per layer: sum of forward + backward of all earlier layers, ps */
    double *best;
    uint32_t *stack; /* candidate starts, used by fill_stage */
} table;

static double *best_at(const table *t, uint32_t stages, uint32_t layers)
{
    return &t->best[(size_t)stages * t->columns + (layers - stages)];
}

/* Returns the time of one activation and one gradient over the boundary before `layer`. */
static double boundary_time(const table *t, uint32_t layer)
{
    if (!t->of->communication || layer == 0)
        return 0;
    double bytes = (double)t->of->model->layers[layer - 1].output_bytes;
    return 2 * ((double)t->of->latency + bytes * (double)CS_PS_PER_SEC / t->of->bandwidth);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Returns the smallest bottleneck of the stages before `stage` (counted from 0) if it starts at
 * `first`. */
static double front(const table *t, uint32_t stage, uint32_t first)
{
    return larger(*best_at(t, stage, first), boundary_time(t, first));
}

static double load(const table *t, uint32_t stage, uint32_t first, uint32_t end)
{
    const double speed = t->of->speeds ? t->of->speeds[stage] : 1;
    return (t->before[end] - t->before[first]) / speed;
}

/* For each end of a stage, finds the smallest max(front(first), load(first, end)) over its starts,
 * with the earlier stages at their best. A later start has a smaller load, so a start matters only
 * if its front is below the fronts of all later starts. The stack holds these starts, with rising
 * fronts and falling loads. The optimum is at the first start whose front is not below its load, or
 * at the start before it. As `end` increases, loads rise and this position only moves up. */
static void fill_stage(table *t, uint32_t stage)
{
    uint32_t n = 0, at = 0;
    for (uint32_t end = stage + 1; end < stage + 1 + t->columns; end++) {
        const uint32_t start = end - 1;
        while (n > 0 && front(t, stage, t->stack[n - 1]) >= front(t, stage, start))
            n--;
        t->stack[n++] = start;
        at = at < n ? at : n - 1;
        while (at < n && front(t, stage, t->stack[at]) < load(t, stage, t->stack[at], end))
            at++;
        double best = at < n ? front(t, stage, t->stack[at]) : INFINITY;
        if (at > 0)
            best = fmin(best, load(t, stage, t->stack[at - 1], end));
        *best_at(t, stage + 1, end) = best;
    }
}

/* Returns the first optimal start of the last of `stages` stages that hold layers 0 to end - 1. */
static uint32_t first_start(const table *t, uint32_t stages, uint32_t end)
{
    const double best = *best_at(t, stages, end);
    uint32_t first = stages - 1;
    while (larger(front(t, stages - 1, first), load(t, stages - 1, first, end)) > best)
        first++;
    return first;
}

static cs_status solve(table *t, cs_plan *plan, cs_error *error)
{
    const uint32_t n_stages = t->of->n_stages;
    t->columns = t->n_layers - n_stages + 1;
    t->before = calloc((size_t)t->n_layers + 1, sizeof(*t->before));
    t->best = calloc(((size_t)n_stages + 1) * t->columns, sizeof(*t->best));
    t->stack = malloc(((size_t)t->n_layers + n_stages + 1) * sizeof(*t->stack));
    if (!t->before || !t->best || !t->stack)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < t->n_layers; i++) {
        const cs_layer *layer = &t->of->model->layers[i];
        t->before[i + 1] = t->before[i] + (double)layer->forward + (double)layer->backward_input +
                           (double)layer->backward_weight;
    }
    for (uint32_t end = 1; end <= t->columns; end++) /* the first stage starts at layer 0 */
        *best_at(t, 1, end) = load(t, 0, 0, end);
    for (uint32_t stage = 1; stage < n_stages; stage++)
        fill_stage(t, stage);
    uint32_t *cuts = t->stack + t->n_layers;
    cuts[n_stages] = t->n_layers;
    cuts[0] = 0;
    for (uint32_t s = n_stages; s > 1; s--)
        cuts[s - 1] = first_start(t, s, cuts[s]);
    return cs_plan_pipeline(cuts, n_stages, plan, error);
}

cs_status cs_plan_balanced(const cs_balance *balance, cs_plan *plan, cs_error *error)
{
    uint32_t n_layers = balance->model->n_layers;
    if (balance->n_stages == 0 || balance->n_stages > n_layers)
        return cs_error_add(error, CS_INVALID,
                            "a pipeline of %u stages needs as many layers: the model \"%s\" has %u",
                            balance->n_stages, balance->model->name, n_layers);
    table t = {.of = balance, .n_layers = n_layers};
    cs_status status = solve(&t, plan, error);
    free(t.before);
    free(t.best);
    free(t.stack);
    return status;
}
