/* Starts a small kernel (device-work.h) on the GPU: the only function that the CUDA compiler
 * compiles.
 */
#ifndef CS_CALIB_CUDA_KERNELS_H
#define CS_CALIB_CUDA_KERNELS_H

#include "calib/bench/cuda/device-work.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C"
#endif
    cudaError_t
    cs_cuda_start(cs_body body, cs_precision precision, const cs_work *work, int64_t items,
                  cudaStream_t stream);

#endif
