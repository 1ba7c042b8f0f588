#include "schedules/pipeline-classes.h"

#include "schedules/residents.h"

typedef struct maker {
    const cs_job *job;
    const cs_pipeline_options *options;
    cs_builder *builder;
    uint32_t *slots; /* per stage */
} maker;

uint32_t cs_pipeline_device(const cs_job *job, uint32_t stage)
{
    return job->plan->devices[job->plan->stages[stage].first_device];
}

static bool adjacent_on_one_device(const cs_job *job, uint32_t stage)
{
    return cs_pipeline_device(job, stage) == cs_pipeline_device(job, stage + 1);
}

/* What the stage holds of a micro-batch between forward and backward, and after recomputation. */
static int64_t kept_early(const maker *m, uint32_t stage)
{
    const cs_layer_sum *sum = &m->job->stages[stage];
    return m->options->recompute ? sum->input_bytes : sum->kept_bytes;
}

static int64_t kept_late(const maker *m, uint32_t stage)
{
    const cs_layer_sum *sum = &m->job->stages[stage];
    return m->options->recompute && sum->kept_bytes < sum->input_bytes ? sum->input_bytes
                                                                       : sum->kept_bytes;
}

static void add_workspace(maker *m, uint32_t stage, int64_t bytes)
{
    uint32_t device = cs_pipeline_device(m->job, stage);
    cs_builder_effect(m->builder, CS_MEMORY_WORKSPACE, device, bytes, false);
    cs_builder_effect(m->builder, CS_MEMORY_WORKSPACE, device, -bytes, true);
}

static uint32_t make_forward(maker *m, uint32_t stage, uint32_t slot)
{
    const cs_layer_sum *sum = &m->job->stages[stage];
    uint32_t device = cs_pipeline_device(m->job, stage);
    uint32_t cls = cs_builder_compute(m->builder, CS_FORWARD, stage, device, slot, sum->forward);
    cs_builder_effect(m->builder, CS_MEMORY_ACTIVATIONS, device, kept_early(m, stage), false);
    if (stage > 0)
        cs_builder_effect(m->builder, CS_MEMORY_BUFFERS, device, -sum->input_bytes, false);
    if (stage + 1 < m->job->plan->n_stages && adjacent_on_one_device(m->job, stage))
        cs_builder_effect(m->builder, CS_MEMORY_BUFFERS, device, sum->output_bytes, true);
    add_workspace(m, stage, m->job->stages[stage].workspace_bytes);
    return cls;
}

static uint32_t make_recompute(maker *m, uint32_t stage, uint32_t slot)
{
    uint32_t device = cs_pipeline_device(m->job, stage);
    uint32_t cls = cs_builder_compute(m->builder, CS_RECOMPUTE, stage, device, slot,
                                      m->job->stages[stage].forward);
    cs_builder_effect(m->builder, CS_MEMORY_ACTIVATIONS, device,
                      kept_late(m, stage) - kept_early(m, stage), false);
    add_workspace(m, stage, m->job->stages[stage].workspace_bytes);
    return cls;
}

/* A layer's workspace has the gradient that enters it: that of a message is in its buffer. */
static int64_t backward_workspace(const maker *m, uint32_t stage)
{
    const cs_layer_sum *sum = &m->job->stages[stage];
    int64_t received = stage + 1 < m->job->plan->n_stages ? sum->output_bytes : 0;
    return sum->workspace_bytes > received ? sum->workspace_bytes - received : 0;
}

/* The whole backward, or a half of it: the first half hands a gradient on, the last one frees what
 * was kept and the gradient that both halves read. */
