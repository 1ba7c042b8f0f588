/* Formats of results files, and the columns of their tables, for reader and writer. */
#ifndef CS_TRACE_RESULTS_SCHEMA_H
#define CS_TRACE_RESULTS_SCHEMA_H

#include <stdbool.h>

#define CS_RESULTS_FORMAT "sim-results" /* root attribute `format` */

/* Root attribute `schema_version`. Adding a column, a group or an attribute keeps the version;
 * a change that a reader of this version would misunderstand needs a new one. */
enum { CS_RESULTS_VERSION = 1 };

/* Root attribute `origin`. */
#define CS_RESULTS_SIMULATED "simulated"
#define CS_RESULTS_MEASURED  "measured"

/* The same of the file of a sweep. */
#define CS_SWEEP_FORMAT "sim-sweep"

enum { CS_SWEEP_VERSION = 1 };

/* The same of the file of predictions held against measured points. */
#define CS_VALIDATION_FORMAT "sim-validation"

enum { CS_VALIDATION_VERSION = 1 };

/* The same of the file of a search for plans. */
#define CS_ADVICE_FORMAT "sim-advice"

enum { CS_ADVICE_VERSION = 1 };

/* ---- columns ---- */

typedef enum cs_schema_values {
    CS_SCHEMA_NUMBER,     /* whole, >= 0 */
    CS_SCHEMA_INTEGER,    /* whole, of either sign */
    CS_SCHEMA_ROW,        /* the number of the row */
    CS_SCHEMA_ID,         /* a row of the table `of` */
    CS_SCHEMA_ID_OR_NONE, /* the same, or CS_H5_NONE */
    CS_SCHEMA_CODE,       /* below the number of words in the attribute flag_meanings */
    CS_SCHEMA_TIME,       /* ps, 0 to the makespan; -1 for none */
    CS_SCHEMA_LATER,      /* ps, >= 0; -1 for none; may exceed the makespan */
    CS_SCHEMA_BYTES,      /* >= 0 */
    CS_SCHEMA_REAL,       /* any number */
    CS_SCHEMA_TEXT,
} cs_schema_values;

typedef struct cs_schema_column {
    const char *table; /* NULL ends the list */
    const char *name;  /* "peak_*": any number of columns whose names begin with "peak_" */
    cs_schema_values values;
    const char *of;
    bool optional;  /* files of earlier versions, or of some runs, have no such column */
    bool ascending; /* values never decrease from row to row */
} cs_schema_column;

typedef struct cs_schema {
    const char *format;
    const cs_schema_column *columns;
    const char *const *tables; /* required in each file, ended by NULL */
} cs_schema;

/* The schema of a format; NULL if the format is unknown, or a sweep, whose keys are its columns. */
const cs_schema *cs_schema_of(const char *format);

/* Finds a column by its path, "tasks/start"; NULL if the schema has no such column: files of later
 * versions may add some. */
const cs_schema_column *cs_schema_find(const cs_schema *schema, const char *path);

#endif
