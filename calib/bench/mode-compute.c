#include "calib/bench/bench-main.h"
#include "calib/bench/measure.h"
#include "sim/workload/workload.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- others that compute at the same time ---- */

typedef struct other_processes {
    pid_t *children;
    uint32_t n;
    cs_bench_cores cores; /* that this process may run on, while it is on one of them */
} other_processes;

/* Trains until it is killed. */
static void keep_busy(const cs_measure_options *options)
{
    cs_measure_options endless = *options;
    cs_measure_report report;
    cs_costs costs;
    cs_error error;
    endless.time_limit = 1;
    endless.progress = NULL;
    for (;;) {
        cs_costs_init(&costs);
        cs_error_init(&error);
        if (cs_measure_compute(&endless, &costs, &report, &error) != CS_OK)
            _exit(1);
        cs_costs_finish(&costs);
    }
}

static cs_status start_load(const cs_measure_options *options, uint32_t processes,
                            other_processes *load, cs_error *error)
{
    *load = (other_processes){0};
    load->children = calloc(processes, sizeof(*load->children));
    if (!load->children)
        return cs_error_no_memory(error);
    for (uint32_t i = 1; i < processes; i++) {
        pid_t child = fork();
        if (child < 0)
            return cs_error_add(error, CS_FAILED, "fork: no process number %u", i);
        if (child == 0) {
            (void)cs_bench_pin(options->backend, i);
            keep_busy(options);
        }
        load->children[load->n++] = child;
    }
    load->cores = cs_bench_pin(options->backend,
                               0); /* not before: children inherit the cores that are allowed */
    return CS_OK;
}

static void stop_load(other_processes *load)
{
    for (uint32_t i = 0; i < load->n; i++) {
        kill(load->children[i], SIGKILL);
        waitpid(load->children[i], NULL, 0);
    }
    free(load->children);
    cs_bench_unpin(&load->cores);
}

/* ---- one batch size ---- */

static void tell(const cs_measure_report *report, const cs_net *net, uint32_t batch)
{
    fprintf(
        stderr,
        "%s, batch %u: %u steps after %u to warm up, %u pieces of work, %.4f ms a step (%.4f to "
        "%.4f), %.1f MB at the peak%s\n",
        net->name, batch, report->steps, report->warm_up, report->pieces, 1e3 * report->step.median,
        1e3 * report->step.low, 1e3 * report->step.high, (double)report->peak_bytes / 1e6,
        report->unsettled > 0 ? "; NOT SETTLED:" : "");
    if (report->unsettled > 0)
        fprintf(stderr, "  the time limit left %u passes with wider intervals\n",
                report->unsettled);
}

static cs_status measure_batch(const cs_backend *backend, cs_bench *bench,
                               const cs_request *request, const cs_net *net, cs_precision precision,
                               uint32_t batch, uint32_t source, const cs_progress *progress,
                               cs_costs *costs, cs_error *error)
{
    cs_accelerator none;
    cs_net_chain chain;
    cs_measure_report report;
    other_processes others;
    cs_accelerator_none(&none);
    cs_net_options how = {.batch_size = batch, .device = &none, .source = "none"};
    cs_status status = cs_net_chain_find(net, &how, &chain, error);
    if (status != CS_OK)
        return status;
    cs_measure_options options = {.backend = backend,
                                  .bench = bench,
                                  .net = net,
                                  .chain = &chain,
                                  .batch = batch,
                                  .n_states = request->states,
                                  .precision = precision,
                                  .share = request->share,
                                  .time_limit = cs_time_seconds(request->time_limit),
                                  .source = source,
                                  .progress = progress};
    status = start_load(&options, request->processes, &others, error);
    if (status == CS_OK)
        status = cs_measure_compute(&options, costs, &report, error);
    stop_load(&others);
    cs_net_chain_finish(&chain);
    if (status == CS_OK)
        tell(&report, net, batch);
    return status;
}

/* ---- all of them ---- */

