#include "calib/bench/measure/measure.h"

#include "calib/fit.h"
#include "sim/base/time.h"
#include "sim/base/vector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_LOOK = 12, /* steps before the first check of intervals */
    WINDOW = 3,      /* fewest steps that are compared in the warm-up */
    MOST_WARM_UP = 60,
};

static const double noticeable = 2e-3;   /* smallest share of a step of a piece that must settle */
static const double longest_lead = 5e-3; /* s */

/* How long a device takes to reach its final speed. The clocks of a GPU fall as it heats up, which
 * a step of some milliseconds does not show. A core only gets faster, as its caches and the
 * system's pages adapt to the work, and its times vary more. */
typedef struct pace {
    double warm_up, window, samples; /* minimum s of each */
    /* whether speed converges from both sides; else it only rises */
    bool settles;
    /* largest number of warm-up steps; 0: limited only by the time limit */
    uint32_t most;
} pace;

static const pace pace_of_host = {.most = MOST_WARM_UP};
static const pace pace_of_device = {.warm_up = 2, .window = 0.25, .samples = 1, .settles = true};

/* One kernel of a step. */
typedef struct label {
    uint32_t op, row; /* row: index in `rows` of its key and pass */
} label;

/* A pass of a key. */
typedef struct work_row {
    uint32_t key;
    cs_pass pass;
    uint32_t n;        /* kernels of a step that belong to it */
    int64_t workspace; /* bytes */
    double *samples;
    cs_cost_timing timing;
} work_row;

typedef struct work_key {
    char text[CS_OP_KEY_BYTES];
    int64_t workspace, peak;
    const char *algorithms[CS_N_PASSES]; /* NULL: no such pass */
} work_key;

typedef struct measurement {
    const cs_measure_options *options;
    cs_block_pool pool;
    cs_trainer trainer;
    cs_part part;
    cs_activations activations;
    bool learning; /* the first step records the kernels */
    double began;  /* s, on the clock of marks */
    double lead;   /* s that the device is kept busy while a step is started */
    label *labels;
    work_row *rows;
    work_key *keys;
    double *times; /* per mark of a step */
    double *step_times;
    uint32_t n_labels, cap_labels, n_rows, cap_rows, n_keys, cap_keys;
    uint32_t marks; /* number of marks in this step */
    uint32_t n_samples, cap_samples;
} measurement;

/* ---- kernels of a step ---- */

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

/* Finds the shape of a piece (op-shape.h); false if the operator has none of this kind. */
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
                             int64_t *workspace, cs_error *error)
{
    const cs_measure_options *o = m->options;
    cs_kernel kernel = {o->net, &o->net->ops[op], o->batch, o->precision};
    const char *algorithm;
    int64_t bytes;
    CS_TRY(o->backend->workspace(o->bench, &kernel, pass, &bytes, &algorithm, error));
    at->workspace = bytes > at->workspace ? bytes : at->workspace;
    at->algorithms[pass] = algorithm;
    *workspace = bytes;
    return CS_OK;
}

static cs_status learn(measurement *m, uint32_t op, cs_piece piece, cs_pass pass, cs_error *error)
{
    char text[CS_OP_KEY_BYTES];
    cs_op_shape shape;
    uint32_t key = 0, row = 0;
    int64_t workspace = 0;
    if (!shape_of(m, op, piece, &shape))
        return cs_error_add(error, CS_FAILED, "operator %s ran a piece of work without a key",
                            m->options->net->ops[op].name);
    CS_TRY(find_key(m, cs_op_shape_key(&shape, text, sizeof(text)), &key, error));
    if (piece == CS_PIECE_OPERATOR)
        CS_TRY(ask_library(m, op, pass, &m->keys[key], &workspace, error));
    CS_TRY(find_row(m, key, pass, &row, error));
    if (!cs_vector_reserve((void **)&m->labels, &m->cap_labels, m->n_labels + UINT64_C(1),
                           sizeof(*m->labels)))
        return cs_error_no_memory(error);
    m->labels[m->n_labels++] = (label){op, row};
    m->rows[row].n++;
    /* The trainer may have freed the workspace already, or keep it for the next operator. */
    int64_t live = m->pool.live - m->trainer.workspace.bytes + workspace;
    m->keys[key].peak = live > m->keys[key].peak ? live : m->keys[key].peak;
    return CS_OK;
}

static cs_status kernel_done(void *context, uint32_t op, cs_piece piece, cs_pass pass,
                             cs_error *error)
{
    measurement *m = context;
    CS_TRY(m->learning ? learn(m, op, piece, pass, error) : CS_OK);
    return m->options->backend->mark(m->options->bench, ++m->marks, error);
}

/* ---- steps ---- */

static cs_status start_kernels(measurement *m, cs_error *error)
{
    void *parameters = m->part.parameters.data;
    CS_TRY(cs_part_forward(&m->trainer, &m->part, parameters, &m->activations, error));
    CS_TRY(cs_part_backward(&m->trainer, &m->part, parameters, &m->activations, error));
    return cs_part_update(&m->trainer, &m->part, parameters, error);
}

