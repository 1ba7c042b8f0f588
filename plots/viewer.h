/* From a results file to a trace for viewers: Perfetto (ui.perfetto.dev) and chrome://tracing.
 *
 * A device is a process; of devices that one was simulated for all, that one. Its first track has
 * what it computes, others the transfers that it sends and those that it receives, those of
 * collectives included: as many as it takes for no two of one track to overlap, each transfer on the
 * first that is free. A task that ran is a slice, its category the kind (of a transfer: what it is
 * part of), its arguments the task's columns; an arrow leads from what is sent to what is received.
 * Live memory by category is a counter, in bytes, and the capacity, where there is one.
 *
 * The name's ending says which form it has:
 *   .json         the Trace Event Format (Duan et al., Google, 2016): complete events ("X"), arrows
 *                 ("s", "f"), counters ("C"); times in microseconds with six decimals, which are
 *                 picoseconds: exact in the file, though viewers round to nanoseconds
 *   .pftrace      Perfetto's own (protos/perfetto/trace in its sources): packets of slices and
 *                 counters with interned names; a fifth as large, for millions of tasks; times in
 *                 whole nanoseconds
 *   ... and .gz   compressed
 */
#ifndef CS_PLOTS_VIEWER_H
#define CS_PLOTS_VIEWER_H

#include "sim/base/error.h"

#include <stdio.h>

/* Writes the trace of the results file `input` into the file `output`, whole or not at all; "-" is
 * the stream `out`, as JSON. CS_INVALID for the input, CS_IO, CS_NO_MEMORY. */
CS_MUST_CHECK cs_status cs_viewer_write(const char *input, const char *output, FILE *out,
                                        cs_error *error);

#endif
