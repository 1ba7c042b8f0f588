/* The sheet of a plot: the data it shows, its size and margins, title, legend and colours.
 *
 * Positions are in units, from the upper left corner. A unit is 1/11 of the font size in the
 * options: a larger font makes everything larger, and the sheet fewer units wide and high. All
 * texts and legends are placed here, as numbers that gnuplot only has to draw: frame.gp draws
 * texts.dat and swatches.dat of the job. A kind of plot adds its own data files and program. */
#ifndef CS_PLOTS_SHEET_H
#define CS_PLOTS_SHEET_H

#include "plots/gnuplot.h"
#include "plots/plot.h"
#include "sim/core/trace/results-reader.h"

#include <stdbool.h>

typedef struct cs_sheet {
    const cs_plot_options *options;
    cs_reader *reader;                      /* first run; NULL: no file */
    cs_reader *readers[CS_PLOT_INPUTS_MAX]; /* all runs */
    uint32_t n_readers;
    bool side_by_side; /* with two runs: neither is a prediction of the other */
    cs_gnuplot *job;
    uint32_t first_device, n_devices; /* devices shown, of the first run */
    /* per run: number of devices that ran out of memory, shown or not */
    uint32_t out_of_memory[CS_PLOT_INPUTS_MAX];
    cs_time from, until;                      /* ps; time range shown */
    double zoom;                              /* points or pixels per unit */
    const char *time_unit;                    /* unit of the time axis; NULL until it is chosen */
    double asked_width, asked_height;         /* units; 0: the kind of plot chooses */
    double width, height;                     /* units; height 0: the kind of plot chooses */
    double left, right, top, bottom;          /* units; margins around the drawing area */
    FILE *texts, *swatches, *strokes, *marks; /* data files of the job */
} cs_sheet;

enum {
    CS_SHEET_FONT = 11,   /* default font size of texts */
    CS_SHEET_AXIS = 48,   /* height of the numbers and the title of a horizontal axis */
    CS_SHEET_MARGIN = 10, /* margin on a side without an axis */
    CS_SHEET_WIDTH = 640, /* default width; with an 8-point font, the width of a page */
};

#define CS_COLOUR_IDLE     0xE6E6E6u
#define CS_COLOUR_TEXT     0x202020u
#define CS_COLOUR_SUBTITLE 0x505050u
#define CS_COLOUR_BAD      0xB00020u

/* Style of a word of the results file: a task kind, memory category or use of time. Unknown words
 * are grey. */
typedef struct cs_style {
    const char *word;
    uint32_t colour; /* 0xRRGGBB */
    bool moves;      /* tasks move bytes instead of computing */
} cs_style;

const cs_style *cs_style_of(const char *word);

/* cs_colour_shade returns a darker shade; cs_colour_between a mixture (at 0: the first colour, 1:
 * the second); cs_colour_tint a mixture with white (white 1); cs_colour_on black or white,
 * whichever is easier to read on the colour. */
uint32_t cs_colour_shade(uint32_t colour);
uint32_t cs_colour_between(uint32_t first, uint32_t second, double at);
uint32_t cs_colour_tint(uint32_t colour, double white);
uint32_t cs_colour_on(uint32_t colour);

/* Chooses devices, time range and size from the options; with several runs, the time range of the
 * longest. */
CS_MUST_CHECK cs_status cs_sheet_init(cs_sheet *sheet, const cs_plot_options *options,
                                      cs_reader *readers, uint32_t n_readers, cs_gnuplot *job,
                                      cs_error *error);

/* Same, for the file of a sweep or of a search for plans, which has neither devices nor time: the
 * kind of plot writes the title and chooses the size. */
CS_MUST_CHECK cs_status cs_sheet_init_sweep(cs_sheet *sheet, const cs_plot_options *options,
                                            cs_reader *reader, cs_gnuplot *job, cs_error *error);

/* Same, without a file: `options` set only the size, and the kind of plot does the rest. */
void cs_sheet_init_plain(cs_sheet *sheet, const cs_plot_options *options, cs_gnuplot *job);

/* Sets *n to the number of devices of a run that are shown: the selected devices that the run
 * has. */
CS_MUST_CHECK cs_status cs_sheet_shown_devices(const cs_sheet *sheet, uint32_t run, uint32_t *n,
                                               cs_error *error);

/* Writes the title and the main metrics of a run. The sheet's width must be known. */
void cs_sheet_run_title(cs_sheet *sheet);

/* Writes the name of run i for a heading or a legend: the scenario's name; if all runs share it,
 * the schedule if schedules differ, otherwise the file's name. Returns `text`. */
char *cs_sheet_run_name(const cs_sheet *sheet, uint32_t i, char *text, size_t size);

/* Writes the name of a device row of run i: the device number, or the devices that the row
 * represents, "0-63". Returns `text`. */
char *cs_sheet_device_name(const cs_sheet *sheet, uint32_t run, uint32_t row, char *text,
                           size_t size);

/* Returns the width, in points, that the names of the first n rows of run i need, including the
 * axis title to the left of them. */
double cs_sheet_device_names_room(const cs_sheet *sheet, uint32_t run, uint32_t n);

/* Passes the axis titles to gnuplot, or the titles that the options set; shortens them to x_room
 * and y_room units. "": none. */
