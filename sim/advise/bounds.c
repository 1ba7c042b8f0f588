#include "sim/advise/bounds.h"

#include "sim/base/pool.h"
#include "sim/base/vector.h"
#include "sim/scenario/planning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a bound: more than what rounds in a simulation, which is half a picosecond per task, and tasks
 * take a microsecond or more. */
static const double margin = 1e-6;

/* ---- bounds of one candidate ---- */

static double most(double a, double b)
{
    return a > b ? a : b;
}

double cs_bound_time(const cs_candidate *c, const cs_priced *priced)
{
    const double n = c->micro_batches, ranks = c->pipeline, x = priced->passes;
    const double mean = n * x / ranks, phi = priced->forward_share;
    double filling = 0;
    if (c->schedule == CS_ADVISE_1F1B || c->schedule == CS_ADVISE_GPIPE)
        filling = x / (1 - pow(1 - 1 / n, ranks));
    else if ((c->schedule == CS_ADVISE_ZB_H1 || c->schedule == CS_ADVISE_ZB_H2) && phi > 0)
        filling = phi * x / (1 - pow(1 - phi / n, ranks));
    return most(mean, filling) * (1 - margin);
}

/* What the sizes of the mesh divide the states over (sim/scenario/build-mesh.c, settle_shards). */
static double resting(const cs_advise_base *base, const cs_candidate *c, const cs_priced *p)
{
    const bool by_layer = base->has_rules || c->more;
    const uint32_t zero = by_layer ? 3 : c->zero;
    const cJSON *parallel = cs_json_member(base->document, "parallel");
    const bool accumulate = !by_layer && cJSON_IsTrue(cs_json_member(parallel, "accumulate"));
    const uint32_t places = c->layer * c->space * c->context * c->data;
    const uint32_t tensor = c->method == CS_BY_TENSOR ? c->layer : 1;
    const double shard = zero > 0 ? c->space * c->context * c->data : 1;
    const double experts = zero > 0 ? places / (c->expert * tensor) : 1;
    const double whole = p->dense + p->expert;
    const double divided = p->dense / shard + p->expert / experts;
    const double weights = zero >= 3 ? divided : whole;
    const double gradients = zero >= 2 && !accumulate ? p->gradient_ratio * divided : p->gradients;
    return weights + p->frozen + gradients + p->optimizer_ratio * divided;
}

double cs_bound_memory(const cs_advise_base *base, const cs_candidate *c, const cs_priced *priced)
{
    const uint32_t ranks = c->pipeline, n = c->micro_batches;
    const double states = resting(base, c, priced), kept = priced->kept;
    const double live = c->schedule == CS_ADVISE_GPIPE ? n : 1;
    const double mean = (states + live * kept) / ranks;
    double weights = 0;
    for (uint32_t r = 0; r < ranks; r++)
        weights += 1.0 / (ranks - r < n ? ranks - r : n);
    const double warm = (states / (ranks < n ? ranks : n) + kept) / weights;
    return most(mean, c->schedule == CS_ADVISE_1F1B ? warm : 0) * (1 - margin);
}

/* ---- what layers take ---- */

/* Candidates that divide layers in the same way have the same prices. */
static bool alike(const cs_candidate *a, const cs_candidate *b)
{
    return a->method == b->method && a->layer == b->layer && a->space == b->space &&
           a->context == b->context && a->expert == b->expert &&
           a->micro_samples == b->micro_samples && a->recompute == b->recompute &&
           a->more == b->more;
}

/* The smallest mesh without a pipeline that has the split, on devices of an ideal network. */
static cJSON *pricing_document(const cs_advise_base *base, const cs_candidate *of)
{
    cs_candidate c = *of;
    c.data = c.expert;
    c.devices = c.layer * c.space * c.context * c.data;
    c.pipeline = c.micro_batches = c.chunks = 1;
    c.schedule = CS_ADVISE_SEQUENTIAL;
    c.zero = 0;
    c.inner = CS_ORDER_DATA;
    cJSON *document = cs_candidate_document(base, &c);
    cJSON *platform = cJSON_CreateObject();
    const bool done = document && cJSON_AddStringToObject(platform, "topology", "ideal") &&
                      cJSON_AddNumberToObject(platform, "devices", c.devices) &&
                      cs_json_member(document, "model");
    if (!done || !cJSON_ReplaceItemInObjectCaseSensitive(document, "platform", platform)) {
        cJSON_Delete(platform);
        cJSON_Delete(document);
        return NULL;
    }
    cJSON *model = cJSON_GetObjectItemCaseSensitive(document, "model");
    cJSON *batch = cJSON_CreateNumber((double)c.data * c.micro_samples);
    cJSON_DeleteItemFromObjectCaseSensitive(model, "batch_size");
    if (batch && cJSON_AddItemToObject(model, "batch_size", batch))
        return document;
    cJSON_Delete(batch);
    cJSON_Delete(document);
    return NULL;
}

