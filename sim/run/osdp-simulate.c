/* Judges OSDP's plans by simulation instead of the cost model.
 *
 * For one batch size, the cost model proposes a plan for some memory limit. The limit is bisected
 * until the simulated peak is as close to the device's memory as possible, because the simulation
 * counts more (weights gathered ahead, gradients in flight) and less (workspace of one layer at a
 * time). The fastest plan that fits wins. The simulation gathers the sharded part of a layer at
 * once, whatever its slices, so it does not see that slices reduce the surge.
 *
 * Batch sizes: from the largest that fits, B, down to 2 B/(a + 1). By the cost model without
 * latency a smaller one cannot be better: with all operators data parallel it takes 2 C/b + gamma
 * per sample, while B takes at most (a + 1) C/B + gamma. */
#include "sim/run/osdp.h"

#include <stdlib.h>

enum { MOST_STEPS = 8 };

/* ---- documents with a plan ---- */

bool cs_osdp_is_all(const cs_osdp_model *model, const cs_osdp_plan *plan, bool sharded)
{
    for (uint32_t i = 0; i < model->n; i++) {
        const cs_osdp_choice *one = &plan->choices[i];
        if (model->operators[i].weights > 0 &&
            (sharded ? one->sharded < one->slices : one->sharded > 0))
            return false;
    }
    return true;
}

/* Whether layers share a rule: their weights are sharded to the same extent. Layers without weights
 * join any rule. */
static bool joins(const cs_osdp_model *model, const cs_osdp_plan *plan, uint32_t first, uint32_t l)
{
    const cs_osdp_choice *a = &plan->choices[first], *b = &plan->choices[l];
    return model->operators[l].weights == 0 ||
           (uint64_t)a->sharded * b->slices == (uint64_t)b->sharded * a->slices;
}

static bool add_rule(const cs_osdp_choice *choice, uint32_t first, uint32_t last, cJSON *rules)
{
    const double layers[] = {first, last};
    cJSON *rule = cs_json_add_item(rules);
    return rule && cJSON_AddItemToObject(rule, "layers", cJSON_CreateDoubleArray(layers, 2)) &&
           cJSON_AddNumberToObject(rule, "sharded", (double)choice->sharded / choice->slices);
}

cJSON *cs_osdp_rules_json(const cs_osdp_model *model, const cs_osdp_plan *plan)
{
    cJSON *rules = cJSON_CreateArray();
    uint32_t l = 0;
    while (rules && l < model->n) {
        const uint32_t first = l++;
        const cs_osdp_choice *choice = &plan->choices[first];
        while (l < model->n && joins(model, plan, first, l))
            l++;
        if (choice->sharded > 0 && !add_rule(choice, first, l - 1, rules)) {
            cJSON_Delete(rules);
            return NULL;
        }
    }
    return rules;
}

static bool put(cJSON *object, const char *key, cJSON *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    return value && cJSON_AddItemToObject(object, key, value);
}

static bool fill(const cs_osdp_study *study, const cs_osdp_plan *plan, cJSON *root)
{
    cJSON *model = cJSON_GetObjectItemCaseSensitive(root, "model");
    cJSON *parallel = cJSON_GetObjectItemCaseSensitive(root, "parallel");
    const bool sharded = cs_osdp_is_all(&study->model, plan, true);
    const bool data = cs_osdp_is_all(&study->model, plan, false);
    cJSON_DeleteItemFromObjectCaseSensitive(parallel, "rules");
    cJSON_DeleteItemFromObjectCaseSensitive(parallel, "shard"); /* over all devices */
    cJSON_DeleteItemFromObjectCaseSensitive(parallel, "accumulate");
    return put(model, "batch_size", cJSON_CreateNumber((double)plan->batch * study->replicas)) &&
           put(parallel, "zero", cJSON_CreateNumber(sharded ? 3 : 0)) &&
           (data || sharded || put(parallel, "rules", cs_osdp_rules_json(&study->model, plan)));
}

cJSON *cs_osdp_document(const cs_osdp_study *study, const cJSON *document, const cs_osdp_plan *plan)
{
    cJSON *root = cJSON_Duplicate(document, true);
    if (root && fill(study, plan, root))
        return root;
    cJSON_Delete(root);
    return NULL;
}

