/* The work of one small GPU kernel, as data; own kernels cover what libraries do not offer.
 *
 * A body processes one item of a kernel: an element, a group of adjacent elements, or a row that
 * several threads share (device-code.h). A work says where it reads and writes. The bodies are
 * compiled for the GPU and, for tests, for the host; device-operators.h chooses the bodies of an
 * operator.
 *
 * Plain C and C++, because the CUDA compiler also reads this file.
 */
#ifndef CS_CALIB_DEVICE_WORK_H
#define CS_CALIB_DEVICE_WORK_H

#include "sim/model/precision.h"

/* name, item: an element; a group of adjacent elements, 16 bytes, which a thread reads and writes
 * in one access; a row */
#define CS_BODY_MAP(X)                                                                             \
    X(fill_numbers, element)                                                                       \
    X(fill_ids, element)                                                                           \
    X(accumulate, group)                                                                           \
    X(update, group)                                                                               \
    X(map_forward, group)                                                                          \
    X(map_input, group)                                                                            \
    X(add, group)                                                                                  \
    X(add_table, group)                                                                            \
    X(mul, group)                                                                                  \
    X(copy_rows, element)                                                                          \
    X(dropout_forward, group)                                                                      \
    X(dropout_input, group)                                                                        \
    X(rotate, element)                                                                             \
    X(pool_forward, element)                                                                       \
    X(pool_input, element)                                                                         \
    X(embedding_weight, element)                                                                   \
    X(sum_columns, element)                                                                        \
    X(add_partial_sums, row)                                                                       \
    X(widen, group)                                                                                \
    X(accumulate_wide, group)                                                                      \
    X(entropy_forward, row)                                                                        \
    X(entropy_input, row)                                                                          \
    X(squares_forward, row)                                                                        \
    X(squares_input, group)                                                                        \
    X(sum_up, row)                                                                                 \
    X(norm_forward, row)                                                                           \
    X(norm_input, row)                                                                             \
    X(weigh_forward, row)                                                                          \
    X(weigh_input, row)                                                                            \
    X(point, element)

typedef enum cs_body {
#define CS_BODY_ENUM(name, item) CS_BODY_##name,
    CS_BODY_MAP(CS_BODY_ENUM)
#undef CS_BODY_ENUM
        CS_N_BODIES
} cs_body;

/* A window over images of up to three directions, with fewer than 2^31 elements each. */
typedef struct cs_window_work {
    int32_t in[3], out[3], kernel[3], stride[3], pad[3];
    int32_t adaptive, most; /* adaptive pooling; maximum instead of mean */
} cs_window_work;

enum { CS_POINT_LISTS = 10 };

/* The start of each matrix of attention's heads: a list of pointers, for a batched product. */
typedef struct cs_point_list {
    char *base;
    int64_t sample_stride, head_stride; /* bytes */
    int32_t per_key;                    /* one matrix for all heads that share keys */
} cs_point_list;

typedef struct cs_point_work {
    cs_point_list lists[CS_POINT_LISTS];
    int64_t samples, keys, shared; /* keys: heads of keys; shared: heads per head of keys */
} cs_point_work;

/* The members that each body uses are described at the body, in device-code.h. `columns` is the
 * length of rows, so that short ones get few threads; 0: long. */
typedef struct cs_work {
    const void *a, *b, *g, *w;
    void *y, *s, *t;
    int64_t rows, columns, n;
    int64_t from_stride, to_stride;
    uint64_t seed;
    int32_t kind, flag;
    float scale;
    union {
        cs_window_work window;
        cs_point_work point;
    };
} cs_work;

#endif
