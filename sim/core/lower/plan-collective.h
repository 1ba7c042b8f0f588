/* Decides how each collective of a graph runs: algorithm, chunks, order of the ranks. Internal to
 * sim/core/lower. */
#ifndef CS_LOWER_PLAN_COLLECTIVE_H
#define CS_LOWER_PLAN_COLLECTIVE_H

#include "sim/core/lower/prices.h"

/* Values of cs_lower_options.algorithm; larger values are CS_FIRST_ALGORITHM + position in
 * cs_algorithms. */
enum { CS_ALGORITHM_AUTO, CS_ALGORITHM_USUAL, CS_FIRST_ALGORITHM };

/* Decision for all collectives of one class. */
typedef struct cs_way {
    const cs_algorithm *algorithm;
    cs_collective collective; /* with the chosen number of chunks */
    uint32_t group;           /* its group in the graph */
    uint32_t *order;          /* rank of the algorithm -> rank of the group; owned */
    uint32_t *devices;        /* device of each of the algorithm's ranks; owned */
    uint32_t n_members;       /* number of simulated ranks */
    uint64_t n_sends;
    cs_time cost; /* time of the collective; -1: not computed */
    /* time that the collective continues after `cost`, overlapped with computing of its ranks */
    cs_time hidden;
    bool by_nccl;          /* the delay follows NCCL's model: */
    cs_time links;         /* latency of the links in the delay, which NCCL's latency replaces */
    cs_nccl_case facts;    /* input of NCCL's model without the bandwidth */
    cs_nccl_choice choice; /* choice in the last delay computed */
    bool tensor;           /* tensor-parallel collective */
    bool expert;           /* experts' all_to_all */
    bool alone;            /* as in cs_class */
    bool network;          /* whether ranks are in several nodes */
    bool one_nic;          /* default ring through one of several NICs, because nodes differ */
    /* measured time, used if the collective is one delay; or NULL */
    const cs_measured_collective *measured;
} cs_way;

CS_MUST_CHECK cs_status cs_way_decide(cs_prices *prices, const cs_class *cls, cs_way *way,
                                      cs_error *error);

/* Computes the cost unless it is known: the measured time, else the cost of the algorithm while the
 * other groups of the family do the same. */
CS_MUST_CHECK cs_status cs_way_price(cs_prices *prices, cs_way *way, cs_error *error);

/* Computes a delay from the time of the messages: applies the reached fraction of the bandwidth,
 * adds the start-up time, and moves the overlapped part to way->hidden. CS_OVERFLOW. */
CS_MUST_CHECK cs_status cs_way_delay(const cs_lower_options *options, cs_way *way, cs_time *time,
                                     cs_error *error);

/* Allowed on a zeroed struct. */
void cs_way_finish(cs_way *way);

#endif
