#include "calib/bench/cuda/cuda-device.h"

#include "calib/bench/cuda/cuda-delay.h"
#include "calib/bench/cuda/cuda-kernels.h"
#include "calib/bench/device/driver-version.h"
#ifdef CS_WITH_NCCL
#include "calib/bench/cuda/nccl-wire.h"
#endif
#include "sim/base/vector.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- opening, with a separate message for each problem of the machine ---- */

/* Selects a GPU; if there are fewer GPUs than processes, processes share GPUs round-robin. */
static cs_status choose_gpu(cs_bench *bench, uint32_t index, cs_error *error)
{
    int n = 0;
    cudaError_t code = cudaGetDeviceCount(&n);
    if (code != cudaSuccess || n == 0) {
        int driver = 0, runtime = 0;
        if (cudaDriverGetVersion(&driver) != cudaSuccess ||
            cudaRuntimeGetVersion(&runtime) != cudaSuccess)
            driver = 0;
        if (driver == 0)
            return cs_error_add(
                error, CS_FAILED,
                "no NVIDIA driver is loaded on this machine (libcuda.so.1): install "
                "one, or measure with --backend cpu");
        if (code == cudaErrorInsufficientDriver)
            return cs_error_add(
                error, CS_FAILED,
                "the NVIDIA driver knows CUDA up to %d.%d, this program was built with "
                "%d.%d: install a newer driver, or build with an older toolkit",
                driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
        if (code == cudaErrorNoDevice || code == cudaSuccess)
            return cs_error_add(
                error, CS_FAILED,
                "the NVIDIA driver sees no GPU on this machine (CUDA_VISIBLE_DEVICES "
                "may hide them): nvidia-smi lists those that there are");
        return cs_cuda_complain("cudaGetDeviceCount", __FILE__, __LINE__, cudaGetErrorName(code),
                                cudaGetErrorString(code), error);
    }
    bench->index = (int)(index % (uint32_t)n);
    return CS_CUDA(cudaSetDevice(bench->index), error);
}

static cs_status look(cs_bench *bench, cs_error *error)
{
    struct cudaDeviceProp gpu;
    int driver = 0, runtime = 0, kilohertz = 0;
    cs_status status = CS_CUDA(cudaGetDeviceProperties(&gpu, bench->index), error);
    if (status == CS_OK)
        status = CS_CUDA(cudaDriverGetVersion(&driver), error);
    if (status == CS_OK)
        status = CS_CUDA(cudaRuntimeGetVersion(&runtime), error);
    if (status == CS_OK)
        status =
            CS_CUDA(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, bench->index), error);
    if (status != CS_OK)
        return status;
    snprintf(bench->device, sizeof(bench->device), "%s", gpu.name);
    /* Describe the driver, such as "NVIDIA 535.104.05, CUDA up to 12.2". A container may hide the
     * file of the kernel module. */
    char line[256] = "", version[32];
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    if (file && !fgets(line, sizeof(line), file))
        line[0] = '\0';
    if (file)
        fclose(file);
    cs_driver_version(line, version, sizeof(version));
    snprintf(bench->driver, sizeof(bench->driver), "NVIDIA%s%s, CUDA up to %d.%d",
             version[0] ? " " : "", version, driver / 1000, driver % 1000 / 10);
    snprintf(bench->libraries, sizeof(bench->libraries), "CUDA %d.%d, cuDNN %zu, cuBLASLt %zu",
             runtime / 1000, runtime % 1000 / 10, cudnnGetVersion(), cublasLtGetVersion());
    snprintf(bench->clock, sizeof(bench->clock), "%d MHz at most, not fixed", kilohertz / 1000);
    return CS_OK;
}

static cs_status start_libraries(cs_bench *bench, cs_error *error)
{
    cs_status status =
        CS_CUDA(cudaStreamCreateWithFlags(&bench->stream, cudaStreamNonBlocking), error);
    if (status == CS_OK)
        status = CS_CUDNN(cudnnCreate(&bench->dnn), error);
    if (status == CS_OK)
        status = CS_CUDNN(cudnnSetStream(bench->dnn, bench->stream), error);
    if (status == CS_OK)
        status = CS_CUBLAS(cublasCreate(&bench->blas), error);
    if (status == CS_OK)
        status = CS_CUBLAS(cublasSetStream(bench->blas, bench->stream), error);
    if (status == CS_OK)
        status = CS_CUBLAS(cublasLtCreate(&bench->lt), error);
    return status;
}

