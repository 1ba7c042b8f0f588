/* Measures how fast task graphs are made and run, and how much memory they take.
 *
 * One 1F1B step of P stages and M micro-batches, a stage per device, in four modes: on the platform
 * ideal and on nvlink_switch with latency, without and with a record of memory and versions. A task
 * is a forward, a backward or a message; there are 2 P M + 2 (P - 1) M of them. Stage times are
 * drawn from a fixed seed, so every run prints the same hashes, whatever the compiler: a speed-up
 * that changes one of them changed the answers.
 *
 *     bench-engine [--sharing none|fifo|max_min | --window] [PxM]...
 *
 * Without cases: 8x64 64x512 256x2048.
 *
 * --sharing: only nvlink_switch without a record, with this sharing instead of fifo.
 * --window: the same with `none`, tasks run and dropped as they are made (task-window.h), so all
 * time is in `run`.
 *
 * Each mode runs in a separate process, to measure its peak memory. It is repeated for half a
 * second, at least three times; beyond ten million tasks it runs once. CPU times are the least and
 * the median of the repeats, per task:
 *   make    from the job to the checked graph (cs_schedule_graph), including
 *   check   the check alone (cs_graph_check)
 *   run     cs_engine_run
 * Memory is the heap that the finished graph and the finished trace hold, per task, and the peak of
 * the whole process, which includes what is needed only for a while. */
#include "schedules/schedule.h"
#include "sim/base/random.h"
#include "sim/core/engine/engine.h"
#include "sim/core/engine/task-window.h"
#include "topologies/route.h"
#include "topologies/topology.h"

#include <gsl/gsl_randist.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SEED = 1, REPEATS_MIN = 3, REPEATS_MAX = 1000 };

static const double measured_seconds = 0.5, large_tasks = 1e7;

/* More than a mode was ever seen to take at its peak; for the decision to leave it out. */
static const double bare_bytes_per_task = 100, recorded_bytes_per_task = 300;

typedef struct bench_mode {
    uint32_t n_stages, micro_batches;
    const char *topology, *link; /* the topology's keys, JSON */
    bool records;
    cs_sharing sharing;
    bool window;
} bench_mode;

/* Input that is prepared once per mode. */
typedef struct bench_setting {
    cs_arena arena;
    cs_model model;
    cs_plan plan;
    cs_platform platform;
    const cs_schedule *schedule;
    void *params;
    cs_job job;
} bench_setting;

/* One sample of each per repeat, in s. */
typedef struct bench_samples {
    uint32_t n;
    double make[REPEATS_MAX], check[REPEATS_MAX], run[REPEATS_MAX];
} bench_samples;

typedef struct bench_outcome {
    uint64_t hash;
    size_t graph_bytes, trace_bytes;
} bench_outcome;

static double tasks_of(const bench_mode *mode)
{
    return 2.0 * mode->micro_batches * (2.0 * mode->n_stages - 1);
}

/* ---- the job ---- */

/* A layer per stage: 1 ms forward and 2 ms backward on average, 10 MB handed on. */
static cs_status make_model(const bench_mode *mode, bench_setting *setting, cs_error *error)
{
    const cs_layer layer = {.weight_bytes = 100000000,
                            .output_bytes = 10000000,
                            .kept_bytes = 40000000,
                            .workspace_bytes = 1000000,
                            .update = CS_PS_PER_SEC / 1000};
    gsl_rng *random = cs_random_stream(SEED, "stage times");
    if (!random)
        return cs_error_no_memory(error);
    cs_status status = cs_model_uniform(mode->n_stages, &layer, &setting->model, error);
    for (uint32_t s = 0; s < mode->n_stages && status == CS_OK; s++) {
        cs_layer *drawn = &setting->model.layers[s];
        drawn->forward = (cs_time)gsl_ran_flat(random, 0.8e9, 1.2e9);
        drawn->backward_input = (cs_time)gsl_ran_flat(random, 0.8e9, 1.2e9);
        drawn->backward_weight = (cs_time)gsl_ran_flat(random, 0.8e9, 1.2e9);
    }
    gsl_rng_free(random);
    return status;
}

static cs_status make_plan(const bench_mode *mode, bench_setting *setting, cs_error *error)
{
    uint32_t *cuts = cs_arena_alloc(&setting->arena, mode->n_stages + 1u, sizeof(*cuts));
    if (!cuts)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s <= mode->n_stages; s++)
        cuts[s] = s;
    return cs_plan_pipeline(cuts, mode->n_stages, &setting->plan, error);
}

