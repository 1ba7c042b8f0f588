/* The general decoder, by its sizes. */
#ifndef CS_MODEL_DECODER_H
#define CS_MODEL_DECODER_H

#include "sim/model/net.h"

/* What an MLP computes between its matrices; the first two have a gate. */
typedef enum cs_activation {
    CS_ACTIVATION_SWIGLU,
    CS_ACTIVATION_GEGLU,
    CS_ACTIVATION_GELU,
    CS_ACTIVATION_SQUARED_RELU, /* a kernel that keeps its input, as GELU (So et al., Primer, 2021) */
} cs_activation;

typedef enum cs_position_kind {
    CS_POSITIONS_ROTARY,
    CS_POSITIONS_LEARNED, /* a table of as many rows as a sample has tokens */
    CS_POSITIONS_NONE,    /* or what the attention's kernel adds by itself, as ALiBi */
} cs_position_kind;

/* Which linear layers of a decoder have biases, if it has some; never the last one. */
typedef enum cs_biased {
    CS_BIASED_ALL, /* except the router */
    CS_BIASED_ATTENTION,
    CS_BIASED_QKV, /* queries, keys and values */
} cs_biased;

/* A mixer of Mamba-2, in place of the attention. */
typedef struct cs_mixer {
    uint32_t heads; /* 0: there is none */
    uint32_t head;  /* features of a head */
    uint32_t groups, state, chunk, conv;
} cs_mixer;

/* Decoder with a norm in front of each block, grouped keys and values or latent ones, or state
 * spaces, and MLPs, which experts may compute. */
typedef struct cs_decoder {
    uint32_t layers, hidden, heads, sequence, vocabulary;
    uint32_t kv_heads;     /* 0: as many as heads */
    uint32_t intermediate; /* 0: there is no MLP */
    uint32_t head;         /* features of a head; 0: hidden / heads */
    bool tied;             /* the last matrix is the embedding's */
    uint32_t kernel;
    uint32_t window; /* tokens that a layer 'w' attends to */
    const char
        *pattern; /* a letter per layer, repeated: 'f', 'w', or 'm' for a mixer; NULL: all 'm'
                   * where there is a mixer, else 'w' where there is a window, else 'f' */
    cs_mixer mixer;
    /* latent attention, of the rank latent_rank > 0, in place of head and kv_heads: */
    uint32_t query_rank, latent_rank, nope_head, rope_head, value_head;
    /* experts > 0 in all layers but the first dense_layers: */
    uint32_t experts, top_k, expert_intermediate, shared_experts, dense_layers;
    double capacity;
    double dropout;               /* of hidden states and of attention */
    uint32_t shared_intermediate; /* of shared experts together; 0: shared_experts times one */
    uint32_t next_tokens;         /* modules of multi-token prediction */
    uint32_t activation;          /* cs_activation */
    uint32_t norm;                /* RMS norms, 0, or layer norms, 1 */
    uint32_t positions;           /* cs_position_kind */
    bool bias;                    /* linear layers have biases, */
    uint32_t biased;              /* these ones (cs_biased) */
    bool head_norms;              /* each head's queries and keys are normalised */
    bool sinks;                   /* see cs_attention */
    bool router_bias;
} cs_decoder;

#endif
