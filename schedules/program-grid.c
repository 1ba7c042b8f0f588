#include "schedules/matrices.h"
#include "schedules/program.h"
#include "schedules/stage-buffers.h"
#include "schedules/states.h"

#include <assert.h>
#include <stdlib.h>

/* Layers whose weights are gathered together, and whose gradients are reduced together. */
typedef struct cs_program_unit {
    uint32_t first, end;
    cs_weights weights;
    uint32_t gathered; /* last step that gathers its weights; or CS_NONE, as below */
    uint32_t computed; /* last step of the unit that computes */
    uint32_t summed;   /* last step that sums gradients of the unit */
    bool keeps;        /* whether its weights stay gathered from a forward to its backward */
    int64_t scattered; /* bytes of full gradients from its backward on (cs_states_scattered) */
} unit;

/* A step of the pass itself, without overlapped steps, and its first and last layer. */
typedef struct passage {
    uint32_t step, head, tail;
    int64_t workspace;
} passage;

/* A pass on its way through the layers of a stage. Steps are CS_NONE until there is one. */
typedef struct walk {
    const cs_job *job;
    const cs_program_pass *pass;
    uint32_t stage;
    uint32_t zero; /* the highest ZeRO stage of the job */
    const cs_stage *of;
    const cs_layer *layers;   /* layers for the job's number of samples; may be NULL */
    const cs_layer_sum *sums; /* sums of each layer of the stage */
    const cs_stage_offload *offload;

    cs_program *made;
    passage *passages;
    uint32_t n_passages;
    uint32_t computed;  /* step of the latest computation */
    uint32_t before;    /* step of the computation before `computed` */
    uint32_t exchanged; /* latest exchange after `computed`, or overlapped with it */
    uint32_t summed;    /* step of the latest sum of gradients */
    bool open;          /* the next piece may extend step `computed` */

    unit *units; /* units, in the order of the pass */
    uint32_t n_units;
    uint32_t at;         /* number of the current unit */
    uint32_t n_gathered; /* units whose gathers have been added */
    bool begins_unit;    /* nothing of the current unit has been computed yet */
    cs_weights ready;    /* weights whose gradients wait until a bucket is full */

    uint32_t layer; /* number of the current layer */
    int64_t kept; /* activations of the layers so far; in a backward, of the layers already left */
    int64_t arrived;  /* buffers that the next computation reads */
    uint32_t *copies; /* per offloaded layer: the step that copies it, in this pass */
    uint32_t awaited; /* copy that the current layer waits for */
} walk;

static bool goes_up(const walk *w)
{
    return w->pass->kind == CS_FORWARD || w->pass->kind == CS_RECOMPUTE;
}

/* Whether the pass computes gradients of weights. */
static bool makes_gradients(const walk *w)
{
    return w->pass->kind == CS_BACKWARD || w->pass->kind == CS_BACKWARD_WEIGHT;
}

static const cs_layer_sum *sum_of(const walk *w, uint32_t layer)
{
    return &w->sums[layer - w->of->first_layer];
}

/* ---- steps ---- */

static cs_program_step *step_at(const walk *w, uint32_t step)
{
    return &w->made->steps[step];
}

static uint32_t add_step(walk *w, cs_kind kind)
{
    w->made->steps[w->made->n] = (cs_program_step){.kind = kind};
    return w->made->n++;
}

static void wait_for(cs_program_step *step, uint32_t before)
{
    if (before == CS_NONE)
        return;
    assert(step->n_waits < CS_STEP_WAITS);
    step->waits[step->n_waits++] = before;
}

static cs_purpose purpose_of(cs_axes_name axes)
{
    switch (axes) {
    case CS_AXES_TENSOR:
        return CS_PURPOSE_TENSOR;
    case CS_AXES_SPACE_X:
    case CS_AXES_SPACE_Y:
    case CS_AXES_SPACE_Z:
    case CS_AXES_SPACE:
        return CS_PURPOSE_SPACE;
    case CS_AXES_CONTEXT:
        return CS_PURPOSE_CONTEXT;
    case CS_AXES_EXPERT_TENSOR:
    case CS_AXES_EXPERT:
        return CS_PURPOSE_EXPERT;
    default:
        return CS_PURPOSE_GRADIENTS; /* statistics over the same axes as sums of gradients */
    }
}

