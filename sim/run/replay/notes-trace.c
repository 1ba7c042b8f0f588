#include "sim/run/replay/notes-trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- times ---- */

/* As a transfer, a collective starts when all of its members are there: their tasks stand
 * together. */
static void align_collectives(const cs_replay *replay, cs_trace *trace)
{
    const cs_graph *graph = &replay->graph;
    for (uint32_t t = 0; t < graph->n_tasks;) {
        const cs_class *cls = cs_graph_class(graph, t);
        const bool together = cs_kind_group_of((cs_kind)cls->kind) == CS_GROUP_COLLECTIVE;
        const uint32_t end = t + (together ? graph->groups[cls->peer].n : 1);
        cs_time start = 0;
        for (uint32_t k = t; k < end; k++)
            start = trace->spans[k].start > start ? trace->spans[k].start : start;
        for (; t < end; t++)
            trace->spans[t].start = start;
    }
}

static cs_status set_spans(const cs_replay *replay, const cs_notes *notes, cs_trace *trace,
                           cs_error *error)
{
    uint32_t n = replay->graph.n_tasks;
    double start = INFINITY;
    for (uint32_t t = 0; t < n; t++) {
        if (notes->leave[t] < 0)
            return cs_error_add(error, CS_FAILED, "task %u was not done", t);
        start = fmin(start, notes->enter[t]);
    }
    for (uint32_t t = 0; t < n; t++) {
        cs_span *span = &trace->spans[t];
        if (!cs_time_from_seconds(notes->enter[t] - start, &span->start) ||
            !cs_time_from_seconds(notes->leave[t] - start, &span->end))
            return cs_error_add(error, CS_OVERFLOW, "the replay took longer than 2^63 ps");
        trace->makespan = span->end > trace->makespan ? span->end : trace->makespan;
    }
    align_collectives(replay, trace);
    return CS_OK;
}

/* ---- memory ---- */

/* A change of what a device holds, behind a task or within it. */
typedef struct change {
    cs_time time;
    bool starts; /* with a task; else it comes behind one */
    uint32_t device, category;
    int64_t bytes;
} change;

/* All ends of an instant come before its starts. */
static int by_time(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (int)x->starts - (int)y->starts;
}

/* What a device holds by category while the changes are walked through. */
typedef struct walk {
    int64_t live[CS_N_CATEGORIES];
    bool changed[CS_N_CATEGORIES]; /* at this instant */
} walk;

/* Behind all changes of an instant: a sample of each category that changed, and the peaks. False
 * when memory runs out. */
static bool take_samples(cs_trace *trace, walk *at, cs_time time, uint32_t d)
{
    cs_device_record *device = &trace->devices[d];
    int64_t sum = 0;
    for (uint32_t k = 0; k < CS_N_CATEGORIES; k++) {
        sum += at->live[k];
        if (at->live[k] > device->category_peak[k])
            device->category_peak[k] = at->live[k];
        if (at->changed[k] &&
            !cs_samples_add(trace->samples, &(cs_memory_sample){time, at->live[k], d, k}))
            return false;
        at->changed[k] = false;
    }
    if (sum <= device->peak)
        return true;
    device->peak = sum;
    device->peak_time = time;
    memcpy(device->at_peak, at->live, sizeof(device->at_peak));
    return true;
}

static bool sample(cs_trace *trace, const change *changes, uint32_t n, walk *walks)
{
    bool done = true;
    for (uint32_t i = 0; i < n && done; i++) {
        const change *c = &changes[i];
        walk *at = &walks[c->device];
        at->live[c->category] = c->bytes;
        at->changed[c->category] = true;
        if (i + 1 == n || c->time != c[1].time || c->device != c[1].device)
            done = take_samples(trace, at, c->time, c->device);
    }
    return done;
}

static uint32_t residents(const double *resident, uint32_t n_devices, change *changes)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < n_devices; d++) {
        for (uint32_t c = 0; c < CS_N_CATEGORIES; c++) {
            const int64_t bytes = (int64_t)resident[d * (size_t)CS_N_CATEGORIES + c];
            if (bytes > 0)
                changes[n++] = (change){0, false, d, c, bytes};
        }
    }
    return n;
}

