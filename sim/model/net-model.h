/* From a network to a model: the chain of its layers with times and sizes.
 *
 * In its finest form, the chain ends a layer at every articulation point of the graph (see
 * net-chain.h); views join the layer after them. The coarse form ends a layer only where a block of
 * the network ends as well. A loss that is not the last operator belongs to the layer whose tensor
 * it reads.
 *
 * Times are measured times of the operators' shapes if available (op-shape.h), otherwise
 * estimates from a device description (accelerator.h), separately for forward, gradients of the
 * input and gradients of the weights. Operators are neither fused nor overlapped. Saved activations
 * count every storage once, at the last layer that reads it (op-cost.h says what each operator
 * keeps). Workspace is the largest sum of activation gradients and a kernel's memory at any moment
 * of a layer's backward (backward-memory.h), including the gradient that enters the layer.
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

/* Names of cs_granularity: "layer", "block"; ended by NULL. */
extern const char *const cs_granularity_names[];

/* Which saved activations of a layer are offloaded to the host: tensors with at least `smallest`
 * elements that one of these operators keeps (names as in recompute.h; no names: any operator). In
 * a network of several blocks the last one is not offloaded, because its backward comes next. */
typedef struct cs_offload_rules {
    const char *const *operators;
    uint32_t n_operators;
    uint32_t smallest; /* elements of the width of activations */
} cs_offload_rules;

typedef struct cs_net_options {
    uint32_t batch_size; /* 1 to CS_BATCH_MAX */
    cs_precision precision;
    /* optimizer states per weight: 0, 1 or 2; with Muon, per weight that is not in a matrix */
    double optimizer_states;
    /* settings of Muon, which updates matrices; zeroed: all weights are updated alike */
    cs_muon muon;
    bool float_gradients; /* whether updates read float32 gradients, whatever the precision */
    cs_optimizer_storage storage;
    cs_kept_rules kept;
    bool tapes; /* whether to make tapes of single tensors (tape.h) */
    cs_granularity granularity;
    /* whether to mark every layer before the last block for recomputation */
    bool recompute;
    /* whether marked layers are recomputed only as far as their backward needs */
    bool early_stop;
    const cs_accelerator *device; /* device that the times are for; see cs_accelerator_none */
    cs_runtime_kernels kernels;   /* kernels of the runtime; zeroed: rooflines */
    const cs_measured *measured;  /* measured times, used in preference to `device`; NULL: none */
    const char *source;           /* source of the network, for the provenance */
    /* YYYY-MM-DD, for the provenance; NULL: 1970-01-01, which means none */
    const char *date;
    /* How the work of batch_size samples is split over devices; the model is then the model of the
     * device at `place` of the grid (net-local.h). NULL: one device does all. */
    const cs_split *split;
    uint32_t place;
    const char *const *recompute_ops; /* names of operators to recompute (recompute.h) */
    uint32_t n_recompute_ops;
    const char *const *discard_ops; /* names of recomputed operators whose results are discarded */
    uint32_t n_discard_ops;
    const cs_offload_rules *offload; /* NULL: nothing is offloaded */
} cs_net_options;

/* Seconds of a piece of a layer (cs_layer_piece), or of an operator. */
typedef struct cs_piece_seconds {
    double forward, backward_input, backward_weight;
    double skipped; /* part of forward that is left out when the layer is recomputed */
    cs_host_seconds host;
    bool waits; /* whether the host waits for a result of the device in forward */
} cs_piece_seconds;

/* A layer of the chain: operators [first, end) of the network, or of the local network if it is
 * split. */
