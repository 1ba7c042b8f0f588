#include "calib/bench/cuda/device-operators.h"

enum {
    FLOAT = sizeof(float),
    MANY_ITEMS = 1 << 18,  /* number of items that keeps a large GPU busy */
    MOST_CHUNKS = 1 << 12, /* number of chunks that the threads of a block add quickly */
    SHARES = 1024,         /* parts of the elements of a squared error */
};

cs_status cs_launch(const cs_launcher *launcher, cs_body body, cs_precision precision,
                    const cs_work *work, int64_t items, cs_error *error)
{
    return items == 0 ? CS_OK
                      : launcher->start(launcher->context, body, precision, work, items, error);
}

/* ---- common parts ---- */

typedef struct call {
    const cs_launcher *launcher;
    const cs_kernel *kernel;
    const cs_operands *at;
    cs_error *error;
    int64_t batch, in, out, rows, columns; /* elements of the batch; shape of the first input */
} call;

static cs_status start(const call *c, cs_body body, const cs_work *work, int64_t items)
{
    return cs_launch(c->launcher, body, c->kernel->precision, work, items, c->error);
}

static char *element(const call *c, const void *data, int64_t i)
{
    return (char *)data + i * cs_precision_bytes(c->kernel->precision);
}

/* ---- sums over rows ---- */

static int64_t chunks_of(int64_t rows, int64_t columns)
{
    int64_t chunks = MANY_ITEMS / columns < MOST_CHUNKS ? MANY_ITEMS / columns : MOST_CHUNKS;
    return chunks < 1 ? 1 : chunks > rows ? rows : chunks;
}

int64_t cs_device_sums_bytes(int64_t rows, int64_t columns)
{
    return FLOAT * chunks_of(rows, columns) * columns;
}

/* Sums rows. `work` has g, from_stride, rows, columns, and what is normalised. */
static cs_status sum_rows(const cs_launcher *launcher, cs_precision precision, cs_work *work,
                          void *to, void *workspace, cs_error *error)
{
    int64_t chunks = chunks_of(work->rows, work->columns);
    cs_work add = {.s = workspace, .y = to, .columns = chunks, .from_stride = work->columns};
    work->n = chunks;
    work->s = workspace;
    cs_status status =
        cs_launch(launcher, CS_BODY_sum_columns, precision, work, chunks * work->columns, error);
    return status == CS_OK ? cs_launch(launcher, CS_BODY_add_partial_sums, precision, &add,
                                       work->columns, error)
                           : status;
}

cs_status cs_device_sum_rows(const cs_launcher *launcher, cs_precision precision, const void *from,
                             int64_t stride, int64_t rows, int64_t columns, void *to,
                             void *workspace, cs_error *error)
{
    cs_work work = {.g = from, .from_stride = stride, .rows = rows, .columns = columns};
    return sum_rows(launcher, precision, &work, to, workspace, error);
}

/* ---- memory ---- */

cs_status cs_device_fill(const cs_launcher *launcher, cs_fill fill, cs_precision precision,
                         void *data, int64_t elements, double limit, cs_error *error)
{
    cs_work work = {.y = data, .scale = (float)limit, .n = (int64_t)limit};
    return cs_launch(launcher, fill == CS_FILL_IDS ? CS_BODY_fill_ids : CS_BODY_fill_numbers,
                     precision, &work, elements, error);
}

cs_status cs_device_widen(const cs_launcher *launcher, cs_precision precision, float *to,
                          const void *from, int64_t elements, cs_error *error)
{
    cs_work work = {.a = from, .y = to};
    return cs_launch(launcher, CS_BODY_widen, precision, &work, elements, error);
}

cs_status cs_device_update(const cs_launcher *launcher, const cs_update *update, cs_error *error)
{
    cs_work work = {.a = update->from,
                    .y = update->to,
                    .s = update->states,
                    .t = update->gradients,
                    .n = update->parameters,
                    .kind = (int32_t)update->n_states};
    return cs_launch(launcher, CS_BODY_update, update->precision, &work, update->parameters, error);
}

/* ---- elementwise operators ---- */

static cs_status map(const call *c, cs_pass pass)
{
    bool forward = pass == CS_PASS_FORWARD;
    cs_op_kind kind = c->kernel->op->kind;
    bool by_input = forward || kind == CS_OP_GELU || kind == CS_OP_SILU;
    cs_work work = {.a = by_input ? c->at->in[0].data : c->at->out.data,
                    .g = c->at->grad_out.data,
                    .y = forward ? c->at->out.data : c->at->grad_in[0].data,
                    .kind = (int32_t)kind};
    return start(c, forward ? CS_BODY_map_forward : CS_BODY_map_input, &work, c->out);
}

/* Adds two tensors, or a tensor and the first rows of a learned table, the same for every
 * sample. */
