/* Shared by the plots of sweeps: the values of a metric and of the varied keys, with readable
 * labels, units and colours. */
#ifndef CS_PLOTS_GRID_H
#define CS_PLOTS_GRID_H

#include "plots/sheet.h"

/* Scale for showing numbers: each number is divided by `unit`, and `name` is written next to the
 * axis ("": no unit). */
typedef struct cs_grid_scale {
    double unit;
    char name[16];
} cs_grid_scale;

cs_grid_scale cs_grid_scale_of(const char *units, double largest);

typedef struct cs_grid_axis {
    char title[160]; /* e.g. "bandwidth (GB/s)" */
    uint32_t n;
    const double *numbers; /* values in the axis unit; NULL: the values are texts */
    /* label of each value; the common part of long texts is moved to the title */
    const char *const *labels;
    double widest; /* width of the widest label, in points */
} cs_grid_axis;

/* Outcome of a point of a sweep. A point that ran out of memory still has metrics, of a run that no
 * real device could execute. */
typedef enum cs_grid_state { CS_GRID_FITS, CS_GRID_OUT_OF_MEMORY, CS_GRID_FAILED } cs_grid_state;

typedef struct cs_sheet_grid {
    const char *key;  /* name of the metric: "iteration_time_s" */
    char figure[160]; /* label of the metric: "iteration time" */
    char title[160];  /* label with unit: "iteration time (ms)" */
    char fixed[160];  /* keys fixed at one value: "/a=1, /b=2"; "": none */
    uint32_t rank;    /* number of varied keys, 1 or 2 */
    /* the file lists points instead of a grid: the axis shows the numbers of its points */
    bool list;
    cs_grid_axis axes[2];
    /* in the unit of the title; NaN: missing; row-major: the second axis varies fastest */
    double *values;
    const uint8_t *states; /* cs_grid_state of each value; all FITS if the file has no states */
    /* memory capacity per point, in the unit of `values`; NaN: no limit; NULL: capacity does not
     * limit this metric */
    const double *capacities;
    uint64_t n;
    double lowest, highest;
    double fit_lowest, fit_highest; /* range of the points that fit; infinite if none fits */
    bool whole;                     /* all values are whole numbers */
    uint32_t missing;               /* number of missing values, without the points that failed */
    uint32_t out_of_memory, failed; /* number of points */
} cs_sheet_grid;

/* Reads the metric options->value from the sheet's file, at the fixed keys options->at. All arrays
 * live as long as the reader. */
CS_MUST_CHECK cs_status cs_sheet_grid_read(const cs_sheet *sheet, cs_sheet_grid *grid,
                                           cs_error *error);

/* Writes a summary: the number of points, the range of their values, the range of the points that
 * fit, and the fixed keys: "4 points from 10 to 21, those that fit from 12 to 21, at /a=1". */
void cs_sheet_grid_summary(const cs_sheet_grid *grid, char *text, size_t size);

/* Returns the rotation (0, 35 or 90 degrees) that keeps the labels of a horizontal axis from
 * overlapping, for labels `room` points apart. A rotated label rises from the lower left and ends
 * at its tick. The next two functions return how far a label extends to the left of its tick, and
 * downwards. */
int cs_grid_turn(const cs_grid_axis *axis, double room);
double cs_grid_label_width(const cs_grid_axis *axis, int turn);
double cs_grid_label_height(const cs_grid_axis *axis, int turn);

/* Returns the colour of a palette at position 0 to 1. Both palettes are readable with any kind of
 * colour blindness and in greyscale; the first runs from dark to light, the second has white in the
 * middle. */
uint32_t cs_palette_sequential(double at);
uint32_t cs_palette_diverging(double at);

#endif
