#include "plots/sheet.h"

#include "sim/base/sum.h"
#include "sim/base/text.h"
#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Draws PyTorch's allocator on one device: reserved and allocated memory over the two rounds for
 * which the run was replayed; below, the contents of the segments at the peak of reserved memory,
 * or when an allocation failed. Segments follow each other in rows that represent equal numbers of
 * bytes: the largest first, segments of the small pool last. */

enum {
    MAX_CATEGORIES = 16,
    PANEL = 124,
    HEADING = 18,
    ROW = 13,
    ROW_GAP = 3,
    MOST_ROWS = 16,
    LEFT = 64
};

#define FREE_COLOUR      0xFFFFFFu
#define HOLE_COLOUR      0x909090u
#define ALLOCATED_COLOUR 0xB5D9F0u
#define RESERVED_COLOUR  0x101010u

/* A piece of a segment: neighbouring blocks that hold the same category, merged. */
typedef struct piece {
    int64_t segment_bytes, segment, address, bytes;
    uint32_t category, small;
} piece;

typedef struct device_figures {
    const int64_t *peak_allocated, *peak_reserved, *peak_time, *segments, *failures, *failed_bytes,
        *failed_time, *failed_free, *failed_largest, *capacity;
    const uint32_t *played_as, *failed_task;
    uint64_t n;
} device_figures;

typedef struct segment_plot {
    cs_sheet *sheet;
    device_figures devices;
    /* device: the one shown; played: the device that was replayed in its place */
    uint32_t device, played;
    bool failed;
    /* The following columns cover all devices. */
    const int64_t *time, *allocated, *reserved, *most_allocated, *most_reserved;
    const uint32_t *sample_device;
    uint64_t n_samples;
    const int64_t *segment, *address, *bytes;
    const uint32_t *block_device, *moment, *small, *category;
    uint64_t n_blocks;
    const char *const *categories; /* the last category is free memory */
    uint32_t n_categories;
    piece *pieces;
    uint32_t n_pieces, cap_pieces, n_segments, n_holes;
    int64_t held[MAX_CATEGORIES], all, largest_hole;
    const cs_byte_unit *unit;
    double highest, time_unit;
    double row_bytes, panel_bottom;
    uint32_t n_rows;
} segment_plot;

/* ---- reading ---- */

static cs_status read_devices(segment_plot *p, cs_error *error)
{
    device_figures *d = &p->devices;
    uint64_t n = 0;
    const cs_reader_column capacity = {"devices/capacity", CS_READER_INT64, &d->capacity};
    const cs_reader_column columns[] = {
        {"allocator/peak_allocated", CS_READER_INT64, &d->peak_allocated},
        {"allocator/peak_reserved", CS_READER_INT64, &d->peak_reserved},
        {"allocator/peak_time", CS_READER_INT64, &d->peak_time},
        {"allocator/segments", CS_READER_INT64, &d->segments},
        {"allocator/failures", CS_READER_INT64, &d->failures},
        {"allocator/failed_bytes", CS_READER_INT64, &d->failed_bytes},
        {"allocator/failed_time", CS_READER_INT64, &d->failed_time},
        {"allocator/failed_free", CS_READER_INT64, &d->failed_free},
        {"allocator/failed_largest", CS_READER_INT64, &d->failed_largest},
        {"allocator/failed_task", CS_READER_UINT32, &d->failed_task},
        {"allocator/played_as", CS_READER_UINT32, &d->played_as}};
    cs_reader *reader = p->sheet->reader;
    if (!cs_reader_has(reader, "allocator"))
        return cs_error_add(error, CS_INVALID,
                            "%s: has no segments; run it with --allocator pytorch", reader->path);
    CS_TRY(cs_reader_read(reader, columns, sizeof(columns) / sizeof(columns[0]), &d->n, error));
    CS_TRY(cs_reader_read(reader, &capacity, 1, &n, error));
    return d->n == n && n > 0
               ? CS_OK
               : cs_error_add(error, CS_INVALID, "%s: allocator: must have a row for each device",
                              reader->path);
}

