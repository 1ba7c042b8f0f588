#include "sim/advise/bounds.h"

#include "sim/base/pool.h"
#include "sim/run/simulate.h"
#include "sim/scenario/planning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double margin = 1e-6;

/* ---- bounds of one candidate ---- */

static double most(double a, double b)
{
    return a > b ? a : b;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static bool is_split(const cs_candidate *c)
{
    return c->schedule == CS_ADVISE_ZB_H1 || c->schedule == CS_ADVISE_ZB_H2 ||
           cs_candidate_is_vee(c);
}

/* Stage k of a pipeline rank. */
static uint32_t stage_of(const cs_candidate *c, uint32_t rank, uint32_t k)
{
    const bool up = cs_candidate_is_vee(c) && k == 1;
    return k * c->pipeline + (up ? c->pipeline - 1 - rank : rank);
}

double cs_bound_time(const cs_candidate *c, const cs_priced *priced)
{
    double bound = 0, forwards = 0, backwards = 0;
    for (uint32_t r = 0; r < c->pipeline; r++) {
        double passes = 0;
        for (uint32_t k = 0; k < c->chunks; k++) {
            const cs_stage_price *stage = &priced->stages[stage_of(c, r, k)];
            passes += stage->forward + stage->backward;
        }
        bound = most(bound, forwards + c->micro_batches * passes + (is_split(c) ? 0 : backwards));
        forwards += priced->stages[r].forward;
        backwards += priced->stages[r].backward;
    }
    return bound * (1 - margin);
}

/* What of a stage rests on one place, with the shards that the mesh makes
 * (sim/scenario/build-mesh.c, settle_shards). */
static double resting(const cs_advise_base *base, const cs_candidate *c, const cs_priced *priced,
                      const cs_stage_price *stage)
{
    const bool by_layer = base->has_rules || c->more;
    const cJSON *parallel = cs_json_member(base->document, "parallel");
    const uint32_t zero = by_layer ? 3 : c->zero;
    const cJSON *given = cs_json_member(parallel, "accumulate");
    const bool once = zero == 3 && cJSON_IsTrue(cs_json_member(parallel, "gather_once"));
    const bool accumulate = !by_layer && (given ? cJSON_IsTrue(given) : once);
    const uint32_t places = c->layer * c->space * c->context * c->data;
    const uint32_t tensor = c->method == CS_BY_TENSOR ? c->layer : 1;
    const double shard = zero > 0 ? c->space * c->context * c->data : 1;
    const double experts = zero > 0 ? places / (c->expert * tensor) : 1;
    const double divided = stage->dense / shard + stage->expert / experts;
    const bool wide = zero >= 3 && priced->wide_shards;
    const double weights = wide ? 0 : zero >= 3 ? divided : stage->dense + stage->expert;
    const double ratio = wide && !by_layer ? 2 : priced->gradient_ratio;
    const double gradients = zero >= 2 && !accumulate ? ratio * divided : stage->gradients;
    const bool shares = zero >= 3 && c->expert == 1; /* schedules/states.h */
    const double frozen = shares ? (stage->frozen - stage->cast) / shard : stage->frozen;
    return weights + frozen + gradients + priced->optimizer_ratio * divided;
}

/* n_s of bounds.h, of stage k of a rank. */
static uint32_t n_kept(const cs_candidate *c, uint32_t rank, uint32_t k)
{
    const uint32_t ranks = c->pipeline, n = c->micro_batches;
    const uint32_t groups = n / ranks, first = groups > 0 ? (n + groups - 1) / groups : n;
    switch ((cs_advise_schedule)c->schedule) {
    case CS_ADVISE_GPIPE:
        return n;
    case CS_ADVISE_1F1B:
        return least(ranks - rank, n);
    case CS_ADVISE_ZB_H1:
        return least(ranks, n);
    case CS_ADVISE_ZB_H2:
        return least(2 * ranks - 1, n);
    case CS_ADVISE_INTERLEAVED:
        return k + 1 < c->chunks ? first : least(2 * (ranks - 1 - rank) + 1, first);
    case CS_ADVISE_ZB_V:
        return least(k == 0 ? 2 * ranks - 1 - rank : rank + 1, n);
    case CS_ADVISE_DUALPIPE_V:
        return k == 0 ? 2 * ranks - rank : rank + 1;
    case CS_ADVISE_SEQUENTIAL:
    case CS_N_ADVISE_SCHEDULES:
        break;
    }
    return 1;
}

double cs_bound_memory(const cs_advise_base *base, const cs_candidate *c, const cs_priced *priced)
{
    double bound = 0;
    for (uint32_t r = 0; r < c->pipeline; r++) {
        double bytes = 0;
        for (uint32_t k = 0; k < c->chunks; k++) {
            const cs_stage_price *stage = &priced->stages[stage_of(c, r, k)];
            bytes += resting(base, c, priced, stage) + n_kept(c, r, k) * stage->kept;
        }
        bound = most(bound, bytes);
    }
    return bound * (1 - margin);
}

/* ---- what stages take ---- */

/* Candidates whose layers are divided and computed alike have the same model. Experts are divided
 * over what pipelines leave. */
static bool have_one_model(const cs_candidate *a, const cs_candidate *b)
{
    return a->devices == b->devices && a->method == b->method && a->layer == b->layer &&
           a->space == b->space && a->context == b->context && a->expert == b->expert &&
           (a->expert == 1 || a->pipeline == b->pipeline) && a->micro_samples == b->micro_samples &&
           a->recompute == b->recompute && a->more == b->more;
}

/* What schedules with the same stages differ in: where they are, and what exchanges with experts
 * take that one of them hides. */
static uint32_t price_kind(const cs_candidate *c)
{
    if (!cs_candidate_is_vee(c))
        return CS_ADVISE_1F1B;
    return c->expert > 1 ? c->schedule : CS_ADVISE_ZB_V;
}

/* Those with the same stages and micro-batches have the same prices. */
static bool have_one_price(const cs_candidate *a, const cs_candidate *b)
{
    return have_one_model(a, b) && a->pipeline == b->pipeline && a->inner == b->inner &&
           a->chunks == b->chunks && price_kind(a) == price_kind(b);
}

/* Communication slows no computation down: what is beside the only micro-batch, like sums of
 * gradients, need not be beside others. */
static bool drop_slowdown(cJSON *document)
{
    cJSON *platform = cJSON_GetObjectItemCaseSensitive(document, "platform");
    cJSON_DeleteItemFromObjectCaseSensitive(platform, "slowdown");
    cJSON *none = platform ? cJSON_AddObjectToObject(platform, "slowdown") : NULL;
    return none && cJSON_AddNumberToObject(none, "factor", 1);
}

/* A rank's passes over its two stages of a V, with whole backwards. */
static cJSON *vee_passes(uint32_t ranks, uint32_t rank)
{
    const uint32_t down = rank, up = 2 * ranks - 1 - rank;
    char text[64];
    snprintf(text, sizeof(text), "F0@%u F0@%u B0@%u B0@%u", down, up, up, down);
    return cJSON_CreateString(text);
}

/* What a schedule hides by itself is hidden in all passes: in none of them there is less. */
static bool price_overlap(const cs_candidate *c, cJSON *document)
{
    const cs_schedule *schedule = cs_schedule_find(cs_advise_schedule_names[c->schedule]);
    cJSON *collectives = cJSON_GetObjectItemCaseSensitive(document, "collectives");
    const char *fidelity = cJSON_GetStringValue(cs_json_member(collectives, "fidelity"));
    const bool delays = !fidelity || strcmp(fidelity, "flow") != 0;
    if (c->expert == 1 || !delays || cs_json_member(collectives, "expert_overlap"))
        return true;
    return cJSON_AddNumberToObject(collectives, "expert_overlap", schedule->expert_overlap);
}

/* The schedules of a V ask for more micro-batches, or divide backwards: an exchange beside a whole
 * one may take less than beside its halves. */
static bool price_vee(const cs_candidate *c, cJSON *document)
{
    cJSON *given = cJSON_GetObjectItemCaseSensitive(document, "schedule");
    cJSON *schedule = given ? cJSON_CreateObject() : NULL, *devices, *passes;
    if (!schedule)
        return false;
    cs_json_replace(document, given, schedule); /* cJSON's own may leave it without a key */
    bool done = cJSON_AddStringToObject(schedule, "kind", "custom") &&
                cJSON_AddNumberToObject(schedule, "micro_batches", 1) &&
                (devices = cJSON_AddArrayToObject(schedule, "stage_devices")) &&
                (passes = cJSON_AddArrayToObject(schedule, "device_tasks"));
    for (uint32_t r = 0; done && r < c->pipeline; r++)
        done = cJSON_AddItemToArray(devices, cJSON_CreateNumber(r)) &&
               cJSON_AddItemToArray(passes, vee_passes(c->pipeline, r));
    for (uint32_t r = c->pipeline; done && r > 0; r--)
        done = cJSON_AddItemToArray(devices, cJSON_CreateNumber(r - 1));
    return done && price_overlap(c, document);
}

/* One micro-batch, without ZeRO. */
static cJSON *pricing_document(const cs_advise_base *base, const cs_candidate *of)
{
    const bool vee = of->pipeline > 1 && cs_candidate_is_vee(of);
    cs_candidate c = *of;
    c.micro_batches = 1;
    c.zero = 0;
    c.schedule = c.pipeline == 1 ? CS_ADVISE_SEQUENTIAL
                 : c.chunks > 1  ? CS_ADVISE_INTERLEAVED
                                 : CS_ADVISE_1F1B;
    cJSON *document = cs_candidate_document(base, &c);
    cJSON *model = cJSON_GetObjectItemCaseSensitive(document, "model");
    cJSON *batch = cJSON_CreateNumber((double)c.data * c.micro_samples);
    cJSON_DeleteItemFromObjectCaseSensitive(model, "batch_size");
    if (model && batch && cJSON_AddItemToObject(model, "batch_size", batch)) {
        if (drop_slowdown(document) && (!vee || price_vee(of, document)))
            return document;
        batch = NULL; /* the document's */
    }
    cJSON_Delete(batch);
    cJSON_Delete(document);
    return NULL;
}

/* A pass of a stage: when the last of its devices begins it, and when the first one ends it. */
typedef struct period {
    cs_time start, end;
} period;

static double length_of(const period *of)
{
    return of->end > of->start ? cs_time_seconds(of->end - of->start) : 0;
}

/* Passes of each stage on its first device; with `exchanges` what stands between computations
 * counts. Where messages come to some devices of a stage before others, the first exchange waits,
 * but perhaps not behind another micro-batch: a pass is counted from when all of them are there. */
static cs_status take_times(const cs_scenario *scenario, const cs_graph *graph,
                            const cs_trace *trace, bool exchanges, cs_priced *to, cs_error *error)
{
    const cs_plan *plan = scenario->plan;
    period *periods = calloc(2 * (size_t)plan->n_stages + 1, sizeof(*periods));
    uint32_t *latest = calloc((size_t)graph->n_devices + 1, sizeof(*latest)); /* its pass, + 1 */
    const bool room = periods && latest;
    for (uint32_t task = 0; room && task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        const bool computes = cs_kind_group_of(cls->kind) == CS_GROUP_COMPUTE;
        if (!computes || cls->kind == CS_UPDATE)
            continue;
        const cs_span *span = &trace->spans[task];
        const bool forward = cls->kind == CS_FORWARD;
        const uint32_t pass = 2 * cls->stage + !forward;
        period *of = &periods[pass];
        if (latest[cls->device] != pass + 1 && span->start > of->start)
            of->start = span->start;
        latest[cls->device] = pass + 1;
        if (cls->device != plan->devices[plan->stages[cls->stage].first_device])
            continue;
        cs_stage_price *stage = &to->stages[cls->stage];
        const double seconds = cs_time_seconds(span->end - span->start);
        *(forward ? &stage->forward : &stage->backward) += seconds;
        to->computing += seconds;
        of->end = span->end > of->end ? span->end : of->end;
    }
    for (uint32_t s = 0; room && exchanges && s < plan->n_stages; s++) {
        to->stages[s].forward = length_of(&periods[2 * s]);
        to->stages[s].backward = length_of(&periods[2 * s + 1]);
    }
    free(periods);
    free(latest);
    return room ? CS_OK : cs_error_no_memory(error);
}

static void take_sizes(const cs_scenario *scenario, cs_priced *to)
{
    const cs_model *model = scenario->model;
    for (uint32_t s = 0; s < to->n_stages; s++) {
        const cs_layer_sum *sum = &scenario->job.stages[s];
        const cs_stage *of = &scenario->plan->stages[s];
        cs_stage_price *stage = &to->stages[s];
        for (uint32_t l = of->first_layer; l < of->end_layer; l++) {
            stage->cast += (double)model->layers[l].cast_bytes;
            for (uint32_t i = 0; i < model->layers[l].n_weight_parts; i++)
                if (model->layers[l].weight_parts[i].axes == CS_AXES_EXPERT_DATA)
                    stage->expert += (double)model->layers[l].weight_parts[i].bytes;
        }
        stage->dense = (double)sum->weight_bytes - stage->expert;
        stage->gradients = (double)sum->gradient_bytes;
        stage->frozen = (double)sum->frozen_bytes;
        stage->kept = (double)sum->kept_bytes;
    }
    to->gradient_ratio = (double)cs_model_gradient_ratio(model);
    to->wide_shards = scenario->job.states.wide_shards;
    to->optimizer_ratio = scenario->job.optimizer_ratio;
}

static cs_status take_prices(const cs_scenario *scenario, bool has_rules,
                             const cs_progress *progress, cs_priced *to, cs_error *error)
{
    const cs_simulation_options how = {.progress = progress};
    cs_graph graph = {0};
    cs_trace trace = {0};
    /* what rules divide is scattered behind sums of gradients, which the last micro-batch waits for
     * */
    const bool exchanges = scenario->collectives.fidelity != CS_FIDELITY_FLOW && !has_rules;
    to->n_stages = scenario->plan->n_stages;
    to->stages = calloc(to->n_stages + 1ULL, sizeof(*to->stages));
    if (!to->stages)
        return cs_error_no_memory(error);
    CS_TRY(cs_simulate_trace(scenario, &how, &graph, &trace, error));
    const cs_status status = take_times(scenario, &graph, &trace, exchanges, to, error);
    cs_graph_finish(&graph);
    cs_trace_finish(&trace);
    take_sizes(scenario, to);
    to->possible = status == CS_OK;
    return status;
}

void cs_priced_finish(cs_priced *priced)
{
    if (priced->scenario)
        cs_scenario_finish(priced->scenario);
    free(priced->scenario);
    free(priced->stages);
    *priced = (cs_priced){0};
}

cs_status cs_bounds_price(const cs_advise_base *base, const cs_candidate *candidate,
                          const cs_scenario_parts *parts, const cs_progress *progress,
                          cs_priced *priced, cs_error *error)
{
    *priced = (cs_priced){.scenario = calloc(1, sizeof(*priced->scenario))};
    cJSON *document = pricing_document(base, candidate);
    cs_status status = document && priced->scenario ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK)
        status =
            cs_scenario_read_brief(document, base->path, parts, progress, priced->scenario, error);
    if (status == CS_OK)
        status = take_prices(priced->scenario, base->has_rules, progress, priced, error);
    cJSON_Delete(document);
    return status;
}

