/* The search for plans, held against simulating all of them. */
#include "sim/base/random.h"
#include "sim/base/text.h"
#include "sim/study/advise/advise.h"
#include "tests/expect.h"

#include <math.h>
#include <stdlib.h>

#define GPT                                                                                        \
    "'schema_version': 1, 'runtime': 'ideal', 'model': {'name': 'gpt', 'parameters': {'layers': "  \
    "6, 'hidden': 512, "                                                                           \
    "'heads': 8, 'sequence': 512, 'vocabulary': 4096}, 'device': 'v100', 'precision': 'fp16', "    \
    "'granularity': 'block', 'optimizer': 'adam', 'batch_size': 16}, 'schedule': {'kind': "        \
    "'sequential'}, 'parallel': {}, "
#define MIXTURE                                                                                    \
    "'schema_version': 1, 'runtime': 'ideal', 'model': {'name': 'mixtral', 'parameters': "         \
    "{'layers': 4, 'hidden': 256,"                                                                 \
    " 'heads': 8, 'kv_heads': 4, 'expert_intermediate': 512, 'sequence': 256, 'vocabulary': 1024"  \
    ", 'experts': 4}, 'device': 'h100', 'granularity': 'block', 'precision': 'bf16', "             \
    "'optimizer': 'adam', 'batch_size': 16}, 'schedule': {'kind': 'sequential'}, 'parallel': {}, "
#define IMAGES                                                                                     \
    "'schema_version': 1, 'runtime': 'ideal', 'model': {'name': 'resnet18', 'parameters': "        \
    "{'image': 64}, 'device': "                                                                    \
    "'v100', 'granularity': 'block', 'optimizer': 'momentum', 'batch_size': 16}, 'schedule': {"    \
    "'kind': 'sequential'}, 'parallel': {}, "
#define ADAPTED(model, more)                                                                       \
    "'schema_version': 1, 'runtime': 'ideal', 'model': {" model                                    \
    ", 'heads': 8, 'kv_heads': 4, 'sequence': 256, 'vocabulary': 1024}, 'device': 'h100', "        \
    "'granularity': 'block', 'optimizer': 'adam', 'batch_size': 16, " more                         \
    "}, 'schedule': {'kind': 'sequential'}, 'parallel': {}, "
#define LLAMA "'name': 'llama', 'parameters': {'layers': 4, 'hidden': 512, 'intermediate': 2048"
#define LORA  "'precision': 'bf16', 'lora': {'rank': 8, 'targets': ['q_proj', 'v_proj']}"
#define UNIFORM                                                                                    \
    "'schema_version': 1, 'runtime': 'ideal', 'model': {'uniform': {'layers': 12, 'forward': '3 "  \
    "ms', 'backward': "                                                                            \
    "'7 ms', 'update': '1 ms', 'weights': '40 MB', 'activation': '30 MB', 'workspace': '5 MB'}, "  \
    "'batch_size': 32, 'optimizer': 'adam'}, 'schedule': {'kind': 'sequential'}, 'parallel': {}, "
#define NODES(memory)                                                                              \
    "'platform': {'topology': 'dgx1-v100', 'devices': 8, 'memory': '" memory "'}, "

static const struct {
    const char *name, *scenario;
    uint32_t top;
} cases[] = {
    {"transformer",
     GPT NODES("16 GB") "'advise': {'schedules': ['sequential', '1f1b', 'gpipe', "
                        "'interleaved_1f1b', 'zb_h1', 'zb_h2', 'zb_v', 'dualpipe_v'], "
                        "'stages_per_device': [2, 3], "
                        "'context': [1, 2], 'micro_batch': [1, 4]}",
     5},
    {"little memory", GPT NODES("160 MB") "'advise': {'context': 1}", 3},
    {"buckets", GPT NODES("400 MB") "'advise': {'bucket': ['0 B', '4 MB'], 'front': 1.2}", 1},
    {"devices", GPT NODES("1 GB") "'advise': {'devices': [2, 4, 8], 'recompute': 'none'}", 4},
    {"messages are flows",
     GPT NODES("400 MB") "'collectives': {'fidelity': 'flow'}, 'advise': {'zero': [0, 1, 3], "
                         "'recompute': 'none'}",
     5},
    {"rules",
     GPT NODES("240 MB") "'parallel': {'rules': [{'layers': [1, 3], 'zero': 3}]}, 'advise': {}", 5},
    {"rules for images",
     IMAGES "'platform': {'topology': 'nvlink_switch', 'devices': 8, 'bandwidth': '10 GB/s', "
            "'memory': '300 MB'}, 'parallel': {'rules': [{'layers': [1, 2], 'zero': 3}]}, "
            "'advise': {'zero': 0, 'space': [1, 2], 'filter': 1, 'channel': 1}",
     5},
    {"gradients are summed whole",
     GPT NODES("240 MB") "'parallel': {'accumulate': true}, 'advise': {}", 5},
    {"experts", MIXTURE NODES("90 MB") "'advise': {'context': 1}", 5},
    {"images", IMAGES NODES("300 MB") "'advise': {'zero': [0, 3]}", 5},
    {"adapters", ADAPTED(LLAMA, LORA) NODES("50 MB") "'advise': {'context': 1}", 5},
    {"adapters and experts",
     ADAPTED("'name': 'mixtral', 'parameters': {'layers': 4, 'hidden': 256, "
             "'expert_intermediate': 512, 'experts': 4",
             LORA) NODES("40 MB") "'advise': {'context': 1, 'pipeline': [1, 2]}",
     5},
    {"narrow copies",
     ADAPTED(LLAMA, "'precision': 'fp8'") NODES("130 MB") "'advise': {'context': 1}", 5},
    {"narrow weights",
     ADAPTED(LLAMA, "'precision': 'fp8'") NODES("120 MB") "'memory': {'narrow_weights': 'alone'}, "
                                                          "'advise': {'context': 1}",
     5},
    {"no operators", UNIFORM NODES("1 GB") "'advise': {}", 5},
    {"slowed by messages",
     IMAGES "'platform': {'topology': 'dgx1-v100', 'devices': 8, 'memory': '300 MB', 'slowdown': "
            "{'factor': 1.3}}, 'advise': {'zero': [0, 1], 'space': 1, 'filter': 1, 'channel': 1}",
     5},
    {"unequal devices",
     UNIFORM "'platform': {'topology': 'dgx1-v100', 'devices': 8, 'memory': '2 GB', 'speed': "
             "[1, 2, 1, 1, 3, 1, 1, 1]}",
     5},
};

