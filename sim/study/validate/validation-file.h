/* Predictions and measurements as an HDF5 file (docs/reference/points.md), which `sim plot`
 * draws. */
#ifndef CS_VALIDATE_VALIDATION_FILE_H
#define CS_VALIDATE_VALIDATION_FILE_H

#include "sim/study/validate/judgement.h"

typedef struct cs_validation_info {
    const char *command; /* command line that was given */
    const char *program_version;
} cs_validation_info;

/* Writes the tables /points, /errors, /decomposition, /groups, /ranking, /trends and /peers. CS_IO,
 * CS_NO_MEMORY, CS_INTERRUPTED. */
CS_MUST_CHECK cs_status cs_validation_store(const char *path, const cs_validation_info *info,
                                            const cs_predictions *predictions,
                                            const cs_judgement *judgement,
                                            const cs_progress *progress, cs_error *error);

#endif
