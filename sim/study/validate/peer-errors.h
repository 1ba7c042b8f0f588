/* Errors of sim and of other tools, on the runs that both predict. The point states a tool's
 * prediction, "peers": {"TOOL": {"step_time_s": s, "peak_allocated_bytes": bytes,
 * "peak_reserved_bytes": bytes}}. Of quality C only memory counts. */
#ifndef CS_VALIDATE_PEER_ERRORS_H
#define CS_VALIDATE_PEER_ERRORS_H

#include "sim/study/validate/predict.h"

typedef struct cs_peer_errors {
    const char *tool;
    cs_measure measure;
    uint32_t n;
    double ours, theirs; /* means of |predicted / measured - 1| */
    uint32_t n_closer;   /* runs where the error of sim is smaller */
} cs_peer_errors;

typedef struct cs_peer_table {
    uint32_t n, capacity;
    cs_peer_errors *rows; /* by tool, in the order of first occurrence */
} cs_peer_table;

/* Zeroed tables can be finished. */
void cs_peer_table_finish(cs_peer_table *table);

/* The points must live as long. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_peer_table_make(const cs_predictions *predictions, cs_peer_table *table,
                                           cs_error *error);

#endif
