/* Models: chains of layers, with the time and memory that training each layer takes.
 *
 * Layer i reads the output of layer i-1 (layer 0: the model's input) and is read by layer i+1 only.
 * Networks with branches become chains by grouping (see pipedream.h). Times and activation sizes
 * are for `batch_size` samples; weights do not depend on the number of samples.
 *
 * A tensor, such as the output of an encoder, may be passed on by several layers to later layers
 * that read it. It is then part of the output of each layer that passes it on.
 *
 * A tensor that is kept for backward is counted once, at the layer that reads it: kept_bytes
 * includes the layer's input, if its backward needs it, and everything else that the layer saves. A
 * stage of layers [first, end) therefore keeps the sum over its layers, including the stage's
 * input. A device that has sent its last output no longer holds that output.
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

/* Host time to start the kernels and exchanges of a pass, for any number of samples. The host runs
 * ahead of the device, and delays the device only if it falls behind: see cs_class. */
typedef struct cs_host_times {
    cs_time forward, backward_input, backward_weight;
    cs_time skipped; /* part of `forward` that is left out if the forward runs again */
} cs_host_times;

/* Computation of a layer between two exchanges. */
typedef struct cs_layer_piece {
    cs_time forward, backward_input, backward_weight;
    cs_time skipped; /* part of `forward` that is left out if it runs again: see cs_layer */
    cs_host_times host;
    bool waits; /* in the forward, the host waits for a result of the device */
} cs_layer_piece;

/* Exchange between devices within a layer. Its position is before piece `gap` of the layer, or
 * after the last piece (`gap` = n_pieces). The forward passes pieces and gaps in rising order, the
 * backward in falling order. An exchange begins when everything before it in its pass has ended,
 * and everything after it waits for it. With `beside`, it begins when the piece before it in its
 * pass begins, so the two overlap; everything after them waits for both. It overlaps with this one
 * piece only: code that joins pieces between which a pass has no exchange must not join this piece
 * to the one before it. */
typedef struct cs_exchange {
    uint8_t kind;  /* cs_exchange_kind */
    uint8_t axes;  /* cs_axes_name */
    bool backward; /* belongs to the backward; false: to the forward and to each repetition of it */
    bool beside;
    bool skipped; /* left out when the forward is repeated */
    uint32_t gap;
    int64_t bytes;      /* bytes as defined by cs_exchange_kind */
    int64_t bytes_back; /* halo: bytes that each device sends to the previous device; else 0 */
} cs_exchange;

/* Weights of a layer whose gradients are summed over axes other than GRADIENT. */
typedef struct cs_weight_part {
    /* cs_axes_name: EXPERT_DATA for the weights of experts; TENSOR for weights that all devices of
     * the tensor axis hold, while each computes a part of their gradients; COPIES for weights that
     * some neighbours on that axis hold in this way (after the sum over GRADIENT) */
    uint8_t axes;
    int64_t bytes;
} cs_weight_part;

/* Group of `n` equal matrices that Muon updates (muon.h). Per matrix: bytes of weights, and the
 * part of the layer's update. */
typedef struct cs_layer_matrix {
    int64_t bytes;
    cs_time update;
    uint32_t n;
    bool expert; /* matrices of experts, whose gradients are summed over EXPERT_DATA */
    /* exchanges of each matrix before its update, over TENSOR (experts: EXPERT_TENSOR): */
    int64_t gather_bytes, sum_bytes; /* bytes of the all-gather, and of each all-reduce; 0: none */
    uint32_t n_sums;                 /* number of all-reduces */
} cs_layer_matrix;

/* Permanent memory, allocated when a layer is first trained. Layers of a device share it if their
 * entries have the same name and size. Entries without a name share one buffer per device, as large
 * as the largest of these entries. */
typedef struct cs_shared_bytes {
    /* name of an operator within its layer, or of a workspace; NULL: the device's common buffer */
    const char *name;
    int64_t bytes;
} cs_shared_bytes;

/* Kinds of work that a layer's time is spent on. The time of a kernel includes its launch on the
 * device. WAITING is the additional time of a layer because the host does not start its kernels and
 * messages faster. */
