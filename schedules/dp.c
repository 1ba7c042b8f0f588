/* Synchronous data parallelism: every device holds the whole model and a share of the mini-batch;
 * the gradients are summed by a ring all-reduce, in one piece after the last backward, or bucket by
 * bucket while the backward still runs. */
#include "schedules/residents.h"

#include <stdlib.h>

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
     .doc = "gradients are reduced while the backward still runs, whenever this many bytes have "
            "accumulated, as PyTorch's DDP does with 25 MB; 0: one all-reduce after the backward, "
            "which overlaps with nothing"},
    {0},
};

static uint32_t micro_batches(const void *params)
{
    return ((const dp_params *)params)->micro_batches;
}

/* A run of layers whose gradients are reduced together. Buckets are numbered in the order of the
 * backward: bucket 0 holds the last layers. */
typedef struct bucket {
    cs_layer_sum sum;
    uint32_t reduce; /* class of its all-reduce; CS_NONE when there is nothing to reduce */
} bucket;

/* The classes of one device: the backward of each bucket, consecutive from `backward` on. */
typedef struct rank_classes {
    uint32_t forward, backward, update;
} rank_classes;

typedef struct data_parallel {
    const cs_job *job;
    cs_builder *builder;
    uint32_t n_ranks, n_buckets;
    bucket *buckets;
    rank_classes *ranks;
    uint32_t *computed; /* per rank: its last backward so far */
    uint32_t *reduced;  /* per rank: its part in the latest all-reduce, or CS_NONE */
} data_parallel;

/* Cuts the chain from its end into runs that have `least` bytes of gradients or more. */
static cs_status cut_buckets(data_parallel *dp, int64_t least, cs_error *error)
{
    const cs_model *model = dp->job->model;
    const int64_t ratio = cs_model_gradient_ratio(model);
    cs_layer_sum before, with;
    uint32_t end = model->n_layers;
    while (end > 0) {
        uint32_t first = end;
        int64_t bytes = 0;
        while (first > 0 && (least == 0 || bytes < least || bytes == 0))
            bytes += ratio * model->layers[--first].weight_bytes;
        bucket *made = &dp->buckets[dp->n_buckets++];
        CS_TRY(cs_model_sum(model, first, end, dp->job->micro_samples, &made->sum, error));
        CS_TRY(cs_model_sum(model, 0, first, dp->job->micro_samples, &before, error));
        CS_TRY(cs_model_sum(model, 0, end, dp->job->micro_samples, &with, error));
        made->sum.kept_bytes = with.kept_bytes - before.kept_bytes; /* what buckets share, once */
        end = first;
    }
    return CS_OK;
}

static void make_reductions(data_parallel *dp)
{
    uint32_t group = CS_NONE;
    if (dp->n_ranks > 1)
        group = cs_builder_group(dp->builder, dp->job->plan->devices, dp->n_ranks);
    for (uint32_t b = 0; b < dp->n_buckets; b++) {
        int64_t bytes = dp->buckets[b].sum.gradient_bytes;
        dp->buckets[b].reduce = CS_NONE;
        if (dp->n_ranks > 1 && bytes > 0)
            dp->buckets[b].reduce =
                cs_builder_collective(dp->builder, CS_ALL_REDUCE, 0, group, bytes);
    }
}

static void make_rank(data_parallel *dp, uint32_t rank)
{
    const cs_layer_sum *all = &dp->job->stages[0];
    uint32_t device = dp->job->plan->devices[rank];
    uint32_t slot = cs_residents_add(dp->builder, dp->job, 0, device);
    rank_classes *classes = &dp->ranks[rank];
    classes->forward = cs_builder_compute(dp->builder, CS_FORWARD, 0, device, slot, all->forward);
    for (uint32_t b = 0; b < dp->n_buckets; b++)
        cs_builder_effect(dp->builder, CS_MEMORY_ACTIVATIONS, device, dp->buckets[b].sum.kept_bytes,
                          false);
    cs_builder_workspace(dp->builder, device, all->workspace_bytes);
    classes->update = cs_builder_compute(dp->builder, CS_UPDATE, 0, device, slot, all->update);
    for (uint32_t b = 0; b < dp->n_buckets; b++) {
        const cs_layer_sum *sum = &dp->buckets[b].sum;
        uint32_t cls = cs_builder_compute(dp->builder, CS_BACKWARD, 0, device, slot,
                                          sum->backward_input + sum->backward_weight);
        classes->backward = b == 0 ? cls : classes->backward;
        cs_builder_effect(dp->builder, CS_MEMORY_ACTIVATIONS, device, -sum->kept_bytes, true);
        cs_builder_workspace(dp->builder, device, sum->workspace_bytes);
    }
}

