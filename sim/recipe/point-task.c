/* Rules for what is trained on: samples that share a sequence, tokens that are dropped. */
#include "sim/recipe/point-rules.h"

#include <string.h>

/* Words per paragraph and question of SQuAD (Rajpurkar et al., 2016, arXiv 1606.05250: 117 and 10),
 * with those of the template. */
enum { SQUAD_TOKENS = 200 };

static bool starts(const char *text, const char *with)
{
    return text && strncmp(text, with, strlen(with)) == 0;
}

/* NVIDIA's tables of performance (performance-summary.md of NVIDIA/NeMo and of
 * NVIDIA-NeMo/Megatron-Bridge) say in the name of a run only that it is fine-tuning without
 * adapters
 * ("-sft-"), or drops tokens ("tokendrop"); points that quote them have it in their id, and no key.
 * Nothing else reads an id: points that have the keys do not need it. */
static bool id_says(cs_point_rules *rules, const char *word)
{
    if (!strstr(rules->point->id, word))
        return false;
    cs_point_rules_assume(
        rules, "\"%s\" in the id of a point is what its run did, where no key says", word);
    return true;
}

static bool is_from_nvidias_tables(const cs_point *point)
{
    return !cs_point_rules_submission(point) &&
           (starts(point->framework, "NeMo") || starts(point->framework, "Megatron-Bridge"));
}

/* NeMo and Megatron-Bridge fine-tune on SQuAD, whose samples are packed into sequences without
 * attending to each other (performance_summary of its pages: "Packed Sequence Length"). MLPerf's
 * samples, of GovReport, are long. */
uint32_t cs_point_rules_packed_tokens(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    if (point->options->packed_tokens > 0 || !is_from_nvidias_tables(point))
        return point->options->packed_tokens;
    if (!point->options->lora && !id_says(rules, "-sft-"))
        return 0;
    cs_point_rules_assume(rules, "samples of %d tokens are packed in fine-tuning", SQUAD_TOKENS);
    return SQUAD_TOKENS;
}

bool cs_point_rules_drops_tokens(cs_point_rules *rules)
{
    const cs_point *point = rules->point;
    if (point->options->moe_drop_tokens)
        return cJSON_IsTrue(point->options->moe_drop_tokens);
    return is_from_nvidias_tables(point) && id_says(rules, "tokendrop");
}
