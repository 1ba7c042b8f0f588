/* Short labels that tell objects apart: of each one the members that are not the same in all of
 * them. Of {"kind": "gpipe", "micro_batches": 8} and {"kind": "pipedream"} the labels are
 * `kind=gpipe micro_batches=8` and `kind=pipedream`; `{}` is one that has nothing of its own.
 */
#ifndef CS_BASE_JSON_LABELS_H
#define CS_BASE_JSON_LABELS_H

#include "sim/base/arena.h"
#include "sim/base/error.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether these are two objects or more, and nothing else. */
bool cs_json_labels_apply(cJSON *const *values, uint32_t n);

/* Takes the members off the objects that all have alike. Labels live as long as the arena.
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_json_labels_make(cJSON **objects, uint32_t n, cs_arena *arena,
                                            const char **labels, cs_error *error);

#endif
