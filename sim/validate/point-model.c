/* Rules for the section "model": which network, of which sizes, in which numbers. */
#include "sim/base/number.h"
#include "sim/validate/point-rules.h"

#include <stdlib.h>
#include <string.h>

static bool is(const char *text, const char *word)
{
    return text && strcmp(text, word) == 0;
}

static bool starts(const char *text, const char *with)
{
    return text && strncmp(text, with, strlen(with)) == 0;
}

/* ---- parameters ---- */

/* Megatron-LM pads to a multiple of make-vocab-size-divisible-by (128) times the tensor-parallel
 * ranks (megatron/training/tokenizer, _vocab_size_with_padding). */
static uint32_t vocabulary(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    const cJSON *given = cs_point_rules_argument(point, "make-vocab-size-divisible-by");
    const uint32_t unit =
        (cJSON_IsNumber(given) && given->valueint > 0 ? (uint32_t)given->valueint : 128) *
        point->parallel->tp;
    const uint32_t vocab = point->model->vocab;
    return cs_point_rules_megatron(point) && unit > 0 ? (vocab + unit - 1) / unit * unit : vocab;
}

/* Of hidden states and of attention: Megatron-LM's arguments default to 0.1. */
static double dropout(cs_point_rules *rules)
{
    const cJSON *given = cs_point_rules_argument(rules->point, "hidden-dropout");
    if (rules->point->args)
        return cJSON_IsNumber(given) ? given->valuedouble : 0.1;
    cs_point_rules_assume(rules, "no dropout, where the point does not state any");
    return 0;
}

/* As the point says; else Megatron-LM's argument; else what the framework had. Megatron-LM without
 * TransformerEngine, and LiBai, compute the matrix of weights unless they are asked for a fused
 * kernel. */
static const char *attention(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    const cJSON *given = point->options->flash_attention;
    const char *backend = cJSON_GetStringValue(cs_point_rules_argument(point, "attention-backend"));
    const char *kernels = cJSON_GetStringValue(cs_point_rules_argument(point, "transformer-impl"));
    if (given)
        return cJSON_IsTrue(given) ? "flash" : "math";
    if (backend)
        return is(backend, "unfused") || is(backend, "local") ? "math" : "flash";
    if (point->args)
        return is(kernels, "local") && !cs_point_rules_argument(point, "use-flash-attn") ? "math"
                                                                                         : "flash";
    const bool math = starts(point->framework, "Megatron-LM") || is(point->framework, "LiBai");
    cs_point_rules_assume(rules, "attention is %s, where the point does not say",
                          math ? "not a fused kernel" : "a fused kernel");
    return math ? "math" : "flash";
}

static uint32_t or_else(uint32_t given, uint32_t fallback)
{
    return given > 0 ? given : fallback;
}

/* Features within an MLP. Megatron-LM's are 4 times those of a token, or with SwiGLU two thirds of
 * that, rounded down to a multiple of 64, unless they are given (megatron/training/arguments.py,
 * ffn_hidden_size). */
static uint32_t inner_features(const cs_point *point)
{
    const bool gated = cJSON_IsTrue(cs_point_rules_argument(point, "swiglu"));
    if (!gated || cs_point_rules_argument(point, "ffn-hidden-size"))
        return point->model->ffn;
    return (uint32_t)(UINT64_C(8) * point->model->hidden / 3 / 64 * 64);
}

static void write_gpt(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    if (is(model->pos, "alibi") || is(model->pos, "none"))
        cs_point_rules_assume(rules, "learned positions in place of %s",
                              is(model->pos, "none") ? "none" : "ALiBi");
    if (!model->bias)
        cs_point_rules_assume(rules, "linear layers have biases, where the point's have none");
    fprintf(out,
            "\"name\": \"gpt\", \"parameters\": {\"layers\": %u, \"hidden\": %u, \"heads\": %u, "
            "\"sequence\": %u, \"vocabulary\": %u, \"intermediate\": %u, \"dropout\": %.9g, "
            "\"attention\": \"%s\"}",
            model->layers, model->hidden, model->heads, model->seq, vocabulary(rules), model->ffn,
            dropout(rules), attention(rules));
}

