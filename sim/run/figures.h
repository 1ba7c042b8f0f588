/* The figures of a run, each defined once: key, label, unit, and how it is computed. What prints or
 * stores a figure (JSON, results files, sweeps, repeated runs, the library) takes it from here.
 *
 * To add one: a row in figures.c.
 */
#ifndef CS_RUN_FIGURES_H
#define CS_RUN_FIGURES_H

#include "sim/run/simulate.h"

/* What a figure is about. Rows of one scope follow each other in the table. */
typedef enum cs_scope {
    CS_SCOPE_SCENARIO, /* what was asked for */
    CS_SCOPE_RUN,      /* what came of it */
    CS_SCOPE_PLAN,     /* the plan that a planner made for it */
    CS_SCOPE_DEVICE,   /* one device */
} cs_scope;

/* What figures are computed from. */
typedef struct cs_outcome {
    const cs_scenario *scenario;
    const cs_simulation *simulation;
    uint32_t device; /* of CS_SCOPE_DEVICE only */
} cs_outcome;

typedef struct cs_run_figure {
    const char *key;   /* in JSON, results files and tables */
    const char *label; /* for people */
    const char
        *unit; /* of SI, "bytes", "samples/s"...; "1" of a number, a fraction and a boolean */
    double (*get)(const cs_outcome *outcome); /* NaN: not known; a boolean is 0 or 1 */
    bool (*given)(const cs_outcome *outcome); /* whether this run has it; NULL: each has */
    cs_scope scope;
    bool boolean;
} cs_run_figure;

/* All rows, ended by {0}. */
extern const cs_run_figure cs_run_figures[];

/* NULL: there is none. A key is that of one row only. */
const cs_run_figure *cs_run_figure_find(const char *key);

/* Whether the run has the figure. */
bool cs_run_figure_given(const cs_run_figure *figure, const cs_outcome *outcome);

/* Of a device's figure the largest over all of them, whatever outcome->device says. */
double cs_run_figure_value(const cs_run_figure *figure, const cs_outcome *outcome);

#endif
