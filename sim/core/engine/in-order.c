#include "sim/core/engine/in-order.h"

#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

/* Steps of an instant go by rounds, and within one: 0 ends, odd numbers transfers start, even ones
 * those that take no time end, LAST_STEP computations start. */
enum { STEP_BITS = 16, ROUND = 1 << STEP_BITS, LAST_STEP = ROUND - 1, MOST_STEPS = INT32_MAX };

/* Memory and version changes by the start or the end of a task, on one device. */
typedef struct action {
    uint32_t device;
    uint32_t first_effect, n; /* in cs_engine.effects */
    uint32_t slot;            /* that gets a new version; or CS_NONE */
    uint32_t begins, ends;    /* 1 + a series; or 0 */
} action;

/* A class as the pass needs it. */
typedef struct flat_class {
    cs_time duration;
    uint32_t device;
    uint32_t first_action;   /* those at the start, then those at the end */
    uint16_t n_start, n_end; /* actions */
    bool transfer, timed;
} flat_class;

/* An action that is due. */
typedef struct event {
    cs_time time;
    uint64_t order; /* the step, then the task or, of starting computations, the device */
    uint32_t action, task;
} event;

/* The actions on a device that have not been applied yet, and the device's clocks. */
typedef struct lane {
    event *events; /* from `first` on, in order */
    uint32_t first, end, capacity;
    cs_time host;        /* clock of its host */
    cs_time clock;       /* end of the latest computation of its program */
    uint32_t clock_step; /* step of that instant */
    cs_time applied;     /* time and order of the last event that was applied */
    uint64_t applied_order;
    uint32_t first_feeder, n_feeders; /* devices whose tasks change its memory, besides itself */
} lane;

struct cs_in_order {
    cs_engine *e;
    flat_class *classes;
    action *actions;
    uint32_t n_actions, cap_actions;
    lane *lanes;
    uint32_t *feeders, n_feeders;
    uint64_t *times; /* tasks of each class that were placed */
    cs_time *late;   /* with hosts: by how much they were late for those */
    bool has_steps;
};

/* ---- whether it applies ---- */

static bool slots_are_local(const cs_graph *graph)
{
    bool local = true;
    for (uint32_t i = 0; i < graph->n_slots; i++)
        local &= graph->slots[i].behind == i;
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        const cs_class *cls = &graph->classes[i];
        local &= cls->weights == CS_NONE || graph->slots[cls->weights].device == cls->device;
    }
    return local;
}

static const char *refuse_options(const cs_engine_options *options)
{
    if (options->every_event)
        return "every event is to be simulated";
    if (options->record_memory || options->record_versions || options->record_rates)
        return "its history is recorded";
    if (options->slowdown)
        return "communication slows computations down";
    if (options->traffic.n_sources > 0)
        return "there is traffic of others";
    if (options->stop_on_oom)
        return "it is to stop when memory is exceeded";
    return NULL;
}

static const char *refuse_graph(const cs_engine *e)
{
    const cs_graph *graph = e->graph;
    for (uint32_t d = 0; d < graph->n_devices; d++)
        if (graph->queues[d] != CS_QUEUE_PROGRAM)
            return "devices choose their next task by priority";
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        if (e->classes[i].competes)
            return "messages compete for links (not with the sharing \"none\" or \"phi\")";
        if (e->classes[i].blocking)
            return "messages occupy the devices at both ends";
        if (e->hosts && e->classes[i].transfer && graph->classes[i].waits)
            return "hosts wait for messages";
    }
    if (graph->n_policies > 0 || !slots_are_local(graph))
        return "several versions of the weights are in use";
    return NULL;
}

const char *cs_in_order_refuses(const cs_engine *e)
{
    const char *why = refuse_options(&e->options);
    return why ? why : refuse_graph(e);
}

/* ---- preparing ---- */

/* Sorts effects by device; effects of a device stay in order. */
static void group_effects(cs_effect *effects, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const cs_effect moved = effects[i];
        uint32_t to = i;
        for (; to > 0 && effects[to - 1].device > moved.device; to--)
            effects[to] = effects[to - 1];
        effects[to] = moved;
    }
}

static bool add_action(cs_in_order *run, const action *added)
{
    if (!cs_vector_reserve((void **)&run->actions, &run->cap_actions, run->n_actions + UINT64_C(1),
                           sizeof(*run->actions)))
        return false;
    run->actions[run->n_actions++] = *added;
    return true;
}

/* Adds the actions of the start or the end of a task, one per device. The device of the class gets
 * one if it has effects, or if `own` has more than effects. */
