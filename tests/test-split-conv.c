/* Convolutional networks divided over space, filters, channels and samples: exchanges and memory
 * of drawn networks and splits, against counts from definitions. */
#include "sim/model/net-local.h"
#include "sim/model/net-model.h"
#include "sim/model/op-cost.h"
#include "sim/model/zoo/zoo.h"
#include "tests/expect.h"
#include "tests/largest-place.h"
#include "tests/random-net.h"

#include <stdlib.h>

enum { DRAWN = 600, WIDTH = 4, BATCH = 3, MOST_ROWS = 128 };

/* ---- counts from definitions ---- */

static const cs_shape *shape_of(const cs_net *net, cs_tensor tensor)
{
    return &cs_net_tensor(net, tensor)->shape;
}

/* A drawn case. Images are divided in front of the operator `gather`. */
typedef struct drawn {
    const cs_net *net;
    const cs_split *split;
    uint32_t coordinate[CS_SPACE_MAX]; /* coordinates of the place in space */
    uint32_t tensor;                   /* and along the tensor axis */
    uint32_t gather;
} drawn;

static bool has_rule_in_space(cs_op_kind kind)
{
    return kind == CS_OP_CONV || kind == CS_OP_RELU || kind == CS_OP_BATCH_NORM ||
           kind == CS_OP_ADD || kind == CS_OP_MAX_POOL || kind == CS_OP_AVG_POOL;
}

static bool divides_space(const cs_split *split)
{
    return split->grid.space[0] * split->grid.space[1] * split->grid.space[2] > 1;
}

static drawn make_case(const cs_net *net, const cs_split *split, uint32_t place)
{
    static const cs_axes_name axes[] = {CS_AXES_SPACE_X, CS_AXES_SPACE_Y, CS_AXES_SPACE_Z};
    drawn d = {.net = net, .split = split};
    for (int i = 0; i < CS_SPACE_MAX; i++)
        d.coordinate[i] = cs_axes_coordinate(cs_grid_axes(&split->grid, axes[i]), place);
    d.tensor = cs_axes_coordinate(cs_grid_axes(&split->grid, CS_AXES_TENSOR), place);
    while (d.gather < net->n_ops &&
           (!divides_space(split) || has_rule_in_space(net->ops[d.gather].kind)) &&
           (!split->space_until || !divides_space(split) ||
            strcmp(net->ops[d.gather].name, split->space_until) != 0))
        d.gather++;
    return d;
}

/* Splits `size` in a row into `parts`: number i belongs to part i times `parts` / `size`, rounded
 * down. */
static uint32_t part(uint32_t size, uint32_t parts, uint32_t k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < size; i++)
        n += (uint64_t)i * parts / size == k;
    return n;
}

/* Elements of a tensor whose last `n` dimensions are split over space. */
static int64_t elements_of(const drawn *d, cs_tensor tensor, uint32_t from)
{
    const cs_shape *shape = shape_of(d->net, tensor);
    int64_t elements = shape->dims[0];
    for (uint32_t i = 1; i < shape->rank; i++)
        elements *= i > from
                        ? part(shape->dims[i], d->split->grid.space[i - 1], d->coordinate[i - 1])
                        : shape->dims[i];
    return elements;
}

static int64_t local_elements(const drawn *d, uint32_t p, cs_tensor tensor)
{
    return elements_of(d, tensor, p < d->gather ? 0 : CS_SHAPE_MAX);
}

/* Before the operator `gather`, or an image of the network. */
static bool is_written_in_space(const drawn *d, cs_tensor tensor)
{
    bool behind = false;
    for (uint32_t p = d->gather; p < d->net->n_ops; p++)
        behind |= d->net->ops[p].output == tensor;
    return !behind;
}

/* Marks in `needed` the rows in windows: of the input that outputs of part k need, or of the
 * outputs in whose windows inputs of part k are. */
static uint32_t first_of(uint32_t size, uint32_t parts, uint32_t k)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < k; i++)
        first += part(size, parts, i);
    return first;
}

