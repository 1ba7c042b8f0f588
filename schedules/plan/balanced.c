#include "schedules/plan/plan.h"

#include <stdlib.h>

/* best[p][l]: the least possible bottleneck of the first l layers in p stages; choice[p][l]: where
 * the last of these stages starts. Rows of n_layers + 1. */
typedef struct table {
    const cs_balance *of;
    uint32_t n_layers;
    double *before; /* sum of forward + backward of the layers before each, in ps */
    double *best;
    uint32_t *choice;
} table;

static double *best_at(const table *t, uint32_t stages, uint32_t layers)
{
    return &t->best[(size_t)stages * (t->n_layers + 1) + layers];
}

static uint32_t *choice_at(const table *t, uint32_t stages, uint32_t layers)
{
    return &t->choice[(size_t)stages * (t->n_layers + 1) + layers];
}

/* One activation and one gradient over the boundary before `layer`. */
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

/* The bottleneck when stage `stage` (from 0) holds [first, end) and the stages before it are at
 * best. */
static double bottleneck(const table *t, uint32_t stage, uint32_t first, uint32_t end)
{
    double speed = t->of->speeds ? t->of->speeds[stage] : 1;
    double load = (t->before[end] - t->before[first]) / speed;
    return larger(larger(*best_at(t, stage, first), boundary_time(t, first)), load);
}

static void fill(table *t)
{
    for (uint32_t stages = 1; stages <= t->of->n_stages; stages++) {
        for (uint32_t end = stages; end <= t->n_layers; end++) {
            uint32_t lowest = stages == 1 ? 0 : stages - 1;
            uint32_t highest = stages == 1 ? 0 : end - 1;
            *best_at(t, stages, end) = bottleneck(t, stages - 1, lowest, end);
            *choice_at(t, stages, end) = lowest;
            for (uint32_t first = lowest + 1; first <= highest; first++) {
                double value = bottleneck(t, stages - 1, first, end);
                if (value < *best_at(t, stages, end)) {
                    *best_at(t, stages, end) = value;
                    *choice_at(t, stages, end) = first;
                }
            }
        }
    }
}

static bool reserve(table *t)
{
    size_t rows = (size_t)t->of->n_stages + 1, columns = (size_t)t->n_layers + 1;
    t->before = calloc(columns, sizeof(*t->before));
    t->best = calloc(rows * columns, sizeof(*t->best));
    t->choice = calloc(rows * columns, sizeof(*t->choice));
    return t->before && t->best && t->choice;
}

static cs_status solve(table *t, cs_plan *plan, cs_error *error)
{
    if (!reserve(t))
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < t->n_layers; i++) {
        const cs_layer *layer = &t->of->model->layers[i];
        t->before[i + 1] = t->before[i] + (double)layer->forward + (double)layer->backward_input +
                           (double)layer->backward_weight;
    }
    fill(t);
    uint32_t *cuts = malloc(((size_t)t->of->n_stages + 1) * sizeof(*cuts));
    if (!cuts)
        return cs_error_no_memory(error);
    cuts[t->of->n_stages] = t->n_layers;
    for (uint32_t s = t->of->n_stages; s > 0; s--)
        cuts[s - 1] = *choice_at(t, s, cuts[s]);
    cs_status status = cs_plan_pipeline(cuts, t->of->n_stages, plan, error);
    free(cuts);
    return status;
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
    free(t.choice);
    return status;
}
