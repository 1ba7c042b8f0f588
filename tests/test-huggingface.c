/* config.json of transformers: parameters against the published ones. */
#include "sim/model/foreign/huggingface.h"
#include "sim/model/net-model.h"

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
    {"Qwen2-0.5B, as newer versions write it",
     "{\"model_type\": \"qwen2\", \"num_hidden_layers\": 24, \"hidden_size\": 896,"
     " \"num_attention_heads\": 14, \"num_key_value_heads\": 2, \"intermediate_size\": 4864,"
     " \"vocab_size\": 151936, \"use_sliding_window\": false, \"sliding_window\": null,"
     " \"max_window_layers\": 24, \"tie_word_embeddings\": true}",
     494032768},
    {"Mixtral-8x7B-v0.1",
     "{\"model_type\": \"mixtral\", \"num_hidden_layers\": 32, \"hidden_size\": 4096,"
     " \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336,"
     " \"vocab_size\": 32000, \"max_position_embeddings\": 32768, \"num_local_experts\": 8,"
     " \"num_experts_per_tok\": 2, \"sliding_window\": null, \"tie_word_embeddings\": false,"
     " \"router_aux_loss_coef\": 0.02}",
     46702792704},
    {"Qwen3-0.6B",
     "{\"model_type\": \"qwen3\", \"num_hidden_layers\": 28, \"hidden_size\": 1024,"
     " \"num_attention_heads\": 16, \"num_key_value_heads\": 8, \"head_dim\": 128,"
     " \"intermediate_size\": 3072, \"vocab_size\": 151936, \"attention_bias\": false,"
     " \"max_position_embeddings\": 40960, \"tie_word_embeddings\": true}",
     596049920},
    {"Qwen3-30B-A3B",
     "{\"model_type\": \"qwen3_moe\", \"num_hidden_layers\": 48, \"hidden_size\": 2048,"
     " \"num_attention_heads\": 32, \"num_key_value_heads\": 4, \"head_dim\": 128,"
     " \"intermediate_size\": 6144, \"moe_intermediate_size\": 768, \"num_experts\": 128,"
     " \"num_experts_per_tok\": 8, \"decoder_sparse_step\": 1, \"mlp_only_layers\": [],"
     " \"vocab_size\": 151936, \"max_position_embeddings\": 40960, \"sliding_window\": null,"
     " \"use_sliding_window\": false, \"tie_word_embeddings\": false}",
     30532122624},
    {"DeepSeek-V2-Lite",
     "{\"model_type\": \"deepseek_v2\", \"num_hidden_layers\": 27, \"hidden_size\": 2048,"
     " \"num_attention_heads\": 16, \"num_key_value_heads\": 16, \"intermediate_size\": 10944,"
     " \"moe_intermediate_size\": 1408, \"n_routed_experts\": 64, \"num_experts_per_tok\": 6,"
     " \"n_shared_experts\": 2, \"first_k_dense_replace\": 1, \"moe_layer_freq\": 1,"
     " \"q_lora_rank\": null, \"kv_lora_rank\": 512, \"qk_nope_head_dim\": 128,"
     " \"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"vocab_size\": 102400,"
     " \"max_position_embeddings\": 163840, \"attention_bias\": false,"
     " \"tie_word_embeddings\": false}",
     15706484224},
    {"DeepSeek-V3",
     "{\"model_type\": \"deepseek_v3\", \"num_hidden_layers\": 61, \"hidden_size\": 7168,"
     " \"num_attention_heads\": 128, \"num_key_value_heads\": 128, \"intermediate_size\": 18432,"
     " \"moe_intermediate_size\": 2048, \"n_routed_experts\": 256, \"num_experts_per_tok\": 8,"
     " \"n_shared_experts\": 1, \"first_k_dense_replace\": 3, \"moe_layer_freq\": 1,"
     " \"q_lora_rank\": 1536, \"kv_lora_rank\": 512, \"qk_nope_head_dim\": 128,"
     " \"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"vocab_size\": 129280,"
     " \"max_position_embeddings\": 163840, \"num_nextn_predict_layers\": 1,"
     " \"tie_word_embeddings\": false}",
     671026419200},
    {"gpt-oss-20b",
     "{\"model_type\": \"gpt_oss\", \"num_hidden_layers\": 24, \"hidden_size\": 2880,"
     " \"num_attention_heads\": 64, \"num_key_value_heads\": 8, \"head_dim\": 64,"
     " \"intermediate_size\": 2880, \"num_local_experts\": 32, \"num_experts_per_tok\": 4,"
     " \"experts_per_token\": 4, \"sliding_window\": 128, \"attention_bias\": true,"
     " \"vocab_size\": 201088, \"max_position_embeddings\": 131072,"
     " \"tie_word_embeddings\": false}",
     20914757184},
    {"Mamba-Codestral-7B-v0.1",
     "{\"model_type\": \"mamba2\", \"num_hidden_layers\": 64, \"hidden_size\": 4096,"
     " \"vocab_size\": 32768, \"num_heads\": 128, \"head_dim\": 64, \"n_groups\": 8,"
     " \"state_size\": 128, \"conv_kernel\": 4, \"expand\": 2, \"use_bias\": false,"
     " \"use_conv_bias\": true, \"rms_norm\": true, \"tie_word_embeddings\": false}",
     7285403648},
    /* 29 mixers of in 4096 * 16768, convolution 8448 * 5, 3 * 128, norm 8192, out 8192 * 4096; 3
     * attentions of 2 * 4096 * (4096 + 1024); 32 MLPs of 3 * 4096 * 14336 with 2 norms: the model
     * card's
     * 9.78 billion */
    {"Bamba-9B",
     "{\"model_type\": \"bamba\", \"num_hidden_layers\": 32, \"hidden_size\": 4096,"
     " \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336,"
     " \"vocab_size\": 128256, \"attn_layer_indices\": [9, 18, 27], \"mamba_n_heads\": 128,"
     " \"mamba_d_head\": 64, \"mamba_n_groups\": 1, \"mamba_d_state\": 128, \"mamba_d_conv\": 4,"
     " \"mamba_chunk_size\": 256, \"mamba_expand\": 2, \"mamba_conv_bias\": true,"
     " \"mamba_proj_bias\": false, \"attention_bias\": false, \"mlp_bias\": false,"
     " \"tie_word_embeddings\": false}",
     INT64_C(2) * 128256 * 4096 + 4096 +
         29 * (INT64_C(4096) * 16768 + 8448 * 5 + 3 * 128 + 8192 + 8192 * 4096) +
         3 * (INT64_C(2) * 4096 * (4096 + 1024)) + 32 * (INT64_C(3) * 4096 * 14336 + 2 * 4096)},
    {"t5-small",
     "{\"model_type\": \"t5\", \"num_layers\": 6, \"num_decoder_layers\": 6, \"d_model\": 512,"
     " \"d_kv\": 64, \"d_ff\": 2048, \"num_heads\": 8, \"vocab_size\": 32128,"
     " \"relative_attention_num_buckets\": 32, \"dropout_rate\": 0.1, \"n_positions\": 512,"
     " \"is_encoder_decoder\": true}",
     60506624},
    {"flan-t5-base",
     "{\"model_type\": \"t5\", \"num_layers\": 12, \"num_decoder_layers\": 12, \"d_model\": 768,"
     " \"d_kv\": 64, \"d_ff\": 2048, \"num_heads\": 12, \"vocab_size\": 32128,"
     " \"feed_forward_proj\": \"gated-gelu\", \"tie_word_embeddings\": false}",
     247577856},
    /* with biases of queries, keys, values and the projection behind: 3 * 8 + 8 more in 1 layer */
    {"llama with biases",
     "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 8,"
     " \"num_attention_heads\": 2, \"intermediate_size\": 16, \"vocab_size\": 10,"
     " \"attention_bias\": true}",
     2 * 10 * 8 + 8 + 4 * 64 + 3 * 8 * 16 + 2 * 8 + 4 * 8},
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