static void write_bert(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    fprintf(out,
            "\"name\": \"bert\", \"parameters\": {\"layers\": %u, \"hidden\": %u, \"heads\": %u, "
            "\"sequence\": %u, \"positions\": %u, \"vocabulary\": %u, \"intermediate\": %u, "
            "\"dropout\": %.9g, \"attention\": \"%s\", \"head\": true}",
            model->layers, model->hidden, model->heads, model->seq, model->seq, vocabulary(rules),
            model->ffn, dropout(rules), attention(rules));
}

/* NeMo and Megatron-Bridge fine-tune on SQuAD, whose samples are packed into sequences without
 * attending to each other (performance_summary of its pages: "Packed Sequence
 * Length"). A paragraph of SQuAD has 117 words on average, a question 10 (Rajpurkar et al., 2016,
 * arXiv 1606.05250): with the words of the template about 200 tokens, of which a token attends to
 * half. MLPerf's samples, of GovReport, are long. 0: it attends to the sequence. */
static uint32_t window_of_samples(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    const bool tuned = point->options->lora || strstr(point->id, "-sft-");
    if (!tuned || cs_point_rules_submission(point) ||
        !(starts(point->framework, "NeMo") || starts(point->framework, "Megatron-Bridge")))
        return 0;
    cs_point_rules_assume(rules, "samples of 200 tokens are packed in fine-tuning");
    return 100;
}

/* What Llama and its kin with experts have in common. */
static void write_llama_sizes(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    fprintf(out,
            "\"layers\": %u, \"hidden\": %u, \"heads\": %u, \"kv_heads\": %u, \"head\": %u, "
            "\"sequence\": %u, \"vocabulary\": %u, \"tied\": %s, \"attention\": \"%s\"",
            model->layers, model->hidden, model->heads, or_else(model->kv_heads, model->heads),
            model->head_dim, model->seq, vocabulary(rules), model->tied ? "true" : "false",
            attention(rules));
}

static void write_llama(cs_point_rules *rules, FILE *out)
{
    fputs("\"name\": \"llama\", \"parameters\": {", out);
    write_llama_sizes(rules, out);
    fprintf(out, ", \"intermediate\": %u", inner_features(rules->point));
    const uint32_t window = window_of_samples(rules);
    if (window > 0)
        fprintf(out, ", \"window\": %u", window);
    fputs("}", out);
}

static void write_experts(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const cs_point_model *model = point->model;
    fprintf(out,
            ", \"experts\": %u, \"top_k\": %u, \"expert_intermediate\": %u, \"capacity\": %.9g",
            model->experts, or_else(model->topk, 1), or_else(model->moe_ffn, model->ffn),
            point->options->moe_pad_to_capacity ? point->options->moe_capacity_factor : 0);
}

static void write_mixture(cs_point_rules *rules, const char *name, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    fprintf(out, "\"name\": \"%s\", \"parameters\": {", name);
    write_llama_sizes(rules, out);
    write_experts(rules, out);
    if (model->sliding_window > 0)
        fprintf(out, ", \"window\": %u, \"pattern\": \"wf\"", model->sliding_window);
    fputs("}", out);
}

static const char *positions(cs_point_rules *rules)
{
    const char *given = rules->point->model->pos;
    if (is(given, "alibi"))
        cs_point_rules_assume(rules, "ALiBi is part of the kernel of attention");
    return is(given, "rope") || is(given, "yarn") ? "rotary"
           : is(given, "learned")                 ? "learned"
                                                  : "none";
}

/* Megatron-LM's arguments have hyphens. */
static uint32_t latent(const cs_point_model *model, const char *key, const char *hyphened)
{
    const cJSON *value = cs_json_member(model->mla, key);
    value = value ? value : cs_json_member(model->mla, hyphened);
    return cJSON_IsNumber(value) && value->valuedouble > 0 ? (uint32_t)value->valuedouble : 0;
}

/* Blocks in front without experts: as stated; or as Megatron-LM's moe-layer-freq has them in the
 * form "([0]*3+[1]*11)", a 0 or 1 for each block. */
