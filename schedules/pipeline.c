#include "schedules/pipeline-classes.h"

#include <stdlib.h>
#include <string.h>

/* Progress of a list in the current span. */
typedef struct list_state {
    uint32_t done; /* steps of its stage or device examined so far */
    bool ended;
    cs_pipeline_step next; /* next step of the list; valid unless `ended` */
    uint32_t first_stage;  /* first stage of the list; CS_NONE if the list is not used */
    /* replica of the first stage that the list belongs to, if replicas take turns */
    uint32_t replica;
} list_state;

/* Holders that compute one micro-batch of a stage; their tasks have consecutive ids. */
typedef struct holders {
    uint32_t first, n;
} holders;

/* Progress of a micro-batch. Forwards go from the first stage to the last, and gradients of
 * activations back, so at any time at most one stage has unread inputs. */
typedef struct micro_state {
    /* stages done, counted from the first stage; from the last stage */
    uint32_t n_forward, n_backward;
    uint32_t from; /* first of the tasks that bring the next stage its input */
} micro_state;

/* Stage on a single device, whose neighbours are on single devices too. For a micro-batch it adds
 * passes of one task, each followed by at most one message. Classes, or CS_NONE. */
typedef struct plain_stage {
    bool is;
    uint32_t pass[CS_BACKWARD_WEIGHT + 1]; /* class of each pass, indexed by cs_kind */
    uint32_t down, up;
} plain_stage;

typedef struct pipeline {
    const cs_job *job;
    const cs_plan *plan;
    const cs_pipeline_options *options;
    cs_builder *builder;
    cs_arena arena; /* owns all arrays below */
    cs_pipeline_shape shape;
    cs_pipeline_classes classes;
    uint32_t n_stages, n_lists;
    bool shares;        /* whether all holders of a stage compute a share of each micro-batch */
    holders *holders;   /* all holders of each stage */
    plain_stage *plain; /* plain stages, one entry per stage */
    /* micro-batches of a span: a mini-batch, or without a flush all micro-batches */
    uint32_t n_micros;
    uint32_t first_item;            /* first micro-batch of the current span */
    list_state *lists;              /* one list per device, or per holder */
    uint32_t *next_stage;           /* per stage: next stage of its list, or CS_NONE */
    uint64_t *nominees;             /* bit l: the next round examines list l */
    uint32_t first_word, end_word;  /* range of words that may have bits set */
    uint32_t *next;                 /* lists ready in this round */
    uint32_t *complete, *n_updates; /* per holder: gradients completed and updates in this span */
    uint32_t *computed, *updated;   /* per holder: latest backward and latest update in this span */
    uint32_t *tasks; /* tasks of the latest pass, by step and holder of its stage: see task_of */
    /* On a grid: */
    uint32_t *in_flight; /* per stage: micro-batches between forward and backward */
    uint32_t *begun;     /* per stage: micro-batches whose forward has been added */
    uint32_t *summed;    /* per holder: latest sum of its gradients, or CS_NONE */
    uint32_t *ready;     /* per holder: gather of its weights after an update, or CS_NONE */
    uint32_t *did,
        /* per device: last computation of the latest pass, and the exchange that ended it, or
         * CS_NONE */
        *ended;
    /* With offloading: */
    uint32_t *to_host, *from_host; /* per device: its latest copy in this direction, or CS_NONE */
    uint32_t *stored;    /* per holder and micro-batch of the span: last copy to the host */
    micro_state *micros; /* progress of the micro-batches of the current span */
    /* per stage and update of the span, if any stage is replicated: first member of its all-reduce,
     * or CS_NONE */
    uint32_t *reductions;
    /* per tie and all-reduce (stride `max_tied`): first member in this span, or CS_NONE */
    uint32_t *tied;
    uint32_t max_tied;
} pipeline;

static bool has_grid(const pipeline *p)
{
    return p->job->plan->grid != NULL;
}

/* Returns which of n replicas takes the micro-batch. Avoids the division if n is 1: it would take
 * as long as the rest of a step. */
static uint32_t turn(uint32_t micro, uint32_t n)
{
    return n == 1 ? 0 : micro % n;
}

static inline holders holders_of(const pipeline *p, uint32_t stage, uint32_t micro)
{
    const holders all = p->holders[stage];
    return p->shares ? all : (holders){all.first + turn(micro, all.n), 1};
}

/* Returns the list with the steps of a stage and micro-batch. */
static uint32_t list_of(const pipeline *p, uint32_t stage, uint32_t micro)
{
    return p->options->list_of ? p->options->list_of(&p->shape, stage)
                               : holders_of(p, stage, micro).first;
}

