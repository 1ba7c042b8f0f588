#include "sim/core/engine/prefetch.h"
#include "sim/core/engine/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- before the run ---- */

static inline bool announce_first(cs_engine *e, cs_event event, uint32_t *slot)
{
    uint8_t line = CS_NO_DELAY_LINE;
    if (event.task < e->graph->n_tasks) {
        cs_prefetch_listed(e, event.task);
        line = e->classes[e->graph->tasks[event.task].cls].end_line;
    }
    return cs_delay_lines_fit(&e->lines, line, event, e->now)
               ? cs_delay_lines_push(&e->lines, line, event, slot)
               : cs_event_queue_push(&e->events, event, slot);
}

static bool announce_flow(void *context, uint32_t flow, uint32_t task, cs_time time, uint32_t *slot)
{
    cs_engine *e = context;
    const uint32_t what = flow == CS_NETWORK_ENDS        ? CS_TASK_ENDS
                          : flow < CS_NETWORK_DUE        ? CS_FLOW + flow
                          : flow == CS_NETWORK_OVERFLOWS ? CS_TASK_OVERFLOWS
                                                         : CS_SETTLE_NETWORK;
    const cs_event event = {time, task, what};
    if (*slot == CS_NONE)
        return announce_first(e, event, slot);
    if (*slot >= CS_DELAY_SLOT) {
        cs_delay_lines_remove(&e->lines, *slot);
        return cs_event_queue_push(&e->events, event, slot);
    }
    e->events.what[*slot] = what;
    cs_event_queue_move(&e->events, *slot, time);
    return true;
}

/* Sorts a class's effects: at the start, then at the end. Devices must start in order if the start
 * of a computation changes another device's memory. */
static void split_effects(cs_engine *e, const cs_class *cls, cs_run_class *run)
{
    uint32_t end = cls->first_effect + cls->n_effects, out = cls->first_effect;
    run->first_effect = cls->first_effect;
    for (uint32_t i = cls->first_effect; i < end; i++) {
        if (e->graph->effects[i].at_end)
            continue;
        e->effects[out++] = e->graph->effects[i];
        e->order_devices |= !run->transfer && e->graph->effects[i].device != cls->device;
    }
    run->n_start = out - cls->first_effect;
    for (uint32_t i = cls->first_effect; i < end; i++) {
        if (e->graph->effects[i].at_end)
            e->effects[out++] = e->graph->effects[i];
    }
    run->n_end = end - cls->first_effect - run->n_start;
}

/* The start or the end of a part of a series. */
typedef struct part_event {
    cs_time after; /* the start of the series */
    uint32_t step; /* within an instant: 0 ends, 1 transfers start, 2 a computation starts */
    uint32_t part;
    uint32_t first_effect, n;
} part_event;

static int compare_events(const void *left, const void *right)
{
    const part_event *a = left, *b = right;
    if (a->after != b->after)
        return a->after < b->after ? -1 : 1;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return a->part < b->part ? -1 : a->part > b->part;
}

/* Fills the start and end of each part of a series: two events. Returns its duration, or -1 if that
 * does not fit. */
static cs_time place_parts(const cs_engine *e, const cs_series_part *parts, uint32_t n,
                           part_event *events)
{
    cs_time computed = 0;
    for (uint32_t i = 0; i < n; i++) {
        const cs_run_class *part = &e->classes[parts[i].cls];
        cs_time start = part->transfer ? 0 : computed, end;
        assert(!part->competes);
        for (uint32_t w = 0; w < parts[i].n_waits; w++) {
            const cs_time before = events[2 * parts[i].waits[w] + 1].after;
            start = before > start ? before : start;
        }
        if (!cs_time_add(start, part->duration, &end))
            return -1;
        computed = part->transfer ? computed : end;
        events[2 * i] = (part_event){start, part->transfer ? 1 : 2, i, part->first_effect,
                                     i > 0 ? part->n_start : 0};
        events[2 * i + 1] = (part_event){end, 0, i, part->first_effect + part->n_start,
                                         i + 1 < n ? part->n_end : 0};
    }
    return computed;
}

