/* What comes with the program: pages, scenarios, measured runs. */
#ifndef CS_CLI_SHARE_H
#define CS_CLI_SHARE_H

#include <limits.h>

/* Where `name` is, "" for the folder of all: installed together with this program, else in the
 * source tree that it was built from, else where it was meant to be installed. Is in `path`;
 * returns it. */
const char *cs_share_path(const char *name, char path[PATH_MAX]);

#endif
