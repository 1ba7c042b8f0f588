/* The best contiguous plan, with at most one stage per device and 1F1B*.
 *
 * Does a plan with period T exist? Stages are chosen from the last layer to the first. All that
 * matters of the later stages is the position in 1F1B*'s groups (groups.h), the paper's V. Joining
 * preserves the order of V, and a larger V never means fewer active micro-batches. So for layers
 * [k, L) in p stages, only the plan with the smallest V is kept:
 *     V(p, k) = min over e > k of (V(p - 1, e) (+) C(e)) (+) U(k, e),
 *               U(k, e) <= T, C(e) <= T, and M(k, e, group) <= memory.
 * This is exact and takes O(P L^2).
 *
 * Which T? If a plan works with T, it works with T + 1: a longer period moves no resource to a
 * later group. (By induction from the last resource: with the longer period a resource joined an
 * earlier group, or the same group, which began no further down the chain.) So bisection over whole
 * picoseconds finds the optimum with at most 61 such programs. Groups change at sums of
 * neighbouring U and C; there are exponentially many, but they need not be listed.
 */
#include "schedules/plan/groups.h"
#include "schedules/plan/planner.h"

/* V(p, k) at [p * (n_layers + 1) + k], and the end of its first stage; group 0: no plan. */
typedef struct search {
    cs_chain chain; /* borrowed; its memory is the one being tried */
    uint32_t most_stages;
    cs_load_group *least;
    uint32_t *ends;
    cs_arena arena;
} search;

static size_t cell(const search *s, uint32_t stages, uint32_t layer)
{
    return (size_t)stages * (s->chain.n_layers + 1) + layer;
}

/* Extends plans by all stages that end at `end` and have `stages` stages after them. */
static void extend(search *s, uint32_t stages, uint32_t end, cs_time period)
{
    cs_load_group behind = s->least[cell(s, stages, end)];
    cs_load_group *row = &s->least[cell(s, stages + 1, 0)];
    uint32_t *ends = &s->ends[cell(s, stages + 1, 0)];
    if (behind.group == 0 || cs_chain_link(&s->chain, end) > period)
        return;
    behind = cs_load_group_join(behind, cs_chain_link(&s->chain, end), period);
    for (uint32_t first = end; first-- > 0;) {
        cs_time load = cs_chain_load(&s->chain, first, end);
        if (load > period)
            return;
        cs_load_group made = cs_load_group_join(behind, load, period);
        if ((row[first].group == 0 || cs_load_group_less(made, row[first])) &&
            cs_chain_fits(&s->chain, first, end, made.group)) {
            row[first] = made;
            ends[first] = end;
        }
    }
}

/* Returns the smallest number of stages of a plan with this period, or 0. */
static uint32_t stages_for(search *s, cs_time period)
{
    uint32_t n_layers = s->chain.n_layers;
    for (size_t i = 0; i < cell(s, s->most_stages + 1, 0); i++)
        s->least[i] = (cs_load_group){0, 0};
    s->least[cell(s, 0, n_layers)] = cs_load_group_first;
    for (uint32_t p = 0; p < s->most_stages; p++) {
        for (uint32_t end = n_layers; end > 0; end--)
            extend(s, p, end, period);
        if (s->least[cell(s, p + 1, 0)].group > 0)
            return p + 1;
    }
    return 0;
}

/* Finds bounds of the period. No plan is faster than `low`: the largest layer, or the load over the
 * devices. Every plan that fits with any period also fits with `high`, where all loads and links
 * are in one group. */
static cs_status limits(const cs_chain *chain, cs_time *low, cs_time *high, cs_error *error)
{
    cs_time all = cs_chain_load(chain, 0, chain->n_layers);
    *low = all / chain->n_devices + (all % chain->n_devices > 0);
    *low = *low > 1 ? *low : 1;
    *high = all > 1 ? all : 1;
    for (uint32_t l = 0; l < chain->n_layers; l++) {
        cs_time load = cs_chain_load(chain, l, l + 1);
        *low = load > *low ? load : *low;
        if (!cs_time_add(*high, cs_chain_link(chain, l), high) || *high >= INT64_C(1) << 61)
            return cs_error_add(error, CS_OVERFLOW,
                                "contiguous_optimal: layers and messages take more than 2^61 ps "
                                "(26 days) per micro-batch together");
    }
    return CS_OK;
}

