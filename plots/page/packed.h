/* Columns of numbers on their way into a page: little-endian, the bytes of equal weight of a column
 * beside each other (which packs better), deflated, in base64. data.js has the reader.
 */
#ifndef CS_PLOTS_PAGE_PACKED_H
#define CS_PLOTS_PAGE_PACKED_H

#include "sim/base/error.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum cs_cell { CS_CELL_U8 = 1, CS_CELL_U32 = 4, CS_CELL_F64 = 8 } cs_cell; /* bytes */

typedef struct cs_packed {
    unsigned char *bytes;
    size_t n_bytes, room;
    cJSON
        *columns; /* [{"name": "start", "bytes": 8, "rows": 12}, ...], in the order of the bytes */
} cs_packed;

/* Appends a column. After a failure the columns are only to be finished. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_packed_add(cs_packed *packed, const char *name, cs_cell cell,
                                      const void *values, uint64_t rows, cs_error *error);

/* The columns as the script element `id`. CS_NO_MEMORY; errors of `out` are the caller's to find. */
CS_MUST_CHECK cs_status cs_packed_write(const cs_packed *packed, const char *id, FILE *out,
                                        cs_error *error);

/* Accepts a zeroed packed. */
void cs_packed_finish(cs_packed *packed);

#endif