/* ---- parts that candidates share ---- */

/* Of the price, or the first one with this model; NULL where it is not kept. */
static cs_model *model_of(const cs_bounds *bounds, uint32_t price)
{
    const cs_scenario *like = bounds->priced[bounds->model[price]].scenario;
    return like && like->net ? like->model : NULL;
}

/* Whose network a candidate has; NULL where it may be another one. */
static const cs_scenario *network_of(const cs_bounds *bounds, const cs_candidate *candidate)
{
    return bounds->whole.net && !candidate->more ? &bounds->whole : NULL;
}

static const cs_platform *platform_of(const cs_bounds *bounds, uint32_t devices)
{
    for (uint32_t i = 0; i < bounds->n_platforms; i++)
        if (bounds->platforms[i].devices == devices)
            return &bounds->platforms[i].scenario.platform;
    return NULL;
}

cs_status cs_bounds_read(const cs_advise_base *base, const cs_candidates *candidates,
                         const cs_bounds *bounds, uint32_t i, const cs_progress *progress,
                         cs_scenario *scenario, cs_error *error)
{
    const cs_candidate *candidate = &candidates->items[i];
    const cs_scenario_parts parts = {.network = network_of(bounds, candidate),
                                     .model = model_of(bounds, bounds->of[i]),
                                     .platform = platform_of(bounds, candidate->devices)};
    cJSON *document = cs_candidate_document(base, candidate);
    if (!document)
        return cs_error_no_memory(error);
    const cs_status status =
        cs_scenario_read_brief(document, base->path, &parts, progress, scenario, error);
    cJSON_Delete(document);
    return status;
}

