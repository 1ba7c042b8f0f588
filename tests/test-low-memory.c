/* Runs whose tasks are dropped as they run, against the same runs in full, over all schedules,
 * sharings and platforms of random scenarios; and graphs that cannot be run so.
 *
 * The full run records its history, so it goes event by event, over a graph. */
#include "sim/base/random.h"
#include "sim/core/engine/task-window.h"
#include "sim/run/low-memory.h"
#include "sim/run/print/report.h"
#include "tests/expect.h"
#include "tests/random-scenario.h"
#include "tests/run-scenario.h"
#include "topologies/topology.h"

#include <string.h>

enum { N_SCENARIOS = 100 };

/* ---- scenarios ---- */

static void compare_traces(const char *text, const cs_trace *whole, const cs_trace *low)
{
    expect_int(text, whole->n_tasks, low->n_tasks);
    expect_int(text, whole->makespan, low->makespan);
    for (uint32_t i = 0; i < whole->n_tasks; i++) {
        expect_int(text, whole->spans[i].start, low->spans[i].start);
        expect_int(text, whole->spans[i].end, low->spans[i].end);
    }
    for (uint32_t d = 0; d < whole->n_devices; d++) {
        const cs_device_record *a = &whole->devices[d], *b = &low->devices[d];
        expect_int(text, a->peak, b->peak);
        expect_int(text, a->peak_time, b->peak_time);
        expect_int(text, a->out_of_memory, b->out_of_memory);
        expect_int(text, a->oom_time, b->oom_time);
        expect_int(text, a->oom_task, b->oom_task);
        assert_memory_equal(a->at_peak, b->at_peak, sizeof(a->at_peak));
        assert_memory_equal(a->category_peak, b->category_peak, sizeof(a->category_peak));
        assert_memory_equal(a->at_oom, b->at_oom, sizeof(a->at_oom));
    }
    for (uint32_t i = 0; i < whole->n_links; i++)
        expect_int(text, whole->links[i].bytes, low->links[i].bytes);
    for (uint32_t i = 0; i < whole->n_slots; i++) {
        expect_int(text, whole->slots[i].made, low->slots[i].made);
        expect_int(text, whole->slots[i].peak_live, low->slots[i].peak_live);
    }
}

/* Compares all numbers of the run with low memory, except the hash and the name of a task. */
static void compare_json(const char *text, const cJSON *whole, const cJSON *low)
{
    const char *key = low->string ? low->string : "";
    if (cJSON_IsNull(low) || strcmp(key, "hash") == 0 || strcmp(key, "task") == 0)
        return;
    if (!whole)
        fail_msg("%s: only with little memory\n%s", key, text);
    if (!cJSON_IsObject(low) && !cJSON_IsArray(low)) {
        if (!cJSON_Compare(whole, low, true))
            fail_msg("%s: %.17g in full, %.17g with little memory\n%s", key, whole->valuedouble,
                     low->valuedouble, text);
        return;
    }
    const cJSON *item, *other = whole->child;
    cJSON_ArrayForEach(item, low)
    {
        const bool named = cJSON_IsObject(low);
        compare_json(text, named ? cJSON_GetObjectItemCaseSensitive(whole, item->string) : other,
                     item);
        other = other ? other->next : NULL;
    }
}

static void compare_reports(const char *text, const cs_scenario *scenario,
                            const cs_simulation *whole, const cs_simulation *low)
{
    cJSON *expected = cs_report_json(scenario, whole), *found = cs_report_json(scenario, low);
    assert_non_null(expected);
    assert_non_null(found);
    compare_json(text, expected, found);
    cJSON_Delete(expected);
    cJSON_Delete(found);
}

/* The conditions of low-memory.h. */
static bool should_apply(const cs_scenario *scenario, const cs_simulation *whole)
{
    const cs_platform *platform = &scenario->platform;
    return !scenario->schedule->asynchronous && whole->lowering.n_collectives == 0 &&
           !scenario->job.blocking &&
           (platform->sharing == CS_SHARING_NONE || platform->sharing == CS_SHARING_PHI);
}

