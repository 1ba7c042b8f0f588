/* Compares two results files: a prediction and its measurement; or two simulations, or two
 * measurements, side by side.
 *
 * The error of a figure is predicted / measured - 1: positive where the prediction is too large. Of
 * two files side by side neither is the reference: the change of a figure is second / first - 1.
 * They may be of different schedules, models and platforms; devices that only one of them has lack
 * the other's figures.
 *
 * Tasks are grouped by what they are part of (the column `origin` of /tasks): a prediction may
 * have a collective as the transfers that it was lowered to, a measurement as one task of each
 * member, and nothing says which tasks are one collective. So all collectives of a kind count once
 * for each stage and micro-batch, with the time in which any of their tasks is under way.
 *
 * Peaks of memory are compared as sums. A measurement knows by category only what is resident; the
 * rest of what a device holds behind a task is under `activations`, and what the task holds besides
 * while it runs is under `workspace`.
 */
#ifndef CS_COMPARE_COMPARE_RUNS_H
#define CS_COMPARE_COMPARE_RUNS_H

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/run/figures.h"

#include <stdbool.h>
#include <stdint.h>

/* NaN where a file does not have it. */
typedef struct cs_compared {
    double first, second; /* predicted, measured */
} cs_compared;

/* NaN where either is not known, or the figure that it is a share of is not above 0. */
double cs_compared_error(cs_compared figure);
double cs_compared_change(cs_compared figure);

/* A main figure of both. */
typedef struct cs_compared_figure {
    const cs_run_figure *figure;
    cs_compared value;
} cs_compared_figure;

/* Where the figures come from. */
typedef struct cs_compared_file {
    const char *path, *name, *schedule, *topology;
    uint32_t out_of_memory; /* devices */
} cs_compared_file;

typedef struct cs_compared_kind {
    const char *kind;
    cs_compared number, total, median; /* tasks; s; s */
} cs_compared_kind;

typedef struct cs_compared_device {
    cs_compared peak;     /* bytes */
    cs_compared *at_peak; /* per category: bytes when the peak is first reached */
} cs_compared_device;

/* NULL where a file does not have it. */
typedef struct cs_compared_text {
    const char *first, *second;
} cs_compared_text;

typedef struct cs_compared_run {
    const char *name;  /* of the measured file's scenario */
    bool side_by_side; /* of two simulations, or two measurements */
    cs_compared_file files[2];
    cs_compared_text sharing, algorithms; /* of links, of collectives */
    cs_compared iteration;                /* its time, s */
    cs_compared_figure *figures;
    cs_compared_kind *kinds;
    cs_compared_device *devices;
    const char *const *categories;
    const char *const *notes; /* how the two scenarios differ; a sentence each */
    uint32_t n_figures, n_kinds, n_devices, n_categories, n_notes;
    cs_arena arena;
} cs_compared_run;

/* CS_INVALID: a file that is not a results file; a first one that was measured and a second one
 * that was simulated; a prediction and a measurement of different schedules, models (layers with
 * their weights), or numbers of devices. */
CS_MUST_CHECK cs_status cs_compare_runs(const char *predicted, const char *measured,
                                        cs_compared_run *comparison, cs_error *error);
void cs_compare_runs_finish(cs_compared_run *comparison);

#endif