static bool add_actions(cs_in_order *run, uint32_t first, uint32_t n, const action *own)
{
    cs_effect *effects = run->e->effects;
    bool more = own->slot != CS_NONE || own->begins > 0 || own->ends > 0, done = true;
    group_effects(effects + first, n);
    for (uint32_t i = 0, next; i < n && done; i = next) {
        action one = {effects[first + i].device, first + i, 0, CS_NONE, 0, 0};
        for (next = i; next < n && effects[first + next].device == one.device; next++)
            one.n++;
        if (one.device == own->device) {
            one.slot = own->slot;
            one.begins = own->begins;
            one.ends = own->ends;
            more = false;
        }
        done = add_action(run, &one);
    }
    return done && (!more || add_action(run, own));
}

static bool flatten(cs_in_order *run, uint32_t number)
{
    const cs_run_class *of = &run->e->classes[number];
    const cs_class *cls = &run->e->graph->classes[number];
    flat_class *flat = &run->classes[number];
    const action start = {.device = of->device, .slot = CS_NONE, .begins = cls->series};
    const action end = {
        .device = of->device, .slot = of->makes ? of->slot : CS_NONE, .ends = cls->series};
    *flat = (flat_class){.duration = of->duration,
                         .device = of->device,
                         .first_action = run->n_actions,
                         .transfer = of->transfer,
                         .timed = of->timed};
    if (!add_actions(run, of->first_effect, of->n_start, &start))
        return false;
    flat->n_start = (uint16_t)(run->n_actions - flat->first_action);
    if (!add_actions(run, of->first_effect + of->n_start, of->n_end, &end))
        return false;
    flat->n_end = (uint16_t)(run->n_actions - flat->first_action - flat->n_start);
    return true;
}

/* A device whose tasks change another one's memory. */
typedef struct feeding {
    uint32_t device, by;
} feeding;

static int compare_feedings(const void *left, const void *right)
{
    const feeding *a = left, *b = right;
    CS_COMPARE(a->device, b->device);
    CS_COMPARE(a->by, b->by);
    return 0;
}

static bool find_feeders(cs_in_order *run)
{
    const uint32_t n_classes = run->e->graph->n_classes;
    feeding *all = malloc(((size_t)run->n_actions + 1) * sizeof(*all));
    uint32_t n = 0;
    run->feeders = malloc(((size_t)run->n_actions + 1) * sizeof(*run->feeders));
    for (uint32_t i = 0; all && i < n_classes; i++) {
        const flat_class *of = &run->classes[i];
        for (uint32_t k = of->first_action; k < of->first_action + of->n_start + of->n_end; k++)
            if (run->actions[k].device != of->device)
                all[n++] = (feeding){run->actions[k].device, of->device};
    }
    if (all && run->feeders)
        cs_vector_sort(all, n, sizeof(*all), compare_feedings);
    for (uint32_t i = 0; all && run->feeders && i < n; i++) {
        lane *to = &run->lanes[all[i].device];
        if (i > 0 && compare_feedings(&all[i - 1], &all[i]) == 0)
            continue;
        to->first_feeder = to->n_feeders == 0 ? run->n_feeders : to->first_feeder;
        to->n_feeders++;
        run->feeders[run->n_feeders++] = all[i].by;
    }
    free(all);
    return all && run->feeders;
}

static bool prepare(cs_in_order *run)
{
    const cs_graph *graph = run->e->graph;
    const size_t n_classes = (size_t)graph->n_classes + 1;
    run->classes = calloc(n_classes, sizeof(*run->classes));
    run->times = calloc(n_classes, sizeof(*run->times));
    run->late = run->e->hosts ? calloc(n_classes, sizeof(*run->late)) : NULL;
    run->lanes = calloc((size_t)graph->n_devices + 1, sizeof(*run->lanes));
    bool done = run->classes && run->times && run->lanes && (run->late || !run->e->hosts);
    for (uint32_t d = 0; done && d < graph->n_devices; d++)
        run->lanes[d].applied = -1;
    run->has_steps = run->e->options.task_factors != NULL;
    for (uint32_t i = 0; done && i < graph->n_classes; i++) {
        done = flatten(run, i);
        run->has_steps |= run->classes[i].duration == 0;
    }
    return done && find_feeders(run);
}

cs_in_order *cs_in_order_create(cs_engine *e)
{
    cs_in_order *run = calloc(1, sizeof(*run));
    if (run)
        run->e = e;
    if (run && !prepare(run)) {
        cs_in_order_destroy(run);
        return NULL;
    }
    return run;
}

bool cs_in_order_has_steps(const cs_in_order *run)
{
    return run->has_steps;
}

void cs_in_order_destroy(cs_in_order *run)
{
    if (!run)
        return;
    for (uint32_t d = 0; run->lanes && d < run->e->graph->n_devices; d++)
        free(run->lanes[d].events);
    free(run->classes);
    free(run->actions);
    free(run->lanes);
    free(run->feeders);
    free(run->times);
    free(run->late);
    free(run);
}

