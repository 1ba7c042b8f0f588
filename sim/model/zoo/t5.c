/* T5: an encoder and a decoder with norms in front, relative positions, and attention of the
 * decoder to what the encoder made, which is handed past the decoder's blocks; or as Megatron Core
 * builds it (megatron/core/models/T5: t5_model.py, t5_spec.py; its MLP, megatron/core/transformer/
 * mlp.py, has no dropout, and its last norms have none behind them). */
#include "sim/model/zoo/families.h"
#include "sim/model/zoo/transformer.h"

#define DIM(key, default_, doc_) CS_DIM(cs_t5, key, default_, doc_)

static const cs_field fields[] = {
    CS_LAYERS_FIELD(cs_t5, "12"),
    CS_DIM_OR_ZERO(cs_t5, decoder_layers, "blocks of the decoder; 0: as many as in the encoder"),
    DIM(hidden, "768", "hidden size: features of a token"),
    DIM(heads, "12", "attention heads"),
    DIM(head, "64", "features of an attention head"),
    DIM(intermediate, "3072", "intermediate size of the MLP"),
    DIM(sequence, "512", "tokens of a sample that the encoder reads"),
    DIM(decoder_sequence, "512", "tokens of a sample that the decoder reads"),
    DIM(vocabulary, "32128", "vocabulary size"),
    DIM(buckets, "32", "of relative positions"),
    {"gated", CS_FIELD_BOOL, offsetof(cs_t5, gated), .fallback = "false",
     .doc = "MLPs with gated GELU, as in T5 1.1, instead of ReLU"},
    {"tied", CS_FIELD_BOOL, offsetof(cs_t5, tied), .fallback = "true",
     .doc = "the last matrix is tied to the embedding; false in T5 1.1"},
    CS_DROPOUT_FIELD(cs_t5, "0.1"),
    {"attention", CS_FIELD_CHOICE, offsetof(cs_t5, kernel), .fallback = "math",
     .choices = cs_attention_kernels,
     .doc = "flash: a fused kernel; math: one that keeps the attention matrix, to which positions "
            "are added"},
    CS_FORM_FIELD(cs_t5),
    {0},
};

static bool is_megatron(const cs_t5 *p)
{
    return p->form == CS_FORM_MEGATRON;
}

static cs_tensor norm(cs_net *net, const cs_t5 *p, const char *name, cs_tensor x)
{
    return is_megatron(p) ? cs_net_layer_norm(net, name, x) : cs_net_rms_norm(net, name, x);
}

/* x attends to `from`. The biases of positions are learned in the first block, and used in all. */
static cs_tensor attend(cs_net *net, const cs_t5 *p, cs_tensor x, cs_tensor from,
                        const cs_attention *attention)
{
    const cs_linear inner = {.out = p->heads * p->head};
    if (is_megatron(p)) {
        x = cs_net_attend_packed(net, x, from, inner.out, attention);
        return cs_net_linear(net, "o", x, &(cs_linear){.out = p->hidden, .bias = true});
    }
    const cs_tensor qkv[] = {cs_net_linear(net, "q", x, &inner),
                             cs_net_linear(net, "k", from, &inner),
                             cs_net_linear(net, "v", from, &inner)};
    x = cs_net_attention(net, "attention", qkv, attention);
    return cs_net_linear(net, "o", x, &(cs_linear){.out = p->hidden});
}

static cs_tensor add_attention(cs_net *net, const cs_t5 *p, cs_tensor x, cs_tensor from, bool first,
                               bool causal)
{
    const bool cross = from != CS_NO_TENSOR;
    const cs_attention attention = {.heads = p->heads,
                                    .kv_heads = p->heads,
                                    .kernel = (cs_attention_kernel)p->kernel,
                                    .causal = causal,
                                    .padded = !causal,
                                    .dropout = p->dropout,
                                    .buckets = first && !is_megatron(p) ? p->buckets : 0};
    uint32_t mark = cs_net_enter(net, cross ? "EncDecAttention" : "SelfAttention");
    cs_tensor y = norm(net, p, "layer_norm", x);
    y = attend(net, p, y, cross ? from : y, &attention);
    x = cs_net_add(net, "add", x, cs_net_dropout(net, "dropout", y, p->dropout));
    cs_net_leave(net, mark);
    return x;
}