/* Returns the workspace of a layer while the pass computes it. */
static int64_t workspace_of(const walk *w, uint32_t layer)
{
    const int64_t bytes = sum_of(w, layer)->workspace_bytes - (goes_up(w) ? 0 : w->pass->entered);
    return bytes > 0 ? bytes : 0;
}

static void go_through(walk *w, uint32_t step, uint32_t layer)
{
    w->passages[w->n_passages++] = (passage){step, layer, layer, workspace_of(w, layer)};
}

/* ---- computations ---- */

static void begin_computation(walk *w, uint32_t layer)
{
    const bool first = w->computed == CS_NONE, gradients = makes_gradients(w) && w->begins_unit;
    const uint32_t id = add_step(w, w->pass->kind);
    cs_program_step *step = step_at(w, id);
    if (first && w->exchanged == CS_NONE)
        step->flags = CS_STEP_BEGINS | CS_STEP_RECEIVES | CS_STEP_READS;
    wait_for(step, w->exchanged);
    wait_for(step, w->units[w->at].gathered);
    /* at most two units have full gradients: this one, and the previous one until it is scattered
     */
    if (gradients && w->at >= 2 && cs_states_scatters_each(w->job, w->zero))
        wait_for(step, w->units[w->at - 2].summed);
    wait_for(step, w->awaited);
    w->awaited = CS_NONE;
    if (first && w->pass->kind == CS_FORWARD) {
        cs_program_fetch(w->job, w->stage, step);
        const int64_t input = w->job->stages[w->stage].input_bytes;
        cs_step_add_effect(step, CS_MEMORY_ACTIVATIONS, w->pass->recompute ? input : 0, false);
        cs_step_add_effect(step, CS_MEMORY_BUFFERS, -w->pass->reads, false);
    }
    if (gradients)
        cs_step_add_effect(step, CS_MEMORY_GRADIENTS, w->units[w->at].scattered, false);
    cs_step_add_effect(step, CS_MEMORY_BUFFERS, -w->arrived, true);
    w->arrived = 0;
    w->before = w->computed;
    w->computed = id;
    w->exchanged = CS_NONE;
    w->begins_unit = false;
    w->open = true;
    go_through(w, id, layer);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the number of a layer among the offloaded layers, or CS_NONE. */
static uint32_t offloaded(const walk *w, uint32_t l)
{
    const cs_stage_offload *of = w->offload;
    const uint32_t number = of->n > 0 ? of->numbers[l - w->of->first_layer] : CS_NONE;
    return number < of->n ? number : CS_NONE;
}

/* Returns the bytes of a layer's activations that are offloaded. They are a separate tensor. */
static int64_t offloaded_bytes(const walk *w, uint32_t l)
{
    const uint32_t number = offloaded(w, l);
    return number == CS_NONE || w->pass->kind == CS_BACKWARD_WEIGHT ? 0 : w->offload->bytes[number];
}

/* Adds computation of a layer to the current step, or to a new one. */
static void compute(walk *w, uint32_t layer, cs_time duration, cs_time host)
{
    if (!w->open)
        begin_computation(w, layer);
    cs_program_step *step = step_at(w, w->computed);
    if (goes_up(w) && w->layer != layer) {
        /* save activations; if the stage is recomputed, its input exists from the forward on */
        const int64_t kept = w->kept + sum_of(w, layer)->kept_bytes,
                      apart = offloaded_bytes(w, layer);
        const int64_t input = w->job->stages[w->stage].input_bytes;
        int64_t bytes = kept - w->kept;
        if (w->pass->recompute)
            bytes = w->pass->kind == CS_FORWARD ? 0 : larger(kept, input) - larger(w->kept, input);
        cs_step_add_effect(step, CS_MEMORY_ACTIVATIONS, bytes - apart, false);
        cs_step_add_offloaded(step, apart, false);
        w->kept = kept;
    }
    w->layer = layer;
    passage *last = &w->passages[w->n_passages - 1];
    last->tail = layer;
    last->workspace = larger(last->workspace, workspace_of(w, layer));
    step->duration += duration;
    step->host += host;
}

/* Lets the host wait for the latest computation, so the next one is another step. */
static void wait_for_device(walk *w)
{
    step_at(w, w->computed)->syncs = true;
    w->open = false;
}

/* ---- exchanges ---- */

/* Whether there is something to exchange. */
static bool is_needed(const walk *w, const cs_exchange *what)
{
    return what->bytes + what->bytes_back > 0 &&
           cs_grid_axes(w->job->plan->grid, what->axes).size > 1;
}

static void exchange(walk *w, uint32_t layer, const cs_exchange *what)
{
    static const cs_kind kinds[] = {[CS_EXCHANGE_ALL_REDUCE] = CS_ALL_REDUCE,
                                    [CS_EXCHANGE_ALL_GATHER] = CS_ALL_GATHER,
                                    [CS_EXCHANGE_REDUCE_SCATTER] = CS_REDUCE_SCATTER,
                                    [CS_EXCHANGE_ALL_TO_ALL] = CS_ALL_TO_ALL,
                                    [CS_EXCHANGE_SHIFT] = CS_SHIFT,
                                    [CS_EXCHANGE_HALO] = CS_HALO,
                                    [CS_EXCHANGE_BROADCAST] = CS_BROADCAST};
    if (!is_needed(w, what))
        return;
    const uint32_t id = add_step(w, kinds[what->kind]);
    cs_program_step *step = step_at(w, id);
    step->axes = what->axes;
    step->purpose = purpose_of(what->axes);
    step->bytes = what->bytes;
    step->bytes_back = what->bytes_back;
    if (what->beside && w->computed != CS_NONE) {
        /* the exchange begins with the latest computation, or after the exchange that overlaps with
         * that computation; a sum stays in its summands' memory, the layer's workspace */
        const cs_program_step *beside = step_at(w, w->computed);
        const bool sum =
            what->kind == CS_EXCHANGE_ALL_REDUCE || what->kind == CS_EXCHANGE_REDUCE_SCATTER;
        const int64_t bytes = sum ? 0 : what->bytes + what->bytes_back;
        step->flags = beside->flags & (CS_STEP_BEGINS | CS_STEP_RECEIVES);
        for (uint32_t i = 0; i < beside->n_waits; i++)
            wait_for(step, beside->waits[i]);
        wait_for(step, w->before);
        cs_step_add_effect(step, CS_MEMORY_BUFFERS, bytes, false);
        w->arrived += bytes;
    } else {
        if (w->computed == CS_NONE && w->exchanged == CS_NONE)
            step->flags = CS_STEP_BEGINS | CS_STEP_RECEIVES | CS_STEP_READS;
        wait_for(step, w->computed);
        wait_for(step, w->awaited);
        w->awaited = CS_NONE;
        go_through(w, id, layer);
    }
    wait_for(step, w->exchanged);
    w->exchanged = id;
    w->open = false;
}

/* ---- weights and gradients ---- */

/* Adds exchanges of weights or gradients, one after the other; returns the last one, or `after` if
 * there are none. */
static uint32_t add_states(walk *w, const cs_state_exchange *all, uint32_t n, cs_purpose purpose,
                           uint32_t after)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = add_step(w, all[i].kind);
        cs_program_step *step = step_at(w, id);
        step->axes = all[i].axes;
        step->bytes = all[i].bytes;
        step->purpose = purpose;
        wait_for(step, after);
        after = id;
    }
    return after;
}

