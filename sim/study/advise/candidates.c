#include "sim/study/advise/candidates.h"

#include "sim/base/text-stream.h"
#include "sim/base/text.h"
#include "sim/base/vector.h"
#include "sim/model/paradl.h"
#include "sim/run/scenario/planning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_VALUES = 64, /* largest number of values of an axis */
    MOST_MICRO_SAMPLES = 16,
    LEAST_TOKENS = 4096, /* tokens of a sequence that each device has with context parallelism */
    MOST_CONTEXT = 16,
    MOST_PARTS = 16, /* largest number of parts of an image */
    MOST_FILTERS = 64,
    NODE_DEVICES = 8, /* default if the platform does not tell */
    USUAL_BUCKET = 25 << 20,
    FULLY_SHARDED = 3,
    EACH_UP_TO = 64, /* largest number of unequal devices that are all simulated */
};

/* Adds references to the members of `from`, except those in the NULL-terminated list `but`. Adds
 * none if `from` is not an object. */
static bool refer(cJSON *to, const cJSON *from, const char *const *but)
{
    for (const cJSON *at = cJSON_IsObject(from) ? from->child : NULL; at; at = at->next) {
        size_t i = 0;
        while (but[i] && strcmp(but[i], at->string) != 0)
            i++;
        if (!but[i] && !cJSON_AddItemReferenceToObject(to, at->string, (cJSON *)(uintptr_t)at))
            return false;
    }
    return true;
}

static bool add_count(cJSON *object, const char *key, uint64_t value)
{
    return cJSON_AddNumberToObject(object, key, (double)value) != NULL;
}

/* ---- the scenario itself ---- */

/* Returns a number of a section; 0 if it is not a valid count. */
static uint32_t count_at(const cJSON *document, const char *section, const char *key)
{
    const cJSON *value = cs_json_member(cs_json_member(document, section), key);
    const bool is_count =
        cJSON_IsNumber(value) && value->valuedouble >= 1 && value->valuedouble <= UINT32_MAX;
    return is_count ? (uint32_t)value->valuedouble : 0;
}

/* Keys of the section "parallel" that candidates decide. */
static const char *const decided[] = {"tensor",
                                      "sequence_parallel",
                                      "filter",
                                      "channel",
                                      "space",
                                      "context",
                                      "data",
                                      "pipeline",
                                      "expert",
                                      "zero",
                                      "shard",
                                      "order",
                                      "ranks",
                                      "fold",
                                      "expert_tensor",
                                      "bucket",
                                      NULL};

/* Makes the scenario with data parallelism instead of its own plan. */
static cJSON *undivided_document(const cJSON *document)
{
    static const char *const replaced[] = {"model", "parallel", "schedule", NULL};
    static const char *const batch[] = {"batch_size", NULL};
    cJSON *made = cJSON_CreateObject();
    cJSON *model = cJSON_AddObjectToObject(made, "model");
    cJSON *parallel = cJSON_AddObjectToObject(made, "parallel");
    cJSON *schedule = cJSON_AddObjectToObject(made, "schedule");
    if (model && parallel && schedule && refer(made, document, replaced) &&
        refer(model, cs_json_member(document, "model"), batch) &&
        add_count(model, "batch_size", count_at(document, "platform", "devices")) &&
        refer(parallel, cs_json_member(document, "parallel"), decided) &&
        cJSON_AddStringToObject(schedule, "kind", "sequential"))
        return made;
    cJSON_Delete(made);
    return NULL;
}

/* Whether a section is absent or an object, as required. */
static bool is_section(const cJSON *document, const char *name)
{
    const cJSON *section = cs_json_member(document, name);
    return !section || cJSON_IsObject(section);
}

static cs_status read_once(const cJSON *document, const char *path, bool unplanned,
                           cs_scenario *scenario, cs_error *error)
{
    return unplanned ? cs_scenario_read_unplanned(document, path, scenario, error)
                     : cs_scenario_read(document, path, scenario, error);
}

cs_status cs_advise_read_itself(const cJSON *document, const char *path, bool unplanned,
                                cs_scenario *scenario, bool *replaced, cs_error *error)
{
    cs_error own, other;
    cs_error_init(&own);
    cs_error_init(&other);
    cs_status status = read_once(document, path, unplanned, scenario, &own), again = status;
    const bool replaces = status == CS_INVALID && count_at(document, "platform", "devices") > 0 &&
                          count_at(document, "model", "batch_size") > 0 &&
                          is_section(document, "parallel") && is_section(document, "schedule");
    if (replaces) {
        cJSON *undivided = undivided_document(document);
        if (!undivided)
            return cs_error_no_memory(error);
        again = read_once(undivided, path, unplanned, scenario, &other);
        cJSON_Delete(undivided);
    }
    if (replaced)
        *replaced = replaces;
    if (again != CS_OK)
        cs_error_add_all(error, again == status ? &own : &other);
    return again;
}

