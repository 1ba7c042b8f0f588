#include "sim/scenario/runtime-section.h"

#include "sim/base/fitted.h"
#include "sim/base/text.h"

#include <stdio.h>
#include <string.h>

/* ---- the bundles ---- */

const char *const cs_runtime_names[] = {"ideal",        "megatron-core", "megatron-lm-2021",
                                        "pytorch-fsdp", "pytorch-ddp",   "deepspeed",
                                        "torchtitan",   "llm-foundry",   NULL};

#define FP32_GRADIENTS                                                                             \
    {                                                                                              \
        .key = "/model/gradients", .value = "\"fp32\"",                                            \
        .source = "megatron/training/arguments.py: gradients of bf16 weights are summed and "      \
                  "reduced in fp32",                                                               \
        .with = "/model/precision=bf16"                                                            \
    }

#define BLOCKING(kind)                                                                             \
    {                                                                                              \
        .key = "/platform/blocking", .value = "true",                                              \
        .source =                                                                                  \
            "megatron/training/arguments.py: messages overlap in interleaved schedules only",      \
        .with = "/schedule/kind=" kind                                                             \
    }

#define CLIPPING(value_, source_)                                                                  \
    {                                                                                              \
        .key = "/runtime/gradient_passes", .value = value_, .source = source_                      \
    }

#define BESIDE                                                                                     \
    {                                                                                              \
        .key = "/platform/slowdown",                                                               \
        .value = "[{\"factor\": 1.19, \"communication\": \"collectives\"}]",                       \
        .source = "Lee et al., 2025 (arXiv 2507.03114): 1.19 on average beside communication"      \
    }

#define COLLECTIVES                                                                                \
    {.key = "/collectives/reached",                                                                \
     .value = "0.7",                                                                               \
     .source = "SimuMax (4dcaae51), DGX B200: all-reduce 0.742, all-gather 0.674, reduce-scatter " \
               "0.673 of 900 GB/s",                                                                \
     .with = "/platform/topology=dgx-b200"},                                                       \
        {.key = "/collectives/reached",                                                            \
         .value = "0.8",                                                                           \
         .source = "nccl-tests reach 230 to 240 of 300 GB/s on DGX A100, 360 of 450 on DGX H100"}, \
    {                                                                                              \
        .key = "/collectives/start", .value = "\"25 us\"",                                         \
        .source = "SimuMax (4dcaae51), DGX B200: 22 to 26 us beside 5.5 to 9.2 us of latency"      \
    }

#define HOST(time, source_)                                                                        \
    {                                                                                              \
        .key = "/runtime/host", .value = "\"" time "\"", .source = source_                         \
    }

static const cs_convention none[] = {{0}};

static const cs_convention megatron_core[] = {
    HOST("20 us", "assumed: modules of TransformerEngine take the host longer than PyTorch's own"),
    COLLECTIVES,
    BESIDE,
    FP32_GRADIENTS,
    BLOCKING("1f1b"),
    {"/parallel/bucket", "\"160 MB\"",
     "megatron/core/distributed/distributed_data_parallel.py: 40 million gradients, of 4 bytes",
     NULL},
    {"/runtime/fused", "true",
     "TransformerEngine: LayerNormLinear, SwiGLU and rotary kernels; megatron/core/fusions", NULL},
    {"/runtime/expert_loop", "true",
     "TransformerEngine: GroupedLinear is a product for each expert on cuBLAS's streams "
     "(transformer_engine/pytorch/cpp_extensions/gemm.py, general_grouped_gemm), and "
     "split_quantize a cast for each",
     NULL},
    {"/runtime/flash", "\"cudnn\"", "TransformerEngine prefers cuDNN's attention from sm90 on",
     NULL},
    CLIPPING("4",
             "megatron/core/optimizer/clip_grads.py: the norm reads gradients, scaling reads and "
             "writes them where it is above 1, as in the first steps; zeroing writes them"),
    {0}};

static const cs_convention megatron_2021[] = {
    HOST("20 us", "as megatron-core"),
    COLLECTIVES,
    BESIDE,
    BLOCKING("1f1b"),
    BLOCKING("interleaved_1f1b"),
    {"/runtime/fused", "true",
     "megatron/model/fused_*.py: masked softmax, layer norm, bias with GELU, bias with dropout and "
     "sum",
     NULL},
    {"/runtime/flash", "\"flash2\"", "no other fused attention at the time", NULL},
    CLIPPING("6", "megatron/optimizer: unscaling reads and writes gradients, the norm reads, "
                  "scaling by it reads and writes, zeroing writes"),
    {0}};