static cs_status launch(void *context, cs_body body, cs_precision precision, const cs_work *work,
                        int64_t items, cs_error *error)
{
    cs_bench *bench = context;
    return CS_CUDA(cs_cuda_start(body, precision, work, items, bench->stream), error);
}

/* Ignores errors when closing a GPU. */
static void cuda_close(cs_bench *bench)
{
    if (!bench)
        return;
    for (uint32_t i = 0; i < bench->n_plans; i++)
        cs_cuda_plan_finish(&bench->plans[i]);
    for (uint32_t i = 0; i < bench->n_marks; i++)
        (void)cudaEventDestroy(bench->marks[i]);
    if (bench->lt)
        (void)cublasLtDestroy(bench->lt);
    if (bench->blas)
        (void)cublasDestroy(bench->blas);
    if (bench->dnn)
        (void)cudnnDestroy(bench->dnn);
    if (bench->stream)
        (void)cudaStreamDestroy(bench->stream);
    free(bench->plans);
    free(bench->marks);
    free(bench);
}

static cs_status cuda_open(uint32_t index, cs_bench **bench, cs_error *error)
{
    cs_bench *made = calloc(1, sizeof(*made));
    if (!made)
        return cs_error_no_memory(error);
    made->launcher = (cs_launcher){launch, made};
    cs_status status = choose_gpu(made, index, error);
    if (status == CS_OK)
        status = look(made, error);
    if (status == CS_OK)
        status = start_libraries(made, error);
    if (status == CS_OK)
        *bench = made;
    else
        cuda_close(made);
    return status;
}

static void cuda_describe(cs_bench *bench, cs_cost_source *source)
{
    source->device = bench->device;
    source->driver = bench->driver;
    source->libraries = bench->libraries;
    source->clock = bench->clock;
}

/* ---- memory ---- */

static int64_t cuda_cache(const cs_bench *bench)
{
    int bytes = 0;
    if (cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, bench->index) != cudaSuccess)
        bytes = 0;
    return bytes;
}

static cs_status cuda_allocate(cs_bench *bench, int64_t bytes, void **data, cs_error *error)
{
    void *made;
    size_t left = 0, all = 0;
    cudaError_t code = cudaMalloc(&made, (size_t)bytes);
    if (code == cudaSuccess) {
        *data = made;
        return CS_OK;
    }
    if (code != cudaErrorMemoryAllocation)
        return cs_cuda_complain("cudaMalloc", __FILE__, __LINE__, cudaGetErrorName(code),
                                cudaGetErrorString(code), error);
    (void)cudaGetLastError(); /* clear the error, or the next call would report it */
    if (cudaMemGetInfo(&left, &all) != cudaSuccess)
        left = all = 0;
    return cs_error_add(error, CS_NO_MEMORY,
                        "%s (GPU %d) is out of memory: %lld bytes were asked for, %zu of %zu are "
                        "free",
                        bench->device, bench->index, (long long)bytes, left, all);
}

static void cuda_release(cs_bench *bench, void *data)
{
    (void)bench;
    (void)cudaFree(data);
}

static cs_status cuda_fill(cs_bench *bench, cs_fill fill, cs_precision precision, void *data,
                           int64_t elements, double limit, cs_error *error)
{
    size_t bytes = (size_t)elements * cs_precision_bytes(precision);
    if (fill == CS_FILL_ZERO)
        return CS_CUDA(cudaMemsetAsync(data, 0, bytes, bench->stream), error);
    return cs_device_fill(&bench->launcher, fill, precision, data, elements, limit, error);
}

static cs_status cuda_hold(cs_bench *bench, void *host, int64_t bytes, cs_error *error)
{
    (void)bench;
    return CS_CUDA(cudaHostRegister(host, (size_t)bytes, cudaHostRegisterDefault), error);
}

static void cuda_let_go(cs_bench *bench, void *host)
{
    (void)bench;
    (void)cudaHostUnregister(host);
}

static cs_status cuda_room(cs_bench *bench, int64_t *left, int64_t *all, cs_error *error)
{
    size_t free_bytes, total;
    (void)bench;
    CS_TRY(CS_CUDA(cudaMemGetInfo(&free_bytes, &total), error));
    *left = (int64_t)free_bytes;
    *all = (int64_t)total;
    return CS_OK;
}

