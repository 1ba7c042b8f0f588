/* Local search among allocations: moves to a smaller period, or to the same period with more even
 * loads, until no move improves. A move shifts a boundary, moves a stage to another device,
 * exchanges the devices of two stages, or splits a stage and moves one part.
 *
 * The number of allocations examined is limited, not the time, so the result does not depend on the
 * machine.
 */
#ifndef CS_SCHEDULES_LOCAL_SEARCH_H
#define CS_SCHEDULES_LOCAL_SEARCH_H

#include "schedules/plan/plan-search.h"

#include <gsl/gsl_rng.h>

typedef struct cs_local_options {
    uint32_t programs; /* integer programs per step of cs_local_from_best */
    uint32_t nodes;    /* limit of the search tree of each integer program */
} cs_local_options;

typedef struct cs_local {
    cs_local_options options;
    cs_plan_search search;    /* current descent; settings for the next descents are in `all` */
    cs_plan_search all;       /* the best of all descents */
    cs_time bound;            /* lower bound of the chain; a descent ends at this period */
    uint64_t left;            /* allocations that may still be examined */
    cs_allocation now, trial; /* current and tried allocation; each has room for n_layers stages */
    cs_allocation least;      /* allocation that needs all.need bytes */
    double spread;            /* spread of the loads in `now` */
    struct cs_local_move *moves;
    size_t n_moves;
    gsl_rng *rng;
    cs_arena arena;
} cs_local;

/* Creates a search; cs_local_finish is allowed on a zeroed struct. `chain` must outlive the
 * search. */
CS_MUST_CHECK cs_status cs_local_init(cs_local *local, const cs_chain *chain, cs_error *error);
void cs_local_finish(cs_local *local);

/* Restarts with another memory, or another chain of the same size. Forgets the best plan; `tries`
 * allocations may be examined. */
void cs_local_restart(cs_local *local, const cs_chain *chain, uint64_t tries);

/* Start a descent from: a plan; a plan with a valid pattern; the best plan after two random moves;
 * the best plan, with integer programs where constructed patterns do not improve. The last two need
 * a best plan. */
CS_MUST_CHECK cs_status cs_local_from(cs_local *local, const cs_plan *plan, cs_error *error);
CS_MUST_CHECK cs_status cs_local_from_planned(cs_local *local, const cs_planned *planned,
                                              cs_error *error);
CS_MUST_CHECK cs_status cs_local_from_kick(cs_local *local, cs_error *error);
CS_MUST_CHECK cs_status cs_local_from_best(cs_local *local, cs_error *error);

/* Whether the bound has been reached or no more allocations may be examined. */
bool cs_local_done(const cs_local *local);

#endif
