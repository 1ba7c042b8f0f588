/* Versions of the weights on small runs whose results are derived by hand in the comments. Every
 * run is made by the reference engine as well, so that it is checked by the same numbers.
 *
 * A task takes 10 ps unless said otherwise; a version has 100 bytes.
 */
#include "sim/core/engine/engine.h"
#include "sim/core/graph/builder.h"
#include "tests/reference-engine.h"
#include "topologies/topology.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { N_ENGINES = 2, VERSION_BYTES = 100, MOST_TASKS = 16, MOST_SLOTS = 2 };

static const struct {
    const char *name;
    cs_status (*run)(const cs_graph *, const cs_platform *, const cs_engine_options *, cs_trace *,
                     cs_error *);
} engines[N_ENGINES] = {{"engine", cs_engine_run}, {"reference", reference_run}};

/* A task; `policy` counts from 1, 0 is none. Tasks of a device run in their order. */
typedef struct row {
    cs_kind kind;
    uint32_t device, slot, item, policy;
    cs_time duration;
    bool updates;
} row;

typedef struct scene {
    const char *name;
    uint32_t n_slots; /* slot i is on device i */
    cs_slot slots[MOST_SLOTS];
    uint32_t n_registers;
    cs_policy policies[4]; /* up to the first that reads nothing: lag 0 */
    row rows[MOST_TASKS];  /* up to the first without a duration */
    cs_status status;
    uint32_t versions[MOST_TASKS]; /* read or, by an update, made */
    uint32_t made[MOST_SLOTS], peak_live[MOST_SLOTS];
} scene;

enum { MICRO_BATCHES = 2, BATCHES = 4 };

static void build(const scene *given, cs_graph *graph)
{
    cs_error error;
    cs_error_init(&error);
    cs_builder *builder = cs_builder_create(MOST_SLOTS, 1, MICRO_BATCHES, BATCHES);
    assert_non_null(builder);
    for (uint32_t s = 0; s < given->n_slots; s++)
        (void)cs_builder_slot(builder, 0, s, VERSION_BYTES);
    for (uint32_t s = 0; s < given->n_slots; s++)
        cs_builder_retain(builder, s, given->slots[s].newest, given->slots[s].behind);
    for (uint32_t r = 0; r < given->n_registers; r++)
        (void)cs_builder_register(builder);
    for (uint32_t p = 0; p < 4 && given->policies[p].lag > 0; p++)
        (void)cs_builder_policy(builder, &given->policies[p]);
    for (const row *task = given->rows; task->duration > 0; task++) {
        cs_class cls = {.kind = (uint8_t)task->kind,
                        .origin = (uint8_t)task->kind,
                        .updates = task->updates,
                        .device = task->device,
                        .peer = CS_NONE,
                        .weights = task->slot,
                        .policy = task->policy,
                        .duration = task->duration - 1};
        (void)cs_builder_task(builder, cs_builder_class(builder, &cls), task->item);
    }
    if (cs_builder_finish(builder, graph, &error) != CS_OK ||
        cs_graph_check(graph, &error) != CS_OK)
        fail_msg("%s: %s", given->name, error.text);
    cs_builder_destroy(builder);
}

static void expect(const scene *given, const char *engine, const cs_trace *trace)
{
    for (uint32_t task = 0; task < trace->n_tasks; task++)
        if (trace->versions[task] != given->versions[task])
            fail_msg("%s: %s: task %" PRIu32 ": version %" PRIu32 ", not %" PRIu32, given->name,
                     engine, task, trace->versions[task], given->versions[task]);
    for (uint32_t s = 0; s < given->n_slots; s++) {
        const cs_slot_record *slot = &trace->slots[s];
        /* besides the current version */
        const int64_t peak = VERSION_BYTES * ((int64_t)given->peak_live[s] - 1);
        if (slot->made != given->made[s] || slot->peak_live != given->peak_live[s] ||
            trace->devices[s].category_peak[CS_MEMORY_WEIGHT_VERSIONS] != peak)
            fail_msg("%s: %s: slot %" PRIu32 ": %" PRIu32 " made, at most %" PRIu32
                     " alive and %" PRId64 " bytes, not %" PRIu32 ", %" PRIu32 " and %" PRId64,
                     given->name, engine, s, slot->made, slot->peak_live,
                     trace->devices[s].category_peak[CS_MEMORY_WEIGHT_VERSIONS], given->made[s],
                     given->peak_live[s], peak);
    }
}

