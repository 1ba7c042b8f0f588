#include "plots/grid.h"

#include "plots/slice.h"
#include "plots/words.h"
#include "sim/base/json-labels.h"
#include "sim/base/json.h"
#include "sim/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLANT = 35 }; /* rotation of labels that do not fit next to each other, in degrees */

/* ---- units ---- */

static cs_grid_scale prefixed(const char *unit, double largest)
{
    static const struct {
        const char *prefix;
        double factor;
    } prefixes[] = {{"P", 1e15}, {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1}};
    size_t i = 0;
    while (largest < prefixes[i].factor && prefixes[i].factor > 1)
        i++;
    cs_grid_scale scale = {.unit = prefixes[i].factor};
    snprintf(scale.name, sizeof(scale.name), "%s%s", prefixes[i].prefix, unit);
    return scale;
}

static cs_grid_scale of_time(double largest)
{
    static const cs_grid_scale units[] = {
        {1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}, {1e-12, "ps"}};
    size_t i = 0;
    while (largest > 0 && largest < units[i].unit && i + 1 < sizeof(units) / sizeof(units[0]))
        i++;
    return units[i];
}

cs_grid_scale cs_grid_scale_of(const char *units, double largest)
{
    cs_grid_scale scale = {.unit = 1};
    if (strcmp(units, "s") == 0)
        return of_time(largest);
    if (strcmp(units, "bytes/s") == 0)
        return prefixed("B/s", largest);
    if (strcmp(units, "flop/s") == 0)
        return prefixed("flop/s", largest);
    if (strcmp(units, "bytes") == 0) {
        const cs_byte_unit *unit = cs_byte_unit_of(largest);
        scale.unit = unit->bytes;
        snprintf(scale.name, sizeof(scale.name), "%s", unit->name);
    } else if (strcmp(units, "1") != 0) {
        cs_text_format(scale.name, sizeof(scale.name), "%.15s", units);
    }
    return scale;
}

static void write_title(char *title, size_t size, const char *name, const cs_grid_scale *scale)
{
    bool unit = *scale->name;
    cs_text_format(title, size, "%.120s%s%s%s", name, unit ? " (" : "", scale->name,
                   unit ? ")" : "");
}

/* ---- reading ---- */

static bool is_figure(const char *name, const char *const *axes, uint32_t n_axes)
{
    for (uint32_t a = 0; a < n_axes; a++) {
        if (strcmp(axes[a], name) == 0)
            return false;
    }
    return strcmp(name, "error") != 0 && strcmp(name, "point") != 0;
}

static cs_status unknown_value(const cs_sheet *sheet, const char *const *names, uint32_t n,
                               const char *const *axes, uint32_t n_axes, cs_error *error)
{
    cs_guess guess;
    bool any = false;
    const char *value = sheet->options->value;
    cs_guess_init(&guess, value ? value : "");
    for (uint32_t i = 0; i < n; i++) {
        if (is_figure(names[i], axes, n_axes)) {
            cs_guess_add(&guess, names[i]);
            any = true;
        }
    }
    if (!any)
        return cs_error_add(error, CS_INVALID, "%s: has no figures, as all of its points failed",
                            sheet->reader->path);
    if (!value)
        return cs_error_add(error, CS_USAGE, "%s: --value must name a figure; %s has: %s",
                            sheet->options->kind, sheet->reader->path, guess.known);
    return cs_error_add(error, CS_USAGE, "%s: unknown value %s", sheet->options->kind,
                        cs_guess_text(&guess));
}

