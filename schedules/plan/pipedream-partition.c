#include "schedules/plan/pipedream-partition.h"

#include "schedules/plan/planner.h"

#include <stdlib.h>

/* Names in the order of cs_memory_rule. */
static const char *const rule_names[] = {"depth", "all", "original", NULL};

static const int64_t none = INT64_MAX; /* value that is worse than all others */

/* least[r][l]: the least possible maximum over the layers from l on, in r stages; rows of n_layers
 * + 1. The maximum of times, or of bytes if no partition fits. */
typedef struct table {
    const cs_chain *chain;
    cs_memory_rule rule;
    bool bytes;
    uint32_t most_stages;
    int64_t *least;
    uint32_t *cuts; /* cuts of the best partition */
    uint32_t n_stages;
    int64_t maximum;
} table;

static int64_t *least_at(const table *t, uint32_t stages, uint32_t layer)
{
    return &t->least[(size_t)stages * (t->chain->n_layers + 1) + layer];
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t cs_pipedream_bytes(const cs_chain *chain, cs_memory_rule rule, uint32_t n_stages,
                           uint32_t i, uint32_t first, uint32_t end)
{
    uint32_t n_devices = chain->n_devices;
    int64_t kept = chain->sum_kept[end] - chain->sum_kept[first];
    int64_t weights = chain->sum_weights[end] - chain->sum_weights[first];
    int64_t active = rule == CS_MEMORY_ALL     ? n_devices
                     : rule == CS_MEMORY_DEPTH ? n_stages - i
                                               : n_devices - i - 1;
    int64_t product, bytes;
    if (__builtin_mul_overflow(active, rule == CS_MEMORY_ORIGINAL ? kept + weights : kept,
                               &product))
        return INT64_MAX;
    if (rule == CS_MEMORY_ORIGINAL)
        return product;
    return __builtin_add_overflow(product, cs_chain_bytes(chain, first, end, 0), &bytes) ? INT64_MAX
                                                                                         : bytes;
}

/* Returns the value of stage i of n, with layers [first, end): the larger of its load and its next
 * boundary's messages, or its bytes if `bytes` is set. */
static int64_t value_of(const table *t, uint32_t n, uint32_t i, uint32_t first, uint32_t end)
{
    int64_t bytes = cs_pipedream_bytes(t->chain, t->rule, n, i, first, end);
    if (t->bytes)
        return bytes;
    if (bytes > t->chain->memory)
        return none;
    return larger(cs_chain_load(t->chain, first, end), cs_chain_link(t->chain, end));
}

/* Fills row `left`: for each layer, partitions the layers from it on into the last `left` of n
 * stages. */
static void fill_row(const table *t, uint32_t n, uint32_t left)
{
    uint32_t n_layers = t->chain->n_layers;
    for (uint32_t first = 0; first <= n_layers; first++) {
        int64_t least = none;
        for (uint32_t end = first + 1; end <= n_layers; end++) {
            int64_t rest = *least_at(t, left - 1, end);
            if (rest >= least)
                continue;
            int64_t value = larger(value_of(t, n, n - left, first, end), rest);
            least = value < least ? value : least;
        }
        *least_at(t, left, first) = least;
    }
}

/* Chooses the shortest stages that stay within the maximum, from the first stage on. */
static void choose(table *t, uint32_t n)
{
    t->n_stages = n;
    t->maximum = *least_at(t, n, 0);
    t->cuts[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = t->cuts[i], end = first + 1;
        while (larger(value_of(t, n, i, first, end), *least_at(t, n - i - 1, end)) > t->maximum)
            end++;
        t->cuts[i + 1] = end;
    }
}

/* Fills all rows, and chooses the best partition. If the rule counts from the last stage, rows are
 * the same for all numbers of stages. */
static void search(table *t)
{
    uint32_t n_layers = t->chain->n_layers;
    for (uint32_t l = 0; l < n_layers; l++)
        *least_at(t, 0, l) = none;
    *least_at(t, 0, n_layers) = 0;
    t->n_stages = 0;
    t->maximum = none;
    for (uint32_t n = 1; n <= t->most_stages; n++) {
        for (uint32_t left = t->rule == CS_MEMORY_ORIGINAL ? 1 : n; left <= n; left++)
            fill_row(t, n, left);
        if (*least_at(t, n, 0) < t->maximum)
            choose(t, n);
    }
}

/* Reports the missing memory of the partition whose fullest device needs the least. */
static cs_status say_what_is_missing(table *t, cs_error *error)
{
    t->bytes = true;
    search(t);
    const cs_chain *chain = t->chain;
    for (uint32_t i = 0; i < t->n_stages; i++) {
        uint32_t first = t->cuts[i], end = t->cuts[i + 1];
        int64_t bytes = cs_pipedream_bytes(chain, t->rule, t->n_stages, i, first, end);
        if (bytes == t->maximum)
            return cs_error_add(error, CS_LIMIT,
                                "no partition fits by the memory rule \"%s\": the one that comes "
                                "closest needs %lld bytes on device %u (layers %u to %u), which "
                                "has %lld for them",
                                rule_names[t->rule], (long long)bytes, i, first, end - 1,
                                (long long)chain->memory);
    }
    return cs_error_add(error, CS_LIMIT,
                        "no partition fits by the memory rule \"%s\": each needs 2^63 bytes",
                        rule_names[t->rule]);
}

static cs_status check_effort(const table *t, cs_error *error)
{
    static const double most_steps = 1e10; /* takes about half a minute */
    double layers = t->chain->n_layers, stages = t->most_stages;
    double rows = t->rule == CS_MEMORY_ORIGINAL ? stages * stages / 2 : stages;
    if (rows * layers * layers / 2 <= most_steps)
        return CS_OK;
    return cs_error_add(error, CS_LIMIT,
                        "cutting %.0f layers into up to %.0f stages by the memory rule \"%s\" "
                        "takes too long",
                        layers, stages, rule_names[t->rule]);
}

cs_status cs_pipedream_partition(const cs_chain *chain, cs_memory_rule rule, cs_plan *plan,
                                 cs_time *promised, cs_error *error)
{
    uint32_t most = chain->n_devices < chain->n_layers ? chain->n_devices : chain->n_layers;
    table t = {.chain = chain, .rule = rule, .most_stages = most};
    cs_status status = check_effort(&t, error);
    if (status != CS_OK)
        return status;
    t.least = calloc(((size_t)most + 1) * ((size_t)chain->n_layers + 1), sizeof(*t.least));
    t.cuts = calloc((size_t)most + 1, sizeof(*t.cuts));
    if (!t.least || !t.cuts) {
        status = cs_error_no_memory(error);
    } else {
        search(&t);
        status = t.n_stages > 0 ? cs_plan_pipeline(t.cuts, t.n_stages, plan, error)
                                : say_what_is_missing(&t, error);
    }
    if (status == CS_OK)
        *promised = t.maximum;
    free(t.least);
    free(t.cuts);
    return status;
}

/* ---- the planner ---- */

typedef struct params {
    uint32_t memory_rule;
} params;

static const cs_field fields[] = {
    {"memory_rule", CS_FIELD_CHOICE, offsetof(params, memory_rule), .fallback = "depth",
     .choices = rule_names,
     .doc = "what the memory of a stage must hold; depth: one active micro-batch per stage from it "
            "to the last; all: one per device; original: a copy of activations and weights per "
            "device behind it"},
    {0},
};

static cs_status make_plan(const cs_chain *chain, const void *params_, cs_planned *planned,
                           cs_error *error)
{
    const params *p = params_;
    cs_planned made = {0};
    cs_status status = cs_pipedream_partition(chain, (cs_memory_rule)p->memory_rule, &made.plan,
                                              &made.promised, error);
    if (status == CS_OK)
        status = cs_pattern_1f1b_fit(chain, &made.plan, &made.pattern, error);
    if (status == CS_OK)
        *planned = made;
    else
        cs_planned_finish(&made);
    return status;
}

const cs_planner cs_planner_pipedream = {
    .name = "pipedream",
    .summary = "contiguous stages that minimise the largest time of a stage or message, then 1F1B*",
    .source = "PipeDream (SOSP 2019) as MadPipe compares itself with it (HAL hal-03025305, "
              "section 5); memory rules: schedules/plan/README.md",
    .fields = fields,
    .params_size = sizeof(params),
    .plan = make_plan,
};
