/* Trains a network on a device: its layers with their weights and activations.
 *
 * A part is a run of the chain's layers with their parameters, as a stage of a pipeline holds it; a
 * pass is one micro-batch on a part, from its forward to the end of its backward. Nothing is
 * learned: parameters and inputs are random numbers, so that times are those of training.
 *
 * Memory is used as by a framework without graph compilation: a tensor is there from the operator
 * that writes it to the last one that reads it, or to the end of the part's backward when an
 * operator keeps it (op-cost.h); a gradient, from the operator that makes it to the one whose
 * result it belongs to, and has memory of its own even where the operator works in place. Gradients
 * of a tensor with several readers are added. Views share memory; one that transposes is read as it
 * lies. Tied weights exist once: an operator that shares another's reads them there, both add to
 * one gradient, and there is one update.
 *
 * A part of a network that is divided over several devices is trained in the same way, with
 * exchanges among its operators. What it gathers again in backward is there from the backward of
 * the last operator that reads it to that of the exchange. Gradients of weights are computed with
 * those of inputs, also where the plan has them behind, beside a sum.
 */
#ifndef CS_CALIB_TRAINER_H
#define CS_CALIB_TRAINER_H

#include "calib/bench/train/block-pool.h"
#include "sim/model/net-local.h"
#include "sim/model/net-model.h"

/* Called behind every kernel that was started. */
typedef struct cs_observer {
    cs_status (*done)(void *context, uint32_t op, cs_piece piece, cs_pass pass, cs_error *error);
    void *context;
} cs_observer;

/* Which part of a network this one is (net-local.h), that of a place of a grid; zeroed: it is
 * whole. */
typedef struct cs_trained_part {
    const cs_net *whole;
    const cs_net_local *local;
    const cs_split *split;
    uint32_t place;
} cs_trained_part;

typedef enum cs_exchange_pass {
    CS_EXCHANGE_FORWARD,
    CS_EXCHANGE_AGAIN, /* the same in a backward, of what was not kept */
    CS_EXCHANGE_BACKWARD,
} cs_exchange_pass;

/* What a part of a network asks the others for; all NULL of a whole one. Memory is the host's. */
typedef struct cs_exchanger {
    /* Operator op of kind "exchange": what is at `from` in the layout that it reads (backward: that
     * of the gradient of its result) into `to`, in the other layout. Both may be the same. */
    cs_status (*exchange)(void *context, uint32_t op, cs_exchange_pass pass, const cs_view *from,
                          const cs_view *to, cs_error *error);
    /* The forward of a cross entropy whose logits are divided. */
    cs_status (*entropy)(void *context, uint32_t op, const cs_operands *operands, cs_error *error);
    /* Fills an input of the network. */
    cs_status (*input)(void *context, cs_tensor tensor, void *data, cs_error *error);
    void *context;
} cs_exchanger;

/* Where a tensor lies within its storage. */
typedef struct cs_lie {
    int64_t offset, sample_stride, row_stride; /* elements */
} cs_lie;

typedef struct cs_trainer {
    const cs_backend *backend;
    cs_bench *bench;
    cs_block_pool *pool;
    const cs_net *net;
    const cs_net_chain *chain;
    uint32_t batch;    /* samples of a micro-batch */
    uint32_t n_states; /* of the optimizer, per parameter */
    cs_precision precision;
    cs_observer observer;
    cs_trained_part part_of;
    cs_exchanger exchanger;
    /* made by cs_trainer_init: */
    cs_arena arena;
    cs_lie *lies;           /* per tensor */
    cs_tensor *roots;       /* per tensor: itself, or what a view is of */
    int64_t *storage_bytes; /* per storage */
    uint32_t *last_use;     /* per storage: the last operator that reads or writes it */
    cs_op_cost *costs;      /* per operator */
    uint8_t *passes;        /* per operator: bit 1 << cs_pass of each that has work */
    uint32_t *writer;       /* per tensor: the operator, or CS_NO_TENSOR */
    uint32_t *lenders;      /* per operator: whose weights it uses, mostly its own */
    uint32_t *gathers; /* per storage: 1 + the exchange that gathers it again in a backward, or 0 */
    int64_t *firsts;   /* per operator: see cs_kernel.first */
    cs_block workspace; /* of the kernel that is started: given back behind it */
} cs_trainer;

/* Where an operator's parameters and their gradients are, or NULL. */
typedef struct cs_op_place {
    void *parameters, *gradients;
} cs_op_place;

typedef struct cs_part {
    uint32_t first_op, end_op;
    cs_op_place *places; /* per operator, of a bare part; else NULL */
    uint32_t *needed; /* likewise per storage: the first operator that needs it in its backward, or
                       * CS_NO_TENSOR */
    int64_t n_parameters, n_places; /* places: those of each operator begin at 16 bytes */
    int64_t *offsets; /* per operator of the part: its first place, or that of what it borrows */
    cs_block parameters, gradients, states;
} cs_part;

/* The gradient of a tensor and of its views. An addition has one gradient for all its inputs, which
 * they share. */
typedef struct cs_gradient {
    cs_block block;
    uint32_t count; /* position in `counts` of how many share the block */
} cs_gradient;

