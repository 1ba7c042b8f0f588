#include "sim/engine/fold-paths.h"

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

/* The k-th of the messages: its links into `way`. */
static uint32_t find_way(cs_fold_paths *paths, cs_pair ends, uint32_t k)
{
    const uint32_t *first = paths->list.first, *devices = paths->list.devices;
    return paths->platform->route(paths->platform, devices[first[ends.source] + k],
                                  devices[first[ends.target] + k], paths->way);
}

void cs_fold_paths_weigh(cs_fold_paths *paths, cs_pair ends, const uint32_t *links, uint32_t n,
                         uint32_t *weights)
{
    const uint32_t n_messages = cs_fold_count(&paths->list, ends.source);
    for (uint32_t k = 0; k < n_messages; k++)
        for (uint32_t i = find_way(paths, ends, k); i-- > 0;)
            paths->count[paths->way[i]]++;
    for (uint32_t i = 0; i < n; i++)
        weights[i] = paths->count[links[i]];
    for (uint32_t k = 0; k < n_messages; k++)
        for (uint32_t i = find_way(paths, ends, k); i-- > 0;)
            paths->count[paths->way[i]] = 0;
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
