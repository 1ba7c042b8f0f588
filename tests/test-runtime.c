/* Runtimes: bundles of defaults, and what their kernels take. */
#include "sim/run/scenario/figure-origins.h"
#include "sim/run/scenario/runtime-section.h"

#include "tests/expect.h"

#include <math.h>
#include <stdlib.h>

/* ---- bundles ---- */

static cJSON *parse(const char *text)
{
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    return root;
}

/* Behind the platform. */
#define MESH(text)    "}, \"parallel\": {" text
#define ON(device)    ", \"name\": \"gpt\", \"device\": \"" device "\""
#define DETERMINISTIC "{\"name\": \"megatron-core\", \"deterministic\": true}"

static const char scenario[] =
    "{\"runtime\": %s, \"model\": {\"precision\": \"%s\"%s}, \"platform\": {%s}, \"schedule\": "
    "{\"kind\": \"%s\"}}";

/* NVLinks of the fifth generation between nodes as in a DGX H100. */
#define FIFTH_NVLINKS "{\"gpu_pair\":0.7,\"node\":0.8}"

/* Value of a section's key after the conventions have been applied, as JSON; "-": missing. The rows
 * follow the runtimes' own sources (runtime-section.c). */
static const struct {
    const char *row, *runtime, *precision, *model, *platform, *schedule, *section, *key, *value;
} bundles[] = {
    {"a name alone", "\"megatron-core\"", "bf16", "", "", "1f1b", "runtime", "name",
     "\"megatron-core\""},
    {"gradients of bf16", "\"megatron-core\"", "bf16", "", "", "1f1b", "model", "gradients",
     "\"fp32\""},
    {"of fp16", "\"megatron-core\"", "fp16", "", "", "1f1b", "model", "gradients", "-"},
    {"given", "\"megatron-core\"", "bf16", ", \"gradients\": \"weights\"", "", "1f1b", "model",
     "gradients", "\"weights\""},
    {"1F1B blocks", "\"megatron-core\"", "bf16", "", "", "1f1b", "platform", "blocking", "true"},
    {"interleaved does not", "\"megatron-core\"", "bf16", "", "", "interleaved_1f1b", "platform",
     "blocking", "-"},
    {"unless it is told to", "\"megatron-core\"", "bf16", "", "\"blocking\": false", "1f1b",
     "platform", "blocking", "false"},
    {"a single member", "{\"name\": \"megatron-core\", \"fused\": false}", "bf16", "", "", "1f1b",
     "runtime", "fused", "false"},
    {"and the others", "{\"name\": \"megatron-core\", \"fused\": false}", "bf16", "", "", "1f1b",
     "runtime", "flash", "\"cudnn\""},
    /* sdp_utils.cpp by release, as facts/runtimes/pytorch-eager.json cites it */
    {"attention: newest on Hopper", "{\"name\": \"pytorch-fsdp\"}", "bf16", ON("h100"), "", "1f1b",
     "runtime", "flash", "\"cudnn\""},
    {"attention: newest before it", "{\"name\": \"pytorch-fsdp\"}", "bf16", ON("a100"), "", "1f1b",
     "runtime", "flash", "\"flash2\""},
    {"attention: newest on RTX 5090", "{\"name\": \"pytorch-ddp\"}", "bf16", ON("rtx-5090"), "",
     "1f1b", "runtime", "flash", "\"flash2\""},
    {"attention: newest on B200", "{\"name\": \"pytorch-ddp\"}", "bf16", ON("b200"), "", "1f1b",
     "runtime", "flash", "\"cudnn\""},
    {"attention: 2.4", "{\"name\": \"pytorch-fsdp\", \"release\": \"2.4\"}", "bf16", ON("h100"), "",
     "1f1b", "runtime", "flash", "\"flash2\""},
    {"attention: 2.5", "{\"name\": \"pytorch-fsdp\", \"release\": \"2.5\"}", "bf16", ON("h100"), "",
     "1f1b", "runtime", "flash", "\"cudnn\""},
    {"attention: 2.5.0", "{\"name\": \"pytorch-fsdp\", \"release\": \"2.5.0\"}", "bf16", ON("h100"),
     "", "1f1b", "runtime", "flash", "\"cudnn\""},
    {"attention: 2.5 on B200", "{\"name\": \"pytorch-fsdp\", \"release\": \"2.5\"}", "bf16",
     ON("b200"), "", "1f1b", "runtime", "flash", "\"flash2\""},
    {"attention: 2.5.1", "{\"name\": \"pytorch-fsdp\", \"release\": \"2.5.1\"}", "bf16", ON("h100"),
     "", "1f1b", "runtime", "flash", "\"flash2\""},
    {"attention: 2.8", "{\"name\": \"pytorch-ddp\", \"release\": \"2.8\"}", "bf16", ON("h200"), "",
     "1f1b", "runtime", "flash", "\"flash2\""},
    {"attention: 2.9", "{\"name\": \"pytorch-ddp\", \"release\": \"2.9\"}", "bf16", ON("h200"), "",
     "1f1b", "runtime", "flash", "\"cudnn\""},
    {"attention: 2.9.1", "{\"name\": \"pytorch-ddp\", \"release\": \"2.9.1\"}", "bf16", ON("b200"),
     "", "1f1b", "runtime", "flash", "\"cudnn\""},
    {"attention: 2.10", "{\"name\": \"pytorch-fsdp\", \"release\": \"2.10\"}", "bf16", ON("h100"),
     "", "1f1b", "runtime", "flash", "\"flash2\""},
    {"attention: 2.11", "{\"name\": \"pytorch-fsdp\", \"release\": \"2.11\"}", "bf16", ON("h800"),
     "", "1f1b", "runtime", "flash", "\"cudnn\""},
    {"attention: torchtitan 2.7", "{\"name\": \"torchtitan\", \"release\": \"2.7\"}", "bf16",
     ON("h100"), "", "1f1b", "runtime", "flash", "\"flash2\""},
    {"attention: torchtitan 2.7 on B200", "{\"name\": \"torchtitan\", \"release\": \"2.7\"}",
     "bf16", ON("b200"), "", "1f1b", "runtime", "flash", "\"cudnn\""},
    {"attention: torchtitan 2.10", "{\"name\": \"torchtitan\", \"release\": \"2.10\"}", "bf16",
     ON("h100"), "", "1f1b", "runtime", "flash", "\"cudnn\""},
    {"attention: fp32", "\"pytorch-ddp\"", "fp32", ON("h100"), "", "1f1b", "runtime", "flash",
     "\"flash2\""},
    {"experts one by one", "\"megatron-core\"", "bf16", "", "", "1f1b", "runtime", "expert_loop",
     "true"},
    {"links of a DGX H100", "\"megatron-core\"", "bf16", "", "\"topology\": \"dgx-h100\"", "1f1b",
     "collectives", "reached", "0.8"},
    {"of a DGX B200", "\"megatron-core\"", "bf16", "", "\"topology\": \"dgx-b200\"", "1f1b",
     "collectives", "reached", FIFTH_NVLINKS},
    {"of several", "\"megatron-core\"", "bf16", "",
     "\"topology\": \"cluster\", \"node\": {\"model\": \"dgx-b200\"}", "1f1b", "collectives",
     "reached", FIFTH_NVLINKS},
    {"of a rack", "\"megatron-core\"", "bf16", "", "\"topology\": \"gb200-nvl72\"", "1f1b",
     "collectives", "reached", FIFTH_NVLINKS},
    {"of several racks", "\"megatron-core\"", "bf16", "",
     "\"topology\": \"cluster\", \"node\": {\"model\": \"nvl72\"}", "1f1b", "collectives",
     "reached", FIFTH_NVLINKS},
    {"NVLinks from GPU to GPU", "\"megatron-core\"", "bf16", ON("h100"),
     "\"topology\": \"nvlink_mesh\"", "1f1b", "collectives", "reached", "0.8"},
    {"xGMI", "\"megatron-core\"", "bf16", ON("mi300x"), "\"topology\": \"nvlink_mesh\"", "1f1b",
     "collectives", "reached", "{\"gpu_pair\":0.75,\"node\":0.8}"},
    {"xGMI of several nodes", "\"megatron-core\"", "bf16", ON("mi300x"),
     "\"topology\": \"cluster\", \"node\": {\"topology\": \"nvlink_mesh\"}", "1f1b", "collectives",
     "reached", "{\"gpu_pair\":0.75,\"node\":0.8}"},
    {"gathered tokens of a network", "\"megatron-core\"", "bf16", ON("h100"), "", "1f1b", "memory",
     "gather_buffer", "\"last_matrix\""},
    {"of times nothing", "\"megatron-core\"", "bf16", "", "", "1f1b", "memory", "gather_buffer",
     "-"},
    {"FlashAttention on sm80", "\"megatron-core\"", "bf16", ON("a100-80gb-pcie"), "", "1f1b",
     "memory", "attention_copy", "true"},
    {"cuDNN's attention on sm90", "\"megatron-core\"", "bf16", ON("h100"), "", "1f1b", "memory",
     "attention_copy", "-"},
    {"and on sm100", "\"megatron-core\"", "bf16", ON("b200"), "", "1f1b", "memory",
     "attention_copy", "-"},
    {"unless it is deterministic", DETERMINISTIC, "bf16", ON("b200"), "", "1f1b", "memory",
     "attention_copy", "true"},
    {"masks of padding", "\"megatron-core\"", "bf16", ON("h100"), "", "1f1b", "memory",
     "padding_masks", "true"},
    {"with its sums", DETERMINISTIC, "bf16", ON("b200"), "", "1f1b", "memory",
     "deterministic_multiprocessors", "148"},
    {"which cuDNN has not", DETERMINISTIC, "bf16", ON("h100"), "", "1f1b", "memory",
     "deterministic_multiprocessors", "-"},
    {"cuBLAS's workspace", DETERMINISTIC, "bf16", ON("h100"), "", "1f1b", "memory",
     "cublas_workspace", "\"32 MiB\""},
    {"or PyTorch's default", "\"megatron-core\"", "bf16", ON("h100"), "", "1f1b", "memory",
     "cublas_workspace", "-"},
    {"fp8 either way round", "\"megatron-core\"", "fp8", ON("gb200"), "", "1f1b", "memory",
     "narrow_copies", "1"},
    {"mxfp8 is not", "\"megatron-core\"", "mxfp8", ON("gb200"), "", "1f1b", "memory",
     "narrow_copies", "-"},
    {"nor fp8 on Hopper", "\"megatron-core\"", "fp8", ON("h100"), "", "1f1b", "memory",
     "narrow_copies", "-"},
    {"user buffers", "\"megatron-core\"", "bf16", ON("h100"),
     MESH("\"tensor\": 2}, \"collectives\": {\"tensor_overlap\": 0.5"), "1f1b", "memory",
     "libraries", "[\"cublas\",\"transformer_engine\",\"grouped_products\",\"user_buffers\"]"},
    {"of tensor parallelism", "\"megatron-core\"", "bf16", ON("h100"),
     MESH("\"tensor\": 1}, \"collectives\": {\"tensor_overlap\": 0.5"), "1f1b", "memory",
     "libraries", "[\"cublas\",\"transformer_engine\",\"grouped_products\"]"},
    {"that overlaps", "\"megatron-core\"", "bf16", ON("h100"), MESH("\"tensor\": 2"), "1f1b",
     "memory", "libraries", "[\"cublas\",\"transformer_engine\",\"grouped_products\"]"},
    {"parts of messages", "\"megatron-lm-2021\"", "bf16", "",
     MESH("\"tensor\": 2, \"pipeline\": 2"), "1f1b", "parallel", "scatter_gather", "true"},
    {"not of sequences", "\"megatron-lm-2021\"", "bf16", "",
     MESH("\"tensor\": 2, \"pipeline\": 2, \"sequence_parallel\": true"), "1f1b", "parallel",
     "scatter_gather", "-"},
    {"of several stages", "\"megatron-lm-2021\"", "bf16", "",
     MESH("\"tensor\": 2, \"pipeline\": 1"), "1f1b", "parallel", "scatter_gather", "-"},
    {"not by Megatron Core", "\"megatron-core\"", "bf16", "",
     MESH("\"tensor\": 2, \"pipeline\": 2"), "1f1b", "parallel", "scatter_gather", "-"},
    {"gradients of a pipeline", "\"torchtitan\"", "bf16", "", MESH("\"pipeline\": 2, \"zero\": 2"),
     "1f1b", "parallel", "accumulate", "true"},
    {"of one stage", "\"torchtitan\"", "bf16", "", MESH("\"pipeline\": 1, \"zero\": 2"), "1f1b",
     "parallel", "accumulate", "false"},
    {"weights of a pipeline", "\"torchtitan\"", "bf16", "", MESH("\"pipeline\": 2, \"zero\": 3"),
     "1f1b", "parallel", "gather_once", "true"},
    {"with zero 2", "\"torchtitan\"", "bf16", "", MESH("\"pipeline\": 2, \"zero\": 2"), "1f1b",
     "parallel", "gather_once", "-"},
    {"and without a pipeline", "\"torchtitan\"", "bf16", "", MESH("\"pipeline\": 1, \"zero\": 3"),
     "1f1b", "parallel", "gather_once", "-"},
    {"rings of torchtitan", "\"torchtitan\"", "bf16", "", MESH("\"context\": 2"), "1f1b", "runtime",
     "eager_ring", "true"},
    {"not where heads are divided", "\"torchtitan\"", "bf16", "",
     MESH("\"context\": 2, \"context_method\": \"all_to_all\""), "1f1b", "runtime", "eager_ring",
     "-"},
    {"rings of Megatron Core", "\"megatron-core\"", "bf16", "", MESH("\"context\": 2"), "1f1b",
     "runtime", "summed_ring", "true"},
    {"not where keys are gathered", "\"megatron-core\"", "bf16", "",
     MESH("\"context\": 2, \"context_method\": \"all_gather\""), "1f1b", "runtime", "summed_ring",
     "-"},
    {"tokens of torchtitan", "\"torchtitan\"", "bf16", "",
     MESH("\"tensor\": 2, \"sequence_parallel\": true"), "1f1b", "parallel", "regather", "false"},
    {"with operators computed again", "\"torchtitan\"", "bf16",
     ", \"recompute_operators\": [\"act\"]", MESH("\"tensor\": 2, \"sequence_parallel\": true"),
     "1f1b", "parallel", "regather", "true"},
    {"products of a compiler", "{\"name\": \"torchtitan\", \"compile\": true}", "bf16", "", "",
     "1f1b", "runtime", "separate_products", "true"},
    {"its kernels", "{\"name\": \"torchtitan\", \"compile\": true}", "bf16", "", "", "1f1b",
     "runtime", "fused", "true"},
    {"of any program in PyTorch", "{\"name\": \"pytorch-fsdp\", \"compile\": true}", "bf16", "", "",
     "1f1b", "runtime", "fused", "true"},
    {"torchtitan does not compile by default", "\"torchtitan\"", "bf16", "", "", "1f1b", "runtime",
     "fused", "-"},
    {"nor has it a compiler's products then", "\"torchtitan\"", "bf16", "", "", "1f1b", "runtime",
     "separate_products", "-"},
    {"a given key stays", "{\"name\": \"torchtitan\", \"compile\": true, \"fused\": false}", "bf16",
     "", "", "1f1b", "runtime", "fused", "false"},
    {"Megatron Core fuses by default", "{\"name\": \"megatron-core\", \"compile\": true}", "bf16",
     "", "", "1f1b", "runtime", "separate_products", "-"},
    {"of Megatron Core", "\"megatron-core\"", "bf16", "", "", "1f1b", "runtime",
     "separate_products", "-"},
    {"buffers of a pipeline", "\"torchtitan\"", "bf16", "", MESH("\"pipeline\": 2"), "1f1b",
     "memory", "receive_buffers", "true"},
    {"its results", "\"torchtitan\"", "bf16", "", MESH("\"pipeline\": 2"), "1f1b", "memory",
     "stage_results", "\"backward\""},
    {"none without", "\"torchtitan\"", "bf16", "", MESH("\"data\": 2"), "1f1b", "memory",
     "stage_results", "-"},
    {"the gradient handed back last", "\"megatron-core\"", "bf16", "", MESH("\"pipeline\": 2"),
     "1f1b", "memory", "stage_results", "\"returned\""},
    {"tokens sent once", "\"megatron-core\"", "bf16", "", MESH("\"dispatcher\": \"once_per_node\""),
     "1f1b", "collectives", "dispatch", "{\"reached\":0.95,\"start\":\"0.45 ms\"}"},
    {"each copy", "\"megatron-core\"", "bf16", "", MESH("\"expert\": 2"), "1f1b", "collectives",
     "dispatch", "-"},
    {"kernels of PyTorch on Hopper", "\"pytorch-fsdp\"", "bf16", ", \"device\": \"h100\"", "",
     "1f1b", "runtime", "kernels", "1.1"},
    {"not on A100", "\"pytorch-fsdp\"", "bf16", ", \"device\": \"a100\"", "", "1f1b", "runtime",
     "kernels", "-"},
    {"nor in fp32", "\"pytorch-fsdp\"", "fp32", ", \"device\": \"h100\"", "", "1f1b", "runtime",
     "kernels", "-"},
    {"nor with TransformerEngine", "\"megatron-core\"", "bf16", ", \"device\": \"h100\"", "",
     "1f1b", "runtime", "kernels", "-"},
    {"PyTorch's checkpoint", "\"pytorch-fsdp\"", "bf16", ", \"recompute\": true", "", "1f1b",
     "runtime", "early_stop", "true"},
    {"without one", "\"pytorch-fsdp\"", "bf16", "", "", "1f1b", "runtime", "early_stop", "-"},
    {"Megatron Core's", "\"megatron-core\"", "bf16", ", \"recompute\": true", "", "1f1b", "runtime",
     "early_stop", "-"},
    {"ideal has none", "\"ideal\"", "bf16", "", "", "1f1b", "platform", "blocking", "-"},
    {"FSDP neither", "\"pytorch-fsdp\"", "bf16", "", "", "1f1b", "platform", "blocking", "-"},
};

