/* The parameters of the general decoder. */
#ifndef CS_MODEL_DECODER_H
#define CS_MODEL_DECODER_H

#include "sim/model/net.h"

/* Activation between the matrices of an MLP; the first two have a gate. */
typedef enum cs_activation {
    CS_ACTIVATION_SWIGLU,
    CS_ACTIVATION_GEGLU,
    CS_ACTIVATION_GELU,
    /* a kernel that saves its input, like GELU (So et al., Primer, 2021) */
    CS_ACTIVATION_SQUARED_RELU,
} cs_activation;

typedef enum cs_position_kind {
    CS_POSITIONS_ROTARY,
    CS_POSITIONS_LEARNED, /* a learned table with a row per token of a sample */
    CS_POSITIONS_NONE,    /* none, or positions that the attention kernel adds, like ALiBi */
} cs_position_kind;

/* The linear layers of a decoder that have biases, if any have; the last layer never has one. */
typedef enum cs_biased {
    CS_BIASED_ALL, /* all except the router */
    CS_BIASED_ATTENTION,
    CS_BIASED_QKV, /* projections to queries, keys and values */
} cs_biased;

/* A Mamba-2 mixer, which replaces the attention of a layer. */
typedef struct cs_mixer {
    uint32_t heads; /* number of heads; 0: no mixer */
    uint32_t head;  /* features per head */
    uint32_t groups, state, chunk, conv;
} cs_mixer;

/* Parameters of a decoder. Each block has a norm in front. Blocks are attention (with grouped or
 * latent keys and values) or state spaces, and MLPs or mixtures of experts. */
typedef struct cs_decoder {
    uint32_t layers, hidden, heads, sequence, vocabulary;
    uint32_t kv_heads;     /* number of heads of keys and values; 0: as many as heads */
    uint32_t intermediate; /* features inside the MLP; 0: no MLP */
    uint32_t head;         /* features per attention head; 0: hidden / heads */
    bool tied;             /* whether the last matrix is the embedding table */
    uint32_t kernel;
    uint32_t window; /* tokens that a token of a layer 'w' attends to */
    /* letters of the layers, repeated: 'f', 'w', or 'm' for a mixer; NULL or empty: all 'm' if
     * there is a mixer, else all 'w' if there is a window, else all 'f' */
    const char *pattern;
    cs_mixer mixer;
    /* latent attention, used if latent_rank > 0, replaces head and kv_heads: */
    uint32_t query_rank, latent_rank, nope_head, rope_head, value_head;
    /* mixtures of experts, used if experts > 0, in all layers except the first dense_layers: */
    uint32_t experts, top_k, expert_intermediate, shared_experts, dense_layers;
    double capacity;
    double dropout; /* dropout probability of hidden states and of attention */
    /* features inside the shared experts together; 0: shared_experts x expert_intermediate */
    uint32_t shared_intermediate;
    uint32_t next_tokens; /* number of modules of multi-token prediction */
    uint32_t activation;  /* activation: a cs_activation */
    uint32_t norm;        /* norms: 0: RMS norms, 1: layer norms */
    uint32_t positions;   /* positions: a cs_position_kind */
    bool bias;            /* whether linear layers have biases */
    uint32_t biased;      /* layers that have biases (cs_biased) */
    bool head_norms;      /* whether the queries and keys of each head are normalised */
    bool sinks;           /* whether heads have learned sinks (cs_attention) */
    bool router_bias;
} cs_decoder;

#endif
