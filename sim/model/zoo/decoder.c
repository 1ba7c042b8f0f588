/* Decoders, mostly with RMS norms, rotary positions and gated MLPs: Llama, Mistral, Qwen, Mixtral,
 * DeepSeek, GPT-OSS, Mamba-2 and its hybrids with attention. Operators have the names that
 * transformers gives them. */
#include "sim/model/zoo/decoder.h"

#include "sim/model/zoo/zoo.h"

#include <string.h>

static bool has_bias(const cs_decoder *p, cs_biased layer)
{
    return p->bias && p->biased <= (uint32_t)layer;
}

/* ---- attention ---- */

/* Returns the kind of layer i: 'f' attends to all tokens, 'w' attends to the tokens of a window,
 * 'm' has a mixer instead of attention. */
static char kind_of(const cs_decoder *p, uint32_t i)
{
    if (p->pattern && p->pattern[0])
        return p->pattern[i % strlen(p->pattern)];
    return p->mixer.heads > 0 ? 'm' : p->window > 0 ? 'w' : 'f';
}

static cs_attention attention_of(const cs_decoder *p, uint32_t i, uint32_t kv_heads)
{
    return (cs_attention){.heads = p->heads,
                          .kv_heads = kv_heads,
                          .kernel = (cs_attention_kernel)p->kernel,
                          .causal = true,
                          .dropout = p->dropout,
                          .window = kind_of(p, i) == 'w' ? p->window : 0,
                          .sinks = p->sinks};
}

static cs_tensor norm(cs_net *net, const cs_decoder *p, const char *name, cs_tensor x)
{
    return p->norm ? cs_net_layer_norm(net, name, x) : cs_net_rms_norm(net, name, x);
}

/* Normalises queries or keys head by head if the decoder does so, and adds rotary positions. */
static cs_tensor rotate(cs_net *net, const cs_decoder *p, const char *head_norm, const char *rotary,
                        cs_tensor x, uint32_t heads)
{
    if (p->head_norms)
        x = cs_net_head_norm(net, head_norm, x, heads);
    return p->positions == CS_POSITIONS_ROTARY ? cs_net_rotary(net, rotary, x) : x;
}

/* Adds grouped-query attention: each head of keys and values serves a group of query heads (Ainslie
 * et al., EMNLP 2023). */
static cs_tensor attend(cs_net *net, const cs_decoder *p, uint32_t i, cs_tensor x)
{
    const uint32_t head = p->head ? p->head : p->hidden / p->heads;
    const cs_linear query = {.out = p->heads * head, .bias = has_bias(p, CS_BIASED_QKV)};
    const cs_linear key = {.out = p->kv_heads * head, .bias = has_bias(p, CS_BIASED_QKV)};
    const cs_attention attention = attention_of(p, i, p->kv_heads);
    cs_tensor q = cs_net_linear(net, "q_proj", x, &query);
    cs_tensor k = cs_net_linear(net, "k_proj", x, &key);
    cs_tensor v = cs_net_linear(net, "v_proj", x, &key);
    q = rotate(net, p, "q_norm", "q_rotary", q, p->heads);
    k = rotate(net, p, "k_norm", "k_rotary", k, p->kv_heads);
    x = cs_net_attention(net, "attention", (const cs_tensor[]){q, k, v}, &attention);
    return cs_net_linear(net, "o_proj", x,
                         &(cs_linear){.out = p->hidden, .bias = has_bias(p, CS_BIASED_ATTENTION)});
}

/* Adds the queries of latent attention. If query_rank > 0, they are computed through a latent
 * vector. Only some of their features have rotary positions. */
static cs_tensor make_queries(cs_net *net, const cs_decoder *p, cs_tensor x)
{
    const cs_linear query = {.out = p->heads * (p->nope_head + p->rope_head)};
    if (p->query_rank > 0) {
        x = cs_net_linear(net, "q_a_proj", x, &(cs_linear){.out = p->query_rank});
        x = cs_net_linear(net, "q_b_proj", cs_net_rms_norm(net, "q_a_layernorm", x), &query);
    } else {
        x = cs_net_linear(net, "q_proj", x, &query);
    }
    cs_tensor rope = cs_net_features(net, "q_rope", x, p->heads * p->rope_head);
    const cs_tensor parts[] = {cs_net_features(net, "q_nope", x, p->heads * p->nope_head),
                               cs_net_rotary(net, "q_rotary", rope)};
    return cs_net_head_concat(net, "q", parts, p->heads, false);
}

