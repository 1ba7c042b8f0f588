/* A model: a chain of layers with the time and memory that training each takes.
 *
 * Layer i reads the output of layer i-1 (layer 0 the model's input) and is read by layer i+1 only.
 * Networks with branches become chains by grouping (see pipedream.h). Times and activation sizes
 * are for `batch_size` samples; weights do not depend on it.
 *
 * A tensor may be handed past layers that others further back read, such as what an encoder made:
 * it is part of the output of each layer that it is handed on by.
 *
 * What is kept for backward is counted once per tensor, at the layer that reads it: kept_bytes
 * holds the layer's input, when its backward needs it, and whatever else it saves. A stage of
 * layers [first, end) therefore keeps the sum over its layers, the stage's input included, and a
 * device that has sent its last output away does not hold it any longer.
 */
#ifndef CS_WORKLOAD_MODEL_H
#define CS_WORKLOAD_MODEL_H

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/base/json.h"
#include "sim/base/time.h"
#include "sim/model/precision.h"
#include "sim/model/split.h"
#include "sim/model/tape.h"

#include <stdbool.h>
#include <stdint.h>

/* Time that the host needs to start the kernels and the exchanges of a pass, whatever the number of
 * samples. It runs ahead of the device, which can only be late for it: see cs_class. */
typedef struct cs_host_times {
    cs_time forward, backward_input, backward_weight;
    cs_time skipped; /* part of forward that is left out when the forward runs again */
} cs_host_times;

/* What a device computes of a layer without an exchange in between. */
typedef struct cs_layer_piece {
    cs_time forward, backward_input, backward_weight;
    cs_time skipped; /* of forward, when it runs again: see cs_layer */
    cs_host_times host;
    bool waits; /* forward, the host waits for a result of the device */
} cs_layer_piece;

/* What devices hand each other within a layer. It stands in front of piece `gap` of the layer, or
 * behind the last one (`gap` = n_pieces). Forward passes pieces and gaps in rising order, backward
 * in falling order. An exchange begins when what stands before it in its pass has ended, and what
 * stands behind it waits for it. With `beside` it begins when the piece before it in its pass
 * begins, and so runs at the same time; what stands behind waits for both. That piece alone:
 * whoever joins pieces that no exchange of a pass divides must not join it to the one before. */
typedef struct cs_exchange {
    uint8_t kind;  /* cs_exchange_kind */
    uint8_t axes;  /* cs_axes_name */
    bool backward; /* belongs to the backward, else to the forward and to each repetition of it */
    bool beside;
    bool skipped; /* not in a repetition of the forward */
    uint32_t gap;
    int64_t bytes;      /* see cs_exchange_kind */
    int64_t bytes_back; /* of a halo: what each hands to the one before it; else 0 */
} cs_exchange;

/* Weights of a layer whose gradients are summed over other axes than GRADIENT. */
typedef struct cs_weight_part {
    uint8_t axes; /* cs_axes_name: EXPERT_DATA of experts; TENSOR of what all devices of the tensor
                   * axis hold alike and compute a part of the gradients of, COPIES of what some
                   * neighbours along it do (after the sum over GRADIENT) */
    int64_t bytes;
} cs_weight_part;

/* Matrices that Muon updates (muon.h), `n` alike: of each its bytes of weights, and its part of the
 * layer's update. */
typedef struct cs_layer_matrix {
    int64_t bytes;
    cs_time update;
    uint32_t n;
    bool expert; /* as the weights of EXPERT_DATA */
    /* exchanged for one over TENSOR, or EXPERT_TENSOR, in front of the update: */
    int64_t gather_bytes, sum_bytes; /* of an all-gather, 0: none; and of each of */
    uint32_t n_sums;                 /* so many all-reduces */
} cs_layer_matrix;

/* Memory that is there for good once a layer has been trained, and that layers of the same kind
 * share: those on one device whose entry has the same name and size. Without a name it is part of a
 * buffer that a device has one of, as large as the largest of its entries. */
