#include "sim/workload/net-file.h"

#include "sim/base/field.h"
#include "sim/base/text.h"

#include <stdio.h>
#include <string.h>

/* ---- writing ---- */

enum { NAME_BYTES = 192 };

static uint32_t writer_of(const cs_net *net, cs_tensor tensor)
{
    uint32_t p = 0;
    while (p < net->n_ops && net->ops[p].output != tensor)
        p++;
    return p;
}

/* Of an operator's output its name; inputs of the network are "input", "input.1", ... */
static const char *name_of(const cs_net *net, cs_tensor tensor, char text[NAME_BYTES])
{
    const uint32_t writer = writer_of(net, tensor);
    uint32_t n = 0;
    if (writer < net->n_ops)
        return net->ops[writer].name;
    for (cs_tensor t = 0; t < tensor; t++)
        n += writer_of(net, t) == net->n_ops;
    snprintf(text, NAME_BYTES, n > 0 ? "input.%u" : "input", n);
    return text;
}

static bool add_sizes(cJSON *object, const char *key, const uint32_t *sizes, uint32_t n)
{
    cJSON *array = cJSON_AddArrayToObject(object, key);
    bool done = array != NULL;
    for (uint32_t i = 0; done && i < n; i++)
        done = cJSON_AddItemToArray(array, cJSON_CreateNumber(sizes[i]));
    return done;
}

static bool add_window(cJSON *object, const cs_op *op)
{
    if (op->kernel.rank == 0)
        return true;
    return add_sizes(object, "kernel", op->kernel.size, op->kernel.rank) &&
           add_sizes(object, "stride", op->stride.size, op->stride.rank) &&
           add_sizes(object, "padding", op->pad.size, op->pad.rank) &&
           (op->dilation.size[0] == 1 ||
            add_sizes(object, "dilation", op->dilation.size, op->dilation.rank)) &&
           cJSON_AddNumberToObject(object, "groups", op->groups);
}

/* What operators of mixtures and of attention have besides their shapes; 0 is left out. */
static bool add_attributes(cJSON *object, const cs_op *op)
{
    const struct {
        const char *key;
        double value;
    } attributes[] = {
        {"heads", op->kind == CS_OP_RMS_NORM && op->groups > 1
                      ? op->groups
                      : op->heads + op->scan.heads + op->attention.heads},
        {"kv_heads", op->attention.kv_heads},
        {"dropout", op->attention.dropout},
        {"buckets", op->attention.buckets},
        {"state", op->scan.state},
        {"chunk", op->scan.chunk},
        {"scan_groups", op->scan.groups},
        {"experts", op->experts},
        {"top_k", op->top_k},
        {"capacity", op->capacity},
        {"window", op->attention.window},
    };
    bool done = true;
    for (size_t i = 0; done && i < sizeof(attributes) / sizeof(attributes[0]); i++)
        done = attributes[i].value <= 0 ||
               cJSON_AddNumberToObject(object, attributes[i].key, attributes[i].value);
    return done;
}

/* What is so or not; what is not is left out. */
static bool add_flags(cJSON *object, const cs_op *op)
{
    const struct {
        const char *key;
        bool is;
    } flags[] = {
        {"causal", op->attention.causal},
        {"math", op->kind == CS_OP_ATTENTION && op->attention.kernel == CS_ATTENTION_MATH},
        {"sinks", op->attention.sinks},
        {"padded", op->attention.padded},
        {"wide", op->wide},
        {"frozen", op->frozen},
    };
    bool done = true;
    for (size_t i = 0; done && i < sizeof(flags) / sizeof(flags[0]); i++)
        done = !flags[i].is || cJSON_AddTrueToObject(object, flags[i].key);
    return done;
}

static bool add_shapes(cJSON *object, const cs_net *net, const cs_op *op)
{
    const cs_shape *out = &cs_net_tensor(net, op->output)->shape;
    cJSON *inputs = cJSON_AddArrayToObject(object, "input_shapes");
    bool done = inputs != NULL;
    for (uint32_t i = 0; done && i < op->n_inputs; i++) {
        const cs_shape *in = &cs_net_tensor(net, op->inputs[i])->shape;
        cJSON *shape = cJSON_CreateArray();
        done = cJSON_AddItemToArray(inputs, shape);
        for (uint32_t d = 0; done && d < in->rank; d++)
            done = cJSON_AddItemToArray(shape, cJSON_CreateNumber(in->dims[d]));
    }
    return done && add_sizes(object, "output_shape", out->dims, out->rank) &&
           add_window(object, op) && add_attributes(object, op) && add_flags(object, op);
}

