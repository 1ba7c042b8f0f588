#include "sim/model/runtime-kernels.h"
#include "sim/model/fused-attention.h"

#include <math.h>

/* ---- fusion ---- */

static bool is_product(cs_op_kind kind)
{
    return kind == CS_OP_LINEAR || kind == CS_OP_GROUPED_LINEAR;
}

static cs_op_kind kind_of_reader(const cs_net *net, const cs_op *op)
{
    const uint32_t reader = cs_net_tensor(net, op->output)->last_reader;
    return reader < net->n_ops ? net->ops[reader].kind : CS_OP_VIEW;
}

/* Whether an operator is one of several linear layers of a block with the same input, but not the
 * last of them: their common product then sums the gradients of the input. Other operators may read
 * the input too, in the block or in others, as the layers of a decoder read the encoder's
 * output. */
static bool shares_product(const cs_net *net, const cs_op *op)
{
    if (!is_product(op->kind) || op->wide || !cs_op_accumulates(net, op, 0))
        return false;
    for (uint32_t p = (uint32_t)(op - net->ops) + 1; p < net->n_ops; p++) {
        const cs_op *other = &net->ops[p];
        if (other->block != op->block)
            return false;
        if (other->kind == op->kind && !other->wide && other->inputs[0] == op->inputs[0])
            return true;
    }
    return false;
}

/* Removes the kernels of a linear layer that shares a product with later ones: the last layer to
 * read the input has all kernels of the product, except the cast of the input, which stays with its
 * layer. */
static void join_product(cs_op_cost *cost)
{
    cost->backward_input.flop -= cost->accumulate.flop;
    cost->backward_input.bytes -= cost->accumulate.bytes;
    cost->accumulate = (cs_pass_cost){0};
    cost->forward.launches -= cost->forward.launches > 0;
    cost->backward_input.launches = cost->backward_weight.launches = 0;
}

/* Whether an operator is the last of several linear layers in a block that read the same input. */
static bool ends_product(const cs_net *net, const cs_op *op)
{
    for (const cs_op *other = op; other > net->ops && other[-1].block == op->block; other--)
        if (other[-1].inputs[0] == op->inputs[0] && shares_product(net, &other[-1]))
            return is_product(op->kind) && !op->wide && !shares_product(net, op);
    return false;
}

static bool is_gathered(const cs_net *net, const cs_op *op)
{
    const cs_op *writer = op;
    while (writer > net->ops && writer->output != op->inputs[0])
        writer--;
    return writer->kind == CS_OP_EXCHANGE && writer->output == op->inputs[0];
}

/* Changes the costs of linear layers with the same input that stay separate products. The gradients
 * of their input are summed in a kernel that is needed anyway: a product, or the norm's backward.
 * It reads one tensor more for each layer except the last. Narrow products cannot add gradients; if
 * the sum is then sent, no kernel is left that could, so a separate kernel reads and writes it. */
static void leave_apart(const cs_net *net, const cs_op *op, cs_op_cost *cost)
{
    if (shares_product(net, op)) {
        const double read = (double)cost->input_bytes;
        cost->backward_input.bytes -= cost->accumulate.bytes - read;
        cost->backward_input.launches -= cost->accumulate.launches;
        cost->accumulate.bytes = read;
        cost->accumulate.launches = 0;
    } else if (cost->backward_input.cast_bytes > 0 && ends_product(net, op) &&
               is_gathered(net, op)) {
        cost->backward_input.bytes += 2 * (double)cost->input_bytes;
        cost->backward_input.launches++;
    }
}

/* Makes a norm one kernel per pass: forward reads and writes a tensor; backward reads two tensors
 * and writes one, and sums the gradients of the scales in the same kernel. */
static void fuse_norm(cs_op_cost *cost, double tensor)
{
    const cs_pass_cost sum = cost->accumulate;
    cost->forward.bytes = 2 * tensor;
    if (cost->backward_input.launches > 0)
        cost->backward_input =
            (cs_pass_cost){cost->backward_input.flop, 3 * tensor + sum.bytes, 1 + sum.launches, 0};
    cost->backward_weight = (cs_pass_cost){0};
}

