#include "sim/run/late-states.h"

#include <math.h>

enum { FLOAT = 4 };

/* The part of a stage's weights whose states a device has, as bytes from the end of the stage on. */
typedef struct part {
    double first, end;
    double scale; /* of each tensor */
} part;

static uint32_t place_of(const cs_parallel *parallel, uint32_t device)
{
    const uint32_t places = cs_grid_places(&parallel->split.grid);
    for (uint32_t i = 0; i < parallel->n_ranks * places; i++)
        if (parallel->devices[i] == device)
            return i % places;
    return 0;
}

static part part_of(const cs_scenario *scenario, uint32_t device, double all)
{
    const cs_parallel *parallel = scenario->parallel;
    const uint32_t zero = parallel ? scenario->job.states.zero : 0;
    if (zero == 0)
        return (part){0, all, 1};
    const cs_axes axes = cs_grid_axes(&parallel->split.grid, CS_AXES_SHARD);
    if (zero >= 3)
        return (part){0, all, 1.0 / axes.size};
    const uint32_t k = cs_axes_coordinate(axes, place_of(parallel, device));
    return (part){all * k / axes.size, all * (k + 1.0) / axes.size, 1};
}

/* Of the bytes of optimizer states, the share that is no copy of weights. */
static double late_share(const cs_scenario *scenario)
{
    const double width = cs_precision_bytes((cs_precision)scenario->model->precision);
    const double all = scenario->job.optimizer_ratio * width;
    const double copy = width < FLOAT && !scenario->storage.no_main ? FLOAT : 0;
    return all > copy ? (all - copy) / all : 0;
}

/* Momentum is one state, Adam has two. */
static uint32_t count_states(const cs_scenario *scenario)
{
    const double width = cs_precision_bytes((cs_precision)scenario->model->precision);
    const double state = scenario->storage.state_bytes > 0 ? scenario->storage.state_bytes : FLOAT;
    return (uint32_t)lround(scenario->job.optimizer_ratio * width * late_share(scenario) / state);
}

static double sum_parameters(const cs_model *model, const cs_stage *stage)
{
    double sum = 0;
    for (uint32_t l = stage->first_layer; l < stage->end_layer; l++)
        for (uint32_t i = 0; i < model->layers[l].n_parameters; i++)
            sum += (double)model->layers[l].parameters[i];
    return sum;
}

cs_status cs_late_states(const cs_scenario *scenario, uint32_t stage, uint32_t device,
                         int64_t bytes, int64_t *added,
                         cs_status (*add)(void *context, int64_t bytes, cs_error *error),
                         void *context, cs_error *error)
{
    const cs_model *model = scenario->model;
    const cs_stage *of = &scenario->job.plan->stages[stage];
    const double all = sum_parameters(model, of);
    const part mine = part_of(scenario, device, all);
    const double held = (mine.end - mine.first) * mine.scale;
    const uint32_t n = count_states(scenario);
    const double each = held > 0 && n > 0 ? (double)bytes * late_share(scenario) / n / held : 0;
    double at = 0;
    *added = 0;
    for (uint32_t l = of->end_layer; each > 0 && l-- > of->first_layer;) {
        for (uint32_t i = model->layers[l].n_parameters; i-- > 0;) {
            const double size = (double)model->layers[l].parameters[i];
            const double low = fmax(at, mine.first), high = fmin(at + size, mine.end);
            const int64_t state = high > low ? (int64_t)((high - low) * mine.scale * each) : 0;
            at += size;
            for (uint32_t s = 0; s < n && state > 0; s++) {
                CS_TRY(add(context, state, error));
                *added += state;
            }
        }
    }
    return CS_OK;
}
