#include "schedules/program.h"

#include <assert.h>
#include <stdlib.h>

void cs_step_add_effect(cs_program_step *step, cs_category category, int64_t bytes, bool at_end)
{
    for (uint32_t e = 0; e < step->n_effects; e++) {
        cs_effect *effect = &step->effects[e];
        if (effect->category == category && effect->at_end == at_end) {
            effect->bytes += bytes;
            return;
        }
    }
    if (bytes != 0)
        step->effects[step->n_effects++] = (cs_effect){bytes, 0, (uint8_t)category, at_end};
}

void cs_step_add_results(cs_program_step *step, int64_t bytes)
{
    if (bytes != 0)
        step->effects[step->n_effects++] = (cs_effect){bytes, 0, CS_MEMORY_BUFFERS, true};
}

void cs_step_add_offloaded(cs_program_step *step, int64_t bytes, bool at_end)
{
    if (bytes != 0)
        step->effects[step->n_effects++] = (cs_effect){bytes, 0, CS_MEMORY_ACTIVATIONS, at_end};
}

static void add_workspace(cs_program_step *step, int64_t bytes)
{
    cs_step_add_effect(step, CS_MEMORY_WORKSPACE, bytes, false);
    cs_step_add_effect(step, CS_MEMORY_WORKSPACE, -bytes, true);
}

/* ---- one step ---- */

/* Returns the bytes that a stage keeps of a micro-batch between forward and backward before
 * recomputation. */
static int64_t kept_early(const cs_layer_sum *stage, bool recompute)
{
    return recompute ? stage->input_bytes : stage->kept_bytes;
}

static int64_t kept_late(const cs_layer_sum *stage, bool recompute)
{
    return recompute && stage->kept_bytes < stage->input_bytes ? stage->input_bytes
                                                               : stage->kept_bytes;
}

static cs_time duration_of(const cs_layer_sum *stage, cs_kind kind)
{
    switch (kind) {
    case CS_FORWARD:
    case CS_RECOMPUTE:
        return stage->forward;
    case CS_BACKWARD:
        return stage->backward_input + stage->backward_weight;
    case CS_BACKWARD_INPUT:
        return stage->backward_input;
    case CS_BACKWARD_WEIGHT:
        return stage->backward_weight;
    default:
        assert(kind == CS_UPDATE);
        return stage->update;
    }
}

static cs_time host_of(const cs_layer_sum *stage, cs_kind kind)
{
    const cs_host_times *host = &stage->host;
    const cs_time input = kind == CS_BACKWARD_WEIGHT ? 0 : host->backward_input;
    const cs_time weight = kind == CS_BACKWARD_INPUT ? 0 : host->backward_weight;
    return kind == CS_UPDATE                            ? 0
           : kind == CS_FORWARD || kind == CS_RECOMPUTE ? host->forward
                                                        : input + weight;
}

static void add_forward(cs_program_step *step, const cs_layer_sum *stage,
                        const cs_program_pass *pass)
{
    const int64_t early = kept_early(stage, pass->recompute);
    const bool again = pass->kind == CS_RECOMPUTE;
    cs_step_add_effect(step, CS_MEMORY_ACTIVATIONS,
                       again ? kept_late(stage, pass->recompute) - early : early, false);
    cs_step_add_effect(step, CS_MEMORY_BUFFERS, -pass->reads, false);
    cs_step_add_effect(step, CS_MEMORY_BUFFERS, pass->leaves, true);
    add_workspace(step, stage->workspace_bytes);
}

/* Adds the effects of a backward. The first half passes a gradient on; the last half frees the
 * saved activations and the gradient that both halves read. */
static void add_backward(cs_program_step *step, const cs_layer_sum *stage,
                         const cs_program_pass *pass)
{
    const int64_t workspace = stage->workspace_bytes - pass->entered;
    if (pass->kind != CS_BACKWARD_INPUT) {
        cs_step_add_effect(step, CS_MEMORY_ACTIVATIONS, -kept_late(stage, pass->recompute), true);
        cs_step_add_effect(step, CS_MEMORY_BUFFERS, -pass->reads, true);
    }
    if (pass->kind != CS_BACKWARD_WEIGHT)
        cs_step_add_effect(step, CS_MEMORY_BUFFERS, pass->leaves, true);
    add_workspace(step, workspace > 0 ? workspace : 0);
}

