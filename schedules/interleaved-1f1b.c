/* Interleaved 1F1B: each of P devices holds v stages, device d stages d, d + P, d + 2P, ... A
 * micro-batch passes all devices v times, and the pipeline fills in 1/v of the time.
 *
 * Forwards are grouped by micro-batches: a group passes through all stages of the device before the
 * next group starts. Backwards likewise, the device's last stage first. The paper's groups have P
 * micro-batches, and its M is a multiple of P. For other M there are floor(M / P) groups, at least
 * one, as equal as possible, the larger ones first. PyTorch's ScheduleInterleaved1F1B does the
 * same, but refuses an M that the groups do not divide equally; Megatron-LM does the same with the
 * larger size as microbatch_group_size_per_vp_stage if all groups but the last have that size.
 * Device d warms up with 2(P - 1 - d) + (v - 1)g forwards, where g is the size of the first group,
 * and then alternates forwards and backwards. If layers of another micro-batch hide messages to
 * experts, a forward and the backward before it form the pair, and the warm-up is one forward
 * longer (Megatron-LM, megatron/core/pipeline_parallel/schedules.py, get_pp_rank_microbatches with
 * overlap_moe_expert_parallel_comm). Other passes hide nothing.
 *
 * A group of P or more micro-batches returns from the later devices before its last micro-batch has
 * left, so no device waits within a group (schedules/README.md). Fewer micro-batches than devices
 * form one group, which is a plain pipeline of vP stages.
 */
#include "schedules/pipeline.h"

static const char source[] =
    "Narayanan et al., Megatron-LM, SC 2021 (arXiv 2104.04473), section 2.2.2";

typedef struct interleaved_params {
    uint32_t micro_batches, stages_per_device;
    bool recompute;
} interleaved_params;

static const cs_field fields[] = {
    {"micro_batches", CS_FIELD_COUNT, offsetof(interleaved_params, micro_batches), .min = 1,
     .max = 1 << 20, .doc = "micro-batches per mini-batch, M"},
    {"stages_per_device", CS_FIELD_COUNT, offsetof(interleaved_params, stages_per_device),
     .fallback = "2", .min = 2, .max = 1 << 16, .doc = "stages per device, v"},
    CS_PIPELINE_RECOMPUTE(interleaved_params),
    {0},
};

/* ---- where the stages are ---- */

static uint32_t ranks(const void *params, uint32_t n_layers)
{
    return n_layers / ((const interleaved_params *)params)->stages_per_device;
}

static uint32_t n_stages(const void *params, uint32_t n_ranks)
{
    return n_ranks * ((const interleaved_params *)params)->stages_per_device;
}

static uint32_t holders(const void *params, uint32_t n_ranks, uint32_t stage, uint32_t *held)
{
    (void)params;
    held[0] = stage % n_ranks;
    return 1;
}

/* ---- the order ---- */

/* Group sizes: the first n_large groups have `large` micro-batches, the others one less. */
typedef struct groups {
    uint32_t large, n_large;
} groups;

static groups groups_of(uint32_t P, uint32_t M)
{
    uint32_t n = M < P ? 1 : M / P, rest = M % n;
    return rest == 0 ? (groups){M / n, n} : (groups){M / n + 1, rest};
}

/* Returns the number of forwards of a device before its first backward. */
static uint32_t warm_up(uint32_t P, uint32_t v, uint32_t M, uint32_t device)
{
    uint64_t all = (uint64_t)v * M, group = groups_of(P, M).large;
    uint64_t first = 2 * (uint64_t)(P - 1 - device) + (v - 1) * group;
    return (uint32_t)(first < all ? first : all);
}

/* Returns the k-th forward of a device, or with `backward` its k-th backward. */
static cs_pipeline_step visit(const cs_pipeline_shape *shape, uint32_t device, uint32_t k,
                              bool backward)
{
    uint32_t P = shape->n_devices, v = shape->n_stages / P;
    groups all = groups_of(P, shape->n_micros);
    uint32_t size = all.large, before = 0; /* micro-batches in the smaller groups */
    if (k >= v * size * all.n_large) {
        before = size * all.n_large;
        k -= v * before;
        size--;
    }
    uint32_t group = k / (size * v), round = k % (size * v) / size;
    if (backward)
        round = v - 1 - round;
    return (cs_pipeline_step){backward ? CS_BACKWARD : CS_FORWARD, round * P + device,
                              before + group * size + k % size};
}

static uint32_t list_of(const cs_pipeline_shape *shape, uint32_t stage)
{
    return stage % shape->n_devices;
}

static bool order(const cs_pipeline_shape *shape, uint32_t device, uint32_t k,
                  cs_pipeline_step *step)
{
    uint32_t P = shape->n_devices, v = shape->n_stages / P, all = v * shape->n_micros;
    uint32_t first = warm_up(P, v, shape->n_micros, device);
    uint32_t after = k - first, pairs = all - first;
    if (k >= 2 * all)
        return false;
    if (k < first)
        *step = visit(shape, device, k, false);
    else if (after >= 2 * pairs)
        *step = visit(shape, device, after - pairs, true);
    else if (after % 2 == 0)
        *step = visit(shape, device, first + after / 2, false);
    else
        *step = visit(shape, device, after / 2, true);
    step->paired = k > first && after + 1 < 2 * pairs;
    return true;
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    cs_pipeline_options options = {.order = order,
                                   .list_of = list_of,
                                   .pairs = true,
                                   .recompute = ((const interleaved_params *)params)->recompute};
    return cs_pipeline_generate(job, &options, builder, error);
}

