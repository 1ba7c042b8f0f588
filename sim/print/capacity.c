#include "sim/print/capacity.h"

#include "sim/base/units.h"
#include "sim/print/wrap.h"

static cs_units_value bytes_text(int64_t bytes)
{
    return cs_units_text((double)bytes, CS_QUANTITY_BYTES, 4);
}

void cs_capacity_print(const cs_platform *platform, FILE *out)
{
    const cs_device *devices = platform->devices;
    int64_t least = INT64_MAX, most = 0, low = INT64_MAX, high = 0;
    char line[512], to[64] = "", aside[96] = "nothing";
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
                 " a device");
    snprintf(line, sizeof(line),
             "capacity %s%s; peaks do not include the driver's context, fragmentation and library "
             "buffers "
             "(/platform/reserve sets aside: %s)",
             bytes_text(least).s, to, aside);
    cs_wrap(out, 0, 2, CS_WRAP_REPORT, line);
}
