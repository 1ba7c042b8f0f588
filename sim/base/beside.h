/* Finds files that were built or installed together with the running program. */
#ifndef CS_BASE_BESIDE_H
#define CS_BASE_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

/* Finds `name` in the first of the folders `places` (relative to the program's own,
 * NULL-terminated) where access(2) with `mode` succeeds, and writes its path. Returns false if none
 * has it. */
bool cs_beside_find(const char *name, const char *const *places, int mode, char *path, size_t size);

/* Finds a folder that comes with the program ("scenarios"; ".": their parent): in ../share/sim
 * relative to the program's own folder, in the install prefix, or in the source tree. Returns
 * `path`, which has room for CS_BESIDE_BYTES. */
enum { CS_BESIDE_BYTES = 4096 };
const char *cs_beside_shared(const char *name, char *path);

#endif
