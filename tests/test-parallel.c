/* The section "parallel": inferred sizes, incompatible settings, and devices that are simulated on
 * behalf of others. */
#include "sim/run/figures.h"
#include "sim/run/scenario/scenario.h"
#include "tests/expect.h"
#include "tests/run-scenario.h"

enum { SETS = 5 }; /* the last is none */

/* 16 layers on two nodes of eight. */
static const char base[] =
    "{\"schema_version\": 1, \"model\": {\"uniform\": {\"layers\": 16, \"forward\": \"1 ms\","
    " \"backward\": \"2 ms\", \"weights\": \"1 MB\", \"activation\": \"1 MB\"}},"
    " \"platform\": {\"topology\": \"dgx-h100\", \"devices\": 16},"
    " \"schedule\": {\"kind\": \"1f1b\", \"micro_batches\": 8}, \"parallel\": {}}";

static const char sequential[] = "{\"kind\": \"sequential\", \"micro_batches\": 8}";
static const char interleaved[] =
    "{\"kind\": \"interleaved_1f1b\", \"micro_batches\": 8, \"stages_per_device\": 2}";

static const char gpt[] =
    "{\"name\": \"gpt\", \"parameters\": {\"layers\": 4}, \"device\": \"h100\","
    " \"precision\": \"bf16\", \"batch_size\": 128}";

static const char mixtral[] = "{\"name\": \"mixtral\", \"parameters\": {\"layers\": 1}, \"device\":"
                              " \"h100\", \"batch_size\": 128}";

/* `sets` ends with a pointer of NULL. */
static cs_status read_with(const cs_override *sets, cs_scenario *scenario, cs_error *error)
{
    cJSON *root;
    cs_error_init(error);
    cs_status status = cs_json_parse("s.json", base, strlen(base), &root, error);
    assert_int_equal(status, CS_OK);
    for (uint32_t i = 0; sets[i].pointer && status == CS_OK; i++)
        status = cs_json_set(root, sets[i].pointer, sets[i].value, "--set", error);
    assert_int_equal(status, CS_OK);
    status = cs_scenario_read(root, "s.json", scenario, error);
    cJSON_Delete(root);
    return status;
}

/* ---- sizes ---- */

static const struct {
    const char *name;
    cs_override sets[SETS];
    uint32_t n_devices, n_ranks, data, shard, micro_samples, n_stages;
} sizes[] = {
    /* a pipeline takes all devices where nobody says more, as without the section */
    {"nothing", {{0}}, 16, 16, 1, 1, 1, 16},
    {"pipeline", {{"/parallel/pipeline", "4"}}, 16, 4, 4, 1, 1, 4},
    {"data", {{"/parallel/data", "2"}}, 16, 8, 2, 1, 1, 8},
    {"both", {{"/parallel/data", "2"}, {"/parallel/pipeline", "8"}}, 16, 8, 2, 1, 1, 8},
    /* one stage: the devices are all data parallel, and ZeRO divides among all of them */
    {"one stage", {{"/schedule", sequential}, {"/parallel/zero", "3"}}, 16, 1, 16, 16, 1, 1},
    {"groups of 4",
     {{"/schedule", sequential}, {"/parallel/zero", "3"}, {"/parallel/shard", "4"}},
     16,
     1,
     16,
     4,
     1,
     1},
    /* two stages on each of 4 ranks */
    {"interleaved", {{"/schedule", interleaved}, {"/parallel/data", "4"}}, 16, 4, 4, 1, 1, 8},
    /* a platform without a number: the product of the sizes; a pipeline of one layer per rank */
    {"product",
     {{"/platform", "ideal"}, {"/parallel/data", "3"}, {"/parallel/pipeline", "2"}},
     6,
     2,
     3,
     1,
     1,
     2},
    {"layers", {{"/platform", "ideal"}, {"/parallel/data", "2"}}, 32, 16, 2, 1, 1, 16},
    /* 192 samples: 192 / (4 x 8) = 6 in a micro-batch */
    {"samples", {{"/parallel/data", "4"}, {"/model/batch_size", "192"}}, 16, 4, 4, 1, 6, 4},
};

