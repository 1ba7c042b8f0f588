#include "sim/model/net-build.h"

#include <math.h>
#include <stdio.h>

/* The full name of what is being made, for messages. */
static void fail_at(cs_net *net, const char *name, const char *what)
{
    cs_net_fail(net, "layer %s%s%s %s", net->scope, net->scope[0] ? "." : "", name, what);
}

/* ---- windows over space ---- */

static cs_extent everywhere(uint32_t rank, uint32_t value)
{
    return (cs_extent){rank, {value, value, value}};
}

static cs_extent or_else(uint32_t rank, const uint32_t values[CS_SPACE_MAX], uint32_t fallback)
{
    cs_extent space = {.rank = rank};
    for (uint32_t i = 0; i < rank; i++)
        space.size[i] = values[i] ? values[i] : fallback;
    return space;
}

/* Pixels from the first that a window reads to the last, both included. */
static uint64_t span(const cs_op *op, uint32_t i)
{
    return (uint64_t)op->dilation.size[i] * (op->kernel.size[i] - 1) + 1;
}

static void out_of_pixels(cs_net *net, const char *name, const cs_op *op, const cs_shape *in)
{
    char space[CS_SHAPE_TEXT_BYTES], kernel[CS_SHAPE_TEXT_BYTES], text[256];
    cs_shape pixels = {in->rank - 1, {0}}, window = {op->kernel.rank, {0}};
    for (uint32_t i = 0; i < op->kernel.rank; i++) {
        pixels.dims[i] = in->dims[1 + i];
        window.dims[i] = (uint32_t)span(op, i);
    }
    snprintf(text, sizeof(text),
             "runs out of pixels: its input is %s, padding %u, its kernel%s %s; the image must be "
             "larger",
             cs_shape_text(&pixels, space, sizeof(space)), op->pad.size[0],
             op->dilation.size[0] > 1 ? " spans" : "",
             cs_shape_text(&window, kernel, sizeof(kernel)));
    fail_at(net, name, text);
}

/* Slides the kernel over space; the channels become `out`. */
static cs_tensor add_window(cs_net *net, const char *name, cs_op *op, uint32_t out)
{
    const cs_shape in = cs_net_tensor(net, op->inputs[0])->shape;
    cs_shape shape = {in.rank, {out}};
    for (uint32_t i = 0; i < op->kernel.rank; i++) {
        uint64_t padded = (uint64_t)in.dims[1 + i] + 2 * (uint64_t)op->pad.size[i];
        if (padded < span(op, i)) {
            out_of_pixels(net, name, op, &in);
            return CS_NO_TENSOR;
        }
        shape.dims[1 + i] = (uint32_t)((padded - span(op, i)) / op->stride.size[i] + 1);
    }
    return cs_net_add_op(net, name, op, &shape, CS_ELEMENT_ACTIVATION);
}

static bool has_space(cs_net *net, const char *name, cs_tensor x)
{
    if (cs_net_tensor(net, x)->shape.rank >= 2)
        return true;
    fail_at(net, name, "needs an image");
    return false;
}

cs_tensor cs_net_conv(cs_net *net, const char *name, cs_tensor x, const cs_conv *conv)
{
    if (!cs_net_usable(net, &x, 1) || !has_space(net, name, x))
        return CS_NO_TENSOR;
    const cs_shape *in = &cs_net_tensor(net, x)->shape;
    uint32_t rank = in->rank - 1;
    cs_op op = cs_net_op(CS_OP_CONV, &x, 1);
    op.kernel = or_else(rank, conv->kernels, conv->kernel);
    op.stride = everywhere(rank, conv->stride ? conv->stride : 1);
    op.pad = or_else(rank, conv->pads, conv->pad);
    op.dilation = everywhere(rank, conv->dilation ? conv->dilation : 1);
    op.groups = conv->groups ? conv->groups : 1;
    if (in->dims[0] % op.groups != 0 || conv->out % op.groups != 0) {
        fail_at(net, name, "has channels that its groups do not divide");
        return CS_NO_TENSOR;
    }
    op.weights = (int64_t)conv->out * (in->dims[0] / op.groups);
    for (uint32_t i = 0; i < rank; i++)
        op.weights *= op.kernel.size[i];
    op.biases = conv->bias ? conv->out : 0;
    return add_window(net, name, &op, conv->out);
}

