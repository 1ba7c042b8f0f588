/* The state of a run. Internal to sim/core/engine. */
#ifndef CS_ENGINE_STATE_H
#define CS_ENGINE_STATE_H

#include "sim/core/engine/delay-lines.h"
#include "sim/core/engine/engine.h"
#include "sim/core/engine/event-queue.h"
#include "sim/core/engine/memory.h"
#include "sim/core/engine/network.h"
#include "sim/core/engine/ready.h"
#include "sim/core/engine/slowdown.h"
#include "sim/core/engine/sources.h"
#include "sim/core/engine/versions.h"

/* Kinds of events; CS_FLOW + a flow: it ends, or arrives at its links. */
enum {
    CS_TASK_ENDS,
    CS_TASK_RELEASED,  /* its release time has come */
    CS_TRANSFER_JOINS, /* it joins the network after its delay */
    CS_MESSAGE_JOINS,  /* the same for a message of another job */
    CS_TASK_OVERFLOWS, /* a transfer would start, but its end does not fit */
    CS_SETTLE_NETWORK,
    CS_FLOW
};

/* A class as the inner loop needs it: 32 bytes. */
typedef struct cs_run_class {
    cs_time duration; /* a transfer's is its delay */
    uint32_t device;
    uint32_t slot;
    uint32_t first_effect; /* in cs_engine.effects: those at the start, then those at the end */
    uint32_t n_start, n_end;
    bool transfer : 1, blocking : 1;
    bool competes : 1; /* a transfer that joins the network */
    bool at_start : 1; /* it joins when it starts */
    bool update : 1;   /* a CS_UPDATE of weights: records the version that it makes */
    bool makes : 1;    /* makes a version at its end */
    bool policy : 1;   /* has a policy that chooses its version */
    bool timed : 1;    /* has release times */
    bool series : 1;   /* is a series */
    bool plain : 1;    /* a transfer that only moves bytes: its start and end change nothing else */
    uint8_t line;      /* delay line of events `duration` after a transfer's start, or none:
                        * CS_NO_DELAY_LINE */
    uint8_t end_line;  /* delay line for the ends of transfers that nothing slows down; or none */
} cs_run_class;

/* How a computation or a series depends on its host. The host's clock says when the host is free.
 * With a start at t and the clock at h, the task ends at the latest of t + duration, t + least and
 * h + end. After that the clock is the later of h + host and t + waited. */
typedef struct cs_run_host {
    cs_time least, end, host;
    cs_time waited; /* or CS_NO_WAIT */
} cs_run_host;

#define CS_NO_WAIT INT64_MIN

typedef struct cs_device_state {
    cs_time host;          /* clock of its host, if hosts take time */
    uint32_t head;         /* next task of its program */
    bool busy;             /* with a computation or a blocking transfer */
    bool woken;            /* is in the wake list */
    cs_ready_set compute;  /* priority queue: ready computations */
    cs_ready_set blocking; /* ready blocking transfers that it sends or receives */
} cs_device_state;

/* Messages of other jobs (cs_traffic). */
typedef struct cs_other_messages {
    cs_sources *sources;  /* NULL: there are none */
    cs_time *latencies;   /* per source; -1: its messages meet nothing and are left out */
    uint64_t *n_messages; /* per source: messages that have ended */
} cs_other_messages;

typedef struct cs_engine {
    const cs_graph *graph;
    const cs_platform *platform;
    cs_engine_options options;
    cs_error *error; /* for errors whose cause only their discoverer knows */

    cs_run_class *classes;
    cs_run_host *hosts; /* per class; NULL: no host takes any time */
    cs_effect *effects;
    cs_span *spans;     /* per task; before its start: cs_engine_waits */
    uint32_t *versions; /* per task: the version that it read or made; NULL: not asked for */
    cs_versions *weights;
    const uint32_t *current; /* per slot: its current version */
    cs_memory memory;
    cs_device_state *devices;

    cs_time now;
    cs_event_queue events;
    cs_delay_lines lines;
    cs_network *network;
    bool network_due;      /* at this instant something joined the network or left it */
    bool order_devices;    /* devices must start in the order of their numbers */
    cs_id_list started;    /* transfers that became ready at this instant */
    cs_id_list passing;    /* started transfers that take no time */
    cs_id_list wake_list;  /* devices that may have something to start */
    cs_slowdown *slowdown; /* NULL: communication does not slow computations down */
    cs_other_messages others;

    cs_time last_end;   /* latest end of a task */
    uint32_t n_ended;   /* tasks */
    uint32_t n_pending; /* tasks under way, or that only wait for their release time */
    uint64_t *times;    /* per class: its tasks that ended; NULL: not counted */
    cs_time *late;      /* with `times` and hosts, per class: total delay by hosts */
} cs_engine;

/* Fills a state whose graph, platform, options and error are set, except for data of single tasks.
 * The state must be released in either case. */
CS_MUST_CHECK cs_status cs_engine_prepare(cs_engine *e, cs_error *error);

/* Prepares the rest, for a run by events. */
CS_MUST_CHECK cs_status cs_engine_prepare_events(cs_engine *e, cs_error *error);

void cs_engine_release(cs_engine *e);

/* Moves the records of the run into the trace. */
CS_MUST_CHECK cs_status cs_engine_hand_over(cs_engine *e, cs_trace *trace, cs_error *error);

/* Notes that a device may have something to start. False when memory runs out. */
static inline bool cs_engine_wake(cs_engine *e, uint32_t device)
{
    if (e->devices[device].woken)
        return true;
    e->devices[device].woken = true;
    return cs_id_list_add(&e->wake_list, device);
}

/* The span of a task that has not started counts the predecessors and the release time that it
 * still waits for: (-1, -1 - count). A separate array of counts would cost a page fault per
 * 1,024 tasks, and a cache line per successor when a task ends. */
static inline cs_span cs_engine_waits(uint32_t n)
{
    return (cs_span){-1, -1 - (cs_time)n};
}

static inline uint32_t cs_engine_waiting(const cs_engine *e, uint32_t task)
{
    return e->spans[task].end >= 0 ? 0 : (uint32_t)(-1 - e->spans[task].end);
}

/* Computes the end of a computation, and its host's clock after it. False: a time does not fit. */
static inline bool cs_engine_advance_host(const cs_run_host *of, cs_time start, cs_time duration,
                                          cs_time *clock, cs_time *end)
{
    cs_time started, next, waited = CS_NO_WAIT;
    if (!cs_time_add(start, duration > of->least ? duration : of->least, end) ||
        !cs_time_add(*clock, of->end, &started) || !cs_time_add(*clock, of->host, &next) ||
        (of->waited != CS_NO_WAIT && !cs_time_add(start, of->waited, &waited)))
        return false;
    *end = started > *end ? started : *end;
    *clock = waited > next ? waited : next;
    return true;
}

static inline bool cs_engine_must_stop(const cs_engine *e)
{
    return e->options.stop_on_oom && e->memory.over_capacity;
}

#endif
