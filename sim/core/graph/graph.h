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
#define CS_LIST UINT32_C(0x80000000) /* greater than all ids of tasks */

/* name, text, symbol in printed tasks, group */
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
    X(STAGES, "stages")       /* activations and their gradients between stages */                 \
    X(GRADIENTS, "gradients") /* sums of weight gradients */                                       \
    X(WEIGHTS, "weights")     /* weights that are sharded over several devices */                  \
    X(TENSOR, "tensor")       /* exchanges within layers along the axis of the same name */        \
    X(CONTEXT, "context")                                                                          \
    X(EXPERT, "expert")                                                                            \
    X(SPACE, "space")                                                                              \
    X(HOST, "host") /* activations that are offloaded to the host's memory */

typedef enum cs_purpose {
#define CS_PURPOSE_ENUM(name, text) CS_PURPOSE_##name,
    CS_PURPOSE_MAP(CS_PURPOSE_ENUM)
#undef CS_PURPOSE_ENUM
        CS_N_PURPOSES
} cs_purpose;

typedef enum cs_queue { CS_QUEUE_PROGRAM, CS_QUEUE_PRIORITY } cs_queue;

typedef struct cs_effect {
    int64_t bytes; /* bytes; > 0: allocated, < 0: freed */
    uint32_t device;
    uint8_t category; /* cs_category */
    bool at_end;      /* true: at the end of the task; false: at its start */
} cs_effect;

typedef struct cs_class {
    uint8_t kind;   /* cs_kind */
    uint8_t origin; /* cs_kind of the task that a transfer was lowered from; else equal to kind */
    bool blocking;  /* transfer: occupies the compute of both ends */
    /* makes a new version of its weights at its end; always true for CS_UPDATE */
    bool updates;
    /* the device's host waits for the task's end; for a transfer, the receiver's host waits, and
     * for a blocking transfer the sender's host too */
    bool waits;
    bool waits_before; /* compute: the host starts it only when its device is idle */
    uint8_t purpose;   /* transfer or collective: cs_purpose */
    /* collective: no computation of another micro-batch overlaps it (schedules with paired passes
     * only) */
    bool alone;
    int32_t priority; /* on a device with CS_QUEUE_PRIORITY: higher goes first */
    uint32_t stage;
    uint32_t device;  /* device of the computation, the sender or the rank */
    uint32_t peer;    /* receiver of a transfer; group of a collective; else CS_NONE */
    uint32_t weights; /* slot whose version it reads, or for an update makes; CS_NONE: none */
    uint32_t policy;  /* 1 + policy that chooses the version; 0: reads the current version */
    /* 1 + group whose collective this transfer replaces by a single delay; 0: none */
    uint32_t ranks;
    uint32_t series; /* 1 + series that this class is; 0: not a series */
    uint32_t first_effect, n_effects;
    cs_time duration; /* compute: time at device speed 1; transfer: time added to its latencies */
    /* compute: the host's time to start it. The host starts the computations of its device one
     * after another, as early as it can: it waits only for tasks with `waits`. A computation ends
     * no earlier than the host has finished starting it */
    cs_time host;
    /* if `ranks` > 0: time of the collective after this delay. Its ranks compute meanwhile, so no
     * task waits for it */
    cs_time hidden;
    /* no task starts before release + item * interval; not for collectives */
    cs_time release, interval;
    int64_t bytes; /* bytes of a transfer; collective: bytes of the whole vector */
    /* halo: bytes to the previous rank, while `bytes` go to the next rank */
    int64_t bytes_back;
} cs_class;

typedef struct cs_task {
    uint32_t cls;
    uint32_t item;      /* mini-batch * micro_batches + micro-batch */
    uint32_t successor; /* its only successor; or CS_LIST + position of its list; or CS_NONE */
    uint32_t next;      /* next task of its device in program order; CS_NONE: last one */
} cs_task;

typedef struct cs_resident {
    int64_t bytes;
    uint32_t device;
    uint8_t category;
} cs_resident;

typedef struct cs_slot {
    uint32_t stage, device;
    int64_t bytes;   /* bytes per version */
    uint32_t newest; /* number of newest versions that the slot retains, >= 1 */
    /* slot whose newest versions this slot also retains: itself, or a slot that is updated later */
    uint32_t behind;
} cs_slot;

typedef enum cs_read {
    CS_READ_CURRENT, /* current version of `slot` */
    /* version made by the mini-batch `lag` before the task's own: mini-batch + 1 - lag; 0 for the
     * first mini-batches */
    CS_READ_LAG,
    CS_READ_REGISTER, /* version in the register for the task's item */
} cs_read;

/* How a task chooses the version that it reads, and which slots hold this version. A register holds
 * one version per item, or one per mini-batch: all policies that name it use it in the same way. An
 * update reads nothing and has no policy. */
