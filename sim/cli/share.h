/* What comes with the program: pages, scenarios, measured runs. */
#ifndef CS_CLI_SHARE_H
#define CS_CLI_SHARE_H

/* The path of `name`, "" for all, where it is installed, else in the source tree it was built from.
 * In `path`; returns it. */
enum { CS_SHARE_BYTES = 4096 };
const char *cs_share_path(const char *name, char path[CS_SHARE_BYTES]);

#endif
