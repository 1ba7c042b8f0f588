#include "schedules/pipeline-classes.h"

#include <stdlib.h>
#include <string.h>

/* How far a list is in the current span. */
typedef struct list_state {
    uint32_t done; /* steps */
    bool ended;
    bool ready;            /* its next step can be added in this round */
    cs_pipeline_step next; /* unless it ended */
} list_state;

/* What of a micro-batch has been added on a stage. */
typedef enum progress { NOTHING, FORWARD, BACKWARD_INPUT, COMPLETE } progress;

typedef struct pipeline {
    const cs_job *job;
    const cs_pipeline_options *options;
    cs_builder *builder;
    cs_pipeline_shape shape;
    uint32_t n_stages, n_lists;
    uint32_t n_micros;   /* of a span: a mini-batch, or with no flush in between all of them */
    uint32_t first_item; /* of the current span */
    uint32_t *slots;     /* per stage */
    uint32_t *complete;  /* per stage: micro-batches of the current span */
    cs_stage_classes *classes;
    list_state *lists;
    /* per stage and micro-batch of the current span: how far it is; the task that brings it what it
     * needs, CS_NONE while that is not there */
    uint8_t *progress;
    uint32_t *activation_from, *gradient_from;
} pipeline;

static size_t cell(const pipeline *p, uint32_t stage, uint32_t micro)
{
    return (size_t)stage * p->n_micros + micro;
}

static uint32_t list_of(const pipeline *p, uint32_t stage)
{
    return p->options->by_device ? cs_pipeline_device(p->job, stage) : stage;
}

static void look_ahead(pipeline *p, uint32_t list)
{
    list_state *state = &p->lists[list];
    state->ended = !p->options->order(&p->shape, list, state->done, &state->next);
}

/* ---- what a step waits for ---- */

/* Whether the step still waits for another that has not been added, and for which. */
static bool waits_for(const pipeline *p, const cs_pipeline_step *step, cs_pipeline_step *other)
{
    uint32_t stage = step->stage, micro = step->micro_batch;
    progress at = p->progress[cell(p, stage, micro)];
    if (step->kind == CS_FORWARD) {
        *other = (cs_pipeline_step){CS_FORWARD, stage - 1, micro};
        return stage > 0 && p->activation_from[cell(p, stage, micro)] == CS_NONE;
    }
    if (step->kind == CS_BACKWARD_WEIGHT) {
        *other = (cs_pipeline_step){CS_BACKWARD_INPUT, stage, micro};
        return at < BACKWARD_INPUT;
    }
    *other = (cs_pipeline_step){CS_FORWARD, stage, micro};
    if (at < FORWARD)
        return true;
    *other = (cs_pipeline_step){CS_BACKWARD, stage + 1, micro};
    return stage + 1 < p->n_stages && p->gradient_from[cell(p, stage, micro)] == CS_NONE;
}

enum { SHOWN = 8, STEP_BYTES = 48, LINK_BYTES = 4 * STEP_BYTES };

/* "B0 of stage 1"; halves of a backward go by the letters of custom schedules, B and W. */
static const char *describe(const cs_pipeline_step *step, char text[STEP_BYTES])
{
    const char *symbol = step->kind == CS_FORWARD           ? "F"
                         : step->kind == CS_BACKWARD_WEIGHT ? "W"
                                                            : "B";
    (void)snprintf(text, STEP_BYTES, "%s%u of stage %u", symbol, step->micro_batch, step->stage);
    return text;
}

/* What the next step of a list waits for. That has not been added, so the list that has it, which
 * is returned, has it after its own next step. */
static uint32_t blocker(const pipeline *p, uint32_t list, cs_pipeline_step *other)
{
    *other = p->lists[list].next;
    (void)waits_for(p, &p->lists[list].next, other);
    return list_of(p, other->stage);
}

static void describe_link(const pipeline *p, uint32_t list, char text[LINK_BYTES])
{
    char from[STEP_BYTES], to[STEP_BYTES], first[STEP_BYTES];
    cs_pipeline_step other;
    const cs_pipeline_step *next = &p->lists[blocker(p, list, &other)].next;
    (void)snprintf(text, LINK_BYTES, "%s waits for %s, which follows %s on device %u",
                   describe(&p->lists[list].next, from), describe(&other, to),
                   describe(next, first), cs_pipeline_device(p->job, next->stage));
}

/* No list can go on: walks from each to the one it waits for until one repeats. From there on the
 * walk is a circle. */
static cs_status report_circle(const pipeline *p, cs_error *error)
{
    cs_pipeline_step other;
    uint32_t list = 0, length = 0;
    while (p->lists[list].ended)
        list++;
    for (uint32_t i = 0; i < p->n_lists && !p->lists[list].ended; i++)
        list = blocker(p, list, &other);
    if (p->lists[list].ended)
        return cs_error_add(error, CS_INVALID, "list %u of the pipeline lacks a step", list);
    char text[SHOWN * (LINK_BYTES + 2)] = "", link[LINK_BYTES];
    uint32_t start = list;
    size_t used = 0;
    do {
        describe_link(p, list, link);
        if (length < SHOWN)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", length ? "; " : "",
                                     link);
        length++;
        list = blocker(p, list, &other);
    } while (list != start);
    return cs_error_add(error, CS_INVALID, "the order of the tasks deadlocks: %s%s", text,
                        length > SHOWN ? "; ..." : "");
}

/* ---- tasks ---- */

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

static void add_forward(pipeline *p, const cs_pipeline_step *step, uint32_t item)
{
    const cs_stage_classes *classes = &p->classes[step->stage];
    size_t at = cell(p, step->stage, step->micro_batch);
    uint32_t task = cs_builder_task(p->builder, classes->forward, item);
    cs_builder_edge(p->builder, p->activation_from[at], task);
    if (step->stage + 1 < p->n_stages)
        p->activation_from[at + p->n_micros] = send(p, classes->send_forward, task, item);
    p->progress[at] = FORWARD;
}

