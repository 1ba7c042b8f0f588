#include "sim/model/ops/operator.h"

#include <stdio.h>

/* ---- all kinds ---- */

static const cs_operator *const operators[] = {
#define OPERATOR(kind, name) [CS_OP_##kind] = &cs_operator_##name,
    CS_OP_KIND_MAP(OPERATOR)
#undef OPERATOR
};

const cs_operator *cs_operator_of_kind(cs_op_kind kind)
{
    return operators[kind];
}

const char *cs_op_kind_name(cs_op_kind kind)
{
    return operators[kind]->name;
}

const char *cs_op_kind_group(cs_op_kind kind)
{
    return operators[kind]->group;
}

bool cs_op_never_runs(const cs_net *net, const cs_op *op)
{
    (void)net;
    (void)op;
    return false;
}

bool cs_op_by_feature(const cs_rule_query *query, const cs_op *op)
{
    (void)query;
    (void)op;
    return true;
}

uint32_t cs_cut_heads(const cs_cut *cut, uint32_t heads)
{
    return (uint32_t)((uint64_t)heads * cut->in.dims[1] / cut->whole_in.dims[1]);
}

void cs_cut_features(const cs_cut *cut, cs_op *op)
{
    const uint32_t whole = cut->whole_out.dims[cut->whole_out.rank - 1];
    const uint32_t features = cut->out.dims[cut->out.rank - 1];
    op->weights = cut->of->weights / whole * features;
    op->biases = cut->of->biases / whole * features;
}

/* ---- building ---- */

void cs_net_fail_at(cs_net *net, const char *name, const char *what)
{
    cs_net_fail(net, "layer %s%s%s %s", net->scope, net->scope[0] ? "." : "", name, what);
}

cs_tensor cs_net_add_alike(cs_net *net, const char *name, cs_op_kind kind, cs_tensor x,
                           bool in_place)
{
    if (!cs_net_usable(net, &x, 1))
        return CS_NO_TENSOR;
    cs_op op = cs_net_op(kind, &x, 1);
    op.in_place = in_place;
    cs_shape shape = cs_net_tensor(net, x)->shape;
    return cs_net_add_op(net, name, &op, &shape, CS_ELEMENT_ACTIVATION);
}

bool cs_net_heads_divide(cs_net *net, const char *name, uint32_t heads, uint32_t features)
{
    char text[128];
    if (heads > 0 && features % heads == 0)
        return true;
    snprintf(text, sizeof(text), "must have heads that divide its %u features (got %u heads)",
             features, heads);
    cs_net_fail_at(net, name, text);
    return false;
}

