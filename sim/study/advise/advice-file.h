/* All plans of a search as one HDF5 file (layout: docs/how-to/find-a-plan.md). The file appears
 * complete or not at all. Equal searches give files that are equal byte by byte. */
#ifndef CS_ADVISE_ADVICE_FILE_H
#define CS_ADVISE_ADVICE_FILE_H

#include "sim/core/trace/h5.h"
#include "sim/study/advise/advise.h"

typedef struct cs_advice_info {
    const char *name;     /* name of the scenario */
    const char *topology; /* topology of the scenario's platform */
    const char *program_version;
    const char *path; /* path of the scenario's file, for commands */
} cs_advice_info;

/* Writes the file with the table /plans. Errors: CS_IO, CS_NO_MEMORY, CS_INTERRUPTED. */
CS_MUST_CHECK cs_status cs_advice_store(const char *path, const cs_advice_info *info,
                                        const cs_advice *advice, const cs_progress *progress,
                                        cs_error *error);

/* Writes the table into a file that the caller has created and will commit. */
CS_MUST_CHECK cs_status cs_advice_write(cs_h5_file *file, const cs_advice_info *info,
                                        const cs_advice *advice, cs_error *error);

#endif
