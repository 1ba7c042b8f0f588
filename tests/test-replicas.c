/* Pipelines whose stages have several devices: PipeDream's 1F1B-RR against a slow implementation of
 * its own, and replicas that share micro-batches. */
#include "tests/expect.h"
#include "tests/run-scenario.h"
#include "tests/uniform-run.h"

#include <stdlib.h>
#include <string.h>

enum { STAGES = 4, DEVICES = 16, BATCHES = 48, TEXT = 512 };

/* Stage s has `layers[s]` layers on `devices[s]` devices, numbered in order. A layer takes 1 s
 * forward, 2 s backward, and weighs 12 GB. */
typedef struct replicated_case {
    uint32_t n_stages, layers[STAGES], devices[STAGES];
} replicated_case;

static uint32_t count_devices(const replicated_case *of)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < of->n_stages; s++)
        n += of->devices[s];
    return n;
}

/* The members of a schedule that say how the stages are placed. */
static const char *partition(const replicated_case *of, char text[TEXT])
{
    uint32_t layer = 0, device = 0;
    size_t used =
        (size_t)snprintf(text, TEXT, "'partition': {'inline': {'schema_version': 1, 'stages': [");
    for (uint32_t s = 0; s < of->n_stages; s++) {
        used += (size_t)snprintf(text + used, TEXT - used,
                                 "%s{'first_layer': %u, 'last_layer': %u, 'devices': [%u",
                                 s ? ", " : "", layer, layer + of->layers[s] - 1, device++);
        for (uint32_t r = 1; r < of->devices[s]; r++)
            used += (size_t)snprintf(text + used, TEXT - used, ", %u", device++);
        used += (size_t)snprintf(text + used, TEXT - used, "]}");
        layer += of->layers[s];
    }
    snprintf(text + used, TEXT - used, "]}}");
    return text;
}

static void describe(const replicated_case *of, char text[TEXT])
{
    size_t used = 0;
    for (uint32_t s = 0; s < of->n_stages; s++)
        used += (size_t)snprintf(text + used, TEXT - used, "%s%u layers on %u", s ? ", " : "",
                                 of->layers[s], of->devices[s]);
}

static void simulate(const replicated_case *of, const char *kind, uint32_t batches, uint32_t update,
                     const char *platform, scenario_run *run)
{
    char text[TEXT], row[TEXT];
    uint32_t n_layers = 0;
    for (uint32_t s = 0; s < of->n_stages; s++)
        n_layers += of->layers[s];
    cs_error error;
    cs_error_init(&error);
    describe(of, row);
    const cs_status status = scenario_run_init(
        run, &error,
        "{'schema_version': 1, 'iterations': %u, 'model': {'uniform': {'layers': %u, 'forward':"
        " '1 s', 'backward': '2 s', 'update': '%u s', 'weights': '12 GB', 'activation': '12 GB'}},"
        " 'platform': {%s, 'devices': %u, 'memory': '1 PB'}, 'schedule': {'kind': %s, %s}}",
        batches, n_layers, update, platform, count_devices(of), kind, partition(of, text));
    expect_error(row, CS_OK, "", status, &error);
}

/* ---- 1F1B-RR, second by second ---- */

typedef enum doing { IDLE, FORWARD, BACKWARD, WAITING, UPDATE } doing;

typedef struct slow_device {
    uint32_t stage, replica;
    doing what;
    uint32_t batch, until;        /* last mini-batch of its work; for updates: of the backward
                                   * before */
    uint32_t forwards, backwards; /* started, done */
    uint32_t version;
} slow_device;

typedef struct slow_run {
    const replicated_case *of;
    uint32_t update, n_devices, n_batches;
    slow_device devices[DEVICES];
    bool forward_done[STAGES][BATCHES], backward_done[STAGES][BATCHES];
    uint32_t forward_start[STAGES][BATCHES], backward_start[STAGES][BATCHES];
    uint32_t version[STAGES][BATCHES]; /* that the forward read */
} slow_run;

/* ceil(devices from this stage on / replicas), the paper's NOAM on stage 0. */
static uint32_t depth(const replicated_case *of, uint32_t stage)
{
    uint32_t later = 0;
    for (uint32_t s = stage; s < of->n_stages; s++)
        later += of->devices[s];
    return (later + of->devices[stage] - 1) / of->devices[stage];
}

static uint32_t own_batches(const slow_run *run, const slow_device *d)
{
    uint32_t n = 0;
    for (uint32_t b = 0; b < run->n_batches; b++)
        n += b % run->of->devices[d->stage] == d->replica;
    return n;
}

