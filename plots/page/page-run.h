/* Stores a run in a page: its descriptions as JSON, the data to draw as packed columns.
 *
 * The JSON has the run's names, metrics (sim/run/figures.h), rows of devices with how they spent
 * their time and what their memory held at the peak, links, the words of coded columns with their
 * colours (plots/sheet.h), lanes, and the scenario. The packed columns have their names in the
 * results file, e.g. "tasks/start"; columns of lanes are named "lanes/order" etc. Devices that are
 * represented by a simulated one are omitted, so `device` is a row. Internal to plots/page. */
#ifndef CS_PLOTS_PAGE_PAGE_RUN_H
#define CS_PLOTS_PAGE_PAGE_RUN_H

#include "plots/page/page-part.h"

/* Reads a results file. CS_INVALID, CS_NO_MEMORY; after a failure, only cs_page_part_finish is
 * allowed on `run`. */
CS_MUST_CHECK cs_status cs_page_run_read(const char *path, cs_page_part *run, cs_error *error);

#endif