/* Adds separate kernels that scale and mask the weights of attention; each reads and writes all
 * weights. Backward has a kernel for scaling, and one for masking if the mask selects
 * (torch.where), as a causal mask does (transformers 4.40, models/gpt2/modeling_gpt2.py, _attn;
 * models/bert/modeling_bert.py adds its mask). */
static void scale_apart(const cs_op *op, cs_op_cost *cost)
{
    /* unfused attention: its workspace holds the weights */
    const double weights = (double)cost->workspace_bytes;
    if (op->kind != CS_OP_ATTENTION || op->attention.kernel == CS_ATTENTION_FLASH)
        return;
    cost->forward.bytes += 4 * weights;
    cost->forward.launches += 2;
    if (cost->backward_input.launches > 0) {
        cost->backward_input.bytes += (op->attention.causal ? 4 : 2) * weights;
        cost->backward_input.launches += op->attention.causal ? 2 : 1;
    }
}

/* Adds the kernels around unfused attention: dropout of the weights, a copy of the result in the
 * order of tokens, and in backward a copy that joins the gradients of queries, keys and values. */
static void order_attention(const cs_op *op, cs_op_cost *cost)
{
    const uint32_t dropout = op->attention.dropout > 0;
    if (op->kind != CS_OP_ATTENTION || op->attention.kernel == CS_ATTENTION_FLASH)
        return;
    cost->forward.bytes += 2 * (double)cost->output_bytes;
    cost->forward.launches += 1 + dropout;
    if (cost->backward_input.launches > 0) {
        cost->backward_input.bytes += 2 * (double)cost->input_bytes;
        cost->backward_input.launches += 1 + dropout;
    }
}

/* Skips masked weights: Megatron-LM's one-kernel softmax with a causal mask reads only weights that
 * are not masked, which is half as much, and writes all (NVIDIA/Megatron-LM,
 * megatron/fused_kernels/ scaled_upper_triang_masked_softmax.h: elements below local_seq are
 * loaded); TransformerEngine has the same kernel. */
static void skip_masked(const cs_op *op, cs_op_cost *cost)
{
    /* unfused attention: its workspace holds the weights */
    const double weights = (double)cost->workspace_bytes;
    if (op->kind != CS_OP_ATTENTION || op->attention.kernel == CS_ATTENTION_FLASH ||
        !op->attention.causal)
        return;
    cost->forward.bytes -= weights / 2;
    if (cost->backward_input.launches > 0)
        cost->backward_input.bytes -= weights;
}

/* Splits GPT-2's activation into the kernels of its formula, x / 2 * (1 + tanh(c (x + a x^3))), as
 * transformers has it (transformers 4.40, activations.py, NewGELUActivation; minGPT,
 * mingpt/model.py, NewGELU). Forward: a power, four products, two sums and a tanh, each of which
 * reads one or two tensors and writes one. Backward: two products for the product of the two
 * factors, one for each product with a number, one kernel for the tanh, three for the power, and
 * two sums because x has three readers. */
static void write_out_gelu(const cs_op *op, cs_op_cost *cost)
{
    const double tensor = (double)cost->output_bytes;
    const cs_pass_cost sum = cost->accumulate;
    if (op->kind != CS_OP_GELU)
        return;
    cost->forward.bytes = 18 * tensor;
    cost->forward.launches = 8;
    if (cost->backward_input.launches > 0) {
        cost->backward_input.bytes = 28 * tensor + sum.bytes;
        cost->backward_input.launches = 11 + sum.launches;
    }
}

/* Splits rotary positions into PyTorch's operators, x cos + rotate(x) sin. Forward: a negation of
 * half of x, a concatenation with the other half, two products and a sum. Backward: two products, a
 * negation, a stack of both halves, and the sum of the two gradients of x
 * (microsoft/Megatron-DeepSpeed at f4157bea, megatron/model/rotary_pos_embedding.py:42 to 72). */
