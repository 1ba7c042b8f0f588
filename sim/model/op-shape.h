/* The parts of a network that are timed: the distinct pieces of work of its operators, each with a
 * key.
 *
 * Two operators take the same time if they agree in kind, batch, precision, shapes and attributes.
 * The key of a piece of work contains exactly these (no names, no weights). Measured times are
 * looked up in a table by key:
 *
 *     conv n=8 in=64x56x56 out=64x56x56 kernel=3x3 stride=1x1 pad=1x1 groups=1 fp32
 *     conv n=8 in=64x56x56 out=64x56x56 kernel=3x3 stride=1x1 pad=2x2 dilation=2x2 groups=1 fp32
 *     linear n=8 in=197x768 out=197x3072 bias fp32
 *     add n=8 in=64x56x56,64x56x56 out=64x56x56 in_place fp32
 *     attention n=8 in=197x768,197x768,197x768 out=197x768 heads=12 kv_heads=12 flash fp32
 *     grouped_linear n=1 in=8192x4096 out=8192x14336 experts=8 top_k=2 bf16
 *     accumulate elements=1605632 fp32
 *     update parameters=36864 optimizer=momentum fp32
 *
 * If C devices share the tokens of a sequence, the attention of one device has "shares=C". It also
 * has "steps=C" if it reads the keys and values of one device after another ("steps=1": of all
 * devices at once).
 *
 * An operator has up to three kinds of pieces:
 *   itself      forward, gradient of its inputs, gradient of its parameters
 *   accumulate  y += x: the gradient of a tensor with several readers is a sum (pass forward)
 *   update      update of its parameters by the optimizer, once per step (pass update)
 */
#ifndef CS_WORKLOAD_OP_SHAPE_H
#define CS_WORKLOAD_OP_SHAPE_H

#include "sim/model/op-cost.h"

#define CS_PASS_MAP(X)                                                                             \
    X(FORWARD, "forward")                                                                          \
    X(BACKWARD_INPUT, "backward_input")                                                            \
    X(BACKWARD_WEIGHT, "backward_weight")                                                          \
    X(UPDATE, "update")

typedef enum cs_pass {
#define CS_PASS_ENUM(name, text) CS_PASS_##name,
    CS_PASS_MAP(CS_PASS_ENUM)
#undef CS_PASS_ENUM
        CS_N_PASSES
} cs_pass;

/* Names of cs_pass: "forward", ...; ended by NULL. */
extern const char *const cs_pass_names[];

typedef enum cs_piece { CS_PIECE_OPERATOR, CS_PIECE_ACCUMULATE, CS_PIECE_UPDATE } cs_piece;

typedef struct cs_op_shape {
    cs_piece piece;
    uint32_t passes; /* bits 1 << cs_pass of the passes that have work to do; not part of the key */
    cs_precision precision;
    int64_t elements; /* ACCUMULATE: elements of the whole batch; UPDATE: parameters */
    uint32_t states;  /* UPDATE: optimizer states per parameter: 0 sgd, 1 momentum, 2 adam */
    /* set for OPERATOR: */
    cs_op_kind kind;
    uint32_t batch;
    uint32_t n_inputs;
    cs_shape inputs[CS_OP_INPUTS_MAX], output; /* shapes per sample */
    cs_extent kernel, stride, pad, dilation;   /* rank 0: none */
    uint32_t groups;
    int64_t weights; /* elements, including weights that it borrows */
    bool bias, in_place;
    cs_attention attention;         /* heads 0: none */
    uint32_t heads, experts, top_k; /* 0: none */
    cs_scan scan;                   /* heads 0: none */
} cs_op_shape;

enum {
    CS_OP_SHAPES_MAX = 2 + CS_OP_INPUTS_MAX,
    CS_OP_KEY_BYTES = 512, /* enough for any key */
};

/* Finds the pieces of work of an operator: writes at most CS_OP_SHAPES_MAX and returns their
 * number; a view has none. `states` is 0, 1 or 2. */
uint32_t cs_op_shapes_of(const cs_net *net, const cs_op *op, uint32_t batch, cs_precision precision,
                         uint32_t states, cs_op_shape *shapes);

/* Writes the key of a piece, as above; returns `text`. */
char *cs_op_shape_key(const cs_op_shape *shape, char *text, size_t size);

/* Checks that backends can run a network. CS_INVALID, with the operator, if no backend can run it,
 * so that it can only be estimated, not measured or replayed: operators of mixtures of experts and
 * state spaces, frozen weights, dilations above 1, heads whose values and keys have different
 * sizes, windows, sinks, learned positions, keys from other tokens than the queries, norms by
 * head. */
CS_MUST_CHECK cs_status cs_net_check_runnable(const cs_net *net, cs_error *error);

/* A source of measured times. Both functions get a key; a time that the source does not know is
 * estimated with the device's roofline (accelerator.h). */
typedef struct cs_measured {
    /* Returns the seconds of a pass; negative: not measured, which the source may count. */
    double (*seconds)(void *context, const char *key, cs_pass pass);
    /* Returns the bytes that the library needs while it computes, besides the operator's tensors;
     * negative: not known, so the bytes of op-cost.h are used. */
    int64_t (*workspace)(void *context, const char *key);
    void *context;
    const char *origin, *device; /* files and hardware, for the provenance */
} cs_measured;

#endif
