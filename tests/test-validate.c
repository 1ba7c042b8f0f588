/* Measured points: reading them, their scenarios, their predictions, sums of errors. */
#include "sim/run/figures.h"
#include "sim/study/validate/point-selection.h"
#include "tests/expect.h"
#include "tests/run-scenario.h"

#include "sim/study/validate/error-parts.h"
#include "sim/study/validate/error-table.h"

#include <math.h>
#include <stdlib.h>

enum { TEXT_BYTES = 4096 };

/* A file of points, with ' in place of ". */
static cs_status read_file(const char *text, cs_points *points, cs_error *error)
{
    char copy[TEXT_BYTES];
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *at = copy; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    cs_error_init(error);
    return cs_points_parse("p.json", copy, strlen(copy), points, error);
}

/* A file with one point of these members besides those that have a default here. */
static void read_point(const char *row, const char *members, cs_points *points)
{
    char text[TEXT_BYTES];
    cs_error error;
    snprintf(text, sizeof(text),
             "{'schema': 'truth/1', 'dataset': 'd', 'points': [{'id': 'd/1', %s}]}", members);
    cs_arena_init(&points->arena);
    if (read_file(text, points, &error) != CS_OK)
        fail_msg("%s: %s", row, error.text);
}

#define GPT                                                                                        \
    "'model': {'name': 'g', 'kind': 'decoder', 'layers': 4, 'hidden': 256, 'heads': 4, "           \
    "'ffn': 1024, 'vocab': 1000, 'seq': 128, 'act': 'gelu', 'norm': 'layernorm', "                 \
    "'pos': 'learned', 'tied': true, 'bias': true}"
#define ONE_GPU  "'hardware': {'gpu': 'V100-SXM2-16GB', 'gpus': 1}"
#define TWO_GPUS "'hardware': {'gpu': 'V100-SXM2-16GB', 'gpus': 2, 'gpus_per_node': 8}"
#define REST     "'precision': 'fp32', 'recompute': 'none'"

/* ---- reading ---- */

static const struct refused {
    const char *name, *text, *message;
} refused[] = {
    {"another schema", "{'schema': 'truth/2'}",
     "p.json: /schema: must be \"truth/1\" (docs/reference/points.md)"},
    {"no dataset", "{'schema': 'truth/1', 'points': []}",
     "p.json: /dataset: must be a text: the name of the dataset"},
    {"no list", "{'schema': 'truth/1', 'dataset': 'd', 'points': {}}",
     "p.json: /points: must be a list of points"},
    {"no id",
     "{'schema': 'truth/1', 'dataset': 'd', 'points': [{" GPT ", " ONE_GPU
     ", 'batch': {}, 'measured': {}, " REST "}]}",
     "p.json: /points/0: missing key \"id\": must be text"},
    {"a wrong number, in the second point",
     "{'schema': 'truth/1', 'dataset': 'd', 'points': [{'id': 'a', " GPT ", " ONE_GPU
     ", 'batch': {}, 'measured': {}, " REST "}, {'id': 'b', " GPT ", " ONE_GPU
     ", 'parallel': {'tp': 0}, 'batch': {}, 'measured': {}, " REST "}]}",
     "p.json: /points/1/parallel/tp: must be from 1 to 1048576 (got 0)"},
    {"a measurement of nothing",
     "{'schema': 'truth/1', 'dataset': 'd', 'points': [{'id': 'a', " GPT ", " ONE_GPU
     ", 'batch': {}, 'measured': {'step_time_s': 0}, " REST "}]}",
     "p.json: /points/0/measured/step_time_s: must be > 0 (got 0)"},
    {"an open value of the wrong type",
     "{'schema': 'truth/1', 'dataset': 'd', 'points': [{'id': 'a', " GPT ", " ONE_GPU
     ", 'batch': {}, 'measured': {'oom': 'no'}, " REST "}]}",
     "p.json: /points/0/measured/oom: must be true or false"},
    {"a dispatcher of nobody's",
     "{'schema': 'truth/1', 'dataset': 'd', 'points': [{'id': 'a', " GPT ", " ONE_GPU
     ", 'batch': {}, 'options': {'moe_dispatcher': 'bus'}, 'measured': {}, " REST "}]}",
     "p.json: /points/0/options/moe_dispatcher: must be alltoall or flex (got bus)"},
    {"the same id twice",
     "{'schema': 'truth/1', 'dataset': 'd', 'points': [{'id': 'a', " GPT ", " ONE_GPU
     ", 'batch': {}, 'measured': {}, " REST "}, {'id': 'a', " GPT ", " ONE_GPU
     ", 'batch': {}, 'measured': {}, " REST "}]}",
     "p.json: /points/1/id: must be unique: p.json has a point \"a\" as well"},
};

static void refuses_with_a_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(refused); i++) {
        cs_points points = {0};
        cs_error error;
        cs_arena_init(&points.arena);
        const cs_status status = read_file(refused[i].text, &points, &error);
        expect_int(refused[i].name, CS_INVALID, status);
        expect_text(refused[i].name, refused[i].message, error.text);
        cs_points_finish(&points);
    }
}

/* Keys of no table and null are as if they were not there. */
static void ignores_other_keys(void **state)
{
    (void)state;
    cs_points points = {0};
    read_point("other keys",
               GPT ", 'hardware': {'gpu': 'x', 'gpus': 1, 'colour': 'green', 'memory_gb': null}, "
                   "'batch': {'global': null, 'micro': 2}, 'measured': {'mood': 1}, "
                   "'where': 'table 4', " REST,
               &points);
    assert_int_equal(points.n, 1);
    expect_int("no batch", 0, points.points[0].run.batch->global);
    expect_int("micro-batch", 2, points.points[0].run.batch->micro);
    assert_true(isnan(points.points[0].run.hardware->memory_gb));
    expect_text("default", "grad-accumulation", points.points[0].run.schedule);
    cs_points_finish(&points);
}

/* 32 sequences of 128 tokens a step. 64 samples/s: 0.5 s. 1024 tokens/s on each of 2 GPUs: 4096
 * tokens in 2 s. A time that was measured counts before both; of a point of memory only, none
 * does. */
static void finds_the_time_of_a_step(void **state)
{
    (void)state;
    static const struct {
        const char *measured;
        double seconds;
    } rows[] = {
        {"'samples_per_s': 64", 0.5},
        {"'tokens_per_s_per_gpu': 1024", 2},
        {"'step_time_s': 0.75, 'samples_per_s': 64", 0.75},
        {"'peak_allocated_bytes': 1", (double)NAN},
        {"'step_time_s': 0.75}, 'quality': 'A-memory', 'options': {", (double)NAN},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        char members[TEXT_BYTES];
        cs_points points = {0};
        snprintf(members, sizeof(members),
                 GPT ", " TWO_GPUS ", 'batch': {'global': 32}, 'measured': {%s}, " REST,
                 rows[i].measured);
        read_point(rows[i].measured, members, &points);
        const double got = cs_point_step_time(&points.points[0]);
        if (isnan(rows[i].seconds))
            assert_true(isnan(got));
        else
            expect_double(rows[i].measured, rows[i].seconds, got);
        cs_points_finish(&points);
    }
}

/* ---- scenarios ---- */

#define GPUS(n)  "'hardware': {'gpu': 'A100-SXM4-80GB', 'gpus': " #n ", 'gpus_per_node': 8}, "
#define MEGATRON GPT ", 'framework': 'Megatron-LM (dev)', 'batch': {'global': 8, 'micro': 1}, "
#define COMPOSER                                                                                   \
    GPT ", 'framework': 'Composer/PyTorch FSDP', 'batch': {'global': 8, 'micro': 1}, " GPUS(       \
        8) "'parallel': {'dp': 8, 'zero': 3}, "
#define ENCODER(kind, framework)                                                                   \
    "'model': {'name': 'e', 'kind': '" kind "', 'layers': 4, 'hidden': 256, 'heads': 4, "          \
    "'ffn': 1024, 'vocab': 1000, 'seq': 128, 'act': 'gelu', 'norm': 'layernorm'}, 'framework': "   \
    "'" framework "', 'batch': {'global': 8, 'micro': 1}, 'options': {'lora': true}, " GPUS(1)     \
        TOLD
/* Four blocks over two ranks. */
#define LAID_OUT(layout)                                                                           \
    MEGATRON GPUS(2) "'parallel': {'pp': 2}, 'schedule': '1f1b', 'args': "                         \
                     "{'pipeline-model-parallel-layout': '" layout "'}, " TOLD
#define EXPERTS                                                                                    \
    "'model': {'name': 'm', 'kind': 'decoder-moe', 'layers': 4, 'hidden': 256, 'heads': 4, "       \
    "'ffn': 1024, 'vocab': 1000, 'seq': 128, 'act': 'gelu', 'norm': 'layernorm', "                 \
    "'pos': 'learned', 'tied': true, 'experts': 4, 'topk': 2}, "                                   \
    "'framework': 'Megatron-LM (dev)', 'batch': {'global': 8, 'micro': 1}, "
/* One layer without experts, and in the others one that all tokens go through. */
#define MIXED                                                                                      \
    "'model': {'name': 'm', 'kind': 'decoder-moe', 'layers': 4, 'hidden': 256, 'heads': 4, "       \
    "'ffn': 1024, 'vocab': 1000, 'seq': 128, 'act': 'swiglu', 'norm': 'rmsnorm', "                 \
    "'pos': 'rope', 'tied': true, 'experts': 4, 'topk': 2, 'moe_ffn': 512, 'shared_ffn': 512, "    \
    "'dense_layers': 1}, 'framework': 'Megatron-LM (dev)', "                                       \
    "'batch': {'global': 8, 'micro': 1}, "
#define H100     "'hardware': {'gpu': 'NVIDIA H100 80GB HBM3', 'gpus': 1}, "
#define TOLD     "'measured': {}, 'recompute': 'none', 'precision': 'bf16'"
#define REPEATED "'measured': {}, 'recompute': 'full', 'precision': 'bf16'"

/* 256 features of a token, and heads of another width than all of them divided. */
#define HEADS(kind, heads)                                                                         \
    "'model': {'name': 'w', 'kind': '" kind "', 'layers': 4, 'hidden': 256, " heads ", "           \
    "'ffn': 1024, 'vocab': 1000, 'seq': 128, 'act': 'gelu', 'norm': 'layernorm', "                 \
    "'pos': 'learned', 'tied': true, 'bias': true}, 'batch': {'global': 8, 'micro': 1}, " GPUS(1)

/* Sequences of 128 tokens. A token of a sample of 51 attends to 1 to 51, 26 on average. */
#define NORMED(more)                                                                               \
    "'model': {'name': 'l', 'kind': 'decoder', 'layers': 4, 'hidden': 256, 'heads': 4, "           \
    "'ffn': 1024, 'vocab': 1000, 'seq': 128, 'act': 'swiglu', 'norm': 'rmsnorm', "                 \
    "'pos': 'rope', " more "}, 'batch': {'global': 8, 'micro': 1}, "

#define LLAMA(framework, options)                                                                  \
    NORMED("'tied': false")                                                                        \
    GPUS(1) "'framework': '" framework "', 'options': {" options "}, " TOLD
#define MIXTURE(more)                                                                              \
    "'model': {'name': 'l', 'kind': 'decoder-moe', 'layers': 4, 'hidden': 256, 'ffn': 1024, "      \
    "'vocab': 1000, 'seq': 128, 'act': 'swiglu', 'norm': 'rmsnorm', 'pos': 'rope', " more "}, "    \
    "'framework': 'Megatron-LM (dev)', 'batch': {'global': 8, 'micro': 1}, "
#define STAGES(options)                                                                            \
    MEGATRON GPUS(2) "'parallel': {'pp': 2}, 'schedule': '1f1b', 'options': {" options "}, " TOLD
#define QUERIES(rank)                                                                              \
    MIXTURE("'heads': 4, 'mla': {'q_lora_rank': " rank ", 'kv_lora_rank': 32, 'qk_head_dim': 32, " \
            "'qk_pos_emb_head_dim': 16, 'v_head_dim': 32}, 'experts': 4, 'topk': 2, "              \
            "'moe_ffn': 512, 'dense_layers': 1")                                                   \
    GPUS(1) "'measured': {}, 'precision': 'bf16', 'recompute': 'selective:[mla_up_proj]'"

/* Blocks, features, tokens of the vocabulary and of a sequence, and whether attention is fused. */
#define SIZES(layers, hidden, vocab, seq, fused)                                                   \
    "'model': {'name': 'g', 'kind': 'decoder', 'layers': " layers ", 'hidden': " hidden            \
    ", 'heads': 4, 'ffn': 1024, 'vocab': " vocab ", 'seq': " seq                                   \
    ", 'act': 'gelu', 'norm': 'layernorm', 'pos': 'learned'}, " ONE_GPU                            \
    ", 'batch': {'global': 1, 'micro': 1}, 'options': {'flash_attention': " fused                  \
    "}, 'measured': {}, " REST

