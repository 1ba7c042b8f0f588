/* From a network to a model: the chain of its layers with times and sizes.
 *
 * The chain's finest form ends a layer at every articulation point of the graph (see
 * net-chain.h); views join the layer behind them. The coarse form ends layers only where a block
 * of the network ends as well. A loss that is not the last operator is part of the layer that it
 * hangs on.
 *
 * Times come from measurements of the operators' shapes where there are any (op-shape.h), and else
 * from a device description (accelerator.h); forward, gradients of the input and gradients of the
 * weights by themselves; each operator by itself, none fused and none overlapping. What is kept
 * counts every storage once, at the last layer that reads it (op-cost.h says what each operator
 * keeps). Workspace is the most that gradients of activations and a kernel take at any moment of a
 * layer's backward (backward-memory.h), with the gradient that enters the layer.
 */
#ifndef CS_WORKLOAD_NET_MODEL_H
#define CS_WORKLOAD_NET_MODEL_H

#include "sim/model/accelerator.h"
#include "sim/model/kept.h"
#include "sim/model/model.h"
#include "sim/model/muon.h"
#include "sim/model/net.h"
#include "sim/model/op-shape.h"
#include "sim/model/runtime-kernels.h"
#include "sim/model/split.h"

typedef enum cs_granularity { CS_GRANULARITY_LAYER, CS_GRANULARITY_BLOCK } cs_granularity;

/* "layer", "block", ended by NULL. */
extern const char *const cs_granularity_names[];

/* What of a layer's kept memory is offloaded to the host: tensors of so many elements or more that
 * some of these operators keep (names as recompute.h has them; none: any operator). Not in the last
 * block of several, whose backward is next. */
typedef struct cs_offload_rules {
    const char *const *operators;
    uint32_t n_operators;
    uint32_t smallest; /* elements, of the width of activations */
} cs_offload_rules;

typedef struct cs_net_options {
    uint32_t batch_size; /* 1 to CS_BATCH_MAX */
    cs_precision precision;
    double optimizer_states; /* values per weight: 0, 1 or 2; with Muon of what is no matrix */
    cs_muon muon;            /* which then updates matrices; zeroed: all are updated alike */
    bool float_gradients;    /* an update reads float32 gradients, whatever the precision */
    cs_optimizer_storage storage;
    cs_kept_rules kept;
    bool tapes; /* tensors one by one are asked for (tape.h) */
    cs_granularity granularity;
    bool recompute;               /* marks every layer in front of the last block */
    bool early_stop;              /* their forward runs again as far as their backward needs it */
    const cs_accelerator *device; /* whose times; see cs_accelerator_none */
    cs_runtime_kernels kernels;   /* of the runtime; zeroed: rooflines */
    const cs_measured *measured;  /* asked before the device is; or NULL */
    const char *source;           /* for the provenance: what the network was made from */
    const char *date;             /* for the provenance, YYYY-MM-DD; NULL: 1970-01-01, for none */
    /* How the work of batch_size samples is divided over devices: the model is then that of the
     * device at `place` of the grid (net-local.h). NULL: one device does all. */
    const cs_split *split;
    uint32_t place;
    const char *const
        *recompute_ops; /* names of operators whose forward is done again (recompute.h) */
    uint32_t n_recompute_ops;
    const char *const *discard_ops; /* of these, those whose results are discarded */
    uint32_t n_discard_ops;
    const cs_offload_rules *offload; /* NULL: nothing is */
} cs_net_options;

/* A piece of a layer (cs_layer_piece), or an operator. */
typedef struct cs_piece_seconds {
    double forward, backward_input, backward_weight;
    double skipped; /* of forward, when the layer runs again */
    cs_host_seconds host;
    bool waits; /* forward, the host waits for a result of the device */
} cs_piece_seconds;

