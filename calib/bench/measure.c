#include "calib/bench/measure.h"

#include "calib/fit.h"
#include "sim/base/vector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FEWEST_STEPS = 12, /* that count */
    WINDOW = 3,        /* steps that are compared in the warm-up */
    MOST_WARM_UP = 60,
};

static const double noticeable = 2e-3; /* share of a step that a piece must have to be waited for */

/* What one kernel of a step is. */
typedef struct label {
    uint32_t op, row; /* row: of its key and pass in `rows` */
} label;

/* A pass of a key. */
typedef struct work_row {
    uint32_t key;
    cs_pass pass;
    uint32_t n; /* kernels of a step that are it */
    double *samples;
    cs_cost_timing timing;
} work_row;

typedef struct work_key {
    char text[CS_OP_KEY_BYTES];
    int64_t workspace;
    const char *algorithms[CS_N_PASSES]; /* NULL: has no such pass */
} work_key;

typedef struct measurement {
    const cs_measure_options *options;
    cs_pool pool;
    cs_trainer trainer;
    cs_part part;
    cs_activations activations;
    bool learning; /* the first step tells which kernels there are */
    label *labels;
    work_row *rows;
    work_key *keys;
    double *times; /* of the marks of a step */
    double *step_times;
    uint32_t n_labels, cap_labels, n_rows, cap_rows, n_keys, cap_keys;
    uint32_t marks; /* made in this step */
    uint32_t n_samples, cap_samples;
} measurement;

/* ---- which kernels a step has ---- */

static cs_status find_key(measurement *m, const char *text, uint32_t *found, cs_error *error)
{
    for (uint32_t k = 0; k < m->n_keys; k++) {
        if (strcmp(m->keys[k].text, text) == 0) {
            *found = k;
            return CS_OK;
        }
    }
    if (!cs_vector_reserve((void **)&m->keys, &m->cap_keys, m->n_keys + UINT64_C(1),
                           sizeof(*m->keys)))
        return cs_error_no_memory(error);
    work_key *made = &m->keys[m->n_keys];
    *made = (work_key){0};
    memcpy(made->text, text, strlen(text) + 1);
    *found = m->n_keys++;
    return CS_OK;
}

static cs_status find_row(measurement *m, uint32_t key, cs_pass pass, uint32_t *found,
                          cs_error *error)
{
    for (uint32_t r = 0; r < m->n_rows; r++) {
        if (m->rows[r].key == key && m->rows[r].pass == pass) {
            *found = r;
            return CS_OK;
        }
    }
    if (!cs_vector_reserve((void **)&m->rows, &m->cap_rows, m->n_rows + UINT64_C(1),
                           sizeof(*m->rows)))
        return cs_error_no_memory(error);
    m->rows[m->n_rows] = (work_row){.key = key, .pass = pass};
    *found = m->n_rows++;
    return CS_OK;
}

/* The piece as op-shape.h has it; false when the operator has none of that kind. */
static bool shape_of(const measurement *m, uint32_t op, cs_piece piece, cs_op_shape *shape)
{
    const cs_measure_options *o = m->options;
    cs_op_shape shapes[CS_OP_SHAPES_MAX];
    uint32_t n =
        cs_op_shapes_of(o->net, &o->net->ops[op], o->batch, o->precision, o->n_states, shapes);
    for (uint32_t i = 0; i < n; i++) {
        if (shapes[i].piece == piece) {
            *shape = shapes[i];
            return true;
        }
    }
    return false;
}

static cs_status ask_library(measurement *m, uint32_t op, cs_pass pass, work_key *at,
                             cs_error *error)
{
    const cs_measure_options *o = m->options;
    cs_kernel kernel = {o->net, &o->net->ops[op], o->batch, o->precision};
    const char *algorithm;
    int64_t bytes;
    cs_status status = o->backend->workspace(o->bench, &kernel, pass, &bytes, &algorithm, error);
    if (status != CS_OK)
        return status;
    at->workspace = bytes > at->workspace ? bytes : at->workspace;
    at->algorithms[pass] = algorithm;
    return CS_OK;
}

