/* Temporary files and folders, each in a marked folder (marked-folder.h). They are also removed if
 * the program is interrupted (interrupt.h). If it was killed, the next process that makes a
 * temporary with the same name removes them.
 */
#ifndef CS_BASE_TEMPORARY_H
#define CS_BASE_TEMPORARY_H

#include "sim/base/error.h"
#include "sim/base/interrupt.h"
#include "sim/base/marked-folder.h"

#include <stddef.h>

typedef struct cs_temporary {
    char *folder;
    char *path; /* the requested file or folder; NULL: none was requested */
    cs_leftover *leftover;
    cs_marked_folder made;
} cs_temporary;

/* Makes a folder "NAME-XXXXXX" in $TMPDIR, or in /tmp if that is not set, with random letters for
 * the Xs. */
CS_MUST_CHECK cs_status cs_temporary_folder(cs_temporary *temporary, const char *name,
                                            cs_error *error);

/* Makes such a folder with a file that contains `text`. */
CS_MUST_CHECK cs_status cs_temporary_file(cs_temporary *temporary, const char *name,
                                          const char *text, size_t length, cs_error *error);

/* Makes the folder BEGINNINGXXXXXX with an empty file that has the permissions of any new file.
 * Messages show the path `shown`. */
CS_MUST_CHECK cs_status cs_temporary_beside(cs_temporary *temporary, const char *beginning,
                                            const char *shown, cs_error *error);

/* Writes the path of the entry `name` of the folder into `path`. The entry is removed with the
 * folder, whichever program creates it; entries that were not registered here stay. */
CS_MUST_CHECK cs_status cs_temporary_entry(const cs_temporary *temporary, const char *name,
                                           char *path, size_t size, cs_error *error);

/* Also creates the entry as an empty folder, for other programs. */
CS_MUST_CHECK cs_status cs_temporary_subfolder(const cs_temporary *temporary, const char *name,
                                               char *path, size_t size, cs_error *error);

/* Removes the folder and its registered entries. Accepts a zeroed struct. */
void cs_temporary_remove(cs_temporary *temporary);

#endif