static void test_sizes(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS(sizes); r++) {
        cs_scenario scenario;
        cs_error error;
        if (read_with(sizes[r].sets, &scenario, &error) != CS_OK)
            fail_msg("%s: %s", sizes[r].name, error.text);
        const cs_job *job = &scenario.job;
        assert_non_null(job->plan->grid);
        expect_int(sizes[r].name, sizes[r].n_devices, job->n_devices);
        expect_int(sizes[r].name, sizes[r].n_ranks, scenario.parallel->n_ranks);
        expect_int(sizes[r].name, sizes[r].data, job->plan->grid->data);
        expect_int(sizes[r].name, sizes[r].shard, job->plan->grid->shard);
        expect_int(sizes[r].name, sizes[r].micro_samples, job->micro_samples);
        expect_int(sizes[r].name, sizes[r].n_stages, job->plan->n_stages);
        for (uint32_t s = 0; s < job->plan->n_stages; s++)
            expect_int(sizes[r].name, sizes[r].data, job->plan->stages[s].n_devices);
        cs_scenario_finish(&scenario);
    }
}

/* ---- what is refused ---- */

static const struct {
    const char *name;
    cs_override sets[SETS];
    const char *message;
} wrong[] = {
    /* 3 lies between the divisors 2 and 4 of 16, and 16 between the multiples 15 and 18 of 3 */
    {"no divisor",
     {{"/parallel/pipeline", "3"}},
     "s.json: /parallel: pipeline 3 needs a multiple of 3 devices, and the platform has 16; use "
     "/parallel/pipeline=2 or 4, or /platform/devices=15 or 18"},
    {"larger than the platform",
     {{"/parallel/pipeline", "4"}, {"/parallel/data", "8"}},
     "s.json: /parallel/data: needs 32 devices with pipeline 4, and the platform has 16 (got 8); "
     "use "
     "4, or /platform/devices=32"},
    {"larger by one axis",
     {{"/parallel/pipeline", "32"}},
     "s.json: /parallel: pipeline 32 needs a multiple of 32 devices, and the platform has 16; "
     "use /parallel/pipeline=16"},
    /* 12 devices; with pipeline 4, 16 / 4 = 4 has the divisors 2 and 4 around 3; data 3 divides no
     * 16 */
    {"product of two",
     {{"/parallel/pipeline", "4"}, {"/parallel/data", "3"}, {"/parallel/tensor", "2"}},
     "s.json: /parallel/data: needs 24 devices with tensor 2 x pipeline 4, and the platform has 16 "
     "(got 3)"},
    {"samples",
     {{"/parallel/data", "4"}, {"/model/batch_size", "100"}},
     "s.json: /model/batch_size: must be a multiple of 32, 8 micro-batches on each of 4 "
     "data-parallel "
     "ranks (got 100); use 96 or 128, or /schedule/micro_batches=5 or 25"},
    {"too few samples",
     {{"/parallel/data", "4"}, {"/model/batch_size", "8"}},
     "s.json: /model/batch_size: must be a multiple of 32, 8 micro-batches on each of 4 "
     "data-parallel "
     "ranks (got 8); use 32, or /schedule/micro_batches=2"},
    /* the proposed size also divides the 16 devices */
    {"more ranks than layers",
     {{"/model/uniform/layers", "6"}, {"/parallel/pipeline", "8"}},
     "s.json: /parallel/pipeline: gives the schedule \"1f1b\" 8 stages, more than the 6 layers of "
     "\"uniform\" (got 8); use 4"},
    /* 7 layers are 3 ranks of two stages, and one over */
    {"more stages than layers",
     {{"/schedule", interleaved}, {"/model/uniform/layers", "7"}, {"/parallel/pipeline", "4"}},
     "s.json: /parallel/pipeline: gives the schedule \"interleaved_1f1b\" 8 stages, more than the "
     "7 "
     "layers of \"uniform\" (got 4); use 2"},
    {"no operators",
     {{"/parallel/tensor", "2"}},
     "s.json: /parallel/tensor: must be 1: this model has no operators, so only samples (\"data\") "
     "and states (\"zero\") can be split (got 2); models with /model/name have operators, which "
     "may be a model file with the keys \"inputs\" and \"operators\""},
    {"two ways to divide a layer",
     {{"/parallel/tensor", "2"}, {"/parallel/filter", "4"}},
     "s.json: /parallel/filter: must be 1 with \"tensor\" (got 4)"},
    {"experts",
     {{"/parallel/pipeline", "2"}, {"/parallel/expert", "3"}},
     "s.json: /parallel/expert: must divide the 8 devices of a stage (got 3); use 1"},
    {"shards",
     {{"/parallel/pipeline", "2"}, {"/parallel/zero", "1"}, {"/parallel/shard", "16"}},
     "s.json: /parallel/shard: must divide the 8 data x context x space ranks of a stage (got "
     "16); use 8"},
    {"order without an axis",
     {{"/parallel/order", "[\"data\"]"}},
     "s.json: /parallel/order: must list \"pipeline\" as well, of size 16"},
    {"order with an axis twice",
     {{"/parallel/order", "[\"data\", \"data\"]"}},
     "s.json: /parallel/order/1: must list each axis once (has \"data\" before)"},
    {"ranks",
     {{"/platform", "ideal"}, {"/parallel/pipeline", "3"}, {"/parallel/ranks", "[2, 0, 2]"}},
     "s.json: /parallel/ranks/2: must be a device below 3 that is not listed before (got 2)"},
    {"too few ranks",
     {{"/parallel/ranks", "[2]"}},
     "s.json: /parallel/ranks: must list each of 16 devices once (got 1)"},
    {"replicas built in",
     {{"/schedule", "{\"kind\": \"dp\"}"}},
     "s.json: /parallel: cannot be combined with the schedule \"dp\", which is data parallelism "
     "by itself and takes \"fold\" alone; use /schedule={\"kind\": \"sequential\", "
     "\"micro_batches\": 1} or {\"kind\": \"1f1b\", \"micro_batches\": 1}"},
    {"a worker of its own",
     {{"/schedule", "{\"kind\": \"nf1b\", \"micro_batches\": 2}"}},
     "s.json: /parallel: cannot be combined with the schedule \"nf1b\", which has one device per "
     "worker, whose backward takes a mini-batch at once; use /schedule={\"kind\": \"sequential\", "
     "\"micro_batches\": 2} or {\"kind\": \"1f1b\", \"micro_batches\": 2}"},
    {"weights of before",
     {{"/schedule", "{\"kind\": \"pipedream\"}"}, {"/parallel/zero", "3"}},
     "s.json: /parallel/zero: must be at most 2 for the schedule \"pipedream\", whose backwards "
     "use older "
     "weights, which cannot be gathered again (got 3); use 2, or "
     "/schedule={\"kind\": \"sequential\", \"micro_batches\": 1} or {\"kind\": \"1f1b\", "
     "\"micro_batches\": 1}"},
    {"stages on one device",
     {{"/schedule", sequential}, {"/parallel/pipeline", "2"}},
     "s.json: /parallel/pipeline: must be 1 for the schedule \"sequential\" (got 2)"},
    {"a planner",
     {{"/schedule/partition", "pipedream"}, {"/parallel/data", "2"}},
     "s.json: /schedule/partition: must be \"balanced\", a list of layers or a plan with the "
     "section \"parallel\": the planner \"pipedream\" chooses the devices of stages itself"},
    /* the divisors of 12 heads closest to 8 are 6 and 12, but only 4 also divides the 16 devices;
     * Mixtral has 8 experts */
    {"heads",
     {{"/model", gpt}, {"/schedule", sequential}, {"/parallel/tensor", "8"}},
     "s.json: /parallel/tensor: must divide the 12 heads of h.0.attn.attention (got 8); use 4"},
    {"experts of a model",
     {{"/model", mixtral}, {"/schedule", sequential}, {"/parallel/expert", "16"}},
     "s.json: /parallel/expert: must divide the 8 experts of layers.0.mlp.dispatch (got 16); use "
     "8"},
    {"too many devices",
     {{"/platform", "ideal"}, {"/parallel/data", "1048576"}, {"/parallel/pipeline", "2"}},
     "s.json: /parallel: pipeline 2 x data 1048576 are more than 1048576 devices"},
};

