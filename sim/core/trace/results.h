/* The results file: the scenario of a run and its trace.
 *
 * Schema version 1. Times are int64 picoseconds, sizes int64 bytes, ids uint32. The first column of
 * each group is its index: the dimension scale of all others (h5.h).
 *
 * Attributes of the file
 *   format               "sim-results"
 *   schema_version       1
 *   name, topology, schedule, program_version
 *   scenario             the scenario with every default resolved, JSON
 *   runtime              scenarios with a runtime: origin of each value (given, measured or
 *                        assumed), JSON (sim/run/scenario/figure-origins.h)
 *   origin               "simulated", or "measured" by a replay
 *   provenance           measured runs: how they were measured, JSON (results-file.md)
 *   sharing              link sharing, such as "max_min"; absent without links
 *   algorithms           algorithms of collectives, such as "ring, tree"; absent without
 *                        collectives
 *   fidelity             fidelity used for collectives: "flow", or delays, which use no links:
 *                        "analytic", "alpha_beta"; absent without collectives
 *   seed                 uint64
 *   hash                 16 hexadecimal digits: two runs with the same hash gave the same results
 *   makespan             ps, end of the last task
 *   mini_batches, micro_batches (of each mini-batch)
 *   stopped              1 if the run ended at the first out-of-memory, as requested; else 0
 *   and each metric of the run (sim/run/figures.h) under its key: iteration_time_s, ...;
 *   NaN: unknown
 *
 * /tasks            one row per task
 *   task            0, 1, ...: the task's id
 *   kind            coded: forward, backward, backward_input, ...
 *   origin          same codes: kind of the collective that a transfer is part of; other tasks:
 *                   their kind
 *   purpose         coded: stages, gradients, weights, tensor, context, expert, space;
 *                   computations: none
 *   device          device that computes, or sends
 *   peer            device that receives a transfer; other tasks: none (4294967295)
 *   stage, mini_batch, micro_batch
 *   start, end      ps; -1 if the run was stopped before
 *   bytes           moved by a transfer, else 0
 * /memory           one row per change, ordered by time; no rows if not recorded
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
 *   utilisation     bytes / (bandwidth * makespan); above 1 if transfers ignore each other
 * /devices          one row per device
 *   device          0, 1, ...
 *   capacity        bytes; 9223372036854775807: unlimited
 *   peak, peak_time largest sum over the categories, and when it is first reached
 *   at_peak_<category>   bytes by category at that time
 *   peak_<category>      peak of each category alone
 *   out_of_memory   coded: no, yes
 *   oom_time        time of the first allocation beyond the capacity, or -1
 *   oom_task        task that made it; none: resident memory, or no such allocation
 *   at_oom_<category>    live bytes at that time, or 0
 *   simulated_as    only if the run was folded: device simulated in its place, or itself. Rows of
 *                   both are equal; tasks and memory have rows for simulated devices only
 *   and, from the analysis, the division of the time [0, makespan), ps: compute_<kind>,
 *   communication, dependency, flush; parts of communication: exposed_collectives,
 *   exposed_for_<purpose>; part of computing: slowed_by_communication
 * /versions         one row per task that reads or makes weights; no rows if not recorded
 *   task
 *   stage, device, mini_batch
 *   version         version that it read (update: made)
 * /transfers        one row per finished transfer with bytes
 *   task
 *   rate            bytes / (end - start): latencies and waiting for links included
 * /rates one row per change of a transfer's rate, ordered by time; no rows if not recorded
 *   sample          0, 1, ...
 *   time            ps
 *   task            a transfer that competed for links (sharing fifo, count, max_min)
 *   rate            bytes/s from `time` on; 0: finished
 * /runs             from repeated runs (sim/run/repeat.h): one row per run
 *   run             0, 1, ...; the rest of the file is about run 0
 *   seed, and each main metric under its key: iteration_time_s, ...
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
 * /waits            from the analysis: one row per interval without computation on a simulated
 *                   device, by device and time
 *   wait            0, 1, ...
 *   device
 *   cause           coded: messages, collectives, dependency, flush (sim/core/analysis/analysis.h)
 *   start, end      ps
 * /link_use         from the run (sim/run/link-use.h): one row per interval and busy link
 *   row             0, 1, ...
 *   link            of /links
 *   start, end      ps
 *   bytes           carried
 *   utilisation     bytes / (bandwidth * length of the interval)
 * /allocator, /reserved, /segments, /blocks
 *                   from the run, if it has an allocator (sim/run/segments.h, results-file.md)
 */
#ifndef CS_TRACE_RESULTS_H
#define CS_TRACE_RESULTS_H

#include "sim/core/trace/h5.h"
#include "sim/core/trace/results-schema.h"
#include "sim/core/trace/trace.h"

typedef struct cs_results_info {
    const char *name, *topology, *schedule;
    const char *scenario; /* resolved scenario, JSON */
    const char *program_version;
    uint64_t seed;
    const char *provenance;           /* JSON, for measured runs; NULL: simulated */
    const char *sharing, *algorithms; /* link sharing; algorithms of collectives; NULL: none */
    const char *fidelity;             /* fidelity of collectives; NULL: none */
    uint64_t hash;                    /* hash of the trace; 0: not known yet */
} cs_results_info;

/* Writes everything except the parts marked "from the analysis", /runs and the metrics to a new
 * file, which the caller commits. sim/run/store-run.h writes all of it. */
CS_MUST_CHECK cs_status cs_results_write(cs_h5_file *file, const cs_results_info *info,
                                         const cs_graph *graph, const cs_trace *trace,
                                         cs_error *error);

#endif