static bool add_names(const cs_net *net, const cs_op *op, cJSON *object)
{
    char text[NAME_BYTES];
    cJSON *inputs = cJSON_AddArrayToObject(object, "inputs");
    bool done = inputs != NULL;
    for (uint32_t i = 0; done && i < op->n_inputs; i++)
        done = cJSON_AddItemToArray(inputs, cJSON_CreateString(name_of(net, op->inputs[i], text)));
    const uint32_t lender = op->tied ? cs_net_lender(net, (uint32_t)(op - net->ops)) : net->n_ops;
    if (done && lender < net->n_ops)
        done = cJSON_AddStringToObject(object, "tied_to", net->ops[lender].name) != NULL;
    return done;
}

bool cs_net_op_write(const cs_net *net, const cs_op *op, cJSON *object)
{
    return cJSON_AddStringToObject(object, "name", op->name) &&
           cJSON_AddStringToObject(object, "kind", cs_op_kind_name(op->kind)) &&
           cJSON_AddStringToObject(object, "block", net->blocks[op->block]) &&
           add_names(net, op, object) && add_shapes(object, net, op);
}

static cJSON *input_json(const cs_net *net, cs_tensor tensor)
{
    const cs_tensor_info *info = cs_net_tensor(net, tensor);
    char text[NAME_BYTES];
    cJSON *object = cJSON_CreateObject();
    if (object && cJSON_AddStringToObject(object, "name", name_of(net, tensor, text)) &&
        add_sizes(object, "shape", info->shape.dims, info->shape.rank) &&
        cJSON_AddBoolToObject(object, "ids", info->element == CS_ELEMENT_INT64) &&
        (!info->loaded || cJSON_AddTrueToObject(object, "loaded")))
        return object;
    cJSON_Delete(object);
    return NULL;
}

bool cs_net_inputs_write(const cs_net *net, cJSON *root)
{
    cJSON *inputs = cJSON_AddArrayToObject(root, "inputs");
    bool done = inputs != NULL;
    for (cs_tensor t = 0; done && t < net->n_tensors; t++)
        if (writer_of(net, t) == net->n_ops)
            done = cJSON_AddItemToArray(inputs, input_json(net, t));
    if (done && net->carried > 0)
        done = cJSON_AddStringToObject(root, "carried",
                                       net->ops[writer_of(net, net->carried)].name) != NULL;
    return done;
}

static bool add_operator(const cs_net *net, const cs_op *op, cJSON *list)
{
    const int64_t weights = op->tied ? 0 : op->weights;
    cJSON *object = cJSON_CreateObject();
    return cJSON_AddItemToArray(list, object) && cs_net_op_write(net, op, object) &&
           cJSON_AddBoolToObject(object, "in_place", op->in_place) &&
           cJSON_AddNumberToObject(object, "weights", (double)weights) &&
           cJSON_AddNumberToObject(object, "biases", (double)op->biases);
}

bool cs_net_operators_write(const cs_net *net, const cs_net_chain *chain, cJSON *root)
{
    cJSON *layers = cJSON_GetObjectItemCaseSensitive(root, "layers");
    bool done = cs_net_inputs_write(net, root);
    for (uint32_t l = 0; done && l < chain->n_layers; l++) {
        cJSON *list = cJSON_AddArrayToObject(cJSON_GetArrayItem(layers, (int)l), "operators");
        done = list != NULL;
        for (uint32_t p = chain->layers[l].first; done && p < chain->layers[l].end; p++)
            done = add_operator(net, &net->ops[p], list);
    }
    return done;
}

/* ---- what stands in a file ---- */

typedef struct input_entry {
    const char *name;
    cs_list shape; /* uint32_t */
    bool ids, loaded;
} input_entry;

