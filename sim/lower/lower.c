#include "sim/lower/lower.h"

#include "sim/base/hash.h"
#include "sim/base/vector.h"
#include "sim/graph/builder.h"
#include "sim/lower/alike.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const algorithm_names[] = {
    "auto",      "usual",  "ring",         "halving",       "tree",          "hierarchical",
    "segmented", "direct", "ring_per_nic", "once_per_node", "ring_per_link", NULL};
static const char *const gradients_names[] = {
    "algorithm", "auto",   "usual",        "ring",          "halving",       "tree", "hierarchical",
    "segmented", "direct", "ring_per_nic", "once_per_node", "ring_per_link", NULL};
static const char *const fidelity_names[] = {"auto", "flow", "analytic", "alpha_beta", NULL};
static const char *const sharing_names[] = {"platform", "max_min", NULL};
static const char *const nccl_names[] = {"none", "volta", "ampere", "hopper", NULL};
static const char *const nccl_algorithm_names[] = {"auto", "tree", "ring", "nvls", NULL};
static const char *const order_names[] = {"given", "found", "auto", NULL};

const cs_field cs_lower_level_fields[] = {
    {"alpha", CS_FIELD_TIME, offsetof(cs_alpha_beta, alpha), .fallback = "0 s",
     .doc = "time of a message that does not depend on its size"},
    {"bandwidth", CS_FIELD_BANDWIDTH, offsetof(cs_alpha_beta, bandwidth), .above_min = true,
     .doc = "1 / beta"},
    {0}};

const cs_field cs_lower_dispatch_fields[] = {
    {"reached", CS_FIELD_NUMBER, offsetof(cs_dispatch_cost, reached), .fallback = "1",
     .above_min = true, .max = 1, .doc = "fraction of the links' bandwidths that it reaches"},
    {"start", CS_FIELD_TIME, offsetof(cs_dispatch_cost, start), .fallback = "0",
     .doc = "time that does not depend on its size"},
    {0}};

#define LEVEL(key, number)                                                                         \
    {                                                                                              \
        key, CS_FIELD_OBJECT,                                                                      \
            offsetof(cs_given_levels, level) + (number) * sizeof(cs_alpha_beta *),                 \
            .fallback = "", .of = cs_lower_level_fields, .size = sizeof(cs_alpha_beta)             \
    }

static const cs_field levels_fields[] = {LEVEL("gpu_pair", CS_LEVEL_GPU_PAIR),
                                         LEVEL("node", CS_LEVEL_NODE),
                                         LEVEL("rack", CS_LEVEL_RACK),
                                         LEVEL("system", CS_LEVEL_SYSTEM),
                                         {0}};