static void write_out_rotary(const cs_op *op, cs_op_cost *cost)
{
    enum { KERNELS = 5, MOVED = 1 + 2 + 2 * 2 + 3 };
    const double bytes = MOVED * (double)cost->output_bytes;
    const cs_pass_cost sum = cost->accumulate;
    if (op->kind != CS_OP_ROTARY)
        return;
    cost->forward.bytes = bytes;
    cost->forward.launches = KERNELS;
    if (cost->backward_input.launches > 0) {
        cost->backward_input.bytes = bytes + sum.bytes;
        cost->backward_input.launches = KERNELS + sum.launches;
    }
}

void cs_runtime_kernels_fuse(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                             cs_op_cost *cost)
{
    const bool activation = op->kind == CS_OP_SILU || op->kind == CS_OP_GELU;
    if (!kernels->given || op->n_inputs == 0)
        return;
    order_attention(op, cost);
    if (kernels->eager_rotary)
        write_out_rotary(op, cost);
    if (!kernels->fused) {
        scale_apart(op, cost);
        if (kernels->written_out)
            write_out_gelu(op, cost);
        return;
    }
    skip_masked(op, cost);
    if (op->kind == CS_OP_RMS_NORM || op->kind == CS_OP_LAYER_NORM) {
        fuse_norm(cost, (double)cost->output_bytes);
    } else if (activation && !kernels->eager_gate && kind_of_reader(net, op) == CS_OP_MUL) {
        cost->forward = cost->backward_input = cost->accumulate = (cs_pass_cost){0};
    } else if (op->kind == CS_OP_DROPOUT && kind_of_reader(net, op) == CS_OP_ADD) {
        cost->forward = (cs_pass_cost){0};
    } else if (kernels->separate_products) {
        leave_apart(net, op, cost);
    } else if (shares_product(net, op)) {
        join_product(cost);
    }
}

void cs_runtime_kernels_fall_back(const cs_runtime_kernels *kernels, const cs_op *op,
                                  uint32_t batch, cs_op_cost *cost)
{
    /* unfused attention: its workspace holds the weights */
    const double weights = (double)cost->workspace_bytes;
    const bool math = op->kind == CS_OP_ATTENTION && op->attention.kernel != CS_ATTENTION_FLASH;
    if (!kernels->given || !kernels->fused || !math || !op->attention.causal ||
        kernels->softmax_multiple == 0 ||
        (uint64_t)batch * op->attention.heads % kernels->softmax_multiple == 0)
        return;
    cost->forward.bytes += (14 - 1.5) * weights;
    cost->forward.launches += 3;
    if (cost->backward_input.launches > 0) {
        cost->backward_input.bytes += (16 - 2) * weights;
        cost->backward_input.launches += 3;
    }
}

void cs_runtime_kernels_add_up(const cs_runtime_kernels *kernels, const cs_op *op, double width,
                               double sum_width, cs_op_cost *cost)
{
    const double more = (2 * sum_width - width) * (double)op->weights;
    if (!kernels->given || !is_product(op->kind) || !(cost->backward_weight.flop > 0))
        return;
    cost->backward_weight.bytes += more;
    if (cost->backward_weight.product_bytes > 0) {
        cost->backward_weight.product_bytes += more;
        cost->backward_weight.result_bytes += more;
    }
}

void cs_runtime_kernels_add_apart(const cs_runtime_kernels *kernels, double width, double sum_width,
                                  cs_op_cost *cost)
{
    const int64_t trained = cost->weights + cost->biases - cost->frozen;
    if (kernels->given && kernels->sums_apart)
        cost->backward_weight.cast_bytes += (width + 2 * sum_width) * (double)trained;
}

/* Adds two kernels before a cast: one finds the largest element, the other computes the scale from
 * it. */
static void read_again(double bytes, cs_pass_cost *pass)
{
    if (!(pass->cast_bytes > 0))
        return;
    pass->cast_bytes += bytes;
    pass->launches += 2;
}

void cs_runtime_kernels_scale(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                              uint32_t batch, cs_precision precision, cs_op_cost *cost)
{
    if (!kernels->given || !kernels->current_scaling || !is_product(op->kind) ||
        cs_op_precision(op, precision) != CS_PRECISION_FP8)
        return;
    const cs_tensor_info *in = cs_net_tensor(net, op->inputs[0]);
    const cs_tensor_info *out = cs_net_tensor(net, op->output);
    const double width = (double)cs_precision_bytes(precision) * batch;
    read_again(width * (double)in->elements, &cost->forward);
    read_again(width * (double)out->elements, &cost->backward_input);
    read_again(width * (double)out->elements, &cost->backward_weight);
}