static cs_status add_source(const cs_backend *backend, cs_bench *bench, const cs_request *request,
                            cs_costs *costs, uint32_t *id, cs_error *error)
{
    char notes[256];
    cs_cost_source source = {.source = request->command,
                             .date = request->date,
                             .notes = notes,
                             .driver = "",
                             .libraries = "",
                             .clock = ""};
    if (backend->own_memory)
        snprintf(notes, sizeof(notes), "%s", request->notes);
    else
        snprintf(notes, sizeof(notes), "%s%s%u process%s at once, each on a core of its own",
                 request->notes, request->notes[0] ? "; " : "", request->processes,
                 request->processes == 1 ? "" : "es");
    backend->describe(bench, &source);
    return cs_costs_add_source(costs, &source, id, error);
}

/* `done`: batch sizes that were measured to the end. */
static cs_status measure_all(const cs_backend *backend, cs_bench *bench, const cs_request *request,
                             const cs_net *net, cs_precision precision, const cs_progress *progress,
                             cs_costs *costs, uint32_t *done, cs_error *error)
{
    uint32_t source;
    const cJSON *batch;
    cs_status status = add_source(backend, bench, request, costs, &source, error);
    cJSON_ArrayForEach(batch, request->batches)
    {
        if (status != CS_OK)
            return status;
        if (!cJSON_IsNumber(batch) || batch->valuedouble < 1 || batch->valuedouble > CS_BATCH_MAX)
            return cs_error_add(error, CS_INVALID, "batch sizes must be from 1 to %d",
                                CS_BATCH_MAX);
        status = measure_batch(backend, bench, request, net, precision,
                               (uint32_t)batch->valuedouble, source, progress, costs, error);
        *done += status == CS_OK;
    }
    return status == CS_OK ? cs_measure_copies(backend, bench, source, costs, error) : status;
}

/* A process that has a GPU open cannot be copied. */
static cs_status check_request(const cs_backend *backend, const cs_request *request,
                               cs_precision precision, cs_error *error)
{
    if (!(backend->precisions & UINT32_C(1) << precision))
        return cs_error_add(error, CS_INVALID, "the backend \"%s\" has no kernels for %s",
                            backend->name, cs_precision_names[precision]);
    if (backend->own_memory && request->processes > 1)
        return cs_error_add(error, CS_INVALID,
                            "processes: must be 1 on a device with a memory of its own (got %u)",
                            request->processes);
    return CS_OK;
}

static void tell_missing(const cs_request *request, const cs_net *net, uint32_t done)
{
    const cJSON *batch;
    uint32_t i = 0;
    fprintf(stderr, "%s: has what was measured so far; missing or cut short:", request->output);
    cJSON_ArrayForEach(batch, request->batches) if (i++ >= done)
        fprintf(stderr, " %s at batch %.0f,", net->name, batch->valuedouble);
    fprintf(stderr, " copies\n");
}

static cs_status save(const cs_request *request, const cs_net *net, const cs_costs *costs,
                      uint32_t done, cs_status status, cs_error *error)
{
    if (costs->n_compute == 0)
        return status;
    cs_status saved = cs_request_save(request, costs, error);
    if (status != CS_OK && saved == CS_OK)
        tell_missing(request, net, done);
    return status == CS_OK ? saved : status;
}

/* What was measured before something failed is saved; the message stands. */
cs_status cs_bench_compute(const cs_backend *backend, const cs_request *request,
                           const cs_progress *progress, cs_error *error)
{
    cs_json_place place = {.file = request->command};
    cs_workload workload = {0};
    cs_net net = {0};
    cs_bench *bench = NULL;
    uint32_t done = 0;
    cs_costs costs;
    cs_arena arena;
    cs_arena_init(&arena);
    cs_costs_init(&costs);
    cs_status status = cs_field_read(request->workload, &place,
                                     (const cs_field *const[]){cs_workload_fields, NULL},
                                     (void *const[]){&workload}, &arena, error);
    if (status == CS_OK)
        status = cs_workload_network(&workload, &place, &net, error);
    cs_precision precision = (cs_precision)workload.precision;
    if (status == CS_OK)
        status = check_request(backend, request, precision, error);
    if (status == CS_OK)
        status = backend->open(0, &bench, error);
    if (status == CS_OK) {
        status =
            measure_all(backend, bench, request, &net, precision, progress, &costs, &done, error);
        status = save(request, &net, &costs, done, status, error);
    }
    backend->close(bench);
    cs_net_finish(&net);
    cs_costs_finish(&costs);
    cs_arena_finish(&arena);
    return status;
}
