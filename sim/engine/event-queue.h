/* The event queue: a 4-ary heap of 16-byte events under one total order, (time, task, what).
 *
 * Two choices make it fast. An event compares as one 128-bit integer, without branches. And a pop
 * leaves a hole at the root which the next push fills and sifts down: most events are replaced by
 * the one that they cause, so one walk through the heap serves both. See tests/bench-queue for
 * figures.
 */
#ifndef CS_ENGINE_EVENT_QUEUE_H
#define CS_ENGINE_EVENT_QUEUE_H

#include "sim/base/time.h"
#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

typedef struct cs_event {
    uint32_t what; /* for the engine */
    uint32_t task;
    cs_time time; /* >= 0 */
} cs_event;

typedef struct cs_event_queue {
    cs_event *events;
    uint32_t n, capacity; /* n counts the hole */
    bool hole;            /* the root was popped and nothing took its place yet */
} cs_event_queue;

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the order of an event's members assumes a little-endian machine"
#endif

static inline unsigned __int128 cs_event_key(const cs_event *event)
{
    unsigned __int128 key;
    memcpy(&key, event, sizeof(key));
    return key;
}

static inline void cs_event_queue_finish(cs_event_queue *queue)
{
    free(queue->events);
    *queue = (cs_event_queue){0};
}

/* Moves `event` down from `at` to its place. */
static inline void cs_event_queue_sift_down(cs_event_queue *queue, uint32_t at, cs_event event)
{
    cs_event *events = queue->events;
    unsigned __int128 key = cs_event_key(&event);
    for (;;) {
        uint64_t first = 4 * (uint64_t)at + 1;
        if (first >= queue->n)
            break;
        uint64_t end = first + 4 < queue->n ? first + 4 : queue->n;
        uint64_t least = first;
        unsigned __int128 least_key = cs_event_key(&events[first]);
        for (uint64_t child = first + 1; child < end; child++) {
            unsigned __int128 child_key = cs_event_key(&events[child]);
            bool less = child_key < least_key;
            least = less ? child : least;
            least_key = less ? child_key : least_key;
        }
        if (least_key >= key)
            break;
        events[at] = events[least];
        at = (uint32_t)least;
    }
    events[at] = event;
}

static inline void cs_event_queue_close_hole(cs_event_queue *queue)
{
    if (!queue->hole)
        return;
    queue->hole = false;
    if (--queue->n > 0)
        cs_event_queue_sift_down(queue, 0, queue->events[queue->n]);
}

/* The first event, or NULL. */
static inline const cs_event *cs_event_queue_first(cs_event_queue *queue)
{
    cs_event_queue_close_hole(queue);
    return queue->n > 0 ? queue->events : NULL;
}

/* Takes the first event; the queue must not be empty. */
static inline cs_event cs_event_queue_pop(cs_event_queue *queue)
{
    cs_event_queue_close_hole(queue);
    queue->hole = true;
    return queue->events[0];
}

/* False when memory runs out. */
static inline bool cs_event_queue_push(cs_event_queue *queue, cs_event event)
{
    if (queue->hole) {
        queue->hole = false;
        cs_event_queue_sift_down(queue, 0, event);
        return true;
    }
    if (!cs_vector_reserve((void **)&queue->events, &queue->capacity, queue->n + UINT64_C(1),
                           sizeof(event)))
        return false;
    uint32_t at = queue->n++;
    unsigned __int128 key = cs_event_key(&event);
    while (at > 0) {
        uint32_t parent = (at - 1) / 4;
        if (cs_event_key(&queue->events[parent]) <= key)
            break;
        queue->events[at] = queue->events[parent];
        at = parent;
    }
    queue->events[at] = event;
    return true;
}

#endif
