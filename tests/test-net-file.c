/* Networks that are printed and read back: the same models, whole and divided; and what is wrong
 * with a file. */
#include "sim/model/net-file.h"

#include "sim/model/net-local.h"
#include "sim/model/zoo/zoo.h"
#include "tests/expect.h"
#include "tests/run-scenario.h"

#include <stdlib.h>
#include <unistd.h>

/* The net as JSON, through text. */
static cJSON *print_net(const cs_net *net, const cs_net_options *how)
{
    cs_net_chain chain;
    cs_error error;
    cs_error_init(&error);
    if (cs_net_chain_find(net, how, &chain, &error) != CS_OK)
        fail_msg("%s", error.text);
    cJSON *root = cs_net_json(net, how, &chain), *again = NULL;
    char *text = cs_json_print(root);
    assert_int_equal(cs_json_parse("n.json", text, strlen(text), &again, &error), CS_OK);
    cs_net_chain_finish(&chain);
    cJSON_Delete(root);
    free(text);
    return again;
}

/* Everything that a run knows of a model. */
static char *model_text(const cs_net *net, const cs_net_options *how)
{
    cs_model model;
    cs_error error;
    cs_error_init(&error);
    if (cs_net_model(net, how, &model, &error) != CS_OK)
        fail_msg("%s: %s", net->name, error.text);
    cJSON *root = cs_model_json(&model);
    char *text = cs_json_print(root);
    cJSON_Delete(root);
    cs_model_finish(&model);
    return text;
}

static void compare(const char *row, const cs_net *a, const cs_net *b, const cs_net_options *how)
{
    char *left = model_text(a, how), *right = model_text(b, how);
    if (strcmp(left, right) != 0)
        fail_msg("%s: differs when it is read back", row);
    free(left);
    free(right);
}

/* Splits that a network takes: of two devices along each axis, and experts. */
static uint32_t list_splits(const cs_net *net, cs_split splits[6])
{
    cs_split all[6];
    uint32_t n = 0;
    for (uint32_t i = 0; i < ROWS(all); i++)
        all[i] = cs_split_none();
    all[0].grid.tensor = all[1].grid.tensor = all[2].grid.tensor = all[3].grid.tensor = 2;
    all[1].sequence_parallel = true;
    all[2].tensor_method = CS_TENSOR_FILTER;
    all[3].tensor_method = CS_TENSOR_CHANNEL;
    all[4].grid.context = 2;
    all[5].grid.data = all[5].grid.expert = 2;
    for (uint32_t i = 0; i < ROWS(all); i++) {
        cs_error error;
        cs_error_init(&error);
        if (cs_net_split_check(net, &all[i], NULL, &error) == CS_OK)
            splits[n++] = all[i];
    }
    return n;
}

/* Returns whether it divides somehow. */
static bool check_model(const char *name, const char *params, const cs_accelerator *device)
{
    const cs_json_place place = {.file = "n.json"};
    cs_split splits[6];
    cs_net net, read;
    cs_error error;
    cs_error_init(&error);
    cJSON *parameters = cJSON_Parse(params);
    assert_int_equal(cs_zoo_build(name, NULL, parameters, &place, &net, &error), CS_OK);
    cs_net_options how = {.batch_size = 4,
                          .precision = CS_PRECISION_BF16,
                          .optimizer_states = 2,
                          .device = device,
                          .source = "test"};
    cJSON *root = print_net(&net, &how);
    if (cs_net_read(root, &place, &read, &error) != CS_OK)
        fail_msg("%s: %s", name, error.text);
    for (how.granularity = 0; how.granularity <= CS_GRANULARITY_BLOCK; how.granularity++)
        compare(name, &net, &read, &how);
    how.granularity = CS_GRANULARITY_BLOCK;
    const uint32_t n = list_splits(&net, splits);
    for (uint32_t s = 0; s < n; s++) {
        how.split = &splits[s];
        compare(name, &net, &read, &how);
    }
    cJSON_Delete(root);
    cJSON_Delete(parameters);
    cs_net_finish(&net);
    cs_net_finish(&read);
    return n > 0;
}

static void test_zoo(void **state)
{
    (void)state;
    cs_accelerator device;
    static const char *const decoders[] = {"llama",       "mixtral", "qwen3",  "deepseek_v2",
                                           "deepseek_v3", "gpt_oss", "mamba2", "bamba"};
    uint32_t n_divided = 0, n_models = 0;
    assert_int_equal(cs_accelerator_load("h100", NULL, &device, NULL), CS_OK);
    for (; cs_zoo_name(n_models); n_models++)
        n_divided += check_model(cs_zoo_name(n_models), "{}", &device);
    for (size_t i = 0; i < ROWS(decoders); i++)
        n_divided += check_model(decoders[i], "{}", &device);
    expect_int("every model divides somehow", n_models + ROWS(decoders), n_divided);
    assert_true(check_model("t5", "{\"form\": \"megatron\"}", &device));
    assert_true(check_model("bert", "{\"form\": \"megatron\", \"head\": true}", &device));
    cs_accelerator_finish(&device);
}

