#include "schedules/plan/chain-fields.h"

/* In step with cs_kept. */
static const char *const kept_names[] = {"full", "literal", NULL};

const cs_field cs_chain_fields[] = {
    {"kept", CS_FIELD_CHOICE, offsetof(cs_chain_rules, kept), .fallback = "full",
     .choices = kept_names,
     .doc = "bytes per active micro-batch: all that the layers keep, or literally the inputs of "
            "the layers, as MadPipe counts"},
    {"weight_copies", CS_FIELD_NUMBER, offsetof(cs_chain_rules, weight_copies), .fallback = "3",
     .max = 1e6,
     .doc = "times that a device holds its weights: two versions and an accumulator of gradients"},
    {"count_update", CS_FIELD_BOOL, offsetof(cs_chain_rules, count_update), .fallback = "false",
     .doc = "a backward takes the time of the update too, which MadPipe leaves out"},
    {0},
};

const cs_chain_rules cs_chain_default_rules = {.kept = CS_KEPT_FULL, .weight_copies = 3};

void cs_chain_apply_rules(const cs_chain_rules *rules, cs_chain_options *options)
{
    options->kept = (cs_kept)rules->kept;
    options->weight_copies = rules->weight_copies;
    options->count_update = rules->count_update;
}
