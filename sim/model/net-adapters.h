/* Low-rank adapters (LoRA; Hu et al., ICLR 2022): a network whose weights are frozen, and beside
 * some of its linear layers a pair of small ones that are trained, y = W x + B A x, with A of
 * (rank, features of x) and B of (features of y, rank). The factor alpha / rank is taken to be
 * part of B. The frozen weights may be quantised (QLoRA; Dettmers et al., 2023, arXiv 2305.14314).
 */
#ifndef CS_WORKLOAD_NET_ADAPTERS_H
#define CS_WORKLOAD_NET_ADAPTERS_H

#include "sim/base/field.h"
#include "sim/model/net.h"

/* How the frozen weights of linear layers are stored. Each pass over a layer makes them in the
 * network's precision first (bitsandbytes, bitsandbytes/autograd/_functions.py, MatMul4Bit: forward
 * and backward call dequantize_4bit). */
typedef enum cs_base_format {
    CS_BASE_AS_MODEL,
    CS_BASE_NF4,        /* 4 bits, and 32 for each 64 weights */
    CS_BASE_NF4_DOUBLE, /* these 32 are quantised: 8, and 32 for each 256 of them */
    CS_BASE_INT8        /* 8 bits, and 32 for each row */
} cs_base_format;

typedef struct cs_adapters {
    uint32_t rank;
    uint32_t base;     /* cs_base_format */
    cs_list base_wide; /* const char *: linear layers that are not quantised, as targets */
    cs_list
        targets; /* const char *: names of linear layers, or ends of them: "q_proj", "mlp.up_proj" */
} cs_adapters;

/* rank, targets, base, base_wide; ended by {0}. */
extern const cs_field cs_adapter_fields[];

/* Gives a network its adapters. CS_INVALID, with the place of the target, when it is the name of no
 * linear layer, or of experts'; the network is then as it was. */
CS_MUST_CHECK cs_status cs_net_adapt(cs_net *net, const cs_adapters *adapters,
                                     const cs_json_place *place, cs_error *error);

#endif
