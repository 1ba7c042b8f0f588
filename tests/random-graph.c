#include "tests/random-graph.h"

#include "sim/base/random.h"
#include "sim/core/graph/builder.h"
#include "topologies/topology.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 6, MOST_TASKS = 40, MOST_CLASSES = 12, MOST_SLOTS = 3 };

typedef struct random_task {
    uint32_t cls;
    double rank;     /* edges lead from lower to higher rank */
    double position; /* ids are given in this order; equal to rank where program order binds */
    uint32_t item;
    uint32_t id;
} random_task;

typedef struct generator {
    gsl_rng *random;
    cs_builder *builder;
    uint32_t n_devices, n_stages, n_items, n_slots, n_groups;
    uint32_t n_notes; /* registers by item, followed by as many by mini-batch */
    bool satisfiable; /* no task asks for a version that is not there */
    bool hosts;       /* hosts take time */
    bool orderly; /* the order of tasks is fixed: in-order.h applies, unless events come too late */
    bool retains[MOST_SLOTS]; /* the slot keeps all its versions */
    uint32_t slot_devices[MOST_SLOTS];
    cs_queue queues[MOST_DEVICES];
    uint32_t n_classes;
    struct {
        uint32_t closer; /* the class that frees what this one allocates, or CS_NONE */
        bool is_closer;
        bool in_program;
        bool is_update;
        bool stashes; /* its closer reads the version that it read: their items are their own */
        uint32_t slot, n_pairs;
    } classes[MOST_CLASSES + 1];
    uint32_t n_tasks;
    random_task tasks[MOST_TASKS + 1];
} generator;

static uint32_t below(generator *make, uint32_t n)
{
    return (uint32_t)gsl_rng_uniform_int(make->random, n);
}

static bool chance(generator *make, uint32_t percent)
{
    return below(make, 100) < percent;
}

#define PICK(make, array) ((array)[below((make), sizeof(array) / sizeof((array)[0]))])

/* ---- Platform ---- */

/* At 1e9 bytes/s a byte takes 1000 ps; from 4e12 on it takes nothing once rounded. */
static double random_bandwidth(generator *make)
{
    static const double round[] = {1e9, 1e9, 2e9, 4e9, 1e12};
    static const double odd[] = {3e9, 1.23456789e9, 7.7e8, 3e12, 4e12, INFINITY};
    return chance(make, 70) ? PICK(make, round) : PICK(make, odd);
}

static cs_time random_latency(generator *make)
{
    static const cs_time latencies[] = {0, 0, 1, 500, 1000, 1000, 2000, 777, 1000000};
    return PICK(make, latencies);
}

static void fill_params(generator *make, const cs_topology *topology, bool latency, char *params)
{
    for (const cs_field *field = topology->fields; field->name; field++) {
        void *value = params + field->offset;
        if (field->type == CS_FIELD_BANDWIDTH)
            *(double *)value = random_bandwidth(make);
        else if (field->type == CS_FIELD_TIME)
            *(cs_time *)value = latency ? random_latency(make) : 0;
        else
            assert(false); /* a new type of parameter: say here what it may be */
    }
}

static void vary_links(generator *make, cs_platform *platform)
{
    for (uint32_t link = 0; link < platform->n_links; link++) {
        platform->links[link].bandwidth = random_bandwidth(make);
        platform->links[link].latency = random_latency(make);
    }
}

static void vary_devices(generator *make, cs_platform *platform)
{
    static const double speeds[] = {1, 2, 0.5, 3, 1.7};
    const bool equal = chance(make, 50);
    const bool unlimited = chance(make, 40);
    for (uint32_t device = 0; device < platform->n_devices; device++) {
        if (!equal)
            platform->devices[device].speed = PICK(make, speeds);
        if (!unlimited)
            platform->devices[device].capacity = 20 + below(make, 400);
    }
}

/* One of the simple topologies, its bandwidth and latency by chance. */
static cs_status make_simple(generator *make, cs_platform *platform, cs_error *error)
{
    static const char *const names[] = {"ideal", "ring", "nvlink_switch", "pcie"};
    max_align_t params[8] = {0};
    const cs_topology *topology = cs_topology_find(PICK(make, names));
    assert(topology && topology->params_size <= sizeof(params));
    fill_params(make, topology, chance(make, 60), (char *)params);
    return topology->build(params, make->n_devices, platform, error);
}

