#include "schedules/pipeline.h"
#include "schedules/states.h"

#include <math.h>

static cs_time longer(cs_time a, cs_time b)
{
    return a > b ? a : b;
}

bool cs_pipeline_replicated(const cs_job *job)
{
    return job->plan->n_devices > job->plan->n_stages;
}

/* Returns the speed of a stage's slowest device; sets `alike` to whether all are equally
 * fast. */
static double slowest(const cs_job *job, uint32_t stage, bool *alike)
{
    const cs_stage *of = &job->plan->stages[stage];
    double speed = job->speeds[job->plan->devices[of->first_device]];
    *alike = true;
    for (uint32_t i = 1; i < of->n_devices; i++) {
        double other = job->speeds[job->plan->devices[of->first_device + i]];
        *alike &= other == speed;
        speed = other < speed ? other : speed;
    }
    return speed;
}

cs_time cs_pipeline_time(const cs_job *job, uint32_t stage, cs_time time)
{
    bool alike;
    return cs_time_at_speed(time, slowest(job, stage, &alike), &time) ? time : CS_TIME_MAX;
}

cs_time cs_pipeline_bytes_time(const cs_job *job, uint32_t stage)
{
    cs_time time;
    double bytes = (double)job->stages[stage].output_bytes;
    return cs_time_transfer(bytes, job->bandwidth, &time) ? time : CS_TIME_MAX;
}

cs_time cs_pipeline_add(cs_time a, cs_time b)
{
    cs_time sum;
    return cs_time_add(a, b, &sum) ? sum : CS_TIME_MAX;
}

static cs_time backward_time(const cs_job *job, uint32_t stage)
{
    const cs_layer_sum *sum = &job->stages[stage];
    return cs_pipeline_time(job, stage, cs_pipeline_add(sum->backward_input, sum->backward_weight));
}

static bool has_ties(const cs_job *job)
{
    for (uint32_t s = 0; s < job->plan->n_stages; s++) {
        if (job->stages[s].borrowed_bytes > 0)
            return true;
    }
    return false;
}

/* Whether a pass has several steps on a device with a speed other than 1: the time of each step is
 * rounded. */
static bool rounds_steps(const cs_job *job)
{
    bool rounds = false;
    for (uint32_t h = 0; job->plan->grid != NULL && h < job->plan->n_devices; h++)
        rounds |= job->speeds[job->plan->devices[h]] != 1;
    return rounds;
}

/* Finds which assumptions of closed forms hold for messages between stages. */
static void look_at_messages(const cs_job *job, cs_pipeline_times *times)
{
    bool lone = job->micro_batches == 1; /* then messages over one boundary are far apart in time */
    times->neighbours = (job->plan->n_stages == 1 || job->equal_messages) &&
                        !cs_pipeline_replicated(job) && !rounds_steps(job) &&
                        (!has_ties(job) || cs_pipeline_no_network(job));
    times->only_latency = times->short_messages = true;
    for (uint32_t s = 0; s + 1 < job->plan->n_stages; s++) {
        cs_time bytes = cs_pipeline_bytes_time(job, s);
        times->neighbours &= cs_plan_device(job->plan, s + 1) == cs_plan_device(job->plan, s) + 1;
        bool free = job->stages[s].output_bytes == 0 || isinf(job->bandwidth);
        bytes = longer(bytes, free ? 0 : 1); /* delays below half a picosecond add up on a link */
        times->only_latency &= free;
        times->short_messages &=
            lone || (bytes <= cs_pipeline_time(job, s, job->stages[s].forward) &&
                     bytes <= backward_time(job, s + 1));
    }
    if (cs_pipeline_replicated(job) || has_ties(job)) /* replicas and ties also have all-reduces */
        times->free_messages = cs_pipeline_no_network(job);
    else
        times->free_messages = job->plan->n_stages == 1 ||
                               (times->neighbours && times->only_latency && job->latency == 0);
}