static void test_bundles(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(bundles); i++) {
        char text[512];
        cs_error error;
        cs_error_init(&error);
        snprintf(text, sizeof(text), scenario, bundles[i].runtime, bundles[i].precision,
                 bundles[i].model, bundles[i].platform, bundles[i].schedule);
        cJSON *root = parse(text);
        if (cs_runtime_apply(root, "test", NULL, NULL, &error) != CS_OK)
            fail_msg("%s: %s", bundles[i].row, error.text);
        const cJSON *value =
            cs_json_member(cs_json_member(root, bundles[i].section), bundles[i].key);
        char *got = value ? cJSON_PrintUnformatted(value) : strdup("-");
        if (!got || strcmp(got, bundles[i].value) != 0)
            fail_msg("%s: expected %s, got %s", bundles[i].row, bundles[i].value, got);
        free(got);
        cJSON_Delete(root);
    }
}

/* Each description that is compiled in, written as a user's file, is accepted; each convention and
 * each rule has a source. */
static void test_descriptions(void **state)
{
    (void)state;
    const char *name;
    for (size_t i = 0; (name = cs_facts_name("runtimes", i)); i++) {
        const char *text = cs_facts_text("runtimes", name);
        cJSON *root = parse(text);
        cs_error error;
        cs_error_init(&error);
        if (cs_runtime_kind.check(root, name, &error) != CS_OK)
            fail_msg("%s", error.text);
        expect_text("its file's name", name, cJSON_GetStringValue(cs_json_at(root, "/name")));
        for (size_t k = 0; k < 2; k++) {
            const cJSON *each;
            cJSON_ArrayForEach(each, cs_json_member(root, cs_runtime_kind.joined[k]))
                assert_true(strlen(cJSON_GetStringValue(cs_json_member(each, "source"))) > 10);
        }
        cJSON_Delete(root);
    }
}