/* One all-reduce, after each rank's latest backward and after the all-reduce before it. */
static void add_reduction(data_parallel *dp, uint32_t cls, uint32_t item)
{
    if (cls == CS_NONE)
        return;
    uint32_t first = cs_builder_members(dp->builder, cls, item);
    for (uint32_t rank = 0; first != CS_NONE && rank < dp->n_ranks; rank++) {
        cs_builder_edge(dp->builder, dp->computed[rank], first + rank);
        cs_builder_edge(dp->builder, dp->reduced[rank], first + rank);
        dp->reduced[rank] = first + rank;
    }
}

static void add_micro_batch(data_parallel *dp, uint32_t item, bool reduce)
{
    for (uint32_t rank = 0; rank < dp->n_ranks; rank++)
        cs_builder_task(dp->builder, dp->ranks[rank].forward, item);
    for (uint32_t b = 0; b < dp->n_buckets; b++) {
        for (uint32_t rank = 0; rank < dp->n_ranks; rank++)
            dp->computed[rank] = cs_builder_task(dp->builder, dp->ranks[rank].backward + b, item);
        if (reduce)
            add_reduction(dp, dp->buckets[b].reduce, item);
    }
}

static void add_mini_batch(data_parallel *dp, uint32_t batch)
{
    uint32_t n_micros = dp->job->micro_batches;
    for (uint32_t rank = 0; rank < dp->n_ranks; rank++)
        dp->reduced[rank] = CS_NONE;
    for (uint32_t m = 0; m < n_micros; m++)
        add_micro_batch(dp, batch * n_micros + m, m + 1 == n_micros);
    for (uint32_t rank = 0; rank < dp->n_ranks; rank++) {
        uint32_t update = cs_builder_task(dp->builder, dp->ranks[rank].update, batch * n_micros);
        cs_builder_edge(dp->builder, dp->reduced[rank], update);
    }
}

static cs_status build(data_parallel *dp, int64_t bucket_bytes, cs_error *error)
{
    dp->buckets = calloc(dp->job->model->n_layers, sizeof(*dp->buckets));
    dp->ranks = calloc(dp->n_ranks, sizeof(*dp->ranks));
    dp->computed = calloc(dp->n_ranks, sizeof(*dp->computed));
    dp->reduced = calloc(dp->n_ranks, sizeof(*dp->reduced));
    if (!dp->buckets || !dp->ranks || !dp->computed || !dp->reduced)
        return cs_error_no_memory(error);
    CS_TRY(cut_buckets(dp, bucket_bytes, error));
    make_reductions(dp);
    for (uint32_t rank = 0; rank < dp->n_ranks; rank++)
        make_rank(dp, rank);
    for (uint32_t batch = 0; batch < dp->job->iterations; batch++)
        add_mini_batch(dp, batch);
    return CS_OK;
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    data_parallel dp = {.job = job, .builder = builder, .n_ranks = job->plan->n_devices};
    cs_status status = build(&dp, ((const dp_params *)params)->bucket, error);
    free(dp.buckets);
    free(dp.ranks);
    free(dp.computed);
    free(dp.reduced);
    return status;
}

/* 2(N - 1) steps of one chunk; the larger chunks set the pace where m does not divide. */
static bool reduce_time(const cs_job *job, cs_time *time)
{
    int64_t n = job->plan->n_devices, bytes = job->stages[0].gradient_bytes;
    cs_time step;
    if (n == 1 || bytes == 0) {
        *time = 0;
        return true;
    }
    return cs_time_transfer((double)((bytes + n - 1) / n), job->bandwidth, &step) &&
           cs_time_add(step, job->latency, &step) && cs_time_mul(step, 2 * (n - 1), time);
}

static bool equal_speeds(const cs_job *job)
{
    for (uint32_t d = 0; d < job->plan->n_devices; d++) {
        if (job->speeds[job->plan->devices[d]] != 1)
            return false;
    }
    return true;
}

/* With larger and smaller chunks some ranks finish earlier and begin the next mini-batch earlier. */
static bool ranks_stay_level(const cs_job *job)
{
    return job->iterations == 1 || job->stages[0].gradient_bytes % job->plan->n_devices == 0;
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
                                   job->equal_messages && ranks_stay_level(job),
                        .assumes = "one bucket, speed 1, equal chunks (or one mini-batch), ring "
                                   "messages that do not share links"};
        CS_TRY(cs_forms_add(forms, &form, error));
    }
    return add_peaks(job, forms, error);
}

const cs_schedule cs_schedule_dp = {
    .name = "dp",
    .summary = "synchronous data parallelism: one all-reduce after the backward, or in buckets "
               "meanwhile",
    .source = source,
    .formulas =
        (const cs_formula[]){
            {CS_FIGURE_MAKESPAN,
             "M(f + b) + 2(N - 1)(latency + m/(N bandwidth)) per mini-batch, and its update"},
            {CS_FIGURE_PEAK_ACTIVATIONS, "1 activation"},
            {0}},
    .fields = fields,
    .params_size = sizeof(dp_params),
    .layout = CS_LAYOUT_REPLICATED,
    .micro_batches = micro_batches,
    .generate = generate,
    .closed_forms = closed_forms,
};
