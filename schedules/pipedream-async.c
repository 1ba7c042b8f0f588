/* PipeDream: asynchronous 1F1B. Every mini-batch is one micro-batch, and each stage updates its
 * weights after every backward, without a flush. At most P - s mini-batches are in flight on stage
 * s.
 *
 * Weight stashing: a backward reads the version that its own forward on the stage read. With
 * vertical sync, all stages use for a mini-batch the version that the first stage had when the
 * mini-batch entered it; later stages keep every version that may still be needed.
 *
 * Replicated stages (1F1B-RR): the R replicas of a stage take mini-batches in turn, forward and
 * backward of one on the same replica, with ceil(D / R) in flight on each, where D is the number of
 * devices of this stage and all later ones. The replicas stay equal: after each has computed one
 * backward, they wait for an all-reduce of their gradients, and all update. So R mini-batches make
 * one version. Alternatively they share every mini-batch, as in data parallelism. pipedream.md
 * derives the consequences.
 */
#include "schedules/order-1f1b.h"
#include "schedules/states.h"

static const char source[] = "Narayanan et al., PipeDream, SOSP 2019, sections 3.2 and 3.3";

typedef struct pipedream_params {
    bool vertical_sync;
    uint32_t replicas;
} pipedream_params;

static const cs_field fields[] = {
    {"vertical_sync", CS_FIELD_BOOL, offsetof(pipedream_params, vertical_sync), .fallback = "false",
     .doc = "all stages use the weight version that was current on stage 0 when the mini-batch "
            "entered; needs one device per stage"},
    {"replicas", CS_FIELD_CHOICE, offsetof(pipedream_params, replicas), .fallback = "round_robin",
     .choices = cs_order_1f1b_replica_names,
     .doc =
         "if stages have several devices; round_robin: these take mini-batches in turn; "
         "all_reduce: each computes a share of every mini-batch; gradients are summed either way"},
    {0},
};

static cs_replicas replicas(const void *params)
{
    return cs_order_1f1b_replicas(((const pipedream_params *)params)->replicas);
}

/* Notes the forward's version in a register of the holder, and holds it until the backward. */
static void stash(cs_builder *builder, uint32_t slot, cs_stage_policies *made)
{
    uint32_t note = cs_builder_register(builder);
    made->forward = cs_builder_policy(builder, &(cs_policy){.read = CS_READ_CURRENT,
                                                            .slot = slot,
                                                            .writes = note,
                                                            .first_held = slot,
                                                            .n_held = 1});
    made->backward = cs_builder_policy(
        builder,
        &(cs_policy){.read = CS_READ_REGISTER, .reads = note, .writes = CS_NONE, .drops = true});
}

/* Makes the policies of vertical sync. Register 0 has, for each mini-batch, the version at its
 * injection. All stages hold that version from then on. */
static void synchronise(const cs_job *job, cs_builder *builder, const uint32_t *slots,
                        uint32_t stage, cs_stage_policies *made)
{
    cs_policy inject = {.read = CS_READ_CURRENT,
                        .slot = slots[0],
                        .writes = 0,
                        .first_held = slots[0],
                        .n_held = job->plan->n_stages};
    cs_policy follow = {.read = CS_READ_REGISTER, .reads = 0, .writes = CS_NONE};
    if (stage == 0)
        cs_builder_register(builder);
    made->forward = cs_builder_policy(builder, stage == 0 ? &inject : &follow);
    follow.drops = true;
    made->backward = cs_builder_policy(builder, &follow);
    cs_builder_retain(builder, slots[stage], 1, slots[0]);
}

static void policies(const cs_job *job, const void *params, cs_builder *builder,
                     const uint32_t *slots, uint32_t holder, cs_stage_policies *made)
{
    if (((const pipedream_params *)params)->vertical_sync)
        /* valid because each stage has one holder */
        synchronise(job, builder, slots, holder, made);
    else
        stash(builder, slots[holder], made);
}

static cs_status check(const cs_job *job, const void *params, const cs_json_place *place,
                       cs_error *error)
{
    cs_json_place at = {.up = place, .key = "vertical_sync"};
    CS_TRY(cs_pipeline_check_versions(job, place, error));
    if (!((const pipedream_params *)params)->vertical_sync || !cs_pipeline_replicated(job))
        return CS_OK;
    return cs_json_invalid(&at, error,
                           "must be false for a plan that has stages on several devices: a version "
                           "of the first stage is none of a stage with other replicas");
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    cs_pipeline_options options = {
        .order = cs_order_1f1b, .continuous = true, .policies = policies, .params = params};
    return cs_pipeline_generate(job, &options, builder, error);
}

/* Whether some stage has replicas that take turns. */
static bool takes_turns(const cs_job *job)
{
    return cs_pipeline_replicated(job) && job->replicas == CS_REPLICAS_ROUND_ROBIN;
}

