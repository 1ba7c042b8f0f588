/* Request of `sim` to a bench program: one JSON object in a file, which both read and write with
 * the same table of fields.
 *
 *     sim-bench-cpu MODE REQUEST.json        MODE: compute, network, replay
 *
 * The programs are separate from `sim` because they need libraries that not every machine has; they
 * are not meant for users. Results go to the file `output`, messages to standard error, and exit
 * codes are as for `sim`.
 */
#ifndef CS_CALIB_REQUEST_H
#define CS_CALIB_REQUEST_H

#include "sim/base/field.h"
#include "sim/base/time.h"
#include "sim/run/scenario/workload.h"

enum { CS_REQUEST_PROCESSES_MAX = 1024, CS_REQUEST_RUNS_MAX = 1000 };

/* A change to the scenario, as in --set. */
typedef struct cs_request_override {
    const char *pointer, *value;
} cs_request_override;

typedef struct cs_request {
    const char *output;  /* cost file, results are added to it; replay: results file */
    const char *command; /* for the provenance: the user's command line */
    const char *date, *notes;
    bool progress; /* show progress on standard error, a terminal */
    /* compute */
    cs_workload *workload; /* NULL: nothing to measure */
    cs_list batches;       /* uint32_t: samples per batch */
    uint32_t states;
    double share;
    uint32_t processes; /* processes that compute the same at the same time, on separate cores */
    /* compute and network */
    cs_time time_limit;
    /* network */
    cs_list collectives;          /* uint32_t: cs_cost_collective; empty: all */
    int64_t min_bytes, max_bytes; /* max_bytes 0: 1 GiB, or as long as memory allows */
    /* replay */
    const char *scenario;
    cs_list overrides; /* const cs_request_override *, in this order */
    uint32_t runs;
} cs_request;

/* Initialises a request with this output and defaults for all other fields. */
CS_MUST_CHECK cs_status cs_request_init(const char *output, cs_request *request, cs_arena *arena,
                                        cs_error *error);

/* Prints JSON, which the caller frees; NULL if memory runs out. */
char *cs_request_print(const cs_request *request);

/* Read a request from JSON. The document stays in *root, because the parameters of the workload
 * point into it; the caller deletes it. `name`: its name in messages. */
CS_MUST_CHECK cs_status cs_request_read(const char *name, const char *text, size_t length,
                                        cs_request *request, cJSON **root, cs_arena *arena,
                                        cs_error *error);
CS_MUST_CHECK cs_status cs_request_load(const char *path, cs_request *request, cJSON **root,
                                        cs_arena *arena, cs_error *error);

#endif
