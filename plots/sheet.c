#include "plots/sheet.h"

#include "plots/gnuplot.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/core/trace/results-schema.h"
#include "sim/run/figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    SUBTITLE = 34, /* vertical centre of the first line below the title */
    LEGEND_LINE = 16,
    /* the legend is this much closer to the title's last line than another line would be */
    CLOSER = 6,
    SWATCH = 11,
    HATCH = 6, /* horizontal and vertical distance between slanted lines */
    SWATCH_GAP = 5,
    ENTRY_GAP = 12,
    /* minimum height below title and legend; gnuplot crashes without a drawing area */
    LOWEST_AREA = 10,
    TITLE_BYTES = 120, /* maximum length of a name in the title; longer names are cut */
};

/* Character widths of DejaVu Sans, the widest of the usual sans-serif fonts, in 1/2048 em, from ' '
 * to '~'. */
static const uint16_t character_widths[] = {
    651,  821,  942,  1716, 1303, 1946, 1597, 563,  799,  799,  1024, 1716, 651,  739,  651,  690,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690,  690,  1716, 1716, 1716, 1087,
    2048, 1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604,  604,  1343, 1141, 1767, 1532, 1612,
    1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799,  690,  799,  1716, 1024,
    1024, 1255, 1300, 1126, 1300, 1260, 721,  1300, 1298, 569,  569,  1186, 569,  1995, 1298, 1253,
    1300, 1300, 842,  1067, 803,  1298, 1212, 1675, 1212, 1212, 1075, 1303, 690,  1303, 1716};

/* Colours of Okabe and Ito, which people with any kind of colour blindness can distinguish ("Color
 * universal design", 2008); collectives other than all_reduce have colours of Tol ("Colour
 * schemes", 2021). Waiting is always grey. */
static const cs_style styles[] = {
    {"forward", 0x56B4E9, false},        {"backward", 0xE69F00, false},
    {"backward_input", 0xD55E00, false}, {"backward_weight", 0x009E73, false},
    {"recompute", 0xF0E442, false},      {"update", 0xCC79A7, false},
    {"transfer", 0x0072B2, true},        {"all_reduce", 0x101010, true},
    {"all_gather", 0x882255, true},      {"reduce_scatter", 0x44AA99, true},
    {"all_to_all", 0x999933, true},      {"broadcast", 0x117733, true},
    {"reduce", 0x332288, true},          {"scatter", 0x88CCEE, true},
    {"gather", 0xCC6677, true},          {"halo", 0xAA4499, true},
    {"shift", 0x661100, true},           {"communication", 0x0072B2, true},
    {"dependency", 0xB8B8B8, false},     {"flush", CS_COLOUR_IDLE, false},
    {"messages", 0xD6E6F2, false},       {"collectives", 0xD9D9D9, false},
    {"weights", 0x0072B2, false},        {"weight_versions", 0x56B4E9, false},
    {"gradients", 0x009E73, false},      {"optimizer_states", 0xCC79A7, false},
    {"activations", 0xE69F00, false},    {"communication_buffers", 0xD55E00, false},
    {"workspace", 0xF0E442, false},      {"gathered_weights", 0x882255, false},
};

const cs_style *cs_style_of(const char *word)
{
    static const cs_style unknown = {"", 0x808080, false};
    for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); i++) {
        if (strcmp(styles[i].word, word) == 0)
            return &styles[i];
    }
    return &unknown;
}

static uint32_t part(uint32_t colour, int shift)
{
    return colour >> shift & 0xff;
}

uint32_t cs_colour_shade(uint32_t colour)
{
    uint32_t red = part(colour, 16) * 7 / 10, green = part(colour, 8) * 7 / 10;
    return red << 16 | green << 8 | part(colour, 0) * 7 / 10;
}

uint32_t cs_colour_between(uint32_t first, uint32_t second, double at)
{
    uint32_t mixed = 0;
    for (int shift = 16; shift >= 0; shift -= 8)
        mixed |= (uint32_t)lround(part(first, shift) * (1 - at) + part(second, shift) * at)
                 << shift;
    return mixed;
}

uint32_t cs_colour_tint(uint32_t colour, double white)
{
    return cs_colour_between(colour, 0xFFFFFF, white);
}