typedef struct op_entry {
    const char *name, *block, *tied_to;
    uint32_t kind;
    cs_list inputs;                                      /* const char * */
    cs_list output_shape, kernel, stride, pad, dilation; /* uint32_t */
    uint32_t groups, heads, kv_heads, state, chunk, scan_groups;
    uint32_t experts, top_k, window, buckets;
    double capacity, dropout;
    int64_t weights, biases;
    bool causal, math, sinks, padded, wide, frozen, in_place;
} op_entry;

static const char *const kind_names[] = {
#define KIND_NAME(name, text, group)                                                               \
    [CS_OP_##name] = CS_OP_##name == CS_OP_EXCHANGE ? NULL : (text), /* the last */
    CS_OP_KIND_MAP(KIND_NAME)
#undef KIND_NAME
};

static const cs_field size_field = {"size", CS_FIELD_COUNT, .min = 1};
static const cs_field rows_field = {"size", CS_FIELD_COUNT};
static const cs_field name_field = {"name", CS_FIELD_TEXT};

static const cs_field input_fields[] = {
    {"name", CS_FIELD_TEXT, offsetof(input_entry, name), .doc = "by which operators read it"},
    {"shape", CS_FIELD_LIST, offsetof(input_entry, shape), .of = &size_field, .least = 1,
     .most = CS_SHAPE_MAX, .doc = "of a sample", .shape = "[size, ...]"},
    {"ids", CS_FIELD_BOOL, offsetof(input_entry, ids), .fallback = "false",
     .doc = "it is token ids"},
    {"loaded", CS_FIELD_BOOL, offsetof(input_entry, loaded), .fallback = "false",
     .doc = "each operator that reads it loads it by itself"},
    {0}};

#define AT(member) offsetof(op_entry, member)
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

static const cs_field op_fields[] = {
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
    FLAG("in_place", in_place, "an addition writes over its first input"),
    {0}};

/* Figures that `sim model --json` prints besides; they follow from the rest. */
static const cs_field figure_fields[] = {
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

/* ---- reading ---- */

typedef struct reader {
    cs_net *net;
    cs_error *error;
    cs_arena arena; /* of entries, and of the names of inputs */
    const char **inputs;
    cs_tensor *tensors;
    uint32_t n_inputs;
} reader;

/* An operator, while it is made. */
typedef struct making {
    reader *r;
    const op_entry *entry;
    const cs_json_place *place;
    const char *name; /* within its block */
    cs_tensor in[CS_OP_INPUTS_MAX];
    cs_tensor lender; /* the output of the operator that it is tied to */
    uint32_t n;
} making;

static cs_status wrong(const making *m, const char *key, const char *text)
{
    const cs_json_place at = {.up = m->place, .key = key};
    return cs_json_invalid(&at, m->r->error, "%s", text);
}

static const cs_shape *shape_of(const making *m, uint32_t input)
{
    return &cs_net_tensor(m->r->net, m->in[input])->shape;
}

static uint32_t size_at(const cs_list *list, uint32_t i)
{
    return ((const uint32_t *)list->items)[i];
}

/* The features, or channels, that it makes; 0 where its output is not said. */
static uint32_t made_features(const making *m)
{
    const cs_list *shape = &m->entry->output_shape;
    if (shape->n == 0)
        return 0;
    return size_at(shape, m->entry->kind == CS_OP_CONV ? 0 : shape->n - 1);
}

static cs_tensor make_conv(making *m)
{
    const op_entry *e = m->entry;
    cs_conv conv = {.out = made_features(m), .groups = e->groups, .bias = e->biases > 0};
    for (uint32_t i = 0; i < e->kernel.n && i < CS_SPACE_MAX; i++) {
        conv.kernels[i] = size_at(&e->kernel, i);
        conv.pads[i] = i < e->pad.n ? size_at(&e->pad, i) : 0;
    }
    conv.stride = e->stride.n > 0 ? size_at(&e->stride, 0) : 1;
    conv.dilation = e->dilation.n > 0 ? size_at(&e->dilation, 0) : 1;
    return cs_net_conv(m->r->net, m->name, m->in[0], &conv);
}

static cs_tensor make_linear(making *m)
{
    const op_entry *e = m->entry;
    cs_linear linear = {.out = made_features(m), .bias = e->biases > 0, .wide = e->wide};
    if (e->tied_to) {
        linear.tied = true;
        linear.lender = m->lender;
    }
    return cs_net_linear(m->r->net, m->name, m->in[0], &linear);
}

static cs_tensor make_norm(making *m)
{
    cs_net *net = m->r->net;
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

static cs_tensor make_alike(making *m)
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
    return calls[m->entry->kind](m->r->net, m->name, m->in[0]);
}

static cs_tensor make_dropout(making *m)
{
    return cs_net_dropout(m->r->net, m->name, m->in[0], 1);
}

static cs_tensor make_mul(making *m)
{
    return cs_net_mul(m->r->net, m->name, m->in[0], m->in[1]);
}

/* Of two tensors, or of one and a learned table. */
static cs_tensor make_add(making *m)
{
    cs_net *net = m->r->net;
    if (m->n == 1 && m->entry->tied_to)
        return cs_net_add_table_of(net, m->name, m->in[0], m->lender);
    if (m->n == 1)
        return cs_net_add_table(net, m->name, m->in[0], m->entry->weights);
    return m->entry->in_place ? cs_net_add_to(net, m->name, m->in[0], m->in[1])
                              : cs_net_add(net, m->name, m->in[0], m->in[1]);
}

/* Of one tensor: a learned token in front of it. */
static cs_tensor make_concat(making *m)
{
    return m->n == 1 ? cs_net_first_token(m->r->net, m->name, m->in[0])
                     : cs_net_concat(m->r->net, m->name, m->in, m->n);
}

static cs_tensor make_pool(making *m)
{
    const op_entry *e = m->entry;
    const cs_window window = {.kernel = size_at(&e->kernel, 0),
                              .stride = e->stride.n > 0 ? size_at(&e->stride, 0) : 0,
                              .pad = e->pad.n > 0 ? size_at(&e->pad, 0) : 0,
                              .dilation = e->dilation.n > 0 ? size_at(&e->dilation, 0) : 1};
    return e->kind == CS_OP_MAX_POOL ? cs_net_max_pool(m->r->net, m->name, m->in[0], &window)
                                     : cs_net_avg_pool(m->r->net, m->name, m->in[0], &window);
}

static cs_tensor make_adaptive_pool(making *m)
{
    return cs_net_adaptive_pool(m->r->net, m->name, m->in[0], made_features(m));
}

static cs_tensor make_attention(making *m)
{
    const op_entry *e = m->entry;
    const cs_attention attention = {.heads = e->heads,
                                    .kv_heads = e->kv_heads > 0 ? e->kv_heads : e->heads,
                                    .kernel = e->math ? CS_ATTENTION_MATH : CS_ATTENTION_FLASH,
                                    .causal = e->causal,
                                    .dropout = e->dropout,
                                    .window = e->window,
                                    .buckets = e->buckets,
                                    .sinks = e->sinks,
                                    .padded = e->padded};
    return cs_net_attention(m->r->net, m->name, m->in, &attention);
}

static cs_tensor make_embedding(making *m)
{
    const uint32_t features = made_features(m);
    if (m->entry->tied_to)
        return cs_net_embedding_of(m->r->net, m->name, m->in[0], m->lender);
    return cs_net_embedding(m->r->net, m->name, m->in[0], (uint32_t)(m->entry->weights / features),
                            features);
}

static cs_tensor make_view(making *m)
{
    cs_shape shape = {m->entry->output_shape.n, {0}};
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = size_at(&m->entry->output_shape, i);
    return cs_net_view(m->r->net, m->name, m->in[0], &shape);
}

/* A part with as many features as it adds to each head but for those of all heads is shared. */
static cs_tensor make_head_concat(making *m)
{
    const bool shared = made_features(m) != shape_of(m, 0)->dims[1] + shape_of(m, 1)->dims[1];
    return cs_net_head_concat(m->r->net, m->name, m->in, m->entry->heads, shared);
}

static cs_tensor make_top_k(making *m)
{
    return cs_net_top_k(m->r->net, m->name, m->in[0], m->entry->top_k);
}

static cs_tensor make_dispatch(making *m)
{
    return cs_net_dispatch(m->r->net, m->name, m->in[0], m->in[1], m->entry->capacity);
}

static cs_tensor make_combine(making *m)
{
    return cs_net_combine(m->r->net, m->name, m->in[0], m->in[1]);
}

static cs_tensor make_grouped_linear(making *m)
{
    const op_entry *e = m->entry;
    const cs_grouped_linear linear = {
        .out = made_features(m), .experts = e->experts, .top_k = e->top_k, .bias = e->biases > 0};
    return cs_net_grouped_linear(m->r->net, m->name, m->in[0], &linear);
}

static cs_tensor make_causal_conv(making *m)
{
    return cs_net_causal_conv(m->r->net, m->name, m->in[0], size_at(&m->entry->kernel, 0),
                              m->entry->biases > 0);
}

static cs_tensor make_scan(making *m)
{
    const op_entry *e = m->entry;
    const cs_scan scan = {e->heads, e->scan_groups, e->state, e->chunk};
    return cs_net_scan(m->r->net, m->name, m->in, &scan);
}

/* What a kind of operator needs before it can be made. */
typedef struct kind_rule {
    uint32_t least, most; /* inputs */
    uint32_t rank;        /* of all of them; 0: any */
    bool output, kernel, heads, experts, routed, weights;
    cs_tensor (*make)(making *m);
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
        even &= size_at(sizes, i) == size_at(sizes, 0);
    return even;
}

static bool is_positive(const cs_list *sizes)
{
    bool positive = true;
    for (uint32_t i = 0; i < sizes->n; i++)
        positive &= size_at(sizes, i) > 0;
    return positive;
}

static cs_status check_windows(const making *m, const kind_rule *rule)
{
    const op_entry *e = m->entry;
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

static bool is_top_k(const making *m, uint32_t input)
{
    const cs_net *net = m->r->net;
    const uint32_t writer = writer_of(net, m->in[input]);
    return writer < net->n_ops && net->ops[writer].kind == CS_OP_TOP_K;
}

static cs_status check_inputs(const making *m, const kind_rule *rule)
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

static cs_status check_entry(const making *m)
{
    const op_entry *e = m->entry;
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
static cs_status check_made(const making *m)
{
    const cs_net *net = m->r->net;
    const cs_op *op = &net->ops[net->n_ops - 1];
    const cs_shape *made = &cs_net_tensor(net, op->output)->shape;
    const cs_list *said = &m->entry->output_shape;
    const cs_json_place shape = {.up = m->place, .key = "output_shape"};
    const cs_json_place weights = {.up = m->place, .key = "weights"};
    char text[CS_SHAPE_TEXT_BYTES];
    bool same = said->n == 0 || said->n == made->rank;
    for (uint32_t i = 0; same && i < said->n; i++)
        same = size_at(said, i) == made->dims[i];
    if (!same)
        return cs_json_invalid(&shape, m->r->error, "must be %s, what it makes of its input",
                               cs_shape_text(made, text, sizeof(text)));
    if (!op->tied && m->entry->weights > 0 && m->entry->weights != op->weights)
        return cs_json_invalid(&weights, m->r->error, "must be %lld, or left out (got %lld)",
                               (long long)op->weights, (long long)m->entry->weights);
    return CS_OK;
}

/* ---- names ---- */

static cs_tensor find(const reader *r, const char *name)
{
    for (uint32_t p = r->net->n_ops; p-- > 0;)
        if (strcmp(r->net->ops[p].name, name) == 0)
            return r->net->ops[p].output;
    for (uint32_t i = 0; i < r->n_inputs; i++)
        if (strcmp(r->inputs[i], name) == 0)
            return r->tensors[i];
    return CS_NO_TENSOR;
}

static cs_status unknown(const reader *r, const char *name, const cs_json_place *place)
{
    cs_guess guess;
    cs_guess_init(&guess, name);
    for (uint32_t i = 0; i < r->n_inputs; i++)
        cs_guess_add(&guess, r->inputs[i]);
    for (uint32_t p = 0; p < r->net->n_ops; p++)
        cs_guess_add(&guess, r->net->ops[p].name);
    return cs_json_invalid(place, r->error, "must be an input or an operator before it: unknown %s",
                           cs_guess_text(&guess));
}

static cs_status find_inputs(making *m)
{
    const char *const *names = m->entry->inputs.items;
    const cs_json_place list = {.up = m->place, .key = "inputs"};
    const cs_json_place tie = {.up = m->place, .key = "tied_to"};
    for (m->n = 0; m->n < m->entry->inputs.n; m->n++) {
        const cs_json_place at = {.up = &list, .index = (int)m->n};
        m->in[m->n] = find(m->r, names[m->n]);
        if (m->in[m->n] == CS_NO_TENSOR)
            return unknown(m->r, names[m->n], &at);
    }
    if (!m->entry->tied_to)
        return CS_OK;
    m->lender = find(m->r, m->entry->tied_to);
    if (m->lender == CS_NO_TENSOR || writer_of(m->r->net, m->lender) == m->r->net->n_ops)
        return unknown(m->r, m->entry->tied_to, &tie);
    return CS_OK;
}

/* Names begin with that of the block where they have one. */
static void enter_block(making *m, const char *layer)
{
    cs_net *net = m->r->net;
    const char *block = m->entry->block ? m->entry->block : layer;
    const size_t length = strlen(block);
    if (net->n_blocks == 0 || strcmp(net->blocks[net->n_blocks - 1], block) != 0)
        cs_net_block(net, "%s", block);
    m->name = m->entry->name;
    net->scope[0] = '\0';
    if (strncmp(m->name, block, length) == 0 && m->name[length] == '.') {
        (void)cs_net_enter(net, block);
        m->name += length + 1;
    }
}

/* ---- all ---- */

static cs_status read_operator(reader *r, const cJSON *value, const char *layer,
                               const cs_json_place *place)
{
    op_entry entry;
    const void *figures = NULL;
    const cs_json_place name = {.up = place, .key = "name"};
    making m = {.r = r, .entry = &entry, .place = place};
    CS_TRY(cs_field_read(value, place, (const cs_field *const[]){op_fields, figure_fields, NULL},
                         (void *const[]){&entry, &figures}, &r->arena, r->error));
    if (strlen(entry.name) >= NAME_BYTES - 1 || !*entry.name)
        return cs_json_invalid(&name, r->error, "must have from 1 to %d characters",
                               NAME_BYTES - 2);
    if (find(r, entry.name) != CS_NO_TENSOR)
        return cs_json_invalid(&name, r->error, "must be unique (got \"%s\" again)", entry.name);
    CS_TRY(find_inputs(&m));
    CS_TRY(check_entry(&m));
    enter_block(&m, layer);
    r->net->place = place;
    r->net->frozen = entry.frozen;
    (void)rules[entry.kind].make(&m);
    r->net->frozen = false;
    r->net->place = NULL;
    return r->net->status == CS_OK ? check_made(&m) : r->net->status;
}

/* Of a network or a layer, which may have other keys besides. */
static cs_status check_name(const cJSON *object, const cs_json_place *up, cs_error *error)
{
    const cs_json_place place = {.up = up, .key = "name"};
    const char *name = cJSON_GetStringValue(cs_json_member(object, "name"));
    char quoted[CS_TEXT_QUOTED_BYTES];
    return !name || !cs_text_has_control(name, strlen(name))
               ? CS_OK
               : cs_json_invalid(&place, error, "must not contain control characters (got %s)",
                                 cs_text_quote(name, quoted, sizeof(quoted)));
}

static cs_status read_layer(reader *r, const cJSON *layer, const cs_json_place *place)
{
    const cJSON *operators = cs_json_member(layer, "operators"), *op;
    const cJSON *name = cs_json_member(layer, "name");
    const cs_json_place list = {.up = place, .key = "operators"};
    int i = 0;
    CS_TRY(check_name(layer, place, r->error));
    if (!cJSON_IsArray(operators))
        return cs_json_invalid(place, r->error,
                               "missing key \"operators\": a layer of a network lists them");
    cJSON_ArrayForEach(op, operators)
    {
        const cs_json_place at = {.up = &list, .index = i++};
        CS_TRY(read_operator(r, op, cJSON_IsString(name) ? name->valuestring : "layer", &at));
    }
    return CS_OK;
}

static cs_status read_input(reader *r, const cJSON *value, const cs_json_place *place)
{
    input_entry entry;
    const cs_json_place shape = {.up = place, .key = "shape"};
    CS_TRY(cs_field_read(value, place, (const cs_field *const[]){input_fields, NULL},
                         (void *const[]){&entry}, &r->arena, r->error));
    cs_extent space = {.rank = entry.shape.n - 1};
    for (uint32_t i = 0; i < space.rank; i++)
        space.size[i] = size_at(&entry.shape, i + 1);
    if (entry.ids && space.rank > 0)
        return cs_json_invalid(&shape, r->error, "must be [tokens] for token ids");
    const uint32_t first = size_at(&entry.shape, 0);
    r->inputs[r->n_inputs] = entry.name;
    r->tensors[r->n_inputs++] = !entry.ids     ? cs_net_image(r->net, first, space)
                                : entry.loaded ? cs_net_more_token_ids(r->net, first)
                                               : cs_net_token_ids(r->net, first);
    return r->net->status;
}

static cs_status read_inputs(reader *r, const cJSON *root, const cs_json_place *place)
{
    const cJSON *inputs = cs_json_member(root, "inputs"), *one;
    const cs_json_place list = {.up = place, .key = "inputs"};
    const size_t n = (size_t)cJSON_GetArraySize(inputs);
    int i = 0;
    if (!cJSON_IsArray(inputs) || n == 0)
        return cs_json_invalid(&list, r->error, "must be a list of what the network reads");
    r->inputs = cs_arena_alloc(&r->arena, n, sizeof(*r->inputs));
    r->tensors = cs_arena_alloc(&r->arena, n, sizeof(*r->tensors));
    if (!r->inputs || !r->tensors)
        return cs_error_no_memory(r->error);
    cJSON_ArrayForEach(one, inputs)
    {
        const cs_json_place at = {.up = &list, .index = i++};
        CS_TRY(read_input(r, one, &at));
    }
    return CS_OK;
}

static cs_status read_layers(reader *r, const cJSON *root, const cs_json_place *place)
{
    const cJSON *layers = cs_json_member(root, "layers"), *layer;
    const cJSON *carried = cs_json_member(root, "carried");
    const cs_json_place list = {.up = place, .key = "layers"};
    const cs_json_place key = {.up = place, .key = "carried"};
    int i = 0;
    if (!cJSON_IsArray(layers))
        return cs_json_invalid(&list, r->error, "must be a list of layers with \"operators\"");
    cJSON_ArrayForEach(layer, layers)
    {
        const cs_json_place at = {.up = &list, .index = i++};
        CS_TRY(read_layer(r, layer, &at));
    }
    if (!carried)
        return CS_OK;
    const cs_tensor tensor = cJSON_IsString(carried) ? find(r, carried->valuestring) : CS_NO_TENSOR;
    if (tensor == CS_NO_TENSOR || writer_of(r->net, tensor) == r->net->n_ops)
        return cs_json_invalid(&key, r->error, "must be the name of an operator");
    cs_net_carry(r->net, tensor);
    return CS_OK;
}

static cs_status read_precision(reader *r, const cJSON *root, const cs_json_place *place)
{
    const cJSON *precision = cs_json_member(root, "precision");
    const cs_json_place key = {.up = place, .key = "precision"};
    cs_guess guess;
    uint32_t found = 0;
    if (!precision)
        return CS_OK;
    if (!cJSON_IsString(precision))
        return cs_json_invalid(&key, r->error, "must be the name of a precision");
    cs_guess_init(&guess, precision->valuestring);
    if (!cs_guess_find(&guess, cs_precision_names, precision->valuestring, &found))
        return cs_json_invalid(&key, r->error, "unknown %s", cs_guess_text(&guess));
    r->net->has_precision = true;
    r->net->precision = (cs_precision)found;
    return CS_OK;
}

bool cs_net_is_file(const cJSON *root)
{
    return cJSON_IsArray(cs_json_member(root, "layers"));
}

cs_status cs_net_read(const cJSON *root, const cs_json_place *place, cs_net *net, cs_error *error)
{
    const cJSON *name = cs_json_member(root, "name");
    cs_net made;
    reader r = {.net = &made, .error = error};
    CS_TRY(check_name(root, place, error));
    cs_arena_init(&r.arena);
    cs_net_begin(&made, cJSON_IsString(name) ? name->valuestring : "network", error);
    cs_status status = read_precision(&r, root, place);
    if (status == CS_OK)
        status = read_inputs(&r, root, place);
    if (status == CS_OK)
        status = read_layers(&r, root, place);
    if (status == CS_OK)
        status = cs_net_end(&made);
    cs_arena_finish(&r.arena);
    if (status != CS_OK) {
        cs_net_finish(&made);
        return status;
    }
    *net = made;
    return CS_OK;
}
