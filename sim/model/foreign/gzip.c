#include "sim/model/foreign/gzip.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

enum { FIRST_BYTES = 64 << 10, GZIP_WINDOW = 15 + 16 };

typedef struct unpacking {
    const char *name;
    z_stream stream;
    char *text;
    size_t capacity, limit;
} unpacking;

bool cs_gzip_is(const char *bytes, size_t length)
{
    return length >= 2 && (unsigned char)bytes[0] == 0x1f && (unsigned char)bytes[1] == 0x8b;
}

/* Doubles the buffer, up to the limit. One byte stays free for the terminating NUL. */
static cs_status grow(unpacking *u, size_t used, cs_error *error)
{
    if (used >= u->limit)
        return cs_error_add(error, CS_INVALID, "%s: is longer than %zu bytes when unpacked",
                            u->name, u->limit);
    size_t next = u->capacity ? 2 * u->capacity : FIRST_BYTES;
    if (next > u->limit + 1)
        next = u->limit + 1;
    char *grown = realloc(u->text, next);
    if (!grown)
        return cs_error_no_memory(error);
    u->text = grown;
    u->capacity = next;
    return CS_OK;
}

static cs_status bad_data(const unpacking *u, int code, cs_error *error)
{
    if (code == Z_MEM_ERROR)
        return cs_error_no_memory(error);
    return cs_error_add(error, CS_INVALID, "%s: cannot unpack: %s", u->name,
                        code == Z_BUF_ERROR ? "the file is cut off"
                        : u->stream.msg     ? u->stream.msg
                                            : "not a gzip file");
}

static cs_status unpack(unpacking *u, size_t *used, cs_error *error)
{
    for (;;) {
        CS_TRY(*used + 1 >= u->capacity ? grow(u, *used, error) : CS_OK);
        size_t room = u->capacity - 1 - *used;
        u->stream.next_out = (Bytef *)u->text + *used;
        u->stream.avail_out = room > UINT_MAX ? UINT_MAX : (uInt)room;
        uInt before = u->stream.avail_out;
        int code = inflate(&u->stream, Z_NO_FLUSH);
        *used += before - u->stream.avail_out;
        if (code == Z_STREAM_END && u->stream.avail_in == 0)
            return CS_OK;
        if (code == Z_STREAM_END)
            code = inflateReset(&u->stream); /* another gzip member follows */
        if (code != Z_OK && !(code == Z_BUF_ERROR && u->stream.avail_out == 0))
            return bad_data(u, code, error);
    }
}

cs_status cs_gzip_unpack(const char *name, const char *bytes, size_t length, size_t limit,
                         char **text, size_t *unpacked, cs_error *error)
{
    unpacking u = {.name = name, .limit = limit};
    size_t used = 0;
    if (length > UINT_MAX)
        return cs_error_add(error, CS_INVALID, "%s: must be smaller than 4 GiB", name);
    if (inflateInit2(&u.stream, GZIP_WINDOW) != Z_OK)
        return cs_error_no_memory(error);
    u.stream.next_in = (Bytef *)(uintptr_t)bytes;
    u.stream.avail_in = (uInt)length;
    cs_status status = unpack(&u, &used, error);
    inflateEnd(&u.stream);
    if (status != CS_OK) {
        free(u.text);
        return status;
    }
    u.text[used] = '\0';
    *text = u.text;
    *unpacked = used;
    return CS_OK;
}
