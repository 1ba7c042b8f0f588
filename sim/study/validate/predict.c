#include "sim/study/validate/predict.h"

#include "sim/base/hash.h"
#include "sim/run/figures.h"
#include "sim/run/simulate.h"
#include "sim/study/validate/prediction-journal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const cs_prediction_states[] = {"predicted", "missing", "failed", NULL};

const char *const cs_measure_keys[CS_N_MEASURES] = {
    [CS_MEASURE_TIME] = "step_time",        [CS_MEASURE_ALLOCATED] = "allocated",
    [CS_MEASURE_LEAST] = "least_allocated", [CS_MEASURE_RESERVED] = "reserved",
    [CS_MEASURE_DEVICE] = "device_memory",
};

void cs_predictions_finish(cs_predictions *predictions)
{
    for (uint32_t i = 0; predictions->items && i < predictions->n; i++) {
        cs_recipe_finish(&predictions->items[i].made);
        free(predictions->items[i].message);
    }
    free(predictions->items);
    *predictions = (cs_predictions){0};
}

bool cs_prediction_has_verdict(const cs_prediction *prediction)
{
    return prediction->state == CS_PREDICTION_MADE && prediction->knows_verdict &&
           !isnan(prediction->values[CS_MEASURE_ALLOCATED]);
}

bool cs_prediction_is_decided(const cs_prediction *prediction)
{
    return cs_prediction_has_verdict(prediction) && !prediction->depends;
}

bool cs_prediction_is_right(const cs_prediction *prediction)
{
    return cs_prediction_is_decided(prediction) &&
           prediction->out_of_memory == prediction->was_out_of_memory;
}

double cs_prediction_error(const cs_prediction *prediction, cs_measure measure)
{
    return prediction->values[measure] / prediction->measured[measure] - 1;
}

/* ---- one point ---- */

/* Returns the peak comparable to the source's: Megatron-LM logs the peak of its last rank, other
 * sources report the rank with the largest peak. */
static double peak_of(const char *key, const cs_point *point, const cs_outcome *outcome)
{
    const cs_run_figure *figure = cs_run_figure_find(key);
    if (!point->run.args)
        return cs_run_figure_value(figure, outcome);
    cs_outcome last = *outcome;
    last.device = outcome->scenario->platform.n_devices - 1;
    return figure->get(&last);
}

/* Returns the peak of the device with the smallest peak. */
static double least_of(const char *key, const cs_outcome *outcome)
{
    const cs_run_figure *figure = cs_run_figure_find(key);
    double least = (double)INFINITY;
    for (uint32_t d = 0; d < outcome->scenario->platform.n_devices; d++) {
        const cs_outcome of = {outcome->scenario, outcome->simulation, d};
        if (cs_graph_has(&outcome->simulation->graph, d))
            least = fmin(least, figure->get(&of));
    }
    return least;
}

/* Takes the allocator's peaks if the framework's allocator is known, otherwise the trace's. */
static bool take_memory(const cs_point *point, const cs_outcome *outcome, cJSON *figures)
{
    const bool known = outcome->simulation->allocations.n_devices > 0;
    const char *allocated = known ? "peak_allocated_bytes" : "peak_memory_bytes";
    const char *device = known ? "peak_reserved_bytes" : "peak_memory_bytes";
    if (outcome->scenario->model->times_only)
        return true;
    return cJSON_AddNumberToObject(figures, "allocated", peak_of(allocated, point, outcome)) &&
           cJSON_AddNumberToObject(figures, "least", least_of(allocated, outcome)) &&
           cJSON_AddNumberToObject(figures, "device", peak_of(device, point, outcome)) &&
           (!known || cJSON_AddNumberToObject(figures, "reserved",
                                              peak_of("peak_reserved_bytes", point, outcome)));
}

/* Whether the run is out of memory: an allocation failed in the allocator or, without an allocator,
 * the peak exceeds the capacity. */
