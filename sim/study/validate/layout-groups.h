/* How well predictions rank layouts: runs that differ in their layout only, such as parallel sizes,
 * micro-batch and recomputation, form a group. A user who asks for the best layout asks this.
 *
 * A group has the runs of one dataset with equal model, GPUs, global batch and precision whose step
 * time is measured and predicted; at least CS_GROUP_LEAST of them. Of each group:
 *
 * - Kendall's tau: of the pairs of runs that differ in both times, the share that is predicted in
 *   the right order less the share in the wrong order; 1 is perfect, 0 is chance.
 * - The loss (regret) of a choice: its measured time over the best measured time, less 1. The
 *   choice of the predictions is the run with the least predicted time.
 * - The rule of thumb, for comparison: no recomputation, then the least tensor x pipeline, then the
 *   largest micro-batch. Runs that it cannot tell apart have equal ranks, and it chooses the first.
 *
 * A group has no tau, and is left out, if no two of its runs differ in both times.
 */
#ifndef CS_VALIDATE_LAYOUT_GROUPS_H
#define CS_VALIDATE_LAYOUT_GROUPS_H

#include "sim/study/validate/predict.h"

enum { CS_GROUP_LEAST = 4 };

/* A choice is near the best if its loss is at most this. */
static const double cs_group_near = 0.05;

typedef enum cs_chooser { CS_CHOOSER_PREDICTION, CS_CHOOSER_RULE, CS_N_CHOOSERS } cs_chooser;

typedef struct cs_layout_group {
    const cs_prediction *best; /* least measured time */
    uint32_t n;                /* runs */
    const cs_prediction *choice[CS_N_CHOOSERS];
    double tau[CS_N_CHOOSERS]; /* 0 for the rule if it distinguishes no runs that differ in time */
    double loss[CS_N_CHOOSERS];
} cs_layout_group;

/* Means over groups. */
typedef struct cs_ranking {
    const char *dataset; /* "" of all */
    uint32_t n_groups, n_runs;
    double tau[CS_N_CHOOSERS], loss[CS_N_CHOOSERS];
    double near[CS_N_CHOOSERS]; /* share of groups whose choice is near the best */
} cs_ranking;

typedef struct cs_layout_groups {
    uint32_t n, capacity;
    cs_layout_group *groups; /* sorted by dataset, model and so on */
    uint32_t n_rankings, cap_rankings;
    cs_ranking *rankings; /* all; then each dataset with a group. None without groups */
} cs_layout_groups;

/* Zeroed groups can be finished. */
void cs_layout_groups_finish(cs_layout_groups *groups);

/* The predictions must live as long. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_layout_groups_make(const cs_predictions *predictions,
                                              cs_layout_groups *groups, cs_error *error);

#endif
