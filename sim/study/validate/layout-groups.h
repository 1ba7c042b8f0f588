/* How well predictions rank layouts. Runs form a group if they differ only in their layout, such as
 * parallel sizes, micro-batch and recomputation: a user who wants the best layout compares such
 * runs.
 *
 * A group has the runs of one dataset with equal model, GPUs, global batch and precision whose step
 * time is measured and predicted; at least CS_GROUP_LEAST of them. Values per group:
 *
 * - Kendall's tau: among the pairs of runs that differ in both times, the share predicted in the
 *   right order minus the share in the wrong order; 1 is perfect, 0 is chance.
 * - The loss (regret) of a choice: its measured time / the best measured time - 1. The predictions
 *   choose the run with the smallest predicted time.
 * - The rule of thumb, for comparison: no recomputation, then the smallest tensor x pipeline, then
 *   the largest micro-batch. Runs that it cannot distinguish have equal ranks, and it chooses the
 *   first.
 *
 * A group without two runs that differ in both times has no tau, and is left out. */
#ifndef CS_VALIDATE_LAYOUT_GROUPS_H
#define CS_VALIDATE_LAYOUT_GROUPS_H

#include "sim/study/validate/predict.h"

enum { CS_GROUP_LEAST = 4 };

/* largest loss of a choice that counts as near the best */
static const double cs_group_near = 0.05;

typedef enum cs_chooser { CS_CHOOSER_PREDICTION, CS_CHOOSER_RULE, CS_N_CHOOSERS } cs_chooser;

typedef struct cs_layout_group {
    const cs_prediction *best; /* run with the smallest measured time */
    uint32_t n;                /* number of runs */
    const cs_prediction *choice[CS_N_CHOOSERS];
    /* Kendall's tau; 0 for the rule if it distinguishes no runs that differ in time */
    double tau[CS_N_CHOOSERS];
    double loss[CS_N_CHOOSERS];
} cs_layout_group;

/* Values of a ranking: means over groups. */
typedef struct cs_ranking {
    const char *dataset; /* name of the dataset; "" for all together */
    uint32_t n_groups, n_runs;
    double tau[CS_N_CHOOSERS], loss[CS_N_CHOOSERS];
    double near[CS_N_CHOOSERS]; /* share of groups whose choice is near the best */
} cs_ranking;

typedef struct cs_layout_groups {
    uint32_t n, capacity;
    cs_layout_group *groups; /* groups, sorted by dataset, model and so on */
    uint32_t n_rankings, cap_rankings;
    /* all groups together, then each dataset with a group; none without groups */
    cs_ranking *rankings;
} cs_layout_groups;

/* Allowed on a zeroed struct. */
void cs_layout_groups_finish(cs_layout_groups *groups);

/* Finds the groups. The predictions must outlive the result. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_layout_groups_make(const cs_predictions *predictions,
                                              cs_layout_groups *groups, cs_error *error);

#endif
