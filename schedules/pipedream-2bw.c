/* PipeDream-2BW: an update accumulates the gradients of M micro-batches without a flush, and every
 * stage keeps two versions of its weights. Mini-batch b = 0, 1, ... uses version max(b - 1, 0), one
 * less than in a synchronous schedule.
 *
 * Stage 0 starts the first micro-batch of mini-batch b with the P - 1 previous micro-batches still
 * in flight. The version that it needs is made by mini-batch b - 2, whose last micro-batch entered
 * M + 1 places earlier and must have come back: M >= P - 1. The paper requires M >= P. The
 * simulation also runs with P - 1; with less it stops at the first missing version.
 */
#include "schedules/order-1f1b.h"

static const char source[] = "Narayanan et al., PipeDream-2BW, ICML 2021 (arXiv 2006.09503), "
                             "section 3.1";

typedef struct params_2bw {
    uint32_t micro_batches;
} params_2bw;

static const cs_field fields[] = {
    {"micro_batches", CS_FIELD_COUNT, offsetof(params_2bw, micro_batches), .min = 1, .max = 1 << 20,
     .doc = "micro-batches per mini-batch, whose gradients are accumulated, M; at least P - 1"},
    {0},
};

/* Lets replicas share a micro-batch, because the paper replicates whole pipelines. */
static cs_replicas replicas(const void *params)
{
    (void)params;
    return CS_REPLICAS_ALL_REDUCE;
}

static void policies(const cs_job *job, const void *params, cs_builder *builder,
                     const uint32_t *slots, uint32_t holder, cs_stage_policies *made)
{
    (void)job;
    (void)params;
    cs_policy policy = {.read = CS_READ_LAG, .lag = 2, .writes = CS_NONE};
    made->forward = cs_builder_policy(builder, &policy);
    made->backward = made->forward;
    cs_builder_retain(builder, slots[holder], 2, slots[holder]);
}

static cs_status check(const cs_job *job, const void *params, const cs_json_place *place,
                       cs_error *error)
{
    (void)params;
    cs_json_place at = {.up = place, .key = "micro_batches"};
    CS_TRY(cs_pipeline_check_versions(job, place, error));
    uint32_t least = job->plan->n_stages > 1 ? job->plan->n_stages - 1 : 1;
    if (job->micro_batches >= least)
        return CS_OK;
    return cs_json_invalid(&at, error,
                           "must be at least %u for %u stages, so that two versions of the weights "
                           "are enough (got %u)",
                           least, job->plan->n_stages, job->micro_batches);
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    cs_pipeline_options options = {
        .order = cs_order_1f1b, .continuous = true, .policies = policies, .params = params};
    return cs_pipeline_generate(job, &options, builder, error);
}

static cs_status add_versions(const cs_job *job, cs_forms *forms, cs_error *error)
{
    const cs_plan *plan = job->plan;
    cs_status status = CS_OK;
    for (uint32_t h = 0; h < plan->n_devices && status == CS_OK; h++)
        status = cs_forms_add(forms,
                              &(cs_form){.figure = CS_FIGURE_PEAK_VERSIONS,
                                         .device = plan->devices[h],
                                         .exact = 2,
                                         .formula = "2 versions",
                                         .source = source,
                                         .applies = true,
                                         .assumes = "one stage per device"},
                              error);
    return status;
}

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    (void)params;
    cs_pipeline_times times;
    cs_pipeline_times_of(job, &times);
    cs_time step = times.forward + times.backward, all;
    if (cs_time_mul(step, job->micro_batches, &all) && cs_time_add(all, times.update, &all)) {
        cs_form period = {
            .figure = CS_FIGURE_ITERATION_TIME,
            .device = CS_NONE,
            .exact = all,
            .formula = "M(f + b), and the update, per mini-batch",
            .source = source,
            .applies = times.equal && times.free_messages && !job->blocking && job->iterations >= 8,
            .assumes = "equal stages (here: the slowest), free messages, a steady state"};
        CS_TRY(cs_forms_add(forms, &period, error));
    }
    return add_versions(job, forms, error);
}

const cs_schedule cs_schedule_pipedream_2bw = {
    .name = "pipedream_2bw",
    .summary = "asynchronous pipeline with gradient accumulation and two versions of the weights",
    .source = source,
    .formulas =
        (const cs_formula[]){{CS_FIGURE_ITERATION_TIME, "M(f + b), and the update, per mini-batch"},
                             {CS_FIGURE_PEAK_VERSIONS, "2 versions"},
                             {0}},
    .fields = fields,
    .params_size = sizeof(params_2bw),
    .mesh = {.pipeline = CS_LENGTH_LAYERS, .replicas = replicas},
    .asynchronous = true,
    .micro_batches = offsetof(params_2bw, micro_batches),
    .check = check,
    .generate = generate,
    .closed_forms = closed_forms,
};
