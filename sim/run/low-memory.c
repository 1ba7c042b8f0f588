#include "sim/run/low-memory.h"

#include "sim/core/engine/task-window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *refuse(const cs_scenario *scenario)
{
    if (cs_noise_is_on(&scenario->noise))
        return "it has noise";
    if (scenario->has_allocator)
        return "it has an allocator";
    if (scenario->slowdown)
        return "communication slows computations down";
    if (scenario->schedule->asynchronous)
        return "its schedule has no flush, so its mini-batches overlap";
    return NULL;
}

/* Generates tasks, runs them and drops them. */
static cs_status run_window(const cs_scenario *scenario, const cs_simulation_options *options,
                            cs_simulation *made, cs_task_window_use *use, cs_error *error)
{
    cs_task_window *window = cs_task_window_create(&scenario->platform, options->progress);
    if (!window)
        return cs_error_no_memory(error);
    const cs_task_taker taker = cs_task_window_taker(window);
    cs_status status = cs_schedule_hand_on(scenario->schedule, &scenario->job, scenario->params,
                                           &taker, &made->graph, error);
    if (status == CS_OK)
        status = cs_task_window_end(window, &made->graph, &made->trace, use, error);
    cs_task_window_destroy(window);
    return status;
}

static cs_status run_whole(const cs_scenario *scenario, const cs_simulation_options *options,
                           cs_simulation *made, cs_task_window_use *use, cs_error *error)
{
    CS_TRY(cs_simulate_trace(scenario, options, &made->graph, &made->trace, error));
    /* Sum up the run of a whole graph. */
    use->compute = calloc((size_t)made->graph.n_devices + 1, sizeof(*use->compute));
    use->batch_end = calloc((size_t)made->graph.n_batches + 1, sizeof(*use->batch_end));
    if (!use->compute || !use->batch_end)
        return cs_error_no_memory(error);
    for (uint32_t task = 0; task < made->graph.n_tasks; task++) {
        const cs_class *cls = cs_graph_class(&made->graph, task);
        const cs_span span = made->trace.spans[task];
        cs_time *latest = &use->batch_end[cs_graph_mini_batch(&made->graph, task)];
        if (cs_kind_group_of(cls->kind) != CS_GROUP_COMPUTE)
            continue;
        use->compute[cls->device][cls->kind] += span.end - span.start;
        *latest = span.end > *latest ? span.end : *latest;
    }
    free(made->graph.tasks);
    free(made->graph.n_predecessors);
    free(made->graph.listed);
    made->graph.tasks = NULL;
    made->graph.n_predecessors = made->graph.listed = NULL;
    return CS_OK;
}

static cs_status analyse(const cs_scenario *scenario, cs_simulation *made, cs_task_window_use *use,
                         cs_error *error)
{
    const cs_graph *graph = &made->graph;
    cs_analysis *analysis = &made->analysis;
    *analysis = (cs_analysis){.n_devices = graph->n_devices, .makespan = made->trace.makespan};
    analysis->devices = calloc((size_t)graph->n_devices + 1, sizeof(*analysis->devices));
    if (!analysis->devices)
        return cs_error_no_memory(error);
    for (uint32_t d = 0; d < graph->n_devices; d++)
        memcpy(analysis->devices[d].compute, use->compute[cs_graph_stand_in(graph, d)],
               sizeof(analysis->devices[d].compute));
    analysis->staleness.version_difference.value = CS_STALENESS_NONE;
    /* Measure the middle half of the run, between the ends of two mini-batches, like cs_analysis. A
     * mini-batch counts as ended when all earlier ones have ended. */
    for (uint32_t b = 1; b < graph->n_batches; b++)
        use->batch_end[b] =
            use->batch_end[b] < use->batch_end[b - 1] ? use->batch_end[b - 1] : use->batch_end[b];
    analysis->middle = graph->n_batches > 1
                           ? use->batch_end[graph->n_batches - 1 - graph->n_batches / 4] -
                                 use->batch_end[graph->n_batches / 4]
                           : analysis->makespan;
    cs_analysis_set_rates(analysis, graph->n_batches, scenario->batch_size);
    return CS_OK;
}

static cs_status run(const cs_scenario *scenario, const cs_simulation_options *options,
                     cs_simulation *made, cs_error *error)
{
    cs_task_window_use use = {0};
    made->without_tasks = true;
    made->epoch = (double)scenario->dataset / scenario->batch_size;
    cs_status status = options->every_event ? run_whole(scenario, options, made, &use, error)
                                            : run_window(scenario, options, made, &use, error);
    if (status == CS_OK)
        status = analyse(scenario, made, &use, error);
    if (status == CS_OK)
        status = cs_simulation_state_forms(scenario, made, error);
    if (status == CS_OK) /* without an allocator, the needed memory is the peak */
        status = cs_memory_fit_find(scenario, &made->graph, &made->trace, &made->allocations,
                                    &made->fit, error);
    cs_task_window_use_finish(&use);
    return status;
}

cs_status cs_simulate_low_memory(const cs_scenario *scenario, const cs_simulation_options *options,
                                 cs_simulation *simulation, cs_error *error)
{
    cs_simulation made = {0};
    cs_error why;
    cs_error_init(&why);
    const char *reason = refuse(scenario);
    cs_status status =
        reason ? cs_error_add(&why, CS_USAGE, "%s", reason) : run(scenario, options, &made, &why);
    if (status == CS_OK)
        status = cs_memory_fit_find(scenario, &made.graph, &made.trace, &made.allocations,
                                    &made.fit, &why);
    if (status == CS_OK) {
        made.hash = cs_trace_hash(&made.trace);
        *simulation = made;
        return CS_OK;
    }
    cs_simulation_finish(&made);
    if (status == CS_USAGE)
        return cs_error_add(error, status, "%s: cannot be run with little memory: %s",
                            scenario->file, why.text);
    return cs_simulation_report(scenario, status, &why, error);
}
