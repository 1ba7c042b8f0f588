/* What a sweep has done so far, on the disk: with it, a sweep that was killed at any moment can be
 * resumed.
 *
 * A text file beside the output: a line that says which sweep it belongs to, then a line per
 * finished point, in any order. Each line begins with a hash of the rest of it, so that one that
 * was torn (killed, disk full, power cut) is seen; it and what follows it are dropped and done
 * again. The file is created together with its first line. So a file without that line is somebody
 * else's: it is an error, and stays as it is. Lines are written at once, and flushed to the disk ten
 * times a second: that much work is lost with the power, none with a killed process. While a sweep
 * runs its journal is locked.
 *
 * A record that is looked up later (cs_journal_read) is read back from the file. Without a path the
 * journal is a temporary file without a name.
 */
#ifndef CS_SWEEP_JOURNAL_H
#define CS_SWEEP_JOURNAL_H

#include "sim/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cs_journal {
    const char *what; /* it is of, for messages: "sweep" */
    char *path;       /* NULL without a name */
    int file;         /* -1: not open */
    uint64_t end;
    bool unflushed;
    double flushed; /* s, of a clock of its own */
} cs_journal;

/* Where a record's text is. */
typedef struct cs_journal_place {
    uint64_t start;
    uint64_t length; /* 0: nowhere */
} cs_journal_place;

/* Is handed each record of an earlier run; false for one that it cannot use, which ends the
 * reading there. `text` ends with a NUL. */
typedef bool cs_journal_reader(void *context, const char *text, cs_journal_place place);

/* Opens the journal at `path` (NULL: one without a name) for the sweep, or `what` it is, that
 * `identity` hashes. With `resume`, hands out what is there; CS_INVALID when it belongs to another
 * sweep. Without, begins anew; CS_USAGE when there are points of this very sweep, which should not
 * be lost by mistake. */
CS_MUST_CHECK cs_status cs_journal_open(cs_journal *journal, const char *what, const char *path,
                                        uint64_t identity, bool resume, cs_journal_reader *reader,
                                        void *context, cs_error *error);

/* Closes it, and keeps the file. Accepts one that was not opened but zeroed with file -1. */
void cs_journal_close(cs_journal *journal);

/* Removes the file when the sweep is complete. A different file that now has its name stays. */
void cs_journal_remove(cs_journal *journal);

/* Appends a record, text on one line. */
CS_MUST_CHECK cs_status cs_journal_append(cs_journal *journal, const char *text, size_t length,
                                          cs_journal_place *place, cs_error *error);

/* Flushes to the disk, if the last time was a while ago or `now`. */
CS_MUST_CHECK cs_status cs_journal_flush(cs_journal *journal, bool now, cs_error *error);

/* Reads a record back; the caller frees it. */
CS_MUST_CHECK cs_status cs_journal_read(const cs_journal *journal, cs_journal_place place,
                                        char **text, cs_error *error);

#endif
