/* interleaved_1f1b, zb_h1, zb_h2, zb_v and dualpipe_v: their orders by hand, their closed forms
 * over grids. */
#include "tests/expect.h"
#include "tests/small-job.h"
#include "tests/uniform-run.h"

/* ---- orders ---- */

/* Two devices, two stages each, four micro-batches. Device 0 warms up with 2(2 - 1 - 0) + 2 = 4
 * forwards, device 1 with 2; forwards go 0 1 of the first stage, 0 1 of the second, then 2 3. */
static const char interleaved[] =
    "{\"kind\": \"custom\", \"micro_batches\": 4, \"stage_devices\": [0, 1, 0, 1], "
    "\"device_tasks\": ["
    "\"F0@0 F1@0 F0@2 F1@2  F2@0 B0@2 F3@0 B1@2 F2@2 B0@0 F3@2 B1@0  B2@2 B3@2 B2@0 B3@0\", "
    "\"F0@1 F1@1  F0@3 B0@3 F1@3 B1@3 F2@1 B0@1 F3@1 B1@1 F2@3 B2@3 F3@3 B3@3  B2@1 B3@1\"]}";

/* As before, with three micro-batches: one group of all of them, and 2 + 3 and 3 forwards first. */
static const char one_group[] =
    "{\"kind\": \"custom\", \"micro_batches\": 3, \"stage_devices\": [0, 1, 0, 1], "
    "\"device_tasks\": ["
    "\"F0@0 F1@0 F2@0 F0@2 F1@2  F2@2 B0@2  B1@2 B2@2 B0@0 B1@0 B2@0\", "
    "\"F0@1 F1@1 F2@1  F0@3 B0@3 F1@3 B1@3 F2@3 B2@3  B0@1 B1@1 B2@1\"]}";

/* With five: groups of three and two. */
static const char two_groups[] =
    "{\"kind\": \"custom\", \"micro_batches\": 5, \"stage_devices\": [0, 1, 0, 1], "
    "\"device_tasks\": ["
    "\"F0@0 F1@0 F2@0 F0@2 F1@2  F2@2 B0@2 F3@0 B1@2 F4@0 B2@2 F3@2 B0@0 F4@2 B1@0  "
    "B2@0 B3@2 B4@2 B3@0 B4@0\", "
    "\"F0@1 F1@1 F2@1  F0@3 B0@3 F1@3 B1@3 F2@3 B2@3 F3@1 B0@1 F4@1 B1@1 F3@3 B2@1 F4@3 B3@3  "
    "B4@3 B3@1 B4@1\"]}";

/* Three stages, four micro-batches: stage s does 2 - s forwards, and its W are s behind. */
static const char zero_bubble[] = "{\"kind\": \"custom\", \"micro_batches\": 4, \"device_tasks\": ["
                                  "\"F0 F1  F2 B0 W0 F3 B1 W1 B2 W2 B3 W3\", "
                                  "\"F0  F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3\", "
                                  "\"F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3\"]}";

/* Three stages, five micro-batches, as the lower half of the paper's figure 3 begins: stage s does
 * 2 (2 - s) + 1 forwards before its first backward, and its W are 2 s behind. */
static const char twice_the_reach[] =
    "{\"kind\": \"custom\", \"micro_batches\": 5, \"device_tasks\": ["
    "\"F0 F1 F2 F3 F4 B0 W0 B1 W1 B2 W2 B3 W3 B4 W4\", "
    "\"F0 F1 F2 B0 F3 B1 F4 B2 W0 B3 W1 B4 W2 W3 W4\", "
    "\"F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 W0 W1 W2 W3 W4\"]}";

/* Three stages, four micro-batches: 2(3 - s) - 1 forwards, or all, before the first backward. */
static const char eager_order[] = "{\"kind\": \"custom\", \"micro_batches\": 4, \"device_tasks\": ["
                                  "\"F0 F1 F2 F3 B0 B1 B2 B3\", "
                                  "\"F0 F1 F2 B0 F3 B1 B2 B3\", "
                                  "\"F0 B0 F1 B1 F2 B2 F3 B3\"]}";

/* Two devices, four micro-batches, a V of four stages, as the papers' figures of ZB-V begin: the
 * first device does F of its first stage three times, twice a whole micro-batch of its second, then
 * all six passes in turn; the second one begins with one F, and one of each. */
