#include "sim/engine/engine.h"

#include "sim/base/vector.h"
#include "sim/engine/event-queue.h"
#include "sim/engine/memory.h"
#include "sim/engine/network.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What an event is: a value of its own, or FLOW + the flow that ends. */
enum { TASK_ENDS, TRANSFER_JOINS, FLOW };

/* A class as the inner loop wants it: 32 bytes, and its effects split by when they happen. */
typedef struct run_class {
    cs_time duration; /* of compute; of a transfer: its delay */
    uint32_t device;
    uint32_t slot;
    uint32_t first_effect; /* in engine.effects: those at the start, then those at the end */
    uint16_t n_start, n_end;
    bool transfer, blocking, competes, update;
} run_class;

/* A set of ready tasks from which the least key is taken. */
typedef struct ready_heap {
    uint64_t *keys; /* (inverted priority, task id) */
    uint32_t n, capacity;
} ready_heap;

typedef struct device_state {
    uint32_t head; /* next task of its program */
    bool busy;     /* with a compute task or a blocking transfer */
    bool called;   /* is among the devices to look at */
} device_state;

typedef struct id_list {
    uint32_t *ids, n, capacity;
} id_list;

typedef struct engine {
    const cs_graph *graph;
    const cs_platform *platform;
    cs_engine_options options;
    run_class *classes;
    cs_effect *effects;
    uint32_t *waiting; /* per task: predecessors that have not ended */
    cs_span *spans;
    uint32_t *versions;     /* per task, or NULL */
    uint32_t *slot_version; /* per slot: updates that ended */
    device_state *devices;
    ready_heap *compute;  /* per device: ready tasks of a priority queue */
    ready_heap *blocking; /* per device: ready blocking transfers that it sends or receives */
    cs_event_queue events;
    cs_network *network;
    cs_memory memory;
    id_list started;    /* transfers that became ready at this instant */
    id_list passing;    /* of these, those that take no time */
    id_list called;     /* devices that may have something to start */
    bool order_devices; /* the order in which devices start matters */
    cs_time now;
    cs_time last_end; /* of the tasks that have ended */
    uint32_t n_ended;
} engine;

/* ---- small containers ---- */

static cs_status push_id(id_list *list, uint32_t id)
{
    if (!cs_vector_reserve((void **)&list->ids, &list->capacity, list->n + UINT64_C(1),
                           sizeof(*list->ids)))
        return CS_NO_MEMORY;
    list->ids[list->n++] = id;
    return CS_OK;
}

static int compare_ids(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

/* Ids come nearly always in order already. */
static void sort_ids(id_list *list)
{
    for (uint32_t i = 1; i < list->n; i++) {
        if (list->ids[i] < list->ids[i - 1]) {
            qsort(list->ids, list->n, sizeof(*list->ids), compare_ids);
            return;
        }
    }
}

static uint64_t ready_key(int32_t priority, uint32_t task)
{
    uint32_t inverted = UINT32_MAX - ((uint32_t)priority ^ UINT32_C(0x80000000));
    return (uint64_t)inverted << 32 | task;
}

static cs_status ready_push(ready_heap *heap, uint64_t key)
{
    if (!cs_vector_reserve((void **)&heap->keys, &heap->capacity, heap->n + UINT64_C(1),
                           sizeof(*heap->keys)))
        return CS_NO_MEMORY;
    uint32_t at = heap->n++;
    for (; at > 0 && heap->keys[(at - 1) / 2] > key; at = (at - 1) / 2)
        heap->keys[at] = heap->keys[(at - 1) / 2];
    heap->keys[at] = key;
    return CS_OK;
}

static uint32_t ready_first(const ready_heap *heap)
{
    return heap->n > 0 ? (uint32_t)heap->keys[0] : CS_NONE;
}

static void ready_pop(ready_heap *heap)
{
    uint64_t key = heap->keys[--heap->n];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < heap->n; at = child) {
        if (child + 1 < heap->n && heap->keys[child + 1] < heap->keys[child])
            child++;
        if (heap->keys[child] >= key)
            break;
        heap->keys[at] = heap->keys[child];
    }
    heap->keys[at] = key;
}