/* One with routes over several shared links. The generators below count in 1e9 bytes/s and 1 ns. */
static cs_status make_shared(generator *make, cs_platform *platform, cs_error *error)
{
    static const char *const texts[] = {
        "{\"topology\": \"fat_tree\", \"down\": [2, 4], \"up\": [1], \"bandwidth\": 1e9}",
        "{\"topology\": \"fat_tree\", \"levels\": 3, \"radix\": 4, \"bandwidth\": 2e9,"
        " \"routing\": \"ecmp\", \"latency\": 1e-9}",
        "{\"topology\": \"torus\", \"shape\": [2, 2, 4], \"bandwidth\": 1e9}",
        "{\"topology\": \"dragonfly\", \"routers\": 2, \"hosts\": 1, \"global_links\": 2,"
        " \"bandwidth\": 1e9, \"local_bandwidth\": 5e8}",
        "{\"topology\": \"pcie_tree\", \"bandwidth\": 1e9, \"host_bandwidth\": 15e8,"
        " \"socket_bandwidth\": 7e8}",
        "{\"topology\": \"cluster\", \"gpus_per_node\": 2, \"node\": {\"topology\": \"ring\","
        " \"bandwidth\": 3e9}, \"network\": {\"topology\": \"leaf_spine\","
        " \"hosts_per_leaf\": 2, \"spines\": 1, \"bandwidth\": 1e9}, \"nic_bandwidth\": 2e9}"};
    return cs_topology_build_text("random", PICK(make, texts), make->n_devices, platform, error);
}

static cs_status make_platform(generator *make, cs_platform *platform, cs_error *error)
{
    static const double phis[] = {1, 1.5, 2, 3.3};
    const cs_status status =
        chance(make, 50) ? make_simple(make, platform, error) : make_shared(make, platform, error);
    if (status != CS_OK)
        return status;
    platform->sharing = below(make, CS_SHARING_MAX_MIN + 1);
    platform->phi = PICK(make, phis);
    platform->independent_messages = chance(make, 25);
    if (make->orderly)
        platform->sharing = chance(make, 50) ? CS_SHARING_NONE : CS_SHARING_PHI;
    if (chance(make, 30))
        vary_links(make, platform);
    vary_devices(make, platform);
    return CS_OK;
}

/* ---- Classes ---- */

static cs_class random_compute(generator *make)
{
    static const cs_kind kinds[] = {CS_FORWARD,         CS_BACKWARD,  CS_BACKWARD_INPUT,
                                    CS_BACKWARD_WEIGHT, CS_RECOMPUTE, CS_UPDATE};
    static const cs_time durations[] = {0, 0, 1, 1000, 1000, 1000, 2000, 2000, 3000, 6000};
    const cs_kind kind = PICK(make, kinds);
    cs_time duration = chance(make, 80) ? PICK(make, durations) : (cs_time)below(make, 10000);
    if (below(make, 500) == 0)
        duration = CS_TIME_MAX / 4; /* some of them together overflow, one does not */
    const bool weights = make->n_slots > 0 && chance(make, 60);
    return (cs_class){.kind = (uint8_t)kind,
                      .origin = (uint8_t)kind,
                      .priority = (int32_t)below(make, 4) - 2,
                      .stage = below(make, make->n_stages),
                      .device = below(make, make->n_devices),
                      .peer = CS_NONE,
                      .weights = weights ? below(make, make->n_slots) : CS_NONE,
                      .duration = duration};
}

static cs_class random_transfer(generator *make)
{
    static const int64_t sizes[] = {0, 1, 1, 2, 3, 4, 6, 1000000};
    const uint32_t from = below(make, make->n_devices);
    uint32_t to = below(make, make->n_devices);
    if (to == from && chance(make, 80)) /* to itself: rarely, if there are others */
        to = (from + 1) % make->n_devices;
    const bool weights = make->n_slots > 0 && chance(make, 20);
    return (cs_class){.kind = CS_TRANSFER,
                      .origin = chance(make, 20) ? CS_ALL_REDUCE : CS_TRANSFER,
                      .purpose = chance(make, 20) ? CS_PURPOSE_WEIGHTS : CS_PURPOSE_STAGES,
                      .blocking = chance(make, 30),
                      .stage = below(make, make->n_stages),
                      .device = from,
                      .peer = to,
                      .weights = weights ? below(make, make->n_slots) : CS_NONE,
                      .duration = chance(make, 10) ? 1500 : 0,
                      .bytes = chance(make, 80) ? PICK(make, sizes) : (int64_t)below(make, 5000)};
}

