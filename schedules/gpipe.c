/* GPipe: all forwards, then all backwards, then the update.
 *
 * In figure 2 of the paper the backwards run in reverse order: the micro-batch with the last
 * forward comes first. Other descriptions run them in the order of the forwards (Narayanan et al.,
 * Megatron-LM, SC 2021, figure 3), as a stage does if it takes gradients in order of arrival.
 */
#include "schedules/pipeline.h"

static const char source[] = "Huang et al., GPipe, NeurIPS 2019 (arXiv 1811.06965), section 2";

typedef enum backward_order { REVERSED, FIFO } backward_order;

static const char *const order_names[] = {"reversed", "fifo", NULL};

typedef struct gpipe_params {
    uint32_t micro_batches, backward_order;
    bool recompute;
} gpipe_params;

static const cs_field fields[] = {
    CS_PIPELINE_MICRO_BATCHES(gpipe_params),
    {"backward_order", CS_FIELD_CHOICE, offsetof(gpipe_params, backward_order),
     .fallback = "reversed", .choices = order_names,
     .doc = "order of the micro-batches in the backward; reversed: the last one first, as in the "
            "paper's figure 2; fifo: the first one first, as in Megatron-LM's figure 3; makespan "
            "and memory are the same"},
    CS_PIPELINE_RECOMPUTE(gpipe_params),
    {0},
};

static const char *reading(const void *params)
{
    return ((const gpipe_params *)params)->backward_order == REVERSED
               ? "backwards in reverse order"
               : "backwards first in, first out";
}

static bool order(const cs_pipeline_shape *shape, uint32_t stage, uint32_t k,
                  cs_pipeline_step *step)
{
    const gpipe_params *params = shape->params;
    uint32_t n = shape->n_micros;
    uint32_t micro = params->backward_order == REVERSED ? 2 * n - 1 - k : k - n;
    *step = k < n ? (cs_pipeline_step){CS_FORWARD, stage, k}
                  : (cs_pipeline_step){CS_BACKWARD, stage, micro};
    return k < 2 * n;
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    cs_pipeline_options options = {
        .order = order, .params = params, .recompute = ((const gpipe_params *)params)->recompute};
    return cs_pipeline_generate(job, &options, builder, error);
}

static uint32_t all_at_once(const cs_job *job, uint32_t stage, uint32_t replica)
{
    (void)stage, (void)replica;
    return job->micro_batches;
}

/* Sums F + B over the stages, and the messages between them. Returns false on overflow. */
static bool sum_of_stages(const cs_job *job, cs_time *sum)
{
    *sum = 0;
    for (uint32_t s = 0; s < job->plan->n_stages; s++) {
        const cs_layer_sum *stage = &job->stages[s];
        bool last = s + 1 == job->plan->n_stages;
        cs_time backward = cs_pipeline_add(stage->backward_input, stage->backward_weight);
        cs_time message = last ? 0 : cs_pipeline_add(cs_pipeline_bytes_time(job, s), job->latency);
        cs_time parts[] = {cs_pipeline_time(job, s, stage->forward),
                           cs_pipeline_time(job, s, backward), message, message};
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
            if (!cs_time_add(*sum, parts[i], sum))
                return false;
        }
    }
    return true;
}

/* Adds a makespan for stages of different lengths and messages of a fixed time: the last forward
 * ends at sum F + (M - 1) max F + sum c, as in a flow shop of equal jobs with time lags. The
 * backwards are another flow shop in the opposite direction, which starts at that time. */
static cs_status add_flow_shop(const cs_job *job, const cs_pipeline_times *times, cs_forms *forms,
                               cs_error *error)
{
    cs_time sum, rest, makespan;
    if (!sum_of_stages(job, &sum) ||
        !cs_time_mul(times->step, (int64_t)job->micro_batches - 1, &rest) ||
        !cs_time_add(sum, rest, &rest) || !cs_time_mul(rest, job->iterations, &makespan))
        return CS_OK; /* the time overflows, so no closed form is added */
    return cs_forms_add(
        forms,
        &(cs_form){.figure = CS_FIGURE_MAKESPAN,
                   .device = CS_NONE,
                   .exact = makespan,
                   .formula = "sum(F + B + 2c) + (M - 1)(max F + max B)",
                   .source = "flow shop with time lags (schedules/README.md)",
                   .applies = times->update == 0 && !job->blocking && times->neighbours &&
                              times->short_messages,
                   .assumes = "messages shorter than stages that do not share links, no update"},
        error);
}

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    if (((const gpipe_params *)params)->recompute)
        return CS_OK; /* the paper gives only orders of magnitude */
    cs_pipeline_times times;
    cs_pipeline_times_of(job, &times);
    CS_TRY(cs_pipeline_add_forms(job, &times, source, forms, error));
    CS_TRY(add_flow_shop(job, &times, forms, error));
    return cs_pipeline_add_peaks(job, all_at_once, "M activations", source, forms, error);
}

const cs_schedule cs_schedule_gpipe = {
    .name = "gpipe",
    .summary = "synchronous pipeline: all forwards, then all backwards, then the update",
    .source = source,
    .formulas =
        (const cs_formula[]){
            {CS_FIGURE_MAKESPAN, "(M + P - 1)(f + b) per mini-batch, and its update"},
            {CS_FIGURE_PIPELINE_BUBBLE, "(P - 1)/(M + P - 1)"},
            {CS_FIGURE_MAKESPAN, "sum(F + B + 2c) + (M - 1)(max F + max B)"},
            {CS_FIGURE_PEAK_ACTIVATIONS, "M activations"},
            {0}},
    .fields = fields,
    .params_size = sizeof(gpipe_params),
    .search = CS_SEARCH_ON_REQUEST,
    .mesh = {.pipeline = CS_LENGTH_LAYERS},
    .sums_ties = true,
    .micro_batches = offsetof(gpipe_params, micro_batches),
    .reading = reading,
    .generate = generate,
    .closed_forms = closed_forms,
};
