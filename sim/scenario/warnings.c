#include "schedules/ties.h"
#include "sim/scenario/sections.h"

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

static bool is_rate(const char *key)
{
    return ends_with(key, "bandwidth") || ends_with(key, "bandwidths") ||
           strcmp(key, "nvswitch") == 0;
}

/* All memories and bandwidths of a section, in whichever topologies they stand. */
static void warn_members(const cJSON *object, const cs_json_place *up, cs_error *warnings)
{
    for (const cJSON *at = cJSON_IsObject(object) ? object->child : NULL; at; at = at->next) {
        const cs_json_place place = {.up = up, .key = at->string};
        const char *unit = is_rate(at->string) ? "B/s" : is_size(at->string) ? "B" : NULL;
        if (unit && cJSON_IsArray(at))
            warn_bare(at->child, unit, &place, warnings);
        else if (unit)
            warn_bare(at, unit, &place, warnings);
        warn_members(at, &place, warnings);
    }
}

/* What stands as 0 would look like a result. */
static void warn_times_only(const cs_draft *draft, cs_error *warnings)
{
    const cs_json_place place = {.up = &draft->root, .key = "model"};
    if (draft->scenario->model.times_only)
        (void)cs_json_invalid(&place, warnings,
                              "has times only (\"times_only\"): weights, activations and messages "
                              "have no size; memory and communication are not simulated");
}

/* Of a plan whose stages share weights. */
static void warn_ties(const cs_draft *draft, cs_error *warnings)
{
    const cs_scenario *scenario = draft->scenario;
    const cs_json_place section = {.up = &draft->root, .key = "schedule"};
    const cs_json_place place = {.up = &section, .key = "kind"};
    uint32_t layer = 0;
    cs_tie tie;
    if (draft->schedule.kind->sums_ties || draft->unplanned ||
        !cs_tie_next(&scenario->model, &scenario->plan, &layer, &tie))
        return;
    const cs_layer *borrower = &scenario->model.layers[tie.layer];
    (void)cs_json_invalid(&place, warnings,
                          "\"%s\" does not sum the gradients of the weights that \"%s\" and \"%s\" "
                          "share: their two stages update a copy each",
                          draft->schedule.kind->name, borrower->tied_to, borrower->name);
}

void cs_draft_warn(cs_draft *draft)
{
    warn_times_only(draft, &draft->scenario->warnings);
    const cs_json_place platform = {.up = &draft->root, .key = "platform"};
    const cs_json_place schedule = {.up = &draft->root, .key = "schedule"};
    const cs_schedule *kind = draft->schedule.kind;
    cs_scenario *scenario = draft->scenario;
    warn_members(draft->top.platform, &platform, &scenario->warnings);
    warn_ties(draft, &scenario->warnings);
    if (scenario->platform.warning)
        (void)cs_json_invalid(&platform, &scenario->warnings, "%s", scenario->platform.warning);
    if (kind->warn && !draft->unplanned)
        kind->warn(&scenario->job, draft->schedule.params, &schedule, &scenario->warnings);
}
