/* Networks of the zoo: parameters and multiply-accumulates against published numbers, chains, and
 * what users get wrong. */
#include "sim/model/net-model.h"
#include "sim/model/zoo/zoo.h"

#include "tests/expect.h"

#include <math.h>

/* A network by its name, with parameters as JSON text. */
static cs_status build(const char *name, const char *json, cs_net *net, cs_error *error)
{
    cJSON *params;
    cs_error_init(error);
    cs_status status = cs_json_parse("p", json, strlen(json), &params, error);
    if (status != CS_OK)
        return status;
    status = cs_zoo_build(name, NULL, params, &(cs_json_place){.file = "p"}, net, error);
    cJSON_Delete(params);
    return status;
}

static void must_build(const char *name, const char *json, cs_net *net)
{
    cs_error error;
    if (build(name, json, net, &error) != CS_OK)
        fail_msg("%s %s: %s", name, json, error.text);
}

/* Parameters and "GFLOPS" (which are multiply-accumulates) as torchvision 0.16 documents them with
 * its weights, at 224 pixels, 299 for Inception (whose number is for inference, without the
 * auxiliary classifier). GPT-2, Llama-2 7B and BERT: parameters that transformers reports. */
static const struct {
    const char *name, *params;
    int64_t parameters;
    double gmac; /* 0: not published */
} totals[] = {
    {"vgg16", "{}", 138357544, 15.470},
    {"resnet18", "{}", 11689512, 1.814},
    {"resnet50", "{}", 25557032, 4.089},
    {"resnet101", "{}", 44549160, 7.801},
    {"resnet152", "{}", 60192808, 11.514},
    {"densenet121", "{}", 7978856, 2.834},
    {"inception_v3", "{}", 27161264, 0},
    {"inception_v3", "{\"auxiliary\": false}", 23834568, 5.713},
    {"vit_b16", "{}", 86567656, 17.564},
    {"gpt", "{}", 124439808, 0},
    /* GPT-2's and another matrix of 50257 x 768; two of GPT-2's blocks, of 12 h^2 + 13 h parameters
     * each, in sizes that differ: 12 * 64^2 + 13 * 64 and 12 * 128^2 + 13 * 128, a merge of 64 *
     * 128, 100 words and 10 positions of 64, 100 words of 128 behind a norm of 256 */
    {"mingpt", "{}", 163037184, 0},
    {"mingpt",
     "{\"layers\": 1, \"hidden\": [64, 128], \"head\": 32, \"vocabulary\": 100, \"sequence\": 10}",
     49152 + 832 + 196608 + 1664 + 8192 + 6400 + 640 + 12800 + 256, 0},
    {"llama", "{}", 6738415616, 0},
    {"bert", "{}", 109482240, 0},
    /* state-spaces/mamba2-2.7b and 130m, Mamba-Codestral-7B: per layer, with I = 2 H features in h
     * = I /
     * 64 heads and G groups, H + H (2 I + 256 G + h) + 5 (I + 256 G) + 3 h + I + I H. */
    {"mamba2", "{}", 2702599680, 0},
    {"mamba2", "{\"layers\": 24, \"hidden\": 768, \"state_heads\": 24}", 128989632, 0},
    {"mamba2",
     "{\"hidden\": 4096, \"state_heads\": 128, \"state_groups\": 8, \"vocabulary\": 32768,"
     " \"tied\": false}",
     7285403648, 0},
    {"bamba", "{}", 9780235392, 0}, /* counted in test-huggingface.c */
    /* T5 base, small and large, and base of T5 1.1, as transformers counts them */
    {"t5", "{}", 222903552, 0},
    {"t5", "{\"layers\": 6, \"hidden\": 512, \"heads\": 8, \"intermediate\": 2048}", 60506624, 0},
    {"t5", "{\"layers\": 24, \"hidden\": 1024, \"heads\": 16, \"intermediate\": 4096}", 737668096,
     0},
    {"t5", "{\"gated\": true, \"tied\": false, \"intermediate\": 2048}", 247577856, 0},
    /* As Megatron Core builds them, of h = 768 features: 512 learned positions; 12 h^2 + 13 h in a
     * block of an encoder, and in a decoder block another attention and norm, 4 h^2 + 6 h; a norm
     * after the last block, and a bias for each token. BERT has the heads of its training: two of
     * h^2 + h, a norm, and 2 h + 2. */
    {"t5", "{\"form\": \"megatron\"}",
     (32128 + 512) * 768 + 12 * (12 * 768 * 768 + 13 * 768) + 12 * (16 * 768 * 768 + 19 * 768) +
         4 * 768 + 32128,
     0},
    {"t5", "{\"form\": \"megatron\", \"decoder_sequence\": 640, \"tied\": false}",
     (2 * 32128 + 640) * 768 + 12 * (12 * 768 * 768 + 13 * 768) + 12 * (16 * 768 * 768 + 19 * 768) +
         4 * 768,
     0},
    {"bert", "{\"form\": \"megatron\", \"head\": true}",
     (30522 + 512 + 2) * 768 + 12 * (12 * 768 * 768 + 13 * 768) + 2 * 768 + 2 * (768 * 768 + 768) +
         2 * 768 + 2 * 768 + 2 + 30522,
     0},
    /* Convolutions without biases 4715712, linear layers 2048 * 2048 + 2048, 2048 * 256 + 256,
     * 256 * 4 + 4: the paper's 9.44 M, whatever the cube. */
    {"cosmoflow", "{}", 9437636, 0},
    {"cosmoflow", "{\"size\": 512}", 9437636, 0},
};

