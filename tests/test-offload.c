/* Activations that wait in the memory of the host: times and memory of uniform layers in closed
 * form, bytes of operators counted by hand, and what is refused.
 *
 * A stage of L equal layers keeps `a` bytes of each, computes a layer's forward in f and its
 * backward in b, and copies one in c. The first N are offloaded, as TransformerEngine does it:
 * with p = L - 1 - N, layer j waits for the copy of layer j - p - 1, and the copy back of layer i
 * begins with the backward of layer i + p.
 *   c <= f, c <= b, p >= 1  every copy is hidden: L (f + b)
 *   c > f, c > b, p >= 1    copies follow one another from the end of layer 0 to f + N c, before
 *                           the last layer begins: max(L f, f + N c + f); and from the second
 *                           backward on: max(L b, b + N c + b)
 *   p = 0                   each copy is waited for: L (f + b) + 2 N c
 * At most L - N layers are on the device, as the source of TransformerEngine says. That many are
 * when the forward ends; N are on the host. */
#include "tests/expect.h"
#include "tests/run-scenario.h"

static const int64_t ms = 1000000000;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#define UNIFORM                                                                                    \
    "'model': {'uniform': {'layers': %d, 'forward': '10 ms', 'backward': '20 ms',"                 \
    " 'weights': '0 B', 'activation': '100 MB', 'workspace': '0 B'}},"

static void init(const char *row, scenario_run *run, cs_status status, const cs_error *error)
{
    if (status != CS_OK)
        fail_msg("%s: %s", row, error->text);
    cs_error none;
    cs_error_init(&none);
    expect_error(row, CS_OK, "", cs_graph_check(&run->simulation.graph, &none), &none);
}

/* ---- one stage ---- */

static int64_t makespan(int64_t L, int64_t N, int64_t c)
{
    const int64_t f = 10 * ms, b = 20 * ms;
    if (N == L - 1)
        return L * (f + b) + 2 * N * c;
    if (c <= f)
        return L * (f + b);
    return larger(L * f, 2 * f + N * c) + larger(L * b, 2 * b + N * c);
}

static void one_stage(void **state)
{
    /* 100 MB at 100 / c MB/ms; c in ms */
    static const struct {
        const char *row;
        int layers, offloaded;
        double gbps;
        int64_t c;
    } rows[] = {
        {"hidden", 8, 4, 20, 5},
        {"as long as the forward", 8, 4, 10, 10},
        {"slower than both", 8, 4, 2, 50},
        {"slower, and hidden by layers that stay", 12, 2, 4, 25},
        {"slower, all but two", 6, 4, 1, 100},
        {"all but one, fast", 8, 7, 100, 1},
        {"all but one, slow", 8, 7, 2, 50},
        {"one of two", 2, 1, 20, 5},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        const int L = rows[i].layers, N = rows[i].offloaded;
        const int64_t a = 100000000, c = rows[i].c * ms, time = makespan(L, N, c);
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        init(rows[i].row, &run,
             scenario_run_init(&run, &error,
                               "{'schema_version': 1, " UNIFORM
                               " 'platform': {'topology': 'ideal', 'devices': 1},"
                               " 'parallel': {'data': 1},"
                               " 'offload': {'layers': %d, 'bandwidth': '%g GB/s'},"
                               " 'schedule': {'kind': 'sequential', 'micro_batches': 1}}",
                               L, N, rows[i].gbps),
             &error);
        const cs_simulation *made = &run.simulation;
        expect_int(rows[i].row, time, made->trace.makespan);
        expect_int(rows[i].row, (L - N) * a, made->trace.devices[0].peak);
        expect_int(rows[i].row, N * a, made->host_peaks[0]);
        expect_int(rows[i].row, 2 * N * a, (int64_t)made->lowering.moved[CS_PURPOSE_HOST]);
        expect_int(rows[i].row, time - L * 30 * ms,
                   made->analysis.devices[0].exposed[CS_PURPOSE_HOST]);
        scenario_run_finish(&run);
    }
}

/* One layer ahead, 7 of 8 layers: layer 6 begins to come back with the backward of layer 7. Copies
 * of 5 ms are hidden. Of 30 ms, those to the host end at 10 + 7 * 30 = 220 ms: in the forward
 * nothing waits for them, but the first copy back does. The seven of these end at 430 ms, before
 * the last backward of 20 ms. */
