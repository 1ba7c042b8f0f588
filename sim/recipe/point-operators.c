/* Rules for single operators of the network: which are computed again, which have adapters, and
 * what is offloaded of what they keep. */
#include "sim/recipe/point-rules.h"

#include <ctype.h>
#include <string.h>

static bool starts(const char *text, const char *with)
{
    return text && strncmp(text, with, strlen(with)) == 0;
}

static bool is(const char *text, const char *word)
{
    return text && strcmp(text, word) == 0;
}

/* ---- operators by name ---- */

/* What a network has to have besides for an operator to be there. */
enum {
    GATE = 1,
    ROTARY = 2,
    EXPERTS = 4,
    LATENT = 8, /* latent attention, */
    DENSE = 16,
    MIXED = 32,
    SHARED = 64,
    OWN_FORM = 128,       /* encoders as in their paper, */
    CORE_FORM = 256,      /* or as in Megatron Core */
    QUERY_RANK = 512,     /* latent attention whose queries come from a latent vector, */
    NO_QUERY_RANK = 1024, /* or from the hidden features */
};

static unsigned parts_of(const cs_point *point)
{
    const cs_point_model *model = point->model;
    const bool rotary = is(model->pos, "rope") || is(model->pos, "yarn");
    const bool query_rank = cs_point_rules_latent(model, "q_lora_rank", "q-lora-rank") > 0;
    return (is(model->act, "swiglu") || is(model->act, "geglu") ? GATE : 0U) |
           (rotary ? ROTARY : 0U) | (model->experts > 1 ? EXPERTS : DENSE) |
           (cs_point_rules_megatron(point) ? CORE_FORM : OWN_FORM) | (model->mla ? LATENT : 0U) |
           (!model->mla  ? 0U
            : query_rank ? QUERY_RANK
                         : NO_QUERY_RANK) |
           (model->experts > 1 && model->dense_layers > 0 ? MIXED : 0U) |
           (model->experts > 1 && model->shared_ffn > 0 ? SHARED : 0U);
}

/* What words of points and recipes call operators, by the families that have them. */
typedef struct named {
    const char *word;
    cs_point_family family;
    unsigned needs;
    const char *operators; /* names, or parts of them, as `sim model` shows them */
    bool discards;         /* what they make is not kept for others (Megatron Core:
                            * CheckpointWithoutOutput) */
} named;

#define NORMS "\"input_layernorm\", \"post_attention_layernorm\""

static const named words[] = {
    {"core_attn", CS_FAMILY_LLAMA, 0, "\"attention\"", false},
    {"core_attn", CS_FAMILY_GPT, 0, "\"attention\"", false},
    {"core_attn", CS_FAMILY_BERT, 0, "\"attention.attention\"", false},
    {"core_attn", CS_FAMILY_T5, 0, "\"attention\"", false},
    {"mla_up_proj", CS_FAMILY_LLAMA, QUERY_RANK, "\"q_b_proj\"", true},
    {"mla_up_proj", CS_FAMILY_LLAMA, NO_QUERY_RANK, "\"q_proj\"", true},
    {"mla_up_proj", CS_FAMILY_LLAMA, LATENT,
     "\"q_rope\", \"q_nope\", \"q_rotary\", \"q\", \"kv_b_proj\", \"k_nope\", "
     "\"k_rotary\", \"k\", \"v\"",
     true},
    {"layernorm", CS_FAMILY_LLAMA, 0, NORMS, true},
    {"layernorm", CS_FAMILY_GPT, 0, "\"ln_1\", \"ln_2\"", true},
    {"layernorm", CS_FAMILY_BERT, 0, "\"LayerNorm\"", true},
    {"layernorm", CS_FAMILY_T5, 0, "\"layer_norm\"", true},
    {"moe_act", CS_FAMILY_LLAMA, EXPERTS, "\"experts.act\"", true},
    {"moe_act", CS_FAMILY_LLAMA, EXPERTS | GATE, "\"experts.mul\"", true},
    {"moe", CS_FAMILY_LLAMA, EXPERTS,
     "\"mlp.gate\", \"top_k\", \"dispatch\", \"experts\", \"combine\"", false},
    {"moe", CS_FAMILY_LLAMA, SHARED, "\"shared_experts\", \"mlp.add\"", false},
    {"shared_experts", CS_FAMILY_LLAMA, SHARED, "\"shared_experts\"", false},
    /* of layers without experts, where others have some */
    {"mlp", CS_FAMILY_LLAMA, DENSE, "\"mlp\"", false},
    {"mlp", CS_FAMILY_LLAMA, MIXED, "\"mlp.up_proj\", \"mlp.act\", \"mlp.down_proj\"", false},
    {"mlp", CS_FAMILY_LLAMA, MIXED | GATE, "\"mlp.gate_proj\", \"mlp.mul\"", false},
    {"mlp", CS_FAMILY_GPT, 0, "\"mlp\"", false},
    {"mlp", CS_FAMILY_BERT, 0, "\"output\"", false},
    {"mlp", CS_FAMILY_T5, 0, "\"DenseReluDense\"", false},
    /* torchtitan: all but the kernels of attention and every second product */
    {"every second matmul", CS_FAMILY_LLAMA, 0,
     "\"k_proj\", \"o_proj\", \"up_proj\", " NORMS ", \"act\"", true},
    {"every second matmul", CS_FAMILY_LLAMA, ROTARY, "\"q_rotary\", \"k_rotary\"", true},
    {"every second matmul", CS_FAMILY_LLAMA, GATE, "\"mul\"", true},
};

