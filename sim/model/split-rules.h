/* How the operators of a network are divided along an axis: a rule per kind of operator.
 *
 * A rule is told in which division an operator finds what it reads, and says in which it reads it,
 * in which it makes its result, and in which it hands it on. It knows nothing of the other
 * operators' rules, nor of exchanges: those follow from the divisions (layout.h), and the
 * operator's local shape and parameters from its local inputs and result (net-local.c).
 */
#ifndef CS_WORKLOAD_SPLIT_RULES_H
#define CS_WORKLOAD_SPLIT_RULES_H

#include "sim/model/halo.h"
#include "sim/model/layout.h"

enum { CS_RULE_INNER_MAX = 3 };

/* What a halo is of. */
typedef enum cs_halo_of {
    CS_HALO_OF_INPUT,    /* forward */
    CS_HALO_OF_GRADIENT, /* of the result, backward */
    CS_HALO_RETURNED, /* gradients of rows of the input that the neighbours handed over; `before` are
                          * the rows that come back from the neighbour before */
} cs_halo_of;

/* An exchange that an operator makes by itself, in front of its computation; what is returned,
 * behind. */
typedef struct cs_inner_exchange {
    cs_exchange_kind kind;
    bool backward;
    cs_element element;
    int64_t (*elements)(const cs_net *local,
                        const cs_op *op); /* of the local operator, per sample */
    /* of CS_EXCHANGE_HALO, whose elements follow from the rows: */
    uint8_t dim;
    cs_halo_of of;
    cs_halo halo; /* the most that any place along the axis receives */
    cs_halo held; /* what the place receives that receives the most from both sides together */
} cs_inner_exchange;

/* Who writes and who reads each tensor of a network. */
typedef struct cs_net_links {
    uint32_t *writer;       /* per tensor: op, CS_NO_TENSOR of an input */
    uint32_t *first_reader; /* per tensor, and one more: where its readers begin in `readers` */
    uint32_t *readers;      /* ops, those of a tensor in rising order */
} cs_net_links;

/* The numbers next to one that does not fit that an operator takes. */
typedef struct cs_nearest {
    uint32_t below, above; /* above 0: nothing above it fits */
    bool is_limit;         /* the message names the one below: "must be at most 64" */
} cs_nearest;

/* The first mistake, in the value of a key. */
typedef struct cs_split_report {
    const cs_net *net;
    cs_status status;
    const char *key; /* NULL: none, or want of memory */
    char text[512];  /* what is said of it, from where the key's name ends */
    bool sized;      /* it is the size of an axis, and there are others that fit: */
    cs_layout_axis axis;
    cs_nearest nearest; /* as far as the operator knows that refuses it */
    cs_error *error;    /* for want of memory */
} cs_split_report;

typedef struct cs_rule_query {
    const cs_net *net; /* the whole one */
    const cs_net_links *links;
    const cs_split *split;
    const cs_op *op;
    cs_layout_axis axis;
    uint32_t size;            /* of the axis, > 1 */
    const cs_division *given; /* per input; never partial */
    cs_split_report *report;
} cs_rule_query;

/* Zeroed: all is whole. */
typedef struct cs_rule_answer {
    cs_division inputs[CS_OP_INPUTS_MAX];
    bool partial[CS_OP_INPUTS_MAX]; /* its gradient of a whole input is a partial sum */
    cs_division made;               /* its result as it comes */
    cs_division output; /* and as it is handed on, behind an exchange where they differ */
    bool shared; /* all places hold the same parameters, and compute a part of their gradients */
    bool copied; /* so do neighbours, as many as the copies of what it makes */
    uint32_t shares; /* of attention: cs_attention.shares, 0: as they are */
    bool ring;       /* and whether keys and values go around among as many places */
    uint32_t n_inner;
    cs_inner_exchange inner[CS_RULE_INNER_MAX];
} cs_rule_answer;

typedef void cs_layout_rule(const cs_rule_query *query, cs_rule_answer *answer);

/* Ways to split, each with a rule per kind of operator (ops/operator.h). */
typedef enum cs_split_way {
    CS_SPLIT_PAIRS, /* axis tensor: pairs of linear layers */
    CS_SPLIT_FILTER,
    CS_SPLIT_CHANNEL, /* axis tensor as well: ops/convolution.c */
    CS_SPLIT_SPACE,
    CS_SPLIT_CONTEXT, /* ops/attention.c */
    CS_SPLIT_EXPERT,  /* ops/experts.c */
    CS_SPLIT_EXPERT_TENSOR,
    CS_N_SPLITS
} cs_split_way;

/* The dimension of an image that an axis of space divides; and the operator in front of which
 * space_until has it gathered, n_ops where it does not say. */
uint32_t cs_space_dim(cs_layout_axis axis);
uint32_t cs_space_end(const cs_net *net, const char *until);

