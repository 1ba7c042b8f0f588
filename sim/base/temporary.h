/* Files and folders that live as long as they are needed: in $TMPDIR, or else /tmp. They are gone
 * too when the program is interrupted (interrupt.h), and when it was killed the next one that makes
 * something of that name removes them (claim.h). */
#ifndef CS_BASE_TEMPORARY_H
#define CS_BASE_TEMPORARY_H

#include "sim/base/claim.h"
#include "sim/base/error.h"
#include "sim/base/interrupt.h"

#include <stddef.h>

typedef struct cs_temporary {
    char *path;
    cs_leftover *leftover;
    cs_claim claim;
} cs_temporary;

/* "NAME-XXXXXX", each X chosen: a file that holds the text and that only its owner may read, or an
 * empty folder. */
CS_MUST_CHECK cs_status cs_temporary_file(cs_temporary *temporary, const char *name,
                                          const char *text, size_t length, cs_error *error);
CS_MUST_CHECK cs_status cs_temporary_folder(cs_temporary *temporary, const char *name,
                                            cs_error *error);

/* Removes it, a folder with all that is in it. Accepts zeroed ones. */
void cs_temporary_remove(cs_temporary *temporary);

#endif
