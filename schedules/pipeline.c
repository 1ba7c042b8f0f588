#include "schedules/pipeline.h"

#include "schedules/residents.h"

#include <stdlib.h>
#include <string.h>

/* The classes of one stage's tasks. */
typedef struct stage_classes {
    uint32_t forward, recompute, backward, update;
    uint32_t send_forward;  /* to the next stage; CS_NONE at the end or on the same device */
    uint32_t send_backward; /* to the stage before */
} stage_classes;

/* How far a stage is in the current span. */
typedef struct stage_state {
    uint32_t done;      /* steps */
    uint32_t backwards; /* of these */
    bool ready;         /* its next step can be added in this round */
} stage_state;

typedef struct pipeline {
    const cs_job *job;
    const cs_pipeline_options *options;
    cs_builder *builder;
    uint32_t n_stages;
    uint32_t n_micros;   /* of a span: a mini-batch, or with no flush in between all of them */
    uint32_t first_item; /* of the current span */
    uint32_t *slots;     /* per stage */
    stage_classes *classes;
    stage_state *states;
    /* per stage and micro-batch of the current span: the task that brings it what it needs,
     * CS_NONE while that is not there */
    uint32_t *activation_from, *gradient_from;
} pipeline;

static uint32_t device_of(const cs_job *job, uint32_t stage)
{
    return job->plan->devices[job->plan->stages[stage].first_device];
}

static bool adjacent_on_one_device(const cs_job *job, uint32_t stage)
{
    return device_of(job, stage) == device_of(job, stage + 1);
}

/* ---- classes ---- */

/* What the stage holds of a micro-batch between forward and backward, and after recomputation. */
static int64_t kept_early(const pipeline *p, uint32_t stage)
{
    const cs_layer_sum *sum = &p->job->stages[stage];
    return p->options->recompute ? sum->input_bytes : sum->kept_bytes;
}

static int64_t kept_late(const pipeline *p, uint32_t stage)
{
    const cs_layer_sum *sum = &p->job->stages[stage];
    return p->options->recompute && sum->kept_bytes < sum->input_bytes ? sum->input_bytes
                                                                       : sum->kept_bytes;
}

static void add_workspace(pipeline *p, uint32_t stage)
{
    int64_t bytes = p->job->stages[stage].workspace_bytes;
    uint32_t device = device_of(p->job, stage);
    cs_builder_effect(p->builder, CS_MEMORY_WORKSPACE, device, bytes, false);
    cs_builder_effect(p->builder, CS_MEMORY_WORKSPACE, device, -bytes, true);
}

static uint32_t make_forward(pipeline *p, uint32_t stage, uint32_t slot)
{
    const cs_layer_sum *sum = &p->job->stages[stage];
    uint32_t device = device_of(p->job, stage);
    uint32_t cls = cs_builder_compute(p->builder, CS_FORWARD, stage, device, slot, sum->forward);
    cs_builder_effect(p->builder, CS_MEMORY_ACTIVATIONS, device, kept_early(p, stage), false);
    if (stage > 0)
        cs_builder_effect(p->builder, CS_MEMORY_BUFFERS, device, -sum->input_bytes, false);
    if (stage + 1 < p->n_stages && adjacent_on_one_device(p->job, stage))
        cs_builder_effect(p->builder, CS_MEMORY_BUFFERS, device, sum->output_bytes, true);
    add_workspace(p, stage);
    return cls;
}

static uint32_t make_recompute(pipeline *p, uint32_t stage, uint32_t slot)
{
    uint32_t device = device_of(p->job, stage);
    uint32_t cls = cs_builder_compute(p->builder, CS_RECOMPUTE, stage, device, slot,
                                      p->job->stages[stage].forward);
    cs_builder_effect(p->builder, CS_MEMORY_ACTIVATIONS, device,
                      kept_late(p, stage) - kept_early(p, stage), false);
    add_workspace(p, stage);
    return cls;
}

static uint32_t make_backward(pipeline *p, uint32_t stage, uint32_t slot)
{
    const cs_layer_sum *sum = &p->job->stages[stage];
    uint32_t device = device_of(p->job, stage);
    uint32_t cls = cs_builder_compute(p->builder, CS_BACKWARD, stage, device, slot,
                                      sum->backward_input + sum->backward_weight);
    cs_builder_effect(p->builder, CS_MEMORY_ACTIVATIONS, device, -kept_late(p, stage), true);
    if (stage + 1 < p->n_stages)
        cs_builder_effect(p->builder, CS_MEMORY_BUFFERS, device, -sum->output_bytes, true);
    if (stage > 0 && adjacent_on_one_device(p->job, stage - 1))
        cs_builder_effect(p->builder, CS_MEMORY_BUFFERS, device, sum->input_bytes, true);
    add_workspace(p, stage);
    return cls;
}