static uint32_t dense_layers(const cs_point *point)
{
    const char *pattern = cJSON_GetStringValue(cs_point_rules_argument(point, "moe-layer-freq"));
    const uint32_t stated = point->model->dense_layers;
    if (stated > 0 || !pattern || !starts(pattern, "([0]*"))
        return stated;
    char *end;
    const unsigned long first = strtoul(pattern + strlen("([0]*"), &end, 10);
    if (!starts(end, "+[1]*"))
        return stated;
    const unsigned long others = strtoul(end + strlen("+[1]*"), &end, 10);
    const bool all = strcmp(end, ")") == 0 && first <= point->model->layers &&
                     others == point->model->layers - first;
    return all ? (uint32_t)first : stated;
}

static void write_deepseek(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    const uint32_t expert = or_else(model->moe_ffn, 1);
    fprintf(out,
            "\"name\": \"deepseek_v3\", \"parameters\": {\"layers\": %u, \"hidden\": %u, "
            "\"heads\": %u, \"sequence\": %u, \"vocabulary\": %u, \"intermediate\": %u, "
            "\"q_lora_rank\": %u, \"kv_lora_rank\": %u, \"qk_nope_head\": %u, "
            "\"qk_rope_head\": %u, \"v_head\": %u, \"shared_experts\": %u, \"dense_layers\": %u, "
            "\"next_tokens\": %u, \"attention\": \"%s\"",
            model->layers, model->hidden, model->heads, model->seq, vocabulary(rules), model->ffn,
            latent(model, "q_lora_rank", "q-lora-rank"),
            latent(model, "kv_lora_rank", "kv-lora-rank"),
            latent(model, "qk_head_dim", "qk-head-dim"),
            latent(model, "qk_pos_emb_head_dim", "qk-pos-emb-head-dim"),
            latent(model, "v_head_dim", "v-head-dim"), model->shared_ffn / expert,
            dense_layers(rules->point), model->mtp_layers, attention(rules));
    write_experts(rules, out);
    fputs("}", out);
}

static void write_latent(const cs_point_model *model, FILE *out)
{
    fprintf(out,
            ", \"q_lora_rank\": %u, \"kv_lora_rank\": %u, \"qk_nope_head\": %u, "
            "\"qk_rope_head\": %u, \"v_head\": %u",
            latent(model, "q_lora_rank", "q-lora-rank"),
            latent(model, "kv_lora_rank", "kv-lora-rank"),
            latent(model, "qk_head_dim", "qk-head-dim"),
            latent(model, "qk_pos_emb_head_dim", "qk-pos-emb-head-dim"),
            latent(model, "v_head_dim", "v-head-dim"));
}

/* Any decoder: what it is made of is written out. */
static void write_choice(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    fputs("\"name\": \"decoder\", \"parameters\": {", out);
    write_llama_sizes(rules, out);
    fprintf(out,
            ", \"intermediate\": %u, \"activation\": \"%s\", \"norm\": \"%s\", "
            "\"positions\": \"%s\", \"bias\": %s, \"head_norms\": %s, \"dropout\": %.9g",
            inner_features(rules->point), model->act ? model->act : "gelu",
            model->norm ? model->norm : "layernorm", positions(rules),
            model->bias ? "true" : "false", model->qk_norm ? "true" : "false", dropout(rules));
    if (model->experts > 0)
        write_experts(rules, out);
    if (model->experts > 0)
        fprintf(out, ", \"shared_intermediate\": %u, \"dense_layers\": %u", model->shared_ffn,
                dense_layers(rules->point));
    if (model->mla)
        write_latent(model, out);
    if (model->sliding_window > 0)
        fprintf(out, ", \"window\": %u, \"pattern\": \"wf\"", model->sliding_window);
    fprintf(out, ", \"next_tokens\": %u}", model->mtp_layers);
}

static uint32_t argument_or(cs_point_rules *rules, const char *name, uint32_t fallback)
{
    const cJSON *given = cs_point_rules_argument(rules->point, name);
    return cJSON_IsNumber(given) && given->valuedouble >= 1 ? (uint32_t)given->valuedouble
                                                            : fallback;
}

