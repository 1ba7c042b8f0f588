/* Estimates held against a measured profile in PipeDream's format (pipedream.h), kind by kind. */
#ifndef CS_FOREIGN_PIPEDREAM_COMPARE_H
#define CS_FOREIGN_PIPEDREAM_COMPARE_H

#include "sim/model/net-model.h"

/* One kind of operator, or all of them together. */
typedef struct cs_compare_row {
    const char *kind;
    uint32_t n_measured, n_estimated; /* operators on both sides */
    double measured[2], estimated[2]; /* s of forward, backward */
} cs_compare_row;

typedef struct cs_compare {
    cs_compare_row rows[CS_N_OP_KINDS];
    uint32_t n_rows;
    cs_compare_row total; /* of the rows whose operators were timed on both sides */
    uint32_t n_untimed;   /* rows without a measured time: not in the total */
} cs_compare;

/* Sums both sides by kind. Average poolings of all kinds are one row; input nodes, sizes and views
 * are left out, and so is the loss, which profiles do not hold. */
CS_MUST_CHECK cs_status cs_compare_load(const char *path, const cs_net *net,
                                        const cs_net_options *options, cs_compare *compare,
                                        cs_error *error);

#endif
