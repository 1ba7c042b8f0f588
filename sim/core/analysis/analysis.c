#include "sim/core/analysis/analysis.h"

#include "sim/base/vector.h"
#include "sim/core/analysis/overlap.h"

#include <stdlib.h>
#include <string.h>

/* Lookups: what each task waited for, each device's tasks in order of time, the end of each
 * mini-batch. */
typedef struct study {
    const cs_graph *graph;
    const cs_trace *trace;
    uint32_t *latest;         /* per task: the predecessor by edge that ended last (lowest id if
                               * equal), or CS_NONE */
    uint32_t *rank;           /* orders tasks of no duration at the same instant; NULL: no device
                               * has two of them */
    uint32_t *first_occupant; /* per device: index of its first entry in `occupants`; n_devices +
                               * 1 */
    uint32_t *occupants;      /* per device, by time: computations and blocking transfers */
    cs_time *batch_end;       /* per mini-batch: when it and all earlier ones have been computed */
    bool *flushed; /* per mini-batch: all its work ended before work of later ones started */
    uint32_t last; /* task that ended last (lowest id if equal), or CS_NONE */
} study;

/* ---- building the lookups ---- */

static bool occupies(const cs_class *cls)
{
    return cs_kind_group_of(cls->kind) == CS_GROUP_COMPUTE || cls->blocking;
}

static bool find_latest(study *s)
{
    const cs_graph *graph = s->graph;
    const cs_span *spans = s->trace->spans;
    s->latest = malloc(((size_t)graph->n_tasks + 1) * sizeof(*s->latest));
    if (!s->latest)
        return false;
    memset(s->latest, 0xff, graph->n_tasks * sizeof(*s->latest)); /* CS_NONE */
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        uint32_t n;
        const uint32_t *successors = cs_graph_successors(graph, task, &n);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t *latest = &s->latest[successors[i]];
            if (*latest == CS_NONE || spans[task].end > spans[*latest].end)
                *latest = task;
        }
    }
    return true;
}

static uint32_t rank_of(const study *s, uint32_t task)
{
    return s->rank ? s->rank[task] : 0;
}

/* Ranks tasks by id if ids rise along all edges, so that similar parts of a run are ranked
 * alike. */
static bool rank_tasks(study *s)
{
    size_t n = (size_t)s->graph->n_tasks + 1;
    s->rank = malloc(3 * n * sizeof(*s->rank)); /* followed by scratch space */
    if (!s->rank)
        return false;
    if (cs_graph_ids_rise(s->graph)) {
        for (uint32_t task = 0; task < s->graph->n_tasks; task++)
            s->rank[task] = task;
        return true;
    }
    cs_graph_order(s->graph, s->rank, s->rank + n, s->rank + 2 * n);
    return true;
}

typedef struct occupant {
    cs_span span;
    uint32_t task, rank;
} occupant;

static int compare_times(cs_time a, cs_time b)
{
    return a < b ? -1 : a > b;
}

static int compare_occupants(const void *left, const void *right)
{
    const occupant *a = left, *b = right;
    if (a->span.start != b->span.start)
        return compare_times(a->span.start, b->span.start);
    if (a->span.end != b->span.end)
        return compare_times(a->span.end, b->span.end);
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Lists the devices that a task occupied; returns their number. */
static uint32_t occupied(const study *s, uint32_t task, uint32_t devices[2])
{
    const cs_class *cls = cs_graph_class(s->graph, task);
    if (!occupies(cls) || s->trace->spans[task].start < 0)
        return 0;
    devices[0] = cls->device;
    devices[1] = cls->peer;
    return cls->blocking && cls->peer != cls->device ? 2 : 1;
}

/* Lists the occupants device by device, in order of id; first[d + 1] becomes the end of device
 * d. */
static bool gather_occupants(study *s, uint32_t *first)
{
    uint32_t devices[2], n_devices = s->graph->n_devices;
    for (uint32_t task = 0; task < s->graph->n_tasks; task++)
        for (uint32_t i = occupied(s, task, devices); i-- > 0;)
            first[devices[i] + 2]++;
    for (uint32_t d = 0; d < n_devices; d++)
        first[d + 2] += first[d + 1];
    s->occupants = malloc(((size_t)first[n_devices + 1] + 1) * sizeof(*s->occupants));
    for (uint32_t task = 0; s->occupants && task < s->graph->n_tasks; task++)
        for (uint32_t i = occupied(s, task, devices); i-- > 0;)
            s->occupants[first[devices[i] + 1]++] = task;
    return s->occupants;
}

/* Skips sorting if tasks are already in order, as on devices that run a program. */
static void sort_occupants(occupant *of, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        if (compare_occupants(&of[i - 1], &of[i]) > 0) {
            qsort(of, n, sizeof(*of), compare_occupants);
            return;
        }
    }
}

