#include "sim/core/lower/replace-collectives.h"

#include "sim/base/vector.h"
#include "sim/core/lower/message-classes.h"

#include <stdlib.h>
#include <string.h>

/* Entry of a linked list of tasks. */
typedef struct entry {
    uint32_t task, next; /* position of the next entry, or CS_NONE */
} entry;

/* What a task of the old graph became: tasks that wait for its predecessors, and tasks that its
 * successors wait for. */
typedef struct image {
    uint32_t entries; /* list in lowering.entries, or CS_NONE */
    uint32_t exits[2];
} image;

/* Messages that a rank has received and sent, and that no later message of this rank has waited for
 * yet. */
typedef struct open_list {
    struct {
        uint32_t task, round;
    } * items;
    uint32_t n, capacity;
} open_list;

typedef struct rank_state {
    open_list open, before; /* before: messages that those of round `round` wait for */
    uint32_t round;         /* round of its last message; CS_NONE before the first */
    /* whether the rank entered through a meeting, which its first message waits for */
    bool entered;
} rank_state;

typedef struct lowering {
    const cs_graph *from;
    /* per class: decision for a collective, at its first member; NULL for others */
    cs_way *const *ways;
    cs_builder *to;
    image *images; /* per old task */
    entry *entries;
    uint32_t n_entries, cap_entries;
    uint32_t
        /* per old class: class of its delay or of the rebuilt series; CS_NONE until it is made */
        *delays;
    uint32_t
        *enters; /* per old class: class of the meeting with its effects at the start, or CS_NONE */
    uint32_t *leaves;  /* the same for effects at the end */
    rank_state *ranks; /* scratch, per rank */
    uint32_t n_ranks;
    cs_message_classes messages;
    bool delayed; /* whether a collective becomes one delay */
    bool no_memory;
    uint32_t member; /* first member of the collective being lowered */
} lowering;

/* ---- what stays ---- */

/* Copies a class. A series is copied once the classes of its parts are known. */
static void copy_class(lowering *l, const cs_class *cls)
{
    cs_class copy = *cls;
    copy.series = 0;
    cs_builder_class(l->to, &copy);
    for (uint32_t e = cls->first_effect; e < cls->first_effect + cls->n_effects; e++)
        cs_builder_effect(l->to, l->from->effects[e].category, l->from->effects[e].device,
                          l->from->effects[e].bytes, l->from->effects[e].at_end);
}

/* Copies everything but the tasks. Classes keep their ids. */
static void copy_frame(lowering *l)
{
    const cs_graph *from = l->from;
    if (from->stands_for)
        cs_builder_fold(l->to, from->stands_for);
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
        cs_builder_family(
            l->to,
            cs_builder_group(l->to, from->group_devices + from->groups[i].first, from->groups[i].n),
            from->groups[i].family);
    for (uint32_t i = 0; i < from->n_classes; i++)
        copy_class(l, &from->classes[i]);
}

/* ---- flows ---- */

static void push_open(lowering *l, open_list *list, uint32_t task, uint32_t round)
{
    if (!cs_vector_reserve((void **)&list->items, &list->capacity, list->n + UINT64_C(1),
                           sizeof(*list->items))) {
        l->no_memory = true;
        return;
    }
    list->items[list->n].task = task;
    list->items[list->n++].round = round;
}

static void add_entry(lowering *l, uint32_t member, uint32_t task)
{
    if (!cs_vector_reserve((void **)&l->entries, &l->cap_entries, l->n_entries + UINT64_C(1),
                           sizeof(*l->entries))) {
        l->no_memory = true;
        return;
    }
    l->entries[l->n_entries] = (entry){task, l->images[member].entries};
    l->images[member].entries = l->n_entries++;
}

static const cs_class *class_now(const lowering *l)
{
    return cs_graph_class(l->from, l->member);
}

/* Member of the current collective with the algorithm's rank `rank`. */
static uint32_t member_of(const lowering *l, uint32_t rank)
{
    return l->member + l->ways[l->from->tasks[l->member].cls]->order[rank];
}

static uint32_t device_of(const lowering *l, uint32_t rank)
{
    return l->ways[l->from->tasks[l->member].cls]->devices[rank];
}

/* Class of a message of the collective being lowered. */
static uint32_t message_class(lowering *l, uint32_t from, uint32_t to, int64_t bytes)
{
    const uint32_t id = cs_message_classes_find(&l->messages, class_now(l), from, to, bytes);
    l->no_memory |= l->messages.no_memory;
    return id;
}

