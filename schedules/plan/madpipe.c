/* The planner madpipe. The second phase gives each allocation of the first phase a pattern, until
 * no remaining allocation promises a shorter period than the best valid pattern has. */
#include "schedules/plan/groups.h"
#include "schedules/plan/madpipe-dp.h"
#include "schedules/plan/periodic-program.h"
#include "schedules/plan/planner.h"

#include <stdlib.h>

typedef struct madpipe_params {
    cs_madpipe_options search;
    cs_time time_limit;
    uint32_t node_limit;
} madpipe_params;

static const char *const roundings[] = {"up", "nearest", "down", NULL};
static const char *const specials[] = {"optimistic", "safe", "none", NULL};

static const cs_field fields[] = {
    {"loads", CS_FIELD_COUNT, offsetof(madpipe_params, search.loads), .fallback = "101", .min = 2,
     .max = 1000000, .doc = "grid points for the load of the special device"},
    {"memories", CS_FIELD_COUNT, offsetof(madpipe_params, search.memories), .fallback = "11",
     .min = 2, .max = 1000000, .doc = "grid points for the memory of the special device"},
    {"delays", CS_FIELD_COUNT, offsetof(madpipe_params, search.delays), .fallback = "51", .min = 2,
     .max = 1000000, .doc = "grid points for delays between forward and backward"},
    {"rounding", CS_FIELD_CHOICE, offsetof(madpipe_params, search.rounding), .fallback = "up",
     .choices = roundings, .doc = "rounding to the grids; only up never underestimates"},
    {"special", CS_FIELD_CHOICE, offsetof(madpipe_params, search.special), .fallback = "safe",
     .choices = specials,
     .doc = "micro-batches charged to the device with several stages; optimistic: g - 1; safe: g; "
            "none: there is no such device"},
    {"iterations", CS_FIELD_COUNT, offsetof(madpipe_params, search.iterations), .fallback = "10",
     .min = 1, .max = 1000, .doc = "K: target periods tried by bisection"},
    {"scan", CS_FIELD_COUNT, offsetof(madpipe_params, search.scan), .fallback = "0", .max = 100000,
     .doc = "additional target periods, evenly spread"},
    {"time_limit", CS_FIELD_TIME, offsetof(madpipe_params, time_limit), .fallback = "60 s",
     .doc = "time limit of the integer program, for each allocation; 0: none"},
    {"node_limit", CS_FIELD_COUNT, offsetof(madpipe_params, node_limit), .fallback = "0",
     .max = INT32_MAX,
     .doc = "limit on the nodes of its search tree, for each allocation; 0: none"},
    {0},
};

/* Joins neighbouring stages of one device. */
static cs_status join(const cs_plan *plan, cs_plan *joined, cs_error *error)
{
    uint32_t n = 0, *cuts = calloc((size_t)plan->n_stages + 1, sizeof(*cuts));
    uint32_t *devices = calloc(plan->n_stages, sizeof(*devices));
    cs_status status = cuts && devices ? CS_OK : cs_error_no_memory(error);
    for (uint32_t s = 0; s < plan->n_stages && status == CS_OK; s++) {
        if (n == 0 || plan->devices[s] != devices[n - 1])
            devices[n++] = plan->devices[s];
        cuts[n] = plan->stages[s].end_layer;
    }
    if (status == CS_OK)
        status = cs_plan_pipeline(cuts, n, joined, error);
    for (uint32_t s = 0; s < n && status == CS_OK; s++)
        joined->devices[s] = devices[s];
    free(cuts);
    free(devices);
    return status;
}

/* Whether each device holds one run of layers. Devices are numbered by first use, so a device used
 * again has a lower number. */
static bool contiguous(const cs_plan *plan)
{
    for (uint32_t s = 0; s < plan->n_stages; s++)
        if (plan->devices[s] != s)
            return false;
    return true;
}

typedef struct outcome {
    cs_planned best;    /* best plan so far; period 0: none yet */
    uint32_t undecided; /* allocations whose integer program ran out of time */
} outcome;

static cs_time below(const outcome *so_far)
{
    cs_time period = so_far->best.pattern.period;
    return period > 0 ? period : CS_TIME_MAX;
}

/* Takes ownership of plan and pattern. */
static void keep(outcome *so_far, cs_plan *plan, cs_pattern *pattern)
{
    cs_planned_finish(&so_far->best);
    so_far->best.plan = *plan;
    so_far->best.pattern = *pattern;
    *plan = (cs_plan){0};
    *pattern = (cs_pattern){0};
}

