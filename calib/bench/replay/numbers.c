#include "calib/bench/replay/numbers.h"

#include <math.h>
#include <stdlib.h>

/* Returns the number at `index` of a stream, uniform in (-1, 1) (SplitMix64: Steele et al., OOPSLA
 * 2014). */
static double draw(uint64_t stream, uint64_t index)
{
    uint64_t z = (stream * UINT64_C(0xd1342543de82ef95) + index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return 2 * ((double)(z >> 11) + 0.5) * 0x1p-53 - 1;
}

/* ---- the weights of a place ---- */

/* Weights as a matrix with one row per output and `inner` numbers per input. */
typedef struct matrix {
    uint64_t stream;
    int64_t columns;           /* columns of the whole matrix */
    int64_t n_rows, n_columns; /* rows and columns of the place */
    const int64_t *rows;       /* indices of its rows; NULL: consecutive from first_row */
    int64_t first_row, first_column;
    double middle, width;
} matrix;

static void fill(const matrix *m, float *to)
{
    for (int64_t r = 0; r < m->n_rows; r++) {
        const int64_t row = m->rows ? m->rows[r] : m->first_row + r;
        for (int64_t c = 0; c < m->n_columns; c++)
            to[r * m->n_columns + c] =
                (float)(m->middle + m->width * draw(m->stream, (uint64_t)(row * m->columns +
                                                                          m->first_column + c)));
    }
}

typedef struct piece {
    const cs_trainer *trainer;
    const cs_local_op *local;
    const cs_op *op, *of; /* operator in this part, and in the whole network */
} piece;

static const cs_shape *whole_shape(const piece *p, cs_tensor tensor)
{
    return &cs_net_tensor(p->trainer->part_of.whole, tensor)->shape;
}

static int64_t first_of(const piece *p, const cs_tensor_layout *layout, const cs_shape *whole,
                        uint32_t dim)
{
    const cs_trained_part *part = &p->trainer->part_of;
    return cs_layout_first(layout, whole, part->split, part->place, dim);
}

/* Counts the readers of a tensor, or of its copies, that take some of its features side by side. */
static uint32_t count_views(const cs_net *net, cs_tensor tensor)
{
    const cs_tensor_info *info = cs_net_tensor(net, tensor);
    uint32_t n = 0;
    for (uint32_t q = 0; q < net->n_ops; q++) {
        const cs_op *op = &net->ops[q];
        const cs_tensor_info *out = cs_net_tensor(net, op->output);
        if (op->inputs[0] != tensor || (op->kind != CS_OP_VIEW && op->kind != CS_OP_COPY))
            continue;
        if (out->elements == info->elements)
            n += count_views(net, op->output);
        else
            n += out->shape.rank == info->shape.rank;
    }
    return n;
}

/* Returns the number of views of the output. The first operator of a pair has a part of each. */
static uint32_t views_of(const piece *p)
{
    const cs_trained_part *part = &p->trainer->part_of;
    const uint32_t n =
        part->split->tensor_method == CS_TENSOR_PAIRS ? count_views(part->whole, p->of->output) : 0;
    return n > 0 ? n : 1;
}

/* Fills the weights of linear layers and convolutions. */
static cs_status fill_product(const piece *p, float *to, cs_error *error)
{
    const bool conv = p->of->kind == CS_OP_CONV;
    const cs_shape *in = whole_shape(p, p->of->inputs[0]), *out = whole_shape(p, p->of->output);
    const uint32_t in_dim = conv ? 0 : in->rank - 1, out_dim = conv ? 0 : out->rank - 1;
    const int64_t whole = out->dims[out_dim], each = p->of->weights / whole;
    const int64_t per_input = conv ? each * p->of->groups / in->dims[in_dim] : 1;
    const int64_t n = cs_net_tensor(p->trainer->net, p->op->output)->shape.dims[out_dim];
    /* The outputs of the place, in order: n of `whole`. */
    const cs_trained_part *part = &p->trainer->part_of;
    const uint32_t views = views_of(p);
    const cs_axes tensor = cs_grid_axes(&part->split->grid, CS_AXES_TENSOR);
    const uint32_t width = (uint32_t)(whole / views);
    const uint32_t first =
        n == whole ? 0 : cs_part_first(width, tensor.size, cs_axes_coordinate(tensor, part->place));
    int64_t *rows = malloc((size_t)n * sizeof(*rows));
    for (int64_t i = 0; rows && i < n; i++)
        rows[i] = i / (n / views) * width + first + i % (n / views);
    if (!rows)
        return cs_error_no_memory(error);
    matrix m = {.stream = 2 * (uint64_t)p->local->origin,
                .columns = each,
                .n_rows = n,
                .n_columns = p->op->weights / n,
                .rows = rows,
                .width = sqrt(3 / (double)each)};
    if (m.n_columns < each)
        m.first_column = per_input * first_of(p, &p->local->read, in, in_dim);
    fill(&m, to);
    m = (matrix){.stream = m.stream + 1,
                 .columns = 1,
                 .n_rows = p->op->biases,
                 .n_columns = 1,
                 .rows = rows,
                 .width = 0.1};
    fill(&m, to + p->op->weights);
    free(rows);
    return CS_OK;
}

/* Fills tables and norms: rows of features. */
static void fill_rows(const piece *p, float *to)
{
    const bool norm = p->of->kind == CS_OP_BATCH_NORM || p->of->kind == CS_OP_LAYER_NORM ||
                      p->of->kind == CS_OP_RMS_NORM;
    const bool table = p->of->kind == CS_OP_EMBEDDING;
    matrix m = {.stream = 2 * (uint64_t)p->local->origin,
                .columns = 1,
                .n_rows = p->op->weights,
                .n_columns = 1,
                .middle = norm,
                .width = table ? 1 : 0.1};
    const cs_shape *out = whole_shape(p, p->of->output);
    const int64_t columns = out->dims[out->rank - 1];
    if (table)
        m.first_row = columns * p->trainer->firsts[p->op - p->trainer->net->ops];
    else if (p->op->weights < p->of->weights)
        m.first_row = first_of(p, &p->local->made, out, out->rank - 1);
    fill(&m, to);
    m.stream++;
    m.middle = 0;
    m.width = 0.1;
    m.n_rows = p->op->biases;
    fill(&m, to + p->op->weights);
}

/* Fills a bias that is added to a sum. */
static void fill_biases(const piece *p, float *to)
{
    const bool conv = p->of->kind == CS_OP_CONV;
    const cs_shape *out = &p->local->whole;
    const matrix m = {.stream = 2 * (uint64_t)p->local->origin + 1,
                      .columns = 1,
                      .n_rows = p->op->biases,
                      .n_columns = 1,
                      .first_row = first_of(p, &p->local->made, out, conv ? 0 : out->rank - 1),
                      .width = 0.1};
    fill(&m, to);
}

cs_status cs_numbers_parameters(const cs_trainer *trainer, uint32_t op, float *to, cs_error *error)
{
    const cs_local_op *local = &trainer->part_of.local->ops[op];
    const piece p = {trainer, local, &trainer->net->ops[op],
                     &trainer->part_of.whole->ops[local->origin]};
    if (p.op->kind == CS_OP_EXCHANGE)
        fill_biases(&p, to);
    else if (p.op->kind == CS_OP_LINEAR || p.op->kind == CS_OP_CONV)
        return fill_product(&p, to, error);
    else
        fill_rows(&p, to);
    return CS_OK;
}

/* ---- inputs ---- */

void cs_numbers_input(const cs_trainer *trainer, cs_tensor tensor, uint64_t sample, int64_t ids,
                      void *to)
{
    const cs_tensor_info *info = cs_net_tensor(trainer->net, tensor);
    const uint64_t stream = 2 * (uint64_t)trainer->part_of.whole->n_ops + tensor;
    for (int64_t i = 0; i < info->elements * trainer->batch; i++) {
        const double number = draw(stream, sample * (uint64_t)info->elements + (uint64_t)i);
        if (info->element == CS_ELEMENT_INT64)
            ((int64_t *)to)[i] = (int64_t)((number + 1) / 2 * (double)ids);
        else
            ((float *)to)[i] = (float)number;
    }
}