/* ---- the base ---- */

static uint32_t experts_of(const cs_net *net)
{
    for (uint32_t i = 0; i < net->n_ops; i++)
        if (net->ops[i].experts > 0)
            return net->ops[i].experts;
    return 1;
}

static void take_model(const cs_scenario *scenario, const cJSON *document, cs_advise_base *base)
{
    const cJSON *model = cs_json_member(document, "model");
    const cJSON *listed = cs_json_member(model, "recompute_operators");
    base->n_layers = scenario->model->n_layers;
    base->tokens = scenario->model->work.tokens_per_sample;
    base->batch_size = scenario->batch_size;
    base->divisible = scenario->net != NULL;
    base->n_experts = scenario->net ? experts_of(scenario->net) : 1;
    base->space_rank = scenario->net ? cs_paradl_space_rank(scenario->net) : 0;
    base->lists_operators = cJSON_GetArraySize(listed) > 0;
    base->has_rules = cs_json_member(cs_json_member(document, "parallel"), "rules") != NULL;
    base->says_bucket =
        cs_json_member(cs_json_member(document, "parallel"), "bucket") || base->rules.decides;
}

cs_status cs_advise_base_read(const cJSON *document, const char *path, cs_arena *arena,
                              cs_advise_base *base, cs_error *error)
{
    cs_scenario scenario = {0};
    bool replaced;
    *base = (cs_advise_base){.document = document, .path = path};
    CS_TRY(cs_advise_section_read(cs_json_member(document, "advise"), path, arena, &base->section,
                                  error));
    CS_TRY(cs_runtime_rules_load(document, path, arena, &base->rules, error));
    CS_TRY(cs_advise_read_itself(document, path, true, &scenario, &replaced, error));
    take_model(&scenario, document, base);
    cs_status status = CS_OK;
    if (scenario.net && !base->lists_operators)
        status = cs_selective_find(scenario.net, arena, &base->selective, error);
    if (replaced)
        base->batch_size = count_at(document, "model", "batch_size");
    base->devices = scenario.platform.n_devices;
    base->node_devices = scenario.platform.node_devices;
    cs_scenario_finish(&scenario);
    return status;
}

/* ---- values of axes ---- */

typedef struct values {
    uint32_t n, items[MOST_VALUES];
} values;

static void add_value(values *to, uint32_t value)
{
    if (to->n < MOST_VALUES)
        to->items[to->n++] = value;
}

static values only(uint32_t value)
{
    return (values){1, {value}};
}

/* Takes the values that the section lists. Returns false if it lists none. */
static bool take_listed(const cs_list *list, values *to)
{
    *to = (values){0};
    for (uint32_t i = 0; i < list->n; i++)
        add_value(to, ((const uint32_t *)list->items)[i]);
    return list->n > 0;
}

/* Returns the values that the section lists, or else the divisors of `of` up to `most`. */
static values divisors_or(const cs_list *list, uint32_t of, uint64_t most)
{
    values found;
    if (take_listed(list, &found))
        return found;
    for (uint32_t d = 1; d <= of && d <= most; d++)
        if (of % d == 0)
            add_value(&found, d);
    return found;
}

/* Returns the values that the section lists, or else 0 to `n` - 1, except those with a bit in
 * `leave_out`. */
static values choices_or(const cs_list *list, uint32_t n, uint32_t leave_out)
{
    values found;
    if (take_listed(list, &found))
        return found;
    for (uint32_t i = 0; i < n; i++)
        if ((leave_out >> i & 1) == 0)
            add_value(&found, i);
    return found;
}

static values powers_or(const cs_list *list, uint32_t from, uint32_t most)
{
    values found;
    if (take_listed(list, &found))
        return found;
    for (uint32_t v = from; v <= most; v *= 2)
        add_value(&found, v);
    return found;
}

static values schedules_or(const cs_list *list)
{
    values found;
    if (take_listed(list, &found))
        return found;
    for (uint32_t i = 0; cs_schedules[i]; i++)
        if (cs_schedules[i]->search == CS_SEARCH_ALWAYS)
            add_value(&found, i);
    return found;
}

/* ---- the product ---- */

/* Values of each axis for a given number of devices. */
typedef struct axes {
    values layers[3]; /* sizes per cs_advise_method */
    values space, context, pipeline, expert, zero, micro, schedules, recompute, inner;
} axes;

