/* Messages between the processes of a measurement or a replay, by MPI: one process per device.
 *
 * Every call is checked, with the call in the message. Sizes are what calib/costs.h says they are:
 * of all_gather all that is gathered, of all_to_all what each rank has for all.
 */
#ifndef CS_CALIB_WIRE_H
#define CS_CALIB_WIRE_H

#include "calib/costs.h"

typedef struct cs_wire {
    uint32_t rank, size;
} cs_wire;

/* What must be there once in a process, between all else. */
CS_MUST_CHECK cs_status cs_wire_open(cs_wire *wire, cs_error *error);
/* Ends the others as well when `failed`. */
void cs_wire_close(cs_wire *wire, bool failed);
/* "Open MPI 4.1.4"; returns `text`. */
char *cs_wire_library(char *text, size_t size);

CS_MUST_CHECK cs_status cs_wire_barrier(cs_error *error);
/* Blocking: returns when the other end has it, or it is on its way (short messages). */
CS_MUST_CHECK cs_status cs_wire_send(uint32_t to, const void *data, int64_t bytes, cs_error *error);
CS_MUST_CHECK cs_status cs_wire_receive(uint32_t from, void *data, int64_t bytes, cs_error *error);

/* Largest value over all ranks, into all. */
CS_MUST_CHECK cs_status cs_wire_largest(double *values, uint32_t n, cs_error *error);

/* Runs a collective over all ranks, of float32 sums where it reduces. Both buffers have room for
 * `bytes`, which is a multiple of 4, and of 4 * size where each rank has a share. An all-reduce may
 * be in place. */
CS_MUST_CHECK cs_status cs_wire_collective(cs_cost_collective collective, const cs_wire *wire,
                                           void *from, void *to, int64_t bytes, cs_error *error);

/* Bytes of every rank, one after the other, at rank 0: `sizes` are known to all. */
CS_MUST_CHECK cs_status cs_wire_collect(const cs_wire *wire, const void *own, const int64_t *sizes,
                                        void *all, cs_error *error);

#endif