#define CS_KERNEL_MAP(X)                                                                           \
    X(PRODUCTS, "products") /* linear layers including expert products, convolutions */            \
    X(ATTENTION, "attention")                                                                      \
    X(MEMORY_BOUND, "memory-bound") /* all other operators */                                      \
    X(WAITING, "launch gaps")

typedef enum cs_kernel_kind {
#define CS_KERNEL_ENUM(name, text) CS_KERNEL_##name,
    CS_KERNEL_MAP(CS_KERNEL_ENUM)
#undef CS_KERNEL_ENUM
        CS_N_KERNEL_KINDS
} cs_kernel_kind;

/* Passes of a layer; SKIPPED is a part of FORWARD. */
typedef enum cs_kernel_pass {
    CS_KERNELS_FORWARD,
    CS_KERNELS_BACKWARD,
    CS_KERNELS_SKIPPED,
    CS_N_KERNEL_PASSES
} cs_kernel_pass;

typedef struct cs_layer {
    const char *name;
    cs_time forward;
    cs_time backward_input;  /* gradient of the input; plus backward_weight: the whole backward */
    cs_time backward_weight; /* gradient of the weights */
    cs_time update;          /* weight update, once per step, for any batch size */
    int64_t weight_bytes;
    int64_t output_bytes; /* activation passed to the next layer */
    /* saved activations: live from the layer's forward to the end of its backward */
    int64_t kept_bytes;
    /* live while the layer computes; grows with the number of samples; does not include tensors
     * that arrive during a computation */
    int64_t workspace_bytes;
    bool recompute; /* keeps only its input, and runs its forward again for its backward */
    /* part of `forward` that is left out when it runs again: everything after the last result that
     * the backward reads */
    cs_time skipped;
    cs_host_times host; /* sums over the layer's pieces */
    bool waits;         /* in the forward, the host waits for a result of the device */
    /* source of the times: "measured", "estimated"; NULL: the same for all layers */
    const char *timing;
    /* name of an earlier layer whose weights this layer uses too; NULL: none */
    const char *tied_to;
    /* bytes of these weights; counted at the earlier layer, not in weight_bytes */
    int64_t tied_bytes;
    /* bytes of weights without gradients and states, not in weight_bytes: weights that are not
     * trained, and copies of trained weights in a narrower type */
    int64_t frozen_bytes;
    /* bytes, at the network's precision, of weights (also frozen ones) that exist only in a
     * narrower type; subtracted from the sum, because frozen_bytes includes their narrow form */
    int64_t narrowed_bytes;
    /* part of frozen_bytes: narrow copies that a device casts from other weights that it has */
    int64_t cast_bytes;
    /* bytes of the input that are passed on to later layers; kept in addition to kept_bytes, but
     * only once per run of layers */
    int64_t carried_bytes;
    int64_t resident_bytes; /* part of kept_bytes that offloading leaves on the device */
    int64_t result_bytes;   /* layers with a loss: bytes that the loss reads; 0: not known */
    bool result_kept;       /* layers with a loss: whether result_bytes is part of kept_bytes */
    uint32_t result_memory; /* layers with a loss: number of the result's memory in tapes */
    uint32_t n_shared;      /* layers made from operators: number of entries in `shared` */
    /* layers made from operators: memory shared with similar layers (kept.h) */
    cs_shared_bytes *shared;
    uint32_t n_parameters; /* with tapes: number of tensors of trained weights */
    /* with tapes: bytes of each of these tensors, in the network's order */
    int64_t *parameters;
    /* with tapes: number of these tensors that are experts'; they are the last ones */
    uint32_t n_expert_parameters;
    uint32_t n_matrices;       /* with Muon: number of entries in `matrices` */
    cs_layer_matrix *matrices; /* with Muon: weights that it updates, in the network's order */
    uint32_t n_forward_tape, n_backward_tape;
    cs_tape_event *forward_tape, *backward_tape; /* see tape.h; NULL: not known */
    /* Layers that are split over several devices: all sizes and times are then per device, and the
     * times are sums over the pieces. Without pieces, a layer is a single piece and has no
     * exchanges. */
    uint32_t n_pieces, n_exchanges, n_weight_parts;
    cs_layer_piece *pieces;
    /* exchanges of the same gap and pass are in the order of that pass */
    cs_exchange *exchanges;
    cs_weight_part
        *weight_parts; /* weights whose gradients are summed over axes other than GRADIENT */
    /* seconds per pass and kind; 0: not known */
    double kernels[CS_N_KERNEL_PASSES][CS_N_KERNEL_KINDS];
} cs_layer;

