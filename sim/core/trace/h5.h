/* A checked layer over HDF5: tables of columns into a file that appears whole or not at all.
 *
 * A file is made of groups; a group is a table whose columns are one-dimensional datasets of equal
 * length. One of them is the index: it is a dimension scale (netCDF-4 calls it a coordinate) and is
 * attached to all others, so that h5py, pandas and xarray know what the rows are. Every column has
 * the attributes `units` and `long_name`; one of coded values also `flag_values` and
 * `flag_meanings` (CF conventions), one of ids that may be missing `_FillValue`.
 *
 * The file is made under a temporary name and renamed when it is finished. HDF5 never hears of a
 * full disk (h5-disk.h), as it would try again at the end of the process; what cannot be renamed,
 * such as a pipe, gets a file that is made in memory. Long columns are packed (pack.h) before HDF5
 * gets them. Nothing that depends on the time or on addresses is stored: equal tables give files
 * that are equal byte by byte.
 *
 * HDF5 prints errors by itself; the functions here turn that off for the calling thread. A file is
 * used by one thread at a time; several files in several threads need an HDF5 built thread-safe.
 */
#ifndef CS_TRACE_H5_H
#define CS_TRACE_H5_H

#include "sim/base/error.h"
#include "sim/base/progress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CS_H5_NONE UINT32_MAX /* no id, in columns that are `optional` */

typedef enum cs_h5_type {
    CS_H5_INT64,
    CS_H5_UINT32,
    CS_H5_UINT8,
    CS_H5_DOUBLE,
    CS_H5_TEXT,   /* UTF-8 */
    CS_H5_UINT64, /* of attributes only */
} cs_h5_type;

typedef union cs_h5_value {
    int64_t int64;
    uint32_t uint32;
    uint8_t uint8;
    uint64_t uint64;
    double float64;
    const char *text;
} cs_h5_value;

typedef struct cs_h5_column {
    const char *name; /* NULL ends a table */
    cs_h5_type type;
    const char *units; /* "ps", "bytes"; "1" where there is none */
    const char *long_name;
    const char *const
        *meanings; /* of CS_H5_UINT8: what 0, 1, ... stand for, ended by NULL; or NULL */
    bool optional; /* CS_H5_UINT32: CS_H5_NONE means no value */
    /* The value of a row; NULL: it is a member of the record that `source` has for each row. */
    cs_h5_value (*get)(const void *source, uint64_t row, uint32_t which);
    uint32_t which; /* handed to `get`; without one: the offset of the member, which is of `type` */
    /* Instead of `get`, for long columns: the values of `count` rows from `first` on, of cs_h5_size
     * bytes each, to `values`. */
    void (*fill)(const void *source, uint64_t first, uint64_t count, uint32_t which, void *values);
} cs_h5_column;

/* For the `fill` of an index: the number of the row, CS_H5_UINT32. */
void cs_h5_row_numbers(const void *source, uint64_t first, uint64_t count, uint32_t which,
                       void *values);

/* Of a table whose rows are the points of a grid, the last dimension's following each other
 * fastest: every column becomes an array of several dimensions. */
typedef struct cs_h5_shape {
    uint32_t n; /* dimensions, 1 to 32 */
    const uint64_t *sizes;
    const char *const *scales; /* of each dimension: an index of an earlier table of the group */
} cs_h5_shape;

typedef struct cs_h5_table {
    const char *group; /* "tasks"; one that is there already gets more columns; "/": the file */
    const char *index; /* the column that is the dimension scale: of this table, or there already */
    const cs_h5_column *columns;
    uint64_t n_rows;
    const void *source;
    const cs_h5_shape *shape; /* instead of the index; NULL: rows follow each other */
    size_t row_size;          /* where `source` is an array of records: of one; bytes */
} cs_h5_table;

/* Bytes of a value in memory. */
size_t cs_h5_size(cs_h5_type type);

/* Copies the values of `count` rows from `first` on, of cs_h5_size bytes each, to `values`. */
void cs_h5_gather(const cs_h5_table *table, const cs_h5_column *column, uint64_t first,
                  uint64_t count, void *values);

typedef struct cs_h5_file cs_h5_file;

/* Whether there is memory for what HDF5 takes to open a file, or to write a table. Version 1.10
 * crashes, at once or when the process ends, where an allocation of its own fails then. */
bool cs_h5_has_room(void);

/* Begins a file that will have the name `path`. Fails here, before the work, where it could not be
 * written. `progress` may be NULL, and must live as long as the file. */
CS_MUST_CHECK cs_status cs_h5_create(const char *path, const cs_progress *progress,
                                     cs_h5_file **file, cs_error *error);

/* Takes what is written, in place of a file. What it is handed lives during the call only. */
typedef struct cs_h5_receiver {
    cs_status (*table)(void *context, const cs_h5_table *table, cs_error *error);
    cs_status (*attribute)(void *context, const char *name, cs_h5_type type, cs_h5_value value,
                           cs_error *error);
    void *context;
} cs_h5_receiver;

/* Begins a file that is none: all that is written goes to the receiver, which must live as long.
 * It is not committed. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_h5_create_for(const cs_h5_receiver *receiver, cs_h5_file **file,
                                         cs_error *error);

/* Also drops what was not committed: no temporary file stays. Accepts NULL. */
void cs_h5_destroy(cs_h5_file *file);

/* Writes the file to the disk under its name. To be called once; then only cs_h5_destroy may
 * follow. On failure an earlier file of that name is as it was. */
CS_MUST_CHECK cs_status cs_h5_commit(cs_h5_file *file, cs_error *error);

/* CS_IO, CS_NO_MEMORY, CS_INTERRUPTED. After a failure the file cannot be completed. */
CS_MUST_CHECK cs_status cs_h5_write_table(cs_h5_file *file, const cs_h5_table *table,
                                          cs_error *error);

/* Attributes of the file as a whole. */
CS_MUST_CHECK cs_status cs_h5_set(cs_h5_file *file, const char *name, cs_h5_type type,
                                  cs_h5_value value, cs_error *error);
CS_MUST_CHECK cs_status cs_h5_set_text(cs_h5_file *file, const char *name, const char *text,
                                       cs_error *error);
CS_MUST_CHECK cs_status cs_h5_set_int64(cs_h5_file *file, const char *name, int64_t value,
                                        cs_error *error);
CS_MUST_CHECK cs_status cs_h5_set_uint64(cs_h5_file *file, const char *name, uint64_t value,
                                         cs_error *error);
CS_MUST_CHECK cs_status cs_h5_set_double(cs_h5_file *file, const char *name, double value,
                                         cs_error *error);

#endif
