#include "calib/bench/measure/measure-network.h"

#include "calib/bench/wire/host-memory.h"
#include "calib/fit.h"
#include "sim/base/time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST = 15, LEAST = 2, MOST = 4000, ROUND = 16, ROW = 8, SIZES_MAX = 64, PAGE = 4096 };

static const double share = CS_NETWORK_PERCENT / 100.0;
static const int64_t longest = INT64_C(1) << 30; /* default of max_bytes */
static const int64_t shortest_longest = INT64_C(1) << 20;
static const int64_t window_bytes = INT64_C(16) << 20, row_bytes = INT64_C(512) << 20;

/* A buffer that is used cyclically. */
typedef struct ring {
    char *data;
    int64_t room, at;
} ring;

typedef struct link_test {
    const cs_network_options *options;
    cs_wire *group; /* size 0: this process does not take part */
    uint32_t ranks;
    cs_cost_level level;
    cs_cost_collective collective;
    ring from, to;
    double samples[MOST + ROUND + 1];
} link_test;

/* ---- memory ---- */

static int64_t stride_of(int64_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Returns the place that was unused for the longest time. Places are multiples of their size, so
 * that consecutive ones do not overlap. */
static void *next(ring *of, int64_t bytes)
{
    const int64_t stride = stride_of(bytes);
    of->at = (of->at + stride - 1) / stride * stride;
    if (of->at + stride > of->room)
        of->at = 0;
    void *found = of->data + of->at;
    of->at += stride;
    return found;
}

static int64_t room_for(const cs_network_options *o, int64_t max_bytes)
{
    const cs_backend *backend = o->wire->backend;
    const int64_t host = cs_host_cache_bytes();
    const int64_t device = backend->cache ? backend->cache(o->wire->bench) : 0;
    const int64_t unit = 4 * (int64_t)o->wire->size;
    return 2 * (host > device ? host : device) + stride_of(max_bytes + unit);
}

/* Finds the longest message: each process of a node needs two rings. A device reports itself when
 * its memory is full.
 */
static cs_status find_longest(const cs_network_options *o, int64_t *max_bytes, cs_error *error)
{
    uint32_t here = 0;
    for (uint32_t i = 0; i < o->wire->size; i++)
        here += o->wire->nodes[i] == o->wire->nodes[o->wire->rank];
    const double left = (double)cs_host_free_bytes();
    int64_t most = o->max_bytes > 0 ? o->max_bytes : longest;
    if (!o->wire->backend->own_memory && o->max_bytes == 0)
        while (most > shortest_longest && 4.0 * here * (double)room_for(o, most) > left)
            most /= 2;
    double need = o->wire->backend->own_memory ? 0 : 2.0 * here * (double)room_for(o, most);
    double least[] = {-(double)most, need - left}; /* minima over all nodes */
    CS_TRY(cs_wire_largest(o->wire, least, 2, error));
    o->wire->alike = least[1] > 0;
    if (o->wire->alike)
        return cs_error_add(error, CS_NO_MEMORY,
                            "messages of %lld bytes need %.3g GB more than the free memory of a "
                            "node: lower --max-bytes",
                            (long long)most, 1e-9 * least[1]);
    *max_bytes = -(int64_t)least[0];
    if (o->max_bytes == 0 && *max_bytes < longest && o->wire->rank == 0)
        fprintf(stderr,
                "sim: warning: sizes end at %lld MiB: longer messages need more than half of "
                "the free memory\n",
                (long long)(*max_bytes >> 20));
    return CS_OK;
}

/* Allocates a ring of zeros, whose sums remain zero. */
static cs_status allocate(cs_wire *wire, int64_t bytes, ring *made, cs_error *error)
{
    void *data;
    CS_TRY(wire->backend->allocate(wire->bench, bytes, &data, error));
    *made = (ring){data, bytes, 0};
    return wire->backend->fill(wire->bench, CS_FILL_ZERO, CS_PRECISION_FP32, data, bytes / 4, 0,
                               error);
}

/* ---- one sample ---- */

static uint32_t in_a_row(const cs_wire *wire, int64_t bytes)
{
    if (!wire->backend->own_memory || bytes > row_bytes)
        return 1;
    return bytes * ROW <= row_bytes ? ROW : (uint32_t)(row_bytes / bytes);
}

/* Returns the messages per window: each has its own place, and two or more have at most
 * window_bytes in total. */
static uint32_t window_of(const ring *of, int64_t bytes)
{
    const int64_t places = of->room / stride_of(bytes);
    const int64_t most = window_bytes / bytes < 2 ? 2 : window_bytes / bytes;
    const int64_t n = most < places ? most : places;
    return n > CS_WIRE_WINDOW ? CS_WIRE_WINDOW : (uint32_t)n;
}

/* Sends a window of messages from rank 0, which waits for an answer, like osu_bw. */
static cs_status stream(link_test *test, int64_t bytes, double *seconds, cs_error *error)
{
    cs_wire *wire = test->group;
    const bool sends = wire->rank == 0;
    const uint32_t n = window_of(&test->to, bytes);
    void *data[CS_WIRE_WINDOW];
    for (uint32_t i = 0; i < n; i++)
        data[i] = next(sends ? &test->from : &test->to, bytes);
    CS_TRY(cs_wire_barrier(wire, error));
    const double start = cs_clock_seconds();
    CS_TRY(cs_wire_window(wire, sends, 1 - wire->rank, data, n, bytes, error));
    CS_TRY(sends ? cs_wire_receive(wire, 1, test->to.data, 4, error)
                 : cs_wire_send(wire, 0, test->from.data, 4, error));
    CS_TRY(wire->backend->wait(wire->bench, error));
    *seconds = sends ? (cs_clock_seconds() - start) / n : 0;
    return CS_OK;
}

/* Runs collectives in place, as gradients are reduced. */
static cs_status all_together(link_test *test, int64_t bytes, double *seconds, cs_error *error)
{
    cs_wire *wire = test->group;
    uint32_t n = in_a_row(wire, bytes);
    CS_TRY(cs_wire_barrier(wire, error));
    const double start = cs_clock_seconds();
    for (uint32_t i = 0; i < n; i++) {
        void *to = next(&test->to, bytes);
        const void *from = test->collective == CS_COST_ALL_REDUCE ? to : next(&test->from, bytes);
        CS_TRY(cs_wire_collective(wire, test->collective, from, to, bytes, error));
    }
    CS_TRY(wire->backend->wait(wire->bench, error));
    *seconds = (cs_clock_seconds() - start) / n;
    return CS_OK;
}

/* ---- one size ---- */

static cs_status take_sample(link_test *test, int64_t bytes, double *seconds, cs_error *error)
{
    *seconds = 0;
    if (test->group->size == 0)
        return CS_OK;
    /* Ranks 0 and 1 send a message there and back. */
    if (test->collective != CS_COST_SEND)
        return test->collective == CS_COST_STREAM ? stream(test, bytes, seconds, error)
                                                  : all_together(test, bytes, seconds, error);
    cs_wire *wire = test->group;
    uint32_t rank = wire->rank, n = in_a_row(wire, bytes);
    CS_TRY(cs_wire_barrier(wire, error));
    const double start = cs_clock_seconds();
    for (uint32_t i = 0; i < n; i++) {
        if (rank == 0)
            CS_TRY(cs_wire_send(wire, 1, next(&test->from, bytes), bytes, error));
        CS_TRY(cs_wire_receive(wire, 1 - rank, next(&test->to, bytes), bytes, error));
        if (rank == 1)
            CS_TRY(cs_wire_send(wire, 0, next(&test->from, bytes), bytes, error));
    }
    CS_TRY(wire->backend->wait(wire->bench, error));
    *seconds = rank == 0 ? (cs_clock_seconds() - start) / (2 * n) : 0;
    return CS_OK;
}

/* Takes `n` samples after the first `done`, each the time of the slowest rank, and reads the
 * clock.
 */
static cs_status take_round(link_test *test, int64_t bytes, uint32_t done, uint32_t n, double start,
                            double *elapsed, cs_error *error)
{
    double *samples = test->samples + done;
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < n && status == CS_OK; i++)
        status = take_sample(test, bytes, &samples[i], error);
    samples[n] = cs_clock_seconds() - start;
    if (status == CS_OK)
        status = cs_wire_largest(test->options->wire, samples, n + 1, error);
    *elapsed = samples[n];
    return status;
}

