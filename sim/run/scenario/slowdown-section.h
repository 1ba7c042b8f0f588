/* The key "slowdown" of the section "platform". Internal to sim/run/scenario. */
#ifndef CS_SCENARIO_SLOWDOWN_SECTION_H
#define CS_SCENARIO_SLOWDOWN_SECTION_H

#include "sim/run/scenario/sections.h"

/* How much a communication slows a computation down. If several rules match, the last one
 * counts. */
typedef struct cs_slowdown_rule {
    uint32_t compute;       /* 0: any, else 1 + kind of the computation */
    uint32_t communication; /* CS_SLOWDOWN_ANY, _MESSAGES (between stages) or _COLLECTIVES; else
                             * CS_SLOWDOWN_KIND + (kind - CS_ALL_REDUCE) */
    double factor;          /* >= 1 */
} cs_slowdown_rule;

enum { CS_SLOWDOWN_ANY, CS_SLOWDOWN_MESSAGES, CS_SLOWDOWN_COLLECTIVES, CS_SLOWDOWN_KIND };

/* Makes the table of factors from the rules (cs_slowdown_rule *): [kind of computation][origin of
 * transfer], CS_N_KINDS each; NULL without rules. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_scenario_slowdown(const cs_list *rules, cs_arena *arena,
                                             const double **factors, cs_error *error);

#endif
