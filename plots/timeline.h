/* What timelines are made of: boxes of what devices compute and send, and of why they wait.
 * Internal to the timeline's files. */
#ifndef CS_PLOTS_TIMELINE_H
#define CS_PLOTS_TIMELINE_H

#include "plots/drawn-run.h"
#include "plots/sheet.h"

enum {
    CS_TIMELINE_KINDS = 256, /* of tasks; those of waiting follow them */
    CS_TIMELINE_CAUSES = 4,
    CS_TIMELINE_ALL = CS_TIMELINE_KINDS + CS_TIMELINE_CAUSES,
    CS_TIMELINE_SHADES = 8, /* of chunks; of mini-batches two; of both together */
};

typedef enum cs_lane { CS_LANE_COMPUTE, CS_LANE_UP, CS_LANE_DOWN, CS_N_LANES } cs_lane;

typedef struct cs_timeline_box {
    cs_time start, end;   /* cut to what is shown */
    uint32_t row, number; /* rows of all panels follow each other */
    uint16_t kind;
    uint8_t lane;
    uint8_t shade; /* of mini-batches 0, 2, ...: 0, of others 1; or of the chunk; of boxes with
                     * names the first and twice the second */
    char name[12]; /* of boxes with names: "3C" */
    bool numbered; /* the number says something: an update belongs to no micro-batch */
    bool gathered; /* stands for several */
} cs_timeline_box;

/* Of each device's stages its place among them; NULL where each device has one. */
typedef struct cs_timeline_chunks {
    uint8_t *of;
    uint32_t n_stages;
} cs_timeline_chunks;

/* One run. Waits and the critical path are there if they are drawn. */
typedef struct cs_timeline_panel {
    cs_drawn_run run;
    uint32_t n_rows, first_row; /* devices that are shown */
    double top;                 /* of its first row, in rows */
    cs_timeline_chunks chunks;
} cs_timeline_panel;

typedef struct cs_timeline {
    cs_sheet *sheet;
    cs_timeline_panel panels[CS_PLOT_INPUTS_MAX];
    uint32_t n_panels, n_rows;
    const char *kinds[CS_TIMELINE_ALL]; /* of tasks, and from n_kinds on causes of waiting */
    uint32_t n_kinds, n_causes;
    cs_timeline_box *boxes; /* by row, lane and time */
    size_t n_boxes;
    bool named;                      /* boxes have names */
    bool divided[CS_TIMELINE_KINDS]; /* tasks of that kind belong to micro-batches, not to a
                                       * whole mini-batch */
    bool shown[CS_TIMELINE_ALL];
    bool transfers, several_batches, dense, path, numbers;
    bool odd_batches; /* boxes with names are of mini-batches 1, 3, ... as well */
    uint32_t n_shades,
        n_chunks;      /* where devices hold several stages, else 0; shades are at most SHADES */
    double cell;       /* units in which slivers are gathered */
    double unit;       /* ps */
    double scale;      /* units per ps */
    double row_height; /* units */
    double top[CS_N_LANES], bottom[CS_N_LANES]; /* shares of a row */
    double label_size;                          /* 0: no labels fit */
    FILE *wide, *narrow, *waits, *labels;
} cs_timeline;

/* Reads tasks, waits and chunks of all runs, and makes their boxes once `scale` is known. */
CS_MUST_CHECK cs_status cs_timeline_read(cs_timeline *t, cs_error *error);
CS_MUST_CHECK cs_status cs_timeline_collect(cs_timeline *t, cs_error *error);
void cs_timeline_finish(cs_timeline *t);

/* Makes task i of a run a box; false where it is not shown. */
bool cs_timeline_box_of(const cs_timeline *t, uint32_t panel, uint64_t i, cs_timeline_box *made);

/* Whether both are narrower than half a unit and begin in the same cell: drawn together. */
bool cs_timeline_is_sliver(const cs_timeline *t, const cs_timeline_box *b);
int64_t cs_timeline_cell_of(const cs_timeline *t, const cs_timeline_box *b);

/* Whether a box is of waiting, and of which sign its cause is. */
bool cs_timeline_waits(const cs_timeline *t, const cs_timeline_box *b);

uint32_t cs_timeline_colour(const cs_timeline *t, const cs_timeline_box *b);
void cs_timeline_legend(cs_timeline *t);

#endif
