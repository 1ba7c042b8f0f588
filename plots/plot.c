#include "plots/plot.h"

#include "plots/output.h"
#include "plots/sheet.h"
#include "sim/base/text.h"

#include <string.h>

enum { SMALLEST = 200, LARGEST = 20000 };

/* In the order of the functions below. */
static const cs_plot_kind kinds[] = {
    {"timeline", "what each device computes and sends over time"},
    {"memory", "live memory of each device over time, by category; peaks against capacities"},
    {"utilisation", "where the time of each device went; how much the links were used"},
    {"heatmap", "of a sweep over two keys: a figure at every point, as colours"},
    {"lines",
     "of a sweep over one or two keys: a figure against the first, a line per value of the "
     "second"},
    {0},
};

static const struct {
    cs_sheet_function *draw;
    bool sweep; /* reads the file of a sweep */
} functions[] = {
    {cs_plot_timeline, false}, {cs_plot_memory, false}, {cs_plot_utilisation, false},
    {cs_plot_heatmap, true},   {cs_plot_lines, true},
};

const cs_plot_kind *cs_plot_kinds(void)
{
    return kinds;
}

static cs_status find_kind(const char *name, size_t *index, cs_error *error)
{
    cs_guess guess;
    cs_guess_init(&guess, name);
    for (size_t i = 0; kinds[i].name; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *index = i;
            return CS_OK;
        }
        cs_guess_add(&guess, kinds[i].name);
    }
    return cs_error_add(error, CS_USAGE, "unknown kind of plot %s", cs_guess_text(&guess));
}

static cs_status check_size(const char *what, uint32_t size, cs_error *error)
{
    if (size == 0 || (size >= SMALLEST && size <= LARGEST))
        return CS_OK;
    return cs_error_add(error, CS_USAGE, "%s: must be %d to %d (got %u)", what, SMALLEST, LARGEST,
                        size);
}

typedef struct drawing {
    const cs_plot_options *options;
    cs_reader *reader;
    size_t kind;
} drawing;

static cs_status draw(const void *what, cs_gnuplot *job, const char *path, cs_error *error)
{
    const drawing *d = what;
    cs_sheet sheet;
    cs_status status = functions[d->kind].sweep
                           ? cs_sheet_init_sweep(&sheet, d->options, d->reader, job, error)
                           : cs_sheet_init(&sheet, d->options, d->reader, job, error);
    if (status == CS_OK)
        status = functions[d->kind].draw(&sheet, path, error);
    cs_sheet_finish(&sheet);
    return status;
}

static cs_status draw_file(const cs_plot_options *options, size_t kind, cs_error *error)
{
    cs_reader reader;
    cs_status status = functions[kind].sweep ? cs_reader_init_sweep(&reader, options->input, error)
                                             : cs_reader_init(&reader, options->input, error);
    if (status != CS_OK)
        return status;
    status = cs_plot_output(draw, &(drawing){options, &reader, kind}, options->output, error);
    cs_reader_finish(&reader);
    return status;
}

cs_status cs_plot_draw(const cs_plot_options *options, cs_error *error)
{
    size_t kind = 0;
    cs_status status = find_kind(options->kind, &kind, error);
    if (status == CS_OK)
        status = cs_plot_output_check(options->output, error);
    if (status == CS_OK)
        status = check_size("width", options->width, error);
    if (status == CS_OK)
        status = check_size("height", options->height, error);
    return status == CS_OK ? draw_file(options, kind, error) : status;
}