/* Returns black on light colours, white on dark ones, by the approximate relative luminance (ITU-R
 * BT.601). */
uint32_t cs_colour_on(uint32_t colour)
{
    uint32_t light = 299 * part(colour, 16) + 587 * part(colour, 8) + 114 * part(colour, 0);
    return light > 115000 ? 0x000000 : 0xFFFFFF;
}

/* ---- devices and time range shown ---- */

static cs_status count_devices(cs_reader *reader, uint32_t *n, cs_error *error)
{
    const uint32_t *numbers;
    uint64_t rows = 0;
    const cs_reader_column column = {"devices/device", CS_READER_UINT32, &numbers};
    cs_status status = cs_reader_read(reader, &column, 1, &rows, error);
    if (status == CS_OK && (rows == 0 || rows > UINT32_MAX))
        status = cs_error_add(error, CS_INVALID, "%s: devices: has no rows", reader->path);
    *n = (uint32_t)rows;
    return status;
}

static cs_status choose_devices(cs_sheet *sheet, cs_error *error)
{
    uint32_t n = 0;
    CS_TRY(count_devices(sheet->reader, &n, error));
    uint32_t first = sheet->options->first_device, count = sheet->options->n_devices;
    if (first >= n || count > n - first)
        return cs_error_add(
            error, CS_USAGE, "devices %u to %" PRIu64 ": must be among 0 to %u, as %s has them",
            first, (uint64_t)first + (count ? count - 1 : 0), n - 1, sheet->reader->path);
    sheet->first_device = first;
    sheet->n_devices = count ? count : n - first;
    return CS_OK;
}

cs_status cs_sheet_shown_devices(const cs_sheet *sheet, uint32_t run, uint32_t *n, cs_error *error)
{
    uint32_t all = 0;
    const uint32_t first = sheet->first_device, asked = sheet->options->n_devices;
    CS_TRY(count_devices(sheet->readers[run], &all, error));
    const uint32_t left = all > first ? all - first : 0;
    *n = asked > 0 && asked < left ? asked : left;
    return CS_OK;
}

/* Chooses the time from the start of the first to the end of the last selected mini-batch. */
static cs_status choose_mini_batches(cs_sheet *sheet, cs_error *error)
{
    const uint32_t *batches = NULL;
    const int64_t *starts = NULL, *ends = NULL;
    const cs_reader_column columns[] = {{"tasks/mini_batch", CS_READER_UINT32, &batches},
                                        {"tasks/start", CS_READER_INT64, &starts},
                                        {"tasks/end", CS_READER_INT64, &ends}};
    uint64_t n = 0;
    CS_TRY(cs_reader_read(sheet->reader, columns, 3, &n, error));
    uint32_t first = sheet->options->first_mini_batch, count = sheet->options->n_mini_batches;
    cs_time from = CS_TIME_MAX, until = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (batches[i] < first || batches[i] - first >= count || starts[i] < 0)
            continue;
        from = starts[i] < from ? starts[i] : from;
        until = ends[i] > until ? ends[i] : until;
    }
    if (from >= until)
        return cs_error_add(error, CS_USAGE, "mini-batches %u to %" PRIu64 ": %s has none of them",
                            first, (uint64_t)first + count - 1, sheet->reader->path);
    sheet->from = from;
    sheet->until = until;
    return CS_OK;
}

static cs_status choose_time(cs_sheet *sheet, cs_error *error)
{
    const cs_plot_options *options = sheet->options;
    cs_time from = 0, until = CS_TIME_MAX;
    sheet->from = 0;
    sheet->until = 1;
    for (uint32_t i = 0; i < sheet->n_readers; i++)
        if (sheet->readers[i]->makespan > sheet->until)
            sheet->until = sheet->readers[i]->makespan;
    if (options->n_mini_batches > 0) {
        CS_TRY(choose_mini_batches(sheet, error));
    }
    if (!cs_time_from_seconds(options->from, &from) ||
        (options->until > 0 && !cs_time_from_seconds(options->until, &until)))
        return cs_error_add(error, CS_USAGE, "time range: must be >= 0 s and < 2^63 ps");
    sheet->from = from > sheet->from ? from : sheet->from;
    sheet->until = until < sheet->until ? until : sheet->until;
    if (sheet->from < sheet->until)
        return CS_OK;
    return cs_error_add(
        error, CS_USAGE, "time range: nothing is between %g s and %g s; %s ends at %g s",
        options->from, options->until > 0 ? options->until : cs_time_seconds(sheet->until),
        sheet->reader->path, cs_time_seconds(sheet->reader->makespan));
}

