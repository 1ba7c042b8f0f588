#include "schedules/stage-buffers.h"

bool cs_stage_sends(const cs_plan *plan, uint32_t stage)
{
    return stage + 1 < plan->n_stages &&
           cs_plan_device(plan, stage) != cs_plan_device(plan, stage + 1);
}

bool cs_stage_receives(const cs_job *job, uint32_t stage)
{
    return job->receive_buffers && stage > 0 && cs_stage_sends(job->plan, stage - 1);
}

cs_stage_result cs_stage_result_of(const cs_job *job, uint32_t stage)
{
    cs_stage_result result = {0, false, CS_NONE};
    if (job->stage_results < CS_RESULTS_LAST || stage == 0 || stage + 1 < job->plan->n_stages)
        return result;
    const cs_layer *layers = cs_model_layers(job->model, job->micro_samples);
    const cs_layer *last = layers ? &layers[job->model->n_layers - 1] : NULL;
    if (!last || last->result_bytes == 0) {
        result.bytes = job->stages[stage].output_bytes;
        return result;
    }
    return (cs_stage_result){last->result_bytes, last->result_kept && !last->recompute,
                             last->result_memory};
}

cs_status cs_stage_kept_input(const cs_job *job, uint32_t stage, int64_t *bytes, cs_error *error)
{
    const uint32_t first = job->plan->stages[stage].first_layer;
    cs_layer_sum sum;
    *bytes = 0;
    if (!cs_stage_receives(job, stage))
        return CS_OK;
    CS_TRY(cs_model_sum(job->model, first, first + 1, job->micro_samples, &sum, error));
    *bytes = sum.kept_bytes < sum.input_bytes ? sum.kept_bytes : sum.input_bytes;
    return CS_OK;
}

/* Bytes per micro-batch: output of the forward, and gradient that the backward returns. */
typedef struct one_batch {
    int64_t made, back;
} one_batch;

static one_batch staying(const cs_job *job, uint32_t stage)
{
    const bool all = job->stage_results == CS_RESULTS_ALL;
    const bool sends = cs_stage_sends(job->plan, stage);
    return (one_batch){.made = sends ? job->stages[stage].output_bytes
                                     : cs_stage_result_of(job, stage).bytes,
                       .back = all && stage > 0 && cs_stage_sends(job->plan, stage - 1)
                                   ? job->stages[stage - 1].output_bytes
                                   : 0};
}

int64_t cs_stage_pass_results(const cs_job *job, uint32_t stage, cs_kind kind)
{
    if (job->stage_results < CS_RESULTS_BACKWARD)
        return 0;
    const one_batch of = staying(job, stage);
    const bool last = stage + 1 == job->plan->n_stages;
    const bool until_update = last || job->stage_results == CS_RESULTS_ALL;
    const bool kept = cs_stage_result_of(job, stage).kept;
    switch (kind) {
    case CS_FORWARD:
        return kept ? 0 : of.made;
    case CS_BACKWARD:
        return of.back + (kept ? of.made : until_update ? 0 : -of.made);
    case CS_BACKWARD_INPUT:
        return of.back;
    case CS_BACKWARD_WEIGHT:
        return kept ? of.made : until_update ? 0 : -of.made;
    case CS_UPDATE:
        return -(int64_t)job->micro_batches * (of.back + (until_update ? of.made : 0));
    default:
        return 0;
    }
}