static cs_tensor add_pool(cs_net *net, const char *name, cs_op_kind kind, cs_tensor x,
                          const cs_window *pool)
{
    if (!cs_net_usable(net, &x, 1) || !has_space(net, name, x))
        return CS_NO_TENSOR;
    const cs_shape *in = &cs_net_tensor(net, x)->shape;
    uint32_t rank = in->rank - 1;
    cs_op op = cs_net_op(kind, &x, 1);
    op.kernel = everywhere(rank, pool->kernel);
    op.stride = everywhere(rank, pool->stride ? pool->stride : pool->kernel);
    op.pad = everywhere(rank, pool->pad);
    op.dilation = everywhere(rank, pool->dilation ? pool->dilation : 1);
    return add_window(net, name, &op, in->dims[0]);
}

cs_tensor cs_net_max_pool(cs_net *net, const char *name, cs_tensor x, const cs_window *pool)
{
    return add_pool(net, name, CS_OP_MAX_POOL, x, pool);
}

cs_tensor cs_net_avg_pool(cs_net *net, const char *name, cs_tensor x, const cs_window *pool)
{
    return add_pool(net, name, CS_OP_AVG_POOL, x, pool);
}

cs_tensor cs_net_adaptive_pool(cs_net *net, const char *name, cs_tensor x, uint32_t size)
{
    if (!cs_net_usable(net, &x, 1) || !has_space(net, name, x))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_ADAPTIVE_POOL, &x, 1);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    for (uint32_t i = 1; i < shape.rank; i++)
        shape.dims[i] = size;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

/* ---- operators that keep the shape ---- */

static cs_tensor add_alike(cs_net *net, const char *name, cs_op_kind kind, cs_tensor x,
                           bool in_place)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(kind, &x, 1);
    op.in_place = in_place;
    cs_shape shape = cs_net_tensor(net, x)->shape;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_relu(cs_net *net, const char *name, cs_tensor x)
{
    return add_alike(net, name, CS_OP_RELU, x, true);
}

cs_tensor cs_net_leaky_relu(cs_net *net, const char *name, cs_tensor x)
{
    return add_alike(net, name, CS_OP_RELU, x, true);
}

cs_tensor cs_net_gelu(cs_net *net, const char *name, cs_tensor x)
{
    return add_alike(net, name, CS_OP_GELU, x, false);
}

cs_tensor cs_net_silu(cs_net *net, const char *name, cs_tensor x)
{
    return add_alike(net, name, CS_OP_SILU, x, false);
}

cs_tensor cs_net_tanh(cs_net *net, const char *name, cs_tensor x)
{
    return add_alike(net, name, CS_OP_TANH, x, false);
}

cs_tensor cs_net_softmax(cs_net *net, const char *name, cs_tensor x)
{
    return add_alike(net, name, CS_OP_SOFTMAX, x, false);
}

cs_tensor cs_net_rotary(cs_net *net, const char *name, cs_tensor x)
{
    return add_alike(net, name, CS_OP_ROTARY, x, false);
}

cs_tensor cs_net_copy(cs_net *net, const char *name, cs_tensor x)
{
    return add_alike(net, name, CS_OP_COPY, x, false);
}

cs_tensor cs_net_dropout(cs_net *net, const char *name, cs_tensor x, double probability)
{
    return probability > 0 ? add_alike(net, name, CS_OP_DROPOUT, x, false) : x;
}

static bool divides(cs_net *net, const char *name, uint32_t heads, uint32_t features)
{
    char text[128];
    if (heads > 0 && features % heads == 0)
        return true;
    snprintf(text, sizeof(text), "must have heads that divide its %u features (got %u heads)",
             features, heads);
    fail_at(net, name, text);
    return false;
}

/* A scale, and a shift where `shift`, per channel of an image or per feature of a sequence. */
static cs_tensor add_norm(cs_net *net, const char *name, cs_op_kind kind, cs_tensor x, bool shift)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(kind, &x, 1);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    op.weights = kind == CS_OP_BATCH_NORM ? shape.dims[0] : shape.dims[shape.rank - 1];
    op.biases = shift ? op.weights : 0;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_batch_norm(cs_net *net, const char *name, cs_tensor x)
{
    return add_norm(net, name, CS_OP_BATCH_NORM, x, true);
}

cs_tensor cs_net_layer_norm(cs_net *net, const char *name, cs_tensor x)
{
    return add_norm(net, name, CS_OP_LAYER_NORM, x, true);
}

cs_tensor cs_net_rms_norm(cs_net *net, const char *name, cs_tensor x)
{
    return add_norm(net, name, CS_OP_RMS_NORM, x, false);
}

cs_tensor cs_net_head_norm(cs_net *net, const char *name, cs_tensor x, uint32_t heads)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_RMS_NORM, &x, 1);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    if (!divides(net, name, heads, shape.dims[shape.rank - 1]))
        return CS_NO_TENSOR;
    op.weights = shape.dims[shape.rank - 1] / heads;
    op.groups = heads;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

