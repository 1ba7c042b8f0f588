#include "calib/log-lines.h"

#include "sim/base/number.h"
#include "sim/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void cs_log_begin(cs_log_lines *log, const char *name, const char *text, size_t length)
{
    *log = (cs_log_lines){.name = name, .next = text, .end = text + length};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "[1,0]<stdout>:" */
static const char *skip_tag(const char *from, const char *end)
{
    static const char tag[] = "]<stdout>:";
    const char *at = from;
    if (at == end || *at++ != '[')
        return from;
    while (at < end && (is_digit(*at) || *at == ','))
        at++;
    if ((size_t)(end - at) < strlen(tag) || memcmp(at, tag, strlen(tag)) != 0)
        return from;
    return at + strlen(tag);
}

bool cs_log_next(cs_log_lines *log)
{
    if (log->next == log->end)
        return false;
    const char *newline = memchr(log->next, '\n', (size_t)(log->end - log->next));
    log->line_end = newline ? newline : log->end;
    log->cut_off = newline == NULL;
    log->line++;
    log->n_words = 0;
    const char *at = skip_tag(log->next, log->line_end);
    while (at < log->line_end && log->n_words < CS_LOG_WORDS) {
        while (at < log->line_end && is_blank(*at))
            at++;
        const char *word = at;
        while (at < log->line_end && !is_blank(*at))
            at++;
        if (at > word)
            log->words[log->n_words++] = (cs_log_word){word, (size_t)(at - word)};
    }
    log->next = newline ? newline + 1 : log->end;
    return true;
}

bool cs_log_is(const cs_log_lines *log, uint32_t word, const char *text)
{
    return word < log->n_words && log->words[word].length == strlen(text) &&
           memcmp(log->words[word].text, text, strlen(text)) == 0;
}

uint32_t cs_log_find(const cs_log_lines *log, const char *text, uint32_t first)
{
    for (uint32_t i = first; i < log->n_words; i++)
        if (cs_log_is(log, i, text))
            return i;
    return CS_LOG_WORDS;
}

bool cs_log_number(const cs_log_lines *log, uint32_t word, double *out)
{
    return word < log->n_words &&
           cs_number_parse(log->words[word].text, log->words[word].length, out);
}

double cs_log_resolution(const cs_log_lines *log, uint32_t word)
{
    double step = 1;
    bool behind_point = false;
    if (word >= log->n_words)
        return 0;
    for (size_t i = 0; i < log->words[word].length; i++) {
        const char c = log->words[word].text[i];
        if (!is_digit(c) && (c != '.' || behind_point))
            return 0;
        step /= behind_point ? 10 : 1;
        behind_point |= c == '.';
    }
    return step;
}

bool cs_log_count(const cs_log_lines *log, uint32_t word, int64_t *out)
{
    double value;
    if (word >= log->n_words)
        return false;
    for (size_t i = 0; i < log->words[word].length; i++)
        if (!is_digit(log->words[word].text[i]))
            return false;
    if (!cs_log_number(log, word, &value) || value > 0x1p53)
        return false;
    *out = (int64_t)value;
    return true;
}

static char *copy(const char *from, size_t length, char *text, size_t size)
{
    length = length < size ? length : size - 1;
    memcpy(text, from, length);
    text[length] = '\0';
    return text;
}

char *cs_log_copy(const cs_log_lines *log, uint32_t word, char *text, size_t size)
{
    text[0] = '\0';
    return word < log->n_words ? copy(log->words[word].text, log->words[word].length, text, size)
                               : text;
}

char *cs_log_rest(const cs_log_lines *log, uint32_t word, char *text, size_t size)
{
    text[0] = '\0';
    if (word >= log->n_words)
        return text;
    const char *from = log->words[word].text, *to = log->line_end;
    while (to > from && is_blank(to[-1]))
        to--;
    return copy(from, (size_t)(to - from), text, size);
}

cs_status cs_log_invalid(const cs_log_lines *log, cs_error *error, const char *format, ...)
{
    char message[512], shown[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    return cs_error_add(error, CS_INVALID, "%s:%u: %s",
                        cs_text_show(log->name, shown, sizeof(shown)), log->line, message);
}