/* Advances to the list's next step; skips steps that belong to another replica of the stage. */
static void look_ahead(pipeline *p, uint32_t list)
{
    list_state *state = &p->lists[list];
    uint32_t of = p->options->list_of ? list : state->first_stage;
    const cs_pipeline_step *next = &state->next;
    do {
        state->ended =
            of == CS_NONE || !p->options->order(&p->shape, of, state->done++, &state->next);
    } while (!state->ended && list_of(p, next->stage, next->micro_batch) != list);
}

/* ---- what a step waits for ---- */

/* Whether the step waits for a step that has not been added; sets `other` to that step. */
static bool waits_for(pipeline *p, const cs_pipeline_step *step, cs_pipeline_step *other)
{
    uint32_t stage = step->stage, micro = step->micro_batch;
    const micro_state *of = &p->micros[micro];
    if (step->kind == CS_FORWARD) {
        *other = (cs_pipeline_step){CS_FORWARD, stage - 1, micro};
        return of->n_forward < stage;
    }
    if (step->kind == CS_BACKWARD_WEIGHT) {
        *other = (cs_pipeline_step){CS_BACKWARD_INPUT, stage, micro};
        return of->n_backward < p->n_stages - stage;
    }
    *other = (cs_pipeline_step){CS_FORWARD, stage, micro};
    if (of->n_forward <= stage)
        return true;
    *other = (cs_pipeline_step){CS_BACKWARD, stage + 1, micro};
    return of->n_backward < p->n_stages - 1 - stage;
}

enum { SHOWN = 8, STEP_BYTES = 48, LINK_BYTES = 4 * STEP_BYTES };

/* Writes a text such as "B0 of stage 1". Halves of a backward have the letters of custom schedules,
 * B and W. */
static const char *describe(const cs_pipeline_step *step, char text[STEP_BYTES])
{
    const char *symbol = step->kind == CS_FORWARD           ? "F"
                         : step->kind == CS_BACKWARD_WEIGHT ? "W"
                                                            : "B";
    (void)snprintf(text, STEP_BYTES, "%s%u of stage %u", symbol, step->micro_batch, step->stage);
    return text;
}

/* Finds the step that the next step of a list waits for, and returns the list that contains it.
 * That step has not been added, so it comes later in its list than the list's own next step. */
static uint32_t blocker(pipeline *p, uint32_t list, cs_pipeline_step *other)
{
    *other = p->lists[list].next;
    (void)waits_for(p, &p->lists[list].next, other);
    return list_of(p, other->stage, other->micro_batch);
}

static void describe_link(pipeline *p, uint32_t list, char text[LINK_BYTES])
{
    char from[STEP_BYTES], to[STEP_BYTES], first[STEP_BYTES];
    cs_pipeline_step other;
    const cs_pipeline_step *next = &p->lists[blocker(p, list, &other)].next;
    (void)snprintf(text, LINK_BYTES, "%s waits for %s, which follows %s on device %u",
                   describe(&p->lists[list].next, from), describe(&other, to),
                   describe(next, first), cs_plan_device(p->job->plan, next->stage));
}

/* Reports a deadlock: no list can continue. Follows each list to the list that it waits for until
 * one repeats; from there on the path is a circle. */
static cs_status report_circle(pipeline *p, cs_error *error)
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

/* The replica pairs that a micro-batch involves. */
typedef struct pairs {
    const cs_replica_pair *of;
    uint32_t n;
} pairs;

static pairs pairs_of(const pipeline *p, uint32_t boundary, uint32_t micro)
{
    const cs_boundary *all = &p->classes.boundaries[boundary];
    return p->shares ? (pairs){all->pairs, all->n} : (pairs){&all->pairs[turn(micro, all->n)], 1};
}

/* Returns the index of a replica among the tasks of one micro-batch on a stage. */
static uint32_t part(const pipeline *p, uint32_t replica)
{
    return p->shares ? replica : 0;
}

/* Returns the task of a step of the latest pass, on one of the holders that it was added for. */
static uint32_t task_of(const pipeline *p, holders on, uint32_t step, uint32_t i)
{
    return p->tasks[(size_t)step * on.n + i];
}

/* Adds the messages that carry the latest pass's results over a boundary, if needed. Returns the
 * first task that the readers must wait for. */
