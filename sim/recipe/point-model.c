/* Rules for the section "model": which network, of which sizes, in which numbers. */
#include "sim/base/number.h"
#include "sim/recipe/point-rules.h"
#include "sim/workload/accelerator.h"

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

/* As the point says; else Megatron-LM's argument; else what the framework had. Megatron-LM without
 * TransformerEngine, LiBai, and transformers ("PyTorch eager"), compute the matrix of weights
 * unless they are asked for a fused kernel. */
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
    const bool math = starts(point->framework, "Megatron-LM") || is(point->framework, "LiBai") ||
                      is(point->framework, "PyTorch eager");
    cs_point_rules_assume(rules, "attention is %s, where the point does not say",
                          math ? "not a fused kernel" : "a fused kernel");
    return math ? "math" : "flash";
}

/* Of hidden states and of attention. Megatron-LM's arguments default to 0.1 (megatron/training/
 * arguments.py), and so does what is trained with it in papers and tables that show no arguments
 * (Korthikanti et al., arXiv 2205.05198, section 4.1, count its masks), as far as attention is no
 * fused kernel, which has been used without; so does Megatron-DeepSpeed, with which BLOOM was
 * trained (bigscience-workshop/bigscience, train/tr11-176B-ml/README.md: "the default Megatron-LM
 * dropout settings are inherited"); LiBai's configurations have it (configs/common/models), and
 * those of transformers, whose models "PyTorch eager" trains (attn_pdrop of GPT2Config,
 * attention_probs_dropout_prob of BertConfig). */
static double dropout(cs_point_rules *rules)
{
    static const char *const usual[] = {"Megatron-LM", "Megatron-DeepSpeed", "LiBai",
                                        "PyTorch eager"};
    const cs_point *point = rules->point;
    const cJSON *given = cs_point_rules_argument(point, "hidden-dropout");
    if (point->args)
        return cJSON_IsNumber(given) ? given->valuedouble : 0.1;
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        if (!is(point->framework, usual[i]) || !is(attention(rules), "math"))
            continue;
        cs_point_rules_assume(rules, "a dropout of 0.1 in Megatron-LM, Megatron-DeepSpeed, LiBai "
                                     "and transformers");
        return 0.1;
    }
    cs_point_rules_assume(rules, "no dropout, where the point does not state any");
    return 0;
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

/* Megatron-LM and what is built on it build BERT and T5 of the blocks of GPT
 * (megatron/core/models/bert, megatron/core/models/T5). */
static const char *encoder_form(cs_point_rules *rules)
{
    return cs_point_rules_megatron(rules->point) ? "megatron" : "paper";
}

static void write_bert(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    fprintf(out,
            "\"name\": \"bert\", \"parameters\": {\"layers\": %u, \"hidden\": %u, \"heads\": %u, "
            "\"sequence\": %u, \"positions\": %u, \"vocabulary\": %u, \"intermediate\": %u, "
            "\"dropout\": %.9g, \"attention\": \"%s\", \"head\": true, \"form\": \"%s\"}",
            model->layers, model->hidden, model->heads, model->seq, model->seq, vocabulary(rules),
            model->ffn, dropout(rules), attention(rules), encoder_form(rules));
}

/* Tokens of a sample, where it is shorter than the sequence that it shares; else 0. */
static uint32_t sample_tokens(cs_point_rules *rules)
{
    const uint32_t tokens = cs_point_rules_packed_tokens(rules);
    return tokens < rules->point->model->seq ? tokens : 0;
}

/* Whether some tokens do not attend to all before them. */
static bool has_windows(cs_point_rules *rules)
{
    return rules->point->model->sliding_window > 0 || sample_tokens(rules) > 0;
}

/* A token attends to half of its sample, in all layers; else those have a window that the model
 * says. */
static void write_windows(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    const uint32_t sample = sample_tokens(rules), half = (sample + 1) / 2;
    const uint32_t every = model->sliding_every > model->layers ? 0 : model->sliding_every;
    if (!has_windows(rules))
        return;
    if (sample > 0 && model->sliding_window > 0 && half > model->sliding_window)
        cs_point_rules_miss(rules, "packed samples that are longer than windows");
    fprintf(out, ", \"window\": %u, \"pattern\": \"", sample > 0 ? half : model->sliding_window);
    for (uint32_t i = 1; sample == 0 && i < every; i++)
        fputc('w', out);
    fputs(sample > 0 || every == 0 ? "w\"" : "f\"", out);
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
    write_windows(rules, out);
    fputs("}", out);
}

