/* Compares closed forms with the simulation, exactly: formulas of papers, computed here
 * independently, and formulas that schedules state, wherever they say that they apply. */
#include "sim/base/random.h"
#include "tests/expect.h"
#include "tests/small-job.h"

#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_DEVICES = 16, ROW_BYTES = 2048 };

static void run_job(const char *row, const small_job *given, small_run *run)
{
    cs_error error;
    cs_error_init(&error);
    if (small_run_init(run, given, &error) != CS_OK)
        fail_msg("%s: %s", row, error.text);
}

/* ---- what the schedules state ---- */

static double simulated_figure(const small_run *run, const cs_form *form)
{
    switch (form->figure) {
    case CS_FIGURE_MAKESPAN:
        return (double)run->trace.makespan;
    case CS_FIGURE_PIPELINE_BUBBLE:
        return run->analysis.pipeline_bubble_fraction;
    case CS_FIGURE_PEAK_ACTIVATIONS:
        return (double)run->trace.devices[form->device].category_peak[CS_MEMORY_ACTIVATIONS];
    default: /* asynchronous schedules: test-versions.c and test-nf1b.c */
        break;
    }
    return NAN;
}

/* How many forms of each figure were found to apply, so that a test cannot pass on nothing. */
typedef struct applied {
    uint32_t figures[CS_N_FIGURES];
} applied;

static void expect_stated_forms(const char *row, const small_run *run, applied *count)
{
    for (uint32_t f = 0; f < run->forms.n; f++) {
        const cs_form *form = &run->forms.forms[f];
        double stated = cs_figure_is_fraction(form->figure) ? form->fraction : (double)form->exact;
        double simulated = simulated_figure(run, form);
        if (!cs_form_is_promised(form))
            continue;
        count->figures[form->figure]++;
        if (!(stated <= simulated && stated >= simulated))
            fail_msg("%s\n%s of %s: stated %.17g, simulated %.17g", row,
                     cs_figure_key(form->figure), form->formula, stated, simulated);
    }
}

/* Some form of the figure applied, and so was compared. */
static void expect_applied(const char *row, const applied *count, cs_figure figure, uint32_t least)
{
    if (count->figures[figure] < least)
        fail_msg("%s: %s: %" PRIu32 " forms applied, expected %" PRIu32 " at least", row,
                 cs_figure_key(figure), count->figures[figure], least);
}

/* ---- random jobs ---- */

typedef struct random_job {
    small_job job;
    cs_layer layers[MOST_DEVICES];
    double speeds[MOST_DEVICES];
    uint32_t devices[MOST_DEVICES];
} random_job;

static uint32_t below(gsl_rng *random, uint32_t n)
{
    return (uint32_t)gsl_rng_uniform_int(random, n);
}

static bool chance(gsl_rng *random, uint32_t percent)
{
    return below(random, 100) < percent;
}

static cs_layer random_layer(gsl_rng *random, bool updates)
{
    static const cs_time times[] = {0, 1, 500, 1000, 1000, 2000, 3000, 7001};
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 100};
    enum { N_TIMES = ROWS(times), N_SIZES = ROWS(sizes) };
    return (cs_layer){.forward = times[below(random, N_TIMES)],
                      .backward_input = times[below(random, N_TIMES)],
                      .backward_weight = times[below(random, N_TIMES)],
                      .update = updates ? times[below(random, N_TIMES)] : 0,
                      .weight_bytes = sizes[below(random, N_SIZES)],
                      .output_bytes = sizes[below(random, N_SIZES)],
                      .kept_bytes = sizes[below(random, N_SIZES)]};
}

static void draw_layers(gsl_rng *random, random_job *made)
{
    bool equal = chance(random, 50), updates = chance(random, 50);
    for (uint32_t i = 0; i < made->job.n_layers; i++)
        made->layers[i] = equal && i > 0 ? made->layers[0] : random_layer(random, updates);
    made->job.layers = made->layers;
}

static void draw_devices(gsl_rng *random, random_job *made)
{
    static const double speeds[] = {1, 1, 2, 0.5, 3};
    bool equal = chance(random, 70), in_order = chance(random, 70);
    for (uint32_t d = 0; d < made->job.n_devices; d++) {
        made->speeds[d] = equal ? 1 : speeds[below(random, ROWS(speeds))];
        made->devices[d] = d;
        uint32_t other = in_order ? d : below(random, d + 1);
        made->devices[d] = made->devices[other];
        made->devices[other] = d;
    }
    made->job.speeds = made->speeds;
    made->job.devices = made->devices;
}

