#include "schedules/ties.h"
#include "sim/base/units.h"
#include "sim/model/net-model.h"
#include "sim/run/scenario/build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Whether several devices hold a stage, so that collectives combine their results. */
static bool has_collectives(const cs_plan *plan, uint32_t n_devices)
{
    if (!plan)
        return n_devices > 1;
    for (uint32_t i = 0; i < plan->n_stages; i++)
        if (plan->stages[i].n_devices > 1)
            return true;
    return false;
}

/* Only memory can run out here, because the scenario was built from the same network; then the
 * warning is lost. */
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
        const char *name = options.recompute_ops[i];
        if (effect == CS_RECOMPUTE_DISCARD)
            (void)cs_json_invalid(&place, warnings,
                                  "recomputing \"%s\" takes time and frees no memory, because its "
                                  "results are saved for other operators; add it to "
                                  "/model/discard_operators as well, or leave it out",
                                  name);
        else if (effect == CS_RECOMPUTE_IDLE)
            (void)cs_json_invalid(&place, warnings,
                                  "recomputing \"%s\" takes time and frees no memory; leave it out",
                                  name);
    }
    cs_accelerator_finish(&device);
}

/* Warns of devices without a stage: they cost as much as the others. With background traffic they
 * have a purpose. */
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

/* Warns of states that are not sharded: a pipeline over all devices leaves one replica. */
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

/* A card of "80 GB" has 80 GiB. A capacity 100 times smaller or larger than the device's is
 * probably a wrong unit. */
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

void cs_scenario_warn(const cs_sections *sections, const cs_scenario *scenario, cs_error *warnings)
{
    const cs_json_place platform = {.up = &sections->root, .key = "platform"};
    const cs_json_place schedule = {.up = &sections->root, .key = "schedule"};
    const cs_schedule *kind = sections->schedule.kind;
    const cs_job *job = &scenario->job;
    /* Sizes of 0 would otherwise look like results. */
    const cs_json_place place = {.up = &sections->root, .key = "model"};
    if (scenario->model->times_only)
        (void)cs_json_invalid(&place, warnings,
                              "has times only (\"times_only\"): weights, activations and messages "
                              "have no size; memory and communication are not simulated");
    cs_scenario_warn_of_ignored_keys(sections, &scenario->origins);
    /* Delays share no links. With "auto" it is not known yet whether collectives are delays. */
    const cs_json_place background_place = {.up = &platform, .key = "background"};
    const cs_fidelity fidelity = (cs_fidelity)sections->collectives.fidelity;
    if (sections->platform.background && fidelity != CS_FIDELITY_FLOW &&
        fidelity != CS_FIDELITY_AUTO &&
        has_collectives(scenario->plan, scenario->platform.n_devices))
        (void)cs_json_invalid(&background_place, warnings,
                              "does not slow down collectives, because they are delays "
                              "(/collectives/fidelity is \"%s\"); with \"flow\" they share links",
                              cs_fidelity_name(fidelity));
    /* NCCL's model has its own latencies. */
    const cs_json_place latency_place = {.up = &platform, .key = "latency"};
    const bool divides_layers = sections->parallel.tensor > 1 || sections->parallel.context > 1 ||
                                sections->parallel.expert > 1;
    if (sections->platform.has_latency && sections->collectives.nccl != CS_NCCL_NONE &&
        fidelity != CS_FIDELITY_FLOW && fidelity != CS_FIDELITY_AUTO &&
        (divides_layers || has_collectives(scenario->plan, scenario->platform.n_devices)))
        (void)cs_json_invalid(&latency_place, warnings,
                              "does not count for all-reduces, all-gathers and reduce-scatters, "
                              "which take NCCL's latencies; with \"nccl\": \"none\" in "
                              "/collectives they take this one");
    warn_of_memory(sections, warnings);
    /* The largest published batches have about 20,000 sequences. */
    enum { MOST_SEQUENCES = 1 << 17 };
    const cs_json_place model = {.up = &sections->root, .key = "model"};
    const cs_json_place batch_size_place = {.up = &model, .key = "batch_size"};
    const double tokens = scenario->model->work.tokens_per_sample;
    const uint32_t batch = scenario->batch_size;
    if (batch > MOST_SEQUENCES && tokens > 1) {
        (void)cs_json_invalid(
            &batch_size_place, warnings,
            "%u samples are %.4g tokens; if %u is a number of tokens, the batch has "
            "%.6g samples of %.6g",
            batch, batch * tokens, batch, batch / tokens, tokens);
    }
    if (job->plan) {
        warn_idle(sections, scenario, warnings);
        /* Warn of stages that share weights although the schedule does not sum their gradients. */
        const cs_json_place kind_place = {.up = &schedule, .key = "kind"};
        uint32_t layer = 0;
        cs_tie tie;
        if (!kind->sums_ties &&
            cs_tie_next(job->model, job->plan, job->model->n_layers, &layer, &tie)) {
            const cs_layer *borrower = &job->model->layers[tie.layer];
            (void)cs_json_invalid(
                &kind_place, warnings,
                "\"%s\" does not sum the gradients of the weights that \"%s\" and \"%s\" "
                "share: each of their stages updates its own copy",
                kind->name, borrower->tied_to, borrower->name);
        }
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
