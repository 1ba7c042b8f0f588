/* Hanayo: pipelines in waves. Each of P devices holds 2W stages in zigzag, so a micro-batch passes
 * down all devices and back up, W times. W waves divide the bubble of 1F1B by 2W, with one copy of
 * the weights, and no device keeps more activations than the first stage of 1F1B does.
 *
 * One rule makes the lists of passes. Time runs in steps, one pass per device and step. A device
 * runs a ready backward, of the earliest micro-batch; else a ready forward, of its last stage that
 * has one. A pass is ready if its input was made in an earlier step. A new micro-batch enters while
 * fewer than P are in flight.
 *
 * If forwards and backwards take equal time and P divides M, the last device never waits between
 * its first and its last pass (schedules/README.md). Other times use the same lists.
 */
#include "schedules/vee.h"

#include <stdlib.h>

/* The paper's abstract has the idea: waves without copies of the weights. Placement and rule are a
 * reading of it. */
static const char source[] =
    "Liu et al., Hanayo, SC 2023 (arXiv 2308.15762), abstract; order of passes: "
    "schedules/README.md";

typedef struct hanayo_params {
    uint32_t micro_batches, waves;
    bool recompute;
} hanayo_params;

static const cs_field fields[] = {
    CS_PIPELINE_MICRO_BATCHES(hanayo_params),
    {"waves", CS_FIELD_COUNT, offsetof(hanayo_params, waves), .fallback = "1", .min = 1,
     .max = 1 << 15, .doc = "times that a micro-batch goes down the devices and back up, W"},
    CS_PIPELINE_RECOMPUTE(hanayo_params),
    {0},
};

/* ---- where the stages are ---- */

static uint32_t stages_of_rank(const void *params)
{
    return CS_VEE_STAGES * ((const hanayo_params *)params)->waves;
}

static uint32_t ranks(const void *params, uint32_t n_layers)
{
    return n_layers / stages_of_rank(params);
}

static uint32_t n_stages(const void *params, uint32_t n_ranks)
{
    return n_ranks * stages_of_rank(params);
}

static uint32_t list_of(const cs_pipeline_shape *shape, uint32_t stage)
{
    uint32_t rank;
    (void)cs_vee_holders(NULL, shape->n_devices, stage, &rank);
    return rank;
}

/* ---- the order ---- */

/* The passes of each rank, 2M of each of its stages, and the number of forwards and backwards that
 * each stage has done. */
typedef struct waves {
    uint32_t n_ranks, n_stages, n_micros;
    uint32_t *forwards, *backwards;
    cs_pipeline_step *steps;
} waves;

/* Returns stage k of a rank. */
static uint32_t stage_of(const waves *w, uint32_t rank, uint32_t k)
{
    return k * w->n_ranks + (k % 2 == 0 ? rank : w->n_ranks - 1 - rank);
}

/* Chooses the next pass of a rank. Returns false if none is ready. */
static bool choose(const waves *w, uint32_t rank, cs_pipeline_step *step)
{
    const uint32_t each = w->n_stages / w->n_ranks;
    bool found = false;
    for (uint32_t k = 0; k < each; k++) {
        const uint32_t s = stage_of(w, rank, k), m = w->backwards[s];
        if (m < w->forwards[s] && (s + 1 == w->n_stages || m < w->backwards[s + 1]) &&
            (!found || m < step->micro_batch)) {
            *step = (cs_pipeline_step){.kind = CS_BACKWARD, .stage = s, .micro_batch = m};
            found = true;
        }
    }
    for (uint32_t k = each; k-- > 0 && !found;) {
        const uint32_t s = stage_of(w, rank, k), m = w->forwards[s];
        found =
            m < w->n_micros && (s == 0 ? m < w->backwards[0] + w->n_ranks : m < w->forwards[s - 1]);
        if (found)
            *step = (cs_pipeline_step){.kind = CS_FORWARD, .stage = s, .micro_batch = m};
    }
    return found;
}

/* Fills all lists. In each step the ranks choose before any of them counts its pass as done. */
static void fill(waves *w, uint32_t *n_steps, cs_pipeline_step *chosen)
{
    const uint32_t each = 2 * w->n_micros * (w->n_stages / w->n_ranks);
    for (uint32_t left = w->n_ranks * each; left > 0;) {
        for (uint32_t r = 0; r < w->n_ranks; r++)
            if (!choose(w, r, &chosen[r]))
                chosen[r].stage = CS_NONE;
        for (uint32_t r = 0; r < w->n_ranks; r++) {
            const cs_pipeline_step *step = &chosen[r];
            if (step->stage == CS_NONE)
                continue;
            (step->kind == CS_FORWARD ? w->forwards : w->backwards)[step->stage]++;
            w->steps[(size_t)r * each + n_steps[r]++] = *step;
            left--;
        }
    }
}

