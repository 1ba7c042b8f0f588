/* The steps of a search for plans (advise.h). Internal to sim/advise. */
#ifndef CS_ADVISE_SEARCH_H
#define CS_ADVISE_SEARCH_H

#include "sim/advise/advise.h"

/* Tells the team what is searched. */
CS_MUST_CHECK cs_status cs_advise_identify(const cs_advise_options *options,
                                           const cs_advice *advice, cs_error *error);

/* Simulates candidates for another process. */
CS_MUST_CHECK cs_status cs_advise_help_search(const cs_advise_options *options, cs_advice *advice,
                                              cs_error *error);

/* Simulates candidates, or leaves them out, until none is open, the budget is used or it is asked
 * to stop. */
CS_MUST_CHECK cs_status cs_advise_search(const cs_advise_options *options, cs_advice *advice,
                                         cs_error *error);

/* Marks answers and the front; lists the rows, and finds the misfit. */
CS_MUST_CHECK cs_status cs_advise_rank(const cs_advise_options *options, cs_advice *advice,
                                       cs_error *error);

/* Simulates the scenario's own plan; of one that cannot be simulated nothing is known. */
CS_MUST_CHECK cs_status cs_advise_own(const cs_advise_options *options, cs_advice *advice,
                                      cs_error *error);

/* Completes rows and misfit, those of another process where this one helps. What is interrupted
 * stays incomplete. */
CS_MUST_CHECK cs_status cs_advise_examine(const cs_advise_options *options, cs_advice *advice,
                                          cs_error *error);

typedef struct cs_found {
    double time; /* s */
    uint32_t candidate;
} cs_found;

/* The plans that fit so far, the fastest first, equals by number: what candidates have to beat. */
typedef struct cs_standing {
    uint32_t n;
    cs_found *plans; /* the caller's, to free */
} cs_standing;

CS_MUST_CHECK cs_status cs_standing_make(const cs_advice *advice, cs_standing *standing,
                                         cs_error *error);

/* Whether a candidate may still be an answer (advise.h). */
bool cs_advise_may_answer(const cs_advice *advice, const cs_standing *standing, uint32_t top,
                          uint32_t candidate);

#endif
