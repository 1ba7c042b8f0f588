#include "sim/run/scenario/kept-platforms.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IDLE = 4 }; /* platforms of large clusters take tens of megabytes */

typedef struct kept_platform {
    struct kept_platform *next;
    char *key;
    cs_platform platform;
    uint32_t n_lent;
} kept_platform;

/* Platforms are listed in the order of their last return, latest first. */
struct cs_kept_platforms {
    pthread_mutex_t mutex;
    kept_platform *first;
};

cs_kept_platforms *cs_kept_platforms_create(void)
{
    cs_kept_platforms *kept = calloc(1, sizeof(*kept));
    if (kept && pthread_mutex_init(&kept->mutex, NULL) != 0) {
        free(kept);
        kept = NULL;
    }
    return kept;
}

static void destroy(kept_platform *one)
{
    cs_platform_finish(&one->platform);
    free(one->key);
    free(one);
}

void cs_kept_platforms_destroy(cs_kept_platforms *kept)
{
    if (!kept)
        return;
    while (kept->first) {
        kept_platform *one = kept->first;
        kept->first = one->next;
        destroy(one);
    }
    pthread_mutex_destroy(&kept->mutex);
    free(kept);
}

static kept_platform *find(const cs_kept_platforms *kept, const char *key)
{
    kept_platform *one = kept->first;
    while (one && strcmp(one->key, key) != 0)
        one = one->next;
    return one;
}

const cs_platform *cs_kept_platforms_borrow(cs_kept_platforms *kept, const char *key)
{
    pthread_mutex_lock(&kept->mutex);
    kept_platform *one = find(kept, key);
    if (one)
        one->n_lent++;
    pthread_mutex_unlock(&kept->mutex);
    return one ? &one->platform : NULL;
}

const cs_platform *cs_kept_platforms_add(cs_kept_platforms *kept, const char *key,
                                         cs_platform *platform)
{
    kept_platform *made = calloc(1, sizeof(*made)), *other;
    char *copy = strdup(key);
    if (!made || !copy) {
        free(made);
        free(copy);
        return NULL;
    }
    *made = (kept_platform){.key = copy, .platform = *platform, .n_lent = 1};
    *platform = (cs_platform){0};
    pthread_mutex_lock(&kept->mutex);
    other = find(kept, key);
    if (other) {
        other->n_lent++;
    } else {
        made->next = kept->first;
        kept->first = made;
    }
    pthread_mutex_unlock(&kept->mutex);
    if (other)
        destroy(made);
    return other ? &other->platform : &made->platform;
}

void cs_kept_platforms_give_back(cs_kept_platforms *kept, const cs_platform *platform)
{
    pthread_mutex_lock(&kept->mutex);
    kept_platform **at = &kept->first;
    while (&(*at)->platform != platform)
        at = &(*at)->next;
    kept_platform *one = *at;
    one->n_lent--;
    *at = one->next;
    one->next = kept->first;
    kept->first = one;
    /* Take unused platforms in excess of MOST_IDLE out of the list, to destroy them unlocked. */
    kept_platform *idle = NULL;
    uint32_t n = 0;
    for (at = &kept->first; *at;) {
        one = *at;
        n += one->n_lent == 0;
        if (one->n_lent > 0 || n <= MOST_IDLE) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        one->next = idle;
        idle = one;
    }
    pthread_mutex_unlock(&kept->mutex);
    while (idle) {
        kept_platform *next = idle->next;
        destroy(idle);
        idle = next;
    }
}