static cs_status learn(measurement *m, uint32_t op, cs_piece piece, cs_pass pass, cs_error *error)
{
    char text[CS_OP_KEY_BYTES];
    cs_op_shape shape;
    uint32_t key = 0, row = 0;
    if (!shape_of(m, op, piece, &shape))
        return cs_error_add(error, CS_FAILED, "operator %s did a piece of work that has no key",
                            m->options->net->ops[op].name);
    cs_status status = find_key(m, cs_op_shape_key(&shape, text, sizeof(text)), &key, error);
    if (status == CS_OK && piece == CS_PIECE_OPERATOR)
        status = ask_library(m, op, pass, &m->keys[key], error);
    if (status == CS_OK)
        status = find_row(m, key, pass, &row, error);
    if (status != CS_OK)
        return status;
    if (!cs_vector_reserve((void **)&m->labels, &m->cap_labels, m->n_labels + UINT64_C(1),
                           sizeof(*m->labels)))
        return cs_error_no_memory(error);
    m->labels[m->n_labels++] = (label){op, row};
    m->rows[row].n++;
    return CS_OK;
}

static cs_status kernel_done(void *context, uint32_t op, cs_piece piece, cs_pass pass,
                             cs_error *error)
{
    measurement *m = context;
    cs_status status = m->learning ? learn(m, op, piece, pass, error) : CS_OK;
    if (status == CS_OK)
        status = m->options->backend->mark(m->options->bench, ++m->marks, error);
    return status;
}

/* ---- steps ---- */

static cs_status do_step(measurement *m, cs_error *error)
{
    const cs_measure_options *o = m->options;
    m->marks = 0;
    cs_status status = o->backend->mark(o->bench, 0, error);
    if (status == CS_OK)
        status =
            cs_part_forward(&m->trainer, &m->part, m->part.parameters.data, &m->activations, error);
    if (status == CS_OK)
        status = cs_part_backward(&m->trainer, &m->part, m->part.parameters.data, &m->activations,
                                  error);
    if (status == CS_OK)
        status = cs_part_update(&m->trainer, &m->part, m->part.parameters.data, error);
    if (status == CS_OK && m->learning) {
        m->times = calloc(m->n_labels + UINT64_C(1), sizeof(*m->times));
        status = m->times ? CS_OK : cs_error_no_memory(error);
    }
    return status == CS_OK ? o->backend->times(o->bench, m->n_labels + 1, m->times, error) : status;
}

static double step_time(const measurement *m)
{
    return m->times[m->n_labels] - m->times[0];
}

/* Steps until the last few are no faster than the few before them. */
static cs_status warm_up(measurement *m, cs_measure_report *report, cs_error *error)
{
    double before = 0, now = 0;
    m->learning = true;
    for (uint32_t i = 0; i < MOST_WARM_UP; i++) {
        cs_status status = do_step(m, error);
        if (status != CS_OK)
            return status;
        m->learning = false;
        now += step_time(m);
        report->warm_up = i + 1;
        if ((i + 1) % WINDOW != 0)
            continue;
        if (i + 1 > WINDOW && now >= 0.99 * before)
            break;
        before = now;
        now = 0;
    }
    return CS_OK;
}

/* ---- samples ---- */

static cs_status have_samples(measurement *m, cs_error *error)
{
    uint32_t need = m->n_samples + 1;
    if (need <= m->cap_samples)
        return CS_OK;
    uint32_t capacity = 2 * m->cap_samples + 64;
    double *steps = realloc(m->step_times, capacity * sizeof(*steps));
    if (!steps)
        return cs_error_no_memory(error);
    m->step_times = steps;
    for (uint32_t r = 0; r < m->n_rows; r++) {
        double *samples = realloc(m->rows[r].samples, capacity * sizeof(*samples));
        if (!samples)
            return cs_error_no_memory(error);
        m->rows[r].samples = samples;
    }
    m->cap_samples = capacity;
    return CS_OK;
}

static void take_samples(measurement *m)
{
    uint32_t k = m->n_samples++;
    m->step_times[k] = step_time(m);
    for (uint32_t r = 0; r < m->n_rows; r++)
        m->rows[r].samples[k] = 0;
    for (uint32_t i = 0; i < m->n_labels; i++) {
        work_row *at = &m->rows[m->labels[i].row];
        at->samples[k] += (m->times[i + 1] - m->times[i]) / at->n;
    }
}

/* Sorts a copy: samples are in step with those of other rows. */
static cs_status find_median(const double *samples, uint32_t n, cs_cost_timing *timing,
                             cs_error *error)
{
    double *sorted = malloc(n * sizeof(*sorted));
    if (!sorted)
        return cs_error_no_memory(error);
    memcpy(sorted, samples, n * sizeof(*sorted));
    cs_fit_median(sorted, n, timing);
    free(sorted);
    return CS_OK;
}