static cs_status summarize(const link_test *test, uint32_t n, cs_cost_timing *timing,
                           cs_error *error)
{
    const uint32_t skipped = n > 10 ? n / 10 : 1, kept = n - skipped;
    double *copy = malloc(kept * sizeof(*copy));
    if (!copy)
        return cs_error_no_memory(error);
    memcpy(copy, test->samples + skipped, kept * sizeof(*copy));
    cs_fit_median(copy, kept, timing);
    free(copy);
    return CS_OK;
}

/* Measures one size. All ranks have the same samples and clock, and so stop together. */
static cs_status measure_size(link_test *test, int64_t bytes, cs_cost_point *point, cs_error *error)
{
    const double start = cs_clock_seconds(), limit = test->options->time_limit;
    cs_cost_timing timing = {0};
    uint32_t n = 0, more = 1;
    for (;;) {
        double elapsed;
        cs_status status = take_round(test, bytes, n, more, start, &elapsed, error);
        n += more;
        if (status == CS_OK && n > LEAST)
            status = summarize(test, n, &timing, error);
        if (status != CS_OK)
            return status;
        const double left = (limit - elapsed) / (elapsed / n); /* number of samples */
        const bool settled = timing.samples >= FEWEST && cs_fit_is_settled(&timing, share);
        if (n > LEAST && (settled || left < 1 || n + ROUND > MOST))
            break;
        more = left < 1 ? 1 : left < ROUND ? (uint32_t)left : ROUND;
    }
    *point = (cs_cost_point){.bytes = bytes,
                             .seconds = timing.median,
                             .low = timing.low,
                             .high = timing.high,
                             .samples = timing.samples};
    return CS_OK;
}

