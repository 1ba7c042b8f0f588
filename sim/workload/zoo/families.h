/* Families of transformers by their sizes, for the zoo and for readers of foreign descriptions. */
#ifndef CS_WORKLOAD_FAMILIES_H
#define CS_WORKLOAD_FAMILIES_H

#include "sim/workload/net.h"

/* Decoder with layer norms in front, learned positions and GELU (GPT-2). */
typedef struct cs_gpt {
    uint32_t layers, hidden, heads, sequence, vocabulary;
    uint32_t positions;    /* learned; 0: the sequence */
    uint32_t intermediate; /* 0: 4 times hidden */
    double dropout;        /* everywhere */
    uint32_t kernel;       /* cs_attention_kernel */
} cs_gpt;

/* Decoder with RMS norms, rotary positions, grouped keys and values and SwiGLU (Llama). */
typedef struct cs_llama {
    uint32_t layers, hidden, heads, kv_heads, sequence, vocabulary, intermediate;
    uint32_t head; /* features of a head; 0: hidden / heads */
    bool tied;     /* the last matrix is the embedding's */
    bool bias;     /* of queries, keys and values */
    uint32_t kernel;
} cs_llama;

/* Encoder with layer norms behind, and a pooler (BERT). */
typedef struct cs_bert {
    uint32_t layers, hidden, heads, sequence, vocabulary, positions, types, intermediate;
    double dropout;
    uint32_t kernel;
} cs_bert;

/* Encoder of image patches (ViT). */
typedef struct cs_vit {
    uint32_t image, patch, channels, layers, hidden, heads, intermediate, classes;
    double dropout;
    uint32_t kernel;
} cs_vit;

void cs_gpt_build(cs_net *net, const cs_gpt *gpt);
void cs_llama_build(cs_net *net, const cs_llama *llama);
void cs_bert_build(cs_net *net, const cs_bert *bert);
void cs_vit_build(cs_net *net, const cs_vit *vit);

/* Checks that heads divide the hidden size; else the network fails. */
bool cs_net_check_heads(cs_net *net, uint32_t hidden, uint32_t heads);

/* "flash", "math", ended by NULL: the choices of `kernel`. */
extern const char *const cs_attention_kernels[];

#endif
