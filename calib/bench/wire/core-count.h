/* The number of cores that the processes of several machines run on. */
#ifndef CS_CALIB_CORE_COUNT_H
#define CS_CALIB_CORE_COUNT_H

#include "calib/bench/wire/wire.h"

typedef struct cs_core_count {
    uint32_t cores;   /* cores of all machines; 0: some process is not bound to one core */
    uint32_t sharing; /* processes that share their core with another bound process */
} cs_core_count;

/* Called by all processes; all get the same result. */
CS_MUST_CHECK cs_status cs_count_cores(const cs_wire *wire, cs_core_count *count, cs_error *error);

#endif
