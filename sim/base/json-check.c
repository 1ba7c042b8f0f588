#include "sim/base/json-check.h"

#include "sim/base/json.h"
#include "sim/base/number.h"
#include "sim/base/text.h"
#include "sim/base/vector.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A key of an open object. Its unescaped bytes are in checker.bytes, which moves as it grows;
 * `bytes` is set when the object ends and its keys are compared. */
typedef struct key {
    const char *where;
    const char *bytes;
    uint32_t offset, length;
} key;

/* The keys of all open objects, outer ones first; an object that ends removes its own from the
 * end. */
typedef struct checker {
    const char *name, *text, *at, *end;
    cs_error *error;
    key *keys;
    uint32_t n_keys, cap_keys;
    char *bytes;
    uint32_t n_bytes, cap_bytes;
} checker;

/* Finds line and column of a position. Lines end with "\n"; a column counts characters, not
 * bytes. */
static void find_line(const checker *c, const char *where, size_t *line, size_t *column)
{
    *line = *column = 1;
    for (const char *at = c->text; at < where; at++) {
        if (*at == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)*at & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

static cs_status fail(checker *c, const char *where, const char *format, ...) CS_PRINTF(3, 4);

static cs_status fail(checker *c, const char *where, const char *format, ...)
{
    char message[256];
    size_t line, column;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    find_line(c, where, &line, &column);
    (void)cs_error_add(c->error, CS_INVALID, "%s:%zu:%zu: %s", c->name, line, column, message);
    cs_error_place(c->error, strlen(c->name), 0);
    return CS_INVALID;
}

static bool goes_on(const checker *c, const char *at)
{
    return at < c->end && (unsigned char)*at > ' ' && !strchr(",:[]{}\"", *at);
}

/* Syntax of other languages that JSON lacks. */
static const struct {
    const char *start, *hint;
} slips[] = {
    {"//", "; JSON has no comments"}, {"/*", "; JSON has no comments"},
    {"#", "; JSON has no comments"},  {"'", "; strings need double quotes"},
    {"True", "; did you mean true?"}, {"False", "; did you mean false?"},
    {"None", "; did you mean null?"}, {"NULL", "; did you mean null?"},
};

static const char *hint_at(const char *word)
{
    for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++)
        if (strncmp(word, slips[i].start, strlen(slips[i].start)) == 0)
            return slips[i].hint;
    return "";
}

/* Reports the word (or character) at `where` and what was expected. */
static cs_status unexpected(checker *c, const char *where, const char *expected)
{
    char word[24], quoted[CS_TEXT_QUOTED_BYTES];
    size_t length = 0;
    if (where == c->end)
        return fail(c, where, "unexpected end of file; expected %s", expected);
    while (length < sizeof(word) - 1 && goes_on(c, where + length)) {
        word[length] = where[length];
        length++;
    }
    if (length == 0)
        word[length++] = *where;
    word[length] = '\0';
    if (*where == '\0')
        return fail(c, where, "unexpected NUL byte; expected %s", expected);
    return fail(c, where, "unexpected %s; expected %s%s",
                cs_text_quote(word, quoted, sizeof(quoted)), expected, hint_at(word));
}

static void skip_space(checker *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

static bool take(checker *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static cs_status keep_bytes(checker *c, const char *bytes, size_t length)
{
    if (!cs_vector_reserve((void **)&c->bytes, &c->cap_bytes, (uint64_t)c->n_bytes + length, 1))
        return cs_error_no_memory(c->error);
    memcpy(c->bytes + c->n_bytes, bytes, length);
    c->n_bytes += (uint32_t)length;
    return CS_OK;
}

/* Reads the four digits of the \uXXXX whose backslash is at `at`; -1 if it is not one. */
static long read_unit(const checker *c, const char *at)
{
    long unit = 0;
    if (c->end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF";
        const char *found = at[i] ? strchr(digits, at[i]) : NULL;
        if (!found)
            return -1;
        unit = unit * 16 + (found - digits) % 16;
    }
    return unit;
}

static cs_status check_escape(checker *c, bool keep)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *found = NULL;
    if (c->end - c->at < 2)
        return unexpected(c, c->end, "the rest of a string");
    if (c->at[1] == 'u') {
        long unit = read_unit(c, c->at);
        if (unit < 0)
            return fail(c, c->at, "\\u must be followed by four hexadecimal digits");
        if (unit == 0)
            return fail(c, c->at, "a string must not hold the character NUL (\\u0000)");
        if (unit >= 0xd800 && unit < 0xe000) {
            long low = read_unit(c, c->at + 6);
            if (unit >= 0xdc00 || low < 0xdc00 || low >= 0xe000)
                return fail(c, c->at, "half of a surrogate pair; the other half must follow");
            unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            c->at += 6;
        }
        c->at += 6;
        if (!keep)
            return CS_OK;
        uint32_t code = (uint32_t)unit;
        char utf8[4];
        size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
        for (size_t i = length; i-- > 1; code >>= 6)
            utf8[i] = (char)(0x80 | (code & 0x3f));
        utf8[0] = (char)(leads[length] | code);
        return keep_bytes(c, utf8, length);
    }
    if (c->at[1] != '\0')
        found = strchr(letters, c->at[1]);
    if (!found)
        return fail(c, c->at,
                    "unknown escape in a string; known: \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    c->at += 2;
    return keep ? keep_bytes(c, &meanings[found - letters], 1) : CS_OK;
}

static cs_status check_character(checker *c, bool keep)
{
    size_t length = cs_text_character(c->at, (size_t)(c->end - c->at));
    if (length == 0)
        return fail(c, c->at, "byte 0x%02x is not UTF-8", (unsigned int)(unsigned char)*c->at);
    if (length == 1 && (unsigned char)*c->at < 0x20)
        return fail(c, c->at, "line break or control character in a string; it must be escaped");
    cs_status status = keep ? keep_bytes(c, c->at, length) : CS_OK;
    c->at += length;
    return status;
}

/* Checks a string. `keep`: appends it, unescaped, to c->bytes. */
static cs_status check_string(checker *c, bool keep)
{
    const char *start = c->at++;
    while (c->at < c->end && *c->at != '"') {
        CS_TRY(*c->at == '\\' ? check_escape(c, keep) : check_character(c, keep));
    }
    if (c->at == c->end)
        return fail(c, start, "the string that begins here has no end");
    c->at++;
    return CS_OK;
}

/* Orders by length, then bytes, then position: equal keys become neighbours, in order of
 * position. */
static int compare_keys(const void *left, const void *right)
{
    const key *a = left, *b = right;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    int order = a->length > 0 ? memcmp(a->bytes, b->bytes, a->length) : 0;
    return order != 0 ? order : (a->where > b->where) - (a->where < b->where);
}

/* Sorts the keys from `first` on and reports the earliest duplicate in the text. */
static cs_status check_duplicates(checker *c, uint32_t first)
{
    key *keys = c->keys + first, *earlier = NULL;
    uint32_t count = c->n_keys - first;
    if (count < 2)
        return CS_OK;
    for (uint32_t i = 0; i < count; i++)
        keys[i].bytes = c->bytes ? c->bytes + keys[i].offset : NULL;
    qsort(keys, count, sizeof(*keys), compare_keys);
    for (key *k = keys; k + 1 < keys + count; k++) {
        bool equal = k->length == k[1].length &&
                     (k->length == 0 || memcmp(k->bytes, k[1].bytes, k->length) == 0);
        if (equal && (!earlier || k[1].where < earlier[1].where))
            earlier = k;
    }
    if (!earlier)
        return CS_OK;
    const key *later = earlier + 1;
    size_t line, column;
    char name[CS_TEXT_QUOTED_BYTES], quoted[CS_TEXT_QUOTED_BYTES];
    find_line(c, earlier->where, &line, &column);
    cs_text_format(name, sizeof(name), "%.*s", (int)later->length,
                   later->bytes ? later->bytes : "");
    return fail(c, later->where, "duplicate key %s (first at %zu:%zu)",
                cs_text_quote(name, quoted, sizeof(quoted)), line, column);
}

static cs_status check_key(checker *c)
{
    skip_space(c);
    if (c->at < c->end && *c->at == '}') /* an empty object was handled before */
        return fail(c, c->at, "trailing comma before \"}\"");
    if (c->at == c->end || *c->at != '"')
        return unexpected(c, c->at, "a key in double quotes");
    if (!cs_vector_reserve((void **)&c->keys, &c->cap_keys, (uint64_t)c->n_keys + 1, sizeof(key)))
        return cs_error_no_memory(c->error);
    key *added = &c->keys[c->n_keys];
    *added = (key){.where = c->at, .offset = c->n_bytes};
    CS_TRY(check_string(c, true));
    added->length = c->n_bytes - added->offset;
    c->n_keys++;
    return take(c, ':') ? CS_OK : unexpected(c, c->at, "\":\" after the key");
}

static cs_status check_value(checker *c, int depth);

/* `depth`: number of enclosing containers; recursion is limited to CS_JSON_DEPTH. */
static cs_status check_value(checker *c, int depth)
{
    skip_space(c);
    char first = c->at < c->end ? *c->at : '\0';
    if (first == '"')
        return check_string(c, false);
    if (first == '-' || (first >= '0' && first <= '9')) {
        const char *start = c->at, *stop = start;
        double value;
        while (stop < c->end && *stop && strchr("+-.0123456789eE", *stop))
            stop++;
        size_t run = (size_t)(stop - start), length = cs_number_scan(start, run);
        if (length == 0 || length != run)
            return unexpected(c, start, "a number such as -1.5e3");
        if (length > CS_NUMBER_LONGEST)
            return fail(c, start, "number of %zu characters; must be at most %d", length,
                        CS_NUMBER_LONGEST);
        /* without an exponent, a number of this length cannot overflow */
        if ((memchr(start, 'e', length) || memchr(start, 'E', length)) &&
            !cs_number_parse(start, length, &value))
            return fail(c, start, "number too large; must be at most 1.7976931348623157e308");
        c->at = stop;
        return CS_OK;
    }
    if (first != '{' && first != '[') {
        static const char *const words[] = {"true", "false", "null"};
        size_t room = (size_t)(c->end - c->at);
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
            size_t length = strlen(words[i]);
            if (length <= room && memcmp(c->at, words[i], length) == 0) {
                c->at += length;
                return CS_OK;
            }
        }
        return unexpected(c, c->at, "a value: object, array, string, number, true, false or null");
    }
    if (depth == CS_JSON_DEPTH)
        return fail(c, c->at, "nested deeper than %d levels", CS_JSON_DEPTH);
    if (first != '{') {
        c->at++;
        if (take(c, ']'))
            return CS_OK;
        do {
            skip_space(c);
            if (c->at < c->end && *c->at == ']')
                return fail(c, c->at, "trailing comma before \"]\"");
            CS_TRY(check_value(c, depth + 1));
        } while (take(c, ','));
        return take(c, ']') ? CS_OK : unexpected(c, c->at, "\",\" or \"]\"");
    }
    uint32_t n_keys = c->n_keys, n_bytes = c->n_bytes;
    c->at++;
    if (take(c, '}'))
        return CS_OK;
    do {
        cs_status status = check_key(c);
        if (status == CS_OK)
            status = check_value(c, depth + 1);
        if (status != CS_OK)
            return status;
    } while (take(c, ','));
    if (!take(c, '}'))
        return unexpected(c, c->at, "\",\" or \"}\"");
    cs_status status = check_duplicates(c, n_keys);
    c->n_keys = n_keys;
    c->n_bytes = n_bytes;
    return status;
}

/* Whether the text is UTF-16: a byte order mark, or two ASCII characters, each next to a NUL. */
static bool is_utf16(const char *text, size_t length)
{
    if (length >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return true;
    return length >= 4 && !text[0] == !text[2] && !text[1] == !text[3] && !text[0] != !text[1];
}

cs_status cs_json_check(const char *name, const char *text, size_t length, cs_error *error)
{
    checker c = {.name = name, .text = text, .at = text, .end = text + length, .error = error};
    if (is_utf16(text, length))
        return fail(&c, text, "the text is UTF-16; must be UTF-8");
    cs_status status = check_value(&c, 0);
    skip_space(&c);
    if (status == CS_OK && c.at < c.end)
        status = unexpected(&c, c.at, "nothing after the value");
    free(c.keys);
    free(c.bytes);
    return status;
}
