/* What `sim` asks a bench program to do: one JSON object in a file.
 *
 *     sim-bench-cpu MODE REQUEST.json        MODE: compute, network, replay
 *
 * The programs are apart from `sim` because they need libraries that not every machine has; they are
 * no interface for people. Results go to the file `output`, messages to standard error, and the exit
 * code is that of the program `sim`.
 */
#ifndef CS_CALIB_REQUEST_H
#define CS_CALIB_REQUEST_H

#include "calib/costs.h"
#include "sim/base/field.h"
#include "sim/base/time.h"

typedef struct cs_request {
    const char *output;  /* a cost file, which is added to; of a replay the results */
    const char *command; /* for the provenance: what the user typed */
    const char *date, *notes;
    bool progress; /* shown on standard error, which is a terminal for who asks */
    /* compute */
    const cJSON *workload, *batches;
    uint32_t states;
    double share;
    uint32_t processes; /* that do the same at once, on cores of their own */
    /* compute and network */
    cs_time time_limit;
    /* network */
    const cJSON *collectives;
    int64_t min_bytes, max_bytes; /* max_bytes 0: as long as memory allows, to 1 GiB */
    /* replay */
    const char *scenario;
    const cJSON *overrides; /* [["/pointer", "value"], ...] */
    uint32_t runs;
} cs_request;

/* ended by {0} */
extern const cs_field cs_request_fields[];

/* The document is kept in *root, which the request points into; the caller deletes it. */
CS_MUST_CHECK cs_status cs_request_read(const char *name, const char *text, size_t length,
                                        cs_request *request, cJSON **root, cs_arena *arena,
                                        cs_error *error);
CS_MUST_CHECK cs_status cs_request_load(const char *path, cs_request *request, cJSON **root,
                                        cs_arena *arena, cs_error *error);

/* Adds to a cost file what was measured; makes the file if there is none. */
CS_MUST_CHECK cs_status cs_request_save(const cs_request *request, const cs_costs *measured,
                                        cs_error *error);

#endif