static void test_wrong(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS(wrong); r++) {
        cs_scenario scenario = {0};
        cs_error error;
        const cs_status status = read_with(wrong[r].sets, &scenario, &error);
        expect_error(wrong[r].name, CS_INVALID, wrong[r].message, status, &error);
    }
}

/* ---- fold ---- */

/* Pipeline 4 and data 4 on two nodes of eight: rank r has devices 4 r to 4 r + 3. */
static const struct {
    const char *name;
    cs_override sets[SETS];
    const char *reason; /* NULL: folds */
} folds[] = {
    {"alike", {{0}}, NULL},
    {"no links", {{"/platform", "ideal"}, {"/parallel/data", "4"}}, NULL},
    {"a faster device",
     {{"/platform/speed", "[1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"}},
     "devices 4 and 5 differ in speed or memory"},
    {"more memory taken",
     {{"/memory", "{\"resident\": [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]}"}},
     "devices 8 and 9 differ in their /memory/resident"},
    {"noise",
     {{"/platform/jitter", "{\"mean\": 0.1}"}},
     "noise (\"jitter\", \"stragglers\" or \"background\") makes them differ"},
    {"flows",
     {{"/collectives", "{\"fidelity\": \"flow\"}"}},
     "collectives are simulated message by message (\"fidelity\": \"flow\")"},
    /* on a ring, whose links carry one message at a time, 0 to 4 and 1 to 5 both use 1 to 2; with
     * fair shares, 1 to 5 shares 4 to 5 with 4 to 8, of other ranks */
    {"shared links",
     {{"/platform",
       "{\"topology\": \"ring\", \"devices\": 16, \"latency\": 0, \"bandwidth\": \"1 GB/s\"}"}},
     "messages between stages of several places meet on the link \"gpu1 to gpu2\""},
    {"shared fairly",
     {{"/platform",
       "{\"topology\": \"ring\", \"devices\": 16, \"latency\": 0, \"bandwidth\": \"1 GB/s\","
       " \"sharing\": \"max_min\"}"}},
     "messages between stages of several places meet on the link \"gpu4 to gpu5\""},
    /* place 0 is the first of rank 0, and not of rank 1 */
    {"other orders",
     {{"/parallel/ranks", "[0, 1, 2, 3, 5, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]"}},
     "\"ranks\" lists the places of pipeline ranks 0 and 1 in different orders"},
    /* place 3 of rank 0 and place 0 of rank 2 exchanged: 5 to 9 crosses nodes, 4 to 3 does not */
    {"another way",
     {{"/parallel/ranks", "[0, 1, 2, 8, 4, 5, 6, 7, 3, 9, 10, 11, 12, 13, 14, 15]"}},
     "messages between stages take different routes at places 1 and 0"},
};

