/* Runs the passes of operators by small kernels (device-work.h).
 *
 * A launcher starts the kernels: on a GPU's stream, or in a test on the host.
 */
#ifndef CS_CALIB_DEVICE_OPERATORS_H
#define CS_CALIB_DEVICE_OPERATORS_H

#include "calib/bench/cuda/device-work.h"
#include "calib/bench/device/backend.h"

typedef struct cs_launcher {
    CS_MUST_CHECK cs_status (*start)(void *context, cs_body body, cs_precision precision,
                                     const cs_work *work, int64_t items, cs_error *error);
    void *context;
} cs_launcher;

CS_MUST_CHECK cs_status cs_launch(const cs_launcher *launcher, cs_body body, cs_precision precision,
                                  const cs_work *work, int64_t items, cs_error *error);

/* Returns the bytes of workspace that cs_device_run needs. */
int64_t cs_device_workspace(const cs_kernel *kernel, cs_pass pass);

/* Runs any pass of an operator that needs no library: all except convolutions, linear layers, batch
 * norm, softmax and attention. Sums over rows do not depend on the device; the sums of an
 * embedding's gradient are added in any order. */
CS_MUST_CHECK cs_status cs_device_run(const cs_launcher *launcher, const cs_kernel *kernel,
                                      cs_pass pass, const cs_operands *at, cs_error *error);

/* Fills memory, except with zeros: devices have faster functions for zeros. */
CS_MUST_CHECK cs_status cs_device_fill(const cs_launcher *launcher, cs_fill fill,
                                       cs_precision precision, void *data, int64_t elements,
                                       double limit, cs_error *error);
CS_MUST_CHECK cs_status cs_device_widen(const cs_launcher *launcher, cs_precision precision,
                                        float *to, const void *from, int64_t elements,
                                        cs_error *error);
CS_MUST_CHECK cs_status cs_device_update(const cs_launcher *launcher, const cs_update *update,
                                         cs_error *error);

/* Computes to[c] += the sum over rows of from[row * stride + c]; `workspace` has
 * cs_device_sums_bytes bytes. */
int64_t cs_device_sums_bytes(int64_t rows, int64_t columns);
CS_MUST_CHECK cs_status cs_device_sum_rows(const cs_launcher *launcher, cs_precision precision,
                                           const void *from, int64_t stride, int64_t rows,
                                           int64_t columns, void *to, void *workspace,
                                           cs_error *error);

/* Copies n rows of `columns` numbers. */
typedef struct cs_rows {
    const void *from;
    void *to;
    const int64_t *ids;             /* indices of rows of `from`, or NULL: in order */
    int64_t from_stride, to_stride; /* elements */
    int64_t n, columns;
} cs_rows;

CS_MUST_CHECK cs_status cs_device_copy_rows(const cs_launcher *launcher, cs_precision precision,
                                            const cs_rows *rows, cs_error *error);

/* Returns the window of a pooling; missing directions have size 1. */
cs_window_work cs_device_window(const cs_kernel *kernel);

#endif
