/* Messages between the processes of a measurement or a replay: one process per device, started by
 * MPI.
 *
 * What processes tell each other travels by MPI. What devices send travels by their backend's own
 * carrier (NCCL, between GPUs), or by MPI: out of the device's memory when that is the host's, else
 * through the host's. A carrier starts its work behind the device's other work and does not wait for
 * it; MPI does.
 *
 * Every call is checked, with the call in the message. Sizes are what calib/costs.h says they are:
 * of all_gather all that is gathered, of all_to_all what each rank has for all.
 */
#ifndef CS_CALIB_WIRE_H
#define CS_CALIB_WIRE_H

#include "calib/bench/backend.h"

typedef struct cs_wire cs_wire;

/* What carries between the memories of devices. */
typedef struct cs_carrier {
    /* `fits` false, and nothing done: it cannot serve these processes, MPI has to. All call it. */
    CS_MUST_CHECK cs_status (*connect)(cs_wire *wire, bool *fits, cs_error *error);
    void (*disconnect)(cs_wire *wire);
    void (*library)(char *text, size_t size);
    CS_MUST_CHECK cs_status (*send)(cs_wire *wire, uint32_t to, const void *data, int64_t bytes,
                                    cs_error *error);
    CS_MUST_CHECK cs_status (*receive)(cs_wire *wire, uint32_t from, void *data, int64_t bytes,
                                       cs_error *error);
    CS_MUST_CHECK cs_status (*collective)(cs_wire *wire, cs_cost_collective collective,
                                          const void *from, void *to, int64_t bytes,
                                          cs_error *error);
} cs_carrier;

struct cs_wire {
    uint32_t rank, size;
    uint32_t place; /* rank among the processes of the machine: the number of its core, or GPU */
    bool alike;     /* all processes failed at once (cs_wire_agree) */
    /* behind cs_wire_connect: */
    const cs_backend *backend;
    cs_bench *bench;
    const cs_carrier *carrier; /* NULL: MPI */
    void *carried;             /* the carrier's own */
    void *host[2];             /* what MPI sends for a device with a memory of its own, and gets */
    int64_t room[2];           /* bytes of those */
};

/* ---- processes ---- */

/* What must be there once in a process, between all else. */
CS_MUST_CHECK cs_status cs_wire_open(cs_wire *wire, cs_error *error);
/* Ends the others as well when `failed`. */
void cs_wire_close(cs_wire *wire, bool failed);

CS_MUST_CHECK cs_status cs_wire_barrier(cs_error *error);
/* Largest value over all ranks, into all. */
CS_MUST_CHECK cs_status cs_wire_largest(double *values, uint32_t n, cs_error *error);
/* All call it with what a step came to, and get it back; when it failed for all of them, one message
 * is enough. */
CS_MUST_CHECK cs_status cs_wire_agree(cs_wire *wire, cs_status status, cs_error *error);
/* Bytes of rank 0's host memory into all. */
CS_MUST_CHECK cs_status cs_wire_tell(void *data, int64_t bytes, cs_error *error);

/* ---- devices ---- */

/* From here on data is that device's, which has to outlive the connection. */
CS_MUST_CHECK cs_status cs_wire_connect(cs_wire *wire, const cs_backend *backend, cs_bench *bench,
                                        cs_error *error);
void cs_wire_disconnect(cs_wire *wire); /* takes wires that are not connected */
/* What carries: "Open MPI v4.1.4", "NCCL 2.28.9"; returns `text`. */
char *cs_wire_library(const cs_wire *wire, char *text, size_t size);

/* By MPI these return when the other end has it, or it is on its way (short messages). */
CS_MUST_CHECK cs_status cs_wire_send(cs_wire *wire, uint32_t to, const void *data, int64_t bytes,
                                     cs_error *error);
CS_MUST_CHECK cs_status cs_wire_receive(cs_wire *wire, uint32_t from, void *data, int64_t bytes,
                                        cs_error *error);

/* Runs a collective over all ranks, of float32 sums where it reduces. Both buffers have room for
 * `bytes`, which is a multiple of 4, and of 4 * size where each rank has a share. An all-reduce may
 * be in place. */
CS_MUST_CHECK cs_status cs_wire_collective(cs_wire *wire, cs_cost_collective collective,
                                           const void *from, void *to, int64_t bytes,
                                           cs_error *error);

#endif
