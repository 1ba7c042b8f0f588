#include "sim/core/graph/builder.h"

#include "sim/base/vector.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct edge {
    uint32_t before, after;
} edge;

/* Tasks to be passed to a taker. */
typedef struct hand {
    cs_task_taker taker; /* without `take`: the graph is built as a whole */
    uint32_t first, n;
    cs_handed_task *tasks;
    uint32_t cap_tasks;
    cs_handed_edge *edges;
    uint32_t n_edges, cap_edges;
} hand;

struct cs_builder {
    cs_graph graph; /* grows here and moves out at the end; each task has its first successor */
    uint32_t cap_tasks, cap_predecessors, cap_classes, cap_effects, cap_residents, cap_slots;
    uint32_t cap_policies, cap_series, cap_parts;
    uint32_t cap_groups, cap_group_devices;
    edge *more; /* edges to further successors */
    uint32_t n_more, cap_more;
    uint32_t *last_task; /* per device: last task of its program so far */
    uint32_t room_tasks; /* capacity of all task columns; 0 after a failure */
    hand hand;
    cs_status status; /* status of the first failure */
    cs_error error;   /* error of the taker, if it failed */
};

static void fail(cs_builder *builder)
{
    builder->status = builder->status == CS_OK ? CS_NO_MEMORY : builder->status;
    builder->room_tasks = 0;
}

static bool reserve_devices(cs_builder *builder, uint32_t n)
{
    cs_graph *graph = &builder->graph;
    size_t count = n ? n : 1;
    graph->first_task = malloc(count * sizeof(*graph->first_task));
    graph->queues = calloc(count, sizeof(*graph->queues));
    builder->last_task = malloc(count * sizeof(*builder->last_task));
    if (!graph->first_task || !graph->queues || !builder->last_task)
        return false;
    memset(graph->first_task, 0xff, count * sizeof(*graph->first_task));
    memset(builder->last_task, 0xff, count * sizeof(*builder->last_task));
    return true;
}

cs_builder *cs_builder_create(uint32_t n_devices, uint32_t n_stages, uint32_t micro_batches,
                              uint32_t n_batches)
{
    assert(micro_batches > 0);
    cs_builder *builder = calloc(1, sizeof(*builder));
    if (!builder)
        return NULL;
    cs_error_init(&builder->error);
    builder->graph.n_devices = n_devices;
    builder->graph.n_stages = n_stages;
    builder->graph.micro_batches = micro_batches;
    builder->graph.n_batches = n_batches;
    if (!reserve_devices(builder, n_devices)) {
        cs_builder_destroy(builder);
        return NULL;
    }
    return builder;
}

void cs_builder_destroy(cs_builder *builder)
{
    if (!builder)
        return;
    cs_graph_finish(&builder->graph);
    free(builder->more);
    free(builder->last_task);
    free(builder->hand.tasks);
    free(builder->hand.edges);
    free(builder);
}

/* Makes room for one more element; false after a failure, so nothing is added any more. */
static bool room(cs_builder *builder, void **data, uint32_t *capacity, uint32_t length, size_t size)
{
    if (builder->status != CS_OK)
        return false;
    if (!cs_vector_reserve(data, capacity, length + UINT64_C(1), size))
        fail(builder);
    return builder->status == CS_OK;
}

#define ROOM(builder, array, capacity, length)                                                     \
    room((builder), (void **)&(array), &(capacity), (length), sizeof(*(array)))

void cs_builder_queue(cs_builder *builder, uint32_t device, cs_queue queue)
{
    assert(device < builder->graph.n_devices);
    builder->graph.queues[device] = (uint8_t)queue;
}

void cs_builder_resident(cs_builder *builder, uint32_t device, cs_category category, int64_t bytes)
{
    cs_graph *graph = &builder->graph;
    if (bytes == 0 || !ROOM(builder, graph->residents, builder->cap_residents, graph->n_residents))
        return;
    graph->residents[graph->n_residents++] = (cs_resident){bytes, device, (uint8_t)category};
}

uint32_t cs_builder_slot(cs_builder *builder, uint32_t stage, uint32_t device, int64_t bytes)
{
    cs_graph *graph = &builder->graph;
    if (!ROOM(builder, graph->slots, builder->cap_slots, graph->n_slots))
        return CS_NONE;
    graph->slots[graph->n_slots] = (cs_slot){stage, device, bytes, 1, graph->n_slots};
    return graph->n_slots++;
}

