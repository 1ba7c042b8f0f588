#include "sim/core/engine/delay-lines.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

void cs_delay_lines_init(cs_delay_lines *lines)
{
    *lines = (cs_delay_lines){.first = CS_EVENT_NO_KEY};
    for (uint32_t i = 0; i < CS_DELAY_LINES; i++)
        lines->heads[i] = CS_EVENT_NO_KEY;
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
    if (delay == 0 || i == CS_DELAY_LINES)
        return CS_NO_DELAY_LINE;
    if (i == lines->n) {
        lines->lines[lines->n++] = (cs_delay_line){.delay = delay, .last_time = -1};
    }
    return i;
}

bool cs_delay_line_grow(cs_delay_line *line)
{
    cs_delay_line grown = *line;
    grown.capacity = line->capacity ? 2 * line->capacity : FIRST_CAPACITY;
    if (grown.capacity > CS_DELAY_MOST)
        return false;
    grown.events = malloc(grown.capacity * sizeof(*grown.events));
    if (!grown.events)
        return false;
    for (uint32_t i = line->first; i != line->first + line->n; i++)
        *cs_delay_line_at(&grown, i) = *cs_delay_line_at(line, i);
    free(line->events);
    *line = grown;
    return true;
}

void cs_delay_lines_remove(cs_delay_lines *lines, uint32_t slot)
{
    const uint32_t number = (slot & ~CS_DELAY_SLOT) >> CS_DELAY_BITS;
    const cs_delay_line *line = &lines->lines[number];
    cs_event *removed = cs_delay_line_at(line, slot);
    removed->what = CS_DELAY_REMOVED;
    if (removed == cs_delay_line_at(line, line->first))
        cs_delay_lines_advance(lines, number);
}
