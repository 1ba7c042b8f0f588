/* What `sim replay` asks of a bench program: runs of a scenario's tasks on real devices, one of
 * which is kept as a results file. */
#ifndef CS_CALIB_REPLAY_RUNS_H
#define CS_CALIB_REPLAY_RUNS_H

#include "calib/bench/request/request.h"
#include "calib/bench/wire/wire.h"
#include "sim/base/progress.h"

/* By all processes that MPI has connected, one per device. Failures are reported like those of
 * cs_bench_network (calib/bench/measure/calibrate.h). */
CS_MUST_CHECK cs_status cs_bench_replay(const cs_backend *backend, const cs_request *request,
                                        cs_wire *wire, const cs_progress *progress,
                                        cs_error *error);

#endif