static bool is_selective(const cs_advise_base *base)
{
    return base->lists_operators || base->selective.n > 0;
}

static axes axes_of(const cs_advise_base *base, uint32_t devices)
{
    const cs_advise_section *s = &base->section;
    const bool images = base->space_rank > 0, tokens = base->divisible && !images;
    const uint32_t node = base->node_devices > 0 ? base->node_devices : NODE_DEVICES;
    const uint32_t sequences = base->tokens / LEAST_TOKENS;
    const uint32_t context = sequences < MOST_CONTEXT ? sequences : MOST_CONTEXT;
    return (axes){
        .layers = {divisors_or(&s->tensor, devices, tokens ? node : 1),
                   divisors_or(&s->filter, devices, images ? MOST_FILTERS : 1),
                   divisors_or(&s->channel, devices, images ? MOST_FILTERS : 1)},
        .space = divisors_or(&s->space, devices, images ? MOST_PARTS : 1),
        .context = divisors_or(&s->context, devices, tokens && context > 1 ? context : 1),
        .pipeline = divisors_or(&s->pipeline, devices, base->n_layers),
        .expert = divisors_or(&s->expert, base->n_experts, devices),
        .zero = choices_or(&s->zero, 4, 0),
        .micro = powers_or(&s->micro_batch, 1, MOST_MICRO_SAMPLES),
        .schedules = schedules_or(&s->schedules),
        .recompute = choices_or(&s->recompute, CS_N_RECOMPUTES,
                                (base->divisible ? 0u : 1u << CS_RECOMPUTE_FULL) |
                                    (is_selective(base) ? 0u : 1u << CS_RECOMPUTE_SELECTIVE)),
        .inner = choices_or(&s->inner, CS_N_ADVISE_ORDERS, 0),
    };
}

typedef struct making {
    const cs_advise_base *base;
    const axes *axes;
    cs_candidates *to;
    cs_error *error;
} making;

static cs_status push(const cs_advise_base *base, const cs_candidate *candidate, cs_candidates *to,
                      cs_error *error)
{
    if (to->n == CS_CANDIDATES_MAX)
        return cs_error_add(error, CS_LIMIT,
                            "%s: /advise: has more than %d plans to try: list fewer values",
                            base->path, CS_CANDIDATES_MAX);
    if (!cs_vector_reserve((void **)&to->items, &to->capacity, to->n + UINT64_C(1),
                           sizeof(*to->items)))
        return cs_error_no_memory(error);
    to->items[to->n++] = *candidate;
    return CS_OK;
}

/* ---- rules of the runtime ---- */

typedef struct ruled {
    const cs_advise_base *base;
    const cs_candidate *candidate;
} ruled;

/* Returns values that the candidate decides, and the scenario's for all other keys. */
static const cJSON *value_of(void *context, const char *key, cJSON *made)
{
    const cs_candidate *c = ((const ruled *)context)->candidate;
    const struct {
        const char *key;
        uint32_t size;
    } sizes[] = {{"/parallel/tensor", c->method == CS_BY_TENSOR ? c->layer : 1},
                 {"/parallel/filter", c->method == CS_BY_FILTER ? c->layer : 1},
                 {"/parallel/channel", c->method == CS_BY_CHANNEL ? c->layer : 1},
                 {"/parallel/space", c->space},
                 {"/parallel/context", c->context},
                 {"/parallel/pipeline", c->pipeline},
                 {"/parallel/data", c->data},
                 {"/parallel/expert", c->expert},
                 {"/parallel/zero", c->zero},
                 {"/schedule/micro_batches", c->micro_batches}};
    *made = (cJSON){.type = cJSON_True};
    if (strcmp(key, "/schedule/kind") == 0) {
        made->type = cJSON_String;
        made->valuestring = (char *)(uintptr_t)cs_schedule_names[c->schedule];
        return made;
    }
    if (strcmp(key, "/parallel/rules") == 0 && c->more)
        return made;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (strcmp(sizes[i].key, key) == 0) {
            made->type = cJSON_Number;
            made->valuedouble = sizes[i].size;
            return made;
        }
    return cs_json_at(((const ruled *)context)->base->document, key);
}

uint32_t cs_candidate_broken_rule(const cs_advise_base *base, const cs_candidate *candidate)
{
    ruled of = {base, candidate};
    return cs_runtime_broken_rule(&base->rules, value_of, &of);
}

