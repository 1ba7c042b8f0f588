#include "papers/study.h"

#include "sim/run/figures.h"
#include "sim/study/sweep/sweep-section.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cs_study_finish(cs_study *study)
{
    for (uint32_t i = 0; study->reports && i < study->results.n_points; i++)
        cJSON_Delete(study->reports[i]);
    free(study->reports);
    cs_sweep_results_finish(&study->results);
    cs_space_finish(&study->space);
    cJSON_Delete(study->base);
    free(study->path);
    *study = (cs_study){0};
}

/* ---- one point ---- */

static cJSON *figures_of(const cs_scenario *scenario, const cs_simulation *simulation)
{
    const cs_outcome outcome = {.scenario = scenario, .simulation = simulation};
    cJSON *figures = cJSON_CreateObject();
    bool good = figures;
    for (const cs_run_figure *figure = cs_run_figures; figure->key && good; figure++)
        if (cs_run_figure_given(figure, &outcome))
            good = cs_json_add_number(figures, figure->key, cs_run_figure_value(figure, &outcome));
    if (good)
        return figures;
    cJSON_Delete(figures);
    return NULL;
}

cs_status cs_study_run(const char *path, const cJSON *document, cs_study_measure *measure,
                       const cs_progress *progress, cJSON **result, cs_error *error)
{
    cs_scenario scenario = {0};
    cs_simulation simulation = {0};
    cJSON *report = NULL;
    const cs_simulation_options how = {.progress = progress};
    cs_status status = cs_scenario_read_watched(document, path, progress, &scenario, error);
    if (status == CS_OK)
        status = cs_simulate(&scenario, &how, &simulation, error);
    if (status == CS_OK && !(report = figures_of(&scenario, &simulation)))
        status = cs_error_no_memory(error);
    if (status == CS_OK && measure)
        status = measure(&scenario, &simulation, report, error);
    cs_simulation_finish(&simulation);
    cs_scenario_finish(&scenario);
    if (status == CS_OK)
        *result = report;
    else
        cJSON_Delete(report);
    return status;
}

cs_status cs_study_simulate(const void *context, const cJSON *document, const cs_progress *progress,
                            cJSON **result, cs_error *error)
{
    return cs_study_run(context, document, NULL, progress, result, error);
}

/* ---- all points ---- */

/* "FOLDER/NAME"; the name without its folders, and with another ending, if `ending`. */
static char *join(const char *folder, const char *name, const char *ending)
{
    const char *slash = strrchr(name, '/');
    if (ending && slash)
        name = slash + 1;
    const int stem = (int)(ending ? strcspn(name, ".") : strlen(name));
    const size_t bytes = strlen(folder) + strlen(name) + (ending ? strlen(ending) : 0) + 2;
    char *path = malloc(bytes);
    if (path)
        snprintf(path, bytes, "%s/%.*s%s", folder, stem, name, ending ? ending : "");
    return path;
}

static cs_status read_base(const cs_study_place *place, const char *scenario, cs_study *study,
                           cs_error *error)
{
    if (!(study->path = join(place->scenarios, scenario, NULL)))
        return cs_error_no_memory(error);
    CS_TRY(cs_json_load(study->path, &study->base, error));
    const cJSON *sweep = cs_json_member(study->base, "sweep");
    if (!sweep)
        return cs_error_add(error, CS_INVALID, "%s: must have a section \"sweep\"", study->path);
    CS_TRY(cs_sweep_section_read(study->path, sweep, &study->space, error));
    cJSON_DeleteItemFromObjectCaseSensitive(study->base, "sweep");
    return cs_sweep_results_init(&study->results, study->space.n_points, error);
}

/* A journal of other inputs is emptied and used again. Any other file is an error. */
static cs_status open_journal(const cs_sweep *sweep, const char *path, cs_journal *journal,
                              cs_study *study, cs_error *error)
{
    cs_error other;
    cs_error_init(&other);
    cs_status status =
        cs_sweep_open(sweep, path, study->identity, true, journal, &study->results, &other);
    if (status != CS_INVALID) {
        cs_error_add_all(error, &other);
        return status;
    }
    return cs_sweep_open(sweep, path, study->identity, false, journal, &study->results, error);
}