static void expect_fold(const char *name, const cs_scenario *scenario)
{
    for (uint32_t d = 0; d < 16; d++)
        expect_int(name, d / 4 * 4, scenario->job.stands_for[d]);
}

static void test_folds(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS(folds); r++) {
        cs_override sets[SETS] = {{"/parallel/pipeline", "4"}, {"/parallel/fold", "yes"}};
        char message[512];
        cs_scenario scenario;
        cs_error error;
        sets[2] = folds[r].sets[0];
        sets[3] = folds[r].sets[1];
        const cs_status status = read_with(sets, &scenario, &error);
        snprintf(
            message, sizeof(message),
            "s.json: /parallel/fold: must be \"auto\" or \"no\": the devices of a stage differ: %s",
            folds[r].reason);
        expect_error(folds[r].name, folds[r].reason ? CS_INVALID : CS_OK,
                     folds[r].reason ? message : "", status, &error);
        if (status == CS_OK)
            expect_fold(folds[r].name, &scenario);
        cs_scenario_finish(&scenario);
    }
}

/* "auto" folds above 64 devices; "no" never does, and gives no reason. */
static void test_automatic_fold(void **state)
{
    (void)state;
    static const struct {
        const char *data, *fold;
        bool folded;
    } rows[] = {{"16", "auto", false}, {"32", "auto", true}, {"32", "no", false}};
    for (size_t r = 0; r < ROWS(rows); r++) {
        const cs_override sets[SETS] = {{"/platform", "ideal"},
                                        {"/parallel/pipeline", "4"},
                                        {"/parallel/data", rows[r].data},
                                        {"/parallel/fold", rows[r].fold}};
        cs_scenario scenario;
        cs_error error;
        assert_int_equal(read_with(sets, &scenario, &error), CS_OK);
        expect_int(rows[r].fold, rows[r].folded, scenario.job.stands_for != NULL);
        assert_null(scenario.unfolded);
        cs_scenario_finish(&scenario);
    }
}