/* Gathers the weights of the next unit at ZeRO stage 3, unless they stayed gathered. */
static void gather(walk *w)
{
    const uint32_t number = w->n_gathered++, ahead = w->job->states.prefetch + 1;
    unit *next = &w->units[number];
    const uint32_t before = number == 0 ? CS_NONE : w->units[number - 1].gathered;
    const uint32_t first = w->made->n;
    cs_state_exchange all[CS_STATES_MOST];
    const bool there = w->pass->gathered && next->keeps;
    const uint32_t n = there ? 0 : cs_states_gather(w->job, &next->weights, all);
    next->gathered = add_states(w, all, n, CS_PURPOSE_WEIGHTS, before);
    for (uint32_t i = 0; i < n; i++)
        cs_step_add_effect(step_at(w, first + i), CS_MEMORY_GATHERED,
                           all[i].bytes + (i == 0 ? cs_states_cast(w->job, &next->weights) : 0),
                           false);
    if (n == 0)
        return;
    if (number >= ahead)
        wait_for(step_at(w, first), w->units[number - ahead].computed);
    if (before == CS_NONE)
        step_at(w, first)->flags = CS_STEP_BEGINS;
}

static bool needs_weights(const walk *w)
{
    return w->zero >= 3 && w->pass->kind != CS_BACKWARD_WEIGHT && w->pass->kind != CS_UPDATE;
}

