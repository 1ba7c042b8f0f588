/* Where a trace goes: a file, compressed by gzip or not, or a stream. Failures are kept and told at
 * the end. Internal to the viewer's files. */
#ifndef CS_PLOTS_VIEWER_OUT_H
#define CS_PLOTS_VIEWER_OUT_H

#include "plots/drawn-run.h"

#include <stddef.h>
#include <stdio.h>

typedef struct cs_viewer_out cs_viewer_out;

/* NULL when memory runs out. The stream stays the caller's. */
cs_viewer_out *cs_viewer_out_create(FILE *stream, bool compressed);

void cs_viewer_out_bytes(cs_viewer_out *out, const void *data, size_t size);

/* Writes what is left and says whether all of it worked; CS_IO with the name `path`. Accepts NULL.
 */
CS_MUST_CHECK cs_status cs_viewer_out_destroy(cs_viewer_out *out, const char *path,
                                              cs_error *error);

/* The forms of the file: what a trace has of a run that was read with its tasks, their slices and
 * arguments, and memory. CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_viewer_write_json(const cs_drawn_run *run, cs_viewer_out *out,
                                             cs_error *error);
CS_MUST_CHECK cs_status cs_viewer_write_proto(const cs_drawn_run *run, cs_viewer_out *out,
                                              cs_error *error);

#endif
