/* nF1B once more, slow and obvious: time goes from point to point, and at each point every worker
 * is asked what it does next. No event queue, no task graph; times are whole points. */
#ifndef CS_TESTS_SLOW_NF1B_H
#define CS_TESTS_SLOW_NF1B_H

#include <stdbool.h>
#include <stdint.h>

typedef enum slow_version_at {
    SLOW_FIRST_WORKER,
    SLOW_LAST_WORKER,
    SLOW_PER_STAGE
} slow_version_at;

typedef struct slow_case {
    uint32_t workers, micro_batches, mini_batches;
    uint32_t forward, backward; /* time points, >= 1; of a micro-batch, of a mini-batch */
    uint32_t hop;               /* from the end of a task to when the next worker has its result */
    uint32_t in_flight;         /* 0: no limit */
    slow_version_at version_at;
    bool strict;
} slow_case;

/* The work of a worker on a micro-batch's forward or a mini-batch's backward. */
typedef struct slow_task {
    bool started, ended;
    uint32_t start, version;
} slow_task;

typedef struct slow_run {
    slow_case of;
    slow_task *forwards;  /* [worker][mini-batch][micro-batch] */
    slow_task *backwards; /* [worker][mini-batch] */
} slow_run;

/* False when memory runs out; either way it can be finished. */
bool slow_run_init(slow_run *run, const slow_case *of);
void slow_run_finish(slow_run *run);

slow_task *slow_forward(const slow_run *run, uint32_t worker, uint32_t batch, uint32_t micro);
slow_task *slow_backward(const slow_run *run, uint32_t worker, uint32_t batch);

/* With SLOW_FIRST_WORKER: most versions that a worker has to have at one time point, once all has
 * ended and started that does so then. */
uint32_t slow_peak_versions(const slow_run *run, uint32_t worker);

/* Most micro-batches whose forward on the worker has started and whose mini-batch's backward there
 * has not ended. */
uint32_t slow_peak_activations(const slow_run *run, uint32_t worker);

#endif
