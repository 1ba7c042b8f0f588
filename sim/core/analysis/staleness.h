/* Age of the weights that forwards and backwards read, from the versions of a trace.
 *
 * Gradient delay. Mini-batch b's update of a slot makes version m. Without delay its gradient would
 * be computed from version m - 1. If its backward read version r, the delay is m - 1 - r updates.
 * (Negative: it read its own update or a later one.) If micro-batches read different versions, the
 * oldest counts. Messages that bring weights to a slot are not updates; there, m is the version
 * that the mini-batch's update made on another slot of the stage.
 *
 * Mean gradient delay. Each backward in the middle half of the run counts once, with the delay m -
 * 1 - r of the version r that it read: the mean over mini-batches, micro-batches and stages,
 * whatever their sizes. The rules of Fournier and Oyallon (Cyclic Data Parallelism, arXiv
 * 2403.08837, equations CDP, CDP-v1 and CDP-v2) give a delay of 0 or 1 to each pair of a
 * micro-batch and a stage; the mean is then the share of delayed pairs.
 *
 * Version difference (Dutta et al., TiMePReSt, arXiv 2410.14312). For mini-batch k = 1, 2, ...: k
 * minus the newest mini-batch whose update is in the version that its backward on the last stage
 * read, or minus 0 for the initial version. It is 1 in a schedule without staleness. Replicas of a
 * stage may make one version from several mini-batches.
 *
 * Sequences. An update propagates from a mini-batch to each mini-batch whose backward on the last
 * stage reads the version where this update is the newest; or, by forward as well, to each
 * mini-batch whose forward on the first stage reads that version. Mini-batches linked in this way,
 * directly or not, form a sequence. Initial weights link nothing.
 *
 * Steady. A value per mini-batch is steady if it is constant over the middle half of the run; a
 * slot's value, over the mini-batches there that used the slot, if any. */
#ifndef CS_ANALYSIS_STALENESS_H
#define CS_ANALYSIS_STALENESS_H

#include "sim/core/trace/trace.h"

/* Value of a mini-batch that did not get far enough. */
#define CS_STALENESS_NONE INT64_MIN

/* Versions that the forwards, or the backwards, of a mini-batch read; CS_NONE: none. */
typedef struct cs_version_range {
    uint32_t oldest, newest;
} cs_version_range;

/* One mini-batch on one slot. */
typedef struct cs_staleness_row {
    uint32_t mini_batch, slot, stage, device;
    uint32_t
        made; /* first version made by its updates, here or, if messages bring versions, on another
               * slot of the stage; or CS_NONE */
    cs_version_range forward, backward;
} cs_staleness_row;

typedef struct cs_steady {
    int64_t value; /* value at the beginning of the middle half; may be CS_STALENESS_NONE */
    bool steady;
} cs_steady;

typedef struct cs_slot_staleness {
    uint32_t stage, device;
    uint32_t versions_made, peak_versions;
    cs_steady gradient_delay; /* delay of the versions that backwards read */
    cs_steady forward_delay;  /* delay of the versions that forwards read */
    int64_t max_gradient_delay;
    int64_t sum_gradient_delay; /* sum over the backwards in the middle half */
    uint64_t n_backwards;       /* number of these backwards, except where their mini-batch made no
                                 * version */
} cs_slot_staleness;

/* A mini-batch. */
typedef struct cs_batch_staleness {
    int64_t version_difference; /* or CS_STALENESS_NONE */
    uint32_t by_backward;       /* its sequence; sequences are numbered in order of their first
                                 * member */
    uint32_t by_both;
} cs_batch_staleness;

/* Empty if the trace has no versions. */
typedef struct cs_staleness {
    uint32_t n_batches, n_slots;
    cs_staleness_row *rows; /* by mini-batch, then by slot: n_batches * n_slots */
    cs_slot_staleness *slots;
    cs_batch_staleness *batches;
    cs_steady version_difference;
    uint32_t n_by_backward, n_by_both; /* number of sequences */
} cs_staleness;

/* Accepts a zeroed value. */
void cs_staleness_finish(cs_staleness *staleness);

/* Finds the staleness of all mini-batches. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_staleness_find(const cs_graph *graph, const cs_trace *trace,
                                          cs_staleness *staleness, cs_error *error);

/* Returns made - 1 - version, or CS_STALENESS_NONE if either is missing. */
int64_t cs_staleness_delay(uint32_t made, uint32_t version);

/* Return the mean gradient delay of a slot; of all slots on a device, or on all devices (CS_NONE).
 * NaN without a backward in the middle half. */
double cs_staleness_mean_of_slot(const cs_slot_staleness *slot);
double cs_staleness_mean(const cs_staleness *staleness, uint32_t device);

#endif