static cs_run_host host_of(const cs_class *cls, const cs_run_class *run)
{
    cs_run_host made = {0, cls->host, cls->host, CS_NO_WAIT};
    if (cls->waits_before)
        made.least = made.waited = cls->host;
    if (cls->waits)
        made.waited = run->duration > made.least ? run->duration : made.least;
    return made;
}

/* Long before any time of a run. */
static const cs_time long_ago = INT64_MIN / 2;

/* Runs through the parts of a series that may start at `start`, with the host's clock at *clock,
 * and fills the end of each part. Returns the end of the last one; long_ago if a time does not fit.
 */
static cs_time pass_parts(const cs_engine *e, const cs_series_part *parts, uint32_t n,
                          cs_time start, cs_time *clock, cs_time *ends)
{
    cs_time computed = start;
    for (uint32_t i = 0; i < n; i++) {
        const cs_run_class *part = &e->classes[parts[i].cls];
        cs_time begins = part->transfer ? start : computed;
        for (uint32_t w = 0; w < parts[i].n_waits; w++)
            begins = ends[parts[i].waits[w]] > begins ? ends[parts[i].waits[w]] : begins;
        if (part->transfer ? !cs_time_add(begins, part->duration, &ends[i])
                           : !cs_engine_advance_host(&e->hosts[parts[i].cls], begins,
                                                     part->duration, clock, &ends[i]))
            return long_ago;
        computed = part->transfer ? computed : ends[i];
    }
    return computed;
}

/* The end of a series and the clock after it are maxima of sums of its start and the clock before
 * it. Running through the parts from each of the two alone gives the terms. */
static bool find_host_of_series(const cs_engine *e, const cs_series_part *parts, uint32_t n,
                                cs_run_host *host)
{
    cs_time *ends = malloc(n * sizeof(*ends));
    cs_time from_start = long_ago, from_clock = 0;
    if (!ends)
        return false;
    host->least = pass_parts(e, parts, n, 0, &from_start, ends);
    host->end = pass_parts(e, parts, n, long_ago, &from_clock, ends);
    host->host = from_clock;
    host->waited = from_start < long_ago / 2 ? CS_NO_WAIT : from_start;
    free(ends);
    return true;
}

static bool add_changes(cs_engine *e, uint32_t number, const part_event *events, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        cs_memory_change change = {.after = events[k].after};
        for (uint32_t i = 0; i < events[k].n; i++) {
            const int64_t bytes = e->effects[events[k].first_effect + i].bytes;
            change.bytes += bytes;
            change.allocated += bytes > 0 ? bytes : 0;
        }
        if (events[k].n > 0 && !cs_memory_add_change(&e->memory, number, &change))
            return false;
    }
    return true;
}

static cs_status prepare_series(cs_engine *e, const cs_class *cls, cs_run_class *run,
                                cs_error *error)
{
    const cs_series *series = &e->graph->series[cls->series - 1];
    part_event *events = malloc(2 * (size_t)series->n * sizeof(*events));
    if (!events)
        return cs_error_no_memory(error);
    cs_status status = CS_OK;
    run->duration = place_parts(e, e->graph->parts + series->first, series->n, events);
    if (run->duration < 0)
        status = cs_error_add(error, CS_OVERFLOW, "a pass of stage %u takes 2^63 ps or more",
                              cls->stage);
    qsort(events, 2 * (size_t)series->n, sizeof(*events), compare_events);
    const uint32_t number = (uint32_t)(run - e->classes);
    const cs_series_part *parts = e->graph->parts + series->first;
    if (status == CS_OK &&
        (!add_changes(e, cls->series - 1, events, 2 * series->n) ||
         (e->hosts && !find_host_of_series(e, parts, series->n, &e->hosts[number]))))
        status = cs_error_no_memory(error);
    free(events);
    return status;
}