static const struct lack {
    const char *members, *missing;
} lacks[] = {
    {GPT ", " TWO_GPUS ", 'parallel': {'pp': 2}, 'batch': {'global': 4, 'micro': 1}, "
         "'schedule': 'chimera', 'measured': {}, " REST,
     "the schedule chimera"},
    {GPT ", " TWO_GPUS ", 'parallel': {'pp': 2}, 'batch': {'global': 4, 'micro': 1}, "
         "'schedule': 'pipedream', 'measured': {}, " REST,
     "the schedule pipedream"},
    {GPT ", " GPUS(3) "'parallel': {'pp': 3}, 'batch': {'global': 4, 'micro': 1}, "
                      "'schedule': 'dualpipe', 'measured': {}, " REST,
     "stated: ranks and micro-batches that two directions divide"},
    {GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, "
         "'schedule': 'dualpipe', 'measured': {}, " REST,
     "stated: ranks and micro-batches that two directions divide"},
    {GPT ", " TWO_GPUS ", 'parallel': {'pp': 2}, 'batch': {'global': 4, 'micro': 1}, "
         "'schedule': 'dualpipe', 'options': {'profiled_ms': {'F': 1, 'B': 1, 'W': 1, 'comm': 1}}, "
         "'measured': {}, " REST,
     "measured passes of the schedule dualpipe"},
    {GPT ", 'hardware': {'gpu': 'abacus', 'gpus': 1}, 'batch': {'global': 4, 'micro': 1}, "
         "'measured': {}, " REST,
     "the device abacus"},
    {GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, 'measured': {}, 'precision': 'int4'",
     "int4 matrix products"},
    {GPT ", " ONE_GPU ", 'batch': {'global': 4}, 'measured': {}, " REST, "stated: batch sizes"},
    {GPT ", " TWO_GPUS ", 'batch': {'global': 4, 'micro': 1}, 'measured': {}, " REST,
     "stated: a mesh of as many ranks as GPUs"},
    {GPT ", " ONE_GPU
         ", 'batch': {'global': 5, 'micro': 2, 'micro_batches': 2}, 'measured': {}, " REST,
     "stated: batch sizes that agree"},
    {GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, 'options': {'offload': true}, "
         "'measured': {}, " REST,
     "offloading where nothing else is divided than the batch"},
    {GPT ", " TWO_GPUS
         ", 'parallel': {'dp': 2, 'zero': 1}, 'batch': {'global': 4, 'micro': 1}, 'options': "
         "{'offload': true}, 'measured': {}, " REST,
     "stated: what is offloaded"},
    {GPT ", " TWO_GPUS
         ", 'parallel': {'dp': 2, 'zero': 1}, 'batch': {'global': 4, 'micro': 1}, 'options': "
         "{'offload': true}, 'measured': {}, 'precision': 'fp32', 'recompute': 'full'",
     "offloading with full recomputation or measured passes"},
    {GPT
     ", " TWO_GPUS
     ", 'parallel': {'dp': 2, 'zero': 1}, 'batch': {'global': 4, 'micro': 1}, 'measured': "
     "{}, 'framework': 'Megatron-LM', 'args': {'fine-grained-activation-offloading': true}, " REST,
     "stated: which modules are offloaded"},
    {GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, 'measured': {}, 'framework': "
         "'Megatron-LM', 'args': {'defer-embedding-wgrad-compute': true}, " REST,
     "gradients of the last matrix that are deferred"},
    {GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, 'measured': {}, 'framework': "
         "'Megatron-LM', 'args': {'optimizer': 'dist_muon'}, 'parallel': {'zero': 2}, " REST,
     "the optimizer Muon where gradients or weights are divided"},
    {"'model': {'name': 'resnet50', 'kind': 'cnn'}, " ONE_GPU
     ", 'batch': {'global': 4, 'micro': 1}, 'measured': {}, 'optimizer': 'muon', " REST,
     "the optimizer Muon of convolutions"},
    {GPT ", " H100 "'batch': {'global': 4, 'micro': 1}, 'measured': {}, 'framework': "
         "'Megatron-LM', 'args': {'fp8-format': 'hybrid'}, 'precision': 'fp8', 'recompute': 'none'",
     "fp8 products of float32 activations"},
    {GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, 'measured': {}, 'precision': 'fp32', "
         "'recompute': 'block:2'",
     "full recomputation of some blocks"},
    {GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, 'measured': {}, 'precision': 'fp32', "
         "'recompute': 'selective:something'",
     "stated: what is computed again"},
    {GPT ", " TWO_GPUS ", 'parallel': {'pp': 2, 'vpp': 4}, 'batch': {'global': 4, 'micro': 1}, "
         "'schedule': 'interleaved_1f1b', 'measured': {}, " REST,
     "stated: at most as many stages as layers"},
    {LAID_OUT("Ett|ttx"), "stated: a stage layout from the embedding to the loss"},
    {LAID_OUT("tt|ttL"), "stated: a stage layout from the embedding to the loss"},
    {LAID_OUT("Ett|(tt)L"), "stated: a stage layout from the embedding to the loss"},
    {LAID_OUT("Ett|(ttL"), "stated: a stage layout from the embedding to the loss"},
    {LAID_OUT("Ett|t*L"), "stated: a stage layout from the embedding to the loss"},
    {LAID_OUT("ELtt|tt"), "stated: a stage layout from the embedding to the loss"},
    {LAID_OUT("Ett||ttL|"), "stated: a stage layout without empty stages"},
    {LAID_OUT("Ett|t|tL"), "stated: a stage layout that the ranks divide"},
    {LAID_OUT("Ett|tttL"), "stated: a stage layout of as many blocks as the network has"},
    {LAID_OUT("Ett|ttmL"), "stated: a stage layout of as many blocks as the network has"},
    {MEGATRON GPUS(4) "'parallel': {'pp': 2, 'dp': 2, 'zero': 1}, 'schedule': '1f1b', 'args': "
                      "{'pipeline-model-parallel-layout': 'Et|t|t|tL', "
                      "'fine-grained-activation-offloading': true}, " TOLD,
     "offloading of modules by ranks of several stages"},
    {MEGATRON GPUS(1) "'measured': {}, 'recompute': 'none', 'precision': 'fp8'",
     "fp8 matrix products on A100-SXM4-80GB"},
    {HEADS("decoder", "'heads': 5") TOLD, "stated: heads that divide the hidden size"},
    {HEADS("encoder", "'heads': 4, 'head_dim': 32") TOLD,
     "heads of another width than hidden / heads in encoders"},
    {MEGATRON GPUS(8) "'parallel': {'tp': 8}, " TOLD,
     "more ranks than heads, or heads that ranks do not divide"},
    {MEGATRON GPUS(8) "'parallel': {'tp': 2, 'cp': 4, 'cp_comm': 'a2a'}, " TOLD,
     "more ranks than heads, or heads that ranks do not divide"},
    {EXPERTS GPUS(2) "'parallel': {'tp': 2}, " TOLD,
     "experts and tensor parallelism without sequence parallelism"},
    {MEGATRON "'hardware': {'gpu': 'RTX 4090', 'gpus': 16, 'gpus_per_node': 8}, 'parallel': "
              "{'dp': 8, 'tp': 2}, " TOLD,
     "several nodes of RTX 4090"},
    {MEGATRON "'hardware': {'gpu': 'NVIDIA H800 PCIe', 'gpus': 1}, " TOLD,
     "the device NVIDIA H800 PCIe"},
    {NORMED("'sliding_window': 32") GPUS(1) "'options': {'packed_tokens': 80}, " TOLD,
     "packed samples that are longer than windows"},
    {"'model': {'name': 'b', 'kind': 'encoder', 'layers': 4, 'hidden': 256, 'heads': 4, 'ffn': "
     "1024, 'vocab': 1000, 'seq': 128}, 'batch': {'global': 8, 'micro': 1}, " GPUS(
         1) "'options': {'packed_tokens': 80}, " TOLD,
     "packed samples in networks of the kind \"encoder\""},
    {LLAMA("lit-gpt", "'lora': true, 'quantization': 'nf3'"), "quantised weights (nf3)"},
    {STAGES("'stage_layers': [4]"), "stated: as many stages as the ranks have"},
    {STAGES("'stage_layers': [2, 1]"), "stated: stages of as many blocks as the network has"},
    {STAGES("'stages_with_parts': [6, 0]"), "stages without a layer"},
    {SIZES("4097", "256", "1000", "128", "true"), "more than 4096 blocks"},
    {SIZES("4", "1048580", "1000", "128", "true"), "more than 1048576 features of a token"},
    {GPT ", " ONE_GPU ", 'batch': {'global': 1048577, 'micro': 1}, 'measured': {}, " REST,
     "more than 1048576 micro-batches in a step"},
    {SIZES("4", "256", "1048577", "128", "true"), "more than 1048576 tokens in a vocabulary"},
    {SIZES("4", "256", "1000", "1048577", "true"), "more than 1048576 tokens in a sequence"},
    {SIZES("4", "256", "65537", "1048576", "true"), "more than 2^36 logits of a sequence"},
    {SIZES("4", "256", "1000", "131073", "false"),
     "more than 2^36 weights of attention that is no fused kernel"},
};

/* The largest of each: 2^20 x 2^16 logits, and 4 x 2^17 x 2^17 weights of attention, are 2^36. */
static const char *const largest[] = {
    SIZES("4096", "256", "1000", "128", "true"),  SIZES("4", "1048576", "1000", "128", "true"),
    SIZES("4", "256", "1048576", "128", "true"),  SIZES("4", "256", "65536", "1048576", "true"),
    SIZES("4", "256", "1000", "131072", "false"),
};

/* Scenario keys derived from Megatron-LM's arguments, or from the runtime's conventions if the
 * point has no rule: JSON at a pointer of two or three keys. The MLP's features are 8/3 x 256 =
 * 682, down to a multiple of 64: 640. Stages of 1 and 3 blocks begin at layers 0 and 2, the
 * embedding being layer 0. 4 replicas in 2 instances of the optimizer shard states over 2.
 * PyTorch's FSDP reduces gradients after each backward. */
#define GATED                                                                                      \
    "'model': {'name': 'l', 'kind': 'decoder', 'layers': 4, 'hidden': 256, 'heads': 4, "           \
    "'ffn': 1024, 'vocab': 1000, 'seq': 128, 'act': 'swiglu', 'norm': 'layernorm', "               \
    "'pos': 'learned', 'tied': true}, "                                                            \
    "'framework': 'Megatron-LM (dev)', 'batch': {'global': 8, 'micro': 1}, "
#define SEQUENCES                                                                                  \
    "'model': {'name': 't', 'kind': 'encoder-decoder', 'layers': 4, 'hidden': 256, 'heads': 4, "   \
    "'ffn': 1024, 'vocab': 1000, 'seq': 128, 'act': 'gelu', 'norm': 'layernorm', "                 \
    "'pos': 'learned', 'tied': true, 'bias': true}, "                                              \
    "'framework': 'Megatron-LM (dev)', 'batch': {'global': 8, 'micro': 1}, "
#define TITAN GPT ", 'framework': 'torchtitan', 'batch': {'global': 8, 'micro': 1}, "
#define NARROW(framework, gpu, type, options)                                                      \
    GPT ", 'framework': '" framework "', 'batch': {'global': 8, 'micro': 1}, 'hardware': "         \
        "{'gpu': '" gpu "', 'gpus': 1}, 'measured': {}, 'recompute': 'none', 'precision': '" type  \
        "', 'options': {" options "}"

#define RECIPE(name, release, gpu, precision, options)                                             \
    "'model': {'name': '" name "', 'kind': 'decoder-moe', 'layers': 4, 'hidden': 256, "            \
    "'heads': 4, 'ffn': 1024, 'vocab': 1000, 'seq': 128, 'act': 'swiglu', 'norm': 'rmsnorm', "     \
    "'pos': 'rope', 'experts': 4, 'topk': 2, 'moe_ffn': 512}, "                                    \
    "'framework': 'Megatron-Bridge" release "', 'batch': {'global': 8, 'micro': 1}, "              \
    "'hardware': {'gpu': '" gpu "', 'gpus': 4, 'gpus_per_node': 8}, "                              \
    "'parallel': {'dp': 4, 'ep': 4}, 'options': {" options "}, 'measured': {}, "                   \
    "'recompute': 'none', 'precision': '" precision "'"
#define BRIDGE(name, options) RECIPE(name, "", "A100-SXM4-80GB", "bf16", options)
#define B200(release, precision)                                                                   \
    RECIPE("qwen3", " " release, "B200-SXM-180GB", precision, "'cuda_graphs': 'none'")

/* Eight sequences, one at a time. */
#define DUALPIPE GPUS(4) "'parallel': {'pp': 4}, 'schedule': 'dualpipe', " TOLD