/* The platforms of all numbers of devices, from the first candidates that are possible: what is not
 * divided, and not in a pipeline, comes first. */
static cs_status make_platforms(const cs_advise_base *base, const cs_candidates *candidates,
                                cs_bounds *bounds, cs_error *error)
{
    enum { TRIED = 8 };
    uint32_t tried = 0, devices = 0;
    const size_t most = base->section.devices.n + (size_t)1;
    bounds->platforms = calloc(most, sizeof(*bounds->platforms));
    if (!bounds->platforms)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < candidates->n; i++) {
        const cs_candidate *candidate = &candidates->items[i];
        cs_devices_platform *next = &bounds->platforms[bounds->n_platforms];
        tried = candidate->devices == devices ? tried + 1 : 0;
        devices = candidate->devices;
        if (tried >= TRIED || platform_of(bounds, devices))
            continue;
        cs_error ignored;
        cs_error_init(&ignored);
        cJSON *document = cs_candidate_document(base, candidate);
        if (!document)
            return cs_error_no_memory(error);
        const cs_status status =
            cs_scenario_read_brief(document, base->path, NULL, NULL, &next->scenario, &ignored);
        cJSON_Delete(document);
        next->devices = devices;
        bounds->n_platforms += status == CS_OK;
    }
    return CS_OK;
}

