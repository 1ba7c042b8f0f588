/* The values of a varied key, for tables and files.
 *
 * Labels are short, for tables: a text without its quotes or, if all values are objects, the
 * members that differ (sim/base/json-labels.h).
 */
#ifndef CS_SWEEP_AXIS_VALUES_H
#define CS_SWEEP_AXIS_VALUES_H

#include "sim/study/sweep/space.h"

typedef struct cs_axis_values {
    uint32_t n;
    const double *numbers;     /* SI base units; NULL: not all values are numbers */
    const char *const *texts;  /* a text without its quotes, otherwise JSON; never NULL */
    const char *const *labels; /* never NULL; escaped by cs_text_show */
    const char *unit;          /* unit of the numbers: "s", "bytes", ...; "1": none */
} cs_axis_values;

/* Reads the values, which live as long as the arena and the axis. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_axis_values_read(const cs_axis *axis, cs_arena *arena,
                                            cs_axis_values *values, cs_error *error);

#endif
