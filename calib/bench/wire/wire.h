/* Messages between the processes of a measurement or a replay: one process per device, started by
 * MPI on one or several machines (nodes).
 *
 * Processes exchange control data by MPI. Devices exchange data by the carrier of their backend
 * (NCCL, between GPUs), or else by MPI, through the host's memory if a device has its own. A
 * carrier starts its work after the device's other work and returns without waiting; MPI waits.
 *
 * Every call is checked, and the message of a failure names the call. Sizes are defined as in
 * calib/costs.h: for all_gather the bytes gathered in total, for all_to_all the bytes that each
 * rank sends to all ranks together.
 */
#ifndef CS_CALIB_WIRE_H
#define CS_CALIB_WIRE_H

#include "calib/bench/device/backend.h"

typedef struct cs_wire cs_wire;

/* Functions that send data between the memories of devices. */
typedef struct cs_carrier {
    /* Called by all processes. `fits` false: the carrier cannot serve these processes and has done
     * nothing, so MPI must. */
    CS_MUST_CHECK cs_status (*connect)(cs_wire *wire, bool *fits, cs_error *error);
    /* `failed`: does not wait, because other processes may have stopped; returns CS_OK. */
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
    int group;           /* communicator, as MPI_Comm_c2f returns it */
    bool alike;          /* whether all processes failed together (cs_wire_agree) */
    /* only for all processes, not for groups: */
    uint32_t *nodes; /* node of each rank, from 0 */
    uint32_t n_nodes;
    uint32_t place; /* position of this process on its node: the number of its core or GPU */
    bool pretended; /* nodes are simulated by the test variable of cs_wire_open */
    /* set by cs_wire_connect: */
    const cs_backend *backend;
    cs_bench *bench;
    const cs_carrier *carrier; /* NULL: MPI */
    void *carried;             /* state of the carrier */
    /* buffers for MPI if the device has its own memory: sent, received */
    void *host[2];
    int64_t room[2]; /* bytes of these buffers */
};

/* ---- processes ---- */

/* Starts MPI; once per process, before all other calls. A node is a set of processes that share
 * memory. To test several nodes on one machine, set $SIM_BENCH_RANKS_PER_NODE: each run of that
 * many ranks counts as a node. */
CS_MUST_CHECK cs_status cs_wire_open(cs_wire *wire, cs_error *error);
/* Stops MPI; if `failed`, also ends the other processes. */
void cs_wire_close(cs_wire *wire, bool failed);

/* Waits for all members of a wire. */
CS_MUST_CHECK cs_status cs_wire_barrier(const cs_wire *wire, cs_error *error);
/* Replaces each value by its maximum over all ranks. */
CS_MUST_CHECK cs_status cs_wire_largest(const cs_wire *wire, double *values, uint32_t n,
                                        cs_error *error);
/* Returns the status of a step after telling it to all; all processes call it. If the step failed
 * on all of them, one message is enough (`alike`). */
CS_MUST_CHECK cs_status cs_wire_agree(cs_wire *wire, cs_status status, cs_error *error);
/* Broadcasts bytes of rank 0's host memory. */
CS_MUST_CHECK cs_status cs_wire_tell(const cs_wire *wire, void *data, int64_t bytes,
                                     cs_error *error);

/* Connects some of the processes, in the same order and in the same way as all. All processes call
 * both functions; cs_wire_leave ends the group. */
CS_MUST_CHECK cs_status cs_wire_join(const cs_wire *all, const bool *members, cs_wire *group,
                                     cs_error *error);
CS_MUST_CHECK cs_status cs_wire_leave(cs_wire *group, cs_status status, cs_error *error);

/* ---- devices ---- */

/* Connects the devices. From now on, data is in the memory of this device, which must outlive the
 * connection. */
CS_MUST_CHECK cs_status cs_wire_connect(cs_wire *wire, const cs_backend *backend, cs_bench *bench,
                                        cs_error *error);
/* Accepts unconnected wires. Takes the status of the work so far and returns it, or else the
 * failure of disconnecting. */
CS_MUST_CHECK cs_status cs_wire_disconnect(cs_wire *wire, cs_status status, cs_error *error);
/* Writes the name of the library that sends, such as "Open MPI v4.1.4" or "NCCL 2.28.9"; returns
 * `text`. */
char *cs_wire_library(const cs_wire *wire, char *text, size_t size);

/* With MPI, these functions return when the peer has received the message or, for short messages,
 * when it is in flight. */
CS_MUST_CHECK cs_status cs_wire_send(cs_wire *wire, uint32_t to, const void *data, int64_t bytes,
                                     cs_error *error);
CS_MUST_CHECK cs_status cs_wire_receive(cs_wire *wire, uint32_t from, void *data, int64_t bytes,
                                        cs_error *error);

enum { CS_WIRE_WINDOW = 64 };

/* Sends or receives n messages, at most CS_WIRE_WINDOW, from or to n separate buffers; all at the
 * same time if both memories are the host's. Returns when they have completed. */
CS_MUST_CHECK cs_status cs_wire_window(cs_wire *wire, bool sends, uint32_t peer, void *const *data,
                                       uint32_t n, int64_t bytes, cs_error *error);

/* Runs a collective over all ranks; reductions are float32 sums. Both buffers have `bytes` bytes, a
 * multiple of 4, and of 4 * size if each rank has a share. An all-reduce may be in place. */
CS_MUST_CHECK cs_status cs_wire_collective(cs_wire *wire, cs_cost_collective collective,
                                           const void *from, void *to, int64_t bytes,
                                           cs_error *error);

/* ---- groups of processes ---- */

typedef struct cs_wire_group cs_wire_group;

/* Called by all members, in the same order if there are several groups. `ranks` are distinct. */
CS_MUST_CHECK cs_status cs_wire_group_open(const uint32_t *ranks, uint32_t n, cs_wire_group **group,
                                           cs_error *error);
void cs_wire_group_close(cs_wire_group *group); /* accepts NULL; before cs_wire_close */

/* Runs an all-reduce in place over a group (NULL: all processes), always by MPI. */
CS_MUST_CHECK cs_status cs_wire_sum(cs_wire *wire, const cs_wire_group *group, void *data,
                                    int64_t bytes, cs_error *error);
/* Like cs_wire_sum, with the maximum instead of the sum. */
CS_MUST_CHECK cs_status cs_wire_most(cs_wire *wire, const cs_wire_group *group, void *data,
                                     int64_t bytes, cs_error *error);

/* Parts of different sizes for the n members of a group, by MPI, in host memory. Counts are float32
 * numbers per member, in the order of the group.
 *   all_gather      `from` has the member's part, `to` receives all parts in order; counts[k]
 *                   belongs to member k. `from` may be in its place in `to`
 *   reduce_scatter  `from` has all parts, `to` receives the sum of the member's part; they may be
 *                   the same
 *   all_to_all      `from` has a part for each member (`counts`), `to` receives a part from each
 *                   (`got`) */
typedef struct cs_wire_parts {
    uint32_t n;
    const int64_t *counts, *got;
} cs_wire_parts;
CS_MUST_CHECK cs_status cs_wire_parts_move(cs_wire *wire, const cs_wire_group *group,
                                           cs_cost_collective collective,
                                           const cs_wire_parts *parts, const float *from, float *to,
                                           cs_error *error);

#endif
