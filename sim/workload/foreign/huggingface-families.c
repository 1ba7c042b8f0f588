#include "sim/workload/foreign/huggingface-families.h"

#include "sim/workload/zoo/families.h"

#include <string.h>

enum { MOST_LAYERS = 4096 };

enum { FULL, SLIDING }; /* in the order of cs_config_layer_types */

#define SIZE(key, member, fallback_)                                                               \
    {                                                                                              \
        key, CS_FIELD_COUNT, offsetof(cs_config, member), .fallback = fallback_, .min = 1,         \
                                                          .max = CS_CONFIG_SIZE_MAX, .doc = key    \
    }

#define OPTIONAL(key, member)                                                                      \
    {                                                                                              \
        key, CS_FIELD_COUNT, offsetof(cs_config, member), .fallback = "0",                         \
                                                          .max = CS_CONFIG_SIZE_MAX, .doc = key    \
    }

#define LAYERS(key)                                                                                \
    {                                                                                              \
        key, CS_FIELD_COUNT, offsetof(cs_config, layers), .min = 1, .max = MOST_LAYERS, .doc = key \
    }

#define DROPOUT(key, fallback_)                                                                    \
    {                                                                                              \
        key, CS_FIELD_NUMBER, offsetof(cs_config, dropout), .fallback = fallback_, .max = 1,       \
                                                            .doc = key                             \
    }

#define FLAG(key, member, fallback_)                                                               \
    {                                                                                              \
        key, CS_FIELD_BOOL, offsetof(cs_config, member), .fallback = fallback_, .doc = key         \
    }

/* ---- GPT-2, BERT, ViT ---- */

static const cs_field gpt2_fields[] = {
    LAYERS("n_layer"),
    SIZE("n_embd", hidden, NULL),
    SIZE("n_head", heads, NULL),
    SIZE("vocab_size", vocabulary, NULL),
    OPTIONAL("n_inner", intermediate),
    SIZE("n_positions", positions, "1024"),
    DROPOUT("resid_pdrop", "0.1"),
    {0},
};

static const cs_field bert_fields[] = {
    LAYERS("num_hidden_layers"),
    SIZE("hidden_size", hidden, NULL),
    SIZE("num_attention_heads", heads, NULL),
    SIZE("intermediate_size", intermediate, NULL),
    SIZE("vocab_size", vocabulary, NULL),
    SIZE("max_position_embeddings", positions, "512"),
    SIZE("type_vocab_size", types, "2"),
    DROPOUT("hidden_dropout_prob", "0.1"),
    {0},
};

static const cs_field vit_fields[] = {
    LAYERS("num_hidden_layers"),
    SIZE("hidden_size", hidden, NULL),
    SIZE("num_attention_heads", heads, NULL),
    SIZE("intermediate_size", intermediate, NULL),
    SIZE("image_size", image, "224"),
    SIZE("patch_size", patch, "16"),
    SIZE("num_channels", channels, "3"),
    SIZE("num_labels", labels, "2"),
    DROPOUT("hidden_dropout_prob", "0"),
    {0},
};

static void build_gpt2(cs_net *net, const cs_config *c, const cs_config_additions *more)
{
    cs_gpt_build(net, &(cs_gpt){.layers = c->layers,
                                .hidden = c->hidden,
                                .heads = c->heads,
                                .sequence = more->sequence,
                                .vocabulary = c->vocabulary,
                                .positions = c->positions,
                                .intermediate = c->intermediate,
                                .dropout = c->dropout,
                                .kernel = more->kernel});
}

static void build_bert(cs_net *net, const cs_config *c, const cs_config_additions *more)
{
    cs_bert_build(net, &(cs_bert){.layers = c->layers,
                                  .hidden = c->hidden,
                                  .heads = c->heads,
                                  .sequence = more->sequence,
                                  .vocabulary = c->vocabulary,
                                  .positions = c->positions,
                                  .types = c->types,
                                  .intermediate = c->intermediate,
                                  .dropout = c->dropout,
                                  .kernel = more->kernel});
}