/* Sums the gradients that are complete at the end of the current unit, overlapped with the
 * next computation: the unit's own at ZeRO stage 3; others once they fill a bucket, or when the
 * pass ends. */
static void sum_gradients(walk *w)
{
    unit *of = &w->units[w->at];
    cs_weights now = {.at[3] = of->weights.at[3]}, others = of->weights;
    others.at[3] = (cs_weight_bytes){0};
    cs_weights_add(&w->ready, &others);
    if (w->at + 1 == w->n_units || cs_states_fill_bucket(w->job, &w->ready)) {
        cs_weights_add(&now, &w->ready);
        w->ready = (cs_weights){0};
    }
    const uint32_t first = w->made->n, before = w->summed;
    cs_state_exchange all[CS_STATES_MOST];
    const uint32_t n = w->job->passes_only ? 0 : cs_states_reduce(w->job, &now, w->pass->last, all);
    if (n == 0)
        return;
    w->summed = of->summed = add_states(w, all, n, CS_PURPOSE_GRADIENTS, w->computed);
    wait_for(step_at(w, first), before);
    if (before == CS_NONE)
        step_at(w, first)->flags |= CS_STEP_SUMS;
    for (uint32_t i = 0; i < n; i++)
        if (all[i].each)
            cs_step_add_effect(step_at(w, first + i), CS_MEMORY_GRADIENTS, -all[i].bytes, true);
}

static void leave_unit(walk *w)
{
    const unit *of = &w->units[w->at];
    if (needs_weights(w) && (!of->keeps || w->pass->releases)) { /* frees gathered weights */
        cs_state_exchange all[CS_STATES_MOST];
        const uint32_t n = cs_states_gather(w->job, &of->weights, all);
        int64_t bytes = n > 0 ? cs_states_cast(w->job, &of->weights) : 0;
        for (uint32_t i = 0; i < n; i++)
            bytes += all[i].bytes;
        cs_step_add_effect(step_at(w, w->computed), CS_MEMORY_GATHERED, -bytes, true);
    }
    if (makes_gradients(w))
        sum_gradients(w);
}

/* ---- layers ---- */

/* Adds the exchanges in a gap between pieces of a layer. `again`: in a forward that is repeated. */
static void exchange_all(walk *w, uint32_t l, uint32_t gap, bool backward, bool again)
{
    const cs_layer *layer = &w->layers[l];
    for (uint32_t i = 0; i < layer->n_exchanges; i++) {
        const cs_exchange *one = &layer->exchanges[i];
        if (one->gap == gap && one->backward == backward && !(again && one->skipped))
            exchange(w, l, one);
    }
}

static bool has_beside(const walk *w, const cs_layer *layer, uint32_t gap, bool backward)
{
    for (uint32_t i = 0; i < layer->n_exchanges; i++) {
        const cs_exchange *one = &layer->exchanges[i];
        if (one->gap == gap && one->backward == backward && one->beside && is_needed(w, one))
            return true;
    }
    return false;
}

/* Begins a new step if an exchange overlaps with the next piece, because both start together. The
 * exchange is in the gap after the piece, or in the first gap of the next layer. */
static void part_before(walk *w, uint32_t l, uint32_t piece, bool backward)
{
    const cs_layer *layer = &w->layers[l];
    const bool last = backward ? piece == 0 : piece + 1 == layer->n_pieces;
    bool beside = has_beside(w, layer, backward ? piece : piece + 1, backward);
    if (last && backward && l > w->of->first_layer)
        beside |= has_beside(w, layer - 1, layer[-1].n_pieces, true);
    if (last && !backward && l + 1 < w->of->end_layer)
        beside |= has_beside(w, layer + 1, 0, false);
    w->open &= !beside;
}

