/* Trains a network on a device: its layers, their weights and activations.
 *
 * A part is a run of layers with their parameters, such as a stage of a pipeline. A pass is one
 * micro-batch on a part, from its forward to the end of its backward. Nothing is learned:
 * parameters and inputs are random numbers, so that times are realistic.
 *
 * Memory is used as by a framework without graph compilation. A tensor lives from the operator that
 * writes it to its last reader, or to the end of the part's backward if an operator keeps it
 * (op-cost.h). A gradient lives from the operator that computes it to the operator whose result it
 * belongs to; it has its own memory, even if the operator works in place. Gradients of a tensor
 * with several readers are added. Views share memory; a transposed view is read without a copy.
 * Tied weights exist once: operators that share them read the same memory and add to one gradient,
 * and there is one update.
 *
 * A part of a network that is divided over devices is trained in the same way, with exchanges
 * between its operators. A tensor that is gathered again in backward lives from the backward of its
 * last reader to the backward of the exchange. Gradients of weights are computed together with
 * gradients of inputs, even if the plan computes them later, during a sum.
 */
#ifndef CS_CALIB_TRAINER_H
#define CS_CALIB_TRAINER_H

#include "calib/bench/train/block-pool.h"
#include "sim/model/net-local.h"
#include "sim/model/net-model.h"

/* Called after each started kernel. */
typedef struct cs_observer {
    cs_status (*done)(void *context, uint32_t op, cs_piece piece, cs_pass pass, cs_error *error);
    void *context;
} cs_observer;

/* The part of a network at one place of a grid (net-local.h); zeroed: the network is whole. */
typedef struct cs_trained_part {
    const cs_net *whole;
    const cs_net_local *local;
    const cs_split *split;
    uint32_t place;
} cs_trained_part;

typedef enum cs_exchange_pass {
    CS_EXCHANGE_FORWARD,
    CS_EXCHANGE_AGAIN, /* again, in a backward, because the result was not kept */
    CS_EXCHANGE_BACKWARD,
} cs_exchange_pass;

/* Callbacks of a divided network; all NULL for a whole one. Memory is the host's. */
typedef struct cs_exchanger {
    /* Runs operator `op` of kind "exchange": brings the data at `from` from its input layout (in
     * backward: the layout of its result's gradient) into the other layout, at `to`. Both may be
     * the same. */
    cs_status (*exchange)(void *context, uint32_t op, cs_exchange_pass pass, const cs_view *from,
                          const cs_view *to, cs_error *error);
    /* Runs the forward of a cross entropy with divided logits. */
    cs_status (*entropy)(void *context, uint32_t op, const cs_operands *operands, cs_error *error);
    /* Fills an input of the network. */
    cs_status (*input)(void *context, cs_tensor tensor, void *data, cs_error *error);
    void *context;
} cs_exchanger;

/* Position of a tensor in its storage. */
typedef struct cs_lie {
    int64_t offset, sample_stride, row_stride; /* elements */
} cs_lie;

typedef struct cs_trainer {
    const cs_backend *backend;
    cs_bench *bench;
    cs_block_pool *pool;
    const cs_net *net;
    const cs_net_chain *chain;
    uint32_t batch;    /* samples per micro-batch */
    uint32_t n_states; /* optimizer states per parameter */
    cs_precision precision;
    cs_observer observer;
    cs_trained_part part_of;
    cs_exchanger exchanger;
    /* set by cs_trainer_init: */
    cs_arena arena;
    cs_lie *lies;           /* per tensor */
    cs_tensor *roots;       /* per tensor: itself, or the tensor that it is a view of */
    int64_t *storage_bytes; /* per storage */
    uint32_t *last_use;     /* per storage: the last operator that reads or writes it */
    cs_op_cost *costs;      /* per operator */
    uint8_t *passes;        /* per operator: bit 1 << cs_pass of each pass with work */
    uint32_t *writer;       /* per tensor: its operator, or CS_NO_TENSOR */
    uint32_t *lenders;      /* per operator: the operator whose weights it uses, mostly itself */
    uint32_t *gathers;  /* per storage: 1 + the exchange that gathers it again in backward, or 0 */
    int64_t *firsts;    /* per operator: see cs_kernel.first */
    cs_block workspace; /* workspace of the current kernel, freed after its start */
} cs_trainer;

/* Memory of an operator's parameters and gradients, or NULL. */
typedef struct cs_op_place {
    void *parameters, *gradients;
} cs_op_place;

typedef struct cs_part {
    uint32_t first_op, end_op;
    cs_op_place *places; /* per operator, in a bare part; else NULL */
    /* per storage: the first operator that needs it in its backward, or CS_NO_TENSOR */
    uint32_t *needed;
    /* parameters; elements with padding: each operator begins at a multiple of 16 bytes */
    int64_t n_parameters, n_places;
    /* per operator of the part: its first element, or the lender's */
    int64_t *offsets;
    cs_block parameters, gradients, states;
} cs_part;

/* The gradient of a tensor and of its views. All inputs of an addition share one gradient. */
typedef struct cs_gradient {
    cs_block block;
    uint32_t count; /* index in `counts` of the number of sharers */
} cs_gradient;