static const struct rule {
    const char *name, *members, *section, *key, *inner, *value;
} rules[] = {
    {"SwiGLU", GATED GPUS(1) "'args': {'swiglu': true}, " TOLD, "model", "parameters",
     "intermediate", "640"},
    {"SwiGLU, given", GATED GPUS(1) "'args': {'swiglu': true, 'ffn-hidden-size': 1024}, " TOLD,
     "model", "parameters", "intermediate", "1024"},
    {"heads as wide as a token together", HEADS("decoder", "'heads': 4, 'head_dim': 64") TOLD,
     "model", "name", NULL, "\"gpt\""},
    {"heads of another width", HEADS("decoder", "'heads': 5, 'head_dim': 64") TOLD, "model", "name",
     NULL, "\"decoder\""},
    {"which is taken", HEADS("decoder", "'heads': 5, 'head_dim': 64") TOLD, "model", "parameters",
     "head", "64"},
    {"stages",
     MEGATRON GPUS(2) "'parallel': {'pp': 2}, 'schedule': '1f1b', 'args': "
                      "{'decoder-first-pipeline-num-layers': 1}, " TOLD,
     "schedule", "partition", NULL, "[2]"},
    {"equal stages", MEGATRON GPUS(2) "'parallel': {'pp': 2}, 'schedule': '1f1b', " TOLD,
     "schedule", "partition", NULL, "[3]"},
    /* layer 0 is the embedding, 1 to 4 are blocks */
    {"a layout", LAID_OUT("Ettt|tL"), "schedule", "partition", NULL, "[4]"},
    {"in groups", LAID_OUT("Et, (|t)*2 |tL"), "schedule", "partition", NULL, "[2,3,4]"},
    {"with several stages a rank", LAID_OUT("Et(|t)*2|tL"), "schedule", "stages_per_device", NULL,
     "2"},
    {"which are interleaved", LAID_OUT("Et(|t)*2|tL"), "schedule", "kind", NULL,
     "\"interleaved_1f1b\""},
    {"ends alone", LAID_OUT("E|t*2|tt|L"), "schedule", "partition", NULL, "[1,3,5]"},
    {"blocks per stage", STAGES("'stage_layers': [1, 3]"), "schedule", "partition", NULL, "[2]"},
    {"the head alone", STAGES("'stage_layers': [4, 0]"), "schedule", "partition", NULL, "[5]"},
    {"with embedding and head", STAGES("'stages_with_parts': [2, 4]"), "schedule", "partition",
     NULL, "[2]"},
    {"blocks of the last stage", STAGES("'last_stage_layers': 1"), "schedule", "partition", NULL,
     "[4]"},
    {"no blocks on it", STAGES("'last_stage_layers': 0"), "schedule", "partition", NULL, "[5]"},
    /* four blocks, one on the last of four stages: 1 + 1 + 1 + 1 */
    {"with several stages per rank",
     MEGATRON GPUS(2) "'parallel': {'pp': 2, 'vpp': 2}, 'schedule': 'interleaved_1f1b', "
                      "'options': {'last_stage_layers': 1}, " TOLD,
     "schedule", "partition", NULL, "[2,3,4]"},
    {"AutoModel is FSDP", LLAMA("NeMo Automodel 26.02", ""), "runtime", "name", NULL,
     "\"nemo-automodel\""},
    {"as is its own spelling", LLAMA("NVIDIA NeMo AutoModel", ""), "runtime", "name", NULL,
     "\"nemo-automodel\""},
    {"NeMo is not", LLAMA("NeMo 24.07", ""), "runtime", "name", NULL, "\"nemo\""},
    /* 8 ranks split the 8 heads of queries; pairs of ranks have copies of the 4 of keys */
    {"more ranks than heads of keys",
     MIXTURE("'heads': 8, 'kv_heads': 4, 'experts': 4, 'topk': 2, 'moe_ffn': 512")
         GPUS(8) "'parallel': {'tp': 8, 'sp': true}, " TOLD,
     "parallel", "tensor", NULL, "8"},
    {"queries without a latent vector", QUERIES("0"), "model", "recompute_operators", NULL,
     "[\"q_proj\",\"q_rope\",\"q_nope\",\"q_rotary\",\"q\",\"kv_b_proj\",\"k_nope\",\"k_rotary\","
     "\"k\",\"v\"]"},
    {"and with one", QUERIES("64"), "model", "recompute_operators", NULL,
     "[\"q_b_proj\",\"q_rope\",\"q_nope\",\"q_rotary\",\"q\",\"kv_b_proj\",\"k_nope\",\"k_rotary\","
     "\"k\",\"v\"]"},
    {"GPUs of a quad node",
     NORMED("'tied': false") "'hardware': {'gpu': 'NVIDIA GH200 480GB', 'gpus': 8, "
                             "'gpus_per_node': 4}, 'parallel': {'dp': 8, 'zero': 3}, " TOLD,
     "platform", "topology", NULL, "\"gh200-4\""},
    {"a framework that is not stated is one of PyTorch's",
     GPT ", 'batch': {'global': 8, 'micro': 1}, " GPUS(
         1) "'measured': {'peak_device_bytes': 1e9}, 'precision': 'fp32', 'recompute': 'none'",
     "memory", "allocator", NULL, "\"pytorch\""},
    {"offloaded layers",
     RECIPE("m", "", "GB300 (NVL72)", "fp8", "'offload': true, 'offload_layers': 2"), "offload",
     "layers", NULL, "2"},
    {"of a recipe, which sizes of the network tell",
     "'model': {'name': 'l', 'kind': 'decoder', 'layers': 80, 'hidden': 8192, 'heads': 64, 'ffn': "
     "28672, 'vocab': 1000, 'seq': 128, 'act': 'swiglu', 'norm': 'rmsnorm', 'pos': 'rope'}, "
     "'hardware': {'gpu': 'GB300 (NVL72)', 'gpus': 2}, 'parallel': {'dp': 2, 'zero': 1}, 'batch': "
     "{'global': 2, 'micro': 1}, 'framework': 'Megatron-Bridge 26.02', 'options': {'offload': "
     "true}, 'measured': {}, 'precision': 'fp8', 'recompute': 'none'",
     "offload", "layers", NULL, "20"},
    {"offloaded modules",
     MIXED GPUS(2) "'parallel': {'dp': 2, 'zero': 1}, 'args': "
                   "{'fine-grained-activation-offloading': true, "
                   "'offload-modules': '[core_attn attn_proj moe_act]'}, " TOLD,
     "offload", "operators", NULL, "[\"attention\",\"o_proj\",\"experts.act\",\"experts.mul\"]"},
    {"half the ranks of DualPipe", MEGATRON DUALPIPE, "parallel", "pipeline", NULL, "2"},
    {"and twice the replicas", MEGATRON DUALPIPE, "parallel", "data", NULL, "2"},
    {"which have half the micro-batches", MEGATRON DUALPIPE, "schedule", "micro_batches", NULL,
     "4"},
    {"and a V each", MEGATRON DUALPIPE, "schedule", "kind", NULL, "\"dualpipe_v\""},
    {"instances",
     MEGATRON GPUS(4) "'parallel': {'dp': 4, 'zero': 1}, 'args': "
                      "{'num-distributed-optimizer-instances': 2}, " TOLD,
     "parallel", "shard", NULL, "2"},
    {"one instance", MEGATRON GPUS(4) "'parallel': {'dp': 4, 'zero': 1}, " TOLD, "parallel",
     "shard", NULL, "-"},
    {"buffers of weights", MEGATRON GPUS(4) "'parallel': {'dp': 4, 'zero': 1}, " TOLD, "memory",
     "weight_buffer", NULL, "true"},
    {"FSDP",
     GPT ", 'framework': 'PyTorch FSDP', 'batch': {'global': 8, 'micro': 1}, " GPUS(
         4) "'parallel': {'dp': 4, 'zero': 3}, " TOLD,
     "parallel", "accumulate", NULL, "false"},
    {"of Megatron Core", LLAMA("Megatron-LM", ""), "runtime", "name", NULL, "\"megatron-core\""},
    {"and not before",
     GPT ", 'batch': {'global': 8, 'micro': 1}, " GPUS(1) "'framework': 'Megatron-LM', " TOLD,
     "runtime", "name", NULL, "\"megatron-lm-2021\""},
    {"reduced after the backward", MEGATRON GPUS(4) "'parallel': {'dp': 4, 'zero': 1}, " TOLD,
     "parallel", "bucket", NULL, "0"},
    {"or during it",
     MEGATRON GPUS(4) "'parallel': {'dp': 4, 'zero': 1}, 'options': {'dp_overlap': true}, " TOLD,
     "parallel", "bucket", NULL, "160000000"},
    {"parts of messages of LiBai",
     GPT ", 'batch': {'global': 8, 'micro': 1}, 'schedule': '1f1b', " GPUS(
         4) "'parallel': {'tp': 2, 'pp': 2}, 'framework': 'LiBai', " TOLD,
     "parallel", "scatter_gather", NULL, "false"},
    {"deterministic", MEGATRON GPUS(1) "'args': {'deterministic-mode': true}, " TOLD, "memory",
     "deterministic_multiprocessors", NULL, "108"},
    {"or not", MEGATRON GPUS(1) "'args': {}, " TOLD, "memory", "deterministic_multiprocessors",
     NULL, "-"},
    {"experts one by one", EXPERTS GPUS(1) "'args': {}, " TOLD, "memory", "libraries", NULL,
     "[\"cublas\",\"transformer_engine\"]"},
    {"products of groups", EXPERTS GPUS(1) "'args': {'moe-grouped-gemm': true}, " TOLD, "memory",
     "libraries", NULL, "[\"cublas\",\"transformer_engine\",\"grouped_products\"]"},
    {"fp8 in an argument",
     MEGATRON H100
     "'args': {'fp8-param-gather': true, 'bf16': true}, 'measured': {}, 'recompute': 'none', "
     "'precision': 'fp8'",
     "memory", "narrow_weights", NULL, "\"alone\""},
    {"whose gradients are summed in fp32",
     MEGATRON H100 "'args': {'fp8-param-gather': true, 'bf16': true}, 'measured': {}, "
                   "'recompute': 'none', 'precision': 'fp8'",
     "model", "gradients", NULL, "\"fp32\""},
    {"a router is TransformerEngine's",
     EXPERTS GPUS(1) "'args': {'transformer-impl': 'local'}, " TOLD, "memory", "libraries", NULL,
     "[\"cublas\",\"transformer_engine\"]"},
    {"whose attention is FlashAttention's on A100", MEGATRON GPUS(1) "'args': {}, " TOLD, "memory",
     "attention_copy", NULL, "true"},
    {"and not cuDNN's",
     MEGATRON "'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 1}, 'args': {}, " TOLD, "memory",
     "attention_copy", NULL, "-"},
    {"unless an argument says so",
     MEGATRON "'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 1}, 'args': {'attention-backend': "
              "'flash'}, " TOLD,
     "memory", "attention_copy", NULL, "true"},
    {"or another one", MEGATRON GPUS(1) "'args': {'attention-backend': 'fused'}, " TOLD, "memory",
     "attention_copy", NULL, "false"},
    {"which has no sums",
     MEGATRON GPUS(1) "'args': {'attention-backend': 'fused', 'deterministic-mode': true}, " TOLD,
     "memory", "deterministic_multiprocessors", NULL, "0"},
    {"attention of encoders and decoders", SEQUENCES GPUS(1) "'args': {}, " TOLD, "model",
     "parameters", "attention", "\"flash\""},
    {"as an argument says", SEQUENCES GPUS(1) "'args': {'attention-backend': 'unfused'}, " TOLD,
     "model", "parameters", "attention", "\"math\""},
    {"laid out as Megatron Core's", SEQUENCES GPUS(1) "'args': {}, " TOLD, "model", "parameters",
     "form", "\"megatron\""},
    {"its own layers keep no masks of padding",
     SEQUENCES GPUS(1) "'args': {'transformer-impl': 'local'}, " TOLD, "memory", "padding_masks",
     NULL, "false"},
    {"masks of 128 x 128 tokens", MEGATRON GPUS(1) "'args': {}, " TOLD, "memory", "inputs", NULL,
     "16384"},
    {"of which each place has a part", MEGATRON GPUS(2) "'parallel': {'cp': 2}, 'args': {}, " TOLD,
     "memory", "inputs", NULL, "8192"},
    {"no masks", MEGATRON GPUS(1) "'args': {'no-create-attention-mask-in-dataloader': true}, " TOLD,
     "memory", "inputs", NULL, "-"},
    {"gathered tokens", MEGATRON GPUS(1) TOLD, "memory", "gather_buffer", NULL, "\"last_matrix\""},
    {"gathered for experts", EXPERTS GPUS(1) "'args': {}, " TOLD, "memory", "gather_buffer", NULL,
     "\"experts\""},
    {"or sent to them", EXPERTS GPUS(1) "'args': {'moe-token-dispatcher-type': 'alltoall'}, " TOLD,
     "memory", "gather_buffer", NULL, "\"last_matrix\""},
    {"a workspace of the environment",
     MEGATRON GPUS(1) "'env': {'CUBLAS_WORKSPACE_CONFIG': ':4096:8'}, " TOLD, "memory",
     "cublas_workspace", NULL, "33554432"},
    {"of two sizes", MEGATRON GPUS(1) "'env': {'CUBLAS_WORKSPACE_CONFIG': ':4096:2:16:8'}, " TOLD,
     "memory", "cublas_workspace", NULL, "8519680"},
    {"of no size", MEGATRON GPUS(1) "'env': {'CUBLAS_WORKSPACE_CONFIG': 'none'}, " TOLD, "memory",
     "cublas_workspace", NULL, "-"},
    {"of tests with experts", EXPERTS GPUS(1) "'args': {}, " TOLD, "memory", "cublas_workspace",
     NULL, "33554432"},
    {"where the environment says so as well",
     EXPERTS GPUS(1) "'args': {}, 'env': {'CUBLAS_WORKSPACE_CONFIG': ':16:8'}, " TOLD, "memory",
     "cublas_workspace", NULL, "131072"},
    {"of experts elsewhere", EXPERTS GPUS(1) TOLD, "memory", "cublas_workspace", NULL, "-"},
    {"norms of heads", EXPERTS GPUS(1) "'args': {'qk-layernorm': true}, " TOLD, "model",
     "parameters", "head_norms", "true"},
    {"none of them", EXPERTS GPUS(1) "'args': {}, " TOLD, "model", "parameters", "head_norms",
     "false"},
    {"norms of heads of GPT", MEGATRON GPUS(1) "'args': {'qk-layernorm': true}, " TOLD, "model",
     "parameters", "head_norms", "true"},
    {"dense layers in a pattern",
     EXPERTS GPUS(1) "'args': {'moe-layer-freq': '([0]*1+[1]*3)'}, " TOLD, "model", "parameters",
     "dense_layers", "1"},
    {"a pattern of another form",
     EXPERTS GPUS(1) "'args': {'moe-layer-freq': '([0]*1+[1]*1)*2'}, " TOLD, "model", "parameters",
     "dense_layers", "0"},
    {"fp8 without it",
     MEGATRON H100
     "'args': {'bf16': true}, 'measured': {}, 'recompute': 'none', 'precision': 'fp8'",
     "memory", "narrow_weights", NULL, "\"copies\""},
    {"fp8 of NeMo", NARROW("NeMo 24.09", "H100-SXM5-80GB", "fp8", ""), "memory", "narrow_weights",
     NULL, "\"alone\""},
    {"in two copies on Hopper", NARROW("NeMo 24.09", "H100-SXM5-80GB", "fp8", ""), "memory",
     "narrow_copies", NULL, "-"},
    {"one copy on Blackwell", NARROW("NeMo 24.09", "B200-SXM-180GB", "fp8", ""), "memory",
     "narrow_copies", NULL, "1"},
    {"one copy for adapters", NARROW("NeMo 24.09", "H100-SXM5-80GB", "fp8", "'lora': true"),
     "memory", "narrow_copies", NULL, "1"},
    {"mxfp8 of NeMo", NARROW("NeMo 25.02", "B200-SXM-180GB", "mxfp8", ""), "memory",
     "narrow_weights", NULL, "\"copies\""},
    {"mxfp8 of Megatron-Bridge", NARROW("Megatron-Bridge", "B200-SXM-180GB", "mxfp8", ""), "memory",
     "narrow_weights", NULL, "\"alone\""},
    {"nvfp4", NARROW("Megatron-Bridge", "B200-SXM-180GB", "nvfp4", ""), "memory", "narrow_weights",
     NULL, "\"copies\""},
    {"fp8 of XLA", NARROW("MaxText (JAX/XLA)", "H100-SXM5-80GB", "fp8", ""), "memory",
     "narrow_weights", NULL, "\"cast\""},
    {"fp8 of torchao", NARROW("torchtitan", "H100-SXM5-80GB", "fp8", ""), "memory",
     "narrow_weights", NULL, "\"cast\""},
    {"its inputs", NARROW("torchtitan", "H100-SXM5-80GB", "fp8", ""), "memory", "narrow_inputs",
     NULL, "false"},
    {"gathered in fp8", NARROW("torchtitan", "H100-SXM5-80GB", "fp8", "'float8_allgather': true"),
     "memory", "narrow_weights", NULL, "\"alone\""},
    {"scales of rows", NARROW("torchtitan", "H100-SXM5-80GB", "fp8-rowwise", ""), "runtime",
     "kernels", NULL, "1.12"},
    {"scales of tensors", NARROW("torchtitan", "H100-SXM5-80GB", "fp8-tensorwise", ""), "runtime",
     "kernels", NULL, "-"},
    {"loss of torchtitan", NARROW("torchtitan", "H100-SXM5-80GB", "bf16", ""), "memory", "loss",
     NULL, "\"eager\""},
    {"deterministic", MEGATRON GPUS(1) "'args': {'deterministic-mode': true}, " TOLD, "runtime",
     "deterministic", NULL, "true"},
    {"loss of Megatron-LM", MEGATRON GPUS(1) "'args': {'cross-entropy-loss-fusion': true}, " TOLD,
     "memory", "loss", NULL, "\"copied\""},
    {"loss over a divided vocabulary",
     TITAN "'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 4, 'gpus_per_node': 8}, 'parallel': "
           "{'tp': 4, 'sp': true}, " TOLD,
     "memory", "loss", NULL, "\"parallel\""},
    {"loss that is compiled",
     TITAN "'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 4, 'gpus_per_node': 8}, 'parallel': "
           "{'tp': 4, 'sp': true}, 'options': {'compile': true}, 'measured': {}, 'recompute': "
           "'none', 'precision': 'fp8-rowwise'",
     "memory", "loss", NULL, "-"},
    {"sums of torchtitan", NARROW("torchtitan", "H100-SXM5-80GB", "bf16", ""), "model", "gradients",
     NULL, "\"fp32\""},
    {"LiBai's replicas",
     GPT ", 'framework': 'LiBai', 'batch': {'global': 8, 'micro': 1}, " GPUS(
         4) "'parallel': {'dp': 4}, " TOLD,
     "schedule", "bucket", NULL, "16777216"},
    {"its tensor-parallel ranks",
     GPT ", 'framework': 'LiBai', 'batch': {'global': 8, 'micro': 1}, " GPUS(
         4) "'parallel': {'dp': 2, 'tp': 2}, " TOLD,
     "parallel", "bucket", NULL, "-"},
    {"Megatron-LM's replicas", MEGATRON GPUS(4) "'parallel': {'dp': 4}, " TOLD, "schedule",
     "bucket", NULL, "0"},
    {"torchtitan's FSDP",
     TITAN "'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 4, 'gpus_per_node': 8}, "
           "'parallel': {'dp': 4, 'zero': 3}, " TOLD,
     "parallel", "zero", NULL, "3"},
    {"under a pipeline",
     TITAN "'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 8, 'gpus_per_node': 8}, 'schedule': "
           "'1f1b', 'parallel': {'dp': 4, 'pp': 2, 'zero': 3}, " TOLD,
     "parallel", "zero", NULL, "3"},
    {"its gradients",
     TITAN "'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 8, 'gpus_per_node': 8}, 'schedule': "
           "'1f1b', 'parallel': {'dp': 4, 'pp': 2, 'zero': 3}, " TOLD,
     "parallel", "accumulate", NULL, "true"},
    {"its weights",
     TITAN "'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 8, 'gpus_per_node': 8}, 'schedule': "
           "'1f1b', 'parallel': {'dp': 4, 'pp': 2, 'zero': 3}, " TOLD,
     "parallel", "gather_once", NULL, "true"},
    {"its gathers",
     TITAN "'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 2, 'gpus_per_node': 8}, 'parallel': "
           "{'tp': 2, 'sp': true}, 'measured': {}, 'recompute': 'none', 'precision': "
           "'fp8-tensorwise'",
     "parallel", "narrow_gathers", NULL, "-"},
    {"its gathers with scales of rows",
     TITAN "'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 2, 'gpus_per_node': 8}, 'parallel': "
           "{'tp': 2, 'sp': true}, 'measured': {}, 'recompute': 'none', 'precision': "
           "'fp8-rowwise'",
     "parallel", "narrow_gathers", NULL, "false"},
    {"its results",
     TITAN "'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 2, 'gpus_per_node': 8}, 'schedule': "
           "'1f1b', 'parallel': {'pp': 2}, 'measured': {}, 'recompute': 'none', 'precision': "
           "'fp8'",
     "memory", "stage_results", NULL, "\"all\""},
    {"its results since 2025",
     TITAN "'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 2, 'gpus_per_node': 8}, 'schedule': "
           "'1f1b', 'parallel': {'pp': 2}, 'measured': {}, 'recompute': 'none', 'precision': "
           "'fp8-rowwise'",
     "memory", "stage_results", NULL, "\"last\""},
    {"its gathered tokens",
     TITAN "'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 2, 'gpus_per_node': 8}, 'parallel': "
           "{'tp': 2, 'sp': true}, " TOLD,
     "parallel", "regather", NULL, "false"},
    {"weights of rows", EXPERTS GPUS(1) "'args': {}, " TOLD, "memory", "routed_weights", NULL,
     "\"features\""},
    {"adapters of GPT", MEGATRON GPUS(1) "'options': {'lora': true}, " TOLD, "model", "lora",
     "targets", "[\"c_attn\",\"attn.c_proj\"]"},
    {"adapters of NVIDIA's recipes", LLAMA("NeMo 25.02", "'lora': true"), "model", "lora",
     "targets", "[\"q_proj\"]"},
    {"those of its later ones", LLAMA("Megatron-Bridge 26.06", "'lora': true"), "model", "lora",
     "targets", "[\"q_proj\"]"},
    {"those of others", LLAMA("Megatron-LM", "'lora': true"), "model", "lora", "targets",
     "[\"q_proj\",\"o_proj\"]"},
    {"recomputation that the source doubts",
     MEGATRON GPUS(1) "'measured': {}, 'recompute': 'full', 'precision': 'bf16', 'unknown': "
                      "['versions', 'whether layers were recomputed, as its configuration says']",
     "model", "recompute", NULL, "false"},
    {"recomputation by a configuration",
     MEGATRON GPUS(1) "'measured': {}, 'recompute': 'full', 'precision': 'bf16', 'unknown': "
                      "['recomputation as the configuration says']",
     "model", "recompute", NULL, "true"},
    {"norms of GPT",
     MEGATRON GPUS(1) "'measured': {}, 'recompute': 'selective:[layernorm]', 'precision': 'bf16'",
     "model", "recompute_operators", NULL, "[\"ln_1\",\"ln_2\"]"},
    {"activations of experts without a gate",
     EXPERTS GPUS(1) "'measured': {}, 'recompute': 'selective:[moe_act]', 'precision': 'bf16'",
     "model", "discard_operators", NULL, "[\"experts.act\"]"},
    {"layers without experts, of which there are none",
     EXPERTS GPUS(1) "'measured': {}, 'recompute': 'selective:[mlp, moe_act]', 'precision': "
                     "'bf16'",
     "model", "recompute_operators", NULL, "[\"experts.act\"]"},
    {"shared experts, of which there are none",
     EXPERTS GPUS(1) "'measured': {}, 'recompute': 'selective:[shared_experts, moe_act]', "
                     "'precision': 'bf16'",
     "model", "recompute_operators", NULL, "[\"experts.act\"]"},
    {"layers without experts, and where there are some",
     MIXED GPUS(1) "'measured': {}, 'recompute': 'selective:[mlp]', 'precision': 'bf16'", "model",
     "recompute_operators", NULL,
     "[\"mlp.up_proj\",\"mlp.act\",\"mlp.down_proj\",\"mlp.gate_proj\",\"mlp.mul\"]"},
    {"experts, and those that all tokens go through",
     MIXED GPUS(1) "'measured': {}, 'recompute': 'selective:[moe]', 'precision': 'bf16'", "model",
     "recompute_operators", NULL,
     "[\"mlp.gate\",\"top_k\",\"dispatch\",\"experts\",\"combine\",\"shared_experts\",\"mlp."
     "add\"]"},
    {"the latter alone",
     MIXED GPUS(1) "'measured': {}, 'recompute': 'selective:[shared_experts]', 'precision': "
                   "'bf16'",
     "model", "recompute_operators", NULL, "[\"shared_experts\"]"},
    {"MaxText without a gate",
     GPT ", 'framework': 'MaxText', 'batch': {'global': 8, 'micro': 1}, " GPUS(
         1) "'measured': {}, 'recompute': 'unknown', 'precision': 'bf16'",
     "model", "recompute_operators", NULL, "[\"attention\",\"c_fc\",\"act\",\"ln_1\",\"ln_2\"]"},
    {"tf32 before Ampere",
     GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, 'measured': {}, 'precision': 'tf32'",
     "model", "precision", NULL, "\"fp32\""},
    {"dropout of transformers",
     GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, 'measured': {}, 'framework': 'PyTorch "
         "eager', " REST,
     "model", "parameters", "dropout", "0.1"},
    {"dropout of Megatron-LM",
     GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, 'measured': {}, 'framework': "
         "'Megatron-LM', " REST,
     "model", "parameters", "dropout", "0.1"},
    {"dropout of Megatron-DeepSpeed",
     GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, 'measured': {}, 'framework': "
         "'Megatron-DeepSpeed', 'options': {'flash_attention': false}, " REST,
     "model", "parameters", "dropout", "0.1"},
    {"with fused attention",
     GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, 'measured': {}, 'framework': "
         "'Megatron-LM', 'options': {'flash_attention': true}, " REST,
     "model", "parameters", "dropout", "0"},
    {"activation of transformers",
     GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, 'measured': {}, 'framework': 'PyTorch "
         "eager', " REST,
     "runtime", "written_out", NULL, "true"},
    {"of llm-foundry",
     GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, 'measured': {}, 'framework': "
         "'Composer', " REST,
     "runtime", "written_out", NULL, "-"},
    {"packed samples", LLAMA("PyTorch FSDP", "'packed_tokens': 51"), "model", "parameters",
     "window", "26"},
    {"in all layers", LLAMA("PyTorch FSDP", "'packed_tokens': 51"), "model", "parameters",
     "pattern", "\"w\""},
    {"samples as long as sequences", LLAMA("NeMo", "'lora': true, 'packed_tokens': 128"), "model",
     "parameters", "window", "-"},
    {"adapters on other data", LLAMA("PyTorch FSDP", "'lora': true"), "model", "parameters",
     "window", "-"},
    {"a window in two of three layers",
     NORMED("'sliding_window': 32, 'sliding_every': 3") GPUS(1) TOLD, "model", "parameters",
     "pattern", "\"wwf\""},
    {"in all", NORMED("'sliding_window': 32") GPUS(1) TOLD, "model", "parameters", "pattern",
     "\"w\""},
    {"packed, in windows",
     NORMED("'sliding_window': 32, 'sliding_every': 3")
         GPUS(1) "'options': {'packed_tokens': 60}, " TOLD,
     "model", "parameters", "window", "30"},
    {"experts' recipes", BRIDGE("qwen3", ""), "parallel", "dispatcher", NULL, "\"once_per_node\""},
    {"tokens are dropped", BRIDGE("qwen3", "'moe_drop_tokens': true"), "parallel", "dispatcher",
     NULL, "-"},
    {"one at a time", BRIDGE("qwen3", "'moe_dispatcher': 'alltoall'"), "parallel", "dispatcher",
     NULL, "-"},
    {"a recipe, overruled", BRIDGE("qwen3-235b", "'moe_dispatcher': 'flex'"), "parallel",
     "dispatcher", NULL, "\"once_per_node\""},
    {"of tokens that are dropped", BRIDGE("qwen3", "'moe_drop_tokens': true"), "model",
     "parameters", "capacity", "1"},
    {"to another capacity",
     BRIDGE("qwen3", "'moe_drop_tokens': true, 'moe_pad_to_capacity': true, "
                     "'moe_capacity_factor': 1.5"),
     "model", "parameters", "capacity", "1.5"},
    {"tokens that are not", BRIDGE("qwen3", ""), "model", "parameters", "capacity", "0"},
    /* 2 micro-batches: half of the forwards and of the backwards overlap another one */
    {"whole iterations in graphs", B200("26.06", "mxfp8"), "collectives", "expert_overlap", NULL,
     "0.42"},
    {"DualPipe, whose schedule says it",
     EXPERTS GPUS(8) "'parallel': {'pp': 4, 'dp': 2, 'ep': 2}, 'schedule': 'dualpipe', " TOLD,
     "collectives", "expert_overlap", NULL, "-"},
    {"another schedule",
     EXPERTS GPUS(8) "'parallel': {'pp': 4, 'dp': 2, 'ep': 2}, 'schedule': '1f1b', " TOLD,
     "collectives", "expert_overlap", NULL, "-"},
    {"with their experts", B200("26.06", "mxfp8"), "runtime", "fused_experts", NULL, "true"},
    {"and attention in fp8", B200("26.06", "mxfp8"), "runtime", "flash", NULL, "\"cudnn_fp8\""},
    {"which others do not have", B200("26.06", "bf16"), "runtime", "flash", NULL, "\"cudnn\""},
    {"modules for each expert", EXPERTS GPUS(1) "'args': {'bf16': true}, " TOLD, "runtime",
     "expert_modules", NULL, "true"},
    {"grouped products", EXPERTS GPUS(1) "'args': {'moe-grouped-gemm': true}, " TOLD, "runtime",
     "expert_modules", NULL, "-"},
    {"where nothing is said", EXPERTS GPUS(1) TOLD, "runtime", "expert_modules", NULL, "-"},
    {"launches that block", MEGATRON GPUS(1) "'env': {'CUDA_LAUNCH_BLOCKING': '1'}, " TOLD,
     "runtime", "launch_blocking", NULL, "true"},
    {"and that do not", MEGATRON GPUS(1) "'env': {'CUDA_LAUNCH_BLOCKING': '0'}, " TOLD, "runtime",
     "launch_blocking", NULL, "-"},
    {"gradients as FSDP reduces them", COMPOSER "'options': {'grad_reduce_dtype': 'fp32'}, " TOLD,
     "model", "gradients", NULL, "\"fp32\""},
    {"in a narrower type", COMPOSER "'options': {'grad_reduce_dtype': 'bf16'}, " TOLD, "model",
     "gradients", NULL, "\"weights\""},
    {"which were summed before",
     COMPOSER "'options': {'grad_dtype': 'fp32', 'grad_reduce_dtype': 'bf16'}, " TOLD, "model",
     "gradients", NULL, "\"fp32\""},
    {"not by others", MEGATRON GPUS(1) "'options': {'grad_reduce_dtype': 'bf16'}, " TOLD, "model",
     "gradients", NULL, "\"fp32\""},
    {"adapters of BERT", ENCODER("encoder", "Megatron-LM (dev)"), "model", "lora", "targets",
     "[\"linear_qkv\",\"attention.dense\"]"},
    {"as in its paper", ENCODER("encoder", "PyTorch FSDP"), "model", "lora", "targets",
     "[\"query\",\"attention.dense\"]"},
    {"adapters of T5", ENCODER("encoder-decoder", "Megatron-LM (dev)"), "model", "lora", "targets",
     "[\"linear_qkv\",\"linear_q\",\"linear_kv\",\"o\"]"},
    {"kernels of torchtitan",
     GPT ", 'framework': 'torchtitan', 'batch': {'global': 8, 'micro': 1}, " GPUS(
         8) "'parallel': {'dp': 8, 'zero': 3}, " TOLD,
     "runtime", "compile", NULL, "-"},
    {"of a compiler",
     GPT ", 'framework': 'torchtitan', 'batch': {'global': 8, 'micro': 1}, " GPUS(
         8) "'parallel': {'dp': 8, 'zero': 3}, 'options': {'compile': true}, " TOLD,
     "runtime", "compile", NULL, "true"},
    {"a checkpoint that stops early", COMPOSER REPEATED, "runtime", "early_stop", NULL, "true"},
    {"before PyTorch 2.1", COMPOSER "'options': {'grad_reduce_dtype': 'bf16'}, " REPEATED,
     "runtime", "early_stop", NULL, "false"},
    {"XLA's", GPT ", 'framework': 'MaxText', 'batch': {'global': 8, 'micro': 1}, " GPUS(1) REPEATED,
     "runtime", "early_stop", NULL, "true"},
    {"Megatron's goes on", MEGATRON GPUS(1) REPEATED, "runtime", "early_stop", NULL, "-"},
    {"zeros in gradients", MEGATRON GPUS(1) "'args': {'log-num-zeros-in-grad': true}, " TOLD,
     "runtime", "counts_zeros", NULL, "true"},
    {"not one by one", B200("26.08", "mxfp8"), "runtime", "expert_loop", NULL, "false"},
    {"in a later release only", B200("26.04.01", "mxfp8"), "runtime", "cuda_graphs", NULL, "-"},
    {"and in mxfp8", B200("26.06", "bf16"), "collectives", "expert_overlap", NULL, "-"},
    {"scales of fp8", B200("26.06", "fp8"), "runtime", "current_scaling", NULL, "true"},
    {"of blocks", B200("26.06", "mxfp8"), "runtime", "current_scaling", NULL, "-"},
    {"an argument, overruled",
     EXPERTS GPUS(4) "'parallel': {'dp': 4, 'ep': 4}, 'options': {'moe_dispatcher': 'flex'}, "
                     "'args': {'moe-token-dispatcher-type': 'alltoall'}, " TOLD,
     "parallel", "dispatcher", NULL, "\"once_per_node\""},
};

