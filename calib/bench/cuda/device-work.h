/* What one small kernel of a GPU does, as data: own kernels for what libraries do not offer.
 *
 * A body does one item of a kernel: an element, a group of neighbours, or a row that several
 * threads share (device-code.h). A work says where it reads and writes. The bodies are compiled for
 * the GPU, and for the host to be tested; which of them an operator needs is device-operators.h.
 *
 * Plain C and C++: the CUDA compiler reads it too.
 */
#ifndef CS_CALIB_DEVICE_WORK_H
#define CS_CALIB_DEVICE_WORK_H

#include "sim/model/precision.h"

/* name, what an item is: an element; a group of neighbours, as many as 16 bytes hold, which a
 * thread reads and writes at once; a row */
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

/* A window over images of up to three directions, of fewer than 2^31 elements each. */
typedef struct cs_window_work {
    int32_t in[3], out[3], kernel[3], stride[3], pad[3];
    int32_t adaptive, most; /* evenly divided; the maximum, not the mean */
} cs_window_work;

enum { CS_POINT_LISTS = 10 };

/* Where the matrices of attention's heads begin: the list of pointers to them, for a product of
 * many matrices. */
typedef struct cs_point_list {
    char *base;
    int64_t sample_stride, head_stride; /* bytes */
    int32_t per_key;                    /* one for all heads that share keys */
} cs_point_list;

typedef struct cs_point_work {
    cs_point_list lists[CS_POINT_LISTS];
    int64_t samples, keys, shared; /* keys: heads of keys; shared: heads per head of keys */
} cs_point_work;

/* What each body takes stands with it in device-code.h. Of rows, `columns` tells how long they are,
 * so that short ones get few threads; 0: long. */
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
