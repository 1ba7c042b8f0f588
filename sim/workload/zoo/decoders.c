/* Families of decoders with RMS norms, rotary positions and gated MLPs, each by the sizes of one of
 * its models; decoder.c has what they are made of. */
#include "sim/workload/zoo/families.h"
#include "sim/workload/zoo/transformer.h"

#define DIM(key, default_, doc_) CS_DIM(cs_decoder, key, default_, doc_)

/* A size that may be absent, 0. */
#define MAYBE(key_, member_, default_, doc_)                                                       \
    {                                                                                              \
        key_, CS_FIELD_COUNT, offsetof(cs_decoder, member_), .fallback = default_,                 \
                                                             .max = CS_DIM_MAX, .doc = doc_        \
    }

#define SIZES(layers_, hidden_, heads_)                                                            \
    CS_LAYERS_FIELD(cs_decoder, layers_),                                                          \
        DIM(hidden, hidden_, "hidden size: features of a token"),                                  \
        DIM(heads, heads_, "query heads; their number divides hidden")

#define KEYS(kv_heads_)                                                                            \
    DIM(kv_heads, kv_heads_, "heads of keys and values; their number divides heads")

#define TOKENS(vocabulary_, intermediate_)                                                         \
    DIM(sequence, "4096", "sequence length: tokens of a sample"),                                  \
        DIM(vocabulary, vocabulary_, "vocabulary size"),                                           \
        DIM(intermediate, intermediate_, "intermediate size of the MLP")

#define HEAD(default_)                                                                             \
    MAYBE("head", head, default_, "features of an attention head; 0: hidden / heads")

#define TIED                                                                                       \
    {                                                                                              \
        "tied", CS_FIELD_BOOL, offsetof(cs_decoder, tied), .fallback = "false",                    \
                                                           .doc = "the last matrix is the "        \
                                                                  "embedding's"                    \
    }

#define WINDOW(window_, pattern_)                                                                  \
    MAYBE("window", window, window_,                                                               \
          "sliding window of layers w: tokens that a token attends to, itself included; 0: no "    \
          "windows"),                                                                              \
    {                                                                                              \
        "pattern", CS_FIELD_TEXT, offsetof(cs_decoder, pattern),                                   \
            .fallback = pattern_,                                                                  \
            .doc = "one letter per layer, repeated; w: attends within the window; f: full "        \
                   "attention; default: all layers alike"                                          \
    }

#define MIXTURE(experts_, top_k_, intermediate_)                                                   \
    MAYBE("experts", experts, experts_, "routed experts per layer; 0: all layers have an MLP"),    \
        DIM(top_k, top_k_, "number of experts that a token is routed to"),                         \
        DIM(expert_intermediate, intermediate_, "intermediate size of an expert"), CAPACITY

#define CAPACITY                                                                                   \
    {                                                                                              \
        "capacity", CS_FIELD_NUMBER, offsetof(cs_decoder, capacity),                               \
            .fallback = "0", .max = CS_DIM_MAX,                                                    \
            .doc = "capacity factor: rows that each expert computes, padding included, relative "  \
                   "to an equal share; 0: as many as it gets"                                      \
    }

#define SHARED(shared_, dense_)                                                                    \
    MAYBE("shared_experts", shared_experts, shared_,                                               \
          "shared experts: experts that all tokens go to"),                                        \
        MAYBE("dense_layers", dense_layers, dense_,                                                \
              "number of first layers that have an MLP instead of experts")

#define LATENT(query_rank_, latent_rank_, nope_, rope_, value_)                                    \
    MAYBE("q_lora_rank", query_rank, query_rank_,                                                  \
          "size of the latent vector of queries; 0: there is none"),                               \
        MAYBE("kv_lora_rank", latent_rank, latent_rank_,                                           \
              "size of the latent vector of keys and values"),                                     \
        MAYBE("qk_nope_head", nope_head, nope_,                                                    \
              "features of a query or key head without rotary positions"),                         \
        MAYBE("qk_rope_head", rope_head, rope_,                                                    \
              "features of a query or key head with rotary positions"),                            \
        MAYBE("v_head", value_head, value_, "features of a value head")

