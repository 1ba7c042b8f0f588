/* Errors of sim and of other tools, on the runs that both predict. A point states another tool's
 * predictions as "peers": {"TOOL": {"step_time_s": s, "peak_allocated_bytes": bytes,
 * "peak_reserved_bytes": bytes}}. Only the memory of points of quality C counts. */
#ifndef CS_VALIDATE_PEER_ERRORS_H
#define CS_VALIDATE_PEER_ERRORS_H

#include "sim/study/validate/predict.h"

typedef struct cs_peer_errors {
    const char *tool;
    cs_measure measure;
    uint32_t n;
    double ours, theirs; /* means of |predicted / measured - 1| */
    uint32_t n_closer;   /* number of runs with a smaller error of sim */
} cs_peer_errors;

typedef struct cs_peer_table {
    uint32_t n, capacity;
    cs_peer_errors *rows; /* sorted by tool, in the order of first occurrence */
} cs_peer_table;

/* Allowed on a zeroed struct. */
void cs_peer_table_finish(cs_peer_table *table);

/* Computes the errors. The points must outlive the table. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_peer_table_make(const cs_predictions *predictions, cs_peer_table *table,
                                           cs_error *error);

#endif
