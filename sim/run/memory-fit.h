/* The probability that a run fits into memory. A device needs the least capacity at which all
 * allocations succeed. With PyTorch's allocator this lies between the peaks of allocated and of
 * reserved memory, because the allocator gives free segments back before it fails.
 *
 * The prediction has errors, and the memory set aside for the driver's context and for
 * communicators is known roughly: facts/memory-errors.json has the standard deviation of both. The
 * errors are assumed to be normal, and equal on all devices. */
#ifndef CS_RUN_MEMORY_FIT_H
#define CS_RUN_MEMORY_FIT_H

#include "sim/run/allocations.h"

typedef struct cs_memory_fit {
    double probability; /* 1: memory is unlimited; NaN: the run was stopped when it ran out */
    uint32_t device;    /* the device most likely to run out */
    int64_t capacity;   /* its capacity, less the memory set aside; INT64_MAX: unlimited */
    int64_t needed;     /* least capacity that is enough; a bound where a bound decides */
    int64_t spread;     /* standard deviation of needed + set aside */
} cs_memory_fit;

/* The fit of a device with `capacity` bytes, and `reserve` more that are set aside. CS_INVALID,
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_memory_fit_of(int64_t capacity, int64_t reserve, int64_t needed,
                                         cs_memory_fit *fit, cs_error *error);

/* "fits", "tight" below 95 of 100, "does not fit" below 50 and where the run was stopped. */
const char *cs_memory_fit_verdict(const cs_memory_fit *fit);

/* The fit of a finished run: at least 50 of 100 if all allocations succeeded, less if one failed.
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_memory_fit_find(const cs_scenario *scenario, const cs_graph *graph,
                                           const cs_trace *trace, const cs_allocations *allocations,
                                           cs_memory_fit *fit, cs_error *error);

#endif
