/* ZB-H1 and ZB-H2: 1F1B with every backward split in two. The input's gradient is computed at once,
 * because the previous stage waits for it, and the weights' gradient later, when the device would
 * be idle.
 *
 * Stage s computes r (P - 1 - s) forwards as warm-up, then alternately a forward and an input
 * gradient. The weight gradient of a micro-batch follows r s micro-batches later. The reach r is 1
 * in ZB-H1: every stage keeps the activations of up to P micro-batches, like the first stage of
 * 1F1B. It is 2 in ZB-H2: up to 2 P - 1 micro-batches, and if f = b = w a device never waits
 * between its first and last task. Stage s then works from s f to (s + 3 M) f, so the next
 * mini-batch follows at once: each stage updates its weights when its own gradients are complete,
 * as with the paper's post-validation of the optimizer step (section 4). The output gradients that
 * the weight gradients need are kept as well; they are received messages and are accounted as such.
 */
#include "schedules/pipeline.h"

static const char source[] = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024 "
                             "(arXiv 2401.10241), section 2.1";
static const char source_h2[] = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024 "
                                "(arXiv 2401.10241), section 2.2";

typedef struct zb_params {
    uint32_t micro_batches;
} zb_params;

static const cs_field fields[] = {
    CS_PIPELINE_MICRO_BATCHES(zb_params),
    {0},
};

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static cs_time larger(cs_time a, cs_time b)
{
    return a > b ? a : b;
}

static uint32_t at_once(const cs_job *job, uint32_t stage, uint32_t replica)
{
    (void)stage, (void)replica;
    return smaller(job->plan->n_stages, job->micro_batches);
}

static uint32_t at_once_h2(const cs_job *job, uint32_t stage, uint32_t replica)
{
    (void)stage, (void)replica;
    return smaller(2 * job->plan->n_stages - 1, job->micro_batches);
}

/* Returns the order for a given reach. After the warm-up come rounds r = 0, 1, ...: a forward in
 * the first `forwards` rounds, an input gradient in the first M rounds, a weight gradient from
 * round `late` on. Rounds between these changes are all alike. */
static bool order_of_reach(uint32_t reach, const cs_pipeline_shape *shape, uint32_t stage,
                           uint32_t k, cs_pipeline_step *step)
{
    uint32_t M = shape->n_micros, late = smaller(reach * stage, M);
    uint32_t ahead = smaller(reach * (shape->n_stages - 1 - stage), M), forwards = M - ahead;
    if (k < ahead) {
        *step = (cs_pipeline_step){CS_FORWARD, stage, k};
        return true;
    }
    k -= ahead;
    uint32_t bounds[] = {0, smaller(forwards, late), forwards + late - smaller(forwards, late), M,
                         M + late};
    for (size_t i = 0; i + 1 < sizeof(bounds) / sizeof(bounds[0]); i++) {
        uint32_t first = bounds[i], n = bounds[i + 1] - first;
        cs_pipeline_step round[3];
        uint32_t length = 0;
        if (first < forwards)
            round[length++] = (cs_pipeline_step){CS_FORWARD, stage, ahead};
        if (first < M)
            round[length++] = (cs_pipeline_step){CS_BACKWARD_INPUT, stage, 0};
        if (first >= late)
            round[length++] = (cs_pipeline_step){CS_BACKWARD_WEIGHT, stage, 0 - late};
        if (k < n * length) {
            *step = round[k % length];
            step->micro_batch += first + k / length;
            return true;
        }
        k -= n * length;
    }
    return false;
}

static bool order_h1(const cs_pipeline_shape *shape, uint32_t stage, uint32_t k,
                     cs_pipeline_step *step)
{
    return order_of_reach(1, shape, stage, k, step);
}

static bool order_h2(const cs_pipeline_shape *shape, uint32_t stage, uint32_t k,
                     cs_pipeline_step *step)
{
    return order_of_reach(2, shape, stage, k, step);
}

static cs_status generate_h1(const cs_job *job, const void *params, cs_builder *builder,
                             cs_error *error)
{
    (void)params;
    return cs_pipeline_generate(job, &(cs_pipeline_options){.order = order_h1, .splits = true},
                                builder, error);
}

static cs_status generate_h2(const cs_job *job, const void *params, cs_builder *builder,
                             cs_error *error)
{
    (void)params;
    return cs_pipeline_generate(job, &(cs_pipeline_options){.order = order_h2, .splits = true},
                                builder, error);
}

/* ---- closed forms ---- */

static cs_status add_h1_times(const cs_job *job, cs_forms *forms, cs_error *error)
{
    static const char assumes[] =
        "M >= P, equal stages (here: the slowest), w <= f and w <= b, free messages, no update";
    cs_pipeline_times times;
    cs_pipeline_times_of(job, &times);
    int64_t P = job->plan->n_stages, M = job->micro_batches;
    cs_time both = cs_pipeline_add(times.forward, times.input), bubble = both - times.weight;
    cs_time busy, batch;
    bool applies = M >= P && times.equal_halves && times.weight <= times.forward &&
                   times.weight <= times.input && times.free_messages && !job->blocking;
    if (bubble < 0 || !cs_time_mul(bubble, P - 1, &bubble) ||
        !cs_time_mul(cs_pipeline_add(both, times.weight), M, &busy) ||
        !cs_time_add(busy, bubble, &batch))
        return CS_OK; /* the time overflows, so no closed form is added */
    cs_form share = {.figure = CS_FIGURE_PIPELINE_BUBBLE,
                     .device = CS_NONE,
                     .fraction = batch > 0 ? (double)bubble / (double)batch : 0,
                     .formula = "(P - 1)(f + b - w) of (P - 1)(f + b - w) + M(f + b + w)",
                     .source = source,
                     .applies = applies && times.update == 0 && batch > 0,
                     .assumes = assumes};
    cs_status status = cs_forms_add(forms, &share, error);
    if (status != CS_OK || !cs_time_add(batch, times.update, &batch) ||
        !cs_time_mul(batch, job->iterations, &batch))
        return status;
    cs_form makespan = {.figure = CS_FIGURE_MAKESPAN,
                        .device = CS_NONE,
                        .exact = batch,
                        .formula =
                            "M(f + b + w) + (P - 1)(f + b - w) per mini-batch, and its update",
                        .source = source,
                        .applies = applies && (times.update == 0 || job->iterations == 1),
                        .assumes = "M >= P, equal stages (here: the slowest), w <= f and w <= b, "
                                   "free messages, no update or one mini-batch"};
    return cs_forms_add(forms, &makespan, error);
}