/* Adds the forward of a layer. `again`: repeats the part that the backward reads. */
static void go_forward(walk *w, uint32_t l, const cs_layer *layer, bool again)
{
    for (uint32_t gap = 0; gap <= layer->n_pieces; gap++) {
        exchange_all(w, l, gap, false, again);
        if (gap == layer->n_pieces)
            return;
        const cs_layer_piece *piece = &layer->pieces[gap];
        const cs_time skipped = again ? piece->skipped : 0;
        if (skipped > 0 && skipped == piece->forward)
            continue;
        part_before(w, l, gap, false);
        compute(w, l, piece->forward - skipped,
                piece->host.forward - (again ? piece->host.skipped : 0));
        if (piece->waits)
            wait_for_device(w);
    }
}

static void go_back(walk *w, uint32_t l, const cs_layer *layer)
{
    const bool whole = w->pass->kind == CS_BACKWARD;
    for (uint32_t gap = layer->n_pieces;; gap--) {
        exchange_all(w, l, gap, true, false);
        if (gap == 0)
            return;
        const cs_layer_piece *piece = &layer->pieces[gap - 1];
        part_before(w, l, gap - 1, true);
        compute(w, l, piece->backward_input + (whole ? piece->backward_weight : 0),
                piece->host.backward_input + (whole ? piece->host.backward_weight : 0));
    }
}

/* Frees the activations of a layer after its backward, except the stage's input until the end. */
static void release(walk *w, uint32_t l)
{
    const cs_layer_sum *stage = &w->job->stages[w->stage];
    const int64_t least = w->pass->recompute ? stage->input_bytes : 0;
    const int64_t all = stage->kept_bytes, left = w->kept + sum_of(w, l)->kept_bytes;
    const int64_t stays = l == w->of->first_layer ? 0 : larger(all - left, least);
    const int64_t bytes = larger(all - w->kept, least) - stays, apart = offloaded_bytes(w, l);
    cs_step_add_effect(step_at(w, w->computed), CS_MEMORY_ACTIVATIONS, apart - bytes, true);
    cs_step_add_offloaded(step_at(w, w->computed), -apart, true);
    w->kept = left;
}

/* ---- copies to the host and back ---- */

/* Copies an offloaded layer after the latest computation. */
static void copy(walk *w, uint32_t number)
{
    const int64_t bytes = w->offload->bytes[number];
    const uint32_t id = w->copies[number] = add_step(w, CS_TRANSFER);
    cs_program_step *step = step_at(w, id);
    step->purpose = CS_PURPOSE_HOST;
    step->bytes = bytes;
    step->duration = cs_offload_time(w->job, bytes);
    step->flags = goes_up(w) ? CS_STEP_TO_HOST : CS_STEP_FROM_HOST;
    step->flags |= w->computed == CS_NONE ? CS_STEP_BEGINS : 0;
    wait_for(step, w->computed);
    cs_step_add_effect(step, CS_MEMORY_ACTIVATIONS, goes_up(w) ? -bytes : bytes, goes_up(w));
    w->open = false;
}

/* Starts the copies that come back from the host while the backward computes a layer. */
static void fetch(walk *w, uint32_t number)
{
    const cs_stage_offload *of = w->offload;
    const bool first = number + 1 == of->n_layers;
    const uint32_t ahead = number < of->prefetch ? number : of->prefetch;
    if (!first && number < of->prefetch)
        return;
    for (uint32_t i = first ? 0 : ahead; i <= ahead; i++)
        if (number - i < of->n)
            copy(w, number - i);
}

/* Begins a layer, which waits for its own copy from the host, or for a copy to the host that makes
 * room. */
static void begin_layer(walk *w, uint32_t l)
{
    const cs_stage_offload *of = w->offload;
    const uint32_t number = of->n > 0 ? of->numbers[l - w->of->first_layer] : CS_NONE;
    if (number == CS_NONE || w->pass->kind == CS_BACKWARD_WEIGHT)
        return;
    if (!goes_up(w))
        fetch(w, number);
    const uint32_t behind = goes_up(w) ? of->in_flight + 1 : 0;
    if (number < behind || number - behind >= of->n)
        return;
    w->awaited = w->copies[number - behind];
    w->open = false;
}