/* How measured points and people write frameworks, and what each is; NULL: not known. */
static void test_names(void **state)
{
    static const struct {
        const char *written, *name;
    } rows[] = {
        {"Composer/PyTorch FSDP", "llm-foundry"},
        {"Megatron-Bridge 0.4.2 (nemo 26.04.01)", "megatron-bridge"},
        {"Megatron-Bridge 26.06", "megatron-bridge"},
        {"Megatron-DeepSpeed", "deepspeed"},
        {"Megatron-DeepSpeed 2024", "deepspeed"},
        {"DeepSpeed", "deepspeed"},
        {"DeepSpeed (LLaMA-Factory)", "llama-factory"},
        {"LLaMA-Factory", "llama-factory"},
        {"DeepSpeed-Chat step 1", "deepspeed-zero"},
        {"DeepSpeed ZeRO-2", "deepspeed-zero"},
        {"transformers 4.45 (DeepSpeed ZeRO-3)", "deepspeed-zero"},
        {"ms-swift 3.2", "ms-swift"},
        {"transformers Trainer (ms-swift)", "ms-swift"},
        {"axolotl", "axolotl"},
        {"axolotl (FSDP)", "transformers-fsdp"},
        {"xtuner v1", "xtuner"},
        {"xtuner (DeepSpeed)", "xtuner-legacy"},
        {"gpt-neox", "deepspeed"},
        {"Megatron-LM", "megatron-lm-2021"},
        {"Megatron-LM (zero-bubble fork)", "megatron-zero-bubble"},
        {"Megatron-LM (dev)", "megatron-core"},
        {"Megatron-LM (lts container)", "megatron-core"},
        {"Megatron-LM (Megatron Core 0.7)", "megatron-core"},
        {"Megatron-LM 23e00ed0 + TransformerEngine 2.11", "megatron-core"},
        {"Megatron-LM 2025 (Pai-Megatron-Patch 2b201af, TransformerEngine)", "megatron-core"},
        {"Megatron-LM 2026 (core_v0.16.1, TransformerEngine)", "megatron-core"},
        {"Primus (Megatron-LM)", "megatron-core"},
        {"NeMo", "nemo"},
        {"NeMo 24.07", "nemo"},
        {"NeMo (Megatron Core)", "nemo"},
        {"NeMo/Megatron", "nemo-mlperf"}, /* only MLPerf's submissions are called so */
        {"Red_Hat", "nemo-mlperf"},
        {"Quanta_Cloud_Technology", "nemo-mlperf"},
        {"University-of-Florida", "nemo-mlperf"},
        {"PyTorch FSDP2 (NeMo AutoModel)", "nemo-automodel"},
        {"PyTorch FSDP", "pytorch-fsdp"},
        {"PyTorch (FSDP2)", "pytorch-fsdp"},
        {"PyTorch FSDP (transformers Trainer)", "transformers-fsdp"},
        {"PyTorch FSDP (s1, trl)", "transformers-fsdp"},
        {"HuggingFace Trainer (FSDP)", "transformers-fsdp"},
        {"PyTorch (accelerate)", "transformers"},
        {"lit-gpt (Lightning Fabric, FSDP)", "lit-gpt"},
        {"lit-gpt (Lightning Fabric)", "lit-gpt"},
        {"LitGPT pretrain", "litgpt-pretrain"},
        {"lightning-thunder benchmark_litgpt", "thunder"},
        {"PyTorch FSDP (AnswerDotAI fsdp_qlora)", "fsdp-qlora"},
        {"PyTorch (nanotron 2025-01)", "nanotron"},
        {"torchtune", "torchtune"},
        {"Colossal-AI 0.4", "colossalai"},
        {"PyTorch (DTensor)", "pytorch-fsdp"},
        {"PyTorch DDP", "pytorch-ddp"},
        {"PyTorch (nanoGPT, autocast)", "nanogpt"},
        {"PyTorch eager", "transformers"},
        {"PyTorch eager (transformers)", "transformers"},
        {"transformers Trainer", "transformers"},
        {"torchtitan", "torchtitan"},
        {"torchtitan 0.0.2, PyTorch 2.7.0a0+gitb98af95, torchao 0.10.0+git890e0ac8", "torchtitan"},
        {"torchgpipe", "torchgpipe"},
        {"LiBai", "libai"},
        {"MaxText (JAX/XLA)", "maxtext"},
        {"PaxML (JAX/XLA)", "paxml"},
        {"InternEvo 0.2.1", "internevo"},
        {"Chainer + ChainerMN", "ideal"},
        {"", NULL},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        const char *found = cs_facts_find(&cs_runtime_kind, rows[i].written);
        if (!found != !rows[i].name || (found && strcmp(found, rows[i].name) != 0))
            fail_msg("%s: expected %s, got %s", rows[i].written, rows[i].name, found);
    }
}

