#include "calib/bench/measure-network.h"

#include "calib/fit.h"

#include <stdlib.h>
#include <time.h>

enum { FEWEST = 15, MOST = 4000, ROUND = 16, ROW = 8, STREAM = 64 };

static const double share = 0.02;

typedef struct link_test {
    const cs_network_options *options;
    cs_cost_collective collective;
    void *from, *to;
    double *samples;
} link_test;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint32_t in_a_row(const cs_wire *wire)
{
    return wire->backend->own_memory ? ROW : 1;
}

/* Rank 0 and rank 1 send there and back; the others wait. */
static cs_status ping_pong(const link_test *test, int64_t bytes, double *seconds, cs_error *error)
{
    cs_wire *wire = test->options->wire;
    uint32_t rank = wire->rank, n = in_a_row(wire);
    cs_status status = cs_wire_barrier(error);
    double start = now();
    for (uint32_t i = 0; i < n && rank < 2 && status == CS_OK; i++) {
        if (rank == 0)
            status = cs_wire_send(wire, 1, test->from, bytes, error);
        if (status == CS_OK)
            status = cs_wire_receive(wire, 1 - rank, test->to, bytes, error);
        if (status == CS_OK && rank == 1)
            status = cs_wire_send(wire, 0, test->from, bytes, error);
    }
    if (status == CS_OK)
        status = wire->backend->wait(wire->bench, error);
    *seconds = rank == 0 ? (now() - start) / (2 * n) : 0;
    return status;
}

/* Rank 0 sends many in a row, and is told when they have come, as osu_bw does it. */
static cs_status stream(const link_test *test, int64_t bytes, double *seconds, cs_error *error)
{
    cs_wire *wire = test->options->wire;
    cs_status status = cs_wire_barrier(error);
    double start = now();
    for (uint32_t i = 0; i < STREAM && wire->rank < 2 && status == CS_OK; i++)
        status = wire->rank == 0 ? cs_wire_send(wire, 1, test->from, bytes, error)
                                 : cs_wire_receive(wire, 0, test->to, bytes, error);
    if (status == CS_OK && wire->rank < 2)
        status = wire->rank == 0 ? cs_wire_receive(wire, 1, test->to, 4, error)
                                 : cs_wire_send(wire, 0, test->from, 4, error);
    if (status == CS_OK)
        status = wire->backend->wait(wire->bench, error);
    *seconds = wire->rank == 0 ? (now() - start) / STREAM : 0;
    return status;
}

/* Gradients are reduced in place. */
static cs_status all_together(const link_test *test, int64_t bytes, double *seconds,
                              cs_error *error)
{
    cs_wire *wire = test->options->wire;
    const void *from = test->collective == CS_COST_ALL_REDUCE ? test->to : test->from;
    uint32_t n = in_a_row(wire);
    cs_status status = cs_wire_barrier(error);
    double start = now();
    for (uint32_t i = 0; i < n && status == CS_OK; i++)
        status = cs_wire_collective(wire, test->collective, from, test->to, bytes, error);
    if (status == CS_OK)
        status = wire->backend->wait(wire->bench, error);
    *seconds = (now() - start) / n;
    return status;
}

/* One round of samples, each the time of the slowest rank. */
static cs_status take_round(const link_test *test, int64_t bytes, uint32_t n, cs_error *error)
{
    double *samples = test->samples + n;
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < ROUND && status == CS_OK; i++)
        status = test->collective == CS_COST_SEND ? ping_pong(test, bytes, &samples[i], error)
                 : test->collective == CS_COST_STREAM
                     ? stream(test, bytes, &samples[i], error)
                     : all_together(test, bytes, &samples[i], error);
    return status == CS_OK ? cs_wire_largest(samples, ROUND, error) : status;
}

