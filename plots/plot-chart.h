/* Draws lines or bars that do not come from a results file: panels side by side, with one legend.
 *
 * The caller says in words and numbers what is drawn; sizes, colours and ranges are chosen here. A
 * series has the same colour in all panels, and so have those of one name.
 */
#ifndef CS_PLOTS_PLOT_CHART_H
#define CS_PLOTS_PLOT_CHART_H

#include "sim/base/error.h"

#include <stdbool.h>

enum { CS_CHART_NAMES_MAX = 10 }; /* different names of series */

typedef struct cs_chart_series {
    const char *name;         /* in the legend */
    bool dashed;              /* a line */
    uint32_t n;               /* points, or bars */
    const double *x;          /* of lines; of bars it is ignored: bar i is above names[i] */
    const double *y;          /* NaN: nothing is there */
    const char *const *words; /* what stands in place of a bar that is not there, or NULL */
} cs_chart_series;

typedef struct cs_chart_panel {
    const char *title; /* "" for none */
    uint32_t n_series;
    const cs_chart_series *series;
} cs_chart_panel;

typedef struct cs_chart {
    const char *title, *subtitle, *x_title, *y_title;
    bool bars;
    bool logarithmic;         /* both axes of lines: x in powers of two, y of ten */
    const char *const *names; /* of groups of bars */
    uint32_t n_names;
    uint32_t n_panels, n_columns; /* panels of a row */
    const cs_chart_panel *panels;
} cs_chart;

/* Draws into a temporary file and gives it the name `output`, which ends in .svg, .png or .pdf,
 * when complete. CS_USAGE for the name and more than CS_CHART_NAMES_MAX names, CS_FAILED for
 * gnuplot, CS_IO. */
CS_MUST_CHECK cs_status cs_plot_chart_draw(const cs_chart *chart, const char *output,
                                           cs_error *error);

#endif
