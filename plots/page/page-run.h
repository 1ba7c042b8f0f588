/* A run on its way into a page: what is said of it as JSON, what is drawn of it as packed columns.
 *
 * The JSON has the run's names, figures (sim/run/figures.h), rows of devices with where their time
 * went and what their memory held at the peak, links, the words of coded columns with their colours
 * (plots/sheet.h), lanes, the scenario. The packed columns are named as in the results
 * file, "tasks/start", those of lanes "lanes/order". Devices that others stand for are not there:
 * `device` is a row. Internal to plots/page.
 */
#ifndef CS_PLOTS_PAGE_PAGE_RUN_H
#define CS_PLOTS_PAGE_PAGE_RUN_H

#include "plots/page/page-part.h"

/* Reads a results file. CS_INVALID, CS_NO_MEMORY; a failed part is only to be finished. */
CS_MUST_CHECK cs_status cs_page_run_read(const char *path, cs_page_part *run, cs_error *error);

#endif
