#include "calib/bench/measure/calibrate.h"

#include "calib/bench/device/cores.h"
#include "calib/bench/measure/measure.h"
#include "sim/base/interrupt.h"
#include "sim/run/scenario/workload.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- others that compute at the same time ---- */

typedef struct other_processes {
    pid_t *children; /* 0: has ended, and was waited for */
    uint32_t n;
    cs_bench_cores cores; /* that this process may run on, while it is on one of them */
} other_processes;

/* Trains until it is killed: by its parent, or by the system when that is gone, however it went. */
static void keep_busy(const cs_measure_options *options, pid_t parent)
{
    cs_measure_options endless = *options;
    cs_measure_report report;
    cs_costs costs;
    cs_error error;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    endless.time_limit = 1;
    endless.progress = NULL;
    for (;;) {
        cs_costs_init(&costs);
        cs_error_init(&error);
        if (cs_measure_compute(&endless, &costs, &report, &error) != CS_OK) {
            fprintf(stderr, "a process that computes at the same time: %s\n", error.text);
            _exit(1);
        }
        cs_costs_finish(&costs);
    }
}

static cs_status start_load(const cs_measure_options *options, uint32_t processes,
                            other_processes *load, cs_error *error)
{
    pid_t parent = getpid();
    *load = (other_processes){0};
    load->children = calloc(processes, sizeof(*load->children));
    if (!load->children)
        return cs_error_no_memory(error);
    for (uint32_t i = 1; i < processes; i++) {
        sigset_t before;
        cs_interrupt_hold(&before);
        pid_t child = fork();
        if (child == 0)
            cs_interrupt_reset();
        cs_interrupt_release(&before);
        if (child < 0)
            return cs_error_add(error, CS_FAILED, "fork: no process number %u", i);
        if (child == 0) {
            (void)cs_bench_pin(options->backend, i);
            keep_busy(options, parent);
        }
        load->children[load->n++] = child;
    }
    load->cores = cs_bench_pin(options->backend, 0); /* not before: children inherit the cores */
    return CS_OK;
}

/* What was measured while one of them was gone is not what was asked for. */
static cs_status check_load(other_processes *load, cs_error *error)
{
    for (uint32_t i = 0; i < load->n; i++) {
        int code = 0;
        if (waitpid(load->children[i], &code, WNOHANG) == 0)
            continue;
        load->children[i] = 0;
        return cs_error_add(error, CS_FAILED,
                            "process %u of those that were to compute at the same time has ended "
                            "(%s %d)",
                            i + 2, WIFSIGNALED(code) ? "signal" : "exit code",
                            WIFSIGNALED(code) ? WTERMSIG(code) : WEXITSTATUS(code));
    }
    return CS_OK;
}

static void stop_load(other_processes *load)
{
    for (uint32_t i = 0; i < load->n; i++) {
        if (load->children[i] == 0)
            continue;
        kill(load->children[i], SIGKILL);
        while (waitpid(load->children[i], NULL, 0) < 0 && errno == EINTR)
            ;
    }
    free(load->children);
    cs_bench_unpin(&load->cores);
}

/* ---- one batch size ---- */

typedef struct subject {
    const cs_backend *backend;
    cs_bench *bench;
    const cs_request *request;
    const cs_net *net;
    cs_precision precision;
    uint32_t source;
    const cs_progress *progress;
} subject;

static void tell(const cs_measure_report *report, const cs_net *net, uint32_t batch)
{
    fprintf(stderr,
            "%s, batch %u: %u steps after %u to warm up, %u pieces of work, %.4f ms a step (%.4f "
            "to %.4f)\n",
            net->name, batch, report->steps, report->warm_up, report->pieces,
            1e3 * report->step.median, 1e3 * report->step.low, 1e3 * report->step.high);
    fprintf(stderr, "  memory: %.1f MB live at the peak, %.1f MB held",
            (double)report->peak_bytes / 1e6, (double)report->held_bytes / 1e6);
    if (report->outside_bytes > 0)
        fprintf(stderr, ", %.1f MB in use besides", (double)report->outside_bytes / 1e6);
    fputc('\n', stderr);
    if (report->unsettled > 0)
        fprintf(stderr,
                "  NOT SETTLED: the time limit left %u passes with wider intervals, or too few "
                "steps for any\n",
                report->unsettled);
}

static cs_status add_memory(const subject *s, uint32_t batch, const cs_measure_report *report,
                            cs_costs *costs, cs_error *error)
{
    char key[512];
    const cJSON *parameters = s->request->workload->parameters;
    size_t used = (size_t)snprintf(key, sizeof(key), "%s n=%u %s states=%u", s->net->name, batch,
                                   cs_precision_names[s->precision], s->request->states);
    for (const cJSON *at = parameters ? parameters->child : NULL; at && used < sizeof(key);
         at = at->next) {
        char *value = cJSON_PrintUnformatted(at);
        if (!value)
            return cs_error_no_memory(error);
        used += (size_t)snprintf(key + used, sizeof(key) - used, " %s=%s", at->string, value);
        cJSON_free(value);
    }
    cs_cost_memory entry = {.network = key,
                            .peak_bytes = report->peak_bytes,
                            .held_bytes = report->held_bytes,
                            .outside_bytes = report->outside_bytes,
                            .source = s->source};
    return cs_costs_add_memory(costs, &entry, error);
}

