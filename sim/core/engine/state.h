/* The state of a run, shared by what prepares it, what runs it and what hands the result over.
 * Internal to sim/core/engine. */
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

/* What an event is: a value of its own, or CS_FLOW + the flow that ends. */
enum {
    CS_TASK_ENDS,
    CS_TASK_RELEASED,
    CS_TRANSFER_JOINS,
    CS_MESSAGE_JOINS,
    CS_TASK_OVERFLOWS, /* its end does not fit */
    CS_FLOW
};

/* A class as the inner loop wants it: 32 bytes, and its effects split by when they happen. */
typedef struct cs_run_class {
    cs_time duration; /* of compute; of a transfer: its delay */
    uint32_t device;
    uint32_t slot;
    uint32_t first_effect; /* in cs_engine.effects: those at the start, then those at the end */
    uint32_t n_start, n_end;
    bool transfer : 1, blocking : 1, competes : 1;
    bool at_start : 1; /* it joins the network when it starts */
    bool update : 1;   /* of kind CS_UPDATE: records the version that it makes */
    bool makes : 1;    /* makes a version at its end */
    bool policy : 1;   /* it has one */
    bool timed : 1;    /* it has release times */
    bool series : 1;   /* it is one */
    bool at_once : 1;  /* a transfer that starts as soon as all that it waits for has ended */
    bool always : 1;   /* one that ends `duration` after its start, whatever others do */
    bool plain : 1;    /* one that changes nothing but links and successors, and blocks nothing */
    uint8_t line;      /* of those that join after their delay, or CS_NO_DELAY_LINE */
    uint8_t end_line;  /* of the ends of those that are alone on their links; or that */
} cs_run_class;

/* How a computation, or a series, depends on its host, whose clock says when the host is free: with
 * a start at t and the clock at h, it ends at the latest of t + duration, t + least and h + end,
 * and the clock is then the later of h + host and t + waited. */
typedef struct cs_run_host {
    cs_time least, end, host;
    cs_time waited; /* or CS_NO_WAIT */
} cs_run_host;

#define CS_NO_WAIT INT64_MIN

typedef struct cs_device_state {
    cs_time host;  /* clock of its host, where hosts count */
    uint32_t head; /* next task of its program */
    bool busy;     /* with a compute task or a blocking transfer */
    bool called;   /* is among the devices to look at */
} cs_device_state;

typedef struct cs_engine {
    const cs_graph *graph;
    const cs_platform *platform;
    cs_engine_options options;
    cs_run_class *classes;
    cs_run_host *hosts; /* per class; NULL: no host takes any time */
    cs_effect *effects;
    cs_span *spans;     /* of a task that waits: cs_engine_waits */
    uint32_t *versions; /* per task: what it read or made; NULL when nobody asks */
    cs_versions *weights;
    const uint32_t *current; /* per slot: the current version */
    cs_error *error;         /* for what only the discoverer can say */
    cs_device_state *devices;
    cs_ready_set *compute;  /* per device: ready tasks of a priority queue */
    cs_ready_set *blocking; /* per device: ready blocking transfers that it sends or receives */
    cs_event_queue events;
    cs_delay_lines lines; /* of events: transfers come to their links, or end */
    cs_network *network;
    bool network_due;      /* something joined the network, or left it, at this instant */
    cs_slowdown *slowdown; /* NULL: communication slows nothing down */
    cs_memory memory;
    cs_id_list started; /* transfers that became ready at this instant */
    cs_id_list passing; /* of these, those that take no time */
    cs_id_list called;  /* devices that may have something to start */
    bool order_devices; /* the order in which devices start matters */
    cs_time now;
    cs_time last_end; /* of the tasks that have ended */
    uint32_t n_ended;
    uint64_t *times;      /* per class: its tasks that ended, if they were counted; or NULL */
    cs_time *late;        /* with `times` and hosts, per class: by how much hosts were late */
    uint32_t n_pending;   /* tasks under way, and those that wait for their release time alone */
    cs_sources *sources;  /* of others' messages; NULL when there are none */
    cs_time *latencies;   /* of the messages of each; -1: they meet nothing, and are not made */
    uint64_t *n_messages; /* of each that are through */
} cs_engine;

/* Fills a state of which graph, platform, options and error are set, but for what single tasks
 * need. It must be released in either case. */
CS_MUST_CHECK cs_status cs_engine_prepare(cs_engine *e, cs_error *error);

/* The rest of it, for a run by events. */
CS_MUST_CHECK cs_status cs_engine_prepare_events(cs_engine *e, cs_error *error);

void cs_engine_release(cs_engine *e);

/* Moves what was recorded into the trace. */
CS_MUST_CHECK cs_status cs_engine_hand_over(cs_engine *e, cs_trace *trace, cs_error *error);

/* Notes that a device may have something to start. False when memory runs out. */
static inline bool cs_engine_call(cs_engine *e, uint32_t device)
{
    if (e->devices[device].called)
        return true;
    e->devices[device].called = true;
    return cs_id_list_add(&e->called, device);
}

/* The span of a task that has not started counts what it waits for, predecessors and a release
 * time: (-1, -1 - so many). Each array less is one page less per 256 tasks to fetch from the
 * system, and a line less of the cache when a task ends. */
static inline cs_span cs_engine_waits(uint32_t n)
{
    return (cs_span){-1, -1 - (cs_time)n};
}

static inline uint32_t cs_engine_waiting(const cs_engine *e, uint32_t task)
{
    return e->spans[task].end >= 0 ? 0 : (uint32_t)(-1 - e->spans[task].end);
}

/* The end of a computation, and the clock of its host after it. False: a time does not fit. */
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