static void draw_platform(gsl_rng *random, random_job *made)
{
    static const char *const topologies[] = {"ideal", "ring", "nvlink_switch", "pcie"};
    static const double bandwidths[] = {1e9, 1e9, 4e9, 3e9, 1e12, INFINITY};
    static const cs_time latencies[] = {0, 0, 1, 1000, 2500, 50000};
    made->job.topology = topologies[below(random, ROWS(topologies))];
    made->job.sharing = below(random, CS_SHARING_MAX_MIN + 1);
    made->job.phi = made->job.sharing == CS_SHARING_PHI ? 2 : 1;
    made->job.bandwidth = bandwidths[below(random, ROWS(bandwidths))];
    made->job.latency = latencies[below(random, ROWS(latencies))];
    made->job.blocking = chance(random, 20);
}

static void draw_job(gsl_rng *random, random_job *made)
{
    static const char *const schedules[] = {"sequential", "dp", "gpipe", "1f1b"};
    uint32_t kind = below(random, ROWS(schedules)), devices = 1 + below(random, 8);
    bool pipeline = kind >= 2;
    *made = (random_job){.job = {.schedule = schedules[kind],
                                 .n_devices = kind == 0 ? 1 : devices,
                                 .n_layers = pipeline ? devices : 1 + below(random, 5),
                                 .micro_batches = 1 + below(random, 10),
                                 .iterations = 1 + below(random, 3),
                                 .backward_order = below(random, 2),
                                 .bucket = chance(random, 70) ? 0 : 1 + below(random, 100)}};
    draw_layers(random, made);
    draw_devices(random, made);
    draw_platform(random, made);
}

/* Includes jobs that violate a form's assumptions: it must then not claim to apply. */
static void test_stated_forms_of_random_jobs(void **state)
{
    (void)state;
    enum { N_JOBS = 20000 };
    gsl_rng *random = cs_random_stream(1, "jobs for closed forms");
    assert_non_null(random);
    applied count = {0};
    for (uint32_t i = 0; i < N_JOBS; i++) {
        char row[ROW_BYTES];
        random_job made;
        small_run run;
        draw_job(random, &made);
        small_job_describe(&made.job, row, sizeof(row));
        run_job(row, &made.job, &run);
        expect_stated_forms(row, &run, &count);
        small_run_finish(&run);
    }
    expect_applied("random jobs", &count, CS_FIGURE_MAKESPAN, N_JOBS / 4);
    expect_applied("random jobs", &count, CS_FIGURE_PIPELINE_BUBBLE, N_JOBS / 20);
    expect_applied("random jobs", &count, CS_FIGURE_PEAK_ACTIVATIONS, N_JOBS);
    gsl_rng_free(random);
}

/* ---- pipelines of equal stages and free messages ---- */

typedef struct equal_times {
    const char *name;
    cs_time forward, backward;
} equal_times;

static const equal_times equal_rows[] = {
    {"f = b", 1000, 1000}, {"b = 2 f", 1000, 2000},
    {"odd", 1001, 1999},   {"b < f", 3000, 700},
    {"primes", 7, 3},      {"no backward", 5, 0},
    {"no forward", 0, 5},  {"seconds", CS_PS_PER_SEC, 2 * CS_PS_PER_SEC},
};

static const struct {
    uint32_t iterations;
    cs_time update;
    bool blocking;
} turns[] = {{1, 0, false}, {3, 0, false}, {1, 77, false}, {3, 77, true}};

/* Stage s keeps 10 + s bytes per micro-batch, so that the stages' peaks cannot be mixed up. */
static void fill_equal(cs_layer *layers, uint32_t n, const equal_times *times, cs_time update)
{
    for (uint32_t s = 0; s < n; s++)
        layers[s] = (cs_layer){.forward = times->forward,
                               .backward_input = times->backward / 3,
                               .backward_weight = times->backward - times->backward / 3,
                               .update = update,
                               .output_bytes = 1000,
                               .kept_bytes = 10 + s};
}

