/* Stores the points of a sweep, or the plans of a search, in a page.
 *
 * The JSON has a list `fields`, one per key and metric: name, title and unit to display, whether
 * the field is a key that was varied, and how its values are stored: `texts` in the JSON, indices
 * into the list `words`, or plain numbers. Indices and numbers are in the packed column with the
 * field's name. Each row of these columns is a point. The packed column "state" has the outcome of
 * each point: 0 fits, 1 out of memory, 2 no metrics. Internal to plots/page. */
#ifndef CS_PLOTS_PAGE_PAGE_POINTS_H
#define CS_PLOTS_PAGE_PAGE_POINTS_H

#include "plots/page/page-part.h"

/* Read the file of `sim sweep` or of `sim advise`. CS_INVALID, CS_NO_MEMORY; after a failure, only
 * cs_page_part_finish is allowed on `part`. */
CS_MUST_CHECK cs_status cs_page_sweep_read(const char *path, cs_page_part *part, cs_error *error);
CS_MUST_CHECK cs_status cs_page_plans_read(const char *path, cs_page_part *part, cs_error *error);

#endif