/* ---- all sizes ---- */

/* Lists sizes from min_bytes on, doubled, each rounded up to one float32 per rank; returns their
 * number. */
static uint32_t list_sizes(int64_t min_bytes, int64_t max_bytes, uint32_t ranks, int64_t *sizes)
{
    const int64_t unit = 4 * (int64_t)ranks;
    uint32_t n = 0;
    for (int64_t bytes = min_bytes; bytes <= max_bytes && n < SIZES_MAX; bytes *= 2) {
        const int64_t whole = (bytes + unit - 1) / unit * unit;
        if (n == 0 || sizes[n - 1] < whole)
            sizes[n++] = whole;
    }
    return n;
}

static cs_status measure_collective(link_test *test, int64_t max_bytes, cs_costs *costs,
                                    cs_error *error)
{
    const cs_network_options *o = test->options;
    cs_cost_point points[SIZES_MAX];
    int64_t sizes[SIZES_MAX];
    cs_fit fit;
    const uint32_t n = list_sizes(o->min_bytes, max_bytes, test->ranks, sizes);
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < n && status == CS_OK; i++) {
        if (!cs_progress_step(o->progress, cs_cost_collective_names[test->collective], i, n))
            return cs_error_add(error, CS_INTERRUPTED, "interrupted");
        status = measure_size(test, sizes[i], &points[i], error);
    }
    if (status == CS_OK)
        status = cs_fit_regimes(points, n, CS_FIT_REGIMES_MAX, &fit, error);
    if (status != CS_OK)
        return status;
    cs_cost_network entry = {.collective = test->collective,
                             .level = test->level,
                             .ranks = test->ranks,
                             .n_regimes = fit.n_regimes,
                             .n_points = n,
                             .regimes = fit.regimes,
                             .points = points,
                             .source = o->source};
    return cs_costs_add_network(costs, &entry, error);
}

/* ---- groups ---- */

/* Returns the first node with the most processes. */
static uint32_t fullest_node(const cs_wire *all)
{
    uint32_t best = 0, most = 0;
    for (uint32_t node = 0; node < all->n_nodes; node++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < all->size; i++)
            n += all->nodes[i] == node;
        best = n > most ? node : best;
        most = n > most ? n : most;
    }
    return best;
}

static void choose_node(const cs_wire *all, bool *members)
{
    const uint32_t node = fullest_node(all);
    for (uint32_t i = 0; i < all->size; i++)
        members[i] = all->nodes[i] == node;
}

static void choose_near_pair(const cs_wire *all, bool *members)
{
    uint32_t n = 0;
    choose_node(all, members);
    for (uint32_t i = 0; i < all->size; i++)
        members[i] = members[i] && n++ < 2;
}

static void choose_far_pair(const cs_wire *all, bool *members)
{
    for (uint32_t node = 0; node < all->n_nodes && node < 2; node++) {
        uint32_t first = 0;
        while (first < all->size && all->nodes[first] != node)
            first++;
        members[first] = true;
    }
}

static void choose_all(const cs_wire *all, bool *members)
{
    memset(members, true, all->size * sizeof(*members));
}

/* Pairs come first: messages are measured between them. */
static void (*const groups[])(const cs_wire *all, bool *members) = {
    choose_near_pair, choose_far_pair, choose_node, choose_all};

