/* The files that this process has read or written. An output must not replace one of them: a user
 * who names the scenario as the output by mistake would lose it.
 *
 * Files are identified by device and inode, so that a link to an input is recognised too. The list
 * belongs to the process because files are read in many places: scenarios name models, which name
 * other files. It is kept only after cs_inputs_protect; a program that uses the library may read a
 * file in one call and write it in another.
 */
#ifndef CS_BASE_INPUTS_H
#define CS_BASE_INPUTS_H

#include "sim/base/error.h"

#include <stdbool.h>
#include <sys/stat.h>

/* Starts recording files. */
void cs_inputs_protect(void);

/* Records the regular file described by `info`; ignores other kinds of files. `path`: its name in
 * messages; `written`: it is an output. */
CS_MUST_CHECK cs_status cs_inputs_add(const char *path, const struct stat *info, bool written,
                                      cs_error *error);

/* Allows an input to be replaced, because results are added to it. */
void cs_inputs_allow(const char *path);

/* Returns CS_USAGE if the file `output`, described by `info`, is on the list. */
CS_MUST_CHECK cs_status cs_inputs_check(const char *output, const struct stat *info,
                                        cs_error *error);

#endif
