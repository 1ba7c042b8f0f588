/* Converts a results file to a trace for viewers: Perfetto (ui.perfetto.dev) and chrome://tracing.
 *
 * A device is a process; if one device was simulated for several, only that one is shown. The
 * first track of a device shows its computations; further tracks show the transfers that it sends
 * and those that it receives, including transfers of collectives. A transfer is put on the first
 * free track, so there are as many tracks as it takes to avoid overlaps. A task that ran is a
 * slice: its category is the kind (for a transfer, its operation), its arguments are the task's
 * columns; an arrow leads from the send to the receive. Counters show the live memory by category,
 * in bytes, and the capacity, if it is limited.
 *
 * The suffix of the file name chooses the format:
 *   .json         the Trace Event Format (Duan et al., Google, 2016): complete events ("X"), arrows
 *                 ("s", "f"), counters ("C"); times in microseconds with six decimals, i.e. in
 *                 picoseconds: exact in the file, though viewers round to nanoseconds
 *   .pftrace      Perfetto's own (protos/perfetto/trace in its sources): packets of slices and
 *                 counters with interned names; one fifth the size, for millions of tasks; times in
 *                 whole nanoseconds
 *   ... and .gz   compressed */
#ifndef CS_PLOTS_VIEWER_H
#define CS_PLOTS_VIEWER_H

#include "sim/base/error.h"

#include <stdio.h>

/* Writes the trace of the results file `input` to the file `output`, either completely or not at
 * all; "-" writes JSON to the stream `out`. CS_INVALID for the input, CS_IO, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_viewer_write(const char *input, const char *output, FILE *out,
                                        cs_error *error);

#endif
