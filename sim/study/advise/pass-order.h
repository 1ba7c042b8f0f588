/* The passes of a candidate in the order of its schedule. The schedule itself makes the order, for
 * a pipeline of stages without layers, so bounds need no knowledge of any schedule.
 *
 * A rank does its passes strictly in order, so the order alone determines how many micro-batches
 * are between forward and backward on it. With a lower bound of the time of each pass and message,
 * it also determines when passes end: at the longest path through the order, the passes of a
 * micro-batch, and the messages between them. */
#ifndef CS_ADVISE_PASS_ORDER_H
#define CS_ADVISE_PASS_ORDER_H

#include "sim/study/advise/candidates.h"

/* A stage on one device; sizes in bytes, times in s. */
typedef struct cs_stage_price {
    double forward, backward; /* time of a micro-batch, see bounds.h */
    /* upper limit of the part of `backward` that computes gradients of weights */
    double weight_half;
    double output; /* bytes of a micro-batch that a device sends to the next stage */
    /* time of that message, and of the message back; set by callers that know the stages'
     * devices */
    double down, up;
    double dense, expert; /* weights of one place, before sharding */
    double gradients, frozen, cast, kept;
} cs_stage_price;

/* Facts that follow from the order of a schedule. */
typedef struct cs_pass_order {
    uint32_t n_stages;
    bool splits; /* whether the schedule has halves of backwards */
    /* longest path if each stage takes 1 per micro-batch, a third of it for the forward, and
     * messages take no time */
    double length;
    /* per stage: its pipeline rank; the caller frees it, and with it the next two arrays */
    uint32_t *rank;
    uint32_t *by_rank; /* the stages, sorted by rank */
    /* per stage: micro-batches whose activations exist when its rank has the most activations */
    uint32_t *in_flight;
} cs_pass_order;

CS_MUST_CHECK cs_status cs_pass_order_find(const cs_candidate *candidate, cs_pass_order *order,
                                           cs_error *error);

/* Returns stage k of a rank; all ranks have the same number of stages. */
static inline uint32_t cs_pass_stage(const cs_candidate *c, const cs_pass_order *order,
                                     uint32_t rank, uint32_t k)
{
    return order->by_rank[rank * c->chunks + k];
}

/* Finds the longest path through all passes, in s, and the largest bytes of activations per rank,
 * of stages with these prices. */
CS_MUST_CHECK cs_status cs_passes_follow(const cs_candidate *candidate, const cs_pass_order *order,
                                         const cs_stage_price *stages, double *time, double *kept,
                                         cs_error *error);

#endif
