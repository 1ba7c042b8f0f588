#include "sim/core/analysis/staleness.h"

#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct study {
    const cs_graph *graph;
    const cs_trace *trace;
    uint32_t first_stage, last_stage; /* range of stages over all slots */
    /* per version of the first and of the last stage, up to n_batches: the newest mini-batch whose
     * update made it, or CS_NONE */
    uint32_t *first_makers, *last_makers;
    bool *fed;      /* per slot: messages bring versions */
    uint32_t *made; /* per stage: scratch */
    cs_staleness *found;
} study;

static uint32_t version_of(const study *s, uint32_t task)
{
    return cs_graph_class(s->graph, task)->weights != CS_NONE ? s->trace->versions[task] : CS_NONE;
}

static cs_staleness_row *row_at(const cs_staleness *found, uint32_t batch, uint32_t slot)
{
    return &found->rows[(size_t)batch * found->n_slots + slot];
}

int64_t cs_staleness_delay(uint32_t made, uint32_t version)
{
    return made == CS_NONE || version == CS_NONE ? CS_STALENESS_NONE
                                                 : (int64_t)made - 1 - (int64_t)version;
}

/* ---- versions read ---- */

static void widen(cs_version_range *range, uint32_t version)
{
    if (range->oldest == CS_NONE || version < range->oldest)
        range->oldest = version;
    if (range->newest == CS_NONE || version > range->newest)
        range->newest = version;
}

static bool is_backward(const cs_class *cls)
{
    return cls->kind == CS_BACKWARD || cls->kind == CS_BACKWARD_INPUT ||
           cls->kind == CS_BACKWARD_WEIGHT;
}

/* ---- versions made ---- */

/* The end of a task that made a version. */
typedef struct making {
    cs_time end;
    uint32_t slot, task;
} making;

static int compare_makings(const void *left, const void *right)
{
    const making *a = left, *b = right;
    CS_COMPARE(a->slot, b->slot);
    CS_COMPARE(a->end, b->end);
    return a->task < b->task ? -1 : a->task > b->task;
}

static uint32_t gather_makings(const study *s, making *out)
{
    uint32_t n = 0;
    for (uint32_t task = 0; task < s->graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(s->graph, task);
        if ((cls->weights != CS_NONE && (cls->updates || cls->kind == CS_UPDATE)) &&
            s->trace->spans[task].start >= 0) {
            if (out)
                out[n] = (making){s->trace->spans[task].end, cls->weights, task};
            n++;
        }
    }
    return n;
}

static void note_maker(const study *s, const cs_class *cls, uint32_t version, uint32_t batch)
{
    uint32_t stage = s->graph->slots[cls->weights].stage;
    uint32_t *const makers[] = {stage == s->first_stage ? s->first_makers : NULL,
                                stage == s->last_stage ? s->last_makers : NULL};
    for (int i = 0; i < 2 && version <= s->found->n_batches; i++) {
        if (makers[i] && (makers[i][version] == CS_NONE || makers[i][version] < batch))
            makers[i][version] = batch;
    }
}

/* Notes a version that a task made. Messages do not count: their mini-batch is the reader of
 * the weights, not the mini-batch whose update made them. */
static void note_making(const study *s, const making *of, uint32_t version)
{
    const cs_class *cls = cs_graph_class(s->graph, of->task);
    uint32_t batch = cs_graph_mini_batch(s->graph, of->task);
    cs_staleness_row *row = row_at(s->found, batch, of->slot);
    if (cls->kind == CS_TRANSFER) {
        s->fed[of->slot] = true;
        return;
    }
    note_maker(s, cls, version, batch);
    if (row->made == CS_NONE)
        row->made = version;
}

/* Finds all versions. A slot's versions are made in the order of their tasks' ends. If the run was
 * stopped, the last ones do not exist. */
static bool note_makings(const study *s)
{
    uint32_t n = gather_makings(s, NULL), version = 0;
    making *all = malloc(((size_t)n + 1) * sizeof(*all));
    if (!all)
        return false;
    gather_makings(s, all);
    cs_vector_sort(all, n, sizeof(*all), compare_makings);
    for (uint32_t i = 0; i < n; i++) {
        version = i > 0 && all[i].slot == all[i - 1].slot ? version + 1 : 1;
        if (version <= s->trace->slots[all[i].slot].made)
            note_making(s, &all[i], version);
    }
    free(all);
    return true;
}