/* Megatron-LM's has learned positions and layer norms, where T5 has relative ones and RMS norms. */
static void write_t5(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    cs_point_rules_assume(rules, "an encoder and decoder with the norms and positions of T5");
    fprintf(out,
            "\"name\": \"t5\", \"parameters\": {\"layers\": %u, \"decoder_layers\": %u, "
            "\"hidden\": %u, \"heads\": %u, \"head\": %u, \"intermediate\": %u, "
            "\"sequence\": %u, \"decoder_sequence\": %u, \"vocabulary\": %u, \"tied\": %s, "
            "\"dropout\": %.9g}",
            argument_or(rules, "encoder-num-layers", model->layers),
            argument_or(rules, "decoder-num-layers", model->layers), model->hidden, model->heads,
            or_else(model->head_dim, model->hidden / or_else(model->heads, 1)), model->ffn,
            argument_or(rules, "encoder-seq-length", model->seq),
            argument_or(rules, "decoder-seq-length", model->seq), vocabulary(rules),
            model->tied ? "true" : "false", dropout(rules));
}

static void write_cnn(cs_point_rules *rules, FILE *out)
{
    static const char *const known[] = {"vgg16",     "resnet18",    "resnet50",  "resnet101",
                                        "resnet152", "densenet121", "cosmoflow", "inception_v3"};
    const char *name = rules->point->model->name;
    size_t i = 0;
    while (i < sizeof(known) / sizeof(known[0]) && strcmp(name, known[i]) != 0)
        i++;
    if (i == sizeof(known) / sizeof(known[0]))
        cs_point_rules_miss(rules, "the network %s", name);
    else
        fprintf(out, "\"name\": \"%s\"", name);
}

/* ---- which network ---- */

/* GPT-2's layout, whose queries, keys and values are one product. */
static bool is_gpt(const cs_point_model *model)
{
    return is(model->act, "gelu") && is(model->norm, "layernorm") && model->tied && !model->mla &&
           or_else(model->kv_heads, model->heads) == model->heads && !is(model->pos, "rope") &&
           !is(model->pos, "yarn");
}

static void write_decoder(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    const bool llama = is(model->act, "swiglu") && is(model->norm, "rmsnorm") &&
                       is(model->pos, "rope") && !model->bias && !model->mla;
    if (!model->act || !model->norm)
        cs_point_rules_miss(rules, "stated: the architecture");
    else if (llama)
        write_llama(rules, out);
    else if (is_gpt(model))
        write_gpt(rules, out);
    else
        write_choice(rules, out);
}

static void write_mixtures(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    const bool gated = is(model->act, "swiglu") && is(model->norm, "rmsnorm");
    const bool shared = model->shared_ffn > 0 || dense_layers(rules->point) > 0;
    if (!model->act || !model->norm)
        cs_point_rules_miss(rules, "stated: the architecture");
    else if (gated && model->mla && model->shared_ffn % or_else(model->moe_ffn, 1) == 0)
        write_deepseek(rules, out);
    else if (gated && model->sliding_window > 0 && model->bias)
        write_mixture(rules, "gpt_oss", out);
    else if (gated && !shared && !model->mla && !model->bias)
        write_mixture(rules, model->qk_norm ? "qwen3" : "mixtral", out);
    else
        write_choice(rules, out);
}

static void write_network(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    if (model->unknown_architecture)
        cs_point_rules_miss(rules, "stated: the architecture");
    else if (model->mamba)
        cs_point_rules_miss(rules, "Mamba layers beside experts");
    else if (is(model->kind, "encoder-decoder"))
        write_t5(rules, out);
    else if (starts(model->kind, "encoder-decoder"))
        cs_point_rules_miss(rules, "experts in encoders with decoders");
    else if (is(model->kind, "cnn"))
        write_cnn(rules, out);
    else if (is(model->kind, "encoder"))
        write_bert(rules, out);
    else if (is(model->kind, "decoder"))
        write_decoder(rules, out);
    else if (is(model->kind, "decoder-moe"))
        write_mixtures(rules, out);
    else
        cs_point_rules_miss(rules, "networks of the kind \"%s\"", model->kind);
}

/* ---- numbers ---- */

