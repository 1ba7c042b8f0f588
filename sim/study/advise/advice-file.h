/* All plans of a search as one HDF5 file (docs/how-to/find-a-plan.md has the layout), which appears
 * whole or not at all. Equal searches give files that are equal byte by byte. */
#ifndef CS_ADVISE_ADVICE_FILE_H
#define CS_ADVISE_ADVICE_FILE_H

#include "sim/core/trace/h5.h"
#include "sim/study/advise/advise.h"

typedef struct cs_advice_info {
    const char *name;     /* of the scenario */
    const char *topology; /* of its platform */
    const char *program_version;
    const char *path; /* of the scenario's file, for commands */
} cs_advice_info;

/* The table /plans. CS_IO, CS_NO_MEMORY, CS_INTERRUPTED. */
CS_MUST_CHECK cs_status cs_advice_store(const char *path, const cs_advice_info *info,
                                        const cs_advice *advice, const cs_progress *progress,
                                        cs_error *error);

/* The same into a file that the caller has created, and commits. */
CS_MUST_CHECK cs_status cs_advice_write(cs_h5_file *file, const cs_advice_info *info,
                                        const cs_advice *advice, cs_error *error);

#endif