/* ---- metrics ---- */

/* A value per mini-batch. */
typedef int64_t batch_figure(const cs_staleness *found, uint32_t batch, uint32_t slot);

static int64_t gradient_delay(const cs_staleness *found, uint32_t batch, uint32_t slot)
{
    const cs_staleness_row *row = row_at(found, batch, slot);
    return cs_staleness_delay(row->made, row->backward.oldest);
}

static int64_t forward_delay(const cs_staleness *found, uint32_t batch, uint32_t slot)
{
    const cs_staleness_row *row = row_at(found, batch, slot);
    return cs_staleness_delay(row->made, row->forward.oldest);
}

static int64_t version_difference(const cs_staleness *found, uint32_t batch, uint32_t slot)
{
    (void)slot;
    return found->batches[batch].version_difference;
}

/* Whether the mini-batch uses the slot; not if another replica has it. CS_NONE: any slot. */
static bool uses(const cs_staleness *found, uint32_t batch, uint32_t slot)
{
    const cs_staleness_row *row = slot != CS_NONE ? row_at(found, batch, slot) : NULL;
    return !row || row->made != CS_NONE || row->forward.oldest != CS_NONE ||
           row->backward.oldest != CS_NONE;
}

/* Whether the mini-batch is in the middle half of the run. */
static bool in_middle(const cs_staleness *found, uint32_t batch)
{
    const uint32_t n = found->n_batches;
    return batch >= n / 4 && batch < n - n / 4;
}

static cs_steady find_steady(const cs_staleness *found, batch_figure *figure, uint32_t slot)
{
    bool first = true;
    cs_steady steady = {CS_STALENESS_NONE, true};
    for (uint32_t batch = found->n_batches / 4; in_middle(found, batch); batch++) {
        if (!uses(found, batch, slot))
            continue;
        int64_t value = figure(found, batch, slot);
        steady.value = first ? value : steady.value;
        steady.steady &= value == steady.value;
        first = false;
    }
    steady.steady &= steady.value != CS_STALENESS_NONE;
    return steady;
}

static void sum_up_slot(const study *s, uint32_t slot)
{
    cs_staleness *found = s->found;
    const cs_slot *of = &s->graph->slots[slot];
    cs_slot_staleness *out = &found->slots[slot];
    *out = (cs_slot_staleness){.stage = of->stage,
                               .device = of->device,
                               .versions_made = s->trace->slots[slot].made,
                               .peak_versions = s->trace->slots[slot].peak_live,
                               .gradient_delay = find_steady(found, gradient_delay, slot),
                               .forward_delay = find_steady(found, forward_delay, slot),
                               .max_gradient_delay = CS_STALENESS_NONE};
    for (uint32_t batch = 0; batch < found->n_batches; batch++) {
        int64_t delay = gradient_delay(found, batch, slot);
        if (delay > out->max_gradient_delay)
            out->max_gradient_delay = delay;
    }
}

double cs_staleness_mean_of_slot(const cs_slot_staleness *slot)
{
    return slot->n_backwards > 0 ? (double)slot->sum_gradient_delay / (double)slot->n_backwards
                                 : (double)NAN;
}

double cs_staleness_mean(const cs_staleness *staleness, uint32_t device)
{
    cs_slot_staleness all = {0};
    for (uint32_t s = 0; s < staleness->n_slots; s++) {
        const cs_slot_staleness *slot = &staleness->slots[s];
        if (device != CS_NONE && slot->device != device)
            continue;
        all.sum_gradient_delay += slot->sum_gradient_delay;
        all.n_backwards += slot->n_backwards;
    }
    return cs_staleness_mean_of_slot(&all);
}

/* Returns the version that the mini-batch's backward read on the last stage, on the first slot
 * where it ran. */