/* Adds multi-head latent attention as in training (DeepSeek-V2, arXiv 2405.04434, section 2.1):
 * keys and values are computed from one latent vector per token, and all heads share the part of
 * the keys that has positions. */
static cs_tensor attend_latent(cs_net *net, const cs_decoder *p, uint32_t i, cs_tensor x)
{
    const cs_attention attention = attention_of(p, i, p->heads);
    const cs_tensor q = make_queries(net, p, x);
    const cs_linear down = {.out = p->latent_rank + p->rope_head};
    const cs_linear up = {.out = p->heads * (p->nope_head + p->value_head)};
    cs_tensor both = cs_net_linear(net, "kv_a_proj_with_mqa", x, &down);
    cs_tensor latent = cs_net_features(net, "kv_latent", both, p->latent_rank);
    cs_tensor rope = cs_net_features(net, "k_rope", both, p->rope_head);
    cs_tensor kv =
        cs_net_linear(net, "kv_b_proj", cs_net_rms_norm(net, "kv_a_layernorm", latent), &up);
    const cs_tensor keys[] = {cs_net_features(net, "k_nope", kv, p->heads * p->nope_head),
                              cs_net_rotary(net, "k_rotary", rope)};
    const cs_tensor k = cs_net_head_concat(net, "k", keys, p->heads, true);
    const cs_tensor v = cs_net_features(net, "v", kv, p->heads * p->value_head);
    x = cs_net_attention(net, "attention", (const cs_tensor[]){q, k, v}, &attention);
    return cs_net_linear(net, "o_proj", x, &(cs_linear){.out = p->hidden});
}

/* ---- state spaces ---- */

/* Adds the mixer of Mamba-2 (Dao and Gu, ICML 2024, figure 6): a gate, a convolution over x, B and
 * C, the scan, and a norm of the scan's result times the gate. */
static cs_tensor mix(cs_net *net, const cs_decoder *p, cs_tensor x)
{
    const cs_mixer *m = &p->mixer;
    const cs_scan scan = {m->heads, m->groups, m->state, m->chunk};
    const uint32_t inner = m->heads * m->head, group = m->groups * m->state;
    const cs_linear in = {.out = 2 * inner + 2 * group + m->heads,
                          .bias = has_bias(p, CS_BIASED_ALL)};
    const cs_tensor both = cs_net_linear(net, "in_proj", x, &in);
    x = cs_net_features(net, "xBC", both, inner + 2 * group);
    x = cs_net_causal_conv(net, "conv1d", x, m->conv, true);
    const cs_tensor inputs[] = {
        cs_net_features(net, "x", x, inner), cs_net_features(net, "dt", both, m->heads),
        cs_net_features(net, "B", x, group), cs_net_features(net, "C", x, group)};
    x = cs_net_scan(net, "scan", inputs, &scan);
    const cs_tensor gate = cs_net_silu(net, "gate", cs_net_features(net, "z", both, inner));
    x = cs_net_rms_norm(net, "norm", cs_net_mul(net, "mul", x, gate));
    return cs_net_linear(net, "out_proj", x,
                         &(cs_linear){.out = p->hidden, .bias = has_bias(p, CS_BIASED_ALL)});
}

/* ---- MLPs ---- */

static bool has_gate(const cs_decoder *p)
{
    return p->activation == CS_ACTIVATION_SWIGLU || p->activation == CS_ACTIVATION_GEGLU;
}

static cs_tensor activate(cs_net *net, const cs_decoder *p, cs_tensor x)
{
    return p->activation == CS_ACTIVATION_SWIGLU ? cs_net_silu(net, "act", x)
                                                 : cs_net_gelu(net, "act", x);
}