static cs_status prepare_class(cs_engine *e, const cs_class *cls, const cs_delivery *delivery,
                               cs_run_class *run, cs_error *error)
{
    bool transfer = cls->kind == CS_TRANSFER;
    *run =
        (cs_run_class){.device = cls->device,
                       .slot = cls->weights,
                       .transfer = transfer,
                       .blocking = cls->blocking,
                       .competes = transfer && delivery->competes,
                       .at_start = transfer && delivery->at_start,
                       .update = cls->kind == CS_UPDATE && cls->weights != CS_NONE,
                       .makes = cls->weights != CS_NONE && (cls->updates || cls->kind == CS_UPDATE),
                       .policy = cls->policy != 0,
                       .timed = cls->release > 0 || cls->interval > 0,
                       .series = cls->series > 0};
    split_effects(e, cls, run);
    e->order_devices |= run->policy;
    run->plain = transfer && !run->blocking && !run->series && !run->policy &&
                 !e->options.slowdown && run->slot == CS_NONE && cls->n_effects == 0 &&
                 !(e->hosts && cls->waits);
    run->line = run->end_line = CS_NO_DELAY_LINE;
    if (transfer) {
        e->order_devices |= cls->blocking;
        if (!cs_time_add(delivery->delay, cls->duration, &run->duration))
            return cs_error_add(error, CS_OVERFLOW, "a transfer takes 2^63 ps or more");
        if (!e->options.every_event) {
            run->line =
                run->at_start ? CS_NO_DELAY_LINE : cs_delay_lines_find(&e->lines, run->duration);
            run->end_line = cs_delay_lines_find(&e->lines, delivery->alone);
        }
        return CS_OK;
    }
    if (cls->series > 0)
        return prepare_series(e, cls, run, error);
    if (!cs_time_at_speed(cls->duration, e->platform->devices[cls->device].speed, &run->duration))
        return cs_error_add(error, CS_OVERFLOW, "a %s of stage %u takes 2^63 ps or more",
                            cs_kind_name(cls->kind), cls->stage);
    if (e->hosts)
        e->hosts[run - e->classes] = host_of(cls, run);
    return CS_OK;
}

/* Messages that meet no others would change nothing, and are left out. */
static cs_status prepare_sources(cs_engine *e, const cs_delivery *deliveries, cs_error *error)
{
    const uint32_t n = e->options.traffic.n_sources;
    if (n == 0)
        return CS_OK;
    e->others.latencies = malloc(n * sizeof(*e->others.latencies));
    e->others.n_messages = calloc(n, sizeof(*e->others.n_messages));
    if (!e->others.latencies || !e->others.n_messages)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++)
        e->others.latencies[i] = deliveries[i].competes ? deliveries[i].delay : -1;
    return cs_sources_create(&e->options.traffic, &e->others.sources, error);
}

static cs_status prepare_classes(cs_engine *e, cs_error *error)
{
    const cs_graph *graph = e->graph;
    const cs_traffic *traffic = &e->options.traffic;
    const cs_network_load load = {.graph = graph,
                                  .pairs = traffic->pairs,
                                  .n_pairs = traffic->n_sources,
                                  .pair_bytes = traffic->bytes,
                                  .record_rates = e->options.record_rates,
                                  .every_event = e->options.every_event};
    cs_delivery *deliveries =
        calloc((size_t)graph->n_classes + traffic->n_sources + 1, sizeof(*deliveries));
    if (!deliveries)
        return cs_error_no_memory(error);
    cs_status status =
        cs_network_create(&load, e->platform, announce_flow, e, deliveries, &e->network, error);
    for (int series = 0; series < 2; series++) /* these when their parts are there */
        for (uint32_t i = 0; i < graph->n_classes && status == CS_OK; i++)
            if ((graph->classes[i].series > 0) == series)
                status =
                    prepare_class(e, &graph->classes[i], &deliveries[i], &e->classes[i], error);
    if (status == CS_OK)
        status = prepare_sources(e, deliveries + graph->n_classes, error);
    free(deliveries);
    return status;
}

