#include "sim/study/validate/prediction-journal.h"

#include "sim/base/hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- records ---- */

char *cs_prediction_record(uint32_t point, const cJSON *figures, const cs_error *why)
{
    cJSON *record = cJSON_CreateObject();
    cJSON *copy = why ? cJSON_CreateString(why->text) : cJSON_Duplicate(figures, true);
    const bool added = cJSON_AddNumberToObject(record, "point", point) &&
                       cJSON_AddItemToObject(record, why ? "error" : "figures", copy);
    char *text = added ? cs_json_line(record) : NULL;
    if (!added)
        cJSON_Delete(copy);
    cJSON_Delete(record);
    return text;
}

static double number_of(const cJSON *object, const char *key)
{
    const cJSON *value = cs_json_member(object, key);
    return cJSON_IsNumber(value) ? value->valuedouble : (double)NAN;
}

static void take_parts(const cJSON *list, cs_prediction *to)
{
    uint32_t p = 0;
    const cJSON *seconds;
    cJSON_ArrayForEach(seconds, list)
    {
        if (p < CS_N_STEP_PARTS)
            to->parts.seconds[p++] = cJSON_IsNumber(seconds) ? seconds->valuedouble : (double)NAN;
    }
    to->parts.step = to->values[CS_MEASURE_TIME];
}

static void take_figures(const cJSON *figures, cs_prediction *to)
{
    to->values[CS_MEASURE_TIME] = number_of(figures, "time");
    to->values[CS_MEASURE_ALLOCATED] = number_of(figures, "allocated");
    to->values[CS_MEASURE_LEAST] = number_of(figures, "least");
    to->values[CS_MEASURE_RESERVED] = number_of(figures, "reserved");
    to->values[CS_MEASURE_DEVICE] = number_of(figures, "device");
    take_parts(cs_json_member(figures, "parts"), to);
    to->out_of_memory = cJSON_IsTrue(cs_json_member(figures, "out_of_memory"));
    to->depends = cJSON_IsTrue(cs_json_member(figures, "depends"));
    to->fits_probability = number_of(figures, "fits_probability");
}

cs_status cs_prediction_take(cs_predictions *predictions, uint32_t point, const cJSON *figures,
                             const char *why, cs_error *error)
{
    cs_prediction *to = &predictions->items[point];
    to->state = why ? CS_PREDICTION_FAILED : CS_PREDICTION_MADE;
    to->message = why ? strndup(why, strcspn(why, "\n")) : NULL;
    if (why && !to->message)
        return cs_error_no_memory(error);
    if (!why)
        take_figures(figures, to);
    to->done = true;
    predictions->n_done++;
    return CS_OK;
}

/* ---- the journal ---- */

/* Whether the JSON has the form that cs_prediction_record writes. */
static bool are_figures(const cJSON *figures)
{
    const cJSON *parts = cs_json_member(figures, "parts"), *part;
    bool numbers = !parts || cJSON_IsArray(parts);
    cJSON_ArrayForEach(part, parts)
    {
        numbers = numbers && (cJSON_IsNumber(part) || cJSON_IsNull(part));
    }
    return numbers && cJSON_IsObject(figures) && cJSON_GetArraySize(parts) <= CS_N_STEP_PARTS;
}

/* Takes an earlier record. Returns false if it does not belong to these predictions. */
static bool take_earlier(void *context, const char *text, cs_journal_place place)
{
    cs_predictions *predictions = context;
    cJSON *record = NULL;
    (void)place;
    if (cs_json_parse("journal", text, strlen(text), &record, NULL) != CS_OK)
        return false;
    const double point = number_of(record, "point");
    const cJSON *figures = cs_json_member(record, "figures");
    const char *why = cJSON_GetStringValue(cs_json_member(record, "error"));
    bool taken = point >= 0 && point < predictions->n && point == floor(point) &&
                 (why || are_figures(figures));
    if (taken && !predictions->items[(uint32_t)point].done)
        taken = cs_prediction_take(predictions, (uint32_t)point, figures, why, NULL) == CS_OK;
    cJSON_Delete(record);
    return taken;
}

/* Returns the cheapest point with a scenario that has not been tried; predictions->n if none is
 * left. */
static uint32_t cheapest(const cs_predictions *predictions, const bool *tried)
{
    uint32_t best = predictions->n;
    for (uint32_t i = 0; i < predictions->n; i++)
        if (predictions->items[i].made.document && !tried[i] &&
            (best == predictions->n ||
             cs_prediction_cost(predictions, i) < cs_prediction_cost(predictions, best)))
            best = i;
    return best;
}

/* Adds a scenario to the identity: its text as it was read, or the reason why it is rejected. */
static cs_status add_scenario(const cs_prediction *of, uint64_t *identity, bool *refused,
                              cs_error *error)
{
    cs_scenario scenario = {0};
    cs_error why;
    cs_error_init(&why);
    const cs_status status = cs_scenario_read(of->made.document, of->point->id, &scenario, &why);
    const char *text = status == CS_OK ? scenario.resolved : why.text;
    *identity = cs_hash_bytes(text, strlen(text), *identity);
    *refused = status != CS_OK;
    cs_scenario_finish(&scenario);
    return status == CS_NO_MEMORY ? cs_error_no_memory(error) : CS_OK;
}

/* Adds the files that scenarios name to the identity. All scenarios name the same changed files, so
 * the first scenario that can be read identifies them. */
static cs_status add_files(const cs_predictions *predictions, uint64_t *identity, cs_error *error)
{
    bool *tried = calloc(predictions->n + (size_t)1, sizeof(*tried)), refused = true;
    cs_status status = tried ? CS_OK : cs_error_no_memory(error);
    uint32_t i;
    while (status == CS_OK && refused && (i = cheapest(predictions, tried)) < predictions->n) {
        tried[i] = true;
        status = add_scenario(&predictions->items[i], identity, &refused, error);
    }
    free(tried);
    return status;
}

cs_status cs_predictions_open(cs_predictions *predictions, const char *path,
                              const char *program_version, bool resume, cs_journal *journal,
                              cs_error *error)
{
    uint64_t identity;
    CS_TRY(cs_predictions_identify(predictions, &identity, error));
    identity = cs_hash_bytes(program_version, strlen(program_version), identity);
    CS_TRY(add_files(predictions, &identity, error));
    return cs_journal_open(journal, "validation", path, identity, resume, take_earlier, predictions,
                           error);
}