/* ---- events ---- */

static cs_status push_event(engine *e, uint32_t what, uint32_t task, cs_time delay)
{
    cs_time time;
    if (!cs_time_add(e->now, delay, &time))
        return CS_OVERFLOW;
    return cs_event_queue_push(&e->events, (cs_event){time, task, what}) ? CS_OK : CS_NO_MEMORY;
}

static bool announce_flow(void *context, uint32_t flow, uint32_t task, cs_time time)
{
    engine *e = context;
    return cs_event_queue_push(&e->events, (cs_event){time, task, FLOW + flow});
}

/* ---- starting and ending ---- */

static inline const run_class *class_of(const engine *e, uint32_t task)
{
    return &e->classes[e->graph->tasks[task].cls];
}

static inline cs_status apply_effects(engine *e, uint32_t first, uint32_t n, uint32_t task)
{
    if (n == 0)
        return CS_OK;
    return cs_memory_apply(&e->memory, e->effects + first, n, task, e->now) ? CS_OK : CS_NO_MEMORY;
}

/* Notes that a device may have something to start. */
static inline cs_status call_device(engine *e, uint32_t device)
{
    if (e->devices[device].called)
        return CS_OK;
    e->devices[device].called = true;
    return push_id(&e->called, device);
}

static cs_status make_ready(engine *e, uint32_t task)
{
    const run_class *cls = class_of(e, task);
    uint32_t device = cls->device;
    if (!cls->transfer) {
        cs_status status = CS_OK;
        if (e->graph->queues[device] == CS_QUEUE_PRIORITY) {
            int32_t priority = cs_graph_class(e->graph, task)->priority;
            status = ready_push(&e->compute[device], ready_key(priority, task));
        } else if (e->devices[device].head != task) {
            return CS_OK; /* its turn comes later */
        }
        return status == CS_OK ? call_device(e, device) : status;
    }
    if (!cls->blocking)
        return push_id(&e->started, task);
    uint32_t peer = cs_graph_class(e->graph, task)->peer;
    cs_status status = ready_push(&e->blocking[device], task);
    if (status == CS_OK && peer != device)
        status = ready_push(&e->blocking[peer], task);
    if (status == CS_OK)
        status = call_device(e, device);
    return status == CS_OK ? call_device(e, peer) : status;
}

/* A device is idle again. If it holds up a blocking transfer, so is perhaps the other end's turn. */
static cs_status free_device(engine *e, uint32_t device)
{
    e->devices[device].busy = false;
    cs_status status = call_device(e, device);
    uint32_t blocked = ready_first(&e->blocking[device]);
    if (status != CS_OK || blocked == CS_NONE)
        return status;
    const cs_class *cls = cs_graph_class(e->graph, blocked);
    status = call_device(e, cls->device);
    return status == CS_OK ? call_device(e, cls->peer) : status;
}

static cs_status free_devices(engine *e, uint32_t task, const run_class *cls)
{
    if (cls->transfer && !cls->blocking)
        return CS_OK;
    cs_status status = free_device(e, cls->device);
    if (status != CS_OK || !cls->transfer)
        return status;
    return free_device(e, cs_graph_class(e->graph, task)->peer);
}

static void make_version(engine *e, uint32_t task, uint32_t slot)
{
    e->slot_version[slot]++;
    if (e->versions)
        e->versions[task] = e->slot_version[slot];
}

