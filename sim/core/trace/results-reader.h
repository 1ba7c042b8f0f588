/* Reads results files (results.h has the schema).
 *
 * Every file is checked: its structure when it is opened (file-layout.h), the values of a column
 * when they are read. A reader reads whole columns, converted to the requested type; they live as
 * long as the reader. Messages distinguish a missing file, a file that is not HDF5, a truncated
 * file, a file of another program, and a file of a newer version of this program.
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
    const char *scenario;             /* resolved scenario, JSON; NULL: not in the file */
    const char *origin;               /* "simulated" or "measured"; NULL: unknown */
    const char *sharing, *algorithms; /* link sharing; algorithms of collectives; NULL: unknown */
    const char *fidelity;             /* fidelity of collectives; NULL: unknown */
    cs_time makespan;
    uint32_t micro_batches;         /* micro-batches per mini-batch */
    const char *axes;               /* sweep: names of the varied keys, separated by blanks */
    int64_t file;                   /* HDF5's id */
    struct cs_file_layout *layout;  /* datasets of the file; NULL before they are listed */
    const struct cs_schema *schema; /* schema of the columns; NULL for a sweep */
    bool starved;                   /* whether memory ran out while reading a text */
    cs_arena arena;
    /* Set by cs_reader_fold and cs_reader_fold_equal if some devices stand for others: */
    /* per device of the file: its row, or UINT32_MAX; NULL: not folded */
    const uint32_t *row_of;
    /* per device of the file: its row, or the row of the device that stands for it */
    const uint32_t *stand_in_of;
    /* per row: the devices that it represents, such as "0-63" or "64(x16)" */
    const char *const *kinds;
    uint32_t n_kinds, n_file_devices; /* number of rows; number of devices in the file */
} cs_reader;

/* Errors: CS_INVALID, CS_NO_MEMORY; `reader` is finished in these cases. */
CS_MUST_CHECK cs_status cs_reader_init(cs_reader *reader, const char *path, cs_error *error);
void cs_reader_finish(cs_reader *reader);

/* Restricts all columns read later to simulated devices. Tables with one row per device have a row
 * for each simulated device, and any column `device` or `peer` contains row numbers: UINT32_MAX for
 * a `device` that was not simulated, and the row of its stand-in for such a `peer`. No effect if
 * every device was simulated. */
CS_MUST_CHECK cs_status cs_reader_fold(cs_reader *reader, cs_error *error);

/* The same; in addition, simulated devices that computed, sent and held the same at the same times
 * are represented by the first of them. */
CS_MUST_CHECK cs_status cs_reader_fold_equal(cs_reader *reader, cs_error *error);

/* Names the devices that `device` stands for: "0-63" if they are consecutive, else "64(x16)". by[d]
 * is the stand-in of d, for n devices. NULL if memory runs out. */
const char *cs_reader_kind_name(cs_reader *reader, const uint32_t *by, uint32_t n, uint32_t device);

/* Opens the file of a sweep (schema: docs/how-to/sweeps.md). Only `name` and `axes` of the members
 * above are set. */
CS_MUST_CHECK cs_status cs_reader_init_sweep(cs_reader *reader, const char *path, cs_error *error);

/* Opens the file of a search for plans (docs/how-to/find-a-plan.md). Only `name` and `topology` are
 * set. */
CS_MUST_CHECK cs_status cs_reader_init_advice(cs_reader *reader, const char *path, cs_error *error);

/* Opens the file of a validation (docs/reference/points.md); `name` is the command that made it. */
CS_MUST_CHECK cs_status cs_reader_init_validation(cs_reader *reader, const char *path,
                                                  cs_error *error);

/* Reads the format that the file states, such as CS_RESULTS_FORMAT; "" if the file is not HDF5 or
 * states none. CS_INVALID if it cannot be read. */
CS_MUST_CHECK cs_status cs_reader_format(const char *path, char *format, size_t size,
                                         cs_error *error);

/* Metric of the run by its key (sim/run/figures.h); NaN if the file lacks it. */
double cs_reader_figure(const cs_reader *reader, const char *key);

/* Text attribute such as "program_version"; NULL if the file lacks it. */
const char *cs_reader_text(cs_reader *reader, const char *name);

/* Whether the file has a table, such as "waiting"; files of earlier versions lack some. */
bool cs_reader_has(const cs_reader *reader, const char *group);

/* Whether the file states this origin, CS_RESULTS_SIMULATED or CS_RESULTS_MEASURED. */
bool cs_reader_is_from(const cs_reader *reader, const char *origin);

/* Splits a text into words at blanks. */
CS_MUST_CHECK cs_status cs_reader_words(cs_reader *reader, const char *text,
                                        const char *const **words, uint32_t *n, cs_error *error);

enum { CS_READER_RANK_MAX = 32 }; /* equals CS_FILE_LAYOUT_RANK_MAX */

/* Dataset of any number of dimensions, in row-major order. Values are NULL for texts; a
 * one-dimensional dataset of texts is in `texts`. */
typedef struct cs_reader_array {
    const char *name, *units, *long_name; /* "" if the file lacks them */
    uint32_t rank;
    uint64_t sizes[CS_READER_RANK_MAX];
    const double *values;
    const char *const *texts;
} cs_reader_array;

CS_MUST_CHECK cs_status cs_reader_read_array(cs_reader *reader, const char *name,
                                             cs_reader_array *array, cs_error *error);

/* Counts the devices of a run that ran out of memory. */
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
    void *out; /* address of the pointer to set: const int64_t **, ... */
} cs_reader_column;

/* Reads `n` columns of one group; all have the same length, *n_rows. */
CS_MUST_CHECK cs_status cs_reader_read(cs_reader *reader, const cs_reader_column *columns, size_t n,
                                       uint64_t *n_rows, cs_error *error);

/* Meanings of the values 0, 1, ... of a coded column. */
CS_MUST_CHECK cs_status cs_reader_meanings(cs_reader *reader, const char *column,
                                           const char *const **meanings, uint32_t *n,
                                           cs_error *error);

/* Columns of /tasks with place and time of each task, and the meanings of kinds. */
typedef struct cs_reader_tasks {
    const uint32_t *kind, *origin, *device, *peer, *stage, *mini_batch, *micro_batch;
    const int64_t *start, *end; /* ps */
    /* meanings of `kind` and `origin`, whose values are below n_kinds */
    const char *const *kinds;
    uint64_t n;
    uint32_t n_kinds;
} cs_reader_tasks;

CS_MUST_CHECK cs_status cs_reader_read_tasks(cs_reader *reader, cs_reader_tasks *tasks,
                                             cs_error *error);

/* Per task: row of its device or of the stand-in; without folding, the device. */
CS_MUST_CHECK cs_status cs_reader_task_rows(cs_reader *reader, const uint32_t **rows,
                                            cs_error *error);

/* Columns of a group whose names begin with `prefix`, in the order of the file. */
CS_MUST_CHECK cs_status cs_reader_names(cs_reader *reader, const char *group, const char *prefix,
                                        const char *const **names, uint32_t *n, cs_error *error);

#endif