/* Letters, digits and underscores: "moe" is no word of "moe_act". */
static bool is_of_word(char c)
{
    return c == '_' || isalnum((unsigned char)c);
}

static bool has_text(const char *given, const char *text)
{
    const size_t length = strlen(text);
    for (const char *at = given; (at = strstr(at, text)); at++)
        if ((at == given || !is_of_word(at[-1])) && !is_of_word(at[length]))
            return true;
    return false;
}

/* Megatron Core's word for what it does where none is given. */
static bool has_word(const char *given, const char *word)
{
    return has_text(given, word) || (is(word, "core_attn") && has_text(given, "default"));
}

/* A list of those rows of a table that the words mean and the network has; with `discards`, of
 * those only that discard. Returns whether there are any. */
static bool write_named(cs_point_rules *rules, const named *table, size_t n, const char *given,
                        const char *key, bool discards, FILE *out)
{
    const cs_point_family family = cs_point_rules_family(rules);
    const unsigned parts = parts_of(rules->point);
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (table[i].family != family || (table[i].needs & ~parts) != 0 ||
            !has_word(given, table[i].word) || (discards && !table[i].discards))
            continue;
        if (any)
            fputs(", ", out);
        else
            fprintf(out, ", \"%s\": [", key);
        fputs(table[i].operators, out);
        any = true;
    }
    if (any)
        fputs("]", out);
    return any;
}

/* ---- what is computed again ---- */

/* Where a point does not say: NVIDIA's recipes for MaxText keep the products around attention
 * (NVIDIA/dgxc-benchmarking at 35a9aec, maxtext/configure.sh: query_proj=device, ..., and at
 * 0b71cfd save_qkv_proj), and XLA drops the last product of a block, which nothing reads; those for
 * PaxML keep all products (paxml/paxml_mod_configs.py: SAVE_DOT_ONLY). */
static const named usual[] = {
    {"MaxText", CS_FAMILY_LLAMA, 0, "\"attention\", \"up_proj\", \"act\", " NORMS, false},
    {"MaxText", CS_FAMILY_LLAMA, GATE, "\"gate_proj\", \"mul\"", false},
    {"MaxText", CS_FAMILY_GPT, 0, "\"attention\", \"c_fc\", \"act\", \"ln_1\", \"ln_2\"", false},
    {"PaxML", CS_FAMILY_LLAMA, 0, "\"attention\", " NORMS, false},
    {"PaxML", CS_FAMILY_GPT, 0, "\"attention\", \"ln_1\", \"ln_2\"", false},
};

static void write_usual(cs_point_rules *rules, FILE *out)
{
    const char *framework = rules->point->framework ? rules->point->framework : "";
    if (!write_named(rules, usual, sizeof(usual) / sizeof(usual[0]), framework,
                     "recompute_operators", false, out))
        cs_point_rules_assume(rules, "no recomputation, where the point does not state any");
    else if (starts(framework, "MaxText"))
        cs_point_rules_assume(
            rules, "MaxText keeps the products around attention, as in NVIDIA's recipes");
    else
        cs_point_rules_assume(rules, "PaxML keeps products, as in NVIDIA's recipes");
}

