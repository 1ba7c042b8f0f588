/* A network as one place of a grid computes it: local shapes and weights, and the exchanges
 * between its operators.
 *
 * A split says how the work is divided (split.h). Each kind of operator has a rule per axis, which
 * says in which layout it reads its inputs and makes its result (split-rules.h). Where a reader
 * needs another layout than the writer left, an operator of kind "exchange" stands between them:
 * what it reads and writes are the local tensors before and after, so that costs, kept memory and
 * gradients of the local network are counted by the code that does so for whole ones. It does
 * nothing by itself, but for the bias of a linear layer whose partial results it sums: that is
 * added to the sum.
 *
 * Readers that need the same layout share one exchange, in front of the first. What is partial is
 * summed right behind its writer. What was gathered is not kept: the operator that would keep it
 * keeps the part that the place had, and gathers it again in backward (Korthikanti et al., 2022,
 * section 4.2.2): the exchange `gathers_again`. A narrow product keeps that part as it was cast,
 * and its cast is gathered (TransformerEngine,
 * transformer_engine/pytorch/module/layernorm_linear.py: ln_out is saved as this place has it, and
 * gathered in backward).
 */
#ifndef CS_WORKLOAD_NET_LOCAL_H
#define CS_WORKLOAD_NET_LOCAL_H

#include "sim/model/kept.h"
#include "sim/model/layout.h"

/* An exchange stands in front of a step of an operator, or behind the operator. */
enum { CS_BEHIND = UINT32_MAX };

typedef struct cs_op_exchange {
    uint32_t op; /* of the local network */
    uint32_t
        step; /* 0: in front of it; more: see `deferred` and `steps` of cs_local_op; CS_BEHIND */
    uint32_t
        again_of; /* of one that gathers again: the exchange operator whose gather it repeats, + 1 */
    uint32_t order; /* among those in front of one step: that of their pass */
    uint8_t kind;   /* cs_exchange_kind */
    uint8_t axes;   /* cs_axes_name */
    bool backward;
    bool beside;           /* as in cs_exchange */
    uint8_t element;       /* cs_element */
    bool once;             /* elements are of the whole batch, else per sample */
    int64_t elements;      /* of a halo those that the next place gets, */
    int64_t elements_back; /* and the one before; of others 0 */
} cs_op_exchange;

typedef struct cs_local_op {
    uint32_t origin; /* the operator of the whole network that it is, or that it exchanges for */
    uint8_t weight_axes; /* cs_axes_name that the gradients of its parameters are summed over:
                          * GRADIENT, or also TENSOR or COPIES, or EXPERT_DATA instead */
    /* Of an exchange whose backward sums the gradients that the operators behind it leave, up to
     * this one (0: there are none): their gradients of weights are computed last, beside that sum.
     * Its step
     * 0 is in front of those gradients in the order of the operators, its step 1 behind them. */
    uint32_t deferred;
    uint32_t
        steps; /* > 1: of attention whose keys and values go around, with a shift between steps. It
                     * begins when the step in front of it does, forward and backward. */
    cs_shape whole; /* of the tensor that it makes, or that it brings into another layout */
    cs_tensor_layout read, made; /* of its first input and of its result as it comes */
    uint32_t partial; /* of an exchange, bit 1 << cs_layout_axis: its readers leave partial
                       * gradients */
    int64_t halo;     /* elements per sample that it reads besides its input, and keeps with it */
    int64_t gradient_halo; /* the same of gradients, while it runs backward */
} cs_local_op;

typedef struct cs_net_local {
    cs_net net;
    cs_local_op *ops; /* per operator of net */
    uint32_t cap_ops;
    cs_op_exchange *exchanges; /* by op, step and order */
    uint32_t n_exchanges, cap_exchanges;
} cs_net_local;

/* The network of a place. `at` is the JSON object with the sizes of the axes, for messages, or
 * NULL. What the split does not divide is CS_INVALID, with the operator and the sizes next to it
 * that would be right. Zeroed ones can be finished. */
CS_MUST_CHECK cs_status cs_net_local_make(const cs_net *net, const cs_split *split, uint32_t place,
                                          const cs_json_place *at, cs_net_local *local,
                                          cs_error *error);
void cs_net_local_finish(cs_net_local *local);

/* For net-local.c: adds an exchange; once all are there, adds those that backward repeats and sorts
 * them. False when memory runs out. */
bool cs_net_local_add_exchange(cs_net_local *local, cs_op_exchange exchange);
bool cs_net_local_order_exchanges(cs_net_local *local, const cs_split *split);

/* Fills `at`, per operator: the exchange beside whose sum its gradients of weights are computed
 * (`deferred`), or itself. */
void cs_net_local_weights_at(const cs_net_local *local, uint32_t *at);

/* The first operator that needs for its backward what an exchange makes; n_ops: none does. */
uint32_t cs_net_local_first_keeper(const cs_net_local *local, uint32_t exchange);

/* Whether operator p is an exchange whose gather backward repeats, where some operators run again
 * (`runs`, recompute.h): it is not among them, and none of them reads it. What they read is kept. */
bool cs_net_local_gathers_again(const cs_net_local *local, const uint32_t *runs, uint32_t p);

/* Bytes that backward gathers again of what an exchange made: the tensor itself, where an operator
 * keeps it, and its cast, where narrow products keep that; and the part of the cast that this place
 * has. */
typedef struct cs_gathered_bytes {
    int64_t tensor, cast, cast_part;
    uint32_t caster; /* the operator that casts it, where there is a cast */
} cs_gathered_bytes;

cs_gathered_bytes cs_net_local_gathered(const cs_net_local *local, uint32_t exchange,
                                        uint32_t batch, cs_precision precision,
                                        const cs_kept_rules *rules);

/* Whether the split fits the network, for all places. */
CS_MUST_CHECK cs_status cs_net_split_check(const cs_net *net, const cs_split *split,
                                           const cs_json_place *at, cs_error *error);

#endif