static void takes_arguments(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(rules); i++) {
        cs_points points = {0};
        cs_recipe made = {0};
        cs_error error;
        cs_error_init(&error);
        read_point(rules[i].name, rules[i].members, &points);
        assert_int_equal(cs_recipe_make(&points.points[0].run, &made, &error), CS_OK);
        if (!made.document)
            fail_msg("%s: %s", rules[i].name, made.missing[0]);
        assert_int_equal(cs_runtime_apply(made.document, "test", NULL, NULL, &error), CS_OK);
        const cJSON *value =
            cs_json_member(cs_json_member(made.document, rules[i].section), rules[i].key);
        value = rules[i].inner ? cs_json_member(value, rules[i].inner) : value;
        char *got = value ? cJSON_PrintUnformatted(value) : strdup("-");
        assert_non_null(got);
        expect_text(rules[i].name, rules[i].value, got);
        free(got);
        cs_recipe_finish(&made);
        cs_points_finish(&points);
    }
}

/* A scenario follows from the description alone: names of the point, of its file's dataset and of
 * the network, and what was measured, change nothing. Names of networks of convolutions come from
 * `sim list models`, so they stay. */
static void reads_no_names(void **state)
{
    (void)state;
    cs_points points = {0};
    cs_error error;
    cs_error_init(&error);
    cs_arena_init(&points.arena);
    assert_int_equal(cs_points_load_shipped(&points, &error), CS_OK);
    assert_true(points.n > 400);
    for (uint32_t i = 0; i < points.n; i++) {
        const cs_point *point = &points.points[i];
        cs_recipe of_point = {0}, of_description = {0};
        cs_description alone;
        const cs_json_place place = {.file = "alone"};
        cJSON *json = cJSON_CreateObject();
        for (const cs_field *field = cs_description_fields; field->name; field++) {
            const cJSON *member = cs_json_member(point->run.json, field->name);
            if (member)
                cJSON_AddItemToObject(json, field->name, cJSON_Duplicate(member, true));
        }
        if (strcmp(point->run.model->kind, "cnn") != 0)
            cJSON_ReplaceItemInObject(cJSON_GetObjectItem(json, "model"), "name",
                                      cJSON_CreateString("n"));
        assert_int_equal(
            cs_description_read(json, &place, NULL, NULL, &points.arena, &alone, &error), CS_OK);
        alone.name = "x";
        assert_int_equal(cs_recipe_make(&point->run, &of_point, &error), CS_OK);
        assert_int_equal(cs_recipe_make(&alone, &of_description, &error), CS_OK);
        assert_int_equal(of_point.n_missing, of_description.n_missing);
        if (of_point.document) {
            cJSON_ReplaceItemInObject(of_point.document, "name", cJSON_CreateString("x"));
            char *expected = cs_json_line(of_point.document);
            char *got = cs_json_line(of_description.document);
            expect_text(point->id, expected, got);
            free(expected);
            free(got);
        }
        cs_recipe_finish(&of_point);
        cs_recipe_finish(&of_description);
        cJSON_Delete(json);
    }
    cs_points_finish(&points);
}

