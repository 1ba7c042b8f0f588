/* How likely it is that a run fits into memory. A device needs the least capacity with which all
 * allocations succeed: with PyTorch's allocator that is between its peak of allocated memory and
 * its peak of reserved memory without a limit, because the allocator gives free segments back
 * before it fails. What is predicted of it has errors, and what is set aside for the driver's
 * context and communicators is known roughly: facts/memory-errors.json has both. The errors are
 * assumed to be normal, and those of devices to be the same. */
#ifndef CS_RUN_MEMORY_FIT_H
#define CS_RUN_MEMORY_FIT_H

#include "sim/run/allocations.h"

typedef struct cs_memory_fit {
    double probability; /* 1: memory is unlimited; NaN: the run was stopped when it ran out */
    uint32_t device;    /* that is most likely to run out; its */
    int64_t capacity;   /* without what is set aside; INT64_MAX: without limit, */
    int64_t needed;     /* least capacity; a bound of it where that is enough to know, and the */
    int64_t spread;     /* standard deviation of what is needed and what is set aside */
} cs_memory_fit;

/* Of a device with `capacity` bytes besides `reserve` that are set aside. CS_INVALID,
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_memory_fit_of(int64_t capacity, int64_t reserve, int64_t needed,
                                         cs_memory_fit *fit, cs_error *error);

/* "fits", "tight" below 95 of 100, "does not fit" below 50 and where the run was stopped. */
const char *cs_memory_fit_verdict(const cs_memory_fit *fit);

/* Of a finished run. A run whose allocations succeed is more likely to fit than not, and one of
 * which some fail is not. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_memory_fit_find(const cs_scenario *scenario, const cs_graph *graph,
                                           const cs_trace *trace, const cs_allocations *allocations,
                                           cs_memory_fit *fit, cs_error *error);

#endif
