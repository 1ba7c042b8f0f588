/* The memory of divided networks against a slow walk: a list of everything that takes memory in a
 * forward and a backward, each with its birth and its last use, which is searched for live entries
 * at each instant. From the program come the local network's operators, their input and output
 * shapes, the halos and the gathers that backward repeats (test-net-local.c, test-split-conv.c),
 * and where layers end; what is saved, shared, allocated and freed is decided here independently,
 * by the rules in op-cost.h, kept.h, backward-memory.h, recompute.h and net-local.h.
 *
 * Operator p of n runs forward at the instant p, and backward at the instant 2 n - 1 - p. */
#include "sim/model/kept.h"
#include "sim/model/net-local.h"
#include "sim/model/net-model.h"
#include "sim/model/recompute.h"
#include "tests/expect.h"
#include "tests/random-net.h"

#include <math.h>
#include <stdlib.h>

enum { GRAPHS = 1000, TRANSFORMERS = 300, IMAGES = 500, MOST_MEMORIES = 1 << 16 };

typedef enum thing_kind {
    KEPT,     /* a tensor of the network, or what an operator keeps besides */
    GRADIENT, /* gradient of an activation */
    WORK,     /* workspace of a kernel, or of a recomputed run */
    ARRIVING, /* tensor gathered again during a computation: not the workspace of a layer */
} thing_kind;

typedef struct thing {
    thing_kind what;
    int64_t bytes;
    uint32_t birth, last; /* instants */
    uint32_t op;          /* KEPT: whose layer it is counted in */
    uint32_t of;          /* KEPT, of a tensor: which, + 1 */
} thing;

typedef struct walk {
    const cs_net *net;
    const cs_net_local *local; /* its halos and gathers */
    const cs_net_options *how;
    const cs_net_chain *chain;
    const uint32_t *runs; /* recompute.h */
    const bool *discards;
    uint32_t n; /* operators */
    thing *things;
    uint32_t n_things, cap_things;
} walk;

static void add_thing(walk *w, thing_kind what, int64_t bytes, uint32_t birth, uint32_t last,
                      uint32_t op)
{
    if (w->n_things == w->cap_things) {
        w->cap_things = 2 * w->cap_things + 64;
        w->things = realloc(w->things, w->cap_things * sizeof(*w->things));
        assert_non_null(w->things);
    }
    w->things[w->n_things++] = (thing){what, bytes, birth, last, op, 0};
}

static uint32_t back(const walk *w, uint32_t op)
{
    return 2 * w->n - 1 - op;
}

/* ---- tensors ---- */

static int64_t width_of(const walk *w)
{
    return w->how->precision == CS_PRECISION_FP32 ? 4 : 2;
}

/* Elements of the whole batch; of rows, without the last dimension. */
static int64_t elements(const walk *w, cs_tensor t)
{
    const cs_shape *shape = &w->net->tensors[t].shape;
    int64_t product = w->how->batch_size;
    for (uint32_t d = 0; d < shape->rank; d++)
        product *= shape->dims[d];
    return product;
}

static int64_t rows(const walk *w, cs_tensor t)
{
    const cs_shape *shape = &w->net->tensors[t].shape;
    return elements(w, t) / shape->dims[shape->rank - 1];
}

static int64_t bytes_of(const walk *w, cs_tensor t)
{
    switch (w->net->tensors[t].element) {
    case CS_ELEMENT_INT64:
        return 8 * elements(w, t);
    case CS_ELEMENT_FLOAT32:
        return 4 * elements(w, t);
    default:
        return width_of(w) * elements(w, t);
    }
}

static const cs_op *writer_of(const walk *w, cs_tensor t)
{
    const cs_op *writer = NULL;
    for (uint32_t p = 0; p < w->n; p++)
        writer = w->net->ops[p].output == t ? &w->net->ops[p] : writer;
    return writer;
}

/* Returns the tensor whose memory a tensor shares: as a view, or because it is written in place. */
static cs_tensor home_of(const walk *w, cs_tensor t, bool in_place)
{
    const cs_op *op = writer_of(w, t);
    return op && (op->kind == CS_OP_VIEW || (in_place && op->in_place))
               ? home_of(w, op->inputs[0], in_place)
               : t;
}

static bool reads(const cs_op *op, cs_tensor t)
{
    bool found = false;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        found |= op->inputs[i] == t;
    return found;
}

static bool has_gradient(const walk *w, cs_tensor t)
{
    const cs_op *op = writer_of(w, t);
    bool has = op && !op->frozen && op->weights + op->biases > 0;
    for (uint32_t i = 0; op && !has && i < op->n_inputs; i++)
        has = has_gradient(w, op->inputs[i]) && !(op->kind == CS_OP_DISPATCH && i == 1);
    return has;
}

static bool gets_gradient(const walk *w, const cs_op *op, uint32_t i)
{
    return has_gradient(w, op->inputs[i]) && !(op->kind == CS_OP_DISPATCH && i == 1);
}

/* ---- what is kept ---- */

static bool is_fused(const walk *w, cs_fused kernel)
{
    return w->how->kept.fused & 1u << kernel;
}