static uint32_t send(pipeline *p, uint32_t boundary, bool down, const cs_pipeline_step *step,
                     const cs_stage_pass *pass, holders on)
{
    pairs all = pairs_of(p, boundary, step->micro_batch);
    uint32_t sent = CS_NONE;
    for (uint32_t i = 0; i < all.n; i++) {
        const cs_replica_pair *pair = &all.of[i];
        uint32_t cls = down ? pair->down : pair->up;
        if (cls == CS_NONE)
            return task_of(p, on, pass->computes, 0);
        uint32_t message = cs_builder_task(p->builder, cls, p->first_item + step->micro_batch);
        for (uint32_t k = 0; k < pass->n; k++) {
            if (pass->steps[k].flags & CS_STEP_ENDS)
                cs_builder_edge(p->builder,
                                task_of(p, on, k, part(p, down ? pair->lower : pair->upper)),
                                message);
        }
        sent = i == 0 ? message : sent;
    }
    return sent;
}

/* Makes the latest pass wait for the messages over a boundary. */
static void receive(pipeline *p, uint32_t boundary, bool down, const cs_pipeline_step *step,
                    uint32_t from, const cs_stage_pass *pass, holders on)
{
    pairs all = pairs_of(p, boundary, step->micro_batch);
    for (uint32_t i = 0; i < all.n; i++) {
        uint32_t reader = part(p, down ? all.of[i].upper : all.of[i].lower);
        for (uint32_t k = 0; k < pass->n; k++) {
            if (pass->steps[k].flags & CS_STEP_RECEIVES)
                cs_builder_edge(p->builder, from + i, task_of(p, on, k, reader));
        }
    }
}

/* Adds the tasks of one step of the pass. */
static void add_tasks(pipeline *p, const cs_stage_step *step, holders on, uint32_t first_class,
                      uint32_t item, uint32_t *tasks)
{
    for (uint32_t i = 0; step->n_runs == 0 && i < on.n; i++)
        tasks[i] = cs_builder_task(p->builder, step->classes[first_class + i], item);
    uint32_t first = CS_NONE;
    for (uint32_t run = 0; run < step->n_runs; run++) {
        uint32_t members = cs_builder_members(p->builder, step->classes[run], item);
        first = run == 0 ? members : first;
    }
    for (uint32_t i = 0; step->n_runs > 0 && i < on.n; i++)
        tasks[i] = first == CS_NONE ? CS_NONE : first + step->members[i];
}

/* Makes a task wait for the last task of its chain, and become the last one. */
static void line_up(pipeline *p, uint32_t *last, uint32_t task)
{
    cs_builder_edge(p->builder, *last, task);
    *last = task;
}

/* Connects a copy to or from the host. Layers return in reverse order, when all copies to the host
 * have ended. */
static void connect_copy(pipeline *p, uint32_t flags, uint32_t h, uint32_t item, uint32_t task)
{
    const uint32_t device = p->classes.devices[h];
    uint32_t *stored = &p->stored[(size_t)h * p->n_micros + (item - p->first_item)];
    if (flags & CS_STEP_TO_HOST) {
        line_up(p, &p->to_host[device], task);
        *stored = task;
        return;
    }
    line_up(p, &p->from_host[device], task);
    cs_builder_edge(p->builder, *stored, task);
    *stored = CS_NONE;
}

/* Connects a holder's task of a step to everything it waits for besides messages, and records it
 * for later tasks. */
static void connect(pipeline *p, const cs_stage_pass *pass, holders on, uint32_t k, uint32_t i,
                    uint32_t item)
{
    const cs_stage_step *step = &pass->steps[k];
    const uint32_t task = task_of(p, on, k, i), h = on.first + i;
    const uint32_t device = p->classes.devices[h];
    for (uint32_t w = 0; w < step->n_waits; w++)
        cs_builder_edge(p->builder, task_of(p, on, step->waits[w], i), task);
    if (step->flags & CS_STEP_BEGINS) {
        cs_builder_edge(p->builder, p->ended[device], task);
        if (!cs_stage_step_computes(step))
            cs_builder_edge(p->builder, p->did[device], task);
    }
    if (step->copies)
        connect_copy(p, step->flags, h, item, task);
    if (step->flags & CS_STEP_SUMS)
        cs_builder_edge(p->builder, p->summed[h], task);
    if (step->flags & CS_STEP_SUMMED)
        p->summed[h] = task;
    if (step->flags & CS_STEP_READS)
        cs_builder_edge(p->builder, p->ready[h], task);
    if (step->flags & CS_STEP_READY)
        p->ready[h] = task;
}

