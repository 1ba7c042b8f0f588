/* The lanes of a timeline: of each row of devices one of what it computes and one of what it sends,
 * with sums for when there is more in view than pixels.
 */
#ifndef CS_PLOTS_PAGE_LANES_H
#define CS_PLOTS_PAGE_LANES_H

#include "plots/drawn-run.h"

enum {
    /* A lane with more tasks than this has levels: its time in 1,024 equal bins, in 4,096, ..., up
     * to about as many as tasks. */
    CS_PAGE_LANE_PLAIN = 512,
    CS_PAGE_LANE_BINS = 1024,
    CS_PAGE_LANE_FINER = 4,
};

typedef struct cs_page_lane {
    uint32_t row;
    bool sends;
    uint64_t first, n; /* in `order` */
    uint64_t bin;      /* of the coarsest level; the next one follows it */
    uint32_t n_levels;
} cs_page_lane;

typedef struct cs_page_lanes {
    uint32_t *order; /* ids of the tasks that took time, by lane, start, end and id */
    uint64_t n;
    cs_page_lane *lanes; /* those with tasks */
    uint32_t n_lanes;
    uint8_t *bin_kind; /* per bin: the origin of tasks that has most of its time */
    uint8_t
        *bin_share; /* share of its time that any task takes, in 255ths; overlaps count once more */
    uint64_t n_bins;
} cs_page_lanes;

/* Of a run that was read with its slices. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_page_lanes_make(const cs_drawn_run *run, cs_page_lanes *lanes,
                                           cs_error *error);

/* Accepts zeroed lanes. */
void cs_page_lanes_finish(cs_page_lanes *lanes);

#endif
