#include "sim/study/advise/osdp-candidates.h"

#include "sim/run/osdp.h"

#include <string.h>

enum { SLICES = 4 };

static bool has_stage(const cs_advise_section *section, uint32_t stage)
{
    bool found = section->zero.n == 0;
    for (uint32_t i = 0; i < section->zero.n; i++)
        found |= ((const uint32_t *)section->zero.items)[i] == stage;
    return found;
}

/* Whether OSDP makes plans like this candidate. Only candidates with zero 0 are used, in place of
 * all ZeRO stages. */
static bool is_wanted(const cs_candidate *c)
{
    return c->zero == 0 && c->pipeline == 1 && c->micro_batches == 1 && c->expert == 1 &&
           c->space * c->context * c->data > 1;
}

/* ---- one plan ---- */

typedef struct trial {
    const cs_advise_base *base;
    const cs_bounds *bounds;
    const cs_candidate *like;
    const cs_osdp_model *model;
    const cs_progress *progress;
} trial;

/* Makes {"/parallel/rules": [...], ...}; NULL if memory runs out. */
static cJSON *changes_of(const cs_osdp_model *model, const cs_osdp_plan *plan)
{
    cJSON *changes = cJSON_CreateObject(), *rules = cs_osdp_rules_json(model, plan);
    if (changes && rules && cJSON_AddItemToObject(changes, "/parallel/rules", rules))
        return changes;
    cJSON_Delete(rules);
    cJSON_Delete(changes);
    return NULL;
}

static cs_status read(const trial *t, const cJSON *more, cs_scenario *scenario, cs_error *error)
{
    cs_candidate candidate = *t->like;
    candidate.more = more;
    const cs_scenario_parts parts = cs_bounds_parts(t->bounds, &candidate);
    cJSON *document = cs_candidate_document(t->base, &candidate);
    if (!document)
        return cs_error_no_memory(error);
    const cs_status status =
        cs_scenario_read_brief(document, t->base->path, &parts, t->progress, scenario, error);
    cJSON_Delete(document);
    return status;
}

static cs_status try(const void *context, cs_osdp_fitted *plan, cs_error *error)
{
    const trial *t = context;
    cs_scenario scenario = {0};
    cs_step step = {0};
    cJSON *more = changes_of(t->model, &plan->plan);
    cs_status status = more ? read(t, more, &scenario, error) : cs_error_no_memory(error);
    if (status == CS_OK)
        status = cs_simulate_step(&scenario, t->progress, &step, error);
    plan->time = step.time;
    plan->peak = step.peak;
    cs_scenario_finish(&scenario);
    cJSON_Delete(more);
    return status;
}

/* ---- all of them ---- */

/* Whether some layers are replicated and others are not. */
static bool is_mixed(const cs_osdp_model *model, const cs_osdp_fitted *fitted)
{
    return fitted->plan.found && !cs_osdp_is_all(model, &fitted->plan, true) &&
           !cs_osdp_is_all(model, &fitted->plan, false);
}

static cs_status fit(trial *t, const cs_scenario *scenario, cs_arena *arena,
                     cs_candidates *candidates, cs_error *error)
{
    static const cs_osdp_slices slices = {.most = SLICES};
    const cs_osdp_options options = {.slices = &slices, .n_slices = 1, .most_batch = 1};
    cs_osdp_model model;
    cs_osdp_fitted fitted = {0};
    CS_TRY(cs_osdp_model_of(scenario, &options, arena, &model, error));
    t->model = &model;
    const cs_osdp_fit how = {.model = &model,
                             .rules = {.limit = scenario->job.memory,
                                       .surge = CS_OSDP_SURGE_MAXIMUM,
                                       .modes = CS_OSDP_ANY,
                                       .slices = true},
                             .progress = t->progress,
                             .try = try,
                             .context = t};
    if (how.rules.limit < INT64_MAX) /* otherwise nothing has to be sharded */
        CS_TRY(cs_osdp_fit_batch(&how, model.samples, arena, &fitted, error));
    if (!is_mixed(&model, &fitted))
        return CS_OK;
    cs_candidate made = *t->like;
    made.replicated = cs_osdp_data_fraction(&model, fitted.plan.choices);
    return cs_candidates_add(t->base, &made, changes_of(&model, &fitted.plan), candidates, error);
}

/* Adds OSDP's plan for one candidate, unless the model or the platform rejects the candidate. */
static cs_status add_one(const cs_advise_base *base, const cs_bounds *bounds,
                         const cs_candidate *like, const cs_progress *progress,
                         cs_candidates *candidates, cs_error *error)
{
    trial t = {base, bounds, like, NULL, progress};
    cs_scenario scenario = {0};
    cs_arena arena;
    cs_error why;
    cs_error_init(&why);
    cs_arena_init(&arena);
    cs_status status = read(&t, NULL, &scenario, &why);
    if (status == CS_OK)
        status = fit(&t, &scenario, &arena, candidates, &why);
    cs_scenario_finish(&scenario);
    cs_arena_finish(&arena);
    if (status != CS_NO_MEMORY && status != CS_INTERRUPTED && status != CS_LIMIT)
        return CS_OK;
    cs_error_add_all(error, &why);
    return status;
}

cs_status cs_osdp_candidates_add(const cs_advise_base *base, const cs_bounds *bounds,
                                 const cs_progress *progress, cs_candidates *candidates,
                                 cs_error *error)
{
    const uint32_t n = candidates->n;
    if (!base->section.osdp || base->has_rules || !has_stage(&base->section, 0) ||
        !has_stage(&base->section, 3))
        return CS_OK;
    for (uint32_t i = 0; i < n; i++) {
        const cs_candidate like = candidates->items[i]; /* a copy, because the array may move */
        cs_candidate mixed = like;
        mixed.more = base->document; /* any changes of layers will do */
        if (is_wanted(&like) && cs_candidate_broken_rule(base, &mixed) == CS_RUNTIME_RULES_MOST)
            CS_TRY(add_one(base, bounds, &like, progress, candidates, error));
    }
    return CS_OK;
}
