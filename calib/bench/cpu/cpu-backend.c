#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "calib/bench/cpu/cpu-backend.h"

#include "calib/bench/cpu/cpu-kernels.h"
#include "sim/base/vector.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>

struct cs_bench {
    double *marks;
    uint32_t cap_marks;
    char device[128], driver[128], libraries[256], clock[64];
};

/* ---- description ---- */

/* Reads the value of the first line of /proc/cpuinfo that starts with `key`; "" if there is
 * none. */
static void read_cpuinfo(const char *key, char *value, size_t size)
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "r");
    value[0] = '\0';
    while (file && value[0] == '\0' && fgets(line, sizeof(line), file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || !colon || colon[1] != ' ')
            continue;
        snprintf(value, size, "%s", colon + 2);
        value[strcspn(value, "\n")] = '\0';
    }
    if (file)
        fclose(file);
}

/* Lets OpenBLAS allocate its workspace, which it does at the first product and keeps. Checks first
 * that there is enough memory, because OpenBLAS retries forever otherwise. */
static cs_status take_workspace(cs_error *error)
{
    enum { BYTES = 160 << 20, N = 128 }; /* OpenBLAS 0.3 takes up to 128 MiB */
    void *room = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    float *matrices = calloc((size_t)3 * N * N, sizeof(*matrices));
    if (room != MAP_FAILED)
        munmap(room, BYTES);
    if (room == MAP_FAILED || !matrices) {
        free(matrices);
        return cs_error_add(error, CS_NO_MEMORY,
                            "not enough memory for the workspace of OpenBLAS (%d MiB)",
                            BYTES >> 20);
    }
    openblas_set_num_threads(1);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, matrices, N,
                matrices + N * N, N, 0, matrices + 2 * N * N, N);
    free(matrices);
    return CS_OK;
}

static cs_status cpu_open(uint32_t index, cs_bench **bench, cs_error *error)
{
    (void)index;
    CS_TRY(take_workspace(error));
    cs_bench *made = calloc(1, sizeof(*made));
    if (!made)
        return cs_error_no_memory(error);
    struct utsname system;
    char megahertz[32];
    read_cpuinfo("model name", made->device, sizeof(made->device));
    if (made->device[0] == '\0')
        snprintf(made->device, sizeof(made->device), "unknown CPU");
    if (uname(&system) == 0)
        snprintf(made->driver, sizeof(made->driver), "%.32s %.64s", system.sysname, system.release);
    snprintf(made->libraries, sizeof(made->libraries), "%.160s, kernels for %.48s, 1 thread",
             openblas_get_config(), openblas_get_corename());
    read_cpuinfo("cpu MHz", megahertz, sizeof(megahertz));
    if (megahertz[0] != '\0')
        snprintf(made->clock, sizeof(made->clock), "%s MHz at the start", megahertz);
    *bench = made;
    return CS_OK;
}

static void cpu_close(cs_bench *bench)
{
    if (bench)
        free(bench->marks);
    free(bench);
}

static void cpu_describe(cs_bench *bench, cs_cost_source *source)
{
    source->device = bench->device;
    source->driver = bench->driver;
    source->libraries = bench->libraries;
    source->clock = bench->clock;
}

/* ---- memory ---- */

enum { ALIGNMENT = 64 };

static cs_status cpu_allocate(cs_bench *bench, int64_t bytes, void **data, cs_error *error)
{
    (void)bench;
    if (posix_memalign(data, ALIGNMENT, (size_t)bytes) == 0)
        return CS_OK;
    return cs_error_add(error, CS_NO_MEMORY, "the CPU cannot allocate another %lld bytes of memory",
                        (long long)bytes);
}

static void cpu_release(cs_bench *bench, void *data)
{
    (void)bench;
    free(data);
}

static cs_status cpu_fill(cs_bench *bench, cs_fill fill, cs_precision precision, void *data,
                          int64_t elements, double limit, cs_error *error)
{
    (void)bench, (void)precision, (void)error;
    uint64_t state = 1;
    for (int64_t i = 0; i < elements; i++) {
        state = state * UINT64_C(6364136223846793005) + 1;
        double fraction = (double)(state >> 11) * 0x1p-53;
        if (fill == CS_FILL_IDS)
            ((int64_t *)data)[i] = (int64_t)(fraction * limit);
        else
            ((float *)data)[i] = fill == CS_FILL_ZERO ? 0 : (float)((2 * fraction - 1) * limit);
    }
    return CS_OK;
}

