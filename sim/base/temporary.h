/* Files and folders that live as long as they are needed, each in a marked folder
 * (marked-folder.h). They are also removed when the program is interrupted (interrupt.h). If the
 * program was killed, the next one that makes a temporary of the same name removes them.
 */
#ifndef CS_BASE_TEMPORARY_H
#define CS_BASE_TEMPORARY_H

#include "sim/base/error.h"
#include "sim/base/interrupt.h"
#include "sim/base/marked-folder.h"

#include <stddef.h>

typedef struct cs_temporary {
    char *folder;
    char *path; /* the requested file or folder in it; NULL: none was requested */
    cs_leftover *leftover;
    cs_marked_folder made;
} cs_temporary;

/* Makes a folder "NAME-XXXXXX" in $TMPDIR, or in /tmp if that is not set. Each X is replaced. */
CS_MUST_CHECK cs_status cs_temporary_folder(cs_temporary *temporary, const char *name,
                                            cs_error *error);

/* Makes such a folder, and in it a file with the text. */
CS_MUST_CHECK cs_status cs_temporary_file(cs_temporary *temporary, const char *name,
                                          const char *text, size_t length, cs_error *error);

/* Makes the folder BEGINNINGXXXXXX, and in it an empty file with the permissions of any new file.
 * `shown` is the path in messages. */
CS_MUST_CHECK cs_status cs_temporary_beside(cs_temporary *temporary, const char *beginning,
                                            const char *shown, cs_error *error);

/* Writes the path of the entry `name` of the folder into `path`. The entry is removed together with
 * the folder, whoever makes it; entries that were not named here stay. */
CS_MUST_CHECK cs_status cs_temporary_entry(const cs_temporary *temporary, const char *name,
                                           char *path, size_t size, cs_error *error);

/* Also makes the entry: an empty folder for other programs. */
CS_MUST_CHECK cs_status cs_temporary_subfolder(const cs_temporary *temporary, const char *name,
                                               char *path, size_t size, cs_error *error);

/* Accepts a zeroed temporary. */
void cs_temporary_remove(cs_temporary *temporary);

#endif
