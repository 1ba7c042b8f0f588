#include "sim/study/advise/bounds.h"

#include "schedules/states.h"
#include "sim/base/pool.h"
#include "sim/run/scenario/planning.h"
#include "sim/run/simulate.h"
#include "sim/study/advise/promise.h"
#include "topologies/route.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double margin = 1e-6;

/* ---- bounds of one candidate ---- */

static double most(double a, double b)
{
    return a > b ? a : b;
}

double cs_bound_time(const cs_candidate *c, const cs_pass_order *order, const cs_priced *priced)
{
    double bound = 0, forwards = 0, backwards = 0;
    for (uint32_t r = 0; r < c->pipeline; r++) {
        double passes = 0;
        for (uint32_t k = 0; k < c->chunks; k++) {
            const cs_stage_price *stage = &priced->stages[cs_pass_stage(c, order, r, k)];
            passes += stage->forward + stage->backward;
        }
        const double behind = order->splits ? 0 : backwards;
        bound = most(bound, forwards + c->micro_batches * passes + behind);
        forwards += priced->stages[r].forward;
        backwards += priced->stages[r].backward;
    }
    return bound * (1 - margin);
}

/* Returns bound T with gathers and scatters. */
static double sharded_time(const cs_candidate *c, const cs_pass_order *order,
                           const cs_priced *priced, const cs_sharded_price *sharded)
{
    const double n = c->micro_batches;
    double bound = 0, forwards = 0, backwards = 0;
    for (uint32_t r = 0; r < sharded->ranks; r++) {
        const double behind = order->splits ? 0 : backwards, passes = sharded->passes[r];
        double first = 0;
        for (uint32_t k = 0; k < c->chunks; k++) {
            const cs_stage_price *stage = &priced->stages[cs_pass_stage(c, order, r, k)];
            first += stage->forward + stage->backward;
        }
        bound = most(bound, n * passes + behind);
        bound = most(bound, n * sharded->scatters[r]);
        bound = most(bound, forwards + first + (n - 1) * passes + behind);
        forwards += priced->stages[r].forward;
        backwards += priced->stages[r].backward;
    }
    return bound * (1 - margin);
}

double cs_resting(const cs_advise_base *base, const cs_candidate *c, const cs_priced *priced,
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
    /* frozen weights are sharded under the same condition as in schedules/states.h */
    const bool shares = zero >= 3 && c->expert == 1;
    const double frozen = shares ? (stage->frozen - stage->cast) / shard : stage->frozen;
    return weights + frozen + gradients + priced->optimizer_ratio * divided;
}

double cs_bound_memory(const cs_advise_base *base, const cs_candidate *c,
                       const cs_pass_order *order, const cs_priced *priced)
{
    double bound = 0;
    for (uint32_t r = 0; r < c->pipeline; r++) {
        double bytes = 0;
        for (uint32_t k = 0; k < c->chunks; k++) {
            const uint32_t s = cs_pass_stage(c, order, r, k);
            bytes += cs_resting(base, c, priced, &priced->stages[s]) +
                     order->in_flight[s] * priced->stages[s].kept;
        }
        bound = most(bound, bytes);
    }
    return bound * (1 - margin);
}

/* ---- rough bounds ---- */

double cs_rough_time(const cs_candidate *c, const cs_pass_order *order, const cs_priced *like)
{
    const double computing = like->computing, n = c->micro_batches, ranks = c->pipeline;
    const bool ramps = c->chunks == 1 && !order->splits;
    const double share = ramps ? 1 - pow(1 - 1 / n, ranks) : ranks / n;
    return computing / share * (1 - margin);
}

double cs_rough_memory(const cs_advise_base *base, const cs_candidate *c,
                       const cs_pass_order *order, const cs_priced *like)
{
    cs_stage_price all = {0};
    double least_kept = INFINITY, most_kept = 0, inverse = 0;
    if (!like->additive)
        return 0;
    for (uint32_t s = 0; s < like->n_stages; s++) {
        const cs_stage_price *stage = &like->stages[s];
        all.dense += stage->dense;
        all.expert += stage->expert;
        all.gradients += stage->gradients;
        all.frozen += stage->frozen;
        all.cast += stage->cast;
        all.kept += stage->kept;
    }
    for (uint32_t r = 0; r < c->pipeline; r++) {
        double kept = INFINITY;
        for (uint32_t k = 0; k < c->chunks; k++)
            kept = fmin(kept, order->in_flight[cs_pass_stage(c, order, r, k)]);
        least_kept = fmin(least_kept, kept);
        most_kept = most(most_kept, kept);
        inverse += 1 / kept;
    }
    const double rests = cs_resting(base, c, like, &all);
    const double mean = (rests + least_kept * all.kept) / c->pipeline;
    return most(mean, (rests / most_kept + all.kept) / inverse) * (1 - margin);
}

/* ---- what stages take ---- */

/* Whether two candidates have the same model: their layers are split and computed in the same way.
 * The placement of experts depends on the pipeline. */
static bool have_one_model(const cs_candidate *a, const cs_candidate *b, const cs_even_blocks *even)
{
    (void)even;
    return a->devices == b->devices && a->method == b->method && a->layer == b->layer &&
           a->space == b->space && a->context == b->context && a->expert == b->expert &&
           (a->expert == 1 || a->pipeline == b->pipeline) && a->micro_samples == b->micro_samples &&
           a->recompute == b->recompute && a->more == b->more;
}

/* Whether both candidates have their stages on the same ranks. */
static bool have_like_ranks(const cs_candidate *a, const cs_candidate *b)
{
    return a->chunks == 1 ? b->chunks == 1
                          : b->chunks > 1 && cs_candidate_schedule(a)->mesh.holders ==
                                                 cs_candidate_schedule(b)->mesh.holders;
}

/* Whether both schedules hide the same part of the exchanges with experts, in the same number of
 * passes. */
static bool hide_alike(const cs_candidate *a, const cs_candidate *b)
{
    const double hidden = cs_candidate_schedule(a)->expert_overlap;
    const double other = cs_candidate_schedule(b)->expert_overlap;
    return a->expert == 1 || a->schedule == b->schedule ||
           (a->chunks == 1 && !(hidden > 0) && !(other > 0));
}

/* Whether the time of passes does not depend on the devices of a stage, because layers are split
 * within even blocks. */
static bool is_even(const cs_candidate *c, const cs_even_blocks *even)
{
    bool found = false;
    for (uint32_t k = 0; k < even->n && !found; k++)
        found = even->sizes[k] == cs_candidate_places(c);
    return found && c->expert == 1 && !c->more;
}

