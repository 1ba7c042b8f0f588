/* ZB-V: pipelines with backwards in two halves whose stages lie on the devices like a V. Each of P
 * devices holds two stages, device d those numbered d and 2P - 1 - d: a micro-batch goes down all
 * devices and back up, so that the last stage is on the first device, whose backward can begin at
 * once there.
 *
 * Every list has six passes for each micro-batch; where they all take the same time no device waits
 * between its first pass and its last, with the activations of 1F1B's first stage, 2P stages' or
 * those of P micro-batches on a device. The lists, F, I, W being a forward and the halves of a
 * backward of the first stage of a device, F', I', W' those of the second:
 *
 *   warm up   2(P - d) - 1 times F, then d times F' F, then P - d times F' I' W'
 *   steady    F I W F' I' W', at the end of the mini-batch without F, until all F' are done
 *   cool down d times I I', then P - d times I W, then the W' and the W that are left
 *
 * That is for at least 2P - 1 micro-batches; of fewer the same lists are taken, without the passes
 * of those that there are not. As in ZB-H2 each stage updates its weights when its own gradients
 * are complete (section 4 of the paper), so that mini-batches follow each other at once.
 */
#include "schedules/pipeline.h"

#include <stdlib.h>

static const char source[] = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024 "
                             "(arXiv 2401.10241), section 6";

typedef struct zb_v_params {
    uint32_t micro_batches;
} zb_v_params;

static const cs_field fields[] = {
    CS_PIPELINE_MICRO_BATCHES(zb_v_params),
    {0},
};

/* ---- where the stages are ---- */

enum { STAGES = 2, PASSES = 3 }; /* of a device; of a micro-batch on a stage */

static uint32_t ranks(const void *params, uint32_t n_layers)
{
    (void)params;
    return n_layers / STAGES;
}

static uint32_t n_stages(const void *params, uint32_t n_ranks)
{
    (void)params;
    return STAGES * n_ranks;
}

static uint32_t device_of(uint32_t n_devices, uint32_t stage)
{
    return stage < n_devices ? stage : STAGES * n_devices - 1 - stage;
}

static uint32_t holders(const void *params, uint32_t n_ranks, uint32_t stage, uint32_t *held)
{
    (void)params;
    held[0] = device_of(n_ranks, stage);
    return 1;
}

static uint32_t list_of(const cs_pipeline_shape *shape, uint32_t stage)
{
    return device_of(shape->n_devices, stage);
}

/* ---- the lists ---- */

/* One device's. */
typedef struct list {
    uint32_t n_devices, device, n_micros, n;
    uint32_t done[STAGES][PASSES];
    cs_pipeline_step *steps; /* STAGES * PASSES * n_micros of them, or NULL: they are counted */
} list;

enum { F, I, W };

/* The next micro-batch's pass, of the first stage of the device or of the second. */
static void put(list *l, uint32_t second, uint32_t pass)
{
    static const cs_kind kinds[PASSES] = {CS_FORWARD, CS_BACKWARD_INPUT, CS_BACKWARD_WEIGHT};
    const uint32_t micro = l->done[second][pass]++;
    const uint32_t stage = second > 0 ? STAGES * l->n_devices - 1 - l->device : l->device;
    if (micro < l->n_micros)
        l->steps[l->n++] = (cs_pipeline_step){kinds[pass], stage, micro};
}

static void put_backward(list *l, uint32_t second)
{
    put(l, second, I);
    put(l, second, W);
}

static void warm_up(list *l)
{
    const uint32_t behind = l->n_devices - l->device;
    for (uint32_t i = 0; i < 2 * behind - 1; i++)
        put(l, 0, F);
    for (uint32_t i = 0; i < l->device; i++) {
        put(l, 1, F);
        put(l, 0, F);
    }
    for (uint32_t i = 0; i < behind; i++) {
        put(l, 1, F);
        put_backward(l, 1);
    }
}

