/* The sheet that a plot is drawn on: what is shown, its size and margins, title, legend and
 * colours.
 *
 * Positions are in units from the upper left corner. A unit is an eleventh of the font size that
 * the options ask for: a larger font makes everything larger, and the sheet so many units smaller.
 * All that is text or legend is placed here, in numbers that gnuplot only draws: texts.dat and
 * swatches.dat of the job, with frame.gp. A kind of plot adds its own data files and program.
 */
#ifndef CS_PLOTS_SHEET_H
#define CS_PLOTS_SHEET_H

#include "plots/gnuplot.h"
#include "plots/plot.h"
#include "sim/core/trace/results-reader.h"

#include <stdbool.h>

typedef struct cs_sheet {
    const cs_plot_options *options;
    cs_reader *reader;                      /* of the first run, or NULL */
    cs_reader *readers[CS_PLOT_INPUTS_MAX]; /* of all runs */
    uint32_t n_readers;
    bool side_by_side; /* of two runs: neither predicts the other */
    cs_gnuplot *job;
    uint32_t first_device, n_devices;           /* that are shown, of the first run */
    uint32_t out_of_memory[CS_PLOT_INPUTS_MAX]; /* devices of each run, shown or not */
    cs_time from, until;                        /* that are shown */
    double zoom;                                /* points or pixels of a unit */
    const char *time_unit;                      /* of the axis, once it is chosen */
    double asked_width, asked_height;           /* 0: the kind chooses */
    double width, height;                       /* height 0: the kind chooses */
    double left, right, top, bottom;            /* margins around the drawing area */
    FILE *texts, *swatches, *strokes, *marks;   /* of the job */
} cs_sheet;

enum {
    CS_SHEET_FONT = 11,   /* of all text that has no size of its own */
    CS_SHEET_AXIS = 48,   /* height of the numbers and the name of a horizontal axis */
    CS_SHEET_MARGIN = 10, /* on a side without an axis */
    CS_SHEET_WIDTH = 640, /* unless asked otherwise: at 8 points of font the width of a page */
};

#define CS_COLOUR_IDLE     0xE6E6E6u
#define CS_COLOUR_TEXT     0x202020u
#define CS_COLOUR_SUBTITLE 0x505050u
#define CS_COLOUR_BAD      0xB00020u

/* How a word of the results file (kind, category, use of time) is drawn. Unknown ones get grey. */
typedef struct cs_style {
    const char *word;
    uint32_t colour; /* 0xRRGGBB */
    bool moves;      /* bytes are moved, nothing is computed */
} cs_style;

const cs_style *cs_style_of(const char *word);

/* A darker shade of a colour; one between two, the first (0) and the second (1); between it (0) and
 * white (1); black or white, whichever is seen better on it. */
uint32_t cs_colour_shade(uint32_t colour);
uint32_t cs_colour_between(uint32_t first, uint32_t second, double at);
uint32_t cs_colour_tint(uint32_t colour, double white);
uint32_t cs_colour_on(uint32_t colour);

/* Chooses devices, time and size from the options; of several runs the longest time. */
CS_MUST_CHECK cs_status cs_sheet_init(cs_sheet *sheet, const cs_plot_options *options,
                                      cs_reader *readers, uint32_t n_readers, cs_gnuplot *job,
                                      cs_error *error);

/* The same for the file of a sweep, or of a search for plans, which has neither devices nor time:
 * the kind writes the title and chooses the size. */
CS_MUST_CHECK cs_status cs_sheet_init_sweep(cs_sheet *sheet, const cs_plot_options *options,
                                            cs_reader *reader, cs_gnuplot *job, cs_error *error);

/* Without a file: `options` set only the size, and the kind does the rest. */
void cs_sheet_init_plain(cs_sheet *sheet, const cs_plot_options *options, cs_gnuplot *job);

/* How many devices of a run are shown: the sheet's choice, or what is there of it. */
CS_MUST_CHECK cs_status cs_sheet_shown_devices(const cs_sheet *sheet, uint32_t run, uint32_t *n,
                                               cs_error *error);

/* The title of a run and its figures, once the width is known. */
void cs_sheet_run_title(cs_sheet *sheet);

/* The name of run i of several, for a heading or a legend: of the scenario, or of the file where
 * scenarios have the same name; schedules where these differ. Returns `text`. */
char *cs_sheet_run_name(const cs_sheet *sheet, uint32_t i, char *text, size_t size);

/* The name of a device's row of run i: its number, or what stands for several: "0-63". Returns
 * `text`. */
char *cs_sheet_device_name(const cs_sheet *sheet, uint32_t run, uint32_t row, char *text,
                           size_t size);

/* Points from the left edge of the sheet that the names of the first n rows of run i need, with
 * that of the axis before them. */
double cs_sheet_device_names_room(const cs_sheet *sheet, uint32_t run, uint32_t n);

