/* 1F1B with a flush (PipeDream-Flush, DAPPLE): min(P - s, M) forwards as warm-up, or more (eager);
 * then alternately a backward and a forward; then the remaining backwards; then the update. */
#include "schedules/order-1f1b.h"

static const char source[] =
    "Narayanan et al., ICML 2021 (arXiv 2006.09503), section 3.2; Fan et al., DAPPLE, PPoPP 2021";

static const char eager_source[] =
    "order: Zhuang et al., MLSys 2023 (arXiv 2211.05322), section 4; time: derived here";

typedef struct params_1f1b {
    uint32_t micro_batches, replicas, warm_up;
    bool recompute;
} params_1f1b;

enum { EAGER = 1 };
static const char *const warm_ups[] = {"shortest", "eager", NULL};

static const cs_field fields[] = {
    CS_PIPELINE_MICRO_BATCHES(params_1f1b),
    CS_PIPELINE_RECOMPUTE(params_1f1b),
    {"warm_up", CS_FIELD_CHOICE, offsetof(params_1f1b, warm_up), .fallback = "shortest",
     .choices = warm_ups,
     .doc = "forwards before the first backward of stage s; shortest: P - s; eager: 2(P - s) - 1, "
            "which hides messages behind computation but keeps more activations"},
    {"replicas", CS_FIELD_CHOICE, offsetof(params_1f1b, replicas), .fallback = "all_reduce",
     .choices = cs_order_1f1b_replica_names,
     .doc =
         "if stages have several devices; round_robin: these take micro-batches in turn; "
         "all_reduce: each computes a share of every micro-batch; gradients are summed either way"},
    {0},
};

static cs_replicas replicas(const void *params)
{
    return cs_order_1f1b_replicas(((const params_1f1b *)params)->replicas);
}

static cs_status check(const cs_job *job, const void *params, const cs_json_place *place,
                       cs_error *error)
{
    (void)params;
    cs_json_place at = {.up = place, .key = "micro_batches"};
    for (uint32_t s = 0; s < job->plan->n_stages; s++) {
        uint32_t n = job->plan->stages[s].n_devices;
        if (job->replicas == CS_REPLICAS_ROUND_ROBIN && job->micro_batches < n)
            return cs_json_invalid(&at, error,
                                   "must be at least %u, so that each replica of stage %u has one "
                                   "(got %u)",
                                   n, s, job->micro_batches);
    }
    return CS_OK;
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    const params_1f1b *of = params;
    const cs_pipeline_options options = {.order = of->warm_up == EAGER ? cs_order_1f1b_eager
                                                                       : cs_order_1f1b,
                                         .recompute = of->recompute};
    return cs_pipeline_generate(job, &options, builder, error);
}

/* Adds a makespan for messages that take only their latency: per mini-batch M + P - 1 steps plus
 * `messages` latencies. */
static cs_status add_makespan(const cs_job *job, const cs_pipeline_times *times, int64_t messages,
                              const cs_form *form, cs_forms *forms, cs_error *error)
{
    const int64_t P = job->plan->n_stages, M = job->micro_batches;
    cs_form made = *form;
    cs_time compute, latency, batch;
    if (!cs_time_mul(times->step, M + P - 1, &compute) ||
        !cs_time_mul(job->latency, messages, &latency) || !cs_time_add(compute, latency, &batch) ||
        !cs_time_add(batch, times->update, &batch) ||
        !cs_time_mul(batch, job->iterations, &made.exact))
        return CS_OK; /* the sum overflows, so no closed form is added */
    made.figure = CS_FIGURE_MAKESPAN;
    made.device = CS_NONE;
    made.applies &= times->equal && times->neighbours && times->only_latency && !job->blocking;
    return cs_forms_add(forms, &made, error);
}

/* Adds a makespan with round trips: after its P-th forward, stage 0 waits once every P
 * micro-batches for messages to pass down the pipeline and back (derivation:
 * schedules/README.md). */
