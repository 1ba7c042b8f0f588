/* GPT: decoder blocks with layer norms in front, as GPT-2 has them. */
#include "sim/model/zoo/families.h"
#include "sim/model/zoo/transformer.h"

#define DIM(key, default_, doc_) CS_DIM(cs_gpt, key, default_, doc_)

static const cs_field fields[] = {
    CS_LAYERS_FIELD(cs_gpt, "12"),
    DIM(hidden, "768", "hidden size: features of a token"),
    DIM(heads, "12", "attention heads; their number divides hidden"),
    DIM(sequence, "1024", "sequence length: tokens of a sample"),
    DIM(vocabulary, "50257", "vocabulary size"),
    CS_DIM_OR_ZERO(cs_gpt, positions, "learned positions; 0: as many as tokens in the sequence"),
    CS_DIM_OR_ZERO(cs_gpt, intermediate, "intermediate size of the MLP; 0: four times hidden"),
    CS_DROPOUT_FIELD(cs_gpt, "0.1"),
    CS_KERNEL_FIELD(cs_gpt),
    {0},
};

static cs_tensor attend(cs_net *net, const cs_gpt *p, cs_tensor x)
{
    uint32_t mark = cs_net_enter(net, "attn");
    x = cs_net_linear(net, "c_attn", x, &(cs_linear){.out = 3 * p->hidden, .bias = true});
    const cs_tensor qkv[] = {cs_net_features(net, "q", x, p->hidden),
                             cs_net_features(net, "k", x, p->hidden),
                             cs_net_features(net, "v", x, p->hidden)};
    x = cs_net_attention(
        net, "attention", qkv,
        &(cs_attention){p->heads, p->heads, p->kernel, .causal = true, .dropout = p->dropout});
    x = cs_net_linear(net, "c_proj", x, &(cs_linear){.out = p->hidden, .bias = true});
    x = cs_net_dropout(net, "dropout", x, p->dropout);
    cs_net_leave(net, mark);
    return x;
}

static cs_tensor add_mlp(cs_net *net, const cs_gpt *p, cs_tensor x)
{
    uint32_t inner = p->intermediate ? p->intermediate : 4 * p->hidden;
    uint32_t mark = cs_net_enter(net, "mlp");
    x = cs_net_linear(net, "c_fc", x, &(cs_linear){.out = inner, .bias = true});
    x = cs_net_gelu(net, "act", x);
    x = cs_net_linear(net, "c_proj", x, &(cs_linear){.out = p->hidden, .bias = true});
    x = cs_net_dropout(net, "dropout", x, p->dropout);
    cs_net_leave(net, mark);
    return x;
}

cs_tensor cs_gpt_block(cs_net *net, const cs_gpt *p, cs_tensor x)
{
    x = cs_net_add(net, "add_1", x, attend(net, p, cs_net_layer_norm(net, "ln_1", x)));
    return cs_net_add(net, "add_2", x, add_mlp(net, p, cs_net_layer_norm(net, "ln_2", x)));
}

static void build(cs_net *net, const void *variant, const void *params)
{
    const cs_gpt *p = params;
    (void)variant;
    uint32_t positions = p->positions ? p->positions : p->sequence;
    if (!cs_net_check_heads(net, p->hidden, p->heads))
        return;
    if (p->sequence > positions)
        cs_net_refuse(net, "sequence", "must be at most positions, %u (got %u)", positions,
                      p->sequence);
    cs_net_block(net, "embedding");
    cs_tensor tokens =
        cs_net_embedding(net, "wte", cs_net_token_ids(net, p->sequence), p->vocabulary, p->hidden);
    cs_tensor x = cs_net_positions(net, "wpe", tokens, positions);
    x = cs_net_dropout(net, "drop", x, p->dropout);
    for (uint32_t i = 0; i < p->layers; i++) {
        cs_net_block(net, "h.%u", i);
        x = cs_gpt_block(net, p, x);
    }
    cs_net_block(net, "head");
    x = cs_net_layer_norm(net, "ln_f", x);
    x = cs_net_linear(net, "lm_head", x,
                      &(cs_linear){.out = p->vocabulary, .wide = true, .tied = true});
    cs_net_cross_entropy(net, "loss", x);
}

const cs_zoo_entry cs_zoo_gpt = {
    .name = "gpt",
    .summary = "GPT-like decoder; the defaults are GPT-2 small",
    .source = "Radford et al., Language models are unsupervised multitask learners, 2019; as "
              "transformers has GPT-2",
    .fields = fields,
    .params_size = sizeof(cs_gpt),
    .build = build,
};