static void describe_equal(char *row, const char *name, const small_job *job)
{
    snprintf(row, ROW_BYTES, "%s, %s, P %" PRIu32 ", M %" PRIu32 ", %" PRIu32 " mini-batches",
             job->schedule, name, job->n_devices, job->micro_batches, job->iterations);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* A device is idle for (P - 1)(f + b) in each mini-batch, whatever its place. */
static double bubble_of(const small_job *job, const equal_times *times, cs_time makespan)
{
    int64_t P = job->n_devices,
            idle = job->iterations * (P - 1) * (times->forward + times->backward);
    return (double)(P * idle) / (double)(P * makespan);
}

static void check_equal(const small_job *job, const equal_times *times, cs_time update)
{
    char row[ROW_BYTES];
    describe_equal(row, times->name, job);
    bool gpipe = strcmp(job->schedule, "gpipe") == 0;
    int64_t P = job->n_devices, M = job->micro_batches;
    small_run run;
    run_job(row, job, &run);
    cs_time makespan =
        job->iterations * ((M + P - 1) * (times->forward + times->backward) + update);
    expect_int(row, makespan, run.trace.makespan);
    expect_double(row, bubble_of(job, times, makespan), run.analysis.bubble_fraction);
    for (uint32_t s = 0; s < P; s++) {
        uint32_t at_once =
            gpipe ? job->micro_batches : smaller(job->n_devices - s, job->micro_batches);
        expect_int(row, (10 + (int64_t)s) * at_once,
                   run.trace.devices[s].category_peak[CS_MEMORY_ACTIVATIONS]);
    }
    applied count = {0};
    expect_stated_forms(row, &run, &count);
    expect_applied(row, &count, CS_FIGURE_MAKESPAN, 1);
    expect_applied(row, &count, CS_FIGURE_PIPELINE_BUBBLE, update == 0);
    expect_applied(row, &count, CS_FIGURE_PEAK_ACTIVATIONS, job->n_devices);
    small_run_finish(&run);
}

static void check_equal_row(const char *schedule, const equal_times *times, size_t turn)
{
    cs_layer layers[MOST_DEVICES];
    fill_equal(layers, MOST_DEVICES, times, turns[turn].update);
    for (uint32_t P = 1; P <= MOST_DEVICES; P++) {
        for (uint32_t M = 1; M <= 32; M++)
            check_equal(&(small_job){.schedule = schedule,
                                     .topology = "ideal",
                                     .n_devices = P,
                                     .n_layers = P,
                                     .layers = layers,
                                     .micro_batches = M,
                                     .iterations = turns[turn].iterations,
                                     .blocking = turns[turn].blocking},
                        times, turns[turn].update);
    }
}

static void test_equal_stages(void **state)
{
    (void)state;
    static const char *const schedules[] = {"gpipe", "1f1b"};
    for (size_t kind = 0; kind < ROWS(schedules); kind++) {
        for (size_t r = 0; r < ROWS(equal_rows); r++) {
            for (size_t turn = 0; turn < ROWS(turns); turn++) {
                if ((r + turn) % 4 < cases_drawn(4))
                    check_equal_row(schedules[kind], &equal_rows[r], turn);
            }
        }
    }
}

/* One device: M (f + b) + u, never idle, one micro-batch kept at a time. */
static void test_sequential(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS(equal_rows); r++) {
        for (uint32_t M = 1; M <= 32; M++) {
            const equal_times *times = &equal_rows[r];
            cs_layer layers[3];
            char row[ROW_BYTES];
            fill_equal(layers, 3, times, 5);
            small_job job = {.schedule = "sequential",
                             .topology = "ideal",
                             .n_devices = 1,
                             .n_layers = 3,
                             .layers = layers,
                             .micro_batches = M,
                             .iterations = 3};
            describe_equal(row, times->name, &job);
            small_run run;
            run_job(row, &job, &run);
            expect_int(row, 3 * (3 * M * (times->forward + times->backward) + 15),
                       run.trace.makespan);
            expect_double(row, 0, run.analysis.bubble_fraction);
            expect_int(row, 10 + 11 + 12,
                       run.trace.devices[0].category_peak[CS_MEMORY_ACTIVATIONS]);
            applied count = {0};
            expect_stated_forms(row, &run, &count);
            expect_applied(row, &count, CS_FIGURE_MAKESPAN, 1);
            small_run_finish(&run);
        }
    }
}

/* Stages of zero time have no bubble. */
static void test_stages_without_time(void **state)
{
    (void)state;
    cs_layer layers[4] = {{0}};
    small_job job = {.schedule = "1f1b",
                     .topology = "ideal",
                     .n_devices = 4,
                     .n_layers = 4,
                     .layers = layers,
                     .micro_batches = 3,
                     .iterations = 2};
    small_run run;
    applied count = {0};
    run_job("no time", &job, &run);
    expect_int("no time", 0, run.trace.makespan);
    expect_double("no time", 0, run.analysis.bubble_fraction);
    expect_stated_forms("no time", &run, &count);
    small_run_finish(&run);
}

/* ---- gpipe with stages of different length ---- */

static cs_time later(cs_time a, cs_time b)
{
    return a > b ? a : b;
}

/* A message's bytes at 1e9 bytes/s. */
static cs_time byte_time(const cs_layer *layer)
{
    return 1000 * layer->output_bytes;
}