static void run(const scene *given)
{
    cs_graph graph;
    cs_platform platform;
    const cs_topology *ideal = cs_topology_find("ideal");
    assert_int_equal(ideal->build(NULL, MOST_SLOTS, &platform, NULL), CS_OK);
    build(given, &graph);
    for (int i = 0; i < N_ENGINES; i++) {
        cs_error error;
        cs_error_init(&error);
        cs_trace trace = {0};
        const cs_engine_options options = {.record_memory = true, .record_versions = true};
        const cs_status status = engines[i].run(&graph, &platform, &options, &trace, &error);
        if (status != given->status)
            fail_msg("%s: %s: %s, not %s: %s", given->name, engines[i].name, cs_status_name(status),
                     cs_status_name(given->status), error.text);
        if (status == CS_OK)
            expect(given, engines[i].name, &trace);
        cs_trace_finish(&trace);
    }
    cs_graph_finish(&graph);
    cs_platform_finish(&platform);
}

/* Durations in rows are one more than what the task takes, so that 0 ends the list. */
#define F(device, item, policy)                                                                    \
    {                                                                                              \
        CS_FORWARD, device, device, item, policy, 11, false                                        \
    }
#define B(device, item, policy)                                                                    \
    {                                                                                              \
        CS_BACKWARD, device, device, item, policy, 11, false                                       \
    }
#define BU(device, item, policy)                                                                   \
    {                                                                                              \
        CS_BACKWARD, device, device, item, policy, 11, true                                        \
    }
#define U(device, item)                                                                            \
    {                                                                                              \
        CS_UPDATE, device, device, item, 0, 11, false                                              \
    }
#define U0(device, item)                                                                           \
    {                                                                                              \
        CS_UPDATE, device, device, item, 0, 1, false                                               \
    }