/* ---- kernels ---- */

static const cs_time MICROSECOND = 1000 * 1000;

static cs_efficiency matrix = {0.5, 0.25, "test"};
static cs_flash_rate flash3 = {0.4, 0.2, "test"};
static cs_factor twice = {2, "test"};

/* 1 Tflop/s of bf16, 1 GB/s, a microsecond per kernel. */
static cs_accelerator small_device(void)
{
    cs_accelerator device = {0};
    device.bandwidth = 1e9;
    device.launch = 1000 * 1000;
    device.peaks[CS_PRECISION_BF16] = device.peaks[CS_PRECISION_FP32] = 1e12;
    for (int g = 0; g < CS_N_ACCELERATOR_GROUPS; g++)
        device.groups[g] = (cs_efficiency){1, 1, "test"};
    device.training.matrix = &matrix;
    device.training.flash[CS_FLASH_3] = &flash3;
    return device;
}

static void expect_seconds(const char *row, double expected, double got)
{
    if (fabs(got - expected) > 1e-12 * expected)
        fail_msg("%s: expected %.17g s, got %.17g s", row, expected, got);
}

/* Products: 2 launches, 1e9 flop at half of 1e12, 1e6 bytes at a quarter of 1e9: 2e-6 + 2e-3 +
 * 4e-3 s, where a roofline would have taken the larger one. Attention by FlashAttention-3: 1e9 flop
 * at 0.4 and at 0.2, by a version that the device does not state at 1, or as in bf16 where it has
 * that. In a step all takes twice the time. */
