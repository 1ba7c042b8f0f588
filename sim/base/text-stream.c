#define _GNU_SOURCE /* fopencookie */

#include "sim/base/text-stream.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct stream {
    char **text; /* the caller's pointer */
    size_t *length;
    char *bytes;
    size_t n, capacity;
    bool failed; /* memory ran out: all further output is dropped */
} stream;

/* Makes room for n more bytes and a NUL. */
static bool reserve(stream *s, size_t n)
{
    const size_t needed = s->n + n + 1;
    if (needed <= s->capacity)
        return true;
    const size_t capacity = needed > 2 * s->capacity ? needed : 2 * s->capacity;
    char *grown = realloc(s->bytes, capacity);
    if (!grown)
        return false;
    s->bytes = grown;
    s->capacity = capacity;
    return true;
}

static ssize_t write_bytes(void *cookie, const char *bytes, size_t n)
{
    stream *s = cookie;
    s->failed = s->failed || !reserve(s, n);
    if (s->failed)
        return 0;
    memcpy(s->bytes + s->n, bytes, n);
    s->n += n;
    return (ssize_t)n;
}

static int finish(void *cookie)
{
    stream *s = cookie;
    const bool whole = !s->failed && reserve(s, 0);
    if (whole) {
        s->bytes[s->n] = '\0';
        *s->text = s->bytes;
        *s->length = s->n;
    } else {
        free(s->bytes);
    }
    free(s);
    return whole ? 0 : EOF;
}

FILE *cs_text_stream(char **text, size_t *length)
{
    const cookie_io_functions_t functions = {.write = write_bytes, .close = finish};
    *text = NULL;
    *length = 0;
    stream *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->text = text;
    s->length = length;
    FILE *out = fopencookie(s, "w", functions);
    if (!out)
        free(s);
    return out;
}
