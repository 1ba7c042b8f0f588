#include "tests/attention-net.h"

#include "tests/expect.h"

cs_op *attention_net(cs_net *net, const cs_attention *of)
{
    cs_error error;
    cs_error_init(&error);
    cs_net_begin(net, "n", &error);
    cs_net_block(net, "all");
    const uint32_t keys = 4 * of->kv_heads;
    const cs_tensor x = cs_net_embedding(net, "embedding", cs_net_token_ids(net, 8), 16, 8);
    const cs_tensor qkv[] = {cs_net_linear(net, "q", x, &(cs_linear){.out = 8}),
                             cs_net_linear(net, "k", x, &(cs_linear){.out = keys}),
                             cs_net_linear(net, "v", x, &(cs_linear){.out = keys})};
    cs_net_cross_entropy(net, "loss", cs_net_attention(net, "attention", qkv, of));
    if (cs_net_end(net) != CS_OK)
        fail_msg("%s", error.text);
    cs_op *op = net->ops;
    while (op->kind != CS_OP_ATTENTION)
        op++;
    return op;
}
