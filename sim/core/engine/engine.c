#include "sim/core/engine/engine.h"

#include "sim/base/units.h"
#include "sim/core/engine/in-order.h"
#include "sim/core/engine/prefetch.h"
#include "sim/core/engine/state.h"

#include <assert.h>
#include <stdio.h>

static inline cs_status status_of(bool enough_memory)
{
    return enough_memory ? CS_OK : CS_NO_MEMORY;
}

static inline cs_status push_event_at(cs_engine *e, uint32_t what, uint32_t task, cs_time delay,
                                      uint32_t *slot)
{
    cs_time time;
    if (!cs_time_add(e->now, delay, &time))
        return CS_OVERFLOW;
    return status_of(cs_event_queue_push(&e->events, (cs_event){time, task, what}, slot));
}

static cs_status push_event(cs_engine *e, uint32_t what, uint32_t task, cs_time delay)
{
    uint32_t slot;
    return push_event_at(e, what, task, delay, &slot);
}

/* For functions that run for each task, and have more than one caller. */
#define ALWAYS_INLINE __attribute__((always_inline))

/* ---- starting and ending ---- */

static inline const cs_run_class *class_of(const cs_engine *e, uint32_t task)
{
    return &e->classes[e->graph->tasks[task].cls];
}

static inline cs_status apply_effects(cs_engine *e, uint32_t first, uint32_t n, uint32_t task)
{
    if (n == 0)
        return CS_OK;
    return cs_memory_apply(&e->memory, e->effects + first, n, task, e->now);
}

/* A blocking transfer, or a computation of a priority queue, is ready. */
static cs_status queue_on_devices(cs_engine *e, uint32_t task, const cs_run_class *run)
{
    cs_device_state *device = &e->devices[run->device];
    const cs_class *cls = cs_graph_class(e->graph, task);
    bool enough;
    if (run->transfer)
        enough =
            cs_ready_add(&device->blocking, task) &&
            (cls->peer == run->device || cs_ready_add(&e->devices[cls->peer].blocking, task)) &&
            cs_engine_wake(e, cls->peer);
    else
        enough = cs_ready_add(&device->compute, cs_ready_key(cls->priority, task));
    return status_of(enough && cs_engine_wake(e, run->device));
}

/* All predecessors of a task have ended, and its release time has come. */
static inline ALWAYS_INLINE cs_status make_ready(cs_engine *e, uint32_t task)
{
    const cs_run_class *cls = class_of(e, task);
    if (cls->transfer && !cls->blocking)
        return status_of(cs_id_list_add(&e->started, task));
    if (cls->transfer || e->graph->queues[cls->device] == CS_QUEUE_PRIORITY)
        return queue_on_devices(e, task, cls);
    const bool is_next = e->devices[cls->device].head == task;
    return status_of(!is_next || cs_engine_wake(e, cls->device));
}

/* All predecessors of a task have ended. */
static inline ALWAYS_INLINE cs_status arrive(cs_engine *e, uint32_t task)
{
    if (!class_of(e, task)->timed)
        return make_ready(e, task);
    const cs_class *cls = cs_graph_class(e->graph, task);
    cs_time release = cls->release + cls->interval * e->graph->tasks[task].item;
    if (release <= e->now)
        return make_ready(e, task);
    e->spans[task] = cs_engine_waits(1); /* for its release time */
    e->n_pending++;
    return push_event(e, CS_TASK_RELEASED, task, release - e->now);
}

/* A device is idle again. If a blocking transfer is next, its other end may start it. */
static cs_status free_device(cs_engine *e, uint32_t device)
{
    const uint32_t blocked = cs_ready_first(&e->devices[device].blocking);
    bool enough = cs_engine_wake(e, device);
    e->devices[device].busy = false;
    if (blocked != CS_NONE) {
        const cs_class *cls = cs_graph_class(e->graph, blocked);
        enough = enough && cs_engine_wake(e, cls->device) && cs_engine_wake(e, cls->peer);
    }
    return status_of(enough);
}

/* Drops the version that a task read, and makes the version of an update. */
static cs_status end_version(cs_engine *e, uint32_t task, const cs_run_class *cls)
{
    cs_status status = CS_OK;
    uint32_t made = CS_NONE;
    if (cls->policy)
        status = cs_versions_drop(e->weights, task, e->versions[task], e->now);
    if (status == CS_OK && cls->makes)
        status = cs_versions_update(e->weights, cls->slot, task, e->now, &made);
    if (cls->update && e->versions)
        e->versions[task] = made;
    return status;
}