static uint32_t read_at_last(const study *s, uint32_t batch)
{
    for (uint32_t slot = 0; slot < s->found->n_slots; slot++) {
        uint32_t version = row_at(s->found, batch, slot)->backward.oldest;
        if (s->graph->slots[slot].stage == s->last_stage && version != CS_NONE)
            return version;
    }
    return CS_NONE;
}

/* Returns the newest mini-batch, from 1, whose update is in a version of the last stage; 0:
 * none. */
static int64_t newest_in(const study *s, uint32_t version)
{
    if (version > s->found->n_batches || s->last_makers[version] == CS_NONE)
        return 0;
    return (int64_t)s->last_makers[version] + 1;
}

/* ---- sequences: disjoint sets of mini-batches, the first member is the root ---- */

static uint32_t find_root(uint32_t *up, uint32_t batch)
{
    while (up[batch] != batch) {
        up[batch] = up[up[batch]];
        batch = up[batch];
    }
    return batch;
}

/* Links a mini-batch that read a version with the version's maker. */
static void link_batch(const study *s, uint32_t *up, uint32_t batch, const uint32_t *makers,
                       uint32_t version)
{
    if (version == CS_NONE || version > s->found->n_batches || makers[version] == CS_NONE)
        return;
    uint32_t a = find_root(up, batch), b = find_root(up, makers[version]);
    if (a < b)
        up[b] = a;
    else
        up[a] = b;
}

/* Numbers the sets, and returns how many there are. `numbers` has one cell per root. */
static uint32_t number_sets(uint32_t *up, uint32_t *numbers, uint32_t n,
                            cs_batch_staleness *batches, bool both)
{
    uint32_t count = 0;
    for (uint32_t batch = 0; batch < n; batch++) {
        uint32_t root = find_root(up, batch);
        if (root == batch)
            numbers[batch] = count++;
        uint32_t *out = both ? &batches[batch].by_both : &batches[batch].by_backward;
        *out = numbers[root];
    }
    return count;
}

static bool find_sequences(const study *s)
{
    cs_staleness *found = s->found;
    uint32_t n = found->n_batches;
    uint32_t *up = malloc(2 * ((size_t)n + 1) * sizeof(*up));
    if (!up)
        return false;
    for (uint32_t batch = 0; batch < n; batch++)
        up[batch] = batch;
    for (uint32_t batch = 0; batch < s->found->n_batches; batch++)
        link_batch(s, up, batch, s->last_makers, read_at_last(s, batch));
    found->n_by_backward = number_sets(up, up + n, n, found->batches, false);
    for (uint32_t task = 0; task < s->graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(s->graph, task);
        if (cls->kind == CS_FORWARD && cls->weights != CS_NONE &&
            s->graph->slots[cls->weights].stage == s->first_stage)
            link_batch(s, up, cs_graph_mini_batch(s->graph, task), s->first_makers,
                       version_of(s, task));
    }
    found->n_by_both = number_sets(up, up + n, n, found->batches, true);
    free(up);
    return true;
}

/* ---- putting it together ---- */

static bool reserve(const study *s)
{
    cs_staleness *found = s->found;
    size_t rows = (size_t)found->n_batches * found->n_slots;
    found->rows = malloc((rows + 1) * sizeof(*found->rows));
    found->slots = calloc((size_t)found->n_slots + 1, sizeof(*found->slots));
    found->batches = calloc((size_t)found->n_batches + 1, sizeof(*found->batches));
    if (!found->rows || !found->slots || !found->batches)
        return false;
    for (size_t i = 0; i < rows; i++) {
        uint32_t slot = (uint32_t)(i % found->n_slots);
        found->rows[i] = (cs_staleness_row){.mini_batch = (uint32_t)(i / found->n_slots),
                                            .slot = slot,
                                            .stage = s->graph->slots[slot].stage,
                                            .device = s->graph->slots[slot].device,
                                            .made = CS_NONE,
                                            .forward = {CS_NONE, CS_NONE},
                                            .backward = {CS_NONE, CS_NONE}};
    }
    return true;
}

