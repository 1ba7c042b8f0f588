/* Cost of OSDP's plans: Jiang et al., OSDP: Optimal Sharded Data Parallel for Distributed Deep
 * Learning, IJCAI 2023, section 3.1.
 *
 * N devices train a model of n operators with data parallelism, b samples on each. An operator is
 * split into k slices, and each slice has its own mode: data parallel (DP: each device holds its
 * states) or sharded (ZDP: each device holds 1/N of them, as with ZeRO 3). z of an operator's k
 * slices are sharded; k = 1 gives the paper's plans without operator splitting. With c(m) =
 * (N - 1)(alpha + m/N beta), the time of a ring all-gather or reduce-scatter of m bytes, an
 * operator takes
 *
 *     T = sum over DP slices of 2 c(G/k) + sum over ZDP slices of (a c(S/k) + c(G/k)) + b gamma
 *     M = ((k - z)/k + z/(k N)) states + b activations
 *     extra = workspace + (S/k + G/k if z > 0)
 *
 * Fractions of bytes are rounded up. S and G are the bytes of weights and of their gradients, which
 * are equal in the paper. a is 2, or 3 with checkpointing, whose recomputation gathers once more
 * (section 2.3). Computation and messages do not overlap, as in the paper.
 *
 * The extra bytes are the surge: memory that the operator needs only while it runs. In backward the
 * gathered slice and its gradient, which is not scattered yet, exist at the same time. The paper's
 * M sums the extra bytes of all operators; since operators run one after the other, a device needs
 * only the largest. Both can be chosen.
 */
#ifndef CS_SCHEDULES_OSDP_COST_H
#define CS_SCHEDULES_OSDP_COST_H

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/base/time.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct cs_osdp_operator {
    int64_t weights;   /* S, bytes; 0: no weights, and therefore no choice */
    int64_t gradients; /* G, bytes */
    int64_t states;    /* weights, gradients and optimizer states, bytes */
    /* activations saved for backward, for cs_osdp_model.samples samples, bytes */
    int64_t kept;
    int64_t
        /* additional memory while it runs, for that number of samples, without the surge, bytes */
        workspace;
    cs_time compute; /* time for that number of samples: forward, backward and recomputation */
    uint32_t slices; /* maximum number of slices, >= 1 */
} cs_osdp_operator;

typedef struct cs_osdp_model {
    uint32_t n;
    const cs_osdp_operator *operators;
    uint32_t samples;    /* number of samples that activations and computation are given for, > 0 */
    int64_t fixed_bytes; /* bytes on each device that do not depend on the plan */
    uint32_t devices;    /* N >= 1 */
    cs_time latency;     /* alpha */
    double bandwidth;    /* 1 / beta, bytes/s */
    uint32_t gathers;    /* a: gathers of sharded weights per step */
} cs_osdp_model;

typedef enum cs_osdp_surge { CS_OSDP_SURGE_MAXIMUM, CS_OSDP_SURGE_SUM } cs_osdp_surge;

/* "maximum", "sum"; NULL-terminated */
extern const char *const cs_osdp_surge_names[];

/* Bits: modes that slices may have. */
enum { CS_OSDP_DATA = 1, CS_OSDP_SHARDED = 2, CS_OSDP_ANY = 3 };

/* Constraints of the plans to search. */
typedef struct cs_osdp_rules {
    int64_t limit; /* memory of a device, bytes; INT64_MAX: unlimited */
    cs_osdp_surge surge;
    uint32_t modes;
    bool slices; /* whether operators may be split into slices */
} cs_osdp_rules;

typedef struct cs_osdp_choice {
    uint32_t slices;  /* k >= 1 */
    uint32_t sharded; /* z <= k */
} cs_osdp_choice;

/* One choice for an operator, and its cost. With CS_OSDP_SURGE_SUM, `memory` includes the surge and
 * `extra` is 0. */
typedef struct cs_osdp_option {
    cs_osdp_choice choice;
    int64_t memory, extra; /* bytes */
    cs_time time;
} cs_osdp_option;

/* Operators with the same options. */
typedef struct cs_osdp_kind {
    const cs_osdp_option *options;
    uint32_t n_options;
} cs_osdp_kind;

/* Options of all operators for one number of samples. */
typedef struct cs_osdp_menu {
    uint32_t n, n_kinds;
    const uint32_t *kind_of; /* kind of each operator */
    const cs_osdp_kind *kinds;
    /* bytes available to all operators together: the rules' limit minus fixed bytes */
    int64_t limit;
    int64_t fixed_bytes;
} cs_osdp_menu;

/* Makes the menu for `batch` samples per device, in the arena. CS_OVERFLOW if a plan could overflow
 * 63 bits. */
CS_MUST_CHECK cs_status cs_osdp_menu_make(const cs_osdp_model *model, const cs_osdp_rules *rules,
                                          uint32_t batch, cs_arena *arena, cs_osdp_menu *menu,
                                          cs_error *error);

/* Least memory of any plan of the menu, ignoring the limit, bytes. */
int64_t cs_osdp_least_memory(const cs_osdp_menu *menu);

/* Cost of one plan: time of a step, and memory including fixed bytes. `choices` must be on the
 * menu. */
typedef struct cs_osdp_cost {
    cs_time time;
    int64_t memory;
} cs_osdp_cost;

cs_osdp_cost cs_osdp_cost_of(const cs_osdp_menu *menu, const cs_osdp_choice *choices);

/* Fraction of the gradients' bytes that a plan keeps data parallel. */
double cs_osdp_data_fraction(const cs_osdp_model *model, const cs_osdp_choice *choices);

/* Upper bound of the speed-up over sharding all operators, at the same batch and without slices, if
 * a fraction f of the parameters is data parallel and latency is negligible. The time of messages
 * alone shrinks by (a + 1)/((a + 1) - (a - 1) f) for S = G: 3/(3 - f), at most 3/2. Computation is
 * equal in both, which makes the speed-up smaller. */
double cs_osdp_bound(const cs_osdp_model *model, double fraction);

#endif