/* Task by task: a forward starts when its stage has finished the previous one and the message has
 * arrived; then the backwards, from the last stage to the first, last micro-batch first. */
static cs_time slow_gpipe(const small_job *job)
{
    uint32_t P = job->n_devices;
    cs_time free_at[MOST_DEVICES] = {0}, end = 0;
    for (uint32_t iteration = 0; iteration < job->iterations; iteration++) {
        for (uint32_t m = 0; m < job->micro_batches; m++) {
            cs_time there = 0;
            for (uint32_t s = 0; s < P; s++) {
                free_at[s] = later(free_at[s], there) + job->layers[s].forward;
                there = free_at[s] + job->latency + byte_time(&job->layers[s]);
            }
        }
        for (uint32_t m = 0; m < job->micro_batches; m++) {
            cs_time there = 0;
            for (uint32_t s = P; s-- > 0;) {
                free_at[s] = later(free_at[s], there) + job->layers[s].backward_input;
                there = free_at[s] + job->latency + (s > 0 ? byte_time(&job->layers[s - 1]) : 0);
            }
        }
        end = free_at[0];
    }
    return end;
}

/* sum(F + B + 2c) + (M - 1)(max F + max B) per mini-batch. */
static cs_time flow_shop(const small_job *job)
{
    cs_time sum = 0, forward = 0, backward = 0;
    for (uint32_t s = 0; s < job->n_devices; s++) {
        const cs_layer *layer = &job->layers[s];
        cs_time message = s + 1 < job->n_devices ? job->latency + byte_time(layer) : 0;
        sum += layer->forward + layer->backward_input + 2 * message;
        forward = later(forward, layer->forward);
        backward = later(backward, layer->backward_input);
    }
    return job->iterations * (sum + (job->micro_batches - 1) * (forward + backward));
}

/* Stages of 1 to 6 ns. Messages of up to 1 ns on their link are never two at a time, so that all
 * sharings give the same; longer ones do so without sharing. */
static void draw_flow_shop(gsl_rng *random, random_job *made, bool longer)
{
    static const cs_time latencies[] = {0, 1, 999, 30000};
    static const char *const topologies[] = {"ring", "nvlink_switch"};
    static const cs_sharing sharings[] = {CS_SHARING_FIFO, CS_SHARING_MAX_MIN, CS_SHARING_NONE,
                                          CS_SHARING_COUNT};
    uint32_t P = 1 + below(random, MOST_DEVICES);
    *made = (random_job){.job = {.schedule = "gpipe",
                                 .topology = topologies[below(random, 2)],
                                 .n_devices = P,
                                 .n_layers = P,
                                 .layers = made->layers,
                                 .micro_batches = 1 + below(random, 32),
                                 .iterations = 1 + below(random, 3),
                                 .backward_order = below(random, 2),
                                 .sharing = longer ? CS_SHARING_NONE : sharings[below(random, 4)],
                                 .bandwidth = 1e9,
                                 .latency = latencies[below(random, ROWS(latencies))]}};
    for (uint32_t s = 0; s < P; s++)
        made->layers[s] = (cs_layer){.forward = 1000 + below(random, 5000),
                                     .backward_input = 1000 + below(random, 5000),
                                     .output_bytes = below(random, longer ? 50 : 2)};
}

static void test_flow_shop(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(2, "flow shops");
    assert_non_null(random);
    for (uint32_t i = 0; i < 3000; i++) {
        char row[ROW_BYTES];
        random_job made;
        small_run run;
        applied count = {0};
        draw_flow_shop(random, &made, i % 2 == 1);
        small_job_describe(&made.job, row, sizeof(row));
        run_job(row, &made.job, &run);
        expect_int(row, slow_gpipe(&made.job), run.trace.makespan);
        expect_int(row, flow_shop(&made.job), run.trace.makespan);
        expect_stated_forms(row, &run, &count);
        expect_applied(row, &count, CS_FIGURE_MAKESPAN, i % 2 == 0);
        small_run_finish(&run);
    }
    gsl_rng_free(random);
}

/* Messages that take longer than stages compute, one after the other on a link: each boundary is
 * one more machine of the flow shop, which all micro-batches pass in order. The latencies only
 * shift what follows. Per mini-batch: sum(F + B + 2 (L + c)) + (M - 1)(max(F, c) + max(B, c)). */