/* A transfer that represents a whole collective. */
static void make_delay(generator *make, cs_class *cls)
{
    cls->origin = chance(make, 50) ? CS_ALL_REDUCE : CS_ALL_GATHER;
    cls->peer = cls->device;
    cls->bytes = 0;
    cls->blocking = false;
    cls->ranks = 1 + below(make, make->n_groups);
    cls->duration = (cs_time)below(make, 5000);
}

/* Hosts that take time, and wait for tasks. */
static void add_host(generator *make, cs_class *cls)
{
    cls->waits = chance(make, 20);
    if (cls->kind == CS_TRANSFER)
        return;
    cls->host = chance(make, 70) ? (cs_time)below(make, 4000) : 0;
    cls->waits_before = chance(make, 20);
}

static uint32_t add_class(generator *make)
{
    cs_class cls = chance(make, 60) ? random_compute(make) : random_transfer(make);
    if (make->hosts)
        add_host(make, &cls);
    if (cls.kind == CS_TRANSFER && make->n_groups > 0 && chance(make, 25))
        make_delay(make, &cls);
    cls.updates = cls.weights != CS_NONE && chance(make, 15);
    if (chance(make, 15)) {
        cls.release = (cs_time)below(make, 6) * 1000;
        cls.interval = (cs_time)below(make, 4) * 500;
    }
    if (make->orderly) {
        cls.blocking = false;
        if (cls.weights != CS_NONE)
            cls.device = make->slot_devices[cls.weights];
    }
    const uint32_t id = cs_builder_class(make->builder, &cls);
    assert(id == make->n_classes);
    make->classes[id].closer = CS_NONE;
    make->classes[id].in_program =
        cls.kind != CS_TRANSFER && make->queues[cls.device] == CS_QUEUE_PROGRAM;
    make->classes[id].is_update = cls.kind == CS_UPDATE;
    make->classes[id].slot = cls.weights;
    make->n_classes++;
    return id;
}

/* Memory that a class allocates at its start and frees at its end. */
static void add_own_effects(generator *make)
{
    while (chance(make, 30)) {
        const cs_category category = below(make, CS_N_CATEGORIES);
        const uint32_t device = below(make, make->n_devices);
        const int64_t bytes = 1 + below(make, 60);
        cs_builder_effect(make->builder, category, device, bytes, false);
        cs_builder_effect(make->builder, category, device, -bytes, true);
    }
}

/* The closer reads what the opener read, and it is held in between. */
static void stash(generator *make, uint32_t opener, uint32_t closer)
{
    const uint32_t slot = make->classes[opener].slot;
    if (make->orderly || slot == CS_NONE || make->classes[closer].slot != slot ||
        make->classes[opener].is_update || make->classes[closer].is_update || chance(make, 20))
        return;
    const uint32_t note = cs_builder_register(make->builder);
    const cs_policy first = {
        .read = CS_READ_CURRENT, .slot = slot, .writes = note, .first_held = slot, .n_held = 1};
    const cs_policy second = {
        .read = CS_READ_REGISTER, .reads = note, .writes = CS_NONE, .drops = true};
    cs_builder_set_policy(make->builder, opener, cs_builder_policy(make->builder, &first));
    cs_builder_set_policy(make->builder, closer, cs_builder_policy(make->builder, &second));
    make->classes[opener].stashes = true;
    make->classes[closer].stashes = true;
}

