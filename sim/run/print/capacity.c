#include "sim/run/print/capacity.h"

#include "sim/base/units.h"
#include "sim/run/print/wrap.h"

#include <inttypes.h>
#include <string.h>

static cs_units_value bytes_text(int64_t bytes)
{
    return cs_units_text((double)bytes, CS_QUANTITY_BYTES, 4);
}

void cs_capacity_print(const cs_platform *platform, FILE *out)
{
    const cs_device *devices = platform->devices;
    int64_t least = INT64_MAX, most = 0, low = INT64_MAX, high = 0;
    char line[512], to[64] = "", aside[96] = "0";
    for (uint32_t d = 0; d < platform->n_devices; d++) {
        least = devices[d].capacity < least ? devices[d].capacity : least;
        most = devices[d].capacity > most ? devices[d].capacity : most;
        low = devices[d].reserve < low ? devices[d].reserve : low;
        high = devices[d].reserve > high ? devices[d].reserve : high;
    }
    if (least == INT64_MAX)
        return;
    if (most > least)
        snprintf(to, sizeof(to), " to %s", most == INT64_MAX ? "unlimited" : bytes_text(most).s);
    if (high > 0)
        snprintf(aside, sizeof(aside), "%s%s%s", low < high ? "up to " : "", bytes_text(high).s,
                 " per device");
    snprintf(line, sizeof(line),
             "capacity %s%s; peaks do not include the driver's context, fragmentation and library "
             "buffers (/platform/reserve = %s)",
             bytes_text(least).s, to, aside);
    cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
}

int64_t cs_capacity_left(const cs_simulation *simulation, uint32_t *device, int64_t *capacity)
{
    const cs_trace *trace = &simulation->trace;
    const cs_allocations *played = &simulation->allocations;
    int64_t least = INT64_MAX;
    *device = 0;
    *capacity = INT64_MAX;
    for (uint32_t d = 0; d < trace->n_devices; d++) {
        const cs_device_record *record = &trace->devices[d];
        int64_t left = record->capacity - record->peak;
        if (!cs_graph_has(&simulation->graph, d) || record->capacity == INT64_MAX)
            continue;
        if (d < played->n_devices) {
            const cs_device_allocations *of = &played->devices[d];
            const int64_t allocated = record->capacity - of->stats.peak_allocated;
            left = allocated < left ? allocated : left;
            left = of->failure.failed && left >= 0 ? -of->failure.bytes : left;
        }
        if (left < least) {
            least = left;
            *device = d;
            *capacity = record->capacity;
        }
    }
    return least;
}

void cs_capacity_print_fit(const cs_memory_fit *fit, FILE *out)
{
    char line[320];
    const double percent = 100 * fit->probability;
    if (!(percent > 0.5 && percent < 99.5))
        return;
    snprintf(line, sizeof(line),
             "%sfits with a probability of %.0f %%: device %" PRIu32 " needs %s of %s, with a "
             "standard deviation of %s including the memory set aside",
             strcmp(cs_memory_fit_verdict(fit), "tight") == 0 ? "TIGHT: " : "", percent,
             fit->device, bytes_text(fit->needed).s, bytes_text(fit->capacity).s,
             bytes_text(fit->spread).s);
    cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
}