static void cool_down(list *l)
{
    for (uint32_t i = 0; i < l->device; i++) {
        put(l, 0, I);
        put(l, 1, I);
    }
    for (uint32_t i = 0; i < l->n_devices - l->device; i++)
        put_backward(l, 0);
    for (uint32_t second = STAGES; second-- > 0;)
        while (l->done[second][W] < l->done[second][I])
            put(l, second, W);
}

static void fill(list *l)
{
    const uint32_t least = 2 * l->n_devices - 1;
    const uint32_t n = l->n_micros > least ? l->n_micros : least;
    warm_up(l);
    while (l->done[1][F] < l->done[0][F] || l->done[0][F] < n) {
        if (l->done[0][F] < n)
            put(l, 0, F);
        put_backward(l, 0);
        put(l, 1, F);
        put_backward(l, 1);
    }
    cool_down(l);
}

/* What is at options.params: of all devices, each as long. */
typedef struct lists {
    uint32_t length;
    cs_pipeline_step *steps;
} lists;

static bool order(const cs_pipeline_shape *shape, uint32_t device, uint32_t k,
                  cs_pipeline_step *step)
{
    const lists *all = shape->params;
    if (k >= all->length)
        return false;
    *step = all->steps[(size_t)device * all->length + k];
    return true;
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    const uint32_t P = cs_pipeline_ranks(job), M = job->micro_batches;
    lists all = {.length = STAGES * PASSES * M};
    (void)params;
    all.steps = malloc((size_t)P * all.length * sizeof(*all.steps));
    if (!all.steps)
        return cs_error_no_memory(error);
    for (uint32_t d = 0; d < P; d++)
        fill(&(list){.n_devices = P,
                     .device = d,
                     .n_micros = M,
                     .steps = all.steps + (size_t)d * all.length});
    const cs_status status = cs_pipeline_generate(
        job,
        &(cs_pipeline_options){.order = order, .list_of = list_of, .splits = true, .params = &all},
        builder, error);
    free(all.steps);
    return status;
}

/* ---- closed forms ---- */

static const cs_formula formulas[] = {
    {CS_FIGURE_MAKESPAN,
     "2M(f + b + w) per mini-batch, and 2 updates; and (P - 1)(b + max(b - 2w, 0)), and behind "
     "every mini-batch but the last one (P - 1) max(2(b - w), b - f)"},
    {CS_FIGURE_BUBBLE, "B of B + 2M(f + b + w), B = (P - 1)(b + max(b - 2w, 0))"},
    {CS_FIGURE_PEAK_ACTIVATIONS, "2P activations of a stage"},
    {0}};

static const char own[] = "longest path (schedules/README.md)";

static cs_time larger(cs_time a, cs_time b)
{
    return a > b ? a : b;
}

/* What all devices take, but for what one of them computes: false where it does not fit. */
static bool find_bubble(const cs_pipeline_times *times, int64_t ranks, int64_t iterations,
                        cs_time *bubble)
{
    const cs_time f = times->forward, b = times->input, w = times->weight;
    cs_time once = larger(b - w, w), often = larger(b - f, 0), twice; /* once: w more */
    if (!cs_time_mul(larger(b - w, 0), 2, &twice))
        return false;
    once = cs_pipeline_add(b, once - w);
    often = larger(often, twice);
    return cs_time_mul(often, iterations - 1, &often) && cs_time_add(once, often, &once) &&
           cs_time_mul(once, ranks - 1, bubble);
}