const cs_field cs_lower_fields[] = {
    {"algorithm", CS_FIELD_CHOICE, offsetof(cs_lower_options, algorithm), .fallback = "usual",
     .choices = algorithm_names,
     .doc = "algorithm of all collectives; if named, it must fit all of them; usual: ring_per_nic, "
            "else ring_per_link (except on a ring or torus), else ring, else direct (all_to_all: "
            "direct, or as \"dispatcher\" says); auto: the fastest when nothing else runs"},
    {"gradients", CS_FIELD_CHOICE, offsetof(cs_lower_options, gradients), .fallback = "algorithm",
     .choices = gradients_names,
     .doc = "algorithm of weight-gradient reductions; algorithm: the same as for all others; "
            "hierarchical: through one leader per node; segmented: through all devices of a node "
            "(multi-leader)"},
    {"chunks", CS_FIELD_COUNT, offsetof(cs_lower_options, chunks), .fallback = "0", .max = 4096,
     .doc = "number of chunks into which chains and trees cut the vector; 0: the fastest of 1, 4, "
            "16 and 64"},
    {"fidelity", CS_FIELD_CHOICE, offsetof(cs_lower_options, fidelity), .fallback = "auto",
     .choices = fidelity_names,
     .doc = "flow: every message is simulated; analytic: a collective is one delay, its time when "
            "nothing runs but the same collective in other groups of the mesh; alpha_beta: one "
            "delay by the alpha-beta model; auto: analytic with \"reached\", \"start\", "
            "\"tensor_overlap\", \"expert_overlap\" or \"nccl\", which apply to delays only, or "
            "above most_flows; else flow"},
    {"order", CS_FIELD_CHOICE, offsetof(cs_lower_options, order), .fallback = "auto",
     .choices = order_names,
     .doc = "order of the ranks; found: each is followed by the nearest one left; auto: as found "
            "within each node if a ring per NIC is possible, else given"},
    {"sharing", CS_FIELD_CHOICE, offsetof(cs_lower_options, sharing), .fallback = "platform",
     .choices = sharing_names,
     .doc = "how the messages of collectives that are one delay share links; platform: as all "
            "transfers do; max_min: fairly, even if other transfers do not share links"},
    {"reached", CS_FIELD_VARIANT, offsetof(cs_lower_options, reached), .fallback = "1",
     .size = sizeof(cs_reached), .kind = &cs_reached_kind,
     .doc = "fraction of the links' bandwidths that a collective reaches, if it is one delay; or a "
            "fraction for each level of its messages, by default that of the next nearer level",
     .shape = "a number > 0 and <= 1, or {gpu_pair, node, rack, system: number}"},
    {"tensor_overlap", CS_FIELD_NUMBER, offsetof(cs_lower_options, tensor_overlap), .fallback = "0",
     .max = 1,
     .doc = "share of a tensor-parallel collective that products hide, not counting the first of "
            "its chunks (as many as ranks); only if it is one delay"},
    {"expert_overlap", CS_FIELD_NUMBER, offsetof(cs_lower_options, expert_overlap), .fallback = "0",
     .max = 1,
     .doc = "share of an all_to_all of experts that layers of another micro-batch hide; only if it "
            "is one delay"},
    {"start", CS_FIELD_TIME, offsetof(cs_lower_options, start), .fallback = "0",
     .doc =
         "time until the kernel of a collective has started on all ranks; only if it is one delay"},
    {"dispatch", CS_FIELD_OBJECT, offsetof(cs_lower_options, dispatch), .fallback = "",
     .of = cs_lower_dispatch_fields, .size = sizeof(cs_dispatch_cost),
     .doc = "for an all_to_all by once_per_node that leaves a node and is one delay: values that "
            "replace reached and start",
     .shape = "{dispatch}"},
    {"nccl", CS_FIELD_CHOICE, offsetof(cs_lower_options, nccl), .fallback = "none",
     .choices = nccl_names,
     .doc = "latencies, protocols and thresholds of NCCL on GPUs of this generation, instead of "
            "the links' latencies; for each all_reduce, all_gather or reduce_scatter that is one "
            "delay and would use rings"},
    {"nccl_algorithm", CS_FIELD_CHOICE, offsetof(cs_lower_options, nccl_algorithm),
     .fallback = "auto", .choices = nccl_algorithm_names,
     .doc = "with nccl: the algorithm, as NCCL_ALGO sets it; auto: the fastest; nvls: sums within "
            "NVSwitches, for hopper; ring is used for collectives that the algorithm does not do"},
    {"most_flows", CS_FIELD_COUNT, offsetof(cs_lower_options, most_flows), .fallback = "4000000",
     .doc = "with fidelity auto: largest number of messages in a run for which each is simulated"},
    {"levels", CS_FIELD_OBJECT, offsetof(cs_lower_options, given), .fallback = "",
     .of = levels_fields, .size = sizeof(cs_given_levels),
     .doc = "alpha and beta for alpha_beta; default for a level: those of a message's route",
     .shape = "{gpu_pair, node, rack, system: {level}}"},
    {0}};

cs_status cs_lower_read(const cJSON *value, const cs_json_place *place, cs_arena *arena,
                        cs_lower_options *options, cs_error *error)
{
    const cs_json_place levels = {.up = place, .key = "levels"};
    cs_status status = cs_field_read(value, place, (const cs_field *const[]){cs_lower_fields, NULL},
                                     (void *const[]){options}, arena, error);
    if (status != CS_OK || !options->given)
        return status;
    if (options->fidelity != CS_FIDELITY_ALPHA_BETA)
        return cs_json_invalid(&levels, error, "goes with \"fidelity\": \"alpha_beta\" only");
    for (uint32_t i = 0; i < CS_N_LEVELS; i++) {
        if (options->given->level[i])
            options->levels[i] = *options->given->level[i];
    }
    return CS_OK;
}

