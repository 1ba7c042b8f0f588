/* Llama: decoder blocks with RMS norms, rotary positions, grouped keys and values, SwiGLU. Mistral
 * and Qwen2 have the same blocks. */
#include "sim/workload/zoo/families.h"
#include "sim/workload/zoo/transformer.h"

#define DIM(key, default_, doc_) CS_DIM(cs_llama, key, default_, doc_)

static const cs_field fields[] = {
    CS_LAYERS_FIELD(cs_llama, "32"),
    DIM(hidden, "4096", "features of a token"),
    DIM(heads, "32", "of the queries; they divide hidden"),
    DIM(kv_heads, "32", "of keys and values; they divide heads"),
    DIM(sequence, "4096", "tokens of a sample"),
    DIM(vocabulary, "32000", "different tokens"),
    DIM(intermediate, "11008", "features within the MLP"),
    CS_DIM_OR_ZERO(cs_llama, head, "features of a head; 0: hidden / heads"),
    {"tied", CS_FIELD_BOOL, offsetof(cs_llama, tied), .fallback = "false",
     .doc = "the last matrix is the embedding's"},
    {"bias", CS_FIELD_BOOL, offsetof(cs_llama, bias), .fallback = "false",
     .doc = "queries, keys and values have one"},
    CS_KERNEL_FIELD(cs_llama),
    {0},
};

static cs_tensor attend(cs_net *net, const cs_llama *p, cs_tensor x)
{
    uint32_t head = p->head ? p->head : p->hidden / p->heads;
    uint32_t mark = cs_net_enter(net, "self_attn");
    const cs_linear query = {.out = p->heads * head, .bias = p->bias};
    const cs_linear key = {.out = p->kv_heads * head, .bias = p->bias};
    cs_tensor q = cs_net_linear(net, "q_proj", x, &query);
    cs_tensor k = cs_net_linear(net, "k_proj", x, &key);
    cs_tensor v = cs_net_linear(net, "v_proj", x, &key);
    const cs_tensor qkv[] = {cs_net_rotary(net, "q_rotary", q), cs_net_rotary(net, "k_rotary", k),
                             v};
    x = cs_net_attention(net, "attention", qkv,
                         &(cs_attention){p->heads, p->kv_heads, p->kernel, .causal = true});
    x = cs_net_linear(net, "o_proj", x, &(cs_linear){.out = p->hidden});
    cs_net_leave(net, mark);
    return x;
}

static cs_tensor add_mlp(cs_net *net, const cs_llama *p, cs_tensor x)
{
    uint32_t mark = cs_net_enter(net, "mlp");
    const cs_linear inner = {.out = p->intermediate};
    cs_tensor gate = cs_net_silu(net, "act", cs_net_linear(net, "gate_proj", x, &inner));
    x = cs_net_mul(net, "mul", gate, cs_net_linear(net, "up_proj", x, &inner));
    x = cs_net_linear(net, "down_proj", x, &(cs_linear){.out = p->hidden});
    cs_net_leave(net, mark);
    return x;
}

void cs_llama_build(cs_net *net, const cs_llama *p)
{
    if (p->head == 0 && !cs_net_check_heads(net, p->hidden, p->heads))
        return;
    if (p->heads % p->kv_heads != 0) {
        cs_net_refuse(net, "kv_heads", "must divide heads, %u (got %u)", p->heads, p->kv_heads);
        return;
    }
    cs_net_block(net, "embedding");
    cs_tensor x = cs_net_embedding(net, "embed_tokens", cs_net_token_ids(net, p->sequence),
                                   p->vocabulary, p->hidden);
    for (uint32_t i = 0; i < p->layers; i++) {
        cs_net_block(net, "layers.%u", i);
        cs_tensor y = attend(net, p, cs_net_rms_norm(net, "input_layernorm", x));
        x = cs_net_add(net, "add_1", x, y);
        y = add_mlp(net, p, cs_net_rms_norm(net, "post_attention_layernorm", x));
        x = cs_net_add(net, "add_2", x, y);
    }
    cs_net_block(net, "head");
    x = cs_net_rms_norm(net, "norm", x);
    x = cs_net_linear(net, "lm_head", x, &(cs_linear){.out = p->vocabulary, .tied = p->tied});
    cs_net_cross_entropy(net, "loss", x);
}

static void build(cs_net *net, const void *variant, const void *params)
{
    (void)variant;
    cs_llama_build(net, params);
}

const cs_zoo_entry cs_zoo_llama = {
    .name = "llama",
    .summary = "Llama-like decoder; the defaults are Llama-2 7B",
    .source = "Touvron et al., Llama 2, 2023 (arXiv 2307.09288); as transformers has it",
    .fields = fields,
    .params_size = sizeof(cs_llama),
    .build = build,
};
