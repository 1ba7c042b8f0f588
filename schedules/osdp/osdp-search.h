/* Finds the fastest plan of an OSDP menu within the memory limit, and the batch that trains the
 * most samples per second.
 *
 * For one batch this is a knapsack with several choices per operator (if the largest surge counts,
 * that surge is chosen too), which is NP-hard. Two searches:
 *
 *   depth-first  The paper's algorithm 1. Operators in order, options in the menu's order, and two
 *                prunings: the memory of the decided operators exceeds the limit, or their time
 *                reaches the best plan's. Exponential in the operators, because it does not use a
 *                lower bound of the open operators.
 *   exact        Dynamic programming with bounds, in whole bytes and picoseconds. The states of
 *                each operator are pairs of memory and time, none better in both. A state is
 *                dropped if its linear relaxation (the lower convex hull of every open operator's
 *                options, the steepest first) cannot beat the best plan; the whole part of each
 *                relaxation is a plan itself. O(n o s log h) with o options, h hull edges and s
 *                states, at most as many as the limit has bytes; equal operators lead to equal
 *                states. If the largest surge counts, it runs once for each possible surge.
 *
 * Both find the smallest time, so they agree whenever the depth-first search finishes.
 */
#ifndef CS_SCHEDULES_OSDP_SEARCH_H
#define CS_SCHEDULES_OSDP_SEARCH_H

#include "schedules/osdp/osdp-cost.h"
#include "sim/base/progress.h"

/* Result of a search. */
typedef struct cs_osdp_plan {
    bool found;
    bool complete;  /* whether the search finished: no plan is better, or none exists */
    uint32_t batch; /* samples per device */
    cs_osdp_cost cost;
    cs_osdp_choice *choices; /* choice of each operator */
    uint64_t visited;        /* states of the exact search, or nodes of the depth-first search */
} cs_osdp_plan;

/* Kind and limit of a search. */
typedef struct cs_osdp_search {
    bool depth_first;
    uint64_t most_visits; /* limit for the depth-first search of one batch; 0: unlimited */
    const cs_progress *progress;
} cs_osdp_search;

/* Finds the fastest plan below `bound` within the memory limit. The choices are in the arena.
 * Errors: CS_INTERRUPTED, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_osdp_find(const cs_osdp_menu *menu, const cs_osdp_search *search,
                                     cs_time bound, cs_arena *arena, cs_osdp_plan *plan,
                                     cs_error *error);

/* The same for a model with `batch` samples per device. */
CS_MUST_CHECK cs_status cs_osdp_find_at(const cs_osdp_model *model, const cs_osdp_rules *rules,
                                        uint32_t batch, const cs_osdp_search *search,
                                        cs_arena *arena, cs_osdp_plan *plan, cs_error *error);

/* Finds the plan and batch with the most samples per second, for batches up to `most`. Of equally
 * fast batches, the depth-first search returns the smallest and the exact search the largest. The
 * depth-first search tries batches 1, 2, ... until nothing fits, like algorithm 1. The exact search
 * starts with the largest batch that fits and skips batches that a lower bound of the time per
 * sample rules out. */
CS_MUST_CHECK cs_status cs_osdp_find_batch(const cs_osdp_model *model, const cs_osdp_rules *rules,
                                           uint32_t most, const cs_osdp_search *search,
                                           cs_arena *arena, cs_osdp_plan *plan, cs_error *error);

/* Internal: the two searches. */
CS_MUST_CHECK cs_status cs_osdp_search_exactly(const cs_osdp_menu *menu,
                                               const cs_progress *progress, cs_time bound,
                                               cs_osdp_plan *plan, cs_error *error);
CS_MUST_CHECK cs_status cs_osdp_search_depth_first(const cs_osdp_menu *menu,
                                                   const cs_osdp_search *search, cs_time bound,
                                                   cs_osdp_plan *plan, cs_error *error);

#endif
