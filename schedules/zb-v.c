/* ZB-V: backwards split in two, and a V-shaped placement. Each of P devices holds two stages,
 * device d stages d and 2P - 1 - d. A micro-batch passes down all devices and back up, so the last
 * stage is on the first device, whose backward can begin there at once.
 *
 * Every list has six passes per micro-batch. If they all take the same time, no device waits
 * between its first and last pass, with as many activations as the first stage of 1F1B: activations
 * of 2P stages, i.e. of P micro-batches on a device. F, I, W are a forward and the halves of a
 * backward of a device's first stage, F', I', W' those of its second stage:
 *
 *   warm up   2(P - d) - 1 times F, then d times F' F, then P - d times F' I' W'
 *   steady    F I W F' I' W', at the end of the mini-batch without F, until all F' are done
 *   cool down d times I I', then P - d times I W, then the remaining W' and W
 *
 * This holds for at least 2P - 1 micro-batches. With fewer, passes of missing micro-batches are
 * left out of the same lists. As in ZB-H2, each stage updates its weights when its own gradients
 * are complete (section 4 of the paper), so mini-batches follow each other at once.
 */
#include "schedules/vee.h"

static const char source[] = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024 "
                             "(arXiv 2401.10241), section 6";

typedef struct zb_v_params {
    uint32_t micro_batches;
} zb_v_params;

static const cs_field fields[] = {
    CS_PIPELINE_MICRO_BATCHES(zb_v_params),
    {0},
};

/* ---- the lists ---- */

enum { F, I, W, PASSES };

/* List of one device, with the number of passes of each kind for each of its stages. */
typedef struct zb_v_list {
    cs_vee_list *made;
    uint32_t done[CS_VEE_STAGES][PASSES];
} zb_v_list;

/* Appends a pass of the next micro-batch, on the device's first or second stage. */
static void put(zb_v_list *l, uint32_t second, uint32_t pass)
{
    static const cs_kind kinds[PASSES] = {CS_FORWARD, CS_BACKWARD_INPUT, CS_BACKWARD_WEIGHT};
    cs_vee_add(l->made, second > 0, kinds[pass], l->done[second][pass]++);
}

static void put_backward(zb_v_list *l, uint32_t second)
{
    put(l, second, I);
    put(l, second, W);
}

static void warm_up(zb_v_list *l)
{
    const uint32_t device = l->made->device, behind = l->made->n_devices - device;
    for (uint32_t i = 0; i < 2 * behind - 1; i++)
        put(l, 0, F);
    for (uint32_t i = 0; i < device; i++) {
        put(l, 1, F);
        put(l, 0, F);
    }
    for (uint32_t i = 0; i < behind; i++) {
        put(l, 1, F);
        put_backward(l, 1);
    }
}

static void cool_down(zb_v_list *l)
{
    const uint32_t device = l->made->device;
    for (uint32_t i = 0; i < device; i++) {
        put(l, 0, I);
        put(l, 1, I);
    }
    for (uint32_t i = 0; i < l->made->n_devices - device; i++)
        put_backward(l, 0);
    for (uint32_t second = CS_VEE_STAGES; second-- > 0;)
        while (l->done[second][W] < l->done[second][I])
            put(l, second, W);
}

static void fill(cs_vee_list *made)
{
    zb_v_list l = {.made = made};
    const uint32_t least = 2 * made->n_devices - 1;
    const uint32_t n = made->n_micros > least ? made->n_micros : least;
    warm_up(&l);
    while (l.done[1][F] < l.done[0][F] || l.done[0][F] < n) {
        if (l.done[0][F] < n)
            put(&l, 0, F);
        put_backward(&l, 0);
        put(&l, 1, F);
        put_backward(&l, 1);
    }
    cool_down(&l);
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    (void)params;
    return cs_vee_generate(job, fill, false, builder, error);
}

/* ---- closed forms ---- */

static const cs_formula formulas[] = {
    {CS_FIGURE_MAKESPAN,
     "2M(f + b + w) per mini-batch, and 2 updates; and (P - 1)(b + max(b - 2w, 0)), and behind "
     "every mini-batch but the last one (P - 1) max(2(b - w), b - f)"},
    {CS_FIGURE_PIPELINE_BUBBLE, "B of B + 2M(f + b + w), B = (P - 1)(b + max(b - 2w, 0))"},
    {CS_FIGURE_PEAK_ACTIVATIONS, "2P activations of a stage"},
    {0}};

static const char own[] = "longest path (schedules/README.md)";

static cs_time larger(cs_time a, cs_time b)
{
    return a > b ? a : b;
}

/* Computes the idle time, which is the same on all devices. Returns false on overflow. */
static bool find_bubble(const cs_pipeline_times *times, int64_t ranks, int64_t iterations,
                        cs_time *bubble)
{
    const cs_time f = times->forward, b = times->input, w = times->weight;
    /* `once` has w added here, which is subtracted below */
    cs_time once = larger(b - w, w), often = larger(b - f, 0), twice;
    if (!cs_time_mul(larger(b - w, 0), 2, &twice))
        return false;
    once = cs_pipeline_add(b, once - w);
    often = larger(often, twice);
    return cs_time_mul(often, iterations - 1, &often) && cs_time_add(once, often, &once) &&
           cs_time_mul(once, ranks - 1, bubble);
}

/* Adds the paper's result for f = b = w: the only idle time is that device d waits for d forwards
 * at the start. */
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
    if (!cs_time_mul(micro, CS_VEE_STAGES * M, &batch) ||
        !find_bubble(&times, P, job->iterations, &bubble) ||
        !cs_time_mul(times.update, CS_VEE_STAGES, &updates) ||
        !cs_time_add(batch, updates, &makespan) ||
        !cs_time_mul(makespan, job->iterations, &makespan) ||
        !cs_time_add(makespan, bubble, &makespan))
        return CS_OK; /* the time overflows, so no closed form is added */
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
        .figure = CS_FIGURE_PIPELINE_BUBBLE,
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

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    (void)params;
    const int64_t P = cs_pipeline_ranks(job);
    const cs_form peak = {.formula = formulas[2].text,
                          .source = source,
                          .applies = job->micro_batches >= 2 * P - 1,
                          .assumes = "M >= 2P - 1, equal stages"};
    CS_TRY(add_times(job, forms, error));
    return cs_vee_add_peaks(job, &peak, 2 * P, forms, error);
}

const cs_schedule cs_schedule_zb_v = {
    .name = "zb_v",
    .summary = "two stages on each device, down the pipeline and back up, with the backward split "
               "in two: no bubble after the start if f = b = w, with 1F1B's memory",
    .source = source,
    .formulas = formulas,
    .fields = fields,
    .params_size = sizeof(zb_v_params),
    .search = CS_SEARCH_ALWAYS,
    .splits = true,
    .mesh = CS_VEE_MESH,
    .sums_ties = true,
    .micro_batches = offsetof(zb_v_params, micro_batches),
    .generate = generate,
    .closed_forms = closed_forms,
};
