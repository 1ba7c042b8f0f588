/* Worker threads that process points, and the calling thread, which collects the results. Used
 * for sweeps, searches, predictions and repeated runs. sim/study/team shares a pool's points among
 * processes. */
#ifndef CS_BASE_POOL_H
#define CS_BASE_POOL_H

#include "sim/base/error.h"
#include "sim/base/progress.h"

#include <cjson/cJSON.h>

/* Complete result of a point, which another process may have computed. The pool frees it after it
 * was collected. */
typedef struct cs_pool_item {
    struct cs_pool_item *next;
    uint32_t point;
    cs_status status;
    cs_error *error; /* messages of the work, initially empty; NULL: no memory */
    cJSON *figures;  /* as in JSON: NaN is null; or NULL */
    char *record;    /* text, or NULL */
    void *value;     /* value_bytes bytes without pointers, or NULL */
    size_t value_bytes;
} cs_pool_item;

typedef struct cs_pool {
    const char *what, *points_are; /* for messages: "sweeping", "points" */
    /* Processes a point in a worker and fills the item, except its error. Long work steps
     * `progress` and ends with CS_INTERRUPTED when the pool stops. */
    void (*work)(const void *context, uint32_t point, const cs_progress *progress,
                 cs_pool_item *item);
    const void *work_context;
    /* Called in the calling thread, for one item at a time, in order of completion. */
    cs_status (*collect)(void *context, const cs_pool_item *item, cs_error *error);
    void *collect_context;
    /* Relative cost of a point, in any unit. Large points start first, so that none is left running
     * alone at the end. NULL: points start in the order of `points`. */
    double (*cost)(const void *context, uint32_t point);
    const uint32_t *points;
    uint32_t n_points, jobs;
} cs_pool;

/* Runs the pool until all points were collected, collecting failed, or `progress` asked to stop;
 * unfinished points are then dropped. */
CS_MUST_CHECK cs_status cs_pool_run(const cs_pool *pool, const cs_progress *progress,
                                    cs_error *error);

/* ---- a pool's threads, for callers that hand out points step by step ---- */

typedef struct cs_crew cs_crew;

/* Returns `pool->points` in starting order; the caller frees it. */
CS_MUST_CHECK cs_status cs_pool_order(const cs_pool *pool, uint32_t **points, cs_error *error);

/* Progress of a pool by the cost of its points, which predicts the remaining time better than their
 * number. */
typedef struct cs_pool_gauge {
    const cs_pool *pool;
    double done, all; /* cost units */
    uint32_t n;       /* finished points */
} cs_pool_gauge;

void cs_pool_gauge_init(cs_pool_gauge *gauge, const cs_pool *pool);
void cs_pool_gauge_add(cs_pool_gauge *gauge, uint32_t point);
bool cs_pool_gauge_step(const cs_pool_gauge *gauge, const cs_progress *progress);

/* Starts pool->jobs threads, or as many as possible, which wait for points. Ignores the pool's own
 * points, `collect` and `cost`. */
CS_MUST_CHECK cs_status cs_crew_start(const cs_pool *pool, cs_crew **crew, cs_error *error);

/* Adds points for the threads. */
CS_MUST_CHECK cs_status cs_crew_put(cs_crew *crew, const uint32_t *points, uint32_t n,
                                    cs_error *error);

/* Waits up to `ns` nanoseconds and returns the list of finished items, each for the caller to free;
 * NULL: none. CS_NO_MEMORY: a thread lost a point. */
CS_MUST_CHECK cs_status cs_crew_wait(cs_crew *crew, long ns, cs_pool_item **items, cs_error *error);

/* Drops unfinished points and waits for the threads to end. Accepts NULL. */
void cs_crew_destroy(cs_crew *crew);

cs_pool_item *cs_pool_item_create(uint32_t point); /* zeroed; NULL: no memory */
void cs_pool_item_destroy(cs_pool_item *item);

#endif
