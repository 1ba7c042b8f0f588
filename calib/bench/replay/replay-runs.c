#include "calib/bench/replay/replay-runs.h"

#include "calib/bench/device/cores.h"
#include "calib/bench/replay/worker.h"
#include "calib/bench/wire/core-count.h"
#include "sim/base/json.h"
#include "sim/base/number.h"
#include "sim/run/replay/notes-trace.h"
#include "sim/run/store-run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs before those that count: memory, connections and caches come to rest. */
enum { WARM_UP = 2, COLUMNS = 4 };

static const double wide = 0.1; /* spread of the runs that is told */

/* ---- the runs ---- */

typedef struct runs {
    uint32_t n;
    double *columns;                /* per run: enter, leave, live, most of all tasks */
    double *durations;              /* s, from the first start to the last end; rank 0 only */
    double *resident;               /* bytes per device and category */
    double *losses;                 /* per mini-batch, on a grid: the mean */
    uint32_t sharing;               /* processes without a core of their own */
    double median, lowest, highest; /* s, once a run is chosen */
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
    uint32_t n_tasks = worker->replay->graph.n_tasks;
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

/* On a mesh: how the network learns, which does not depend on how it is divided. */
static void tell_losses(const runs *all, uint32_t n)
{
    fprintf(stderr, "loss of the mini-batches:");
    for (uint32_t b = 0; b < n; b++)
        if (b < 4 || b + 1 == n)
            fprintf(stderr, "%s %.6f", b > 0 && b + 1 == n && n > 5 ? " ..." : "", all->losses[b]);
    fputc('\n', stderr);
}

static void tell(const runs *all)
{
    const double spread = all->highest / all->lowest - 1;
    fprintf(stderr, "%u run%s: median %.4f ms, from %.4f to %.4f ms; %s\n", all->n,
            all->n > 1 ? "s" : "", 1e3 * all->median, 1e3 * all->lowest, 1e3 * all->highest,
            all->n % 2 ? "the run of the median is kept" : "of the middle two the shorter is kept");
    if (spread > wide)
        fprintf(stderr,
                "sim: warning: the longest run took %.0f %% more than the shortest: the "
                "machine was busy with other work as well\n",
                100 * spread);
    if (all->sharing > 0)
        fprintf(stderr,
                "sim: warning: %u processes share cores: they take turns, so times are not "
                "those of devices of their own\n",
                all->sharing);
}

/* The run with the median duration, of an even number the shorter one in the middle. */
static cs_status choose_run(runs *all, uint32_t *chosen, cs_error *error)
{
    double *sorted = malloc(all->n * sizeof(*sorted));
    if (!sorted)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < all->n; i++)
        sorted[i] = all->durations[i];
    qsort(sorted, all->n, sizeof(*sorted), cs_number_compare);
    all->median = sorted[(all->n - 1) / 2];
    all->lowest = sorted[0];
    all->highest = sorted[all->n - 1];
    *chosen = 0;
    while (all->durations[*chosen] != all->median)
        ++*chosen;
    free(sorted);
    tell(all);
    return CS_OK;
}

/* ---- the file ---- */

static bool add_losses(cJSON *root, const runs *all, const cs_replay *replay)
{
    cJSON *list = cJSON_CreateDoubleArray(all->losses, (int)replay->graph.n_batches);
    const bool added = list && cJSON_AddItemToObject(root, "losses", list);
    if (!added)
        cJSON_Delete(list);
    return added;
}

/* How it was measured; results-file.md has the members. */
static cJSON *provenance_of(const cs_worker *worker, const cs_request *request, const runs *all)
{
    cs_cost_source source = {.device = "", .driver = "", .libraries = "", .clock = ""};
    char carrier[256];
    cJSON *root = cJSON_CreateObject();
    worker->backend->describe(worker->bench, &source);
    const struct {
        const char *key, *text;
    } texts[] = {{"command", request->command},
                 {"date", request->date},
                 {"backend", worker->backend->name},
                 {"device", source.device},
                 {"driver", source.driver},
                 {"libraries", source.libraries},
                 {"clock", source.clock},
                 {"messages", cs_wire_library(worker->wire, carrier, sizeof(carrier))}};
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"processes", worker->wire->size},
                   {"processes_sharing_cores", all->sharing},
                   {"runs", all->n},
                   {"kept_run_s", all->median},
                   {"shortest_run_s", all->lowest},
                   {"longest_run_s", all->highest}};
    bool added = root && (!worker->grid || add_losses(root, all, worker->replay));
    for (size_t i = 0; added && i < sizeof(texts) / sizeof(texts[0]); i++)
        added = cJSON_AddStringToObject(root, texts[i].key, texts[i].text ? texts[i].text : "");
    for (size_t i = 0; added && i < sizeof(numbers) / sizeof(numbers[0]); i++)
        added = cJSON_AddNumberToObject(root, numbers[i].key, numbers[i].value);
    if (added)
        return root;
    cJSON_Delete(root);
    return NULL;
}

static cs_status write_file(const cs_replay *replay, const cs_trace *trace, const char *provenance,
                            const char *path, cs_error *error)
{
    const cs_scenario *scenario = replay->scenario;
    cs_simulation measured = {.graph = replay->graph, .trace = *trace};
    cs_h5_file *file = NULL;
    cs_status status =
        cs_analyse(&replay->graph, trace, scenario->batch_size, &measured.analysis, error);
    if (status == CS_OK)
        status = cs_h5_create(path, NULL, &file, error);
    if (status == CS_OK)
        status = cs_simulation_store(file, scenario, &measured, provenance, error);
    if (status == CS_OK)
        status = cs_h5_commit(file, error);
    cs_h5_destroy(file);
    cs_analysis_finish(&measured.analysis);
    return status;
}