/* ---- one batch size ---- */

/* Bounds of the cost model's limit. */
typedef struct bracket {
    int64_t fits, fails;
} bracket;

/* Moves the limit by the distance from the desired peak, or bisects if that leaves the bounds. */
static int64_t next_limit(const bracket *b, int64_t at, int64_t away)
{
    const bool beyond = away > 0 && at > INT64_MAX - away;
    if (!beyond && at + away > b->fits && at + away < b->fails)
        return at + away;
    return b->fits + (b->fails - b->fits) / 2;
}

/* Tries the plan for a limit of the cost model, and chooses the next limit. A plan that does not
 * fit would also be proposed for all limits down to its own memory. */
static cs_status try_limit(const cs_osdp_fit *f, uint32_t batch, cs_osdp_rules *rules, bracket *b,
                           cs_arena *arena, cs_osdp_fitted *best, cs_error *error)
{
    const cs_osdp_search how = {.progress = f->progress};
    const int64_t limit = f->rules.limit;
    cs_osdp_fitted one = {0};
    CS_TRY(cs_osdp_find_at(f->model, rules, batch, &how, arena, &one.plan, error));
    if (!one.plan.found) {
        b->fits = rules->limit; /* a larger limit is needed */
        rules->limit = next_limit(b, rules->limit, limit / 8);
        return CS_OK;
    }
    CS_TRY(f->try(f->context, &one, error));
    if (one.peak <= limit) {
        if (!best->plan.found || one.time < best->time)
            *best = one;
        b->fits = rules->limit;
        rules->limit = next_limit(b, rules->limit, limit - one.peak);
    } else {
        b->fails = one.plan.cost.memory;
        rules->limit = next_limit(b, one.plan.cost.memory, limit - one.peak);
    }
    return CS_OK;
}

cs_status cs_osdp_fit_batch(const cs_osdp_fit *fit, uint32_t batch, cs_arena *arena,
                            cs_osdp_fitted *fitted, cs_error *error)
{
    cs_osdp_rules rules = fit->rules;
    bracket b = {0, rules.limit > INT64_MAX / 2 ? INT64_MAX : 2 * rules.limit};
    const bool one = rules.modes != CS_OSDP_ANY && !rules.slices;
    cs_osdp_fitted best = {0};
    if (one || rules.limit == INT64_MAX) {
        rules.limit = INT64_MAX; /* there is only one plan */
        CS_TRY(try_limit(fit, batch, &rules, &b, arena, &best, error));
    } else {
        for (uint32_t step = 0; step < MOST_STEPS && b.fails - b.fits > 1; step++)
            CS_TRY(try_limit(fit, batch, &rules, &b, arena, &best, error));
    }
    *fitted = best;
    return CS_OK;
}

/* ---- by simulation ---- */

typedef struct fitting {
    cs_osdp_study *study;
    const cJSON *document;
    const cs_osdp_options *options;
    cs_osdp_strategy number;
    cs_osdp_row *row;
} fitting;

static cs_status simulate(const void *context, cs_osdp_fitted *plan, cs_error *error)
{
    const fitting *f = context;
    cJSON *root = cs_osdp_document(f->study, f->document, &plan->plan);
    cs_scenario scenario = {0};
    cs_simulation simulation = {0};
    if (!root)
        return cs_error_no_memory(error);
    cs_status status = cs_scenario_read(root, f->study->scenario.file, &scenario, error);
    if (status == CS_OK)
        status = cs_simulate(&scenario, &(cs_simulation_options){.progress = f->options->progress},
                             &simulation, error);
    plan->time = simulation.analysis.iteration_time;
    plan->peak = 0;
    for (uint32_t d = 0; status == CS_OK && d < simulation.trace.n_devices; d++) {
        const int64_t peak = simulation.trace.devices[d].peak;
        plan->peak = peak > plan->peak ? peak : plan->peak;
    }
    cs_simulation_finish(&simulation);
    cs_scenario_finish(&scenario);
    cJSON_Delete(root);
    return status;
}

