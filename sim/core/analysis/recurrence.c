#include "sim/core/analysis/recurrence.h"

#include <stdlib.h>

enum { LONGEST = 256 };

typedef struct run {
    const cs_graph *graph;
    const cs_trace *trace;
    uint32_t *tasks; /* sorted by mini-batch, then by class, then by id */
    uint32_t *first; /* per mini-batch: index of its first task in `tasks`; n_batches + 1 entries */
    cs_time *enters; /* per mini-batch */
    cs_time *ends;   /* per mini-batch: end of its tasks and of all earlier mini-batches */
    cs_time at;      /* entry of the last mini-batch */
} run;

/* ---- tasks by mini-batch ---- */

static uint32_t class_of(const cs_graph *graph, uint32_t task)
{
    return graph->tasks[task].cls;
}

/* Sorts `n_tasks` ids by a key below n_keys, in a stable way. first[key] becomes the index of the
 * first task with this key, first[n_keys] the end. */
static void sort_by(const cs_graph *graph, uint32_t (*key)(const cs_graph *, uint32_t),
                    uint32_t n_keys, const uint32_t *from, uint32_t *to, uint32_t *first)
{
    for (uint32_t k = 0; k <= n_keys; k++)
        first[k] = 0;
    for (uint32_t i = 0; i < graph->n_tasks; i++)
        first[key(graph, from[i])]++;
    for (uint32_t k = 0, sum = 0; k <= n_keys; k++) {
        uint32_t n = first[k];
        first[k] = sum;
        sum += n;
    }
    for (uint32_t i = 0; i < graph->n_tasks; i++)
        to[first[key(graph, from[i])]++] = from[i];
    for (uint32_t k = n_keys; k > 0; k--)
        first[k] = first[k - 1];
    first[0] = 0;
}

static bool sort_tasks(run *r)
{
    const cs_graph *graph = r->graph;
    const size_t n = (size_t)graph->n_tasks + 1;
    uint32_t *by_class = malloc(n * sizeof(*by_class));
    uint32_t *starts = malloc(((size_t)graph->n_classes + 1) * sizeof(*starts));
    r->tasks = malloc(n * sizeof(*r->tasks));
    r->first = malloc(((size_t)graph->n_batches + 1) * sizeof(*r->first));
    const bool enough = by_class && starts && r->tasks && r->first;
    for (uint32_t i = 0; enough && i < graph->n_tasks; i++)
        r->tasks[i] = i;
    if (enough) {
        sort_by(graph, class_of, graph->n_classes, r->tasks, by_class, starts);
        sort_by(graph, cs_graph_mini_batch, graph->n_batches, by_class, r->tasks, r->first);
    }
    free(by_class);
    free(starts);
    return enough;
}

static bool find_times(run *r)
{
    const cs_graph *graph = r->graph;
    r->enters = calloc((size_t)graph->n_batches + 1, sizeof(*r->enters));
    r->ends = calloc((size_t)graph->n_batches + 1, sizeof(*r->ends));
    if (!r->enters || !r->ends)
        return false;
    for (uint32_t b = 0; b < graph->n_batches; b++) {
        r->enters[b] = CS_TIME_MAX;
        r->ends[b] = b > 0 ? r->ends[b - 1] : 0;
        for (uint32_t i = r->first[b]; i < r->first[b + 1]; i++) {
            const cs_span span = r->trace->spans[r->tasks[i]];
            const cs_kind kind = cs_graph_class(graph, r->tasks[i])->kind;
            if (cs_kind_group_of(kind) == CS_GROUP_COMPUTE && span.start < r->enters[b])
                r->enters[b] = span.start;
            r->ends[b] = span.end > r->ends[b] ? span.end : r->ends[b];
        }
    }
    r->at = r->enters[graph->n_batches - 1];
    return true;
}

/* ---- periods ---- */

/* Whether a task did the same as another one `period` before, until the time that is examined. */
static bool same_task(const run *r, uint32_t task, uint32_t earlier, cs_time period)
{
    const cs_span now = r->trace->spans[task], before = r->trace->spans[earlier];
    if (now.start > r->at)
        return before.start > r->at - period;
    return now.start - before.start == period &&
           (now.end > r->at ? before.end > r->at - period : now.end - before.end == period);
}