/* ---- all of them ---- */

typedef struct pricing {
    const cs_advise_base *base;
    const cs_candidates *candidates;
    const uint32_t *first; /* per price: a candidate that has it */
    uint32_t n_kept;       /* models of so many first prices are kept */
    cs_bounds *bounds;
} pricing;

/* A model is the size of all its layers and operators. */
enum { MODELS_KEPT = 4096 };

/* All that is plain data, and then the stages. */
static bool pack(const cs_priced *priced, cs_pool_item *item)
{
    const size_t stages = priced->stages ? priced->n_stages * sizeof(*priced->stages) : 0;
    cs_priced plain = *priced;
    plain.why = NULL;
    plain.stages = NULL;
    plain.scenario = NULL;
    item->value = malloc(sizeof(plain) + stages);
    if (!item->value)
        return false;
    item->value_bytes = sizeof(plain) + stages;
    memcpy(item->value, &plain, sizeof(plain));
    if (stages > 0)
        memcpy((char *)item->value + sizeof(plain), priced->stages, stages);
    return true;
}

/* But for the scenario. */
static bool unpack(const cs_pool_item *item, cs_priced *priced)
{
    cs_scenario *scenario = priced->scenario;
    const size_t stages = item->value_bytes - sizeof(*priced);
    memcpy(priced, item->value, sizeof(*priced));
    priced->scenario = scenario;
    priced->stages = stages > 0 ? malloc(stages) : NULL;
    if (priced->stages)
        memcpy(priced->stages, (const char *)item->value + sizeof(*priced), stages);
    return priced->stages || stages == 0;
}

