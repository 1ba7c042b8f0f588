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

/* Ended by one without a name; for help. */
const cs_plot_kind *cs_plot_kinds(void);

enum { CS_PLOT_INPUTS_MAX = 8 };

/* Zeroed members ask for the default. */
typedef struct cs_plot_options {
    const char *kind;          /* one of cs_plot_kinds(); NULL: what fits the file */
    const char *input;         /* results file; required */
    const char *const *others; /* more results, of kinds that draw several runs */
    size_t n_others;           /* below CS_PLOT_INPUTS_MAX */
    const char *value;         /* figure of a sweep's file; NULL: iteration_time_s. Of costs, a
                                * collective */
    const char *const *at;     /* of a sweep: "/key=VALUE", keys that do not vary */
    size_t n_at;
    const char *output;                        /* name ending in .svg, .png or .pdf; required */
    uint32_t first_device, n_devices;          /* 0 devices: all from the first on */
    uint32_t first_mini_batch, n_mini_batches; /* 0: no choice by mini-batch; else the time from the
                                                * start of the first to the end of the last */
    double from, until;            /* s; until 0: to the end. Narrows the choice by mini-batch */
    uint32_t width, height;        /* pixels of PNG and SVG, points of PDF; 0: chosen */
    bool print;                    /* width and height are points in any format; PNG has 300 dpi */
    double font_size;              /* the same unit; 0: 11, of a picture for print 8 */
    const char *title;             /* NULL: chosen; "": none, and no figures below it */
    const char *x_title, *y_title; /* of the axes; NULL: chosen; "": none */
    bool plain;                    /* of timeline: neither why devices wait nor the critical path */
    bool all_devices;              /* equal devices have a row each, too */
} cs_plot_options;

/* The kind that fits options->input: by its format, and of a sweep by its keys. CS_INVALID when the
 * file cannot be read. */
CS_MUST_CHECK cs_status cs_plot_kind_of(const cs_plot_options *options, const char **kind,
                                        cs_error *error);

/* Draws into a temporary file and gives it the name `output` when complete. CS_USAGE for options
 * that make no sense, CS_INVALID for the input, CS_FAILED for gnuplot, CS_IO. */
CS_MUST_CHECK cs_status cs_plot_draw(const cs_plot_options *options, cs_error *error);

#endif
