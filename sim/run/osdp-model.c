/* The operators of a scenario, as OSDP's cost model takes them. */
#include "sim/run/osdp.h"

#include "schedules/states.h"
#include "topologies/route.h"

#include <fnmatch.h>

/* What a scenario must be, and which key says otherwise. */
static cs_status check(const cs_scenario *scenario, cs_error *error)
{
    const cs_json_place root = {.file = scenario->file};
    const cs_json_place parallel = {.up = &root, .key = "parallel"};
    const cs_json_place schedule = {.up = &root, .key = "schedule"};
    const cs_json_place batches = {.up = &schedule, .key = "micro_batches"};
    const cs_json_place shard = {.up = &parallel, .key = "shard"};
    const cs_json_place keep = {.up = &parallel, .key = "keep_gathered"};
    const cs_json_place once = {.up = &parallel, .key = "gather_once"};
    const cs_json_place expert = {.up = &parallel, .key = "expert"};
    const cs_job *job = &scenario->job;
    if (!scenario->parallel)
        return cs_json_invalid(&root, error,
                               "must have a section \"parallel\" for OSDP, such as {}");
    if (scenario->plan->n_stages != 1)
        return cs_json_invalid(&schedule, error,
                               "must have one stage for OSDP, as \"sequential\" has (got %u)",
                               scenario->plan->n_stages);
    if (job->micro_batches != 1)
        return cs_json_invalid(&batches, error, "must be 1 for OSDP (got %u)", job->micro_batches);
    if (job->plan->grid->expert > 1)
        return cs_json_invalid(&expert, error, "must be 1 for OSDP (got %u)",
                               job->plan->grid->expert);
    if (job->states.keep_gathered)
        return cs_json_invalid(&keep, error,
                               "must be false for OSDP, which frees weights behind each layer");
    if (job->states.gather_once)
        return cs_json_invalid(&once, error,
                               "must be false for OSDP, which frees weights behind each layer");
    if (job->states.zero > 0 &&
        job->plan->grid->shard != cs_grid_axes(job->plan->grid, CS_AXES_GRADIENT).size)
        return cs_json_invalid(&shard, error,
                               "must be 0 for OSDP, which shards over all data-parallel devices "
                               "(got %u)",
                               job->plan->grid->shard);
    return CS_OK;
}

static uint32_t slices_of(const cs_osdp_options *options, const char *layer)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < options->n_slices; i++) {
        const cs_osdp_slices *one = &options->slices[i];
        if (!one->pattern || fnmatch(one->pattern, layer, 0) == 0)
            most = one->most;
    }
    return most;
}

/* A pattern that no layer's name matches is a slip. */
static cs_status check_patterns(const cs_osdp_options *options, const cs_model *model,
                                cs_error *error)
{
    for (uint32_t i = 0; i < options->n_slices; i++) {
        const char *pattern = options->slices[i].pattern;
        bool found = !pattern;
        for (uint32_t l = 0; l < model->n_layers && !found; l++)
            found = fnmatch(pattern, model->layers[l].name, 0) == 0;
        if (!found)
            return cs_error_add(error, CS_USAGE,
                                "--slices: no layer of %s matches \"%s\"; its first is \"%s\"",
                                model->name, pattern, model->layers[0].name);
    }
    return CS_OK;
}

/* One layer; `before` is what the layers before it keep together, and then includes it. */
static cs_status fill(const cs_scenario *scenario, const cs_osdp_options *options, uint32_t l,
                      int64_t *before, cs_osdp_operator *op, cs_error *error)
{
    const cs_job *job = &scenario->job;
    const cs_model *model = scenario->model;
    cs_layer_sum one, until;
    CS_TRY(cs_model_sum(model, l, l + 1, job->micro_samples, &one, error));
    CS_TRY(cs_model_sum(model, 0, l + 1, job->micro_samples, &until, error));
    *op = (cs_osdp_operator){.weights = one.weight_bytes,
                             .gradients = one.gradient_bytes,
                             .states = one.weight_bytes + one.gradient_bytes +
                                       cs_optimizer_bytes(job, one.weight_bytes, one.matrix_bytes),
                             .kept = until.kept_bytes - *before, /* what layers share, once */
                             .workspace = one.workspace_bytes,
                             .compute = one.forward + one.backward_input + one.backward_weight,
                             .slices = slices_of(options, model->layers[l].name)};
    *before = until.kept_bytes;
    return CS_OK;
}

static bool recomputes(const cs_model *model)
{
    bool any = false;
    for (uint32_t l = 0; l < model->n_layers; l++)
        any |= model->layers[l].recompute;
    return any;
}

static cs_status find_ring(const cs_scenario *scenario, cs_ring_hop *hop, cs_error *error)
{
    const cs_grid *grid = scenario->job.plan->grid;
    const cs_axes axes = cs_grid_axes(grid, CS_AXES_GRADIENT);
    const cs_rings rings = {.n = cs_grid_places(grid),
                            .size = axes.size,
                            .stride = axes.stride,
                            .over_links = cs_lower_takes_links(&scenario->collectives),
                            .devices = scenario->parallel->devices};
    return cs_rings_slowest(&scenario->platform, &rings, hop, error);
}

cs_status cs_osdp_model_of(const cs_scenario *scenario, const cs_osdp_options *options,
                           cs_arena *arena, cs_osdp_model *model, cs_error *error)
{
    const cs_model *chain = scenario->model;
    cs_osdp_operator *operators = cs_arena_alloc(arena, chain->n_layers, sizeof(*operators));
    cs_ring_hop hop;
    int64_t before = 0, frozen = 0;
    if (!operators)
        return cs_error_no_memory(error);
    CS_TRY(check(scenario, error));
    CS_TRY(check_patterns(options, chain, error));
    for (uint32_t l = 0; l < chain->n_layers; l++) {
        CS_TRY(fill(scenario, options, l, &before, &operators[l], error));
        frozen += cs_layer_besides(&chain->layers[l]);
    }
    CS_TRY(find_ring(scenario, &hop, error));
    *model =
        (cs_osdp_model){.n = chain->n_layers,
                        .operators = operators,
                        .samples = scenario->job.micro_samples,
                        .fixed_bytes = frozen,
                        .devices = cs_grid_axes(scenario->job.plan->grid, CS_AXES_GRADIENT).size,
                        .latency = hop.latency,
                        .bandwidth = hop.bandwidth,
                        .gathers = options->gathers    ? options->gathers
                                   : recomputes(chain) ? 3
                                                       : 2};
    return CS_OK;
}
