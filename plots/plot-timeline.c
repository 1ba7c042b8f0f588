#include "plots/sheet.h"

#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_KINDS = 256,
    SHADES = 8,         /* of chunks; of mini-batches two; of both together */
    SMALLEST_LABEL = 7, /* points */
    LABEL_ROOM = 1,     /* points that a box is wider than its label */
};

/* In points: what is narrower is drawn together with its neighbours, and what gets a white outline.
 */
static const double sliver = 0.5, outlined = 3;

typedef enum lane { LANE_COMPUTE, LANE_UP, LANE_DOWN, N_LANES } lane;

typedef struct box {
    cs_time start, end; /* cut to what is shown */
    uint32_t row, number;
    uint8_t lane;
    uint8_t kind;
    uint8_t
        shade; /* of mini-batches 0, 2, ...: 0, of others 1; or of the chunk; of boxes with names
                    * the first and twice the second */
    char name[12]; /* of boxes with names: "3C" */
    bool numbered; /* the number says something: an update belongs to no micro-batch */
    bool gathered; /* stands for several */
} box;

/* Of each device's stages its place among them; NULL where each device has one. */
typedef struct chunks {
    uint8_t *of;
    uint32_t n_stages;
} chunks;

typedef struct timeline {
    cs_sheet *sheet;
    cs_reader_tasks tasks[2]; /* of the results, and of those that are drawn below */
    const char *const *kinds;
    uint32_t n_kinds;
    uint32_t n_panels, n_rows;
    box *boxes;
    size_t n_boxes;
    bool named; /* boxes have names */
    bool divided
        [MAX_KINDS]; /* tasks of that kind belong to micro-batches, not to a whole mini-batch */
    bool shown[MAX_KINDS];
    bool transfers, several_batches, dense;
    chunks chunks[2]; /* of both tasks */
    uint32_t n_shades,
        n_chunks;      /* where devices hold several stages, else 0; shades are at most SHADES */
    double cell;       /* points in which slivers are gathered */
    double unit;       /* ps */
    double scale;      /* points per ps */
    double row_height; /* points */
    double top[N_LANES], bottom[N_LANES]; /* shares of a row */
    double label_size;                    /* points; 0: no labels fit */
    FILE *wide, *narrow, *labels;
} timeline;

/* ---- boxes ---- */

static cs_status read_tasks(cs_reader *reader, cs_reader_tasks *t, cs_error *error)
{
    CS_TRY(cs_reader_read_tasks(reader, t, error));
    return t->n_kinds > MAX_KINDS
               ? cs_error_add(error, CS_INVALID, "%s: tasks/kind: has more than %d meanings",
                              reader->path, MAX_KINDS)
               : CS_OK;
}

/* The numbers of kinds are those of the first results; the others must count alike. */
static cs_status read_both(timeline *t, cs_error *error)
{
    cs_reader *const readers[] = {t->sheet->reader, t->sheet->measured};
    cs_status status = CS_OK;
    for (uint32_t panel = 0; panel < t->n_panels && status == CS_OK; panel++)
        status = read_tasks(readers[panel], &t->tasks[panel], error);
    t->kinds = t->tasks[0].kinds;
    t->n_kinds = t->tasks[0].n_kinds;
    if (status != CS_OK || t->n_panels == 1)
        return status;
    bool alike = t->tasks[1].n_kinds == t->n_kinds;
    for (uint32_t k = 0; alike && k < t->n_kinds; k++)
        alike = strcmp(t->tasks[1].kinds[k], t->kinds[k]) == 0;
    return alike ? CS_OK
                 : cs_error_add(error, CS_INVALID,
                                "%s: tasks/kind: not coded as in %s: of another version",
                                readers[1]->path, readers[0]->path);
}

/* Two panels have a heading each. */
static uint32_t row_of(const timeline *t, uint32_t panel, uint32_t device)
{
    return t->n_panels == 1 ? device : panel * (t->sheet->n_devices + 1) + 1 + device;
}

