/* Synchronous data parallelism: every device holds the whole model and computes a share of the
 * mini-batch. A ring all-reduce sums the gradients, either at once after the last backward or
 * bucket by bucket during the backward. */
#include "schedules/pipeline.h"

static const char source[] =
    "ring all-reduce: Patarasuk and Yuan, JPDC 2009; buckets: Li et al., PyTorch Distributed, VLDB "
    "2020 (arXiv 2006.15704), section 3.2";

typedef struct dp_params {
    uint32_t micro_batches;
    int64_t bucket;
} dp_params;

static const cs_field fields[] = {
    {"micro_batches", CS_FIELD_COUNT, offsetof(dp_params, micro_batches), .fallback = "1", .min = 1,
     .max = 1 << 20, .doc = "micro-batches per device whose gradients are accumulated"},
    {"bucket", CS_FIELD_BYTES, offsetof(dp_params, bucket), .fallback = "0 B",
     .doc =
         "bytes of gradients that are reduced together while the backward still runs, as PyTorch's "
         "DDP does with 25 MB; 0: one all-reduce after the backward, which overlaps with nothing"},
    {0},
};

/* Generates a pipeline with one stage, whose devices are a grid with only a data axis. */
static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    cs_grid grid = cs_grid_single();
    cs_plan plan = *job->plan;
    cs_job divided = *job;
    grid.data = plan.n_devices;
    plan.grid = &grid;
    divided.plan = &plan;
    divided.states = (cs_states){.bucket = ((const dp_params *)params)->bucket};
    return cs_pipeline_generate(&divided, &(cs_pipeline_options){.order = cs_pipeline_in_turn},
                                builder, error);
}

/* Computes the time of 2(N - 1) steps of one chunk. Each ring carries a part of the chunk. If m
 * does not divide evenly, the larger chunks determine the time. */
static bool reduce_time(const cs_job *job, cs_time *time)
{
    const int64_t n = job->plan->n_devices, bytes = job->stages[0].gradient_bytes;
    const int64_t rings = job->rings > 0 ? job->rings : 1, chunk = (bytes + n - 1) / n;
    const double bandwidth = job->rings > 0 ? job->rings_bandwidth / (double)rings : job->bandwidth;
    cs_time step;
    if (n == 1 || bytes == 0) {
        *time = 0;
        return true;
    }
    return cs_time_transfer((double)((chunk + rings - 1) / rings), bandwidth, &step) &&
           cs_time_add(step, job->rings > 0 ? job->rings_latency : job->latency, &step) &&
           cs_time_mul(step, 2 * (n - 1), time);
}

static bool equal_speeds(const cs_job *job)
{
    for (uint32_t d = 0; d < job->plan->n_devices; d++) {
        if (job->speeds[job->plan->devices[d]] != 1)
            return false;
    }
    return true;
}

/* Whether all ranks finish together. With unequal chunks some ranks finish earlier and begin the
 * next mini-batch earlier; with several rings, links wider than others may carry the larger
 * chunks. */
static bool ranks_stay_level(const cs_job *job)
{
    const int64_t n = job->plan->n_devices, bytes = job->stages[0].gradient_bytes;
    return job->rings > 0 ? bytes % (n * job->rings) == 0 : job->iterations == 1 || bytes % n == 0;
}

static cs_status add_peaks(const cs_job *job, cs_forms *forms, cs_error *error)
{
    cs_status status = CS_OK;
    for (uint32_t d = 0; d < job->plan->n_devices && status == CS_OK; d++)
        status = cs_forms_add(forms,
                              &(cs_form){.figure = CS_FIGURE_PEAK_ACTIVATIONS,
                                         .device = job->plan->devices[d],
                                         .exact = job->stages[0].kept_bytes,
                                         .formula = "1 activation",
                                         .source = "one micro-batch at a time",
                                         .applies = true,
                                         .assumes = "none"},
                              error);
    return status;
}

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    const cs_layer_sum *all = &job->stages[0];
    cs_time compute, reduce, makespan;
    if (cs_time_mul(all->forward + all->backward_input + all->backward_weight, job->micro_batches,
                    &compute) &&
        reduce_time(job, &reduce) && cs_time_add(compute, reduce, &makespan) &&
        cs_time_add(makespan, all->update, &makespan) &&
        cs_time_mul(makespan, job->iterations, &makespan)) {
        cs_form form = {.figure = CS_FIGURE_MAKESPAN,
                        .device = CS_NONE,
                        .exact = makespan,
                        .formula = "M(f + b) + 2(N - 1)(latency + m/(N bandwidth)) per mini-batch, "
                                   "and its update",
                        .source = source,
                        .applies = ((const dp_params *)params)->bucket == 0 && equal_speeds(job) &&
                                   (job->rings > 0 ? job->equal_rings : job->equal_messages) &&
                                   ranks_stay_level(job),
                        .assumes = "one bucket, speed 1, equal chunks (or one mini-batch), ring "
                                   "messages that do not share links"};
        CS_TRY(cs_forms_add(forms, &form, error));
    }
    return add_peaks(job, forms, error);
}

const cs_schedule cs_schedule_dp = {
    .name = "dp",
    .summary = "synchronous data parallelism: one all-reduce after the backward, or one per bucket "
               "during it",
    .source = source,
    .formulas =
        (const cs_formula[]){
            {CS_FIGURE_MAKESPAN,
             "M(f + b) + 2(N - 1)(latency + m/(N bandwidth)) per mini-batch, and its update"},
            {CS_FIGURE_PEAK_ACTIVATIONS, "1 activation"},
            {0}},
    .fields = fields,
    .params_size = sizeof(dp_params),
    .mesh = {.data = CS_LENGTH_DEVICES,
             .no_grid = "is data parallelism by itself and takes \"fold\" alone"},
    .micro_batches = offsetof(dp_params, micro_batches),
    .generate = generate,
    .closed_forms = closed_forms,
};