static int64_t sum_of(const double *resident, uint32_t device)
{
    double sum = 0;
    for (uint32_t c = 0; c < CS_N_CATEGORIES; c++)
        sum += resident[device * (size_t)CS_N_CATEGORIES + c];
    return (int64_t)sum;
}

/* Within a task its device holds the most, behind it what is left. */
static uint32_t task_changes(const cs_replay *replay, const cs_notes *notes, const double *resident,
                             const cs_trace *trace, change *changes)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < replay->graph.n_tasks; t++) {
        uint32_t device = cs_graph_class(&replay->graph, t)->device;
        const int64_t fixed = sum_of(resident, device);
        int64_t live = (int64_t)notes->live[t] - fixed;
        int64_t most = (int64_t)notes->most[t] - fixed;
        const cs_span *span = &trace->spans[t];
        if (notes->live[t] < 0 || span->start == span->end)
            continue;
        changes[n++] = (change){span->start, true, device, CS_MEMORY_WORKSPACE, most - live};
        changes[n++] = (change){span->start, true, device, CS_MEMORY_ACTIVATIONS, live};
        changes[n++] = (change){span->end, false, device, CS_MEMORY_WORKSPACE, 0};
    }
    return n;
}

static cs_status set_memory(const cs_replay *replay, const cs_notes *notes, const double *resident,
                            cs_trace *trace, cs_error *error)
{
    size_t most =
        CS_N_CATEGORIES * (size_t)trace->n_devices + 3 * (size_t)replay->graph.n_tasks + 1;
    change *changes = calloc(most, sizeof(*changes));
    walk *walks = calloc(trace->n_devices, sizeof(*walks));
    trace->samples = cs_samples_create(trace->n_devices);
    if (!changes || !walks || !trace->samples) {
        free(changes);
        free(walks);
        return cs_error_no_memory(error);
    }
    uint32_t n = residents(resident, trace->n_devices, changes);
    n += task_changes(replay, notes, resident, trace, changes + n);
    qsort(changes, n, sizeof(*changes), by_time);
    const bool done = sample(trace, changes, n, walks);
    free(changes);
    free(walks);
    return done ? CS_OK : cs_error_no_memory(error);
}

/* ---- all of it ---- */

static cs_status allocate(const cs_replay *replay, cs_trace *trace, cs_error *error)
{
    const cs_graph *graph = &replay->graph;
    trace->n_tasks = graph->n_tasks;
    trace->n_devices = graph->n_devices;
    trace->n_slots = graph->n_slots;
    trace->spans = calloc(graph->n_tasks + UINT64_C(1), sizeof(*trace->spans));
    trace->versions = calloc(graph->n_tasks + UINT64_C(1), sizeof(*trace->versions));
    trace->devices = calloc(graph->n_devices + UINT64_C(1), sizeof(*trace->devices));
    trace->slots = calloc(graph->n_slots + UINT64_C(1), sizeof(*trace->slots));
    trace->links = calloc(1, sizeof(*trace->links));
    if (!trace->spans || !trace->versions || !trace->devices || !trace->slots || !trace->links)
        return cs_error_no_memory(error);
    memcpy(trace->versions, replay->versions, graph->n_tasks * sizeof(*trace->versions));
    for (uint32_t d = 0; d < graph->n_devices; d++)
        trace->devices[d] = (cs_device_record){
            .capacity = replay->scenario->platform.devices[d].capacity, .oom_task = CS_NONE};
    return CS_OK;
}

cs_status cs_measured_trace(const cs_replay *replay, const cs_notes *notes, const double *resident,
                            cs_trace *trace, cs_error *error)
{
    cs_trace made = {0};
    cs_status status = allocate(replay, &made, error);
    if (status == CS_OK)
        status = set_spans(replay, notes, &made, error);
    if (status == CS_OK)
        status = set_memory(replay, notes, resident, &made, error);
    if (status == CS_OK)
        *trace = made;
    else
        cs_trace_finish(&made);
    return status;
}
