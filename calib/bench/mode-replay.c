#include "calib/bench/bench-main.h"
#include "calib/bench/notes-trace.h"
#include "sim/analysis/store.h"
#include "sim/trace/results.h"
#include "version.h"

#include <stdio.h>
#include <stdlib.h>

/* Runs before those that count: memory, connections and caches come to rest. */
enum { WARM_UP = 2, COLUMNS = 4 };

/* ---- the runs ---- */

typedef struct runs {
    uint32_t n;
    double *columns;   /* per run: enter, leave, live, most of all tasks */
    double *durations; /* s, from the first start to the last end; rank 0 only */
} runs;

static cs_notes notes_of(const runs *all, uint32_t run, uint32_t n_tasks)
{
    double *at = all->columns + (size_t)run * COLUMNS * n_tasks;
    return (cs_notes){at, at + n_tasks, at + 2 * (size_t)n_tasks, at + 3 * (size_t)n_tasks};
}

static double duration_of(const cs_notes *notes, uint32_t n_tasks)
{
    double start = notes->enter[0], end = notes->leave[0];
    for (uint32_t t = 1; t < n_tasks; t++) {
        start = notes->enter[t] < start ? notes->enter[t] : start;
        end = notes->leave[t] > end ? notes->leave[t] : end;
    }
    return end - start;
}

static cs_status do_runs(cs_worker *worker, runs *all, const cs_progress *progress, cs_error *error)
{
    uint32_t n_tasks = worker->crew->graph.n_tasks;
    for (uint32_t run = 0; run < WARM_UP + all->n; run++) {
        cs_notes notes = notes_of(all, run < WARM_UP ? 0 : run - WARM_UP, n_tasks);
        if (!cs_progress_step(progress, "replaying", run, WARM_UP + all->n))
            return cs_error_add(error, CS_INTERRUPTED, "interrupted in run %u", run);
        cs_status status = cs_worker_run(worker, &notes, error);
        if (status == CS_OK && run >= WARM_UP)
            status = cs_wire_largest(worker->wire, notes.enter, COLUMNS * n_tasks, error);
        if (status != CS_OK)
            return status;
        if (run >= WARM_UP)
            all->durations[run - WARM_UP] = duration_of(&notes, n_tasks);
    }
    return CS_OK;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The run with the median duration; tells of the spread. */
static uint32_t choose_run(const runs *all)
{
    double *sorted = malloc(all->n * sizeof(*sorted));
    if (!sorted)
        return 0;
    for (uint32_t i = 0; i < all->n; i++)
        sorted[i] = all->durations[i];
    qsort(sorted, all->n, sizeof(*sorted), ascending);
    double median = sorted[all->n / 2];
    uint32_t chosen = 0;
    while (all->durations[chosen] != median)
        chosen++;
    fprintf(stderr,
            "%u runs: median %.4f ms, from %.4f to %.4f ms; the run of the median is kept\n",
            all->n, 1e3 * median, 1e3 * sorted[0], 1e3 * sorted[all->n - 1]);
    free(sorted);
    return chosen;
}

/* ---- the file ---- */

static cs_status write_file(const cs_crew *crew, const cs_trace *trace, const char *path,
                            cs_error *error)
{
    const cs_scenario *scenario = crew->scenario;
    cs_results_info info = {.name = scenario->name,
                            .topology = scenario->platform.topology,
                            .schedule = scenario->schedule->name,
                            .scenario = scenario->resolved,
                            .program_version = SIM_VERSION,
                            .seed = scenario->seed};
    cs_analysis analysis = {0};
    cs_h5_file *file = NULL;
    cs_status status = cs_analyse(&crew->graph, trace, scenario->batch_size, &analysis, error);
    if (status == CS_OK)
        status = cs_h5_create(path, NULL, &file, error);
    if (status == CS_OK)
        status = cs_results_write(file, &info, &crew->graph, trace, error);
    if (status == CS_OK)
        status = cs_analysis_store(file, &analysis, error);
    if (status == CS_OK)
        status = cs_h5_commit(file, error);
    cs_h5_destroy(file);
    cs_analysis_finish(&analysis);
    return status;
}

static cs_status save(const cs_crew *crew, const runs *all, const double *resident,
                      const char *path, cs_error *error)
{
    cs_notes notes = notes_of(all, choose_run(all), crew->graph.n_tasks);
    cs_trace trace = {0};
    cs_status status = cs_measured_trace(crew, &notes, resident, &trace, error);
    if (status == CS_OK)
        status = write_file(crew, &trace, path, error);
    cs_trace_finish(&trace);
    return status;
}

static cs_status run_worker(cs_worker *worker, const cs_request *request,
                            const cs_progress *progress, cs_error *error)
{
    const cs_crew *crew = worker->crew;
    runs all = {.n = request->runs};
    double *resident = calloc(crew->graph.n_devices, sizeof(*resident));
    all.columns = calloc((size_t)all.n * COLUMNS * crew->graph.n_tasks, sizeof(*all.columns));
    all.durations = calloc(all.n, sizeof(*all.durations));
    cs_status status = resident && all.columns && all.durations ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK) {
        resident[worker->device] = (double)worker->resident;
        status = cs_wire_largest(worker->wire, resident, crew->graph.n_devices, error);
    }
    if (status == CS_OK)
        status = do_runs(worker, &all, progress, error);
    if (status == CS_OK && worker->device == 0)
        status = save(crew, &all, resident, request->output, error);
    free(resident);
    free(all.columns);
    free(all.durations);
    return status;
}

/* ---- the mode ---- */

static cs_status load(const cs_request *request, cs_scenario *scenario, cs_error *error)
{
    uint32_t n = (uint32_t)cJSON_GetArraySize(request->overrides);
    cs_override *overrides = calloc(n + UINT64_C(1), sizeof(*overrides));
    if (!overrides)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++) {
        const cJSON *one = cJSON_GetArrayItem(request->overrides, (int)i);
        overrides[i].pointer = cJSON_GetStringValue(cJSON_GetArrayItem(one, 0));
        overrides[i].value = cJSON_GetStringValue(cJSON_GetArrayItem(one, 1));
    }
    cs_status status = cs_scenario_load(request->scenario, overrides, n, scenario, error);
    free(overrides);
    return status;
}

cs_status cs_bench_replay(const cs_backend *backend, const cs_request *request, cs_wire *wire,
                          const cs_progress *progress, cs_error *error)
{
    cs_scenario scenario = {0};
    cs_crew crew = {0};
    cs_bench *bench = NULL;
    cs_worker worker;
    (void)cs_bench_pin(backend, wire->place);
    cs_status status = load(request, &scenario, error);
    if (status == CS_OK)
        status = cs_crew_make(&scenario, request->scenario, &crew, error);
    if (status == CS_OK && crew.graph.n_devices != wire->size)
        status = cs_error_add(error, CS_FAILED, "%u devices, but %u processes",
                              crew.graph.n_devices, wire->size);
    if (status == CS_OK) {
        status = backend->open(wire->place, &bench, error);
        status = cs_wire_agree(wire, status, error);
    }
    if (status == CS_OK)
        status = cs_wire_connect(wire, backend, bench, error);
    if (status == CS_OK)
        status = cs_worker_open(&crew, backend, bench, wire, &worker, error);
    if (status == CS_OK) {
        status = run_worker(&worker, request, wire->rank == 0 ? progress : NULL, error);
        cs_worker_close(&worker);
    }
    status = cs_wire_disconnect(wire, status, error);
    backend->close(bench);
    cs_crew_finish(&crew);
    cs_scenario_finish(&scenario);
    return status;
}
