#include "sim/model/net-file-ops.h"

#include <stdio.h>

static const cs_field rows_field = {"size", CS_FIELD_COUNT};
static const cs_field name_field = {"name", CS_FIELD_TEXT};

static const char *const kind_names[] = {
#define KIND_NAME(name, text, group)                                                               \
    [CS_OP_##name] = CS_OP_##name == CS_OP_EXCHANGE ? NULL : (text), /* the last */
    CS_OP_KIND_MAP(KIND_NAME)
#undef KIND_NAME
};

#define AT(member) offsetof(cs_op_entry, member)
#define COUNT(key, member, text)                                                                   \
    {                                                                                              \
        key, CS_FIELD_COUNT, AT(member), .fallback = "0", .doc = text                              \
    }
#define FLAG(key, member, text)                                                                    \
    {                                                                                              \
        key, CS_FIELD_BOOL, AT(member), .fallback = "false", .doc = text                           \
    }
#define SIZES(key, member, text)                                                                   \
    {                                                                                              \
        key, CS_FIELD_LIST, AT(member), .fallback = "", .of = &rows_field, .most = CS_SHAPE_MAX,   \
                                        .doc = text, .shape = "[size, ...]"                        \
    }

const cs_field cs_op_entry_fields[] = {
    {"name", CS_FIELD_TEXT, AT(name), .doc = "unique in the network"},
    {"kind", CS_FIELD_CHOICE, AT(kind), .choices = kind_names, .doc = "what it does"},
    {"block", CS_FIELD_TEXT, AT(block), .fallback = "", .doc = "layer of a coarse chain"},
    {"tied_to", CS_FIELD_TEXT, AT(tied_to), .fallback = "",
     .doc = "operator before it, whose weights it uses"},
    {"inputs", CS_FIELD_LIST, AT(inputs), .of = &name_field, .least = 1, .most = CS_OP_INPUTS_MAX,
     .doc = "what it reads", .shape = "[name, ...]"},
    SIZES("output_shape", output_shape, "of a sample"),
    SIZES("kernel", kernel, "per direction"),
    SIZES("stride", stride, "per direction; 1 where it is left out"),
    SIZES("padding", pad, "per direction, on both sides"),
    SIZES(
        "dilation", dilation,
        "per direction: pixels from one that the kernel reads to the next; 1 where it is left out"),
    COUNT("groups", groups, "of channels"),
    COUNT("heads", heads, "of attention, of a norm or scan by heads, of a concatenation"),
    COUNT("kv_heads", kv_heads, "of keys and values; as many as heads where they are left out"),
    COUNT("state", state, "features of a scan's state"),
    COUNT("chunk", chunk, "tokens of a scan's chunk"),
    COUNT("scan_groups", scan_groups, "of a scan's heads"),
    COUNT("experts", experts, "of a grouped product"),
    COUNT("top_k", top_k, "number of experts that a token is routed to"),
    COUNT("window", window, "tokens that a token attends to"),
    COUNT("buckets", buckets, "of relative positions"),
    {"capacity", CS_FIELD_NUMBER, AT(capacity), .fallback = "0",
     .doc = "rows of an expert by its equal share; 0: those that it gets"},
    {"dropout", CS_FIELD_NUMBER, AT(dropout), .fallback = "0", .max = 1,
     .doc = "of the weights of an attention"},
    {"weights", CS_FIELD_INTEGER, AT(weights), .fallback = "0", .doc = "parameters; of tables"},
    {"biases", CS_FIELD_INTEGER, AT(biases), .fallback = "0", .doc = "above 0: it has some"},
    FLAG("causal", causal, "a token attends to those before it"),
    FLAG("math", math, "attention keeps the matrix of its weights"),
    FLAG("sinks", sinks, "a learned logit per head joins each softmax"),
    FLAG("padded", padded, "a mask leaves out the padding of samples"),
    FLAG("wide", wide, "no operand is cast to a narrow type"),
    FLAG("frozen", frozen, "its weights are not trained"),
    {"stored", CS_FIELD_NUMBER, AT(stored), .fallback = "0", .max = 8,
     .doc = "bytes of each stored frozen weight of a linear layer; a pass converts weights to the "
            "network's precision first. 0: they are stored in it"},
    FLAG("in_place", in_place, "an addition writes over its first input"),
    {0}};

const cs_field cs_op_entry_figures[] = {
#define FIGURE(key)                                                                                \
    {                                                                                              \
        key, CS_FIELD_JSON, 0, .fallback = ""                                                      \
    }
    FIGURE("input_shapes"),
    FIGURE("keeps_input"),
    FIGURE("keeps_output"),
    FIGURE("input_bytes"),
    FIGURE("output_bytes"),
    FIGURE("macs"),
    FIGURE("forward_flop"),
    FIGURE("backward_input_flop"),
    FIGURE("backward_weight_flop"),
    FIGURE("forward_moved_bytes"),
    FIGURE("backward_input_moved_bytes"),
    FIGURE("backward_weight_moved_bytes"),
    FIGURE("extra_kept_bytes"),
    FIGURE("workspace_bytes"),
    FIGURE("forward_s"),
    FIGURE("backward_input_s"),
    FIGURE("backward_weight_s"),
#undef FIGURE
    {0}};

/* ---- making ---- */

static cs_status wrong(const cs_op_making *m, const char *key, const char *text)
{
    const cs_json_place at = {.up = m->place, .key = key};
    return cs_json_invalid(&at, m->error, "%s", text);
}

static const cs_shape *shape_of(const cs_op_making *m, uint32_t input)
{
    return &cs_net_tensor(m->net, m->in[input])->shape;
}

/* The features, or channels, that it makes; 0 where its output is not said. */
static uint32_t made_features(const cs_op_making *m)
{
    const cs_list *shape = &m->entry->output_shape;
    if (shape->n == 0)
        return 0;
    return cs_size_at(shape, m->entry->kind == CS_OP_CONV ? 0 : shape->n - 1);
}

static cs_tensor make_conv(cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    cs_conv conv = {.out = made_features(m), .groups = e->groups, .bias = e->biases > 0};
    for (uint32_t i = 0; i < e->kernel.n && i < CS_SPACE_MAX; i++) {
        conv.kernels[i] = cs_size_at(&e->kernel, i);
        conv.pads[i] = i < e->pad.n ? cs_size_at(&e->pad, i) : 0;
    }
    conv.stride = e->stride.n > 0 ? cs_size_at(&e->stride, 0) : 1;
    conv.dilation = e->dilation.n > 0 ? cs_size_at(&e->dilation, 0) : 1;
    return cs_net_conv(m->net, m->name, m->in[0], &conv);
}

static cs_tensor make_linear(cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    cs_linear linear = {.out = made_features(m), .bias = e->biases > 0, .wide = e->wide};
    if (e->tied_to) {
        linear.tied = true;
        linear.lender = m->lender;
    }
    return cs_net_linear(m->net, m->name, m->in[0], &linear);
}

static cs_tensor make_norm(cs_op_making *m)
{
    cs_net *net = m->net;
    switch (m->entry->kind) {
    case CS_OP_BATCH_NORM:
        return cs_net_batch_norm(net, m->name, m->in[0]);
    case CS_OP_LAYER_NORM:
        return cs_net_layer_norm(net, m->name, m->in[0]);
    default:
        return m->entry->heads > 1 ? cs_net_head_norm(net, m->name, m->in[0], m->entry->heads)
                                   : cs_net_rms_norm(net, m->name, m->in[0]);
    }
}

static cs_tensor make_alike(cs_op_making *m)
{
    static cs_tensor (*const calls[CS_N_OP_KINDS])(cs_net *, const char *, cs_tensor) = {
        [CS_OP_RELU] = cs_net_relu,
        [CS_OP_GELU] = cs_net_gelu,
        [CS_OP_SILU] = cs_net_silu,
        [CS_OP_TANH] = cs_net_tanh,
        [CS_OP_ROTARY] = cs_net_rotary,
        [CS_OP_SOFTMAX] = cs_net_softmax,
        [CS_OP_COPY] = cs_net_copy,
        [CS_OP_CROSS_ENTROPY] = cs_net_cross_entropy,
        [CS_OP_SQUARED_ERROR] = cs_net_squared_error,
    };
    return calls[m->entry->kind](m->net, m->name, m->in[0]);
}

static cs_tensor make_dropout(cs_op_making *m)
{
    return cs_net_dropout(m->net, m->name, m->in[0], 1);
}

static cs_tensor make_mul(cs_op_making *m)
{
    return cs_net_mul(m->net, m->name, m->in[0], m->in[1]);
}

/* Of two tensors, or of one and a learned table. */
static cs_tensor make_add(cs_op_making *m)
{
    cs_net *net = m->net;
    if (m->n == 1 && m->entry->tied_to)
        return cs_net_add_table_of(net, m->name, m->in[0], m->lender);
    if (m->n == 1)
        return cs_net_add_table(net, m->name, m->in[0], m->entry->weights);
    return m->entry->in_place ? cs_net_add_to(net, m->name, m->in[0], m->in[1])
                              : cs_net_add(net, m->name, m->in[0], m->in[1]);
}

/* Of one tensor: a learned token in front of it. */
static cs_tensor make_concat(cs_op_making *m)
{
    return m->n == 1 ? cs_net_first_token(m->net, m->name, m->in[0])
                     : cs_net_concat(m->net, m->name, m->in, m->n);
}

static cs_tensor make_pool(cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    const cs_window window = {.kernel = cs_size_at(&e->kernel, 0),
                              .stride = e->stride.n > 0 ? cs_size_at(&e->stride, 0) : 0,
                              .pad = e->pad.n > 0 ? cs_size_at(&e->pad, 0) : 0,
                              .dilation = e->dilation.n > 0 ? cs_size_at(&e->dilation, 0) : 1};
    return e->kind == CS_OP_MAX_POOL ? cs_net_max_pool(m->net, m->name, m->in[0], &window)
                                     : cs_net_avg_pool(m->net, m->name, m->in[0], &window);
}

static cs_tensor make_adaptive_pool(cs_op_making *m)
{
    return cs_net_adaptive_pool(m->net, m->name, m->in[0], made_features(m));
}

static cs_tensor make_attention(cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    const cs_attention attention = {.heads = e->heads,
                                    .kv_heads = e->kv_heads > 0 ? e->kv_heads : e->heads,
                                    .kernel = e->math ? CS_ATTENTION_MATH : CS_ATTENTION_FLASH,
                                    .causal = e->causal,
                                    .dropout = e->dropout,
                                    .window = e->window,
                                    .buckets = e->buckets,
                                    .sinks = e->sinks,
                                    .padded = e->padded};
    return cs_net_attention(m->net, m->name, m->in, &attention);
}

static cs_tensor make_embedding(cs_op_making *m)
{
    const uint32_t features = made_features(m);
    if (m->entry->tied_to)
        return cs_net_embedding_of(m->net, m->name, m->in[0], m->lender);
    return cs_net_embedding(m->net, m->name, m->in[0], (uint32_t)(m->entry->weights / features),
                            features);
}

static cs_tensor make_view(cs_op_making *m)
{
    cs_shape shape = {m->entry->output_shape.n, {0}};
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = cs_size_at(&m->entry->output_shape, i);
    return cs_net_view(m->net, m->name, m->in[0], &shape);
}

/* A part with as many features as it adds to each head but for those of all heads is shared. */
static cs_tensor make_head_concat(cs_op_making *m)
{
    const bool shared = made_features(m) != shape_of(m, 0)->dims[1] + shape_of(m, 1)->dims[1];
    return cs_net_head_concat(m->net, m->name, m->in, m->entry->heads, shared);
}

static cs_tensor make_top_k(cs_op_making *m)
{
    return cs_net_top_k(m->net, m->name, m->in[0], m->entry->top_k);
}

static cs_tensor make_dispatch(cs_op_making *m)
{
    return cs_net_dispatch(m->net, m->name, m->in[0], m->in[1], m->entry->capacity);
}

static cs_tensor make_combine(cs_op_making *m)
{
    return cs_net_combine(m->net, m->name, m->in[0], m->in[1]);
}

static cs_tensor make_grouped_linear(cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    const cs_grouped_linear linear = {
        .out = made_features(m), .experts = e->experts, .top_k = e->top_k, .bias = e->biases > 0};
    return cs_net_grouped_linear(m->net, m->name, m->in[0], &linear);
}

static cs_tensor make_causal_conv(cs_op_making *m)
{
    return cs_net_causal_conv(m->net, m->name, m->in[0], cs_size_at(&m->entry->kernel, 0),
                              m->entry->biases > 0);
}

static cs_tensor make_scan(cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    const cs_scan scan = {e->heads, e->scan_groups, e->state, e->chunk};
    return cs_net_scan(m->net, m->name, m->in, &scan);
}

/* What a kind of operator needs before it can be made. */
typedef struct kind_rule {
    uint32_t least, most; /* inputs */
    uint32_t rank;        /* of all of them; 0: any */
    bool output, kernel, heads, experts, routed, weights;
    cs_tensor (*make)(cs_op_making *m);
} kind_rule;

#define ALIKE                                                                                      \
    {                                                                                              \
        1, 1, 0, .make = make_alike                                                                \
    }
static const kind_rule rules[CS_N_OP_KINDS] = {
    [CS_OP_CONV] = {1, 1, 0, .output = true, .kernel = true, .make = make_conv},
    [CS_OP_LINEAR] = {1, 1, 0, .output = true, .make = make_linear},
    [CS_OP_BATCH_NORM] = {1, 1, 0, .make = make_norm},
    [CS_OP_LAYER_NORM] = {1, 1, 0, .make = make_norm},
    [CS_OP_RMS_NORM] = {1, 1, 0, .make = make_norm},
    [CS_OP_RELU] = ALIKE,
    [CS_OP_GELU] = ALIKE,
    [CS_OP_SILU] = ALIKE,
    [CS_OP_TANH] = ALIKE,
    [CS_OP_ROTARY] = ALIKE,
    [CS_OP_SOFTMAX] = ALIKE,
    [CS_OP_COPY] = ALIKE,
    [CS_OP_CROSS_ENTROPY] = ALIKE,
    [CS_OP_SQUARED_ERROR] = ALIKE,
    [CS_OP_DROPOUT] = {1, 1, 0, .make = make_dropout},
    [CS_OP_MUL] = {2, 2, 0, .make = make_mul},
    [CS_OP_ADD] = {1, 2, 0, .make = make_add},
    [CS_OP_CONCAT] = {1, CS_OP_INPUTS_MAX, 0, .make = make_concat},
    [CS_OP_MAX_POOL] = {1, 1, 0, .kernel = true, .make = make_pool},
    [CS_OP_AVG_POOL] = {1, 1, 0, .kernel = true, .make = make_pool},
    [CS_OP_ADAPTIVE_POOL] = {1, 1, 0, .output = true, .make = make_adaptive_pool},
    [CS_OP_ATTENTION] = {3, 3, 2, .heads = true, .make = make_attention},
    [CS_OP_EMBEDDING] = {1, 1, 1, .output = true, .weights = true, .make = make_embedding},
    [CS_OP_VIEW] = {1, 1, 0, .output = true, .make = make_view},
    [CS_OP_HEAD_CONCAT] = {2, 2, 2, .output = true, .heads = true, .make = make_head_concat},
    [CS_OP_TOP_K] = {1, 1, 2, .make = make_top_k},
    [CS_OP_DISPATCH] = {2, 2, 2, .routed = true, .make = make_dispatch},
    [CS_OP_GROUPED_LINEAR] = {1, 1, 2, .output = true, .experts = true,
                              .make = make_grouped_linear},
    [CS_OP_COMBINE] = {2, 2, 2, .routed = true, .make = make_combine},
    [CS_OP_CAUSAL_CONV] = {1, 1, 2, .kernel = true, .make = make_causal_conv},
    [CS_OP_SCAN] = {4, 4, 2, .heads = true, .make = make_scan},
};

/* The same size of a kernel in all directions, where an operator has one number. */
static bool is_even(const cs_list *sizes)
{
    bool even = true;
    for (uint32_t i = 1; i < sizes->n; i++)
        even &= cs_size_at(sizes, i) == cs_size_at(sizes, 0);
    return even;
}

static bool is_positive(const cs_list *sizes)
{
    bool positive = true;
    for (uint32_t i = 0; i < sizes->n; i++)
        positive &= cs_size_at(sizes, i) > 0;
    return positive;
}

static cs_status check_windows(const cs_op_making *m, const kind_rule *rule)
{
    const cs_op_entry *e = m->entry;
    const uint32_t rank = e->kind == CS_OP_CAUSAL_CONV ? 1 : shape_of(m, 0)->rank - 1;
    char text[96];
    if (!rule->kernel)
        return CS_OK;
    snprintf(text, sizeof(text), "must have %u sizes above 0, one per direction (got %u)", rank,
             e->kernel.n);
    if (rank == 0)
        return wrong(m, "inputs", "must be an image, with channels and at least one direction");
    if (e->kernel.n != rank || !is_positive(&e->kernel))
        return wrong(m, "kernel", text);
    if (!is_even(&e->stride) || !is_positive(&e->stride))
        return wrong(m, "stride", "must be the same in all directions, and above 0");
    if (!is_even(&e->dilation) || !is_positive(&e->dilation))
        return wrong(m, "dilation", "must be the same in all directions, and above 0");
    if (e->kind != CS_OP_CONV && (!is_even(&e->kernel) || !is_even(&e->pad)))
        return wrong(m, "kernel", "must be the same in all directions, as must \"padding\"");
    return CS_OK;
}

static bool is_top_k(const cs_op_making *m, uint32_t input)
{
    const cs_net *net = m->net;
    const uint32_t writer = cs_net_writer(net, m->in[input]);
    return writer < net->n_ops && net->ops[writer].kind == CS_OP_TOP_K;
}

static cs_status check_inputs(const cs_op_making *m, const kind_rule *rule)
{
    char text[128];
    if (m->n < rule->least || m->n > rule->most) {
        snprintf(text, sizeof(text), "must be %u to %u for the kind \"%s\" (got %u)", rule->least,
                 rule->most, kind_names[m->entry->kind], m->n);
        return wrong(m, "inputs", text);
    }
    for (uint32_t i = 0; rule->rank > 0 && i < m->n; i++)
        if (shape_of(m, i)->rank != rule->rank)
            return wrong(m, "inputs",
                         rule->rank == 1 ? "must be token ids, [tokens]"
                                         : "must be [tokens, features] each");
    if (rule->routed && !is_top_k(m, 1))
        return wrong(m, "inputs", "must have an operator of kind \"top_k\" as the second one");
    if (m->entry->kind == CS_OP_ATTENTION && shape_of(m, 1)->dims[0] != shape_of(m, 2)->dims[0])
        return wrong(m, "inputs", "must have as many tokens of keys as of values");
    return CS_OK;
}

cs_status cs_op_making_check(const cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    const kind_rule *rule = &rules[e->kind];
    CS_TRY(check_inputs(m, rule));
    CS_TRY(check_windows(m, rule));
    if (rule->output && (e->output_shape.n == 0 || e->output_shape.n > CS_SHAPE_MAX ||
                         !is_positive(&e->output_shape)))
        return wrong(m, "output_shape", "must be given, with sizes above 0");
    if (rule->heads && e->heads == 0)
        return wrong(m, "heads", "must be given, above 0");
    if (e->kind == CS_OP_SCAN && (e->scan_groups == 0 || e->state == 0 || e->chunk == 0))
        return wrong(m, "scan_groups", "must be given above 0, as must \"state\" and \"chunk\"");
    if (rule->experts && (e->experts == 0 || e->top_k == 0 || e->top_k > e->experts))
        return wrong(m, "experts", "must be given, with \"top_k\" from 1 to as many");
    if (rule->weights && !e->tied_to &&
        (e->weights < made_features(m) || e->weights % made_features(m) != 0 ||
         e->weights / made_features(m) > UINT32_MAX))
        return wrong(m, "weights", "must be rows of the output's features");
    return CS_OK;
}

/* What it made is what the file says. */
static cs_status check_made(const cs_op_making *m)
{
    const cs_net *net = m->net;
    const cs_op *op = &net->ops[net->n_ops - 1];
    const cs_shape *made = &cs_net_tensor(net, op->output)->shape;
    const cs_list *said = &m->entry->output_shape;
    const cs_json_place shape = {.up = m->place, .key = "output_shape"};
    const cs_json_place weights = {.up = m->place, .key = "weights"};
    char text[CS_SHAPE_TEXT_BYTES];
    bool same = said->n == 0 || said->n == made->rank;
    for (uint32_t i = 0; same && i < said->n; i++)
        same = cs_size_at(said, i) == made->dims[i];
    if (!same)
        return cs_json_invalid(&shape, m->error, "must be %s, what it makes of its input",
                               cs_shape_text(made, text, sizeof(text)));
    if (!op->tied && m->entry->weights > 0 && m->entry->weights != op->weights)
        return cs_json_invalid(&weights, m->error, "must be %lld, or left out (got %lld)",
                               (long long)op->weights, (long long)m->entry->weights);
    return CS_OK;
}

cs_status cs_op_make(cs_op_making *m)
{
    cs_net *net = m->net;
    net->place = m->place;
    net->frozen = m->entry->frozen;
    (void)rules[m->entry->kind].make(m);
    net->frozen = false;
    net->place = NULL;
    CS_TRY(net->status == CS_OK ? check_made(m) : net->status);
    cs_op *made = &net->ops[net->n_ops - 1];
    if (m->entry->stored > 0 && (made->kind != CS_OP_LINEAR || !made->frozen || made->tied))
        return wrong(m, "stored", "is of linear layers with frozen weights of their own");
    made->stored = m->entry->stored;
    return CS_OK;
}
