/* The search for plans: which of the candidates is fastest, and which are worth their memory.
 *
 * Candidates are simulated in order of their lower bounds on time (bounds.h), in rounds of up to
 * CS_ADVISE_ROUND candidates, each round in several threads. Bounds are rough until a candidate's
 * turn comes; then it is priced, and waits for its turn by the better bound. Before a round, and
 * never within one, candidates are pruned that cannot be an answer:
 *   - those that cannot fit: their bound on memory exceeds the largest capacity;
 *   - those that cannot be better than the known plans.
 * The answers are the `top` fastest plans that fit and differ (cs_candidates_are_alike; with `all`,
 * similar plans too); the front of time against memory, up to section.front times the best time;
 * and the fastest plan of each strategy on each number of devices. So a candidate is pruned if its
 * bound on time exceeds the slowest plan of the `top`, the best plan of its strategy and devices,
 * and the end of the front; instead of the last, a known plan may take at most the candidate's
 * bound on time and at most its bound on memory.
 *
 * Unless the number of simulations is limited, a few candidates that need little memory are
 * simulated first, until one fits. As soon as models have prices, while bounds are still being
 * computed, the most promising candidates by a rule of thumb (promise.h) are simulated, for several
 * parts of the memory, so that a good plan is known early. OSDP's plans, which take long to make,
 * come after all others. At the end, candidates that cannot fit are simulated while their bound on
 * time is below all known times: this shows what more memory would gain.
 *
 * The answers are therefore the same as if all candidates were simulated, with any number of
 * threads. If a budget runs out, the answers come from the candidates simulated by then. A budget
 * is used up: the search stops when the remaining time is needed to examine the rows, and continues
 * if they took less.
 *
 * The plans of the top are then simulated in full, to see how they spend their time, and again with
 * links and devices that are faster and slower than described.
 */
#ifndef CS_ADVISE_ADVISE_H
#define CS_ADVISE_ADVISE_H

#include "sim/study/advise/bounds.h"
#include "sim/study/advise/limits.h"
#include "sim/study/team/team.h"

/* Number of estimated rows that are also simulated with every device, the fastest first, and the
 * largest total number of tasks for that. */
enum { CS_ADVISE_EACH = 3, CS_ADVISE_EACH_TASKS = 50000000 };

/* candidates per round; default and maximum number of rows */
enum { CS_ADVISE_ROUND = 64, CS_ADVISE_TOP = 10, CS_ADVISE_TOP_MAX = 1000 };

typedef enum cs_candidate_state {
    CS_CANDIDATE_OPEN,      /* not evaluated, because the search ended early */
    CS_CANDIDATE_SIMULATED, /* simulated, and fits */
    CS_CANDIDATE_OVER,      /* simulated, and does not fit */
    CS_CANDIDATE_SLOWER,    /* pruned: cannot be an answer */
    /* pruned: cannot fit, and cannot be the fastest plan that does not fit */
    CS_CANDIDATE_TOO_LARGE,
    CS_CANDIDATE_IMPOSSIBLE, /* rejected by the model, the schedule or the platform */
    CS_N_CANDIDATE_STATES
} cs_candidate_state;

/* Names of the states in results, NULL-terminated: "open", "simulated", ... */
extern const char *const cs_candidate_state_names[];

typedef struct cs_candidate_outcome {
    cs_candidate_state state;
    cs_step step; /* result, if the candidate was simulated */
    /* whether it is an answer: in the top, on the front, or the best of its strategy */
    bool answer;
    bool front;
} cs_candidate_outcome;

/* Deviations of links or devices from their description, for the sensitivity of a plan. */
typedef enum cs_advise_doubt {
    CS_LESS_BANDWIDTH, /* bandwidth of all links times 0.9 */
    CS_MORE_BANDWIDTH, /* bandwidth of all links times 1.1 */
    CS_LESS_SPEED,     /* speed of all devices times 0.9, then 1.1 */
    CS_MORE_SPEED,
    CS_N_DOUBTS
} cs_advise_doubt;

/* One of the plans shown, with the results of its examination. */
typedef struct cs_advice_row {
    uint32_t candidate;
    uint32_t n_examined;
    bool complete; /* whether the members below are known */
    /* whether one device is simulated for several unequal ones ("fold": "slowest") */
    bool estimated;
    cs_limits limits;
    cs_step each;                /* result with every device simulated; time 0: not tried */
    double times[CS_N_DOUBTS];   /* time of the step with each deviation, s */
    uint32_t ranks[CS_N_DOUBTS]; /* rank among the rows with each deviation, from 1 */
} cs_advice_row;

typedef struct cs_advice {
    cs_advise_base base;
    cs_candidates candidates;
    cs_bounds bounds;
    cs_candidate_outcome *outcomes; /* outcome of each candidate */
    uint32_t n_states[CS_N_CANDIDATE_STATES];
    uint32_t n_rows;
    cs_advice_row *rows; /* the fastest plans that fit, the best first */
    /* the fastest plan that does not fit, if it is faster than all plans that fit; candidate
     * CS_NO_CANDIDATE: there is none */
    cs_advice_row misfit;
    cs_step own; /* result of the scenario's own plan; time 0: unknown */
    /* reason why the scenario's own plan is impossible; NULL if it is possible */
    const char *own_refusal;
    /* reason why the first impossible candidate is impossible; NULL if there is none */
    const char *refusal;
    const char *cut; /* short reason why the search ended early; NULL: it did not */
    bool interrupted;
    cs_arena arena;
} cs_advice;

typedef struct cs_advise_options {
    uint32_t jobs, top;
    double budget; /* seconds for everything; 0: no budget */
    /* number of candidates to simulate; 0: no limit. Unlike a budget, this does not depend on a
     * clock */
    uint32_t most;
    bool exhaustive;     /* whether to simulate everything and prune nothing */
    bool all;            /* whether similar plans each get a row */
    const char *journal; /* path of the journal; NULL: none */
    bool resume;
    const char *program_version; /* version of the program, written to the journal */
    const cs_progress *progress;
    cs_team *team; /* processes that share the work; NULL: this process works alone */
} cs_advise_options;

void cs_advice_finish(cs_advice *advice);

/* Searches and examines plans. The document must outlive the advice, and must name the runtime that
 * all plans share (see cs_runtime_assume), unless the model has its own times. Returns CS_OK also
 * if the budget ran out or `progress` asked to stop (`interrupted`); rows may be incomplete then.
 * Errors: CS_INVALID for the scenario, CS_LIMIT, CS_IO, CS_NO_MEMORY. A process that helps another
 * gets no outcomes. */
CS_MUST_CHECK cs_status cs_advise(const cJSON *document, const char *path,
                                  const cs_advise_options *options, cs_advice *advice,
                                  cs_error *error);

/* Returns the cost of one step of a plan, from the price of its devices per hour; NaN without a
 * price. */
double cs_advice_cost(const cs_advice *advice, uint32_t candidate);

/* Whether two candidates differ only in details: schedule, stages per device, samples per
 * micro-batch, which axis is the inner one, buckets. */
bool cs_candidates_are_alike(const cs_candidate *a, const cs_candidate *b);

/* Whether two candidates have the same strategy on the same number of devices. */
bool cs_candidates_compete(const cs_candidate *a, const cs_candidate *b);

#endif
