#include "sim/workload/backward-memory.h"

#include "sim/workload/op-cost.h"

#include <stdlib.h>

/* The gradient of a tensor and its views; additions make several share one. */
typedef struct gradient {
    int64_t bytes;  /* 0: there is none */
    uint32_t group; /* of those that share the memory: the tensor that had it first */
    bool kept;      /* its memory is that of its tensor, and not counted here */
} gradient;

typedef struct walk {
    const cs_net *net;
    uint32_t batch;
    cs_precision precision;
    const cs_kept_rules *rules;
    uint32_t *roots;     /* per tensor: what it is a view of, or itself */
    gradient *gradients; /* per root */
    uint32_t *sharers;   /* per group */
    bool *written;       /* per tensor: a reader's part is in the gradient */
    int64_t live, peak;
    bool overflow;
} walk;

static void take(walk *w, int64_t bytes)
{
    w->overflow |= __builtin_add_overflow(w->live, bytes, &w->live);
    w->peak = w->live > w->peak ? w->live : w->peak;
}

/* Memory for the time of a kernel. */
static void work(walk *w, int64_t bytes)
{
    take(w, bytes);
    w->live -= w->overflow ? 0 : bytes;
}

static gradient *gradient_of(walk *w, cs_tensor tensor)
{
    return &w->gradients[w->roots[tensor]];
}

static void make(walk *w, cs_tensor tensor, bool kept)
{
    uint32_t root = w->roots[tensor];
    w->gradients[root] =
        (gradient){cs_tensor_bytes(w->net, root, w->batch, w->precision), root, kept};
    w->sharers[root] = 1;
    take(w, kept ? 0 : w->gradients[root].bytes);
}

static void give(walk *w, gradient *at)
{
    if (at->bytes > 0 && --w->sharers[at->group] == 0 && !at->kept)
        w->live -= at->bytes;
    *at = (gradient){0};
}

/* The gradients of an operator's inputs, and its workspace meanwhile. */
static void make_inputs(walk *w, const cs_op *op, int64_t workspace)
{
    bool aside[CS_OP_INPUTS_MAX] = {false};
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        cs_tensor t = op->inputs[i];
        if (!cs_op_makes_gradient(w->net, op, i))
            continue;
        aside[i] = w->written[t];
        if (aside[i])
            take(w, cs_tensor_bytes(w->net, t, w->batch, w->precision));
        else if (gradient_of(w, t)->bytes == 0)
            make(w, t, cs_kept_in_place(op, w->rules));
        w->written[t] = true;
    }
    work(w, workspace);
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        cs_tensor t = op->inputs[i];
        if (!aside[i])
            continue;
        give(w, gradient_of(w, t)); /* what was made aside is the sum now */
        *gradient_of(w, t) =
            (gradient){cs_tensor_bytes(w->net, t, w->batch, w->precision), w->roots[t], false};
        w->sharers[w->roots[t]] = 1;
    }
}

/* Inputs without a gradient share that of the sum; to that of others it is added. */
static void hand_on(walk *w, const cs_op *op)
{
    const gradient from = *gradient_of(w, op->output);
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        cs_tensor t = op->inputs[i];
        gradient *to = gradient_of(w, t);
        if (!cs_net_tensor(w->net, t)->differentiable)
            continue;
        if (!w->written[t]) {
            *to = from;
            w->sharers[from.group]++;
            w->written[t] = true;
        } else if (w->sharers[to->group] > 1) {
            w->sharers[to->group]--;
            make(w, t, false);
        }
    }
}

static bool has_gradient_of_inputs(const cs_net *net, const cs_op *op)
{
    bool any = false;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        any |= cs_op_makes_gradient(net, op, i);
    return any;
}

static int64_t walk_op(walk *w, const cs_op *op, int64_t workspace)
{
    const bool is_loss = op->kind == CS_OP_CROSS_ENTROPY || op->kind == CS_OP_SQUARED_ERROR;
    if (op->kind == CS_OP_VIEW) {
        w->written[op->inputs[0]] |= w->written[op->output];
        return w->live;
    }
    if (!cs_net_tensor(w->net, op->output)->differentiable)
        return w->live; /* frozen weights, and nothing before them that is trained */
    w->peak = w->live;
    if (!is_loss && gradient_of(w, op->output)->bytes == 0)
        make(w, op->output, false); /* nobody reads it: it is zero */
    if (op->kind == CS_OP_ADD || (op->kind == CS_OP_EXCHANGE && op->in_place))
        hand_on(w, op);
    else if (has_gradient_of_inputs(w->net, op))
        make_inputs(w, op, workspace);
    else
        work(w, workspace);
    give(w, gradient_of(w, op->output));
    return w->peak;
}

static void find_roots(walk *w)
{
    for (uint32_t t = 0; t < w->net->n_tensors; t++)
        w->roots[t] = t;
    for (uint32_t p = 0; p < w->net->n_ops; p++)
        if (w->net->ops[p].kind == CS_OP_VIEW)
            w->roots[w->net->ops[p].output] = w->roots[w->net->ops[p].inputs[0]];
}

cs_status cs_backward_memory(const cs_net *net, uint32_t batch, cs_precision precision,
                             const cs_kept_rules *rules, const int64_t *workspaces, int64_t *peaks,
                             cs_error *error)
{
    const size_t n = net->n_tensors;
    walk w = {.net = net,
              .batch = batch,
              .precision = precision,
              .rules = rules,
              .roots = calloc(n, sizeof(*w.roots)),
              .gradients = calloc(n, sizeof(*w.gradients)),
              .sharers = calloc(n, sizeof(*w.sharers)),
              .written = calloc(n, sizeof(*w.written))};
    cs_status status =
        w.roots && w.gradients && w.sharers && w.written ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK) {
        find_roots(&w);
        for (uint32_t p = net->n_ops; p-- > 0 && !w.overflow;)
            peaks[p] = walk_op(&w, &net->ops[p], workspaces[p]);
        if (w.overflow)
            status = cs_error_add(error, CS_OVERFLOW,
                                  "%s: the gradients of activations do not fit 64 bits", net->name);
    }
    free(w.roots);
    free(w.gradients);
    free(w.sharers);
    free(w.written);
    return status;
}
