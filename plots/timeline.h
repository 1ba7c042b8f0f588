/* Parts of timelines: boxes for computation, for transfers and for waiting. Internal to the
 * timeline's files. */
#ifndef CS_PLOTS_TIMELINE_H
#define CS_PLOTS_TIMELINE_H

#include "plots/drawn-run.h"
#include "plots/sheet.h"

enum {
    /* maximum number of task kinds; causes of waiting are numbered after them */
    CS_TIMELINE_KINDS = 256,
    CS_TIMELINE_CAUSES = 4,
    CS_TIMELINE_ALL = CS_TIMELINE_KINDS + CS_TIMELINE_CAUSES,
    /* maximum number of shades. Shades distinguish chunks (the stages of a device) or even and odd
     * mini-batches; for boxes with names, both */
    CS_TIMELINE_SHADES = 8,
};

typedef enum cs_lane { CS_LANE_COMPUTE, CS_LANE_UP, CS_LANE_DOWN, CS_N_LANES } cs_lane;

typedef struct cs_timeline_box {
    cs_time start, end;   /* ps, clipped to the time range shown */
    uint32_t row, number; /* row: numbered across all panels */
    uint16_t kind;
    uint8_t lane;
    /* parity of the mini-batch, or the chunk; for boxes with names, parity + 2 x chunk */
    uint8_t shade;
    char name[12]; /* label of a box with a name: "3C" */
    bool numbered; /* `number` is shown; not for updates if numbers are micro-batches */
    bool gathered; /* the box represents several merged boxes */
} cs_timeline_box;

/* Per device and stage: index of the stage among the device's stages. NULL if every device has one
 * stage. */
typedef struct cs_timeline_chunks {
    uint8_t *of;
    uint32_t n_stages;
} cs_timeline_chunks;

/* One run. Waits and the critical path are read only if they are drawn. */
typedef struct cs_timeline_panel {
    cs_drawn_run run;
    uint32_t n_rows, first_row; /* n_rows: number of devices shown */
    double top;                 /* position of the panel's first row, in rows */
    cs_timeline_chunks chunks;
} cs_timeline_panel;

typedef struct cs_timeline {
    cs_sheet *sheet;
    cs_timeline_panel panels[CS_PLOT_INPUTS_MAX];
    uint32_t n_panels, n_rows;
    /* names of the task kinds; from n_kinds on, names of the causes of waiting */
    const char *kinds[CS_TIMELINE_ALL];
    uint32_t n_kinds, n_causes;
    cs_timeline_box *boxes; /* sorted by row, lane and time */
    size_t n_boxes;
    bool named; /* boxes have names */
    /* per kind: tasks belong to single micro-batches, not to a whole mini-batch */
    bool divided[CS_TIMELINE_KINDS];
    bool shown[CS_TIMELINE_ALL];
    bool transfers, several_batches, dense, path, numbers;
    bool odd_batches; /* some boxes with names belong to odd mini-batches (1, 3, ...) */
    /* n_chunks: largest number of stages per device; 0 if every device has one stage. n_shades: at
     * most CS_TIMELINE_SHADES */
    uint32_t n_shades, n_chunks;
    double cell;       /* width of a cell within which slivers are merged, in units */
    double unit;       /* unit of the time axis, in ps */
    double scale;      /* units per ps */
    double row_height; /* in units */
    /* top and bottom of each lane, as fractions of the row height */
    double top[CS_N_LANES], bottom[CS_N_LANES];
    double label_size; /* font size; 0: no label fits */
    FILE *wide, *narrow, *waits, *labels;
} cs_timeline;

/* cs_timeline_read reads the tasks, waits and chunks of all runs; cs_timeline_collect makes their
 * boxes and requires `scale`. */
CS_MUST_CHECK cs_status cs_timeline_read(cs_timeline *t, cs_error *error);
CS_MUST_CHECK cs_status cs_timeline_collect(cs_timeline *t, cs_error *error);
void cs_timeline_finish(cs_timeline *t);

/* Makes the box of task i of a run; returns false if the task is not shown. */
bool cs_timeline_box_of(const cs_timeline *t, uint32_t panel, uint64_t i, cs_timeline_box *made);

/* Whether a box is narrower than half a unit; slivers that start in the same cell are drawn
 * together. cs_timeline_cell_of returns the cell that contains a box's start. */
bool cs_timeline_is_sliver(const cs_timeline *t, const cs_timeline_box *b);
int64_t cs_timeline_cell_of(const cs_timeline *t, const cs_timeline_box *b);

/* Whether a box shows waiting. */
bool cs_timeline_waits(const cs_timeline *t, const cs_timeline_box *b);

uint32_t cs_timeline_colour(const cs_timeline *t, const cs_timeline_box *b);
void cs_timeline_legend(cs_timeline *t);

#endif