/* ---- order ---- */

/* Four layers of GPT on two nodes of eight. Where the default order has the axes in nodes, there is
 * nothing to say; with others each axis spans size x the sizes of the axes before it. */
static const struct {
    const char *name;
    cs_override sets[SETS];
    const char *warning;
} orders[] = {
    {"default", {{"/parallel/tensor", "4"}}, ""},
    /* 4 x 4 devices */
    {"tensor outside",
     {{"/parallel/tensor", "4"}, {"/parallel/order", "[\"data\", \"tensor\"]"}},
     "s.json: /parallel/order: the 4 devices of the axis \"tensor\" do not share a node of 8 "
     "devices; with [\"tensor\", \"data\"] they would"},
    /* only one of 4 x 4 fits into nodes: the tensor axis, which exchanges more */
    {"the wrong one inside",
     {{"/parallel/tensor", "4"},
      {"/parallel/context", "4"},
      {"/parallel/order", "[\"context\", \"tensor\"]"}},
     "s.json: /parallel/order: the 4 devices of the axis \"tensor\" do not share a node of 8 "
     "devices; with [\"tensor\", \"context\"] they would"},
    {"the right one inside", {{"/parallel/tensor", "4"}, {"/parallel/context", "4"}}, ""},
    /* 16 devices are in no node */
    {"too large", {{"/parallel/context", "16"}, {"/parallel/order", "[\"context\"]"}}, ""},
    {"by ranks",
     {{"/parallel/tensor", "2"},
      {"/parallel/ranks", "[0, 15, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 1]"}},
     "s.json: /parallel/order: the 2 devices of the axis \"tensor\" do not share a node of 8 "
     "devices; with [\"tensor\", \"data\"] and without \"ranks\" they would"},
};

static void test_orders(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS(orders); r++) {
        cs_override sets[2 + SETS] = {{"/model", gpt}, {"/schedule", sequential}};
        cs_scenario scenario;
        cs_error error;
        memcpy(&sets[2], orders[r].sets, sizeof(orders[r].sets));
        if (read_with(sets, &scenario, &error) != CS_OK)
            fail_msg("%s: %s", orders[r].name, error.text);
        expect_text(orders[r].name, orders[r].warning, scenario.warnings.text);
        cs_scenario_finish(&scenario);
    }
}

/* ---- messages ---- */

/* Four layers of GPT, on two pipeline ranks of two devices each: the output of a stage is 1024
 * tokens of 768 features of 2 bytes, 1,572,864 bytes per sample. With micro-batches of 16 samples
 * each device sends all of it, or half. */
static void test_parts_of_messages(void **state)
{
    (void)state;
    static const struct {
        const char *scatter;
        int64_t bytes;
    } rows[] = {{"false", 16 * 1572864}, {"true", 16 * 1572864 / 2}};
    for (size_t r = 0; r < ROWS(rows); r++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        if (scenario_run_init(&run, &error,
                              "{'schema_version': 1, 'model': {'name': 'gpt', 'parameters': "
                              "{'layers': 4}, 'device': 'h100', 'precision': 'bf16', "
                              "'batch_size': 32, 'granularity': 'block'}, 'platform': {'topology': "
                              "'dgx-h100', 'devices': "
                              "4}, 'parallel': {'tensor': 2, 'pipeline': 2, 'scatter_gather': "
                              "%s}, 'schedule': {'kind': '1f1b', 'micro_batches': 2}}",
                              rows[r].scatter) != CS_OK)
            fail_msg("%s: %s", rows[r].scatter, error.text);
        const cs_graph *graph = &run.simulation.graph;
        uint32_t n = 0;
        for (uint32_t c = 0; c < graph->n_classes; c++) {
            if (graph->classes[c].kind != CS_TRANSFER || graph->classes[c].origin != CS_TRANSFER)
                continue;
            expect_int(rows[r].scatter, rows[r].bytes, graph->classes[c].bytes);
            n++;
        }
        assert_true(n > 0);
        scenario_run_finish(&run);
    }
}