/* Makes the 1F1B* pattern of a contiguous plan. */
static cs_status fit(const cs_chain *chain, cs_plan *plan, outcome *so_far, cs_error *error)
{
    cs_pattern pattern = {0};
    cs_error none;
    cs_error_init(&none);
    cs_status status = cs_pattern_1f1b_fit(chain, plan, &pattern, &none);
    if (status == CS_LIMIT)
        return CS_OK;
    if (status != CS_OK)
        return cs_error_add(error, status, "%s", none.text);
    if (pattern.period < below(so_far))
        keep(so_far, plan, &pattern);
    cs_pattern_finish(&pattern);
    return CS_OK;
}

static cs_status program(const cs_chain *chain, const madpipe_params *params,
                         const cs_madpipe_allocation *of, outcome *so_far, cs_error *error)
{
    const cs_program_options options = {.time_limit = cs_time_seconds(params->time_limit),
                                        .node_limit = (int)params->node_limit,
                                        .below = below(so_far)};
    cs_pattern pattern = {0};
    cs_plan plan = {0};
    cs_program_end end;
    cs_status status = cs_pattern_program(chain, &of->plan, &options, &pattern, &end, error);
    if (status != CS_OK)
        return status;
    so_far->undecided += end == CS_PROGRAM_UNKNOWN;
    if (pattern.period > 0 && pattern.period < below(so_far)) {
        status = cs_plan_copy(&of->plan, &plan, error);
        if (status == CS_OK)
            keep(so_far, &plan, &pattern);
    }
    cs_pattern_finish(&pattern);
    return status;
}

/* Makes the best pattern of an allocation. 1F1B* is optimal if each device holds one run of layers.
 * The integer program is needed only if a device holds several runs, or if the first phase split a
 * run, whose parts may need less memory. */
static cs_status schedule(const cs_chain *chain, const madpipe_params *params,
                          const cs_madpipe_allocation *of, outcome *so_far, cs_error *error)
{
    cs_plan joined = {0};
    cs_status status = join(&of->plan, &joined, error);
    if (status != CS_OK)
        return status;
    bool one_run_each = contiguous(&joined), cut = joined.n_stages < of->plan.n_stages;
    if (one_run_each)
        status = fit(chain, &joined, so_far, error);
    if (status == CS_OK && (!one_run_each || (cut && of->promised < below(so_far))))
        status = program(chain, params, of, so_far, error);
    cs_plan_finish(&joined);
    return status;
}

/* ---- what does not fit ---- */

typedef struct need {
    uint32_t device, n_stages;
    int64_t bytes;
} need;

static int64_t buffers(const cs_chain *chain, const cs_plan *plan, uint32_t stage)
{
    int64_t bytes = 0;
    if (cs_pattern_has(plan, stage, CS_PATTERN_SEND))
        bytes += chain->boundary[plan->stages[stage].end_layer];
    if (stage > 0 && cs_pattern_has(plan, stage - 1, CS_PATTERN_SEND))
        bytes += chain->boundary[plan->stages[stage].first_layer];
    return 2 * bytes;
}

static void add_stage(const cs_chain *chain, const cs_plan *plan, uint32_t s, int64_t micro,
                      need *to)
{
    const cs_stage *stage = &plan->stages[s];
    int64_t kept = chain->sum_kept[stage->end_layer] - chain->sum_kept[stage->first_layer];
    int64_t fixed = chain->sum_fixed[stage->end_layer] - chain->sum_fixed[stage->first_layer];
    to->n_stages++;
    if (__builtin_mul_overflow(kept, micro, &kept) ||
        __builtin_add_overflow(to->bytes, kept, &to->bytes) ||
        __builtin_add_overflow(to->bytes, fixed + buffers(chain, plan, s), &to->bytes))
        to->bytes = INT64_MAX;
}

/* Finds the device that needs most memory with the active micro-batches of groups of this period;
 * no stage or message is longer. */
static cs_status largest_need(const cs_chain *chain, const cs_plan *plan, cs_time period,
                              need *largest, cs_error *error)
{
    need *needs = calloc(plan->n_stages, sizeof(*needs));
    if (!needs)
        return cs_error_no_memory(error);
    cs_load_group group = cs_load_group_first;
    for (uint32_t s = plan->n_stages; s-- > 0;) {
        const cs_stage *stage = &plan->stages[s];
        group = cs_load_group_join(
            group, cs_chain_load(chain, stage->first_layer, stage->end_layer), period);
        add_stage(chain, plan, s, group.group, &needs[plan->devices[s]]);
        group = cs_load_group_join(group, cs_chain_link(chain, stage->first_layer), period);
    }
    *largest = (need){0};
    for (uint32_t d = 0; d < plan->n_stages; d++) {
        needs[d].device = d;
        if (needs[d].bytes > largest->bytes)
            *largest = needs[d];
    }
    free(needs);
    return CS_OK;
}

