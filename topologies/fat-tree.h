/* Fat trees in general (parallel-port generalised fat trees, PGFT; Zahavi, "Fat-tree routing and
 * node ordering providing contention free traffic for MPI global collectives", JPDC 72(11), 2012).
 *
 * Level 0 are the hosts. A switch of level l has m[l] children; a host or switch of level l - 1 has
 * w[l] parents and p[l] parallel links to each of them (w[1] = p[1] = 1: a host has one link).
 * With M(l) = m[1] * ... * m[l] and W(l) = w[1] * ... * w[l], the hosts fall into subtrees of M(l)
 * neighbours, and above each subtree stand W(l) switches of level l. Switch (t, c), subtree t,
 * column c, has the parents (t / m[l+1], c + W(l) * q), q < w[l+1].
 *
 * A route goes up to the lowest level at which source and target are in one subtree, and then down.
 * Only the way up is a choice, and which of parallel links to take:
 *   dmodk  port (target / W(l)) mod (w[l+1] * p[l+1]): what goes to one target comes together, what
 *          goes to neighbouring targets is spread
 *   ecmp   a hash of source, target, level and seed: each pair keeps its way, pairs collide by
 *          chance, as with switches that hash packet headers
 * Only as many subtrees are built as the hosts need.
 */
#ifndef CS_TOPOLOGIES_FAT_TREE_H
#define CS_TOPOLOGIES_FAT_TREE_H

#include "sim/base/json.h"
#include "topologies/platform.h"

enum { CS_FAT_TREE_LEVELS = 3 };

typedef enum cs_fat_tree_routing { CS_FAT_TREE_DMODK, CS_FAT_TREE_ECMP } cs_fat_tree_routing;

/* Arrays by level from 1 on; [0] is not used. */
typedef struct cs_fat_tree_shape {
    const char *topology; /* for messages */
    uint32_t levels;      /* 2 to CS_FAT_TREE_LEVELS */
    uint32_t m[CS_FAT_TREE_LEVELS + 1], w[CS_FAT_TREE_LEVELS + 1], p[CS_FAT_TREE_LEVELS + 1];
    double bandwidth[CS_FAT_TREE_LEVELS + 1]; /* of a link below level l, one way */
    cs_time latency[CS_FAT_TREE_LEVELS + 1];  /* of such a link */
    uint32_t rails; /* host h is on rail h % rails, and each rail has leaves of its own; 1: none */
    cs_fat_tree_routing routing;
    uint32_t seed; /* of ecmp */
} cs_fat_tree_shape;

CS_MUST_CHECK cs_status cs_fat_tree_build(const cs_fat_tree_shape *shape, uint32_t n_hosts,
                                          cs_platform *platform, cs_error *error);

/* The warning of a `seed` other than 1 where no hash is computed. */
void cs_fat_tree_warn_of_seed(cs_fat_tree_routing routing, uint32_t seed,
                              const cs_json_place *place);

/* Divides the ports of a switch into those down and up, so that down is `ratio` times up (an
 * oversubscription of `ratio`) and as many as can be are used. CS_INVALID when there is no way. */
CS_MUST_CHECK cs_status cs_fat_tree_split(const char *topology, uint32_t radix, double ratio,
                                          uint32_t *down, uint32_t *up, cs_error *error);

/* Warns of a "seed" other than 1 where no hash is computed. `routing` is the position in
 * {"dmodk", "ecmp"}. */
void cs_fat_tree_warn_of_seed(uint32_t routing, uint32_t seed, const cs_json_place *place);

#endif
