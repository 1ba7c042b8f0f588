/* The steps of a search for plans (advise.h). Internal to sim/study/advise. */
#ifndef CS_ADVISE_SEARCH_H
#define CS_ADVISE_SEARCH_H

#include "sim/study/advise/advise.h"

/* Identifies the search to the team. */
CS_MUST_CHECK cs_status cs_advise_identify(const cs_advise_options *options,
                                           const cs_advice *advice, cs_error *error);

/* Works on the search of another process. */
CS_MUST_CHECK cs_status cs_advise_help_search(const cs_advise_options *options, cs_advice *advice,
                                              cs_error *error);

/* Creates a search, which the caller destroys. Options and advice must outlive it. */
typedef struct cs_advise_search cs_advise_search;
CS_MUST_CHECK cs_status cs_advise_search_create(const cs_advise_options *options, cs_advice *advice,
                                                cs_advise_search **made, cs_error *error);
void cs_advise_search_destroy(cs_advise_search *search);

/* Simulates or prunes candidates until none is open, the search is asked to stop, or the remaining
 * time until the deadline (s of cs_clock_seconds) is needed for examining the plans found. In the
 * last case it can be called again. */
CS_MUST_CHECK cs_status cs_advise_search_run(cs_advise_search *search, double deadline,
                                             cs_error *error);

/* Marks the answers and the front, lists the rows, and finds the misfit. Rows that are complete
 * stay complete. */
CS_MUST_CHECK cs_status cs_advise_rank(const cs_advise_options *options, cs_advice *advice,
                                       cs_error *error);

/* Simulates the scenario's own plan. Its result stays unknown if the plan cannot be simulated, or
 * not by the deadline. */
CS_MUST_CHECK cs_status cs_advise_own(const cs_advise_options *options, double deadline,
                                      cs_advice *advice, cs_error *error);

/* Completes the rows and the misfit, or the leader's if this process helps. Rows that are
 * interrupted or late stay incomplete. */
CS_MUST_CHECK cs_status cs_advise_examine(const cs_advise_options *options, double deadline,
                                          cs_advice *advice, cs_error *error);

typedef struct cs_found {
    double time; /* time of the step, s */
    uint32_t candidate;
} cs_found;

/* The plans that fit so far, the fastest first, ties by number: candidates have to beat them. */
typedef struct cs_standing {
    uint32_t n, n_rows;
    cs_found *plans; /* the plans; the caller frees them */
    /* the best different ones among `plans`, up to the top; part of the same allocation */
    cs_found *rows;
} cs_standing;

CS_MUST_CHECK cs_status cs_standing_make(const cs_advise_options *options, const cs_advice *advice,
                                         cs_standing *standing, cs_error *error);

/* Whether a candidate may still be an answer (advise.h). */
bool cs_advise_may_answer(const cs_advice *advice, const cs_standing *standing, uint32_t top,
                          uint32_t candidate);

/* Progress that also asks to stop when the clock is past `deadline` (s of cs_clock_seconds;
 * infinite: never). */
typedef struct cs_timed_progress {
    const cs_progress *inner;
    double deadline;
    bool late;
} cs_timed_progress;

cs_progress cs_timed_progress_of(cs_timed_progress *timed);

#endif
