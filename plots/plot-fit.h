/* The picture of fits: timings against bytes with their fitted lines, and the residuals below. Its
 * input is a costs file. Internal to plots. */
#ifndef CS_PLOTS_PLOT_FIT_H
#define CS_PLOTS_PLOT_FIT_H

#include "calib/costs.h"
#include "plots/sheet.h"

/* Draws the network entries that have points, those of the collective options->value if it is
 * given. CS_USAGE when they are too many, CS_INVALID when there are none. */
CS_MUST_CHECK cs_status cs_plot_fit(cs_sheet *sheet, const cs_costs *costs, const char *output,
                                    cs_error *error);

#endif
