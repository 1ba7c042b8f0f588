/* The event engine: runs a graph on a platform.
 *
 * Time moves from event to event. At an instant t:
 *   1. Everything that ends at t is applied, in order of task ids: memory is freed, versions are
 *      made, and successors become ready. Tasks that only waited for their release time become
 *      ready too.
 *   2. Transfers that became ready start, lower id first (blocking ones wait for step 3). After all
 *      of them have started, a transfer that took no time ends at t: back to 1.
 *   3. Every idle device, in order of its number, starts the next task of its queue. A ready
 *      blocking transfer comes first: the transfer with the lowest id starts as soon as its other
 *      end is idle and has no lower one; until then the device starts no computation. After all
 *      devices have started their tasks, a task that took no time ends at t: back to 1.
 *   4. The network assigns links and sets rates. A transfer that needs less than half a picosecond
 *      from now on ends at t: back to 1. Otherwise the instant is over and time moves on.
 * So a task that starts at t sees everything that ended at t before it, and the result depends only
 * on the graph and the platform.
 *
 * Durations of computations. A computation takes its duration divided by its device's speed,
 * rounded to the nearest picosecond; if it has a factor, the product is rounded again.
 *
 * Durations of transfers. A transfer first takes the sum of the latencies of its route. Then its
 * bytes compete on the links of the route. Links of infinite bandwidth are never contended; a
 * transfer ends after its latency if it has no bytes or if all its links are of this kind.
 * Otherwise, with b the smallest bandwidth of the route:
 *   none            bytes take bytes / b
 *   phi             bytes take bytes * phi / b
 *   fifo            the transfer joins the queues of all its links at once (transfers that join at
 *                   the same instant in order of ids). When it is first in all of them, it occupies
 *                   the links for bytes / b
 *   count, max_min  the transfer has a rate (platform.h). Only when its rate changes, the remaining
 *                   bytes are reduced by (old rate) * (time since the last change), not below 0,
 *                   and its end is set to (remaining bytes) / (new rate) from now. Transfers with
 *                   the same source, target and purpose that are not part of a collective go one
 *                   after another, ordered by the end of their latencies (at the same instant, by
 *                   ids): each has a rate only after the previous transfer has ended, unless
 *                   platform.independent_messages is true. A collective orders its own messages:
 *                   two that it sends at once use two communicators.
 *
 * Slowdown. With `slowdown`, a computation is slower while its device communicates: in a picosecond
 * it proceeds by 1 / f of a picosecond. f is the largest factor of all transfers with bytes between
 * this device and another, and of all collectives of this device that are a single delay; without
 * any, f is 1. Transfers and collectives count from their starts to their ends. If f has changed in
 * step 4 (at the start: if it is not 1), the remaining time is reduced by (time since the last
 * change) / (old f), not below 0, and the end is set to (remaining time) * (new f) from now, to the
 * nearest picosecond. A device's record has the total delay of its computations.
 *
 * Links are assigned, and rates changed, only in step 4. The span of a transfer starts when it
 * becomes ready (blocking: when it starts), so it includes the time spent waiting for links.
 *
 * Versions. When a task starts, its version is chosen, noted and held, slot by slot, before its
 * effects are applied. When it ends, its effects are applied first, then the hold is dropped, then
 * the new version is made. So a task that starts at t reads the newest version made up to t; if its
 * policy is strict, it reads the version that was current when t began. Devices start in order of
 * their numbers, so a task can read a version that another task noted or held at the same instant
 * on a device with a lower number.
 *
 * Memory. All effects at a task's start are applied together, and so are all effects at its end.
 * After that, and after each change of a slot's versions, the device's total is compared with its
 * peak and capacity. Resident bytes count from time 0. With stop_on_oom, the run ends after the
 * instant of the first allocation beyond a capacity: this instant is the makespan, running tasks
 * end there, and tasks that never started have the span (-1, -1).
 *
 * Folded graphs. If another device represents a device (cs_graph.stands_for), the device gets a
 * copy of the other's record. A transfer occupies links together with all messages that it
 * represents (fold-list.h). It takes the route of the slowest of them (fold-paths.h), which is its
 * own route if all are alike. On a link of this route that m of the messages use, it counts as m
 * transfers (count, max_min). Links carry the bytes of all these messages. */
#ifndef CS_ENGINE_ENGINE_H
#define CS_ENGINE_ENGINE_H

#include "sim/base/progress.h"
#include "sim/core/trace/trace.h"
#include "topologies/noise.h"

/* Messages of other jobs. They compete with the graph's transfers for links if the sharing is fifo,
 * count or max_min. Each source is silent for an exponentially distributed time, then sends a
 * message, and so on. Source N draws its times from the random stream "traffic N"; with a mean of 0
 * it is silent for one picosecond. The run ends with the graph's last task, which also determines
 * the makespan. At the same instant, these messages come after the graph's transfers. */
typedef struct cs_traffic {
    const cs_pair *pairs; /* both ends of each source's messages */
    uint32_t n_sources;
    int64_t bytes; /* bytes per message, >= 1 */
    cs_time gap;   /* mean time of silence */
    uint64_t seed;
} cs_traffic;

typedef struct cs_engine_options {
    bool record_memory; /* whether to record samples of memory; peaks are always recorded */
    bool record_versions;
    bool record_rates;
    /* per task: factor on the duration if it is a computation; NULL: none */
    const double *task_factors;
    /* slowdown factors, [kind of a computation][origin of a transfer], CS_N_KINDS each: how many
     * times as long the computation takes during the transfer, >= 1; NULL: no slowdown */
    const double *slowdown;
    cs_traffic traffic;
    /* whether to end the run at the first allocation beyond a capacity */
    bool stop_on_oom;
    bool no_links; /* whether the trace leaves out the traffic of links */
    /* whether to simulate without shortcuts; the result is bit-identical */
    bool every_event;
    const cs_progress *progress; /* progress reports; NULL: none */
} cs_engine_options;

/* Simulates a graph. `graph` must have passed cs_graph_check and contain no collectives; its device
 * d is the platform's device d. `trace` is written on success only. Errors: CS_OVERFLOW (time
 * beyond 2^63 ps, or 2^63 bytes on a device at once or on a link in total); CS_NO_MEMORY;
 * CS_INTERRUPTED; CS_FAILED (some tasks can never start, because program order contradicts
 * dependencies: the message shows them; or a task asks for a version of its weights that does not
 * exist). */
CS_MUST_CHECK cs_status cs_engine_run(const cs_graph *graph, const cs_platform *platform,
                                      const cs_engine_options *options, cs_trace *trace,
                                      cs_error *error);

#endif
