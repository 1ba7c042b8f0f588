/* minGPT: GPT-2's blocks with a last matrix of its own. Its blocks may come in runs of different
 * sizes, which a matrix without biases joins, as the merging layers of Swin do. */
#include "sim/model/zoo/families.h"
#include "sim/model/zoo/transformer.h"

typedef struct mingpt {
    cs_list layers, hidden; /* uint32_t, per run */
    uint32_t head, sequence, vocabulary;
    double dropout;
    uint32_t kernel;
} mingpt;

static const cs_field layers_field = {"layers", CS_FIELD_COUNT, .min = 1, .max = 4096};
static const cs_field hidden_field = {"hidden", CS_FIELD_COUNT, .min = 1, .max = CS_DIM_MAX};

static const cs_field fields[] = {
    {"layers", CS_FIELD_LIST, offsetof(mingpt, layers), .fallback = "12", .of = &layers_field,
     .each = true, .least = 1, .most = 64,
     .doc = "number of blocks; a list: for each run of blocks of the same size"},
    {"hidden", CS_FIELD_LIST, offsetof(mingpt, hidden), .fallback = "768", .of = &hidden_field,
     .each = true, .least = 1, .most = 64,
     .doc = "hidden size: features of a token; a list: for each run"},
    CS_DIM(mingpt, head, "64", "features of an attention head; the number divides hidden"),
    CS_DIM(mingpt, sequence, "1024", "sequence length: tokens of a sample"),
    CS_DIM(mingpt, vocabulary, "50257", "vocabulary size"),
    CS_DROPOUT_FIELD(mingpt, "0.1"),
    CS_KERNEL_FIELD(mingpt),
    {0},
};

/* One for all runs, or one for each. */
static uint32_t of_run(const cs_list *list, uint32_t run)
{
    return ((const uint32_t *)list->items)[list->n == 1 ? 0 : run];
}

static bool check(cs_net *net, const mingpt *p, uint32_t runs)
{
    if (p->layers.n != p->hidden.n && p->layers.n > 1 && p->hidden.n > 1) {
        cs_net_refuse(net, "layers", "must have as many entries as hidden, %u, or one (got %u)",
                      p->hidden.n, p->layers.n);
        return false;
    }
    for (uint32_t r = 0; r < runs; r++) {
        const uint32_t hidden = of_run(&p->hidden, r);
        if (hidden % p->head != 0) {
            cs_net_refuse(net, "head", "must divide hidden, %u (got %u)", hidden, p->head);
            return false;
        }
    }
    return true;
}

static void build(cs_net *net, const void *variant, const void *params)
{
    const mingpt *p = params;
    const uint32_t runs = p->layers.n > p->hidden.n ? p->layers.n : p->hidden.n;
    uint32_t block = 0;
    (void)variant;
    if (!check(net, p, runs))
        return;
    cs_net_block(net, "embedding");
    cs_tensor x = cs_net_embedding(net, "tok_emb", cs_net_token_ids(net, p->sequence),
                                   p->vocabulary, of_run(&p->hidden, 0));
    x = cs_net_positions(net, "pos_emb", x, p->sequence);
    x = cs_net_dropout(net, "drop", x, p->dropout);
    for (uint32_t r = 0; r < runs; r++) {
        const cs_gpt size = {.hidden = of_run(&p->hidden, r),
                             .heads = of_run(&p->hidden, r) / p->head,
                             .dropout = p->dropout,
                             .kernel = p->kernel};
        for (uint32_t i = 0; i < of_run(&p->layers, r); i++) {
            cs_net_block(net, "blocks.%u", block++);
            if (r > 0 && i == 0 && size.hidden != of_run(&p->hidden, r - 1))
                x = cs_net_linear(net, "merge", x, &(cs_linear){.out = size.hidden});
            x = cs_gpt_block(net, &size, x);
        }
    }
    cs_net_block(net, "head");
    x = cs_net_layer_norm(net, "ln_f", x);
    x = cs_net_linear(net, "head", x, &(cs_linear){.out = p->vocabulary, .wide = true});
    cs_net_cross_entropy(net, "loss", x);
}

const cs_zoo_entry cs_zoo_mingpt = {
    .name = "mingpt",
    .summary = "minGPT, with an untied last matrix; can have runs of blocks of different sizes",
    .source = "Karpathy, minGPT, mingpt/model.py; Jiang et al., OSDP, IJCAI 2023, table 1: narrow "
              "and deep, wide and shallow, and models whose hidden size changes",
    .fields = fields,
    .params_size = sizeof(mingpt),
    .build = build,
};
