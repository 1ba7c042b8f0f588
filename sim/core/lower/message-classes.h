/* Classes of the messages that collectives become. A class is added to the new graph at its first
 * use. Internal to sim/core/lower. */
#ifndef CS_LOWER_MESSAGE_CLASSES_H
#define CS_LOWER_MESSAGE_CLASSES_H

#include "sim/core/graph/builder.h"

typedef struct cs_made_message cs_made_message;

typedef struct cs_message_classes {
    cs_builder *to;
    uint32_t *slots; /* hash table with open addressing: positions in `made`, or CS_NONE */
    uint32_t n_slots;
    cs_made_message *made; /* in order of creation */
    uint32_t n, capacity;
    bool no_memory;
} cs_message_classes;

/* Returns the id of the class for messages between two devices in a collective of class `of`.
 * CS_NONE if memory runs out (`no_memory`) or the builder has failed. */
uint32_t cs_message_classes_find(cs_message_classes *classes, const cs_class *of, uint32_t from,
                                 uint32_t to, int64_t bytes);

/* Allowed on a zeroed struct. The builder belongs to the caller. */
void cs_message_classes_finish(cs_message_classes *classes);

#endif
