/* From the name of a picture to a gnuplot job that draws it. */
#ifndef CS_PLOTS_OUTPUT_H
#define CS_PLOTS_OUTPUT_H

#include "plots/gnuplot.h"

/* CS_USAGE unless the name ends in .svg, .png or .pdf. */
CS_MUST_CHECK cs_status cs_plot_output_check(const char *output, cs_error *error);

/* Draws `what` into the file `path`. */
typedef cs_status cs_plot_output_function(const void *what, cs_gnuplot *job, const char *path,
                                          cs_error *error);

/* Draws into a temporary file, and gives it the name `output` when complete. CS_USAGE for its
 * ending, CS_FAILED for gnuplot, CS_IO. */
CS_MUST_CHECK cs_status cs_plot_output(cs_plot_output_function *draw, const void *what,
                                       const char *output, cs_error *error);

#endif
