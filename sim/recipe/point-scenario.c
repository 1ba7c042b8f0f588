#include "sim/base/text-stream.h"
#include "sim/base/text.h"
#include "sim/recipe/point-layout.h"
#include "sim/recipe/point-rules.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cs_point_scenario_finish(cs_point_scenario *made)
{
    cJSON_Delete(made->document);
    cs_arena_finish(&made->arena);
    *made = (cs_point_scenario){0};
}

/* ---- notes ---- */

/* Of a text that was cut off: a part of a character at its end. */
static void cut_character(char *text)
{
    size_t left = strlen(text), n;
    while ((n = cs_text_character(text, left)) > 0) {
        text += n;
        left -= n;
    }
    *text = '\0';
}

static void add_note(cs_point_rules *rules, const char **list, uint32_t *n, const char *format,
                     va_list arguments)
{
    char text[256];
    if (cs_text_formatv(text, sizeof(text), format, arguments) >= (int)sizeof(text))
        cut_character(text);
    for (uint32_t i = 0; i < *n; i++)
        if (strcmp(list[i], text) == 0)
            return;
    const char *copy = cs_arena_copy(&rules->made->arena, text);
    rules->full |= !copy;
    if (copy && *n < CS_SCENARIO_NOTES)
        list[(*n)++] = copy;
}

void cs_point_rules_miss(cs_point_rules *rules, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_note(rules, rules->made->missing, &rules->made->n_missing, format, arguments);
    va_end(arguments);
}

void cs_point_rules_assume(cs_point_rules *rules, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_note(rules, rules->made->assumed, &rules->made->n_assumed, format, arguments);
    va_end(arguments);
}

/* ---- what several rules ask ---- */

bool cs_point_rules_megatron(const cs_point *point)
{
    const char *framework = point->framework ? point->framework : "";
    return strncmp(framework, "Megatron", strlen("Megatron")) == 0 ||
           strncmp(framework, "NeMo", strlen("NeMo")) == 0;
}

const cJSON *cs_point_rules_argument(const cs_point *point, const char *name)
{
    return cs_json_member(point->args, name);
}

uint32_t cs_point_rules_micro_batches(const cs_point *point)
{
    const cs_point_batch *batch = point->batch;
    const uint64_t samples = (uint64_t)batch->micro * point->parallel->dp;
    if (batch->micro_batches > 0)
        return batch->micro_batches;
    return samples > 0 && batch->global % samples == 0 ? (uint32_t)(batch->global / samples) : 0;
}

/* ---- what a point has to state ---- */

static uint32_t expert_tensor(const cs_point *point)
{
    const uint32_t given = cs_point_rules_expert_tensor(point);
    return given > 0 ? given : point->parallel->tp;
}

static void check_source(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    const cs_point_parallel *mesh = point->parallel;
    const cs_point_batch *batch = point->batch;
    const uint64_t ranks = (uint64_t)mesh->tp * mesh->pp * mesh->dp * mesh->cp;
    const uint64_t samples =
        (uint64_t)cs_point_rules_micro_batches(point) * batch->micro * mesh->dp;
    if (cs_point_rules_argument(point, "inference-max-seq-length"))
        cs_point_rules_miss(rules, "inference");
    else if (batch->global == 0 || samples == 0)
        cs_point_rules_miss(rules, "stated: batch sizes");
    else if (samples != batch->global)
        cs_point_rules_miss(rules, "stated: batch sizes that agree");
    if (ranks != point->hardware->gpus)
        cs_point_rules_miss(rules, "stated: a mesh of as many ranks as GPUs");
    else if (mesh->ep > 1 && ranks / mesh->pp % ((uint64_t)mesh->ep * expert_tensor(point)) != 0)
        cs_point_rules_miss(rules, "stated: a mesh that expert ranks divide");
    /* blocks, and what is in front of and behind them */
    if ((uint64_t)mesh->pp * cs_point_rules_chunks(point) > (uint64_t)point->model->layers + 2)
        cs_point_rules_miss(rules, "stated: at most as many stages as layers");
}

static void check_group(cs_point_rules *rules)
{
    const cs_point_parallel *mesh = rules->point->parallel;
    const uint64_t replicas = (uint64_t)mesh->dp * mesh->cp;
    if (mesh->zero > 0 && mesh->fsdp_group > 0 && replicas % mesh->fsdp_group != 0)
        cs_point_rules_miss(rules, "stated: a group of FSDP that divides the replicas");
}