static uint32_t make_backward(maker *m, uint32_t stage, uint32_t slot, cs_kind kind)
{
    const cs_layer_sum *sum = &m->job->stages[stage];
    uint32_t device = cs_pipeline_device(m->job, stage);
    cs_time duration = 0;
    if (kind != CS_BACKWARD_WEIGHT)
        duration += sum->backward_input;
    if (kind != CS_BACKWARD_INPUT)
        duration += sum->backward_weight;
    uint32_t cls = cs_builder_compute(m->builder, kind, stage, device, slot, duration);
    if (kind != CS_BACKWARD_INPUT) {
        cs_builder_effect(m->builder, CS_MEMORY_ACTIVATIONS, device, -kept_late(m, stage), true);
        if (stage + 1 < m->job->plan->n_stages)
            cs_builder_effect(m->builder, CS_MEMORY_BUFFERS, device, -sum->output_bytes, true);
    }
    if (kind != CS_BACKWARD_WEIGHT && stage > 0 && adjacent_on_one_device(m->job, stage - 1))
        cs_builder_effect(m->builder, CS_MEMORY_BUFFERS, device, sum->input_bytes, true);
    add_workspace(m, stage, backward_workspace(m, stage));
    return cls;
}

/* A message is a buffer at the sender while it is sent, and at the receiver from then on; the
 * task that reads it frees that one. */
static uint32_t make_send(maker *m, uint32_t from, uint32_t to)
{
    const cs_layer_sum *lower = &m->job->stages[from < to ? from : to];
    uint32_t sender = cs_pipeline_device(m->job, from), receiver = cs_pipeline_device(m->job, to);
    if (sender == receiver)
        return CS_NONE;
    uint32_t cls = cs_builder_transfer(m->builder, from, sender, receiver, lower->output_bytes,
                                       m->job->blocking);
    cs_builder_effect(m->builder, CS_MEMORY_BUFFERS, sender, lower->output_bytes, false);
    cs_builder_effect(m->builder, CS_MEMORY_BUFFERS, sender, -lower->output_bytes, true);
    cs_builder_effect(m->builder, CS_MEMORY_BUFFERS, receiver, lower->output_bytes, false);
    return cls;
}

static void set_policies(maker *m, uint32_t stage, const cs_stage_classes *classes)
{
    cs_stage_policies policies = {CS_NONE, CS_NONE};
    m->options->policies(m->job, m->options->params, m->builder, m->slots, stage, &policies);
    if (policies.forward != CS_NONE)
        cs_builder_set_policy(m->builder, classes->forward, policies.forward);
    if (policies.backward != CS_NONE)
        cs_builder_set_policy(m->builder, classes->backward, policies.backward);
}

static void make_stage(maker *m, uint32_t stage, cs_stage_classes *classes)
{
    uint32_t slot = m->slots[stage], n_stages = m->job->plan->n_stages;
    classes->forward = make_forward(m, stage, slot);
    classes->recompute = m->options->recompute ? make_recompute(m, stage, slot) : CS_NONE;
    classes->backward = make_backward(m, stage, slot, CS_BACKWARD);
    classes->backward_input = make_backward(m, stage, slot, CS_BACKWARD_INPUT);
    classes->backward_weight = make_backward(m, stage, slot, CS_BACKWARD_WEIGHT);
    classes->update =
        cs_builder_compute(m->builder, CS_UPDATE, stage, cs_pipeline_device(m->job, stage), slot,
                           m->job->stages[stage].update);
    classes->send_forward = stage + 1 < n_stages ? make_send(m, stage, stage + 1) : CS_NONE;
    classes->send_backward = stage > 0 ? make_send(m, stage, stage - 1) : CS_NONE;
    if (m->options->policies)
        set_policies(m, stage, classes);
}

void cs_pipeline_make_classes(const cs_job *job, const cs_pipeline_options *options,
                              cs_builder *builder, uint32_t *slots, cs_stage_classes *classes)
{
    maker m = {job, options, builder, slots};
    uint32_t n_stages = job->plan->n_stages;
    for (uint32_t s = 0; s < n_stages; s++)
        slots[s] = cs_residents_add(builder, job, s, cs_pipeline_device(job, s));
    for (uint32_t s = 0; s < n_stages; s++)
        make_stage(&m, s, &classes[s]);
}