static void build_vit(cs_net *net, const cs_config *c, const cs_config_additions *more)
{
    cs_vit_build(net, &(cs_vit){.image = c->image,
                                .patch = c->patch,
                                .channels = c->channels,
                                .layers = c->layers,
                                .hidden = c->hidden,
                                .heads = c->heads,
                                .intermediate = c->intermediate,
                                .classes = c->labels,
                                .dropout = c->dropout,
                                .kernel = more->kernel});
}

/* ---- decoders with RMS norms ---- */

const char *const cs_config_layer_types[] = {
    [FULL] = "full_attention", [SLIDING] = "sliding_attention", NULL};

static const cs_field layer_type = {"layer type", CS_FIELD_CHOICE,
                                    .choices = cs_config_layer_types};

#define LAYER_TYPES                                                                                \
    {                                                                                              \
        "layer_types", CS_FIELD_LIST, offsetof(cs_config, layer_types),                            \
            .fallback = "", .of = &layer_type, .doc = "layer_types"                                \
    }

#define WINDOWS                                                                                    \
    FLAG("use_sliding_window", use_window, "false"), SIZE("sliding_window", window, "4096"),       \
        LAYER_TYPES

#define FIRST_WINDOW                                                                               \
    {                                                                                              \
        "max_window_layers", CS_FIELD_COUNT, offsetof(cs_config, first_window),                    \
            .fallback = "28", .max = MOST_LAYERS, .doc = "max_window_layers"                       \
    }

#define SHAPE                                                                                      \
    LAYERS("num_hidden_layers"), SIZE("hidden_size", hidden, NULL),                                \
        SIZE("num_attention_heads", heads, NULL), SIZE("vocab_size", vocabulary, NULL),            \
        SIZE("max_position_embeddings", positions, "2048")

#define KEYS OPTIONAL("num_key_value_heads", kv_heads), OPTIONAL("head_dim", head)

#define INTERMEDIATE SIZE("intermediate_size", intermediate, NULL)

#define TIED(tied_) FLAG("tie_word_embeddings", tied, tied_)

#define BIAS(bias_) FLAG("attention_bias", bias, bias_)

/* Of experts that fill the place of the MLP. */
#define EXPERTS(experts_, intermediate_)                                                           \
    SIZE(experts_, experts, NULL), SIZE("num_experts_per_tok", top_k, NULL),                       \
        SIZE(intermediate_, expert_intermediate, NULL)

static const cs_field llama_fields[] = {SHAPE,         KEYS,          INTERMEDIATE,
                                        TIED("false"), BIAS("false"), {0}};

/* Their files do not tell the bias: Mistral has none, Qwen2 one for queries, keys and values. */
static const cs_field mistral_fields[] = {
    SHAPE, KEYS, INTERMEDIATE, TIED("false"), SIZE("sliding_window", window, "4096"), {0}};

static const cs_field qwen2_fields[] = {SHAPE,   KEYS,         INTERMEDIATE, TIED("false"),
                                        WINDOWS, FIRST_WINDOW, {0}};

static const cs_field qwen3_fields[] = {SHAPE,         KEYS,    INTERMEDIATE, TIED("false"),
                                        BIAS("false"), WINDOWS, FIRST_WINDOW, {0}};

static const cs_field mixtral_fields[] = {SHAPE,
                                          KEYS,
                                          EXPERTS("num_local_experts", "intermediate_size"),
                                          TIED("false"),
                                          OPTIONAL("sliding_window", window),
                                          {0}};

static const cs_field qwen3_moe_fields[] = {
    SHAPE,         KEYS,          INTERMEDIATE, EXPERTS("num_experts", "moe_intermediate_size"),
    TIED("false"), BIAS("false"), WINDOWS,      {0}};

static const cs_field gpt_oss_fields[] = {
    SHAPE,         KEYS,         EXPERTS("num_local_experts", "intermediate_size"),
    TIED("false"), BIAS("true"), SIZE("sliding_window", window, "128"),
    LAYER_TYPES,   {0}};

