#include "sim/engine/watch.h"

#include "sim/engine/watch-run.h"

#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

void cs_watch_finish(cs_watch *watch)
{
    free(watch->batches);
    free(watch->words);
    free(watch->roots);
    free(watch->register_roots);
    free(watch->counts);
    *watch = (cs_watch){0};
}

void cs_watch_put(cs_watch *watch, int64_t word)
{
    if (watch->n_words == watch->cap_words) {
        const uint64_t capacity = watch->cap_words > 0 ? 2 * watch->cap_words : 1024;
        int64_t *words = realloc(watch->words, capacity * sizeof(*words));
        watch->failed |= words == NULL;
        if (!words)
            return;
        watch->words = words;
        watch->cap_words = capacity;
    }
    watch->words[watch->n_words++] = word;
}

void cs_watch_put_double(cs_watch *watch, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    cs_watch_put(watch, bits);
}

bool cs_watch_equal(const cs_watch *watch, uint32_t batch, uint32_t other)
{
    const cs_watched *a = &watch->batches[batch], *b = &watch->batches[other];
    return !watch->failed && a->time >= 0 && b->time >= 0 && a->n == b->n &&
           memcmp(watch->words + a->first, watch->words + b->first, a->n * sizeof(*watch->words)) ==
               0;
}

/* ---- a state ---- */

static int64_t relative(uint32_t id, uint32_t base)
{
    return id == CS_NONE ? INT64_MAX : (int64_t)id - base;
}

/* Sorts so many records of `width` words from `first` on, by their words. */
static int compare_pairs(const void *left, const void *right)
{
    return memcmp(left, right, 3 * sizeof(int64_t));
}

static void sort_records(cs_watch *watch, uint64_t first)
{
    if (!watch->failed && watch->n_words > first)
        qsort(watch->words + first, (watch->n_words - first) / 3, 3 * sizeof(*watch->words),
              compare_pairs);
}

static bool is_touched(const cs_engine *e, uint32_t task)
{
    return e->spans[task].start >= 0 ||
           cs_engine_waiting(e, task) != e->graph->n_predecessors[task];
}

static void put_tasks(cs_engine *e, cs_watch *watch, cs_watched *at)
{
    const uint32_t n = e->graph->n_tasks;
    at->to = at->from;
    for (uint32_t task = at->from; task < n; task++) {
        if (!is_touched(e, task))
            continue;
        const cs_span span = e->spans[task];
        const bool reads = e->versions && span.start >= 0 && e->versions[task] != CS_NONE;
        const uint32_t slot = cs_graph_class(e->graph, task)->weights;
        at->to = task + 1;
        cs_watch_put(watch, relative(task, at->task));
        cs_watch_put(watch, span.end >= 0     ? -2
                            : span.start >= 0 ? -1
                                              : (int64_t)cs_engine_waiting(e, task));
        cs_watch_put(watch, span.start >= 0 ? e->now - span.start : -1);
        cs_watch_put(watch, reads ? (int64_t)e->versions[task] - e->current[watch->roots[slot]]
                                  : INT64_MAX);
    }
}

static void put_events(cs_engine *e, cs_watch *watch, const cs_watched *at)
{
    const cs_event_queue *queue = &e->events;
    const uint64_t first = watch->n_words;
    for (uint32_t slot = 0; slot < queue->capacity; slot++) {
        const cs_event_key key = queue->nodes[queue->capacity + slot];
        if (key == CS_EVENT_NO_KEY)
            continue;
        const uint32_t what = queue->what[slot];
        cs_watch_put(watch, cs_event_key_time(key) - e->now);
        cs_watch_put(watch, relative((uint32_t)(key >> 32), at->task));
        cs_watch_put(watch, what < CS_FLOW ? what : CS_FLOW);
    }
    sort_records(watch, first);
}

static void put_ready(cs_watch *watch, const cs_ready_set *set, const cs_watched *at)
{
    const uint64_t first = watch->n_words;
    for (uint32_t i = 0; i < set->n; i++) {
        cs_watch_put(watch, (int64_t)(set->keys[i] >> 32));
        cs_watch_put(watch, relative((uint32_t)set->keys[i], at->task));
        cs_watch_put(watch, 0);
    }
    sort_records(watch, first);
    cs_watch_put(watch, set->n);
}

static void put_devices(cs_engine *e, cs_watch *watch, const cs_watched *at)
{
    for (uint32_t d = 0; d < e->graph->n_devices; d++) {
        const cs_device_memory *pool = &e->memory.pools[d];
        cs_watch_put(watch, relative(e->devices[d].head, at->task));
        cs_watch_put(watch, e->devices[d].busy);
        put_ready(watch, &e->compute[d], at);
        put_ready(watch, &e->blocking[d], at);
        for (uint32_t c = 0; c < CS_N_CATEGORIES; c++)
            cs_watch_put(watch, pool->live[c]);
    }
}

/* When tasks of classes with release times may start. */
static void put_releases(cs_engine *e, cs_watch *watch, uint32_t item)
{
    for (uint32_t i = 0; i < e->graph->n_classes; i++) {
        const cs_class *cls = &e->graph->classes[i];
        const cs_time next = cls->release + cls->interval * item - e->now;
        if (e->classes[i].timed)
            cs_watch_put(watch, cls->interval == 0 && next < 0 ? 0 : next);
    }
}