cs_program_step cs_program_whole(const cs_layer_sum *stage, const cs_program_pass *pass)
{
    cs_program_step step = {.kind = pass->kind,
                            .duration = duration_of(stage, pass->kind),
                            .host = host_of(stage, pass->kind),
                            .syncs = pass->kind == CS_UPDATE ||
                                     (stage->waits && pass->kind == CS_FORWARD),
                            .flags = CS_STEP_BEGINS | CS_STEP_RECEIVES | CS_STEP_ENDS};
    if (pass->kind == CS_FORWARD || pass->kind == CS_RECOMPUTE)
        add_forward(&step, stage, pass);
    else if (pass->kind != CS_UPDATE)
        add_backward(&step, stage, pass);
    cs_step_add_effect(&step, CS_MEMORY_OPTIMIZER, pass->copied, false);
    cs_step_add_effect(&step, CS_MEMORY_OPTIMIZER, -pass->copied, true);
    return step;
}

void cs_program_fetch(const cs_job *job, uint32_t stage, cs_program_step *step)
{
    step->host += job->model->host_batch;
    step->syncs_before = job->batch_waits && (stage == 0 || stage + 1 == job->plan->n_stages);
}

cs_status cs_program_stage_init(const cs_job *job, uint32_t stage, cs_program_stage *made,
                                cs_error *error)
{
    *made = (cs_program_stage){.job = job, .stage = stage};
    return job->plan->grid ? cs_program_stage_init_grid(made, error) : CS_OK;
}

void cs_program_stage_finish(cs_program_stage *stage)
{
    free(stage->sums);
    free(stage->units);
    cs_stage_offload_finish(&stage->offload);
    *stage = (cs_program_stage){0};
}

cs_status cs_program_make(const cs_program_stage *stage, const cs_program_pass *pass,
                          cs_program *program, cs_error *error)
{
    *program = (cs_program){0};
    if (stage->job->plan->grid)
        return cs_program_make_grid(stage, pass, program, error);
    program->steps = malloc(sizeof(*program->steps));
    if (!program->steps)
        return cs_error_no_memory(error);
    program->steps[program->n++] = cs_program_whole(&stage->job->stages[stage->stage], pass);
    if (pass->kind == CS_FORWARD)
        cs_program_fetch(stage->job, stage->stage, program->steps);
    return CS_OK;
}

void cs_program_finish(cs_program *program)
{
    free(program->steps);
    *program = (cs_program){0};
}

/* ---- classes ---- */

uint32_t cs_program_class(cs_builder *builder, const cs_program_step *step, const cs_class *like)
{
    cs_class cls = *like;
    cls.kind = cls.origin = (uint8_t)step->kind;
    cls.duration = step->duration;
    cls.host = step->host;
    cls.waits = step->syncs;
    cls.waits_before = step->syncs_before;
    uint32_t made = cs_builder_class(builder, &cls);
    for (uint32_t e = 0; e < step->n_effects; e++)
        cs_builder_effect(builder, step->effects[e].category, cls.device, step->effects[e].bytes,
                          step->effects[e].at_end);
    return made;
}

cs_class cs_program_message(const cs_job *job, uint32_t stage, uint32_t from, uint32_t to,
                            int64_t bytes)
{
    return (cs_class){.kind = CS_TRANSFER,
                      .origin = CS_TRANSFER,
                      .blocking = job->blocking,
                      .waits = job->message_waits,
                      .stage = stage,
                      .device = from,
                      .peer = to,
                      .weights = CS_NONE,
                      .bytes = bytes};
}

static uint32_t send(cs_builder *builder, const cs_class *message, int64_t sent, int64_t arrives,
                     bool stored)
{
    uint32_t made = cs_builder_class(builder, message);
    cs_builder_effect(builder, CS_MEMORY_BUFFERS, message->device, sent, false);
    cs_builder_effect(builder, CS_MEMORY_BUFFERS, message->device, -sent, true);
    cs_builder_effect(builder, CS_MEMORY_BUFFERS, message->peer, arrives, false);
    cs_builder_effect(builder, CS_MEMORY_BUFFERS, message->peer, stored ? -arrives : 0, true);
    return made;
}

uint32_t cs_program_send(cs_builder *builder, const cs_class *message, bool stored)
{
    return send(builder, message, message->bytes, message->bytes, stored);
}

uint32_t cs_program_send_between(cs_builder *builder, const cs_class *message, int64_t sent,
                                 int64_t arrives)
{
    return send(builder, message, sent, arrives, false);
}