/* Finds the next GPU. If all GPUs are connected alike, copies within one pair represent the
 * others. */
static cs_status find_peer(const cs_bench *bench, int *peer, cs_error *error)
{
    int n;
    cs_status status = CS_CUDA(cudaGetDeviceCount(&n), error);
    if (status == CS_OK)
        *peer = (bench->index + 1) % n;
    return status;
}

static cs_status reach(int peer, cs_error *error)
{
    cudaError_t code = cudaDeviceEnablePeerAccess(peer, 0);
    if (code != cudaErrorPeerAccessAlreadyEnabled)
        return CS_CUDA(code, error);
    (void)cudaGetLastError(); /* clear the error, or the next call would report it */
    return CS_OK;
}

static cs_status cuda_allocate_on_peer(cs_bench *bench, int64_t bytes, void **data, bool *direct,
                                       cs_error *error)
{
    int peer, can = 0;
    void *made = NULL;
    *data = NULL;
    cs_status status = find_peer(bench, &peer, error);
    if (status != CS_OK || peer == bench->index)
        return status;
    status = CS_CUDA(cudaDeviceCanAccessPeer(&can, bench->index, peer), error);
    if (status == CS_OK && can)
        status = reach(peer, error);
    if (status == CS_OK)
        status = CS_CUDA(cudaSetDevice(peer), error);
    if (status != CS_OK)
        return status;
    status = CS_CUDA(cudaMalloc(&made, (size_t)bytes), error);
    cs_status back = CS_CUDA(cudaSetDevice(bench->index), status == CS_OK ? error : NULL);
    if (status == CS_OK && back != CS_OK)
        (void)cudaFree(made);
    status = status == CS_OK ? back : status;
    if (status == CS_OK) {
        *data = made;
        *direct = can != 0;
    }
    return status;
}

static cs_status cuda_copy(cs_bench *bench, cs_copy copy, void *to, const void *from, int64_t bytes,
                           cs_error *error)
{
    static const enum cudaMemcpyKind kinds[] = {[CS_COPY_DEVICE] = cudaMemcpyDeviceToDevice,
                                                [CS_COPY_TO_DEVICE] = cudaMemcpyHostToDevice,
                                                [CS_COPY_FROM_DEVICE] = cudaMemcpyDeviceToHost,
                                                [CS_COPY_HELD_TO_DEVICE] = cudaMemcpyHostToDevice,
                                                [CS_COPY_HELD_FROM_DEVICE] =
                                                    cudaMemcpyDeviceToHost};
    if (copy == CS_COPY_TO_PEER) {
        int peer;
        CS_TRY(find_peer(bench, &peer, error));
        return CS_CUDA(
            cudaMemcpyPeerAsync(to, peer, from, bench->index, (size_t)bytes, bench->stream), error);
    }
    cs_status status =
        CS_CUDA(cudaMemcpyAsync(to, from, (size_t)bytes, kinds[copy], bench->stream), error);
    if (status == CS_OK && (copy == CS_COPY_TO_DEVICE || copy == CS_COPY_FROM_DEVICE))
        status = CS_CUDA(cudaStreamSynchronize(bench->stream), error);
    return status;
}

/* ---- operators ---- */

/* Returns the library of an operator. Max pooling and uneven pooling use own kernels: for the
 * former, cuDNN keeps the output, unlike frameworks; it lacks the latter. */
static const cs_cuda_operator *library_of(const cs_kernel *kernel)
{
    switch (kernel->op->kind) {
    case CS_OP_CONV:
        return &cs_cuda_conv;
    case CS_OP_LINEAR:
        return &cs_cuda_linear;
    case CS_OP_BATCH_NORM:
        return &cs_cuda_batch_norm;
    case CS_OP_ATTENTION:
        return &cs_cuda_attention;
    case CS_OP_SOFTMAX:
        return &cs_cuda_softmax;
    case CS_OP_AVG_POOL:
        return &cs_cuda_mean_pool;
    default:
        return NULL;
    }
}

static cs_status cuda_workspace(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                                int64_t *bytes, const char **algorithm, cs_error *error)
{
    const cs_cuda_operator *library = library_of(kernel);
    cs_cuda_plan *plan;
    *bytes = library ? 0 : cs_device_workspace(kernel, pass);
    *algorithm = "";
    if (!library)
        return CS_OK;
    cs_status status = cs_cuda_plan_find(bench, kernel, pass, &plan, error);
    if (status == CS_OK && !plan->made)
        status = library->plan(bench, kernel, pass, plan, error);
    if (status != CS_OK)
        return status;
    plan->made = true;
    *bytes = plan->workspace;
    *algorithm = plan->algorithm;
    return CS_OK;
}