static void walk_layer(walk *w, uint32_t l)
{
    const cs_layer *layer = w->layers ? &w->layers[l] : NULL;
    const bool up = goes_up(w), pieces = layer && layer->n_pieces > 0;
    begin_layer(w, l);
    if (!pieces || w->pass->kind == CS_BACKWARD_WEIGHT) {
        const cs_program_step whole = cs_program_whole(sum_of(w, l), w->pass);
        compute(w, l, whole.duration, whole.host);
        if (whole.syncs)
            wait_for_device(w);
    } else {
        if (up || layer->recompute)
            go_forward(w, l, layer, !up);
        if (!up)
            go_back(w, l, layer);
    }
    if (!up && w->pass->kind != CS_BACKWARD_INPUT)
        release(w, l);
    const uint32_t number = offloaded(w, l);
    if (number != CS_NONE && w->pass->kind == CS_FORWARD)
        copy(w, number);
}

/* ---- passes ---- */

static void end_pass(walk *w)
{
    const cs_program_pass *pass = w->pass;
    int64_t had = 0;
    for (uint32_t i = 0; i < w->n_passages; i++) {
        cs_program_step *step = step_at(w, w->passages[i].step);
        /* a layer that goes on in the next step keeps its workspace */
        const bool goes_on =
            i + 1 < w->n_passages && w->passages[i].tail == w->passages[i + 1].head;
        const int64_t has = w->passages[i].workspace;
        const int64_t stays = goes_on ? workspace_of(w, w->passages[i].tail) : 0;
        cs_step_add_effect(step, CS_MEMORY_WORKSPACE, has - had, false);
        cs_step_add_effect(step, CS_MEMORY_WORKSPACE, stays - has, true);
        had = stays;
    }
    cs_program_step *last = step_at(w, w->passages[w->n_passages - 1].step);
    last->flags |= CS_STEP_ENDS;
    if (w->exchanged != CS_NONE) {
        step_at(w, w->exchanged)->flags |= CS_STEP_ENDS;
        cs_step_add_effect(step_at(w, w->exchanged), CS_MEMORY_BUFFERS, -w->arrived, true);
    }
    if (makes_gradients(w))
        cs_step_add_effect(step_at(w, w->computed), CS_MEMORY_BUFFERS, -pass->reads, true);
    if (pass->kind != CS_BACKWARD_WEIGHT)
        cs_step_add_effect(last, CS_MEMORY_BUFFERS, pass->leaves, true);
    cs_step_add_results(last, pass->results);
    if (w->summed != CS_NONE)
        step_at(w, w->summed)->flags |= CS_STEP_SUMMED;
}

static void walk_stage(walk *w)
{
    for (w->at = 0; w->at < w->n_units; w->at++) {
        unit *of = &w->units[w->at];
        const uint32_t until = w->at + w->job->states.prefetch + 1;
        while (needs_weights(w) && w->n_gathered < w->n_units && w->n_gathered < until)
            gather(w);
        w->open = w->open && !makes_gradients(w) && !needs_weights(w);
        w->begins_unit = true;
        for (uint32_t i = 0; i < of->end - of->first; i++)
            walk_layer(w, goes_up(w) ? of->first + i : of->end - 1 - i);
        of->computed = w->computed;
        if (!w->job->states.gather_once)
            leave_unit(w);
    }
    for (w->at = 0; w->job->states.gather_once && w->at < w->n_units; w->at++)
        leave_unit(w);
    end_pass(w);
}

/* Adds messages of equal size, one after the other. */
static uint32_t add_messages(walk *w, cs_kind kind, cs_axes_name axes, int64_t bytes, uint32_t n,
                             uint32_t after)
{
    if (n == 0 || cs_grid_axes(w->job->plan->grid, axes).size <= 1)
        return after;
    const cs_state_exchange each = {.kind = kind, .axes = axes, .bytes = bytes / n};
    for (uint32_t i = 0; i < n; i++)
        after = add_states(w, &each, 1, CS_PURPOSE_TENSOR, after);
    return after;
}

/* Adds the exchanges that the update of Muon's matrices waits for; returns the last one, or
 * CS_NONE. */
