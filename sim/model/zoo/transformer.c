#include "sim/model/zoo/transformer.h"

#include "sim/model/zoo/families.h"

const char *const cs_attention_kernels[] = {
    [CS_ATTENTION_FLASH] = "flash", [CS_ATTENTION_MATH] = "math", NULL};

const char *const cs_encoder_forms[] = {
    [CS_FORM_PAPER] = "paper", [CS_FORM_MEGATRON] = "megatron", NULL};

bool cs_net_check_heads(cs_net *net, uint32_t hidden, uint32_t heads)
{
    if (heads > 0 && hidden % heads == 0)
        return true;
    cs_net_refuse(net, "heads", "must divide hidden, %u (got %u)", hidden, heads);
    return false;
}

cs_tensor cs_net_attend_packed(cs_net *net, cs_tensor x, cs_tensor from, uint32_t inner,
                               const cs_attention *attention)
{
    const bool cross = from != x;
    cs_tensor query = x;
    if (cross)
        query = cs_net_linear(net, "linear_q", x, &(cs_linear){.out = inner, .bias = true});
    const cs_tensor packed =
        cs_net_linear(net, cross ? "linear_kv" : "linear_qkv", from,
                      &(cs_linear){.out = (cross ? 2 : 3) * inner, .bias = true});
    const cs_tensor qkv[] = {cross ? query : cs_net_features(net, "q", packed, inner),
                             cs_net_features(net, "k", packed, inner),
                             cs_net_features(net, "v", packed, inner)};
    return cs_net_attention(net, "attention", qkv, attention);
}

cs_tensor cs_net_positions(cs_net *net, const char *name, cs_tensor x, uint32_t positions)
{
    if (x == CS_NO_TENSOR)
        return x;
    uint32_t features = cs_net_tensor(net, x)->shape.dims[1];
    return cs_net_add_table(net, name, x, (int64_t)positions * features);
}