static void count_rows(const drawn *d, const cs_op *op, uint32_t dim, uint32_t k, bool outputs,
                       uint32_t missing[2])
{
    const uint32_t in = shape_of(d->net, op->inputs[0])->dims[dim];
    const uint32_t out = shape_of(d->net, op->output)->dims[dim];
    const uint32_t parts = d->split->grid.space[dim - 1];
    const uint32_t i0 = first_of(in, parts, k), i1 = i0 + part(in, parts, k);
    const uint32_t o0 = first_of(out, parts, k), o1 = o0 + part(out, parts, k);
    bool needed[MOST_ROWS] = {false};
    uint32_t first = MOST_ROWS, last = 0;
    for (uint32_t o = 0; o < out; o++) {
        for (uint32_t w = 0; w < op->kernel.size[dim - 1]; w++) {
            const int64_t i = (int64_t)o * op->stride.size[dim - 1] - op->pad.size[dim - 1] +
                              (int64_t)w * op->dilation.size[dim - 1];
            if (i < 0 || i >= in)
                continue;
            if (outputs && i >= i0 && i < i1)
                needed[o] = true;
            if (!outputs && o >= o0 && o < o1)
                needed[i] = true;
        }
    }
    for (uint32_t r = 0; r < MOST_ROWS; r++) {
        first = needed[r] && first == MOST_ROWS ? r : first;
        last = needed[r] ? r : last;
    }
    missing[0] = missing[1] = 0;
    for (uint32_t r = first; first < MOST_ROWS && r <= last; r++) {
        missing[0] += r < (outputs ? o0 : i0);
        missing[1] += r >= (outputs ? o1 : i1);
    }
}

typedef struct counts {
    int64_t bytes[CS_N_AXES][CS_EXCHANGE_BROADCAST + 1][2]; /* by pass */
    int64_t back[CS_N_AXES][2];
    int64_t halo; /* elements per sample that are kept */
} counts;

/* The messages of one direction, and the rows of the place that gets the most from both sides: no
 * device needs more. */
static void count_direction(const drawn *d, const cs_op *op, uint32_t dim, bool outputs,
                            int64_t *extents, uint32_t rank, uint32_t most[2], int64_t *rows)
{
    uint32_t missing[2], both = 0;
    int64_t others = 1;
    most[0] = most[1] = 0;
    for (uint32_t k = 0; k < d->split->grid.space[dim - 1]; k++) {
        count_rows(d, op, dim, k, outputs, missing);
        most[0] = missing[0] > most[0] ? missing[0] : most[0];
        most[1] = missing[1] > most[1] ? missing[1] : most[1];
        both = missing[0] + missing[1] > both ? missing[0] + missing[1] : both;
    }
    for (uint32_t e = 0; e < rank; e++)
        others *= e == dim ? 1 : extents[e];
    extents[dim] += both;
    *rows = others;
}

/* Whether an operator reads a tensor differently from others: a part of its channels, or all of
 * them with partial gradients. */
static bool reads_apart(const drawn *d, const cs_op *op)
{
    bool first = true;
    for (const cs_op *before = d->net->ops; before < op; before++)
        first &= before->kind != CS_OP_CONV && before->kind != CS_OP_LINEAR;
    return d->split->grid.tensor > 1 && (op->kind == CS_OP_CONV || op->kind == CS_OP_LINEAR) &&
           (d->split->tensor_method == CS_TENSOR_FILTER || !first);
}

/* A convolution reads a part of the channels, or makes a part of the filters. */
static uint32_t channels_of(const drawn *d, const cs_op *op, bool outputs)
{
    const bool filter = d->split->tensor_method == CS_TENSOR_FILTER;
    const uint32_t channels = shape_of(d->net, outputs ? op->output : op->inputs[0])->dims[0];
    return reads_apart(d, op) && outputs == filter
               ? part(channels, d->split->grid.tensor, d->tensor)
               : channels;
}

static void count_halo(const drawn *d, const cs_op *op, bool outputs, bool backward, counts *c)
{
    const cs_tensor of = outputs ? op->output : op->inputs[0];
    const cs_shape *shape = shape_of(d->net, of);
    int64_t extents[CS_SHAPE_MAX] = {channels_of(d, op, outputs)}, all = 1, own;
    for (uint32_t e = 1; e < shape->rank; e++)
        extents[e] = part(shape->dims[e], d->split->grid.space[e - 1], d->coordinate[e - 1]);
    for (uint32_t dim = 1; dim < shape->rank; dim++) {
        uint32_t most[2];
        int64_t rows;
        const uint32_t axes = CS_AXES_SPACE_X + dim - 1;
        const bool returned = backward && !outputs;
        if (d->split->grid.space[dim - 1] == 1)
            continue;
        count_direction(d, op, dim, outputs, extents, shape->rank, most, &rows);
        c->bytes[axes][CS_EXCHANGE_HALO][backward] += WIDTH * BATCH * rows * most[returned];
        c->back[axes][backward] += WIDTH * BATCH * rows * most[!returned];
    }
    own = elements_of(d, of, 0) / shape->dims[0] * extents[0];
    for (uint32_t e = 0; e < shape->rank; e++)
        all *= extents[e];
    if (!backward && cs_net_tensor(d->net, op->output)->differentiable)
        c->halo += all - own; /* tensors without a gradient keep nothing */
}