/* A search takes a dozen times as long with sanitizers, which see the same code in any case: then
 * every third case. */
#ifdef CS_TESTS_SANITIZED
enum { STEP = 3 };
#else
enum { STEP = 1 };
#endif

/* With ' for ". A later "parallel" takes the place of an earlier one. */
static cJSON *document_of(const char *scenario)
{
    char *text = NULL;
    size_t length;
    cs_error error;
    cJSON *root = NULL;
    cs_error_init(&error);
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    const char *again = strstr(scenario, "'parallel': {'");
    fputc('{', out);
    for (const char *at = scenario; *at; at++) {
        static const char empty[] = "'parallel': {}, ";
        if (again && strncmp(at, empty, sizeof(empty) - 1) == 0)
            at += sizeof(empty) - 1;
        fputc(*at == '\'' ? '"' : *at, out);
    }
    const size_t n = strlen(scenario);
    fputs(n > 2 && scenario[n - 2] == ',' ? "\"seed\": 1}" : "}", out);
    assert_int_equal(fclose(out), 0);
    if (cs_json_parse("case", text, length, &root, &error) != CS_OK)
        fail_msg("%s\n%s", error.text, text);
    free(text);
    return root;
}

static cs_advice advise(const char *name, const cJSON *document, const cs_advise_options *options)
{
    cs_advice advice = {0};
    cs_error error;
    cs_error_init(&error);
    if (cs_advise(document, "case.json", options, &advice, &error) != CS_OK)
        fail_msg("%s: %s", name, error.text);
    return advice;
}

/* Value of more memory: the time of the fastest plan that does not fit, if it is less than for all
 * that fit; else 0. */
static double misfit_time(const cs_advice *advice)
{
    const uint32_t i = advice->misfit.candidate;
    return i == CS_NO_CANDIDATE ? 0 : advice->outcomes[i].step.time;
}

/* Independently of the search, from all outcomes. */
static double expected_misfit_time(const cs_advice *all)
{
    double fits = (double)INFINITY, over = (double)INFINITY;
    for (uint32_t i = 0; i < all->candidates.n; i++) {
        const cs_candidate_outcome *of = &all->outcomes[i];
        if (of->state == CS_CANDIDATE_SIMULATED)
            fits = fmin(fits, of->step.time);
        else if (of->state == CS_CANDIDATE_OVER)
            over = fmin(over, of->step.time);
    }
    return over < fits ? over : 0;
}

static bool is_vee(const cs_candidate *c)
{
    const char *name = cs_schedule_names[c->schedule];
    return strcmp(name, "zb_v") == 0 || strcmp(name, "dualpipe_v") == 0;
}

/* Fails where what was simulated of a plan is below one of its bounds, or one of these is below the
 * rough bound from another price of the same model. */
static void expect_bounds(const char *row, const cs_advice *of, uint32_t i)
{
    const cs_step *step = &of->outcomes[i].step;
    const cs_candidate *c = &of->candidates.items[i];
    const cs_priced *like = &of->bounds.priced[of->bounds.model[of->bounds.of[i]]];
    const cs_pass_order *order = cs_bounds_order(&of->bounds, i);
    if (like->possible && of->bounds.equal_speeds &&
        cs_rough_time(c, order, like) > of->bounds.time[i] * (1 + 1e-9))
        fail_msg("%s: the rough bound is %g s, more than %g s", row, cs_rough_time(c, order, like),
                 of->bounds.time[i]);
    if (like->possible &&
        cs_rough_memory(&of->base, c, order, like) > of->bounds.memory[i] * (1 + 1e-9) + 1)
        fail_msg("%s: the rough bound is %g bytes, more than %g", row,
                 cs_rough_memory(&of->base, c, order, like), of->bounds.memory[i]);
    if (of->bounds.time[i] > step->time)
        fail_msg("%s: takes %g s, less than its bound, %g s", row, step->time, of->bounds.time[i]);
    if (of->bounds.memory[i] > (double)step->peak)
        fail_msg("%s: needs %g bytes, less than its bound, %g", row, (double)step->peak,
                 of->bounds.memory[i]);
}