static cs_status h1_forms(const cs_job *job, const void *params, cs_forms *forms, cs_error *error)
{
    (void)params;
    CS_TRY(add_h1_times(job, forms, error));
    return cs_pipeline_add_peaks(job, at_once, "min(P, M) activations", source, forms, error);
}

/* Adds the makespan of ZB-H2. The first stage takes M(f + b + w) + (P - 1)(f + b - 2w) per
 * mini-batch, as in the paper's table 2. The last backward leaves stage s and arrives at the first
 * stage s b later. Stage s still has 2s + 1 weight gradients to compute then, so it ends s(2w - b)
 * later than the first stage, which has one left. */
static cs_status add_h2_times(const cs_job *job, cs_forms *forms, cs_error *error)
{
    static const char assumes[] =
        "M >= 2P - 1, equal stages (here: the slowest), w <= f and w <= b, "
        "free messages";
    cs_pipeline_times times;
    cs_pipeline_times_of(job, &times);
    const int64_t P = job->plan->n_stages, M = job->micro_batches;
    const bool applies = M >= 2 * P - 1 && times.equal_halves && times.weight <= times.forward &&
                         times.weight <= times.input && times.free_messages && !job->blocking;
    cs_time bubble = cs_pipeline_add(times.forward, times.input) - 2 * times.weight;
    cs_time makespan, skew, micro = cs_pipeline_add(times.forward, times.input);
    if (!cs_time_mul(cs_pipeline_add(micro, times.weight), M, &makespan) || bubble < 0 ||
        !cs_time_mul(bubble, P - 1, &bubble) || !cs_time_add(makespan, bubble, &makespan) ||
        !cs_time_add(makespan, times.update, &makespan) ||
        !cs_time_mul(makespan, job->iterations, &makespan) ||
        !cs_time_mul(larger(2 * times.weight - times.input, 0), P - 1, &skew) ||
        !cs_time_add(makespan, skew, &makespan))
        return CS_OK; /* the time overflows, so no closed form is added */
    return cs_forms_add(forms,
                        &(cs_form){.figure = CS_FIGURE_MAKESPAN,
                                   .device = CS_NONE,
                                   .exact = makespan,
                                   .formula = "M(f + b + w) + (P - 1)(f + b - 2w) per mini-batch, "
                                              "and its update; and (P - 1) max(2w - b, 0)",
                                   .source = source_h2,
                                   .applies = applies,
                                   .assumes = assumes},
                        error);
}

static cs_status h2_forms(const cs_job *job, const void *params, cs_forms *forms, cs_error *error)
{
    (void)params;
    CS_TRY(add_h2_times(job, forms, error));
    return cs_pipeline_add_peaks(job, at_once_h2, "min(2P - 1, M) activations", source_h2, forms,
                                 error);
}

const cs_schedule cs_schedule_zb_h1 = {
    .name = "zb_h1",
    .summary =
        "1F1B with the backward split in two: at best a third of its bubble, but more memory",
    .source = source,
    .formulas =
        (const cs_formula[]){
            {CS_FIGURE_PIPELINE_BUBBLE, "(P - 1)(f + b - w) of (P - 1)(f + b - w) + M(f + b + w)"},
            {CS_FIGURE_MAKESPAN,
             "M(f + b + w) + (P - 1)(f + b - w) per mini-batch, and its update"},
            {CS_FIGURE_PEAK_ACTIVATIONS, "min(P, M) activations"},
            {0}},
    .fields = fields,
    .params_size = sizeof(zb_params),
    .search = CS_SEARCH_ALWAYS,
    .splits = true,
    .mesh = {.pipeline = CS_LENGTH_LAYERS},
    .sums_ties = true,
    .micro_batches = offsetof(zb_params, micro_batches),
    .generate = generate_h1,
    .closed_forms = h1_forms,
};

const cs_schedule cs_schedule_zb_h2 = {
    .name = "zb_h2",
    .summary = "the backward split in two, as in zb_h1, with twice its activations: no bubble "
               "after the start if f = b = w",
    .source = source_h2,
    .formulas =
        (const cs_formula[]){{CS_FIGURE_MAKESPAN,
                              "M(f + b + w) + (P - 1)(f + b - 2w) per mini-batch, and its update; "
                              "and (P - 1) max(2w - b, 0)"},
                             {CS_FIGURE_PEAK_ACTIVATIONS, "min(2P - 1, M) activations"},
                             {0}},
    .fields = fields,
    .params_size = sizeof(zb_params),
    .search = CS_SEARCH_ON_REQUEST,
    .splits = true,
    .mesh = {.pipeline = CS_LENGTH_LAYERS},
    .sums_ties = true,
    .micro_batches = offsetof(zb_params, micro_batches),
    .generate = generate_h2,
    .closed_forms = h2_forms,
};