static cs_status cuda_run(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                          const cs_operands *operands, cs_error *error)
{
    const cs_cuda_operator *library = library_of(kernel);
    cs_cuda_plan *plan;
    if (!library)
        return cs_device_run(&bench->launcher, kernel, pass, operands, error);
    CS_TRY(cs_cuda_plan_find(bench, kernel, pass, &plan, error));
    return library->run(bench, kernel, pass, plan, operands, error);
}

static cs_status cuda_accumulate(cs_bench *bench, void *to, const void *from, int64_t elements,
                                 cs_precision precision, cs_error *error)
{
    cs_work work = {.a = from, .y = to};
    return cs_launch(&bench->launcher, CS_BODY_accumulate, precision, &work, elements, error);
}

static cs_status cuda_widen(cs_bench *bench, float *to, const void *from, int64_t elements,
                            cs_precision precision, cs_error *error)
{
    return cs_device_widen(&bench->launcher, precision, to, from, elements, error);
}

static cs_status cuda_update(cs_bench *bench, const cs_update *update, cs_error *error)
{
    return cs_device_update(&bench->launcher, update, error);
}

/* ---- time ---- */

static cs_status cuda_mark(cs_bench *bench, uint32_t mark, cs_error *error)
{
    if (!cs_vector_reserve((void **)&bench->marks, &bench->cap_marks, mark + UINT64_C(1),
                           sizeof(*bench->marks)))
        return cs_error_no_memory(error);
    while (bench->n_marks <= mark) {
        CS_TRY(CS_CUDA(cudaEventCreate(&bench->marks[bench->n_marks]), error));
        bench->n_marks++;
    }
    return CS_CUDA(cudaEventRecord(bench->marks[mark], bench->stream), error);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Reads times of marks. A last mark is recorded when all work is finished, and the host's clock is
 * read when the GPU has passed it; the other times are computed backwards from there. The offset is
 * wrong by the delay of the host, some microseconds; differences are exact. */
static cs_status cuda_times(cs_bench *bench, uint32_t n, double *seconds, cs_error *error)
{
    cs_status status = CS_CUDA(cudaStreamSynchronize(bench->stream), error);
    if (status == CS_OK)
        status = cuda_mark(bench, n, error);
    if (status == CS_OK)
        status = CS_CUDA(cudaEventSynchronize(bench->marks[n]), error);
    double time = now();
    for (uint32_t i = n; i-- > 0 && status == CS_OK;) {
        float milliseconds;
        status = CS_CUDA(cudaEventElapsedTime(&milliseconds, bench->marks[i], bench->marks[i + 1]),
                         error);
        if (status == CS_OK)
            seconds[i] = time -= 1e-3 * (double)milliseconds;
    }
    return status;
}

static cs_status cuda_delay(cs_bench *bench, double seconds, cs_error *error)
{
    return CS_CUDA(cs_cuda_delay((int64_t)(1e9 * seconds), bench->stream), error);
}

static cs_status cuda_wait(cs_bench *bench, cs_error *error)
{
    return CS_CUDA(cudaStreamSynchronize(bench->stream), error);
}

const cs_backend cs_backend_cuda = {
    .name = "cuda",
    .own_memory = true,
    .precisions = 1 << CS_PRECISION_FP32 | 1 << CS_PRECISION_TF32 | 1 << CS_PRECISION_FP16 |
                  1 << CS_PRECISION_BF16,
#ifdef CS_WITH_NCCL
    .carrier = &cs_carrier_nccl,
#endif
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .cache = cuda_cache,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .fill = cuda_fill,
    .copy = cuda_copy,
    .hold = cuda_hold,
    .let_go = cuda_let_go,
    .room = cuda_room,
    .allocate_on_peer = cuda_allocate_on_peer,
    .delay = cuda_delay,
    .workspace = cuda_workspace,
    .run = cuda_run,
    .accumulate = cuda_accumulate,
    .widen = cuda_widen,
    .update = cuda_update,
    .mark = cuda_mark,
    .times = cuda_times,
    .wait = cuda_wait,
};
