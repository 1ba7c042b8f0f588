/* Scenarios with a named model and device: results and refusals. */
#include "sim/run/scenario/scenario.h"

#include "tests/expect.h"

static cs_status read_scenario(const char *model, const char *schedule, unsigned int devices,
                               cs_scenario *scenario, cs_error *error)
{
    char text[1024];
    cJSON *root;
    snprintf(text, sizeof(text),
             "{\"schema_version\": 1, \"runtime\": \"ideal\", \"model\": {%s}, \"platform\": "
             "{\"topology\": "
             "\"nvlink_switch\", \"devices\": %u, \"memory\": \"16 GiB\", \"bandwidth\": "
             "\"150 GB/s\", \"latency\": \"3 us\"}, \"schedule\": {%s}}",
             model, devices, schedule);
    cs_error_init(error);
    cs_status status = cs_json_parse("s.json", text, strlen(text), &root, error);
    if (status != CS_OK)
        return status;
    status = cs_scenario_read(root, "s.json", scenario, error);
    cJSON_Delete(root);
    return status;
}

/* Networks with branches, at 1000 x 1000 pixels and batch 8, run as pipelines on 2 to 8 devices. */
static const char *const networks[] = {"resnet50", "resnet101", "inception_v3", "densenet121"};
static const char *const pipelines[] = {"\"kind\": \"gpipe\", \"micro_batches\": 4",
                                        "\"kind\": \"1f1b\", \"micro_batches\": 8"};

static void run_pipeline(const char *network, const char *schedule, unsigned int devices)
{
    char model[256];
    cs_scenario scenario;
    cs_graph graph;
    cs_error error;
    snprintf(model, sizeof(model),
             "\"name\": \"%s\", \"batch_size\": 8, \"device\": \"v100\", \"parameters\": "
             "{\"image\": 1000}",
             network);
    if (read_scenario(model, schedule, devices, &scenario, &error) != CS_OK)
        fail_msg("%s on %u: %s", network, devices, error.text);
    expect_int(network, devices, scenario.plan->n_stages);
    expect_int(network, scenario.job.micro_samples, scenario.model->batch_size);
    if (cs_schedule_graph(scenario.schedule, &scenario.job, scenario.params, &graph, &error) !=
        CS_OK)
        fail_msg("%s on %u: %s", network, devices, error.text);
    cs_graph_finish(&graph);
    cs_scenario_finish(&scenario);
}

static void test_pipelines(void **state)
{
    (void)state;
    for (size_t n = 0; n < ROWS(networks); n++)
        for (size_t p = 0; p < ROWS(pipelines); p++)
            for (unsigned int devices = 2; devices <= 8; devices++)
                run_pipeline(networks[n], pipelines[p], devices);
}

/* The batch is split over 2 replicas: times are for 4 samples. Adam in fp16 keeps 12 bytes in
 * addition to a weight of 2. */
static void test_replicas(void **state)
{
    (void)state;
    cs_scenario scenario;
    cs_error error;
    if (read_scenario("\"name\": \"resnet18\", \"batch_size\": 8, \"device\": \"v100\", "
                      "\"precision\": \"fp16\", \"optimizer\": \"adam\"",
                      "\"kind\": \"dp\"", 2, &scenario, &error) != CS_OK)
        fail_msg("%s", error.text);
    expect_int("samples", 4, scenario.model->batch_size);
    expect_int("weights", 2 * 11689512, scenario.job.stages[0].weight_bytes);
    expect_double("optimizer", 6, scenario.job.optimizer_ratio);
    cs_scenario_finish(&scenario);
}

/* In 2 blocks the activation and the following matrix are recomputed: the activation's result, 4 x
 * 8 features of each of 16 tokens in float32 for 3 samples, is not saved. */
