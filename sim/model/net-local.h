/* A network as one place of a grid computes it: local shapes and weights, and the exchanges between
 * its operators.
 *
 * A split says how the work is divided (split.h). Each kind of operator has a rule per axis, which
 * says in which layouts the operator reads its inputs and makes its result (split-rules.h). If a
 * reader needs a different layout from the one that the writer made, an operator of kind "exchange"
 * is put between them. It reads the local tensor before the exchange and writes the local tensor
 * after it, so the code for whole networks also counts the costs, saved activations and gradients
 * of local networks. An exchange computes nothing itself, with one exception: the bias of a linear
 * layer whose partial results it sums is added to the sum.
 *
 * Readers that need the same layout share one exchange, placed before the first of them. A partial
 * result is summed right after its writer. A gathered tensor is not saved: the operator that would
 * save it saves the part that the place had, and gathers it again in backward (Korthikanti et al.,
 * 2022, section 4.2.2): `gathers_again` of the exchange. A narrow product saves that part after its
 * cast, and gathers the cast (TransformerEngine,
 * transformer_engine/pytorch/module/layernorm_linear.py: ln_out is saved as this place has it, and
 * gathered in backward).
 */
#ifndef CS_WORKLOAD_NET_LOCAL_H
#define CS_WORKLOAD_NET_LOCAL_H

#include "sim/model/kept.h"
#include "sim/model/layout.h"

/* The step of an exchange that comes after its operator; exchanges with other steps come before a
 * step of the operator. */
enum { CS_BEHIND = UINT32_MAX };

typedef struct cs_op_exchange {
    uint32_t op;   /* operator of the local network */
    uint32_t step; /* 0: before op; > 0: see `deferred` and `steps` of cs_local_op; or CS_BEHIND */
    /* exchange operator whose gather this one repeats, + 1; 0: not a repeated gather */
    uint32_t again_of;
    /* position among the exchanges before the same step, in the order of their pass */
    uint32_t order;
    uint8_t kind; /* cs_exchange_kind */
    uint8_t axes; /* cs_axes_name */
    bool backward;
    bool beside;           /* see cs_exchange */
    uint8_t element;       /* cs_element */
    bool once;             /* elements are for the whole batch; false: per sample */
    int64_t elements;      /* elements sent; of a halo: to the next place */
    int64_t elements_back; /* elements sent to the previous place; 0 if not a halo */
} cs_op_exchange;

typedef struct cs_local_op {
    /* operator of the whole network that it is part of, or that it exchanges a tensor for */
    uint32_t origin;
    /* cs_axes_name of the sum of its parameters' gradients: GRADIENT; TENSOR or COPIES if another
     * sum, over these axes, follows; or EXPERT_DATA for experts */
    uint8_t weight_axes;
    /* exchanges only: last of the operators after it whose weight gradients wait until backward
     * sums the input gradient that these operators leave; they overlap this sum. 0: none. Step 0 of
     * the exchange comes before these weight gradients in the order of the operators, step 1 after
     * them. */
    uint32_t deferred;
    /* steps of ring attention, with a shift of keys and values before each step but the first; 0 or
     * 1: no ring. A shift begins when the step before it begins, in forward and backward. */
    uint32_t steps;
    /* shape, in the whole network, of the tensor that it makes or whose layout it changes */
    cs_shape whole;
    /* layouts of its first input, and of its result before any exchange */
    cs_tensor_layout read, made;
    /* bits 1 << cs_layout_axis: axes along which the readers of this exchange's result leave
     * partial gradients */
    uint32_t partial;
    /* elements per sample of neighbours' rows that it reads and keeps with its input */
    int64_t halo;
    /* elements per sample of neighbours' gradients that it reads in backward */
    int64_t gradient_halo;
} cs_local_op;

typedef struct cs_net_local {
    cs_net net;
    cs_local_op *ops; /* per operator of net */
    uint32_t cap_ops;
    cs_op_exchange *exchanges; /* sorted by op, step and order */
    uint32_t n_exchanges, cap_exchanges;
} cs_net_local;

/* Makes the local network of a place. `at` is the JSON object with the sizes of the axes, for
 * messages, or NULL. CS_INVALID if the split cannot divide something; the message names the
 * operator and the nearest sizes that fit. cs_net_local_finish is allowed on a zeroed struct. */
CS_MUST_CHECK cs_status cs_net_local_make(const cs_net *net, const cs_split *split, uint32_t place,
                                          const cs_json_place *at, cs_net_local *local,
                                          cs_error *error);
void cs_net_local_finish(cs_net_local *local);

/* For net-local.c: the first function adds an exchange; the second, called after all of them, adds
 * the gathers that backward repeats, and sorts the exchanges. Both return false if memory runs
 * out. */
bool cs_net_local_add_exchange(cs_net_local *local, cs_op_exchange exchange);
bool cs_net_local_order_exchanges(cs_net_local *local, const cs_split *split);

/* Fills `at` per operator: the exchange whose sum its weight gradients overlap (`deferred`), or the
 * operator itself. */
void cs_net_local_weights_at(const cs_net_local *local, uint32_t *at);

/* The first operator that keeps the result of an exchange for its backward; n_ops: none does. */
uint32_t cs_net_local_first_keeper(const cs_net_local *local, uint32_t exchange);

/* Whether operator p is an exchange whose gather is repeated in backward. It is not repeated if p
 * itself or an operator that reads its result is recomputed (`runs`, recompute.h): the tensors that
 * recomputed operators read are saved. */
bool cs_net_local_gathers_again(const cs_net_local *local, const uint32_t *runs, uint32_t p);

/* Bytes of an exchange's result that backward gathers again: of the tensor itself if an operator
 * keeps it, and of its cast if narrow products keep the cast; and the bytes of the part of the cast
 * that this place has. */
typedef struct cs_gathered_bytes {
    int64_t tensor, cast, cast_part;
    uint32_t caster; /* operator that casts it, if it is cast */
} cs_gathered_bytes;

cs_gathered_bytes cs_net_local_gathered(const cs_net_local *local, uint32_t exchange,
                                        uint32_t batch, cs_precision precision,
                                        const cs_kept_rules *rules);

/* Checks that the split fits the network, for all places. */
CS_MUST_CHECK cs_status cs_net_split_check(const cs_net *net, const cs_split *split,
                                           const cs_json_place *at, cs_error *error);

#endif