static bool find_all(study *s)
{
    s->first_stage = CS_NONE;
    for (uint32_t slot = 0; slot < s->graph->n_slots; slot++) {
        uint32_t stage = s->graph->slots[slot].stage;
        s->first_stage = stage < s->first_stage ? stage : s->first_stage;
        s->last_stage = stage > s->last_stage ? stage : s->last_stage;
    }
    size_t versions = (size_t)s->found->n_batches + 1;
    s->first_makers = malloc(versions * sizeof(*s->first_makers));
    s->last_makers = malloc(versions * sizeof(*s->last_makers));
    s->fed = calloc((size_t)s->found->n_slots + 1, sizeof(*s->fed));
    s->made = malloc(((size_t)s->graph->n_stages + 1) * sizeof(*s->made));
    if (!reserve(s) || !s->first_makers || !s->last_makers || !s->fed || !s->made)
        return false;
    memset(s->first_makers, 0xff, versions * sizeof(*s->first_makers));
    memset(s->last_makers, 0xff, versions * sizeof(*s->last_makers));
    for (uint32_t task = 0; task < s->graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(s->graph, task);
        uint32_t version = version_of(s, task);
        if (version == CS_NONE)
            continue;
        cs_staleness_row *row = row_at(s->found, cs_graph_mini_batch(s->graph, task), cls->weights);
        if (cls->kind == CS_FORWARD)
            widen(&row->forward, version);
        else if (is_backward(cls))
            widen(&row->backward, version);
    }
    if (!note_makings(s))
        return false;
    /* A slot that receives versions from another slot of its stage uses that slot's numbers. A
     * gradient computed here then goes into the version that its mini-batch's update made there. */
    for (uint32_t batch = 0; batch < s->found->n_batches; batch++) {
        memset(s->made, 0xff, s->graph->n_stages * sizeof(*s->made));
        for (uint32_t slot = 0; slot < s->found->n_slots; slot++) {
            const cs_staleness_row *row = row_at(s->found, batch, slot);
            if (row->made != CS_NONE)
                s->made[row->stage] = row->made;
        }
        for (uint32_t slot = 0; slot < s->found->n_slots; slot++) {
            cs_staleness_row *row = row_at(s->found, batch, slot);
            if (row->made == CS_NONE && row->backward.oldest != CS_NONE && s->fed[slot])
                row->made = s->made[row->stage];
        }
    }
    for (uint32_t batch = 0; batch < s->found->n_batches; batch++) {
        uint32_t version = read_at_last(s, batch);
        s->found->batches[batch].version_difference =
            version == CS_NONE ? CS_STALENESS_NONE : (int64_t)batch + 1 - newest_in(s, version);
    }
    s->found->version_difference = find_steady(s->found, version_difference, CS_NONE);
    for (uint32_t slot = 0; slot < s->found->n_slots; slot++)
        sum_up_slot(s, slot);
    for (uint32_t task = 0; task < s->graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(s->graph, task);
        const uint32_t batch = cs_graph_mini_batch(s->graph, task);
        if (cls->weights == CS_NONE || !is_backward(cls) || !in_middle(s->found, batch))
            continue;
        const int64_t delay = cs_staleness_delay(row_at(s->found, batch, cls->weights)->made,
                                                 s->trace->versions[task]);
        cs_slot_staleness *slot = &s->found->slots[cls->weights];
        if (delay != CS_STALENESS_NONE) {
            slot->sum_gradient_delay += delay;
            slot->n_backwards++;
        }
    }
    return find_sequences(s);
}

void cs_staleness_finish(cs_staleness *staleness)
{
    free(staleness->rows);
    free(staleness->slots);
    free(staleness->batches);
    *staleness = (cs_staleness){0};
}

cs_status cs_staleness_find(const cs_graph *graph, const cs_trace *trace, cs_staleness *staleness,
                            cs_error *error)
{
    cs_staleness found = {0};
    study s = {.graph = graph, .trace = trace, .found = &found};
    if (trace->versions && trace->slots && graph->n_slots > 0) {
        found.n_batches = graph->n_batches;
        found.n_slots = graph->n_slots;
        const bool enough = find_all(&s);
        free(s.first_makers);
        free(s.last_makers);
        free(s.fed);
        free(s.made);
        if (!enough) {
            cs_staleness_finish(&found);
            return cs_error_no_memory(error);
        }
    }
    *staleness = found;
    return CS_OK;
}