static cs_status read_tables(segment_plot *p, cs_error *error)
{
    const cs_reader_column samples[] = {
        {"reserved/time", CS_READER_INT64, &p->time},
        {"reserved/device", CS_READER_UINT32, &p->sample_device},
        {"reserved/allocated", CS_READER_INT64, &p->allocated},
        {"reserved/reserved", CS_READER_INT64, &p->reserved},
        {"reserved/most_allocated", CS_READER_INT64, &p->most_allocated},
        {"reserved/most_reserved", CS_READER_INT64, &p->most_reserved}};
    const cs_reader_column blocks[] = {{"blocks/device", CS_READER_UINT32, &p->block_device},
                                       {"blocks/moment", CS_READER_UINT32, &p->moment},
                                       {"blocks/pool", CS_READER_UINT32, &p->small},
                                       {"blocks/category", CS_READER_UINT32, &p->category},
                                       {"blocks/segment_address", CS_READER_INT64, &p->segment},
                                       {"blocks/address", CS_READER_INT64, &p->address},
                                       {"blocks/bytes", CS_READER_INT64, &p->bytes}};
    cs_reader *reader = p->sheet->reader;
    CS_TRY(cs_reader_read(reader, samples, 6, &p->n_samples, error));
    CS_TRY(cs_reader_read(reader, blocks, 7, &p->n_blocks, error));
    CS_TRY(cs_reader_meanings(reader, "blocks/category", &p->categories, &p->n_categories, error));
    if (p->n_categories < 2 || p->n_categories > MAX_CATEGORIES)
        return cs_error_add(error, CS_INVALID, "%s: blocks/category: must have 2 to %d meanings",
                            reader->path, MAX_CATEGORIES);
    return CS_OK;
}

/* Chooses the requested device; otherwise the first device that had a failed allocation, or the
 * device with the most reserved memory. */
static cs_status choose_device(segment_plot *p, cs_error *error)
{
    const cs_plot_options *options = p->sheet->options;
    const device_figures *d = &p->devices;
    bool found = false;
    if (options->n_devices > 1)
        return cs_error_add(error, CS_USAGE,
                            "segments: draws one device, which --first-device names");
    p->device = options->first_device;
    for (uint32_t i = 0; options->first_device == 0 && options->n_devices == 0 && i < d->n; i++) {
        const bool fails = d->failures[i] > 0 && d->failures[p->device] == 0;
        const bool fuller = d->peak_reserved[i] > d->peak_reserved[p->device];
        if (fails || (fuller && d->failures[p->device] == 0))
            p->device = i;
    }
    p->played = d->played_as[p->device];
    for (uint64_t i = 0; i < p->n_samples && !found; i++)
        found = p->sample_device[i] == p->played;
    p->failed = d->failures[p->device] > 0;
    return found ? CS_OK
                 : cs_error_add(error, CS_USAGE,
                                "device %u: %s has no segments of it, only those of devices that "
                                "reserve more",
                                p->device, p->sheet->reader->path);
}

/* ---- contents of the segments ---- */

static bool is_free(const segment_plot *p, const piece *of)
{
    return of->category == p->n_categories - 1;
}

static bool count_piece(segment_plot *p, const piece *of)
{
    if (!cs_sum_add(&p->all, of->bytes))
        return false;
    p->held[of->category] += of->bytes;
    p->n_holes += is_free(p, of);
    if (is_free(p, of) && of->bytes > p->largest_hole)
        p->largest_hole = of->bytes;
    return true;
}

