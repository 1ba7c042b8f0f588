/* Messages for users, on standard error, by level. Libraries below the command line return errors
 * and never print; a command owns one cs_log. */
#ifndef CS_BASE_LOG_H
#define CS_BASE_LOG_H

#include "sim/base/error.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum cs_log_level { CS_LOG_ERROR, CS_LOG_WARNING, CS_LOG_INFO, CS_LOG_DEBUG } cs_log_level;

typedef struct cs_log {
    FILE *out;          /* NULL: all messages are dropped */
    cs_log_level level; /* messages above it are dropped */
} cs_log;

/* Writes "sim: warning: text\n". Info messages have no level name. */
void cs_log_write(const cs_log *log, cs_log_level level, const char *format, ...) CS_PRINTF(3, 4);

/* Writes each message on its own line, then the number of messages that were dropped. */
void cs_log_each(const cs_log *log, cs_log_level level, const cs_error *messages);

/* Writes errors. */
void cs_log_error(const cs_log *log, const cs_error *error);

/* Parses "error", "warning", "info" or "debug". Returns false for other names. */
bool cs_log_level_parse(const char *name, cs_log_level *level);

#endif