/* Effects of the end of a task, except on its successors. */
static cs_status release(cs_engine *e, uint32_t task, const cs_run_class *run)
{
    const cs_class *cls = cs_graph_class(e->graph, task);
    const bool transfer = run->transfer, occupies = !transfer || run->blocking;
    if (e->hosts && cls->waits) { /* a host that waited for the task is not free before now */
        cs_device_state *own = &e->devices[cls->device];
        if (occupies && own->host < e->now)
            own->host = e->now;
        if (transfer && e->devices[cls->peer].host < e->now)
            e->devices[cls->peer].host = e->now;
    }
    if (e->slowdown && transfer)
        cs_slowdown_transfer(e->slowdown, cls, false);
    else if (e->slowdown)
        e->memory.records[cls->device].slowed += cs_slowdown_end(e->slowdown, cls, e->now);
    if (run->series)
        cs_memory_end_series(&e->memory, cls->device);
    CS_TRY(apply_effects(e, run->first_effect + run->n_start, run->n_end, task));
    if (run->makes || run->policy)
        CS_TRY(end_version(e, task, run));
    if (occupies)
        CS_TRY(free_device(e, cls->device));
    return occupies && transfer ? free_device(e, cls->peer) : CS_OK;
}

static cs_status end_task(cs_engine *e, uint32_t task)
{
    const cs_run_class *cls = class_of(e, task);
    e->spans[task].end = e->now;
    e->last_end = e->now;
    e->n_ended++;
    e->n_pending--;
    if (!cls->plain)
        CS_TRY(release(e, task, cls));
    uint32_t n;
    const uint32_t *successors = cs_graph_successors(e->graph, task, &n);
    for (uint32_t s = 0; s < n; s++) {
        const uint32_t successor = successors[s];
        if (++e->spans[successor].end == -1)
            CS_TRY(arrive(e, successor));
        else
            cs_prefetch_list(e, successor);
    }
    return CS_OK;
}

/* Chooses the version that a task reads. */
static inline cs_status begin_version(cs_engine *e, uint32_t task, const cs_run_class *cls)
{
    if (!e->versions || cls->slot == CS_NONE || cls->update)
        return CS_OK;
    if (cls->policy)
        return cs_versions_read(e->weights, task, e->now, &e->versions[task], e->error);
    e->versions[task] = e->current[cls->slot];
    return CS_OK;
}

/* Makes the duration of a computation that starts now longer if its host is late. */
static bool wait_for_host(cs_engine *e, const cs_run_class *cls, cs_time *duration)
{
    cs_time end;
    if (!cs_engine_advance_host(&e->hosts[cls - e->classes], e->now, *duration,
                                &e->devices[cls->device].host, &end))
        return false;
    e->memory.records[cls->device].waited += end - e->now - *duration;
    *duration = end - e->now;
    return true;
}

static cs_status begin_compute(cs_engine *e, uint32_t task)
{
    const cs_run_class *cls = class_of(e, task);
    cs_prefetch_after(e, task);
    e->devices[cls->device].busy = true;
    e->spans[task].start = e->now;
    e->n_pending++;
    cs_status status = begin_version(e, task, cls);
    if (status == CS_OK)
        status = apply_effects(e, cls->first_effect, cls->n_start, task);
    cs_time duration = cls->duration;
    if (e->options.task_factors &&
        !cs_time_scale(duration, e->options.task_factors[task], &duration))
        return CS_OVERFLOW;
    const cs_time alone = duration;
    if (e->hosts && !wait_for_host(e, cls, &duration))
        return CS_OVERFLOW;
    if (cls->series)
        cs_memory_begin_series(&e->memory, cs_graph_class(e->graph, task)->series - 1, cls->device,
                               e->now);
    uint32_t slot;
    if (status == CS_OK)
        status = push_event_at(e, CS_TASK_ENDS, task, duration, &slot);
    if (status == CS_OK && e->slowdown)
        cs_slowdown_begin(e->slowdown, cs_graph_class(e->graph, task), slot, alone, duration,
                          e->now);
    return status;
}

static cs_status join_network(cs_engine *e, uint32_t task, uint32_t cls)
{
    e->network_due = true;
    return cs_network_join(e->network, task, cls, e->now);
}

/* A transfer ends, or joins the network, after its delay. */
static cs_status push_delay(cs_engine *e, uint32_t task, const cs_run_class *cls)
{
    cs_event event = {.task = task, .what = cls->competes ? CS_TRANSFER_JOINS : CS_TASK_ENDS};
    uint32_t slot;
    if (!cs_time_add(e->now, cls->duration, &event.time))
        return CS_OVERFLOW;
    return status_of(cs_delay_lines_fit(&e->lines, cls->line, event, e->now)
                         ? cs_delay_lines_push(&e->lines, cls->line, event, &slot)
                         : cs_event_queue_push(&e->events, event, &slot));
}

