/* The event engine: runs a graph on a platform.
 *
 * Time moves from event to event. At one instant t:
 *   1. Everything that ends at t is applied, in order of task id: memory is freed, versions are
 *      made, successors become ready; and so do tasks that waited for their release time alone.
 *   2. Transfers that became ready start, lower id first (blocking ones wait for step 3). When all
 *      of them have started and one took no time at all, it ends at t: back to 1.
 *   3. Every idle device, in order of its number, starts what its queue gives: a ready blocking
 *      transfer if there is one (the lowest id first, as soon as its other end is idle and
 *      has none lower; until then the device starts no compute), else compute. When all have
 *      started and a task took no time, it ends at t: back to 1.
 *   4. The network gives links and sets rates. A transfer that needs less than half a picosecond
 *      from here ends at t: back to 1. Else time moves on, and the instant is over.
 * So what starts at t sees everything that ended at t before it, and the result depends on nothing
 * but the graph and the platform.
 *
 * Durations. A compute task takes its duration over its device's speed, to the nearest picosecond,
 * and then times its factor, if there is one, to the nearest again.
 * A transfer spends the sum of its route's latencies, and then its bytes compete on the links of
 * the route. Links of infinite bandwidth are never contended; a transfer with no bytes, or with
 * none but such links, ends when its latency is over. Otherwise, with b the smallest bandwidth of
 * the route:
 *   none            bytes take bytes / b
 *   phi             bytes take bytes * phi / b
 *   fifo            the transfer joins the queues of all its links at once (those of one instant in
 *                   order of id), and when it is first in all of them holds them for bytes / b
 *   count, max_min  it has a rate (platform.h). When its rate changes, and only then, what is left
 *                   is reduced by (old rate) * (time since its last change), not below 0, and its
 *                   end is set to left / (new rate) from now.
 *                   Transfers that are no part of a collective and have source, target and purpose
 *                   in common go one after the other, in the order in which their latencies were
 *                   over (at one instant in that of their ids): none has a rate before the one
 *                   before it has ended, unless platform.independent_messages says so. A collective
 *                   orders its messages itself, and two at a time are on two communicators.
 * With `slowdown`, a computation proceeds more slowly while its device sends or receives bytes: in
 * a picosecond it does 1 / f of one, f being the largest of the factors of all transfers between
 * two devices that have bytes, and of all collectives that are one delay, that the device takes
 * part in (1 without any). They count from their starts to their ends. In step 4, where f is
 * another one than before (at the start: than 1), what is left is reduced by (time since its last
 * change) / (old f), not below 0, and the end is set to left * (new f) from now, to the nearest
 * picosecond. A device's record sums up by how much its computations took longer.
 *
 * Links are given, and rates changed, in step 4 only. The span of a transfer starts when it becomes
 * ready (blocking: when it starts) and so includes the time spent waiting for links.
 *
 * Versions. At a start the version is chosen, noted and held, slot by slot, before the effects are
 * applied; at an end the effects come first, then the hold is dropped, then the new version is
 * made. So what starts at t reads the newest version that was made until t, unless it is strict:
 * then that which was current when t began. Devices start in order of their number, so that a task
 * may read what another noted or held at the same instant on a device before its own.
 *
 * Memory. A task's effects are applied together at its start or its end; peaks and capacities are
 * compared with the device's total after that, and after each change of a slot's versions. What is
 * resident counts from time 0. With stop_on_oom the run ends when the instant of the first
 * allocation beyond a capacity is over: that instant is the makespan, tasks still running end
 * there, and those that never started have the span (-1, -1).
 *
 * Folded graphs. A device that another one stands for (cs_graph.stands_for) gets that one's
 * record. A transfer is on links with all messages that it stands for (fold-list.h), and takes the
 * route of the slowest of them (fold-paths.h), which is its own where all are alike: on a link of
 * it that m of them take, it counts as m transfers (count, max_min). Links carry the bytes of them
 * all.
 */
#ifndef CS_ENGINE_ENGINE_H
#define CS_ENGINE_ENGINE_H

#include "sim/base/progress.h"
#include "sim/core/trace/trace.h"
#include "topologies/noise.h"

/* Messages of others, which meet the graph's transfers on the links, where the sharing lets
 * messages meet (fifo, count, max_min). Each source is silent for an exponentially distributed
 * time, drawn from the stream "traffic N", N its number, then sends a message, and so on; with a
 * mean of 0 it is silent for one picosecond. A run is over when the graph's tasks are, and its
 * makespan is theirs. At one instant, messages come after the graph's transfers. */
typedef struct cs_traffic {
    const cs_pair *pairs; /* the ends of each source */
    uint32_t n_sources;
    int64_t bytes; /* per message, >= 1 */
    cs_time gap;   /* mean silence */
    uint64_t seed;
} cs_traffic;

typedef struct cs_engine_options {
    bool record_memory; /* the samples; peaks are always recorded */
    bool record_versions;
    bool record_rates;
    const double *task_factors; /* per task: factor on the duration of a computation; or NULL */
    const double *slowdown; /* [kind of a computation][origin of a transfer], CS_N_KINDS each: how
                             * many times as long the first takes beside the second, >= 1; or NULL
                             */
    cs_traffic traffic;
    bool stop_on_oom;            /* end the run at the first allocation beyond a capacity */
    bool no_links;               /* the trace has none: nobody asks how much they carried */
    bool every_event;            /* simulate without shortcuts; the result has the same bits */
    const cs_progress *progress; /* may be NULL */
} cs_engine_options;

/* `graph` must have passed cs_graph_check and hold no collectives; its devices are those of the
 * platform with the same number. `trace` is written on success only. Errors: CS_OVERFLOW (time
 * beyond 2^63 ps; 2^63 bytes on a device at once, or on a link in all), CS_NO_MEMORY,
 * CS_INTERRUPTED, CS_FAILED when tasks remain that can never start (program order against
 * dependencies; shown), or one asks for a version of its weights that is not there. */
CS_MUST_CHECK cs_status cs_engine_run(const cs_graph *graph, const cs_platform *platform,
                                      const cs_engine_options *options, cs_trace *trace,
                                      cs_error *error);

#endif