static cs_tensor add_mlp(cs_net *net, const cs_t5 *p, cs_tensor x)
{
    const bool megatron = is_megatron(p);
    const cs_linear inner = {.out = p->intermediate, .bias = megatron};
    uint32_t mark = cs_net_enter(net, "DenseReluDense");
    cs_tensor y = norm(net, p, "layer_norm", x), z = y;
    y = cs_net_linear(net, p->gated ? "wi_0" : "wi", y, &inner);
    y = p->gated || megatron ? cs_net_gelu(net, "act", y) : cs_net_relu(net, "act", y);
    if (p->gated)
        y = cs_net_mul(net, "mul", y, cs_net_linear(net, "wi_1", z, &inner));
    if (!megatron)
        y = cs_net_dropout(net, "dropout", y, p->dropout);
    y = cs_net_linear(net, "wo", y, &(cs_linear){.out = p->hidden, .bias = megatron});
    x = cs_net_add(net, "add", x, cs_net_dropout(net, "dropout_2", y, p->dropout));
    cs_net_leave(net, mark);
    return x;
}

static cs_tensor finish(cs_net *net, const cs_t5 *p, cs_tensor x)
{
    x = norm(net, p, "final_layer_norm", x);
    return is_megatron(p) ? x : cs_net_dropout(net, "dropout", x, p->dropout);
}

/* What an embedding is, and with learned positions the sum with them: one table of each. */
typedef struct embedded {
    cs_tensor tokens, positions;
} embedded;

static cs_tensor embed_first(cs_net *net, const cs_t5 *p, embedded *to)
{
    const uint32_t most = p->sequence > p->decoder_sequence ? p->sequence : p->decoder_sequence;
    const cs_tensor ids = cs_net_token_ids(net, p->sequence);
    to->tokens = cs_net_embedding(net, "embed_tokens", ids, p->vocabulary, p->hidden);
    to->positions =
        is_megatron(p) ? cs_net_positions(net, "embed_positions", to->tokens, most) : to->tokens;
    return cs_net_dropout(net, "dropout", to->positions, p->dropout);
}

static cs_tensor embed_again(cs_net *net, const cs_t5 *p, const embedded *first)
{
    const cs_tensor ids = cs_net_more_token_ids(net, p->decoder_sequence);
    cs_tensor x = cs_net_embedding_of(net, "embed_tokens", ids, first->tokens);
    if (is_megatron(p))
        x = cs_net_add_table_of(net, "embed_positions", x, first->positions);
    return cs_net_dropout(net, "dropout", x, p->dropout);
}

static cs_tensor add_decoder(cs_net *net, const cs_t5 *p, const embedded *first, cs_tensor encoded)
{
    const uint32_t layers = p->decoder_layers ? p->decoder_layers : p->layers;
    cs_net_block(net, "decoder.embedding");
    cs_tensor x = embed_again(net, p, first);
    for (uint32_t i = 0; i < layers; i++) {
        cs_net_block(net, "decoder.block.%u", i);
        x = add_attention(net, p, x, CS_NO_TENSOR, i == 0, true);
        x = add_attention(net, p, x, encoded, false, false);
        x = add_mlp(net, p, x);
    }
    return x;
}

static void build(cs_net *net, const void *variant, const void *params)
{
    const cs_t5 *p = params;
    (void)variant;
    cs_net_block(net, "encoder.embedding");
    embedded first;
    cs_tensor x = embed_first(net, p, &first);
    for (uint32_t i = 0; i < p->layers; i++) {
        cs_net_block(net, "encoder.block.%u", i);
        x = add_mlp(net, p, add_attention(net, p, x, CS_NO_TENSOR, i == 0, false));
    }
    cs_net_block(net, "encoder.final");
    const cs_tensor encoded = finish(net, p, x);
    cs_net_carry(net, encoded);
    x = add_decoder(net, p, &first, encoded);
    cs_net_block(net, "head");
    const cs_linear head = {.out = p->vocabulary,
                            .bias = is_megatron(p) && p->tied,
                            .wide = true,
                            .tied = p->tied,
                            .lender = first.tokens};
    cs_net_cross_entropy(net, "loss", cs_net_linear(net, "lm_head", finish(net, p, x), &head));
}

const cs_zoo_entry cs_zoo_t5 = {
    .name = "t5",
    .summary = "Encoder and decoder; the defaults are T5 base",
    .source = "Raffel et al., JMLR 2020 (arXiv 1910.10683); as transformers has it",
    .fields = fields,
    .params_size = sizeof(cs_t5),
    .build = build,
};
