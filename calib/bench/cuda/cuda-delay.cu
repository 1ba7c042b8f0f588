#include "calib/bench/cuda/cuda-delay.h"

namespace
{

__device__ uint64_t now()
{
    uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

__global__ void spin(uint64_t nanoseconds)
{
    const uint64_t start = now();
    while (now() - start < nanoseconds) {
    }
}

} // namespace

extern "C" cudaError_t cs_cuda_delay(int64_t nanoseconds, cudaStream_t stream)
{
    uint64_t length = (uint64_t)nanoseconds;
    void *arguments[] = {&length};
    return cudaLaunchKernel((const void *)spin, dim3(1), dim3(1), arguments, 0, stream);
}
