/* Keeps the stream busy for this many nanoseconds, on the GPU's clock (resolution: about 1 us; 32
 * ns on newer GPUs). */
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
