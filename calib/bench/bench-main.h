/* What the bench programs have in common: `sim` starts one of them in a mode
 * (calib/bench/request/request.h). */
#ifndef CS_CALIB_BENCH_MAIN_H
#define CS_CALIB_BENCH_MAIN_H

#include "calib/bench/device/backend.h"

/* Runs a bench program: parses its command line, writes messages to standard error, returns the
 * exit code. */
int cs_bench_main(const cs_backend *backend, int argc, char **argv);

#endif
