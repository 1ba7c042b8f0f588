/* Which of the small kernels (device-work.h) an operator's passes are made of.
 *
 * The kernels are started by a launcher: on a GPU's stream, or in a test on the host.
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

/* Bytes that cs_device_run needs besides the operands. */
int64_t cs_device_workspace(const cs_kernel *kernel, cs_pass pass);

/* All passes of the operators that need no library: not of convolutions, linear layers, batch norm,
 * softmax and attention. Sums over rows do not depend on the device; those of an embedding's
 * gradient come in any order. */
CS_MUST_CHECK cs_status cs_device_run(const cs_launcher *launcher, const cs_kernel *kernel,
                                      cs_pass pass, const cs_operands *at, cs_error *error);

/* Not with zeros: devices have something faster for them. */
CS_MUST_CHECK cs_status cs_device_fill(const cs_launcher *launcher, cs_fill fill,
                                       cs_precision precision, void *data, int64_t elements,
                                       double limit, cs_error *error);
CS_MUST_CHECK cs_status cs_device_widen(const cs_launcher *launcher, cs_precision precision,
                                        float *to, const void *from, int64_t elements,
                                        cs_error *error);
CS_MUST_CHECK cs_status cs_device_update(const cs_launcher *launcher, const cs_update *update,
                                         cs_error *error);

/* to[c] += the sum over rows of from[row * stride + c]; `workspace` has the bytes that
 * cs_device_sums_bytes says. */
int64_t cs_device_sums_bytes(int64_t rows, int64_t columns);
CS_MUST_CHECK cs_status cs_device_sum_rows(const cs_launcher *launcher, cs_precision precision,
                                           const void *from, int64_t stride, int64_t rows,
                                           int64_t columns, void *to, void *workspace,
                                           cs_error *error);

/* n rows of `columns` numbers. */
typedef struct cs_rows {
    const void *from;
    void *to;
    const int64_t *ids;             /* of rows of `from`, or NULL: in their order */
    int64_t from_stride, to_stride; /* elements */
    int64_t n, columns;
} cs_rows;

CS_MUST_CHECK cs_status cs_device_copy_rows(const cs_launcher *launcher, cs_precision precision,
                                            const cs_rows *rows, cs_error *error);

/* The window of a pooling, per direction; sizes of 1 where it has none. */
cs_window_work cs_device_window(const cs_kernel *kernel);

#endif