static const cs_field deepseek_fields[] = {SHAPE,
                                           INTERMEDIATE,
                                           EXPERTS("n_routed_experts", "moe_intermediate_size"),
                                           SIZE("q_lora_rank", query_rank, "1536"),
                                           SIZE("kv_lora_rank", latent_rank, NULL),
                                           SIZE("qk_nope_head_dim", nope_head, NULL),
                                           SIZE("qk_rope_head_dim", rope_head, NULL),
                                           SIZE("v_head_dim", value_head, NULL),
                                           OPTIONAL("n_shared_experts", shared_experts),
                                           {"first_k_dense_replace", CS_FIELD_COUNT,
                                            offsetof(cs_config, dense_layers), .max = MOST_LAYERS,
                                            .doc = "first_k_dense_replace"},
                                           OPTIONAL("num_nextn_predict_layers", next_tokens),
                                           TIED("false"),
                                           {0}};

static const cs_config_fixed llama_fixed[] = {{"mlp_bias", "false"}, {0}};

static const cs_config_fixed qwen3_moe_fixed[] = {
    {"decoder_sparse_step", "1"}, {"mlp_only_layers", "[]"}, {0}};

static const cs_config_fixed deepseek_fixed[] = {
    {"attention_bias", "false"}, {"moe_layer_freq", "1"}, {0}};

static cs_decoder decoder_of(const cs_config *c, const cs_config_additions *more)
{
    return (cs_decoder){.layers = c->layers,
                        .hidden = c->hidden,
                        .heads = c->heads,
                        .kv_heads = c->kv_heads ? c->kv_heads : c->heads,
                        .sequence = more->sequence,
                        .vocabulary = c->vocabulary,
                        .intermediate = c->intermediate,
                        .head = c->head,
                        .tied = c->tied,
                        .kernel = more->kernel,
                        .experts = c->experts,
                        .top_k = c->top_k,
                        .expert_intermediate = c->expert_intermediate,
                        .shared_experts = c->shared_experts,
                        .dense_layers = c->dense_layers,
                        .capacity = more->capacity,
                        .next_tokens = more->next_tokens,
                        .style = {.bias = c->bias, .output_bias = c->bias}};
}

static void build_llama(cs_net *net, const cs_config *c, const cs_config_additions *more)
{
    const cs_decoder decoder = decoder_of(c, more);
    cs_decoder_build(net, &decoder);
}

/* All layers have the window, if there is one. */
static void build_mistral(cs_net *net, const cs_config *c, const cs_config_additions *more)
{
    cs_decoder decoder = decoder_of(c, more);
    decoder.window = c->window;
    cs_decoder_build(net, &decoder);
}

/* Which layers have a window: as the list says, or from one layer on, or `every` second one. */
static void build_windows(cs_net *net, const cs_config *c, cs_decoder *decoder, bool every)
{
    char pattern[MOST_LAYERS + 1];
    const uint32_t *types = c->layer_types.items;
    if (types && c->layer_types.n != c->layers) {
        cs_net_fail(net, "layer_types must have num_hidden_layers, %u, elements (got %u)",
                    c->layers, c->layer_types.n);
        return;
    }
    for (uint32_t i = 0; i < c->layers; i++) {
        const bool window = types   ? types[i] == SLIDING
                            : every ? i % 2 == 0
                                    : c->use_window && c->window > 0 && i >= c->first_window;
        pattern[i] = window ? 'w' : 'f';
    }
    pattern[c->layers] = '\0';
    decoder->window = c->window;
    decoder->pattern = pattern;
    cs_decoder_build(net, decoder);
}

static void build_qwen2(cs_net *net, const cs_config *c, const cs_config_additions *more)
{
    cs_decoder decoder = decoder_of(c, more);
    decoder.style = (cs_decoder_style){.bias = true};
    build_windows(net, c, &decoder, false);
}

static void build_qwen3(cs_net *net, const cs_config *c, const cs_config_additions *more)
{
    cs_decoder decoder = decoder_of(c, more);
    decoder.head = c->head ? c->head : 128;
    decoder.style.head_norms = true;
    build_windows(net, c, &decoder, false);
}

