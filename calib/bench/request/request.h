/* What `sim` asks a bench program to do: one JSON object in a file, which both read and write by
 * the same table of fields.
 *
 *     sim-bench-cpu MODE REQUEST.json        MODE: compute, network, replay
 *
 * The programs are apart from `sim` because they need libraries that not every machine has; they
 * are no interface for people. Results go to the file `output`, messages to standard error, and the
 * exit code is that of the program `sim`.
 */
#ifndef CS_CALIB_REQUEST_H
#define CS_CALIB_REQUEST_H

#include "sim/base/field.h"
#include "sim/base/time.h"
#include "sim/run/scenario/workload.h"

enum { CS_REQUEST_PROCESSES_MAX = 1024, CS_REQUEST_RUNS_MAX = 1000 };

/* A change to the scenario: what --set takes. */
typedef struct cs_request_override {
    const char *pointer, *value;
} cs_request_override;

typedef struct cs_request {
    const char *output;  /* a cost file, which is added to; of a replay the results */
    const char *command; /* for the provenance: what the user typed */
    const char *date, *notes;
    bool progress; /* shown on standard error, which is a terminal for who asks */
    /* compute */
    cs_workload *workload; /* NULL: none is measured */
    cs_list batches;       /* of uint32_t: samples at once */
    uint32_t states;
    double share;
    uint32_t processes; /* that do the same at once, on cores of their own */
    /* compute and network */
    cs_time time_limit;
    /* network */
    cs_list collectives;          /* of uint32_t: cs_cost_collective; none: all of them */
    int64_t min_bytes, max_bytes; /* max_bytes 0: as long as memory allows, to 1 GiB */
    /* replay */
    const char *scenario;
    cs_list overrides; /* of const cs_request_override *, in this order */
    uint32_t runs;
} cs_request;

/* A request with that output and the defaults of all else. */
CS_MUST_CHECK cs_status cs_request_init(const char *output, cs_request *request, cs_arena *arena,
                                        cs_error *error);

/* As JSON, which the caller frees; NULL when memory runs out. */
char *cs_request_print(const cs_request *request);

/* From JSON. The document is kept in *root, as the parameters of the workload point into it; the
 * caller deletes it. `name` is what messages call it. */
CS_MUST_CHECK cs_status cs_request_read(const char *name, const char *text, size_t length,
                                        cs_request *request, cJSON **root, cs_arena *arena,
                                        cs_error *error);
CS_MUST_CHECK cs_status cs_request_load(const char *path, cs_request *request, cJSON **root,
                                        cs_arena *arena, cs_error *error);

#endif
