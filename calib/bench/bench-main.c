#define _GNU_SOURCE /* cores: sched_setaffinity */

#include "calib/bench/bench-main.h"

#include "sim/cli/terminal.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

typedef cs_status mode_run(const cs_backend *backend, const cs_request *request,
                           const cs_progress *progress, cs_error *error);

static const struct {
    const char *name;
    mode_run *run;
} modes[] = {
    {"compute", cs_bench_compute},
#ifdef CS_WITH_MPI
    {"network", cs_bench_network},
    {"replay", cs_bench_replay},
#endif
};

_Static_assert(sizeof(cpu_set_t) == sizeof(cs_bench_cores),
               "cores are kept as the system has them");

/* That it fails is no error: without it times vary more. */
void cs_bench_unpin(const cs_bench_cores *cores)
{
    cpu_set_t allowed;
    memcpy(&allowed, cores, sizeof(allowed));
    if (CPU_COUNT(&allowed) > 0)
        (void)sched_setaffinity(0, sizeof(allowed), &allowed);
}

uint32_t cs_bench_count_cores(void)
{
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? (uint32_t)CPU_COUNT(&allowed) : 0;
}

char *cs_bench_places(const cs_backend *backend, uint32_t processes, char *text, size_t size)
{
    uint32_t cores = cs_bench_count_cores();
    if (backend->own_memory)
        snprintf(text, size, "taking GPUs in turn");
    else if (processes <= cores)
        snprintf(text, size, "each on a core of its own");
    else
        snprintf(text, size, "taking turns on %u core%s", cores, cores == 1 ? "" : "s");
    return text;
}

cs_bench_cores cs_bench_pin(const cs_backend *backend, uint32_t number)
{
    cs_bench_cores before = {{0}}, after;
    cpu_set_t allowed, one;
    if (backend->own_memory || sched_getaffinity(0, sizeof(allowed), &allowed) != 0 ||
        CPU_COUNT(&allowed) == 0)
        return before;
    memcpy(&before, &allowed, sizeof(before));
    uint32_t skip = number % (uint32_t)CPU_COUNT(&allowed);
    int core = 0;
    while (!CPU_ISSET(core, &allowed) || skip-- > 0)
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    memcpy(&after, &one, sizeof(after));
    cs_bench_unpin(&after);
    return before;
}

/* Signals are caught from the start, by every process: the one that measures looks for them. */
static cs_status run_mode(const cs_backend *backend, mode_run *mode, const cs_request *request,
                          cs_error *error)
{
    cs_terminal terminal = {.shows = request->progress};
    cs_progress progress = cs_terminal_progress(&terminal);
    (void)cs_progress_step(&progress, "starting", 0, 1);
    cs_status status = mode(backend, request, &progress, error);
    cs_terminal_clear(&terminal);
    return status;
}

static cs_status run(const cs_backend *backend, const char *mode, const char *path, cs_error *error)
{
    cs_request request = {0};
    cJSON *root = NULL;
    cs_arena arena;
    cs_arena_init(&arena);
    cs_status status = cs_request_load(path, &request, &root, &arena, error);
    const size_t n = sizeof(modes) / sizeof(modes[0]);
    size_t i = 0;
    while (i < n && strcmp(modes[i].name, mode) != 0)
        i++;
    if (status == CS_OK && i < n)
        status = run_mode(backend, modes[i].run, &request, error);
    else if (status == CS_OK)
        status = cs_error_add(error, CS_USAGE,
                              "this program was built without \"%s\" (it needs MPI)", mode);
    cJSON_Delete(root);
    cs_arena_finish(&arena);
    return status;
}

int cs_bench_main(const cs_backend *backend, int argc, char **argv)
{
    cs_error error;
    cs_error_init(&error);
    if (argc != 3) {
        fprintf(stderr,
                "usage: %s MODE REQUEST.json (started by `sim calibrate` and `sim replay`)\n",
                argv[0]);
        return cs_status_exit_code(CS_USAGE);
    }
    cs_status status = run(backend, argv[1], argv[2], &error);
    if (error.count > 0)
        fprintf(stderr, "sim: error: %s\n", error.text);
    return cs_status_exit_code(status);
}
