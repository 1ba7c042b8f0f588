#include "sim/run/step-parts.h"

#include "schedules/states.h"

#include <math.h>

const char *const cs_step_part_names[] = {
#define CS_PART_NAME(name, text) text,
    CS_KERNEL_MAP(CS_PART_NAME) "other computing", "slowed", "optimizer",
#undef CS_PART_NAME
#define CS_PART_NAME(name, text) "for " text,
    CS_PURPOSE_MAP(CS_PART_NAME)
#undef CS_PART_NAME
        "bubble",
    NULL};

const char *const cs_step_part_keys[] = {
    "products",   "attention",   "memory_bound", "launch_gaps",   "other_computing",
    "slowed",     "optimizer",   "for_stages",   "for_gradients", "for_weights",
    "for_tensor", "for_context", "for_expert",   "for_space",     "for_host",
    "bubble",     NULL};

static bool holds(const cs_plan *plan, uint32_t stage, uint32_t device)
{
    const cs_stage *of = &plan->stages[stage];
    for (uint32_t i = 0; i < of->n_devices; i++)
        if (plan->devices[of->first_device + i] == device)
            return true;
    return false;
}

/* Adds what one micro-batch takes of a layer, by kernel; a forward that runs again is part of the
 * backward. */
static void add_layer(const cs_layer *layer, double *kernels)
{
    const int forwards = layer->recompute ? 2 : 1;
    for (uint32_t k = 0; k < CS_N_KERNEL_KINDS; k++)
        kernels[k] += forwards * layer->kernels[CS_KERNELS_FORWARD][k] +
                      layer->kernels[CS_KERNELS_BACKWARD][k] -
                      (layer->recompute ? layer->kernels[CS_KERNELS_SKIPPED][k] : 0);
}

/* Of the stages of a device; all 0 where they are not known. */
static void find_kernels(const cs_scenario *scenario, uint32_t device, double *kernels)
{
    const cs_job *job = &scenario->job;
    const cs_layer *layers = cs_model_layers(job->model, job->micro_samples);
    for (uint32_t s = 0; s < job->plan->n_stages; s++) {
        const cs_stage *stage = &job->plan->stages[s];
        if (!holds(job->plan, s, device))
            continue;
        for (uint32_t l = stage->first_layer; layers && l < stage->end_layer; l++)
            add_layer(&layers[l], kernels);
    }
}

static double compute_of(const cs_time_use *use)
{
    double seconds = 0;
    for (uint32_t k = 0; k < CS_N_KINDS; k++)
        seconds += k == CS_UPDATE ? 0 : cs_time_seconds(use->compute[k]);
    return seconds;
}

/* Of the updates of its stages, what is the host's, in a step. */
static double host_of(const cs_scenario *scenario, uint32_t device)
{
    const cs_job *job = &scenario->job;
    cs_time host = 0;
    for (uint32_t s = 0; s < job->plan->n_stages; s++)
        host += holds(job->plan, s, device) ? cs_states_host(job, s) : 0;
    return cs_time_seconds(host) * job->iterations;
}

static void add_device(const cs_scenario *scenario, const cs_simulation *simulation,
                       uint32_t device, double *parts)
{
    const cs_time_use *use = &simulation->analysis.devices[device];
    const double slowed = cs_time_seconds(use->slowed), waited = cs_time_seconds(use->waited);
    const double computing = compute_of(use) - slowed - waited;
    const double host = fmin(host_of(scenario, device), cs_time_seconds(use->compute[CS_UPDATE]));
    double kernels[CS_N_KERNEL_KINDS] = {0}, sum = 0;
    find_kernels(scenario, device, kernels);
    for (uint32_t k = 0; k < CS_N_KERNEL_KINDS; k++)
        sum += kernels[k];
    for (uint32_t k = 0; k < CS_N_KERNEL_KINDS && sum > 0; k++)
        parts[k] += computing * kernels[k] / sum;
    parts[CS_PART_COMPUTING] += sum > 0 ? 0 : computing;
    parts[CS_PART_SLOWED] += slowed;
    parts[CS_PART_OPTIMIZER] += cs_time_seconds(use->compute[CS_UPDATE]) - host;
    parts[CS_PART_WAITING] += host + waited;
    for (uint32_t p = 0; p < CS_N_PURPOSES; p++)
        parts[CS_PART_FOR_STAGES + p] += cs_time_seconds(use->exposed[p]);
    parts[CS_PART_BUBBLE] += cs_time_seconds(use->dependency) + cs_time_seconds(use->flush);
}

/* When a device has computed its first forward of each stage, s. */
static double first_forward(const cs_simulation *simulation, uint32_t device)
{
    const cs_graph *graph = &simulation->graph;
    cs_time end = 0;
    for (uint32_t t = graph->first_task[device]; t != CS_NONE; t = graph->tasks[t].next) {
        const cs_time own = simulation->trace.spans[t].end;
        if (cs_graph_class(graph, t)->kind == CS_FORWARD && graph->tasks[t].item == 0)
            end = own > end ? own : end;
    }
    return cs_time_seconds(end);
}

/* Of what is sent for `tail` behind the last computation, what the next step's first forward does
 * not hide: a layer waits for its weights, and they come in the order of layers. Of the device that
 * has the least to hide it with, s. */
static double left_of(const cs_simulation *simulation, double tail)
{
    double left = 0;
    for (uint32_t d = 0; tail > 0 && d < simulation->graph.n_devices; d++)
        if (cs_graph_has(&simulation->graph, d))
            left = fmax(left, tail - first_forward(simulation, d));
    return left;
}

cs_step_parts cs_step_parts_find(const cs_scenario *scenario, const cs_simulation *simulation,
                                 bool behind)
{
    const cs_analysis *analysis = &simulation->analysis;
    const double makespan = cs_time_seconds(analysis->makespan);
    const uint32_t n = analysis->n_devices, steps = scenario->job.iterations;
    const double tail = cs_time_seconds(analysis->behind);
    const double left = behind ? tail : left_of(simulation, tail);
    cs_step_parts made = {.step =
                              behind ? makespan / steps : analysis->iteration_time - tail + left};
    const double share = steps == 1 ? 1 : made.step / makespan;
    for (uint32_t d = 0; d < n; d++)
        add_device(scenario, simulation, d, made.seconds);
    made.seconds[CS_PART_FOR_WEIGHTS] += n * (left - tail);
    for (uint32_t p = 0; p < CS_N_STEP_PARTS && n > 0; p++)
        made.seconds[p] *= share / n;
    return made;
}
