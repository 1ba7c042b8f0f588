/* What there is of memory on a platform's devices, and what of it no simulated peak counts. */
#ifndef CS_PRINT_CAPACITY_H
#define CS_PRINT_CAPACITY_H

#include "sim/run/scenario/scenario.h"
#include "sim/run/simulate.h"

#include <stdio.h>

/* Returns the free bytes of the simulated device with the least free memory, its number and its
 * capacity. With PyTorch's allocator, its peak counts as well. INT64_MAX: memory is unlimited. */
int64_t cs_capacity_left(const cs_simulation *simulation, uint32_t *device, int64_t *capacity);

/* Prints how likely it is that a run fits, unless that is next to certain. */
void cs_capacity_print_fit(const cs_memory_fit *fit, FILE *out);

/* Nothing where memory is unlimited. */
void cs_capacity_print(const cs_platform *platform, FILE *out);

#endif