static cs_status search_init(search *s, const cs_chain *chain, cs_error *error)
{
    *s = (search){.chain = *chain,
                  .most_stages =
                      chain->n_devices < chain->n_layers ? chain->n_devices : chain->n_layers};
    cs_arena_init(&s->arena);
    size_t n = cell(s, s->most_stages + 1, 0);
    s->least = cs_arena_alloc(&s->arena, n, sizeof(*s->least));
    s->ends = cs_arena_alloc(&s->arena, n, sizeof(*s->ends));
    return s->least && s->ends ? CS_OK : cs_error_no_memory(error);
}

/* Makes the plan that stages_for found last. */
static cs_status make_plan(search *s, uint32_t n_stages, cs_plan *plan, cs_error *error)
{
    uint32_t *cuts = cs_arena_alloc(&s->arena, (size_t)n_stages + 1, sizeof(*cuts));
    if (!cuts)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n_stages; i++)
        cuts[i + 1] = s->ends[cell(s, n_stages - i, cuts[i])];
    return cs_plan_pipeline(cuts, n_stages, plan, error);
}

/* Reports the least memory that allows a plan. */
static cs_status nothing_fits(search *s, cs_time period, cs_error *error)
{
    int64_t has = s->chain.memory, low = has > 0 ? has : 0, high = INT64_MAX;
    cs_plan plan = {0};
    while (low < high) {
        s->chain.memory = low + (high - low) / 2;
        if (stages_for(s, period) > 0)
            high = s->chain.memory;
        else
            low = s->chain.memory + 1;
    }
    s->chain.memory = low;
    cs_status status = make_plan(s, stages_for(s, period), &plan, error);
    for (uint32_t i = 0; i < plan.n_stages && status == CS_OK; i++) {
        uint32_t first = plan.stages[i].first_layer, end = plan.stages[i].end_layer;
        if (cs_chain_bytes(&s->chain, first, end, 1) == low)
            status = cs_error_add(error, CS_LIMIT,
                                  "no contiguous plan fits %u device%s: at best, device %u needs "
                                  "%lld bytes for layers %u to %u with one active micro-batch, and "
                                  "its memory is %lld",
                                  s->chain.n_devices, s->chain.n_devices == 1 ? "" : "s", i,
                                  (long long)low, first, end - 1, (long long)has);
    }
    cs_plan_finish(&plan);
    return status;
}

static cs_status find(search *s, cs_time low, cs_time high, cs_planned *planned, cs_error *error)
{
    if (stages_for(s, high) == 0)
        return nothing_fits(s, high, error);
    while (low < high) {
        cs_time middle = low + (high - low) / 2;
        if (stages_for(s, middle) > 0)
            high = middle;
        else
            low = middle + 1;
    }
    cs_planned found = {.optimal = true};
    cs_status status = make_plan(s, stages_for(s, low), &found.plan, error);
    if (status == CS_OK)
        status = cs_pattern_1f1b(&s->chain, &found.plan, low, &found.pattern, error);
    if (status == CS_OK)
        *planned = found;
    else
        cs_planned_finish(&found);
    return status;
}

static cs_status plan(const cs_chain *chain, const void *params, cs_planned *planned,
                      cs_error *error)
{
    search s;
    cs_time low, high;
    (void)params;
    CS_TRY(limits(chain, &low, &high, error));
    cs_status status = search_init(&s, chain, error);
    if (status == CS_OK)
        status = find(&s, low, high, planned, error);
    cs_arena_finish(&s.arena);
    return status;
}

static const cs_field no_fields[] = {{0}};

const cs_planner cs_planner_contiguous_optimal = {
    .name = "contiguous_optimal",
    .summary = "the smallest period of all contiguous plans with 1F1B*, exactly",
    .source = "MadPipe (HAL hal-03025305), section 4.1: the best that 1F1B* can do",
    .fields = no_fields,
    .plan = plan,
};
