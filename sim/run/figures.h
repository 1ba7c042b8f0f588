/* The figures of a run, each defined once: key, label, unit, how it is computed and where people
 * see it. What prints or stores a figure (the report, JSON, results files, sweeps, repeated runs,
 * comparisons, titles of pictures, the library) takes it from here, in the order of the table.
 *
 * To add one: a row in figures.c.
 */
#ifndef CS_RUN_FIGURES_H
#define CS_RUN_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a figure is about. Rows of one scope follow each other in the table. */
typedef enum cs_scope {
    CS_SCOPE_SCENARIO, /* what was asked for */
    CS_SCOPE_RUN,      /* the result */
    CS_SCOPE_PLAN,     /* the plan that a planner made for it */
    CS_SCOPE_DEVICE,   /* one device */
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

/* Where people see a figure; every figure is in JSON, sweeps and the library. */
enum {
    CS_SHOWN_REPORT = 1, /* on a line of the report, with closed forms of the same key below */
    CS_SHOWN_JOINED = 2, /* in the report at the end of the line of the row before */
    CS_SHOWN_MAIN = 4,   /* of repeated runs, of two runs compared, in titles of pictures */
    CS_SHOWN_SWEEP = 8,  /* in a sweep's table, as one of the figures "main" */
    CS_OF_TASKS = 16,    /* it follows from single tasks: not given where these were dropped */
};

/* What figures are computed from. */
typedef struct cs_outcome {
    const struct cs_scenario *scenario;
    const struct cs_simulation *simulation;
    uint32_t device; /* of CS_SCOPE_DEVICE only */
} cs_outcome;

typedef struct cs_run_figure {
    const char *key;   /* in JSON, results files and tables */
    const char *label; /* for people */
    const char *meaning;
    cs_unit unit;
    double (*get)(const cs_outcome *outcome); /* NaN: not known */
    bool (*given)(const cs_outcome *outcome); /* whether this run has it; NULL: each has */
    cs_scope scope;
    unsigned shown; /* CS_SHOWN_... */
    /* What the report says behind the value; NULL: nothing. Returns `text`. */
    const char *(*detail)(const cs_outcome *outcome, char *text, size_t size);
} cs_run_figure;

/* All rows, ended by {0}. */
extern const cs_run_figure cs_run_figures[];

/* NULL: there is none. A key is that of one row only. */
const cs_run_figure *cs_run_figure_find(const char *key);

/* Row i, from 0, of those that are CS_SHOWN_MAIN; NULL beyond the last. Every run has them. */
const cs_run_figure *cs_run_figure_main(uint32_t i);

/* Whether the run has the figure. */
bool cs_run_figure_given(const cs_run_figure *figure, const cs_outcome *outcome);

/* Of a device's figure the largest over all of them, whatever outcome->device says. */
double cs_run_figure_value(const cs_run_figure *figure, const cs_outcome *outcome);

/* "s", "bytes", "samples/s"...; "1" of a number, a fraction and a boolean. */
const char *cs_unit_word(cs_unit unit);

/* How keys of the unit end: "_s", "_samples_per_s", "_fraction"; "" of a number and a boolean. */
const char *cs_unit_suffix(cs_unit unit);

/* For people: "1.5 ms", "27.27 %", "617.75 samples/s", "yes"; "-" of NaN. Returns `text`. */
char *cs_unit_format(cs_unit unit, double value, char *text, size_t size);

enum { CS_UNIT_TEXT_BYTES = 64 }; /* enough for cs_unit_format */

/* In a line of several: "makespan 1.5 ms"; "617.75 samples/s", whose unit says what it is. */
char *cs_run_figure_phrase(const cs_run_figure *figure, double value, char *text, size_t size);

/* For tables, whose rows are named "throughput, samples/s" and whose cells are then "617.75". Units
 * other than rates and counts are in the cells. Both return `text`. */
char *cs_run_figure_heading(const cs_run_figure *figure, char *text, size_t size);
char *cs_run_figure_cell(const cs_run_figure *figure, double value, char *text, size_t size);

#endif