/* A size of the mixers. */
#define OF_MIXER(key_, member_, default_, doc_)                                                    \
    {                                                                                              \
        key_, CS_FIELD_COUNT, offsetof(cs_decoder, mixer.member_), .fallback = default_, .min = 1, \
                                                                   .max = CS_DIM_MAX, .doc = doc_  \
    }

#define MIXER(heads_, groups_)                                                                     \
    OF_MIXER("state_heads", heads, heads_, "number of heads of the state space"),                  \
        OF_MIXER("state_head", head, "64", "features of a head of the state space"),               \
        OF_MIXER("state_groups", groups, groups_, "groups of heads that share B and C"),           \
        OF_MIXER("state", state, "128", "state size of each feature"),                             \
        OF_MIXER("conv", conv, "4", "width of the convolution, tokens"),                           \
        OF_MIXER("chunk", chunk, "256", "chunk size of the scan, tokens")

static void build(cs_net *net, const void *variant, const void *params)
{
    cs_decoder decoder = *(const cs_decoder *)params;
    const cs_decoder_style *style = variant;
    if (style)
        decoder.style = *style;
    cs_decoder_build(net, &decoder);
}

/* ---- Llama ---- */

static const cs_field llama_fields[] = {
    SIZES("32", "4096", "32"),
    KEYS("32"),
    TOKENS("32000", "11008"),
    HEAD("0"),
    TIED,
    {"bias", CS_FIELD_BOOL, offsetof(cs_decoder, style.bias), .fallback = "false",
     .doc = "the projections of queries, keys and values have biases"},
    WINDOW("0", ""),
    CS_KERNEL_FIELD(cs_decoder),
    {0},
};

const cs_zoo_entry cs_zoo_llama = {
    .name = "llama",
    .summary = "Llama-like decoder; the defaults are Llama-2 7B",
    .source = "Touvron et al., Llama 2, 2023 (arXiv 2307.09288); as transformers has it",
    .fields = llama_fields,
    .params_size = sizeof(cs_decoder),
    .build = build,
};

/* ---- Mixtral ---- */

static const cs_field mixtral_fields[] = {
    SIZES("32", "4096", "32"),
    KEYS("8"),
    DIM(sequence, "4096", "sequence length: tokens of a sample"),
    DIM(vocabulary, "32000", "vocabulary size"),
    MIXTURE("8", "2", "14336"),
    HEAD("0"),
    TIED,
    WINDOW("0", ""),
    CS_KERNEL_FIELD(cs_decoder),
    {0},
};

const cs_zoo_entry cs_zoo_mixtral = {
    .name = "mixtral",
    .summary = "Llama-like decoder with experts in place of MLPs; the defaults are Mixtral 8x7B",
    .source = "Jiang et al., Mixtral of Experts, 2024 (arXiv 2401.04088); as transformers has it",
    .fields = mixtral_fields,
    .params_size = sizeof(cs_decoder),
    .build = build,
};

/* ---- Qwen3 ---- */

static const cs_decoder_style qwen3_style = {.head_norms = true};

static const cs_field qwen3_fields[] = {
    SIZES("48", "2048", "32"),  KEYS("4"), TOKENS("151936", "6144"),    HEAD("128"),
    MIXTURE("128", "8", "768"), TIED,      CS_KERNEL_FIELD(cs_decoder), {0},
};

const cs_zoo_entry cs_zoo_qwen3 = {
    .name = "qwen3",
    .summary =
        "Decoder with normalised queries and keys, and experts; the defaults are Qwen3-30B-A3B",
    .source =
        "Yang et al., Qwen3 technical report, 2025 (arXiv 2505.09388); as transformers has it",
    .fields = qwen3_fields,
    .params_size = sizeof(cs_decoder),
    .variant = &qwen3_style,
    .build = build,
};

/* ---- DeepSeek ---- */

static const cs_field deepseek_v2_fields[] = {
    SIZES("60", "5120", "128"),
    TOKENS("102400", "12288"),
    LATENT("1536", "512", "128", "64", "128"),
    MIXTURE("160", "6", "1536"),
    SHARED("2", "1"),
    CS_KERNEL_FIELD(cs_decoder),
    {0},
};

