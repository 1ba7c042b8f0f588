/* Plots fits: timings against bytes with the fitted lines, and the residuals below. The input is a
 * costs file. Internal to plots. */
#ifndef CS_PLOTS_PLOT_FIT_H
#define CS_PLOTS_PLOT_FIT_H

#include "calib/costs.h"
#include "plots/sheet.h"

/* Draws the network entries that have points; if options->value names a collective, only its
 * entries. CS_USAGE if there are too many, CS_INVALID if there are none. */
CS_MUST_CHECK cs_status cs_plot_fit(cs_sheet *sheet, const cs_costs *costs, const char *output,
                                    cs_error *error);

#endif