static const char vee[] =
    "{\"kind\": \"custom\", \"micro_batches\": 4, \"stage_devices\": [0, 1, 1, 0], "
    "\"device_tasks\": ["
    "\"F0@0 F1@0 F2@0  F0@3 B0@3 W0@3 F1@3 B1@3 W1@3  F3@0 B0@0 W0@0 F2@3 B2@3 W2@3  "
    "B1@0 W1@0 F3@3 B3@3 W3@3  B2@0 W2@0 B3@0 W3@0\", "
    "\"F0@1  F0@2 F1@1  F1@2 B0@2 W0@2  F2@1 B0@1 W0@1 F2@2 B1@2 W1@2  "
    "F3@1 B1@1 W1@1 F3@2 B2@2 W2@2  B2@1 B3@2  B3@1 W2@1 W3@2 W3@1\"]}";

/* Two micro-batches, the same without the others: the second device gets its gradients late. */
static const char short_vee[] =
    "{\"kind\": \"custom\", \"micro_batches\": 2, \"stage_devices\": [0, 1, 1, 0], "
    "\"device_tasks\": ["
    "\"F0@0 F1@0  F0@3 B0@3 W0@3 F1@3 B1@3 W1@3  B0@0 W0@0  B1@0 W1@0\", "
    "\"F0@1  F0@2 F1@1  F1@2 B0@2 W0@2  B0@1 W0@1 B1@2 W1@2  B1@1 W1@1\"]}";

/* The same V with the steps of DualPipeV: on the first device (d = 0) twice F, once F F', once
 * I' W F';
 * F B' F' B until all four F are done, which is once; B' F' B; once B' and the first pass that is
 * split, a B; once W I; a W. On the second (d = 1) twice F F', twice F B' F' B, and B' B twice, of
 * which the second pair is split. */
static const char dual[] =
    "{\"kind\": \"custom\", \"micro_batches\": 4, \"stage_devices\": [0, 1, 1, 0], "
    "\"device_tasks\": ["
    "\"F0@0 F1@0  F2@0 F0@3  B0@3 W0@3 F1@3  F3@0 B1@3 F2@3 B0@0  B2@3 F3@3 B1@0  B3@3 B2@0  "
    "W2@0 B3@0  W3@0\", "
    "\"F0@1 F0@2 F1@1 F1@2  F2@1 B0@2 F2@2 B0@1  F3@1 B1@2 F3@2 B1@1  B2@2 B2@1  B3@2 B3@1  "
    "W3@2 W3@1\"]}";

/* Two devices, one wave, three micro-batches, step by step; at most two are under way.
 *   1  F0@0                 5  B0@3       F1@2          9  F2@0       B1@1
 *   2  F1@0       F0@1      6  F1@3       B0@2         10  B1@0       F2@1
 *   3             F0@2      7  B1@3       B0@1         11             F2@2
 *   4  F0@3       F1@1      8  B0@0       B1@2         12  F2@3
 * and then B2 of stages 3, 2, 1 and 0. In step 3 device 0 may not begin F2@0, in step 8 it has a
 * backward to do first; in step 9 the first micro-batch is through. */
static const char wave[] =
    "{\"kind\": \"custom\", \"micro_batches\": 3, \"stage_devices\": [0, 1, 1, 0], "
    "\"device_tasks\": ["
    "\"F0@0 F1@0  F0@3 B0@3 F1@3 B1@3 B0@0 F2@0 B1@0  F2@3 B2@3  B2@0\", "
    "\"F0@1 F0@2 F1@1 F1@2 B0@2 B0@1 B1@2 B1@1 F2@1 F2@2  B2@2 B2@1\"]}";

static const struct {
    const char *name, *written, *schedule;
    uint32_t layers, devices;
} orders[] = {
    {"interleaved_1f1b", interleaved, "{\"kind\": \"interleaved_1f1b\", \"micro_batches\": 4}", 6,
     2},
    {"one group", one_group, "{\"kind\": \"interleaved_1f1b\", \"micro_batches\": 3}", 6, 2},
    {"two groups", two_groups, "{\"kind\": \"interleaved_1f1b\", \"micro_batches\": 5}", 6, 2},
    {"zb_h1", zero_bubble, "{\"kind\": \"zb_h1\", \"micro_batches\": 4}", 3, 3},
    {"eager 1f1b", eager_order,
     "{\"kind\": \"1f1b\", \"micro_batches\": 4, \"warm_up\": \"eager\"}", 3, 3},
    {"zb_h2", twice_the_reach, "{\"kind\": \"zb_h2\", \"micro_batches\": 5}", 3, 3},
    {"zb_v", vee, "{\"kind\": \"zb_v\", \"micro_batches\": 4}", 8, 2},
    {"a short zb_v", short_vee, "{\"kind\": \"zb_v\", \"micro_batches\": 2}", 8, 2},
    {"hanayo", wave, "{\"kind\": \"hanayo\", \"micro_batches\": 3}", 8, 2},
    {"dualpipe_v", dual, "{\"kind\": \"dualpipe_v\", \"micro_batches\": 4}", 8, 2},
};

