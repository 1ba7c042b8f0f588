/* Draws rows of boxes that do not come from a results file: what each of several things does over
 * time.
 *
 * The caller says in words what is drawn (sheet.h's styles: "forward", "transfer") and texts; size,
 * colours and positions are chosen here.
 */
#ifndef CS_PLOTS_PLOT_ROWS_H
#define CS_PLOTS_PLOT_ROWS_H

#include "sim/base/error.h"
#include "sim/base/time.h"

#include <stdbool.h>

typedef struct cs_plot_row {
    const char *name; /* on the left */
    const char *note; /* on the right; "" for none */
} cs_plot_row;

typedef struct cs_plot_look {
    const char *legend; /* what such boxes are */
    const char *word;   /* its colour */
    bool dark;          /* a shade of it */
} cs_plot_look;

typedef struct cs_plot_row_box {
    uint32_t row, look;
    cs_time start, end;
    char label[16]; /* "" for none; left out where there is no room */
    char below[16]; /* a second line */
} cs_plot_row_box;

typedef struct cs_plot_rows {
    const char *title, *subtitle, *remark; /* the remark ends the legend */
    cs_time until;                         /* > 0; the axis is from 0 */
    uint32_t n_rows, n_looks, n_boxes;
    const cs_plot_row *rows;
    const cs_plot_look *looks;
    const cs_plot_row_box *boxes;
} cs_plot_rows;

/* Draws into a temporary file and gives it the name `output`, which ends in .svg, .png or .pdf,
 * when complete. CS_USAGE for the name, CS_FAILED for gnuplot, CS_IO. */
CS_MUST_CHECK cs_status cs_plot_rows_draw(const cs_plot_rows *rows, const char *output,
                                          cs_error *error);

#endif
