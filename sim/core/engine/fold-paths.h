/* Links of the messages that a transfer of a folded graph represents. Internal to sim/core/engine.
 */
#ifndef CS_ENGINE_FOLD_PATHS_H
#define CS_ENGINE_FOLD_PATHS_H

#include "sim/core/graph/fold-list.h"
#include "sim/core/trace/trace.h"
#include "topologies/noise.h"

typedef struct cs_fold_paths {
    const cs_platform *platform;
    cs_fold_list list;
    uint32_t *way;   /* room for a route */
    uint32_t *count; /* per link: 0 between calls */
} cs_fold_paths;

/* CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_fold_paths_init(cs_fold_paths *paths, const cs_graph *graph,
                                           const cs_platform *platform, cs_error *error);

/* Zeroed ones can be finished. */
void cs_fold_paths_finish(cs_fold_paths *paths);

/* Finds the ends of the slowest message that a message represents: the most time per byte, with the
 * links shared by all of these messages; then the longest latency. The message itself is preferred
 * if it is one of the slowest. CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_fold_paths_slowest(cs_fold_paths *paths, cs_pair ends, cs_pair *slowest,
                                              cs_error *error);

/* Counts, per link of the list, the represented messages that take it. */
void cs_fold_paths_weigh(cs_fold_paths *paths, cs_pair ends, const uint32_t *links, uint32_t n,
                         uint32_t *weights);

/* Adds bytes to the links of each of these messages. False if they do not fit. */
CS_MUST_CHECK bool cs_fold_paths_count(cs_fold_paths *paths, cs_pair ends, int64_t bytes,
                                       cs_link_record *links);

#endif
