/* Cyclic data parallelism against a slow implementation of its own: time steps, no event queue. */
#include "sim/base/random.h"
#include "tests/expect.h"
#include "tests/random-scenario.h"
#include "tests/uniform-run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 16, BATCHES = 5, LONG = 12, MICROS = LARGEST * BATCHES };

static const char *const settings[] = {"single_gpu", "multi_gpu", "model_parallel", "pipeline",
                                       "zero"};
static const char *const rules[] = {"cdp_v1", "cdp_v2", "cdp_freshest"};

enum { SINGLE, MULTI, MODEL_PARALLEL, PIPELINE, ZERO };
enum { V1, V2, FRESHEST };

/* Weights and activations of 1 GB per stage; all tasks 1 s. */
static const char unit[] = "\"forward\": \"1 s\", \"backward\": \"1 s\", \"weights\": \"1 GB\", "
                           "\"activation\": \"1 GB\"";

static uint32_t n_devices(uint32_t setting, uint32_t N)
{
    return setting == SINGLE ? 1 : setting == MODEL_PARALLEL ? N * (N + 1) / 2 : N;
}

static void run_long_cdp(scenario_run *run, const char *kind, uint32_t setting, uint32_t N,
                         uint32_t batches, const char *more, const char *platform)
{
    char schedule[160];
    snprintf(schedule, sizeof(schedule),
             "{\"kind\": \"%s\", \"micro_batches\": %u, \"setting\": \"%s\"%s}", kind, N,
             settings[setting], more);
    uint32_t devices =
        strcmp(kind, "cdp_dp") == 0 && setting == MODEL_PARALLEL ? N * N : n_devices(setting, N);
    uniform_run_expect(run, &(uniform_text){N, devices, batches, schedule, unit, platform});
}

static void run_cdp(scenario_run *run, const char *kind, uint32_t setting, uint32_t N,
                    const char *more, const char *platform)
{
    run_long_cdp(run, kind, setting, N, BATCHES, more, platform);
}

/* ---- the slow implementation ---- */

/* Per micro-batch of the run and task 0 .. 2N - 1: its time step, and the version that it read. */
typedef struct steps {
    int start[MICROS][2 * LARGEST];
    uint32_t version[MICROS][2 * LARGEST];
} steps;

/* The paper's u_{i,j}, i and j from 1: theta_t, t being the mini-batch, or theta_{t-1}. */
static uint32_t version_by_rule(uint32_t rule, uint32_t N, uint32_t i, uint32_t j, uint32_t t,
                                uint32_t newest)
{
    if (rule == FRESHEST)
        return newest;
    if (rule == V2 && j >= N - i + 1)
        return t;
    return t > 0 ? t - 1 : 0;
}

/* In every time step each micro-batch that has started does one task; one starts when the one
 * before it has done two. Versions of stage j count the mini-batches all of whose backwards were
 * done there in earlier steps. */
static void run_slowly(uint32_t rule, uint32_t N, steps *out)
{
    uint32_t done[MICROS] = {0}, before[MICROS], backwards[LARGEST] = {0}, left = N * BATCHES;
    for (int step = 0; left > 0; step++) {
        uint32_t newest[LARGEST];
        for (uint32_t j = 0; j < N; j++)
            newest[j] = backwards[j] / N;
        memcpy(before, done, sizeof(before));
        for (uint32_t g = 0; g < N * BATCHES; g++) {
            uint32_t k = before[g], j = k < N ? k : 2 * N - 1 - k;
            if (k == 2 * N || (k == 0 && g > 0 && before[g - 1] < 2))
                continue;
            out->start[g][k] = step;
            out->version[g][k] = k < N
                                     ? version_by_rule(rule, N, g % N + 1, j + 1, g / N, newest[j])
                                     : out->version[g][j];
            assert_true(out->version[g][k] <= newest[j]);
            done[g]++;
            backwards[j] += k >= N;
            left -= done[g] == 2 * N;
        }
    }
}

/* Every computation of the run: started in its time step, read its version. */
static void compare(const char *row, const scenario_run *run, uint32_t N, const steps *expected)
{
    const cs_graph *graph = &run->simulation.graph;
    uint32_t n = 0;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        if (cls->kind != CS_FORWARD && cls->kind != CS_BACKWARD)
            continue;
        uint32_t g = graph->tasks[task].item;
        uint32_t k = cls->kind == CS_FORWARD ? cls->stage : 2 * N - 1 - cls->stage;
        char text[128];
        snprintf(text, sizeof(text), "%s: task %u of micro-batch %u", row, k, g);
        expect_int(text, expected->start[g][k] * CS_PS_PER_SEC,
                   run->simulation.trace.spans[task].start);
        expect_int(text, expected->version[g][k], run->simulation.trace.versions[task]);
        n++;
    }
    expect_int(row, 2 * N * N * BATCHES, n);
}

static void test_every_task(void **state)
{
    (void)state;
    static steps expected;
    for (uint32_t N = 2; N <= LARGEST; N++) {
        for (uint32_t rule = V1; rule <= FRESHEST; rule++) {
            run_slowly(rule, N, &expected);
            for (uint32_t setting = MULTI; setting <= ZERO; setting++) {
                char row[64];
                snprintf(row, sizeof(row), "%s, %s, N %u", rules[rule], settings[setting], N);
                scenario_run run;
                run_cdp(&run, rules[rule], setting, N, "", NULL);
                compare(row, &run, N, &expected);
                uniform_run_check_forms(row, &run);
                scenario_run_finish(&run);
            }
        }
    }
}

/* A device per stage, and forwards that take f, backwards that take b seconds: in each time step a
 * stage has one task at most, which starts when its device, the task before it of the same micro-
 * batch, and, of a first one, the second of the micro-batch before have ended. Versions are read as
 * when all tasks take one step. */
static void stretch(uint32_t N, uint32_t f, uint32_t b, steps *out)
{
    static int end[MICROS][2 * LARGEST];
    int ended[LARGEST] = {0}; /* per device */
    for (uint32_t step = 0; step < 2 * (N * BATCHES + N); step++) {
        for (uint32_t g = 0; g < N * BATCHES && 2 * g <= step; g++) {
            uint32_t k = step - 2 * g, j = k < N ? k : 2 * N - 1 - k;
            if (k >= 2 * N)
                continue;
            int start = ended[j];
            if (k > 0 && end[g][k - 1] > start)
                start = end[g][k - 1];
            if (k == 0 && g > 0 && end[g - 1][1] > start)
                start = end[g - 1][1];
            out->start[g][k] = start;
            ended[j] = end[g][k] = start + (int)(k < N ? f : b);
        }
    }
}

