/* The section "sweep" of a scenario, and what the keys of scenarios are measured in. */
#ifndef CS_SWEEP_SWEEP_SECTION_H
#define CS_SWEEP_SWEEP_SECTION_H

#include "sim/base/field.h"
#include "sim/study/sweep/space.h"

/* The keys of the section. */
extern const cs_field cs_sweep_fields[];

/* Fills `space`, begun by cs_space_init, from the section of the scenario in the file `path`, and
 * closes it. CS_INVALID, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_sweep_section_read(const char *path, const cJSON *sweep, cs_space *space,
                                              cs_error *error);

/* Sets the quantities of the keys, of a closed space. */
void cs_sweep_set_quantities(cs_space *space);

#endif
