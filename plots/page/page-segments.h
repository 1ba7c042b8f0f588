/* What PyTorch's allocator did in a run, on its way into a page: the list "allocator" of the JSON
 * has an object for each device whose segments the results file holds; the packed columns are those
 * of /reserved and /blocks. Internal to plots/page.
 */
#ifndef CS_PLOTS_PAGE_PAGE_SEGMENTS_H
#define CS_PLOTS_PAGE_PAGE_SEGMENTS_H

#include "plots/page/page-part.h"

/* Nothing of a run without the allocator. To be called before the reader folds devices. CS_INVALID,
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_page_segments_read(cs_reader *reader, cs_page_part *run,
                                              cs_error *error);

#endif
