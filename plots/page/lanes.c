#include "plots/page/lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t bins_of(uint32_t level)
{
    return (uint64_t)CS_PAGE_LANE_BINS << 2 * level;
}

/* Coarse to fine; the finest has about a bin per task. */
static uint32_t levels_of(uint64_t n)
{
    if (n <= CS_PAGE_LANE_PLAIN)
        return 0;
    uint32_t levels = 1;
    while (bins_of(levels) <= n)
        levels++;
    return levels;
}

/* Lists the slices of a row on one side: a lane, if there are any. A task that took no time cannot
 * be seen. */
static void add_lane(const cs_drawn_run *run, uint32_t row, uint32_t side, cs_page_lanes *lanes)
{
    const cs_drawn_row *of = &run->rows[row];
    cs_page_lane lane = {
        .row = row, .sends = side == CS_DRAWN_SENDS, .first = lanes->n, .bin = lanes->n_bins};
    for (uint64_t i = of->first; i < of->first + of->n; i++) {
        const cs_drawn_slice *slice = &run->slices[i];
        if (slice->side == side &&
            run->tasks.is.end[slice->task] > run->tasks.is.start[slice->task])
            lanes->order[lanes->n++] = slice->task;
    }
    lane.n = lanes->n - lane.first;
    if (lane.n == 0)
        return;
    lane.n_levels = levels_of(lane.n);
    for (uint32_t level = 0; level < lane.n_levels; level++)
        lanes->n_bins += bins_of(level);
    lanes->lanes[lanes->n_lanes++] = lane;
}

/* Adds what [start, end) of a task takes of each bin, in bins. `sums` has n_kinds per bin. */
static void add_task(double start, double end, uint64_t n_bins, uint32_t kind, uint32_t n_kinds,
                     float *sums)
{
    uint64_t bin = (uint64_t)start;
    for (double from = start; from < end && bin < n_bins; bin++) {
        const double until = fmin(end, (double)(bin + 1));
        sums[bin * n_kinds + kind] += (float)(until - from);
        from = until;
    }
}

static void sum_up(const float *sums, uint64_t n_bins, uint32_t n_kinds, uint8_t *kind,
                   uint8_t *share)
{
    for (uint64_t b = 0; b < n_bins; b++) {
        const float *of = sums + b * n_kinds;
        float all = 0;
        kind[b] = 0;
        for (uint32_t k = 0; k < n_kinds; k++) {
            all += of[k];
            if (of[k] > of[kind[b]])
                kind[b] = (uint8_t)k;
        }
        share[b] = (uint8_t)lroundf(255 * fminf(all, 1));
    }
}

static void fill_level(const cs_drawn_run *run, const cs_page_lanes *lanes,
                       const cs_page_lane *lane, uint32_t level, float *sums)
{
    const cs_reader_tasks *tasks = &run->tasks.is;
    const uint64_t n_bins = bins_of(level);
    const double scale = (double)n_bins / (double)run->reader->makespan;
    uint64_t at = lane->bin;
    for (uint32_t before = 0; before < level; before++)
        at += bins_of(before);
    memset(sums, 0, n_bins * tasks->n_kinds * sizeof(*sums));
    for (uint64_t i = lane->first; i < lane->first + lane->n; i++) {
        const uint32_t task = lanes->order[i];
        add_task((double)tasks->start[task] * scale, (double)tasks->end[task] * scale, n_bins,
                 tasks->origin[task], tasks->n_kinds, sums);
    }
    sum_up(sums, n_bins, tasks->n_kinds, lanes->bin_kind + at, lanes->bin_share + at);
}

cs_status cs_page_lanes_make(const cs_drawn_run *run, cs_page_lanes *lanes, cs_error *error)
{
    uint32_t most = 0;
    *lanes = (cs_page_lanes){.order = malloc((run->n_slices + 1) * sizeof(*lanes->order)),
                             .lanes = calloc(2 * run->n_rows + 1, sizeof(*lanes->lanes))};
    for (uint32_t row = 0; lanes->order && lanes->lanes && row < run->n_rows; row++) {
        add_lane(run, row, CS_DRAWN_COMPUTES, lanes);
        add_lane(run, row, CS_DRAWN_SENDS, lanes);
    }
    for (uint32_t l = 0; l < lanes->n_lanes; l++)
        most = lanes->lanes[l].n_levels > most ? lanes->lanes[l].n_levels : most;
    const uint64_t n_sums = most > 0 ? bins_of(most - 1) * run->tasks.is.n_kinds : 0;
    float *sums = malloc(n_sums * sizeof(*sums) + 1);
    lanes->bin_kind = malloc(lanes->n_bins + 1);
    lanes->bin_share = malloc(lanes->n_bins + 1);
    const bool room = lanes->order && lanes->lanes && sums && lanes->bin_kind && lanes->bin_share;
    for (uint32_t l = 0; room && l < lanes->n_lanes; l++)
        for (uint32_t level = 0; level < lanes->lanes[l].n_levels; level++)
            fill_level(run, lanes, &lanes->lanes[l], level, sums);
    free(sums);
    if (room)
        return CS_OK;
    cs_page_lanes_finish(lanes);
    return cs_error_no_memory(error);
}

void cs_page_lanes_finish(cs_page_lanes *lanes)
{
    free(lanes->order);
    free(lanes->lanes);
    free(lanes->bin_kind);
    free(lanes->bin_share);
    *lanes = (cs_page_lanes){0};
}
