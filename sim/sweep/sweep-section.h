/* The section "sweep" of a scenario: which keys take which values. */
#ifndef CS_SWEEP_SWEEP_SECTION_H
#define CS_SWEEP_SWEEP_SECTION_H

#include "sim/base/field.h"
#include "sim/sweep/space.h"

/* Its keys. */
extern const cs_field cs_sweep_fields[];

/* Fills `space`, begun by cs_space_init, from the section of the scenario in the file `path`. */
CS_MUST_CHECK cs_status cs_sweep_section_read(const cJSON *sweep, const char *path, cs_space *space,
                                              cs_error *error);

#endif