/* A message is a buffer at the sender while it is sent, and at the receiver from then on; the
 * task that reads it frees that one. */
static uint32_t make_send(pipeline *p, uint32_t from, uint32_t to)
{
    const cs_layer_sum *lower = &p->job->stages[from < to ? from : to];
    uint32_t sender = device_of(p->job, from), receiver = device_of(p->job, to);
    if (sender == receiver)
        return CS_NONE;
    uint32_t cls = cs_builder_transfer(p->builder, from, sender, receiver, lower->output_bytes,
                                       p->job->blocking);
    cs_builder_effect(p->builder, CS_MEMORY_BUFFERS, sender, lower->output_bytes, false);
    cs_builder_effect(p->builder, CS_MEMORY_BUFFERS, sender, -lower->output_bytes, true);
    cs_builder_effect(p->builder, CS_MEMORY_BUFFERS, receiver, lower->output_bytes, false);
    return cls;
}

static void set_policies(pipeline *p, uint32_t stage)
{
    cs_stage_policies policies = {CS_NONE, CS_NONE};
    p->options->policies(p->job, p->options->params, p->builder, p->slots, stage, &policies);
    const stage_classes *classes = &p->classes[stage];
    if (policies.forward != CS_NONE)
        cs_builder_set_policy(p->builder, classes->forward, policies.forward);
    if (policies.backward != CS_NONE)
        cs_builder_set_policy(p->builder, classes->backward, policies.backward);
}

static void make_classes(pipeline *p)
{
    for (uint32_t s = 0; s < p->n_stages; s++)
        p->slots[s] = cs_residents_add(p->builder, p->job, s, device_of(p->job, s));
    for (uint32_t s = 0; s < p->n_stages; s++) {
        stage_classes *classes = &p->classes[s];
        classes->forward = make_forward(p, s, p->slots[s]);
        classes->recompute = p->options->recompute ? make_recompute(p, s, p->slots[s]) : CS_NONE;
        classes->backward = make_backward(p, s, p->slots[s]);
        classes->update = cs_builder_compute(p->builder, CS_UPDATE, s, device_of(p->job, s),
                                             p->slots[s], p->job->stages[s].update);
        classes->send_forward = s + 1 < p->n_stages ? make_send(p, s, s + 1) : CS_NONE;
        classes->send_backward = s > 0 ? make_send(p, s, s - 1) : CS_NONE;
        if (p->options->policies)
            set_policies(p, s);
    }
}

/* ---- tasks ---- */

static uint32_t *cell(const pipeline *p, uint32_t *table, uint32_t stage, uint32_t micro)
{
    return &table[(size_t)stage * p->n_micros + micro];
}

static cs_pipeline_step next_step(const pipeline *p, uint32_t stage)
{
    return p->options->order(p->n_stages, p->n_micros, stage, p->states[stage].done);
}

/* Whether what the next step of a stage needs from its neighbours has been added. */
static bool inputs_added(const pipeline *p, uint32_t stage)
{
    cs_pipeline_step step = next_step(p, stage);
    if (step.backward)
        return stage + 1 == p->n_stages ||
               *cell(p, p->gradient_from, stage, step.micro_batch) != CS_NONE;
    return stage == 0 || *cell(p, p->activation_from, stage, step.micro_batch) != CS_NONE;
}

/* Adds the message by which `task` hands its result on, if there is one, and returns what the
 * reader has to wait for. */
static uint32_t send(pipeline *p, uint32_t cls, uint32_t task, uint32_t item)
{
    if (cls == CS_NONE)
        return task;
    uint32_t message = cs_builder_task(p->builder, cls, item);
    cs_builder_edge(p->builder, task, message);
    return message;
}

static void add_forward(pipeline *p, uint32_t stage, uint32_t micro, uint32_t item)
{
    const stage_classes *classes = &p->classes[stage];
    uint32_t task = cs_builder_task(p->builder, classes->forward, item);
    if (stage > 0)
        cs_builder_edge(p->builder, *cell(p, p->activation_from, stage, micro), task);
    if (stage + 1 < p->n_stages)
        *cell(p, p->activation_from, stage + 1, micro) = send(p, classes->send_forward, task, item);
}

