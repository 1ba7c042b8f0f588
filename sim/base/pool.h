/* Threads that work on points, and one thread, the caller's, that collects what they made.
 * Of sweeps, and of repeated runs. */
#ifndef CS_BASE_POOL_H
#define CS_BASE_POOL_H

#include "sim/base/error.h"
#include "sim/base/progress.h"

#include <cjson/cJSON.h>

/* What came of a point. The pool frees it after it was collected. */
typedef struct cs_pool_item {
    struct cs_pool_item *next;
    uint32_t point;
    cs_status status;
    cJSON *figures;  /* NULL where it failed */
    cs_error *error; /* for what calls say, empty at first; NULL when memory ran out */
    char *record;
} cs_pool_item;

typedef struct cs_pool {
    const char *what, *points_are; /* for people: "sweeping", "points" */
    /* Called by the workers, several at a time: fills the item, but for its error. What it calls looks at `progress`
     * and ends with CS_INTERRUPTED when the pool stops. */
    void (*work)(const void *context, uint32_t point, const cs_progress *progress,
                 cs_pool_item *item);
    const void *work_context;
    /* Called by the calling thread, for one item at a time, in the order in which they were done.
     */
    cs_status (*collect)(void *context, const cs_pool_item *item, cs_error *error);
    void *collect_context;
    const uint32_t *points;
    uint32_t n_points, jobs;
} cs_pool;

/* Returns when all points were collected, or when collecting failed or `progress` asked to stop:
 * then what is being worked on is dropped. */
CS_MUST_CHECK cs_status cs_pool_run(const cs_pool *pool, const cs_progress *progress,
                                    cs_error *error);

#endif
