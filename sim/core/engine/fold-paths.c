#include "sim/core/engine/fold-paths.h"

#include "topologies/route.h"

#include <math.h>
#include <stdlib.h>

cs_status cs_fold_paths_init(cs_fold_paths *paths, const cs_graph *graph,
                             const cs_platform *platform, cs_error *error)
{
    *paths =
        (cs_fold_paths){.platform = platform,
                        .way = malloc(((size_t)platform->longest_route + 1) * sizeof(*paths->way)),
                        .count = calloc((size_t)platform->n_links + 1, sizeof(*paths->count))};
    if (paths->way && paths->count && cs_fold_list_init(&paths->list, graph, error) == CS_OK)
        return CS_OK;
    cs_fold_paths_finish(paths);
    return cs_error_no_memory(error);
}

void cs_fold_paths_finish(cs_fold_paths *paths)
{
    cs_fold_list_finish(&paths->list);
    free(paths->way);
    free(paths->count);
    *paths = (cs_fold_paths){0};
}

/* Finds the links of message k, into `way`. */
static uint32_t find_way(cs_fold_paths *paths, cs_pair ends, uint32_t k)
{
    const uint32_t *first = paths->list.first, *devices = paths->list.devices;
    return paths->platform->route(paths->platform, devices[first[ends.source] + k],
                                  devices[first[ends.target] + k], paths->way);
}

static cs_pair message(const cs_fold_paths *paths, cs_pair ends, uint32_t k)
{
    const uint32_t *first = paths->list.first, *devices = paths->list.devices;
    return (cs_pair){devices[first[ends.source] + k], devices[first[ends.target] + k]};
}

static void count_all(cs_fold_paths *paths, cs_pair ends, bool clear)
{
    for (uint32_t k = 0; k < cs_fold_count(&paths->list, ends.source); k++)
        for (uint32_t i = find_way(paths, ends, k); i-- > 0;) {
            uint32_t *count = &paths->count[paths->way[i]];
            *count = clear ? 0 : *count + 1;
        }
}

/* Finds the longest time per byte on a link of a message, and its latency. */
static cs_status find_pace(cs_fold_paths *paths, cs_pair ends, double *byte_time, cs_time *latency,
                           cs_error *error)
{
    const cs_platform *platform = paths->platform;
    const bool shared = cs_links_are_contended(platform);
    cs_route route;
    CS_TRY(cs_route_find(platform, ends.source, ends.target, paths->way, &route, error));
    *latency = route.latency;
    *byte_time = 0;
    for (uint32_t i = 0; i < route.n; i++) {
        const double bandwidth = platform->links[paths->way[i]].bandwidth;
        const uint32_t n = shared && isfinite(bandwidth) ? paths->count[paths->way[i]] : 1;
        *byte_time = fmax(*byte_time, n / bandwidth);
    }
    return CS_OK;
}

cs_status cs_fold_paths_slowest(cs_fold_paths *paths, cs_pair ends, cs_pair *slowest,
                                cs_error *error)
{
    double most, byte_time;
    cs_time longest, latency;
    *slowest = ends;
    count_all(paths, ends, false);
    cs_status status = find_pace(paths, ends, &most, &longest, error);
    for (uint32_t k = 0; k < cs_fold_count(&paths->list, ends.source) && status == CS_OK; k++) {
        const cs_pair other = message(paths, ends, k);
        status = find_pace(paths, other, &byte_time, &latency, error);
        if (status != CS_OK || byte_time < most || (!(byte_time > most) && latency <= longest))
            continue;
        *slowest = other;
        most = byte_time;
        longest = latency;
    }
    count_all(paths, ends, true);
    return status;
}

void cs_fold_paths_weigh(cs_fold_paths *paths, cs_pair ends, const uint32_t *links, uint32_t n,
                         uint32_t *weights)
{
    count_all(paths, ends, false);
    for (uint32_t i = 0; i < n; i++)
        weights[i] = paths->count[links[i]];
    count_all(paths, ends, true);
}

bool cs_fold_paths_count(cs_fold_paths *paths, cs_pair ends, int64_t bytes, cs_link_record *links)
{
    const uint32_t n_messages = cs_fold_count(&paths->list, ends.source);
    for (uint32_t k = 0; k < n_messages; k++)
        for (uint32_t i = find_way(paths, ends, k); i-- > 0;) {
            int64_t *at = &links[paths->way[i]].bytes;
            if (__builtin_add_overflow(*at, bytes, at))
                return false;
        }
    return true;
}
