/* Which blocks make the stages of a pipeline: as the options stage_layers, stages_with_parts and
 * last_stage_layers state it, or Megatron-LM's arguments, else equally many each.
 *
 * Megatron Core's argument pipeline-model-parallel-layout (NVIDIA/Megatron-LM, megatron/core/
 * transformer/pipeline_parallel_layer_layout.py) has a letter for each part of the network, E for
 * the embedding, t for a block, m for a module of multi-token prediction, L for the loss with the
 * matrix in front of it, and | between stages. "t*3" means three letters, "(tt|)*6" for six groups;
 * commas and blanks mean nothing. Stage s is on rank s mod P. */
#include "sim/run/recipe/rules.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LETTERS = 1 << 16 };

/* The letters of a layout, one after the other. */
typedef struct letters {
    size_t n;
    char at[MOST_LETTERS];
} letters;

/* Reads the number after a *, if present, and repeats the letters from `first` on that many times.
 * False: the number is missing, or room is. */
static bool repeat(letters *to, size_t first, const char **text)
{
    const size_t n = to->n - first;
    char *end;
    if (**text != '*')
        return true;
    const unsigned long times = strtoul(*text + 1, &end, 10);
    if (end == *text + 1 || times == 0 || times > MOST_LETTERS ||
        n > (MOST_LETTERS - first) / times)
        return false;
    for (unsigned long i = 1; i < times; i++)
        memcpy(&to->at[first + i * n], &to->at[first], n);
    to->n = first + times * n;
    *text = end;
    return true;
}

/* Groups do not contain groups. */
static bool expand(const char *text, letters *to)
{
    size_t group = 0;
    bool in_group = false;
    while (*text) {
        const char letter = *text++;
        if (strchr(", \t\n", letter))
            continue;
        if (letter == '(' && !in_group) {
            group = to->n;
            in_group = true;
        } else if (letter == ')' && in_group) {
            in_group = false;
            if (*text != '*' || !repeat(to, group, &text))
                return false;
        } else if (strchr("EtmL|", letter) && to->n < MOST_LETTERS) {
            to->at[to->n++] = letter;
            if (!repeat(to, to->n - 1, &text))
                return false;
        } else {
            return false;
        }
    }
    return !in_group;
}

/* Returns what is wrong with a layout; NULL: nothing. */
static const char *read_layout(const cs_description *run, const letters *of, cs_stages *made)
{
    static const char order[] = "EtmL";
    uint32_t counts[4] = {0}, layers = 0;
    size_t reached = 0;
    bool ordered = true, empty = false;
    made->n = 1;
    made->first[0] = 0;
    for (size_t i = 0; i < of->n; i++) {
        if (of->at[i] == '|') {
            empty |= layers == made->first[made->n - 1] || made->n == CS_STAGES_MOST;
            if (!empty)
                made->first[made->n++] = layers;
            continue;
        }
        const size_t at = (size_t)(strchr(order, of->at[i]) - order);
        ordered &= at >= reached;
        reached = at;
        counts[at]++;
        layers++;
    }
    if (!ordered || counts[0] != 1 || counts[3] != 1)
        return "stated: a stage layout from the embedding to the loss";
    if (empty || layers == made->first[made->n - 1])
        return "stated: a stage layout without empty stages";
    if (made->n % run->parallel->pp != 0)
        return "stated: a stage layout that the ranks divide";
    if (counts[1] != run->model->layers || counts[2] != run->model->mtp_layers)
        return "stated: a stage layout of as many blocks as the network has";
    return NULL;
}

/* The same of numbers of blocks. Layer 0 is the embedding, the last one the head, which a last
 * stage without blocks has alone. */
static const char *read_blocks(const cs_description *run, cs_stages *made)
{
    const cs_description_options *options = run->options;
    const bool counts_parts = options->stages_with_parts.n > 0;
    const cs_list *given = counts_parts ? &options->stages_with_parts : &options->stage_layers;
    const uint32_t others = run->parallel->pp * run->parallel->vpp - 1;
    const uint32_t n = given->n > 0 ? given->n : others + 1, layers = run->model->layers;
    uint64_t next = counts_parts ? 0 : 1;
    if (n > CS_STAGES_MOST || (given->n == 0 && !(options->last_stage_layers <= layers)))
        return NULL;
    if (n % run->parallel->pp != 0)
        return "stated: as many stages as the ranks have";
    /* remaining blocks go to the first stages, one each */
    const uint32_t last = given->n > 0 ? 0 : (uint32_t)options->last_stage_layers;
    for (uint32_t s = 0; s < n; s++) {
        made->first[s] = s == 0 ? 0 : (uint32_t)next;
        next += given->n > 0  ? ((const uint32_t *)given->items)[s]
                : s == others ? last
                              : (layers - last) / others + (s < (layers - last) % others);
        if (s > 0 && made->first[s] == made->first[s - 1])
            return "stages without a layer";
    }
    if (next != UINT64_C(2) + layers - !counts_parts)
        return "stated: stages of as many blocks as the network has";
    if (made->first[n - 1] == UINT64_C(2) + layers)
        return "stages without a layer";
    made->n = n;
    return NULL;
}