static cs_status add(const making *m, const cs_candidate *candidate)
{
    const uint32_t broken = cs_candidate_broken_rule(m->base, candidate);
    if (broken == CS_RUNTIME_RULES_MOST)
        return push(m->base, candidate, m->to, m->error);
    m->to->n_excluded++;
    m->to->excluded[broken]++;
    return CS_OK;
}

cs_status cs_candidates_add(const cs_advise_base *base, const cs_candidate *candidate, cJSON *more,
                            cs_candidates *candidates, cs_error *error)
{
    cs_candidate with = *candidate;
    with.more = more;
    if (!candidates->more)
        candidates->more = cJSON_CreateArray();
    if (!more || !cJSON_AddItemToArray(candidates->more, more)) {
        cJSON_Delete(more);
        return cs_error_no_memory(error);
    }
    return push(base, &with, candidates, error);
}

/* Varies sharding, recomputation, the order of axes, and buckets. */
static cs_status vary_states(const making *m, cs_candidate c)
{
    const axes *a = m->axes;
    const bool shared = c.data * c.context * c.space > 1;
    const bool placed = c.pipeline > 1 && c.data > 1;
    const cs_list *buckets = &m->base->section.bucket;
    const uint32_t n_buckets = buckets->n > 0 ? buckets->n : 1;
    const uint32_t n_inner = placed ? a->inner.n : 1;
    for (uint32_t z = 0; z < (shared ? a->zero.n : 1); z++)
        for (uint32_t r = 0; r < a->recompute.n; r++)
            for (uint32_t o = 0; o < n_inner; o++)
                for (uint32_t b = 0; b < n_buckets; b++) {
                    c.zero = shared ? a->zero.items[z] : 0;
                    c.recompute = a->recompute.items[r];
                    c.inner = placed ? a->inner.items[o] : CS_ORDER_DATA;
                    const bool has_buckets = buckets->n > 0 && c.zero < FULLY_SHARDED;
                    c.bucket = has_buckets ? ((const int64_t *)buckets->items)[b] : CS_BUCKET_GIVEN;
                    if (b == 0 || has_buckets)
                        CS_TRY(add(m, &c));
                }
    return CS_OK;
}

/* Varies the number of stages per rank; each stage has at least one layer. */
static cs_status vary_chunks(const making *m, cs_candidate c)
{
    const cs_schedule *schedule = cs_candidate_schedule(&c);
    const cs_stages_parameter *parameter = &schedule->stages;
    values numbers = only(cs_schedule_stages_per_rank(schedule, 0));
    if (!cs_schedule_has_micro_batches(schedule, c.micro_batches, c.pipeline))
        return CS_OK;
    if (parameter->name && !take_listed(&m->base->section.stages_per_device, &numbers))
        for (uint32_t i = 0; parameter->tried[i] > 0; i++)
            add_value(&numbers, cs_schedule_stages_per_rank(schedule, parameter->tried[i]));
    for (uint32_t i = 0; i < numbers.n; i++) {
        c.chunks = numbers.items[i];
        if ((uint64_t)c.chunks * c.pipeline <= m->base->n_layers &&
            (!parameter->name || c.chunks % parameter->each == 0))
            CS_TRY(vary_states(m, c));
    }
    return CS_OK;
}

static cs_status vary_schedule(const making *m, cs_candidate c)
{
    for (uint32_t i = 0; i < m->axes->schedules.n; i++) {
        c.schedule = m->axes->schedules.items[i];
        if ((cs_candidate_schedule(&c)->mesh.pipeline == CS_LENGTH_ONE) == (c.pipeline == 1))
            CS_TRY(vary_chunks(m, c));
    }
    return CS_OK;
}

/* Varies the micro-batches of a data-parallel rank; without a pipeline, its whole share of the
 * batch may also be one micro-batch. */
static cs_status vary_micro_batch(const making *m, cs_candidate c)
{
    const values *sizes = &m->axes->micro;
    const uint32_t share = m->base->batch_size / c.data;
    bool whole = false;
    if (m->base->batch_size % c.data != 0)
        return CS_OK;
    c.chunks = 1;
    for (uint32_t i = 0; i < sizes->n; i++) {
        c.micro_samples = sizes->items[i];
        c.micro_batches = share / c.micro_samples;
        if (share % c.micro_samples != 0)
            continue;
        whole |= c.micro_batches == 1;
        CS_TRY(vary_schedule(m, c));
    }
    if (whole || c.pipeline > 1 || m->base->section.micro_batch.n > 0)
        return CS_OK;
    c.micro_samples = share;
    c.micro_batches = 1;
    return vary_schedule(m, c);
}

