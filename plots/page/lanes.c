#include "plots/page/lanes.h"

#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    cs_time start, end;
    uint32_t row, lane, task;
} entry;

static int by_lane_and_time(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    CS_COMPARE(x->row, y->row);
    CS_COMPARE(x->lane, y->lane);
    CS_COMPARE(x->start, y->start);
    CS_COMPARE(x->end, y->end);
    CS_COMPARE(x->task, y->task);
    return 0;
}

/* What never started, or took no time, cannot be seen. */
static uint64_t collect(const cs_reader_tasks *tasks, const bool *moves, entry *entries)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < tasks->n; i++)
        if (tasks->start[i] >= 0 && tasks->end[i] > tasks->start[i])
            entries[n++] = (entry){tasks->start[i], tasks->end[i], tasks->device[i],
                                   moves[tasks->kind[i]] ? CS_PAGE_LANE_SEND : CS_PAGE_LANE_COMPUTE,
                                   (uint32_t)i};
    qsort(entries, n, sizeof(*entries), by_lane_and_time);
    return n;
}

static bool starts_lane(const entry *entries, uint64_t i)
{
    return i == 0 || entries[i].row != entries[i - 1].row || entries[i].lane != entries[i - 1].lane;
}

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

static void find_lanes(const entry *entries, uint64_t n, cs_page_lanes *lanes)
{
    for (uint64_t i = 0; i < n; i++) {
        if (starts_lane(entries, i))
            lanes->lanes[lanes->n_lanes++] =
                (cs_page_lane){.row = entries[i].row, .lane = entries[i].lane, .first = i};
        lanes->lanes[lanes->n_lanes - 1].n++;
        lanes->order[i] = entries[i].task;
    }
    lanes->n = n;
    for (uint32_t l = 0; l < lanes->n_lanes; l++) {
        cs_page_lane *lane = &lanes->lanes[l];
        lane->bin = lanes->n_bins;
        lane->n_levels = levels_of(lane->n);
        for (uint32_t level = 0; level < lane->n_levels; level++)
            lanes->n_bins += bins_of(level);
    }
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

static void fill_level(const cs_reader_tasks *tasks, const cs_page_lanes *lanes,
                       const cs_page_lane *lane, uint32_t level, cs_time makespan, float *sums)
{
    const uint64_t n_bins = bins_of(level);
    const double scale = (double)n_bins / (double)makespan;
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

static cs_status fill_bins(const cs_reader_tasks *tasks, cs_time makespan, cs_page_lanes *lanes,
                           cs_error *error)
{
    uint32_t most = 0;
    for (uint32_t l = 0; l < lanes->n_lanes; l++)
        most = lanes->lanes[l].n_levels > most ? lanes->lanes[l].n_levels : most;
    if (most == 0)
        return CS_OK;
    float *sums = malloc(bins_of(most - 1) * tasks->n_kinds * sizeof(*sums));
    lanes->bin_kind = malloc(lanes->n_bins);
    lanes->bin_share = malloc(lanes->n_bins);
    const bool room = sums && lanes->bin_kind && lanes->bin_share;
    for (uint32_t l = 0; room && l < lanes->n_lanes; l++)
        for (uint32_t level = 0; level < lanes->lanes[l].n_levels; level++)
            fill_level(tasks, lanes, &lanes->lanes[l], level, makespan, sums);
    free(sums);
    return room ? CS_OK : cs_error_no_memory(error);
}

cs_status cs_page_lanes_make(const cs_reader_tasks *tasks, const bool *moves, cs_time makespan,
                             cs_page_lanes *lanes, cs_error *error)
{
    *lanes = (cs_page_lanes){0};
    entry *entries = malloc((tasks->n + 1) * sizeof(*entries));
    lanes->order = malloc((tasks->n + 1) * sizeof(*lanes->order));
    if (!entries || !lanes->order) {
        free(entries);
        cs_page_lanes_finish(lanes);
        return cs_error_no_memory(error);
    }
    const uint64_t n = collect(tasks, moves, entries);
    uint64_t n_lanes = 0;
    for (uint64_t i = 0; i < n; i++)
        n_lanes += starts_lane(entries, i);
    lanes->lanes = calloc(n_lanes + 1, sizeof(*lanes->lanes));
    if (lanes->lanes)
        find_lanes(entries, n, lanes);
    free(entries);
    const cs_status status =
        lanes->lanes ? fill_bins(tasks, makespan, lanes, error) : cs_error_no_memory(error);
    if (status != CS_OK)
        cs_page_lanes_finish(lanes);
    return status;
}

void cs_page_lanes_finish(cs_page_lanes *lanes)
{
    free(lanes->order);
    free(lanes->lanes);
    free(lanes->bin_kind);
    free(lanes->bin_share);
    *lanes = (cs_page_lanes){0};
}
