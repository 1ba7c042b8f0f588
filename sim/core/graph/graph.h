/* Task graphs: tasks, their order, their devices, and their effects on memory.
 *
 * A task is a computation on a device, a transfer from one device to another, or one rank's part in
 * a collective (lower.h turns collectives into transfers before the engine runs). Tasks that share
 * kind, device, duration and effects share a class: for example all forwards of stage 3. A task
 * itself is 16 bytes: its class, its micro-batch, its successor or list of successors, and the next
 * task of its device.
 *
 * Order. A task starts when all its predecessors have ended. Compute tasks of a device also obey
 * the device's queue:
 *   CS_QUEUE_PROGRAM   strictly in the order of their addition
 *   CS_QUEUE_PRIORITY  any ready task: higher priority of the class first, then the lower id
 * An edge that program order implies may be left out. Transfers do not queue on a device unless
 * their class is blocking: then they start when both ends are idle, before any ready computation,
 * lower id first, and occupy both ends. A class may have release times: its task of an item does
 * not start before release + item * interval, and in program order the device waits with it.
 *
 * Ids are 32-bit positions. Tasks are best added roughly in the order of execution: the engine then
 * walks memory forward.
 *
 * Memory. A class has effects: signed bytes of a category on a device, at the start or at the end
 * of the task. Bytes that exist from the start of the run (weights) are residents.
 *
 * Weights. A slot is one stage's weights on one device. Its current version counts the updates that
 * have ended; a class of kind CS_UPDATE, or another that `updates`, makes a new one at its end. A
 * task whose class names a slot reads a version at its start, and that is recorded. The class's
 * policy chooses the version; without a policy it is the slot's current one. A version lives while
 * it is current or held, or while the slot retains it. Live versions other than the current one are
 * memory of the category weight_versions.
 *
 * Series. Computations of a device, and collectives between them or overlapped with them, may be
 * one task if no other task waits for the parts, and they wait for no other task. The series starts
 * with its first part, ends with its last one, and occupies its device in between. Times and the
 * device's total memory do not change; records of single parts are lost. So series are for callers
 * that need only the time and the peak of a run.
 */
#ifndef CS_GRAPH_GRAPH_H
#define CS_GRAPH_GRAPH_H

#include "sim/base/error.h"
#include "sim/base/time.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CS_NONE UINT32_MAX           /* no id */
#define CS_LIST UINT32_C(0x80000000) /* ids of tasks are below */

/* name, text, symbol in prints, group */
#define CS_KIND_MAP(X)                                                                             \
    X(FORWARD, "forward", "F", COMPUTE)                                                            \
    X(BACKWARD, "backward", "B", COMPUTE)                                                          \
    X(BACKWARD_INPUT, "backward_input", "I", COMPUTE)                                              \
    X(BACKWARD_WEIGHT, "backward_weight", "W", COMPUTE)                                            \
    X(RECOMPUTE, "recompute", "R", COMPUTE)                                                        \
    X(UPDATE, "update", "U", COMPUTE)                                                              \
    X(TRANSFER, "transfer", "T", TRANSFER)                                                         \
    X(ALL_REDUCE, "all_reduce", "A", COLLECTIVE)                                                   \
    X(ALL_GATHER, "all_gather", "G", COLLECTIVE)                                                   \
    X(REDUCE_SCATTER, "reduce_scatter", "S", COLLECTIVE)                                           \
    X(BROADCAST, "broadcast", "C", COLLECTIVE)                                                     \
    X(REDUCE, "reduce", "D", COLLECTIVE)                                                           \
    X(ALL_TO_ALL, "all_to_all", "X", COLLECTIVE)                                                   \
    X(SCATTER, "scatter", "s", COLLECTIVE)                                                         \
    X(GATHER, "gather", "g", COLLECTIVE)                                                           \
    X(HALO, "halo", "H", COLLECTIVE)                                                               \
    X(SHIFT, "shift", "N", COLLECTIVE)

typedef enum cs_kind {
#define CS_KIND_ENUM(name, text, symbol, group) CS_##name,
    CS_KIND_MAP(CS_KIND_ENUM)
#undef CS_KIND_ENUM
        CS_N_KINDS
} cs_kind;