static cs_status vary_experts(const making *m, cs_candidate c)
{
    const uint32_t tensor = c.method == CS_BY_TENSOR ? c.layer : 1;
    const uint32_t places = c.layer * c.space * c.context * c.data;
    for (uint32_t i = 0; i < m->axes->expert.n; i++) {
        c.expert = m->axes->expert.items[i];
        if (places % ((uint64_t)c.expert * tensor) == 0)
            CS_TRY(vary_micro_batch(m, c));
    }
    return CS_OK;
}

static cs_status vary_pipeline(const making *m, cs_candidate c)
{
    const uint64_t inner = (uint64_t)c.layer * c.space * c.context;
    for (uint32_t i = 0; i < m->axes->pipeline.n; i++) {
        c.pipeline = m->axes->pipeline.items[i];
        if (inner * c.pipeline > c.devices || c.devices % (inner * c.pipeline) != 0 ||
            c.pipeline > m->base->n_layers)
            continue;
        c.data = (uint32_t)(c.devices / (inner * c.pipeline));
        CS_TRY(vary_experts(m, c));
    }
    return CS_OK;
}

/* Varies the splitting of layers. Unsplit layers are counted once, not once per method. */
static cs_status vary_layers(const making *m, cs_candidate c)
{
    for (c.method = CS_BY_TENSOR; c.method <= CS_BY_CHANNEL; c.method++) {
        const values *sizes = &m->axes->layers[c.method];
        for (uint32_t i = 0; i < sizes->n; i++) {
            c.layer = sizes->items[i];
            if (c.layer > 1 && c.space > 1)
                continue;
            if (c.layer > 1 || c.method == CS_BY_TENSOR)
                CS_TRY(vary_pipeline(m, c));
        }
    }
    return CS_OK;
}

static cs_status vary_inputs(const making *m, cs_candidate c)
{
    for (uint32_t i = 0; i < m->axes->space.n; i++)
        for (uint32_t k = 0; k < m->axes->context.n; k++) {
            c.space = m->axes->space.items[i];
            c.context = m->axes->context.items[k];
            CS_TRY(vary_layers(m, c));
        }
    return CS_OK;
}

void cs_candidates_finish(cs_candidates *candidates)
{
    free(candidates->items);
    cJSON_Delete(candidates->more);
    *candidates = (cs_candidates){0};
}

cs_status cs_candidates_make(const cs_advise_base *base, cs_candidates *candidates, cs_error *error)
{
    values devices;
    if (!take_listed(&base->section.devices, &devices))
        devices = only(base->devices);
    *candidates = (cs_candidates){0};
    for (uint32_t i = 0; i < devices.n; i++) {
        const axes all = axes_of(base, devices.items[i]);
        const making m = {base, &all, candidates, error};
        const cs_status status = vary_inputs(&m, (cs_candidate){.devices = devices.items[i]});
        if (status != CS_OK) {
            cs_candidates_finish(candidates);
            return status;
        }
    }
    return CS_OK;
}

/* ---- as a scenario ---- */

static bool add_names(cJSON *object, const char *key, const char *const *names, uint32_t n)
{
    cJSON *list = cJSON_AddArrayToObject(object, key);
    bool done = list != NULL;
    for (uint32_t i = 0; done && i < n; i++)
        done = cJSON_AddItemToArray(list, cJSON_CreateString(names[i]));
    return done;
}

/* Adds the operators as members of the section "model", or as pointers to them. */
static bool add_operators(cJSON *object, const char *before, const cs_selective *selective)
{
    char recomputed[64], discarded[64];
    snprintf(recomputed, sizeof(recomputed), "%srecompute_operators", before);
    snprintf(discarded, sizeof(discarded), "%sdiscard_operators", before);
    return add_names(object, recomputed, selective->names, selective->n) &&
           add_names(object, discarded, selective->discards, selective->n_discards);
}

static bool fill_model(const cs_advise_base *base, const cs_candidate *c, cJSON *model)
{
    static const char *const recompute[] = {"recompute", "recompute_operators", "discard_operators",
                                            NULL};
    static const char *const all[] = {"recompute", NULL}, *const nothing[] = {NULL};
    const cJSON *from = cs_json_member(base->document, "model");
    if (!base->divisible)
        return refer(model, from, nothing);
    const bool selective = c->recompute == CS_RECOMPUTE_SELECTIVE;
    return refer(model, from, selective && base->lists_operators ? all : recompute) &&
           (!selective || base->lists_operators || add_operators(model, "", &base->selective)) &&
           (c->recompute != CS_RECOMPUTE_FULL || cJSON_AddTrueToObject(model, "recompute"));
}

