#include "plots/page/packed.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Stores the first bytes of all numbers, then all second bytes, and so on. */
static void shuffle(unsigned char *out, const unsigned char *values, size_t cell, uint64_t rows)
{
    for (size_t b = 0; b < cell; b++)
        for (uint64_t i = 0; i < rows; i++)
            *out++ = values[i * cell + b];
}

static bool describe(cJSON *columns, const char *name, cs_cell cell, uint64_t rows)
{
    cJSON *column = cJSON_CreateObject();
    if (!column || !cJSON_AddItemToArray(columns, column)) {
        cJSON_Delete(column);
        return false;
    }
    return cJSON_AddStringToObject(column, "name", name) &&
           cJSON_AddNumberToObject(column, "bytes", cell) &&
           cJSON_AddNumberToObject(column, "rows", (double)rows);
}

static unsigned char *room_for(cs_packed *packed, size_t more)
{
    if (packed->n_bytes + more >= packed->room) {
        const size_t room = packed->n_bytes + more + packed->room / 2 + 1;
        unsigned char *bytes = realloc(packed->bytes, room);
        if (!bytes)
            return NULL;
        packed->bytes = bytes;
        packed->room = room;
    }
    return packed->bytes;
}

cs_status cs_packed_add(cs_packed *packed, const char *name, cs_cell cell, const void *values,
                        uint64_t rows, cs_error *error)
{
    const size_t more = (size_t)rows * cell;
    if (!packed->columns)
        packed->columns = cJSON_CreateArray();
    unsigned char *bytes = room_for(packed, more);
    if (!bytes || !packed->columns || !describe(packed->columns, name, cell, rows))
        return cs_error_no_memory(error);
    shuffle(bytes + packed->n_bytes, values, cell, rows);
    packed->n_bytes += more;
    return CS_OK;
}

static void write_base64(const unsigned char *bytes, size_t n, FILE *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t next = i + 1 < n ? bytes[i + 1] : 0, last = i + 2 < n ? bytes[i + 2] : 0;
        const uint32_t three = (uint32_t)bytes[i] << 16 | next << 8 | last;
        const char four[] = {digits[three >> 18], digits[three >> 12 & 63],
                             i + 1 < n ? digits[three >> 6 & 63] : '=',
                             i + 2 < n ? digits[three & 63] : '='};
        fwrite(four, 1, sizeof(four), out);
    }
}

cs_status cs_packed_write(const cs_packed *packed, const char *id, FILE *out, cs_error *error)
{
    static const unsigned char none;
    uLongf n = compressBound((uLong)packed->n_bytes);
    unsigned char *deflated = malloc(n);
    if (!deflated || compress2(deflated, &n, packed->bytes ? packed->bytes : &none,
                               (uLong)packed->n_bytes, Z_DEFAULT_COMPRESSION) != Z_OK) {
        free(deflated);
        return cs_error_no_memory(error);
    }
    fprintf(out, "<script type=\"application/octet-stream\" id=\"%s\">", id);
    write_base64(deflated, n, out);
    fputs("</script>\n", out);
    free(deflated);
    return CS_OK;
}

void cs_packed_finish(cs_packed *packed)
{
    free(packed->bytes);
    cJSON_Delete(packed->columns);
    *packed = (cs_packed){0};
}