/* ---- closed forms ---- */

/* Formulas; g is the size of the first group. */
static const cs_formula formulas[] = {
    {CS_FIGURE_MAKESPAN, "(vM + P - 1)(f + b) per mini-batch, and v updates"},
    {CS_FIGURE_PIPELINE_BUBBLE, "(P - 1)/(vM + P - 1)"},
    {CS_FIGURE_MAKESPAN, "(M + vP - 1)(f + b) per mini-batch, and v updates, with M < P"},
    {CS_FIGURE_PIPELINE_BUBBLE, "(M + vP - 1 - vM)/(M + vP - 1), with M < P"},
    {CS_FIGURE_PEAK_ACTIVATIONS, "min(2(P - 1 - d) + (v - 1)g + 1, vM) activations of a stage"},
    {0}};

/* Adds peaks for the holders of the first P stages, which hold the other stages too: one more than
 * the forwards of the warm-up, because the first backward follows the next forward. */
static cs_status add_peaks(const cs_job *job, bool equal, cs_forms *forms, cs_error *error)
{
    const cs_plan *plan = job->plan;
    const uint32_t P = cs_pipeline_ranks(job), v = plan->n_stages / P, M = job->micro_batches;
    cs_status status = CS_OK;
    for (uint32_t h = 0, d = 0; d < P && status == CS_OK; h++) {
        uint32_t first = warm_up(P, v, M, d);
        int64_t stages = first < v * M ? first + 1 : first, bytes;
        if (__builtin_mul_overflow(stages, job->stages[0].kept_bytes, &bytes))
            bytes = INT64_MAX;
        cs_form form = {.figure = CS_FIGURE_PEAK_ACTIVATIONS,
                        .device = plan->devices[h],
                        .exact = bytes,
                        .formula = formulas[4].text,
                        .source = source,
                        .applies = equal,
                        .assumes = "equal stages"};
        status = cs_forms_add(forms, &form, error);
        d += h + 1 == plan->stages[d].first_device + plan->stages[d].n_devices;
    }
    return status;
}

static bool equal_kept(const cs_job *job)
{
    for (uint32_t s = 1; s < job->plan->n_stages; s++) {
        if (job->stages[s].kept_bytes != job->stages[0].kept_bytes)
            return false;
    }
    return true;
}

/* Total time: `steps` times a forward and a backward. A device computes during vM of them. */
typedef struct span {
    int64_t steps;
    const char *makespan, *bubble, *source;
} span;

static span span_of(int64_t P, int64_t v, int64_t M)
{
    if (M < P)
        return (span){M + v * P - 1, formulas[2].text, formulas[3].text,
                      "longest path (schedules/README.md)"};
    return (span){v * M + P - 1, formulas[0].text, formulas[1].text, source};
}

static cs_status add_times(const cs_job *job, cs_forms *forms, cs_error *error)
{
    static const char assumes[] = "equal stages (here: the slowest), free messages";
    cs_pipeline_times times;
    cs_pipeline_times_of(job, &times);
    int64_t P = cs_pipeline_ranks(job), v = job->plan->n_stages / P, M = job->micro_batches;
    const span all = span_of(P, v, M);
    cs_time batch, updates;
    bool applies = times.equal && cs_pipeline_no_network(job) && !job->blocking;
    if (!cs_time_mul(times.forward + times.backward, all.steps, &batch) ||
        !cs_time_mul(times.update, v, &updates) || !cs_time_add(batch, updates, &batch) ||
        !cs_time_mul(batch, job->iterations, &batch))
        return CS_OK; /* the time overflows, so no closed form is added */
    cs_form makespan = {.figure = CS_FIGURE_MAKESPAN,
                        .device = CS_NONE,
                        .exact = batch,
                        .formula = all.makespan,
                        .source = all.source,
                        .applies = applies,
                        .assumes = assumes};
    cs_form bubble = {.figure = CS_FIGURE_PIPELINE_BUBBLE,
                      .device = CS_NONE,
                      .fraction = (double)(all.steps - v * M) / (double)all.steps,
                      .formula = all.bubble,
                      .source = all.source,
                      .applies = applies && times.update == 0 && batch > 0,
                      .assumes = "equal stages (here: the slowest), free messages, no update"};
    CS_TRY(cs_forms_add(forms, &makespan, error));
    return cs_forms_add(forms, &bubble, error);
}

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    if (((const interleaved_params *)params)->recompute)
        return CS_OK;
    CS_TRY(add_times(job, forms, error));
    return add_peaks(job, equal_kept(job), forms, error);
}

const cs_schedule cs_schedule_interleaved_1f1b = {
    .name = "interleaved_1f1b",
    .summary = "1F1B with several stages on each device, which shortens the bubble",
    .source = source,
    .formulas = formulas,
    .fields = fields,
    .params_size = sizeof(interleaved_params),
    .search = CS_SEARCH_ALWAYS,
    .stages = {"stages_per_device", 1, {2, 4, 8}},
    .mesh = {.pipeline = CS_LENGTH_RULE, .ranks = ranks, .n_stages = n_stages, .holders = holders},
    .sums_ties = true,
    .micro_batches = offsetof(interleaved_params, micro_batches),
    .generate = generate,
    .closed_forms = closed_forms,
};