static const scene scenes[] = {
    /* Without policies: the current version. */
    {"current",
     1,
     {{.newest = 1}},
     .rows = {F(0, 0, 0), B(0, 0, 0), U(0, 0), F(0, 2, 0), U(0, 2)},
     .versions = {0, 0, 1, 1, 2},
     .made = {2},
     .peak_live = {1}},
    /* A backward that updates reads before it makes. */
    {"a backward that updates",
     1,
     {{.newest = 1}},
     .rows = {F(0, 0, 0), BU(0, 0, 0), F(0, 2, 0), BU(0, 2, 0), F(0, 4, 0)},
     .versions = {0, 0, 1, 1, 2},
     .made = {2},
     .peak_live = {1}},
    /* Stashing: forwards of mini-batches 0 and 1 read version 0, one after the update 1. The
     * backwards read the same again. Version 0 lives until the second backward that read it ends
     * (two holds), so that 0 and 1, then 0, 1 and 2 are alive; at the end of the last B only 2. */
    {"stashing",
     1,
     {{.newest = 1}},
     1,
     {{.read = CS_READ_CURRENT, .lag = 1, .writes = 0, .n_held = 1},
      {.read = CS_READ_REGISTER, .lag = 1, .writes = CS_NONE, .drops = true}},
     .rows = {F(0, 0, 1), F(0, 2, 1), B(0, 0, 2), U(0, 0), F(0, 4, 1), U(0, 2), B(0, 2, 2),
              B(0, 4, 2)},
     .versions = {0, 0, 0, 1, 1, 2, 0, 1},
     .made = {2},
     .peak_live = {3}},
    /* A register that no task wrote. */
    {"nothing in the register",
     1,
     {{.newest = 1}},
     1,
     {{.read = CS_READ_REGISTER, .lag = 1, .writes = CS_NONE}},
     .rows = {B(0, 0, 1)},
     .status = CS_FAILED},
    /* The register is the mini-batch's: both of its micro-batches read what the first one wrote. */
    {"by mini-batch",
     1,
     {{.newest = 2}},
     1,
     {{.read = CS_READ_CURRENT, .lag = 1, .by_batch = true, .writes = 0},
      {.read = CS_READ_REGISTER, .lag = 1, .by_batch = true, .writes = CS_NONE}},
     .rows = {F(0, 0, 1), U(0, 0), B(0, 0, 2), B(0, 1, 2)},
     .versions = {0, 1, 0, 0},
     .made = {1},
     .peak_live = {2}},
    /* The same by item: the second one's cell is empty. */
    {"by item",
     1,
     {{.newest = 2}},
     1,
     {{.read = CS_READ_CURRENT, .lag = 1, .writes = 0},
      {.read = CS_READ_REGISTER, .lag = 1, .writes = CS_NONE}},
     .rows = {F(0, 0, 1), U(0, 0), B(0, 0, 2), B(0, 1, 2)},
     .status = CS_FAILED},
    /* Lag 2 of mini-batches 0, 1, 2, 3: versions 0, 0, 1, 2, which two newest versions are enough
     * for as long as mini-batch b runs before the update of b. */
    {"lag",
     1,
     {{.newest = 2}},
     0,
     {{.read = CS_READ_LAG, .lag = 2, .writes = CS_NONE}},
     .rows = {F(0, 0, 1), U(0, 0), F(0, 2, 1), U(0, 2), F(0, 4, 1), U(0, 4), F(0, 6, 1)},
     .versions = {0, 1, 0, 2, 1, 3, 2},
     .made = {3},
     .peak_live = {2}},
    /* With one version kept, version 0 is dropped when mini-batch 1 requests it. */
    {"lag, too old",
     1,
     {{.newest = 1}},
     0,
     {{.read = CS_READ_LAG, .lag = 2, .writes = CS_NONE}},
     .rows = {F(0, 0, 1), U(0, 0), F(0, 2, 1)},
     .status = CS_FAILED},
    /* Lag 1 of mini-batch 1 is version 1, which is not made yet; it may be noted all the same. */
    {"lag, too new",
     1,
     {{.newest = 1}},
     0,
     {{.read = CS_READ_LAG, .lag = 1, .writes = CS_NONE}},
     .rows = {F(0, 2, 1)},
     .status = CS_FAILED},
    {"lag, too new, notional",
     1,
     {{.newest = 1}},
     0,
     {{.read = CS_READ_LAG, .lag = 1, .writes = CS_NONE, .notional = true}},
     .rows = {F(0, 2, 1)},
     .versions = {1},
     .made = {0},
     .peak_live = {1}},
    /* Two updates end at 10; the second takes no time. Tasks that start then see both, and a strict
     * one neither. At 30 nothing has just ended. */
    {"strict",
     1,
     {{.newest = 3}},
     0,
     {{.read = CS_READ_CURRENT, .lag = 1, .writes = CS_NONE},
      {.read = CS_READ_CURRENT, .lag = 1, .writes = CS_NONE, .strict = true}},
     .rows = {U(0, 0), U0(0, 2), F(0, 4, 2), F(0, 4, 2), F(0, 4, 1)},
     .versions = {1, 2, 0, 2, 2},
     .made = {2},
     .peak_live = {3}},
    /* The strict task requests a version that its slot did not keep. */
    {"strict, gone",
     1,
     {{.newest = 1}},
     0,
     {{.read = CS_READ_CURRENT, .lag = 1, .writes = CS_NONE, .strict = true}},
     .rows = {U(0, 0), F(0, 2, 1)},
     .status = CS_FAILED},
    /* Slot 1 retains from slot 0's current version on. Device 1 updates at 10, 20 and 30, device 0
     * at 20 and 30 (F, U, U). Alive on slot 1: from 10 on 0 and 1; at 20 device 0's update, of the
     * lower id, is applied first: 1 remains, and with 2 there are two; at 30 the same. F at 30 on
     * device 1 (strict: what slot 0 had before 30) reads version 1, which slot 1 has no more. */
    {"behind",
     2,
     {{.newest = 1, .behind = 0}, {.newest = 1, .behind = 0}},
     0,
     {{.read = CS_READ_CURRENT, .lag = 1, .writes = CS_NONE}},
     .rows = {F(0, 0, 0), U(0, 0), U(0, 2), U(1, 0), U(1, 2), U(1, 4), F(1, 0, 1)},
     .versions = {0, 1, 2, 1, 2, 3, 2},
     .made = {2, 3},
     .peak_live = {1, 2}},
    {"behind, strict",
     2,
     {{.newest = 1, .behind = 0}, {.newest = 1, .behind = 0}},
     0,
     {{.read = CS_READ_CURRENT, .lag = 1, .writes = CS_NONE, .strict = true}},
     .rows = {F(0, 0, 0), U(0, 0), U(0, 2), U(1, 0), U(1, 2), U(1, 4), F(1, 0, 1)},
     .status = CS_FAILED},
    /* At 10 device 1 is free first (task 0 ends before task 1), and yet device 0 starts first: it
     * notes what device 1 reads. */
    {"noted by the device before",
     2,
     {{.newest = 1, .behind = 0}, {.newest = 1, .behind = 1}},
     1,
     {{.read = CS_READ_CURRENT, .lag = 1, .writes = 0},
      {.read = CS_READ_REGISTER, .lag = 1, .writes = CS_NONE}},
     .rows = {F(1, 2, 0), F(0, 2, 0), F(0, 0, 1), F(1, 0, 2)},
     .versions = {0, 0, 0, 0},
     .peak_live = {1, 1}},
    /* Device 1 reads at 0 what device 0 notes at 0; it holds version 0 on both slots, and never
     * drops it: one additional version on each from the first update on. */
    {"noted and held at one instant",
     2,
     {{.newest = 1, .behind = 0}, {.newest = 1, .behind = 1}},
     1,
     {{.read = CS_READ_CURRENT, .lag = 1, .writes = 0, .n_held = 2},
      {.read = CS_READ_REGISTER, .lag = 1, .writes = CS_NONE}},
     .rows = {F(0, 0, 1), U(0, 0), U(0, 2), F(1, 0, 2), U(1, 0), U(1, 2), F(1, 0, 2)},
     .versions = {0, 1, 2, 0, 1, 2, 0},
     .made = {2, 2},
     .peak_live = {2, 2}},
};

