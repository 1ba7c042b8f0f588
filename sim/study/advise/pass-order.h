/* The passes of a candidate in the order of its schedule, which the schedule itself makes for a
 * pipeline of stages without layers: bounds need no knowledge of any schedule.
 *
 * A rank does its passes strictly in order, so that how many micro-batches are between forward and
 * backward on it follows from the order alone. When passes end does as well, given what each takes
 * at least: the longest path through the order, the passes of a micro-batch and the messages
 * between them. */
#ifndef CS_ADVISE_PASS_ORDER_H
#define CS_ADVISE_PASS_ORDER_H

#include "sim/study/advise/candidates.h"

/* A stage on a device; sizes in bytes, times in s. */
typedef struct cs_stage_price {
    double forward, backward; /* a micro-batch takes that, see bounds.h */
    double weight_half;       /* part of `backward`, at most: gradients of weights */
    double output;            /* bytes of a micro-batch that a device sends to the next stage */
    double down, up;      /* that message, and the one back: set by who knows where stages are */
    double dense, expert; /* weights; of one place, nothing divided over others */
    double gradients, frozen, cast, kept;
} cs_stage_price;

/* Facts that follow from the order of a schedule. */
typedef struct cs_pass_order {
    uint32_t n_stages;
    bool splits;       /* it has halves of backwards */
    double length;     /* the longest path where all stages take 1 for a micro-batch, a third of it
                          * for the forward, and messages nothing */
    uint32_t *rank;    /* per stage: its pipeline rank; the caller's, to free, */
    uint32_t *by_rank; /* and with it: the stages, by their ranks, */
    uint32_t *in_flight; /* and per stage: micro-batches whose activations are there when
                          * its rank has most activations */
} cs_pass_order;

CS_MUST_CHECK cs_status cs_pass_order_find(const cs_candidate *candidate, cs_pass_order *order,
                                           cs_error *error);

/* Stage k of a rank; all ranks have equally many. */
static inline uint32_t cs_pass_stage(const cs_candidate *c, const cs_pass_order *order,
                                     uint32_t rank, uint32_t k)
{
    return order->by_rank[rank * c->chunks + k];
}

/* The longest path through all passes, s, and per rank the most bytes of activations, of stages with
 * these prices. */
CS_MUST_CHECK cs_status cs_passes_follow(const cs_candidate *candidate, const cs_pass_order *order,
                                         const cs_stage_price *stages, double *time, double *kept,
                                         cs_error *error);

#endif