static bool end_task(slow_run *run, slow_device *d, uint32_t now)
{
    if (d->what == IDLE || d->what == WAITING || d->until != now)
        return false;
    if (d->what == FORWARD)
        run->forward_done[d->stage][d->batch] = true;
    if (d->what == BACKWARD)
        run->backward_done[d->stage][d->batch] = true;
    d->version += d->what == UPDATE;
    d->what = d->what == BACKWARD ? WAITING : IDLE;
    return true;
}

/* A backward's update waits for the updates of the other replicas. */
static bool start_update(slow_run *run, slow_device *d, uint32_t now)
{
    uint32_t R = run->of->devices[d->stage], first = d->batch / R * R;
    for (uint32_t b = first; b < first + R && b < run->n_batches; b++) {
        if (!run->backward_done[d->stage][b])
            return false;
    }
    d->what = UPDATE;
    d->until = now + run->update * run->of->layers[d->stage];
    return true;
}

/* Forwards until as many are in flight as may be, then a backward and a forward in turn. */
static bool start_task(slow_run *run, slow_device *d, uint32_t now)
{
    uint32_t R = run->of->devices[d->stage], own = own_batches(run, d), s = d->stage;
    bool last = s + 1 == run->of->n_stages;
    if (d->backwards == own)
        return false;
    if (d->forwards < own && d->forwards - d->backwards < depth(run->of, s)) {
        uint32_t b = d->forwards * R + d->replica;
        if (s > 0 && !run->forward_done[s - 1][b])
            return false;
        d->forwards++;
        d->what = FORWARD;
        d->batch = b;
        d->until = now + run->of->layers[s];
        run->forward_start[s][b] = now;
        run->version[s][b] = d->version;
        return true;
    }
    uint32_t b = d->backwards * R + d->replica;
    if (last ? !run->forward_done[s][b] : !run->backward_done[s + 1][b])
        return false;
    d->backwards++;
    d->what = BACKWARD;
    d->batch = b;
    d->until = now + 2 * run->of->layers[s];
    run->backward_start[s][b] = now;
    return true;
}

static void run_slowly(const replicated_case *of, uint32_t batches, uint32_t update, slow_run *run)
{
    *run = (slow_run){.of = of, .update = update, .n_batches = batches};
    for (uint32_t s = 0; s < of->n_stages; s++) {
        for (uint32_t r = 0; r < of->devices[s]; r++)
            run->devices[run->n_devices++] = (slow_device){.stage = s, .replica = r};
    }
    for (uint32_t now = 0; now < 100 * BATCHES; now++) {
        for (bool changed = true; changed;) {
            changed = false;
            for (uint32_t i = 0; i < run->n_devices; i++) {
                slow_device *d = &run->devices[i];
                changed |= end_task(run, d, now);
                changed |= d->what == WAITING && start_update(run, d, now);
                changed |= d->what == IDLE && start_task(run, d, now);
            }
        }
    }
    for (uint32_t i = 0; i < run->n_devices; i++)
        expect_int("backwards", own_batches(run, &run->devices[i]), run->devices[i].backwards);
}

static void compare(const scenario_run *run, const slow_run *slow)
{
    char row[TEXT], text[2 * TEXT];
    describe(slow->of, row);
    for (uint32_t s = 0; s < slow->of->n_stages; s++) {
        for (uint32_t b = 0; b < slow->n_batches; b++) {
            uint32_t forward = uniform_run_find(run, CS_FORWARD, s, b);
            uint32_t backward = uniform_run_find(run, CS_BACKWARD, s, b);
            snprintf(text, sizeof(text), "%s: mini-batch %u on stage %u", row, b, s);
            expect_int(text, slow->forward_start[s][b] * CS_PS_PER_SEC,
                       run->simulation.trace.spans[forward].start);
            expect_int(text, slow->backward_start[s][b] * CS_PS_PER_SEC,
                       run->simulation.trace.spans[backward].start);
            expect_int(text, slow->version[s][b], run->simulation.trace.versions[forward]);
            expect_int(text, slow->version[s][b], run->simulation.trace.versions[backward]);
        }
    }
}

/* Between the forward and the backward of a mini-batch its replica updates as often as it has other
 * mini-batches in flight: it keeps that many versions and one, and the gradient is that late. */
