/* Builds a graph task by task.
 *
 * A builder remembers its first failure (memory, too many tasks), which cs_builder_finish reports;
 * calls in between need no check. Ids are assigned in the order of the calls.
 */
#ifndef CS_GRAPH_BUILDER_H
#define CS_GRAPH_BUILDER_H

#include "sim/core/graph/graph.h"

typedef struct cs_builder cs_builder;

/* Creates a builder; NULL if memory runs out. Initially all devices have CS_QUEUE_PROGRAM. */
cs_builder *cs_builder_create(uint32_t n_devices, uint32_t n_stages, uint32_t micro_batches,
                              uint32_t n_batches);
void cs_builder_destroy(cs_builder *builder);

void cs_builder_queue(cs_builder *builder, uint32_t device, cs_queue queue);
void cs_builder_resident(cs_builder *builder, uint32_t device, cs_category category, int64_t bytes);

/* Adds a slot that retains only its current version. cs_builder_retain makes it retain more
 * (cs_slot). */
uint32_t cs_builder_slot(cs_builder *builder, uint32_t stage, uint32_t device, int64_t bytes);
void cs_builder_retain(cs_builder *builder, uint32_t slot, uint32_t newest, uint32_t behind);

/* Add a register of versions, a policy for classes (cs_class.policy), and a group of devices. */
uint32_t cs_builder_register(cs_builder *builder);
uint32_t cs_builder_policy(cs_builder *builder, const cs_policy *policy);
uint32_t cs_builder_group(cs_builder *builder, const uint32_t *devices, uint32_t n);

/* Puts a group into the family with this number, which the caller chooses (cs_group). */
void cs_builder_family(cs_builder *builder, uint32_t group, uint32_t family);

/* Sets for each device the device that is simulated in its place (cs_graph.stands_for). Must be
 * called before adding any collective. `stands_for` is copied. */
void cs_builder_fold(cs_builder *builder, const uint32_t *stands_for);

/* Adds a class; cs_builder_effect adds effects to the latest class. */
uint32_t cs_builder_class(cs_builder *builder, const cs_class *cls);
void cs_builder_effect(cs_builder *builder, cs_category category, uint32_t device, int64_t bytes,
                       bool at_end);

/* Sets the policy of a class. */
void cs_builder_set_policy(cs_builder *builder, uint32_t cls, uint32_t policy);

/* Add common classes, without a policy. `slot` may be CS_NONE; `duration` is the duration at speed
 * 1. */
uint32_t cs_builder_compute(cs_builder *builder, cs_kind kind, uint32_t stage, uint32_t device,
                            uint32_t slot, cs_time duration);
uint32_t cs_builder_transfer(cs_builder *builder, uint32_t stage, uint32_t from, uint32_t to,
                             int64_t bytes, bool blocking);

/* Adds a class that is a series of `n` >= 2 parts, on the device of the first part. */
uint32_t cs_builder_series(cs_builder *builder, const cs_series_part *parts, uint32_t n,
                           uint32_t n_tasks);

/* Reserves room for n_classes, n_effects and n_tasks more; more than that may be added. */
void cs_builder_reserve(cs_builder *builder, uint32_t n_classes, uint32_t n_effects,
                        uint32_t n_tasks);

/* Adds a task and returns its id. A compute task is appended to its device's program. */
uint32_t cs_builder_task(cs_builder *builder, uint32_t cls, uint32_t item);

/* Makes `after` wait for the end of `before`. No effect if `before` is CS_NONE. */
void cs_builder_edge(cs_builder *builder, uint32_t before, uint32_t after);

/* Adds the classes of a collective over a group, one per rank, with consecutive ids in rank order.
 * Returns the first id. The group must have at least two ranks. In a folded graph only ranks on
 * simulated devices have classes and members. The purpose is CS_PURPOSE_GRADIENTS. */
uint32_t cs_builder_collective(cs_builder *builder, cs_kind kind, uint32_t stage, uint32_t group,
                               int64_t bytes);

/* A collective with a purpose, and with effects of each rank on the rank's own device (their
 * `device` is ignored) at the start or the end of the rank's part in the collective.
 * cs_builder_exchange adds its classes, like cs_builder_collective. */
typedef struct cs_exchange_class {
    cs_kind kind;
    cs_purpose purpose;
    uint32_t stage, group;
    int64_t bytes;
    const cs_effect *effects;
    uint32_t n_effects;
    int64_t bytes_back; /* see cs_class */
    bool alone;         /* see cs_class */
} cs_exchange_class;
uint32_t cs_builder_exchange(cs_builder *builder, const cs_exchange_class *exchange);

/* Adds one run of a collective, given its first class: one member task per rank, with consecutive
 * ids in rank order. Returns the first id. Member r waits for rank r's contribution; tasks that
 * follow member r may use the result on that rank. */
uint32_t cs_builder_members(cs_builder *builder, uint32_t collective, uint32_t item);

/* Adds a task of class `cls` that waits for the task `from`, and a task of class `message` that
 * sends its results; `cls` or `message` may be CS_NONE. Returns the first task added. Readers of
 * the results must wait for *to. */
uint32_t cs_builder_pass(cs_builder *builder, uint32_t from, uint32_t cls, uint32_t message,
                         uint32_t item, uint32_t *to);

/* A task that is passed to a taker while tasks are added, so that the graph never exists as a
 * whole. */
typedef struct cs_handed_task {
    uint32_t cls, item;
    uint32_t before; /* index of its first predecessor in the edges; CS_NONE: no predecessor */
} cs_handed_task;

typedef struct cs_handed_edge {
    uint32_t task; /* id of a predecessor */
    uint32_t next; /* index of the next predecessor of the same task; CS_NONE: last one */
} cs_handed_edge;

typedef struct cs_handed {
    uint32_t first, n; /* range of task ids */
    const cs_handed_task *tasks;
    const cs_handed_edge *edges;
} cs_handed;

typedef struct cs_task_taker {
    void *context;
    /* Takes tasks in order of their ids, with all their predecessors, which have lower ids. `head`
     * is the graph without tasks, and is the same in each call. */
    CS_MUST_CHECK cs_status (*take)(void *context, const cs_graph *head, const cs_handed *tasks,
                                    cs_error *error);
} cs_task_taker;

/* Passes tasks to the taker and drops them, from now on. Must be called before the first task is
 * added. CS_USAGE if the graph has collectives, or edges to tasks that were already passed on. */
void cs_builder_hand_on(cs_builder *builder, const cs_task_taker *taker);

/* Promises that all edges to the tasks added so far exist, so these tasks may be passed on.
 * Generators of many tasks should call it now and then; without calls, all tasks are passed on at
 * the end. */
void cs_builder_settle(cs_builder *builder);

/* Whether a call has failed. Generators whose loops depend on the builder's progress should check
 * this. */
bool cs_builder_failed(const cs_builder *builder);

/* Makes the graph; if tasks were passed on, the graph has only their number. Afterwards the builder
 * is empty, but must still be destroyed. */
CS_MUST_CHECK cs_status cs_builder_finish(cs_builder *builder, cs_graph *graph, cs_error *error);

#endif
