/* How a results file is laid out in HDF5, checked before anybody reads a value of it: its checksum
 * says that it is whole, not who wrote it.
 *
 * A file has groups of datasets, a group per table, and nothing else: no links to other files or
 * other places, no data outside of it, no filters but shuffle, deflate and checksums, no types but
 * numbers of up to 8 bytes and texts, no more values than its bytes can hold. The columns of a table
 * are equally long; those that the schema knows (results-schema.h) are there, and are of its type.
 * In the file of a sweep, whose datasets are in no group, those of its axes have one dimension, and
 * all others have a value for each point.
 */
#ifndef CS_TRACE_FILE_LAYOUT_H
#define CS_TRACE_FILE_LAYOUT_H

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/trace/results-schema.h"

#include <hdf5.h>
#include <stdint.h>

enum { CS_FILE_LAYOUT_RANK_MAX = 32 };

typedef enum cs_file_layout_type {
    CS_FILE_LAYOUT_WHOLE,
    CS_FILE_LAYOUT_REAL,
    CS_FILE_LAYOUT_TEXT
} cs_file_layout_type;

typedef struct cs_file_layout_dataset {
    const char *path; /* "tasks/start" */
    cs_file_layout_type type;
    uint32_t rank;
    uint64_t sizes[CS_FILE_LAYOUT_RANK_MAX];
    uint64_t n; /* their product */
} cs_file_layout_dataset;

typedef struct cs_file_layout {
    const char *path; /* of the file, for messages */
    cs_file_layout_dataset *datasets;
    uint32_t n, capacity;
} cs_file_layout;

/* Of an open file. The arena owns what is found. CS_INVALID, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_file_layout_read(cs_file_layout *layout, const char *path, hid_t file,
                                            cs_arena *arena, cs_error *error);

void cs_file_layout_finish(cs_file_layout *layout); /* accepts a zeroed one */

/* NULL: there is none. */
const cs_file_layout_dataset *cs_file_layout_find(const cs_file_layout *layout, const char *path);

/* Rows of a table; 0 where the file has none. */
uint64_t cs_file_layout_rows(const cs_file_layout *layout, const char *table);

/* That the tables are those of the schema. */
CS_MUST_CHECK cs_status cs_file_layout_check(const cs_file_layout *layout, const cs_schema *schema,
                                             cs_error *error);

/* The same of the file of a sweep: `axes` are the names of its axes; of a list of points, not of a
 * grid, they are columns beside the others. */
CS_MUST_CHECK cs_status cs_file_layout_check_sweep(const cs_file_layout *layout,
                                                   const char *const *axes, uint32_t n_axes,
                                                   bool list, cs_error *error);

/* That `n` values of a column, read as the type says, are what the schema says of it. */
typedef struct cs_file_layout_values {
    enum { CS_VALUES_INT64, CS_VALUES_UINT32, CS_VALUES_DOUBLE } type;
    const void *at;
    uint64_t n;
    uint32_t n_words; /* of flag_meanings */
    int64_t makespan; /* ps */
} cs_file_layout_values;

CS_MUST_CHECK cs_status cs_file_layout_check_values(const cs_file_layout *layout,
                                                    const cs_schema_column *column,
                                                    const char *path,
                                                    const cs_file_layout_values *values,
                                                    cs_error *error);

#endif