static cs_status read_reports(cs_study *study, const cs_journal *journal, cs_error *error)
{
    const uint32_t n = study->results.n_points;
    study->reports = calloc(n, sizeof(*study->reports));
    if (!study->reports)
        return cs_error_no_memory(error);
    for (uint32_t i = 0; i < n; i++) {
        char *text;
        if (study->results.errors[i])
            continue;
        CS_TRY(cs_sweep_report(journal, &study->results, i, &text, error));
        cs_status status =
            cs_json_parse(study->path, text, strlen(text), &study->reports[i], error);
        free(text);
        CS_TRY(status);
    }
    return CS_OK;
}

static cs_status compute(const cs_sweep *sweep, const cs_study_place *place, const char *path,
                         cs_study *study, cs_error *error)
{
    cs_journal journal = {.file = -1};
    CS_TRY(cs_sweep_identity(sweep, "", place->program, &study->identity, error));
    cs_status status = open_journal(sweep, path, &journal, study, error);
    if (status == CS_OK && study->results.n_done < study->results.n_points)
        status = cs_sweep_run(sweep, place->progress, &journal, &study->results, error);
    if (status == CS_OK)
        status = read_reports(study, &journal, error);
    cs_journal_close(&journal);
    return status;
}

cs_status cs_study_make(const cs_study_source *source, const cs_study_place *place, cs_study *study,
                        cs_error *error)
{
    *study = (cs_study){0};
    cs_space_init(&study->space);
    char *journal = join(place->journals, source->scenario, ".journal");
    cs_status status =
        journal ? read_base(place, source->scenario, study, error) : cs_error_no_memory(error);
    const cs_sweep sweep = {.base = study->base,
                            .origin = study->path,
                            .space = study->space,
                            .jobs = place->jobs,
                            .keep_results = true,
                            .run = source->run ? source->run : cs_study_simulate,
                            .context = study->path};
    if (status == CS_OK)
        status = compute(&sweep, place, journal, study, error);
    free(journal);
    return status;
}

/* ---- looking things up ---- */

uint32_t cs_study_point(const cs_study *study, const uint32_t *at)
{
    if (study->space.form == CS_SPACE_LIST)
        return at[0];
    uint32_t point = 0;
    for (uint32_t a = 0; a < study->space.n_axes; a++)
        point += at[a] * study->space.axes[a].stride;
    return point;
}

uint32_t cs_study_length(const cs_study *study, uint32_t axis)
{
    return study->space.axes[axis].values.n;
}

double cs_study_axis_number(const cs_study *study, uint32_t axis, uint32_t i)
{
    char text[64];
    cs_study_axis_text(study, axis, i, text, sizeof(text));
    return strtod(text, NULL);
}

void cs_study_axis_text(const cs_study *study, uint32_t axis, uint32_t i, char *text, size_t size)
{
    const char *value = study->space.axes[axis].values.texts[i];
    const size_t length = strlen(value), quotes = length > 1 && *value == '"';
    snprintf(text, size, "%.*s", (int)(length - 2 * quotes), value + quotes);
}

const cJSON *cs_study_member(const cs_study *study, uint32_t point, const char *key)
{
    return study->reports[point] ? cs_json_member(study->reports[point], key) : NULL;
}

double cs_study_number(const cs_study *study, uint32_t point, const char *key)
{
    const cJSON *member = cs_study_member(study, point, key);
    return cJSON_IsNumber(member) ? member->valuedouble : NAN;
}

cs_status cs_study_all_done(const cs_study *study, cs_error *error)
{
    for (uint32_t i = 0; i < study->results.n_points; i++)
        if (study->results.errors[i])
            return cs_error_add(error, CS_FAILED, "%s: point %u: %s", study->path, i,
                                study->results.errors[i]);
    return CS_OK;
}

cs_status cs_study_document(const cs_study *study, uint32_t point, cJSON **document,
                            cs_error *error)
{
    *document = cJSON_Duplicate(study->base, true);
    if (!*document)
        return cs_error_no_memory(error);
    const cs_status status = cs_space_apply(&study->space, point, study->path, *document, error);
    if (status != CS_OK)
        cJSON_Delete(*document);
    return status;
}
