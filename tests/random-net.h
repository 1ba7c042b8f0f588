/* Networks and splits of them, drawn. */
#ifndef CS_TESTS_RANDOM_NET_H
#define CS_TESTS_RANDOM_NET_H

#include "sim/base/random.h"
#include "sim/model/net.h"
#include "sim/model/split.h"

uint32_t random_from_to(gsl_rng *random, uint32_t from, uint32_t to);

/* A transformer: an embedding, blocks of attention and of a multilayer perceptron, norms in front
 * or behind, a last matrix. */
typedef struct transformer_shape {
    uint32_t layers, hidden, heads, kv_heads, head, inner, tokens, vocabulary;
    uint32_t experts, top_k, expert_inner; /* 0 experts: a multilayer perceptron */
    bool fused, gated, bias, layer_norm, norm_behind, rotary, dropout, positions, tied;
} transformer_shape;

/* A split of a transformer, over experts as well; and a transformer that it divides, with fewer
 * heads of keys and values than places, or not. */
cs_split random_transformer_split(gsl_rng *random, bool experts);
transformer_shape random_transformer_shape(gsl_rng *random, const cs_split *split, bool experts);
void random_net_transformer(const transformer_shape *s, cs_net *net);

/* A network of images in 1 to 3 dimensions, with branches; false where an image became too small.
 * And a split of it over space, filters or channels, which may not fit it. */
bool random_net_images(gsl_rng *random, cs_net *net, cs_error *error);
cs_split random_images_split(gsl_rng *random, const cs_net *net);

/* A network of tokens whose operators read any earlier ones, so that branches begin and end
 * anywhere; with frozen weights, blocks and in-place operators. Features and heads are multiples of
 * 12, tokens of 24. */
void random_net_graph(gsl_rng *random, cs_net *net);

#endif
