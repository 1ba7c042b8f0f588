#include "plots/timeline.h"

#include <string.h>

/* Colours of boxes with names: [0] for even mini-batches, [1] for odd ones. Kinds differ in
 * lightness, so they can be distinguished in greyscale: forward is the lightest, then
 * backward_weight, then backward and backward_input. If devices hold several stages, the stages of
 * a kind range from dark to light; the ranges of kinds do not overlap, except for recompute and for
 * unlisted kinds, which use the last row. */
static const struct {
    const char *kind;
    uint32_t one[2], dark[2], light[2];
} box_colours[] = {
    {"forward", {0xA9CCE8, 0xFAD2B0}, {0x86B5DF, 0xE69D5E}, {0xB8D6F0, 0xF7CDA5}},
    {"backward", {0x2F75B5, 0xC55A11}, {0x0F3A66, 0x6B2400}, {0x2B66A3, 0xA84610}},
    {"backward_input", {0x2F75B5, 0xC55A11}, {0x0F3A66, 0x6B2400}, {0x2B66A3, 0xA84610}},
    {"backward_weight", {0x5FB09A, 0xC8A032}, {0x378F79, 0x94720F}, {0x5FB09A, 0xBE9631}},
    {"recompute", {0x1F3864, 0x7B3306}, {0x4B2E83, 0x5A2A4A}, {0x7F63B8, 0x8F5580}},
    {"", {0x7F8C9B, 0xA68A78}, {0x707C8A, 0x95796A}, {0x98A4B2, 0xB89C8A}},
};

enum { N_BOX_COLOURS = sizeof(box_colours) / sizeof(box_colours[0]) };

static uint32_t box_colour(const cs_timeline *t, const char *kind, uint32_t odd, uint32_t chunk)
{
    size_t i = 0;
    while (i + 1 < N_BOX_COLOURS && strcmp(box_colours[i].kind, kind) != 0)
        i++;
    if (t->n_chunks == 0)
        return box_colours[i].one[odd];
    return cs_colour_between(box_colours[i].dark[odd], box_colours[i].light[odd],
                             (double)chunk / (t->n_shades - 1));
}

static uint32_t shaded(const cs_timeline *t, const cs_style *style, uint8_t shade)
{
    if (t->n_chunks > 0 && !style->moves) {
        const double darkest = -0.15, lightest = 0.6;
        const double white = darkest + (lightest - darkest) * shade / (t->n_shades - 1);
        return white < 0 ? cs_colour_shade(style->colour) : cs_colour_tint(style->colour, white);
    }
    return shade == 1 ? cs_colour_shade(style->colour) : style->colour;
}

uint32_t cs_timeline_colour(const cs_timeline *t, const cs_timeline_box *b)
{
    if (cs_timeline_waits(t, b))
        return cs_style_of(t->kinds[b->kind])->colour;
    if (t->named)
        return box_colour(t, t->kinds[b->kind], b->shade % 2, b->shade / 2);
    return shaded(t, cs_style_of(t->kinds[b->kind]), b->shade);
}

/* ---- legends ---- */

static const char *order_of_chunks(const cs_timeline *t, char *text, size_t size)
{
    snprintf(text, size, "dark to light: the %u stages of a device in their order", t->n_chunks);
    return text;
}

/* Writes the legend: for each kind, the colours of the first and the last stage (or one colour if
 * devices have one stage), for even and for odd mini-batches. */