static cs_status add(const call *c, cs_pass pass)
{
    bool learned = c->kernel->op->n_inputs == 1;
    int64_t n = c->out / c->batch;
    if (pass != CS_PASS_FORWARD)
        return cs_device_sum_rows(c->launcher, c->kernel->precision, c->at->grad_out.data, n,
                                  c->batch, n, c->at->grad_parameters, c->at->workspace, c->error);
    cs_work work = {.a = c->at->in[0].data,
                    .b = learned ? c->at->parameters : c->at->in[1].data,
                    .y = c->at->out.data,
                    .n = n};
    return start(c, learned ? CS_BODY_add_table : CS_BODY_add, &work, c->out);
}

static cs_status mul(const call *c, cs_pass pass)
{
    cs_work work = {.a = c->at->in[0].data, .b = c->at->in[1].data, .y = c->at->out.data};
    cs_status status = CS_OK;
    if (pass == CS_PASS_FORWARD)
        return start(c, CS_BODY_mul, &work, c->out);
    for (uint32_t i = 0; i < 2 && status == CS_OK; i++) {
        work.a = c->at->grad_out.data;
        work.b = c->at->in[1 - i].data;
        work.y = c->at->grad_in[i].data;
        status = work.y ? start(c, CS_BODY_mul, &work, c->out) : CS_OK;
    }
    return status;
}

static cs_status dropout(const call *c, cs_pass pass)
{
    bool forward = pass == CS_PASS_FORWARD;
    cs_work work = {.a = c->at->in[0].data,
                    .g = c->at->grad_out.data,
                    .s = c->at->saved,
                    .y = forward ? c->at->out.data : c->at->grad_in[0].data};
    return start(c, forward ? CS_BODY_dropout_forward : CS_BODY_dropout_input, &work, c->out);
}

static cs_status rotary(const call *c, cs_pass pass)
{
    bool forward = pass == CS_PASS_FORWARD;
    cs_work work = {.a = forward ? c->at->in[0].data : c->at->grad_out.data,
                    .y = forward ? c->at->out.data : c->at->grad_in[0].data,
                    .rows = c->rows / c->batch,
                    .columns = c->columns,
                    .scale = forward ? 1 : -1};
    return start(c, CS_BODY_rotate, &work, c->out / 2);
}

/* ---- copies ---- */

/* Returns the largest unit of a copy, in bytes, that divides all addresses and distances. */
static int32_t unit_of(uintptr_t addresses_and_distances)
{
    return addresses_and_distances % 16 == 0 ? 16 : addresses_and_distances % 4 == 0 ? 4 : 2;
}

/* Copies n numbers per row; rows are from_stride and to_stride apart. With ids, copies the rows
 * that they name. */
cs_status cs_device_copy_rows(const cs_launcher *launcher, cs_precision precision,
                              const cs_rows *rows, cs_error *error)
{
    int64_t width = cs_precision_bytes(precision);
    int64_t distances = (rows->from_stride | rows->to_stride | rows->columns) * width;
    int32_t unit = unit_of((uintptr_t)rows->from | (uintptr_t)rows->to | (uintptr_t)distances);
    cs_work work = {.a = rows->from,
                    .b = rows->ids,
                    .y = rows->to,
                    .columns = rows->columns * width / unit,
                    .from_stride = rows->from_stride * width / unit,
                    .to_stride = rows->to_stride * width / unit,
                    .kind = unit};
    return cs_launch(launcher, CS_BODY_copy_rows, precision, &work, rows->n * work.columns, error);
}

static cs_status copy_blocks(const call *c, const void *from, int64_t from_stride, void *to,
                             int64_t to_stride, int64_t n)
{
    const cs_rows rows = {from, to, NULL, from_stride, to_stride, c->batch, n};
    return cs_device_copy_rows(c->launcher, c->kernel->precision, &rows, c->error);
}

static cs_status copy(const call *c, cs_pass pass)
{
    bool forward = pass == CS_PASS_FORWARD;
    const void *from = forward ? c->at->in[0].data : c->at->grad_out.data;
    void *to = forward ? c->at->out.data : c->at->grad_in[0].data;
    int64_t n = c->out / c->batch;
    return to && to != from ? copy_blocks(c, from, n, to, n, n) : CS_OK;
}