static void test_scenes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
        run(&scenes[i]);
}

/* A notional version is not held, and an update reads none. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        cs_kind kind;
        cs_policy policy;
    } rows[] = {
        {CS_FORWARD, {.read = CS_READ_CURRENT, .writes = CS_NONE, .notional = true, .n_held = 1}},
        {CS_FORWARD, {.read = CS_READ_CURRENT, .writes = CS_NONE, .notional = true, .drops = true}},
        {CS_FORWARD, {.read = CS_READ_CURRENT, .writes = 0}},
        {CS_FORWARD, {.read = CS_READ_CURRENT, .slot = 1, .writes = CS_NONE}},
        {CS_FORWARD, {.read = CS_READ_LAG, .writes = CS_NONE}},
        {CS_FORWARD, {.read = CS_READ_REGISTER, .writes = CS_NONE}},
        {CS_FORWARD, {.read = CS_READ_CURRENT, .writes = CS_NONE, .first_held = 1, .n_held = 1}},
        {CS_UPDATE, {.read = CS_READ_CURRENT, .writes = CS_NONE}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cs_graph graph;
        cs_error error;
        cs_error_init(&error);
        cs_builder *builder = cs_builder_create(1, 1, 1, 1);
        assert_non_null(builder);
        const uint32_t slot = cs_builder_slot(builder, 0, 0, VERSION_BYTES);
        const uint32_t cls = cs_builder_compute(builder, rows[i].kind, 0, 0, slot, 1);
        cs_builder_set_policy(builder, cls, cs_builder_policy(builder, &rows[i].policy));
        (void)cs_builder_task(builder, cls, 0);
        assert_int_equal(cs_builder_finish(builder, &graph, &error), CS_OK);
        if (cs_graph_check(&graph, &error) != CS_INVALID)
            fail_msg("row %zu was not refused", i);
        cs_graph_finish(&graph);
        cs_builder_destroy(builder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scenes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
