#include "schedules/schedule.h"

#include "sim/base/vector.h"

#include <stdlib.h>

cs_status cs_forms_add(cs_forms *forms, const cs_form *form, cs_error *error)
{
    if (!cs_vector_reserve((void **)&forms->forms, &forms->capacity, forms->n + UINT64_C(1),
                           sizeof(*forms->forms)))
        return cs_error_no_memory(error);
    forms->forms[forms->n++] = *form;
    return CS_OK;
}

void cs_forms_finish(cs_forms *forms)
{
    free(forms->forms);
    *forms = (cs_forms){0};
}

const char *cs_figure_key(cs_figure figure)
{
    static const char *const keys[CS_N_FIGURES] = {
        [CS_FIGURE_MAKESPAN] = "makespan_s",
        [CS_FIGURE_BUBBLE] = "bubble_fraction",
        [CS_FIGURE_PIPELINE_BUBBLE] = "pipeline_bubble_fraction",
        [CS_FIGURE_ITERATION_TIME] = "iteration_time_s",
        [CS_FIGURE_EPOCH_TIME] = "epoch_time_s",
        [CS_FIGURE_PEAK_ACTIVATIONS] = "peak_activation_bytes",
        [CS_FIGURE_PEAK_MEMORY] = "peak_memory_bytes",
        [CS_FIGURE_PEAK_VERSIONS] = "peak_weight_versions",
        [CS_FIGURE_VERSION_DIFFERENCE] = "version_difference",
    };
    return keys[figure];
}

const char *cs_figure_label(cs_figure figure)
{
    static const char *const labels[CS_N_FIGURES] = {
        [CS_FIGURE_MAKESPAN] = "makespan",
        [CS_FIGURE_BUBBLE] = "bubble fraction",
        [CS_FIGURE_PIPELINE_BUBBLE] = "pipeline bubble",
        [CS_FIGURE_ITERATION_TIME] = "iteration time",
        [CS_FIGURE_EPOCH_TIME] = "epoch time",
        [CS_FIGURE_PEAK_ACTIVATIONS] = "peak activations",
        [CS_FIGURE_PEAK_MEMORY] = "peak memory",
        [CS_FIGURE_PEAK_VERSIONS] = "peak versions",
        [CS_FIGURE_VERSION_DIFFERENCE] = "version difference",
    };
    return labels[figure];
}

/* Adds the libraries' memory on simulated devices. */
static void add_libraries(const cs_job *job, cs_builder *builder)
{
    for (uint32_t d = 0; job->libraries && d < job->n_devices; d++)
        if (!job->stands_for || job->stands_for[d] == d)
            cs_builder_resident(builder, d, CS_MEMORY_WORKSPACE, job->libraries[d]);
}

static cs_builder *create_builder(const cs_job *job)
{
    return cs_builder_create(job->n_devices, job->plan->n_stages, job->micro_batches,
                             job->iterations);
}

static cs_status generate(const cs_schedule *schedule, const cs_job *job, const void *params,
                          cs_builder *builder, cs_graph *graph, cs_error *error)
{
    CS_TRY(schedule->generate(job, params, builder, error));
    add_libraries(job, builder);
    CS_TRY(cs_builder_finish(builder, graph, error));
    cs_status status = cs_graph_check(graph, error);
    if (status != CS_OK)
        cs_graph_finish(graph);
    return status;
}

cs_status cs_schedule_graph(const cs_schedule *schedule, const cs_job *job, const void *params,
                            cs_graph *graph, cs_error *error)
{
    cs_builder *builder = create_builder(job);
    if (!builder)
        return cs_error_no_memory(error);
    cs_status status = generate(schedule, job, params, builder, graph, error);
    cs_builder_destroy(builder);
    return status;
}

cs_status cs_schedule_hand_on(const cs_schedule *schedule, const cs_job *job, const void *params,
                              const cs_task_taker *taker, cs_graph *graph, cs_error *error)
{
    cs_builder *builder = create_builder(job);
    if (!builder)
        return cs_error_no_memory(error);
    cs_builder_hand_on(builder, taker);
    add_libraries(job, builder);
    cs_status status = schedule->generate(job, params, builder, error);
    if (status == CS_OK)
        status = cs_builder_finish(builder, graph, error);
    cs_builder_destroy(builder);
    return status;
}