static cs_time messages_in_order(const small_job *job)
{
    cs_time sum = 0, forward = 0, backward = 0;
    for (uint32_t s = 0; s < job->n_devices; s++) {
        const cs_layer *layer = &job->layers[s];
        const bool sends = s + 1 < job->n_devices;
        const cs_time bytes = sends ? byte_time(layer) : 0;
        sum += layer->forward + layer->backward_input + 2 * (bytes + (sends ? job->latency : 0));
        forward = later(forward, later(layer->forward, bytes));
        backward = later(backward, later(layer->backward_input, bytes));
    }
    return job->iterations * (sum + (job->micro_batches - 1) * (forward + backward));
}

static void test_messages_in_order(void **state)
{
    (void)state;
    static const cs_sharing sharings[] = {CS_SHARING_FIFO, CS_SHARING_MAX_MIN, CS_SHARING_COUNT};
    gsl_rng *random = cs_random_stream(2, "messages in order");
    assert_non_null(random);
    for (uint32_t i = 0; i < 3000; i++) {
        char row[ROW_BYTES];
        random_job made;
        small_run run;
        applied count = {0};
        draw_flow_shop(random, &made, true);
        made.job.sharing = sharings[i % ROWS(sharings)];
        small_job_describe(&made.job, row, sizeof(row));
        run_job(row, &made.job, &run);
        expect_int(row, messages_in_order(&made.job), run.trace.makespan);
        expect_stated_forms(row, &run, &count);
        small_run_finish(&run);
    }
    gsl_rng_free(random);
}

/* When each micro-batch's backward starts on a stage. */
static void find_backwards(const small_run *run, uint32_t stage, cs_time *starts)
{
    for (uint32_t task = 0; task < run->graph.n_tasks; task++) {
        const cs_class *cls = cs_graph_class(&run->graph, task);
        if (cls->kind == CS_BACKWARD && cls->stage == stage)
            starts[cs_graph_micro_batch(&run->graph, task)] = run->trace.spans[task].start;
    }
}

/* GPipe's backwards come in reverse in its paper (figure 2), first in, first out elsewhere. P = 2,
 * M = 3, F = 1 ns, B = 2 ns: the last forward ends at 4 ns on stage 1, whose backwards start at 4,
 * 6 and 8, on stage 0 each 2 ns later; the last one ends at 12 ns, whichever it is. */
static void test_order_of_backwards(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t order;
        cs_time starts[3]; /* on stage 1 */
    } rows[] = {{"reversed", 0, {8000, 6000, 4000}}, {"fifo", 1, {4000, 6000, 8000}}};
    cs_layer layers[2];
    for (uint32_t s = 0; s < 2; s++)
        layers[s] = (cs_layer){.forward = 1000, .backward_input = 2000};
    for (size_t r = 0; r < ROWS(rows); r++) {
        small_run run;
        run_job(rows[r].name,
                &(small_job){.schedule = "gpipe",
                             .topology = "ideal",
                             .n_devices = 2,
                             .n_layers = 2,
                             .layers = layers,
                             .micro_batches = 3,
                             .backward_order = rows[r].order,
                             .iterations = 1},
                &run);
        cs_time lower[3], upper[3];
        find_backwards(&run, 0, lower);
        find_backwards(&run, 1, upper);
        for (uint32_t m = 0; m < 3; m++) {
            expect_int(rows[r].name, rows[r].starts[m], upper[m]);
            expect_int(rows[r].name, rows[r].starts[m] + 2000, lower[m]);
        }
        expect_int(rows[r].name, 12000, run.trace.makespan);
        small_run_finish(&run);
    }
}

/* Two stages, F = B = 1 ns on both, M = 3, messages of 2 bytes that take 2 ns on their link and no
 * latency. The link is what limits:
 *   forwards   end 1, 2, 3 on stage 0; messages on the link 1-3, 3-5, 5-7; on stage 1 they end 4,
 *              6, 8. Without sharing the messages end 3, 4, 5 and the forwards 4, 5, 6.
 *   backwards  the same from there on, in the other direction: 8 + 8 = 16, without sharing 6 + 6 =
 *              12, which is what the form says: sum(F + B + 2c) = 8, and 2 * (1 + 1).
 */
static void test_long_messages_queue(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        cs_sharing sharing;
        cs_time makespan;
    } rows[] = {{"fifo", CS_SHARING_FIFO, 16000}, {"none", CS_SHARING_NONE, 12000}};
    cs_layer layers[2];
    for (uint32_t s = 0; s < 2; s++)
        layers[s] = (cs_layer){.forward = 1000, .backward_input = 1000, .output_bytes = 2};
    for (size_t r = 0; r < ROWS(rows); r++) {
        small_run run;
        applied count = {0};
        run_job(rows[r].name,
                &(small_job){.schedule = "gpipe",
                             .topology = "ring",
                             .n_devices = 2,
                             .n_layers = 2,
                             .layers = layers,
                             .micro_batches = 3,
                             .iterations = 1,
                             .sharing = rows[r].sharing,
                             .bandwidth = 1e9},
                &run);
        expect_int(rows[r].name, rows[r].makespan, run.trace.makespan);
        expect_stated_forms(rows[r].name, &run, &count);
        expect_int(rows[r].name, 0, count.figures[CS_FIGURE_MAKESPAN]);
        small_run_finish(&run);
    }
}

