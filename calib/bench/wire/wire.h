/* Messages between the processes of a measurement or a replay: one process per device, started by
 * MPI on one machine (node) or several.
 *
 * What processes tell each other travels by MPI. What devices send travels by their backend's own
 * carrier (NCCL, between GPUs), or by MPI: out of the device's memory when that is the host's, else
 * through the host's. A carrier starts its work behind the device's other work and does not wait
 * for it; MPI does.
 *
 * Every call is checked, with the call in the message. Sizes are what calib/costs.h says they are:
 * of all_gather all that is gathered, of all_to_all what each rank has for all.
 */
#ifndef CS_CALIB_WIRE_H
#define CS_CALIB_WIRE_H

#include "calib/bench/device/backend.h"

typedef struct cs_wire cs_wire;

/* What carries between the memories of devices. */
typedef struct cs_carrier {
    /* `fits` false, and nothing done: it cannot serve these processes, MPI has to. All call it. */
    CS_MUST_CHECK cs_status (*connect)(cs_wire *wire, bool *fits, cs_error *error);
    /* `failed`: without waiting for what others might not do any more; CS_OK then. */
    CS_MUST_CHECK cs_status (*disconnect)(cs_wire *wire, bool failed, cs_error *error);
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
    uint32_t rank, size; /* size 0: a group without this process */
    int group;           /* the communicator, as MPI_Comm_c2f has it */
    bool alike;          /* all processes failed at once (cs_wire_agree) */
    /* of all processes, not of groups: */
    uint32_t *nodes; /* per rank: which node it is on, from 0 */
    uint32_t n_nodes;
    uint32_t place; /* this process among those of its node: the number of its core, or GPU */
    bool pretended; /* nodes are not real: see cs_wire_open */
    /* behind cs_wire_connect: */
    const cs_backend *backend;
    cs_bench *bench;
    const cs_carrier *carrier; /* NULL: MPI */
    void *carried;             /* the carrier's own */
    void *host[2];             /* what MPI sends for a device with a memory of its own, and gets */
    int64_t room[2];           /* bytes of those */
};

/* ---- processes ---- */

/* What must be there once in a process, between all else. A node is what shares memory; for tests
 * of several nodes on one, $SIM_BENCH_RANKS_PER_NODE ranks in a row are taken for one. */
CS_MUST_CHECK cs_status cs_wire_open(cs_wire *wire, cs_error *error);
/* Ends the others as well when `failed`. */
void cs_wire_close(cs_wire *wire, bool failed);

/* Of the members of a wire; all of them call it. */
CS_MUST_CHECK cs_status cs_wire_barrier(const cs_wire *wire, cs_error *error);
/* Largest value over all ranks, into all. */
CS_MUST_CHECK cs_status cs_wire_largest(const cs_wire *wire, double *values, uint32_t n,
                                        cs_error *error);
/* All call it with what a step came to, and get it back; when it failed for all of them, one
 * message is enough. */
CS_MUST_CHECK cs_status cs_wire_agree(cs_wire *wire, cs_status status, cs_error *error);
/* Bytes of rank 0's host memory into all. */
CS_MUST_CHECK cs_status cs_wire_tell(const cs_wire *wire, void *data, int64_t bytes,
                                     cs_error *error);

/* Some of the processes, ranked as before, connected as all of them are. All call it, and end it
 * all by cs_wire_leave. */
CS_MUST_CHECK cs_status cs_wire_join(const cs_wire *all, const bool *members, cs_wire *group,
                                     cs_error *error);
CS_MUST_CHECK cs_status cs_wire_leave(cs_wire *group, cs_status status, cs_error *error);

/* ---- devices ---- */

/* From here on data is that device's, which has to outlive the connection. */
CS_MUST_CHECK cs_status cs_wire_connect(cs_wire *wire, const cs_backend *backend, cs_bench *bench,
                                        cs_error *error);
/* Takes wires that are not connected, and what was done with them came to; returns it, or what went
 * wrong in the end. */
CS_MUST_CHECK cs_status cs_wire_disconnect(cs_wire *wire, cs_status status, cs_error *error);
/* What carries: "Open MPI v4.1.4", "NCCL 2.28.9"; returns `text`. */
char *cs_wire_library(const cs_wire *wire, char *text, size_t size);

/* By MPI these return when the other end has it, or it is on its way (short messages). */
CS_MUST_CHECK cs_status cs_wire_send(cs_wire *wire, uint32_t to, const void *data, int64_t bytes,
                                     cs_error *error);
CS_MUST_CHECK cs_status cs_wire_receive(cs_wire *wire, uint32_t from, void *data, int64_t bytes,
                                        cs_error *error);

enum { CS_WIRE_WINDOW = 64 };

/* n messages, CS_WIRE_WINDOW at most, from or to as many places, which are apart: all under way at
 * once where both memories are the host's. Returns when they are through. */
CS_MUST_CHECK cs_status cs_wire_window(cs_wire *wire, bool sends, uint32_t peer, void *const *data,
                                       uint32_t n, int64_t bytes, cs_error *error);

/* Runs a collective over all ranks, of float32 sums where it reduces. Both buffers have room for
 * `bytes`, which is a multiple of 4, and of 4 * size where each rank has a share. An all-reduce may
 * be in place. */
CS_MUST_CHECK cs_status cs_wire_collective(cs_wire *wire, cs_cost_collective collective,
                                           const void *from, void *to, int64_t bytes,
                                           cs_error *error);

/* ---- some of the processes ---- */

typedef struct cs_wire_group cs_wire_group;

/* The members call it, and for several groups in the same order. `ranks` are all different. */
CS_MUST_CHECK cs_status cs_wire_group_open(const uint32_t *ranks, uint32_t n, cs_wire_group **group,
                                           cs_error *error);
void cs_wire_group_close(cs_wire_group *group); /* takes NULL; before cs_wire_close */

/* An all-reduce in place over a group, by MPI whatever the carrier; NULL: over all processes. */
CS_MUST_CHECK cs_status cs_wire_sum(cs_wire *wire, const cs_wire_group *group, void *data,
                                    int64_t bytes, cs_error *error);
/* The largest of each value instead of the sum. */
CS_MUST_CHECK cs_status cs_wire_most(cs_wire *wire, const cs_wire_group *group, void *data,
                                     int64_t bytes, cs_error *error);

/* Parts of unequal size among n members of a group, by MPI, between memories of the host. Counts
 * are of float32 per member, in the order of the group.
 *   all_gather      `from` has the member's part, `to` gets all, one behind the other; counts[k] is
 *                   that of member k. `from` is `to` where the part is at its place there
 *   reduce_scatter  `from` has all parts, `to` gets the sum of the member's; they may be the same
 *   all_to_all      `from` has a part for each (`counts`), `to` gets one of each (`got`) */
typedef struct cs_wire_parts {
    uint32_t n;
    const int64_t *counts, *got;
} cs_wire_parts;
CS_MUST_CHECK cs_status cs_wire_parts_move(cs_wire *wire, const cs_wire_group *group,
                                           cs_cost_collective collective,
                                           const cs_wire_parts *parts, const float *from, float *to,
                                           cs_error *error);

#endif
