#include "sim/study/sweep/sweep.h"

#include "sim/base/hash.h"
#include "sim/base/text-stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char report_mark[] = ",\"result\": ";

/* ---- results ---- */

cs_status cs_sweep_results_init(cs_sweep_results *results, uint32_t n_points, cs_error *error)
{
    *results = (cs_sweep_results){.n_points = n_points, .figures = {.n_points = n_points}};
    results->done = calloc(n_points, sizeof(*results->done));
    results->errors = calloc(n_points, sizeof(*results->errors));
    results->unknown_keys = calloc(n_points, sizeof(*results->unknown_keys));
    results->places = calloc(n_points, sizeof(*results->places));
    if (results->done && results->errors && results->unknown_keys && results->places)
        return CS_OK;
    cs_sweep_results_finish(results);
    return cs_error_no_memory(error);
}

void cs_sweep_results_finish(cs_sweep_results *results)
{
    for (uint32_t i = 0; results->errors && i < results->n_points; i++)
        free(results->errors[i]);
    for (uint32_t i = 0; results->unknown_keys && i < results->n_points; i++)
        free(results->unknown_keys[i]);
    free(results->errors);
    free(results->unknown_keys);
    free(results->done);
    free(results->places);
    cs_figure_table_finish(&results->figures);
    *results = (cs_sweep_results){0};
}

/* Why a point failed; no message: it did not. */
typedef struct failure {
    const char *message, *unknown_key; /* the latter NULL unless that is why */
} failure;

static failure failure_of(const cs_error *error)
{
    cs_error_message message;
    failure found = {.message = error->text};
    for (uint32_t i = 0; !found.unknown_key && cs_error_message_at(error, i, &message); i++)
        if (message.kind == CS_ERROR_UNKNOWN_KEY)
            found.unknown_key = message.subject;
    return found;
}

/* Either figures or a failure. */
static cs_status add_point(cs_sweep_results *results, uint32_t point, const cJSON *figures,
                           failure why, cs_journal_place place, cs_error *error)
{
    if (why.message) {
        results->errors[point] = strdup(why.message);
        if (why.unknown_key)
            results->unknown_keys[point] = strdup(why.unknown_key);
        if (!results->errors[point] || (why.unknown_key && !results->unknown_keys[point]))
            return cs_error_no_memory(error);
        results->n_failed++;
    } else {
        CS_TRY(cs_figure_table_add(&results->figures, point, figures, error));
    }
    results->places[point] = place;
    results->done[point] = true;
    results->n_done++;
    return CS_OK;
}

/* ---- the journal ---- */

static void add_hash(uint64_t *hash, const char *text)
{
    *hash = cs_hash_bytes(text, strlen(text) + 1, *hash);
}

cs_status cs_sweep_identity(const cs_sweep *sweep, const char *resolved,
                            const char *program_version, uint64_t *identity, cs_error *error)
{
    const cs_space *space = &sweep->space;
    char *base = cs_json_line(sweep->base);
    uint64_t hash = space->form;
    if (!base)
        return cs_error_no_memory(error);
    add_hash(&hash, program_version);
    add_hash(&hash, base);
    add_hash(&hash, resolved);
    for (uint32_t a = 0; a < space->n_axes; a++) {
        add_hash(&hash, space->axes[a].pointer);
        for (uint32_t i = 0; i < space->axes[a].values.n; i++)
            add_hash(&hash, space->axes[a].values.texts[i]);
    }
    free(base);
    *identity = hash;
    return CS_OK;
}

typedef struct earlier_points {
    const cs_sweep *sweep;
    cs_sweep_results *results;
} earlier_points;

/* A record without a report does not help a sweep that needs it: its point is run again. */
static bool take_earlier(void *context, const char *text, cs_journal_place place)
{
    const earlier_points *e = context;
    cJSON *record = NULL;
    bool taken = false;
    if (cs_json_parse("journal", text, strlen(text), &record, NULL) != CS_OK)
        return false;
    const cJSON *number = cs_json_member(record, "point");
    const cJSON *figures = cs_json_member(record, "figures");
    const failure why = {cJSON_GetStringValue(cs_json_member(record, "error")),
                         cJSON_GetStringValue(cs_json_member(record, "unknown_key"))};
    double point = cJSON_IsNumber(number) ? number->valuedouble : -1;
    if (point >= 0 && point < e->results->n_points && point == floor(point) &&
        (why.message || (cJSON_IsObject(figures) && !cs_json_member(figures, "result")))) {
        bool needed = !e->results->done[(uint32_t)point] &&
                      (why.message || !e->sweep->keep_results ||
                       cJSON_IsObject(cs_json_member(record, "result")));
        taken =
            !needed || add_point(e->results, (uint32_t)point, figures, why, place, NULL) == CS_OK;
    }
    cJSON_Delete(record);
    return taken;
}

cs_status cs_sweep_open(const cs_sweep *sweep, const char *journal_path, uint64_t identity,
                        bool resume, cs_journal *journal, cs_sweep_results *results,
                        cs_error *error)
{
    earlier_points earlier = {sweep, results};
    return cs_journal_open(journal, "sweep", journal_path, identity, resume, take_earlier, &earlier,
                           error);
}

cs_status cs_sweep_report(const cs_journal *journal, const cs_sweep_results *results,
                          uint32_t point, char **text, cs_error *error)
{
    char *record;
    CS_TRY(cs_journal_read(journal, results->places[point], &record, error));
    const char *report = strstr(record, report_mark);
    if (report) {
        report += strlen(report_mark);
        size_t length = strlen(report) - 1; /* the record's own brace */
        memmove(record, report, length);
        record[length] = '\0';
    }
    *text = record;
    return CS_OK;
}