/* ---- what rules have in common ---- */

/* A convolution or pooling along dimension `dim` of its images, from 1 on. */
cs_sliding cs_op_sliding(const cs_net *net, const cs_op *op, uint32_t dim);

static inline cs_division cs_divided(uint32_t dim)
{
    return (cs_division){.part = CS_DIVIDED, .dim = (uint8_t)dim};
}

/* The last dimension of a tensor. */
uint32_t cs_features_dim(const cs_net *net, cs_tensor tensor);

bool cs_is_divided_at(cs_division division, uint32_t dim);

/* All inputs and the result alike. */
void cs_answer_alike(const cs_rule_query *query, cs_division division, cs_rule_answer *answer);

/* Element by element: as what it reads is divided. Of two ways, that of the first input. */
void cs_rule_follow(const cs_rule_query *query, cs_rule_answer *answer);

/* Keeps its rows of images. */
void cs_rule_rows(const cs_rule_query *query, cs_rule_answer *answer);

/* Whether the first input is split by rows, in the part of the network where space is split. */
bool cs_has_rows(const cs_rule_query *query);

/* Over features, or head by head (ops/norms.c); by filters or channels (ops/convolution.c). */
void cs_rule_norm(const cs_rule_query *query, cs_rule_answer *answer);
void cs_rule_filter(const cs_rule_query *query, cs_rule_answer *answer);
void cs_rule_channel(const cs_rule_query *query, cs_rule_answer *answer);

/* ---- pairs of linear layers ---- */

/* Tensor parallelism as Megatron-LM has it: Shoeybi et al., Megatron-LM, 2019 (arXiv 1909.08053),
 * section 3; Narayanan et al., SC 2021, section 2.3; with sequence_parallel Korthikanti et al.,
 * 2022 (arXiv 2205.05198), section 4.2.2.
 *
 * Of two linear layers between which all operators work head by head or element by element, the
 * first makes a part of the features and the second reads it: a pair. The first reads all
 * features and leaves a partial gradient of them; the second makes a partial result.
 * Which linear is which is not said anywhere: one that finds its input divided is a second one,
 * and one from whose result every way leads to a second one, or to the loss, is a first one. What
 * is in no pair is computed by all places alike, or, with sequence_parallel, by each of them for
 * its part of the tokens. */

/* The layout of a tensor outside of pairs: with sequence_parallel its tokens are split, else it is
 * whole. */
cs_division cs_outside_pairs(const cs_rule_query *query, cs_tensor tensor);

/* Whether an input of the operator is split by features, or by tokens. */
bool cs_has_features(const cs_rule_query *query, uint32_t input);
bool cs_has_tokens(const cs_rule_query *query, uint32_t input);

/* Whether the result of the operator leads, through what passes features on, to operators that can
 * read it split by features: linear layers, and a loss; and whether only losses read it. */
bool cs_feeds_pairs(const cs_rule_query *query, cs_tensor tensor);
bool cs_feeds_loss(const cs_rule_query *query, cs_tensor tensor);

/* The attention that a tensor leads to, through operators that pass features on; NULL: none. *keys:
 * as its keys or values. */
const cs_op *cs_attention_after(const cs_rule_query *query, cs_tensor tensor, bool *keys);

/* Reports unless each place gets as many heads of queries as the others, and whole heads of keys and
 * values, or one that some neighbours have as well. */
void cs_rule_check_heads(const cs_rule_query *query, const cs_op *attention);

/* Adds the sum of a float32 per row over all places. */
void cs_add_row_sum(cs_rule_answer *answer, bool backward);

/* Reports unless the size of the axis divides `count`: "must divide the 32 heads of NAME (got 6): 4
 * or 8 would". */
void cs_rule_divides(const cs_rule_query *query, uint32_t count, const char *of_what);

/* A mistake in the value of a key: the text goes on where the key's name ends. */
void cs_split_refuse(cs_split_report *report, const char *key, const char *format, ...)
    CS_PRINTF(3, 4);

/* The same of the size of the query's axis: which sizes would be right is added to the text, those
 * next to it that all operators take. */
void cs_rule_refuse(const cs_rule_query *query, cs_nearest nearest, const char *format, ...)
    CS_PRINTF(3, 4);
void cs_split_refuse_size(cs_split_report *report, const char *key, cs_layout_axis axis,
                          cs_nearest nearest, const char *format, ...) CS_PRINTF(5, 6);

/* The divisors of `count` next to `got`, which is none. */
cs_nearest cs_divisors_next_to(uint32_t count, uint32_t got);

/* "A or B would", "A would"; returns `text`. */
char *cs_nearest_text(cs_nearest nearest, char *text, size_t size);

enum { CS_NEAREST_TEXT_BYTES = 48 };

#endif