/* Ranks that divide tokens, features and experts. */
static void check_ranks(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    const cs_point_parallel *mesh = point->parallel;
    const uint64_t tokens = (uint64_t)mesh->cp * (mesh->sp ? mesh->tp : 1);
    if (strcmp(point->model->kind, "cnn") == 0 && (mesh->cp > 1 || mesh->tp > 1))
        cs_point_rules_miss(rules, "ranks that divide tokens or features of networks without them");
    else if (tokens > 1 && point->model->seq % tokens != 0)
        cs_point_rules_miss(rules, "stated: a sequence that ranks divide");
    if (mesh->tp > 1 && (point->model->ffn % mesh->tp != 0 ||
                         point->model->hidden % mesh->tp != 0 || point->model->vocab < mesh->tp))
        cs_point_rules_miss(rules, "stated: features that ranks divide");
    if (mesh->tp > 1 && point->options->lora && 16 % mesh->tp != 0)
        cs_point_rules_miss(rules, "ranks that do not divide adapters of rank 16");
    if (mesh->ep > 1 && (strcmp(point->model->kind, "decoder-moe") != 0 ||
                         point->model->experts == 0 || point->model->experts % mesh->ep != 0))
        cs_point_rules_miss(rules, "stated: experts that ranks divide");
}

/* All the heads together are as wide as a token, unless the point states how wide one is, which BERT
 * has no choice of. */
static void check_width(cs_point_rules *rules)
{
    const cs_point_model *model = rules->point->model;
    const bool is_stated = model->head_dim > 0;
    if (!is_stated && model->heads > 0 && model->hidden % model->heads != 0)
        cs_point_rules_miss(rules, "stated: heads that divide the hidden size");
    if (is_stated && (uint64_t)model->head_dim * model->heads != model->hidden &&
        cs_point_rules_family(rules) == CS_FAMILY_BERT)
        cs_point_rules_miss(rules, "heads of another width than hidden / heads in encoders");
}

/* Tensor-parallel ranks split the heads of attention; with all-to-alls the context-parallel ranks
 * split the heads of each tensor-parallel rank again. More ranks than heads of keys and values hold
 * copies of these. */
static void check_heads(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    const cs_point_model *model = point->model;
    const cs_point_parallel *mesh = point->parallel;
    const uint32_t keys = model->kv_heads > 0 ? model->kv_heads : model->heads;
    const bool all_to_all = mesh->cp > 1 && mesh->cp_comm && strstr(mesh->cp_comm, "a2a");
    const uint64_t ranks = (uint64_t)mesh->tp * (all_to_all ? mesh->cp : 1);
    const bool shares_keys = !all_to_all && keys > 0 && ranks % keys == 0;
    if (ranks > 1 && (model->heads % ranks != 0 || (keys % ranks != 0 && !shares_keys)))
        cs_point_rules_miss(rules, "more ranks than heads, or heads that ranks do not divide");
    /* nor has Megatron-LM (megatron/training/arguments.py: sequence_parallel) */
    if (model->experts > 0 && mesh->tp > 1 && !mesh->sp)
        cs_point_rules_miss(rules, "experts and tensor parallelism without sequence parallelism");
}

/* ---- what the simulator does not have ---- */

static bool is_flag(const cs_point *point, const char *name)
{
    return cJSON_IsTrue(cs_point_rules_argument(point, name));
}

/* Megatron-LM has weights and activations in float32 unless bf16 or fp16 is among its arguments;
 * fp8-format is of products only (megatron/training/arguments.py, params_dtype). */
static bool is_wide_with_fp8(const cs_point *point)
{
    return cs_point_rules_argument(point, "fp8-format") && !is_flag(point, "bf16") &&
           !is_flag(point, "fp16");
}

static void check_options(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    for (uint32_t i = 0; i < point->unread.n; i++)
        cs_point_rules_assume(rules, "the option \"%s\" changes nothing: it is not known",
                              cs_point_text(&point->unread, i));
    if (point->options->quantization)
        cs_point_rules_miss(rules, "quantised weights (%s)", point->options->quantization);
    if (is_flag(point, "defer-embedding-wgrad-compute"))
        cs_point_rules_miss(rules, "gradients of the last matrix that are deferred");
    if (cs_point_rules_muon(point) && point->parallel->zero > 1)
        cs_point_rules_miss(rules, "the optimizer Muon where gradients or weights are divided");
    if (cs_point_rules_muon(point) && strcmp(point->model->kind, "cnn") == 0)
        cs_point_rules_miss(rules, "the optimizer Muon of convolutions");
    if (is_wide_with_fp8(point))
        cs_point_rules_miss(rules, "fp8 products of float32 activations");
    if (strncmp(point->recompute, "block:", strlen("block:")) == 0)
        cs_point_rules_miss(rules, "full recomputation of some blocks");
}

/* ---- the scenario ---- */

/* TransformerEngine's user buffers and PyTorch's asynchronous tensor parallelism send chunk after
 * chunk beside the product, which takes 1.19 times as long meanwhile (Lee et al., arXiv
 * 2507.03114): of what is sent beside it, 1 / 1.19 is hidden. */
