/* Draws results files. */
#ifndef CS_PLOTS_PLOT_H
#define CS_PLOTS_PLOT_H

#include "sim/base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct cs_plot_kind {
    const char *name, *doc;
} cs_plot_kind;

/* Ended by one without a name; for help. */
const cs_plot_kind *cs_plot_kinds(void);

/* Zeroed members ask for the default. */
typedef struct cs_plot_options {
    const char *kind;      /* one of cs_plot_kinds(); required */
    const char *input;     /* results file; required */
    const char *measured;  /* of timeline: results that are drawn below, or NULL */
    const char *value;     /* figure of a sweep's file, required of its kinds; of costs, a
                                       * collective */
    const char *const *at; /* of a sweep: "/key=VALUE", keys that do not vary */
    size_t n_at;
    const char *output;                        /* name ending in .svg, .png or .pdf; required */
    uint32_t first_device, n_devices;          /* 0 devices: all from the first on */
    uint32_t first_mini_batch, n_mini_batches; /* 0: no choice by mini-batch; else the time from the
                                                * start of the first to the end of the last */
    double from, until;     /* s; until 0: to the end. Narrows the choice by mini-batch */
    uint32_t width, height; /* pixels of PNG and SVG, points of PDF; 0: chosen */
} cs_plot_options;

/* Draws into a temporary file and gives it the name `output` when complete. CS_USAGE for options
 * that make no sense, CS_INVALID for the input, CS_FAILED for gnuplot, CS_IO. */
CS_MUST_CHECK cs_status cs_plot_draw(const cs_plot_options *options, cs_error *error);

#endif