/* Fills a struct of `size` bytes from JSON, as a scenario would. */
static cs_status read_params(const char *json, const cs_field *fields, size_t size,
                             bench_setting *setting, void **params, cs_error *error)
{
    static const cs_json_place place = {.file = "benchmark"};
    *params = cs_arena_alloc(&setting->arena, 1, size);
    if (!*params)
        return cs_error_no_memory(error);
    cJSON *root = NULL;
    cs_status status = cs_json_parse(place.file, json, strlen(json), &root, error);
    const cs_field *const tables[] = {fields, NULL};
    void *const outs[] = {*params};
    if (status == CS_OK)
        status = cs_field_read(root, &place, tables, outs, &setting->arena, error);
    cJSON_Delete(root);
    return status;
}

static cs_status make_platform(const bench_mode *mode, bench_setting *setting, cs_error *error)
{
    const cs_topology *topology = cs_topology_find(mode->topology);
    void *params = NULL;
    cs_status status =
        read_params(mode->link, topology->fields, topology->params_size, setting, &params, error);
    if (status == CS_OK)
        status = topology->build(params, mode->n_stages, &setting->platform, error);
    if (status == CS_OK)
        setting->platform.sharing = mode->sharing;
    return status;
}

static cs_status make_job(const bench_mode *mode, bench_setting *setting, cs_error *error)
{
    char json[64];
    snprintf(json, sizeof(json), "{\"micro_batches\": %" PRIu32 "}", mode->micro_batches);
    setting->schedule = cs_schedule_find("1f1b");
    cs_status status = read_params(json, setting->schedule->fields, setting->schedule->params_size,
                                   setting, &setting->params, error);
    cs_layer_sum *stages = cs_arena_alloc(&setting->arena, mode->n_stages, sizeof(*stages));
    double *speeds = cs_arena_alloc(&setting->arena, mode->n_stages, sizeof(*speeds));
    if (!stages || !speeds)
        return cs_error_no_memory(error);
    for (uint32_t s = 0; s < mode->n_stages && status == CS_OK; s++) {
        speeds[s] = 1;
        status = cs_model_sum(&setting->model, s, s + 1, 1, &stages[s], error);
    }
    cs_job *job = &setting->job;
    *job = (cs_job){.model = &setting->model,
                    .plan = &setting->plan,
                    .stages = stages,
                    .n_devices = mode->n_stages,
                    .speeds = speeds,
                    .micro_batches = mode->micro_batches,
                    .micro_samples = 1,
                    .iterations = 1,
                    .equal_messages = true};
    CS_TRY(status);
    cs_route route;
    CS_TRY(cs_route_find(&setting->platform, 0, 1, NULL, &route, error));
    job->latency = route.latency;
    job->bandwidth = route.bandwidth;
    return CS_OK;
}

static cs_status make_setting(const bench_mode *mode, bench_setting *setting, cs_error *error)
{
    cs_arena_init(&setting->arena);
    cs_status status = make_model(mode, setting, error);
    if (status == CS_OK)
        status = make_plan(mode, setting, error);
    if (status == CS_OK)
        status = make_platform(mode, setting, error);
    if (status == CS_OK)
        status = make_job(mode, setting, error);
    return status;
}

static void finish_setting(bench_setting *setting)
{
    cs_platform_finish(&setting->platform);
    cs_plan_finish(&setting->plan);
    cs_model_finish(&setting->model);
    cs_arena_finish(&setting->arena);
}