static const cs_convention fsdp[] = {
    HOST("10 us", "assumed: PyTorch starts about a hundred thousand kernels a second"),
    COLLECTIVES,
    BESIDE,
    {"/runtime/flash", "\"flash2\"", "torch.nn.functional.scaled_dot_product_attention", NULL},
    CLIPPING("3", "clip_grad_norm_ reads gradients for the norm, and multiplies them"),
    {0}};

static const cs_convention ddp[] = {
    HOST("10 us", "assumed: PyTorch starts about a hundred thousand kernels a second"),
    COLLECTIVES,
    BESIDE,
    {"/parallel/bucket", "\"25 MiB\"", "Li et al., VLDB 2020, section 3.2.3: bucket_cap_mb", NULL},
    {"/runtime/flash", "\"flash2\"", "torch.nn.functional.scaled_dot_product_attention", NULL},
    {0}};

static const cs_convention deepspeed[] = {
    HOST("20 us", "as megatron-core"),
    COLLECTIVES,
    BESIDE,
    BLOCKING("1f1b"),
    {"/runtime/fused", "true", "Megatron-DeepSpeed has the fused kernels of Megatron-LM", NULL},
    {"/runtime/kernels", CS_FITTED_DEEPSPEED,
     "fitted to measured runs by tests/fit-figures.py, with figures of devices "
     "(docs/reference/points.md)",
     NULL},
    {"/runtime/flash", "\"flash2\"", "Megatron-DeepSpeed: --use-flash-attn is FlashAttention",
     NULL},
    CLIPPING("4", "deepspeed/runtime: unscaling and clipping are one pass that reads and writes, "
                  "the norm reads, zeroing writes"),
    {0}};

static const cs_convention torchtitan[] = {
    HOST("10 us", "assumed: PyTorch starts about a hundred thousand kernels a second"),
    COLLECTIVES,
    BESIDE,
    {"/runtime/fused", "true", "torch.compile of each block fuses what only moves", NULL},
    {"/runtime/flash", "\"flash2\"", "torch.nn.functional.scaled_dot_product_attention", NULL},
    CLIPPING("3", "clip_grad_norm_ reads gradients for the norm, and multiplies them"),
    {0}};

static const cs_convention llm_foundry[] = {
    HOST("10 us", "assumed: PyTorch starts about a hundred thousand kernels a second"),
    COLLECTIVES,
    BESIDE,
    {"/runtime/flash", "\"flash1\"",
     "llm-foundry at 8c8dd48f: scripts/train/yamls/pretrain have attn_impl: triton, which is as "
     "fast as the first FlashAttention",
     NULL},
    CLIPPING("3", "clip_grad_norm_ reads gradients for the norm, and multiplies them"),
    {0}};

/* In the order of the names. */
static const cs_convention *const bundles[] = {none, megatron_core, megatron_2021, fsdp,
                                               ddp,  deepspeed,     torchtitan,    llm_foundry};

const cs_convention *cs_runtime_conventions(uint32_t name)
{
    return bundles[name];
}

/* ---- the section ---- */

#define AT(member) offsetof(cs_runtime_section, member)

const cs_field cs_scenario_runtime_fields[] = {
    {"name", CS_FIELD_CHOICE, AT(name), .fallback = "ideal", .choices = cs_runtime_names,
     .doc = "whose conventions are the defaults of the keys below and of other sections; ideal: "
            "none, each operator is a roofline by itself"},
    {"fused", CS_FIELD_BOOL, AT(fused), .fallback = "false",
     .doc = "one kernel for a norm, for an activation and its gate, for dropout and a residual "
            "sum; one product for linear layers that read the same"},
    {"flash", CS_FIELD_CHOICE, AT(flash), .fallback = "flash2", .choices = cs_flash_names,
     .doc = "kernel of fused attention"},
    {"host", CS_FIELD_TIME, AT(host), .fallback = "0",
     .doc = "of the host to start a kernel; a layer takes at least that for each of its kernels"},
    {"cuda_graphs", CS_FIELD_BOOL, AT(cuda_graphs), .fallback = "false",
     .doc = "kernels start from graphs, whatever \"host\" says; those of experts do not, whose "
            "rows differ from step to step"},
    {"expert_loop", CS_FIELD_BOOL, AT(expert_loop), .fallback = "false",
     .doc = "the host starts the products of experts one by one, and the casts of their rows"},
    {"kernels", CS_FIELD_NUMBER, AT(kernels), .fallback = "1", .above_min = true, .max = 64,
     .doc = "times that kernels take what the device's figures say, as with older libraries"},
    {"gradient_passes", CS_FIELD_NUMBER, AT(gradient_passes), .fallback = "0", .max = 64,
     .doc = "times a step that all gradients are read or written besides the update: for their "
            "norm, unscaling, zeroing"},
    {0},
};

