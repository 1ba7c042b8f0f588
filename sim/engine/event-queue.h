/* The event queue: a tournament over the events that are outstanding, in one total order:
 * (time, task, slot).
 *
 * Every outstanding event sits in a slot, a leaf of a complete 4-ary tree whose nodes hold the
 * least key below them; the root is the next event. Events compare as one 128-bit integer, without
 * branches, and a push or a pop walks a path that is known from the slot. A pop leaves its slot as
 * a hole, and the next push goes there: an event is mostly replaced by the one that it causes, and
 * one walk serves both.
 *
 * Against heaps of the same 16-byte keys this halves the time of the whole engine at a thousand
 * outstanding events, and gains a little at eight; sim/engine/README.md has the figures.
 */
#ifndef CS_ENGINE_EVENT_QUEUE_H
#define CS_ENGINE_EVENT_QUEUE_H

#include "sim/base/time.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct cs_event {
    cs_time time; /* >= 0 */
    uint32_t task;
    uint32_t what; /* for the engine */
} cs_event;

__extension__ typedef unsigned __int128 cs_event_key; /* time, task, slot, from the top */

typedef struct cs_event_queue {
    cs_event_key
        *nodes;      /* the root is 1, slot s is leaf `capacity` + s, the parent of i is i / 4 */
    uint32_t *what;  /* per slot */
    uint32_t *spare; /* slots without an event */
    uint32_t n_spare;
    uint32_t capacity; /* slots, a power of 4; 0 before the first push */
    uint32_t hole;   /* the slot that was popped last if nothing took it yet, or CS_EVENT_NO_HOLE */
    cs_time none_at; /* a time at which there is no event, as was looked; or -1 */
} cs_event_queue;

#define CS_EVENT_NO_HOLE UINT32_MAX
#define CS_EVENT_NO_KEY  (~(cs_event_key)0)

static inline cs_event_key cs_event_key_of(cs_time time, uint32_t task, uint32_t slot)
{
    return (cs_event_key)(uint64_t)time << 64 | (uint64_t)task << 32 | slot;
}

static inline cs_time cs_event_key_time(cs_event_key key)
{
    return (cs_time)(uint64_t)(key >> 64);
}

void cs_event_queue_init(cs_event_queue *queue);
void cs_event_queue_finish(cs_event_queue *queue);

/* Four times the slots; false when memory runs out. */
bool cs_event_queue_grow(cs_event_queue *queue);

static inline cs_event_key cs_event_queue_least(cs_event_key a, cs_event_key b)
{
    return a < b ? a : b;
}

/* Puts a key into a leaf and renews the nodes above it; with `early`, only as far as they change. */
static inline void cs_event_queue_set(cs_event_queue *queue, uint32_t slot, cs_event_key key,
                                      bool early)
{
    cs_event_key *nodes = queue->nodes;
    uint32_t i = queue->capacity + slot;
    nodes[i] = key;
    while (i > 1) {
        key = cs_event_queue_least(cs_event_queue_least(key, nodes[i ^ 1]),
                                   cs_event_queue_least(nodes[i ^ 2], nodes[i ^ 3]));
        i >>= 2;
        if (early && nodes[i] == key)
            break;
        nodes[i] = key;
    }
}

static inline void cs_event_queue_close_hole(cs_event_queue *queue)
{
    if (queue->hole == CS_EVENT_NO_HOLE)
        return;
    cs_event_queue_set(queue, queue->hole, CS_EVENT_NO_KEY, false);
    queue->spare[queue->n_spare++] = queue->hole;
    queue->hole = CS_EVENT_NO_HOLE;
}

/* The time of the next event, or -1 when there is none. */
static inline cs_time cs_event_queue_time(cs_event_queue *queue)
{
    cs_event_queue_close_hole(queue);
    if (queue->capacity == 0 || queue->nodes[1] == CS_EVENT_NO_KEY)
        return -1;
    return cs_event_key_time(queue->nodes[1]);
}

/* Looks along the path of the hole without filling it. */
static inline bool cs_event_queue_other_at(const cs_event_queue *queue, cs_time now)
{
    const cs_event_key *nodes = queue->nodes;
    bool more = false;
    for (uint32_t i = queue->capacity + queue->hole; i > 1; i >>= 2)
        more |= cs_event_key_time(nodes[i ^ 1]) == now || cs_event_key_time(nodes[i ^ 2]) == now ||
                cs_event_key_time(nodes[i ^ 3]) == now;
    return more;
}

/* Whether the next event is at `now`, the time of the one popped last. */
static inline bool cs_event_queue_more_at(cs_event_queue *queue, cs_time now)
{
    if (queue->none_at == now)
        return false;
    const bool hole = queue->hole != CS_EVENT_NO_HOLE;
    const bool more = hole ? cs_event_queue_other_at(queue, now)
                           : queue->capacity > 0 && cs_event_key_time(queue->nodes[1]) == now &&
                                 queue->nodes[1] != CS_EVENT_NO_KEY;
    if (!more)
        queue->none_at = now;
    else if (hole)
        cs_event_queue_close_hole(queue);
    return more;
}

/* To be called with the time of every event that is added. */
static inline void cs_event_queue_note(cs_event_queue *queue, cs_time time)
{
    if (queue->none_at == time)
        queue->none_at = -1;
}

/* Takes the next event; there must be one, and no hole (after cs_event_queue_time, or
 * cs_event_queue_more_at that said yes). */
static inline cs_event cs_event_queue_pop(cs_event_queue *queue)
{
    cs_event_key key = queue->nodes[1];
    queue->hole = (uint32_t)key;
    return (cs_event){cs_event_key_time(key), (uint32_t)(key >> 32), queue->what[queue->hole]};
}

/* *at: the slot of the event until it is popped, for cs_event_queue_move. False when memory runs
 * out. */
static inline bool cs_event_queue_push(cs_event_queue *queue, cs_event event, uint32_t *at)
{
    bool hole = queue->hole != CS_EVENT_NO_HOLE;
    if (!hole && queue->n_spare == 0 && !cs_event_queue_grow(queue))
        return false;
    uint32_t slot = hole ? queue->hole : queue->spare[--queue->n_spare];
    queue->hole = CS_EVENT_NO_HOLE;
    queue->what[slot] = event.what;
    cs_event_queue_note(queue, event.time);
    cs_event_queue_set(queue, slot, cs_event_key_of(event.time, event.task, slot), !hole);
    *at = slot;
    return true;
}

/* Gives an outstanding event another time. A hole may stay: when it is filled its whole path is
 * renewed. */
static inline void cs_event_queue_move(cs_event_queue *queue, uint32_t slot, cs_time time)
{
    uint64_t rest = (uint64_t)queue->nodes[queue->capacity + slot]; /* task and slot */
    cs_event_queue_note(queue, time);
    cs_event_queue_set(queue, slot, (cs_event_key)(uint64_t)time << 64 | rest, true);
}

#endif
