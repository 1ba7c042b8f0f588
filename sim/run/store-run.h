/* Writes a run to a results file (contents: sim/core/trace/results.h). */
#ifndef CS_RUN_STORE_RUN_H
#define CS_RUN_STORE_RUN_H

#include "sim/core/trace/h5.h"
#include "sim/run/figures.h"
#include "sim/run/simulate.h"

/* Writes everything except repeated runs, between cs_h5_create and cs_h5_commit. `provenance` is
 * JSON that says how a run was measured; NULL: it was simulated. */
CS_MUST_CHECK cs_status cs_simulation_store(cs_h5_file *file, const cs_scenario *scenario,
                                            const cs_simulation *simulation, const char *provenance,
                                            cs_error *error);

/* Writes the CS_SCOPE_RUN metrics of the run, except booleans, as attributes of the file; NaN if
 * not known. */
CS_MUST_CHECK cs_status cs_figures_store(cs_h5_file *file, const cs_outcome *outcome,
                                         cs_error *error);

#endif
