/* Packs columns of numbers in the format of HDF5's filters `shuffle` and `deflate` (zlib), so that
 * H5Dwrite_chunk can store them and any HDF5 reader can read them.
 *
 * `shuffle` groups the first bytes of all values, then the second bytes, ...: one plane per byte of
 * a value. Planes of a run's numbers are of three kinds. Many have one value, or equal a plane of
 * an earlier column, which a comparison finds without compressing. The low bytes of times are
 * noise, which is stored uncompressed. The rest is compressed.
 */
#ifndef CS_TRACE_PACK_H
#define CS_TRACE_PACK_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cs_packer cs_packer;

/* Returns NULL if memory runs out. */
cs_packer *cs_packer_create(void);
void cs_packer_destroy(cs_packer *packer); /* `packer` may be NULL */

/* State of a column between blocks; starts zeroed. A plane that was noise is stored without trying
 * in the next few blocks. */
typedef struct cs_pack_history {
    unsigned char untried[8]; /* per plane: number of blocks not to try */
} cs_pack_history;

/* Packs the next n > 0 values of a column, of 1, 4 or 8 bytes each. *packed belongs to the packer
 * and is valid until the next call. Earlier calls affect the speed, not the output. Returns false
 * if memory runs out. */
bool cs_packer_pack(cs_packer *packer, cs_pack_history *history, const void *values, size_t n,
                    size_t size, const void **packed, size_t *packed_size);

#endif