const char *cs_fidelity_name(cs_fidelity fidelity)
{
    return fidelity_names[fidelity];
}

/* A task in a list of several. */
typedef struct entry {
    uint32_t task, next; /* position of the next one, or CS_NONE */
} entry;

/* What the tasks of the old graph became: what must wait for their predecessors, and what their
 * successors wait for. */
typedef struct image {
    uint32_t entries; /* in lowering.entries, or CS_NONE */
    uint32_t exits[2];
} image;

/* What a rank has received and sent that no later message of it has waited for yet. */
typedef struct open_list {
    struct {
        uint32_t task, round;
    } * items;
    uint32_t n, capacity;
} open_list;

typedef struct rank_state {
    open_list open, before; /* before: what messages of round `round` wait for */
    uint32_t round;         /* of its last message; CS_NONE before the first */
    bool entered;           /* by a meeting, which its first message waits for */
} rank_state;

/* Classes of messages, by what they are: a table with open addressing. */
typedef struct class_table {
    uint32_t *slots; /* position in `made`, or CS_NONE */
    uint32_t n, capacity;
} class_table;

/* A class of messages: a copy, and its id in the new graph. */
typedef struct made_message {
    cs_class cls;
    uint32_t id;
} made_message;

typedef struct lowering {
    const cs_graph *from;
    const cs_platform *platform;
    const cs_lower_options *options;
    cs_prices prices;
    cs_builder *to;
    image *images; /* per old task */
    entry *entries;
    uint32_t n_entries, cap_entries;
    cs_way **ways; /* per old class of first members of collectives; NULL for others */
    uint32_t
        *delays; /* per old class: that of its delay, or of the series that it is; or CS_NONE */
    uint32_t
        *enters; /* per old class: that of the meeting with its effects at the start, or CS_NONE */
    uint32_t *leaves;  /* the same of those at the end */
    rank_state *ranks; /* scratch, per rank */
    uint32_t n_ranks;
    class_table classes;
    made_message *made; /* in the order in which they were made */
    uint32_t n_made, cap_made;
    bool delayed; /* a collective becomes one delay */
    bool no_memory;
    uint32_t member; /* of the collective that is being lowered: its first member */
} lowering;

static bool has_collectives(const cs_graph *graph)
{
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        if (cs_kind_group_of(graph->classes[i].kind) == CS_GROUP_COLLECTIVE)
            return true;
    }
    return false;
}

/* A class is taken over as it is; one that is a series when its parts are known. */
static void copy_class(lowering *l, const cs_class *cls)
{
    cs_class copy = *cls;
    copy.series = 0;
    cs_builder_class(l->to, &copy);
    for (uint32_t e = cls->first_effect; e < cls->first_effect + cls->n_effects; e++)
        cs_builder_effect(l->to, l->from->effects[e].category, l->from->effects[e].device,
                          l->from->effects[e].bytes, l->from->effects[e].at_end);
}

/* Everything but the tasks is taken over as it is; classes keep their ids. */
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

/* ---- classes of messages ---- */

static uint32_t slot_of(const class_table *table, const cs_class *cls)
{
    const int64_t key[] = {cls->device, cls->peer,   cls->bytes,
                           cls->stage,  cls->origin, cls->purpose};
    return (uint32_t)cs_hash_bytes(key, sizeof(key), 0) & (table->capacity - 1);
}

static bool grow_table(lowering *l)
{
    class_table grown = {.capacity = l->classes.capacity ? 2 * l->classes.capacity : 1024};
    grown.slots = malloc(grown.capacity * sizeof(*grown.slots));
    if (!grown.slots)
        return false;
    memset(grown.slots, 0xff, grown.capacity * sizeof(*grown.slots));
    for (uint32_t i = 0; i < l->classes.capacity; i++) {
        const uint32_t number = l->classes.slots[i];
        if (number == CS_NONE)
            continue;
        uint32_t at = slot_of(&grown, &l->made[number].cls);
        while (grown.slots[at] != CS_NONE)
            at = (at + 1) & (grown.capacity - 1);
        grown.slots[at] = number;
    }
    grown.n = l->classes.n;
    free(l->classes.slots);
    l->classes = grown;
    return true;
}