static bool keeps_output(const walk *w, const cs_op *op)
{
    const bool flash = op->kind == CS_OP_ATTENTION && op->attention.kernel == CS_ATTENTION_FLASH;
    return has_gradient(w, op->output) &&
           (flash || op->kind == CS_OP_RELU || op->kind == CS_OP_TANH ||
            op->kind == CS_OP_SOFTMAX || op->kind == CS_OP_SCAN);
}

/* A gated product computes the activation in front of it again, which nobody reads later. */
static bool makes_again(const walk *w, const cs_op *op, cs_tensor t)
{
    const cs_op *writer = writer_of(w, t);
    bool later = false;
    for (const cs_op *after = op + 1; after < w->net->ops + w->n; after++)
        later |= reads(after, t);
    return op->kind == CS_OP_MUL && is_fused(w, CS_FUSED_SWIGLU) && writer && !later &&
           (writer->kind == CS_OP_SILU || writer->kind == CS_OP_GELU);
}

/* Bytes of an operand's element in a narrow type, with its part of a scale; 0: the type is none. */
static double thin(const walk *w)
{
    switch (w->how->precision) {
    case CS_PRECISION_FP8:
        return 1;
    case CS_PRECISION_MXFP8:
        return 33.0 / 32;
    case CS_PRECISION_NVFP4:
        return 9.0 / 16;
    default:
        return 0;
    }
}

/* Whether the gradient of its weights is a product with its input as cast in the forward. */
static bool reads_cast(const walk *w, const cs_op *op)
{
    return thin(w) > 0 && (op->kind == CS_OP_LINEAR || op->kind == CS_OP_GROUPED_LINEAR) &&
           !op->wide && !op->frozen && has_gradient(w, op->output) && !w->how->kept.wide_inputs;
}

/* Whether backward reads it as forward did. */
static bool keeps_input(const walk *w, const cs_op *op, cs_tensor t)
{
    if (!has_gradient(w, op->output) || reads_cast(w, op))
        return false;
    switch (op->kind) {
    case CS_OP_CONV:
    case CS_OP_LINEAR:
    case CS_OP_GROUPED_LINEAR:
    case CS_OP_EMBEDDING:
        return !op->frozen;
    case CS_OP_MUL:
        return !makes_again(w, op, t);
    case CS_OP_CROSS_ENTROPY:
        return is_fused(w, CS_FUSED_CROSS_ENTROPY);
    case CS_OP_ADAPTIVE_POOL: /* a mean over all pixels is not */
        return elements(w, op->output) !=
               (int64_t)w->how->batch_size * w->net->tensors[op->output].shape.dims[0];
    case CS_OP_BATCH_NORM:
    case CS_OP_LAYER_NORM:
    case CS_OP_RMS_NORM:
    case CS_OP_GELU:
    case CS_OP_SILU:
    case CS_OP_MAX_POOL:
    case CS_OP_AVG_POOL:
    case CS_OP_ATTENTION:
    case CS_OP_COMBINE:
        return true;
    default:
        return false;
    }
}

/* Queries times the keys of all steps, of all heads. */
static int64_t matrix(const walk *w, const cs_op *op)
{
    const uint32_t steps = op->attention.steps > 0 ? op->attention.steps : 1;
    return (int64_t)op->attention.heads * rows(w, op->output) *
           w->net->tensors[op->inputs[1]].shape.dims[0] * steps;
}

static int64_t of_attention(const walk *w, const cs_op *op)
{
    const int64_t weights = matrix(w, op);
    const bool copies = w->how->kept.attention_copy && w->how->batch_size > 1;
    if (op->attention.kernel == CS_ATTENTION_FLASH)
        return 4 * op->attention.heads * rows(w, op->output) +
               (copies ? width_of(w) * elements(w, op->output) : 0);
    const bool masks = w->how->kept.padding_masks && op->attention.padded;
    return weights * width_of(w) + (masks ? weights / op->attention.heads : 0) +
           (op->attention.dropout > 0 ? weights * (1 + width_of(w)) : 0);
}

/* Bytes that an operator keeps and that are not tensors of the network, except halos. */
static int64_t kept_besides(const walk *w, const cs_op *op)
{
    const int64_t x = elements(w, op->inputs[0]), width = width_of(w);
    if (!has_gradient(w, op->output))
        return 0;
    switch (op->kind) {
    case CS_OP_BATCH_NORM:
        return 2 * 4 * (int64_t)w->net->tensors[op->inputs[0]].shape.dims[0];
    case CS_OP_LAYER_NORM:
        return 2 * 4 * rows(w, op->inputs[0]);
    case CS_OP_RMS_NORM:
        return 4 * rows(w, op->inputs[0]) * op->groups +
               (is_fused(w, CS_FUSED_NORM) ? 0 : width * x);
    case CS_OP_MAX_POOL:
        return 8 * elements(w, op->output);
    case CS_OP_DROPOUT:
        return elements(w, op->output);
    case CS_OP_ATTENTION:
        return of_attention(w, op);
    case CS_OP_CROSS_ENTROPY:
        return 8 * rows(w, op->inputs[0]) + (is_fused(w, CS_FUSED_CROSS_ENTROPY) ? 0 : 4 * x);
    case CS_OP_TOP_K:
        return 4 * x + 8 * elements(w, op->output);
    case CS_OP_DISPATCH:
        return 8 * rows(w, op->output);
    default:
        return 0;
    }
}