/* A search with pruning gives the same answers as one without; pruned plans are no answers, or do
 * not fit. Every bound holds, whether it was needed or not. */
static void compare_searches(const char *name, const cs_advice *all, const cs_advice *some)
{
    char row[256], plan[CS_CANDIDATE_TEXT_BYTES];
    expect_int(name, all->candidates.n, some->candidates.n);
    for (uint32_t i = 0; i < all->candidates.n; i++) {
        const cs_candidate_outcome *a = &all->outcomes[i], *b = &some->outcomes[i];
        snprintf(row, sizeof(row), "%s, %s", name,
                 cs_candidate_text(&all->candidates.items[i], plan, sizeof(plan)));
        expect_int(row, a->answer, b->answer);
        expect_int(row, a->front, b->front);
        if (b->state == CS_CANDIDATE_TOO_LARGE)
            expect_int(row, CS_CANDIDATE_OVER, a->state);
        else if (b->state == CS_CANDIDATE_SLOWER)
            assert_false(a->answer);
        else
            expect_int(row, a->state, b->state);
        if (a->state != CS_CANDIDATE_SIMULATED && a->state != CS_CANDIDATE_OVER)
            continue;
        expect_bounds(row, all, i);
    }
    expect_int(name, all->n_rows, some->n_rows);
    for (uint32_t r = 0; r < all->n_rows; r++)
        expect_int(name, all->rows[r].candidate, some->rows[r].candidate);
}

/* The search's result for plan i equals `sim run`: the candidate's changes of the scenario, read
 * and simulated in full. */
static void expect_same_as_run(const char *name, const cs_advice *advice, const cJSON *document,
                               uint32_t i)
{
    char row[256], plan[CS_CANDIDATE_TEXT_BYTES];
    cJSON *changed = cJSON_Duplicate(document, true);
    cJSON *changes = cs_candidate_changes(&advice->base, &advice->candidates.items[i]);
    cs_scenario scenario;
    cs_simulation simulation;
    cs_error error;
    cs_error_init(&error);
    snprintf(row, sizeof(row), "%s, %s", name,
             cs_candidate_text(&advice->candidates.items[i], plan, sizeof(plan)));
    for (const cJSON *at = changes->child; at; at = at->next) {
        char *text = cJSON_PrintUnformatted(at);
        assert_int_equal(cs_json_set(changed, at->string, text, "", &error), CS_OK);
        free(text);
    }
    if (cs_scenario_read(changed, "case.json", &scenario, &error) != CS_OK ||
        cs_simulate(&scenario, &(cs_simulation_options){0}, &simulation, &error) != CS_OK)
        fail_msg("%s: %s", row, error.text);
    int64_t peak = 0;
    for (uint32_t d = 0; d < simulation.trace.n_devices; d++)
        if (simulation.trace.devices[d].peak > peak)
            peak = simulation.trace.devices[d].peak;
    const cs_candidate_outcome *outcome = &advice->outcomes[i];
    expect_double(row, cs_time_seconds(simulation.trace.makespan), outcome->step.time);
    expect_int(row, peak, outcome->step.peak);
    expect_int(row, simulation.trace.n_tasks, outcome->step.n_tasks);
    expect_int(row, cs_simulation_out_of_memory(&simulation), outcome->state == CS_CANDIDATE_OVER);
    cs_simulation_finish(&simulation);
    cs_scenario_finish(&scenario);
    cJSON_Delete(changes);
    cJSON_Delete(changed);
}

/* The first three rows, and a part of all else that was simulated. */
static void expect_some_as_run(const char *name, const cs_advice *advice, const cJSON *document)
{
    enum { EACH = 13, FIRST = 3 };
    uint32_t n = 0;
    for (uint32_t r = 0; r < advice->n_rows && r < FIRST; r++)
        expect_same_as_run(name, advice, document, advice->rows[r].candidate);
    for (uint32_t i = 0; i < advice->candidates.n; i++) {
        const cs_candidate_state at = advice->outcomes[i].state;
        const bool simulated = at == CS_CANDIDATE_SIMULATED || at == CS_CANDIDATE_OVER;
        if (simulated && ++n % (EACH * STEP) == 0)
            expect_same_as_run(name, advice, document, i);
    }
}

/* Where time goes adds up to the step; limits are parts of it. Devices that are a tenth slower make
 * a step longer, and by a ninth at most, which is when they only compute. */
static void expect_rows(const char *name, const cs_advice *advice)
{
    for (uint32_t r = 0; r < advice->n_rows; r++) {
        const cs_advice_row *row = &advice->rows[r];
        const cs_limits *limits = &row->limits;
        const double time = advice->outcomes[row->candidate].step.time;
        const double sum = limits->computing + limits->exposed + limits->waiting + limits->update;
        assert_true(row->complete);
        if (fabs(sum - time) > 1e-9 * time)
            fail_msg("%s: %.12g s are %.12g s in parts", name, time, sum);
        for (uint32_t l = 0; l < CS_N_LIMITS; l++)
            if (limits->seconds[l] < 0 || limits->seconds[l] > time)
                fail_msg("%s: %s takes %g s of %g s", name, cs_limit_names[l], limits->seconds[l],
                         time);
        const double slower = row->times[CS_LESS_SPEED], faster = row->times[CS_MORE_SPEED];
        assert_true(slower > time && slower <= time / 0.9 * (1 + 1e-9));
        assert_true(faster < time && faster >= time / 1.1 * (1 - 1e-9));
    }
}

