/* Runs the gnuplot job that draws a picture, given the name of the picture. */
#ifndef CS_PLOTS_OUTPUT_H
#define CS_PLOTS_OUTPUT_H

#include "plots/gnuplot.h"

/* Checks that the name ends in .svg, .png or .pdf; otherwise CS_USAGE. */
CS_MUST_CHECK cs_status cs_plot_output_check(const char *output, cs_error *error);

/* Draws `what` into the file `path`. */
typedef cs_status cs_plot_output_function(const void *what, cs_gnuplot *job, const char *path,
                                          cs_error *error);

/* Draws into a temporary file, and renames it to `output` once it is complete. CS_USAGE for a wrong
 * suffix, CS_FAILED if gnuplot fails, CS_IO. */
CS_MUST_CHECK cs_status cs_plot_output(cs_plot_output_function *draw, const void *what,
                                       const char *output, cs_error *error);

#endif