/* The whole backward or its first half. */
static void add_backward(pipeline *p, const cs_pipeline_step *step, uint32_t item)
{
    const cs_stage_classes *classes = &p->classes[step->stage];
    size_t at = cell(p, step->stage, step->micro_batch);
    bool whole = step->kind == CS_BACKWARD;
    if (classes->recompute != CS_NONE)
        cs_builder_task(p->builder, classes->recompute, item);
    uint32_t task =
        cs_builder_task(p->builder, whole ? classes->backward : classes->backward_input, item);
    cs_builder_edge(p->builder, p->gradient_from[at], task);
    if (step->stage > 0)
        p->gradient_from[at - p->n_micros] = send(p, classes->send_backward, task, item);
    p->progress[at] = whole ? COMPLETE : BACKWARD_INPUT;
}

static void add_weight_gradient(pipeline *p, const cs_pipeline_step *step, uint32_t item)
{
    cs_builder_task(p->builder, p->classes[step->stage].backward_weight, item);
    p->progress[cell(p, step->stage, step->micro_batch)] = COMPLETE;
}

static void add_update(pipeline *p, uint32_t stage, uint32_t first_micro)
{
    cs_builder_task(p->builder, p->classes[stage].update, p->first_item + first_micro);
}

/* The stage has one more gradient. */
static void complete(pipeline *p, uint32_t stage)
{
    uint32_t per_batch = p->job->micro_batches, n = ++p->complete[stage];
    if (p->options->continuous && n % per_batch == 0)
        add_update(p, stage, n - per_batch);
}

/* The list is at its end: its stages are updated. */
static void end_list(pipeline *p, uint32_t list)
{
    for (uint32_t s = 0; s < p->n_stages && !p->options->continuous; s++) {
        if (list_of(p, s) == list)
            add_update(p, s, 0);
    }
}

static void add_step(pipeline *p, uint32_t list)
{
    list_state *state = &p->lists[list];
    cs_pipeline_step step = state->next;
    uint32_t item = p->first_item + step.micro_batch;
    if (step.kind == CS_FORWARD)
        add_forward(p, &step, item);
    else if (step.kind == CS_BACKWARD_WEIGHT)
        add_weight_gradient(p, &step, item);
    else
        add_backward(p, &step, item);
    if (p->progress[cell(p, step.stage, step.micro_batch)] == COMPLETE)
        complete(p, step.stage);
    state->done++;
    look_ahead(p, list);
    if (state->ended)
        end_list(p, list);
}

/* One round: every list whose next step had its inputs added before this round adds it. The rounds
 * are the time slots of a run in which all tasks take equal time, so ids come out in the order of
 * such a run. Returns how many steps were added. */
static uint32_t add_round(pipeline *p)
{
    uint32_t added = 0;
    cs_pipeline_step other;
    for (uint32_t l = 0; l < p->n_lists; l++)
        p->lists[l].ready = !p->lists[l].ended && !waits_for(p, &p->lists[l].next, &other);
    for (uint32_t l = 0; l < p->n_lists; l++) {
        if (!p->lists[l].ready)
            continue;
        add_step(p, l);
        added++;
    }
    return added;
}

static bool all_ended(const pipeline *p)
{
    for (uint32_t l = 0; l < p->n_lists; l++) {
        if (!p->lists[l].ended)
            return false;
    }
    return true;
}

static cs_status add_span(pipeline *p, cs_error *error)
{
    size_t cells = (size_t)p->n_stages * p->n_micros;
    memset(p->progress, 0, cells * sizeof(*p->progress));
    memset(p->activation_from, 0xff, cells * sizeof(*p->activation_from));
    memset(p->gradient_from, 0xff, cells * sizeof(*p->gradient_from));
    memset(p->complete, 0, p->n_stages * sizeof(*p->complete));
    for (uint32_t l = 0; l < p->n_lists; l++) {
        p->lists[l].done = 0;
        look_ahead(p, l);
    }
    while (add_round(p) > 0) {
    }
    return all_ended(p) ? CS_OK : report_circle(p, error);
}

static cs_status generate(pipeline *p, cs_error *error)
{
    size_t cells = (size_t)p->n_stages * p->n_micros;
    p->slots = calloc(p->n_stages, sizeof(*p->slots));
    p->complete = calloc(p->n_stages, sizeof(*p->complete));
    p->classes = calloc(p->n_stages, sizeof(*p->classes));
    p->lists = calloc(p->n_lists, sizeof(*p->lists));
    p->progress = malloc(cells * sizeof(*p->progress));
    p->activation_from = malloc(cells * sizeof(*p->activation_from));
    p->gradient_from = malloc(cells * sizeof(*p->gradient_from));
    if (!p->slots || !p->complete || !p->classes || !p->lists || !p->progress ||
        !p->activation_from || !p->gradient_from)
        return cs_error_no_memory(error);
    cs_pipeline_make_classes(p->job, p->options, p->builder, p->slots, p->classes);
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
                  .n_lists = options->by_device ? job->n_devices : job->plan->n_stages,
                  .n_micros = job->micro_batches};
    if (options->continuous)
        p.n_micros *= job->iterations;
    p.shape = (cs_pipeline_shape){p.n_stages, job->n_devices, p.n_micros, options->params};
    cs_status status = generate(&p, error);
    free(p.slots);
    free(p.complete);
    free(p.classes);
    free(p.lists);
    free(p.progress);
    free(p.activation_from);
    free(p.gradient_from);
    return status;
}
