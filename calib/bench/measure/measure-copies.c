#include "calib/bench/measure/measure.h"

#include "calib/fit.h"

#include <stdlib.h>

enum { COPIES = 25 };

static const int64_t bytes_of_host = INT64_C(64) << 20;
static const int64_t bytes_of_device = INT64_C(1) << 30; /* caches of GPUs reach about 100 MB */

typedef struct buffers {
    const cs_backend *backend;
    cs_bench *bench;
    int64_t bytes;
    void *a, *b, *host, *peer;
    bool held, direct;
} buffers;

/* Chooses at most a quarter of the free memory, in whole pages: there are two buffers, and a peer
 * may have less. */
static cs_status choose_size(buffers *at, cs_error *error)
{
    int64_t left, all;
    at->bytes = at->backend->own_memory ? bytes_of_device : bytes_of_host;
    if (!at->backend->room)
        return CS_OK;
    cs_status status = at->backend->room(at->bench, &left, &all, error);
    if (status == CS_OK && at->bytes > left / 4)
        at->bytes = left / 4 & ~INT64_C(4095);
    if (status == CS_OK && at->bytes <= 0)
        status = cs_error_add(error, CS_NO_MEMORY,
                              "the device has too little free memory for copies: %lld bytes",
                              (long long)left);
    return status;
}

static cs_status allocate(buffers *at, void **data, cs_error *error)
{
    CS_TRY(at->backend->allocate(at->bench, at->bytes, data, error));
    return at->backend->fill(at->bench, CS_FILL_NUMBERS, CS_PRECISION_FP32, *data, at->bytes / 4, 1,
                             error);
}

/* Fills host memory with the device's random numbers. */
static cs_status allocate_host(buffers *at, cs_error *error)
{
    at->host = malloc((size_t)at->bytes);
    if (!at->host)
        return cs_error_no_memory(error);
    cs_status status =
        at->backend->copy(at->bench, CS_COPY_FROM_DEVICE, at->host, at->a, at->bytes, error);
    if (status == CS_OK && at->backend->hold)
        status = at->backend->hold(at->bench, at->host, at->bytes, error);
    at->held = status == CS_OK && at->backend->hold;
    return status;
}

static cs_status open_buffers(buffers *at, cs_error *error)
{
    CS_TRY(choose_size(at, error));
    CS_TRY(allocate(at, &at->a, error));
    CS_TRY(allocate(at, &at->b, error));
    if (at->backend->own_memory)
        CS_TRY(allocate_host(at, error));
    return at->backend->allocate_on_peer
               ? at->backend->allocate_on_peer(at->bench, at->bytes, &at->peer, &at->direct, error)
               : CS_OK;
}

/* Times copies; the first one is a warm-up. Nothing waits between marks. */
static cs_status time_copies(const buffers *at, cs_copy copy, void *to, const void *from,
                             cs_cost_timing *timing, cs_error *error)
{
    const cs_backend *backend = at->backend;
    double times[COPIES + 1], samples[COPIES];
    cs_status status = backend->copy(at->bench, copy, to, from, at->bytes, error);
    for (uint32_t i = 0; i <= COPIES && status == CS_OK; i++) {
        status = backend->mark(at->bench, i, error);
        if (status == CS_OK && i < COPIES)
            status = backend->copy(at->bench, copy, to, from, at->bytes, error);
    }
    if (status == CS_OK)
        status = backend->times(at->bench, COPIES + 1, times, error);
    if (status != CS_OK)
        return status;
    for (uint32_t i = 0; i < COPIES; i++)
        samples[i] = times[i + 1] - times[i];
    cs_fit_median(samples, COPIES, timing);
    return CS_OK;
}

static cs_status add(const cs_cost_timing *timing, const char *kind, double bytes, uint32_t source,
                     cs_costs *costs, cs_error *error)
{
    if (!(timing->low > 0))
        return cs_error_add(error, CS_FAILED, "%s: copies of %.0f bytes took no time", kind, bytes);
    cs_cost_bandwidth entry = {
        .kind = kind,
        .bytes_per_s = {bytes / timing->median, bytes / timing->high, bytes / timing->low},
        .samples = timing->samples,
        .source = source};
    return cs_costs_add_bandwidth(costs, &entry, error);
}

cs_status cs_measure_copies(const cs_backend *backend, cs_bench *bench, uint32_t source,
                            const cs_progress *progress, cs_costs *costs, cs_error *error)
{
    buffers at = {.backend = backend, .bench = bench};
    cs_status status = open_buffers(&at, error);
    const struct {
        const char *kind;
        cs_copy copy;
        void *to;
        const void *from;
        int moves; /* a copy within one memory reads and writes it */
    } kinds[] = {{"device_read_write", CS_COPY_DEVICE, at.a, at.b, 2},
                 {"host_to_device", CS_COPY_HELD_TO_DEVICE, at.a, at.host, 1},
                 {"device_to_host", CS_COPY_HELD_FROM_DEVICE, at.host, at.b, 1},
                 {at.direct ? "peer_to_peer" : "peer_by_host", CS_COPY_TO_PEER, at.peer, at.b, 1}};
    const uint32_t n = sizeof(kinds) / sizeof(kinds[0]);
    for (uint32_t i = 0; i < n && status == CS_OK; i++) {
        cs_cost_timing timing;
        if (!kinds[i].to || !kinds[i].from)
            continue;
        if (!cs_progress_step(progress, "copying", i, n))
            status = cs_error_add(error, CS_INTERRUPTED, "interrupted before copies");
        if (status == CS_OK)
            status = time_copies(&at, kinds[i].copy, kinds[i].to, kinds[i].from, &timing, error);
        if (status == CS_OK)
            status = add(&timing, kinds[i].kind, kinds[i].moves * (double)at.bytes, source, costs,
                         error);
    }
    /* Wait, because copies in flight use the buffers even if a later copy could not be started. */
    void *const device[] = {at.a, at.b, at.peer};
    cs_status waited = at.backend->wait(at.bench, NULL);
    (void)waited; /* a device that failed has nothing in flight */
    for (size_t i = 0; i < sizeof(device) / sizeof(device[0]); i++)
        if (device[i])
            at.backend->release(at.bench, device[i]);
    if (at.held)
        at.backend->let_go(at.bench, at.host);
    free(at.host);
    return status;
}
