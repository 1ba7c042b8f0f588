/* The values of a varied key, for those who show or store them.
 *
 * Labels are short, for tables: a text without its quotes, or, where all values are objects, what
 * tells them apart (sim/base/json-labels.h).
 */
#ifndef CS_SWEEP_AXIS_VALUES_H
#define CS_SWEEP_AXIS_VALUES_H

#include "sim/study/sweep/space.h"

typedef struct cs_axis_values {
    uint32_t n;
    const double *numbers;     /* in SI base units; NULL where not all values are numbers */
    const char *const *texts;  /* a text without its quotes, else JSON; never NULL */
    const char *const *labels; /* never NULL; as cs_text_show shows them */
    const char *unit;          /* of the numbers: "s", "bytes", ...; "1" where there is none */
} cs_axis_values;

/* What is handed out lives as long as the arena and the axis. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_axis_values_read(const cs_axis *axis, cs_arena *arena,
                                            cs_axis_values *values, cs_error *error);

#endif