/* Starts a transfer; one that takes no time and blocks nothing is put among the passing ones. */
static cs_status begin_transfer(cs_engine *e, uint32_t task)
{
    const cs_run_class *cls = class_of(e, task);
    cs_prefetch_after(e, task);
    e->spans[task].start = e->now;
    e->n_pending++;
    if (!cls->plain) {
        if (e->slowdown)
            cs_slowdown_transfer(e->slowdown, cs_graph_class(e->graph, task), true);
        CS_TRY(begin_version(e, task, cls));
        CS_TRY(apply_effects(e, cls->first_effect, cls->n_start, task));
    }
    if (cls->competes && (cls->at_start || cls->duration == 0))
        return join_network(e, task, e->graph->tasks[task].cls);
    if (cls->duration == 0 && !cls->blocking)
        return status_of(cs_id_list_add(&e->passing, task));
    if (!cls->competes)
        cs_prefetch_listed(e, task);
    return push_delay(e, task, cls);
}

/* ---- messages of others: their tasks and classes are numbered from the graph's on ---- */

static cs_status schedule_message(cs_engine *e, uint32_t source)
{
    cs_time silence, after;
    if (!cs_sources_next(e->others.sources, source, &silence) ||
        !cs_time_add(silence, e->others.latencies[source], &after))
        return CS_OVERFLOW;
    return push_event(e, CS_MESSAGE_JOINS, e->graph->n_tasks + source, after);
}

static cs_status schedule_messages(cs_engine *e)
{
    cs_status status = CS_OK;
    for (uint32_t i = 0; e->others.sources && i < e->options.traffic.n_sources && status == CS_OK;
         i++)
        status = e->others.latencies[i] < 0 ? CS_OK : schedule_message(e, i);
    return status;
}

static cs_status end_message(cs_engine *e, uint32_t source)
{
    e->others.n_messages[source]++;
    return schedule_message(e, source);
}

/* Whether the instant is over and only messages of other jobs are left. */
static bool only_others_are_left(const cs_engine *e, cs_time next)
{
    return e->others.sources && e->n_pending == 0 && next > e->now;
}

/* ---- the steps of an instant ---- */

static cs_status apply_event(cs_engine *e, cs_event event)
{
    const uint32_t n_tasks = e->graph->n_tasks;
    bool ended;
    if (event.what == CS_TASK_ENDS)
        return event.task < n_tasks ? end_task(e, event.task)
                                    : end_message(e, event.task - n_tasks);
    if (event.what == CS_TASK_RELEASED) {
        e->spans[event.task] = cs_engine_waits(0);
        e->n_pending--;
        return make_ready(e, event.task);
    }
    if (event.what == CS_TRANSFER_JOINS)
        return join_network(e, event.task, e->graph->tasks[event.task].cls);
    if (event.what == CS_MESSAGE_JOINS)
        return join_network(e, event.task, e->graph->n_classes + event.task - n_tasks);
    if (event.what == CS_TASK_OVERFLOWS)
        return CS_OVERFLOW;
    e->network_due = true;
    if (event.what == CS_SETTLE_NETWORK)
        return CS_OK;
    CS_TRY(cs_network_end(e->network, event.what - CS_FLOW, e->now, &ended));
    if (!ended)
        return CS_OK;
    return event.task < n_tasks ? end_task(e, event.task) : end_message(e, event.task - n_tasks);
}

/* The time of the next event, or -1. */
static inline cs_time next_time(const cs_engine *e)
{
    const cs_time queued = cs_event_key_time(cs_event_queue_first(&e->events)),
                  in_line = cs_delay_lines_time(&e->lines);
    return (uint64_t)queued < (uint64_t)in_line ? queued : in_line; /* -1 is the latest */
}

/* Takes the next event if its time has come. */
static inline bool take_event(cs_engine *e, cs_event *event)
{
    const cs_event_key queued = cs_event_queue_first(&e->events), in_line = e->lines.first;
    if (cs_event_key_time(cs_event_queue_least(queued, in_line)) != e->now)
        return false;
    *event = in_line < queued ? cs_delay_lines_pop(&e->lines) : cs_event_queue_pop(&e->events);
    return true;
}

static cs_status end_all(cs_engine *e)
{
    cs_event event;
    while (take_event(e, &event))
        CS_TRY(apply_event(e, event));
    return CS_OK;
}

/* Starts the ready transfers, and ends those that take no time, as long as that makes others ready.
 */
