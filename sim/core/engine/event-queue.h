/* The event queue: a tournament over the events that are outstanding, in one total order:
 * (time, task, slot).
 *
 * Every outstanding event sits in a slot, a leaf of a complete 4-ary tree whose nodes hold the
 * least key below them; the root is the next event. Events compare as one 128-bit integer, without
 * branches, and a push or a pop walks a path that is known from the slot; a push stops where it
 * changes nothing, which is mostly soon, and looks at no other slot.
 *
 * Against heaps of the same 16-byte keys this halves the time of the whole engine at a thousand
 * outstanding events, and gains a little at eight; sim/core/engine/README.md has the measurements.
 */
#ifndef CS_ENGINE_EVENT_QUEUE_H
#define CS_ENGINE_EVENT_QUEUE_H

#include "sim/base/time.h"

#include <stdbool.h>
#include <stddef.h>
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
} cs_event_queue;

#define CS_EVENT_NO_KEY (~(cs_event_key)0) /* its time is -1 */

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

/* Puts a lower key into a leaf: the nodes above it have it or a lower one. */
static inline void cs_event_queue_lower(cs_event_queue *queue, uint32_t slot, cs_event_key key)
{
    cs_event_key *nodes = queue->nodes;
    size_t i = queue->capacity + (size_t)slot;
    nodes[i] = key;
    for (i >>= 2; i > 0 && key < nodes[i]; i >>= 2)
        nodes[i] = key;
}

/* Puts a higher key into a leaf: the nodes above it that had the old one have the least below. All
 * had it if it was `first`. */
static inline void cs_event_queue_raise(cs_event_queue *queue, uint32_t slot, cs_event_key key,
                                        bool first)
{
    cs_event_key *nodes = queue->nodes;
    size_t i = queue->capacity + (size_t)slot;
    const cs_event_key old = nodes[i];
    nodes[i] = key;
    while (i > 1 && (first || nodes[i >> 2] == old)) {
        key = cs_event_queue_least(cs_event_queue_least(key, nodes[i ^ 1]),
                                   cs_event_queue_least(nodes[i ^ 2], nodes[i ^ 3]));
        i >>= 2;
        nodes[i] = key;
    }
}

/* The key of the next event, or CS_EVENT_NO_KEY. */
static inline cs_event_key cs_event_queue_first(const cs_event_queue *queue)
{
    return queue->nodes[1];
}

/* Takes the next event; there must be one. */
static inline cs_event cs_event_queue_pop(cs_event_queue *queue)
{
    const cs_event_key key = queue->nodes[1];
    const uint32_t slot = (uint32_t)key;
    cs_event_queue_raise(queue, slot, CS_EVENT_NO_KEY, true);
    queue->spare[queue->n_spare++] = slot;
    return (cs_event){cs_event_key_time(key), (uint32_t)(key >> 32), queue->what[slot]};
}

/* *at: the slot of the event until it is popped, for cs_event_queue_move. False when memory runs
 * out. */
static inline bool cs_event_queue_push(cs_event_queue *queue, cs_event event, uint32_t *at)
{
    if (queue->n_spare == 0 && !cs_event_queue_grow(queue))
        return false;
    const uint32_t slot = queue->spare[--queue->n_spare];
    queue->what[slot] = event.what;
    cs_event_queue_lower(queue, slot, cs_event_key_of(event.time, event.task, slot));
    *at = slot;
    return true;
}

/* Gives an outstanding event another time. */
static inline void cs_event_queue_move(cs_event_queue *queue, uint32_t slot, cs_time time)
{
    const cs_event_key old = queue->nodes[queue->capacity + slot];
    const cs_event_key key = (cs_event_key)(uint64_t)time << 64 | (uint64_t)old; /* task and slot */
    if (key < old)
        cs_event_queue_lower(queue, slot, key);
    else
        cs_event_queue_raise(queue, slot, key, false);
}

#endif