/* Counts the rows that matter and are not settled. */
static cs_status judge(measurement *m, uint32_t *unsettled, cs_error *error)
{
    cs_cost_timing step;
    cs_status status = find_median(m->step_times, m->n_samples, &step, error);
    *unsettled = 0;
    for (uint32_t r = 0; r < m->n_rows && status == CS_OK; r++) {
        work_row *at = &m->rows[r];
        status = find_median(at->samples, m->n_samples, &at->timing, error);
        if (at->timing.median * at->n > noticeable * step.median &&
            !cs_fit_is_settled(&at->timing, m->options->share))
            (*unsettled)++;
    }
    return status;
}

/* Judging sorts everything: after 12 samples, then whenever there are a quarter more. */
static cs_status repeat(measurement *m, cs_measure_report *report, cs_error *error)
{
    const cs_measure_options *o = m->options;
    double spent = 0;
    uint32_t next = FEWEST_STEPS;
    for (;;) {
        cs_status status = have_samples(m, error);
        if (status == CS_OK)
            status = do_step(m, error);
        if (status != CS_OK)
            return status;
        take_samples(m);
        spent += step_time(m);
        bool last = spent >= o->time_limit && m->n_samples >= FEWEST_STEPS;
        if (!cs_progress_step(o->progress, "measuring", (uint64_t)(1e3 * spent),
                              (uint64_t)(1e3 * o->time_limit)))
            return cs_error_add(error, CS_INTERRUPTED, "interrupted after %u steps", m->n_samples);
        if (m->n_samples < next && !last)
            continue;
        status = judge(m, &report->unsettled, error);
        if (status != CS_OK || report->unsettled == 0 || last)
            return status;
        next += next / 4;
    }
}

/* ---- results ---- */

/* "cudnn winograd; cudnn algo_1": of its passes, in their order; once where they agree. */
static const char *name_algorithms(const work_key *key, char *text, size_t size)
{
    const char *before = NULL;
    size_t used = 0;
    text[0] = '\0';
    for (int pass = 0; pass < CS_N_PASSES; pass++) {
        const char *name = key->algorithms[pass];
        if (!name || (before && strcmp(name, before) == 0))
            continue;
        int n = snprintf(text + used, size - used, "%s%s", before ? "; " : "", name);
        used = used + (size_t)n < size ? used + (size_t)n : size - 1;
        before = name;
    }
    return text;
}

static cs_status add_entries(measurement *m, cs_costs *costs, cs_error *error)
{
    cs_status status = CS_OK;
    for (uint32_t k = 0; k < m->n_keys && status == CS_OK; k++) {
        char algorithms[CS_N_PASSES * 100];
        cs_cost_compute entry = {.op = m->keys[k].text,
                                 .workspace_bytes = m->keys[k].workspace,
                                 .algorithm =
                                     name_algorithms(&m->keys[k], algorithms, sizeof(algorithms)),
                                 .source = m->options->source};
        for (uint32_t r = 0; r < m->n_rows; r++)
            if (m->rows[r].key == k)
                entry.passes[m->rows[r].pass] = m->rows[r].timing;
        status = cs_costs_add_compute(costs, &entry, error);
    }
    return status;
}

static cs_status measure(measurement *m, cs_costs *costs, cs_measure_report *report,
                         cs_error *error)
{
    cs_status status = cs_trainer_init(&m->trainer, error);
    if (status == CS_OK)
        status = cs_part_open(&m->trainer, 0, m->options->chain->n_layers, &m->part, error);
    if (status == CS_OK)
        status = cs_activations_open(&m->trainer, &m->activations, error);
    if (status == CS_OK)
        status = warm_up(m, report, error);
    if (status == CS_OK)
        status = repeat(m, report, error);
    report->steps = m->n_samples;
    report->pieces = m->n_keys;
    report->peak_bytes = m->pool.peak;
    report->held_bytes = m->pool.held;
    if (m->n_samples == 0)
        return status;
    uint32_t unsettled;
    cs_status judged = judge(m, &unsettled, error);
    if (judged == CS_OK)
        judged = find_median(m->step_times, m->n_samples, &report->step, error);
    if (judged == CS_OK)
        judged = add_entries(m, costs, error);
    return status == CS_OK ? judged : status;
}

