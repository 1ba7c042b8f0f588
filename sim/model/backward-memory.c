#include "sim/model/backward-memory.h"

#include "sim/model/op-cost.h"
#include "sim/model/ops/operator.h"

#include <stdlib.h>

/* Gradient of a tensor and its views. Additions make several tensors share one gradient. */
typedef struct gradient {
    int64_t bytes;   /* 0: no gradient */
    uint32_t group;  /* first tensor with this memory; equal for all gradients that share it */
    bool kept;       /* the gradient uses the memory of its tensor, which is not counted here */
    uint32_t memory; /* number of the memory, for the observer */
} gradient;

typedef struct walk {
    const cs_backward *of;
    const cs_net *net;
    uint32_t *roots;     /* per tensor: the tensor that it is a view of, or itself */
    gradient *gradients; /* per root tensor */
    uint32_t *sharers;   /* per group: number of gradients that share the memory */
    /* per operator: gradient of its result, held until its weight gradients are made */
    gradient *held;
    /* per tensor: whether a reader has contributed to its gradient */
    bool *written;
    int64_t live, peak;
    bool overflow;
    const cs_backward_observer *observer; /* NULL: none */
    uint32_t n_memories;
    bool stopped;
} walk;

static void see(walk *w, cs_tape_what what, uint32_t memory, int64_t bytes)
{
    if (w->observer && !w->stopped)
        w->stopped = !w->observer->see(w->observer->context, what, memory, bytes);
}

/* Allocates memory and returns its number. */
static uint32_t take(walk *w, int64_t bytes)
{
    w->overflow |= __builtin_add_overflow(w->live, bytes, &w->live);
    w->peak = w->live > w->peak ? w->live : w->peak;
    see(w, CS_TAPE_TAKE, w->n_memories, bytes);
    return w->n_memories++;
}

static void drop(walk *w, uint32_t memory, int64_t bytes)
{
    see(w, CS_TAPE_GIVE, memory, 0);
    w->live -= w->overflow ? 0 : bytes;
}

/* Allocates memory for the duration of a kernel. */
static void work(walk *w, int64_t bytes)
{
    drop(w, take(w, bytes), bytes);
}

static gradient *gradient_of(walk *w, cs_tensor tensor)
{
    return &w->gradients[w->roots[tensor]];
}

static void make(walk *w, cs_tensor tensor, bool kept)
{
    uint32_t root = w->roots[tensor];
    gradient made = {cs_tensor_bytes(w->net, root, w->of->batch, w->of->precision), root, kept, 0};
    if (!kept)
        made.memory = take(w, made.bytes);
    w->gradients[root] = made;
    w->sharers[root] = 1;
}

static void give(walk *w, gradient *at)
{
    if (at->bytes > 0 && --w->sharers[at->group] == 0 && !at->kept) {
        w->live -= at->bytes;
        see(w, CS_TAPE_GIVE, at->memory, 0);
    }
    *at = (gradient){0};
}

/* Makes the temporaries that precede the gradient of an operator's first input (cs_backward.steps);
 * returns the last one, which is still allocated. */
static uint32_t begin_steps(walk *w, const cs_op *op, int64_t bytes)
{
    const uint32_t first = take(w, bytes);
    if (cs_tensor_bytes(w->net, op->inputs[0], w->of->batch, w->of->precision) >= bytes)
        return first;
    const uint32_t second = take(w, bytes);
    drop(w, first, bytes);
    return second;
}

/* Makes the gradients of an operator's inputs, with its workspace allocated meanwhile. */
static void make_inputs(walk *w, const cs_op *op, int64_t workspace)
{
    const int64_t step = w->of->steps ? w->of->steps[op - w->net->ops] : 0;
    const uint32_t beside = step > 0 ? take(w, workspace) : CS_NO_TENSOR;
    const uint32_t last = step > 0 ? begin_steps(w, op, step) : CS_NO_TENSOR;
    bool aside[CS_OP_INPUTS_MAX] = {false};
    uint32_t memories[CS_OP_INPUTS_MAX];
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        cs_tensor t = op->inputs[i];
        if (!cs_op_makes_gradient(w->net, op, i))
            continue;
        aside[i] = w->written[t];
        if (aside[i])
            memories[i] = take(w, cs_tensor_bytes(w->net, t, w->of->batch, w->of->precision));
        else if (gradient_of(w, t)->bytes == 0)
            make(w, t, cs_kept_in_place(op, w->of->rules));
        w->written[t] = true;
    }
    if (step > 0) {
        drop(w, last, step);
        drop(w, beside, workspace);
    } else {
        work(w, workspace);
    }
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        cs_tensor t = op->inputs[i];
        if (!aside[i])
            continue;
        give(w, gradient_of(w, t)); /* the separate memory now holds the sum */
        *gradient_of(w, t) = (gradient){cs_tensor_bytes(w->net, t, w->of->batch, w->of->precision),
                                        w->roots[t], false, memories[i]};
        w->sharers[w->roots[t]] = 1;
    }
}

/* Passes the gradient of the result on to the inputs. An input without a gradient shares it; if an
 * input has a gradient already, it is added to that one. */
static void hand_on(walk *w, const cs_op *op, int64_t workspace)
{
    const gradient from = *gradient_of(w, op->output);
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        cs_tensor t = op->inputs[i];
        gradient *to = gradient_of(w, t);
        if (!cs_net_tensor(w->net, t)->differentiable)
            continue;
        if (to->bytes == 0) {
            *to = from;
            w->sharers[from.group]++;
        } else if (w->sharers[to->group] > 1) {
            w->sharers[to->group]--;
            make(w, t, false);
        }
        w->written[t] = true;
    }
    work(w, workspace);
}