/* Adds a meeting: a transfer of no bytes from a rank to itself, at which dependencies join. */
static uint32_t add_meeting(lowering *l, uint32_t rank)
{
    const uint32_t device = device_of(l, rank);
    const uint32_t cls = message_class(l, device, device, 0);
    if (cls == CS_NONE)
        return CS_NONE;
    return cs_builder_task(l->to, cls, l->from->tasks[l->member].item);
}

static const cs_class *class_of(const lowering *l, uint32_t member)
{
    return cs_graph_class(l->from, member);
}

static bool has_effects(const lowering *l, uint32_t member, bool at_end)
{
    const cs_class *cls = class_of(l, member);
    for (uint32_t e = 0; e < cls->n_effects; e++) {
        if (l->from->effects[cls->first_effect + e].at_end == at_end)
            return true;
    }
    return false;
}

/* Copies the effects of a class, at its start or its end, to the class added last. */
static void copy_effects(lowering *l, const cs_class *cls, bool at_end)
{
    for (uint32_t e = cls->first_effect; e < cls->first_effect + cls->n_effects; e++) {
        const cs_effect *effect = &l->from->effects[e];
        if (effect->at_end == at_end)
            cs_builder_effect(l->to, effect->category, effect->device, effect->bytes, at_end);
    }
}

/* Adds a meeting with a member's effects, at its start or its end. */
static uint32_t add_effects(lowering *l, uint32_t member, bool at_end)
{
    const cs_class *of = class_of(l, member);
    const uint32_t old = l->from->tasks[member].cls;
    uint32_t *cls = at_end ? &l->leaves[old] : &l->enters[old];
    if (*cls == CS_NONE) {
        *cls = cs_builder_class(l->to, &(cs_class){.kind = CS_TRANSFER,
                                                   .origin = of->kind,
                                                   .purpose = of->purpose,
                                                   .stage = of->stage,
                                                   .device = of->device,
                                                   .peer = of->device,
                                                   .weights = CS_NONE});
        if (*cls == CS_NONE)
            return CS_NONE;
        copy_effects(l, of, at_end);
    }
    return cs_builder_task(l->to, *cls, l->from->tasks[member].item);
}

/* Moves what is open from earlier rounds to `before`: the messages of this round wait for it. */
static void begin_round(lowering *l, rank_state *rank, uint32_t round)
{
    uint32_t kept = 0;
    rank->before.n = 0;
    for (uint32_t i = 0; i < rank->open.n; i++) {
        if (rank->open.items[i].round == round)
            rank->open.items[kept++] = rank->open.items[i];
        else
            push_open(l, &rank->before, rank->open.items[i].task, rank->open.items[i].round);
    }
    rank->open.n = kept;
    rank->round = round;
}

/* Lets a rank that received before its first message enter through a meeting, which that message
 * waits for. */
static void enter_receiver(lowering *l, uint32_t rank)
{
    const uint32_t meeting = add_meeting(l, rank);
    add_entry(l, member_of(l, rank), meeting);
    push_open(l, &l->ranks[rank].before, meeting, CS_NONE);
}

static bool add_message(void *context, const cs_send *send)
{
    lowering *l = context;
    rank_state *from = &l->ranks[send->from];
    const uint32_t cls =
        message_class(l, device_of(l, send->from), device_of(l, send->to), send->bytes);
    if (cls == CS_NONE)
        return false;
    if (from->round != send->round) {
        const bool first = from->round == CS_NONE && !from->entered;
        begin_round(l, from, send->round);
        if (first && from->before.n > 0)
            enter_receiver(l, send->from);
    }
    const uint32_t task = cs_builder_task(l->to, cls, l->from->tasks[l->member].item);
    for (uint32_t i = 0; i < from->before.n; i++)
        cs_builder_edge(l->to, from->before.items[i].task, task);
    if (from->before.n == 0)
        add_entry(l, member_of(l, send->from), task);
    push_open(l, &from->open, task, send->round);
    push_open(l, &l->ranks[send->to].open, task, send->round);
    return !l->no_memory && task != CS_NONE;
}