static bool has_name(const char *const *names, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

/* Returns the metric that the options name, or the iteration time, which every run has. */
static const char *figure_name(const cs_sheet *sheet)
{
    return sheet->options->value ? sheet->options->value : "iteration_time_s";
}

static cs_status read_values(const cs_sheet *sheet, const char *const *axes, uint32_t n_axes,
                             cs_reader_array *array, cs_error *error)
{
    const char *const *names;
    uint32_t n = 0;
    CS_TRY(cs_reader_names(sheet->reader, "/", "", &names, &n, error));
    const char *value = figure_name(sheet);
    if (!has_name(names, n, value) || !is_figure(value, axes, n_axes))
        return unknown_value(sheet, names, n, axes, n_axes, error);
    CS_TRY(cs_reader_read_array(sheet->reader, value, array, error));
    return !array->values ? cs_error_add(error, CS_USAGE,
                                         "%s: %s: holds texts, which cannot be drawn as a figure",
                                         sheet->options->kind, value)
                          : CS_OK;
}

static double largest_of(const double *values, uint64_t n)
{
    double largest = 0;
    for (uint64_t i = 0; i < n; i++)
        largest = isfinite(values[i]) ? fmax(largest, fabs(values[i])) : largest;
    return largest;
}

static uint64_t count_values(const cs_reader_array *array)
{
    return array->sizes[0] * (array->rank > 1 ? array->sizes[1] : 1);
}

/* Fills `names` with the names of all axes; cs_slice_take later removes the fixed keys. */
static void name_axes(const char **names, const char *const *axes, uint32_t n)
{
    for (uint32_t a = 0; a < n && a < CS_READER_RANK_MAX; a++)
        names[a] = axes[a];
}

/* Reads the slice of out_of_memory that matches the metric's values. array->values stays NULL if
 * the file has no such column. */
static cs_status read_out_of_memory(const cs_sheet *sheet, const char *const *axes, uint32_t n_axes,
                                    const cs_reader_array *figure, cs_reader_array *array,
                                    cs_error *error)
{
    static const char name[] = "out_of_memory";
    const char *const *all, *names[CS_READER_RANK_MAX];
    char fixed[sizeof(((cs_sheet_grid *)0)->fixed)];
    uint32_t n = 0;
    *array = (cs_reader_array){0};
    cs_status status = cs_reader_names(sheet->reader, "/", "", &all, &n, error);
    if (status != CS_OK || !has_name(all, n, name))
        return status;
    status = cs_reader_read_array(sheet->reader, name, array, error);
    name_axes(names, axes, n_axes);
    if (status == CS_OK && array->values)
        status = cs_slice_take(sheet, names, array, fixed, sizeof(fixed), error);
    if (status != CS_OK)
        return status;
    if (!array->values || array->rank != figure->rank ||
        count_values(array) != count_values(figure))
        return cs_error_add(error, CS_INVALID, "%s: %s: must have as many numbers as %s",
                            sheet->reader->path, name, figure->name);
    return CS_OK;
}

/* Reads the smallest device capacity at each point, in the metric's unit; NaN: no limit. Leaves
 * grid->capacities NULL if capacity does not limit the metric or no point has a limit. */
static cs_status read_capacities(const cs_sheet *sheet, const char *const *axes, uint32_t n_axes,
                                 const cs_reader_array *figure, double unit, cs_sheet_grid *grid,
                                 cs_error *error)
{
    static const char *const bounded[] = {"peak_memory_bytes", "peak_reserved_bytes"};
    static const char name[] = "capacity_bytes";
    const char *const *all, *names[CS_READER_RANK_MAX];
    char fixed[sizeof(grid->fixed)];
    cs_reader_array array;
    uint32_t n = 0;
    CS_TRY(cs_reader_names(sheet->reader, "/", "", &all, &n, error));
    if (!has_name(all, n, name) || !has_name(bounded, 2, figure->name))
        return CS_OK;
    CS_TRY(cs_reader_read_array(sheet->reader, name, &array, error));
    name_axes(names, axes, n_axes);
    if (array.values)
        CS_TRY(cs_slice_take(sheet, names, &array, fixed, sizeof(fixed), error));
    double *capacities = cs_arena_alloc(&sheet->reader->arena, grid->n, sizeof(*capacities));
    if (!capacities)
        return cs_error_no_memory(error);
    bool limited = false;
    for (uint64_t i = 0; i < grid->n; i++) {
        capacities[i] =
            array.values && count_values(&array) == grid->n ? array.values[i] / unit : (double)NAN;
        limited = limited || isfinite(capacities[i]);
    }
    grid->capacities = limited ? capacities : NULL;
    return CS_OK;
}

/* Derives the state of each point from out_of_memory. The sweep records that column for every run
 * that finished, so NaN means that the point failed. */
static cs_status read_states(const cs_sheet *sheet, const char *const *axes, uint32_t n_axes,
                             const cs_reader_array *figure, cs_sheet_grid *grid, cs_error *error)
{
    cs_reader_array array;
    const uint64_t n = count_values(figure);
    uint8_t *states = cs_arena_alloc(&sheet->reader->arena, n, sizeof(*states));
    if (!states)
        return cs_error_no_memory(error);
    memset(states, CS_GRID_FITS, n);
    grid->states = states;
    CS_TRY(read_out_of_memory(sheet, axes, n_axes, figure, &array, error));
    for (uint64_t i = 0; i < n && array.values; i++) {
        states[i] = isnan(array.values[i]) ? CS_GRID_FAILED
                    : array.values[i] != 0 ? CS_GRID_OUT_OF_MEMORY
                                           : CS_GRID_FITS;
        grid->out_of_memory += states[i] == CS_GRID_OUT_OF_MEMORY;
        grid->failed += states[i] == CS_GRID_FAILED;
    }
    return CS_OK;
}

static void include(double value, double *lowest, double *highest)
{
    *lowest = fmin(*lowest, value);
    *highest = fmax(*highest, value);
}

static cs_status take_values(const cs_sheet *sheet, const cs_reader_array *array, double *unit,
                             cs_sheet_grid *grid, cs_error *error)
{
    grid->n = count_values(array);
    cs_grid_scale scale = cs_grid_scale_of(array->units, largest_of(array->values, grid->n));
    char words[160];
    grid->key = array->name;
    cs_text_format(grid->figure, sizeof(grid->figure), "%.150s",
                   cs_words_of_figure(array->name, words, sizeof(words)));
    write_title(grid->title, sizeof(grid->title), grid->figure, &scale);
    grid->values = cs_arena_alloc(&sheet->reader->arena, grid->n, sizeof(*grid->values));
    if (!grid->values)
        return cs_error_no_memory(error);
    *unit = scale.unit;
    grid->lowest = grid->fit_lowest = INFINITY;
    grid->highest = grid->fit_highest = -INFINITY;
    grid->whole = true;
    for (uint64_t i = 0; i < grid->n; i++) {
        double value = array->values[i] / scale.unit;
        grid->values[i] = value;
        if (!isfinite(value)) {
            grid->missing += grid->states[i] != CS_GRID_FAILED;
            continue;
        }
        include(value, &grid->lowest, &grid->highest);
        if (grid->states[i] == CS_GRID_FITS)
            include(value, &grid->fit_lowest, &grid->fit_highest);
        grid->whole = grid->whole && value == floor(value);
    }
    if (grid->lowest > grid->highest)
        return cs_error_add(error, CS_FAILED, "%s: %s: has a value at no point",
                            sheet->reader->path, array->name);
    return CS_OK;
}

/* Appends to `text` as snprintf would. */
static void append(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    cs_text_formatv(text + used, size - used, format, arguments);
    va_end(arguments);
}

void cs_sheet_grid_summary(const cs_sheet_grid *grid, char *text, size_t size)
{
    *text = '\0';
    append(text, size, "%" PRIu64 " points from %.4g to %.4g", grid->n, grid->lowest,
           grid->highest);
    if (grid->out_of_memory > 0 && grid->fit_lowest <= grid->fit_highest)
        append(text, size, ", those that fit from %.4g to %.4g", grid->fit_lowest,
               grid->fit_highest);
    if (grid->missing > 0)
        append(text, size, ", %u without a value", grid->missing);
    if (*grid->fixed)
        append(text, size, ", at %s", grid->fixed);
}

/* ---- labels ---- */

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (unsigned char)c >= 0x80 || c == '_' || c == '.' || c == '-';
}

