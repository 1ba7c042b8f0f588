#include "tests/synthetic-trace.h"

#include "sim/base/vector.h"
#include "sim/core/analysis/store.h"
#include "sim/core/graph/builder.h"
#include "sim/run/store-run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct op {
    cs_kind kind;
    uint32_t micro_batch;
} op;

/* Input of a stage: its arrival (-1: not known yet) and the task that brings it. */
typedef struct arrival {
    cs_time time;
    uint32_t task;
} arrival;

typedef struct change {
    cs_time time;
    int64_t bytes;
    uint32_t device;
} change;

typedef struct pipeline {
    const synthetic_options *o;
    synthetic_run *run;
    cs_builder *builder;
    uint32_t *classes;  /* per device: by kind, then the transfer forward and the one backward */
    op *ops;            /* per device: its program for one mini-batch */
    uint32_t *n_ops;    /* per device */
    arrival *inputs;    /* per device and micro-batch, of the forward */
    arrival *gradients; /* the same, of the backward */
    cs_time *idle_from; /* per device */
    change *changes;    /* changes of activations */
    uint32_t n_changes, cap_changes, cap_spans, cap_versions, most_ops;
    uint32_t mini_batch;
    bool failed;
} pipeline;

enum { TO_NEXT = CS_N_KINDS, TO_PREVIOUS, CLASSES };

/* ---- the program ---- */

static cs_time duration_of(const pipeline *p, cs_kind kind, uint32_t device)
{
    const synthetic_options *o = p->o;
    cs_time longer = device % 3 * o->skew;
    switch (kind) {
    case CS_UPDATE:
        return o->update;
    case CS_BACKWARD:
        return o->backward + longer;
    case CS_BACKWARD_INPUT:
    case CS_BACKWARD_WEIGHT:
        return (o->backward + longer) / 2;
    default:
        return o->forward + longer;
    }
}

static void add_op(pipeline *p, uint32_t device, cs_kind kind, uint32_t micro_batch)
{
    p->ops[(size_t)device * p->most_ops + p->n_ops[device]++] = (op){kind, micro_batch};
}

static void add_backward(pipeline *p, uint32_t device, uint32_t micro_batch)
{
    if (p->o->recompute)
        add_op(p, device, CS_RECOMPUTE, micro_batch);
    add_op(p, device, p->o->split ? CS_BACKWARD_INPUT : CS_BACKWARD, micro_batch);
    if (p->o->split)
        add_op(p, device, CS_BACKWARD_WEIGHT, micro_batch);
}

static void make_program(pipeline *p, uint32_t device)
{
    uint32_t micro_batches = p->o->micro_batches;
    uint32_t ahead = p->o->devices - 1 - device;
    uint32_t forward = 0;
    while (forward < ahead && forward < micro_batches)
        add_op(p, device, CS_FORWARD, forward++);
    for (uint32_t backward = 0; backward < micro_batches; backward++) {
        if (forward < micro_batches)
            add_op(p, device, CS_FORWARD, forward++);
        add_backward(p, device, backward);
    }
    if (p->o->update > 0)
        add_op(p, device, CS_UPDATE, micro_batches - 1);
}

static void make_classes(pipeline *p, uint32_t device)
{
    uint32_t *classes = p->classes + (size_t)device * CLASSES;
    int64_t bytes = p->o->activation;
    uint32_t slot = cs_builder_slot(p->builder, device, device, p->o->weights);
    cs_kind freeing = p->o->split ? CS_BACKWARD_WEIGHT : CS_BACKWARD;
    for (cs_kind kind = CS_FORWARD; kind <= CS_UPDATE; kind++) {
        classes[kind] = cs_builder_compute(p->builder, kind, device, device, slot,
                                           duration_of(p, kind, device));
        if (kind == CS_FORWARD || kind == freeing)
            cs_builder_effect(p->builder, CS_MEMORY_ACTIVATIONS, device,
                              kind == freeing ? -bytes : bytes, kind == freeing);
    }
    if (device + 1 < p->o->devices)
        classes[TO_NEXT] =
            cs_builder_transfer(p->builder, device, device, device + 1, bytes, false);
    if (device > 0)
        classes[TO_PREVIOUS] =
            cs_builder_transfer(p->builder, device, device, device - 1, bytes, false);
    cs_builder_resident(p->builder, device, CS_MEMORY_WEIGHTS, p->o->weights);
    cs_builder_resident(p->builder, device, CS_MEMORY_OPTIMIZER, 2 * p->o->weights);
}

