/* How the operators of a network are divided along an axis: a rule per kind of operator.
 *
 * A rule gets the divisions in which an operator finds its inputs. It answers with the divisions in
 * which the operator reads its inputs, makes its result, and hands the result on. It knows neither
 * the rules of other operators nor exchanges: exchanges follow from the divisions (layout.h), and
 * the operator's local shape and parameters follow from its local inputs and result (net-local.c).
 */
#ifndef CS_WORKLOAD_SPLIT_RULES_H
#define CS_WORKLOAD_SPLIT_RULES_H

#include "sim/model/halo.h"
#include "sim/model/layout.h"

enum { CS_RULE_INNER_MAX = 3 };

/* The rows that a halo consists of. */
typedef enum cs_halo_of {
    CS_HALO_OF_INPUT,    /* rows of the input, in forward */
    CS_HALO_OF_GRADIENT, /* rows of the result's gradient, in backward */
    /* gradients of input rows, sent back to the neighbours that own the rows; `before`: rows that
     * come back from the previous neighbour */
    CS_HALO_RETURNED,
} cs_halo_of;

/* An exchange within an operator, before its computation; a returned halo comes after the
 * computation. */
typedef struct cs_inner_exchange {
    cs_exchange_kind kind;
    bool backward;
    cs_element element;
    int64_t (*elements)(const cs_net *local,
                        const cs_op *op); /* elements of the local operator, per sample */
    /* for CS_EXCHANGE_HALO, whose elements follow from the rows: */
    uint8_t dim;
    cs_halo_of of;
    cs_halo halo; /* largest halo that any place along the axis receives */
    cs_halo held; /* halo of the place that receives the most from both sides together */
} cs_inner_exchange;

/* The writer and the readers of each tensor of a network. */
typedef struct cs_net_links {
    uint32_t *writer;       /* per tensor: op that writes it; CS_NO_TENSOR: an input */
    uint32_t *first_reader; /* per tensor, plus one: index of its first reader in `readers` */
    uint32_t *readers;      /* ops that read each tensor, in rising order per tensor */
} cs_net_links;

/* The nearest sizes that an operator accepts, next to a size that it refuses. */
typedef struct cs_nearest {
    uint32_t below, above; /* above 0: no larger size fits */
    bool is_limit;         /* whether the message already names `below`: "must be at most 64" */
} cs_nearest;

/* The first error, in the value of a key. */
typedef struct cs_split_report {
    const cs_net *net;
    cs_status status;
    const char *key; /* NULL: no error, or memory ran out */
    char text[512];  /* message, continuing after the key's name */
    bool sized;      /* whether the value is the size of an axis, and other sizes may fit: */
    cs_layout_axis axis;
    cs_nearest nearest; /* nearest sizes for the operator that refused this size */
    cs_error *error;    /* gets the error if memory runs out */
} cs_split_report;

typedef struct cs_rule_query {
    const cs_net *net; /* the whole network */
    const cs_net_links *links;
    const cs_split *split;
    const cs_op *op;
    cs_layout_axis axis;
    uint32_t size;            /* size of the axis, > 1 */
    const cs_division *given; /* division of each input; never partial */
    cs_split_report *report;
} cs_rule_query;

/* The answer of a rule; zeroed: everything is whole. */
typedef struct cs_rule_answer {
    cs_division inputs[CS_OP_INPUTS_MAX];
    bool partial[CS_OP_INPUTS_MAX]; /* whether its gradient of this whole input is a partial sum */
    cs_division made;               /* division of its result before any exchange */
    /* division of the result that other operators read; an exchange follows if it differs from
     * `made` */
    cs_division output;
    /* whether all places hold the same parameters and each computes part of their gradients */
    bool shared;
    /* as `shared`, but only among neighbours, as many as there are copies of its result */
    bool copied;
    uint32_t shares; /* cs_attention.shares of an attention; 0: unchanged */
    /* whether keys and values of an attention go around the places, one per share */
    bool ring;
    uint32_t n_inner;
    cs_inner_exchange inner[CS_RULE_INNER_MAX];
} cs_rule_answer;

typedef void cs_layout_rule(const cs_rule_query *query, cs_rule_answer *answer);

/* Ways to split, each with a rule per kind of operator (ops/operator.h). */
typedef enum cs_split_way {
    CS_SPLIT_PAIRS, /* tensor axis: pairs of linear layers */
    CS_SPLIT_FILTER,
    CS_SPLIT_CHANNEL, /* tensor axis too: ops/convolution.c */
    CS_SPLIT_SPACE,
    CS_SPLIT_CONTEXT, /* ops/attention.c */
    CS_SPLIT_EXPERT,  /* ops/experts.c */
    CS_SPLIT_EXPERT_TENSOR,
    CS_N_SPLITS
} cs_split_way;

/* The dimension of an image that a space axis divides. The second function: the operator before
 * which the image is gathered according to space_until; n_ops: space_until names none. */
uint32_t cs_space_dim(cs_layout_axis axis);
uint32_t cs_space_end(const cs_net *net, const char *until);