/* ---- measuring ---- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Bytes that are allocated and not freed, as the C library counts them; 0 under a sanitizer. */
static size_t heap(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Makes and runs the tasks, without a graph. */
static cs_status run_window(const bench_setting *setting, cs_graph *graph, cs_trace *trace,
                            cs_error *error)
{
    cs_task_window_use use = {0};
    cs_task_window *window = cs_task_window_create(&setting->platform, NULL);
    if (!window)
        return cs_error_no_memory(error);
    const cs_task_taker taker = cs_task_window_taker(window);
    cs_status status = cs_schedule_hand_on(setting->schedule, &setting->job, setting->params,
                                           &taker, graph, error);
    if (status == CS_OK)
        status = cs_task_window_end(window, graph, trace, &use, error);
    cs_task_window_use_finish(&use);
    cs_task_window_destroy(window);
    return status;
}

static cs_status repeat_window(const bench_setting *setting, cs_graph *graph, cs_trace *trace,
                               bench_samples *samples, bench_outcome *outcome, cs_error *error)
{
    const uint32_t n = samples->n++;
    const size_t before = heap();
    const double start = now();
    const cs_status status = run_window(setting, graph, trace, error);
    samples->run[n] = now() - start;
    outcome->trace_bytes = heap() - before;
    return status;
}

/* Makes and runs the graph once. `graph` and `trace` are to be finished in any case. */
static cs_status repeat(const bench_mode *mode, const bench_setting *setting, cs_graph *graph,
                        cs_trace *trace, bench_samples *samples, bench_outcome *outcome,
                        cs_error *error)
{
    const cs_engine_options options = {.record_memory = mode->records,
                                       .record_versions = mode->records};
    uint32_t n = samples->n++;
    size_t before = heap();
    double start = now();
    cs_status status =
        cs_schedule_graph(setting->schedule, &setting->job, setting->params, graph, error);
    double made = now();
    outcome->graph_bytes = heap() - before;
    if (status == CS_OK)
        status = cs_graph_check(graph, error);
    double checked = now();
    if (status == CS_OK)
        status = cs_engine_run(graph, &setting->platform, &options, trace, error);
    double end = now();
    outcome->trace_bytes = heap() - before - outcome->graph_bytes;
    samples->make[n] = made - start;
    samples->check[n] = checked - made;
    samples->run[n] = end - checked;
    return status;
}

static bool enough(const bench_mode *mode, uint32_t repeats, double seconds)
{
    if (tasks_of(mode) >= large_tasks || repeats >= REPEATS_MAX)
        return true;
    return repeats >= REPEATS_MIN && seconds >= measured_seconds;
}

static cs_status measure(const bench_mode *mode, const bench_setting *setting,
                         bench_samples *samples, bench_outcome *outcome, cs_error *error)
{
    double start = now();
    cs_status status = CS_OK;
    do {
        cs_graph graph = {0};
        cs_trace trace = {0};
        status = mode->window ? repeat_window(setting, &graph, &trace, samples, outcome, error)
                              : repeat(mode, setting, &graph, &trace, samples, outcome, error);
        uint64_t hash = status == CS_OK ? cs_trace_hash(&trace) : 0;
        if (status == CS_OK && samples->n > 1 && hash != outcome->hash)
            status = cs_error_add(error, CS_FAILED, "repeats gave different results");
        outcome->hash = hash;
        cs_trace_finish(&trace);
        cs_graph_finish(&graph);
    } while (status == CS_OK && !enough(mode, samples->n, now() - start));
    return status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* "123.4 130.0": least and median, in ns per task. Sorts the samples. */
static void print_times(double *times, uint32_t n, double tasks)
{
    qsort(times, n, sizeof(*times), compare);
    printf(" %7.1f %7.1f", 1e9 * times[0] / tasks, 1e9 * times[n / 2] / tasks);
}

static void print_head(void)
{
    printf("                                               "
           "make, ns/task   check, ns/task  run, ns/task    million  bytes/task   peak\n"
           "    P     M platform      records tasks     n  "
           "  least  median   least  median   least  median tasks/s  graph trace   MiB  hash\n");
}

static void print_mode(const bench_mode *mode)
{
    printf("%5" PRIu32 " %5" PRIu32 " %-13s %-7s", mode->n_stages, mode->micro_batches,
           mode->topology,
           mode->window    ? "window"
           : mode->records ? "all"
                           : "none");
}

static void print_result(const bench_mode *mode, bench_samples *samples,
                         const bench_outcome *outcome)
{
    double tasks = tasks_of(mode);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    print_mode(mode);
    printf(" %8.0f %3" PRIu32, tasks, samples->n);
    print_times(samples->make, samples->n, tasks);
    print_times(samples->check, samples->n, tasks);
    print_times(samples->run, samples->n, tasks);
    printf(" %7.2f %6.1f %5.1f %6.1f  %016" PRIx64 "\n", 1e-6 * tasks / samples->run[0],
           (double)outcome->graph_bytes / tasks, (double)outcome->trace_bytes / tasks,
           (double)usage.ru_maxrss / 1024, outcome->hash);
}

static int bench(const bench_mode *mode)
{
    bench_setting setting = {0};
    cs_error error;
    cs_error_init(&error);
    bench_samples *times = calloc(1, sizeof(*times));
    bench_outcome outcome = {0};
    cs_status status = times ? CS_OK : cs_error_no_memory(&error);
    if (status == CS_OK)
        status = make_setting(mode, &setting, &error);
    if (status == CS_OK)
        status = measure(mode, &setting, times, &outcome, &error);
    if (status == CS_OK)
        print_result(mode, times, &outcome);
    else
        fprintf(stderr, "bench-engine: %s\n", error.text);
    finish_setting(&setting);
    free(times);
    return status == CS_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- modes, each in a process of its own ---- */

/* Memory that can still be had, in bytes; 0 when the system does not say. */
static double available_memory(void)
{
    FILE *in = fopen("/proc/meminfo", "r");
    char line[256];
    unsigned long kib = 0;
    while (in && kib == 0 && fgets(line, sizeof(line), in))
        sscanf(line, "MemAvailable: %lu kB", &kib);
    if (in)
        fclose(in);
    return 1024.0 * (double)kib;
}

static bool too_large(const bench_mode *mode)
{
    double need = tasks_of(mode) * (mode->records ? recorded_bytes_per_task : bare_bytes_per_task);
    double available = available_memory();
    if (available <= 0 || need < available)
        return false;
    print_mode(mode);
    printf(" left out: may need %.1f GB, and %.1f GB are free\n", 1e-9 * need, 1e-9 * available);
    return true;
}

static bool bench_apart(const bench_mode *mode)
{
    if (too_large(mode))
        return true;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        exit(bench(mode));
    int state = 0;
    return child > 0 && waitpid(child, &state, 0) == child && WIFEXITED(state) &&
           WEXITSTATUS(state) == EXIT_SUCCESS;
}

static const char switch_link[] = "{\"bandwidth\": \"150 GB/s\", \"latency\": \"3 us\"}";

static bool bench_case(uint32_t n_stages, uint32_t micro_batches)
{
    static const char *const topologies[][2] = {{"ideal", "{}"}, {"nvlink_switch", switch_link}};
    bool done = true;
    for (size_t t = 0; t < 2; t++) {
        for (int records = 0; records < 2; records++) {
            bench_mode mode = {
                n_stages,        micro_batches, topologies[t][0], topologies[t][1], records == 1,
                CS_SHARING_FIFO, false};
            done = bench_apart(&mode) && done;
        }
    }
    return done;
}

/* The way of sharing links that the words begin with; false: they name an unknown one. */
static bool read_sharing(int argc, char **argv, bool *given, cs_sharing *sharing)
{
    static const char *const names[] = {
#define SHARING_NAME(name, text) [CS_SHARING_##name] = text,
        CS_SHARING_MAP(SHARING_NAME)
#undef SHARING_NAME
    };
    *given = argc > 1 && strcmp(argv[1], "--sharing") == 0;
    for (size_t i = 0; *given && argc > 2 && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], argv[2]) == 0) {
            *sharing = (cs_sharing)i;
            return true;
        }
    return !*given;
}

static bool read_case(const char *word, uint32_t *n_stages, uint32_t *micro_batches)
{
    char rest = 0;
    return sscanf(word, "%" SCNu32 "x%" SCNu32 "%c", n_stages, micro_batches, &rest) == 2 &&
           *n_stages >= 2 && *n_stages <= 1 << 16 && *micro_batches >= 1 &&
           *micro_batches <= 1 << 20;
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"8x64", "64x512", "256x2048"};
    const bool window = argc > 1 && strcmp(argv[1], "--window") == 0;
    bool given, done = true;
    cs_sharing sharing = window ? CS_SHARING_NONE : CS_SHARING_FIFO;
    if (!read_sharing(argc, argv, &given, &sharing)) {
        fprintf(stderr, "bench-engine: --sharing: none, fifo, phi, count or max_min\n");
        return 2;
    }
    const int first = given ? 3 : window ? 2 : 1;
    const char *const *cases = argc > first ? (const char *const *)argv + first : usual;
    const int n = argc > first ? argc - first : 3;
    print_head();
    for (int i = 0; i < n; i++) {
        bench_mode mode = {0, 0, "nvlink_switch", switch_link, false, sharing, window};
        if (!read_case(cases[i], &mode.n_stages, &mode.micro_batches)) {
            fprintf(stderr, "usage: bench-engine [PxM]..., P from 2 and M from 1 (got \"%s\")\n",
                    cases[i]);
            return 2;
        }
        done = (given || window ? bench_apart(&mode)
                                : bench_case(mode.n_stages, mode.micro_batches)) &&
               done;
    }
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