/* Runs a scenario in all three ways; returns whether little memory is enough. */
static bool try_scenario(const char *text, bool unshared)
{
    scenario_run run;
    cs_simulation whole = {0}, low = {0}, plain = {0};
    cs_error error = {0};
    expect_int(text, CS_OK, scenario_run_read(&run, &error, "%s", text));
    if (unshared)
        run.scenario.platform.sharing = CS_SHARING_NONE;
    run.scenario.job.iterations = 1 + (uint32_t)strlen(text) % 5;
    const cs_simulation_options options = {0}, events = {.every_event = true};
    expect_int(text, CS_OK, cs_simulate(&run.scenario, &options, &whole, &error));
    const cs_status status = cs_simulate_low_memory(&run.scenario, &options, &low, &error);
    if (should_apply(&run.scenario, &whole))
        expect_int(text, CS_OK, status);
    if (status == CS_OK) {
        compare_traces(text, &whole.trace, &low.trace);
        compare_reports(text, &run.scenario, &whole, &low);
        expect_int(text, CS_OK, cs_simulate_low_memory(&run.scenario, &events, &plain, &error));
        expect_bits(text, plain.hash, low.hash);
    } else {
        expect_int(text, CS_USAGE, status);
        assert_non_null(strstr(error.text, "cannot be run with little memory: "));
    }
    cs_simulation_finish(&whole);
    cs_simulation_finish(&low);
    cs_simulation_finish(&plain);
    scenario_run_finish(&run);
    return status == CS_OK;
}

static void test_schedules(void **state)
{
    (void)state;
    const uint32_t n = cases_drawn(N_SCENARIOS);
    uint32_t n_done = 0;
    for (uint32_t i = 0; cs_schedules[i]; i++) {
        const char *name = cs_schedules[i]->name;
        if (strcmp(name, "custom") == 0)
            continue; /* below */
        gsl_rng *random = cs_random_stream(2, name);
        assert_non_null(random);
        for (uint32_t k = 0; k < n; k++) {
            char text[RANDOM_SCENARIO_BYTES];
            random_scenario(random, name, text);
            n_done += try_scenario(text, k % 2 == 0);
        }
        gsl_rng_free(random);
    }
    assert_true(n_done > n); /* at least half of the runs of several schedules */
}

/* Messages that take no time, so that a chain of tasks is run at one instant. */
static void test_custom(void **state)
{
    (void)state;
    static const char text[] =
        "{'schema_version': 1, 'model': {'uniform': {'layers': 4, 'forward': '0 s', 'backward': "
        "'2 ms', 'weights': '100 MB', 'activation': '50 MB'}}, 'platform': 'ideal', 'schedule': "
        "{'kind': 'custom', 'micro_batches': 2, 'stage_devices': [0, 1, 1, 0], 'device_tasks': "
        "['F0@0 F1@0 F0@3 B0@3 F1@3 B1@3 W0@3 B0@0 W1@3 B1@0', "
        "'F0@1 F0@2 F1@1 F1@2 B0@2 B0@1 B1@2 B1@1']}}";
    assert_true(try_scenario(text, true));
}

/* ---- graphs ---- */

/* Two devices, and a class of 1 ns for each; the first class has 5 bytes. */
typedef struct small {
    cs_platform platform;
    cs_builder *builder;
    cs_task_window *window;
    uint32_t first, second;
} small;

static void begin(small *s)
{
    cs_error error = {0};
    *s = (small){0};
    expect_int("platform", CS_OK,
               cs_topology_build_text("two", "{\"topology\": \"ideal\"}", 2, &s->platform, &error));
    s->builder = cs_builder_create(2, 1, 1, 1);
    s->window = cs_task_window_create(&s->platform, NULL);
    assert_non_null(s->builder);
    assert_non_null(s->window);
    const cs_task_taker taker = cs_task_window_taker(s->window);
    cs_builder_hand_on(s->builder, &taker);
    s->first = cs_builder_compute(s->builder, CS_FORWARD, 0, 0, CS_NONE, 1000);
    cs_builder_effect(s->builder, CS_MEMORY_ACTIVATIONS, 0, 5, false);
    cs_builder_effect(s->builder, CS_MEMORY_ACTIVATIONS, 0, -5, true);
    s->second = cs_builder_compute(s->builder, CS_FORWARD, 0, 1, CS_NONE, 1000);
}

/* A class whose tasks have memory on device 0, though they are device 1's. */
static uint32_t add_far_class(small *s)
{
    const uint32_t made = cs_builder_compute(s->builder, CS_BACKWARD, 0, 1, CS_NONE, 10);
    cs_builder_effect(s->builder, CS_MEMORY_BUFFERS, 0, 7, false);
    cs_builder_effect(s->builder, CS_MEMORY_BUFFERS, 0, -7, true);
    return made;
}

/* Ends it, as it should end; `peak` of device 0 where that is CS_OK. */
static void end(small *s, const char *row, cs_status expected, const char *message, int64_t peak)
{
    cs_graph graph = {0};
    cs_trace trace = {0};
    cs_task_window_use use = {0};
    cs_error error = {0};
    cs_status status = cs_builder_finish(s->builder, &graph, &error);
    if (status == CS_OK)
        status = cs_task_window_end(s->window, &graph, &trace, &use, &error);
    expect_int(row, expected, status);
    expect_text(row, message, error.text);
    if (status == CS_OK)
        expect_int(row, peak, trace.devices[0].peak);
    cs_trace_finish(&trace);
    cs_task_window_use_finish(&use);
    cs_builder_destroy(s->builder);
    cs_task_window_destroy(s->window);
    cs_platform_finish(&s->platform);
    cs_graph_finish(&graph);
}

