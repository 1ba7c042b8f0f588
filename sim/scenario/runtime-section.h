/* The section "runtime": which conventions a training runtime has, as defaults of ordinary keys.
 *
 * "runtime": "megatron-core", or {"name": "megatron-core", "fused": false, ...}. A bundle is a list
 * of keys, each with a value and a source; one that the scenario gives itself is left as it is. So
 * a runtime can do nothing that the keys cannot, and each of its conventions can be set by itself.
 * figure-origins.h applies them.
 */
#ifndef CS_SCENARIO_RUNTIME_SECTION_H
#define CS_SCENARIO_RUNTIME_SECTION_H

#include "sim/scenario/scenario.h"
#include "sim/workload/runtime-kernels.h"

typedef struct cs_runtime_section {
    uint32_t name;       /* position in its choices; 0: "ideal" */
    const char *release; /* release of PyTorch; NULL or "": not given */
    bool compile, fused, separate_products, written_out, cuda_graphs, expert_loop, expert_modules,
        fused_experts, current_scaling, deterministic, eager_ring, summed_ring, foreach_optimizer,
        counts_zeros, launch_blocking, early_stop;
    uint32_t flash; /* cs_flash */
    cs_time host, host_kernel, host_product_backward, step;
    double kernels, gradient_passes;
} cs_runtime_section;

/* "ideal", "megatron-core", ..., ended by NULL. */
extern const char *const cs_runtime_names[];

/* One convention of a runtime: the value of a key that a scenario does not set. */
typedef struct cs_convention {
    const char *key;    /* JSON pointer into a section that the scenario has */
    const char *value;  /* JSON; "/device/...": the value there in the device's description */
    const char *source; /* source of the value */
    const char *with;   /* conditions, separated by blanks, that must all hold; NULL: always.
                         * "/model/name": the key is given; "/schedule/kind=1f1b": it has this
                         * value (text, number, true or false); "/platform/topology=dgx1*": its
                         * value begins with "dgx1"; "/model/precision=bf16|fp8": one of these;
                         * "/parallel/pipeline>1", "/runtime/release<2.10" (also >= and <=; the
                         * numbers between dots are compared); "/runtime/fused!=true": it has
                         * another value, or is not given; "/device/architecture/capability>=9":
                         * the same for the description of the scenario's device */
} cs_convention;

/* Of a runtime, ended by {NULL}. */
const cs_convention *cs_runtime_conventions(uint32_t name);

/* One rule for the plans that a runtime can run: if `with` holds, `needs` must hold. */
typedef struct cs_runtime_rule {
    const char *with;   /* as in cs_convention */
    const char *needs;  /* conditions, too; they hold for keys that are not given. Also allowed:
                         * "/schedule/kind=1f1b|gpipe": one of these; "/parallel/zero<2";
                         * "/schedule/micro_batches%/parallel/pipeline": a multiple of the number of
                         * another key, with "%2:" of twice that; "!/parallel/rules": not given */
    const char *text;   /* the rule, as the rest of a sentence that begins with "it" */
    const char *source; /* source of the rule */
} cs_runtime_rule;

enum { CS_RUNTIME_RULES_MOST = 8 }; /* rules per runtime */

/* The rules of a runtime, ended by {0}. */
const cs_runtime_rule *cs_runtime_rules(uint32_t name);

/* Returns the number of the runtime that a document names; 0: "ideal", none, or unknown. */
uint32_t cs_runtime_number(const cJSON *document);

/* How rules read a plan: writes the value of a key into `text`; returns NULL if it is not given. */
enum { CS_RULE_VALUE_BYTES = 64 };
typedef const char *cs_rule_value(const void *context, const char *key,
                                  char text[CS_RULE_VALUE_BYTES]);

/* Reads the value from a document. */
const char *cs_rule_value_at(const cJSON *document, const char *key,
                             char text[CS_RULE_VALUE_BYTES]);

/* Returns the position of the first rule that the plan breaks; CS_RUNTIME_RULES_MOST: none. */
uint32_t cs_runtime_broken_rule(uint32_t name, cs_rule_value *value, const void *context);

CS_MUST_CHECK cs_status cs_runtime_section_read(const cJSON *value, const cs_json_place *root,
                                                cs_arena *arena, cs_runtime_section *section,
                                                cs_error *error);

/* What they mean for kernels. */
cs_runtime_kernels cs_runtime_section_kernels(const cs_runtime_section *section);

#endif
