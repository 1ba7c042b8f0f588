#include "sim/lower/lower.h"

#include "sim/graph/builder.h"

#include <stdlib.h>
#include <string.h>

/* What the tasks of the old graph became. A compute task or transfer is one new task. A member of a
 * collective is entered by its rank's first send and left by two tasks: what the rank received
 * last, and its own last send. */
typedef struct image {
    uint32_t entry;
    uint32_t exits[2]; /* CS_NONE where there is none */
} image;

typedef struct lowering {
    const cs_graph *from;
    cs_builder *to;
    image *images; /* per old task */
    uint32_t
        *rings; /* per old class of a collective's first member: its classes of sends, or CS_NONE */
    uint32_t *sends;  /* scratch: per rank, its send of the previous step */
    uint32_t *latest; /* scratch: per rank, its send of this step */
} lowering;

static bool has_collectives(const cs_graph *graph)
{
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        if (cs_kind_group_of(graph->classes[i].kind) == CS_GROUP_COLLECTIVE)
            return true;
    }
    return false;
}

/* Everything but the tasks is taken over as it is; classes keep their ids. */
static void copy_frame(lowering *l)
{
    const cs_graph *from = l->from;
    for (uint32_t i = 0; i < from->n_devices; i++)
        cs_builder_queue(l->to, i, from->queues[i]);
    for (uint32_t i = 0; i < from->n_residents; i++)
        cs_builder_resident(l->to, from->residents[i].device, from->residents[i].category,
                            from->residents[i].bytes);
    for (uint32_t i = 0; i < from->n_slots; i++) {
        const cs_slot *slot = &from->slots[i];
        uint32_t id = cs_builder_slot(l->to, slot->stage, slot->device, slot->bytes);
        cs_builder_retain(l->to, id, slot->newest, slot->behind);
    }
    for (uint32_t i = 0; i < from->n_policies; i++)
        cs_builder_policy(l->to, &from->policies[i]);
    for (uint32_t i = 0; i < from->n_registers; i++)
        cs_builder_register(l->to);
    for (uint32_t i = 0; i < from->n_groups; i++)
        cs_builder_group(l->to, from->group_devices + from->groups[i].first, from->groups[i].n);
    for (uint32_t i = 0; i < from->n_classes; i++) {
        const cs_class *cls = &from->classes[i];
        cs_builder_class(l->to, cls);
        for (uint32_t e = cls->first_effect; e < cls->first_effect + cls->n_effects; e++)
            cs_builder_effect(l->to, from->effects[e].category, from->effects[e].device,
                              from->effects[e].bytes, from->effects[e].at_end);
    }
}

/* Classes of the ring's sends: per rank one for chunks of the larger size and one for the smaller.
 */
static uint32_t make_ring_classes(lowering *l, const cs_class *cls, cs_group ring)
{
    const uint32_t *devices = l->from->group_devices + ring.first;
    uint32_t first = CS_NONE;
    for (uint32_t larger = 0; larger < 2; larger++) {
        for (uint32_t rank = 0; rank < ring.n; rank++) {
            cs_class send = {.kind = CS_TRANSFER,
                             .origin = cls->kind,
                             .stage = cls->stage,
                             .device = devices[rank],
                             .peer = devices[(rank + 1) % ring.n],
                             .weights = CS_NONE,
                             .bytes = cls->bytes / ring.n + larger};
            uint32_t id = cs_builder_class(l->to, &send);
            first = first == CS_NONE ? id : first;
        }
    }
    return first;
}

/* One step of the ring: every rank sends a chunk on. In step k rank r sends chunk r - k, the one
 * that came to it in step k - 1. */
static void ring_step(lowering *l, uint32_t first_member, uint32_t classes, cs_group ring,
                      uint32_t step, uint32_t larger_chunks)
{
    uint32_t n = ring.n, item = l->from->tasks[first_member].item;
    for (uint32_t rank = 0; rank < n; rank++) {
        uint32_t chunk = (rank + 2 * n - step) % n;
        uint32_t cls = classes + (chunk < larger_chunks ? n : 0) + rank;
        l->latest[rank] = cs_builder_task(l->to, cls, item);
        if (step == 0) {
            l->images[first_member + rank].entry = l->latest[rank];
            continue;
        }
        cs_builder_edge(l->to, l->sends[(rank + n - 1) % n], l->latest[rank]);
        cs_builder_edge(l->to, l->sends[rank], l->latest[rank]);
    }
    uint32_t *swap = l->sends;
    l->sends = l->latest;
    l->latest = swap;
}

