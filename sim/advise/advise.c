#include "sim/advise/advise.h"

#include "sim/advise/osdp-candidates.h"
#include "sim/advise/search.h"
#include "sim/base/time.h"

#include <math.h>
#include <stdlib.h>

const char *const cs_candidate_state_names[] = {"open",      "simulated",  "over", "slower",
                                                "too large", "impossible", NULL};

void cs_advice_finish(cs_advice *advice)
{
    cs_candidates_finish(&advice->candidates);
    cs_bounds_finish(&advice->bounds);
    free(advice->outcomes);
    free(advice->rows);
    cs_arena_finish(&advice->arena);
    *advice = (cs_advice){0};
}

double cs_advice_cost(const cs_advice *advice, uint32_t candidate)
{
    return advice->base.section.device_price / 3600 * advice->candidates.items[candidate].devices *
           advice->outcomes[candidate].step.time;
}

static void count_states(cs_advice *advice)
{
    for (uint32_t i = 0; i < advice->candidates.n; i++)
        advice->n_states[advice->outcomes[i].state]++;
}

/* Without bounds nothing can be searched: a budget that ends before they are there is too short. */
static cs_status find_bounds(const cs_advise_options *options, double until, cs_advice *advice,
                             cs_error *error)
{
    cs_timed_progress timed = {.inner = options->progress, .deadline = until};
    const cs_progress progress = cs_timed_progress_of(&timed);
    cs_error why;
    cs_error_init(&why);
    const cs_status status = cs_bounds_find(&advice->base, &advice->candidates, options->jobs,
                                            options->team, &progress, &advice->bounds, &why);
    if (status == CS_INTERRUPTED && timed.late)
        return cs_error_add(error, CS_LIMIT,
                            "%s: the budget ended before the first plan was simulated: %u plans "
                            "are too many for it; give it more time, or narrow the search "
                            "(/advise)",
                            advice->base.path, advice->candidates.n);
    if (status != CS_OK)
        cs_error_add_all(error, &why);
    return status;
}

static cs_status advise(const cJSON *document, const char *path, const cs_advise_options *options,
                        cs_advice *advice, cs_error *error)
{
    const bool limited = options->budget > 0;
    const double start = cs_clock_seconds();
    const double search_until =
        limited ? start + CS_ADVISE_SEARCH_SHARE * options->budget : (double)INFINITY;
    const double until = limited ? start + options->budget : (double)INFINITY;
    CS_TRY(cs_advise_base_read(document, path, &advice->arena, &advice->base, error));
    CS_TRY(cs_candidates_make(&advice->base, &advice->candidates, error));
    CS_TRY(cs_osdp_candidates_add(&advice->base, options->progress, &advice->candidates, error));
    CS_TRY(cs_advise_identify(options, advice, error));
    CS_TRY(find_bounds(options, search_until, advice, error));
    if (cs_team_helps(options->team)) {
        CS_TRY(cs_advise_help_search(options, advice, error));
        return cs_advise_examine(options, until, advice, error);
    }
    advice->outcomes = calloc(advice->candidates.n + 1ULL, sizeof(*advice->outcomes));
    if (!advice->outcomes)
        return cs_error_no_memory(error);
    CS_TRY(cs_advise_search(options, search_until, advice, error));
    count_states(advice);
    CS_TRY(cs_advise_rank(options, advice, error));
    if (!advice->interrupted)
        CS_TRY(cs_advise_own(options, advice, error));
    return advice->interrupted ? CS_OK : cs_advise_examine(options, until, advice, error);
}

cs_status cs_advise(const cJSON *document, const char *path, const cs_advise_options *options,
                    cs_advice *advice, cs_error *error)
{
    cs_advice made = {.misfit = {.candidate = CS_NO_CANDIDATE}};
    cs_arena_init(&made.arena);
    const cs_status status = advise(document, path, options, &made, error);
    if (status == CS_OK)
        *advice = made;
    else
        cs_advice_finish(&made);
    return status;
}