/* Totals of the published checkpoints, counted here by their configurations, matrix by matrix;
 * active are those that a token goes to. `latent` heads have 128 features without positions, 64
 * with, and values of 128, from latent vectors of `query_rank` (0: none) and 512. */
typedef struct decoder_sizes {
    int64_t layers, hidden, vocabulary, heads, kv_heads, head;
    bool latent;
    int64_t query_rank;
    int64_t experts, top_k, expert, shared, dense_layers, intermediate;
    bool head_norms, biases, router_bias;
} decoder_sizes;

static int64_t attention_of(const decoder_sizes *d)
{
    const int64_t h = d->hidden, q = d->heads * d->head, k = d->kv_heads * d->head;
    if (d->latent) {
        const int64_t queries = d->heads * (128 + 64), r = d->query_rank;
        return (r > 0 ? h * r + r + r * queries : h * queries) + h * (512 + 64) + 512 +
               512 * d->heads * (128 + 128) + d->heads * 128 * h;
    }
    return h * q + 2 * h * k + q * h + (d->head_norms ? 2 * d->head : 0) +
           (d->biases ? q + 2 * k + h + d->heads /* sinks */ : 0);
}

/* Parameters of a model that uses `experts` of its experts per token. */
static int64_t decoder_parameters(const decoder_sizes *d, int64_t experts)
{
    const int64_t h = d->hidden, mixtures = d->layers - d->dense_layers;
    const int64_t expert = 3 * h * d->expert + (d->biases ? 2 * d->expert + h : 0);
    const int64_t router = h * d->experts + (d->router_bias ? d->experts : 0);
    return 2 * d->vocabulary * h + h + d->layers * (2 * h + attention_of(d)) +
           d->dense_layers * 3 * h * d->intermediate +
           mixtures * (router + experts * expert + d->shared * 3 * h * d->expert);
}

