#include "sim/cli/compare-planners.h"

#include "sim/base/text.h"
#include "sim/cli/scenario-option.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const cs_json_place planners_place = {.file = "--planner"};
static const cs_json_place options_place = {.file = "--param"};

void cs_comparison_finish(cs_comparison *comparison)
{
    for (uint32_t i = 0; i < comparison->n; i++)
        cs_planned_finish(&comparison->outcomes[i].planned);
    cs_chain_finish(&comparison->chain);
    cs_scenario_finish(&comparison->scenario);
    cs_arena_finish(&comparison->arena);
    *comparison = (cs_comparison){0};
}

/* ---- which planners ---- */

static cs_status add_planner(cs_comparison *c, const cs_planner *planner, cs_error *error)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->outcomes[i].planner == planner)
            return CS_OK;
    }
    cs_planner_outcome *outcome = &c->outcomes[c->n];
    outcome->planner = planner;
    outcome->error = cs_arena_alloc(&c->arena, 1, sizeof(*outcome->error));
    if (!outcome->error)
        return cs_error_no_memory(error);
    cs_error_init(outcome->error);
    c->n++;
    return CS_OK;
}

static cs_status add_name(cs_comparison *c, const char *name, cs_error *error)
{
    const cs_planner *planner = cs_planner_find(name);
    cs_status status = CS_OK;
    if (planner)
        return add_planner(c, planner, error);
    if (strcmp(name, "all") != 0)
        return cs_planner_unknown(name, &planners_place, error) == CS_OK ? CS_OK : CS_USAGE;
    for (size_t i = 0; cs_planners[i] && status == CS_OK; i++)
        status = add_planner(c, cs_planners[i], error);
    return status;
}

/* Names with commas between them; "all" stands for all of them. */
static cs_status add_names(cs_comparison *c, const char *names, cs_error *error)
{
    cs_status status = CS_OK;
    for (const char *name = names; name && status == CS_OK;) {
        size_t length = strcspn(name, ",");
        const char *copy = cs_arena_copy_length(&c->arena, name, length);
        if (!copy)
            return cs_error_no_memory(error);
        status = add_name(c, copy, error);
        name = name[length] == ',' ? name + length + 1 : NULL;
    }
    return status;
}

static cs_status choose_planners(cs_comparison *c, const cs_arguments *arguments, cs_error *error)
{
    const char *const *names;
    size_t n = cs_arguments_values(arguments, "planner", &names), known = 0;
    while (cs_planners[known])
        known++;
    c->outcomes = cs_arena_alloc(&c->arena, known, sizeof(*c->outcomes));
    if (!c->outcomes)
        return cs_error_no_memory(error);
    cs_status status = CS_OK;
    for (size_t i = 0; i < n && status == CS_OK; i++)
        status = add_names(c, names[i], error);
    return status;
}

/* ---- their parameters ---- */

static bool takes(const cs_planner *planner, const char *name)
{
    return cs_field_find(planner->fields, name) || cs_field_find(cs_chain_fields, name);
}

static void guess_fields(cs_guess *guess, const cs_field *fields)
{
    for (; fields->name; fields++)
        cs_guess_add(guess, fields->name);
}

/* One that none of the planners has would have no effect. */
static cs_status check_name(const cs_comparison *c, const char *name, cs_error *error)
{
    cs_guess guess;
    for (uint32_t i = 0; i < c->n; i++) {
        if (takes(c->outcomes[i].planner, name))
            return CS_OK;
    }
    cs_guess_init(&guess, name);
    for (uint32_t i = 0; i < c->n; i++)
        guess_fields(&guess, c->outcomes[i].planner->fields);
    guess_fields(&guess, cs_chain_fields);
    return cs_error_add(error, CS_USAGE, "plan: no planner that was named has a parameter %s",
                        cs_guess_text(&guess));
}

/* Adds "name=value" to the parameters of a planner that takes it. */
static cs_status add_param(cs_comparison *c, const cs_planner *planner, const char *text,
                           cJSON *object, cs_error *error)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return cs_error_add(error, CS_USAGE,
                            "plan: --param must be NAME=VALUE, like kept=literal (got \"%s\")",
                            text);
    const char *name = cs_arena_copy_length(&c->arena, text, (size_t)(equals - text));
    if (!name)
        return cs_error_no_memory(error);
    cs_status status = check_name(c, name, error);
    if (status != CS_OK || !takes(planner, name))
        return status;
    char pointer[80]; /* longer than the name of any field, none of which has to be escaped */
    snprintf(pointer, sizeof(pointer), "/%s", name);
    return cs_json_set(object, pointer, equals + 1, "--param", error);
}

static cs_status read_params(cs_comparison *c, const cs_arguments *arguments,
                             cs_planner_outcome *outcome, cs_error *error)
{
    const char *const *texts;
    size_t n = cs_arguments_values(arguments, "param", &texts);
    cJSON *object = cJSON_CreateObject();
    cs_status status = object ? CS_OK : cs_error_no_memory(error);
    for (size_t i = 0; i < n && status == CS_OK; i++)
        status = add_param(c, outcome->planner, texts[i], object, error);
    if (status == CS_OK)
        status = cs_planner_read_params(outcome->planner, object, &options_place, false, &c->arena,
                                        &c->rules, &outcome->params, error);
    cJSON_Delete(object);
    return status == CS_INVALID ? CS_USAGE : status;
}

