/* Names of output files: the suffix determines the format. */
#ifndef CS_CLI_OUTPUT_NAME_H
#define CS_CLI_OUTPUT_NAME_H

#include "sim/cli/command.h"

/* Suffixes, NULL-terminated. "-" means standard output. */
extern const char *const cs_endings_of_results[]; /* HDF5 */
extern const char *const cs_endings_of_sweeps[];  /* HDF5 or CSV */
extern const char *const cs_endings_of_pictures[];
extern const char *const cs_endings_of_pages[];
extern const char *const cs_endings_of_costs[];  /* JSON */
extern const char *const cs_endings_of_json[];   /* JSON, or standard output */
extern const char *const cs_endings_of_traces[]; /* JSON or Perfetto's, compressed or not */
extern const char *const cs_endings_of_topologies[];

/* Returns CS_USAGE unless the option's value ends in one of `endings`, in any case. Devices and
 * pipes such as /dev/null may have any name; folders are refused when they are written. Commands
 * call it before they start working. */
CS_MUST_CHECK cs_status cs_output_check(const cs_arguments *arguments, const char *option,
                                        const char *const *endings, cs_error *error);

/* Whether a name has this suffix, by the rules of cs_output_check. */
bool cs_output_ends_in(const char *name, const char *ending);

#endif
