#include "tests/expect.h"
#include "tests/uniform-run.h"

/* ---- written out, a known schedule is that schedule ---- */

/* gpipe and 1f1b of three stages and four micro-batches, by hand. */
static const struct {
    const char *name, *lists;
} known[] = {
    {"gpipe",
     "[\"F0 F1 F2 F3 B3 B2 B1 B0\", \"F0 F1 F2 F3 B3 B2 B1 B0\", \"F0 F1 F2 F3 B3 B2 B1 B0\"]"},
    {"1f1b", "[\"F0 F1 F2 B0 F3 B1 B2 B3\", \"F0 F1 B0 F2 B1 F3 B2 B3\", [\"F0\", \"B0\", \"F1 "
             "B1\", \"F2 B2 F3@2 B3@2\"]]"},
};

static void test_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(known); i++) {
        char custom[512], other[128];
        snprintf(custom, sizeof(custom),
                 "{\"kind\": \"custom\", \"micro_batches\": 4, \"device_tasks\": %s}",
                 known[i].lists);
        snprintf(other, sizeof(other), "{\"kind\": \"%s\", \"micro_batches\": 4}", known[i].name);
        const char *network =
            "\"topology\": \"ring\", \"bandwidth\": \"3 GB/s\", \"latency\": \"7 ms\"";
        scenario_run a, b;
        uniform_run_expect(&a, &(uniform_text){5, 3, 2, custom, NULL, network});
        uniform_run_expect(&b, &(uniform_text){5, 3, 2, other, NULL, network});
        expect_bits(known[i].name, b.simulation.hash, a.simulation.hash);
        scenario_run_finish(&a);
        scenario_run_finish(&b);
    }
}

/* ---- a backward in two halves ---- */

/* Times in s, two stages, two micro-batches, all three kinds of task taking 1 s:
 *     device 0: F0 0-1  F1 1-2  idle    B0 3-4  W0 4-5  B1 5-6  W1 6-7
 *     device 1: idle    F0 1-2  B0 2-3  F1 3-4  B1 4-5  W0 5-6  W1 6-7
 * Kept activations: device 0 holds two from 1 (F1) on; device 1 two from 3 (F1) to 6 (W0). */
static void test_halves(void **state)
{
    (void)state;
    static const struct {
        cs_kind kind;
        uint32_t stage, micro, start;
    } rows[] = {
        {CS_FORWARD, 0, 0, 0},         {CS_FORWARD, 0, 1, 1},         {CS_BACKWARD_INPUT, 0, 0, 3},
        {CS_BACKWARD_WEIGHT, 0, 0, 4}, {CS_BACKWARD_INPUT, 0, 1, 5},  {CS_BACKWARD_WEIGHT, 0, 1, 6},
        {CS_FORWARD, 1, 0, 1},         {CS_BACKWARD_INPUT, 1, 0, 2},  {CS_FORWARD, 1, 1, 3},
        {CS_BACKWARD_INPUT, 1, 1, 4},  {CS_BACKWARD_WEIGHT, 1, 0, 5}, {CS_BACKWARD_WEIGHT, 1, 1, 6},
    };
    scenario_run run;
    uniform_run_expect(
        &run, &(uniform_text){.layers = 2,
                              .devices = 2,
                              .schedule =
                                  "{\"kind\": \"custom\", \"micro_batches\": 2, \"device_tasks\": "
                                  "[\"F0 F1 B0 W0 B1 W1\", \"F0 B0 F1 B1 W0 W1\"]}"});
    for (size_t i = 0; i < ROWS(rows); i++) {
        char row[64];
        snprintf(row, sizeof(row), "%s%u of stage %u", cs_kind_symbol(rows[i].kind), rows[i].micro,
                 rows[i].stage);
        uint32_t task = uniform_run_find(&run, rows[i].kind, rows[i].stage, rows[i].micro);
        assert_int_not_equal(task, CS_NONE);
        expect_int(row, rows[i].start * CS_PS_PER_SEC, run.simulation.trace.spans[task].start);
    }
    expect_int("makespan", 7 * CS_PS_PER_SEC, run.simulation.trace.makespan);
    for (uint32_t d = 0; d < 2; d++)
        expect_int("activations", 2000000000,
                   run.simulation.trace.devices[d].category_peak[CS_MEMORY_ACTIVATIONS]);
    scenario_run_finish(&run);
}

/* ---- several stages on a device ---- */

/* Stages 0 and 3 on device 0, 1 and 2 on device 1, one micro-batch: nothing overlaps, and only the
 * messages between 0 and 1 and between 2 and 3 take time: 4 (1 + 2) s of compute and four messages
 * of 1 s. */