static void test_against_all(void **state)
{
    (void)state;
    uint32_t n_too_large = 0, n_misfits = 0;
    for (size_t c = 0; c < ROWS(cases); c += STEP) {
        cJSON *document = document_of(cases[c].scenario);
        cs_advise_options how = {.jobs = 2, .top = cases[c].top, .program_version = ""};
        cs_advice some = advise(cases[c].name, document, &how);
        how.exhaustive = true;
        cs_advice all = advise(cases[c].name, document, &how);
        compare_searches(cases[c].name, &all, &some);
        assert_null(all.cut);
        assert_true(all.n_rows > 0);
        expect_int(cases[c].name, 0,
                   all.n_states[CS_CANDIDATE_SLOWER] + all.n_states[CS_CANDIDATE_TOO_LARGE]);
        assert_true(some.n_states[CS_CANDIDATE_SLOWER] > 0);
        expect_double(cases[c].name, expected_misfit_time(&all), misfit_time(&some));
        expect_rows(cases[c].name, &some);
        expect_some_as_run(cases[c].name, &some, document);
        n_misfits += misfit_time(&some) > 0;
        n_too_large += some.n_states[CS_CANDIDATE_TOO_LARGE];
        cs_advice_finish(&some);
        cs_advice_finish(&all);
        cJSON_Delete(document);
    }
    assert_true(n_too_large > 0);
    assert_true(n_misfits > 0 || STEP > 1); /* one of the others has some */
}

/* Four stages of two layers, of 3 ms, 7 ms, 40 MB of weights and 30 MB of activations each: f = 6
 * ms, b = 14 ms, k = 60 MB; weights, gradients and two states of Adam are S = 4 * 80 MB, two stages
 * of them on each of the P = 2 ranks. With M = 4 micro-batches a V takes f + 2 M (f + b) at least,
 * and holds 2 S and 2 P k in zb_v, another k in dualpipe_v. */
static void test_vee_bounds(void **state)
{
    static const char chain[] =
        "'schema_version': 1, 'runtime': 'ideal', 'model': {'uniform': {'layers': 8, 'forward': '3 "
        "ms', 'backward': "
        "'7 ms', 'update': '1 ms', 'weights': '40 MB', 'activation': '30 MB'}, 'batch_size': 4, "
        "'optimizer': 'adam'}, 'platform': {'topology': 'ideal', 'devices': 2}, 'schedule': "
        "{'kind': 'sequential'}, 'parallel': {}, 'advise': {'pipeline': 2, 'micro_batch': 1, "
        "'schedules': ['zb_v', 'dualpipe_v']}";
    (void)state;
    cJSON *document = document_of(chain);
    const cs_advise_options how = {.jobs = 1, .top = 2, .exhaustive = true, .program_version = ""};
    cs_advice advice = advise("V", document, &how);
    expect_int("candidates", 2, advice.candidates.n);
    for (uint32_t i = 0; i < advice.candidates.n; i++) {
        const cs_candidate *c = &advice.candidates.items[i];
        const bool dual = strcmp(cs_schedule_names[c->schedule], "dualpipe_v") == 0;
        const char *name = cs_schedule_names[c->schedule];
        const double time = 0.006 + 2 * 4 * 0.020, memory = 640e6 + (dual ? 5 : 4) * 60e6;
        if (fabs(advice.bounds.time[i] / time - 1) > 2e-6 ||
            fabs(advice.bounds.memory[i] / memory - 1) > 2e-6)
            fail_msg("%s: bounds are %.9g s and %.9g bytes, not %.9g and %.9g", name,
                     advice.bounds.time[i], advice.bounds.memory[i], time, memory);
        expect_bounds(name, &advice, i);
    }
    cs_advice_finish(&advice);
    cJSON_Delete(document);
}

static uint32_t below(gsl_rng *random, uint32_t n)
{
    return (uint32_t)gsl_rng_uniform_int(random, n);
}

/* Layers that differ tenfold in times and sizes. */
static void draw_chain(gsl_rng *random, FILE *out)
{
    const uint32_t n = 4 + below(random, 9);
    fputs(
        "'model': {'inline': {'schema_version': 1, 'name': 'drawn', 'batch_size': 0, 'provenance': "
        "{'source': 'drawn', 'hardware': 'none', 'date': '2026-11-23'}, 'layers': [",
        out);
    for (uint32_t l = 0; l < n; l++) {
        const uint32_t forward = 1 + below(random, 10), input = below(random, 10);
        const uint32_t weight = 1 + below(random, 10), weights = below(random, 50);
        const uint32_t output = 1 + below(random, 20), kept = output + below(random, 50);
        fprintf(out,
                "%s{'name': 'l%u', 'forward': '%u ms', 'backward_input': '%u ms', "
                "'backward_weight': '%u ms', 'weights': '%u MB', 'output': '%u MB', 'kept': "
                "'%u MB', 'workspace': '%u MB'}",
                l > 0 ? ", " : "", l, forward, input, weight, weights, output, kept,
                below(random, 10));
    }
    fputs("]}, ", out);
}