/* Runs a step. The input of the first kernel exists before its time begins. */
static cs_status do_step(measurement *m, cs_error *error)
{
    const cs_measure_options *o = m->options;
    m->marks = 0;
    cs_status status = cs_part_inputs(&m->trainer, &m->part, &m->activations, error);
    if (status == CS_OK && o->backend->delay && m->lead > 0)
        status = o->backend->delay(o->bench, m->lead, error);
    if (status == CS_OK)
        status = o->backend->mark(o->bench, 0, error);
    double start = cs_clock_seconds();
    if (status == CS_OK)
        status = start_kernels(m, error);
    double starting = cs_clock_seconds() - start;
    if (status == CS_OK && m->learning) {
        m->times = calloc(m->n_labels + UINT64_C(1), sizeof(*m->times));
        status = m->times ? CS_OK : cs_error_no_memory(error);
    }
    if (status == CS_OK)
        status = o->backend->times(o->bench, m->n_labels + 1, m->times, error);
    if (status == CS_OK && m->learning)
        m->began = m->times[0];
    else if (status == CS_OK && m->n_samples == 0) {
        /* While a device waits for work, the time between two kernels is the host's. So before
         * small steps, the device is delayed by the time to start all kernels: the shortest one
         * seen, because it is longer when the queue is full. */
        double lead = 1.2 * starting < longest_lead ? 1.2 * starting : longest_lead;
        m->lead = m->lead == 0 || lead < m->lead ? lead : m->lead;
    }
    m->learning = false;
    return status;
}

static double step_time(const measurement *m)
{
    return m->times[m->n_labels] - m->times[0];
}

/* Returns the seconds since the first step began, on the clock of marks. */
static double elapsed(const measurement *m)
{
    return m->times[m->n_labels] - m->began;
}

static const pace *pace_of(const measurement *m)
{
    return m->options->backend->own_memory ? &pace_of_device : &pace_of_host;
}

static cs_status go_on(const measurement *m, const char *what, cs_error *error)
{
    double limit = m->options->time_limit, spent = elapsed(m) < limit ? elapsed(m) : limit;
    if (cs_progress_step(m->options->progress, what, (uint64_t)(1e3 * spent),
                         (uint64_t)(1e3 * limit) + 1))
        return CS_OK;
    return cs_error_add(error, CS_INTERRUPTED, "interrupted after %u counted steps", m->n_samples);
}

/* Runs steps until a window of steps takes as long as the previous one, for at most half of the
 * time. */
static cs_status warm_up(measurement *m, cs_measure_report *report, cs_error *error)
{
    const pace *kind = pace_of(m);
    double before = 0, sum = 0;
    uint32_t n = 0;
    m->learning = true;
    for (;;) {
        CS_TRY(do_step(m, error));
        CS_TRY(go_on(m, "warming up", error));
        report->warm_up++;
        sum += step_time(m);
        n++;
        if (elapsed(m) >= m->options->time_limit / 2 || report->warm_up == kind->most)
            return CS_OK;
        if (n < WINDOW || sum < kind->window)
            continue;
        double mean = sum / n;
        bool same = mean >= 0.99 * before && (!kind->settles || mean <= 1.01 * before);
        if (before > 0 && same && elapsed(m) >= kind->warm_up)
            return CS_OK;
        before = mean;
        sum = n = 0;
    }
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

/* Sorts a copy, because all rows index their samples by step. */
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

/* Counts the significant rows that are not settled. */
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

/* Checks the intervals after 12 samples, then whenever there are a quarter more, because it sorts
 * all samples. Stops at the time limit. */
static cs_status repeat(measurement *m, cs_measure_report *report, cs_error *error)
{
    double spent = 0;
    uint32_t next = FIRST_LOOK;
    for (;;) {
        CS_TRY(have_samples(m, error));
        CS_TRY(do_step(m, error));
        uint32_t k = m->n_samples++;
        m->step_times[k] = step_time(m);
        for (uint32_t r = 0; r < m->n_rows; r++)
            m->rows[r].samples[k] = 0;
        for (uint32_t i = 0; i < m->n_labels; i++) {
            work_row *at = &m->rows[m->labels[i].row];
            at->samples[k] += (m->times[i + 1] - m->times[i]) / at->n;
        }
        spent += step_time(m);
        bool last = elapsed(m) >= m->options->time_limit;
        CS_TRY(go_on(m, "measuring", error));
        if ((m->n_samples < next || spent < pace_of(m)->samples) && !last)
            continue;
        cs_status status = judge(m, &report->unsettled, error);
        if (status != CS_OK || report->unsettled == 0 || last)
            return status;
        next = m->n_samples + m->n_samples / 4;
    }
}

/* ---- results ---- */

/* Names the algorithms of a key's passes, in order: "cudnn winograd; cudnn algo_1". Equal names
 * occur once. */
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
    for (uint32_t k = 0; k < m->n_keys; k++) {
        char algorithms[CS_N_PASSES * 100];
        cs_cost_compute entry = {.op = m->keys[k].text,
                                 .workspace_bytes = m->keys[k].workspace,
                                 .peak_bytes = m->keys[k].peak,
                                 .algorithm =
                                     name_algorithms(&m->keys[k], algorithms, sizeof(algorithms)),
                                 .source = m->options->source};
        for (uint32_t r = 0; r < m->n_rows; r++) {
            if (m->rows[r].key != k)
                continue;
            entry.passes[m->rows[r].pass] = m->rows[r].timing;
            entry.pass_sources[m->rows[r].pass] = m->options->source;
        }
        CS_TRY(cs_costs_add_compute(costs, &entry, error));
    }
    return CS_OK;
}

/* Measures the memory of others; call when all own memory is held. */
static cs_status look_outside(measurement *m, cs_measure_report *report, cs_error *error)
{
    const cs_measure_options *o = m->options;
    int64_t left, all;
    if (!o->backend->room)
        return CS_OK;
    cs_status status = o->backend->room(o->bench, &left, &all, error);
    if (status == CS_OK)
        report->outside_bytes = all - left - m->pool.held;
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
        status = look_outside(m, report, error);
    if (status == CS_OK)
        status = repeat(m, report, error);
    (void)cs_progress_step(m->options->progress, "measured", 1, 1);
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
    cs_block_pool_finish(&m->pool);
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
    cs_block_pool_init(&m.pool, options->backend, options->bench);
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