/* Mini-batches from 0, as everywhere, and micro-batches from A, as papers have them. */
static void name_box(const timeline *t, const cs_reader_tasks *tasks, uint64_t i, box *made)
{
    uint32_t mini = tasks->mini_batch[i], micro = tasks->micro_batch[i];
    if (!t->divided[made->kind])
        snprintf(made->name, sizeof(made->name), "%u", mini);
    else if (micro < 26)
        snprintf(made->name, sizeof(made->name), "%u%c", mini, (char)('A' + micro));
    else
        snprintf(made->name, sizeof(made->name), "%u.%u", mini % 10000, micro % 100000);
}

static uint8_t chunk_of(const timeline *t, uint32_t panel, uint32_t device, uint32_t stage)
{
    const chunks *c = &t->chunks[panel];
    if (!c->of || stage >= c->n_stages)
        return 0;
    return (uint8_t)(c->of[(uint64_t)device * c->n_stages + stage] * t->n_shades / t->n_chunks);
}

static uint8_t shade_of(const timeline *t, uint32_t panel, uint32_t device, uint32_t stage,
                        uint32_t mini_batch)
{
    const uint8_t odd = mini_batch % 2, chunk = chunk_of(t, panel, device, stage);
    if (t->named)
        return (uint8_t)(odd + 2 * chunk);
    return t->n_chunks ? chunk : odd;
}

/* Transfers are shown at their sender, in one lane towards higher device numbers and one towards
 * lower ones; those of a collective in its colour. */
static bool make_box(const timeline *t, uint32_t panel, uint64_t i, box *made)
{
    const cs_reader_tasks *tasks = &t->tasks[panel];
    const cs_sheet *sheet = t->sheet;
    uint32_t kind = tasks->kind[i], device = tasks->device[i];
    if (tasks->end[i] <= sheet->from || tasks->start[i] >= sheet->until ||
        tasks->end[i] <= tasks->start[i] || tasks->start[i] < 0)
        return false;
    if (device < sheet->first_device || device - sheet->first_device >= sheet->n_devices ||
        kind >= tasks->n_kinds || tasks->origin[i] >= tasks->n_kinds)
        return false;
    bool moves = cs_style_of(tasks->kinds[kind])->moves;
    if (moves && t->named)
        return false;
    *made = (box){
        .start = tasks->start[i] > sheet->from ? tasks->start[i] : sheet->from,
        .end = tasks->end[i] < sheet->until ? tasks->end[i] : sheet->until,
        .row = row_of(t, panel, device - sheet->first_device),
        .number = sheet->reader->micro_batches > 1 ? tasks->micro_batch[i] : tasks->mini_batch[i],
        .lane = !moves                    ? LANE_COMPUTE
                : tasks->peer[i] > device ? LANE_DOWN
                                          : LANE_UP,
        .kind = (uint8_t)(moves ? tasks->origin[i] : kind),
        .shade = moves ? 0 : shade_of(t, panel, device, tasks->stage[i], tasks->mini_batch[i]),
        .numbered = sheet->reader->micro_batches == 1 || strcmp(tasks->kinds[kind], "update") != 0,
    };
    if (t->named)
        name_box(t, tasks, i, made);
    return true;
}

/* Marks the stages that each device computes. */
static void mark_stages(const timeline *t, const cs_reader_tasks *tasks, uint32_t n_devices,
                        chunks *made)
{
    for (uint64_t i = 0; i < tasks->n; i++) {
        const bool computes =
            tasks->kind[i] < t->n_kinds && !cs_style_of(t->kinds[tasks->kind[i]])->moves;
        if (computes && tasks->stage[i] < made->n_stages && tasks->device[i] < n_devices)
            made->of[(size_t)tasks->device[i] * made->n_stages + tasks->stage[i]] = 1;
    }
}

/* Numbers the marked ones of each device. Returns the most of a device. */
static uint32_t number_stages(uint32_t n_devices, uint32_t most_chunks, chunks *made)
{
    uint32_t most = 0;
    for (uint32_t device = 0; device < n_devices; device++) {
        uint32_t count = 0;
        for (uint32_t s = 0; s < made->n_stages; s++) {
            uint8_t *at = &made->of[(size_t)device * made->n_stages + s];
            const uint32_t place = count;
            count += *at;
            *at = (uint8_t)(place < most_chunks ? place : 0);
        }
        most = count > most ? count : most;
    }
    return most;
}

