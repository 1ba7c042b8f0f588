/* The measurements of `sim calibrate` in a bench program; they are added to a cost file. */
#ifndef CS_CALIB_CALIBRATE_H
#define CS_CALIB_CALIBRATE_H

#include "calib/bench/request/request.h"
#include "calib/bench/wire/wire.h"
#include "sim/base/progress.h"

CS_MUST_CHECK cs_status cs_bench_compute(const cs_backend *backend, const cs_request *request,
                                         const cs_progress *progress, cs_error *error);

/* Called by all processes that MPI connects. If the request itself is wrong, only rank 0 reports
 * it; any other failure is reported by its process, and ends the others. */
CS_MUST_CHECK cs_status cs_bench_network(const cs_backend *backend, const cs_request *request,
                                         cs_wire *wire, const cs_progress *progress,
                                         cs_error *error);

#endif
