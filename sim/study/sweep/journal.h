/* Results of a sweep so far, on disk: a sweep that was killed at any moment can be resumed.
 *
 * A text file next to the output: a first line that identifies the sweep, then a line per finished
 * point, in any order. Each line begins with a hash of the rest, so that an incomplete line
 * (killed, disk full, power cut) is detected; it and all later lines are dropped and computed
 * again. The file is created together with its first line, so a file without that line belongs to
 * somebody else: it is an error, and is left as it is. Lines are written immediately and flushed to
 * disk ten times a second: a power cut loses that much work, a killed process none. The journal is
 * locked while its sweep runs.
 *
 * cs_journal_read reads records back from the file. Without a path the journal is an unnamed
 * temporary file.
 */
#ifndef CS_SWEEP_JOURNAL_H
#define CS_SWEEP_JOURNAL_H

#include "sim/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cs_journal {
    const char *what; /* for messages: "sweep" */
    char *path;       /* NULL: unnamed */
    int file;         /* -1: not open */
    uint64_t end;
    bool unflushed;
    double flushed; /* cs_clock_seconds() of the latest flush */
} cs_journal;

/* Position of a record's text. */
typedef struct cs_journal_place {
    uint64_t start;
    uint64_t length; /* bytes; 0: no record */
} cs_journal_place;

/* Called for each record of an earlier run. Returns false for a record that it cannot use, which
 * ends the reading. `text` is NUL-terminated. */
typedef bool cs_journal_reader(void *context, const char *text, cs_journal_place place);

/* Opens the journal at `path` (NULL: unnamed) for the work that `identity` hashes; `what` is its
 * name in messages. With `resume`, passes the existing records to `reader`; CS_INVALID: the journal
 * belongs to other work. Without, starts again; CS_USAGE: it already has results of this work,
 * which must not be lost by mistake. */
CS_MUST_CHECK cs_status cs_journal_open(cs_journal *journal, const char *what, const char *path,
                                        uint64_t identity, bool resume, cs_journal_reader *reader,
                                        void *context, cs_error *error);

/* Closes the journal and keeps the file. Accepts an unopened struct with file -1. */
void cs_journal_close(cs_journal *journal);

/* Removes the file of a completed sweep. Keeps a different file that now has its name. */
void cs_journal_remove(cs_journal *journal);

/* Appends a record, a text without newlines. */
CS_MUST_CHECK cs_status cs_journal_append(cs_journal *journal, const char *text, size_t length,
                                          cs_journal_place *place, cs_error *error);

/* Flushes to disk if `now` or if the last flush was a while ago. */
CS_MUST_CHECK cs_status cs_journal_flush(cs_journal *journal, bool now, cs_error *error);

/* Reads a record back; the caller frees it. */
CS_MUST_CHECK cs_status cs_journal_read(const cs_journal *journal, cs_journal_place place,
                                        char **text, cs_error *error);

#endif
