/* On how many cores processes of several machines compute. */
#ifndef CS_CALIB_CORE_COUNT_H
#define CS_CALIB_CORE_COUNT_H

#include "calib/bench/wire/wire.h"

typedef struct cs_core_count {
    uint32_t cores;   /* of all machines; 0: some process is not bound to one */
    uint32_t sharing; /* processes on a core that another one is bound to as well */
} cs_core_count;

/* All processes call it, and get the same. */
CS_MUST_CHECK cs_status cs_count_cores(const cs_wire *wire, cs_core_count *count, cs_error *error);

#endif
