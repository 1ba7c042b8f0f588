/* Which cores the calling process computes on. */
#ifndef CS_CALIB_CORES_H
#define CS_CALIB_CORES_H

#include "calib/bench/device/backend.h"

/* Cores that a process may run on, as the system keeps them. */
typedef struct cs_bench_cores {
    uint64_t bits[16];
} cs_bench_cores;

/* The calling process, onto the core with that number among those that it may run on. Returns
 * these; children that are made meanwhile inherit the one core. Without effect for a device with a
 * memory of its own, whose driver has threads that would be in the way of the one that starts
 * kernels. */
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