static bool have_one_place(const cs_candidate *a, const cs_candidate *b, const cs_even_blocks *even)
{
    return have_one_model(a, b, even) && a->pipeline == b->pipeline && a->inner == b->inner &&
           a->chunks == b->chunks && have_like_ranks(a, b) && hide_alike(a, b);
}

/* Whether two candidates have the same prices: their stages and micro-batches are the same. */
static bool have_one_price(const cs_candidate *a, const cs_candidate *b, const cs_even_blocks *even)
{
    if (!is_even(a, even))
        return have_one_place(a, b, even);
    return have_one_model(a, b, even) && a->pipeline * a->chunks == b->pipeline * b->chunks;
}

static bool have_one_sharded_price(const cs_candidate *a, const cs_candidate *b,
                                   const cs_even_blocks *even)
{
    return have_one_place(a, b, even) && a->zero == b->zero && a->bucket == b->bucket;
}

static bool have_one_order(const cs_candidate *a, const cs_candidate *b, const cs_even_blocks *even)
{
    (void)even;
    return a->schedule == b->schedule && a->pipeline == b->pipeline && a->chunks == b->chunks &&
           a->micro_batches == b->micro_batches;
}

/* Whether two candidates have the same devices at the same places of a mesh, and messages between
 * the same ranks. */
static bool have_one_mesh(const cs_candidate *a, const cs_candidate *b, const cs_even_blocks *even)
{
    (void)even;
    return a->devices == b->devices && a->method == b->method && a->layer == b->layer &&
           a->space == b->space && a->context == b->context && a->pipeline == b->pipeline &&
           a->data == b->data && a->expert == b->expert && a->inner == b->inner &&
           have_like_ranks(a, b);
}

/* Removes the slowdown of computations by communication. What overlaps with the only micro-batch,
 * such as sums of gradients, may not overlap with other micro-batches. */
static bool drop_slowdown(cJSON *document)
{
    cJSON *platform = cJSON_GetObjectItemCaseSensitive(document, "platform");
    cJSON_DeleteItemFromObjectCaseSensitive(platform, "slowdown");
    cJSON *none = platform ? cJSON_AddObjectToObject(platform, "slowdown") : NULL;
    return none && cJSON_AddNumberToObject(none, "factor", 1);
}

/* Makes a rank's passes over its stages, with whole backwards. */
static cJSON *passes_of_rank(const cs_candidate *c, uint32_t rank)
{
    const uint32_t n_stages = c->pipeline * c->chunks;
    const size_t each = sizeof("F0@4294967295 ");
    char *text = malloc(2 * each * c->chunks + 1);
    size_t n = 0;
    for (uint32_t s = 0; text && s < n_stages; s++)
        if (cs_candidate_rank(c, s) == rank)
            n += (size_t)snprintf(text + n, each, "F0@%u ", s);
    for (uint32_t s = n_stages; text && s-- > 0;)
        if (cs_candidate_rank(c, s) == rank)
            n += (size_t)snprintf(text + n, each, "B0@%u ", s);
    if (text)
        text[n - 1] = '\0';
    cJSON *passes = text ? cJSON_CreateString(text) : NULL;
    free(text);
    return passes;
}

/* Applies the schedule's overlap to all passes, so that no pass counts more exposed time than it
 * has. */
static bool price_overlap(const cs_candidate *c, cJSON *document)
{
    const cs_schedule *schedule = cs_candidate_schedule(c);
    cJSON *collectives = cJSON_GetObjectItemCaseSensitive(document, "collectives");
    const char *fidelity = cJSON_GetStringValue(cs_json_member(collectives, "fidelity"));
    const bool delays = !fidelity || strcmp(fidelity, "flow") != 0;
    if (c->expert == 1 || !delays || cs_json_member(collectives, "expert_overlap"))
        return true;
    return cJSON_AddNumberToObject(collectives, "expert_overlap", schedule->expert_overlap);
}

/* Replaces the schedule by a custom one with a single micro-batch. The schedule itself may need
 * more micro-batches, or split backwards: a whole backward may hide more of an exchange than its
 * halves do. Besides, a single micro-batch has no other micro-batch to hide its exchanges. */
static bool price_passes(const cs_candidate *c, cJSON *document)
{
    cJSON *given = cJSON_GetObjectItemCaseSensitive(document, "schedule");
    cJSON *schedule = given ? cJSON_CreateObject() : NULL, *devices, *passes;
    if (!schedule)
        return false;
    /* cJSON's own function may leave it without a key */
    cs_json_replace(document, given, schedule);
    bool done = cJSON_AddStringToObject(schedule, "kind", "custom") &&
                cJSON_AddNumberToObject(schedule, "micro_batches", 1) &&
                (devices = cJSON_AddArrayToObject(schedule, "stage_devices")) &&
                (passes = cJSON_AddArrayToObject(schedule, "device_tasks"));
    for (uint32_t r = 0; done && r < c->pipeline; r++)
        done = cJSON_AddItemToArray(passes, passes_of_rank(c, r));
    for (uint32_t s = 0; done && s < c->chunks * c->pipeline; s++)
        done = cJSON_AddItemToArray(devices, cJSON_CreateNumber(cs_candidate_rank(c, s)));
    return done && price_overlap(c, document);
}

/* Makes the scenario for pricing: one micro-batch, at a ZeRO stage. */
static cJSON *pricing_document(const cs_advise_base *base, const cs_candidate *of, uint32_t zero)
{
    cs_candidate c = *of;
    c.micro_batches = 1;
    c.zero = zero;
    cJSON *document = cs_candidate_document(base, &c);
    cJSON *model = cJSON_GetObjectItemCaseSensitive(document, "model");
    cJSON *batch = cJSON_CreateNumber((double)c.data * c.micro_samples);
    cJSON_DeleteItemFromObjectCaseSensitive(model, "batch_size");
    if (model && batch && cJSON_AddItemToObject(model, "batch_size", batch)) {
        if (drop_slowdown(document) && price_passes(of, document))
            return document;
        batch = NULL; /* owned by the document */
    }
    cJSON_Delete(batch);
    cJSON_Delete(document);
    return NULL;
}

/* A pass of a stage, from the time when its last device begins to the time when its first device
 * ends. */
typedef struct period {
    cs_time start, end;
} period;

static double length_of(const period *of)
{
    return of->end > of->start ? cs_time_seconds(of->end - of->start) : 0;
}

