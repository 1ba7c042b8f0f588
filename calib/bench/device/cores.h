/* Cores that the calling process runs on. */
#ifndef CS_CALIB_CORES_H
#define CS_CALIB_CORES_H

#include "calib/bench/device/backend.h"

/* A set of allowed cores, in the format of the system. */
typedef struct cs_bench_cores {
    uint64_t bits[16];
} cs_bench_cores;

/* Binds the calling process to one core, the number-th of its allowed cores. Returns the previously
 * allowed cores. Child processes that are created meanwhile inherit the one core. Has no effect for
 * a device with its own memory, because the threads of its driver would delay the thread that
 * starts kernels. */
cs_bench_cores cs_bench_pin(const cs_backend *backend, uint32_t number);

/* Restores the allowed cores. */
void cs_bench_unpin(const cs_bench_cores *cores);

/* Returns the number of cores that the calling process may run on; 0: unknown. */
uint32_t cs_bench_count_cores(void);

/* Writes where `processes` processes of a machine run, for notes, such as "each on a core of its
 * own". Returns `text`. */
char *cs_bench_places(const cs_backend *backend, uint32_t processes, char *text, size_t size);

/* Returns the only core that the calling process may run on, or -1. */
int cs_bench_core(void);

#endif
