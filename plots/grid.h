/* What the plots of sweeps share: a figure and the values of the varied keys, with labels and units
 * for people, and colours. */
#ifndef CS_PLOTS_GRID_H
#define CS_PLOTS_GRID_H

#include "plots/sheet.h"

/* How numbers of a unit are shown: divided by `unit`, with `name` beside the axis ("" for none). */
typedef struct cs_grid_scale {
    double unit;
    char name[16];
} cs_grid_scale;

cs_grid_scale cs_grid_scale_of(const char *units, double largest);

typedef struct cs_grid_axis {
    char title[160]; /* "bandwidth (GB/s)" */
    uint32_t n;
    const double *numbers;     /* as shown; NULL: texts */
    const char *const *labels; /* of each value; what long texts share is in the title */
    double widest;             /* label, in points */
} cs_grid_axis;

/* What became of a point. One that is out of memory has figures, of a run that no device could do.
 */
typedef enum cs_grid_state { CS_GRID_FITS, CS_GRID_OUT_OF_MEMORY, CS_GRID_FAILED } cs_grid_state;

typedef struct cs_sheet_grid {
    const char *key;  /* of the figure: "iteration_time_s" */
    char figure[160]; /* "iteration time" */
    char title[160];  /* "iteration time (ms)" */
    char fixed[160];  /* keys that do not vary here, "/a=1, /b=2", or "" */
    uint32_t rank;    /* 1 or 2 */
    bool list;        /* of points, not a grid: the axis counts them, or is the only key's */
    cs_grid_axis axes[2];
    double *values;           /* as shown; NaN where missing; the second axis' follow each other */
    const uint8_t *states;    /* cs_grid_state of each value; a file without them: all fit */
    const double *capacities; /* as shown, of figures that they bound; NaN: no limit; NULL: none */
    uint64_t n;
    double lowest, highest;
    double fit_lowest, fit_highest; /* of what fits: infinite where nothing does */
    bool whole;                     /* all values are whole numbers */
    uint32_t missing;               /* values, without those of points that failed */
    uint32_t out_of_memory, failed; /* points */
} cs_sheet_grid;

/* Reads options->value of the sheet's file, at options->at; all of it lives as long as the reader.
 */
CS_MUST_CHECK cs_status cs_sheet_grid_read(const cs_sheet *sheet, cs_sheet_grid *grid,
                                           cs_error *error);

/* How many points there are, from where to where their values and those of points that fit are, and
 * what does not vary: "4 points from 10 to 21, those that fit from 12 to 21, at /a=1". */
void cs_sheet_grid_summary(const cs_sheet_grid *grid, char *text, size_t size);

/* Labels of a horizontal axis that stand `room` points from each other: by how many degrees they
 * are to be turned (0, 35, 90) so that none touches the next; then they end at their place and come
 * from below on the left. How far they reach to the left of their place, and down. */
int cs_grid_turn(const cs_grid_axis *axis, double room);
double cs_grid_label_width(const cs_grid_axis *axis, int turn);
double cs_grid_label_height(const cs_grid_axis *axis, int turn);

/* A colour of a palette at 0 to 1. Both can be read with any kind of colour blindness, and in grey:
 * one from dark to light, and one with white at its middle. */
uint32_t cs_palette_sequential(double at);
uint32_t cs_palette_diverging(double at);

#endif