/* ---- the search ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Of the layers that the device holds, the most: a run sets it aside. */
static cs_status workspace_of(const cs_comparison *c, const cs_plan *plan, uint32_t device,
                              int64_t *bytes, cs_error *error)
{
    cs_status status = CS_OK;
    *bytes = 0;
    for (uint32_t s = 0; s < plan->n_stages && status == CS_OK; s++) {
        const cs_stage *stage = &plan->stages[s];
        cs_layer_sum sum = {0};
        if (plan->devices[stage->first_device] == device)
            status = cs_model_sum(&c->scenario.model, stage->first_layer, stage->end_layer,
                                  c->scenario.job.micro_samples, &sum, error);
        *bytes = sum.workspace_bytes > *bytes ? sum.workspace_bytes : *bytes;
    }
    return status;
}

/* A chain has its memory less the workspace; a device's peak has both. */
static cs_status add_workspaces(const cs_comparison *c, cs_planner_outcome *outcome,
                                cs_error *error)
{
    const cs_planned *planned = &outcome->planned;
    cs_status status = CS_OK;
    int64_t bytes;
    if (outcome->status != CS_OK || planned->pattern.period == 0 || !c->rules.count_workspace)
        return CS_OK;
    for (uint32_t d = 0; d < c->chain.n_devices && status == CS_OK; d++) {
        int64_t *peak = &outcome->uses[d].peak;
        status = workspace_of(c, &planned->plan, d, &bytes, error);
        if (status == CS_OK && __builtin_add_overflow(*peak, bytes, peak))
            status = cs_error_add(error, CS_OVERFLOW, "%s: device %u holds more than 2^63 bytes",
                                  outcome->planner->name, d);
    }
    return status;
}

/* That no plan fits is a result, and so is that the chain is not for this planner; anything else ends
 * the comparison. */
static cs_status run_planner(cs_comparison *c, const cs_context *context,
                             cs_planner_outcome *outcome, cs_error *error)
{
    outcome->uses = cs_arena_alloc(&c->arena, c->chain.n_devices, sizeof(*outcome->uses));
    if (!outcome->uses)
        return cs_error_no_memory(error);
    double start = seconds();
    outcome->status = cs_planner_run(outcome->planner, &c->chain, outcome->params,
                                     &outcome->planned, outcome->uses, outcome->error);
    outcome->search_time = seconds() - start;
    cs_log_write(&context->log, CS_LOG_INFO, "%s: searched for %.3g s", outcome->planner->name,
                 outcome->search_time);
    if (outcome->planned.bound > c->bound)
        c->bound = outcome->planned.bound;
    if (outcome->status == CS_OK || outcome->status == CS_LIMIT || outcome->status == CS_INVALID)
        return CS_OK;
    return cs_error_add(error, outcome->status, "%s: %s", outcome->planner->name,
                        outcome->error->text);
}

/* A plan without a pattern counts when there is no other. */
static cs_time period_of(const cs_planner_outcome *outcome)
{
    return outcome->planned.pattern.period > 0 ? outcome->planned.pattern.period : CS_TIME_MAX;
}

static void find_best(cs_comparison *c)
{
    c->best = c->n;
    for (uint32_t i = 0; i < c->n; i++) {
        const cs_planner_outcome *one = &c->outcomes[i];
        if (one->status == CS_OK &&
            (c->best == c->n || period_of(one) < period_of(&c->outcomes[c->best])))
            c->best = i;
    }
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

static cs_status compare(cs_comparison *c, const cs_context *context, const cs_arguments *arguments,
                         cs_error *error)
{
    const cs_json_place root = {.file = arguments->words[0]};
    cs_status status = choose_planners(c, arguments, error);
    c->rules = cs_scenario_chain_rules(&c->scenario);
    for (uint32_t i = 0; i < c->n && status == CS_OK; i++)
        status = read_params(c, arguments, &c->outcomes[i], error);
    if (status == CS_OK)
        status = cs_scenario_chain(&c->scenario.job, &root, &c->rules, &c->chain, error);
    if (status == CS_OK && !c->scenario.job.equal_messages)
        cs_log_write(&context->log, CS_LOG_WARNING,
                     "messages between neighbouring devices differ or share links; the planner "
                     "takes all for the lone one from device 0 to 1");
    if (status == CS_OK)
        c->bound = cs_planner_bound(&c->chain);
    c->chain.progress = context->progress;
    for (uint32_t i = 0; i < c->n && status == CS_OK; i++) {
        status = run_planner(c, context, &c->outcomes[i], error);
        if (status == CS_OK)
            status = add_workspaces(c, &c->outcomes[i], error);
    }
    if (status == CS_OK)
        find_best(c);
    return status;
}

cs_status cs_comparison_make(const cs_context *context, const cs_arguments *arguments,
                             cs_comparison *comparison, cs_error *error)
{
    cs_comparison made = {0};
    cJSON *root = NULL;
    cs_arena_init(&made.arena);
    cs_status status = cs_document_from(arguments, &root, error);
    if (status == CS_OK)
        status = cs_scenario_read_unplanned(root, arguments->words[0], &made.scenario, error);
    if (status == CS_OK)
        status = compare(&made, context, arguments, error);
    cJSON_Delete(root);
    if (status == CS_OK)
        *comparison = made;
    else
        cs_comparison_finish(&made);
    return status;
}

cJSON *cs_comparison_plan_json(const cs_comparison *comparison, uint32_t i, cs_error *error)
{
    const cs_planned *planned = &comparison->outcomes[i].planned;
    cJSON *root = cs_plan_json(&planned->plan, &comparison->scenario.model);
    if (root && (planned->pattern.period == 0 ||
                 cs_pattern_add_json(root, &planned->plan, &planned->pattern, error) == CS_OK))
        return root;
    cJSON_Delete(root);
    return NULL;
}