static void test_seconds(void **state)
{
    (void)state;
    cs_accelerator device = small_device();
    const cs_op linear = {.kind = CS_OP_LINEAR};
    const cs_op attention = {.kind = CS_OP_ATTENTION, .attention = {.kernel = CS_ATTENTION_FLASH}};
    const cs_pass_cost product = {1e9, 1e6, 2, 0}, computing = {1e9, 0, 0, 0};
    const cs_runtime_kernels new = {.given = true, .flash = CS_FLASH_3}, old = {.given = true};
    const cs_precision bf16 = CS_PRECISION_BF16;
    expect_seconds(
        "product", 6.002e-3,
        cs_runtime_kernels_seconds(&new, &device, &linear, &product, CS_PASS_FORWARD, bf16));
    expect_seconds(
        "forward", 2.5e-3,
        cs_runtime_kernels_seconds(&new, &device, &attention, &computing, CS_PASS_FORWARD, bf16));
    expect_seconds("backward", 5e-3,
                   cs_runtime_kernels_seconds(&new, &device, &attention, &computing,
                                              CS_PASS_BACKWARD_INPUT, bf16));
    expect_seconds(
        "not stated", 1e-3,
        cs_runtime_kernels_seconds(&old, &device, &attention, &computing, CS_PASS_FORWARD, bf16));
    const cs_runtime_kernels fp8 = {.given = true, .flash = CS_FLASH_CUDNN_FP8};
    device.training.flash[CS_FLASH_CUDNN] = &flash3;
    expect_seconds(
        "in fp8 as in bf16", 2.5e-3,
        cs_runtime_kernels_seconds(&fp8, &device, &attention, &computing, CS_PASS_FORWARD, bf16));
    const cs_pass_cost unaligned = {.flop = 1e9, .unaligned = true};
    const cs_op math = {.kind = CS_OP_ATTENTION, .attention = {.kernel = CS_ATTENTION_MATH}};
    device.peaks[CS_PRECISION_FP32] = 1e11; /* 1e9 flop at half of it */
    expect_seconds(
        "unaligned", 0.02,
        cs_runtime_kernels_seconds(&new, &device, &math, &unaligned, CS_PASS_FORWARD, bf16));
    const cs_runtime_kernels slow = {.given = true, .flash = CS_FLASH_3, .factor = 1.5};
    expect_seconds(
        "older libraries", 9.003e-3,
        cs_runtime_kernels_seconds(&slow, &device, &linear, &product, CS_PASS_FORWARD, bf16));
    static cs_efficiency single = {0.8, 0.5, "test"};
    const cs_op pixel = {.kind = CS_OP_CONV, .groups = 1, .kernel = {1, {1}}, .stride = {1, {1}}};
    device.training.single = &single;
    expect_seconds("a convolution of a pixel", 1e9 / 0.8e11,
                   cs_runtime_kernels_seconds(&new, &device, &pixel, &computing, CS_PASS_FORWARD,
                                              CS_PRECISION_FP32));
    device.training.in_step = &twice;
    expect_seconds(
        "in a step", 12.004e-3,
        cs_runtime_kernels_seconds(&new, &device, &linear, &product, CS_PASS_FORWARD, bf16));
}