/* Which of its stages a device computes, so that their boxes can be told apart; without a change
 * where none has two, or where there are too many to tell. */
static cs_status find_chunks(timeline *t, uint32_t panel, cs_error *error)
{
    enum { MOST_CHUNKS = 64, MOST_PLACES = 1 << 24 };
    const cs_reader_tasks *tasks = &t->tasks[panel];
    const uint32_t n = t->sheet->first_device + t->sheet->n_devices;
    const uint32_t shades = t->named ? SHADES / 2 : SHADES;
    chunks made = {0};
    for (uint64_t i = 0; i < tasks->n; i++)
        if (tasks->stage[i] < UINT32_MAX && tasks->stage[i] >= made.n_stages)
            made.n_stages = tasks->stage[i] + 1;
    if (made.n_stages < 2 || (uint64_t)made.n_stages * n > MOST_PLACES)
        return CS_OK;
    made.of = calloc((size_t)made.n_stages * n, 1);
    if (!made.of)
        return cs_error_no_memory(error);
    mark_stages(t, tasks, n, &made);
    const uint32_t most = number_stages(n, MOST_CHUNKS, &made);
    if (most < 2 || most > MOST_CHUNKS) {
        free(made.of);
        return CS_OK;
    }
    t->chunks[panel] = made;
    t->n_chunks = most > t->n_chunks ? most : t->n_chunks;
    t->n_shades = t->n_chunks < shades ? t->n_chunks : shades;
    return CS_OK;
}

static bool is_sliver(const timeline *t, const box *b)
{
    return (double)(b->end - b->start) * t->scale < sliver;
}

/* The sheet is divided into cells of a few points, in which slivers are drawn together. */
static int64_t cell_of(const timeline *t, const box *b)
{
    return (int64_t)((double)(b->start - t->sheet->from) * t->scale / t->cell);
}

static bool share_cell(const timeline *t, const box *a, const box *b)
{
    return is_sliver(t, a) && is_sliver(t, b) && a->row == b->row && a->lane == b->lane &&
           cell_of(t, a) == cell_of(t, b);
}

static int compare_boxes(const void *a, const void *b)
{
    const box *x = a, *y = b;
    CS_COMPARE(x->row, y->row);
    CS_COMPARE(x->lane, y->lane);
    CS_COMPARE(x->start, y->start);
    CS_COMPARE(x->end, y->end);
    return 0;
}

static void note_box(timeline *t, const box *made)
{
    t->boxes[t->n_boxes++] = *made;
    t->shown[made->kind] = true;
    t->transfers = t->transfers || made->lane != LANE_COMPUTE;
    t->several_batches = t->several_batches || (t->n_chunks == 0 && made->shade == 1);
}

static cs_status collect_boxes(timeline *t, cs_error *error)
{
    size_t count = 0;
    box made;
    for (uint32_t panel = 0; panel < t->n_panels; panel++)
        for (uint64_t i = 0; i < t->tasks[panel].n; i++)
            count += make_box(t, panel, i, &made);
    t->boxes = malloc((count + 1) * sizeof(*t->boxes));
    if (!t->boxes)
        return cs_error_no_memory(error);
    for (uint32_t panel = 0; panel < t->n_panels; panel++)
        for (uint64_t i = 0; i < t->tasks[panel].n; i++)
            if (make_box(t, panel, i, &made))
                note_box(t, &made);
    qsort(t->boxes, t->n_boxes, sizeof(*t->boxes), compare_boxes);
    for (size_t i = 1; i < t->n_boxes && !t->dense; i++)
        t->dense = share_cell(t, &t->boxes[i - 1], &t->boxes[i]);
    return CS_OK;
}

/* ---- lay-out ---- */