bool cs_shape_same(const cs_shape *a, const cs_shape *b, uint32_t from)
{
    bool same = a->rank == b->rank;
    for (uint32_t i = from; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

uint32_t cs_net_last_writer(const cs_net *net, cs_tensor tensor)
{
    uint32_t p = net->n_ops;
    while (p > 0 && net->ops[p - 1].output != tensor)
        p--;
    return p - 1;
}

void cs_op_borrow(const cs_net *net, cs_op *op, cs_tensor of)
{
    const uint32_t lender = cs_net_last_writer(net, of);
    op->weights = net->ops[lender].weights;
    op->tied = true;
    op->lender = lender + 1;
}

/* ---- entries of files ---- */

static const cs_field rows_field = {"size", CS_FIELD_COUNT};
static const cs_field name_field = {"name", CS_FIELD_TEXT};

/* Kinds that a file may name; NULL for exchanges, the last kind, which only splits make. */
static const char *const kind_names[] = {
#define KIND_NAME(kind, name) [CS_OP_##kind] = CS_OP_##kind == CS_OP_EXCHANGE ? NULL : #name,
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

cs_status cs_op_making_wrong(const cs_op_making *m, const char *key, const char *text)
{
    const cs_json_place at = {.up = m->place, .key = key};
    return cs_json_invalid(&at, m->error, "%s", text);
}

const cs_shape *cs_input_shape(const cs_op_making *m, uint32_t input)
{
    return &cs_net_tensor(m->net, m->in[input])->shape;
}

uint32_t cs_made_features(const cs_op_making *m)
{
    const cs_list *shape = &m->entry->output_shape;
    if (shape->n == 0)
        return 0;
    return cs_size_at(shape, operators[m->entry->kind]->channels_first ? 0 : shape->n - 1);
}

static bool are_equal(const cs_list *sizes)
{
    bool equal = true;
    for (uint32_t i = 1; i < sizes->n; i++)
        equal &= cs_size_at(sizes, i) == cs_size_at(sizes, 0);
    return equal;
}

static bool is_positive(const cs_list *sizes)
{
    bool positive = true;
    for (uint32_t i = 0; i < sizes->n; i++)
        positive &= cs_size_at(sizes, i) > 0;
    return positive;
}

cs_status cs_op_check_even_window(const cs_op_making *m)
{
    return are_equal(&m->entry->kernel) && are_equal(&m->entry->pad)
               ? CS_OK
               : cs_op_making_wrong(m, "kernel",
                                    "must be the same in all directions, as must \"padding\"");
}

/* Checks the kernel, which must have one size per direction, and its stride and dilation. */
static cs_status check_window(const cs_op_making *m, uint32_t directions)
{
    const cs_op_entry *e = m->entry;
    char text[96];
    snprintf(text, sizeof(text), "must have %u sizes above 0, one per direction (got %u)",
             directions, e->kernel.n);
    if (directions == 0)
        return cs_op_making_wrong(m, "inputs",
                                  "must be an image, with channels and at least one direction");
    if (e->kernel.n != directions || !is_positive(&e->kernel))
        return cs_op_making_wrong(m, "kernel", text);
    if (!are_equal(&e->stride) || !is_positive(&e->stride))
        return cs_op_making_wrong(m, "stride", "must be the same in all directions, and above 0");
    if (!are_equal(&e->dilation) || !is_positive(&e->dilation))
        return cs_op_making_wrong(m, "dilation", "must be the same in all directions, and above 0");
    return CS_OK;
}

static cs_status check_inputs(const cs_op_making *m, const cs_entry_needs *needs)
{
    char text[128];
    if (m->n < needs->least || m->n > needs->most) {
        snprintf(text, sizeof(text), "must be %u to %u for the kind \"%s\" (got %u)", needs->least,
                 needs->most, kind_names[m->entry->kind], m->n);
        return cs_op_making_wrong(m, "inputs", text);
    }
    for (uint32_t i = 0; needs->rank > 0 && i < m->n; i++)
        if (cs_input_shape(m, i)->rank != needs->rank)
            return cs_op_making_wrong(m, "inputs",
                                      needs->rank == 1 ? "must be token ids, [tokens]"
                                                       : "must be [tokens, features] each");
    const uint32_t router = needs->routed ? cs_net_writer(m->net, m->in[1]) : m->net->n_ops;
    if (needs->routed && (router == m->net->n_ops || m->net->ops[router].kind != CS_OP_TOP_K))
        return cs_op_making_wrong(m, "inputs",
                                  "must have an operator of kind \"top_k\" as the second one");
    return CS_OK;
}

cs_status cs_op_making_check(const cs_op_making *m)
{
    const cs_op_entry *e = m->entry;
    const cs_operator *kind = operators[e->kind];
    const cs_entry_needs *needs = &kind->needs;
    CS_TRY(check_inputs(m, needs));
    if (needs->kernel)
        CS_TRY(check_window(m, needs->rank == 2 ? 1 : cs_input_shape(m, 0)->rank - 1));
    if (needs->output && (e->output_shape.n == 0 || e->output_shape.n > CS_SHAPE_MAX ||
                          !is_positive(&e->output_shape)))
        return cs_op_making_wrong(m, "output_shape", "must be given, with sizes above 0");
    if (needs->heads && e->heads == 0)
        return cs_op_making_wrong(m, "heads", "must be given, above 0");
    if (needs->experts && (e->experts == 0 || e->top_k == 0 || e->top_k > e->experts))
        return cs_op_making_wrong(m, "experts", "must be given, with \"top_k\" from 1 to as many");
    if (needs->weights && !e->tied_to &&
        (e->weights < cs_made_features(m) || e->weights % cs_made_features(m) != 0 ||
         e->weights / cs_made_features(m) > UINT32_MAX))
        return cs_op_making_wrong(m, "weights", "must be rows of the output's features");
    return kind->check ? kind->check(m) : CS_OK;
}

/* Checks that the operator just made agrees with its entry in the file. */
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
    (void)operators[m->entry->kind]->make(m);
    net->frozen = false;
    net->place = NULL;
    CS_TRY(net->status == CS_OK ? check_made(m) : net->status);
    cs_op *made = &net->ops[net->n_ops - 1];
    if (m->entry->stored > 0 && (made->kind != CS_OP_LINEAR || !made->frozen || made->tied))
        return cs_op_making_wrong(m, "stored",
                                  "is of linear layers with frozen weights of their own");
    made->stored = m->entry->stored;
    return CS_OK;
}