/* No point says how old its torchtitan is, so what follows from it is noted, unless it is stated
 * that the loss is fused, or nothing is compiled. */
static void notes_how_old_torchtitan_is(void **state)
{
    (void)state;
    static const char as_in_runtime[] = "as in the runtime";
    static const struct {
        const char *name, *members, *loss, *noted;
    } rows[] = {
        {"named", NARROW("torchtitan", "H100-SXM5-80GB", "fp8-rowwise", "'compile': true"),
         as_in_runtime, "the loss is compiled"},
        {"not named", NARROW("torchtitan", "H100-SXM5-80GB", "fp8", "'compile': true"), "eager",
         "the loss is not compiled"},
        {"stated",
         NARROW("torchtitan", "H100-SXM5-80GB", "fp8",
                "'compile': true, 'fused_cross_entropy': true"),
         as_in_runtime, NULL},
        {"nothing compiled", NARROW("torchtitan", "H100-SXM5-80GB", "fp8-rowwise", ""), "eager",
         NULL},
        {"another framework", NARROW("Composer", "H100-SXM5-80GB", "bf16", "'compile': true"),
         as_in_runtime, NULL},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_points points = {0};
        cs_recipe made = {0};
        cs_error error;
        const char *noted = NULL;
        read_point(rows[i].name, rows[i].members, &points);
        assert_int_equal(cs_recipe_make(&points.points[0].run, &made, &error), CS_OK);
        assert_non_null(made.document);
        const cJSON *loss = cs_json_member(cs_json_member(made.document, "memory"), "loss");
        expect_text(rows[i].name, rows[i].loss, loss ? cJSON_GetStringValue(loss) : as_in_runtime);
        for (uint32_t n = 0; n < made.n_assumed; n++)
            if (strncmp(made.assumed[n], "the loss is", strlen("the loss is")) == 0)
                noted = made.assumed[n];
        assert_int_equal(noted != NULL, rows[i].noted != NULL);
        if (rows[i].noted && strncmp(noted, rows[i].noted, strlen(rows[i].noted)) != 0)
            fail_msg("%s: noted is \"%s\"", rows[i].name, noted);
        cs_recipe_finish(&made);
        cs_points_finish(&points);
    }
}