static bool order(const cs_pipeline_shape *shape, uint32_t list, uint32_t k, cs_pipeline_step *step)
{
    const waves *w = shape->params;
    const uint32_t each = 2 * w->n_micros * (w->n_stages / w->n_ranks);
    if (k >= each)
        return false;
    *step = w->steps[(size_t)list * each + k];
    return true;
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    const uint32_t P = cs_pipeline_ranks(job), S = job->plan->n_stages, M = job->micro_batches;
    uint32_t *counts = calloc(2 * (size_t)S + P, sizeof(*counts));
    cs_pipeline_step *steps = calloc(2 * (size_t)S * M + P, sizeof(*steps));
    cs_status status = counts && steps ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK) {
        waves w = {P, S, M, counts, counts + S, steps};
        fill(&w, counts + 2 * (size_t)S, steps + 2 * (size_t)S * M);
        const cs_pipeline_options options = {.order = order,
                                             .list_of = list_of,
                                             .recompute =
                                                 ((const hanayo_params *)params)->recompute,
                                             .params = &w};
        status = cs_pipeline_generate(job, &options, builder, error);
    }
    free(counts);
    free(steps);
    return status;
}

/* ---- closed forms ---- */

static const cs_formula formulas[] = {
    {CS_FIGURE_MAKESPAN, "(2WM + P - 1)(f + b) per mini-batch, and 2W updates"},
    {CS_FIGURE_PIPELINE_BUBBLE, "(P - 1)/(2WM + P - 1)"},
    {0}};

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    static const char own[] = "observed (schedules/README.md)";
    const int64_t P = cs_pipeline_ranks(job), M = job->micro_batches;
    const int64_t busy = stages_of_rank(params) * M, steps = busy + P - 1;
    cs_pipeline_times times;
    cs_time batch, updates;
    cs_pipeline_times_of(job, &times);
    if (((const hanayo_params *)params)->recompute)
        return CS_OK;
    const bool applies = times.equal && times.forward == times.backward && M % P == 0 &&
                         cs_pipeline_no_network(job) && !job->blocking;
    if (!cs_time_mul(times.forward + times.backward, steps, &batch) ||
        !cs_time_mul(times.update, stages_of_rank(params), &updates) ||
        !cs_time_add(batch, updates, &batch) || !cs_time_mul(batch, job->iterations, &batch))
        return CS_OK; /* the time overflows, so no closed form is added */
    CS_TRY(cs_forms_add(forms,
                        &(cs_form){.figure = CS_FIGURE_MAKESPAN,
                                   .device = CS_NONE,
                                   .exact = batch,
                                   .formula = formulas[0].text,
                                   .source = own,
                                   .applies = applies,
                                   .assumes = "equal stages (here: the slowest), f = b, M a "
                                              "multiple of P, free messages"},
                        error));
    return cs_forms_add(forms,
                        &(cs_form){.figure = CS_FIGURE_PIPELINE_BUBBLE,
                                   .device = CS_NONE,
                                   .fraction = (double)(P - 1) / (double)steps,
                                   .formula = formulas[1].text,
                                   .source = own,
                                   .applies = applies && times.update == 0 && batch > 0,
                                   .assumes = "equal stages (here: the slowest), f = b, M a "
                                              "multiple of P, free messages, no update"},
                        error);
}

const cs_schedule cs_schedule_hanayo = {
    .name = "hanayo",
    .summary = "stages in zigzag on the devices, down and up in waves: with W waves 1 / 2W of the "
               "bubble of 1F1B, with one copy of the weights",
    .source = source,
    .formulas = formulas,
    .fields = fields,
    .params_size = sizeof(hanayo_params),
    .mesh = {.pipeline = CS_LENGTH_RULE,
             .ranks = ranks,
             .n_stages = n_stages,
             .holders = cs_vee_holders},
    .search = CS_SEARCH_ALWAYS,
    .stages = {"waves", CS_VEE_STAGES, {1, 2}},
    .sums_ties = true,
    .micro_batches = offsetof(hanayo_params, micro_batches),
    .generate = generate,
    .closed_forms = closed_forms,
};