/* ---- lanes ---- */

static inline bool is_before(cs_time time, uint64_t order, cs_time other, uint64_t other_order)
{
    return time < other || (time == other && order < other_order);
}

static cs_status apply(cs_in_order *run, const event *due)
{
    cs_engine *e = run->e;
    const action *of = &run->actions[due->action];
    uint32_t version;
    if (of->ends)
        cs_memory_end_series(&e->memory, of->device);
    if (of->n > 0)
        CS_TRY(cs_memory_apply(&e->memory, e->effects + of->first_effect, of->n, due->task,
                               due->time));
    if (of->slot != CS_NONE)
        CS_TRY(cs_versions_update(e->weights, of->slot, due->task, due->time, &version));
    if (of->begins)
        cs_memory_begin_series(&e->memory, of->begins - 1, of->device, due->time);
    return CS_OK;
}

/* Applies all events up to a time. */
static cs_status drain(cs_in_order *run, lane *at, cs_time until)
{
    uint32_t i = at->first;
    cs_status status = CS_OK;
    for (; i < at->end && at->events[i].time <= until && status == CS_OK; i++)
        status = apply(run, &at->events[i]);
    if (i > at->first) {
        at->applied = at->events[i - 1].time;
        at->applied_order = at->events[i - 1].order;
    }
    at->first = i;
    return status;
}

/* No event is expected before this time: the tasks of a device come in order. */
static cs_time horizon(const cs_in_order *run, const lane *at)
{
    cs_time until = at->clock;
    for (uint32_t i = 0; i < at->n_feeders; i++) {
        const cs_time clock = run->lanes[run->feeders[at->first_feeder + i]].clock;
        until = clock < until ? clock : until;
    }
    return until;
}

/* Applies what can be; a lane that stays half full grows. */
static cs_status make_room(cs_in_order *run, lane *at)
{
    enum { FEW = 4 };
    CS_TRY(drain(run, at, horizon(run, at) - 1));
    const uint32_t n = at->end - at->first;
    if (n > 0)
        memmove(at->events, at->events + at->first, n * sizeof(*at->events));
    at->first = 0;
    at->end = n;
    if (2 * n < at->capacity)
        return CS_OK;
    return cs_vector_reserve((void **)&at->events, &at->capacity,
                             at->capacity > 0 ? 2 * (uint64_t)at->capacity : FEW,
                             sizeof(*at->events))
               ? CS_OK
               : CS_NO_MEMORY;
}

static inline cs_status add_event(cs_in_order *run, uint32_t number, uint32_t task, cs_time time,
                                  uint64_t order)
{
    lane *at = &run->lanes[run->actions[number].device];
    if (at->end == at->capacity)
        CS_TRY(make_room(run, at));
    if (!is_before(at->applied, at->applied_order, time, order))
        return CS_FAILED;
    uint32_t to = at->end++;
    for (; to > at->first &&
           is_before(time, order, at->events[to - 1].time, at->events[to - 1].order);
         to--)
        at->events[to] = at->events[to - 1];
    at->events[to] = (event){time, order, number, task};
    return CS_OK;
}

static inline cs_status add_events(cs_in_order *run, uint32_t first, uint32_t n, uint32_t task,
                                   cs_moment at, uint32_t id)
{
    const uint64_t order = (uint64_t)at.step << 32 | id;
    for (uint32_t i = first; i < first + n; i++)
        CS_TRY(add_event(run, i, task, at.time, order));
    return CS_OK;
}

/* ---- tasks ---- */

static inline bool is_later(cs_moment a, cs_moment b)
{
    return a.time > b.time || (a.time == b.time && a.step > b.step);
}

/* Where a task starts that is ready at `at`. A transfer follows the ends that made it ready, a
 * computation the transfers of its round. */
static inline cs_moment start_of(const flat_class *of, cs_moment at)
{
    at.step = of->transfer ? at.step + 1 : at.step | LAST_STEP;
    return at;
}

static inline bool end_of(const flat_class *of, cs_time duration, cs_moment start, cs_moment *end)
{
    end->step = duration > 0 ? 0 : start.step + 1;
    return cs_time_add(start.time, duration, &end->time) && end->step <= MOST_STEPS &&
           (duration > 0 || !of->transfer || (end->step & LAST_STEP) < LAST_STEP - 1);
}

/* Makes the duration of a computation longer if its host is late. */
static bool wait_for_host(cs_in_order *run, uint32_t cls, cs_time start, cs_time *duration)
{
    lane *own = &run->lanes[run->classes[cls].device];
    cs_time end;
    if (!cs_engine_advance_host(&run->e->hosts[cls], start, *duration, &own->host, &end))
        return false;
    run->e->memory.records[run->classes[cls].device].waited += end - start - *duration;
    run->late[cls] += end - start - *duration;
    *duration = end - start;
    return true;
}