const cs_zoo_entry cs_zoo_deepseek_v2 = {
    .name = "deepseek_v2",
    .summary = "Decoder with latent attention and experts; the defaults are DeepSeek-V2",
    .source = "DeepSeek-AI, DeepSeek-V2, 2024 (arXiv 2405.04434); as transformers has it",
    .fields = deepseek_v2_fields,
    .params_size = sizeof(cs_decoder),
    .build = build,
};

/* The router has a bias per expert, which balances the load without a loss. */
static const cs_decoder_style deepseek_v3_style = {.router_bias = true};

static const cs_field deepseek_v3_fields[] = {
    SIZES("61", "7168", "128"),
    TOKENS("129280", "18432"),
    LATENT("1536", "512", "128", "64", "128"),
    MIXTURE("256", "8", "2048"),
    SHARED("1", "3"),
    MAYBE("next_tokens", next_tokens, "0",
          "multi-token prediction (MTP): modules, each of which predicts one more token"),
    CS_KERNEL_FIELD(cs_decoder),
    {0},
};

const cs_zoo_entry cs_zoo_deepseek_v3 = {
    .name = "deepseek_v3",
    .summary = "Decoder with latent attention and experts; the defaults are DeepSeek-V3",
    .source = "DeepSeek-AI, DeepSeek-V3 technical report, 2024 (arXiv 2412.19437); as transformers "
              "has it",
    .fields = deepseek_v3_fields,
    .params_size = sizeof(cs_decoder),
    .variant = &deepseek_v3_style,
    .build = build,
};

/* ---- GPT-OSS ---- */

static const cs_decoder_style gpt_oss_style = {
    .bias = true, .output_bias = true, .sinks = true, .expert_bias = true, .router_bias = true};

static const cs_field gpt_oss_fields[] = {
    SIZES("24", "2880", "64"),
    KEYS("8"),
    DIM(sequence, "4096", "sequence length: tokens of a sample"),
    DIM(vocabulary, "201088", "vocabulary size"),
    HEAD("64"),
    WINDOW("128", "wf"),
    MIXTURE("32", "4", "2880"),
    TIED,
    CS_KERNEL_FIELD(cs_decoder),
    {0},
};

const cs_zoo_entry cs_zoo_gpt_oss = {
    .name = "gpt_oss",
    .summary = "Decoder with windows in every second layer, attention sinks and experts; the "
               "defaults are gpt-oss-20b",
    .source = "OpenAI, gpt-oss-120b & gpt-oss-20b model card, 2025 (arXiv 2508.10925); as "
              "transformers has it",
    .fields = gpt_oss_fields,
    .params_size = sizeof(cs_decoder),
    .variant = &gpt_oss_style,
    .build = build,
};

/* ---- of one's own choice ---- */

static const char *const activations[] = {"swiglu", "geglu", "gelu", "squared_relu", NULL};
static const char *const norms[] = {"rmsnorm", "layernorm", NULL};
static const char *const positions[] = {"rotary", "learned", "none", NULL};

typedef struct free_decoder {
    cs_decoder decoder;
    uint32_t norms;
    bool bias; /* of all linear layers but the router and the last */
    bool head_norms, sinks, router_bias;
    uint32_t activation, positions;
} free_decoder;

#define CHOICE(key_, member_, choices_, default_, doc_)                                            \
    {                                                                                              \
        key_, CS_FIELD_CHOICE, offsetof(free_decoder, member_), .fallback = default_,              \
                                                                .choices = choices_, .doc = doc_   \
    }

#define SWITCH(key_, member_, doc_)                                                                \
    {                                                                                              \
        key_, CS_FIELD_BOOL, offsetof(free_decoder, member_), .fallback = "false", .doc = doc_     \
    }