/* Into `costs`, with what was measured before an error; nothing when other processes were gone. */
static cs_status measure_beside(const cs_measure_options *options, uint32_t processes,
                                cs_costs *costs, cs_measure_report *report, cs_error *error)
{
    other_processes others;
    cs_costs made;
    cs_costs_init(&made);
    uint32_t same; /* place of the only source */
    cs_status status = cs_costs_add_source(&made, &costs->sources[options->source], &same, error);
    cs_measure_options alone = *options;
    alone.source = same;
    if (status == CS_OK) {
        status = start_load(options, processes, &others, error);
        if (status == CS_OK)
            status = cs_measure_compute(&alone, &made, report, error);
        cs_status gone = check_load(&others, status == CS_OK ? error : NULL);
        stop_load(&others);
        status = status == CS_OK ? gone : status;
        cs_status merged =
            gone == CS_OK ? cs_costs_merge(costs, &made, status == CS_OK ? error : NULL) : CS_OK;
        status = status == CS_OK ? merged : status;
    }
    cs_costs_finish(&made);
    return status;
}

static cs_status measure_batch(const subject *s, uint32_t batch, cs_costs *costs, cs_error *error)
{
    cs_accelerator none;
    cs_net_chain chain;
    cs_measure_report report = {0};
    cs_accelerator_none(&none);
    cs_net_options how = {.batch_size = batch, .device = &none, .source = "none"};
    CS_TRY(cs_net_chain_find(s->net, &how, &chain, error));
    cs_measure_options options = {.backend = s->backend,
                                  .bench = s->bench,
                                  .net = s->net,
                                  .chain = &chain,
                                  .batch = batch,
                                  .n_states = s->request->states,
                                  .precision = s->precision,
                                  .share = s->request->share,
                                  .time_limit = cs_time_seconds(s->request->time_limit),
                                  .source = s->source,
                                  .progress = s->progress};
    cs_status status = measure_beside(&options, s->request->processes, costs, &report, error);
    cs_net_chain_finish(&chain);
    if (status == CS_OK)
        status = add_memory(s, batch, &report, costs, error);
    if (status == CS_OK)
        tell(&report, s->net, batch);
    return status;
}

/* ---- all of them ---- */

static cs_status add_source(const cs_backend *backend, cs_bench *bench, const cs_request *request,
                            cs_costs *costs, uint32_t *id, cs_error *error)
{
    char notes[256], places[64];
    cs_cost_source source = {.source = request->command,
                             .date = request->date,
                             .notes = notes,
                             .driver = "",
                             .libraries = "",
                             .clock = ""};
    if (backend->own_memory)
        snprintf(notes, sizeof(notes), "%s", request->notes);
    else
        snprintf(notes, sizeof(notes), "%s%s%u process%s at once, %s", request->notes,
                 request->notes[0] ? "; " : "", request->processes,
                 request->processes == 1 ? "" : "es",
                 cs_bench_places(backend, request->processes, places, sizeof(places)));
    backend->describe(bench, &source);
    return cs_costs_add_source(costs, &source, id, error);
}

/* `done`: batch sizes that were measured to the end. */
static cs_status measure_all(subject *s, cs_costs *costs, uint32_t *done, cs_error *error)
{
    const uint32_t *batches = s->request->batches.items;
    CS_TRY(add_source(s->backend, s->bench, s->request, costs, &s->source, error));
    for (*done = 0; *done < s->request->batches.n; ++*done)
        CS_TRY(measure_batch(s, batches[*done], costs, error));
    return cs_measure_copies(s->backend, s->bench, s->source, s->progress, costs, error);
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
    uint32_t cores = cs_bench_count_cores();
    if (request->processes > 1 && cores > 0 && request->processes > cores)
        return cs_error_add(error, CS_USAGE,
                            "--processes must be at most %u, for each measures on a core of its "
                            "own (got %u)",
                            cores, request->processes);
    return CS_OK;
}

static void tell_missing(const cs_request *request, const cs_net *net, uint32_t done)
{
    const uint32_t *batches = request->batches.items;
    fprintf(stderr, "%s: has what was measured so far; missing or cut short:", request->output);
    for (uint32_t i = done; i < request->batches.n; i++)
        fprintf(stderr, " %s at batch %u,", net->name, batches[i]);
    fprintf(stderr, " copies\n");
}

static cs_status save(const cs_request *request, const cs_net *net, const cs_costs *costs,
                      uint32_t done, cs_status status, cs_error *error)
{
    if (costs->n_compute == 0)
        return status;
    cs_status saved = cs_costs_add_to_file(costs, request->output, error);
    if (status != CS_OK && saved == CS_OK)
        tell_missing(request, net, done);
    return status == CS_OK ? saved : status;
}

/* What was measured before something failed is saved; the message stands. */
cs_status cs_bench_compute(const cs_backend *backend, const cs_request *request,
                           const cs_progress *progress, cs_error *error)
{
    cs_json_place place = {.file = request->command};
    const cs_workload *workload = request->workload;
    cs_net net = {0};
    cs_bench *bench = NULL;
    uint32_t done = 0;
    cs_costs costs;
    if (!workload)
        return cs_error_add(error, CS_INVALID, "the request has no \"workload\"");
    cs_costs_init(&costs);
    cs_status status = cs_workload_network(workload, &place, &net, error);
    cs_precision precision = (cs_precision)workload->precision;
    if (status == CS_OK)
        status = cs_net_check_runnable(&net, error);
    if (status == CS_OK)
        status = check_request(backend, request, precision, error);
    if (status == CS_OK)
        status = backend->open(0, &bench, error);
    if (status == CS_OK) {
        subject s = {.backend = backend,
                     .bench = bench,
                     .request = request,
                     .net = &net,
                     .precision = precision,
                     .progress = progress};
        status = measure_all(&s, &costs, &done, error);
        status = save(request, &net, &costs, done, status, error);
    }
    backend->close(bench);
    cs_net_finish(&net);
    cs_costs_finish(&costs);
    return status;
}
