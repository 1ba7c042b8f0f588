/* ResNet: blocks of convolutions whose input is added to their output. The stride of a bottleneck
 * is in its 3 x 3 convolution, as frameworks have it. */
#include "sim/model/zoo/image.h"

typedef struct resnet {
    uint32_t blocks[4];
    bool bottleneck; /* three convolutions, the last four times as wide; else two */
} resnet;

static cs_tensor conv_norm(cs_net *net, const char *conv_name, const char *norm_name, cs_tensor x,
                           const cs_conv *conv)
{
    return cs_net_batch_norm(net, norm_name, cs_net_conv(net, conv_name, x, conv));
}

static cs_tensor add_block(cs_net *net, const resnet *kind, cs_tensor x, uint32_t width,
                           uint32_t stride, bool project)
{
    cs_tensor y, shortcut = x;
    uint32_t out = kind->bottleneck ? 4 * width : width;
    const cs_conv reduce = {.out = width, .kernel = 1};
    const cs_conv first = {.out = width, .kernel = 3, .stride = stride, .pad = 1};
    const cs_conv second = {.out = width, .kernel = 3, .pad = 1};
    const cs_conv expand = {.out = out, .kernel = 1};
    if (kind->bottleneck) {
        y = cs_net_relu(net, "relu1", conv_norm(net, "conv1", "bn1", x, &reduce));
        y = cs_net_relu(net, "relu2", conv_norm(net, "conv2", "bn2", y, &first));
        y = conv_norm(net, "conv3", "bn3", y, &expand);
    } else {
        y = cs_net_relu(net, "relu1", conv_norm(net, "conv1", "bn1", x, &first));
        y = conv_norm(net, "conv2", "bn2", y, &second);
    }
    if (project)
        shortcut = conv_norm(net, "downsample.conv", "downsample.bn", x,
                             &(cs_conv){.out = out, .kernel = 1, .stride = stride});
    return cs_net_relu(net, "relu", cs_net_add_to(net, "add", y, shortcut));
}

static void build(cs_net *net, const void *variant, const void *params)
{
    const resnet *kind = variant;
    const cs_image_params *p = params;
    cs_tensor x = cs_net_picture(net, p);
    cs_net_block(net, "stem");
    x = conv_norm(net, "conv1", "bn1", x,
                  &(cs_conv){.out = 64, .kernel = 7, .stride = 2, .pad = 3});
    x = cs_net_relu(net, "relu", x);
    x = cs_net_max_pool(net, "maxpool", x, &(cs_window){.kernel = 3, .stride = 2, .pad = 1});
    for (uint32_t stage = 0, width = 64; stage < 4; stage++, width *= 2) {
        for (uint32_t i = 0; i < kind->blocks[stage]; i++) {
            uint32_t stride = stage > 0 && i == 0 ? 2 : 1;
            cs_net_block(net, "layer%u.%u", stage + 1, i);
            x = add_block(net, kind, x, width, stride, i == 0 && (kind->bottleneck || stage > 0));
        }
    }
    cs_net_block(net, "head");
    x = cs_net_flatten(net, "flatten", cs_net_adaptive_pool(net, "avgpool", x, 1));
    x = cs_net_linear(net, "fc", x, &(cs_linear){.out = p->classes, .bias = true});
    cs_net_cross_entropy(net, "loss", x);
}

static const resnet resnet18 = {{2, 2, 2, 2}, false};
static const resnet resnet50 = {{3, 4, 6, 3}, true};
static const resnet resnet101 = {{3, 4, 23, 3}, true};
static const resnet resnet152 = {{3, 8, 36, 3}, true};

#define RESNET(depth)                                                                              \
    const cs_zoo_entry cs_zoo_resnet##depth = {                                                    \
        .name = "resnet" #depth,                                                                   \
        .summary = "ResNet-" #depth,                                                               \
        .source = "He et al., CVPR 2016 (arXiv 1512.03385), table 1; as torchvision has it",       \
        .fields = cs_image_fields,                                                                 \
        .params_size = sizeof(cs_image_params),                                                    \
        .variant = &resnet##depth,                                                                 \
        .build = build,                                                                            \
    }

RESNET(18);
RESNET(50);
RESNET(101);
RESNET(152);