/* For f = b = w the paper's: none but that device d waits for d forwards at the start. */
static cs_status add_times(const cs_job *job, cs_forms *forms, cs_error *error)
{
    cs_pipeline_times times;
    cs_pipeline_times_of(job, &times);
    const int64_t P = cs_pipeline_ranks(job), M = job->micro_batches;
    const cs_time micro =
        cs_pipeline_add(cs_pipeline_add(times.forward, times.input), times.weight);
    cs_time batch, bubble, updates, makespan;
    const bool applies = M >= 2 * P - 1 && times.equal_halves && times.forward <= times.input &&
                         times.weight <= times.input && cs_pipeline_no_network(job) &&
                         !job->blocking;
    if (!cs_time_mul(micro, STAGES * M, &batch) ||
        !find_bubble(&times, P, job->iterations, &bubble) ||
        !cs_time_mul(times.update, STAGES, &updates) || !cs_time_add(batch, updates, &makespan) ||
        !cs_time_mul(makespan, job->iterations, &makespan) ||
        !cs_time_add(makespan, bubble, &makespan))
        return CS_OK; /* does not fit: no closed form */
    const double whole = (double)batch + (double)bubble;
    const cs_form all = {.figure = CS_FIGURE_MAKESPAN,
                         .device = CS_NONE,
                         .exact = makespan,
                         .formula = formulas[0].text,
                         .source = own,
                         .applies = applies && (times.update == 0 || job->iterations == 1),
                         .assumes = "M >= 2P - 1, equal stages (here: the slowest), f <= b and "
                                    "w <= b, free messages, no update or one mini-batch"};
    const cs_form share = {
        .figure = CS_FIGURE_BUBBLE,
        .device = CS_NONE,
        .fraction = whole > 0 ? (double)bubble / whole : 0,
        .formula = formulas[1].text,
        .source = own,
        .applies = applies && times.update == 0 && job->iterations == 1 && batch > 0,
        .assumes = "M >= 2P - 1, equal stages (here: the slowest), f <= b and w <= b, free "
                   "messages, one mini-batch without update"};
    CS_TRY(cs_forms_add(forms, &all, error));
    return cs_forms_add(forms, &share, error);
}

static bool equal_kept(const cs_job *job)
{
    for (uint32_t s = 1; s < job->plan->n_stages; s++)
        if (job->stages[s].kept_bytes != job->stages[0].kept_bytes)
            return false;
    return true;
}

/* Of the holders of the first P stages, which have the others as well. */
static cs_status add_peaks(const cs_job *job, cs_forms *forms, cs_error *error)
{
    const cs_plan *plan = job->plan;
    const uint32_t P = cs_pipeline_ranks(job), M = job->micro_batches;
    cs_status status = CS_OK;
    int64_t bytes;
    if (__builtin_mul_overflow(STAGES * (int64_t)P, job->stages[0].kept_bytes, &bytes))
        bytes = INT64_MAX;
    const uint32_t end = plan->stages[P - 1].first_device + plan->stages[P - 1].n_devices;
    for (uint32_t h = 0; h < end && status == CS_OK; h++)
        status = cs_forms_add(forms,
                              &(cs_form){.figure = CS_FIGURE_PEAK_ACTIVATIONS,
                                         .device = plan->devices[h],
                                         .exact = bytes,
                                         .formula = formulas[2].text,
                                         .source = source,
                                         .applies = M >= 2 * P - 1 && equal_kept(job),
                                         .assumes = "M >= 2P - 1, equal stages"},
                              error);
    return status;
}

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    (void)params;
    CS_TRY(add_times(job, forms, error));
    return add_peaks(job, forms, error);
}

const cs_schedule cs_schedule_zb_v = {
    .name = "zb_v",
    .summary = "two stages on every device, down and back up, and backwards in two halves: no "
               "bubble but the first where f = b = w, with 1F1B's memory",
    .source = source,
    .formulas = formulas,
    .fields = fields,
    .params_size = sizeof(zb_v_params),
    .mesh = {.pipeline = CS_LENGTH_RULE, .ranks = ranks, .n_stages = n_stages, .holders = holders},
    .sums_ties = true,
    .micro_batches = offsetof(zb_v_params, micro_batches),
    .generate = generate,
    .closed_forms = closed_forms,
};