static cs_status add_block(segment_plot *p, uint64_t i, cs_error *error)
{
    const piece block = {.segment = p->segment[i],
                         .address = p->address[i],
                         .bytes = p->bytes[i],
                         .category = p->category[i] < p->n_categories ? p->category[i] : 0,
                         .small = p->small[i]};
    piece *last = p->n_pieces > 0 ? &p->pieces[p->n_pieces - 1] : NULL;
    if (!count_piece(p, &block))
        return cs_error_add(error, CS_INVALID, "%s: blocks/bytes: add up to more than 2^63",
                            p->sheet->reader->path);
    if (last && last->segment == block.segment && last->category == block.category) {
        last->bytes += block.bytes;
        return CS_OK;
    }
    if (!cs_vector_reserve((void **)&p->pieces, &p->cap_pieces, p->n_pieces + UINT64_C(1),
                           sizeof(*p->pieces)))
        return cs_error_no_memory(error);
    p->pieces[p->n_pieces++] = block;
    return CS_OK;
}

static int by_segment(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    CS_COMPARE(x->small, y->small);
    CS_COMPARE(y->segment_bytes, x->segment_bytes);
    CS_COMPARE(x->address, y->address);
    return 0;
}

/* Merges the device's blocks, which the file lists by address, into pieces, and sorts these by
 * segment. */
static cs_status find_pieces(segment_plot *p, cs_error *error)
{
    for (uint64_t i = 0; i < p->n_blocks; i++)
        if (p->block_device[i] == p->played && (p->moment[i] == 1) == p->failed)
            CS_TRY(add_block(p, i, error));
    for (uint32_t first = 0, end; first < p->n_pieces; first = end) {
        int64_t bytes = 0;
        for (end = first; end < p->n_pieces && p->pieces[end].segment == p->pieces[first].segment;)
            bytes += p->pieces[end++].bytes;
        for (uint32_t i = first; i < end; i++)
            p->pieces[i].segment_bytes = bytes;
        p->n_segments++;
    }
    if (p->n_pieces > 0)
        qsort(p->pieces, p->n_pieces, sizeof(*p->pieces), by_segment);
    return CS_OK;
}

/* ---- texts ---- */

/* Appends a part if there is room for it. */
static void add_part(const segment_plot *p, char *text, size_t size, const char *part)
{
    const double room = p->sheet->width - p->sheet->left - CS_SHEET_MARGIN;
    const size_t used = strlen(text);
    if (cs_sheet_text_width(text, CS_SHEET_FONT) + cs_sheet_text_width(part, CS_SHEET_FONT) <= room)
        snprintf(text + used, size - used, "%s", part);
}

/* Writes a heading: "devices 0-31: reserved 64.54 GB, allocated 63.48 GB at most, capacity 85.9
 * GB". */
static cs_status write_heading(const segment_plot *p, double y, cs_error *error)
{
    const device_figures *d = &p->devices;
    char text[256], part[128], bytes[64];
    const char *name =
        cs_reader_kind_name(p->sheet->reader, d->played_as, (uint32_t)d->n, p->played);
    if (!name)
        return cs_error_no_memory(error);
    snprintf(text, sizeof(text), "device%s %s: reserved %s", strpbrk(name, "-(") ? "s" : "", name,
             cs_sheet_bytes(d->peak_reserved[p->device], bytes, sizeof(bytes)));
    snprintf(part, sizeof(part), ", allocated %s at most",
             cs_sheet_bytes(d->peak_allocated[p->device], bytes, sizeof(bytes)));
    add_part(p, text, sizeof(text), part);
    snprintf(part, sizeof(part), ", capacity %s",
             cs_sheet_bytes(d->capacity[p->device], bytes, sizeof(bytes)));
    if (d->capacity[p->device] != INT64_MAX)
        add_part(p, text, sizeof(text), part);
    cs_sheet_text(p->sheet, p->sheet->left, y, CS_COLOUR_TEXT, text);
    return CS_OK;
}

