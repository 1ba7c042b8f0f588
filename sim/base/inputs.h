/* The files that this program has read or written. An output must not replace one of them: whoever
 * names the scenario as the output by mistake would lose it.
 *
 * Files are known by device and inode, so that a link to an input is recognised too. This is a list
 * of the process, because files are read in many places: scenarios name models, which name others.
 * Only a program that has called cs_inputs_protect keeps it. A program that uses the library may
 * read a file in one call and write it in another.
 */
#ifndef CS_BASE_INPUTS_H
#define CS_BASE_INPUTS_H

#include "sim/base/error.h"

#include <stdbool.h>
#include <sys/stat.h>

/* Starts recording inputs. */
void cs_inputs_protect(void);

/* Records the regular file that `info` describes; ignores other kinds of files. `path`: its name in
 * messages; `written`: it is an output. */
CS_MUST_CHECK cs_status cs_inputs_add(const char *path, const struct stat *info, bool written,
                                      cs_error *error);

/* Allows a file that was read to be replaced, because results are added to it. */
void cs_inputs_allow(const char *path);

/* CS_USAGE if the file `output`, which `info` describes, is one of them. */
CS_MUST_CHECK cs_status cs_inputs_check(const char *output, const struct stat *info,
                                        cs_error *error);

#endif
