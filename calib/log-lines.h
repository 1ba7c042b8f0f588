/* Logs of foreign tools, line by line, each divided into words. Internal to calib.
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
    const char *text; /* not terminated */
    size_t length;
} cs_log_word;

typedef struct cs_log_lines {
    const char *name; /* of the file */
    const char *next, *end;
    uint32_t line;                   /* from 1 */
    bool cut_off;                    /* this line has no newline behind it */
    cs_log_word words[CS_LOG_WORDS]; /* what is beyond is not looked at */
    uint32_t n_words;
    uint32_t prefix_words; /* before the "#" of the last comment */
    char prefix_end;       /* the character directly before that "#"; 0: none, or a blank */
} cs_log_lines;

void cs_log_begin(cs_log_lines *log, const char *name, const char *text, size_t length);

/* Reads the next line. Returns false after the last line. */
bool cs_log_next(cs_log_lines *log);

bool cs_log_is(const cs_log_lines *log, uint32_t word, const char *text);

/* The position of the word from `first` on, or CS_LOG_WORDS. */
uint32_t cs_log_find(const cs_log_lines *log, const char *text, uint32_t first);

/* False when the word is no number, or is not there. */
bool cs_log_number(const cs_log_lines *log, uint32_t word, double *out);
/* What the last digit of that number counts: 0.01 of "1.61", 1 of "42962"; 0 of other ways to write
 * one. */
double cs_log_resolution(const cs_log_lines *log, uint32_t word);
/* A whole number from 0 to 2^53. */
bool cs_log_count(const cs_log_lines *log, uint32_t word, int64_t *out);

/* The word as a terminated text, cut off at the size; "" when it is not there. */
char *cs_log_copy(const cs_log_lines *log, uint32_t word, char *text, size_t size);
/* Likewise from a word to the end of the line. */
char *cs_log_rest(const cs_log_lines *log, uint32_t word, char *text, size_t size);

/* "file:line: message", CS_INVALID. */
cs_status cs_log_invalid(const cs_log_lines *log, cs_error *error, const char *format, ...)
    CS_PRINTF(3, 4);

#endif
