/* A run as a results file (sim/core/trace/results.h has its contents). */
#ifndef CS_RUN_STORE_RUN_H
#define CS_RUN_STORE_RUN_H

#include "sim/core/trace/h5.h"
#include "sim/run/figures.h"
#include "sim/run/simulate.h"

/* Everything but repeated runs, between cs_h5_create and cs_h5_commit. `provenance` says how a run
 * was measured, JSON; NULL: it was simulated. */
CS_MUST_CHECK cs_status cs_simulation_store(cs_h5_file *file, const cs_scenario *scenario,
                                            const cs_simulation *simulation, const char *provenance,
                                            cs_error *error);

/* The numbers of CS_SCOPE_RUN that the run has, as attributes of the file; NaN where not known. */
CS_MUST_CHECK cs_status cs_figures_store(cs_h5_file *file, const cs_outcome *outcome,
                                         cs_error *error);

#endif
