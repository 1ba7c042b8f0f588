#include "sim/model/kept.h"

#include "sim/model/ops/operator.h"

#include <math.h>

const char *const cs_fused_names[] = {"norm", "swiglu", "cross_entropy", "linear", NULL};
const char *const cs_weight_gradients_names[] = {"in_place", "apart", "transformer_engine", NULL};
const char *const cs_narrow_weights_names[] = {"copies", "alone", "cast", NULL};
const char *const cs_loss_names[] = {"in_place", "copied", "eager", "parallel", "shifted", NULL};
const char *const cs_gather_buffer_names[] = {"none", "last_matrix", "experts", "all", NULL};

enum { FLOAT = 4 };

static bool is_fused(const cs_kept_rules *rules, cs_fused kind)
{
    return rules->fused & 1u << kind;
}

/* Returns the operator that writes a tensor that `reader` reads, or NULL. */
static const cs_op *writer_of(const cs_net *net, const cs_op *reader, cs_tensor tensor)
{
    for (const cs_op *op = reader; op > net->ops;)
        if ((--op)->output == tensor)
            return op;
    return NULL;
}

/* Whether an operator is the last product of experts: its result is combined next, on this device
 * or, after an exchange, on another one. */
static bool is_last_product(const cs_net *net, const cs_op *op)
{
    const cs_op *reader = op;
    if (op->kind != CS_OP_GROUPED_LINEAR)
        return false;
    do {
        const uint32_t next = cs_net_tensor(net, reader->output)->last_reader;
        reader = next < net->n_ops ? &net->ops[next] : NULL;
    } while (reader && reader->kind == CS_OP_EXCHANGE);
    return reader && reader->kind == CS_OP_COMBINE;
}

/* Returns the bytes of the unweighted features that are kept in addition to the weighted features,
 * the input of the experts' last product; 0 if a fused gate recomputes them. */
static int64_t weighted_bytes(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                              uint32_t batch, cs_precision precision)
{
    const cs_op *writer = writer_of(net, op, op->inputs[0]);
    if (writer && writer->kind == CS_OP_MUL && is_fused(rules, CS_FUSED_SWIGLU))
        return 0;
    return cs_tensor_bytes(net, op->inputs[0], batch, precision);
}

bool cs_kept_one_matrix(const cs_op *a, const cs_op *b, const cs_kept_rules *rules)
{
    return is_fused(rules, CS_FUSED_LINEAR) && cs_op_is_product(a) && a->kind == b->kind &&
           !a->wide && !b->wide && !a->frozen && !b->frozen && a->inputs[0] == b->inputs[0];
}

static void add_cast(double bytes, cs_pass_cost *pass)
{
    pass->cast_bytes += bytes;
    pass->launches++;
}

/* Moves the cast of the copy for the weight gradient from the forward to the backward. */
static void move_cast(double copy, double input, cs_op_cost *cost)
{
    if (copy > 0) {
        cost->forward.cast_bytes -= copy;
        add_cast(input + copy, &cost->backward_weight);
    }
}

/* Adjusts the cost of a product whose operands are cast to a narrow type. */
static void keep_operands(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                          cs_precision precision, cs_op_cost *cost)
{
    const double width = cs_precision_bytes(precision), weights = (double)op->weights;
    const int64_t copy = (int64_t)ceil(cs_precision_operand_bytes(precision) * weights);
    if (rules->wide_inputs && !op->frozen && cs_net_tensor(net, op->output)->differentiable) {
        move_cast((double)cost->kept_cast, (double)cost->input_bytes, cost);
        cost->extra_kept_bytes -= cost->kept_cast;
        cost->kept_cast = 0;
        cost->keeps_input = true;
    }
    if (rules->one_copy)
        cost->copy_bytes = copy;
    if (rules->narrow_weights == CS_NARROW_WEIGHTS_ALONE)
        cost->narrowed_bytes = op->weights * cs_precision_bytes(precision);
    if (rules->narrow_weights == CS_NARROW_WEIGHTS_CAST) {
        add_cast(weights * width + (double)copy, &cost->forward);
        if (cost->backward_input.launches > 0)
            add_cast(weights * width + (double)copy, &cost->backward_input);
        cost->workspace_bytes += copy;
        cost->copy_bytes = 0;
    }
    cost->cast_bytes = cost->copy_bytes;
    if (rules->narrow_weights == CS_NARROW_WEIGHTS_ALONE)
        cost->cast_bytes -= copy < cost->copy_bytes ? copy : cost->copy_bytes;
}

