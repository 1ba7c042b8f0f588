/* What one small kernel of a GPU does, as data: own kernels for what libraries do not offer.
 *
 * A body does one item of a kernel: an element, or a row that the threads of a block share
 * (device-code.h). A work says where it reads and writes. The bodies are compiled for the GPU, and
 * for the host to be tested; which of them an operator needs is device-operators.h.
 *
 * Plain C and C++: the CUDA compiler reads it too.
 */
#ifndef CS_CALIB_DEVICE_WORK_H
#define CS_CALIB_DEVICE_WORK_H

#include "sim/workload/precision.h"

/* name, whether an item is a row */
#define CS_BODY_MAP(X)                                                                             \
    X(fill_numbers, 0)                                                                             \
    X(fill_ids, 0)                                                                                 \
    X(accumulate, 0)                                                                               \
    X(update, 0)                                                                                   \
    X(map_forward, 0)                                                                              \
    X(map_input, 0)                                                                                \
    X(add, 0)                                                                                      \
    X(mul, 0)                                                                                      \
    X(copy_blocks, 0)                                                                              \
    X(dropout_forward, 0)                                                                          \
    X(dropout_input, 0)                                                                            \
    X(rotate, 0)                                                                                   \
    X(pool_forward, 0)                                                                             \
    X(pool_input, 0)                                                                               \
    X(embedding_forward, 0)                                                                        \
    X(embedding_weight, 0)                                                                         \
    X(sum_columns, 0)                                                                              \
    X(add_partial_sums, 0)                                                                         \
    X(widen, 0)                                                                                    \
    X(accumulate_wide, 0)                                                                          \
    X(entropy_input, 0)                                                                            \
    X(squares_input, 0)                                                                            \
    X(point, 0)                                                                                    \
    X(norm_forward, 1)                                                                             \
    X(norm_input, 1)                                                                               \
    X(entropy_forward, 1)                                                                          \
    X(squares_forward, 1)                                                                          \
    X(sum_up, 1)                                                                                   \
    X(weigh_forward, 1)                                                                            \
    X(weigh_input, 1)

typedef enum cs_body {
#define CS_BODY_ENUM(name, row) CS_BODY_##name,
    CS_BODY_MAP(CS_BODY_ENUM)
#undef CS_BODY_ENUM
        CS_N_BODIES
} cs_body;

/* A window over images of up to three directions. */
typedef struct cs_window_work {
    int32_t in[3], out[3], kernel[3], stride[3], pad[3];
    int32_t adaptive, most; /* evenly divided; the maximum, not the mean */
} cs_window_work;

enum { CS_POINT_LISTS = 10 };

/* Where the matrices of attention's heads begin: the list of pointers to them, for a product of many
 * matrices. */
typedef struct cs_point_list {
    char *base;
    int64_t sample_stride, head_stride; /* bytes */
    int32_t per_key;                    /* one for all heads that share keys */
} cs_point_list;

typedef struct cs_point_work {
    cs_point_list lists[CS_POINT_LISTS];
    int64_t samples, keys, shared; /* keys: heads of keys; shared: heads per head of keys */
} cs_point_work;

/* What each body takes stands with it in device-code.h. */
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
