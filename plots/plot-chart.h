/* Draws lines or bars that do not come from a results file: panels next to each other, with one
 * legend.
 *
 * The caller provides texts and numbers; sizes, colours and ranges are chosen here. Series with
 * the same name have the same colour in all panels. */
#ifndef CS_PLOTS_PLOT_CHART_H
#define CS_PLOTS_PLOT_CHART_H

#include "sim/base/error.h"

#include <stdbool.h>

enum { CS_CHART_NAMES_MAX = 10 }; /* maximum number of different series names */

typedef struct cs_chart_series {
    const char *name; /* shown in the legend */
    bool dashed;      /* dashed line instead of a solid one */
    uint32_t n;       /* number of points or bars */
    /* x of points of a line; ignored for bars: bar i belongs to names[i] */
    const double *x;
    const double *y;          /* NaN: no point or bar */
    const char *const *words; /* per bar: text shown if the bar is missing; NULL: none */
} cs_chart_series;

typedef struct cs_chart_panel {
    const char *title; /* "": none */
    uint32_t n_series;
    const cs_chart_series *series;
} cs_chart_panel;

typedef struct cs_chart {
    const char *title, *subtitle, *x_title, *y_title;
    bool bars;
    /* for lines: the x axis is in powers of two, the y axis in powers of ten */
    bool logarithmic;
    const char *const *names; /* names of the groups of bars */
    uint32_t n_names;
    uint32_t n_panels, n_columns; /* n_columns: panels per row */
    const cs_chart_panel *panels;
} cs_chart;

/* Draws into a temporary file and renames it to `output` once it is complete. CS_USAGE if the name
 * does not end in .svg, .png or .pdf or there are more than CS_CHART_NAMES_MAX names, CS_FAILED if
 * gnuplot fails, CS_IO. */
CS_MUST_CHECK cs_status cs_plot_chart_draw(const cs_chart *chart, const char *output,
                                           cs_error *error);

#endif
