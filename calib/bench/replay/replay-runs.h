/* The runs of `sim replay` in a bench program: a scenario's tasks on real devices; one run is saved
 * as a results file. */
#ifndef CS_CALIB_REPLAY_RUNS_H
#define CS_CALIB_REPLAY_RUNS_H

#include "calib/bench/request/request.h"
#include "calib/bench/wire/wire.h"
#include "sim/base/progress.h"

/* Called by all processes that MPI connects, one per device. Failures are reported as by
 * cs_bench_network (calib/bench/measure/calibrate.h). */
CS_MUST_CHECK cs_status cs_bench_replay(const cs_backend *backend, const cs_request *request,
                                        cs_wire *wire, const cs_progress *progress,
                                        cs_error *error);

#endif
