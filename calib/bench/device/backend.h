/* Backends: devices that run real kernels.
 *
 * A backend is a table of functions on an opened device. Kernels start in order, and may run
 * asynchronously (in a GPU's stream). So memory that they use may be reused by later kernels, but
 * not returned to the system. Marks are points in that order whose times can be read later. An
 * opened device serves the kernels of one network, which must outlive it.
 */
#ifndef CS_CALIB_BACKEND_H
#define CS_CALIB_BACKEND_H

#include "calib/bench/device/kernel.h"
#include "calib/costs.h"

typedef struct cs_bench cs_bench; /* an opened device, defined by each backend */

struct cs_carrier;

typedef enum cs_fill {
    CS_FILL_ZERO,
    CS_FILL_NUMBERS, /* uniform in (-limit, limit) */
    CS_FILL_IDS,     /* int64, from 0 to limit - 1 */
} cs_fill;

typedef enum cs_copy {
    CS_COPY_DEVICE,
    /* this copy and the next return when the host memory has been read or written */
    CS_COPY_TO_DEVICE,
    CS_COPY_FROM_DEVICE,
    CS_COPY_HELD_TO_DEVICE, /* between the device and pinned host memory; only started */
    CS_COPY_HELD_FROM_DEVICE,
    CS_COPY_TO_PEER, /* into memory from `allocate_on_peer` */
} cs_copy;

/* An optimizer with 0, 1 or 2 states per parameter. It reads parameters from `from`, writes them to
 * `to` (which may be the same), and clears the gradients. States are float32, one array of all
 * parameters after another. With 2-byte numbers, a float32 copy of the parameters precedes the
 * states, and the optimizer updates this copy. */
typedef struct cs_update {
    void *to, *gradients, *states;
    const void *from;
    int64_t parameters;
    uint32_t n_states;
    cs_precision precision;
} cs_update;

typedef struct cs_backend {
    const char *name;                 /* "cpu" */
    bool own_memory;                  /* whether the device's memory is separate from the host's */
    uint32_t precisions;              /* bit 1 << cs_precision of each supported precision */
    const struct cs_carrier *carrier; /* sends messages between such devices; NULL: MPI (wire.h) */
    CS_MUST_CHECK cs_status (*open)(uint32_t index, cs_bench **bench, cs_error *error);
    void (*close)(cs_bench *bench); /* accepts NULL */
    /* Fills device, driver, libraries and clock with texts that live as long as the device. */
    void (*describe)(cs_bench *bench, cs_cost_source *source);

    /* Bytes of the last-level cache of the device's own memory; NULL if the device uses host
     * memory. */
    int64_t (*cache)(const cs_bench *bench);

    /* Allocates memory, aligned for any vector; bytes > 0. The message of CS_NO_MEMORY states the
     * device and the bytes. */
    CS_MUST_CHECK cs_status (*allocate)(cs_bench *bench, int64_t bytes, void **data,
                                        cs_error *error);
    /* waits for kernels that use the memory; also accepts a peer's memory */
    void (*release)(cs_bench *bench, void *data);
    /* `precision` applies to numbers; ids are int64. */
    CS_MUST_CHECK cs_status (*fill)(cs_bench *bench, cs_fill fill, cs_precision precision,
                                    void *data, int64_t elements, double limit, cs_error *error);
    CS_MUST_CHECK cs_status (*copy)(cs_bench *bench, cs_copy copy, void *to, const void *from,
                                    int64_t bytes, cs_error *error);

    /* Pins host memory until `let_go`, so that copies need no intermediate buffer; NULL on devices
     * without their own memory. */
    CS_MUST_CHECK cs_status (*hold)(cs_bench *bench, void *host, int64_t bytes, cs_error *error);
    void (*let_go)(cs_bench *bench, void *host);

    /* ---- NULL on devices without their own memory ---- */

    /* Returns the free and the total bytes, including what other processes use. */
    CS_MUST_CHECK cs_status (*room)(cs_bench *bench, int64_t *left, int64_t *all, cs_error *error);
    /* Allocates memory on another device of the same kind in this machine; *data is NULL if there
     * is none. `direct`: whether one device reaches the other's memory without the host. */
    CS_MUST_CHECK cs_status (*allocate_on_peer)(cs_bench *bench, int64_t bytes, void **data,
                                                bool *direct, cs_error *error);
    /* Keeps the device busy for this time, so that kernels started meanwhile wait for the delay and
     * not for the host. */
    CS_MUST_CHECK cs_status (*delay)(cs_bench *bench, double seconds, cs_error *error);

    /* ---- work ---- */

    /* Returns the bytes of a pass's workspace; chosen once per kernel and pass from
     * the algorithms of the library. `algorithm`: its name, valid while the network is trained with
     * the same batch; "" if there is only one. */
    CS_MUST_CHECK cs_status (*workspace)(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                         int64_t *bytes, const char **algorithm, cs_error *error);
    /* Runs forward, backward_input or backward_weight, if the operator has work in this pass. */
    CS_MUST_CHECK cs_status (*run)(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                   const cs_operands *operands, cs_error *error);
    /* to += from */
    CS_MUST_CHECK cs_status (*accumulate)(cs_bench *bench, void *to, const void *from,
                                          int64_t elements, cs_precision precision,
                                          cs_error *error);
    /* to = from, converted from `precision` to float32; NULL on devices without 2-byte numbers. */
    CS_MUST_CHECK cs_status (*widen)(cs_bench *bench, float *to, const void *from, int64_t elements,
                                     cs_precision precision, cs_error *error);
    CS_MUST_CHECK cs_status (*update)(cs_bench *bench, const cs_update *update, cs_error *error);

    /* Marks 0, 1, ...: `times` waits for the first n marks and returns their seconds, on a clock
     * that all processes of the machine share. */
    CS_MUST_CHECK cs_status (*mark)(cs_bench *bench, uint32_t mark, cs_error *error);
    CS_MUST_CHECK cs_status (*times)(cs_bench *bench, uint32_t n, double *seconds, cs_error *error);
    CS_MUST_CHECK cs_status (*wait)(cs_bench *bench, cs_error *error);
} cs_backend;

#endif
