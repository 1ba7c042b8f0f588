/* What a part of an image has to be given when space is divided over several devices.
 *
 * In each direction, of the rows of an input and of those of an output, each device has a part
 * (cs_part_size): with q devices that divide X rows, device i has those from i X / q up to
 * (i + 1) X / q. Output row o of a convolution or pooling reads the input rows
 *
 *     o s - a + d k,    k = 0 ... K - 1,
 *
 * K being the kernel, s the stride, a the padding, d the dilation; rows outside the input are
 * padding. So its window spans d (K - 1) + 1 rows. A device lacks the rows that its outputs read
 * and others have: the halo of its input, before and behind its part. Backward, the gradient of an
 * input row is a sum over the outputs that read it: the device lacks the gradients of those outputs
 * that others have, which is the halo of the gradients of the output. From the first to the last of
 * these rows all are handed over, with a dilation also those in between that nothing reads.
 *
 * In the inside of an image, with X = s Y and parts that divide, the two are
 *
 *     input       a rows before, d (K - 1) + 1 - a - s behind
 *     gradients   floor((d (K - 1) - a) / s) rows before, floor((a - 1) / s) + 1 behind (s = 1: a)
 *
 * (negative: 0), so that a kernel of 3 x 3 with stride 1 and padding 1 needs a row of each
 * neighbour, and one with stride 2 a row of the one before it only. Kahira et al. (HPDC 2021,
 * section
 * 3.2) write "e.g. K / 2" and leave the rest open.
 */
#ifndef CS_WORKLOAD_HALO_H
#define CS_WORKLOAD_HALO_H

#include <stdbool.h>
#include <stdint.h>

/* A convolution or pooling in one direction. */
typedef struct cs_sliding {
    uint32_t in, out;                       /* rows */
    uint32_t kernel, stride, pad, dilation; /* kernel, stride, dilation >= 1 */
} cs_sliding;

/* Rows [first, end). */
typedef struct cs_row_range {
    uint32_t first, end;
} cs_row_range;

typedef struct cs_halo {
    uint32_t before, behind; /* rows */
} cs_halo;

/* The rows that part i of `parts` has of `rows` (layout.h). Some are empty where there are more
 * parts than rows. */
cs_row_range cs_rows_of(uint32_t rows, uint32_t parts, uint32_t i);

/* The most rows that a part has. */
uint32_t cs_rows_most(uint32_t rows, uint32_t parts);

/* What part i lacks of the input; and of the gradients of the output. */
cs_halo cs_halo_of_input(const cs_sliding *sliding, uint32_t parts, uint32_t i);
cs_halo cs_halo_of_gradient(const cs_sliding *sliding, uint32_t parts, uint32_t i);

/* The most that any part lacks, before and behind by themselves. */
cs_halo cs_halo_most_of_input(const cs_sliding *sliding, uint32_t parts);
cs_halo cs_halo_most_of_gradient(const cs_sliding *sliding, uint32_t parts);

/* Whether every part lacks rows of its direct neighbours only, of input and gradients. */
bool cs_halo_is_near(const cs_sliding *sliding, uint32_t parts);

#endif