static void leave_rank(lowering *l, uint32_t rank)
{
    open_list *open = &l->ranks[rank].open;
    const uint32_t member = member_of(l, rank);
    image *of = &l->images[member];
    const bool effects = has_effects(l, member, true);
    /* The rank has only received. */
    if (l->ranks[rank].round == CS_NONE && !l->ranks[rank].entered) {
        const uint32_t meeting = add_meeting(l, rank);
        add_entry(l, member_of(l, rank), meeting);
        push_open(l, open, meeting, CS_NONE);
    }
    for (uint32_t i = 0; i < 2; i++)
        of->exits[i] = i < open->n ? open->items[i].task : CS_NONE;
    if (open->n <= 2 && !effects)
        return;
    of->exits[0] = effects ? add_effects(l, member, true) : add_meeting(l, rank);
    of->exits[1] = CS_NONE;
    for (uint32_t i = 0; i < open->n; i++)
        cs_builder_edge(l->to, open->items[i].task, of->exits[0]);
}

static void enter_rank(lowering *l, uint32_t rank)
{
    rank_state *state = &l->ranks[rank];
    const uint32_t member = member_of(l, rank);
    state->open.n = state->before.n = 0;
    state->round = CS_NONE;
    l->images[member] = (image){CS_NONE, {CS_NONE, CS_NONE}};
    state->entered = has_effects(l, member, false);
    if (!state->entered)
        return;
    const uint32_t meeting = add_effects(l, member, false);
    add_entry(l, member, meeting);
    push_open(l, &state->open, meeting, CS_NONE);
}

static void lower_to_flows(lowering *l, const cs_way *way)
{
    for (uint32_t rank = 0; rank < way->collective.n; rank++)
        enter_rank(l, rank);
    if (!way->algorithm->walk(&way->collective, add_message, l))
        return;
    for (uint32_t rank = 0; rank < way->collective.n; rank++)
        leave_rank(l, rank);
}

/* ---- one delay ---- */

static uint32_t make_delay(lowering *l, const cs_way *way, const cs_class *of)
{
    return cs_builder_class(l->to, &(cs_class){.kind = CS_TRANSFER,
                                               .origin = of->kind,
                                               .purpose = of->purpose,
                                               .stage = of->stage,
                                               .device = of->device,
                                               .peer = of->device,
                                               .weights = CS_NONE,
                                               .ranks = of->peer + 1,
                                               .duration = way->cost,
                                               .hidden = way->hidden});
}

/* Class of the delay, with the effects that all members have at their ends. */
static uint32_t delay_class(lowering *l, const cs_way *way)
{
    uint32_t *cls = &l->delays[l->from->tasks[l->member].cls];
    if (*cls != CS_NONE)
        return *cls;
    *cls = make_delay(l, way, class_now(l));
    for (uint32_t i = 0; i < way->n_members && *cls != CS_NONE; i++)
        copy_effects(l, class_of(l, l->member + i), true);
    return *cls;
}

static void lower_to_delay(lowering *l, const cs_way *way)
{
    const uint32_t cls = delay_class(l, way), n = way->n_members;
    if (cls == CS_NONE)
        return;
    for (uint32_t member = l->member; member < l->member + n; member++) {
        const uint32_t meeting =
            has_effects(l, member, false) ? add_effects(l, member, false) : CS_NONE;
        l->images[member] = (image){CS_NONE, {meeting, CS_NONE}};
    }
    const uint32_t task = cs_builder_task(l->to, cls, l->from->tasks[l->member].item);
    for (uint32_t member = l->member; member < l->member + n; member++) {
        const uint32_t meeting = l->images[member].exits[0];
        add_entry(l, member, meeting == CS_NONE ? task : meeting);
        cs_builder_edge(l->to, meeting, task);
        l->images[member].exits[0] = task;
    }
}

/* ---- series ---- */

/* Class that a part of a series becomes. A delay waits for no other simulated rank, so it also has
 * the effects at its start. */
static uint32_t part_class(lowering *l, uint32_t old)
{
    const cs_class *of = &l->from->classes[old];
    if (cs_kind_group_of(of->kind) != CS_GROUP_COLLECTIVE)
        return old;
    if (l->delays[old] == CS_NONE) {
        l->delays[old] = make_delay(l, l->ways[old], of);
        if (l->delays[old] != CS_NONE) {
            copy_effects(l, of, false);
            copy_effects(l, of, true);
        }
    }
    return l->delays[old];
}