static void add_bytes(counts *c, cs_axes_name axes, cs_exchange_kind kind, bool backward,
                      int64_t elements)
{
    c->bytes[axes][kind][backward] += WIDTH * BATCH * elements;
}

/* One dimension is gathered after the other, of a part of the channels where no more is read. */
static void gather_tensor(const drawn *d, cs_tensor x, bool apart, counts *c)
{
    const uint32_t channels = shape_of(d->net, x)->dims[0];
    const bool slice = apart && d->split->tensor_method == CS_TENSOR_CHANNEL;
    for (uint32_t dim = 1; dim < shape_of(d->net, x)->rank; dim++)
        if (d->split->grid.space[dim - 1] > 1)
            add_bytes(c, CS_AXES_SPACE_X + dim - 1, CS_EXCHANGE_ALL_GATHER, false,
                      elements_of(d, x, dim) / channels *
                          (slice ? part(channels, d->split->grid.tensor, d->tensor) : channels));
}

/* Every tensor that is written before `gather` and read from there on. */
static void count_gather(const drawn *d, counts *c)
{
    for (cs_tensor x = 0; x < d->net->n_tensors; x++) {
        bool read[2] = {false};
        for (uint32_t p = d->gather; is_written_in_space(d, x) && p < d->net->n_ops; p++)
            for (uint32_t i = 0; i < d->net->ops[p].n_inputs; i++)
                if (d->net->ops[p].inputs[i] == x)
                    read[reads_apart(d, &d->net->ops[p])] = true;
        for (int apart = 0; apart < 2; apart++)
            if (read[apart])
                gather_tensor(d, x, apart, c);
    }
}

static void count_weighted(const drawn *d, uint32_t p, counts *c)
{
    const cs_op *op = &d->net->ops[p];
    const bool filter = d->split->tensor_method == CS_TENSOR_FILTER;
    const bool differentiable = cs_net_tensor(d->net, op->inputs[0])->differentiable;
    if (!reads_apart(d, op))
        return;
    add_bytes(c, CS_AXES_TENSOR, filter ? CS_EXCHANGE_ALL_GATHER : CS_EXCHANGE_ALL_REDUCE, false,
              local_elements(d, p, op->output));
    if (differentiable)
        add_bytes(c, CS_AXES_TENSOR, filter ? CS_EXCHANGE_ALL_REDUCE : CS_EXCHANGE_ALL_GATHER, true,
                  elements_of(d, op->inputs[0],
                              is_written_in_space(d, op->inputs[0]) ? 0 : CS_SHAPE_MAX));
}

static counts count(const drawn *d)
{
    const cs_axes gradient = cs_grid_axes(&d->split->grid, CS_AXES_GRADIENT);
    counts c = {0};
    for (uint32_t p = 0; p < d->net->n_ops; p++) {
        const cs_op *op = &d->net->ops[p];
        const bool returns = op->kind == CS_OP_MAX_POOL;
        if (op->kernel.rank > 0 && p < d->gather) {
            count_halo(d, op, false, false, &c);
            if (cs_net_tensor(d->net, op->inputs[0])->differentiable)
                count_halo(d, op, !returns, true, &c);
        }
        count_weighted(d, p, &c);
        if (op->kind == CS_OP_BATCH_NORM && d->split->synchronised_norm && gradient.size > 1)
            for (int pass = 0; pass < 2; pass++)
                c.bytes[CS_AXES_GRADIENT][CS_EXCHANGE_ALL_REDUCE][pass] +=
                    2 * 4 * shape_of(d->net, op->output)->dims[0];
    }
    count_gather(d, &c);
    return c;
}

/* ---- comparisons ---- */

