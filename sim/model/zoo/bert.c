/* BERT: encoder blocks with layer norms behind, and a pooler. The loss on the pooler's output
 * stands for that of a task. Or as Megatron Core builds it, with norms in front
 * (megatron/core/models/bert: bert_model.py, bert_layer_specs.py). */
#include "sim/model/zoo/families.h"
#include "sim/model/zoo/transformer.h"

#define DIM(key, default_, doc_) CS_DIM(cs_bert, key, default_, doc_)

static const cs_field fields[] = {
    CS_LAYERS_FIELD(cs_bert, "12"),
    DIM(hidden, "768", "hidden size: features of a token"),
    DIM(heads, "12", "attention heads; their number divides hidden"),
    DIM(sequence, "512", "sequence length: tokens of a sample"),
    DIM(vocabulary, "30522", "vocabulary size"),
    DIM(positions, "512", "number of learned positions"),
    DIM(types, "2", "segment types"),
    CS_DIM_OR_ZERO(cs_bert, intermediate, "intermediate size of the MLP; 0: four times hidden"),
    CS_DROPOUT_FIELD(cs_bert, "0.1"),
    CS_KERNEL_FIELD(cs_bert),
    {"head", CS_FIELD_BOOL, offsetof(cs_bert, head), .fallback = "false",
     .doc = "with the heads of pre-training (masked tokens, next sentence) instead of the head of "
            "a task"},
    CS_FORM_FIELD(cs_bert),
    {0},
};

/* The norm behind what a block adds, or in front of it. */
static cs_tensor norm(cs_net *net, const cs_bert *p, cs_tensor x, cs_encoder_form form)
{
    return p->form == (uint32_t)form ? cs_net_layer_norm(net, "LayerNorm", x) : x;
}

static cs_tensor weigh(cs_net *net, const cs_bert *p, cs_tensor x)
{
    const cs_attention attention = {p->heads, p->heads, p->kernel, .dropout = p->dropout,
                                    .padded = true};
    const cs_linear same = {.out = p->hidden, .bias = true};
    if (p->form == CS_FORM_MEGATRON)
        return cs_net_attend_packed(net, x, x, p->hidden, &attention);
    const cs_tensor qkv[] = {cs_net_linear(net, "query", x, &same),
                             cs_net_linear(net, "key", x, &same),
                             cs_net_linear(net, "value", x, &same)};
    return cs_net_attention(net, "attention", qkv, &attention);
}

static cs_tensor attend(cs_net *net, const cs_bert *p, cs_tensor x)
{
    const cs_linear same = {.out = p->hidden, .bias = true};
    uint32_t mark = cs_net_enter(net, "attention");
    cs_tensor y = weigh(net, p, norm(net, p, x, CS_FORM_MEGATRON));
    y = cs_net_dropout(net, "dropout", cs_net_linear(net, "dense", y, &same), p->dropout);
    y = norm(net, p, cs_net_add(net, "add", y, x), CS_FORM_PAPER);
    cs_net_leave(net, mark);
    return y;
}

static cs_tensor add_mlp(cs_net *net, const cs_bert *p, cs_tensor x)
{
    uint32_t inner = p->intermediate ? p->intermediate : 4 * p->hidden;
    uint32_t mark = cs_net_enter(net, "output");
    cs_tensor y = cs_net_linear(net, "intermediate", norm(net, p, x, CS_FORM_MEGATRON),
                                &(cs_linear){.out = inner, .bias = true});
    y = cs_net_gelu(net, "act", y);
    y = cs_net_linear(net, "dense", y, &(cs_linear){.out = p->hidden, .bias = true});
    y = cs_net_add(net, "add", cs_net_dropout(net, "dropout", y, p->dropout), x);
    y = norm(net, p, y, CS_FORM_PAPER);
    cs_net_leave(net, mark);
    return y;
}

/* Pre-training (section 3.1): tokens by a dense layer and the embedding's matrix, and from the
 * pooled first token whether the second sentence follows the first one. */
static void add_head(cs_net *net, const cs_bert *p, cs_tensor x)
{
    const cs_linear same = {.out = p->hidden, .bias = true};
    cs_net_block(net, "head");
    cs_tensor first = cs_net_take_first(net, "first", x);
    first = cs_net_tanh(net, "activation", cs_net_linear(net, "pooler", first, &same));
    first = cs_net_linear(net, "seq_relationship", first, &(cs_linear){.out = 2, .bias = true});
    cs_net_cross_entropy(net, "sentence_loss", first);
    x = cs_net_gelu(net, "transform_act", cs_net_linear(net, "transform", x, &same));
    x = cs_net_layer_norm(net, "LayerNorm", x);
    x = cs_net_linear(net, "decoder", x,
                      &(cs_linear){.out = p->vocabulary, .wide = true, .tied = true, .bias = true});
    cs_net_cross_entropy(net, "loss", x);
}

static void build(cs_net *net, const void *variant, const void *params)
{
    const cs_bert *p = params;
    (void)variant;
    if (!cs_net_check_heads(net, p->hidden, p->heads))
        return;
    if (p->sequence > p->positions)
        cs_net_refuse(net, "sequence", "must be at most positions, %u (got %u)", p->positions,
                      p->sequence);
    cs_net_block(net, "embeddings");
    cs_tensor x = cs_net_embedding(net, "word_embeddings", cs_net_token_ids(net, p->sequence),
                                   p->vocabulary, p->hidden);
    x = cs_net_add_table(net, "token_type_embeddings", x, (int64_t)p->types * p->hidden);
    x = cs_net_positions(net, "position_embeddings", x, p->positions);
    x = cs_net_dropout(net, "dropout", norm(net, p, x, CS_FORM_PAPER), p->dropout);
    for (uint32_t i = 0; i < p->layers; i++) {
        cs_net_block(net, "layer.%u", i);
        x = add_mlp(net, p, attend(net, p, x));
    }
    if (p->form == CS_FORM_MEGATRON) {
        cs_net_block(net, "final");
        x = norm(net, p, x, CS_FORM_MEGATRON);
    }
    if (p->head) {
        add_head(net, p, x);
        return;
    }
    cs_net_block(net, "pooler");
    x = cs_net_take_first(net, "first", x);
    x = cs_net_linear(net, "dense", x, &(cs_linear){.out = p->hidden, .bias = true});
    cs_net_cross_entropy(net, "loss", cs_net_tanh(net, "activation", x));
}

const cs_zoo_entry cs_zoo_bert = {
    .name = "bert",
    .summary = "BERT-like encoder; the defaults are BERT base, uncased",
    .source = "Devlin et al., NAACL 2019 (arXiv 1810.04805); as transformers has it",
    .fields = fields,
    .params_size = sizeof(cs_bert),
    .build = build,
};
