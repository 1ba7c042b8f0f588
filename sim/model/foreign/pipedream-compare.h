/* Compares estimates with a measured profile in PipeDream's format (pipedream.h), kind by kind. */
#ifndef CS_FOREIGN_PIPEDREAM_COMPARE_H
#define CS_FOREIGN_PIPEDREAM_COMPARE_H

#include "sim/model/net-model.h"

/* The sums of one kind of operator, or of all kinds together. */
typedef struct cs_compare_row {
    const char *kind;
    uint32_t n_measured, n_estimated; /* number of operators in the profile; in the network */
    double measured[2], estimated[2]; /* seconds in forward [0] and backward [1] */
} cs_compare_row;

typedef struct cs_compare {
    cs_compare_row rows[CS_N_OP_KINDS];
    uint32_t n_rows;
    /* sum over the rows whose operators have both measured and estimated times */
    cs_compare_row total;
    uint32_t n_untimed; /* number of rows without a measured time, which the total excludes */
} cs_compare;

/* Sums both sides by kind. All kinds of average pooling share one row. Input nodes, sizes and views
 * are left out, and so is the loss, which profiles do not contain. */
CS_MUST_CHECK cs_status cs_compare_load(const char *path, const cs_net *net,
                                        const cs_net_options *options, cs_compare *compare,
                                        cs_error *error);

#endif