static void build_gpt_oss(cs_net *net, const cs_config *c, const cs_config_additions *more)
{
    cs_decoder decoder = decoder_of(c, more);
    decoder.head = c->head ? c->head : 64;
    decoder.style.sinks = true;
    decoder.style.expert_bias = true;
    decoder.style.router_bias = true;
    build_windows(net, c, &decoder, true);
}

static cs_decoder deepseek_of(const cs_config *c, const cs_config_additions *more)
{
    cs_decoder decoder = decoder_of(c, more);
    decoder.query_rank = c->query_rank;
    decoder.latent_rank = c->latent_rank;
    decoder.nope_head = c->nope_head;
    decoder.rope_head = c->rope_head;
    decoder.value_head = c->value_head;
    return decoder;
}

static void build_deepseek_v2(cs_net *net, const cs_config *c, const cs_config_additions *more)
{
    const cs_decoder decoder = deepseek_of(c, more);
    cs_decoder_build(net, &decoder);
}

static void build_deepseek_v3(cs_net *net, const cs_config *c, const cs_config_additions *more)
{
    cs_decoder decoder = deepseek_of(c, more);
    decoder.style.router_bias = true;
    cs_decoder_build(net, &decoder);
}

/* ---- state spaces ---- */

/* With the defaults of Mamba2Config. */
static const cs_field mamba2_fields[] = {LAYERS("num_hidden_layers"),
                                         SIZE("hidden_size", hidden, NULL),
                                         SIZE("vocab_size", vocabulary, NULL),
                                         SIZE("num_heads", state_heads, NULL),
                                         SIZE("head_dim", state_head, "64"),
                                         SIZE("n_groups", state_groups, "8"),
                                         SIZE("state_size", state, "128"),
                                         SIZE("conv_kernel", conv, "4"),
                                         SIZE("chunk_size", chunk, "256"),
                                         SIZE("expand", expand, "2"),
                                         FLAG("use_bias", bias, "false"),
                                         TIED("false"),
                                         {0}};

static const cs_config_fixed mamba2_fixed[] = {
    {"use_conv_bias", "true"}, {"rms_norm", "true"}, {0}};

static const cs_field layer_number = {"layer", CS_FIELD_COUNT, .max = MOST_LAYERS};

/* With those of BambaConfig. */
static const cs_field bamba_fields[] = {SHAPE,
                                        KEYS,
                                        INTERMEDIATE,
                                        TIED("false"),
                                        SIZE("mamba_n_heads", state_heads, "128"),
                                        SIZE("mamba_d_head", state_head, NULL),
                                        SIZE("mamba_n_groups", state_groups, "1"),
                                        SIZE("mamba_d_state", state, "256"),
                                        SIZE("mamba_d_conv", conv, "4"),
                                        SIZE("mamba_chunk_size", chunk, "256"),
                                        SIZE("mamba_expand", expand, "2"),
                                        {"attn_layer_indices", CS_FIELD_LIST,
                                         offsetof(cs_config, attention_layers), .fallback = "",
                                         .of = &layer_number, .doc = "attn_layer_indices"},
                                        {0}};

static const cs_config_fixed bamba_fixed[] = {{"mamba_conv_bias", "true"},
                                              {"mamba_proj_bias", "false"},
                                              {"attention_bias", "false"},
                                              {"mlp_bias", "false"},
                                              {0}};

/* The mixers' sizes, two of which say the same. */
static cs_mixer mixer_of(cs_net *net, const cs_config *c)
{
    if ((uint64_t)c->state_heads * c->state_head != (uint64_t)c->expand * c->hidden)
        cs_net_fail(net,
                    "the %u heads of %u features of a mixer must be as many as its expansion, %u, "
                    "times hidden_size, %u",
                    c->state_heads, c->state_head, c->expand, c->hidden);
    return (cs_mixer){.heads = c->state_heads,
                      .head = c->state_head,
                      .groups = c->state_groups,
                      .state = c->state,
                      .chunk = c->chunk,
                      .conv = c->conv,
                      .bias = c->bias};
}

static void build_mamba2(cs_net *net, const cs_config *c, const cs_config_additions *more)
{
    cs_decoder decoder = decoder_of(c, more);
    decoder.mixer = mixer_of(net, c);
    cs_decoder_build(net, &decoder);
}

