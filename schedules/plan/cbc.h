/* CBC's functions, looked up in its library at run time.
 *
 * `sim` is not linked with CBC: the library and its dependencies (CLP, LAPACK, a BLAS) add 13 ms
 * and tens of megabytes of addresses to the start of a program, and few planners use them.
 */
#ifndef CS_SCHEDULES_CBC_H
#define CS_SCHEDULES_CBC_H

#include "sim/base/error.h"

#include <Cbc_C_Interface.h>

#define CS_CBC_MAP(X)                                                                              \
    X(newModel)                                                                                    \
    X(deleteModel)                                                                                 \
    X(getNumRows)                                                                                  \
    X(addRow)                                                                                      \
    X(setRowLower)                                                                                 \
    X(addCol)                                                                                      \
    X(setLogLevel)                                                                                 \
    X(setParameter)                                                                                \
    X(setAllowableGap)                                                                             \
    X(setMaximumNodes)                                                                             \
    X(solve)                                                                                       \
    X(bestSolution)                                                                                \
    X(isProvenOptimal)                                                                             \
    X(isProvenInfeasible)

typedef struct cs_cbc {
#define CS_CBC_MEMBER(name) __typeof__(Cbc_##name) *name;
    CS_CBC_MAP(CS_CBC_MEMBER)
#undef CS_CBC_MEMBER
} cs_cbc;

/* Loads the library. CS_FAILED if the library or a function is missing; the message names it. The
 * library stays loaded, so later calls are fast. */
CS_MUST_CHECK cs_status cs_cbc_load(cs_cbc *cbc, cs_error *error);

#endif
