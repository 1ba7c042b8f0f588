#include "sim/base/pool.h"

#include "sim/base/number.h"
#include "sim/base/vector.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STACK_BYTES = 8 << 20 };

static const long tick = 100000000; /* ns between steps of progress */

/* State shared by the threads. */
struct cs_crew {
    const cs_pool *pool;
    uint32_t n_threads;
    pthread_t *threads;
    atomic_bool stop;
    pthread_mutex_t mutex; /* protects the members below */
    pthread_cond_t given, changed;
    uint32_t *points, n_points, capacity, next; /* points[next ...] have not been started */
    bool closed;                                /* no more points will come */
    bool lost;                                  /* a point was lost because memory ran out */
    cs_pool_item *first, *last;                 /* finished, not yet taken */
    uint32_t running;
};

cs_pool_item *cs_pool_item_create(uint32_t point)
{
    cs_pool_item *item = calloc(1, sizeof(*item));
    if (item)
        item->point = point;
    return item;
}

void cs_pool_item_destroy(cs_pool_item *item)
{
    cJSON_Delete(item->figures);
    free(item->error);
    free(item->record);
    free(item->value);
    free(item);
}

/* ---- workers ---- */

static bool goes_on(void *context, const char *what, uint64_t done, uint64_t total)
{
    (void)what, (void)done, (void)total;
    cs_crew *crew = context;
    return !atomic_load(&crew->stop);
}

/* Waits for a point. Returns false if there will be no more. */
static bool next_point(cs_crew *crew, uint32_t *point)
{
    pthread_mutex_lock(&crew->mutex);
    while (crew->next == crew->n_points && !crew->closed)
        pthread_cond_wait(&crew->given, &crew->mutex);
    const bool found = crew->next < crew->n_points && !atomic_load(&crew->stop);
    if (found)
        *point = crew->points[crew->next++];
    pthread_mutex_unlock(&crew->mutex);
    return found;
}

static void *worker(void *context)
{
    cs_crew *crew = context;
    const cs_progress progress = {goes_on, crew};
    /* threads inherit the program's locale */
    const cs_number_locale locale = cs_number_locale_enter();
    uint32_t point;
    bool lost = false;
    while (next_point(crew, &point)) {
        cs_pool_item *item = cs_pool_item_create(point);
        lost = !item;
        if (lost)
            break;
        item->error = malloc(sizeof(*item->error));
        item->status = item->error ? CS_OK : CS_NO_MEMORY;
        if (item->error) {
            cs_error_init(item->error);
            crew->pool->work(crew->pool->work_context, item->point, &progress, item);
        }
        if (item->status == CS_INTERRUPTED)
            cs_pool_item_destroy(item);
        else {
            pthread_mutex_lock(&crew->mutex);
            if (crew->last)
                crew->last->next = item;
            else
                crew->first = item;
            crew->last = item;
            pthread_cond_signal(&crew->changed);
            pthread_mutex_unlock(&crew->mutex);
        }
    }
    cs_number_locale_leave(locale);
    pthread_mutex_lock(&crew->mutex);
    crew->lost = crew->lost || lost;
    crew->running--;
    pthread_cond_signal(&crew->changed);
    pthread_mutex_unlock(&crew->mutex);
    return NULL;
}

/* ---- costs ---- */

static double cost_of(const cs_pool *pool, uint32_t point)
{
    return pool->cost ? pool->cost(pool->work_context, point) : 1;
}

void cs_pool_gauge_init(cs_pool_gauge *gauge, const cs_pool *pool)
{
    *gauge = (cs_pool_gauge){.pool = pool};
    for (uint32_t i = 0; i < pool->n_points; i++)
        gauge->all += cost_of(pool, pool->points[i]);
}

void cs_pool_gauge_add(cs_pool_gauge *gauge, uint32_t point)
{
    gauge->done += cost_of(gauge->pool, point);
    gauge->n++;
}

bool cs_pool_gauge_step(const cs_pool_gauge *gauge, const cs_progress *progress)
{
    const cs_pool *pool = gauge->pool;
    const bool counts = !pool->cost || gauge->n == pool->n_points || !(gauge->all > 0);
    const uint64_t done = counts ? gauge->n : (uint64_t)(gauge->done / gauge->all * pool->n_points);
    return cs_progress_step(progress, pool->what, done, pool->n_points);
}

