/* What the planners that try one allocation after the other have in common. */
#ifndef CS_SCHEDULES_PLAN_SEARCH_H
#define CS_SCHEDULES_PLAN_SEARCH_H

#include "schedules/plan/periodic-program.h"
#include "schedules/plan/planner.h"

/* An allocation: stage s holds layers [cuts[s], cuts[s + 1]) on device devices[s]. */
typedef struct cs_allocation {
    uint32_t n_stages;
    uint32_t *cuts;    /* [n_stages + 1], rising from 0 to n_layers */
    uint32_t *devices; /* [n_stages]; one device may stand here several times */
} cs_allocation;

/* The best plan for one memory, of what searches for other memories come across. */
typedef struct cs_plan_answer {
    const cs_chain *chain; /* with that memory */
    cs_planned best;       /* period 0: none yet */
} cs_plan_answer;

typedef struct cs_plan_search {
    const cs_chain *chain;
    cs_program_options program; /* of each allocation; `below` is the best one's period */
    cs_planned best;            /* period 0: none yet */
    bool proven;                /* each allocation so far has been solved or excluded */
    cs_plan_answer *answer;     /* gets every pattern that is made; NULL: there is none */
    int64_t floor; /* the construction goes on to patterns that need no more bytes than this, */
    cs_time known; /* or that have no smaller period than this */
    int64_t need;  /* bytes that the allocation which needs the least has on its fullest device */
    uint32_t need_device;
} cs_plan_search;

void cs_plan_search_init(cs_plan_search *search, const cs_chain *chain);
void cs_plan_search_finish(cs_plan_search *search);

/* How hard to try: only with the construction of 1F1B*, or with the integer program too. */
typedef enum cs_plan_effort { CS_EFFORT_CONSTRUCT, CS_EFFORT_SOLVE } cs_plan_effort;

/* Copies plan and pattern if the pattern is valid with the answer's memory and better than what it
 * has. `answer` may be NULL. */
CS_MUST_CHECK cs_status cs_plan_answer_offer(cs_plan_answer *answer, const cs_plan *plan,
                                             const cs_pattern *pattern, cs_error *error);

/* Takes the allocation as the best if it has a pattern with a smaller period, and says so in
 * `better`; also, while none has a pattern, if none had so low a need. */
CS_MUST_CHECK cs_status cs_plan_search_try(cs_plan_search *search, const cs_allocation *allocation,
                                           cs_plan_effort effort, bool *better, cs_error *error);

/* The same with a plan whose pattern is valid; takes both over in any case. */
CS_MUST_CHECK cs_status cs_plan_search_offer(cs_plan_search *search, cs_planned *planned,
                                             cs_error *error);

/* Whether there are so few plans that trying them all is a matter of seconds: at most 528 of
 * them. */
bool cs_plan_search_has_few(const cs_chain *chain);

/* Tries all allocations, with integer programs. */
CS_MUST_CHECK cs_status cs_plan_search_try_all(cs_plan_search *search, cs_error *error);

/* Hands the best one over, with the bound. CS_LIMIT when there is none: names the device and the
 * bytes of the allocation that needs the least. */
CS_MUST_CHECK cs_status cs_plan_search_result(cs_plan_search *search, cs_planned *planned,
                                              cs_error *error);

/* The plan of an allocation. */
CS_MUST_CHECK cs_status cs_allocation_plan(const cs_allocation *allocation, cs_plan *plan,
                                           cs_error *error);

#endif