static void finish(measurement *m)
{
    if (m->activations.data)
        cs_activations_close(&m->trainer, &m->activations);
    cs_part_close(&m->trainer, &m->part);
    cs_trainer_finish(&m->trainer);
    cs_pool_finish(&m->pool);
    for (uint32_t r = 0; r < m->n_rows; r++)
        free(m->rows[r].samples);
    free(m->labels);
    free(m->rows);
    free(m->keys);
    free(m->times);
    free(m->step_times);
}

cs_status cs_measure_compute(const cs_measure_options *options, cs_costs *costs,
                             cs_measure_report *report, cs_error *error)
{
    measurement m = {.options = options};
    *report = (cs_measure_report){0};
    cs_pool_init(&m.pool, options->backend, options->bench);
    m.trainer = (cs_trainer){.backend = options->backend,
                             .bench = options->bench,
                             .pool = &m.pool,
                             .net = options->net,
                             .chain = options->chain,
                             .batch = options->batch,
                             .n_states = options->n_states,
                             .precision = options->precision,
                             .observer = {kernel_done, &m}};
    cs_status status = measure(&m, costs, report, error);
    finish(&m);
    return status;
}

/* ---- copies ---- */

enum { COPY_BYTES = 64 << 20, COPIES = 25 };

static cs_status time_copies(const cs_backend *backend, cs_bench *bench, cs_copy copy, void *to,
                             const void *from, cs_cost_timing *timing, cs_error *error)
{
    double times[COPIES + 1], samples[COPIES];
    cs_status status = backend->copy(bench, copy, to, from, COPY_BYTES, error);
    for (uint32_t i = 0; i <= COPIES && status == CS_OK; i++) {
        status = backend->mark(bench, i, error);
        if (status == CS_OK && i < COPIES)
            status = backend->copy(bench, copy, to, from, COPY_BYTES, error);
    }
    if (status == CS_OK)
        status = backend->times(bench, COPIES + 1, times, error);
    if (status != CS_OK)
        return status;
    for (uint32_t i = 0; i < COPIES; i++)
        samples[i] = times[i + 1] - times[i];
    cs_fit_median(samples, COPIES, timing);
    return CS_OK;
}

static cs_status add_copies(const cs_cost_timing *timing, const char *kind, double bytes,
                            uint32_t source, cs_costs *costs, cs_error *error)
{
    cs_cost_bandwidth entry = {
        .kind = kind,
        .bytes_per_s = {bytes / timing->median, bytes / timing->high, bytes / timing->low},
        .samples = timing->samples,
        .source = source};
    return cs_costs_add_bandwidth(costs, &entry, error);
}

cs_status cs_measure_copies(const cs_backend *backend, cs_bench *bench, uint32_t source,
                            cs_costs *costs, cs_error *error)
{
    static const struct {
        cs_copy copy;
        const char *kind;
        int moves; /* a copy within a memory reads and writes it */
    } kinds[] = {{CS_COPY_DEVICE, "device_read_write", 2},
                 {CS_COPY_TO_DEVICE, "host_to_device", 1},
                 {CS_COPY_FROM_DEVICE, "device_to_host", 1}};
    void *a = NULL, *b = NULL, *host = calloc(1, COPY_BYTES);
    bool held = false;
    cs_status status = host ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK && backend->hold) {
        status = backend->hold(bench, host, COPY_BYTES, error);
        held = status == CS_OK;
    }
    if (status == CS_OK)
        status = backend->allocate(bench, COPY_BYTES, &a, error);
    if (status == CS_OK)
        status = backend->allocate(bench, COPY_BYTES, &b, error);
    if (status == CS_OK)
        status = backend->fill(bench, CS_FILL_ZERO, CS_PRECISION_FP32, a, COPY_BYTES / 4, 0, error);
    if (status == CS_OK)
        status = backend->fill(bench, CS_FILL_ZERO, CS_PRECISION_FP32, b, COPY_BYTES / 4, 0, error);
    for (int i = 0; i < (backend->own_memory ? 3 : 1) && status == CS_OK; i++) {
        cs_cost_timing timing;
        void *to = kinds[i].copy == CS_COPY_FROM_DEVICE ? host : a;
        const void *from = kinds[i].copy == CS_COPY_TO_DEVICE ? host : b;
        status = time_copies(backend, bench, kinds[i].copy, to, from, &timing, error);
        if (status == CS_OK)
            status = add_copies(&timing, kinds[i].kind, (double)kinds[i].moves * COPY_BYTES, source,
                                costs, error);
    }
    if (a)
        backend->release(bench, a);
    if (b)
        backend->release(bench, b);
    if (held)
        backend->let_go(bench, host);
    free(host);
    return status;
}
