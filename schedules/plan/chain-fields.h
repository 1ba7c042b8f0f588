/* How a chain is made of a model, as users choose it: planners and the schedule `periodic` read the
 * same table, so that a plan is executed by the rules that it was made by. What these are is told in
 * chain.h.
 */
#ifndef CS_SCHEDULES_CHAIN_FIELDS_H
#define CS_SCHEDULES_CHAIN_FIELDS_H

#include "schedules/plan/chain.h"
#include "sim/base/field.h"

typedef struct cs_chain_rules {
    uint32_t kept; /* cs_kept */
    double weight_copies;
    bool count_update;
} cs_chain_rules;

/* Of cs_chain_rules; ended by {0}. */
extern const cs_field cs_chain_fields[];

/* What the table's defaults say. */
extern const cs_chain_rules cs_chain_default_rules;

/* Puts them into the options of a chain. */
void cs_chain_apply_rules(const cs_chain_rules *rules, cs_chain_options *options);

#endif