/* Each thread keeps the scenarios of its own points. */
static void work(const void *context, uint32_t i, const cs_progress *progress, cs_pool_item *item)
{
    const pricing *p = context;
    const cs_candidate *candidate = &p->candidates->items[p->first[i]];
    const bool first = p->bounds->model[i] == i;
    const cs_scenario_parts parts = {.network = network_of(p->bounds, candidate),
                                     .model = first ? NULL : model_of(p->bounds, i),
                                     .platform = platform_of(p->bounds, candidate->devices)};
    cs_priced priced;
    item->status = cs_bounds_price(p->base, candidate, &parts, progress, &priced, item->error);
    if (!pack(&priced, item))
        item->status = cs_error_no_memory(item->error);
    if (first && p->n_kept > i) {
        p->bounds->priced[i].scenario = priced.scenario;
        priced.scenario = NULL;
    }
    cs_priced_finish(&priced);
}

static cs_status collect(void *context, const cs_pool_item *item, cs_error *error)
{
    const pricing *p = context;
    if (item->status == CS_NO_MEMORY || !unpack(item, &p->bounds->priced[item->point]))
        return cs_error_no_memory(error);
    if (item->status == CS_OK)
        return CS_OK;
    const char *text = item->error->text;
    char *why = cs_arena_copy_length(&p->bounds->arena, text, strcspn(text, "\n"));
    p->bounds->priced[item->point].why = why;
    return why ? CS_OK : cs_error_no_memory(error);
}