typedef struct cs_shared_bytes {
    const char *name; /* of the operator within its layer, or of a workspace; or NULL */
    int64_t bytes;
} cs_shared_bytes;

/* What a layer's time goes into. A kernel's time has its own start on the device; waiting is what a
 * layer takes longer because the host does not start its kernels and messages any faster. */
#define CS_KERNEL_MAP(X)                                                                           \
    X(PRODUCTS, "products") /* linear layers, those of experts included, convolutions */           \
    X(ATTENTION, "attention")                                                                      \
    X(MEMORY_BOUND, "memory-bound") /* all other operators */                                      \
    X(WAITING, "launch gaps")

typedef enum cs_kernel_kind {
#define CS_KERNEL_ENUM(name, text) CS_KERNEL_##name,
    CS_KERNEL_MAP(CS_KERNEL_ENUM)
#undef CS_KERNEL_ENUM
        CS_N_KERNEL_KINDS
} cs_kernel_kind;

/* Of a layer; what is skipped is part of forward. */
typedef enum cs_kernel_pass {
    CS_KERNELS_FORWARD,
    CS_KERNELS_BACKWARD,
    CS_KERNELS_SKIPPED,
    CS_N_KERNEL_PASSES
} cs_kernel_pass;

typedef struct cs_layer {
    const char *name;
    cs_time forward;
    cs_time backward_input;  /* gradient of the input; with backward_weight the whole backward */
    cs_time backward_weight; /* gradient of the weights */
    cs_time update;          /* weight update, once per step, whatever the batch */
    int64_t weight_bytes;
    int64_t output_bytes;    /* activation handed to the next layer */
    int64_t kept_bytes;      /* live from the layer's forward to the end of its backward */
    int64_t workspace_bytes; /* live while the layer computes; grows with the samples; without what
                              * arrives beside a computation */
    bool recompute;          /* keeps its input only, and runs its forward again for its backward */
    cs_time skipped;         /* of forward, what is left out when it runs again: what stands behind
                              * all that its backward reads */
    cs_host_times host;      /* the sum over the layer's pieces */
    bool waits;              /* forward, the host waits for a result of the device */
    const char *timing;      /* "measured", "estimated", or NULL where all are alike */
    const char *tied_to;     /* a layer before it, whose weights it uses as well; or NULL */
    int64_t tied_bytes;      /* of them; counted there, not in weight_bytes */
    int64_t frozen_bytes; /* weights besides, which have no gradients and no states: those that are
                              * not trained, and copies in a narrower type of those that are */
    int64_t narrowed_bytes; /* of weights, frozen ones too: of those that are there in a narrower
                             * type only, which is part of frozen_bytes; they take so much less */
    int64_t cast_bytes;    /* part of frozen_bytes: copies in a narrower type that a device makes of
                         * other weights that it has */
    int64_t carried_bytes; /* kept besides, of the input that is handed past layers: a run of layers
                              * keeps it once */
    int64_t resident_bytes;  /* part of kept_bytes that offloading leaves on the device */
    int64_t result_bytes;    /* of a layer with a loss: what it reads; 0: not known, */
    bool result_kept;        /* whether it is part of kept_bytes, */
    uint32_t result_memory;  /* and its number in tapes */
    uint32_t n_shared;       /* of a layer that was made from operators: */
    cs_shared_bytes *shared; /* see kept.h */
    uint32_t n_parameters;   /* with tapes: tensors of trained weights, in the network's order, */
    int64_t *parameters;     /* bytes of each; */
    uint32_t n_expert_parameters; /* the last ones are those of experts */
    uint32_t n_matrices;          /* with Muon: weights that it updates, */
    cs_layer_matrix *matrices;    /* in the network's order */
    uint32_t n_forward_tape, n_backward_tape;
    cs_tape_event *forward_tape, *backward_tape; /* see tape.h; NULL where they are not known */
    /* Of a layer that is divided over several devices; all sizes and times are then of one device.
     * Its times are the sums over its pieces. Without pieces it is one, and exchanges nothing. */
    uint32_t n_pieces, n_exchanges, n_weight_parts;
    cs_layer_piece *pieces;
    cs_exchange *exchanges;       /* those of one gap and pass stand in the order of that pass */
    cs_weight_part *weight_parts; /* the gradients of other weights are summed over GRADIENT */
    double kernels[CS_N_KERNEL_PASSES][CS_N_KERNEL_KINDS]; /* s; 0 where they are not known */
} cs_layer;

