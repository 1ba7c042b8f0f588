/* A GPU that is none: the small kernels of calib/bench/cuda/device-code.h on the host, element
 * after element and row after row, as a backend; what GPUs have libraries for is the CPU's, or with
 * CS_WITH_CUDA that of the CUDA backend for linear layers and attention on a cuBLAS in plain loops
 * (host-cublas.c). Numbers that it fills memory with are the CPU's; bfloat16
 * is for networks of own kernels only, with numbers of their own. */
#ifndef CS_TESTS_HOST_DEVICE_H
#define CS_TESTS_HOST_DEVICE_H

#include "calib/bench/cuda/device-operators.h"

extern const cs_backend cs_backend_host_device;
extern const cs_launcher cs_host_launcher;

#endif
