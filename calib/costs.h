/* Costs: measured times of a device and its links, as a file that scenarios use.
 *
 * Five tables; each entry refers to its source:
 *   compute     times of operators of a network, by key (sim/model/op-shape.h)
 *   memory      memory that the device held while a network was trained
 *   network     times of collectives and messages by size: regimes of alpha + beta * bytes
 *   bandwidths  of the device's memory and of copies
 *   overheads   any other cost of an event, by name ("task": between two tasks of a replay)
 *
 * Costs are built by adding entries (from measurements: calib/fit.h computes regimes and confidence
 * intervals; from foreign logs: calib/import.h; from a file), and can be merged. Format of the
 * file, with an example: docs/how-to/measured-costs.md.
 */
#ifndef CS_CALIB_COSTS_H
#define CS_CALIB_COSTS_H

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/base/json.h"

#include <stdbool.h>
#include <stdint.h>

/* Source of measurements. Texts are never NULL; "" means unknown (not allowed for source, device
 * and date). */
typedef struct cs_cost_source {
    const char *source;    /* command line, or tool and imported file */
    const char *device;    /* "NVIDIA H100 80GB HBM3" */
    const char *driver;    /* "535.104.05" */
    const char *libraries; /* "cuDNN 8.9.2, cuBLAS 12.2.5" */
    const char *clock;     /* clock rates: "SM 1980 MHz, memory 2619 MHz" */
    const char *date;      /* YYYY-MM-DD */
    const char *notes;
} cs_cost_source;

/* Median of repeated timings, with the interval that contains the true median with a confidence of
 * 95 %. */
typedef struct cs_cost_timing {
    double median, low, high; /* s, 0 <= low <= median <= high */
    uint32_t samples;         /* 0: not measured */
} cs_cost_timing;

enum { CS_COST_PASSES = 4 };

/* "forward", "backward_input", "backward_weight", "update", indexed by cs_pass; NULL-terminated. */
extern const char *const cs_cost_passes[];

typedef struct cs_cost_compute {
    const char *op;                        /* key of the operator */
    cs_cost_timing passes[CS_COST_PASSES]; /* samples 0: not measured */
    uint32_t pass_sources[CS_COST_PASSES]; /* index in `sources`, if measured */
    int64_t workspace_bytes;               /* the library's, without the tensors of the operator */
    /* maximum live on the device during the operator, including all tensors of the network; 0:
     * unknown */
    int64_t peak_bytes;
    const char *algorithm; /* chosen by the library; "": unknown */
    uint32_t source;       /* index in `sources`: the latest measurement of the key */
} cs_cost_compute;

typedef struct cs_cost_memory {
    const char *network; /* key: "resnet50 n=4 fp32 states=1 image=224" */
    /* maximum live bytes: weights, gradients, states, activations, workspace */
    int64_t peak_bytes;
    int64_t held_bytes; /* maximum, including free blocks that a pool kept for reuse */
    int64_t
        /* other memory in use on the device: context, libraries, other programs; 0: unknown */
        outside_bytes;
    uint32_t source;
} cs_cost_memory;

#define CS_COST_LEVEL_MAP(X)                                                                       \
    X(NODE, "node")       /* all ranks share a node */                                             \
    X(NETWORK, "network") /* ranks in several nodes */

typedef enum cs_cost_level {
#define CS_COST_LEVEL_ENUM(name, text) CS_COST_LEVEL_##name,
    CS_COST_LEVEL_MAP(CS_COST_LEVEL_ENUM)
#undef CS_COST_LEVEL_ENUM
        CS_N_COST_LEVELS
} cs_cost_level;

/* The measured operation; bytes as in sim/core/lower/algorithms.h: all_gather: the total gathered;
 * all_to_all: each rank's data for all ranks; otherwise the whole vector or message. */
#define CS_COST_COLLECTIVE_MAP(X)                                                                  \
    X(SEND, "send")     /* one message, one way */                                                 \
    X(STREAM, "stream") /* per message of a stream of them: alpha is the gap, not the latency */   \
    X(ALL_REDUCE, "all_reduce")                                                                    \
    X(ALL_GATHER, "all_gather")                                                                    \
    X(REDUCE_SCATTER, "reduce_scatter")                                                            \
    X(BROADCAST, "broadcast")                                                                      \
    X(REDUCE, "reduce")                                                                            \
    X(ALL_TO_ALL, "all_to_all")                                                                    \
    X(SCATTER, "scatter")                                                                          \
    X(GATHER, "gather")

typedef enum cs_cost_collective {
#define CS_COST_COLLECTIVE_ENUM(name, text) CS_COST_##name,
    CS_COST_COLLECTIVE_MAP(CS_COST_COLLECTIVE_ENUM)
#undef CS_COST_COLLECTIVE_ENUM
        CS_N_COST_COLLECTIVES
} cs_cost_collective;

extern const char *const cs_cost_collective_names[]; /* NULL-terminated */
extern const char *const cs_cost_level_names[];

/* A value with its 95 % confidence interval; unknown: low 0, high infinite. */
typedef struct cs_cost_interval {
    double value, low, high;
} cs_cost_interval;

bool cs_cost_interval_is_known(const cs_cost_interval *interval);

/* time = alpha + beta * bytes, for messages of `from` bytes up to the next regime's `from`. */
typedef struct cs_cost_regime {
    int64_t from;           /* bytes; the first regime's is 0 */
    cs_cost_interval alpha; /* s, >= 0 */
    cs_cost_interval beta;  /* s per byte, >= 0 */
    double error;           /* root mean square of the relative residuals, without outliers */
    uint32_t points;        /* number of points fitted; duplicates count once */
    uint32_t outliers;      /* points with practically no weight */
} cs_cost_regime;