void cs_rules_read_stages(cs_rules *rules, cs_description_parallel *mesh)
{
    const cs_description *run = rules->run;
    const char *text =
        cJSON_GetStringValue(cs_json_member(run->args, "pipeline-model-parallel-layout"));
    const char *wrong = NULL;
    if (mesh->pp < 2 || run->options->profiled_ms)
        return;
    letters *room = text ? calloc(1, sizeof(*room)) : NULL;
    if (!text)
        wrong = read_blocks(run, &rules->stages);
    else if (!room)
        rules->status = cs_error_no_memory(rules->error);
    else if (!expand(text, room))
        wrong = "stated: a stage layout from the embedding to the loss";
    else
        wrong = read_layout(run, room, &rules->stages);
    free(room);
    if (wrong) {
        cs_rules_miss(rules, "%s", wrong);
        rules->stages.n = 0;
        return;
    }
    const uint32_t each = rules->stages.n / mesh->pp;
    if (rules->stages.n > 0 && each != mesh->vpp) {
        cs_rules_assume(rules, "%u stages per rank, as the stated stages have it", each);
        mesh->vpp = each;
    }
    if (run->options->head_on_stage + 1 < rules->stages.n)
        cs_rules_assume(rules, "the head is on the last stage, next to the loss");
}

uint32_t cs_rules_chunks(const cs_description *run)
{
    const bool vee = strcmp(run->schedule, "zb-v") == 0 || strcmp(run->schedule, "dualpipe") == 0;
    return vee && run->parallel->vpp == 1 ? 2 : run->parallel->vpp;
}

void cs_rules_halve(cs_rules *rules, cs_description_parallel *mesh, cs_description_batch *batch)
{
    if (strcmp(rules->run->schedule, "dualpipe") != 0)
        return;
    if (rules->run->options->profiled_ms)
        cs_rules_miss(rules, "measured passes of the schedule dualpipe");
    if (mesh->pp % 2 != 0 || batch->micro_batches % 2 != 0) {
        cs_rules_miss(rules, "stated: ranks and micro-batches that two directions divide");
        return;
    }
    mesh->pp /= 2;
    mesh->dp *= 2;
    batch->micro_batches /= 2;
    cs_rules_assume(rules, "DualPipe as two replicas of dualpipe_v, each on half the ranks");
}

static uint32_t argument(const cs_description *run, const char *name)
{
    const cJSON *given = cs_json_member(run->args, name);
    return cJSON_IsNumber(given) && given->valueint > 0 ? (uint32_t)given->valueint : 0;
}

/* Blocks of the first, of a middle and of the last stage where nothing is stated but Megatron-LM's
 * arguments for the first and the last stage: the others have equally many. Else all stages have
 * equally many, or the first and the last one, which have the embedding and the head, one less.
 * False where none is possible, and for encoders with decoders, whose blocks are of two kinds. */
static bool share(const cs_description *run, uint32_t *first, uint32_t *middle)
{
    const uint32_t ahead = argument(run, "decoder-first-pipeline-num-layers");
    const uint32_t last = argument(run, "decoder-last-pipeline-num-layers");
    const uint32_t stages = run->parallel->pp * cs_rules_chunks(run), layers = run->model->layers;
    const uint32_t others = run->parallel->pp - (ahead > 0) - (last > 0);
    const bool less = run->options->first_last_stage_one_layer_less ||
                      (layers % stages != 0 && (layers + 2) % stages == 0);
    *first = *middle = 1;
    if (run->options->profiled_ms)
        return true;
    if (ahead + last > 0 && cs_rules_chunks(run) < 2 && others > 0 && ahead + last < layers &&
        (layers - ahead - last) % others == 0) {
        *middle = (layers - ahead - last) / others;
        *first = ahead > 0 ? ahead : *middle;
        return true;
    }
    *middle = (layers + (less ? 2 : 0)) / stages;
    *first = *middle - less;
    return strncmp(run->model->kind, "encoder-decoder", strlen("encoder-decoder")) != 0 &&
           *middle * stages == layers + (less ? 2 : 0) && *middle > 0;
}

/* The first layer of each stage but the first. */
void cs_rules_partition(cs_rules *rules)
{
    const cs_description *run = rules->run;
    const uint32_t stages =
        rules->stages.n > 0 ? rules->stages.n : run->parallel->pp * cs_rules_chunks(run);
    uint32_t first = 0, middle = 0;
    if (run->parallel->pp < 2 || run->model->layers == 0 || rules->made->n_missing > 0)
        return;
    if (rules->stages.n == 0 && !share(run, &first, &middle)) {
        cs_rules_assume(rules, "stages of equal time, where blocks do not divide equally");
        return;
    }
    cJSON *partition = cJSON_CreateArray();
    for (uint32_t s = 1; partition && s < stages; s++) {
        const uint32_t layer = rules->stages.n > 0
                                   ? rules->stages.first[s]
                                   : first + (s - 1) * middle + !run->options->profiled_ms;
        cJSON *number = cJSON_CreateNumber(layer);
        if (!number || !cJSON_AddItemToArray(partition, number)) {
            cJSON_Delete(number);
            cJSON_Delete(partition);
            partition = NULL;
        }
    }
    cs_rules_put(rules, "/scenario/schedule/partition", partition);
}