/* The class of messages of a collective between two devices; made when it is asked for first. */
static uint32_t message_class(lowering *l, const cs_class *of, uint32_t from, uint32_t to,
                              int64_t bytes)
{
    const cs_class made = {.kind = CS_TRANSFER,
                           .origin = of->kind,
                           .purpose = of->purpose,
                           .stage = of->stage,
                           .device = from,
                           .peer = to,
                           .weights = CS_NONE,
                           .bytes = bytes};
    if ((2 * l->classes.n >= l->classes.capacity && !grow_table(l)) ||
        !cs_vector_reserve((void **)&l->made, &l->cap_made, l->n_made + UINT64_C(1),
                           sizeof(*l->made))) {
        l->no_memory = true;
        return CS_NONE;
    }
    uint32_t at = slot_of(&l->classes, &made);
    for (; l->classes.slots[at] != CS_NONE; at = (at + 1) & (l->classes.capacity - 1)) {
        const cs_class *have = &l->made[l->classes.slots[at]].cls;
        if (have->device == from && have->peer == to && have->bytes == bytes &&
            have->stage == of->stage && have->origin == of->kind && have->purpose == of->purpose)
            return l->made[l->classes.slots[at]].id;
    }
    const uint32_t id = cs_builder_class(l->to, &made);
    if (id == CS_NONE)
        return CS_NONE;
    l->classes.slots[at] = l->n_made;
    l->made[l->n_made++] = (made_message){made, id};
    l->classes.n++;
    return id;
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

/* The rank of the group that the algorithm calls `rank`. */
static uint32_t member_of(const lowering *l, uint32_t rank)
{
    return l->member + l->ways[l->from->tasks[l->member].cls]->order[rank];
}

static uint32_t device_of(const lowering *l, uint32_t rank)
{
    return l->ways[l->from->tasks[l->member].cls]->devices[rank];
}

/* A transfer of nothing from a rank to itself: a point where things meet. */
static uint32_t add_meeting(lowering *l, uint32_t rank)
{
    const uint32_t device = device_of(l, rank);
    const uint32_t cls = message_class(l, class_now(l), device, device, 0);
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

/* Gives the class that was added last the effects of another, at its start or at its end. */
static void copy_effects(lowering *l, const cs_class *cls, bool at_end)
{
    for (uint32_t e = cls->first_effect; e < cls->first_effect + cls->n_effects; e++) {
        const cs_effect *effect = &l->from->effects[e];
        if (effect->at_end == at_end)
            cs_builder_effect(l->to, effect->category, effect->device, effect->bytes, at_end);
    }
}

/* A meeting with a member's effects, at its start or at its end. */
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

/* Puts aside what the messages of this round wait for: all that is open from earlier rounds. */
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

/* A rank that received before its first message enters by a meeting, which that message waits for.
 */
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
    const uint32_t cls = message_class(l, class_now(l), device_of(l, send->from),
                                       device_of(l, send->to), send->bytes);
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
    if (l->ranks[rank].round == CS_NONE && !l->ranks[rank].entered) { /* has only received */
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
                                               .duration = way->cost});
}

/* Its class has the effects that all members have at their ends. */
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

/* What becomes of a part: a delay, which waits for no other rank that is simulated, has the effects
 * at its start as well. */
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

/* The class of a task that is not a collective. */
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

/* What was not lowered yet has no image. */
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
    l->images = malloc(((size_t)l->from->n_tasks + 1) * sizeof(*l->images));
    l->ways = calloc(classes, sizeof(*l->ways));
    l->delays = malloc(classes * sizeof(*l->delays));
    l->enters = malloc(classes * sizeof(*l->enters));
    l->leaves = malloc(classes * sizeof(*l->leaves));
    l->ranks = calloc(l->n_ranks, sizeof(*l->ranks));
    uint32_t *const none[] = {l->delays, l->enters, l->leaves};
    for (size_t i = 0; i < 3; i++) {
        if (none[i])
            memset(none[i], 0xff, classes * sizeof(*none[i]));
    }
    return l->to && l->images && l->ways && l->delays && l->enters && l->leaves && l->ranks;
}