static cs_policy random_policy(generator *make)
{
    cs_policy policy = {.read = (uint8_t)below(make, make->n_notes > 0 ? 3 : 2),
                        .strict = chance(make, 30),
                        .drops = chance(make, 40),
                        .by_batch = chance(make, 30),
                        .slot = below(make, make->n_slots),
                        .lag = 1 + below(make, 3),
                        .writes = CS_NONE};
    const uint32_t first_note = policy.by_batch ? make->n_notes : 0;
    if (make->n_notes > 0)
        policy.reads = first_note + below(make, make->n_notes);
    if (make->n_notes > 0 && chance(make, 50))
        policy.writes = first_note + below(make, make->n_notes);
    if (chance(make, 50)) {
        policy.first_held = below(make, make->n_slots);
        policy.n_held = 1 + below(make, make->n_slots - policy.first_held);
    }
    return policy;
}

/* Policies that can always be satisfied: the current version, even if others dropped holds, and the
 * previous one if the slot keeps all. Any other policy is only recorded. */
static void make_satisfiable(generator *make, uint32_t slot, cs_policy *policy)
{
    if (policy->read != CS_READ_CURRENT || policy->slot != slot ||
        (policy->strict && !make->retains[slot])) {
        policy->notional = true;
        policy->drops = false;
        policy->n_held = 0;
    }
    if (!make->retains[slot])
        policy->drops = false; /* it could be the hold of a pair */
}

/* Gives the classes that have a slot, and are no pair that stashes, policies of their own. */
static void add_policies(generator *make)
{
    for (uint32_t cls = 0; cls < make->n_classes; cls++) {
        if (make->classes[cls].slot == CS_NONE || make->classes[cls].is_update ||
            make->classes[cls].stashes || chance(make, 40))
            continue;
        cs_policy policy = random_policy(make);
        if (chance(make, 40)) {
            policy.read = CS_READ_CURRENT;
            policy.slot = make->classes[cls].slot;
        }
        if (make->satisfiable)
            make_satisfiable(make, make->classes[cls].slot, &policy);
        cs_builder_set_policy(make->builder, cls, cs_builder_policy(make->builder, &policy));
    }
}

/* Two classes; the second frees the memory of the first. */
static void add_pair(generator *make)
{
    const cs_category category = below(make, CS_N_CATEGORIES);
    const uint32_t device = below(make, make->n_devices);
    const int64_t bytes = 1 + below(make, 60);
    const uint32_t opener = add_class(make);
    add_own_effects(make);
    cs_builder_effect(make->builder, category, device, bytes, chance(make, 40));
    const uint32_t closer = add_class(make);
    cs_builder_effect(make->builder, category, device, -bytes, chance(make, 60));
    add_own_effects(make);
    make->classes[opener].closer = closer;
    make->classes[closer].is_closer = true;
    stash(make, opener, closer);
}

static void make_classes(generator *make)
{
    const uint32_t wanted = 1 + below(make, MOST_CLASSES);
    while (make->n_classes < wanted) {
        if (chance(make, 35) && make->n_classes + 2 <= MOST_CLASSES) {
            add_pair(make);
        } else {
            add_class(make);
            add_own_effects(make);
        }
    }
}

/* ---- Tasks ---- */

static void draw_task(generator *make, uint32_t cls, uint32_t item, double rank)
{
    const bool in_order = make->orderly || make->classes[cls].in_program || chance(make, 70);
    const double shift = in_order ? 0 : gsl_rng_uniform(make->random) - 0.5;
    make->tasks[make->n_tasks++] =
        (random_task){.cls = cls, .rank = rank, .position = rank + shift, .item = item};
}

static int by_position(const void *a, const void *b)
{
    const random_task *left = a, *right = b;
    return (left->position > right->position) - (left->position < right->position);
}