/* The lowest item of a task that has not ended: nothing asks for what registers hold of earlier
 * ones. */
static uint32_t lowest_item(const cs_engine *e, uint32_t from)
{
    uint32_t lowest = CS_NONE;
    for (uint32_t task = from; task < e->graph->n_tasks; task++)
        if (e->spans[task].end < 0 && e->graph->tasks[task].item < lowest)
            lowest = e->graph->tasks[task].item;
    return lowest == CS_NONE ? CS_NONE : lowest - lowest % e->graph->micro_batches;
}

static void look(cs_engine *e, cs_watch *watch, uint32_t batch)
{
    cs_watched *at = &watch->batches[batch];
    at->time = e->now;
    at->first = watch->n_words;
    at->from = batch > 0 ? watch->batches[batch - 1].from : 0;
    while (at->from < e->graph->n_tasks && e->spans[at->from].end >= 0)
        at->from++;
    put_tasks(e, watch, at);
    put_events(e, watch, at);
    put_devices(e, watch, at);
    put_releases(e, watch, batch * e->graph->micro_batches);
    cs_network_put_state(e->network, watch, at->task, e->now);
    cs_versions_put_state(e->weights, watch, batch, lowest_item(e, at->from), e->now);
    at->n = watch->n_words - at->first;
}

/* ---- slots between which versions are passed on ---- */

static uint32_t root_of(const cs_watch *watch, uint32_t slot)
{
    while (watch->roots[slot] != slot)
        slot = watch->roots[slot];
    return slot;
}

static void relate(cs_watch *watch, uint32_t slot, uint32_t other)
{
    const uint32_t a = root_of(watch, slot), b = root_of(watch, other);
    watch->roots[a < b ? b : a] = a < b ? a : b;
}

static void relate_register(cs_watch *watch, uint32_t which, uint32_t slot)
{
    uint32_t *of = &watch->register_roots[which];
    if (*of != CS_NONE)
        relate(watch, *of, slot);
    *of = slot;
}

static void relate_class(const cs_graph *graph, cs_watch *watch, const cs_class *cls)
{
    const cs_policy *policy = &graph->policies[cls->policy - 1];
    if (policy->read == CS_READ_CURRENT)
        relate(watch, cls->weights, policy->slot);
    if (policy->read == CS_READ_REGISTER)
        relate_register(watch, policy->reads, cls->weights);
    if (policy->writes != CS_NONE)
        relate_register(watch, policy->writes, cls->weights);
    for (uint32_t i = 0; i < policy->n_held; i++)
        relate(watch, cls->weights, policy->first_held + i);
}

static void relate_slots(const cs_graph *graph, cs_watch *watch)
{
    for (uint32_t i = 0; i < graph->n_slots; i++)
        watch->roots[i] = i;
    memset(watch->register_roots, 0xff, graph->n_registers * sizeof(*watch->register_roots));
    for (uint32_t i = 0; i < graph->n_slots; i++)
        relate(watch, i, graph->slots[i].behind);
    for (uint32_t i = 0; i < graph->n_classes; i++)
        if (graph->classes[i].policy > 0)
            relate_class(graph, watch, &graph->classes[i]);
    for (uint32_t i = 0; i < graph->n_slots; i++)
        watch->roots[i] = root_of(watch, i);
    for (uint32_t i = 0; i < graph->n_registers; i++)
        if (watch->register_roots[i] != CS_NONE)
            watch->register_roots[i] = watch->roots[watch->register_roots[i]];
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        const cs_class *cls = &graph->classes[i];
        if (cls->policy > 0 && graph->policies[cls->policy - 1].read == CS_READ_LAG)
            watch->counts[watch->roots[cls->weights]] = true;
    }
}

/* ---- in the run ---- */

bool cs_watch_begin(cs_engine *e, cs_watch *watch)
{
    const cs_graph *graph = e->graph;
    watch->batches = malloc(((size_t)graph->n_batches + 1) * sizeof(*watch->batches));
    watch->roots = malloc(((size_t)graph->n_slots + 1) * sizeof(*watch->roots));
    watch->register_roots =
        malloc(((size_t)graph->n_registers + 1) * sizeof(*watch->register_roots));
    watch->counts = calloc((size_t)graph->n_slots + 1, sizeof(*watch->counts));
    if (!watch->batches || !watch->roots || !watch->register_roots || !watch->counts)
        return false;
    relate_slots(graph, watch);
    watch->n = graph->n_batches;
    for (uint32_t b = 0; b < graph->n_batches; b++)
        watch->batches[b] = (cs_watched){.time = -1, .task = CS_NONE};
    for (uint32_t task = graph->n_tasks; task-- > 0;)
        watch->batches[cs_graph_mini_batch(graph, task)].task = task;
    return true;
}

uint32_t cs_watch_look(cs_engine *e, cs_watch *watch, uint32_t next)
{
    while (next < watch->n && watch->batches[next].task != CS_NONE &&
           e->spans[watch->batches[next].task].end >= 0)
        look(e, watch, next++);
    return next;
}
