/* A run on its way into a page: what is said of it as JSON, what is drawn of it as packed columns.
 *
 * The JSON has the run's names, figures (sim/run/figures.h), rows of devices with where their time
 * went and what their memory held at the peak, links, the words of coded columns with their colours
 * (plots/sheet.h), lanes (lanes.h), the scenario. The packed columns are named as in the results
 * file, "tasks/start", those of lanes "lanes/order". Devices that others stand for are not there:
 * `device` is a row. Internal to plots/page.
 */
#ifndef CS_PLOTS_PAGE_PAGE_RUN_H
#define CS_PLOTS_PAGE_PAGE_RUN_H

#include "plots/page/packed.h"

typedef struct cs_page_run {
    cJSON *json;
    cs_packed packed;
} cs_page_run;

/* Reads a results file. A failed run is only to be finished. CS_INVALID, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_page_run_read(const char *path, cs_page_run *run, cs_error *error);

/* Accepts a zeroed run. */
void cs_page_run_finish(cs_page_run *run);

#endif
