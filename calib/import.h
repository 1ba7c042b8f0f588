/* Costs from the output of nccl-tests and of the OSU micro-benchmarks, as they print it: fits of
 * the same model as to measurements of our own (calib/fit.h). A log may hold several tests, and
 * anything else that was printed on the terminal.
 *
 * nccl-tests (also rccl-tests), from 2.0 on: the header says ranks and hosts, the command line or
 * "Collective test starting" the collective. Times are those out of place, or in place if asked
 * for. Bytes are what the column "size" says, which is the same as in costs.h. The columns algbw
 * and busbw must agree with size, time, collective and ranks. sendrecv_perf is a "send" while
 * every rank also receives.
 *
 * OSU micro-benchmarks, from 3.1 on: neither ranks nor hosts are in the output. osu_latency is
 * "send", osu_bw "stream"; of collectives the time of the slowest rank is taken where it is printed
 * (-f), else the mean. Sizes of allgather, alltoall, gather and scatter are per rank there, and are
 * multiplied by the ranks.
 *
 * Errors are CS_INVALID with "file:line: what is wrong": malformed rows, results that failed
 * the tool's own check, a table that ends early, what neither the log nor the options say.
 */
#ifndef CS_CALIB_IMPORT_H
#define CS_CALIB_IMPORT_H

#include "calib/costs.h"

#include <stddef.h>

typedef struct cs_import_options {
    const char *collective; /* one of cs_cost_collective_names; NULL: as the log says */
    const char *level;      /* one of cs_cost_level_names; NULL: as the log says */
    uint32_t ranks;         /* 0: as the log says */
    bool in_place;          /* nccl-tests */
    const char *device;     /* NULL: as the log says */
    const char *date;       /* YYYY-MM-DD */
} cs_import_options;

typedef struct cs_import_report {
    uint32_t n_rows;    /* that became points */
    uint32_t n_skipped; /* rows without bytes, and tables of tests that are not known */
} cs_import_report;

/* Reads a log and adds what it holds. Messages and the source call the file `name`. */
CS_MUST_CHECK cs_status cs_import_nccl_tests(const char *name, const char *text, size_t length,
                                             const cs_import_options *options, cs_costs *costs,
                                             cs_import_report *report, cs_error *error);
CS_MUST_CHECK cs_status cs_import_osu(const char *name, const char *text, size_t length,
                                      const cs_import_options *options, cs_costs *costs,
                                      cs_import_report *report, cs_error *error);

#endif