static int by_rank(const void *a, const void *b)
{
    const random_task *left = a, *right = b;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

/* Draws tasks and adds them to the builder; then they stand by rank. */
static void make_tasks(generator *make)
{
    const uint32_t wanted = 1 + below(make, chance(make, 40) ? 8 : MOST_TASKS);
    while (make->n_tasks < wanted) {
        const uint32_t cls = below(make, make->n_classes);
        const uint32_t closer = make->classes[cls].closer;
        if (make->classes[cls].is_closer || (closer != CS_NONE && make->n_tasks + 2 > MOST_TASKS))
            continue;
        const double rank = gsl_rng_uniform(make->random);
        const bool stashes = make->classes[cls].stashes;
        if (stashes && make->classes[cls].n_pairs == make->n_items)
            break;
        const uint32_t item = stashes ? make->classes[cls].n_pairs++ : below(make, make->n_items);
        draw_task(make, cls, item, rank);
        if (closer != CS_NONE)
            draw_task(make, closer, stashes ? item : below(make, make->n_items),
                      rank + (1 - rank) * gsl_rng_uniform_pos(make->random));
    }
    qsort(make->tasks, make->n_tasks, sizeof(make->tasks[0]), by_position);
    for (uint32_t i = 0; i < make->n_tasks; i++)
        make->tasks[i].id = cs_builder_task(make->builder, make->tasks[i].cls, make->tasks[i].item);
    qsort(make->tasks, make->n_tasks, sizeof(make->tasks[0]), by_rank);
}

/* Closers come after openers: the k-th closer of a class waits for the k-th opener. By rank there
 * are never fewer openers than closers before a task, so this is not a cycle. */
static void tie_pairs(generator *make, uint32_t opener)
{
    const uint32_t closer = make->classes[opener].closer;
    uint32_t opened = 0;
    for (uint32_t i = 0; i < make->n_tasks; i++) {
        if (make->tasks[i].cls != closer)
            continue;
        while (make->tasks[opened].cls != opener)
            opened++;
        cs_builder_edge(make->builder, make->tasks[opened++].id, make->tasks[i].id);
    }
}

/* Readers of a note wait for its writer. */
static void tie_notes(generator *make, uint32_t opener)
{
    const uint32_t closer = make->classes[opener].closer;
    for (uint32_t i = 0; i < make->n_tasks; i++)
        for (uint32_t j = i + 1; j < make->n_tasks; j++)
            if (make->tasks[i].cls == opener && make->tasks[j].cls == closer &&
                make->tasks[i].item == make->tasks[j].item)
                cs_builder_edge(make->builder, make->tasks[i].id, make->tasks[j].id);
}

static void make_edges(generator *make)
{
    const uint32_t density = below(make, 70);
    for (uint32_t i = 1; i < make->n_tasks; i++)
        while (chance(make, density)) {
            const uint32_t reach = chance(make, 50) && i > 4 ? 4 : i;
            const uint32_t before = i - 1 - below(make, reach);
            cs_builder_edge(make->builder, make->tasks[before].id, make->tasks[i].id);
        }
    for (uint32_t cls = 0; cls < make->n_classes; cls++)
        if (make->classes[cls].closer != CS_NONE) {
            tie_pairs(make, cls);
            if (make->classes[cls].stashes)
                tie_notes(make, cls);
        }
}

/* ---- Rounds ---- */

/* Steps of a collective in lock step, without memory: the same messages again and again, each step
 * after the previous one. Usually they are alone on the links; other messages interfere if the rest
 * of the graph has some. */
static void make_rounds(generator *make)
{
    enum { MOST_MESSAGES = 5, MOST_STEPS = 4 };
    uint32_t classes[MOST_MESSAGES], before[MOST_MESSAGES];
    const uint32_t n_messages = 2 + below(make, MOST_MESSAGES - 1);
    const uint32_t n_steps = 2 + below(make, MOST_STEPS - 1), item = below(make, make->n_items);
    for (uint32_t i = 0; i < n_messages; i++) {
        cs_class cls = random_transfer(make);
        cls.origin = CS_ALL_REDUCE;
        cls.blocking = false;
        cls.weights = CS_NONE;
        classes[i] = cs_builder_class(make->builder, &cls);
    }
    const uint32_t start = chance(make, 50) ? make->tasks[below(make, make->n_tasks)].id : CS_NONE;
    for (uint32_t step = 0; step < n_steps; step++) {
        uint32_t tasks[MOST_MESSAGES] = {0};
        for (uint32_t i = 0; i < n_messages; i++) {
            tasks[i] = cs_builder_task(make->builder, classes[i], item);
            for (uint32_t k = 0; step > 0 && k < n_messages; k++)
                cs_builder_edge(make->builder, before[k], tasks[i]);
            if (step == 0 && start != CS_NONE)
                cs_builder_edge(make->builder, start, tasks[i]);
        }
        memcpy(before, tasks, sizeof(before));
    }
}

/* ---- All together ---- */

static void make_devices(generator *make)
{
    for (uint32_t device = 0; device < make->n_devices; device++) {
        const bool priority = !make->orderly && chance(make, 40);
        make->queues[device] = priority ? CS_QUEUE_PRIORITY : CS_QUEUE_PROGRAM;
        cs_builder_queue(make->builder, device, make->queues[device]);
        while (chance(make, 30))
            cs_builder_resident(make->builder, device, below(make, CS_N_CATEGORIES),
                                1 + below(make, 60));
    }
}

static void make_groups(generator *make)
{
    while (make->n_devices > 1 && chance(make, 50)) {
        uint32_t devices[MOST_DEVICES];
        const uint32_t first = below(make, make->n_devices);
        const uint32_t n = 2 + below(make, make->n_devices - 1);
        for (uint32_t i = 0; i < n; i++)
            devices[i] = (first + i) % make->n_devices;
        (void)cs_builder_group(make->builder, devices, n);
        make->n_groups++;
    }
}

static void make_slots(generator *make)
{
    make->n_slots = below(make, MOST_SLOTS + 1);
    for (uint32_t slot = 0; slot < make->n_slots; slot++) {
        const uint32_t stage = below(make, make->n_stages);
        make->slot_devices[slot] = below(make, make->n_devices);
        (void)cs_builder_slot(make->builder, stage, make->slot_devices[slot], below(make, 60));
    }
    for (uint32_t slot = 0; slot < make->n_slots; slot++) {
        make->retains[slot] = chance(make, 40);
        cs_builder_retain(make->builder, slot,
                          make->retains[slot] ? MOST_TASKS + 1 : 1 + below(make, 3),
                          make->orderly || chance(make, 50) ? slot : below(make, make->n_slots));
    }
    make->n_notes = below(make, 3);
    for (uint32_t i = 0; i < 2 * make->n_notes; i++)
        (void)cs_builder_register(make->builder);
}

static cs_status make_graph(generator *make, cs_graph *graph, cs_error *error)
{
    const uint32_t micro_batches = 1 + below(make, 3);
    const uint32_t n_batches = 1 + below(make, 3);
    make->n_stages = 1 + below(make, 3);
    make->n_items = micro_batches * n_batches;
    make->builder = cs_builder_create(make->n_devices, make->n_stages, micro_batches, n_batches);
    if (!make->builder)
        return cs_error_no_memory(error);
    make_devices(make);
    make_slots(make);
    make_groups(make);
    make_classes(make);
    if (!make->orderly && (make->satisfiable || chance(make, 90)))
        add_policies(make);
    make_tasks(make);
    make_edges(make);
    if (make->n_tasks > 0 && make->n_devices > 1 && chance(make, 25))
        make_rounds(make);
    const cs_status status = cs_builder_finish(make->builder, graph, error);
    cs_builder_destroy(make->builder);
    return status;
}

/* Factors: some are one, some are equal, and some make times that are not whole numbers. */
static void make_slowdown(generator *make, random_case *made)
{
    static const double factors[] = {1, 1, 1.5, 1.5, 2, 4, 1.189, 1.4};
    for (size_t i = 0; i < sizeof(made->slowdown) / sizeof(made->slowdown[0]); i++)
        made->slowdown[i] = PICK(make, factors);
    made->options.slowdown = made->slowdown;
}

cs_status random_case_init(random_case *made, uint64_t seed, cs_error *error)
{
    generator make = {.random = cs_random_stream(seed, "random graph")};
    if (!make.random)
        return cs_error_no_memory(error);
    *made = (random_case){0};
    make.orderly = seed % 4 == 0;
    make.hosts = seed % 3 == 0;
    make.n_devices = 1 + below(&make, MOST_DEVICES);
    make.satisfiable = made->satisfiable = chance(&make, 80);
    made->options = (cs_engine_options){.record_memory = chance(&make, 80),
                                        .record_versions = chance(&make, 80),
                                        .stop_on_oom = chance(&make, 30)};
    if (chance(&make, 40))
        make_slowdown(&make, made);
    cs_status status = make_platform(&make, &made->platform, error);
    if (status == CS_OK)
        status = make_graph(&make, &made->graph, error);
    if (status == CS_OK)
        status = cs_graph_check(&made->graph, error);
    if (status != CS_OK)
        random_case_finish(made);
    gsl_rng_free(make.random);
    return status;
}

void random_case_finish(random_case *made)
{
    cs_graph_finish(&made->graph);
    cs_platform_finish(&made->platform);
}

/* ---- Printing ---- */

static const char *const sharings[] = {
#define SHARING_TEXT(name, text) text,
    CS_SHARING_MAP(SHARING_TEXT)
#undef SHARING_TEXT
};

static void print_platform(const random_case *made, FILE *out)
{
    const cs_platform *platform = &made->platform;
    fprintf(out, "%s, sharing %s, phi %g, messages %s%s\n", platform->topology,
            sharings[platform->sharing], platform->phi,
            platform->independent_messages ? "independent" : "in order",
            made->options.stop_on_oom ? ", stops when out of memory" : "");
    for (uint32_t i = 0; i < platform->n_devices; i++)
        fprintf(out, "device %" PRIu32 ": speed %g, capacity %" PRId64 ", %s order\n", i,
                platform->devices[i].speed, platform->devices[i].capacity,
                made->graph.queues[i] == CS_QUEUE_PRIORITY ? "priority" : "program");
    for (uint32_t i = 0; i < platform->n_links; i++)
        fprintf(out, "link %" PRIu32 " %s: %.17g bytes/s, %" PRId64 " ps\n", i,
                platform->links[i].name, platform->links[i].bandwidth, platform->links[i].latency);
}

static void print_slowdown(const random_case *made, FILE *out)
{
    for (uint32_t i = 0; made->options.slowdown && i < CS_N_KINDS * CS_N_KINDS; i++)
        if (cs_kind_group_of(i / CS_N_KINDS) == CS_GROUP_COMPUTE && made->slowdown[i] > 1)
            fprintf(out, "%s during %s: times %g\n", cs_kind_name(i / CS_N_KINDS),
                    cs_kind_name(i % CS_N_KINDS), made->slowdown[i]);
}

static void print_slots(const cs_graph *graph, FILE *out)
{
    static const char *const reads[] = {"current", "lag", "register"};
    for (uint32_t i = 0; i < graph->n_slots; i++) {
        const cs_slot *slot = &graph->slots[i];
        fprintf(out,
                "slot %" PRIu32 " on %" PRIu32 ": %" PRId64 " bytes, newest %" PRIu32
                ", behind %" PRIu32 "\n",
                i, slot->device, slot->bytes, slot->newest, slot->behind);
    }
    for (uint32_t i = 0; i < graph->n_policies; i++) {
        const cs_policy *policy = &graph->policies[i];
        fprintf(out,
                "policy %" PRIu32 ": %s, slot %" PRIu32 ", lag %" PRIu32 ", reads %" PRId32
                ", writes %" PRId32 ", holds %" PRIu32 " from %" PRIu32 "%s%s%s%s\n",
                i + 1, reads[policy->read], policy->slot, policy->lag, (int32_t)policy->reads,
                (int32_t)policy->writes, policy->n_held, policy->first_held,
                policy->strict ? ", strict" : "", policy->drops ? ", drops" : "",
                policy->by_batch ? ", by mini-batch" : "", policy->notional ? ", notional" : "");
    }
}

/* Parts that cs_graph_print does not show. */
static void print_classes(const cs_graph *graph, FILE *out)
{
    for (uint32_t i = 0; i < graph->n_residents; i++)
        fprintf(out, "resident on %" PRIu32 ": %" PRId64 " bytes of %s\n",
                graph->residents[i].device, graph->residents[i].bytes,
                cs_category_name(graph->residents[i].category));
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        fprintf(out, "%" PRIu32 ":%s", task, cls->blocking ? " blocking" : "");
        if (graph->queues[cls->device] == CS_QUEUE_PRIORITY && cls->kind != CS_TRANSFER)
            fprintf(out, " priority %" PRId32, cls->priority);
        if (cls->weights != CS_NONE)
            fprintf(out, " slot %" PRIu32 " policy %" PRIu32 "%s", cls->weights, cls->policy,
                    cls->updates ? ", updates" : "");
        fputc('\n', out);
    }
}

void random_case_print(const random_case *made, FILE *out)
{
    print_platform(made, out);
    print_slowdown(made, out);
    print_slots(&made->graph, out);
    print_classes(&made->graph, out);
    (void)cs_graph_print(&made->graph, out);
}
