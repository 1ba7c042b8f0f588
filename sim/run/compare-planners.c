#include "sim/run/compare-planners.h"

#include "sim/base/time.h"

#include <stdlib.h>

void cs_comparison_finish(cs_comparison *comparison)
{
    for (uint32_t i = 0; i < comparison->n; i++)
        cs_planned_finish(&comparison->outcomes[i].planned);
    cs_chain_finish(&comparison->chain);
    cs_scenario_finish(&comparison->scenario);
    cs_arena_finish(&comparison->arena);
    *comparison = (cs_comparison){0};
}

static cs_status take_planners(cs_comparison *c, const cs_comparison_request *request,
                               cs_error *error)
{
    const cs_json_place place = {.file = request->params_file};
    cs_status status = CS_OK;
    c->outcomes = cs_arena_alloc(&c->arena, request->n, sizeof(*c->outcomes));
    if (!c->outcomes)
        return cs_error_no_memory(error);
    for (; c->n < request->n && status == CS_OK; c->n++) {
        const cs_planner_choice *choice = &request->choices[c->n];
        cs_planner_outcome *outcome = &c->outcomes[c->n];
        outcome->planner = choice->planner;
        outcome->error = cs_arena_alloc(&c->arena, 1, sizeof(*outcome->error));
        if (!outcome->error)
            return cs_error_no_memory(error);
        cs_error_init(outcome->error);
        status = cs_planner_read_params(choice->planner, choice->params, &place, false, &c->arena,
                                        &c->rules, &outcome->params, error);
    }
    return status == CS_INVALID ? CS_USAGE : status;
}

/* ---- the search ---- */

/* Finds the largest workspace of the layers on a device, which a run sets aside. */
static cs_status workspace_of(const cs_comparison *c, const cs_plan *plan, uint32_t device,
                              int64_t *bytes, cs_error *error)
{
    cs_status status = CS_OK;
    *bytes = 0;
    for (uint32_t s = 0; s < plan->n_stages && status == CS_OK; s++) {
        const cs_stage *stage = &plan->stages[s];
        cs_layer_sum sum = {0};
        if (plan->devices[stage->first_device] == device)
            status = cs_model_sum(c->scenario.model, stage->first_layer, stage->end_layer,
                                  c->scenario.job.micro_samples, &sum, error);
        *bytes = sum.workspace_bytes > *bytes ? sum.workspace_bytes : *bytes;
    }
    return status;
}

/* Only unexpected errors end the comparison. A planner that finds no plan, or does not support the
 * chain, is a result. */
static cs_status run_planner(cs_comparison *c, cs_planner_outcome *outcome, cs_error *error)
{
    outcome->uses = cs_arena_alloc(&c->arena, c->chain.n_devices, sizeof(*outcome->uses));
    if (!outcome->uses)
        return cs_error_no_memory(error);
    double start = cs_clock_seconds();
    outcome->status = cs_planner_run(outcome->planner, &c->chain, outcome->params,
                                     &outcome->planned, outcome->uses, outcome->error);
    outcome->search_time = cs_clock_seconds() - start;
    if (outcome->planned.bound > c->bound)
        c->bound = outcome->planned.bound;
    if (outcome->status == CS_OK || outcome->status == CS_LIMIT || outcome->status == CS_INVALID)
        return CS_OK;
    return cs_error_add(error, outcome->status, "%s: %s", outcome->planner->name,
                        outcome->error->text);
}

/* Plans with a pattern are preferred. */
static cs_time period_of(const cs_planner_outcome *outcome)
{
    return outcome->planned.pattern.period > 0 ? outcome->planned.pattern.period : CS_TIME_MAX;
}

cs_status cs_comparison_verdict(const cs_comparison *c, cs_error *error)
{
    if (c->best < c->n)
        return CS_OK;
    cs_status status = CS_INVALID;
    for (uint32_t i = 0; i < c->n; i++) {
        const cs_planner_outcome *one = &c->outcomes[i];
        status = one->status == CS_LIMIT ? CS_LIMIT : status;
        cs_error_add(error, one->status, "%s: %s", one->planner->name, one->error->text);
    }
    return status;
}

static cs_status compare(cs_comparison *c, const cs_comparison_request *request, cs_error *error)
{
    const cs_json_place root = {.file = request->file};
    c->rules = cs_scenario_chain_rules(&c->scenario);
    CS_TRY(take_planners(c, request, error));
    CS_TRY(cs_scenario_chain(&c->scenario.job, &root, &c->rules, &c->chain, error));
    c->bound = cs_planner_bound(&c->chain);
    c->chain.progress = request->progress;
    for (uint32_t i = 0; i < c->n; i++) {
        CS_TRY(run_planner(c, &c->outcomes[i], error));
        /* Add workspaces to the peaks of devices. The chain's memory excluded them. */
        cs_planner_outcome *outcome = &c->outcomes[i];
        const cs_planned *planned = &outcome->planned;
        cs_status status = CS_OK;
        int64_t bytes;
        if (outcome->status == CS_OK && planned->pattern.period != 0 && c->rules.count_workspace) {
            for (uint32_t d = 0; d < c->chain.n_devices && status == CS_OK; d++) {
                int64_t *peak = &outcome->uses[d].peak;
                status = workspace_of(c, &planned->plan, d, &bytes, error);
                if (status == CS_OK && __builtin_add_overflow(*peak, bytes, peak))
                    status =
                        cs_error_add(error, CS_OVERFLOW, "%s: device %u holds more than 2^63 bytes",
                                     outcome->planner->name, d);
            }
            CS_TRY(status);
        }
    }
    c->best = c->n;
    for (uint32_t i = 0; i < c->n; i++) {
        const cs_planner_outcome *one = &c->outcomes[i];
        if (one->status == CS_OK &&
            (c->best == c->n || period_of(one) < period_of(&c->outcomes[c->best])))
            c->best = i;
    }
    return CS_OK;
}

cs_status cs_comparison_make(const cs_comparison_request *request, cs_comparison *comparison,
                             cs_error *error)
{
    cs_comparison made = {0};
    cs_arena_init(&made.arena);
    cs_status status =
        cs_scenario_read_unplanned(request->document, request->file, &made.scenario, error);
    if (status == CS_OK)
        status = compare(&made, request, error);
    if (status == CS_OK)
        *comparison = made;
    else
        cs_comparison_finish(&made);
    return status;
}

cJSON *cs_comparison_plan_json(const cs_comparison *comparison, uint32_t i, cs_error *error)
{
    const cs_planned *planned = &comparison->outcomes[i].planned;
    cJSON *root = cs_plan_json(&planned->plan, comparison->scenario.model);
    if (root && (planned->pattern.period == 0 ||
                 cs_pattern_add_json(root, &planned->plan, &planned->pattern, error) == CS_OK))
        return root;
    cJSON_Delete(root);
    return NULL;
}