/* ---- time ---- */

static uint32_t add_task(pipeline *p, uint32_t cls, uint32_t micro_batch, cs_time start,
                         cs_time end, uint32_t version)
{
    cs_trace *trace = &p->run->trace;
    uint32_t task =
        cs_builder_task(p->builder, cls, p->mini_batch * p->o->micro_batches + micro_batch);
    if (task == CS_NONE ||
        !cs_vector_reserve((void **)&trace->spans, &p->cap_spans, task + 1u, sizeof(cs_span)) ||
        !cs_vector_reserve((void **)&trace->versions, &p->cap_versions, task + 1u,
                           sizeof(*trace->versions))) {
        p->failed = true;
        return CS_NONE;
    }
    trace->spans[task] = (cs_span){start, end};
    trace->versions[task] = version;
    trace->n_tasks = task + 1;
    trace->makespan = end > trace->makespan ? end : trace->makespan;
    return task;
}

static void add_change(pipeline *p, cs_time time, uint32_t device, int64_t bytes)
{
    if (!cs_vector_reserve((void **)&p->changes, &p->cap_changes, p->n_changes + 1u,
                           sizeof(change))) {
        p->failed = true;
        return;
    }
    p->changes[p->n_changes++] = (change){time, bytes, device};
}

/* Sends the result of `device` to the neighbour that waits for it. */
static void pass_on(pipeline *p, const op *done, uint32_t device, uint32_t task, cs_time end)
{
    bool forward = done->kind == CS_FORWARD;
    bool backward = done->kind == CS_BACKWARD || done->kind == CS_BACKWARD_INPUT;
    size_t micro_batches = p->o->micro_batches;
    uint32_t last = p->o->devices - 1;
    if (forward && device == last)
        p->gradients[last * micro_batches + done->micro_batch] = (arrival){end, task};
    if ((!forward || device == last) && (!backward || device == 0))
        return;
    arrival *at = forward ? &p->inputs[(device + 1) * micro_batches + done->micro_batch]
                          : &p->gradients[(device - 1) * micro_batches + done->micro_batch];
    *at = (arrival){end + p->o->transfer, task};
    if (p->o->transfer == 0)
        return;
    uint32_t cls = p->classes[(size_t)device * CLASSES + (forward ? TO_NEXT : TO_PREVIOUS)];
    at->task = add_task(p, cls, done->micro_batch, end, at->time, CS_NONE);
    cs_builder_edge(p->builder, task, at->task);
}

/* Returns the input that an operation waits for, in addition to its device; NULL: none. */
static const arrival *waits_for(const pipeline *p, const op *next, uint32_t device)
{
    size_t at = (size_t)device * p->o->micro_batches + next->micro_batch;
    if (next->kind == CS_FORWARD)
        return device > 0 ? &p->inputs[at] : NULL;
    return next->kind == CS_BACKWARD || next->kind == CS_BACKWARD_INPUT ||
                   next->kind == CS_RECOMPUTE
               ? &p->gradients[at]
               : NULL;
}

