/* The fastest plan of an OSDP menu that keeps the memory limit, and the batch that trains the most
 * samples per second.
 *
 * For one batch it is a knapsack with several choices per operator (and, of the largest surge, its
 * size chosen too), which is NP-hard; two searches find it:
 *
 *   depth-first  the paper's algorithm 1: operators in their order, the options of each in the
 *   menu's,
 *                and two prunings: the memory of what is decided exceeds the limit, or its time
 *                reaches that of the best plan so far. Exponential in the operators; it is not told
 *                what the operators that are still open need at least
 *   exact        dynamic programming with bounds, in whole bytes and picoseconds. States, one after
 *   the other
 *                for each operator, are pairs of memory and time of which none is better in both;
 *                those whose linear relaxation (the lower convex hull of every open operator's
 *                options, the steepest first) cannot beat the best plan so far are dropped, and the
 *                whole part of each relaxation is a plan itself. O(n o s log h) with o options, h
 *                hull edges and s states that are left, at most the limit's bytes; equal operators
 *                meet in equal states. With the largest surge it runs for each value that the surge
 *                can have
 *
 * Both find the least time, so they agree wherever the first ends.
 */
#ifndef CS_SCHEDULES_OSDP_SEARCH_H
#define CS_SCHEDULES_OSDP_SEARCH_H

#include "schedules/osdp/osdp-cost.h"
#include "sim/base/progress.h"

/* What a search found. */
typedef struct cs_osdp_plan {
    bool found;
    bool complete;  /* it ended by itself: there is no better plan, or none at all */
    uint32_t batch; /* samples a device */
    cs_osdp_cost cost;
    cs_osdp_choice *choices; /* per operator */
    uint64_t visited;        /* states of the exact search, or nodes of the depth-first one */
} cs_osdp_plan;

/* How a search is made. */
typedef struct cs_osdp_search {
    bool depth_first;
    uint64_t most_visits; /* of the depth-first search of one batch; 0: any number */
    const cs_progress *progress;
} cs_osdp_search;

/* The plan with the least time below `bound` that keeps the limit. The choices live in the arena.
 * CS_INTERRUPTED, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_osdp_find(const cs_osdp_menu *menu, const cs_osdp_search *search,
                                     cs_time bound, cs_arena *arena, cs_osdp_plan *plan,
                                     cs_error *error);

/* The same for `batch` samples a device of a model. */
CS_MUST_CHECK cs_status cs_osdp_find_at(const cs_osdp_model *model, const cs_osdp_rules *rules,
                                        uint32_t batch, const cs_osdp_search *search,
                                        cs_arena *arena, cs_osdp_plan *plan, cs_error *error);

/* The plan and batch with the most samples per second, of batches up to `most`; of equally fast
 * ones the smallest batch that the depth-first search meets, the largest that the exact one does.
 * The depth-first search takes batches 1, 2, ... until nothing fits, as algorithm 1 does; the exact
 * one starts from the largest that fits, and leaves out those which the bound of a smaller time per
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