/* Links between nodes, as runs state them or say them in words. A DGX A100 has 8 x HDR, 25 GB/s
 * each; a DGX-1 4 x EDR; an NVL72 a NDR adapter per GPU, and four GPUs in a tray. 100 Gbit/s are
 * 12.5 GB/s. Several adapters of a GPU count as one, and 4 x 100 Gbit/s for 8 GPUs as 50 for each.
 * InfiniBand need not be named. */
static const struct {
    const char *gpu, *stated;
    uint32_t gpus, node;
    const char *topology; /* or what is missing */
    uint32_t gpus_per_node, nics;
    const char *bandwidth;
    const char *fabric; /* NULL: not named */
} links[] = {
    {"A100", "'inter': '8 x HDR 200 Gbit/s per node'", 16, 8, "dgx-a100", 0, 0, NULL},
    {"A100", "'inter': 'HDR InfiniBand'", 16, 8, "dgx-a100", 0, 0, NULL},
    {"A100", "'inter': '1600 Gbit/s RoCE per node'", 16, 8, "cluster", 8, 8, "25 GB/s", "roce"},
    {"H100", "'inter': 'EFA (AWS)'", 16, 8, "cluster", 8, 8, "50 GB/s", "efa"},
    {"H100", "'inter': 'EFA (AWS)'", 8, 8, "dgx-h100", 0, 0, NULL, NULL},
    {"H100", "'inter': 'AWS EFA, 16 x 400 Gbit/s per node'", 16, 8, "cluster", 8, 8, "100 GB/s",
     "efa"},
    {"H100", "'inter': 'the default'", 16, 8, "dgx-h100", 0, 0, NULL, NULL},
    {"H100", "'inter': 'InfiniBand or RoCE'", 16, 8, "dgx-h100", 0, 0, NULL, NULL},
    {"A100", "'inter': '800 Gbit/s per node'", 16, 8, "cluster", 8, 8, "12.5 GB/s"},
    {"A100", "'inter': 'Omni-Path, 4 x 100 Gbit/s per node'", 16, 8, "cluster", 8, 8, "6.25 GB/s",
     "omni-path"},
    {"A100", "'inter': '16 x 400 Gbit/s per node'", 16, 8, "cluster", 8, 8, "100 GB/s"},
    {"A100", "'inter': '100 Gbit/s'", 16, 8, "cluster", 8, 1, "12.5 GB/s"},
    {"A100", "'inter': 'NDR InfiniBand, 400 Gbit/s per GPU'", 16, 8, "cluster", 8, 8, "50 GB/s"},
    {"A100", "'inter': 'Storage: 2x NDR 400Gb/s, Compute: 8x NDR 400Gb/s'", 16, 8, "cluster", 8, 8,
     "50 GB/s"},
    {"A100", "'inter': 'Storage: 2 x 100 Gbit/s, Compute: 8 x ConnectX'", 16, 8, "dgx-a100", 0, 0,
     NULL},
    {"A100", "'inter': 'PCIe-NIC: 500 GB/s'", 16, 8, "dgx-a100", 0, 0, NULL},
    {"A100", "'inter': 'not stated'", 16, 8, "dgx-a100", 0, 0, NULL},
    {"A100", "'inter': '100 Gbit/s'", 8, 8, "dgx-a100", 0, 0, NULL},
    {"A100", "'machine': 'DGX H100'", 16, 8, "dgx-h100", 0, 0, NULL},
    {"A100", "'machine': 'abacus'", 16, 8, "the machine abacus", 0, 0, NULL},
    {"A100", "'adapters': 8, 'adapter_bandwidth': '25 GB/s'", 16, 8, "dgx-a100", 0, 0, NULL},
    {"A100", "'adapters': 2, 'inter': '8 x EDR'", 16, 8, "cluster", 8, 8, "6.25 GB/s"},
    {"H100", "'inter': '4 x NDR'", 8, 4, "cluster", 4, 8, "50 GB/s"},
    {"V100", "'inter': 'ABCI: 2 x EDR InfiniBand per node'", 8, 4, "abci", 0, 0, NULL},
    {"V100", "'inter': 'InfiniBand EDR, 1 x 100 Gbit/s per node'", 16, 8, "cluster", 8, 1,
     "12.5 GB/s"},
    {"GB200", "'inter': '4 x NDR'", 72, 4, "gb200-nvl72", 0, 0, NULL},
    {"GB200", "'inter': '4 x NDR'", 128, 4, "cluster", 64, 72, "50 GB/s"},
    {"GB200", "'inter': '4x ConnectX-8 IB XDR 800 Gb/s'", 128, 4, "cluster", 64, 72, "100 GB/s"},
    {"GH200", "'inter': '4 x 200 Gbit/s'", 8, 4, "gh200-4", 0, 0, NULL},
    {"GH200", "'inter': '4 x 200 Gbit/s'", 16, 8, "the nodes of GH200", 0, 0, NULL},
    {"L40S", "'inter': '100 Gbit/s'", 16, 8, "several nodes of L40S", 0, 0, NULL},
    {"L40S", "'inter': '100 Gbit/s'", 8, 8, "pcie4-8gpu", 0, 0, NULL},
    {"MI300X", "'inter': ''", 8, 8, "mi300x-8", 0, 0, NULL},
    {"P100", "'inter': ''", 8, 8, "dgx1-p100", 0, 0, NULL},
    {"MI250", "'inter': ''", 8, 8, "the nodes of MI250", 0, 0, NULL},
};

static void reads_how_nodes_are_joined(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(links); i++) {
        char members[TEXT_BYTES], row[200];
        cs_points points = {0};
        cs_recipe made = {0};
        cs_error error;
        cs_error_init(&error);
        snprintf(row, sizeof(row), "%s, %s, %u of %u", links[i].gpu, links[i].stated, links[i].node,
                 links[i].gpus);
        snprintf(members, sizeof(members),
                 GPT ", 'hardware': {'gpu': '%s', 'gpus': %u, 'gpus_per_node': %u, %s}, "
                     "'parallel': {'dp': %u}, 'batch': {'global': %u, 'micro': 1}, "
                     "'measured': {}, " REST,
                 links[i].gpu, links[i].gpus, links[i].node, links[i].stated, links[i].gpus,
                 links[i].gpus);
        read_point(row, members, &points);
        assert_int_equal(cs_recipe_make(&points.points[0].run, &made, &error), CS_OK);
        const cJSON *platform = cs_json_member(made.document, "platform");
        const cJSON *topology = cs_json_member(platform, "topology");
        expect_text(row, links[i].topology,
                    made.n_missing > 0 ? made.missing[0] : cJSON_GetStringValue(topology));
        const cJSON *nics = cs_json_at(platform, "/node/pcie/nics");
        const cJSON *size = cs_json_member(platform, "gpus_per_node");
        const char *bandwidth = cJSON_GetStringValue(cs_json_at(platform, "/network/bandwidth"));
        expect_int(row, links[i].nics, nics ? nics->valueint : 0);
        expect_int(row, links[i].gpus_per_node, size ? size->valueint : 0);
        expect_text(row, links[i].bandwidth ? links[i].bandwidth : "", bandwidth ? bandwidth : "");
        const char *fabric = cJSON_GetStringValue(cs_json_member(platform, "fabric"));
        expect_text(row, links[i].fabric ? links[i].fabric : "", fabric ? fabric : "");
        cs_recipe_finish(&made);
        cs_points_finish(&points);
    }
}

/* Names as data sheets, CUDA and sources have them. */
static const struct {
    const char *gpu, *device, *memory; /* "-": not said */
} gpu_names[] = {
    {"NVIDIA H100 80GB HBM3", "h100", "-"},
    {"H100 96GB HBM2e (Grand Teton, 500 W)", "h100-96gb", "-"},
    {"NVIDIA_A100-PCIE-40GB", "a100-40gb-pcie", "-"},
    {"NVIDIA A100-SXM4-40GB", "a100-40gb", "-"},
    {"a100", "a100", "-"},
    {"Tesla_V100-SXM2-32GB", "v100-32gb", "-"},
    {"Tesla V100-PCIE-32GB", "v100-pcie-32gb", "-"},
    {"Tesla_T4", "t4", "-"},
    {"NVIDIA GB200", "gb200", "-"},
    {"NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti", "-"},
    {"NVIDIA L4", "l4", "-"},
    {"AMD Instinct MI300X", "mi300x", "-"},
    {"NVIDIA H100 PCIe", "h100-pcie", "-"},
    {"NVIDIA H100 NVL", "h100-nvl", "-"},
    {"NVIDIA H200 NVL", "h200-nvl", "-"},
    {"NVIDIA H800", "h800", "-"},
    {"H800-SXM5-80GB", "h800", "-"},
    {"NVIDIA A800-SXM4-80GB", "a800", "-"},
    {"NVIDIA H20", "h20", "-"},
    {"NVIDIA A10", "a10", "-"},
    {"NVIDIA A40", "a40", "-"},
    {"NVIDIA RTX A6000", "rtx-a6000", "-"},
    {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada", "-"},
    {"NVIDIA GeForce RTX 3090", "rtx-3090", "-"},
    {"NVIDIA GeForce RTX 5090", "rtx-5090", "-"},
    {"Tesla P100-SXM2-16GB", "p100", "-"},
    {"NVIDIA L40", "l40", "-"},
    {"NVIDIA A30", "a30", "-"},
    {"AMD Instinct MI250X", "mi250x", "-"},
    {"AMD Instinct MI350X", "mi350x", "-"},
    {"NVIDIA GH200 480GB", "gh200", "-"},
    {"GH200 144GB HBM3e", "gh200-144gb", "-"},
    {"NVIDIA H20-3e", NULL, NULL},
    {"NVIDIA A10G", NULL, NULL},
    {"NVIDIA A800 80GB PCIe", NULL, NULL},
    {"Quadro RTX 6000", NULL, NULL},
    {"NVIDIA GeForce RTX 3090 Ti", NULL, NULL},
    {"NVIDIA GeForce RTX 4090 D", NULL, NULL},
    {"NVIDIA GeForce RTX 5090 D v2", NULL, NULL},
    {"NVIDIA GeForce RTX 4090 Laptop GPU", NULL, NULL},
    {"A1000", NULL, NULL},
};

static void knows_gpus_by_their_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(gpu_names); i++) {
        char members[TEXT_BYTES];
        cs_points points = {0};
        cs_recipe made = {0};
        cs_error error;
        cs_error_init(&error);
        snprintf(members, sizeof(members),
                 GPT ", 'hardware': {'gpu': '%s', 'gpus': 1}, 'batch': {'global': 4, 'micro': 1}, "
                     "'measured': {}, " REST,
                 gpu_names[i].gpu);
        read_point(gpu_names[i].gpu, members, &points);
        assert_int_equal(cs_recipe_make(&points.points[0].run, &made, &error), CS_OK);
        expect_int(gpu_names[i].gpu, gpu_names[i].device != NULL, made.document != NULL);
        if (gpu_names[i].device) {
            const char *device = cJSON_GetStringValue(
                cs_json_member(cs_json_member(made.document, "model"), "device"));
            const char *memory = cJSON_GetStringValue(
                cs_json_member(cs_json_member(made.document, "platform"), "memory"));
            expect_text(gpu_names[i].gpu, gpu_names[i].device, device);
            expect_text(gpu_names[i].gpu, gpu_names[i].memory, memory ? memory : "-");
        }
        cs_recipe_finish(&made);
        cs_points_finish(&points);
    }
}

static void names_what_is_missing(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(lacks); i++) {
        cs_points points = {0};
        cs_recipe made = {0};
        cs_error error;
        cs_error_init(&error);
        read_point(lacks[i].missing, lacks[i].members, &points);
        assert_int_equal(cs_recipe_make(&points.points[0].run, &made, &error), CS_OK);
        if (made.document)
            fail_msg("nothing is missing: %s", lacks[i].missing);
        expect_text(lacks[i].missing, lacks[i].missing, made.missing[0]);
        cs_recipe_finish(&made);
        cs_points_finish(&points);
    }
}

/* The one point, predicted. */
static cs_prediction predict(const char *row, const cs_points *points, cs_predictions *predictions)
{
    cs_error error;
    cs_error_init(&error);
    const cs_point *point = &points->points[0];
    assert_int_equal(cs_predictions_make(&point, 1, NULL, predictions, &error), CS_OK);
    assert_int_equal(cs_predict(predictions, 1, NULL, NULL, NULL, &error), CS_OK);
    if (predictions->items[0].state != CS_PREDICTION_MADE)
        fail_msg("%s: %s", row,
                 predictions->items[0].message ? predictions->items[0].message
                                               : predictions->items[0].made.missing[0]);
    return predictions->items[0];
}

static void predicts_the_largest(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(largest); i++) {
        cs_points points = {0};
        cs_predictions predictions = {0};
        read_point(largest[i], largest[i], &points);
        predict(largest[i], &points, &predictions);
        cs_predictions_finish(&predictions);
        cs_points_finish(&points);
    }
}

