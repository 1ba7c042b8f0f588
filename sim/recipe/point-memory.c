/* Rules for the section "memory": what the framework and its libraries keep. */
#include "sim/recipe/point-rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool contains(const char *text, const char *word)
{
    return text && strstr(text, word);
}

static bool has_flag(const cs_point *point, const char *name)
{
    const cJSON *value = cs_point_rules_argument(point, name);
    return value && !cJSON_IsFalse(value);
}

/* Megatron-LM, what is built on it, and submissions to MLPerf, which train with NeMo. */
static bool is_megatron(const cs_point *point)
{
    return cs_point_rules_megatron(point) || cs_point_rules_submission(point);
}

static bool has_runtime(const cs_point *point, const char *name)
{
    const char *note;
    return strcmp(cs_point_rules_runtime(point, &note), name) == 0;
}

/* Megatron Core with layers of its own, as its arguments ask for. */
static bool has_own_layers(const cs_point *point)
{
    return point->args && is_megatron(point) && !cs_point_rules_engine(point);
}

/* Kernels of its own add to the sum in place, with apex (megatron/training/arguments.py,
 * gradient_accumulation_fusion). */
static void write_weight_gradients(const cs_point *point, FILE *out)
{
    if (is_megatron(point) && has_flag(point, "no-gradient-accumulation-fusion"))
        fputs(", \"weight_gradients\": \"apart\"", out);
    else if (has_own_layers(point))
        fputs(", \"weight_gradients\": \"in_place\"", out);
}

/* Megatron-LM's own fused loss keeps what a plain one does; TransformerEngine's does not. */
static bool has_fused_loss(const cs_point *point)
{
    const char *kernel =
        cJSON_GetStringValue(cs_point_rules_argument(point, "cross-entropy-fusion-impl"));
    return point->options->fused_cross_entropy || contains(kernel, "te");
}

/* torchtitan's recipes of fp8 have names ("fp8-rowwise") since 2025; no point says how old its
 * software is. */
static bool has_named_recipe(const cs_point *point)
{
    return strncmp(point->precision, "fp8-", strlen("fp8-")) == 0;
}

/* torchtitan compiles the loss with the model since 2025 (torchtitan/components/loss.py,
 * build_cross_entropy_loss); before, train.py had it switched off. */
static bool has_compiled_loss(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    const bool named = has_named_recipe(point);
    if (!point->options->compile || point->options->fused_cross_entropy)
        return point->options->fused_cross_entropy;
    cs_point_rules_assume(rules,
                          named ? "the loss is compiled with the model, as in torchtitan since its "
                                  "recipes of fp8 have names, in 2025"
                                : "the loss is not compiled with the model, as in torchtitan "
                                  "before its recipes of fp8 had names, in 2025");
    return named;
}

/* Megatron-LM's own fusion of the loss; torchtitan's loss is PyTorch's, of logits in float32, with
 * tensor parallelism loss_parallel (torchtitan/parallelisms/parallelize_llama.py). */
static void write_loss(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    if (has_flag(point, "cross-entropy-loss-fusion"))
        fputs(", \"loss\": \"copied\"", out);
    else if (contains(point->framework, "torchtitan") && !has_compiled_loss(rules))
        fprintf(out, ", \"loss\": \"%s\"", point->parallel->tp > 1 ? "parallel" : "eager");
}

/* PyTorch's pipelining kept what each stage handed on and back until the step ended, from May 2025
 * on what the last one did (pytorch/pytorch, pull request 153383), unless it is told not to, from
 * October 2025 on (165822, return_outputs). */
static void write_results(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const bool named = has_named_recipe(point);
    if (!contains(point->framework, "torchtitan") || point->parallel->pp < 2)
        return;
    fprintf(out, ", \"stage_results\": \"%s\"", named ? "last" : "all");
    cs_point_rules_assume(rules, named ? "the last stage keeps its results until the step ends, as "
                                         "in PyTorch's pipelining of 2025"
                                       : "all stages keep their results until the step ends, as in "
                                         "PyTorch's pipelining before May 2025");
}

/* Where it is not as the runtime has it. */
static void write_fused(const cs_point *point, FILE *out)
{
    const bool gate = !has_flag(point, "no-bias-swiglu-fusion"), loss = has_fused_loss(point);
    if (is_megatron(point) && (!gate || loss))
        fprintf(out, ", \"fused\": [\"norm\"%s%s, \"linear\"]", gate ? ", \"swiglu\"" : "",
                loss ? ", \"cross_entropy\"" : "");
}

