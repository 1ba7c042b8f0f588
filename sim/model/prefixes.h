/* Where a network can be cut: its prefixes.
 *
 * A prefix is a set of nodes that also contains every node which its nodes read: the nodes that the
 * devices before a cut compute. If prefix i lies within prefix k, the work between a cut after i
 * and a cut after k is the difference of their sums. In a chain, prefix i is the layers [0, i + 1).
 * A network with branches has more prefixes than nodes, and not every prefix lies within the next.
 * They are ordered so that each prefix comes before those that contain it; the whole network is
 * last. (PipeDream calls them states, and represents each by its last nodes, an antichain.)
 */
#ifndef CS_WORKLOAD_PREFIXES_H
#define CS_WORKLOAD_PREFIXES_H

#include "sim/base/arena.h"
#include "sim/base/time.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct cs_prefix {
    cs_time time; /* time of forward and backward of all its nodes */
    int64_t weight_bytes;
    int64_t activation_bytes; /* bytes that its nodes make */
    /* part of activation_bytes that nodes outside read, or no node reads */
    int64_t crossing_bytes;
} cs_prefix;

typedef struct cs_prefixes {
    uint32_t n;
    cs_prefix *all;
    uint32_t n_words;
    /* n_words per prefix, a bit per node; NULL: a chain, where each prefix lies within the next */
    uint64_t *sets;
    uint32_t n_nodes;
    const char **names; /* names of the nodes, by their bits; NULL: a chain */
    cs_arena arena;     /* owns the arrays */
} cs_prefixes;

/* Frees the prefixes; allowed on a zeroed struct. */
static inline void cs_prefixes_finish(cs_prefixes *prefixes)
{
    cs_arena_finish(&prefixes->arena);
    *prefixes = (cs_prefixes){0};
}

/* Whether prefix i lies within another prefix k. */
static inline bool cs_prefixes_within(const cs_prefixes *prefixes, uint32_t i, uint32_t k)
{
    bool within = i < k;
    for (uint32_t w = 0; within && prefixes->sets && w < prefixes->n_words; w++)
        within = (prefixes->sets[(size_t)i * prefixes->n_words + w] &
                  ~prefixes->sets[(size_t)k * prefixes->n_words + w]) == 0;
    return within;
}

#endif
