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

static double compute_of(const cs_time_use *use)
{
    double seconds = 0;
    for (uint32_t k = 0; k < CS_N_KINDS; k++)
        seconds += k == CS_UPDATE ? 0 : cs_time_seconds(use->compute[k]);
    return seconds;
}

/* Returns the host's share of the updates of a device's stages, in s per run. */
static double host_of(const cs_scenario *scenario, uint32_t device)
{
    const cs_job *job = &scenario->job;
    cs_time host = 0;
    for (uint32_t s = 0; s < job->plan->n_stages; s++)
        host += holds(job->plan, s, device) ? cs_states_host(job, s) : 0;
    return cs_time_seconds(host) * job->iterations;
}

/* Returns the time, in s, when a device has finished its first forward of each stage. */
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

/* Returns how much of `tail`, the time of messages after the last computation, the next step's
 * first forward cannot overlap, in s: a layer waits for its weights, which arrive in the order of
 * layers. The device with the shortest forward decides. */
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
    for (uint32_t d = 0; d < n; d++) {
        const cs_time_use *use = &simulation->analysis.devices[d];
        const double slowed = cs_time_seconds(use->slowed), waited = cs_time_seconds(use->waited);
        const double computing = compute_of(use) - slowed - waited;
        const double host = fmin(host_of(scenario, d), cs_time_seconds(use->compute[CS_UPDATE]));
        double kernels[CS_N_KERNEL_KINDS] = {0}, sum = 0;
        /* Add up the layers of a device's stages; leaves 0 if kernels are not known. */
        const cs_job *job = &scenario->job;
        const cs_layer *layers = cs_model_layers(job->model, job->micro_samples);
        for (uint32_t s = 0; s < job->plan->n_stages; s++) {
            const cs_stage *stage = &job->plan->stages[s];
            if (!holds(job->plan, s, d))
                continue;
            for (uint32_t l = stage->first_layer; layers && l < stage->end_layer; l++) {
                /* Add the kernel times of a layer per micro-batch. A repeated forward counts with
                 * the backward. */
                const cs_layer *layer = &layers[l];
                const int forwards = layer->recompute ? 2 : 1;
                for (uint32_t k = 0; k < CS_N_KERNEL_KINDS; k++)
                    kernels[k] += forwards * layer->kernels[CS_KERNELS_FORWARD][k] +
                                  layer->kernels[CS_KERNELS_BACKWARD][k] -
                                  (layer->recompute ? layer->kernels[CS_KERNELS_SKIPPED][k] : 0);
            }
        }
        for (uint32_t k = 0; k < CS_N_KERNEL_KINDS; k++)
            sum += kernels[k];
        for (uint32_t k = 0; k < CS_N_KERNEL_KINDS && sum > 0; k++)
            made.seconds[k] += computing * kernels[k] / sum;
        made.seconds[CS_PART_COMPUTING] += sum > 0 ? 0 : computing;
        made.seconds[CS_PART_SLOWED] += slowed;
        made.seconds[CS_PART_OPTIMIZER] += cs_time_seconds(use->compute[CS_UPDATE]) - host;
        made.seconds[CS_PART_WAITING] += host + waited;
        for (uint32_t p = 0; p < CS_N_PURPOSES; p++)
            made.seconds[CS_PART_FOR_STAGES + p] += cs_time_seconds(use->exposed[p]);
        made.seconds[CS_PART_BUBBLE] +=
            cs_time_seconds(use->dependency) + cs_time_seconds(use->flush);
    }
    made.seconds[CS_PART_FOR_WEIGHTS] += n * (left - tail);
    for (uint32_t p = 0; p < CS_N_STEP_PARTS && n > 0; p++)
        made.seconds[p] *= share / n;
    return made;
}