/* NVIDIA's recipes that drop tokens pad experts to a capacity factor of 1 (NVIDIA-NeMo/
 * Megatron-Bridge, src/megatron/bridge/training/utils/moe_token_drop.py). */
static double capacity(cs_point_rules *rules)
{
    const cs_point_options *options = rules->point->options;
    if (options->moe_pad_to_capacity || options->moe_capacity_factor > 0)
        return options->moe_pad_to_capacity ? options->moe_capacity_factor : 0;
    return cs_point_rules_drops_tokens(rules) ? 1 : 0;
}

static void write_experts(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const cs_point_model *model = point->model;
    fprintf(out,
            ", \"experts\": %u, \"top_k\": %u, \"expert_intermediate\": %u, \"capacity\": %.9g",
            model->experts, or_else(model->topk, 1), or_else(model->moe_ffn, model->ffn),
            capacity(rules));
}

static void write_mixture(cs_point_rules *rules, const char *name, FILE *out)
{
    fprintf(out, "\"name\": \"%s\", \"parameters\": {", name);
    write_llama_sizes(rules, out);
    write_experts(rules, out);
    write_windows(rules, out);
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

uint32_t cs_point_rules_latent(const cs_point_model *model, const char *key, const char *hyphened)
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
    const uint32_t expert = or_else(or_else(model->moe_ffn, model->ffn), 1);
    fprintf(out,
            "\"name\": \"deepseek_v3\", \"parameters\": {\"layers\": %u, \"hidden\": %u, "
            "\"heads\": %u, \"sequence\": %u, \"vocabulary\": %u, \"intermediate\": %u, "
            "\"q_lora_rank\": %u, \"kv_lora_rank\": %u, \"qk_nope_head\": %u, "
            "\"qk_rope_head\": %u, \"v_head\": %u, \"shared_experts\": %u, \"dense_layers\": %u, "
            "\"next_tokens\": %u, \"attention\": \"%s\"",
            model->layers, model->hidden, model->heads, model->seq, vocabulary(rules), model->ffn,
            cs_point_rules_latent(model, "q_lora_rank", "q-lora-rank"),
            cs_point_rules_latent(model, "kv_lora_rank", "kv-lora-rank"),
            cs_point_rules_latent(model, "qk_head_dim", "qk-head-dim"),
            cs_point_rules_latent(model, "qk_pos_emb_head_dim", "qk-pos-emb-head-dim"),
            cs_point_rules_latent(model, "v_head_dim", "v-head-dim"), model->shared_ffn / expert,
            dense_layers(rules->point), model->mtp_layers, attention(rules));
    write_experts(rules, out);
    fputs("}", out);
}

static void write_latent(const cs_point_model *model, FILE *out)
{
    fprintf(out,
            ", \"q_lora_rank\": %u, \"kv_lora_rank\": %u, \"qk_nope_head\": %u, "
            "\"qk_rope_head\": %u, \"v_head\": %u",
            cs_point_rules_latent(model, "q_lora_rank", "q-lora-rank"),
            cs_point_rules_latent(model, "kv_lora_rank", "kv-lora-rank"),
            cs_point_rules_latent(model, "qk_head_dim", "qk-head-dim"),
            cs_point_rules_latent(model, "qk_pos_emb_head_dim", "qk-pos-emb-head-dim"),
            cs_point_rules_latent(model, "v_head_dim", "v-head-dim"));
}

/* Queries and keys are normalised head by head, as stated or by Megatron-LM's argument. With latent
 * attention the argument means norms of the latent features, which such networks have
 * (megatron/core/models/gpt/gpt_layer_specs.py: q_layernorm, k_layernorm, kv_layernorm). */
