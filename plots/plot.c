#include "plots/plot.h"

#include "plots/output.h"
#include "plots/plot-fit.h"
#include "plots/sheet.h"
#include "sim/base/text.h"
#include "sim/core/trace/results-schema.h"

#include <string.h>

enum { SMALLEST = 200, LARGEST = 20000 };

/* In the same order as `functions` below. */
static const cs_plot_kind kinds[] = {
    {"timeline", "what each device computes and sends over time"},
    {"boxes", "a small run as papers draw it: named boxes, odd and even mini-batches in two "
              "colours, kinds and the stages of a device in shades"},
    {"memory", "live memory of each device over time, by category; peaks against capacities"},
    {"mean-memory",
     "live memory over time, the mean over the devices; of several runs a line each"},
    {"segments",
     "of a run with PyTorch's allocator: reserved and allocated memory of a device over "
     "time, and what its segments hold at the peak"},
    {"utilisation", "where the time of each device went; how much the links were used"},
    {"spread", "of repeated runs: how a figure differs from run to run"},
    {"heatmap", "of a sweep over two keys: a figure at every point, as colours"},
    {"lines",
     "of a sweep over one or two keys: a figure against the first, a line per value of the "
     "second"},
    {"plans",
     "of what `sim advise` tried: throughput against devices, a line per strategy, and time "
     "against memory"},
    {"validation",
     "of what `sim validate` predicted: times and peaks of memory against the measured ones, a "
     "symbol per dataset, with bands of 5 and 10 %"},
    {"fit", "of a costs file: timings of collectives, the fits to them, and the residuals"},
    {0},
};

typedef enum input { RUN, SWEEP, PLANS, VALIDATION, COSTS } input;

