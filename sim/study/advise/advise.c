#include "sim/study/advise/advise.h"

#include "sim/base/time.h"
#include "sim/study/advise/osdp-candidates.h"
#include "sim/study/advise/search.h"

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

/* Searches, then examines the plans found; repeats both while the budget has time left. */
static cs_status lead(const cs_advise_options *options, double start, cs_advice *advice,
                      cs_error *error)
{
    const bool limited = options->budget > 0;
    const double until = limited ? start + options->budget : (double)INFINITY;
    const double enough = start + 0.97 * options->budget;
    cs_advise_search *search = NULL;
    advice->outcomes = calloc(advice->candidates.n + 1ULL, sizeof(*advice->outcomes));
    if (!advice->outcomes)
        return cs_error_no_memory(error);
    cs_status status = cs_advise_search_create(options, advice, &search, error);
    if (status == CS_OK)
        status = cs_advise_own(options, until, advice, error);
    bool again = false;
    do {
        if (status == CS_OK && !advice->interrupted)
            status = cs_advise_search_run(search, until, error);
        if (status == CS_OK)
            status = cs_advise_rank(options, advice, error);
        if (status == CS_OK && !advice->interrupted)
            status = cs_advise_examine(options, until, advice, error);
        again = limited && advice->cut && cs_clock_seconds() < enough;
    } while (status == CS_OK && !advice->interrupted && again);
    cs_advise_search_destroy(search);
    count_states(advice);
    return status;
}

static cs_status advise(const cJSON *document, const char *path, const cs_advise_options *options,
                        cs_advice *advice, cs_error *error)
{
    const double start = cs_clock_seconds();
    CS_TRY(cs_advise_base_read(document, path, &advice->arena, &advice->base, error));
    CS_TRY(cs_candidates_make(&advice->base, &advice->candidates, error));
    CS_TRY(cs_advise_identify(options, advice, error));
    CS_TRY(cs_bounds_begin(&advice->base, &advice->candidates, &advice->bounds, error));
    if (!cs_team_helps(options->team))
        return lead(options, start, advice, error);
    CS_TRY(cs_osdp_candidates_add(&advice->base, &advice->bounds, options->progress,
                                  &advice->candidates, error));
    CS_TRY(cs_bounds_extend(&advice->candidates, &advice->bounds, error));
    CS_TRY(cs_advise_help_search(options, advice, error));
    return cs_advise_examine(options, (double)INFINITY, advice, error);
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