/* Reports the least memory for which the first phase finds an allocation at its longest target, to
 * 1 part in 256 (each further bit costs a dynamic program), and the device that needs it. */
static cs_status no_allocation(const cs_chain *chain, const cs_madpipe_options *options,
                               cs_error *error)
{
    cs_chain with = *chain;
    cs_madpipe_allocation found = {0};
    need most = {0};
    cs_time total;
    int64_t low = chain->memory, high = INT64_MAX;
    cs_status status = cs_madpipe_total(chain, &total, error);
    while (high - low > low / 256 && status == CS_OK) {
        cs_madpipe_work work = {0};
        cs_madpipe_allocation tried = {0};
        bool known = found.plan.n_stages > 0 || low > INT64_MAX / 2;
        with.memory = known ? low + (high - low) / 2 : 2 * low + 1;
        status = cs_chain_step(chain, "madpipe: memory that it would take", 0, 0, error);
        if (status == CS_OK)
            status = cs_madpipe_dp(&with, options, total, &tried, &work, error);
        if (tried.plan.n_stages > 0) {
            cs_madpipe_allocation_finish(&found);
            found = tried;
            high = with.memory;
        } else {
            low = with.memory + 1;
        }
    }
    if (status == CS_OK && found.plan.n_stages > 0)
        status = largest_need(chain, &found.plan, found.promised, &most, error);
    cs_madpipe_allocation_finish(&found);
    if (status != CS_OK)
        return status;
    return cs_error_add(error, CS_LIMIT,
                        "no allocation of %u layers to %u devices fits: at best, device %u needs "
                        "%lld bytes for its stages (%u), with the longest period, and its memory "
                        "is %lld",
                        chain->n_layers, chain->n_devices, most.device, (long long)most.bytes,
                        most.n_stages, (long long)chain->memory);
}

static cs_status no_pattern(const cs_chain *chain, const cs_madpipe_allocations *found,
                            const outcome *so_far, cs_error *error)
{
    need most;
    const cs_madpipe_allocation *last = &found->all[found->n - 1];
    CS_TRY(largest_need(chain, &last->plan, last->promised, &most, error));
    return cs_error_add(error, CS_LIMIT,
                        "no pattern that fits was found for any of the allocations (%u, of them %u "
                        "not decided in time): in the last, of %.9g s, device %u would need %lld "
                        "bytes for its stages (%u), and its memory is %lld",
                        found->n, so_far->undecided, cs_time_seconds(last->promised), most.device,
                        (long long)most.bytes, most.n_stages, (long long)chain->memory);
}

static cs_status plan(const cs_chain *chain, const void *params, cs_planned *planned,
                      cs_error *error)
{
    const madpipe_params *with = params;
    outcome so_far = {0};
    cs_madpipe_allocations found;
    cs_status status = cs_madpipe_allocate(chain, &with->search, &found, error);
    if (status != CS_OK)
        return status;
    if (found.n == 0)
        status = no_allocation(chain, &with->search, error);
    for (uint32_t i = 0; i < found.n && status == CS_OK; i++) {
        if (found.all[i].promised >= below(&so_far))
            break;
        status = cs_chain_step(chain, "madpipe: patterns", i, found.n, error);
        if (status == CS_OK)
            status = schedule(chain, with, &found.all[i], &so_far, error);
    }
    if (status == CS_OK && so_far.best.pattern.period == 0)
        status = no_pattern(chain, &found, &so_far, error);
    if (status == CS_OK) {
        so_far.best.promised = found.all[0].promised;
        *planned = so_far.best;
    } else {
        cs_planned_finish(&so_far.best);
    }
    cs_madpipe_allocations_finish(&found);
    return status;
}

const cs_planner cs_planner_madpipe = {
    .name = "madpipe",
    .summary = "one device may hold several stages: a dynamic program, then an integer program",
    .source = "MadPipe (HAL hal-03025305), sections 4.2 and 4.3, algorithm 1",
    .fields = fields,
    .params_size = sizeof(madpipe_params),
    .plan = plan,
};
