/* General fat trees (parallel-port generalised fat trees, PGFT; Zahavi, "Fat-tree routing and node
 * ordering providing contention free traffic for MPI global collectives", JPDC 72(11), 2012).
 *
 * Level 0 are the hosts. A switch of level l has m[l] children; a host or switch of level l - 1 has
 * w[l] parents and p[l] parallel links to each of them (w[1] = p[1] = 1: a host has one link). With
 * M(l) = m[1] * ... * m[l] and W(l) = w[1] * ... * w[l], the hosts form subtrees of M(l)
 * neighbours, each with W(l) switches of level l above it. Switch (t, c) in subtree t and column c
 * has the parents (t / m[l+1], c + W(l) * q), q < w[l+1].
 *
 * A route goes up until source and target share a subtree, and then down. There is a choice only on
 * the way up, and between parallel links:
 *   dmodk  port (target / W(l)) mod (w[l+1] * p[l+1]): messages to one target share a path,
 *          messages to neighbouring targets are spread
 *   ecmp   a hash of source, target, level and seed: each pair keeps its path; pairs collide by
 *          chance, as with switches that hash packet headers
 * Only as many subtrees are built as the hosts need.
 */
#ifndef CS_TOPOLOGIES_FAT_TREE_H
#define CS_TOPOLOGIES_FAT_TREE_H

#include "sim/base/json.h"
#include "topologies/platform.h"

enum { CS_FAT_TREE_LEVELS = 3 };

typedef enum cs_fat_tree_routing { CS_FAT_TREE_DMODK, CS_FAT_TREE_ECMP } cs_fat_tree_routing;

/* Arrays are indexed by level, from 1; [0] is unused. */
typedef struct cs_fat_tree_shape {
    const char *topology; /* for messages */
    uint32_t levels;      /* 2 to CS_FAT_TREE_LEVELS */
    uint32_t m[CS_FAT_TREE_LEVELS + 1], w[CS_FAT_TREE_LEVELS + 1], p[CS_FAT_TREE_LEVELS + 1];
    /* bandwidth of a link below level l, one way, bytes/s */
    double bandwidth[CS_FAT_TREE_LEVELS + 1];
    cs_time latency[CS_FAT_TREE_LEVELS + 1]; /* latency of such a link */
    uint32_t rails; /* host h is on rail h % rails, and each rail has its own leaves; 1: no rails */
    cs_fat_tree_routing routing;
    uint32_t seed; /* for ecmp */
} cs_fat_tree_shape;

CS_MUST_CHECK cs_status cs_fat_tree_build(const cs_fat_tree_shape *shape, uint32_t n_hosts,
                                          cs_platform *platform, cs_error *error);

/* Warns of a "seed" other than 1 if the routing does not use a hash. */
void cs_fat_tree_warn_of_seed(cs_fat_tree_routing routing, uint32_t seed,
                              const cs_json_place *place);

/* Splits the ports of a switch so that `down` is `ratio` times `up` (the oversubscription) and as
 * many ports as possible are used. CS_INVALID if that is impossible. */
CS_MUST_CHECK cs_status cs_fat_tree_split(const char *topology, uint32_t radix, double ratio,
                                          uint32_t *down, uint32_t *up, cs_error *error);

#endif