static int64_t halo_bytes(const walk *w, int64_t of_sample)
{
    return of_sample * w->how->batch_size * width_of(w);
}

/* ---- gathers that backward repeats ---- */

/* Not for an operator that is recomputed, nor for tensors kept for a recomputed operator. */
static bool repeats_gather(const walk *w, uint32_t p)
{
    bool repeats = w->net->ops[p].gathers_again && w->runs[p] == 0;
    for (uint32_t q = 0; q < w->n; q++)
        repeats &= w->runs[q] == 0 || !reads(&w->net->ops[q], w->net->ops[p].output);
    return repeats;
}

/* Whether the tensor comes out of one; its place among the operators in `exchange`. */
static bool is_gathered(const walk *w, cs_tensor home, uint32_t *exchange)
{
    const cs_op *op = writer_of(w, home);
    *exchange = op ? (uint32_t)(op - w->net->ops) : 0;
    return op && repeats_gather(w, *exchange);
}

/* Gradients of weights that are computed while a gradient is summed: their operators are behind
 * the exchange, and what they read for it is there until then. */
static uint32_t weights_at(const walk *w, uint32_t p)
{
    const cs_op *op = &w->net->ops[p];
    uint32_t at = p;
    for (uint32_t e = 0; e < p && !op->frozen && op->weights + op->biases > 0; e++)
        at = w->local->ops[e].deferred >= p ? e : at;
    return at;
}

static int64_t cast_bytes(const walk *w, int64_t of)
{
    return (int64_t)ceil(thin(w) * (double)of);
}

/* Whether an operator wants the tensor as it is for its backward. */
static bool is_wanted(const walk *w, cs_tensor t)
{
    bool wanted = false;
    for (uint32_t p = 0; p < w->n; p++)
        wanted |= reads(&w->net->ops[p], t) && keeps_input(w, &w->net->ops[p], t);
    return wanted;
}

/* From the backward of its last reader to the backward of the first operator that needs it, or to
 * the sum that overlaps its gradient of weights. */
static void add_gathered(walk *w, cs_tensor home, uint32_t exchange)
{
    uint32_t first = UINT32_MAX, last = 0;
    bool narrow = false;
    for (uint32_t p = exchange + 1; p < w->n; p++) {
        const cs_op *op = &w->net->ops[p];
        if (!reads(op, home))
            continue;
        last = p;
        narrow |= reads_cast(w, op);
        if ((keeps_input(w, op, home) || reads_cast(w, op)) && first == UINT32_MAX)
            first = p;
    }
    const int64_t bytes = (is_wanted(w, home) ? bytes_of(w, home) : 0) +
                          (narrow ? cast_bytes(w, elements(w, home)) : 0);
    if (w->local->ops[exchange].deferred > 0)
        add_thing(w, ARRIVING, bytes, back(w, last), back(w, exchange), 0);
    else
        add_thing(w, WORK, bytes, back(w, last), back(w, first), 0);
}

/* Whether it is the first to cast what it reads for backward. */
static bool first_cast(const walk *w, uint32_t p)
{
    bool first = reads_cast(w, &w->net->ops[p]);
    for (uint32_t q = 0; q < p; q++)
        first &=
            !reads_cast(w, &w->net->ops[q]) || w->net->ops[q].inputs[0] != w->net->ops[p].inputs[0];
    return first;
}

static bool reads_home(const walk *w, const cs_op *op, cs_tensor home)
{
    bool found = false;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        found |= home_of(w, op->inputs[i], true) == home;
    return found;
}

/* ---- tensors of the network ---- */

/* Those that share a memory: who writes and reads them first and last forward, and who needs them
 * for its backward. */
typedef struct life {
    uint32_t birth, read; /* birth: UINT32_MAX, nobody uses them */
    uint32_t keeper;      /* the first operator that keeps them, or of a run that reads them and
                           * does not make them again; n: none */
} life;

static uint32_t layer_of(const walk *w, uint32_t p)
{
    uint32_t layer = 0;
    while (p >= w->chain->layers[layer].end)
        layer++;
    return layer;
}

/* Whether the run of operator p, if it is in one, has the tensor made again: it is its own, or that
 * of another run of its layer. */
static bool is_made_again(const walk *w, cs_tensor home, uint32_t p)
{
    const cs_op *writer = writer_of(w, home);
    const uint32_t by = writer ? (uint32_t)(writer - w->net->ops) : 0;
    return w->runs[p] > 0 && writer && w->runs[by] > 0 &&
           (w->runs[by] == w->runs[p] || layer_of(w, by) == layer_of(w, p));
}

static bool keeps(const walk *w, cs_tensor home, uint32_t p)
{
    const cs_op *op = &w->net->ops[p];
    bool kept = home_of(w, op->output, true) == home && keeps_output(w, op);
    for (uint32_t i = 0; i < op->n_inputs; i++)
        if (home_of(w, op->inputs[i], true) == home)
            kept |= keeps_input(w, op, op->inputs[i]) ||
                    (repeats_gather(w, p) && is_wanted(w, op->output));
    return kept;
}

static bool uses(const walk *w, cs_tensor home, uint32_t p)
{
    const cs_op *op = &w->net->ops[p];
    bool used = home_of(w, op->output, true) == home;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        used |= home_of(w, op->inputs[i], true) == home;
    return used;
}

