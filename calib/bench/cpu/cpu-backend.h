/* The CPU as a device: one thread, which uses the memory of the process. */
#ifndef CS_CALIB_CPU_BACKEND_H
#define CS_CALIB_CPU_BACKEND_H

#include "calib/bench/device/backend.h"

extern const cs_backend cs_backend_cpu;

#endif