/* Experts without products of groups are products one after the other. */
static bool has_single_products(const cs_point *point)
{
    return point->args && point->model->experts > 0 && !has_flag(point, "moe-grouped-gemm");
}

/* Where they are not as the runtime has them. Megatron-LM's router is TransformerEngine's product,
 * whatever its layers are (megatron/core/transformer/moe/moe_utils.py,
 * RouterGatingLinearFunction). */
static void write_libraries(const cs_point *point, FILE *out)
{
    const bool own = has_own_layers(point), single = has_single_products(point);
    const bool buffers = point->parallel->tp > 1 && has_flag(point, "tp-comm-overlap") && !own;
    if (!own && !single && !buffers)
        return;
    fprintf(out, ", \"libraries\": [\"cublas\"%s%s%s]",
            own && point->model->experts == 0 ? "" : ", \"transformer_engine\"",
            own || single ? "" : ", \"grouped_products\"", buffers ? ", \"user_buffers\"" : "");
}

/* Of a thread, where the environment says so: pairs of a size in KiB and how many of it there are,
 * ":4096:2:16:8" (PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize). */
static double told_workspace(const cs_point *point)
{
    const char *config =
        cJSON_GetStringValue(cs_json_member(point->env, "CUBLAS_WORKSPACE_CONFIG"));
    double kib = 0;
    char size[8], count[8];
    for (int read = 0; config && sscanf(config, ":%7[0-9]:%7[0-9]%n", size, count, &read) == 2;
         config += read)
        kib += strtod(size, NULL) * strtod(count, NULL);
    return kib * 1024;
}

/* Megatron-LM's tests of experts that run on A100 set :4096:8 in both modes (NVIDIA/Megatron-LM at
 * d98e8a6, tests/functional_tests/test_cases/moe), which is the default from Hopper on; those of
 * other models set it in deterministic mode only, as the runtime has it. */
static void write_workspace(const cs_point *point, FILE *out)
{
    enum { TESTS = 8 * 4096 * 1024 };
    const bool test = point->args && is_megatron(point) && point->model->experts > 0;
    const double told = told_workspace(point), bytes = told > 0 || !test ? told : TESTS;
    if (bytes > 0)
        fprintf(out, ", \"cublas_workspace\": %.0f", bytes);
}

/* An argument may name the kernel; layers of its own reorder nothing. */
static void write_attention(const cs_point *point, FILE *out)
{
    const char *backend = cJSON_GetStringValue(cs_point_rules_argument(point, "attention-backend"));
    const bool given = backend && strcmp(backend, "auto") != 0;
    const bool flash = given && strcmp(backend, "flash") == 0 && cs_point_rules_engine(point);
    if (has_own_layers(point))
        fputs(", \"attention_buffer\": true, \"padding_masks\": false", out);
    if (given || has_own_layers(point))
        fprintf(out, ", \"attention_copy\": %s", flash ? "true" : "false");
    if (given && !flash)
        fputs(", \"deterministic_multiprocessors\": 0", out);
}

/* Megatron-LM's own training programs: a data loader that makes masks of attention, unless it is
 * told not to (megatron/core/datasets/gpt_dataset.py), and a dispatcher that gathers tokens,
 * unless it is told otherwise (megatron/core/transformer/transformer_config.py,
 * moe_token_dispatcher_type). */
static void write_buffers(const cs_point *point, FILE *out)
{
    const char *dispatcher =
        cJSON_GetStringValue(cs_point_rules_argument(point, "moe-token-dispatcher-type"));
    const bool gathers = !dispatcher || strcmp(dispatcher, "allgather") == 0;
    const cs_point_model *model = point->model;
    if (point->args && model->experts > 0 && gathers)
        fputs(", \"gather_buffer\": \"experts\"", out);
    if (point->args && !has_flag(point, "no-create-attention-mask-in-dataloader") &&
        strncmp(model->kind, "decoder", strlen("decoder")) == 0)
        fprintf(out, ", \"inputs\": %llu",
                (unsigned long long)model->seq * model->seq / point->parallel->cp);
}

/* ---- narrow types ---- */

static bool is_type(const cs_point *point, const char *type)
{
    return strncmp(point->precision, type, strlen(type)) == 0;
}

static bool is_narrow(const cs_point *point)
{
    return is_type(point, "fp8") || is_type(point, "mxfp8") || is_type(point, "nvfp4");
}