/* Finds the number of bytes that all texts share at their beginning and, after that, at their end;
 * never splits a word. */
static void find_common(const char *const *texts, uint32_t n, size_t *head, size_t *tail)
{
    const size_t length = strlen(texts[0]);
    *head = *tail = length;
    for (uint32_t i = 1; i < n; i++) {
        const size_t other = strlen(texts[i]);
        size_t same = 0;
        while (same < *head && texts[i][same] == texts[0][same])
            same++;
        *head = same;
        same = 0;
        while (same < *tail && same < other &&
               texts[i][other - 1 - same] == texts[0][length - 1 - same])
            same++;
        *tail = same;
    }
    while (*head > 0 && is_word(texts[0][*head - 1]))
        --*head;
    while (*tail > 0 && is_word(texts[0][length - *tail]))
        --*tail;
    for (uint32_t i = 0; i < n; i++) {
        const size_t rest = strlen(texts[i]) - *head;
        *tail = rest < *tail ? rest : *tail;
    }
}

static cs_status label_parsed(const cs_sheet *sheet, cJSON **parsed, const char **labels,
                              uint32_t n, cs_error *error)
{
    for (uint32_t i = 0; i < n; i++) {
        const cs_status status =
            cs_json_parse("label", labels[i], strlen(labels[i]), &parsed[i], NULL);
        if (status == CS_NO_MEMORY)
            return cs_error_no_memory(error);
        if (status != CS_OK)
            return CS_OK;
    }
    return cs_json_labels_apply(parsed, n)
               ? cs_json_labels_make(parsed, n, &sheet->reader->arena, labels, error)
               : CS_OK;
}

