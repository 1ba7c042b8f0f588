#include "sim/core/lower/message-classes.h"

#include "sim/base/hash.h"
#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

/* Class of a message, and its id in the new graph. */
struct cs_made_message {
    cs_class cls;
    uint32_t id;
};

static uint32_t slot_of(const cs_class *cls, uint32_t n_slots)
{
    const int64_t key[] = {cls->device, cls->peer,   cls->bytes,
                           cls->stage,  cls->origin, cls->purpose};
    return (uint32_t)cs_hash_bytes(key, sizeof(key), 0) & (n_slots - 1);
}

static bool grow_table(cs_message_classes *classes)
{
    const uint32_t n_slots = classes->n_slots ? 2 * classes->n_slots : 1024;
    uint32_t *slots = malloc(n_slots * sizeof(*slots));
    if (!slots)
        return false;
    memset(slots, 0xff, n_slots * sizeof(*slots));
    for (uint32_t i = 0; i < classes->n; i++) {
        uint32_t at = slot_of(&classes->made[i].cls, n_slots);
        while (slots[at] != CS_NONE)
            at = (at + 1) & (n_slots - 1);
        slots[at] = i;
    }
    free(classes->slots);
    classes->slots = slots;
    classes->n_slots = n_slots;
    return true;
}

/* Makes room for one more entry; the table stays at most half full. */
static bool make_room(cs_message_classes *classes)
{
    return (2 * classes->n < classes->n_slots || grow_table(classes)) &&
           cs_vector_reserve((void **)&classes->made, &classes->capacity, classes->n + UINT64_C(1),
                             sizeof(*classes->made));
}

static bool is_same(const cs_class *a, const cs_class *b)
{
    return a->device == b->device && a->peer == b->peer && a->bytes == b->bytes &&
           a->stage == b->stage && a->origin == b->origin && a->purpose == b->purpose;
}

uint32_t cs_message_classes_find(cs_message_classes *classes, const cs_class *of, uint32_t from,
                                 uint32_t to, int64_t bytes)
{
    const cs_class made = {.kind = CS_TRANSFER,
                           .origin = of->kind,
                           .purpose = of->purpose,
                           .stage = of->stage,
                           .device = from,
                           .peer = to,
                           .weights = CS_NONE,
                           .bytes = bytes};
    if (!make_room(classes)) {
        classes->no_memory = true;
        return CS_NONE;
    }
    uint32_t at = slot_of(&made, classes->n_slots);
    for (; classes->slots[at] != CS_NONE; at = (at + 1) & (classes->n_slots - 1)) {
        const cs_made_message *have = &classes->made[classes->slots[at]];
        if (is_same(&have->cls, &made))
            return have->id;
    }
    const uint32_t id = cs_builder_class(classes->to, &made);
    if (id == CS_NONE)
        return CS_NONE;
    classes->slots[at] = classes->n;
    classes->made[classes->n++] = (cs_made_message){made, id};
    return id;
}

void cs_message_classes_finish(cs_message_classes *classes)
{
    free(classes->slots);
    free(classes->made);
}