/* Records the end of the pass on a device. */
static void end_pass(pipeline *p, const cs_stage_pass *pass, holders on, uint32_t i)
{
    const uint32_t device = p->classes.devices[on.first + i];
    p->did[device] = task_of(p, on, pass->computes, i);
    p->ended[device] = CS_NONE;
    for (uint32_t k = 0; k < pass->n; k++) {
        if (pass->steps[k].n_runs > 0 && pass->steps[k].flags & CS_STEP_ENDS)
            p->ended[device] = task_of(p, on, k, i);
    }
}

/* Adds a pass over a stage for some of its holders. */
static const cs_stage_pass *add_pass(pipeline *p, uint32_t stage, cs_kind kind, uint32_t variant,
                                     holders on, uint32_t item)
{
    const cs_stage_pass *pass = cs_pipeline_pass(&p->classes, stage, kind, variant);
    const uint32_t first = on.first - p->plan->stages[stage].first_device;
    for (uint32_t k = 0; k < pass->n; k++) {
        add_tasks(p, &pass->steps[k], on, first, item, &p->tasks[(size_t)k * on.n]);
        for (uint32_t i = 0; has_grid(p) && i < on.n; i++)
            connect(p, pass, on, k, i, item);
    }
    for (uint32_t i = 0; has_grid(p) && i < on.n; i++)
        end_pass(p, pass, on, i);
    return pass;
}

/* Whether weights that stay gathered are still gathered on a stage: while micro-batches are in
 * flight, or from the first forward of a mini-batch to its last backward. */
static bool stays_gathered(const pipeline *p, uint32_t stage)
{
    return p->in_flight[stage] > 0 ||
           (p->job->states.gather_once && p->begun[stage] % p->job->micro_batches != 0);
}

static uint32_t alone_variant(const cs_pipeline_step *step)
{
    return step->paired ? 0 : CS_PASS_ALONE;
}

static void add_forward(pipeline *p, const cs_pipeline_step *step, uint32_t item)
{
    micro_state *micro = &p->micros[step->micro_batch];
    holders on = holders_of(p, step->stage, step->micro_batch);
    const uint32_t variant =
        (stays_gathered(p, step->stage) ? CS_PASS_GATHERED : 0) | alone_variant(step);
    p->in_flight[step->stage]++;
    p->begun[step->stage]++;
    const cs_stage_pass *pass = add_pass(p, step->stage, CS_FORWARD, variant, on, item);
    if (step->stage > 0)
        receive(p, step->stage - 1, true, step, micro->from, pass, on);
    if (step->stage + 1 < p->n_stages)
        micro->from = send(p, step->stage, true, step, pass, on);
    micro->n_forward++;
}

/* Whether the next gradient of a stage's weights is the last one of its mini-batch. */
static uint32_t last_variant(const pipeline *p, holders on)
{
    return (p->complete[on.first] + 1) % p->job->micro_batches == 0 ? CS_PASS_LAST : 0;
}

static void note_computed(pipeline *p, const cs_stage_pass *pass, holders on)
{
    for (uint32_t i = 0; i < on.n; i++)
        p->computed[on.first + i] = task_of(p, on, pass->computes, i);
}

/* Adds a whole backward, or its first half. */
static void add_backward(pipeline *p, const cs_pipeline_step *step, uint32_t item)
{
    micro_state *micro = &p->micros[step->micro_batch];
    holders on = holders_of(p, step->stage, step->micro_batch);
    p->in_flight[step->stage]--;
    uint32_t variant =
        (stays_gathered(p, step->stage) ? 0 : CS_PASS_RELEASES) | alone_variant(step);
    if (step->kind == CS_BACKWARD)
        variant |= last_variant(p, on);
    if (p->options->recompute)
        (void)add_pass(p, step->stage, CS_RECOMPUTE, 0, on, item);
    const cs_stage_pass *pass = add_pass(p, step->stage, step->kind, variant, on, item);
    if (step->stage + 1 < p->n_stages)
        receive(p, step->stage, false, step, micro->from, pass, on);
    if (step->stage > 0)
        micro->from = send(p, step->stage - 1, false, step, pass, on);
    micro->n_backward++;
    note_computed(p, pass, on);
}

static void add_weight_gradient(pipeline *p, const cs_pipeline_step *step, uint32_t item)
{
    holders on = holders_of(p, step->stage, step->micro_batch);
    note_computed(p, add_pass(p, step->stage, CS_BACKWARD_WEIGHT, last_variant(p, on), on, item),
                  on);
}