static void add_backward(pipeline *p, uint32_t stage, uint32_t micro, uint32_t item)
{
    const stage_classes *classes = &p->classes[stage];
    if (classes->recompute != CS_NONE)
        cs_builder_task(p->builder, classes->recompute, item);
    uint32_t task = cs_builder_task(p->builder, classes->backward, item);
    if (stage + 1 < p->n_stages)
        cs_builder_edge(p->builder, *cell(p, p->gradient_from, stage, micro), task);
    if (stage > 0)
        *cell(p, p->gradient_from, stage - 1, micro) = send(p, classes->send_backward, task, item);
}

/* An update follows the last backward of each mini-batch. */
static void add_update(pipeline *p, uint32_t stage)
{
    uint32_t per_batch = p->job->micro_batches, done = ++p->states[stage].backwards;
    if (done % per_batch == 0)
        cs_builder_task(p->builder, p->classes[stage].update, p->first_item + done - per_batch);
}

static void add_step(pipeline *p, uint32_t stage)
{
    cs_pipeline_step step = next_step(p, stage);
    uint32_t item = p->first_item + step.micro_batch;
    p->states[stage].done++;
    if (!step.backward) {
        add_forward(p, stage, step.micro_batch, item);
        return;
    }
    add_backward(p, stage, step.micro_batch, item);
    add_update(p, stage);
}

/* One round: every stage whose next step had its inputs added before this round adds it. The rounds
 * are the time slots of a run in which all tasks take equal time, so ids come out in the order of
 * such a run. Returns how many steps were added. */
static uint32_t add_round(pipeline *p)
{
    uint32_t added = 0;
    for (uint32_t s = 0; s < p->n_stages; s++)
        p->states[s].ready = p->states[s].done < 2 * p->n_micros && inputs_added(p, s);
    for (uint32_t s = 0; s < p->n_stages; s++) {
        if (!p->states[s].ready)
            continue;
        add_step(p, s);
        added++;
    }
    return added;
}

static cs_status add_span(pipeline *p, cs_error *error)
{
    size_t cells = (size_t)p->n_stages * p->n_micros;
    memset(p->activation_from, 0xff, cells * sizeof(*p->activation_from));
    memset(p->gradient_from, 0xff, cells * sizeof(*p->gradient_from));
    memset(p->states, 0, p->n_stages * sizeof(*p->states));
    uint64_t left = 2 * (uint64_t)cells;
    while (left > 0) {
        uint32_t added = add_round(p);
        if (added == 0)
            return cs_error_add(
                error, CS_INVALID,
                "the order of the pipeline deadlocks: every stage waits for another");
        left -= added;
    }
    return CS_OK;
}

static cs_status generate(pipeline *p, cs_error *error)
{
    size_t cells = (size_t)p->n_stages * p->n_micros;
    p->slots = calloc(p->n_stages, sizeof(*p->slots));
    p->classes = calloc(p->n_stages, sizeof(*p->classes));
    p->states = calloc(p->n_stages, sizeof(*p->states));
    p->activation_from = malloc(cells * sizeof(*p->activation_from));
    p->gradient_from = malloc(cells * sizeof(*p->gradient_from));
    if (!p->slots || !p->classes || !p->states || !p->activation_from || !p->gradient_from)
        return cs_error_no_memory(error);
    make_classes(p);
    cs_status status = CS_OK;
    uint32_t n_items = p->job->micro_batches * p->job->iterations;
    for (; p->first_item < n_items && status == CS_OK; p->first_item += p->n_micros)
        status = add_span(p, error);
    return status;
}

cs_status cs_pipeline_generate(const cs_job *job, const cs_pipeline_options *options,
                               cs_builder *builder, cs_error *error)
{
    pipeline p = {.job = job,
                  .options = options,
                  .builder = builder,
                  .n_stages = job->plan->n_stages,
                  .n_micros = job->micro_batches};
    if (options->continuous)
        p.n_micros *= job->iterations;
    cs_status status = generate(&p, error);
    free(p.slots);
    free(p.classes);
    free(p.states);
    free(p.activation_from);
    free(p.gradient_from);
    return status;
}