/* Colours of boxes with names, [0] of mini-batches 0, 2, ... and [1] of 1, 3, ... Kinds differ in
 * lightness, so that they are told apart in grey too: forward is the lightest, then
 * backward_weight, backward with backward_input. Where devices hold several stages, these go from
 * dark to light: kinds do not overlap, but for recompute and what is in no row, which has the last
 * one. */
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

static uint32_t box_colour(const timeline *t, const char *kind, uint32_t odd, uint32_t chunk)
{
    size_t i = 0;
    while (i + 1 < N_BOX_COLOURS && strcmp(box_colours[i].kind, kind) != 0)
        i++;
    if (t->n_chunks == 0)
        return box_colours[i].one[odd];
    return cs_colour_between(box_colours[i].dark[odd], box_colours[i].light[odd],
                             (double)chunk / (t->n_shades - 1));
}

static const char *order_of_chunks(const timeline *t, char *text, size_t size)
{
    snprintf(text, size, "dark to light: the %u stages of a device in their order", t->n_chunks);
    return text;
}

/* Of each kind the first and the last stage's colour, of even and of odd mini-batches; or one of
 * each. */
static void write_names_legend(timeline *t)
{
    cs_legend_entry entries[MAX_KINDS];
    uint32_t colours[MAX_KINDS][4];
    char order[64];
    uint32_t n = 0;
    bool divided = false;
    const uint32_t of_each = t->n_chunks ? 2 : 1, last = t->n_chunks ? t->n_shades - 1 : 0;
    for (uint32_t kind = 0; kind < t->n_kinds && n + 3 < MAX_KINDS; kind++) {
        const char *word = t->kinds[kind];
        divided |= t->divided[kind];
        if (!t->shown[kind])
            continue;
        for (uint32_t i = 0; i < 2 * of_each; i++)
            colours[n][i] = box_colour(t, word, i / of_each, i % of_each ? last : 0);
        entries[n] =
            (cs_legend_entry){.text = word, .swatches = colours[n], .n_swatches = 2 * of_each};
        n++;
    }
    entries[n++] = (cs_legend_entry){.text = "left, right: even, odd mini-batches"};
    if (t->n_chunks > 0)
        entries[n++] = (cs_legend_entry){.text = order_of_chunks(t, order, sizeof(order))};
    entries[n++] =
        (cs_legend_entry){.text = divided ? "3C: mini-batch 3, micro-batch C" : "3: mini-batch 3"};
    cs_sheet_legend(t->sheet, entries, n);
}

static uint32_t shaded(const timeline *t, const cs_style *style, uint8_t shade)
{
    if (t->n_chunks > 0 && !style->moves) {
        const double darkest = -0.15, lightest = 0.6;
        const double white = darkest + (lightest - darkest) * shade / (t->n_shades - 1);
        return white < 0 ? cs_colour_shade(style->colour) : cs_colour_tint(style->colour, white);
    }
    return shade == 1 ? cs_colour_shade(style->colour) : style->colour;
}

static void write_legend(timeline *t)
{
    cs_legend_entry entries[MAX_KINDS + 5];
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
    entries[n++] = (cs_legend_entry){"idle", CS_COLOUR_IDLE, CS_COLOUR_IDLE};
    if (t->n_chunks > 0)
        entries[n++] = (cs_legend_entry){.text = order_of_chunks(t, order, sizeof(order))};
    if (t->several_batches)
        entries[n++] = (cs_legend_entry){.text = "light, dark: even, odd mini-batches"};
    bool micro = t->sheet->reader->micro_batches > 1;
    entries[n++] =
        (cs_legend_entry){.text = micro ? "numbers: micro-batches" : "numbers: mini-batches"};
    if (t->dense)
        entries[n++] = (cs_legend_entry){.text = "where too thin to be seen, heights are shares"};
    cs_sheet_legend(t->sheet, entries, n);
}

/* Few devices get tall rows, many get rows that still hold their number, hundreds get what is left.
 */
static double choose_row_height(uint32_t n)
{
    double height = fmin(42, fmax(13, 420. / n));
    return n * height > 2400 ? fmax(2400. / n, 2) : height;
}