static void draw_model(gsl_rng *random, FILE *out)
{
    static const char *const nets[] = {
        "'model': {'name': 'gpt', 'parameters': {'layers': %u, 'hidden': 256, 'heads': 4, "
        "'sequence': 256, 'vocabulary': 8192}, 'precision': 'fp16', ",
        "'model': {'name': 'mixtral', 'parameters': {'layers': %u, 'hidden': 256, 'heads': 4, "
        "'kv_heads': 4, 'expert_intermediate': 512, 'sequence': 256, 'vocabulary': 1024, "
        "'experts': 4}, 'precision': 'bf16', ",
        "'model': {'name': 'llama', 'parameters': {'layers': %u, 'hidden': 256, 'intermediate': "
        "512, 'heads': 4, 'kv_heads': 4, 'sequence': 256, 'vocabulary': 4096}, 'precision': "
        "'fp8', "};
    const uint32_t which = below(random, ROWS(nets) + 1);
    if (which == ROWS(nets)) {
        draw_chain(random, out);
    } else {
        fprintf(out, nets[which], 2 + below(random, 9)); // NOLINT: the table's format
        fputs("'device': 'h100', 'granularity': 'block', ", out);
    }
    fputs("'optimizer': 'adam', 'batch_size': 24}, ", out);
}

/* All devices alike, or one faster than the others; links that are fast, slow, or in nodes. */
static void draw_platform(gsl_rng *random, FILE *out)
{
    static const char *const links[] = {
        "'topology': 'ring', 'bandwidth': '100 GB/s', 'latency': '2 us'",
        "'topology': 'nvlink_switch', 'bandwidth': '2 GB/s', 'latency': '50 us'",
        "'topology': 'dgx1-v100'", "'topology': 'dgx-h100'"};
    const uint32_t link = below(random, ROWS(links));
    const uint32_t devices = (link == 3 ? 8 : 4) << below(random, 2);
    fprintf(out, "'platform': {%s, 'devices': %u", links[link], devices);
    if (below(random, 3) == 0) {
        fputs(", 'speed': [2", out);
        for (uint32_t d = 1; d < devices; d++)
            fputs(", 1", out);
        fputs("]", out);
    }
    if (below(random, 4) == 0)
        fputs(", 'slowdown': {'factor': 1.3}", out);
    fputs("}, ", out);
}

static void draw(gsl_rng *random, FILE *out)
{
    static const char *const collectives[] = {"'analytic'", "'analytic', 'expert_overlap': 0.5",
                                              "'flow'"};
    static const char *const others[] = {"1f1b", "gpipe", "interleaved_1f1b", "zb_h1", "zb_h2"};
    fputs("'schema_version': 1, 'runtime': 'ideal', ", out);
    draw_model(random, out);
    draw_platform(random, out);
    fprintf(out, "'collectives': {'fidelity': %s}, 'schedule': {'kind': 'sequential'}, ",
            collectives[below(random, ROWS(collectives))]);
    fprintf(out, "'parallel': {'accumulate': %s}, ", below(random, 2) > 0 ? "true" : "false");
    fprintf(out,
            "'advise': {'pipeline': [2, 4], 'micro_batch': [1, 2, 3], 'zero': [0, %u], 'context': "
            "[1, 2], 'schedules': ['zb_v', 'dualpipe_v', '%s'], 'inner': '%s'}",
            1 + below(random, 3), others[below(random, ROWS(others))],
            below(random, 2) > 0 ? "data" : "pipeline");
}

/* Whether passes of the plan wait for gathers and scatters, which its bound on time counts. */
static bool counts_exchanges(const cs_advice *advice, uint32_t i)
{
    const cs_candidate *of = &advice->candidates.items[i];
    const cs_priced *priced = &advice->bounds.priced[advice->bounds.of[i]];
    const uint32_t sharded = advice->bounds.sharded_of[i];
    return sharded != CS_NO_CANDIDATE && advice->bounds.sharded[sharded].ranks > 0 &&
           advice->bounds.time[i] >
               cs_bound_time(of, cs_bounds_order(&advice->bounds, i), priced) * (1 + 1e-9);
}

/* No plan of a drawn scenario takes less time or memory than its bounds, and the bounds of a V are
 * not loose: half of them are within a third of the simulated time. Some bounds count gathers and
 * scatters, and half of these are within a tenth. The longest path through the passes of a pipeline
 * lacks sums of gradients, updates and gathers at the end, waits of messages for each other, and
 * slowdowns: without scattered gradients four in five are within a fifth. */
