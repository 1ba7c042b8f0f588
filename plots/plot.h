/* Draws results files. */
#ifndef CS_PLOTS_PLOT_H
#define CS_PLOTS_PLOT_H

#include "sim/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cs_plot_kind {
    const char *name, *doc;
} cs_plot_kind;

/* Returns the kinds of plots, for help texts. The last entry has no name. */
const cs_plot_kind *cs_plot_kinds(void);

enum { CS_PLOT_INPUTS_MAX = 8 };

/* Zeroed members request the default. */
typedef struct cs_plot_options {
    const char *kind;          /* one of cs_plot_kinds(); NULL: chosen to fit the file */
    const char *input;         /* results file; required */
    const char *const *others; /* further results files, for kinds that draw several runs */
    size_t n_others;           /* < CS_PLOT_INPUTS_MAX */
    /* metric of a sweep's or run's file, NULL: iteration_time_s; for costs, a collective */
    const char *value;
    const char *const *at; /* for sweeps: "/key=VALUE", keys to fix at one value */
    size_t n_at;
    /* file name that ends in .svg, .png or .pdf; required */
    const char *output;
    uint32_t first_device, n_devices; /* n_devices 0: all devices from first_device on */
    /* n_mini_batches 0: no selection by mini-batch; otherwise the time from the start of the first
     * to the end of the last selected mini-batch */
    uint32_t first_mini_batch, n_mini_batches;
    /* s; until 0: up to the end; narrows the selection by mini-batch */
    double from, until;
    uint32_t width, height; /* PNG and SVG: pixels, PDF: points; 0: chosen automatically */
    /* width and height are points in every format; PNG has 300 dpi */
    bool print;
    double font_size; /* same unit as width; 0: 11, or 8 for print */
    /* NULL: chosen automatically; "": no title and no metrics below it */
    const char *title;
    const char *x_title, *y_title; /* axis titles; NULL: chosen automatically; "": none */
    /* for timelines: omit the causes of waiting and the critical path */
    bool plain;
    bool all_devices; /* show a row for every device, even if devices are identical */
} cs_plot_options;

/* Chooses the kind of plot for options->input by the file's format and, for a sweep, by its keys.
 * CS_INVALID if the file cannot be read. */
CS_MUST_CHECK cs_status cs_plot_kind_of(const cs_plot_options *options, const char **kind,
                                        cs_error *error);

/* Draws into a temporary file and renames it to `output` once it is complete. CS_USAGE for options
 * that make no sense, CS_INVALID for the input, CS_FAILED if gnuplot fails, CS_IO. */
CS_MUST_CHECK cs_status cs_plot_draw(const cs_plot_options *options, cs_error *error);

#endif