static double forward_share(const cs_layer *layers, uint32_t n)
{
    double least = 1;
    for (uint32_t l = 0; l < n; l++) {
        const double forward = (double)layers[l].forward * (layers[l].recompute ? 2 : 1);
        const double all = forward + (double)(layers[l].backward_input + layers[l].backward_weight);
        if (all > 0 && (double)layers[l].forward / all < least)
            least = (double)layers[l].forward / all;
    }
    return least;
}

static cs_status take_prices(const cs_scenario *scenario, uint32_t samples, cs_priced *to,
                             cs_error *error)
{
    const cs_model *model = scenario->model;
    const cs_layer *layers = cs_model_layers(model, samples);
    cs_layer_sum sum;
    CS_TRY(cs_model_sum(model, 0, model->n_layers, samples, &sum, error));
    to->forward = cs_time_seconds(sum.forward);
    to->passes =
        to->forward + cs_time_seconds(sum.backward_input) + cs_time_seconds(sum.backward_weight);
    to->forward_share = forward_share(layers ? layers : model->layers, model->n_layers);
    for (uint32_t l = 0; l < model->n_layers; l++)
        for (uint32_t i = 0; i < model->layers[l].n_weight_parts; i++)
            if (model->layers[l].weight_parts[i].axes != CS_AXES_TENSOR)
                to->expert += (double)model->layers[l].weight_parts[i].bytes;
    to->dense = (double)sum.weight_bytes - to->expert;
    to->gradients = (double)sum.gradient_bytes;
    to->frozen = (double)sum.frozen_bytes;
    to->gradient_ratio = (double)cs_model_gradient_ratio(model);
    to->optimizer_ratio = scenario->job.optimizer_ratio;
    to->kept = (double)sum.kept_bytes;
    to->possible = true;
    return CS_OK;
}

cs_status cs_bounds_price(const cs_advise_base *base, const cs_candidate *candidate,
                          cs_priced *priced, cs_error *error)
{
    cs_scenario scenario = {0};
    cJSON *document = pricing_document(base, candidate);
    if (!document)
        return cs_error_no_memory(error);
    cs_status status = cs_scenario_read_unplanned(document, base->path, &scenario, error);
    if (status == CS_OK)
        status = take_prices(&scenario, candidate->micro_samples, priced, error);
    cs_scenario_finish(&scenario);
    cJSON_Delete(document);
    return status;
}

/* ---- all of them ---- */

typedef struct pricing {
    const cs_advise_base *base;
    const cs_candidates *candidates;
    const uint32_t *first; /* per price: a candidate that has it */
    cs_bounds *bounds;
} pricing;

/* Each thread writes the prices of its own points. */
static void work(const void *context, uint32_t i, const cs_progress *progress, cs_pool_item *item)
{
    const pricing *p = context;
    (void)progress;
    item->error = malloc(sizeof(*item->error));
    if (!item->error) {
        item->status = CS_NO_MEMORY;
        return;
    }
    cs_error_init(item->error);
    item->status = cs_bounds_price(p->base, &p->candidates->items[p->first[i]],
                                   &p->bounds->priced[i], item->error);
}

static cs_status collect(void *context, const cs_pool_item *item, cs_error *error)
{
    const pricing *p = context;
    if (item->status == CS_OK)
        return CS_OK;
    if (item->status == CS_NO_MEMORY)
        return cs_error_no_memory(error);
    const char *text = item->error->text;
    char *why = cs_arena_copy_length(&p->bounds->arena, text, strcspn(text, "\n"));
    p->bounds->priced[item->point].why = why;
    return why ? CS_OK : cs_error_no_memory(error);
}

typedef struct numbering {
    uint32_t *first, *hashed, *next; /* chains of prices with one hash */
    uint32_t n;
} numbering;

enum { BUCKETS = 4096 };

static uint32_t bucket_of(const cs_candidate *c)
{
    const uint32_t parts[] = {c->method, c->layer,         c->space,    c->context,
                              c->expert, c->micro_samples, c->recompute};
    uint32_t hash = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        hash = hash * 31 + parts[i];
    return hash % BUCKETS;
}

