/* Rules for the section "schedule": which order, and which blocks make a stage. */
#include "sim/recipe/point-layout.h"

#include <string.h>

typedef struct order {
    const char *name; /* in points */
    const char *kind; /* here */
    const char *note; /* how the two differ */
} order;

/* PipeDream's is not among them: without a flush one step shows it filling and draining. */
static const order orders[] = {
    {"1f1b", "1f1b", NULL},
    {"interleaved_1f1b", "interleaved_1f1b", NULL},
    {"gpipe", "gpipe", NULL},
    {"nf1b", "nf1b", NULL},
    {"zb-1p", "zb_h1", "zb_h1, the paper's schedule by hand, in place of zb-1p, found by search"},
    {"zb-2p", "zb_h2", "zb_h2, the paper's schedule by hand, in place of zb-2p, found by search"},
    {"zb-v", "zb_v",
     "zb_v, the order for passes of equal times, in place of zb-v, found by search"},
    {"dualpipe", "dualpipe_v", NULL}, /* a half of it: cs_point_rules_halve */
};

static bool is_vee(const char *schedule)
{
    return strcmp(schedule, "zb-v") == 0 || strcmp(schedule, "dualpipe") == 0;
}

uint32_t cs_point_rules_chunks(const cs_point *point)
{
    return is_vee(point->schedule) && point->parallel->vpp == 1 ? 2 : point->parallel->vpp;
}

void cs_point_rules_halve(cs_point_rules *rules, cs_point_parallel *mesh, cs_point_batch *batch)
{
    if (strcmp(rules->point->schedule, "dualpipe") != 0)
        return;
    if (rules->point->options->profiled_ms)
        cs_point_rules_miss(rules, "measured passes of the schedule dualpipe");
    if (mesh->pp % 2 != 0 || batch->micro_batches % 2 != 0) {
        cs_point_rules_miss(rules, "stated: ranks and micro-batches that two directions divide");
        return;
    }
    mesh->pp /= 2;
    mesh->dp *= 2;
    batch->micro_batches /= 2;
    cs_point_rules_assume(rules, "DualPipe as two replicas of dualpipe_v, each on half the ranks");
}

/* Buckets in which replicas of whole models reduce gradients while the backward still runs.
 * PyTorch's DDP has 25 MiB (Li et al., VLDB 2020, section 3.2.3, and the default of bucket_cap_mb).
 * LiBai has collectives in the stream of computing only with tensor or pipeline parallelism
 * (Oneflow-Inc/libai at 072efeb, libai/models/utils/graph_base.py: enable_use_compute_stream), and
 * fuses up to 16 MB of them (configs/common/train.py: nccl_fusion_threshold_mb). */
static const char *bucket_of(const cs_point *point)
{
    const char *framework = point->framework ? point->framework : "";
    if (strstr(framework, "DDP"))
        return "25 MiB";
    return strcmp(framework, "LiBai") == 0 ? "16 MiB" : "0 B";
}

static void write_replicas(const cs_point *point, FILE *out)
{
    fprintf(out, "\"kind\": \"dp\", \"micro_batches\": %u, \"bucket\": \"%s\"",
            cs_point_rules_micro_batches(point), bucket_of(point));
}

static uint32_t or_one(uint32_t n)
{
    return n > 0 ? n : 1;
}

/* ---- stages ---- */

static uint32_t blocks_given(const cs_point *point, const char *argument)
{
    const cJSON *given = cs_point_rules_argument(point, argument);
    return cJSON_IsNumber(given) && given->valueint > 0 ? (uint32_t)given->valueint : 0;
}

/* Megatron-LM's arguments for the blocks of the first and the last stage: the others have equally
 * many. False where they are not given, or leave what does not divide. */
static bool find_ends(const cs_point *point, uint32_t *first, uint32_t *middle)
{
    const uint32_t given = blocks_given(point, "decoder-first-pipeline-num-layers");
    const uint32_t last = blocks_given(point, "decoder-last-pipeline-num-layers");
    const uint32_t stages = point->parallel->pp, layers = point->model->layers;
    const uint32_t others = stages - (given > 0) - (last > 0);
    if (given + last == 0 || cs_point_rules_chunks(point) > 1 || others == 0 ||
        given + last >= layers || (layers - given - last) % others != 0)
        return false;
    *middle = (layers - given - last) / others;
    *first = given > 0 ? given : *middle;
    return true;
}

