/* What the config.json of each family of transformers holds, and the network that follows from it:
 * for huggingface.c, which reads it.
 *
 * To add one: the table of its keys, keys whose other values cannot be built, a function that makes
 * the network, and a line in the table of families.
 */
#ifndef CS_FOREIGN_HUGGINGFACE_FAMILIES_H
#define CS_FOREIGN_HUGGINGFACE_FAMILIES_H

#include "sim/base/field.h"
#include "sim/workload/net.h"

enum { CS_CONFIG_SIZE_MAX = 1 << 20 };

/* What the files of all families tell, each under names of its own. */
typedef struct cs_config {
    uint32_t layers, hidden, heads, kv_heads, head, intermediate, vocabulary, positions, types;
    uint32_t image, patch, channels, labels;
    uint32_t query_rank, latent_rank, nope_head, rope_head, value_head;
    uint32_t experts, top_k, expert_intermediate, shared_experts, dense_layers, next_tokens;
    uint32_t window, first_window; /* tokens; the first layer that has one */
    bool use_window;
    uint32_t state_heads, state_head, state_groups, state, conv, chunk, expand;
    cs_list attention_layers;                       /* uint32_t */
    uint32_t decoder_layers, buckets, feed_forward; /* of T5 */
    cs_list layer_types; /* uint32_t, a position in cs_config_layer_types */
    double dropout;
    bool tied, bias;
} cs_config;

/* What the user adds. */
typedef struct cs_config_additions {
    uint32_t sequence; /* 0: as many as there are positions, 4096 at most */
    uint32_t kernel;
    uint32_t decoder_sequence; /* 0: as long as that of the encoder */
    uint32_t next_tokens;
    double capacity;
} cs_config_additions;

/* A key whose other values would make another network than the one that can be built. */
typedef struct cs_config_fixed {
    const char *key, *value; /* as JSON; NULL ends a table */
} cs_config_fixed;

/* A size whose key may be null, which is 0 and not the default of a missing key. */
typedef struct cs_config_nullable {
    const char *key; /* NULL ends a table */
    size_t offset;   /* of a uint32_t in cs_config */
} cs_config_nullable;

extern const cs_config_nullable cs_config_nullables[];

typedef struct cs_config_family {
    const char *type; /* "model_type" */
    const cs_field *fields;
    void (*build)(cs_net *net, const cs_config *config, const cs_config_additions *more);
    const cs_config_fixed *fixed; /* or NULL */
} cs_config_family;

/* Ended by {NULL}. */
extern const cs_config_family cs_config_families[];

/* "full_attention", "sliding_attention", ended by NULL. */
extern const char *const cs_config_layer_types[];

#endif
