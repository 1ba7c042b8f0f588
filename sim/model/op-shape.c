#include "sim/model/op-shape.h"

#include "sim/model/ops/operator.h"

#include <stdarg.h>
#include <stdio.h>

const char *const cs_pass_names[] = {
#define PASS_NAME(name, text) text,
    CS_PASS_MAP(PASS_NAME)
#undef PASS_NAME
        NULL};

static uint32_t bit(cs_pass pass)
{
    return 1u << pass;
}

/* ---- pieces ---- */

static void describe(const cs_net *net, const cs_op *op, uint32_t batch, cs_op_shape *shape)
{
    shape->kind = op->kind;
    shape->batch = batch;
    shape->n_inputs = op->n_inputs;
    for (uint32_t i = 0; i < op->n_inputs; i++)
        shape->inputs[i] = cs_net_tensor(net, op->inputs[i])->shape;
    shape->output = cs_net_tensor(net, op->output)->shape;
    shape->kernel = op->kernel;
    shape->stride = op->stride;
    shape->pad = op->pad;
    shape->dilation = op->dilation;
    shape->groups = op->groups;
    shape->weights = op->weights;
    shape->bias = op->biases > 0;
    shape->in_place = op->in_place;
    shape->attention = op->attention;
    shape->experts = op->experts;
    shape->top_k = op->top_k;
    shape->heads = op->heads;
    shape->scan = op->scan;
}

static uint32_t passes_of(const cs_op_cost *cost)
{
    uint32_t passes = 0;
    if (cost->forward.launches > 0)
        passes |= bit(CS_PASS_FORWARD);
    if (cost->backward_input.launches > cost->accumulate.launches)
        passes |= bit(CS_PASS_BACKWARD_INPUT);
    if (cost->backward_weight.launches > 0)
        passes |= bit(CS_PASS_BACKWARD_WEIGHT);
    return passes;
}

uint32_t cs_op_shapes_of(const cs_net *net, const cs_op *op, uint32_t batch, cs_precision precision,
                         uint32_t states, cs_op_shape *shapes)
{
    cs_op_cost cost;
    uint32_t n = 0;
    cs_op_cost_of(net, op, batch, precision, &cost);
    const int64_t parameters = cost.weights + cost.biases - cost.frozen;
    if (passes_of(&cost) != 0) {
        shapes[n] =
            (cs_op_shape){.precision = cs_op_precision(op, precision), .passes = passes_of(&cost)};
        describe(net, op, batch, &shapes[n++]);
    }
    for (uint32_t i = 0; i < op->n_inputs; i++)
        if (cs_op_accumulates(net, op, i))
            shapes[n++] =
                (cs_op_shape){.piece = CS_PIECE_ACCUMULATE,
                              .passes = bit(CS_PASS_FORWARD),
                              .precision = cs_precision_wide(precision),
                              .elements = batch * cs_net_tensor(net, op->inputs[i])->elements};
    if (parameters > 0)
        shapes[n++] = (cs_op_shape){.piece = CS_PIECE_UPDATE,
                                    .passes = bit(CS_PASS_UPDATE),
                                    .precision = precision,
                                    .elements = parameters,
                                    .states = states};
    return n;
}

/* ---- keys ---- */

typedef struct key {
    char *text;
    size_t size, end;
} key;

static void add(key *k, const char *format, ...) CS_PRINTF(2, 3);

static void add(key *k, const char *format, ...)
{
    va_list arguments;
    if (k->end >= k->size)
        return;
    va_start(arguments, format);
    k->end += (size_t)vsnprintf(k->text + k->end, k->size - k->end, format, arguments);
    va_end(arguments);
}

/* Adds sizes, e.g. "64x56x56". */
static void add_sizes(key *k, const uint32_t *sizes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        add(k, "%s%u", i > 0 ? "x" : "", sizes[i]);
}

static void add_window(key *k, const cs_op_shape *shape, uint32_t tells)
{
    const struct {
        const char *name;
        const cs_extent *space;
    } parts[] = {{"kernel", &shape->kernel},
                 {"stride", &shape->stride},
                 {"pad", &shape->pad},
                 {"dilation", &shape->dilation}};
    const bool dilated = shape->dilation.size[0] > 1;
    if (shape->kernel.rank == 0)
        return;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) - !dilated; i++) {
        add(k, " %s=", parts[i].name);
        add_sizes(k, parts[i].space->size, parts[i].space->rank);
    }
    if (tells & CS_KEY_GROUPS)
        add(k, " groups=%u", shape->groups);
}

