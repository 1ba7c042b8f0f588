/* The values of one varied key, as users write them.
 *
 *     list        1,2,4  or  gpipe,1f1b     JSON values or texts; a comma within [], {} or ""
 *                                           does not separate values
 *     range       2..32                     steps of 1, both ends included
 *                 0.1..0.9..0.2             steps of 0.2, from 0.1; 32..2..-2 goes down
 *                 1..1024..x2               each value is twice the previous one
 *                 1..1000..log4             4 values from end to end with equal ratios
 *                 0..1.5..lin4              4 values from end to end with equal distances
 *     with unit   1..32..x2 GB/s            a unit after a range applies to each of its values
 *
 * Lists may contain ranges: 1..4,8,16. Steps of decimal numbers are exact: 0.1..0.5..0.1 has the
 * double nearest to 0.3, not 0.1 + 2 * 0.1. If both ends of an x, log or lin range are written as
 * whole numbers, its values are rounded to whole numbers and duplicates are removed; 1.0..100 is
 * not rounded. A text that would be read as something else is written as JSON, in quotes.
 */
#ifndef CS_SWEEP_RANGE_H
#define CS_SWEEP_RANGE_H

#include "sim/base/json.h"

#include <stdint.h>

enum { CS_RANGE_MAX = 1 << 20 }; /* values of one key */

/* A zeroed list is empty and can be finished. */
typedef struct cs_values {
    const char **texts; /* JSON texts, each on one line, in an arena */
    uint32_t n, capacity;
} cs_values;

void cs_values_finish(cs_values *values);

/* Appends the values in `text`. CS_INVALID with "origin: pointer: what is wrong", CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_range_read(const char *text, const char *origin, const char *pointer,
                                      cs_arena *arena, cs_values *values, cs_error *error);

/* Appends one value, parsed as JSON or else taken as a text; cs_values_add_json appends a JSON
 * value. */
CS_MUST_CHECK cs_status cs_values_add_text(cs_values *values, const char *text, const char *origin,
                                           cs_arena *arena, cs_error *error);
CS_MUST_CHECK cs_status cs_values_add_json(cs_values *values, const cJSON *value, cs_arena *arena,
                                           cs_error *error);

#endif
