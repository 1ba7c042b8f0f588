/* Names of files that options ask to be written: a file is what its ending says. */
#ifndef CS_CLI_OUTPUT_NAME_H
#define CS_CLI_OUTPUT_NAME_H

#include "sim/cli/command.h"

/* Ended by NULL. Where "-" is among them, it means standard output. */
extern const char *const cs_endings_of_results[]; /* HDF5 */
extern const char *const cs_endings_of_sweeps[];  /* HDF5 or CSV */
extern const char *const cs_endings_of_pictures[];
extern const char *const cs_endings_of_pages[];
extern const char *const cs_endings_of_costs[];  /* JSON */
extern const char *const cs_endings_of_json[];   /* JSON, or standard output */
extern const char *const cs_endings_of_traces[]; /* JSON or Perfetto's, compressed or not */
extern const char *const cs_endings_of_topologies[];

/* CS_USAGE when the option's value ends in none of `endings`; case does not matter.
 * Devices and pipes, like /dev/null, may have any name; folders are refused where they are to be
 * written. Commands call it before they do any work. */
CS_MUST_CHECK cs_status cs_output_check(const cs_arguments *arguments, const char *option,
                                        const char *const *endings, cs_error *error);

/* Whether a name ends so, like cs_output_check has it. */
bool cs_output_ends_in(const char *name, const char *ending);

#endif
