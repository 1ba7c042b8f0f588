/* The points of `sim sweep`: from the command line, a CSV file, or the scenario. */
#ifndef CS_CLI_SWEEP_POINTS_H
#define CS_CLI_SWEEP_POINTS_H

#include "sim/cli/command.h"
#include "sim/study/sweep/space.h"

/* Fills `space`, which cs_space_init has initialised, from --vary, --zip and --csv or, without
 * --vary and --csv, from the document's "sweep". Sets the keys' quantities. */
CS_MUST_CHECK cs_status cs_sweep_points(const cs_arguments *arguments, const cJSON *document,
                                        cs_space *space, cs_error *error);

/* Returns the command line without the options that do not affect results. The caller frees it;
 * NULL if memory runs out. */
char *cs_sweep_command_of(const cs_arguments *arguments);

#endif
