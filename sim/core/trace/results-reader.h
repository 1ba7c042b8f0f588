/* Reads results files (results.h has the schema).
 *
 * Every file is checked: its structure when it is opened (file-layout.h), the values of a column when
 * they are read. A reader takes whole columns,
 * converted to the requested type, which live as long as the reader. Messages distinguish a missing file, one that is not HDF5, one that was cut
 * off, one of another program, and one of a newer version of this program.
 */
#ifndef CS_TRACE_RESULTS_READER_H
#define CS_TRACE_RESULTS_READER_H

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/base/time.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct cs_reader {
    const char *path;
    const char *name, *topology, *schedule;
    const char *scenario;             /* resolved, JSON; NULL: the file has none */
    const char *origin;               /* "simulated" or "measured"; NULL: unknown */
    const char *sharing, *algorithms; /* of links, of collectives; NULL: unknown */
    const char *fidelity;             /* of collectives; NULL: unknown */
    cs_time makespan;
    uint32_t micro_batches; /* of each mini-batch */
    const char *axes;       /* of a sweep's file: names of its varied keys, divided by blanks */
    int64_t file;           /* HDF5's id */
    struct cs_file_layout *layout;  /* the file's datasets; NULL before they are listed */
    const struct cs_schema *schema; /* the columns' schema; NULL for a sweep */
    bool starved;                   /* memory ran out where a text was read */
    cs_arena arena;
    /* Once cs_reader_fold or cs_reader_fold_equal was called, of a run in which some devices stand
     * for others: */
    const uint32_t *row_of;      /* per device of the file: its row, or UINT32_MAX; else NULL */
    const uint32_t *stand_in_of; /* the same, of one that has no row that of its stand-in */
    const char *const *kinds;    /* per row: the devices that it is about, "0-63", "64(x16)" */
    uint32_t n_kinds, n_file_devices; /* rows; devices of the file */
} cs_reader;

/* CS_INVALID, CS_NO_MEMORY; `reader` is then finished already. */
CS_MUST_CHECK cs_status cs_reader_init(cs_reader *reader, const char *path, cs_error *error);
void cs_reader_finish(cs_reader *reader);

/* From now on columns are about the simulated devices alone: those of /devices have a row for
 * each, and the number of a device, in any other column `device` or `peer`, is that of its row;
 * UINT32_MAX of a `device` without one, of a `peer` the row of its stand-in. Nothing changes where
 * each device was simulated. */
CS_MUST_CHECK cs_status cs_reader_fold(cs_reader *reader, cs_error *error);

/* The same, and of simulated devices that computed, sent and held the same at the same times only
 * the first is left: it stands for the others as well. */
CS_MUST_CHECK cs_status cs_reader_fold_equal(cs_reader *reader, cs_error *error);

/* "0-63" where the devices for which `device` stands follow each other, else "64(x16)"; by[d] is
 * what stands for d, of n devices. NULL when memory runs out. */
const char *cs_reader_kind_name(cs_reader *reader, const uint32_t *by, uint32_t n, uint32_t device);

/* The same of the file of a sweep (docs/how-to/sweeps.md has the schema): of the members above it
 * has `name` and `axes`. */
CS_MUST_CHECK cs_status cs_reader_init_sweep(cs_reader *reader, const char *path, cs_error *error);

/* The same of the file of a search for plans (docs/how-to/find-a-plan.md): it has `name` and
 * `topology`. */
CS_MUST_CHECK cs_status cs_reader_init_advice(cs_reader *reader, const char *path, cs_error *error);

/* The same of the file of predictions held against measurements (docs/reference/points.md): its
 * `name` is the command that made it. */
CS_MUST_CHECK cs_status cs_reader_init_validation(cs_reader *reader, const char *path,
                                                  cs_error *error);

/* What the file says that it is, CS_RESULTS_FORMAT or the like; "" of a file that is not HDF5 or
 * does not say. CS_INVALID when it cannot be read. */
CS_MUST_CHECK cs_status cs_reader_format(const char *path, char *format, size_t size,
                                         cs_error *error);

/* A figure of the run by its key (sim/run/figures.h); NaN where the file has none. */
double cs_reader_figure(const cs_reader *reader, const char *key);

/* A text that the file has as an attribute, like "program_version"; NULL: it has none. */
const char *cs_reader_text(cs_reader *reader, const char *name);

/* Whether the file has a table, like "waiting": files of earlier versions lack some. */
bool cs_reader_has(const cs_reader *reader, const char *group);

/* Whether the file says that it is from there: CS_RESULTS_SIMULATED, CS_RESULTS_MEASURED. */
bool cs_reader_is_from(const cs_reader *reader, const char *origin);

/* Words of a text, divided by blanks. */
CS_MUST_CHECK cs_status cs_reader_words(cs_reader *reader, const char *text,
                                        const char *const **words, uint32_t *n, cs_error *error);

enum { CS_READER_RANK_MAX = 32 }; /* CS_FILE_LAYOUT_RANK_MAX */

/* A dataset of any number of dimensions, as numbers; the last dimension's follow each other. Its
 * values are NULL when it is one of texts: then `texts` has them, if it has one dimension. */
typedef struct cs_reader_array {
    const char *name, *units, *long_name; /* "" where the file has none */
    uint32_t rank;
    uint64_t sizes[CS_READER_RANK_MAX];
    const double *values;
    const char *const *texts;
} cs_reader_array;

CS_MUST_CHECK cs_status cs_reader_read_array(cs_reader *reader, const char *name,
                                             cs_reader_array *array, cs_error *error);

/* How many devices of a run are out of memory. */
CS_MUST_CHECK cs_status cs_reader_out_of_memory(cs_reader *reader, uint32_t *n, cs_error *error);

typedef enum cs_reader_type {
    CS_READER_INT64,
    CS_READER_UINT32,
    CS_READER_DOUBLE,
    CS_READER_TEXT, /* const char * each */
} cs_reader_type;

typedef struct cs_reader_column {
    const char *name; /* "tasks/start" */
    cs_reader_type type;
    void *out; /* address of the pointer that is set: const int64_t **, ... */
} cs_reader_column;

/* Reads `n` columns of one group, all of the same length *n_rows. */
CS_MUST_CHECK cs_status cs_reader_read(cs_reader *reader, const cs_reader_column *columns, size_t n,
                                       uint64_t *n_rows, cs_error *error);

/* What the values 0, 1, ... of a coded column stand for. */
CS_MUST_CHECK cs_status cs_reader_meanings(cs_reader *reader, const char *column,
                                           const char *const **meanings, uint32_t *n,
                                           cs_error *error);

/* The columns of /tasks that say what ran where and when, with the meanings of kinds. */
typedef struct cs_reader_tasks {
    const uint32_t *kind, *origin, *device, *peer, *stage, *mini_batch, *micro_batch;
    const int64_t *start, *end; /* ps */
    const char *const *kinds;   /* of `kind` and `origin`, which are below n_kinds */
    uint64_t n;
    uint32_t n_kinds;
} cs_reader_tasks;

CS_MUST_CHECK cs_status cs_reader_read_tasks(cs_reader *reader, cs_reader_tasks *tasks,
                                             cs_error *error);

/* Per task the row of its device, or of what stands for that; without folding, the device. */
CS_MUST_CHECK cs_status cs_reader_task_rows(cs_reader *reader, const uint32_t **rows,
                                            cs_error *error);

/* The columns of a group whose names begin with `prefix`, in the order of the file. */
CS_MUST_CHECK cs_status cs_reader_names(cs_reader *reader, const char *group, const char *prefix,
                                        const char *const **names, uint32_t *n, cs_error *error);

#endif