static cs_status add_round_trips(const cs_job *job, const cs_pipeline_times *times, cs_forms *forms,
                                 cs_error *error)
{
    const int64_t P = job->plan->n_stages, M = job->micro_batches;
    const cs_form form = {.formula = "(M + P - 1)(f + b) + 2c(P - 1 + floor((M - 1)(P - 1)/P)) per "
                                     "mini-batch, and its update",
                          .source = "longest path (schedules/README.md)",
                          .applies = true,
                          .assumes =
                              "equal stages (here: the slowest), messages of no size, latency c"};
    return add_makespan(job, times, 2 * (P - 1 + (M - 1) * (P - 1) / P), &form, forms, error);
}

/* Adds the makespan of the eager order. Between a stage's forward and backward of a micro-batch
 * there are at least (P - s)(f + b) of work and 2c(P - 1 - s) of latency, and its 2(P - s) - 1
 * micro-batches in flight keep it busy for (2(P - s) - 1)(f + b). So if 2c <= f + b it never waits
 * between its first and last backward, and latency counts once on the way down and once on the way
 * back. */
static cs_status add_eager_makespan(const cs_job *job, const cs_pipeline_times *times,
                                    cs_forms *forms, cs_error *error)
{
    const int64_t P = job->plan->n_stages;
    const cs_form form = {
        .formula = "(M + P - 1)(f + b) + 2c(P - 1) per mini-batch, and its update",
        .source = eager_source,
        .applies = job->latency <= times->step / 2,
        .assumes = "equal stages (here: the slowest), messages of no size, latency c, 2c <= f + b"};
    return add_makespan(job, times, 2 * (P - 1), &form, forms, error);
}

static uint32_t at_once(const cs_job *job, uint32_t stage, uint32_t replica)
{
    return cs_order_1f1b_in_flight(job, job->micro_batches, false, stage, replica);
}

static uint32_t at_once_eager(const cs_job *job, uint32_t stage, uint32_t replica)
{
    return cs_order_1f1b_in_flight(job, job->micro_batches, true, stage, replica);
}

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    const params_1f1b *of = params;
    const bool eager = of->warm_up == EAGER;
    cs_pipeline_times times;
    if (of->recompute)
        return CS_OK;
    if (cs_pipeline_replicated(job) && job->replicas == CS_REPLICAS_ROUND_ROBIN)
        return eager ? CS_OK
                     : cs_pipeline_add_peaks(job, at_once, "min(ceil(D/R), own) activations",
                                             source, forms, error);
    cs_pipeline_times_of(job, &times);
    if (eager) {
        CS_TRY(add_eager_makespan(job, &times, forms, error));
        return cs_pipeline_add_peaks(job, at_once_eager, "min(2(P - s) - 1, M) activations",
                                     eager_source, forms, error);
    }
    CS_TRY(cs_pipeline_add_forms(job, &times, source, forms, error));
    CS_TRY(add_round_trips(job, &times, forms, error));
    return cs_pipeline_add_peaks(job, at_once, "min(P - s, M) activations", source, forms, error);
}

const cs_schedule cs_schedule_1f1b = {
    .name = "1f1b",
    .summary = "synchronous pipeline: warm-up, then one forward and one backward in turn",
    .source = source,
    .formulas =
        (const cs_formula[]){
            {CS_FIGURE_MAKESPAN, "(M + P - 1)(f + b) per mini-batch, and its update"},
            {CS_FIGURE_PIPELINE_BUBBLE, "(P - 1)/(M + P - 1)"},
            {CS_FIGURE_MAKESPAN, "(M + P - 1)(f + b) + 2c(P - 1 + floor((M - 1)(P - 1)/P)) per "
                                 "mini-batch, and its update"},
            {CS_FIGURE_PEAK_ACTIVATIONS, "min(P - s, M) activations"},
            {CS_FIGURE_PEAK_ACTIVATIONS, "min(ceil(D/R), own) activations"},
            {CS_FIGURE_MAKESPAN, "(M + P - 1)(f + b) + 2c(P - 1) per mini-batch, and its update"},
            {CS_FIGURE_PEAK_ACTIVATIONS, "min(2(P - s) - 1, M) activations"},
            {0}},
    .fields = fields,
    .params_size = sizeof(params_1f1b),
    .search = CS_SEARCH_ALWAYS,
    .mesh = {.pipeline = CS_LENGTH_LAYERS, .replicas = replicas},
    .sums_ties = true,
    .micro_batches = offsetof(params_1f1b, micro_batches),
    .check = check,
    .generate = generate,
    .closed_forms = closed_forms,
};