static uint32_t last_reader(const walk *w, cs_tensor t)
{
    uint32_t last = 0;
    for (uint32_t p = 0; p < w->n; p++)
        last = reads(&w->net->ops[p], t) ? p : last;
    return last;
}

/* The run that makes again, for an operator that is in none, what that needs and the run has
 * discarded; 0: it is none. */
static uint32_t discarded_for(const walk *w, cs_tensor home, uint32_t p)
{
    const cs_op *op = &w->net->ops[p], *writer = writer_of(w, home);
    const uint32_t by = writer ? (uint32_t)(writer - w->net->ops) : 0;
    bool needs = repeats_gather(w, p);
    if (!writer || !w->discards[by] || w->runs[p] > 0 || layer_of(w, p) != layer_of(w, by))
        return 0;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        if (home_of(w, op->inputs[i], true) == home)
            needs |= keeps_input(w, op, op->inputs[i]) || (i == 0 && first_cast(w, p));
    return needs && reads_home(w, op, home) ? w->runs[by] : 0;
}

static life life_of(const walk *w, cs_tensor home)
{
    life l = {.birth = UINT32_MAX, .keeper = w->n};
    for (uint32_t p = 0; p < w->n; p++) {
        if (!uses(w, home, p))
            continue;
        const uint32_t needs = w->runs[p] > 0 ? w->runs[p] - 1 : p;
        l.birth = l.birth == UINT32_MAX ? p : l.birth;
        l.read = p;
        if (w->runs[p] > 0 ? !is_made_again(w, home, p)
                           : keeps(w, home, p) && discarded_for(w, home, p) == 0)
            l.keeper = needs < l.keeper ? needs : l.keeper;
    }
    return l;
}

/* Returns the last operator of a run; or the last operator after it whose backward needs something
 * that the run discards: the run is recomputed before that. */
static uint32_t end_of_run(const walk *w, uint32_t run)
{
    uint32_t last = run - 1;
    while (last + 1 < w->n && w->runs[last + 1] == run)
        last++;
    for (uint32_t p = run - 1; p < w->n && w->runs[p] == run; p++)
        for (uint32_t q = p + 1; q < w->n; q++)
            if (discarded_for(w, home_of(w, w->net->ops[p].output, true), q) == run) {
                const uint32_t until =
                    repeats_gather(w, q) ? last_reader(w, w->net->ops[q].output) : q;
                last = until > last ? until : last;
            }
    return last;
}

/* For each run that keeps it, while that runs backward. */
static void add_again(walk *w, cs_tensor home, int64_t bytes)
{
    uint32_t added = 0;
    for (uint32_t p = 0; p < w->n && added == 0; p++)
        added = discarded_for(w, home, p);
    if (added > 0)
        add_thing(w, WORK, bytes, back(w, end_of_run(w, added)), back(w, added - 1), 0);
    for (uint32_t p = 0; p < w->n; p++) {
        const uint32_t run = w->runs[p];
        if (run == added || run == 0 || !keeps(w, home, p))
            continue;
        add_thing(w, WORK, bytes, back(w, end_of_run(w, run)), back(w, run - 1), 0);
        added = run;
    }
}

static void add_tensor(walk *w, cs_tensor home)
{
    const life l = life_of(w, home);
    const int64_t bytes = bytes_of(w, home);
    uint32_t exchange;
    if (l.birth == UINT32_MAX)
        return;
    if (is_gathered(w, home, &exchange)) {
        add_thing(w, WORK, bytes, l.birth, l.read, 0);
        add_gathered(w, home, exchange);
    } else if (l.keeper < w->n) {
        add_thing(w, KEPT, bytes, l.birth, back(w, l.keeper), l.read);
        w->things[w->n_things - 1].of = home + 1;
    } else {
        add_thing(w, WORK, bytes, l.birth, l.read, 0);
        add_again(w, home, bytes);
    }
}

/* Bytes of the cast of an operator's input, for all later narrow products with the same input; if
 * it was gathered and is gathered again, of the previous part. */
static int64_t own_cast(const walk *w, uint32_t p)
{
    const cs_tensor t = w->net->ops[p].inputs[0];
    uint32_t exchange;
    if (!first_cast(w, p))
        return 0;
    const bool part = is_gathered(w, t, &exchange);
    return cast_bytes(w, elements(w, part ? w->net->ops[exchange].inputs[0] : t));
}

/* Whether the cast belongs to a discarded tensor of a run, or to one gathered from it. */
static bool is_cast_of_discarded(const walk *w, uint32_t p)
{
    cs_tensor t = home_of(w, w->net->ops[p].inputs[0], true);
    const cs_op *writer = writer_of(w, t);
    if (writer && writer->gathers_again)
        writer = writer_of(w, home_of(w, writer->inputs[0], true));
    const uint32_t by = writer ? (uint32_t)(writer - w->net->ops) : 0;
    return writer && w->discards[by] && layer_of(w, by) == layer_of(w, p);
}