/* Origin of a model's numbers; required, so that readers can judge a result. */
typedef struct cs_provenance {
    const char *source;   /* who or what made the numbers: a command, a paper, "synthetic" */
    const char *hardware; /* hardware that the numbers were measured on; "none": derived */
    const char *date;     /* day, YYYY-MM-DD */
    const char *notes;    /* other remarks; may be NULL */
} cs_provenance;

/* Work of training a model, for metrics such as the fraction of a device's peak. Known for models
 * that were made from an architecture. */
typedef struct cs_model_work {
    /* flop of forward and backward, without recomputation; 0: not known */
    double flop_per_sample;
    uint32_t tokens_per_sample; /* tokens per sample; 0: the model reads no tokens */
    double parameters;          /* number of parameters, shared ones counted once; 0: not known */
    /* number of parameters without experts that a token is not routed to */
    double active_parameters;
    const char *device; /* device that the times are for, or NULL */
    double peak;        /* peak flop/s of the device in the precision; 0: not known */
} cs_model_work;

/* The same chain of layers for another number of samples. */
typedef struct cs_model_batch {
    uint32_t batch_size; /* > 0, different for each batch */
    int64_t input_bytes;
    cs_layer *layers; /* the model's n_layers layers, with the same names and weights */
} cs_model_batch;

typedef struct cs_model {
    const char *name;
    /* number of samples that times and activations are for; 0: any micro-batch */
    uint32_t batch_size;
    /* cs_precision of weights and gradients; determines what the optimizer keeps */
    uint32_t precision;
    bool float_gradients; /* gradients are summed and kept in float32, for any precision */
    int64_t input_bytes;  /* bytes of the input of layer 0 */
    cs_time host_batch;   /* host time per micro-batch, before the forward of each stage */
    bool times_only;      /* sizes are not known and stored as 0 */
    /* grid over which each layer is split, if the layers are one device's parts (sizes of data and
     * shards do not matter); NULL: layers are whole */
    const cs_grid *divided_over;
    uint32_t n_layers;
    cs_layer *layers;
    /* number of entries in `batches`: other sample counts with known times and activations */
    uint32_t n_batches;
    cs_model_batch *batches;
    cs_model_work work;
    cs_provenance provenance;
    cs_arena arena; /* owns all memory of the model */
} cs_model;

/* Time and memory of a run of layers [first, end) for one micro-batch. */
typedef struct cs_layer_sum {
    cs_time forward, backward_input, backward_weight, update;
    cs_host_times host; /* `skipped` is 0; repeated forwards are part of backward_input */
    bool waits;         /* in the forward of some layer, the host waits for the device */
    int64_t weight_bytes, gradient_bytes, kept_bytes;
    int64_t matrix_bytes;   /* part of weight_bytes: matrices that Muon updates */
    int64_t borrowed_bytes; /* part of weight_bytes: copies of weights of other runs of layers */
    /* bytes of weights not in weight_bytes, including copies of other runs' weights, minus the
     * bytes that narrower types save; may be negative, but the sum with weight_bytes is not */
    int64_t frozen_bytes;
    int64_t input_bytes, output_bytes; /* input of the first layer, output of the last layer */
    int64_t workspace_bytes;           /* largest workspace of its layers */
    /* part of kept_bytes that offloading copies to the host; counted per layer, so that tensors
     * kept by several layers are not included */
    int64_t host_bytes;
} cs_layer_sum;

/* Returns the bytes of a layer's weights that are not in weight_bytes, minus the bytes of weights
 * that exist only in a narrower type (narrowed_bytes). */
static inline int64_t cs_layer_besides(const cs_layer *layer)
{
    return layer->frozen_bytes - layer->narrowed_bytes;
}

/* Frees a model; allowed on a zeroed struct. */
void cs_model_finish(cs_model *model);

