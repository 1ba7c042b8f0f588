/* From collectives to transfers.
 *
 * A collective is replaced by the messages of an algorithm (algorithms.h), each a transfer over its
 * route: they compete with each other and with whatever else is on the links. Or, where that would
 * be too many, by one delay that begins when all ranks are there and takes what the collective
 * takes when nothing else runs (cost.h): solved for the links on which its messages meet, or by the
 * alpha-beta model, in which they do not. Its bytes are then on no link.
 *
 * A member of a collective is entered before its rank's first message and left when its rank has
 * received and sent all. A rank that receives before it sends, or ends with many messages, gets a
 * transfer of no bytes to itself, which takes no time, at that end.
 *
 * Effects of a member at its start take place when all is there that it waits for, whether or not
 * the other ranks are; those at its end when it is left: with flows as soon as its rank is
 * through, with a delay when that is over. Transfers have the purpose of the collective that they
 * are made of.
 */
#ifndef CS_LOWER_LOWER_H
#define CS_LOWER_LOWER_H

#include "sim/base/field.h"
#include "sim/core/lower/cost.h"
#include "sim/core/lower/measured.h"
#include "sim/core/lower/nccl.h"
#include "sim/core/lower/reached.h"

typedef enum cs_fidelity {
    CS_FIDELITY_AUTO,
    CS_FIDELITY_FLOW,
    CS_FIDELITY_ANALYTIC,
    CS_FIDELITY_ALPHA_BETA
} cs_fidelity;

typedef enum cs_rank_order { CS_ORDER_GIVEN, CS_ORDER_FOUND, CS_ORDER_AUTO } cs_rank_order;

typedef struct cs_given_levels {
    cs_alpha_beta *level[CS_N_LEVELS]; /* NULL: not given */
} cs_given_levels;

/* What an all_to_all by once_per_node between nodes takes as one delay. */
typedef struct cs_dispatch_cost {
    double reached; /* of the links' bandwidths, > 0, at most 1 */
    cs_time start;  /* whatever its bytes */
} cs_dispatch_cost;

/* Remembers what collectives cost on a platform, which must live as long, for all graphs whose
 * options name it, in several threads at a time. */
typedef struct cs_price_memory cs_price_memory;
cs_price_memory *cs_price_memory_create(
    const cs_platform *platform); /* NULL when memory runs out */
void cs_price_memory_destroy(cs_price_memory *memory);

typedef struct cs_lower_options {
    uint32_t algorithm;    /* 0: auto, 1: usual, else the position in cs_algorithms + 2 */
    uint32_t gradients;    /* of sums of gradients: 0: as `algorithm`, else 1 + what stands there */
    uint32_t chunks;       /* of chains and trees; 0: the best of 1, 4, 16 and 64 */
    uint32_t fidelity;     /* cs_fidelity */
    uint32_t order;        /* cs_rank_order */
    uint32_t sharing;      /* of links, by delays: 0: the platform's, 1: max_min */
    double tensor_overlap; /* of all but the first chunk, hidden by products */
    double expert_overlap; /* of all_to_alls of experts, hidden by another micro-batch's layers;
                            * read as NaN where it is left to the schedule */
    cs_reached reached;    /* of the links' bandwidths, by delays */
    double network_reached;     /* part of `reached` once it is read; NaN: not given */
    cs_time start;              /* added to each delay */
    cs_dispatch_cost *dispatch; /* in place of these two; or NULL */
    uint32_t nccl;              /* cs_nccl_generation whose latencies and protocols delays have */
    uint32_t nccl_algorithm;    /* 0: as NCCL picks; else 1 + cs_nccl_algorithm */
    cs_time network_latency;    /* with nccl: added to InfiniBand's latency of a step */
    uint32_t copies;     /* of a token, in all_to_alls of experts that send it once to a node; 0:
                            * each copy is sent by itself */
    uint32_t experts;    /* with copies: to which they go, one each; as many as they are or more */
    uint32_t most_flows; /* up to which the fidelity "auto" takes flows, of the whole graph */
    cs_given_levels *given;            /* by the scenario, or NULL */
    cs_alpha_beta levels[CS_N_LEVELS]; /* those that are given; of others the bandwidth is 0 */
    const cs_measured_collectives *measured; /* times of delays, where there are any; or NULL */
    const char *file;                        /* that the options are from, for messages; or NULL */
    cs_price_memory *memory;                 /* remembers costs for other graphs; or NULL */
} cs_lower_options;