void cs_sheet_axis_titles(cs_sheet *sheet, const char *x, double x_room, const char *y,
                          double y_room);

/* Writes the title, and below it the subtitle: parts separated by ", ", in as many lines as they
 * need. */
void cs_sheet_title(cs_sheet *sheet, const char *title, const char *subtitle);

/* Writes further parts below the subtitle; nothing if the options set a title. */
void cs_sheet_title_more(cs_sheet *sheet, const char *parts);

/* Signs in legends. Points that ran out of memory or failed are marked by signs, not by colours. */
typedef enum cs_sheet_sign {
    CS_SIGN_NONE,
    CS_SIGN_HATCHED, /* swatch with slanted lines across */
    CS_SIGN_GRID,    /* swatch with lines slanted both ways */
    CS_SIGN_CROSSED, /* swatch with both diagonals */
    CS_SIGN_RING,    /* ring instead of a swatch */
    CS_SIGN_CROSS,
    CS_SIGN_LINE,  /* dashed line */
    CS_SIGN_POINT, /* CS_SIGN_POINT + n: gnuplot's point type n */
} cs_sheet_sign;

typedef struct cs_legend_entry {
    const char *text; /* underscores become spaces unless `exact` */
    /* other: if it equals `colour`, there is one swatch; otherwise the colour of a second swatch
     * or, with a sign, of the sign's lines. Both 0: a remark without a swatch */
    uint32_t colour, other;
    bool exact; /* underscores are kept */
    cs_sheet_sign sign;
    const uint32_t *swatches; /* colours of three or more swatches; replace the colours above */
    uint32_t n_swatches;
} cs_legend_entry;

/* Writes the legend below the title, in as many lines as it needs, and moves the top margin below
 * it. */
void cs_sheet_legend(cs_sheet *sheet, const cs_legend_entry *entries, uint32_t n);

void cs_sheet_text(cs_sheet *sheet, double x, double y, uint32_t colour, const char *text);
void cs_sheet_box(cs_sheet *sheet, double left, double right, double top, double bottom,
                  uint32_t colour);

/* cs_sheet_hatch and the next two functions write lines across a box as vectors for gnuplot: x, y,
 * dx, dy, colour. The hatching of adjacent boxes joins up. */
void cs_sheet_hatch(FILE *out, double left, double right, double top, double bottom,
                    uint32_t colour);
void cs_sheet_hatch_back(FILE *out, double left, double right, double top, double bottom,
                         uint32_t colour); /* slanted the other way */
void cs_sheet_cross(FILE *out, double left, double right, double top, double bottom,
                    uint32_t colour);

/* Writes a ring or a cross as a point for gnuplot: x, y, point type, colour. */
void cs_sheet_mark(FILE *out, double x, double y, cs_sheet_sign sign, uint32_t colour);

/* Sets the axis titles of a plot over time: "time (ms)" below, `y` on the left. */
void cs_sheet_time_axis(cs_sheet *sheet, const char *y);

/* Writes a text as one field of a data file. */
void cs_sheet_quote(FILE *out, const char *text);

/* Returns an upper bound of the width of a text, in points, at a font size of `size` points. */
double cs_sheet_text_width(const char *text, double size);

/* Chooses the unit of the time axis for the sheet's range and sets sheet->time_unit. Returns the
 * unit in picoseconds. */
double cs_sheet_time_unit(cs_sheet *sheet);

/* Cuts out the middle of a text, "/schedule/ki...per_stage", until it is at most `room` points
 * wide. */
void cs_sheet_shorten(char *text, double size, double room);

/* Returns the smallest step of 1, 2, 5, 10, ... units that leaves at least 24 points between the
 * numbers of an axis; `range` units take `length` points. */
double cs_sheet_tick_step(double range, double length);

/* A unit of bytes: 1 kB, 1 MB, ... Units are decimal, as in all output for people. cs_byte_unit_of
 * returns the largest unit that is <= `bytes`. */
typedef struct cs_byte_unit {
    const char *name;
    double bytes;
} cs_byte_unit;

const cs_byte_unit *cs_byte_unit_of(double bytes);

/* Formats bytes: "12.3 GB". Returns `text`. */
char *cs_sheet_bytes(int64_t bytes, char *text, size_t size);

/* Formats a time: "4.56 ms". Returns `text`. */
char *cs_sheet_time(cs_time time, char *text, size_t size);

/* Passes the size and the margins to gnuplot, and runs `program`. */
CS_MUST_CHECK cs_status cs_sheet_draw(cs_sheet *sheet, const char *output, const char *program,
                                      cs_error *error);

/* The kinds of plots (plot-timeline.c, ...). Each writes the data files of the job, and draws. */
typedef cs_status cs_sheet_function(cs_sheet *sheet, const char *output, cs_error *error);
cs_sheet_function cs_plot_timeline, cs_plot_boxes, cs_plot_memory, cs_plot_mean_memory,
    cs_plot_segments, cs_plot_utilisation, cs_plot_spread;
cs_sheet_function cs_plot_heatmap, cs_plot_lines; /* for sweeps */
cs_sheet_function cs_plot_plans;                  /* for a search for plans */
cs_sheet_function cs_plot_validation;             /* for predictions compared with measurements */

#endif
