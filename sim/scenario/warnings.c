#include "schedules/ties.h"
#include "sim/scenario/build.h"
#include "sim/workload/idle-recompute.h"

/* What stands as 0 would look like a result. */
static void warn_times_only(const cs_model *model, const cs_json_place *root, cs_error *warnings)
{
    const cs_json_place place = {.up = root, .key = "model"};
    if (model->times_only)
        (void)cs_json_invalid(&place, warnings,
                              "has times only (\"times_only\"): weights, activations and messages "
                              "have no size; memory and communication are not simulated");
}

/* Of a plan whose stages share weights. */
static void warn_ties(const cs_schedule *kind, const cs_job *job, const cs_json_place *schedule,
                      cs_error *warnings)
{
    const cs_json_place place = {.up = schedule, .key = "kind"};
    uint32_t layer = 0;
    cs_tie tie;
    if (kind->sums_ties || !cs_tie_next(job->model, job->plan, job->model->n_layers, &layer, &tie))
        return;
    const cs_layer *borrower = &job->model->layers[tie.layer];
    (void)cs_json_invalid(&place, warnings,
                          "\"%s\" does not sum the gradients of the weights that \"%s\" and \"%s\" "
                          "share: their two stages update a copy each",
                          kind->name, borrower->tied_to, borrower->name);
}

/* Whether several devices hold a stage: what they compute is joined by collectives. */
static bool has_collectives(const cs_plan *plan, uint32_t n_devices)
{
    if (!plan)
        return n_devices > 1;
    for (uint32_t i = 0; i < plan->n_stages; i++)
        if (plan->stages[i].n_devices > 1)
            return true;
    return false;
}

/* A delay shares no link; of "auto" it is not known yet. */
static void warn_background(const cs_sections *sections, const cs_scenario *scenario,
                            const cs_json_place *platform, cs_error *warnings)
{
    const cs_json_place place = {.up = platform, .key = "background"};
    const cs_fidelity fidelity = (cs_fidelity)sections->collectives.fidelity;
    if (sections->platform.background && fidelity != CS_FIDELITY_FLOW &&
        fidelity != CS_FIDELITY_AUTO &&
        has_collectives(scenario->plan, scenario->platform.n_devices))
        (void)cs_json_invalid(&place, warnings,
                              "does not slow down collectives, which are delays here "
                              "(/collectives/fidelity is \"%s\"); with \"flow\" they share links",
                              cs_fidelity_name(fidelity));
}

static void warn_of_name(const char *name, cs_recompute_effect effect,
                         const cs_json_place *recompute, cs_error *warnings)
{
    if (effect == CS_RECOMPUTE_DISCARD)
        (void)cs_json_invalid(recompute, warnings,
                              "recomputing \"%s\" takes time and frees no memory, because its "
                              "results are kept for other operators; name it in "
                              "/model/discard_operators as well, or leave it out",
                              name);
    else if (effect == CS_RECOMPUTE_IDLE)
        (void)cs_json_invalid(recompute, warnings,
                              "recomputing \"%s\" takes time and frees no memory; leave it out",
                              name);
}

/* The scenario has been built of the same network: what fails here is memory, and costs a
 * warning. */
void cs_scenario_warn_of_recompute(const cs_sections *sections, const cs_scenario *scenario,
                                   cs_error *warnings)
{
    const cs_json_place model = {.up = &sections->root, .key = "model"};
    const cs_json_place place = {.up = &model, .key = "recompute_operators"};
    cs_workload workload = sections->model.workload;
    cs_accelerator device = {0};
    cs_net_options options;
    workload.batch_size = scenario->model->batch_size;
    workload.split = scenario->parallel ? &scenario->parallel->split : NULL;
    if (!scenario->net || workload.recompute_operators.n == 0)
        return;
    cs_status status = cs_workload_options(&workload, &device, &options, NULL);
    for (uint32_t i = 0; status == CS_OK && i < workload.recompute_operators.n; i++) {
        cs_recompute_effect effect = CS_RECOMPUTE_FREES;
        status = cs_recompute_effect_of(scenario->net, &options, i, &effect, NULL);
        warn_of_name(options.recompute_ops[i], effect, &place, warnings);
    }
    cs_accelerator_finish(&device);
}

void cs_scenario_warn(const cs_sections *sections, const cs_scenario *scenario, cs_error *warnings)
{
    const cs_json_place platform = {.up = &sections->root, .key = "platform"};
    const cs_json_place schedule = {.up = &sections->root, .key = "schedule"};
    const cs_schedule *kind = sections->schedule.kind;
    const cs_job *job = &scenario->job;
    warn_times_only(scenario->model, &sections->root, warnings);
    cs_scenario_warn_of_ignored_keys(sections, &scenario->origins);
    warn_background(sections, scenario, &platform, warnings);
    if (job->plan)
        warn_ties(kind, job, &schedule, warnings);
    if (scenario->parallel)
        cs_scenario_warn_of_order(sections, scenario->parallel, &scenario->platform, warnings);
    if (scenario->platform.warning)
        (void)cs_json_invalid(&platform, warnings, "%s", scenario->platform.warning);
    if (kind->warn && job->plan)
        kind->warn(job, sections->schedule.params, &schedule, warnings);
}