static bool run_op(pipeline *p, const op *next, uint32_t device)
{
    const arrival *input = waits_for(p, next, device);
    if (input && input->time < 0)
        return false;
    cs_time start = p->idle_from[device];
    if (input && input->time > start)
        start = input->time;
    cs_time end = start + duration_of(p, next->kind, device);
    uint32_t version = p->mini_batch + (next->kind == CS_UPDATE);
    uint32_t task = add_task(p, p->classes[(size_t)device * CLASSES + next->kind],
                             next->micro_batch, start, end, version);
    if (p->failed)
        return false;
    cs_builder_edge(p->builder, input ? input->task : CS_NONE, task);
    if (next->kind == CS_FORWARD)
        add_change(p, start, device, p->o->activation);
    if (next->kind == (p->o->split ? CS_BACKWARD_WEIGHT : CS_BACKWARD))
        add_change(p, end, device, -p->o->activation);
    p->idle_from[device] = end;
    pass_on(p, next, device, task, end);
    return true;
}

/* Each device goes on as far as it can, until none can. */
static void run_mini_batch(pipeline *p, uint32_t *next)
{
    size_t n = (size_t)p->o->devices * p->o->micro_batches;
    for (size_t i = 0; i < n; i++)
        p->inputs[i] = p->gradients[i] = (arrival){-1, CS_NONE};
    memset(next, 0, p->o->devices * sizeof(*next));
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t d = 0; d < p->o->devices; d++) {
            while (next[d] < p->n_ops[d] &&
                   run_op(p, &p->ops[(size_t)d * p->most_ops + next[d]], d)) {
                next[d]++;
                moved = true;
            }
        }
    }
}

/* ---- memory ---- */

static int compare_changes(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* frees come first */
}

static bool add_sample(cs_trace *trace, cs_time time, uint32_t device, cs_category category,
                       int64_t bytes)
{
    const cs_memory_sample sample = {time, bytes, device, category};
    return (bytes == 0 && time == 0) || cs_samples_add(trace->samples, &sample);
}

static void note_peak(cs_device_record *record, const int64_t *live, cs_time time)
{
    int64_t total = 0;
    for (int c = 0; c < CS_N_CATEGORIES; c++) {
        total += live[c];
        if (live[c] > record->category_peak[c])
            record->category_peak[c] = live[c];
    }
    if (total > record->peak) {
        record->peak = total;
        record->peak_time = time;
        memcpy(record->at_peak, live, sizeof(record->at_peak));
    }
    if (total > record->capacity && !record->out_of_memory) {
        record->out_of_memory = true;
        record->oom_time = time;
        record->oom_task = CS_NONE;
        memcpy(record->at_oom, live, sizeof(record->at_oom));
    }
}

static bool sample_memory(pipeline *p, int64_t (*live)[CS_N_CATEGORIES])
{
    cs_trace *trace = &p->run->trace;
    bool done = true;
    for (uint32_t d = 0; d < p->o->devices; d++) {
        trace->devices[d].capacity = p->o->capacity > 0 ? p->o->capacity : INT64_MAX;
        trace->devices[d].oom_task = CS_NONE;
        live[d][CS_MEMORY_WEIGHTS] = p->o->weights;
        live[d][CS_MEMORY_OPTIMIZER] = 2 * p->o->weights;
        done = done && add_sample(trace, 0, d, CS_MEMORY_WEIGHTS, live[d][CS_MEMORY_WEIGHTS]) &&
               add_sample(trace, 0, d, CS_MEMORY_OPTIMIZER, live[d][CS_MEMORY_OPTIMIZER]);
        note_peak(&trace->devices[d], live[d], 0);
    }
    int64_t sum = 0; /* sum of the changes at one instant on one device */
    for (uint32_t i = 0; i < p->n_changes; i++) {
        const change *at = &p->changes[i];
        live[at->device][CS_MEMORY_ACTIVATIONS] += at->bytes;
        note_peak(&trace->devices[at->device], live[at->device], at->time);
        sum += at->bytes;
        if (i + 1 < p->n_changes && at[1].time == at->time && at[1].device == at->device)
            continue;
        if (sum != 0)
            done = done && add_sample(trace, at->time, at->device, CS_MEMORY_ACTIVATIONS,
                                      live[at->device][CS_MEMORY_ACTIVATIONS]);
        sum = 0;
    }
    return done;
}