static void test_other_durations(void **state)
{
    (void)state;
    static steps expected;
    uint32_t n = 0;
    for (uint32_t N = 2; N <= 8; N++) {
        for (uint32_t rule = V1; rule <= FRESHEST; rule++) {
            run_slowly(rule, N, &expected);
            for (uint32_t i = 0; i < 16; i++, n++) {
                char row[96], model[96], schedule[96];
                uint32_t f = 1 + i / 4, b = 1 + i % 4;
                stretch(N, f, b, &expected);
                snprintf(row, sizeof(row), "%s, N %u, f %u, b %u", rules[rule], N, f, b);
                snprintf(model, sizeof(model), "\"forward\": \"%u s\", \"backward\": \"%u s\"", f,
                         b);
                snprintf(schedule, sizeof(schedule),
                         "{\"kind\": \"%s\", \"micro_batches\": %u, \"setting\": \"pipeline\"}",
                         rules[rule], N);
                scenario_run run;
                uniform_run_expect(&run, &(uniform_text){N, N, BATCHES, schedule, model, NULL});
                compare(row, &run, N, &expected);
                scenario_run_finish(&run);
            }
        }
    }
    expect_int("cases", 7 * 3 * 16, n);
}

/* Forwards take f, backwards b seconds, T = N(f + b). Micro-batch g starts at g T/N = g(f + b), and
 * then a device is never idle: its task k starts after k forwards, or after N and k - N backwards.
 * On stage j, from 0, forwards begin at jf modulo f + b and end at (j + 1)f, where backwards begin,
 * which end at jf + (f + b): one device at a time has the stage. So what the rules ask for is there
 * in time, as when all tasks take one step. */
static void draw_out(uint32_t N, uint32_t f, uint32_t b, steps *out)
{
    for (uint32_t g = 0; g < N * BATCHES; g++) {
        for (uint32_t k = 0; k < 2 * N; k++)
            out->start[g][k] = (int)(g * (f + b) + (k < N ? k * f : N * f + (k - N) * b));
    }
}

static void test_uniform_delay(void **state)
{
    (void)state;
    static steps expected;
    for (uint32_t N = 2; N <= 6; N++) {
        for (uint32_t rule = V1; rule <= FRESHEST; rule++) {
            run_slowly(rule, N, &expected);
            for (uint32_t i = 0; i < 48; i++) {
                static const uint32_t with_own_devices[] = {MULTI, MODEL_PARALLEL, ZERO};
                uint32_t f = 1 + i % 4, b = 1 + i / 4 % 4, setting = with_own_devices[i / 16];
                char row[96], model[96], schedule[96];
                snprintf(row, sizeof(row), "%s, %s, N %u, f %u, b %u", rules[rule],
                         settings[setting], N, f, b);
                snprintf(model, sizeof(model), "\"forward\": \"%u s\", \"backward\": \"%u s\"", f,
                         b);
                snprintf(schedule, sizeof(schedule),
                         "{\"kind\": \"%s\", \"micro_batches\": %u, \"setting\": \"%s\"}",
                         rules[rule], N, settings[setting]);
                draw_out(N, f, b, &expected);
                scenario_run run;
                uniform_run_expect(&run, &(uniform_text){N, n_devices(setting, N), BATCHES,
                                                         schedule, model, NULL});
                compare(row, &run, N, &expected);
                uniform_run_check_forms(row, &run);
                scenario_run_finish(&run);
            }
        }
    }
}

/* The start of micro-batch g of the run. */
static cs_time start_of(const scenario_run *run, uint32_t g)
{
    const cs_graph *graph = &run->simulation.graph;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        if (cls->kind == CS_FORWARD && cls->stage == 0 && graph->tasks[task].item == g)
            return run->simulation.trace.spans[task].start;
    }
    return -1;
}

/* The first starts, f = 1, b = 2, N = 3. With devices of equal speed T/N = 9 s / 3; if one of them
 * has half the speed, T is its 18 s; with two_tasks two forwards, or on stage 0 and stage 1 the
 * slow device's: 2 s after the start of a fast device, 4 s after the start of the slow one. A
 * pipeline's first device takes stage 0's tasks in turn, so that starts are soon f + b apart
 * too. */
static void test_starts(void **state)
{
    (void)state;
    static const struct {
        const char *setting, *delay, *speed;
        cs_time starts[3];
    } rows[] = {
        {"multi_gpu", "uniform", "1", {0, 3, 6}},
        {"zero", "uniform", "1", {0, 3, 6}},
        {"multi_gpu", "uniform", "[1, 0.5, 1]", {0, 6, 12}},
        {"multi_gpu", "uniform", "2", {0, 1500, 3}},
        {"multi_gpu", "two_tasks", "1", {0, 2, 4}},
        {"zero", "two_tasks", "1", {0, 2, 4}},
        {"multi_gpu", "two_tasks", "[1, 0.5, 1]", {0, 2, 6}},
    };
    for (size_t r = 0; r < ROWS(rows); r++) {
        char platform[80], schedule[128];
        snprintf(platform, sizeof(platform), "\"topology\": \"ideal\", \"speed\": %s",
                 rows[r].speed);
        snprintf(schedule, sizeof(schedule),
                 "{\"kind\": \"cdp_v2\", \"micro_batches\": 3, \"setting\": \"%s\", "
                 "\"start_delay\": \"%s\"}",
                 rows[r].setting, rows[r].delay);
        scenario_run run;
        uniform_run_expect(&run, &(uniform_text){3, 3, BATCHES, schedule,
                                                 "\"forward\": \"1 s\", \"backward\": \"2 s\"",
                                                 platform});
        for (uint32_t g = 0; g < 3; g++) {
            cs_time unit_of = rows[r].starts[g] > 100 ? CS_PS_PER_SEC / 1000 : CS_PS_PER_SEC;
            expect_int(rows[r].speed, rows[r].starts[g] * unit_of, start_of(&run, g));
        }
        scenario_run_finish(&run);
    }
    scenario_run run;
    uniform_run_expect(
        &run,
        &(uniform_text){3, 3, BATCHES,
                        "{\"kind\": \"cdp_v2\", \"micro_batches\": 3, \"setting\": \"pipeline\"}",
                        "\"forward\": \"1 s\", \"backward\": \"2 s\"", NULL});
    for (uint32_t g = 3; g + 1 < 3 * BATCHES; g++)
        expect_int("pipeline", 3 * CS_PS_PER_SEC, start_of(&run, g + 1) - start_of(&run, g));
    scenario_run_finish(&run);
}

/* A single device does the tasks of a time step one after the other, forwards first, by number of
 * micro-batch: the slow schedule, its steps drawn out. */
