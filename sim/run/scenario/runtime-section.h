/* The section "runtime": conventions of a training runtime, which become defaults of ordinary keys.
 *
 * "runtime": "megatron-core", or {"name": "megatron-core", "fused": false, ...}. The description of
 * a runtime is a list of conventions. Each gives a key a value, with a source, unless the scenario
 * sets the key. So a runtime can do nothing that keys cannot, and every convention can be set on
 * its own. figure-origins.h applies them. */
#ifndef CS_SCENARIO_RUNTIME_SECTION_H
#define CS_SCENARIO_RUNTIME_SECTION_H

#include "sim/base/conventions.h"
#include "sim/base/facts.h"
#include "sim/model/runtime-kernels.h"
#include "sim/run/scenario/scenario.h"

typedef struct cs_runtime_section {
    const char *name;    /* name of a description, or FILE.json; NULL: no runtime */
    bool kernels_count;  /* kernels are simulated as the runtime launches them; false: rooflines
                          * only */
    const char *release; /* release of PyTorch; NULL or "": not given */
    bool assumed, roofline, compile, fused, separate_products, written_out, eager_gate,
        eager_rotary, cuda_graphs, expert_loop, expert_modules, fused_experts, current_scaling,
        deterministic, eager_ring, summed_ring, foreach_optimizer, counts_zeros, launch_blocking,
        early_stop, message_waits, batch_waits;
    uint32_t flash; /* cs_flash */
    uint32_t softmax_multiple;
    uint32_t loss; /* cs_loss_kernels */
    cs_time host, host_call, host_kernel, host_product_backward, step;
    double kernels, gradient_passes, batch_operators;
} cs_runtime_section;

/* Descriptions of runtimes: facts/runtimes and users' files. A description inherits the entries of
 * "conventions" and "rules" of the runtime that it is "like". */
extern const cs_facts_kind cs_runtime_kind;

/* Loads the description of the runtime that a scenario names; the caller frees it. *runtime is NULL
 * if it names none. FILE.json is relative to `path`, the scenario's file. */
CS_MUST_CHECK cs_status cs_runtime_load(const cJSON *document, const char *path, cJSON **runtime,
                                        cs_error *error);

/* A rule for plans that a runtime can run: if `with` holds, `needs` must hold (conventions.h).
 * Conditions of `needs` on keys that are not given hold. */
typedef struct cs_runtime_rule {
    const char *name;   /* replaces the inherited rule of the same name */
    const char *with;   /* NULL: always */
    const char *needs;  /* NULL: nothing */
    const char *text;   /* the rule in words, after "it" */
    const char *source; /* source of the rule */
} cs_runtime_rule;

enum { CS_RUNTIME_RULES_MOST = 32 }; /* rules per runtime */

typedef struct cs_runtime_rules {
    const char *runtime; /* name of the runtime; NULL: the document names none */
    bool decides;        /* the runtime has conventions (all have, except "ideal") */
    bool is_assumed;     /* the runtime was assumed, not named; its rules are not checked */
    uint32_t n;
    const cs_runtime_rule *items;
} cs_runtime_rules;

/* Loads the rules of the runtime that a scenario names into the arena. */
CS_MUST_CHECK cs_status cs_runtime_rules_load(const cJSON *document, const char *path,
                                              cs_arena *arena, cs_runtime_rules *rules,
                                              cs_error *error);

/* Returns the index of the first rule that the plan breaks, or CS_RUNTIME_RULES_MOST if there is
 * none. `value` looks up the plan's keys. */
uint32_t cs_runtime_broken_rule(const cs_runtime_rules *rules, cs_key_value *value, void *context);

CS_MUST_CHECK cs_status cs_runtime_section_read(const cJSON *value, const cs_json_place *root,
                                                cs_arena *arena, cs_runtime_section *section,
                                                cs_error *error);

/* Returns the section's settings for the kernels of a model. */
cs_runtime_kernels cs_runtime_section_kernels(const cs_runtime_section *section);

#endif