/* Takes the times of each stage's passes on its first device; with `exchanges`, including the time
 * between computations. If messages reach some devices of a stage later than others, the first
 * exchange waits for them, but another micro-batch need not wait so long; therefore a pass counts
 * from the time when all devices have begun. */
static cs_status take_times(const cs_scenario *scenario, const cs_graph *graph,
                            const cs_trace *trace, bool exchanges, cs_priced *to, cs_error *error)
{
    const cs_plan *plan = scenario->plan;
    period *periods = calloc(2 * (size_t)plan->n_stages + 1, sizeof(*periods));
    /* per device: number of its latest pass + 1 */
    uint32_t *latest = calloc((size_t)graph->n_devices + 1, sizeof(*latest));
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

/* ---- what passes take with gathers and scatters ---- */

/* Whether a task is a step of a pass, or a point where the parts of a step meet; not a message
 * between stages, a copy to the host or an update. */
static bool is_of_pass(const cs_class *cls)
{
    if (cls->kind == CS_UPDATE || cls->purpose == CS_PURPOSE_HOST)
        return false;
    return cls->kind != CS_TRANSFER || cls->ranks > 0 ||
           (cls->purpose != CS_PURPOSE_STAGES && cls->device == cls->peer);
}

static bool is_sum(const cs_class *cls)
{
    return cls->kind == CS_TRANSFER && cls->ranks > 0 && cls->purpose == CS_PURPOSE_GRADIENTS;
}

/* Finds paths through the steps of each stage's first device: q per stage, y per device. `until`:
 * longest path before each task, initially 0. */
static void take_paths(const cs_plan *plan, const cs_graph *graph, const cs_trace *trace,
                       double *until, double *q, double *y)
{
    for (uint32_t task = 0; task < graph->n_tasks; task++) {
        const cs_class *cls = cs_graph_class(graph, task);
        const uint32_t next = graph->tasks[task].next;
        uint32_t n;
        if (!is_of_pass(cls) || cls->device != cs_plan_device(plan, cls->stage))
            continue;
        const uint32_t *after = cs_graph_successors(graph, task, &n);
        const bool last_only = is_sum(cls) && cls->origin != CS_REDUCE_SCATTER;
        const cs_span *span = &trace->spans[task];
        const double seconds = last_only ? 0 : cs_time_seconds(span->end - span->start);
        const double end = until[task] + seconds;
        q[cls->stage] += is_sum(cls) ? seconds : 0;
        if (cs_kind_group_of(cls->kind) == CS_GROUP_COMPUTE)
            y[cls->device] = most(y[cls->device], end);
        for (uint32_t i = 0; i < n; i++)
            until[after[i]] = most(until[after[i]], end);
        if (next != CS_NONE)
            until[next] = most(until[next], end);
    }
}

/* Whether every pass gathers its weights and scatters its gradients, as delays. */
static bool repeats_exchanges(const cs_scenario *scenario)
{
    const uint32_t fidelity = scenario->collectives.fidelity;
    bool repeats = !scenario->job.states.accumulate &&
                   (fidelity == CS_FIDELITY_ANALYTIC || fidelity == CS_FIDELITY_ALPHA_BETA);
    for (uint32_t s = 0; repeats && s < scenario->plan->n_stages; s++)
        repeats = !cs_states_keeps(&scenario->job, s);
    return repeats;
}

/* Sets y of all ranks, then q of all ranks. */
static cs_status take_sharded(const cs_candidate *c, const cs_pass_order *order,
                              const cs_scenario *scenario, const cs_progress *progress,
                              double *numbers, bool *taken, cs_error *error)
{
    const cs_simulation_options how = {.no_links = true, .progress = progress};
    const cs_plan *plan = scenario->plan;
    cs_graph graph = {0};
    cs_trace trace = {0};
    CS_TRY(cs_simulate_trace(scenario, &how, &graph, &trace, error));
    double *until =
        calloc((size_t)graph.n_tasks + graph.n_devices + plan->n_stages + 1, sizeof(*until));
    double *y = until ? until + graph.n_tasks : NULL, *q = until ? y + graph.n_devices : NULL;
    *taken = until && graph.n_series == 0 && cs_graph_ids_rise(&graph) &&
             plan->n_stages == c->pipeline * c->chunks;
    if (*taken)
        take_paths(plan, &graph, &trace, until, q, y);
    for (uint32_t r = 0; *taken && r < c->pipeline; r++) {
        numbers[r] = y[cs_plan_device(plan, r)];
        for (uint32_t k = 0; k < c->chunks; k++)
            numbers[c->pipeline + r] =
                most(numbers[c->pipeline + r], q[cs_pass_stage(c, order, r, k)]);
    }
    cs_graph_finish(&graph);
    cs_trace_finish(&trace);
    const bool room = until != NULL;
    free(until);
    return room ? CS_OK : cs_error_no_memory(error);
}

static void take_sizes(const cs_scenario *scenario, cs_priced *to)
{
    const cs_model *model = scenario->model;
    const int64_t parts = scenario->job.message_parts;
    for (uint32_t s = 0; s < to->n_stages; s++) {
        const cs_layer_sum *sum = &scenario->job.stages[s];
        const cs_stage *of = &scenario->plan->stages[s];
        cs_stage_price *stage = &to->stages[s];
        const double speed = scenario->platform.devices[cs_plan_device(scenario->plan, s)].speed;
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
        stage->output = (double)(sum->output_bytes / (parts > 0 ? parts : 1));
        stage->weight_half = fmin(cs_time_seconds(sum->backward_weight) / speed, stage->backward);
    }
    to->gradient_ratio = (double)cs_model_gradient_ratio(model);
    to->wide_shards = scenario->job.states.wide_shards;
    to->additive = true; /* except for shared weights, because each stage has a copy */
    for (uint32_t l = 0; to->n_stages > 1 && l < model->n_layers; l++)
        to->additive = to->additive && !model->layers[l].tied_to;
    to->optimizer_ratio = scenario->job.optimizer_ratio;
}

static cs_status take_prices(const cs_scenario *scenario, bool has_rules,
                             const cs_progress *progress, cs_priced *to, cs_error *error)
{
    const cs_simulation_options how = {.no_links = true, .progress = progress};
    cs_graph graph = {0};
    cs_trace trace = {0};
    /* with rules, the last micro-batch waits for sums of gradients, and scatters follow them */
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
    cJSON *document = pricing_document(base, candidate, 0);
    cs_status status = document && priced->scenario ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK)
        status =
            cs_scenario_read_brief(document, base->path, parts, progress, priced->scenario, error);
    if (status == CS_OK) {
        /* with rules or OSDP, sums of sharded layers delay other exchanges, so they are included */
        priced->scenario->job.passes_only = !base->has_rules && !candidate->more;
        status = take_prices(priced->scenario, base->has_rules, progress, priced, error);
    }
    priced->known = true;
    cJSON_Delete(document);
    return status;
}