/* A host of 10 us for a pass over an operator and 1 us for a kernel, of 3 kernels forward, 3 for
 * the gradient of the input and 3 for those of weights: 13 us, and backward 16. In a graph none;
 * with scales of blocks 5 kernels in place of each 3; of 4 experts four times the kernels, in a
 * graph or not. With a host that takes 2.5 times as long, all of it. Gradients of weights and
 * biases that are separate tensors are added by 2 more kernels. Attention without a fused kernel is
 * 3 operators forward and 6 backward. Four experts that are separate modules are four operators;
 * the backward of a linear layer may take 25 us instead of 10, other operators do not. All of
 * them may take 4 us backward, and so may a message, which has one kernel. */
static const struct {
    const char *row;
    cs_op_kind kind;
    bool graphs, loop;
    cs_precision precision;
    double factor, forward, backward; /* us */
    bool apart;
    uint32_t modules;
    bool longer;
    double call; /* us */
} host_rows[] = {
    {"linear", CS_OP_LINEAR, false, true, CS_PRECISION_BF16, 1, 13, 16},
    {"in a graph", CS_OP_LINEAR, true, true, CS_PRECISION_BF16, 1, 0, 0},
    {"with scales", CS_OP_LINEAR, false, true, CS_PRECISION_MXFP8, 1, 15, 20},
    {"a norm has none", CS_OP_RMS_NORM, false, true, CS_PRECISION_MXFP8, 1, 13, 16},
    {"experts at once", CS_OP_GROUPED_LINEAR, false, false, CS_PRECISION_BF16, 1, 13, 16},
    {"one by one", CS_OP_GROUPED_LINEAR, false, true, CS_PRECISION_BF16, 1, 22, 34},
    {"also with graphs", CS_OP_GROUPED_LINEAR, true, true, CS_PRECISION_FP8, 1, 22, 34},
    {"with scales each", CS_OP_GROUPED_LINEAR, true, true, CS_PRECISION_NVFP4, 1, 30, 50},
    {"their rows", CS_OP_DISPATCH, true, true, CS_PRECISION_FP8, 1, 13, 16},
    {"a slow host", CS_OP_LINEAR, false, true, CS_PRECISION_BF16, 2.5, 32.5, 40},
    {"sums", CS_OP_LINEAR, false, true, CS_PRECISION_BF16, 1, 13, 18, .apart = true},
    {"attention", CS_OP_ATTENTION, false, true, CS_PRECISION_BF16, 1, 33, 66},
    {"modules", CS_OP_GROUPED_LINEAR, false, true, CS_PRECISION_BF16, 1, 52, 64, .modules = 4},
    {"a product backward", CS_OP_LINEAR, false, true, CS_PRECISION_BF16, 1, 13, 31, .longer = true},
    {"no product", CS_OP_ATTENTION, false, true, CS_PRECISION_BF16, 1, 33, 66, .longer = true},
    {"products of experts", CS_OP_GROUPED_LINEAR, false, true, CS_PRECISION_BF16, 2, 104, 248,
     .modules = 4, .longer = true},
    {"calls", CS_OP_RMS_NORM, false, true, CS_PRECISION_BF16, 1, 13, 10, .call = 4},
    {"calls of attention", CS_OP_ATTENTION, false, true, CS_PRECISION_BF16, 2.5, 82.5, 75,
     .call = 4},
    {"no call", CS_OP_LINEAR, false, true, CS_PRECISION_BF16, 1, 13, 31, .longer = true, .call = 4},
};