/* Replaces labels that are JSON objects by the members that differ between the objects. */
static cs_status label_objects(const cs_sheet *sheet, cs_grid_axis *axis, const char **labels,
                               cs_error *error)
{
    if (axis->n < 2 || *labels[0] != '{')
        return CS_OK;
    cJSON **parsed = calloc(axis->n, sizeof(cJSON *));
    if (!parsed)
        return cs_error_no_memory(error);
    const cs_status status = label_parsed(sheet, parsed, labels, axis->n, error);
    for (uint32_t i = 0; i < axis->n; i++)
        cJSON_Delete(parsed[i]);
    free(parsed);
    axis->widest = 0;
    for (uint32_t i = 0; i < axis->n && status == CS_OK; i++) {
        labels[i] = cs_text_shown(labels[i], &sheet->reader->arena);
        if (!labels[i])
            return cs_error_no_memory(error);
        axis->widest = fmax(axis->widest, cs_sheet_text_width(labels[i], CS_SHEET_FONT));
    }
    return status;
}

/* Moves the common part of long labels to the title: kind=gpipe and kind=1f1b become gpipe and
 * 1f1b. */
static cs_status shorten_labels(const cs_sheet *sheet, cs_grid_axis *axis, const char **labels,
                                cs_error *error)
{
    enum { LONG = 12 * CS_SHEET_FONT };
    size_t head, tail, used = strlen(axis->title);
    find_common(labels, axis->n, &head, &tail);
    const size_t length = strlen(labels[0]);
    /* all labels are objects that start with the same member */
    const bool named = head > 0 && labels[0][head - 1] == '=';
    if (axis->n < 2 || (axis->widest <= LONG && !named) || head + tail < 4)
        return CS_OK;
    cs_text_format(axis->title + used, sizeof(axis->title) - used, ": %.*s...%s", (int)head,
                   labels[0], labels[0] + length - tail);
    axis->widest = 0;
    for (uint32_t i = 0; i < axis->n; i++) {
        char *label = cs_arena_copy(&sheet->reader->arena, labels[i] + head);
        if (!label)
            return cs_error_no_memory(error);
        label[strlen(label) - tail] = '\0';
        labels[i] = *label ? label : "(none)";
        axis->widest = fmax(axis->widest, cs_sheet_text_width(labels[i], CS_SHEET_FONT));
    }
    return CS_OK;
}

static void number_label(double value, int digits, char *text, size_t size)
{
    if (value == floor(value) && fabs(value) < 1e6)
        snprintf(text, size, "%.0f", value + 0.0);
    else
        snprintf(text, size, "%.*g", digits, value);
}

/* Returns 3 digits, or as many as are needed to distinguish neighbouring numbers. */
static int digits_of(const double *numbers, uint32_t n)
{
    int digits = 3;
    for (uint32_t i = 1; i < n; i++) {
        char a[64], b[64];
        number_label(numbers[i - 1], digits, a, sizeof(a));
        number_label(numbers[i], digits, b, sizeof(b));
        if (strcmp(a, b) == 0 && numbers[i - 1] != numbers[i] && digits < 12) {
            digits++;
            i = 0;
        }
    }
    return digits;
}

/* Makes the labels of an axis: the texts themselves, or numbers in the axis unit. */
static cs_status make_labels(const cs_sheet *sheet, const cs_reader_array *array, double unit,
                             cs_grid_axis *axis, cs_error *error)
{
    cs_arena *arena = &sheet->reader->arena;
    double *numbers = cs_arena_alloc(arena, axis->n, sizeof(*numbers));
    const char **labels = cs_arena_alloc(arena, axis->n, sizeof(*labels));
    if (!numbers || !labels)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < axis->n && array->values; i++)
        numbers[i] = array->values[i] / unit;
    const int digits = array->values ? digits_of(numbers, axis->n) : 0;
    for (uint32_t i = 0; i < axis->n; i++) {
        char text[64];
        if (array->values)
            number_label(numbers[i], digits, text, sizeof(text));
        labels[i] = array->values ? cs_arena_copy(arena, text) : array->texts[i];
        if (!labels[i])
            return cs_error_no_memory(error);
        axis->widest = fmax(axis->widest, cs_sheet_text_width(labels[i], CS_SHEET_FONT));
    }
    axis->numbers = array->values ? numbers : NULL;
    axis->labels = labels;
    if (array->values)
        return CS_OK;
    CS_TRY(label_objects(sheet, axis, labels, error));
    return shorten_labels(sheet, axis, labels, error);
}

static double radians(int degrees)
{
    return degrees * 3.14159265358979 / 180;
}

int cs_grid_turn(const cs_grid_axis *axis, double room)
{
    if (axis->widest + 6 <= room)
        return 0;
    return room * sin(radians(SLANT)) >= CS_SHEET_FONT + 2 ? SLANT : 90;
}