static void merge_eagerly(double elements, double width, uint32_t steps, cs_op_cost *cost)
{
    enum { FLOATS = 4, MERGED = 8 * FLOATS };
    const double joined = 2 * 2 * width, added = 3 * (width + 2 * FLOATS), sent = 2 * 2 * FLOATS;
    cost->forward.cast_bytes +=
        elements * ((steps + 1) * (width + FLOATS) + (steps - 1) * (MERGED + joined));
    cost->forward.launches += steps + 1 + 4 * (steps - 1);
    if (cost->backward_input.launches > 0) {
        cost->backward_input.cast_bytes += elements * steps * (added + sent);
        cost->backward_input.launches += 4 * steps;
    }
}

/* Adds the kernels of TransformerEngine's ring, for E elements of the result and K of keys and
 * values. Forward: a join, n - 1 copies, n sums, a fill and n - 1 merges of logarithms. Backward: a
 * copy, n - 1 more copies, and 2 n sums. */
static void sum_up(double result, double pairs, double width, uint32_t steps, cs_op_cost *cost)
{
    cost->forward.cast_bytes += width * (result * (1 + 3 * steps) + pairs * (1 + steps));
    cost->forward.launches += 3 * steps;
    if (cost->backward_input.launches > 0) {
        cost->backward_input.cast_bytes +=
            width * (result * (3 * steps - 1) + pairs * (2.5 * steps + 2));
        cost->backward_input.launches += 3 * steps;
    }
}

void cs_runtime_kernels_ring(const cs_runtime_kernels *kernels, const cs_net *net, const cs_op *op,
                             uint32_t batch, cs_precision precision, cs_op_cost *cost)
{
    const uint32_t steps = op->attention.steps;
    if (!kernels->given || op->kind != CS_OP_ATTENTION ||
        op->attention.kernel != CS_ATTENTION_FLASH || steps < 2)
        return;
    const double width = cs_precision_bytes(cs_precision_wide(precision));
    const double result = (double)batch * (double)cs_net_tensor(net, op->output)->elements;
    const double keys = (double)cs_net_tensor(net, op->inputs[1])->elements;
    const double values = (double)cs_net_tensor(net, op->inputs[2])->elements;
    if (kernels->eager_ring)
        merge_eagerly(result, width, steps, cost);
    else if (kernels->summed_ring)
        sum_up(result, batch * (keys + values), width, steps, cost);
}

/* ---- filling ---- */

static void fill(double bytes, uint32_t tensors, cs_pass_cost *pass)
{
    if (pass->launches == 0)
        return; /* nothing is made, or a kernel of another operator makes it */
    pass->cast_bytes += bytes;
    pass->launches += tensors;
}

void cs_runtime_kernels_fill(const cs_runtime_kernels *kernels, const cs_op *op,
                             cs_precision precision, bool apart, cs_op_cost *cost)
{
    if (!kernels->given || !kernels->deterministic)
        return;
    fill((double)cost->output_bytes, 1, &cost->forward);
    fill((double)cost->input_bytes, op->n_inputs, &cost->backward_input);
    if (apart)
        fill((double)(cost->weights + cost->biases) * cs_precision_bytes(precision), 1,
             &cost->backward_weight);
}

/* ---- the host ---- */

static bool is_of_experts(cs_op_kind kind)
{
    return kind == CS_OP_GROUPED_LINEAR || kind == CS_OP_DISPATCH || kind == CS_OP_COMBINE;
}

/* The number of kernels that reorder the scales of blocks: one per operand of a product
 * (transformer_engine/common/swizzle). 0 if the product belongs to another layer and only the cast
 * is left. */
static uint32_t kernels_of_scales(const cs_op *op, const cs_pass_cost *cost, cs_precision precision)
{
    const cs_precision of = cs_op_precision(op, precision);
    const bool blocks = of == CS_PRECISION_MXFP8 || of == CS_PRECISION_NVFP4;
    return is_product(op->kind) && blocks && cost->launches > (cost->cast_bytes > 0) ? 2 : 0;
}

