/* Draws rows of boxes that do not come from a results file: each row shows what one of several
 * things does over time.
 *
 * The caller provides texts, and words whose styles (sheet.h: "forward", "transfer") give the
 * colours of the boxes; sizes and positions are chosen here. */
#ifndef CS_PLOTS_PLOT_ROWS_H
#define CS_PLOTS_PLOT_ROWS_H

#include "sim/base/error.h"
#include "sim/base/time.h"

#include <stdbool.h>

typedef struct cs_plot_row {
    const char *name; /* shown on the left */
    const char *note; /* shown on the right; "": none */
} cs_plot_row;

typedef struct cs_plot_look {
    const char *legend; /* text in the legend */
    const char *word;   /* word whose style (sheet.h) gives the colour */
    bool dark;          /* a darker shade of the colour */
} cs_plot_look;

typedef struct cs_plot_row_box {
    uint32_t row, look;
    cs_time start, end;
    char label[16]; /* "": none; omitted if it does not fit */
    char below[16]; /* second line of the label; "": none */
} cs_plot_row_box;

typedef struct cs_plot_rows {
    const char *title, *subtitle, *remark; /* remark: last entry of the legend */
    cs_time until;                         /* ps, > 0; the axis starts at 0 */
    uint32_t n_rows, n_looks, n_boxes;
    const cs_plot_row *rows;
    const cs_plot_look *looks;
    const cs_plot_row_box *boxes;
} cs_plot_rows;

/* Draws into a temporary file and renames it to `output` once it is complete. CS_USAGE if the name
 * does not end in .svg, .png or .pdf, CS_FAILED if gnuplot fails, CS_IO. */
CS_MUST_CHECK cs_status cs_plot_rows_draw(const cs_plot_rows *rows, const char *output,
                                          cs_error *error);

#endif