static cs_status save(const cs_worker *worker, const cs_request *request, runs *all,
                      cs_error *error)
{
    const cs_replay *replay = worker->replay;
    cs_trace trace = {0};
    uint32_t chosen = 0;
    CS_TRY(choose_run(all, &chosen, error));
    if (worker->grid)
        tell_losses(all, replay->graph.n_batches);
    const cs_notes notes = notes_of(all, chosen, replay->graph.n_tasks);
    cJSON *provenance = provenance_of(worker, request, all);
    char *text = provenance ? cs_json_print(provenance) : NULL;
    cs_status status = text ? cs_measured_trace(replay, &notes, all->resident, &trace, error)
                            : cs_error_no_memory(error);
    if (status == CS_OK)
        status = write_file(replay, &trace, text, request->output, error);
    cs_trace_finish(&trace);
    free(text);
    cJSON_Delete(provenance);
    return status;
}

static cs_status gather_resident(const cs_worker *worker, runs *all, cs_error *error)
{
    double *own = all->resident + worker->device * (size_t)CS_N_CATEGORIES;
    for (int c = 0; c < CS_N_CATEGORIES; c++)
        own[c] = (double)worker->resident[c];
    return cs_wire_largest(worker->wire, all->resident,
                           worker->replay->graph.n_devices * CS_N_CATEGORIES, error);
}

/* Of all places that have the loss; those of one sample have the same. */
static cs_status gather_losses(const cs_worker *worker, runs *all, cs_error *error)
{
    const uint32_t n = worker->replay->graph.n_batches, size = worker->wire->size;
    double *sums = calloc((size_t)n * size + 1, sizeof(*sums));
    if (!sums)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n * size; i++)
        sums[i] = -INFINITY;
    for (uint32_t b = 0; b < n; b++)
        if (worker->grid->n_losses[b] > 0)
            sums[worker->wire->rank * n + b] = worker->grid->losses[b] / worker->grid->n_losses[b];
    const cs_status status = cs_wire_largest(worker->wire, sums, n * size, error);
    for (uint32_t b = 0; b < n; b++) {
        double sum = 0, count = 0;
        for (uint32_t d = 0; d < size; d++) {
            const bool has = sums[d * n + b] > -INFINITY;
            sum += has ? sums[d * n + b] : 0;
            count += has;
        }
        all->losses[b] = sum / count;
    }
    free(sums);
    return status;
}

static cs_status run_worker(cs_worker *worker, const cs_request *request, uint32_t sharing,
                            const cs_progress *progress, cs_error *error)
{
    const cs_replay *replay = worker->replay;
    runs all = {.n = request->runs, .sharing = sharing};
    all.resident = calloc((size_t)replay->graph.n_devices * CS_N_CATEGORIES, sizeof(*all.resident));
    all.columns = calloc((size_t)all.n * COLUMNS * replay->graph.n_tasks, sizeof(*all.columns));
    all.durations = calloc(all.n, sizeof(*all.durations));
    all.losses = calloc(replay->graph.n_batches + UINT64_C(1), sizeof(*all.losses));
    cs_status status = all.resident && all.columns && all.durations && all.losses
                           ? CS_OK
                           : cs_error_no_memory(error);
    if (status == CS_OK)
        status = gather_resident(worker, &all, error);
    if (status == CS_OK)
        status = do_runs(worker, &all, progress, error);
    if (status == CS_OK && worker->grid)
        status = gather_losses(worker, &all, error);
    if (status == CS_OK && worker->device == 0)
        status = save(worker, request, &all, error);
    free(all.resident);
    free(all.columns);
    free(all.durations);
    free(all.losses);
    return status;
}

/* ---- the mode ---- */

static cs_status load(const cs_request *request, cs_scenario *scenario, cs_error *error)
{
    const cs_request_override *const *asked = request->overrides.items;
    const uint32_t n = request->overrides.n;
    cs_override *overrides = calloc(n + UINT64_C(1), sizeof(*overrides));
    if (!overrides)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++)
        overrides[i] = (cs_override){asked[i]->pointer, asked[i]->value};
    cs_status status = cs_scenario_load(request->scenario, overrides, n, scenario, error);
    free(overrides);
    return status;
}

cs_status cs_bench_replay(const cs_backend *backend, const cs_request *request, cs_wire *wire,
                          const cs_progress *progress, cs_error *error)
{
    cs_scenario scenario = {0};
    cs_replay replay = {0};
    cs_bench *bench = NULL;
    cs_worker worker;
    cs_core_count count = {0};
    (void)cs_bench_pin(backend, wire->place);
    cs_status status = load(request, &scenario, error);
    if (status == CS_OK)
        status = cs_replay_make(&scenario, request->scenario, &replay, error);
    if (status == CS_OK && replay.graph.n_devices != wire->size)
        status = cs_error_add(error, CS_FAILED, "%u devices, but %u processes",
                              replay.graph.n_devices, wire->size);
    if (status == CS_OK) {
        status = backend->open(wire->place, &bench, error);
        status = cs_wire_agree(wire, status, error);
    }
    if (status == CS_OK)
        status = cs_wire_connect(wire, backend, bench, error);
    if (status == CS_OK && !backend->own_memory)
        status = cs_count_cores(wire, &count, error);
    if (status == CS_OK)
        status = cs_worker_open(&replay, backend, bench, wire, &worker, error);
    if (status == CS_OK) {
        status =
            run_worker(&worker, request, count.sharing, wire->rank == 0 ? progress : NULL, error);
        cs_worker_close(&worker);
    }
    status = cs_wire_disconnect(wire, status, error);
    backend->close(bench);
    cs_replay_finish(&replay);
    cs_scenario_finish(&scenario);
    return status;
}