/* Words behind fp8 say how operands are scaled ("fp8-rowwise"), which decides how exact a product
 * is, not what it takes. */
static const char *precision(cs_point_rules *rules)
{
    static const char *const known[] = {"fp32", "tf32", "fp16", "bf16", "mxfp8", "nvfp4"};
    const char *given = rules->point->precision;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(given, known[i]) == 0)
            return known[i];
    if (starts(given, "fp8"))
        return "fp8";
    cs_point_rules_miss(rules, "%s matrix products", given);
    return "fp32";
}

/* Stated; else Megatron-LM sums gradients of bf16 weights in fp32
 * (megatron/training/arguments.py: "accumulate and all-reduce gradients in fp32 for bfloat16 data
 * type"), whether products are in bf16 or, with its argument bf16, in a narrower type; unless it
 * is told to reduce them in bf16. Those of fp16 weights it sums in fp16. torchtitan reduces them
 * in fp32 (mixed_precision_reduce, torchtitan/config_manager.py). */
bool cs_point_rules_sums_in_fp32(const cs_point *point)
{
    if (point->options->grad_dtype)
        return is(point->options->grad_dtype, "fp32");
    if (starts(point->framework, "torchtitan"))
        return true;
    return cs_point_rules_megatron(point) &&
           (is(point->precision, "bf16") || cs_point_rules_argument(point, "bf16")) &&
           !starts(point->framework, "Megatron-Bridge") &&
           !cs_point_rules_argument(point, "grad-reduce-in-bf16");
}

static const char *optimizer(const cs_point *point)
{
    if (point->options->no_optimizer_step)
        return "none";
    return is(point->optimizer, "momentum") || is(point->optimizer, "sgd") ? point->optimizer
                                                                           : "adam";
}

/* ---- what is computed again ---- */

/* Where a point does not say: NVIDIA's recipes for MaxText keep the products around attention
 * (NVIDIA/dgxc-benchmarking at 35a9aec, maxtext/configure.sh: query_proj=device, ..., and at
 * 0b71cfd save_qkv_proj), and XLA drops the last product of a block, which nothing reads; those for
 * PaxML keep all products (paxml/paxml_mod_configs.py: SAVE_DOT_ONLY). */
static const struct {
    const char *framework, *operators, *note;
} usual[] = {
    {"MaxText",
     "\"attention\", \"gate_proj\", \"up_proj\", \"act\", \"mul\", \"input_layernorm\", "
     "\"post_attention_layernorm\"",
     "MaxText keeps the products around attention, as in NVIDIA's recipes"},
    {"PaxML", "\"attention\", \"ln_1\", \"ln_2\"", "PaxML keeps products, as in NVIDIA's recipes"},
};

static void write_usual(cs_point_rules *rules, FILE *out)
{
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        if (!starts(rules->point->framework, usual[i].framework))
            continue;
        cs_point_rules_assume(rules, "%s", usual[i].note);
        fprintf(out, ", \"recompute_operators\": [%s]", usual[i].operators);
        return;
    }
    cs_point_rules_assume(rules, "no recomputation, where the point does not state any");
}

/* What the words of a point are called here: parts of names of operators. */
static const struct {
    const char *word, *operators;
    bool discards; /* what they make is not kept for others (Megatron Core:
                    * CheckpointWithoutOutput) */
} recomputed[] = {
    {"core_attn", "\"attention\"", false},
    {"default", "\"attention\"", false},
    {"mla_up_proj",
     "\"q_b_proj\", \"q_rope\", \"q_nope\", \"q_rotary\", \"q\", \"kv_b_proj\", \"k_nope\", "
     "\"k_rotary\", \"k\", \"v\"",
     true},
    {"layernorm", "\"input_layernorm\", \"post_attention_layernorm\"", true},
    {"moe_act", "\"act\", \"mul\"", true},
    {"mlp", "\"mlp\"", false},
    /* torchtitan: all but the kernels of attention and every second product */
    {"every second matmul",
     "\"k_proj\", \"o_proj\", \"up_proj\", \"input_layernorm\", "
     "\"post_attention_layernorm\", \"q_rotary\", \"k_rotary\", \"act\", "
     "\"mul\"",
     true},
};

