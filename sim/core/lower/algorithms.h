/* Algorithms of collectives, as messages between ranks in rounds.
 *
 * A rank sends in round k once it has received and sent all that it does in earlier rounds. That
 * one rule is all there is to dependencies: the flows of a collective are made from it, and its
 * cost when nothing else runs.
 *
 * What the bytes of a collective mean (p ranks, rank 0 the root):
 *   all_reduce, reduce, broadcast, reduce_scatter   the whole vector
 *   all_gather                                      all that is gathered: each rank gives bytes / p
 *   gather, scatter                                 all that the root gets or gives, its own share
 *                                                   included
 *   all_to_all                                      what each rank has for all, itself included
 *   halo                                            a message to the next rank; that to the one before is
 *                                                   `bytes_back`. Ranks exchange one with each
 *                                                   neighbour, the first and last with one
 *   shift                                           one message; each rank sends one to the next
 *                                                   rank, the last one to the first
 * Where bytes do not divide, the first shares are a byte longer. The additions of reductions take
 * no time.
 *
 *   algorithm     collectives                                        rounds
 *   ring          all_reduce                                         2 (p - 1)
 *                 reduce_scatter, all_gather, all_to_all (pairwise)  p - 1
 *                 broadcast, reduce (a chain, in k chunks)           p - 2 + k
 *                 shift                                              1
 *   ring_per_nic  all_reduce, reduce_scatter, all_gather, broadcast, reduce over nodes with several
 *                 NICs: a ring for each NIC at once, with 1 / NICs of the bytes; rounds as of ring
 *   ring_per_link the same over GPUs with links to each other: rings that together use as many of
 *                 the links as they can, both ways (link-rings.h), with a share of the bytes
 *                 each; rounds as of ring
 *   halving       all_reduce of any p, reduce_scatter and all_gather of p = 2^n: recursive halving,
 *                 then doubling; 2 log2 p, two more for the ranks beyond 2^n
 *   tree          all_reduce, reduce, broadcast: two binary trees, each rank a leaf in one of them,
 *                 with half of the vector each, in k chunks
 *   hierarchical  all_reduce: to one rank of each node by a chain in k chunks, a ring of those, back
 *   segmented     all_reduce: reduce-scatter in each node, a ring for each rank of a node with its
 *                 peers in the other nodes, all at once, all-gather in each node
 *   direct        broadcast, reduce, scatter, gather, all_to_all, halo, shift: all messages at once
 *   once_per_node all_to_all of copies of tokens: of a token's k copies, which go to k different
 *                 ones of E experts that are equally likely, a rank gets one at most, and so does the
 *                 network of each node, through the rank with the sender's place in it, which hands
 *                 it on. Ranks with e of the experts get all tokens but C(E - e, k) / C(E, k) of
 *                 them: a rank sends as much to each other node with e = E g / p for g ranks in
 *                 each, and with e = E / p to each rank of its own node for each node's tokens.
 *                 What is handed on follows chunk by chunk: one round. Sums on the way back are as
 *                 many bytes (DeepEP, deepseek-ai/DeepEP, csrc/kernels/internode.cu; HybridEP of
 *                 Megatron Core)
 *
 * All rings of ring_per_nic go from node to node, each through the ranks of a node from another one
 * on, so that each enters and leaves by a NIC of its own. Where the number of nodes is even, every
 * second node is passed the other way round, and a ring leaves a node by the NIC by which it enters
 * the next: it stays on its rail, as NCCL's alternating rings do.
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
    uint32_t chunks; /* k above, >= 1 */
    uint32_t
        node_ranks; /* ranks 0 .. node_ranks - 1 share a node, the next ones another, ...; 0: not
                          * known, or not so regular */
    uint32_t rings; /* NICs that the ranks of a node use; 0: not known, or one port is assumed */
    const cs_link_rings *links; /* over the links of the ranks to each other; or NULL */
    bool links_are_usual;       /* these are taken where nothing else is asked for */
    uint32_t copies;  /* of all_to_all: of each token among what a rank has; 0: it has no tokens */
    uint32_t experts; /* of all ranks, to which the copies of a token go, one each */
} cs_collective;

typedef struct cs_send {
    uint32_t round, from, to;
    int64_t offset, bytes; /* of the vector; all_to_all: of the sender's vector */
    bool reduce;           /* is added to what the receiver has, else replaces it */
} cs_send;

/* False ends the walk. */
typedef bool cs_send_function(void *context, const cs_send *send);

typedef struct cs_algorithm {
    const char *name, *doc;
    const char *needs; /* what it fits, for messages */
    bool (*fits)(const cs_collective *collective);
    bool (*uses_chunks)(const cs_collective *collective);
    uint64_t (*count)(const cs_collective *collective); /* messages */
    /* How many rounds there are, if all have the same messages where the bytes divide by the ranks:
     * the first one then stands for all; 0, or no function: they differ. */
    uint32_t (*alike)(const cs_collective *collective);
    /* All messages, by rounds. */
    bool (*walk)(const cs_collective *collective, cs_send_function *visit, void *context);
} cs_algorithm;

/* All algorithms, ended by NULL; and the one of that name, or NULL. */
extern const cs_algorithm *const cs_algorithms[];
const cs_algorithm *cs_algorithm_find(const char *name);

/* As the member `alike`; 0 also where the bytes do not divide. */
uint32_t cs_algorithm_alike(const cs_algorithm *algorithm, const cs_collective *collective);

/* Whether the cost can be told from one round, however many messages there are: what shares the
 * bytes out rounds them up. Others have to be walked through. */
bool cs_algorithm_is_short(const cs_algorithm *algorithm, const cs_collective *collective);

/* The bytes that all ranks send, in all. */
double cs_algorithm_bytes(const cs_algorithm *algorithm, const cs_collective *collective);

/* What is taken when nothing else is asked for: the first of ring_per_nic, ring_per_link (where
 * that is usual), ring and direct that fits; of an all_to_all direct, for NCCL's are grouped sends
 * and receives, all posted at once, but once_per_node of one with copies of tokens. */
const cs_algorithm *cs_algorithm_usual(const cs_collective *collective);

#endif
