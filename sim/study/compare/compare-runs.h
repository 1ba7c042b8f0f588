/* Compares two results files: a prediction and its measurement, or two simulations or two
 * measurements side by side.
 *
 * The error of a metric is predicted / measured - 1: positive if the prediction is too large. Side
 * by side neither file is the reference: the change of a metric is second / first - 1. The files
 * may have different schedules, models and platforms; a device of only one file lacks the other's
 * values.
 *
 * Tasks are grouped by the column `origin` of /tasks. A prediction may contain a collective as the
 * transfers it was lowered to, a measurement as one task per member, and neither states which tasks
 * form one collective. So all collectives of a kind count once for each stage and micro-batch, with
 * the time during which any of their tasks runs.
 *
 * Peaks of memory are compared as sums. A measurement knows categories only for resident memory;
 * everything else that a device holds after a task counts as `activations`, and additional memory
 * during the task as `workspace`.
 */
#ifndef CS_COMPARE_COMPARE_RUNS_H
#define CS_COMPARE_COMPARE_RUNS_H

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/run/figures.h"

#include <stdbool.h>
#include <stdint.h>

/* NaN if a file lacks the value. */
typedef struct cs_compared {
    double first, second; /* predicted, measured */
} cs_compared;

/* NaN if either value is unknown, or the denominator is not above 0. */
double cs_compared_error(cs_compared figure);
double cs_compared_change(cs_compared figure);

/* A main metric in both files. */
typedef struct cs_compared_figure {
    const cs_run_figure *figure;
    cs_compared value;
} cs_compared_figure;

/* Origin of the metrics. */
typedef struct cs_compared_file {
    const char *path, *name, *schedule, *topology;
    uint32_t out_of_memory; /* number of devices out of memory */
} cs_compared_file;

typedef struct cs_compared_kind {
    const char *kind;
    cs_compared number, total, median; /* number of tasks; total time, s; median time, s */
} cs_compared_kind;

typedef struct cs_compared_device {
    cs_compared peak;     /* bytes */
    cs_compared *at_peak; /* per category: bytes when the peak is first reached */
} cs_compared_device;

/* NULL if a file lacks the text. */
typedef struct cs_compared_text {
    const char *first, *second;
} cs_compared_text;

typedef struct cs_compared_run {
    const char *name;  /* name in the measured file's scenario */
    bool side_by_side; /* two simulations or two measurements */
    cs_compared_file files[2];
    cs_compared_text sharing, algorithms; /* link sharing; algorithms of collectives */
    cs_compared iteration;                /* iteration time, s */
    cs_compared_figure *figures;
    cs_compared_kind *kinds;
    cs_compared_device *devices;
    const char *const *categories;
    const char *const *notes; /* differences of the two scenarios, one sentence each */
    uint32_t n_figures, n_kinds, n_devices, n_categories, n_notes;
    cs_arena arena;
} cs_compared_run;

/* CS_INVALID if a file is not a results file; if the first was measured and the second simulated;
 * or if a prediction and a measurement differ in schedule, model (layers and their weights), or
 * number of devices. */
CS_MUST_CHECK cs_status cs_compare_runs(const char *predicted, const char *measured,
                                        cs_compared_run *comparison, cs_error *error);
void cs_compare_runs_finish(cs_compared_run *comparison);

#endif