/* ---- parts that candidates share ---- */

/* Differences between the places of each mesh (cs_scenario.difference), per ZeRO stage. Threads
 * record them after they have read a scenario with the mesh. */
enum { ZERO_STAGES = 4 };
typedef struct cs_mesh_notes {
    pthread_mutex_t lock;
    size_t n;
    char **differences; /* text per mesh and ZeRO stage; NULL: not yet known */
} cs_mesh_notes;

static uint32_t find_number(const cs_numbering *numbers, const cs_candidates *all, uint32_t i);

static size_t note_of(const cs_bounds *bounds, const cs_candidates *all, uint32_t i, uint32_t zero)
{
    return (size_t)find_number(&bounds->meshes, all, i) * ZERO_STAGES + zero;
}

static const char *noted(const cs_bounds *bounds, size_t note)
{
    pthread_mutex_lock(&bounds->notes->lock);
    const char *difference = bounds->notes->differences[note];
    pthread_mutex_unlock(&bounds->notes->lock);
    return difference;
}

/* Records a difference; if memory runs out, it stays unknown. */
static void note_difference(const cs_bounds *bounds, size_t note, const char *difference)
{
    if (!difference || noted(bounds, note))
        return;
    char *copy = strdup(difference);
    pthread_mutex_lock(&bounds->notes->lock);
    if (!bounds->notes->differences[note]) {
        bounds->notes->differences[note] = copy;
        copy = NULL;
    }
    pthread_mutex_unlock(&bounds->notes->lock);
    free(copy);
}

static cs_status grow_notes(cs_bounds *bounds, cs_error *error)
{
    const size_t n = (size_t)bounds->meshes.n * ZERO_STAGES;
    cs_mesh_notes *notes = bounds->notes;
    char **grown = realloc(notes->differences, (n + 1) * sizeof(*grown));
    if (!grown)
        return cs_error_no_memory(error);
    memset(grown + notes->n, 0, (n - notes->n) * sizeof(*grown));
    notes->differences = grown;
    notes->n = n;
    return CS_OK;
}

static void destroy_notes(cs_mesh_notes *notes)
{
    if (!notes)
        return;
    for (size_t i = 0; i < notes->n; i++)
        free(notes->differences[i]);
    free(notes->differences);
    pthread_mutex_destroy(&notes->lock);
    free(notes);
}

/* Returns the model of a price, from the first price with the same model; NULL if that is not
 * kept. */
static cs_model *model_of(const cs_bounds *bounds, uint32_t price)
{
    const cs_scenario *like = bounds->priced[bounds->model[price]].scenario;
    return like && like->net ? like->model : NULL;
}

static const cs_devices_platform *platform_of(const cs_bounds *bounds, uint32_t devices)
{
    for (uint32_t i = 0; i < bounds->n_platforms; i++)
        if (bounds->platforms[i].devices == devices)
            return &bounds->platforms[i];
    return NULL;
}

/* Lends platform and network to a candidate; no network to OSDP's plans, because their changes may
 * concern it too. */
cs_scenario_parts cs_bounds_parts(const cs_bounds *bounds, const cs_candidate *candidate)
{
    const cs_devices_platform *on = platform_of(bounds, candidate->devices);
    return (cs_scenario_parts){.network =
                                   bounds->whole.net && !candidate->more ? &bounds->whole : NULL,
                               .platform = on ? &on->scenario.platform : NULL,
                               .memory = on ? on->memory : NULL};
}

cs_status cs_bounds_read(const cs_advise_base *base, const cs_candidates *candidates,
                         const cs_bounds *bounds, uint32_t i, const cs_progress *progress,
                         cs_scenario *scenario, cs_error *error)
{
    const cs_candidate *candidate = &candidates->items[i];
    const size_t note = note_of(bounds, candidates, i, candidate->zero);
    cs_scenario_parts parts = cs_bounds_parts(bounds, candidate);
    parts.model = model_of(bounds, bounds->of[i]);
    parts.difference = candidate->more ? NULL : noted(bounds, note);
    cJSON *document = cs_candidate_document(base, candidate);
    if (!document)
        return cs_error_no_memory(error);
    const cs_status status =
        cs_scenario_read_brief(document, base->path, &parts, progress, scenario, error);
    if (status == CS_OK && !candidate->more)
        note_difference(bounds, note, scenario->difference);
    cJSON_Delete(document);
    return status;
}

/* Makes a platform per number of devices, from the first possible candidate of each. Candidates
 * without splitting and without a pipeline come first. */
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
        if (status == CS_OK && !(next->memory = cs_price_memory_create(&next->scenario.platform)))
            return cs_error_no_memory(error);
    }
    return CS_OK;
}

/* ---- all of them ---- */

enum { MOST_BLOCK = 256 }; /* largest number of devices that are compared with each other */

/* Largest number of models kept; a model is as large as all its layers and operators. */
enum { MODELS_KEPT = 4096 };

/* Packs the members without pointers, then the stages. */
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

/* Unpacks everything except the scenario. */
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

/* ---- prices at ZeRO stages ---- */

/* Bit of a point of work: the point is a price at a ZeRO stage, otherwise a price. */
enum { SHARDED_POINT = 1 << 30 };

/* Number of passes that cost about as much as one price. A price at a ZeRO stage prunes most of its
 * plans. Simulating a plan takes about as long as pricing it, and twice as long with 64
 * micro-batches. */
enum { PASSES_ALIKE = 64 };

static bool waits_for_shards(const cs_candidate *c)
{
    return c->zero >= 2 && c->pipeline > 1 && c->micro_batches > 1 && !c->more;
}

uint32_t cs_bounds_sharded_point(const cs_bounds *bounds, uint32_t i)
{
    const uint32_t of = bounds->sharded_of[i];
    if (of == CS_NO_CANDIDATE || bounds->sharded[of].known ||
        bounds->sharded[of].saves < 2 * PASSES_ALIKE)
        return CS_NO_CANDIDATE;
    return of | SHARDED_POINT;
}