cs_status cs_runtime_section_read(const cJSON *value, const cs_json_place *root, cs_arena *arena,
                                  cs_runtime_section *section, cs_error *error)
{
    const cs_json_place place = {.up = root, .key = "runtime"};
    return cs_field_read(value, &place, (const cs_field *const[]){cs_scenario_runtime_fields, NULL},
                         (void *const[]){section}, arena, error);
}

cs_runtime_kernels cs_runtime_section_kernels(const cs_runtime_section *section)
{
    return (cs_runtime_kernels){.given = section->name != 0,
                                .fused = section->fused,
                                .flash = section->flash,
                                .host = section->host,
                                .graphs = section->cuda_graphs,
                                .expert_loop = section->expert_loop,
                                .factor = section->kernels,
                                .gradient_passes = section->gradient_passes};
}

/* ---- applying a bundle ---- */

/* The value that a pointer of two keys leads to; NULL where there is none. `section` gets the
 * object on the way. */
static const cJSON *value_at(const cJSON *root, const char *pointer, const cJSON **section)
{
    char first[64];
    const char *second = strchr(pointer + 1, '/');
    snprintf(first, sizeof(first), "%.*s", (int)(second - pointer - 1), pointer + 1);
    *section = cs_json_member(root, first);
    return cJSON_IsObject(*section) ? cs_json_member(*section, second + 1) : NULL;
}

/* Whether "/section/key=text" holds. */
static bool holds(const cJSON *root, const char *condition)
{
    char pointer[128];
    const cJSON *section;
    const char *equals = strchr(condition, '=');
    snprintf(pointer, sizeof(pointer), "%.*s", (int)(equals - condition), condition);
    const char *text = cJSON_GetStringValue(value_at(root, pointer, &section));
    return text && strcmp(text, equals + 1) == 0;
}

static cs_status apply(cJSON *root, const cs_convention *convention, const char *path,
                       cs_error *error)
{
    static const char made[] = "/collectives/"; /* a section whose keys all have defaults */
    const cJSON *section;
    const bool may = strncmp(convention->key, made, strlen(made)) == 0;
    if (value_at(root, convention->key, &section) ||
        !(cJSON_IsObject(section) || (may && !section)) ||
        (convention->with && !holds(root, convention->with)))
        return CS_OK;
    return cs_json_set(root, convention->key, convention->value, path, error);
}

/* "megatron-core" becomes {"name": "megatron-core"}. */
static cs_status lengthen(cJSON *root, const char *path, cs_error *error)
{
    const char *name = cJSON_GetStringValue(cs_json_member(root, "runtime"));
    char text[128];
    if (!name)
        return CS_OK;
    snprintf(text, sizeof(text), "{\"name\": \"%.64s\"}", name);
    return cs_json_set(root, "/runtime", text, path, error);
}

cs_status cs_runtime_apply(cJSON *root, const char *path, cs_error *error)
{
    if (!cJSON_IsObject(root) || !cs_json_member(root, "runtime"))
        return CS_OK;
    CS_TRY(lengthen(root, path, error));
    const char *name =
        cJSON_GetStringValue(cs_json_member(cs_json_member(root, "runtime"), "name"));
    uint32_t i = 0;
    while (name && cs_runtime_names[i] && strcmp(cs_runtime_names[i], name) != 0)
        i++;
    if (!name || !cs_runtime_names[i])
        return CS_OK; /* who reads the section says what is wrong */
    for (const cs_convention *each = bundles[i]; each->key; each++)
        CS_TRY(apply(root, each, path, error));
    return CS_OK;
}
