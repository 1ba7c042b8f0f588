/* Draws one period of a periodic pattern, with a row per device and link. */
#ifndef CS_CLI_PATTERN_PICTURE_H
#define CS_CLI_PATTERN_PICTURE_H

#include "schedules/plan/pattern.h"

/* Draws to `output`, as cs_plot_rows_draw does. `pattern` is valid, and cs_pattern_check has
 * written `uses`.
 */
CS_MUST_CHECK cs_status cs_pattern_picture(const char *title, const cs_chain *chain,
                                           const cs_plan *plan, const cs_pattern *pattern,
                                           const cs_pattern_use *uses, const char *output,
                                           cs_error *error);

#endif
