/* How predicted steps spend their time, and which parts would have to be longer or shorter to match
 * the measured times: per dataset, means over its points with a measured time.
 *
 * Here the error of a point is 1 - predicted / measured: the missing share of the measured step.
 * For each dataset, factors a_p of the parts are chosen that minimise
 *
 *     sum_i (sum_p a_p s_ip / m_i - 1)^2 + n w sum_p (a_p - 1)^2,  w = 0.01,
 *
 * where s_ip is the time of part p of point i in s, m_i its measured step, and n the number of
 * points. The second term keeps a factor at 1 if the points do not distinguish the parts, for
 * example if all have the same proportions. Part p lacks the mean of (a_p - 1) s_ip / m_i; the rest
 * is the share that no factors explain. Together they equal the mean missing share exactly. This
 * describes the errors by linear least squares and is not a measurement: parts that always occur
 * together cannot be distinguished.
 */
#ifndef CS_VALIDATE_ERROR_PARTS_H
#define CS_VALIDATE_ERROR_PARTS_H

#include "sim/study/validate/predict.h"

typedef struct cs_error_parts {
    const char *dataset;               /* name of the dataset; "" for all together */
    uint32_t n;                        /* number of points */
    double predicted[CS_N_STEP_PARTS]; /* predicted share of each part: mean of s_ip / m_i */
    /* missing share of each part: mean of (a_p - 1) s_ip / m_i */
    double lacking[CS_N_STEP_PARTS];
    /* missing: mean of 1 - predicted_i / m_i, which is the sum of `lacking` and `rest` */
    double rest, missing;
} cs_error_parts;

typedef struct cs_error_parts_table {
    uint32_t n, capacity;
    /* all datasets together, then each dataset in order of first occurrence */
    cs_error_parts *rows;
} cs_error_parts_table;

/* Allowed on a zeroed struct. */
void cs_error_parts_finish(cs_error_parts_table *table);

/* Names are borrowed from the points, which must outlive the result. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_error_parts_make(const cs_predictions *predictions,
                                            cs_error_parts_table *table, cs_error *error);

#endif
