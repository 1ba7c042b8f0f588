/* Whole files: read in one call, and written completely or not at all.
 *
 * A result is written into a temporary folder next to the final file, flushed to disk and renamed.
 * Whatever happens in between (full disk, SIGKILL), a reader sees the earlier file or the complete
 * new one, never a part. Links are followed: the target is replaced, or created if it does not
 * exist. The new file gets the permissions of any new file (umask), not the earlier file's.
 * A path that exists and is neither a file nor a folder (/dev/null, a terminal, a pipe) is written
 * in place; a pipe that no program reads is refused. A file that the program has read is not
 * replaced (inputs.h). temporary.h says when the temporary folder is removed.
 */
#ifndef CS_BASE_FILE_H
#define CS_BASE_FILE_H

#include "sim/base/error.h"
#include "sim/base/temporary.h"

#include <stdbool.h>
#include <stddef.h>

/* Reads a file of at most `limit` bytes. *text is NUL-terminated (the NUL is not counted in
 * *length); the caller frees it. Errors name the path: CS_INVALID if it does not exist, is a folder
 * or a device, is unreadable or too large; CS_IO if reading fails half-way. A pipe is read to its
 * end, and refused if no program writes into it. */
CS_MUST_CHECK cs_status cs_file_read(const char *path, size_t limit, char **text, size_t *length,
                                     cs_error *error);

typedef struct cs_file_draft {
    char *path;      /* the final name */
    char *temporary; /* path to write to, on the same file system; for a device, its own path */
    cs_temporary made;
    bool piped; /* the path names a pipe, which is open as `pipe` */
    int pipe;
} cs_file_draft;

/* Whether `path` may be the name of an output, as far as this can be known without creating it. "-"
 * (standard output) may. */
CS_MUST_CHECK cs_status cs_file_check_output(const char *path, cs_error *error);

/* Creates the temporary file, empty, so that an unwritable folder is reported before the work
 * starts. CS_USAGE: the path names an input. */
CS_MUST_CHECK cs_status cs_file_draft_begin(cs_file_draft *draft, const char *path,
                                            cs_error *error);

/* Whether the path is a device or a pipe, which is written in place. */
bool cs_file_draft_is_direct(const cs_file_draft *draft);

/* Flushes the temporary file to disk and gives it the final name. The draft is finished either way.
 * On failure the temporary file is removed and the earlier file untouched, except if only the final
 * flush of the folder failed: then the new file is in place but might not survive a power cut. */
CS_MUST_CHECK cs_status cs_file_draft_commit(cs_file_draft *draft, cs_error *error);

/* Removes temporary files of this output whose writers have died. Files of running writers stay. */
void cs_file_clear_drafts(const char *path);

/* Removes the temporary file. Accepts a draft that was committed, dropped or zeroed. */
void cs_file_draft_drop(cs_file_draft *draft);

/* Writes a whole file through a draft. "-" is standard output. */
CS_MUST_CHECK cs_status cs_file_write(const char *path, const char *text, size_t length,
                                      cs_error *error);

/* Writes all bytes to an open file, in several write() calls if needed. On failure errno holds the
 * cause. */
bool cs_file_write_all(int fd, const char *text, size_t length);

/* Resolves `name` relative to the folder of the file `from`; absolute names stay. The caller frees
 * the result; NULL if memory runs out. */
char *cs_file_relative(const char *from, const char *name);

#endif