static void test_single_gpu(void **state)
{
    (void)state;
    static steps expected;
    for (uint32_t N = 2; N <= LARGEST; N++) {
        for (uint32_t rule = V1; rule <= FRESHEST; rule++) {
            run_slowly(rule, N, &expected);
            int at = 0;
            for (int step = 0; at < (int)(2 * N * N * BATCHES); step++) {
                for (uint32_t half = 0; half < 2; half++) {
                    for (uint32_t g = 0; g < N * BATCHES; g++) {
                        int k = step - 2 * (int)g;
                        if (k >= (int)(half * N) && k < (int)((half + 1) * N))
                            expected.start[g][k] = at++;
                    }
                }
            }
            scenario_run run;
            run_cdp(&run, rules[rule], SINGLE, N, "", NULL);
            compare(rules[rule], &run, N, &expected);
            scenario_run_finish(&run);
        }
    }
}

/* ---- memory ---- */

static int64_t peak(const scenario_run *run, uint32_t device, cs_category category)
{
    return run->simulation.trace.devices[device].category_peak[category];
}

/* One device, N stages of 1 GB. At any time there are N micro-batches, two steps apart. Released
 * stage by stage a micro-batch holds 1, 2, ..., N, N, ..., 1 in its 2N steps; the N micro-batches
 * occupy every other one: N (N + 1) / 2 altogether, in each step. Released when a micro-batch ends
 * it holds 1 .. N and then N in each of its N backward steps: with N even N^2/4 and N N/2 in the
 * steps whose forwards are on odd stages, N/2 more in the others. With N odd (N + 1)^2/4 and N (N -
 * 1)/2, or (N^2 - 1)/4 and N (N + 1)/2. DP: all N whole micro-batches. */
static void test_single_gpu_memory(void **state)
{
    (void)state;
    for (int64_t N = 2; N <= LARGEST; N++) {
        const int64_t giga = 1000000000;
        int64_t even = N * N / 4 + N / 2 + N * N / 2;
        int64_t odd_a = (N + 1) * (N + 1) / 4 + N * (N - 1) / 2;
        int64_t odd_b = (N * N - 1) / 4 + N * (N + 1) / 2;
        int64_t whole = N % 2 == 0 ? even : odd_a > odd_b ? odd_a : odd_b;
        const struct {
            const char *kind, *more;
            int64_t expected;
        } rows[] = {
            {"cdp_v1", "", giga * N * (N + 1) / 2},
            {"cdp_v2", "", giga * N * (N + 1) / 2},
            {"cdp_dp", "", giga * N * N},
            {"cdp_v2", ", \"retention\": \"micro_batch\"", giga * whole},
            {"cdp_dp", ", \"retention\": \"micro_batch\"", giga * N * N},
        };
        for (size_t r = 0; r < ROWS(rows); r++) {
            char row[96];
            snprintf(row, sizeof(row), "%s%s, N %d", rows[r].kind, rows[r].more, (int)N);
            scenario_run run;
            run_cdp(&run, rows[r].kind, SINGLE, (uint32_t)N, rows[r].more, NULL);
            expect_int(row, rows[r].expected, peak(&run, 0, CS_MEMORY_ACTIVATIONS));
            uniform_run_check_forms(row, &run);
            scenario_run_finish(&run);
        }
    }
}

/* A device of stage j holds the activations of one micro-batch at a time, though N - j + 1 devices
 * share N micro-batches. */
static void test_model_parallel_assignment(void **state)
{
    (void)state;
    for (uint32_t N = 1; N <= LARGEST; N++) {
        scenario_run run;
        run_cdp(&run, "cdp_v2", MODEL_PARALLEL, N, "", NULL);
        const cs_plan *plan = run.scenario.plan;
        expect_int("devices", N * (N + 1) / 2, plan->n_devices);
        for (uint32_t j = 0; j < N; j++)
            expect_int("devices of a stage", N - j, plan->stages[j].n_devices);
        for (uint32_t d = 0; d < N * (N + 1) / 2; d++)
            expect_int("activations", 1000000000, peak(&run, d, CS_MEMORY_ACTIVATIONS));
        scenario_run_finish(&run);
    }
}

/* Most versions alive of a stage on a device, from 0.
 *
 * With v2 one: new weights come when the last backward that reads the old ones has ended. With
 * "beside" they come as soon as the forward of the previous micro-batch has ended, one time step
 * before the receiver's own. Its last backward on stage j ended 2j steps before its forward begins:
 * on stage 0 it begins just when the weights come. The last device makes its versions itself. With
 * v1 it keeps the version that it read and the version that it adds to; the others are as with
 * "beside". */
static bool two_alive(uint32_t N, uint32_t rule, bool beside, uint32_t stage, uint32_t device)
{
    bool last = device + 1 == N;
    if (rule == V1)
        return last || stage == 0;
    return (beside || rule == FRESHEST) && stage == 0 && !last;
}

static void test_versions_alive(void **state)
{
    (void)state;
    for (uint32_t N = 2; N <= 8; N++) {
        for (uint32_t way = V1; way <= FRESHEST + 1; way++) {
            bool beside = way > FRESHEST;
            uint32_t rule = beside ? V2 : way;
            scenario_run run;
            run_cdp(&run, rules[rule], MULTI, N, beside ? ", \"new_weights\": \"beside\"" : "",
                    NULL);
            for (uint32_t s = 0; s < run.simulation.graph.n_slots; s++) {
                const cs_slot *slot = &run.simulation.graph.slots[s];
                char row[80];
                snprintf(row, sizeof(row), "%s%s, N %u, stage %u, device %u", rules[rule],
                         beside ? " beside" : "", N, slot->stage, slot->device);
                expect_int(row, two_alive(N, rule, beside, slot->stage, slot->device) ? 2 : 1,
                           run.simulation.trace.slots[s].peak_live);
            }
            uniform_run_check_forms(rules[rule], &run);
            scenario_run_finish(&run);
        }
    }
}

/* No message that brings weights needs a buffer at either end. */
static void expect_no_weight_buffers(const char *row, const cs_graph *graph)
{
    for (uint32_t c = 0; c < graph->n_classes; c++) {
        const cs_class *cls = &graph->classes[c];
        if (cls->kind == CS_TRANSFER && cls->updates)
            expect_int(row, 0, cls->n_effects);
    }
}

/* The paper, section 3.2: "we do not need to keep a copy of two parameters". By v2 a device has its
 * stages' weights, 1 GB each, and no byte of another version, however long messages take. */