static bool fill_platform(const cs_advise_base *base, const cs_candidate *c, cJSON *platform)
{
    const cJSON *from = cs_json_member(base->document, "platform");
    const char *const devices[] = {"devices", base->section.memory > 0 ? "memory" : NULL, NULL};
    if (cJSON_IsString(from) && !cJSON_AddStringToObject(platform, "topology", from->valuestring))
        return false;
    return (cJSON_IsString(from) || refer(platform, from, devices)) &&
           add_count(platform, "devices", c->devices) &&
           (base->section.memory == 0 ||
            cJSON_AddNumberToObject(platform, "memory", (double)base->section.memory));
}

static bool add_order(const cs_candidate *c, cJSON *parallel)
{
    static const char *const orders[CS_N_ADVISE_ORDERS][5] = {
        [CS_ORDER_DATA] = {"tensor", "space", "context", "data", "pipeline"},
        [CS_ORDER_PIPELINE] = {"tensor", "space", "context", "pipeline", "data"}};
    cJSON *list = cJSON_AddArrayToObject(parallel, "order");
    bool done = list != NULL;
    for (size_t i = 0; done && i < 5; i++)
        done = cJSON_AddItemToArray(list, cJSON_CreateString(orders[c->inner][i]));
    return done;
}

static bool add_space(const cs_advise_base *base, const cs_candidate *c, cJSON *parallel)
{
    uint32_t space[CS_SPACE_MAX];
    if (c->space == 1)
        return true;
    cs_paradl_divide_space(c->space, base->space_rank, space);
    cJSON *list = cJSON_AddArrayToObject(parallel, "space");
    bool done = list != NULL;
    for (size_t i = 0; done && i < CS_SPACE_MAX; i++)
        done = cJSON_AddItemToArray(list, cJSON_CreateNumber(space[i]));
    return done;
}

/* Adds the bucket as a reference to the scenario's, unless candidates differ in it. */
static bool add_bucket(const cs_advise_base *base, const cs_candidate *c, cJSON *parallel)
{
    const cJSON *given = cs_json_member(cs_json_member(base->document, "parallel"), "bucket");
    if (c->zero == FULLY_SHARDED) /* the gradients of each layer are reduced separately */
        return true;
    if (c->bucket != CS_BUCKET_GIVEN)
        return cJSON_AddNumberToObject(parallel, "bucket", (double)c->bucket) != NULL;
    if (given)
        return cJSON_AddItemReferenceToObject(parallel, "bucket", (cJSON *)(uintptr_t)given);
    return base->says_bucket || add_count(parallel, "bucket", USUAL_BUCKET);
}

/* Returns how to fold. A few devices are simulated quickly enough without folding unequal ones. */
static const char *fold_of(const cs_advise_base *base, uint32_t devices)
{
    return base->section.exact || devices <= EACH_UP_TO ? "try" : "slowest";
}

bool cs_candidate_may_be_estimated(const cs_advise_base *base, const cs_candidate *candidate)
{
    return strcmp(fold_of(base, candidate->devices), "slowest") == 0;
}

static bool fill_parallel(const cs_advise_base *base, const cs_candidate *c, cJSON *parallel)
{
    static const char *const methods[] = {"tensor", "filter", "channel"};
    const cJSON *from = cs_json_member(base->document, "parallel");
    const bool sequences = c->method == CS_BY_TENSOR && c->layer > 1;
    return refer(parallel, from, decided) && add_count(parallel, methods[c->method], c->layer) &&
           (!sequences || cJSON_AddBoolToObject(parallel, "sequence_parallel",
                                                base->section.sequence_parallel)) &&
           add_space(base, c, parallel) && add_count(parallel, "context", c->context) &&
           add_count(parallel, "pipeline", c->pipeline) && add_count(parallel, "data", c->data) &&
           add_count(parallel, "expert", c->expert) && add_count(parallel, "zero", c->zero) &&
           add_bucket(base, c, parallel) && add_order(c, parallel) &&
           cJSON_AddStringToObject(parallel, "fold", fold_of(base, c->devices));
}

/* Collectives are delays unless the scenario says otherwise, so that plans with few messages are
 * simulated in the same way as plans with many. */
static bool fill_collectives(const cs_advise_base *base, cJSON *collectives)
{
    static const char *const nothing[] = {NULL}, *const fidelity[] = {"fidelity", NULL};
    const cJSON *from = cs_json_member(base->document, "collectives");
    const char *given = cJSON_GetStringValue(cs_json_member(from, "fidelity"));
    if (given && strcmp(given, "auto") != 0)
        return refer(collectives, from, nothing);
    return refer(collectives, from, fidelity) &&
           cJSON_AddStringToObject(collectives, "fidelity", "analytic");
}