static cs_status start_transfers(cs_engine *e)
{
    cs_status status = CS_OK;
    while (e->started.n > 0 && status == CS_OK) {
        CS_TRY(status_of(cs_id_list_sort(&e->started)));
        for (uint32_t i = 0; i < e->started.n && status == CS_OK; i++)
            status = begin_transfer(e, e->started.ids[i]);
        e->started.n = 0;
        for (uint32_t i = 0; i < e->passing.n && status == CS_OK; i++)
            status = end_task(e, e->passing.ids[i]);
        e->passing.n = 0;
    }
    return status;
}

/* A blocking transfer starts when both ends are idle and have none before it. */
static cs_status try_blocking(cs_engine *e, uint32_t task)
{
    const cs_class *cls = cs_graph_class(e->graph, task);
    if (e->devices[cls->device].busy || e->devices[cls->peer].busy ||
        cs_ready_first(&e->devices[cls->device].blocking) != task ||
        cs_ready_first(&e->devices[cls->peer].blocking) != task)
        return CS_OK;
    cs_ready_take(&e->devices[cls->device].blocking);
    if (cls->peer != cls->device)
        cs_ready_take(&e->devices[cls->peer].blocking);
    e->devices[cls->device].busy = true;
    e->devices[cls->peer].busy = true;
    return begin_transfer(e, task);
}

static cs_status start_device(cs_engine *e, uint32_t device)
{
    cs_device_state *state = &e->devices[device];
    if (state->busy)
        return CS_OK;
    uint32_t task = cs_ready_first(&e->devices[device].blocking);
    if (task != CS_NONE)
        return try_blocking(e, task);
    if (e->graph->queues[device] == CS_QUEUE_PRIORITY) {
        task = cs_ready_first(&e->devices[device].compute);
        if (task == CS_NONE)
            return CS_OK;
        cs_ready_take(&e->devices[device].compute);
        return begin_compute(e, task);
    }
    task = state->head;
    if (task == CS_NONE || cs_engine_waiting(e, task) != 0)
        return CS_OK;
    state->head = e->graph->tasks[task].next;
    return begin_compute(e, task);
}

static cs_status start_devices(cs_engine *e)
{
    cs_status status = e->order_devices ? status_of(cs_id_list_sort(&e->wake_list)) : CS_OK;
    for (uint32_t i = 0; i < e->wake_list.n && status == CS_OK; i++) {
        e->devices[e->wake_list.ids[i]].woken = false;
        status = start_device(e, e->wake_list.ids[i]);
    }
    e->wake_list.n = 0;
    return status;
}

static cs_status run_instant(cs_engine *e)
{
    bool started;
    do {
        CS_TRY(end_all(e));
        started = e->started.n > 0 || e->wake_list.n > 0;
        if (e->started.n > 0)
            CS_TRY(start_transfers(e));
        if (e->wake_list.n > 0)
            CS_TRY(start_devices(e));
    } while (started && next_time(e) == e->now);
    if (e->network_due)
        CS_TRY(cs_network_settle(e->network, e->now));
    return e->slowdown ? cs_slowdown_settle(e->slowdown, e->now) : CS_OK;
}

/* The time of the next event, or -1. If that is another instant, all is known of this one. */
static cs_status find_next(cs_engine *e, cs_time *next)
{
    *next = next_time(e);
    if (!e->network_due || *next == e->now)
        return CS_OK;
    e->network_due = false;
    CS_TRY(cs_network_leave(e->network, e->now));
    *next = next_time(e);
    return CS_OK;
}

enum { PROGRESS_INSTANTS = 1 << 14 };

static cs_status run_events(cs_engine *e)
{
    cs_status status = CS_OK;
    for (uint32_t task = 0; task < e->graph->n_tasks && status == CS_OK; task++) {
        if (e->graph->n_predecessors[task] == 0)
            status = arrive(e, task);
    }
    if (status == CS_OK)
        status = schedule_messages(e);
    uint32_t instants = 0;
    while (status == CS_OK) {
        cs_time next = -1;
        status = run_instant(e);
        if (status == CS_OK)
            status = find_next(e, &next);
        if (status != CS_OK || next < 0 || (cs_engine_must_stop(e) && next > e->now) ||
            only_others_are_left(e, next))
            break;
        e->now = next;
        if (++instants % PROGRESS_INSTANTS == 0 &&
            !cs_progress_step(e->options.progress, "simulating", e->n_ended, e->graph->n_tasks))
            status = CS_INTERRUPTED;
    }
    return status;
}

/* ---- the whole ---- */