static void expect_near(const char *row, double expected, double got)
{
    if (!(fabs(got - expected) < 1e-12))
        fail_msg("%s: expected %.15g, got %.15g", row, expected, got);
}

/* The parts of a predicted step add up to it, and each device computes for the given number of
 * seconds. */
static void check_parts(const char *row, const cs_prediction *got, double computing)
{
    double sum = 0;
    for (uint32_t p = 0; p < CS_N_STEP_PARTS; p++) {
        assert_true(got->parts.seconds[p] >= 0);
        sum += got->parts.seconds[p];
    }
    expect_near(row, got->values[CS_MEASURE_TIME], sum);
    expect_near(row, computing, got->parts.seconds[CS_PART_COMPUTING]);
}

/* 1F1B of P equal stages with forward f, backward b and messages of c that block nobody takes
 * (M + P - 1)(f + b) + 2c(P - 1 + floor((M - 1)(P - 1)/P)). With P = 2, M = 3, f = 10 ms, b = 12 +
 * 8 ms:
 * 4 x 30 ms = 120 ms without messages, and 2 x 1 ms x (1 + 1) more with c = 1 ms.
 * Interleaved with v stages each of 1/v the work, free messages and M a multiple of P: the bubble
 * is v times shorter, (M + (P - 1)/v)(f + b); M = 4, v = 2: 4.5 x 30 ms = 135 ms. Replicas change
 * nothing where weights have no size. */
static void takes_measured_passes(void **state)
{
    (void)state;
    static const struct {
        const char *name, *mesh, *schedule;
        unsigned gpus, micro_batches;
        double message, seconds;
    } rows[] = {
        {"1F1B, free messages", "'pp': 2", "1f1b", 2, 3, 0, 0.120},
        {"1F1B", "'pp': 2", "1f1b", 2, 3, 1, 0.124},
        {"GPipe", "'pp': 2", "gpipe", 2, 3, 0, 0.120},
        {"interleaved", "'pp': 2, 'vpp': 2", "interleaved_1f1b", 2, 4, 0, 0.135},
        {"1F1B, replicas", "'pp': 2, 'dp': 2", "1f1b", 4, 3, 0, 0.120},
        {"interleaved, replicas", "'pp': 2, 'vpp': 2, 'dp': 2", "interleaved_1f1b", 4, 4, 0, 0.135},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        char members[TEXT_BYTES];
        cs_points points = {0};
        cs_predictions predictions = {0};
        snprintf(members, sizeof(members),
                 GPT ", 'hardware': {'gpu': 'V100-SXM2-16GB', 'gpus': %u}, 'parallel': {%s}, "
                     "'schedule': '%s', 'batch': {'global': %u, 'micro': 2, 'micro_batches': %u}, "
                     "'options': {'profiled_ms': {'F': 10, 'B': 12, 'W': 8, 'comm': %g}}, "
                     "'framework': 'ideal', 'measured': {'step_time_s': 0.1}, " REST,
                 rows[i].gpus, rows[i].mesh, rows[i].schedule, rows[i].gpus * rows[i].micro_batches,
                 rows[i].micro_batches, rows[i].message);
        read_point(rows[i].name, members, &points);
        const cs_prediction got = predict(rows[i].name, &points, &predictions);
        expect_double(rows[i].name, rows[i].seconds, got.values[CS_MEASURE_TIME]);
        assert_true(isnan(got.values[CS_MEASURE_ALLOCATED])); /* sizes are not known */
        check_parts(rows[i].name, &got, rows[i].micro_batches * 0.030);
        cs_predictions_finish(&predictions);
        cs_points_finish(&points);
    }
}

/* Megatron-LM's 1F1B waits for its messages. With one micro-batch on two stages, nothing is hidden
 * either way: f + c + f + b + c + b. With two, a device that sends computes nothing meanwhile:
 * stage 0 computes F0, sends it (1 ms), F1, sends it, and waits for B0; stage 1 computes F0 from
 * 11 to 21 ms and B0 until 41 ms, sends B0's gradient until 42 ms, takes F1 and B1 until 73 ms,
 * having received F1 for 1 ms before it, and sends until 74 ms; stage 0 ends B1 at 94 ms. */
static void blocks_as_megatron_does(void **state)
{
    (void)state;
    cs_points points = {0};
    cs_predictions predictions = {0};
    read_point("Megatron-LM",
               GPT ", " TWO_GPUS ", 'parallel': {'pp': 2}, 'schedule': '1f1b', "
                   "'framework': 'Megatron-LM', 'batch': {'global': 2, 'micro': 1}, "
                   "'options': {'profiled_ms': {'F': 10, 'B': 12, 'W': 8, 'comm': 1}}, "
                   "'measured': {}, " REST,
               &points);
    const cs_prediction got = predict("Megatron-LM", &points, &predictions);
    expect_double("time", 0.094, got.values[CS_MEASURE_TIME]);
    expect_text(
        "told",
        "messages between stages block computing, as in Megatron-LM without interleaving, and "
        "before 2023 with it",
        got.made.assumed[0]);
    cs_predictions_finish(&predictions);
    cs_points_finish(&points);
}

/* By hand, the scenario that the rules make of a point. */
static const struct by_hand {
    const char *name, *members, *scenario;
} by_hand[] = {
    {"one GPU that accumulates gradients, without an update",
     GPT ", " ONE_GPU ", 'batch': {'global': 6, 'micro': 2}, 'optimizer': 'adam', "
         "'options': {'no_optimizer_step': true, 'flash_attention': false}, 'framework': 'ideal', "
         "'measured': {}, " REST,
     "{'schema_version': 1, 'model': {'name': 'gpt', 'parameters': {'layers': 4, 'hidden': 256, "
     "'heads': 4, 'sequence': 128, 'vocabulary': 1000, 'intermediate': 1024, 'dropout': 0, "
     "'attention': 'math'}, 'device': 'v100', 'batch_size': 6, 'optimizer': 'none', "
     "'granularity': 'block'}, 'platform': {'topology': 'ideal', 'devices': 1}, "
     "'runtime': 'ideal', 'schedule': {'kind': 'sequential', 'micro_batches': 3}}"},
    {"Muon, as the arguments say",
     GPT ", " ONE_GPU ", 'batch': {'global': 4, 'micro': 1}, 'optimizer': 'adam', 'framework': "
         "'Megatron-LM', 'args': {'optimizer': 'muon'}, 'options': {'flash_attention': true}, "
         "'measured': {}, " REST,
     "{'schema_version': 1, 'model': {'name': 'gpt', 'parameters': {'layers': 4, 'hidden': 256, "
     "'heads': 4, 'sequence': 128, 'vocabulary': 1024, 'intermediate': 1024, 'dropout': 0.1}, "
     "'device': 'v100', 'batch_size': 4, 'optimizer': 'muon', 'granularity': 'block'}, "
     "'platform': {'topology': 'ideal', 'devices': 1}, 'runtime': 'megatron-core', "
     "'schedule': {'kind': 'sequential', 'micro_batches': 4}}"},
    {"DDP with buckets",
     GPT ", " TWO_GPUS ", 'parallel': {'dp': 2}, 'batch': {'global': 8, 'micro': 4}, "
         "'framework': 'PyTorch DDP', 'optimizer': 'sgd', 'measured': {}, " REST,
     "{'schema_version': 1, 'model': {'name': 'gpt', 'parameters': {'layers': 4, 'hidden': 256, "
     "'heads': 4, 'sequence': 128, 'vocabulary': 1000, 'intermediate': 1024, 'dropout': 0}, "
     "'device': 'v100', 'batch_size': 8, 'granularity': 'block'}, 'platform': {'topology': "
     "'dgx1-v100', 'devices': 2}, 'runtime': 'pytorch-ddp', 'memory': {'weight_gradients': "
     "'apart', 'libraries': ['cublas']}, 'schedule': {'kind': 'dp', 'bucket': '25 MiB'}}"},
    {"Megatron-LM: each tensor-parallel rank sends its part, gradients of bf16 in fp32",
     GPT ", 'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 4}, 'parallel': {'tp': 2, 'pp': 2}, "
         "'batch': {'global': 4, 'micro': 1}, 'framework': 'Megatron-LM', 'schedule': '1f1b', "
         "'options': {'flash_attention': true}, 'measured': {}, 'precision': 'bf16', "
         "'recompute': 'none'",
     "{'schema_version': 1, 'model': {'name': 'gpt', 'parameters': {'layers': 4, 'hidden': 256, "
     "'heads': 4, 'sequence': 128, 'vocabulary': 1024, 'intermediate': 1024, 'dropout': 0, "
     "'attention': 'flash'}, 'device': 'h100', 'batch_size': 4, 'optimizer': 'adam', "
     "'precision': 'bf16', 'gradients': 'fp32', 'granularity': 'block'}, 'platform': {'topology': "
     "'dgx-h100', 'devices': 4, 'blocking': true}, 'runtime': 'megatron-lm-2021', 'parallel': "
     "{'tensor': 2, 'pipeline': 2, 'data': 1, 'scatter_gather': true}, 'collectives': "
     "{'fidelity': 'analytic'}, 'memory': {'fused': ['norm', 'swiglu'], 'weight_gradients': "
     "'in_place', 'libraries': ['cublas']}, 'schedule': {'kind': '1f1b', 'micro_batches': 4, "
     "'partition': [3]}}"},
    {"PaxML: products are kept, kernels take a fitted factor longer, the host starts a step at "
     "once",
     GPT ", 'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': 1}, 'batch': {'global': 4, 'micro': 4}, "
         "'framework': 'PaxML', 'measured': {}, 'precision': 'bf16', 'recompute': 'unknown'",
     "{'schema_version': 1, 'model': {'name': 'gpt', 'parameters': {'layers': 4, 'hidden': 256, "
     "'heads': 4, 'sequence': 128, 'vocabulary': 1000, 'intermediate': 1024, 'dropout': 0, "
     "'attention': 'flash'}, 'device': 'h100', 'batch_size': 4, 'optimizer': 'adam', "
     "'precision': 'bf16', 'gradients': 'weights', 'granularity': 'block', 'recompute_operators': "
     "['attention', 'ln_1', "
     "'ln_2']}, 'platform': {'topology': 'ideal', 'devices': 1}, 'runtime': {'name': "
     "'paxml', 'host': 0, 'host_kernel': 0, 'host_product_backward': 0, 'step': 0}, 'memory': "
     "{'fused': [], 'weight_gradients': 'in_place', "
     "'libraries': [], 'routed_weights': 'rows', 'allocator': 'none'}, 'schedule': {'kind': "
     "'sequential'}}"},
    {"Megatron-LM: padded vocabulary, gradients of fp16 in fp16, math attention, dropout of its "
     "log",
     GPT ", " TWO_GPUS ", 'parallel': {'pp': 2}, 'batch': {'global': 4, 'micro': 1}, "
         "'framework': 'Megatron-LM', 'schedule': '1f1b', 'args': {'transformer-impl': 'local'}, "
         "'measured': {}, 'precision': 'fp16', 'recompute': 'full'",
     "{'schema_version': 1, 'model': {'name': 'gpt', 'parameters': {'layers': 4, 'hidden': 256, "
     "'heads': 4, 'sequence': 128, 'vocabulary': 1024, 'intermediate': 1024, 'dropout': 0.1, "
     "'attention': 'math'}, 'device': 'v100', 'batch_size': 4, 'optimizer': 'adam', "
     "'precision': 'fp16', 'recompute': true, 'granularity': 'block'}, 'platform': {'topology': "
     "'dgx1-v100', 'devices': 2, 'blocking': true}, 'runtime': 'megatron-lm-2021', 'memory': "
     "{'fused': ['norm', 'swiglu'], "
     "'weight_gradients': 'in_place', 'libraries': ['cublas'], 'attention_buffer': true}, "
     "'schedule': {'kind': '1f1b', 'micro_batches': 4, 'partition': [3]}}"},
};

static void predicts_as_by_hand(void **state)
{
    (void)state;
    const cs_run_figure *time = cs_run_figure_find("iteration_time_s");
    for (size_t i = 0; i < ROWS(by_hand); i++) {
        cs_points points = {0};
        cs_predictions predictions = {0};
        scenario_run run;
        cs_error error;
        cs_error_init(&error);
        read_point(by_hand[i].name, by_hand[i].members, &points);
        const cs_prediction got = predict(by_hand[i].name, &points, &predictions);
        if (scenario_run_init(&run, &error, "%s", by_hand[i].scenario) != CS_OK)
            fail_msg("%s: %s", by_hand[i].name, error.text);
        const uint32_t last = run.scenario.platform.n_devices - 1;
        const cs_outcome outcome = {&run.scenario, &run.simulation, last};
        const cs_run_figure *peak = cs_run_figure_find("peak_memory_bytes");
        const double bytes =
            points.points[0].run.args ? peak->get(&outcome) : cs_run_figure_value(peak, &outcome);
        expect_double(by_hand[i].name, cs_run_figure_value(time, &outcome),
                      got.values[CS_MEASURE_TIME]);
        expect_double(by_hand[i].name, bytes, got.values[CS_MEASURE_ALLOCATED]);
        check_parts(by_hand[i].name, &got, 0);
        assert_true(got.parts.seconds[CS_PART_PRODUCTS] > got.parts.seconds[CS_PART_ATTENTION]);
        scenario_run_finish(&run);
        cs_predictions_finish(&predictions);
        cs_points_finish(&points);
    }
}