/* Prices a candidate at its ZeRO stage. The item's value is an unused number, followed by y and q
 * of all ranks if they are known. */
static void work_at(const cs_advise_base *base, const cs_candidates *candidates,
                    const cs_bounds *bounds, uint32_t i, const cs_progress *progress,
                    cs_pool_item *item)
{
    const cs_candidate *c = &candidates->items[i];
    const size_t note = note_of(bounds, candidates, i, c->zero);
    cs_scenario scenario = {0};
    cs_scenario_parts parts = cs_bounds_parts(bounds, c);
    parts.model = model_of(bounds, bounds->of[i]);
    parts.difference = noted(bounds, note);
    bool taken = false;
    double *numbers = calloc(2 * (size_t)c->pipeline + 1, sizeof(*numbers));
    cJSON *document = pricing_document(base, c, c->zero);
    cs_status status = document && numbers ? CS_OK : cs_error_no_memory(item->error);
    if (status == CS_OK)
        status =
            cs_scenario_read_brief(document, base->path, &parts, progress, &scenario, item->error);
    if (status == CS_OK)
        note_difference(bounds, note, scenario.difference);
    if (status == CS_OK && !base->has_rules && repeats_exchanges(&scenario))
        status = take_sharded(c, cs_bounds_order(bounds, i), &scenario, progress, numbers + 1,
                              &taken, item->error);
    cs_scenario_finish(&scenario);
    cJSON_Delete(document);
    item->value = numbers;
    item->value_bytes = sizeof(*numbers) * (1 + (taken ? 2 * (size_t)c->pipeline : 0));
    item->status = status == CS_NO_MEMORY || status == CS_INTERRUPTED ? status : CS_OK;
}

static cs_status collect_at(cs_sharded_price *to, const cs_pool_item *item, cs_error *error)
{
    const size_t n = item->value_bytes / sizeof(double) - 1;
    if (item->status == CS_NO_MEMORY || !(to->passes = calloc(n + 1, sizeof(*to->passes))))
        return cs_error_no_memory(error);
    memcpy(to->passes, (const double *)item->value + 1, n * sizeof(*to->passes));
    to->known = true;
    to->ranks = (uint32_t)(n / 2);
    to->scatters = to->passes + to->ranks;
    return CS_OK;
}

/* Does the work of a point. Also keeps the scenario of a model's first price, because other prices
 * use its model. */
void cs_bounds_work(const cs_advise_base *base, const cs_candidates *candidates,
                    const cs_bounds *bounds, uint32_t point, const cs_progress *progress,
                    cs_pool_item *item)
{
    if (point & SHARDED_POINT) {
        work_at(base, candidates, bounds, bounds->sharded_numbers.first[point & ~SHARDED_POINT],
                progress, item);
        return;
    }
    const uint32_t price = point, i = bounds->prices.first[price];
    const cs_candidate *candidate = &candidates->items[i];
    const size_t note = note_of(bounds, candidates, i, 0);
    cs_scenario_parts parts = cs_bounds_parts(bounds, candidate);
    parts.model = model_of(bounds, price);
    parts.difference = candidate->more ? NULL : noted(bounds, note);
    cs_priced priced;
    item->status = cs_bounds_price(base, candidate, &parts, progress, &priced, item->error);
    if (item->status == CS_OK && !candidate->more)
        note_difference(bounds, note, priced.scenario->difference);
    if (!pack(&priced, item))
        item->status = cs_error_no_memory(item->error);
    if (bounds->model[price] == price && price < MODELS_KEPT && !bounds->priced[price].scenario) {
        bounds->priced[price].scenario = priced.scenario;
        priced.scenario = NULL;
    }
    cs_priced_finish(&priced);
}

const cs_pass_order *cs_bounds_order(const cs_bounds *bounds, uint32_t i)
{
    return &bounds->orders[bounds->order_of[i]];
}

/* Raises bounds; bounds never decrease. */
static void raise(cs_bounds *bounds, uint32_t i, double time, double memory)
{
    bounds->time[i] = most(bounds->time[i], time);
    bounds->memory[i] = most(bounds->memory[i], memory);
}

static cs_status set_bounds(const cs_advise_base *base, const cs_candidates *candidates,
                            cs_bounds *bounds, uint32_t i, cs_error *error)
{
    const cs_candidate *c = &candidates->items[i];
    const cs_pass_order *order = cs_bounds_order(bounds, i);
    const cs_priced *own = &bounds->priced[bounds->of[i]];
    const cs_priced *like = &bounds->priced[bounds->model[bounds->of[i]]];
    const uint32_t sharded = bounds->sharded_of[i];
    if (own->possible)
        raise(bounds, i, cs_bound_time(c, order, own), cs_bound_memory(base, c, order, own));
    if (own->possible && sharded != CS_NO_CANDIDATE)
        raise(bounds, i, sharded_time(c, order, own, &bounds->sharded[sharded]), 0);
    if (!own->known && like->possible)
        raise(bounds, i, bounds->equal_speeds ? cs_rough_time(c, order, like) : 0,
              cs_rough_memory(base, c, order, like));
    if (!like->possible || bounds->promises[i].time > 0)
        return CS_OK;
    return cs_promise_make(base, c, order, like, cs_bounds_parts(bounds, c).platform,
                           &bounds->promises[i], error);
}

/* Computes the times of messages between the first places of neighbouring stages, each alone on its
 * links. */
static cs_status time_messages(const cs_candidate *c, const cs_pass_order *order,
                               const cs_platform *platform, cs_stage_price *stages, cs_error *error)
{
    const uint32_t stride =
        c->inner == CS_ORDER_DATA ? c->devices / c->pipeline : c->layer * c->space * c->context;
    for (uint32_t s = 0; platform && s + 1 < order->n_stages; s++) {
        const uint32_t from = order->rank[s] * stride, to = order->rank[s + 1] * stride;
        cs_route down, up;
        if (from == to)
            continue;
        CS_TRY(cs_route_find(platform, from, to, NULL, &down, error));
        CS_TRY(cs_route_find(platform, to, from, NULL, &up, error));
        stages[s].down = cs_time_seconds(down.latency) + stages[s].output / down.bandwidth;
        stages[s].up = cs_time_seconds(up.latency) + stages[s].output / up.bandwidth;
    }
    return CS_OK;
}