/* Whether an operator is fused attention whose queries are as wide as its values. */
static bool may_be_flash_attention(const cs_net *net, const cs_op *op)
{
    return op->kind == CS_OP_ATTENTION && op->attention.kernel == CS_ATTENTION_FLASH &&
           cs_net_tensor(net, op->inputs[0])->elements == cs_net_tensor(net, op->output)->elements;
}

/* Returns the bytes of the mask with which math attention excludes padding; all heads share it. */
static int64_t mask_bytes(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                          uint32_t batch)
{
    if (!rules->padding_masks || op->kind != CS_OP_ATTENTION || !op->attention.padded ||
        op->attention.kernel == CS_ATTENTION_FLASH)
        return 0;
    const cs_shape *queries = &cs_net_tensor(net, op->output)->shape;
    const cs_shape *keys = &cs_net_tensor(net, op->inputs[1])->shape;
    const int64_t steps = op->attention.steps > 0 ? op->attention.steps : 1;
    return steps * batch * queries->dims[0] * keys->dims[0];
}

/* Returns the bytes of the logits in float32, if the loss is computed in separate steps; else 0. */
static int64_t single_bytes(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                            uint32_t batch)
{
    return op->kind == CS_OP_CROSS_ENTROPY && !is_fused(rules, CS_FUSED_CROSS_ENTROPY) &&
                   cs_net_tensor(net, op->output)->differentiable
               ? FLOAT * batch * cs_net_tensor(net, op->inputs[0])->elements
               : 0;
}

/* Returns the bytes that a shifted loss saves: the logits without the last token, and a float32
 * copy of the logits if they are narrower. */
static int64_t shifted_bytes(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                             uint32_t batch, cs_precision precision)
{
    const int64_t single = single_bytes(net, op, rules, batch);
    const bool narrow =
        single > 0 && cs_tensor_bytes(net, op->inputs[0], batch, precision) < single;
    return narrow ? 2 * single : single;
}

void cs_kept_fuse(const cs_net *net, const cs_op *op, const cs_kept_rules *rules, uint32_t batch,
                  cs_precision precision, cs_op_cost *cost)
{
    if (cs_op_is_product(op) && cs_precision_is_narrow(cs_op_precision(op, precision)))
        keep_operands(net, op, rules, precision, cost);
    if (rules->weighted_features && is_last_product(net, op))
        cost->extra_kept_bytes += weighted_bytes(net, op, rules, batch, precision);
    if (cost->extra_kept_bytes == 0)
        return; /* no gradient is computed for it */
    if (rules->attention_copy && batch > 1 && may_be_flash_attention(net, op))
        cost->extra_kept_bytes += cs_tensor_bytes(net, op->output, batch, precision);
    if (rules->keys_copied && may_be_flash_attention(net, op))
        for (uint32_t i = 1; i < 3; i++)
            cost->extra_kept_bytes += cs_tensor_bytes(net, op->inputs[i], batch, precision);
    cost->kept_apart[CS_KEPT_PADDING] = mask_bytes(net, op, rules, batch);
    cost->extra_kept_bytes += cost->kept_apart[CS_KEPT_PADDING];
    if (rules->loss == CS_LOSS_SHIFTED)
        cost->extra_kept_bytes += shifted_bytes(net, op, rules, batch, precision);
    if (op->kind == CS_OP_RMS_NORM && is_fused(rules, CS_FUSED_NORM))
        cost->extra_kept_bytes -= cs_tensor_bytes(net, op->inputs[0], batch, precision);
    if (op->kind == CS_OP_CROSS_ENTROPY && is_fused(rules, CS_FUSED_CROSS_ENTROPY)) {
        cost->extra_kept_bytes -= FLOAT * batch * cs_net_tensor(net, op->inputs[0])->elements;
        cost->keeps_input = true;
    }
}

bool cs_kept_again(const cs_net *net, const cs_op *op, uint32_t i, const cs_kept_rules *rules)
{
    if (op->kind == CS_OP_COMBINE)
        return rules->weighted_features && i == 0;
    if (op->kind != CS_OP_MUL || !is_fused(rules, CS_FUSED_SWIGLU))
        return false;
    const cs_op *writer = writer_of(net, op, op->inputs[i]);
    return writer && (writer->kind == CS_OP_SILU || writer->kind == CS_OP_GELU) &&
           cs_net_tensor(net, op->inputs[i])->last_reader == (uint32_t)(op - net->ops);
}