static void test_nothing(void **state)
{
    (void)state;
    small s;
    begin(&s);
    end(&s, "no task", CS_OK, "", 0);
}

static void test_edges(void **state)
{
    (void)state;
    static const char late[] =
        "its tasks are not generated in the order in which they depend on each other";
    enum { MANY = 600 }; /* more than are kept back */
    small s;
    begin(&s);
    uint32_t before = cs_builder_task(s.builder, s.first, 0);
    uint32_t after = cs_builder_task(s.builder, s.second, 0);
    cs_builder_edge(s.builder, after, before);
    end(&s, "backward", CS_USAGE, late, 0);
    begin(&s);
    before = cs_builder_task(s.builder, s.first, 0);
    for (uint32_t i = 0; i < MANY; i++)
        after = cs_builder_task(s.builder, s.second, 0);
    cs_builder_settle(s.builder);
    cs_builder_edge(s.builder, before, after);
    end(&s, "to one that is gone", CS_USAGE, late, 0);
    begin(&s);
    before = cs_builder_task(s.builder, s.first, 0);
    for (uint32_t i = 0; i < MANY; i++)
        (void)cs_builder_task(s.builder, s.first, 0);
    cs_builder_settle(s.builder);
    after = cs_builder_task(s.builder, s.second, 0);
    cs_builder_edge(s.builder, before, after);
    end(&s, "from one that is gone", CS_OK, "", 5);
}

static void test_refusals(void **state)
{
    (void)state;
    small s;
    begin(&s);
    const uint32_t devices[] = {0, 1};
    const uint32_t group = cs_builder_group(s.builder, devices, 2);
    const uint32_t sum = cs_builder_collective(s.builder, CS_ALL_REDUCE, 0, group, 8);
    (void)cs_builder_members(s.builder, sum, 0);
    end(&s, "collective", CS_USAGE, "it has collectives, whose members wait for each other", 0);
    begin(&s);
    cs_builder_queue(s.builder, 1, CS_QUEUE_PRIORITY);
    (void)cs_builder_task(s.builder, s.first, 0);
    end(&s, "priority", CS_USAGE, "devices choose their next task by priority", 0);
    begin(&s);
    enum { MANY = 600 };
    for (uint32_t i = 0; i < MANY; i++)
        (void)cs_builder_task(s.builder, s.first, 0);
    cs_builder_settle(s.builder);
    (void)add_far_class(&s);
    (void)cs_builder_task(s.builder, s.first, 0);
    end(&s, "late class", CS_USAGE, "some kinds of its tasks are not known from the start", 0);
}

/* Tasks of device 1, which runs far behind device 0 in the order of ids, allocate on that one. Its
 * own tasks and theirs overlap: 5 + 7 bytes, if its own events wait for them. But where device 1
 * had come further by then, and only a message that nothing holds up starts at 0, it is too late.
 */
static void test_far_memory(void **state)
{
    (void)state;
    enum { MANY = 40 };
    small s;
    begin(&s);
    uint32_t far = add_far_class(&s);
    for (uint32_t i = 0; i < MANY; i++)
        (void)cs_builder_task(s.builder, s.first, 0);
    for (uint32_t i = 0; i < MANY; i++)
        (void)cs_builder_task(s.builder, far, 0);
    end(&s, "far", CS_OK, "", 12);
    begin(&s);
    far = add_far_class(&s);
    const cs_class message = {.kind = CS_TRANSFER,
                              .origin = CS_TRANSFER,
                              .device = 1,
                              .peer = 0,
                              .weights = CS_NONE,
                              .duration = 1};
    const uint32_t free_message = cs_builder_class(s.builder, &message);
    cs_builder_effect(s.builder, CS_MEMORY_BUFFERS, 0, 3, false);
    cs_builder_effect(s.builder, CS_MEMORY_BUFFERS, 0, -3, true);
    for (uint32_t i = 0; i < MANY; i++) {
        (void)cs_builder_task(s.builder, s.first, 0);
        (void)cs_builder_task(s.builder, s.second, 0);
    }
    (void)cs_builder_task(s.builder, far, 0);
    (void)cs_builder_task(s.builder, free_message, 0);
    end(&s, "too late", CS_USAGE,
        "tasks that change the memory of one device are generated too far from the order in which "
        "they run",
        0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedules), cmocka_unit_test(test_custom),
        cmocka_unit_test(test_nothing),   cmocka_unit_test(test_edges),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_far_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
