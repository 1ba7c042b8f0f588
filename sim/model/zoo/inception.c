/* Inception-v3: modules of parallel branches whose results are joined. The auxiliary classifier
 * computes its own loss in training, and joins the layer of the chain that it hangs on. */
#include "sim/model/zoo/image.h"

typedef struct inception_params {
    uint32_t image, classes;
    bool auxiliary;
} inception_params;

static const cs_field fields[] = {
    CS_IMAGE_FIELD(inception_params, "299"),
    CS_CLASSES_FIELD(inception_params),
    {"auxiliary", CS_FIELD_BOOL, offsetof(inception_params, auxiliary), .fallback = "true",
     .doc = "with the auxiliary classifier, which is there only in training"},
    {0},
};

typedef enum step_kind { CONV, AVERAGE, MAXIMUM, SPLIT } step_kind;

/* One step of a branch. SPLIT is a pair of convolutions, 1 x 3 and 3 x 1, side by side. */
typedef struct step {
    const char *name; /* NULL ends a branch */
    uint32_t out;
    uint32_t height, width; /* of the kernel */
    uint32_t stride;
    bool valid; /* no padding; else as much as keeps the size at stride 1 */
    step_kind kind;
} step;

enum { STEPS_MAX = 6, BRANCHES_MAX = 4 };

typedef struct module {
    step branches[BRANCHES_MAX][STEPS_MAX]; /* a branch without steps ends the module */
} module;

#define POOL_BRANCH(channels)                                                                      \
    {                                                                                              \
        {"branch_pool.pool", .height = 3, .stride = 1, .kind = AVERAGE},                           \
        {                                                                                          \
            "branch_pool", channels, 1, 1                                                          \
        }                                                                                          \
    }

#define MODULE_A(pooled)                                                                           \
    {                                                                                              \
        {                                                                                          \
            {{"branch1x1", 64, 1, 1}}, {{"branch5x5_1", 48, 1, 1}, {"branch5x5_2", 64, 5, 5}},     \
                {{"branch3x3dbl_1", 64, 1, 1},                                                     \
                 {"branch3x3dbl_2", 96, 3, 3},                                                     \
                 {"branch3x3dbl_3", 96, 3, 3}},                                                    \
                POOL_BRANCH(pooled)                                                                \
        }                                                                                          \
    }

#define MODULE_C(inner)                                                                            \
    {                                                                                              \
        {                                                                                          \
            {{"branch1x1", 192, 1, 1}},                                                            \
                {{"branch7x7_1", inner, 1, 1},                                                     \
                 {"branch7x7_2", inner, 1, 7},                                                     \
                 {"branch7x7_3", 192, 7, 1}},                                                      \
                {{"branch7x7dbl_1", inner, 1, 1},                                                  \
                 {"branch7x7dbl_2", inner, 7, 1},                                                  \
                 {"branch7x7dbl_3", inner, 1, 7},                                                  \
                 {"branch7x7dbl_4", inner, 7, 1},                                                  \
                 {"branch7x7dbl_5", 192, 1, 7}},                                                   \
                POOL_BRANCH(192)                                                                   \
        }                                                                                          \
    }

#define MODULE_E                                                                                   \
    {                                                                                              \
        {                                                                                          \
            {{"branch1x1", 320, 1, 1}},                                                            \
                {{"branch3x3_1", 384, 1, 1}, {"branch3x3_2", 384, .kind = SPLIT}},                 \
                {{"branch3x3dbl_1", 448, 1, 1},                                                    \
                 {"branch3x3dbl_2", 384, 3, 3},                                                    \
                 {"branch3x3dbl_3", 384, .kind = SPLIT}},                                          \
                POOL_BRANCH(192)                                                                   \
        }                                                                                          \
    }

static const struct {
    const char *name;
    module module;
} modules[] = {
    {"Mixed_5b", MODULE_A(32)},
    {"Mixed_5c", MODULE_A(64)},
    {"Mixed_5d", MODULE_A(64)},
    {"Mixed_6a",
     {{{{"branch3x3", 384, 3, 3, .stride = 2, .valid = true}},
       {{"branch3x3dbl_1", 64, 1, 1},
        {"branch3x3dbl_2", 96, 3, 3},
        {"branch3x3dbl_3", 96, 3, 3, .stride = 2, .valid = true}},
       {{"branch_pool", .height = 3, .stride = 2, .valid = true, .kind = MAXIMUM}}}}},
    {"Mixed_6b", MODULE_C(128)},
    {"Mixed_6c", MODULE_C(160)},
    {"Mixed_6d", MODULE_C(160)},
    {"Mixed_6e", MODULE_C(192)},
    {"Mixed_7a",
     {{{{"branch3x3_1", 192, 1, 1}, {"branch3x3_2", 320, 3, 3, .stride = 2, .valid = true}},
       {{"branch7x7x3_1", 192, 1, 1},
        {"branch7x7x3_2", 192, 1, 7},
        {"branch7x7x3_3", 192, 7, 1},
        {"branch7x7x3_4", 192, 3, 3, .stride = 2, .valid = true}},
       {{"branch_pool", .height = 3, .stride = 2, .valid = true, .kind = MAXIMUM}}}}},
    {"Mixed_7b", MODULE_E},
    {"Mixed_7c", MODULE_E},
};