static bool is_known(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i].word) == length && strncmp(words[i].word, word, length) == 0)
            return true;
    return false;
}

static bool has_known(const char *given)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (has_word(given, words[i].word))
            return true;
    return false;
}

/* Of a list in brackets: each word that no row of the table has. */
static void note_unknown(cs_point_rules *rules, const char *given)
{
    const char *at = strchr(given, '[');
    for (size_t length = 0; at && *at; at += length > 0 ? length : 1) {
        for (length = 0; is_of_word(at[length]);)
            length++;
        if (length > 0 && !is_known(at, length))
            cs_point_rules_assume(rules, "nothing is computed again for \"%.*s\"", (int)length, at);
    }
}

static void write_recomputed(cs_point_rules *rules, FILE *out)
{
    const size_t n = sizeof(words) / sizeof(words[0]);
    const char *given = rules->point->recompute;
    if (is(given, "unknown"))
        write_usual(rules, out);
    if (!starts(given, "selective"))
        return;
    note_unknown(rules, given);
    if (write_named(rules, words, n, given, "recompute_operators", false, out))
        write_named(rules, words, n, given, "discard_operators", true, out);
    else if (has_known(given))
        cs_point_rules_assume(rules,
                              "nothing is computed again for \"%s\", of which the network "
                              "has nothing",
                              given);
    else
        cs_point_rules_miss(rules, "stated: what is computed again");
}

/* ---- adapters ---- */

/* MLPerf's reference adapts the two products around attention, of rank 16: that of queries, keys
 * and values, which is one there, and the one behind it. NVIDIA's recipes for speed adapt the
 * former alone (NVIDIA/NeMo, nemo/collections/llm/recipes/llama3_8b.py and llama3_70b.py,
 * finetune_performance_optimizations: target_modules; NVIDIA-NeMo/Megatron-Bridge, recipes/llama).
 */
static const named adapted[] = {
    {"before", CS_FAMILY_GPT, 0, "\"c_attn\"", false},
    {"behind", CS_FAMILY_GPT, 0, "\"attn.c_proj\"", false},
    {"before", CS_FAMILY_BERT, OWN_FORM, "\"query\"", false},
    {"before", CS_FAMILY_BERT, CORE_FORM, "\"linear_qkv\"", false},
    {"behind", CS_FAMILY_BERT, 0, "\"attention.dense\"", false},
    {"before", CS_FAMILY_T5, OWN_FORM, "\"q\"", false},
    {"before", CS_FAMILY_T5, CORE_FORM, "\"linear_qkv\", \"linear_q\", \"linear_kv\"", false},
    {"behind", CS_FAMILY_T5, 0, "\"o\"", false},
};

static bool adapts_one(const cs_point *point)
{
    return starts(point->framework, "NeMo") || starts(point->framework, "Megatron-Bridge");
}

static void write_adapters(cs_point_rules *rules, FILE *out)
{
    if (!rules->point->options->lora)
        return;
    const bool one = adapts_one(rules->point);
    cs_point_rules_assume(rules, "adapters of rank 16 beside the linear layer%s attention",
                          one ? " in front of" : "s of");
    fputs(", \"lora\": {\"rank\": 16", out);
    if (cs_point_rules_family(rules) == CS_FAMILY_LLAMA)
        fprintf(out, ", \"targets\": [\"%s\"%s]",
                (parts_of(rules->point) & QUERY_RANK) != 0 ? "q_b_proj" : "q_proj",
                one ? "" : ", \"o_proj\"");
    else if (!write_named(rules, adapted, sizeof(adapted) / sizeof(adapted[0]),
                          one ? "before" : "before behind", "targets", false, out))
        cs_point_rules_miss(rules, "adapters in networks of the kind \"%s\"",
                            rules->point->model->kind);
    fputs("}", out);
}

void cs_point_rules_operators(cs_point_rules *rules, FILE *out)
{
    write_recomputed(rules, out);
    write_adapters(rules, out);
}

/* ---- what is offloaded ---- */

/* Layers of TransformerEngine's offloading in NVIDIA's recipes (NVIDIA-NeMo/Megatron-Bridge,
 * scripts/performance/configs/llama/llama3_workload_base_configs.py at 00919dc and
 * llama31_workload_base_configs.py: cpu_offloading_num_layers; "fp8" is their FP8_CS). */
typedef struct offloading_recipe {
    const char *model, *gpu, *precision;
    uint32_t layers;
} offloading_recipe;