/* Tries plans for a batch size. Sets `found` if one fits; the row gets the fastest. */
static cs_status fit(const fitting *f, uint32_t batch, bool *found, cs_error *error)
{
    const cs_osdp_fit how = {.model = &f->study->model,
                             .rules = cs_osdp_rules_of(f->study, f->number),
                             .progress = f->options->progress,
                             .try = simulate,
                             .context = f};
    cs_osdp_fitted fitted;
    CS_TRY(cs_osdp_fit_batch(&how, batch, &f->study->arena, &fitted, error));
    *found = fitted.plan.found;
    if (*found) {
        cs_osdp_row *row = f->row;
        const cs_osdp_plan *plan = &fitted.plan;
        const double rate = plan->batch / fitted.time;
        if (!row->fitted.found || !(row->fitted.batch / row->iteration_time >= rate)) {
            row->fitted = *plan;
            row->iteration_time = fitted.time;
            row->peak = fitted.peak;
            cs_osdp_describe(f->study, plan, &row->fitted_fraction, &row->fitted_cut);
        }
    }
    return CS_OK;
}

/* ---- all batch sizes ---- */

static cs_status fit_batches(const fitting *f, cs_error *error)
{
    const uint32_t most = f->options->most_batch;
    uint32_t largest = 0, from = f->row->plan.found ? f->row->plan.batch : 1;
    bool found = false;
    for (uint32_t batch = from; batch > 0 && largest == 0; batch--) {
        CS_TRY(fit(f, batch, &found, error));
        largest = found ? batch : 0;
    }
    if (largest == from) {
        for (uint32_t batch = from + 1; batch <= most && found; batch++) {
            CS_TRY(fit(f, batch, &found, error));
            largest = found ? batch : largest;
        }
    }
    const uint32_t least = 2 * largest / (f->study->model.gathers + 1);
    const uint32_t tried = largest < from ? largest : from;
    for (uint32_t batch = tried; batch > 1 && batch - 1 > least; batch--)
        CS_TRY(fit(f, batch - 1, &found, error));
    return CS_OK;
}

/* Improves a row with the plan of another row, which is also allowed in this one. */
static void take_over(cs_osdp_study *study, cs_osdp_strategy from, cs_osdp_strategy to)
{
    const cs_osdp_row *other = &study->rows[from];
    cs_osdp_row *row = &study->rows[to];
    if (!other->fitted.found ||
        cs_osdp_simulated_throughput(study, to) >= cs_osdp_simulated_throughput(study, from))
        return;
    row->fitted = other->fitted;
    row->iteration_time = other->iteration_time;
    row->peak = other->peak;
    row->fitted_fraction = other->fitted_fraction;
    row->fitted_cut = other->fitted_cut;
}

cs_status cs_osdp_simulate(cs_osdp_study *study, const cJSON *document,
                           const cs_osdp_options *options, cs_error *error)
{
    for (uint32_t r = 0; r < CS_N_OSDP_ROWS; r++) {
        cs_osdp_row *row = &study->rows[r];
        const fitting f = {study, document, options, r, row};
        bool found;
        if (r == CS_OSDP_ROW_DEPTH_FIRST || !row->asked)
            continue;
        const uint32_t same = study->rows[CS_OSDP_ROW_FSDP].fitted.batch;
        if (r != CS_OSDP_ROW_BASE_SAME)
            CS_TRY(fit_batches(&f, error));
        else if (same > 0)
            CS_TRY(fit(&f, same, &found, error));
    }
    static const struct {
        cs_osdp_strategy from, to;
    } parts[] = {
        {CS_OSDP_ROW_FSDP, CS_OSDP_ROW_FSDP_SLICED}, {CS_OSDP_ROW_FSDP, CS_OSDP_ROW_BASE_SAME},
        {CS_OSDP_ROW_DATA, CS_OSDP_ROW_BASE},        {CS_OSDP_ROW_BASE_SAME, CS_OSDP_ROW_BASE},
        {CS_OSDP_ROW_BASE, CS_OSDP_ROW_OSDP},        {CS_OSDP_ROW_FSDP_SLICED, CS_OSDP_ROW_OSDP}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        take_over(study, parts[i].from, parts[i].to);
    return CS_OK;
}