static const uint32_t auxiliary_after = 7; /* Mixed_6e */

static const step stem[] = {
    {"Conv2d_1a_3x3", 32, 3, 3, .stride = 2, .valid = true},
    {"Conv2d_2a_3x3", 32, 3, 3, .valid = true},
    {"Conv2d_2b_3x3", 64, 3, 3},
    {"maxpool1", .height = 3, .stride = 2, .valid = true, .kind = MAXIMUM},
    {"Conv2d_3b_1x1", 80, 1, 1},
    {"Conv2d_4a_3x3", 192, 3, 3, .valid = true},
    {"maxpool2", .height = 3, .stride = 2, .valid = true, .kind = MAXIMUM},
};

/* Convolution, batch norm, ReLU. */
static cs_tensor add_conv(cs_net *net, const step *s, cs_tensor x)
{
    uint32_t mark = cs_net_enter(net, s->name);
    cs_conv conv = {.out = s->out, .kernels = {s->height, s->width}, .stride = s->stride};
    for (int i = 0; i < 2 && !s->valid; i++)
        conv.pads[i] = conv.kernels[i] / 2;
    x = cs_net_batch_norm(net, "bn", cs_net_conv(net, "conv", x, &conv));
    x = cs_net_relu(net, "relu", x);
    cs_net_leave(net, mark);
    return x;
}

static cs_tensor add_split(cs_net *net, const step *s, cs_tensor x)
{
    uint32_t mark = cs_net_enter(net, s->name);
    const cs_tensor halves[] = {
        add_conv(net, &(step){"a", s->out, 1, 3}, x),
        add_conv(net, &(step){"b", s->out, 3, 1}, x),
    };
    x = cs_net_concat(net, "concat", halves, 2);
    cs_net_leave(net, mark);
    return x;
}

static cs_tensor add_step(cs_net *net, const step *s, cs_tensor x)
{
    const cs_window pool = {s->height, s->stride, s->valid ? 0 : s->height / 2};
    switch (s->kind) {
    case AVERAGE:
        return cs_net_avg_pool(net, s->name, x, &pool);
    case MAXIMUM:
        return cs_net_max_pool(net, s->name, x, &pool);
    case SPLIT:
        return add_split(net, s, x);
    default:
        return add_conv(net, s, x);
    }
}

static cs_tensor add_module(cs_net *net, const module *m, cs_tensor x)
{
    cs_tensor parts[BRANCHES_MAX];
    uint32_t n = 0;
    for (; n < BRANCHES_MAX && m->branches[n][0].name; n++) {
        parts[n] = x;
        for (uint32_t i = 0; i < STEPS_MAX && m->branches[n][i].name; i++)
            parts[n] = add_step(net, &m->branches[n][i], parts[n]);
    }
    return cs_net_concat(net, "concat", parts, n);
}

static void add_auxiliary(cs_net *net, cs_tensor x, uint32_t classes)
{
    cs_net_block(net, "AuxLogits");
    x = cs_net_avg_pool(net, "pool", x, &(cs_window){.kernel = 5, .stride = 3});
    x = add_conv(net, &(step){"conv0", 128, 1, 1}, x);
    x = add_conv(net, &(step){"conv1", 768, 5, 5, .valid = true}, x);
    x = cs_net_flatten(net, "flatten", cs_net_adaptive_pool(net, "avgpool", x, 1));
    x = cs_net_linear(net, "fc", x, &(cs_linear){.out = classes, .bias = true});
    cs_net_cross_entropy(net, "loss", x);
}

static void build(cs_net *net, const void *variant, const void *params)
{
    (void)variant;
    const inception_params *p = params;
    cs_tensor x = cs_net_picture(net, &(cs_image_params){p->image, p->classes});
    cs_net_block(net, "stem");
    for (uint32_t i = 0; i < sizeof(stem) / sizeof(stem[0]); i++)
        x = add_step(net, &stem[i], x);
    for (uint32_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
        cs_net_block(net, "%s", modules[i].name);
        x = add_module(net, &modules[i].module, x);
        if (i == auxiliary_after && p->auxiliary)
            add_auxiliary(net, x, p->classes);
    }
    cs_net_block(net, "head");
    x = cs_net_dropout(net, "dropout", cs_net_adaptive_pool(net, "avgpool", x, 1), 0.5);
    x = cs_net_linear(net, "fc", cs_net_flatten(net, "flatten", x),
                      &(cs_linear){.out = p->classes, .bias = true});
    cs_net_cross_entropy(net, "loss", x);
}

const cs_zoo_entry cs_zoo_inception_v3 = {
    .name = "inception_v3",
    .summary = "Inception-v3",
    .source = "Szegedy et al., CVPR 2016 (arXiv 1512.00567), table 1; as torchvision has it",
    .fields = fields,
    .params_size = sizeof(inception_params),
    .build = build,
};
