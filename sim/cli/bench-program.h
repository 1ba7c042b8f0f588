/* Starts the programs that compute and communicate for real (calib/bench/request/request.h). */
#ifndef CS_CLI_BENCH_PROGRAM_H
#define CS_CLI_BENCH_PROGRAM_H

#include "calib/bench/request/request.h"
#include "sim/cli/command.h"

/* Runs sim-bench-BACKEND in `mode`: alone or, if processes > 0, as that many processes under mpirun
 * or the command's --launcher. Adds the command line, today's date and whether to show progress to
 * the request. The program is looked up in $SIM_BENCH_DIR, next to `sim`, in its build folder, and
 * in ../libexec/sim. If it does not exist, CS_FAILED says what is missing and how to get it. The
 * program prints its own messages on standard error, and its exit code becomes the status; a
 * message is added only if it printed no error. */
CS_MUST_CHECK cs_status cs_bench_program_run(const char *backend, const char *mode,
                                             uint32_t processes, const cs_arguments *arguments,
                                             const cs_request *request, cs_error *error);

#endif