/* ---- threads ---- */

static bool init_locks(cs_crew *crew)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return false;
    bool ready = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                 pthread_mutex_init(&crew->mutex, NULL) == 0;
    if (ready && pthread_cond_init(&crew->changed, &attributes) != 0) {
        pthread_mutex_destroy(&crew->mutex);
        ready = false;
    }
    if (ready && pthread_cond_init(&crew->given, NULL) != 0) {
        pthread_cond_destroy(&crew->changed);
        pthread_mutex_destroy(&crew->mutex);
        ready = false;
    }
    pthread_condattr_destroy(&attributes);
    return ready;
}

/* Sets the stack size, because `ulimit -s` may be less than a point needs. */
static bool start_thread(pthread_t *thread, cs_crew *crew)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    const bool started = pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 &&
                         pthread_create(thread, &attributes, worker, crew) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

/* Starts up to `wanted` threads; at least one is enough. */
static cs_status start_threads(cs_crew *crew, uint32_t wanted, cs_error *error)
{
    crew->running = wanted;
    while (crew->n_threads < wanted && start_thread(&crew->threads[crew->n_threads], crew))
        crew->n_threads++;
    pthread_mutex_lock(&crew->mutex);
    crew->running -= wanted - crew->n_threads;
    pthread_mutex_unlock(&crew->mutex);
    return crew->n_threads > 0 || wanted == 0
               ? CS_OK
               : cs_error_add(error, CS_FAILED,
                              "cannot start a thread: there is not enough memory for it, or there "
                              "are as many as the system allows (ulimit -u)");
}

static cs_status start(const cs_pool *pool, uint32_t jobs, cs_crew **made, cs_error *error)
{
    cs_crew *crew = calloc(1, sizeof(*crew));
    if (!crew || !init_locks(crew)) {
        free(crew);
        return cs_error_no_memory(error);
    }
    crew->pool = pool;
    atomic_init(&crew->stop, false);
    crew->threads = malloc((jobs + 1ULL) * sizeof(*crew->threads));
    const cs_status status =
        crew->threads ? start_threads(crew, jobs, error) : cs_error_no_memory(error);
    if (status == CS_OK)
        *made = crew;
    else
        cs_crew_destroy(crew);
    return status;
}

cs_status cs_crew_start(const cs_pool *pool, cs_crew **crew, cs_error *error)
{
    return start(pool, pool->jobs, crew, error);
}

static void close_crew(cs_crew *crew)
{
    pthread_mutex_lock(&crew->mutex);
    crew->closed = true;
    pthread_cond_broadcast(&crew->given);
    pthread_mutex_unlock(&crew->mutex);
}

void cs_crew_destroy(cs_crew *crew)
{
    if (!crew)
        return;
    atomic_store(&crew->stop, true);
    close_crew(crew);
    for (uint32_t i = 0; i < crew->n_threads; i++)
        pthread_join(crew->threads[i], NULL);
    for (cs_pool_item *item = crew->first, *next; item; item = next) {
        next = item->next;
        cs_pool_item_destroy(item);
    }
    pthread_cond_destroy(&crew->given);
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->mutex);
    free(crew->points);
    free(crew->threads);
    free(crew);
}

cs_status cs_crew_put(cs_crew *crew, const uint32_t *points, uint32_t n, cs_error *error)
{
    pthread_mutex_lock(&crew->mutex);
    const bool room = cs_vector_reserve((void **)&crew->points, &crew->capacity,
                                        (uint64_t)crew->n_points + n, sizeof(*crew->points));
    if (room && n > 0) {
        memcpy(crew->points + crew->n_points, points, n * sizeof(*points));
        crew->n_points += n;
        pthread_cond_broadcast(&crew->given);
    }
    pthread_mutex_unlock(&crew->mutex);
    return room ? CS_OK : cs_error_no_memory(error);
}

/* ---- the calling thread ---- */

