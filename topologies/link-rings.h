/* Rings over the links that GPUs have to each other: NVLinks of a hybrid cube-mesh, Infinity Fabric
 * and the like, without a switch in between.
 *
 * One ring takes one link of each GPU and goes at the speed of its narrowest. NCCL and RCCL lay
 * several at once, each both ways, so that all links carry something (NVIDIA/nccl at b6475625,
 * src/graph/search.cc, ncclTopoCompute: the channels of a graph, which have the same bandwidth).
 * Here they are found as follows. A share u of bandwidth is chosen: that of some link, or a half of
 * it. A link of bandwidth b then has room for floor(b / u) rings each way. Wanted are as many
 * rings, Hamiltonian cycles over the links, as there is room for; each is passed both ways with an
 * equal share of the bytes, and so gets u. Of all u that which gives the most in all is taken, of
 * equal ones the largest.
 *
 * That rings are passed both ways costs nothing where links are as wide both ways: of rings that go
 * one way, each with u, take a half of each and turn the other half around. No set has more than
 * half of what the links across some cut carry; the search tries from there on downwards, widest
 * links first, and gives up a number after a fixed count of steps, so that what is found is the
 * most wherever it meets that bound, or where no larger number was given up. Everything is done in
 * the order of the ranks: the same links give the same rings.
 */
#ifndef CS_TOPOLOGIES_LINK_RINGS_H
#define CS_TOPOLOGIES_LINK_RINGS_H

#include "topologies/platform.h"

enum {
    CS_LINK_RANKS_MIN = 3, /* of two ranks one ring uses both links already */
    CS_LINK_RANKS_MAX = 16,
    CS_LINK_CYCLES_MAX = 32
};

typedef struct cs_link_rings {
    uint32_t n_ranks, n_cycles;
    uint32_t n_rings; /* twice the cycles: ring 2 k is cycle k, ring 2 k + 1 the same backwards */
    double bandwidth; /* that each ring has at least, bytes/s: u above */
    uint8_t cycles[CS_LINK_CYCLES_MAX][CS_LINK_RANKS_MAX]; /* ranks in order, from 0 on */
} cs_link_rings;

/* Over n ranks. `widths` has n * n elements: bytes/s of the link from rank i to rank k at [i * n +
 * k], 0 where there is none; of two ways that differ, the narrower counts for both. False where
 * there is no ring, or n is not between the limits above. */
bool cs_link_rings_find(uint32_t n, const double *widths, cs_link_rings *rings);

/* Remembers rings by the links they are over: groups of a mesh have the same again and again. */
typedef struct cs_link_memory cs_link_memory;

/* NULL when memory runs out. */
cs_link_memory *cs_link_memory_create(void);
void cs_link_memory_destroy(cs_link_memory *memory);

/* The rings over the links from device to device, which live as long as the memory; NULL where
 * there are none. Links are those without noise. CS_NO_MEMORY, CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_link_memory_find(cs_link_memory *memory, const cs_platform *platform,
                                            const uint32_t *devices, uint32_t n,
                                            const cs_link_rings **rings, cs_error *error);

/* What all rings take for a step, in which each device sends an equal share of the bytes on each of
 * them: latency + bytes / bandwidth. */
typedef struct cs_link_step {
    uint32_t rings;   /* 0: there are none, or the platform's GPUs have no links to each other */
    cs_time latency;  /* of the slowest message */
    double bandwidth; /* of all rings, where each is as slow as the slowest of their messages */
    bool equal;       /* no message has less latency, and none waits for another one */
} cs_link_step;

/* Of rings over the given devices, of a platform without noise. CS_NO_MEMORY, CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_link_step_find(cs_link_memory *memory, const cs_platform *platform,
                                          const uint32_t *devices, uint32_t n, cs_link_step *step,
                                          cs_error *error);

#endif