/* A list of the operators that the point's words mean; with `discards`, of those only that discard.
 * Returns whether there are any. */
static bool write_operators(const char *given, const char *key, bool discards, FILE *out)
{
    bool any = false;
    for (size_t i = 0; i < sizeof(recomputed) / sizeof(recomputed[0]); i++) {
        if (!strstr(given, recomputed[i].word) || (discards && !recomputed[i].discards))
            continue;
        if (any)
            fputs(", ", out);
        else
            fprintf(out, ", \"%s\": [", key);
        fputs(recomputed[i].operators, out);
        any = true;
    }
    if (any)
        fputs("]", out);
    return any;
}

static void write_recomputed(cs_point_rules *rules, FILE *out)
{
    const char *given = rules->point->recompute;
    if (is(given, "unknown"))
        write_usual(rules, out);
    if (!starts(given, "selective"))
        return;
    if (write_operators(given, "recompute_operators", false, out))
        write_operators(given, "discard_operators", true, out);
    else
        cs_point_rules_miss(rules, "stated: what is computed again");
}

/* NeMo and the MLPerf reference adapt the two products around attention, of rank 16: that of
 * queries, keys and values, which is one there, and the one behind it. */
static void write_adapters(cs_point_rules *rules, FILE *out)
{
    if (!rules->point->options->lora)
        return;
    cs_point_rules_assume(rules, "adapters of rank 16 beside the linear layers of attention");
    fputs(", \"lora\": {\"rank\": 16, \"targets\": [\"q_proj\", \"o_proj\"]}", out);
}

void cs_point_rules_model(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const bool full = is(point->recompute, "full");
    fputs("\"model\": {", out);
    write_network(rules, out);
    const char *device = cs_point_rules_device(rules);
    if (full)
        cs_point_rules_assume(rules,
                              "full recomputation repeats the first and the last layer as well");
    fprintf(out,
            ", \"device\": \"%s\", \"precision\": \"%s\", \"granularity\": \"block\", "
            "\"recompute\": %s, \"batch_size\": %u, \"optimizer\": \"%s\", \"gradients\": \"%s\"",
            device ? device : "", precision(rules), full ? "true" : "false", point->batch->global,
            optimizer(point), cs_point_rules_sums_in_fp32(point) ? "fp32" : "weights");
    write_recomputed(rules, out);
    write_adapters(rules, out);
    fputs("}", out);
}

/* ---- measured times of passes ---- */

/* A stage is one layer with the rank's times over its stages; a message takes what it was measured
 * to take, whatever its size, so sizes are left out. */
void cs_point_rules_profile(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const cs_point_profile *times = point->options->profiled_ms;
    const double scale = 1e-3 / cs_point_rules_chunks(point);
    char forward[CS_NUMBER_TEXT_BYTES], input[CS_NUMBER_TEXT_BYTES], weight[CS_NUMBER_TEXT_BYTES];
    cs_point_rules_assume(rules,
                          "stages take the measured times of passes, all alike; sizes and the "
                          "update are left out");
    fprintf(out,
            "\"model\": {\"batch_size\": %u, \"inline\": {\"schema_version\": 1, \"name\": "
            "\"measured passes\", \"batch_size\": %u, \"times_only\": true, \"provenance\": "
            "{\"source\": \"measured times of passes\", \"hardware\": \"the point's\", "
            "\"date\": \"1970-01-01\", \"notes\": \"points have no date\"}, \"layers\": [",
            point->batch->global, point->batch->micro);
    for (uint32_t s = 0; s < point->parallel->pp * cs_point_rules_chunks(point); s++)
        fprintf(out,
                "%s{\"name\": \"stage %u\", \"forward\": %s, \"backward_input\": %s, "
                "\"backward_weight\": %s, \"weights\": 0, \"output\": 0}",
                s > 0 ? ", " : "", s,
                cs_number_format(times->forward * scale, forward, sizeof(forward)),
                cs_number_format(times->backward_input * scale, input, sizeof(input)),
                cs_number_format(times->backward_weight * scale, weight, sizeof(weight)));
    fputs("]}}", out);
}