/* Adds a step on a plain stage; equals add_forward, add_backward or add_weight_gradient. */
static void add_plain(pipeline *p, const cs_pipeline_step *step, uint32_t item)
{
    const plain_stage *of = &p->plain[step->stage];
    const uint32_t cls = of->pass[step->kind];
    micro_state *micro = &p->micros[step->micro_batch];
    if (step->kind == CS_FORWARD) {
        const uint32_t from = step->stage > 0 ? micro->from : CS_NONE;
        (void)cs_builder_pass(p->builder, from, cls, of->down, item, &micro->from);
        micro->n_forward++;
        return;
    }
    uint32_t task;
    if (step->kind == CS_BACKWARD_WEIGHT) {
        task = cs_builder_task(p->builder, cls, item);
    } else {
        const uint32_t from = step->stage + 1 < p->n_stages ? micro->from : CS_NONE;
        task = cs_builder_pass(p->builder, from, cls, of->up, item, &micro->from);
        micro->n_backward++;
    }
    p->computed[p->holders[step->stage].first] = task;
}

static uint32_t *reduction_of(const pipeline *p, uint32_t stage, uint32_t number)
{
    return &p->reductions[(size_t)stage * p->n_micros + number];
}

/* Returns a holder's member of the all-reduce before its next update. The first holder to ask adds
 * all members. */
static uint32_t reduction(pipeline *p, uint32_t stage, uint32_t holder, uint32_t item)
{
    uint32_t cls = p->classes.reductions[stage], number = p->n_updates[holder]++;
    if (cls == CS_NONE)
        return CS_NONE;
    uint32_t *first = reduction_of(p, stage, number);
    if (*first == CS_NONE)
        *first = cs_builder_members(p->builder, cls, item);
    return *first == CS_NONE ? CS_NONE : *first + holder - p->plan->stages[stage].first_device;
}

/* Returns the member of a stage's holder in the all-reduce of weights shared with other stages;
 * CS_NONE if it has none. The first holder to ask adds all members. */
static uint32_t tied_part(pipeline *p, uint32_t t, uint32_t stage, uint32_t replica, uint32_t item)
{
    const cs_tied *tied = &p->classes.ties[t];
    const uint32_t one = tied->paired ? replica : 0;
    uint32_t at = 0, rank = tied->paired ? 0 : replica;
    for (; at < tied->n_stages && tied->stages[at] != stage; at++)
        rank += tied->paired ? 1 : p->plan->stages[tied->stages[at]].n_devices;
    if (at == tied->n_stages)
        return CS_NONE;
    uint32_t *first = &p->tied[(size_t)t * p->max_tied + one];
    if (*first == CS_NONE)
        *first = cs_builder_members(p->builder, tied->classes[one], item);
    return *first == CS_NONE ? CS_NONE : *first + rank;
}

/* Puts the holder's members of the all-reduces of shared gradients between `before` and `after`. */
static void join_ties(pipeline *p, uint32_t stage, uint32_t holder, uint32_t item, uint32_t before,
                      uint32_t after)
{
    for (uint32_t t = 0; t < p->classes.n_ties; t++) {
        uint32_t replica = holder - p->plan->stages[stage].first_device;
        uint32_t part = tied_part(p, t, stage, replica, item);
        if (part != CS_NONE && before != CS_NONE)
            cs_builder_edge(p->builder, before, part);
        if (part != CS_NONE && after != CS_NONE)
            cs_builder_edge(p->builder, part, after);
    }
}

/* Updates a stage whose backwards include the sums of gradients. */
static void update_grid(pipeline *p, uint32_t stage, holders on, uint32_t item)
{
    for (uint32_t h = on.first; h < on.first + on.n; h++)
        join_ties(p, stage, h, item, p->summed[h] != CS_NONE ? p->summed[h] : p->computed[h],
                  CS_NONE);
    (void)add_pass(p, stage, CS_UPDATE, 0, on, item);
    for (uint32_t i = 0; i < on.n; i++) {
        join_ties(p, stage, on.first + i, item, CS_NONE, task_of(p, on, 0, i));
        p->summed[on.first + i] = CS_NONE;
    }
}

/* Updates holders of a stage; `micro` is the first micro-batch of the mini-batch. */
static void add_updates(pipeline *p, uint32_t stage, holders on, uint32_t micro)
{
    uint32_t item = p->first_item + micro;
    if (has_grid(p)) {
        update_grid(p, stage, on, item);
        return;
    }
    for (uint32_t h = on.first; h < on.first + on.n; h++) {
        uint32_t reduced = reduction(p, stage, h, item);
        if (reduced != CS_NONE)
            cs_builder_edge(p->builder, p->computed[h], reduced);
        join_ties(p, stage, h, item, reduced != CS_NONE ? reduced : p->computed[h], CS_NONE);
        const holders one = {h, 1};
        (void)add_pass(p, stage, CS_UPDATE, 0, one, item);
        p->updated[h] = task_of(p, one, 0, 0);
        cs_builder_edge(p->builder, reduced, p->updated[h]);
        join_ties(p, stage, h, item, CS_NONE, p->updated[h]);
    }
}

