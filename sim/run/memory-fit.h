/* The probability that a run fits into memory. A device needs the smallest capacity where all
 * allocations succeed. With PyTorch's allocator this is between the peaks of allocated and reserved
 * memory, because the allocator returns free segments before it fails.
 *
 * Two errors are taken into account, with standard deviations from facts/memory-errors.json: errors
 * of the prediction, and of the memory set aside for the driver's context and communicators. They
 * are assumed to be normally distributed, and the same on all devices. */
#ifndef CS_RUN_MEMORY_FIT_H
#define CS_RUN_MEMORY_FIT_H

#include "sim/run/allocations.h"

typedef struct cs_memory_fit {
    double probability; /* 1: memory is unlimited; NaN: the run was stopped when it ran out of
                         * memory */
    uint32_t device;    /* the device most likely to run out */
    int64_t capacity;   /* bytes, without the memory set aside; INT64_MAX: unlimited */
    int64_t needed;     /* bytes, smallest sufficient capacity; a bound if that already decides */
    int64_t spread;     /* bytes, standard deviation of needed + set aside */
} cs_memory_fit;

/* Computes the fit of a device with `capacity` bytes, plus `reserve` bytes that are set aside.
 * CS_INVALID, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_memory_fit_of(int64_t capacity, int64_t reserve, int64_t needed,
                                         cs_memory_fit *fit, cs_error *error);

/* Returns "fits", "tight" (below 95 %) or "does not fit" (below 50 %, or the run was stopped). */
const char *cs_memory_fit_verdict(const cs_memory_fit *fit);

/* Finds the fit of a finished run: at least 50 % if all allocations succeeded, else less.
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_memory_fit_find(const cs_scenario *scenario, const cs_graph *graph,
                                           const cs_trace *trace, const cs_allocations *allocations,
                                           cs_memory_fit *fit, cs_error *error);

#endif
