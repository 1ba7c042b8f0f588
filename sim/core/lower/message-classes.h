/* Classes of the messages that collectives become, each made in the new graph when it is asked for
 * first. Internal to sim/core/lower. */
#ifndef CS_LOWER_MESSAGE_CLASSES_H
#define CS_LOWER_MESSAGE_CLASSES_H

#include "sim/core/graph/builder.h"

typedef struct cs_made_message cs_made_message;

typedef struct cs_message_classes {
    cs_builder *to;
    uint32_t *slots; /* a table with open addressing: positions in `made`, or CS_NONE */
    uint32_t n_slots;
    cs_made_message *made; /* in the order in which they were made */
    uint32_t n, capacity;
    bool no_memory;
} cs_message_classes;

/* The id of the class of messages of a collective of class `of` between two devices. CS_NONE when
 * memory runs out (`no_memory`), or when the builder has failed. */
uint32_t cs_message_classes_find(cs_message_classes *classes, const cs_class *of, uint32_t from,
                                 uint32_t to, int64_t bytes);

/* Accepts zeroed ones. The builder is the caller's. */
void cs_message_classes_finish(cs_message_classes *classes);

#endif
