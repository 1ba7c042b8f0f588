/* Figures of runtimes that no source states, fitted to measured runs with those of devices
 * (docs/reference/points.md). Written by tests/fit-figures.py --write; not by hand. */
#ifndef CS_BASE_FITTED_H
#define CS_BASE_FITTED_H

/* Times that kernels take what the device's figures say. */
#define CS_FITTED_DEEPSPEED "1.16"
#define CS_FITTED_PAXML     "1.26"
#define CS_FITTED_FSDP      "1.06"

/* An exchange of interleaved stages for which the host waits. */
#define CS_FITTED_EXCHANGE "0.37 ms"

/* Of the host, with Megatron Core: for an operator, forward or backward; and once a step. */
#define CS_FITTED_HOST "19.5 us"
#define CS_FITTED_STEP "30.3 ms"

#endif