static void ahead(void **state)
{
    static const struct {
        const char *row, *bandwidth;
        int64_t time;
    } rows[] = {{"hidden", "20 GB/s", 240}, {"slow", "3.3333333333333333 GB/s", 450}};
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        init(rows[i].row, &run,
             scenario_run_init(&run, &error,
                               "{'schema_version': 1, " UNIFORM
                               " 'platform': {'topology': 'ideal', 'devices': 1},"
                               " 'parallel': {'data': 1},"
                               " 'offload': {'prefetch': 1, 'in_flight': 8, 'bandwidth': '%s'},"
                               " 'schedule': {'kind': 'sequential', 'micro_batches': 1}}",
                               8, rows[i].bandwidth),
             &error);
        expect_int(rows[i].row, rows[i].time * ms, run.simulation.trace.makespan);
        expect_int(rows[i].row, 700000000, run.simulation.host_peaks[0]);
        scenario_run_finish(&run);
    }
}

/* ---- pipelines ---- */

/* Bytes that copies to the host free, and those back take, of all devices. */
static void count_copies(const cs_graph *graph, int64_t *out, int64_t *back)
{
    *out = *back = 0;
    for (uint32_t t = 0; t < graph->n_tasks; t++) {
        const cs_class *cls = cs_graph_class(graph, t);
        if (cls->purpose != CS_PURPOSE_HOST)
            continue;
        const cs_effect *effect = &graph->effects[cls->first_effect];
        expect_int("one effect", 1, cls->n_effects);
        expect_int("all bytes", cls->bytes, effect->bytes < 0 ? -effect->bytes : effect->bytes);
        *(effect->bytes < 0 ? out : back) += cls->bytes;
    }
}

/* A device has a copy at a time in each direction. */
static void check_lanes(const char *row, const cs_simulation *made)
{
    for (uint32_t d = 0; d < made->graph.n_devices; d++) {
        for (int back = 0; back < 2; back++) {
            cs_time free = 0;
            for (uint32_t t = 0; t < made->graph.n_tasks; t++) {
                const cs_class *cls = cs_graph_class(&made->graph, t);
                if (cls->purpose != CS_PURPOSE_HOST || cls->device != d ||
                    (made->graph.effects[cls->first_effect].bytes > 0) != back)
                    continue;
                if (made->trace.spans[t].start < free)
                    fail_msg("%s: device %u copies twice at once", row, d);
                free = made->trace.spans[t].end;
            }
        }
    }
}

/* Two stages of 4 layers, 2 or 3 of them offloaded, and 4 micro-batches: everything copied out is
 * copied back, for every micro-batch. Copies of 2 ms are overlapped, so the time is the same as
 * without. With 1F1B the first stage has two micro-batches between forward and backward; with GPipe
 * all four. */
static void pipelines(void **state)
{
    static const struct {
        const char *schedule;
        int64_t micro_batches_held;
    } rows[] = {{"1f1b", 2}, {"gpipe", 4}, {"zb_h1", 2}};
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        const int64_t a = 100000000;
        int64_t time = 0, out, back;
        for (int with = 0; with < 2; with++) {
            scenario_run run;
            cs_error error;
            cs_error_init(&error);
            init(rows[i].schedule, &run,
                 scenario_run_init(&run, &error,
                                   "{'schema_version': 1, " UNIFORM
                                   " 'platform': {'topology': 'ideal', 'devices': 2}, %s"
                                   " 'parallel': {'pipeline': 2},"
                                   " 'schedule': {'kind': '%s', 'micro_batches': 4}}",
                                   8,
                                   with ? "'offload': {'layers': 2, 'bandwidth': '50 GB/s'}," : "",
                                   rows[i].schedule),
                 &error);
            const cs_simulation *made = &run.simulation;
            count_copies(&made->graph, &out, &back);
            expect_int(rows[i].schedule, with * 2 * 2 * 4 * a, out);
            expect_int(rows[i].schedule, out, back);
            expect_int(rows[i].schedule, with ? time : made->trace.makespan, made->trace.makespan);
            time = made->trace.makespan;
            if (with)
                expect_int(rows[i].schedule, 2 * rows[i].micro_batches_held * a,
                           made->host_peaks[0]);
            check_lanes(rows[i].schedule, made);
            scenario_run_finish(&run);
        }
    }
}