/* Where the numbers come from: required, so that a result can be judged. */
typedef struct cs_provenance {
    const char *source;   /* who or what made them: a command, a paper, "synthetic" */
    const char *hardware; /* what they were measured on, "none" when derived */
    const char *date;     /* when, YYYY-MM-DD */
    const char *notes;    /* anything else, may be NULL */
} cs_provenance;

/* What training computes, for figures like its share of a device's peak: known of a model that was
 * made from an architecture. */
typedef struct cs_model_work {
    double flop_per_sample;     /* of forward and backward, nothing computed twice; 0: not known */
    uint32_t tokens_per_sample; /* 0: it reads no tokens */
    double parameters;          /* those that operators share once; 0: not known */
    double active_parameters;   /* without those of experts that a token does not go to */
    const char *device;         /* that the times are for, or NULL */
    double peak;                /* flop/s of the device in the precision; 0: not known */
} cs_model_work;

/* The same chain for another number of samples. */
typedef struct cs_model_batch {
    uint32_t batch_size; /* > 0, that of no other */
    int64_t input_bytes;
    cs_layer *layers; /* as many, with the same names and weights */
} cs_model_batch;

typedef struct cs_model {
    const char *name;
    uint32_t batch_size;  /* samples that times and activations are for; 0: any micro-batch */
    uint32_t precision;   /* cs_precision, of weights and gradients: what the optimizer keeps */
    bool float_gradients; /* gradients are summed and kept in float32, whatever the precision */
    int64_t input_bytes;  /* the input of layer 0 */
    cs_time host_batch;   /* host time for a micro-batch, before the forward of each stage */
    bool times_only;      /* sizes are not known, and 0 */
    /* that each layer is the part of one device of, whatever the sizes of data and shards; NULL:
     * layers are whole */
    const cs_grid *divided_over;
    uint32_t n_layers;
    cs_layer *layers;
    uint32_t n_batches; /* other numbers of samples that times and activations are known for */
    cs_model_batch *batches;
    cs_model_work work;
    cs_provenance provenance;
    cs_arena arena; /* owns all of the above */
} cs_model;

/* Time and memory of a run of layers [first, end) for one micro-batch. */
typedef struct cs_layer_sum {
    cs_time forward, backward_input, backward_weight, update;
    cs_host_times host; /* nothing is skipped; what runs again is part of backward_input */
    bool waits;         /* in the forward of a layer the host waits for the device */
    int64_t weight_bytes, gradient_bytes, kept_bytes;
    int64_t matrix_bytes;   /* part of weight_bytes: matrices that Muon updates */
    int64_t borrowed_bytes; /* part of weight_bytes: copies of other runs' weights */
    int64_t frozen_bytes;   /* weights besides, copies of other runs' included, less what narrower
                           * ones take less: may be negative, but not with weight_bytes */
    int64_t input_bytes, output_bytes; /* at the two ends of the run */
    int64_t workspace_bytes;           /* the largest of its layers */
    int64_t host_bytes; /* part of kept_bytes that offloading copies to the host; of each layer by
                         * itself, so that what several keep is not among it */
} cs_layer_sum;

/* Weights of a layer besides weight_bytes, less what those take less that are in a narrower type. */
static inline int64_t cs_layer_besides(const cs_layer *layer)
{
    return layer->frozen_bytes - layer->narrowed_bytes;
}

/* Zeroed models can be finished. */
void cs_model_finish(cs_model *model);

