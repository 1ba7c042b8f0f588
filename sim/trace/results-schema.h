/* What tells a results file from any other, for those who read and write one. */
#ifndef CS_TRACE_RESULTS_SCHEMA_H
#define CS_TRACE_RESULTS_SCHEMA_H

#define CS_RESULTS_FORMAT "sim-results" /* root attribute `format` */

/* Root attribute `schema_version`. Adding a column, a group or an attribute keeps the version;
 * whatever a reader of this one would misunderstand makes a new one. */
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

#endif