bool cs_kept_in_place(const cs_op *op, const cs_kept_rules *rules)
{
    return op->kind == CS_OP_CROSS_ENTROPY && is_fused(rules, CS_FUSED_CROSS_ENTROPY);
}

/* Whether the operator's kernel adds the weight gradient to the sum, so that autograd gets a
 * placeholder instead. */
static bool has_placeholder(const cs_op *op, const cs_kept_rules *rules)
{
    return rules->weight_gradients == CS_WEIGHT_GRADIENTS_PLACEHOLDERS && !op->wide &&
           !op->frozen && cs_op_is_product(op);
}

int64_t cs_kept_gradient(const cs_op *op, const cs_kept_rules *rules, cs_precision precision)
{
    if (rules->weight_gradients == CS_WEIGHT_GRADIENTS_IN_PLACE || op->frozen ||
        has_placeholder(op, rules))
        return 0;
    return (op->weights + op->biases) * cs_precision_bytes(precision);
}

static int64_t query_sums(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                          uint32_t batch)
{
    const cs_attention *a = &op->attention;
    if (rules->deterministic_multiprocessors == 0 || !may_be_flash_attention(net, op))
        return 0;
    const int64_t blocks = (int64_t)batch * a->heads;
    const int64_t sums = (rules->deterministic_multiprocessors + blocks - 1) / blocks;
    return FLOAT * sums * batch * cs_net_tensor(net, op->inputs[0])->elements;
}

int64_t cs_kept_beside_loss(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                            uint32_t batch, cs_precision precision)
{
    const int64_t single = single_bytes(net, op, rules, batch);
    const int64_t inputs = op->kind == CS_OP_CROSS_ENTROPY ? batch * rules->input_bytes : 0;
    const bool copied = rules->loss != CS_LOSS_IN_PLACE && rules->loss != CS_LOSS_SHIFTED &&
                        single > 0 &&
                        cs_tensor_bytes(net, op->inputs[0], batch, precision) < single;
    return (copied ? single : 0) + (rules->loss == CS_LOSS_PARALLEL ? single : 0) + inputs;
}

int64_t cs_kept_beside_backward(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                                uint32_t batch)
{
    return query_sums(net, op, rules, batch) +
           (rules->loss == CS_LOSS_PARALLEL ? single_bytes(net, op, rules, batch) : 0);
}

int64_t cs_kept_loss_step(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                          uint32_t batch)
{
    return rules->loss >= CS_LOSS_EAGER ? single_bytes(net, op, rules, batch) : 0;
}

int64_t cs_kept_placeholder(const cs_op *op, const cs_kept_rules *rules, cs_precision precision)
{
    if (!has_placeholder(op, rules))
        return 0;
    const int64_t matrices = cs_op_matrices(op);
    return op->weights / matrices * cs_precision_bytes(precision);
}

int64_t cs_kept_workspace(const cs_op *op, const cs_kept_rules *rules)
{
    return op->kind == CS_OP_GROUPED_LINEAR ? rules->grouped_workspace : 0;
}

/* Whether an exchange gathers tokens for the last matrix. */
static bool is_before_last(const cs_net *net, const cs_op *op)
{
    const uint32_t reader = cs_net_tensor(net, op->output)->last_reader;
    return op->kind == CS_OP_EXCHANGE && op->gathers_again && reader < net->n_ops &&
           net->ops[reader].kind == CS_OP_LINEAR && net->ops[reader].wide;
}

bool cs_kept_gathers_into_buffer(const cs_net *net, const cs_op *op, const cs_kept_rules *rules)
{
    return rules->gather_buffer == CS_GATHER_BUFFER_ALL
               ? op->kind == CS_OP_EXCHANGE && op->gathers_again
               : rules->gather_buffer != CS_GATHER_BUFFER_NONE && is_before_last(net, op);
}

int64_t cs_kept_in_buffer(const cs_net *net, const cs_op *op, const cs_kept_rules *rules,
                          const cs_op_cost *cost, uint32_t expert_places, uint32_t batch,
                          cs_precision precision)
{
    if (op->kind == CS_OP_ATTENTION)
        return rules->attention_buffer ? cost->workspace_bytes : 0;
    if (cs_kept_gathers_into_buffer(net, op, rules))
        return cs_tensor_bytes(net, op->output, batch, precision);
    if (rules->gather_buffer >= CS_GATHER_BUFFER_EXPERTS && op->kind == CS_OP_DISPATCH &&
        expert_places > 1)
        return expert_places * cs_tensor_bytes(net, op->inputs[0], batch, precision);
    return 0;
}
