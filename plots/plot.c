#include "plots/plot.h"

#include "plots/output.h"
#include "plots/plot-fit.h"
#include "plots/sheet.h"
#include "sim/base/text.h"

#include <string.h>

enum { SMALLEST = 200, LARGEST = 20000 };

/* In the order of the functions below. */
static const cs_plot_kind kinds[] = {
    {"timeline", "what each device computes and sends over time"},
    {"boxes", "a small run as papers draw it: named boxes, odd and even mini-batches in two "
              "colours, kinds and the stages of a device in shades"},
    {"memory", "live memory of each device over time, by category; peaks against capacities"},
    {"utilisation", "where the time of each device went; how much the links were used"},
    {"heatmap", "of a sweep over two keys: a figure at every point, as colours"},
    {"lines",
     "of a sweep over one or two keys: a figure against the first, a line per value of the "
     "second"},
    {"plans",
     "of what `sim advise` tried: throughput against devices, a line per strategy, and time "
     "against memory"},
    {"fit", "of a costs file: timings of collectives, the fits to them, and the residuals"},
    {0},
};

typedef enum input { RUN, SWEEP, PLANS, COSTS } input;

static const struct {
    cs_sheet_function *draw; /* NULL of COSTS, which cs_plot_fit draws */
    input reads;
} functions[] = {
    {cs_plot_timeline, RUN},  {cs_plot_boxes, RUN},
    {cs_plot_memory, RUN},    {cs_plot_utilisation, RUN},
    {cs_plot_heatmap, SWEEP}, {cs_plot_lines, SWEEP},
    {cs_plot_plans, PLANS},   {NULL, COSTS},
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

static cs_status check_input(const cs_plot_options *options, input reads, cs_error *error)
{
    if (options->value && (reads == RUN || reads == PLANS))
        return cs_error_add(error, CS_USAGE, "%s: is of %s; --value is for sweeps and costs",
                            options->kind, reads == RUN ? "a run" : "plans");
    if (options->n_at > 0 && reads != SWEEP)
        return cs_error_add(error, CS_USAGE, "%s: is not of a sweep; --at is for sweeps",
                            options->kind);
    return CS_OK;
}

/* What is read, of the kind that the plot needs. */
typedef struct source {
    cs_reader reader, measured;
    cs_costs costs;
} source;

static cs_status open_source(source *from, const cs_plot_options *options, input reads,
                             cs_error *error)
{
    *from = (source){0};
    if (reads == COSTS)
        return cs_costs_load(options->input, &from->costs, error);
    if (reads == SWEEP)
        return cs_reader_init_sweep(&from->reader, options->input, error);
    if (reads == PLANS)
        return cs_reader_init_advice(&from->reader, options->input, error);
    CS_TRY(cs_reader_init(&from->reader, options->input, error));
    cs_status status = cs_reader_fold(&from->reader, error);
    if (status == CS_OK && options->measured)
        status = cs_reader_init(&from->measured, options->measured, error);
    if (status != CS_OK)
        cs_reader_finish(&from->reader);
    return status;
}

static void close_source(source *from, const cs_plot_options *options, input reads)
{
    if (reads == COSTS)
        cs_costs_finish(&from->costs);
    else
        cs_reader_finish(&from->reader);
    if (options->measured)
        cs_reader_finish(&from->measured);
}

typedef struct drawing {
    const cs_plot_options *options;
    source *from;
    size_t kind;
} drawing;

static cs_status draw(const void *what, cs_gnuplot *job, const char *path, cs_error *error)
{
    const drawing *d = what;
    cs_sheet sheet;
    const input reads = functions[d->kind].reads;
    cs_reader *measured = d->options->measured ? &d->from->measured : NULL;
    cs_status status =
        reads == RUN ? cs_sheet_init(&sheet, d->options, &d->from->reader, measured, job, error)
                     : cs_sheet_init_sweep(&sheet, d->options, &d->from->reader, job, error);
    if (status == CS_OK)
        status = reads == COSTS ? cs_plot_fit(&sheet, &d->from->costs, path, error)
                                : functions[d->kind].draw(&sheet, path, error);
    cs_sheet_finish(&sheet);
    return status;
}

static cs_status draw_file(const cs_plot_options *options, size_t kind, cs_error *error)
{
    source from;
    const input reads = functions[kind].reads;
    CS_TRY(open_source(&from, options, reads, error));
    cs_status status =
        cs_plot_output(draw, &(drawing){options, &from, kind}, options->output, error);
    close_source(&from, options, reads);
    return status;
}

cs_status cs_plot_draw(const cs_plot_options *options, cs_error *error)
{
    size_t kind = 0;
    CS_TRY(find_kind(options->kind, &kind, error));
    CS_TRY(cs_plot_output_check(options->output, error));
    CS_TRY(check_input(options, functions[kind].reads, error));
    CS_TRY(check_size("width", options->width, error));
    CS_TRY(check_size("height", options->height, error));
    return draw_file(options, kind, error);
}
