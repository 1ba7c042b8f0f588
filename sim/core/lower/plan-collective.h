/* How each collective of a graph is done: algorithm, chunks, order of the ranks. Internal to
 * sim/core/lower. */
#ifndef CS_LOWER_PLAN_COLLECTIVE_H
#define CS_LOWER_PLAN_COLLECTIVE_H

#include "sim/core/lower/prices.h"

/* cs_lower_options.algorithm: these, or else the position in cs_algorithms + CS_FIRST_ALGORITHM. */
enum { CS_ALGORITHM_AUTO, CS_ALGORITHM_USUAL, CS_FIRST_ALGORITHM };

/* The decision for all collectives of one first class. */
typedef struct cs_way {
    const cs_algorithm *algorithm;
    cs_collective collective; /* with the number of chunks */
    uint32_t group;           /* of the graph */
    uint32_t *order;          /* rank of the algorithm -> rank of the group; allocated */
    uint32_t *devices;        /* of the algorithm's ranks; allocated */
    uint32_t n_members;       /* ranks that are simulated */
    uint64_t n_sends;
    cs_time cost;          /* -1: not computed */
    cs_time hidden;        /* extra time of the collective after `cost`, while its ranks compute */
    bool by_nccl;          /* its delay is NCCL's: */
    cs_time links;         /* of it, latencies of the links, which NCCL's are in place of */
    cs_nccl_case facts;    /* but for the bandwidth */
    cs_nccl_choice choice; /* of the last delay that was computed */
    bool tensor;           /* between devices that divide layers */
    bool expert;           /* all_to_all of experts */
    bool alone;            /* see cs_class */
    bool network;          /* ranks in several nodes */
    bool
        one_nic; /* a ring that nobody asked for, through one of the NICs of nodes that are unlike */
    const cs_measured_collective *measured; /* its time when it is one delay, or NULL */
} cs_way;

CS_MUST_CHECK cs_status cs_way_decide(cs_prices *prices, const cs_class *cls, cs_way *way,
                                      cs_error *error);

/* Fills in the cost, if it is not there yet: that which was measured, else that of the algorithm
 * while the other groups of its family do the same. */
CS_MUST_CHECK cs_status cs_way_price(cs_prices *prices, cs_way *way, cs_error *error);

/* Computes a delay from the time of the messages: applies the reached fraction of the bandwidth,
 * adds the start-up time, and moves the overlapped part to way->hidden. CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_way_delay(const cs_lower_options *options, cs_way *way, cs_time *time,
                                     cs_error *error);

/* Accepts a zeroed one. */
void cs_way_finish(cs_way *way);

#endif
