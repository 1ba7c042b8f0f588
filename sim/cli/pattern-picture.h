/* Draws a periodic pattern: one period, a row per device and link. */
#ifndef CS_CLI_PATTERN_PICTURE_H
#define CS_CLI_PATTERN_PICTURE_H

#include "schedules/plan/pattern.h"

/* `pattern` is valid, and `uses` is what cs_pattern_check wrote. As cs_plot_rows_draw for `output`.
 */
CS_MUST_CHECK cs_status cs_pattern_picture(const char *title, const cs_chain *chain,
                                           const cs_plan *plan, const cs_pattern *pattern,
                                           const cs_pattern_use *uses, const char *output,
                                           cs_error *error);

#endif