static void test_orders(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(orders); i++) {
        const char *network = "\"topology\": \"ring\", \"bandwidth\": \"3 GB/s\", \"latency\": "
                              "\"7 ms\"";
        scenario_run a, b;
        uniform_run_expect(&a, &(uniform_text){orders[i].layers, orders[i].devices, 2,
                                               orders[i].written, NULL, network});
        uniform_run_expect(&b, &(uniform_text){orders[i].layers, orders[i].devices, 2,
                                               orders[i].schedule, NULL, network});
        expect_bits(orders[i].name, a.simulation.hash, b.simulation.hash);
        scenario_run_finish(&a);
        scenario_run_finish(&b);
    }
}

/* ---- closed forms ---- */

/* Makespan and bubble, and the peak of every device, whatever the times. */
static void check_interleaved(uint32_t P, uint32_t v, uint32_t M, const char *uniform, bool updates)
{
    char schedule[128], row[160];
    snprintf(schedule, sizeof(schedule),
             "{\"kind\": \"interleaved_1f1b\", \"micro_batches\": %u, \"stages_per_device\": %u}",
             M, v);
    snprintf(row, sizeof(row), "P %u, v %u, M %u, %s", P, v, M, uniform ? uniform : "equal times");
    scenario_run run;
    uniform_run_expect(&run, &(uniform_text){P * v, P, 2, schedule, uniform, NULL});
    expect_int(row, P + (updates ? 1 : 2), uniform_run_check_forms(row, &run));
    scenario_run_finish(&run);
}

static void test_interleaved_forms(void **state)
{
    (void)state;
    for (uint32_t P = 1; P <= 7; P++) {
        for (uint32_t v = 2; v <= 4; v++) {
            for (uint32_t M = 1; M <= 5 * P; M++) {
                check_interleaved(P, v, M, NULL, false);
                check_interleaved(P, v, M,
                                  "\"forward\": \"3 s\", \"backward\": \"1 s\", \"weights\": "
                                  "\"1 GB\", \"activation\": \"1 GB\", \"update\": \"1 s\"",
                                  true);
            }
        }
    }
}

/* The time of the last device's passes, with the ways down to its first one and up from its last:
 * nothing is faster. Where f = b and P divides M nothing is slower either, and the forms apply. */
static void check_hanayo(uint32_t P, uint32_t W, uint32_t M, uint32_t backward)
{
    char schedule[128], uniform[160], row[160];
    snprintf(schedule, sizeof(schedule),
             "{\"kind\": \"hanayo\", \"micro_batches\": %u, \"waves\": %u}", M, W);
    snprintf(uniform, sizeof(uniform),
             "\"forward\": \"2 s\", \"backward\": \"%u s\", \"weights\": \"1 GB\", "
             "\"activation\": \"1 GB\"",
             backward);
    snprintf(row, sizeof(row), "P %u, W %u, M %u, b %u s", P, W, M, backward);
    scenario_run run;
    uniform_run_expect(&run, &(uniform_text){2 * P * W, P, 2, schedule, uniform, NULL});
    const bool holds = M % P == 0 && backward == 2;
    const cs_time least = 2 * (cs_time)(2 * W * M + P - 1) * (2 + backward) * CS_PS_PER_SEC;
    if (holds)
        expect_int(row, least, run.simulation.trace.makespan);
    else if (run.simulation.trace.makespan < least)
        fail_msg("%s: faster than the last device can compute", row);
    expect_int(row, holds ? 2 : 0, uniform_run_check_forms(row, &run));
    scenario_run_finish(&run);
}

static void test_hanayo_forms(void **state)
{
    (void)state;
    for (uint32_t P = 1; P <= 6; P++)
        for (uint32_t W = 1; W <= 3; W++)
            for (uint32_t M = 1; M <= 3 * P; M++)
                for (uint32_t backward = 1; backward <= 4; backward++)
                    check_hanayo(P, W, M, backward);
}