void cs_builder_retain(cs_builder *builder, uint32_t slot, uint32_t newest, uint32_t behind)
{
    if (builder->status != CS_OK)
        return;
    builder->graph.slots[slot].newest = newest;
    builder->graph.slots[slot].behind = behind;
}

uint32_t cs_builder_register(cs_builder *builder)
{
    return builder->graph.n_registers++;
}

uint32_t cs_builder_policy(cs_builder *builder, const cs_policy *policy)
{
    cs_graph *graph = &builder->graph;
    if (!ROOM(builder, graph->policies, builder->cap_policies, graph->n_policies))
        return CS_NONE;
    graph->policies[graph->n_policies] = *policy;
    return graph->n_policies++;
}

void cs_builder_set_policy(cs_builder *builder, uint32_t cls, uint32_t policy)
{
    if (builder->status == CS_OK)
        builder->graph.classes[cls].policy = policy + 1;
}

uint32_t cs_builder_group(cs_builder *builder, const uint32_t *devices, uint32_t n)
{
    cs_graph *graph = &builder->graph;
    uint32_t first = graph->n_group_devices;
    for (uint32_t i = 0; i < n; i++) {
        if (!ROOM(builder, graph->group_devices, builder->cap_group_devices,
                  graph->n_group_devices))
            return CS_NONE;
        graph->group_devices[graph->n_group_devices++] = devices[i];
    }
    if (!ROOM(builder, graph->groups, builder->cap_groups, graph->n_groups))
        return CS_NONE;
    graph->groups[graph->n_groups] = (cs_group){first, n, CS_NONE};
    return graph->n_groups++;
}

void cs_builder_family(cs_builder *builder, uint32_t group, uint32_t family)
{
    if (builder->status == CS_OK)
        builder->graph.groups[group].family = family;
}

void cs_builder_fold(cs_builder *builder, const uint32_t *stands_for)
{
    cs_graph *graph = &builder->graph;
    const size_t n = graph->n_devices;
    assert(graph->n_tasks == 0 && !graph->stands_for);
    graph->stands_for = malloc((n ? n : 1) * sizeof(*graph->stands_for));
    if (graph->stands_for)
        memcpy(graph->stands_for, stands_for, n * sizeof(*graph->stands_for));
    else
        fail(builder);
}

uint32_t cs_builder_class(cs_builder *builder, const cs_class *cls)
{
    cs_graph *graph = &builder->graph;
    if (!ROOM(builder, graph->classes, builder->cap_classes, graph->n_classes))
        return CS_NONE;
    graph->classes[graph->n_classes] = *cls;
    graph->classes[graph->n_classes].first_effect = graph->n_effects;
    graph->classes[graph->n_classes].n_effects = 0;
    return graph->n_classes++;
}

void cs_builder_effect(cs_builder *builder, cs_category category, uint32_t device, int64_t bytes,
                       bool at_end)
{
    cs_graph *graph = &builder->graph;
    if (bytes == 0 || !ROOM(builder, graph->effects, builder->cap_effects, graph->n_effects))
        return;
    graph->effects[graph->n_effects++] = (cs_effect){bytes, device, (uint8_t)category, at_end};
    graph->classes[graph->n_classes - 1].n_effects++;
}

uint32_t cs_builder_compute(cs_builder *builder, cs_kind kind, uint32_t stage, uint32_t device,
                            uint32_t slot, cs_time duration)
{
    return cs_builder_class(builder, &(cs_class){.kind = (uint8_t)kind,
                                                 .origin = (uint8_t)kind,
                                                 .stage = stage,
                                                 .device = device,
                                                 .peer = CS_NONE,
                                                 .weights = slot,
                                                 .duration = duration});
}

uint32_t cs_builder_transfer(cs_builder *builder, uint32_t stage, uint32_t from, uint32_t to,
                             int64_t bytes, bool blocking)
{
    return cs_builder_class(builder, &(cs_class){.kind = CS_TRANSFER,
                                                 .origin = CS_TRANSFER,
                                                 .blocking = blocking,
                                                 .stage = stage,
                                                 .device = from,
                                                 .peer = to,
                                                 .weights = CS_NONE,
                                                 .bytes = bytes});
}

