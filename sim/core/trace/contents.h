/* The contents of a results file in memory: tables and attributes that can be looked at, and
 * written to a file (h5.h) later.
 *
 *     cs_contents contents;
 *     cs_h5_file *file;
 *     cs_contents_init(&contents);
 *     cs_contents_open(&contents, NULL, &file, error);      takes what is written to `file`
 *     cs_simulation_store(file, ...);
 *     cs_h5_destroy(file);
 *     cs_contents_write(&contents, another, error);         writes all of it to a file
 *     cs_contents_finish(&contents);
 *
 * A file that is written from contents is equal, byte by byte, to one that was written at once.
 */
#ifndef CS_TRACE_CONTENTS_H
#define CS_TRACE_CONTENTS_H

#include "sim/base/arena.h"
#include "sim/core/trace/h5.h"

typedef struct cs_contents_attribute {
    const char *name;
    cs_h5_type type;
    cs_h5_value value;
} cs_contents_attribute;

typedef struct cs_contents_table {
    cs_h5_table table; /* its columns have their values from `values` */
    uint32_t n_columns;
    void **values; /* of each column: n_rows of cs_h5_size bytes */
} cs_contents_table;

/* In the order in which they were written. */
typedef struct cs_contents_item {
    const cs_contents_attribute *attribute; /* NULL: it is a table */
    const cs_contents_table *table;
} cs_contents_item;

typedef struct cs_contents {
    cs_arena arena; /* owns all of it */
    cs_h5_receiver receiver;
    const cs_progress *progress; /* while a file is open */
    cs_contents_item *items;
    uint32_t n_items, capacity;
} cs_contents;

/* Must stay where it is while a file is open for it. */
void cs_contents_init(cs_contents *contents);
void cs_contents_finish(cs_contents *contents); /* takes zeroed ones */

/* The file is the caller's, to destroy. CS_NO_MEMORY, then and when writing to it; when writing
 * also CS_INTERRUPTED. `progress` may be NULL. */
CS_MUST_CHECK cs_status cs_contents_open(cs_contents *contents, const cs_progress *progress,
                                         cs_h5_file **file, cs_error *error);

/* Errors as of cs_h5_write_table. */
CS_MUST_CHECK cs_status cs_contents_write(const cs_contents *contents, cs_h5_file *file,
                                          cs_error *error);

#endif
