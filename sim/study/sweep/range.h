/* The values of one varied key, as users write them.
 *
 *     list        1,2,4  or  gpipe,1f1b     of JSON values or texts; a comma within [], {} or ""
 *                                           divides nothing
 *     range       2..32                     in steps of 1, both ends included
 *                 0.1..0.9..0.2             in steps of 0.2, from 0.1 on; 32..2..-2 goes down
 *                 1..1024..x2               every next one is 2 times as large
 *                 1..1000..log4             4 values from end to end, equal ratios
 *                 0..1.5..lin4              4 values from end to end, equal distances
 *     with unit   1..32..x2 GB/s            a unit behind a range goes to each of its values
 *
 * Lists may contain ranges: 1..4,8,16. Steps of decimal numbers are exact: 0.1..0.5..0.1 has the
 * double nearest to 0.3, not 0.1 + 2 * 0.1. Where x, log and lin are given two whole numbers as
 * ends, their values are rounded to whole numbers, and duplicates are removed; ends
 * written as 1.0..100 are left alone. A text that would be read as something else is written as
 * JSON, in quotes.
 */
#ifndef CS_SWEEP_RANGE_H
#define CS_SWEEP_RANGE_H

#include "sim/base/json.h"

#include <stdint.h>

enum { CS_RANGE_MAX = 1 << 20 }; /* values of one key */

/* Zeroed lists are empty and can be finished. */
typedef struct cs_values {
    const char **texts; /* JSON, each on one line; the texts are in an arena */
    uint32_t n, capacity;
} cs_values;

void cs_values_finish(cs_values *values);

/* Appends what `text` says. CS_INVALID with "origin: pointer: what is wrong", CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_range_read(const char *text, const char *origin, const char *pointer,
                                      cs_arena *arena, cs_values *values, cs_error *error);

/* Appends one value: JSON, or else taken as a text. Of an array in a document: its JSON. */
CS_MUST_CHECK cs_status cs_values_add_text(cs_values *values, const char *text, const char *origin,
                                           cs_arena *arena, cs_error *error);
CS_MUST_CHECK cs_status cs_values_add_json(cs_values *values, const cJSON *value, cs_arena *arena,
                                           cs_error *error);

#endif