static void test_random_bounds(void **state)
{
    (void)state;
    const uint32_t n_cases = fewer_sanitized(cases_drawn(48));
    gsl_rng *random = cs_random_stream(7, "bounds of plans");
    uint32_t n = 0, n_near = 0, n_sharded = 0, n_close = 0, n_even = 0, n_paths = 0, n_tight = 0;
    for (uint32_t c = 0; c < n_cases; c++) {
        char *text = NULL, name[32], row[320], plan[CS_CANDIDATE_TEXT_BYTES];
        size_t length;
        FILE *out = open_memstream(&text, &length);
        assert_non_null(out);
        draw(random, out);
        assert_int_equal(fclose(out), 0);
        snprintf(name, sizeof(name), "case %u", c);
        cJSON *document = document_of(text);
        const cs_advise_options how = {
            .jobs = 2, .top = 1, .exhaustive = true, .program_version = ""};
        cs_advice advice = advise(name, document, &how);
        for (uint32_t i = 0; i < advice.candidates.n; i++) {
            const cs_candidate *of = &advice.candidates.items[i];
            if (advice.outcomes[i].state == CS_CANDIDATE_IMPOSSIBLE)
                continue;
            snprintf(row, sizeof(row), "%s, %s", name, cs_candidate_text(of, plan, sizeof(plan)));
            expect_bounds(row, &advice, i);
            n_even += advice.bounds.blocks.n > 0;
            const bool path = of->pipeline > 1 && of->zero < 2 && !of->more;
            n_paths += path;
            n_tight += path && advice.bounds.time[i] >= 0.8 * advice.outcomes[i].step.time;
            n += is_vee(of);
            n_near += is_vee(of) && advice.bounds.time[i] >= 0.75 * advice.outcomes[i].step.time;
            const bool counts = counts_exchanges(&advice, i);
            n_sharded += counts;
            n_close += counts && advice.bounds.time[i] >= 0.9 * advice.outcomes[i].step.time;
        }
        cs_advice_finish(&advice);
        cJSON_Delete(document);
        free(text);
    }
    gsl_rng_free(random);
    print_message("%u plans in a V, %u with a near bound; %u that wait for exchanges, %u close; %u "
                  "in even nodes; %u paths, %u tight\n",
                  n, n_near, n_sharded, n_close, n_even, n_paths, n_tight);
    assert_true(n_paths > 20 * n_cases && 5 * n_tight > 4 * n_paths);
    assert_true(n_even > 20 * n_cases);
    assert_true(n_sharded > 2 * n_cases && 2 * n_close > n_sharded);
    assert_true(n > 20 * n_cases && 2 * n_near > n);
}

/* Bit by bit, whatever threads do. */
static void test_threads(void **state)
{
    (void)state;
    cJSON *document = document_of(cases[0].scenario);
    cs_advice first = {0};
    for (uint32_t jobs = 1; jobs <= 4; jobs *= 2) {
        const cs_advise_options how = {.jobs = jobs, .top = 5, .program_version = ""};
        cs_advice advice = advise("threads", document, &how);
        for (uint32_t i = 0; jobs > 1 && i < advice.candidates.n; i++) {
            const cs_candidate_outcome *a = &first.outcomes[i], *b = &advice.outcomes[i];
            expect_int("state", a->state, b->state);
            expect_double("time", a->step.time, b->step.time);
            expect_int("peak", a->step.peak, b->step.peak);
        }
        for (uint32_t r = 0; jobs > 1 && r < advice.n_rows; r++)
            for (uint32_t d = 0; d < CS_N_DOUBTS; d++)
                expect_double("doubt", first.rows[r].times[d], advice.rows[r].times[d]);
        if (jobs == 1)
            first = advice;
        else
            cs_advice_finish(&advice);
    }
    cs_advice_finish(&first);
    cJSON_Delete(document);
}

/* On 4 devices, with all axes given: tensor 1 or 2, pipeline 1 or 2, data 4 / (tensor x pipeline).
 * The batch is 16, a micro-batch 2 or 4. Without a pipeline the schedule is sequential, with one
 * 1f1b:
 *     tensor 1, pipeline 1, data 4: 4 samples each, 2 sizes, zero 0 or 1     4
 *     tensor 1, pipeline 2, data 2: 8 samples, 2 sizes, 2 zeros, 2 orders    8
 *     tensor 2, pipeline 1, data 2: 8 samples, 2 sizes, 2 zeros              4
 *     tensor 2, pipeline 2, data 1: 16 samples, 2 sizes, nothing is shared   2
 * Those that differ in size of micro-batches and order alone are alike: 2 + 2 + 2 + 1 rows. */
static void test_candidates(void **state)
{
    (void)state;
    cJSON *document = document_of(
        GPT "'platform': {'topology': 'ideal', 'devices': 4}, 'advise': {'tensor': [1, 2], "
            "'pipeline': [1, 2], 'context': 1, 'zero': [0, 1], 'micro_batch': [2, 4], "
            "'schedules': ['sequential', '1f1b'], 'recompute': 'none'}");
    cs_advise_options how = {.jobs = 1, .top = 20, .exhaustive = true, .program_version = ""};
    cs_advice advice = advise("candidates", document, &how);
    expect_int("rows", 2 + 2 + 2 + 1, advice.n_rows);
    cs_advice_finish(&advice);
    how.all = true;
    advice = advise("candidates", document, &how);
    expect_int("candidates", 4 + 8 + 4 + 2, advice.candidates.n);
    expect_int("rows", 18, advice.n_rows);
    for (uint32_t i = 0; i < advice.candidates.n; i++) {
        const cs_candidate *c = &advice.candidates.items[i];
        expect_int("devices", 4, c->layer * c->pipeline * c->data);
        expect_int("samples", 16, c->data * c->micro_batches * c->micro_samples);
    }
    cs_advice_finish(&advice);
    cJSON_Delete(document);
}

/* The first candidate that fits the description; CS_NO_CANDIDATE: none. */
static uint32_t find_plan(const cs_advice *advice, uint32_t zero, bool osdp)
{
    for (uint32_t i = 0; i < advice->candidates.n; i++) {
        const cs_candidate *c = &advice->candidates.items[i];
        if (c->zero == zero && (c->more != NULL) == osdp)
            return i;
    }
    return CS_NO_CANDIDATE;
}