/* ---- resolved ---- */

static void test_resolves_to_itself(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS(sizes); r++) {
        cs_scenario first, again;
        cs_error error;
        cJSON *root;
        assert_int_equal(read_with(sizes[r].sets, &first, &error), CS_OK);
        assert_int_equal(
            cs_json_parse("r.json", first.resolved, strlen(first.resolved), &root, &error), CS_OK);
        if (cs_scenario_read(root, "r.json", &again, &error) != CS_OK)
            fail_msg("%s: %s", sizes[r].name, error.text);
        expect_text(sizes[r].name, first.resolved, again.resolved);
        cJSON_Delete(root);
        cs_scenario_finish(&first);
        cs_scenario_finish(&again);
    }
}

/* ---- keys that change times and memory ---- */

/* Four layers of 1 s. Each gathers its weights in 1 s: half of 2 GB comes from the other device.
 * Without prefetch, the gather of a layer begins when the layer before it has ended: 4 x (1 + 1) s.
 * With a prefetch of 1, only the first gather is exposed: 1 + 4 s. */
static void test_prefetch(void **state)
{
    static const struct {
        const char *prefetch;
        int64_t end; /* s, of the last forward */
    } rows[] = {{"0", 8}, {"1", 5}};
    (void)state;
    for (size_t r = 0; r < ROWS(rows); r++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        if (scenario_run_init(
                &run, &error,
                "{'schema_version': 1, 'model': {'uniform': {'layers': 4, 'forward': '1 s', "
                "'backward': '2 s', 'weights': '2 GB', 'activation': '1 B'}, 'batch_size': 2}, "
                "'platform': {'topology': 'nvlink_switch', 'devices': 2, 'bandwidth': '1 GB/s'}, "
                "'parallel': {'zero': 3, 'prefetch': %s}, 'collectives': {'fidelity': 'analytic'}, "
                "'schedule': {'kind': 'sequential', 'micro_batches': 1}}",
                rows[r].prefetch) != CS_OK)
            fail_msg("%s", error.text);
        cs_time end = 0;
        for (uint32_t t = 0; t < run.simulation.graph.n_tasks; t++)
            if (cs_graph_class(&run.simulation.graph, t)->kind == CS_FORWARD &&
                run.simulation.trace.spans[t].end > end)
                end = run.simulation.trace.spans[t].end;
        expect_int(rows[r].prefetch, rows[r].end * CS_PS_PER_SEC, end);
        scenario_run_finish(&run);
    }
}

/* In bf16 a weight takes 2 bytes, and its gradient 2, or 4 if gradients are kept in fp32. Replicas
 * sum gradients in the same type: in a ring of two, each of the four devices sends half of its
 * gradients twice. */
static void test_wide_gradients(void **state)
{
    static const char *const types[] = {"weights", "fp32"};
    (void)state;
    for (int64_t ratio = 1; ratio <= 2; ratio++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        if (scenario_run_init(&run, &error,
                              "{'schema_version': 1, 'runtime': 'ideal', 'model': {'name': 'gpt', "
                              "'parameters': {'layers': 2}, 'device': 'h100', 'precision': 'bf16', "
                              "'batch_size': 8, 'gradients': '%s'}, 'platform': {'topology': "
                              "'dgx-h100', 'devices': 4}, 'parallel': {'tensor': 2, 'data': 2}, "
                              "'schedule': {'kind': 'sequential', 'micro_batches': 1}}",
                              types[ratio - 1]) != CS_OK)
            fail_msg("%s", error.text);
        const cs_graph *graph = &run.simulation.graph;
        const cs_outcome of_run = {.scenario = &run.scenario, .simulation = &run.simulation};
        const double sent =
            cs_run_figure_value(cs_run_figure_find("moved_gradients_bytes"), &of_run);
        int64_t weights = 0, gradients = 0;
        for (uint32_t i = 0; i < graph->n_residents; i++)
            if (graph->residents[i].device == 0) {
                const cs_resident *of = &graph->residents[i];
                weights += of->category == CS_MEMORY_WEIGHTS ? of->bytes : 0;
                gradients += of->category == CS_MEMORY_GRADIENTS ? of->bytes : 0;
            }
        assert_true(weights > 0);
        expect_int(types[ratio - 1], ratio * weights, gradients);
        expect_double(types[ratio - 1], 4.0 * (double)(ratio * weights), sent);
        scenario_run_finish(&run);
    }
}

