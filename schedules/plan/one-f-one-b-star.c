#include "schedules/plan/groups.h"
#include "schedules/plan/pattern.h"

/* Returns the load of a resource: resource 2s is stage s, resource 2s + 1 the link after it. Two
 * stages of one device exchange no message: load 0, which changes no group. */
static cs_time load_of(const cs_chain *chain, const cs_plan *plan, uint32_t resource)
{
    uint32_t stage = resource / 2;
    if (resource % 2 == 1)
        return 2 * cs_pattern_duration(chain, plan, stage, CS_PATTERN_SEND);
    return cs_chain_load(chain, plan->stages[stage].first_layer, plan->stages[stage].end_layer);
}

/* Finds the largest load and the sum of all loads. */
static cs_status measure(const cs_chain *chain, const cs_plan *plan, cs_time *most, cs_time *total,
                         cs_error *error)
{
    *most = *total = 0;
    for (uint32_t r = 0; r + 1 < 2 * plan->n_stages; r++) {
        cs_time load = load_of(chain, plan, r);
        *most = load > *most ? load : *most;
        if (!cs_time_add(*total, load, total) || *total >= INT64_C(1) << 61)
            return cs_error_add(error, CS_OVERFLOW,
                                "1F1B*: stages and messages take more than 2^61 ps (26 days) per "
                                "micro-batch together");
    }
    return CS_OK;
}

static void wrap(cs_pattern *pattern, uint32_t stage, cs_pattern_kind kind, cs_time at)
{
    pattern->ops[(size_t)stage * CS_PATTERN_KINDS + kind] =
        (cs_pattern_op){at % pattern->period, at / pattern->period};
}

/* Places all operations. Each forward starts when its predecessor in the chain ends, so all
 * forwards of micro-batch 0 run without a gap. The backwards of group g also run without a gap; the
 * first starts g - 1 periods after the group's last forward ends. So each group occupies one
 * interval as long as its loads, modulo the period, which is not longer than the period: no
 * resource is used twice at once. The backwards of group g end at most one period after they began,
 * before the backwards of group g + 1 begin. No sum overflows: two consecutive groups exceed the
 * period, so g - 1 periods are less than twice the sum of all loads. */
static void place(const cs_chain *chain, const cs_plan *plan, cs_pattern *pattern)
{
    static const cs_pattern_kind down[2] = {CS_PATTERN_FORWARD, CS_PATTERN_SEND};
    static const cs_pattern_kind up[2] = {CS_PATTERN_BACKWARD, CS_PATTERN_RETURN};
    uint32_t n = 2 * plan->n_stages - 1;
    cs_time at = 0, back = 0; /* at: next forward; back: next backward, after the forward at `at` */
    cs_load_group now = cs_load_group_first;
    for (uint32_t r = 0; r < n; r++) {
        if (cs_pattern_has(plan, r / 2, down[r % 2]))
            wrap(pattern, r / 2, down[r % 2], at);
        at += cs_pattern_duration(chain, plan, r / 2, down[r % 2]);
    }
    back = at;
    for (uint32_t r = n; r-- > 0;) {
        cs_load_group next = cs_load_group_join(now, load_of(chain, plan, r), pattern->period);
        if (next.group > now.group)
            back = at + (next.group - 1) * pattern->period;
        if (cs_pattern_has(plan, r / 2, up[r % 2]))
            wrap(pattern, r / 2, up[r % 2], back);
        back += cs_pattern_duration(chain, plan, r / 2, up[r % 2]);
        at -= cs_pattern_duration(chain, plan, r / 2, down[r % 2]);
        now = next;
    }
}

static cs_status too_long(const cs_chain *chain, const cs_plan *plan, cs_time period,
                          cs_error *error)
{
    uint32_t r = 0;
    while (load_of(chain, plan, r) <= period)
        r++;
    return cs_error_add(error, CS_LIMIT,
                        "1F1B*: %s stage %u take %lld ps per micro-batch, longer than the period "
                        "of %lld ps",
                        r % 2 == 1 ? "the messages behind" : "forward and backward of", r / 2,
                        (long long)load_of(chain, plan, r), (long long)period);
}

cs_status cs_pattern_1f1b(const cs_chain *chain, const cs_plan *plan, cs_time period,
                          cs_pattern *pattern, cs_error *error)
{
    cs_time most, total;
    cs_pattern made = {0};
    if (period <= 0)
        return cs_error_add(error, CS_LIMIT, "1F1B*: the period must be > 0 (got %lld ps)",
                            (long long)period);
    cs_status status = measure(chain, plan, &most, &total, error);
    if (status == CS_OK && most > period)
        status = too_long(chain, plan, period, error);
    if (status == CS_OK)
        status = cs_pattern_create(plan->n_stages, &made, error);
    if (status != CS_OK)
        return status;
    made.period = period;
    place(chain, plan, &made);
    *pattern = made;
    return CS_OK;
}

/* Returns the last stage that does not fit with this period, or n_stages. A stage in group g has g
 * active micro-batches: from the start of its forward to the end of its backward it takes g - 1
 * periods plus the loads of the group up to the stage. These loads are positive because a group
 * opens with a load above 0. (The first group need not, but every stage has at least one active
 * micro-batch.) */
static uint32_t misfit(const cs_chain *chain, const cs_plan *plan, cs_time period)
{
    cs_load_group now = cs_load_group_first;
    for (uint32_t r = 2 * plan->n_stages - 1; r-- > 0;) {
        const cs_stage *stage = &plan->stages[r / 2];
        now = cs_load_group_join(now, load_of(chain, plan, r), period);
        if (r % 2 == 0 && !cs_chain_fits(chain, stage->first_layer, stage->end_layer, now.group))
            return r / 2;
    }
    return plan->n_stages;
}

cs_status cs_pattern_1f1b_fit(const cs_chain *chain, const cs_plan *plan, cs_pattern *pattern,
                              cs_error *error)
{
    cs_time low, high;
    CS_TRY(measure(chain, plan, &low, &high, error));
    low = low > 1 ? low : 1;
    high = high > 1 ? high : 1;
    uint32_t s = misfit(chain, plan, high);
    if (s < plan->n_stages)
        return cs_error_add(error, CS_LIMIT,
                            "device %u needs %lld bytes for stage %u with one active micro-batch, "
                            "and its memory is %lld",
                            cs_plan_device(plan, s),
                            (long long)cs_chain_bytes(chain, plan->stages[s].first_layer,
                                                      plan->stages[s].end_layer, 1),
                            s, (long long)chain->memory);
    while (low < high) {
        cs_time middle = low + (high - low) / 2;
        if (misfit(chain, plan, middle) == plan->n_stages)
            high = middle;
        else
            low = middle + 1;
    }
    return cs_pattern_1f1b(chain, plan, low, pattern, error);
}
