/* Fits and measurements of collectives as lines of text for users, without newlines. */
#ifndef CS_CALIB_COSTS_TEXT_H
#define CS_CALIB_COSTS_TEXT_H

#include "calib/costs.h"

#include <stddef.h>

enum { CS_COSTS_TEXT_BYTES = 480 };

/* Writes "from 0 B on: 19.9 us (19.7 us to 20.2 us), 7.6 GB/s (6.4 GB/s to 9.5 GB/s), bus 13.4
 * GB/s; off by 1.4 %, 1 of 13 timings left out". All functions return `text`, of
 * CS_COSTS_TEXT_BYTES. */
char *cs_costs_regime_text(const cs_cost_network *entry, const cs_cost_regime *regime, char *text);

/* Describes the largest measured size (with several timings: the middle one): "1073741824 B take
 * 12.2 ms: algorithm bandwidth 88 GB/s, bus bandwidth 154 GB/s". "": no points. */
char *cs_costs_largest_text(const cs_cost_network *entry, char *text);

/* Warns if the largest sizes are a separate regime (calib/fit.h): "the timings from 33554432 B on
 * (1) are far off the line of the smaller ones: ..."; "": they are not. */
char *cs_costs_end_text(const cs_cost_network *entry, char *text);

/* Counts and lists sizes whose medians are less accurate than `share`: "2 of 24 sizes NOT SETTLED:
 * 8, 64 B"; "": none. Points without an interval are ignored. */
char *cs_costs_unsettled_text(const cs_cost_network *entry, double share, char *text);

#endif