/* ---- texts and legend ---- */

double cs_sheet_text_width(const char *text, double size)
{
    enum { EM = 2048, OTHER = 1400 };
    double width = 0;
    for (const char *at = text; *at; at++) {
        const unsigned char c = (unsigned char)*at;
        if ((c & 0xC0) != 0x80) /* the first byte of a UTF-8 character */
            width += c >= ' ' && c <= '~' ? character_widths[c - ' '] : OTHER;
    }
    return width / EM * size;
}

/* Replaces double quotes and backslashes, as gnuplot has no escape for a quote in a data file. */
void cs_sheet_quote(FILE *out, const char *text)
{
    fputc('"', out);
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        char shown[CS_GNUPLOT_CHARACTER];
        n = cs_gnuplot_character(text, left, shown);
        fputs(*shown == '"' || *shown == '\\' ? "'" : shown, out);
    }
    fputc('"', out);
}

void cs_sheet_text(cs_sheet *sheet, double x, double y, uint32_t colour, const char *text)
{
    fprintf(sheet->texts, "%.2f %.2f ", x, y);
    cs_sheet_quote(sheet->texts, text);
    fprintf(sheet->texts, " %u\n", colour);
}

void cs_sheet_box(cs_sheet *sheet, double left, double right, double top, double bottom,
                  uint32_t colour)
{
    fprintf(sheet->swatches, "%.2f %.2f %.2f %.2f %u\n", left, right, top, bottom, colour);
}

/* Draws the lines x + y = 0, HATCH, 2 HATCH, ... of the sheet, clipped to the box. */
void cs_sheet_hatch(FILE *out, double left, double right, double top, double bottom,
                    uint32_t colour)
{
    for (double sum = ceil((left + top) / HATCH) * HATCH; sum < right + bottom; sum += HATCH) {
        const double first = fmax(left, sum - bottom), last = fmin(right, sum - top);
        if (last > first)
            fprintf(out, "%.2f %.2f %.2f %.2f %u\n", first, sum - first, last - first, first - last,
                    colour);
    }
}

/* Draws the lines x - y = 0, HATCH, 2 HATCH, ..., clipped to the box. */
void cs_sheet_hatch_back(FILE *out, double left, double right, double top, double bottom,
                         uint32_t colour)
{
    for (double d = ceil((left - bottom) / HATCH) * HATCH; d < right - top; d += HATCH) {
        const double first = fmax(left, d + top), last = fmin(right, d + bottom);
        if (last > first)
            fprintf(out, "%.2f %.2f %.2f %.2f %u\n", first, first - d, last - first, last - first,
                    colour);
    }
}

void cs_sheet_cross(FILE *out, double left, double right, double top, double bottom,
                    uint32_t colour)
{
    fprintf(out, "%.2f %.2f %.2f %.2f %u\n", left, top, right - left, bottom - top, colour);
    fprintf(out, "%.2f %.2f %.2f %.2f %u\n", left, bottom, right - left, top - bottom, colour);
}

void cs_sheet_mark(FILE *out, double x, double y, cs_sheet_sign sign, uint32_t colour)
{
    enum { CROSS = 2, RING = 6 }; /* gnuplot's point types */
    fprintf(out, "%.12g %.12g %d %u\n", x, y,
            sign > CS_SIGN_POINT   ? (int)(sign - CS_SIGN_POINT)
            : sign == CS_SIGN_RING ? RING
                                   : CROSS,
            colour);
}

static void legend_words(const char *text, char *words, size_t size)
{
    cs_text_format(words, size, "%s", text);
    for (char *at = words; *at; at++) {
        if (*at == '_')
            *at = ' ';
    }
}