/* Completes the last all-reduce. At the end of the run some replicas may have computed one
 * micro-batch less than others. They join the last all-reduce after their last update, contributing
 * nothing. */
static void close_reduction(pipeline *p, uint32_t stage)
{
    const cs_stage *of = &p->plan->stages[stage];
    /* the loop below does nothing if no replica has computed more */
    uint32_t last = p->n_updates[of->first_device];
    for (uint32_t r = 0; last > 0 && p->classes.reductions[stage] != CS_NONE && r < of->n_devices;
         r++) {
        uint32_t h = of->first_device + r, first = *reduction_of(p, stage, last - 1);
        if (p->n_updates[h] < last && first != CS_NONE)
            cs_builder_edge(p->builder, p->updated[h], first + r);
    }
}

/* Counts one more gradient for the step's holders. */
static void complete(pipeline *p, const cs_pipeline_step *step)
{
    uint32_t per_batch = p->job->micro_batches;
    holders on = holders_of(p, step->stage, step->micro_batch);
    p->complete[on.first]++;
    if (p->options->continuous && p->complete[on.first] % per_batch == 0)
        add_updates(p, step->stage, on, step->micro_batch / per_batch * per_batch);
}

/* Ends a list: updates its stages. */
static void end_list(pipeline *p, uint32_t list)
{
    const list_state *state = &p->lists[list];
    for (uint32_t s = state->first_stage; s != CS_NONE; s = p->next_stage[s])
        add_updates(p, s, holders_of(p, s, state->replica), 0);
}

/* ---- rounds ---- */

static void nominate(pipeline *p, uint32_t list)
{
    uint32_t word = list / 64;
    p->nominees[word] |= UINT64_C(1) << list % 64;
    p->first_word = word < p->first_word ? word : p->first_word;
    p->end_word = word < p->end_word ? p->end_word : word + 1;
}

/* Nominates lists that may continue after a step. */
static void nominate_after(pipeline *p, uint32_t list, const cs_pipeline_step *step)
{
    nominate(p, list);
    if (step->kind == CS_FORWARD && step->stage + 1 < p->n_stages)
        nominate(p, list_of(p, step->stage + 1, step->micro_batch));
    else if (step->kind != CS_FORWARD && step->stage > 0)
        nominate(p, list_of(p, step->stage - 1, step->micro_batch));
}

static void add_step(pipeline *p, uint32_t list)
{
    list_state *state = &p->lists[list];
    cs_pipeline_step step = state->next;
    uint32_t item = p->first_item + step.micro_batch;
    if (p->plain[step.stage].is)
        add_plain(p, &step, item);
    else if (step.kind == CS_FORWARD)
        add_forward(p, &step, item);
    else if (step.kind == CS_BACKWARD_WEIGHT)
        add_weight_gradient(p, &step, item);
    else
        add_backward(p, &step, item);
    if (step.kind == CS_BACKWARD || step.kind == CS_BACKWARD_WEIGHT)
        complete(p, &step);
    look_ahead(p, list);
    if (state->ended && !p->options->continuous)
        end_list(p, list);
    nominate_after(p, list, &step);
}

/* Collects the nominated lists that can continue, in order. Returns their number. */
static uint32_t take_ready(pipeline *p)
{
    uint32_t n = 0;
    cs_pipeline_step other;
    for (uint32_t word = p->first_word; word < p->end_word; word++) {
        for (uint64_t bits = p->nominees[word]; bits; bits &= bits - 1) {
            uint32_t list = word * 64 + (uint32_t)__builtin_ctzll(bits);
            if (!p->lists[list].ended && !waits_for(p, &p->lists[list].next, &other))
                p->next[n++] = list;
        }
        p->nominees[word] = 0;
    }
    p->first_word = UINT32_MAX;
    p->end_word = 0;
    return n;
}

/* Adds one round: every list adds its next step if the step's inputs were added before this round.
 * If all tasks took equal time, rounds would be the time slots of the run; task ids are in the
 * order of such a run. Returns the number of steps added. */
static uint32_t add_round(pipeline *p)
{
    uint32_t n = take_ready(p);
    for (uint32_t i = 0; i < n; i++)
        add_step(p, p->next[i]);
    cs_builder_settle(p->builder);
    return n;
}