static cs_tensor add_mlp(cs_net *net, const cs_decoder *p, cs_tensor x, const char *scope,
                         uint32_t intermediate)
{
    uint32_t mark = cs_net_enter(net, scope);
    const cs_linear inner = {.out = intermediate, .bias = has_bias(p, CS_BIASED_ALL)};
    if (has_gate(p)) {
        cs_tensor gate = activate(net, p, cs_net_linear(net, "gate_proj", x, &inner));
        x = cs_net_mul(net, "mul", gate, cs_net_linear(net, "up_proj", x, &inner));
    } else {
        x = activate(net, p, cs_net_linear(net, "up_proj", x, &inner));
    }
    x = cs_net_linear(net, "down_proj", x,
                      &(cs_linear){.out = p->hidden, .bias = has_bias(p, CS_BIASED_ALL)});
    cs_net_leave(net, mark);
    return x;
}

/* Adds the MLPs of all experts, each on the rows that are routed to it. */
static cs_tensor add_experts(cs_net *net, const cs_decoder *p, cs_tensor rows)
{
    uint32_t mark = cs_net_enter(net, "experts");
    cs_grouped_linear linear = {p->expert_intermediate, p->experts, p->top_k,
                                has_bias(p, CS_BIASED_ALL)};
    if (has_gate(p)) {
        cs_tensor gate = activate(net, p, cs_net_grouped_linear(net, "gate_proj", rows, &linear));
        rows = cs_net_mul(net, "mul", gate, cs_net_grouped_linear(net, "up_proj", rows, &linear));
    } else {
        rows = activate(net, p, cs_net_grouped_linear(net, "up_proj", rows, &linear));
    }
    linear.out = p->hidden;
    rows = cs_net_grouped_linear(net, "down_proj", rows, &linear);
    cs_net_leave(net, mark);
    return rows;
}

static cs_tensor add_mixture(cs_net *net, const cs_decoder *p, cs_tensor x)
{
    uint32_t mark = cs_net_enter(net, "mlp");
    const cs_linear router = {.out = p->experts, .wide = true, .bias = p->router_bias};
    cs_tensor routing =
        cs_net_top_k(net, "top_k", cs_net_linear(net, "gate", x, &router), p->top_k);
    cs_tensor rows = cs_net_dispatch(net, "dispatch", x, routing, p->capacity);
    cs_tensor y = cs_net_combine(net, "combine", add_experts(net, p, rows), routing);
    const uint32_t shared = p->shared_intermediate > 0 ? p->shared_intermediate
                                                       : p->shared_experts * p->expert_intermediate;
    if (shared > 0)
        y = cs_net_add(net, "add", y, add_mlp(net, p, x, "shared_experts", shared));
    cs_net_leave(net, mark);
    return y;
}

/* ---- blocks ---- */

static cs_tensor add_mixing(cs_net *net, const cs_decoder *p, uint32_t i, cs_tensor x)
{
    const bool mixer = kind_of(p, i) == 'm';
    uint32_t mark = cs_net_enter(net, mixer ? "mixer" : "self_attn");
    x = mixer                ? mix(net, p, x)
        : p->latent_rank > 0 ? attend_latent(net, p, i, x)
                             : attend(net, p, i, x);
    cs_net_leave(net, mark);
    return x;
}

static cs_tensor add_layer(cs_net *net, const cs_decoder *p, uint32_t i, cs_tensor x)
{
    const bool mixture = p->experts > 0 && i >= p->dense_layers;
    cs_tensor y = add_mixing(net, p, i, norm(net, p, "input_layernorm", x));
    x = cs_net_add(net, "add_1", x, cs_net_dropout(net, "dropout_1", y, p->dropout));
    if (!mixture && p->intermediate == 0)
        return x;
    y = norm(net, p, "post_attention_layernorm", x);
    y = mixture ? add_mixture(net, p, y) : add_mlp(net, p, y, "mlp", p->intermediate);
    return cs_net_add(net, "add_2", x, cs_net_dropout(net, "dropout_2", y, p->dropout));
}

/* Adds the modules of multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2). For each
 * token, module d reads the previous module's result and the embedding of the token d places
 * further on, and predicts the token after that one. It uses the embedding and the head of the
 * model. */
