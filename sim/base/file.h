/* Whole files: read at once, written at once or not at all.
 *
 * A result is written into a temporary folder next to the final file, flushed to the disk and
 * renamed: a reader sees the earlier file or the complete new one, never a part, whatever happens
 * in between (full disk, SIGKILL). A link is followed: its target is replaced, or created if it
 * does not exist. The new file has the permissions of any new file (the umask); the permissions of the
 * earlier file are not kept. What exists and is neither a file nor a folder (/dev/null, a terminal, a pipe) is
 * written in place; a pipe that no program reads is refused. A file that the program has read is not
 * replaced (inputs.h). temporary.h says when the temporary folder is removed.
 */
#ifndef CS_BASE_FILE_H
#define CS_BASE_FILE_H

#include "sim/base/error.h"
#include "sim/base/temporary.h"

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
    char *temporary; /* the path to write to, on the same file system; of a device, its own path */
    cs_temporary made;
    bool piped; /* the path names a pipe, held open as `pipe` */
    int pipe;
} cs_file_draft;

/* Whether this may be the name of an output, as far as can be known without creating it. "-",
 * standard output, may. */
CS_MUST_CHECK cs_status cs_file_check_output(const char *path, cs_error *error);

/* Creates the temporary file, empty, so that an unwritable folder is known before the work starts.
 * CS_USAGE: the path names an input. */
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
