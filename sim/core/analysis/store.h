/* Adds an analysis to a results file (sim/core/trace/results.h has the schema): where the time of the
 * devices went, the critical path, how old the weights were, and the figures of the whole run. */
#ifndef CS_ANALYSIS_STORE_H
#define CS_ANALYSIS_STORE_H

#include "sim/core/analysis/analysis.h"
#include "sim/core/trace/h5.h"

/* After cs_results_write of the trace that was analysed, before cs_h5_commit. */
CS_MUST_CHECK cs_status cs_analysis_store(cs_h5_file *file, const cs_analysis *analysis,
                                          cs_error *error);

/* Adds each stretch of time in which a device did not compute, and why. */
CS_MUST_CHECK cs_status cs_waits_store(cs_h5_file *file, const cs_waits *waits, cs_error *error);

#endif