/* The collective whose members begin at `member`; returns the task after its last member. */
static uint32_t lower_ring(lowering *l, uint32_t member)
{
    const cs_class *cls = cs_graph_class(l->from, member);
    cs_group ring = l->from->groups[cls->peer];
    uint32_t *classes = &l->rings[l->from->tasks[member].cls];
    if (*classes == CS_NONE)
        *classes = make_ring_classes(l, cls, ring);
    for (uint32_t step = 0; step < 2 * (ring.n - 1); step++)
        ring_step(l, member, *classes, ring, step, (uint32_t)(cls->bytes % ring.n));
    for (uint32_t rank = 0; rank < ring.n; rank++) {
        image *of = &l->images[member + rank];
        of->exits[0] = l->sends[(rank + ring.n - 1) % ring.n];
        of->exits[1] = l->sends[rank];
    }
    return member + ring.n;
}

static void lower_tasks(lowering *l)
{
    for (uint32_t task = 0; task < l->from->n_tasks;) {
        const cs_task *record = &l->from->tasks[task];
        if (cs_kind_group_of(l->from->classes[record->cls].kind) == CS_GROUP_COLLECTIVE) {
            task = lower_ring(l, task);
            continue;
        }
        uint32_t made = cs_builder_task(l->to, record->cls, record->item);
        l->images[task++] = (image){made, {made, CS_NONE}};
    }
}

static void lower_edges(lowering *l)
{
    for (uint32_t task = 0; task < l->from->n_tasks; task++) {
        const image *before = &l->images[task];
        uint32_t n;
        const uint32_t *successors = cs_graph_successors(l->from, task, &n);
        for (uint32_t s = 0; s < n; s++) {
            uint32_t entry = l->images[successors[s]].entry;
            cs_builder_edge(l->to, before->exits[0], entry);
            cs_builder_edge(l->to, before->exits[1], entry);
        }
    }
}

static uint32_t largest_group(const cs_graph *graph)
{
    uint32_t largest = 1;
    for (uint32_t i = 0; i < graph->n_groups; i++)
        largest = graph->groups[i].n > largest ? graph->groups[i].n : largest;
    return largest;
}

/* How many tasks there will be, before the first is made: a ring has 2n(n - 1) sends, and with a
 * million ranks it would be hours until the ids are used up. */
static cs_status check_size(const cs_graph *graph, cs_error *error)
{
    double tasks = 0;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        bool member = cs_kind_group_of(cls->kind) == CS_GROUP_COLLECTIVE;
        tasks += member ? 2.0 * (graph->groups[cls->peer].n - 1) : 1;
    }
    if (tasks < CS_LIST)
        return CS_OK;
    return cs_error_add(error, CS_FAILED,
                        "too large to simulate: the collectives take %.2g messages, more than %.2g",
                        tasks, (double)CS_LIST);
}

static cs_status lower_graph(lowering *l, cs_graph *lowered, cs_error *error)
{
    size_t ranks = largest_group(l->from);
    l->to = cs_builder_create(l->from->n_devices, l->from->n_stages, l->from->micro_batches,
                              l->from->n_batches);
    l->images = malloc(((size_t)l->from->n_tasks + 1) * sizeof(*l->images));
    size_t ring_bytes = ((size_t)l->from->n_classes + 1) * sizeof(*l->rings);
    l->rings = malloc(ring_bytes);
    l->sends = malloc(ranks * sizeof(*l->sends));
    l->latest = malloc(ranks * sizeof(*l->latest));
    if (!l->to || !l->images || !l->rings || !l->sends || !l->latest)
        return cs_error_no_memory(error);
    memset(l->rings, 0xff, ring_bytes);
    copy_frame(l);
    lower_tasks(l);
    lower_edges(l);
    return cs_builder_finish(l->to, lowered, error);
}

cs_status cs_lower(cs_graph *graph, cs_graph *lowered, cs_error *error)
{
    if (!has_collectives(graph)) {
        *lowered = *graph;
        *graph = (cs_graph){0};
        return CS_OK;
    }
    cs_status status = check_size(graph, error);
    if (status != CS_OK)
        return status;
    lowering l = {.from = graph};
    status = lower_graph(&l, lowered, error);
    cs_builder_destroy(l.to);
    free(l.images);
    free(l.rings);
    free(l.sends);
    free(l.latest);
    if (status == CS_OK)
        cs_graph_finish(graph);
    return status;
}
