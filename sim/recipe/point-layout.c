#include "sim/recipe/point-layout.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LETTERS = 1 << 16 };

/* The letters of a layout, one after the other. */
typedef struct letters {
    size_t n;
    char at[MOST_LETTERS];
} letters;

/* Repeats what stands from `first` on; false when there is no room. */
static bool repeat(letters *to, size_t first, uint32_t times)
{
    const size_t n = to->n - first;
    if (times == 0 || n > (MOST_LETTERS - first) / times)
        return false;
    for (uint32_t i = 1; i < times; i++)
        memcpy(&to->at[first + i * n], &to->at[first], n);
    to->n = first + times * n;
    return true;
}

/* The number behind a *, if there is one, else 1; 0 where it is none. */
static uint32_t take_times(const char **text)
{
    char *end;
    if (**text != '*')
        return 1;
    const unsigned long times = strtoul(*text + 1, &end, 10);
    if (end == *text + 1 || times > MOST_LETTERS)
        return 0;
    *text = end;
    return (uint32_t)times;
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
            if (*text != '*' || !repeat(to, group, take_times(&text)))
                return false;
        } else if (strchr("EtmL|", letter) && to->n < MOST_LETTERS) {
            to->at[to->n++] = letter;
            if (!repeat(to, to->n - 1, take_times(&text)))
                return false;
        } else {
            return false;
        }
    }
    return !in_group;
}

static uint32_t count(const letters *of, char letter)
{
    uint32_t n = 0;
    for (size_t i = 0; i < of->n; i++)
        n += of->at[i] == letter;
    return n;
}

/* False where a stage has nothing, or where there are too many. */
static bool find_stages(const letters *of, cs_point_layout *layout)
{
    uint32_t layers = 0;
    layout->n_stages = 1;
    layout->first[0] = 0;
    for (size_t i = 0; i < of->n; i++) {
        if (of->at[i] != '|') {
            layers++;
            continue;
        }
        if (layers == layout->first[layout->n_stages - 1] || layout->n_stages == CS_LAYOUT_STAGES)
            return false;
        layout->first[layout->n_stages++] = layers;
    }
    return layers > layout->first[layout->n_stages - 1];
}

/* In the order of the network. */
static bool is_ordered(const letters *of)
{
    static const char order[] = "EtmL";
    size_t reached = 0;
    for (size_t i = 0; i < of->n; i++) {
        if (of->at[i] == '|')
            continue;
        const size_t at = (size_t)(strchr(order, of->at[i]) - order);
        if (at < reached)
            return false;
        reached = at;
    }
    return count(of, 'E') == 1 && count(of, 'L') == 1;
}

static const char *read_layout(const cs_point *point, const char *text, letters *room,
                               cs_point_layout *layout)
{
    if (!expand(text, room) || !is_ordered(room))
        return "stated: a stage layout from the embedding to the loss";
    if (!find_stages(room, layout))
        return "stated: a stage layout without empty stages";
    if (layout->n_stages % point->parallel->pp != 0)
        return "stated: a stage layout that the ranks divide";
    if (count(room, 't') != point->model->layers || count(room, 'm') != point->model->mtp_layers)
        return "stated: a stage layout of as many blocks as the network has";
    return NULL;
}

/* The blocks of each stage if the options state them; false: they do not. Of blocks that the other
 * stages cannot share equally, the first stages have one more. */
static bool find_blocks(const cs_point *point, uint32_t blocks[CS_LAYOUT_STAGES], uint32_t *n)
{
    const cs_point_options *options = point->options;
    const cs_list *given =
        options->stages_with_parts.n > 0 ? &options->stages_with_parts : &options->stage_layers;
    const uint32_t others = point->parallel->pp * point->parallel->vpp - 1;
    *n = given->n > 0 ? given->n : others + 1;
    if (*n > CS_LAYOUT_STAGES)
        return false;
    if (given->n > 0) {
        memcpy(blocks, given->items, given->n * sizeof(*blocks));
        return true;
    }
    if (!(options->last_stage_layers <= point->model->layers))
        return false;
    blocks[others] = (uint32_t)options->last_stage_layers;
    const uint32_t rest = point->model->layers - blocks[others];
    for (uint32_t s = 0; s < others; s++)
        blocks[s] = rest / others + (s < rest % others);
    return true;
}

/* Layer 0 is the embedding, the last one the head, which a last stage without blocks has alone. */
static const char *read_blocks(const cs_point *point, const uint32_t *blocks, uint32_t n,
                               cs_point_layout *layout)
{
    const bool counts_parts = point->options->stages_with_parts.n > 0;
    const uint64_t layers = UINT64_C(2) + point->model->layers;
    uint64_t next = counts_parts ? 0 : 1;
    if (n % point->parallel->pp != 0)
        return "stated: as many stages as the ranks have";
    for (uint32_t s = 0; s < n; s++) {
        layout->first[s] = s == 0 ? 0 : (uint32_t)next;
        next += blocks[s];
        if (s > 0 && layout->first[s] == layout->first[s - 1])
            return "stages without a layer";
    }
    if (next != layers - !counts_parts)
        return "stated: stages of as many blocks as the network has";
    if (layout->first[n - 1] == layers)
        return "stages without a layer";
    layout->n_stages = n;
    return NULL;
}

const char *cs_point_layout_of(const cs_point *point, cs_point_layout *layout)
{
    const char *text =
        cJSON_GetStringValue(cs_point_rules_argument(point, "pipeline-model-parallel-layout"));
    uint32_t blocks[CS_LAYOUT_STAGES], n;
    layout->n_stages = 0;
    if (point->parallel->pp < 2 || point->options->profiled_ms)
        return NULL;
    if (!text)
        return find_blocks(point, blocks, &n) ? read_blocks(point, blocks, n, layout) : NULL;
    letters *room = calloc(1, sizeof(*room));
    if (!room)
        return "memory";
    const char *wrong = read_layout(point, text, room, layout);
    free(room);
    return wrong;
}

void cs_point_rules_layout(cs_point_rules *rules, cs_point_parallel *mesh)
{
    cs_point_layout layout;
    const char *wrong = cs_point_layout_of(rules->point, &layout);
    if (wrong) {
        cs_point_rules_miss(rules, "%s", wrong);
        return;
    }
    const uint32_t each = layout.n_stages / mesh->pp;
    if (layout.n_stages > 0 && each != mesh->vpp) {
        cs_point_rules_assume(rules, "%u stages per rank, as the stated stages have it", each);
        mesh->vpp = each;
    }
    if (rules->point->options->head_on_stage + 1 < layout.n_stages)
        cs_point_rules_assume(rules, "the head is on the last stage, next to the loss");
}
