/* Halos: rows of an image that a device needs from others if space is split over several devices.
 *
 * In each direction, every device has a part of the rows of an input and of an output
 * (cs_part_size). If q devices split X rows, device i has the rows from i X / q up to
 * (i + 1) X / q. Output row o of a convolution or pooling reads the input rows
 *
 *     o s - a + d k,    k = 0 ... K - 1,
 *
 * where K is the kernel, s the stride, a the padding and d the dilation; rows outside the input are
 * padding. The window of a row therefore spans d (K - 1) + 1 rows. The halo of a device's input is
 * the rows that its outputs read but that other devices have, before and after its own part. In
 * backward, the gradient of an input row is a sum over the outputs that read it. The halo of the
 * output's gradients is the gradients that a device needs for these sums but that other devices
 * have. All rows from the first to the last row of a halo are sent; with a dilation, this includes
 * rows in between that no output reads.
 *
 * Inside an image, with X = s Y and parts of equal size, the two halos are
 *
 *     input       a rows before, d (K - 1) + 1 - a - s after
 *     gradients   floor((d (K - 1) - a) / s) rows before, floor((a - 1) / s) + 1 after (s = 1: a)
 *
 * (negative: 0). So a 3 x 3 kernel with stride 1 and padding 1 needs one row from each neighbour; a
 * 3 x 3 kernel with stride 2 needs a row from the previous neighbour only. Kahira et al. (HPDC
 * 2021, section 3.2) write "e.g. K / 2" and leave the rest open.
 */
#ifndef CS_WORKLOAD_HALO_H
#define CS_WORKLOAD_HALO_H

#include <stdbool.h>
#include <stdint.h>

/* Convolution or pooling along one dimension. */
typedef struct cs_sliding {
    uint32_t in, out;                       /* number of rows */
    uint32_t kernel, stride, pad, dilation; /* kernel, stride, dilation >= 1 */
} cs_sliding;

/* Range of rows [first, end). */
typedef struct cs_row_range {
    uint32_t first, end;
} cs_row_range;

typedef struct cs_halo {
    uint32_t before, behind; /* missing rows before and after the part */
} cs_halo;

/* Returns the rows of part i if `rows` rows are split into `parts` parts (layout.h). Some parts are
 * empty if there are more parts than rows. */
cs_row_range cs_rows_of(uint32_t rows, uint32_t parts, uint32_t i);

/* Returns the number of rows of the largest part. */
uint32_t cs_rows_most(uint32_t rows, uint32_t parts);

/* Return the rows that part i lacks: of the input, or of the output's gradients. */
cs_halo cs_halo_of_input(const cs_sliding *sliding, uint32_t parts, uint32_t i);
cs_halo cs_halo_of_gradient(const cs_sliding *sliding, uint32_t parts, uint32_t i);

/* Return the most rows that any part lacks; the maxima before and after are found separately. */
cs_halo cs_halo_most_of_input(const cs_sliding *sliding, uint32_t parts);
cs_halo cs_halo_most_of_gradient(const cs_sliding *sliding, uint32_t parts);

/* Whether each part lacks only rows of its direct neighbours, for the input and for the
 * gradients. */
bool cs_halo_is_near(const cs_sliding *sliding, uint32_t parts);

#endif