/* JAX's compiler casts weights where a product reads them; torchao does so as well. */
static bool is_xla(const cs_point *point)
{
    return contains(point->framework, "MaxText") || contains(point->framework, "PaxML");
}

/* Megatron Core has weights in the narrow type alone with fp8_param_gather: an argument of
 * Megatron-LM's; switched on in NeMo's and Megatron-Bridge's recipes for fp8, in the latter's for
 * mxfp8 too (NVIDIA/NeMo at 0a07447, nemo/collections/llm/recipes/precision/mixed_precision.py;
 * NVIDIA-NeMo/Megatron-Bridge at 0509780, src/megatron/bridge/training/mixed_precision.py), and in
 * submissions (mlcommons/training_results_v5.1, llama31_405b, config_common.sh: FP8_PARAM_GATHER).
 * There is none for nvfp4. */
static const char *narrow_weights(const cs_point *point)
{
    const bool divides_experts = point->parallel->zero == 3 && point->parallel->ep > 1;
    if (point->options->float8_allgather && !divides_experts)
        return "alone";
    const bool gathers = point->args               ? has_flag(point, "fp8-param-gather")
                         : is_type(point, "mxfp8") ? contains(point->framework, "Megatron-Bridge")
                                                   : is_type(point, "fp8");
    if (is_xla(point) || contains(point->framework, "torch"))
        return "cast";
    return is_megatron(point) && gathers && !divides_experts ? "alone" : "copies";
}

/* Fine-tuning does not keep the transposed weights (disable_parameter_transpose_cache: NVIDIA/NeMo,
 * scripts/performance/llm/finetune_llama3_70b.py; mlcommons/training_results_v5.1,
 * megatron_gpt_peft_tuning_config.yaml). */
static void write_narrow(const cs_point *point, FILE *out)
{
    fprintf(out, ", \"narrow_weights\": \"%s\"", narrow_weights(point));
    if ((is_megatron(point) && point->options->lora) || point->options->float8_allgather)
        fputs(", \"narrow_copies\": 1", out);
}

/* ---- the section ---- */

/* Frameworks whose tensors are PyTorch's. Without a stated framework, peaks that PyTorch's allocator
 * counts tell. */
static bool is_pytorch(const cs_point *point)
{
    const cs_point_measured *measured = point->measured;
    if (!point->framework)
        return isfinite(measured->allocated) || isfinite(measured->reserved) || measured->per_rank;
    static const char *const known[] = {"PyTorch", "torch", "Composer"};
    bool is = is_megatron(point);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        is |= contains(point->framework, known[i]);
    return is;
}

/* Whether there is something to hold the allocator against, which takes its time. */
static bool has_measured(const cs_point_measured *measured)
{
    return isfinite(measured->allocated) || isfinite(measured->reserved) ||
           isfinite(measured->device) || measured->per_rank || measured->oom;
}

/* What is no runtime's: of a framework whose tensors are not PyTorch's. */
static void write_nothing(FILE *out)
{
    fputs(", \"fused\": [], \"weight_gradients\": \"in_place\", \"libraries\": [], "
          "\"routed_weights\": \"rows\", \"weight_buffer\": false, \"gather_buffer\": \"none\", "
          "\"attention_copy\": false}",
          out);
}

/* Of a framework of PyTorch that is no runtime: what its modules keep (facts/runtimes/pytorch-eager.json). */
static void write_pytorch(FILE *out)
{
    fputs(", \"weight_gradients\": \"apart\", \"libraries\": [\"cublas\"]", out);
}

/* What is not as the runtime has it, of which a point's arguments and options tell. */
void cs_point_rules_memory(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const bool played = is_pytorch(point) && has_measured(point->measured);
    fprintf(out, "\"memory\": {\"allocator\": \"%s\"", played ? "pytorch" : "none");
    if (is_narrow(point) && (is_pytorch(point) || is_xla(point)))
        write_narrow(point, out);
    if (!is_pytorch(point)) {
        if (has_measured(point->measured))
            cs_point_rules_assume(rules,
                                  "no allocator of %s is known: reserved memory is not "
                                  "compared",
                                  point->framework ? "this framework" : "a framework not stated");
        write_nothing(out);
        return;
    }
    if (has_runtime(point, "ideal"))
        write_pytorch(out);
    write_fused(point, out);
    write_loss(rules, out);
    write_results(rules, out);
    write_weight_gradients(point, out);
    write_libraries(point, out);
    write_workspace(point, out);
    write_attention(point, out);
    write_buffers(point, out);
    fputs("}", out);
}
