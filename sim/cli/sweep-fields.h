/* The keys of the section "sweep" of a scenario. */
#ifndef CS_CLI_SWEEP_FIELDS_H
#define CS_CLI_SWEEP_FIELDS_H

#include "sim/base/field.h"

extern const cs_field cs_sweep_fields[];

#endif