static bool all_ended(const pipeline *p)
{
    for (uint32_t l = 0; l < p->n_lists; l++) {
        if (!p->lists[l].ended)
            return false;
    }
    return true;
}

static void begin_span(pipeline *p)
{
    const size_t cells = (size_t)p->n_stages * p->n_micros;
    if (cs_pipeline_replicated(p->job))
        memset(p->reductions, 0xff, cells * sizeof(*p->reductions));
    if (p->classes.n_ties > 0)
        memset(p->tied, 0xff, (size_t)p->classes.n_ties * p->max_tied * sizeof(*p->tied));
    memset(p->micros, 0, p->n_micros * sizeof(*p->micros));
    memset(p->complete, 0, p->plan->n_devices * sizeof(*p->complete));
    memset(p->n_updates, 0, p->plan->n_devices * sizeof(*p->n_updates));
    memset(p->computed, 0xff, p->plan->n_devices * sizeof(*p->computed));
    memset(p->updated, 0xff, p->plan->n_devices * sizeof(*p->updated));
    for (uint32_t l = 0; l < p->n_lists; l++) {
        p->lists[l].done = 0;
        look_ahead(p, l);
        nominate(p, l);
    }
}

/* Adds all tasks of a span. A failed builder adds nothing, which is not a deadlock;
 * cs_builder_finish reports the failure. */
static cs_status add_span(pipeline *p, cs_error *error)
{
    begin_span(p);
    while (!cs_builder_failed(p->builder) && add_round(p) > 0) {
    }
    for (uint32_t s = 0; s < p->n_stages; s++)
        close_reduction(p, s);
    return cs_builder_failed(p->builder) || all_ended(p) ? CS_OK : report_circle(p, error);
}

static void find_holders(pipeline *p)
{
    p->shares = p->job->replicas == CS_REPLICAS_ALL_REDUCE || has_grid(p);
    for (uint32_t s = 0; s < p->n_stages; s++) {
        const cs_stage *of = &p->plan->stages[s];
        p->holders[s] =
            (holders){of->first_device, p->shares ? p->classes.n_holders[s] : of->n_devices};
    }
}

/* Assigns stages to lists: all stages of the list's device, or the holder's stage, where the first
 * holder represents all holders that share. A list of a rank's stages represents all holders. */
static void assign_stages(pipeline *p)
{
    for (uint32_t l = 0; l < p->n_lists; l++)
        p->lists[l].first_stage = CS_NONE;
    for (uint32_t s = p->n_stages; s-- > 0;) {
        const uint32_t n = p->options->list_of ? 1 : p->classes.n_holders[s];
        for (uint32_t r = 0; r < n; r++) {
            list_state *list = &p->lists[list_of(p, s, r)];
            p->next_stage[s] = p->options->list_of ? list->first_stage : CS_NONE;
            list->first_stage = s;
            list->replica = r;
        }
    }
}

static bool is_plain(const pipeline *p, uint32_t stage)
{
    const cs_boundary *boundaries = p->classes.boundaries;
    return !has_grid(p) && !p->options->recompute && p->holders[stage].n == 1 &&
           (stage == 0 || boundaries[stage - 1].n == 1) &&
           (stage + 1 == p->n_stages || boundaries[stage].n == 1);
}

static void find_plain(pipeline *p)
{
    for (uint32_t s = 0; s < p->n_stages; s++) {
        plain_stage *of = &p->plain[s];
        of->is = is_plain(p, s);
        for (cs_kind kind = CS_FORWARD; of->is && kind <= CS_BACKWARD_WEIGHT; kind++) {
            const cs_stage_pass *pass = cs_pipeline_pass(&p->classes, s, kind, 0);
            of->pass[kind] = pass->n > 0 ? pass->steps[0].classes[0] : CS_NONE;
        }
        of->down = of->is && s + 1 < p->n_stages ? p->classes.boundaries[s].pairs->down : CS_NONE;
        of->up = of->is && s > 0 ? p->classes.boundaries[s - 1].pairs->up : CS_NONE;
    }
}

/* Allocates `count` zeroed elements from the arena. */
#define RESERVE(p, member, count)                                                                  \
    (((p)->member = cs_arena_alloc(&(p)->arena, (count), sizeof(*(p)->member))) != NULL)