typedef struct cs_net_layer {
    const char *name; /* name of its operator or its block, or "FIRST to LAST" */
    uint32_t first, end;
    double macs;
    double forward_flop, input_flop, weight_flop;
    double forward_bytes, input_bytes, weight_bytes; /* bytes moved per pass */
    /* |x|, and |y| including the carried tensor if it is handed past the layer */
    int64_t read_bytes, written_bytes;
    int64_t weights, biases; /* number of parameters */
    int64_t copy_bytes;      /* bytes of copies of weights in a narrow type */
    int64_t cast_bytes;      /* see cs_layer; part of copy_bytes */
    /* bytes to subtract for weights that exist only in a narrower type */
    int64_t narrowed_bytes;
    int64_t frozen;                                  /* number of parameters that are not trained */
    double forward, backward_input, backward_weight; /* s */
    /* s, once per step; includes the updates of `matrices` */
    double update;
    cs_muon_update *matrices; /* matrices that Muon updates; NULL without Muon */
    uint32_t n_matrices;
    double skipped;      /* s; part of forward that is left out when the layer is recomputed */
    uint32_t repeat_end; /* one past the last operator that is recomputed */
    cs_host_seconds host;
    bool waits;                                            /* see cs_layer */
    double kernels[CS_N_KERNEL_PASSES][CS_N_KERNEL_KINDS]; /* s; see cs_layer */
    /* passes of its pieces of work that were measured, and estimated */
    uint32_t n_measured, n_estimated;
    int64_t kept_bytes, workspace_bytes;
    int64_t host_bytes;    /* part of kept_bytes that is offloaded */
    int64_t carried_bytes; /* saved bytes of the carried tensor (see cs_layer); not in kept_bytes */
    /* set in layers of a split network that have an exchange (net-chain.h): */
    uint32_t n_pieces, n_exchanges;
    cs_piece_seconds *pieces;
    cs_exchange *exchanges;
    int64_t shared_parameters; /* parameters whose gradients are also summed over the tensor axis */
    /* parameters whose gradients are also summed over neighbours with the same keys and values */
    int64_t copied_parameters;
    /* parameters whose gradients are summed only over places with the same experts */
    int64_t expert_parameters;
} cs_net_layer;

typedef struct cs_net_chain {
    cs_net_layer *layers;
    uint32_t n_layers;
    int64_t kept_bytes; /* saved bytes of all layers; the carried tensor counts once */
    cs_arena arena;
} cs_net_chain;

/* Finds the chain of a network. cs_net_chain_finish is allowed on a zeroed struct. CS_INVALID for
 * an impossible batch size or precision, CS_OVERFLOW for sizes beyond 64 bits. */
CS_MUST_CHECK cs_status cs_net_chain_find(const cs_net *net, const cs_net_options *options,
                                          cs_net_chain *chain, cs_error *error);
void cs_net_chain_finish(cs_net_chain *chain);

/* Makes a model from a network: its chain, with times and sizes. */
CS_MUST_CHECK cs_status cs_net_model(const cs_net *net, const cs_net_options *options,
                                     cs_model *model, cs_error *error);

/* The number of parameters of a network. */
int64_t cs_net_parameters(const cs_net *net);

/* The number of trained parameters: all except frozen ones. */
int64_t cs_net_trained_parameters(const cs_net *net);

/* The number of parameters that compute a token: all except experts that do not get the
 * token. Embeddings count in full, as in the published numbers of Mixtral and Qwen. The second
 * function: multiply-accumulates of one sample. */
int64_t cs_net_active_parameters(const cs_net *net);
double cs_net_macs(const cs_net *net);

/* Some recomputed operators (recompute.h) save no memory: their results are kept anyway for
 * operators that are not recomputed, or would not have been kept in the first place. */

typedef enum cs_recompute_effect {
    /* without recomputation more would be saved; or the name alone repeats no operator */
    CS_RECOMPUTE_FREES,
    CS_RECOMPUTE_IDLE,    /* without recomputation no more would be saved */
    CS_RECOMPUTE_DISCARD, /* as IDLE; but if its results were also discarded, less would be saved */
} cs_recompute_effect;

/* Finds the effect of one name in options->recompute_ops, given the other names, on the bytes that
 * layers save. Errors as cs_net_chain_find. */
CS_MUST_CHECK cs_status cs_recompute_effect_of(const cs_net *net, const cs_net_options *options,
                                               uint32_t name, cs_recompute_effect *effect,
                                               cs_error *error);

#endif
