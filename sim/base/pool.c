#include "sim/base/pool.h"

#include "sim/base/number.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { STACK_BYTES = 8 << 20 };

static const long tick = 100000000; /* ns between looks at progress */

/* What the threads share. */
typedef struct shared {
    const cs_pool *pool;
    atomic_uint next; /* of pool->points */
    atomic_bool stop;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    cs_pool_item *first, *last; /* done, not yet collected */
    uint32_t running;
} shared;

static void free_item(cs_pool_item *item)
{
    cJSON_Delete(item->figures);
    free(item->error);
    free(item->record);
    free(item);
}

/* ---- workers ---- */

static bool goes_on(void *context, const char *what, uint64_t done, uint64_t total)
{
    (void)what, (void)done, (void)total;
    shared *s = context;
    return !atomic_load(&s->stop);
}

static void hand_over(shared *s, cs_pool_item *item)
{
    pthread_mutex_lock(&s->mutex);
    if (s->last)
        s->last->next = item;
    else
        s->first = item;
    s->last = item;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

static void *worker(void *context)
{
    shared *s = context;
    const cs_progress progress = {goes_on, s};
    const cs_number_locale locale = cs_number_locale_enter(); /* threads have the program's */
    while (!atomic_load(&s->stop)) {
        uint32_t i = atomic_fetch_add(&s->next, 1);
        cs_pool_item *item = i < s->pool->n_points ? calloc(1, sizeof(*item)) : NULL;
        if (!item)
            break; /* out of memory: the point is missed when all is collected */
        item->point = s->pool->points[i];
        item->error = malloc(sizeof(*item->error));
        item->status = item->error ? CS_OK : CS_NO_MEMORY;
        if (item->error) {
            cs_error_init(item->error);
            s->pool->work(s->pool->work_context, item->point, &progress, item);
        }
        if (item->status == CS_INTERRUPTED)
            free_item(item);
        else
            hand_over(s, item);
    }
    cs_number_locale_leave(locale);
    pthread_mutex_lock(&s->mutex);
    s->running--;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

/* ---- the calling thread ---- */

/* Waits for something to collect, for all workers to end, or for a tick. */
static cs_pool_item *wait_for_items(shared *s, bool *ended)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += tick;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&s->mutex);
    int code = 0;
    while (!s->first && s->running > 0 && code == 0)
        code = pthread_cond_timedwait(&s->changed, &s->mutex, &until);
    cs_pool_item *items = s->first;
    s->first = s->last = NULL;
    *ended = s->running == 0;
    pthread_mutex_unlock(&s->mutex);
    return items;
}

static cs_status take_items(const cs_pool *pool, cs_pool_item *items, uint32_t *n_taken,
                            cs_error *error)
{
    cs_status status = CS_OK;
    while (items) {
        cs_pool_item *next = items->next;
        if (status == CS_OK)
            status = pool->collect(pool->collect_context, items, error);
        *n_taken += status == CS_OK;
        free_item(items);
        items = next;
    }
    return status;
}

/* The workers have ended when it returns. */
static cs_status collect(shared *s, const cs_progress *progress, cs_error *error)
{
    uint32_t n = 0;
    cs_status status = CS_OK;
    bool wanted = true;
    for (bool ended = false; !ended;) {
        cs_pool_item *items = wait_for_items(s, &ended);
        cs_status taken = take_items(s->pool, items, &n, status == CS_OK ? error : NULL);
        status = status == CS_OK ? taken : status;
        wanted = wanted && cs_progress_step(progress, s->pool->what, n, s->pool->n_points);
        if (status != CS_OK || !wanted)
            atomic_store(&s->stop, true);
    }
    if (status == CS_OK && !wanted) /* with those that were still under way */
        status = cs_error_add(error, CS_INTERRUPTED, "interrupted after %u of %u %s", n,
                              s->pool->n_points, s->pool->points_are);
    if (status == CS_OK && n < s->pool->n_points)
        status = cs_error_no_memory(error);
    return status;
}

/* With a stack of its own size: `ulimit -s` may ask for less than a point takes. */
static bool start_thread(pthread_t *thread, shared *s)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    const bool started = pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 &&
                         pthread_create(thread, &attributes, worker, s) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

static cs_status run_threads(shared *s, const cs_progress *progress, cs_error *error)
{
    uint32_t n = s->pool->jobs < s->pool->n_points ? s->pool->jobs : s->pool->n_points;
    pthread_t *threads = malloc((n + 1ULL) * sizeof(*threads));
    uint32_t started = 0;
    if (!threads)
        return cs_error_no_memory(error);
    s->running = n;
    while (started < n && start_thread(&threads[started], s))
        started++;
    pthread_mutex_lock(&s->mutex);
    s->running -= n - started; /* fewer threads do as well */
    pthread_mutex_unlock(&s->mutex);
    cs_status status = CS_OK;
    if (started > 0)
        status = collect(s, progress, error);
    else if (n > 0)
        status = cs_error_add(error, CS_FAILED, "cannot start a thread");
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return status;
}

cs_status cs_pool_run(const cs_pool *pool, const cs_progress *progress, cs_error *error)
{
    shared s = {.pool = pool};
    pthread_condattr_t attributes;
    atomic_init(&s.next, 0);
    atomic_init(&s.stop, false);
    if (pthread_condattr_init(&attributes) != 0)
        return cs_error_no_memory(error);
    bool ready = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                 pthread_mutex_init(&s.mutex, NULL) == 0;
    if (ready && pthread_cond_init(&s.changed, &attributes) != 0) {
        pthread_mutex_destroy(&s.mutex);
        ready = false;
    }
    pthread_condattr_destroy(&attributes);
    if (!ready)
        return cs_error_no_memory(error);
    cs_status status = run_threads(&s, progress, error);
    pthread_cond_destroy(&s.changed);
    pthread_mutex_destroy(&s.mutex);
    return status;
}
