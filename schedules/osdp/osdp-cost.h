/* What OSDP's plans cost: Jiang et al., OSDP: Optimal Sharded Data Parallel for Distributed Deep
 * Learning, IJCAI 2023, section 3.1.
 *
 * N devices train a model of n operators with data parallelism, b samples on each. An operator is
 * cut into k slices, and each slice has a mode of its own: data parallel (DP: each device holds its
 * states) or sharded (ZDP: each holds an N-th, as with ZeRO 3). Of an operator z of k slices are
 * sharded; k = 1 are the paper's plans without operator splitting. With c(m) = (N - 1)(alpha + m/N
 * beta), the time of a ring all-gather or reduce-scatter of m bytes, an operator takes
 *
 *     T = sum over DP slices of 2 c(G/k) + sum over ZDP slices of (a c(S/k) + c(G/k)) + b gamma
 *     M = ((k - z)/k + z/(k N)) states + b activations
 *     extra = workspace + (S/k + G/k while z > 0)
 *
 * k-th and N-th parts of bytes are rounded up. S and G are the bytes of weights and of their
 * gradients, which the paper takes as equal. a is 2, and 3 with checkpointing, whose recomputation
 * gathers once more (section 2.3). Computation and messages do not overlap, as in the paper.
 *
 * The extra bytes are the surge: what the operator needs while it runs. In backward the gathered
 * slice and its gradient, which is not scattered yet, are there together. The paper's M sums the
 * extra bytes of all operators; as they run one after the other, a device needs the largest only.
 * Both can be chosen.
 */
#ifndef CS_SCHEDULES_OSDP_COST_H
#define CS_SCHEDULES_OSDP_COST_H

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/base/time.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct cs_osdp_operator {
    int64_t weights;   /* S, bytes; 0: it has none, and no choice */
    int64_t gradients; /* G, bytes */
    int64_t states;    /* bytes: weights, gradients and optimizer states */
    int64_t kept;      /* bytes of activations that cs_osdp_model.samples keep */
    int64_t
        workspace;   /* bytes that it needs for so many samples while it runs, besides the surge */
    cs_time compute; /* of so many samples: forward, backward and what is recomputed */
    uint32_t slices; /* most that it may be cut into, >= 1 */
} cs_osdp_operator;

typedef struct cs_osdp_model {
    uint32_t n;
    const cs_osdp_operator *operators;
    uint32_t samples;    /* that activations and computation are given for, > 0 */
    int64_t fixed_bytes; /* that each device holds whatever the plan */
    uint32_t devices;    /* N >= 1 */
    cs_time latency;     /* alpha */
    double bandwidth;    /* 1 / beta, bytes/s */
    uint32_t gathers;    /* a: of sharded weights per step */
} cs_osdp_model;

typedef enum cs_osdp_surge { CS_OSDP_SURGE_MAXIMUM, CS_OSDP_SURGE_SUM } cs_osdp_surge;

/* "maximum", "sum", ended by NULL. */
extern const char *const cs_osdp_surge_names[];

/* Modes that slices may have: bits. */
enum { CS_OSDP_DATA = 1, CS_OSDP_SHARDED = 2, CS_OSDP_ANY = 3 };

/* Which plans are looked for. */
typedef struct cs_osdp_rules {
    int64_t limit; /* bytes of a device; INT64_MAX: without limit */
    cs_osdp_surge surge;
    uint32_t modes;
    bool slices; /* operators may be cut */
} cs_osdp_rules;

typedef struct cs_osdp_choice {
    uint32_t slices;  /* k >= 1 */
    uint32_t sharded; /* z <= k */
} cs_osdp_choice;

/* What an operator may do, and what it then costs. With CS_OSDP_SURGE_SUM `extra` is part of
 * `memory`, and 0. */
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

/* What all operators may do for one number of samples. */
typedef struct cs_osdp_menu {
    uint32_t n, n_kinds;
    const uint32_t *kind_of; /* per operator */
    const cs_osdp_kind *kinds;
    int64_t limit; /* bytes that the operators may have together: the rules' less the fixed ones */
    int64_t fixed_bytes;
} cs_osdp_menu;

/* The menu for `batch` samples a device; it lives in the arena. CS_OVERFLOW when a plan may not fit
 * into 63 bits. */
CS_MUST_CHECK cs_status cs_osdp_menu_make(const cs_osdp_model *model, const cs_osdp_rules *rules,
                                          uint32_t batch, cs_arena *arena, cs_osdp_menu *menu,
                                          cs_error *error);

/* The least memory, in bytes, that any plan of a menu needs, whatever the limit. */
int64_t cs_osdp_least_memory(const cs_osdp_menu *menu);

/* The cost of one plan: time of a step, memory in bytes with the fixed ones. `choices` must be on
 * the menu.
 */
typedef struct cs_osdp_cost {
    cs_time time;
    int64_t memory;
} cs_osdp_cost;

cs_osdp_cost cs_osdp_cost_of(const cs_osdp_menu *menu, const cs_osdp_choice *choices);

/* The fraction of the gradients' bytes that a plan keeps data parallel. */
double cs_osdp_data_fraction(const cs_osdp_model *model, const cs_osdp_choice *choices);

/* How many times faster than with all operators sharded a step can be at the same batch and without
 * slices, when a fraction f of the parameters is data parallel and latency does not matter:
 * messages alone take (a + 1)/((a + 1) - (a - 1) f) times as long, for S = G; so 3/(3 - f), and 3/2
 * at most. Computing, the same in both, makes it less. */
double cs_osdp_bound(const cs_osdp_model *model, double fraction);

#endif
