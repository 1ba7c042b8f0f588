/* The points of a sweep, or the plans of a search, on their way into a page.
 *
 * The JSON has a list `fields`, one per key and figure: name, title and unit for people, whether it
 * is a key that was varied, and where its values are: `texts` in the JSON, `words` of a coded
 * column, or numbers only. Numbers are the packed column of the field's name. Rows of all of them
 * are the points. The packed column "state" says what became of a point: 0 it fits, 1 out of
 * memory, 2 it has no figures. Internal to plots/page.
 */
#ifndef CS_PLOTS_PAGE_PAGE_POINTS_H
#define CS_PLOTS_PAGE_PAGE_POINTS_H

#include "plots/page/page-part.h"

/* Of the file of `sim sweep`, of `sim advise`. CS_INVALID, CS_NO_MEMORY; a failed part is only to
 * be finished. */
CS_MUST_CHECK cs_status cs_page_sweep_read(const char *path, cs_page_part *part, cs_error *error);
CS_MUST_CHECK cs_status cs_page_plans_read(const char *path, cs_page_part *part, cs_error *error);

#endif
