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

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the end of the terminal control sequence (colour, title) at `at`; `at` if there is
 * none. */
static const char *skip_escape(const char *at, const char *end)
{
    if (at == end || *at != '\033')
        return at;
    at++;
    if (at < end && *at == '[') {
        at++;
        while (at < end && (*at < '@' || *at > '~'))
            at++;
    } else if (at < end && *at == ']') {
        while (at < end && *at != '\a')
            at++;
    }
    return at < end ? at + 1 : end;
}

/* Control sequences separate words, like blanks. */
static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\033'))
        at = *at == '\033' ? skip_escape(at, end) : at + 1;
    return at;
}

static const char *skip_word(const char *at, const char *end)
{
    while (at < end && *at != ' ' && *at != '\t' && *at != '\r' && *at != '\033')
        at++;
    return at;
}

/* Replaces a line of Docker's json-file driver, {"log":"TEXT\n","stream":...}, by its text. */
static void unwrap_json(const char **from, const char **to)
{
    static const char start[] = "{\"log\":\"";
    const size_t length = strlen(start);
    if ((size_t)(*to - *from) < length || memcmp(*from, start, length) != 0)
        return;
    *from += length;
    for (const char *at = *from; at < *to; at++) {
        if (*at == '"') {
            const bool newline = at - *from >= 2 && at[-2] == '\\' && at[-1] == 'n';
            *to = newline ? at - 2 : at;
            return;
        }
    }
}

/* Finds the "#" that begins a comment: a word, or the last character of a word. NULL: no
 * comment. */
static const char *find_comment(const char *from, const char *end)
{
    for (const char *at = from; at < end; at++)
        if (*at == '#' && skip_word(at, end) == at + 1)
            return at;
    return NULL;
}

/* Remembers the text before the "#": the rows below have the same prefix. */
static void learn_prefix(cs_log_lines *log, const char *from, const char *comment)
{
    log->prefix_words = 0;
    log->prefix_end = '\0';
    for (const char *at = skip_blanks(from, comment); at < comment;) {
        at = skip_word(at, comment);
        if (at == comment)
            log->prefix_end = at[-1];
        else
            log->prefix_words++;
        at = skip_blanks(at, comment);
    }
}

/* Returns the start of a row, after as many words as the prefix has and its last character. `from`:
 * the line has no such prefix. */
static const char *skip_prefix(const cs_log_lines *log, const char *from, const char *end)
{
    const char *at = from;
    for (uint32_t i = 0; i < log->prefix_words; i++)
        at = skip_word(skip_blanks(at, end), end);
    if (log->prefix_end == '\0')
        return at < end ? at : from;
    at = skip_blanks(at, end);
    for (const char *last = skip_word(at, end); last > at; last--)
        if (last[-1] == log->prefix_end)
            return last;
    return from;
}

bool cs_log_next(cs_log_lines *log)
{
    if (log->next == log->end)
        return false;
    const char *newline = memchr(log->next, '\n', (size_t)(log->end - log->next));
    const char *at = log->next, *end = newline ? newline : log->end;
    log->next = newline ? newline + 1 : log->end;
    log->cut_off = newline == NULL;
    log->line++;
    log->n_words = 0;
    unwrap_json(&at, &end);
    const char *comment = find_comment(at, end);
    if (comment)
        learn_prefix(log, at, comment);
    at = skip_blanks(comment ? comment : skip_prefix(log, at, end), end);
    while (at < end && log->n_words < CS_LOG_WORDS) {
        const char *word = at;
        at = skip_word(at, end);
        log->words[log->n_words++] = (cs_log_word){word, (size_t)(at - word)};
        at = skip_blanks(at, end);
    }
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
    const cs_log_word *last = &log->words[log->n_words - 1];
    const char *from = log->words[word].text, *to = last->text + last->length;
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