static cs_status end_task(engine *e, uint32_t task)
{
    const run_class *cls = class_of(e, task);
    e->spans[task].end = e->now;
    e->last_end = e->now;
    e->n_ended++;
    cs_status status = apply_effects(e, cls->first_effect + cls->n_start, cls->n_end, task);
    if (status != CS_OK)
        return status;
    if (cls->update)
        make_version(e, task, cls->slot);
    status = free_devices(e, task, cls);
    uint32_t n;
    const uint32_t *successors = cs_graph_successors(e->graph, task, &n);
    for (uint32_t s = 0; s < n && status == CS_OK; s++) {
        if (--e->waiting[successors[s]] == 0)
            status = make_ready(e, successors[s]);
    }
    return status;
}

static inline void record_version(engine *e, uint32_t task, const run_class *cls)
{
    if (e->versions && cls->slot != CS_NONE && !cls->update)
        e->versions[task] = e->slot_version[cls->slot];
}

/* What will be looked at when this task ends: by then it is in the cache. */
static inline void prefetch_after(const engine *e, uint32_t task)
{
    const cs_task *record = &e->graph->tasks[task];
    uint32_t after[] = {record->next, record->successor};
    for (size_t i = 0; i < 2; i++) {
        if (after[i] >= CS_LIST)
            continue;
        __builtin_prefetch(&e->graph->tasks[after[i]]);
        __builtin_prefetch(&e->waiting[after[i]]);
        __builtin_prefetch(&e->spans[after[i]], 1);
    }
}

static cs_status begin_compute(engine *e, uint32_t task)
{
    const run_class *cls = class_of(e, task);
    prefetch_after(e, task);
    e->devices[cls->device].busy = true;
    e->spans[task].start = e->now;
    record_version(e, task, cls);
    cs_status status = apply_effects(e, cls->first_effect, cls->n_start, task);
    return status == CS_OK ? push_event(e, TASK_ENDS, task, cls->duration) : status;
}

/* Starts a transfer; one that takes no time and blocks nothing is put among the passing ones. */
static cs_status begin_transfer(engine *e, uint32_t task)
{
    const run_class *cls = class_of(e, task);
    prefetch_after(e, task);
    e->spans[task].start = e->now;
    record_version(e, task, cls);
    cs_status status = apply_effects(e, cls->first_effect, cls->n_start, task);
    if (status != CS_OK)
        return status;
    if (cls->competes && cls->duration == 0)
        return cs_network_join(e->network, task, e->graph->tasks[task].cls, e->now);
    if (cls->duration == 0 && !cls->blocking)
        return push_id(&e->passing, task);
    return push_event(e, cls->competes ? TRANSFER_JOINS : TASK_ENDS, task, cls->duration);
}

/* ---- the steps of an instant ---- */

static cs_status apply_event(engine *e, cs_event event)
{
    if (event.what == TASK_ENDS)
        return end_task(e, event.task);
    if (event.what == TRANSFER_JOINS)
        return cs_network_join(e->network, event.task, e->graph->tasks[event.task].cls, e->now);
    bool ended;
    cs_status status = cs_network_end(e->network, event.what - FLOW, event.task, e->now, &ended);
    return status == CS_OK && ended ? end_task(e, event.task) : status;
}

static cs_status end_all(engine *e)
{
    while (cs_event_queue_more_at(&e->events, e->now)) {
        cs_status status = apply_event(e, cs_event_queue_pop(&e->events));
        if (status != CS_OK)
            return status;
    }
    return CS_OK;
}

/* Starts the ready transfers, and ends those that take no time, as long as that makes others ready.
 */