static void test_no_second_copy(void **state)
{
    (void)state;
    static const char *const platforms[] = {
        NULL,
        "\"topology\": \"nvlink_switch\", \"sharing\": \"none\", \"bandwidth\": \"4 GB/s\"",
        "\"topology\": \"nvlink_switch\", \"sharing\": \"none\", \"bandwidth\": \"500 MB/s\"",
    };
    for (uint32_t N = 2; N <= 6; N++) {
        for (size_t p = 0; p < ROWS(platforms); p++) {
            for (uint32_t setting = MULTI; setting <= MODEL_PARALLEL; setting++) {
                char row[64];
                snprintf(row, sizeof(row), "%s, N %u, platform %zu", settings[setting], N, p);
                scenario_run run;
                run_cdp(&run, "cdp_v2", setting, N, "", platforms[p]);
                for (uint32_t s = 0; s < run.simulation.graph.n_slots; s++)
                    expect_int(row, 1, run.simulation.trace.slots[s].peak_live);
                for (uint32_t d = 0; d < n_devices(setting, N); d++) {
                    expect_int(row, 0, peak(&run, d, CS_MEMORY_WEIGHT_VERSIONS));
                    expect_int(row, (setting == MULTI ? N : 1) * INT64_C(1000000000),
                               peak(&run, d, CS_MEMORY_WEIGHTS));
                }
                expect_no_weight_buffers(row, &run.simulation.graph);
                uniform_run_check_forms(row, &run);
                scenario_run_finish(&run);
            }
        }
    }
}

/* Versions besides the newest ones on a single device, by the slow schedule: in every step
 * forwards, then backwards by number, one after the other. A forward holds its version until its
 * backward's end; the last backward of a mini-batch makes the next one. `held` counts by stage and
 * version. */
static uint32_t most_old_versions(uint32_t N, const steps *slow)
{
    uint32_t made[LARGEST] = {0}, done[LARGEST] = {0}, held[LARGEST][BATCHES + 1] = {{0}}, most = 0;
    for (int step = 0; step < (int)(2 * N * (BATCHES + 1)); step++) {
        for (uint32_t half = 0; half < 2; half++) {
            for (uint32_t g = 0; g < N * BATCHES; g++) {
                int k = step - 2 * (int)g;
                if (k < (int)(half * N) || k >= (int)((half + 1) * N))
                    continue;
                uint32_t j = half ? 2 * N - 1 - (uint32_t)k : (uint32_t)k, old = 0;
                if (half)
                    held[j][slow->version[g][k]]--;
                else
                    held[j][slow->version[g][k]]++;
                done[j] += half;
                made[j] = done[j] / N;
                for (uint32_t s = 0; s < N; s++) {
                    for (uint32_t v = 0; v < made[s]; v++)
                        old += held[s][v] > 0;
                }
                most = old > most ? old : most;
            }
        }
    }
    return most;
}

/* Where micro-batches share a stage's weights, those with i <= N - j read theta_{t-1} in a backward
 * after theta_t was made, as their forwards had: two versions of each stage but the last. */
static void test_second_versions(void **state)
{
    (void)state;
    static steps slow;
    for (uint32_t N = 2; N <= LARGEST; N++) {
        run_slowly(V2, N, &slow);
        scenario_run run;
        run_cdp(&run, "cdp_v2", SINGLE, N, "", NULL);
        expect_int("single_gpu", most_old_versions(N, &slow) * INT64_C(1000000000),
                   peak(&run, 0, CS_MEMORY_WEIGHT_VERSIONS));
        scenario_run_finish(&run);
        run_cdp(&run, "cdp_v2", PIPELINE, N, "", NULL);
        for (uint32_t d = 0; d < N; d++)
            expect_int("pipeline", d + 1 < N ? 1000000000 : 0,
                       peak(&run, d, CS_MEMORY_WEIGHT_VERSIONS));
        scenario_run_finish(&run);
        run_cdp(&run, "cdp_v2", ZERO, N, "", NULL);
        for (uint32_t s = 0; s < N; s++)
            expect_int("zero", s + 1 < N ? 2 : 1, run.simulation.trace.slots[s].peak_live);
        scenario_run_finish(&run);
    }
}

/* ---- gradient delay ---- */

/* Where micro-batch i, from 1, of mini-batch t computes stage j, from 1: the place among the
 * stage's devices; and how many those are. */
static uint32_t place_of(uint32_t setting, uint32_t N, uint32_t j, uint32_t i, uint32_t t)
{
    if (setting == MULTI)
        return i - 1;
    return setting == MODEL_PARALLEL ? (t * N + i - 1) % (N - j + 1) : 0;
}

static uint32_t places(uint32_t setting, uint32_t N, uint32_t j)
{
    return setting == MULTI ? N : setting == MODEL_PARALLEL ? N - j + 1 : 1;
}

/* From the paper's equations: theta_{t+1} is theta_t minus the gradients of mini-batch t at theta_t
 * (delay 0) or theta_{t-1} (delay 1); u_{i,j} says which. Theta_{-1} is theta_0. The oldest version
 * that mini-batch t's micro-batches read on one device counts: -1 for none. */
static int64_t delay_by_paper(uint32_t rule, uint32_t setting, uint32_t N, uint32_t j,
                              uint32_t place, uint32_t t)
{
    int64_t delay = -1;
    for (uint32_t i = 1; i <= N; i++) {
        bool fresh = t == 0 || (rule == V2 && j >= N - i + 1);
        int64_t own = fresh ? 0 : 1;
        if (place_of(setting, N, j, i, t) == place && own > delay)
            delay = own;
    }
    return delay;
}

/* Slots are numbered by stage, then by place. */
static void expect_delays(const char *row, const cs_staleness *found, uint32_t rule,
                          uint32_t setting, uint32_t N)
{
    uint32_t slot = 0;
    for (uint32_t j = 1; j <= N; j++) {
        for (uint32_t place = 0; place < places(setting, N, j); place++, slot++) {
            char text[128];
            snprintf(text, sizeof(text), "%s, stage %u, place %u", row, j, place);
            int64_t most = -1;
            for (uint32_t t = 0; t < BATCHES; t++) {
                const cs_staleness_row *at = &found->rows[t * found->n_slots + slot];
                int64_t delay = delay_by_paper(rule, setting, N, j, place, t);
                expect_int(text, j - 1, at->stage);
                expect_int(text, delay < 0 ? CS_STALENESS_NONE : delay,
                           cs_staleness_delay(at->made, at->backward.oldest));
                most = delay > most ? delay : most;
            }
            expect_int(text, most, found->slots[slot].max_gradient_delay);
        }
    }
    expect_int(row, slot, found->n_slots);
}

/* Among N^2 pairs of a micro-batch i and a stage j, rule v2 reads theta_t if i + j >= N + 1:
 * in one of stage 1, two of stage 2, ..., N(N + 1)/2 together. The other N(N - 1)/2 are delayed by
 * 1; with v1 all are. Mini-batch 0 is not in the middle half of 5. */
