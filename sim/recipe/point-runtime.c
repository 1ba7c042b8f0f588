/* Rules for the section "runtime": what trained, and what is switched on of it. */
#include "sim/base/fitted.h"
#include "sim/recipe/point-rules.h"

#include <string.h>

/* Beginnings of what frameworks are called in points, the longer ones first. */
typedef struct framework {
    const char *name, *runtime, *note;
    const char *kernels; /* a fitted figure (tests/fit-figures.py); NULL: the runtime's */
    bool one_program;    /* XLA: the host starts a whole step at once, ahead of the device */
} framework;

static const framework frameworks[] = {
    {"Megatron-LM (zero-bubble", "megatron-lm-2021", NULL, NULL, false},
    {"Megatron-LM (lts", "megatron-core", NULL, NULL, false},
    {"Megatron-LM (dev", "megatron-core", NULL, NULL, false},
    {"Megatron-LM 2", "megatron-core", NULL, NULL, false},
    {"Megatron-DeepSpeed", "deepspeed", NULL, NULL, false},
    {"Megatron-Bridge", "megatron-core", NULL, NULL, false},
    {"Megatron", "megatron-lm-2021", NULL, NULL, false},
    {"NeMo", "megatron-core", NULL, NULL, false},
    {"LiBai", "megatron-lm-2021", "LiBai has the fused kernels of Megatron-LM", NULL, false},
    {"Composer", "llm-foundry", NULL, NULL, false},
    {"PyTorch FSDP", "pytorch-fsdp", NULL, NULL, false},
    {"PyTorch", "pytorch-ddp", NULL, NULL, false},
    {"torchgpipe", "pytorch-ddp", NULL, NULL, false},
    {"torchtitan", "torchtitan", NULL, NULL, false},
    {"MaxText", "megatron-core", "XLA fuses what TransformerEngine does", NULL, true},
    {"PaxML", "megatron-core", "XLA fuses what TransformerEngine does", CS_FITTED_PAXML, true},
};

/* Submissions to MLPerf are called by who made them; they train with NeMo. */
bool cs_point_rules_submission(const cs_point *point)
{
    return strncmp(point->dataset, "mlperf", strlen("mlperf")) == 0;
}

static const framework *find_framework(const cs_point *point)
{
    const char *name = point->framework ? point->framework : "";
    for (size_t i = 0; i < sizeof(frameworks) / sizeof(frameworks[0]); i++)
        if (strncmp(name, frameworks[i].name, strlen(frameworks[i].name)) == 0)
            return &frameworks[i];
    return NULL;
}

/* GPT-2 and its kin have the activation "gelu_new" in configurations of transformers, BERT's is one
 * kernel. */
static bool trains_transformers(const cs_point *point)
{
    return point->framework && strncmp(point->framework, "PyTorch eager", 13) == 0 &&
           strcmp(point->model->kind, "decoder") == 0;
}

static bool says(const cs_point *point, const char *argument, const char *word)
{
    const char *value = cJSON_GetStringValue(cs_point_rules_argument(point, argument));
    return value && strstr(value, word);
}

static bool has_own_layers(const cs_point *point)
{
    return says(point, "transformer-impl", "local") || says(point, "spec", "local");
}

/* Megatron-LM without a version is Megatron Core where its layers are TransformerEngine's: they are
 * unless its arguments say otherwise, and RMSNorm it has from there only. */
static bool is_core(const cs_point *point, const framework *found)
{
    const char *norm = point->model->norm;
    if (!found)
        return cs_point_rules_submission(point);
    if (strcmp(found->name, "Megatron") != 0)
        return strcmp(found->runtime, "megatron-core") == 0 && !found->one_program;
    return (point->args && !has_own_layers(point)) ||
           strstr(point->framework, "TransformerEngine") || (norm && strcmp(norm, "rmsnorm") == 0);
}

bool cs_point_rules_core(const cs_point *point)
{
    return is_core(point, find_framework(point));
}

bool cs_point_rules_engine(const cs_point *point)
{
    return cs_point_rules_core(point) && !has_own_layers(point);
}

const char *cs_point_rules_runtime(const cs_point *point, const char **note)
{
    const framework *found = find_framework(point);
    *note = found ? found->note : NULL;
    if (is_core(point, found))
        return "megatron-core";
    return found ? found->runtime : "ideal";
}

/* NVIDIA's recipes for Megatron-Bridge in mxfp8, from release 26.06 on (NVIDIA-NeMo/
 * Megatron-Bridge, src/megatron/bridge/perf_recipes: _enable_hybridep_full_iteration_mxfp8 of
 * qwen/common.py, _apply_gpt_oss_120b_full_iter_fp8mx_configs of gpt_oss/common.py; scripts/
 * performance/configs/deepseek: DEEPSEEK_V3_PRETRAIN_CONFIG_..._FP8_MX): cuda_graph_impl
 * "full_iteration", use_transformer_engine_op_fuser, overlap_moe_expert_parallel_comm,
 * fp8_dot_product_attention. */
bool cs_point_rules_graphs_iterations(const cs_point *point)
{
    static const char name[] = "Megatron-Bridge ";
    return point->framework && strncmp(point->framework, name, strlen(name)) == 0 &&
           strcmp(point->framework + strlen(name), "26.06") >= 0 &&
           strcmp(point->precision, "mxfp8") == 0 && point->model->experts > 0;
}

/* Recipes in fp8 of Megatron-Bridge have the scale of each tensor itself (NVIDIA-NeMo/
 * Megatron-Bridge, scripts/performance/utils: "fp8_cs", current scaling); NeMo's and submissions to
 * MLPerf that of steps before (fp8_recipe "delayed"). */