static void add_next_tokens(cs_net *net, const cs_decoder *p, cs_tensor x, cs_tensor embedded,
                            cs_tensor logits)
{
    for (uint32_t d = 0; d < p->next_tokens; d++) {
        cs_net_block(net, "mtp.%u", d);
        const cs_tensor ids = cs_net_more_token_ids(net, p->sequence);
        const cs_tensor next = cs_net_embedding_of(net, "embed_tokens", ids, embedded);
        const cs_tensor both[] = {norm(net, p, "enorm", next), norm(net, p, "hnorm", x)};
        const cs_linear head = {.out = p->vocabulary, .wide = true, .tied = true, .lender = logits};
        x = cs_net_head_concat(net, "concat", both, 1, false);
        x = cs_net_linear(net, "eh_proj", x, &(cs_linear){.out = p->hidden});
        x = add_layer(net, p, p->layers + d, x);
        cs_tensor y = norm(net, p, "shared_head.norm", x);
        cs_net_cross_entropy(net, "loss", cs_net_linear(net, "shared_head.head", y, &head));
    }
}

/* ---- checks ---- */

static bool has_layers(const cs_decoder *p, char kind)
{
    bool has = false;
    for (uint32_t i = 0; i < p->layers; i++)
        has |= kind_of(p, i) == kind;
    return has;
}

static bool check_pattern(cs_net *net, const cs_decoder *p)
{
    const size_t known = p->pattern ? strspn(p->pattern, "fwm") : 0;
    if (p->pattern && p->pattern[known]) {
        cs_net_refuse(
            net, "pattern",
            "must be letters f (attends to everything), w (within the window) and m (mixer "
            "of a state space), one per layer, repeated (got \"%.32s\")",
            p->pattern);
        return false;
    }
    if (has_layers(p, 'w') && p->window == 0) {
        cs_net_refuse(net, "window", "must be given for the layers w of the pattern \"%.32s\"",
                      p->pattern);
        return false;
    }
    if (has_layers(p, 'm') && p->mixer.heads == 0) {
        cs_net_refuse(net, "pattern", "must have no layers m for a model without state spaces");
        return false;
    }
    return true;
}

static bool check_mixer(cs_net *net, const cs_decoder *p)
{
    if (p->mixer.heads == 0 || p->mixer.heads % p->mixer.groups == 0)
        return true;
    cs_net_refuse(net, "state_groups", "must divide state_heads, %u (got %u)", p->mixer.heads,
                  p->mixer.groups);
    return false;
}

static bool check_experts(cs_net *net, const cs_decoder *p)
{
    if (p->experts == 0 && p->capacity > 0) {
        cs_net_refuse(net, "capacity", "goes with experts only");
        return false;
    }
    if (p->experts > 0 && (p->top_k < 1 || p->top_k > p->experts)) {
        cs_net_refuse(net, "top_k", "must be from 1 to experts, %u (got %u)", p->experts, p->top_k);
        return false;
    }
    return true;
}

static bool check_latent(cs_net *net, const cs_decoder *p)
{
    if (p->latent_rank == 0 || (p->nope_head > 0 && p->rope_head > 0 && p->value_head > 0))
        return true;
    cs_net_refuse(net,
                  p->nope_head == 0   ? "qk_nope_head"
                  : p->rope_head == 0 ? "qk_rope_head"
                                      : "v_head",
                  "must be >= 1 with latent attention (got 0)");
    return false;
}

static bool check_heads(cs_net *net, const cs_decoder *p)
{
    if (p->latent_rank > 0 || !(has_layers(p, 'f') || has_layers(p, 'w')))
        return true;
    if (p->head == 0 && p->hidden % p->heads != 0) {
        cs_net_refuse(net, "heads", "must divide hidden, %u (got %u)", p->hidden, p->heads);
        return false;
    }
    if (p->heads % p->kv_heads == 0)
        return true;
    cs_net_refuse(net, "kv_heads", "must divide heads, %u (got %u)", p->heads, p->kv_heads);
    return false;
}

