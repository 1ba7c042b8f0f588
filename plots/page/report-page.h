/* Results as one page for browsers: what each device did when, what its memory held, where its time
 * went, the critical path, links, ages of weights, figures and the scenario; several runs below
 * each other on one axis of time. Or the points of a sweep, or the plans of a search, and the runs
 * of some of them.
 *
 * The page needs no network: its program (*.js here, with D3's scales and zoom), its style and all
 * data are in the file. What is drawn of a million tasks at a glance is summed up here,
 * so that the page stays fluid. Texts of users reach the page as JSON only, in which "<" is
 * escaped, and become text nodes; and the page's policy lets no other program run.
 */
#ifndef CS_PLOTS_PAGE_REPORT_PAGE_H
#define CS_PLOTS_PAGE_REPORT_PAGE_H

#include "sim/base/error.h"

#include <stddef.h>

enum { CS_PAGE_RUNS_MAX = 6 };

/* Writes the results files inputs[0 .. n - 1], of which the first may be that of a sweep or search,
 * as the page `output`, whole or not at all. CS_INVALID for an input, CS_USAGE for more than
 * CS_PAGE_RUNS_MAX, CS_FAILED where sim was built without D3, CS_IO, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_page_write(const char *const *inputs, size_t n, const char *output,
                                      cs_error *error);

#endif