static double host_factor(const cs_accelerator *device)
{
    return device->training.host ? device->training.host->factor : 1;
}

/* The number of kernels of a pass that the host starts one by one. */
static double started(const cs_runtime_kernels *kernels, const cs_op *op, const cs_pass_cost *pass,
                      cs_precision precision)
{
    if (pass->launches == 0)
        return 0;
    const double all = pass->launches + kernels_of_scales(op, pass, precision);
    return kernels->expert_loop && op->kind == CS_OP_GROUPED_LINEAR ? all * op->experts : all;
}

/* The number of operators that the host goes through to start the kernels of a pass. */
static double operators(const cs_op *op, const cs_op_cost *cost, double kernels)
{
    const bool math = op->kind == CS_OP_ATTENTION && op->attention.kernel != CS_ATTENTION_FLASH;
    if (math)
        return kernels;
    return kernels > 0 ? fmax(cost->modules, 1) : 0;
}

static cs_time host_call(const cs_runtime_kernels *kernels)
{
    return kernels->host_call > 0 ? kernels->host_call : kernels->host;
}

cs_host_seconds cs_runtime_kernels_host(const cs_runtime_kernels *kernels,
                                        const cs_accelerator *device, const cs_op *op,
                                        const cs_op_cost *cost, cs_precision precision, bool apart)
{
    const double forward = started(kernels, op, &cost->forward, precision);
    const double input = started(kernels, op, &cost->backward_input, precision);
    const double weight = started(kernels, op, &cost->backward_weight, precision);
    const double sums = apart ? (cost->weights > 0) + (cost->biases > 0) : 0;
    const double trained = cost->backward_weight.launches > 0 ? sums : 0;
    const bool longer = is_product(op->kind) && kernels->host_product_backward > 0;
    const double each = cs_time_seconds(kernels->host) * host_factor(device);
    const cs_time call = longer ? kernels->host_product_backward : host_call(kernels);
    const double back = cs_time_seconds(call) * host_factor(device);
    const double kernel = cs_time_seconds(kernels->host_kernel) * host_factor(device);
    if (kernels->graphs && !is_of_experts(op->kind))
        return (cs_host_seconds){0};
    const double pass = input + weight > 0 ? operators(op, cost, input + weight) * back : 0;
    const double share = input + weight > 0 ? input / (input + weight) : 0;
    return (cs_host_seconds){operators(op, cost, forward) * each + forward * kernel,
                             share * pass + input * kernel,
                             (1 - share) * pass + (weight + trained) * kernel, 0};
}

double cs_runtime_kernels_starts(const cs_runtime_kernels *kernels, const cs_accelerator *device,
                                 double n)
{
    return n * cs_time_seconds(kernels->host_kernel) * host_factor(device);
}

double cs_runtime_kernels_message(const cs_runtime_kernels *kernels, const cs_accelerator *device)
{
    const double one = cs_time_seconds(host_call(kernels)) + cs_time_seconds(kernels->host_kernel);
    return kernels->graphs ? 0 : one * host_factor(device);
}

double cs_runtime_kernels_batch(const cs_runtime_kernels *kernels, const cs_accelerator *device)
{
    const double one = cs_time_seconds(kernels->host) + cs_time_seconds(kernels->host_kernel);
    return kernels->batch_operators * one * host_factor(device);
}

/* ---- times ---- */

/* Seconds of the flop of fused attention, at the share of the device's peak that the kernel
 * reaches. */
static double seconds_of_flash(const cs_accelerator *device, uint32_t version,
                               const cs_pass_cost *cost, cs_pass pass, double peak)
{
    const cs_flash_rate *rate = device->training.flash[version];
    if (!rate && version == CS_FLASH_CUDNN_FP8)
        rate = device->training.flash[CS_FLASH_CUDNN];
    if (!rate)
        return cost->flop / (peak * device->groups[CS_GROUP_ATTENTION].compute);
    const double reached = pass == CS_PASS_FORWARD ? rate->forward : rate->backward;
    return cost->flop / (peak * reached) * cs_fused_attention_factor(rate, cost, pass);
}