/* A timing of a message, or the median of several. */
typedef struct cs_cost_point {
    int64_t bytes;
    double seconds;
    double low, high;  /* s: interval of the median, as in cs_cost_timing; both 0: unknown */
    uint32_t samples;  /* 0: unknown */
    double resolution; /* s: rounding step of `seconds`; 0: fine. Not stored in files */
} cs_cost_point;

typedef struct cs_cost_network {
    cs_cost_collective collective;
    cs_cost_level level;
    uint32_t ranks; /* >= 2 */
    uint32_t n_regimes, n_points;
    const cs_cost_regime *regimes; /* at least one, in ascending order of `from` */
    const cs_cost_point *points;   /* measured points, in ascending order of bytes; may be none */
    uint32_t source;
} cs_cost_network;

typedef struct cs_cost_bandwidth {
    const char *kind; /* "device_read_write", "host_to_device", "device_to_host", "peer_to_peer" */
    cs_cost_interval bytes_per_s;
    uint32_t samples;
    uint32_t source;
} cs_cost_bandwidth;

typedef struct cs_cost_overhead {
    const char *kind; /* "task" */
    cs_cost_timing time;
    uint32_t source;
} cs_cost_overhead;

typedef struct cs_costs {
    cs_cost_source *sources;
    cs_cost_compute *compute;
    cs_cost_memory *memory;
    cs_cost_network *network;
    cs_cost_bandwidth *bandwidths;
    cs_cost_overhead *overheads;
    uint32_t n_sources, n_compute, n_memory, n_network, n_bandwidths, n_overheads;
    uint32_t cap_sources, cap_compute, cap_memory, cap_network, cap_bandwidths, cap_overheads;
    cs_arena arena; /* texts, regimes, points */
} cs_costs;

/* ---- life cycle, files ---- */

void cs_costs_init(cs_costs *costs);
void cs_costs_finish(cs_costs *costs); /* accepts zeroed costs */

/* Read costs strictly: unknown and missing keys, wrong types, values out of range, duplicate
 * entries and unordered regimes are errors; several are reported at once. On failure
 * `costs` is unchanged. */
CS_MUST_CHECK cs_status cs_costs_load(const char *path, cs_costs *costs, cs_error *error);
CS_MUST_CHECK cs_status cs_costs_read(const cJSON *root, const cs_json_place *place,
                                      cs_costs *costs, cs_error *error);

/* Returns JSON that cs_costs_read accepts; the caller frees it. NULL if memory runs out. */
cJSON *cs_costs_json(const cs_costs *costs);
/* Saves a file, through a draft; "-" is standard output. */
CS_MUST_CHECK cs_status cs_costs_save(const cs_costs *costs, const char *path, cs_error *error);

/* Adds measured costs to a cost file; creates the file if it does not exist. */
CS_MUST_CHECK cs_status cs_costs_add_to_file(const cs_costs *measured, const char *path,
                                             cs_error *error);

/* ---- building ---- */

/* Each function copies the entry and everything it points to. An existing entry (same key; same
 * collective, level and ranks; same kind) is replaced. CS_NO_MEMORY only. */
CS_MUST_CHECK cs_status cs_costs_add_source(cs_costs *costs, const cs_cost_source *source,
                                            uint32_t *id, cs_error *error);
CS_MUST_CHECK cs_status cs_costs_add_compute(cs_costs *costs, const cs_cost_compute *entry,
                                             cs_error *error);
CS_MUST_CHECK cs_status cs_costs_add_memory(cs_costs *costs, const cs_cost_memory *entry,
                                            cs_error *error);
CS_MUST_CHECK cs_status cs_costs_add_network(cs_costs *costs, const cs_cost_network *entry,
                                             cs_error *error);
CS_MUST_CHECK cs_status cs_costs_add_bandwidth(cs_costs *costs, const cs_cost_bandwidth *entry,
                                               cs_error *error);
CS_MUST_CHECK cs_status cs_costs_add_overhead(cs_costs *costs, const cs_cost_overhead *entry,
                                              cs_error *error);

/* Adds all of `from`, replacing existing entries; entries of operators are replaced pass by pass,
 * because a network's first layer has fewer passes than the same shape elsewhere. */
CS_MUST_CHECK cs_status cs_costs_merge(cs_costs *costs, const cs_costs *from, cs_error *error);

/* ---- look-up ---- */

/* Return NULL if there is no such entry. */
const cs_cost_compute *cs_costs_compute(const cs_costs *costs, const char *op);
const cs_cost_memory *cs_costs_memory(const cs_costs *costs, const char *network);
const cs_cost_network *cs_costs_network(const cs_costs *costs, cs_cost_collective collective,
                                        cs_cost_level level, uint32_t ranks);
const cs_cost_bandwidth *cs_costs_bandwidth(const cs_costs *costs, const char *kind);
const cs_cost_overhead *cs_costs_overhead(const cs_costs *costs, const char *kind);

/* Finds the regime of a message with `bytes` bytes, and its seconds. */
const cs_cost_regime *cs_cost_regime_of(const cs_cost_network *network, int64_t bytes);
double cs_cost_seconds(const cs_cost_network *network, int64_t bytes);

/* ---- bandwidths of collectives ----
 *
 * As nccl-tests defines them (doc/PERFORMANCE.md there): the algorithm bandwidth is bytes / time;
 * the bus bandwidth is the algorithm bandwidth times a factor that makes it the rate of the busiest
 * link for any number of ranks p, so that it can be compared with the hardware's:
 *     all_reduce 2 (p - 1) / p
 *     all_gather, reduce_scatter, all_to_all, scatter, gather (p - 1) / p
 *     send, stream, broadcast, reduce 1
 */
double cs_cost_bus_factor(cs_cost_collective collective, uint32_t ranks);

#endif
