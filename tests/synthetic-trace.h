/* A graph and its trace made without the engine: a 1F1B pipeline of one stage per device.
 *
 * Per mini-batch, device d of P computes min(P - 1 - d, M) forwards, then forwards and backwards in
 * turn, then the remaining backwards, and one update. A transfer takes the same time between any
 * two neighbours and waits for nobody. It contains everything that tests and pictures need, and is
 * simple enough to be followed by hand.
 */
#ifndef CS_TESTS_SYNTHETIC_TRACE_H
#define CS_TESTS_SYNTHETIC_TRACE_H

#include "sim/base/arena.h"
#include "sim/core/analysis/analysis.h"
#include "sim/core/trace/h5.h"
#include "sim/core/trace/trace.h"

typedef struct synthetic_options {
    uint32_t devices, micro_batches, mini_batches;
    cs_time forward, backward, update; /* ps; an update of 0: none */
    cs_time transfer;                  /* ps; 0: no transfers */
    cs_time skew;                /* device d takes (d % 3) * skew longer for each computation */
    bool recompute;              /* a forward more right before each backward */
    bool split;                  /* backward_input and backward_weight, half the time each */
    int64_t weights, activation; /* bytes per device; per micro-batch */
    int64_t capacity;            /* bytes per device; 0: unlimited */
} synthetic_options;

typedef struct synthetic_run {
    cs_graph graph;
    cs_trace trace;
    cs_analysis analysis; /* sums by kind; idle time divided roughly, without gap or overlap; the
                           * path is what device 0 does */
    cs_arena names;       /* names of links */
} synthetic_run;

/* False when memory runs out or the graph does not pass its check; the run can be finished. */
bool synthetic_run_init(synthetic_run *run, const synthetic_options *options);
void synthetic_run_finish(synthetic_run *run);

/* Stores all that follows from the trace: the analysis, and figures as of a run of gpipe. */
CS_MUST_CHECK cs_status synthetic_run_store(cs_h5_file *file, const synthetic_run *run,
                                            cs_error *error);

#endif