static const cs_efficiency *efficiency_of_product(const cs_accelerator *device, const cs_op *op,
                                                  cs_precision precision)
{
    const cs_training *t = &device->training;
    const cs_precision own = cs_op_precision(op, precision);
    const cs_efficiency *found = NULL;
    if (precision == CS_PRECISION_FP32)
        found = t->single;
    else if (op->kind == CS_OP_GROUPED_LINEAR)
        found = t->grouped_narrow[own] ? t->grouped_narrow[own] : t->grouped;
    if (!found)
        found = t->narrow[own];
    found = found ? found : t->matrix;
    return found ? found : &device->groups[CS_GROUP_LINEAR];
}

static double memory_rate(const cs_accelerator *device)
{
    const cs_efficiency *memory = device->training.memory;
    return device->bandwidth *
           (memory ? memory->memory : device->groups[CS_GROUP_ELEMENTWISE].memory);
}

/* Bytes per second that an operator moves. Kernels that gather or scatter rows are slower, like an
 * embedding. */
static double rate_of(const cs_accelerator *device, const cs_op *op)
{
    return op->kind == CS_OP_DISPATCH || op->kind == CS_OP_COMBINE
               ? device->bandwidth * device->groups[CS_GROUP_EMBEDDING].memory
               : memory_rate(device);
}

/* Seconds to launch kernels one after another. A loop over experts launches on several streams, or
 * on one stream if each expert has modules of its own. */
static double starts_of(const cs_runtime_kernels *kernels, const cs_accelerator *device,
                        const cs_op *op, const cs_pass_cost *cost)
{
    enum { STREAMS = 4 };
    const bool loop = kernels->expert_loop && op->kind == CS_OP_GROUPED_LINEAR;
    const double streams = kernels->expert_modules ? 1 : STREAMS;
    const double rounds = loop && op->experts > streams ? op->experts / streams : 1;
    return cost->launches * rounds * cs_time_seconds(device->launch);
}

/* A tile of a result, and the share of the largest tile's rate that it reaches: narrower tiles read
 * more per multiplication. For fp32 the share is assumed; for narrower types it is 0.93 per
 * halving, least squares over 375 products on an H100 (ROCm/xla at 14ea5422, xla/service/gpu/model/
 * matmul_interpolator_data.h). A zeroed row ends a list. */
typedef struct tile {
    double rows, columns, reached;
} tile;

static const tile single_tiles[] = {{128, 128, 1}, {128, 64, 0.8}, {64, 128, 0.8}, {0}};
static const tile narrow_tiles[] = {{256, 128, 1},    {128, 256, 1},    {128, 128, 0.93},
                                    {128, 64, 0.865}, {64, 128, 0.865}, {0}};

/* Waves that `tiles` tiles take on the multiprocessors; `alone`: no other product fills the last
 * wave. */
static double waves_of(const cs_tiling *tiling, double tiles, bool alone)
{
    const double waves = tiles / tiling->multiprocessors;
    return alone ? ceil(waves) : waves;
}

/* Seconds of a matrix product at `rate`. Each multiprocessor computes one tile of the result at a
 * time, so tiles take whole waves (NVIDIA, Matrix Multiplication Background User's Guide, sections
 * 3.3 and 3.4), and each wave has to be filled before its first multiplication. Libraries choose
 * the variant that leaves fewer multiprocessors idle: narrower tiles, or sums split into parts of
 * at least 512 products each, which are written in fp32, read and added (split-K kernels of cuBLAS
 * and rocBLAS). A linear layer that shares its product with another one also shares its waves. */
static double seconds_in_tiles(const cs_accelerator *device, const cs_pass_cost *cost,
                               const tile *tiles, double rate)
{
    const cs_tiling *tiling = device->training.tiling;
    const double results = cost->rows * cost->columns, m = tiling->multiprocessors;
    const bool alone = cost->launches > 0;
    double best = (double)INFINITY;
    for (; tiles->rows > 0; tiles++) {
        const double size = tiles->rows * tiles->columns;
        const double n = ceil(cost->rows / tiles->rows) * ceil(cost->columns / tiles->columns);
        for (double parts = 1; parts <= 4; parts++) {
            if (parts > 1 && cost->flop < parts * 2 * 512 * results)
                break;
            const double each = cost->flop / results * size / parts / (rate * tiles->reached / m);
            const double sums = parts > 1 ? 2 * parts * 4 * results / memory_rate(device) : 0;
            best = fmin(
                best,
                waves_of(tiling, n * parts, alone) * (each + cs_time_seconds(tiling->fill)) + sums);
        }
    }
    return best;
}