/* ---- of two tensors or more ---- */

static bool same_shape(const cs_shape *a, const cs_shape *b, uint32_t from)
{
    bool same = a->rank == b->rank;
    for (uint32_t i = from; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

static cs_tensor add_pair(cs_net *net, const char *name, cs_op_kind kind, cs_tensor a, cs_tensor b,
                          bool in_place)
{
    const cs_tensor inputs[] = {a, b};
    if (!cs_net_usable(net, inputs, 2))
        return CS_NO_TENSOR;
    cs_shape shape = cs_net_tensor(net, a)->shape;
    if (!same_shape(&shape, &cs_net_tensor(net, b)->shape, 0)) {
        fail_at(net, name, "reads two tensors of different shapes");
        return CS_NO_TENSOR;
    }
    cs_op op = cs_net_op(kind, inputs, 2);
    op.in_place = in_place;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_mul(cs_net *net, const char *name, cs_tensor a, cs_tensor b)
{
    return add_pair(net, name, CS_OP_MUL, a, b, false);
}

cs_tensor cs_net_add(cs_net *net, const char *name, cs_tensor a, cs_tensor b)
{
    return add_pair(net, name, CS_OP_ADD, a, b, false);
}

cs_tensor cs_net_add_to(cs_net *net, const char *name, cs_tensor a, cs_tensor b)
{
    return add_pair(net, name, CS_OP_ADD, a, b, true);
}

cs_tensor cs_net_concat(cs_net *net, const char *name, const cs_tensor *parts, uint32_t n)
{
    if (!cs_net_usable(net, parts, n))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_CONCAT, parts, n);
    cs_shape shape = cs_net_tensor(net, parts[0])->shape;
    for (uint32_t i = 1; i < n; i++) {
        const cs_shape *part = &cs_net_tensor(net, parts[i])->shape;
        if (!same_shape(&shape, part, 1)) {
            fail_at(net, name, "joins tensors of different sizes");
            return CS_NO_TENSOR;
        }
        shape.dims[0] += part->dims[0];
    }
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_head_concat(cs_net *net, const char *name, const cs_tensor parts[2],
                             uint32_t heads, bool shared)
{
    if (!cs_net_usable(net, parts, 2))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_HEAD_CONCAT, parts, 2);
    cs_shape shape = cs_net_tensor(net, parts[0])->shape;
    const cs_shape *other = &cs_net_tensor(net, parts[1])->shape;
    if (shape.rank != 2 || other->rank != 2 || shape.dims[0] != other->dims[0]) {
        fail_at(net, name, "joins tensors of different sizes");
        return CS_NO_TENSOR;
    }
    if (!divides(net, name, heads, shape.dims[1]) ||
        (!shared && !divides(net, name, heads, other->dims[1])))
        return CS_NO_TENSOR;
    op.heads = heads;
    shape.dims[1] += shared ? heads * other->dims[1] : other->dims[1];
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

/* ---- mixtures of experts ---- */

cs_tensor cs_net_top_k(cs_net *net, const char *name, cs_tensor logits, uint32_t k)
{
    char text[96];
    if (!cs_net_usable(net, &logits, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_TOP_K, &logits, 1);
    cs_shape shape = cs_net_tensor(net, logits)->shape;
    op.experts = shape.dims[shape.rank - 1];
    op.top_k = k;
    if (k < 1 || k > op.experts) {
        snprintf(text, sizeof(text), "must choose from 1 to %u of its experts (got %u)", op.experts,
                 k);
        fail_at(net, name, text);
        return CS_NO_TENSOR;
    }
    shape.dims[shape.rank - 1] = k;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

/* The operator that wrote a tensor; it exists, unless the tensor is an input. */
static uint32_t writer_of(const cs_net *net, cs_tensor tensor)
{
    uint32_t p = net->n_ops;
    while (p > 0 && net->ops[p - 1].output != tensor)
        p--;
    return p - 1;
}

cs_tensor cs_net_dispatch(cs_net *net, const char *name, cs_tensor x, cs_tensor routing,
                          double capacity)
{
    const cs_tensor inputs[] = {x, routing};
    if (!cs_net_usable(net, inputs, 2))
        return CS_NO_TENSOR;
    const cs_op *router = &net->ops[writer_of(net, routing)];
    cs_op op = cs_net_op(CS_OP_DISPATCH, inputs, 2);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    const double routed = (double)shape.dims[0] * router->top_k;
    const double rows =
        capacity > 0 ? ceil(capacity * routed / router->experts) * router->experts : routed;
    op.experts = router->experts;
    op.top_k = router->top_k;
    op.capacity = capacity;
    if (rows > UINT32_MAX) {
        fail_at(net, name, "makes more than 2^32 rows");
        return CS_NO_TENSOR;
    }
    shape.dims[0] = (uint32_t)rows;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_grouped_linear(cs_net *net, const char *name, cs_tensor rows,
                                const cs_grouped_linear *linear)
{
    if (!cs_net_usable(net, &rows, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_GROUPED_LINEAR, &rows, 1);
    cs_shape shape = cs_net_tensor(net, rows)->shape;
    op.experts = linear->experts;
    op.top_k = linear->top_k;
    op.weights = (int64_t)linear->experts * shape.dims[1] * linear->out;
    op.biases = linear->bias ? (int64_t)linear->experts * linear->out : 0;
    shape.dims[1] = linear->out;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_combine(cs_net *net, const char *name, cs_tensor rows, cs_tensor routing)
{
    const cs_tensor inputs[] = {rows, routing};
    if (!cs_net_usable(net, inputs, 2))
        return CS_NO_TENSOR;
    const cs_op *router = &net->ops[writer_of(net, routing)];
    cs_op op = cs_net_op(CS_OP_COMBINE, inputs, 2);
    op.experts = router->experts;
    op.top_k = router->top_k;
    cs_shape shape = {
        2, {cs_net_tensor(net, routing)->shape.dims[0], cs_net_tensor(net, rows)->shape.dims[1]}};
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

/* ---- state spaces ---- */

cs_tensor cs_net_causal_conv(cs_net *net, const char *name, cs_tensor x, uint32_t kernel, bool bias)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_CAUSAL_CONV, &x, 1);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    op.kernel = op.stride = op.dilation = everywhere(1, 1);
    op.kernel.size[0] = kernel;
    op.pad = everywhere(1, kernel - 1);
    op.groups = shape.dims[1];
    op.weights = (int64_t)shape.dims[1] * kernel;
    op.biases = bias ? shape.dims[1] : 0;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_scan(cs_net *net, const char *name, const cs_tensor inputs[4], const cs_scan *scan)
{
    if (!cs_net_usable(net, inputs, 4))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_SCAN, inputs, 4);
    const cs_shape shape = cs_net_tensor(net, inputs[0])->shape;
    if (!divides(net, name, scan->heads, shape.dims[1]))
        return CS_NO_TENSOR;
    if (scan->groups == 0 || scan->heads % scan->groups != 0) {
        fail_at(net, name, "must have groups that divide its heads");
        return CS_NO_TENSOR;
    }
    op.scan = *scan;
    op.weights = 3 * (int64_t)scan->heads;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

/* ---- with learned parameters ---- */

cs_tensor cs_net_linear(cs_net *net, const char *name, cs_tensor x, const cs_linear *linear)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_LINEAR, &x, 1);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    uint32_t *features = &shape.dims[shape.rank - 1];
    op.weights = (int64_t)*features * linear->out;
    op.biases = linear->bias ? linear->out : 0;
    op.tied = linear->tied;
    op.wide = linear->wide;
    op.lender = linear->tied && linear->lender ? writer_of(net, linear->lender) + 1 : 0;
    *features = linear->out;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_embedding(cs_net *net, const char *name, cs_tensor ids, uint32_t rows,
                           uint32_t features)
{
    if (!cs_net_usable(net, &ids, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_EMBEDDING, &ids, 1);
    op.weights = (int64_t)rows * features;
    cs_shape shape = {2, {cs_net_tensor(net, ids)->shape.dims[0], features}};
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

/* The table is that of the operator that makes `of`. */
static void borrow_table(const cs_net *net, cs_op *op, cs_tensor of)
{
    const uint32_t lender = writer_of(net, of);
    op->weights = net->ops[lender].weights;
    op->tied = true;
    op->lender = lender + 1;
}

cs_tensor cs_net_embedding_of(cs_net *net, const char *name, cs_tensor ids, cs_tensor of)
{
    const cs_tensor inputs[] = {ids, of};
    if (!cs_net_usable(net, inputs, 2))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_EMBEDDING, &ids, 1);
    borrow_table(net, &op, of);
    cs_shape shape = {
        2, {cs_net_tensor(net, ids)->shape.dims[0], cs_net_tensor(net, of)->shape.dims[1]}};
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_add_table(cs_net *net, const char *name, cs_tensor x, int64_t parameters)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_ADD, &x, 1);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    op.weights = parameters;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_add_table_of(cs_net *net, const char *name, cs_tensor x, cs_tensor of)
{
    const cs_tensor inputs[] = {x, of};
    if (!cs_net_usable(net, inputs, 2))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_ADD, &x, 1);
    borrow_table(net, &op, of);
    return cs_net_add_op(net, name, &op, &cs_net_tensor(net, x)->shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_add_learned(cs_net *net, const char *name, cs_tensor x)
{
    return x == CS_NO_TENSOR ? x : cs_net_add_table(net, name, x, cs_net_tensor(net, x)->elements);
}

cs_tensor cs_net_first_token(cs_net *net, const char *name, cs_tensor x)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_CONCAT, &x, 1);
    cs_shape shape = cs_net_tensor(net, x)->shape;
    shape.dims[0]++;
    op.weights = shape.dims[1];
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_attention(cs_net *net, const char *name, const cs_tensor qkv[3],
                           const cs_attention *attention)
{
    if (!cs_net_usable(net, qkv, 3))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(CS_OP_ATTENTION, qkv, 3);
    op.attention = *attention;
    cs_shape shape = cs_net_tensor(net, qkv[0])->shape;
    const uint32_t values = cs_net_tensor(net, qkv[2])->shape.dims[1];
    const uint32_t keys = cs_net_tensor(net, qkv[1])->shape.dims[0];
    char text[128];
    if (!divides(net, name, attention->heads, shape.dims[1]) ||
        !divides(net, name, attention->kv_heads, values))
        return CS_NO_TENSOR;
    if (attention->kernel != CS_ATTENTION_FLASH && /* a fused kernel never has the whole matrix */
        (double)shape.dims[0] * keys * attention->heads > CS_MOST_ELEMENTS) {
        snprintf(text, sizeof(text), "has too many weights: %u tokens, squared, of %u heads",
                 shape.dims[0] > keys ? shape.dims[0] : keys, attention->heads);
        fail_at(net, name, text);
        return CS_NO_TENSOR;
    }
    op.weights = (int64_t)attention->heads * (attention->buckets + attention->sinks);
    shape.dims[1] = values / attention->kv_heads * attention->heads;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

/* ---- views ---- */

static cs_tensor add_view(cs_net *net, const char *name, cs_tensor x, const cs_shape *shape)
{
    cs_op op = cs_net_op(CS_OP_VIEW, &x, 1);
    return cs_net_add_op(net, name, &op, shape, CS_ELEMENT_ACTIVATION);
}

cs_tensor cs_net_view(cs_net *net, const char *name, cs_tensor x, const cs_shape *shape)
{
    double elements = 1;
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    for (uint32_t i = 0; i < shape->rank; i++)
        elements *= shape->dims[i];
    if (elements > (double)cs_net_tensor(net, x)->elements) {
        fail_at(net, name, "has more elements than what it is a view of");
        return CS_NO_TENSOR;
    }
    return add_view(net, name, x, shape);
}

cs_tensor cs_net_flatten(cs_net *net, const char *name, cs_tensor x)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    const cs_tensor_info *info = cs_net_tensor(net, x);
    if (info->elements > UINT32_MAX) {
        fail_at(net, name, "has more than 2^32 features");
        return CS_NO_TENSOR;
    }
    return add_view(net, name, x, &(cs_shape){1, {(uint32_t)info->elements}});
}

cs_tensor cs_net_tokens(cs_net *net, const char *name, cs_tensor x)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    const cs_tensor_info *info = cs_net_tensor(net, x);
    uint32_t channels = info->shape.dims[0];
    return add_view(net, name, x,
                    &(cs_shape){2, {(uint32_t)(info->elements / channels), channels}});
}

cs_tensor cs_net_features(cs_net *net, const char *name, cs_tensor x, uint32_t features)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    return add_view(net, name, x, &(cs_shape){2, {cs_net_tensor(net, x)->shape.dims[0], features}});
}

cs_tensor cs_net_take_first(cs_net *net, const char *name, cs_tensor x)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    return add_view(net, name, x, &(cs_shape){1, {cs_net_tensor(net, x)->shape.dims[1]}});
}

/* ---- losses ---- */

static cs_tensor add_loss(cs_net *net, const char *name, cs_op_kind kind, cs_tensor x)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(kind, &x, 1);
    return cs_net_add_op(net, name, &op, &(cs_shape){1, {1}}, CS_ELEMENT_FLOAT32);
}

cs_tensor cs_net_cross_entropy(cs_net *net, const char *name, cs_tensor x)
{
    return add_loss(net, name, CS_OP_CROSS_ENTROPY, x);
}

cs_tensor cs_net_squared_error(cs_net *net, const char *name, cs_tensor x)
{
    return add_loss(net, name, CS_OP_SQUARED_ERROR, x);
}
