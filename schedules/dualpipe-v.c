/* DualPipeV: the half of DeepSeek's bidirectional DualPipe that needs one copy of the weights. Each
 * of P devices holds two stages, in a V (vee.h). In the steady state a device pairs a forward of
 * one stage with a backward of the other, so that each can compute while the other sends tokens to
 * experts. Here the two passes of a pair run one after the other, and the all-to-alls of experts in
 * them are shortened by their overlapped fraction. Its default is 0.85: all of their time is
 * overlapped, but 20 of the 132 multiprocessors of an H800 send and receive (section 3.2.2 of the
 * report) and layers take 132/112 of their time, so (132 - 20)/132 of the messages' time is saved.
 *
 * F and B are a forward and a whole backward of a device's first stage, F' and B' of its second
 * stage, I and W the halves of a backward:
 *
 *   warm up    2(P - 1 - d) times F, then d + 1 times F F', then P - 1 - d times I' W F'
 *   steady     F B' F' B until all F are done, then P - 1 - d times B' F' B
 *   cool down  d + 1 times B' B, split from the middle on; then P - 1 - d times W I; then the
 *              remaining W
 *
 * Each W belongs to the earliest I without one. As in zb_v, each stage updates its weights when its
 * own gradients are complete.
 */
#include "schedules/vee.h"

static const char source[] =
    "DeepSeek-AI, DeepSeek-V3 Technical Report (arXiv 2412.19437), section "
    "3.2.1; github.com/deepseek-ai/DualPipe, DualPipeV";

typedef struct dualpipe_v_params {
    uint32_t micro_batches;
} dualpipe_v_params;

static const cs_field fields[] = {
    CS_PIPELINE_MICRO_BATCHES(dualpipe_v_params),
    {0},
};

/* ---- the lists ---- */

typedef struct dual_list {
    cs_vee_list *made;
    /* number of passes so far, per stage */
    uint32_t forwards[CS_VEE_STAGES], backwards[CS_VEE_STAGES];
    uint32_t weights; /* position in the list: earlier backwards have their W already */
    bool splits;      /* whether backwards are split from here on */
} dual_list;

static void forward(dual_list *l, uint32_t second)
{
    cs_vee_add(l->made, second, CS_FORWARD, l->forwards[second]++);
}

static void backward(dual_list *l, uint32_t second)
{
    cs_vee_add(l->made, second, l->splits ? CS_BACKWARD_INPUT : CS_BACKWARD,
               l->backwards[second]++);
}

/* Adds a forward of one stage paired with a backward of the other. */
static void pair(dual_list *l, uint32_t second)
{
    forward(l, second);
    backward(l, 1 - second);
    for (uint32_t i = 1; i <= 2; i++)
        l->made->steps[l->made->n - i].paired = true;
}

/* Adds the weight gradient of the earliest I without one. Returns false if there is none. */
static bool weight(dual_list *l)
{
    const cs_vee_list *made = l->made;
    while (l->weights < made->n) {
        const cs_pipeline_step step = made->steps[l->weights++];
        if (step.kind == CS_BACKWARD_INPUT) {
            cs_vee_add(l->made, step.stage >= made->n_devices, CS_BACKWARD_WEIGHT,
                       step.micro_batch);
            return true;
        }
    }
    return false;
}

static void warm_up(dual_list *l, uint32_t behind)
{
    for (uint32_t i = 0; i < 2 * behind; i++)
        forward(l, 0);
    for (uint32_t i = 0; i <= l->made->device; i++) {
        forward(l, 0);
        forward(l, 1);
    }
    l->splits = true;
    for (uint32_t i = 0; i < behind; i++) {
        backward(l, 1);
        weight(l);
        forward(l, 1);
    }
    l->splits = false;
}

/* Adds the cool-down. Its first pass to be split is a B' on odd devices and a B on even ones. */
static void cool_down(dual_list *l, uint32_t behind)
{
    const uint32_t n = l->made->device + 1, middle = n / 2;
    const bool odd = l->made->device % 2 == 1;
    for (uint32_t i = 0; i < n; i++) {
        l->splits = i > middle || (i == middle && odd);
        backward(l, 1);
        l->splits = i >= middle;
        backward(l, 0);
    }
    for (uint32_t i = 0; i < behind; i++) {
        weight(l);
        backward(l, 0);
    }
    while (weight(l))
        ;
}

static void fill(cs_vee_list *made)
{
    dual_list l = {.made = made};
    const uint32_t behind = made->n_devices - 1 - made->device;
    warm_up(&l, behind);
    while (l.forwards[0] < made->n_micros) {
        pair(&l, 0);
        pair(&l, 1);
    }
    for (uint32_t i = 0; i < behind; i++) {
        backward(&l, 1);
        pair(&l, 1);
    }
    cool_down(&l, behind);
}

static uint32_t least_micro_batches(uint32_t n_ranks)
{
    return CS_VEE_STAGES * n_ranks;
}