static void add_attention(key *k, const cs_attention *attention)
{
    if (attention->heads == 0)
        return;
    add(k, " heads=%u kv_heads=%u %s%s", attention->heads, attention->kv_heads,
        attention->kernel == CS_ATTENTION_FLASH ? "flash" : "math",
        attention->causal ? " causal" : "");
    if (attention->dropout > 0)
        add(k, " dropout");
    if (attention->window > 0)
        add(k, " window=%u", attention->window);
    if (attention->sinks)
        add(k, " sinks");
    if (attention->buckets > 0)
        add(k, " buckets=%u", attention->buckets);
    if (attention->shares > 1)
        add(k, " shares=%u steps=%u", attention->shares, attention->steps);
}

/* Adds the numbers of heads and experts. */
static void add_parts(key *k, const cs_op_shape *shape, uint32_t tells)
{
    const struct {
        const char *name;
        uint32_t n;
    } parts[] = {
        {"heads", shape->heads},
        {"groups", tells & CS_KEY_GROUPS_AS_HEADS && shape->groups > 1 ? shape->groups : 0},
        {"heads", shape->scan.heads},
        {"groups", shape->scan.groups},
        {"state", shape->scan.state},
        {"chunk", shape->scan.chunk},
        {"experts", shape->experts},
        {"top_k", shape->top_k}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (parts[i].n > 0)
            add(k, " %s=%u", parts[i].name, parts[i].n);
}

static void add_operator(key *k, const cs_op_shape *shape)
{
    const uint32_t tells = cs_operator_of_kind(shape->kind)->key;
    add(k, "%s n=%u in=", cs_op_kind_name(shape->kind), shape->batch);
    for (uint32_t i = 0; i < shape->n_inputs; i++) {
        add(k, "%s", i > 0 ? "," : "");
        add_sizes(k, shape->inputs[i].dims, shape->inputs[i].rank);
    }
    add(k, " out=");
    add_sizes(k, shape->output.dims, shape->output.rank);
    add_window(k, shape, tells);
    add_attention(k, &shape->attention);
    add_parts(k, shape, tells);
    if (shape->weights > 0 && tells & CS_KEY_WEIGHTS)
        add(k, " weights=%lld", (long long)shape->weights);
    if (shape->bias && tells & CS_KEY_BIAS)
        add(k, " bias");
    if (shape->in_place)
        add(k, " in_place");
}

char *cs_op_shape_key(const cs_op_shape *shape, char *text, size_t size)
{
    static const char *const optimizers[] = {"sgd", "momentum", "adam"};
    key k = {.text = text, .size = size};
    text[0] = '\0';
    switch (shape->piece) {
    case CS_PIECE_OPERATOR:
        add_operator(&k, shape);
        break;
    case CS_PIECE_ACCUMULATE:
        add(&k, "accumulate elements=%lld", (long long)shape->elements);
        break;
    case CS_PIECE_UPDATE:
        add(&k, "update parameters=%lld optimizer=%s", (long long)shape->elements,
            optimizers[shape->states < 2 ? shape->states : 2]);
        break;
    }
    add(&k, " %s", cs_precision_names[shape->precision]);
    return text;
}

/* ---- what backends can run ---- */

static bool is_runnable(const cs_net *net, const cs_op *op)
{
    const cs_operator *kind = cs_operator_of(op);
    return !op->frozen && op->dilation.size[0] <= 1 &&
           (!kind->is_runnable || kind->is_runnable(net, op));
}

cs_status cs_net_check_runnable(const cs_net *net, cs_error *error)
{
    for (uint32_t p = 0; p < net->n_ops; p++)
        if (!is_runnable(net, &net->ops[p]))
            return cs_error_add(error, CS_INVALID,
                                "%s: operator %s (%s) can be estimated, but no backend can run it",
                                net->name, net->ops[p].name, cs_op_kind_name(net->ops[p].kind));
    return CS_OK;
}