/* Which price a candidate has; a new one where none before is alike. */
static uint32_t number_of(numbering *numbers, const cs_candidates *all, uint32_t i)
{
    const uint32_t bucket = bucket_of(&all->items[i]);
    for (uint32_t p = numbers->hashed[bucket]; p > 0; p = numbers->next[p - 1])
        if (alike(&all->items[numbers->first[p - 1]], &all->items[i]))
            return p - 1;
    numbers->first[numbers->n] = i;
    numbers->next[numbers->n] = numbers->hashed[bucket];
    numbers->hashed[bucket] = numbers->n + 1;
    return numbers->n++;
}

static cs_status run_pricing(const pricing *p, uint32_t n, uint32_t jobs,
                             const cs_progress *progress, cs_error *error)
{
    uint32_t *points = malloc((n + 1ULL) * sizeof(*points));
    if (!points)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++)
        points[i] = i;
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
    const cs_status status = cs_pool_run(&pool, progress, error);
    free(points);
    return status;
}

/* The fastest device, and the most memory of one. */
static cs_status take_devices(const cs_advise_base *base, cs_bounds *bounds, cs_error *error)
{
    cs_scenario scenario = {0};
    CS_TRY(cs_scenario_read_unplanned(base->document, base->path, &scenario, error));
    bounds->speed = 0;
    bounds->capacity = base->section.memory;
    for (uint32_t d = 0; d < scenario.platform.n_devices; d++) {
        const cs_device *device = &scenario.platform.devices[d];
        bounds->speed = most(bounds->speed, device->speed);
        if (base->section.memory == 0 && device->capacity > bounds->capacity)
            bounds->capacity = device->capacity;
    }
    cs_scenario_finish(&scenario);
    return CS_OK;
}

static cs_status find(const cs_advise_base *base, const cs_candidates *candidates, uint32_t jobs,
                      const cs_progress *progress, numbering *numbers, cs_bounds *bounds,
                      cs_error *error)
{
    for (uint32_t i = 0; i < candidates->n; i++)
        bounds->of[i] = number_of(numbers, candidates, i);
    bounds->n_priced = numbers->n;
    bounds->priced = calloc(numbers->n + 1ULL, sizeof(*bounds->priced));
    if (!bounds->priced)
        return cs_error_no_memory(error);
    CS_TRY(take_devices(base, bounds, error));
    const pricing p = {base, candidates, numbers->first, bounds};
    CS_TRY(run_pricing(&p, numbers->n, jobs, progress, error));
    for (uint32_t i = 0; i < candidates->n; i++) {
        const cs_priced *priced = &bounds->priced[bounds->of[i]];
        const cs_candidate *c = &candidates->items[i];
        bounds->time[i] = priced->possible ? cs_bound_time(c, priced) / bounds->speed : 0;
        bounds->memory[i] = priced->possible ? cs_bound_memory(base, c, priced) : 0;
    }
    return CS_OK;
}

void cs_bounds_finish(cs_bounds *bounds)
{
    free(bounds->priced);
    free(bounds->of);
    free(bounds->time);
    free(bounds->memory);
    cs_arena_finish(&bounds->arena);
    *bounds = (cs_bounds){0};
}

cs_status cs_bounds_find(const cs_advise_base *base, const cs_candidates *candidates, uint32_t jobs,
                         const cs_progress *progress, cs_bounds *bounds, cs_error *error)
{
    const size_t n = candidates->n + (size_t)1;
    numbering numbers = {.first = malloc(n * sizeof(*numbers.first)),
                         .next = malloc(n * sizeof(*numbers.next)),
                         .hashed = calloc(BUCKETS, sizeof(*numbers.hashed))};
    *bounds = (cs_bounds){.of = calloc(n, sizeof(*bounds->of)),
                          .time = calloc(n, sizeof(*bounds->time)),
                          .memory = calloc(n, sizeof(*bounds->memory))};
    cs_arena_init(&bounds->arena);
    const bool room = numbers.first && numbers.next && numbers.hashed && bounds->of &&
                      bounds->time && bounds->memory;
    const cs_status status = room ? find(base, candidates, jobs, progress, &numbers, bounds, error)
                                  : cs_error_no_memory(error);
    free(numbers.first);
    free(numbers.next);
    free(numbers.hashed);
    if (status != CS_OK)
        cs_bounds_finish(bounds);
    return status;
}
