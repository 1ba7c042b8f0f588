/* Events that come a fixed time after their cause, such as messages that come to their links after
 * their latency, or that end if they are alone on their links. Those with the same delay mostly
 * come in the order of their causes: then a line holds them, and the event queue is spared. There
 * are as many lines as latencies and sizes of messages differ, which in collectives is few.
 *
 * A line is in the order of events of the whole engine, (time, task). Events that do not fit at its
 * end go into the queue. */
#ifndef CS_ENGINE_DELAY_LINES_H
#define CS_ENGINE_DELAY_LINES_H

#include "sim/base/error.h"
#include "sim/core/engine/event-queue.h"

enum { CS_DELAY_LINES = 8, CS_NO_DELAY_LINE = CS_DELAY_LINES };

/* Slots of events in lines: CS_DELAY_SLOT, the line, and the number of the event in it. Those of
 * the queue are below. */
#define CS_DELAY_SLOT UINT32_C(0x80000000)

enum { CS_DELAY_BITS = 27, CS_DELAY_MOST = (1 << CS_DELAY_BITS) - 1 };

#define CS_DELAY_REMOVED UINT32_MAX /* cs_event.what of a removed event */

typedef struct cs_delay_line {
    cs_event *events; /* event i is at i % capacity, a power of 2 */
    uint32_t first, n, capacity;
    uint32_t last_task; /* task of the latest event */
    cs_time last_time;
    cs_time delay;
} cs_delay_line;

typedef struct cs_delay_lines {
    cs_event_key heads[CS_DELAY_LINES]; /* per line: time, task, line; or CS_EVENT_NO_KEY */
    cs_event_key first;                 /* the least of them */
    cs_delay_line lines[CS_DELAY_LINES];
    uint32_t n;
} cs_delay_lines;

void cs_delay_lines_init(cs_delay_lines *lines);
void cs_delay_lines_finish(cs_delay_lines *lines);

/* The line of events with this delay; CS_NO_DELAY_LINE: it is 0, or there are too many others. */
uint8_t cs_delay_lines_find(cs_delay_lines *lines, cs_time delay);

/* The time of the first event, or -1. */
static inline cs_time cs_delay_lines_time(const cs_delay_lines *lines)
{
    return cs_event_key_time(lines->first);
}

/* Whether an event whose cause is now can be added to a line, which may be none. */
static inline bool cs_delay_lines_fit(const cs_delay_lines *lines, uint8_t number, cs_event event,
                                      cs_time now)
{
    if (number == CS_NO_DELAY_LINE)
        return false;
    const cs_delay_line *line = &lines->lines[number];
    return event.time - now == line->delay &&
           (event.time > line->last_time ||
            (event.time == line->last_time && event.task > line->last_task));
}

static inline cs_event *cs_delay_line_at(const cs_delay_line *line, uint32_t number)
{
    return &line->events[number & (line->capacity - 1)];
}

/* The least key of half of the lines. */
static inline cs_event_key cs_delay_lines_least(const cs_event_key *heads)
{
    return cs_event_queue_least(cs_event_queue_least(heads[0], heads[1]),
                                cs_event_queue_least(heads[2], heads[3]));
}

/* To be called when a line has another first event, or none any more. */
static inline void cs_delay_lines_renew(cs_delay_lines *lines, uint32_t number)
{
    const cs_delay_line *line = &lines->lines[number];
    cs_event_key key = CS_EVENT_NO_KEY;
    if (line->n > 0) {
        const cs_event *head = cs_delay_line_at(line, line->first);
        key = cs_event_key_of(head->time, head->task, number);
    }
    lines->heads[number] = key;
    key = cs_delay_lines_least(lines->heads);
    if (lines->n > CS_DELAY_LINES / 2)
        key = cs_event_queue_least(key, cs_delay_lines_least(lines->heads + CS_DELAY_LINES / 2));
    lines->first = key;
}

/* Makes room for more events in a line; false when memory runs out. */
CS_MUST_CHECK bool cs_delay_line_grow(cs_delay_line *line);

/* Adds an event that fits. *slot: for cs_delay_lines_remove, until it is popped. False when memory
 * runs out. */
CS_MUST_CHECK static inline bool cs_delay_lines_push(cs_delay_lines *lines, uint8_t number,
                                                     cs_event event, uint32_t *slot)
{
    cs_delay_line *line = &lines->lines[number];
    if (line->n == line->capacity && !cs_delay_line_grow(line))
        return false;
    const uint32_t at = line->first + line->n++;
    *cs_delay_line_at(line, at) = event;
    *slot = CS_DELAY_SLOT | (uint32_t)number << CS_DELAY_BITS | (at & CS_DELAY_MOST);
    line->last_time = event.time;
    line->last_task = event.task;
    if (line->n == 1)
        cs_delay_lines_renew(lines, number);
    return true;
}

/* Drops the first event of a line, and removed events after it. */
static inline void cs_delay_lines_advance(cs_delay_lines *lines, uint32_t number)
{
    cs_delay_line *line = &lines->lines[number];
    do {
        line->first++;
        line->n--;
    } while (line->n > 0 && cs_delay_line_at(line, line->first)->what == CS_DELAY_REMOVED);
    cs_delay_lines_renew(lines, number);
}

/* Takes the first event; there must be one. */
static inline cs_event cs_delay_lines_pop(cs_delay_lines *lines)
{
    const uint32_t number = (uint32_t)lines->first;
    const cs_event event = *cs_delay_line_at(&lines->lines[number], lines->lines[number].first);
    cs_delay_lines_advance(lines, number);
    return event;
}

void cs_delay_lines_remove(cs_delay_lines *lines, uint32_t slot);

#endif
