#include "tests/host-device.h"

#include "calib/bench/cpu/cpu-backend.h"
#include "calib/bench/cpu/cpu-kernels.h"
#include "calib/bench/cuda/device-code.h"

#include <stdlib.h>

#ifdef CS_WITH_CUDA
#include "calib/bench/cuda/cuda-device.h"
#else
struct cs_bench {
    cs_launcher launcher;
};
#endif

/* ---- kernels ---- */

typedef void element_body(cs_precision precision, const cs_work *work, int64_t i);
typedef void group_body(cs_precision precision, const cs_work *work, cs_device_group group);
typedef void row_body(cs_precision precision, const cs_work *work, int64_t row, int lane,
                      int lanes);

static const struct {
    element_body *element;
    group_body *group;
    row_body *row;
} bodies[] = {
#define OF(name, item) {.item = name},
    CS_BODY_MAP(OF)};

static cs_status start(void *context, cs_body body, cs_precision precision, const cs_work *work,
                       int64_t items, cs_error *error)
{
    int64_t n = bodies[body].group ? cs_groups(precision, 0, items) : items;
    (void)context, (void)error;
    for (int64_t i = 0; i < n; i++) {
        if (bodies[body].row)
            bodies[body].row(precision, work, i, 0, 1);
        else if (bodies[body].group)
            bodies[body].group(precision, work, cs_group_of(precision, 0, items, i));
        else
            bodies[body].element(precision, work, i);
    }
    return CS_OK;
}

const cs_launcher cs_host_launcher = {start, NULL};

/* ---- the backend ---- */

static cs_status host_open(uint32_t index, cs_bench **bench, cs_error *error)
{
    cs_bench *made = calloc(1, sizeof(*made));
    (void)index;
    if (!made)
        return cs_error_no_memory(error);
    made->launcher = cs_host_launcher;
    *bench = made;
    return CS_OK;
}

static void host_close(cs_bench *bench)
{
#ifdef CS_WITH_CUDA
    for (uint32_t i = 0; bench && i < bench->n_plans; i++)
        cs_cuda_plan_finish(&bench->plans[i]);
    if (bench)
        free(bench->plans);
#endif
    free(bench);
}

static cs_status host_allocate(cs_bench *bench, int64_t bytes, void **data, cs_error *error)
{
    (void)bench;
    return cs_backend_cpu.allocate(NULL, bytes, data, error);
}

static void host_release(cs_bench *bench, void *data)
{
    (void)bench;
    cs_backend_cpu.release(NULL, data);
}

static cs_status host_fill(cs_bench *bench, cs_fill fill, cs_precision precision, void *data,
                           int64_t elements, double limit, cs_error *error)
{
    size_t bytes = (size_t)elements * cs_precision_bytes(precision);
    if (fill == CS_FILL_ZERO)
        memset(data, 0, bytes);
    else if (precision == CS_PRECISION_BF16)
        return cs_device_fill(&bench->launcher, fill, precision, data, elements, limit, error);
    else
        return cs_backend_cpu.fill(NULL, fill, precision, data, elements, limit, error);
    return CS_OK;
}

static cs_status host_copy(cs_bench *bench, cs_copy copy, void *to, const void *from, int64_t bytes,
                           cs_error *error)
{
    (void)bench;
    return cs_backend_cpu.copy(NULL, copy, to, from, bytes, error);
}

typedef enum owner { OF_CPU, OF_DEVICE, OF_LIBRARY } owner;

static owner owner_of(const cs_kernel *kernel)
{
    switch (kernel->op->kind) {
    case CS_OP_CONV:
    case CS_OP_BATCH_NORM:
    case CS_OP_SOFTMAX:
        return OF_CPU;
    case CS_OP_LINEAR:
    case CS_OP_ATTENTION:
        return OF_LIBRARY;
    default:
        return OF_DEVICE;
    }
}

#ifdef CS_WITH_CUDA

static const cs_cuda_operator *library_of(const cs_kernel *kernel)
{
    return kernel->op->kind == CS_OP_LINEAR ? &cs_cuda_linear : &cs_cuda_attention;
}

static cs_status library_workspace(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                   int64_t *bytes, cs_error *error)
{
    cs_cuda_plan *plan;
    cs_status status = cs_cuda_plan_find(bench, kernel, pass, &plan, error);
    if (status == CS_OK && !plan->made)
        status = library_of(kernel)->plan(bench, kernel, pass, plan, error);
    if (status != CS_OK)
        return status;
    plan->made = true;
    *bytes = plan->workspace;
    return CS_OK;
}

static cs_status library_run(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                             const cs_operands *at, cs_error *error)
{
    cs_cuda_plan *plan;
    cs_status status = cs_cuda_plan_find(bench, kernel, pass, &plan, error);
    return status == CS_OK ? library_of(kernel)->run(bench, kernel, pass, plan, at, error) : status;
}

#else

static cs_status library_workspace(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                   int64_t *bytes, cs_error *error)
{
    (void)bench, (void)error;
    *bytes = cs_cpu_workspace(kernel, pass);
    return CS_OK;
}

static cs_status library_run(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                             const cs_operands *at, cs_error *error)
{
    (void)bench, (void)error;
    cs_cpu_run(kernel, pass, at);
    return CS_OK;
}

#endif

static cs_status host_workspace(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                int64_t *bytes, const char **algorithm, cs_error *error)
{
    *algorithm = "";
    if (owner_of(kernel) == OF_LIBRARY)
        return library_workspace(bench, kernel, pass, bytes, error);
    *bytes = owner_of(kernel) == OF_CPU ? cs_cpu_workspace(kernel, pass)
                                        : cs_device_workspace(kernel, pass);
    return CS_OK;
}

static cs_status host_run(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                          const cs_operands *at, cs_error *error)
{
    if (owner_of(kernel) == OF_LIBRARY)
        return library_run(bench, kernel, pass, at, error);
    if (owner_of(kernel) == OF_DEVICE)
        return cs_device_run(&bench->launcher, kernel, pass, at, error);
    cs_cpu_run(kernel, pass, at);
    return CS_OK;
}

static cs_status host_accumulate(cs_bench *bench, void *to, const void *from, int64_t elements,
                                 cs_precision precision, cs_error *error)
{
    cs_work work = {.a = from, .y = to};
    return cs_launch(&bench->launcher, CS_BODY_accumulate, precision, &work, elements, error);
}

static cs_status host_widen(cs_bench *bench, float *to, const void *from, int64_t elements,
                            cs_precision precision, cs_error *error)
{
    return cs_device_widen(&bench->launcher, precision, to, from, elements, error);
}

static cs_status host_update(cs_bench *bench, const cs_update *update, cs_error *error)
{
    return cs_device_update(&bench->launcher, update, error);
}

const cs_backend cs_backend_host_device = {
    .name = "host device",
    .precisions = 1 << CS_PRECISION_FP32 | 1 << CS_PRECISION_TF32 | 1 << CS_PRECISION_BF16,
    .open = host_open,
    .close = host_close,
    .allocate = host_allocate,
    .release = host_release,
    .fill = host_fill,
    .copy = host_copy,
    .workspace = host_workspace,
    .run = host_run,
    .accumulate = host_accumulate,
    .widen = host_widen,
    .update = host_update,
};
