/* Options for making a chain from a model. Planners and the schedule `periodic` read the same
 * table, so a plan is executed by the rules that it was made with. chain.h explains the rules. */
#ifndef CS_SCHEDULES_CHAIN_FIELDS_H
#define CS_SCHEDULES_CHAIN_FIELDS_H

#include "schedules/plan/chain.h"
#include "sim/base/field.h"

typedef struct cs_chain_rules {
    uint32_t kept; /* a cs_kept */
    double weight_copies;
    bool count_update, count_workspace;
} cs_chain_rules;

extern const char *const cs_kept_names[]; /* in the order of cs_kept, NULL-terminated */

/* Rows for tables of structs that begin with a cs_chain_rules. */
/* clang-format off */
#define CS_CHAIN_FIELDS                                                                            \
    {"kept", CS_FIELD_CHOICE, offsetof(cs_chain_rules, kept), .fallback = "full",                  \
     .choices = cs_kept_names,                                                                     \
     .doc = "bytes per active micro-batch; full: all that the layers keep; literal: only the "     \
            "inputs of the layers, as MadPipe counts"},                                            \
    {"weight_copies", CS_FIELD_NUMBER, offsetof(cs_chain_rules, weight_copies), .fallback = "3",   \
     .max = 1e6,                                                                                   \
     .doc = "how many times a device holds its weights; 3: two versions, and accumulated "         \
            "gradients"},                                                                          \
    {"count_update", CS_FIELD_BOOL, offsetof(cs_chain_rules, count_update), .fallback = "false",   \
     .doc = "the time of a backward includes the update, which MadPipe leaves out"},               \
    {"count_workspace", CS_FIELD_BOOL, offsetof(cs_chain_rules, count_workspace),                  \
     .fallback = "true",                                                                           \
     .doc = "a device needs memory for the workspace of its layers, which MadPipe leaves out"}
/* clang-format on */

/* Fields of cs_chain_rules; ended by {0}. */
extern const cs_field cs_chain_fields[];

/* Default values of the table. */
extern const cs_chain_rules cs_chain_default_rules;

/* Copies the rules into the options of a chain. */
void cs_chain_apply_rules(const cs_chain_rules *rules, cs_chain_options *options);

#endif