typedef struct cs_activations {
    cs_block *data;         /* per storage */
    cs_block *saved;        /* per operator of the network */
    cs_gradient *gradients; /* per tensor that is no view */
    uint32_t *counts;       /* per tensor */
    bool *written;          /* per tensor: its own part of the gradient is there */
    bool *borrowed;         /* per storage: the part in front has it, and gives it back */
} cs_activations;

/* `trainer` has its members up to the observer set; the backend computes with the precision.
 * CS_INVALID when nobody has the weights that an operator shares. */
CS_MUST_CHECK cs_status cs_trainer_init(cs_trainer *trainer, cs_error *error);
void cs_trainer_finish(cs_trainer *trainer);

/* Layers [first, end). Zeroed parts can be closed. CS_INVALID when they share weights with others.
 */
CS_MUST_CHECK cs_status cs_part_open(cs_trainer *trainer, uint32_t first, uint32_t end,
                                     cs_part *part, cs_error *error);
/* The same without memory: whoever opens it has that, and sets `places` before each pass. */
CS_MUST_CHECK cs_status cs_part_open_bare(cs_trainer *trainer, uint32_t first, uint32_t end,
                                          cs_part *part, cs_error *error);
void cs_part_close(cs_trainer *trainer, cs_part *part);

/* The tensors that enter and leave a part: that of the layer in front, and its last; of the first
 * part the network's input, of the last the loss. CS_NO_TENSOR where there are none, or several. */
cs_tensor cs_part_input(const cs_trainer *trainer, const cs_part *part);
cs_tensor cs_part_output(const cs_trainer *trainer, const cs_part *part);
int64_t cs_trainer_bytes(const cs_trainer *trainer, cs_tensor tensor);

/* Zeroed activations can be closed. */
CS_MUST_CHECK cs_status cs_activations_open(cs_trainer *trainer, cs_activations *activations,
                                            cs_error *error);
void cs_activations_close(cs_trainer *trainer, cs_activations *activations);

/* Room for a message that enters: the part's input, or the gradient of its output. */
CS_MUST_CHECK cs_status cs_part_receive(cs_trainer *trainer, const cs_part *part, bool gradient,
                                        cs_activations *at, void **data, cs_error *error);
/* What a message takes away: the part's output, or the gradient of its input; `given` says that it
 * has been sent and is no longer needed for that. */
void *cs_part_result(const cs_trainer *trainer, const cs_part *part, bool gradient,
                     const cs_activations *at);
void cs_part_given(cs_trainer *trainer, const cs_part *part, bool gradient, cs_activations *at);

/* Between a part and the next one on the same device, nothing is copied: before the next part's
 * forward it gets the output, which stays with `part` when that keeps it for its backward; before
 * the part's own backward it gets the gradient that the next one's has made. Without effect when
 * there is nothing to hand over, or a message has brought it. */
void cs_part_hand_output(cs_trainer *trainer, const cs_part *part, cs_activations *at,
                         cs_activations *next);
void cs_part_hand_gradient(cs_trainer *trainer, const cs_part *part, cs_activations *at,
                           cs_activations *next);

/* The network's inputs, for a pass whose forward is timed: it makes those that are not there. */
CS_MUST_CHECK cs_status cs_part_inputs(cs_trainer *trainer, const cs_part *part, cs_activations *at,
                                       cs_error *error);

/* `parameters` are those that the pass reads, of the part's size. The first part makes its own
 * input. A gradient that should have come and has not is zero. */
CS_MUST_CHECK cs_status cs_part_forward(cs_trainer *trainer, const cs_part *part, void *parameters,
                                        cs_activations *at, cs_error *error);
CS_MUST_CHECK cs_status cs_part_backward(cs_trainer *trainer, const cs_part *part, void *parameters,
                                         cs_activations *at, cs_error *error);

/* Some of a part's operators, [first, end), in the order of the pass; behind a whole backward what
 * is left of its activations is given back. `parameters` NULL: a bare part. */
CS_MUST_CHECK cs_status cs_part_forward_some(cs_trainer *trainer, const cs_part *part,
                                             uint32_t first, uint32_t end, void *parameters,
                                             cs_activations *at, cs_error *error);
CS_MUST_CHECK cs_status cs_part_backward_some(cs_trainer *trainer, const cs_part *part,
                                              uint32_t first, uint32_t end, void *parameters,
                                              cs_activations *at, cs_error *error);
/* In the midst of a backward: gives back what only operators from `first` on need. */
void cs_part_backward_release(cs_trainer *trainer, const cs_part *part, uint32_t first,
                              cs_activations *at);
void cs_part_backward_end(cs_trainer *trainer, const cs_part *part, cs_activations *at);

/* The network's loss, where the part has made it and it is still there; NULL: it is not. */
const float *cs_part_loss(const cs_trainer *trainer, const cs_part *part, const cs_activations *at);

/* Reads part->parameters and writes `to`, which may be the same. */
CS_MUST_CHECK cs_status cs_part_update(cs_trainer *trainer, const cs_part *part, void *to,
                                       cs_error *error);

#endif
