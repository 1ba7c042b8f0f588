/* The data of a run that pictures, pages and traces for viewers show, read from a results file and
 * computed once.
 *
 * Rows are devices. If the reader has folded devices that did the same, a row represents several.
 * Times are in picoseconds. Arrays live as long as the reader or the run. */
#ifndef CS_PLOTS_DRAWN_RUN_H
#define CS_PLOTS_DRAWN_RUN_H

#include "sim/core/trace/results-reader.h"

#include <stdbool.h>

/* Parts of a results file to read; each kind of drawing asks for the parts it needs. */
typedef enum cs_drawn_part {
    CS_DRAWN_TASKS = 1,
    CS_DRAWN_SLICES = 2,    /* tasks placed in lanes; requires TASKS */
    CS_DRAWN_ARGUMENTS = 4, /* bytes and weight versions of tasks; requires TASKS */
    CS_DRAWN_WAITS = 8,
    CS_DRAWN_PATH = 16,  /* critical path */
    CS_DRAWN_TIMES = 32, /* how each row spends its time */
    CS_DRAWN_PEAKS = 64, /* peak memory and out-of-memory errors; requires MEMORY */
    CS_DRAWN_MEMORY = 128,
    CS_DRAWN_LINKS = 256,
} cs_drawn_part;

enum { CS_DRAWN_KINDS = 255 }; /* maximum number of task kinds */

typedef enum cs_drawn_side { CS_DRAWN_COMPUTES, CS_DRAWN_SENDS, CS_DRAWN_RECEIVES } cs_drawn_side;

/* A task that ran, as shown on one row. A message has two slices: one on the sender's row, one on
 * the receiver's, which may be the same row. */
typedef struct cs_drawn_slice {
    uint32_t task;
    /* index among the row's lanes of the same side; always 0 for COMPUTES; slices in one lane do
     * not overlap */
    uint16_t lane;
    uint8_t side;
} cs_drawn_slice;

typedef struct cs_drawn_row {
    uint64_t first, n;        /* slices of the row, sorted by start, end and task id */
    uint32_t sends, receives; /* number of lanes */
    uint64_t first_sample, n_samples;
    uint32_t device;     /* device number; the first one if the row represents several devices */
    uint32_t stands_for; /* number of devices that the row represents */
} cs_drawn_row;

/* One way in which rows spend time: a kind of computation, or a cause of waiting. */
typedef struct cs_drawn_use {
    const char *name;
    const int64_t *times; /* ps, per row */
} cs_drawn_use;

enum { CS_DRAWN_USES = 32 };

typedef struct cs_drawn_tasks {
    cs_reader_tasks is;
    bool moves[CS_DRAWN_KINDS]; /* per kind: whether tasks move bytes instead of computing */
    const int64_t *bytes;
    /* per task: weight version that the task reads (an update: produces); UINT32_MAX: none */
    uint32_t *version;
} cs_drawn_tasks;

typedef struct cs_drawn_waits {
    const uint32_t *row, *cause;
    const int64_t *start, *end;
    uint64_t n; /* 0 in files of earlier versions */
    const char *const *causes;
    uint32_t n_causes;
} cs_drawn_waits;

typedef struct cs_drawn_path {
    const uint32_t *task, *row_of; /* row_of: row of each task of the run */
    const int64_t *start, *end;
    uint64_t n; /* 0 in files of earlier versions */
} cs_drawn_path;

typedef struct cs_drawn_memory {
    /* samples: `bytes` is valid from `time` until the next sample of the same row and category */
    const int64_t *time, *bytes;
    const uint32_t *row, *category;
    uint64_t n;
    /* indices of samples, grouped by row, in order of time within each row */
    uint64_t *by_row, n_by_row;
    bool *held; /* per row and category: whether any sample is not 0 */
    const char *const *categories;
    uint32_t n_categories;
    /* The following members are per row. */
    const int64_t *capacity; /* bytes; INT64_MAX: unlimited */
    const int64_t *peak, *peak_time, *oom_time;
    const uint32_t *out_of_memory;
    const int64_t **at_peak; /* per category, then per row: bytes at the row's peak */
} cs_drawn_memory;

typedef struct cs_drawn_links {
    const char *const *names;
    const double *bandwidth, *bytes, *utilisation;
    uint64_t n;
    bool no_collectives; /* collectives are modelled as delays, so they put no bytes on links */
} cs_drawn_links;

typedef struct cs_drawn_run {
    cs_reader *reader;
    cs_drawn_row *rows;
    uint64_t n_rows;
    cs_drawn_tasks tasks;
    cs_drawn_slice *slices; /* slices, grouped by row */
    uint64_t n_slices;
    cs_drawn_waits waits;
    cs_drawn_path path;
    cs_drawn_use uses[CS_DRAWN_USES]; /* kinds of computation first, then causes of waiting */
    uint32_t n_uses, n_compute;
    cs_drawn_memory memory;
    cs_drawn_links links;
} cs_drawn_run;

/* Reads `parts`, a sum of cs_drawn_part. CS_INVALID if the file is invalid, or CS_NO_MEMORY: `run`
 * has then already been finished. cs_drawn_run_finish is allowed on a zeroed run. */
CS_MUST_CHECK cs_status cs_drawn_run_read(cs_reader *reader, uint32_t parts, cs_drawn_run *run,
                                          cs_error *error);
void cs_drawn_run_finish(cs_drawn_run *run);

/* Fails with CS_INVALID if the run has no memory samples or more than `most` memory categories. */
CS_MUST_CHECK cs_status cs_drawn_run_need_memory(const cs_drawn_run *run, uint32_t most,
                                                 cs_error *error);

/* Returns the device of a row: the first one if the row represents several; UINT32_MAX if the row
 * does not exist. */
uint32_t cs_drawn_device(const cs_drawn_run *run, uint32_t row);

/* Writes the name of a row: "device 3", "devices 0-63", "devices 64(x16)". Returns `text`. */
char *cs_drawn_row_name(const cs_drawn_run *run, uint64_t row, char *text, size_t size);

/* Whether a task is a weight update, which belongs to no micro-batch. */
bool cs_drawn_updates(const cs_drawn_run *run, uint32_t task);

/* Returns the number shown on a task: its micro-batch. For updates, and if a mini-batch has only
 * one micro-batch, returns its mini-batch. */
uint32_t cs_drawn_number(const cs_drawn_run *run, uint32_t task);

#endif