static void add_effects(cs_builder *builder, uint32_t part, bool at_end)
{
    const cs_graph *graph = &builder->graph;
    const cs_class of = graph->classes[part];
    for (uint32_t e = of.first_effect; e < of.first_effect + of.n_effects; e++) {
        const cs_effect effect = graph->effects[e];
        if (effect.at_end == at_end)
            cs_builder_effect(builder, effect.category, effect.device, effect.bytes, at_end);
    }
}

uint32_t cs_builder_series(cs_builder *builder, const cs_series_part *parts, uint32_t n,
                           uint32_t n_tasks)
{
    cs_graph *graph = &builder->graph;
    if (!ROOM(builder, graph->series, builder->cap_series, graph->n_series))
        return CS_NONE;
    for (uint32_t i = 0; i < n; i++)
        assert(parts[i].cls < graph->n_classes);
    cs_class cls = graph->classes[parts[0].cls];
    cls.duration = 0;
    cls.series = graph->n_series + 1;
    graph->series[graph->n_series++] = (cs_series){graph->n_parts, n, n_tasks};
    for (uint32_t i = 0; i < n; i++) {
        if (!ROOM(builder, graph->parts, builder->cap_parts, graph->n_parts))
            return CS_NONE;
        graph->parts[graph->n_parts++] = parts[i];
    }
    const uint32_t made = cs_builder_class(builder, &cls);
    add_effects(builder, parts[0].cls, false);
    add_effects(builder, parts[n - 1].cls, true);
    return made;
}

/* Appends a compute task to its device's program. */
static inline void append_to_program(cs_builder *builder, uint32_t device, uint32_t task)
{
    cs_graph *graph = &builder->graph;
    uint32_t last = builder->last_task[device];
    if (last == CS_NONE)
        graph->first_task[device] = task;
    else
        graph->tasks[last].next = task;
    builder->last_task[device] = task;
}

/* Task ids end where ids of lists begin. */
static bool reserve_tasks(cs_builder *builder, uint64_t n)
{
    cs_graph *graph = &builder->graph;
    if (builder->status != CS_OK)
        return false;
    if (n > CS_LIST ||
        !cs_vector_reserve((void **)&graph->tasks, &builder->cap_tasks, n, sizeof(*graph->tasks)) ||
        !cs_vector_reserve((void **)&graph->n_predecessors, &builder->cap_predecessors, n,
                           sizeof(*graph->n_predecessors))) {
        fail(builder);
        return false;
    }
    builder->room_tasks = builder->cap_tasks < builder->cap_predecessors
                              ? builder->cap_tasks
                              : builder->cap_predecessors;
    builder->room_tasks = builder->room_tasks < CS_LIST ? builder->room_tasks : CS_LIST;
    return true;
}

void cs_builder_reserve(cs_builder *builder, uint32_t n_classes, uint32_t n_effects,
                        uint32_t n_tasks)
{
    cs_graph *graph = &builder->graph;
    if (!cs_vector_reserve((void **)&graph->classes, &builder->cap_classes,
                           (uint64_t)graph->n_classes + n_classes, sizeof(*graph->classes)) ||
        !cs_vector_reserve((void **)&graph->effects, &builder->cap_effects,
                           (uint64_t)graph->n_effects + n_effects, sizeof(*graph->effects)))
        fail(builder);
    (void)reserve_tasks(builder, (uint64_t)builder->graph.n_tasks + n_tasks);
}

/* ---- tasks that are handed on ---- */

void cs_builder_hand_on(cs_builder *builder, const cs_task_taker *taker)
{
    assert(builder->graph.n_tasks == 0);
    builder->hand.taker = *taker;
}

static uint32_t put_task(cs_builder *builder, uint32_t cls, uint32_t item)
{
    hand *of = &builder->hand;
    const uint32_t task = builder->graph.n_tasks;
    if (task >= CS_LIST)
        fail(builder);
    if (!ROOM(builder, of->tasks, of->cap_tasks, of->n))
        return CS_NONE;
    of->tasks[of->n++] = (cs_handed_task){cls, item, CS_NONE};
    builder->graph.n_tasks++;
    return task;
}

static void refuse(cs_builder *builder, const char *why)
{
    builder->status = cs_error_add(&builder->error, CS_USAGE, "%s", why);
}

