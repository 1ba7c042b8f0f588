/* Writes an analysis to a results file (schema: sim/core/trace/results.h): use of the devices'
 * time, critical path, age of weights, metrics of the whole run. */
#ifndef CS_ANALYSIS_STORE_H
#define CS_ANALYSIS_STORE_H

#include "sim/core/analysis/analysis.h"
#include "sim/core/trace/h5.h"

/* Call after cs_results_write of the same trace, before cs_h5_commit. */
CS_MUST_CHECK cs_status cs_analysis_store(cs_h5_file *file, const cs_analysis *analysis,
                                          cs_error *error);

/* Writes the intervals during which devices did not compute, with their causes. */
CS_MUST_CHECK cs_status cs_waits_store(cs_h5_file *file, const cs_waits *waits, cs_error *error);

#endif
