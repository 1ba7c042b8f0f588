/* The metrics of a run, each defined once: key, label, unit, how it is computed and where it is
 * shown. Everything that prints or stores metrics (report, JSON, results files, sweeps, repeated
 * runs, comparisons, titles of plots, library) uses this table, in its order.
 *
 * To add a metric, add a row in figures.c. */
#ifndef CS_RUN_FIGURES_H
#define CS_RUN_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Subject of a metric. Rows of the same scope are adjacent in the table. */
typedef enum cs_scope {
    CS_SCOPE_SCENARIO, /* settings */
    CS_SCOPE_RUN,      /* results */
    CS_SCOPE_PLAN,     /* plan made by a planner */
    CS_SCOPE_DEVICE,   /* a device */
} cs_scope;

typedef enum cs_unit {
    CS_UNIT_NUMBER,
    CS_UNIT_FRACTION,
    CS_UNIT_BOOLEAN, /* 0 or 1 */
    CS_UNIT_SECONDS,
    CS_UNIT_BYTES,
    CS_UNIT_SAMPLES,
    CS_UNIT_PARAMETERS,
    CS_UNIT_SAMPLES_PER_S,
    CS_UNIT_TOKENS_PER_S,
    CS_UNIT_FLOP,
    CS_UNIT_FLOP_PER_S,
} cs_unit;

/* Where a metric is shown. JSON, sweeps and the library have all of them. */
enum {
    CS_SHOWN_REPORT = 1, /* on a line of the report, followed by closed forms with the same key */
    CS_SHOWN_JOINED = 2, /* in the report, at the end of the previous row's line */
    CS_SHOWN_MAIN = 4,   /* in repeated runs, comparisons and titles of plots */
    CS_SHOWN_SWEEP = 8,  /* in tables of sweeps, as part of "main" */
    CS_OF_TASKS = 16,    /* requires the individual tasks, which runs with low memory drop */
};

/* Input of metrics. */
typedef struct cs_outcome {
    const struct cs_scenario *scenario;
    const struct cs_simulation *simulation;
    uint32_t device; /* with CS_SCOPE_DEVICE only */
} cs_outcome;

typedef struct cs_run_figure {
    const char *key;   /* in JSON, results files and tables */
    const char *label; /* for reports */
    const char *meaning;
    cs_unit unit;
    double (*get)(const cs_outcome *outcome); /* NaN: not known */
    bool (*given)(const cs_outcome *outcome); /* whether this run has the metric; NULL: always */
    cs_scope scope;
    unsigned shown; /* CS_SHOWN_... */
    /* Writes the text after the value in a report, and returns `text`; NULL: none. */
    const char *(*detail)(const cs_outcome *outcome, char *text, size_t size);
} cs_run_figure;

/* All rows, ended by {0}. */
extern const cs_run_figure cs_run_figures[];

/* Finds the metric with this key; NULL: unknown. Keys are unique. */
const cs_run_figure *cs_run_figure_find(const char *key);

/* Returns the i-th CS_SHOWN_MAIN row, from 0; NULL after the last. Every run has these metrics. */
const cs_run_figure *cs_run_figure_main(uint32_t i);

/* Whether the run has the metric. */
bool cs_run_figure_given(const cs_run_figure *figure, const cs_outcome *outcome);

/* Returns the value of a metric; if it is per device, the largest over all devices (outcome->device
 * is ignored). */
double cs_run_figure_value(const cs_run_figure *figure, const cs_outcome *outcome);

/* Returns "s", "bytes", "samples/s"...; "1" for numbers, fractions and booleans. */
const char *cs_unit_word(cs_unit unit);

/* Returns the suffix of keys with this unit: "_s", "_samples_per_s", "_fraction"; "" for numbers
 * and booleans. */
const char *cs_unit_suffix(cs_unit unit);

/* Formats a value for people: "1.5 ms", "27.27 %", "617.75 samples/s", "yes"; "-" if NaN. Returns
 * `text`. */
char *cs_unit_format(cs_unit unit, double value, char *text, size_t size);

enum { CS_UNIT_TEXT_BYTES = 64 }; /* enough for cs_unit_format */

/* Formats a value with its label, "makespan 1.5 ms", unless the unit already identifies it: "617.75
 * samples/s". */
char *cs_run_figure_phrase(const cs_run_figure *figure, double value, char *text, size_t size);

/* Format the heading of a table row, "throughput, samples/s", and a cell, "617.75". Units other
 * than rates and counts are in the cells. Both return `text`. */
char *cs_run_figure_heading(const cs_run_figure *figure, char *text, size_t size);
char *cs_run_figure_cell(const cs_run_figure *figure, double value, char *text, size_t size);

#endif
