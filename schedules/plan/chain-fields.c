#include "schedules/plan/chain-fields.h"

const char *const cs_kept_names[] = {"full", "literal", NULL};

const cs_field cs_chain_fields[] = {CS_CHAIN_FIELDS, {0}};

const cs_chain_rules cs_chain_default_rules = {.kept = CS_KEPT_FULL, .weight_copies = 3};

void cs_chain_apply_rules(const cs_chain_rules *rules, cs_chain_options *options)
{
    options->kept = (cs_kept)rules->kept;
    options->weight_copies = rules->weight_copies;
    options->count_update = rules->count_update;
}
