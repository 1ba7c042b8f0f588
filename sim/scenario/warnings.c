#include "schedules/ties.h"
#include "sim/scenario/build.h"

#include <string.h>

/* Below it, in bytes or bytes/s, a number without a unit is one whose unit was forgotten. */
static const double least_meant = 1e6;

static void warn_bare(const cJSON *value, const char *unit, const cs_json_place *place,
                      cs_error *warnings)
{
    char got[CS_JSON_DESCRIBED_BYTES];
    if (!cJSON_IsNumber(value) || !(value->valuedouble > 0 && value->valuedouble < least_meant))
        return;
    (void)cs_json_invalid(place, warnings,
                          "%s has no unit and is taken as %s; a text has one, such as \"16 G%s\"",
                          cs_json_describe(value, got, sizeof(got)), unit, unit);
}

static bool ends_with(const char *key, const char *end)
{
    const size_t length = strlen(key), cut = strlen(end);
    return length >= cut && strcmp(key + length - cut, end) == 0;
}

static bool is_size(const char *key)
{
    return strcmp(key, "memory") == 0 || strcmp(key, "reserve") == 0;
}

/* All memories and bandwidths of a section, in whichever topologies they stand. */
static void warn_members(const cJSON *object, const cs_json_place *up, cs_error *warnings)
{
    for (const cJSON *at = cJSON_IsObject(object) ? object->child : NULL; at; at = at->next) {
        const cs_json_place place = {.up = up, .key = at->string};
        const bool rate = ends_with(at->string, "bandwidth") || ends_with(at->string, "bandwidths");
        const char *unit = rate ? "B/s" : is_size(at->string) ? "B" : NULL;
        if (unit && cJSON_IsArray(at))
            warn_bare(at->child, unit, &place, warnings);
        else if (unit)
            warn_bare(at, unit, &place, warnings);
        warn_members(at, &place, warnings);
    }
}

/* What stands as 0 would look like a result. */
static void warn_times_only(const cs_model *model, const cs_json_place *root, cs_error *warnings)
{
    const cs_json_place place = {.up = root, .key = "model"};
    if (model->times_only)
        (void)cs_json_invalid(&place, warnings,
                              "has times only (\"times_only\"): weights, activations and messages "
                              "have no size; memory and communication are not simulated");
}

/* Of a plan whose stages share weights. */
static void warn_ties(const cs_schedule *kind, const cs_job *job, const cs_json_place *schedule,
                      cs_error *warnings)
{
    const cs_json_place place = {.up = schedule, .key = "kind"};
    uint32_t layer = 0;
    cs_tie tie;
    if (kind->sums_ties || !cs_tie_next(job->model, job->plan, &layer, &tie))
        return;
    const cs_layer *borrower = &job->model->layers[tie.layer];
    (void)cs_json_invalid(&place, warnings,
                          "\"%s\" does not sum the gradients of the weights that \"%s\" and \"%s\" "
                          "share: their two stages update a copy each",
                          kind->name, borrower->tied_to, borrower->name);
}

void cs_scenario_warn(const cs_sections *sections, const cs_scenario *scenario, cs_error *warnings)
{
    const cs_json_place platform = {.up = &sections->root, .key = "platform"};
    const cs_json_place schedule = {.up = &sections->root, .key = "schedule"};
    const cs_schedule *kind = sections->schedule.kind;
    const cs_job *job = &scenario->job;
    warn_times_only(&scenario->model, &sections->root, warnings);
    warn_members(sections->top.platform, &platform, warnings);
    if (job->plan)
        warn_ties(kind, job, &schedule, warnings);
    if (scenario->platform.warning)
        (void)cs_json_invalid(&platform, warnings, "%s", scenario->platform.warning);
    if (kind->warn && job->plan)
        kind->warn(job, sections->schedule.params, &schedule, warnings);
}
