/* `sim import run`: a run description becomes a scenario. */
#ifndef CS_CLI_IMPORT_RUN_H
#define CS_CLI_IMPORT_RUN_H

#include "sim/cli/command.h"
#include "sim/run/recipe/recipe.h"

/* Writes the scenario of a recipe to a file ("-": standard output). Assumptions go to the
 * log. CS_FAILED: something is missing. */
CS_MUST_CHECK cs_status cs_recipe_write(const cs_context *context, const cs_recipe *recipe,
                                        const char *name, const char *path, cs_error *error);

/* Reads the description in the file that the second word names, writes its scenario to --output,
 * and says on standard error what each key of the description does. */
CS_MUST_CHECK cs_status cs_import_run(const cs_context *context, const cs_arguments *arguments,
                                      cs_error *error);

#endif