static bool runs_out(const cs_simulation *simulation)
{
    const cs_allocations *allocations = &simulation->allocations;
    bool failed = false;
    for (uint32_t d = 0; d < allocations->n_devices; d++)
        failed |= allocations->devices[d].failure.failed;
    return allocations->n_devices > 0 ? failed : cs_simulation_out_of_memory(simulation);
}

static bool take_figures(const cs_prediction *prediction, const cs_scenario *scenario,
                         const cs_simulation *simulation, cJSON *figures)
{
    const cs_outcome outcome = {.scenario = scenario, .simulation = simulation};
    /* gathering weights after the update without overlap is part of a step */
    const cs_step_parts parts =
        cs_step_parts_find(scenario, simulation, !prediction->made.overlaps_reduction);
    cJSON *list = cJSON_AddArrayToObject(figures, "parts");
    for (uint32_t p = 0; list && p < CS_N_STEP_PARTS; p++) {
        cJSON *number = cJSON_CreateNumber(parts.seconds[p]);
        if (!number || !cJSON_AddItemToArray(list, number)) {
            cJSON_Delete(number);
            return false;
        }
    }
    return list && cJSON_AddNumberToObject(figures, "time", parts.step) &&
           take_memory(prediction->point, &outcome, figures);
}

/* ---- what a point does not say ---- */