static bool overlaps_tensor(const cs_point *point)
{
    return point->parallel->tp > 1 && (point->options->tp_overlap || point->options->async_tp);
}

/* Recipes that graph whole iterations let all-to-alls of a micro-batch go on beside layers of
 * another, which take 1.19 times as long, and so do NVIDIA's for Hopper with experts in several nodes
 * and several stages a rank (NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs: a2a_1f1b of
 * DeepSeek-V3, moe_a2a_overlap of Qwen3 235B). Of DualPipe the schedule itself says it. */
static bool overlaps_experts(const cs_point *point)
{
    if (strcmp(point->schedule, "dualpipe") == 0)
        return false;
    if (point->parallel->ep > 1 && cs_point_rules_graphs_iterations(point))
        return true;
    const double capability = cs_point_rules_facts(point).capability;
    return point->parallel->ep > 8 && point->parallel->vpp > 1 && point->framework &&
           strncmp(point->framework, "Megatron-Bridge", strlen("Megatron-Bridge")) == 0 &&
           capability >= 9 && capability < 10;
}

/* Of the all-to-alls, the part that is hidden. Without a pipeline the first forward and the last
 * backward of a step have no other micro-batch beside them (Megatron-LM, megatron/core/
 * pipeline_parallel/combined_1f1b.py, combined_1f1b_schedule_for_no_pipelining). */
static double hidden_of_experts(const cs_point *point)
{
    const double micro_batches = cs_point_rules_micro_batches(point);
    const double beside =
        point->parallel->pp > 1 || !(micro_batches > 0) ? 1 : (micro_batches - 1) / micro_batches;
    return overlaps_experts(point) ? 0.84 * beside : 0;
}

static void write_scenario(cs_point_rules *rules, FILE *out)
{
    fputs("{\"schema_version\": 1, \"name\": \"\", ", out);
    check_source(rules);
    check_group(rules);
    if (rules->point->options->profiled_ms) {
        const cs_point_parallel *mesh = rules->point->parallel;
        if (mesh->tp > 1 || mesh->cp > 1 || mesh->ep > 1)
            cs_point_rules_miss(rules, "measured passes of ranks that divide a stage");
    } else {
        check_ranks(rules);
        check_width(rules);
        check_heads(rules);
    }
    if (rules->point->options->profiled_ms)
        cs_point_rules_profile(rules, out);
    else
        cs_point_rules_model(rules, out);
    fputs(", ", out);
    if (!rules->point->options->profiled_ms) {
        cs_point_rules_write_runtime(rules, out);
        fputs(", ", out);
    }
    cs_point_rules_platform(rules, out);
    fputs(", ", out);
    check_options(rules);
    cs_point_rules_offload(rules, out);
    if (cs_point_rules_divides(rules->point)) {
        cs_point_rules_mesh(rules, out);
        fprintf(out, ", \"collectives\": {\"fidelity\": \"analytic\", \"sharing\": \"max_min\"%s",
                overlaps_tensor(rules->point) ? ", \"tensor_overlap\": 0.84" : "");
        if (hidden_of_experts(rules->point) > 0)
            fprintf(out, ", \"expert_overlap\": %.4g", hidden_of_experts(rules->point));
        fputs("}, ", out);
        cs_point_rules_assume(rules, "collectives are delays, as when nothing else runs");
    }
    if (!rules->point->options->profiled_ms) {
        cs_point_rules_memory(rules, out);
        fputs(", ", out);
    }
    cs_point_rules_schedule(rules, out);
    fputs("}", out);
}

static cs_status parse(const cs_point *point, const char *text, size_t length,
                       cs_point_scenario *made, cs_error *error)
{
    cJSON *document;
    CS_TRY(cs_json_parse(point->id, text, length, &document, error));
    cJSON *name = cJSON_CreateString(point->id);
    if (!name) {
        cJSON_Delete(document);
        return cs_error_no_memory(error);
    }
    cs_json_replace(document, cJSON_GetObjectItemCaseSensitive(document, "name"), name);
    made->document = document;
    return CS_OK;
}

cs_status cs_point_scenario_make(const cs_point *point, cs_point_scenario *made, cs_error *error)
{
    cs_point_parallel mesh = *point->parallel;
    cs_point_batch batch = *point->batch;
    cs_point alike = *point;
    cs_point_rules rules = {.point = &alike, .made = made};
    char *text = NULL;
    size_t length = 0;
    FILE *out = cs_text_stream(&text, &length);
    if (!out)
        return cs_error_no_memory(error);
    alike.parallel = &mesh;
    alike.batch = &batch;
    cs_point_rules_halve(&rules, &mesh, &batch);
    cs_point_rules_layout(&rules, &mesh);
    write_scenario(&rules, out);
    cs_status status = fclose(out) == 0 && !rules.full ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK && made->n_missing == 0)
        status = parse(point, text, length, made, error);
    free(text);
    return status;
}
