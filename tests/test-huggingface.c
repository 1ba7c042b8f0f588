/* config.json of transformers: parameters against the published ones. */
#include "sim/workload/foreign/huggingface.h"
#include "sim/workload/net-model.h"

#include "tests/expect.h"

static cs_status read_text(const char *config, const char *params, cs_net *net, cs_error *error)
{
    static const cs_json_place place = {.file = "p"};
    cJSON *root, *more;
    cs_error_init(error);
    cs_status status = cs_json_parse("c", config, strlen(config), &root, error);
    if (status != CS_OK)
        return status;
    status = cs_json_parse("p", params, strlen(params), &more, error);
    if (status == CS_OK) {
        status = cs_huggingface_read(root, "config.json", more, &place, net, error);
        cJSON_Delete(more);
    }
    cJSON_Delete(root);
    return status;
}

/* The sizes as the named checkpoints' files have them, keys that change nothing left out; totals
 * as their model cards or num_parameters() of transformers tell them. */
static const struct {
    const char *name, *config;
    int64_t parameters;
} models[] = {
    {"gpt2",
     "{\"model_type\": \"gpt2\", \"n_layer\": 12, \"n_embd\": 768, \"n_head\": 12, \"n_ctx\": 1024,"
     " \"n_positions\": 1024, \"vocab_size\": 50257, \"n_inner\": null, \"resid_pdrop\": 0.1}",
     124439808},
    {"Llama-2-7b",
     "{\"model_type\": \"llama\", \"num_hidden_layers\": 32, \"hidden_size\": 4096,"
     " \"num_attention_heads\": 32, \"num_key_value_heads\": 32, \"intermediate_size\": 11008,"
     " \"vocab_size\": 32000, \"max_position_embeddings\": 4096, \"tie_word_embeddings\": false}",
     6738415616},
    {"Mistral-7B-v0.1",
     "{\"model_type\": \"mistral\", \"num_hidden_layers\": 32, \"hidden_size\": 4096,"
     " \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336,"
     " \"vocab_size\": 32000, \"max_position_embeddings\": 32768, \"sliding_window\": 4096}",
     7241732096},
    {"Qwen2-0.5B",
     "{\"model_type\": \"qwen2\", \"num_hidden_layers\": 24, \"hidden_size\": 896,"
     " \"num_attention_heads\": 14, \"num_key_value_heads\": 2, \"intermediate_size\": 4864,"
     " \"vocab_size\": 151936, \"max_position_embeddings\": 131072,"
     " \"tie_word_embeddings\": true}",
     494032768},
    {"bert-base-uncased",
     "{\"model_type\": \"bert\", \"num_hidden_layers\": 12, \"hidden_size\": 768,"
     " \"num_attention_heads\": 12, \"intermediate_size\": 3072, \"vocab_size\": 30522,"
     " \"max_position_embeddings\": 512, \"type_vocab_size\": 2, \"hidden_dropout_prob\": 0.1}",
     109482240},
    {"vit-base-patch16-224, 1000 classes",
     "{\"model_type\": \"vit\", \"num_hidden_layers\": 12, \"hidden_size\": 768,"
     " \"num_attention_heads\": 12, \"intermediate_size\": 3072, \"image_size\": 224,"
     " \"patch_size\": 16, \"num_channels\": 3, \"num_labels\": 1000}",
     86567656},
    /* 768 + 1 parameters less for each of 998 classes. */
    {"vit, classes by their names",
     "{\"model_type\": \"vit\", \"num_hidden_layers\": 12, \"hidden_size\": 768,"
     " \"num_attention_heads\": 12, \"intermediate_size\": 3072,"
     " \"id2label\": {\"0\": \"cat\", \"1\": \"dog\"}}",
     86567656 - 998 * 769},
};

static void test_parameters(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(models); i++) {
        cs_net net;
        cs_error error;
        if (read_text(models[i].config, "{}", &net, &error) != CS_OK)
            fail_msg("%s: %s", models[i].name, error.text);
        expect_int(models[i].name, models[i].parameters, cs_net_parameters(&net));
        cs_net_finish(&net);
    }
}

static const struct {
    const char *row, *member;
    bool said;
    cs_precision precision;
} precisions[] = {
    {"none", "\"n_positions\": 9", false, CS_PRECISION_FP32},
    {"bf16", "\"torch_dtype\": \"bfloat16\"", true, CS_PRECISION_BF16},
    {"fp16", "\"torch_dtype\": \"float16\"", true, CS_PRECISION_FP16},
    {"fp32, as newer versions write it", "\"dtype\": \"float32\"", true, CS_PRECISION_FP32},
    {"what we do not know", "\"torch_dtype\": \"float8_e4m3fn\"", false, CS_PRECISION_FP32},
    {"no text", "\"torch_dtype\": null", false, CS_PRECISION_FP32},
};

static void test_precision(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(precisions); i++) {
        char config[256];
        cs_net net;
        cs_error error;
        snprintf(config, sizeof(config),
                 "{\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 8, \"n_head\": 2, "
                 "\"vocab_size\": 9, %s}",
                 precisions[i].member);
        if (read_text(config, "{}", &net, &error) != CS_OK)
            fail_msg("%s: %s", precisions[i].row, error.text);
        expect_int(precisions[i].row, precisions[i].said, net.has_precision);
        if (net.has_precision)
            expect_int(precisions[i].row, precisions[i].precision, net.precision);
        cs_net_finish(&net);
    }
}

#define GPT2                                                                                       \
    "{\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 8, \"n_head\": 2, \"vocab_size\": 9}"

static const struct {
    const char *row, *config, *params, *message;
} errors[] = {
    {"an unknown architecture", "{\"model_type\": \"t5\"}", "{}",
     "config.json: /model_type: unknown architecture \"t5\"; known: gpt2, llama, mistral, qwen2, "
     "bert, vit"},
    {"a typo", "{\"model_type\": \"lama\"}", "{}",
     "config.json: /model_type: unknown architecture \"lama\"; did you mean \"llama\"? known: "
     "gpt2, "
     "llama, mistral, qwen2, bert, vit"},
    {"experts", "{\"model_type\": \"mixtral\"}", "{}",
     "config.json: /model_type: mixtures of experts are not supported (got \"mixtral\"); known: "
     "gpt2, llama, mistral, qwen2, bert, vit"},
    {"no architecture", "{}", "{}",
     "config.json: /model_type: unknown architecture \"\"; known: gpt2, llama, mistral, qwen2, "
     "bert, vit"},
    {"no object", "[]", "{}",
     "config.json: must be an object, the config.json of transformers (got an array)"},
    {"heads that do not divide",
     "{\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 8, \"n_head\": 3, \"vocab_size\": 9}",
     "{}", "config.json: gpt2: heads must divide hidden, 8 (got 3)"},
    {"a size is missing",
     "{\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 8, \"n_head\": 2}", "{}",
     "config.json: missing key \"vocab_size\": must be a whole number from 1 to 1048576"},
    {"a sequence beyond the positions", GPT2, "{\"sequence\": 2000}",
     "config.json: gpt2: sequence must be at most positions, 1024 (got 2000)"},
    {"an unknown parameter", GPT2, "{\"tokens\": 3}",
     "p: unknown key \"tokens\"; known: sequence, attention"},
};

static void test_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(errors); i++) {
        cs_net net;
        cs_error error;
        cs_status status = read_text(errors[i].config, errors[i].params, &net, &error);
        expect_error(errors[i].row, CS_INVALID, errors[i].message, status, &error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_precision),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