static uint32_t exchange_matrices(walk *w)
{
    if (!w->job->matrices)
        return CS_NONE;
    const cs_matrices *most = &w->job->matrices[w->stage].most;
    const cs_matrix_messages *dense = &most->dense_messages, *expert = &most->expert_messages;
    const uint32_t first = w->made->n;
    uint32_t last = CS_NONE;
    last = add_messages(w, CS_ALL_GATHER, CS_AXES_TENSOR, dense->gathered, dense->n_gathered, last);
    last = add_messages(w, CS_ALL_REDUCE, CS_AXES_TENSOR, dense->summed, dense->n_summed, last);
    last = add_messages(w, CS_ALL_GATHER, CS_AXES_EXPERT_TENSOR, expert->gathered,
                        expert->n_gathered, last);
    last = add_messages(w, CS_ALL_REDUCE, CS_AXES_EXPERT_TENSOR, expert->summed, expert->n_summed,
                        last);
    if (last != CS_NONE)
        step_at(w, first)->flags |= CS_STEP_BEGINS | CS_STEP_SUMS;
    return last;
}

/* Updates the device's shard of the states; then the weights are gathered. */
static void make_update(walk *w)
{
    const cs_weights all =
        cs_states_weights(w->job, w->stage, w->of->first_layer, w->of->end_layer);
    cs_state_exchange gathers[CS_STATES_MOST];
    const bool alone = w->job->passes_only;
    const uint32_t n = alone ? 0 : cs_states_gather_updated(w->job, &all, gathers);
    const uint32_t exchanged = alone ? CS_NONE : exchange_matrices(w), id = add_step(w, CS_UPDATE);
    cs_program_step *update = step_at(w, id);
    update->duration = cs_states_update(w->job, w->stage);
    update->syncs = true;
    update->flags = CS_STEP_ENDS | (exchanged == CS_NONE ? CS_STEP_BEGINS | CS_STEP_SUMS : 0);
    wait_for(update, exchanged);
    cs_step_add_results(update, w->pass->results);
    cs_step_add_effect(update, CS_MEMORY_GRADIENTS, cs_states_reduced(w->job, w->stage), false);
    cs_step_add_effect(update, CS_MEMORY_GRADIENTS, -cs_states_reduced(w->job, w->stage), true);
    cs_step_add_effect(update, CS_MEMORY_OPTIMIZER, w->pass->copied, false);
    cs_step_add_effect(update, CS_MEMORY_OPTIMIZER, -w->pass->copied, true);
    if (n > 0)
        step_at(w, add_states(w, gathers, n, CS_PURPOSE_WEIGHTS, id))->flags |= CS_STEP_READY;
}

/* ---- what the passes over a stage share ---- */

static cs_status sum_layers(cs_program_stage *made, cs_error *error)
{
    const cs_job *job = made->job;
    const cs_model *model = job->model;
    const cs_stage *of = &job->plan->stages[made->stage];
    const bool timed = cs_model_layers(model, job->micro_samples) != NULL;
    cs_model_kept until = {0};
    int64_t before;
    CS_TRY(cs_stage_kept_input(job, made->stage, &before, error));
    for (uint32_t l = of->first_layer; l < of->end_layer; l++) {
        cs_layer_sum *sum = &made->sums[l - of->first_layer];
        CS_TRY(cs_model_sum(model, l, l + 1, job->micro_samples, sum, error));
        CS_TRY(cs_model_keep(model, l, job->micro_samples, &until, error));
        sum->kept_bytes = until.bytes - before; /* tensors that layers share count once */
        before = until.bytes;
        if (!timed && model->layers[l].n_pieces > 0)
            return cs_error_add(error, CS_INVALID,
                                "model \"%s\": layer \"%s\" has pieces, whose times must be there "
                                "for micro-batches of %u samples",
                                model->name, model->layers[l].name, job->micro_samples);
    }
    return CS_OK;
}

static void cut_units(cs_program_stage *made)
{
    const cs_stage *of = &made->job->plan->stages[made->stage];
    uint32_t end = of->end_layer;
    while (end > of->first_layer) {
        const uint32_t first = cs_states_unit(made->job, made->stage, end);
        made->units[made->n_units++] =
            (unit){.first = first,
                   .end = end,
                   .weights = cs_states_weights(made->job, made->stage, first, end),
                   .gathered = CS_NONE,
                   .computed = CS_NONE,
                   .summed = CS_NONE};
        end = first;
    }
}