static bool has_gradient_of_inputs(const cs_net *net, const cs_op *op)
{
    bool any = false;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        any |= cs_op_makes_gradient(net, op, i);
    return any;
}

/* Returns the operator during whose backward the weight gradients of operator p are made. */
static uint32_t weights_at(const walk *w, uint32_t p)
{
    return w->of->weights_at ? w->of->weights_at[p] : p;
}

/* Frees the gradient of the operator's result, or holds it if weight gradients still have to be
 * made from it. Also frees the held gradients whose weight gradients have just been made. */
static void give_results(walk *w, uint32_t p)
{
    const cs_op *op = &w->net->ops[p];
    gradient *own = gradient_of(w, op->output);
    if (weights_at(w, p) < p && !op->frozen && op->weights + op->biases > 0) {
        w->held[p] = *own;
        *own = (gradient){0};
    } else {
        give(w, own);
    }
    for (uint32_t q = p + 1; q < w->net->n_ops && weights_at(w, q) == p; q++)
        give(w, &w->held[q]);
}

static int64_t walk_op(walk *w, uint32_t p)
{
    const cs_op *op = &w->net->ops[p];
    const int64_t workspace = w->of->workspaces[p];
    if (cs_op_is_view(op)) {
        w->written[op->inputs[0]] |= w->written[op->output];
        return w->live;
    }
    if (!cs_net_tensor(w->net, op->output)->differentiable)
        return w->live; /* neither this operator nor any before it is trained */
    w->peak = w->live;
    if (!cs_op_is_loss(op) && gradient_of(w, op->output)->bytes == 0)
        make(w, op->output, false); /* no operator reads the result: its gradient is zero */
    if (op->kind == CS_OP_ADD || (op->kind == CS_OP_EXCHANGE && op->in_place))
        hand_on(w, op, workspace);
    else if (has_gradient_of_inputs(w->net, op))
        make_inputs(w, op, workspace);
    else
        work(w, workspace);
    give_results(w, p);
    return w->peak;
}

/* Runs the backward; fills `peaks` unless it is NULL. */
static void walk_all(walk *w, int64_t *peaks)
{
    const cs_backward_observer *observer = w->observer;
    for (uint32_t t = 0; t < w->net->n_tensors; t++)
        w->roots[t] = t;
    for (uint32_t p = 0; p < w->net->n_ops; p++)
        if (cs_op_is_view(&w->net->ops[p]))
            w->roots[w->net->ops[p].output] = w->roots[w->net->ops[p].inputs[0]];
    for (uint32_t p = w->net->n_ops; p-- > 0 && !w->overflow && !w->stopped;) {
        w->stopped |= observer && !observer->begin(observer->context, p);
        const int64_t peak = walk_op(w, p);
        if (peaks)
            peaks[p] = peak;
        w->stopped |= observer && !observer->end(observer->context, p);
    }
}

static cs_status no_room(const cs_net *net, cs_error *error)
{
    return cs_error_add(error, CS_OVERFLOW, "%s: the gradients of activations do not fit 64 bits",
                        net->name);
}

static cs_status run(const cs_backward *backward, const cs_backward_observer *observer,
                     int64_t *peaks, cs_error *error)
{
    const cs_net *net = backward->net;
    walk w = {.of = backward,
              .net = net,
              .observer = observer,
              .roots = calloc(net->n_tensors, sizeof(*w.roots)),
              .gradients = calloc(net->n_tensors, sizeof(*w.gradients)),
              .sharers = calloc(net->n_tensors, sizeof(*w.sharers)),
              .written = calloc(net->n_tensors, sizeof(*w.written)),
              .held = calloc(net->n_ops, sizeof(*w.held))};
    bool enough = w.roots && w.gradients && w.sharers && w.written && w.held;
    if (enough)
        walk_all(&w, peaks);
    enough &= !w.stopped;
    free(w.roots);
    free(w.gradients);
    free(w.sharers);
    free(w.written);
    free(w.held);
    if (!enough)
        return cs_error_no_memory(error);
    return w.overflow ? no_room(net, error) : CS_OK;
}

cs_status cs_backward_add_weights(const cs_backward *backward, cs_error *error)
{
    const cs_net *net = backward->net;
    int64_t *most = calloc(net->n_ops, sizeof(*most));
    bool fits = true;
    if (!most)
        return cs_error_no_memory(error);
    for (uint32_t p = 0; p < net->n_ops; p++) {
        const int64_t bytes = cs_kept_gradient(&net->ops[p], backward->rules, backward->precision);
        const uint32_t at = backward->weights_at ? backward->weights_at[p] : p;
        most[at] = bytes > most[at] ? bytes : most[at];
    }
    for (uint32_t p = 0; fits && p < net->n_ops; p++)
        fits = !__builtin_add_overflow(backward->workspaces[p], most[p], &backward->workspaces[p]);
    free(most);
    return fits ? CS_OK : no_room(net, error);
}

cs_status cs_backward_memory(const cs_backward *backward, int64_t *peaks, cs_error *error)
{
    return run(backward, NULL, peaks, error);
}

cs_status cs_backward_memory_watch(const cs_backward *backward,
                                   const cs_backward_observer *observer, cs_error *error)
{
    return run(backward, observer, NULL, error);
}