static void describe(const drawn *d, uint32_t seed, char *text, size_t size)
{
    const cs_grid *g = &d->split->grid;
    snprintf(text, size,
             "case %" PRIu32 ", %s %" PRIu32 ", space %" PRIu32 " x %" PRIu32 " x %" PRIu32
             ", gathered in front of %s",
             seed, d->split->tensor_method == CS_TENSOR_FILTER ? "filter" : "channel", g->tensor,
             g->space[0], g->space[1], g->space[2],
             d->gather < d->net->n_ops ? d->net->ops[d->gather].name : "nothing");
}

static counts sum_layers(const cs_model *model)
{
    counts c = {0};
    for (uint32_t l = 0; l < model->n_layers; l++) {
        for (uint32_t e = 0; e < model->layers[l].n_exchanges; e++) {
            const cs_exchange *exchange = &model->layers[l].exchanges[e];
            c.bytes[exchange->axes][exchange->kind][exchange->backward] += exchange->bytes;
            c.back[exchange->axes][exchange->backward] += exchange->bytes_back;
        }
    }
    return c;
}

static void expect_counts(const char *row, const counts *expected, const counts *got)
{
    char text[320];
    for (int axes = 0; axes < CS_N_AXES; axes++) {
        for (int pass = 0; pass < 2; pass++) {
            for (int kind = 0; kind <= CS_EXCHANGE_BROADCAST; kind++) {
                snprintf(text, sizeof(text), "%s: kind %d over %s, %s", row, kind,
                         cs_axes_text(axes), pass ? "backward" : "forward");
                expect_int(text, expected->bytes[axes][kind][pass], got->bytes[axes][kind][pass]);
            }
            snprintf(text, sizeof(text), "%s: back over %s, %s", row, cs_axes_text(axes),
                     pass ? "backward" : "forward");
            expect_int(text, expected->back[axes][pass], got->back[axes][pass]);
        }
    }
}

/* Bytes saved for backward by definition. Each tensor has its own memory, but relu and views share
 * the memory of their inputs; a tensor that a reader needs in another layout is separate. */
typedef struct kept {
    bool *whole, *slice, *gathered; /* per storage, tensor, storage */
    int64_t bytes;
} kept;

static void keep_op(const drawn *d, uint32_t p, kept *k)
{
    const cs_op *op = &d->net->ops[p];
    const uint32_t in = cs_net_tensor(d->net, op->inputs[0])->storage;
    const bool channel = d->split->tensor_method == CS_TENSOR_CHANNEL;
    cs_op_cost cost;
    cs_op_cost_of(d->net, op, 1, CS_PRECISION_FP32, &cost);
    if (cost.keeps_output)
        (p < d->gather ? k->whole : k->gathered)[cs_net_tensor(d->net, op->output)->storage] = true;
    if (cost.keeps_input && channel && reads_apart(d, op))
        k->slice[op->inputs[0]] = true;
    else if (cost.keeps_input)
        (p < d->gather ? k->whole : k->gathered)[in] = true;
    if (op->kind == CS_OP_MAX_POOL && cs_net_tensor(d->net, op->output)->differentiable)
        k->bytes += 8 * BATCH * local_elements(d, p, op->output);
    if (op->kind == CS_OP_BATCH_NORM)
        k->bytes += 8 * (int64_t)shape_of(d->net, op->output)->dims[0];
    if (op->kind == CS_OP_CROSS_ENTROPY)
        k->bytes += BATCH * (4 * 5 + 8);
}

/* The part of the channels that the place reads of a tensor. */
static int64_t slice_elements(const drawn *d, uint32_t p, cs_tensor tensor)
{
    const uint32_t channels = shape_of(d->net, tensor)->dims[0];
    return local_elements(d, p, tensor) / channels *
           part(channels, d->split->grid.tensor, d->tensor);
}