static void write_names_legend(cs_timeline *t)
{
    cs_legend_entry entries[CS_TIMELINE_KINDS];
    uint32_t colours[CS_TIMELINE_KINDS][4];
    char order[64];
    uint32_t n = 0;
    bool divided = false;
    const uint32_t of_each = t->n_chunks ? 2 : 1, last = t->n_chunks ? t->n_shades - 1 : 0;
    const uint32_t parities = t->odd_batches ? 2 : 1;
    for (uint32_t kind = 0; kind < t->n_kinds && n + 3 < CS_TIMELINE_KINDS; kind++) {
        const char *word = t->kinds[kind];
        divided |= t->divided[kind];
        if (!t->shown[kind])
            continue;
        for (uint32_t i = 0; i < parities * of_each; i++)
            colours[n][i] = box_colour(t, word, i / of_each, i % of_each ? last : 0);
        entries[n] = (cs_legend_entry){
            .text = word, .swatches = colours[n], .n_swatches = parities * of_each};
        n++;
    }
    if (t->odd_batches)
        entries[n++] = (cs_legend_entry){.text = "left, right: even, odd mini-batches"};
    if (t->n_chunks > 0)
        entries[n++] = (cs_legend_entry){.text = order_of_chunks(t, order, sizeof(order))};
    entries[n++] =
        (cs_legend_entry){.text = divided ? "3C: mini-batch 3, micro-batch C" : "3: mini-batch 3"};
    cs_sheet_legend(t->sheet, entries, n);
}

static const struct {
    const char *cause, *text;
    cs_sheet_sign sign;
} causes[] = {
    {"messages", "messages", CS_SIGN_HATCHED},
    {"collectives", "collectives", CS_SIGN_GRID},
    {"dependency", "others", CS_SIGN_NONE},
    {"flush", "flush", CS_SIGN_NONE},
};

/* Adds the causes of waiting to the legend. Hatching distinguishes waits for communication from
 * other waits even in print. */
static uint32_t add_causes(const cs_timeline *t, cs_legend_entry *entries)
{
    uint32_t n = 0;
    bool any = false;
    for (uint32_t c = 0; c < t->n_causes; c++)
        any = any || t->shown[t->n_kinds + c];
    if (any)
        entries[n++] = (cs_legend_entry){.text = "waiting for:"};
    for (uint32_t c = 0; c < t->n_causes; c++)
        for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
            const char *word = t->kinds[t->n_kinds + c];
            if (!t->shown[t->n_kinds + c] || strcmp(causes[i].cause, word) != 0)
                continue;
            const uint32_t colour = cs_style_of(word)->colour;
            entries[n++] = (cs_legend_entry){
                causes[i].text, colour, causes[i].sign ? 0x404040 : colour, false, causes[i].sign};
        }
    if (t->n_causes == 0)
        entries[n++] = (cs_legend_entry){"idle", CS_COLOUR_IDLE, CS_COLOUR_IDLE};
    return n;
}

static uint32_t add_remarks(const cs_timeline *t, cs_legend_entry *entries)
{
    const bool micro = t->sheet->reader->micro_batches > 1;
    uint32_t n = 0;
    if (t->path)
        entries[n++] = (cs_legend_entry){.text = "line: critical path"};
    if (t->several_batches)
        entries[n++] = (cs_legend_entry){.text = "light, dark: even, odd mini-batches"};
    if (t->numbers)
        entries[n++] =
            (cs_legend_entry){.text = micro ? "numbers: micro-batches" : "numbers: mini-batches"};
    if (t->dense)
        entries[n++] = (cs_legend_entry){.text = "where too thin to be seen, heights are shares"};
    return n;
}

static void write_legend(cs_timeline *t)
{
    cs_legend_entry entries[CS_TIMELINE_ALL + 6];
    char order[64];
    uint32_t n = 0;
    for (uint32_t kind = 0; kind < t->n_kinds; kind++) {
        if (!t->shown[kind])
            continue;
        const cs_style *style = cs_style_of(t->kinds[kind]);
        bool two = t->several_batches && !style->moves;
        uint8_t last = style->moves ? 0 : t->n_chunks ? (uint8_t)(t->n_shades - 1) : two;
        entries[n++] =
            (cs_legend_entry){t->kinds[kind], shaded(t, style, 0), shaded(t, style, last)};
    }
    n += add_causes(t, entries + n);
    if (t->n_chunks > 0)
        entries[n++] = (cs_legend_entry){.text = order_of_chunks(t, order, sizeof(order))};
    n += add_remarks(t, entries + n);
    cs_sheet_legend(t->sheet, entries, n);
}

void cs_timeline_legend(cs_timeline *t)
{
    if (t->named)
        write_names_legend(t);
    else
        write_legend(t);
}
