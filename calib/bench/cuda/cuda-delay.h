/* Keeps the stream busy for so many nanoseconds, by the GPU's own clock (resolution: 1 us or so; 32
 * ns on newer ones). */
#ifndef CS_CALIB_CUDA_DELAY_H
#define CS_CALIB_CUDA_DELAY_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C"
#endif
    cudaError_t
    cs_cuda_delay(int64_t nanoseconds, cudaStream_t stream);

#endif
