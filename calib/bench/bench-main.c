#include "calib/bench/bench-main.h"

#include "calib/bench/measure/calibrate.h"
#include "sim/base/interrupt.h"
#include "sim/base/terminal.h"
#ifdef CS_WITH_MPI
#include "calib/bench/replay/replay-runs.h"
#include "sim/base/file.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef cs_status mode_alone(const cs_backend *backend, const cs_request *request,
                             const cs_progress *progress, cs_error *error);
typedef cs_status mode_together(const cs_backend *backend, const cs_request *request, cs_wire *wire,
                                const cs_progress *progress, cs_error *error);

static const struct mode {
    const char *name;
    mode_alone *alone;
    mode_together *together; /* run by several processes together */
} modes[] = {
    {"compute", cs_bench_compute, NULL},
#ifdef CS_WITH_MPI
    {"network", NULL, cs_bench_network},
    {"replay", NULL, cs_bench_replay},
#endif
};

/* ---- a mode ---- */

/* Shows progress. Every process catches signals from the start; the measuring one checks for
 * them. */
static cs_progress watch(cs_terminal *terminal, const cs_request *request)
{
    *terminal = (cs_terminal){.shows = request->progress};
    cs_progress progress = cs_terminal_progress(terminal);
    (void)cs_progress_step(&progress, "starting", 0, 1);
    return progress;
}

static cs_status run_alone(const struct mode *mode, const cs_backend *backend, const char *path,
                           cs_error *error)
{
    cs_terminal terminal;
    cs_request request = {0};
    cJSON *root = NULL;
    cs_arena arena;
    cs_arena_init(&arena);
    cs_status status = cs_request_load(path, &request, &root, &arena, error);
    if (status == CS_OK) {
        cs_progress progress = watch(&terminal, &request);
        status = mode->alone(backend, &request, &progress, error);
        cs_terminal_clear(&terminal);
    }
    cJSON_Delete(root);
    cs_arena_finish(&arena);
    return status;
}

#ifdef CS_WITH_MPI
enum { REQUEST_BYTES = 1 << 20 };

/* Sends the text of the request to all processes, because the file is only on the host of rank
 * 0. */
static cs_status hand_out(const cs_wire *wire, const char *path, char **text, size_t *length,
                          cs_error *error)
{
    int64_t bytes = -1;
    cs_status status =
        wire->rank == 0 ? cs_file_read(path, REQUEST_BYTES, text, length, error) : CS_OK;
    if (status == CS_OK && wire->rank == 0)
        bytes = (int64_t)*length;
    cs_status told = cs_wire_tell(wire, &bytes, sizeof(bytes), status == CS_OK ? error : NULL);
    if (status != CS_OK || told != CS_OK)
        return status == CS_OK ? told : status;
    if (bytes < 0)
        return cs_error_add(error, CS_INVALID, "rank 0 could not read the request");
    if (wire->rank > 0)
        *text = malloc((size_t)bytes + 1);
    *length = (size_t)bytes;
    return *text ? cs_wire_tell(wire, *text, bytes, error) : cs_error_no_memory(error);
}

static cs_status run_together(const struct mode *mode, const cs_backend *backend, const char *path,
                              cs_error *error)
{
    cs_wire wire = {0};
    cs_terminal terminal;
    cs_request request = {0};
    cJSON *root = NULL;
    char *text = NULL;
    size_t length = 0;
    cs_arena arena;
    cs_arena_init(&arena);
    cs_status status = cs_wire_open(&wire, error);
    if (status == CS_OK)
        status = hand_out(&wire, path, &text, &length, error);
    if (status == CS_OK)
        status = cs_request_read(path, text, length, &request, &root, &arena, error);
    if (status == CS_OK) {
        cs_progress progress = watch(&terminal, &request);
        status = mode->together(backend, &request, &wire, &progress, error);
        cs_terminal_clear(&terminal);
    }
    bool alike = status == CS_INVALID || status == CS_USAGE || wire.alike;
    if (status != CS_OK && wire.size > 1 && (!alike || wire.rank == 0))
        fprintf(stderr, "sim: error: %s\n", error->text);
    if (status != CS_OK && wire.size > 1)
        cs_error_init(error);
    cs_wire_close(&wire, status != CS_OK && !alike);
    free(text);
    cJSON_Delete(root);
    cs_arena_finish(&arena);
    return status;
}
#else
static cs_status run_together(const struct mode *mode, const cs_backend *backend, const char *path,
                              cs_error *error)
{
    (void)backend, (void)path;
    return cs_error_add(error, CS_USAGE, "\"%s\" needs MPI", mode->name);
}
#endif

static cs_status run(const cs_backend *backend, const char *mode, const char *path, cs_error *error)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(modes[i].name, mode) == 0)
            return modes[i].alone ? run_alone(&modes[i], backend, path, error)
                                  : run_together(&modes[i], backend, path, error);
    return cs_error_add(error, CS_USAGE, "this program was built without \"%s\" (it needs MPI)",
                        mode);
}

int cs_bench_main(const cs_backend *backend, int argc, char **argv)
{
    cs_error error;
    cs_error_init(&error);
    cs_interrupt_catch(CS_INTERRUPT_GRACE_OF_CHILD);
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