/* Orders a device's tasks, by rank if their spans are equal. Returns false if memory runs out. */
static bool order_occupants(study *s, occupant *of, uint32_t n)
{
    bool tie = false;
    sort_occupants(of, n);
    for (uint32_t i = 1; i < n && !tie; i++)
        tie = compare_occupants(&of[i - 1], &of[i]) == 0;
    if (!tie)
        return true;
    if (!s->rank && !rank_tasks(s))
        return false;
    for (uint32_t i = 0; i < n; i++)
        of[i].rank = s->rank[of[i].task];
    sort_occupants(of, n);
    return true;
}

/* Orders the tasks of each device, one device at a time. */
static bool list_occupants(study *s)
{
    const uint32_t n_devices = s->graph->n_devices;
    uint32_t *first = s->first_occupant = calloc((size_t)n_devices + 2, sizeof(*first));
    uint32_t most = 0;
    if (!first || !gather_occupants(s, first))
        return false;
    for (uint32_t d = 0; d < n_devices; d++)
        most = first[d + 1] - first[d] > most ? first[d + 1] - first[d] : most;
    occupant *of = malloc(((size_t)most + 1) * sizeof(*of));
    bool done = of;
    for (uint32_t d = 0; d < n_devices && done; d++) {
        uint32_t *tasks = s->occupants + first[d];
        const uint32_t n = first[d + 1] - first[d];
        for (uint32_t i = 0; i < n; i++)
            of[i] = (occupant){s->trace->spans[tasks[i]], tasks[i], 0};
        done = order_occupants(s, of, n);
        for (uint32_t i = 0; i < n; i++)
            tasks[i] = of[i].task;
    }
    free(of);
    return done;
}

/* Span of each mini-batch's work. Updates do not count as work: they follow the flush. */
typedef struct batch_work {
    cs_time *start, *end;
} batch_work;

/* A mini-batch is flushed if no work of a later one started before all work up to it had ended. */
static void find_flushes(study *s, batch_work *work)
{
    uint32_t n = s->graph->n_batches;
    for (uint32_t b = 1; b < n; b++) {
        if (s->batch_end[b] < s->batch_end[b - 1])
            s->batch_end[b] = s->batch_end[b - 1];
        if (work->end[b] < work->end[b - 1])
            work->end[b] = work->end[b - 1];
    }
    for (uint32_t b = n; b-- > 0;) {
        s->flushed[b] = work->end[b] <= work->start[b + 1];
        if (work->start[b + 1] < work->start[b])
            work->start[b] = work->start[b + 1];
    }
}

static bool find_batches(study *s)
{
    size_t n = (size_t)s->graph->n_batches + 1;
    s->batch_end = calloc(n, sizeof(*s->batch_end));
    s->flushed = calloc(n, sizeof(*s->flushed));
    batch_work work = {malloc(n * sizeof(*work.start)), calloc(n, sizeof(*work.end))};
    bool complete = s->batch_end && s->flushed && work.start && work.end;
    for (size_t b = 0; complete && b < n; b++)
        work.start[b] = CS_TIME_MAX;
    for (uint32_t task = 0; complete && task < s->graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(s->graph, task);
        cs_span span = s->trace->spans[task];
        uint32_t batch = cs_graph_mini_batch(s->graph, task);
        if (cs_kind_group_of(cls->kind) == CS_GROUP_COMPUTE && span.start >= 0) {
            if (span.end > s->batch_end[batch])
                s->batch_end[batch] = span.end;
            if (cls->kind != CS_UPDATE) {
                if (span.end > work.end[batch])
                    work.end[batch] = span.end;
                if (span.start < work.start[batch])
                    work.start[batch] = span.start;
            }
        }
    }
    if (complete)
        find_flushes(s, &work);
    free(work.start);
    free(work.end);
    return complete;
}