static void label_of(const timeline *t, const box *b, char *text, size_t size)
{
    if (t->named)
        snprintf(text, size, "%s", b->name);
    else
        snprintf(text, size, "%u", b->number);
}

/* The font at which the label of every box fits that has room for the smallest. */
static double size_that_fits(const timeline *t)
{
    double size = CS_SHEET_FONT;
    for (size_t i = 0; i < t->n_boxes; i++) {
        const box *b = &t->boxes[i];
        char text[16];
        const double room = (double)(b->end - b->start) * t->scale - LABEL_ROOM;
        if (b->lane != LANE_COMPUTE || !b->numbered || room <= 0)
            continue;
        label_of(t, b, text, sizeof(text));
        const double fits = room / cs_sheet_text_width(text, 1);
        if (fits >= SMALLEST_LABEL)
            size = fmin(size, fits);
    }
    return size;
}

static void lay_out(timeline *t)
{
    cs_sheet *sheet = t->sheet;
    if (sheet->height == 0)
        sheet->height = ceil(sheet->top + sheet->bottom +
                             t->n_rows * fmin(choose_row_height(t->n_rows), t->named ? 24 : 42));
    double height = fmax(sheet->height - sheet->top - sheet->bottom, 1);
    t->row_height = height / t->n_rows;
    bool two_lanes = t->row_height >= 20;
    t->top[LANE_COMPUTE] = 0.05;
    t->bottom[LANE_COMPUTE] = t->transfers ? 0.69 : 0.92;
    t->top[LANE_UP] = 0.72;
    t->bottom[LANE_UP] = two_lanes ? 0.81 : 0.92;
    t->top[LANE_DOWN] = two_lanes ? 0.83 : 0.72;
    t->bottom[LANE_DOWN] = 0.92;
    double room = (t->bottom[LANE_COMPUTE] - t->top[LANE_COMPUTE]) * t->row_height;
    t->label_size = fmin(CS_SHEET_FONT, room * 0.85);
    if (t->label_size < 6)
        t->label_size = 0;
    if (t->label_size > SMALLEST_LABEL)
        t->label_size = fmax(SMALLEST_LABEL, fmin(t->label_size, size_that_fits(t)));
}

static void write_headings(const timeline *t)
{
    static const char *const headings[2][2] = {{"predicted", "measured"}, {"first", "second"}};
    const cs_sheet *sheet = t->sheet;
    const cs_reader *readers[] = {sheet->reader, sheet->measured};
    for (uint32_t panel = 0; t->n_panels > 1 && panel < t->n_panels; panel++) {
        double row = row_of(t, panel, 0);
        const char *words = headings[sheet->side_by_side][panel];
        const cs_reader *of = readers[panel];
        char text[256];
        int used =
            snprintf(text, sizeof(text), sheet->side_by_side ? "%s: %.80s, %.60s on %.60s" : "%s",
                     words, of->name, of->schedule, of->topology);
        if (sheet->out_of_memory[panel] > 0)
            snprintf(text + used, sizeof(text) - (size_t)used, "; OUT OF MEMORY on %u device%s",
                     sheet->out_of_memory[panel], sheet->out_of_memory[panel] == 1 ? "" : "s");
        cs_sheet_shorten(text, CS_SHEET_FONT, sheet->width - sheet->left - sheet->right);
        cs_sheet_text(t->sheet, sheet->left, sheet->top + t->row_height * row - CS_SHEET_FONT,
                      CS_COLOUR_TEXT, text);
    }
}

/* ---- data ---- */

static uint32_t colour_of(const timeline *t, const box *b)
{
    if (t->named)
        return box_colour(t, t->kinds[b->kind], b->shade % 2, b->shade / 2);
    return shaded(t, cs_style_of(t->kinds[b->kind]), b->shade);
}

static double in_units(const timeline *t, cs_time time)
{
    return (double)time / t->unit;
}

static void write_rectangle(timeline *t, const box *b, double top, double bottom)
{
    bool wide = (double)(b->end - b->start) * t->scale >= outlined;
    fprintf(wide && !b->gathered ? t->wide : t->narrow, "%.15g %.15g %.6g %.6g %u\n",
            in_units(t, b->start), in_units(t, b->end), b->row + top, b->row + bottom,
            colour_of(t, b));
}