/* Names a task that never started although the run is over. */
static cs_status report_stuck(const cs_engine *e, cs_error *error)
{
    char text[96];
    uint32_t task = 0;
    while (task < e->graph->n_tasks && e->spans[task].end >= 0)
        task++;
    assert(task < e->graph->n_tasks);
    return cs_error_add(error, CS_FAILED,
                        "%u of %u tasks can never start, the first of them: %s (%u of its "
                        "predecessors have not ended)",
                        e->graph->n_tasks - e->n_ended, e->graph->n_tasks,
                        cs_graph_describe(e->graph, task, text, sizeof(text)),
                        cs_engine_waiting(e, task));
}

/* Names the likely causes: the slowest link, and the longest computation. */
static cs_status report_overflow(const cs_engine *e, cs_error *error)
{
    const cs_platform *platform = e->platform;
    char rate[CS_UNITS_TEXT_BYTES], time[CS_UNITS_TEXT_BYTES], link[160] = "", work[128] = "";
    uint32_t slowest = 0, longest = CS_NONE;
    for (uint32_t i = 1; i < platform->n_links; i++)
        slowest = platform->links[i].bandwidth < platform->links[slowest].bandwidth ? i : slowest;
    for (uint32_t i = 0; i < e->graph->n_classes; i++)
        if (!e->classes[i].transfer &&
            (longest == CS_NONE || e->classes[i].duration > e->classes[longest].duration))
            longest = i;
    if (platform->n_links > 0)
        snprintf(link, sizeof(link), "; the slowest link, %.64s, has %s",
                 platform->links[slowest].name,
                 cs_units_format(platform->links[slowest].bandwidth, CS_QUANTITY_BANDWIDTH, 4, rate,
                                 sizeof(rate)));
    if (longest != CS_NONE)
        snprintf(work, sizeof(work), "; the longest computation, a %s of stage %u, takes %s",
                 cs_kind_name(e->graph->classes[longest].kind), e->graph->classes[longest].stage,
                 cs_units_format(cs_time_seconds(e->classes[longest].duration), CS_QUANTITY_TIME, 4,
                                 time, sizeof(time)));
    return cs_error_add(error, CS_OVERFLOW,
                        "simulated time exceeds 2^63 ps (106 days), %u of %u tasks done%s%s",
                        e->n_ended, e->graph->n_tasks, link, work);
}

static cs_status report(const cs_engine *e, cs_status status, cs_error *error)
{
    if (status == CS_FAILED)
        return status; /* has been said */
    if (status == CS_OVERFLOW && e->memory.overflowed != CS_NONE)
        return cs_error_add(error, status, "device %u: more than 2^63 bytes", e->memory.overflowed);
    if (status == CS_OVERFLOW)
        return report_overflow(e, error);
    if (status == CS_INTERRUPTED)
        return cs_error_add(error, status,
                            "interrupted at %.6g s of simulated time, %u of %u tasks done",
                            cs_time_seconds(e->now), e->n_ended, e->graph->n_tasks);
    return cs_error_no_memory(error);
}

static cs_status finish(cs_engine *e, cs_status status, cs_trace *trace, cs_error *error)
{
    if (status != CS_OK)
        return report(e, status, error);
    if (e->n_ended < e->graph->n_tasks && !cs_engine_must_stop(e))
        return report_stuck(e, error);
    return cs_engine_hand_over(e, trace, error);
}

static cs_status run_by_events(cs_engine *e, cs_trace *trace, cs_error *error)
{
    CS_TRY(cs_engine_prepare_events(e, error));
    return finish(e, run_events(e), trace, error);
}

/* A pass in order that fails leaves memory changed. */
static cs_status run(cs_engine *e, cs_trace *trace, cs_error *error)
{
    const cs_engine begun = *e;
    bool done;
    CS_TRY(cs_engine_prepare(e, error));
    if (cs_in_order_refuses(e))
        return run_by_events(e, trace, error);
    const cs_status status = cs_in_order_run(e, &done);
    if (done || status != CS_OK)
        return finish(e, status, trace, error);
    cs_engine_release(e);
    *e = begun;
    CS_TRY(cs_engine_prepare(e, error));
    return run_by_events(e, trace, error);
}

cs_status cs_engine_run(const cs_graph *graph, const cs_platform *platform,
                        const cs_engine_options *options, cs_trace *trace, cs_error *error)
{
    assert(graph->n_devices <= platform->n_devices);
    cs_engine e = {.graph = graph, .platform = platform, .options = *options, .error = error};
    const cs_status status = run(&e, trace, error);
    cs_engine_release(&e);
    return status;
}