static bool has_head_norms(const cs_point *point)
{
    return point->model->qk_norm ||
           (!point->model->mla && cJSON_IsTrue(cs_point_rules_argument(point, "qk-layernorm")));
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
            model->bias ? "true" : "false", has_head_norms(rules->point) ? "true" : "false",
            dropout(rules));
    if (model->experts > 0)
        write_experts(rules, out);
    if (model->experts > 0)
        fprintf(out, ", \"shared_intermediate\": %u, \"dense_layers\": %u", model->shared_ffn,
                dense_layers(rules->point));
    if (model->mla)
        write_latent(model, out);
    write_windows(rules, out);
    fprintf(out, ", \"next_tokens\": %u}", model->mtp_layers);
}

static uint32_t argument_or(cs_point_rules *rules, const char *name, uint32_t fallback)
{
    const cJSON *given = cs_point_rules_argument(rules->point, name);
    return cJSON_IsNumber(given) && given->valuedouble >= 1 ? (uint32_t)given->valuedouble
                                                            : fallback;
}

static void write_t5(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    fprintf(out,
            "\"name\": \"t5\", \"parameters\": {\"layers\": %u, \"decoder_layers\": %u, "
            "\"hidden\": %u, \"heads\": %u, \"head\": %u, \"intermediate\": %u, "
            "\"sequence\": %u, \"decoder_sequence\": %u, \"vocabulary\": %u, \"tied\": %s, "
            "\"dropout\": %.9g, \"attention\": \"%s\", \"form\": \"%s\"}",
            argument_or(rules, "encoder-num-layers", model->layers),
            argument_or(rules, "decoder-num-layers", model->layers), model->hidden, model->heads,
            or_else(model->head_dim, model->hidden / or_else(model->heads, 1)), model->ffn,
            argument_or(rules, "encoder-seq-length", model->seq),
            argument_or(rules, "decoder-seq-length", model->seq), vocabulary(rules),
            model->tied ? "true" : "false", dropout(rules), attention(rules), encoder_form(rules));
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

/* GPT-2's layout, whose queries, keys and values are one product, and as wide as a token. */
static bool is_gpt(const cs_point *point)
{
    const cs_point_model *model = point->model;
    const uint64_t width = (uint64_t)model->head_dim * model->heads;
    return (width == 0 || width == model->hidden) && !has_head_norms(point) &&
           is(model->act, "gelu") && is(model->norm, "layernorm") && model->tied && !model->mla &&
           or_else(model->kv_heads, model->heads) == model->heads && !is(model->pos, "rope") &&
           !is(model->pos, "yarn");
}

cs_point_family cs_point_rules_family(cs_point_rules *rules)
{
    const cs_point_model *model = rules->point->model;
    if (is(model->kind, "encoder"))
        return CS_FAMILY_BERT;
    if (is(model->kind, "encoder-decoder"))
        return CS_FAMILY_T5;
    if (!starts(model->kind, "decoder"))
        return CS_FAMILY_OTHER;
    return is(model->kind, "decoder") && is_gpt(rules->point) && !has_windows(rules)
               ? CS_FAMILY_GPT
               : CS_FAMILY_LLAMA;
}

static void write_decoder(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    const bool llama = is(model->act, "swiglu") && is(model->norm, "rmsnorm") &&
                       is(model->pos, "rope") && !model->bias && !model->mla &&
                       !has_head_norms(rules->point);
    if (!model->act || !model->norm)
        cs_point_rules_miss(rules, "stated: the architecture");
    else if (llama)
        write_llama(rules, out);
    else if (cs_point_rules_family(rules) == CS_FAMILY_GPT)
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
    else if (gated && model->mla && !has_windows(rules) &&
             model->shared_ffn % or_else(or_else(model->moe_ffn, model->ffn), 1) == 0)
        write_deepseek(rules, out);
    else if (gated && model->sliding_window > 0 && model->bias)
        write_mixture(rules, "gpt_oss", out);
    else if (gated && !shared && !model->mla && !model->bias && !has_head_norms(rules->point))
        write_mixture(rules, "mixtral", out);
    else if (gated && !shared && !model->mla && !model->bias && !has_windows(rules))
        write_mixture(rules, "qwen3", out);
    else
        write_choice(rules, out);
}

/* Whether sizes are there without which there is no transformer, and agree with each other. */
static bool states_sizes(const cs_point_model *model)
{
    const uint32_t inner = model->experts > 0 && model->dense_layers == 0
                               ? or_else(model->moe_ffn, model->ffn)
                               : model->ffn;
    const uint32_t keys = or_else(model->kv_heads, model->heads);
    const bool all = model->layers > 0 && model->hidden > 0 && model->heads > 0 && inner > 0 &&
                     model->seq > 0 && model->vocab > 0;
    const bool whole =
        !model->mla || (cs_point_rules_latent(model, "kv_lora_rank", "kv-lora-rank") > 0 &&
                        cs_point_rules_latent(model, "qk_head_dim", "qk-head-dim") > 0 &&
                        cs_point_rules_latent(model, "v_head_dim", "v-head-dim") > 0);
    const bool mixed = model->experts == 0 || model->dense_layers < model->layers;
    return all && whole && mixed && model->heads % keys == 0 &&
           model->topk <= or_else(model->experts, model->topk) &&
           (model->head_dim > 0 || model->hidden % model->heads == 0);
}

/* Words that name what there is none of here. */
static void check_words(cs_point_rules *rules)
{
    static const char *const acts[] = {"gelu", "swiglu", "geglu", "squared_relu", NULL};
    const cs_point_model *model = rules->point->model;
    size_t a = 0;
    while (acts[a] && !is(model->act, acts[a]))
        a++;
    if (model->act && !acts[a])
        cs_point_rules_miss(rules, "the activation %s", model->act);
    if (model->norm && !is(model->norm, "layernorm") && !is(model->norm, "rmsnorm"))
        cs_point_rules_miss(rules, "the norm %s", model->norm);
}

static void write_network(cs_point_rules *rules, FILE *out)
{
    const cs_point_model *model = rules->point->model;
    if (starts(model->kind, "decoder"))
        check_words(rules);
    if (model->unknown_architecture || (!is(model->kind, "cnn") && !states_sizes(model)))
        cs_point_rules_miss(rules, "stated: the architecture");
    else if (model->mamba)
        cs_point_rules_miss(rules, "Mamba layers beside experts");
    else if (!starts(model->kind, "decoder") && sample_tokens(rules) > 0)
        cs_point_rules_miss(rules, "packed samples in networks of the kind \"%s\"", model->kind);
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

/* Words behind fp8 say how operands are scaled ("fp8-rowwise"): what that takes is the runtime's. */
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

static bool shards_gradients(const cs_point *point)
{
    return starts(point->framework, "Composer") || starts(point->framework, "PyTorch FSDP") ||
           starts(point->framework, "torchtitan");
}

/* The type that the point states, if any. Otherwise Megatron-LM sums gradients of bf16 weights in
 * fp32 (megatron/training/arguments.py: "accumulate and all-reduce gradients in fp32 for bfloat16
 * data type"), also with products in a narrower type, except with --grad-reduce-in-bf16. It sums
 * gradients of fp16 weights in fp16. torchtitan reduces gradients in fp32 (mixed_precision_reduce,
 * torchtitan/config_manager.py). FSDP keeps only reduced gradients. */
bool cs_point_rules_sums_in_fp32(const cs_point *point)
{
    if (point->options->grad_dtype)
        return is(point->options->grad_dtype, "fp32");
    if (shards_gradients(point) && point->options->grad_reduce_dtype)
        return is(point->options->grad_reduce_dtype, "fp32");
    if (starts(point->framework, "torchtitan"))
        return true;
    const bool narrow = starts(point->precision, "fp8") || starts(point->precision, "mxfp8") ||
                        starts(point->precision, "nvfp4");
    const bool bf16 = is(point->precision, "bf16") || cs_point_rules_argument(point, "bf16") ||
                      (starts(point->framework, "Megatron-LM") && narrow);
    return cs_point_rules_megatron(point) && bf16 && !cs_point_rules_argument(point, "fp16") &&
           !starts(point->framework, "Megatron-Bridge") &&
           !cs_point_rules_argument(point, "grad-reduce-in-bf16");
}

static uint32_t number_of(const char *name)
{
    uint32_t p = 0;
    while (strcmp(cs_precision_names[p], name) != 0)
        p++;
    return p;
}

/* That of the point, on that device. TF32 is allowed by PyTorch where a device has it, and else
 * changes nothing (torch.backends.cuda.matmul.allow_tf32). */
static const char *precision_on(cs_point_rules *rules, const char *device)
{
    const char *name = precision(rules);
    cs_accelerator loaded = {0};
    cs_error error;
    cs_error_init(&error);
    if (!device)
        return name;
    cs_status status = cs_accelerator_load(device, NULL, &loaded, &error);
    if (status == CS_OK && is(name, "tf32") && !(loaded.peaks[CS_PRECISION_TF32] > 0)) {
        cs_point_rules_assume(rules, "tf32 is fp32, where a device does not compute in it");
        name = "fp32";
    }
    if (status == CS_OK)
        status = cs_accelerator_check(&loaded, (cs_precision)number_of(name), &error);
    rules->full |= status == CS_NO_MEMORY;
    if (status == CS_INVALID)
        cs_point_rules_miss(rules, "%s matrix products on %s", name, rules->point->hardware->gpu);
    cs_accelerator_finish(&loaded);
    return name;
}

bool cs_point_rules_muon(const cs_point *point)
{
    const char *given = cJSON_GetStringValue(cs_point_rules_argument(point, "optimizer"));
    const char *name = given ? given : point->optimizer;
    return is(name, "muon") || is(name, "dist_muon");
}

static const char *optimizer(const cs_point *point)
{
    if (point->options->no_optimizer_step)
        return "none";
    if (cs_point_rules_muon(point))
        return "muon";
    return is(point->optimizer, "momentum") || is(point->optimizer, "sgd") ? point->optimizer
                                                                           : "adam";
}

/* Networks have sizes up to these (sim/workload/zoo/transformer.h), and so many elements in a
 * tensor of a sample (sim/workload/net-build.h); points can state larger ones. */
static void check_sizes(cs_point_rules *rules)
{
    enum { BLOCKS = 4096, MOST = 1 << 20 };
    const double elements = (double)(INT64_C(1) << 36);
    const cs_point_model *m = rules->point->model;
    const struct {
        uint32_t given, most;
        const char *of;
    } sizes[] = {{m->layers, BLOCKS, "blocks"},
                 {m->seq, MOST, "tokens in a sequence"},
                 {m->sliding_window, MOST, "tokens in a window"},
                 {vocabulary(rules), MOST, "tokens in a vocabulary"},
                 {m->hidden, MOST, "features of a token"},
                 {m->heads, MOST, "heads"},
                 {m->head_dim, MOST, "features of a head"},
                 {m->ffn, MOST, "features within an MLP"},
                 {m->moe_ffn, MOST, "features within an expert"},
                 {m->shared_ffn, MOST, "features within shared experts"},
                 {m->experts, MOST, "experts"},
                 {rules->point->batch->micro, CS_BATCH_MAX, "sequences in a micro-batch"},
                 {cs_point_rules_micro_batches(rules->point), MOST, "micro-batches in a step"}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (sizes[i].given > sizes[i].most)
            cs_point_rules_miss(rules, "more than %u %s", sizes[i].most, sizes[i].of);
    if ((double)m->seq * vocabulary(rules) > elements)
        cs_point_rules_miss(rules, "more than 2^36 logits of a sequence");
    if ((double)m->seq * m->seq * m->heads > elements && is(attention(rules), "math"))
        cs_point_rules_miss(rules, "more than 2^36 weights of attention that is no fused kernel");
}

void cs_point_rules_model(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const bool full = is(point->recompute, "full");
    check_sizes(rules);
    fputs("\"model\": {", out);
    write_network(rules, out);
    const char *device = cs_point_rules_device(rules);
    if (full)
        cs_point_rules_assume(rules,
                              "full recomputation repeats the first and the last layer as well");
    fprintf(out,
            ", \"device\": \"%s\", \"precision\": \"%s\", \"granularity\": \"block\", "
            "\"recompute\": %s, \"batch_size\": %u, \"optimizer\": \"%s\", \"gradients\": \"%s\"",
            device ? device : "", precision_on(rules, device), full ? "true" : "false",
            point->batch->global, optimizer(point),
            cs_point_rules_sums_in_fp32(point) ? "fp32" : "weights");
    cs_point_rules_operators(rules, out);
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