static void test_recomputed_operators(void **state)
{
    (void)state;
    static const char gpt[] = "\"name\": \"gpt\", \"batch_size\": 3, \"device\": \"v100\", "
                              "\"parameters\": {\"layers\": 2, \"hidden\": 8, \"heads\": 2, "
                              "\"sequence\": 16, \"dropout\": 0}";
    char again[512];
    cs_scenario whole, less;
    cs_error error;
    snprintf(again, sizeof(again), "%s, \"recompute_operators\": [\"act\", \"c_proj\"]", gpt);
    if (read_scenario(gpt, "\"kind\": \"sequential\"", 1, &whole, &error) != CS_OK ||
        read_scenario(again, "\"kind\": \"sequential\"", 1, &less, &error) != CS_OK)
        fail_msg("%s", error.text);
    expect_int("kept", whole.job.stages[0].kept_bytes - 2 * 4 * 16 * 8 * 4 * 3,
               less.job.stages[0].kept_bytes);
    assert_true(less.job.stages[0].backward_input > whole.job.stages[0].backward_input);
    cs_scenario_finish(&whole);
    cs_scenario_finish(&less);
}

/* GPT's last matrix is its embedding's: 50257 tokens of 768 features; the last of two stages holds
 * a copy, with gradients and states. Llama has two matrices, or one if configured so. */
static void test_tied(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int64_t borrowed;
    } rows[] = {{"\"name\": \"gpt\"", 4 * INT64_C(50257) * 768},
                {"\"name\": \"llama\"", 0},
                {"\"name\": \"llama\", \"parameters\": {\"tied\": true, \"vocabulary\": 1000, "
                 "\"hidden\": 512}",
                 4 * INT64_C(1000) * 512}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        char model[256];
        cs_scenario scenario;
        cs_error error;
        snprintf(model, sizeof(model), "%s, \"batch_size\": 2, \"device\": \"a100\"",
                 rows[i].model);
        if (read_scenario(model, "\"kind\": \"gpipe\", \"micro_batches\": 2", 2, &scenario,
                          &error) != CS_OK)
            fail_msg("%s", error.text);
        const cs_layer_sum *stages = scenario.job.stages;
        expect_int(rows[i].model, 0, stages[0].borrowed_bytes);
        expect_int(rows[i].model, rows[i].borrowed, stages[1].borrowed_bytes);
        int64_t weights = 0;
        for (uint32_t l = 0; l < scenario.model->n_layers; l++)
            weights += scenario.model->layers[l].weight_bytes;
        expect_int(rows[i].model, weights + rows[i].borrowed,
                   stages[0].weight_bytes + stages[1].weight_bytes);
        cs_scenario_finish(&scenario);
    }
}

#define SHARED_MODEL(batch)                                                                        \
    "\"name\": \"vgg16\", \"batch_size\": " #batch                                                 \
    ", \"device\": \"v100\", \"parameters\": {\"image\": 32}"

static void expect_sum(const char *row, const cs_layer_sum *a, const cs_layer_sum *b)
{
    expect_int(row, a->forward, b->forward);
    expect_int(row, a->backward_input, b->backward_input);
    expect_int(row, a->backward_weight, b->backward_weight);
    expect_int(row, a->kept_bytes, b->kept_bytes);
    expect_int(row, a->workspace_bytes, b->workspace_bytes);
    expect_int(row, a->input_bytes, b->input_bytes);
    expect_int(row, a->output_bytes, b->output_bytes);
}

/* 48 samples in 2 micro-batches: a stage of 4 devices computes 6 at once, one of 3 devices 8. The
 * time equals that of a single device with as many samples, not a share of the time of 24 samples:
 * reading the weights takes as long on each device. The resolved scenario, where the network is a
 * chain of numbers, gives the same. */