enum { N_GROUPS = sizeof(groups) / sizeof(groups[0]) };

typedef struct chosen {
    bool *members;
    uint32_t ranks;
    cs_cost_level level;
} chosen;

static cs_status measure_group(link_test *test, const chosen *group, int64_t max_bytes,
                               cs_costs *costs, cs_error *error)
{
    cs_wire *all = test->options->wire, some = {0};
    const bool whole = group->ranks == all->size;
    cs_status status = whole ? CS_OK : cs_wire_join(all, group->members, &some, error);
    test->group = whole ? all : &some;
    test->ranks = group->ranks;
    test->level = group->level;
    for (uint32_t c = 0; c < CS_N_COST_COLLECTIVES && status == CS_OK; c++) {
        const bool pair = c == CS_COST_SEND || c == CS_COST_STREAM;
        test->collective = (cs_cost_collective)c;
        if ((test->options->collectives & UINT32_C(1) << c) && (!pair || group->ranks == 2))
            status = measure_collective(test, max_bytes, costs, error);
    }
    return whole ? status : cs_wire_leave(&some, status, error);
}

static cs_status measure_all(link_test *test, int64_t max_bytes, cs_costs *costs, cs_error *error)
{
    const cs_wire *all = test->options->wire;
    chosen list[N_GROUPS];
    bool *members = calloc((size_t)N_GROUPS * all->size, sizeof(*members));
    if (!members)
        return cs_error_no_memory(error);
    /* List distinct groups of at least two ranks. `members` has space for N_GROUPS. */
    chosen *out = list;
    uint32_t n = 0;
    for (uint32_t g = 0; g < N_GROUPS; g++) {
        out[n].members = members + (size_t)g * all->size;
        groups[g](all, out[n].members);
        chosen *group = &out[n];
        uint32_t first = 0;
        group->ranks = 0;
        group->level = CS_COST_LEVEL_NODE;
        for (uint32_t i = all->size; i-- > 0;)
            first = group->members[i] ? i : first;
        for (uint32_t i = 0; i < all->size; i++) {
            group->ranks += group->members[i];
            if (group->members[i] && all->nodes[i] != all->nodes[first])
                group->level = CS_COST_LEVEL_NETWORK;
        }
        bool is_new = out[n].ranks >= 2;
        for (uint32_t i = 0; i < n; i++)
            is_new &= out[i].ranks != out[n].ranks || out[i].level != out[n].level;
        n += is_new;
    }
    cs_status status = CS_OK;
    for (uint32_t g = 0; g < n && status == CS_OK; g++)
        status = measure_group(test, &list[g], max_bytes, costs, error);
    free(members);
    return status;
}

/* Checks that there are two sizes even for the largest group, whose sizes are rounded the most. */
static cs_status check_sizes(const cs_network_options *o, int64_t max_bytes, cs_error *error)
{
    int64_t sizes[SIZES_MAX];
    if (o->min_bytes > max_bytes)
        return cs_error_add(error, CS_USAGE, "--min-bytes (%lld) exceeds --max-bytes (%lld)",
                            (long long)o->min_bytes, (long long)max_bytes);
    if (list_sizes(o->min_bytes, max_bytes, o->wire->size, sizes) < 2)
        return cs_error_add(error, CS_USAGE,
                            "--min-bytes %lld and --max-bytes %lld give only one size, %lld bytes: "
                            "sizes double, and a fit of alpha and beta needs two",
                            (long long)o->min_bytes, (long long)max_bytes, (long long)sizes[0]);
    return CS_OK;
}

cs_status cs_measure_network(const cs_network_options *options, cs_costs *costs, cs_error *error)
{
    cs_wire *wire = options->wire;
    int64_t max_bytes = 0, room = 0;
    link_test *test = calloc(1, sizeof(*test));
    if (!test)
        return cs_error_no_memory(error);
    test->options = options;
    cs_status status = find_longest(options, &max_bytes, error);
    if (status == CS_OK)
        status = check_sizes(options, max_bytes, error);
    if (status == CS_OK) {
        room = room_for(options, max_bytes);
        status = allocate(wire, room, &test->from, error);
    }
    if (status == CS_OK)
        status = allocate(wire, room, &test->to, error);
    if (status == CS_OK)
        status = measure_all(test, max_bytes, costs, error);
    if (test->from.data)
        wire->backend->release(wire->bench, test->from.data);
    if (test->to.data)
        wire->backend->release(wire->bench, test->to.data);
    free(test);
    return status;
}