/* ---- 1f1b with latency ---- */

/* Per mini-batch (M + P - 1)(f + b) + u, and c for each message on the longest path: P - 1 down and
 * P - 1 up in any case, and the others in as few round trips as M - 1 micro-batches need when a
 * round trip of w stages is good for w micro-batches and crosses 2(w - 1) boundaries. Here by
 * taking the trips one after the other. */
static int64_t messages_on_path(uint32_t P, uint32_t M)
{
    int64_t messages = 2 * ((int64_t)P - 1);
    for (uint32_t left = M - 1; left > 0;) {
        uint32_t trip = smaller(P, left);
        messages += 2 * ((int64_t)trip - 1);
        left -= trip;
    }
    return messages;
}

static void check_latency(const equal_times *times, cs_time latency, uint32_t P, uint32_t M)
{
    char row[ROW_BYTES];
    cs_layer layers[MOST_DEVICES];
    cs_time update = M % 2 == 0 ? 0 : 77;
    fill_equal(layers, P, times, update);
    small_job job = {.schedule = "1f1b",
                     .topology = "nvlink_switch",
                     .n_devices = P,
                     .n_layers = P,
                     .layers = layers,
                     .micro_batches = M,
                     .iterations = 1 + M % 3,
                     .sharing = CS_SHARING_FIFO,
                     .bandwidth = INFINITY,
                     .latency = latency};
    cs_time compute = (M + P - 1) * (times->forward + times->backward) + update;
    small_run run;
    applied count = {0};
    describe_equal(row, times->name, &job);
    run_job(row, &job, &run);
    expect_int(row, job.iterations * (compute + messages_on_path(P, M) * latency),
               run.trace.makespan);
    expect_stated_forms(row, &run, &count);
    expect_applied(row, &count, CS_FIGURE_MAKESPAN, 1);
    small_run_finish(&run);
    job.schedule = "gpipe"; /* waits for the pipeline to fill and to drain, and for nothing else */
    run_job(row, &job, &run);
    expect_int(row, job.iterations * (compute + 2 * ((int64_t)P - 1) * latency),
               run.trace.makespan);
    small_run_finish(&run);
}

static void test_latency(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS(equal_rows); r++) {
        cs_time f = equal_rows[r].forward, step = f + equal_rows[r].backward;
        const cs_time latencies[] = {0, 1, f / 3, f, 3 * f + 1, 50 * step};
        for (size_t c = 0; c < ROWS(latencies); c++) {
            for (uint32_t P = 1; P <= 8; P++) {
                for (uint32_t M = 1; M <= 32; M++)
                    check_latency(&equal_rows[r], latencies[c], P, M);
            }
        }
    }
}

/* ---- data parallelism ---- */

enum { LCM_16 = 720720 }; /* divides by every number of devices up to 16 */

typedef struct reduce_row {
    const char *name;
    int64_t bytes;
    double bandwidth;
    cs_time latency;
} reduce_row;

static const reduce_row reduced_rows[] = {
    {"nothing", 0, 1e9, 500},
    {"a byte", 1, 1e9, 500},
    {"less than devices", 11, 1e9, 0},
    {"does not divide", 1000003, 3e9, 777},
    {"divides", LCM_16, 1e9, 777},
    {"divides, odd bandwidth", 7 * LCM_16, 2.99e11, 1},
    {"latency only", LCM_16, INFINITY, 12345},
};

/* 2(N - 1) steps, each as long as its largest chunk takes; nothing for one device or no bytes. */
static cs_time ring_time(int64_t bytes, int64_t n, double bandwidth, cs_time latency)
{
    if (n == 1 || bytes == 0)
        return 0;
    double chunk = ceil((double)bytes / (double)n);
    return 2 * (n - 1) * (latency + llround(chunk * 1e12 / bandwidth));
}