cs_status cs_bounds_follow(const cs_advise_base *base, const cs_candidates *candidates,
                           cs_bounds *bounds, uint32_t i, cs_error *error)
{
    const cs_candidate *c = &candidates->items[i];
    const cs_pass_order *order = cs_bounds_order(bounds, i);
    const cs_priced *priced = &bounds->priced[bounds->of[i]];
    const size_t n = order->n_stages;
    cs_stage_price *stages = malloc(n * sizeof(*stages));
    double time, memory = 0, *kept = malloc((c->pipeline + (size_t)1) * sizeof(*kept));
    cs_status status = kept && stages ? CS_OK : cs_error_no_memory(error);
    if (status == CS_OK) {
        memcpy(stages, priced->stages, n * sizeof(*stages));
        status = time_messages(c, order, cs_bounds_parts(bounds, c).platform, stages, error);
    }
    if (status == CS_OK)
        status = cs_passes_follow(c, order, stages, &time, kept, error);
    bounds->followed[i] = true;
    for (uint32_t r = 0; status == CS_OK && r < c->pipeline; r++) {
        double bytes = kept[r];
        for (uint32_t k = 0; k < c->chunks; k++)
            bytes += cs_resting(base, c, priced, &priced->stages[cs_pass_stage(c, order, r, k)]);
        memory = most(memory, bytes);
    }
    if (status == CS_OK)
        raise(bounds, i, time * (1 - margin), memory * (1 - margin));
    free(stages);
    free(kept);
    return status;
}

cs_status cs_bounds_collect(const cs_advise_base *base, const cs_candidates *candidates,
                            cs_bounds *bounds, uint32_t point, const cs_pool_item *item,
                            cs_error *error)
{
    const bool sharded = point & SHARDED_POINT;
    const uint32_t number = point & ~SHARDED_POINT;
    const uint32_t price = sharded ? bounds->of[bounds->sharded_numbers.first[number]] : number;
    cs_priced *priced = &bounds->priced[price];
    if (sharded)
        CS_TRY(collect_at(&bounds->sharded[number], item, error));
    else if (item->status == CS_NO_MEMORY || !unpack(item, priced))
        return cs_error_no_memory(error);
    if (!sharded && item->status != CS_OK) {
        const char *text = item->error->text;
        priced->why = cs_arena_copy_length(&bounds->arena, text, strcspn(text, "\n"));
        if (!priced->why)
            return cs_error_no_memory(error);
    }
    for (uint32_t i = bounds->first_candidate[price]; i != CS_NO_CANDIDATE;
         i = bounds->next_candidate[i])
        CS_TRY(set_bounds(base, candidates, bounds, i, error));
    return CS_OK;
}

typedef struct pricing {
    const cs_advise_base *base;
    const cs_candidates *candidates;
    cs_bounds *bounds;
} pricing;

static void work(const void *context, uint32_t price, const cs_progress *progress,
                 cs_pool_item *item)
{
    const pricing *p = context;
    cs_bounds_work(p->base, p->candidates, p->bounds, price, progress, item);
}

static cs_status collect(void *context, const cs_pool_item *item, cs_error *error)
{
    const pricing *p = context;
    return cs_bounds_collect(p->base, p->candidates, p->bounds, item->point, item, error);
}

cs_status cs_bounds_list_prices(const cs_bounds *bounds, bool firsts, uint32_t **prices,
                                uint32_t *n, cs_error *error)
{
    *n = 0;
    *prices = malloc((bounds->prices.n + 1ULL) * sizeof(**prices));
    if (!*prices)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < bounds->prices.n; i++)
        if ((bounds->model[i] == i) == firsts && !bounds->priced[i].known)
            (*prices)[(*n)++] = i;
    return CS_OK;
}

cs_status cs_bounds_price_some(const cs_advise_base *base, const cs_candidates *candidates,
                               const uint32_t *prices, uint32_t n, uint32_t jobs,
                               const cs_progress *progress, cs_bounds *bounds, cs_error *error)
{
    pricing p = {base, candidates, bounds};
    const cs_pool pool = {.what = "measuring models",
                          .points_are = "models",
                          .work = work,
                          .work_context = &p,
                          .collect = collect,
                          .collect_context = &p,
                          .points = prices,
                          .n_points = n,
                          .jobs = jobs};
    cs_status status = cs_pool_run(&pool, progress, error);
    for (uint32_t i = 0; status == CS_OK && i < bounds->n; i++)
        if (!(bounds->time[i] > 0)) /* otherwise set_bounds has set its rough bounds already */
            status = set_bounds(base, candidates, bounds, i, error);
    return status;
}

/* ---- numbers ---- */

enum { BUCKETS = 4096 };

static uint32_t mix(uint32_t hash, uint32_t value)
{
    return (hash ^ value) * 0x01000193u; /* the FNV-1a hash, by words */
}

static uint32_t hash_model(const cs_candidate *c, const cs_even_blocks *even)
{
    const uint32_t parts[] = {c->devices, c->method, c->layer,         c->space,
                              c->context, c->expert, c->micro_samples, c->recompute};
    uint32_t hash = 0x811c9dc5u;
    (void)even;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        hash = mix(hash, parts[i]);
    return hash;
}

static uint32_t hash_price(const cs_candidate *c, const cs_even_blocks *even)
{
    return mix(hash_model(c, even), c->pipeline * c->chunks);
}

static uint32_t hash_sharded(const cs_candidate *c, const cs_even_blocks *even)
{
    return mix(mix(mix(hash_price(c, even), c->zero), c->pipeline), c->inner);
}

static uint32_t hash_mesh(const cs_candidate *c, const cs_even_blocks *even)
{
    const uint32_t group = c->layer * c->space * c->context;
    (void)even;
    return mix(mix(mix(mix(c->devices, group), c->expert), c->pipeline), c->inner);
}

static uint32_t hash_order(const cs_candidate *c, const cs_even_blocks *even)
{
    (void)even;
    return mix(mix(mix(mix(0x811c9dc5u, c->schedule), c->pipeline), c->chunks), c->micro_batches);
}

static void finish_numbering(cs_numbering *numbers)
{
    free(numbers->first);
    free(numbers->next);
    free(numbers->hashed);
}

static bool init_numbering(cs_numbering *numbers,
                           bool (*same)(const cs_candidate *a, const cs_candidate *b,
                                        const cs_even_blocks *even),
                           uint32_t (*hash)(const cs_candidate *c, const cs_even_blocks *even),
                           const cs_even_blocks *even)
{
    *numbers = (cs_numbering){.same = same,
                              .hash = hash,
                              .even = *even,
                              .hashed = calloc(BUCKETS, sizeof(*numbers->hashed))};
    return numbers->hashed != NULL;
}

