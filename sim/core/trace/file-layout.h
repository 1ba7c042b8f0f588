/* Checks the structure of a results file before its values are read. The checksum shows only that a
 * file is complete: anybody can write a file with a correct checksum.
 *
 * A valid file contains groups of datasets, one group per table, and nothing else. Refused are:
 * links to other objects or files, values outside the file, filters other than shuffle, deflate and
 * fletcher32, types other than texts and numbers of up to 8 bytes, and datasets larger than their
 * stored bytes can be. All columns of a table have the same length. The columns of the schema
 * (results-schema.h) exist and have its types. A sweep's datasets are in the root group: each axis
 * has one dimension, and every other dataset has one value per point.
 */
#ifndef CS_TRACE_FILE_LAYOUT_H
#define CS_TRACE_FILE_LAYOUT_H

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/core/trace/results-schema.h"

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
    uint64_t n; /* product of the dimensions */
} cs_file_layout_dataset;

typedef struct cs_file_layout {
    const char *path; /* path of the file, for messages */
    cs_file_layout_dataset *datasets;
    uint32_t n, capacity;
} cs_file_layout;

/* Lists the datasets of an open file; the arena owns their paths. Errors: CS_INVALID,
 * CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_file_layout_read(cs_file_layout *layout, const char *path, hid_t file,
                                            cs_arena *arena, cs_error *error);

void cs_file_layout_finish(cs_file_layout *layout); /* allowed on a zeroed struct */

/* Returns NULL if the file lacks the dataset. */
const cs_file_layout_dataset *cs_file_layout_find(const cs_file_layout *layout, const char *path);

/* Number of rows of a table; 0 if the file lacks it. */
uint64_t cs_file_layout_rows(const cs_file_layout *layout, const char *table);

/* Checks that tables and columns agree with the schema. */
CS_MUST_CHECK cs_status cs_file_layout_check(const cs_file_layout *layout, const cs_schema *schema,
                                             cs_error *error);

/* Checks the file of a sweep; `axes` names its axes. In a list of points, axes are columns like all
 * others; in a grid, each is a dimension. */
CS_MUST_CHECK cs_status cs_file_layout_check_sweep(const cs_file_layout *layout,
                                                   const char *const *axes, uint32_t n_axes,
                                                   bool list, cs_error *error);

/* Checks that the `n` values of a column are in the range that the schema states. */
typedef struct cs_file_layout_values {
    enum { CS_VALUES_INT64, CS_VALUES_UINT32, CS_VALUES_DOUBLE } type;
    const void *at;
    uint64_t n;
    uint32_t n_words; /* number of words in the attribute flag_meanings */
    int64_t makespan; /* ps */
} cs_file_layout_values;

CS_MUST_CHECK cs_status cs_file_layout_check_values(const cs_file_layout *layout,
                                                    const cs_schema_column *column,
                                                    const char *path,
                                                    const cs_file_layout_values *values,
                                                    cs_error *error);

#endif
