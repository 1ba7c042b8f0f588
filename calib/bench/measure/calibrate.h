/* What `sim calibrate` asks of a bench program: measurements that are added to a cost file. */
#ifndef CS_CALIB_CALIBRATE_H
#define CS_CALIB_CALIBRATE_H

#include "calib/bench/request/request.h"
#include "calib/bench/wire/wire.h"
#include "sim/base/progress.h"

CS_MUST_CHECK cs_status cs_bench_compute(const cs_backend *backend, const cs_request *request,
                                         const cs_progress *progress, cs_error *error);

/* By all processes that MPI has connected. What all of them find wrong alike, the request, only the
 * first one says; any other failure ends the others, and is said by the process that had it. */
CS_MUST_CHECK cs_status cs_bench_network(const cs_backend *backend, const cs_request *request,
                                         cs_wire *wire, const cs_progress *progress,
                                         cs_error *error);

#endif
