#include "sim/run/memory-fit.h"

#include "sim/base/facts.h"
#include "sim/base/json.h"
#include "sim/run/player.h"

#include <math.h>
#include <string.h>

cs_status cs_memory_fit_of(int64_t capacity, int64_t reserve, int64_t needed, cs_memory_fit *fit,
                           cs_error *error)
{
    double predicted, aside;
    *fit = (cs_memory_fit){.probability = 1, .capacity = capacity, .needed = needed};
    if (capacity == INT64_MAX)
        return CS_OK;
    const char *text = cs_facts_text("", "memory-errors"), *file = "facts/memory-errors.json";
    cJSON *document = NULL;
    CS_TRY(cs_json_parse(file, text, strlen(text), &document, error));
    const cJSON *first = cs_json_member(cs_json_member(document, "predicted"), "value");
    const cJSON *second = cs_json_member(cs_json_member(document, "set_aside"), "value");
    const bool good = cJSON_IsNumber(first) && cJSON_IsNumber(second);
    predicted = good ? first->valuedouble : 0;
    aside = good ? second->valuedouble : 0;
    cJSON_Delete(document);
    if (!good)
        return cs_error_add(error, CS_INVALID,
                            "%s: /predicted/value and /set_aside/value must be numbers", file);
    const double spread = hypot(predicted * (double)needed, aside * (double)reserve);
    fit->spread = (int64_t)ceil(spread);
    fit->probability =
        0.5 * erfc(((double)needed - (double)capacity) / (sqrt(2) * fmax(spread, 1)));
    return CS_OK;
}

const char *cs_memory_fit_verdict(const cs_memory_fit *fit)
{
    return fit->probability >= 0.95 ? "fits" : fit->probability >= 0.5 ? "tight" : "does not fit";
}

/* One device of a run. */
typedef struct device_run {
    const cs_scenario *scenario;
    const cs_graph *graph;
    const cs_trace *trace;
    uint32_t device;
} device_run;

static cs_status play(const device_run *run, int64_t capacity, cs_device_allocations *made,
                      cs_error *error)
{
    return cs_player_play(run->scenario, run->graph, run->trace, run->device, capacity, NULL, made,
                          error);
}

/* Bisects between `low`, a capacity that is too small, and `high`, one that is sufficient. */
static cs_status search(const device_run *run, int64_t low, int64_t high, int64_t *needed,
                        cs_error *error)
{
    enum { STEPS = 6 };
    for (uint32_t i = 0; i < STEPS && low + 1 < high; i++) {
        const int64_t middle = low + (high - low) / 2;
        cs_device_allocations made;
        CS_TRY(play(run, middle, &made, error));
        *(made.failure.failed ? &low : &high) = middle;
    }
    *needed = high;
    return CS_OK;
}

/* Replays the run only if the bounds are within FAR standard deviations of the capacity. */
static cs_status fit_played(const device_run *run, const cs_device_allocations *played,
                            cs_memory_fit *fit, cs_error *error)
{
    enum { FAR = 4 };
    const cs_device *device = &run->scenario->platform.devices[run->device];
    int64_t low = played->stats.peak_allocated - 1, high = played->stats.peak_reserved, needed;
    if (played->failure.failed) {
        cs_device_allocations unlimited;
        CS_TRY(play(run, INT64_MAX, &unlimited, error));
        low = unlimited.stats.peak_allocated - 1;
        high = unlimited.stats.peak_reserved;
        CS_TRY(cs_memory_fit_of(device->capacity, device->reserve, low, fit, error));
        if (low - device->capacity > FAR * fit->spread)
            return CS_OK;
        low = low > device->capacity ? low : device->capacity;
    } else {
        CS_TRY(cs_memory_fit_of(device->capacity, device->reserve, high, fit, error));
        if (device->capacity - high > FAR * fit->spread)
            return CS_OK;
    }
    CS_TRY(search(run, low, high > low ? high : low + 1, &needed, error));
    return cs_memory_fit_of(device->capacity, device->reserve, needed, fit, error);
}

cs_status cs_memory_fit_find(const cs_scenario *scenario, const cs_graph *graph,
                             const cs_trace *trace, const cs_allocations *allocations,
                             cs_memory_fit *fit, cs_error *error)
{
    cs_memory_fit least = {.probability = 1, .capacity = INT64_MAX};
    for (uint32_t d = 0; d < trace->n_devices; d++) {
        const cs_device *device = &scenario->platform.devices[d];
        const bool played = d < allocations->n_devices;
        const device_run run = {scenario, graph, trace, d};
        cs_memory_fit of;
        if (!cs_graph_has(graph, d) || device->capacity == INT64_MAX ||
            (played && allocations->devices[d].played_as != d))
            continue;
        if (played)
            CS_TRY(fit_played(&run, &allocations->devices[d], &of, error));
        else
            CS_TRY(cs_memory_fit_of(device->capacity, device->reserve, trace->devices[d].peak, &of,
                                    error));
        of.device = d;
        if (least.capacity == INT64_MAX || of.probability < least.probability)
            least = of;
    }
    if (trace->stopped)
        least.probability = (double)NAN;
    *fit = least;
    return CS_OK;
}
