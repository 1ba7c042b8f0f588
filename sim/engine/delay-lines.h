/* Events that come a fixed time after their cause, such as messages that come to their links after
 * their latency. Those with the same delay come in the order of their causes: a line holds them,
 * and the event queue is spared. There are as many lines as routes have different latencies, which
 * is few. */
#ifndef CS_ENGINE_DELAY_LINES_H
#define CS_ENGINE_DELAY_LINES_H

#include "sim/base/error.h"
#include "sim/base/time.h"

#include <stdbool.h>
#include <stdint.h>

enum { CS_DELAY_LINES = 8, CS_NO_DELAY_LINE = CS_DELAY_LINES };

typedef struct cs_delayed {
    cs_time time;
    uint32_t task;
} cs_delayed;

typedef struct cs_delay_line {
    cs_time delay;
    cs_delayed *events; /* around: event i is at (first + i) % capacity, a power of 2 */
    uint32_t first, n, capacity;
} cs_delay_line;

typedef struct cs_delay_lines {
    cs_delay_line lines[CS_DELAY_LINES];
    uint32_t n;
    cs_time next; /* of the first event, or -1 */
} cs_delay_lines;

/* The earlier of two times, each of which may be -1: never. */
static inline cs_time cs_earlier(cs_time a, cs_time b)
{
    return (uint64_t)a < (uint64_t)b ? a : b;
}

void cs_delay_lines_init(cs_delay_lines *lines);
void cs_delay_lines_finish(cs_delay_lines *lines);

/* The line of events with this delay, > 0; CS_NO_DELAY_LINE: there are too many others. */
uint8_t cs_delay_lines_find(cs_delay_lines *lines, cs_time delay);

/* Adds an event whose cause is now. CS_OK, CS_OVERFLOW or CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_delay_lines_push(cs_delay_lines *lines, uint8_t line, uint32_t task,
                                            cs_time now);

/* Takes an event at the time `next`; there must be one. */
uint32_t cs_delay_lines_pop(cs_delay_lines *lines);

#endif
