// The small kernels on the GPU: a kernel per body and precision, made by templates; of rows one for
// each number of threads that may share a row.
#include "calib/bench/cuda/cuda-kernels.h"
#include "calib/bench/cuda/device-code.h"

namespace
{

constexpr int THREADS = 256;
constexpr int64_t MOST_BLOCKS = 1 << 16;

// A work stays where the driver puts it: no thread copies it to index its tables.
#define CS_HEAD(name)                                                                              \
    __global__ void __launch_bounds__(THREADS)                                                     \
        kernel_##name(const __grid_constant__ cs_work work, int64_t items)
#define CS_EACH_ITEM                                                                               \
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x,                                  \
                 step = (int64_t)gridDim.x * THREADS;                                              \
         i < items; i += step)

#define CS_KERNEL_element(name)                                                                    \
    template <cs_precision P, int LANES> CS_HEAD(name)                                             \
    {                                                                                              \
        CS_EACH_ITEM                                                                               \
        name(P, &work, i);                                                                         \
    }
#define CS_KERNEL_group(name)                                                                      \
    template <cs_precision P, int LANES> CS_HEAD(name)                                             \
    {                                                                                              \
        int64_t elements = items;                                                                  \
        items = cs_groups(P, 0, elements);                                                         \
        CS_EACH_ITEM                                                                               \
        name(P, &work, cs_group_of(P, 0, elements, i));                                            \
    }
#define CS_KERNEL_row(name)                                                                        \
    template <cs_precision P, int LANES> CS_HEAD(name)                                             \
    {                                                                                              \
        constexpr int ROWS = THREADS / LANES;                                                      \
        for (int64_t row = (int64_t)blockIdx.x * ROWS + threadIdx.x / LANES; row < items;          \
             row += (int64_t)gridDim.x * ROWS)                                                     \
            name(P, &work, row, (int)threadIdx.x % LANES, LANES);                                  \
    }
#define CS_KERNEL(name, item) CS_KERNEL_##item(name)
CS_BODY_MAP(CS_KERNEL)

typedef void kernel_function(const cs_work work, int64_t items);

// tf32 is float32 to all of them
struct kernels_of_precision {
    kernel_function *of[CS_N_PRECISIONS];
};

enum shares { ONE, WARP, BLOCK, N_SHARES }; // threads of a row; of all else ONE

const int lanes_of[N_SHARES] = {1, 32, THREADS};

enum item { element, group, row };

struct table_row {
    item kind;
    kernels_of_precision shared_by[N_SHARES];
};

#define CS_PRECISIONS(name, lanes)                                                                 \
    {                                                                                              \
        {                                                                                          \
            kernel_##name<CS_PRECISION_FP32, lanes>, kernel_##name<CS_PRECISION_FP32, lanes>,      \
                kernel_##name<CS_PRECISION_FP16, lanes>, kernel_##name<CS_PRECISION_BF16, lanes>   \
        }                                                                                          \
    }
#define CS_SHARES_element(name)                                                                    \
    {                                                                                              \
        CS_PRECISIONS(name, 1)                                                                     \
    }
#define CS_SHARES_group(name)                                                                      \
    {                                                                                              \
        CS_PRECISIONS(name, 1)                                                                     \
    }
#define CS_SHARES_row(name)                                                                        \
    {                                                                                              \
        CS_PRECISIONS(name, 1), CS_PRECISIONS(name, 32), CS_PRECISIONS(name, THREADS)              \
    }
#define CS_TABLE_ROW(name, item) {item, CS_SHARES_##item(name)},
const table_row table[CS_N_BODIES] = {CS_BODY_MAP(CS_TABLE_ROW)};

// So many that each has a few groups; threads of a warp need no barrier.
shares shares_of(item kind, int64_t columns)
{
    if (kind != row || (columns > 0 && columns <= 8))
        return ONE;
    return columns > 0 && columns <= 1024 ? WARP : BLOCK;
}

} // namespace

static_assert(CS_PRECISION_TF32 == 1 && CS_PRECISION_FP16 == 2 && CS_PRECISION_BF16 == 3,
              "the order of the table's columns");

// The launch itself says whether it failed: what cudaGetLastError has may be older.
extern "C" cudaError_t cs_cuda_start(cs_body body, cs_precision precision, const cs_work *work,
                                     int64_t items, cudaStream_t stream)
{
    const table_row *at = &table[body];
    shares threads = shares_of(at->kind, work->columns);
    int64_t neighbours = at->kind == group ? (precision >= CS_PRECISION_FP16 ? 8 : 4) : 1;
    int64_t needed = (items + neighbours - 1) / neighbours * lanes_of[threads];
    int64_t blocks = (needed + THREADS - 1) / THREADS;
    void *arguments[] = {(void *)work, &items};
    return cudaLaunchKernel((const void *)at->shared_by[threads].of[precision],
                            dim3((unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS)),
                            dim3(THREADS), arguments, 0, stream);
}