/* Numbers what candidates have in common. */
typedef struct numbering {
    bool (*same)(const cs_candidate *a, const cs_candidate *b);
    uint32_t *first, *hashed, *next; /* chains with one hash */
    uint32_t n;
} numbering;

enum { BUCKETS = 4096 };

static void finish_numbering(numbering *numbers)
{
    free(numbers->first);
    free(numbers->next);
    free(numbers->hashed);
}

static bool init_numbering(numbering *numbers, size_t most,
                           bool (*same)(const cs_candidate *a, const cs_candidate *b))
{
    *numbers = (numbering){.same = same,
                           .first = malloc(most * sizeof(*numbers->first)),
                           .next = malloc(most * sizeof(*numbers->next)),
                           .hashed = calloc(BUCKETS, sizeof(*numbers->hashed))};
    return numbers->first && numbers->next && numbers->hashed;
}

static uint32_t bucket_of(const cs_candidate *c)
{
    const uint32_t parts[] = {c->method, c->layer,         c->space,    c->context,
                              c->expert, c->micro_samples, c->recompute};
    uint32_t hash = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        hash = hash * 31 + parts[i];
    return hash % BUCKETS;
}

/* Which number a candidate has; a new one where none before is the same. */
static uint32_t number_of(numbering *numbers, const cs_candidates *all, uint32_t i)
{
    const uint32_t bucket = bucket_of(&all->items[i]);
    for (uint32_t p = numbers->hashed[bucket]; p > 0; p = numbers->next[p - 1])
        if (numbers->same(&all->items[numbers->first[p - 1]], &all->items[i]))
            return p - 1;
    numbers->first[numbers->n] = i;
    numbers->next[numbers->n] = numbers->hashed[bucket];
    numbers->hashed[bucket] = numbers->n + 1;
    return numbers->n++;
}

/* Prices that are the first ones of their models, which every process needs, or the others. */
static cs_status run_pricing(const pricing *p, bool first, uint32_t jobs, cs_team *team,
                             const cs_progress *progress, cs_error *error)
{
    uint32_t *points = malloc((p->bounds->n_priced + 1ULL) * sizeof(*points)), n = 0;
    if (!points)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < p->bounds->n_priced; i++)
        if ((p->bounds->model[i] == i) == first)
            points[n++] = i;
    pricing collector = *p;
    const cs_pool pool = {.what = "pricing",
                          .points_are = "splits",
                          .work = work,
                          .work_context = p,
                          .collect = collect,
                          .collect_context = &collector,
                          .points = points,
                          .n_points = n,
                          .jobs = jobs};
    const cs_status status =
        cs_team_run(first ? NULL : team, CS_ADVISE_PRICING, &pool, progress, error);
    free(points);
    return status;
}