/* Four layers of 2 GB on two devices, and two micro-batches. A gather of a layer is 2 GB: each
 * device sends half of the layer to the other one. Each layer is gathered before its forward and
 * before its backward; with keep_gathered once per micro-batch, with gather_once once in all. */
static void test_gathers(void **state)
{
    static const struct {
        const char *key;
        double gathers; /* of each layer */
    } rows[] = {{"prefetch': 1, 'keep_gathered': false", 4},
                {"keep_gathered': true", 2},
                {"gather_once': true", 1}};
    (void)state;
    for (size_t r = 0; r < ROWS(rows); r++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        if (scenario_run_init(
                &run, &error,
                "{'schema_version': 1, 'model': {'uniform': {'layers': 4, 'forward': '1 s', "
                "'backward': '2 s', 'weights': '2 GB', 'activation': '1 B'}, 'batch_size': 4}, "
                "'platform': {'topology': 'nvlink_switch', 'devices': 2, 'bandwidth': '1 GB/s'}, "
                "'parallel': {'zero': 3, '%s}, 'collectives': {'fidelity': 'analytic'}, "
                "'schedule': {'kind': 'sequential', 'micro_batches': 2}}",
                rows[r].key) != CS_OK)
            fail_msg("%s", error.text);
        const cs_outcome of = {.scenario = &run.scenario, .simulation = &run.simulation};
        expect_double(rows[r].key, rows[r].gathers * 4 * 2e9,
                      cs_run_figure_value(cs_run_figure_find("moved_weights_bytes"), &of));
        scenario_run_finish(&run);
    }
}

/* Four replicas sum 4 GB of gradients over 1 GB/s with a latency of 1 s. Either algorithm sends 2 x
 * 3/4 x 4 GB from each device; a ring needs 2 x 3 steps, halving and doubling 2 x 2. The layer
 * computes for 3 s. */
static void test_algorithm_of_gradients(void **state)
{
    static const struct {
        const char *algorithm, *gradients;
        int64_t seconds;
    } rows[] = {{"ring", "algorithm", 3 + 6 + 6},
                {"halving", "algorithm", 3 + 6 + 4},
                {"halving", "ring", 3 + 6 + 6},
                {"ring", "halving", 3 + 6 + 4}};
    (void)state;
    for (size_t r = 0; r < ROWS(rows); r++) {
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        if (scenario_run_init(
                &run, &error,
                "{'schema_version': 1, 'model': {'uniform': {'layers': 1, 'forward': '1 s', "
                "'backward': '2 s', 'weights': '4 GB', 'activation': '1 B'}, 'batch_size': 4}, "
                "'platform': {'topology': 'nvlink_switch', 'devices': 4, 'bandwidth': '1 GB/s', "
                "'latency': '1 s'}, 'parallel': {'data': 4}, 'collectives': {'fidelity': "
                "'analytic', 'algorithm': '%s', 'gradients': '%s'}, 'schedule': {'kind': "
                "'sequential', 'micro_batches': 1}}",
                rows[r].algorithm, rows[r].gradients) != CS_OK)
            fail_msg("%s", error.text);
        expect_int(rows[r].gradients, rows[r].seconds * CS_PS_PER_SEC,
                   run.simulation.trace.makespan);
        scenario_run_finish(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_folds),
        cmocka_unit_test(test_automatic_fold),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_resolves_to_itself),
        cmocka_unit_test(test_parts_of_messages),
        cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_wide_gradients),
        cmocka_unit_test(test_gathers),
        cmocka_unit_test(test_algorithm_of_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