static const struct {
    cs_sheet_function *draw; /* NULL for COSTS, which cs_plot_fit draws */
    input reads;
    bool several; /* accepts several runs */
    bool figure;  /* accepts --value */
} functions[] = {
    {cs_plot_timeline, RUN, true, false},
    {cs_plot_boxes, RUN, true, false},
    {cs_plot_memory, RUN, true, false},
    {cs_plot_mean_memory, RUN, true, false},
    {cs_plot_segments, RUN, false, false},
    {cs_plot_utilisation, RUN, true, false},
    {cs_plot_spread, RUN, true, true},
    {cs_plot_heatmap, SWEEP, false, true},
    {cs_plot_lines, SWEEP, false, true},
    {cs_plot_plans, PLANS, false, false},
    {cs_plot_validation, VALIDATION, false, false},
    {NULL, COSTS, false, true},
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

/* ---- the default kind ---- */

/* Chooses lines for a few values of the second key, a heatmap for many. */
static cs_status kind_of_sweep(const cs_plot_options *options, const char **kind, cs_error *error)
{
    enum { FEW = 7 };
    cs_reader reader;
    cs_reader_array last;
    const char *const *axes;
    uint32_t n = 0;
    CS_TRY(cs_reader_init_sweep(&reader, options->input, error));
    cs_status status = cs_reader_words(&reader, reader.axes, &axes, &n, error);
    *kind = "lines";
    if (status == CS_OK && n == 2 && options->n_at == 0)
        status = cs_reader_read_array(&reader, axes[1], &last, error);
    if (status == CS_OK && n == 2 && options->n_at == 0 && last.sizes[0] > FEW)
        *kind = "heatmap";
    cs_reader_finish(&reader);
    return status;
}

cs_status cs_plot_kind_of(const cs_plot_options *options, const char **kind, cs_error *error)
{
    char format[64];
    CS_TRY(cs_reader_format(options->input, format, sizeof(format), error));
    if (strcmp(format, CS_SWEEP_FORMAT) == 0)
        return kind_of_sweep(options, kind, error);
    *kind = strcmp(format, CS_ADVICE_FORMAT) == 0       ? "plans"
            : strcmp(format, CS_VALIDATION_FORMAT) == 0 ? "validation"
            : *format                                   ? "timeline"
                                                        : "fit";
    return CS_OK;
}

static cs_status check_size(const char *what, uint32_t size, cs_error *error)
{
    if (size == 0 || (size >= SMALLEST && size <= LARGEST))
        return CS_OK;
    return cs_error_add(error, CS_USAGE, "%s: must be %d to %d (got %u)", what, SMALLEST, LARGEST,
                        size);
}

static cs_status check_input(const cs_plot_options *options, size_t kind, cs_error *error)
{
    const input reads = functions[kind].reads;
    if (options->n_others >= CS_PLOT_INPUTS_MAX)
        return cs_error_add(error, CS_USAGE, "plot: at most %d files (got %zu)", CS_PLOT_INPUTS_MAX,
                            1 + options->n_others);
    if (options->n_others > 0 && !functions[kind].several)
        return cs_error_add(error, CS_USAGE,
                            "%s: draws one file (got %zu); timeline, boxes, memory, mean-memory, "
                            "utilisation and spread draw several runs",
                            options->kind, 1 + options->n_others);
    if (options->value && !functions[kind].figure)
        return cs_error_add(error, CS_USAGE,
                            "%s: is of %s; --value is for sweeps, costs and spread", options->kind,
                            reads == RUN     ? "a run"
                            : reads == PLANS ? "plans"
                                             : "predictions");
    if (options->n_at > 0 && reads != SWEEP)
        return cs_error_add(error, CS_USAGE, "%s: is not of a sweep; --at is for sweeps",
                            options->kind);
    return CS_OK;
}

/* The input files, opened with the reader that the kind of plot needs. */
typedef struct source {
    cs_reader readers[CS_PLOT_INPUTS_MAX];
    uint32_t n_readers;
    cs_costs costs;
} source;

/* Opens a run. Equal devices share a row unless devices are selected or `boxes` shows every device.
 * For `segments` devices are not merged here: the allocator's tables already group devices that
 * were replayed together. */
static cs_status open_run(cs_reader *reader, const char *path, const cs_plot_options *options,
                          cs_error *error)
{
    const bool each = options->all_devices || options->first_device > 0 || options->n_devices > 0 ||
                      strcmp(options->kind, "boxes") == 0;
    CS_TRY(cs_reader_init(reader, path, error));
    if (strcmp(options->kind, "segments") == 0)
        return CS_OK;
    const cs_status status =
        each ? cs_reader_fold(reader, error) : cs_reader_fold_equal(reader, error);
    if (status != CS_OK)
        cs_reader_finish(reader);
    return status;
}

static void close_source(source *from, input reads)
{
    if (reads == COSTS)
        cs_costs_finish(&from->costs);
    for (uint32_t i = 0; i < from->n_readers; i++)
        cs_reader_finish(&from->readers[i]);
}

static cs_status open_runs(source *from, const cs_plot_options *options, cs_error *error)
{
    cs_status status = CS_OK;
    for (size_t i = 0; i < 1 + options->n_others && status == CS_OK; i++) {
        const char *path = i == 0 ? options->input : options->others[i - 1];
        status = open_run(&from->readers[i], path, options, error);
        from->n_readers += status == CS_OK;
    }
    if (status != CS_OK)
        close_source(from, RUN);
    return status;
}

static cs_status open_source(source *from, const cs_plot_options *options, input reads,
                             cs_error *error)
{
    *from = (source){0};
    if (reads == COSTS)
        return cs_costs_load(options->input, &from->costs, error);
    if (reads == RUN)
        return open_runs(from, options, error);
    const cs_status status =
        reads == SWEEP   ? cs_reader_init_sweep(&from->readers[0], options->input, error)
        : reads == PLANS ? cs_reader_init_advice(&from->readers[0], options->input, error)
                         : cs_reader_init_validation(&from->readers[0], options->input, error);
    from->n_readers = status == CS_OK;
    return status;
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
    cs_status status =
        reads == RUN
            ? cs_sheet_init(&sheet, d->options, d->from->readers, d->from->n_readers, job, error)
            : cs_sheet_init_sweep(&sheet, d->options, d->from->readers, job, error);
    if (status == CS_OK)
        status = reads == COSTS ? cs_plot_fit(&sheet, &d->from->costs, path, error)
                                : functions[d->kind].draw(&sheet, path, error);
    return status;
}

static cs_status draw_file(const cs_plot_options *options, size_t kind, cs_error *error)
{
    source from;
    const input reads = functions[kind].reads;
    CS_TRY(open_source(&from, options, reads, error));
    cs_status status =
        cs_plot_output(draw, &(drawing){options, &from, kind}, options->output, error);
    close_source(&from, reads);
    return status;
}

cs_status cs_plot_draw(const cs_plot_options *asked, cs_error *error)
{
    size_t kind = 0;
    cs_plot_options chosen = *asked;
    const cs_plot_options *options = &chosen;
    if (!chosen.kind)
        CS_TRY(cs_plot_kind_of(asked, &chosen.kind, error));
    CS_TRY(find_kind(options->kind, &kind, error));
    CS_TRY(cs_plot_output_check(options->output, error));
    CS_TRY(check_input(options, kind, error));
    CS_TRY(check_size("width", options->width, error));
    CS_TRY(check_size("height", options->height, error));
    return draw_file(options, kind, error);
}