typedef struct cs_policy {
    uint8_t read;  /* cs_read */
    bool strict;   /* CURRENT: ignores an update that ends at the same instant */
    bool drops;    /* drops, at the task's end, a hold of its slot on the version */
    bool by_batch; /* `writes` and `reads` are indexed by mini-batch rather than item */
    bool notional; /* the version is only recorded: it need not be alive, and no slot holds it */
    /* CURRENT: slot whose current version is read: the task's own slot, or another */
    uint32_t slot;
    uint32_t lag;    /* LAG: number of mini-batches, >= 1 */
    uint32_t reads;  /* REGISTER: register to read */
    uint32_t writes; /* register that receives the version read; CS_NONE: none */
    /* range of slots that hold the version from the task's start until it is dropped */
    uint32_t first_held, n_held;
} cs_policy;

/* The ranks of a collective. Groups of a family share no device and communicate at the same time,
 * which matters for collectives that are delays. A folded graph has all groups: groups of devices
 * that are not simulated have no members, but their messages count. */
typedef struct cs_group {
    uint32_t first, n; /* range of its ranks' devices in group_devices */
    uint32_t family;   /* number of its family; CS_NONE: no family */
} cs_group;

/* A part of a series: a computation, which follows the previous computation, or a collective whose
 * only member is the device itself. */
enum { CS_PART_WAITS = 6 };
typedef struct cs_series_part {
    uint32_t cls;
    uint32_t n_waits, waits[CS_PART_WAITS]; /* indices of the parts that it waits for */
} cs_series_part;

/* A series. Its first and its last part are computations. Its class has the effects at the start of
 * the first part and at the end of the last part; other effects and durations stay with the
 * parts. */
typedef struct cs_series {
    uint32_t first, n; /* range in cs_graph.parts */
    uint32_t n_tasks;  /* number of tasks that it replaces */
} cs_series;

typedef struct cs_graph {
    uint32_t n_devices, n_stages;
    uint32_t micro_batches; /* micro-batches per mini-batch, >= 1 */
    uint32_t n_batches;     /* number of mini-batches */

    uint32_t n_tasks, n_edges, n_listed;
    cs_task *tasks;
    uint32_t *n_predecessors; /* per task: number of predecessors */
    uint32_t *listed;         /* per task with several successors: their number, then their ids */
    uint32_t *first_task;     /* per device: head of its program; CS_NONE: no task */
    /* per device: the device that is simulated in its place, or itself; NULL: all devices are
     * simulated. A collective has members only on simulated devices; its other ranks behave alike
     * at the same times */
    uint32_t *stands_for;
    uint8_t *queues; /* per device: cs_queue */

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

/* Frees the graph; allowed on a zeroed struct. */
void cs_graph_finish(cs_graph *graph);

static inline const cs_class *cs_graph_class(const cs_graph *graph, uint32_t task)
{
    return &graph->classes[graph->tasks[task].cls];
}

/* Returns the *n successors of a task, in the order of adding their edges. */
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

/* Returns the device that is simulated in place of this device, or the device itself. */
static inline uint32_t cs_graph_stand_in(const cs_graph *graph, uint32_t device)
{
    return graph->stands_for ? graph->stands_for[device] : device;
}

static inline bool cs_graph_has(const cs_graph *graph, uint32_t device)
{
    return cs_graph_stand_in(graph, device) == device;
}

/* Sets times[d] to the number of devices that device d represents, itself included; 0 if device d
 * is not simulated. */
void cs_graph_count_devices(const cs_graph *graph, uint32_t *times);

/* Returns how many ranks of a group are on simulated devices. Its collectives have this many
 * members. */
uint32_t cs_graph_count_members(const cs_graph *graph, uint32_t group);

/* Returns the number of tasks, where a series counts as the tasks that it replaces. */
uint32_t cs_graph_count_tasks(const cs_graph *graph);

/* Checks everything that the engine relies on: ids in range, effects balanced per device and
 * category, members of a collective with consecutive ids, families without shared devices, nothing
 * on devices that are not simulated, no cycle through edges and program order. The message shows a
 * cycle as "F0.1 on device 2 -> ...". CS_INVALID. */
CS_MUST_CHECK cs_status cs_graph_check(const cs_graph *graph, cs_error *error);

/* Whether all edges and all programs lead to higher ids. */
bool cs_graph_ids_rise(const cs_graph *graph);

/* Numbers the tasks so that every edge and every program leads from a lower rank to a higher one.
 * Returns how many tasks have a rank; the other tasks (rank CS_NONE) are on circles or after them.
 * `waiting` and `stack` are scratch memory for n_tasks ids each. */
uint32_t cs_graph_order(const cs_graph *graph, uint32_t *rank, uint32_t *waiting, uint32_t *stack);

/* Describes a task by kind, mini-batch, micro-batch and location, as in "F1.3 of stage 2 on device
 * 2". Returns `text`. */
char *cs_graph_describe(const cs_graph *graph, uint32_t task, char *text, size_t size);

/* Prints the whole graph as text, one line per task with its successors. Returns false if writing
 * fails. */
bool cs_graph_print(const cs_graph *graph, FILE *out);

#endif
