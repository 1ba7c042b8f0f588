/* Steps of a pass that have to do with each other only, as one. Internal to pipeline*.c. */
#ifndef CS_SCHEDULES_PASS_SERIES_H
#define CS_SCHEDULES_PASS_SERIES_H

#include "schedules/pipeline-classes.h"

/* Replaces each series of steps by one that computes, in a pass whose stage has a single holder.
 *
 * A series begins and ends with a computation. Its first step may wait for anything, the others
 * wait for steps of the series, and for what the first one waits for. Its last step may be waited
 * for by anything, the others only by steps of the series, collectives by one of them at least: so
 * that nothing of it ends after its last computation. Whatever the device computes next comes after
 * that, in program order.
 *
 * `starts` says per step whether what is lowered from it is a task more, for its effects at its
 * start. False when memory runs out. */
CS_MUST_CHECK bool cs_pass_join(cs_stage_pass *pass, const bool *starts, cs_builder *builder,
                                cs_arena *arena);

#endif