static void release(lowering *l)
{
    cs_builder_destroy(l->to);
    cs_prices_finish(&l->prices);
    for (uint32_t i = 0; l->ways && i < l->from->n_classes; i++) {
        if (l->ways[i])
            cs_way_finish(l->ways[i]);
        free(l->ways[i]);
    }
    for (uint32_t i = 0; l->ranks && i < l->n_ranks; i++) {
        free(l->ranks[i].open.items);
        free(l->ranks[i].before.items);
    }
    free(l->images);
    free(l->entries);
    free(l->ways);
    free(l->delays);
    free(l->enters);
    free(l->leaves);
    free(l->ranks);
    free(l->classes.slots);
    free(l->made);
}

/* "ring, direct" */
static void note_algorithm(cs_lower_report *report, const char *name)
{
    const size_t used = strlen(report->algorithms), length = strlen(name);
    const char *at = report->algorithms;
    while (*at && (strncmp(at, name, length) != 0 || (at[length] != ',' && at[length] != '\0')))
        at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' ');
    if (*at == '\0')
        (void)snprintf(report->algorithms + used, sizeof(report->algorithms) - used, "%s%s",
                       used > 0 ? ", " : "", name);
}

/* Counts a collective that is one delay by where its time comes from. */
static void note_measured(const cs_way *way, cs_lower_report *report)
{
    if (way->measured) {
        const int64_t largest = way->measured->largest;
        report->n_measured++;
        report->n_extrapolated += largest > 0 && way->collective.bytes > largest;
        return;
    }
    uint32_t i = 0;
    for (; i < report->n_unmeasured && i < CS_UNMEASURED_MAX; i++) {
        const cs_unmeasured *at = &report->unmeasured[i];
        if (at->kind == way->collective.kind && at->network == way->network &&
            at->ranks == way->collective.n)
            break;
    }
    if (i == report->n_unmeasured && i < CS_UNMEASURED_MAX)
        report->unmeasured[report->n_unmeasured++] =
            (cs_unmeasured){way->collective.kind, way->network, way->collective.n, 0};
    if (i < CS_UNMEASURED_MAX)
        report->unmeasured[i].count++;
}

/* Each collective under what NCCL picked for it. */
static void count_choices(const lowering *l, cs_lower_report *report)
{
    for (uint32_t task = 0; task < l->from->n_tasks;) {
        const cs_way *way = l->ways[l->from->tasks[task].cls];
        if (way && way->by_nccl)
            report->nccl[way->choice.algorithm][way->choice.protocol]++;
        task += way ? way->n_members : 1;
    }
}

static void count_measured(const lowering *l, cs_lower_report *report)
{
    for (uint32_t task = 0; task < l->from->n_tasks;) {
        const cs_way *way = l->ways[l->from->tasks[task].cls];
        if (way)
            note_measured(way, report);
        task += way ? way->n_members : 1;
    }
}

/* Ranks that a collective's members stand for, over the ranks that one has. */
static double collectives_of(const cs_graph *graph, const cs_group *group, const uint32_t *times)
{
    double ranks = 0;
    for (uint32_t rank = 0; rank < group->n; rank++)
        ranks += times[graph->group_devices[group->first + rank]];
    return ranks / group->n;
}

static cs_status count_moved(const cs_graph *graph, cs_way *const *ways, cs_lower_report *report,
                             cs_error *error)
{
    uint32_t *times = malloc(((size_t)graph->n_devices + 1) * sizeof(*times));
    double *moved = calloc((size_t)graph->n_classes + 1, sizeof(*moved));
    if (!times || !moved) {
        free(times);
        free(moved);
        return cs_error_no_memory(error);
    }
    cs_graph_count_devices(graph, times);
    for (uint32_t i = 0; i < graph->n_classes; i++) {
        const cs_class *cls = &graph->classes[i];
        if (cls->kind == CS_TRANSFER)
            moved[i] = (double)cls->bytes * times[cls->device];
        else if (ways && ways[i])
            moved[i] = cs_algorithm_bytes(ways[i]->algorithm, &ways[i]->collective) *
                       collectives_of(graph, &graph->groups[cls->peer], times);
    }
    for (uint32_t task = 0; task < graph->n_tasks; task++)
        report->moved[cs_graph_class(graph, task)->purpose] += moved[graph->tasks[task].cls];
    free(times);
    free(moved);
    return CS_OK;
}

