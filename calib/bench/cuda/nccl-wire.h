/* Messages between GPUs by NCCL, one GPU per process. All work runs in the device's stream. */
#ifndef CS_CALIB_NCCL_WIRE_H
#define CS_CALIB_NCCL_WIRE_H

#include "calib/bench/wire/wire.h"

extern const cs_carrier cs_carrier_nccl;

#endif