static bool make_memory(pipeline *p)
{
    cs_trace *trace = &p->run->trace;
    uint32_t n = p->o->devices;
    if (p->n_changes > 0)
        qsort(p->changes, p->n_changes, sizeof(*p->changes), compare_changes);
    int64_t(*live)[CS_N_CATEGORIES] = calloc(n, sizeof(*live));
    trace->n_devices = n;
    trace->devices = calloc(n, sizeof(*trace->devices));
    trace->samples = cs_samples_create(n);
    bool done = live && trace->devices && trace->samples;
    done = done && sample_memory(p, live);
    free(live);
    return done;
}

/* ---- links and analysis ---- */

static bool make_links(pipeline *p)
{
    cs_trace *trace = &p->run->trace;
    uint32_t pairs = p->o->transfer > 0 ? p->o->devices - 1 : 0;
    int64_t carried = p->o->activation * p->o->micro_batches * p->o->mini_batches;
    trace->n_links = 2 * pairs;
    trace->links = calloc(2 * (size_t)pairs + 1, sizeof(*trace->links));
    for (uint32_t i = 0; trace->links && i < trace->n_links; i++) {
        char name[64];
        snprintf(name, sizeof(name), "gpu%u > gpu%u", i / 2 + i % 2, i / 2 + 1 - i % 2);
        trace->links[i].name = cs_arena_copy(&p->run->names, name);
        trace->links[i].bandwidth = (double)p->o->activation / cs_time_seconds(p->o->transfer);
        trace->links[i].bytes = carried;
        if (!trace->links[i].name)
            return false;
    }
    return trace->links;
}

/* Waiting of at most a transfer's time counts as communication, the rest as dependency. */
static void use_time(const pipeline *p, cs_time *until, uint32_t task)
{
    const cs_class *cls = cs_graph_class(&p->run->graph, task);
    const cs_span *span = &p->run->trace.spans[task];
    if (cs_kind_group_of(cls->kind) != CS_GROUP_COMPUTE)
        return;
    cs_time_use *use = &p->run->analysis.devices[cls->device];
    cs_time idle = span->start - until[cls->device];
    cs_time communication = idle < p->o->transfer ? idle : p->o->transfer;
    use->communication += communication;
    use->dependency += idle - communication;
    use->compute[cls->kind] += span->end - span->start;
    until[cls->device] = span->end;
}

static void follow_device_0(const pipeline *p)
{
    cs_analysis *analysis = &p->run->analysis;
    cs_time until = 0;
    for (uint32_t task = 0; task < p->run->trace.n_tasks; task++) {
        const cs_span *span = &p->run->trace.spans[task];
        const cs_class *cls = cs_graph_class(&p->run->graph, task);
        if (cls->device != 0 || cs_kind_group_of(cls->kind) != CS_GROUP_COMPUTE)
            continue;
        if (span->start > until)
            analysis->steps[analysis->n_steps++] = (cs_path_step){CS_NONE, until, span->start};
        analysis->steps[analysis->n_steps++] = (cs_path_step){task, span->start, span->end};
        until = span->end;
    }
}

static void figures(const pipeline *p)
{
    cs_analysis *analysis = &p->run->analysis;
    double seconds = cs_time_seconds(analysis->makespan), busy = 0;
    for (uint32_t d = 0; d < analysis->n_devices; d++) {
        for (int kind = 0; kind < CS_N_KINDS; kind++)
            busy += cs_time_seconds(analysis->devices[d].compute[kind]);
    }
    analysis->iteration_time = seconds / p->o->mini_batches;
    analysis->throughput = 32 / analysis->iteration_time;
    analysis->bubble_fraction = 1 - busy / (seconds * analysis->n_devices);
}