/* Copies the scenario with full recomputation; NULL if memory runs out. */
static cJSON *recomputed(const cJSON *document)
{
    cJSON *copy = cJSON_Duplicate(document, true);
    cJSON *model = cJSON_GetObjectItemCaseSensitive(copy, "model");
    cJSON *given = cJSON_GetObjectItemCaseSensitive(model, "recompute");
    cJSON *yes = cJSON_CreateTrue();
    if (!given || !yes) {
        cJSON_Delete(yes);
        cJSON_Delete(copy);
        return NULL;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(model, "recompute_operators");
    cJSON_DeleteItemFromObjectCaseSensitive(model, "discard_operators");
    cs_json_replace(model, given, yes);
    return copy;
}

/* Whether a run that is out of memory would fit with full recomputation. */
static cs_status fits_recomputed(const cs_prediction *prediction, const cs_progress *progress,
                                 bool *fits, cs_error *error)
{
    const cs_simulation_options how = {.progress = progress};
    cJSON *document = recomputed(prediction->made.document);
    cs_scenario scenario = {0};
    cs_simulation simulation = {0};
    if (!document)
        return cs_error_no_memory(error);
    cs_status status =
        cs_scenario_read_watched(document, prediction->point->id, progress, &scenario, error);
    if (status == CS_OK)
        status = cs_simulate(&scenario, &how, &simulation, error);
    *fits = status == CS_OK && !runs_out(&simulation);
    cs_simulation_finish(&simulation);
    cs_scenario_finish(&scenario);
    cJSON_Delete(document);
    return status;
}

static cs_status take_verdict(const cs_prediction *prediction, const cs_simulation *simulation,
                              const cs_progress *progress, cs_pool_item *item)
{
    const bool is_out = runs_out(simulation);
    bool fits = false;
    if (is_out && strcmp(prediction->point->run.recompute, "unknown") == 0)
        CS_TRY(fits_recomputed(prediction, progress, &fits, item->error));
    return cJSON_AddBoolToObject(item->figures, "out_of_memory", is_out) &&
                   cJSON_AddBoolToObject(item->figures, "depends", fits) &&
                   cs_json_add_number(item->figures, "fits_probability",
                                      simulation->fit.probability)
               ? CS_OK
               : cs_error_no_memory(item->error);
}

/* Runs a point. Thread-safe: uses only memory of its own. */
static void run_point(const cs_prediction *prediction, const cs_progress *progress,
                      cs_pool_item *item)
{
    const cs_simulation_options how = {.progress = progress};
    cs_scenario scenario = {0};
    cs_simulation simulation = {0};
    item->figures = cJSON_CreateObject();
    if (!item->figures) {
        item->status = CS_NO_MEMORY;
        return;
    }
    item->status = cs_scenario_read_watched(prediction->made.document, prediction->point->id,
                                            progress, &scenario, item->error);
    if (item->status == CS_OK)
        item->status = cs_simulate(&scenario, &how, &simulation, item->error);
    if (item->status == CS_OK && !take_figures(prediction, &scenario, &simulation, item->figures))
        item->status = cs_error_no_memory(item->error);
    if (item->status == CS_OK)
        item->status = take_verdict(prediction, &simulation, progress, item);
    cs_simulation_finish(&simulation);
    cs_scenario_finish(&scenario);
}

/* Runs one point and makes its record. */
static void work(const void *context, uint32_t i, const cs_progress *progress, cs_pool_item *item)
{
    const cs_predictions *predictions = context;
    run_point(&predictions->items[i], progress, item);
    if (item->status == CS_OK)
        item->record = cs_prediction_record(i, item->figures, NULL);
    else if (item->error)
        item->record = cs_prediction_record(i, NULL, item->error);
}

/* Destination of results, which the calling thread collects. */
typedef struct sink {
    cs_predictions *predictions;
    cs_journal *journal; /* journal to write to; NULL: none */
} sink;

static cs_status note(const sink *to, const char *record, cs_error *error)
{
    cs_journal_place place;
    CS_TRY(cs_journal_append(to->journal, record, strlen(record), &place, error));
    return cs_journal_flush(to->journal, false, error);
}

static cs_status collect(void *context, const cs_pool_item *item, cs_error *error)
{
    const sink *to = context;
    if (item->status == CS_NO_MEMORY || !item->record)
        return cs_error_no_memory(error);
    /* I/O errors are not recorded, because another run may not meet them */
    if (to->journal && item->status != CS_IO)
        CS_TRY(note(to, item->record, error));
    return cs_prediction_take(to->predictions, item->point, item->figures,
                              item->status == CS_OK ? NULL : item->error->text, error);
}

/* ---- all of them ---- */

/* Returns the smallest measured peak of a rank; NaN if no single rank is known. */
static double least_measured(const cJSON *per_rank)
{
    const cJSON *rank;
    double least = (double)NAN;
    cJSON_ArrayForEach(rank, per_rank)
    {
        const cJSON *allocated = cs_json_member(rank, "allocated");
        if (cJSON_IsNumber(allocated))
            least = fmin(least, allocated->valuedouble);
    }
    return least;
}

static void take_measured(const cs_point *point, cs_prediction *to)
{
    const cs_point_measured *measured = point->measured;
    to->point = point;
    for (uint32_t m = 0; m < CS_N_MEASURES; m++)
        to->values[m] = (double)NAN;
    to->measured[CS_MEASURE_TIME] = cs_point_step_time(point);
    to->measured[CS_MEASURE_ALLOCATED] = measured->allocated;
    to->measured[CS_MEASURE_LEAST] = least_measured(measured->per_rank);
    to->measured[CS_MEASURE_RESERVED] = measured->reserved;
    to->measured[CS_MEASURE_DEVICE] = measured->device;
    to->was_out_of_memory = cJSON_IsTrue(measured->oom);
    to->knows_verdict = measured->oom || isfinite(to->measured[CS_MEASURE_TIME]) ||
                        isfinite(measured->allocated) || isfinite(measured->reserved) ||
                        isfinite(measured->device);
}

/* Switches the allocator off for a point without measured memory: it would take time, and there is
 * nothing to compare with. Returns false if memory runs out. */
static bool skip_allocator(const cs_point *point, cJSON *document)
{
    const cs_point_measured *measured = point->measured;
    cJSON *memory = cJSON_GetObjectItemCaseSensitive(document, "memory");
    cJSON *allocator = cJSON_GetObjectItemCaseSensitive(memory, "allocator");
    return !allocator || isfinite(measured->allocated) || isfinite(measured->reserved) ||
           isfinite(measured->device) || measured->per_rank || measured->oom ||
           cJSON_SetValuestring(allocator, "none");
}

cs_status cs_predictions_make(const cs_point *const *points, uint32_t n,
                              const cs_scenario_change *change, cs_predictions *predictions,
                              cs_error *error)
{
    predictions->items = calloc(n + 1ULL, sizeof(*predictions->items));
    predictions->n = n;
    if (!predictions->items)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++) {
        cs_prediction *to = &predictions->items[i];
        take_measured(points[i], to);
        CS_TRY(cs_recipe_make(&points[i]->run, &to->made, error));
        to->done = to->made.document == NULL;
        to->state = to->done ? CS_PREDICTION_MISSING : CS_PREDICTION_FAILED;
        predictions->n_runs += !to->done;
        if (!skip_allocator(points[i], to->made.document))
            return cs_error_no_memory(error);
        if (to->made.document && change)
            CS_TRY(change->make(change->context, to->made.document, error));
    }
    return CS_OK;
}