static void test_stages(void **state)
{
    (void)state;
    scenario_run run;
    uniform_run_expect(
        &run,
        &(uniform_text){
            .layers = 4,
            .devices = 2,
            .schedule = "{\"kind\": \"custom\", \"micro_batches\": 1, \"stage_devices\": [0, 1, 1, "
                        "0], \"device_tasks\": [\"F0@0 F0@3 B0@3 B0@0\", \"F0@1 F0@2 B0@2 B0@1\"]}",
            .platform = "\"topology\": \"ring\", \"bandwidth\": \"1 GB/s\", \"latency\": \"0 s\""});
    expect_int("makespan", 16 * CS_PS_PER_SEC, run.simulation.trace.makespan);
    scenario_run_finish(&run);
}

/* ---- what is wrong is said ---- */

#define LISTS    "test: /schedule/device_tasks"
#define DEADLOCK LISTS ": the order of the tasks deadlocks: "

static const struct {
    const char *name, *members, *message;
    uint32_t layers, devices;
} wrong[] = {
    {"own forward later", "\"device_tasks\": [\"F0 F1 B0 B1\", \"B0 F0 F1 B1\"]",
     DEADLOCK "B0 of stage 1 waits for F0 of stage 1, which follows B0 of stage 1 on device 1", 2,
     2},
    {"each waits for the other", "\"device_tasks\": [\"F0 B0 F1 B1\", \"F0 F1 B0 B1\"]",
     DEADLOCK "B0 of stage 0 waits for B0 of stage 1, which follows F1 of stage 1 on device 1; F1 "
              "of stage 1 waits for F1 of stage 0, which follows B0 of stage 0 on device 0",
     2, 2},
    {"weights first", "\"device_tasks\": [\"F0 F1 W0 B0 B1\", \"F0 F1 B0 B1\"]",
     DEADLOCK "W0 of stage 0 waits for B0 of stage 0, which follows W0 of stage 0 on device 0", 2,
     2},
    {"a forward is missing", "\"device_tasks\": [\"F0 B0 B1\", \"F0 F1 B0 B1\"]",
     LISTS "/0: must have F1 of stage 0 as well", 2, 2},
    {"a backward is missing", "\"device_tasks\": [\"F0 F1 B0 B1\", \"F0 F1 W1 B0\"]",
     LISTS "/1: must have B1 of stage 1 as well", 2, 2},
    {"twice", "\"device_tasks\": [\"F0 F1 B0 B1 F1\", \"F0 F1 B0 B1\"]",
     LISTS "/0: must have F1 of stage 0 once only", 2, 2},
    {"no such micro-batch", "\"device_tasks\": [\"F0 F1 B0 B1\", [\"F0 F1\", \"B0 B2\"]]",
     LISTS "/1/1: must be F, B or W, a micro-batch below 2 and, where device 1 has several stages, "
           "@ and one of them: \"F3\" or \"F3@1\" (got \"B2\")",
     2, 2},
    {"no task", "\"device_tasks\": [\"F0 F1 B0 B1\", \"F0 f1\"]",
     LISTS "/1: must be F, B or W, a micro-batch below 2 and, where device 1 has several stages, @ "
           "and one of them: \"F3\" or \"F3@1\" (got \"f1\")",
     2, 2},
    {"stage of another device", "\"device_tasks\": [\"F0 F1 B0 B1\", \"F0@0\"]",
     LISTS "/1: must be F, B or W, a micro-batch below 2 and, where device 1 has several stages, @ "
           "and one of them: \"F3\" or \"F3@1\" (got \"F0@0\")",
     2, 2},
    {"a number", "\"device_tasks\": [\"F0 F1 B0 B1\", 3]",
     LISTS "/1: must be tasks as a text, \"F0 F1 B0\" (got 3)", 2, 2},
    {"no lists", "\"device_tasks\": \"F0\"",
     LISTS ": must be a list, such as [\"F0 F1 B0 B1\" or [\"F0\", ...], ...] (got \"F0\")", 2, 2},
    {"device without tasks", "\"stage_devices\": [0, 2], \"device_tasks\": [\"F0\", \"F0\"]",
     "test: /schedule/stage_devices/1: must be a device below 2, the number of lists of tasks (got "
     "2)",
     2, 2},
    {"lists for other devices", "\"device_tasks\": [\"F0 F1 B0 B1\", \"F0 F1 B0 B1\"]",
     "test: /platform/devices: the schedule \"custom\" with these parameters has 2 devices (got "
     "3); use 2",
     2, 3},
    {"too few layers", "\"device_tasks\": [\"F0 F1 B0 B1\", \"F0 F1 B0 B1\"]",
     "test: /platform/devices: gives the schedule \"custom\" 2 stages, more than the 1 layers of "
     "\"uniform\" (got 2)",
     1, 2},
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(wrong); i++) {
        char schedule[512];
        snprintf(schedule, sizeof(schedule), "{\"kind\": \"custom\", \"micro_batches\": 2, %s}",
                 wrong[i].members);
        scenario_run run;
        cs_error error = {0};
        cs_status status = uniform_run_init(
            &run, &(uniform_text){wrong[i].layers, wrong[i].devices, 1, schedule, NULL, NULL},
            &error);
        expect_error(wrong[i].name, CS_INVALID, wrong[i].message, status, &error);
        scenario_run_finish(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