static const cs_field decoder_fields[] = {
    SIZES("32", "4096", "32"),
    KEYS("8"),
    DIM(sequence, "4096", "sequence length: tokens of a sample"),
    DIM(vocabulary, "128256", "vocabulary size"),
    MAYBE("intermediate", intermediate, "14336", "intermediate size of the MLP"),
    HEAD("0"),
    TIED,
    CHOICE("activation", activation, activations, "swiglu",
           "activation of the MLPs; swiglu and geglu are gated"),
    CHOICE("norm", norms, norms, "rmsnorm", "normalisation before attention and MLP"),
    CHOICE("positions", positions, positions, "rotary",
           "position encoding; none: also for one that attention adds by itself, like ALiBi"),
    SWITCH("bias", bias, "linear layers have biases, except the router and the last one"),
    SWITCH("head_norms", head_norms, "queries and keys are normalised per head"),
    SWITCH("sinks", sinks, "each head of attention has a learned sink"),
    SWITCH("router_bias", router_bias, "the router has a bias for each expert"),
    CS_DROPOUT_FIELD(cs_decoder, "0"),
    WINDOW("0", ""),
    MIXTURE("0", "1", "1"),
    MAYBE("shared_intermediate", shared_intermediate, "0",
          "intermediate size of the shared experts, all together"),
    MAYBE("dense_layers", dense_layers, "0",
          "number of first layers that have an MLP instead of experts"),
    LATENT("0", "0", "128", "64", "128"),
    MAYBE("next_tokens", next_tokens, "0",
          "multi-token prediction (MTP): modules, each of which predicts one more token"),
    CS_KERNEL_FIELD(cs_decoder),
    {0},
};

static void build_free(cs_net *net, const void *variant, const void *params)
{
    const free_decoder *given = params;
    cs_decoder decoder = given->decoder;
    (void)variant;
    decoder.style = (cs_decoder_style){.bias = given->bias,
                                       .output_bias = given->bias,
                                       .mlp_bias = given->bias,
                                       .expert_bias = given->bias,
                                       .head_norms = given->head_norms,
                                       .sinks = given->sinks,
                                       .router_bias = given->router_bias,
                                       .layer_norms = given->norms != 0,
                                       .activation = given->activation,
                                       .positions = given->positions};
    cs_decoder_build(net, &decoder);
}

const cs_zoo_entry cs_zoo_decoder = {
    .name = "decoder",
    .summary = "Decoder whose activation, norms, positions, attention and experts can be chosen; "
               "the defaults are Llama-3 8B",
    .source = "Llama Team, The Llama 3 herd of models, 2024 (arXiv 2407.21783); Megatron-LM's "
              "arguments for the other choices",
    .fields = decoder_fields,
    .params_size = sizeof(free_decoder),
    .build = build_free,
};

/* ---- Mamba-2 ---- */

static const cs_field mamba2_fields[] = {
    CS_LAYERS_FIELD(cs_decoder, "64"),
    DIM(hidden, "2560", "hidden size: features of a token"),
    DIM(sequence, "4096", "sequence length: tokens of a sample"),
    DIM(vocabulary, "50288", "vocabulary size"),
    MIXER("80", "1"),
    {"tied", CS_FIELD_BOOL, offsetof(cs_decoder, tied), .fallback = "true",
     .doc = "the last matrix is tied to the embedding"},
    {0},
};

const cs_zoo_entry cs_zoo_mamba2 = {
    .name = "mamba2",
    .summary = "State-space decoder; the defaults are Mamba-2 2.7B",
    .source =
        "Dao and Gu, Transformers are SSMs, ICML 2024 (arXiv 2405.21060); with the kernels of "
        "mamba_ssm 2.2",
    .fields = mamba2_fields,
    .params_size = sizeof(cs_decoder),
    .build = build,
};

/* ---- Bamba ---- */

static const cs_field bamba_fields[] = {
    SIZES("32", "4096", "32"),
    KEYS("8"),
    TOKENS("128256", "14336"),
    HEAD("0"),
    MIXER("128", "1"),
    {"pattern", CS_FIELD_TEXT, offsetof(cs_decoder, pattern),
     .fallback = "mmmmmmmmmfmmmmmmmmfmmmmmmmmfmmmm",
     .doc = "one letter per layer, repeated; m: Mamba-2; f: full attention"},
    TIED,
    CS_KERNEL_FIELD(cs_decoder),
    {0},
};

const cs_zoo_entry cs_zoo_bamba = {
    .name = "bamba",
    .summary = "Hybrid of Mamba-2 and attention, an MLP in each layer; the defaults are Bamba-9B",
    .source = "IBM, Princeton, CMU and UIUC, Bamba, 2024; as transformers has it",
    .fields = bamba_fields,
    .params_size = sizeof(cs_decoder),
    .build = build,
};