static const struct {
    const char *name, *params;
    int64_t parameters, active;
    decoder_sizes sizes;
} decoders[] = {
    {"llama",
     "{\"kv_heads\": 8, \"intermediate\": 14336, \"vocabulary\": 128256}", /* Llama-3 8B */
     8030261248,
     8030261248,
     {.layers = 32,
      .hidden = 4096,
      .vocabulary = 128256,
      .heads = 32,
      .kv_heads = 8,
      .head = 128,
      .dense_layers = 32,
      .intermediate = 14336}},
    {"mixtral",
     "{}",
     46702792704,
     12879925248,
     {.layers = 32,
      .hidden = 4096,
      .vocabulary = 32000,
      .heads = 32,
      .kv_heads = 8,
      .head = 128,
      .experts = 8,
      .top_k = 2,
      .expert = 14336}},
    {"qwen3",
     "{}",
     30532122624,
     3353032704,
     {.layers = 48,
      .hidden = 2048,
      .vocabulary = 151936,
      .heads = 32,
      .kv_heads = 4,
      .head = 128,
      .experts = 128,
      .top_k = 8,
      .expert = 768,
      .head_norms = true}},
    {"deepseek_v2",
     "{}",
     235741434880,
     21375800320,
     {.layers = 60,
      .hidden = 5120,
      .vocabulary = 102400,
      .heads = 128,
      .latent = true,
      .query_rank = 1536,
      .experts = 160,
      .top_k = 6,
      .expert = 1536,
      .shared = 2,
      .dense_layers = 1,
      .intermediate = 12288}},
    {"deepseek_v2", /* DeepSeek-V2-Lite */
     "{\"layers\": 27, \"hidden\": 2048, \"heads\": 16, \"intermediate\": 10944,"
     " \"expert_intermediate\": 1408, \"experts\": 64, \"q_lora_rank\": 0}",
     15706484224,
     2661150208,
     {.layers = 27,
      .hidden = 2048,
      .vocabulary = 102400,
      .heads = 16,
      .latent = true,
      .experts = 64,
      .top_k = 6,
      .expert = 1408,
      .shared = 2,
      .dense_layers = 1,
      .intermediate = 10944}},
    /* with 58 * 256 biases of the routers, and without multi-token prediction */
    {"deepseek_v3",
     "{}",
     671026419200,
     37552297472,
     {.layers = 61,
      .hidden = 7168,
      .vocabulary = 129280,
      .heads = 128,
      .latent = true,
      .query_rank = 1536,
      .experts = 256,
      .top_k = 8,
      .expert = 2048,
      .shared = 1,
      .dense_layers = 3,
      .intermediate = 18432,
      .router_bias = true}},
    /* The model card's 3.61 and 5.13 billion active ones leave out the embedding, 201088 * 2880. */
    {"gpt_oss",
     "{}",
     20914757184,
     4187440704,
     {.layers = 24,
      .hidden = 2880,
      .vocabulary = 201088,
      .heads = 64,
      .kv_heads = 8,
      .head = 64,
      .experts = 32,
      .top_k = 4,
      .expert = 2880,
      .biases = true,
      .router_bias = true}},
    {"gpt_oss",
     "{\"layers\": 36, \"experts\": 128}",
     116829156672,
     5711982912,
     {.layers = 36,
      .hidden = 2880,
      .vocabulary = 201088,
      .heads = 64,
      .kv_heads = 8,
      .head = 64,
      .experts = 128,
      .top_k = 4,
      .expert = 2880,
      .biases = true,
      .router_bias = true}},
};

static void test_decoders(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(decoders); i++) {
        const decoder_sizes *d = &decoders[i].sizes;
        cs_net net;
        must_build(decoders[i].name, decoders[i].params, &net);
        print_message("  %-12s %12" PRId64 " parameters, %11" PRId64 " active\n", decoders[i].name,
                      cs_net_parameters(&net), cs_net_active_parameters(&net));
        expect_int(decoders[i].name, decoders[i].parameters, decoder_parameters(d, d->experts));
        expect_int(decoders[i].name, decoders[i].parameters, cs_net_parameters(&net));
        expect_int(decoders[i].name, decoders[i].active, decoder_parameters(d, d->top_k));
        expect_int(decoders[i].name, decoders[i].active, cs_net_active_parameters(&net));
        cs_net_finish(&net);
    }
}

static void test_totals(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(totals); i++) {
        cs_net net;
        must_build(totals[i].name, totals[i].params, &net);
        expect_int(totals[i].name, totals[i].parameters, cs_net_parameters(&net));
        double gmac = cs_net_macs(&net) / 1e9;
        print_message("  %-12s %-22s %11" PRId64 " parameters, %.3f GMAC\n", totals[i].name,
                      totals[i].params, totals[i].parameters, gmac);
        if (totals[i].gmac > 0 && fabs(gmac / totals[i].gmac - 1) > 0.005)
            fail_msg("%s: expected %.3f GMAC, got %.3f", totals[i].name, totals[i].gmac, gmac);
        cs_net_finish(&net);
    }
}

