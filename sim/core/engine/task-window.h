/* Runs tasks as a builder hands them on (sim/core/graph/builder.h), in the order of their ids. Only
 * the times of a task are kept after it has run, so a run needs little more memory than its trace.
 * It gives the same bits as cs_engine_run without history.
 *
 * It takes what in-order.h does, if all classes are there before the first task. */
#ifndef CS_ENGINE_TASK_WINDOW_H
#define CS_ENGINE_TASK_WINDOW_H

#include "sim/base/progress.h"
#include "sim/core/graph/builder.h"
#include "sim/core/trace/trace.h"
#include "topologies/platform.h"

typedef struct cs_task_window cs_task_window;

/* Totals of the tasks, in addition to the trace. */
typedef struct cs_task_window_use {
    cs_time (*compute)[CS_N_KINDS]; /* per device: its computations, by kind */
    cs_time *batch_end; /* per mini-batch: the end of its last computation; 0 without any */
} cs_task_window_use;

void cs_task_window_use_finish(cs_task_window_use *use);

/* `platform` and `progress`, which may be NULL, must outlive it. NULL when memory runs out. */
cs_task_window *cs_task_window_create(const cs_platform *platform, const cs_progress *progress);
void cs_task_window_destroy(cs_task_window *window);

/* For the builder. Taking fails with CS_USAGE and the reason if the graph is none that can be run
 * so; else as cs_engine_run does. */
cs_task_taker cs_task_window_taker(cs_task_window *window);

/* Ends the run of `graph`, all of whose tasks have been handed on. The caller owns both results. */
CS_MUST_CHECK cs_status cs_task_window_end(cs_task_window *window, const cs_graph *graph,
                                           cs_trace *trace, cs_task_window_use *use,
                                           cs_error *error);

#endif