void cs_pipeline_times_of(const cs_job *job, cs_pipeline_times *times)
{
    *times = (cs_pipeline_times){.equal = true, .equal_halves = true};
    for (uint32_t s = 0; s < job->plan->n_stages; s++) {
        cs_time forward = cs_pipeline_time(job, s, job->stages[s].forward);
        cs_time backward = backward_time(job, s);
        cs_time input = cs_pipeline_time(job, s, job->stages[s].backward_input);
        cs_time weight = cs_pipeline_time(job, s, job->stages[s].backward_weight);
        cs_time update = cs_pipeline_time(job, s, cs_states_update(job, s));
        bool alike;
        (void)slowest(job, s, &alike);
        times->equal &= alike;
        if (s > 0) {
            times->equal &=
                forward == times->forward && backward == times->backward && update == times->update;
            times->equal_halves &= input == times->input && weight == times->weight;
        }
        times->forward = longer(times->forward, forward);
        times->backward = longer(times->backward, backward);
        times->input = longer(times->input, input);
        times->weight = longer(times->weight, weight);
        times->update = longer(times->update, update);
    }
    times->equal &= !rounds_steps(job);
    times->equal_halves &= times->equal;
    times->step = cs_pipeline_add(times->forward, times->backward);
    look_at_messages(job, times);
}

cs_status cs_pipeline_check_versions(const cs_job *job, const cs_json_place *place, cs_error *error)
{
    const cs_json_place at = {.up = place, .key = "kind"};
    if (cs_states_zero(job) < 3)
        return CS_OK;
    return cs_json_invalid(
        &at, error,
        "must be a schedule with a flush where weights rest divided "
        "(/parallel/zero 3), \"1f1b\" say: a backward may need an older version, "
        "which cannot be gathered again; with zero 0, 1 or 2 it runs");
}

bool cs_pipeline_no_network(const cs_job *job)
{
    return job->equal_messages && job->latency == 0 && isinf(job->bandwidth);
}

/* Returns time * count; the largest value if it overflows. */
static int64_t times_count(cs_time time, int64_t count)
{
    cs_time product;
    return cs_time_mul(time, count, &product) ? product : CS_TIME_MAX;
}

cs_status cs_pipeline_add_forms(const cs_job *job, const cs_pipeline_times *times,
                                const char *source, cs_forms *forms, cs_error *error)
{
    int64_t P = job->plan->n_stages, M = job->micro_batches;
    cs_time batch = cs_pipeline_add(times_count(times->step, M + P - 1), times->update);
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
    return cs_forms_add(
        forms,
        &(cs_form){.figure = CS_FIGURE_PIPELINE_BUBBLE,
                   .device = CS_NONE,
                   .fraction = (double)(P - 1) / (double)(M + P - 1),
                   .formula = "(P - 1)/(M + P - 1)",
                   .source = source,
                   .applies = applies && times->update == 0 && times->step > 0,
                   .assumes = "equal stages (here: the slowest), free messages, no update"},
        error);
}

cs_status cs_pipeline_add_peaks(const cs_job *job, cs_pipeline_count *at_once, const char *formula,
                                const char *source, cs_forms *forms, cs_error *error)
{
    const cs_plan *plan = job->plan;
    cs_status status = CS_OK;
    for (uint32_t h = 0, s = 0; h < plan->n_devices && status == CS_OK; h++) {
        s += h == plan->stages[s].first_device + plan->stages[s].n_devices;
        int64_t micros = at_once(job, s, h - plan->stages[s].first_device), bytes;
        if (__builtin_mul_overflow(micros, job->stages[s].kept_bytes, &bytes))
            bytes = INT64_MAX;
        status = cs_forms_add(forms,
                              &(cs_form){.figure = CS_FIGURE_PEAK_ACTIVATIONS,
                                         .device = plan->devices[h],
                                         .exact = bytes,
                                         .formula = formula,
                                         .source = source,
                                         .applies = true,
                                         .assumes = "one stage per device"},
                              error);
    }
    return status;
}