/* The forms of zb_h1 and zb_h2 with f, b, w. */
typedef struct zero_bubble_case {
    const char *kind;
    uint32_t least_micros, most_kept;
    cs_time once, per_batch;
    cs_time above; /* where the form does not apply, the run takes so much more at least */
} zero_bubble_case;

/* The closed form holds where w <= f and w <= b, and says so. */
static void check_zero_bubble(const zero_bubble_case *of, uint32_t P, uint32_t M,
                              const cs_time times[3])
{
    cs_layer layers[8];
    for (uint32_t s = 0; s < P; s++)
        layers[s] = (cs_layer){.forward = times[0],
                               .backward_input = times[1],
                               .backward_weight = times[2],
                               .weight_bytes = 1,
                               .kept_bytes = 10};
    small_job job = {.schedule = of->kind,
                     .topology = "ideal",
                     .n_devices = P,
                     .n_layers = P,
                     .layers = layers,
                     .micro_batches = M,
                     .iterations = 2};
    small_run run;
    cs_error error = {0};
    cs_status status = small_run_init(&run, &job, &error);
    expect_error(of->kind, CS_OK, "", status, &error);
    char row[96];
    snprintf(row, sizeof(row), "%s, P %u, M %u, f %d, b %d, w %d", of->kind, P, M, (int)times[0],
             (int)times[1], (int)times[2]);
    bool holds = M >= of->least_micros && times[2] <= times[0] && times[2] <= times[1];
    cs_time expected = of->once + 2 * of->per_batch;
    if (holds)
        expect_int(row, expected, run.trace.makespan);
    else if (P > 1 && run.trace.makespan < expected + of->above)
        fail_msg("%s: below the closed form, which does not apply", row);
    for (uint32_t i = 0; i < run.forms.n; i++) {
        const cs_form *form = &run.forms.forms[i];
        if (form->figure == CS_FIGURE_MAKESPAN)
            expect_int(row, P == 1 ? form->applies : holds, form->applies);
        else if (form->figure == CS_FIGURE_PEAK_ACTIVATIONS)
            expect_int(row, 10 * (int64_t)(of->most_kept < M ? of->most_kept : M),
                       run.trace.devices[form->device].category_peak[CS_MEMORY_ACTIVATIONS]);
    }
    small_run_finish(&run);
}

static void check_both_reaches(uint32_t P, uint32_t M, cs_time f, cs_time b, cs_time w)
{
    const cs_time busy = M * (f + b + w), times[] = {f, b, w};
    check_zero_bubble(&(zero_bubble_case){"zb_h1", P, P, 0, busy + (P - 1) * (f + b - w), 1}, P, M,
                      times);
    check_zero_bubble(&(zero_bubble_case){"zb_h2", 2 * P - 1, 2 * P - 1,
                                          (P - 1) * (2 * w > b ? 2 * w - b : 0),
                                          busy + (P - 1) * (f + b - 2 * w), 0},
                      P, M, times);
}

static void test_zero_bubble_forms(void **state)
{
    (void)state;
    for (uint32_t P = 1; P <= 8; P++) {
        for (uint32_t M = 1; M <= 20; M++) {
            for (cs_time code = 0; code < 27; code++)
                check_both_reaches(P, M, 1 + code / 9, 1 + code / 3 % 3, 1 + code % 3);
        }
    }
}

/* 1f1b with f = 1 s, b = 2 s, latency c: up to 2c = f + b the eager warm-up overlaps every message
 * except one way down and one back, unlike the shortest warm-up; beyond it the form does not
 * apply. */
static void check_eager(uint32_t P, uint32_t M, uint32_t half_seconds)
{
    char schedule[128], row[96], network[128];
    snprintf(schedule, sizeof(schedule),
             "{\"kind\": \"1f1b\", \"micro_batches\": %u, \"warm_up\": \"eager\"}", M);
    snprintf(network, sizeof(network),
             "\"topology\": \"ring\", \"bandwidth\": \"1 TB/s\", \"latency\": \"%u ms\"",
             500 * half_seconds);
    snprintf(row, sizeof(row), "P %u, M %u, c %u/2 s", P, M, half_seconds);
    const cs_time expected =
        CS_PS_PER_SEC * 3 * (M + P - 1) + CS_PS_PER_SEC * half_seconds * (P - 1);
    const bool holds = half_seconds <= 3;
    scenario_run run;
    uniform_run_expect(&run, &(uniform_text){P, P, 1, schedule,
                                             "\"forward\": \"1 s\", \"backward\": \"2 s\", "
                                             "\"weights\": \"1 GB\", \"activation\": \"0 B\"",
                                             network});
    if (holds)
        expect_int(row, expected, run.simulation.trace.makespan);
    else if (run.simulation.trace.makespan < expected)
        fail_msg("%s: below the time of one way down and back", row);
    expect_int(row, P + (holds ? 1 : 0), uniform_run_check_forms(row, &run));
    scenario_run_finish(&run);
}