cs_status cs_in_order_place(cs_in_order *run, uint32_t task, cs_task what, cs_moment *point,
                            cs_span *span)
{
    const flat_class *of = &run->classes[what.cls];
    lane *own = &run->lanes[of->device];
    cs_moment at = *point, end;
    cs_time duration = of->duration;
    if (of->timed) {
        const cs_class *cls = &run->e->graph->classes[what.cls];
        const cs_moment released = {cls->release + cls->interval * what.item, 0};
        at = is_later(released, at) ? released : at;
    }
    if (!of->transfer) {
        const cs_moment idle = {own->clock, own->clock_step};
        at = is_later(idle, at) ? idle : at;
        if (run->e->options.task_factors &&
            !cs_time_scale(duration, run->e->options.task_factors[task], &duration))
            return CS_OVERFLOW;
    }
    at = start_of(of, at);
    if (run->e->hosts && !of->transfer && !wait_for_host(run, what.cls, at.time, &duration))
        return CS_OVERFLOW;
    if (!end_of(of, duration, at, &end))
        return CS_OVERFLOW;
    run->times[what.cls]++;
    *span = (cs_span){at.time, end.time};
    *point = end;
    CS_TRY(
        add_events(run, of->first_action, of->n_start, task, at, of->transfer ? task : of->device));
    CS_TRY(add_events(run, of->first_action + of->n_start, of->n_end, task, end, task));
    if (!of->transfer) { /* from here on nothing earlier comes */
        own->clock = end.time;
        own->clock_step = end.step;
    }
    return CS_OK;
}

cs_status cs_in_order_close(cs_in_order *run)
{
    cs_engine *e = run->e;
    for (uint32_t d = 0; d < e->graph->n_devices; d++)
        CS_TRY(drain(run, &run->lanes[d], CS_TIME_MAX));
    e->times = run->times;
    run->times = NULL;
    e->late = run->late;
    run->late = NULL;
    return CS_OK;
}

/* ---- a graph ---- */

/* Tells the successors of a task when it ended. False if an edge leads to a lower id. */
static inline bool tell_successors(const cs_graph *graph, uint32_t task, cs_moment end,
                                   cs_span *spans, uint32_t *steps)
{
    uint32_t n;
    const uint32_t *successors = cs_graph_successors(graph, task, &n);
    for (uint32_t s = 0; s < n; s++) {
        const uint32_t after = successors[s];
        if (after <= task)
            return false;
        if (end.time > spans[after].start) {
            spans[after].start = end.time;
            if (steps)
                steps[after] = end.step;
        } else if (steps && end.time == spans[after].start && end.step > steps[after]) {
            steps[after] = end.step;
        }
    }
    return true;
}

/* Its devices' next tasks are checked, so that a program whose ids do not rise is found. */
static cs_status place_tasks(cs_in_order *run, cs_span *spans, uint32_t *steps)
{
    enum { PROGRESS_TASKS = 1 << 18 };
    cs_engine *e = run->e;
    const cs_graph *graph = e->graph;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_task what = graph->tasks[task];
        const flat_class *of = &run->classes[what.cls];
        if (!of->transfer) {
            uint32_t *head = &e->devices[of->device].head;
            if (*head != task)
                return CS_FAILED;
            *head = what.next;
        }
        cs_moment point = {spans[task].start, steps ? steps[task] : 0};
        CS_TRY(cs_in_order_place(run, task, what, &point, &spans[task]));
        e->last_end = point.time > e->last_end ? point.time : e->last_end;
        if (!tell_successors(graph, task, point, spans, steps))
            return CS_FAILED;
        e->n_ended++;
        if (e->n_ended % PROGRESS_TASKS == 0 &&
            !cs_progress_step(e->options.progress, "simulating", e->n_ended, graph->n_tasks))
            return CS_INTERRUPTED;
    }
    return cs_in_order_close(run);
}

cs_status cs_in_order_run(cs_engine *e, bool *done)
{
    const size_t n = (size_t)e->graph->n_tasks + 1;
    cs_in_order *run = cs_in_order_create(e);
    const bool needed = run && run->has_steps;
    uint32_t *steps = needed ? calloc(n, sizeof(*steps)) : NULL;
    e->spans = calloc(n, sizeof(*e->spans));
    cs_status status = CS_NO_MEMORY;
    if (run && e->spans && (steps || !needed))
        status = place_tasks(run, e->spans, steps);
    free(steps);
    cs_in_order_destroy(run);
    *done = status == CS_OK;
    return status == CS_NO_MEMORY || status == CS_INTERRUPTED ? status : CS_OK;
}