static bool study_init(study *s, const cs_graph *graph, const cs_trace *trace)
{
    *s = (study){.graph = graph, .trace = trace};
    uint32_t last = CS_NONE;
    for (uint32_t task = 0; task < s->graph->n_tasks; task++) {
        cs_span span = s->trace->spans[task];
        if (span.start >= 0 && (last == CS_NONE || span.end > s->trace->spans[last].end))
            last = task;
    }
    s->last = last;
    return find_latest(s) && list_occupants(s) && find_batches(s);
}

/* ---- use of time ---- */

static bool is_transfer(const study *s, uint32_t task)
{
    return cs_graph_class(s->graph, task)->kind == CS_TRANSFER;
}

/* Use of one device's time: sums and intervals. */
typedef struct account {
    cs_time_use *use;
    cs_wait *waits;
    uint32_t n, capacity;
    uint32_t device;
    bool failed; /* memory ran out */
} account;

static void note_wait(account *of, cs_wait_cause cause, cs_time start, cs_time end)
{
    if (start >= end)
        return;
    if (!cs_vector_reserve((void **)&of->waits, &of->capacity, of->n + 1ULL, sizeof(*of->waits))) {
        of->failed = true;
        return;
    }
    of->waits[of->n++] = (cs_wait){start, end, of->device, cause};
}

/* Adds the time that a transfer holds up a device. */
static void add_exposed(const study *s, uint32_t transfer, cs_time time, cs_time_use *use)
{
    use->communication += time;
    use->exposed[cs_graph_class(s->graph, transfer)->purpose] += time;
    if (cs_graph_class(s->graph, transfer)->origin != CS_TRANSFER)
        use->collectives += time;
}

static void account_exposed(const study *s, uint32_t transfer, cs_time start, cs_time end,
                            account *of)
{
    const bool collective = cs_graph_class(s->graph, transfer)->origin != CS_TRANSFER;
    add_exposed(s, transfer, end - start, of->use);
    note_wait(of, collective ? CS_WAIT_COLLECTIVES : CS_WAIT_MESSAGES, start, end);
}

static void account_dependency(account *of, cs_time start, cs_time end)
{
    of->use->dependency += end - start;
    note_wait(of, CS_WAIT_DEPENDENCY, start, end);
}

static void account_flush(account *of, cs_time start, cs_time end)
{
    of->use->flush += end - start;
    note_wait(of, CS_WAIT_FLUSH, start, end);
}

/* Explains the idle time [from, until) by walking back from `task`, the last to end before it, as
 * far as the device's own stage is concerned. */
static void explain_back(const study *s, uint32_t task, cs_time from, cs_time until, account *of)
{
    bool between_stages = false;
    while (until > from && task != CS_NONE && is_transfer(s, task)) {
        const bool for_stages = cs_graph_class(s->graph, task)->purpose == CS_PURPOSE_STAGES;
        if (between_stages && !for_stages)
            break;
        between_stages = for_stages;
        cs_span span = s->trace->spans[task];
        if (span.end < until) { /* the next task was ready but waited for a device */
            cs_time ready = span.end > from ? span.end : from;
            account_dependency(of, ready, until);
            until = ready;
        }
        cs_time start = span.start > from ? span.start : from;
        if (start < until) {
            account_exposed(s, task, start, until, of);
            until = start;
        }
        task = s->latest[task];
    }
    account_dependency(of, from, until);
}

/* Reverses the waits from index `first` on, which were found backwards. */
static void reverse_waits(account *of, uint32_t first)
{
    for (uint32_t last = of->n; first + 1 < last; first++) {
        const cs_wait moved = of->waits[first];
        of->waits[first] = of->waits[--last];
        of->waits[last] = moved;
    }
}

/* Explains the idle time before `task`. `before`: the previous task on the device, or CS_NONE. */
static void explain_gap(const study *s, uint32_t before, uint32_t task, cs_time from, account *of)
{
    cs_time until = s->trace->spans[task].start;
    uint32_t batch = cs_graph_mini_batch(s->graph, task);
    if (before != CS_NONE && cs_graph_mini_batch(s->graph, before) < batch &&
        s->flushed[batch - 1]) {
        cs_time flush = s->batch_end[batch - 1] < until ? s->batch_end[batch - 1] : until;
        if (flush > from) {
            account_flush(of, from, flush);
            from = flush;
        }
    }
    const uint32_t first = of->n;
    explain_back(s, s->latest[task], from, until, of);
    reverse_waits(of, first);
}

