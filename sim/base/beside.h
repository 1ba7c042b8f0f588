/* Files that were built or installed together with the running program. */
#ifndef CS_BASE_BESIDE_H
#define CS_BASE_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

/* The path of the file that can be read (and, where `mode` has X_OK, be run) in the first of
 * `places`, folders relative to the program's own, ended by NULL. False when there is none. */
bool cs_beside_find(const char *name, const char *const *places, int mode, char *path, size_t size);

/* Finds a folder that comes with the program ("scenarios"; ".": their parent): in ../share/sim, as
 * seen from the program's own folder, or in the install prefix, or in the source tree. Returns `path`, which has room for CS_BESIDE_BYTES. */
enum { CS_BESIDE_BYTES = 4096 };
const char *cs_beside_shared(const char *name, char *path);

#endif