/* ---- verdicts ---- */

/* 24 blocks of 256 features, 8 sequences of 1024 tokens, T = 8192 x 256 x 2 bytes = 4 MiB a tensor.
 * Weights: 24 x 12 x 256^2 = 19 million, in bf16 with Adam 16 bytes each: 0.28 GiB, and little more
 * for 1,000 words. A block keeps at least what its products and attention read: norms and products
 * 2 x 2 T, queries, keys, values and result 4 T, an MLP of 4 x 256 features twice, 8 T: 16 T, and
 * all of them 1.5 GiB; at most 40 T (Korthikanti et al.: 34 bytes a feature with masks of dropout),
 * 3.8 GiB. Computed again, the inputs T of 24 blocks, 40 T of one, and logits in four copies of at
 * most 4 bytes: below 0.09 + 0.16 + 0.13 GiB, less than 0.7 GiB with the weights. */
#define DEEP                                                                                       \
    "'model': {'name': 'g', 'kind': 'decoder', 'layers': 24, 'hidden': 256, 'heads': 4, 'ffn': "   \
    "1024, 'vocab': 1000, 'seq': 1024, 'act': 'gelu', 'norm': 'layernorm', 'pos': 'learned', "     \
    "'tied': true, 'bias': true}, 'framework': 'PyTorch DDP', 'options': {'flash_attention': "     \
    "true}, 'batch': {'global': 8, 'micro': 8}, 'measured': {'step_time_s': 1}, 'precision': "     \
    "'bf16', 'hardware': {'gpu': 'A100-SXM4-80GB', 'gpus': 1, 'memory_gb': "

static void decides_what_it_can(void **state)
{
    (void)state;
    static const struct {
        const char *name, *members;
        bool out, depends;
    } rows[] = {
        {"fits", DEEP "8}, 'recompute': 'unknown'", false, false},
        {"depends", DEEP "1}, 'recompute': 'unknown'", true, true},
        {"does not fit", DEEP "0.2}, 'recompute': 'unknown'", true, false},
        {"nothing is recomputed", DEEP "1}, 'recompute': 'none'", true, false},
        {"all is recomputed", DEEP "1}, 'recompute': 'full'", false, false},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        cs_points points = {0};
        cs_predictions predictions = {0};
        read_point(rows[i].name, rows[i].members, &points);
        const cs_prediction got = predict(rows[i].name, &points, &predictions);
        expect_int(rows[i].name, rows[i].out, got.out_of_memory);
        expect_int(rows[i].name, rows[i].depends, got.depends);
        expect_int(rows[i].name, !rows[i].depends, cs_prediction_is_decided(&got));
        expect_int(rows[i].name, !rows[i].out, cs_prediction_is_right(&got));
        cs_predictions_finish(&predictions);
        cs_points_finish(&points);
    }
}

/* ---- errors ---- */

/* Points of two datasets with predicted times of 1.1, 0.8, 1.05 and 1 s, measured 1 s each, the
 * last one not measured: errors of 10, -20 and 5 %. Absolute: mean 35/3, median 10; largest -20;
 * bias -5/3. Dataset d has the first two: mean 15, median 15, bias -5. Feature "x" has the first
 * and the third: mean and median 7.5, largest and bias 10 and 7.5. The second is out of memory and
 * was measured, so it fits: 2 of 3 verdicts of those with a time are right. */
static void sums_errors_up(void **state)
{
    (void)state;
    static const double predicted[] = {1.1, 0.8, 1.05, 1};
    cs_description_hardware hardware = {.gpu = "g", .gpus = 8};
    cs_description_model model = {.kind = "decoder"};
    cs_description_parallel parallel[] = {{.tp = 2, .pp = 1}, {.tp = 1, .pp = 1, .zero = 3}};
    const char *x[] = {"x"};
    cs_point points[4];
    cs_prediction items[4];
    for (int i = 0; i < 4; i++) {
        points[i] = (cs_point){.id = "i", .dataset = i < 2 ? "d" : "e"};
        points[i].run = (cs_description){.hardware = &hardware,
                                         .model = &model,
                                         .parallel = &parallel[i / 2],
                                         .precision = i < 2 ? "bf16" : "fp8"};
        if (i % 2 == 0)
            points[i].features = (cs_list){.n = 1, .items = x};
        items[i] = (cs_prediction){.point = &points[i],
                                   .values = {predicted[i], 1, 1},
                                   .measured = {i < 3 ? 1 : (double)NAN, (double)NAN, (double)NAN},
                                   .out_of_memory = i == 1,
                                   .knows_verdict = i < 3};
    }
    const cs_predictions predictions = {.n = 4, .items = items};
    cs_error_table table = {0};
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(cs_error_table_make(&predictions, &table, &error), CS_OK);
    static const struct {
        cs_grouping grouping;
        const char *name;
        uint32_t n_points, n;
        double mean, median, largest, bias; /* % */
    } rows[] = {
        {CS_GROUPING_ALL, "", 4, 3, 35.0 / 3, 10, -20, -5.0 / 3},
        {CS_GROUPING_KIND, "dense, 16 bits", 2, 2, 15, 15, -20, -5},
        {CS_GROUPING_KIND, "dense, 8 bits or fewer", 2, 1, 5, 5, 5, 5},
        {CS_GROUPING_LAYOUT, "tensor parallel", 2, 2, 15, 15, -20, -5},
        {CS_GROUPING_LAYOUT, "fully sharded", 2, 1, 5, 5, 5, 5},
        {CS_GROUPING_DATASET, "d", 2, 2, 15, 15, -20, -5},
        {CS_GROUPING_DATASET, "e", 2, 1, 5, 5, 5, 5},
        {CS_GROUPING_GPU, "g", 4, 3, 35.0 / 3, 10, -20, -5.0 / 3},
        {CS_GROUPING_FEATURE, "x", 2, 2, 7.5, 7.5, 10, 7.5},
    };
    assert_int_equal(table.n, ROWS(rows));
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_error_row *got = &table.rows[i];
        const cs_error_summary *time = &got->measures[CS_MEASURE_TIME];
        const double digits = 1e-10; /* quotients of doubles, of about 1 */
        expect_int("grouping", rows[i].grouping, got->grouping);
        expect_text("name", rows[i].name, got->name);
        expect_int(rows[i].name, rows[i].n_points, got->n_points);
        expect_int(rows[i].name, rows[i].n, time->n);
        assert_true(fabs(100 * time->mean - rows[i].mean) < digits);
        assert_true(fabs(100 * time->median - rows[i].median) < digits);
        assert_true(fabs(100 * time->largest - rows[i].largest) < digits);
        assert_true(fabs(100 * time->bias - rows[i].bias) < digits);
        expect_int("no memory", 0, got->measures[CS_MEASURE_ALLOCATED].n);
    }
    expect_int("verdicts", 3, table.rows[0].n_verdicts);
    expect_int("right", 2, table.rows[0].n_right);
    cs_error_table_finish(&table);
}

/* Dataset d: two points whose predicted step is all products, 0.8 of the measured one: with w =
 * 0.01 they would have to be longer by b = 2 x 0.8 x 0.2 / (2 x 0.8^2 + 2 w) = 0.32 / 1.3. Dataset
 * e: one of products, half of the measured step, and one of bubbles, 0.8 of it: 0.25 / (0.25 + 2 w)
 * and 0.16 / (0.64 + 2 w). A point without a measured time counts nowhere. */
static void finds_what_parts_lack(void **state)
{
    (void)state;
    static const struct {
        const char *dataset;
        uint32_t part;
        double predicted, measured;
    } made[] = {
        {"d", CS_PART_PRODUCTS, 0.8, 1},       {"d", CS_PART_PRODUCTS, 1.6, 2},
        {"e", CS_PART_PRODUCTS, 0.5, 1},       {"e", CS_PART_BUBBLE, 0.8, 1},
        {"f", CS_PART_BUBBLE, 1, (double)NAN},
    };
    cs_point points[ROWS(made)];
    cs_prediction items[ROWS(made)];
    for (size_t i = 0; i < ROWS(made); i++) {
        points[i] = (cs_point){.id = "i", .dataset = made[i].dataset};
        items[i] = (cs_prediction){.point = &points[i]};
        items[i].values[CS_MEASURE_TIME] = items[i].parts.step = made[i].predicted;
        items[i].parts.seconds[made[i].part] = made[i].predicted;
        items[i].measured[CS_MEASURE_TIME] = made[i].measured;
    }
    const cs_predictions predictions = {.n = ROWS(made), .items = items};
    cs_error_parts_table table = {0};
    cs_error error;
    cs_error_init(&error);
    assert_int_equal(cs_error_parts_make(&predictions, &table, &error), CS_OK);
    expect_int("rows", 3, table.n);
    const cs_error_parts *d = &table.rows[1], *e = &table.rows[2];
    expect_text("first dataset", "d", d->dataset);
    expect_int("points", 2, d->n);
    expect_near("missing", 0.2, d->missing);
    expect_near("predicted", 0.8, d->predicted[CS_PART_PRODUCTS]);
    expect_near("products", 0.8 * 0.32 / 1.3, d->lacking[CS_PART_PRODUCTS]);
    expect_near("rest", 0.2 - 0.8 * 0.32 / 1.3, d->rest);
    const double products = 0.25 * 0.25 / 0.27, bubble = 0.4 * 0.16 / 0.66;
    expect_near("missing", 0.35, e->missing);
    expect_near("products", products, e->lacking[CS_PART_PRODUCTS]);
    expect_near("bubble", bubble, e->lacking[CS_PART_BUBBLE]);
    expect_near("rest", 0.35 - products - bubble, e->rest);
    cs_error_parts_finish(&table);
}

/* ---- selection ---- */

static void selects(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t n; /* 0: an error */
        const char *message;
    } rows[] = {
        {"dataset=d", 3, ""},
        {"id=a", 1, ""},
        {"id=a,id=b", 2, ""},
        {"gpu=V100*,feature=pp", 1, ""},
        {"feature=p?", 1, ""},
        {"gpu=v100*,feature=PP", 1, ""},
        {"gpu=T5", 0,
         "--select: none of 3 points has the gpu \"T5\"; did you mean \"T4\"? known: "
         "V100-SXM2-16GB, T4"},
        {"feature=pp,gpu=T4", 0,
         "--select: each condition holds for some of 3 points, but for none all do"},
        {"dataset", 0, "--select must be KEY=PATTERN, like dataset=zero-bubble (got \"dataset\")"},
        {"gpus=1", 0,
         "--select: unknown key \"gpus\"; did you mean \"gpu\"? known: id, dataset, gpu, model, "
         "kind, schedule, precision, framework, quality, feature"},
    };
    cs_points points = {0};
    cs_error error;
    cs_arena_init(&points.arena);
    const char *file =
        "{'schema': 'truth/1', 'dataset': 'd', 'points': ["
        "{'id': 'a', 'features': ['pp'], " GPT ", " ONE_GPU ", 'batch': {}, 'measured': {}, " REST
        "}, {'id': 'b', " GPT ", " ONE_GPU ", 'batch': {}, 'measured': {}, " REST
        "}, {'id': 'c', " GPT
        ", 'hardware': {'gpu': 'T4', 'gpus': 1}, 'batch': {}, 'measured': {}, " REST "}]}";
    assert_int_equal(read_file(file, &points, &error), CS_OK);
    for (size_t i = 0; i < ROWS(rows); i++) {
        const cs_point **selected = NULL;
        uint32_t n = 0;
        cs_error_init(&error);
        const cs_status status = cs_points_select(&points, &rows[i].text, 1, &selected, &n, &error);
        expect_int(rows[i].text, rows[i].n > 0 ? CS_OK : CS_USAGE, status);
        expect_int(rows[i].text, rows[i].n, n);
        expect_text(rows[i].text, rows[i].message, error.text);
        free(selected);
    }
    cs_points_finish(&points);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_with_a_place),
        cmocka_unit_test(ignores_other_keys),
        cmocka_unit_test(finds_the_time_of_a_step),
        cmocka_unit_test(takes_arguments),
        cmocka_unit_test(reads_no_names),
        cmocka_unit_test(knows_gpus_by_their_words),
        cmocka_unit_test(reads_how_nodes_are_joined),
        cmocka_unit_test(names_what_is_missing),
        cmocka_unit_test(takes_measured_passes),
        cmocka_unit_test(predicts_the_largest),
        cmocka_unit_test(notes_how_old_torchtitan_is),
        cmocka_unit_test(blocks_as_megatron_does),
        cmocka_unit_test(predicts_as_by_hand),
        cmocka_unit_test(decides_what_it_can),
        cmocka_unit_test(sums_errors_up),
        cmocka_unit_test(finds_what_parts_lack),
        cmocka_unit_test(selects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
