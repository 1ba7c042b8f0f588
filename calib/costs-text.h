/* What was fitted and measured of collectives, for people: a line each, without its end. */
#ifndef CS_CALIB_COSTS_TEXT_H
#define CS_CALIB_COSTS_TEXT_H

#include "calib/costs.h"

#include <stddef.h>

enum { CS_COSTS_TEXT_BYTES = 480 };

/* "from 0 B on: 19.9 us (19.7 us to 20.2 us), 7.6 GB/s (6.4 GB/s to 9.5 GB/s), bus 13.4 GB/s; off
 * by 1.4 %, 1 of 13 timings left out". All return `text`, of CS_COSTS_TEXT_BYTES. */
char *cs_costs_regime_text(const cs_cost_network *entry, const cs_cost_regime *regime, char *text);

/* Of the largest size that was measured, the middle one where there are several timings:
 * "1073741824 B take 12.2 ms: algorithm bandwidth 88 GB/s, bus bandwidth 154 GB/s". "" without
 * points. */
char *cs_costs_largest_text(const cs_cost_network *entry, char *text);

/* Of largest sizes that are a regime of their own (calib/fit.h), the last one: "the timings from
 * 33554432 B on (1) are far off the line of the smaller ones: ..."; "" when there are none. */
char *cs_costs_end_text(const cs_cost_network *entry, char *text);

/* Sizes whose medians are not known to `share` of them, how many they are and which: "2 of 24 sizes
 * NOT SETTLED: 8, 64 B"; "" when there are none. Points without an interval do not count. */
char *cs_costs_unsettled_text(const cs_cost_network *entry, double share, char *text);

#endif
