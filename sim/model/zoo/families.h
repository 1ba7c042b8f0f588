/* Families of transformers by their sizes, for the zoo and for readers of foreign descriptions. */
#ifndef CS_WORKLOAD_FAMILIES_H
#define CS_WORKLOAD_FAMILIES_H

#include "sim/model/net.h"

/* Decoder with layer norms in front, learned positions and GELU (GPT-2). */
typedef struct cs_gpt {
    uint32_t layers, hidden, heads, sequence, vocabulary;
    uint32_t positions;    /* learned; 0: the sequence */
    uint32_t intermediate; /* 0: 4 times hidden */
    double dropout;        /* everywhere */
    uint32_t kernel;       /* cs_attention_kernel */
} cs_gpt;

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

/* How BERT and T5 are laid out: as in their papers, or as Megatron Core builds both
 * (megatron/core/models/{bert,T5}), with layer norms in front and behind the last block, learned
 * positions, biases, one product for queries, keys and values, and dropout of what blocks add and
 * of attention only. */
typedef enum cs_encoder_form {
    CS_FORM_PAPER,
    CS_FORM_MEGATRON,
} cs_encoder_form;

/* Encoder with layer norms behind, and a pooler (BERT). */
typedef struct cs_bert {
    uint32_t layers, hidden, heads, sequence, vocabulary, positions, types, intermediate;
    double dropout;
    uint32_t kernel;
    bool head;     /* that it was trained with: tokens, and whether sentences follow each other */
    uint32_t form; /* cs_encoder_form */
} cs_bert;

/* Encoder of image patches (ViT). */
typedef struct cs_vit {
    uint32_t image, patch, channels, layers, hidden, heads, intermediate, classes;
    double dropout;
    uint32_t kernel;
} cs_vit;

/* Encoder and decoder with relative positions (T5). */
typedef struct cs_t5 {
    uint32_t layers, decoder_layers, hidden, heads, head, intermediate;
    uint32_t sequence, decoder_sequence, vocabulary, buckets;
    bool gated, tied;
    double dropout;
    uint32_t kernel;
    uint32_t form; /* cs_encoder_form */
} cs_t5;

/* One of its blocks: attention and MLP, each with a norm in front and a sum behind. */
cs_tensor cs_gpt_block(cs_net *net, const cs_gpt *gpt, cs_tensor x);

/* Checks that heads divide the hidden size; else the network fails. */
bool cs_net_check_heads(cs_net *net, uint32_t hidden, uint32_t heads);

/* "flash", "math", ended by NULL: the choices of `kernel`. */
extern const char *const cs_attention_kernels[];

/* "paper", "megatron", ended by NULL: the choices of `form`. */
extern const char *const cs_encoder_forms[];

#endif
