/* Rules for the section "model": which network, of which sizes, in which numbers. */
#include "sim/base/number.h"
#include "sim/validate/point-rules.h"

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

static void write_gpt(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    if (!model->tied)
        cs_point_rules_miss(rules, "a GPT-like decoder whose last matrix is its own");
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
    cs_point_rules_assume(rules, "an encoder without a head that predicts tokens");
    fprintf(out,
            "\"name\": \"bert\", \"parameters\": {\"layers\": %u, \"hidden\": %u, \"heads\": %u, "
            "\"sequence\": %u, \"positions\": %u, \"vocabulary\": %u, \"intermediate\": %u, "
            "\"dropout\": %.9g, \"attention\": \"%s\"}",
            model->layers, model->hidden, model->heads, model->seq, model->seq, vocabulary(rules),
            model->ffn, dropout(rules), attention(rules));
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
    const cs_point_model *model = rules->point->model;
    fputs("\"name\": \"llama\", \"parameters\": {", out);
    write_llama_sizes(rules, out);
    fprintf(out, ", \"intermediate\": %u}", model->ffn);
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
    if (model->shared_ffn > 0 || model->dense_layers > 0)
        cs_point_rules_miss(rules, "shared experts or dense layers without latent attention");
    fprintf(out, "\"name\": \"%s\", \"parameters\": {", name);
    write_llama_sizes(rules, out);
    write_experts(rules, out);
    if (model->sliding_window > 0)
        fprintf(out, ", \"window\": %u, \"pattern\": \"wf\"", model->sliding_window);
    fputs("}", out);
}

/* Megatron-LM's arguments have hyphens. */
static uint32_t latent(const cs_point_model *model, const char *key, const char *hyphened)
{
    const cJSON *value = cs_json_member(model->mla, key);
    value = value ? value : cs_json_member(model->mla, hyphened);
    return cJSON_IsNumber(value) && value->valuedouble > 0 ? (uint32_t)value->valuedouble : 0;
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
            model->dense_layers, model->mtp_layers, attention(rules));
    write_experts(rules, out);
    fputs("}", out);
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

static void write_decoder(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    const bool gated = is(model->act, "swiglu");
    const bool plain = is(model->act, "gelu") && is(model->norm, "layernorm") &&
                       or_else(model->kv_heads, model->heads) == model->heads &&
                       !is(model->pos, "rope") && !is(model->pos, "yarn");
    if (is(model->act, "squared_relu"))
        cs_point_rules_miss(rules, "MLPs with squared ReLU");
    else if (model->mla)
        cs_point_rules_miss(rules, "latent attention without gated MLPs");
    else if (gated && is(model->norm, "rmsnorm"))
        write_llama(rules, out);
    else if (plain)
        write_gpt(rules, out);
    else
        cs_point_rules_miss(
            rules, "a decoder with %s, %s, %s positions%s", model->norm ? model->norm : "?",
            model->act ? model->act : "?", model->pos ? model->pos : "?",
            or_else(model->kv_heads, model->heads) < model->heads ? ", shared keys" : "");
}

static void write_mixtures(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    if (!is(model->act, "swiglu"))
        cs_point_rules_miss(rules, "experts with %s", model->act ? model->act : "?");
    else if (model->mla)
        write_deepseek(rules, out);
    else if (model->sliding_window > 0)
        write_mixture(rules, "gpt_oss", out);
    else
        write_mixture(rules, model->qk_norm ? "qwen3" : "mixtral", out);
}

static void write_network(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    if (model->mamba)
        cs_point_rules_miss(rules, "Mamba layers");
    else if (model->unknown_architecture)
        cs_point_rules_miss(rules, "stated: the architecture");
    else if (starts(model->kind, "encoder-decoder"))
        cs_point_rules_miss(rules, "encoders with decoders");
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

static const char *precision(cs_point_rules *rules)
{
    static const char *const known[] = {"fp32", "tf32", "fp16", "bf16"};
    const char *given = rules->point->precision;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(given, known[i]) == 0)
            return known[i];
    if (starts(given, "fp8"))
        cs_point_rules_miss(rules, "fp8 matrix products");
    else
        cs_point_rules_miss(rules, "%s matrix products", given);
    return "fp32";
}

/* Stated; else Megatron-LM sums gradients of bf16 weights in fp32 (megatron/training/arguments.py:
 * "accumulate and all-reduce gradients in fp32 for bfloat16 data type"), unless it is told to
 * reduce them in bf16, and those of fp16 weights in fp16. */
bool cs_point_rules_sums_in_fp32(const cs_point *point)
{
    if (point->options->grad_dtype)
        return is(point->options->grad_dtype, "fp32");
    return cs_point_rules_megatron(point) && is(point->precision, "bf16") &&
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
            "\"recompute\": %s, \"batch_size\": %u, \"optimizer\": \"%s\", \"gradients\": \"%s\"}",
            device ? device : "", precision(rules), full ? "true" : "false", point->batch->global,
            optimizer(point), cs_point_rules_sums_in_fp32(point) ? "fp32" : "weights");
}

/* ---- measured times of passes ---- */

/* A stage is one layer with the rank's times over its stages; a message takes what it was measured
 * to take, whatever its size, so sizes are left out. */
void cs_point_rules_profile(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const cs_point_profile *times = point->options->profiled_ms;
    const double scale = 1e-3 / point->parallel->vpp;
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
    for (uint32_t s = 0; s < point->parallel->pp * point->parallel->vpp; s++)
        fprintf(out,
                "%s{\"name\": \"stage %u\", \"forward\": %s, \"backward_input\": %s, "
                "\"backward_weight\": %s, \"weights\": 0, \"output\": 0}",
                s > 0 ? ", " : "", s,
                cs_number_format(times->forward * scale, forward, sizeof(forward)),
                cs_number_format(times->backward_input * scale, input, sizeof(input)),
                cs_number_format(times->backward_weight * scale, weight, sizeof(weight)));
    fputs("]}}", out);
}