/* All ranks have the same samples, and so come to the same end. */
static cs_status measure_size(const link_test *test, int64_t bytes, cs_cost_point *point,
                              cs_error *error)
{
    double spent = 0;
    uint32_t n = 0;
    for (;;) {
        cs_status status = take_round(test, bytes, n, error);
        if (status != CS_OK)
            return status;
        for (uint32_t i = 0; i < ROUND; i++)
            spent += test->samples[n + i];
        n += ROUND;
        uint32_t skipped = n / 10, kept = n - skipped;
        double *copy = malloc(kept * sizeof(*copy));
        if (!copy)
            return cs_error_no_memory(error);
        for (uint32_t i = 0; i < kept; i++)
            copy[i] = test->samples[skipped + i];
        cs_cost_timing timing;
        cs_fit_median(copy, kept, &timing);
        free(copy);
        bool enough = kept >= FEWEST && cs_fit_is_settled(&timing, share);
        if (enough || spent > test->options->time_limit || n + ROUND > MOST) {
            *point = (cs_cost_point){.bytes = bytes, .seconds = timing.median};
            return CS_OK;
        }
    }
}

static cs_status add_fit(const link_test *test, const cs_cost_point *points, uint32_t n,
                         cs_costs *costs, cs_error *error)
{
    bool pair = test->collective == CS_COST_SEND || test->collective == CS_COST_STREAM;
    cs_fit fit;
    if (test->options->wire->rank > 0)
        return CS_OK;
    cs_status status = cs_fit_regimes(points, n, CS_FIT_REGIMES_MAX, &fit, error);
    if (status != CS_OK)
        return status;
    cs_cost_network entry = {.collective = test->collective,
                             .level = CS_COST_LEVEL_NODE,
                             .ranks = pair ? 2 : test->options->wire->size,
                             .n_regimes = fit.n_regimes,
                             .n_points = n,
                             .regimes = fit.regimes,
                             .points = points,
                             .source = test->options->source};
    return cs_costs_add_network(costs, &entry, error);
}

static cs_status measure_collective(const link_test *test, cs_costs *costs, cs_error *error)
{
    const cs_network_options *o = test->options;
    cs_cost_point points[64];
    int64_t unit = 4 * (int64_t)o->wire->size;
    uint32_t n = 0;
    for (int64_t bytes = o->min_bytes; bytes <= o->max_bytes; bytes *= 2) {
        int64_t whole = (bytes + unit - 1) / unit * unit;
        if (n > 0 && points[n - 1].bytes >= whole)
            continue;
        if (!cs_progress_step(o->progress, cs_cost_collective_names[test->collective],
                              (uint64_t)bytes, (uint64_t)o->max_bytes))
            return cs_error_add(error, CS_INTERRUPTED, "interrupted");
        cs_status status = measure_size(test, whole, &points[n++], error);
        if (status != CS_OK)
            return status;
    }
    return add_fit(test, points, n, costs, error);
}

/* Zeros: sums of them stay so. */
static cs_status allocate(cs_wire *wire, int64_t bytes, void **data, cs_error *error)
{
    cs_status status = wire->backend->allocate(wire->bench, bytes, data, error);
    return status == CS_OK ? wire->backend->fill(wire->bench, CS_FILL_ZERO, CS_PRECISION_FP32,
                                                 *data, bytes / 4, 0, error)
                           : status;
}

cs_status cs_measure_network(const cs_network_options *options, cs_costs *costs, cs_error *error)
{
    cs_wire *wire = options->wire;
    int64_t unit = 4 * (int64_t)wire->size, room = (options->max_bytes / unit + 2) * unit;
    link_test test = {.options = options, .samples = calloc(MOST + ROUND, sizeof(double))};
    cs_status status = test.samples ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK)
        status = allocate(wire, room, &test.from, error);
    if (status == CS_OK)
        status = allocate(wire, room, &test.to, error);
    for (uint32_t c = 0; c < CS_N_COST_COLLECTIVES && status == CS_OK; c++) {
        test.collective = (cs_cost_collective)c;
        if (options->collectives & UINT32_C(1) << c)
            status = measure_collective(&test, costs, error);
    }
    if (test.from)
        wire->backend->release(wire->bench, test.from);
    if (test.to)
        wire->backend->release(wire->bench, test.to);
    free(test.samples);
    return status;
}
