#include "sim/run/resident-tensors.h"

#include <math.h>

enum { FLOAT = 4 };

/* A device's part of a stage's weights (or of its experts' weights), in bytes from the end of the
 * stage. */
typedef struct part {
    double first, end;
    double scale; /* share of each tensor */
} part;

static uint32_t place_of(const cs_parallel *parallel, uint32_t device)
{
    const uint32_t places = cs_grid_places(&parallel->split.grid);
    for (uint32_t i = 0; i < parallel->n_ranks * places; i++)
        if (parallel->devices[i] == device)
            return i % places;
    return 0;
}

static part part_of(const cs_scenario *scenario, uint32_t device, bool experts, double all)
{
    const cs_parallel *parallel = scenario->parallel;
    const uint32_t zero = parallel ? scenario->job.states.zero : 0;
    if (zero == 0)
        return (part){0, all, 1};
    const cs_axes axes =
        cs_grid_axes(&parallel->split.grid, experts ? CS_AXES_EXPERT_SHARD : CS_AXES_SHARD);
    if (axes.size <= 1)
        return (part){0, all, 1};
    if (zero >= 3)
        return (part){0, all, 1.0 / axes.size};
    const uint32_t k = cs_axes_coordinate(axes, place_of(parallel, device));
    return (part){all * k / axes.size, all * (k + 1.0) / axes.size, 1};
}

/* Returns the share of optimizer states that are not copies of weights. */
static double late_share(const cs_scenario *scenario)
{
    const double width = cs_precision_bytes((cs_precision)scenario->model->precision);
    const double all = scenario->job.optimizer_ratio * width;
    const double copy = width < FLOAT && !scenario->storage.no_main ? FLOAT : 0;
    return all > copy ? (all - copy) / all : 0;
}

/* Returns 1 for momentum, 2 for Adam. */
static uint32_t count_states(const cs_scenario *scenario)
{
    const double width = cs_precision_bytes((cs_precision)scenario->model->precision);
    const double state = scenario->storage.state_bytes > 0 ? scenario->storage.state_bytes : FLOAT;
    return (uint32_t)lround(scenario->job.optimizer_ratio * width * late_share(scenario) / state);
}

/* Finds the range [first, end) of a layer's weights that belong to experts, or that do not. */
static void find_weights(const cs_layer *layer, bool experts, uint32_t *first, uint32_t *end)
{
    const uint32_t dense = layer->n_parameters - layer->n_expert_parameters;
    *first = experts ? dense : 0;
    *end = experts ? layer->n_parameters : dense;
}

static double sum_weights(const cs_model *model, const cs_stage *stage, bool experts)
{
    double sum = 0;
    for (uint32_t l = stage->first_layer; l < stage->end_layer; l++) {
        uint32_t i, end;
        for (find_weights(&model->layers[l], experts, &i, &end); i < end; i++)
            sum += (double)model->layers[l].parameters[i];
    }
    return sum;
}

/* Tensors to make from a device's part of the weights: `n` per weight tensor, with `each` bytes per
 * byte of weights. */
typedef struct made_of {
    const cs_model *model;
    const cs_stage *stage;
    part parts[2]; /* parts of the dense weights, and of the experts' weights */
    uint32_t n;
    double each;
} made_of;

static cs_status add_layer(const made_of *of, const cs_layer *layer, bool experts, double *at,
                           cs_added_tensor *add, void *context, int64_t *added, cs_error *error)
{
    const part *mine = &of->parts[experts];
    uint32_t first, i;
    for (find_weights(layer, experts, &first, &i); i > first;) {
        const double size = (double)layer->parameters[--i];
        const double low = fmax(*at, mine->first), high = fmin(*at + size, mine->end);
        const int64_t bytes = high > low ? (int64_t)((high - low) * mine->scale * of->each) : 0;
        *at += size;
        for (uint32_t k = 0; k < of->n && bytes > 0; k++) {
            CS_TRY(add(context, bytes, error));
            *added += bytes;
        }
    }
    return CS_OK;
}

static cs_status add_tensors(const made_of *of, cs_added_tensor *add, void *context, int64_t *added,
                             cs_error *error)
{
    *added = 0;
    for (int experts = 0; of->each > 0 && experts < 2; experts++) {
        double at = 0;
        for (uint32_t l = of->stage->end_layer; l-- > of->stage->first_layer;)
            CS_TRY(
                add_layer(of, &of->model->layers[l], experts > 0, &at, add, context, added, error));
    }
    return CS_OK;
}

cs_status cs_optimizer_tensors(const cs_scenario *scenario, uint32_t stage, uint32_t device,
                               bool late, int64_t bytes, int64_t *added, cs_added_tensor *add,
                               void *context, cs_error *error)
{
    made_of of = {.model = scenario->model, .stage = &scenario->job.plan->stages[stage]};
    const double share = late ? late_share(scenario) : 1 - late_share(scenario);
    double held = 0;
    for (int experts = 0; experts < 2; experts++) {
        const double all = sum_weights(of.model, of.stage, experts > 0);
        of.parts[experts] = part_of(scenario, device, experts > 0, all);
        held += (of.parts[experts].end - of.parts[experts].first) * of.parts[experts].scale;
    }
    of.n = late ? count_states(scenario) : 1;
    of.each = held > 0 && of.n > 0 ? (double)bytes * share / of.n / held : 0;
    return add_tensors(&of, add, context, added, error);
}

cs_status cs_weight_tensors(const cs_scenario *scenario, uint32_t stage, cs_added_tensor *add,
                            void *context, cs_error *error)
{
    const part all = {0, (double)INFINITY, 1};
    const made_of of = {scenario->model, &scenario->job.plan->stages[stage], {all, all}, 1, 1};
    int64_t added;
    return add_tensors(&of, add, context, &added, error);
}