/* Seconds of a product. Computing hides moving if tiles are read in time, except for a part of the
 * results, which are written last. If tiles are not known, and for experts, whose products have
 * many matrices, the two times add up, as in SimuMax's grouped products (MooreThreads,
 * 4dcaae51). */
static double seconds_of_product(const cs_accelerator *device, const cs_op *op,
                                 const cs_pass_cost *cost, double peak, cs_precision precision)
{
    const cs_efficiency *reached = efficiency_of_product(device, op, precision);
    const double rate = peak * reached->compute, bandwidth = device->bandwidth * reached->memory;
    const cs_tiling *tiling = device->training.tiling;
    const bool single = precision == CS_PRECISION_FP32;
    const bool tiled = tiling && op->kind == CS_OP_LINEAR && cost->rows * cost->columns > 0;
    if (tiled)
        return fmax(seconds_in_tiles(device, cost, single ? single_tiles : narrow_tiles, rate),
                    cost->product_bytes / bandwidth) +
               tiling->written * cost->result_bytes / bandwidth +
               fmax(cost->bytes - cost->product_bytes, 0) / memory_rate(device);
    return single && is_product(op->kind) ? fmax(cost->flop / rate, cost->bytes / bandwidth)
                                          : cost->flop / rate + cost->bytes / bandwidth;
}

static double in_step(const cs_runtime_kernels *kernels, const cs_accelerator *device)
{
    const cs_factor *factor = device->training.in_step;
    return (factor ? factor->factor : 1) * (kernels->factor > 0 ? kernels->factor : 1);
}

double cs_runtime_kernels_seconds(const cs_runtime_kernels *kernels, const cs_accelerator *device,
                                  const cs_op *op, const cs_pass_cost *cost, cs_pass pass,
                                  cs_precision precision)
{
    const double peak =
        device->peaks[cost->unaligned ? CS_PRECISION_FP32 : cs_op_precision(op, precision)];
    const double starts = starts_of(kernels, device, op, cost);
    const bool flash = op->kind == CS_OP_ATTENTION && op->attention.kernel == CS_ATTENTION_FLASH;
    double seconds = cost->cast_bytes / memory_rate(device);
    if (flash) {
        seconds += fmax(seconds_of_flash(device, kernels->flash, cost, pass, peak),
                        cost->bytes / memory_rate(device));
    } else if (is_product(op->kind) || op->kind == CS_OP_ATTENTION) {
        seconds += seconds_of_product(device, op, cost, peak, precision);
    } else if (op->kind == CS_OP_CONV) {
        return cs_accelerator_conv_seconds(device, op, cost, precision,
                                           efficiency_of_product(device, op, precision)) *
               in_step(kernels, device);
    } else {
        seconds +=
            fmax(cost->flop / device->peaks[CS_PRECISION_FP32], cost->bytes / rate_of(device, op));
    }
    return (starts + seconds) * in_step(kernels, device);
}

double cs_runtime_kernels_update(const cs_runtime_kernels *kernels, const cs_accelerator *device,
                                 double bytes, double gradient_bytes)
{
    const double passes = kernels->gradient_passes * gradient_bytes;
    return cs_time_seconds(device->launch) + (bytes + passes) / memory_rate(device);
}

double cs_runtime_kernels_count_zeros(const cs_runtime_kernels *kernels,
                                      const cs_accelerator *device, double gradients, double width,
                                      uint32_t tensors)
{
    enum { KERNELS = 4 };
    if (!kernels->given || !kernels->counts_zeros)
        return 0;
    return fmax(gradients * (width + 2) / memory_rate(device),
                cs_runtime_kernels_starts(kernels, device, (double)KERNELS * tensors));
}