static void test_shares(void **state)
{
    (void)state;
    static const struct {
        uint32_t stage, first, end;
        const char *alone;
    } rows[] = {{0, 0, 10, SHARED_MODEL(6)}, {1, 10, 40, SHARED_MODEL(8)}};
    cs_scenario shared, alone, resolved;
    cs_error error;
    cJSON *root;
    if (read_scenario(
            SHARED_MODEL(48),
            "\"kind\": \"1f1b\", \"micro_batches\": 2, \"partition\": {\"inline\": "
            "{\"schema_version\": 1, \"stages\": [{\"first_layer\": 0, \"last_layer\": 9, "
            "\"devices\": [0, 1, 2, 3]}, {\"first_layer\": 10, \"last_layer\": 39, "
            "\"devices\": [4, 5, 6]}]}}",
            7, &shared, &error) != CS_OK)
        fail_msg("%s", error.text);
    if (cs_json_parse("r.json", shared.resolved, strlen(shared.resolved), &root, &error) != CS_OK ||
        cs_scenario_read(root, "r.json", &resolved, &error) != CS_OK)
        fail_msg("%s", error.text);
    cJSON_Delete(root);
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_layer_sum sum;
        if (read_scenario(rows[i].alone, "\"kind\": \"sequential\"", 1, &alone, &error) != CS_OK)
            fail_msg("%s", error.text);
        assert_int_equal(cs_model_sum(alone.model, rows[i].first, rows[i].end,
                                      alone.model->batch_size, &sum, NULL),
                         CS_OK);
        expect_sum("a share", &sum, &shared.job.stages[rows[i].stage]);
        expect_sum("resolved", &sum, &resolved.job.stages[rows[i].stage]);
        cs_scenario_finish(&alone);
    }
    cs_scenario_finish(&shared);
    cs_scenario_finish(&resolved);
}

#define SEQUENTIAL "\"kind\": \"sequential\""

static const struct {
    const char *row, *model, *message;
} errors[] = {
    {"a typo", "\"name\": \"vit_b61\", \"batch_size\": 1, \"device\": \"v100\"",
     "s.json: /model/name: unknown model \"vit_b61\"; did you mean \"vit_b16\"? known: "
     "`sim list models` has them"},
    {"batch 0", "\"name\": \"vgg16\", \"batch_size\": 0, \"device\": \"v100\"",
     "s.json: /model/batch_size: must be >= 1 for a named model (got 0)"},
    {"no batch and no device", "\"name\": \"vgg16\"",
     "s.json: /model/batch_size: must be >= 1 for a named model (got none)\n"
     "s.json: /model/device: must be given for a named model: one of `sim list devices`"},
    {"a typo in a device", "\"name\": \"vgg16\", \"batch_size\": 1, \"device\": \"v10\"",
     "s.json: /model/device: unknown device \"v10\"; did you mean \"v100\"? known: `sim list "
     "devices` has them; or describe it in a file FILE.json (docs/how-to/own-device.md)"},
    {"a precision",
     "\"name\": \"vgg16\", \"batch_size\": 1, \"device\": \"v100\", \"precision\": \"bf16\"",
     "s.json: /model/device: device \"v100\" does not compute in bf16: must be one of fp32, fp16"},
    {"a parameter",
     "\"name\": \"vgg16\", \"batch_size\": 1, \"device\": \"v100\", \"parameters\": {\"image\": 0}",
     "s.json: /model/parameters/image: must be from 1 to 65536 (got 0)"},
    {"keys of a named model",
     "\"uniform\": {\"layers\": 1, \"forward\": 1, \"backward\": 1}, \"device\": \"v100\"",
     "s.json: /model/device: must be left out: this model has its own times and sizes; the key "
     "requires \"name\""},
    {"two models", "\"name\": \"vgg16\", \"file\": \"x.json\"",
     "s.json: /model: must have exactly one of \"file\", \"name\", \"uniform\" and \"inline\" (got "
     "\"file\" and \"name\")"},
};

static void test_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(errors); i++) {
        cs_scenario scenario;
        cs_error error;
        cs_status status = read_scenario(errors[i].model, SEQUENTIAL, 1, &scenario, &error);
        expect_error(errors[i].row, CS_INVALID, errors[i].message, status, &error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipelines), cmocka_unit_test(test_recomputed_operators),
        cmocka_unit_test(test_replicas),  cmocka_unit_test(test_shares),
        cmocka_unit_test(test_tied),      cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