static void test_eager(void **state)
{
    (void)state;
    for (uint32_t P = 2; P <= 6; P++)
        for (uint32_t M = 1; M <= 14; M++)
            for (uint32_t half_seconds = 0; half_seconds <= 5; half_seconds++)
                check_eager(P, M, half_seconds);
}

typedef struct vee_case {
    uint32_t P, M, n; /* devices, micro-batches, mini-batches */
    cs_time times[3]; /* f, b, w */
} vee_case;

/* schedules/README.md derives the time of one mini-batch with f <= b, w <= b and M >= 2P - 1; what
 * each further one adds is a claim. */
static cs_time vee_seconds(const vee_case *of)
{
    const cs_time f = of->times[0], b = of->times[1], w = of->times[2];
    const cs_time once = b > 2 * w ? 2 * b - 2 * w : b;
    const cs_time often = 2 * (b - w) > b - f ? 2 * (b - w) : b - f;
    return of->n * 2 * (cs_time)of->M * (f + b + w) + (of->P - 1) * (once + (of->n - 1) * often);
}

/* Runs stages that keep 10 bytes per micro-batch; finished by small_run_finish. */
static void run_vee(const char *schedule, const vee_case *of, small_run *run)
{
    cs_layer layers[16];
    uint32_t devices[16];
    for (uint32_t s = 0; s < 2 * of->P; s++) {
        devices[s] = s < of->P ? s : 2 * of->P - 1 - s;
        layers[s] = (cs_layer){.forward = of->times[0],
                               .backward_input = of->times[1],
                               .backward_weight = of->times[2],
                               .weight_bytes = 1,
                               .kept_bytes = 10};
    }
    small_job job = {.schedule = schedule,
                     .topology = "ideal",
                     .n_devices = of->P,
                     .n_layers = 2 * of->P,
                     .layers = layers,
                     .devices = devices,
                     .micro_batches = of->M,
                     .iterations = of->n};
    cs_error error = {0};
    const cs_status status = small_run_init(run, &job, &error);
    expect_error(schedule, CS_OK, "", status, &error);
}

static void check_vee(const vee_case *of)
{
    const uint32_t P = of->P, M = of->M;
    const cs_time f = of->times[0], b = of->times[1], w = of->times[2];
    small_run run;
    run_vee("zb_v", of, &run);
    char row[96];
    snprintf(row, sizeof(row), "zb_v, P %u, M %u, %u times, f %d, b %d, w %d", P, M, of->n, (int)f,
             (int)b, (int)w);
    const bool holds = M >= 2 * P - 1 && f <= b && w <= b;
    const cs_time busy = of->n * 2 * (cs_time)M * (f + b + w) + (P - 1) * f;
    if (holds)
        expect_int(row, vee_seconds(of), run.trace.makespan);
    else if (run.trace.makespan < busy)
        fail_msg("%s: faster than the last device can compute", row);
    for (uint32_t i = 0; i < run.forms.n; i++) {
        const cs_form *form = &run.forms.forms[i];
        if (form->figure == CS_FIGURE_MAKESPAN) {
            expect_int(row, holds, form->applies);
            if (holds)
                expect_int(row, vee_seconds(of), form->exact);
        } else if (form->figure == CS_FIGURE_PEAK_ACTIVATIONS && M >= 2 * P - 1) {
            expect_int(row, 20 * (int64_t)P,
                       run.trace.devices[form->device].category_peak[CS_MEMORY_ACTIVATIONS]);
            expect_int(row, 20 * (int64_t)P, form->exact);
        }
    }
    small_run_finish(&run);
}

static void test_vee(void **state)
{
    (void)state;
    for (uint32_t P = 1; P <= 6; P++)
        for (uint32_t M = 1; M <= 3 * P; M++)
            for (cs_time code = 0; code < 81; code++)
                check_vee(&(vee_case){P,
                                      M,
                                      1 + (uint32_t)(code % 3),
                                      {1 + code / 27, 1 + code / 9 % 3, 1 + code / 3 % 3}});
}