static bool check(cs_net *net, const cs_decoder *p)
{
    return check_pattern(net, p) && check_heads(net, p) && check_experts(net, p) &&
           check_latent(net, p) && check_mixer(net, p);
}

static void build(cs_net *net, const void *variant, const void *params)
{
    cs_decoder whole = *(const cs_decoder *)params, *p = &whole;
    (void)variant;
    whole.kv_heads = p->kv_heads ? p->kv_heads : p->heads;
    if (!check(net, p))
        return;
    cs_net_block(net, "embedding");
    const cs_tensor embedded = cs_net_embedding(
        net, "embed_tokens", cs_net_token_ids(net, p->sequence), p->vocabulary, p->hidden);
    cs_tensor x = embedded;
    if (p->positions == CS_POSITIONS_LEARNED)
        x = cs_net_add_table(net, "embed_positions", x, (int64_t)p->sequence * p->hidden);
    x = cs_net_dropout(net, "dropout", x, p->dropout);
    for (uint32_t i = 0; i < p->layers; i++) {
        cs_net_block(net, "layers.%u", i);
        x = add_layer(net, p, i, x);
    }
    cs_net_block(net, "head");
    cs_tensor y = norm(net, p, "norm", x);
    y = cs_net_linear(net, "lm_head", y,
                      &(cs_linear){.out = p->vocabulary, .wide = true, .tied = p->tied});
    cs_net_cross_entropy(net, "loss", y);
    add_next_tokens(net, p, x, embedded, y);
}

/* ---- keys ---- */

static const char *const activations[] = {"swiglu", "geglu", "gelu", "squared_relu", NULL};
static const char *const norms[] = {"rmsnorm", "layernorm", NULL};
static const char *const positions[] = {"rotary", "learned", "none", NULL};
static const char *const biased[] = {"all", "attention", "qkv", NULL};

static const char *const kernels[] = {
    [CS_ATTENTION_FLASH] = "flash", [CS_ATTENTION_MATH] = "math", NULL};

enum { DIM_MAX = 1 << 20 };

#define DIM(key_, default_, doc_)                                                                  \
    {                                                                                              \
#key_, CS_FIELD_COUNT, offsetof(cs_decoder, key_), .fallback = default_, .min = 1,         \
                                                           .max = DIM_MAX, .doc = doc_             \
    }

/* Declares a size whose value 0 means that it is absent. */
#define MAYBE(key_, member_, default_, doc_)                                                       \
    {                                                                                              \
        key_, CS_FIELD_COUNT, offsetof(cs_decoder, member_), .fallback = default_, .max = DIM_MAX, \
                                                             .doc = doc_                           \
    }

#define CHOICE(key_, member_, choices_, default_, doc_)                                            \
    {                                                                                              \
        key_, CS_FIELD_CHOICE, offsetof(cs_decoder, member_), .fallback = default_,                \
                                                              .choices = choices_, .doc = doc_     \
    }

#define SWITCH(key_, doc_)                                                                         \
    {                                                                                              \
#key_, CS_FIELD_BOOL, offsetof(cs_decoder, key_), .fallback = "false", .doc = doc_         \
    }

#define OF_MIXER(key_, member_, default_, doc_)                                                    \
    {                                                                                              \
        key_, CS_FIELD_COUNT, offsetof(cs_decoder, mixer.member_), .fallback = default_, .min = 1, \
                                                                   .max = DIM_MAX, .doc = doc_     \
    }

