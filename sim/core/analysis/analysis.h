/* Metrics computed from a trace.
 *
 * Use of a device's time. For each device, [0, makespan) is divided without gap or overlap into
 *   compute        by kind of task
 *   communication  blocked by a blocking transfer, or idle while the dependency of the next task is
 *                  being transferred (exposed communication)
 *   dependency     idle while the dependency of the next task is still being computed elsewhere,
 *                  including the pipeline's fill, or until the task's release time
 *   flush          idle between two mini-batches until every device has finished the earlier one,
 *                  if no work of the later one started before; and after the device's last task,
 *                  until the last computation of the run ends. All idle time after that is
 *                  communication
 * To explain an idle gap before a task, the analysis walks back along the predecessors that ended
 * last: transfers are communication, and everything before the first computation on that path is
 * dependency. The time before a message between stages was sent belongs to the sender, whether it
 * computed or communicated, so from the sender's first transfer for another purpose on it is
 * dependency too. Exposed communication is therefore a device's own stage's. A stage takes as long
 * as its computations plus its exposed communication, and devices that wait for it wait for a
 * stage.
 *
 * Exposed communication is split by purpose: each instant counts for the transfer that the walk
 * meets there. A gap before a computation that waits for a sum over the tensor axis, which itself
 * waits for a message from another stage, counts for both purposes, each while it was in flight. If
 * ranks of a collective are late because they compute, that is dependency.
 *
 * Exposed communication may exceed a device's own communication: the data may still be forwarded
 * between other devices, as in a collective. And a device that sends while it waits for
 * computations elsewhere neither overlaps communication nor is held up by it. So overlapped and
 * exposed communication do not add up to `active`.
 *
 * The critical path leads from the last task back to time 0. Each step starts when the previous one
 * ended, so the steps also add up to the makespan. */
#ifndef CS_ANALYSIS_ANALYSIS_H
#define CS_ANALYSIS_ANALYSIS_H

#include "sim/base/compact.h"
#include "sim/core/analysis/recurrence.h"
#include "sim/core/analysis/staleness.h"
#include "sim/core/analysis/steady.h"

typedef struct cs_time_use {
    cs_time compute[CS_N_KINDS];
    cs_time communication, dependency, flush;
    /* Details of communication: */
    cs_time collectives;            /* part of `communication`: transfers of collectives */
    cs_time exposed[CS_N_PURPOSES]; /* parts of `communication`, by purpose */
    cs_time
        active; /* time during which the device sends or receives messages, or waits to do so, one
                     * or several at once; plus its collectives that are delays, each with its
                     * cs_class.hidden. Delays ignore each other, so each counts in full where they
                     * overlap */
    cs_time active_for[CS_N_PURPOSES]; /* likewise per purpose; can add up to more than `active`,
                                        * because messages for several purposes may be in flight at
                                        * once */
    cs_time hidden;                    /* part of `active` during which the device computes */
    cs_time slowed; /* part of `compute`: lengthening by communication; devices only */
    cs_time waited; /* part of `compute`: the device waits for its host */
} cs_time_use;

typedef struct cs_path_step {
    uint32_t task; /* CS_NONE: waiting that no task explains */
    cs_time start, end;
} cs_path_step;

/* Causes of idle time, as above; communication is split into messages and collectives. */
#define CS_WAIT_MAP(X)                                                                             \
    X(MESSAGES, "messages")                                                                        \
    X(COLLECTIVES, "collectives")                                                                  \
    X(DEPENDENCY, "dependency")                                                                    \
    X(FLUSH, "flush")

typedef enum cs_wait_cause {
#define CS_WAIT_ENUM(name, text) CS_WAIT_##name,
    CS_WAIT_MAP(CS_WAIT_ENUM)
#undef CS_WAIT_ENUM
} cs_wait_cause;

/* An interval [start, end) of a device's time with one cause, which differs from its
 * neighbours'. */
typedef struct cs_wait {
    cs_time start, end;
    uint32_t device;
    cs_wait_cause cause;
} cs_wait;

/* By device, then by time; packed, because there may be nearly as many as tasks. */
typedef struct cs_waits {
    uint64_t n;
    cs_compact packed;
    cs_wait last; /* the wait added last */
} cs_waits;

typedef struct cs_wait_reader {
    const cs_waits *of;
    uint64_t n_read;
    size_t at;
    cs_wait last; /* the wait read last */
} cs_wait_reader;

/* Reads the next wait; returns false after the last. A reader that is zeroed except for `of` starts
 * at the first. */
bool cs_wait_next(cs_wait_reader *reader, cs_wait *wait);

/* Communication of a device in s, mean over all devices. */
typedef struct cs_mean_use {
    double messages, collectives;  /* exposed communication */
    double exposed[CS_N_PURPOSES]; /* likewise by purpose */
    double active_for[CS_N_PURPOSES];
    double active, hidden, slowed, waited;
} cs_mean_use;

typedef struct cs_analysis {
    uint32_t n_devices, n_steps;
    cs_time makespan;
    double iteration_time;  /* s: mean time between the ends of successive mini-batches, taken over
                             * the middle half of the run if there are at least four; the makespan
                             * if there is only one */
    cs_time middle;         /* sum of these times */
    cs_time behind;         /* with a single mini-batch: time from the end of its last computation
                             * to the makespan, during which weights are gathered for the next
                             * one */
    double throughput;      /* samples/s; 0: the batch size is not known */
    double bubble_fraction; /* 1 - (compute of all devices) / (devices * makespan): the sum of */
    double exposed_communication_fraction; /* communication of all devices, and */
    double pipeline_bubble_fraction;       /* dependency and flush; flush alone: */
    double flush_fraction;
    cs_steady_part steady;
    cs_recurrence recurrence; /* zeroed if the schedule has a flush */
    cs_time_use *devices;
    cs_mean_use mean;
    cs_time_use path;    /* use of the critical path's time; dependency: waiting that no task
                          * explains */
    cs_path_step *steps; /* in order of time */
    cs_waits waits;      /* all intervals summed up in `devices`, of simulated devices only */
    cs_staleness staleness;
} cs_analysis;

/* Accepts a zeroed analysis. */
void cs_analysis_finish(cs_analysis *analysis);

/* Analyses a trace. `batch_size`: samples per mini-batch, 0 if unknown. A stopped trace is analysed
 * up to its end. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_analyse(const cs_graph *graph, const cs_trace *trace,
                                   uint32_t batch_size, cs_analysis *analysis, cs_error *error);

/* Derives iteration_time, throughput, the fractions and the means from the analysis's times, for a
 * run of `n_batches` mini-batches that was not stopped. */
void cs_analysis_set_rates(cs_analysis *analysis, uint32_t n_batches, uint32_t batch_size);

#endif
