/* Where predicted steps spend their time, and which parts would have to be longer or shorter to
 * give the measured times: per dataset, means over its points with a measured time.
 *
 * The error of a point is 1 - predicted / measured here: what is missing, as a share of the
 * measured step. For each dataset the factors a_p of the parts are chosen that minimise
 *
 *     sum_i (sum_p a_p s_ip / m_i - 1)^2 + n w sum_p (a_p - 1)^2,  w = 0.01,
 *
 * s_ip the seconds of part p of point i, m_i its measured step, n points. The second term keeps a
 * factor at 1 where the points do not tell parts apart, as when all have the same proportions. What
 * part p lacks is the mean of (a_p - 1) s_ip / m_i; the rest is what no factors explain. Both add
 * up to the mean of what is missing, exactly. It is a description of the errors by linear least
 * squares, not a measurement: parts that always occur together are not told apart.
 */
#ifndef CS_VALIDATE_ERROR_PARTS_H
#define CS_VALIDATE_ERROR_PARTS_H

#include "sim/study/validate/predict.h"

typedef struct cs_error_parts {
    const char *dataset;               /* "" of all */
    uint32_t n;                        /* points */
    double predicted[CS_N_STEP_PARTS]; /* mean of s_ip / m_i */
    double lacking[CS_N_STEP_PARTS];   /* mean of (a_p - 1) s_ip / m_i */
    double rest, missing;              /* mean of 1 - predicted_i / m_i: sum of lacking, and rest */
} cs_error_parts;

typedef struct cs_error_parts_table {
    uint32_t n, capacity;
    cs_error_parts *rows; /* all, and then each dataset in the order in which it first occurs */
} cs_error_parts_table;

/* Zeroed tables can be finished. */
void cs_error_parts_finish(cs_error_parts_table *table);

/* The names are those of the points, which must live as long. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_error_parts_make(const cs_predictions *predictions,
                                            cs_error_parts_table *table, cs_error *error);

#endif
