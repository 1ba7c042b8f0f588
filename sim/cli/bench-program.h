/* The programs that compute and send for real, as `sim` starts them (calib/bench/request/request.h). */
#ifndef CS_CLI_BENCH_PROGRAM_H
#define CS_CLI_BENCH_PROGRAM_H

#include "calib/bench/request/request.h"
#include "sim/cli/command.h"

/* Runs sim-bench-BACKEND in `mode`: by itself, or, with processes > 0, as so many processes under
 * mpirun, or what the command's option --launcher says in its place. What was typed, today's date
 * and whether to show progress are added to the request. The program is looked for beside `sim`, in
 * its build folder, in ../libexec/sim, and in $SIM_BENCH_DIR before all. CS_FAILED, with what is
 * missing and how to get it, when there is none; what the program itself says goes to standard
 * error, and its exit code becomes the status, with a message of its own only when it said no
 * error. */
CS_MUST_CHECK cs_status cs_bench_program_run(const char *backend, const char *mode,
                                             uint32_t processes, const cs_arguments *arguments,
                                             const cs_request *request, cs_error *error);

#endif