static void check_one_bucket(const reduce_row *given, const char *topology, cs_sharing sharing,
                             uint32_t n)
{
    char row[ROW_BYTES];
    const cs_layer layers[] = {{.forward = 1000,
                                .backward_input = 700,
                                .backward_weight = 301,
                                .update = 50,
                                .kept_bytes = 5},
                               {.forward = 11,
                                .backward_input = 5,
                                .update = 3,
                                .weight_bytes = given->bytes,
                                .kept_bytes = 8}};
    bool level = given->bytes % n == 0;
    small_job job = {.schedule = "dp",
                     .topology = topology,
                     .n_devices = n,
                     .n_layers = 2,
                     .layers = layers,
                     .micro_batches = 1 + n % 4,
                     .iterations = level ? 3 : 1,
                     .sharing = sharing,
                     .bandwidth = given->bandwidth,
                     .latency = given->latency};
    cs_time compute = job.micro_batches * (1000 + 700 + 301 + 11 + 5), update = 50 + 3;
    snprintf(row, sizeof(row), "%s, %" PRIu32 " x %s, sharing %d", given->name, n, topology,
             (int)sharing);
    small_run run;
    applied count = {0};
    run_job(row, &job, &run);
    cs_time reduce = ring_time(given->bytes, n, given->bandwidth, given->latency);
    expect_int(row, job.iterations * (compute + reduce + update), run.trace.makespan);
    expect_int(row, 13, run.trace.devices[n - 1].category_peak[CS_MEMORY_ACTIVATIONS]);
    expect_stated_forms(row, &run, &count);
    expect_applied(row, &count, CS_FIGURE_MAKESPAN, 1);
    small_run_finish(&run);
}

static void test_one_bucket(void **state)
{
    (void)state;
    static const char *const topologies[] = {"nvlink_switch", "ring"};
    for (size_t r = 0; r < ROWS(reduced_rows); r++) {
        for (size_t t = 0; t < ROWS(topologies); t++) {
            for (cs_sharing sharing = 0; sharing <= CS_SHARING_MAX_MIN; sharing++) {
                for (uint32_t n = 1; n <= MOST_DEVICES; n++)
                    check_one_bucket(&reduced_rows[r], topologies[t], sharing, n);
            }
        }
    }
}

/* A byte among 4 devices: only chunk 0 has a byte, of 1000 ps, and the latency is 100. It is sent
 * by ranks 0 1 2 3 0 1, and the 6th send ends last, at 6600: ranks 1 and 2, which it leaves and
 * reaches, go on then. Rank 0 has what it needs once its own send and rank 3's are over. In step 5
 * rank 0 sends a chunk without bytes after its step 4, which ended at 5500 with chunk 0: 5600. So
 * in the second mini-batch rank 0 begins early, and chunk 0 with it: the two mini-batches together
 * take less than twice the first. With nothing to compute the second one's chunk 0 leaves rank 0 at
 * 5600; rank 1 sends its own empty chunk in step 0, 6600 to 6700, and can send chunk 0 from there:
 * step 1 ends 7800, then four more steps of 1100: 12200, not 13200. */
static void test_unequal_chunks_twice(void **state)
{
    (void)state;
    static const cs_layer layer = {.weight_bytes = 1};
    small_job job = {.schedule = "dp",
                     .topology = "ring",
                     .n_devices = 4,
                     .n_layers = 1,
                     .layers = &layer,
                     .micro_batches = 1,
                     .iterations = 2,
                     .sharing = CS_SHARING_FIFO,
                     .bandwidth = 1e9,
                     .latency = 100};
    small_run run;
    applied count = {0};
    run_job("a byte, twice", &job, &run);
    expect_int("a byte, twice", 12200, run.trace.makespan);
    expect_stated_forms("a byte, twice", &run, &count);
    expect_int("a byte, twice", 0, count.figures[CS_FIGURE_MAKESPAN]);
    small_run_finish(&run);
}

/* Two GPUs, 1e12 bytes/s (a byte takes 1 ps), latency 10. Layer A: F 100, B as given, 1000 bytes;
 * layer B: F 100, B 100, 500 bytes; update 50 in all. An all-reduce of m bytes takes
 * 2(10 + m/2) = 20 + m: 1020 for A, 520 for B, 1520 for both in one bucket.
 *   one bucket            F 0-200, B's backward -300, A's -500; reduce -2020; update -2070
 *   a bucket per layer    reduce of B 300-820 during A's backward; reduce of A 820-1840; update
 *                         -1890
 *   the same, B of A 2000  A's backward 300-2300 overlaps the reduce of B; reduce of A -3320;
 *                          update -3370
 *   two micro-batches     the first, 500 long, reduces nothing: 500 later than one
 *   buckets of 501 bytes  layer B alone has too few: one bucket
 */
