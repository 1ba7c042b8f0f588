#include "plots/plot.h"

#include "plots/plot-fit.h"
#include "plots/sheet.h"
#include "sim/base/file.h"
#include "sim/base/number.h"
#include "sim/base/text.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

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
    {"fit", "of a costs file: timings of collectives, the fits to them, and the residuals"},
    {0},
};

typedef enum input { RUN, SWEEP, COSTS } input;

static const struct {
    cs_sheet_function *draw; /* NULL of COSTS, which cs_plot_fit draws */
    input reads;
} functions[] = {
    {cs_plot_timeline, RUN},  {cs_plot_memory, RUN},  {cs_plot_utilisation, RUN},
    {cs_plot_heatmap, SWEEP}, {cs_plot_lines, SWEEP}, {NULL, COSTS},
};

/* By the ending of the output's name; `terminal` is what common.gp knows it by. */
static const char *const terminals[] = {"svg", "png", "pdf"};

enum { N_TERMINALS = sizeof(terminals) / sizeof(terminals[0]) };

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

static cs_status find_terminal(const char *output, const char **terminal, cs_error *error)
{
    const char *name = strrchr(output, '/');
    const char *dot = strrchr(name ? name : output, '.');
    for (size_t i = 0; dot && i < N_TERMINALS; i++) {
        if (strcasecmp(dot + 1, terminals[i]) == 0) {
            *terminal = terminals[i];
            return CS_OK;
        }
    }
    return cs_error_add(error, CS_USAGE, "%s: the name must end in .svg, .png or .pdf", output);
}

static cs_status check_size(const char *what, uint32_t size, cs_error *error)
{
    if (size == 0 || (size >= SMALLEST && size <= LARGEST))
        return CS_OK;
    return cs_error_add(error, CS_USAGE, "%s: must be %d to %d (got %u)", what, SMALLEST, LARGEST,
                        size);
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
    cs_status status = cs_reader_init(&from->reader, options->input, error);
    if (status != CS_OK || !options->measured)
        return status;
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

static cs_status draw(const cs_plot_options *options, source *from, const char *terminal,
                      size_t kind, const char *output, cs_error *error)
{
    cs_gnuplot job;
    cs_sheet sheet;
    const input reads = functions[kind].reads;
    cs_status status = cs_gnuplot_init(&job, error);
    if (status != CS_OK)
        return status;
    cs_gnuplot_text(&job, "format", terminal);
    cs_reader *measured = options->measured ? &from->measured : NULL;
    status = reads == RUN ? cs_sheet_init(&sheet, options, &from->reader, measured, &job, error)
                          : cs_sheet_init_sweep(&sheet, options, &from->reader, &job, error);
    if (status == CS_OK)
        status = reads == COSTS ? cs_plot_fit(&sheet, &from->costs, output, error)
                                : functions[kind].draw(&sheet, output, error);
    cs_sheet_finish(&sheet);
    cs_gnuplot_finish(&job);
    return status;
}

/* gnuplot may fail to write the picture and still exit well. */
static cs_status check_written(const cs_file_draft *draft, cs_error *error)
{
    struct stat info;
    if (stat(draft->temporary, &info) == 0 && (info.st_size > 0 || !S_ISREG(info.st_mode)))
        return CS_OK;
    return cs_error_add(error, CS_IO, "%s: gnuplot wrote nothing; is the disk full?", draft->path);
}

static cs_status draw_file(const cs_plot_options *options, const char *terminal, size_t kind,
                           cs_error *error)
{
    source from;
    cs_file_draft draft;
    const input reads = functions[kind].reads;
    cs_status status = open_source(&from, options, reads, error);
    if (status != CS_OK)
        return status;
    status = cs_file_draft_begin(&draft, options->output, error);
    if (status == CS_OK) {
        status = draw(options, &from, terminal, kind, draft.temporary, error);
        if (status == CS_OK)
            status = check_written(&draft, error);
        if (status == CS_OK)
            status = cs_file_draft_commit(&draft, error);
        cs_file_draft_drop(&draft);
    }
    close_source(&from, options, reads);
    return status;
}

cs_status cs_plot_draw(const cs_plot_options *options, cs_error *error)
{
    size_t kind = 0;
    const char *terminal = NULL;
    cs_status status = find_kind(options->kind, &kind, error);
    if (status == CS_OK)
        status = find_terminal(options->output, &terminal, error);
    if (status == CS_OK)
        status = check_size("width", options->width, error);
    if (status == CS_OK)
        status = check_size("height", options->height, error);
    if (status != CS_OK)
        return status;
    /* what gnuplot reads has decimal points */
    cs_number_locale locale = cs_number_locale_enter();
    status = draw_file(options, terminal, kind, error);
    cs_number_locale_leave(locale);
    return status;
}