typedef enum cs_kind_group {
    CS_GROUP_COMPUTE,
    CS_GROUP_TRANSFER,
    CS_GROUP_COLLECTIVE
} cs_kind_group;

#define CS_CATEGORY_MAP(X)                                                                         \
    X(WEIGHTS, "weights")                                                                          \
    X(WEIGHT_VERSIONS, "weight_versions")                                                          \
    X(GRADIENTS, "gradients")                                                                      \
    X(OPTIMIZER, "optimizer_states")                                                               \
    X(ACTIVATIONS, "activations")                                                                  \
    X(BUFFERS, "communication_buffers")                                                            \
    X(WORKSPACE, "workspace")                                                                      \
    X(GATHERED, "gathered_weights")

typedef enum cs_category {
#define CS_CATEGORY_ENUM(name, text) CS_MEMORY_##name,
    CS_CATEGORY_MAP(CS_CATEGORY_ENUM)
#undef CS_CATEGORY_ENUM
        CS_N_CATEGORIES
} cs_category;

/* The purpose of a transfer or collective. */
#define CS_PURPOSE_MAP(X)                                                                          \
    X(STAGES, "stages")       /* activations and their gradients from stage to stage */            \
    X(GRADIENTS, "gradients") /* sums of gradients of weights */                                   \
    X(WEIGHTS, "weights")     /* weights that rest on several devices */                           \
    X(TENSOR, "tensor")       /* within layers, over the axis of that name */                      \
    X(CONTEXT, "context")                                                                          \
    X(EXPERT, "expert")                                                                            \
    X(SPACE, "space")                                                                              \
    X(HOST, "host") /* activations that wait in the host's memory */

typedef enum cs_purpose {
#define CS_PURPOSE_ENUM(name, text) CS_PURPOSE_##name,
    CS_PURPOSE_MAP(CS_PURPOSE_ENUM)
#undef CS_PURPOSE_ENUM
        CS_N_PURPOSES
} cs_purpose;

typedef enum cs_queue { CS_QUEUE_PROGRAM, CS_QUEUE_PRIORITY } cs_queue;

typedef struct cs_effect {
    int64_t bytes; /* allocated when positive, freed when negative */
    uint32_t device;
    uint8_t category; /* cs_category */
    bool at_end;      /* at the end of the task; else at its start */
} cs_effect;

typedef struct cs_class {
    uint8_t kind;      /* cs_kind */
    uint8_t origin;    /* cs_kind that a transfer was lowered from; else equal to kind */
    bool blocking;     /* a transfer that occupies the compute of both ends */
    bool updates;      /* makes a new version of its weights at its end; always so of CS_UPDATE */
    bool waits;        /* the device's host waits for its end; for a transfer, the receiver's host
                 * does, and if it blocks, the sender's host too */
    bool waits_before; /* compute: the host starts it when its device is free */
    uint8_t purpose;   /* cs_purpose of a transfer or collective */
    bool alone; /* no computation of another micro-batch overlaps this collective (schedules with
                 * paired passes only) */
    int32_t priority; /* on a device with CS_QUEUE_PRIORITY; higher first */
    uint32_t stage;
    uint32_t device;  /* where it computes, sends from, or is a rank */
    uint32_t peer;    /* receiver of a transfer, group of a collective, else CS_NONE */
    uint32_t weights; /* slot whose version it reads or, an update, makes; or CS_NONE */
    uint32_t policy;  /* 1 + the policy that chooses the version; 0: the current one */
    uint32_t ranks;   /* 1 + the group whose collective a transfer replaces by one delay; else 0 */
    uint32_t series;  /* 1 + the series that a computation is; else 0 */
    uint32_t first_effect, n_effects;
    cs_time duration; /* compute: at device speed 1; transfer: added to its latencies */
    cs_time host;   /* compute: the host's time to start it. The host starts one computation of the
                     * device after the other, as early as it can: it waits only for tasks with
                     * `waits`. A computation ends no earlier than the host has started all of it */
    cs_time hidden; /* if `ranks` > 0: extra time of the collective after this delay. Its ranks
                     * compute meanwhile, so no task waits for this time */
    cs_time release, interval; /* no start before release + item * interval; not for collectives */
    int64_t bytes;             /* per transfer; collective: of the whole vector */
    int64_t bytes_back;        /* halo: to the previous rank; `bytes` go to the next one */
} cs_class;

