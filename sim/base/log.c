#include "sim/base/log.h"

#include "sim/base/text.h"

#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = {
    [CS_LOG_ERROR] = "error",
    [CS_LOG_WARNING] = "warning",
    [CS_LOG_INFO] = "info",
    [CS_LOG_DEBUG] = "debug",
};

enum { LEVELS = sizeof(level_names) / sizeof(level_names[0]) };

/* The stream is locked for the whole line, so that lines of several threads do not mix. If standard
 * error cannot be written, nobody can be told, so results of printing are ignored. */
void cs_log_write(const cs_log *log, cs_log_level level, const char *format, ...)
{
    if (!log->out || level > log->level)
        return;
    va_list arguments;
    va_start(arguments, format);
    flockfile(log->out);
    if (level == CS_LOG_INFO)
        fputs("sim: ", log->out);
    else
        fprintf(log->out, "sim: %s: ", level_names[level]);
    /* Format the whole message (truncated if memory runs out) and print it line by line, with
     * characters escaped that a terminal would interpret. */
    char few[1024], *text = few;
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(few, sizeof(few), format, arguments);
    if (length >= (int)sizeof(few) && (text = malloc((size_t)length + 1)))
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    const char *line = text ? text : few;
    for (bool more = true; more;) {
        const size_t bytes = strcspn(line, "\n");
        cs_text_print(log->out, line, bytes);
        fputc('\n', log->out);
        more = line[bytes] == '\n';
        line += bytes + more;
    }
    if (text != few)
        free(text);
    funlockfile(log->out);
    va_end(arguments);
}

void cs_log_each(const cs_log *log, cs_log_level level, const cs_error *messages)
{
    const char *line = messages->text;
    while (*line) {
        size_t length = strcspn(line, "\n");
        cs_log_write(log, level, "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
    if (messages->count > messages->stored)
        cs_log_write(log, level, "and %u more", messages->count - messages->stored);
}

void cs_log_error(const cs_log *log, const cs_error *error)
{
    cs_log_each(log, CS_LOG_ERROR, error);
}

bool cs_log_level_parse(const char *name, cs_log_level *level)
{
    for (int i = 0; i < LEVELS; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *level = (cs_log_level)i;
            return true;
        }
    }
    return false;
}
