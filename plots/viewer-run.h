/* What a trace for viewers has of a run: slices on the tracks of devices, and live memory. Internal
 * to the viewer's files. */
#ifndef CS_PLOTS_VIEWER_RUN_H
#define CS_PLOTS_VIEWER_RUN_H

#include "plots/viewer-out.h"
#include "sim/core/trace/results-reader.h"

#include <stdbool.h>

/* A transfer is at both of its devices. */
typedef enum cs_slice_side { CS_SLICE_COMPUTES, CS_SLICE_SENDS, CS_SLICE_RECEIVES } cs_slice_side;

typedef struct cs_viewer_slice {
    uint32_t task;
    uint16_t lane; /* among those of its side: no two slices of one overlap */
    uint8_t side;
} cs_viewer_slice;

typedef struct cs_viewer_device {
    uint64_t first, n;        /* slices, in order of time */
    uint32_t sends, receives; /* lanes */
    int64_t capacity;         /* bytes; INT64_MAX: unlimited */
} cs_viewer_device;

typedef struct cs_viewer_run {
    cs_reader *reader;
    uint64_t n_tasks, n_samples, n_devices, n_slices;
    cs_reader_tasks tasks;
    const int64_t *bytes; /* of tasks */
    uint32_t *read;       /* per task the version that it read (an update: made), or UINT32_MAX */
    const uint32_t *memory_device, *category;
    const int64_t *memory_time, *memory_bytes;
    const char *const *categories;
    uint32_t n_categories;
    bool *held; /* by device and category: whether it is ever not 0 */
    cs_viewer_device *devices;
    cs_viewer_slice *slices; /* by device */
} cs_viewer_run;

/* CS_INVALID for the file, CS_NO_MEMORY. A zeroed run can be finished. */
CS_MUST_CHECK cs_status cs_viewer_run_read(cs_reader *reader, cs_viewer_run *run, cs_error *error);
void cs_viewer_run_finish(cs_viewer_run *run);

/* What a slice is: its kind, of a transfer what it is part of; and the number that it is named
 * after: the micro-batch, of what belongs to none the mini-batch. */
const char *cs_viewer_word(const cs_viewer_run *run, uint32_t task);
uint32_t cs_viewer_number(const cs_viewer_run *run, uint32_t task);

bool cs_viewer_moves(const cs_viewer_run *run, uint32_t task);
bool cs_viewer_updates(const cs_viewer_run *run, uint32_t task);

/* The forms of the file. */
CS_MUST_CHECK cs_status cs_viewer_write_json(const cs_viewer_run *run, cs_viewer_out *out,
                                             cs_error *error);
CS_MUST_CHECK cs_status cs_viewer_write_proto(const cs_viewer_run *run, cs_viewer_out *out,
                                              cs_error *error);

#endif
