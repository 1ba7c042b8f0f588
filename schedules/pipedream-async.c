/* PipeDream: asynchronous 1F1B. Every mini-batch is one micro-batch, and each stage updates its weights after
 * every backward, without a flush. At most P - s mini-batches are in flight on stage s.
 *
 * Weight stashing: a backward reads the version that its own forward on the stage read. With
 * vertical sync all stages use, for one mini-batch, the version that was current on the first
 * stage when the mini-batch entered there; later stages keep what may still be asked for.
 */
#include "schedules/order-1f1b.h"

static const char source[] = "Narayanan et al., PipeDream, SOSP 2019, sections 3.2 and 3.3";

typedef struct pipedream_params {
    bool vertical_sync;
} pipedream_params;

static const cs_field fields[] = {
    {"vertical_sync", CS_FIELD_BOOL, offsetof(pipedream_params, vertical_sync), .fallback = "false",
     .doc = "all stages use the version that was current on stage 0 when the mini-batch entered"},
    {0},
};

static uint32_t micro_batches(const void *params)
{
    (void)params;
    return 1;
}

/* The forward's version is noted in a register of the stage, and held until the backward. */
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

/* Register 0 has for each mini-batch the version of its injection, held on all stages from then on. */
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
                     const uint32_t *slots, uint32_t stage, cs_stage_policies *made)
{
    if (((const pipedream_params *)params)->vertical_sync)
        synchronise(job, builder, slots, stage, made);
    else
        stash(builder, slots[stage], made);
}

static cs_status generate(const cs_job *job, const void *params, cs_builder *builder,
                          cs_error *error)
{
    cs_pipeline_options options = {
        .order = cs_order_1f1b, .continuous = true, .policies = policies, .params = params};
    return cs_pipeline_generate(job, &options, builder, error);
}

/* In flight at most P - s mini-batches, each with a version of its own. */
static cs_status add_versions(const cs_job *job, bool vertical_sync, cs_forms *forms,
                              cs_error *error)
{
    const cs_plan *plan = job->plan;
    cs_status status = CS_OK;
    for (uint32_t s = 0; s < plan->n_stages && status == CS_OK; s++) {
        cs_form form = {.figure = CS_FIGURE_PEAK_VERSIONS,
                        .device = plan->devices[plan->stages[s].first_device],
                        .exact = cs_order_1f1b_warm_up(plan->n_stages, job->iterations, s),
                        .formula = "P - s versions",
                        .source = source,
                        .applies = !vertical_sync && job->iterations >= 2 * plan->n_stages,
                        .assumes = "weight stashing without vertical sync, a steady state"};
        status = cs_forms_add(forms, &form, error);
    }
    return status;
}

static cs_status closed_forms(const cs_job *job, const void *params, cs_forms *forms,
                              cs_error *error)
{
    cs_pipeline_times times;
    cs_pipeline_times_of(job, &times);
    cs_form period = {.figure = CS_FIGURE_ITERATION_TIME,
                      .device = CS_NONE,
                      .exact = times.forward + times.backward + times.update,
                      .formula = "f + b, and the update, per mini-batch",
                      .source = source,
                      .applies = times.equal && times.free_messages &&
                                 job->iterations >= 4 * job->plan->n_stages,
                      .assumes = "equal stages (here: the slowest), free messages, a steady state"};
    cs_status status = cs_forms_add(forms, &period, error);
    if (status == CS_OK)
        status = add_versions(job, ((const pipedream_params *)params)->vertical_sync, forms, error);
    return status;
}

const cs_schedule cs_schedule_pipedream = {
    .name = "pipedream",
    .summary = "asynchronous pipeline: 1F1B without a flush, weight stashing",
    .source = source,
    .fields = fields,
    .params_size = sizeof(pipedream_params),
    .layout = CS_LAYOUT_PIPELINE,
    .micro_batches = micro_batches,
    .generate = generate,
    .closed_forms = closed_forms,
};
