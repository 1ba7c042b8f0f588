/* What there is of memory on a platform's devices, and what of it no simulated peak counts. */
#ifndef CS_PRINT_CAPACITY_H
#define CS_PRINT_CAPACITY_H

#include "sim/run/simulate.h"
#include "sim/scenario/scenario.h"

#include <stdio.h>

/* Whether a prediction within capacity can be relied on. Peaks are predicted with errors of several
 * per cent (docs/reference/points.md), so with less than CS_TIGHT of the capacity free a run that is
 * predicted to fit may run out of memory. */
#define CS_TIGHT 0.05

/* "fits", "tight" or "does not fit", of bytes that are free (< 0: lacking) of a device's capacity
 * (INT64_MAX: unlimited). */
const char *cs_capacity_verdict(int64_t left, int64_t capacity);

/* The least that is free on a simulated device, by its peak or by what PyTorch's allocator has to
 * hold, and that device's number and capacity. INT64_MAX if memory is unlimited. */
int64_t cs_capacity_left(const cs_simulation *simulation, uint32_t *device, int64_t *capacity);

/* Nothing if memory is unlimited, or the run does not fit, which others report. */
void cs_capacity_print_tight(const cs_simulation *simulation, FILE *out);

/* Nothing where memory is unlimited. */
void cs_capacity_print(const cs_platform *platform, FILE *out);

#endif
