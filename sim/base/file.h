/* Whole files: read at once, written at once or not at all.
 *
 * A result is written under a temporary name in the folder of the final one, flushed to the disk
 * and renamed: a reader sees the earlier file or the complete new one, never a part, whatever
 * happens in between (full disk, SIGKILL). A link is followed: the file behind it is replaced. The
 * new file has the permissions of any new file (the umask), not those of the earlier one. What
 * exists and is neither a file nor a folder (/dev/null, a terminal, a pipe) is written in place; a
 * pipe that no program reads is refused.
 * The temporary file is gone when the program is interrupted (interrupt.h); one of a program that
 * was killed, when the next one writes a file of that name (claim.h).
 */
#ifndef CS_BASE_FILE_H
#define CS_BASE_FILE_H

#include "sim/base/claim.h"
#include "sim/base/error.h"
#include "sim/base/interrupt.h"

#include <stdbool.h>
#include <stddef.h>

/* Reads a file of at most `limit` bytes. *text is NUL-terminated (the NUL not counted in *length)
 * and the caller's to free(). Errors name the path: CS_INVALID when it is not there, a folder, a
 * device, unreadable or too large, CS_IO when reading fails half-way. A pipe is read to its end, and
 * refused when no program writes into it. */
CS_MUST_CHECK cs_status cs_file_read(const char *path, size_t limit, char **text, size_t *length,
                                     cs_error *error);

typedef struct cs_file_draft {
    char *path;      /* the final name */
    char *temporary; /* the name to write to, in the same folder; of a device, its own name */
    cs_leftover *leftover;
    cs_claim claim;
    bool piped; /* the path names a pipe, held open as `pipe` */
    int pipe;
} cs_file_draft;

/* Creates the temporary file, empty, so that an unwritable folder is known before the work starts.
 */
CS_MUST_CHECK cs_status cs_file_draft_begin(cs_file_draft *draft, const char *path,
                                            cs_error *error);

/* Whether the path is that of a device or a pipe, which is written in place. */
bool cs_file_draft_is_direct(const cs_file_draft *draft);

/* Flushes the temporary file to the disk and gives it the final name. The draft is finished either
 * way; on failure the temporary file is gone and the earlier file is untouched, except when
 * flushing the folder afterwards is what failed: then the new file is there, though perhaps not
 * after a power cut. */
CS_MUST_CHECK cs_status cs_file_draft_commit(cs_file_draft *draft, cs_error *error);

/* Removes the temporary files of this output whose writers have died. Those of living ones stay. */
void cs_file_clear_drafts(const char *path);

/* Removes the temporary file. Accepts a draft that was committed, dropped or zeroed. */
void cs_file_draft_drop(cs_file_draft *draft);

/* Writes the bytes as a whole file through a draft. "-" is standard output. */
CS_MUST_CHECK cs_status cs_file_write(const char *path, const char *text, size_t length,
                                      cs_error *error);

/* Writes all bytes to an open file, also when that takes several write()s. On failure errno says
 * why. */
bool cs_file_write_all(int fd, const char *text, size_t length);

/* `name` as seen from the folder of the file `from`; absolute names stay. The caller frees it;
 * NULL when memory runs out. */
char *cs_file_relative(const char *from, const char *name);

#endif
