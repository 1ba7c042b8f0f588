/* `sim validate --fit`: one factor fitted to a user's runs, as text or JSON, and as a file. */
#ifndef CS_CLI_VALIDATE_FIT_H
#define CS_CLI_VALIDATE_FIT_H

#include "sim/cli/command.h"
#include "sim/study/validate/fit-runs.h"

/* CS_USAGE: options that are incompatible with --fit, or that need it. */
CS_MUST_CHECK cs_status cs_validate_check_fit(const cs_arguments *arguments, cs_error *error);

/* Fits, prints, and writes the files that --output and --runtime-output name. */
CS_MUST_CHECK cs_status cs_validate_fit(const cs_context *context, const cs_arguments *arguments,
                                        const cs_point *const *points, uint32_t n,
                                        const cs_scenario_change *change, uint32_t jobs,
                                        cs_error *error);

#endif