/* ---- networks ---- */

#define GPT                                                                                        \
    "'model': {'name': 'gpt', 'parameters': {'layers': 4, 'hidden': 256, 'heads': 4, 'sequence': " \
    "128, 'dropout': 0}, 'device': 'h100', 'precision': 'bf16', 'granularity': 'block',"           \
    " 'batch_size': 2},"

/* Bytes of the host that a block of GPT-2 takes, of 2 samples of 128 tokens and 256 features in 2
 * bytes: its GELU keeps what it reads, four times as many features; its second matrix what the GELU
 * made. Of 4 blocks 3 are offloaded. */
static void operators(void **state)
{
    static const int64_t tokens = (int64_t)2 * 128 * 256 * 2;
    static const struct {
        const char *operators, *smallest;
        int64_t features; /* bytes of a block per token */
    } rows[] = {{"'mlp.act'", "0", 4},
                {"'act', 'mlp.c_proj'", "0", 8},
                {"'mlp.c_proj'", "262144", 4},
                {"'mlp.c_proj', 'attention'", "262144", 4}};
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        init(rows[i].operators, &run,
             scenario_run_init(&run, &error,
                               "{'schema_version': 1, " GPT
                               " 'platform': {'topology': 'ideal', 'devices': 1},"
                               " 'parallel': {'data': 1},"
                               " 'offload': {'operators': [%s], 'smallest': %s,"
                               " 'bandwidth': '50 GB/s'},"
                               " 'schedule': {'kind': 'sequential', 'micro_batches': 1}}",
                               rows[i].operators, rows[i].smallest),
             &error);
        expect_int(rows[i].operators, 2 * 3 * rows[i].features * tokens,
                   (int64_t)run.simulation.lowering.moved[CS_PURPOSE_HOST]);
        scenario_run_finish(&run);
    }
}

static int64_t activations(const scenario_run *run)
{
    return run->simulation.trace.devices[0].category_peak[CS_MEMORY_ACTIVATIONS];
}

/* A whole scenario, with its model. */
static cs_status run_again(const char *text, scenario_run *run, cs_error *error)
{
    const cs_simulation_options usual = {0};
    cJSON *root;
    CS_TRY(cs_json_parse("again", text, strlen(text), &root, error));
    cs_status status = cs_scenario_read(root, "again", &run->scenario, error);
    cJSON_Delete(root);
    return status == CS_OK ? cs_simulate(&run->scenario, &usual, &run->simulation, error) : status;
}

/* Only small tensors of an offloaded block stay: mean and deviation of 256 rows in float32, for
 * two norms. So do the embedding's 256 ids of 8 bytes. The allocator frees the rest. A resolved
 * scenario describes the run. */
static void resolved(void **state)
{
    static const char text[] = "{'schema_version': 1, 'runtime': 'ideal', " GPT
                               " 'platform': {'topology': 'ideal', 'devices': 1},"
                               " 'parallel': {'data': 1}, 'memory': {'allocator': 'pytorch'}, %s"
                               " 'schedule': {'kind': 'sequential', 'micro_batches': 1}}";
    scenario_run with, without, again;
    cs_error error;
    (void)state;
    cs_error_init(&error);
    init("without", &without, scenario_run_init(&without, &error, text, ""), &error);
    init("with", &with,
         scenario_run_init(&with, &error, text, "'offload': {'layers': 3, 'smallest': 2048},"),
         &error);
    init("again", &again, run_again(with.scenario.resolved, &again, &error), &error);
    const int64_t goes = without.scenario.model->layers[1].kept_bytes - 2 * 256 * 2 * 4;
    expect_int("moved", 2 * 3 * goes, (int64_t)with.simulation.lowering.moved[CS_PURPOSE_HOST]);
    expect_int("less", activations(&without) - 3 * goes, activations(&with));
    const cs_caching_stats *all = &without.simulation.allocations.devices[0].stats;
    const cs_caching_stats *less = &with.simulation.allocations.devices[0].stats;
    if (less->peak_allocated > all->peak_allocated - 2 * goes)
        fail_msg("allocated %" PRId64 ", without %" PRId64, less->peak_allocated,
                 all->peak_allocated);
    expect_bits("resolved", with.simulation.hash, again.simulation.hash);
    expect_text("resolved", with.scenario.resolved, again.scenario.resolved);
    scenario_run_finish(&with);
    scenario_run_finish(&without);
    scenario_run_finish(&again);
}

