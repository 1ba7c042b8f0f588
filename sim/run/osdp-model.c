/* Describes a scenario's operators for OSDP's cost model. */
#include "sim/run/osdp.h"

#include "schedules/states.h"
#include "topologies/route.h"

#include <fnmatch.h>
#include <math.h>

/* Checks that OSDP applies to the scenario; messages name the key that prevents it. */
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
                               "must have one stage for OSDP, like \"sequential\" (got %u)",
                               scenario->plan->n_stages);
    if (job->micro_batches != 1)
        return cs_json_invalid(&batches, error, "must be 1 for OSDP (got %u)", job->micro_batches);
    if (job->plan->grid->expert > 1)
        return cs_json_invalid(&expert, error, "must be 1 for OSDP (got %u)",
                               job->plan->grid->expert);
    if (job->states.keep_gathered)
        return cs_json_invalid(&keep, error,
                               "must be false for OSDP, which frees weights after each layer");
    if (job->states.gather_once)
        return cs_json_invalid(&once, error,
                               "must be false for OSDP, which frees weights after each layer");
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

/* Fills the operator of layer `l`. `kept`: saved activations of all layers so far; adds its own. */
static cs_status fill(const cs_scenario *scenario, const cs_osdp_options *options, uint32_t l,
                      cs_model_kept *kept, cs_osdp_operator *op, cs_error *error)
{
    const cs_job *job = &scenario->job;
    const cs_model *model = scenario->model;
    const int64_t before = kept->bytes;
    cs_layer_sum one;
    double speed = job->speeds[0]; /* slowest device: the others wait for it */
    for (uint32_t d = 1; d < job->n_devices; d++)
        speed = fmin(speed, job->speeds[d]);
    CS_TRY(cs_model_sum(model, l, l + 1, job->micro_samples, &one, error));
    CS_TRY(cs_model_keep(model, l, job->micro_samples, kept, error));
    *op = (cs_osdp_operator){.weights = one.weight_bytes,
                             .gradients = one.gradient_bytes,
                             .states = one.weight_bytes + one.gradient_bytes +
                                       cs_optimizer_bytes(job, one.weight_bytes, one.matrix_bytes),
                             .kept = kept->bytes - before, /* shared tensors count once */
                             .workspace = one.workspace_bytes,
                             .slices = slices_of(options, model->layers[l].name)};
    if (!cs_time_at_speed(one.forward + one.backward_input + one.backward_weight, speed,
                          &op->compute))
        return cs_error_add(error, CS_OVERFLOW, "%s: layer %u takes too long at a speed of %g",
                            model->name, l, speed);
    return CS_OK;
}

static bool recomputes(const cs_model *model)
{
    bool any = false;
    for (uint32_t l = 0; l < model->n_layers; l++)
        any |= model->layers[l].recompute;
    return any;
}

/* Whether a group spans several nodes. */
static bool leaves_node(const cs_scenario *scenario, const cs_axes *axes)
{
    const uint32_t node = scenario->platform.node_devices, *devices = scenario->parallel->devices;
    bool leaves = false;
    for (uint32_t i = 1; node > 0 && i < axes->size; i++)
        leaves |= devices[i * axes->stride] / node != devices[0] / node;
    return leaves;
}

cs_status cs_osdp_model_of(const cs_scenario *scenario, const cs_osdp_options *options,
                           cs_arena *arena, cs_osdp_model *model, cs_error *error)
{
    const cs_model *chain = scenario->model;
    cs_osdp_operator *operators = cs_arena_alloc(arena, chain->n_layers, sizeof(*operators));
    cs_ring_hop hop;
    cs_model_kept kept = {0};
    int64_t frozen = 0;
    if (!operators)
        return cs_error_no_memory(error);
    CS_TRY(check(scenario, error));
    /* Report patterns that match no layer. */
    for (uint32_t i = 0; i < options->n_slices; i++) {
        const char *pattern = options->slices[i].pattern;
        bool found = !pattern;
        for (uint32_t l = 0; l < chain->n_layers && !found; l++)
            found = fnmatch(pattern, chain->layers[l].name, 0) == 0;
        if (!found)
            return cs_error_add(error, CS_USAGE,
                                "--slices: no layer of %s matches \"%s\"; its first is \"%s\"",
                                chain->name, pattern, chain->layers[0].name);
    }
    for (uint32_t l = 0; l < chain->n_layers; l++) {
        CS_TRY(fill(scenario, options, l, &kept, &operators[l], error));
        frozen += cs_layer_besides(&chain->layers[l]);
    }
    const cs_grid *grid = scenario->job.plan->grid;
    const cs_axes axes = cs_grid_axes(grid, CS_AXES_GRADIENT);
    const cs_measured_collective *measured = cs_measured_find(
        scenario->collectives.measured, CS_ALL_GATHER, leaves_node(scenario, &axes), axes.size);
    const cs_rings rings = {.n = cs_grid_places(grid),
                            .size = axes.size,
                            .stride = axes.stride,
                            .over_links = cs_lower_takes_links(&scenario->collectives),
                            .devices = scenario->parallel->devices};
    CS_TRY(cs_rings_slowest(&scenario->platform, &rings, &hop, error));
    if (measured && axes.size > 1) {
        /* Convert a measured gather (alpha + beta x bytes) to hops of a ring with bytes/N each.
         * Use the regime that contains the mean size of operators with weights. */
        const cs_measured_regime *regime = measured->regimes;
        const double ranks = measured->ranks;
        double sum = 0, weighted = 0;
        for (uint32_t i = 0; i < scenario->model->n_layers; i++) {
            sum += (double)operators[i].weights;
            weighted += operators[i].weights > 0;
        }
        for (uint32_t r = 1; r < measured->n_regimes; r++)
            if (weighted > 0 && (double)measured->regimes[r].from <= sum / weighted)
                regime = &measured->regimes[r];
        if (!(regime->beta > 0) || !cs_time_from_seconds(regime->alpha / (ranks - 1), &hop.latency))
            return cs_error_add(
                error, CS_INVALID,
                "the measured all_gather of %g ranks must have beta_s_per_byte > 0 and "
                "an alpha_s that fits (got %g and %g)",
                ranks, regime->beta, regime->alpha);
        hop.bandwidth = (ranks - 1) / (ranks * regime->beta);
    }
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
