/* Rules for the section "memory": what the framework and its libraries keep. */
#include "sim/validate/point-rules.h"

#include <math.h>
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

/* Megatron-LM's layers are TransformerEngine's unless it is told otherwise; RMSNorm it has from
 * there only. What was forked before that, or says neither, has layers of its own. */
static bool has_transformer_engine(const cs_point *point)
{
    const char *kernels = cJSON_GetStringValue(cs_point_rules_argument(point, "transformer-impl"));
    const char *spec = cJSON_GetStringValue(cs_point_rules_argument(point, "spec"));
    if (!is_megatron(point))
        return false;
    if (contains(kernels, "local") || contains(spec, "local"))
        return false;
    return point->args || contains(point->framework, "TransformerEngine") ||
           contains(point->model->norm, "rmsnorm");
}

/* Kernels of its own add to the sum in place, with apex (megatron/training/arguments.py,
 * gradient_accumulation_fusion). */
static const char *weight_gradients(const cs_point *point)
{
    if (!is_megatron(point) || has_flag(point, "no-gradient-accumulation-fusion"))
        return "apart";
    return has_transformer_engine(point) ? "transformer_engine" : "in_place";
}

/* Megatron-LM's own fused loss keeps what a plain one does; TransformerEngine's does not. */
static bool has_fused_loss(const cs_point *point)
{
    const char *kernel =
        cJSON_GetStringValue(cs_point_rules_argument(point, "cross-entropy-fusion-impl"));
    return point->options->fused_cross_entropy || contains(kernel, "te");
}

/* torchtitan compiles the loss with the model since 2025 (torchtitan/components/loss.py,
 * build_cross_entropy_loss); before, train.py had it switched off. That is the year in which its
 * recipes of fp8 got names ("fp8-rowwise"): no point says how old its software is. */
static bool has_compiled_loss(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    const bool named = strncmp(point->precision, "fp8-", strlen("fp8-")) == 0;
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
static const char *loss_steps(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    if (has_flag(point, "cross-entropy-loss-fusion"))
        return "copied";
    if (!contains(point->framework, "torchtitan") || has_compiled_loss(rules))
        return "in_place";
    return point->parallel->tp > 1 ? "parallel" : "eager";
}

static void write_fused(const cs_point *point, FILE *out)
{
    const bool megatron = is_megatron(point);
    fprintf(out, "\"fused\": [%s%s%s%s]", megatron ? "\"norm\"" : "",
            megatron && !has_flag(point, "no-bias-swiglu-fusion") ? ", \"swiglu\"" : "",
            megatron && has_fused_loss(point) ? ", \"cross_entropy\"" : "",
            megatron ? ", \"linear\"" : "");
}

/* Products of groups, where they are known to be or else assumed; experts without them are products
 * one after the other. */
static bool has_grouped_products(const cs_point *point)
{
    return point->model->experts > 0 && (!point->args || has_flag(point, "moe-grouped-gemm"));
}

/* Megatron-LM's router is TransformerEngine's product, whatever its layers are (megatron/core/
 * transformer/moe/moe_utils.py, RouterGatingLinearFunction). Its deterministic mode runs with
 * CUBLAS_WORKSPACE_CONFIG=:4096:8 (its argument's check asks for it). */
static void write_libraries(const cs_point *point, FILE *out)
{
    const bool layers = has_transformer_engine(point),
               routes = point->args && point->model->experts;
    const bool engine = layers || routes;
    const bool buffers = point->options->tp_overlap || has_flag(point, "tp-comm-overlap");
    fprintf(out, "\"libraries\": [\"cublas\"%s%s%s]", engine ? ", \"transformer_engine\"" : "",
            layers && has_grouped_products(point) ? ", \"grouped_products\"" : "",
            layers && buffers && point->parallel->tp > 1 ? ", \"user_buffers\"" : "");
    if (has_flag(point, "deterministic-mode"))
        fputs(", \"cublas_workspace\": \"32 MiB\"", out);
}

/* Multiprocessors of GPUs on which TransformerEngine's deterministic mode takes FlashAttention: on
 * Hopper cuDNN's backward is deterministic, and preferred (transformer_engine/pytorch/attention/
 * dot_product_attention/utils.py, get_attention_backend). */
static uint32_t flash_multiprocessors(const cs_point *point)
{
    static const struct {
        const char *gpu;
        uint32_t multiprocessors;
    } known[] = {{"a100", 108}, {"b200", 148}, {"gb200", 152}};
    if (!has_flag(point, "deterministic-mode") || !has_transformer_engine(point))
        return 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strncmp(cs_point_rules_gpu(point), known[i].gpu, strlen(known[i].gpu)) == 0)
            return known[i].multiprocessors;
    return 0;
}

