/* The search for plans: which of the candidates is fastest, and which are worth their memory.
 *
 * Candidates are simulated in order of their lower bounds on time (bounds.h), in rounds of up to
 * CS_ADVISE_ROUND, each in threads. Bounds are rough until a candidate's turn comes; then it is
 * priced, and waits for its turn by the better bound. Before a round, and never within one,
 * candidates are left out that cannot be an answer:
 *   - those that cannot fit: their bound on memory is above the largest capacity;
 *   - those that cannot be better than what was found. Answers are the `top` fastest plans that fit
 *     and differ (cs_candidates_are_alike; with `all`, whatever plans);
 *     the front of time against memory, as far as its plans take up to section.front times as long as the
 *     best; and the fastest plan of each strategy on each number of devices. A candidate is left out when
 *     its bound on time is above the slowest of the `top`, above the best of its strategy and devices, and
 *     above the end of the front, or a plan was found that takes no more time than its bound on time and no
 *     more memory than its bound on memory.
 * Unless the number of simulations is limited, a few candidates that need little memory are simulated
 * first, until one fits. As soon as models have prices, while bounds are still made, the candidates
 * that promise most by a rule of thumb (promise.h), for several parts of the memory: so the best plan
 * so far is a good one early. OSDP's plans, which take long to make, come after all others.
 * Of those that cannot fit, at the end those are simulated whose bound on time is below all times
 * that were found, until there are none: what more memory would be worth. So the answers are those
 * of simulating all candidates, whatever the number of threads; with a budget that ran out, those
 * of the candidates that were simulated until then. A budget is used to its end: the search stops
 * when only enough time is left to examine the rows, and goes on if they took less.
 *
 * Plans of the top are then simulated in full, for where their time goes, and again with links and
 * devices that are faster and slower than described.
 */
#ifndef CS_ADVISE_ADVISE_H
#define CS_ADVISE_ADVISE_H

#include "sim/study/advise/bounds.h"
#include "sim/study/advise/limits.h"
#include "sim/study/team/team.h"

/* Of the fastest rows that are estimated so many are simulated with every device as well, as long as
 * these have in all no more tasks than that. */
enum { CS_ADVISE_EACH = 3, CS_ADVISE_EACH_TASKS = 50000000 };

enum { CS_ADVISE_ROUND = 64, CS_ADVISE_TOP = 10, CS_ADVISE_TOP_MAX = 1000 }; /* TOP: if not said */

typedef enum cs_candidate_state {
    CS_CANDIDATE_OPEN,       /* not looked at: the search was cut */
    CS_CANDIDATE_SIMULATED,  /* and fits */
    CS_CANDIDATE_OVER,       /* simulated, and does not fit */
    CS_CANDIDATE_SLOWER,     /* left out: cannot be an answer */
    CS_CANDIDATE_TOO_LARGE,  /* left out: cannot fit, nor be the fastest that does not */
    CS_CANDIDATE_IMPOSSIBLE, /* the model, the schedule or the platform refuses it */
    CS_N_CANDIDATE_STATES
} cs_candidate_state;

/* For results, ended by NULL: "open", "simulated", ... */
extern const char *const cs_candidate_state_names[];

typedef struct cs_candidate_outcome {
    cs_candidate_state state;
    cs_step step; /* of what was simulated */
    bool answer;  /* one of the answers: top, front or best of its strategy */
    bool front;
} cs_candidate_outcome;

/* What a plan is when links or devices are not as described. */
typedef enum cs_advise_doubt {
    CS_LESS_BANDWIDTH, /* all links at 0.9 of it */
    CS_MORE_BANDWIDTH, /* 1.1 */
    CS_LESS_SPEED,     /* all devices */
    CS_MORE_SPEED,
    CS_N_DOUBTS
} cs_advise_doubt;

/* One of the plans that are shown. */
typedef struct cs_advice_row {
    uint32_t candidate;
    uint32_t n_examined;
    bool complete;  /* what follows is known */
    bool estimated; /* one device is simulated for several that differ ("fold": "slowest") */
    cs_limits limits;
    cs_step each;                /* with every device simulated; time 0: it was not tried */
    double times[CS_N_DOUBTS];   /* s */
    uint32_t ranks[CS_N_DOUBTS]; /* among the rows, from 1 */
} cs_advice_row;

typedef struct cs_advice {
    cs_advise_base base;
    cs_candidates candidates;
    cs_bounds bounds;
    cs_candidate_outcome *outcomes; /* per candidate */
    uint32_t n_states[CS_N_CANDIDATE_STATES];
    uint32_t n_rows;
    cs_advice_row *rows;  /* the fastest plans that fit, the best first */
    cs_advice_row misfit; /* the fastest plan that does not fit, if it is faster than all that do;
                           * candidate CS_NO_CANDIDATE: there is none */
    cs_step own;          /* the scenario's own plan; time 0: not known */
    const char *own_refusal; /* why it is impossible; or NULL */
    const char *refusal;     /* why the first impossible candidate is so; or NULL */
    const char *cut;         /* why the search ended early, in a few words; NULL: it did not */
    bool interrupted;
    cs_arena arena;
} cs_advice;

typedef struct cs_advise_options {
    uint32_t jobs, top;
    double budget; /* s, of all; 0: none */
    uint32_t
        most; /* candidates to simulate; 0: no limit. Unlike a budget it never looks at a clock */
    bool exhaustive;     /* nothing is left out */
    bool all;            /* rows are plans, be they ever so alike */
    const char *journal; /* path; NULL: none */
    bool resume;
    const char *program_version; /* for the journal */
    const cs_progress *progress;
    cs_team *team; /* of processes that share the work; NULL: this one is alone */
} cs_advise_options;

void cs_advice_finish(cs_advice *advice);

/* The document must live as long as the advice, and name the runtime that all plans share
 * (cs_runtime_assume does) unless the model has its own times. CS_OK also when the budget ran out, or `progress`
 * asked to stop (`interrupted`): then rows need not be complete. CS_INVALID for the scenario,
 * CS_LIMIT, CS_IO, CS_NO_MEMORY. A process that helps others gets no outcomes. */
CS_MUST_CHECK cs_status cs_advise(const cJSON *document, const char *path,
                                  const cs_advise_options *options, cs_advice *advice,
                                  cs_error *error);

/* Seconds that a plan's devices cost: of a price per hour; NaN without one. */
double cs_advice_cost(const cs_advice *advice, uint32_t candidate);

/* Whether they differ in details alone: schedule, stages of a device, samples of a micro-batch,
 * which axis is the inner one, buckets. */
bool cs_candidates_are_alike(const cs_candidate *a, const cs_candidate *b);

/* Whether the candidates are of one strategy on one number of devices. */
bool cs_candidates_compete(const cs_candidate *a, const cs_candidate *b);

#endif