static bool scales_now(const cs_point *point)
{
    return point->framework && strncmp(point->framework, "Megatron-Bridge", 15) == 0 &&
           strcmp(point->precision, "fp8") == 0;
}

/* Times that kernels take what the device's figures say: a fitted figure of the framework; or where
 * torchao scales rows by themselves 1.12: Llama 3 8B on eight H100 trains 6,424 tokens/s a GPU, and
 * 7,186 with a scale for each tensor (pytorch/torchtitan, 7a04053); NULL: as they say. */
static const char *kernels(const cs_point *point)
{
    const framework *found = find_framework(point);
    if (found && found->kernels)
        return found->kernels;
    return found && strcmp(found->runtime, "torchtitan") == 0 && strstr(point->precision, "rowwise")
               ? "1.12"
               : NULL;
}

static bool has_graphs(const cs_point *point)
{
    const cJSON *given = point->options->cuda_graphs;
    return given && !cJSON_IsFalse(given) &&
           (!cJSON_IsString(given) || strcmp(given->valuestring, "none") != 0);
}

static bool has_argument(const cs_point *point, const char *argument)
{
    return cJSON_IsTrue(cs_point_rules_argument(point, argument));
}

static bool is_blocking(const cs_point *point)
{
    const char *given = cJSON_GetStringValue(cs_json_member(point->env, "CUDA_LAUNCH_BLOCKING"));
    return given && strcmp(given, "0") != 0;
}

/* Megatron-LM's experts are modules of their own unless its arguments say otherwise (core/models/
 * gpt/moe_module_specs.py: TEGroupedMLP with --moe-grouped-gemm, else SequentialMLP). */
static bool has_expert_modules(const cs_point *point)
{
    return point->args && cs_point_rules_core(point) && point->model->experts > 0 &&
           !has_argument(point, "moe-grouped-gemm");
}

/* XLA removes what nobody reads of a forward that runs again. The runs of llm-foundry that reduce
 * gradients in bf16 are from its first release, which PyTorch 1.13 trained; those with autocast came
 * when 2.1 had (mosaicml/llm-foundry, pull request 543, October 2023). */
static void write_early_stop(cs_point_rules *rules, const framework *found, FILE *out)
{
    const cs_point *point = rules->point;
    const char *reduces = point->options->grad_reduce_dtype;
    if (!found || strcmp(point->recompute, "full") != 0)
        return;
    if (found->one_program)
        fputs(", \"early_stop\": true", out);
    if (strcmp(found->runtime, "llm-foundry") != 0 || !reduces || strcmp(reduces, "bf16") != 0)
        return;
    fputs(", \"early_stop\": false", out);
    cs_point_rules_assume(rules, "llm-foundry with gradients reduced in bf16 has a PyTorch before "
                                 "2.1, which repeats all of a layer");
}

/* Runtimes that torch.compile makes a difference to. */
static bool is_pytorch(const char *runtime)
{
    return strncmp(runtime, "pytorch", strlen("pytorch")) == 0 ||
           strcmp(runtime, "torchtitan") == 0 || strcmp(runtime, "llm-foundry") == 0;
}

/* The release of PyTorch that decides which attention it takes (runtime-bundles.c): as the
 * framework's name has it, "PyTorch 2.7.0a0"; else one before cuDNN's was preferred. */
static void write_release(cs_point_rules *rules, const char *runtime, FILE *out)
{
    static const char word[] = "PyTorch ";
    const char *at = rules->point->framework ? strstr(rules->point->framework, word) : NULL;
    int length = at ? (int)strspn(at + strlen(word), "0123456789.") : 0;
    if (!is_pytorch(runtime))
        return;
    while (length > 0 && at[strlen(word) + (size_t)length - 1] == '.')
        length--;
    if (length > 0) {
        fprintf(out, ", \"release\": \"%.*s\"", length, at + strlen(word));
        return;
    }
    cs_point_rules_assume(rules, "a release of PyTorch that prefers FlashAttention-2");
    fputs(", \"release\": \"2.4\"", out);
}

void cs_point_rules_write_runtime(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const char *note;
    const char *name = cs_point_rules_runtime(point, &note);
    if (note)
        cs_point_rules_assume(rules, "%s", note);
    if (strcmp(name, "ideal") == 0)
        cs_point_rules_assume(rules, "no conventions of a runtime");
    const framework *found = find_framework(point);
    fprintf(out, "\"runtime\": {\"name\": \"%s\"", name);
    write_release(rules, name, out);
    if (kernels(point))
        fprintf(out, ", \"kernels\": %s", kernels(point));
    if (found && found->one_program)
        fputs(", \"host\": 0, \"host_kernel\": 0, \"host_product_backward\": 0, \"step\": 0", out);
    if (trains_transformers(point))
        fputs(", \"written_out\": true", out);
    if (point->options->compile)
        fprintf(out, ", \"%s\": true", is_pytorch(name) ? "compile" : "fused");
    write_early_stop(rules, found, out);
    if (has_argument(point, "deterministic-mode"))
        fputs(", \"deterministic\": true", out);
    if (is_blocking(point))
        fputs(", \"launch_blocking\": true", out);
    if (has_argument(point, "log-num-zeros-in-grad"))
        fputs(", \"counts_zeros\": true", out);
    if (has_expert_modules(point))
        fputs(", \"expert_modules\": true", out);
    if (scales_now(point))
        fputs(", \"current_scaling\": true", out);
    if (cs_point_rules_graphs_iterations(point))
        fputs(", \"flash\": \"cudnn_fp8\", \"cuda_graphs\": true, \"expert_loop\": false, "
              "\"fused_experts\": true",
              out);
    else if (has_graphs(point))
        fputs(", \"cuda_graphs\": true", out);
    fputs("}", out);
}