static int64_t count_kept(const drawn *d, const counts *c)
{
    const cs_net *net = d->net;
    kept k = {.whole = calloc(net->n_storages, 1),
              .slice = calloc(net->n_tensors, 1),
              .gathered = calloc(net->n_storages, 1),
              .bytes = c->halo * WIDTH * BATCH};
    bool seen[256] = {false};
    assert_true(k.whole && k.slice && k.gathered && net->n_storages <= ROWS(seen));
    for (uint32_t p = 0; p < net->n_ops; p++)
        keep_op(d, p, &k);
    for (uint32_t p = 0; p < net->n_ops; p++)
        if (k.slice[net->ops[p].inputs[0]]) {
            k.bytes += WIDTH * BATCH * slice_elements(d, p, net->ops[p].inputs[0]);
            k.slice[net->ops[p].inputs[0]] = false;
        }
    for (cs_tensor t = 0; t < net->n_tensors; t++) {
        const cs_tensor_info *info = cs_net_tensor(net, t);
        if (seen[info->storage])
            continue;
        seen[info->storage] = true;
        if (k.whole[info->storage])
            k.bytes += WIDTH * BATCH * elements_of(d, t, 0);
        if (k.gathered[info->storage])
            k.bytes += WIDTH * BATCH * info->elements;
    }
    free(k.whole);
    free(k.slice);
    free(k.gathered);
    return k.bytes;
}

/* Filters with their biases, or all of them with some of their channels. */
static int64_t count_weights(const drawn *d)
{
    const bool filter = d->split->tensor_method == CS_TENSOR_FILTER;
    int64_t sum = 0;
    for (uint32_t p = 0; p < d->net->n_ops; p++) {
        const cs_op *op = &d->net->ops[p];
        const uint32_t of = shape_of(d->net, filter ? op->output : op->inputs[0])->dims[0];
        const uint32_t own = reads_apart(d, op) ? part(of, d->split->grid.tensor, d->tensor) : of;
        sum += op->weights / of * own + (filter ? op->biases / of * own : op->biases);
    }
    return WIDTH * sum;
}

static int64_t sum_weights(const cs_model *model)
{
    int64_t sum = 0;
    for (uint32_t l = 0; l < model->n_layers; l++)
        sum += model->layers[l].weight_bytes;
    return sum;
}

static int64_t sum_kept(const cs_model *model)
{
    int64_t sum = 0;
    for (uint32_t l = 0; l < model->n_layers; l++)
        sum += model->layers[l].kept_bytes;
    return sum;
}

static void compare(const drawn *d, uint32_t place, uint32_t seed)
{
    char row[240];
    cs_accelerator device;
    cs_model model = {0};
    cs_error error;
    cs_error_init(&error);
    cs_accelerator_none(&device);
    const cs_net_options how = {.batch_size = BATCH,
                                .device = &device,
                                .source = "test",
                                .split = d->split,
                                .place = place};
    describe(d, seed, row, sizeof(row));
    if (cs_net_model(d->net, &how, &model, &error) != CS_OK)
        fail_msg("%s: %s", row, error.text);
    const counts expected = count(d), got = sum_layers(&model);
    expect_counts(row, &expected, &got);
    expect_int(row, count_weights(d), sum_weights(&model));
    expect_int(row, count_kept(d, &expected), sum_kept(&model));
    expect_largest(row, d->net, &how);
    cs_model_finish(&model);
}

static void test_drawn(void **state)
{
    (void)state;
    uint32_t compared = 0, refused = 0;
    for (uint32_t seed = 0; compared < DRAWN; seed++) {
        gsl_rng *random = gsl_rng_alloc(gsl_rng_mt19937);
        cs_net net = {0};
        cs_error error;
        gsl_rng_set(random, seed + 1);
        if (random_net_images(random, &net, &error)) {
            const cs_split split = random_images_split(random, &net);
            const uint32_t place = random_from_to(random, 0, cs_grid_places(&split.grid) - 1);
            const drawn d = make_case(&net, &split, place);
            cs_error_init(&error);
            if (cs_net_split_check(&net, &split, NULL, &error) == CS_OK) {
                compare(&d, place, seed);
                compared++;
            } else {
                refused++;
            }
        }
        cs_net_finish(&net);
        gsl_rng_free(random);
    }
    print_message("  %" PRIu32 " compared, %" PRIu32 " refused\n", compared, refused);
}

/* ---- networks of the zoo ---- */

static void make_zoo(const char *name, cs_net *net)
{
    cs_error error;
    cs_error_init(&error);
    if (cs_zoo_build(name, NULL, NULL, &(cs_json_place){.file = "test"}, net, &error) != CS_OK)
        fail_msg("%s", error.text);
}

/* VGG-16 by filters: an all-gather of each of its 16 outputs, and an all-reduce of each input but
 * the first, behind a ReLU and at the end of a stage a pooling: layer by layer channels x
 * pixels. */
