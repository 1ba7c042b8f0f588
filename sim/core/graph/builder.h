/* Builds a graph task by task.
 *
 * A builder remembers the first failure (memory, too many tasks); the calls in between need no
 * check, and cs_builder_finish reports it. Ids are handed out in order of the calls.
 */
#ifndef CS_GRAPH_BUILDER_H
#define CS_GRAPH_BUILDER_H

#include "sim/core/graph/graph.h"

typedef struct cs_builder cs_builder;

/* NULL when memory runs out. Devices start with CS_QUEUE_PROGRAM. */
cs_builder *cs_builder_create(uint32_t n_devices, uint32_t n_stages, uint32_t micro_batches,
                              uint32_t n_batches);
void cs_builder_destroy(cs_builder *builder);

void cs_builder_queue(cs_builder *builder, uint32_t device, cs_queue queue);
void cs_builder_resident(cs_builder *builder, uint32_t device, cs_category category, int64_t bytes);

/* A slot that retains its current version only; and one that retains more (see cs_slot). */
uint32_t cs_builder_slot(cs_builder *builder, uint32_t stage, uint32_t device, int64_t bytes);
void cs_builder_retain(cs_builder *builder, uint32_t slot, uint32_t newest, uint32_t behind);

/* Registers of versions; and a policy for classes (cs_class.policy). */
uint32_t cs_builder_register(cs_builder *builder);
uint32_t cs_builder_policy(cs_builder *builder, const cs_policy *policy);
uint32_t cs_builder_group(cs_builder *builder, const uint32_t *devices, uint32_t n);

/* Puts a group into a family, a number of the caller's (cs_group). */
void cs_builder_family(cs_builder *builder, uint32_t group, uint32_t family);

/* Says which devices are simulated in place of which (cs_graph.stands_for), before any collective
 * is added; `stands_for` is copied. */
void cs_builder_fold(cs_builder *builder, const uint32_t *stands_for);

/* Adds a class; its effects follow by cs_builder_effect, before the next class. */
uint32_t cs_builder_class(cs_builder *builder, const cs_class *cls);
void cs_builder_effect(cs_builder *builder, cs_category category, uint32_t device, int64_t bytes,
                       bool at_end);

/* Gives a class a policy. */
void cs_builder_set_policy(cs_builder *builder, uint32_t cls, uint32_t policy);

/* Usual classes, without a policy. Compute: kind, stage, device, slot (or CS_NONE), duration at
 * speed 1. */
uint32_t cs_builder_compute(cs_builder *builder, cs_kind kind, uint32_t stage, uint32_t device,
                            uint32_t slot, cs_time duration);
uint32_t cs_builder_transfer(cs_builder *builder, uint32_t stage, uint32_t from, uint32_t to,
                             int64_t bytes, bool blocking);

/* Adds a class that is a series of `n` parts, 2 at least, on the device of the first one. */
uint32_t cs_builder_series(cs_builder *builder, const cs_series_part *parts, uint32_t n,
                           uint32_t n_tasks);

/* Makes room for so many more classes, effects and tasks; those beyond are added all the same. */
void cs_builder_reserve(cs_builder *builder, uint32_t n_classes, uint32_t n_effects,
                        uint32_t n_tasks);

/* Adds a task and returns its id. A compute task becomes the last of its device's program. */
uint32_t cs_builder_task(cs_builder *builder, uint32_t cls, uint32_t item);

/* `after` waits for the end of `before`. CS_NONE as `before` adds nothing. */
void cs_builder_edge(cs_builder *builder, uint32_t before, uint32_t after);

/* Adds the classes of a collective over a group: one per rank, with consecutive ids in rank order;
 * returns the first. Groups of one have nothing to communicate and are not allowed. In a folded
 * graph only ranks whose devices are simulated have classes, and members. The purpose is
 * CS_PURPOSE_GRADIENTS. */
uint32_t cs_builder_collective(cs_builder *builder, cs_kind kind, uint32_t stage, uint32_t group,
                               int64_t bytes);

/* The same with a purpose, and with effects that each rank has on its own device (their `device` is
 * not looked at): at the start of what the rank does for the collective, or at the end of it. */
typedef struct cs_exchange_class {
    cs_kind kind;
    cs_purpose purpose;
    uint32_t stage, group;
    int64_t bytes;
    const cs_effect *effects;
    uint32_t n_effects;
    int64_t bytes_back; /* see cs_class */
    bool alone;         /* likewise */
} cs_exchange_class;
uint32_t cs_builder_exchange(cs_builder *builder, const cs_exchange_class *exchange);

/* Adds one run of a collective, given its first class: a member task per rank, with consecutive ids
 * in rank order; returns the first. Member r waits for what rank r contributes; what follows member
 * r may use the result on that rank. */
uint32_t cs_builder_members(cs_builder *builder, uint32_t collective, uint32_t item);

/* Adds a task of class `cls` that waits for the task `from`, and behind it one of class `message`
 * that hands on its results; either may be CS_NONE. Returns the first one; what waits for the
 * results waits for *to. */
uint32_t cs_builder_pass(cs_builder *builder, uint32_t from, uint32_t cls, uint32_t message,
                         uint32_t item, uint32_t *to);

/* Who takes tasks as they are added, so that the graph never exists as a whole. */
typedef struct cs_handed_task {
    uint32_t cls, item;
    uint32_t before; /* the first of its predecessors among the edges, or CS_NONE */
} cs_handed_task;

typedef struct cs_handed_edge {
    uint32_t task; /* a predecessor */
    uint32_t next; /* the next one of the same successor, or CS_NONE */
} cs_handed_edge;

typedef struct cs_handed {
    uint32_t first, n; /* ids of the tasks */
    const cs_handed_task *tasks;
    const cs_handed_edge *edges;
} cs_handed;

typedef struct cs_task_taker {
    void *context;
    /* Tasks with all of their predecessors, which have lower ids, in order. `head` is the graph
     * without tasks, and the same each time. */
    CS_MUST_CHECK cs_status (*take)(void *context, const cs_graph *head, const cs_handed *tasks,
                                    cs_error *error);
} cs_task_taker;

/* To be called before the first task. From then on tasks are handed on, and dropped. Fails with
 * CS_USAGE where a graph has collectives, or edges to tasks that are gone. */
void cs_builder_hand_on(cs_builder *builder, const cs_task_taker *taker);

/* All edges are there to the tasks that were added so far: they may be handed on. To be called now
 * and then by who generates many tasks; without it they are handed on at the end. */
void cs_builder_settle(cs_builder *builder);

/* Whether something has failed: a generator that goes on until nothing is left to do had better
 * ask. */
bool cs_builder_failed(const cs_builder *builder);

/* Makes the graph; one whose tasks were handed on has their number only. The builder is empty
 * afterwards and must still be destroyed. */
CS_MUST_CHECK cs_status cs_builder_finish(cs_builder *builder, cs_graph *graph, cs_error *error);

#endif
