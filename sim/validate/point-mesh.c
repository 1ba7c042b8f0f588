/* Rules for the section "parallel": over how many ranks layers, samples and states are divided. */
#include "sim/validate/point-rules.h"

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

/* Megatron-LM's buckets have 40 million gradients at least, or a million per replica
 * (megatron/core/distributed/distributed_data_parallel.py); they are reduced while the backward
 * still runs only where that is switched on. */
static uint64_t bucket(const cs_point *point)
{
    const uint64_t bytes =
        cs_point_rules_sums_in_fp32(point) || strcmp(point->precision, "fp32") == 0 ? 4 : 2;
    const uint64_t replicas = (uint64_t)point->parallel->dp * point->parallel->cp;
    const uint64_t gradients = replicas > 40 ? replicas * 1000000 : 40000000;
    const bool overlaps =
        point->options->dp_overlap || cs_point_rules_argument(point, "overlap-grad-reduce");
    return overlaps && point->parallel->zero < 3 ? gradients * bytes : 0;
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

void cs_point_rules_mesh(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const cs_point_parallel *mesh = point->parallel;
    fprintf(out,
            "\"parallel\": {\"tensor\": %u, \"sequence_parallel\": %s, \"context\": %u, "
            "\"pipeline\": %u, \"data\": %u, \"expert\": %u, \"zero\": %u",
            mesh->tp, mesh->sp && mesh->tp > 1 ? "true" : "false", mesh->cp, mesh->pp, mesh->dp,
            mesh->ep, mesh->zero);
    if (mesh->cp > 1)
        fprintf(out, ", \"context_method\": \"%s\"", context_method(mesh->cp_comm));
    if (mesh->ep > 1 && mesh->etp > 0)
        fprintf(out, ", \"expert_tensor\": %u", mesh->etp);
    if (mesh->zero > 0 && shard(point) > 0)
        fprintf(out, ", \"shard\": %u", shard(point));
    if (mesh->zero >= 2)
        fputs(", \"accumulate\": false", out);
    if (bucket(point) > 0)
        fprintf(out, ", \"bucket\": %llu", (unsigned long long)bucket(point));
    fputs("}", out);
}