/* Adds an edge. An edge against the order of ids, or to a task already passed on, comes too
 * late. */
static void put_edge(cs_builder *builder, uint32_t before, uint32_t after)
{
    hand *of = &builder->hand;
    if (before >= after || after < of->first) {
        refuse(builder, "its tasks are not generated in the order in which they depend on each "
                        "other");
        return;
    }
    if (!ROOM(builder, of->edges, of->cap_edges, of->n_edges))
        return;
    cs_handed_task *to = &of->tasks[after - of->first];
    of->edges[of->n_edges] = (cs_handed_edge){before, to->before};
    to->before = of->n_edges++;
    builder->graph.n_edges++;
}

static void hand_over(cs_builder *builder)
{
    hand *of = &builder->hand;
    const cs_handed tasks = {of->first, of->n, of->tasks, of->edges};
    if (of->taker.take && builder->status == CS_OK)
        builder->status =
            of->taker.take(of->taker.context, &builder->graph, &tasks, &builder->error);
    of->first += of->n;
    of->n = of->n_edges = 0;
}

void cs_builder_settle(cs_builder *builder)
{
    enum { WORTH_IT = 512 };
    if (builder->hand.n >= WORTH_IT)
        hand_over(builder);
}

/* ---- tasks ---- */

static inline uint32_t add_task(cs_builder *builder, uint32_t cls, uint32_t item)
{
    cs_graph *graph = &builder->graph;
    uint32_t task = graph->n_tasks;
    if (builder->hand.taker.take)
        return put_task(builder, cls, item);
    if (task >= builder->room_tasks && !reserve_tasks(builder, task + UINT64_C(1)))
        return CS_NONE;
    const cs_class *of = &graph->classes[cls];
    graph->tasks[task] = (cs_task){cls, item, CS_NONE, CS_NONE};
    graph->n_predecessors[task] = 0;
    graph->n_tasks++;
    if (cs_kind_group_of(of->kind) == CS_GROUP_COMPUTE)
        append_to_program(builder, of->device, task);
    return task;
}

static inline void add_edge(cs_builder *builder, uint32_t before, uint32_t after)
{
    cs_graph *graph = &builder->graph;
    if (before == CS_NONE || after == CS_NONE || builder->status != CS_OK)
        return;
    if (builder->hand.taker.take) {
        put_edge(builder, before, after);
        return;
    }
    assert(before < graph->n_tasks && after < graph->n_tasks);
    if (graph->tasks[before].successor == CS_NONE)
        graph->tasks[before].successor = after;
    else if (ROOM(builder, builder->more, builder->cap_more, builder->n_more))
        builder->more[builder->n_more++] = (edge){before, after};
    else
        return;
    graph->n_edges++;
    graph->n_predecessors[after]++;
}

uint32_t cs_builder_task(cs_builder *builder, uint32_t cls, uint32_t item)
{
    return add_task(builder, cls, item);
}

void cs_builder_edge(cs_builder *builder, uint32_t before, uint32_t after)
{
    add_edge(builder, before, after);
}

uint32_t cs_builder_pass(cs_builder *builder, uint32_t from, uint32_t cls, uint32_t message,
                         uint32_t item, uint32_t *to)
{
    const uint32_t task = add_task(builder, cls, item);
    add_edge(builder, from, task);
    if (message == CS_NONE) {
        *to = task;
    } else {
        *to = add_task(builder, message, item);
        add_edge(builder, task, *to);
    }
    return task;
}

static void add_member_class(cs_builder *builder, const cs_exchange_class *exchange,
                             uint32_t device)
{
    cs_builder_class(builder, &(cs_class){.kind = (uint8_t)exchange->kind,
                                          .origin = (uint8_t)exchange->kind,
                                          .purpose = (uint8_t)exchange->purpose,
                                          .alone = exchange->alone,
                                          .stage = exchange->stage,
                                          .device = device,
                                          .peer = exchange->group,
                                          .weights = CS_NONE,
                                          .bytes = exchange->bytes,
                                          .bytes_back = exchange->bytes_back});
    for (uint32_t e = 0; e < exchange->n_effects; e++)
        cs_builder_effect(builder, exchange->effects[e].category, device,
                          exchange->effects[e].bytes, exchange->effects[e].at_end);
}