static void build_bamba(cs_net *net, const cs_config *c, const cs_config_additions *more)
{
    char pattern[MOST_LAYERS + 1];
    const uint32_t *attention = c->attention_layers.items;
    cs_decoder decoder = decoder_of(c, more);
    memset(pattern, 'm', c->layers);
    pattern[c->layers] = '\0';
    for (uint32_t i = 0; i < c->attention_layers.n; i++) {
        if (attention[i] >= c->layers)
            cs_net_fail(net, "attn_layer_indices must be below num_hidden_layers, %u (got %u)",
                        c->layers, attention[i]);
        else
            pattern[attention[i]] = 'f';
    }
    decoder.pattern = pattern;
    decoder.mixer = mixer_of(net, c);
    cs_decoder_build(net, &decoder);
}

/* ---- T5 ---- */

enum { RELU, GATED_GELU };

static const char *const feed_forwards[] = {[RELU] = "relu", [GATED_GELU] = "gated-gelu", NULL};

static const cs_field t5_fields[] = {LAYERS("num_layers"),
                                     OPTIONAL("num_decoder_layers", decoder_layers),
                                     SIZE("d_model", hidden, NULL),
                                     SIZE("d_kv", head, NULL),
                                     SIZE("d_ff", intermediate, NULL),
                                     SIZE("num_heads", heads, NULL),
                                     SIZE("vocab_size", vocabulary, NULL),
                                     SIZE("n_positions", positions, "512"),
                                     SIZE("relative_attention_num_buckets", buckets, "32"),
                                     DROPOUT("dropout_rate", "0.1"),
                                     {"feed_forward_proj", CS_FIELD_CHOICE,
                                      offsetof(cs_config, feed_forward), .fallback = "relu",
                                      .choices = feed_forwards, .doc = "feed_forward_proj"},
                                     TIED("true"),
                                     {0}};

static const cs_config_fixed t5_fixed[] = {{"is_encoder_decoder", "true"}, {0}};

static void build_t5(cs_net *net, const cs_config *c, const cs_config_additions *more)
{
    cs_t5_build(net, &(cs_t5){.layers = c->layers,
                              .decoder_layers = c->decoder_layers,
                              .hidden = c->hidden,
                              .heads = c->heads,
                              .head = c->head,
                              .intermediate = c->intermediate,
                              .sequence = more->sequence,
                              .decoder_sequence =
                                  more->decoder_sequence ? more->decoder_sequence : more->sequence,
                              .vocabulary = c->vocabulary,
                              .buckets = c->buckets,
                              .gated = c->feed_forward == GATED_GELU,
                              .tied = c->tied,
                              .dropout = c->dropout,
                              .kernel = more->kernel});
}

const cs_config_nullable cs_config_nullables[] = {
    {"sliding_window", offsetof(cs_config, window)},
    {"q_lora_rank", offsetof(cs_config, query_rank)},
    {0},
};

const cs_config_family cs_config_families[] = {
    {"gpt2", gpt2_fields, build_gpt2, NULL},
    {"llama", llama_fields, build_llama, llama_fixed},
    {"mistral", mistral_fields, build_mistral, NULL},
    {"mixtral", mixtral_fields, build_mistral, NULL},
    {"qwen2", qwen2_fields, build_qwen2, NULL},
    {"qwen3", qwen3_fields, build_qwen3, NULL},
    {"qwen3_moe", qwen3_moe_fields, build_qwen3, qwen3_moe_fixed},
    {"deepseek_v2", deepseek_fields, build_deepseek_v2, deepseek_fixed},
    {"deepseek_v3", deepseek_fields, build_deepseek_v3, deepseek_fixed},
    {"gpt_oss", gpt_oss_fields, build_gpt_oss, NULL},
    {"mamba2", mamba2_fields, build_mamba2, mamba2_fixed},
    {"bamba", bamba_fields, build_bamba, bamba_fixed},
    {"t5", t5_fields, build_t5, t5_fixed},
    {"bert", bert_fields, build_bert, NULL},
    {"vit", vit_fields, build_vit, NULL},
    {0},
};