/* A layer of the chain: operators [first, end), with a split those of the local network. */
typedef struct cs_net_layer {
    const char *name; /* the operator's, the block's, or "FIRST to LAST" */
    uint32_t first, end;
    double macs;
    double forward_flop, input_flop, weight_flop;
    double forward_bytes, input_bytes, weight_bytes; /* moved */
    int64_t read_bytes, written_bytes; /* |x|, and |y| with what is handed past the layer */
    int64_t weights, biases;           /* parameters */
    int64_t copy_bytes;                /* of weights, cast to a narrow type, */
    int64_t cast_bytes;                /* and of these see cs_layer */
    int64_t narrowed_bytes;            /* of weights, which are there in that type only */
    int64_t frozen;                    /* of them, how many are not trained */
    double forward, backward_input, backward_weight; /* s */
    double update;                                   /* s, once per step, those of */
    cs_muon_update *matrices;                        /* included, with Muon */
    uint32_t n_matrices;
    double skipped;      /* of forward, when it runs again: operators from */
    uint32_t repeat_end; /* this one on */
    cs_host_seconds host;
    bool waits;                                            /* see cs_layer */
    double kernels[CS_N_KERNEL_PASSES][CS_N_KERNEL_KINDS]; /* s, see cs_layer */
    uint32_t n_measured, n_estimated; /* passes of its pieces of work, by source */
    int64_t kept_bytes, workspace_bytes;
    int64_t host_bytes;    /* of kept_bytes, what is offloaded */
    int64_t carried_bytes; /* kept of the carried tensor, see cs_layer; not in kept_bytes */
    /* of a network that is divided, where there is an exchange (net-chain.h): */
    uint32_t n_pieces, n_exchanges;
    cs_piece_seconds *pieces;
    cs_exchange *exchanges;
    int64_t shared_parameters; /* whose gradients are summed over the tensor axis as well */
    int64_t copied_parameters; /* or over neighbours along it with the same keys and values */
    int64_t expert_parameters; /* and instead over the places with the same experts */
} cs_net_layer;

typedef struct cs_net_chain {
    cs_net_layer *layers;
    uint32_t n_layers;
    int64_t kept_bytes; /* of all layers, carried ones once */
    cs_arena arena;
} cs_net_chain;

/* Zeroed chains can be finished. CS_INVALID for a batch or a precision that cannot be, CS_OVERFLOW
 * for sizes beyond 64 bits. */
CS_MUST_CHECK cs_status cs_net_chain_find(const cs_net *net, const cs_net_options *options,
                                          cs_net_chain *chain, cs_error *error);
void cs_net_chain_finish(cs_net_chain *chain);

/* The chain as a model. */
CS_MUST_CHECK cs_status cs_net_model(const cs_net *net, const cs_net_options *options,
                                     cs_model *model, cs_error *error);

/* Totals over a network: parameters, and multiply-accumulates of one sample. */
int64_t cs_net_parameters(const cs_net *net);

/* Those that are trained: all but the frozen ones. */
int64_t cs_net_trained_parameters(const cs_net *net);

/* Those that compute a token: all but the ones of experts that it does not go to. Embeddings count
 * whole, as they do in the published figures of Mixtral and Qwen. */
int64_t cs_net_active_parameters(const cs_net *net);
double cs_net_macs(const cs_net *net);

/* Some recomputed operators (recompute.h) save no memory: their results are kept anyway for operators
 * that are not recomputed, or would not have been kept in the first place. */

typedef enum cs_recompute_effect {
    CS_RECOMPUTE_FREES,   /* without it more is kept; or it repeats no operator alone */
    CS_RECOMPUTE_IDLE,    /* without it no more is kept, */
    CS_RECOMPUTE_DISCARD, /* and if its results were discarded as well, less would be */
} cs_recompute_effect;

/* Finds the effect of one name in options->recompute_ops, with the others, on the bytes that layers
 * keep. Errors as cs_net_chain_find. */
CS_MUST_CHECK cs_status cs_recompute_effect_of(const cs_net *net, const cs_net_options *options,
                                               uint32_t name, cs_recompute_effect *effect,
                                               cs_error *error);

#endif
