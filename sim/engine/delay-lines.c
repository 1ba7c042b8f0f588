#include "sim/engine/delay-lines.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64, LARGEST_CAPACITY = 1 << 30 };

void cs_delay_lines_init(cs_delay_lines *lines)
{
    *lines = (cs_delay_lines){.next = -1};
}

void cs_delay_lines_finish(cs_delay_lines *lines)
{
    for (uint32_t i = 0; i < lines->n; i++)
        free(lines->lines[i].events);
    cs_delay_lines_init(lines);
}

uint8_t cs_delay_lines_find(cs_delay_lines *lines, cs_time delay)
{
    uint8_t i = 0;
    while (i < lines->n && lines->lines[i].delay != delay)
        i++;
    if (i == lines->n && i < CS_DELAY_LINES)
        lines->lines[lines->n++].delay = delay;
    return i;
}

static bool grow(cs_delay_line *line)
{
    const uint32_t old = line->capacity;
    cs_delayed *events = NULL;
    if (old < LARGEST_CAPACITY)
        events = realloc(line->events, (old ? 2 * (size_t)old : FIRST_CAPACITY) * sizeof(*events));
    if (!events)
        return false;
    memcpy(events + old, events, line->first * sizeof(*events)); /* what is around comes behind */
    line->events = events;
    line->capacity = old ? 2 * old : FIRST_CAPACITY;
    return true;
}

cs_status cs_delay_lines_push(cs_delay_lines *lines, uint8_t number, uint32_t task, cs_time now)
{
    cs_delay_line *line = &lines->lines[number];
    cs_time time;
    if (!cs_time_add(now, line->delay, &time))
        return CS_OVERFLOW;
    if (line->n == line->capacity && !grow(line))
        return CS_NO_MEMORY;
    line->events[(line->first + line->n++) & (line->capacity - 1)] = (cs_delayed){time, task};
    lines->next = cs_earlier(time, lines->next);
    return CS_OK;
}

uint32_t cs_delay_lines_pop(cs_delay_lines *lines)
{
    const cs_time now = lines->next;
    uint32_t task = 0;
    bool taken = false;
    lines->next = -1;
    for (uint32_t i = 0; i < lines->n; i++) {
        cs_delay_line *line = &lines->lines[i];
        if (line->n > 0 && !taken && line->events[line->first].time == now) {
            task = line->events[line->first].task;
            line->first = (line->first + 1) & (line->capacity - 1);
            line->n--;
            taken = true;
        }
        if (line->n > 0)
            lines->next = cs_earlier(line->events[line->first].time, lines->next);
    }
    assert(taken);
    return task;
}