static double swatch_width(const cs_legend_entry *entry)
{
    if (entry->n_swatches > 0)
        return entry->n_swatches * SWATCH + SWATCH_GAP;
    if (entry->colour == 0 && entry->other == 0 && entry->sign == CS_SIGN_NONE)
        return 0;
    const bool two = entry->other != entry->colour && entry->sign == CS_SIGN_NONE;
    return (two ? 2 : 1) * SWATCH + SWATCH_GAP;
}

/* Returns the colour of the lines across a swatch: the entry's other colour if it has one, else
 * black or white. */
static uint32_t sign_colour(const cs_legend_entry *entry)
{
    return entry->other != entry->colour ? entry->other : cs_colour_on(entry->colour);
}

static void legend_sign(cs_sheet *sheet, const cs_legend_entry *entry, double x, double y)
{
    const double top = y - SWATCH / 2., bottom = y + SWATCH / 2.;
    if (entry->sign == CS_SIGN_HATCHED || entry->sign == CS_SIGN_GRID)
        cs_sheet_hatch(sheet->strokes, x, x + SWATCH, top, bottom, sign_colour(entry));
    if (entry->sign == CS_SIGN_GRID)
        cs_sheet_hatch_back(sheet->strokes, x, x + SWATCH, top, bottom, sign_colour(entry));
    if (entry->sign == CS_SIGN_CROSSED)
        cs_sheet_cross(sheet->strokes, x, x + SWATCH, top, bottom, cs_colour_on(entry->colour));
    if (entry->sign == CS_SIGN_LINE)
        for (int dash = 0; dash < 3; dash++)
            fprintf(sheet->strokes, "%.2f %.2f 3 0 %u\n", x + 4.5 * dash, y, entry->colour);
    else if (entry->sign >= CS_SIGN_RING)
        cs_sheet_mark(sheet->marks, x + SWATCH / 2., y, entry->sign, entry->colour);
}

/* Draws one entry; (x, y) is the middle of its left side. */
static void legend_entry(cs_sheet *sheet, const cs_legend_entry *entry, double x, double y)
{
    char words[64];
    double middle = x + SWATCH, top = y - SWATCH / 2., bottom = y + SWATCH / 2.;
    for (uint32_t i = 0; i < entry->n_swatches; i++)
        cs_sheet_box(sheet, x + i * SWATCH, x + (i + 1) * SWATCH, top, bottom, entry->swatches[i]);
    if (entry->exact)
        cs_text_format(words, sizeof(words), "%.63s", entry->text);
    else
        legend_words(entry->text, words, sizeof(words));
    if (swatch_width(entry) > 0 && entry->sign < CS_SIGN_RING && entry->n_swatches == 0)
        cs_sheet_box(sheet, x, middle, top, bottom, entry->colour);
    legend_sign(sheet, entry, x, y);
    if (entry->other != entry->colour && entry->sign == CS_SIGN_NONE)
        cs_sheet_box(sheet, middle, middle + SWATCH, top, bottom, entry->other);
    cs_sheet_text(sheet, x + swatch_width(entry), y, CS_COLOUR_TEXT, words);
}

void cs_sheet_legend(cs_sheet *sheet, const cs_legend_entry *entries, uint32_t n)
{
    double x = CS_SHEET_MARGIN, y = sheet->top + LEGEND_LINE / 2.;
    for (uint32_t i = 0; i < n; i++) {
        double width =
            swatch_width(&entries[i]) + cs_sheet_text_width(entries[i].text, CS_SHEET_FONT);
        if (x + width > sheet->width - CS_SHEET_MARGIN && x > CS_SHEET_MARGIN) {
            x = CS_SHEET_MARGIN;
            y += LEGEND_LINE;
        }
        legend_entry(sheet, &entries[i], x, y);
        x += width + ENTRY_GAP;
    }
    sheet->top = y + LEGEND_LINE / 2. + 8;
}