static cs_status check(const cs_job *job, const void *params, const cs_json_place *place,
                       cs_error *error)
{
    const uint32_t least = least_micro_batches(cs_pipeline_ranks(job));
    const cs_json_place at = {.up = place, .key = "micro_batches"};
    (void)params;
    if (job->micro_batches >= least)
        return CS_OK;
    return cs_json_invalid(&at, error,
                           "must be at least %u, one for each stage of the pipeline (got %u)",
                           least, job->micro_batches);
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    (void)params;
    return cs_vee_generate(job, fill, true, builder, error);
}

/* ---- closed forms ---- */

static const cs_formula formulas[] = {
    {CS_FIGURE_MAKESPAN,
     "2M(f + b + w) + max((P - 1)(f + b - w), (P - 1)(2b - w) - f) per mini-batch"},
    {CS_FIGURE_PIPELINE_BUBBLE,
     "(P - 1)(F&B + B - 3W) of this and 2M(f + b + w), F&B = f + b + w, B = b + w",
     .comparison = true},
    {CS_FIGURE_PEAK_ACTIVATIONS, "2P + 1 activations of a stage"},
    {0}};

/* Computes the idle time of a device, by a formula that was observed, not proven
 * (schedules/README.md). Returns false on overflow. */
static bool find_bubble(const cs_pipeline_times *times, int64_t ranks, cs_time *bubble)
{
    const cs_time f = times->forward, b = times->input, w = times->weight;
    cs_time either, other;
    if (!cs_time_mul(cs_pipeline_add(f, b - w), ranks - 1, &either) ||
        !cs_time_mul(cs_pipeline_add(b, b - w), ranks - 1, &other))
        return false;
    *bubble = other - f > either ? other - f : either;
    return true;
}

static cs_status add_makespan(const cs_job *job, const cs_pipeline_times *times, cs_time batch,
                              cs_forms *forms, cs_error *error)
{
    cs_time makespan;
    const bool applies = times->equal_halves && times->weight <= times->input &&
                         times->forward <= cs_pipeline_add(times->input, times->weight) &&
                         times->update == 0 && cs_pipeline_no_network(job) && !job->blocking;
    if (!find_bubble(times, cs_pipeline_ranks(job), &makespan) ||
        !cs_time_add(makespan, batch, &makespan) ||
        !cs_time_mul(makespan, job->iterations, &makespan))
        return CS_OK; /* the time overflows, so no closed form is added */
    return cs_forms_add(forms,
                        &(cs_form){.figure = CS_FIGURE_MAKESPAN,
                                   .device = CS_NONE,
                                   .exact = makespan,
                                   .formula = formulas[0].text,
                                   .source = "observed (schedules/README.md)",
                                   .applies = applies,
                                   .assumes = "equal stages (here: the slowest), w <= b, f <= b + "
                                              "w, free messages, no update"},
                        error);
}

/* Adds the bubble of the source's table. There a pair takes F&B until both results exist. */
static cs_status add_bubble(const cs_job *job, const cs_pipeline_times *times, cs_time batch,
                            cs_forms *forms, cs_error *error)
{
    const cs_time f = times->forward, b = times->input, w = times->weight;
    const double bubble =
        ((double)cs_pipeline_ranks(job) - 1) * ((double)f + 2 * (double)b - (double)w);
    const double whole = (double)batch + bubble;
    return cs_forms_add(forms,
                        &(cs_form){.figure = CS_FIGURE_PIPELINE_BUBBLE,
                                   .device = CS_NONE,
                                   .fraction = whole > 0 ? bubble / whole : 0,
                                   .formula = formulas[1].text,
                                   .source = source,
                                   .applies = times->equal_halves && job->iterations == 1 &&
                                              times->update == 0 && cs_pipeline_no_network(job) &&
                                              !job->blocking,
                                   .assumes = "equal stages (here: the slowest), free messages, "
                                              "one mini-batch without update",
                                   .comparison = true},
                        error);
}

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    const int64_t P = cs_pipeline_ranks(job);
    const cs_form peak = {
        .formula = formulas[2].text, .source = source, .applies = true, .assumes = "equal stages"};
    cs_pipeline_times times;
    cs_time batch;
    (void)params;
    cs_pipeline_times_of(job, &times);
    const cs_time micro =
        cs_pipeline_add(cs_pipeline_add(times.forward, times.input), times.weight);
    if (cs_time_mul(micro, CS_VEE_STAGES * (int64_t)job->micro_batches, &batch)) {
        CS_TRY(add_makespan(job, &times, batch, forms, error));
        CS_TRY(add_bubble(job, &times, batch, forms, error));
    }
    return cs_vee_add_peaks(job, &peak, 2 * P + 1, forms, error);
}

const cs_schedule cs_schedule_dualpipe_v = {
    .name = "dualpipe_v",
    .summary = "two stages on each device, down the pipeline and back up; forwards and backwards "
               "run in pairs: DeepSeek's DualPipe with one copy of the weights",
    .source = source,
    .formulas = formulas,
    .fields = fields,
    .params_size = sizeof(dualpipe_v_params),
    .search = CS_SEARCH_ALWAYS,
    .least_micro_batches = least_micro_batches,
    .splits = true,
    .mesh = CS_VEE_MESH,
    .sums_ties = true,
    .expert_overlap = 0.85,
    .micro_batches = offsetof(dualpipe_v_params, micro_batches),
    .check = check,
    .generate = generate,
    .closed_forms = closed_forms,
};