static bool fill_schedule(const cs_candidate *c, cJSON *schedule)
{
    const cs_stages_parameter *stages = &cs_candidate_schedule(c)->stages;
    return cJSON_AddStringToObject(schedule, "kind", cs_schedule_names[c->schedule]) &&
           add_count(schedule, "micro_batches", c->micro_batches) &&
           (!stages->name || add_count(schedule, stages->name, c->chunks / stages->each));
}

static bool fill_sections(const cs_advise_base *base, const cs_candidate *c, cJSON *to)
{
    cJSON *model = cJSON_AddObjectToObject(to, "model");
    cJSON *platform = cJSON_AddObjectToObject(to, "platform");
    cJSON *parallel = cJSON_AddObjectToObject(to, "parallel");
    cJSON *schedule = cJSON_AddObjectToObject(to, "schedule");
    cJSON *collectives = cJSON_AddObjectToObject(to, "collectives");
    return model && platform && parallel && schedule && collectives && fill_model(base, c, model) &&
           fill_platform(base, c, platform) && fill_parallel(base, c, parallel) &&
           fill_schedule(c, schedule) && fill_collectives(base, collectives);
}

/* Applies the changes of OSDP, which come last. */
static bool apply_more(const cJSON *more, cJSON *document)
{
    for (const cJSON *at = more ? more->child : NULL; at; at = at->next) {
        char *text = cJSON_PrintUnformatted(at);
        const bool done = text && cs_json_set(document, at->string, text, "", NULL) == CS_OK;
        free(text);
        if (!done)
            return false;
    }
    return true;
}

cJSON *cs_candidate_document(const cs_advise_base *base, const cs_candidate *candidate)
{
    static const char *const replaced[] = {"model",      "platform",    "parallel",
                                           "schedule",   "collectives", "sweep",
                                           "iterations", "advise",      NULL};
    cJSON *document = cJSON_CreateObject();
    if (document && refer(document, base->document, replaced) &&
        add_count(document, "iterations", 1) && fill_sections(base, candidate, document) &&
        apply_more(candidate->more, document))
        return document;
    cJSON_Delete(document);
    return NULL;
}

/* Adds folding of equal devices, if the scenario has a mesh. */
static bool fill_own(const cs_advise_base *base, cJSON *document)
{
    static const char *const fold[] = {"fold", NULL};
    const cJSON *from = cs_json_member(base->document, "parallel");
    cJSON *collectives = cJSON_AddObjectToObject(document, "collectives");
    cJSON *parallel = from ? cJSON_AddObjectToObject(document, "parallel") : NULL;
    return add_count(document, "iterations", 1) && collectives &&
           fill_collectives(base, collectives) &&
           (!from || (parallel && refer(parallel, from, fold) &&
                      cJSON_AddStringToObject(parallel, "fold", fold_of(base, base->devices))));
}

cJSON *cs_own_document(const cs_advise_base *base)
{
    static const char *const replaced[] = {"collectives", "sweep",  "iterations",
                                           "parallel",    "advise", NULL};
    cJSON *document = cJSON_CreateObject();
    if (document && refer(document, base->document, replaced) && fill_own(base, document))
        return document;
    cJSON_Delete(document);
    return NULL;
}

cJSON *cs_candidate_changes(const cs_advise_base *base, const cs_candidate *candidate)
{
    cJSON *changes = cJSON_CreateObject(), *sections = cJSON_CreateObject();
    bool done = changes && sections && fill_sections(base, candidate, sections);
    /* without this, the plan alone would get its usual runtime */
    if (done && base->rules.is_assumed)
        done = cJSON_AddStringToObject(changes, "/runtime", base->rules.runtime);
    if (done && base->divisible)
        done = cJSON_AddBoolToObject(changes, "/model/recompute",
                                     candidate->recompute == CS_RECOMPUTE_FULL);
    if (done && base->lists_operators && candidate->recompute != CS_RECOMPUTE_SELECTIVE)
        done = cJSON_AddArrayToObject(changes, "/model/recompute_operators");
    if (done && !base->lists_operators && candidate->recompute == CS_RECOMPUTE_SELECTIVE)
        done = add_operators(changes, "/model/", &base->selective);
    done = done && add_count(changes, "/platform/devices", candidate->devices) &&
           add_count(changes, "/iterations", 1);
    if (done && base->section.memory > 0)
        done = add_count(changes, "/platform/memory", (uint64_t)base->section.memory);
    for (size_t i = 0; done && i < 3; i++) {
        static const char *const keys[] = {"parallel", "schedule", "collectives"};
        static const char *const pointers[] = {"/parallel", "/schedule", "/collectives"};
        cJSON *part = cJSON_Duplicate(cs_json_member(sections, keys[i]), true);
        done = part && cJSON_AddItemToObject(changes, pointers[i], part);
    }
    for (const cJSON *at = candidate->more ? candidate->more->child : NULL; done && at;
         at = at->next) {
        cJSON *copy = cJSON_Duplicate(at, true);
        done = copy && cJSON_AddItemToObject(changes, at->string, copy);
    }
    cJSON_Delete(sections);
    if (done)
        return changes;
    cJSON_Delete(changes);
    return NULL;
}