/* Blocks of stages: equal, or with a block less in the first and the last one, which have the
 * embedding and the head. False where neither is possible, and for encoders with decoders, whose
 * blocks are of two kinds. */
static bool find_blocks(const cs_point *point, uint32_t *most, bool *less)
{
    const uint32_t stages = point->parallel->pp * cs_point_rules_chunks(point);
    const uint32_t layers = point->model->layers;
    *less = point->options->first_last_stage_one_layer_less ||
            (layers % stages != 0 && (layers + 2) % stages == 0);
    *most = (layers + (*less ? 2 : 0)) / stages;
    return strncmp(point->model->kind, "encoder-decoder", strlen("encoder-decoder")) != 0 &&
           *most * stages == layers + (*less ? 2 : 0) && *most > 0;
}

static void write_layout(const cs_point_layout *layout, FILE *out)
{
    fputs(", \"partition\": [", out);
    for (uint32_t s = 1; s < layout->n_stages; s++)
        fprintf(out, "%s%u", s > 1 ? ", " : "", layout->first[s]);
    fputs("]", out);
}

/* The first layer of each stage but the first; layer 0 is the embedding. */
static void write_partition(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const uint32_t stages = point->parallel->pp * cs_point_rules_chunks(point);
    const bool profiled = point->options->profiled_ms;
    uint32_t most = 1, ahead = 0, first = 0;
    bool less = false;
    const bool ends = !profiled && find_ends(point, &ahead, &most);
    if (!profiled && !ends && !find_blocks(point, &most, &less)) {
        cs_point_rules_assume(rules, "stages of equal time, where blocks do not divide equally");
        return;
    }
    fputs(", \"partition\": [", out);
    for (uint32_t s = 1; s < stages; s++) {
        first += s == 1 && ends ? ahead : most - (s == 1 && less ? 1 : 0);
        fprintf(out, "%s%u", s > 1 ? ", " : "", first + (profiled ? 0 : 1));
    }
    fputs("]", out);
}

static void write_pipeline(cs_point_rules *rules, const order *found, FILE *out)
{
    const cs_point *point = rules->point;
    const bool vee = is_vee(point->schedule);
    const bool several = vee || strcmp(found->kind, "interleaved_1f1b") == 0;
    if ((point->parallel->vpp > 1 && !several) || (vee && point->parallel->vpp > 2))
        cs_point_rules_miss(rules, "several stages a rank in the schedule %s", point->schedule);
    if (found->note)
        cs_point_rules_assume(rules, "%s", found->note);
    fprintf(out, "\"kind\": \"%s\", \"micro_batches\": %u", found->kind,
            or_one(cs_point_rules_micro_batches(point)));
    if (strcmp(found->kind, "interleaved_1f1b") == 0)
        fprintf(out, ", \"stages_per_device\": %u", point->parallel->vpp);
    cs_point_layout layout;
    if (!cs_point_layout_of(point, &layout) && layout.n_stages > 0)
        write_layout(&layout, out);
    else if (point->model->layers > 0)
        write_partition(rules, out);
}

/* 1F1B of several stages a rank is the interleaved one, which of one stage a rank is 1F1B. */
static const order *find_order(const cs_point *point)
{
    const bool several = point->parallel->vpp > 1;
    const bool is_either =
        strcmp(point->schedule, "1f1b") == 0 || strcmp(point->schedule, "interleaved_1f1b") == 0;
    const char *name = !is_either ? point->schedule : several ? "interleaved_1f1b" : "1f1b";
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
        if (strcmp(orders[i].name, name) == 0)
            return &orders[i];
    return NULL;
}

void cs_point_rules_schedule(cs_point_rules *rules, FILE *out)
{
    const cs_point *point = rules->point;
    const order *found = find_order(point);
    fputs("\"schedule\": {", out);
    if (point->parallel->pp > 1 && found && strcmp(found->kind, "nf1b") == 0 &&
        cs_point_rules_divides(point))
        cs_point_rules_miss(rules,
                            "the schedule nf1b of ranks that divide a stage, or of replicas");
    else if (point->parallel->pp > 1 && found)
        write_pipeline(rules, found, out);
    else if (point->parallel->pp > 1)
        cs_point_rules_miss(rules, "the schedule %s", point->schedule);
    else if (point->parallel->dp > 1 && !cs_point_rules_divides(point))
        write_replicas(point, out);
    else
        fprintf(out, "\"kind\": \"sequential\", \"micro_batches\": %u",
                or_one(cs_point_rules_micro_batches(point)));
    fputs("}", out);
}