/* ---- what rules have in common ---- */

/* The geometry of a convolution or pooling along dimension `dim` >= 1 of its images. */
cs_sliding cs_op_sliding(const cs_net *net, const cs_op *op, uint32_t dim);

static inline cs_division cs_divided(uint32_t dim)
{
    return (cs_division){.part = CS_DIVIDED, .dim = (uint8_t)dim};
}

/* The last dimension of a tensor. */
uint32_t cs_features_dim(const cs_net *net, cs_tensor tensor);

bool cs_is_divided_at(cs_division division, uint32_t dim);

/* Divides all inputs and the result in the same way. */
void cs_answer_alike(const cs_rule_query *query, cs_division division, cs_rule_answer *answer);

/* Rule of elementwise operators: the result is divided as the inputs are; if the inputs are divided
 * in two ways, as the first divided input. */
void cs_rule_follow(const cs_rule_query *query, cs_rule_answer *answer);

/* Rule of operators that keep the rows of an image with their place. */
void cs_rule_rows(const cs_rule_query *query, cs_rule_answer *answer);

/* Whether the first input is split by rows, and the operator is in the part of the network where
 * space is split. */
bool cs_has_rows(const cs_rule_query *query);

/* Rules of norms over features or head by head (ops/norms.c), and of operators split by filters or
 * channels (ops/convolution.c). */
void cs_rule_norm(const cs_rule_query *query, cs_rule_answer *answer);
void cs_rule_filter(const cs_rule_query *query, cs_rule_answer *answer);
void cs_rule_channel(const cs_rule_query *query, cs_rule_answer *answer);

/* ---- pairs of linear layers ---- */

/* Tensor parallelism as in Megatron-LM: Shoeybi et al., Megatron-LM, 2019 (arXiv 1909.08053),
 * section 3; Narayanan et al., SC 2021, section 2.3; with sequence_parallel Korthikanti et al.,
 * 2022 (arXiv 2205.05198), section 4.2.2.
 *
 * Two linear layers are a pair if all operators between them work head by head or element by
 * element. At each place, the first layer makes a part of the features, and the second layer reads
 * that part. The first layer reads all features and leaves a partial gradient of them; the second
 * makes a partial result. Nothing declares which layer is which: a linear layer whose input is
 * divided is a second layer; a linear layer whose result leads only to second layers, or to the
 * loss, is a first layer. All operators outside pairs are computed by all places alike or, with
 * sequence_parallel, by each place for its part of the tokens. */

/* The layout of a tensor outside pairs: its tokens are split with sequence_parallel, otherwise it
 * is whole. */
cs_division cs_outside_pairs(const cs_rule_query *query, cs_tensor tensor);

/* Whether an input of the operator is split by features; by tokens. */
bool cs_has_features(const cs_rule_query *query, uint32_t input);
bool cs_has_tokens(const cs_rule_query *query, uint32_t input);

/* Whether a tensor leads only to operators that can read it split by features (linear layers, and a
 * loss), through operators that preserve features; and whether only losses read it. */
bool cs_feeds_pairs(const cs_rule_query *query, cs_tensor tensor);
bool cs_feeds_loss(const cs_rule_query *query, cs_tensor tensor);

/* The attention that a tensor leads to, through operators that preserve features; NULL: none. Sets
 * *keys: whether the tensor arrives there as keys or values. */
const cs_op *cs_attention_after(const cs_rule_query *query, cs_tensor tensor, bool *keys);

/* Reports an error unless all places get the same number of query heads, and either whole heads of
 * keys and values or one that some neighbours have as well. */
void cs_rule_check_heads(const cs_rule_query *query, const cs_op *attention);

/* Adds the sum over all places of a float32 per row. */
void cs_add_row_sum(cs_rule_answer *answer, bool backward);

/* Reports an error unless the size of the axis divides `count`: "must divide the 32 heads of NAME
 * (got 6): 4 or 8 would". */
void cs_rule_divides(const cs_rule_query *query, uint32_t count, const char *of_what);

/* Reports an error in the value of a key; the text continues after the key's name. */
void cs_split_refuse(cs_split_report *report, const char *key, const char *format, ...)
    CS_PRINTF(3, 4);

/* Reports an error in the size of an axis (the first function: the query's axis). The nearest sizes
 * that all operators accept are added to the text. */
void cs_rule_refuse(const cs_rule_query *query, cs_nearest nearest, const char *format, ...)
    CS_PRINTF(3, 4);
void cs_split_refuse_size(cs_split_report *report, const char *key, cs_layout_axis axis,
                          cs_nearest nearest, const char *format, ...) CS_PRINTF(5, 6);

/* The nearest divisors of `count` below and above `got`, which is not a divisor. */
cs_nearest cs_divisors_next_to(uint32_t count, uint32_t got);

/* Writes "A or B would" or "A would"; returns `text`. */
char *cs_nearest_text(cs_nearest nearest, char *text, size_t size);

enum { CS_NEAREST_TEXT_BYTES = 48 };

#endif
