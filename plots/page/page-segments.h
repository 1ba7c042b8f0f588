/* Stores the work of PyTorch's allocator in a run in a page: the list "allocator" of the JSON has
 * an object for each device whose segments the results file holds; the packed columns come from
 * /reserved and /blocks. Internal to plots/page. */
#ifndef CS_PLOTS_PAGE_PAGE_SEGMENTS_H
#define CS_PLOTS_PAGE_PAGE_SEGMENTS_H

#include "plots/page/page-part.h"

/* Adds nothing if the run did not use the allocator. Must be called before the reader folds
 * devices. CS_INVALID, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_page_segments_read(cs_reader *reader, cs_page_part *run,
                                              cs_error *error);

#endif