typedef struct cs_task {
    uint32_t cls;
    uint32_t item;      /* mini-batch * micro_batches + micro-batch */
    uint32_t successor; /* the only one; or CS_LIST + position of the list; or CS_NONE */
    uint32_t next;      /* next task of its device in program order, or CS_NONE */
} cs_task;

typedef struct cs_resident {
    int64_t bytes;
    uint32_t device;
    uint8_t category;
} cs_resident;

typedef struct cs_slot {
    uint32_t stage, device;
    int64_t bytes;   /* per version */
    uint32_t newest; /* number of versions that it retains, the newest ones; >= 1 */
    uint32_t behind; /* this slot, or one that is updated later, whose newest versions are retained
                      * here too */
} cs_slot;

typedef enum cs_read {
    CS_READ_CURRENT, /* the current version of `slot` */
    CS_READ_LAG, /* the version that the mini-batch `lag` before its own made, mini-batch + 1 - lag;
                  * 0 for the first ones */
    CS_READ_REGISTER, /* the register's version for its item */
} cs_read;

/* How a task chooses the version that it reads, and which slots hold it. A register holds one
 * version per item, or per mini-batch: all policies that name it use it in the same way. An update
 * reads nothing and has no policy. */
typedef struct cs_policy {
    uint8_t read;    /* cs_read */
    bool strict;     /* CURRENT: ignores an update that ends at the same instant */
    bool drops;      /* drops a hold of its slot on the version at its end */
    bool by_batch;   /* `writes` and `reads` are per mini-batch, not per item */
    bool notional;   /* the version is only recorded: it need not be alive, and nothing holds it */
    uint32_t slot;   /* CURRENT: its own, or one whose version counts as complete */
    uint32_t lag;    /* LAG: >= 1 */
    uint32_t reads;  /* REGISTER */
    uint32_t writes; /* register that gets the version read, or CS_NONE */
    uint32_t first_held, n_held; /* slots that hold the version from its start until its drop */
} cs_policy;

/* Groups of a family have no device in common, and communicate at the same time. Collectives that
 * are delays take that into account. A folded graph has all groups: those of devices that are not
 * simulated have no members, but their messages count. */
typedef struct cs_group {
    uint32_t first, n; /* its ranks' devices in group_devices */
    uint32_t family;   /* number of its family; CS_NONE: it has none */
} cs_group;

/* A part of a series: a computation, which follows the previous computation, or a collective whose
 * only member is the device. */
enum { CS_PART_WAITS = 6 };
typedef struct cs_series_part {
    uint32_t cls;
    uint32_t n_waits, waits[CS_PART_WAITS]; /* numbers of parts that it waits for */
} cs_series_part;

/* The first and the last part compute. The class of a series has the effects at the start of the
 * first and at the end of the last part; other effects and durations stay with the parts. */
typedef struct cs_series {
    uint32_t first, n; /* in cs_graph.parts */
    uint32_t n_tasks;  /* that it replaces */
} cs_series;

typedef struct cs_graph {
    uint32_t n_devices, n_stages;
    uint32_t micro_batches; /* per mini-batch, >= 1 */
    uint32_t n_batches;     /* mini-batches */

    uint32_t n_tasks, n_edges, n_listed;
    cs_task *tasks;
    uint32_t *n_predecessors; /* per task */
    uint32_t *listed;         /* per task with several successors: their number, then their ids */
    uint32_t *first_task;     /* per device: head of its program, or CS_NONE */
    uint32_t *stands_for;     /* per device: the one whose tasks are in the graph in its place, or
                               * itself; NULL: all are there. A collective has members on devices
                               * that are there only; its other ranks do the same at the same
                               * times */
    uint8_t *queues;          /* per device: cs_queue */

    uint32_t n_classes, n_effects, n_residents, n_slots, n_groups, n_group_devices;
    uint32_t n_policies, n_registers, n_series, n_parts;
    cs_class *classes;
    cs_effect *effects;
    cs_resident *residents;
    cs_slot *slots;
    cs_policy *policies;
    cs_group *groups;
    uint32_t *group_devices;
    cs_series *series;
    cs_series_part *parts;
} cs_graph;

