/* The steps of a search for plans (advise.h). Internal to sim/study/advise. */
#ifndef CS_ADVISE_SEARCH_H
#define CS_ADVISE_SEARCH_H

#include "sim/study/advise/advise.h"

/* Tells the team what is searched. */
CS_MUST_CHECK cs_status cs_advise_identify(const cs_advise_options *options,
                                           const cs_advice *advice, cs_error *error);

/* Works for another process. */
CS_MUST_CHECK cs_status cs_advise_help_search(const cs_advise_options *options, cs_advice *advice,
                                              cs_error *error);

/* Creates a search, which the caller destroys. Options and advice must outlive it. */
typedef struct cs_advise_search cs_advise_search;
CS_MUST_CHECK cs_status cs_advise_search_create(const cs_advise_options *options, cs_advice *advice,
                                                cs_advise_search **made, cs_error *error);
void cs_advise_search_destroy(cs_advise_search *search);

/* Simulates candidates, or leaves them out, until none is open or it is asked to stop; or until
 * what is left until the deadline (s of cs_clock_seconds) is needed for examining what was found.
 * Then it can be run again. */
CS_MUST_CHECK cs_status cs_advise_search_run(cs_advise_search *search, double deadline,
                                             cs_error *error);

/* Marks answers and the front; lists the rows, and finds the misfit. Rows that are complete stay so. */
CS_MUST_CHECK cs_status cs_advise_rank(const cs_advise_options *options, cs_advice *advice,
                                       cs_error *error);

/* Simulates the scenario's own plan; of one that cannot be simulated, or not by the deadline, nothing
 * is known. */
CS_MUST_CHECK cs_status cs_advise_own(const cs_advise_options *options, double deadline,
                                      cs_advice *advice, cs_error *error);

/* Completes the rows and the misfit, or the leader's if this process helps. Rows that are interrupted,
 * or not done by the deadline, stay incomplete. */
CS_MUST_CHECK cs_status cs_advise_examine(const cs_advise_options *options, double deadline,
                                          cs_advice *advice, cs_error *error);

typedef struct cs_found {
    double time; /* s */
    uint32_t candidate;
} cs_found;

/* The plans that fit so far, the fastest first, equals by number: what candidates have to beat. */
typedef struct cs_standing {
    uint32_t n, n_rows;
    cs_found *plans; /* the caller's, to free */
    cs_found *rows;  /* of these the best that differ, up to the top; within `plans` */
} cs_standing;

CS_MUST_CHECK cs_status cs_standing_make(const cs_advise_options *options, const cs_advice *advice,
                                         cs_standing *standing, cs_error *error);

/* Whether a candidate may still be an answer (advise.h). */
bool cs_advise_may_answer(const cs_advice *advice, const cs_standing *standing, uint32_t top,
                          uint32_t candidate);

/* Progress that asks to stop as well once the clock is past `deadline` (s of cs_clock_seconds;
 * infinite: never). */
typedef struct cs_timed_progress {
    const cs_progress *inner;
    double deadline;
    bool late;
} cs_timed_progress;

cs_progress cs_timed_progress_of(cs_timed_progress *timed);

#endif