/* New class of a task that is not a collective. */
static uint32_t same_class(lowering *l, uint32_t old)
{
    const cs_class *of = &l->from->classes[old];
    if (of->series == 0 || l->delays[old] != CS_NONE)
        return of->series == 0 ? old : l->delays[old];
    const cs_series *series = &l->from->series[of->series - 1];
    cs_series_part *parts = malloc(series->n * sizeof(*parts));
    bool enough = parts != NULL;
    for (uint32_t i = 0; enough && i < series->n; i++) {
        parts[i] = l->from->parts[series->first + i];
        parts[i].cls = part_class(l, parts[i].cls);
        enough = parts[i].cls != CS_NONE;
    }
    if (enough)
        l->delays[old] = cs_builder_series(l->to, parts, series->n, series->n_tasks);
    l->no_memory |= !enough;
    free(parts);
    return l->delays[old];
}

/* ---- the graph ---- */

/* Whether memory ran out. Tasks not lowered by then have no image. */
static bool has_failed(const lowering *l)
{
    return l->no_memory || cs_builder_failed(l->to);
}

static void lower_tasks(lowering *l)
{
    for (uint32_t task = 0; task < l->from->n_tasks && !has_failed(l);) {
        const cs_task *record = &l->from->tasks[task];
        if (cs_kind_group_of(l->from->classes[record->cls].kind) != CS_GROUP_COLLECTIVE) {
            const uint32_t cls = same_class(l, record->cls);
            const uint32_t made =
                cls == CS_NONE ? CS_NONE : cs_builder_task(l->to, cls, record->item);
            l->images[task] = (image){CS_NONE, {made, CS_NONE}};
            add_entry(l, task++, made);
            continue;
        }
        const cs_way *way = l->ways[record->cls];
        l->member = task;
        if (l->delayed)
            lower_to_delay(l, way);
        else
            lower_to_flows(l, way);
        task += way->n_members;
    }
}

static void lower_edges(lowering *l)
{
    for (uint32_t task = 0; task < l->from->n_tasks && !has_failed(l); task++) {
        const image *before = &l->images[task];
        uint32_t n;
        const uint32_t *successors = cs_graph_successors(l->from, task, &n);
        for (uint32_t s = 0; s < n; s++) {
            for (uint32_t e = l->images[successors[s]].entries; e != CS_NONE;
                 e = l->entries[e].next) {
                cs_builder_edge(l->to, before->exits[0], l->entries[e].task);
                cs_builder_edge(l->to, before->exits[1], l->entries[e].task);
            }
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

static bool reserve(lowering *l)
{
    const size_t classes = (size_t)l->from->n_classes + 1;
    l->n_ranks = largest_group(l->from);
    l->to = cs_builder_create(l->from->n_devices, l->from->n_stages, l->from->micro_batches,
                              l->from->n_batches);
    l->messages.to = l->to;
    l->images = malloc(((size_t)l->from->n_tasks + 1) * sizeof(*l->images));
    l->delays = malloc(classes * sizeof(*l->delays));
    l->enters = malloc(classes * sizeof(*l->enters));
    l->leaves = malloc(classes * sizeof(*l->leaves));
    l->ranks = calloc(l->n_ranks, sizeof(*l->ranks));
    uint32_t *const none[] = {l->delays, l->enters, l->leaves};
    for (size_t i = 0; i < 3; i++) {
        if (none[i])
            memset(none[i], 0xff, classes * sizeof(*none[i]));
    }
    return l->to && l->images && l->delays && l->enters && l->leaves && l->ranks;
}

static void release(lowering *l)
{
    cs_builder_destroy(l->to);
    cs_message_classes_finish(&l->messages);
    for (uint32_t i = 0; l->ranks && i < l->n_ranks; i++) {
        free(l->ranks[i].open.items);
        free(l->ranks[i].before.items);
    }
    free(l->images);
    free(l->entries);
    free(l->delays);
    free(l->enters);
    free(l->leaves);
    free(l->ranks);
}

static cs_status replace(lowering *l, cs_graph *lowered, cs_error *error)
{
    if (!reserve(l))
        return cs_error_no_memory(error);
    cs_builder_reserve(l->to, l->from->n_classes, l->from->n_effects, l->from->n_tasks);
    copy_frame(l);
    lower_tasks(l);
    lower_edges(l);
    return l->no_memory ? cs_error_no_memory(error) : cs_builder_finish(l->to, lowered, error);
}

cs_status cs_collectives_replace(const cs_graph *graph, cs_way *const *ways, bool delayed,
                                 cs_graph *lowered, cs_error *error)
{
    lowering l = {.from = graph, .ways = ways, .delayed = delayed};
    const cs_status status = replace(&l, lowered, error);
    release(&l);
    return status;
}