/* Reads a model file (format: docs/reference/model-file.md). What is wrong is reported in one go.
 * The document need not outlive the call. On failure `model` is untouched. */
CS_MUST_CHECK cs_status cs_model_load(const char *path, cs_model *model, cs_error *error);
CS_MUST_CHECK cs_status cs_model_read(const cJSON *root, const cs_json_place *place,
                                      cs_model *model, cs_error *error);

/* The model as JSON that cs_model_read takes, all defaults written out; the caller's, to free with
 * cJSON_Delete. NULL when memory runs out. */
cJSON *cs_model_json(const cs_model *model);

/* A synthetic chain of equal layers, its numbers per micro-batch (batch_size 0). `layer->name` is
 * ignored; layers are named layer0, layer1, ... The input is as large as a layer's output. The
 * provenance's date is 1970-01-01, so that equal scenarios give equal models on every day. */
CS_MUST_CHECK cs_status cs_model_uniform(uint32_t n_layers, const cs_layer *layer, cs_model *model,
                                         cs_error *error);

/* Whether times and activations for so many samples are there, and need not be scaled. */
bool cs_model_knows(const cs_model *model, uint32_t samples);

/* The layers with times and activations for so many samples, or for any; NULL where they are not
 * there. */
const cs_layer *cs_model_layers(const cs_model *model, uint32_t samples);

/* Sums over [first, end) for micro-batches of `samples`: those of the model or of one of its
 * batches where they are for so many, as they are. Else times, activations and workspace are scaled
 * linearly from model->batch_size (times to the nearest picosecond, halves up; bytes up), each
 * layer by itself; update and weights are not. With batch_size 0 all are taken as they are. An
 * empty run has the same bytes at both ends. A layer with `recompute` keeps its input; its forward,
 * less what is skipped, is part of backward_input as well, and the rest of what it would keep, which is there again while
 * it computes backward, of the workspace. What several layers keep of a tensor that is handed past
 * them counts once. CS_OVERFLOW when a sum does not fit. */
CS_MUST_CHECK cs_status cs_model_sum(const cs_model *model, uint32_t first, uint32_t end,
                                     uint32_t samples, cs_layer_sum *sum, cs_error *error);

/* Bytes that layers keep together, as kept_bytes of cs_model_sum. Start with {0}. */
typedef struct cs_model_kept {
    int64_t bytes;
    int64_t apart, carried; /* sum over layers alone; largest carried_bytes */
} cs_model_kept;

/* Adds a layer to the layers before it. CS_OVERFLOW when it does not fit. */
CS_MUST_CHECK cs_status cs_model_keep(const cs_model *model, uint32_t layer, uint32_t samples,
                                      cs_model_kept *kept, cs_error *error);

/* The same as cs_model_sum for one of `n` equal shares of a micro-batch; n divides `samples`, unless batch_size is
 * 0: then a share is an n-th of what is given for any micro-batch. */
CS_MUST_CHECK cs_status cs_model_sum_share(const cs_model *model, uint32_t first, uint32_t end,
                                           uint32_t samples, uint32_t n, cs_layer_sum *sum,
                                           cs_error *error);

/* The layer whose weights a layer uses besides its own; CS_MODEL_NO_LAYER: none. */
enum { CS_MODEL_NO_LAYER = UINT32_MAX };
uint32_t cs_model_lender(const cs_model *model, uint32_t layer);

/* Bytes of gradients per byte of weights. */
int64_t cs_model_gradient_ratio(const cs_model *model);

/* Gradients of the weights that a layer uses of another one; 0 where they are frozen. */
int64_t cs_model_tied_gradients(const cs_model *model, uint32_t layer);

/* Adds to a sum a copy of the weights that a layer in it uses of another one: with their gradients,
 * and their part of the other's update. CS_OVERFLOW when it does not fit. */
CS_MUST_CHECK cs_status cs_model_borrow(const cs_model *model, uint32_t layer, cs_layer_sum *sum,
                                        cs_error *error);

#endif
