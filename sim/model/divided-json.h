/* Layers of a model file that are one device's part of a network. A layer's "divided" has its
 * pieces and exchanges; the model's "divided_over" has the number of devices along each axis.
 * Internal to model-json.c. */
#ifndef CS_WORKLOAD_DIVIDED_JSON_H
#define CS_WORKLOAD_DIVIDED_JSON_H

#include "sim/base/field.h"
#include "sim/model/model.h"

typedef struct cs_divided_entry {
    cs_list pieces, exchanges, weight_parts;
} cs_divided_entry;

extern const cs_field cs_divided_fields[];      /* fill a cs_divided_entry */
extern const cs_field cs_divided_over_fields[]; /* fill a cs_grid, except data and shards */

/* Copies the pieces, exchanges and weight parts of the entry to the layer, in memory of the arena.
 * CS_INVALID if the pieces do not add up to the layer's times, or if an exchange's gap exceeds the
 * number of pieces. */
CS_MUST_CHECK cs_status cs_divided_take(const cs_divided_entry *entry,
                                        const cs_json_place *layer_place, cs_arena *arena,
                                        cs_layer *layer, cs_error *error);

/* Makes the entry of a layer, the reverse of cs_divided_take; the parts of the entry are in the
 * arena. NULL if memory runs out. */
cs_divided_entry *cs_divided_give(const cs_layer *layer, cs_arena *arena);

#endif
