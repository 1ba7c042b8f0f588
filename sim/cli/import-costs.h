/* `sim import nccl-tests` and `sim import osu`: turn logs into a cost file. */
#ifndef CS_CLI_IMPORT_COSTS_H
#define CS_CLI_IMPORT_COSTS_H

#include "calib/import.h"
#include "sim/cli/command.h"

/* Reader of a format: cs_import_nccl_tests or cs_import_osu. */
typedef cs_status cs_import_function(const char *name, const char *text, size_t length,
                                     const cs_import_options *options, cs_costs *costs,
                                     cs_import_report *report, cs_error *error);

/* Reads the log at `path` and writes its costs to --output, merged into --merge if given. Prints a
 * summary on standard error. */
CS_MUST_CHECK cs_status cs_import_costs(const cs_context *context, const cs_arguments *arguments,
                                        cs_import_function *import, const char *path,
                                        cs_error *error);

#endif