static bool have_hosts(const cs_graph *graph)
{
    for (uint32_t i = 0; i < graph->n_classes; i++)
        if (graph->classes[i].host > 0)
            return true;
    return false;
}

static bool reserve(cs_engine *e)
{
    const cs_graph *graph = e->graph;
    const bool hosts = have_hosts(graph);
    e->classes = calloc((size_t)graph->n_classes + 1, sizeof(*e->classes));
    e->hosts = hosts ? calloc(graph->n_classes, sizeof(*e->hosts)) : NULL;
    e->effects = calloc((size_t)graph->n_effects + 1, sizeof(*e->effects));
    e->devices = calloc((size_t)graph->n_devices + 1, sizeof(*e->devices));
    return e->classes && (e->hosts || !hosts) && e->effects && e->devices;
}

static bool reserve_tasks(cs_engine *e)
{
    const size_t n = e->graph->n_tasks, room = n + 1;
    const bool versions = e->options.record_versions || e->graph->n_policies > 0;
    e->spans = malloc(room * sizeof(*e->spans));
    e->versions = versions ? malloc(room * sizeof(*e->versions)) : NULL;
    if (!e->spans || (versions && !e->versions))
        return false;
    for (size_t task = 0; task < n; task++)
        e->spans[task] = cs_engine_waits(e->graph->n_predecessors[task]);
    if (versions)
        memset(e->versions, 0xff, n * sizeof(*e->versions));
    return true;
}

cs_status cs_engine_prepare(cs_engine *e, cs_error *error)
{
    const cs_graph *graph = e->graph;
    cs_event_queue_init(&e->events);
    cs_delay_lines_init(&e->lines);
    if (!reserve(e))
        return cs_error_no_memory(error);
    cs_status status =
        cs_memory_init(&e->memory, graph, e->platform, e->options.record_memory, error);
    if (status == CS_OK)
        status = cs_versions_create(graph, &e->memory, &e->weights, error);
    if (status == CS_OK)
        status = prepare_classes(e, error);
    for (uint32_t device = 0; device < graph->n_devices && status == CS_OK; device++)
        e->devices[device].head = graph->first_task[device];
    return status;
}

cs_status cs_engine_prepare_events(cs_engine *e, cs_error *error)
{
    const cs_graph *graph = e->graph;
    if (!reserve_tasks(e))
        return cs_error_no_memory(error);
    if (e->options.slowdown)
        CS_TRY(cs_slowdown_create(graph, e->options.slowdown, &e->events, &e->slowdown, error));
    e->current = cs_versions_current(e->weights);
    for (uint32_t device = 0; device < graph->n_devices; device++)
        if (!cs_engine_wake(e, device))
            return cs_error_no_memory(error);
    e->order_devices |= e->options.stop_on_oom;
    return CS_OK;
}

void cs_engine_release(cs_engine *e)
{
    for (uint32_t i = 0; e->devices && i < e->graph->n_devices; i++) {
        cs_ready_finish(&e->devices[i].compute);
        cs_ready_finish(&e->devices[i].blocking);
    }
    free(e->classes);
    free(e->hosts);
    free(e->effects);
    free(e->spans);
    free(e->versions);
    cs_versions_destroy(e->weights);
    free(e->devices);
    cs_id_list_finish(&e->started);
    cs_id_list_finish(&e->passing);
    cs_id_list_finish(&e->wake_list);
    cs_event_queue_finish(&e->events);
    cs_delay_lines_finish(&e->lines);
    cs_network_destroy(e->network);
    cs_slowdown_destroy(e->slowdown);
    cs_sources_destroy(e->others.sources);
    free(e->others.latencies);
    free(e->others.n_messages);
    free(e->times);
    free(e->late);
    cs_memory_finish(&e->memory);
}