uint32_t cs_builder_exchange(cs_builder *builder, const cs_exchange_class *exchange)
{
    const cs_graph *graph = &builder->graph;
    if (builder->status != CS_OK)
        return CS_NONE;
    const cs_group ranks = graph->groups[exchange->group];
    const uint32_t first = graph->n_classes;
    assert(ranks.n >= 2);
    for (uint32_t rank = 0; rank < ranks.n; rank++) {
        const uint32_t device = graph->group_devices[ranks.first + rank];
        if (cs_graph_has(graph, device))
            add_member_class(builder, exchange, device);
    }
    return first;
}

uint32_t cs_builder_collective(cs_builder *builder, cs_kind kind, uint32_t stage, uint32_t group,
                               int64_t bytes)
{
    return cs_builder_exchange(builder,
                               &(cs_exchange_class){.kind = kind,
                                                    .purpose = CS_PURPOSE_GRADIENTS,
                                                    .stage = stage,
                                                    .group = group,
                                                    .bytes = bytes,
                                                    .bytes_back = kind == CS_HALO ? bytes : 0});
}

uint32_t cs_builder_members(cs_builder *builder, uint32_t collective, uint32_t item)
{
    const cs_graph *graph = &builder->graph;
    if (builder->hand.taker.take && builder->status == CS_OK)
        refuse(builder, "it has collectives, whose members wait for each other");
    if (builder->status != CS_OK)
        return CS_NONE;
    const uint32_t first = graph->n_tasks;
    const cs_group ranks = graph->groups[graph->classes[collective].peer];
    for (uint32_t rank = 0, cls = collective; rank < ranks.n; rank++) {
        if (cs_graph_has(graph, graph->group_devices[ranks.first + rank]))
            cs_builder_task(builder, cls++, item);
    }
    return first;
}

/* Assigns every task with several successors a place for its list, starting with the first
 * successor; `more` has their numbers. Returns false if the lists do not fit. */
static bool place_lists(cs_graph *graph, const uint32_t *more)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < graph->n_tasks; i++)
        n += more[i] > 0 ? more[i] + UINT64_C(2) : 0;
    if (n >= CS_NONE - CS_LIST)
        return false;
    graph->listed = malloc((n + 1) * sizeof(*graph->listed));
    for (uint32_t i = 0; graph->listed && i < graph->n_tasks; i++) {
        if (more[i] == 0)
            continue;
        uint32_t *list = &graph->listed[graph->n_listed];
        list[0] = 1;
        list[1] = graph->tasks[i].successor;
        graph->tasks[i].successor = CS_LIST + graph->n_listed;
        graph->n_listed += more[i] + 2;
    }
    return graph->listed != NULL;
}

/* Lists the successors of tasks with several. */
static cs_status list_successors(cs_builder *builder)
{
    cs_graph *graph = &builder->graph;
    uint32_t *more = builder->n_more > 0 ? calloc(graph->n_tasks, sizeof(*more)) : NULL;
    for (uint32_t e = 0; more && e < builder->n_more; e++)
        more[builder->more[e].before]++;
    const bool placed = builder->n_more == 0 || (more && place_lists(graph, more));
    for (uint32_t e = 0; placed && e < builder->n_more; e++) {
        uint32_t *list = &graph->listed[graph->tasks[builder->more[e].before].successor - CS_LIST];
        list[++list[0]] = builder->more[e].after;
    }
    free(more);
    return placed ? CS_OK : CS_NO_MEMORY;
}

bool cs_builder_failed(const cs_builder *builder)
{
    return builder->status != CS_OK;
}

cs_status cs_builder_finish(cs_builder *builder, cs_graph *graph, cs_error *error)
{
    cs_graph *built = &builder->graph;
    if (builder->hand.taker.take)
        hand_over(builder);
    else if (builder->status == CS_OK)
        builder->status = list_successors(builder);
    if (builder->error.count > 0) {
        cs_error_add_all(error, &builder->error);
        return builder->status;
    }
    if (builder->status != CS_OK)
        return cs_error_add(
            error, builder->status,
            "the task graph does not fit memory, or has 2^31 tasks or more (%u tasks, "
            "%u edges so far)",
            built->n_tasks, built->n_edges);
    *graph = *built;
    *built = (cs_graph){0};
    return CS_OK;
}
