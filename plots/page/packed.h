/* Columns of numbers to be stored in a page. Numbers are little-endian; the first bytes of all
 * numbers of a column come first, then the second bytes, and so on, which compresses better. All
 * columns together are deflated and encoded in base64. data.js reads them. */
#ifndef CS_PLOTS_PAGE_PACKED_H
#define CS_PLOTS_PAGE_PACKED_H

#include "sim/base/error.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* size of a number in bytes */
typedef enum cs_cell { CS_CELL_U8 = 1, CS_CELL_U32 = 4, CS_CELL_F64 = 8 } cs_cell;

typedef struct cs_packed {
    unsigned char *bytes;
    size_t n_bytes, room;
    /* [{"name": "start", "bytes": 8, "rows": 12}, ...], in the same order as the bytes */
    cJSON *columns;
} cs_packed;

/* Appends a column. After a failure, only cs_packed_finish is allowed. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_packed_add(cs_packed *packed, const char *name, cs_cell cell,
                                      const void *values, uint64_t rows, cs_error *error);

/* Writes the columns as a script element with this id. CS_NO_MEMORY; the caller must check `out`
 * for errors. */
CS_MUST_CHECK cs_status cs_packed_write(const cs_packed *packed, const char *id, FILE *out,
                                        cs_error *error);

/* Allowed on a zeroed struct. */
void cs_packed_finish(cs_packed *packed);

#endif