static void check_versions(const scenario_run *run, const replicated_case *of)
{
    for (uint32_t i = 0; i < count_devices(of); i++) {
        const cs_slot_staleness *slot = &run->simulation.analysis.staleness.slots[i];
        expect_int("device", i, slot->device);
        expect_int("versions alive", depth(of, slot->stage), slot->peak_versions);
        expect_int("gradient delay", depth(of, slot->stage) - 1, slot->gradient_delay.value);
        assert_true(slot->gradient_delay.steady);
        expect_int("bytes", 12000000000 * of->layers[slot->stage] * (slot->peak_versions - 1),
                   run->simulation.trace.devices[i].category_peak[CS_MEMORY_WEIGHT_VERSIONS]);
    }
}

/* Counts through all numbers of replicas from 1 to 4. */
static bool next_case(replicated_case *of)
{
    for (uint32_t s = 0; s < of->n_stages; s++) {
        if (++of->devices[s] <= 4)
            return true;
        of->devices[s] = 1;
    }
    return false;
}

/* Stages as long as they have replicas, or of other lengths; with and without an update that takes
 * time; long runs, and some that end before every replica has had as much to do. */
static void test_round_robin(void **state)
{
    (void)state;
    static slow_run slow;
    uint32_t n = 0;
    for (uint32_t balanced = 0; balanced < 2; balanced++) {
        for (uint32_t n_stages = 1; n_stages <= STAGES; n_stages++) {
            replicated_case of = {n_stages, {1, 1, 1, 1}, {1, 1, 1, 1}};
            do {
                for (uint32_t s = 0; s < n_stages; s++)
                    of.layers[s] = balanced ? of.devices[s] : 1 + (s + of.devices[s]) % 3;
                uint32_t update = n % 2, batches = n % 5 == 0 ? 7 : BATCHES;
                scenario_run run;
                run_slowly(&of, batches, update, &slow);
                simulate(&of, "'pipedream'", batches, update, "'topology': 'ideal'", &run);
                compare(&run, &slow);
                if (batches == BATCHES)
                    check_versions(&run, &of);
                (void)uniform_run_check_forms("pipedream", &run);
                scenario_run_finish(&run);
                n++;
            } while (next_case(&of));
        }
    }
    expect_int("cases", 2 * (4 + 16 + 64 + 256), n);
}

/* ---- replicas that share ---- */

/* A replica of R takes 1/R of the time, of a stage with R layers 1 s and 2 s: as a pipeline of
 * devices with a layer each. 1F1B with M micro-batches: (M + P - 1) 3 s. */
static void test_shares(void **state)
{
    (void)state;
    static const replicated_case cases[] = {
        {2, {2, 1}, {2, 1}}, {3, {1, 4, 2}, {1, 4, 2}}, {4, {4, 1, 2, 4}, {4, 1, 2, 4}}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        scenario_run run;
        uint32_t P = cases[i].n_stages;
        simulate(&cases[i], "'1f1b', 'micro_batches': 6", 2, 0, "'topology': 'ideal'", &run);
        expect_int("1f1b", 2 * (6 + P - 1) * 3 * CS_PS_PER_SEC, run.simulation.trace.makespan);
        assert_true(uniform_run_check_forms("1f1b", &run) >= 2 + count_devices(&cases[i]));
        scenario_run_finish(&run);
        simulate(&cases[i], "'pipedream', 'replicas': 'all_reduce'", BATCHES, 0,
                 "'topology': 'ideal'", &run);
        expect_double("pipedream", 3, run.simulation.analysis.iteration_time);
        for (uint32_t d = 0; d < count_devices(&cases[i]); d++) {
            const cs_slot_staleness *slot = &run.simulation.analysis.staleness.slots[d];
            expect_int("versions alive", P - slot->stage, slot->peak_versions);
            expect_int("gradient delay", P - 1 - slot->stage, slot->gradient_delay.value);
        }
        expect_int("version difference", 1,
                   run.simulation.analysis.staleness.version_difference.value);
        assert_true(uniform_run_check_forms("pipedream", &run) >= 1);
        scenario_run_finish(&run);
        simulate(&cases[i], "'pipedream_2bw', 'micro_batches': 4", 16, 0, "'topology': 'ideal'",
                 &run);
        expect_double("2bw", 12, run.simulation.analysis.iteration_time);
        scenario_run_finish(&run);
    }
}

/* Two replicas hand 6 GB each on to three, which receive 4 GB each: the samples of the middle one
 * come from both, 2 GB of each. Gradients go the same way back. */
