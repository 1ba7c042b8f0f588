/* Packs columns of numbers as HDF5 stores them behind its filters `shuffle` and `deflate` (zlib),
 * so that they can be stored with H5Dwrite_chunk, and read by whoever reads HDF5.
 *
 * `shuffle` puts the first bytes of all values together, then the second ones, ...: a plane per
 * byte of a value. Numbers of a run are of few sorts, and each plane tells which: many planes have
 * one value or are those of an earlier column again, which is found by looking, not by compressing;
 * the low bytes of times are noise, which is stored as it is; what is left is compressed.
 */
#ifndef CS_TRACE_PACK_H
#define CS_TRACE_PACK_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cs_packer cs_packer;

/* NULL when memory runs out. */
cs_packer *cs_packer_create(void);
void cs_packer_destroy(cs_packer *packer); /* accepts NULL */

/* What the blocks of a column so far say of the next ones, zeroed at first: a plane that was noise
 * is stored in the next few blocks as well, without trying. */
typedef struct cs_pack_history {
    unsigned char untried[8]; /* per plane: blocks that still are */
} cs_pack_history;

/* Packs n > 0 values of 1, 4 or 8 bytes each, the next ones of a column. *packed is the packer's,
 * until the next call. What else was packed before changes how long it takes, not what is made.
 * False when memory runs out. */
bool cs_packer_pack(cs_packer *packer, cs_pack_history *history, const void *values, size_t n,
                    size_t size, const void **packed, size_t *packed_size);

#endif