static void explain_device(const study *s, account *of)
{
    cs_time now = 0;
    uint32_t before = CS_NONE, device = of->device;
    for (uint32_t i = s->first_occupant[device]; i < s->first_occupant[device + 1]; i++) {
        uint32_t task = s->occupants[i];
        cs_span span = s->trace->spans[task];
        const cs_class *cls = cs_graph_class(s->graph, task);
        if (span.start > now)
            explain_gap(s, before, task, now, of);
        if (cls->kind == CS_TRANSFER)
            account_exposed(s, task, span.start, span.end, of);
        else
            of->use->compute[cls->kind] += span.end - span.start;
        now = span.end;
        before = task;
    }
    /* Explain the time after the device's last task. After the last computation of a run only
     * messages remain, which the next mini-batch would wait for. */
    cs_time from = now;
    const uint32_t n = s->graph->n_batches;
    const cs_time end = s->trace->makespan;
    const cs_time ended = n > 0 && !s->trace->stopped ? s->batch_end[n - 1] : end;
    account_flush(of, from, ended > from ? ended : from);
    from = ended > from ? ended : from;
    const uint32_t first = of->n;
    if (from < end)
        explain_back(s, s->last, from, end, of);
    reverse_waits(of, first);
}

/* ---- intervals ---- */

/* An interval is packed into three numbers: increase of the device, with the cause in the lowest
 * bits; time since the device's previous interval; length. */
enum { NUMBERS = 3, CAUSES = 4 };

static bool add_wait(cs_waits *waits, const cs_wait *wait)
{
    cs_wait *last = &waits->last;
    if (last->device != wait->device)
        last->end = 0;
    if (!cs_compact_reserve(&waits->packed, NUMBERS))
        return false;
    cs_compact_put(&waits->packed,
                   (uint64_t)(wait->device - last->device) * CAUSES + (uint64_t)wait->cause);
    cs_compact_put(&waits->packed, (uint64_t)(wait->start - last->end));
    cs_compact_put(&waits->packed, (uint64_t)(wait->end - wait->start));
    *last = *wait;
    waits->n++;
    return true;
}

bool cs_wait_next(cs_wait_reader *reader, cs_wait *wait)
{
    const cs_waits *waits = reader->of;
    cs_wait *last = &reader->last;
    if (reader->n_read == waits->n)
        return false;
    const uint64_t word = cs_compact_get(&waits->packed, &reader->at);
    last->device += (uint32_t)(word / CAUSES);
    last->cause = (cs_wait_cause)(word % CAUSES);
    last->start =
        (word / CAUSES > 0 ? 0 : last->end) + (cs_time)cs_compact_get(&waits->packed, &reader->at);
    last->end = last->start + (cs_time)cs_compact_get(&waits->packed, &reader->at);
    reader->n_read++;
    *wait = *last;
    return true;
}

/* Merges adjacent intervals with the same cause. */
static bool keep_waits(const account *of, cs_waits *waits)
{
    for (uint32_t i = 0, next; i < of->n; i = next) {
        cs_wait joined = of->waits[i];
        for (next = i + 1; next < of->n && of->waits[next].start == joined.end &&
                           of->waits[next].cause == joined.cause;
             next++)
            joined.end = of->waits[next].end;
        if (!add_wait(waits, &joined))
            return false;
    }
    return true;
}

static bool explain_devices(const study *s, cs_analysis *analysis)
{
    account of = {0};
    bool done = true;
    for (uint32_t device = 0; device < s->graph->n_devices && done; device++) {
        if (!cs_graph_has(s->graph, device))
            continue;
        of.use = &analysis->devices[device];
        of.device = device;
        of.n = 0;
        explain_device(s, &of);
        of.use->slowed = s->trace->devices[device].slowed;
        of.use->waited = s->trace->devices[device].waited;
        done = !of.failed && keep_waits(&of, &analysis->waits);
    }
    free(of.waits);
    return done;
}

/* ---- the critical path ---- */

/* Returns the task with the latest end that ran before `task` on a device that it occupies; or
 * CS_NONE. */