static cs_status start_transfers(engine *e)
{
    cs_status status = CS_OK;
    while (e->started.n > 0 && status == CS_OK) {
        sort_ids(&e->started);
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
static cs_status try_blocking(engine *e, uint32_t task)
{
    const cs_class *cls = cs_graph_class(e->graph, task);
    if (e->devices[cls->device].busy || e->devices[cls->peer].busy ||
        ready_first(&e->blocking[cls->device]) != task ||
        ready_first(&e->blocking[cls->peer]) != task)
        return CS_OK;
    ready_pop(&e->blocking[cls->device]);
    if (cls->peer != cls->device)
        ready_pop(&e->blocking[cls->peer]);
    e->devices[cls->device].busy = true;
    e->devices[cls->peer].busy = true;
    return begin_transfer(e, task);
}

static cs_status start_device(engine *e, uint32_t device)
{
    device_state *state = &e->devices[device];
    if (state->busy)
        return CS_OK;
    uint32_t task = ready_first(&e->blocking[device]);
    if (task != CS_NONE)
        return try_blocking(e, task);
    if (e->graph->queues[device] == CS_QUEUE_PRIORITY) {
        task = ready_first(&e->compute[device]);
        if (task == CS_NONE)
            return CS_OK;
        ready_pop(&e->compute[device]);
        return begin_compute(e, task);
    }
    task = state->head;
    if (task == CS_NONE || e->waiting[task] != 0)
        return CS_OK;
    state->head = e->graph->tasks[task].next;
    return begin_compute(e, task);
}

static cs_status start_devices(engine *e)
{
    if (e->order_devices)
        sort_ids(&e->called);
    cs_status status = CS_OK;
    for (uint32_t i = 0; i < e->called.n && status == CS_OK; i++) {
        e->devices[e->called.ids[i]].called = false;
        status = start_device(e, e->called.ids[i]);
    }
    e->called.n = 0;
    return status;
}

static cs_status run_instant(engine *e)
{
    cs_status status;
    do {
        status = end_all(e);
        if (status == CS_OK)
            status = start_transfers(e);
        if (status == CS_OK)
            status = start_devices(e);
    } while (status == CS_OK && cs_event_queue_more_at(&e->events, e->now));
    return status == CS_OK ? cs_network_settle(e->network, e->now) : status;
}

static bool must_stop(const engine *e)
{
    return e->options.stop_on_oom && e->memory.over_capacity;
}

enum { PROGRESS_INSTANTS = 1 << 14 };

static cs_status run_events(engine *e)
{
    cs_status status = CS_OK;
    for (uint32_t task = 0; task < e->graph->n_tasks && status == CS_OK; task++) {
        if (e->waiting[task] == 0)
            status = make_ready(e, task);
    }
    uint32_t instants = 0;
    while (status == CS_OK) {
        status = run_instant(e);
        cs_time next = cs_event_queue_time(&e->events);
        if (status != CS_OK || next < 0 || (must_stop(e) && next > e->now))
            break;
        e->now = next;
        if (++instants % PROGRESS_INSTANTS == 0 &&
            !cs_progress_step(e->options.progress, "simulating", e->n_ended, e->graph->n_tasks))
            status = CS_INTERRUPTED;
    }
    return status;
}

/* ---- before and after ---- */

/* Splits a class's effects into those at its start and those at its end. The order in which devices
 * start matters where the start of a computation changes another device's memory. */
static void split_effects(engine *e, const cs_class *cls, run_class *run)
{
    uint32_t end = cls->first_effect + cls->n_effects, out = cls->first_effect;
    run->first_effect = cls->first_effect;
    for (uint32_t i = cls->first_effect; i < end; i++) {
        if (e->graph->effects[i].at_end)
            continue;
        e->effects[out++] = e->graph->effects[i];
        e->order_devices |= !run->transfer && e->graph->effects[i].device != cls->device;
    }
    run->n_start = (uint16_t)(out - cls->first_effect);
    for (uint32_t i = cls->first_effect; i < end; i++) {
        if (e->graph->effects[i].at_end)
            e->effects[out++] = e->graph->effects[i];
    }
    run->n_end = (uint16_t)(end - cls->first_effect - run->n_start);
}

static cs_status prepare_class(engine *e, const cs_class *cls, const cs_delivery *delivery,
                               run_class *run, cs_error *error)
{
    bool transfer = cls->kind == CS_TRANSFER;
    *run = (run_class){.device = cls->device,
                       .slot = cls->weights,
                       .transfer = transfer,
                       .blocking = cls->blocking,
                       .competes = transfer && delivery->competes,
                       .update = cls->kind == CS_UPDATE && cls->weights != CS_NONE};
    split_effects(e, cls, run);
    if (transfer) {
        e->order_devices |= cls->blocking;
        if (!cs_time_add(delivery->delay, cls->duration, &run->duration))
            return cs_error_add(error, CS_OVERFLOW, "a transfer takes 2^63 ps or more");
        return CS_OK;
    }
    if (!cs_time_at_speed(cls->duration, e->platform->devices[cls->device].speed, &run->duration))
        return cs_error_add(error, CS_OVERFLOW, "a %s of stage %u takes 2^63 ps or more",
                            cs_kind_name(cls->kind), cls->stage);
    return CS_OK;
}

static cs_status prepare_classes(engine *e, cs_error *error)
{
    const cs_graph *graph = e->graph;
    cs_delivery *deliveries = calloc((size_t)graph->n_classes + 1, sizeof(*deliveries));
    if (!deliveries)
        return cs_error_no_memory(error);
    cs_status status =
        cs_network_create(graph, e->platform, announce_flow, e, deliveries, &e->network, error);
    for (uint32_t i = 0; i < graph->n_classes && status == CS_OK; i++)
        status = prepare_class(e, &graph->classes[i], &deliveries[i], &e->classes[i], error);
    free(deliveries);
    return status;
}

static bool reserve(engine *e)
{
    const cs_graph *graph = e->graph;
    size_t tasks = (size_t)graph->n_tasks + 1, devices = (size_t)graph->n_devices + 1;
    e->classes = calloc((size_t)graph->n_classes + 1, sizeof(*e->classes));
    e->effects = calloc((size_t)graph->n_effects + 1, sizeof(*e->effects));
    e->waiting = malloc(tasks * sizeof(*e->waiting));
    e->spans = malloc(tasks * sizeof(*e->spans));
    e->slot_version = calloc((size_t)graph->n_slots + 1, sizeof(*e->slot_version));
    e->devices = calloc(devices, sizeof(*e->devices));
    e->compute = calloc(devices, sizeof(*e->compute));
    e->blocking = calloc(devices, sizeof(*e->blocking));
    if (e->options.record_versions)
        e->versions = malloc(tasks * sizeof(*e->versions));
    return e->classes && e->effects && e->waiting && e->spans && e->slot_version && e->devices &&
           e->compute && e->blocking && (e->versions || !e->options.record_versions);
}

static cs_status prepare(engine *e, cs_error *error)
{
    const cs_graph *graph = e->graph;
    if (!reserve(e))
        return cs_error_no_memory(error);
    cs_status status =
        cs_memory_init(&e->memory, graph, e->platform, e->options.record_memory, error);
    if (status == CS_OK)
        status = prepare_classes(e, error);
    if (status != CS_OK)
        return status;
    if (graph->n_tasks > 0)
        memcpy(e->waiting, graph->n_predecessors, (size_t)graph->n_tasks * sizeof(*e->waiting));
    memset(e->spans, 0xff, (size_t)graph->n_tasks * sizeof(*e->spans)); /* (-1, -1) */
    if (e->versions)
        memset(e->versions, 0xff, (size_t)graph->n_tasks * sizeof(*e->versions));
    for (uint32_t device = 0; device < graph->n_devices; device++) {
        e->devices[device].head = graph->first_task[device];
        cs_status called = call_device(e, device);
        if (called != CS_OK)
            return cs_error_no_memory(error);
    }
    e->order_devices |= e->options.stop_on_oom;
    return CS_OK;
}

static void release(engine *e)
{
    for (uint32_t i = 0; e->compute && i < e->graph->n_devices; i++)
        free(e->compute[i].keys);
    for (uint32_t i = 0; e->blocking && i < e->graph->n_devices; i++)
        free(e->blocking[i].keys);
    free(e->classes);
    free(e->effects);
    free(e->waiting);
    free(e->spans);
    free(e->versions);
    free(e->slot_version);
    free(e->devices);
    free(e->compute);
    free(e->blocking);
    free(e->started.ids);
    free(e->passing.ids);
    free(e->called.ids);
    cs_event_queue_finish(&e->events);
    cs_network_destroy(e->network);
    cs_memory_finish(&e->memory);
}

/* Tasks that still run when the run stops end there. */
static void cut_off(engine *e)
{
    for (uint32_t task = 0; task < e->graph->n_tasks; task++) {
        if (e->spans[task].start >= 0 && e->spans[task].end < 0)
            e->spans[task].end = e->now;
    }
}

static bool collect_links(engine *e, cs_trace *trace)
{
    const cs_graph *graph = e->graph;
    uint64_t *times = calloc((size_t)graph->n_classes + 1, sizeof(*times));
    trace->n_links = e->platform->n_links;
    trace->links = calloc((size_t)trace->n_links + 1, sizeof(*trace->links));
    if (!times || !trace->links) {
        free(times);
        return false;
    }
    for (uint32_t i = 0; i < trace->n_links; i++) {
        trace->links[i].name = e->platform->links[i].name;
        trace->links[i].bandwidth = e->platform->links[i].bandwidth;
    }
    for (uint32_t task = 0; task < graph->n_tasks; task++)
        times[graph->tasks[task].cls] += e->spans[task].end >= 0;
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        if (e->classes[i].transfer)
            cs_network_count(e->network, i, times[i], trace->links);
    }
    free(times);
    return true;
}

/* Moves what was recorded into the trace. */
static cs_status hand_over(engine *e, cs_trace *trace, cs_error *error)
{
    bool stopped = must_stop(e) && e->n_ended < e->graph->n_tasks;
    cs_trace made = {.n_tasks = e->graph->n_tasks,
                     .n_devices = e->graph->n_devices,
                     .makespan = stopped ? e->now : e->last_end,
                     .stopped = stopped};
    if (!collect_links(e, &made) || !cs_memory_settle_samples(&e->memory)) {
        cs_trace_finish(&made);
        return cs_error_no_memory(error);
    }
    if (made.stopped)
        cut_off(e);
    made.spans = e->spans;
    made.versions = e->versions;
    made.devices = e->memory.records;
    made.samples = e->memory.samples;
    made.n_samples = e->memory.n_samples;
    made.cap_samples = e->memory.cap_samples;
    e->spans = NULL;
    e->versions = NULL;
    e->memory.records = NULL;
    e->memory.samples = NULL;
    *trace = made;
    return CS_OK;
}

/* Names a task that never started although the run is over. */
static cs_status report_stuck(const engine *e, cs_error *error)
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
                        cs_graph_describe(e->graph, task, text, sizeof(text)), e->waiting[task]);
}

static cs_status report(const engine *e, cs_status status, cs_error *error)
{
    if (status == CS_OVERFLOW)
        return cs_error_add(error, status, "simulated time exceeds 2^63 ps (106 days)");
    if (status == CS_INTERRUPTED)
        return cs_error_add(error, status,
                            "interrupted at %.6g s of simulated time, %u of %u tasks done",
                            cs_time_seconds(e->now), e->n_ended, e->graph->n_tasks);
    return cs_error_no_memory(error);
}

cs_status cs_engine_run(const cs_graph *graph, const cs_platform *platform,
                        const cs_engine_options *options, cs_trace *trace, cs_error *error)
{
    assert(graph->n_devices <= platform->n_devices);
    engine e = {.graph = graph, .platform = platform, .options = *options};
    cs_event_queue_init(&e.events);
    cs_status status = prepare(&e, error);
    if (status == CS_OK) {
        status = run_events(&e);
        if (status != CS_OK)
            status = report(&e, status, error);
        else if (e.n_ended < graph->n_tasks && !must_stop(&e))
            status = report_stuck(&e, error);
        else
            status = hand_over(&e, trace, error);
    }
    release(&e);
    return status;
}