/* Whether mini-batch b did the same as mini-batch b - p one `period` before; with `begun`, compares
 * only started tasks. */
static bool same_batch(const run *r, uint32_t b, uint32_t p, cs_time period, bool begun)
{
    const cs_graph *graph = r->graph;
    const cs_span *spans = r->trace->spans;
    const uint32_t *of = r->tasks + r->first[b], *end = r->tasks + r->first[b + 1];
    const uint32_t *earlier = r->tasks + r->first[b - p], *last = r->tasks + r->first[b - p + 1];
    for (;; of++, earlier++) {
        while (begun && of < end && spans[*of].start > r->at)
            of++;
        while (begun && earlier < last && spans[*earlier].start > r->at - period)
            earlier++;
        if (of == end || earlier == last)
            return of == end && earlier == last;
        const cs_task *a = &graph->tasks[*earlier], *z = &graph->tasks[*of];
        if (a->cls != z->cls || z->item - a->item != p * graph->micro_batches ||
            !same_task(r, *of, *earlier, period))
            return false;
    }
}

/* Whether everything that has to be compared starts at mini-batch b: all mini-batches before b have
 * ended, and all before b - p one period earlier. */
static bool is_covered(const run *r, uint32_t b, uint32_t p, cs_time period)
{
    return r->ends[b - 1] <= r->at && (b <= p || r->ends[b - p - 1] <= r->at - period);
}

/* Compares only when mini-batches entered. Most wrong periods are rejected here, without comparing
 * tasks. */
static bool enter_alike(const run *r, uint32_t p, cs_time period)
{
    uint32_t b = r->graph->n_batches - 1;
    while (b >= p && (r->enters[b] > r->at || r->enters[b] - r->enters[b - p] == period)) {
        if (is_covered(r, b, p, period))
            return true;
        b--;
    }
    return false;
}

/* Whether the run has a period of p mini-batches. Compares all mini-batches in flight, now or a
 * period earlier, and then earlier ones while they are equal. */
static bool repeats(const run *r, uint32_t p, cs_recurrence *found)
{
    const uint32_t last = r->graph->n_batches - 1;
    const cs_time period = r->at - r->enters[last - p];
    uint32_t b = last + 1;
    if (period <= 0 || !enter_alike(r, p, period))
        return false;
    if (same_batch(r, last, p, period, false) ||
        (last > p && same_batch(r, last, p, period, true) &&
         same_batch(r, last - 1, p, period, false)))
        b--;
    while (b <= last && b > p && same_batch(r, b - 1, p, period, false))
        b--;
    if (b == last + 1 || !is_covered(r, b, p, period))
        return false;
    found->n = p;
    found->period = period;
    found->first = b - p;
    return true;
}

static uint32_t in_flight(const run *r, uint32_t entering)
{
    uint32_t ended = 0;
    while (ended < entering && r->ends[ended] <= r->enters[entering])
        ended++;
    return entering + 1 - ended;
}

static void find(const run *r, cs_recurrence *found)
{
    const uint32_t n = r->graph->n_batches;
    found->half = in_flight(r, n / 2);
    found->end = in_flight(r, n - 1);
    for (uint32_t p = 1; p <= n / 2 && p <= LONGEST; p++)
        if (repeats(r, p, found))
            return;
}

cs_status cs_recurrence_find(const cs_graph *graph, const cs_trace *trace, cs_recurrence *found,
                             cs_error *error)
{
    run r = {.graph = graph, .trace = trace};
    cs_recurrence made = {0};
    bool enough = true;
    if (!trace->stopped && graph->n_batches > 0) {
        enough = sort_tasks(&r) && find_times(&r);
        if (enough)
            find(&r, &made);
    }
    free(r.tasks);
    free(r.first);
    free(r.enters);
    free(r.ends);
    if (!enough)
        return cs_error_no_memory(error);
    *found = made;
    return CS_OK;
}
