/* Results of a sweep as one HDF5 file (docs/how-to/sweeps.md has the layout), which appears whole
 * or not at all. Equal results give files that are equal byte by byte. */
#ifndef CS_SWEEP_SWEEP_FILE_H
#define CS_SWEEP_SWEEP_FILE_H

#include "sim/core/trace/h5.h"
#include "sim/study/sweep/sweep.h"

typedef struct cs_sweep_info {
    const char *name;     /* of the scenario */
    const char *scenario; /* resolved, JSON text */
    const char *command;  /* what was asked for */
    const char *program_version;
} cs_sweep_info;

CS_MUST_CHECK cs_status cs_sweep_store(const char *path, const cs_sweep_info *info,
                                       const cs_space *space, const cs_sweep_results *results,
                                       const cs_progress *progress, cs_error *error);

/* The same into a file that the caller has created, and commits. */
CS_MUST_CHECK cs_status cs_sweep_write(cs_h5_file *file, const cs_sweep_info *info,
                                       const cs_space *space, const cs_sweep_results *results,
                                       cs_error *error);

#endif