double cs_prediction_cost(const cs_predictions *predictions, uint32_t i)
{
    const cs_point *point = predictions->items[i].point;
    const cs_description_parallel *parallel = point->run.parallel;
    const double devices = (double)parallel->tp * parallel->pp * parallel->cp;
    return point->run.batch->micro > 0
               ? devices * point->run.batch->global / point->run.batch->micro
               : devices;
}

static double cost_of(const void *context, uint32_t i)
{
    return cs_prediction_cost(context, i);
}

/* Hashes everything except the scenario that decides which values are taken from a run. */
static uint64_t add_point(uint64_t hash, uint32_t i, const cs_prediction *prediction)
{
    const cs_description *run = &prediction->point->run;
    const uint32_t taken[] = {i, prediction->made.overlaps_reduction, run->args != NULL,
                              strcmp(run->recompute, "unknown") == 0};
    return cs_hash_bytes(taken, sizeof(taken), hash);
}

cs_status cs_predictions_identify(const cs_predictions *predictions, uint64_t *identity,
                                  cs_error *error)
{
    uint64_t hash = predictions->n;
    for (uint32_t i = 0; i < predictions->n; i++) {
        const cJSON *document = predictions->items[i].made.document;
        char *text = document ? cs_json_print(document) : NULL;
        if (document && !text)
            return cs_error_no_memory(error);
        if (text)
            hash = cs_hash_bytes(text, strlen(text), add_point(hash, i, &predictions->items[i]));
        free(text);
    }
    *identity = hash;
    return CS_OK;
}

static cs_status share(const cs_pool *pool, cs_team *team, const cs_predictions *predictions,
                       const cs_progress *progress, cs_error *error)
{
    uint64_t identity = 0;
    if (team)
        CS_TRY(cs_predictions_identify(predictions, &identity, error));
    cs_team_identify(team, identity);
    return cs_team_run(team, 0, pool, progress, error);
}

cs_status cs_predict(cs_predictions *predictions, uint32_t jobs, cs_team *team, cs_journal *journal,
                     const cs_progress *progress, cs_error *error)
{
    const bool noted = journal && journal->file >= 0;
    sink to = {predictions, noted ? journal : NULL};
    uint32_t *ready = malloc((predictions->n + 1ULL) * sizeof(*ready)), n_ready = 0;
    if (!ready)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < predictions->n; i++)
        if (!predictions->items[i].done)
            ready[n_ready++] = i;
    const cs_pool pool = {.what = "predicting",
                          .points_are = "points",
                          .work = work,
                          .work_context = predictions,
                          .collect = collect,
                          .collect_context = &to,
                          .cost = cost_of,
                          .points = ready,
                          .n_points = n_ready,
                          .jobs = jobs};
    cs_status status = share(&pool, team, predictions, progress, error);
    if (noted) {
        const cs_status flushed = cs_journal_flush(journal, true, status == CS_OK ? error : NULL);
        status = status == CS_OK ? flushed : status;
    }
    for (uint32_t i = 0; i < predictions->n && status == CS_OK; i++)
        predictions->n_states[predictions->items[i].state]++;
    free(ready);
    return status;
}
