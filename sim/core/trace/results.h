/* The results file: what a run was, and what happened in it.
 *
 * Schema version 1. Times are int64 picoseconds, sizes int64 bytes, ids uint32. The first column of
 * each group is its index: the dimension scale of all others (h5.h).
 *
 * Attributes of the file
 *   format               "sim-results"
 *   schema_version       1
 *   name, topology, schedule, program_version
 *   scenario             the scenario with every default resolved, JSON
 *   runtime              of a scenario with a runtime: which of its figures are given, measured or
 *                        assumed, JSON (sim/run/scenario/figure-origins.h)
 *   origin               "simulated", or "measured" by a replay
 *   provenance           of a measured one: how, JSON (results-file.md has the members)
 *   sharing              how links were shared, "max_min"; not where there are none
 *   algorithms           of the collectives, "ring, tree"; not where there are none
 *   fidelity             of the collectives, as taken: "flow", or delays, which use no links:
 *                        "analytic", "alpha_beta"; not where there are none
 *   seed                 uint64
 *   hash                 16 hexadecimal digits: two runs with the same hash gave the same results
 *   makespan             ps, end of the last task
 *   mini_batches, micro_batches (of each mini-batch)
 *   stopped              1 when the run ended at the first out-of-memory, as asked, else 0
 *   and each number of a run (sim/run/figures.h) under its key: iteration_time_s, ...; NaN: unknown
 *
 * /tasks            one row per task
 *   task            0, 1, ...: the task's id
 *   kind            coded: forward, backward, backward_input, ...
 *   origin          coded the same: what a transfer is part of; of other tasks their kind
 *   purpose         coded: stages, gradients, weights, tensor, context, expert, space; of what is
 *                   computed none
 *   device          where it computes, or what it sends from
 *   peer            what a transfer is received by; none (4294967295) of other tasks
 *   stage, mini_batch, micro_batch
 *   start, end      ps; -1 when the run was stopped before
 *   bytes           moved by a transfer, else 0
 * /memory           one row per change, ordered by time; no rows when it was not recorded
 *   sample          0, 1, ...
 *   time            ps
 *   device
 *   category        coded: weights, weight_versions, gradients, ...
 *   bytes           live in this category on this device from `time` on
 * /links            one row per link and direction
 *   link            0, 1, ...
 *   name            UTF-8
 *   bandwidth       bytes/s, may be infinite
 *   bytes           carried
 *   utilisation     bytes / (bandwidth * makespan); above 1 where transfers ignore each other
 * /devices          one row per device
 *   device          0, 1, ...
 *   capacity        bytes; 9223372036854775807 when unlimited
 *   peak, peak_time largest sum over the categories, and when it is first reached
 *   at_peak_<category>   what it is made of then
 *   peak_<category>      of each category by itself
 *   out_of_memory   coded: no, yes
 *   oom_time        of the first allocation beyond the capacity, or -1
 *   oom_task        that made it; none: what is resident from the start, or no such allocation
 *   at_oom_<category>    live bytes then, 0 without one
 *   simulated_as    the device that was simulated in its place, or itself: rows of both are equal, and
 *                   tasks and memory are those of the simulated ones; only where the run was folded
 *   and, from the analysis, where the time [0, makespan) went, ps: compute_<kind>, communication,
 *   dependency, flush; parts of communication: exposed_collectives, exposed_for_<purpose>; a part of
 *   computing: slowed_by_communication
 * /versions         one row per task that reads or makes weights; no rows when not recorded
 *   task
 *   stage, device, mini_batch
 *   version         that it read (an update: made)
 * /transfers        one row per transfer with bytes that was through
 *   task
 *   rate            bytes / (end - start): latencies and waiting for links included
 * /rates one row per change of a transfer's rate, ordered by time; no rows when not recorded
 *   sample          0, 1, ...
 *   time            ps
 *   task            a transfer that competed for links (sharing fifo, count, max_min)
 *   rate            bytes/s from `time` on; 0 when its bytes are through
 * /runs             from repeated runs (sim/run/repeat.h): one row per run
 *   run             0, 1, ...; the rest of the file is about run 0
 *   seed, and each main figure under its key: iteration_time_s, ...
 * /staleness        from the analysis: one row per mini-batch and slot
 *   row             0, 1, ...
 *   mini_batch, slot, stage, device
 *   made            first version that the mini-batch's updates make, or none
 *   forward_oldest, forward_newest, backward_oldest, backward_newest   versions read, or none
 * /weights          from the analysis: one row per slot
 *   slot            0, 1, ...
 *   stage, device, versions_made, peak_versions
 * /mini_batches     from the analysis
 *   mini_batch      0, 1, ...
 *   version_difference, sequence_by_backward, sequence_by_both   (sim/core/analysis/staleness.h)
 * /critical_path    from the analysis: one row per step, in order of time
 *   step            0, 1, ...
 *   task            none: waiting that no task explains
 *   start, end      ps
 * /waits            from the analysis: one row per stretch in which a device does not compute, by
 *                   device and time; of devices that were simulated
 *   wait            0, 1, ...
 *   device
 *   cause           coded: messages, collectives, dependency, flush (sim/core/analysis/analysis.h)
 *   start, end      ps
 * /link_use         from the run (sim/run/link-use.h): one row per stretch of time and busy link
 *   row             0, 1, ...
 *   link            of /links
 *   start, end      ps
 *   bytes           carried
 *   utilisation     bytes / (bandwidth * length of the stretch)
 * /allocator, /reserved, /segments, /blocks
 *                   from the run, with an allocator (sim/run/segments.h, results-file.md)
 */
#ifndef CS_TRACE_RESULTS_H
#define CS_TRACE_RESULTS_H

#include "sim/core/trace/h5.h"
#include "sim/core/trace/results-schema.h"
#include "sim/core/trace/trace.h"

typedef struct cs_results_info {
    const char *name, *topology, *schedule;
    const char *scenario; /* resolved, JSON */
    const char *program_version;
    uint64_t seed;
    const char *provenance;           /* JSON, of what was measured; NULL: it was simulated */
    const char *sharing, *algorithms; /* of links, of collectives; NULL: there are none */
    const char *fidelity;             /* of collectives; NULL: there are none */
    uint64_t hash;                    /* of the trace; 0: not known yet */
} cs_results_info;

/* Writes everything but what is marked "from the analysis", /runs and the figures into a new file,
 * to be committed by the caller. sim/run/store-run.h writes all of it. */
CS_MUST_CHECK cs_status cs_results_write(cs_h5_file *file, const cs_results_info *info,
                                         const cs_graph *graph, const cs_trace *trace,
                                         cs_error *error);

#endif
