#include "calib/bench/cuda/cuda-device.h"

#include <string.h>

cs_status cs_cuda_complain(const char *call, const char *file, int line, const char *name,
                           const char *what, cs_error *error)
{
    const char *slash = strrchr(file, '/');
    return cs_error_add(error, CS_FAILED, "%.*s at %s:%d: %s (%s)", (int)strcspn(call, "("), call,
                        slash ? slash + 1 : file, line, name, what);
}

cs_status cs_cuda_check(cudaError_t code, const char *call, const char *file, int line,
                        cs_error *error)
{
    if (code == cudaSuccess)
        return CS_OK;
    return cs_cuda_complain(call, file, line, cudaGetErrorName(code), cudaGetErrorString(code),
                            error);
}

/* cuDNN describes errors in one or several lines. */
cs_status cs_cudnn_check(cudnnStatus_t code, const char *call, const char *file, int line,
                         cs_error *error)
{
    char words[256] = "";
    if (code == CUDNN_STATUS_SUCCESS)
        return CS_OK;
    cudnnGetLastErrorString(words, sizeof(words));
    words[strcspn(words, "\n")] = '\0';
    return cs_cuda_complain(call, file, line, cudnnGetErrorString(code),
                            words[0] ? words : "no more is known", error);
}

cs_status cs_cublas_check(cublasStatus_t code, const char *call, const char *file, int line,
                          cs_error *error)
{
    if (code == CUBLAS_STATUS_SUCCESS)
        return CS_OK;
    return cs_cuda_complain(call, file, line, cublasGetStatusName(code),
                            cublasGetStatusString(code), error);
}