/* ---- windows ---- */

#define DECODER(type, more)                                                                        \
    "{\"model_type\": \"" type "\", \"num_hidden_layers\": 4, \"hidden_size\": 8,"                 \
    " \"num_attention_heads\": 2, \"intermediate_size\": 16, \"vocab_size\": 10, " more "}"

#define SLIDING "\"use_sliding_window\": true, \"sliding_window\": 5, "
#define OSS     "\"num_local_experts\": 4, \"num_experts_per_tok\": 2, "

/* The window of each of 4 layers, 0 for none; as transformers reads the keys: Mistral has one
 * everywhere, of 4096 where the file is silent; Qwen2 and Qwen3 from max_window_layers on; GPT-OSS
 * in the first of two; a list of layers says it for each. */
static const struct {
    const char *row, *config;
    uint32_t windows[4];
} windows[] = {
    {"mistral", DECODER("mistral", "\"sliding_window\": 7"), {7, 7, 7, 7}},
    {"mistral, none", DECODER("mistral", "\"sliding_window\": null"), {0}},
    {"mistral, silent", DECODER("mistral", "\"x\": 1"), {4096, 4096, 4096, 4096}},
    {"mixtral, silent",
     DECODER("mixtral", "\"num_local_experts\": 4, \"num_experts_per_tok\": 2"),
     {0}},
    {"qwen2, off", DECODER("qwen2", "\"sliding_window\": 5, \"max_window_layers\": 0"), {0}},
    {"qwen2, on", DECODER("qwen2", SLIDING "\"max_window_layers\": 3"), {0, 0, 0, 5}},
    {"qwen2, on for none", DECODER("qwen2", SLIDING "\"x\": 1"), {0}},
    {"qwen2, null",
     DECODER("qwen2", "\"use_sliding_window\": true, \"sliding_window\": null,"
                      " \"max_window_layers\": 0"),
     {0}},
    {"qwen3, a list",
     DECODER("qwen3", SLIDING "\"layer_types\": [\"full_attention\", \"sliding_attention\","
                              " \"sliding_attention\", \"full_attention\"]"),
     {0, 5, 5, 0}},
    {"gpt-oss", DECODER("gpt_oss", OSS "\"x\": 1"), {128, 0, 128, 0}},
    {"gpt-oss, a list",
     DECODER("gpt_oss", OSS "\"sliding_window\": 3, \"layer_types\": [\"full_attention\","
                            " \"full_attention\", \"full_attention\", \"sliding_attention\"]"),
     {0, 0, 0, 3}},
};

