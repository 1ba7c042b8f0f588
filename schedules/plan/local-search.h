/* Local search among allocations: from one to a smaller period, or to the same one with more even
 * loads, until no move leads on. A move shifts a boundary, gives a stage to another device,
 * exchanges the devices of two stages, or splits a stage and gives one part away.
 *
 * How long it takes is limited by the number of allocations that are looked at, so that what is
 * found does not depend on the machine.
 */
#ifndef CS_SCHEDULES_LOCAL_SEARCH_H
#define CS_SCHEDULES_LOCAL_SEARCH_H

#include "schedules/plan/plan-search.h"

#include <gsl/gsl_rng.h>

typedef struct cs_local_options {
    uint32_t programs; /* integer programs in a step, of cs_local_from_best */
    uint32_t nodes;    /* of the search tree of each */
} cs_local_options;

typedef struct cs_local {
    cs_local_options options;
    cs_plan_search search;    /* of the present descent; settings for the next ones are in `all` */
    cs_plan_search all;       /* the best of all descents */
    cs_time bound;            /* of the chain; at this period a descent ends */
    uint64_t left;            /* allocations that may still be looked at */
    cs_allocation now, trial; /* room for n_layers stages */
    cs_allocation least;      /* that all.need is of */
    double spread;            /* of `now` */
    struct cs_local_move *moves;
    size_t n_moves;
    gsl_rng *rng;
    cs_arena arena;
} cs_local;

/* Zeroed ones can be finished. `chain` must live on. */
CS_MUST_CHECK cs_status cs_local_init(cs_local *local, const cs_chain *chain, cs_error *error);
void cs_local_finish(cs_local *local);

/* Begins anew with another memory or chain of the same size: there is no best plan any more, and
 * `tries` allocations may be looked at. */
void cs_local_restart(cs_local *local, const cs_chain *chain, uint64_t tries);

/* Descends from a plan; a plan with a valid pattern; two random moves away from the best plan;
 * the best plan, with integer programs where constructed patterns do not lead on. The latter two
 * need a best plan. */
CS_MUST_CHECK cs_status cs_local_from(cs_local *local, const cs_plan *plan, cs_error *error);
CS_MUST_CHECK cs_status cs_local_from_planned(cs_local *local, const cs_planned *planned,
                                              cs_error *error);
CS_MUST_CHECK cs_status cs_local_from_kick(cs_local *local, cs_error *error);
CS_MUST_CHECK cs_status cs_local_from_best(cs_local *local, cs_error *error);

/* The bound has been reached, or nothing more may be looked at. */
bool cs_local_done(const cs_local *local);

#endif