static void expect_mean_delay(const char *row, const cs_staleness *found, uint32_t rule, uint32_t N)
{
    const double expected = rule == V2 ? (N - 1) / (2.0 * N) : 1;
    const double mean = cs_staleness_mean(found, CS_NONE);
    if (fabs(mean - expected) > 1e-15)
        fail_msg("%s: mean delay %.17g, not %.17g", row, mean, expected);
}

/* Stage j has N - j micro-batches out of N, whichever devices they are on. */
static void expect_stage_means(const char *row, const cs_staleness *found, uint32_t rule,
                               uint32_t N)
{
    for (uint32_t j = 1; j <= N; j++) {
        int64_t sum = 0;
        uint64_t n = 0;
        for (uint32_t s = 0; s < found->n_slots; s++) {
            const cs_slot_staleness *slot = &found->slots[s];
            sum += slot->stage == j - 1 ? slot->sum_gradient_delay : 0;
            n += slot->stage == j - 1 ? slot->n_backwards : 0;
        }
        expect_int(row, 3 * N, (int64_t)n); /* reads of mini-batches 1, 2 and 3 */
        expect_int(row, 3 * (rule == V2 ? N - j : N), sum);
    }
}

static void test_gradient_delay(void **state)
{
    (void)state;
    for (uint32_t N = 2; N <= 6; N++) {
        for (uint32_t rule = V1; rule <= V2; rule++) {
            for (uint32_t setting = SINGLE; setting <= ZERO; setting++) {
                char row[64];
                snprintf(row, sizeof(row), "%s, %s, N %u", rules[rule], settings[setting], N);
                scenario_run run;
                run_cdp(&run, rules[rule], setting, N, "", NULL);
                expect_delays(row, &run.simulation.analysis.staleness, rule, setting, N);
                expect_mean_delay(row, &run.simulation.analysis.staleness, rule, N);
                expect_stage_means(row, &run.simulation.analysis.staleness, rule, N);
                scenario_run_finish(&run);
            }
        }
    }
}

/* Micro-batch i of mini-batch t starts in step 2Nt + 2(i - 1), so that a period is one mini-batch
 * in 2N steps; with single_gpu a step is N tasks. The last one of t - 1 takes 2N steps from 2Nt - 2
 * on, and the last one of t - 2 has ended when t enters: two are in flight. With model_parallel the
 * devices repeat when all numbers of holders, 1 ... N, divide the number of micro-batches since.
 * Periods of more than half of the run are not found. */
static uint32_t batches_per_period(uint32_t setting, uint32_t N)
{
    uint32_t p = 1;
    for (uint32_t j = 1; setting == MODEL_PARALLEL && j <= N; j++) {
        if (N * p % j > 0) {
            p++;
            j = 0;
        }
    }
    return p <= LONG / 2 ? p : 0;
}

static void test_periodic(void **state)
{
    (void)state;
    for (uint32_t N = 2; N <= 6; N++) {
        for (uint32_t rule = V1; rule <= FRESHEST; rule++) {
            for (uint32_t setting = SINGLE; setting <= ZERO; setting++) {
                char row[64];
                snprintf(row, sizeof(row), "%s, %s, N %u", rules[rule], settings[setting], N);
                scenario_run run;
                run_long_cdp(&run, rules[rule], setting, N, LONG, "", NULL);
                const cs_recurrence *found = &run.simulation.analysis.recurrence;
                uint32_t p = batches_per_period(setting, N);
                expect_int(row, p, found->n);
                expect_int(row, 2 * N * p * (setting == SINGLE ? N : 1) * CS_PS_PER_SEC,
                           found->period);
                expect_int(row, 2, found->end);
                scenario_run_finish(&run);
            }
        }
    }
}

/* ---- messages that take time ---- */

/* Activations take no time here. */
static double period(const char *kind, uint32_t setting, uint32_t N, const char *bandwidth,
                     const char *more)
{
    char platform[160], schedule[160];
    snprintf(platform, sizeof(platform),
             "\"topology\": \"nvlink_switch\", \"sharing\": \"none\", \"bandwidth\": \"%s\", "
             "\"latency\": \"0 s\"",
             bandwidth);
    snprintf(schedule, sizeof(schedule),
             "{\"kind\": \"%s\", \"micro_batches\": %u, \"setting\": \"%s\"%s}", kind, N,
             settings[setting], more);
    static const char weights_only[] = "\"forward\": \"1 s\", \"backward\": \"1 s\", \"weights\": "
                                       "\"1 GB\", \"activation\": \"0 B\"";
    scenario_run run;
    uniform_run_expect(
        &run, &(uniform_text){N, n_devices(setting, N), 16, schedule, weights_only, platform});
    double time = run.simulation.analysis.iteration_time;
    scenario_run_finish(&run);
    return time;
}

/* A stage's gradients or weights take x <= 1 s, a task 1 s.
 *
 * v1 has a whole time step for every message. v2 replaces weights: a device ends a micro-batch with
 * a backward on stage 1, which reads its old weights; new ones then take x, and only then does the
 * next micro-batch begin. With "beside" they arrive before. But on stage j > 1 the device of i = N
 * - j + 1 needs theta_t at the very moment when the device of i = N makes it: x too late, unless
 * that device is ahead of the time steps by d. It needs the sum of the previous device, which is 1
 * - d >= x: so x - (1 - x) remain where that is more than 0. With model parallelism the first
 * reader of theta_t is the device that made it; but stage 1's N devices have one micro-batch after
 * another, and all others have their weights replaced in between. DP reduces all stages in 2(N - 1)
 * steps of one stage's bytes. With zero two versions and gradients travel before every step. */
static void test_slow_messages(void **state)
{
    (void)state;
    static const char beside[] = ", \"new_weights\": \"beside\"";
    static const struct {
        const char *bandwidth;
        double x;
    } rows[] = {{"4 GB/s", 0.25}, {"2 GB/s", 0.5}, {"1.6 GB/s", 0.625}, {"1 GB/s", 1}};
    for (uint32_t N = 3; N <= 8; N++) {
        for (size_t r = 0; r < ROWS(rows); r++) {
            const char *rate = rows[r].bandwidth;
            double x = rows[r].x, late = 2 * x > 1 ? 2 * x - 1 : 0;
            expect_double("v1", 2 * N, period("cdp_v1", MULTI, N, rate, ""));
            expect_double("v2", 2 * N + x, period("cdp_v2", MULTI, N, rate, ""));
            expect_double("v2, beside", 2 * N + late, period("cdp_v2", MULTI, N, rate, beside));
            expect_double("freshest", 2 * N, period("cdp_freshest", MULTI, N, rate, ""));
            expect_double("zero", 2 * N * (1 + 3 * x), period("cdp_v2", ZERO, N, rate, ""));
            expect_double("dp", 2 * N + 2 * (N - 1) * x, period("cdp_dp", MULTI, N, rate, ""));
            expect_double("v1, model parallel", 2 * N,
                          period("cdp_v1", MODEL_PARALLEL, N, rate, ""));
            expect_double("v2, model parallel, beside", 2 * N,
                          period("cdp_v2", MODEL_PARALLEL, N, rate, beside));
            if (N <= 4)
                expect_double("v2, model parallel", 2 * N + x,
                              period("cdp_v2", MODEL_PARALLEL, N, rate, ""));
        }
    }
}