/* For scenarios and their documentation: of the options, of one level, and of dispatch. */
extern const cs_field cs_lower_fields[];
extern const cs_field cs_lower_level_fields[];
extern const cs_field cs_lower_dispatch_fields[];

/* Reads the section of a scenario; `value` may be NULL. */
CS_MUST_CHECK cs_status cs_lower_read(const cJSON *value, const cs_json_place *place,
                                      cs_arena *arena, cs_lower_options *options, cs_error *error);

/* A collective whose delay was computed although there are measured ones. */
typedef struct cs_unmeasured {
    cs_kind kind;
    bool network;
    uint32_t ranks;
    uint64_t count;
} cs_unmeasured;

enum { CS_UNMEASURED_MAX = 16 };

/* What was done, for the summary. */
typedef struct cs_lower_report {
    uint64_t n_collectives, n_flows; /* n_flows: of the algorithms, whether simulated or not */
    /* Bytes that all devices send, those that are stood for in a folded graph included; by
     * messages, whether simulated or not. */
    double moved[CS_N_PURPOSES];
    cs_fidelity fidelity; /* that was taken: not CS_FIDELITY_AUTO */
    char algorithms[96];  /* "ring, direct" */
    bool beside;          /* delays count messages of other groups of a family */
    /* Of a folded graph: why what is stood for is not alike on this platform, so that all are
     * taken to be as slow as the slowest; "": it is. */
    char unlike[192];
    bool one_nic; /* a usual ring takes one NIC of nodes with several, for these are unlike */
    /* where measured times were given and collectives are delays: */
    uint64_t nccl[CS_NCCL_ALGORITHMS][CS_NCCL_PROTOCOLS]; /* collectives by what NCCL picks */
    uint64_t n_measured;     /* collectives that take a measured time */
    uint64_t n_extrapolated; /* of them, those of more bytes than any that was measured */
    uint32_t n_unmeasured;   /* distinct ones without; at most those that fit are listed */
    cs_unmeasured unmeasured[CS_UNMEASURED_MAX];
} cs_lower_report;

/* A graph of compute and transfers only. When `graph` has no collectives it is moved as it is;
 * otherwise it is consumed as well: `graph` is empty afterwards in both cases. The platform is
 * asked for routes where a choice depends on them. Nobody need want the report: NULL.
 *
 * Parts of series that are collectives become delays: with series in the graph the fidelity must be
 * one that has no flows. They are not in the report. */
CS_MUST_CHECK cs_status cs_lower_with(cs_graph *graph, const cs_platform *platform,
                                      const cs_lower_options *options, cs_graph *lowered,
                                      cs_lower_report *report, cs_error *error);

/* CS_INVALID, naming it and those that would, where the named algorithm does not fit a collective
 * of the graph. Nothing is lowered. */
CS_MUST_CHECK cs_status cs_lower_check(const cs_graph *graph, const cs_platform *platform,
                                       const cs_lower_options *options, cs_error *error);

/* Whether collectives over GPUs with links to each other go by rings over these, for nothing else
 * is asked for. */
bool cs_lower_takes_links(const cs_lower_options *options);

const char *cs_fidelity_name(cs_fidelity fidelity);

/* With the usual algorithms of a platform without nodes (ring, or direct for what has no ring), as
 * flows, ranks as given. */
CS_MUST_CHECK cs_status cs_lower(cs_graph *graph, cs_graph *lowered, cs_error *error);

#endif
