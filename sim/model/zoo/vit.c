/* ViT: an image cut into patches, a first token for the class, encoder blocks with layer norms in
 * front. Queries, keys and values come from one packed projection, which torch.nn's
 * MultiheadAttention copies apart, as it does with the result of the attention. */
#include "sim/model/zoo/families.h"
#include "sim/model/zoo/transformer.h"

#define DIM(key, default_, doc_) CS_DIM(cs_vit, key, default_, doc_)

static const cs_field fields[] = {
    DIM(image, "224", "height and width of the image, pixels; a multiple of patch"),
    DIM(patch, "16", "height and width of a patch, pixels"),
    DIM(channels, "3", "of the image"),
    CS_LAYERS_FIELD(cs_vit, "12"),
    DIM(hidden, "768", "hidden size: features of a token"),
    DIM(heads, "12", "attention heads; their number divides hidden"),
    CS_DIM_OR_ZERO(cs_vit, intermediate, "intermediate size of the MLP; 0: four times hidden"),
    DIM(classes, "1000", "number of classes"),
    CS_DROPOUT_FIELD(cs_vit, "0"),
    CS_KERNEL_FIELD(cs_vit),
    {0},
};

static cs_tensor attend(cs_net *net, const cs_vit *p, cs_tensor x)
{
    uint32_t mark = cs_net_enter(net, "self_attention");
    x = cs_net_linear(net, "in_proj", x, &(cs_linear){.out = 3 * p->hidden, .bias = true});
    x = cs_net_copy(net, "unpack", x);
    const cs_tensor qkv[] = {cs_net_features(net, "q", x, p->hidden),
                             cs_net_features(net, "k", x, p->hidden),
                             cs_net_features(net, "v", x, p->hidden)};
    x = cs_net_attention(net, "attention", qkv,
                         &(cs_attention){p->heads, p->heads, p->kernel, .dropout = p->dropout});
    x = cs_net_copy(net, "repack", x);
    x = cs_net_linear(net, "out_proj", x, &(cs_linear){.out = p->hidden, .bias = true});
    x = cs_net_dropout(net, "dropout", x, p->dropout);
    cs_net_leave(net, mark);
    return x;
}

static cs_tensor add_mlp(cs_net *net, const cs_vit *p, cs_tensor x)
{
    uint32_t inner = p->intermediate ? p->intermediate : 4 * p->hidden;
    uint32_t mark = cs_net_enter(net, "mlp");
    x = cs_net_linear(net, "0", x, &(cs_linear){.out = inner, .bias = true});
    x = cs_net_dropout(net, "2", cs_net_gelu(net, "1", x), p->dropout);
    x = cs_net_linear(net, "3", x, &(cs_linear){.out = p->hidden, .bias = true});
    x = cs_net_dropout(net, "4", x, p->dropout);
    cs_net_leave(net, mark);
    return x;
}

static cs_tensor embed(cs_net *net, const cs_vit *p)
{
    cs_net_block(net, "embedding");
    cs_tensor x = cs_net_image(net, p->channels, (cs_extent){2, {p->image, p->image}});
    x = cs_net_conv(
        net, "conv_proj", x,
        &(cs_conv){.out = p->hidden, .kernel = p->patch, .stride = p->patch, .bias = true});
    x = cs_net_first_token(net, "class_token", cs_net_tokens(net, "tokens", x));
    x = cs_net_add_learned(net, "pos_embedding", x);
    return cs_net_dropout(net, "dropout", x, p->dropout);
}

static void build(cs_net *net, const void *variant, const void *params)
{
    const cs_vit *p = params;
    (void)variant;
    if (!cs_net_check_heads(net, p->hidden, p->heads))
        return;
    cs_tensor x = embed(net, p);
    if (p->image % p->patch != 0)
        cs_net_refuse(net, "image", "must be a multiple of patch, %u (got %u)", p->patch, p->image);
    for (uint32_t i = 0; i < p->layers; i++) {
        cs_net_block(net, "encoder.%u", i);
        x = cs_net_add(net, "add_1", attend(net, p, cs_net_layer_norm(net, "ln_1", x)), x);
        x = cs_net_add(net, "add_2", x, add_mlp(net, p, cs_net_layer_norm(net, "ln_2", x)));
    }
    cs_net_block(net, "head");
    x = cs_net_take_first(net, "first", cs_net_layer_norm(net, "ln", x));
    x = cs_net_linear(net, "head", x, &(cs_linear){.out = p->classes, .bias = true});
    cs_net_cross_entropy(net, "loss", x);
}

const cs_zoo_entry cs_zoo_vit_b16 = {
    .name = "vit_b16",
    .summary = "Vision transformer ViT-B/16",
    .source = "Dosovitskiy et al., ICLR 2021 (arXiv 2010.11929), table 1; as torchvision has it",
    .fields = fields,
    .params_size = sizeof(cs_vit),
    .build = build,
};
