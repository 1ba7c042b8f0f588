/* Search of planners that try one allocation after the other. */
#ifndef CS_SCHEDULES_PLAN_SEARCH_H
#define CS_SCHEDULES_PLAN_SEARCH_H

#include "schedules/plan/periodic-program.h"
#include "schedules/plan/planner.h"

/* An allocation: stage s holds layers [cuts[s], cuts[s + 1]) on device devices[s]. */
typedef struct cs_allocation {
    uint32_t n_stages;
    uint32_t *cuts;    /* [n_stages + 1], ascending from 0 to n_layers */
    uint32_t *devices; /* [n_stages]; may contain a device several times */
} cs_allocation;

/* The best plan for one amount of memory, among all plans that searches for other amounts find. */
typedef struct cs_plan_answer {
    const cs_chain *chain; /* chain with this amount of memory */
    cs_planned best;       /* best plan so far; period 0: none yet */
} cs_plan_answer;

typedef struct cs_plan_search {
    const cs_chain *chain;
    cs_program_options program; /* options for each allocation; `below` is the best period so far */
    cs_planned best;            /* best plan so far; period 0: none yet */
    bool proven;                /* whether all allocations so far have been solved or excluded */
    cs_plan_answer *answer;     /* gets every pattern that is made; NULL: nothing does */
    int64_t floor; /* bytes: the construction continues while its patterns need more than this, */
    cs_time known; /* and while the period to try is shorter than this */
    int64_t need;  /* bytes on the fullest device of the allocation that needs the least memory */
    uint32_t need_device;
} cs_plan_search;

void cs_plan_search_init(cs_plan_search *search, const cs_chain *chain);
void cs_plan_search_finish(cs_plan_search *search);

/* How hard to try: only the construction of 1F1B*, or the integer program too. */
typedef enum cs_plan_effort { CS_EFFORT_CONSTRUCT, CS_EFFORT_SOLVE } cs_plan_effort;

/* Copies plan and pattern if the pattern is valid with the answer's memory and better than its
 * best. `answer` may be NULL. */
CS_MUST_CHECK cs_status cs_plan_answer_offer(cs_plan_answer *answer, const cs_plan *plan,
                                             const cs_pattern *pattern, cs_error *error);

/* Tries an allocation. It becomes the best if it has a pattern with a smaller period, and `better`
 * is set. `better` is also set if no allocation has a pattern yet and this one needs the least
 * memory. */
CS_MUST_CHECK cs_status cs_plan_search_try(cs_plan_search *search, const cs_allocation *allocation,
                                           cs_plan_effort effort, bool *better, cs_error *error);

/* Offers a plan with a valid pattern to the search. Takes ownership of both in any case. */
CS_MUST_CHECK cs_status cs_plan_search_offer(cs_plan_search *search, cs_planned *planned,
                                             cs_error *error);

/* Whether there are few enough plans to try all of them within seconds: at most 528. */
bool cs_plan_search_has_few(const cs_chain *chain);

/* Tries all allocations, with integer programs. */
CS_MUST_CHECK cs_status cs_plan_search_try_all(cs_plan_search *search, cs_error *error);

/* Moves the best plan to `planned`, and adds the bound. CS_LIMIT if there is none: the message
 * names the device and the bytes of the allocation that needs the least memory. */
CS_MUST_CHECK cs_status cs_plan_search_result(cs_plan_search *search, cs_planned *planned,
                                              cs_error *error);

/* Makes the plan of an allocation. */
CS_MUST_CHECK cs_status cs_allocation_plan(const cs_allocation *allocation, cs_plan *plan,
                                           cs_error *error);

#endif
