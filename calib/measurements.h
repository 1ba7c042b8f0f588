/* Collects timings of collectives, from a measurement or a log, in any order; then fits them, as
 * entries of costs. */
#ifndef CS_CALIB_MEASUREMENTS_H
#define CS_CALIB_MEASUREMENTS_H

#include "calib/costs.h"

/* Timings of one collective, level and number of ranks. */
typedef struct cs_measured_table {
    cs_cost_collective collective;
    cs_cost_level level;
    uint32_t ranks;
    cs_cost_point *points;
    uint32_t n_points, cap_points;
} cs_measured_table;

/* Zeroed measurements are empty and can be finished. */
typedef struct cs_measurements {
    cs_measured_table *tables;
    uint32_t n_tables, cap_tables;
} cs_measurements;

void cs_measurements_finish(cs_measurements *measurements);

/* Adds a timing to its table, which is created if necessary. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_measurements_add(cs_measurements *measurements,
                                            cs_cost_collective collective, cs_cost_level level,
                                            uint32_t ranks, cs_cost_point point, cs_error *error);

/* Fits regimes (calib/fit.h) to every table and adds them to the costs, with source number
 * `source`, and with their points if `keep`. Messages begin with `name`. */
CS_MUST_CHECK cs_status cs_measurements_fit(cs_measurements *measurements, const char *name,
                                            uint32_t source, bool keep, cs_costs *costs,
                                            cs_error *error);

#endif
