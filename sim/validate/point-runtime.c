/* Rules for the section "runtime": what trained, and what is switched on of it. */
#include "sim/validate/point-rules.h"

#include <string.h>

/* Beginnings of what frameworks are called in points, the longer ones first. */
static const struct {
    const char *framework, *runtime, *note;
} frameworks[] = {
    {"Megatron-LM (zero-bubble", "megatron-lm-2021", NULL},
    {"Megatron-LM (lts", "megatron-core", NULL},
    {"Megatron-LM (dev", "megatron-core", NULL},
    {"Megatron-LM 2", "megatron-core", NULL},
    {"Megatron-DeepSpeed", "deepspeed", NULL},
    {"Megatron-Bridge", "megatron-core", NULL},
    {"Megatron", "megatron-lm-2021", NULL},
    {"NeMo", "megatron-core", NULL},
    {"LiBai", "megatron-lm-2021", "LiBai has the fused kernels of Megatron-LM"},
    {"Composer", "llm-foundry", NULL},
    {"PyTorch FSDP", "pytorch-fsdp", NULL},
    {"PyTorch", "pytorch-ddp", NULL},
    {"torchgpipe", "pytorch-ddp", NULL},
    {"torchtitan", "torchtitan", NULL},
    {"MaxText", "megatron-core", "XLA fuses what TransformerEngine does"},
    {"PaxML", "megatron-core", "XLA fuses what TransformerEngine does"},
};

/* Submissions to MLPerf are called by who made them; they train with NeMo. */
bool cs_point_rules_submission(const cs_point *point)
{
    return strncmp(point->dataset, "mlperf", strlen("mlperf")) == 0;
}

const char *cs_point_rules_runtime(const cs_point *point, const char **note)
{
    const char *framework = point->framework ? point->framework : "";
    *note = NULL;
    for (size_t i = 0; i < sizeof(frameworks) / sizeof(frameworks[0]); i++) {
        if (strncmp(framework, frameworks[i].framework, strlen(frameworks[i].framework)) != 0)
            continue;
        *note = frameworks[i].note;
        return frameworks[i].runtime;
    }
    return cs_point_rules_submission(point) ? "megatron-core" : "ideal";
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
    fprintf(out, "\"runtime\": {\"name\": \"%s\"", name);
    if (point->options->compile)
        fputs(", \"fused\": true", out);
    if (point->options->cuda_graphs && !cJSON_IsFalse(point->options->cuda_graphs) &&
        (!cJSON_IsString(point->options->cuda_graphs) ||
         strcmp(point->options->cuda_graphs->valuestring, "none") != 0))
        fputs(", \"cuda_graphs\": true", out);
    fputs("}", out);
}