/* With starts two tasks apart nothing can be ahead: v2 pays x with either place for new weights,
 * and beyond x = 1 both rules wait N - 1 times for the sum of gradients. */
static void test_slow_messages_two_tasks(void **state)
{
    (void)state;
    static const char two[] = ", \"start_delay\": \"two_tasks\"",
                      beside[] = ", \"start_delay\": \"two_tasks\", \"new_weights\": \"beside\"";
    static const struct {
        const char *bandwidth;
        double x;
    } rows[] = {{"4 GB/s", 0.25}, {"2 GB/s", 0.5}, {"1 GB/s", 1}, {"500 MB/s", 2}};
    for (uint32_t N = 3; N <= 8; N++) {
        for (size_t r = 0; r < ROWS(rows); r++) {
            const char *rate = rows[r].bandwidth;
            double x = rows[r].x, sums = x > 1 ? (N - 1) * (x - 1) : 0;
            expect_double("v1", 2 * N + sums, period("cdp_v1", MULTI, N, rate, two));
            expect_double("v2", 2 * N + sums + x, period("cdp_v2", MULTI, N, rate, two));
            expect_double("v2, beside", 2 * N + sums + x, period("cdp_v2", MULTI, N, rate, beside));
        }
    }
}

/* cdp_freshest does not wait; where v2 would have waited, j = N - i + 1, it reads theta_{t-1},
 * except on the device that updates, i = N. */
static void expect_freshest_reads(const scenario_run *run, uint32_t N)
{
    const cs_graph *graph = &run->simulation.graph;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        if (cls->kind != CS_FORWARD)
            continue;
        uint32_t i = cs_graph_micro_batch(graph, task) + 1, j = cls->stage + 1;
        uint32_t t = cs_graph_mini_batch(graph, task);
        bool newest = j >= N - i + 2 || i == N;
        char row[64];
        snprintf(row, sizeof(row), "N %u, i %u, j %u, t %u", N, i, j, t);
        expect_int(row, newest ? t : t > 0 ? t - 1 : 0, run->simulation.trace.versions[task]);
    }
}

static void test_freshest_reads(void **state)
{
    (void)state;
    static const char *const rates[] = {"4 GB/s", "2 GB/s", "1 GB/s"};
    for (uint32_t N = 2; N <= LARGEST; N++) {
        for (size_t r = 0; r < ROWS(rates); r++) {
            char platform[160];
            snprintf(platform, sizeof(platform),
                     "\"topology\": \"nvlink_switch\", \"sharing\": \"none\", \"bandwidth\": "
                     "\"%s\", \"latency\": \"0 s\"",
                     rates[r]);
            scenario_run run;
            run_cdp(&run, "cdp_freshest", MULTI, N, "", platform);
            expect_freshest_reads(&run, N);
            scenario_run_finish(&run);
        }
    }
}

/* ---- the paper's table 1 ---- */

/* The most messages that follow each other at one instant of an ideal network. */
static uint32_t longest_chain(const cs_graph *graph, const cs_trace *trace)
{
    uint32_t *depth = calloc((size_t)graph->n_tasks + 1, sizeof(*depth)), longest = 0;
    assert_non_null(depth);
    for (uint32_t task = 0; task < graph->n_tasks; task++) { /* ids rise along edges */
        if (cs_graph_class(graph, task)->kind != CS_TRANSFER)
            continue;
        uint32_t n, own = depth[task] + 1;
        const uint32_t *successors = cs_graph_successors(graph, task, &n);
        longest = own > longest ? own : longest;
        for (uint32_t s = 0; s < n; s++) {
            assert_true(successors[s] > task);
            if (trace->spans[successors[s]].start == trace->spans[task].end &&
                own > depth[successors[s]])
                depth[successors[s]] = own;
        }
    }
    free(depth);
    return longest;
}

/* Bytes of messages sent for the mini-batch in the middle of the run. */
static int64_t volume(const cs_graph *graph)
{
    int64_t sum = 0;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        if (cls->kind == CS_TRANSFER && cs_graph_mini_batch(graph, task) == BATCHES / 2)
            sum += cls->bytes;
    }
    return sum;
}

static int64_t zero(int64_t N)
{
    return 0 * N;
}

static int64_t one(int64_t N)
{
    return N > 0;
}

static int64_t n(int64_t N)
{
    return N;
}

static int64_t square(int64_t N)
{
    return N * N;
}

static int64_t triangle(int64_t N)
{
    return N * (N + 1) / 2;
}

/* 2(N - 1) steps of N chunks of P / N: ring all-reduce of P = N GB. */
static int64_t all_reduce(int64_t N)
{
    return 2 * (N - 1) * N;
}

static int64_t all_reduce_steps(int64_t N)
{
    return 2 * (N - 1);
}

/* Gradients N - 1 times, weights N - 1 times. */
static int64_t handed(int64_t N)
{
    return 2 * (N - 1) * N;
}

/* N micro-batches over N - 1 boundaries in both directions. */
static int64_t boundaries(int64_t N)
{
    return 2 * N * (N - 1);
}

/* And of each stage an all-reduce over N devices. */
static int64_t boundaries_and_all_reduce(int64_t N)
{
    return boundaries(N) + N * 2 * (N - 1);
}

/* Stage j's N - j + 1 devices sum gradients in N - j messages and exchange new weights in as many:
 * N(N - 1)/2 of either, half as much as all-reduces over N devices. */
static int64_t boundaries_and_handed(int64_t N)
{
    return boundaries(N) + N * (N - 1);
}

/* Two versions and gradients, of the last stage one version: 3 GB or 2. 2N uses of a stage, each on
 * a different device than the previous use, except half of the uses of the first and of the last
 * stage. */
static int64_t states(int64_t N)
{
    return 3 * N + 3 * 2 * N * (N - 2) + 2 * N;
}

/* A broadcast goes along a ring. */
static int64_t chain_steps(int64_t N)
{
    return N - 1;
}

/* N stages of 1 GB, each broadcast twice and summed once over N devices. */
static int64_t broadcasts_and_sums(int64_t N)
{
    return 3 * N * (N - 1);
}

/* Per mini-batch of N micro-batches; P: bytes of all weights, A: bytes of a micro-batch's
 * activations, both N GB here; totals over the cluster. Rows with activations in flight hold 2 (N -
 * 1) of them per micro-batch. */
