#include "sim/core/engine/event-queue.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64, LARGEST_CAPACITY = 1 << 30 };

/* Before the first push: nothing is written where there are no slots. */
static const cs_event_key no_nodes[2] = {CS_EVENT_NO_KEY, CS_EVENT_NO_KEY};

void cs_event_queue_init(cs_event_queue *queue)
{
    *queue = (cs_event_queue){.nodes = (cs_event_key *)no_nodes};
}

void cs_event_queue_finish(cs_event_queue *queue)
{
    if (queue->nodes != no_nodes)
        free(queue->nodes);
    free(queue->what);
    free(queue->spare);
    cs_event_queue_init(queue);
}

/* Leaves keep their slots; the nodes above are rebuilt. Only called when no slot is spare. */
bool cs_event_queue_grow(cs_event_queue *queue)
{
    uint32_t old = queue->capacity, capacity = old ? 4 * old : FIRST_CAPACITY;
    if (old >= LARGEST_CAPACITY)
        return false;
    cs_event_queue grown = {.capacity = capacity};
    grown.nodes = malloc(2 * (size_t)capacity * sizeof(*grown.nodes));
    grown.what = malloc((size_t)capacity * sizeof(*grown.what));
    grown.spare = malloc((size_t)capacity * sizeof(*grown.spare));
    if (!grown.nodes || !grown.what || !grown.spare) {
        cs_event_queue_finish(&grown);
        return false;
    }
    memset(grown.nodes, 0xff, 2 * (size_t)capacity * sizeof(*grown.nodes));
    for (uint32_t slot = 0; slot < old; slot++) {
        grown.what[slot] = queue->what[slot];
        cs_event_queue_lower(&grown, slot, queue->nodes[old + slot]);
    }
    for (uint32_t slot = capacity; slot-- > old;)
        grown.spare[grown.n_spare++] = slot;
    cs_event_queue_finish(queue);
    *queue = grown;
    return true;
}