/* ---- runs ---- */

static void save(const char *path, const cJSON *root)
{
    char *text = cs_json_print(root);
    FILE *file = fopen(path, "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
    free(text);
}

static uint64_t hash_of(const char *model, const char *parallel)
{
    scenario_run made;
    cs_error error;
    cs_error_init(&error);
    if (scenario_run_init(&made, &error,
                          "{'schema_version': 1, 'runtime': 'ideal', 'model': {%s, 'device': "
                          "'h100', 'precision': "
                          "'bf16', 'batch_size': 16}, 'platform': {'topology': 'dgx-h100', "
                          "'devices': 8}, 'schedule': {'kind': 'sequential', 'micro_batches': 2}, "
                          "'parallel': {%s}}",
                          model, parallel) != CS_OK)
        fail_msg("%s, %s: %s", model, parallel, error.text);
    const uint64_t hash = cs_trace_hash(&made.simulation.trace);
    scenario_run_finish(&made);
    return hash;
}

/* Runs of the file equal runs of the name. */
static void test_runs(void **state)
{
    (void)state;
    static const char *const parallels[] = {"'data': 8", "'tensor': 2, 'zero': 3",
                                            "'tensor': 4, 'sequence_parallel': true"};
    char folder[] = "/tmp/sim-net-file-XXXXXX", path[64], by_file[128];
    const cs_json_place place = {.file = "n.json"};
    cs_accelerator device;
    cs_net net;
    cs_error error;
    cs_error_init(&error);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/gpt.json", folder);
    snprintf(by_file, sizeof(by_file), "'name': '%s'", path);
    assert_int_equal(cs_accelerator_load("h100", NULL, &device, NULL), CS_OK);
    cJSON *parameters = cJSON_Parse("{\"layers\": 2}");
    assert_int_equal(cs_zoo_build("gpt", NULL, parameters, &place, &net, &error), CS_OK);
    const cs_net_options how = {.batch_size = 1, .device = &device};
    cJSON *root = print_net(&net, &how);
    cJSON_DeleteItemFromObject(root, "precision");
    save(path, root);
    for (size_t i = 0; i < ROWS(parallels); i++)
        expect_bits(parallels[i],
                    hash_of("'name': 'gpt', 'parameters': {'layers': 2}", parallels[i]),
                    hash_of(by_file, parallels[i]));
    unlink(path);
    rmdir(folder);
    cJSON_Delete(root);
    cJSON_Delete(parameters);
    cs_net_finish(&net);
    cs_accelerator_finish(&device);
}

static void read_measured(scenario_run *made, const char *measured)
{
    cs_error error;
    cs_error_init(&error);
    if (scenario_run_read(made, &error,
                          "{'schema_version': 1, 'runtime': 'ideal', 'model': {'name': 'gpt', "
                          "'parameters': {'layers': "
                          "2}, 'device': 'h100', 'batch_size': 16, %s}, 'platform': {'topology': "
                          "'dgx-h100', 'devices': 8}, 'schedule': {'kind': 'sequential', "
                          "'micro_batches': 1}, 'parallel': {'tensor': 2}}",
                          measured) != CS_OK)
        fail_msg("%s", error.text);
}

static cs_time all_times(const cs_layer *layer)
{
    cs_time sum = layer->forward + layer->backward_input + layer->backward_weight + layer->update;
    for (uint32_t i = 0; i < layer->n_pieces; i++)
        sum += layer->pieces[i].forward + layer->pieces[i].backward_input +
               layer->pieces[i].backward_weight;
    return sum;
}

static void multiply(cs_model *model, cs_time factor)
{
    for (uint32_t l = 0; l < model->n_layers; l++) {
        model->layers[l].forward *= factor;
        model->layers[l].backward_input *= factor;
        model->layers[l].backward_weight *= factor;
        model->layers[l].update *= factor;
    }
}

/* Measured layers that take as long as the estimates, or twice as long, make a device's part of
 * each layer as long, or twice as long. */
static void test_measured_parts(void **state)
{
    (void)state;
    char folder[] = "/tmp/sim-net-file-XXXXXX", path[64], key[96];
    scenario_run estimated;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/measured.json", folder);
    snprintf(key, sizeof(key), "'measured': '%s'", path);
    read_measured(&estimated, "'optimizer': 'sgd'");
    for (cs_time factor = 1; factor <= 2; factor++) {
        const cs_scenario *of = &estimated.scenario;
        cs_accelerator device;
        cs_model whole;
        scenario_run made;
        assert_int_equal(cs_accelerator_load("h100", NULL, &device, NULL), CS_OK);
        const cs_net_options how = {
            .batch_size = of->job.micro_samples, .device = &device, .source = "test"};
        assert_int_equal(cs_net_model(of->net, &how, &whole, NULL), CS_OK);
        multiply(&whole, factor);
        cJSON *root = cs_model_json(&whole);
        save(path, root);
        read_measured(&made, key);
        for (uint32_t l = 0; l < whole.n_layers; l++)
            expect_int(whole.layers[l].name, factor * all_times(&of->model->layers[l]),
                       all_times(&made.scenario.model->layers[l]));
        cJSON_Delete(root);
        cs_model_finish(&whole);
        cs_accelerator_finish(&device);
        scenario_run_finish(&made);
    }
    scenario_run_finish(&estimated);
    unlink(path);
    rmdir(folder);
}

/* ---- what is wrong ---- */

static const char small[] =
    "{\"name\": \"small\", \"inputs\": [{\"name\": \"x\", \"shape\": [3, 8, 8]}], \"layers\": "
    "[{\"name\": \"a\", \"operators\": [{\"name\": \"conv\", \"kind\": \"conv\", \"inputs\": "
    "[\"x\"], \"output_shape\": [4, 8, 8], \"kernel\": [3, 3], \"padding\": [1, 1]}, {\"name\": "
    "\"act\", \"kind\": \"relu\", \"inputs\": [\"conv\"]}]}, {\"name\": \"b\", \"operators\": "
    "[{\"name\": \"flat\", \"kind\": \"view\", \"inputs\": [\"act\"], \"output_shape\": [256]}, "
    "{\"name\": \"fc\", \"kind\": \"linear\", \"inputs\": [\"flat\"], \"output_shape\": [10], "
    "\"biases\": 10}, {\"name\": \"loss\", \"kind\": \"cross_entropy\", \"inputs\": [\"fc\"]}]}]}";

/* 4 filters of 3 x 9; 10 rows of 256, and 10. */
static void test_by_hand(void **state)
{
    (void)state;
    const cs_json_place place = {.file = "n.json"};
    cJSON *root = cJSON_Parse(small);
    cs_net net;
    cs_error error;
    cs_error_init(&error);
    if (cs_net_read(root, &place, &net, &error) != CS_OK)
        fail_msg("%s", error.text);
    expect_int("operators", 5, net.n_ops);
    expect_int("parameters", 4 * 3 * 9 + 2560 + 10, cs_net_parameters(&net));
    expect_int("blocks", 2, net.n_blocks);
    cs_net_finish(&net);
    cJSON_Delete(root);
}

/* A kernel of 3 x 3 that reads every other pixel spans 5, so that a padding of 2 leaves 8 x 8 as
 * they are, and one of 1 makes them 6 x 6. It has as many weights and products as any of 3 x 3, no
 * Winograd transform computes it, and no backend runs it. */
static void test_dilation(void **state)
{
    (void)state;
    static const char key[] = "conv n=2 in=3x8x8 out=4x8x8 kernel=3x3 stride=1x1 pad=2x2 "
                              "dilation=2x2 groups=1 fp32";
    const cs_json_place place = {.file = "n.json"};
    cJSON *root = cJSON_Parse(small);
    cs_accelerator none;
    cs_op_shape shapes[CS_OP_SHAPES_MAX];
    char text[CS_OP_KEY_BYTES];
    cs_net net, again;
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(cs_json_set(root, "/layers/0/operators/0/dilation", "[2, 2]", "--set", &error),
                     CS_OK);
    expect_error("padding 1", CS_INVALID,
                 "n.json: /layers/0/operators/0/output_shape: must be 4 x 6 x 6, what it makes of "
                 "its input",
                 cs_net_read(root, &place, &net, &error), &error);
    cs_error_init(&error);
    assert_int_equal(cs_json_set(root, "/layers/0/operators/0/padding", "[2, 2]", "--set", &error),
                     CS_OK);
    if (cs_net_read(root, &place, &net, &error) != CS_OK)
        fail_msg("%s", error.text);
    expect_int("parameters", 4 * 3 * 9 + 2560 + 10, cs_net_parameters(&net));
    expect_double("products", 8 * 8 * 4 * 27 + 2560, cs_net_macs(&net));
    assert_false(cs_winograd_computes(&net.ops[0]));
    cs_op_shapes_of(&net, &net.ops[0], 2, CS_PRECISION_FP32, 0, shapes);
    expect_text("key", key, cs_op_shape_key(&shapes[0], text, sizeof(text)));
    expect_error("runs", CS_INVALID,
                 "small: operator conv (conv) can be estimated, but no backend can run it",
                 cs_net_check_runnable(&net, &error), &error);
    cJSON_Delete(root);
    cs_accelerator_none(&none);
    const cs_net_options how = {.batch_size = 2, .device = &none, .source = "test"};
    root = print_net(&net, &how);
    cs_error_init(&error);
    if (cs_net_read(root, &place, &again, &error) != CS_OK)
        fail_msg("%s", error.text);
    expect_int("read back", 2, again.ops[0].dilation.size[1]);
    compare("dilation", &net, &again, &how);
    cJSON_Delete(root);
    cs_net_finish(&again);
    cs_net_finish(&net);
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *pointer, *value, *message;
    } rows[] = {
        {"/inputs", "null", "n.json: /inputs: must be a list of what the network reads"},
        {"/inputs/0/ids", "true", "n.json: /inputs/0/shape: must be [tokens] for token ids"},
        {"/layers/1/operators", "null",
         "n.json: /layers/1: missing key \"operators\": a layer of a network lists them"},
        {"/layers/0/operators/1/inputs", "[\"conf\"]",
         "n.json: /layers/0/operators/1/inputs/0: must be an input or an operator before it: "
         "unknown "
         "\"conf\"; did you mean \"conv\"? known: x, conv"},
        {"/layers/0/operators/1/inputs", "[\"conv\", \"x\"]",
         "n.json: /layers/0/operators/1/inputs: must be 1 to 1 for the kind \"relu\" (got 2)"},
        {"/layers/0/operators/1/name", "conv",
         "n.json: /layers/0/operators/1/name: must be unique (got \"conv\" again)"},
        {"/layers/0/operators/0/kernel", "[3]",
         "n.json: /layers/0/operators/0/kernel: must have 2 sizes above 0, one per direction (got "
         "1)"},
        {"/layers/0/operators/0/stride", "[1, 2]",
         "n.json: /layers/0/operators/0/stride: must be the same in all directions, and above 0"},
        {"/layers/0/operators/0/dilation", "[1, 2]",
         "n.json: /layers/0/operators/0/dilation: must be the same in all directions, and above 0"},
        {"/layers/0/operators/0/dilation", "[9, 9]",
         "n.json: /layers/0/operators/0: small: layer conv runs out of pixels: its input is 8 x 8, "
         "padding 1, its kernel spans 19 x 19; the image must be larger"},
        {"/layers/0/operators/0/output_shape", "[4, 6, 6]",
         "n.json: /layers/0/operators/0/output_shape: must be 4 x 8 x 8, what it makes of its "
         "input"},
        {"/layers/0/operators/0/weights", "100",
         "n.json: /layers/0/operators/0/weights: must be 108, or left out (got 100)"},
        {"/layers/1/operators/0/output_shape", "[300]",
         "n.json: /layers/1/operators/0: small: layer flat has more elements than what it is a "
         "view "
         "of"},
        {"/layers/1/operators/1/output_shape", "[]",
         "n.json: /layers/1/operators/1/output_shape: must be given, with sizes above 0"},
        {"/layers/1/operators/1/tied_to", "fc2",
         "n.json: /layers/1/operators/1/tied_to: must be an input or an operator before it: "
         "unknown "
         "\"fc2\"; known: x, conv, act, flat"},
        {"/layers/1/operators/1/kind", "attention",
         "n.json: /layers/1/operators/1/inputs: must be 3 to 3 for the kind \"attention\" (got 1)"},
        {"/carried", "x", "n.json: /carried: must be the name of an operator"},
        {"/precision", "fp33",
         "n.json: /precision: unknown \"fp33\"; did you mean \"fp32\"? known: fp32, tf32, fp16, "
         "bf16, fp8, mxfp8, nvfp4"},
    };
    for (size_t r = 0; r < ROWS(rows); r++) {
        const cs_json_place place = {.file = "n.json"};
        cJSON *root = cJSON_Parse(small);
        cs_net net;
        cs_error error;
        cs_error_init(&error);
        assert_int_equal(cs_json_set(root, rows[r].pointer, rows[r].value, "--set", &error), CS_OK);
        expect_error(rows[r].pointer, CS_INVALID, rows[r].message,
                     cs_net_read(root, &place, &net, &error), &error);
        cJSON_Delete(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_zoo),
                                       cmocka_unit_test(test_runs),
                                       cmocka_unit_test(test_measured_parts),
                                       cmocka_unit_test(test_by_hand),
                                       cmocka_unit_test(test_dilation),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