/* Weights that are cast for each product. */
static int64_t cast_weights(const walk *w, const cs_op *op)
{
    const bool product = op->kind == CS_OP_LINEAR || op->kind == CS_OP_GROUPED_LINEAR;
    return product && !op->wide && w->how->kept.narrow_weights == CS_NARROW_WEIGHTS_CAST
               ? cast_bytes(w, op->weights)
               : 0;
}

/* PyTorch's operators, each with its result: a copy in float32 unless the logits already are;
 * backward the gradients of the logarithms and of the copy (of the logits if there is no copy);
 * from the latter the gradient of the logits is computed when the first has been freed. With a part
 * of the vocabulary one more in float32, forward and backward. */
static void add_loss(walk *w, uint32_t p)
{
    const int64_t single = 4 * elements(w, w->net->ops[p].inputs[0]);
    const bool copies = width_of(w) < 4;
    if (copies && w->how->kept.loss != CS_LOSS_IN_PLACE)
        add_thing(w, WORK, single, p, p, 0);
    const bool parallel = w->how->kept.loss == CS_LOSS_PARALLEL;
    if (parallel) {
        add_thing(w, WORK, single, p, p, 0);
        add_thing(w, WORK, single, back(w, p), back(w, p), 0);
    }
    if ((w->how->kept.loss == CS_LOSS_EAGER || parallel) && copies)
        add_thing(w, WORK, single + single / 2, back(w, p), back(w, p), 0);
    if ((w->how->kept.loss == CS_LOSS_EAGER || parallel) && !copies)
        add_thing(w, WORK, single, back(w, p), back(w, p), 0);
}

/* Also its halo, and what its kernels take while they run. */
static void add_besides(walk *w, uint32_t p)
{
    const cs_op *op = &w->net->ops[p];
    const int64_t halo = halo_bytes(w, w->local->ops[p].halo);
    const bool is_kept = keeps_input(w, op, op->inputs[0]);
    const bool casts_again = w->runs[p] == 0 && own_cast(w, p) > 0 && is_cast_of_discarded(w, p);
    const int64_t bytes =
        kept_besides(w, op) + (casts_again ? 0 : own_cast(w, p)) + (is_kept ? halo : 0);
    const int64_t work = op->kind == CS_OP_ATTENTION && op->attention.kernel == CS_ATTENTION_MATH
                             ? matrix(w, op) * width_of(w)
                             : cast_weights(w, op);
    const uint32_t run = w->runs[p];
    if (run == 0) {
        add_thing(w, KEPT, bytes, p, back(w, p), p);
    } else {
        add_thing(w, WORK, bytes, p, p, 0);
        add_thing(w, WORK, bytes, back(w, end_of_run(w, run)), back(w, run - 1), 0);
    }
    if (casts_again)
        add_thing(w, WORK, own_cast(w, p), back(w, p), back(w, p), 0);
    add_thing(w, WORK, work + (is_kept ? 0 : halo), p, p, 0);
    if (has_gradient(w, op->output))
        add_thing(w, WORK, work + halo_bytes(w, w->local->ops[p].gradient_halo), back(w, p),
                  back(w, p), 0);
    if (op->kind == CS_OP_CROSS_ENTROPY && !is_fused(w, CS_FUSED_CROSS_ENTROPY) &&
        has_gradient(w, op->output))
        add_loss(w, p);
}

/* Gradients of weights that are made aside, the largest of those that are made at an instant. */
static void add_weight_gradients(walk *w)
{
    int64_t *most = calloc(w->n, sizeof(*most));
    assert_non_null(most);
    for (uint32_t p = 0; p < w->n; p++) {
        const cs_op *op = &w->net->ops[p];
        const int64_t bytes = (op->weights + op->biases) * width_of(w);
        const bool in_place =
            w->how->kept.weight_gradients == CS_WEIGHT_GRADIENTS_IN_PLACE || op->frozen ||
            (w->how->kept.weight_gradients == CS_WEIGHT_GRADIENTS_PLACEHOLDERS && !op->wide &&
             (op->kind == CS_OP_LINEAR || op->kind == CS_OP_GROUPED_LINEAR));
        const uint32_t at = weights_at(w, p);
        if (!in_place && bytes > most[at])
            most[at] = bytes;
    }
    for (uint32_t p = 0; p < w->n; p++)
        add_thing(w, WORK, most[p], back(w, p), back(w, p), 0);
    free(most);
}

/* ---- gradients of activations ---- */

/* The gradient of the logits takes their memory, which is there as long as it is. */
static void extend_logits(walk *w, cs_tensor home, uint32_t gradient)
{
    thing *logits = NULL;
    for (uint32_t i = 0; i < w->n_things; i++)
        if (w->things[i].of == home + 1)
            logits = &w->things[i];
    if (logits && logits->last < w->things[gradient].last)
        logits->last = w->things[gradient].last;
}

/* Per tensor with a memory of its own: which thing has its gradient, 0 for none, else + 1. */
typedef struct gradients {
    walk *w;
    uint32_t *at;    /* per tensor */
    bool *has_part;  /* per tensor: an operator that reads it has left its part */
    uint32_t logits; /* whose memory a gradient has, + 1; and which thing that gradient is */
    uint32_t of_logits;
} gradients;

static uint32_t *at_of(const gradients *g, cs_tensor t)
{
    return &g->at[home_of(g->w, t, false)];
}

