/* What the public types of clustersim.h are made of. Internal to sim/library. */
#ifndef CS_LIBRARY_HANDLES_H
#define CS_LIBRARY_HANDLES_H

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/number.h"
#include "sim/base/progress.h"
#include "sim/core/trace/contents.h"
#include "sim/library/clustersim.h"

#include <stdio.h>

struct clustersim_result {
    cs_arena arena;       /* owns all arrays but those of the contents */
    cs_contents contents; /* what its file has */
    uint64_t hash;
    clustersim_figure *figures;
    size_t n_figures;
    uint32_t n_devices, n_device_figures;
    const char **device_keys;
    double *device_values; /* per device one for each key */
    clustersim_tasks tasks;
    clustersim_memory memory;
    clustersim_column *columns;
    clustersim_attribute *attributes;
    size_t n_columns, n_attributes;
    char *text, *json; /* the result's, to free; or NULL */
};

/* ---- failures ---- */

/* Ends a call, which began by entering the C locale: messages and texts have decimal points
 * whatever locale the program has chosen. Stores a record of what was said, unless `error` is
 * NULL. */
clustersim_status cs_library_done(cs_status status, const cs_error *said, cs_number_locale caller,
                                  clustersim_error **error);

/* Returns CS_USAGE if a required argument is NULL. */
CS_MUST_CHECK cs_status cs_library_given(const void *argument, const char *name, cs_error *error);

/* ---- options ---- */

/* The options as this version has them, whatever version the caller was compiled with. */
clustersim_options cs_library_options(const clustersim_options *given);

/* Calls `progress`, looks at `stop`; lives as long as the options. */
cs_progress cs_library_progress(clustersim_options *options);

/* ---- scenarios ---- */

/* Checks the caller's source and writes it to *source, with a default name if it has none. */
CS_MUST_CHECK cs_status cs_library_source(const clustersim_source *given, clustersim_source *source,
                                          cs_error *error);

/* Returns CS_USAGE if one of `n` changes contains NULL. `name`: "changes". */
CS_MUST_CHECK cs_status cs_library_changes(const clustersim_change *changes, size_t n,
                                           const char *name, cs_error *error);

/* Reads the document, with its changes. */
CS_MUST_CHECK cs_status cs_library_document(const clustersim_source *source, cJSON **document,
                                            cs_error *error);

/* ---- results ---- */

/* NULL when memory runs out. */
clustersim_result *cs_library_result_new(void);

/* Makes columns and attributes of its contents. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_library_take_columns(clustersim_result *result, cs_error *error);

/* Ends a text that was printed into memory (cs_text_stream) with `status`. CS_NO_MEMORY where it is
 * not whole. */
CS_MUST_CHECK cs_status cs_library_close_text(FILE *out, cs_status status, cs_error *error);

/* NULL: there is none. */
const clustersim_column *cs_library_column(const clustersim_result *result, const char *table,
                                           const char *name);

#endif
