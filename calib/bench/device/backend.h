/* Backends: devices that compute for real.
 *
 * A backend is a table of functions on an opened device. Kernels are started in order; a device may
 * work behind the caller's back (a GPU's stream), so what they read and write is not given back to
 * the system, only to later kernels. Marks are points in that order whose times can be asked for
 * afterwards. An opened device serves the kernels of one network, which outlives it.
 */
#ifndef CS_CALIB_BACKEND_H
#define CS_CALIB_BACKEND_H

#include "calib/bench/device/kernel.h"
#include "calib/costs.h"

typedef struct cs_bench cs_bench; /* an opened device; each backend has its own */

struct cs_carrier;

typedef enum cs_fill {
    CS_FILL_ZERO,
    CS_FILL_NUMBERS, /* uniform in (-limit, limit) */
    CS_FILL_IDS,     /* int64, from 0 to limit - 1 */
} cs_fill;

typedef enum cs_copy {
    CS_COPY_DEVICE,
    CS_COPY_TO_DEVICE, /* these two return when the host's memory has been read, or written */
    CS_COPY_FROM_DEVICE,
    CS_COPY_HELD_TO_DEVICE, /* between the device and host memory that is held: only started */
    CS_COPY_HELD_FROM_DEVICE,
    CS_COPY_TO_PEER, /* into memory that `allocate_on_peer` gave */
} cs_copy;

/* An optimizer with 0, 1 or 2 states per parameter: reads parameters from `from`, writes them to
 * `to` (which may be the same), and clears the gradients. States are float32, one after the other,
 * all parameters of each; with numbers of 2 bytes a float32 copy of the parameters stands before
 * them, which is what is updated. */
typedef struct cs_update {
    void *to, *gradients, *states;
    const void *from;
    int64_t parameters;
    uint32_t n_states;
    cs_precision precision;
} cs_update;

typedef struct cs_backend {
    const char *name;                 /* "cpu" */
    bool own_memory;                  /* apart from the host's */
    uint32_t precisions;              /* bit 1 << cs_precision of each that it computes with */
    const struct cs_carrier *carrier; /* what sends between such devices; NULL: MPI (wire.h) */
    CS_MUST_CHECK cs_status (*open)(uint32_t index, cs_bench **bench, cs_error *error);
    void (*close)(cs_bench *bench); /* takes NULL */
    /* Fills device, driver, libraries and clock with texts that live as long as the device. */
    void (*describe)(cs_bench *bench, cs_cost_source *source);

    /* Bytes of the last cache before the device's own memory; NULL where that is the host's. */
    int64_t (*cache)(const cs_bench *bench);

    /* Memory, aligned for any vector; bytes > 0. CS_NO_MEMORY names device and bytes. */
    CS_MUST_CHECK cs_status (*allocate)(cs_bench *bench, int64_t bytes, void **data,
                                        cs_error *error);
    void (*release)(cs_bench *bench, void *data); /* waits for what uses it; also a peer's */
    /* `precision` is of numbers; ids are int64. */
    CS_MUST_CHECK cs_status (*fill)(cs_bench *bench, cs_fill fill, cs_precision precision,
                                    void *data, int64_t elements, double limit, cs_error *error);
    CS_MUST_CHECK cs_status (*copy)(cs_bench *bench, cs_copy copy, void *to, const void *from,
                                    int64_t bytes, cs_error *error);

    /* Holds host memory in place, so that copies need no detour, until it is released; NULL
     * on devices without a memory of their own. */
    CS_MUST_CHECK cs_status (*hold)(cs_bench *bench, void *host, int64_t bytes, cs_error *error);
    void (*let_go)(cs_bench *bench, void *host);

    /* ---- NULL on devices without a memory of their own ---- */

    /* Bytes that are free and that there are, whoever has the others. */
    CS_MUST_CHECK cs_status (*room)(cs_bench *bench, int64_t *left, int64_t *all, cs_error *error);
    /* Memory on another device of its kind in this machine; *data NULL where there is none.
     * `direct`: one reaches the other's memory without the host. */
    CS_MUST_CHECK cs_status (*allocate_on_peer)(cs_bench *bench, int64_t bytes, void **data,
                                                bool *direct, cs_error *error);
    /* Keeps the device busy for so long, so that kernels which are started meanwhile wait for it
     * and not for the host. */
    CS_MUST_CHECK cs_status (*delay)(cs_bench *bench, double seconds, cs_error *error);

    /* ---- work ---- */

    /* What a pass needs besides its operands: chosen once per kernel and pass, by what the library
     * offers. `algorithm`: its name, "" if there is only one, which stays as long as the network is
     * trained with the same batch. */
    CS_MUST_CHECK cs_status (*workspace)(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                         int64_t *bytes, const char **algorithm, cs_error *error);
    /* Forward, backward_input and backward_weight, where there is something to do. */
    CS_MUST_CHECK cs_status (*run)(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                   const cs_operands *operands, cs_error *error);
    /* to += from */
    CS_MUST_CHECK cs_status (*accumulate)(cs_bench *bench, void *to, const void *from,
                                          int64_t elements, cs_precision precision,
                                          cs_error *error);
    /* to = from, numbers of `precision` made float32; NULL on devices without numbers of 2 bytes.
     */
    CS_MUST_CHECK cs_status (*widen)(cs_bench *bench, float *to, const void *from, int64_t elements,
                                     cs_precision precision, cs_error *error);
    CS_MUST_CHECK cs_status (*update)(cs_bench *bench, const cs_update *update, cs_error *error);

    /* Marks 0, 1, ...: `times` waits, and gives seconds of the first n on a clock that all
     * processes of the machine share. */
    CS_MUST_CHECK cs_status (*mark)(cs_bench *bench, uint32_t mark, cs_error *error);
    CS_MUST_CHECK cs_status (*times)(cs_bench *bench, uint32_t n, double *seconds, cs_error *error);
    CS_MUST_CHECK cs_status (*wait)(cs_bench *bench, cs_error *error);
} cs_backend;

#endif