/* ---- what is refused ---- */

static void refusals(void **state)
{
    static const struct {
        const char *offload, *parallel, *schedule, *message;
    } rows[] = {
        {"{'layers': 8, 'bandwidth': '1 GB/s'}", "'parallel': {'data': 1},", "",
         "/offload/layers: must be less than 8, the layers of stage 0 that keep something to "
         "offload (got 8)"},
        {"{'bandwidth': '1 GB/s'}", "'parallel': {'pipeline': 8},", "",
         "/offload: no stage has two layers that keep something to offload"},
        {"{'bandwidth': '1 GB/s'}", "", "",
         "/offload: needs the section \"parallel\"; use /parallel={\"data\": 1}"},
        {"{}", "'parallel': {'data': 1},", "",
         "/offload: missing key \"bandwidth\": the model has no device that could supply it"},
        {"{'operators': ['mlp'], 'bandwidth': '1 GB/s'}", "'parallel': {'data': 1},", "",
         "/offload/operators: must be left out: only a named model has operators"},
        {"{'bandwidth': '1 GB/s'}", "'parallel': {'data': 1},", ", 'recompute': true",
         "/offload: cannot be combined with recomputation of whole layers or stages, which save "
         "only their inputs"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        const cs_status status = scenario_run_init(
            &run, &error,
            "{'schema_version': 1, " UNIFORM " 'platform': {'topology': 'ideal', 'devices': %d}, %s"
            " 'offload': %s,"
            " 'schedule': {'kind': '1f1b', 'micro_batches': 1%s}}",
            8, strstr(rows[i].parallel, "pipeline") ? 8 : 1, rows[i].parallel, rows[i].offload,
            rows[i].schedule);
        expect_int(rows[i].message, CS_INVALID, status);
        if (!strstr(error.text, rows[i].message))
            fail_msg("expected: %s\n     got: %s", rows[i].message, error.text);
    }
}

static void unknown_names(void **state)
{
    static const struct {
        const char *device, *recomputed, *operators, *message;
    } rows[] = {{"h100", "", "'gellu'",
                 ": /offload/operators/0: gpt has no operator \"gellu\"; its first is \""},
                {"h100", "'act', 'gellu'", "'act'",
                 ": /model/recompute_operators/1: gpt has no operator \"gellu\"; its first is \""},
                {"h100", "'mlp'], 'discard_operators': ['act', 'attention'", "'act'",
                 ": /model/discard_operators/1: gpt has no recomputed operator \"attention\" whose "
                 "result could be discarded (see /model/recompute_operators)"},
                {"t4", "", "'act'",
                 "/offload: missing key \"bandwidth\": the description of the device has no "
                 "\"host_link\""}};
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        const cs_status status = scenario_run_init(
            &run, &error,
            "{'schema_version': 1, 'runtime': 'ideal', 'model': {'name': 'gpt', 'device': '%s', "
            "'precision': 'fp16',"
            " 'batch_size': 1, 'recompute_operators': [%s]},"
            " 'platform': {'topology': 'ideal', 'devices': 1}, 'parallel': {'data': 1},"
            " 'offload': {'operators': [%s]},"
            " 'schedule': {'kind': 'sequential', 'micro_batches': 1}}",
            rows[i].device, rows[i].recomputed, rows[i].operators);
        expect_int(rows[i].message, CS_INVALID, status);
        if (!strstr(error.text, rows[i].message))
            fail_msg("expected: %s\n     got: %s", rows[i].message, error.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stage),     cmocka_unit_test(ahead),    cmocka_unit_test(pipelines),
        cmocka_unit_test(operators),     cmocka_unit_test(resolved), cmocka_unit_test(refusals),
        cmocka_unit_test(unknown_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
