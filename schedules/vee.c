#include "schedules/vee.h"

#include <stdlib.h>

enum { PASSES = 3 }; /* at most a forward and the halves of a backward per micro-batch and stage */

uint32_t cs_vee_ranks(const void *params, uint32_t n_layers)
{
    (void)params;
    return n_layers / CS_VEE_STAGES;
}

uint32_t cs_vee_n_stages(const void *params, uint32_t n_ranks)
{
    (void)params;
    return CS_VEE_STAGES * n_ranks;
}

static uint32_t device_of(uint32_t n_devices, uint32_t stage)
{
    const uint32_t down = stage % n_devices;
    return stage / n_devices % 2 == 0 ? down : n_devices - 1 - down;
}

uint32_t cs_vee_holders(const void *params, uint32_t n_ranks, uint32_t stage, uint32_t *held)
{
    (void)params;
    held[0] = device_of(n_ranks, stage);
    return 1;
}

void cs_vee_add(cs_vee_list *list, bool second, cs_kind kind, uint32_t micro_batch)
{
    const uint32_t stage =
        second ? CS_VEE_STAGES * list->n_devices - 1 - list->device : list->device;
    if (micro_batch < list->n_micros)
        list->steps[list->n++] =
            (cs_pipeline_step){.kind = kind, .stage = stage, .micro_batch = micro_batch};
}

static uint32_t list_of(const cs_pipeline_shape *shape, uint32_t stage)
{
    return device_of(shape->n_devices, stage);
}

/* Reads from `shape->params`, the lists of all devices. */
static bool order(const cs_pipeline_shape *shape, uint32_t device, uint32_t k,
                  cs_pipeline_step *step)
{
    const cs_vee_list *list = (const cs_vee_list *)shape->params + device;
    if (k >= list->n)
        return false;
    *step = list->steps[k];
    return true;
}

cs_status cs_vee_generate(const cs_job *job, cs_vee_fill *fill, bool pairs, cs_builder *builder,
                          cs_error *error)
{
    const uint32_t P = cs_pipeline_ranks(job), M = job->micro_batches;
    const size_t most = (size_t)CS_VEE_STAGES * PASSES * M;
    cs_vee_list *lists = calloc(P, sizeof(*lists));
    cs_pipeline_step *steps = malloc(P * most * sizeof(*steps));
    if (!lists || !steps) {
        free(lists);
        free(steps);
        return cs_error_no_memory(error);
    }
    for (uint32_t d = 0; d < P; d++) {
        lists[d] = (cs_vee_list){
            .n_devices = P, .device = d, .n_micros = M, .steps = steps + (size_t)d * most};
        fill(&lists[d]);
    }
    const cs_pipeline_options options = {
        .order = order, .list_of = list_of, .splits = true, .pairs = pairs, .params = lists};
    const cs_status status = cs_pipeline_generate(job, &options, builder, error);
    free(steps);
    free(lists);
    return status;
}

static bool equal_kept(const cs_job *job)
{
    for (uint32_t s = 1; s < job->plan->n_stages; s++)
        if (job->stages[s].kept_bytes != job->stages[0].kept_bytes)
            return false;
    return true;
}

/* Adds peaks for the holders of the first P stages, which hold the other stages too. */
cs_status cs_vee_add_peaks(const cs_job *job, const cs_form *like, int64_t at_once, cs_forms *forms,
                           cs_error *error)
{
    const cs_plan *plan = job->plan;
    const cs_stage *last = &plan->stages[cs_pipeline_ranks(job) - 1];
    const bool equal = equal_kept(job);
    cs_status status = CS_OK;
    int64_t bytes;
    if (__builtin_mul_overflow(at_once, job->stages[0].kept_bytes, &bytes))
        bytes = INT64_MAX;
    for (uint32_t h = 0; h < last->first_device + last->n_devices && status == CS_OK; h++) {
        cs_form form = *like;
        form.figure = CS_FIGURE_PEAK_ACTIVATIONS;
        form.device = plan->devices[h];
        form.exact = bytes;
        form.applies = like->applies && equal;
        status = cs_forms_add(forms, &form, error);
    }
    return status;
}
