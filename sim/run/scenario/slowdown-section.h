/* The key "slowdown" of the section "platform". Internal to sim/run/scenario. */
#ifndef CS_SCENARIO_SLOWDOWN_SECTION_H
#define CS_SCENARIO_SLOWDOWN_SECTION_H

#include "sim/run/scenario/sections.h"

/* Of several rules about a computation and a communication the last one holds. */
typedef struct cs_slowdown_rule {
    uint32_t compute;       /* 0: any, else 1 + its kind */
    uint32_t communication; /* 0: any, 1: all messages between stages, 2: all collectives, else
                             * CS_SLOWDOWN_KIND + what its kind is behind CS_ALL_REDUCE */
    double factor;          /* >= 1 */
} cs_slowdown_rule;

enum { CS_SLOWDOWN_ANY, CS_SLOWDOWN_MESSAGES, CS_SLOWDOWN_COLLECTIVES, CS_SLOWDOWN_KIND };

/* What the rules (cs_slowdown_rule *) say for each kind of a computation and origin of a transfer,
 * CS_N_KINDS each; NULL without rules. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_scenario_slowdown(const cs_list *rules, cs_arena *arena,
                                             const double **factors, cs_error *error);

#endif