static void test_windows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(windows); i++) {
        cs_net net;
        cs_error error;
        uint32_t n = 0;
        if (read_text(windows[i].config, "{}", &net, &error) != CS_OK)
            fail_msg("%s: %s", windows[i].row, error.text);
        for (uint32_t p = 0; p < net.n_ops; p++)
            if (net.ops[p].kind == CS_OP_ATTENTION)
                expect_int(windows[i].row, windows[i].windows[n++], net.ops[p].attention.window);
        expect_int(windows[i].row, 4, n);
        cs_net_finish(&net);
    }
}

/* ---- what users get wrong ---- */

#define KNOWN "`sim list model-types` has them"

#define GPT2                                                                                       \
    "{\"model_type\": \"gpt2\", \"n_layer\": 1, \"n_embd\": 8, \"n_head\": 2, \"vocab_size\": 9}"

static const struct {
    const char *row, *config, *params, *message;
} errors[] = {
    {"an unknown architecture", "{\"model_type\": \"rwkv\"}", "{}",
     "config.json: /model_type: unknown architecture \"rwkv\"; known: " KNOWN},
    {"a typo", "{\"model_type\": \"lama\"}", "{}",
     "config.json: /model_type: unknown architecture \"lama\"; did you mean \"llama\"? "
     "known: " KNOWN},
    {"a size of the experts is missing", DECODER("mixtral", "\"num_local_experts\": 8"), "{}",
     "config.json: missing key \"num_experts_per_tok\": must be a whole number from 1 to 1048576"},
    {"dense layers between",
     DECODER("qwen3_moe", "\"num_experts\": 4, \"num_experts_per_tok\": 2,"
                          " \"moe_intermediate_size\": 8, \"decoder_sparse_step\": 2,"
                          " \"mlp_only_layers\": [1]"),
     "{}",
     "config.json: /decoder_sparse_step: must be 1, all that is supported (got 2)\n"
     "config.json: /mlp_only_layers: must be [], all that is supported (got [1])"},
    {"a bias of the MLP", DECODER("llama", "\"mlp_bias\": true"), "{}",
     "config.json: /mlp_bias: must be false, all that is supported (got true)"},
    {"another attention", DECODER("qwen3", "\"layer_types\": [\"linear_attention\"]"), "{}",
     "config.json: /layer_types/0: unknown value \"linear_attention\"; did you mean "
     "\"sliding_attention\"? known: full_attention, sliding_attention"},
    {"too few layers", DECODER("qwen3", "\"layer_types\": [\"full_attention\"]"), "{}",
     "config.json: /layer_types: must have an element for each of the 4 layers (got 1)"},
    {"a mixer of other sizes",
     "{\"model_type\": \"mamba2\", \"num_hidden_layers\": 1, \"hidden_size\": 64,"
     " \"vocab_size\": 10, \"num_heads\": 3}",
     "{}",
     "config.json: num_heads, 3, times head_dim, 64, must be expand, 2, times hidden_size, 64"},
    {"a convolution without bias",
     "{\"model_type\": \"mamba2\", \"num_hidden_layers\": 1, \"hidden_size\": 64,"
     " \"vocab_size\": 10, \"num_heads\": 2, \"use_conv_bias\": false}",
     "{}", "config.json: /use_conv_bias: must be true, all that is supported (got false)"},
    {"a layer beyond",
     DECODER("bamba", "\"mamba_d_head\": 8, \"mamba_n_heads\": 2, \"attn_layer_indices\": [4]"),
     "{}", "config.json: /attn_layer_indices: must be numbers of layers, below 4"},
    {"another MLP",
     "{\"model_type\": \"t5\", \"num_layers\": 1, \"d_model\": 8, \"d_kv\": 4, \"d_ff\": 8,"
     " \"num_heads\": 2, \"vocab_size\": 9, \"feed_forward_proj\": \"gated-silu\"}",
     "{}",
     "config.json: /feed_forward_proj: unknown value \"gated-silu\"; did you mean \"gated-gelu\"? "
     "known: relu, gated-gelu"},
    {"a decoder without encoder", GPT2, "{\"decoder_sequence\": 4}",
     "p: unknown key \"decoder_sequence\"; known: sequence, attention"},
    {"a capacity without experts", GPT2, "{\"capacity\": 1}",
     "p: unknown key \"capacity\"; known: sequence, attention"},
    {"more predictions than modules", GPT2, "{\"next_tokens\": 1}",
     "p: unknown key \"next_tokens\"; known: sequence, attention"},
    {"a capacity of an MLP", DECODER("llama", "\"x\": 1"), "{\"capacity\": 1}",
     "config.json: llama: capacity goes with experts only"},
    {"more predictions than the model has", DECODER("llama", "\"x\": 1"), "{\"next_tokens\": 1}",
     "p: unknown key \"next_tokens\"; known: sequence, attention, capacity"},
    {"keys of another architecture",
     DECODER("novel", "\"num_local_experts\": 8, \"num_experts_per_tok\": 2,"
                      " \"mamba_d_state\": 16"),
     "{}",
     "config.json: /model_type: unknown architecture \"novel\"; known: " KNOWN
     "; \"mixtral\" has its keys except mamba_d_state: describe it in a "
     "file "
     "that is like it (docs/how-to/named-model.md)"},
    {"no architecture", "{}", "{}",
     "config.json: /model_type: unknown architecture \"\"; known: " KNOWN},
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
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