static uint32_t occupant_before(const study *s, uint32_t task)
{
    const cs_class *cls = cs_graph_class(s->graph, task);
    uint32_t devices[2] = {cls->device, cls->blocking ? cls->peer : cls->device};
    uint32_t latest = CS_NONE;
    for (uint32_t d = 0; occupies(cls) && d < 2; d++) {
        uint32_t low = s->first_occupant[devices[d]], high = s->first_occupant[devices[d] + 1];
        while (low < high) { /* find the position of `task` in the device's order */
            uint32_t middle = low + (high - low) / 2, other = s->occupants[middle];
            occupant a = {s->trace->spans[other], other, rank_of(s, other)};
            occupant b = {s->trace->spans[task], task, rank_of(s, task)};
            if (compare_occupants(&a, &b) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == s->first_occupant[devices[d]])
            continue;
        uint32_t before = s->occupants[low - 1];
        if (latest == CS_NONE || s->trace->spans[before].end > s->trace->spans[latest].end)
            latest = before;
    }
    return latest;
}

/* Whether a task ran later than another. In a measured run a task may start before its predecessor:
 * a sender proceeds while its message still waits for the receiver. Tasks with equal spans can be
 * followed, since edges have no cycles. */
static bool is_later(const study *s, uint32_t task, uint32_t than)
{
    const cs_span a = s->trace->spans[task], b = s->trace->spans[than];
    return a.start != b.start ? a.start > b.start : a.end > b.end;
}

/* Returns what `task` waited for last: a predecessor by edge, or the previous task on the
 * device. */
static uint32_t cause(const study *s, uint32_t task)
{
    uint32_t edge = s->latest[task], device = occupant_before(s, task);
    if (edge != CS_NONE && is_later(s, edge, task))
        edge = CS_NONE;
    if (edge == CS_NONE || device == CS_NONE)
        return edge == CS_NONE ? device : edge;
    return s->trace->spans[device].end > s->trace->spans[edge].end ? device : edge;
}

/* Steps found so far, from the end of the path; steps without room are only counted. */
typedef struct path_walk {
    cs_path_step *steps;
    uint32_t room, n;
} path_walk;

static void add_step(path_walk *walk, uint32_t task, cs_time start, cs_time end)
{
    walk->n++;
    if (walk->n <= walk->room)
        walk->steps[walk->room - walk->n] = (cs_path_step){task, start, end};
}

/* Walks from the task that ended last back to time 0. If tasks overlap, as in a measured run, the
 * earlier one counts until the later one starts. */
static uint32_t walk_path(const study *s, cs_path_step *steps, uint32_t room)
{
    path_walk walk = {steps, room, 0};
    cs_time from = s->trace->makespan;
    for (uint32_t task = s->last; task != CS_NONE; task = cause(s, task)) {
        cs_span span = s->trace->spans[task];
        if (span.end < from)
            add_step(&walk, CS_NONE, span.end, from);
        add_step(&walk, task, span.start, span.end < from ? span.end : from);
        from = span.start;
    }
    if (from > 0)
        add_step(&walk, CS_NONE, 0, from);
    return walk.n;
}

/* ---- metrics ---- */

static cs_time find_middle(const study *s)
{
    const uint32_t n = s->graph->n_batches;
    if (s->trace->stopped || n == 0)
        return 0;
    return n > 1 ? s->batch_end[n - 1 - n / 4] - s->batch_end[n / 4] : s->trace->makespan;
}

static cs_mean_use mean_of(const cs_analysis *analysis)
{
    cs_mean_use mean = {0};
    for (uint32_t d = 0; d < analysis->n_devices; d++) {
        const cs_time_use *use = &analysis->devices[d];
        mean.messages += cs_time_seconds(use->communication - use->collectives);
        mean.collectives += cs_time_seconds(use->collectives);
        mean.active += cs_time_seconds(use->active);
        mean.hidden += cs_time_seconds(use->hidden);
        mean.slowed += cs_time_seconds(use->slowed);
        mean.waited += cs_time_seconds(use->waited);
        for (uint32_t p = 0; p < CS_N_PURPOSES; p++) {
            mean.exposed[p] += cs_time_seconds(use->exposed[p]);
            mean.active_for[p] += cs_time_seconds(use->active_for[p]);
        }
    }
    const double n = analysis->n_devices > 0 ? analysis->n_devices : 1;
    for (uint32_t p = 0; p < CS_N_PURPOSES; p++) {
        mean.exposed[p] /= n;
        mean.active_for[p] /= n;
    }
    mean.messages /= n;
    mean.collectives /= n;
    mean.active /= n;
    mean.hidden /= n;
    mean.slowed /= n;
    mean.waited /= n;
    return mean;
}

void cs_analysis_set_rates(cs_analysis *analysis, uint32_t n_batches, uint32_t batch_size)
{
    const uint32_t first = n_batches / 4, last = n_batches - 1 - n_batches / 4;
    /* Sums are exact, and fractions are exact up to 2^53 ps. */
    const __int128 all = (__int128)analysis->makespan * analysis->n_devices;
    const double whole = all > 0 ? (double)all : 1;
    __int128 idle = all, communication = 0, waiting = 0, flush = 0;
    for (uint32_t d = 0; d < analysis->n_devices; d++) {
        const cs_time_use *use = &analysis->devices[d];
        for (uint32_t kind = 0; kind < CS_N_KINDS; kind++)
            idle -= use->compute[kind];
        communication += use->communication;
        waiting += (__int128)use->dependency + use->flush;
        flush += use->flush;
    }
    analysis->bubble_fraction = (double)idle / whole;
    analysis->exposed_communication_fraction = (double)communication / whole;
    analysis->pipeline_bubble_fraction = (double)waiting / whole;
    analysis->flush_fraction = (double)flush / whole;
    analysis->mean = mean_of(analysis);
    analysis->iteration_time =
        cs_time_seconds(analysis->middle) / (n_batches > 1 ? last - first : 1);
    if (analysis->iteration_time > 0)
        analysis->throughput = batch_size / analysis->iteration_time;
}

static bool analyse(study *s, cs_analysis *analysis)
{
    const cs_graph *graph = s->graph;
    *analysis = (cs_analysis){.n_devices = graph->n_devices, .makespan = s->trace->makespan};
    if (!study_init(s, graph, s->trace))
        return false;
    analysis->devices = calloc((size_t)graph->n_devices + 1, sizeof(*analysis->devices));
    analysis->n_steps = walk_path(s, NULL, 0);
    analysis->steps = calloc((size_t)analysis->n_steps + 1, sizeof(*analysis->steps));
    if (!analysis->devices || !analysis->steps)
        return false;
    if (!explain_devices(s, analysis))
        return false;
    walk_path(s, analysis->steps, analysis->n_steps);
    for (uint32_t i = 0; i < analysis->n_steps; i++) {
        const cs_path_step *step = &analysis->steps[i];
        cs_time time = step->end - step->start;
        if (step->task == CS_NONE)
            analysis->path.dependency += time;
        else if (is_transfer(s, step->task))
            add_exposed(s, step->task, time, &analysis->path);
        else
            analysis->path.compute[cs_graph_class(s->graph, step->task)->kind] += time;
    }
    analysis->middle = find_middle(s);
    if (s->graph->n_batches == 1 && !s->trace->stopped)
        analysis->behind = s->trace->makespan - s->batch_end[0];
    return true;
}

void cs_analysis_finish(cs_analysis *analysis)
{
    free(analysis->devices);
    free(analysis->steps);
    cs_compact_finish(&analysis->waits.packed);
    cs_staleness_finish(&analysis->staleness);
    *analysis = (cs_analysis){0};
}

cs_status cs_analyse(const cs_graph *graph, const cs_trace *trace, uint32_t batch_size,
                     cs_analysis *analysis, cs_error *error)
{
    cs_analysis made;
    study s = {.graph = graph, .trace = trace};
    bool complete = analyse(&s, &made);
    /* Free the lookups now: the next step takes as much memory. */
    free(s.latest);
    free(s.rank);
    free(s.first_occupant);
    free(s.occupants);
    free(s.batch_end);
    free(s.flushed);
    complete = complete && cs_overlap_find(graph, trace, made.devices);
    if (complete && graph->stands_for) {
        /* Copy results to represented devices. */
        for (uint32_t d = 0; d < graph->n_devices; d++)
            made.devices[d] = made.devices[cs_graph_stand_in(graph, d)];
    }
    if (complete)
        cs_analysis_set_rates(&made, graph->n_batches, batch_size);
    cs_status status = complete ? cs_staleness_find(graph, trace, &made.staleness, error)
                                : cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_steady_find(graph, trace, &made.steady, error);
    if (status == CS_OK && made.steady.in_flight > 1)
        status = cs_recurrence_find(graph, trace, &made.recurrence, error);
    if (status != CS_OK) {
        cs_analysis_finish(&made);
        return status;
    }
    *analysis = made;
    return CS_OK;
}
