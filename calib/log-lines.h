/* Logs of foreign tools, line by line, split into words. Internal to calib.
 *
 * Launchers and containers add a prefix to each line: a time stamp of kubectl or journalctl, a
 * label of srun, mpirun, torchrun or Docker Compose, a colour. Prefixes are not recognised by their
 * form: the tools begin their headers with a "#", and the text before it is the prefix. The rows
 * below a header have prefixes with the same number of words.
 */
#ifndef CS_CALIB_LOG_LINES_H
#define CS_CALIB_LOG_LINES_H

#include "sim/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CS_LOG_WORDS = 40, CS_LOG_WORD_BYTES = 128 };

typedef struct cs_log_word {
    const char *text; /* not NUL-terminated */
    size_t length;
} cs_log_word;

typedef struct cs_log_lines {
    const char *name; /* name of the file */
    const char *next, *end;
    uint32_t line;                   /* from 1 */
    bool cut_off;                    /* this line has no newline */
    cs_log_word words[CS_LOG_WORDS]; /* further words are ignored */
    uint32_t n_words;
    uint32_t prefix_words; /* words before the "#" of the latest comment */
    char prefix_end;       /* character directly before that "#"; 0: none, or a blank */
} cs_log_lines;

void cs_log_begin(cs_log_lines *log, const char *name, const char *text, size_t length);

/* Reads the next line. Returns false after the last line. */
bool cs_log_next(cs_log_lines *log);

bool cs_log_is(const cs_log_lines *log, uint32_t word, const char *text);

/* Returns the index of the word, from `first` on; CS_LOG_WORDS: not found. */
uint32_t cs_log_find(const cs_log_lines *log, const char *text, uint32_t first);

/* Reads a number. Returns false if the word is not a number or does not exist. */
bool cs_log_number(const cs_log_lines *log, uint32_t word, double *out);
/* Value of one unit in the last digit of that number: 0.01 for "1.61", 1 for "42962"; 0 for other
 * notations. */
double cs_log_resolution(const cs_log_lines *log, uint32_t word);
/* Reads a whole number from 0 to 2^53. */
bool cs_log_count(const cs_log_lines *log, uint32_t word, int64_t *out);

/* Copies the word as a NUL-terminated text, truncated to `size`; "" if it does not exist. */
char *cs_log_copy(const cs_log_lines *log, uint32_t word, char *text, size_t size);
/* Copies the line from a word to its end, likewise. */
char *cs_log_rest(const cs_log_lines *log, uint32_t word, char *text, size_t size);

/* Adds "file:line: message"; returns CS_INVALID. */
cs_status cs_log_invalid(const cs_log_lines *log, cs_error *error, const char *format, ...)
    CS_PRINTF(3, 4);

#endif
