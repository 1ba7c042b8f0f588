/* Writes results as a single page for browsers. The page of a run shows timelines of all devices,
 * their memory, how they spent their time, the critical path, links, staleness of weights, metrics
 * and the scenario; several runs are shown below each other on one time axis. The page of a sweep
 * or of a search shows the points or plans, and the runs of some of them.
 *
 * The page needs no network: the file contains its program (*.js here, with D3's scales and zoom),
 * its style and all data. Overviews of millions of tasks are precomputed here, so that the page
 * stays responsive. Users' texts reach the page only as JSON with "<" escaped, and become text
 * nodes; the page's policy forbids other programs. */
#ifndef CS_PLOTS_PAGE_REPORT_PAGE_H
#define CS_PLOTS_PAGE_REPORT_PAGE_H

#include "sim/base/error.h"

#include <stddef.h>

enum { CS_PAGE_RUNS_MAX = 6 };

/* Writes the results files inputs[0 .. n - 1] as the page `output`, either completely or not at
 * all. The first file may be a sweep or a search. CS_INVALID for an input, CS_USAGE for more than
 * CS_PAGE_RUNS_MAX runs, CS_FAILED if sim was built without D3, CS_IO, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_page_write(const char *const *inputs, size_t n, const char *output,
                                      cs_error *error);

#endif
