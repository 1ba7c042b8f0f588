/* Output of a trace: a file or a stream, optionally compressed by gzip. Failures are recorded and
 * reported at the end. Internal to the viewer's files. */
#ifndef CS_PLOTS_VIEWER_OUT_H
#define CS_PLOTS_VIEWER_OUT_H

#include "plots/drawn-run.h"

#include <stddef.h>
#include <stdio.h>

typedef struct cs_viewer_out cs_viewer_out;

/* NULL if memory runs out or compression cannot be started. `stream` must outlive the output; the
 * caller closes it. */
cs_viewer_out *cs_viewer_out_create(FILE *stream, bool compressed);

void cs_viewer_out_bytes(cs_viewer_out *out, const void *data, size_t size);

/* Writes the remaining bytes and frees `out`. CS_IO if any write failed; `path` is the name in the
 * message. NULL is allowed. */
CS_MUST_CHECK cs_status cs_viewer_out_destroy(cs_viewer_out *out, const char *path,
                                              cs_error *error);

/* Write the trace of a run in one of the file formats. `run` must have been read with TASKS,
 * SLICES, ARGUMENTS and MEMORY. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_viewer_write_json(const cs_drawn_run *run, cs_viewer_out *out,
                                             cs_error *error);
CS_MUST_CHECK cs_status cs_viewer_write_proto(const cs_drawn_run *run, cs_viewer_out *out,
                                              cs_error *error);

#endif