static bool continues(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Replaces the middle of a text, i.e. the bytes that do not fit but at least four, by three dots.
 * Removes only whole characters. */
void cs_sheet_shorten(char *text, double size, double room)
{
    const double dots = cs_sheet_text_width("...", size);
    const size_t length = strlen(text);
    size_t head = length, tail = length;
    if (cs_sheet_text_width(text, size) <= room || length < 5)
        return;
    room = fmax(room - dots, 0);
    double used = 0;
    for (size_t first = 0, last = length, turn = 0; first < last; turn++) {
        char one[5] = "";
        size_t begin = turn % 2 ? last - 1 : first, end = turn % 2 ? last : first + 1;
        while (begin > 0 && continues(text[begin]))
            begin--;
        while (continues(text[end]))
            end++;
        memcpy(one, text + begin, end - begin < 4 ? end - begin : 4);
        used += cs_sheet_text_width(one, size);
        if (used > room && turn > 0)
            break;
        first = turn % 2 ? first : end;
        last = turn % 2 ? begin : last;
        head = first;
        tail = last;
    }
    if (tail < head + 4)
        return;
    memcpy(text + head, "...", 3);
    memmove(text + head + 3, text + tail, length - tail + 1);
}

/* Appends a part to the line below the title, or starts another line. A narrow sheet has at most
 * two lines. */
static void add_part(cs_sheet *sheet, char *line, size_t size, const char *part)
{
    double room = sheet->width - 2 * CS_SHEET_MARGIN;
    enum { NARROW = 400 };
    const bool full =
        *line &&
        cs_sheet_text_width(line, CS_SHEET_FONT) + cs_sheet_text_width(part, CS_SHEET_FONT) > room;
    if (full && sheet->width < NARROW && sheet->top > SUBTITLE)
        return;
    if (full) {
        cs_sheet_text(sheet, CS_SHEET_MARGIN, sheet->top, CS_COLOUR_SUBTITLE, line);
        sheet->top += LEGEND_LINE;
        *line = '\0';
    }
    size_t used = strlen(line);
    cs_text_format(line + used, size - used, "%s%s", *line ? ", " : "", part);
}

static void add_figures(cs_sheet *sheet, char *line, size_t size)
{
    const cs_run_figure *figure;
    char part[2 * CS_UNIT_TEXT_BYTES];
    snprintf(part, sizeof(part), "OUT OF MEMORY on %u device%s", sheet->out_of_memory[0],
             sheet->out_of_memory[0] == 1 ? "" : "s");
    if (sheet->out_of_memory[0] > 0)
        add_part(sheet, line, size, part);
    for (uint32_t f = 0; (figure = cs_run_figure_main(f)); f++) {
        const double value = cs_reader_figure(sheet->reader, figure->key);
        if (isfinite(value))
            add_part(sheet, line, size, cs_run_figure_phrase(figure, value, part, sizeof(part)));
    }
}

static bool all_same(const cs_sheet *sheet, const char *(*of)(const cs_reader *))
{
    for (uint32_t i = 1; i < sheet->n_readers; i++)
        if (strcmp(of(sheet->readers[i]), of(sheet->readers[0])) != 0)
            return false;
    return true;
}

static const char *scenario_of(const cs_reader *reader)
{
    return reader->name;
}

static const char *schedule_of(const cs_reader *reader)
{
    return reader->schedule;
}

static const char *topology_of(const cs_reader *reader)
{
    return reader->topology;
}

/* Adds the schedule and the topology, if all runs have the same; the headings of the runs show the
 * rest. */
static void add_common(cs_sheet *sheet, char *line, size_t size)
{
    char part[3 * TITLE_BYTES];
    const cs_reader *reader = sheet->reader;
    if (all_same(sheet, schedule_of))
        cs_text_format(part, sizeof(part), "%.*s on %.*s", TITLE_BYTES, reader->schedule,
                       TITLE_BYTES, reader->topology);
    else
        cs_text_format(part, sizeof(part), "on %.*s", TITLE_BYTES, reader->topology);
    if (all_same(sheet, topology_of))
        add_part(sheet, line, size, part);
}

/* Writes the title, shortened to the width. If the options set a title, writes it instead, and
 * leaves no room for lines below. */
static void write_title(cs_sheet *sheet, const char *title)
{
    char line[3 * TITLE_BYTES];
    const char *asked = sheet->options->title;
    cs_text_format(line, sizeof(line), "%.*s", asked ? 2 * TITLE_BYTES : TITLE_BYTES,
                   asked ? asked : title);
    cs_sheet_shorten(line, CS_SHEET_FONT + 2, sheet->width - 2 * CS_SHEET_MARGIN);
    cs_gnuplot_text(sheet->job, "heading", line);
    if (asked)
        sheet->top = *asked ? SUBTITLE - LEGEND_LINE / 2 : CS_SHEET_MARGIN;
}

/* Writes the last line below the title. The legend follows it more closely than another line
 * would. */
static void end_title(cs_sheet *sheet, const char *line)
{
    cs_sheet_text(sheet, CS_SHEET_MARGIN, sheet->top, CS_COLOUR_SUBTITLE, line);
    sheet->top += LEGEND_LINE - CLOSER;
}

void cs_sheet_run_title(cs_sheet *sheet)
{
    const cs_reader *reader = sheet->reader;
    char part[3 * TITLE_BYTES], line[8 * TITLE_BYTES] = "";
    double room = sheet->width - 2 * CS_SHEET_MARGIN;
    write_title(sheet, all_same(sheet, scenario_of) ? reader->name : "");
    if (sheet->options->title)
        return;
    if (sheet->n_readers > 1) {
        add_common(sheet, line, sizeof(line));
    } else {
        cs_text_format(part, sizeof(part), "%.*s on %.*s", TITLE_BYTES, reader->schedule,
                       TITLE_BYTES, reader->topology);
        cs_sheet_shorten(part, CS_SHEET_FONT, room);
        add_part(sheet, line, sizeof(line), part);
        add_figures(sheet, line, sizeof(line));
    }
    end_title(sheet, line);
}

static void write_parts(cs_sheet *sheet, const char *parts)
{
    char line[8 * TITLE_BYTES] = "", part[3 * TITLE_BYTES];
    for (const char *at = parts, *end; at; at = end ? end + 2 : NULL) {
        end = strstr(at, ", ");
        cs_text_format(part, sizeof(part), "%.*s", end ? (int)(end - at) : 2 * TITLE_BYTES, at);
        cs_sheet_shorten(part, CS_SHEET_FONT, sheet->width - 2 * CS_SHEET_MARGIN);
        add_part(sheet, line, sizeof(line), part);
    }
    end_title(sheet, line);
}

void cs_sheet_title(cs_sheet *sheet, const char *title, const char *subtitle)
{
    write_title(sheet, title);
    if (!sheet->options->title)
        write_parts(sheet, subtitle);
}

void cs_sheet_title_more(cs_sheet *sheet, const char *parts)
{
    if (sheet->options->title)
        return;
    sheet->top += CLOSER;
    write_parts(sheet, parts);
}

/* ---- names of runs, devices and axes ---- */

/* Writes the name of a file without folder and suffix: "run" for "results/run.h5". */
static void file_stem(const char *path, char *text, size_t size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    cs_text_format(text, size, "%.*s", (int)(dot ? (size_t)(dot - name) : strlen(name)), name);
}

char *cs_sheet_run_name(const cs_sheet *sheet, uint32_t i, char *text, size_t size)
{
    const cs_reader *reader = sheet->readers[i];
    char stem[TITLE_BYTES];
    file_stem(reader->path, stem, sizeof(stem));
    if (!all_same(sheet, scenario_of))
        cs_text_format(text, size, "%.100s", reader->name);
    else if (strcmp(stem, reader->schedule) == 0 || !all_same(sheet, schedule_of))
        cs_text_format(text, size, "%.100s", reader->schedule);
    else
        cs_text_format(text, size, "%.100s", stem);
    return text;
}

char *cs_sheet_device_name(const cs_sheet *sheet, uint32_t run, uint32_t row, char *text,
                           size_t size)
{
    const cs_reader *reader = sheet->readers[run];
    if (reader->kinds && row < reader->n_kinds)
        cs_text_format(text, size, "%s", reader->kinds[row]);
    else
        snprintf(text, size, "%u", row);
    return text;
}

double cs_sheet_device_names_room(const cs_sheet *sheet, uint32_t run, uint32_t n)
{
    char name[64];
    double widest = 0;
    for (uint32_t row = 0; row < n; row++)
        widest = fmax(
            widest, cs_sheet_text_width(cs_sheet_device_name(sheet, run, sheet->first_device + row,
                                                             name, sizeof(name)),
                                        CS_SHEET_FONT));
    return CS_SHEET_MARGIN + CS_SHEET_FONT + 8 + widest + 6;
}

static void axis_title(cs_sheet *sheet, const char *variable, const char *asked, const char *chosen,
                       double room)
{
    char text[3 * TITLE_BYTES];
    cs_text_format(text, sizeof(text), "%.*s", 2 * TITLE_BYTES, asked ? asked : chosen);
    cs_sheet_shorten(text, CS_SHEET_FONT, room);
    cs_gnuplot_text(sheet->job, variable, text);
}

void cs_sheet_axis_titles(cs_sheet *sheet, const char *x, double x_room, const char *y,
                          double y_room)
{
    axis_title(sheet, "x_title", sheet->options->x_title, x, x_room);
    axis_title(sheet, "y_title", sheet->options->y_title, y, y_room);
}

/* ---- units ---- */

static const struct {
    const char *name;
    double picoseconds;
} time_units[] = {{"s", 1e12}, {"ms", 1e9}, {"µs", 1e6}, {"ns", 1e3}, {"ps", 1}};

double cs_sheet_time_unit(cs_sheet *sheet)
{
    size_t i = 0;
    while ((double)(sheet->until - sheet->from) < time_units[i].picoseconds)
        i++;
    sheet->time_unit = time_units[i].name;
    return time_units[i].picoseconds;
}

void cs_sheet_time_axis(cs_sheet *sheet, const char *y)
{
    char x[32];
    snprintf(x, sizeof(x), "time (%s)", sheet->time_unit ? sheet->time_unit : "s");
    cs_sheet_axis_titles(sheet, x, sheet->width - sheet->left - sheet->right, y,
                         sheet->height - sheet->top - sheet->bottom);
}

double cs_sheet_tick_step(double range, double length)
{
    double least = range * 24 / fmax(length, 1);
    double power = pow(10, floor(log10(least)));
    double digit = least / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

const cs_byte_unit *cs_byte_unit_of(double bytes)
{
    static const cs_byte_unit units[] = {{"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9},
                                         {"MB", 1e6},  {"kB", 1e3},  {"bytes", 1}};
    size_t i = 0;
    while (i + 1 < sizeof(units) / sizeof(units[0]) && bytes < units[i].bytes)
        i++;
    return &units[i];
}

char *cs_sheet_bytes(int64_t bytes, char *text, size_t size)
{
    return cs_units_format((double)bytes, CS_QUANTITY_BYTES, 4, text, size);
}

char *cs_sheet_time(cs_time time, char *text, size_t size)
{
    return cs_units_format(cs_time_seconds(time), CS_QUANTITY_TIME, 4, text, size);
}

/* ---- the sheet ---- */

/* Returns the font size that the options set; otherwise the sheet's, or for print the usual size of
 * text below figures. */
static double font_size(const cs_plot_options *options, bool print)
{
    enum { PRINTED = 8 };
    if (options->font_size > 0)
        return options->font_size;
    return print ? PRINTED : CS_SHEET_FONT;
}

static cs_sheet empty_sheet(const cs_plot_options *options, cs_reader *reader, cs_gnuplot *job)
{
    const size_t length = options->output ? strlen(options->output) : 0;
    const bool pdf = length >= 4 && strcasecmp(options->output + length - 4, ".pdf") == 0;
    const double zoom = font_size(options, options->print || pdf) / CS_SHEET_FONT;
    return (cs_sheet){
        .options = options,
        .reader = reader,
        .job = job,
        .zoom = zoom,
        .asked_width = options->width / zoom,
        .asked_height = options->height / zoom,
        .width = options->width ? options->width / zoom : CS_SHEET_WIDTH,
        .height = options->height / zoom,
        .left = 52,
        .right = CS_SHEET_MARGIN,
        .top = SUBTITLE,
        .bottom = CS_SHEET_AXIS,
    };
}

/* Opens the data files that frame.gp draws. */
static void open_files(cs_sheet *sheet)
{
    sheet->texts = cs_gnuplot_file(sheet->job, "texts.dat");
    sheet->swatches = cs_gnuplot_file(sheet->job, "swatches.dat");
    sheet->strokes = cs_gnuplot_file(sheet->job, "strokes.dat");
    sheet->marks = cs_gnuplot_file(sheet->job, "marks.dat");
}

cs_status cs_sheet_init(cs_sheet *sheet, const cs_plot_options *options, cs_reader *readers,
                        uint32_t n_readers, cs_gnuplot *job, cs_error *error)
{
    *sheet = empty_sheet(options, readers, job);
    sheet->n_readers = n_readers;
    for (uint32_t i = 0; i < n_readers; i++)
        sheet->readers[i] = &readers[i];
    sheet->side_by_side = n_readers != 2 || cs_reader_is_from(&readers[0], CS_RESULTS_MEASURED) ||
                          cs_reader_is_from(&readers[1], CS_RESULTS_SIMULATED);
    open_files(sheet);
    CS_TRY(choose_devices(sheet, error));
    for (uint32_t i = 0; i < n_readers; i++)
        CS_TRY(cs_reader_out_of_memory(&readers[i], &sheet->out_of_memory[i], error));
    return choose_time(sheet, error);
}

cs_status cs_sheet_init_sweep(cs_sheet *sheet, const cs_plot_options *options, cs_reader *reader,
                              cs_gnuplot *job, cs_error *error)
{
    *sheet = empty_sheet(options, reader, job);
    if (options->first_device > 0 || options->n_devices > 0 || options->first_mini_batch > 0 ||
        options->n_mini_batches > 0 || options->from > 0 || options->until > 0)
        return cs_error_add(error, CS_USAGE,
                            "%s: is of a sweep; takes no devices, mini-batches and times",
                            options->kind);
    open_files(sheet);
    return CS_OK;
}

void cs_sheet_init_plain(cs_sheet *sheet, const cs_plot_options *options, cs_gnuplot *job)
{
    *sheet = empty_sheet(options, NULL, job);
    open_files(sheet);
}

/* Passes the names of rows to gnuplot if a row may represent several devices; otherwise rows are
 * named by their device numbers. */
static cs_status name_devices(const cs_sheet *sheet, cs_error *error)
{
    const cs_reader *reader = sheet->reader;
    const uint32_t n = reader ? reader->n_kinds : 0;
    char *names = calloc(32 * (size_t)n + 1, 1);
    size_t used = 0;
    if (!names)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++)
        used +=
            (size_t)cs_text_format(names + used, 32, "%s%s", i > 0 ? " " : "", reader->kinds[i]);
    cs_gnuplot_text(sheet->job, "device_names", names);
    free(names);
    return CS_OK;
}

cs_status cs_sheet_draw(cs_sheet *sheet, const char *output, const char *program, cs_error *error)
{
    if (sheet->height - sheet->bottom - sheet->top < LOWEST_AREA)
        return cs_error_add(error, CS_USAGE,
                            "height: must be at least %.0f pixels for title, legend and axes "
                            "(got %.0f)",
                            ceil((sheet->top + sheet->bottom + LOWEST_AREA) * sheet->zoom),
                            sheet->height * sheet->zoom);
    cs_gnuplot_number(sheet->job, "zoom", sheet->zoom);
    cs_gnuplot_number(sheet->job, "dots", sheet->options->print ? 300. / 72 : 1);
    cs_gnuplot_number(sheet->job, "sheet_width", sheet->width);
    cs_gnuplot_number(sheet->job, "sheet_height", sheet->height);
    cs_gnuplot_number(sheet->job, "font_size", CS_SHEET_FONT);
    cs_gnuplot_number(sheet->job, "area_left", sheet->left);
    cs_gnuplot_number(sheet->job, "area_right", sheet->width - sheet->right);
    cs_gnuplot_number(sheet->job, "area_top", sheet->top);
    cs_gnuplot_number(sheet->job, "area_bottom", sheet->height - sheet->bottom);
    cs_gnuplot_number(sheet->job, "first_device", sheet->first_device);
    cs_gnuplot_number(sheet->job, "n_devices", sheet->n_devices);
    cs_gnuplot_path(sheet->job, "output", output);
    CS_TRY(name_devices(sheet, error));
    return cs_gnuplot_run(sheet->job, program, error);
}
