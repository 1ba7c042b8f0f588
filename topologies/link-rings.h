/* Rings over direct links between GPUs: the NVLinks of a hybrid cube-mesh, Infinity Fabric and
 * similar, without switches.
 *
 * A ring uses one link of each GPU and runs at the bandwidth of its narrowest. NCCL and RCCL use
 * several rings at once, each in both directions, so that all links are busy (NVIDIA/nccl at
 * b6475625, src/graph/search.cc, ncclTopoCompute: the channels of a graph, which have the same
 * bandwidth). Here they are found as follows. Choose a share u of bandwidth, either a link's
 * bandwidth or half of one. A link of bandwidth b then has room for floor(b / u) rings in each
 * direction. Find as many rings (Hamiltonian cycles over the links) as there is room for; each is
 * used in both directions with an equal share of the bytes, and so gets u. Use the u with the
 * highest total, or the largest of equal ones.
 *
 * Using rings in both directions loses nothing if links are equally wide in both: replace each
 * one-way ring of bandwidth u by two opposite rings of u / 2. The total is at most half of the
 * bandwidth across any cut; the search goes down from this bound, widest links first, and gives up
 * a number of rings after a fixed number of steps. The result is thus optimal if it meets the bound
 * or if no larger number was given up. The order of the ranks determines every choice: the same
 * links give the same rings.
 */
#ifndef CS_TOPOLOGIES_LINK_RINGS_H
#define CS_TOPOLOGIES_LINK_RINGS_H

#include "topologies/platform.h"

enum {
    CS_LINK_RANKS_MIN = 3, /* with two ranks, one ring already uses both links */
    CS_LINK_RANKS_MAX = 16,
    CS_LINK_CYCLES_MAX = 32
};

typedef struct cs_link_rings {
    uint32_t n_ranks, n_cycles;
    uint32_t n_rings; /* twice the cycles: ring 2 k is cycle k, ring 2 k + 1 its reverse */
    double bandwidth; /* minimum per ring, bytes/s: u above */
    uint8_t cycles[CS_LINK_CYCLES_MAX][CS_LINK_RANKS_MAX]; /* ranks in order, starting with 0 */
} cs_link_rings;

/* Finds rings over n ranks. `widths` has n * n elements: at [i * n + k] the bytes/s of the link
 * from rank i to rank k, 0 if there is none; if the two directions differ, the narrower counts for
 * both. Returns false if there is no ring, or n is outside the limits above. */
bool cs_link_rings_find(uint32_t n, const double *widths, cs_link_rings *rings);

/* Caches rings by their links, because the groups of a mesh have the same links again and again. */
typedef struct cs_link_memory cs_link_memory;

/* NULL: no memory */
cs_link_memory *cs_link_memory_create(void);
void cs_link_memory_destroy(cs_link_memory *memory);

/* Finds the rings over the links between devices, without noise. They live as long as the memory;
 * NULL: none. CS_NO_MEMORY, CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_link_memory_find(cs_link_memory *memory, const cs_platform *platform,
                                            const uint32_t *devices, uint32_t n,
                                            const cs_link_rings **rings, cs_error *error);

/* Time of one step of all rings: each device sends an equal share of the bytes on each ring, which
 * takes latency + bytes / bandwidth. */
typedef struct cs_link_step {
    uint32_t rings;   /* 0: no rings, or the platform's GPUs have no direct links */
    cs_time latency;  /* latency of the slowest message */
    double bandwidth; /* total of all rings, each as slow as its slowest message, bytes/s */
    bool equal;       /* all messages have the same latency and none waits for another */
} cs_link_step;

/* Computes the step for rings over the given devices, without noise. CS_NO_MEMORY, CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_link_step_find(cs_link_memory *memory, const cs_platform *platform,
                                          const uint32_t *devices, uint32_t n, cs_link_step *step,
                                          cs_error *error);

#endif