/* ---- chains ---- */

static void must_chain(const cs_net *net, uint32_t batch, cs_granularity granularity,
                       cs_net_chain *chain)
{
    cs_error error;
    cs_accelerator none;
    cs_error_init(&error);
    cs_accelerator_none(&none);
    const cs_net_options how = {
        .batch_size = batch, .granularity = granularity, .device = &none, .source = "test"};
    if (cs_net_chain_find(net, &how, chain, &error) != CS_OK)
        fail_msg("%s: %s", net->name, error.text);
}

/* Layers of the finest chain and of the blocks, derived from the architectures:
 * VGG-16: 13 convolutions and 13 ReLUs, 5 poolings, 1 adaptive pooling, 2 (linear, ReLU, dropout),
 *     1 linear, 1 loss; blocks 5 stages, pool, 3 dense.
 * ResNet: conv, norm, ReLU, pooling; 2 per block (up to the addition, ReLU); pooling, linear, loss.
 * DenseNet-121: 4; per block of n layers n chains of a layer each; 3 transitions of norm, ReLU,
 *     conv, pooling; norm, ReLU, pooling, linear, loss: 4 + 58 + 12 + 5.
 * Inception-v3: 5 times conv, norm, ReLU and 2 poolings: 17; 11 modules (the auxiliary classifier
 * joins the next one); pooling, dropout, linear, loss: 4. ViT: conv, token, position; 2 per block;
 * norm, head, loss. GPT: embedding of tokens and positions, added to it in one operator: 2,
 * dropout; 2 per
 *     block; norm, head, loss. */
static const struct {
    const char *name, *params;
    uint32_t layers, blocks;
} chains[] = {
    {"vgg16", "{}", 40, 9},
    {"resnet18", "{}", 4 + 2 * 8 + 3, 10},
    {"resnet50", "{}", 4 + 2 * 16 + 3, 18},
    {"resnet50", "{\"image\": 1000}", 4 + 2 * 16 + 3, 18},
    {"resnet101", "{}", 4 + 2 * 33 + 3, 35},
    {"densenet121", "{}", 4 + 58 + 12 + 5, 9},
    {"inception_v3", "{}", 17 + 11 + 4, 13},
    {"inception_v3", "{\"auxiliary\": false}", 17 + 11 + 4, 13},
    {"vit_b16", "{}", 3 + 2 * 12 + 3, 14},
    {"gpt", "{}", 3 + 2 * 12 + 3, 14},
};

/* Whatever the grouping, nothing is lost, and names are unique. */
static void check_chain(const char *row, const cs_net *net, const cs_net_chain *chain)
{
    int64_t parameters = 0;
    double macs = 0;
    for (uint32_t i = 0; i < chain->n_layers; i++) {
        const cs_net_layer *layer = &chain->layers[i];
        parameters += layer->weights + layer->biases;
        macs += layer->macs;
        expect_int(row, i > 0 ? chain->layers[i - 1].end : 0, layer->first);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(chain->layers[k].name, layer->name) == 0)
                fail_msg("%s: two layers are called %s", row, layer->name);
    }
    expect_int(row, net->n_ops, chain->layers[chain->n_layers - 1].end);
    expect_int(row, cs_net_parameters(net), parameters);
    expect_double(row, cs_net_macs(net), macs);
}

static int64_t kept_bytes(const cs_net_chain *chain)
{
    int64_t kept = 0;
    for (uint32_t i = 0; i < chain->n_layers; i++)
        kept += chain->layers[i].kept_bytes;
    return kept;
}

static void test_chains(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(chains); i++) {
        cs_net net;
        cs_net_chain fine, coarse;
        must_build(chains[i].name, chains[i].params, &net);
        must_chain(&net, 1, CS_GRANULARITY_LAYER, &fine);
        must_chain(&net, 1, CS_GRANULARITY_BLOCK, &coarse);
        expect_int(chains[i].name, chains[i].layers, fine.n_layers);
        expect_int(chains[i].name, chains[i].blocks, coarse.n_layers);
        check_chain(chains[i].name, &net, &fine);
        check_chain(chains[i].name, &net, &coarse);
        expect_int(chains[i].name, kept_bytes(&fine), kept_bytes(&coarse));
        cs_net_chain_finish(&fine);
        cs_net_chain_finish(&coarse);
        cs_net_finish(&net);
    }
}

