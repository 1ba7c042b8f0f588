/* Memory capacity of a platform's devices, and free memory after a run. */
#ifndef CS_PRINT_CAPACITY_H
#define CS_PRINT_CAPACITY_H

#include "sim/run/scenario/scenario.h"
#include "sim/run/simulate.h"

#include <stdio.h>

/* Returns the smallest number of free bytes on a simulated device, with the device and its
 * capacity. Uses the peak of PyTorch's allocator as well, if any. INT64_MAX: memory is
 * unlimited. */
int64_t cs_capacity_left(const cs_simulation *simulation, uint32_t *device, int64_t *capacity);

/* Prints the probability that a run fits, unless it is nearly certain either way. */
void cs_capacity_print_fit(const cs_memory_fit *fit, FILE *out);

/* Prints the capacities, unless memory is unlimited. */
void cs_capacity_print(const cs_platform *platform, FILE *out);

#endif
