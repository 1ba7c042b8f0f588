#include "schedules/ties.h"
#include "sim/base/units.h"
#include "sim/model/net-model.h"
#include "sim/run/scenario/build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

/* NCCL's model has latencies of its own. */
static void warn_latency(const cs_sections *sections, const cs_scenario *scenario,
                         const cs_json_place *platform, cs_error *warnings)
{
    const cs_json_place place = {.up = platform, .key = "latency"};
    const cs_fidelity fidelity = (cs_fidelity)sections->collectives.fidelity;
    if (sections->platform.has_latency && sections->collectives.nccl != CS_NCCL_NONE &&
        fidelity != CS_FIDELITY_FLOW && fidelity != CS_FIDELITY_AUTO &&
        has_collectives(scenario->plan, scenario->platform.n_devices))
        (void)cs_json_invalid(&place, warnings,
                              "does not count for all-reduces, all-gathers and reduce-scatters, "
                              "which take NCCL's latencies; with \"nccl\": \"none\" in "
                              "/collectives they take this one");
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

/* Devices without a stage cost as much as the others but compute nothing. Devices with background
 * traffic have a use. */
static void warn_idle(const cs_sections *sections, const cs_scenario *scenario, cs_error *warnings)
{
    const cs_json_place schedule = {.up = &sections->root, .key = "schedule"};
    const cs_schedule *kind = sections->schedule.kind;
    const cs_plan *plan = scenario->job.plan;
    const uint32_t all = scenario->platform.n_devices;
    uint32_t idle = all;
    bool *holds = calloc((size_t)all + 1, sizeof(*holds));
    for (uint32_t s = 0; holds && s < plan->n_stages; s++)
        for (uint32_t i = 0; i < plan->stages[s].n_devices; i++) {
            bool *held = &holds[plan->devices[plan->stages[s].first_device + i]];
            idle -= !*held;
            *held = true;
        }
    free(holds);
    if (!holds || idle == 0 || sections->platform.background)
        return;
    const bool replicas = plan->n_stages == 1 && idle + 1 == all && !kind->mesh.no_grid &&
                          !sections->parallel.given &&
                          scenario->batch_size % ((uint64_t)all * scenario->job.micro_batches) == 0;
    if (replicas)
        (void)cs_json_invalid(&schedule, warnings,
                              "\"%s\" computes on one of %u devices, and the others are idle; with "
                              "\"parallel\": {\"data\": %u} all of them compute, as replicas",
                              kind->name, all, all);
    else
        (void)cs_json_invalid(&schedule, warnings,
                              "\"%s\" computes on %u of %u devices, and the others are idle",
                              kind->name, all - idle, all);
}

/* States are sharded over replicas; a pipeline over all devices leaves one replica. */
static void warn_unsharded(const cs_sections *sections, const cs_scenario *scenario,
                           cs_error *warnings)
{
    const cs_json_place parallel = {.up = &sections->root, .key = "parallel"};
    const cs_json_place place = {.up = &parallel, .key = "zero"};
    const cs_job *job = &scenario->job;
    const uint32_t n = scenario->parallel->n_ranks;
    char remedy[64] = "";
    if (sections->parallel.zero == 0 || scenario->parallel->split.grid.shard > 1 ||
        scenario->platform.n_devices == 1)
        return;
    if (n % 2 == 0 && scenario->batch_size % (UINT64_C(2) * job->micro_batches) == 0)
        snprintf(remedy, sizeof(remedy), "; with \"pipeline\": %u it has two", n / 2);
    if (sections->parallel.pipeline == 0 && n > 1)
        (void)cs_json_invalid(&place, warnings,
                              "shards nothing: the schedule \"%s\" makes a stage for each of %u "
                              "devices, so a stage has one replica%s",
                              sections->schedule.kind->name, n, remedy);
    else
        (void)cs_json_invalid(&place, warnings,
                              "shards nothing: each part of the model has one replica");
}

/* A card of "80 GB" has 80 GiB, and no card has a hundredth or a hundred times the memory that its
 * description states. */
static void warn_of_memory(const cs_sections *sections, cs_error *warnings)
{
    const cs_json_place platform = {.up = &sections->root, .key = "platform"};
    const cs_json_place place = {.up = &platform, .key = "memory"};
    const cs_list *memory = &sections->platform.memory;
    const double device = (double)sections->model.device.memory;
    const int64_t bytes = memory->n > 0 ? *(const int64_t *)memory->items : 0;
    const int64_t gigabytes = bytes / 1000000000;
    const double binary = (double)gigabytes * (double)(1 << 30), ratio = (double)bytes / device;
    if (device == 0 || bytes < 1000000 || bytes == INT64_MAX)
        return;
    const cs_units_value has = cs_units_text(device, CS_QUANTITY_BYTES, 4);
    if (ratio < 0.01 || ratio > 100)
        (void)cs_json_invalid(
            &place, warnings,
            "%s is unusual for a device of %s (/model/device); is the unit right?",
            cs_units_text((double)bytes, CS_QUANTITY_BYTES, 4).s, has.s);
    else if (gigabytes > 0 && bytes == gigabytes * 1000000000 && ratio < 0.98 &&
             fabs(binary / device - 1) < 0.02)
        (void)cs_json_invalid(
            &place, warnings,
            "%lld GB is %.2g %% less than the device has, %s; did you mean \"%lld "
            "GiB\"?",
            (long long)gigabytes, 100 * (1 - ratio), has.s, (long long)gigabytes);
}

/* The largest published batches have some 20,000 sequences. */
static void warn_tokens(const cs_sections *sections, const cs_scenario *scenario,
                        cs_error *warnings)
{
    enum { MOST_SEQUENCES = 1 << 17 };
    const cs_json_place model = {.up = &sections->root, .key = "model"};
    const cs_json_place place = {.up = &model, .key = "batch_size"};
    const double tokens = scenario->model->work.tokens_per_sample;
    const uint32_t batch = scenario->batch_size;
    if (batch <= MOST_SEQUENCES || !(tokens > 1))
        return;
    (void)cs_json_invalid(&place, warnings,
                          "%u samples are %.4g tokens; if %u is a number of tokens, the batch has "
                          "%.6g samples of %.6g",
                          batch, batch * tokens, batch, batch / tokens, tokens);
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
    warn_latency(sections, scenario, &platform, warnings);
    warn_of_memory(sections, warnings);
    warn_tokens(sections, scenario, warnings);
    if (job->plan) {
        warn_idle(sections, scenario, warnings);
        warn_ties(kind, job, &schedule, warnings);
    }
    if (scenario->parallel) {
        warn_unsharded(sections, scenario, warnings);
        cs_scenario_warn_of_order(sections, scenario->parallel, &scenario->platform, warnings);
    }
    if (scenario->platform.warning)
        (void)cs_json_invalid(&platform, warnings, "%s", scenario->platform.warning);
    if (kind->warn && job->plan)
        kind->warn(job, sections->schedule.params, &schedule, warnings);
}
