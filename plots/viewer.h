/* From a results file to a trace for viewers: JSON in the Trace Event Format, which Perfetto
 * (ui.perfetto.dev) and chrome://tracing open.
 *
 * A device is a process. Its first thread has what it computes, the others the transfers that it
 * sends, those of collectives included: as many threads as it takes for no two of one thread to
 * overlap, each transfer on the first that is free. A task that ran is a complete event ("X"), its
 * category the kind (of a transfer: what it is part of), its arguments the task's columns. Live
 * memory by category is a counter ("C"), in bytes. Times are in microseconds with six decimals,
 * which are picoseconds: exact in the file, though viewers round to nanoseconds.
 *
 * Source: Duan et al., Trace Event Format, Google, 2016.
 */
#ifndef CS_PLOTS_VIEWER_H
#define CS_PLOTS_VIEWER_H

#include "sim/base/error.h"

#include <stdio.h>

/* Writes the trace of the results file `input` into the file `output`, whole or not at all; "-" is
 * the stream `out`. CS_INVALID for the input, CS_IO, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_viewer_write(const char *input, const char *output, FILE *out,
                                        cs_error *error);

#endif
