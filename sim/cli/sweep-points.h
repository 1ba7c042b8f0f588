/* Which points `sim sweep` runs: from the command line, a CSV file, or the scenario. */
#ifndef CS_CLI_SWEEP_POINTS_H
#define CS_CLI_SWEEP_POINTS_H

#include "sim/cli/command.h"
#include "sim/study/sweep/space.h"

/* Fills `space`, begun by cs_space_init, from --vary, --zip and --csv; without --vary and --csv
 * from the document's "sweep". Sets the keys' quantities. */
CS_MUST_CHECK cs_status cs_sweep_points(const cs_arguments *arguments, const cJSON *document,
                                        cs_space *space, cs_error *error);

/* What was asked for, as a command line: without the options that do not change results. The caller
 * frees it; NULL when memory runs out. */
char *cs_sweep_command_of(const cs_arguments *arguments);

#endif
