// The small kernels on the GPU: a kernel per body and precision, made by templates.
#include "calib/bench/cuda-kernels.h"
#include "calib/bench/device-code.h"

namespace
{

constexpr int THREADS = 256;
constexpr int64_t MOST_BLOCKS = 1 << 16;

#define CS_ELEMENT_KERNEL(name)                                                                    \
    template <cs_precision P>                                                                      \
    __global__ void __launch_bounds__(THREADS) kernel_##name(const cs_work work, int64_t items)    \
    {                                                                                              \
        int64_t step = (int64_t)gridDim.x * blockDim.x;                                            \
        for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < items; i += step)     \
            name(P, &work, i);                                                                     \
    }
#define CS_ROW_KERNEL(name)                                                                        \
    template <cs_precision P>                                                                      \
    __global__ void __launch_bounds__(THREADS) kernel_##name(const cs_work work, int64_t items)    \
    {                                                                                              \
        for (int64_t row = blockIdx.x; row < items; row += gridDim.x)                              \
            name(P, &work, row, (int)threadIdx.x, (int)blockDim.x);                                \
    }
#define CS_KERNEL_0(name)    CS_ELEMENT_KERNEL(name)
#define CS_KERNEL_1(name)    CS_ROW_KERNEL(name)
#define CS_KERNEL(name, row) CS_KERNEL_##row(name)
CS_BODY_MAP(CS_KERNEL)

typedef void kernel_function(const cs_work work, int64_t items);

// tf32 is float32 to all of them
struct row_of_table {
    kernel_function *of[CS_N_PRECISIONS];
    bool row;
};

#define CS_TABLE_ROW(name, row)                                                                    \
    {{kernel_##name<CS_PRECISION_FP32>, kernel_##name<CS_PRECISION_FP32>,                          \
      kernel_##name<CS_PRECISION_FP16>, kernel_##name<CS_PRECISION_BF16>},                         \
     row != 0},
const row_of_table table[CS_N_BODIES] = {CS_BODY_MAP(CS_TABLE_ROW)};

} // namespace

static_assert(CS_PRECISION_TF32 == 1 && CS_PRECISION_FP16 == 2 && CS_PRECISION_BF16 == 3,
              "the order of the table's columns");

extern "C" cudaError_t cs_cuda_start(cs_body body, cs_precision precision, const cs_work *work,
                                     int64_t items, cudaStream_t stream)
{
    const row_of_table *at = &table[body];
    int64_t blocks = at->row ? items : (items + THREADS - 1) / THREADS;
    blocks = blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks;
    at->of[precision]<<<(unsigned)blocks, THREADS, 0, stream>>>(*work, items);
    return cudaGetLastError();
}