/* ---- what is kept ---- */

static void expect_kept(const char *name, const char *params, uint32_t batch, int64_t expected)
{
    cs_net net;
    cs_net_chain chain;
    must_build(name, params, &net);
    must_chain(&net, batch, CS_GRANULARITY_LAYER, &chain);
    expect_int(name, expected, kept_bytes(&chain));
    cs_net_chain_finish(&chain);
    cs_net_finish(&net);
}

/* Tensor by tensor, elements of a sample, T = 197 tokens (14 * 14 patches and the class), E = 768:
 *     block   input of each layer norm 2 TE, with 2 statistics per token 4 T
 *             input of the packed projection TE, queries, keys and values 3 TE
 *             result of the attention TE with a logarithm per head and token 12 T, its copy TE
 *             input of the first linear layer TE, of GELU 4 TE, of the second linear layer 4 TE
 *     around  image 3 * 224^2, input of the last norm TE + 2 T, its result, a view of which the
 *             head reads, TE; logarithms of 1000 probabilities; an int64 target */
static int64_t vit_kept(int64_t batch)
{
    const int64_t t = 197, te = t * 768;
    int64_t block = (2 + 1 + 3 + 1 + 1 + 1 + 4 + 4) * te + 4 * t + 12 * t;
    int64_t floats = 12 * block + 3 * 224 * 224 + 2 * te + 2 * t + 1000;
    return batch * (4 * floats + 8);
}

/* Elements of a sample, block by block: its input (of the first convolution and of the projection,
 * the same tensor), then for three convolutions the input of each batch norm and, except for the
 * last, the ReLU's result; the input of the projection's norm. Statistics, two per channel and
 * norm, do not grow with the batch. Around them: the image, input of the first norm, result of the
 * first ReLU, 8 bytes of index per pooled element; the last block's result, the input of the linear
 * layer, logarithms of the probabilities, the target. */
static int64_t resnet50_kept(int64_t batch)
{
    static const int64_t blocks[] = {3, 4, 6, 3};
    int64_t elements = 3 * 224 * 224 + 2 * 64 * 112 * 112, statistics = 2 * 64;
    int64_t in = 64, from = 56, width = 64;
    for (int stage = 0; stage < 4; stage++, width *= 2) {
        for (int64_t i = 0; i < blocks[stage]; i++) {
            int64_t to = stage > 0 && i == 0 ? from / 2 : from;
            elements += in * from * from + 2 * width * from * from + 2 * width * to * to;
            elements += (i == 0 ? 2 : 1) * 4 * width * to * to;
            statistics += 2 * (width + width + 4 * width + (i == 0 ? 4 * width : 0));
            in = 4 * width;
            from = to;
        }
    }
    elements += 2048 * 7 * 7 + 2048 + 1000;
    return batch * (4 * elements + 8 * 64 * 56 * 56 + 8) + 4 * statistics;
}

static void test_kept(void **state)
{
    (void)state;
    static const uint32_t batches[] = {1, 32, 128};
    for (size_t i = 0; i < ROWS(batches); i++) {
        expect_kept("vit_b16", "{}", batches[i], vit_kept(batches[i]));
        expect_kept("resnet50", "{}", batches[i], resnet50_kept(batches[i]));
    }
    /* The matrix of weights instead of the result (represented by its copy) and logarithms. */
    int64_t t = 197;
    expect_kept("vit_b16", "{\"attention\": \"math\"}", 1,
                vit_kept(1) + 12 * 4 * (12 * t * t - 12 * t - t * 768));
}

/* ---- what users get wrong ---- */