/* New memory; nothing of it where the logits give theirs. */
static uint32_t make_gradient(gradients *g, int64_t bytes, uint32_t now)
{
    add_thing(g->w, GRADIENT, bytes, now, now, 0);
    return g->w->n_things;
}

/* Another tensor has its gradient there, or a gradient of weights will be computed from it. */
static bool is_shared(const gradients *g, uint32_t thing_at, uint32_t now)
{
    uint32_t users = g->w->things[thing_at - 1].last > now;
    for (cs_tensor t = 0; t < g->w->net->n_tensors; t++)
        users += g->at[t] == thing_at;
    return users > 1;
}

/* Whatever some tensor's gradient is in lives on to the next instant. */
static void live_on(const gradients *g, uint32_t now)
{
    for (cs_tensor t = 0; t < g->w->net->n_tensors; t++)
        if (g->at[t] > 0 && g->w->things[g->at[t] - 1].last < now)
            g->w->things[g->at[t] - 1].last = now;
}

static void hand_on(gradients *g, const cs_op *op, uint32_t now)
{
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const cs_tensor t = op->inputs[i];
        uint32_t *const to = at_of(g, t);
        if (!gets_gradient(g->w, op, i))
            continue;
        if (*to == 0)
            *to = *at_of(g, op->output);
        else if (is_shared(g, *to, now))
            *to = make_gradient(g, bytes_of(g->w, home_of(g->w, t, false)), now);
        g->has_part[t] = true;
    }
}

/* A part of each input; where one is there already it is made aside, and is the sum after. */
static void make_parts(gradients *g, const cs_op *op, uint32_t now)
{
    const bool in_logits =
        op->kind == CS_OP_CROSS_ENTROPY && is_fused(g->w, CS_FUSED_CROSS_ENTROPY);
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const cs_tensor t = op->inputs[i];
        uint32_t *const to = at_of(g, t);
        if (!gets_gradient(g->w, op, i))
            continue;
        if (g->has_part[t])
            *to = make_gradient(g, bytes_of(g->w, t), now);
        else if (*to == 0)
            *to = make_gradient(g, in_logits ? 0 : bytes_of(g->w, home_of(g->w, t, false)), now);
        if (in_logits && g->w->things[*to - 1].birth == now && !g->has_part[t]) {
            g->logits = home_of(g->w, t, true) + 1;
            g->of_logits = *to - 1;
        }
        g->has_part[t] = true;
    }
}

static void step_back(gradients *g, uint32_t p)
{
    const cs_op *op = &g->w->net->ops[p];
    const uint32_t now = back(g->w, p), read_again = back(g->w, weights_at(g->w, p));
    const bool is_loss = op->kind == CS_OP_CROSS_ENTROPY || op->kind == CS_OP_SQUARED_ERROR;
    uint32_t *const own = at_of(g, op->output);
    if (op->kind == CS_OP_VIEW) {
        g->has_part[op->inputs[0]] |= g->has_part[op->output];
        live_on(g, now);
        return;
    }
    live_on(g, now);
    if (!has_gradient(g->w, op->output))
        return;
    if (!is_loss && *own == 0)
        *own = make_gradient(g, bytes_of(g->w, home_of(g->w, op->output, false)), now);
    if (op->kind == CS_OP_ADD || (op->kind == CS_OP_EXCHANGE && op->in_place))
        hand_on(g, op, now);
    else
        make_parts(g, op, now);
    if (*own > 0 && g->w->things[*own - 1].last < read_again)
        g->w->things[*own - 1].last = read_again;
    *own = 0;
}

static void add_gradients(walk *w)
{
    gradients g = {.w = w,
                   .at = calloc(w->net->n_tensors, sizeof(*g.at)),
                   .has_part = calloc(w->net->n_tensors, sizeof(*g.has_part))};
    assert_true(g.at && g.has_part);
    for (uint32_t p = w->n; p-- > 0;)
        step_back(&g, p);
    if (g.logits > 0)
        extend_logits(w, g.logits - 1, g.of_logits);
    free(g.at);
    free(g.has_part);
}

/* ---- what is live ---- */

static int64_t live(const walk *w, uint32_t instant, uint32_t kinds)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < w->n_things; i++) {
        const thing *t = &w->things[i];
        if (kinds & 1u << t->what && t->birth <= instant && instant <= t->last)
            sum += t->bytes;
    }
    return sum;
}

