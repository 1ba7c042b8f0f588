/* Whose is a temporary file or folder? Who makes one holds a lock on it (flock), which goes with
 * the process, however that ends: what nobody holds was left behind by one that was killed, and is
 * removed when the next one makes something of that name.
 *
 * A file system without such locks keeps what is left behind; nothing that is in use is removed.
 */
#ifndef CS_BASE_CLAIM_H
#define CS_BASE_CLAIM_H

#include <stdbool.h>

/* Of the process; 0: none. */
typedef int cs_claim;

/* Right after it was made. False when it is gone: somebody took it for left behind, and another
 * has to be made. Without locks the claim is none. */
bool cs_claim_take(const char *path, cs_claim *claim);

/* Accepts none. */
void cs_claim_release(cs_claim *claim);

/* Removes the files, and the folders with their files, that begin with `beginning` (a path), end in
 * six more characters, are this user's and nobody's claim. */
void cs_claim_clear(const char *beginning);

/* A file, or a folder with the files in it. */
void cs_claim_remove(const char *path);

#endif
