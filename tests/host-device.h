/* A fake GPU: the small kernels of calib/bench/cuda/device-code.h on the host, element by element
 * and row by row, as a backend. Operations of GPU libraries come from the CPU backend; with
 * CS_WITH_CUDA, linear layers and attention come from the CUDA backend on a cuBLAS of plain loops
 * (host-cublas.c). Memory is filled with the CPU's numbers; bfloat16 works only in networks of own
 * kernels, with numbers of their own. */
#ifndef CS_TESTS_HOST_DEVICE_H
#define CS_TESTS_HOST_DEVICE_H

#include "calib/bench/cuda/device-operators.h"

extern const cs_backend cs_backend_host_device;
extern const cs_launcher cs_host_launcher;

#endif