/* Reads a model file (format: docs/reference/model-file.md). All mistakes are reported together.
 * The JSON document need not outlive the call. On failure, `model` is unchanged. */
CS_MUST_CHECK cs_status cs_model_load(const char *path, cs_model *model, cs_error *error);
CS_MUST_CHECK cs_status cs_model_read(const cJSON *root, const cs_json_place *place,
                                      cs_model *model, cs_error *error);

/* Returns the model as JSON for cs_model_read, with all defaults written out; NULL if memory runs
 * out. The caller frees it with cJSON_Delete. */
cJSON *cs_model_json(const cs_model *model);

/* Makes a synthetic chain of equal layers, whose numbers are per micro-batch (batch_size 0).
 * `layer->name` is ignored; layers are named layer0, layer1, ... The input is as large as a layer's
 * output. The date of the provenance is always 1970-01-01, so that equal scenarios give equal
 * models on any day. */
CS_MUST_CHECK cs_status cs_model_uniform(uint32_t n_layers, const cs_layer *layer, cs_model *model,
                                         cs_error *error);

/* Whether times and activations for `samples` samples are known without scaling. */
bool cs_model_knows(const cs_model *model, uint32_t samples);

/* Returns the layers whose times and activations are for `samples` samples, or for any number of
 * samples; NULL: none. */
const cs_layer *cs_model_layers(const cs_model *model, uint32_t samples);

/* Sums over layers [first, end) for micro-batches of `samples` samples. If the model or one of its
 * batches is for this number of samples, its numbers are used as they are. Otherwise times,
 * activations and workspaces are scaled linearly from model->batch_size, layer by layer (times to
 * the nearest picosecond, halves up; bytes up); updates and weights are not scaled. With batch_size
 * 0 nothing is scaled. An empty run has the same bytes at both ends. A layer with `recompute` keeps
 * only its input. Its forward, without the skipped part, is then also part of backward_input.
 * Everything else that it would keep exists again while its backward runs, and is part of the
 * workspace. A tensor that is passed on by several layers counts once, even if all of them keep it.
 * CS_OVERFLOW if a sum does not fit. */
CS_MUST_CHECK cs_status cs_model_sum(const cs_model *model, uint32_t first, uint32_t end,
                                     uint32_t samples, cs_layer_sum *sum, cs_error *error);

/* Bytes that several layers keep together, like kept_bytes of cs_model_sum. Zeroed: no layers. */
typedef struct cs_model_kept {
    int64_t bytes;
    int64_t apart, carried; /* sum over the layers alone; largest carried_bytes */
} cs_model_kept;

/* Adds a layer to the layers before it. CS_OVERFLOW if the sum does not fit. */
CS_MUST_CHECK cs_status cs_model_keep(const cs_model *model, uint32_t layer, uint32_t samples,
                                      cs_model_kept *kept, cs_error *error);

/* Sums like cs_model_sum, for one of `n` equal shares of a micro-batch. `n` must divide `samples`,
 * unless batch_size is 0: then a share is an n-th of the numbers given for any micro-batch. */
CS_MUST_CHECK cs_status cs_model_sum_share(const cs_model *model, uint32_t first, uint32_t end,
                                           uint32_t samples, uint32_t n, cs_layer_sum *sum,
                                           cs_error *error);

/* Returns the layer whose weights a layer uses in addition to its own; CS_MODEL_NO_LAYER: none. */
enum { CS_MODEL_NO_LAYER = UINT32_MAX };
uint32_t cs_model_lender(const cs_model *model, uint32_t layer);

/* Returns the bytes of gradients per byte of weights. */
int64_t cs_model_gradient_ratio(const cs_model *model);

/* Returns the gradient bytes of the weights that a layer uses from another layer; 0 if they are
 * frozen. */
int64_t cs_model_tied_gradients(const cs_model *model, uint32_t layer);

/* Adds to `sum` a copy of the weights that a layer in the sum uses from another layer, with their
 * gradients and their share of that layer's update. CS_OVERFLOW if a sum does not fit. */
CS_MUST_CHECK cs_status cs_model_borrow(const cs_model *model, uint32_t layer, cs_layer_sum *sum,
                                        cs_error *error);

#endif
