/* Formats of results files and the columns of their tables, for readers and writers. */
#ifndef CS_TRACE_RESULTS_SCHEMA_H
#define CS_TRACE_RESULTS_SCHEMA_H

#include <stdbool.h>

#define CS_RESULTS_FORMAT "sim-results" /* root attribute `format` */

/* Root attribute `schema_version`. New columns, groups or attributes keep the version; a change
 * that a reader of this version would misunderstand needs a new version. */
enum { CS_RESULTS_VERSION = 1 };

/* Root attribute `origin`. */
#define CS_RESULTS_SIMULATED "simulated"
#define CS_RESULTS_MEASURED  "measured"

/* Format and version of a sweep's file. */
#define CS_SWEEP_FORMAT "sim-sweep"

enum { CS_SWEEP_VERSION = 1 };

/* Format and version of a validation's file. */
#define CS_VALIDATION_FORMAT "sim-validation"

enum { CS_VALIDATION_VERSION = 1 };

/* Format and version of the file of a search for plans. */
#define CS_ADVICE_FORMAT "sim-advice"

enum { CS_ADVICE_VERSION = 1 };

/* ---- columns ---- */

typedef enum cs_schema_values {
    CS_SCHEMA_NUMBER,     /* integer >= 0 */
    CS_SCHEMA_INTEGER,    /* integer of either sign */
    CS_SCHEMA_ROW,        /* number of its own row */
    CS_SCHEMA_ID,         /* row of the table `of` */
    CS_SCHEMA_ID_OR_NONE, /* row of the table `of`, or CS_H5_NONE */
    CS_SCHEMA_CODE,       /* less than the number of words in the attribute flag_meanings */
    CS_SCHEMA_TIME,       /* ps, 0 to the makespan; -1: none */
    CS_SCHEMA_LATER,      /* ps, >= 0; -1: none; may exceed the makespan */
    CS_SCHEMA_BYTES,      /* >= 0 */
    CS_SCHEMA_REAL,       /* any number */
    CS_SCHEMA_TEXT,
} cs_schema_values;

typedef struct cs_schema_column {
    const char *table; /* NULL ends the list */
    const char *name;  /* "peak_*": any number of columns with names that begin with "peak_" */
    cs_schema_values values;
    const char *of;
    bool optional;  /* whether files of earlier versions, or of some runs, lack the column */
    bool ascending; /* whether values never decrease from row to row */
} cs_schema_column;

typedef struct cs_schema {
    const char *format;
    const cs_schema_column *columns;
    const char *const *tables; /* tables that every file must have, NULL-terminated */
} cs_schema;

/* Schema of a format; NULL if the format is unknown, or a sweep, whose columns are its keys. */
const cs_schema *cs_schema_of(const char *format);

/* Finds a column by its path, such as "tasks/start"; NULL if the schema lacks it, because files of
 * later versions may have more columns. */
const cs_schema_column *cs_schema_find(const cs_schema *schema, const char *path);

#endif