static const struct {
    const char *kind;
    uint32_t setting;
    int64_t (*devices)(int64_t N);
    int64_t (*activations)(int64_t N); /* GB, sum over devices */
    int64_t (*volume)(int64_t N);      /* GB */
    int64_t (*steps)(int64_t N);
} table[] = {
    {"cdp_dp", SINGLE, one, square, zero, zero},
    {"cdp_v2", SINGLE, one, triangle, zero, zero},
    {"cdp_dp", MULTI, n, square, all_reduce, all_reduce_steps},
    {"cdp_v2", MULTI, n, square, handed, one},
    {"cdp_dp", MODEL_PARALLEL, square, square, boundaries_and_all_reduce, all_reduce_steps},
    {"cdp_v2", MODEL_PARALLEL, triangle, triangle, boundaries_and_handed, one},
    {"cdp_dp", PIPELINE, n, triangle, boundaries, one},
    {"cdp_v2", PIPELINE, n, triangle, boundaries, one},
    {"cdp_dp", ZERO, n, square, broadcasts_and_sums, chain_steps},
    {"cdp_v2", ZERO, n, square, states, one},
};

static void test_table(void **state)
{
    (void)state;
    for (int64_t N = 2; N <= LARGEST; N++) {
        for (size_t r = 0; r < ROWS(table); r++) {
            scenario_run run;
            run_cdp(&run, table[r].kind, table[r].setting, (uint32_t)N, "", NULL);
            const cs_trace *trace = &run.simulation.trace;
            int64_t activations = 0;
            for (uint32_t d = 0; d < trace->n_devices; d++)
                activations += peak(&run, d, CS_MEMORY_ACTIVATIONS);
            char row[96];
            snprintf(row, sizeof(row), "%s, %s, N %d", table[r].kind, settings[table[r].setting],
                     (int)N);
            expect_int(row, table[r].devices(N), trace->n_devices);
            expect_int(row, 1000000000 * table[r].activations(N), activations);
            expect_int(row, 1000000000 * table[r].volume(N), volume(&run.simulation.graph));
            expect_int(row, table[r].steps(N), longest_chain(&run.simulation.graph, trace));
            scenario_run_finish(&run);
        }
    }
}

/* ---- the baseline with broadcasts ---- */

/* All micro-batches do task k in time step k of their mini-batch, with the weights of its
 * beginning. */
static void test_broadcasts(void **state)
{
    (void)state;
    static steps expected;
    for (uint32_t N = 1; N <= LARGEST; N++) {
        for (uint32_t g = 0; g < N * BATCHES; g++) {
            for (uint32_t k = 0; k < 2 * N; k++) {
                expected.start[g][k] = (int)(g / N * 2 * N + k);
                expected.version[g][k] = g / N;
            }
        }
        scenario_run run;
        run_cdp(&run, "cdp_dp", ZERO, N, "", NULL);
        compare("cdp_dp, zero", &run, N, &expected);
        /* weights, gradients of its own stage, and what it borrows of another */
        for (uint32_t d = 0; d < N; d++) {
            expect_int("weights", N > 1 ? 2000000000 : 1000000000,
                       peak(&run, d, CS_MEMORY_WEIGHTS));
            expect_int("gradients", N > 1 ? 2000000000 : 1000000000,
                       peak(&run, d, CS_MEMORY_GRADIENTS));
        }
        scenario_run_finish(&run);
    }
}

/* Times are quarters of a second; a task takes 4 of them, a message 1. */
typedef struct slow_devices {
    uint32_t N;
    int ready[LARGEST];   /* per device: the end of its last task */
    int updated[LARGEST]; /* per stage */
} slow_devices;

/* Stage j's weights go from device j along the chain of devices; each then does its task. A message
 * waits for both its ends. */
static void broadcast_slowly(slow_devices *at, uint32_t j)
{
    int here = at->updated[j];
    for (uint32_t rank = 0; rank < at->N; rank++) {
        int *ready = &at->ready[(j + rank) % at->N];
        here = (here > *ready ? here : *ready) + (rank > 0);
        *ready = here + 4;
    }
}

/* And gradients back; nobody waits for that but the update. */
static void sum_slowly(slow_devices *at, uint32_t j)
{
    int there = 0;
    for (uint32_t rank = at->N; rank-- > 0;) {
        int ready = at->ready[(j + rank) % at->N];
        there += rank + 1 < at->N;
        there = there > ready ? there : ready;
    }
    at->updated[j] = there;
}

/* A device that is late in forwarding a chain's message delays all devices after it. */
static void test_slow_broadcasts(void **state)
{
    (void)state;
    for (uint32_t N = 2; N <= 8; N++) {
        slow_devices slow = {.N = N};
        for (uint32_t batch = 0; batch < 8; batch++) {
            for (uint32_t k = 0; k < 2 * N; k++) {
                uint32_t j = k < N ? k : 2 * N - 1 - k;
                broadcast_slowly(&slow, j);
                if (k >= N)
                    sum_slowly(&slow, j);
            }
            for (uint32_t j = 0; j < N; j++) /* after its tasks, before the next device's */
                slow.ready[j] = slow.ready[j] > slow.updated[j] ? slow.ready[j] : slow.updated[j];
        }
        int end = 0;
        for (uint32_t j = 0; j < N; j++)
            end = end > slow.ready[j] ? end : slow.ready[j];
        scenario_run run;
        cs_error error = {0};
        cs_status status = scenario_run_init(
            &run, &error,
            "{'schema_version': 1, 'iterations': 8, 'model': {'uniform': {'layers': %u,"
            " 'forward': '1 s', 'backward': '1 s', 'weights': '1 GB'}}, 'platform': {'topology':"
            " 'nvlink_switch', 'sharing': 'none', 'bandwidth': '4 GB/s', 'devices': %u},"
            " 'collectives': {'algorithm': 'ring', 'chunks': 1}, 'schedule': {'kind': 'cdp_dp',"
            " 'micro_batches': %u, 'setting': 'zero'}}",
            N, N, N);
        expect_error("cdp_dp, zero", CS_OK, "", status, &error);
        expect_int("makespan", end * (CS_PS_PER_SEC / 4), run.simulation.trace.makespan);
        scenario_run_finish(&run);
    }
}

/* ---- stages and devices of any speed ---- */

/* A task that makes a version on a slot, or brings one there. */
typedef struct arrival {
    cs_time end;
    uint32_t task, slot;
} arrival;

static int compare_arrivals(const void *left, const void *right)
{
    const arrival *a = left, *b = right;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return a->task < b->task ? -1 : 1;
}

