/* What there is of memory on a platform's devices, and what of it no simulated peak counts. */
#ifndef CS_PRINT_CAPACITY_H
#define CS_PRINT_CAPACITY_H

#include "sim/scenario/scenario.h"

#include <stdio.h>

/* Nothing where memory is unlimited. */
void cs_capacity_print(const cs_platform *platform, FILE *out);

#endif