static const cs_field fields[] = {
    {"layers", CS_FIELD_COUNT, offsetof(cs_decoder, layers), .fallback = "32", .min = 1,
     .max = 4096, .doc = "number of blocks"},
    DIM(hidden, "4096", "hidden size: features of a token"),
    DIM(heads, "32", "query heads; their number divides hidden"),
    MAYBE("kv_heads", kv_heads, "8",
          "heads of keys and values; their number divides heads; 0: as many as heads"),
    DIM(sequence, "4096", "sequence length: tokens of a sample"),
    DIM(vocabulary, "128256", "vocabulary size"),
    MAYBE("intermediate", intermediate, "14336", "intermediate size of the MLP; 0: there is none"),
    MAYBE("head", head, "0", "features of an attention head; 0: hidden / heads"),
    SWITCH(tied, "the last matrix is the embedding's"),
    CHOICE("activation", activation, activations, "swiglu",
           "activation of the MLPs; swiglu and geglu are gated"),
    CHOICE("norm", norm, norms, "rmsnorm", "normalisation before attention and MLP"),
    CHOICE("positions", positions, positions, "rotary",
           "position encoding; none: also if attention adds positions, like ALiBi"),
    SWITCH(bias, "linear layers have biases, except the router and the last one"),
    CHOICE("bias_in", biased, biased, "all",
           "linear layers that bias is about; qkv: projections of queries, keys and values; "
           "attention: also the output projection"),
    SWITCH(head_norms, "queries and keys are normalised per head"),
    SWITCH(sinks, "each head of attention has a learned sink"),
    SWITCH(router_bias, "the router has a bias for each expert"),
    {"dropout", CS_FIELD_NUMBER, offsetof(cs_decoder, dropout), .fallback = "0", .max = 1,
     .doc = "dropout probability; 0: no dropout"},
    MAYBE("window", window, "0",
          "sliding window of layers w: tokens that a token attends to, itself included; 0: no "
          "windows"),
    {"pattern", CS_FIELD_TEXT, offsetof(cs_decoder, pattern), .fallback = "",
     .doc = "one letter per layer, repeated; w: attends within the window; f: full attention; m: "
            "state space (Mamba-2); default: all layers alike"},
    MAYBE("experts", experts, "0", "routed experts per layer; 0: all layers have an MLP"),
    DIM(top_k, "1", "number of experts that a token is routed to"),
    DIM(expert_intermediate, "1", "intermediate size of an expert"),
    {"capacity", CS_FIELD_NUMBER, offsetof(cs_decoder, capacity), .fallback = "0", .max = DIM_MAX,
     .doc = "capacity factor: rows that each expert computes, padding included, relative to an "
            "equal share; 0: as many as it gets"},
    MAYBE("shared_experts", shared_experts, "0", "shared experts: experts that all tokens go to"),
    MAYBE("shared_intermediate", shared_intermediate, "0",
          "intermediate size of the shared experts, all together; 0: as the routed ones"),
    MAYBE("dense_layers", dense_layers, "0",
          "number of first layers that have an MLP instead of experts"),
    MAYBE("q_lora_rank", query_rank, "0", "size of the latent vector of queries; 0: there is none"),
    MAYBE("kv_lora_rank", latent_rank, "0",
          "size of the latent vector of keys and values; 0: there is none"),
    MAYBE("qk_nope_head", nope_head, "128",
          "features of a query or key head without rotary positions, with kv_lora_rank"),
    MAYBE("qk_rope_head", rope_head, "64",
          "features of a query or key head with rotary positions, with kv_lora_rank"),
    MAYBE("v_head", value_head, "128", "features of a value head, with kv_lora_rank"),
    MAYBE("state_heads", mixer.heads, "0", "number of heads of the state space; 0: there is none"),
    OF_MIXER("state_head", head, "64", "features of a head of the state space"),
    OF_MIXER("state_groups", groups, "1", "groups of heads that share B and C"),
    OF_MIXER("state", state, "128", "state size of each feature"),
    OF_MIXER("conv", conv, "4", "width of the convolution, tokens"),
    OF_MIXER("chunk", chunk, "256", "chunk size of the scan, tokens"),
    MAYBE("next_tokens", next_tokens, "0",
          "multi-token prediction (MTP): modules, each of which predicts one more token"),
    CHOICE("attention", kernel, kernels, "flash",
           "flash: a fused kernel; math: one that keeps the attention matrix"),
    {0},
};

const cs_zoo_entry cs_zoo_decoder = {
    .name = "decoder",
    .summary = "Decoder whose activation, norms, positions, attention and experts can be chosen; "
               "the defaults are Llama-3 8B",
    .source = "Llama Team, The Llama 3 herd of models, 2024 (arXiv 2407.21783); Megatron-LM's "
              "arguments for the other choices",
    .fields = fields,
    .params_size = sizeof(cs_decoder),
    .build = build,
};