/* Waits until an item is finished, all workers have ended, or the time is up. */
static cs_pool_item *wait_for_items(cs_crew *crew, long ns, bool *ended)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&crew->mutex);
    int code = 0;
    while (!crew->first && crew->running > 0 && code == 0)
        code = pthread_cond_timedwait(&crew->changed, &crew->mutex, &until);
    cs_pool_item *items = crew->first;
    crew->first = crew->last = NULL;
    *ended = crew->running == 0;
    pthread_mutex_unlock(&crew->mutex);
    return items;
}

cs_status cs_crew_wait(cs_crew *crew, long ns, cs_pool_item **items, cs_error *error)
{
    bool ended;
    *items = wait_for_items(crew, ns, &ended);
    pthread_mutex_lock(&crew->mutex);
    const bool lost = crew->lost;
    pthread_mutex_unlock(&crew->mutex);
    return lost && !*items ? cs_error_no_memory(error) : CS_OK;
}

static cs_status take_items(const cs_pool *pool, cs_pool_item *items, cs_pool_gauge *gauge,
                            cs_error *error)
{
    cs_status status = CS_OK;
    while (items) {
        cs_pool_item *next = items->next;
        if (status == CS_OK)
            status = pool->collect(pool->collect_context, items, error);
        if (status == CS_OK)
            cs_pool_gauge_add(gauge, items->point);
        cs_pool_item_destroy(items);
        items = next;
    }
    return status;
}

/* Collects items until all workers have ended. */
static cs_status collect(cs_crew *crew, const cs_progress *progress, cs_error *error)
{
    const cs_pool *pool = crew->pool;
    cs_pool_gauge gauge;
    cs_status status = CS_OK;
    bool wanted = true;
    cs_pool_gauge_init(&gauge, pool);
    for (bool ended = false; !ended;) {
        cs_pool_item *items = wait_for_items(crew, tick, &ended);
        cs_status taken = take_items(pool, items, &gauge, status == CS_OK ? error : NULL);
        status = status == CS_OK ? taken : status;
        wanted = wanted && cs_pool_gauge_step(&gauge, progress);
        if (status != CS_OK || !wanted)
            atomic_store(&crew->stop, true);
    }
    if (status == CS_OK && !wanted) /* points in flight were still collected */
        status = cs_error_add(error, CS_INTERRUPTED, "interrupted after %u of %u %s", gauge.n,
                              pool->n_points, pool->points_are);
    if (status == CS_OK && gauge.n < pool->n_points)
        status = cs_error_no_memory(error); /* a worker had no memory for a result */
    return status;
}

/* ---- the pool ---- */

typedef struct ranked {
    double cost;
    uint32_t at, point;
} ranked;

static int by_cost(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    CS_COMPARE(b->cost, a->cost);
    return a->at < b->at ? -1 : a->at > b->at;
}

cs_status cs_pool_order(const cs_pool *pool, uint32_t **points, cs_error *error)
{
    ranked *all = malloc((pool->n_points + 1ULL) * sizeof(*all));
    uint32_t *ordered = malloc((pool->n_points + 1ULL) * sizeof(*ordered));
    if (!all || !ordered) {
        free(all);
        free(ordered);
        return cs_error_no_memory(error);
    }
    for (uint32_t i = 0; i < pool->n_points; i++) {
        const uint32_t point = pool->points[i];
        all[i] = (ranked){cost_of(pool, point), i, point};
    }
    qsort(all, pool->n_points, sizeof(*all), by_cost);
    for (uint32_t i = 0; i < pool->n_points; i++)
        ordered[i] = all[i].point;
    free(all);
    *points = ordered;
    return CS_OK;
}

cs_status cs_pool_run(const cs_pool *pool, const cs_progress *progress, cs_error *error)
{
    cs_crew *crew = NULL;
    uint32_t *points;
    CS_TRY(cs_pool_order(pool, &points, error));
    cs_status status =
        start(pool, pool->jobs < pool->n_points ? pool->jobs : pool->n_points, &crew, error);
    if (status == CS_OK)
        status = cs_crew_put(crew, points, pool->n_points, error);
    if (status == CS_OK && pool->n_points > 0) {
        close_crew(crew);
        status = collect(crew, progress, error);
    }
    cs_crew_destroy(crew);
    free(points);
    return status;
}