/* Zeroed graphs can be finished. */
void cs_graph_finish(cs_graph *graph);

static inline const cs_class *cs_graph_class(const cs_graph *graph, uint32_t task)
{
    return &graph->classes[graph->tasks[task].cls];
}

/* The successors of a task, in the order of the addition of their edges. */
static inline const uint32_t *cs_graph_successors(const cs_graph *graph, uint32_t task, uint32_t *n)
{
    const uint32_t *successor = &graph->tasks[task].successor;
    if (*successor < CS_LIST || *successor == CS_NONE) {
        *n = *successor != CS_NONE;
        return successor;
    }
    const uint32_t *list = &graph->listed[*successor - CS_LIST];
    *n = list[0];
    return list + 1;
}

static inline uint64_t cs_graph_items(const cs_graph *graph)
{
    return (uint64_t)graph->micro_batches * graph->n_batches;
}

static inline uint32_t cs_graph_mini_batch(const cs_graph *graph, uint32_t task)
{
    return graph->tasks[task].item / graph->micro_batches;
}

static inline uint32_t cs_graph_micro_batch(const cs_graph *graph, uint32_t task)
{
    return graph->tasks[task].item % graph->micro_batches;
}

const char *cs_kind_name(cs_kind kind);
const char *cs_kind_symbol(cs_kind kind);
static inline cs_kind_group cs_kind_group_of(cs_kind kind)
{
    static const uint8_t groups[] = {
#define CS_KIND_GROUP(name, text, symbol, group) CS_GROUP_##group,
        CS_KIND_MAP(CS_KIND_GROUP)
#undef CS_KIND_GROUP
    };
    return (cs_kind_group)groups[kind];
}
const char *cs_category_name(cs_category category);
const char *cs_purpose_name(cs_purpose purpose);

/* The device that is simulated in place of this one, or itself. */
static inline uint32_t cs_graph_stand_in(const cs_graph *graph, uint32_t device)
{
    return graph->stands_for ? graph->stands_for[device] : device;
}

static inline bool cs_graph_has(const cs_graph *graph, uint32_t device)
{
    return cs_graph_stand_in(graph, device) == device;
}

/* Per device, into `times`: for how many it stands, itself included; 0 where another one does. */
void cs_graph_count_devices(const cs_graph *graph, uint32_t *times);

/* How many ranks of a group are on devices that are simulated: that many members its collectives
 * have.
 */
uint32_t cs_graph_count_members(const cs_graph *graph, uint32_t group);

/* Number of tasks; a series counts as the tasks that it replaces. */
uint32_t cs_graph_count_tasks(const cs_graph *graph);

/* Checks what the engine takes for granted: ids in range, effects that balance per device and
 * category, members of a collective that stand together, families without a device in common,
 * nothing on devices that are not simulated, no cycle through edges and program order.
 * A cycle is shown: "F0.1 on device 2 -> ...". CS_INVALID. */
CS_MUST_CHECK cs_status cs_graph_check(const cs_graph *graph, cs_error *error);

/* Whether each edge leads to a higher id, as each program does. */
bool cs_graph_ids_rise(const cs_graph *graph);

/* Numbers the tasks so that every edge and every program leads from a lower rank to a higher one.
 * Returns how many tasks have a rank; the others (rank CS_NONE) are on circles or after them.
 * `waiting` and `stack` are scratch for n_tasks ids each. */
uint32_t cs_graph_order(const cs_graph *graph, uint32_t *rank, uint32_t *waiting, uint32_t *stack);

/* "F1.3 of stage 2 on device 2": kind, mini-batch and micro-batch, where. Returns `text`. */
char *cs_graph_describe(const cs_graph *graph, uint32_t task, char *text, size_t size);

/* The whole graph as text, one task a line with its successors; false when writing failed. */
bool cs_graph_print(const cs_graph *graph, FILE *out);

#endif