/* ---- in words ---- */

typedef struct words {
    char *text;
    size_t size, used;
} words;

static void CS_PRINTF(2, 3) say(words *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(w->text + w->used, w->size - w->used, format, arguments);
    va_end(arguments);
    w->used += n > 0 ? (size_t)n : 0;
    w->used = w->used < w->size ? w->used : w->size - 1;
}

static const char *const method_names[] = {"tensor", "filter", "channel"};

/* Calls `one` with the name and the size of each axis in use. */
static void each_axis(const cs_candidate *c, words *w,
                      void (*one)(words *w, const char *name, uint32_t size))
{
    const struct {
        const char *name;
        uint32_t size;
    } used[] = {{method_names[c->method], c->layer}, {"space", c->space}, {"context", c->context},
                {"pipeline", c->pipeline},           {"data", c->data},   {"expert", c->expert}};
    for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++)
        if (used[i].size > 1)
            one(w, used[i].name, used[i].size);
}

static void say_size(words *w, const char *name, uint32_t size)
{
    if (strcmp(name, "expert") == 0)
        say(w, ", experts over %u", size);
    else
        say(w, "%s%s %u", w->used > 0 ? " x " : "", name, size);
}

static void say_name(words *w, const char *name, uint32_t size)
{
    (void)size;
    say(w, "%s%s", w->used > 0 ? " + " : "", name);
}

char *cs_candidate_text(const cs_candidate *c, char *text, size_t size)
{
    static const char *const recompute[] = {"", ", recomputing selectively", ", recomputing"};
    words w = {text, size, 0};
    text[0] = '\0';
    each_axis(c, &w, say_size);
    if (w.used == 0)
        say(&w, "one device");
    if (c->zero > 0)
        say(&w, ", zero %u", c->zero);
    if (c->more)
        say(&w, ", OSDP with %.3g %% replicated", 100 * c->replicated);
    if (c->inner == CS_ORDER_PIPELINE)
        say(&w, ", pipeline ranks adjacent");
    if (c->bucket > 0)
        say(&w, ", buckets of %.3g MB", (double)c->bucket / 1e6);
    say(&w, "; %s, %u micro-batch%s of %u", cs_schedule_names[c->schedule], c->micro_batches,
        c->micro_batches == 1 ? "" : "es", c->micro_samples);
    if (c->chunks > 1)
        say(&w, ", %u stages a device", c->chunks);
    say(&w, "%s", recompute[c->recompute]);
    return text;
}

char *cs_candidate_strategy(const cs_candidate *c, char *text, size_t size)
{
    words w = {text, size, 0};
    text[0] = '\0';
    each_axis(c, &w, say_name);
    if (w.used == 0)
        say(&w, "one device");
    return text;
}

/* Writes a text in single quotes of a shell. */
static void put_quoted(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
}

static bool put_changes(const cJSON *changes, FILE *out)
{
    for (const cJSON *at = changes->child; at; at = at->next) {
        char *text = cJSON_PrintUnformatted(at);
        if (!text)
            return false;
        fprintf(out, " --set '%s=", at->string);
        put_quoted(text, out);
        fputc('\'', out);
        free(text);
    }
    return true;
}

char *cs_candidate_command(const cs_advise_base *base, const cs_candidate *candidate,
                           const char *path)
{
    cJSON *changes = cs_candidate_changes(base, candidate);
    char *text = NULL;
    size_t length = 0;
    FILE *out = changes ? cs_text_stream(&text, &length) : NULL;
    bool done = out != NULL;
    if (out) {
        fputs("sim run ", out);
        cs_text_print_word(out, path);
        done = put_changes(changes, out);
        done = fclose(out) == 0 && done;
    }
    cJSON_Delete(changes);
    if (done)
        return text;
    free(text);
    return NULL;
}