static bool make_analysis(pipeline *p)
{
    cs_analysis *analysis = &p->run->analysis;
    cs_time *until = calloc(p->o->devices, sizeof(*until));
    analysis->n_devices = p->o->devices;
    analysis->makespan = p->run->trace.makespan;
    analysis->devices = calloc(p->o->devices, sizeof(*analysis->devices));
    analysis->steps = calloc(2 * (size_t)p->run->trace.n_tasks + 1, sizeof(*analysis->steps));
    bool done = until && analysis->devices && analysis->steps;
    if (done) {
        for (uint32_t task = 0; task < p->run->trace.n_tasks; task++)
            use_time(p, until, task);
        for (uint32_t d = 0; d < p->o->devices; d++)
            analysis->devices[d].flush = analysis->makespan - until[d];
        follow_device_0(p);
        figures(p);
    }
    free(until);
    return done;
}

/* ---- the run ---- */

static bool init_pipeline(pipeline *p)
{
    size_t n = p->o->devices;
    p->most_ops = 4 * p->o->micro_batches + 1;
    p->builder =
        cs_builder_create(p->o->devices, p->o->devices, p->o->micro_batches, p->o->mini_batches);
    p->classes = calloc(n * CLASSES, sizeof(*p->classes));
    p->ops = calloc(n * p->most_ops, sizeof(*p->ops));
    p->n_ops = calloc(n, sizeof(*p->n_ops));
    p->inputs = calloc(n * p->o->micro_batches, sizeof(*p->inputs));
    p->gradients = calloc(n * p->o->micro_batches, sizeof(*p->gradients));
    p->idle_from = calloc(n, sizeof(*p->idle_from));
    return p->builder && p->classes && p->ops && p->n_ops && p->inputs && p->gradients &&
           p->idle_from;
}

static void finish_pipeline(pipeline *p)
{
    cs_builder_destroy(p->builder);
    free(p->classes);
    free(p->ops);
    free(p->n_ops);
    free(p->inputs);
    free(p->gradients);
    free(p->idle_from);
    free(p->changes);
}

static bool simulate(pipeline *p)
{
    uint32_t *next = calloc(p->o->devices, sizeof(*next));
    if (!next)
        return false;
    for (uint32_t d = 0; d < p->o->devices; d++) {
        make_classes(p, d);
        make_program(p, d);
    }
    for (p->mini_batch = 0; p->mini_batch < p->o->mini_batches; p->mini_batch++)
        run_mini_batch(p, next);
    free(next);
    return !p->failed;
}

bool synthetic_run_init(synthetic_run *run, const synthetic_options *options)
{
    pipeline p = {.o = options, .run = run};
    *run = (synthetic_run){0};
    cs_arena_init(&run->names);
    bool done = init_pipeline(&p) && simulate(&p) &&
                cs_builder_finish(p.builder, &run->graph, NULL) == CS_OK &&
                cs_graph_check(&run->graph, NULL) == CS_OK && make_memory(&p) && make_links(&p) &&
                make_analysis(&p);
    finish_pipeline(&p);
    return done;
}

/* The analysis is made of plain arrays of ours; so its module need not be there. */
void synthetic_run_finish(synthetic_run *run)
{
    cs_graph_finish(&run->graph);
    cs_trace_finish(&run->trace);
    free(run->analysis.devices);
    free(run->analysis.steps);
    cs_arena_finish(&run->names);
}

static cs_status store_waits(cs_h5_file *file, const synthetic_run *run, cs_error *error)
{
    cs_analysis analysis;
    CS_TRY(cs_analyse(&run->graph, &run->trace, 0, &analysis, error));
    const cs_status status = cs_waits_store(file, &analysis.waits, error);
    cs_analysis_finish(&analysis);
    return status;
}

cs_status synthetic_run_store(cs_h5_file *file, const synthetic_run *run, cs_error *error)
{
    cs_model model = {0};
    const cs_scenario scenario = {.model = &model, .schedule = cs_schedule_find("gpipe")};
    const cs_simulation simulation = {
        .graph = run->graph, .trace = run->trace, .analysis = run->analysis};
    CS_TRY(cs_analysis_store(file, &run->analysis, error));
    CS_TRY(store_waits(file, run, error));
    return cs_figures_store(file, &(cs_outcome){&scenario, &simulation}, error);
}
