/* Low-rank adapters (LoRA; Hu et al., ICLR 2022) for a network. Its weights are frozen, and some of
 * its linear layers get a pair of small trained layers: y = W x + B A x, where A is (rank, features
 * of x) and B is (features of y, rank). The factor alpha / rank is assumed to be part of B. The
 * frozen weights may be quantised (QLoRA; Dettmers et al., 2023, arXiv 2305.14314). */
#ifndef CS_WORKLOAD_NET_ADAPTERS_H
#define CS_WORKLOAD_NET_ADAPTERS_H

#include "sim/base/field.h"
#include "sim/model/net.h"

/* How the frozen weights of linear layers are stored. Each pass over a layer first converts them to
 * the network's precision (bitsandbytes, bitsandbytes/autograd/_functions.py, MatMul4Bit: forward
 * and backward call dequantize_4bit). */
typedef enum cs_base_format {
    CS_BASE_AS_MODEL,
    CS_BASE_NF4, /* 4 bits per weight, and 32 per 64 weights */
    /* 4 bits per weight; the 32 bits per 64 weights are quantised to 8, with 32 per 256 of them */
    CS_BASE_NF4_DOUBLE,
    CS_BASE_INT8 /* 8 bits per weight, and 32 per row */
} cs_base_format;

typedef struct cs_adapters {
    uint32_t rank;
    uint32_t base;     /* cs_base_format */
    cs_list base_wide; /* const char *: linear layers that are not quantised, named as in targets */
    /* const char *: names of linear layers, or ends of names: "q_proj", "mlp.up_proj" */
    cs_list targets;
} cs_adapters;

/* Fields rank, targets, base, base_wide; {0} ends the list. */
extern const cs_field cs_adapter_fields[];

/* Adds adapters to a network. CS_INVALID, with the place of the target, if a target names no linear
 * layer, or layers of experts; the network is then unchanged. */
CS_MUST_CHECK cs_status cs_net_adapt(cs_net *net, const cs_adapters *adapters,
                                     const cs_json_place *place, cs_error *error);

#endif
