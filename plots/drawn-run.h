/* A run as it is drawn: what pictures, pages and traces for viewers show of a results file, read and
 * computed once.
 *
 * Rows are devices; where the reader folds devices that did the same, a row stands for several.
 * Times are in picoseconds. Arrays live as long as the reader, or as the run.
 */
#ifndef CS_PLOTS_DRAWN_RUN_H
#define CS_PLOTS_DRAWN_RUN_H

#include "sim/core/trace/results-reader.h"

#include <stdbool.h>

/* What is read; a drawing asks for what it needs. */
typedef enum cs_drawn_part {
    CS_DRAWN_TASKS = 1,
    CS_DRAWN_SLICES = 2,    /* tasks in their lanes; with TASKS */
    CS_DRAWN_ARGUMENTS = 4, /* bytes and weight versions of tasks; with TASKS */
    CS_DRAWN_WAITS = 8,
    CS_DRAWN_PATH = 16,  /* critical path */
    CS_DRAWN_TIMES = 32, /* how each row spends its time */
    CS_DRAWN_PEAKS = 64, /* with MEMORY */
    CS_DRAWN_MEMORY = 128,
    CS_DRAWN_LINKS = 256,
} cs_drawn_part;

enum { CS_DRAWN_KINDS = 255 }; /* of tasks, at most */

typedef enum cs_drawn_side { CS_DRAWN_COMPUTES, CS_DRAWN_SENDS, CS_DRAWN_RECEIVES } cs_drawn_side;

/* A task that ran, on a row. A message is on two rows, or twice on one. */
typedef struct cs_drawn_slice {
    uint32_t task;
    uint16_t lane; /* among the row's lanes of this side, 0 of COMPUTES: slices of a lane do not
                    * overlap */
    uint8_t side;
} cs_drawn_slice;

typedef struct cs_drawn_row {
    uint64_t first, n;        /* slices, by start, end and id */
    uint32_t sends, receives; /* lanes */
    uint64_t first_sample, n_samples;
    uint32_t device;     /* its number; of several the first */
    uint32_t stands_for; /* devices */
} cs_drawn_row;

/* A use of a row's time. */
typedef struct cs_drawn_use {
    const char *name;
    const int64_t *times; /* per row */
} cs_drawn_use;

enum { CS_DRAWN_USES = 32 };

typedef struct cs_drawn_tasks {
    cs_reader_tasks is;
    bool moves[CS_DRAWN_KINDS]; /* per kind: bytes are moved, nothing is computed */
    const int64_t *bytes;
    uint32_t *version; /* per task: version that it reads (an update: makes), or UINT32_MAX */
} cs_drawn_tasks;

typedef struct cs_drawn_waits {
    const uint32_t *row, *cause;
    const int64_t *start, *end;
    uint64_t n; /* 0 in files of earlier versions */
    const char *const *causes;
    uint32_t n_causes;
} cs_drawn_waits;

typedef struct cs_drawn_path {
    const uint32_t *task, *row_of; /* row_of: per task of the run */
    const int64_t *start, *end;
    uint64_t n; /* 0 in files of earlier versions */
} cs_drawn_path;

typedef struct cs_drawn_memory {
    const int64_t *time, *bytes; /* samples: from `time` on, until the next of row and category */
    const uint32_t *row, *category;
    uint64_t n;
    uint64_t *by_row, n_by_row; /* samples row by row, each row's in order of time */
    bool *held;                 /* per row and category: whether it is ever not 0 */
    const char *const *categories;
    uint32_t n_categories;
    /* per row */
    const int64_t *capacity; /* bytes; INT64_MAX: unlimited */
    const int64_t *peak, *peak_time, *oom_time;
    const uint32_t *out_of_memory;
    const int64_t **at_peak; /* per category */
} cs_drawn_memory;

typedef struct cs_drawn_links {
    const char *const *names;
    const double *bandwidth, *bytes, *utilisation;
    uint64_t n;
    bool no_collectives; /* each collective is a delay, and uses no links */
} cs_drawn_links;

typedef struct cs_drawn_run {
    cs_reader *reader;
    cs_drawn_row *rows;
    uint64_t n_rows;
    cs_drawn_tasks tasks;
    cs_drawn_slice *slices; /* row by row */
    uint64_t n_slices;
    cs_drawn_waits waits;
    cs_drawn_path path;
    cs_drawn_use uses[CS_DRAWN_USES]; /* kinds of computation first, then causes of waiting */
    uint32_t n_uses, n_compute;
    cs_drawn_memory memory;
    cs_drawn_links links;
} cs_drawn_run;

/* CS_INVALID for the file, CS_NO_MEMORY: `run` is then finished already. A zeroed run can be
 * finished. */
CS_MUST_CHECK cs_status cs_drawn_run_read(cs_reader *reader, uint32_t parts, cs_drawn_run *run,
                                          cs_error *error);
void cs_drawn_run_finish(cs_drawn_run *run);

/* CS_INVALID if the run has no samples of memory, or more categories than `most`. */
CS_MUST_CHECK cs_status cs_drawn_run_need_memory(const cs_drawn_run *run, uint32_t most,
                                                 cs_error *error);

/* The device of a row, of several the first; UINT32_MAX if there is no such row. */
uint32_t cs_drawn_device(const cs_drawn_run *run, uint32_t row);

/* "device 3", "devices 0-63", "devices 64(x16)". Returns `text`. */
char *cs_drawn_row_name(const cs_drawn_run *run, uint64_t row, char *text, size_t size);

/* Whether a task is a weight update, which belongs to no micro-batch. */
bool cs_drawn_updates(const cs_drawn_run *run, uint32_t task);

/* The number that a task is named after: its micro-batch; of an update, or if a mini-batch is one
 * micro-batch, its mini-batch. */
uint32_t cs_drawn_number(const cs_drawn_run *run, uint32_t task);

#endif
