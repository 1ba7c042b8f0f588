/* What identifies a results file, for its reader and its writer. */
#ifndef CS_TRACE_RESULTS_SCHEMA_H
#define CS_TRACE_RESULTS_SCHEMA_H

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

#endif