static bool reserve(pipeline *p)
{
    size_t cells = (size_t)p->n_stages * p->n_micros, n_holders = p->plan->n_devices;
    return RESERVE(p, lists, p->n_lists) && RESERVE(p, next_stage, p->n_stages) &&
           RESERVE(p, holders, p->n_stages) && RESERVE(p, plain, p->n_stages) &&
           RESERVE(p, nominees, p->n_lists / 64 + 1) && RESERVE(p, next, p->n_lists) &&
           RESERVE(p, complete, n_holders) && RESERVE(p, n_updates, n_holders) &&
           RESERVE(p, computed, n_holders) && RESERVE(p, updated, n_holders) &&
           RESERVE(p, micros, p->n_micros) && RESERVE(p, in_flight, p->n_stages) &&
           RESERVE(p, begun, p->n_stages) &&
           RESERVE(p, reductions, cs_pipeline_replicated(p->job) ? cells : 0);
}

/* Allocates arrays whose size depends on the classes. */
static bool reserve_more(pipeline *p)
{
    const size_t n_holders = has_grid(p) ? p->plan->n_devices : 0;
    const size_t n_devices = has_grid(p) ? p->job->n_devices : 0;
    const size_t n_stored = p->job->offload.layers > 0 ? n_holders * p->n_micros : 0;
    for (uint32_t t = 0; t < p->classes.n_ties; t++) {
        uint32_t n = p->classes.ties[t].n_classes;
        p->max_tied = n > p->max_tied ? n : p->max_tied;
    }
    if (!RESERVE(p, tied, (size_t)p->classes.n_ties * p->max_tied) ||
        !RESERVE(p, tasks, (size_t)p->classes.most_steps * p->classes.most_holders) ||
        !RESERVE(p, summed, n_holders) || !RESERVE(p, ready, n_holders) ||
        !RESERVE(p, did, n_devices) || !RESERVE(p, ended, n_devices) ||
        !RESERVE(p, to_host, n_devices) || !RESERVE(p, from_host, n_devices) ||
        !RESERVE(p, stored, n_stored))
        return false;
    memset(p->to_host, 0xff, n_devices * sizeof(*p->to_host));
    memset(p->from_host, 0xff, n_devices * sizeof(*p->from_host));
    memset(p->stored, 0xff, n_stored * sizeof(*p->stored));
    memset(p->summed, 0xff, n_holders * sizeof(*p->summed));
    memset(p->ready, 0xff, n_holders * sizeof(*p->ready));
    memset(p->did, 0xff, n_devices * sizeof(*p->did));
    memset(p->ended, 0xff, n_devices * sizeof(*p->ended));
    return true;
}

static cs_status generate(pipeline *p, cs_error *error)
{
    CS_TRY(cs_pipeline_make_classes(p->job, p->options, p->n_micros, p->builder, &p->arena,
                                    &p->classes, error));
    if (!reserve(p) || !reserve_more(p))
        return cs_error_no_memory(error);
    find_holders(p);
    find_plain(p);
    assign_stages(p);
    cs_status status = CS_OK;
    uint32_t n_items = p->job->micro_batches * p->job->iterations;
    for (; p->first_item < n_items && status == CS_OK; p->first_item += p->n_micros)
        status = add_span(p, error);
    return status;
}

uint32_t cs_pipeline_ranks(const cs_job *job)
{
    const cs_plan *plan = job->plan;
    uint32_t n = 0;
    if (!job->plan->grid)
        return job->n_devices;
    for (uint32_t s = 0; s < plan->n_stages; s++) {
        uint32_t other = 0;
        while (cs_plan_device(plan, other) != cs_plan_device(plan, s))
            other++;
        n += other == s;
    }
    return n;
}

bool cs_pipeline_in_turn(const cs_pipeline_shape *shape, uint32_t stage, uint32_t k,
                         cs_pipeline_step *step)
{
    *step = (cs_pipeline_step){k % 2 ? CS_BACKWARD : CS_FORWARD, stage, k / 2};
    return k < 2 * shape->n_micros;
}

cs_status cs_pipeline_generate(const cs_job *job, const cs_pipeline_options *options,
                               cs_builder *builder, cs_error *error)
{
    pipeline p = {.job = job,
                  .plan = job->plan,
                  .options = options,
                  .builder = builder,
                  .n_stages = job->plan->n_stages,
                  .n_micros = job->micro_batches};
    const uint32_t n_ranks = cs_pipeline_ranks(job);
    p.n_lists = options->list_of ? n_ranks : job->plan->n_devices;
    if (options->continuous)
        p.n_micros *= job->iterations;
    p.shape = (cs_pipeline_shape){job, p.n_stages, n_ranks, p.n_micros, options->params};
    cs_arena_init(&p.arena);
    cs_status status = generate(&p, error);
    cs_arena_finish(&p.arena);
    return status;
}