static void test_messages_of_shares(void **state)
{
    (void)state;
    static const replicated_case of = {2, {1, 1}, {2, 3}};
    static const int64_t expected[5][5] = {
        {0, 0, 4, 2, 0}, {0, 0, 0, 2, 4}, {4, 0, 0, 0, 0}, {2, 2, 0, 0, 0}, {0, 4, 0, 0, 0}};
    scenario_run run;
    int64_t sent[5][5] = {{0}};
    simulate(&of, "'1f1b', 'micro_batches': 1", 1, 0,
             "'topology': 'nvlink_switch', 'bandwidth': '1 GB/s'", &run);
    const cs_graph *graph = &run.simulation.graph;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        if (cls->kind == CS_TRANSFER && cls->origin == CS_TRANSFER)
            sent[cls->device][cls->peer] += cls->bytes;
    }
    for (uint32_t from = 0; from < 5; from++) {
        for (uint32_t to = 0; to < 5; to++)
            expect_int("bytes", expected[from][to] * 1000000000, sent[from][to]);
    }
    scenario_run_finish(&run);
}

/* Stage 0 on two devices with 12 GB of weights: a ring all-reduce of two sends 6 GB four times, two
 * at a time, 12 s at 1 GB/s. 1f1b waits for it once per mini-batch, pipedream after every two. */
static void test_all_reduce_time(void **state)
{
    (void)state;
    static const replicated_case of = {1, {1}, {2}};
    static const struct {
        const char *kind;
        uint32_t batches, seconds;
    } rows[] = {
        {"'1f1b', 'micro_batches': 2, 'replicas': 'round_robin'", 1, 3 + 12},
        {"'1f1b', 'micro_batches': 3, 'replicas': 'round_robin'", 1, 6 + 12},
        {"'pipedream'", 4, 2 * (3 + 12)},
        {"'pipedream'", 5, 2 * (3 + 12) + 3 + 12},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        scenario_run run;
        simulate(&of, rows[i].kind, rows[i].batches, 0,
                 "'topology': 'nvlink_switch', 'bandwidth': '1 GB/s'", &run);
        expect_int(rows[i].kind, rows[i].seconds * CS_PS_PER_SEC, run.simulation.trace.makespan);
        (void)uniform_run_check_forms(rows[i].kind, &run);
        scenario_run_finish(&run);
    }
}

/* ---- errors ---- */

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *model, *schedule, *message;
    } rows[] = {
        {"'uniform': {'layers': 2, 'forward': '1 s', 'backward': '1 s'}",
         "'kind': 'pipedream', 'vertical_sync': true",
         "test: /schedule/vertical_sync: must be false for a plan that has stages on several "
         "devices: a version of the first stage is none of a stage with other replicas"},
        {"'uniform': {'layers': 2, 'forward': '1 s', 'backward': '1 s'}",
         "'kind': '1f1b', 'micro_batches': 1, 'replicas': 'round_robin'",
         "test: /schedule/micro_batches: must be at least 2, so that each replica of stage 0 has "
         "one (got 1)"},
        {"'batch_size': 3, 'inline': {'schema_version': 1, 'name': 'm', 'batch_size': 3, "
         "'provenance': {'source': 's',"
         " 'hardware': 'h', 'date': '2024-01-01'}, 'layers':"
         " [{'name': 'a', 'forward': '1 s', 'backward': '2 s', 'weights': 1, 'output': 1},"
         " {'name': 'b', 'forward': '1 s', 'backward': '2 s', 'weights': 1, 'output': 1}]}",
         "'kind': 'pipedream', 'replicas': 'all_reduce'",
         "test: /model/batch_size: must give a micro-batch a multiple of 2 samples, a share for "
         "each device of stage 0 (has 3)"},
        {"'uniform': {'layers': 2, 'forward': '1 s', 'backward': '1 s'}",
         "'kind': 'gpipe', 'micro_batches': 2",
         "test: /schedule/partition: must put stage 0 on one device for the schedule \"gpipe\", "
         "which has no replicas (got 2)"},
    };
    char text[TEXT];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        const cs_status status = scenario_run_init(
            &run, &error,
            "{'schema_version': 1, 'model': {%s}, 'platform': {'topology': 'ideal', 'devices': 3},"
            " 'schedule': {%s, %s}}",
            rows[i].model, rows[i].schedule,
            partition(&(replicated_case){2, {1, 1}, {2, 1}}, text));
        expect_error(rows[i].schedule, CS_INVALID, rows[i].message, status, &error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_robin),        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_messages_of_shares), cmocka_unit_test(test_all_reduce_time),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
