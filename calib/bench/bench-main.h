/* What the bench programs have in common: modes on a backend, and the end of the program. */
#ifndef CS_CALIB_BENCH_MAIN_H
#define CS_CALIB_BENCH_MAIN_H

#include "calib/bench/backend.h"
#include "calib/bench/request.h"
#include "sim/base/progress.h"

struct cs_wire;

/* Runs a bench program: parses its command line, writes messages to standard error, returns the exit
 * code. */
int cs_bench_main(const cs_backend *backend, int argc, char **argv);

/* ---- modes ---- */

CS_MUST_CHECK cs_status cs_bench_compute(const cs_backend *backend, const cs_request *request,
                                         const cs_progress *progress, cs_error *error);
/* With messages: of processes that MPI has connected. What all of them find wrong alike, the request,
 * only the first one says; any other failure ends the others, and is said by who had it. */
CS_MUST_CHECK cs_status cs_bench_network(const cs_backend *backend, const cs_request *request,
                                         struct cs_wire *wire, const cs_progress *progress,
                                         cs_error *error);
CS_MUST_CHECK cs_status cs_bench_replay(const cs_backend *backend, const cs_request *request,
                                        struct cs_wire *wire, const cs_progress *progress,
                                        cs_error *error);

/* Cores that a process may run on, as the system keeps them. */
typedef struct cs_bench_cores {
    uint64_t bits[16];
} cs_bench_cores;

/* The calling process, onto the core with that number among those that it may run on. Returns these;
 * children that are made meanwhile inherit the one core. Without effect for a device with a memory of
 * its own, whose driver has threads that would be in the way of the one that starts kernels. */
cs_bench_cores cs_bench_pin(const cs_backend *backend, uint32_t number);

/* Onto all of those again. */
void cs_bench_unpin(const cs_bench_cores *cores);

/* How many the calling process may run on; 0: not known. */
uint32_t cs_bench_count_cores(void);

/* For notes, where `processes` of a machine are: "each on a core of its own". Returns `text`. */
char *cs_bench_places(const cs_backend *backend, uint32_t processes, char *text, size_t size);

/* The only core that the calling process may run on, or -1. */
int cs_bench_core(void);

#endif