/* Concatenates; if there are parameters, they are a learned first row. */
static cs_status concat(const call *c, cs_pass pass)
{
    int64_t whole = c->out / c->batch, first = c->kernel->op->weights;
    cs_status status = CS_OK;
    if (first > 0 && pass == CS_PASS_FORWARD)
        status = copy_blocks(c, c->at->parameters, 0, c->at->out.data, whole, first);
    else if (first > 0)
        status =
            cs_device_sum_rows(c->launcher, c->kernel->precision, c->at->grad_out.data, whole,
                               c->batch, first, c->at->grad_parameters, c->at->workspace, c->error);
    for (uint32_t i = 0; i < c->kernel->op->n_inputs && status == CS_OK; i++) {
        int64_t n = cs_kernel_in(c->kernel, i)->elements;
        void *grad = c->at->grad_in[i].data;
        if (pass == CS_PASS_FORWARD)
            status =
                copy_blocks(c, c->at->in[i].data, n, element(c, c->at->out.data, first), whole, n);
        else if (grad)
            status = copy_blocks(c, element(c, c->at->grad_out.data, first), whole, grad, n, n);
        first += n;
    }
    return status;
}

/* ---- pooling and embeddings ---- */

cs_window_work cs_device_window(const cs_kernel *kernel)
{
    const cs_op *op = kernel->op;
    const cs_shape *in = &cs_kernel_in(kernel, 0)->shape, *out = &cs_kernel_out(kernel)->shape;
    cs_window_work window = {.adaptive = op->kind == CS_OP_ADAPTIVE_POOL,
                             .most = op->kind == CS_OP_MAX_POOL};
    for (uint32_t i = 0; i < 3; i++) {
        bool has = i < op->kernel.rank;
        window.in[i] = 1 + i < in->rank ? (int32_t)in->dims[1 + i] : 1;
        window.out[i] = 1 + i < out->rank ? (int32_t)out->dims[1 + i] : 1;
        window.kernel[i] = has ? (int32_t)op->kernel.size[i] : 1;
        window.stride[i] = has ? (int32_t)op->stride.size[i] : 1;
        window.pad[i] = has ? (int32_t)op->pad.size[i] : 0;
    }
    return window;
}

static cs_status pool(const call *c, cs_pass pass)
{
    bool forward = pass == CS_PASS_FORWARD;
    cs_work work = {.a = c->at->in[0].data,
                    .g = c->at->grad_out.data,
                    .s = c->at->saved,
                    .y = forward ? c->at->out.data : c->at->grad_in[0].data,
                    .window = cs_device_window(c->kernel)};
    return forward ? start(c, CS_BODY_pool_forward, &work, c->out)
                   : start(c, CS_BODY_pool_input, &work, c->in);
}

static cs_status embedding(const call *c, cs_pass pass)
{
    const cs_tensor_info *out = cs_kernel_out(c->kernel);
    int64_t columns = cs_tensor_columns(out), n = cs_tensor_rows(out) * c->batch;
    const cs_rows rows = {.from = c->at->parameters,
                          .to = c->at->out.data,
                          .ids = c->at->in[0].data,
                          .from_stride = columns,
                          .to_stride = columns,
                          .n = n,
                          .columns = columns};
    if (pass == CS_PASS_FORWARD)
        return cs_device_copy_rows(c->launcher, c->kernel->precision, &rows, c->error);
    cs_work work = {.a = c->at->in[0].data,
                    .g = c->at->grad_out.data,
                    .y = c->at->grad_parameters,
                    .columns = columns};
    return start(c, CS_BODY_embedding_weight, &work, c->out);
}

/* ---- norms of rows ---- */

static cs_status norm_weight(const call *c, const float *inverses, const float *means)
{
    cs_work work = {.a = c->at->in[0].data,
                    .b = inverses,
                    .w = means,
                    .g = c->at->grad_out.data,
                    .from_stride = c->columns,
                    .rows = c->rows,
                    .columns = c->columns,
                    .flag = 1};
    cs_precision precision = c->kernel->precision;
    cs_status status =
        sum_rows(c->launcher, precision, &work, c->at->grad_parameters, c->at->workspace, c->error);
    if (status != CS_OK || c->kernel->op->biases == 0)
        return status;
    return cs_device_sum_rows(c->launcher, precision, c->at->grad_out.data, c->columns, c->rows,
                              c->columns, element(c, c->at->grad_parameters, c->columns),
                              c->at->workspace, c->error);
}

static cs_status row_norm(const call *c, cs_pass pass)
{
    bool centred = c->kernel->op->kind == CS_OP_LAYER_NORM;
    float *saved = c->at->saved;
    cs_work work = {.a = c->at->in[0].data,
                    .g = c->at->grad_out.data,
                    .w = c->at->parameters,
                    .s = saved,
                    .rows = c->rows,
                    .columns = c->columns,
                    .flag = centred};
    if (pass == CS_PASS_BACKWARD_WEIGHT)
        return norm_weight(c, centred ? saved + c->rows : saved, centred ? saved : NULL);
    work.y = c->at->grad_in[0].data;
    if (pass == CS_PASS_BACKWARD_INPUT)
        return start(c, CS_BODY_norm_input, &work, c->rows);
    work.y = c->at->out.data;
    if (c->kernel->op->biases > 0)
        work.b = element(c, c->at->parameters, c->columns);
    return start(c, CS_BODY_norm_forward, &work, c->rows);
}

