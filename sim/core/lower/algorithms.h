/* Algorithms of collectives, as messages between ranks in rounds.
 *
 * A rank sends in round k once it has finished all its receives and sends of earlier rounds. This
 * rule alone defines the dependencies, both for flows and for the cost when nothing else runs.
 *
 * Meaning of a collective's bytes (p ranks, rank 0 the root):
 *   all_reduce, reduce, broadcast, reduce_scatter   the whole vector
 *   all_gather                                      the gathered total; each rank gives bytes / p
 *   gather, scatter                                 the root's total, its own share included
 *   all_to_all                                      the total of one rank's messages to all ranks,
 *                                                   itself included
 *   halo                                            a message to the next rank; a message to the
 *                                                   previous rank has `bytes_back`. The first and
 *                                                   last rank have one neighbour, others two
 *   shift                                           one message; each rank sends one to the next
 *                                                   rank, the last one to the first
 * If bytes do not divide, the first shares are one byte longer. The additions of reductions take
 * no time.
 *
 *   algorithm     collectives                                        rounds
 *   ring          all_reduce                                         2 (p - 1)
 *                 reduce_scatter, all_gather, all_to_all (pairwise)  p - 1
 *                 broadcast, reduce (a chain, in k chunks)           p - 2 + k
 *                 shift                                              1
 *   ring_per_nic  all_reduce, reduce_scatter, all_gather, broadcast, reduce over nodes with several
 *                 NICs: one ring per NIC at once, each with 1 / NICs of the bytes; rounds as ring
 *   ring_per_link the same over directly linked GPUs: rings that together use as many of the links
 *                 as possible, in both directions (link-rings.h), each with a share of the bytes;
 *                 rounds as ring
 *   halving       all_reduce of any p, reduce_scatter and all_gather of p = 2^n: recursive halving,
 *                 then doubling; 2 log2 p, two more for the ranks beyond 2^n
 *   tree          all_reduce, reduce, broadcast: two binary trees, each rank a leaf in one of them,
 *                 with half of the vector each, in k chunks
 *   hierarchical  all_reduce: to one rank of each node by a chain in k chunks, a ring of these
 *                 ranks, back by chains
 *   segmented     all_reduce: reduce-scatter in each node, a ring for each rank of a node with its
 *                 peers in the other nodes, all at once, all-gather in each node
 *   direct        broadcast, reduce, scatter, gather, all_to_all, halo, shift: all messages at once
 *   once_per_node all_to_all of copies of tokens. The k copies of a token go to k different experts
 *                 out of E equally likely ones. A rank receives at most one copy of a token, and so
 *                 does a node, through the rank at the sender's position in that node, which
 *                 forwards it. Ranks that hold e experts receive a fraction
 *                 1 - C(E - e, k) / C(E, k) of the tokens: e = E g / p for another node of g ranks,
 *                 and e = E / p for each rank of the own node, which gets the tokens of all nodes.
 *                 Forwarding is pipelined by chunks, so there is one round. The sums on the way
 *                 back have as many bytes (DeepEP, deepseek-ai/DeepEP, csrc/kernels/internode.cu;
 *                 HybridEP of Megatron Core)
 *
 * The rings of ring_per_nic visit the nodes in the same order, but each starts at a different rank
 * of a node, so each enters and leaves through its own NIC. If the number of nodes is even, every
 * second node is traversed in reverse, so a ring enters the next node through the same NIC number
 * that it left by: it stays on its rail, like NCCL's alternating rings.
 *
 * Sources: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005 (halving); Patarasuk and Yuan, JPDC
 * 69(2), 2009 (ring); NCCL, src/graph/connect.cc (ring_per_nic), search.cc (ring_per_link);
 * Sanders, Speck and Traeff, Parallel Computing 35(12), 2009 (two trees); Kahira et al., HPDC 2021,
 * 5.3.1 (segmented).
 */
#ifndef CS_LOWER_ALGORITHMS_H
#define CS_LOWER_ALGORITHMS_H

#include "sim/core/graph/graph.h"
#include "topologies/link-rings.h"

typedef struct cs_collective {
    cs_kind kind;
    uint32_t n; /* ranks, >= 2 */
    int64_t bytes, bytes_back;
    uint32_t chunks; /* k in the table above, >= 1 */
    uint32_t
        /* ranks 0 to node_ranks - 1 share a node, the next node_ranks ranks another, ...; 0:
         * unknown or irregular */
        node_ranks;
    /* number of NICs that the ranks of a node use; 0: unknown, or the model has one port per
     * rank */
    uint32_t rings;
    const cs_link_rings *links; /* rings over the direct links between the ranks; or NULL */
    bool links_are_usual;       /* whether ring_per_link is the default */
    /* all_to_all: copies of each token in a rank's bytes; 0: the bytes are not tokens */
    uint32_t copies;
    /* number of experts on all ranks together; the copies of a token go to different experts */
    uint32_t experts;
} cs_collective;

typedef struct cs_send {
    uint32_t round, from, to;
    int64_t offset, bytes; /* range in the vector; for all_to_all, in the sender's vector */
    /* the receiver adds the bytes to its own; otherwise it overwrites them */
    bool reduce;
} cs_send;

/* Returns false to end the walk. */
typedef bool cs_send_function(void *context, const cs_send *send);

typedef struct cs_algorithm {
    const char *name, *doc;
    const char *needs; /* requirement that `fits` tests, for messages */
    bool (*fits)(const cs_collective *collective);
    bool (*uses_chunks)(const cs_collective *collective);
    uint64_t (*count)(const cs_collective *collective); /* number of messages */
    /* Number of rounds if every round has the same messages whenever the bytes divide by the ranks,
     * so that the first round can stand for all. 0 or NULL: rounds differ. */
    uint32_t (*alike)(const cs_collective *collective);
    /* Visits all messages, round by round. */
    bool (*walk)(const cs_collective *collective, cs_send_function *visit, void *context);
} cs_algorithm;

/* All algorithms, NULL-terminated; and a lookup by name, which returns NULL if there is none. */
extern const cs_algorithm *const cs_algorithms[];
const cs_algorithm *cs_algorithm_find(const char *name);

/* Like the member `alike`, but also 0 if the bytes do not divide by the ranks. */
uint32_t cs_algorithm_alike(const cs_algorithm *algorithm, const cs_collective *collective);

/* Whether the cost follows from one round, so that a cost stays cheap for any number of messages.
 * (Costs are computed with rounded-up bytes, so shares are equal.) Other algorithms need a walk
 * over all messages. */
bool cs_algorithm_is_short(const cs_algorithm *algorithm, const cs_collective *collective);

/* Bytes sent by all ranks together. */
double cs_algorithm_bytes(const cs_algorithm *algorithm, const cs_collective *collective);

/* The default algorithm: the first of ring_per_nic, ring_per_link (if it is usual), ring and direct
 * that fits. For all_to_all it is direct, because NCCL posts grouped sends and receives all at
 * once; for all_to_all with copies of tokens, once_per_node. */
const cs_algorithm *cs_algorithm_usual(const cs_collective *collective);

#endif
