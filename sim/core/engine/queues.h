/* Messages whose end is known as soon as they come to their links, because each link that they take
 * serves one message after the other, in the order in which they come:
 *   fifo            every link does
 *   count, max_min  those do which only the messages of one stream take, or only messages of which
 *                   each waits for the end of the one before: no two are ever on a link at once
 * A message then starts when the last of its links is free, its bytes take what they take alone,
 * and nothing that comes later changes that. Where all messages that share links with each other,
 * directly or by way of others, have the same latency above 0, or each waits for the one before,
 * they come to the links in the order in which they start, and so their ends are known at their
 * starts. Where each waits for the one before, they are delays that no other message changes.
 *
 * Other messages (count, max_min), if they and all that share links with them have a latency above
 * 0, are taken to be alone on their links when they start, as long as nothing else is on these or
 * on its way there. That holds until another message starts that takes one of the links. Not so
 * where all are messages of collectives: these start together, and meet.
 *
 * Only messages whose bytes take a picosecond at least are counted in: one that takes none would
 * end in the middle of an instant. */
#ifndef CS_ENGINE_QUEUES_H
#define CS_ENGINE_QUEUES_H

#include "sim/core/graph/graph.h"

/* When the end of the messages of a class is known. */
typedef enum cs_known {
    CS_KNOWN_LATER,
    CS_KNOWN_IF_ALONE,
    CS_KNOWN_AT_LINKS,
    CS_KNOWN_AT_START,
    CS_KNOWN_ALWAYS /* its links are free whenever it starts */
} cs_known;

/* A class of messages that compete; of others n is 0. */
typedef struct cs_queue_class {
    const uint32_t *links; /* of finite bandwidth */
    uint32_t n;
    uint32_t stream; /* whose messages go one after the other, or CS_NONE */
    cs_time latency; /* from their start until they come to the links */
    cs_time bytes;   /* what their bytes take alone, ps */
    bool collective; /* they are of one */
} cs_queue_class;

/* Fills `known`, one per class of the graph, and `serial`, one per link: only messages of one class
 * take it, of which each waits for the end of the one before. `every_link`: each link serves one
 * message after the other, and `serial` is left alone. False when memory runs out. */
CS_MUST_CHECK bool cs_queues_find(const cs_graph *graph, const cs_queue_class *classes,
                                  uint32_t n_links, bool every_link, uint8_t *known, bool *serial);

#endif