/* ---- losses ---- */

static cs_status entropy(const call *c, cs_pass pass)
{
    cs_work work = {.a = c->at->in[0].data,
                    .s = c->at->saved,
                    .t = (char *)c->at->saved + cs_kernel_targets_at(c->kernel),
                    .y = c->at->workspace,
                    .columns = c->columns,
                    .scale = 1 / (float)c->rows};
    cs_work sum = {.a = c->at->workspace, .y = c->at->out.data, .n = c->rows, .scale = work.scale};
    if (pass == CS_PASS_FORWARD) {
        CS_TRY(start(c, CS_BODY_entropy_forward, &work, c->rows));
        return start(c, CS_BODY_sum_up, &sum, 1);
    }
    work.y = c->at->grad_in[0].data;
    return start(c, CS_BODY_entropy_input, &work, c->rows);
}

/* The target is a row of zeros. */
static cs_status squares(const call *c, cs_pass pass)
{
    cs_work work = {.a = c->at->in[0].data,
                    .s = c->at->saved,
                    .y = c->at->workspace,
                    .rows = SHARES,
                    .n = c->in};
    cs_work sum = {
        .a = c->at->workspace, .y = c->at->out.data, .n = SHARES, .scale = 1 / (float)c->in};
    if (pass == CS_PASS_FORWARD) {
        CS_TRY(start(c, CS_BODY_squares_forward, &work, SHARES));
        return start(c, CS_BODY_sum_up, &sum, 1);
    }
    work.y = c->at->grad_in[0].data;
    work.scale = 2 / (float)c->in;
    return start(c, CS_BODY_squares_input, &work, c->in);
}

/* ---- all operators ---- */

static cs_status (*const operators[CS_N_OP_KINDS])(const call *c, cs_pass pass) = {
    [CS_OP_LAYER_NORM] = row_norm,
    [CS_OP_RMS_NORM] = row_norm,
    [CS_OP_RELU] = map,
    [CS_OP_GELU] = map,
    [CS_OP_SILU] = map,
    [CS_OP_TANH] = map,
    [CS_OP_ROTARY] = rotary,
    [CS_OP_MUL] = mul,
    [CS_OP_ADD] = add,
    [CS_OP_DROPOUT] = dropout,
    [CS_OP_COPY] = copy,
    [CS_OP_CONCAT] = concat,
    [CS_OP_MAX_POOL] = pool,
    [CS_OP_AVG_POOL] = pool,
    [CS_OP_ADAPTIVE_POOL] = pool,
    [CS_OP_EMBEDDING] = embedding,
    [CS_OP_CROSS_ENTROPY] = entropy,
    [CS_OP_SQUARED_ERROR] = squares,
};

int64_t cs_device_workspace(const cs_kernel *kernel, cs_pass pass)
{
    const cs_tensor_info *in = cs_kernel_in(kernel, 0), *out = cs_kernel_out(kernel);
    int64_t rows = cs_tensor_rows(in) * kernel->batch;
    switch (kernel->op->kind) {
    case CS_OP_LAYER_NORM:
    case CS_OP_RMS_NORM:
        return pass == CS_PASS_BACKWARD_WEIGHT ? cs_device_sums_bytes(rows, cs_tensor_columns(in))
                                               : 0;
    case CS_OP_ADD:
        return pass == CS_PASS_BACKWARD_WEIGHT ? cs_device_sums_bytes(kernel->batch, out->elements)
                                               : 0;
    case CS_OP_CONCAT:
        return pass != CS_PASS_FORWARD && kernel->op->weights > 0
                   ? cs_device_sums_bytes(kernel->batch, kernel->op->weights)
                   : 0;
    case CS_OP_CROSS_ENTROPY:
        return pass == CS_PASS_FORWARD ? FLOAT * rows : 0;
    case CS_OP_SQUARED_ERROR:
        return pass == CS_PASS_FORWARD ? FLOAT * SHARES : 0;
    default:
        return 0;
    }
}

cs_status cs_device_run(const cs_launcher *launcher, const cs_kernel *kernel, cs_pass pass,
                        const cs_operands *at, cs_error *error)
{
    const cs_tensor_info *in = cs_kernel_in(kernel, 0);
    call c = (call){.launcher = launcher,
                    .kernel = kernel,
                    .at = at,
                    .error = error,
                    .batch = kernel->batch,
                    .in = in->elements * kernel->batch,
                    .out = cs_kernel_out(kernel)->elements * kernel->batch,
                    .rows = cs_tensor_rows(in) * kernel->batch,
                    .columns = cs_tensor_columns(in)};
    return operators[kernel->op->kind](&c, pass);
}
