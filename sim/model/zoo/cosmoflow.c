/* CosmoFlow: seven convolutions over a cube, with poolings that leave 2 x 2 x 2, and three linear
 * layers. Larger cubes have one pooling more (256) or two (512) than the original one (128). */
#include "sim/model/zoo/zoo.h"

typedef struct cosmoflow_params {
    uint32_t size, channels, outputs;
} cosmoflow_params;

static const cs_field fields[] = {
    {"size", CS_FIELD_COUNT, offsetof(cosmoflow_params, size), .fallback = "256", .min = 1,
     .max = 4096, .doc = "edge of the cube: 128, 256 or 512"},
    {"channels", CS_FIELD_COUNT, offsetof(cosmoflow_params, channels), .fallback = "4", .min = 1,
     .max = 4096, .doc = "of the input"},
    {"outputs", CS_FIELD_COUNT, offsetof(cosmoflow_params, outputs), .fallback = "4", .min = 1,
     .max = 1 << 20, .doc = "number of cosmological parameters to predict"},
    {0},
};

static const struct {
    uint32_t width, stride, pools_from; /* pooled when the cube is as large as that */
} convs[] = {{16, 1, 0},  {32, 1, 0},    {64, 1, 0},   {128, 2, 0},
             {256, 1, 0}, {256, 1, 256}, {256, 1, 512}};

static const uint32_t dense[] = {2048, 256};

static void build(cs_net *net, const void *variant, const void *params)
{
    (void)variant;
    const cosmoflow_params *p = params;
    cs_tensor x = cs_net_image(net, p->channels, (cs_extent){3, {p->size, p->size, p->size}});
    for (uint32_t i = 0; i < sizeof(convs) / sizeof(convs[0]); i++) {
        cs_net_block(net, "conv%u", i + 1);
        x = cs_net_conv(
            net, "conv", x,
            &(cs_conv){.out = convs[i].width, .kernel = 3, .stride = convs[i].stride, .pad = 1});
        x = cs_net_leaky_relu(net, "relu", x);
        if (p->size >= convs[i].pools_from)
            x = cs_net_avg_pool(net, "pool", x, &(cs_window){.kernel = 3, .stride = 2, .pad = 1});
    }
    x = cs_net_flatten(net, "flatten", x);
    for (uint32_t i = 0; i < sizeof(dense) / sizeof(dense[0]); i++) {
        cs_net_block(net, "fc%u", i + 1);
        x = cs_net_dropout(net, "dropout", x, 0.2);
        x = cs_net_linear(net, "linear", x, &(cs_linear){.out = dense[i], .bias = true});
        x = cs_net_leaky_relu(net, "relu", x);
    }
    cs_net_block(net, "fc3");
    x = cs_net_dropout(net, "dropout", x, 0.2);
    x = cs_net_linear(net, "linear", x, &(cs_linear){.out = p->outputs, .bias = true});
    cs_net_squared_error(net, "loss", x);
}

const cs_zoo_entry cs_zoo_cosmoflow = {
    .name = "cosmoflow",
    .summary = "CosmoFlow, convolutions in three dimensions",
    .source = "Oyama et al., IEEE TPDS 2020 (arXiv 2007.12856), as LBANN has it without batch norm",
    .fields = fields,
    .params_size = sizeof(cosmoflow_params),
    .build = build,
};
