/* Rules for the section "parallel": over how many ranks layers, samples and states are divided. */
#include "sim/recipe/point-rules.h"

#include <string.h>

/* Replicas of one whole device each are the schedule dp's. */
bool cs_point_rules_divides(const cs_point *point)
{
    const cs_point_parallel *mesh = point->parallel;
    return mesh->tp > 1 || mesh->cp > 1 || mesh->ep > 1 || mesh->zero > 0 ||
           (mesh->pp > 1 && mesh->dp > 1);
}

static const char *context_method(const char *words)
{
    if (words && strstr(words, "a2a"))
        return "all_to_all";
    return words && strstr(words, "gather") ? "all_gather" : "ring";
}

/* NVIDIA's submissions to MLPerf, which others train with, switch it on (mlcommons/
 * training_results_v5.1, NVIDIA/benchmarks/llama31_8b/implementations/nemo: overlap_grad_reduce). */
bool cs_point_rules_overlaps(const cs_point *point)
{
    return point->options->dp_overlap || cs_point_rules_argument(point, "overlap-grad-reduce") ||
           cs_point_rules_submission(point);
}

/* Megatron-LM's buckets have 40 million gradients at least, or a million per replica
 * (megatron/core/distributed/distributed_data_parallel.py); they are reduced while the backward
 * still runs only where that is switched on. */
static uint64_t bucket(const cs_point *point)
{
    const uint64_t bytes =
        cs_point_rules_sums_in_fp32(point) || strcmp(point->precision, "fp32") == 0 ? 4 : 2;
    const uint64_t replicas = (uint64_t)point->parallel->dp * point->parallel->cp;
    const uint64_t gradients = replicas > 40 ? replicas * 1000000 : 40000000;
    return cs_point_rules_overlaps(point) && point->parallel->zero < 3 ? gradients * bytes : 0;
}

/* Replicas over which ZeRO divides; 0: all. With several instances of Megatron-LM's distributed
 * optimizer each has a part of them (--num-distributed-optimizer-instances). */
static uint32_t shard(const cs_point *point)
{
    const cs_point_parallel *mesh = point->parallel;
    const cJSON *given = cs_point_rules_argument(point, "num-distributed-optimizer-instances");
    const uint32_t instances =
        cJSON_IsNumber(given) && given->valueint > 1 ? (uint32_t)given->valueint : 1;
    return mesh->fsdp_group > 0 || instances == 1 ? mesh->fsdp_group
                                                  : mesh->dp * mesh->cp / instances;
}

static bool starts(const char *text, const char *with)
{
    return text && strncmp(text, with, strlen(with)) == 0;
}

/* With scales of rows torchtitan has the usual tensor parallelism, whose gathers are in bf16; with
 * those of tensors torchao's, which casts before (torchtitan/models/llama3/infra/parallelize.py:
 * enable_float8_tensorwise_tp). */
static bool gathers_wide(const cs_point *point)
{
    return starts(point->framework, "torchtitan") && point->parallel->tp > 1 &&
           strcmp(point->precision, "fp8-rowwise") == 0;
}

static bool contains(const char *text, const char *word)
{
    return text && strstr(text, word);
}

/* NVIDIA's recipes for Megatron-Bridge that send each copy of a token by itself (NVIDIA-NeMo/
 * Megatron-Bridge, scripts/performance/configs: moe_token_dispatcher_type and
 * moe_flex_dispatcher_backend of the presets, as of 26.02): Qwen3 235B in nodes of eight, gpt-oss
 * in bf16 with experts in several nodes, and all that drop tokens (configs/deepseek: "Using token
 * drop, disabling DeepEP"). The others take DeepEP or HybridEP. */
static bool sends_each_copy(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    const cs_point_model *model = point->model;
    return cs_point_rules_drops_tokens(rules) ||
           (contains(model->name, "235b") && !cs_point_rules_rack(point)) ||
           (contains(model->name, "gpt-oss") && strcmp(point->precision, "bf16") == 0 &&
            point->parallel->ep > 8);
}

/* All of Megatron-Bridge's recipes have expert_tensor_parallel_size 1. */
uint32_t cs_point_rules_expert_tensor(const cs_point *point)
{
    return point->parallel->etp > 0                      ? point->parallel->etp
           : starts(point->framework, "Megatron-Bridge") ? 1
                                                         : 0;
}

/* As the option says; else as Megatron-LM's argument; else as in recipes. */
static bool sends_once(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    const char *argument =
        cJSON_GetStringValue(cs_point_rules_argument(point, "moe-token-dispatcher-type"));
    const char *given = point->options->moe_dispatcher ? point->options->moe_dispatcher : argument;
    if (point->parallel->ep < 2 || given || point->args)
        return point->parallel->ep > 1 && given && strcmp(given, "flex") == 0;
    return starts(point->framework, "Megatron-Bridge") && !sends_each_copy(rules);
}

/* Above, one device is simulated for all that do the same, also if their ways differ. */
enum { EACH_UP_TO = 64 };

void cs_point_rules_mesh(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const cs_point_parallel *mesh = point->parallel;
    fprintf(out,
            "\"parallel\": {\"tensor\": %u, \"sequence_parallel\": %s, \"context\": %u, "
            "\"pipeline\": %u, \"data\": %u, \"expert\": %u, \"zero\": %u",
            mesh->tp, mesh->sp && mesh->tp > 1 ? "true" : "false", mesh->cp, mesh->pp, mesh->dp,
            mesh->ep, mesh->zero);
    /* whose runtime does, but nobody says that it does */
    if (mesh->tp > 1 && mesh->pp > 1 && !mesh->sp && starts(point->framework, "LiBai"))
        fputs(", \"scatter_gather\": false", out);
    if (gathers_wide(point))
        fputs(", \"narrow_gathers\": false", out);
    if (mesh->cp > 1)
        fprintf(out, ", \"context_method\": \"%s\"", context_method(mesh->cp_comm));
    if (mesh->ep > 1 && cs_point_rules_expert_tensor(point) > 0)
        fprintf(out, ", \"expert_tensor\": %u", cs_point_rules_expert_tensor(point));
    if (sends_once(rules)) {
        cs_point_rules_assume(rules, "tokens are sent once to a node, as by DeepEP and HybridEP");
        fputs(", \"dispatcher\": \"once_per_node\"", out);
    }
    if (mesh->zero > 0 && shard(point) > 0)
        fprintf(out, ", \"shard\": %u", shard(point));
    if (mesh->zero >= 2 && !starts(point->framework, "torchtitan"))
        fputs(", \"accumulate\": false", out);
    if (cs_point_rules_submission(point) && mesh->dp > 1)
        cs_point_rules_assume(rules, "gradients are reduced beside the backward in submissions");
    if (point->hardware->gpus > EACH_UP_TO)
        fputs(", \"fold\": \"slowest\"", out);
    /* without overlap in place of the runtime's */
    if (bucket(point) > 0 || cs_point_rules_core(point))
        fprintf(out, ", \"bucket\": %llu", (unsigned long long)bucket(point));
    fputs("}", out);
}