static void test_buckets(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t bucket;
        cs_time backward;
        uint32_t micro_batches;
        cs_time makespan;
    } rows[] = {
        {"one bucket", 0, 200, 1, 2070},        {"a bucket per layer", 1, 200, 1, 1890},
        {"exactly a layer", 500, 200, 1, 1890}, {"a byte more than the layer", 501, 200, 1, 2070},
        {"a long backward", 1, 2000, 1, 3370},  {"two micro-batches", 1, 200, 2, 2390},
        {"more than all", 5000, 200, 1, 2070},
    };
    for (size_t r = 0; r < ROWS(rows); r++) {
        const cs_layer layers[] = {
            {.forward = 100,
             .backward_input = rows[r].backward,
             .weight_bytes = 1000,
             .update = 30},
            {.forward = 100, .backward_input = 100, .weight_bytes = 500, .update = 20}};
        small_run run;
        run_job(rows[r].name,
                &(small_job){.schedule = "dp",
                             .topology = "nvlink_switch",
                             .n_devices = 2,
                             .n_layers = 2,
                             .layers = layers,
                             .micro_batches = rows[r].micro_batches,
                             .iterations = 1,
                             .bucket = rows[r].bucket,
                             .sharing = CS_SHARING_FIFO,
                             .bandwidth = 1e12,
                             .latency = 10},
                &run);
        expect_int(rows[r].name, rows[r].makespan, run.trace.makespan);
        small_run_finish(&run);
    }
}

/* Time with buckets, at best and at worst: everything except the last reduction is overlapped, or
 * nothing; and exactly: the backward of a bucket follows the previous backward, its reduction
 * follows both. */
typedef struct overlap {
    cs_time exact, least, most;
} overlap;

static overlap slow_overlap(const small_job *job)
{
    cs_time forward = 0, backward = 0, update = 0, computed, reduced = 0, all = 0, last = 0;
    for (uint32_t i = 0; i < job->n_layers; i++) {
        forward += job->layers[i].forward;
        backward += job->layers[i].backward_input;
        update += job->layers[i].update;
    }
    computed = (job->micro_batches - 1) * (forward + backward) + forward;
    int64_t bytes = 0;
    for (uint32_t i = job->n_layers; i-- > 0;) {
        computed += job->layers[i].backward_input;
        bytes += job->layers[i].weight_bytes;
        if (bytes < job->bucket && i > 0)
            continue;
        last = ring_time(bytes, job->n_devices, job->bandwidth, job->latency);
        reduced = bytes == 0 ? reduced : later(reduced, computed) + last;
        all += last;
        bytes = 0;
    }
    return (overlap){later(reduced, computed) + update, later(computed + last, all) + update,
                     computed + all + update};
}

static void test_overlap(void **state)
{
    (void)state;
    gsl_rng *random = cs_random_stream(3, "buckets");
    assert_non_null(random);
    for (uint32_t i = 0; i < 2000; i++) {
        char row[ROW_BYTES];
        cs_layer layers[8];
        uint32_t n_layers = 1 + below(random, 8);
        for (uint32_t l = 0; l < n_layers; l++)
            layers[l] = (cs_layer){.forward = below(random, 2000),
                                   .backward_input = below(random, 4000),
                                   .update = below(random, 3),
                                   .weight_bytes = (int64_t)LCM_16 * below(random, 3)};
        small_job job = {.schedule = "dp",
                         .topology = "nvlink_switch",
                         .n_devices = 1 + below(random, 6),
                         .n_layers = n_layers,
                         .layers = layers,
                         .micro_batches = 1 + below(random, 3),
                         .iterations = 1,
                         .bucket = 1 + (int64_t)LCM_16 * below(random, 4),
                         .sharing = chance(random, 50) ? CS_SHARING_FIFO : CS_SHARING_MAX_MIN,
                         .bandwidth = 1e15,
                         .latency = below(random, 200)};
        small_run run;
        small_job_describe(&job, row, sizeof(row));
        run_job(row, &job, &run);
        overlap expected = slow_overlap(&job);
        expect_int(row, expected.exact, run.trace.makespan);
        assert_in_range(run.trace.makespan, expected.least, expected.most);
        small_run_finish(&run);
    }
    gsl_rng_free(random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_stages),
        cmocka_unit_test(test_sequential),
        cmocka_unit_test(test_stages_without_time),
        cmocka_unit_test(test_flow_shop),
        cmocka_unit_test(test_messages_in_order),
        cmocka_unit_test(test_order_of_backwards),
        cmocka_unit_test(test_long_messages_queue),
        cmocka_unit_test(test_latency),
        cmocka_unit_test(test_one_bucket),
        cmocka_unit_test(test_unequal_chunks_twice),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_stated_forms_of_random_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
