/* Joins steps of a pass that depend only on each other into one step. Internal to pipeline*.c. */
#ifndef CS_SCHEDULES_PASS_SERIES_H
#define CS_SCHEDULES_PASS_SERIES_H

#include "schedules/pipeline-classes.h"

/* Replaces each series of steps by one computation, in a pass of a stage with a single holder.
 *
 * A series begins and ends with a computation. Its first step may wait for anything; the others
 * wait only for steps of the series and for dependencies of the first one. Anything may wait for
 * its last step; only steps of the series wait for the others, and at least one waits for each
 * collective, so nothing in it ends after its last computation. The device's next computation
 * follows in program order.
 *
 * `starts` says for each step whether lowering adds a task for its effects at its start. Returns
 * false if memory runs out. */
CS_MUST_CHECK bool cs_pass_join(cs_stage_pass *pass, const bool *starts, cs_builder *builder,
                                cs_arena *arena);

#endif
