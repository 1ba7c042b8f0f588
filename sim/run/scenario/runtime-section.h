/* The section "runtime": which conventions a training runtime has, as defaults of ordinary keys.
 *
 * "runtime": "megatron-core", or {"name": "megatron-core", "fused": false, ...}. A description of a
 * runtime is a list of conventions. Each gives a key a value, with a source; a key that the scenario
 * gives itself is left as it is. So a runtime can do nothing that the keys cannot, and each of its
 * conventions can be set alone. figure-origins.h applies them.
 */
#ifndef CS_SCENARIO_RUNTIME_SECTION_H
#define CS_SCENARIO_RUNTIME_SECTION_H

#include "sim/base/conventions.h"
#include "sim/base/facts.h"
#include "sim/model/runtime-kernels.h"
#include "sim/run/scenario/scenario.h"

typedef struct cs_runtime_section {
    const char *name;    /* name of a description, or FILE.json; NULL: no runtime */
    bool kernels_count;  /* the scenario has a runtime, and not only rooflines */
    const char *release; /* release of PyTorch; NULL or "": not given */
    bool assumed, roofline, compile, fused, separate_products, written_out, cuda_graphs,
        expert_loop, expert_modules, fused_experts, current_scaling, deterministic, eager_ring,
        summed_ring, foreach_optimizer, counts_zeros, launch_blocking, early_stop, message_waits,
        batch_waits;
    uint32_t flash; /* cs_flash */
    uint32_t softmax_multiple;
    uint32_t loss; /* cs_loss_kernels */
    cs_time host, host_call, host_kernel, host_product_backward, step;
    double kernels, gradient_passes, batch_operators;
} cs_runtime_section;

/* Descriptions of runtimes: facts/runtimes and users' files. The lists "conventions" and "rules" of
 * a description and of those that it is like are joined. */
extern const cs_facts_kind cs_runtime_kind;

/* Loads the description of the runtime that a scenario names; the caller frees it. *runtime is NULL
 * if it names none. `path`: of the scenario, which FILE.json is relative to. */
CS_MUST_CHECK cs_status cs_runtime_load(const cJSON *document, const char *path, cJSON **runtime,
                                        cs_error *error);

/* One rule for the plans that a runtime can run: if `with` holds, `needs` must hold (conventions.h);
 * what `needs` says of keys that are not given holds. */
typedef struct cs_runtime_rule {
    const char *name;   /* it replaces the rule of that name of a runtime that this one is like */
    const char *with;   /* NULL: always */
    const char *needs;  /* NULL: nothing */
    const char *text;   /* the rule, as the rest of a sentence that begins with "it" */
    const char *source; /* source of the rule */
} cs_runtime_rule;

enum { CS_RUNTIME_RULES_MOST = 32 }; /* rules per runtime */

typedef struct cs_runtime_rules {
    const char *runtime; /* its name; NULL: the document names none */
    bool decides;        /* it has conventions, as all have but "ideal" */
    bool is_assumed;     /* nobody named it, so its rules are left out */
    uint32_t n;
    const cs_runtime_rule *items;
} cs_runtime_rules;

/* Loads the rules of the runtime that a scenario names into the arena. */
CS_MUST_CHECK cs_status cs_runtime_rules_load(const cJSON *document, const char *path,
                                              cs_arena *arena, cs_runtime_rules *rules,
                                              cs_error *error);

/* Returns the position of the first rule that the plan breaks, which `value` tells the keys of;
 * CS_RUNTIME_RULES_MOST: none. */
uint32_t cs_runtime_broken_rule(const cs_runtime_rules *rules, cs_key_value *value, void *context);

CS_MUST_CHECK cs_status cs_runtime_section_read(const cJSON *value, const cs_json_place *root,
                                                cs_arena *arena, cs_runtime_section *section,
                                                cs_error *error);

/* What they mean for kernels. */
cs_runtime_kernels cs_runtime_section_kernels(const cs_runtime_section *section);

#endif