static void test_host(void **state)
{
    (void)state;
    cs_op_cost cost = {.forward = {1, 1, 3, 0},
                       .backward_input = {1, 1, 3, 0},
                       .backward_weight = {1, 1, 3, 0},
                       .weights = 5,
                       .biases = 1};
    for (size_t i = 0; i < ROWS(host_rows); i++) {
        cost.modules = host_rows[i].modules;
        const cs_runtime_kernels kernels = {.given = true,
                                            .host = 10 * MICROSECOND,
                                            .host_call = (cs_time)host_rows[i].call * MICROSECOND,
                                            .host_kernel = MICROSECOND,
                                            .host_product_backward =
                                                host_rows[i].longer ? 25 * MICROSECOND : 0,
                                            .graphs = host_rows[i].graphs,
                                            .expert_loop = host_rows[i].loop};
        const cs_op op = {
            .kind = host_rows[i].kind, .experts = 4, .attention = {.kernel = CS_ATTENTION_MATH}};
        cs_factor factor = {host_rows[i].factor, "test"};
        cs_accelerator device = small_device();
        device.training.host = &factor;
        const cs_host_seconds got = cs_runtime_kernels_host(
            &kernels, &device, &op, &cost, host_rows[i].precision, host_rows[i].apart);
        const double backward = (got.backward_input + got.backward_weight) * 1e6;
        if (fabs(got.forward * 1e6 - host_rows[i].forward) > 1e-9 ||
            fabs(backward - host_rows[i].backward) > 1e-9)
            fail_msg("%s: expected %g and %g us, got %g and %g", host_rows[i].row,
                     host_rows[i].forward, host_rows[i].backward, got.forward * 1e6, backward);
        const double one = host_rows[i].call > 0 ? host_rows[i].call + 1 : 11;
        const double message = host_rows[i].graphs ? 0 : one * 1e-6 * host_rows[i].factor;
        assert_float_equal(message, cs_runtime_kernels_message(&kernels, &device), 1e-12);
    }
}

/* Half of 10 us for each half of a backward with two kernels in each, of 1 us. Twelve operators for
 * a micro-batch, 11 us each, on a host that takes twice the time. */
static void test_host_of_halves(void **state)
{
    (void)state;
    const cs_runtime_kernels kernels = {
        .given = true, .host = 10 * MICROSECOND, .host_kernel = MICROSECOND, .batch_operators = 12};
    const cs_op_cost cost = {.backward_input = {1, 1, 2, 0}, .backward_weight = {1, 1, 2, 0}};
    const cs_op linear = {.kind = CS_OP_LINEAR};
    cs_accelerator device = small_device();
    const cs_host_seconds of =
        cs_runtime_kernels_host(&kernels, &device, &linear, &cost, CS_PRECISION_BF16, false);
    expect_seconds("input", 7e-6, of.backward_input);
    expect_seconds("weight", 7e-6, of.backward_weight);
    device.training.host = &twice;
    expect_seconds("micro-batch", 264e-6, cs_runtime_kernels_batch(&kernels, &device));
}