static const offloading_recipe recipes[] = {
    {"llama3-70b", "gb300", "bf16", 30},   {"llama3-70b", "gb300", "fp8", 20},
    {"llama3-70b", "gb200", "bf16", 20},   {"llama3-70b", "gb200", "fp8", 40},
    {"llama3-70b", "b200", "fp8", 5},      {"llama3.1-405b", "gb300", "bf16", 40},
    {"llama3.1-405b", "gb300", "fp8", 10},
};

/* What each of Megatron Core's modules keeps for its backward (megatron/core/transformer: of
 * attention.py, multi_latent_attention.py, transformer_layer.py and moe/experts.py what is within
 * the context of off_interface). Norms count where they are no part of the product behind them. */
static const named modules[] = {
    {"attn_norm", CS_FAMILY_LLAMA, LATENT, "\"input_layernorm\"", false},
    {"mlp_norm", CS_FAMILY_LLAMA, EXPERTS, "\"post_attention_layernorm\"", false},
    {"qkv_linear", CS_FAMILY_LLAMA, QUERY_RANK, "\"q_a_proj\", \"q_a_layernorm\", \"q_b_proj\"",
     false},
    {"qkv_linear", CS_FAMILY_LLAMA, NO_QUERY_RANK, "\"q_proj\"", false},
    {"qkv_linear", CS_FAMILY_LLAMA, LATENT,
     "\"kv_a_proj_with_mqa\", \"kv_a_layernorm\", \"kv_b_proj\", \"q_rotary\", "
     "\"k_rotary\"",
     false},
    {"core_attn", CS_FAMILY_LLAMA, 0, "\"attention\"", false},
    {"attn_proj", CS_FAMILY_LLAMA, 0, "\"o_proj\"", false},
    {"expert_fc1", CS_FAMILY_LLAMA, EXPERTS, "\"experts.up_proj\"", false},
    {"expert_fc1", CS_FAMILY_LLAMA, EXPERTS | GATE, "\"experts.gate_proj\"", false},
    {"moe_act", CS_FAMILY_LLAMA, EXPERTS, "\"experts.act\"", false},
    {"moe_act", CS_FAMILY_LLAMA, EXPERTS | GATE, "\"experts.mul\"", false},
};

static uint32_t layers_of_recipe(const cs_point *point)
{
    for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++)
        if (starts(point->framework, "Megatron-Bridge") &&
            is(point->model->name, recipes[i].model) &&
            is(cs_point_rules_gpu(point), recipes[i].gpu) &&
            is(point->precision, recipes[i].precision))
            return recipes[i].layers;
    return 0;
}

/* Tensors of 2^20 elements and more, as both implementations have it. */
static void write_modules(cs_point_rules *rules, FILE *out)
{
    const cJSON *given = cs_point_rules_argument(rules->point, "offload-modules");
    fputs("\"offload\": {\"smallest\": 1048576", out);
    if (!cJSON_IsString(given) || !write_named(rules, modules, sizeof(modules) / sizeof(modules[0]),
                                               given->valuestring, "operators", false, out))
        cs_point_rules_miss(rules, "stated: which modules are offloaded");
    fputs("}, ", out);
}

static void check_offload(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    if (!cs_point_rules_divides(point))
        cs_point_rules_miss(rules, "offloading where nothing else is divided than the batch");
    if (is(point->recompute, "full") || point->options->profiled_ms)
        cs_point_rules_miss(rules, "offloading with full recomputation or measured passes");
}

void cs_point_rules_offload(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const bool by_modules =
        cJSON_IsTrue(cs_point_rules_argument(point, "fine-grained-activation-offloading"));
    if (!by_modules && !point->options->offload)
        return;
    check_offload(rules);
    if (by_modules) {
        if (point->parallel->vpp > 1) /* copies then cross from one stage of the rank to the next */
            cs_point_rules_miss(rules, "offloading of modules by ranks of several stages");
        write_modules(rules, out);
        return;
    }
    const uint32_t layers = layers_of_recipe(point);
    if (layers == 0)
        cs_point_rules_miss(rules, "stated: what is offloaded");
    else
        cs_point_rules_assume(
            rules, "activations of %u layers are offloaded, as in NVIDIA's recipe", layers);
    fprintf(out, "\"offload\": {\"layers\": %u}, ", layers);
}