static void write_box(timeline *t, const box *b)
{
    write_rectangle(t, b, t->top[b->lane], t->bottom[b->lane]);
}

static void write_label(timeline *t, const box *b)
{
    char text[16];
    label_of(t, b, text, sizeof(text));
    double room = (double)(b->end - b->start) * t->scale;
    if (b->lane != LANE_COMPUTE || t->label_size == 0 || !b->numbered ||
        cs_sheet_text_width(text, t->label_size) + LABEL_ROOM > room)
        return;
    double middle = b->row + (t->top[LANE_COMPUTE] + t->bottom[LANE_COMPUTE]) / 2;
    fprintf(t->labels, "%.15g %.6g \"%s\" %u\n",
            in_units(t, b->start) + in_units(t, b->end - b->start) / 2, middle, text,
            cs_colour_on(colour_of(t, b)));
}

/* Boxes narrower than half a point that begin in the same cell of a few points. They are drawn over
 * the time that they span: each kind as high as its share of that time, so that idle time stays
 * seen. So millions of boxes become a bounded number. */
typedef struct gathering {
    box span; /* of the boxes so far, looking like the first */
    uint32_t n_boxes;
    cs_time of_looks[SHADES * MAX_KINDS]; /* SHADES * kind + shade */
} gathering;

static void write_shares(timeline *t, const gathering *g)
{
    double bottom = t->bottom[g->span.lane];
    double height = bottom - t->top[g->span.lane], all = (double)(g->span.end - g->span.start);
    for (uint32_t i = 0; i < SHADES * t->n_kinds; i++)
        all = fmax(all, (double)g->of_looks[i]); /* transfers may overlap */
    for (uint32_t i = 0; i < SHADES * t->n_kinds; i++) {
        box shown = g->span;
        double share = fmin((double)g->of_looks[i] / all * height, bottom - t->top[shown.lane]);
        if (share <= 0)
            continue;
        shown.kind = (uint8_t)(i / SHADES);
        shown.shade = (uint8_t)(i % SHADES);
        write_rectangle(t, &shown, bottom - share, bottom);
        bottom -= share;
    }
}

static void close_cell(timeline *t, gathering *g)
{
    if (g->n_boxes == 1)
        write_box(t, &g->span);
    else if (g->n_boxes > 1)
        write_shares(t, g);
    g->n_boxes = 0;
}

static void add_sliver(timeline *t, gathering *g, const box *b)
{
    if (g->n_boxes > 0 &&
        (cell_of(t, b) != cell_of(t, &g->span) || b->row != g->span.row || b->lane != g->span.lane))
        close_cell(t, g);
    if (g->n_boxes++ == 0) {
        g->span = *b;
        g->span.gathered = true;
        memset(g->of_looks, 0, SHADES * t->n_kinds * sizeof(g->of_looks[0]));
    }
    g->span.end = b->end > g->span.end ? b->end : g->span.end;
    g->of_looks[SHADES * b->kind + b->shade] += b->end - b->start;
}

static void write_boxes(timeline *t)
{
    gathering g = {0};
    for (size_t i = 0; i < t->n_boxes; i++) {
        const box *b = &t->boxes[i];
        if (is_sliver(t, b)) {
            add_sliver(t, &g, b);
            continue;
        }
        close_cell(t, &g);
        write_box(t, b);
        write_label(t, b);
    }
    close_cell(t, &g);
}

/* The rows of devices: what their boxes lie on. */
static void write_rows(const timeline *t, FILE *out)
{
    for (uint32_t panel = 0; panel < t->n_panels; panel++)
        for (uint32_t d = 0; d < t->sheet->n_devices; d++)
            fprintf(out, "%u\n", row_of(t, panel, d));
}