/* The most memory of a device, before what candidates set aside for their communicators. */
static cs_status take_devices(const cs_advise_base *base, cs_bounds *bounds, cs_error *error)
{
    cs_scenario *whole = &bounds->whole;
    CS_TRY(cs_advise_read_itself(base->document, base->path, true, whole, NULL, error));
    bounds->capacity = base->section.memory;
    for (uint32_t d = 0; d < whole->platform.n_devices; d++) {
        const cs_device *device = &whole->platform.devices[d];
        const int64_t memory =
            device->capacity == INT64_MAX ? device->capacity : device->capacity + device->reserve;
        if (base->section.memory == 0 && memory > bounds->capacity)
            bounds->capacity = memory;
    }
    return CS_OK;
}

/* What candidates have in common; `models` and `prices` number it. */
static cs_status number_all(const cs_candidates *candidates, numbering *models, numbering *prices,
                            cs_bounds *bounds, cs_error *error)
{
    for (uint32_t i = 0; i < candidates->n; i++)
        bounds->of[i] = number_of(prices, candidates, i);
    bounds->n_priced = prices->n;
    bounds->priced = calloc(prices->n + 1ULL, sizeof(*bounds->priced));
    bounds->model = calloc(prices->n + 1ULL, sizeof(*bounds->model));
    if (!bounds->priced || !bounds->model)
        return cs_error_no_memory(error);
    for (uint32_t p = 0; p < prices->n; p++) /* the first candidate of a model is that of a price */
        bounds->model[p] =
            bounds->of[models->first[number_of(models, candidates, prices->first[p])]];
    return CS_OK;
}

static cs_status find(const cs_advise_base *base, const cs_candidates *candidates, uint32_t jobs,
                      cs_team *team, const cs_progress *progress, const numbering *prices,
                      cs_bounds *bounds, cs_error *error)
{
    CS_TRY(take_devices(base, bounds, error));
    CS_TRY(make_platforms(base, candidates, bounds, error));
    const pricing p = {base, candidates, prices->first, MODELS_KEPT, bounds};
    CS_TRY(run_pricing(&p, true, jobs, team, progress, error));
    CS_TRY(run_pricing(&p, false, jobs, team, progress, error));
    for (uint32_t i = 0; i < candidates->n; i++) {
        const cs_priced *priced = &bounds->priced[bounds->of[i]];
        const cs_candidate *c = &candidates->items[i];
        bounds->time[i] = priced->possible ? cs_bound_time(c, priced) : 0;
        bounds->memory[i] = priced->possible ? cs_bound_memory(base, c, priced) : 0;
    }
    return CS_OK;
}

void cs_bounds_finish(cs_bounds *bounds)
{
    for (uint32_t i = 0; bounds->priced && i < bounds->n_priced; i++)
        cs_priced_finish(&bounds->priced[i]);
    for (uint32_t i = 0; i < bounds->n_platforms; i++) /* behind those that share them */
        cs_scenario_finish(&bounds->platforms[i].scenario);
    cs_scenario_finish(&bounds->whole);
    free(bounds->platforms);
    free(bounds->priced);
    free(bounds->model);
    free(bounds->of);
    free(bounds->time);
    free(bounds->memory);
    cs_arena_finish(&bounds->arena);
    *bounds = (cs_bounds){0};
}

cs_status cs_bounds_find(const cs_advise_base *base, const cs_candidates *candidates, uint32_t jobs,
                         cs_team *team, const cs_progress *progress, cs_bounds *bounds,
                         cs_error *error)
{
    const size_t n = candidates->n + (size_t)1;
    numbering models, prices;
    *bounds = (cs_bounds){.of = calloc(n, sizeof(*bounds->of)),
                          .time = calloc(n, sizeof(*bounds->time)),
                          .memory = calloc(n, sizeof(*bounds->memory))};
    cs_arena_init(&bounds->arena);
    bool room = init_numbering(&models, n, have_one_model);
    room &= init_numbering(&prices, n, have_one_price);
    room = room && bounds->of && bounds->time && bounds->memory;
    cs_status status =
        room ? number_all(candidates, &models, &prices, bounds, error) : cs_error_no_memory(error);
    if (status == CS_OK)
        status = find(base, candidates, jobs, team, progress, &prices, bounds, error);
    finish_numbering(&models);
    finish_numbering(&prices);
    if (status != CS_OK)
        cs_bounds_finish(bounds);
    return status;
}
