/* Figures computed from a trace.
 *
 * Where a device's time went. [0, makespan) of every device is divided, without gap or overlap,
 * into
 *   compute        by kind of task
 *   communication  blocked by a blocking transfer, or idle while what the next task waited for was
 *                  on its way (exposed communication)
 *   dependency     idle while what the next task waited for was still being computed elsewhere, the
 *                  pipeline's filling included, and until its release time
 *   flush          idle between two mini-batches until every device has ended the earlier one,
 *                  if no work of the later one started before; and after the device's last task,
 *                  until the last computation of the run ends. What follows that is communication
 * For an idle gap before a task, the chain of predecessors that ended last is walked back: where it
 * runs through transfers it is communication, from the first computation on it is dependency. What
 * was there before a message between stages was sent is the sender's own affair, whether it
 * computed or communicated: from its first transfer for another purpose on it is dependency too. So
 * exposed communication is that of a device's own stage. A stage takes as long as its computations
 * and its exposed communication together, and those who wait for it wait for a stage.
 *
 * Exposed communication is divided by purpose: at each instant that of the transfer which the walk
 * back meets there, the one that what the device waits for was waiting for itself. So a gap before
 * a computation that waits for a sum over the tensor axis, and that for a message from another
 * stage, is for both, each as long as it was under way; and where ranks of a collective are late
 * because they compute, it is dependency.
 *
 * Exposed communication may be more than a device's own: what it waits for may still be handed on
 * between others, as in a collective. And a device that sends while it waits for computations
 * elsewhere hides nothing, and is not held up either. So hidden and exposed do not add up to
 * `active`.
 *
 * The critical path leads from the last task back to time 0, each step starting when the one
 * before it ended; its parts add up to the makespan too.
 */
#ifndef CS_ANALYSIS_ANALYSIS_H
#define CS_ANALYSIS_ANALYSIS_H

#include "sim/base/compact.h"
#include "sim/core/analysis/recurrence.h"
#include "sim/core/analysis/staleness.h"
#include "sim/core/analysis/steady.h"

typedef struct cs_time_use {
    cs_time compute[CS_N_KINDS];
    cs_time communication, dependency, flush;
    /* More of a device's communication: */
    cs_time collectives;            /* the part of `communication` for transfers of collectives */
    cs_time exposed[CS_N_PURPOSES]; /* the parts of it by purpose */
    cs_time active; /* it sends or receives messages, or waits to, one or several at once; and the
                     * time of all its collectives that are delays, each with its cs_class.hidden.
                     * Delays ignore each other: where they overlap, each counts in full */
    cs_time active_for[CS_N_PURPOSES]; /* the same of each purpose; messages for several may be
                                        * under way at once, so all can be more than `active` */
    cs_time hidden;                    /* the part of `active` during which the device computes */
    cs_time slowed; /* the part of `compute` by which communication made it longer; of a device */
    cs_time waited; /* part of `compute`: the device waits for its host */
} cs_time_use;

typedef struct cs_path_step {
    uint32_t task; /* CS_NONE: waiting that no task explains */
    cs_time start, end;
} cs_path_step;

/* Why a device did not compute, as above; communication by whether a collective was waited for. */
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

/* A stretch [start, end) of a device's time for one cause; neighbours differ in it. */
typedef struct cs_wait {
    cs_time start, end;
    uint32_t device;
    cs_wait_cause cause;
} cs_wait;

/* By device, then by time, packed: there may be nearly as many as tasks. */
typedef struct cs_waits {
    uint64_t n;
    cs_compact packed;
    cs_wait last; /* that was added */
} cs_waits;

typedef struct cs_wait_reader {
    const cs_waits *of;
    uint64_t n_read;
    size_t at;
    cs_wait last; /* that was read */
} cs_wait_reader;

/* From the first on; zeroed, but for `of`, a reader is there. False behind the last. */
bool cs_wait_next(cs_wait_reader *reader, cs_wait *wait);

/* Communication of a device, a mean over all of them; s. */
typedef struct cs_mean_use {
    double messages, collectives;  /* exposed */
    double exposed[CS_N_PURPOSES]; /* the same by purpose */
    double active_for[CS_N_PURPOSES];
    double active, hidden, slowed, waited;
} cs_mean_use;

typedef struct cs_analysis {
    uint32_t n_devices, n_steps;
    cs_time makespan;
    double iteration_time;  /* s: mean distance of the ends of successive mini-batches, from four on
                             * in the middle half of the run, where it is steady; of the only
                             * one, the makespan */
    cs_time middle;         /* those distances together */
    cs_time behind;         /* of the only mini-batch: from the end of its last computation to the
                             * makespan, in which weights are gathered for the next one */
    double throughput;      /* samples/s, 0 when the batch size is not known */
    double bubble_fraction; /* 1 - (compute of all devices) / (devices * makespan): the sum of */
    double exposed_communication_fraction; /* communication of all devices, and */
    double pipeline_bubble_fraction;       /* dependency and flush; the latter alone: */
    double flush_fraction;
    cs_steady_part steady;
    cs_recurrence recurrence; /* zero where there is a flush */
    cs_time_use *devices;
    cs_mean_use mean;
    cs_time_use path;    /* of the critical path; its dependency is waiting that no task explains */
    cs_path_step *steps; /* in order of time */
    cs_waits waits;      /* all stretches that `devices` sums up, of those that were simulated */
    cs_staleness staleness;
} cs_analysis;

/* Zeroed analyses can be finished. */
void cs_analysis_finish(cs_analysis *analysis);

/* `batch_size` samples per mini-batch, 0 when unknown. A stopped trace is analysed up to where it
 * stopped. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_analyse(const cs_graph *graph, const cs_trace *trace,
                                   uint32_t batch_size, cs_analysis *analysis, cs_error *error);

/* Sets iteration_time, throughput, the fractions and mean, which follow from the times that the
 * analysis has: of a run of so many mini-batches that was not stopped. */
void cs_analysis_set_rates(cs_analysis *analysis, uint32_t n_batches, uint32_t batch_size);

#endif
