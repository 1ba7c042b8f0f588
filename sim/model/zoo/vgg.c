/* VGG: stages of 3 x 3 convolutions, each ended by a pooling that halves the image. */
#include "sim/model/zoo/image.h"

#include <stdio.h>

typedef struct vgg_params {
    uint32_t image, classes, width, dense;
} vgg_params;

static const cs_field fields[] = {
    CS_IMAGE_FIELD(vgg_params, "224"),
    CS_CLASSES_FIELD(vgg_params),
    {"width", CS_FIELD_COUNT, offsetof(vgg_params, width), .fallback = "64", .min = 1,
     .max = 1 << 16,
     .doc = "channels of the first stage; the others have 2, 4, 8 and 8 times as many"},
    {"dense", CS_FIELD_COUNT, offsetof(vgg_params, dense), .fallback = "4096", .min = 1,
     .max = 1 << 20, .doc = "features of each of the two dense layers"},
    {0},
};

static const struct {
    uint32_t widths, convs;
} stages[] = {{1, 2}, {2, 2}, {4, 3}, {8, 3}, {8, 3}}; /* configuration D */

static cs_tensor add_stage(cs_net *net, cs_tensor x, uint32_t width, uint32_t convs)
{
    char name[16];
    for (uint32_t i = 1; i <= convs; i++) {
        snprintf(name, sizeof(name), "conv%u", i);
        x = cs_net_conv(net, name, x,
                        &(cs_conv){.out = width, .kernel = 3, .pad = 1, .bias = true});
        snprintf(name, sizeof(name), "relu%u", i);
        x = cs_net_relu(net, name, x);
    }
    return cs_net_max_pool(net, "pool", x, &(cs_window){.kernel = 2});
}

static cs_tensor add_dense(cs_net *net, cs_tensor x, const char *name, uint32_t features)
{
    cs_net_block(net, "%s", name);
    x = cs_net_linear(net, "linear", x, &(cs_linear){.out = features, .bias = true});
    return cs_net_dropout(net, "dropout", cs_net_relu(net, "relu", x), 0.5);
}

static void build(cs_net *net, const void *variant, const void *params)
{
    (void)variant;
    const vgg_params *p = params;
    cs_tensor x = cs_net_picture(net, &(cs_image_params){p->image, p->classes});
    for (uint32_t s = 0; s < sizeof(stages) / sizeof(stages[0]); s++) {
        cs_net_block(net, "stage%u", s + 1);
        x = add_stage(net, x, stages[s].widths * p->width, stages[s].convs);
    }
    cs_net_block(net, "pool");
    x = cs_net_flatten(net, "flatten", cs_net_adaptive_pool(net, "adaptive", x, 7));
    x = add_dense(net, add_dense(net, x, "fc6", p->dense), "fc7", p->dense);
    cs_net_block(net, "fc8");
    x = cs_net_linear(net, "linear", x, &(cs_linear){.out = p->classes, .bias = true});
    cs_net_cross_entropy(net, "loss", x);
}

const cs_zoo_entry cs_zoo_vgg16 = {
    .name = "vgg16",
    .summary = "VGG-16, configuration D",
    .source = "Simonyan and Zisserman, ICLR 2015 (arXiv 1409.1556), table 1; as torchvision has it",
    .fields = fields,
    .params_size = sizeof(vgg_params),
    .build = build,
};