/* Eight devices in a ring of messages that share its links, on which a step spends more time than
 * it computes. Per 2-byte weight, data parallelism sends 2 * 7/8 * 2 bytes per step, ZeRO 3 half as
 * much again, and OSDP an amount in between: so it is faster than ZeRO 3, and faster still with
 * more memory. All replicated, weights, gradients and Adam's states take 12 bytes a parameter and
 * more: 168 million of them 2 GB, with activations 3.5 GB. */
static void test_osdp(void **state)
{
    static const char ring[] =
        "'schema_version': 1, 'runtime': 'ideal', 'model': {'name': 'gpt', 'parameters': "
        "{'layers': 12, 'hidden': "
        "1024, "
        "'heads': 16, 'sequence': 512, 'vocabulary': 8192}, 'device': 'v100', 'precision': 'fp16', "
        "'granularity': 'block', 'optimizer': 'adam', 'batch_size': 32}, 'schedule': {'kind': "
        "'sequential'}, 'parallel': {}, 'platform': {'topology': 'ring', 'devices': 8, "
        "'bandwidth': "
        "'10 GB/s', 'latency': '5 us', 'memory': '%s'}, 'collectives': {'fidelity': 'flow'}, "
        "'advise': "
        "{'tensor': 1, 'pipeline': 1, 'recompute': 'none', 'micro_batch': 4, 'zero': [0, 3]}";
    static const char *const memories[] = {"1 GB",   "1.5 GB", "2.3 GB",
                                           "2.8 GB", "16 GB",  "unlimited"};
    (void)state;
    double before = INFINITY;
    for (size_t m = 0; m < ROWS(memories); m++) {
        char text[1024];
        (void)snprintf(text, sizeof(text), ring, memories[m]);
        cJSON *document = document_of(text);
        const cs_advise_options how = {
            .jobs = 2, .top = 3, .exhaustive = true, .program_version = ""};
        cs_advice advice = advise(memories[m], document, &how);
        const uint32_t osdp = find_plan(&advice, 0, true), data = find_plan(&advice, 0, false);
        const uint32_t sharded = find_plan(&advice, 3, false);
        const bool needed = m > 0 && m < 4;
        expect_int(memories[m], needed, osdp != CS_NO_CANDIDATE);
        expect_int(memories[m], m < 4 ? CS_CANDIDATE_OVER : CS_CANDIDATE_SIMULATED,
                   advice.outcomes[data].state);
        expect_int(memories[m], m == 0 ? CS_CANDIDATE_OVER : CS_CANDIDATE_SIMULATED,
                   advice.outcomes[sharded].state);
        if (needed) {
            const double replicated = advice.candidates.items[osdp].replicated;
            const double time = advice.outcomes[osdp].step.time;
            expect_int(memories[m], osdp, advice.rows[0].candidate);
            assert_true(replicated > 0 && replicated < 1);
            assert_true(time < advice.outcomes[sharded].step.time && time < before);
            assert_true(time > advice.outcomes[data].step.time);
            expect_same_as_run(memories[m], &advice, document, osdp);
            before = time;
        }
        cs_advice_finish(&advice);
        cJSON_Delete(document);
    }
}

/* Layers of two nodes with eight GPUs each, or four nodes. */
#define CLUSTER(devices, advise)                                                                   \
    "'schema_version': 1, 'runtime': 'ideal', 'model': {'name': 'llama', 'parameters': "           \
    "{'layers': "                                                                                  \
    "16, 'hidden': 2048, 'heads': 32, 'kv_heads': 8, 'intermediate': 8192, 'sequence': 8192, "     \
    "'vocabulary': 128256}, 'device': 'h100', 'precision': 'bf16', 'granularity': 'block', "       \
    "'optimizer': 'adam', 'batch_size': 64}, 'schedule': {'kind': 'sequential'}, 'parallel': {}, " \
    "'platform': {'topology': 'dgx-h100', 'devices': " devices                                     \
    ", 'memory': '40 GB'}, 'advise': {" advise "}"

static bool has_block(const cs_advice *advice, uint32_t size)
{
    bool found = false;
    for (uint32_t k = 0; k < advice->bounds.blocks.n; k++)
        found |= advice->bounds.blocks.sizes[k] == size;
    return found;
}

/* In a DGX-1 one NVLink joins GPUs 0 and 1, and two join 2 and 3: layers divided over two devices
 * take longer on the one pair than on the other. In a DGX H100 each GPU has links to the switches
 * and an adapter of its own, so that any block is like the first one, two nodes also. There the
 * plans with as many stages have one price, wherever these are. */
