/* PipeDream's replicated stages (replication.h) on a chain, as a planner. */
#include "schedules/plan/planner.h"
#include "schedules/plan/replication.h"

typedef struct params {
    uint32_t machine;
    double machine_bandwidth;
    uint32_t memory_rule;
} params;

enum { RULE_NONE, RULE_ORIGINAL };
static const char *const rule_names[] = {"none", "original", NULL};

static const cs_field fields[] = {
    {"machine", CS_FIELD_COUNT, offsetof(params, machine), .fallback = "1", .min = 1,
     .max = CS_PLAN_DEVICES - 1,
     .doc = "devices per machine, if there are several machines: the inner of two levels"},
    {"machine_bandwidth", CS_FIELD_BANDWIDTH, offsetof(params, machine_bandwidth), .fallback = "0",
     .doc = "bandwidth within a machine; 0: as between machines"},
    {"memory_rule", CS_FIELD_CHOICE, offsetof(params, memory_rule), .fallback = "none",
     .choices = rule_names,
     .doc =
         "original: the memory of a stage must hold copies of activations and weights, one for "
         "each device behind it per replica; the published optimizer checks this only on request"},
    {0},
};

/* Makes the prefixes of a chain: prefix i is layers [0, i + 1). */
static cs_status make_prefixes(const cs_chain *chain, cs_prefixes *prefixes, cs_error *error)
{
    cs_arena_init(&prefixes->arena);
    prefixes->n = chain->n_layers;
    prefixes->all = cs_arena_alloc(&prefixes->arena, prefixes->n, sizeof(*prefixes->all));
    if (!prefixes->all)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < prefixes->n; i++)
        prefixes->all[i] = (cs_prefix){.time = cs_chain_load(chain, 0, i + 1),
                                       .weight_bytes = chain->sum_weights[i + 1],
                                       .activation_bytes = chain->sum_kept[i + 1],
                                       .crossing_bytes = chain->boundary[i + 1]};
    return CS_OK;
}

static cs_status make_plan(const cs_chain *chain, const void *params_, cs_planned *planned,
                           cs_error *error)
{
    const params *p = params_;
    if (chain->n_devices % p->machine != 0)
        return cs_error_add(error, CS_INVALID,
                            "machine: %u devices are not machines of %u devices each",
                            chain->n_devices, p->machine);
    if (chain->sum_shared && p->machine > 1)
        return cs_error_add(error, CS_INVALID,
                            "machine: must be 1 where replicas share a micro-batch (got %u)",
                            p->machine);
    cs_prefixes prefixes = {0};
    double inner = p->machine_bandwidth > 0 ? p->machine_bandwidth : chain->bandwidth;
    cs_replication_level levels[] = {{p->machine, inner},
                                     {chain->n_devices / p->machine, chain->bandwidth}};
    bool flat = p->machine == 1;
    cs_replication replication = {.prefixes = &prefixes,
                                  .levels = flat ? levels + 1 : levels,
                                  .n_levels = flat ? 1 : 2,
                                  .shared = (const cs_time *const *)chain->sum_shared,
                                  .memory =
                                      p->memory_rule == RULE_NONE ? INT64_MAX : chain->memory};
    cs_planned made = {0};
    cs_status status = make_prefixes(chain, &prefixes, error);
    if (status == CS_OK)
        status = cs_replication_plan(&replication, &made.plan, &made.promised, error);
    cs_prefixes_finish(&prefixes);
    if (status == CS_OK)
        *planned = made;
    return status;
}

const cs_planner cs_planner_pipedream_replicated = {
    .name = "pipedream_replicated",
    .summary = "contiguous stages with replicas, as in PipeDream; no periodic pattern",
    .source = "PipeDream (SOSP 2019), section 3.1, as its published optimizer computes it",
    .fields = fields,
    .params_size = sizeof(params),
    .replicates = true,
    .plan = make_plan,
};