static const struct {
    const char *row, *name, *params, *message;
} errors[] = {
    {"a typo", "resnet51", "{}",
     "unknown model \"resnet51\"; did you mean \"resnet50\"? known: `sim list models` has "
     "them"},
    {"a small image, pooling", "vgg16", "{\"image\": 31}",
     "p: vgg16: layer stage5.pool runs out of pixels: its input is 1 x 1, padding 0, its kernel 2 "
     "x "
     "2; "
     "the image must be larger"},
    {"a small image, convolution", "inception_v3", "{\"image\": 74, \"auxiliary\": false}",
     "p: inception_v3: layer Mixed_7a.branch3x3_2.conv runs out of pixels: its input is 2 x 2, "
     "padding 0, its kernel 3 x 3; the image must be larger"},
    {"no pixels", "resnet50", "{\"image\": 0}", "p: /image: must be from 1 to 65536 (got 0)"},
    {"heads", "gpt", "{\"heads\": 7}", "p: /heads: must divide hidden, 768 (got 7)"},
    {"heads of a run", "mingpt", "{\"hidden\": [768, 800]}",
     "p: /head: must divide hidden, 800 (got 64)"},
    {"runs", "mingpt", "{\"layers\": [1, 2, 3], \"hidden\": [768, 1536]}",
     "p: /layers: must have as many entries as hidden, 2, or one (got 3)"},
    {"heads of a ViT", "vit_b16", "{\"heads\": 5}", "p: /heads: must divide hidden, 768 (got 5)"},
    {"heads of keys", "llama", "{\"kv_heads\": 5}", "p: /kv_heads: must divide heads, 32 (got 5)"},
    {"experts", "mixtral", "{\"top_k\": 9}", "p: /top_k: must be from 1 to experts, 8 (got 9)"},
    {"a head of values", "deepseek_v3", "{\"v_head\": 0}",
     "p: /v_head: must be >= 1 with latent attention (got 0)"},
    {"a letter", "gpt_oss", "{\"pattern\": \"wfx\"}",
     "p: /pattern: must be letters f (attends to everything), w (within the window) and m (mixer "
     "of a state space), one per layer, repeated (got \"wfx\")"},
    {"no mixers", "gpt_oss", "{\"pattern\": \"fm\"}",
     "p: /pattern: must have no layers m for a model without state spaces"},
    {"groups of a mixer", "mamba2", "{\"state_groups\": 3}",
     "p: /state_groups: must divide state_heads, 80 (got 3)"},
    {"no window", "gpt_oss", "{\"window\": 0}",
     "p: /window: must be given for the layers w of the pattern \"wf\""},
    {"patches", "vit_b16", "{\"image\": 225}",
     "p: /image: must be a multiple of patch, 16 (got 225)"},
    {"positions", "gpt", "{\"positions\": 8}",
     "p: /sequence: must be at most positions, 8 (got 1024)"},
    {"too large", "gpt", "{\"sequence\": 1048576, \"heads\": 768, \"attention\": \"math\"}",
     "p: gpt: layer h.0.attn.attention has too many weights: 1048576 tokens, squared, of 768 "
     "heads"},
    {"an unknown parameter", "vgg16", "{\"images\": 1}",
     "p: unknown key \"images\"; did you mean \"image\"? known: image, classes, width, dense"},
};

static void test_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(errors); i++) {
        cs_net net;
        cs_error error;
        cs_status status = build(errors[i].name, errors[i].params, &net, &error);
        expect_error(errors[i].row, CS_INVALID, errors[i].message, status, &error);
    }
}

static void test_batch(void **state)
{
    (void)state;
    cs_net net;
    cs_net_chain chain;
    cs_error error;
    cs_accelerator none;
    cs_accelerator_none(&none);
    cs_net_options how = {.batch_size = 0, .device = &none, .source = "test"};
    must_build("resnet18", "{}", &net);
    cs_error_init(&error);
    expect_error("batch 0", CS_INVALID,
                 "resnet18: the batch size must be from 1 to 1048576 samples (got 0)",
                 cs_net_chain_find(&net, &how, &chain, &error), &error);
    cs_net_finish(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_totals), cmocka_unit_test(test_decoders),
        cmocka_unit_test(test_chains), cmocka_unit_test(test_kept),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