static void test_host_of_some_passes(void **state)
{
    (void)state;
    /* gradients of frozen weights are not added: 3 kernels of 1 us, for the gradients of the
     * input */
    const cs_runtime_kernels each = {.given = true, .host_kernel = MICROSECOND};
    const cs_op_cost frozen = {
        .forward = {1, 1, 3, 0}, .backward_input = {1, 1, 3, 0}, .weights = 5, .biases = 1};
    const cs_op linear = {.kind = CS_OP_LINEAR};
    const cs_accelerator device = small_device();
    const cs_host_seconds of =
        cs_runtime_kernels_host(&each, &device, &linear, &frozen, CS_PRECISION_BF16, true);
    expect_seconds("frozen", 3e-6, of.backward_input);
    assert_true(of.backward_weight == 0);
    /* the cast of a layer whose product is another's: one kernel of each of 4 experts */
    const cs_runtime_kernels loop = {
        .given = true, .expert_loop = true, .host_kernel = MICROSECOND};
    const cs_op joined = {.kind = CS_OP_GROUPED_LINEAR, .experts = 4};
    const cs_op_cost cast = {.forward = {1, 1, 1, 8}};
    expect_seconds(
        "joined", 4e-6,
        cs_runtime_kernels_host(&loop, &device, &joined, &cast, CS_PRECISION_MXFP8, false).forward);
}

/* Zeros in gradients of 4 bytes: 6 bytes of each are read or written, here 6 ms; or the host starts
 * four kernels for each tensor, 10 us each, on a host that takes twice the time: 240 us for three.
 */
static void test_zeros(void **state)
{
    (void)state;
    const cs_runtime_kernels counts = {
        .given = true, .host_kernel = 10 * MICROSECOND, .counts_zeros = true};
    const cs_runtime_kernels none = {.given = true, .host_kernel = 10 * MICROSECOND};
    cs_accelerator device = small_device();
    device.training.host = &twice;
    expect_seconds("many", 6e-3, cs_runtime_kernels_count_zeros(&counts, &device, 1e6, 4, 3));
    expect_seconds("few", 240e-6, cs_runtime_kernels_count_zeros(&counts, &device, 1e3, 4, 3));
    assert_true(cs_runtime_kernels_count_zeros(&none, &device, 1e6, 4, 3) == 0);
}

/* Weights of 10 bytes: with two samples of three heads, no multiple of four, 125 bytes more in
 * three kernels more, and backward 140. With two heads it is one. */
static void test_softmax(void **state)
{
    (void)state;
    const cs_runtime_kernels rule = {.given = true, .fused = true, .softmax_multiple = 4};
    for (uint32_t heads = 2; heads < 4; heads++) {
        const cs_op op = {
            .kind = CS_OP_ATTENTION,
            .attention = {.kernel = CS_ATTENTION_MATH, .causal = true, .heads = heads}};
        cs_op_cost cost = {
            .forward = {.launches = 4}, .backward_input = {.launches = 6}, .workspace_bytes = 10};
        cs_runtime_kernels_fall_back(&rule, &op, 2, &cost);
        assert_float_equal(heads == 3 ? 125 : 0, cost.forward.bytes, 1e-9);
        assert_float_equal(heads == 3 ? 140 : 0, cost.backward_input.bytes, 1e-9);
        assert_int_equal(heads == 3 ? 7 : 4, cost.forward.launches);
        assert_int_equal(heads == 3 ? 9 : 6, cost.backward_input.launches);
    }
}

/* Deterministic algorithms fill new tensors first: a linear layer's result of 6 bytes forward, the
 * gradient of its input of 4, and the gradient of its 5 weights and 1 bias in bf16 if it is a
 * separate tensor. An operator without a kernel in a pass fills nothing in it. */
static void test_fills(void **state)
{
    (void)state;
    const cs_op op = {.kind = CS_OP_LINEAR, .n_inputs = 1};
    const cs_runtime_kernels usual = {.given = true},
                             fills = {.given = true, .deterministic = true};
    for (int apart = 0; apart < 2; apart++) {
        cs_op_cost cost = {.forward = {.launches = 1},
                           .backward_weight = {.launches = 1},
                           .input_bytes = 4,
                           .output_bytes = 6,
                           .weights = 5,
                           .biases = 1};
        cs_runtime_kernels_fill(&usual, &op, CS_PRECISION_BF16, apart, &cost);
        assert_int_equal(cost.forward.launches + cost.backward_weight.launches, 2);
        cs_runtime_kernels_fill(&fills, &op, CS_PRECISION_BF16, apart, &cost);
        assert_int_equal(cost.forward.launches, 2);
        assert_float_equal(cost.forward.cast_bytes, 6, 0);
        assert_int_equal(cost.backward_input.launches, 0);
        assert_float_equal(cost.backward_input.cast_bytes, 0, 0);
        assert_int_equal(cost.backward_weight.launches, 1 + apart);
        assert_float_equal(cost.backward_weight.cast_bytes, apart * 12, 0);
        cost.backward_input.launches = 1;
        cs_runtime_kernels_fill(&fills, &op, CS_PRECISION_BF16, apart, &cost);
        assert_int_equal(cost.backward_input.launches, 2);
        assert_float_equal(cost.backward_input.cast_bytes, 4, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundles),        cmocka_unit_test(test_descriptions),
        cmocka_unit_test(test_names),          cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_host),           cmocka_unit_test(test_host_of_some_passes),
        cmocka_unit_test(test_host_of_halves), cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_zeros),          cmocka_unit_test(test_fills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