/* With w <= b and f <= b + w, and M >= 2P, a claim: what devices do not compute of a mini-batch.
 * The source's bubble is (P - 1)(F&B + B - 3W), of pairs whose results are all there at their end:
 * with F&B = f + b + w and B = b + w it is longer by P f or by (P - 1) b, whichever is less. */
static cs_time dual_bubble(const vee_case *of)
{
    const cs_time f = of->times[0], b = of->times[1], w = of->times[2], others = of->P - 1;
    const cs_time up = others * (f + b - w), back = others * (2 * b - w) - f;
    return up > back ? up : back;
}

static void check_dual(const vee_case *of)
{
    const cs_time f = of->times[0], b = of->times[1], w = of->times[2];
    const bool holds = w <= b && f <= b + w;
    const cs_time busy = 2 * (cs_time)of->M * (f + b + w);
    const cs_time expected = of->n * (busy + dual_bubble(of));
    small_run run;
    char row[96];
    run_vee("dualpipe_v", of, &run);
    snprintf(row, sizeof(row), "dualpipe_v, P %u, M %u, %u times, f %d, b %d, w %d", of->P, of->M,
             of->n, (int)f, (int)b, (int)w);
    if (holds)
        expect_int(row, expected, run.trace.makespan);
    else if (run.trace.makespan < of->n * busy + (of->P - 1) * f)
        fail_msg("%s: faster than the last device can compute", row);
    for (uint32_t i = 0; i < run.forms.n; i++) {
        const cs_form *form = &run.forms.forms[i];
        if (form->figure == CS_FIGURE_MAKESPAN) {
            expect_int(row, holds, form->applies);
            expect_int(row, expected, form->exact);
        } else if (form->figure == CS_FIGURE_PIPELINE_BUBBLE) {
            const cs_time source = (of->P - 1) * ((f + b + w) + (b + w) - 3 * w);
            expect_double(row, (double)source / (double)(source + busy), form->fraction);
        } else if (form->figure == CS_FIGURE_PEAK_ACTIVATIONS) {
            expect_int(row, 10 * (2 * (int64_t)of->P + 1), form->exact);
            expect_int(row, form->exact,
                       run.trace.devices[form->device].category_peak[CS_MEMORY_ACTIVATIONS]);
        }
    }
    small_run_finish(&run);
}

static void test_dual(void **state)
{
    (void)state;
    for (uint32_t P = 1; P <= 6; P++)
        for (uint32_t M = 2 * P; M <= 2 * P + 4; M++)
            for (cs_time code = 0; code < 81; code++)
                check_dual(&(vee_case){P,
                                       M,
                                       1 + (uint32_t)(code % 3),
                                       {1 + code / 27, 1 + code / 9 % 3, 1 + code / 3 % 3}});
}

/* With equal times the bubble is (P - 1) f against 3 (P - 1) f of 1F1B. */
static void test_third_of_1f1b(void **state)
{
    (void)state;
    scenario_run zb, plain;
    uniform_run_expect(
        &zb, &(uniform_text){8, 8, 1, "{\"kind\": \"zb_h1\", \"micro_batches\": 12}", NULL, NULL});
    uniform_run_expect(
        &plain,
        &(uniform_text){8, 8, 1, "{\"kind\": \"1f1b\", \"micro_batches\": 12}", NULL, NULL});
    expect_int("zb_h1", (36 + 7) * CS_PS_PER_SEC, zb.simulation.trace.makespan);
    expect_int("1f1b", (36 + 21) * CS_PS_PER_SEC, plain.simulation.trace.makespan);
    expect_int("activations of device 0",
               plain.simulation.trace.devices[0].category_peak[CS_MEMORY_ACTIVATIONS],
               zb.simulation.trace.devices[0].category_peak[CS_MEMORY_ACTIVATIONS]);
    scenario_run_finish(&zb);
    scenario_run_finish(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),       cmocka_unit_test(test_interleaved_forms),
        cmocka_unit_test(test_hanayo_forms), cmocka_unit_test(test_zero_bubble_forms),
        cmocka_unit_test(test_vee),          cmocka_unit_test(test_dual),
        cmocka_unit_test(test_eager),        cmocka_unit_test(test_third_of_1f1b),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
