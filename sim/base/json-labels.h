/* Short labels that distinguish objects: for each object, the members that are not the same in
 * all of them. The labels of {"kind": "gpipe", "micro_batches": 8} and {"kind": "pipedream"} are
 * `kind=gpipe micro_batches=8` and `kind=pipedream`; an object without differing members is
 * `{}`.
 */
#ifndef CS_BASE_JSON_LABELS_H
#define CS_BASE_JSON_LABELS_H

#include "sim/base/arena.h"
#include "sim/base/error.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether the values are two or more objects, and nothing else. */
bool cs_json_labels_apply(cJSON *const *values, uint32_t n);

/* Removes the common members from the objects and writes the labels, which live as long as the
 * arena. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_json_labels_make(cJSON **objects, uint32_t n, cs_arena *arena,
                                            const char **labels, cs_error *error);

#endif