/* At most P - s mini-batches are in flight on a device, or ceil(D / R), each with its own version.
 *
 * With vertical sync every stage has P versions. Stage 0 injects mini-batch k right after its
 * backward of k - P, so k reads the version made by k - P + 1 updates. A stage keeps that version
 * until its backward of k. By then it has made k updates, so it has versions k - P + 1 to k. It
 * also keeps the version that stage 0 has now. That is not an older one if stages are equal and
 * messages are free: on the last stage, the backward of k - P ended (P - 1)(f + b), i.e. P - 1
 * periods, before the backward of k - 1, and on stage 0 only (P - 1) b later. */
static cs_status add_versions(const cs_job *job, const cs_pipeline_times *times, bool vertical_sync,
                              cs_forms *forms, cs_error *error)
{
    const bool in_step = !vertical_sync || (times->equal && times->free_messages);
    const cs_plan *plan = job->plan;
    cs_status status = CS_OK;
    for (uint32_t h = 0, s = 0; h < plan->n_devices && status == CS_OK; h++) {
        s += h == plan->stages[s].first_device + plan->stages[s].n_devices;
        uint32_t replica = h - plan->stages[s].first_device;
        cs_form form = {
            .figure = CS_FIGURE_PEAK_VERSIONS,
            .device = plan->devices[h],
            .exact = vertical_sync
                         ? plan->n_stages
                         : cs_order_1f1b_in_flight(job, job->iterations, false, s, replica),
            .formula = vertical_sync      ? "P versions"
                       : takes_turns(job) ? "ceil(D/R) versions"
                                          : "P - s versions",
            .source = source,
            .applies = in_step && job->iterations >= 2 * plan->n_devices,
            .assumes = vertical_sync ? "vertical sync, equal stages, free messages, a steady state"
                                     : "weight stashing without vertical sync, a steady state"};
        status = cs_forms_add(forms, &form, error);
    }
    return status;
}

/* Returns the time per mini-batch of the slowest stage; its replicas work on different mini-batches
 * if `turns`. */
static cs_time slowest_stage(const cs_job *job, bool turns)
{
    cs_time slowest = 0;
    for (uint32_t s = 0; s < job->plan->n_stages; s++) {
        const cs_layer_sum *sum = &job->stages[s];
        const cs_time parts[] = {sum->forward,
                                 cs_pipeline_add(sum->backward_input, sum->backward_weight),
                                 cs_states_update(job, s)};
        cs_time own = 0;
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
            own = cs_pipeline_add(own, cs_pipeline_time(job, s, parts[i]));
        own /= turns ? job->plan->stages[s].n_devices : 1;
        slowest = own > slowest ? own : slowest;
    }
    return slowest;
}

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    cs_pipeline_times times;
    cs_pipeline_times_of(job, &times);
    bool turns = takes_turns(job);
    cs_form period = {.figure = CS_FIGURE_ITERATION_TIME,
                      .device = CS_NONE,
                      .exact = slowest_stage(job, turns),
                      .formula = "f + b, and the update, per mini-batch",
                      .source = source,
                      .applies = times.equal && times.free_messages && !turns &&
                                 job->iterations >= 4 * job->plan->n_stages,
                      .assumes = "equal stages (here: the slowest), free messages, a steady state"};
    if (turns) {
        period.formula = "(f + b, and the update)/R on the slowest stage, per mini-batch";
        period.assumes = "replicas that need not wait for each other (schedules/pipedream.md)";
    }
    CS_TRY(cs_forms_add(forms, &period, error));
    return add_versions(job, &times, ((const pipedream_params *)params)->vertical_sync, forms,
                        error);
}

const cs_schedule cs_schedule_pipedream = {
    .name = "pipedream",
    .summary = "asynchronous pipeline: 1F1B without a flush, weight stashing",
    .source = source,
    .formulas =
        (const cs_formula[]){{CS_FIGURE_ITERATION_TIME, "f + b, and the update, per mini-batch"},
                             {CS_FIGURE_PEAK_VERSIONS, "P - s versions"},
                             {CS_FIGURE_ITERATION_TIME,
                              "(f + b, and the update)/R on the slowest stage, per mini-batch"},
                             {CS_FIGURE_PEAK_VERSIONS, "ceil(D/R) versions"},
                             {CS_FIGURE_PEAK_VERSIONS, "P versions"},
                             {0}},
    .fields = fields,
    .params_size = sizeof(pipedream_params),
    .mesh = {.pipeline = CS_LENGTH_LAYERS, .replicas = replicas},
    .asynchronous = true,
    .micro_batches = CS_ONE_MICRO_BATCH,
    .check = check,
    .generate = generate,
    .closed_forms = closed_forms,
};