double cs_grid_label_width(const cs_grid_axis *axis, int turn)
{
    return turn == 0 ? axis->widest / 2 : axis->widest * cos(radians(turn)) + CS_SHEET_FONT / 2.;
}

double cs_grid_label_height(const cs_grid_axis *axis, int turn)
{
    return turn == 0 ? CS_SHEET_FONT : axis->widest * sin(radians(turn)) + CS_SHEET_FONT / 2.;
}

static cs_status read_axis(const cs_sheet *sheet, const char *name, uint64_t size,
                           cs_grid_axis *axis, cs_error *error)
{
    cs_reader_array array;
    CS_TRY(cs_reader_read_array(sheet->reader, name, &array, error));
    if (array.rank != 1 || array.sizes[0] != size || size > UINT32_MAX)
        return cs_error_add(error, CS_INVALID, "%s: %s: must have as many values as the figure",
                            sheet->reader->path, name);
    static const cs_grid_scale none = {.unit = 1};
    cs_grid_scale scale = none;
    if (array.values)
        scale = cs_grid_scale_of(array.units, largest_of(array.values, size));
    const bool counted = strcmp(name, "point") == 0;
    char words[160];
    cs_words_of_key(counted || !*array.long_name ? name : array.long_name, words, sizeof(words));
    /* a unit in words, such as samples, is already part of the name */
    write_title(axis->title, sizeof(axis->title), words, strchr(words, '(') ? &none : &scale);
    axis->n = (uint32_t)size;
    return make_labels(sheet, &array, scale.unit, axis, error);
}

cs_status cs_sheet_grid_read(const cs_sheet *sheet, cs_sheet_grid *grid, cs_error *error)
{
    cs_reader_array array;
    const char *const *all;
    const char *names[CS_READER_RANK_MAX];
    uint32_t n = 0;
    *grid = (cs_sheet_grid){0};
    CS_TRY(cs_reader_words(sheet->reader, sheet->reader->axes, &all, &n, error));
    CS_TRY(read_values(sheet, all, n, &array, error));
    grid->list = array.rank < n;
    if (grid->list && sheet->options->n_at > 0)
        return cs_error_add(error, CS_USAGE, "--at: %s is a list of points; must be a grid",
                            sheet->reader->path);
    name_axes(names, all, n);
    CS_TRY(cs_slice_take(sheet, names, &array, grid->fixed, sizeof(grid->fixed), error));
    if (array.rank > 2)
        return cs_slice_too_many(sheet, names, array.rank, error);
    grid->rank = array.rank;
    CS_TRY(read_states(sheet, all, n, &array, grid, error));
    double unit = 1;
    CS_TRY(take_values(sheet, &array, &unit, grid, error));
    CS_TRY(read_capacities(sheet, all, n, &array, unit, grid, error));
    for (uint32_t a = 0; a < array.rank; a++)
        CS_TRY(read_axis(sheet, grid->list ? "point" : names[a], array.sizes[a], &grid->axes[a],
                         error));
    return CS_OK;
}

/* ---- colours ---- */

static uint32_t mix(const uint32_t *colours, size_t n, double at)
{
    double place = fmin(fmax(at, 0), 1) * (double)(n - 1);
    size_t first = (size_t)fmin(floor(place), (double)(n - 2));
    double share = place - (double)first;
    uint32_t mixed = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        double a = colours[first] >> shift & 0xff, b = colours[first + 1] >> shift & 0xff;
        mixed |= (uint32_t)lround(a + share * (b - a)) << shift;
    }
    return mixed;
}

/* Viridis (van der Walt and Smith, 2015), sampled at every tenth. */
uint32_t cs_palette_sequential(double at)
{
    static const uint32_t colours[] = {0x440154, 0x482475, 0x414487, 0x355F8D, 0x2A788E, 0x21918C,
                                       0x22A884, 0x44BF70, 0x7AD151, 0xBDDF26, 0xFDE725};
    return mix(colours, sizeof(colours) / sizeof(colours[0]), at);
}

/* PuOr of ColorBrewer (Brewer, 2003): purple below the middle, orange above. */
uint32_t cs_palette_diverging(double at)
{
    static const uint32_t colours[] = {0x2D004B, 0x542788, 0x8073AC, 0xB2ABD2, 0xD8DAEB, 0xF7F7F7,
                                       0xFEE0B6, 0xFDB863, 0xE08214, 0xB35806, 0x7F3B08};
    return mix(colours, sizeof(colours) / sizeof(colours[0]), at);
}