static uint32_t find_number(const cs_numbering *numbers, const cs_candidates *all, uint32_t i)
{
    const uint32_t bucket = numbers->hash(&all->items[i], &numbers->even) % BUCKETS;
    for (uint32_t p = numbers->hashed[bucket]; p > 0; p = numbers->next[p - 1])
        if (numbers->same(&all->items[numbers->first[p - 1]], &all->items[i], &numbers->even))
            return p - 1;
    return CS_NONE;
}

/* Returns the number of a candidate: the number of an equal earlier candidate, or a new one. The
 * arrays have room for it. */
static uint32_t number_of(cs_numbering *numbers, const cs_candidates *all, uint32_t i)
{
    const uint32_t found = find_number(numbers, all, i);
    const uint32_t bucket = numbers->hash(&all->items[i], &numbers->even) % BUCKETS;
    if (found != CS_NONE)
        return found;
    numbers->first[numbers->n] = i;
    numbers->next[numbers->n] = numbers->hashed[bucket];
    numbers->hashed[bucket] = numbers->n + 1;
    return numbers->n++;
}

/* Grows an array to `n` + 1 items. */
static bool grow(void *array, size_t n, size_t size)
{
    void *grown = realloc(*(void **)array, (n + 1) * size);
    if (grown)
        *(void **)array = grown;
    return grown != NULL;
}

static bool grow_all(cs_bounds *b, size_t n)
{
    cs_numbering *all[] = {&b->models, &b->prices, &b->meshes, &b->order_numbers,
                           &b->sharded_numbers};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (!grow(&all[i]->first, n, sizeof(uint32_t)) || !grow(&all[i]->next, n, sizeof(uint32_t)))
            return false;
    return grow(&b->priced, n, sizeof(*b->priced)) && grow(&b->model, n, sizeof(*b->model)) &&
           grow(&b->first_candidate, n, sizeof(*b->first_candidate)) &&
           grow(&b->next_candidate, n, sizeof(*b->next_candidate)) &&
           grow(&b->orders, n, sizeof(*b->orders)) && grow(&b->order_of, n, sizeof(*b->order_of)) &&
           grow(&b->followed, n, sizeof(*b->followed)) && grow(&b->of, n, sizeof(*b->of)) &&
           grow(&b->sharded, n, sizeof(*b->sharded)) &&
           grow(&b->sharded_of, n, sizeof(*b->sharded_of)) && grow(&b->time, n, sizeof(*b->time)) &&
           grow(&b->memory, n, sizeof(*b->memory)) && grow(&b->promises, n, sizeof(*b->promises));
}

cs_status cs_bounds_extend(const cs_candidates *candidates, cs_bounds *bounds, cs_error *error)
{
    if (!grow_all(bounds, candidates->n))
        return cs_error_no_memory(error);
    for (uint32_t i = bounds->n; i < candidates->n; i++) {
        const uint32_t known = bounds->prices.n, models = bounds->models.n;
        const uint32_t model = number_of(&bounds->models, candidates, i);
        const uint32_t price = number_of(&bounds->prices, candidates, i);
        (void)number_of(&bounds->meshes, candidates, i);
        const uint32_t orders = bounds->order_numbers.n;
        bounds->order_of[i] = number_of(&bounds->order_numbers, candidates, i);
        bounds->followed[i] = false;
        bounds->sharded_of[i] = CS_NO_CANDIDATE;
        if (waits_for_shards(&candidates->items[i])) {
            const uint32_t sharded = bounds->sharded_numbers.n;
            const uint32_t of = number_of(&bounds->sharded_numbers, candidates, i);
            if (of == sharded)
                bounds->sharded[of] = (cs_sharded_price){0};
            bounds->sharded[of].saves += PASSES_ALIKE + candidates->items[i].micro_batches;
            bounds->sharded_of[i] = of;
        }
        bounds->of[i] = price;
        bounds->time[i] = bounds->memory[i] = 0;
        bounds->promises[i] = (cs_promise){0};
        bounds->next_candidate[i] =
            price < known ? bounds->first_candidate[price] : CS_NO_CANDIDATE;
        bounds->first_candidate[price] = i;
        if (price == known) { /* the first candidate of a new model has a new price */
            bounds->priced[price] = (cs_priced){0};
            bounds->model[price] =
                model == models ? price : bounds->of[bounds->models.first[model]];
        }
        /* done last, so that nothing is left unset after a failure */
        if (bounds->order_of[i] == orders)
            CS_TRY(cs_pass_order_find(&candidates->items[i], &bounds->orders[orders], error));
    }
    bounds->n = candidates->n;
    return grow_notes(bounds, error);
}

/* ---- begin and end ---- */

/* Finds the largest memory of a device, before candidates reserve memory for their communicators,
 * and whether all devices are equally fast. */
static cs_status take_devices(const cs_advise_base *base, cs_bounds *bounds, cs_error *error)
{
    cs_scenario *whole = &bounds->whole;
    CS_TRY(cs_advise_read_itself(base->document, base->path, true, whole, NULL, error));
    const cs_device *devices = whole->platform.devices;
    bounds->capacity = base->section.memory;
    bounds->equal_speeds = true;
    for (uint32_t d = 0; d < whole->platform.n_devices; d++) {
        const int64_t memory =
            devices[d].capacity == INT64_MAX ? INT64_MAX : devices[d].capacity + devices[d].reserve;
        if (base->section.memory == 0 && memory > bounds->capacity)
            bounds->capacity = memory;
        bounds->equal_speeds &=
            !(devices[d].speed < devices[0].speed) && !(devices[d].speed > devices[0].speed);
    }
    return CS_OK;
}

/* Comparison of the links of each block of neighbouring devices with the links of the first
 * block. */
typedef struct likeness {
    const cs_platform *platform;
    uint32_t *first, *link; /* scratch for the links of two routes */
    uint32_t *block,
        /* per link: 1 + number of the only block that uses it; matching link of the first block */
        *like;
    uint32_t *now; /* per link of the first block: its match in the latest block */
} likeness;

/* Whether the route from a to b in a block is like the route between the same places of the first
 * block. */
