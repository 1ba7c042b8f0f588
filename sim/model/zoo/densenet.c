/* DenseNet: every layer of a dense block reads what all layers before it wrote, and adds its own
 * channels. Joining them layer by layer is the same tensor as joining all at once, and makes every
 * layer of a block a layer of the chain. */
#include "sim/model/zoo/image.h"

#include <stdio.h>

enum { GROWTH = 32, BOTTLENECK = 4 * GROWTH, STEM = 64 };

static const uint32_t blocks[] = {6, 12, 24, 16};

enum { N_BLOCKS = sizeof(blocks) / sizeof(blocks[0]) };

static cs_tensor norm_relu_conv(cs_net *net, const char *number, cs_tensor x, const cs_conv *conv)
{
    char norm[16], relu[16], name[16];
    snprintf(norm, sizeof(norm), "norm%s", number);
    snprintf(relu, sizeof(relu), "relu%s", number);
    snprintf(name, sizeof(name), "conv%s", number);
    return cs_net_conv(net, name, cs_net_relu(net, relu, cs_net_batch_norm(net, norm, x)), conv);
}

static cs_tensor add_dense_layer(cs_net *net, uint32_t i, cs_tensor x)
{
    char name[24];
    snprintf(name, sizeof(name), "denselayer%u", i);
    uint32_t mark = cs_net_enter(net, name);
    cs_tensor y = norm_relu_conv(net, "1", x, &(cs_conv){.out = BOTTLENECK, .kernel = 1});
    y = norm_relu_conv(net, "2", y, &(cs_conv){.out = GROWTH, .kernel = 3, .pad = 1});
    x = cs_net_concat(net, "concat", (const cs_tensor[]){x, y}, 2);
    cs_net_leave(net, mark);
    return x;
}

static void build(cs_net *net, const void *variant, const void *params)
{
    (void)variant;
    const cs_image_params *p = params;
    uint32_t channels = STEM;
    cs_tensor x = cs_net_picture(net, p);
    cs_net_block(net, "stem");
    x = cs_net_conv(net, "conv0", x, &(cs_conv){.out = STEM, .kernel = 7, .stride = 2, .pad = 3});
    x = cs_net_relu(net, "relu0", cs_net_batch_norm(net, "norm0", x));
    x = cs_net_max_pool(net, "pool0", x, &(cs_window){.kernel = 3, .stride = 2, .pad = 1});
    for (uint32_t b = 0; b < N_BLOCKS; b++) {
        cs_net_block(net, "denseblock%u", b + 1);
        for (uint32_t i = 1; i <= blocks[b]; i++)
            x = add_dense_layer(net, i, x);
        channels += blocks[b] * GROWTH;
        if (b + 1 == N_BLOCKS)
            break;
        cs_net_block(net, "transition%u", b + 1);
        channels /= 2;
        x = norm_relu_conv(net, "", x, &(cs_conv){.out = channels, .kernel = 1});
        x = cs_net_avg_pool(net, "pool", x, &(cs_window){.kernel = 2});
    }
    cs_net_block(net, "head");
    x = cs_net_relu(net, "relu5", cs_net_batch_norm(net, "norm5", x));
    x = cs_net_flatten(net, "flatten", cs_net_adaptive_pool(net, "avgpool", x, 1));
    x = cs_net_linear(net, "classifier", x, &(cs_linear){.out = p->classes, .bias = true});
    cs_net_cross_entropy(net, "loss", x);
}

const cs_zoo_entry cs_zoo_densenet121 = {
    .name = "densenet121",
    .summary = "DenseNet-121",
    .source = "Huang et al., CVPR 2017 (arXiv 1608.06993), table 1; as torchvision has it",
    .fields = cs_image_fields,
    .params_size = sizeof(cs_image_params),
    .build = build,
};