typedef struct cs_activations {
    cs_block *data;         /* per storage */
    cs_block *saved;        /* per operator of the network */
    cs_gradient *gradients; /* per tensor that is not a view */
    uint32_t *counts;       /* per tensor */
    bool *written;          /* per tensor: its own contribution to the gradient is there */
    bool *borrowed;         /* per storage: the previous part owns and frees it */
} cs_activations;

/* `trainer` is set up to the observer; the backend supports the precision. CS_INVALID if the
 * weights that an operator shares do not exist. */
CS_MUST_CHECK cs_status cs_trainer_init(cs_trainer *trainer, cs_error *error);
void cs_trainer_finish(cs_trainer *trainer);

/* Opens layers [first, end). Zeroed parts can be closed. CS_INVALID if the layers share weights
 * with other parts.
 */
CS_MUST_CHECK cs_status cs_part_open(cs_trainer *trainer, uint32_t first, uint32_t end,
                                     cs_part *part, cs_error *error);
/* Like cs_part_open, without memory: the caller owns it, and sets `places` before each pass. */
CS_MUST_CHECK cs_status cs_part_open_bare(cs_trainer *trainer, uint32_t first, uint32_t end,
                                          cs_part *part, cs_error *error);
void cs_part_close(cs_trainer *trainer, cs_part *part);

/* Return the tensors that enter and leave a part: the results of the previous layer and of its last
 * layer; for the first part the network's input, for the last part the loss. CS_NO_TENSOR if there
 * is none or several. */
cs_tensor cs_part_input(const cs_trainer *trainer, const cs_part *part);
cs_tensor cs_part_output(const cs_trainer *trainer, const cs_part *part);
int64_t cs_trainer_bytes(const cs_trainer *trainer, cs_tensor tensor);

/* Zeroed activations can be closed. */
CS_MUST_CHECK cs_status cs_activations_open(cs_trainer *trainer, cs_activations *activations,
                                            cs_error *error);
void cs_activations_close(cs_trainer *trainer, cs_activations *activations);

/* Allocates memory for an incoming message: the part's input, or the gradient of its output. */
CS_MUST_CHECK cs_status cs_part_receive(cs_trainer *trainer, const cs_part *part, bool gradient,
                                        cs_activations *at, void **data, cs_error *error);
/* Returns the data of an outgoing message: the part's output, or the gradient of its input.
 * cs_part_given tells that it has been sent and is no longer needed for the message. */
void *cs_part_result(const cs_trainer *trainer, const cs_part *part, bool gradient,
                     const cs_activations *at);
void cs_part_given(cs_trainer *trainer, const cs_part *part, bool gradient, cs_activations *at);

/* Pass data, without copying, between a part and the next one on the same device. Before the next
 * part's forward, it gets the output, which remains with `part` if it is kept for its backward.
 * Before the part's own backward, it gets the gradient from the next part. Without effect if there
 * is nothing to pass, or a message has brought it. */
void cs_part_hand_output(cs_trainer *trainer, const cs_part *part, cs_activations *at,
                         cs_activations *next);
void cs_part_hand_gradient(cs_trainer *trainer, const cs_part *part, cs_activations *at,
                           cs_activations *next);

/* Allocates and fills the network's missing inputs before a pass whose forward is timed. */
CS_MUST_CHECK cs_status cs_part_inputs(cs_trainer *trainer, const cs_part *part, cs_activations *at,
                                       cs_error *error);

/* Run a pass. `parameters` are what the pass reads, of the part's size. The first part fills its
 * own input. A gradient that was not received is zero. */
CS_MUST_CHECK cs_status cs_part_forward(cs_trainer *trainer, const cs_part *part, void *parameters,
                                        cs_activations *at, cs_error *error);
CS_MUST_CHECK cs_status cs_part_backward(cs_trainer *trainer, const cs_part *part, void *parameters,
                                         cs_activations *at, cs_error *error);

/* Run a part's operators [first, end), in the order of the pass. `parameters` NULL: a bare part.
 * cs_part_backward_end frees the remaining activations after a whole backward. */
CS_MUST_CHECK cs_status cs_part_forward_some(cs_trainer *trainer, const cs_part *part,
                                             uint32_t first, uint32_t end, void *parameters,
                                             cs_activations *at, cs_error *error);
CS_MUST_CHECK cs_status cs_part_backward_some(cs_trainer *trainer, const cs_part *part,
                                              uint32_t first, uint32_t end, void *parameters,
                                              cs_activations *at, cs_error *error);
/* Frees, during a backward, what only operators from `first` on need. */
void cs_part_backward_release(cs_trainer *trainer, const cs_part *part, uint32_t first,
                              cs_activations *at);
void cs_part_backward_end(cs_trainer *trainer, const cs_part *part, cs_activations *at);

/* Returns the network's loss; NULL: the part does not compute it, or it is already freed. */
const float *cs_part_loss(const cs_trainer *trainer, const cs_part *part, const cs_activations *at);

/* Reads part->parameters and writes `to`, which may be the same. */
CS_MUST_CHECK cs_status cs_part_update(cs_trainer *trainer, const cs_part *part, void *to,
                                       cs_error *error);

#endif
