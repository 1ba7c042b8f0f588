/* Contents of a results file in memory: tables and attributes, which can be read, and written to a
 * file (h5.h) later.
 *
 *     cs_contents contents;
 *     cs_h5_file *file;
 *     cs_contents_init(&contents);
 *     cs_contents_open(&contents, NULL, &file, error);      collects everything written to `file`
 *     cs_simulation_store(file, ...);
 *     cs_h5_destroy(file);
 *     cs_contents_write(&contents, another, error);         writes it to another file
 *     cs_contents_finish(&contents);
 *
 * A file written from contents equals a file written directly, byte for byte.
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
    cs_h5_table table; /* its columns take their values from `values` */
    uint32_t n_columns;
    void **values; /* per column: n_rows values of cs_h5_size bytes */
} cs_contents_table;

/* In the order of writing. */
typedef struct cs_contents_item {
    const cs_contents_attribute *attribute; /* NULL: the item is a table */
    const cs_contents_table *table;
} cs_contents_item;

typedef struct cs_contents {
    cs_arena arena; /* owns everything */
    cs_h5_receiver receiver;
    const cs_progress *progress; /* set while a file is open */
    cs_contents_item *items;
    uint32_t n_items, capacity;
} cs_contents;

/* The struct must not move while a file is open for it. */
void cs_contents_init(cs_contents *contents);
void cs_contents_finish(cs_contents *contents); /* allowed on a zeroed struct */

/* The caller destroys the file. CS_NO_MEMORY, here and when writing to the file; writing also
 * returns CS_INTERRUPTED. `progress` may be NULL. */
CS_MUST_CHECK cs_status cs_contents_open(cs_contents *contents, const cs_progress *progress,
                                         cs_h5_file **file, cs_error *error);

/* Errors: as cs_h5_write_table. */
CS_MUST_CHECK cs_status cs_contents_write(const cs_contents *contents, cs_h5_file *file,
                                          cs_error *error);

#endif