/* Names the task whose allocation failed: " for forward 3 of stage 1". */
static cs_status name_task(const segment_plot *p, char *text, size_t size, cs_error *error)
{
    const uint32_t task = p->devices.failed_task[p->device];
    cs_reader_tasks tasks;
    snprintf(text, size, " for what is there from the start");
    if (task == UINT32_MAX)
        return CS_OK;
    CS_TRY(cs_reader_read_tasks(p->sheet->reader, &tasks, error));
    if (task >= tasks.n)
        return cs_error_add(error, CS_INVALID, "%s: allocator/failed_task: is not in tasks",
                            p->sheet->reader->path);
    char stage[32] = "", word[64];
    snprintf(word, sizeof(word), "%s", tasks.kinds[tasks.kind[task]]);
    for (char *at = word; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    if (tasks.stage[task] != UINT32_MAX)
        snprintf(stage, sizeof(stage), " of stage %u", tasks.stage[task]);
    snprintf(text, size, " for %s %u%s", word, tasks.micro_batch[task], stage);
    return CS_OK;
}

static cs_status write_failure(const segment_plot *p, double y, cs_error *error)
{
    const device_figures *d = &p->devices;
    char text[256], part[160], bytes[64], time[64];
    snprintf(text, sizeof(text), "OUT OF MEMORY: %s",
             cs_sheet_bytes(d->failed_bytes[p->device], bytes, sizeof(bytes)));
    CS_TRY(name_task(p, part, sizeof(part), error));
    add_part(p, text, sizeof(text), part);
    snprintf(part, sizeof(part), " at %s",
             cs_sheet_time(d->failed_time[p->device], time, sizeof(time)));
    add_part(p, text, sizeof(text), part);
    cs_sheet_text(p->sheet, p->sheet->left, y, CS_COLOUR_BAD, text);
    return CS_OK;
}

/* Describes the segments: "526 segments at the peak of reserved memory: 1.063 GB free in 571
 * blocks, the largest 420.3 MB". After a failure, describes the free memory that could have served
 * the allocation. */
static void write_contents(const segment_plot *p, double y)
{
    const device_figures *d = &p->devices;
    char text[256], part[192], bytes[64], largest[64];
    snprintf(text, sizeof(text), "%u segment%s %s", p->n_segments, p->n_segments == 1 ? "" : "s",
             p->failed ? "then" : "at the peak of reserved memory");
    if (p->failed)
        snprintf(part, sizeof(part), ": free for it are %s in blocks of up to %s",
                 cs_sheet_bytes(d->failed_free[p->device], bytes, sizeof(bytes)),
                 cs_sheet_bytes(d->failed_largest[p->device], largest, sizeof(largest)));
    else
        snprintf(part, sizeof(part), ": %s free in %u block%s, the largest %s",
                 cs_sheet_bytes(p->held[p->n_categories - 1], bytes, sizeof(bytes)), p->n_holes,
                 p->n_holes == 1 ? "" : "s",
                 cs_sheet_bytes(p->largest_hole, largest, sizeof(largest)));
    add_part(p, text, sizeof(text), part);
    cs_sheet_text(p->sheet, p->sheet->left, y, CS_COLOUR_TEXT, text);
}

static bool capacity_is_drawn(const segment_plot *p)
{
    const int64_t capacity = p->devices.capacity[p->device];
    return capacity != INT64_MAX && (double)capacity / p->unit->bytes <= p->highest;
}

static void write_legend(const segment_plot *p)
{
    cs_legend_entry entries[MAX_CATEGORIES + 5];
    char texts[MAX_CATEGORIES][64], bytes[40];
    uint32_t n = 0;
    entries[n++] =
        (cs_legend_entry){.text = "reserved", .colour = RESERVED_COLOUR, .other = RESERVED_COLOUR};
    entries[n++] = (cs_legend_entry){
        .text = "allocated", .colour = ALLOCATED_COLOUR, .other = ALLOCATED_COLOUR};
    if (capacity_is_drawn(p))
        entries[n++] =
            (cs_legend_entry){"capacity", CS_COLOUR_TEXT, CS_COLOUR_TEXT, true, CS_SIGN_LINE};
    entries[n++] = (cs_legend_entry){.text = "in the segments:"};
    for (uint32_t c = 0; c < p->n_categories; c++) {
        const bool rest = c + 1 == p->n_categories;
        const uint32_t colour = rest ? FREE_COLOUR : cs_style_of(p->categories[c])->colour;
        if (p->held[c] == 0)
            continue;
        cs_text_format(texts[c], sizeof(texts[c]), "%.24s %.38s", rest ? "free" : p->categories[c],
                       cs_sheet_bytes(p->held[c], bytes, sizeof(bytes)));
        entries[n++] = (cs_legend_entry){.text = texts[c],
                                         .colour = colour,
                                         .other = rest ? HOLE_COLOUR : colour,
                                         .sign = rest ? CS_SIGN_HATCHED : CS_SIGN_NONE};
    }
    entries[n++] = (cs_legend_entry){.text = "line: a segment begins"};
    cs_sheet_legend(p->sheet, entries, n);
}

/* ---- memory over time ---- */

typedef struct step {
    cs_time time;
    double last, high, low; /* bytes: most recent value; maximum and minimum within the cell */
    double cell;
    FILE *out;
    bool begun;
} step;

static void write_point(const segment_plot *p, const step *s, cs_time time, double bytes)
{
    fprintf(s->out, "%.15g %.9g\n", (double)time / p->time_unit, bytes / p->unit->bytes);
}

/* Adds a step to a curve. Of the changes within half a unit of the sheet, draws only new maxima and
 * minima. */
static void write_step(const segment_plot *p, step *s, cs_time time, int64_t most, int64_t then)
{
    const double scale = 2 * (p->sheet->width - p->sheet->left - p->sheet->right);
    const double cell = floor((double)time / (double)(p->sheet->until - p->sheet->from) * scale);
    if (s->begun && cell == s->cell && (double)most <= s->high && (double)then >= s->low) {
        s->last = (double)then;
        return;
    }
    if (s->begun)
        write_point(p, s, time, s->last);
    write_point(p, s, time, (double)most);
    write_point(p, s, time, (double)then);
    const bool same = s->begun && cell == s->cell;
    s->high = same ? fmax(s->high, (double)most) : (double)most;
    s->low = same ? fmin(s->low, (double)then) : (double)then;
    s->last = (double)then;
    s->cell = cell;
    s->begun = true;
}

static void write_samples(const segment_plot *p, const char *name, const int64_t *most,
                          const int64_t *then)
{
    step s = {.out = cs_gnuplot_file(p->sheet->job, name)};
    for (uint64_t i = 0; i < p->n_samples; i++)
        if (p->sample_device[i] == p->played)
            write_step(p, &s, p->time[i], most[i], then[i]);
    write_point(p, &s, p->sheet->until, s.last);
}

/* ---- drawing the segments ---- */

static double row_top(const segment_plot *p, uint32_t row)
{
    const double bottom = p->sheet->height - CS_SHEET_MARGIN;
    return bottom - (p->n_rows - row) * (ROW + ROW_GAP) + ROW_GAP;
}

/* Draws a piece from one position to another, in bytes from the start of the rows; splits the piece
 * at row ends. */
static void draw_piece(const segment_plot *p, double from, double until, const piece *of)
{
    const cs_sheet *sheet = p->sheet;
    const double scale = (sheet->width - sheet->left - sheet->right) / p->row_bytes;
    while (from < until) {
        uint32_t row = (uint32_t)fmin(floor(from / p->row_bytes), p->n_rows - 1.);
        /* corrects rounding errors */
        row += row + 1 < p->n_rows && (row + 1) * p->row_bytes <= from;
        const double end = row + 1 < p->n_rows ? fmin(until, (row + 1) * p->row_bytes) : until;
        const double left = sheet->left + (from - row * p->row_bytes) * scale;
        const double right = sheet->left + (end - row * p->row_bytes) * scale;
        const double top = row_top(p, row);
        if (is_free(p, of))
            cs_sheet_hatch(sheet->strokes, left, right, top, top + ROW, HOLE_COLOUR);
        else
            cs_sheet_box(p->sheet, left, right, top, top + ROW,
                         cs_style_of(p->categories[of->category])->colour);
        from = end;
    }
}

/* Draws a vertical line where a segment begins, slightly taller than the row; omits lines that
 * would be too close to each other. */
static void draw_border(const segment_plot *p, double at, double *last)
{
    enum { NEAREST = 3 };
    const cs_sheet *sheet = p->sheet;
    const double scale = (sheet->width - sheet->left - sheet->right) / p->row_bytes;
    const uint32_t row = (uint32_t)fmin(floor(at / p->row_bytes), p->n_rows - 1.);
    if ((at - *last) * scale < NEAREST)
        return;
    fprintf(sheet->strokes, "%.2f %.2f 0 %d %u\n", sheet->left + (at - row * p->row_bytes) * scale,
            row_top(p, row) - 1.5, ROW + 3, CS_COLOUR_TEXT);
    *last = at;
}

/* Draws all pieces. A piece that is too narrow to be seen is drawn as part of the previous piece of
 * its segment. */
static void draw_pieces(const segment_plot *p)
{
    const double narrow =
        0.15 * p->row_bytes / (p->sheet->width - p->sheet->left - p->sheet->right);
    double at = 0, border = -p->row_bytes;
    for (uint32_t i = 0, end; i < p->n_pieces; i = end) {
        double until = at + (double)p->pieces[i].bytes;
        for (end = i + 1; end < p->n_pieces && (double)p->pieces[end].bytes < narrow &&
                          p->pieces[end].segment == p->pieces[i].segment;
             end++)
            until += (double)p->pieces[end].bytes;
        draw_piece(p, at, until, &p->pieces[i]);
        if (i == 0 || p->pieces[i].segment != p->pieces[i - 1].segment)
            draw_border(p, at, &border);
        at = until;
    }
}

/* Labels each row with its start, in bytes from the first row: "5 GB". */
static void name_rows(const segment_plot *p)
{
    char text[64];
    for (uint32_t row = 0; row < p->n_rows; row++) {
        cs_sheet_bytes((int64_t)(row * p->row_bytes), text, sizeof(text));
        cs_sheet_text(p->sheet, p->sheet->left - 6 - cs_sheet_text_width(text, CS_SHEET_FONT),
                      row_top(p, row) + ROW / 2., CS_COLOUR_TEXT, text);
    }
}

/* ---- the picture ---- */

static void choose_scale(segment_plot *p)
{
    const int64_t peak = p->devices.peak_reserved[p->device];
    const int64_t capacity = p->devices.capacity[p->device];
    double top = fmax(1.12 * (double)peak, 1);
    if (capacity != INT64_MAX && (double)capacity <= 2 * (double)peak)
        top = fmax(top, 1.06 * (double)capacity);
    p->unit = cs_byte_unit_of(top / 1.12);
    p->highest = top / p->unit->bytes;
    const double all = fmax((double)p->all, 1);
    p->row_bytes = cs_sheet_tick_step(all, 24. * MOST_ROWS);
    p->n_rows = (uint32_t)ceil(all / p->row_bytes);
}

static void write_parameters(const segment_plot *p)
{
    cs_sheet *sheet = p->sheet;
    const device_figures *d = &p->devices;
    char x[48], y[48];
    cs_gnuplot_number(sheet->job, "until", (double)sheet->until / p->time_unit);
    cs_gnuplot_number(sheet->job, "middle", (double)sheet->until / p->time_unit / 2);
    cs_gnuplot_number(sheet->job, "highest", p->highest);
    cs_gnuplot_number(sheet->job, "step", cs_sheet_tick_step(p->highest, PANEL));
    cs_gnuplot_number(sheet->job, "capacity",
                      capacity_is_drawn(p) ? (double)d->capacity[p->device] / p->unit->bytes : 0);
    cs_gnuplot_number(sheet->job, "peak", (double)d->peak_reserved[p->device] / p->unit->bytes);
    cs_gnuplot_number(sheet->job, "peak_time", (double)d->peak_time[p->device] / p->time_unit);
    cs_gnuplot_number(sheet->job, "failed_time",
                      p->failed ? (double)d->failed_time[p->device] / p->time_unit : -1);
    cs_gnuplot_number(sheet->job, "panel_bottom", p->panel_bottom);
    cs_gnuplot_number(sheet->job, "allocated_colour", ALLOCATED_COLOUR);
    cs_gnuplot_number(sheet->job, "reserved_colour", RESERVED_COLOUR);
    cs_gnuplot_number(sheet->job, "bad_colour", CS_COLOUR_BAD);
    snprintf(x, sizeof(x), "time (%s), two rounds", sheet->time_unit);
    snprintf(y, sizeof(y), "memory (%s)", p->unit->name);
    cs_sheet_axis_titles(sheet, x, sheet->width - sheet->left - sheet->right, y, PANEL);
}

/* Lays out the sheet: title, legend, heading, panel over time; the rows end at the bottom. */
static cs_status lay_out(segment_plot *p, cs_error *error)
{
    cs_sheet *sheet = p->sheet;
    const double rows = p->n_rows * (ROW + ROW_GAP) + CS_SHEET_MARGIN;
    const double headings = HEADING * (p->failed ? 2 : 1);
    CS_TRY(write_heading(p, sheet->top + HEADING / 2., error));
    sheet->top += HEADING;
    if (sheet->height == 0)
        sheet->height = ceil(sheet->top + PANEL + CS_SHEET_AXIS + headings + rows);
    p->panel_bottom = sheet->height - rows - headings - CS_SHEET_AXIS;
    if (p->panel_bottom < sheet->top + PANEL / 2.)
        return cs_error_add(
            error, CS_USAGE, "height: must be at least %.0f pixels (got %.0f)",
            ceil((sheet->top + PANEL / 2. + CS_SHEET_AXIS + headings + rows) * sheet->zoom),
            sheet->height * sheet->zoom);
    sheet->bottom = sheet->height - p->panel_bottom;
    const double y = sheet->height - rows - headings + HEADING / 2. - ROW_GAP;
    if (p->failed)
        CS_TRY(write_failure(p, y, error));
    write_contents(p, y + headings - HEADING);
    return CS_OK;
}

static cs_status prepare(segment_plot *p, cs_error *error)
{
    cs_sheet *sheet = p->sheet;
    CS_TRY(read_devices(p, error));
    CS_TRY(read_tables(p, error));
    CS_TRY(choose_device(p, error));
    CS_TRY(find_pieces(p, error));
    sheet->left = LEFT;
    sheet->from = 0;
    sheet->until = sheet->reader->makespan > 0 ? 2 * sheet->reader->makespan : 1;
    p->time_unit = cs_sheet_time_unit(sheet);
    choose_scale(p);
    cs_sheet_run_title(sheet);
    write_legend(p);
    CS_TRY(lay_out(p, error));
    write_samples(p, "allocated.dat", p->most_allocated, p->allocated);
    write_samples(p, "reserved.dat", p->most_reserved, p->reserved);
    draw_pieces(p);
    name_rows(p);
    write_parameters(p);
    return CS_OK;
}

cs_status cs_plot_segments(cs_sheet *sheet, const char *output, cs_error *error)
{
    segment_plot p = {.sheet = sheet};
    const cs_plot_options *options = sheet->options;
    if (options->from > 0 || options->until > 0 || options->n_mini_batches > 0)
        return cs_error_add(error, CS_USAGE,
                            "segments: is of the whole run; takes no time range and no "
                            "mini-batches");
    const cs_status status = prepare(&p, error);
    free(p.pieces);
    return status == CS_OK ? cs_sheet_draw(sheet, output, "segments.gp", error) : status;
}