static void test_vgg(void **state)
{
    (void)state;
    static const int64_t outputs[] = {64 * 50176, 64 * 50176, 128 * 12544, 128 * 12544,
                                      256 * 3136, 256 * 3136, 256 * 3136,  512 * 784,
                                      512 * 784,  512 * 784,  512 * 196,   512 * 196,
                                      512 * 196,  4096,       4096,        1000};
    static const int64_t inputs[] = {64 * 50176, 64 * 12544, 128 * 12544, 128 * 3136, 256 * 3136,
                                     256 * 3136, 256 * 784,  512 * 784,   512 * 784,  512 * 196,
                                     512 * 196,  512 * 196,  25088,       4096,       4096};
    cs_net net = {0};
    cs_net_local local = {0};
    cs_error error;
    cs_split split = cs_split_none();
    int64_t gathered = 0, summed = 0, all[2] = {0};
    make_zoo("vgg16", &net);
    cs_error_init(&error);
    split.grid.tensor = 4;
    split.tensor_method = CS_TENSOR_FILTER;
    assert_int_equal(cs_net_local_make(&net, &split, 0, NULL, &local, &error), CS_OK);
    for (uint32_t e = 0; e < local.n_exchanges; e++)
        *(local.exchanges[e].backward ? &summed : &gathered) += local.exchanges[e].elements;
    for (size_t i = 0; i < ROWS(outputs); i++)
        all[0] += outputs[i];
    for (size_t i = 0; i < ROWS(inputs); i++)
        all[1] += inputs[i];
    expect_int("exchanges", ROWS(outputs) + ROWS(inputs), local.n_exchanges);
    expect_int("gathered", all[0], gathered);
    expect_int("summed", all[1], summed);
    expect_int("parameters", 0, (cs_net_parameters(&net) - 4 * cs_net_parameters(&local.net)));
    cs_net_local_finish(&local);
    cs_net_finish(&net);
}

/* Networks that cannot be split. ResNet's last images have 7 rows; its first layer has 64
 * filters. */
static const struct {
    const char *name;
    cs_tensor_method method;
    uint32_t tensor, x, y, z;
    const char *until, *message;
} wrong[] = {
    {"resnet50", CS_TENSOR_FILTER, 65, 1, 1, 1, NULL,
     "resnet50: filter must be at most the 64 filters of stem.conv1 (got 65)"},
    {"resnet50", CS_TENSOR_CHANNEL, 128, 1, 1, 1, NULL,
     "resnet50: channel must be at most the 64 channels of layer1.0.conv1 (got 128)"},
    {"resnet50", CS_TENSOR_PAIRS, 1, 8, 1, 1, NULL,
     "resnet50: space must be at most the 7 rows of layer4.0.conv2 (got 8)"},
    {"resnet50", CS_TENSOR_PAIRS, 1, 225, 1, 1, NULL,
     "resnet50: space must be at most the 224 rows of the images (got 225): 7 would"},
    {"resnet50", CS_TENSOR_PAIRS, 1, 2, 2, 2, NULL,
     "resnet50: space must have 2 numbers at most, as its images have dimensions (got 3)"},
    {"resnet50", CS_TENSOR_PAIRS, 1, 2, 1, 1, "layer9",
     "resnet50: space_until must name an operator or a block of the network (got \"layer9\"); `sim "
     "model resnet50 --json` lists them"},
    {"resnet50", CS_TENSOR_PAIRS, 1, 8, 1, 1, "layer4.0", ""},
    {"resnet50", CS_TENSOR_PAIRS, 1, 7, 7, 1, NULL, ""},
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(wrong); i++) {
        cs_net net = {0};
        cs_error error;
        cs_split split = cs_split_none();
        make_zoo(wrong[i].name, &net);
        cs_error_init(&error);
        split.grid.tensor = wrong[i].tensor;
        split.grid.space[0] = wrong[i].x;
        split.grid.space[1] = wrong[i].y;
        split.grid.space[2] = wrong[i].z;
        split.tensor_method = wrong[i].method;
        split.space_until = wrong[i].until;
        expect_error(wrong[i].message[0] ? wrong[i].message : wrong[i].name,
                     wrong[i].message[0] ? CS_INVALID : CS_OK, wrong[i].message,
                     cs_net_split_check(&net, &split, NULL, &error), &error);
        cs_net_finish(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawn),
        cmocka_unit_test(test_vgg),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests_name("split-conv", tests, NULL, NULL);
}