static cs_status cpu_copy(cs_bench *bench, cs_copy copy, void *to, const void *from, int64_t bytes,
                          cs_error *error)
{
    (void)bench, (void)copy, (void)error;
    memcpy(to, from, (size_t)bytes);
    return CS_OK;
}

/* ---- kernels ---- */

static cs_status cpu_workspace(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                               int64_t *bytes, const char **algorithm, cs_error *error)
{
    (void)bench, (void)error;
    *bytes = cs_cpu_workspace(kernel, pass);
    *algorithm = kernel->op->kind == CS_OP_CONV ? "im2col" : "";
    return CS_OK;
}

static cs_status cpu_run(cs_bench *bench, const cs_kernel *kernel, cs_pass pass,
                         const cs_operands *operands, cs_error *error)
{
    (void)bench, (void)error;
    cs_cpu_run(kernel, pass, operands);
    return CS_OK;
}

static cs_status cpu_accumulate(cs_bench *bench, void *to, const void *from, int64_t elements,
                                cs_precision precision, cs_error *error)
{
    (void)bench, (void)precision, (void)error;
    float *sum = to;
    const float *addend = from;
    for (int64_t i = 0; i < elements; i++)
        sum[i] += addend[i];
    return CS_OK;
}

static const float rate = 1e-3f, decay = 0.9f, decay_squares = 0.999f, tiny = 1e-8f;

static cs_status cpu_update(cs_bench *bench, const cs_update *update, cs_error *error)
{
    (void)bench, (void)error;
    const float *w = update->from;
    int64_t n = update->parameters;
    uint32_t n_states = update->n_states;
    float *out = update->to, *g = update->gradients, *m = update->states;
    float *v = n_states > 1 ? m + n : NULL;
    if (n_states == 0)
        for (int64_t i = 0; i < n; i++)
            out[i] = w[i] - rate * g[i];
    else if (n_states == 1)
        for (int64_t i = 0; i < n; i++) {
            m[i] = decay * m[i] + g[i];
            out[i] = w[i] - rate * m[i];
        }
    else
        for (int64_t i = 0; i < n; i++) {
            m[i] = decay * m[i] + (1 - decay) * g[i];
            v[i] = decay_squares * v[i] + (1 - decay_squares) * g[i] * g[i];
            out[i] = w[i] - rate * m[i] / (sqrtf(v[i]) + tiny);
        }
    memset(g, 0, (size_t)n * sizeof(*g));
    return CS_OK;
}

/* ---- time ---- */

static cs_status cpu_mark(cs_bench *bench, uint32_t mark, cs_error *error)
{
    struct timespec now;
    if (!cs_vector_reserve((void **)&bench->marks, &bench->cap_marks, mark + UINT64_C(1),
                           sizeof(*bench->marks)))
        return cs_error_no_memory(error);
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        return cs_error_add(error, CS_FAILED, "clock_gettime: the machine has no monotonic clock");
    bench->marks[mark] = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    return CS_OK;
}

static cs_status cpu_times(cs_bench *bench, uint32_t n, double *seconds, cs_error *error)
{
    (void)error;
    memcpy(seconds, bench->marks, n * sizeof(*seconds));
    return CS_OK;
}

static cs_status cpu_wait(cs_bench *bench, cs_error *error)
{
    (void)bench, (void)error;
    return CS_OK;
}

const cs_backend cs_backend_cpu = {
    .name = "cpu",
    .precisions = 1 << CS_PRECISION_FP32,
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .fill = cpu_fill,
    .copy = cpu_copy,
    .workspace = cpu_workspace,
    .run = cpu_run,
    .accumulate = cpu_accumulate,
    .update = cpu_update,
    .mark = cpu_mark,
    .times = cpu_times,
    .wait = cpu_wait,
};
