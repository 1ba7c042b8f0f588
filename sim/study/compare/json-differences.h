/* Finds where two JSON documents differ. */
#ifndef CS_COMPARE_JSON_DIFFERENCES_H
#define CS_COMPARE_JSON_DIFFERENCES_H

#include "sim/base/arena.h"
#include "sim/base/json.h"

enum { CS_DIFFERENCES_MAX = 8 };

/* Returns up to CS_DIFFERENCES_MAX texts "/pointer: VALUE predicted, VALUE measured", with the
 * words of `sides`, in the order of the first document, followed by members that only the second
 * has; one more text says if there are more. In arrays of equal length, only the first different
 * element is reported; long texts that begin alike are shown from shortly before their
 * difference. */
CS_MUST_CHECK cs_status cs_differences_find(const cJSON *first, const cJSON *second,
                                            const char *const sides[2], cs_arena *arena,
                                            const char *const **texts, uint32_t *n,
                                            cs_error *error);

#endif
