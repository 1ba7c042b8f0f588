/* Threads that work on points, and one thread, the caller's, that collects what they made.
 * Of sweeps, searches, predictions and repeated runs. Processes on several machines share a pool's
 * points through sim/study/team. */
#ifndef CS_BASE_POOL_H
#define CS_BASE_POOL_H

#include "sim/base/error.h"
#include "sim/base/progress.h"

#include <cjson/cJSON.h>

/* What came of a point: all of it, as the point may have been worked on by another process. The
 * pool frees it after it was collected. */
typedef struct cs_pool_item {
    struct cs_pool_item *next;
    uint32_t point;
    cs_status status;
    cs_error *error; /* for what calls say, empty at first; NULL when memory ran out */
    cJSON *figures;  /* as JSON has them: NaN is null; or NULL */
    char *record;    /* a text, or NULL */
    void *value;     /* so many bytes without pointers, or NULL */
    size_t value_bytes;
} cs_pool_item;

typedef struct cs_pool {
    const char *what, *points_are; /* for people: "sweeping", "points" */
    /* Called by the workers, several at a time: fills the item, but for its error. What it calls
     * looks at `progress` and ends with CS_INTERRUPTED when the pool stops. */
    void (*work)(const void *context, uint32_t point, const cs_progress *progress,
                 cs_pool_item *item);
    const void *work_context;
    /* Called by the calling thread, for one item at a time, in the order in which they were done.
     */
    cs_status (*collect)(void *context, const cs_pool_item *item, cs_error *error);
    void *collect_context;
    /* How much work a point is, roughly, in any unit: the largest are begun first, so that none is
     * left alone at the end. NULL: they are begun in the order of `points`. */
    double (*cost)(const void *context, uint32_t point);
    const uint32_t *points;
    uint32_t n_points, jobs;
} cs_pool;

/* Returns when all points were collected, or when collecting failed or `progress` asked to stop:
 * then what is being worked on is dropped. */
CS_MUST_CHECK cs_status cs_pool_run(const cs_pool *pool, const cs_progress *progress,
                                    cs_error *error);

/* ---- its threads, for who hands out points bit by bit ---- */

typedef struct cs_crew cs_crew;

/* `pool->points` in the order in which they are to be begun, for the caller to free. */
CS_MUST_CHECK cs_status cs_pool_order(const cs_pool *pool, uint32_t **points, cs_error *error);

/* How much of a pool is done: by its points' cost, which tells better than their number how long
 * the rest will take. */
typedef struct cs_pool_gauge {
    const cs_pool *pool;
    double done, all; /* cost */
    uint32_t n;       /* points that are done */
} cs_pool_gauge;

void cs_pool_gauge_init(cs_pool_gauge *gauge, const cs_pool *pool);
void cs_pool_gauge_add(cs_pool_gauge *gauge, uint32_t point);
bool cs_pool_gauge_step(const cs_pool_gauge *gauge, const cs_progress *progress);

/* Starts pool->jobs threads, or as many as there can be, which wait for points; the pool's own
 * points, `collect` and `cost` are not looked at. */
CS_MUST_CHECK cs_status cs_crew_start(const cs_pool *pool, cs_crew **crew, cs_error *error);

/* Hands it more points. */
CS_MUST_CHECK cs_status cs_crew_put(cs_crew *crew, const uint32_t *points, uint32_t n,
                                    cs_error *error);

/* Waits up to so many ns for items, and returns the list of those that are done, each for the
 * caller to free; NULL: none. CS_NO_MEMORY when a thread lost a point. */
CS_MUST_CHECK cs_status cs_crew_wait(cs_crew *crew, long ns, cs_pool_item **items, cs_error *error);

/* Drops what is not done, and waits for the threads to end. Accepts NULL. */
void cs_crew_destroy(cs_crew *crew);

cs_pool_item *cs_pool_item_create(uint32_t point); /* zeroed; NULL when memory runs out */
void cs_pool_item_destroy(cs_pool_item *item);

#endif