static void test_blocks(void **state)
{
    (void)state;
    cJSON *cube = document_of(ADAPTED(LLAMA, "'precision': 'bf16'") NODES("1 GB") "'advise': {}");
    cJSON *cluster = document_of(CLUSTER("32", "'context': [1, 2], 'micro_batch': 1"));
    const cs_advise_options how = {.jobs = 2, .top = 1, .most = 1, .program_version = ""};
    cs_advice advice = advise("cube", cube, &how);
    assert_true(has_block(&advice, 1) && !has_block(&advice, 2));
    cs_advice_finish(&advice);
    advice = advise("cluster", cluster, &how);
    for (uint32_t size = 1; size <= 16; size *= 2)
        assert_true(has_block(&advice, size));
    uint32_t n_like = 0;
    const cs_candidate *items = advice.candidates.items;
    for (uint32_t i = 0; i + 1 < advice.candidates.n; i++) {
        const cs_candidate *a = &items[i], *b = &items[i + 1];
        if (a->inner == b->inner || !cs_candidates_are_alike(a, b) || a->schedule != b->schedule ||
            a->chunks != b->chunks || a->micro_samples != b->micro_samples)
            continue;
        n_like++;
        expect_int("price", advice.bounds.of[i], advice.bounds.of[i + 1]);
    }
    assert_true(n_like > 100);
    cs_advice_finish(&advice);
    cJSON_Delete(cube);
    cJSON_Delete(cluster);
}

/* The rule of thumb finds a good plan before anything is proven: of those that it holds for
 * possible the first one takes at most a tenth longer than the best of all. And a search simulates
 * few plans, and prices few, to know that the others are no answers. */
static void test_effort(void **state)
{
    (void)state;
    cJSON *document =
        document_of(CLUSTER("32", "'recompute': ['none', 'full'], 'micro_batch': [1, 4]"));
    const cs_advise_options how = {.jobs = 2, .top = 5, .program_version = ""};
    cs_advice advice = advise("effort", document, &how);
    const cs_bounds *bounds = &advice.bounds;
    uint32_t promising = CS_NO_CANDIDATE, n_known = 0;
    for (uint32_t i = 0; i < advice.candidates.n; i++)
        if (bounds->promises[i].time > 0 && bounds->promises[i].memory < 0.8 * 40e9 &&
            (promising == CS_NO_CANDIDATE ||
             bounds->promises[i].time < bounds->promises[promising].time))
            promising = i;
    for (uint32_t i = 0; i < bounds->prices.n; i++)
        n_known += bounds->priced[i].known;
    const cs_candidate_outcome *first = &advice.outcomes[promising];
    const uint32_t n_simulated =
        advice.n_states[CS_CANDIDATE_SIMULATED] + advice.n_states[CS_CANDIDATE_OVER];
    print_message("%u plans, %u prices: %u simulated, %u priced; promised %g s, %g s, best %g s\n",
                  advice.candidates.n, bounds->prices.n, n_simulated, n_known,
                  bounds->promises[promising].time, first->step.time,
                  advice.outcomes[advice.rows[0].candidate].step.time);
    expect_int("promising", CS_CANDIDATE_SIMULATED, first->state);
    assert_true(first->step.time < 1.1 * advice.outcomes[advice.rows[0].candidate].step.time);
    assert_true(10 * n_simulated < advice.candidates.n);
    assert_true(15 * n_known < advice.candidates.n);
    cs_advice_finish(&advice);
    cJSON_Delete(document);
}

typedef struct shown {
    double part;
    uint32_t n;
    bool ended;
} shown;

static bool note_progress(void *context, const char *what, uint64_t done, uint64_t total)
{
    shown *so_far = context;
    const double part = (double)done / (double)total;
    if (strcmp(what, "searching plans") != 0)
        return true;
    if (part < so_far->part || so_far->ended)
        fail_msg("progress from %g to %g", so_far->part, part);
    so_far->part = part;
    so_far->ended = done >= total;
    so_far->n++;
    return true;
}

/* Progress never runs backwards and ends once, also where OSDP adds plans at the end, and with
 * plans simulated although they do not fit. */
static void test_progress(void **state)
{
    (void)state;
    for (size_t c = 0; c < 2; c++) {
        cJSON *document = document_of(cases[c].scenario);
        shown so_far = {0};
        const cs_progress progress = {note_progress, &so_far};
        const cs_advise_options how = {
            .jobs = 2, .top = 5, .program_version = "", .progress = &progress};
        cs_advice advice = advise(cases[c].name, document, &how);
        assert_true(so_far.ended && so_far.n > 2);
        cs_advice_finish(&advice);
        cJSON_Delete(document);
    }
}

/* A limited search simulates the most promising plans, and says so. */
static void test_most(void **state)
{
    (void)state;
    cJSON *document = document_of(cases[0].scenario);
    const cs_advise_options how = {.jobs = 2, .top = 5, .most = 70, .program_version = ""};
    cs_advice advice = advise("most", document, &how);
    expect_int("simulated", 70,
               advice.n_states[CS_CANDIDATE_SIMULATED] + advice.n_states[CS_CANDIDATE_OVER] +
                   advice.n_states[CS_CANDIDATE_IMPOSSIBLE]);
    assert_non_null(advice.cut);
    double latest = 0, first_open = INFINITY;
    for (uint32_t i = 0; i < advice.candidates.n; i++) {
        const double bound = advice.bounds.time[i];
        if (advice.outcomes[i].state == CS_CANDIDATE_SIMULATED && bound > latest)
            latest = bound;
        if (advice.outcomes[i].state == CS_CANDIDATE_OPEN && bound < first_open)
            first_open = bound;
    }
    assert_true(latest <= first_open);
    cs_advice_finish(&advice);
    cJSON_Delete(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_candidates),    cmocka_unit_test(test_against_all),
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_osdp),
        cmocka_unit_test(test_most),          cmocka_unit_test(test_vee_bounds),
        cmocka_unit_test(test_random_bounds), cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_effort),        cmocka_unit_test(test_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
