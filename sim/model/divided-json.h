/* Layers that are one device's part of a network, as model files have them: "divided" of a layer
 * has its pieces and exchanges, "divided_over" of the model says over how many devices. Internal to
 * model-json.c. */
#ifndef CS_WORKLOAD_DIVIDED_JSON_H
#define CS_WORKLOAD_DIVIDED_JSON_H

#include "sim/base/field.h"
#include "sim/model/model.h"

typedef struct cs_divided_entry {
    cs_list pieces, exchanges, weight_parts;
} cs_divided_entry;

extern const cs_field cs_divided_fields[];      /* fill a cs_divided_entry */
extern const cs_field cs_divided_over_fields[]; /* fill a cs_grid, but for data and shards */

/* Gives the layer what the entry has, in memory of the arena. CS_INVALID when the pieces do not
 * add up to the layer's times, or an exchange stands in no gap between them. */
CS_MUST_CHECK cs_status cs_divided_take(const cs_divided_entry *entry,
                                        const cs_json_place *layer_place, cs_arena *arena,
                                        cs_layer *layer, cs_error *error);

/* The reverse; its parts are in the arena. NULL when memory runs out. */
cs_divided_entry *cs_divided_give(const cs_layer *layer, cs_arena *arena);

#endif