static uint32_t list_arrivals(const scenario_run *run, arrival *all)
{
    const cs_graph *graph = &run->simulation.graph;
    uint32_t n = 0;
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        if (cls->weights != CS_NONE && (cls->updates || cls->kind == CS_UPDATE))
            all[n++] = (arrival){run->simulation.trace.spans[task].end, task, cls->weights};
    }
    qsort(all, n, sizeof(*all), compare_arrivals);
    return n;
}

/* Versions that the holder of the stage on a device had when a task started there. */
static uint32_t had(const scenario_run *run, const arrival *all, uint32_t n, uint32_t task)
{
    const cs_graph *graph = &run->simulation.graph;
    const cs_class *sent = cs_graph_class(graph, task);
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        const cs_slot *slot = &graph->slots[all[i].slot];
        count += slot->stage == sent->stage && slot->device == sent->device &&
                 all[i].end <= run->simulation.trace.spans[task].start;
    }
    return count;
}

/* The k-th version that a holder receives or makes is version k: an update belongs to mini-batch k
 * - 1, and the sender has the version. */
static void expect_versions_in_order(const char *row, const scenario_run *run)
{
    const cs_graph *graph = &run->simulation.graph;
    arrival *all = calloc((size_t)graph->n_tasks + 1, sizeof(*all));
    uint32_t *held = calloc((size_t)graph->n_slots + 1, sizeof(*held));
    assert_true(all && held);
    uint32_t n = list_arrivals(run, all);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t version = ++held[all[i].slot], task = all[i].task;
        bool message = cs_graph_class(graph, task)->kind == CS_TRANSFER;
        if (!message && cs_graph_mini_batch(graph, task) + 1 != version)
            fail_msg("%s: the update of mini-batch %" PRIu32 " makes version %" PRIu32, row,
                     cs_graph_mini_batch(graph, task), version);
        if (message && had(run, all, n, task) < version)
            fail_msg("%s: task %" PRIu32 " brings version %" PRIu32 ", which was not sent", row,
                     task, version);
    }
    free(all);
    free(held);
}

/* The version that v1 and v2 prescribe for each forward; freshest reads the newest available
 * version. */
static void expect_reads_by_rule(const char *row, const scenario_run *run, uint32_t rule)
{
    const cs_graph *graph = &run->simulation.graph;
    for (uint32_t task = 0; task < graph->n_tasks && rule != FRESHEST; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        if (cls->kind != CS_FORWARD)
            continue;
        uint32_t t = cs_graph_mini_batch(graph, task);
        expect_int(row,
                   version_by_rule(rule, graph->micro_batches,
                                   cs_graph_micro_batch(graph, task) + 1, cls->stage + 1, t, 0),
                   run->simulation.trace.versions[task]);
    }
}

/* Weights on their way to a slow stage or device meet forwards that still read the ones before, and
 * must not take their place; and updates, which need them. */
static void test_slow_devices(void **state)
{
    (void)state;
    static const char *const speeds[] = {"[1, 2, 2, 0.25, 2]", "[2, 2, 0.25, 2, 2]"};
    for (size_t i = 0; i < ROWS(speeds); i++) {
        for (uint32_t rule = V1; rule <= FRESHEST; rule++) {
            char platform[80];
            snprintf(platform, sizeof(platform), "\"topology\": \"ideal\", \"speed\": %s",
                     speeds[i]);
            scenario_run run;
            run_cdp(&run, rules[rule], MULTI, 5, "", platform);
            expect_versions_in_order(speeds[i], &run);
            expect_reads_by_rule(speeds[i], &run, rule);
            scenario_run_finish(&run);
        }
    }
}

static void test_any_speed(void **state)
{
    (void)state;
    enum { N_SCENARIOS = 2000 };
    for (uint32_t rule = V1; rule <= FRESHEST; rule++) {
        gsl_rng *random = cs_random_stream(2, rules[rule]);
        assert_non_null(random);
        for (uint32_t i = 0; i < fewer_sanitized(N_SCENARIOS); i++) {
            char text[RANDOM_SCENARIO_BYTES];
            random_scenario(random, rules[rule], text);
            scenario_run run;
            cs_error error = {0};
            cs_status status = scenario_run_init(&run, &error, "%s", text);
            if (status != CS_OK)
                fail_msg("%s: %s\n%s", cs_status_name(status), error.text, text);
            expect_versions_in_order(text, &run);
            expect_reads_by_rule(text, &run, rule);
            scenario_run_finish(&run);
        }
        gsl_rng_free(random);
    }
}

/* ---- errors ---- */

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *schedule, *message;
        uint32_t layers, devices;
    } rows[] = {
        {"{\"kind\": \"cdp_v2\", \"micro_batches\": 4, \"setting\": \"model_parallel\"}",
         "test: /platform/devices: the schedule \"cdp_v2\" with these parameters has 10 devices "
         "(got 4); use 10",
         4, 4},
        {"{\"kind\": \"cdp_v2\", \"micro_batches\": 4}",
         "test: /platform/devices: gives the schedule \"cdp_v2\" 4 stages, more than the 3 layers "
         "of "
         "\"uniform\" (got 4)",
         3, 4},
        {"{\"kind\": \"cdp_v1\", \"micro_batches\": 4, \"setting\": \"pipeline\", "
         "\"retention\": \"micro_batch\"}",
         "test: /schedule/retention: \"micro_batch\" goes with settings in which a micro-batch "
         "stays on one device: single_gpu, multi_gpu, zero",
         4, 4},
    };
    for (size_t r = 0; r < ROWS(rows); r++) {
        scenario_run run;
        cs_error error = {0};
        cs_status status = uniform_run_init(
            &run, &(uniform_text){rows[r].layers, rows[r].devices, 1, rows[r].schedule, unit, NULL},
            &error);
        expect_error(rows[r].schedule, CS_INVALID, rows[r].message, status, &error);
        scenario_run_finish(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_task),
        cmocka_unit_test(test_other_durations),
        cmocka_unit_test(test_uniform_delay),
        cmocka_unit_test(test_starts),
        cmocka_unit_test(test_single_gpu),
        cmocka_unit_test(test_single_gpu_memory),
        cmocka_unit_test(test_model_parallel_assignment),
        cmocka_unit_test(test_versions_alive),
        cmocka_unit_test(test_no_second_copy),
        cmocka_unit_test(test_second_versions),
        cmocka_unit_test(test_gradient_delay),
        cmocka_unit_test(test_periodic),
        cmocka_unit_test(test_slow_messages),
        cmocka_unit_test(test_slow_messages_two_tasks),
        cmocka_unit_test(test_freshest_reads),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_broadcasts),
        cmocka_unit_test(test_slow_broadcasts),
        cmocka_unit_test(test_slow_devices),
        cmocka_unit_test(test_any_speed),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