static int64_t most_live(const walk *w, const cs_net_layer *layer, bool backward, uint32_t kinds)
{
    int64_t most = 0;
    for (uint32_t p = layer->first; p < layer->end; p++) {
        const int64_t bytes = live(w, backward ? back(w, p) : p, kinds);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* ---- comparisons ---- */

static void find_runs(const walk *w, const cs_net_chain *chain, uint32_t *runs, bool *discards)
{
    uint32_t *ends = calloc(chain->n_layers, sizeof(*ends));
    cs_error error;
    cs_error_init(&error);
    assert_non_null(ends);
    for (uint32_t l = 0; l < chain->n_layers; l++)
        ends[l] = chain->layers[l].end;
    assert_int_equal(cs_recompute_find(w->net, w->how->recompute_ops, w->how->n_recompute_ops, ends,
                                       runs, &error),
                     CS_OK);
    for (uint32_t p = 0; p < w->n; p++)
        for (uint32_t i = 0; i < w->how->n_discard_ops; i++)
            discards[p] |=
                runs[p] > 0 && cs_recompute_means(w->how->discard_ops[i], w->net->ops[p].name);
    free(ends);
}

static void expect_layers(const char *row, const walk *w, const cs_net_chain *chain)
{
    char text[320];
    for (uint32_t l = 0; l < chain->n_layers; l++) {
        const cs_net_layer *layer = &chain->layers[l];
        int64_t kept = 0;
        for (uint32_t i = 0; i < w->n_things; i++)
            if (w->things[i].what == KEPT && w->things[i].op >= layer->first &&
                w->things[i].op < layer->end)
                kept += w->things[i].bytes;
        snprintf(text, sizeof(text), "%s, layer %s, kept", row, layer->name);
        expect_int(text, kept, layer->kept_bytes);
        snprintf(text, sizeof(text), "%s, layer %s, workspace", row, layer->name);
        expect_int(text, most_live(w, layer, true, 1u << GRADIENT | 1u << WORK),
                   layer->workspace_bytes);
    }
}

/* Memory by number, as a player of tapes has it (tape.h). */
typedef struct memory {
    int64_t bytes;
    uint32_t keeps;
} memory;

typedef struct player {
    memory all[MOST_MEMORIES];
    int64_t live, most;
} player;

static void set_bytes(player *p, memory *at, int64_t bytes)
{
    p->live += bytes - at->bytes;
    at->bytes = bytes;
    p->most = p->live > p->most ? p->live : p->most;
}

/* Returns the peak. */
static int64_t play(player *p, const cs_tape_event *events, uint32_t n, bool backward)
{
    p->most = p->live;
    for (uint32_t i = 0; i < n; i++) {
        memory *at = &p->all[events[i].memory];
        assert_true(events[i].memory < MOST_MEMORIES);
        if ((events[i].what == CS_TAPE_TAKE || events[i].what == CS_TAPE_READ) && at->bytes == 0)
            set_bytes(p, at, events[i].bytes);
        at->keeps += events[i].what == CS_TAPE_KEEP;
        if (events[i].what == CS_TAPE_GIVE) {
            at->keeps -= backward && at->keeps > 0;
            if (at->keeps == 0)
                set_bytes(p, at, 0);
        }
    }
    return p->most;
}

static void expect_tapes(const char *row, const walk *w, const cs_net_chain *chain,
                         const cs_model *model)
{
    const uint32_t all = 1u << KEPT | 1u << GRADIENT | 1u << WORK | 1u << ARRIVING;
    player *p = calloc(1, sizeof(*p));
    char text[320];
    assert_non_null(p);
    for (uint32_t l = 0; l < chain->n_layers; l++) {
        const cs_layer *layer = &model->layers[l];
        snprintf(text, sizeof(text), "%s, layer %s, peak forward", row, layer->name);
        expect_int(text, most_live(w, &chain->layers[l], false, all),
                   play(p, layer->forward_tape, layer->n_forward_tape, false));
    }
    for (uint32_t i = 0; i < MOST_MEMORIES; i++)
        if (p->all[i].keeps == 0)
            set_bytes(p, &p->all[i], 0);
    for (uint32_t l = chain->n_layers; l-- > 0;) {
        const cs_layer *layer = &model->layers[l];
        snprintf(text, sizeof(text), "%s, layer %s, peak backward", row, layer->name);
        expect_int(text, most_live(w, &chain->layers[l], true, all),
                   play(p, layer->backward_tape, layer->n_backward_tape, true));
    }
    free(p);
}

static void compare(const char *row, const cs_net *net, const cs_net_options *how)
{
    cs_net_local local = {0};
    cs_net_chain chain = {0};
    cs_model model = {0};
    cs_error error;
    cs_error_init(&error);
    cs_split split = *how->split;
    split.samples = how->batch_size;
    if (cs_net_local_make(net, &split, how->place, NULL, &local, &error) != CS_OK ||
        cs_net_chain_find(net, how, &chain, &error) != CS_OK ||
        cs_net_model(net, how, &model, &error) != CS_OK)
        fail_msg("%s: %s", row, error.text);
    uint32_t *runs = calloc(local.net.n_ops, sizeof(*runs));
    bool *discards = calloc(local.net.n_ops, sizeof(*discards));
    assert_true(runs && discards);
    walk w = {.net = &local.net,
              .local = &local,
              .how = how,
              .chain = &chain,
              .runs = runs,
              .discards = discards,
              .n = local.net.n_ops};
    find_runs(&w, &chain, runs, discards);
    for (cs_tensor t = 0; t < w.net->n_tensors; t++)
        if (home_of(&w, t, true) == t)
            add_tensor(&w, t);
    for (uint32_t p = 0; p < w.n; p++)
        add_besides(&w, p);
    add_weight_gradients(&w);
    add_gradients(&w);
    expect_layers(row, &w, &chain);
    if (how->tapes)
        expect_tapes(row, &w, &chain, &model);
    free(w.things);
    free(runs);
    free(discards);
    cs_model_finish(&model);
    cs_net_chain_finish(&chain);
    cs_net_local_finish(&local);
}

/* ---- drawn cases ---- */

typedef struct drawn {
    cs_net net;
    cs_split split;
    uint32_t refused, compared;
} drawn;

/* Options and a place of each kind; in every other case two operators or blocks run again. */
static void compare_drawn(gsl_rng *random, const char *kind, uint32_t number, drawn *d)
{
    static const cs_precision types[] = {CS_PRECISION_FP32, CS_PRECISION_BF16, CS_PRECISION_FP8,
                                         CS_PRECISION_MXFP8, CS_PRECISION_NVFP4};
    cs_accelerator device;
    const char *again[2];
    char row[160];
    cs_error error;
    cs_error_init(&error);
    if (cs_net_split_check(&d->net, &d->split, NULL, &error) != CS_OK) {
        d->refused++;
        return;
    }
    cs_accelerator_none(&device);
    for (int i = 0; i < 2; i++) {
        const cs_op *op = &d->net.ops[random_from_to(random, 0, d->net.n_ops - 1)];
        again[i] = random_from_to(random, 0, 1) ? op->name : d->net.blocks[op->block];
    }
    cs_net_options how = {.batch_size = random_from_to(random, 1, 3),
                          .precision = types[random_from_to(random, 0, 4)],
                          .granularity = random_from_to(random, 0, 1) ? CS_GRANULARITY_BLOCK
                                                                      : CS_GRANULARITY_LAYER,
                          .kept = {.fused = random_from_to(random, 0, 7),
                                   .weight_gradients = random_from_to(random, 0, 2),
                                   .loss = random_from_to(random, 0, 3),
                                   .narrow_weights = random_from_to(random, 0, 2),
                                   .one_copy = random_from_to(random, 0, 1),
                                   .wide_inputs = random_from_to(random, 0, 3) == 0,
                                   .attention_copy = random_from_to(random, 0, 1),
                                   .padding_masks = number % 3 > 0},
                          .device = &device,
                          .source = "test",
                          .split = &d->split,
                          .place = random_from_to(random, 0, cs_grid_places(&d->split.grid) - 1),
                          .recompute_ops = again,
                          .n_recompute_ops = number % 2 ? 2 : 0,
                          .discard_ops = again,
                          .n_discard_ops = number % 4 == 1 ? 1 : 0,
                          .tapes = number % 2 == 0};
    const cs_grid *g = &d->split.grid;
    snprintf(row, sizeof(row),
             "%s %" PRIu32 ", tensor %" PRIu32 ", context %" PRIu32 ", space %" PRIu32 "x%" PRIu32
             "x%" PRIu32 ", expert %" PRIu32 "x%" PRIu32 ", place %" PRIu32 "%s",
             kind, number, g->tensor, g->context, g->space[0], g->space[1], g->space[2], g->expert,
             g->expert_tensor, how.place, number % 2 ? ", computed again" : "");
    compare(row, &d->net, &how);
    d->compared++;
}

static void expect_enough(const char *kind, const drawn *d, uint32_t tried)
{
    print_message("  %s: %" PRIu32 " compared, %" PRIu32 " refused\n", kind, d->compared,
                  d->refused);
    if (2 * d->compared < tried)
        fail_msg("only %" PRIu32 " of %" PRIu32 " were compared", d->compared, tried);
}

static void test_graphs(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(1, "graphs");
    drawn d = {0};
    assert_non_null(random);
    for (uint32_t i = 0; i < GRAPHS; i++) {
        static const uint32_t tensor[] = {1, 2, 3, 4}, context[] = {1, 1, 2, 3};
        d.split = cs_split_none();
        d.split.grid.tensor = tensor[random_from_to(random, 0, 3)];
        d.split.grid.context = context[random_from_to(random, 0, 3)];
        d.split.grid.data = random_from_to(random, 1, 2);
        d.split.sequence_parallel = random_from_to(random, 0, 1);
        d.split.keeps_tokens = random_from_to(random, 0, 3) == 0;
        d.split.context_method = (cs_context_method)random_from_to(random, 0, 2);
        random_net_graph(random, &d.net);
        compare_drawn(random, "graph", i, &d);
        cs_net_finish(&d.net);
    }
    gsl_rng_free(random);
    expect_enough("graphs", &d, GRAPHS);
}

static void test_transformers(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(1, "transformers");
    drawn d = {0};
    assert_non_null(random);
    for (uint32_t i = 0; i < TRANSFORMERS; i++) {
        const bool experts = i % 3 == 0;
        d.split = random_transformer_split(random, experts);
        const transformer_shape shape = random_transformer_shape(random, &d.split, experts);
        random_net_transformer(&shape, &d.net);
        compare_drawn(random, "transformer", i, &d);
        cs_net_finish(&d.net);
    }
    gsl_rng_free(random);
    expect_enough("transformers", &d, TRANSFORMERS);
}

static void test_images(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(1, "images");
    drawn d = {0};
    assert_non_null(random);
    for (uint32_t i = 0; i < IMAGES; i++) {
        cs_error error;
        if (random_net_images(random, &d.net, &error)) {
            d.split = random_images_split(random, &d.net);
            compare_drawn(random, "images", i, &d);
        }
        cs_net_finish(&d.net);
    }
    gsl_rng_free(random);
    expect_enough("images", &d, IMAGES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_transformers),
        cmocka_unit_test(test_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