/* Of the fused kernels TransformerEngine prefers FlashAttention on A100, and where cuDNN's is not
 * deterministic (the same place); FlashAttention takes no queries wider than values, as latent
 * attention has. */
static bool has_flash_attention(const cs_point *point)
{
    const char *backend = cJSON_GetStringValue(cs_point_rules_argument(point, "attention-backend"));
    if (!has_transformer_engine(point) || point->model->mla)
        return false;
    if (backend && strcmp(backend, "auto") != 0)
        return strcmp(backend, "flash") == 0;
    return flash_multiprocessors(point) > 0 || strncmp(point->hardware->gpu, "A100", 4) == 0;
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
    if (is_megatron(point))
        fprintf(out, ", \"gather_buffer\": \"%s\"",
                point->args && model->experts > 0 && gathers ? "experts" : "last_matrix");
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
    if (point->options->float8_allgather)
        return "alone";
    const bool gathers = point->args               ? has_flag(point, "fp8-param-gather")
                         : is_type(point, "mxfp8") ? contains(point->framework, "Megatron-Bridge")
                                                   : is_type(point, "fp8");
    const bool divides_experts = point->parallel->zero == 3 && point->parallel->ep > 1;
    if (is_xla(point) || contains(point->framework, "torch"))
        return "cast";
    return is_megatron(point) && gathers && !divides_experts ? "alone" : "copies";
}

/* Blackwell's and AMD's products read fp8 either way round (TransformerEngine,
 * transformer_engine/pytorch/utils.py: is_non_tn_fp8_gemm_supported); fine-tuning does not keep the
 * transposed ones (disable_parameter_transpose_cache: NVIDIA/NeMo, scripts/performance/llm/
 * finetune_llama3_70b.py; mlcommons/training_results_v5.1, megatron_gpt_peft_tuning_config.yaml). */
static bool has_one_copy(const cs_point *point)
{
    static const char *const known[] = {"b200", "b300", "gb200", "gb300", "mi"};
    bool one = (is_megatron(point) && point->options->lora) || point->options->float8_allgather;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        one |= is_type(point, "fp8") &&
               strncmp(cs_point_rules_gpu(point), known[i], strlen(known[i])) == 0;
    return one;
}

static void write_narrow(const cs_point *point, FILE *out)
{
    fprintf(out, "\"narrow_weights\": \"%s\"", narrow_weights(point));
    if (has_one_copy(point))
        fputs(", \"narrow_copies\": 1", out);
    if (contains(point->framework, "torch"))
        fputs(", \"narrow_inputs\": false", out);
}

/* ---- the section ---- */

/* Frameworks whose tensors are PyTorch's. */
static bool is_pytorch(const cs_point *point)
{
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
    fputs("\"fused\": [], \"weight_gradients\": \"in_place\", \"libraries\": [], "
          "\"routed_weights\": \"rows\", \"weight_buffer\": false, \"allocator\": \"none\"}",
          out);
}

void cs_point_rules_memory(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    fputs("\"memory\": {", out);
    if (is_narrow(point) && (is_pytorch(point) || is_xla(point))) {
        write_narrow(point, out);
        fputs(", ", out);
    }
    if (!is_pytorch(point)) {
        write_nothing(out);
        return;
    }
    write_fused(point, out);
    fprintf(out, ", \"loss\": \"%s\"", loss_steps(rules));
    fprintf(out, ", \"weight_gradients\": \"%s\", ", weight_gradients(point));
    write_libraries(point, out);
    if (is_megatron(point) && point->args && !has_transformer_engine(point))
        fputs(", \"attention_buffer\": true", out);
    if (has_flash_attention(point))
        fputs(", \"attention_copy\": true", out);
    write_buffers(point, out);
    if (flash_multiprocessors(point) > 0)
        fprintf(out, ", \"deterministic_multiprocessors\": %u", flash_multiprocessors(point));
    if (is_megatron(point) && point->model->experts > 0)
        fputs(", \"routed_weights\": \"features\"", out);
    if (is_megatron(point) && (point->parallel->zero == 1 || point->parallel->zero == 2))
        fputs(", \"weight_buffer\": true", out);
    fprintf(out, ", \"allocator\": \"%s\"}", has_measured(point->measured) ? "pytorch" : "none");
}
