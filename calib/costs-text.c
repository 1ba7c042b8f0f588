#include "calib/costs-text.h"

#include "calib/fit.h"
#include "sim/base/units.h"

#include <stdio.h>

enum { DIGITS = 4 };

static cs_units_value quantity(double value, cs_quantity kind)
{
    return cs_units_text(value, kind, DIGITS);
}

static cs_units_value rate_of(double seconds_per_byte)
{
    const cs_units_value out = {"any"};
    return seconds_per_byte > 0 ? quantity(1 / seconds_per_byte, CS_QUANTITY_BANDWIDTH) : out;
}

char *cs_costs_regime_text(const cs_cost_network *entry, const cs_cost_regime *regime, char *text)
{
    const cs_cost_interval *a = &regime->alpha, *b = &regime->beta;
    const double bus = cs_cost_bus_factor(entry->collective, entry->ranks);
    char latency[100] = "no interval", rate[200] = "no time per byte", range[100] = "no interval";
    if (cs_cost_interval_is_known(a))
        snprintf(latency, sizeof(latency), "%s to %s", quantity(a->low, CS_QUANTITY_TIME).s,
                 quantity(a->high, CS_QUANTITY_TIME).s);
    if (cs_cost_interval_is_known(b))
        snprintf(range, sizeof(range), "%s to %s", rate_of(b->high).s, rate_of(b->low).s);
    if (b->value > 0)
        snprintf(rate, sizeof(rate), "%s (%s), bus %s", rate_of(b->value).s, range,
                 rate_of(b->value / bus).s);
    snprintf(text, CS_COSTS_TEXT_BYTES,
             "from %lld B on: %s (%s), %s; off by %.2g %%, %u of %u timings left out",
             (long long)regime->from, quantity(a->value, CS_QUANTITY_TIME).s, latency, rate,
             100 * regime->error, regime->outliers, regime->points);
    return text;
}

char *cs_costs_largest_text(const cs_cost_network *entry, char *text)
{
    text[0] = '\0';
    if (entry->n_points == 0)
        return text;
    const uint32_t last = entry->n_points - 1;
    uint32_t first = last;
    while (first > 0 && entry->points[first - 1].bytes == entry->points[last].bytes)
        first--;
    const cs_cost_point *point = &entry->points[(first + last) / 2];
    const double rate = (double)point->bytes / point->seconds;
    snprintf(
        text, CS_COSTS_TEXT_BYTES, "%lld B take %s: algorithm bandwidth %s, bus bandwidth %s",
        (long long)point->bytes, quantity(point->seconds, CS_QUANTITY_TIME).s,
        quantity(rate, CS_QUANTITY_BANDWIDTH).s,
        quantity(rate * cs_cost_bus_factor(entry->collective, entry->ranks), CS_QUANTITY_BANDWIDTH)
            .s);
    return text;
}

char *cs_costs_end_text(const cs_cost_network *entry, char *text)
{
    const cs_cost_regime *last = &entry->regimes[entry->n_regimes - 1];
    text[0] = '\0';
    if (entry->n_regimes > 1 && last->points < CS_FIT_RUN)
        snprintf(text, CS_COSTS_TEXT_BYTES,
                 "%s of %u ranks: the largest sizes, from %lld B on (timings: %u), are far off the "
                 "line of the smaller ones; they form a separate regime, which nothing confirms: "
                 "measure larger sizes, or omit these",
                 cs_cost_collective_names[entry->collective], entry->ranks, (long long)last->from,
                 last->points);
    return text;
}

char *cs_costs_unsettled_text(const cs_cost_network *entry, double share, char *text)
{
    char sizes[300] = "";
    size_t used = 0;
    uint32_t n = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < entry->n_points; i++) {
        const cs_cost_point *point = &entry->points[i];
        const cs_cost_timing timing = {point->seconds, point->low, point->high, point->samples};
        if (point->samples == 0 || cs_fit_is_settled(&timing, share))
            continue;
        if (used < sizeof(sizes)) /* further sizes are counted, not listed */
            used += (size_t)snprintf(sizes + used, sizeof(sizes) - used, "%s%lld", n ? ", " : "",
                                     (long long)point->bytes);
        n++;
    }
    if (n > 0)
        snprintf(text, CS_COSTS_TEXT_BYTES, "%u of %u sizes NOT SETTLED: %s%s B", n,
                 entry->n_points, sizes, used < sizeof(sizes) ? "" : " ...");
    return text;
}