/* ---- after it ---- */

/* Tasks that still run when the run stops end there; others never start. */
static void cut_off(cs_engine *e)
{
    for (uint32_t task = 0; task < e->graph->n_tasks; task++) {
        if (e->spans[task].start >= 0 && e->spans[task].end < 0)
            e->spans[task].end = e->now;
        else if (e->spans[task].start < 0)
            e->spans[task] = cs_engine_waits(0);
    }
}

/* Devices that are not simulated had the same memory. */
static void unfold_records(const cs_engine *e)
{
    const cs_graph *graph = e->graph;
    for (uint32_t d = 0; d < graph->n_devices; d++)
        e->memory.records[d] = e->memory.records[cs_graph_stand_in(graph, d)];
}

/* Counts the tasks of each class that have ended. */
static bool count_tasks(cs_engine *e)
{
    const cs_graph *graph = e->graph;
    e->times = calloc((size_t)graph->n_classes + 1, sizeof(*e->times));
    for (uint32_t task = 0; e->times && task < graph->n_tasks; task++)
        e->times[graph->tasks[task].cls] += e->spans[task].end >= 0;
    return e->times != NULL;
}

static cs_status count_links(cs_engine *e, cs_link_record *links, cs_error *error)
{
    uint32_t n_classes = e->graph->n_classes, n_sources = e->options.traffic.n_sources;
    bool fits = true;
    for (uint32_t i = 0; i < n_classes && fits; i++)
        fits = !e->classes[i].transfer || cs_network_count(e->network, i, e->times[i], links);
    for (uint32_t i = 0; i < n_sources && fits; i++)
        fits = cs_network_count(e->network, n_classes + i, e->others.n_messages[i], links);
    return fits ? CS_OK : cs_error_add(error, CS_OVERFLOW, "a link carries 2^63 bytes or more");
}

static cs_status collect_links(cs_engine *e, cs_trace *trace, cs_error *error)
{
    if (e->options.no_links)
        return CS_OK;
    if (!e->times && !count_tasks(e))
        return cs_error_no_memory(error);
    trace->n_links = e->platform->n_links;
    trace->links = calloc((size_t)trace->n_links + 1, sizeof(*trace->links));
    if (!trace->links)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < trace->n_links; i++) {
        trace->links[i].name = e->platform->links[i].name;
        trace->links[i].bandwidth = e->platform->links[i].bandwidth;
    }
    return count_links(e, trace->links, error);
}

cs_status cs_engine_hand_over(cs_engine *e, cs_trace *trace, cs_error *error)
{
    bool stopped = cs_engine_must_stop(e) && e->n_ended < e->graph->n_tasks;
    cs_trace made = {.n_tasks = e->graph->n_tasks,
                     .n_devices = e->graph->n_devices,
                     .n_slots = e->graph->n_slots,
                     .makespan = stopped ? e->now : e->last_end,
                     .doubtful = cs_memory_is_doubtful(&e->memory),
                     .stopped = stopped};
    cs_status status = collect_links(e, &made, error);
    if (status == CS_OK && !cs_memory_end_instant(&e->memory))
        status = cs_error_no_memory(error);
    if (status != CS_OK) {
        cs_trace_finish(&made);
        return status;
    }
    if (made.stopped)
        cut_off(e);
    if (e->graph->stands_for)
        unfold_records(e);
    made.spans = e->spans;
    made.rates = cs_network_take_rates(e->network, made.makespan, &made.n_rates);
    made.slots = cs_versions_take_records(e->weights);
    if (e->options.record_versions) {
        made.versions = e->versions;
        e->versions = NULL;
    }
    made.devices = e->memory.records;
    made.samples = e->memory.samples;
    e->spans = NULL;
    e->memory.records = NULL;
    e->memory.samples = NULL;
    *trace = made;
    return CS_OK;
}
