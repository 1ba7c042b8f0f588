/* Lowering: collectives become transfers.
 *
 * A collective is replaced by the messages of an algorithm (algorithms.h). Each is a transfer over
 * its route, and they compete with each other and with all other traffic on the links. If that
 * would be too many messages, the collective becomes one delay instead. It begins when all ranks
 * are ready and takes as long as the collective takes when nothing else runs (cost.h), computed
 * either with contention among its own messages or by the alpha-beta model, which has none. A delay
 * puts no bytes on links.
 *
 * A member of a collective is entered before its rank's first message and left once its rank has
 * received and sent everything. A rank that receives before it sends, or ends with several
 * messages, gets a transfer of no bytes to itself there, which takes no time.
 *
 * A member's effects at its start occur when its own dependencies are met, whether or not the other
 * ranks are ready. Its effects at its end occur when it is left: with flows when its rank has
 * finished, with a delay when the delay ends. Transfers have the purpose of their collective.
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

/* Cost of an all_to_all with once_per_node between nodes, as one delay. */
typedef struct cs_dispatch_cost {
    double reached; /* fraction of the links' bandwidth, in (0, 1] */
    cs_time start;  /* start-up time, added for any number of bytes */
} cs_dispatch_cost;

/* Cache of collectives' costs on one platform, shared by all graphs whose options name it.
 * Thread-safe. The platform must outlive it. */
typedef struct cs_price_memory cs_price_memory;
cs_price_memory *cs_price_memory_create(
    const cs_platform *platform); /* NULL when memory runs out */
void cs_price_memory_destroy(cs_price_memory *memory);

typedef struct cs_lower_options {
    uint32_t algorithm; /* 0: auto, 1: usual, else position in cs_algorithms + 2 */
    /* algorithm for sums of gradients; 0: same as `algorithm`, else 1 + a value as in
     * `algorithm` */
    uint32_t gradients;
    uint32_t chunks;       /* chunks of chains and trees; 0: the best of 1, 4, 16 and 64 */
    uint32_t fidelity;     /* cs_fidelity */
    uint32_t order;        /* cs_rank_order */
    uint32_t sharing;      /* link sharing used for delays; 0: as the platform, 1: max_min */
    double tensor_overlap; /* fraction hidden by products, of all but the first chunk */
    /* fraction of experts' all_to_alls hidden by layers of another micro-batch; NaN: the schedule
     * decides */
    double expert_overlap;
    cs_reached reached; /* fraction of the links' bandwidth that delays reach */
    /* fraction between nodes; merged into `reached` after reading; NaN: not given */
    double network_reached;
    cs_time start; /* start-up time added to each delay */
    /* values for once_per_node that replace `reached` and `start`; or NULL */
    cs_dispatch_cost *dispatch;
    /* cs_nccl_generation: delays follow NCCL's model for it; CS_NCCL_NONE: they do not */
    uint32_t nccl;
    uint32_t nccl_algorithm; /* 0: NCCL's own choice; else 1 + cs_nccl_algorithm */
    cs_time network_latency; /* with nccl: added to the latency of a step over InfiniBand */
    /* copies of a token in experts' all_to_alls that send it to a node once; 0: each copy is sent
     * separately */
    uint32_t copies;
    uint32_t experts;       /* number of experts that receive the copies; >= copies */
    uint32_t most_flows;    /* "auto" uses flows up to this number of messages in the whole graph */
    cs_given_levels *given; /* levels stated by the scenario, or NULL */
    cs_alpha_beta levels[CS_N_LEVELS]; /* levels of the alpha-beta model; bandwidth 0: not given */
    const cs_measured_collectives *measured; /* measured times, used for delays; or NULL */
    /* file that the options came from, for messages; or NULL */
    const char *file;
    cs_price_memory *memory; /* cache of costs; or NULL */
} cs_lower_options;

/* Fields of the options, of one level, and of dispatch, for scenarios and documentation. */
extern const cs_field cs_lower_fields[];
extern const cs_field cs_lower_level_fields[];
extern const cs_field cs_lower_dispatch_fields[];

/* Reads a scenario's section; `value` may be NULL. */
CS_MUST_CHECK cs_status cs_lower_read(const cJSON *value, const cs_json_place *place,
                                      cs_arena *arena, cs_lower_options *options, cs_error *error);

/* Kind of collective that has a computed delay because no measurement covers it. */
typedef struct cs_unmeasured {
    cs_kind kind;
    bool network;
    uint32_t ranks;
    uint64_t count;
} cs_unmeasured;

enum { CS_UNMEASURED_MAX = 16 };

/* Counts and choices of a lowering, for the report. */
typedef struct cs_lower_report {
    uint64_t n_collectives, n_flows; /* n_flows: messages of the algorithms, simulated or not */
    /* Bytes sent by all devices, by purpose, including devices that others stand for in a folded
     * graph. */
    double moved[CS_N_PURPOSES];
    cs_fidelity fidelity; /* fidelity used; never CS_FIDELITY_AUTO */
    char algorithms[96];  /* names of the algorithms, such as "ring, direct" */
    bool beside;          /* whether delays include contention with other groups of a family */
    /* Folded graphs: why devices differ from the device that stands for them on this platform, in
     * which case all are as slow as the slowest; "": they do not differ. */
    char unlike[192];
    /* whether a default ring uses one NIC although nodes have several, because nodes differ */
    bool one_nic;
    /* If measured times were given and collectives are delays: */
    /* number of collectives by NCCL's choice */
    uint64_t nccl[CS_NCCL_ALGORITHMS][CS_NCCL_PROTOCOLS];
    uint64_t n_measured; /* collectives with a measured time */
    /* collectives among n_measured that exceed the largest measured size */
    uint64_t n_extrapolated;
    /* number of distinct unmeasured collectives; the first CS_UNMEASURED_MAX are listed */
    uint32_t n_unmeasured;
    cs_unmeasured unmeasured[CS_UNMEASURED_MAX];
} cs_lower_report;

/* Makes a graph of computations and transfers only. `graph` is consumed and empty afterwards;
 * without collectives it is moved unchanged. The platform is asked for routes if a choice depends
 * on them. `report` may be NULL.
 *
 * Collectives inside series become delays, so a graph with series needs a fidelity without flows.
 * The report does not include them. */
CS_MUST_CHECK cs_status cs_lower_with(cs_graph *graph, const cs_platform *platform,
                                      const cs_lower_options *options, cs_graph *lowered,
                                      cs_lower_report *report, cs_error *error);

/* Checks that the named algorithm fits every collective of the graph; lowers nothing. CS_INVALID
 * otherwise, with a message that names the algorithm and those that would fit. */
CS_MUST_CHECK cs_status cs_lower_check(const cs_graph *graph, const cs_platform *platform,
                                       const cs_lower_options *options, cs_error *error);

/* Whether collectives over directly linked GPUs use rings over these links by default, given these
 * options. */
bool cs_lower_takes_links(const cs_lower_options *options);

const char *cs_fidelity_name(cs_fidelity fidelity);

/* Lowers with the default algorithms of a platform without nodes (ring, or direct where a
 * collective has no ring), as flows, with ranks in the given order. */
CS_MUST_CHECK cs_status cs_lower(cs_graph *graph, cs_graph *lowered, cs_error *error);

#endif