/* ---- running ---- */

/* The record of the journal, on one line; NULL when memory runs out. */
static char *record_of(const cs_sweep *sweep, uint32_t point, const cJSON *figures,
                       const cJSON *result)
{
    char *text = NULL;
    size_t length;
    char *first = cs_json_line(figures);
    char *report = first && sweep->keep_results ? cs_json_line(result) : NULL;
    FILE *out = first ? cs_text_stream(&text, &length) : NULL;
    bool failed = !out || (sweep->keep_results && !report);
    if (out) {
        fprintf(out, "{\"point\": %u,\"figures\": %s", point, first);
        if (report)
            fprintf(out, "%s%s", report_mark, report);
        fputc('}', out);
        failed = ferror(out) || failed;
        failed = fclose(out) != 0 || failed;
    }
    free(first);
    free(report);
    if (!failed)
        return text;
    free(text);
    return NULL;
}

static char *record_of_failure(uint32_t point, failure why)
{
    cJSON *record = cJSON_CreateObject();
    char *text = NULL;
    if (cJSON_AddNumberToObject(record, "point", point) &&
        cJSON_AddStringToObject(record, "error", why.message) &&
        (!why.unknown_key || cJSON_AddStringToObject(record, "unknown_key", why.unknown_key)))
        text = cs_json_line(record);
    cJSON_Delete(record);
    return text;
}

/* Simulates a point, in any thread. */
static cs_status run_point(const cs_sweep *sweep, uint32_t point, const cs_progress *progress,
                           cJSON **result, cs_error *error)
{
    cJSON *document = cJSON_Duplicate(sweep->base, true);
    if (!document)
        return cs_error_no_memory(error);
    cs_status status = cs_space_apply(&sweep->space, point, sweep->origin, document, error);
    if (status == CS_OK)
        status = sweep->run(sweep->context, document, progress, result, error);
    cJSON_Delete(document);
    return status;
}

static void work(const void *context, uint32_t point, const cs_progress *progress,
                 cs_pool_item *item)
{
    const cs_sweep *sweep = context;
    cJSON *result = NULL;
    item->status = run_point(sweep, point, progress, &result, item->error);
    if (item->status == CS_OK) {
        item->figures = cs_figures_of(result);
        if (!item->figures)
            item->status = cs_error_no_memory(item->error);
    }
    if (item->status == CS_OK)
        item->record = record_of(sweep, point, item->figures, result);
    else
        item->record = record_of_failure(point, failure_of(item->error));
    cJSON_Delete(result);
}

typedef struct sink {
    cs_journal *journal;
    cs_sweep_results *results;
} sink;

/* Whether the failure says something about the point, or about the machine right now: then the
 * sweep ends, and a later run goes on. */
static bool is_lasting(cs_status status)
{
    return status != CS_NO_MEMORY && status != CS_IO;
}

static cs_status collect(void *context, const cs_pool_item *item, cs_error *error)
{
    const sink *c = context;
    cs_journal_place place = {0};
    if (!item->record || !item->error)
        return cs_error_no_memory(error);
    if (!is_lasting(item->status)) {
        cs_error_add_all(error, item->error);
        return item->status;
    }
    const failure why = item->status != CS_OK ? failure_of(item->error) : (failure){0};
    cs_status status =
        cs_journal_append(c->journal, item->record, strlen(item->record), &place, error);
    if (status == CS_OK)
        status = cs_journal_flush(c->journal, false, error);
    if (status == CS_OK)
        status = add_point(c->results, item->point, item->figures, why, place, error);
    return status;
}

/* What a number of tasks grows with: of two points that differ in these keys, the larger product
 * takes longer. */
static double cost_of(const void *context, uint32_t point)
{
    static const char *const counts[] = {"iterations", "micro_batches", "layers",  "devices",
                                         "workers",    "nodes",         "pipeline"};
    const cs_space *space = &((const cs_sweep *)context)->space;
    double cost = 1;
    for (uint32_t a = 0; a < space->n_axes; a++) {
        const char *key = strrchr(space->axes[a].pointer, '/') + 1;
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            const double value = strtod(cs_space_value(space, point, a), NULL);
            if (strcmp(key, counts[i]) == 0 && value > 0)
                cost *= value;
        }
    }
    return cost;
}

cs_status cs_sweep_run(const cs_sweep *sweep, const cs_progress *progress, cs_journal *journal,
                       cs_sweep_results *results, cs_error *error)
{
    sink collector = {journal, results};
    uint32_t n = 0, *points = malloc((results->n_points + 1ULL) * sizeof(*points));
    if (!points)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < results->n_points; i++) {
        if (!results->done[i])
            points[n++] = i;
    }
    const cs_pool pool = {.what = "sweeping",
                          .points_are = "points",
                          .work = work,
                          .work_context = sweep,
                          .collect = collect,
                          .collect_context = &collector,
                          .cost = cost_of,
                          .points = points,
                          .n_points = n,
                          .jobs = sweep->jobs};
    cs_status status = cs_team_run(sweep->team, 0, &pool, progress, error);
    cs_status flushed = cs_journal_flush(journal, true, status == CS_OK ? error : NULL);
    cs_figure_table_sort(&results->figures);
    free(points);
    return status == CS_OK ? flushed : status;
}