/* Whether something is given that only delays have. */
static bool asks_for_delays(const cs_lower_options *options)
{
    return cs_reached_is_less(&options->reached) || options->start > 0 ||
           options->tensor_overlap > 0 || options->expert_overlap > 0 ||
           options->nccl != CS_NCCL_NONE;
}

static cs_fidelity fidelity_of(const lowering *l, const cs_lower_report *report)
{
    if (l->options->fidelity != CS_FIDELITY_AUTO)
        return (cs_fidelity)l->options->fidelity;
    return l->from->stands_for || asks_for_delays(l->options) ||
                   report->n_flows > l->options->most_flows
               ? CS_FIDELITY_ANALYTIC
               : CS_FIDELITY_FLOW;
}

static cs_status too_large(double tasks, cs_error *error)
{
    return cs_error_add(error, CS_FAILED,
                        "too large to simulate: the collectives take %.2g messages, more than %.2g",
                        tasks, (double)CS_LIST);
}

/* Of a class of collectives, if it has not been decided on yet. */
static cs_status decide_class(lowering *l, uint32_t cls, cs_lower_report *report, cs_error *error)
{
    if (l->ways[cls])
        return CS_OK;
    cs_way *way = l->ways[cls] = calloc(1, sizeof(*way));
    if (!way)
        return cs_error_no_memory(error);
    CS_TRY(cs_way_decide(&l->prices, &l->from->classes[cls], way, error));
    report->one_nic |= way->one_nic;
    return CS_OK;
}

static cs_status decide_parts(lowering *l, cs_lower_report *report, cs_error *error)
{
    for (uint32_t i = 0; i < l->from->n_parts; i++) {
        const uint32_t cls = l->from->parts[i].cls;
        if (cs_kind_group_of(l->from->classes[cls].kind) == CS_GROUP_COLLECTIVE)
            CS_TRY(decide_class(l, cls, report, error));
    }
    return CS_OK;
}

/* Decides on every collective that runs, and whether they become flows. How many there will be is
 * known before the first is made: with a million ranks it would be hours until the ids are used up.
 */
static cs_status decide(lowering *l, cs_lower_report *report, cs_error *error)
{
    cs_status status = decide_parts(l, report, error);
    double n_tasks = l->from->n_tasks;
    for (uint32_t task = 0; task < l->from->n_tasks && status == CS_OK;) {
        const uint32_t cls = l->from->tasks[task].cls;
        if (cs_kind_group_of(l->from->classes[cls].kind) != CS_GROUP_COLLECTIVE) {
            task++;
            continue;
        }
        CS_TRY(decide_class(l, cls, report, error));
        const cs_way *way = l->ways[cls];
        if (way->n_sends >= CS_LIST && !cs_algorithm_is_short(way->algorithm, &way->collective))
            return too_large((double)way->n_sends, error);
        report->n_collectives++;
        n_tasks += (double)way->n_sends + 1;
        report->n_flows += way->n_sends;
        note_algorithm(report, way->algorithm->name);
        task += way->n_members;
    }
    report->fidelity = fidelity_of(l, report);
    l->delayed = report->fidelity != CS_FIDELITY_FLOW;
    assert(l->delayed || l->from->n_series == 0);
    if (!l->delayed && n_tasks >= CS_LIST)
        return too_large(n_tasks, error);
    if (report->fidelity == CS_FIDELITY_ANALYTIC && l->options->measured)
        count_measured(l, report);
    for (uint32_t i = 0; i < l->from->n_classes && l->delayed && status == CS_OK; i++)
        if (l->ways[i]) {
            status = cs_way_price(&l->prices, l->ways[i], error);
            report->beside |= cs_prices_has_relatives(&l->prices, l->ways[i]->group);
        }
    if (l->delayed && l->options->nccl != CS_NCCL_NONE && status == CS_OK)
        count_choices(l, report);
    return status;
}

