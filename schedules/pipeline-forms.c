#include "schedules/pipeline.h"

#include <math.h>

static cs_time longer(cs_time a, cs_time b)
{
    return a > b ? a : b;
}

cs_time cs_pipeline_time(const cs_job *job, uint32_t stage, cs_time time)
{
    uint32_t device = job->plan->devices[job->plan->stages[stage].first_device];
    return cs_time_at_speed(time, job->speeds[device], &time) ? time : CS_TIME_MAX;
}

void cs_pipeline_times_of(const cs_job *job, cs_pipeline_times *times)
{
    *times = (cs_pipeline_times){.equal = true};
    for (uint32_t s = 0; s < job->plan->n_stages; s++) {
        const cs_layer_sum *sum = &job->stages[s];
        cs_time forward = cs_pipeline_time(job, s, sum->forward);
        cs_time backward = cs_pipeline_time(job, s, sum->backward_input + sum->backward_weight);
        cs_time update = cs_pipeline_time(job, s, sum->update);
        if (s > 0)
            times->equal &=
                forward == times->forward && backward == times->backward && update == times->update;
        times->forward = longer(times->forward, forward);
        times->backward = longer(times->backward, backward);
        times->update = longer(times->update, update);
    }
    times->free_messages = job->plan->n_stages == 1 || (job->latency == 0 && isinf(job->bandwidth));
}

/* A product of counts and times, saturating: a closed form that does not fit is no error of the
 * run. */
static int64_t times_count(cs_time time, int64_t count)
{
    cs_time product;
    return cs_time_mul(time, count, &product) ? product : CS_TIME_MAX;
}

cs_status cs_pipeline_add_forms(const cs_job *job, const cs_pipeline_times *times,
                                const char *source, cs_forms *forms, cs_error *error)
{
    int64_t P = job->plan->n_stages, M = job->micro_batches;
    cs_time step = times->forward + times->backward;
    cs_time batch = times_count(step, M + P - 1);
    if (batch <= CS_TIME_MAX - times->update)
        batch += times->update;
    bool applies = times->equal && times->free_messages;
    const char *assumes = "equal stages (here: the slowest), free messages";
    cs_status status =
        cs_forms_add(forms,
                     &(cs_form){.figure = CS_FIGURE_MAKESPAN,
                                .device = CS_NONE,
                                .exact = times_count(batch, job->iterations),
                                .formula = "(M + P - 1)(f + b) per mini-batch, and its update",
                                .source = source,
                                .applies = applies,
                                .assumes = assumes},
                     error);
    if (status != CS_OK)
        return status;
    return cs_forms_add(forms,
                        &(cs_form){.figure = CS_FIGURE_BUBBLE,
                                   .device = CS_NONE,
                                   .fraction = (double)(P - 1) / (double)(M + P - 1),
                                   .formula = "(P - 1)/(M + P - 1)",
                                   .source = source,
                                   .applies = applies && times->update == 0,
                                   .assumes = assumes},
                        error);
}

cs_status cs_pipeline_add_peaks(const cs_job *job,
                                uint32_t (*at_once)(uint32_t, uint32_t, uint32_t),
                                const char *formula, const char *source, cs_forms *forms,
                                cs_error *error)
{
    const cs_plan *plan = job->plan;
    cs_status status = CS_OK;
    for (uint32_t s = 0; s < plan->n_stages && status == CS_OK; s++) {
        int64_t micros = at_once(plan->n_stages, job->micro_batches, s), bytes;
        if (__builtin_mul_overflow(micros, job->stages[s].kept_bytes, &bytes))
            bytes = INT64_MAX;
        status = cs_forms_add(forms,
                              &(cs_form){.figure = CS_FIGURE_PEAK_ACTIVATIONS,
                                         .device = plan->devices[plan->stages[s].first_device],
                                         .exact = bytes,
                                         .formula = formula,
                                         .source = source,
                                         .applies = true,
                                         .assumes = "one stage per device"},
                              error);
    }
    return status;
}