/* Finds weights that units share. They are gathered by the first unit, and their gradients are
 * complete after the backward of the last. */
static cs_status find_shared(cs_program_stage *made, cs_error *error)
{
    const cs_job *job = made->job;
    const cs_stage *of = &job->plan->stages[made->stage];
    const uint32_t n_layers = of->end_layer - of->first_layer;
    uint32_t *unit_of = malloc(n_layers * sizeof(*unit_of)); /* unit of each layer */
    uint32_t *last =
        malloc(n_layers * sizeof(*last)); /* per unit: the last that uses its weights */
    if (!unit_of || !last) {
        free(unit_of);
        free(last);
        return cs_error_no_memory(error);
    }
    for (uint32_t u = 0; u < made->n_units; u++) {
        made->units[u].keeps = job->states.keep_gathered || job->states.gather_once;
        last[u] = u;
        for (uint32_t l = made->units[u].first; l < made->units[u].end; l++)
            unit_of[l - of->first_layer] = u;
    }
    for (uint32_t l = of->first_layer; l < of->end_layer; l++) {
        uint32_t lender;
        if (!cs_states_borrows(job, made->stage, l, &lender) ||
            unit_of[lender - of->first_layer] == unit_of[l - of->first_layer])
            continue;
        const uint32_t u = unit_of[lender - of->first_layer];
        made->units[u].keeps = true;
        last[u] = unit_of[l - of->first_layer];
    }
    for (uint32_t u = 0; u < made->n_units; u++)
        made->units[last[u]].scattered += cs_states_scattered(job, &made->units[u].weights);
    free(unit_of);
    free(last);
    return CS_OK;
}

cs_status cs_program_stage_init_grid(cs_program_stage *made, cs_error *error)
{
    const cs_stage *of = &made->job->plan->stages[made->stage];
    const size_t n_layers = of->end_layer - of->first_layer;
    made->sums = malloc(n_layers * sizeof(*made->sums));
    made->units = malloc(n_layers * sizeof(*made->units));
    if (!made->sums || !made->units)
        return cs_error_no_memory(error);
    CS_TRY(sum_layers(made, error));
    CS_TRY(cs_stage_offload_init(made->job, made->stage, made->sums, &made->offload, error));
    cut_units(made);
    return find_shared(made, error);
}

/* ---- the whole ---- */

cs_status cs_program_make_grid(const cs_program_stage *stage, const cs_program_pass *pass,
                               cs_program *program, cs_error *error)
{
    const cs_job *job = stage->job;
    walk w = {.job = job,
              .pass = pass,
              .stage = stage->stage,
              .zero = cs_states_zero(job),
              .of = &job->plan->stages[stage->stage],
              .layers = cs_model_layers(job->model, job->micro_samples),
              .sums = stage->sums,
              .made = program,
              .computed = CS_NONE,
              .before = CS_NONE,
              .exchanged = CS_NONE,
              .summed = CS_NONE,
              .offload = &stage->offload,
              .awaited = CS_NONE,
              .layer = CS_NONE};
    /* at most: each layer's computations, exchanges, gathers, sums and a copy; not zeroed, because
     * a small part is used */
    size_t most = 1 + CS_STATES_MOST;
    for (uint32_t l = w.of->first_layer; l < w.of->end_layer; l++) {
        most += 3 + 2 * CS_STATES_MOST_OF_LAYER;
        if (w.layers)
            most += 2 * ((size_t)w.layers[l].n_pieces + w.layers[l].n_exchanges);
    }
    w.units = malloc(stage->n_units * sizeof(*w.units));
    w.passages = malloc(most * sizeof(*w.passages));
    w.copies = malloc((stage->offload.n + 1ULL) * sizeof(*w.copies));
    program->steps = malloc(most * sizeof(*program->steps));
    const bool room = w.units && w.passages && w.copies && program->steps;
    if (room) {
        w.n_units = stage->n_units;
        for (uint32_t i = 0; i < w.n_units; i++)
            w.units[i] = stage->units[goes_up(&w) ? w.n_units - 1 - i : i];
        if (pass->kind == CS_UPDATE)
            make_update(&w);
        else
            walk_stage(&w);
    }
    free(w.units);
    free(w.passages);
    free(w.copies);
    return room ? CS_OK : cs_error_no_memory(error);
}