static cs_status is_way_alike(likeness *l, uint32_t size, uint32_t block, uint32_t a, uint32_t b,
                              bool *alike, cs_error *error)
{
    const cs_platform *on = l->platform;
    cs_route first, route;
    CS_TRY(cs_route_find(on, a, b, l->first, &first, error));
    CS_TRY(cs_route_find(on, block * size + a, block * size + b, l->link, &route, error));
    *alike = route.n == first.n;
    for (uint32_t k = 0; k < route.n && *alike; k++) {
        const uint32_t at = l->link[k], like = l->first[k];
        if (l->block[at] == 0 && l->block[l->now[like]] != block + 1) {
            l->block[at] = block + 1;
            l->like[at] = like;
            l->now[like] = at;
        }
        *alike = l->block[at] == block + 1 && l->like[at] == like && l->now[like] == at &&
                 on->links[at].latency == on->links[like].latency &&
                 !(on->links[at].bandwidth < on->links[like].bandwidth) &&
                 !(on->links[at].bandwidth > on->links[like].bandwidth);
    }
    return CS_OK;
}

/* Whether each block of `size` neighbouring devices is connected like the first block, by links
 * that no other block uses. If so, exchanges within blocks take the same time in all blocks. */
static cs_status are_blocks_alike(const cs_platform *platform, uint32_t size, bool *alike,
                                  cs_error *error)
{
    const uint32_t node = platform->node_devices, rack = platform->rack_devices;
    const size_t links = platform->n_links, longest = platform->longest_route;
    *alike = node > 1 && platform->n_devices % node == 0 && platform->n_devices % size == 0 &&
             (node % size == 0 || size % node == 0) && rack % size == 0;
    if (!*alike || size == 1)
        return CS_OK;
    uint32_t *room = calloc(3 * links + 2 * longest + 2, sizeof(*room));
    if (!room)
        return cs_error_no_memory(error);
    likeness l = {.platform = platform,
                  .first = room,
                  .link = room + longest,
                  .block = room + 2 * longest,
                  .like = room + 2 * longest + links + 1,
                  .now = room + 2 * longest + 2 * links + 1};
    cs_status status = CS_OK;
    for (size_t k = 0; k < links; k++)
        l.now[k] = (uint32_t)links; /* invalid number, which no link has */
    for (uint32_t block = 0; block < platform->n_devices / size && *alike; block++)
        for (uint32_t pair = 0; pair < size * size && *alike && status == CS_OK; pair++)
            if (pair / size != pair % size)
                status = is_way_alike(&l, size, block, pair / size, pair % size, alike, error);
    free(room);
    return status;
}

/* Finds the numbers of devices over which candidates split layers within equal blocks, on all
 * platforms. */
static cs_status find_blocks(const cs_candidates *candidates, cs_bounds *bounds, cs_error *error)
{
    const cs_model *model = bounds->whole.model;
    bool even = bounds->equal_speeds && bounds->n_platforms > 0;
    /* with shared weights, the copies depend on the devices of the stages */
    for (uint32_t l = 0; l < model->n_layers; l++)
        even &= !model->layers[l].tied_to;
    uint32_t tried[CS_BLOCKS_MAX], n_tried = 0;
    for (uint32_t c = 0; c < candidates->n && even && n_tried < CS_BLOCKS_MAX; c++) {
        const uint32_t size = cs_candidate_places(&candidates->items[c]);
        bool alike = size <= MOST_BLOCK;
        for (uint32_t k = 0; k < n_tried && alike; k++)
            alike = tried[k] != size;
        if (!alike)
            continue;
        tried[n_tried++] = size;
        for (uint32_t i = 0; i < bounds->n_platforms && alike; i++)
            CS_TRY(are_blocks_alike(&bounds->platforms[i].scenario.platform, size, &alike, error));
        if (alike)
            bounds->blocks.sizes[bounds->blocks.n++] = size;
    }
    return CS_OK;
}

void cs_bounds_finish(cs_bounds *bounds)
{
    for (uint32_t i = 0; bounds->priced && i < bounds->prices.n; i++)
        cs_priced_finish(&bounds->priced[i]);
    for (uint32_t i = 0; i < bounds->n_platforms; i++) { /* after the scenarios that share them */
        cs_price_memory_destroy(bounds->platforms[i].memory);
        cs_scenario_finish(&bounds->platforms[i].scenario);
    }
    cs_scenario_finish(&bounds->whole);
    finish_numbering(&bounds->models);
    finish_numbering(&bounds->prices);
    finish_numbering(&bounds->meshes);
    for (uint32_t i = 0; bounds->orders && i < bounds->order_numbers.n; i++)
        free(bounds->orders[i].rank);
    finish_numbering(&bounds->order_numbers);
    for (uint32_t i = 0; bounds->sharded && i < bounds->sharded_numbers.n; i++)
        free(bounds->sharded[i].passes);
    finish_numbering(&bounds->sharded_numbers);
    free(bounds->sharded);
    free(bounds->sharded_of);
    free(bounds->orders);
    free(bounds->order_of);
    free(bounds->followed);
    destroy_notes(bounds->notes);
    free(bounds->platforms);
    free(bounds->priced);
    free(bounds->model);
    free(bounds->first_candidate);
    free(bounds->next_candidate);
    free(bounds->of);
    free(bounds->time);
    free(bounds->memory);
    free(bounds->promises);
    cs_arena_finish(&bounds->arena);
    *bounds = (cs_bounds){0};
}

cs_status cs_bounds_begin(const cs_advise_base *base, const cs_candidates *candidates,
                          cs_bounds *bounds, cs_error *error)
{
    *bounds = (cs_bounds){.notes = calloc(1, sizeof(*bounds->notes))};
    cs_arena_init(&bounds->arena);
    if (bounds->notes)
        pthread_mutex_init(&bounds->notes->lock, NULL);
    cs_status status =
        bounds->notes ? take_devices(base, bounds, error) : cs_error_no_memory(error);
    if (status == CS_OK)
        status = make_platforms(base, candidates, bounds, error);
    if (status == CS_OK)
        status = find_blocks(candidates, bounds, error);
    const cs_even_blocks *even = &bounds->blocks;
    bool room = init_numbering(&bounds->models, have_one_model, hash_model, even);
    room &= init_numbering(&bounds->prices, have_one_price, hash_price, even);
    room &= init_numbering(&bounds->meshes, have_one_mesh, hash_mesh, even);
    room &= init_numbering(&bounds->order_numbers, have_one_order, hash_order, even);
    room &= init_numbering(&bounds->sharded_numbers, have_one_sharded_price, hash_sharded, even);
    if (status == CS_OK)
        status = room ? cs_bounds_extend(candidates, bounds, error) : cs_error_no_memory(error);
    if (status != CS_OK)
        cs_bounds_finish(bounds);
    return status;
}