/* Tells gnuplot the names of the axes, or those that the options ask for instead; they are cut to
 * `room` units. "" for none. */
void cs_sheet_axis_titles(cs_sheet *sheet, const char *x, double x_room, const char *y,
                          double y_room);

/* The title, and what is below it: parts divided by ", ", in as many lines as they take. */
void cs_sheet_title(cs_sheet *sheet, const char *title, const char *subtitle);

/* More of what is below a title. Nothing where the options ask for a title of their own. */
void cs_sheet_title_more(cs_sheet *sheet, const char *parts);

/* A sign marks points that ran out of memory or failed, not a colour. */
typedef enum cs_sheet_sign {
    CS_SIGN_NONE,
    CS_SIGN_HATCHED, /* a swatch with slanted lines across */
    CS_SIGN_GRID,    /* a swatch with lines slanted both ways */
    CS_SIGN_CROSSED, /* a swatch with both diagonals */
    CS_SIGN_RING,    /* in place of a swatch */
    CS_SIGN_CROSS,
    CS_SIGN_LINE,  /* a dashed line */
    CS_SIGN_POINT, /* and so many more: gnuplot's point of that number */
} cs_sheet_sign;

typedef struct cs_legend_entry {
    const char *text; /* underscores become spaces */
    uint32_t colour,
        other;  /* equal: one swatch of one colour; both 0: a remark, without a swatch */
    bool exact; /* underscores stay */
    cs_sheet_sign sign;
    const uint32_t *swatches; /* of more than two colours, instead of the above */
    uint32_t n_swatches;
} cs_legend_entry;

/* Puts the legend below the title, as many lines as it takes, and moves the top margin below it. */
void cs_sheet_legend(cs_sheet *sheet, const cs_legend_entry *entries, uint32_t n);

void cs_sheet_text(cs_sheet *sheet, double x, double y, uint32_t colour, const char *text);
void cs_sheet_box(cs_sheet *sheet, double left, double right, double top, double bottom,
                  uint32_t colour);

/* Lines across a box, as data of vectors: from x, y by dx, dy, colour. Boxes that touch are hatched
 * as one. */
void cs_sheet_hatch(FILE *out, double left, double right, double top, double bottom,
                    uint32_t colour);
void cs_sheet_hatch_back(FILE *out, double left, double right, double top, double bottom,
                         uint32_t colour); /* slanted the other way */
void cs_sheet_cross(FILE *out, double left, double right, double top, double bottom,
                    uint32_t colour);

/* A ring or a cross, as data of points: x, y, gnuplot's type of point, colour. */
void cs_sheet_mark(FILE *out, double x, double y, cs_sheet_sign sign, uint32_t colour);

/* The same of a picture over time: "time (ms)" below, and `y` at the left. */
void cs_sheet_time_axis(cs_sheet *sheet, const char *y);

/* Writes a text as one field of a data file. */
void cs_sheet_quote(FILE *out, const char *text);

/* An upper bound of the width of a text in points, at a font of `size` points. */
double cs_sheet_text_width(const char *text, double size);

/* The unit of a time axis over the sheet's range: its picoseconds; its name is set for gnuplot. */
double cs_sheet_time_unit(cs_sheet *sheet);

/* Cuts out the middle of a text, "/schedule/ki...per_stage", until it is at most `room` points
 * wide. */
void cs_sheet_shorten(char *text, double size, double room);

/* The smallest of 1, 2, 5, 10, ... units of an axis that leaves 24 points between its numbers;
 * `range` units take `length` points. */
double cs_sheet_tick_step(double range, double length);

/* 1 kB, 1 MB, ...: the largest that is not above `bytes`; decimal, as all output for people. */
typedef struct cs_byte_unit {
    const char *name;
    double bytes;
} cs_byte_unit;

const cs_byte_unit *cs_byte_unit_of(double bytes);

/* "12.3 GB" */
char *cs_sheet_bytes(int64_t bytes, char *text, size_t size);

/* "4.56 ms" */
char *cs_sheet_time(cs_time time, char *text, size_t size);

/* Tells gnuplot the size and the margins, and runs `program`. */
CS_MUST_CHECK cs_status cs_sheet_draw(cs_sheet *sheet, const char *output, const char *program,
                                      cs_error *error);

/* The kinds (plot-timeline.c, ...): fill the sheet and the job, and draw. */
typedef cs_status cs_sheet_function(cs_sheet *sheet, const char *output, cs_error *error);
cs_sheet_function cs_plot_timeline, cs_plot_boxes, cs_plot_memory, cs_plot_mean_memory,
    cs_plot_segments, cs_plot_utilisation, cs_plot_spread;
cs_sheet_function cs_plot_heatmap, cs_plot_lines; /* of sweeps */
cs_sheet_function cs_plot_plans;                  /* of a search for plans */
cs_sheet_function cs_plot_validation;             /* of predictions held against measurements */

#endif