cs_status cs_lower_check(const cs_graph *graph, const cs_platform *platform,
                         const cs_lower_options *options, cs_error *error)
{
    cs_status status = CS_OK;
    cs_lower_options named = *options;
    named.chunks = 1; /* whether it fits does not depend on them: nothing has to be priced */
    if (options->algorithm < CS_FIRST_ALGORITHM && options->gradients <= CS_FIRST_ALGORITHM)
        return CS_OK;
    bool *seen = calloc((size_t)graph->n_classes + 1, sizeof(*seen));
    cs_prices prices;
    if (!seen)
        return cs_error_no_memory(error);
    status = cs_prices_init(&prices, graph, platform, &named, error);
    for (uint32_t task = 0; task < graph->n_tasks && status == CS_OK;) {
        const uint32_t id = graph->tasks[task].cls;
        const cs_class *cls = &graph->classes[id];
        const bool collective = cs_kind_group_of(cls->kind) == CS_GROUP_COLLECTIVE;
        cs_way way = {0};
        if (collective && !seen[id])
            status = cs_way_decide(&prices, cls, &way, error);
        cs_way_finish(&way);
        seen[id] = true;
        task += collective ? cs_graph_count_members(graph, cls->peer) : 1;
    }
    free(seen);
    cs_prices_finish(&prices);
    return status;
}

/* Devices that one stands for must be like it, and flows need them all. */
static cs_status check_fold(const cs_graph *graph, const cs_platform *platform,
                            const cs_lower_options *options, cs_error *error)
{
    if (!graph->stands_for)
        return CS_OK;
    if (options->fidelity == CS_FIDELITY_FLOW)
        return cs_error_add(error, CS_INVALID,
                            "the fidelity flow needs all devices of the platform in the graph, "
                            "not one in place of several: use analytic or alpha_beta");
    for (uint32_t d = 0; platform && d < graph->n_devices; d++) {
        const cs_device *device = &platform->devices[d];
        const cs_device *by = &platform->devices[graph->stands_for[d]];
        if (device->speed != by->speed || device->capacity != by->capacity)
            return cs_error_add(error, CS_INVALID,
                                "device %u cannot stand for device %u, which has another speed or "
                                "memory",
                                graph->stands_for[d], d);
    }
    return CS_OK;
}

static cs_status lower_graph(lowering *l, cs_graph *lowered, bool wanted, cs_lower_report *report,
                             cs_error *error)
{
    if (!reserve(l))
        return cs_error_no_memory(error);
    CS_TRY(cs_prices_init(&l->prices, l->from, l->platform, l->options, error));
    CS_TRY(decide(l, report, error));
    if (wanted)
        CS_TRY(count_moved(l->from, l->ways, report, error));
    if (wanted && l->from->stands_for)
        CS_TRY(cs_alike_find(&l->prices, l->ways, report->unlike, error));
    cs_builder_reserve(l->to, l->from->n_classes, l->from->n_effects, l->from->n_tasks);
    copy_frame(l);
    lower_tasks(l);
    lower_edges(l);
    return l->no_memory ? cs_error_no_memory(error) : cs_builder_finish(l->to, lowered, error);
}

cs_status cs_lower_with(cs_graph *graph, const cs_platform *platform,
                        const cs_lower_options *options, cs_graph *lowered, cs_lower_report *report,
                        cs_error *error)
{
    cs_lower_report unwanted;
    const bool wanted = report != NULL;
    report = wanted ? report : &unwanted;
    *report = (cs_lower_report){0};
    CS_TRY(check_fold(graph, platform, options, error));
    if (!has_collectives(graph)) {
        if (wanted)
            CS_TRY(count_moved(graph, NULL, report, error));
        *lowered = *graph;
        *graph = (cs_graph){0};
        return CS_OK;
    }
    lowering l = {.from = graph, .platform = platform, .options = options};
    const cs_status status = lower_graph(&l, lowered, wanted, report, error);
    release(&l);
    if (status == CS_OK)
        cs_graph_finish(graph);
    return status;
}

cs_status cs_lower(cs_graph *graph, cs_graph *lowered, cs_error *error)
{
    static const cs_lower_options usual = {
        .algorithm = 1, .chunks = 1, .fidelity = CS_FIDELITY_FLOW};
    cs_lower_report ignored;
    return cs_lower_with(graph, NULL, &usual, lowered, &ignored, error);
}