static cs_status write_data(timeline *t, cs_error *error)
{
    static const char *const names[] = {"wide.dat", "narrow.dat", "labels.dat", "rows.dat"};
    FILE *rows = NULL, **files[] = {&t->wide, &t->narrow, &t->labels, &rows};
    cs_status status = CS_OK;
    for (int i = 0; i < 4 && status == CS_OK; i++)
        status = cs_gnuplot_open(t->sheet->job, names[i], files[i], error);
    if (status == CS_OK) {
        write_boxes(t);
        write_rows(t, rows);
    }
    for (int i = 0; i < 4; i++) {
        cs_status closed = *files[i] ? cs_gnuplot_close(*files[i], names[i], error) : CS_OK;
        status = status == CS_OK ? closed : status;
    }
    return status;
}

static void write_parameters(timeline *t)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"from", in_units(t, t->sheet->from)},
        {"until", in_units(t, t->sheet->until)},
        {"lane_top", t->top[LANE_COMPUTE]},
        {"lane_bottom", t->bottom[LANE_COMPUTE]},
        {"tick_step", ceil((CS_SHEET_FONT + 1) / t->row_height)},
        {"label_size", t->label_size},
        {"idle_colour", CS_COLOUR_IDLE},
        {"n_panels", t->n_panels},
        {"n_rows", t->n_rows},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        cs_gnuplot_number(t->sheet->job, numbers[i].name, numbers[i].value);
}

/* Chooses a width in which the name of the shortest box fits, if that is not too wide. */
static void prepare_names(timeline *t)
{
    enum { NARROWEST = 480, WIDEST = 2000 };
    const cs_reader_tasks *tasks = &t->tasks[0];
    cs_sheet *sheet = t->sheet;
    box made;
    double shown = (double)(sheet->until - sheet->from), margins = sheet->left + sheet->right,
           wanted = 0;
    for (uint64_t i = 0; i < tasks->n; i++) {
        if (tasks->micro_batch[i] > 0 && tasks->kind[i] < MAX_KINDS)
            t->divided[tasks->kind[i]] = true;
    }
    for (uint64_t i = 0; i < tasks->n; i++) {
        if (make_box(t, 0, i, &made))
            wanted = fmax(wanted, (cs_sheet_text_width(made.name, CS_SHEET_FONT) + 3) /
                                      (double)(tasks->end[i] - tasks->start[i]));
    }
    if (sheet->options->width == 0)
        sheet->width = fmin(fmax(wanted * shown + margins, NARROWEST), WIDEST);
}

static cs_status draw(cs_sheet *sheet, bool named, const char *output, cs_error *error)
{
    const uint32_t n_panels = sheet->measured ? 2 : 1;
    timeline t = {.sheet = sheet,
                  .named = named,
                  .n_panels = n_panels,
                  .n_rows = n_panels == 1 ? sheet->n_devices : 2 * (sheet->n_devices + 1),
                  .cell = fmax(2, sheet->n_devices / 12.)};
    cs_status status = read_both(&t, error);
    if (status == CS_OK && named)
        prepare_names(&t);
    for (uint32_t panel = 0; panel < n_panels && status == CS_OK; panel++)
        status = find_chunks(&t, panel, error);
    cs_sheet_run_title(sheet);
    t.scale =
        fmax(sheet->width - sheet->left - sheet->right, 1) / (double)(sheet->until - sheet->from);
    if (status == CS_OK)
        status = collect_boxes(&t, error);
    if (status == CS_OK) {
        t.unit = cs_sheet_time_unit(sheet);
        (named ? write_names_legend : write_legend)(&t);
        lay_out(&t);
        write_headings(&t);
        status = write_data(&t, error);
    }
    free(t.boxes);
    for (uint32_t panel = 0; panel < n_panels; panel++)
        free(t.chunks[panel].of);
    if (status != CS_OK)
        return status;
    write_parameters(&t);
    return cs_sheet_draw(sheet, output, "timeline.gp", error);
}

cs_status cs_plot_timeline(cs_sheet *sheet, const char *output, cs_error *error)
{
    return draw(sheet, false, output, error);
}

cs_status cs_plot_boxes(cs_sheet *sheet, const char *output, cs_error *error)
{
    return draw(sheet, true, output, error);
}
